"""The C core equals the reference bit for bit over random graphs of every op: values, gradients, second backward.

PYGRAD_GRAPHS sets how many seeded graphs are drawn (default 4,000; PYGRAD_GRAPHS=100000 is the long run).
"""

from __future__ import annotations

import os

import pytest
from conftest import CORE, REFERENCE, bits
from hypothesis import given, settings
from hypothesis import strategies as st
from random_graphs import ROWS, build, plan, sign_of_nan_matters

GRAPHS = int(os.environ.get("PYGRAD_GRAPHS", "4000"))
PARTS = 8


def compare(seed: int, create_graph: bool = False) -> bool:
    """Builds the graph of a seed on both engines, which must agree; False where the sign of a nan decides."""
    steps = plan(seed)
    core, reference = build(steps, CORE), build(steps, REFERENCE)
    if sign_of_nan_matters(steps, reference):
        return False
    for k, (a, b) in enumerate(zip(core, reference, strict=True)):
        assert isinstance(a, float) == isinstance(b, float), (seed, k)
        if isinstance(a, float):
            assert bits(a) == bits(b), (seed, k)
            continue
        assert bits(a.data) == bits(b.data), (seed, k, steps[k], a, b)
        assert a.op == b.op and a.requires_grad == b.requires_grad, (seed, k, steps[k])
        assert len(a.parents) == len(b.parents), (seed, k, steps[k])
    root, twin = core[-1], reference[-1]
    if isinstance(root, float) or not root.requires_grad:
        return True
    for seed_gradient in (1.0, -0.5):
        root.backward(seed_gradient)
        twin.backward(seed_gradient)
        for k, (a, b) in enumerate(zip(core, reference, strict=True)):
            if not isinstance(a, float):
                assert bits(a.grad) == bits(b.grad), (seed, k, steps[k], a, b)
    if create_graph:
        second_order(seed, core, reference)
    return True


def second_order(seed, core, reference):
    """Gradients as nodes hold the same numbers."""
    leaves = [
        k for k, node in enumerate(core) if not isinstance(node, float) and node.op == "leaf" and node.requires_grad
    ]
    first = CORE.gradients_graph(core[-1], [core[k] for k in leaves])
    twins = REFERENCE.gradients_graph(reference[-1], [reference[k] for k in leaves])
    for a, b in zip(first, twins, strict=True):
        number_a, number_b = getattr(a, "data", a), getattr(b, "data", b)
        assert bits(number_a) == bits(number_b), (seed, a, b)


@pytest.mark.parametrize("part", range(PARTS))
def test_core_equals_reference(part):
    compared = sum(compare(seed) for seed in range(part, GRAPHS, PARTS))
    assert compared > 0.9 * GRAPHS / PARTS


def test_gradients_as_nodes_equal_the_reference():
    assert sum(compare(seed, create_graph=True) for seed in range(10**6, 10**6 + GRAPHS // 8)) > 0


@given(st.integers(min_value=10**7, max_value=10**12))
@settings(max_examples=200, deadline=None)
def test_core_equals_reference_drawn(seed):
    compare(seed)


def test_every_op_is_drawn():
    drawn = {step[0] for seed in range(1000) for step in plan(seed)}
    assert drawn >= set(ROWS)


def test_a_planted_difference_is_found(monkeypatch):
    twin = REFERENCE.function("sin")
    monkeypatch.setattr(REFERENCE, "function", lambda name: twin if name == "cos" else getattr_reference(name))
    with pytest.raises(AssertionError):
        for seed in range(300):
            compare(seed)


def getattr_reference(name):
    from pygrad import reference

    return getattr(reference, name)
