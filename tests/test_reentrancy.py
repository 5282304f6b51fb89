"""Code of the user's inside walks: closures, ops, finalizers and signal handlers that walk, write and free."""

from __future__ import annotations

import copy
import gc
import pickle
import signal

import pytest
from conftest import needs_timer

import pygrad
from pygrad import GraphError, Value, custom_op, detect_anomaly, explain, grad, no_grad


def long_chain(x, length):
    y = x
    for _ in range(length):
        y = y * 1.0000001
    return y


def test_a_custom_gradient_walks_the_graph_that_is_differentiated():
    def gradient(g, y, a):
        if isinstance(a, Value):
            a.sin().backward()
        return g * 2 * a

    square = custom_op(lambda a: a * a, gradient)
    plain = custom_op(lambda a: a * a, lambda g, y, a: g * 2 * a)

    def f(op):
        def run(x):
            t = x
            for _ in range(50):
                t = t * 1.01
            return op(t) * t

        return run

    assert grad(f(square))(1.0) == grad(f(plain))(1.0)
    assert grad(grad(f(square)))(1.0) == grad(grad(f(plain)))(1.0)


def test_a_custom_gradient_writes_the_grad_of_its_operand():
    def gradient(g, y, a):
        if isinstance(a, Value):
            a.grad = 1e300
        return g * 2 * a

    square = custom_op(lambda a: a * a, gradient)
    assert grad(grad(lambda x: square(x * 1.5)))(1.0) == 4.5


@pytest.mark.parametrize("walk", ["plain", "anomaly", "graph"])
def test_a_callback_that_releases_the_graph(walk):
    state = []

    def gradient(g, y, *operands):
        if not state:
            state.append(1)
            root.backward(retain_graph=False)
        return [g] * len(operands)

    total = custom_op(lambda *a: sum(a), gradient)
    leaves = [Value(float(i)) for i in range(6)]
    root = total(*(leaf * 2.0 for leaf in leaves)) * 2.0
    with pytest.raises(GraphError, match="released"):
        if walk == "anomaly":
            with detect_anomaly():
                root.backward()
        else:
            root.backward(create_graph=walk == "graph")
            root.backward()
    gc.collect()
    (leaves[0] * 3).backward()


def test_a_closure_walks_a_node_that_it_shares(engine):
    x = engine.Value(2.0)
    u = x * 3.0
    out = engine.Value(u.data**2, (u,))

    def step():
        (u * 5.0).backward()
        u.grad += out.grad * 2 * u.data

    out.backward_fn = step
    (out + u * 7.0).backward()
    assert x.grad == 3 * (2 * 6 + 7) + 15


def test_a_walk_of_strangers_inside_a_walk_keeps_its_gradients():
    x = Value(2.0)
    found = []

    def step():
        b = Value(1.0) * 2
        (b * 3).backward()
        found.append(b.grad)
        x.grad += out.grad

    out = Value(6.0, (x,))
    out.backward_fn = step
    (out * 1.0).backward()
    assert found == [3.0] and x.grad == 1.0


def test_a_transform_over_an_outer_node_inside_a_gradient():
    x = Value(2.0)
    w = x * x
    op = custom_op(lambda a: a * a * w.data, lambda g, y, a: g * grad(lambda t: t * t * w)(a).data)
    (op(x) + w * 7.0).backward()
    assert x.grad == 2 * 2 * 4 + 7 * 4


def test_a_finalizer_of_a_closure_walks_while_its_node_is_freed():
    class Step:
        def __call__(self):
            pass

        def __del__(self):
            (stand_in * 2.0).backward()

    x = Value(3.0)
    (x * x).backward(create_graph=True)
    stand_in = x.grad.parents[0]
    x.grad = 0.0
    out = Value(1.0, (Value(2.0),))
    out.backward_fn = Step()
    y = x * out
    del x, out
    del y
    assert stand_in.grad == 2.0


@needs_timer
@pytest.mark.parametrize("closure", [False, True])
@pytest.mark.parametrize("doing", ["backward", "explain", "grad", "copy"])
def test_a_signal_handler_walks_the_same_graph(closure, doing):
    x = Value(1.0)
    middle = long_chain(x, 100_000)
    y = long_chain(middle, 300_000) + middle
    y.backward()
    expected = x.grad
    root = y
    if closure:
        root = Value(y.data, (y,))

        def step():
            y.grad += root.grad

        root.backward_fn = step
    ran = []

    def handler(signum, frame):
        before = x.grad
        if doing == "backward":
            middle.backward()
        elif doing == "explain":
            explain(x * 2.0 + x, wrt=x)
        elif doing == "grad":
            grad(lambda t: t * t)(middle.data)
        else:
            copy.deepcopy(x * 2)
        x.grad = before
        ran.append(1)

    before = signal.signal(signal.SIGALRM, handler)
    try:
        for _ in range(20):
            x.zero_grad()
            signal.setitimer(signal.ITIMER_REAL, 0.0005)
            root.backward()
            assert x.grad == expected
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert ran


# ---------------------------------------------------------------- create_graph and what was written meanwhile


def test_create_graph_after_the_leaf_was_written():
    x = Value(3.0)
    (x * x).backward(create_graph=True)
    x.data = 5.0
    x.zero_grad()
    (x * x).backward(create_graph=True)
    assert x.grad.data == 10.0


def test_create_graph_notices_a_write():
    x = Value(3.0)
    y = x * x
    x.data = 5.0
    with pytest.raises(GraphError, match="was written"):
        y.backward(create_graph=True)


def test_create_graph_under_no_grad():
    x = Value(3.0)
    y = x * x
    with no_grad():
        y.backward(create_graph=True)
    assert x.grad.data == 6.0


def test_create_graph_that_releases():
    x = Value(3.0)
    y = x * x
    y.backward(retain_graph=False, create_graph=True)
    first = x.grad
    assert first.data == 6.0 and y.parents == ()
    x.zero_grad()
    first.backward()
    assert x.grad == 2.0


@pytest.mark.parametrize("width", [1, 255, 256, 512])
def test_a_write_to_every_operand_of_a_wide_node_is_noticed(width):
    w = [Value(1.0) for _ in range(width)]
    y = pygrad.dot(w, [Value(2.0) for _ in range(width)])
    for p in w:
        p.data -= 0.1
    with pytest.raises(GraphError, match="was written"):
        y.backward()
    with pytest.raises(GraphError, match="was written"):
        copy.deepcopy(y).backward()
    with pytest.raises(GraphError, match="was written"):
        pickle.loads(pickle.dumps(y)).backward()


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda pair: pickle.loads(pickle.dumps(pair))])
def test_a_gradient_copied_with_its_leaf_stays_tied_to_it(copied):
    x = Value(3.0)
    (x * x).backward(create_graph=True)
    leaf, first = copied((x, x.grad))
    leaf.zero_grad()
    x.zero_grad()
    first.backward()
    assert leaf.grad == 2.0 and x.grad == 0.0
