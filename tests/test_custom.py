"""Ops of the user's own: custom_op to any order, in both modes, its constants and its errors; backward_fn beside it."""

import gc
import math as stdlib_math
import pickle
import weakref

import numpy as np
import pytest

import pygrad
from pygrad import (
    GraphError,
    Value,
    custom_op,
    grad,
    gradcheck,
    hessian,
    hvp,
    jacobian,
    jvp,
    math,
    no_grad,
    value_and_grad,
    vjp,
)

logistic = custom_op(lambda a: 1 / (1 + stdlib_math.exp(-a)), lambda g, y, a: g * y * (1 - y), name="logistic")
product = custom_op(lambda a, b: a * b, lambda g, y, a, b: (g * b, g * a), name="product")
sinh = custom_op(stdlib_math.sinh, lambda g, y, a: g * stdlib_math.cosh(a), name="sinh_once")
smooth = custom_op(stdlib_math.sinh, lambda g, y, a: g * math.cosh(a), name="sinh_smooth")


def test_first_order():
    x = Value(0.0)
    y = logistic(x)
    assert (y.data, y.op, y.parents, y.requires_grad) == (0.5, "logistic", (x,), True)
    y.backward()
    assert x.grad == 0.25
    assert grad(logistic)(0.0) == 0.25
    assert value_and_grad(lambda x: 3 * logistic(2 * x))(0.0) == (1.5, 1.5)


def test_higher_orders():
    s = 1 / (1 + stdlib_math.exp(-1.0))
    first, second = s * (1 - s), s * (1 - s) * (1 - 2 * s)
    third = first * (1 - 2 * s) ** 2 - 2 * first * first
    assert grad(logistic)(1.0) == pytest.approx(first, rel=1e-15)
    assert grad(grad(logistic))(1.0) == pytest.approx(second, rel=1e-14)
    assert grad(grad(grad(logistic)))(1.0) == pytest.approx(third, rel=1e-13)
    assert grad(grad(grad(grad(smooth))))(0.7) == pytest.approx(stdlib_math.sinh(0.7), rel=1e-15)
    x = Value(1.0)
    logistic(x).backward(create_graph=True)
    slope = x.grad
    x.zero_grad()
    slope.backward()
    assert x.grad == pytest.approx(second, rel=1e-14)


def test_several_operands():
    x, y = Value(2.0), Value(3.0)
    product(x, y).backward()
    assert (x.grad, y.grad) == (3.0, 2.0)
    x = Value(2.0)
    product(x, x).backward()
    assert x.grad == 4.0
    assert hessian(lambda p: product(p[0], p[1]) * p[0])([2.0, 3.0]) == [[6.0, 4.0], [4.0, 0.0]]
    mean = custom_op(lambda *a: sum(a) / len(a), lambda g, y, *a: [g / len(a)] * len(a), name="mean")
    assert grad(lambda v: mean(*v))([1.0, 2.0, 3.0, 6.0]) == [0.25] * 4


def test_constants():
    x = Value(2.0)
    for y, slope in ((product(x, 5.0), 5.0), (product(5, x), 5.0), (product(np.float64(5), x), 5.0)):
        assert y.parents == (x,)
        x.zero_grad()
        y.backward()
        assert x.grad == slope
    frozen = Value(7.0, requires_grad=False)
    y = product(x, frozen)
    assert y.parents == (x,)
    assert not product(frozen, 2.0).requires_grad
    assert type(product(2.0, 3.0)) is float
    assert product(2.0, 3.0) == 6.0
    with no_grad():
        assert not product(x, x).requires_grad


def test_none_is_zero():
    half = custom_op(lambda a, b: a * b, lambda g, y, a, b: (g * b, None), name="half")
    x, y = Value(2.0), Value(3.0)
    half(x, y).backward()
    assert (x.grad, y.grad) == (3.0, 0.0)
    assert grad(half, argnums=(0, 1))(2.0, 3.0) == (3.0, 0.0)
    assert grad(lambda x: grad(half)(x, 3.0))(2.0) == 0.0
    assert jvp(half, (2.0, 3.0), (1.0, 1.0)) == (6.0, 3.0)
    nothing = custom_op(lambda a: a, lambda g, y, a: None)
    assert grad(nothing)(1.0) == 0.0
    assert grad(grad(nothing))(1.0) == 0.0


def test_forward_mode():
    assert jvp(product, (2.0, 3.0), (1.0, 10.0)) == (6.0, 23.0)
    assert jvp(lambda x: product(x, x), (3.0,), (2.0,)) == (9.0, 12.0)
    assert jvp(grad(lambda x: product(x, product(x, x))), (2.0,), (1.0,)) == (12.0, 12.0)
    assert grad(lambda x: jvp(lambda y: product(y, product(y, y)), (x,), (1.0,))[1])(2.0) == 12.0
    assert jvp(sinh, (0.5,), (2.0,))[1] == 2.0 * stdlib_math.cosh(0.5)
    assert jacobian(lambda x: [sinh(x), product(x, 2.0), x])(0.5) == [stdlib_math.cosh(0.5), 2.0, 1.0]
    assert hvp(lambda x: product(x, product(x, x)))(2.0, 1.0) == 12.0
    assert vjp(product, 2.0, 3.0)[1](2.0) == (6.0, 4.0)


def test_a_gradient_in_floats_serves_first_derivatives_only():
    assert grad(sinh)(0.5) == stdlib_math.cosh(0.5)
    with pytest.raises(TypeError, match=r"use pygrad\.math in place of math"):
        grad(grad(sinh))(0.5)
    assert float(Value(1.0)) == 1.0  # and leaves nothing switched


def test_a_forward_mode_in_floats_within_a_transform():
    """An op through which nothing goes that depends on t may use floats and math; what does depend on t is kept."""
    slope = stdlib_math.cosh(1.0)
    assert grad(lambda t: t * jvp(sinh, (1.0,), (1.0,))[1])(2.0) == slope
    assert grad(lambda t: t * jacobian(lambda x: [sinh(x), sinh(x)])(1.0)[0])(2.0) == slope
    assert grad(lambda t: jvp(product, (2.0, 5.0), (t, 0.0))[1])(3.0) == 5.0
    with pytest.raises(TypeError, match=r"use pygrad\.math in place of math"):
        grad(lambda t: jvp(sinh, (t,), (1.0,))[1])(2.0)


def test_gradcheck_passes():
    assert gradcheck(logistic, 0.3)
    assert gradcheck(product, 2.0, 3.0)
    assert gradcheck(grad(logistic), 0.3)


@pytest.mark.parametrize("found", [(1.0,), (1.0, 2.0, 3.0), (), 1.0, []])
def test_wrong_count(found):
    op = custom_op(lambda a, b: a + b, lambda g, y, a, b: found, name="bad")
    count = len(found) if isinstance(found, (tuple, list)) else 1
    text = f"bad: gradient must give one number an operand, found {count} for 2"
    with pytest.raises(ValueError, match=text):
        op(Value(1.0), 2.0).backward()
    with pytest.raises(ValueError, match=text):
        grad(grad(op))(1.0, 2.0)
    with pytest.raises(ValueError, match=text):
        jvp(op, (1.0, 2.0), (1.0, 1.0))


@pytest.mark.parametrize("found", ["text", 1j, object(), [[1.0]], np.ones(2), 10**400])
def test_wrong_kind(found):
    op = custom_op(lambda a: a, lambda g, y, a: [found], name="bad")
    for run in (lambda: op(Value(1.0)).backward(), lambda: grad(grad(op))(1.0), lambda: jvp(op, (1.0,), (1.0,))):
        with pytest.raises((TypeError, OverflowError), match=r"bad: gradient: must be a real number|too large"):
            run()


def test_a_gradient_may_be_any_real_number():
    for found in (1, True, np.float32(1), np.int64(1)):
        op = custom_op(lambda a: a, lambda g, y, a, found=found: found)
        x = Value(3.0)
        op(x).backward()
        assert (x.grad, type(x.grad)) == (1.0, float)
        assert grad(lambda v: op(v) * v)(3.0) == 3.0 + 1.0  # noqa: B023


@pytest.mark.parametrize("wrong", ["text", None, 1j, [1.0], np.ones(1)])
def test_a_value_that_is_no_number(wrong):
    op = custom_op(lambda a: wrong, lambda g, y, a: g, name="bad")
    with pytest.raises(TypeError, match=r"^bad: must be a real number, found "):
        op(Value(1.0))


def test_a_value_that_is_a_node():
    w = Value(2.0)
    op = custom_op(lambda a: w * a, lambda g, y, a: g, name="bad")
    with pytest.raises(TypeError, match=r"^bad: the value must be computed from floats and be one, found Value\("):
        op(Value(1.0))


@pytest.mark.parametrize("wrong", ["text", None, 1j, [1.0]])
def test_an_operand_that_is_no_number(wrong):
    op = custom_op(lambda a, b: 1.0, lambda g, y, a, b: (g, g), name="bad")
    with pytest.raises(TypeError, match=r"^bad: operand 1 must be a Value or a real number, found .* of type "):
        op(Value(1.0), wrong)


def test_usage_errors():
    with pytest.raises(TypeError, match="custom_op: value must be callable, found 1"):
        custom_op(1, lambda g, y, a: g)
    with pytest.raises(TypeError, match="custom_op: gradient must be callable, found None"):
        custom_op(abs, None)


class OopsError(Exception):
    pass


def test_an_exception_in_the_value():
    def fail(a):
        raise OopsError("in value")

    op = custom_op(fail, lambda g, y, a: g)
    with pytest.raises(OopsError, match="in value"):
        op(Value(1.0))
    with pytest.raises(OopsError):
        grad(op)(1.0)
    assert float(Value(1.0)) == 1.0


def test_an_exception_in_the_gradient():
    def fail(g, y, a):
        raise OopsError("in gradient")

    op = custom_op(lambda a: a, fail, name="fails")
    x = Value(1.0)
    y = op(x) * 2
    for run in (
        lambda: y.backward(),
        lambda: y.backward(create_graph=True),
        lambda: y.backward(retain_graph=False),
        lambda: grad(op)(1.0),
        lambda: grad(grad(op))(1.0),
        lambda: jvp(op, (1.0,), (1.0,)),
        lambda: jacobian(lambda v: [op(v), op(v)])(1.0),
    ):
        with pytest.raises(OopsError, match="in gradient"):
            run()
        z = Value(3.0)
        (z * z).backward()
        assert z.grad == 6.0
        assert float(z) == 3.0
        assert pygrad.is_grad_enabled()


def test_names():
    def named(a):
        """What it does."""
        return a

    op = custom_op(named, lambda g, y, a: g)
    assert op.__name__ == "named"
    assert op.__doc__ == "What it does."
    assert op.__module__ == __name__
    assert repr(op) == "<custom op named>"
    assert op(Value(1.0)).op == "named"
    assert custom_op(named, lambda g, y, a: g, name="other").__name__ == "other"


def test_an_op_pickles_by_name():
    assert pickle.loads(pickle.dumps(logistic)) is logistic
    y = pickle.loads(pickle.dumps(logistic(Value(0.0))))
    y.backward()
    assert (y.data, y.parents[0].grad) == (0.5, 0.25)
    op = custom_op(stdlib_math.sqrt, product.value, name="no global")
    with pytest.raises((pickle.PicklingError, AttributeError)):
        pickle.dumps(op)
    op = custom_op(stdlib_math.sqrt, stdlib_math.hypot, name="no global")
    copy = pickle.loads(pickle.dumps(op))
    assert (copy.value, copy.gradient, copy.__name__) == (stdlib_math.sqrt, stdlib_math.hypot, "no global")


def test_straight_through_rounding():
    through = custom_op(lambda a: float(round(a)), lambda g, y, a: g, name="round")
    x = Value(2.6)
    y = through(x) * x
    y.backward()
    assert (y.data, x.grad) == (3.0 * 2.6, 3.0 + 2.6)
    assert str(pygrad.explain(through(x), wrt=x)).splitlines()[1].endswith("backward_fn = 1")


def test_keeping_what_forward_computed():
    saved = {}

    def value(a):
        saved["exp"] = stdlib_math.exp(a)
        return saved["exp"] - 1

    op = custom_op(value, lambda g, y, a: g * (y + 1))
    assert grad(op)(0.5) == pytest.approx(stdlib_math.exp(0.5), rel=1e-15)


def test_a_write_after_forward_is_noticed():
    x = Value(1.0)
    y = logistic(x)
    x.data = 5.0
    with pytest.raises(GraphError, match="written after the node was made"):
        y.backward()


def test_backward_fn():
    x, w = Value(0.5), Value(3.0)
    out = Value(stdlib_math.sinh(x.data), (x,))

    def step():
        x.grad += stdlib_math.cosh(x.data) * out.grad

    out.backward_fn = step
    assert out.backward_fn is step
    y = out * w
    for times in (1, 2):
        y.backward()
        assert x.grad == times * (3.0 * stdlib_math.cosh(0.5))
        assert w.grad == times * stdlib_math.sinh(0.5)
    assert (out.op, out.parents, out.grad) == ("leaf", (x,), 3.0)
    with pytest.raises(GraphError, match="cannot be differentiated again"):
        y.backward(create_graph=True)


def test_backward_fn_of_other_nodes():
    x = Value(3.0)
    y = x * x
    y.grad = 2.0
    y.backward_fn()
    assert x.grad == 12.0
    assert x.backward_fn is None


# ---- in programs


def ops_of_each_other():
    sine = custom_op(stdlib_math.sin, lambda g, y, a: g * cosine(a), name="sine")
    cosine = custom_op(stdlib_math.cos, lambda g, y, a: -g * sine(a), name="cosine")
    return sine


def op_of_itself():
    exp = custom_op(stdlib_math.exp, lambda g, y, a: g * exp(a), name="exp")
    return exp


def op_on_floats():
    exp = custom_op(stdlib_math.exp, lambda g, y, a: g * exp(float(a)), name="exp")
    return exp


@pytest.mark.parametrize("make", [ops_of_each_other, op_of_itself])
def test_a_gradient_may_call_its_op_again(make):
    op = make()
    found, wanted = pygrad.compile(lambda x: op(x)), lambda x: op(x)
    for _ in range(5):
        found, wanted = pygrad.grad(found), pygrad.grad(wanted)
        assert found(0.7) == pytest.approx(wanted(0.7), rel=1e-14)


@pytest.mark.parametrize("make", [ops_of_each_other, op_of_itself, op_on_floats])
def test_an_op_is_freed_with_the_programs_that_call_it(make):
    op = make()
    reference = weakref.ref(op)
    fast = pygrad.grad(pygrad.compile(lambda x, op=op: op(x)))
    assert fast(0.5) > 0
    del op, fast
    for _ in range(2):  # first the compiled function, whose programs gc does not see into, then the op
        gc.collect()
    assert reference() is None
