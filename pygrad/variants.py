"""Variants: the programs of one function for one structure of arguments, one for each way through its branches.

Note [Variants]. A capture follows one way through the function; each truth or integer that Python took on it is a
guard. A function that is given the same answers does the same, so its variants form a tree: at each guard, a branch for
each answer that was met. A replay whose guard fails has found the answer for other inputs: from there the tree leads to
another variant, or to a new capture. Knows programs as something that runs; knows no structure.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pygrad import _core
from pygrad._core import Program, Value
from pygrad.errors import CaptureError
from pygrad.results import Result

__all__ = ["Tree", "Variant"]


class Variant:
    """A program that holds where its guards do, what it takes from outside, and the structure of its result."""

    __slots__ = ("at", "derived", "outside", "program", "result")

    def __init__(self, program: Program, outside: list[Value], at: int, result: Result) -> None:
        self.program = program
        self.outside = outside  # Values whose data are inputs, as they are at the time of a call
        self.at = at  # the number of inputs before them
        self.result = result
        self.derived: dict[Any, Variant] = {}  # by what it is a derivative of this one

    def place(self, number: int) -> int:
        """Which input of the program a number of the call is."""
        return number if number < self.at else number + len(self.outside)

    def inputs(self, numbers: list[float]) -> list[float]:
        if not self.outside:
            return numbers
        return [*numbers[: self.at], *[value.data for value in self.outside], *numbers[self.at :]]

    def columns(self, columns: list[Any]) -> list[Any]:
        """The same for many lanes: arrays of a number a row, of which one ends where what is from outside begins."""
        before, at = 0, 0
        while self.outside and before < self.at:
            before, at = before + len(columns[at]), at + 1
        return [*columns[:at], *[value.data for value in self.outside], *columns[at:]]

    def is_traced(self) -> bool:
        """Whether a transform around may differentiate by what is read from outside."""
        return bool(self.outside) and _core.is_tracing()

    def derivative(self, program: Program, result: Result) -> Variant:
        """A variant with the same guards and the same Values from outside."""
        return Variant(program, self.outside, self.at, result)


class _Branch:
    """A guard, as the answers given to it so far; or the end of a way."""

    __slots__ = ("answers", "variant")

    def __init__(self) -> None:
        self.answers: dict[Any, _Branch] = {}
        self.variant: Variant | None = None


def _answer(number: float) -> Any:
    return number if number == number else "nan"  # nan is not equal to itself


class Tree:
    """The variants met so far. `capture` makes the one for the inputs at hand; there are at most `limit`."""

    def __init__(self, name: str, limit: int) -> None:
        self._name = name
        self._limit = limit
        self._root = _Branch()
        self._paths: dict[Variant, list[_Branch]] = {}  # kept here, since trees of derivatives may share a variant
        self.last: Variant | None = None
        self.variants: list[Variant] = []

    def find(self, numbers: list[float], capture: Callable[[], Variant]) -> tuple[Variant, list[float]]:
        """The variant whose guards hold for these numbers, and its outputs.

        Raises CaptureError beyond the limit, and where a function answers its own guards otherwise the second time.
        """
        variant, captured, held = self.last or self._root.variant, False, 0
        while True:
            if variant is None:
                variant, captured = self.add(capture()), True
            outputs = variant.program.run(variant.inputs(numbers))
            if type(outputs) is list:
                self.last = variant
                return variant, outputs
            guard, found = outputs
            if captured or guard < held:  # each variant that is tried answers one guard more
                raise CaptureError(
                    f"compile: {self._name} took another way for the same arguments when it was replayed; it depends "
                    "on something that changes from call to call (a random number, a global): make that an argument"
                )
            held = guard + 1
            branch = self._paths[variant][guard].answers.get(_answer(found))
            variant = branch.variant if branch else None

    @property
    def only(self) -> Variant | None:
        """The variant that holds whatever the numbers: one without guards."""
        return self.last if self.last and not self.last.program.counts[2] else None

    def add(self, variant: Variant) -> Variant:
        """Takes up a variant, and gives it, or the one that goes the same way."""
        branch, path = self._root, []
        for expected in variant.program.expected():
            path.append(branch)
            branch = branch.answers.setdefault(_answer(expected), _Branch())
        if branch.variant is not None:
            return branch.variant  # another thread was here meanwhile
        if len(self.variants) >= self._limit:
            raise CaptureError(
                f"compile: {self._name} has gone {self._limit} ways through its branches for one structure of "
                "arguments, and now goes another; write branches as data with pygrad.where, or allow more by "
                "compile(f, variants=...)"
            )
        for passed in [*path, branch]:
            passed.variant = passed.variant or variant
        self._paths[variant] = path
        self.variants.append(variant)
        return variant
