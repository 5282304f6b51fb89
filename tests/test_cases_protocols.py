"""Cases of the families PROTO, DTYPE and INDEX: operators, the protocols of Python and NumPy, kinds of numbers.

What other tests pin in detail (texts, conversions) is here only as far as a case asks for it. Next: cases.py, which
says what a case is.
"""

import math as stdlib_math
import operator
import warnings
from fractions import Fraction

import numpy as np
import pytest
from cases import chain, gradients, values
from domains import INF, NAN

import pygrad
from pygrad import Value, grad, jacobian, math


def same(a, b):
    """Equal, nan to nan."""
    return a == b or (a != a and b != b)


# ---- PROTO: operators and the Python and NumPy protocols

BINARY = [
    (operator.add, 1.0, 1.0),
    (operator.sub, 1.0, -1.0),
    (operator.mul, 3.0, 2.0),
    (operator.truediv, 1 / 3, -2 / 9),
    (operator.pow, 3.0 * 2.0**2.0, 2.0**3.0 * stdlib_math.log(2.0)),
    (operator.floordiv, 0.0, 0.0),
    (operator.mod, 1.0, 0.0),
]


@pytest.mark.parametrize(("op", "left_slope", "right_slope"), BINARY)
@pytest.mark.parametrize("kind", [float, int, np.float64, np.float32, np.int64, np.int8, np.uint16, Fraction])
def test_proto_01_numbers_on_the_left(op, left_slope, right_slope, kind):
    v = Value(3.0)
    y = op(kind(2), v)
    assert type(y) is Value
    assert y.data == op(2.0, 3.0)
    y.backward()
    assert v.grad == pytest.approx(right_slope, rel=1e-15)
    v = Value(2.0)
    y = op(v, kind(3))
    assert type(y) is Value
    assert y.data == op(2.0, 3.0)
    y.backward()
    assert v.grad == pytest.approx(left_slope, rel=1e-15)


@pytest.mark.parametrize("op", [operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne])
@pytest.mark.parametrize("kind", [float, int, np.float64, np.float32, np.int64, Fraction, Value])
def test_proto_01_comparisons(op, kind):
    for a in (1, 2, 3):
        assert bool(op(kind(a), Value(2.0))) is op(a, 2)
        assert bool(op(Value(2.0), kind(a))) is op(2, a)


@pytest.mark.parametrize(("op", "left_slope", "right_slope"), BINARY)
def test_proto_01_arrays_on_the_left(op, left_slope, right_slope):
    v = Value(3.0)
    y = op(np.array([2.0, 2.0]), v)
    assert y.shape == (2,)
    assert [item.data for item in y] == [op(2.0, 3.0)] * 2
    np.sum(y).backward()
    assert v.grad == pytest.approx(2 * right_slope, rel=1e-15)
    v = Value(2.0)
    y = op(v, np.array([[3.0], [3.0]]))
    assert y.shape == (2, 1)
    np.sum(y).backward()
    assert v.grad == pytest.approx(2 * left_slope, rel=1e-15)


def test_proto_01_matrix_product():
    leaves, array = values(1.0, 2.0)
    (np.array([3.0, 4.0]) @ array).backward()
    assert [leaf.grad for leaf in leaves] == [3.0, 4.0]
    (array @ array).backward()
    assert [leaf.grad for leaf in leaves] == [5.0, 8.0]
    y = np.eye(2) @ array
    assert [item.data for item in y] == [1.0, 2.0]


def test_proto_03_reflected_operators():
    cases = [
        (lambda v: 3 + v, 7.0, 1.0),
        (lambda v: 10 - v, 6.0, -1.0),
        (lambda v: 10 / v, 2.5, -0.625),
        (lambda v: 2**v, 16.0, 16.0 * stdlib_math.log(2.0)),
        (lambda v: sum([v, v, 1]), 9.0, 2.0),
        (lambda v: True + v, 5.0, 1.0),
        (lambda v: Fraction(1, 2) * v, 2.0, 0.5),
        (lambda v: 9 // v, 2.0, 0.0),
        (lambda v: 9 % v, 1.0, -2.0),
        (lambda v: divmod(9, v)[1], 1.0, -2.0),
        (lambda v: 3 * v, 12.0, 3.0),
    ]
    for f, y, slope in cases:
        assert gradients(f, 4.0) == (y, [slope])


def test_proto_05_a_node_in_a_node():
    for wrong in (
        Value(2.0),
        "3",
        None,
        [1],
        (1.0,),
        np.array([1.0, 2.0]),
        np.array(1.0),
        1 + 2j,
        np.complex128(1),
        b"1",
    ):
        with pytest.raises(TypeError, match="Value: data: must be a real number, found "):
            Value(wrong)
        v = Value(1.0)
        with pytest.raises(TypeError, match=r"Value\.data: must be a real number, found "):
            v.data = wrong
        assert v.data == 1.0
        if wrong is not None:  # None clears a gradient, as in PyTorch
            with pytest.raises(TypeError, match=r"Value\.grad: must be a real number, found "):
                v.grad = wrong
    for right, data in ((np.float32(2), 2.0), (3, 3.0), (True, 1.0), (np.int64(-4), -4.0), (Fraction(1, 4), 0.25)):
        assert type(Value(right).data) is float
        assert Value(right).data == data


def test_proto_06_iteration_and_sum():
    v = Value(3.0)
    for consume in (sum, list, iter, tuple, pygrad.sum, max):
        with pytest.raises(TypeError):
            consume(v)
    with pytest.raises(TypeError):
        _a, _b = v
    with pytest.raises(TypeError):
        len(v)
    with pytest.raises(TypeError):
        v[0]
    array = np.array([v, v])
    assert array.dtype == object
    assert array[0] is v
    assert np.array(v).shape == ()
    total = sum([Value(1.0), v])
    total.backward()
    assert v.grad == 1.0


def test_proto_08_membership():
    p, q = Value(0.0), Value(0.0)
    assert p in [q]  # documented: == compares data
    assert [q, p].index(p) == 0
    assert p not in {q}  # the hash is that of identity
    assert len({p, q, p}) == 2


def test_proto_09_float_of_a_node():
    f = lambda x: stdlib_math.exp(x * x)  # noqa: E731
    with pytest.raises(TypeError, match=r"use pygrad\.math in place of math"):
        grad(f)(1.0)
    for convert in (float, np.float64, stdlib_math.sqrt, complex, lambda x: np.array([x], dtype=float)[0]):
        with pytest.raises(TypeError):
            grad(lambda x, convert=convert: x + convert(x))(1.0)
    assert grad(lambda x: math.exp(x * x))(1.0) == pytest.approx(2 * stdlib_math.e)
    v = Value(2.5)
    assert (float(v), int(v), round(v), round(v, 1), complex(v)) == (2.5, 2, 2, 2.5, 2.5 + 0j)
    assert (np.float64(v), stdlib_math.sqrt(Value(4.0))) == (2.5, 2.0)


def test_proto_11_keywords_that_numpy_passes():
    v = Value(2.5)
    for f, data, slope in (
        (np.sum, 2.5, 1.0),
        (np.mean, 2.5, 1.0),
        (np.max, 2.5, 1.0),
        (np.min, 2.5, 1.0),
        (np.prod, 2.5, 1.0),
        (lambda x: np.clip(x, 0, 1), 1.0, 0.0),
        (lambda x: np.clip(x, 0, 3), 2.5, 1.0),
        (lambda x: np.clip(x, a_min=0, a_max=3), 2.5, 1.0),
        (lambda x: np.clip(x, None, 3), 2.5, 1.0),
        (np.round, 2.0, 0.0),
    ):
        assert gradients(f, v.data) == (data, [slope])
    with pytest.raises(TypeError):
        np.clip(v, 0, 1, out=np.zeros(1))
    with pytest.raises(TypeError):
        np.add(v, 1, out=np.zeros(1))
    with pytest.raises(TypeError):
        np.sum(v, out=np.zeros(()))
    leaves, array = values(1.0, 2.0, 4.0)
    assert np.sum(array).data == 7.0
    assert np.mean(array).data == 7.0 / 3.0
    assert np.std(array, ddof=1).data == pytest.approx(np.std([1.0, 2.0, 4.0], ddof=1))
    assert [item.data for item in np.cumsum(array)] == [1.0, 3.0, 7.0]
    assert [float(item) for item in np.clip(array, 0, 2)] == [1.0, 2.0, 2.0]
    assert np.reshape(array, (-1, 1)).shape == (3, 1)
    assert np.transpose(array)[0] is leaves[0]


def test_proto_12_formatting():
    v = Value(2.0)
    assert f"{v:.2f}" == "2.00"
    assert format(v, ".3e") == "2.000e+00"
    assert "%.2f" % v == "2.00"  # noqa: UP031
    assert f"{v:>8.1f}|" == "     2.0|"
    assert str(v) == repr(v) == f"{v}" == "Value(data=2.0, grad=0.0)"
    assert str(Value(NAN)) == "Value(data=nan, grad=0.0)"
    assert str(Value(-INF)) == "Value(data=-inf, grad=0.0)"
    _, y = chain(100_000)
    assert len(repr(y)) < 60


def test_proto_14_ieee_and_no_exception():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for f, expected in (
            (lambda: Value(0.0) ** -1, INF),
            (lambda: 1 / Value(0.0), INF),
            (lambda: 1 / Value(-0.0), -INF),
            (lambda: Value(0.0).log(), -INF),
            (lambda: Value(-1.0).sqrt(), NAN),
            (lambda: Value(-1.0).log(), NAN),
            (lambda: Value(1000.0).exp(), INF),
            (lambda: Value(-8.0) ** (1 / 3), NAN),
            (lambda: Value(0.0) / 0, NAN),
            (lambda: Value(1.0) / 0, INF),
            (lambda: Value(1.0) // 0, INF),
            (lambda: Value(1.0) % 0, NAN),
            (lambda: Value(10.0) ** 1000, INF),
            (lambda: np.log(Value(0.0)), -INF),
            (lambda: math.log(0.0), -INF),
            (lambda: pygrad.exp(1000.0), INF),
        ):
            found = f()
            data = found.data if isinstance(found, Value) else found
            assert type(data) is float
            assert same(data, expected)


# ---- DTYPE: kinds of numbers


@pytest.mark.parametrize("kind", [int, float, np.int64, np.int8, np.uint8, np.float32, np.float64])
def test_dtype_01_integer_inputs(kind):
    slope = grad(lambda x: x**2)(kind(3))
    assert type(slope) is float
    assert slope == 6.0
    assert type(Value(kind(3)).data) is float
    assert gradients(lambda x: x**2, kind(3)) == (9.0, [6.0])
    found = grad(lambda v: pygrad.sum(x**2 for x in v))([1, 2, 3])
    assert found == [2.0, 4.0, 6.0]
    assert all(type(slope) is float for slope in found)
    found = grad(lambda v: pygrad.sum(x**2 for x in v), as_values=True)(np.arange(4).astype(kind))
    assert found.dtype == np.float64
    assert found.tolist() == [0.0, 2.0, 4.0, 6.0]


def test_dtype_01_bools_are_no_numbers_to_differentiate():
    with pytest.raises(TypeError, match="found no number to differentiate"):
        grad(lambda x: x * 2)(True)
    with pytest.raises(TypeError, match="found no number to differentiate"):
        grad(lambda x: x * 2, as_values=True)(np.array([True, False]))


def test_dtype_03_integer_arithmetic_in_a_gradient():
    for ldexp in (pygrad.ldexp, np.ldexp, math.ldexp):
        assert gradients(lambda m: ldexp(m, -1), 1.0) == (0.5, [0.5])  # noqa: B023
        assert gradients(lambda m: ldexp(m, -3), 1.0) == (0.125, [0.125])  # noqa: B023
        assert gradients(lambda m: ldexp(m, np.int64(-3)), 1.0) == (0.125, [0.125])  # noqa: B023
    for n in (-2, np.int64(-2), np.int8(-2), -2.0):
        assert gradients(lambda x: x**n, 2.0) == (0.25, [-0.25])  # noqa: B023
    assert gradients(lambda x: 2**-x, 1) == (0.5, [-0.5 * stdlib_math.log(2.0)])
    assert gradients(lambda x: x * 2**-1, 1) == (0.5, [0.5])


def test_dtype_04_gradients_of_integers_are_no_integers():
    found = grad(lambda x: x[0] * 0.5 - 0.7 * x[1], as_values=True)(np.array([1, 2]))
    assert found.dtype == np.float64
    assert found.tolist() == [0.5, -0.7]
    assert gradients(lambda a, b: a * 0.5 - 0.7 * b, 1, 2)[1] == [0.5, -0.7]
    v = Value(1)
    v.grad = 1
    assert type(v.grad) is float


# ---- INDEX: writing into arrays


def test_index_04_writing_values_into_an_array_of_floats():
    def f(x):
        c = np.zeros(2)
        c[0] = x[0] * x[1]
        c[1] = x[2] ** 2
        return list(c)

    with pytest.raises((TypeError, ValueError)):
        jacobian(f)([3.0, -1.0, 2.0])

    def g(x):
        c = np.zeros(2, dtype=object)
        c[0] = x[0] * x[1]
        c[1] = x[2] ** 2
        return list(c)

    assert jacobian(g)([3.0, -1.0, 2.0]) == [[-1.0, 3.0, 0.0], [0.0, 0.0, 4.0]]
