"""What a transform is given and gives back: nested structures and arrays, as arguments and as results.

Next: pygrad/structures.py, which takes them apart.
"""

import collections
import dataclasses
import functools
from fractions import Fraction
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pygrad
from pygrad import Value, grad, hessian, hvp, jacobian, jvp, value_and_grad, vjp


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
