"""NumPy's functions and operators on Values and on object arrays of them: what works, and what is refused and how."""

import decimal
import operator
from fractions import Fraction

import numpy as np
import pytest

import pygrad
from pygrad import Value, grad, gradcheck
from pygrad.ops import ALIASES, FUNCTIONS, TABLE


def array_of(*numbers):
    leaves = [Value(number) for number in numbers]
    array = np.empty(len(leaves), dtype=object)
    array[:] = leaves
    return leaves, array


PREDICATES = {  # they give bools, though some have a row in the table
    "equal", "not_equal", "less", "less_equal", "greater", "greater_equal", "isnan", "isinf", "isfinite", "signbit",
    "logical_and", "logical_or", "logical_xor", "logical_not",
}  # fmt: skip


def ufuncs():
    """NumPy's ufuncs that a Value answers with a Value."""
    found = {name: getattr(np, name) for name in FUNCTIONS if isinstance(getattr(np, name, None), np.ufunc)}
    return {name: found[name] for name in sorted(found) if name not in PREDICATES}


UNARY = [f for f in ufuncs().values() if f.nin == 1]
BINARY = [f for f in ufuncs().values() if f.nin == 2]


def sample(ufunc, k=0):
    name = ALIASES.get(ufunc.__name__, ufunc.__name__)
    low, high = {"acosh": (1.2, 3.0), "atanh": (-0.9, 0.9), "asin": (-0.9, 0.9), "acos": (-0.9, 0.9)}.get(
        name, (0.3, 2.2)
    )
    return low + (high - low) * (0.37 + 0.31 * k)


def op_name(ufunc):
    return ALIASES.get(ufunc.__name__, ufunc.__name__)


# ---- ufuncs on a Value


def test_which_ufuncs_there_are():
    """Every ufunc of real numbers is answered, but for those that have no derivative or look at bits and truths."""
    left_out = {
        "bitwise_and", "bitwise_count", "bitwise_or", "bitwise_xor", "invert", "left_shift", "right_shift", "conjugate",
        "isnat", "gcd", "lcm", "frexp", "modf", "nextafter", "spacing", "heaviside", "matmul", "matvec", "vecdot",
        "vecmat",
    }  # fmt: skip
    everything = {getattr(np, name).__name__ for name in dir(np) if isinstance(getattr(np, name), np.ufunc)}
    answered = {f.__name__ for f in ufuncs().values()}
    assert everything - left_out - PREDICATES - answered == {"divmod"}


@pytest.mark.parametrize("ufunc", UNARY, ids=lambda f: f.__name__)
def test_unary(ufunc):
    x = Value(sample(ufunc))
    y = ufunc(x)
    assert type(y) is Value
    assert y.op == op_name(ufunc)
    assert y.data == FUNCTIONS[ufunc.__name__](x.data)
    assert y.data == pytest.approx(float(ufunc(x.data)), rel=4e-16)
    y.backward()
    assert x.grad == grad(FUNCTIONS[ufunc.__name__])(x.data)
    if ufunc not in (np.sign, np.floor, np.ceil, np.trunc, np.rint):
        assert gradcheck(ufunc, x.data)


@pytest.mark.parametrize("ufunc", BINARY, ids=lambda f: f.__name__)
def test_binary(ufunc):
    a, b = sample(ufunc), sample(ufunc, 1)
    if ufunc is np.ldexp:
        b = 2.0
    y = ufunc(Value(a), Value(b))
    assert y.op == op_name(ufunc)
    assert y.data == FUNCTIONS[ufunc.__name__](a, b)
    if ufunc is not np.ldexp:
        assert y.data == pytest.approx(float(ufunc(a, b)), rel=4e-16)
        assert gradcheck(ufunc, a, b)
    for left, right in ((Value(a), b), (a, Value(b)), (np.float64(a), Value(b)), (Value(a), np.float64(b))):
        assert type(ufunc(left, right)) is Value
        assert ufunc(left, right).data == y.data


def test_divmod():
    q, r = np.divmod(Value(7.5), 2)
    assert (q.data, r.data, q.op, r.op) == (3.0, 1.5, "floordiv", "mod")
    q, r = divmod(7.5, Value(2.0))
    assert (q.data, r.data) == (3.0, 1.5)
    q, r = divmod(np.float64(7.5), Value(2.0))
    assert (q.data, r.data) == (3.0, 1.5)


@pytest.mark.parametrize(
    ("ufunc", "expected"),
    [(np.isnan, False), (np.isinf, False), (np.isfinite, True), (np.signbit, True), (np.logical_not, False)],
)
def test_predicates(ufunc, expected):
    found = ufunc(Value(-2.0))
    assert found is np.bool_(expected) or found is expected
    assert ufunc(Value(float("nan"))) == ufunc(float("nan"))
    assert ufunc(Value(float("-inf"))) == ufunc(float("-inf"))


@pytest.mark.parametrize(
    "ufunc",
    [np.equal, np.not_equal, np.less, np.less_equal, np.greater, np.greater_equal, np.logical_and, np.logical_or,
     np.logical_xor],
)  # fmt: skip
def test_comparisons(ufunc):
    for a in (0.0, 1.0, 2.0, float("nan")):
        for b in (0.0, 2.0):
            expected = ufunc(a, b)
            assert ufunc(Value(a), Value(b)) == expected
            assert ufunc(Value(a), b) == expected
            assert ufunc(np.float64(a), Value(b)) == expected
            found = ufunc(np.array([a, a]), Value(b))
            assert found.dtype == bool
            assert found.tolist() == [expected] * 2
            found = ufunc(np.array([[Value(a)], [a]], dtype=object), Value(b))
            assert (found.dtype, found.tolist()) == (bool, [[expected]] * 2)


# ---- what is on the left


KINDS = [
    float, int, bool, np.float16, np.float32, np.float64, np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint64,
    np.bool_, Fraction,
]  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("op", [operator.add, operator.sub, operator.mul, operator.truediv, operator.pow])
def test_left_operands(kind, op):
    v = Value(3.0)
    y = op(kind(1), v)
    assert type(y) is Value
    assert y.data == op(1.0, 3.0)
    y = op(v, kind(1))
    assert type(y) is Value
    assert y.data == op(3.0, 1.0)
    assert (kind(1) < v, kind(1) > v, kind(1) == v, v >= kind(1)) == (True, False, False, True)


@pytest.mark.parametrize(
    "wrong", [1j, np.complex128(1j), decimal.Decimal(1), "1", None, [1.0], (1.0,), {}, object(), np.longdouble(1), b"1"]
)
@pytest.mark.parametrize("op", [operator.add, operator.sub, operator.mul, operator.truediv, operator.pow, operator.mod])
def test_operands_that_are_none(wrong, op):
    v = Value(3.0)
    with pytest.raises(TypeError):
        op(v, wrong)
    if not (op is operator.mod and isinstance(wrong, (str, bytes))):
        with pytest.raises(TypeError):
            op(wrong, v)


def test_text_formatting_is_no_remainder():
    assert "%.1f" % Value(3.0) == "3.0"  # noqa: UP031


@pytest.mark.parametrize("op", [operator.lt, operator.le, operator.gt, operator.ge])
def test_order_of_what_has_none(op):
    for wrong in ("a", None, 1j, [1.0]):
        with pytest.raises(TypeError):
            op(Value(1.0), wrong)
    for wrong in ("a", None, 1j, [1.0]):
        assert Value(1.0) != wrong
        assert (Value(1.0) == wrong) is False


def test_an_int_that_is_too_large():
    v = Value(1.0)
    for f in (lambda: v + 10**400, lambda: 10**400 * v, lambda: Value(10**400), lambda: pygrad.exp(10**400)):
        with pytest.raises(OverflowError):
            f()


# ---- arrays


@pytest.mark.parametrize("ufunc", BINARY, ids=lambda f: f.__name__)
def test_an_array_and_a_value(ufunc):
    if ufunc is np.ldexp:
        return
    a, b = sample(ufunc), sample(ufunc, 1)
    for left, right in (
        (np.array([a, a]), Value(b)), (Value(a), np.array([b, b])), (np.array([[a], [a]]), Value(b)),
        (array_of(a, a)[1], Value(b)), (Value(a), array_of(b, b)[1]),
    ):  # fmt: skip
        y = ufunc(left, right)
        assert y.dtype == object
        assert y.shape == np.broadcast_shapes(np.shape(left), np.shape(right))
        assert {item.data for item in y.flat} == {FUNCTIONS[ufunc.__name__](a, b)}


@pytest.mark.parametrize("op", [operator.add, operator.sub, operator.mul, operator.truediv, operator.pow])
def test_operators_of_object_arrays(op):
    leaves, x = array_of(2.0, 3.0)
    y = op(x, x)
    assert [item.data for item in y] == [op(2.0, 2.0), op(3.0, 3.0)]
    y = op(np.array([[1.0], [2.0]]), x)
    assert y.shape == (2, 2)
    assert y[1, 0].data == op(2.0, 2.0)
    np.sum(op(x, 2.0)).backward()
    assert [leaf.grad for leaf in leaves] == [grad(lambda v: op(v, 2.0))(2.0), grad(lambda v: op(v, 2.0))(3.0)]
    assert op(x, Value(2.0))[0].data == op(2.0, 2.0)
    assert op(2.0, x)[1].data == op(2.0, 3.0)


@pytest.mark.parametrize(
    "ufunc",
    [np.exp, np.exp2, np.expm1, np.log, np.log2, np.log10, np.log1p, np.sqrt, np.cbrt, np.square, np.reciprocal, np.sin,
     np.cos, np.tan, np.arcsin, np.arccos, np.arctan, np.sinh, np.cosh, np.tanh, np.arcsinh, np.arccosh, np.arctanh,
     np.floor, np.ceil, np.trunc, np.absolute, np.fabs, np.negative, np.positive, np.rint, np.degrees, np.radians,
     np.rad2deg, np.deg2rad, np.sign],
    ids=lambda f: f.__name__,
)  # fmt: skip
def test_unary_ufuncs_on_object_arrays(ufunc):
    numbers = sample(ufunc), sample(ufunc, 0.5)
    leaves, x = array_of(*numbers)
    y = ufunc(x)
    assert [float(item) for item in y] == [FUNCTIONS[ufunc.__name__](number) for number in numbers]
    if isinstance(y[0], Value):
        np.sum(y).backward()
        assert [leaf.grad for leaf in leaves] == [grad(FUNCTIONS[ufunc.__name__])(number) for number in numbers]


@pytest.mark.parametrize("ufunc", [np.arctan2, np.hypot, np.fmod, np.maximum, np.minimum, np.remainder, np.power])
def test_binary_ufuncs_on_object_arrays(ufunc):
    _, x = array_of(2.0, -3.0)
    _, y = array_of(1.5, 2.0)
    assert [item.data for item in ufunc(x, y)] == [
        float(FUNCTIONS[ufunc.__name__](a, b)) for a, b in ((2.0, 1.5), (-3.0, 2.0))
    ]


@pytest.mark.parametrize("name", sorted(TABLE))
def test_functions_of_pygrad_take_arrays(name):
    row = TABLE[name]
    given = [1.0, 0.5, 0.75][: row.arity]
    if name in ("polygamma", "sinc_derivative", "ierfcx"):
        given = [1.0, 0.5]
    expected = FUNCTIONS[name](*given)
    floats = FUNCTIONS[name](np.full((2, 1), given[0]), *given[1:])
    assert floats.dtype == np.float64
    assert np.array_equal(floats, np.full((2, 1), expected), equal_nan=True)
    _, x = array_of(given[0], given[0])
    found = FUNCTIONS[name](x, *given[1:])
    assert found.dtype == object
    assert repr([item.data for item in found]) == repr([expected] * 2)
    assert repr(FUNCTIONS[name](np.array(given[0]), *given[1:])) == repr(expected)


def test_reductions():
    leaves, x = array_of(1.0, 2.0, 3.0)
    weights = np.array([10.0, 20.0, 30.0])
    for y, slopes in (
        (np.sum(x), [1, 1, 1]), (np.dot(x, weights), [10, 20, 30]), (np.dot(weights, x), [10, 20, 30]),
        (x @ weights, [10, 20, 30]), (weights @ x, [10, 20, 30]), (x @ x, [2, 4, 6]), (np.prod(x), [6, 3, 2]),
        (np.mean(x), [1 / 3] * 3), (np.max(x), [0, 0, 1]), (np.min(x), [1, 0, 0]),
        (np.inner(x, weights), [10, 20, 30]), (np.vdot(x, weights), [10, 20, 30]), (x.sum(), [1, 1, 1]),
        (np.average(x, weights=weights), [1 / 6, 1 / 3, 0.5]),
        (np.var(x), [-2 / 3, 0, 2 / 3]), (np.trace(np.outer(x, x)), [2, 4, 6]), (np.cumsum(x)[-1], [1, 1, 1]),
        (np.einsum("i,i->", x, weights), [10, 20, 30]), (np.tensordot(x, weights, 1)[()], [10, 20, 30]),
        (np.linalg.norm(x), [k / 14**0.5 for k in (1, 2, 3)]), (np.add.reduce(x), [1, 1, 1]),
        (np.diff(x)[0], [-1, 1, 0]),
    ):  # fmt: skip
        assert type(y) is Value
        for leaf in leaves:
            leaf.zero_grad()
        y.backward()
        assert [leaf.grad for leaf in leaves] == pytest.approx(slopes, rel=1e-14)


def test_matrix_product():
    leaves, x = array_of(1.0, 2.0)
    matrix = np.array([[1.0, 2.0], [3.0, 4.0]])
    y = matrix @ x
    assert [item.data for item in y] == [5.0, 11.0]
    np.sum(y).backward()
    assert [leaf.grad for leaf in leaves] == [4.0, 6.0]
    y = np.array([[Value(1.0), Value(2.0)], [Value(3.0), Value(4.0)]]) @ matrix
    assert [[item.data for item in row] for row in y] == [[7.0, 10.0], [15.0, 22.0]]


def test_functions_that_are_no_ufuncs():
    x = Value(0.5)
    for y, op, data in (
        (np.sinc(x), "sinc", np.sinc(0.5)), (np.where(x > 0, x, 2.0), "where", 0.5),
        (np.clip(x, 0.0, 0.25), "clip", 0.25), (np.clip(x, min=0.75), "clip", 0.75),
        (np.clip(x, None, 0.25), "clip", 0.25), (np.fix(x), "trunc", 0.0),
        (np.round(x), "round", 0.0),
    ):  # fmt: skip
        assert (type(y), y.op, y.data) == (Value, op, pytest.approx(data, rel=1e-15))
    assert np.round(Value(1.2345), 2).data == 1.23
    assert np.round(Value(1234.5), -2).data == 1200.0
    for condition in ([True, False], np.array([True, False])):
        assert [float(item) for item in np.where(condition, x, 3.0)] == [0.5, 3.0]
    assert [item.data for item in np.clip([0.0, 2.0], x, 1.0)] == [0.5, 1.0]


def test_making_arrays():
    x = Value(2.0)
    for array in (np.array([x, x]), np.array([x, 1.0]), np.stack([x, x]), np.asarray([x]), np.full(2, x)):
        assert array.dtype == object
        assert array[0] is x
    array = np.array([[x, 1.0], [2.0, x]])
    assert array.shape == (2, 2)
    assert np.array(x).shape == ()
    assert np.concatenate([[x], [1.0]])[0] is x
    assert np.array([x, 1.0]).astype(float).tolist() == [2.0, 1.0]


# ---- what is refused


def test_out_is_refused():
    v, out = Value(1.0), np.zeros(1)
    for f in (
        lambda: np.add(v, 1.0, out=out), lambda: np.exp(v, out=out), lambda: np.add(v, 1.0, out),
        lambda: np.multiply(np.ones(1), v, out=(out,)), lambda: np.divmod(v, 2.0, out=(out, out)),
    ):  # fmt: skip
        with pytest.raises(TypeError, match=r"^np\.\w+: out= would lose the graph of a Value; use the result$"):
            f()
    for f in (lambda: np.sum(v, out=out), lambda: np.clip(v, 0, 1, out=out), lambda: np.round(v, out=out)):
        with pytest.raises(TypeError):
            f()
    array = np.ones(1)
    with pytest.raises(TypeError, match="out="):
        array += v
    assert out.tolist() == [0.0]
    assert array.tolist() == [1.0]


@pytest.mark.parametrize("op", [operator.iadd, operator.isub, operator.imul, operator.itruediv, operator.ipow])
def test_operators_in_place_on_object_arrays(op):
    v = Value(1.5)
    for right in (v, np.array([v, 2.0], dtype=object), 2.0):
        leaves, array = array_of(2.0, 3.0)
        expected = [item.data for item in op(array.copy(), right)]
        before = array
        array = op(array, right)
        assert array is before
        assert [item.data for item in array] == expected
        np.sum(array).backward()
        assert all(leaf.grad != 0.0 for leaf in leaves)
    assert v.grad != 0.0


def test_out_of_dtype_object():
    v = Value(4.0)
    out = np.empty((2, 3), dtype=object)
    assert np.sqrt(v, out=out) is out
    assert {(item.op, item.data) for item in out.flat} == {("sqrt", 2.0)}
    assert np.add(np.arange(3.0), v, out) is out
    assert [[item.data for item in row] for row in out] == [[4.0, 5.0, 6.0]] * 2
    single = np.empty((), dtype=object)
    assert np.multiply(v, 2.0, out=single) is single
    assert single[()].data == 8.0
    assert np.add.reduce(v, out=single) is single
    assert single[()] is v
    assert np.less(v, np.arange(3.0, 6.0), out=out[0]).tolist() == [False, False, True]
    quotient = np.empty(2, dtype=object)
    found = np.divmod(v, 3.0, out=(quotient, None))
    assert found[0] is quotient
    assert (quotient[1].data, found[1].data) == (1.0, 1.0)
    for shape in ((2,), (3, 1), (1, 1), ()):
        with pytest.raises(ValueError, match=r"^np\.add: out has shape .*, needs one that the result's, \(2, 3\), "):
            np.add(np.ones((2, 3)), v, out=np.empty(shape, dtype=object))
    with pytest.raises(TypeError, match="out="):
        np.divmod(v, 3.0, out=(quotient, np.empty(2)))
    frozen = np.empty(2, dtype=object)
    frozen.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        np.add(v, 1.0, out=frozen)


def test_every_alias_names_a_row():
    assert set(ALIASES.values()) <= TABLE.keys()


def test_where_is_refused():
    v = Value(1.0)
    for where in (False, np.array([True, False]), [True]):
        with pytest.raises(TypeError, match=r"^np\.exp: where= leaves elements undefined; use pygrad\.where$"):
            np.exp(v, where=where)


@pytest.mark.parametrize("keyword", [{"dtype": float}, {"casting": "unsafe"}, {"order": "C"}, {"subok": False}])
def test_other_keywords_are_refused(keyword):
    with pytest.raises(TypeError, match=rf"^np\.exp: unexpected keyword '{next(iter(keyword))}' for a Value$"):
        np.exp(Value(1.0), **keyword)


@pytest.mark.parametrize(
    "ufunc", [np.heaviside, np.gcd, np.bitwise_and, np.left_shift, np.nextafter, np.spacing, np.invert]
)
def test_unknown_ufuncs(ufunc):
    name = ufunc.__name__
    with pytest.raises(
        TypeError, match=rf"^np\.{name}: is not defined for a Value; `python -m pygrad ops` lists what is$"
    ):
        ufunc(*[Value(1.0)] * ufunc.nin)


@pytest.mark.parametrize("method", ["accumulate", "reduceat", "outer", "at"])
def test_methods_of_ufuncs(method):
    args = {
        "accumulate": (Value(1.0),),
        "reduceat": (Value(1.0), [0]),
        "outer": (Value(1.0), [1.0]),
        "at": (Value(1.0), 0, 1.0),
    }
    with pytest.raises(TypeError, match=rf"^np\.add\.{method}: is not defined for a Value$"):
        getattr(np.add, method)(*args[method])


def test_wrong_operands_of_ufuncs():
    for wrong in (1j, "a", None, decimal.Decimal(1)):
        with pytest.raises(TypeError):
            np.add(Value(1.0), wrong)
    with pytest.raises(TypeError, match="operand 1 must be a Value or a real number, found"):
        np.arctan2(Value(1.0), 1j)
    with pytest.raises(TypeError):
        np.where(Value(1.0))


def test_no_array_is_made_of_a_value_within_a_transform():
    with pytest.raises(TypeError, match=r"float\(\): a Value that is being differentiated"):
        grad(lambda x: np.float64(x) * x)(1.0)
    with pytest.raises((TypeError, ValueError)):
        grad(lambda x: np.array([x], dtype=float)[0] * x)(1.0)
    with pytest.raises((TypeError, ValueError)):
        grad(lambda x: np.array([x, x]).astype(float)[0] * x)(1.0)
