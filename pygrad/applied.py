"""A program applied to Values, as a node of the graph with several results: what scan and cond leave in a capture.

The core asks it for gradients and tangents (csrc/py_gradient.c, py_tangent.c), which are programs applied to Values
again; in the end its instructions become part of the program that is captured (csrc/py_program.c).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pygrad import _core
from pygrad._core import Program, Value
from pygrad.modes import enable_grad

__all__ = ["Applied"]


class Applied:
    """A program without guards, to be called with a Value or float for each of its inputs."""

    def __init__(self, program: Program, name: str) -> None:
        self.program = program
        self.__name__ = name
        self._derived: dict[Any, Applied] = {}

    def __call__(self, operands: Sequence[Any]) -> list[Any]:
        """What it puts out: Values where an operand requires a gradient; under no_grad those are frozen."""
        numbers: list[float] = self.program.run(list(_core.numbers_of(tuple(operands))))
        if not any(isinstance(o, Value) and o.requires_grad for o in operands):
            return numbers
        is_recording = _core.is_grad_enabled()
        with enable_grad():
            results = _core.record_applied(self, list(operands), numbers)
        return results if is_recording else [result.detach() for result in results]

    def capsule(self) -> Any:
        return self.program.capsule()

    def _derivative(self, key: Any, make: Callable[[], Program]) -> Applied:
        if key not in self._derived:
            self._derived[key] = Applied(make(), self.__name__)
        return self._derived[key]

    def gradients_graph(self, adjoints: dict[int, Any], node: Any, operands: tuple[Any, ...]) -> tuple[Any, ...]:
        """Contributions to the operands' gradients, from the adjoints of results, by their numbers."""
        used = sorted(adjoints)
        wrt = [i for i, operand in enumerate(operands) if isinstance(operand, Value)]
        behind = list(range(len(used), len(used) + len(wrt)))
        reverse = self._derivative(
            ("reverse", *used, None, *wrt), lambda: self.program.select(used).gradient(wrt).select(behind)
        )
        found = dict(zip(wrt, reverse([*operands, *(adjoints[i] for i in used)]), strict=True))
        return tuple([found.get(i, 0.0) for i in range(len(operands))])

    def tangents_graph(self, along: list[Any], operands: tuple[Any, ...]) -> list[Any]:
        """The tangents of all results, from those of the operands, None where there is none."""
        wrt = [i for i, tangent in enumerate(along) if tangent is not None]
        count = self.program.counts[1]
        behind = list(range(count, 2 * count))
        forward = self._derivative(("forward", *wrt), lambda: self.program.tangent(wrt).select(behind))
        return forward([*operands, *(along[i] for i in wrt)])
