"""A transform's graph is freed on the way back; what something else holds stays, and a walk that fails spends nothing.

`_core.gradients([y], targets)` is how the transforms ask for it: the list holds the root alone.
"""

from __future__ import annotations

import random
import signal
import sys

import pytest
from conftest import needs_timer

import pygrad
from pygrad import GraphError, Value, _core, detect_anomaly, value_and_grad


def alive() -> int:
    return _core.heap_stats()[1]


def graph_of(rng: random.Random, leaves: list[Value], length: int) -> list[Value]:
    """Nodes over the leaves, each from operands that are near, or a sum or dot of several."""
    nodes = list(leaves)
    for _ in range(length):
        a, b = rng.choice(nodes[-20:]), rng.choice(nodes[-20:])
        kind = rng.randrange(6)
        if kind == 0:
            nodes.append(pygrad.sum(nodes[-5:]) * 0.2)
        elif kind == 1:
            nodes.append(pygrad.dot([a, b, 1.5], [b, 0.5, a]) * 0.3)
        elif kind == 2:
            nodes.append(pygrad.where(a < b, a, b * 0.5))
        else:
            nodes.append(a * 0.7 + b * 0.6 if kind == 3 else (a - 1.0) * b if kind == 4 else (a * b).tanh())
    return nodes


def test_the_graph_goes_and_the_gradients_are_the_same():
    for seed in range(20):
        rng = random.Random(seed)
        leaves = [Value(rng.uniform(-1, 1)) for _ in range(4)]
        before = alive()
        y = graph_of(rng, leaves, 4000)[-1]
        expected = _core.gradients(y, leaves)
        assert alive() > before + 100
        box = [y]
        del y
        assert _core.gradients(box, leaves) == expected
        assert box == [None]
        assert alive() == before


def test_what_is_held_stays_whole():
    for seed in range(20):
        rng = random.Random(seed)
        leaves = [Value(rng.uniform(-1, 1)) for _ in range(4)]
        before = alive()
        nodes = graph_of(rng, leaves, 3000)
        held = rng.sample(nodes[4:-1], 3)
        numbers = [node.data for node in held]
        expected = [_core.gradients(node, leaves) for node in held]
        box = [nodes.pop()]
        del nodes
        _core.gradients(box, leaves)
        assert box == [None]
        assert [node.data for node in held] == numbers
        assert [_core.gradients(node, leaves) for node in held] == expected
        del held
        assert alive() == before


def test_a_root_that_is_held_stays():
    x = Value(2.0)
    box = [y] = [x * x]
    count = sys.getrefcount(y)
    assert _core.gradients(box, [x]) == [4.0]
    after = sys.getrefcount(y)
    assert after == count and box[0] is y and y.parents[1] is x


def references(box: list[Value]) -> list[int]:
    """The number of references to each node under a root, in the order in which a search meets them."""
    found, waiting, seen = [], box[:], set()
    while waiting:
        node = waiting.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        found.append(sys.getrefcount(node))
        waiting += [parent for parent in node.parents if isinstance(parent, Value)]
    return found


@pytest.mark.parametrize("length", [3, 500, 5000])
def test_a_foreign_leaf_gives_everything_back(length):
    x, w = Value(1.01), Value(0.5)
    w.grad = 7.0
    before = alive()
    y = w * x
    for k in range(length):
        y = pygrad.sum([y, x, y * 0.1]) * 0.4 if k % 50 == 0 else y * 0.9 + x
    box = [y]
    del y
    inside, counts = alive(), references(box)
    assert _core.gradients(box, [x], 1.0, _core.begin_run()) is None  # None: depends on w too
    assert alive() == inside and references(box) == counts
    found = _core.gradients(box, [x])
    assert w.grad == 7.0 and references(box) == counts
    assert _core.gradients(box, [x, w])[:1] == found and box == [None]
    assert alive() == before


def test_a_stale_node_gives_everything_back():
    x = Value(1.5)
    before = alive()
    low = x * x
    y = low
    for _ in range(3000):
        y = (y * 1.0001).sin() + x
    x.data = 2.0
    box = [y]
    del y
    inside, counts = alive(), references(box)
    with pytest.raises(GraphError, match="was written after") as caught:
        _core.gradients(box, [x])
    assert "backward stopped after 9000 node(s)" in "".join(getattr(caught.value, "__notes__", []))
    assert alive() == inside and references(box) == counts
    box.clear()
    del low
    assert alive() == before


def test_fresh_graphs_are_not_held_to_be_stale_nor_stale_ones_fresh():
    """Nodes older than the last write to any data are looked at, younger ones are not."""
    x, other = Value(3.0), Value(1.0)
    for _ in range(50):
        old = x * x
        other.data = 5.0
        young = old * x
        assert _core.gradients(young, [x]) == [27.0]
        x.data = 3.0
        with pytest.raises(GraphError, match="was written after"):
            young.backward()
        with pytest.raises(GraphError, match="was written after"):
            (x * 1.0 + young).backward()


def test_stand_ins_and_places_are_left_alone():
    x = Value(2.0)
    y = x * x * x
    y.backward(create_graph=True)
    g = x.grad * 2.0  # 6 x^2, over a stand-in for x
    before = alive()
    box = [g * x]
    assert _core.gradients(box, [x]) == [2.0 * 3.0 * 3.0 * 2.0**2]
    box.clear()
    assert alive() == before
    with detect_anomaly():
        z = (x * 3.0).exp()
    assert _core.gradients([z], [x]) == _core.gradients(z, [x])
    box = [z]
    del z
    expected = 3.0 * (x * 3.0).exp().data
    assert _core.gradients(box, [x]) == [expected]


@needs_timer
def test_an_interrupt_gives_everything_back():
    class StopError(Exception):
        pass

    def handler(signum, frame):
        raise StopError

    x = Value(1.0)
    before = alive()
    y = x
    for _ in range(1_000_000):
        y = y * 1.0000001
    inside = alive()
    box = [y]
    del y
    old = signal.signal(signal.SIGALRM, handler)
    stopped = 0
    try:
        for delay in (0.0005, 0.001, 0.002):
            try:
                signal.setitimer(signal.ITIMER_REAL, delay)
                _core.gradients(box, [x])
                signal.setitimer(signal.ITIMER_REAL, 0)
                break
            except StopError:
                stopped += 1
                assert isinstance(box[0], Value) and alive() == inside
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, old)
    assert stopped
    box.clear()
    assert alive() == before


def test_transforms_leave_what_the_function_kept():
    kept = []

    def f(x):
        square = x * x
        kept.append(square)
        return square * 3.0 + x

    assert value_and_grad(f)(2.0) == (14.0, 13.0)
    (square,) = kept
    assert square.data == 4.0 and square.parents[0].data == 2.0
    assert _core.gradients(square, [square.parents[0]]) == [4.0]


def test_a_box_of_a_number():
    x = Value(1.0)
    assert _core.gradients([3.0], [x]) == [0.0]
