"""Seeded random programs with branches and several outputs: values, gradients, Jacobians in both modes and Hessians of
what pygrad.compile made equal those of eager runs, over every op.

PYGRAD_GRAPHS sets how many graphs are drawn: a tenth of it, default 400.
"""

from __future__ import annotations

import gc
import os
import random
from typing import Any

import pytest
from compiled import on_values, same
from conftest import CORE, bits
from random_graphs import build, number, plan, sign_of_nan_matters

import pygrad
from pygrad import Value, _core
from pygrad.structures import flatten

GRAPHS = int(os.environ.get("PYGRAD_GRAPHS", "4000")) // 10
PARTS = 4
POISONED: list[bool] = []  # of each number of a second derivative, whether it is nan in a program alone


class Drawn:
    """A function of a list of numbers that goes one of several ways; `blurred` says that the sign of a nan decided."""

    __name__ = "drawn"

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.plans = [plan(3 * seed + k) for k in range(3)]
        self.count = self.rng.randint(1, 4)
        self.picks = [self.rng.random() for _ in range(8)]
        self.blurred = False

    def at(self) -> list[float]:
        return [number(self.rng) for _ in range(self.count)]

    def nodes(self, which: int, xs: list[Any]) -> list[Any]:
        steps = self.plans[which]
        leaves = {k: xs[k % len(xs)] for k, step in enumerate(steps) if step[0] == "leaf" and step[2]}
        nodes = build(steps, CORE, leaves)
        numbers = [_core.numbers_of([node])[0] for node in nodes]
        self.blurred |= sign_of_nan_matters(steps, numbers)
        return nodes

    def __call__(self, xs: list[Any]) -> list[Any]:
        nodes = self.nodes(0, xs)
        one, other, third = (nodes[int(pick * len(nodes))] for pick in self.picks[:3])
        further = self.nodes(1 if one > other else 2, xs)
        steps = int(pygrad.clip(third, -1.5, 1.5)) if third == third else 2
        ways = [further[int(pick * len(further))] for pick in self.picks[3:6]]
        return [
            nodes[-1],
            further[-1],
            *sorted(ways[:2], key=lambda v: v if v == v else 0.0),
            max(ways[2], one) * steps,
        ]

    def scalar(self, xs: list[Any]) -> Any:
        return pygrad.sum(self(xs))


def test_the_functions_branch_and_are_compared():
    """A test of the test: few draws go one way alone, or say nothing."""
    ways = []
    for seed in range(40):
        drawn = Drawn(seed)
        fast = pygrad.compile(drawn)
        for _ in range(6):
            fast(drawn.at())
        ways.append(fast.stats()["variants"])
    assert sum(count > 1 for count in ways) > 20


def compare(seed: int) -> int:
    """How many of the points of a seed could be compared."""
    drawn, compared = Drawn(seed), 0
    fast = pygrad.compile(drawn)
    scalar = pygrad.compile(drawn.scalar)
    slope, second, rows = pygrad.value_and_grad(scalar), pygrad.hessian(scalar), pygrad.jacobian(fast)
    product = pygrad.hvp(scalar)
    for _ in range(4):
        at, along = drawn.at(), drawn.at()
        drawn.blurred = False
        expected = on_values(drawn, at)
        found = fast(at), slope(at), rows(at), second(at), product(at, along)
        if drawn.blurred:
            continue
        compared += 1
        assert same(found[0], expected), (seed, at)
        assert same(found[1], pygrad.value_and_grad(drawn.scalar)(at)), (seed, at)
        assert same(found[2], pygrad.jacobian(drawn)(at), exactly=len(at) >= 5), (seed, at)
        second_order(found[3:], [pygrad.hessian(drawn.scalar)(at), pygrad.hvp(drawn.scalar)(at, along)], (seed, at))
        modes(fast, drawn, at)
    return compared


def second_order(found: Any, expected: Any, where: Any) -> None:
    """Equal, but where docs/limits.md says: nan from a branch that was not taken, with derivatives not finite."""
    for a, b in zip(flatten(found), flatten(expected), strict=True):
        assert a == b or a != a, (where, a, b)
        POISONED.append(a != a and b == b)


def modes(fast: Any, drawn: Drawn, at: list[float]) -> None:
    """Both modes of the last program's Jacobian: in reverse to the last bit."""
    leaves = [Value(x) for x in at]
    outputs = [v for v in drawn(leaves) if not isinstance(v, int)]
    numbers = list(range(len(at)))
    columns = [_core.tangents(outputs, leaves, [float(k == i) for k in numbers], False) for i in numbers]
    for forward in (False, True):
        program, at_rows, at_columns = fast.program.jacobian(numbers, forward)
        found = dict(zip(zip(at_rows, at_columns, strict=True), program.run(at)[len(outputs) :], strict=True))
        for i, output in enumerate(outputs):
            gradient = _core.gradients(output, leaves) if isinstance(output, Value) else [0.0] * len(at)
            for k in numbers:
                entry = found.get((i, k), 0.0)
                if forward:
                    assert same(entry, float(columns[k][i]), exactly=False), (i, k, at)
                else:
                    assert bits(entry) == bits(gradient[k]), (i, k, at)


@pytest.mark.parametrize("part", range(PARTS))
def test_programs_equal_eager_runs(part):
    POISONED.clear()
    compared = sum(compare(seed) for seed in range(part, GRAPHS, PARTS))
    assert compared > 4 * 0.8 * GRAPHS / PARTS
    assert sum(POISONED) <= 0.001 * len(POISONED)


# ---- what Python may do to a program


def test_programs_are_made_by_compile_alone():
    for make in (_core.Program, lambda: _core.Program.__new__(_core.Program), type("P", (_core.Program,), {})):
        with pytest.raises(TypeError, match=r"^Program: is made by pygrad\.compile$"):
            make()


def test_numbers_of_inputs_are_checked_as_they_are_used():
    class Liar(int):
        def __le__(self, other):
            return True

        __lt__ = __ge__ = __gt__ = __le__

    made = pygrad.compile(lambda x, y: x * y).capture(1.0, 2.0).program
    for wrt in ([Liar(50_000_000)], [2], [-1]):
        with pytest.raises(IndexError, match="is not one of 2"):
            made.gradient(wrt, 0)
    with pytest.raises(TypeError):
        made.gradient([0.5], 0)
    with pytest.raises(IndexError, match="column 7 is not one of 3"):
        _core.colour_columns([0, 1], [1, 7], 3)


def test_arguments_that_change_meanwhile():
    """The collector runs a finalizer that lengthens an argument, in the middle of a call."""
    numbers = [1.0, 2.0]

    class Cycle:
        def __init__(self):
            self.me = self

        def __del__(self):
            numbers.extend([3.0] * 50)

    fast = pygrad.compile(lambda x: sum(x))
    fast([1.0, 2.0])
    before = gc.get_threshold()
    try:
        gc.set_threshold(1, 1, 1)
        for _ in range(200):
            del numbers[2:]
            Cycle()
            assert fast(numbers) >= 3.0
    finally:
        gc.set_threshold(*before)
