"""Captures: what Python asks of a number in a run that is to be replayed becomes a node or a guard.

`replayed` of captures.py computes a captured graph anew for other inputs: what eager code gives there it must give too,
as long as the guards hold.
"""

import itertools
import math as stdlib_math

import numpy as np
import pytest
from captures import capture, holds, kinds, replayed, same_bits, text_of

import pygrad
from pygrad import Value, _core, math, no_grad

INF, NAN = float("inf"), float("nan")


# ---- comparisons


@pytest.mark.parametrize(
    ("compare", "row", "reflected"),
    [
        (lambda a, b: a < b, "less", "greater"),
        (lambda a, b: a <= b, "less_equal", "greater_equal"),
        (lambda a, b: a > b, "greater", "less"),
        (lambda a, b: a >= b, "greater_equal", "less_equal"),
        (lambda a, b: a == b, "equal", "equal"),
        (lambda a, b: a != b, "not_equal", "not_equal"),
    ],
)
def test_comparisons_are_recorded(compare, row, reflected):
    for a, b in itertools.product((-1.0, 2.0, NAN), repeat=2):
        (x, y), found, guards = capture(
            lambda x, y, b=b: [compare(x, y), compare(x, b), compare(b, x), compare(x, np.float64(b))], a, b
        )
        assert not guards
        assert [t.op for t in found] == [row, row, reflected, row]
        assert [t.data for t in found] == [compare(a, b), compare(a, b), compare(b, a), compare(a, b)]
        assert all(t.requires_grad for t in found)
        assert _core.operands(found[0]) == (x, y)
        assert type(compare(x, y)) is bool


def test_comparisons_with_ints():
    _, found, _ = capture(lambda x: [x < 4, x == True, x == 2**60], 3.0)  # noqa: E712
    assert [(t.op, t.data) for t in found] == [("less", 1.0), ("equal", 0.0), ("equal", 0.0)]
    for huge in (2**53 + 1, 10**400):
        assert text_of(lambda x, huge=huge: x < huge) == (
            f"less: the int {huge} is no float exactly, and a replay compares floats; write the float that is meant"
        )
    x = Value(2.0**53)
    assert x < 2**53 + 1  # outside of a capture exactly, as a float does it
    assert x < 10**400


def test_comparisons_with_what_is_no_number_are_those_of_python():
    _, found, guards = capture(lambda x: [x == None, x != "text", x == [x]], 3.0)  # noqa: E711
    assert found == [False, True, False]
    assert not guards
    assert text_of(lambda x: x < "text", error=TypeError).startswith("'<' not supported")


def test_comparisons_of_what_does_not_require_a_gradient_are_bools():
    frozen = Value(3.0, requires_grad=False)
    _, found, _ = capture(lambda x: [frozen < 4, frozen == frozen], 1.0)
    assert found == [True, True]
    assert all(type(t) is bool for t in found)


def test_truths_are_combined():
    for a, b in itertools.product((1.0, 3.0), repeat=2):
        _, found, guards = capture(lambda x, y: [t := x > 2, u := y > 2, t & u, t | u, t ^ u, ~t, t & True, False | u,
                                                 True ^ t, (t & u) | ~t], a, b)  # fmt: skip
        t, u = a > 2, b > 2
        assert [v.data for v in found] == [t, u, t and u, t or u, t != u, not t, t, u, not t, (t and u) or not t]
        assert [v.op for v in found[2:6]] == ["logical_and", "logical_or", "not_equal", "logical_not"]
        assert not guards


@pytest.mark.parametrize(
    ("run", "text"),
    [
        (lambda x: x & x, "unsupported operand type(s) for &: 'pygrad.Value' and 'pygrad.Value'"),
        (lambda x: pygrad.less(x, 1.0) | 1, "unsupported operand type(s) for |: 'pygrad.Value' and 'int'"),
        (lambda x: 2.0 ^ x, "unsupported operand type(s) for ^: 'float' and 'pygrad.Value'"),
        (lambda x: ~x, "bad operand type for unary ~: 'pygrad.Value'"),
    ],
)
def test_other_values_are_not_combined(run, text):
    assert text_of(run, error=TypeError) == text
    with pytest.raises(TypeError) as caught:
        run(Value(3.0))
    assert str(caught.value) == text


def test_truths_of_rows_are_combined_outside_too():
    x = Value(3.0)
    truth = pygrad.less(x, 4.0) & ~pygrad.less(x, 1.0)
    assert (truth.data, truth.op) == (1.0, "logical_and")


# ---- guards


def test_bool_takes_a_guard():
    def f(x):
        if x > 2:
            return x * 2
        return x

    (x,), y, guards = capture(f, 3.0)
    assert kinds(guards) == [("greater", 1.0, "bool")]
    assert holds(guards, [x], [5.0])
    assert not holds(guards, [x], [1.0])
    assert replayed([y], [x], [5.0]) == [10.0]
    assert kinds(capture(f, 1.0)[2]) == [("greater", 0.0, "bool")]


def test_bool_of_another_node_compares_it_with_zero():
    for number in (2.0, 0.0, -0.0, NAN):
        _, found, guards = capture(lambda x: bool(x * 1.0), number)
        assert found is bool(number)
        assert kinds(guards) == [("not_equal", float(bool(number)), "bool")]
        assert _core.operands(guards[0][0])[1] == 0.0


def test_what_asks_for_truths():
    def f(x, y, z):
        count = 0
        while x < 10:
            x = x * 2
            count += 1
        both = (x > y) and (y > 0)
        either = (x < y) or (y > z)
        assert x != y
        return [min(x, y), max(y, z), *sorted([z, y, x]), count, both, either, 5 in [x], x in [x]]

    leaves, found, guards = capture(f, 3.0, 4.0, 1.0)
    assert [g[2] for g in guards] == ["bool"] * len(guards)
    assert found[5] == 2
    assert all(type(item) is bool for item in found[8:])
    for numbers in ([3.5, 4.0, 1.0], [2.6, 7.0, -3.0], [8.0, 1.0, 3.0], [3.0, 1.0, 4.0]):
        expected = f(*map(Value, numbers))
        if holds(guards, leaves, numbers):
            assert replayed(found[:5], leaves, numbers) == [v.data for v in expected[:5]]
        else:
            assert kinds(capture(f, *numbers)[2]) != kinds(guards)
    assert holds(guards, leaves, [3.5, 4.0, 1.0])
    assert not holds(guards, leaves, [8.0, 1.0, 3.0])


@pytest.mark.parametrize(
    ("ask", "row", "kind"),
    [
        (int, "trunc", "int"), (stdlib_math.trunc, "trunc", "trunc"), (stdlib_math.floor, "floor", "floor"),
        (stdlib_math.ceil, "ceil", "ceil"), (round, "round", "round"), (math.trunc, "trunc", "trunc"),
        (math.floor, "floor", "floor"), (math.ceil, "ceil", "ceil"),
    ],
)  # fmt: skip
def test_ints_take_a_guard(ask, row, kind):
    for number in (2.5, -2.5, -0.3, 0.0, 3.7, 1e300):
        (x,), found, guards = capture(lambda x: ask(x * 1.0), number)
        assert type(found) is int
        assert found == ask(number)
        assert kinds(guards) == [(row, float(found), kind)]
    assert holds(guards, [x], [1e300])
    for number, error in ((NAN, ValueError), (INF, OverflowError), (-INF, OverflowError)):

        def f(x, error=error):
            with pytest.raises(error):
                ask(x)

        (x,), _, guards = capture(f, number)  # an error that f handles is a branch as well
        assert len(guards) == 1
        assert holds(guards, [x], [number])
        assert not holds(guards, [x], [1.0])


def test_guards_come_in_order_and_under_no_grad_too():
    def f(x):
        with no_grad():
            first = int(x)
            if x * 2 > 5:
                return first
        return None

    _, _, guards = capture(f, 3.0)
    assert kinds(guards) == [("trunc", 3.0, "int"), ("greater", 1.0, "bool")]


# ---- predicates


def close(a, b):
    return math.isclose(a, b, rel_tol=1e-3, abs_tol=1e-6)


@pytest.mark.parametrize("predicate", [math.isnan, math.isinf, math.isfinite, lambda x: close(x, 1.0),
                                       lambda x: close(2.0, x), lambda x: math.isclose(x, x * 1.0)])  # fmt: skip
def test_predicates_of_math_are_guarded(predicate):
    numbers = (0.0, 1.0, 1.0005, 1.002, 2.0, -1.0, 1e-7, INF, -INF, NAN)
    for number in numbers:
        (x,), found, guards = capture(predicate, number)
        assert type(found) is bool
        assert found is predicate(number)
        assert [g[2] for g in guards] == ["bool"]
        for other in numbers:
            assert holds(guards, [x], [other]) is (predicate(other) is found)


def test_isclose_checks_its_tolerances():
    assert text_of(lambda x: math.isclose(x, 1.0, rel_tol=-1.0)).startswith(
        "x.data: it depends on what is being captured"
    )


@pytest.mark.parametrize("ufunc", [np.isnan, np.isinf, np.isfinite, np.signbit, np.logical_not])
def test_unary_predicates_of_numpy_are_recorded(ufunc):
    for number in (0.0, -0.0, 2.0, -2.0, INF, -INF, NAN):
        _, (found, plain), guards = capture(lambda x: (ufunc(x * 1.0), ufunc(Value(2.0, requires_grad=False))), number)
        assert type(found) is Value
        assert found.data == float(ufunc(number))
        assert not isinstance(plain, Value)
        assert not guards


@pytest.mark.parametrize(
    "ufunc",
    [np.equal, np.not_equal, np.less, np.less_equal, np.greater, np.greater_equal, np.logical_and, np.logical_or,
     np.logical_xor],
)  # fmt: skip
def test_binary_predicates_of_numpy_are_recorded(ufunc):
    for a, b in itertools.product((0.0, 1.0, 2.0, NAN), repeat=2):
        _, found, guards = capture(
            lambda x, y, a=a, b=b: [ufunc(x, y), ufunc(x, b), ufunc(np.float64(a), y), *ufunc(x, np.array([b, b])),
                                    *ufunc(np.array([x, a], dtype=object), y)], a, b
        )  # fmt: skip
        assert [v.data if isinstance(v, Value) else v for v in found] == [float(ufunc(a, b))] * 7
        assert all(type(v) is Value for v in found)
        assert not guards


def test_truths_meet_bools_of_numpy():
    _, found, _ = capture(lambda x: [np.bool_(True) & (x > 2), (x > 2) | np.bool_(False), ~(x > 2),
                                     *(np.array([True, False]) & (x > 2)), *np.invert(np.array([x > 2]))],
                          3.0)  # fmt: skip
    assert [(v.op, v.data) for v in found] == [
        ("logical_and", 1.0), ("logical_or", 1.0), ("logical_not", 0.0), ("logical_and", 1.0), ("logical_and", 0.0),
        ("logical_not", 0.0),
    ]  # fmt: skip
    with pytest.raises(TypeError, match=r"np.bitwise_and: is not defined for a Value"):
        np.bitwise_and(Value(1.0), np.bool_(True))


def test_object_arrays_compare_by_guards():
    def f(x, y):
        array = np.array([x, y], dtype=object)
        return (array < 2.0).tolist(), np.sort(array)[0], np.maximum(array, 2.0)[0]

    leaves, (found, least, most), guards = capture(f, 1.0, 3.0)
    assert found == [True, False]
    assert [g[2] for g in guards] == ["bool"] * len(guards)
    assert holds(guards, leaves, [1.5, 4.0])
    assert not holds(guards, leaves, [3.0, 1.0])
    assert replayed([least, most], leaves, [1.5, 4.0]) == [1.5, 2.0]


def test_where_takes_a_truth():
    leaves, y, guards = capture(lambda x: np.where(x > 2, x * 3, pygrad.where(x > 1, x, 0.0)), 3.0)
    assert not guards
    assert [replayed([y], leaves, [n])[0] for n in (3.0, 1.5, 0.5)] == [9.0, 1.5, 0.0]


def test_modf_in_a_capture():
    leaves, (fraction, whole), guards = capture(math.modf, 2.5)
    assert not guards
    for number in (2.5, -2.5, -0.0, 7.0, INF, -INF, NAN):
        found = replayed([fraction, whole], leaves, [number])
        assert all(map(same_bits, found, stdlib_math.modf(number)))
    fraction.backward()
    assert leaves[0].grad == 1.0
