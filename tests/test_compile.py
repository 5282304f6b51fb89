"""pygrad.compile: calls, arguments, results, what is frozen and what is read. Next: test_compile_*.py."""

import collections
import dataclasses
import functools
import gc
import itertools
import weakref

import numpy as np
import pytest
from compiled import counted, on_values, same

import pygrad
from pygrad import CaptureError, Value, math

INF, NAN = float("inf"), float("nan")


@dataclasses.dataclass
class Point:
    x: float
    y: object = None


Pair = collections.namedtuple("Pair", "first second")


def model(x, y):
    return [x * y + math.sin(x), pygrad.exp(y) / x]


# ---- calls


def test_the_function_runs_once_for_a_structure():
    f, runs = counted(model)
    fast = pygrad.compile(f)
    numbers = (0.5, -2.0, 0.0, -0.0, 1e300, INF, -INF, NAN)
    for x, y in itertools.product(numbers, repeat=2):
        assert same(fast(x, y), on_values(model, x, y))
    assert len(runs) == 1
    assert fast.stats()["variants"] == fast.stats()["structures"] == 1


def test_a_decorator_with_and_without_options():
    @pygrad.compile
    def f(x):
        """Twice."""
        return 2 * x

    @pygrad.compile(as_values=True, variants=3)
    def g(xs):
        return [2 * x for x in xs]

    assert (f(1.5), g(np.array([1.0, 2.0]))) == (3.0, [2.0, 4.0])
    assert (f.__name__, f.__doc__, repr(f)) == ("f", "Twice.", "<compiled f>")
    assert isinstance(f, pygrad.Compiled)
    assert pygrad.compile(f) is f


def test_methods_and_other_callables():
    class Model:
        def __init__(self, weight):
            self.weight = weight

        @pygrad.compile
        def f(self, x, power=1):
            return self.weight * x * power

        def __call__(self, x):
            return x + 1

    one, other = Model(2.0), Model(3.0)
    assert [one.f(5.0), other.f(5.0), one.f(6.0), Model.f(other, 1.0), one.f(5.0, power=2.0)] == [10, 15, 12, 3, 20]
    assert pygrad.grad(one.f)(5.0) == 2.0
    assert pygrad.compile(one)(1.0) == 2.0
    assert pygrad.compile(functools.partial(model, 2.0))(1.0) == on_values(lambda y: model(2.0, y), 1.0)
    assert pygrad.compile(pygrad.tanh)(0.5) == math.tanh(0.5)


def test_capture_ahead_of_time():
    f, runs = counted(model)
    fast = pygrad.compile(f)
    with pytest.raises(RuntimeError, match=r"^compile: model has not been captured yet; call it, or use capture\("):
        fast.program  # noqa: B018
    assert fast.capture(1.0, 2.0) is fast
    assert len(runs) == 1
    assert same(fast(3.0, 4.0), on_values(model, 3.0, 4.0))
    assert len(runs) == 1
    assert pygrad.grad(lambda x: x).__name__ == "<lambda>"


def test_a_function_of_nothing_and_one_of_no_result():
    assert pygrad.compile(lambda: 3.0)() == 3.0
    for result in (None, "text", True, [], (), {}, 7):
        found = pygrad.compile(lambda x, result=result: result)(1.0)
        assert (found, type(found)) == (result, type(result))


# ---- arguments


ARGUMENTS = [
    ([1.0, 2.0], (3.0, [4.0, 5.0])),
    ({"a": 1.0, "b": [2.0, (3.0,)]}, 2.0),
    (Point(1.0, Point([2.0, 3.0])), Pair(4.0, {"c": 5.0})),
    ([], 2.0, (), {}),
    (1, np.float64(2.0), np.float32(0.1), np.int64(3)),
    ([1, 2.0], True, None, "text"),
    (collections.OrderedDict(a=1.0, b=2.0), [[[[1.0]]]]),
    (Value(1.5, requires_grad=False), 2.0),
]


def every(*args):
    """Something of each number, in the structure of the arguments."""
    return pygrad.structures.map_structure(lambda v: v * 3 + v / 7, args)


@pytest.mark.parametrize("args", ARGUMENTS, ids=str)
def test_arguments_in_any_nesting(args):
    f, runs = counted(every)
    fast = pygrad.compile(f)
    for _ in range(3):
        assert same(fast(*args), on_values(every, *args))
    assert len(runs) == 1


@pytest.mark.parametrize("shape", [(3,), (2, 3), (0,), (), (2, 1, 2)])
def test_arrays_as_values(shape):
    array = np.arange(1.0, 1.0 + np.prod(shape)).reshape(shape)
    f, runs = counted(every)
    fast = pygrad.compile(f, as_values=True)
    others = array.astype(np.float32), array.astype(int), np.asfortranarray(array), np.repeat(array[None], 2, 0)[0]
    for given in (array, array * 2, *others, array.astype(object)):
        assert same(fast(given, [given, (2.0, {"a": given})]), on_values(every, given, [given, (2.0, {"a": given})]))
    assert len(runs) == {(): 4, (0,): 1}.get(shape, 2)  # of dtype object, of one dimension, a number: other structures
    with pytest.raises(
        TypeError, match=r"^compile: found an array of shape .*; pass as_values=True to compile over its"
    ):
        pygrad.compile(every)(array)


def test_what_is_no_number_belongs_to_the_structure():
    f, runs = counted(lambda x, how, flag: x * 2 if how == "twice" and flag else x)
    fast = pygrad.compile(f)
    for _ in range(2):
        assert [fast(3.0, "twice", True), fast(3.0, "once", True), fast(3.0, "twice", False)] == [6.0, 3.0, 3.0]
    assert len(runs) == 3
    text = r"^compile: an argument holds \{1\} of type set, which is no number, and is not hashable"
    with pytest.raises(TypeError, match=text):
        fast(3.0, {1}, True)


def test_what_hangs_on_a_dataclass_belongs_to_the_structure():
    fast = pygrad.compile(lambda p: p.x * (2 if p.mode == "twice" else 1))
    for mode, expected in (("twice", 6.0), ("once", 3.0)):
        point = Point(3.0)
        point.mode = mode
        assert fast(point) == expected


def test_arrays_of_objects_are_told_apart_by_what_they_hold():
    fast = pygrad.compile(lambda a: a[0] if a[1] is None else a[1] * 10, as_values=True)
    one, other = np.array([1.0, None], dtype=object), np.array([None, 2.0], dtype=object)
    assert [fast(one), fast(other), fast(one)] == [1.0, 20.0, 1.0]
    masked = pygrad.compile(lambda xs, mask: sum((x for x, m in zip(xs, mask, strict=True) if m), 0.0), as_values=True)
    xs = np.array([1.0, 2.0, 4.0])
    assert [masked(xs, xs > k) for k in (0, 1, 3, 0)] == [7.0, 6.0, 4.0, 7.0]


def test_ints_and_floats_are_one_structure():
    f, runs = counted(lambda xs: xs[0] / xs[1])
    fast = pygrad.compile(f)
    assert [fast([1.0, 2.0]), fast([1, 2.0]), fast([np.float64(1), 2])] == [0.5] * 3
    assert len(runs) == 1


def test_keyword_arguments():
    def f(x, *, scale=1.0, shift=0.0):
        return x * scale - shift

    fast = pygrad.compile(f)
    for kwargs in ({}, {"scale": 2.0}, {"shift": 3.0, "scale": 2.0}, {"scale": 5.0, "shift": 7.0}):
        assert fast(4.0, **kwargs) == f(4.0, **kwargs)
    with pytest.raises(TypeError, match="unexpected keyword"):
        fast(4.0, other=1.0)
    assert fast(4.0, scale=2.0) == 8.0


# ---- static arguments


@pytest.mark.parametrize("static", [1, "n", ["n"], (1,), {1, "n"}])
def test_static_arguments_by_position_or_name(static):
    fast = pygrad.compile(lambda x, n: [x * k for k in range(n)], static=static)
    assert [fast(2.0, 2), fast(2.0, n=3), fast(3.0, 2)] == [[0, 2], [0, 2, 4], [0, 3]]


def test_static_arguments_are_told_apart_by_type_and_sign():
    f, runs = counted(lambda x, c: x * (type(c) is float) + math.copysign(1.0, c if c else 0.0 * c))
    fast = pygrad.compile(f, static=1)
    found = [fast(2.0, c) for _ in range(2) for c in (1, 1.0, True, 0.0, -0.0)]
    assert found == 2 * [1.0, 3.0, 1.0, 3.0, 1.0]
    assert len(runs) == 5
    for _ in range(3):
        fast(2.0, NAN)
    assert len(runs) == 6
    nested = pygrad.compile(lambda x, c: x * sum(c[0]) if type(c[0][0]) is int else x, static=1)
    assert [nested(1.0, ([2, 3],)), nested(1.0, ([2.0, 3.0],)), nested(1.0, ([2, 4],))] == [5.0, 1.0, 6.0]
    arrays = pygrad.compile(lambda x, c: x * float(c.sum()), static=1)
    assert [arrays(1.0, np.array([1.0, k])) for k in (1.0, 2.0, 1.0)] == [2.0, 3.0, 2.0]


@pytest.mark.parametrize("static", [-1, 1.5, [None], True])
def test_static_that_names_nothing(static):
    with pytest.raises(TypeError):
        pygrad.compile(lambda x: x, static=static)


def test_what_cannot_be_compiled():
    with pytest.raises(TypeError, match=r"^compile: needs a function, found 3$"):
        pygrad.compile(3)
    for options in ({"as_values": True}, {"backend": "cc"}):
        with pytest.raises(
            TypeError, match=r"^compile: <compiled model> is compiled already; give the options where it"
        ):
            pygrad.compile(pygrad.compile(model), **options)


# ---- results


def test_results_are_fresh():
    ints, truths = np.array([1, 2]), np.array([True])

    def f(x):
        return [x], (x, [2.0]), {"a": [x]}, Point(x, [x]), np.array([x, 2 * x]), ints, truths, np.array([1.0, 2.0])

    fast = pygrad.compile(f)
    first = fast(1.0)
    second = fast(2.0)
    assert same(first, on_values(f, 1.0))
    first[0].append(5.0)
    first[1][1][0] = first[2]["a"][0] = first[3].x = first[4][0] = first[7][0] = 9.0
    first[5][0], first[6][0] = 9, False
    first[3].y.clear()
    assert same(second, on_values(f, 2.0))
    assert same(fast(1.0), on_values(f, 1.0))
    flat = pygrad.compile(lambda xs: [x * 2 for x in xs])
    assert flat([1.0]) is not flat([1.0])


def test_ints_and_texts_in_results():
    fast = pygrad.compile(
        lambda x: {"floor": int(x), "name": "f", "np": np.float32(0.1), "x": x, "none": None, "c": 2.5}
    )
    for x in (2.5, 3.5, 2.7):
        found = fast(x)
        assert found == {"floor": int(x), "name": "f", "np": float(np.float32(0.1)), "x": x, "none": None, "c": 2.5}
        assert list(map(type, found.values())) == [int, str, float, float, type(None), float]


def test_a_comparison_comes_out_as_a_number():
    found = pygrad.compile(lambda x: x > 1)(2.0)
    assert (found, type(found)) == (1.0, float)


def test_arguments_given_back_are_not_those_of_the_call():
    xs = [1.0, 2.0]
    fast = pygrad.compile(lambda xs: xs)
    assert fast(xs) == xs
    assert fast(xs) is not xs


class Holder:
    def __init__(self, held):
        self.held = held


@pytest.mark.parametrize("hold", [lambda x: {x}, lambda x: iter([x]), lambda x: (v for v in [x]), collections.deque,
                                  lambda x: collections.deque([x]), Holder], ids=range(6))  # fmt: skip
def test_what_hides_values_is_no_result(hold):
    if hold is collections.deque:
        assert pygrad.compile(lambda x: (x, hold([1])))(1.0) == (1.0, hold([1]))
        return
    with pytest.raises(CaptureError, match=r"^compile: f returned \w+, in which a replay could not renew the numbers"):

        @pygrad.compile
        def f(x):
            return [x, hold(x * 2)]

        f(1.0)


# ---- what is read from elsewhere


def test_what_f_closes_over_is_frozen_but_for_values_that_require_a_gradient():
    weight, constant, frozen, array = Value(2.0), 3.0, Value(5.0, requires_grad=False), np.array([7.0])
    fast = pygrad.compile(lambda x: [x * weight, x * constant, x * frozen, x * array[0]])
    gradient = pygrad.jacobian(fast)
    assert (fast(1.0), gradient(1.0)) == ([2, 3, 5, 7], [2, 3, 5, 7])
    weight.data, constant, frozen.data, array[0] = 20.0, 30.0, 50.0, 70.0
    assert (fast(1.0), gradient(1.0)) == ([20, 3, 5, 7], [20, 3, 5, 7])


def test_values_from_outside_are_read_at_each_call_in_every_transform():
    w, u = Value(2.0), Value(3.0)

    def f(xs, k=1.0):
        if xs[0] * w > 100:
            return xs[0]
        return math.sin(xs[0] * w) * xs[1] * u * w + k * xs[0]

    fast = pygrad.compile(f)
    at, along = [0.3, 0.7], [1.0, -2.0]
    derived = [pygrad.grad(fast), pygrad.value_and_grad(fast), pygrad.jacobian(fast), pygrad.hessian(fast)]
    product = pygrad.hvp(fast)
    for w.data, u.data in ((2.0, 3.0), (-1.0, 0.5), (1000.0, 1.0), (2.0, 3.0)):
        assert same(fast(at), on_values(f, at))
        plain = [pygrad.grad, pygrad.value_and_grad, pygrad.jacobian, pygrad.hessian]
        numbers = w.data, u.data

        def fixed(xs, k=1.0, numbers=numbers):
            w, u = numbers
            return xs[0] if xs[0] * w > 100 else math.sin(xs[0] * w) * xs[1] * u * w + k * xs[0]

        for compiled, transform in zip(derived, plain, strict=True):
            assert same(compiled(at), transform(fixed)(at), exactly=False)
        assert same(product(at, along, k=4.0), pygrad.hvp(fixed)(at, along, k=4.0), exactly=False)
        assert same(pygrad.jvp(fast, (at,), (along,)), pygrad.jvp(fixed, (at,), (along,)), exactly=False)
        assert same(pygrad.vjp(fast, at)[1](3.0), pygrad.vjp(fixed, at)[1](3.0), exactly=False)


def test_a_value_made_during_the_capture_is_a_constant():
    made = []

    def f(x):
        if not made:
            made.append(Value(2.0))
        return x * made[0]

    fast = pygrad.compile(f)
    assert fast(3.0) == 6.0
    made[0].data = 5.0
    assert fast(3.0) == 6.0


def test_side_effects_happen_at_a_capture_alone():
    log = []
    fast = pygrad.compile(lambda x: log.append(x * 2) or x + 1)
    assert [fast(1.0), fast(2.0), fast(3.0)] == [2.0, 3.0, 4.0]
    assert [v.data for v in log] == [2.0]


# ---- errors, and calls after them


def test_a_number_that_leaves_is_an_error_with_its_line():
    fast = pygrad.compile(lambda x: x * float(x))
    for _ in range(2):
        with pytest.raises(CaptureError, match=r"^float\(x\), at .*test_compile\.py:\d+ in <lambda>: it depends on"):
            fast(2.0)


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_an_error_in_f_and_another_call(error):
    def f(x, fail=None):
        y = x * 2
        if fail or x > 10:
            raise error("no")
        return y

    fast = pygrad.compile(f)
    for _ in range(2):
        with pytest.raises(error):
            fast(1.0, "fail")
        assert not pygrad._core.is_capturing()
    assert fast(1.0) == 2.0
    for _ in range(2):
        with pytest.raises(error):
            fast(11.0)
        assert fast(3.0) == 6.0
    assert fast.program is not None
    assert fast.stats()["variants"] == 1


def test_ops_of_the_user_s_are_called_back():
    cube = pygrad.custom_op(lambda a: a**3, lambda g, y, a: g * 3 * a * a, name="cube")
    f = lambda x, y: cube(x * y) + cube(y)  # noqa: E731
    fast = pygrad.compile(f)
    assert fast(2.0, 3.0) == 243.0
    assert pygrad.grad(fast, (0, 1))(2.0, 3.0) == pygrad.grad(f, (0, 1))(2.0, 3.0)
    assert pygrad.hessian(fast, (0, 1))(2.0, 3.0) == pygrad.hessian(f, (0, 1))(2.0, 3.0)
    assert pygrad.jvp(fast, (2.0, 3.0), (1.0, 0.5)) == pygrad.jvp(f, (2.0, 3.0), (1.0, 0.5))
    values = fast.map(np.array([2.0, 1.0, -1.0]), 3.0, threads=2)
    assert values.tolist() == [fast(x, 3.0) for x in (2.0, 1.0, -1.0)]
    assert pygrad.compile(lambda x: (cube(x), x)[1])(2.0) == 2.0


def test_a_gradient_on_floats_serves_first_derivatives_of_programs():
    calls = []

    def slope(g, y, a, b):
        calls.append(a)
        return g * math.cos(float(a)) * float(b), g * math.sin(float(a))

    wave = pygrad.custom_op(lambda a, b: math.sin(a) * b, slope, name="wave")
    fast = pygrad.grad(pygrad.compile(wave), (0, 1))
    assert fast(0.5, 2.0) == pygrad.grad(wave, (0, 1))(0.5, 2.0)
    assert fast(0.7, 2.0) == pygrad.grad(wave, (0, 1))(0.7, 2.0)
    with pytest.raises(TypeError, match=r"^wave: its gradient serves first derivatives alone in a compiled function"):
        pygrad.hessian(pygrad.compile(wave), (0, 1))(0.5, 2.0)
    branching = pygrad.custom_op(abs, lambda g, y, a: g if a > 0 else -g, name="branching")
    assert pygrad.grad(pygrad.compile(branching)).map(np.array([2.0, -3.0])).tolist() == [1.0, -1.0]


def test_what_an_op_of_the_user_s_raises_comes_through():
    inverse = pygrad.custom_op(lambda a: 1 / a, lambda g, y, a: -g * y * y, name="inverse")
    fast = pygrad.compile(lambda x: 1 + inverse(x))
    assert fast(2.0) == 1.5
    for call in (lambda: fast(0.0), lambda: fast.map(np.array([1.0, 0.0, 2.0]), threads=2)):
        with pytest.raises(ZeroDivisionError):
            call()
    assert fast(4.0) == 1.25
    wrong = pygrad.custom_op(lambda a: "text" if a > 1 else a, lambda g, y, a: g, name="wrong")
    with pytest.raises(TypeError, match=r"^wrong: must be a real number, found 'text' of type str$"):
        pygrad.compile(lambda x: wrong(x) * 1)(0.5) and pygrad.compile(lambda x: wrong(x) * 1).capture(0.5)(2.0)


def test_what_is_dropped_is_freed_without_the_collector():
    def in_a_graph(f):
        return pygrad.grad(lambda x: f(x) * x)(2.0)

    gc.collect()
    gc.disable()
    try:
        fast = pygrad.compile(lambda x: x * x)
        slope = pygrad.grad(fast)
        assert (fast(3.0), slope(3.0), in_a_graph(fast)) == (9.0, 6.0, 12.0)
        left = [weakref.ref(fast), weakref.ref(slope)]
        del fast, slope
        assert [ref() for ref in left] == [None, None]
    finally:
        gc.enable()


# ---- looking at it


def test_the_text_of_a_program():
    fast = pygrad.compile(lambda x, y: math.tanh(x * y + 1.0) if x > 0 else y)
    fast(1.0, 2.0)
    assert str(fast.program) == (
        "v0 = input 0\nv1 = input 1\nv2 = 0\nv3 = greater v0 v2\nv4 = mul v0 v1\nv5 = 1\nv6 = add v4 v5\n"
        "v7 = tanh v6\nguard v3 == 1.0\nreturn v7"
    )
    fast(-1.0, 2.0)
    assert str(fast.program).endswith("guard v3 == 0.0\nreturn v1")
    assert fast.stats()["variants"] == 2
    assert (fast.stats()["inputs"], fast.stats()["outputs"], fast.stats()["guards"]) == (2, 1, 1)
