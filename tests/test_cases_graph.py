"""Cases of the families GRAPH and ALIAS: the engine, modes and nesting; data that is written after it was used.

What other tests pin in detail (texts, copies, transforms) is here only as far as a case asks for it. Next: cases.py,
which says what a case is.
"""

import functools
import gc
import threading

import numpy as np
import pytest
from cases import chain, gradients

import pygrad
from pygrad import (
    Value,
    custom_op,
    enable_grad,
    grad,
    hessian,
    hvp,
    is_grad_enabled,
    jacobian,
    jvp,
    no_grad,
    value_and_grad,
    vjp,
)

# ---- GRAPH: engine, modes, nesting


def test_graph_01_inner_node_used_twice():
    def f(a):
        b = 3 * a
        return b + b * b

    assert gradients(f, 2.0) == (42.0, [39.0])
    assert grad(f)(2.0) == 39.0
    assert jvp(f, (2.0,), (1.0,)) == (42.0, 39.0)


@pytest.mark.parametrize("create_graph", [False, True])
def test_graph_02_backward_twice(create_graph):
    a = Value(2.0)
    y = 3 * (a * a)
    y.backward(create_graph=create_graph)
    assert float(a.grad) == 12.0
    a.grad = 0
    y.backward(create_graph=create_graph)
    assert float(a.grad) == 12.0
    y.backward(create_graph=create_graph)
    assert float(a.grad) == 24.0


def in_small_thread(function):
    """function() in a thread with a stack of 64 KiB; what it raised is raised here."""
    found = []

    def run():
        try:
            found.append((function(), None))
        except BaseException as error:
            found.append((None, error))

    before = threading.stack_size(65536)
    try:
        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
    finally:
        threading.stack_size(before)
    result, error = found[0]
    if error is not None:
        raise error
    return result


def test_graph_04_deep_chain():
    def run():
        x, y = chain(100_000)
        y.backward()
        return y.data, x.grad, grad(lambda v: functools.reduce(lambda t, _: t * 1.00001, range(100_000), v))(1.0)

    for found in (run(), in_small_thread(run)):
        assert found == pytest.approx((2.71826823719,) * 3, rel=1e-9)


def test_graph_05_freeing_a_deep_chain():
    def run():
        _, y = chain(1_000_000)
        del y
        x, y = chain(1_000_000)
        y.backward()
        slope = x.grad
        del y
        gc.collect()
        return slope

    assert run() == in_small_thread(run)


def test_graph_07_gradients_are_apart():
    x, y = Value(1.0), Value(2.0)
    z = x + y
    (z + x * 3).backward()
    assert (x.grad, y.grad, z.grad) == (4.0, 1.0, 1.0)


def test_graph_08_the_seed_stays_as_it_is():
    seed = np.float64(3.0)
    x = Value(1.0)
    y = x + x
    y.backward(seed)
    assert (seed, x.grad) == (3.0, 6.0)
    y.backward(seed)
    assert (seed, x.grad) == (3.0, 12.0)
    given = [1.0, 2.0]
    _, pull = vjp(lambda v: [v, 2 * v], 1.0)
    assert pull(given) == 5.0
    given[0] = 100.0
    assert pull([1.0, 2.0]) == 5.0
    assert given == [100.0, 2.0]


class OopsError(Exception):
    pass


@pytest.mark.parametrize("error", [OopsError, KeyboardInterrupt, ZeroDivisionError])
def test_graph_10_exception_in_a_gradient(error):
    fail = [True]

    def gradient(g, y, a):
        if fail[0]:
            raise error("half way")
        return 2 * a * g

    square = custom_op(lambda a: a * a, gradient, name="square_or_fail")
    x, w = Value(3.0), Value(2.0)
    y = square(x) * w
    with pytest.raises(error, match="half way") as caught:
        y.backward()
    assert "backward stopped after 1 node(s)" in caught.value.__notes__[0]
    z = Value(5.0)
    (z * z).backward()
    assert z.grad == 10.0
    assert is_grad_enabled()
    fail[0] = False
    x.zero_grad()
    w.zero_grad()
    y.backward()
    assert (x.grad, w.grad) == (12.0, 9.0)
    fail[0] = True
    with pytest.raises(error):
        grad(lambda v: square(v) * 2)(3.0)
    assert float(Value(1.0)) == 1.0
    assert grad(lambda v: v * v)(3.0) == 6.0


def test_graph_10_exception_in_backward_fn():
    x = Value(3.0)
    out = Value(9.0, (x,))

    def fail():
        raise OopsError("in a closure")

    out.backward_fn = fail
    with pytest.raises(OopsError):
        (out * 2).backward()
    out.backward_fn = lambda: setattr(x, "grad", x.grad + 6.0 * out.grad)
    x.zero_grad()
    (out * 2).backward()
    assert x.grad == 12.0


@pytest.mark.parametrize("order", [1, 2])
def test_graph_11_backward_inside_backward(order):
    inner = []

    def gradient(g, y, a):
        t = Value(2.0)
        (t**2).backward()
        inner.append(t.grad)
        return 2 * a * g

    square = custom_op(lambda a: a * a, gradient)
    assert gradients(square, 3.0) == (9.0, [6.0])
    assert (grad(grad(square))(3.0), inner[-1]) == (2.0, 4.0)
    assert set(inner) == {4.0}
    x = Value(3.0)
    out = Value(9.0, (x,))

    def step():
        t = Value(2.0)
        (t**2).backward()
        grad(lambda v: v * v)(1.0)
        x.grad += (t.grad - 2.0) * 3.0 * out.grad

    out.backward_fn = step
    for _ in range(order):
        out.backward()
    assert x.grad == 6.0 * order


def test_graph_13_nested_derivative_over_a_closed_over_variable():
    def by_jvp(f):
        return lambda x: jvp(f, (x,), (1.0,))[1]

    def by_vjp(f):
        return lambda x: vjp(f, x)[1](1.0)

    derivatives = [grad, by_jvp, by_vjp, jacobian, lambda f: lambda x: value_and_grad(f)(x)[1]]
    for outer in derivatives:
        for inner in derivatives:
            h = lambda x, inner=inner: x * inner(lambda y: x * y + y)(1.0)  # noqa: E731
            assert outer(h)(3.0) == 7.0
            k = lambda x, inner=inner: x * inner(lambda y: x + y)(1.0)  # noqa: E731
            assert outer(k)(3.0) == 1.0


def test_graph_14_second_derivative_of_a_linear_function():
    assert grad(grad(lambda x: 3 * x + 1))(2.0) == 0.0
    assert hessian(lambda x: 2 * x[0] + 3 * x[1])([1.0, 2.0]) == [[0.0, 0.0], [0.0, 0.0]]
    assert grad(lambda x, y: x, argnums=1)(1.0, 2.0) == 0.0
    assert hvp(lambda x: x[0] - x[1])([1.0, 2.0], [1.0, 1.0]) == [0.0, 0.0]
    assert grad(lambda x: 5.0)(2.0) == 0.0
    assert grad(grad(lambda x: 5.0))(2.0) == 0.0
    assert jacobian(lambda x: [x[0], 1.0])([1.0, 2.0]) == [[1.0, 0.0], [0.0, 0.0]]
    assert jvp(lambda x: 4.0, (1.0,), (1.0,)) == (4.0, 0.0)
    x = Value(2.0)
    (3 * x + 1).backward(create_graph=True)
    assert float(x.grad) == 3.0


def test_graph_16_decorators_with_recursion():
    @enable_grad()
    def bar(depth):
        return bar(depth - 1) if depth else is_grad_enabled()

    with no_grad():
        assert bar(1) is True
        assert is_grad_enabled() is False
    assert is_grad_enabled() is True

    @no_grad()
    def foo(depth):
        assert is_grad_enabled() is False
        with enable_grad():
            return foo(depth - 1) if depth else is_grad_enabled()

    assert foo(3) is True
    assert is_grad_enabled() is True


def test_graph_17_no_grad_around_a_generator():
    @no_grad()
    def steps():
        yield is_grad_enabled()
        yield is_grad_enabled()

    it = steps()
    assert next(it) is False
    assert is_grad_enabled() is True
    assert next(it) is False
    assert is_grad_enabled() is True
    with pytest.raises(OopsError), no_grad():
        raise OopsError
    assert is_grad_enabled() is True

    def by_hand():
        with no_grad():
            yield 1

    it = by_hand()
    next(it)
    assert is_grad_enabled() is False  # documented: the block keeps the mode while the generator is suspended
    it.close()
    assert is_grad_enabled() is True


# ---- ALIAS: data that is written after it was used


def test_alias_01_data_written_between_forward_and_backward():
    x = Value(3.0)
    y = x**2
    x.data = 5.0
    with pytest.raises(pygrad.GraphError, match="written after the node was made"):
        y.backward()
    assert x.grad == 0.0
    z = x + 1
    x.data = 7.0
    z.backward()  # the sum does not need the old number
    assert x.grad == 1.0


def test_alias_06_a_pullback_does_not_see_later_changes():
    a = [3.0]
    y, pull = vjp(lambda x: x[0] ** 2, a)
    a[0] = 5.0
    assert (y, pull(1.0), pull(1.0)) == (9.0, [6.0], [6.0])
    b = np.array([3.0])
    y, pull = vjp(lambda x: x[0] ** 2, b, as_values=True)
    b[0] = 5.0
    assert (pull(1.0).tolist(), pull(1.0).tolist()) == ([6.0], [6.0])
