"""The walk down through memory: what may go wrong in it, and that the walk along a list gives the same numbers."""

from __future__ import annotations

import os
import random
import signal

import pytest
from conftest import needs_timer

import pygrad
from pygrad import GraphError, Value, _core, detect_anomaly, grad


def tangle(rng: random.Random, leaves: list[Value], length: int) -> Value:
    """Nodes whose contributions do not commute in float arithmetic."""
    nodes = list(leaves)
    for _ in range(length):
        a, b = rng.choice(nodes[-30:]), rng.choice(nodes[-30:])
        kind = rng.randrange(3)
        nodes.append(a * 0.7 + b * 0.6 if kind == 0 else (a - b) * 0.9 if kind == 1 else (a * b).sin())
    return pygrad.sum(nodes[-40:])


def test_every_walk_gives_the_same_bits():
    for seed in range(30):
        rng = random.Random(seed)
        leaves = [Value(rng.uniform(-1, 1)) for _ in range(5)]
        y = tangle(rng, leaves, 3000)
        y.backward()
        scanned = [leaf.grad for leaf in leaves]
        assert _core.gradients(y, leaves) == scanned
        for leaf in leaves:
            leaf.zero_grad()
        with detect_anomaly():
            y.backward()  # along a list
        assert [leaf.grad for leaf in leaves] == scanned
        assert [_core.gradients(y, [leaf])[0] for leaf in leaves] == scanned  # the other leaves are foreign
        graph = _core.gradients_graph(y, leaves)
        assert [getattr(g, "data", g) for g in graph] == scanned
        for leaf in leaves:
            leaf.zero_grad()
        y.backward(retain_graph=False)
        assert [leaf.grad for leaf in leaves] == scanned


def test_a_graph_spread_over_many_slabs():
    """Nodes far apart in memory, with dead and living strangers between them."""
    x = Value(2.0)
    strangers, y = [], x
    for k in range(200):
        y = y * 1.01
        strangers.append([x * float(i) for i in range(1500)])
        if k % 3:
            strangers.pop(0)
    y.backward()
    assert x.grad == y.data / 2.0 or abs(x.grad - y.data / 2.0) < 1e-12
    assert all(node.grad == 0.0 for group in strangers for node in group)


def test_a_root_older_than_others():
    x = Value(3.0)
    u = x * x
    later = [u * float(k) for k in range(5000)]
    u.backward()
    assert x.grad == 6.0 and later[0].grad == 0.0


def test_a_released_node_within_a_graph():
    x = Value(2.0)
    u = x * x
    v = u * 3
    v.backward(retain_graph=False)
    assert v.op == "mul" and v.parents == ()
    for y in (u + x, pygrad.sum([u, x]), u.exp()):
        with pytest.raises(GraphError, match="op 'mul' has been released"):
            y.backward()


def test_gradients_with_foreign_leaves_touch_none_of_them():
    x, w = Value(2.0), Value(5.0)
    w.grad = 7.0
    y = x * w + w
    assert _core.gradients(y, [x], run=_core.begin_run()) is None
    assert _core.gradients(y, [x]) == [5.0]
    assert w.grad == 7.0
    assert _core.gradients(x * 3, [x], run=_core.begin_run()) == [3.0]


@pytest.fixture
def epochs_end():
    """Walks are numbered by 32 bits; this brings the numbers to their end."""
    _core.set_epoch(2**32 - 6)
    yield
    _core.set_epoch(10**6)


def test_epochs_begin_again(epochs_end):
    x = Value(1.5)
    old = x * 2
    out = Value(3.0, (x,))
    out.backward_fn = lambda: None
    for _ in range(6):
        x.zero_grad()
        y = old * x + x.exp()
        y.backward()
        assert x.grad == 2 * x.data + 2 * x.data + x.exp().data or abs(x.grad - 4 * 1.5 - x.exp().data) < 1e-12
        (out * 1.0).backward()
        assert grad(lambda t: t * t * t)(2.0) == 12.0


def interrupting(handler, walk, times):
    """Runs `walk` some times; `handler` runs in the middle of each."""
    before = signal.signal(signal.SIGALRM, handler)
    try:
        for _ in range(times):
            signal.setitimer(signal.ITIMER_REAL, 0.002)
            walk()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@needs_timer
def test_a_backward_in_a_signal_handler_over_the_same_graph():
    x = Value(1.0)
    y = x
    for _ in range(400_000):
        y = y * 1.0000001
    middle = y
    for _ in range(400_000):
        y = y * 1.0000001
    y.backward()
    expected = x.grad
    ran = []

    def handler(signum, frame):
        before = x.grad
        middle.backward()
        ran.append(grad(lambda t: t * t)(3.0))
        x.grad = before

    def walk():
        x.zero_grad()
        y.backward()
        assert x.grad == expected

    interrupting(handler, walk, 60)
    assert ran and set(ran) == {6.0}


@needs_timer
def test_a_signal_handler_that_releases_the_graph():
    x = Value(1.0)

    def long_chain():
        y = x
        for _ in range(400_000):
            y = y * 1.0000001
        return y

    y = long_chain()
    middle = y
    for _ in range(400_000):
        y = y * 1.0000001
    ran = []

    def handler(signum, frame):
        if not ran:
            ran.append(1)
            middle.backward(retain_graph=False)

    try:
        interrupting(handler, y.backward, 60)
    except GraphError as error:
        assert "released" in str(error)
    (long_chain() * 2).backward()


def test_memory_of_a_long_lived_node_among_short_lived_graphs():
    """One op's node that stays keeps its slab, 64 KiB, and no more."""
    if not os.path.exists("/proc/self/statm"):
        return
    x = Value(1.0)
    kept = []
    regions = _core.heap_stats()[0]
    for _ in range(64):
        kept.append(x * 2)
        y = x
        for _ in range(3000):
            y = y * 1.1
        del y
    assert _core.heap_stats()[0] - regions <= 64 * 65536 // (2 << 20) + 2
