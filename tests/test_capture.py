"""Captures: what a run that is to be replayed records, guards and refuses.

`replayed` computes a captured graph anew for other inputs, row by row: what eager code gives there it must give too,
bit for bit, as long as the guards hold.
"""

import contextlib
import copy
import gc
import itertools
import math as stdlib_math
import os
import pickle
import random
import sys
import threading

import numpy as np
import pytest
from domains import FEW_SPECIALS, ORDERS, in_domain, samples

import pygrad
from pygrad import (
    CaptureError,
    Value,
    _core,
    custom_op,
    detect_anomaly,
    enable_grad,
    math,
    no_grad,
    stop_gradient,
    structures,
)
from pygrad.ops import FUNCTIONS, TABLE

INF, NAN = float("inf"), float("nan")
HERE = os.path.abspath(__file__)


def capture(f, *numbers):
    """f run on new leaves as a capture: (leaves, result, guards)."""
    leaves = [Value(number) for number in numbers]
    result, guards = _core.run_capture(lambda: f(*leaves), leaves)
    assert _core.capture_depth() == 0
    return leaves, result, guards


def replayed(results, leaves, numbers):
    """The numbers of the results, had the leaves these numbers."""
    found = dict(zip(map(id, leaves), numbers, strict=True))
    stack = [r for r in results if isinstance(r, Value)]
    while stack:
        node = stack[-1]
        operands = _core.operands(node)
        missing = [o for o in operands if isinstance(o, Value) and id(o) not in found]
        if missing:
            stack += missing
            continue
        stack.pop()
        if id(node) in found:
            continue
        given = [found[id(o)] if isinstance(o, Value) else o for o in operands]
        found[id(node)] = computed(node, given)
    return [found[id(r)] if isinstance(r, Value) else r for r in results]


def computed(node, given):
    if node.op == "leaf":
        return node.data
    if node.op == "sum":
        return pygrad.sum(given)
    if node.op == "dot":
        return pygrad.dot(given[::2], given[1::2])
    op = _core.custom_of(node)
    return op.value(*given) if op else _core.evaluate(node.op, *given)


def holds(guards, leaves, numbers):
    return all(same(x, expected) for (_, expected, _), x in
               zip(guards, replayed([g[0] for g in guards], leaves, numbers), strict=True))  # fmt: skip


def same(x, y):
    return x == y or (x != x and y != y)


def same_bits(x, y):
    return (x != x and y != y) or (x == y and stdlib_math.copysign(1, x) == stdlib_math.copysign(1, y))


def kinds(guards):
    return [(node.op, expected, kind) for node, expected, kind in guards]


def text_of(run, *numbers, error=CaptureError):
    """The text of the error that run(*leaves) raises in a capture, without its place, which is checked."""
    with pytest.raises(error) as caught:
        capture(run, *(numbers or (3.0,)))
    assert type(caught.value) is error
    assert _core.capture_depth() == 0
    assert not _core.is_capturing()
    text = str(caught.value)
    if f", at {HERE}:" not in text:
        return text
    what, rest = text.split(f", at {HERE}:")
    line, rest = rest.split(" in ", 1)
    assert int(line) > 0
    assert rest.split(": ", 1)[0] in ("<lambda>", run.__name__)
    return f"{what}: {rest.split(': ', 1)[1]}"


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


# ---- what leaves the graph

REUSE = "it depends on what is being captured, and a replay would reuse the number of this run; "
REPEAT = "a replay would not do it again; "
TRANSFORM = "use pygrad.grad or value_and_grad here, or differentiate the whole"
FLOAT = f"float(x): {REUSE}use pygrad.math in place of math, and the Value itself in place of a float"
OUTSIDE = Value(2.0)


@pytest.mark.parametrize(
    ("run", "text"),
    [
        (float, FLOAT),
        (complex, FLOAT),
        (stdlib_math.sin, FLOAT),
        (lambda x: np.asarray(x, dtype=float), FLOAT),
        (np.float64, FLOAT),
        (lambda x: np.zeros(2).__setitem__(0, x), FLOAT),
        (lambda x: (x * 2).data, f"x.data: {REUSE}compute with the Value itself, or return it as a further result"),
        (lambda x: round(x, 2), f"round(x, n): {REUSE}use pygrad.round(x * 10**n) / 10**n"),
        (lambda x: x.grad, f"x.grad: {REUSE}{TRANSFORM}"),
        (lambda x: (x * x).backward(), f"x.backward(): {REPEAT}{TRANSFORM}"),
        (lambda x: x.zero_grad(), f"x.zero_grad(): {REPEAT}{TRANSFORM}"),
        (lambda x: setattr(x, "grad", 0.0), f"x.grad = ...: {REPEAT}{TRANSFORM}"),
        (
            lambda x: setattr(x, "data", 1.0),
            f"x.data = ...: {REPEAT}make a new Value, or return the number and write it outside",
        ),
        (
            lambda x: setattr(Value(1.0), "data", 2.0),
            f"x.data = ...: {REPEAT}make a new Value, or return the number and write it outside",
        ),
        (
            lambda x: setattr(x, "requires_grad", False),
            f"x.requires_grad = False: {REPEAT}use stop_gradient(x) for a constant, and set it outside",
        ),
        (
            lambda x: setattr(Value(1.0, requires_grad=False), "requires_grad", True),
            f"x.requires_grad = True: {REPEAT}use stop_gradient(x) for a constant, and set it outside",
        ),
        (copy.copy, f"copy.copy(x) of a leaf: {REUSE}use +x, which depends on x"),
        (copy.deepcopy, f"copy.deepcopy(x): {REUSE}use the Value itself: computing with it does not change it"),
        (
            lambda x: copy.deepcopy([x + 1]),
            f"copy.deepcopy(x): {REUSE}use the Value itself: computing with it does not change it",
        ),
        (lambda x: pickle.dumps(x + 1), f"pickling x: {REUSE}return it as a further result, and pickle that"),
        (
            lambda x: Value(3.0, (x,)),
            "Value(data, parents): a replay can neither compute data nor call backward_fn; make the op with "
            "pygrad.custom_op",
        ),
        (
            lambda x: Value(3.0, (Value(1.0), x + 1), requires_grad=False),
            "Value(data, parents): a replay can neither compute data nor call backward_fn; make the op with "
            "pygrad.custom_op",
        ),
        (math.ulp, f"math.ulp(x): {REUSE}a multiple of abs(x) may do"),
        (lambda x: math.nextafter(1.0, x), f"math.nextafter(x, y): {REUSE}x * (1 + 2**-52) may do"),
        (
            math.frexp,
            f"math.frexp(x): {REUSE}pygrad.floor(pygrad.log2(abs(x))) + 1 is the exponent, but for rounding",
        ),
        (lambda x: np.isclose(x, 1.0), f"np.isclose: {REUSE}use pygrad.math.isclose"),
        (lambda x: float(OUTSIDE), FLOAT),  # what was there before is outside as well
        (lambda x: float(OUTSIDE * 2.0 + Value(1.0)), FLOAT),
        (lambda x: float(x.detach()), FLOAT),
        (lambda x: float(no_grad(lambda: x + 1)()), FLOAT),
        (lambda x: float((x > 1) & True), FLOAT),
    ],
)
def test_what_leaves_the_graph_is_an_error(run, text):
    assert text_of(run) == text
    with contextlib.suppress(pygrad.GraphError, TypeError):
        run(Value(3.0))  # and is none outside
    OUTSIDE.grad = 0.0


def test_an_error_says_where():
    def f(x):
        return float(x)

    with pytest.raises(TypeError) as caught:
        capture(f, 3.0)
    line = f.__code__.co_firstlineno + 1
    assert str(caught.value).startswith(f"float(x), at {HERE}:{line} in f: it depends on")


def test_text_hash_and_shape_stay():
    def f(x):
        y = x * 2
        assert x in {x}
        return repr(y), str(y), f"{y:.2f}", f"{y}", y.op, y.requires_grad, y.parents == (x,), hash(x) == hash(x)

    _, found, guards = capture(f, 1.5)
    assert found == ("Value(data=3.0, grad=0.0)",) * 2 + ("3.00", "Value(data=3.0, grad=0.0)", "mul", True, True, True)
    assert not guards


# ---- constants: leaves made during the capture


def test_what_is_computed_from_new_leaves_alone_is_a_constant():
    def f(x):
        v = Value(3.0)
        w = v * v + pygrad.sum([v, 1.0])
        assert float(w) == w.data == 13.0
        assert w > 12
        assert int(w) == round(w) == 13
        assert round(w, 1) == 13.0
        assert copy.copy(v).data == 3.0
        assert copy.deepcopy(w).data == pickle.loads(pickle.dumps(w)).data == 13.0
        w.backward()
        assert v.grad == 7.0
        v.zero_grad()
        v.requires_grad = False
        y = Value(5.0, (v, w))
        y.backward_fn = lambda: None
        assert math.ulp(w) == math.frexp(13.0)[0] * 0 + stdlib_math.ulp(13.0)
        assert math.modf(Value(2.5, requires_grad=False)) == (0.5, 2.0)
        loaded = pickle.loads(pickle.dumps(Value(2.0)))
        assert float(loaded) == 2.0
        return x * float(w)

    leaves, y, guards = capture(f, 2.0)
    assert not guards
    assert replayed([y], leaves, [3.0]) == [39.0]


def test_dependence_is_found_through_any_operand():
    def f(x):
        v = Value(1.0)
        chain = v
        for _ in range(1000):
            chain = chain + 1.0
        assert chain.data == 1001.0
        for bad in (
            chain + x,
            pygrad.fma(chain, chain, x),
            pygrad.sum([chain, x]),
            pygrad.dot([chain], [x]),
            x + chain,
        ):
            with pytest.raises(CaptureError):
                float(bad)
            with pytest.raises(CaptureError):  # as found before
                float(bad * 1.0)
        assert float(chain) == 1001.0
        return None

    capture(f, 1.0)


def test_a_leaf_frozen_after_use_is_outside_still():
    w = Value(3.0)
    y = w * 2
    w.requires_grad = False

    def f(x):
        float(y)

    assert text_of(f) == FLOAT


def test_a_released_graph_is_outside():
    w = Value(3.0)
    y = w * 2
    (y * y).backward(retain_graph=False)
    assert text_of(lambda x: float(y)) == FLOAT


def test_deep_graphs_and_many_questions():
    def f(x):
        y = x
        for _ in range(100_000):
            y = y * 0.99999
            if y < 0:
                break
        v = Value(1.0)
        for _ in range(100_000):
            v = v + 1.0
        assert bool(v)
        return y

    _, _, guards = capture(f, 1.0)
    assert len(guards) == 100_000


# ---- what cuts a graph


CUTS = [
    lambda x: x.detach(),
    stop_gradient,
    no_grad(lambda x: x * 1.0),
    no_grad(lambda x: pygrad.sum([x])),
    no_grad(lambda x: math.sin(x) + x - math.sin(x)),
    pygrad.frozen,
]


@pytest.mark.parametrize("cut", CUTS)
def test_a_cut_graph_is_no_constant(cut):
    (x,), (y, at), guards = capture(lambda x: (x * cut(x * x), cut(x)), 2.0)
    assert not guards
    assert at.op == "frozen"
    assert at.requires_grad
    assert replayed([y], [x], [3.0]) == pytest.approx([27.0])
    y.backward()
    assert x.grad == pytest.approx(4.0)  # of the first factor alone


def test_enable_grad_records_again():
    def f(x):
        with no_grad():
            y = x * 2
            with enable_grad():
                z = x * 3
        return y, z

    (x,), (y, z), _ = capture(f, 2.0)
    assert (y.op, z.op) == ("frozen", "mul")
    (y + z).backward()
    assert x.grad == 3.0


def test_truths_and_steps_are_not_frozen_again():
    def f(x):
        with no_grad():
            return (
                (x < 3) & (x > 1),
                pygrad.floor(x),
                (x < 3).detach(),
                stop_gradient(2.0),
                Value(1.0, requires_grad=False) * 2,
            )

    _, (both, floor, truth, two, constant), _ = capture(f, 2.0)
    assert [both.op, floor.op, truth.op] == ["logical_and", "floor", "less"]
    assert two == 2.0
    assert not constant.requires_grad


def test_custom_ops_are_recorded():
    cube = custom_op(lambda a: a**3, lambda g, y, a: g * 3 * a * a, name="cube")

    def f(x):
        with no_grad():
            cut = cube(x)
        return cube(x), cut, pygrad.grad(cube)(x), pygrad.jvp(cube, (x,), (1.0,))[1]

    (x,), (y, cut, slope, tangent), guards = capture(f, 2.0)
    assert not guards
    assert (y.op, cut.op) == ("cube", "frozen")
    assert replayed([y, cut, slope, tangent], [x], [3.0]) == [27.0, 27.0, 27.0, 27.0]


def test_an_op_of_the_user_s_may_take_numbers_of_what_does_not_require_a_gradient():
    _, y, _ = capture(lambda x: x * Value(2.0, requires_grad=False).data, 3.0)
    assert y.data == 6.0


# ---- anomalies


def test_anomalies_are_found_during_a_capture():
    def f(x):
        with detect_anomaly():
            y = (x - 1).detach() < 3
            return pygrad.log(x), y

    _, (y, truth), _ = capture(f, 2.0)
    assert (y.op, truth.op) == ("log", "less")
    with pytest.raises(pygrad.AnomalyError, match=r"log: forward gave -inf from operands \(0.0,\), at .* in f$"):
        capture(f, 0.0)
    with detect_anomaly():
        capture(lambda x: x.detach(), INF)


# ---- transforms inside a capture


def points_of(row, count):
    highest = ORDERS.get(row.name, 0)
    rng = random.Random(row.name)
    few = FEW_SPECIALS if row.arity < 3 else FEW_SPECIALS[::2]
    found = [p for p in itertools.product(few, repeat=row.arity) if not highest or in_domain(row, p)]
    return rng.sample(found, min(count, len(found))) + samples(row, count, seed=3)


@pytest.mark.parametrize("row", TABLE.values(), ids=TABLE)
def test_gradients_of_every_row_replay_bit_for_bit(row):
    """On whichever branch of the formulas the capture was, and with whichever zeros."""
    op = FUNCTIONS[row.name]
    every = tuple(range(row.arity))

    def first(*operands):
        value, gradients = pygrad.value_and_grad(op, every)(*operands)
        return [value, *gradients]

    def forward(*operands):
        ones = tuple(float(i + 1) for i in every)
        return list(pygrad.jvp(op, operands, ones))

    points = points_of(row, 40)
    for f in (first, forward):
        expected = [f(*point) for point in points]
        for start in points[::13]:
            leaves, found, guards = capture(f, *start)
            assert not guards
            for point, numbers in zip(points, expected, strict=True):
                if row.name == "copysign" and point[1] != point[1]:
                    continue
                again = replayed(found, leaves, point)
                assert all(map(same_bits, again, numbers)), (f.__name__, start, point, again, numbers)


@pytest.mark.parametrize("row", TABLE.values(), ids=TABLE)
def test_second_derivatives_of_every_row_replay(row):
    op = FUNCTIONS[row.name]
    points = [p for p in points_of(row, 16) if row.name != "copysign" or p[1] == p[1]]

    def f(*operands):
        if row.domain[0] == "N":
            return [pygrad.grad(pygrad.grad(lambda x: op(operands[0], x)))(operands[1])]
        return [h for rows in pygrad.hessian(lambda x: op(*x))(list(operands)) for h in rows]

    expected = [f(*point) for point in points]
    for start in points[::11]:
        leaves, found, guards = capture(f, *start)
        assert not guards
        for point, numbers in zip(points, expected, strict=True):
            again = replayed(found, leaves, point)
            assert all(same(x, y) for x, y in zip(again, numbers, strict=True)), (start, point, again, numbers)


def rosenbrock(x):
    return pygrad.sum([100 * (b - a * a) ** 2 + (1 - a) ** 2 for a, b in itertools.pairwise(x)])


def kinks(x):
    return math.prod([pygrad.relu(v) + pygrad.maximum(v, 0.5) * abs(v) for v in x]) + math.hypot(*x)


@pytest.mark.parametrize("f", [rosenbrock, kinks], ids=["rosenbrock", "kinks"])
@pytest.mark.parametrize(
    "transform",
    [
        lambda f, x: pygrad.grad(f)(x),
        lambda f, x: [pygrad.value_and_grad(f)(x)[0], *pygrad.value_and_grad(f)(x)[1]],
        lambda f, x: structures.flatten(pygrad.hessian(f)(x)),
        lambda f, x: structures.flatten(pygrad.jacobian(lambda v: [f(v), v[0] * f(v)])(x)),
        lambda f, x: pygrad.jacobian(lambda v: [f([v, *x[1:]]), v * v])(x[0]),
        lambda f, x: list(pygrad.jvp(f, (x,), ([1.0, 2.0, 3.0],))),
        lambda f, x: list(pygrad.jvp(f, ([1.0, 2.0, 3.0],), (x,))),
        lambda f, x: [pygrad.vjp(f, x)[0], *pygrad.vjp(f, x)[1](2.0)],
        lambda f, x: pygrad.vjp(f, [1.0, 2.0, 3.0])[1](x[0]),
        lambda f, x: pygrad.hvp(f)(x, [1.0, 0.0, -1.0]),
        lambda f, x: [pygrad.grad(lambda v: v * f([v, *x[1:]]))(2.0)],
        lambda f, x: [pygrad.grad(lambda v: v * stop_gradient(f(x)))(2.0)],
        lambda f, x: no_grad(pygrad.grad(f))(x),
        lambda f, x: list(no_grad(lambda: pygrad.jvp(f, (x,), ([1.0, 2.0, 3.0],)))()),
        lambda f, x: structures.flatten(no_grad(pygrad.hessian(f))(x)),
        lambda f, x: [no_grad(pygrad.value_and_grad(f))(x)[0]],
    ],
)  # fmt: skip
def test_transforms_inside_a_capture_replay(f, transform):
    def run(*x):
        return transform(f, list(x))

    start = (0.7, -1.2, 2.1)
    leaves, found, guards = capture(run, *start)
    assert not guards
    assert all(v.requires_grad for v in found if isinstance(v, Value))  # some second derivatives are 0.0 everywhere
    for numbers in (start, (-0.3, 0.2, 0.6), (1.5, 2.5, -0.1)):
        assert replayed(found, leaves, numbers) == [float(v) for v in run(*numbers)]


def test_transforms_under_no_grad_give_what_no_gradient_goes_through():
    def f(x):
        with no_grad():
            value, slope = pygrad.value_and_grad(lambda v: v * v * v)(x)
            row = pygrad.jacobian(lambda v: [v * v, v])(x)
            other = pygrad.grad(lambda v: v * x)(5.0)
        return [value, slope, *row[:1], other]

    (x,), found, _ = capture(f, 2.0)
    assert [v.op for v in found] == ["frozen"] * 4
    assert replayed(found, [x], [3.0]) == [27.0, 27.0, 6.0, 3.0]
    pygrad.sum(found).backward()
    assert x.grad == 0.0


def test_transforms_of_constants_give_floats():
    def f(x):
        value, slope = pygrad.value_and_grad(lambda v: v * v)(3.0)
        assert (type(value), type(slope)) == (float, float)
        assert pygrad.jacobian(lambda v: [v, v * v])(2.0) == [1.0, 4.0]
        assert pygrad.hessian(lambda v: v[0] * v[1])([2.0, 3.0]) == [[0.0, 1.0], [1.0, 0.0]]
        assert pygrad.jvp(pygrad.relu, (3.0,), (1.0,)) == (3.0, 1.0)
        return x * slope

    assert capture(f, 1.0)[1].data == 6.0


def test_an_extra_result_that_depends_on_the_outside_stays_a_node():
    def f(x):
        slope, extra = pygrad.grad(lambda v: (v * v, {"outer": x * 2, "inner": v + 1}), has_aux=True)(3.0)
        assert slope == 6.0
        assert extra["inner"] == 4.0
        return extra["outer"]

    leaves, y, _ = capture(f, 1.0)
    assert replayed([y], leaves, [5.0]) == [10.0]


def test_float_inside_a_transform_inside_a_capture_keeps_its_own_error():
    text = text_of(lambda x: pygrad.grad(lambda v: v * float(v))(3.0), error=TypeError)
    assert text.startswith("float(): a Value that is being differentiated")


# ---- nesting, threads, and what is left behind


def test_captures_nest():
    def outer(x):
        before = Value(2.0)  # a constant here, outside of the inner one

        def inner():
            assert _core.capture_depth() == 2
            made = Value(5.0)
            assert float(made) == 5.0
            with pytest.raises(CaptureError):
                float(before)
            if before > 1 and made > 1 and x * before > 1 and leaf > 1:
                return leaf * before * x
            return None

        leaf = Value(7.0)
        y, guards = _core.run_capture(inner, [leaf])
        assert [n.op for n, _, _ in guards] == ["greater"] * 3
        assert _core.operands(guards[2][0])[0] is leaf
        assert float(before) == 2.0
        assert float(leaf) == 7.0
        return y

    (x,), y, guards = capture(outer, 3.0)
    assert y.data == 42.0
    assert len(guards) == 1  # of x * before > 1 alone
    assert replayed([guards[0][0]], [x], [0.1]) == [0.0]


def test_leaves_of_an_inner_capture_are_constants_of_the_outer_one():
    def outer(x):
        def inner():
            return Value(4.0) * 2

        made, _ = _core.run_capture(inner, [])
        assert float(made) == 8.0
        return made

    capture(outer, 1.0)


def test_begin_and_end():
    x = Value(3.0)
    _core.begin_capture([x])
    try:
        assert _core.is_capturing()
        assert bool(x > 1)
        assert _core.depends_on_outside(x * 2)
        assert not _core.depends_on_outside(Value(1.0))
        assert not _core.depends_on_outside(Value(1.0, requires_grad=False))
        assert not _core.depends_on_outside(3.0)
    finally:
        guards = _core.end_capture()
    assert kinds(guards) == [("greater", 1.0, "bool")]
    assert not _core.is_capturing()
    assert not _core.depends_on_outside(x)
    with pytest.raises(RuntimeError, match=r"^capture: none is under way in this thread$"):
        _core.end_capture()


@pytest.mark.parametrize("bad", [3.0, Value(1.0, requires_grad=False), Value(1.0) * 2])
def test_inputs_are_leaves(bad):
    with pytest.raises(TypeError, match=r"^capture: input 1 must be a leaf that requires a gradient, found "):
        _core.run_capture(lambda: None, [Value(1.0), bad])
    with pytest.raises(TypeError):
        _core.begin_capture((Value(1.0),))
    assert _core.capture_depth() == 0


def test_an_exception_leaves_nothing_behind():
    class Stop(BaseException):
        pass

    def f(x):
        assert x > 1
        _core.begin_capture([])  # and never ended
        with no_grad():
            raise Stop

    for error in (Stop, KeyboardInterrupt):
        with pytest.raises(Stop if error is Stop else KeyboardInterrupt):
            capture(f if error is Stop else lambda x: (_ for _ in ()).throw(KeyboardInterrupt), 3.0)
        assert _core.capture_depth() == 0
        assert not _core.is_capturing()
    x = Value(2.0)
    assert (x < 3) is True
    assert float(x) == 2.0


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_a_signal_leaves_nothing_behind():
    import signal

    class Alarm(Exception):  # noqa: N818
        pass

    def ring(*_):
        raise Alarm

    def f(x):
        while True:
            x = x * 1.0
            bool(x > 1)

    before = signal.signal(signal.SIGALRM, ring)
    try:
        for _ in range(20):
            signal.setitimer(signal.ITIMER_REAL, 0.002)
            with pytest.raises(Alarm):
                capture(f, 3.0)
            assert _core.capture_depth() == 0
    finally:
        signal.signal(signal.SIGALRM, before)


def test_captures_are_of_one_thread():
    inside, done = threading.Event(), threading.Event()
    seen = {}

    def other():
        inside.wait(10)
        v = Value(3.0)
        seen["truth"] = v < 4
        seen["float"] = float(v)
        seen["capturing"] = _core.is_capturing()
        leaves, y, guards = capture(lambda x: x * 2 if x > 1 else x, 5.0)
        seen["replayed"] = replayed([y], leaves, [6.0]), len(guards)
        done.set()

    thread = threading.Thread(target=other)
    thread.start()

    def f(x):
        inside.set()
        assert done.wait(10)
        assert x > 1
        return x

    _, _, guards = capture(f, 3.0)
    thread.join()
    assert seen == {"truth": True, "float": 3.0, "capturing": False, "replayed": ([12.0], 1)}
    assert len(guards) == 1


def test_a_capture_leaks_nothing():
    def f(x, y):
        v = Value(3.0)
        assert bool(v * 2 > 1)
        if x > y and int(x * 3) and math.isfinite(y):
            x = x + pygrad.grad(pygrad.relu)(y)
        with contextlib.suppress(CaptureError):
            float(x)
        with no_grad():
            return _core.run_capture(lambda: x.detach() * v > 0, [Value(1.0)])

    def run():
        for _ in range(50):
            capture(f, 3.0, 2.0)
            with contextlib.suppress(ZeroDivisionError):
                capture(lambda x: [bool(x > 1), 1 // 0], 3.0)

    run()
    gc.collect()
    before = _core.heap_stats()[1]
    run()
    gc.collect()
    assert _core.heap_stats()[1] == before


def test_inputs_and_leaves_are_held_during_a_capture_alone():
    x = Value(3.0)
    count = sys.getrefcount(x)
    _core.begin_capture([x])
    assert sys.getrefcount(x) == count + 1
    v = Value(1.0)
    assert bool(v * 2 > x) is False
    _core.end_capture()
    assert sys.getrefcount(x) == count
    assert sys.getrefcount(v) == sys.getrefcount(x)


def test_nothing_is_unusual_afterwards():
    x = Value(3.0)
    capture(lambda v: v > 1, 2.0)
    assert (x * 2).detach().requires_grad is False
    assert type(x < 4) is bool
    y = x * 2
    y.backward()
    x.data = 4.0
    assert (x.grad, x.data) == (2.0, 4.0)
