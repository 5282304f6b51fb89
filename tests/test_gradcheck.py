"""gradcheck passes what is right and fails what is wrong, and says where. The planted gradients test the tester."""

import dataclasses
import math as stdlib_math
from typing import NamedTuple

import numpy as np
import pytest

import pygrad
from pygrad import GradcheckError, Value, custom_op, grad, gradcheck, math, no_grad

wrong_square = custom_op(lambda a: a * a, lambda g, y, a: 3 * a * g, name="wrong_square")
right_square = custom_op(lambda a: a * a, lambda g, y, a: 2 * a * g, name="right_square")
wrong_sinh = custom_op(stdlib_math.sinh, lambda g, y, a: -g * stdlib_math.cosh(a), name="wrong_sinh")


class Point(NamedTuple):
    x: float
    y: float


@dataclasses.dataclass
class Body:
    mass: float
    place: list


@pytest.mark.parametrize("method", ["auto", "central"])
@pytest.mark.parametrize(
    ("f", "args"),
    [
        (lambda x, y: x * y**2 + x / y, (2.0, 3.0)),
        (lambda x: math.sin(x) * math.exp(-x), (0.7,)),
        (lambda x: pygrad.lgamma(x) + pygrad.erf(x), (2.5,)),
        (abs, (-2.0,)),
        (lambda x: abs(x) * x, (-2.0,)),
        (lambda x: x if x > 0 else -x, (-2.0,)),
        (lambda x: 5.0, (1.0,)),
        (right_square, (-3.0,)),
        (lambda p: [p["a"] * p["b"][0], p["b"][1]], ({"a": 2.0, "b": (3.0, 4)},)),
        (lambda p: Point(p.x * p.y, p.x), (Point(2.0, 3.0),)),
        (lambda b: b.mass * b.place[0] * b.place[1], (Body(2.0, [3.0, 4.0]),)),
        (lambda x: Body(x * x, [x]), (3.0,)),
        (lambda x: {"s": x[0] * x[1], "t": [x[0]]}, (np.array([2.0, 3.0]),)),
        (lambda x, mode: x**2 if mode == "square" else x, (3.0, "square")),
        (grad(lambda x: x**5), (1.5,)),
        (lambda x: grad(pygrad.sin)(x), (0.3,)),
    ],
)
def test_right_gradients_pass(f, args, method):
    assert gradcheck(f, *args, method=method) is True


@pytest.mark.parametrize("method", ["auto", "central"])
@pytest.mark.parametrize(
    ("f", "args"),
    [
        (wrong_square, (2.0,)),
        (lambda x: wrong_square(x) + x, (2.0,)),
        (wrong_sinh, (0.5,)),
        (lambda x: x * pygrad.stop_gradient(x), (2.0,)),
        (lambda x: x.data * 2 if isinstance(x, Value) else x * 2, (2.0,)),
        (custom_op(abs, lambda g, y, a: 0.0), (-2.0,)),  # the complex step would agree with it
        (custom_op(lambda a: a, lambda g, y, a: float("nan")), (1.0,)),
        (custom_op(lambda a: a, lambda g, y, a: float("inf")), (1.0,)),
        (custom_op(lambda a: a, lambda g, y, a: None), (1.0,)),
        (custom_op(lambda a, b: a * b, lambda g, y, a, b: (g * a, g * b)), (2.0, 3.0)),  # swapped
    ],
)
def test_wrong_gradients_fail(f, args, method):
    with pytest.raises(GradcheckError):
        gradcheck(f, *args, method=method)
    assert gradcheck(f, *args, method=method, raise_exception=False) is False


def test_a_slightly_wrong_gradient_fails():
    nearly = custom_op(lambda a: a * a, lambda g, y, a: 2 * a * g * (1 + 1e-4))
    assert gradcheck(nearly, 3.0, raise_exception=False) is False
    assert gradcheck(nearly, 3.0, rtol=1e-3) is True
    assert gradcheck(nearly, 3.0, rtol=0.0, atol=1e-3) is True
    assert gradcheck(nearly, 3.0, rtol=0.0, atol=1e-5, raise_exception=False) is False


def test_the_message_shows_the_worst_entry():
    def f(x, y):
        return [x + 0 * y, wrong_square(x) + 2 * y, wrong_square(y)]

    with pytest.raises(GradcheckError) as caught:
        gradcheck(f, 1.0, 100.0, method="central")
    text = str(caught.value)
    assert text.startswith("gradcheck: the derivative of result 2 by argument number 1 is 300.0, expected ")
    assert "expected 200.0" in text or "expected 199.9" in text
    assert text.endswith("by central differences: off by 100 more than rtol=1e-05, atol=1e-07 allow")


def test_the_message_names_the_method():
    f = lambda x: x * x * pygrad.stop_gradient(1.0) if isinstance(x, complex) else pygrad.stop_gradient(x) * x  # noqa: E731
    with pytest.raises(GradcheckError, match=r"is 3\.0, expected 6\.0 by complex step: off by 3 more than rtol"):
        gradcheck(f, 3.0)
    with pytest.raises(
        GradcheckError, match=r"result 0 by argument number 0 is 6\.0, expected .* by central differences"
    ):
        gradcheck(wrong_square, 2.0, method="central")


def test_gradcheck_error_is_an_assertion_error():
    with pytest.raises(AssertionError):
        gradcheck(wrong_square, 2.0)


def test_the_complex_step_is_exact_to_rounding():
    f = lambda x: x**3 / (1 + x)  # noqa: E731
    assert gradcheck(f, 1.7, method="complex", rtol=1e-14, atol=0.0) is True
    assert gradcheck(f, 1.7, method="auto", rtol=1e-14, atol=0.0) is True
    assert gradcheck(f, 1.7, method="central", rtol=1e-14, atol=0.0, raise_exception=False) is False
    assert gradcheck(lambda x: [x[0] * x[1], x[0] ** 2], [1e5, 1e-5], method="complex", rtol=1e-14) is True


def test_the_complex_step_falls_back():
    seen = []

    def f(x):
        seen.append(type(x))
        return math.tanh(x)

    assert gradcheck(f, 0.5) is True
    assert complex in seen
    assert float in seen


@pytest.mark.parametrize("f", [math.sin, lambda x: x if x > 0 else -x, lambda x: float(x) * 2])
def test_a_complex_step_that_does_not_apply(f):
    with pytest.raises(TypeError, match=r"gradcheck: the complex step does not apply to this function: |float"):
        gradcheck(f, 0.5, method="complex")


def test_steps():
    assert gradcheck(math.sin, 0.5, method="central", step=1e-4) is True
    assert gradcheck(math.sin, 0.5, method="central", step=0.5, raise_exception=False) is False
    assert gradcheck(lambda x: x**3, 0.5, method="complex", step=1e-20, rtol=1e-14) is True


def test_scales():
    for x in (1e-8, 1e-3, 1e3, 1e8, -1e6):
        assert gradcheck(lambda v: v * v + v, x) is True
        assert gradcheck(lambda v: math.sqrt(1 + v * v), x) is True
        assert gradcheck(lambda v: math.log(abs(v)), x, step=1e-6 * min(1.0, abs(x))) is True
    assert gradcheck(math.log, 1e-8) is True  # a step that leaves the domain is made smaller
    assert gradcheck(math.sqrt, 1e-8) is True


@pytest.mark.parametrize("method", ["auto", "central"])
def test_nan_agrees_with_nothing(method):
    f = lambda x: [x, x * float("nan")]  # noqa: E731
    with pytest.raises(GradcheckError) as caught:
        gradcheck(f, 1.0, method=method)
    assert str(caught.value) == (
        "gradcheck: the derivative of result 1 by argument number 0 is nan, expected nan by central differences: nan "
        "agrees with nothing, nan included; check at a point where the function and its derivative are numbers"
    )
    assert gradcheck(f, 1.0, method=method, raise_exception=False) is False
    planted = custom_op(lambda a: a, lambda g, y, a: float("nan"))
    with pytest.raises(GradcheckError, match=r"is nan, expected (1\.0|0\.9+\d*) by .*: nan agrees with nothing"):
        gradcheck(planted, 1.0, method=method)


def test_inf_agrees_with_inf():
    assert gradcheck(lambda x: x * float("inf"), 1.0) is True
    assert gradcheck(lambda x: x * float("inf"), 1.0, method="central", raise_exception=False) is False  # inf - inf


def test_what_is_left_as_it_was():
    w = Value(2.0)
    w.grad = 5.0
    assert gradcheck(lambda x: w * x, 3.0) is True
    assert w.grad == 5.0
    given = {"a": [1.0, 2.0]}
    assert gradcheck(lambda p: p["a"][0] * p["a"][1], given) is True
    assert given == {"a": [1.0, 2.0]}
    assert gradcheck(lambda x: x * x, Value(3.0)) is True
    with no_grad():
        assert gradcheck(lambda x: x * x, 3.0) is True


def test_usage_errors():
    with pytest.raises(ValueError, match=r"gradcheck: method must be 'auto', 'central' or 'complex', found 'forward'"):
        gradcheck(math.sin, 1.0, method="forward")
    with pytest.raises(TypeError, match="gradcheck: found no number to differentiate in the arguments"):
        gradcheck(lambda x: 1.0, "text")
    with pytest.raises(TypeError, match="gradcheck: found no number in what the function returned"):
        gradcheck(lambda x: [], 1.0)
    with pytest.raises(TypeError, match="gradcheck: found no number in what the function returned"):
        gradcheck(lambda x: None, 1.0)
