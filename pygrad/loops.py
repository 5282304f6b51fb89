"""scan and cond: loops and branches that stay rolled in a program.

Outside of a capture they are the Python that they stand for, a loop and an `if`. In a capture the step, or each branch,
is captured by itself, once, and becomes the body of one instruction: see Note [Regions] in csrc/program.h.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from pygrad import _core
from pygrad._core import Program, Value
from pygrad.applied import Applied
from pygrad.errors import CaptureError
from pygrad.modes import enable_grad
from pygrad.structures import flatten, key_of, map_structure, refill

__all__ = ["cond", "scan"]


def scan(
    f: Callable[[Any, Any], tuple[Any, Any]], carry: Any, xs: Iterable[Any] | None = None, length: int | None = None,
    *, reverse: bool = False, checkpoint: bool = False,
) -> tuple[Any, Any]:  # fmt: skip
    """(carry, ys) after `carry, y = f(carry, x)` for each x of xs in turn; ys is the list of each y.

    What is carried is a structure of numbers (nested lists, tuples, dicts, dataclasses), the same after each step as
    before it, and so is each x, and each y. Without xs, f gets None, `length` times. ys is None where f gives None for
    each y. With `reverse` the last x comes first; ys stay in the order of xs.

    Outside of a compiled function that is a Python loop, and everything in it is recorded as usual. In a function that
    is compiled, the program holds one step, captured from one call of f (two with `checkpoint`), which a replay runs
    for each x. A Value of the step is an error outside of it, unless f returns it. The reverse pass keeps what is
    carried, not what is computed in between; with `checkpoint`, about the square root of that, for which each step is
    computed once more. f must go the same way in every step: `if` on a number of the step is an error, for which
    `where` and `cond` are the way out.

    Raises ValueError where there is no step, or xs and length do not agree; TypeError where f changes the structure of
    what it carries; in a compiled function CaptureError where a step branches, a Value of it is used outside, or
    loops and conditions are nested more than 32 deep.

    >>> from pygrad import compile, grad, scan
    >>> def compound(rate, years):
    ...     return scan(lambda money, _: (money * (1 + rate), None), 100.0, length=years)[0]
    >>> compound(0.05, 2)
    110.25
    >>> grad(compile(compound, static=["years"]))(0.05, 2)
    210.0
    """
    steps = _steps(xs, length)
    if not _core.is_capturing():
        return _run(f, carry, steps, reverse)
    if checkpoint and (size := math.isqrt(len(steps))) > 1:
        return _in_pieces(f, carry, steps, size, reverse)
    return _Scan(f, carry, steps, reverse).captured()


def _steps(xs: Iterable[Any] | None, length: int | None) -> Sequence[Any]:
    steps: Any
    if xs is None:
        if length is None:
            raise ValueError("scan: needs xs, or a length")
        steps = [None] * length
    else:
        if isinstance(xs, dict) or (isinstance(xs, np.ndarray) and xs.ndim == 0):
            raise TypeError(f"scan: xs must hold an x for each step, found {xs!r}; zip() makes one sequence of several")
        steps = xs if isinstance(xs, (list, tuple, range, np.ndarray)) else list(xs)
        if length is not None and length != len(steps):
            raise ValueError(f"scan: length is {length}, and xs has {len(steps)} elements")
    if len(steps) == 0:
        raise ValueError("scan: there is no step to take, so that nobody knows what ys are")
    found: Sequence[Any] = steps
    return found


def _is_counted(steps: Sequence[Any]) -> bool:
    """Whether there is no x, or None for each."""
    return steps[0] is None and all(x is None for x in steps)


def _held(number: Any) -> Any:
    """A number as a node of its own: else gradients would add up in another order than in programs."""
    return +number if isinstance(number, Value) else number


def _held_steps(steps: Sequence[Any]) -> Sequence[Any]:
    """Nodes of their own for the numbers of xs, column by column."""
    if isinstance(steps, range) or steps[0] is None or all(type(x) is float for x in steps):
        return steps
    rows = [flatten(x) for x in steps]
    if not any(isinstance(number, Value) for row in rows for number in row):
        return steps
    for i in range(max(map(len, rows))):
        for row in rows:
            row[i : i + 1] = map(_held, row[i : i + 1])
    return [refill(x, iter(row)) for x, row in zip(steps, rows, strict=True)]


def _stepped(f: Callable[[Any, Any], tuple[Any, Any]], carry: Any, x: Any, key: Any) -> tuple[Any, Any]:
    """A step; `key` is what key_of says of each carry."""
    out = f(carry, x)
    if not (isinstance(out, tuple) and len(out) == 2):
        raise TypeError(f"scan: f must return (carry, y), found {out!r} of type {type(out).__name__}")
    after, y = map_structure(_held, out)
    if key_of(after) != key:
        raise TypeError(f"scan: f must carry on what it carries: it got {carry!r}, and returned {after!r}")
    return after, y


def _run(f: Callable[[Any, Any], tuple[Any, Any]], carry: Any, steps: Sequence[Any], reverse: bool) -> tuple[Any, Any]:
    """The loop itself."""
    ys, found = [], False
    steps = _held_steps(steps)
    carry, key = map_structure(_held, carry), key_of(carry)
    for x in reversed(steps) if reverse else steps:
        carry, y = _stepped(f, carry, x, key)
        ys.append(y)
        found |= y is not None
    return carry, (ys[::-1] if reverse else ys) if found else None


def _in_pieces(
    f: Callable[[Any, Any], tuple[Any, Any]], carry: Any, steps: Sequence[Any], size: int, reverse: bool
) -> tuple[Any, Any]:
    """A loop over pieces of `size` steps, which the reverse pass runs again from what each began with, and the rest."""
    whole = len(steps) // size * size
    steps = _held_steps(steps)  # before all of them, as the loop itself does it
    carry = map_structure(_held, carry)
    is_counted = _is_counted(steps)
    pieces = [None if is_counted else list(steps[i : i + size]) for i in range(0, whole, size)]
    parts: dict[bool, list[Any]] = {True: [], False: []}
    for is_rest in (reverse, not reverse):
        if is_rest and whole < len(steps):
            carry, ys = _Scan(f, carry, steps[whole:], reverse).captured()
            parts[is_rest] = ys or []
        elif not is_rest:
            carry, ys = _Scan(
                lambda before, piece: _Scan(f, before, piece or steps[:size], reverse).captured(),
                carry, pieces, reverse,
            ).captured()  # fmt: skip
            parts[is_rest] = [y for piece in ys for y in piece] if ys else []
    together = [*parts[False], *parts[True]]
    return carry, together or None


def _lift(numbers: Sequence[Any]) -> list[Value]:
    """Leaves of a capture of a part, with the numbers of the operands that they stand for."""
    return [Value(float(number)) for number in _core.numbers_of(tuple(numbers))]


def _follows(number: Any) -> bool:
    return isinstance(number, Value) and number.requires_grad


class _Part:
    """A step or a branch, captured by itself: its program, what it reads from outside, and what it gives."""

    def __init__(self, name: str, run: Callable[[], Any], inputs: list[Value]) -> None:
        outputs: list[Any] = []

        def take(number: Any) -> Any:
            outputs.append(number if isinstance(number, Value) else float(number))
            return 0.0

        def call() -> tuple[list[Any], Any]:
            structure = map_structure(take, run())
            return outputs, structure

        with enable_grad():
            self.program, self.outside, (self.structure, guards) = _core.capture(call, inputs, True)
        self.guards = list(zip(guards, _core.depending(self.program, list(range(len(inputs)))), strict=True))
        self.own = [i for i, (_, is_own) in enumerate(self.guards) if is_own]  # the others are guards of the whole
        self.name = name

    def guard_whole(self, own: Iterator[Any]) -> None:
        """Guards what is around, in the order in which the part met its guards; `own` are its own ones, as results."""
        for guard, is_own in self.guards:
            if is_own:
                _core.guard(next(own), self.name)
            else:
                _core.pass_on(guard)


class _Scan:
    """A loop within a capture."""

    def __init__(
        self, f: Callable[[Any, Any], tuple[Any, Any]], carry: Any, steps: Sequence[Any], reverse: bool
    ) -> None:
        self.f, self.carry, self.steps, self.reverse = f, carry, steps, reverse
        self.carried = flatten(carry)
        self.columns = self._columns()

    def _columns(self) -> list[Any]:
        """The numbers of x, each as a list of those of all steps, or as an array where they are constants."""
        steps = self.steps
        if _is_counted(steps):
            return []
        if isinstance(steps, (range, np.ndarray)) and np.ndim(steps) == 1 and np.asarray(steps).dtype.kind in "fiu":
            return [np.asarray(steps, dtype=float)]
        if all(type(x) is float for x in steps):
            return [np.array(steps)]
        key = key_of(steps[0])
        rows = []
        for i, x in enumerate(steps):
            if key_of(x) != key:
                raise TypeError(f"scan: all elements of xs must have the structure of the first, found {x!r} at {i}")
            rows.append(flatten(x))
        columns = [list(column) for column in zip(*rows, strict=True)]
        return [
            column if any(map(_follows, column)) else np.array([float(v) for v in _core.numbers_of(tuple(column))])
            for column in columns
        ]

    def captured(self) -> tuple[Any, Any]:
        before = _lift(self.carried)
        at = len(self.steps) - 1 if self.reverse else 0
        x = _lift([column[at] for column in self.columns])

        def run() -> Any:
            carry = refill(self.carry, iter(before))
            return _stepped(self.f, carry, refill(self.steps[at], iter(x)), key_of(carry))

        part = _Part("scan", run, [*before, *x])
        if not part.outside and not any(map(_follows, [*self.carried, *self._free()])):
            return _run(self.f, self.carry, self.steps, self.reverse)  # numbers alone
        if part.own:
            _, _, kind, place = part.guards[part.own[0]][0]
            raise CaptureError(
                f"scan: f goes a way of its own at {place[0]}:{place[1]} in {place[2]}, by {kind} of a number of the "
                "step, and in a compiled function all steps are the same; write it with pygrad.where, or with "
                "pygrad.cond"
            )
        part.guard_whole(iter(()))
        return self._applied(part)

    def _free(self) -> list[Any]:
        """The numbers of xs that are operands, column by column."""
        return [number for column in self.columns if type(column) is list for number in column]

    def _applied(self, part: _Part) -> tuple[Any, Any]:
        carries, elements, shared = len(self.carried), len(self.columns), len(part.outside)
        places = [*range(carries), *(carries + shared + i for i in range(elements)), *range(carries, carries + shared)]
        stacks = part.program.counts[1] - carries
        body = _core.reordered(part.program, places, carries + shared + elements, list(range(carries + stacks)))
        arrays = [None if type(column) is list else column for column in self.columns]
        program = _core.rolled_loop(body, carries, shared, arrays, len(self.steps), self.reverse)
        found = Applied(program, "scan")([*self.carried, *part.outside, *self._free()])
        _, y = part.structure
        return refill(self.carry, iter(found)), self._stacked(y, found[carries:], stacks)

    def _stacked(self, y: Any, found: list[Any], stacks: int) -> Any:
        if y is None:
            return None
        count = len(self.steps)
        return [refill(y, iter([found[i * count + step] for i in range(stacks)])) for step in range(count)]


def cond(truth: Any, f: Callable[..., Any], g: Callable[..., Any], *operands: Any) -> Any:
    """f(*operands) where `truth` holds, else g(*operands).

    Outside of a compiled function that is an `if`. In a function that is compiled, where the truth depends on what it
    is compiled for, both run at the capture, and the program holds both: a replay runs the one that it comes to, and no
    other variant is captured. Both must return the same structure of numbers. In a batch, both run where lanes differ.

    Raises TypeError where the structures differ, in a compiled function.

    >>> from pygrad import compile, cond, grad
    >>> def payoff(spot):
    ...     return cond(spot > 100.0, lambda s: s - 100.0, lambda s: 0.0 * s, spot)
    >>> slope = grad(compile(payoff))
    >>> slope(120.0), slope(80.0)
    (1.0, 0.0)
    """
    if not (_core.is_capturing() and _core.depends_on_outside(truth)):
        return map_structure(_held, (f if truth else g)(*map_structure(_held, operands)))
    given = flatten(operands)
    parts = []
    for branch in (f, g):
        inputs = _lift(given)
        parts.append(_Part("cond", _on(branch, operands, inputs), inputs))
    holds, fails = parts
    if key_of(holds.structure) != key_of(fails.structure):
        raise TypeError(
            f"cond: both branches must return the same structure, found {holds.structure!r} and {fails.structure!r}"
        )
    return _applied_cond(truth, given, holds, fails)


def _on(branch: Callable[..., Any], operands: tuple[Any, ...], inputs: list[Value]) -> Callable[[], Any]:
    return lambda: branch(*refill(operands, iter(inputs)))


def _applied_cond(truth: Any, given: list[Any], holds: _Part, fails: _Part) -> Any:
    """Both bodies take what both read. Guards in a branch are results, which are as expected in the other branch."""
    outside = {id(value): value for part in (holds, fails) for value in part.outside}
    at = {key: len(given) + i for i, key in enumerate(outside)}
    expected = {part: [part.program.expected()[i] for i in part.own] for part in (holds, fails)}
    bodies: list[Program] = []
    for part, is_first in ((holds, True), (fails, False)):
        places = [*range(len(given)), *(at[id(value)] for value in part.outside)]
        program = part.program.with_guards_put_out(part.own)
        own: list[Any] = list(range(part.program.counts[1], program.counts[1]))
        guards = [*own, *expected[fails]] if is_first else [*expected[holds], *own]
        outputs = [*range(part.program.counts[1]), *guards]
        bodies.append(_core.reordered(program, places, len(given) + len(outside), outputs))
    program = _core.rolled_cond(bodies[0], bodies[1], len(outside))
    found = Applied(program, "cond")([truth, *given, *outside.values()])
    count = holds.program.counts[1]
    own_guards = iter(found[count:])
    for part in (holds, fails):
        part.guard_whole(own_guards)
    return refill(holds.structure, iter(found))
