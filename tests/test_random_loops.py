"""Seeded random functions with loops and conditions: what pygrad.compile makes of them equals eager runs: values and
gradients to the last bit, the other derivatives to rounding; so do their programs as bytes, in lanes and as C.

PYGRAD_GRAPHS sets how many are drawn: a tenth of it, default 400.
"""

from __future__ import annotations

import math
import os
from typing import Any

import numpy as np
import pytest
from conftest import bits
from random_loops import Plan

import pygrad
from pygrad.structures import flatten

COUNT = int(os.environ.get("PYGRAD_GRAPHS", "4000")) // 10
PARTS = 4


def near(found: Any, wanted: Any) -> bool:
    pairs = zip(flatten(found), flatten(wanted), strict=True)
    return all(math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-11) or (a != a and b != b) for a, b in pairs)


def total(plan: Plan):
    return lambda xs: pygrad.sum(plan(xs))


@pytest.mark.parametrize("part", range(PARTS))
def test_values_and_gradients_equal_eager_ones_to_the_last_bit(part):
    for seed in range(part, COUNT, PARTS):
        plan = Plan(seed)
        eager, fast = pygrad.value_and_grad(total(plan)), pygrad.value_and_grad(pygrad.compile(total(plan)))
        for number in range(3):
            xs = plan.at(number)
            (wanted, gradient), (found, compiled) = eager(xs), fast(xs)
            assert bits(wanted) == bits(found), f"seed {seed}, point {number}: {wanted!r}, {found!r}"
            assert [*map(bits, gradient)] == [*map(bits, compiled)], f"seed {seed}: {gradient}, {compiled}"
        assert fast.stats()["variants"] == 1


@pytest.mark.parametrize("part", range(PARTS))
def test_other_derivatives(part):
    for seed in range(part, COUNT // 4, PARTS):
        plan = Plan(seed)
        f, fast, xs = total(plan), pygrad.compile(total(plan)), plan.at(0)
        several = pygrad.compile(plan)
        for transform in (pygrad.hessian, lambda g: pygrad.grad(lambda v: pygrad.sum(pygrad.grad(g)(v)))):
            assert near(transform(fast)(xs), transform(f)(xs)), f"seed {seed}"
        assert near(pygrad.jacobian(several)(xs), pygrad.jacobian(plan)(xs)), f"seed {seed}"
        direction = [1.0 - 0.3 * i for i in range(len(xs))]
        assert near(pygrad.jvp(several, (xs,), (direction,)), pygrad.jvp(plan, (xs,), (direction,))), f"seed {seed}"
        assert near(pygrad.hvp(fast)(xs, direction), pygrad.hvp(f)(xs, direction)), f"seed {seed}"


@pytest.mark.parametrize("part", range(PARTS))
def test_transforms_inside_what_is_compiled(part):
    for seed in range(part, COUNT // 4, PARTS):
        plan = Plan(seed)
        f, xs = total(plan), plan.at(1)
        for transform in (pygrad.grad, pygrad.value_and_grad, pygrad.hessian):
            assert near(pygrad.compile(transform(f))(xs), transform(f)(xs)), f"seed {seed}"
        along = [0.5] * len(xs)
        assert near(pygrad.compile(lambda v: pygrad.jvp(f, (v,), (along,)))(xs), pygrad.jvp(f, (xs,), (along,)))  # noqa: B023


@pytest.mark.parametrize("part", range(PARTS))
def test_lanes(part):
    for seed in range(part, COUNT // 4, PARTS):
        plan = Plan(seed)
        fast = pygrad.value_and_grad(pygrad.compile(total(plan)))
        points = [plan.at(number) for number in range(11)]
        values, gradients = fast.map(np.array(points), threads=2)
        for lane, xs in enumerate(points):
            assert near((float(values[lane]), gradients[lane].tolist()), fast(xs)), f"seed {seed}, lane {lane}"
        columns, program = list(np.array(points).T.copy()), fast.program
        wanted = [program.run(xs) for xs in points]
        for level in range(3):
            found, _ = program.run_lanes(columns, len(points), exact=True, level=level)
            assert [[*map(bits, column)] for column in found.T.tolist()] == [[*map(bits, w)] for w in wanted]
        shared = [0.25, *columns[1:]]
        found, _ = program.run_lanes(shared, len(points), exact=True)
        repeated, _ = program.run_lanes([np.full(len(points), 0.25), *columns[1:]], len(points), exact=True)
        assert np.array_equal(found, repeated, equal_nan=True)
