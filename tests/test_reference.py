"""What only the reference has: floats as IEEE 754 has them, its walk, its rules as they stand.

What it shares with the C core is tested by one body over both.
"""

import gc
import math
from fractions import Fraction
from math import inf, nan

import pytest

from pygrad import reference
from pygrad.reference import OPS, Value, gradients
from pygrad.reference_ops import float_div, float_fma, float_hypot, float_zmul


def same(a, b):
    """Equal to the bit, but for what a nan carries."""
    return (math.isnan(a) and math.isnan(b)) or (a == b and math.copysign(1, a) == math.copysign(1, b))


@pytest.mark.parametrize(
    ("name", "operands", "expected"),
    [
        ("div", (1, 0.0), inf), ("div", (1, -0.0), -inf), ("div", (-1, -0.0), inf), ("div", (-inf, 0.0), -inf),
        ("div", (0, 0.0), nan), ("div", (nan, 0.0), nan), ("div", (1e300, 1e-300), inf), ("reciprocal", (-0.0,), -inf),
        ("exp", (1000,), inf), ("exp", (-1000,), 0.0), ("expm1", (1000,), inf), ("exp2", (2000,), inf),
        ("sinh", (1000,), inf), ("sinh", (-1000,), -inf), ("cosh", (-1000,), inf),
        ("log", (0.0,), -inf), ("log", (-0.0,), -inf), ("log", (-1,), nan), ("log", (inf,), inf), ("log", (nan,), nan),
        ("log2", (0,), -inf), ("log10", (0,), -inf), ("log1p", (-1,), -inf), ("log1p", (-2,), nan),
        ("log1p", (-0.0,), -0.0), ("sqrt", (-0.0,), -0.0), ("sqrt", (-1,), nan), ("sqrt", (-inf,), nan),
        ("sin", (inf,), nan), ("cos", (-inf,), nan), ("tan", (inf,), nan), ("asin", (2,), nan), ("acos", (-2,), nan),
        ("acosh", (0.5,), nan), ("atanh", (1,), inf), ("atanh", (-1,), -inf), ("atanh", (2,), nan),
        ("fmod", (1, 0), nan), ("fmod", (inf, 1), nan), ("fmod", (-4, 2), -0.0), ("fmod", (1, inf), 1.0),
        ("floor", (-0.0,), -0.0), ("floor", (inf,), inf), ("ceil", (-0.5,), -0.0), ("trunc", (-0.5,), -0.0),
        ("round", (-0.5,), -0.0), ("round", (2.5,), 2.0), ("round", (3.5,), 4.0), ("round", (nan,), nan),
        ("floor", (1e300,), 1e300), ("maximum", (nan, 1), nan), ("fmax", (nan, 1), 1.0), ("fmax", (1, nan), 1.0),
        ("clip", (nan, 0, 1), nan), ("sign", (-0.0,), 0.0), ("relu", (nan,), nan), ("relu", (-0.0,), -0.0),
        ("atan2", (-0.0, -1), -math.pi), ("hypot", (inf, nan), inf), ("hypot", (1e200, 1e-200), 1e200),
    ],
)  # fmt: skip
def test_floats_are_ieee(name, operands, expected):
    found = OPS[name](*operands)
    assert type(found) is float
    assert same(found, expected)


def test_hypot():
    assert float_hypot(1.5e308, 1.5e308) == inf
    assert same(float_hypot(-0.0, -0.0), 0.0)
    assert float_hypot(nan, -inf) == inf
    assert math.isnan(float_hypot(nan, 1.0))


def test_division_by_any_nonzero_is_python_s():
    for a in (1.0, -3.7, 1e-320, inf, nan, 0.0, -0.0):
        for b in (2.0, -3.0, 5e-324, inf, -inf, nan):
            assert same(float_div(a, b), a / b)


@pytest.mark.parametrize(
    ("a", "b", "c", "expected"),
    [
        (0.1, 10.0, -1.0, 5.551115123125783e-17),  # rounded once: 0.1 * 10.0 - 1.0 is 0
        (1e200, 1e200, -inf, -inf),  # the product does not overflow first
        (1e200, -1e200, 1.0, -inf),
        (1e300, 1e10, -1e308, inf),
        (1e200, 1e200, nan, nan),
        (inf, 0.0, 1.0, nan),
        (inf, 1.0, -inf, nan),
        (3.0, 2.0, -6.0, 0.0),  # an exact zero is +0
        (-3.0, 2.0, 6.0, 0.0),
        (-0.0, 2.0, -0.0, -0.0),
        (-0.0, 2.0, 0.0, 0.0),
        (1e-200, -1e-200, 0.0, -0.0),  # an underflow keeps its sign
        (5e-324, 0.5, 5e-324, 1e-323),  # a tie among subnormals goes to even
    ],
)
def test_fma(a, b, c, expected):
    assert same(float_fma(a, b, c), expected)


def test_zmul_keeps_zero():
    assert same(float_zmul(-0.0, inf), -0.0)
    assert same(float_zmul(0.0, nan), 0.0)
    assert math.isnan(float_zmul(inf, 0.0))


def test_every_rule_is_there():
    for name, op in OPS.items():
        assert op.name == name
        assert 1 <= len(op.rules) <= 3
        assert getattr(reference, name) is op
        assert callable(getattr(Value, name))
    for spelling, name in reference.ALIASES.items():
        assert spelling not in OPS
        assert getattr(reference, spelling) is OPS[name]


SMOOTH_AT = {"acosh": (1.5,), "where": (1.0, 0.7, 0.3), "clip": (0.4, -1.0, 1.0)}
NOT_SMOOTH = {"sinc_derivative", "ierfcx", "polygamma"}  # in their first operand
STEPS = {"mod", "fmod", "ieee_remainder"}  # the second operand's gradient is piecewise
NO_DERIVATIVE = {"frozen"}


@pytest.mark.parametrize("name", sorted(set(OPS) - NOT_SMOOTH - STEPS - NO_DERIVATIVE))
def test_rules_on_values_agree_with_rules_on_floats_and_with_differences(name):
    op = OPS[name]
    point = SMOOTH_AT.get(name, (0.55, 0.35, 0.8)[: len(op.rules)])
    values = [Value(x) for x in point]
    y = op(*values)
    first = gradients(y, values)
    again = gradients(y, values, create_graph=True)
    assert [g.data for g in again] == first
    for i, x in enumerate(point):
        h = 1e-6

        def moved(by, i=i, x=x):
            return [x + by if k == i else other for k, other in enumerate(point)]

        assert first[i] == pytest.approx((op(*moved(h)) - op(*moved(-h))) / (2 * h), abs=1e-7)
        for j, second in enumerate(gradients(again[i], values)):
            there = [Value(x + h if k == j else x) for k, x in enumerate(point)]
            back = [Value(x - h if k == j else x) for k, x in enumerate(point)]
            slope = (gradients(op(*there), there)[i] - gradients(op(*back), back)[i]) / (2 * h)
            assert second == pytest.approx(slope, abs=1e-6, rel=1e-6)


def test_order_of_the_walk():
    a, b = Value(2.0), Value(3.0)
    left, right = a * b, b + 1
    y = left - right
    assert reference.topological_order(y) == [a, b, left, right, y]
    assert left.parents == (a, b)
    assert right.parents == (b,)
    assert (a * a).parents == (a, a)
    assert (y.op, left.op, a.op) == ("sub", "mul", "leaf")


def test_gradients_leaves_every_grad_alone():
    x = Value(3.0)
    square = x * x
    y = square * x
    y.backward()
    before = (x.grad, square.grad, y.grad)
    stranger = Value(1.0)
    assert gradients(y, [square, x, stranger, y]) == [3.0, 27.0, 0.0, 1.0]
    assert (x.grad, square.grad, y.grad) == before
    assert gradients(Value(1.0, requires_grad=False), [x]) == [0.0]


def test_derivatives_of_every_order():
    x = Value(0.7)
    y = x**5
    for expected in (5 * 0.7**4, 20 * 0.7**3, 60 * 0.7**2, 120 * 0.7, 120.0, 0.0, 0.0):
        (y,) = gradients(y, [x], create_graph=True)
        assert y.data == pytest.approx(expected)


def test_create_graph_leaves_values_in_leaves_and_floats_inside():
    x = Value(2.0)
    square = x * x
    y = square * x
    y.backward(create_graph=True)
    slope = x.grad
    assert isinstance(slope, Value)
    assert slope.data == 12.0
    assert type(square.grad) is float
    x.zero_grad()
    slope.backward()
    assert x.grad == 12.0


def test_backward_fn_of_a_node_is_its_step():
    a, b = Value(2.0), Value(5.0)
    y = a * b
    assert a.backward_fn is None
    y.grad = 3.0
    y.backward_fn()
    assert (a.grad, b.grad) == (15.0, 6.0)


def test_backward_fn_of_the_user():
    a, b = Value(2.0), Value(5.0)
    out = Value(a.data * b.data, (a, b))
    with pytest.raises(RuntimeError, match="has no backward_fn"):
        (out + 1).backward()

    def step():
        a.grad += b.data * out.grad
        b.grad += a.data * out.grad

    out.backward_fn = step
    y = out * 2 + a
    y.backward()
    assert (a.grad, b.grad) == (11.0, 4.0)
    with pytest.raises(RuntimeError, match="differentiated again"):
        y.backward(create_graph=True)


def test_released_graph():
    x = Value(2.0)
    square = x * x
    (square + 1).backward(retain_graph=False)
    assert x.grad == 4.0
    for y in (square, square * 3):
        with pytest.raises(RuntimeError, match="retain_graph=True"):
            y.backward()
    assert x.grad == 4.0


def test_constants_are_inline():
    x, frozen = Value(2.0), Value(3.0, requires_grad=False)
    y = frozen * x
    assert y.parents == (x,)
    assert (frozen * 2).parents == ()
    assert not (frozen * 2).requires_grad
    y.backward()
    assert (x.grad, frozen.grad) == (3.0, 0.0)
    with pytest.raises(RuntimeError, match="does not require a gradient"):
        (frozen + 1).backward()


def test_sum_and_dot_add_from_left_to_right():
    numbers = [1e16, 1.0, -1e16, 1.0]
    assert reference.sum(numbers) == 1.0  # the first 1.0 is lost
    values = [Value(x) for x in numbers]
    total = reference.sum(values)
    assert (total.data, total.op, total.parents) == (1.0, "sum", tuple(values))
    same_one = Value(3.0)
    y = reference.dot([same_one, 2.0], [same_one, same_one])
    assert (y.data, y.op, y.parents) == (15.0, "dot", (same_one,) * 3)
    y.backward()
    assert same_one.grad == 8.0
    with pytest.raises(ValueError, match="equally long"):
        reference.dot([1.0], [1.0, 2.0])


def test_what_a_number_is():
    assert Value(Fraction(1, 4)).data == 0.25
    assert Value(True).data == 1.0
    for wrong in ("x", None, [1.0], 1j, Value(1.0)):
        with pytest.raises(TypeError, match="Value: data: must be a real number, found"):
            Value(wrong)
    with pytest.raises(OverflowError):
        Value(10**400)
    with pytest.raises(TypeError, match="tanh: operand 0 must be a Value or a real number, found 'x' of type str"):
        reference.tanh("x")
    with pytest.raises(TypeError):
        Value(1.0) + "x"
    with pytest.raises(TypeError):
        pow(Value(1.0), 2, 3)


def test_defaults():
    assert reference.clip(5.0, max=2) == 2.0
    assert reference.clip(5.0, None, 3) == 3.0
    assert reference.clip(-5.0, -1) == -1.0
    assert Value(-2.0).leaky_relu().data == -0.02
    assert reference.elu(-1.0, alpha=2.0) == 2.0 * math.expm1(-1.0)
    with pytest.raises(TypeError, match="clip: operand 'min' is given twice"):
        reference.clip(1.0, 2.0, min=3.0)
    with pytest.raises(TypeError, match="unknown keyword 'alpha'"):
        reference.clip(1.0, alpha=3.0)
    with pytest.raises(TypeError, match="tanh: needs 1 operand, found 2"):
        reference.tanh(1.0, 2.0)


def test_deep_graphs_need_no_deep_stack():
    x = Value(1.0)
    y = x
    for _ in range(200_000):
        y = y * 1.0
    y.backward()
    assert x.grad == 1.0
    y.backward(create_graph=True)
    assert repr(y) == "Value(data=1.0, grad=1.0)"
    del y
    gc.collect()
