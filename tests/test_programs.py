"""Programs against the eager graph: values and gradients equal to the last bit, where captured and elsewhere.

PYGRAD_GRAPHS sets how many seeded graphs are drawn (default 4,000; PYGRAD_GRAPHS=100000 is the long run).
"""

from __future__ import annotations

import os
import random
from typing import Any

import pytest
from conftest import CORE, bits
from random_graphs import build, number, plan, sign_of_nan_matters

from pygrad import _core

GRAPHS = int(os.environ.get("PYGRAD_GRAPHS", "4000"))
PARTS = 4


def elsewhere(steps: list[tuple[Any, ...]], rng: random.Random) -> list[tuple[Any, ...]]:
    """The same graph with other numbers in the leaves that require a gradient; frozen ones are constants."""
    return [("leaf", number(rng), True) if step[0] == "leaf" and step[2] else step for step in steps]


def compare(seed: int) -> bool:
    """Replays the graph of a seed at its own numbers and others; False where there is nothing to compare."""
    steps, rng = plan(seed), random.Random(seed)
    nodes = build(steps, CORE)
    inputs = [k for k, step in enumerate(steps) if step[0] == "leaf" and step[2]]
    if isinstance(nodes[-1], float) or not nodes[-1].requires_grad:
        return False
    leaves = {k: nodes[k] for k in inputs}
    program, outside, _ = _core.capture(lambda: ([build(steps, CORE, leaves)[-1]], None), list(leaves.values()))
    assert outside == []
    replay = program.gradient(list(range(len(inputs))), 0)
    compared = False
    for changed in (steps, elsewhere(steps, rng), elsewhere(steps, rng)):
        nodes = build(changed, CORE)
        if sign_of_nan_matters(changed, nodes):
            continue
        leaves = [nodes[k] for k in inputs]
        value, *gradient = replay.run([leaf.data for leaf in leaves])
        assert bits(value) == bits(nodes[-1].data), (seed, changed)
        assert [*map(bits, gradient)] == [*map(bits, _core.gradients(nodes[-1], leaves))], (seed, changed)
        compared = True
    return compared


@pytest.mark.parametrize("part", range(PARTS))
def test_a_replay_equals_the_eager_run(part):
    compared = sum(compare(seed) for seed in range(part, GRAPHS, PARTS))
    assert compared > 0.8 * GRAPHS / PARTS
