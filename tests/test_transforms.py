"""grad, value_and_grad, vjp, jvp, jacobian, hessian, hvp: arguments of every structure, nesting, what stays untouched.

Derivatives are compared with analytic ones, exactly where the arithmetic is exact.
"""

import collections
import dataclasses
import functools
import itertools
import math as stdlib_math
import threading
from fractions import Fraction
from typing import NamedTuple

import numpy as np
import pytest
import scipy.optimize
from hypothesis import given, settings
from hypothesis import strategies as st

import pygrad
from pygrad import (
    Value,
    _core,
    custom_op,
    grad,
    hessian,
    hvp,
    is_grad_enabled,
    jacobian,
    jvp,
    math,
    no_grad,
    stop_gradient,
    value_and_grad,
    vjp,
)


class Point(NamedTuple):
    x: float
    y: float


@dataclasses.dataclass
class Body:
    mass: float
    place: list
    name: str = "body"


@dataclasses.dataclass(frozen=True)
class Frozen:
    a: float
    b: tuple


@dataclasses.dataclass(frozen=True, slots=True)
class Slotted:
    a: float
    b: float


@dataclasses.dataclass
class Checked:
    """Its gradient is no valid instance: neither __init__ nor __post_init__ may run for it."""

    positive: float

    def __post_init__(self):
        if not self.positive > 0:
            raise ValueError("must be positive")


@dataclasses.dataclass
class Cached:
    a: float

    @functools.cached_property
    def square(self):
        return self.a * self.a

    def __post_init__(self):
        self.label = "kept"
        self.derived = 10 * self.a


def arity_two(f):
    """(f, at the point (2, 3)) -> gradient by each transform that gives first derivatives."""
    return {
        "grad": grad(f, argnums=(0, 1))(2.0, 3.0),
        "value_and_grad": value_and_grad(f, argnums=(0, 1))(2.0, 3.0)[1],
        "vjp": vjp(f, 2.0, 3.0)[1](1.0),
        "jvp": (jvp(f, (2.0, 3.0), (1.0, 0.0))[1], jvp(f, (2.0, 3.0), (0.0, 1.0))[1]),
        "jacobian": jacobian(f, argnums=(0, 1))(2.0, 3.0),
    }


# ---- first derivatives


def test_all_transforms_agree():
    for found in arity_two(lambda x, y: x * x * y + y / x).values():
        assert found == (2 * 2 * 3 - 3 / 4, 4 + 1 / 2)
    assert hessian(lambda x, y: x * x * y, argnums=(0, 1))(2.0, 3.0) == ((6.0, 4.0), (4.0, 0.0))
    assert hvp(lambda x: x[0] * x[0] * x[1])([2.0, 3.0], [1.0, 10.0]) == [6.0 + 40.0, 4.0]


def test_results_are_floats():
    value, slope = value_and_grad(lambda x: x * x)(3)
    assert (type(value), value, type(slope), slope) == (float, 9.0, float, 6.0)
    value, slope = jvp(lambda x: [x, 2], (3,), (1,))
    assert (value, slope) == ([3.0, 2], [1.0, 0.0])
    assert [type(v) for v in slope] == [float, float]
    assert type(hvp(lambda x: x * x * x)(2.0, 1.0)) is float
    assert [type(v) for row in hessian(lambda x: x[0] * x[1])([1, 2]) for v in row] == [float] * 4
    assert [type(v) for row in jacobian(lambda x: [x[0], x[1], 3])([1, 2]) for v in row] == [float] * 6


@pytest.mark.parametrize("transform", [grad, value_and_grad, jacobian, hessian, hvp])
def test_the_function_keeps_its_name_and_doc(transform):
    def energy(x):
        """Energy of x."""
        return x * x

    assert transform(energy).__name__ == "energy"
    assert transform(energy).__doc__ == "Energy of x."
    assert transform(functools.partial(lambda k, x: k * x, 2.0)) is not None


# ---- argnums


def test_argnums():
    f = lambda x, y, z: x * y + 10 * z  # noqa: E731
    assert grad(f)(2.0, 3.0, 4.0) == 3.0
    assert grad(f, argnums=1)(2.0, 3.0, 4.0) == 2.0
    assert grad(f, argnums=-1)(2.0, 3.0, 4.0) == 10.0
    assert grad(f, argnums=np.int64(1))(2.0, 3.0, 4.0) == 2.0
    assert grad(f, argnums=(2, 0))(2.0, 3.0, 4.0) == (10.0, 3.0)
    assert grad(f, argnums=[0, -1])(2.0, 3.0, 4.0) == (3.0, 10.0)
    assert grad(f, argnums=range(3))(2.0, 3.0, 4.0) == (3.0, 2.0, 10.0)
    assert grad(f, argnums=(1,))(2.0, 3.0, 4.0) == (2.0,)
    assert grad(f, argnums=())(2.0, 3.0, 4.0) == ()
    assert jacobian(lambda x, y: [x * y, y], argnums=(0, 1))(2.0, 3.0) == [(3.0, 2.0), (0.0, 1.0)]
    assert hessian(f, argnums=1)(2.0, 3.0, 4.0) == 0.0
    assert hvp(lambda x, y: x * y * y, argnums=1)(2.0, 3.0, 1.0) == 4.0
    assert hvp(lambda x, y: x * y * y, argnums=(0, 1))(2.0, 3.0, [1.0, 1.0]) == (6.0, 6.0 + 4.0)


@pytest.mark.parametrize("argnums", [2, -3, (0, 2), [5], (0, 1.0), "x", ("x",)])
@pytest.mark.parametrize("transform", [grad, value_and_grad, jacobian, hessian])
def test_argnums_out_of_place(transform, argnums):
    with pytest.raises((ValueError, TypeError), match=rf"^{transform.__name__}: argnums "):
        transform(lambda x, y: x * y, argnums=argnums)(1.0, 2.0)


@pytest.mark.parametrize("argnums", [(0, 0), (0, -2), [1, 0, 1]])
def test_argnums_that_name_an_argument_twice(argnums):
    with pytest.raises(ValueError, match=r"grad: argnums .* name an argument twice"):
        grad(lambda x, y: x * y, argnums=argnums)(1.0, 2.0)


def test_an_argument_given_by_keyword_is_a_constant():
    assert grad(lambda x, y: x * y)(2.0, y=3.0) == 3.0
    with pytest.raises(ValueError, match="argnums 0 does not name one of 0 positional arguments"):
        grad(lambda x: x)(x=2.0)


def test_keyword_arguments():
    f = lambda x, *, scale=1.0, power=1, data=None: scale * x**power * (1.0 if data is None else data[1])  # noqa: E731
    assert grad(f)(3.0, scale=2.0, power=2) == 12.0
    assert value_and_grad(f)(3.0, scale=2.0) == (6.0, 2.0)
    assert jacobian(f)(3.0, power=2) == 6.0
    assert hessian(f)(3.0, power=3) == 18.0
    assert hvp(f)(3.0, 1.0, power=3) == 18.0
    assert grad(f)(3.0, data=np.array([5.0, 7.0])) == 7.0


# ---- has_aux


def test_has_aux():
    def f(x):
        y = x * x
        return y, {"y": y, "n": 3, "note": "text", "array": np.array([1, 2]), "x": [x, None]}

    aux = {"y": 9.0, "n": 3, "note": "text", "x": [3.0, None]}

    def check(found):
        array = found.pop("array")
        assert array.dtype == np.array([1]).dtype
        assert array.tolist() == [1, 2]
        assert found == aux
        assert type(found["y"]) is float

    slope, found = grad(f, has_aux=True)(3.0)
    assert slope == 6.0
    check(found)
    (value, found), slope = value_and_grad(f, has_aux=True)(3.0)
    assert (value, slope) == (9.0, 6.0)
    check(found)
    value, pull, found = vjp(f, 3.0, has_aux=True)
    assert (value, pull(2.0)) == (9.0, 12.0)
    check(found)
    value, slope, found = jvp(f, (3.0,), (2.0,), has_aux=True)
    assert (value, slope) == (9.0, 12.0)
    check(found)
    slope, found = jacobian(f, has_aux=True)(3.0)
    assert slope == 6.0
    check(found)
    second, found = hessian(f, has_aux=True)(3.0)
    assert second == 2.0
    check(found)


@pytest.mark.parametrize("out", [lambda x: x, lambda x: (x, 1, 2), lambda x: [x, 1]])
def test_has_aux_without_a_pair(out):
    with pytest.raises(TypeError, match=r"grad: with has_aux=True the function must return \(result, aux\), found "):
        grad(out, has_aux=True)(1.0)


# ---- structures


def test_lists_tuples_and_dicts():
    f = lambda p: p["w"][0] * p["w"][1] + p["b"][0] * 3 + p["deep"]["x"][0][0][0]  # noqa: E731
    given = {"w": [2.0, 5.0], "b": (7.0,), "deep": {"x": [[(1.0,)]]}}
    assert grad(f)(given) == {"w": [5.0, 2.0], "b": (3.0,), "deep": {"x": [[(1.0,)]]}}
    assert given == {"w": [2.0, 5.0], "b": (7.0,), "deep": {"x": [[(1.0,)]]}}


def test_subclasses_of_dict_and_list_stay_what_they_are():
    found = grad(lambda p: p["a"] * 2)(collections.OrderedDict(a=1.0, b=2.0))
    assert type(found) is collections.OrderedDict
    assert found == {"a": 2.0, "b": 0.0}
    found = grad(lambda p: p["a"] * 2 + p["none"])(collections.defaultdict(float, a=1.0))
    assert type(found) is collections.defaultdict
    assert found == {"a": 2.0}

    class Row(list):
        pass

    found = grad(lambda p: p[0] * p[1])(Row([2.0, 3.0]))
    assert type(found) is Row
    assert found == [3.0, 2.0]


def test_namedtuples():
    assert grad(lambda p: p.x * p.y**2)(Point(2.0, 3.0)) == Point(9.0, 12.0)
    assert type(grad(lambda p: p.x)(Point(2.0, 3.0))) is Point
    assert jacobian(lambda x: Point(x * x, 3 * x))(2.0) == Point(4.0, 3.0)
    assert jvp(lambda x: Point(x * x, 3 * x), (2.0,), (1.0,)) == (Point(4.0, 6.0), Point(4.0, 3.0))


def test_dataclasses():
    body = Body(2.0, [3.0, 4.0])
    found = grad(lambda b: b.mass * (b.place[0] ** 2 + b.place[1] ** 2))(body)
    assert found == Body(25.0, [12.0, 16.0], None)
    assert body == Body(2.0, [3.0, 4.0], "body")
    found = grad(lambda p: p.a * p.b[0] * p.b[1])(Frozen(2.0, (3.0, 5.0)))
    assert found == Frozen(15.0, (10.0, 6.0))
    assert grad(lambda p: p.a * p.b)(Slotted(2.0, 3.0)) == Slotted(3.0, 2.0)
    assert jacobian(lambda x: Frozen(x[0] * x[1], (x[0],)))([2.0, 3.0]) == Frozen([3.0, 2.0], ([1.0, 0.0],))


def test_a_dataclass_is_not_made_anew():
    assert grad(lambda p: -5 * p.positive)(Checked(1.0)).positive == -5.0


def test_what_a_dataclass_computed_from_its_fields_is_no_constant():
    given = Cached(3.0)
    assert given.square == 9.0
    assert grad(lambda p: p.square)(given).a == 6.0
    assert grad(lambda p: p.a if p.label == "kept" else 0.0)(given).a == 1.0
    with pytest.raises(AttributeError, match="derived"):
        grad(lambda p: p.derived)(given)


def test_what_is_no_number_is_passed_through():
    def f(p):
        assert p["mode"] == "square"
        assert p["flag"] is True
        assert p["none"] is None
        assert p["numpy flag"] == np.True_
        assert type(p["fraction"]) is Fraction
        assert p["words"].tolist() == ["a", "b"]
        return p["x"] ** 2 if p["flag"] else p["x"]

    words = np.array(["a", "b"])
    given = {"x": 3.0, "mode": "square", "flag": True, "none": None, "numpy flag": np.True_, "words": words}
    found = grad(f)({**given, "fraction": Fraction(1, 2)})
    assert found == {
        "x": 6.0, "mode": None, "flag": None, "none": None, "numpy flag": None, "words": None, "fraction": None,
    }  # fmt: skip
    assert vjp(lambda x, mode: x * 2 if mode == "double" else x, 3.0, "double")[1](1.0) == (2.0, None)
    assert jvp(lambda x, mode: x * 2 if mode == "double" else x, (3.0, "double"), (1.0, None)) == (6.0, 2.0)


@pytest.mark.parametrize(
    "wrong", ["text", None, True, 1j, Fraction(1, 2), ["text"], {"a": None}, (True, False), object]
)
@pytest.mark.parametrize("transform", [grad, value_and_grad, jacobian, hessian])
def test_nothing_to_differentiate(transform, wrong):
    with pytest.raises(TypeError, match=f"^{transform.__name__}: found no number to differentiate in argument "):
        transform(lambda x: 1.0)(wrong)
    with pytest.raises(TypeError, match=r"^vjp: found no number to differentiate in the arguments "):
        vjp(lambda x: 1.0, wrong)


@pytest.mark.parametrize("empty", [[], (), {}, [[], ()], {"a": []}])
def test_empty_structures(empty):
    assert grad(lambda x: 1.0)(empty) == empty
    assert value_and_grad(lambda x: 4.0)(empty) == (4.0, empty)
    assert jacobian(lambda x: [1.0, 2.0])(empty) == [empty, empty]
    assert vjp(lambda x: 1.0, empty)[1](1.0) == empty
    assert jvp(lambda x: 1.0, (empty,), (empty,)) == (1.0, 0.0)
    assert vjp(lambda: 3.0)[1](1.0) == ()


@pytest.mark.parametrize("kind", [int, np.float64, np.float32, np.float16, np.int64, np.int8, np.uint16])
def test_kinds_of_numbers(kind):
    found = grad(lambda p: p[0] * p[0] * p[1])([kind(2), kind(3)])
    assert found == [12.0, 4.0]
    assert [type(slope) for slope in found] == [float, float]


structures = st.recursive(
    st.floats(-3, 3) | st.integers(-3, 3) | st.none() | st.booleans() | st.text(max_size=2),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.tuples(inner, inner)
        | st.dictionaries(st.text(max_size=2), inner, max_size=3)
        | st.builds(Point, inner, inner)
        | st.builds(Frozen, inner, st.tuples(inner))
    ),
    max_leaves=12,
)


@settings(max_examples=150, deadline=None)
@given(structures)
def test_any_structure(given):
    """The gradient of the sum of k * x_k**2 has the structure of its argument, and the numbers 2 k x_k."""
    from pygrad.structures import flatten, refill

    numbers = flatten(given)
    f = lambda p: pygrad.sum((k + 1) * x * x for k, x in enumerate(flatten(p)))  # noqa: E731
    expected = [2.0 * (k + 1) * x for k, x in enumerate(numbers)]
    if not numbers:
        try:
            found = grad(f)(given)
        except TypeError as error:
            assert "found no number to differentiate" in str(error)
            return
        assert flatten(found) == []
        return
    value, found = value_and_grad(f)(given)
    assert value == pygrad.sum([(k + 1) * x * x for k, x in enumerate(numbers)])
    assert found == refill(given, iter(expected), lambda leaf: None)
    assert flatten(vjp(f, given)[1](1.0)) == expected
    assert jvp(f, (given,), (expected,))[1] == pytest.approx(sum(e * e for e in expected))


# ---- arrays


@pytest.mark.parametrize("shape", [(), (1,), (3,), (0,), (2, 3), (2, 0), (0, 2), (2, 1, 2)])
@pytest.mark.parametrize("dtype", [float, np.float32, int, object])
def test_arrays_as_values(shape, dtype):
    x = np.arange(1, 1 + int(np.prod(shape))).astype(dtype).reshape(shape)

    def total(item):
        if isinstance(item, list):
            return pygrad.sum(total(part) for part in item)
        assert type(item) is Value
        return item * item

    value, found = value_and_grad(total, as_values=True)(x)
    assert value == float(np.sum(x * x))
    assert type(found) is np.ndarray
    assert (found.dtype, found.shape) == (np.float64, shape)
    assert np.array_equal(found, 2.0 * x.astype(float))
    assert np.array_equal(vjp(total, x, as_values=True)[1](1.0), found)
    assert np.array_equal(jacobian(total, as_values=True)(x), found)
    assert jvp(total, (x,), (np.ones(shape),), as_values=True) == (value, float(np.sum(found)))
    assert np.array_equal(hvp(total, as_values=True)(x, np.full(shape, 3.0)), np.full(shape, 6.0))
    second = hessian(total, as_values=True)(x)
    if shape:
        assert second.shape == shape + shape
        assert np.array_equal(second.reshape(x.size, x.size), 2.0 * np.eye(x.size))
    else:
        assert second == 2.0


def test_what_f_gets_from_an_array():
    seen = []
    f = lambda x: seen.append(x) or pygrad.sum(v for row in x for v in row)  # noqa: E731
    grad(f, as_values=True)(np.ones((2, 3)))
    assert [type(x) for x in (seen[0], seen[0][0], seen[0][0][0])] == [list, list, Value]
    grad(lambda x: seen.append(x) or x * 2, as_values=True)(np.array(1.0))
    assert type(seen[1]) is Value


def test_arrays_within_structures():
    p = {"w": np.array([[1.0, 2.0], [3.0, 4.0]]), "b": [np.array([5.0]), 6.0], "point": Point(np.array([7.0]), 8)}
    f = lambda p: p["w"][1][0] * p["b"][0][0] * p["b"][1] + p["point"].x[0] * p["point"].y  # noqa: E731
    found = grad(f, as_values=True)(p)
    assert found["w"].tolist() == [[0.0, 0.0], [30.0, 0.0]]
    assert found["b"][0].tolist() == [18.0]
    assert found["b"][1] == 15.0
    assert found["point"].x.tolist() == [8.0]
    assert found["point"].y == 7.0
    found = grad(lambda b: b.mass[0] * b.mass[1], as_values=True)(Body(np.array([2.0, 3.0]), []))
    assert found.mass.tolist() == [3.0, 2.0]


@pytest.mark.parametrize(
    "where",
    [lambda a: a, lambda a: [a], lambda a: {"x": {"y": [a]}}, lambda a: Frozen(1.0, (a,)), lambda a: Point(a, 1.0)],
)
def test_an_array_without_as_values(where):
    array = np.ones((2, 3))
    for transform in (grad, value_and_grad, jacobian, hessian):
        with pytest.raises(
            TypeError, match=rf"^{transform.__name__}: found an array of shape \(2, 3\); pass as_values=True to "
        ):
            transform(lambda x: 1.0)(where(array))
    with pytest.raises(TypeError, match=r"^vjp: found an array"):
        vjp(lambda x: 1.0, where(array))
    with pytest.raises(TypeError, match=r"^jvp: found an array"):
        jvp(lambda x: 1.0, (where(array),), (where(array),))
    with pytest.raises(TypeError, match=r"^hvp: found an array"):
        hvp(lambda x: 1.0)(where(array), 1.0)


def test_an_array_that_is_not_differentiated_is_data():
    data = np.array([1.0, 2.0])

    def loss(w, x, y):
        assert x is data
        return pygrad.sum((w * a - b) ** 2 for a, b in zip(x, y, strict=True))

    assert grad(loss)(3.0, data, np.array([1.0, 1.0])) == 2 * 2.0 * 1 + 2 * 5.0 * 2
    assert grad(loss, as_values=True)(3.0, data, np.array([1.0, 1.0])) == 24.0


def test_jacobian_of_arrays():
    x = np.array([2.0, 3.0, 5.0])
    f = lambda v: [v[0] * v[1], v[2] ** 2]  # noqa: E731
    found = jacobian(f, as_values=True)(x)
    assert found.tolist() == [[3.0, 2.0, 0.0], [0.0, 0.0, 10.0]]
    found = jacobian(lambda v: np.array(f(v)), as_values=True)(x)
    assert found.tolist() == [[3.0, 2.0, 0.0], [0.0, 0.0, 10.0]]
    found = jacobian(lambda v: [[v[0], v[1]], [v[2], 1.0]], as_values=True)(x.reshape(3))
    assert found.shape == (2, 2, 3)
    assert found[1, 0].tolist() == [0.0, 0.0, 1.0]
    assert jacobian(lambda v: [], as_values=True)(x).shape == (0, 3)
    assert jacobian(lambda v: [1.0, 2.0], as_values=True)(np.zeros((2, 0))).shape == (2, 2, 0)
    ragged = jacobian(lambda v: [v[0], [v[1]]], as_values=True)(x)
    assert ragged[0].tolist() == [1.0, 0.0, 0.0]
    assert ragged[1][0].tolist() == [0.0, 1.0, 0.0]
    point = jacobian(lambda v: Point(v[0], v[1]), as_values=True)(x)
    assert (type(point), point.y.tolist()) == (Point, [0.0, 1.0, 0.0])
    w = Value(7.0)
    nested = jacobian(lambda v: [w * v[0]], as_values=True)(x)
    assert (nested.dtype, nested.shape, float(nested[0, 0]), float(nested[0, 1])) == (object, (1, 3), 7.0, 0.0)
    assert jacobian(lambda v: {"a": v[0]}, as_values=True)(x)["a"].tolist() == [1.0, 0.0, 0.0]
    wide = jacobian(lambda v: [v[0] * k for k in range(7)], as_values=True)(x[:2])  # forward mode
    assert wide.tolist() == [[float(k), 0.0] for k in range(7)]


@pytest.mark.parametrize(("rows", "columns"), [(1, 4), (4, 1), (3, 3), (2, 5), (5, 2)])
def test_jacobian_in_both_modes(rows, columns):
    matrix = [[float((7 * i + 3 * j) % 5 - 2) for j in range(columns)] for i in range(rows)]
    f = lambda x: [pygrad.dot(row, x) for row in matrix]  # noqa: E731
    assert jacobian(f)([1.0] * columns) == matrix
    assert jacobian(lambda x: [x[0]] * rows)([1.0] * columns) == [[1.0] + [0.0] * (columns - 1)] * rows


# ---- constants, unused inputs, values from outside


@pytest.mark.parametrize(
    "constant", [5.0, 5, np.float64(5.0), np.int32(5), Value(5.0), Value(5.0, requires_grad=False)]
)
def test_a_function_that_returns_a_constant(constant):
    assert float(grad(lambda x: constant)(2.0)) == 0.0
    assert grad(lambda x: constant)([1.0, {"a": 2.0}]) == [0.0, {"a": 0.0}]
    value, slope = value_and_grad(lambda x: constant)(2.0)
    assert (float(value), float(slope)) == (5.0, 0.0)
    assert jacobian(lambda x: [constant, x])(2.0) == [0.0, 1.0]
    assert jvp(lambda x: constant, (1.0,), (1.0,))[1] == 0.0
    assert vjp(lambda x: constant, 1.0)[1](1.0) == 0.0
    assert hessian(lambda x: constant)([1.0, 2.0]) == [[0.0, 0.0], [0.0, 0.0]]
    assert hvp(lambda x: constant)(1.0, 1.0) == 0.0


def test_a_frozen_value_as_argument_is_its_number():
    frozen = Value(3.0, requires_grad=False)
    slope = grad(lambda x: x * x)(frozen)
    assert (type(slope), slope, frozen.grad) == (float, 6.0, 0.0)
    with no_grad():
        made = Value(3.0) * 1
    assert jacobian(lambda x: [x[0] * x[1]])([made, 2.0]) == [[2.0, 3.0]]


def test_a_result_in_an_array_of_no_dimension():
    assert value_and_grad(lambda x: np.select([x > 0], [x * 3], 0.0))(2.0) == (6.0, 3.0)
    assert hessian(lambda x: np.array(x * x))(2.0) == 2.0


def test_unused_inputs():
    assert grad(lambda x, y, z: x * 2, argnums=(0, 1, 2))(1.0, 2.0, [3.0]) == (2.0, 0.0, [0.0])
    assert hessian(lambda x: x[0] ** 2)([1.0, 2.0]) == [[2.0, 0.0], [0.0, 0.0]]
    assert grad(lambda x: x)(3.0) == 1.0
    assert jacobian(lambda x: x)([3.0, 4.0]) == [[1.0, 0.0], [0.0, 1.0]]
    assert jacobian(lambda x: [x[0], x[0]])([3.0, 4.0]) == [[1.0, 0.0], [1.0, 0.0]]


@pytest.mark.parametrize("result", [[1.0], (1.0, 2.0), None, "text", {"a": 1.0}, 1j, True, np.ones(1)])
@pytest.mark.parametrize("transform", [grad, value_and_grad, hessian, hvp])
def test_a_function_that_does_not_return_one_number(transform, result):
    with pytest.raises(TypeError, match=f"^{transform.__name__}: the function must return one number, found "):
        transform(lambda x: result)(1.0, *([1.0] if transform is hvp else []))


def test_closed_over_leaves_are_left_alone():
    w = Value(5.0)
    w.grad = 7.0
    h = w * 2
    for transform in (
        grad,
        jacobian,
        lambda f: lambda x: value_and_grad(f)(x)[1],
        lambda f: lambda x: vjp(f, x)[1](1.0),
    ):
        slope = transform(lambda x: x * h + w)(3.0)
        assert type(slope) is Value
        assert slope.data == 10.0
        assert w.grad == 7.0
    value, slope = jvp(lambda x: x * h, (3.0,), (1.0,))
    assert (value.data, slope.data, w.grad) == (30.0, 10.0, 7.0)
    slope = hvp(lambda x: x * x * h)(3.0, 1.0)
    assert (slope.data, w.grad) == (20.0, 7.0)


def test_a_result_depends_on_values_outside():
    w = Value(5.0)
    value, slope = value_and_grad(lambda x: w * w * x)(3.0)
    slope.backward()
    assert (value.data, w.grad) == (75.0, 10.0)
    w.zero_grad()
    value.backward()
    assert w.grad == 30.0
    w.zero_grad()
    second = hessian(lambda x: w * x[0] * x[1])([1.0, 2.0])
    second[0][1].backward()
    assert w.grad == 1.0
    frozen = Value(5.0, requires_grad=False)
    assert type(grad(lambda x: frozen * x)(3.0)) is float
    assert type(grad(lambda x: stop_gradient(w) * x)(3.0)) is float


def test_a_training_loop_over_closed_over_parameters():
    w, x0 = Value(1.0), 2.0
    y = grad(lambda x: w * x**3)(x0) - 6.0  # 3 w x**2 - 6
    (y * y).backward()
    assert w.grad == 2 * (12.0 - 6.0) * 12.0


# ---- modes and exceptions


def test_under_no_grad():
    f = lambda x: x**3  # noqa: E731
    w = Value(2.0)
    with no_grad():
        assert grad(f)(2.0) == 12.0
        assert value_and_grad(f)(2.0) == (8.0, 12.0)
        assert grad(grad(f))(2.0) == 12.0
        assert jvp(f, (2.0,), (1.0,)) == (8.0, 12.0)
        assert jacobian(lambda x: [f(x), x])(2.0) == [12.0, 1.0]
        assert hessian(f)(2.0) == 12.0
        assert hvp(f)(2.0, 1.0) == 12.0
        y, pull = vjp(f, 2.0)
        assert (y, pull(1.0)) == (8.0, 12.0)
        assert type(grad(lambda x: w * x)(3.0)) is float
        assert grad(f)(w) == 12.0
        assert not is_grad_enabled()
    assert pull(1.0) == 12.0
    y, pull = vjp(f, 2.0)
    with no_grad():
        assert pull(2.0) == 24.0


def test_no_grad_inside():
    def f(x):
        with no_grad():
            scale = x * x
        return scale * x

    assert grad(f)(3.0) == 9.0
    assert grad(no_grad()(lambda x: x * x))(3.0) == 0.0


class OopsError(Exception):
    pass


@pytest.mark.parametrize(
    "run",
    [
        lambda f: grad(f)(1.0),
        lambda f: value_and_grad(f)(1.0),
        lambda f: vjp(f, 1.0),
        lambda f: jvp(f, (1.0,), (1.0,)),
        lambda f: jacobian(f)(1.0),
        lambda f: hessian(f)(1.0),
        lambda f: hvp(f)(1.0, 1.0),
        lambda f: grad(lambda y: y * grad(f)(y))(1.0),
    ],
)
@pytest.mark.parametrize("error", [OopsError, KeyboardInterrupt])
def test_exceptions_restore_the_state(run, error):
    def fail(x):
        raise error("in f")

    for enabled in (True, False):
        before = _core.set_no_grad(not enabled)
        try:
            with pytest.raises(error, match="in f"):
                run(fail)
            assert is_grad_enabled() is enabled
            assert float(Value(2.0)) == 2.0  # no transform is under way any more
            assert grad(lambda x: x * x)(3.0) == 6.0
        finally:
            _core.set_no_grad(before)


def test_float_inside_a_transform_is_an_error():
    with pytest.raises(TypeError, match=r"^float\(\): a Value that is being differentiated would leave the graph"):
        grad(lambda x: x * float(x))(2.0)
    assert grad(lambda x: x * float(stop_gradient(x)))(2.0) == 2.0
    assert grad(lambda x: x * x.data)(2.0) == 2.0
    assert grad(lambda x: x * int(x) if f"{x:.1f}" == "2.0" else x)(2.0) == 2.0


# ---- nesting


def second_by(outer, inner):
    """d2/dx2 at 2 of x**5 by two transforms of scalars."""
    return outer(inner(lambda x: x**5))(2.0)


def by_jvp(f):
    return lambda x: jvp(f, (x,), (1.0,))[1]


def by_vjp(f):
    return lambda x: vjp(f, x)[1](1.0)


def by_value_and_grad(f):
    return lambda x: value_and_grad(f)(x)[1]


def by_list(f):
    """Through a jacobian with more results than inputs: forward mode."""
    return lambda x: jacobian(lambda y: [f(y), y, y])(x)[0]


FIRST = [grad, by_value_and_grad, by_vjp, by_jvp, jacobian, by_list]
SECOND = [hessian, lambda f: lambda x: hvp(f)(x, 1.0)]


@pytest.mark.parametrize("outer", FIRST)
@pytest.mark.parametrize("inner", FIRST)
def test_any_pair_of_first_derivatives(outer, inner):
    assert second_by(outer, inner) == 20.0 * 8.0
    # perturbations: d/dx [x * d/dy (x * y**2) at y = 2] = d/dx 4 x**2
    assert outer(lambda x: x * inner(lambda y: x * y * y)(2.0))(3.0) == 24.0
    # d/dx [d/dy (x + y) at y = x], whose inner derivative is 1
    assert outer(lambda x: x * inner(lambda y: x + y)(x))(3.0) == 1.0
    # d/dx [d/dy (y**2 * x) at y = x] = d/dx 2 x**2
    assert outer(lambda x: inner(lambda y: y * y * x)(x))(3.0) == 12.0
    # the inner function does not see its own variable at all
    assert outer(lambda x: inner(lambda y: x * x)(x))(3.0) == 0.0
    # exp: every derivative is the function
    assert outer(inner(pygrad.exp))(0.5) == pytest.approx(stdlib_math.exp(0.5), rel=1e-15)


@pytest.mark.parametrize("outer", FIRST + SECOND)
@pytest.mark.parametrize("inner", FIRST + SECOND)
def test_any_pair_of_any_order(outer, inner):
    order = 2 + (outer in SECOND) + (inner in SECOND)
    found = outer(inner(lambda x: x**6))(1.0)
    assert found == stdlib_math.perm(6, order)
    found = outer(inner(pygrad.sin))(0.3)
    assert found == pytest.approx(stdlib_math.sin(0.3 + order * stdlib_math.pi / 2), rel=1e-14)


@pytest.mark.parametrize("first", FIRST)
@pytest.mark.parametrize("second", FIRST)
@pytest.mark.parametrize("third", [grad, by_jvp, by_list])
def test_three_deep(first, second, third):
    assert first(second(third(lambda x: x**4)))(2.0) == 48.0
    found = first(lambda x: second(lambda y: third(lambda z: x * x * y * y * z * z)(x * y))(x))(2.0)
    # third: 2 x**2 y**2 * (x y) = 2 x**3 y**3; second at y = x: 6 x**3 x**2 = 6 x**5; first: 30 x**4
    assert found == 480.0


def test_fourth_derivative():
    d = lambda f: grad(f)  # noqa: E731
    assert d(d(d(d(lambda x: x**6))))(1.0) == 360.0
    assert d(d(d(d(pygrad.sin))))(0.7) == pytest.approx(stdlib_math.sin(0.7), rel=1e-14)
    assert d(d(d(d(pygrad.tanh))))(0.0) == pytest.approx(0.0, abs=1e-15)
    assert d(d(d(d(lambda x: pygrad.exp(2 * x)))))(0.5) == pytest.approx(16 * stdlib_math.e, rel=1e-14)
    assert d(d(d(d(lambda x: 1 / x))))(2.0) == 24.0 / 32.0


def test_differentiating_with_respect_to_two_levels():
    f = lambda x, y: x**2 * y**3  # noqa: E731
    assert grad(lambda x: grad(f, argnums=1)(x, 2.0))(3.0) == 2 * 3 * 3 * 4.0
    assert grad(lambda y: grad(f, argnums=0)(3.0, y))(2.0) == 2 * 3 * 3 * 4.0
    assert jacobian(lambda p: grad(lambda q: q[0] * q[1] * p[0])(p))([2.0, 3.0]) == [[3.0, 2.0], [4.0, 0.0]]


def test_nested_values_come_back_connected():
    x = Value(3.0)
    slope = grad(lambda v: v**3)(x)
    assert type(slope) is Value
    slope.backward()
    assert (slope.data, x.grad) == (27.0, 18.0)
    value, pull = vjp(lambda v: v * v, x)
    assert value.data == 9.0
    x.zero_grad()
    pull(Value(1.0)).backward()
    assert x.grad == 2.0
    c = Value(5.0)
    pulled = vjp(lambda v: v * v, 3.0)[1](c)
    pulled.backward()
    assert (pulled.data, c.grad) == (30.0, 6.0)
    t = Value(5.0)
    _, slope = jvp(lambda v: v * v, (3.0,), (t,))
    slope.backward()
    assert (slope.data, t.grad) == (30.0, 6.0)
    v = Value(2.0)
    found = hvp(lambda x: x**3)(3.0, v)
    found.backward()
    assert (found.data, v.grad) == (36.0, 18.0)


def test_hessian_and_hvp_against_the_analytic_ones():
    f = lambda x: x[0] ** 2 * x[1] + x[1] * pygrad.exp(x[2]) + x[0] * x[2]  # noqa: E731
    x, e = [2.0, 3.0, 0.0], 1.0
    expected = [[6.0, 4.0, 1.0], [4.0, 0.0, e], [1.0, e, 3.0 * e]]
    assert hessian(f)(x) == expected
    vector = [1.0, -2.0, 3.0]
    assert hvp(f)(x, vector) == [sum(h * v for h, v in zip(row, vector, strict=True)) for row in expected]
    by_forward = [jvp(grad(f), (x,), ([float(i == k) for k in range(3)],))[1] for i in range(3)]
    assert by_forward == expected
    assert jacobian(lambda p: [grad(f)(p), grad(f)(p)])(x) == [expected, expected]
    third = jacobian(hessian(f))(x)
    assert third[0][0] == [0.0, 2.0, 0.0]
    assert third[2][2] == [0.0, e, 3.0 * e]


polynomials = st.lists(st.integers(-3, 3), min_size=1, max_size=6)


@settings(max_examples=100, deadline=None)
@given(polynomials, st.integers(-2, 2), st.sampled_from(FIRST), st.sampled_from(FIRST))
def test_polynomials(coefficients, x, outer, inner):
    f = lambda v: functools.reduce(lambda total, c: total * v + c, coefficients, 0.0)  # noqa: E731
    n = len(coefficients) - 1
    second = sum(c * (n - k) * (n - k - 1) * x ** max(n - k - 2, 0) for k, c in enumerate(coefficients))
    assert outer(inner(f))(float(x)) == second


# ---- vjp and jvp


def test_vjp_structures():
    y, pull = vjp(lambda p, q: {"s": p[0] * q, "t": (p[1],)}, [2.0, 3.0], 5.0)
    assert y == {"s": 10.0, "t": (3.0,)}
    assert pull({"s": 1.0, "t": (100.0,)}) == ([5.0, 100.0], 2.0)
    assert pull({"s": 0.0, "t": (0.0,)}) == ([0.0, 0.0], 0.0)
    assert pull([1, np.float32(2.0)]) == ([5.0, 2.0], 2.0)
    with pytest.raises(ValueError, match="vjp: the result holds 2 numbers, the cotangent 1"):
        pull(1.0)


def test_jvp_structures():
    value, slope = jvp(lambda p: {"s": p["a"] * p["b"][0], "n": None}, ({"a": 2.0, "b": [3.0]},), ([1.0, 10.0],))
    assert (value, slope) == ({"s": 6.0, "n": None}, {"s": 3.0 + 20.0, "n": None})
    with pytest.raises(ValueError, match="jvp: primals hold 2 numbers, tangents 1"):
        jvp(lambda x, y: x * y, (1.0, 2.0), (1.0,))
    for wrong in ((1.0, (1.0,)), ((1.0,), 1.0), ("ab", (1.0,))):
        with pytest.raises(TypeError, match="jvp: primals and tangents must be tuples or lists"):
            jvp(lambda x: x, *wrong)


def test_hvp_errors():
    with pytest.raises(TypeError, match="hvp: needs the arguments of the function and a vector, found 1 in all"):
        hvp(lambda x: x)(1.0)
    with pytest.raises(ValueError, match="hvp: the argument holds 2 numbers, the vector 1"):
        hvp(lambda x: x[0])([1.0, 2.0], [1.0])


def test_forward_mode_through_masks():
    f = lambda x: pygrad.where(x > 0, pygrad.log(x) + pygrad.sqrt(x) + 1 / x, 3 * x)  # noqa: E731
    assert jvp(f, (0.0,), (1.0,)) == (0.0, 3.0)
    assert jacobian(lambda x: [f(x), f(x)])(0.0) == [3.0, 3.0]
    assert by_jvp(by_jvp(f))(0.0) == 0.0
    assert jvp(lambda x: 0.0 * pygrad.sqrt(x), (0.0,), (1.0,)) == (0.0, 0.0)


def test_custom_op_in_every_transform():
    square = custom_op(lambda a: a * a, lambda g, y, a: 2 * a * g, name="square")
    for found in arity_two(lambda x, y: square(x) * y).values():
        assert found == (12.0, 4.0)
    assert hessian(lambda x: square(x))(3.0) == 2.0
    only_first = custom_op(stdlib_math.sinh, lambda g, y, a: g * stdlib_math.cosh(a))
    cosh = stdlib_math.cosh(2.0)
    for found in arity_two(lambda x, y: only_first(x) * y).values():
        assert found == (3.0 * cosh, only_first(2.0))
    assert jacobian(lambda x: [only_first(x), x, x])(2.0) == [cosh, 1.0, 1.0]


def test_backward_fn_in_reverse_transforms():
    def triple(x):
        out = Value(3 * x.data, (x,))

        def step():
            x.grad += 3 * out.grad

        out.backward_fn = step
        return out

    assert grad(lambda x: triple(x) * x)(2.0) == 12.0
    assert jacobian(lambda x: [triple(x), x, x * x])(2.0) == [3.0, 1.0, 4.0]  # falls back to reverse mode
    with pytest.raises(pygrad.GraphError, match=r"jvp: a backward_fn .* cannot be run forwards"):
        jvp(triple, (2.0,), (1.0,))
    with pytest.raises(pygrad.GraphError, match="cannot be differentiated again"):
        grad(grad(triple))(2.0)


# ---- plain code


def test_loops_and_conditions():
    def newton_root(a):
        x = a
        while abs(x * x - a) > 1e-14 * a:
            x = 0.5 * (x + a / x)
        return x

    assert value_and_grad(newton_root)(2.0) == pytest.approx((2**0.5, 0.5 / 2**0.5), rel=1e-12)

    def piecewise(x):
        if x < 0:
            return -x
        elif x < 1:
            return x * x
        return 2 * x - 1

    assert [grad(piecewise)(x) for x in (-3.0, 0.5, 4.0)] == [-1.0, 1.0, 2.0]

    def collatz(x, n):
        for _ in range(n):
            x = x / 2 if int(x.data) % 2 == 0 else 3 * x + 1
        return x

    assert grad(collatz)(6.0, 3) == 0.5 * 3 * 0.5

    def recursive(x, n):
        return x if n == 0 else math.sin(recursive(x, n - 1))

    expected = 1.0
    value = 0.5
    for _ in range(20):
        expected *= stdlib_math.cos(value)
        value = stdlib_math.sin(value)
    assert value_and_grad(recursive)(0.5, 20) == pytest.approx((value, expected), rel=1e-14)


def test_sorting_and_builtins():
    f = lambda x: sum(w * v for w, v in zip([1, 10, 100], sorted(x), strict=True)) + max(x) - min(x)  # noqa: E731
    assert grad(f)([3.0, 1.0, 2.0]) == [101.0, 0.0, 10.0]


def rosenbrock(x):
    total = 0.0
    for a, b in itertools.pairwise(x):
        total += 100.0 * (b - a * a) ** 2 + (1.0 - a) ** 2
    return total


def test_scipy_minimize_takes_value_and_grad():
    start = np.full(10, -1.2)
    value, slope = value_and_grad(rosenbrock, as_values=True)(start)
    assert type(value) is float
    assert value == pytest.approx(scipy.optimize.rosen(start), rel=1e-14)
    assert slope == pytest.approx(scipy.optimize.rosen_der(start), rel=1e-13)
    found = scipy.optimize.minimize(value_and_grad(rosenbrock, as_values=True), start, jac=True, method="BFGS")
    assert found.success
    assert found.fun < 1e-9


def test_scipy_takes_hessian_and_hvp():
    start = np.array([-1.2, 1.0, 0.5, 2.0])
    assert hessian(rosenbrock, as_values=True)(start) == pytest.approx(scipy.optimize.rosen_hess(start), rel=1e-13)
    vector = np.array([1.0, -2.0, 0.5, 3.0])
    found = hvp(rosenbrock, as_values=True)(start, vector)
    assert found == pytest.approx(scipy.optimize.rosen_hess_prod(start, vector), rel=1e-13)
    result = scipy.optimize.minimize(
        value_and_grad(rosenbrock, as_values=True), [1.3, 0.7, 0.8, 1.9], jac=True,
        hessp=hvp(rosenbrock, as_values=True),
        method="Newton-CG",
    )  # fmt: skip
    assert result.x == pytest.approx(np.ones(4), abs=1e-4)


def test_scipy_root_takes_jacobian():
    f = lambda x: [x[0] + 2 * x[1] - 2, x[0] ** 2 + 4 * x[1] ** 2 - 4]  # noqa: E731
    found = scipy.optimize.root(f, [1.0, 2.0], jac=jacobian(f, as_values=True))
    assert found.success
    assert f(found.x) == pytest.approx([0.0, 0.0], abs=1e-9)


def test_threads_do_not_disturb_each_other():
    found = {}

    def run(k):
        for _ in range(50):
            with no_grad():
                found[k] = grad(grad(lambda x: x**k))(1.0)

    threads = [threading.Thread(target=run, args=(k,)) for k in range(2, 8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {k: float(k * (k - 1)) for k in range(2, 8)}
