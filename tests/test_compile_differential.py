"""Every transform of a compiled function against the same transform of the function: type, structure, number, error.

Left out is what docs/limits.md tells of: comparisons as results, arrays of float32 and of objects that hold no Value,
and what is not differentiated (arrays without as_values, ints that are given back).
"""

import collections
import dataclasses
from typing import Any

import numpy as np
import pytest
from compiled import same
from hypothesis import given, settings
from hypothesis import strategies as st

import pygrad
from pygrad import Value, grad, hessian, hvp, jacobian, jvp, no_grad, stop_gradient, value_and_grad, vjp
from pygrad.structures import flatten, map_structure


@dataclasses.dataclass
class Pair:
    a: Any
    b: Any = None


Point = collections.namedtuple("Point", "u v")


class Listed(list):
    pass


def energy(*args):
    """A number that depends on all in args, with second derivatives."""
    return sum((v * v * (k + 1) + v for k, v in enumerate(flatten(args))), 0.0)


def first(x):
    return next(iter(flatten(x)), 1.5)


RESULTS = {
    "number": energy,
    "int": lambda x: 3,
    "float": lambda x: 2.5,
    "numpy float": lambda x: np.float32(2.5),
    "numpy int": lambda x: np.int64(3),
    "floor": lambda x: int(first(x)),
    "bool": lambda x: True,
    "None": lambda x: None,
    "text": lambda x: "text",
    "the argument": lambda x: x,
    "list": lambda x: [energy(x), first(x), 3, 2.5],
    "nested": lambda x: [[energy(x), first(x)], [first(x) * 2, 1.0]],
    "ragged": lambda x: [[energy(x)], [first(x), 2.0]],
    "tuple": lambda x: (energy(x), np.float64(1.5), first(x)),
    "twice": lambda x: [first(x), energy(x), first(x)],
    "dict": lambda x: {
        "y": energy(x),
        "none": None,
        "text": "t",
        "true": True,
        "int": 7,
        "float": 1.25,
        "in": [first(x)],
    },
    "dataclass": lambda x: Pair(energy(x), [first(x), None]),
    "namedtuple": lambda x: Point(energy(x), 2),
    "subclass": lambda x: Listed([energy(x), 1]),
    "array": lambda x: np.array([energy(x), first(x)]),
    "array of none": lambda x: np.array(energy(x)),
    "array of ints": lambda x: np.array([1, 1000]),
    "array of floats": lambda x: np.array([[1.0, 2.0]]),
    "array of texts": lambda x: np.array(["a"]),
    "empty": lambda x: [],
    "empty array": lambda x: np.zeros((0, 2)),
    "pair": lambda x: (energy(x), {"first": first(x), "n": 3, "none": None, "np": np.float64(0.5), "x": x}),
    "several, and more": lambda x: (
        [energy(x), first(x)],
        (1, 2.0, None, np.int64(3), np.array([1, 1000]), first(x), True),
    ),
    "made": lambda x: [Value(2.0) * first(x), Value(3.0), stop_gradient(first(x)), Value(1.0, requires_grad=False)],
    "branch": lambda x: energy(x) if first(x) > 1 else first(x),
}

ARGNUMS = [0, -1, (0,), [0], range(1), np.int64(0), 1, (0, 0)]


def transforms_of(f, options, argnums):
    """By name, functions of the argument."""
    for transform in (grad, value_and_grad, jacobian, hessian):
        yield transform.__name__, transform(f, argnums, **options)
        yield transform.__name__ + " aux", transform(f, argnums, has_aux=True, **options)
    yield "hvp", lambda x: hvp(f, **options)(x, x)
    yield "vjp", lambda x: vjp(f, x, **options)[0]
    yield "pull", lambda x: (lambda y, pull: pull(y))(*vjp(f, x, **options))
    yield "vjp aux", lambda x: vjp(f, x, has_aux=True, **options)[::2]
    yield "jvp", lambda x: jvp(f, (x,), (x,), **options)
    yield "jvp aux", lambda x: jvp(f, (x,), (x,), has_aux=True, **options)
    yield "grad of grad", grad(grad(f, **options), argnums, **options)
    yield "jacobian of jacobian", jacobian(jacobian(f, **options), argnums, **options)
    yield "jacobian of value_and_grad", jacobian(value_and_grad(f, argnums, **options), **options)


numbers = st.one_of(
    st.sampled_from([0.5, 2.0, -1.25, 3, -2, True, None, "text"]),
    st.sampled_from([np.float64(1.75), np.float32(0.5), np.int64(4), Value(1.5, requires_grad=False)]),
)
arrays = st.one_of(
    st.sampled_from([(), (0,), (2,), (0, 3), (2, 0), (2, 2)]).map(
        lambda shape: np.arange(1.0, 1 + np.prod(shape)).reshape(shape)
    ),
    st.sampled_from(
        [np.array([1, 2]), np.array([1.5, 2.5], np.float32), np.arange(6.0).reshape(2, 3).T, np.array([True])]
    ),
)


def structures(leaves):
    return st.recursive(
        leaves,
        lambda inner: st.one_of(
            st.lists(inner, max_size=3),
            st.lists(inner, max_size=2).map(tuple),
            st.lists(inner, max_size=2).map(Listed),
            st.dictionaries(st.sampled_from("abc"), inner, max_size=2),
            st.builds(Pair, inner, inner),
            st.builds(Point, inner, inner),
        ),
        max_leaves=5,
    )


def outcome(call):
    try:
        return None, call()
    except (TypeError, ValueError) as error:
        return type(error), None


def agree(plain, compiled):
    """Both give the same, or both an error; zeros may differ in their signs where a derivative is one of one."""
    (error, found), (error_of_compiled, found_by_compiled) = outcome(plain), outcome(compiled)
    return (error is None) == (error_of_compiled is None) and same(found, found_by_compiled, exactly=False)


@settings(max_examples=80, deadline=None)
@given(
    structures(numbers).map(lambda x: (x, {})) | structures(numbers | arrays).map(lambda x: (x, {"as_values": True})),
    st.sampled_from(list(RESULTS)), st.sampled_from(ARGNUMS),
)  # fmt: skip
def test_any_transform_of_any_structure(drawn, result, argnums):
    (x, options), f = drawn, RESULTS[result]
    closer = map_structure(lambda v: float(v) / 2, x, array=lambda array, _: array / 2)
    sizes = []
    map_structure(lambda v: v, x, array=lambda array, _: sizes.append(array.size))
    compiled = transforms_of(pygrad.compile(f), options, argnums)
    for (name, plain), (_, fast) in zip(transforms_of(f, options, argnums), compiled, strict=True):
        if (" of " in name or "hessian" in name) and 0 in sizes:
            continue  # the nested lists of nothing that an inner transform makes tell no shape
        for at in (x, closer, x):
            assert agree(lambda: plain(at), lambda: fast(at)), (name, at)  # noqa: B023
        with no_grad():
            assert agree(lambda: plain(x), lambda: fast(x)), (name, x)  # noqa: B023


def several(x, y, n=2, *, scale=1.0, how="plain"):
    z = energy(x) * (energy(y) + 1.0) * scale * len(range(n))
    return z if how == "plain" else -z


def several_results(x, y, n=2, **options):
    return {"a": [several(x, y, n, **options), energy(y)], "n": n}


def several_and_more(x, y, n=2, *, scale=1.0, **options):
    return several(x, y, n, scale=scale, **options), {"more": [energy(x), n, None], "scale": scale}


@settings(max_examples=40, deadline=None)
@given(
    st.lists(structures(numbers), min_size=2, max_size=2),
    st.sampled_from([0, 1, -1, (0, 1), [1, 0], (1,), (0, 0), 5, "ab"]),
    st.sampled_from([{}, {"scale": 3.0}, {"how": "other"}, {"scale": 2.0, "how": "other"}]), st.booleans(),
)  # fmt: skip
def test_several_arguments(args, argnums, named, with_static):
    if with_static:
        args = [*args, 3]
    static = {"static": ("n", "how")} if with_static else {}
    for f in (several, several_results, several_and_more):
        fast, options = pygrad.compile(f, **static), {"has_aux": True} if f is several_and_more else {}
        for transform in (grad, value_and_grad, jacobian, hessian):
            plain, compiled = transform(f, argnums, **options), transform(fast, argnums, **options)
            if with_static and argnums == -1:
                with pytest.raises((TypeError, ValueError)):
                    compiled(*args, **named)
                continue
            for _ in range(2):
                assert agree(lambda: plain(*args, **named), lambda: compiled(*args, **named)), transform  # noqa: B023
        vector = args[0]
        assert agree(lambda: hvp(f)(*args, vector, **named), lambda: hvp(fast)(*args, vector, **named))  # noqa: B023


@pytest.mark.parametrize("result", RESULTS)
def test_within_graphs_and_captures(result):
    """The same numbers, and Values in the same places."""
    f = RESULTS[result]
    shape = lambda x: map_structure(lambda v: ("Value", v.data) if isinstance(v, Value) else v, x)  # noqa: E731
    for x in (2.5, [1.5, 2.0], {"a": (1.25, None), "b": True}):
        leaves = map_structure(Value, x)
        compiled = transforms_of(pygrad.compile(f), {}, 0)
        for (name, plain), (_, fast) in zip(transforms_of(f, {}, 0), compiled, strict=True):
            assert agree(lambda: shape(plain(leaves)), lambda: shape(fast(leaves))), name  # noqa: B023
            scaled = lambda t: lambda s: t(map_structure(lambda v: v * s, x))  # noqa: B023, E731
            total = lambda t: lambda s: energy(scaled(t)(s))  # noqa: B023, E731
            assert agree(lambda: value_and_grad(total(plain))(1.5), lambda: value_and_grad(total(fast))(1.5)), name  # noqa: B023
            assert agree(lambda: pygrad.compile(scaled(plain))(1.5), lambda: pygrad.compile(scaled(fast))(1.5)), name  # noqa: B023


@pytest.mark.parametrize("result", RESULTS)
def test_map_is_the_lanes_one_by_one(result):
    f = pygrad.compile(RESULTS[result])
    lanes = np.array([0.5, 2.5, 1.5])
    for name, fast in transforms_of(f, {}, 0):
        if not isinstance(fast, type(f)):
            continue
        error, alone = outcome(lambda: [fast(x) for x in lanes.tolist()])  # noqa: B023
        if error is not None:
            with pytest.raises(error):
                fast.map(lanes)
            continue
        columns = [np.array(column, dtype=float) for column in zip(*map(flatten, alone), strict=True)]
        found = _arrays(fast.map(lanes))
        assert all(np.allclose(a, b, rtol=1e-14, atol=0) for a, b in zip(found, columns, strict=True)), name


def _arrays(x):
    """The columns in what map gave."""
    if isinstance(x, np.ndarray):
        return list(x.reshape(len(x), -1).T) if x.dtype == float else []
    if dataclasses.is_dataclass(x):
        x = vars(x)
    if isinstance(x, dict):
        x = list(x.values())
    return [column for item in x for column in _arrays(item)] if isinstance(x, (list, tuple)) else []
