"""scan and cond: what users see of them, in programs and outside. Random ones are in test_random_loops.py."""

from __future__ import annotations

import dataclasses
import itertools
import math

import numpy as np
import pytest

import pygrad
from pygrad import AnomalyError, CaptureError, Value, cond, scan, where

# ---- scan


def compound(rate, years, checkpoint=False):
    return scan(lambda money, _: (money * (1 + rate), money), 100.0, length=years, checkpoint=checkpoint)


def test_a_loop_of_floats_is_a_loop():
    carry, ys = scan(lambda c, x: (c + x, c * x), 1.0, [1.0, 2.0, 3.0])
    assert carry == 7.0
    assert ys == [1.0, 4.0, 12.0]
    assert scan(lambda c, x: (c + x, None), 1.0, iter([1.0, 2.0])) == (4.0, None)
    assert scan(lambda c, _: (2 * c, None), 1, length=5) == (32, None)


def test_reverse_begins_with_the_last_and_leaves_ys_in_their_order():
    for f in (lambda x: scan(lambda c, v: (c - 2 * v * x, c), x, [1.0, 2.0, 3.0], reverse=True)[1],):
        assert f(1.0) == [1.0 - 6 - 4, 1.0 - 6, 1.0]
        assert pygrad.compile(f)(1.0) == f(1.0)


@dataclasses.dataclass
class State:
    position: float
    speed: list


def test_structures_of_every_kind_are_carried_and_stacked():
    def swing(start, pulls):
        def step(state, pull):
            speed = state.speed[0] - 0.1 * state.position + pull["by"][0]
            after = State(state.position + 0.1 * speed, [speed])
            return after, {"at": after.position, "twice": (after.position, 2 * speed)}

        return scan(step, State(start, [0.0]), [{"by": (p,)} for p in pulls])

    pulls = [0.1, -0.2, 0.3]
    wanted, fast = swing(1.0, pulls), pygrad.compile(swing)(1.0, pulls)
    assert fast == wanted
    assert isinstance(fast[0], State)
    assert list(fast[1][0]) == ["at", "twice"]


def test_arrays_are_carried_and_gone_through():
    xs = np.arange(6.0).reshape(3, 2)

    def f(a):
        return scan(lambda c, x: (0.5 * c + x, c.sum()), np.array(a), xs)

    carry, ys = f([1.0, 2.0])
    assert carry.tolist() == [0.125 + 1.0 + 4.0, 0.25 + 0.25 + 1.5 + 5.0]
    assert ys == [3.0, 2.5, 6.25]
    fast = pygrad.compile(lambda a: list(f(a)[0]))
    assert fast([1.0, 2.0]) == carry.tolist()
    assert pygrad.jacobian(fast)([1.0, 2.0]) == [[0.125, 0.0], [0.0, 0.125]]


def test_the_gradient_in_every_way_that_it_is_asked_for():
    f = lambda rate: compound(rate, 5)[0]  # noqa: E731
    slope = 500 * 1.05**4
    for g in (
        pygrad.grad(f), pygrad.grad(pygrad.compile(f)), pygrad.compile(pygrad.grad(f)),
        lambda r: pygrad.value_and_grad(pygrad.compile(f))(r)[1],
        lambda r: pygrad.jvp(pygrad.compile(f), (r,), (1.0,))[1],
        lambda r: pygrad.vjp(pygrad.compile(f), r)[1](1.0), lambda r: pygrad.jacobian(pygrad.compile(f))(r),
        pygrad.compile(lambda r: pygrad.jvp(f, (r,), (1.0,))[1]),
    ):  # fmt: skip
        assert g(0.05) == pytest.approx(slope, rel=1e-14)
    curvature = 2000 * 1.05**3
    for h in (
        pygrad.hessian(pygrad.compile(f)), pygrad.compile(pygrad.hessian(f)),
        pygrad.grad(pygrad.compile(pygrad.grad(f))),
    ):  # fmt: skip
        assert h(0.05) == pytest.approx(curvature, rel=1e-14)


def test_a_loop_stays_one_step_in_the_program():
    counts = {}
    for years in (10, 100_000):
        fast = pygrad.grad(pygrad.compile(lambda rate, years=years: compound(rate, years)[0]))
        fast(1e-6)
        counts[years] = fast.stats()["instructions"]
    assert counts[10] == counts[100_000] < 20


@pytest.mark.parametrize("steps", [1, 2, 3, 4, 10, 99, 100, 101, 1000])
@pytest.mark.parametrize("reverse", [False, True])
def test_checkpoints_change_memory_and_no_bit(steps, reverse):
    def f(x, checkpoint):
        carry, ys = scan(
            lambda c, t: (pygrad.sin(c) + 0.1 * t * x, c * t), x, [0.1 * t for t in range(steps)], reverse=reverse,
            checkpoint=checkpoint,
        )  # fmt: skip
        return carry * ys[0] + ys[-1]

    plain, saving = (pygrad.value_and_grad(pygrad.compile(lambda x, c=c: f(x, c))) for c in (False, True))
    assert plain(0.4) == saving(0.4) == pygrad.value_and_grad(lambda x: f(x, False))(0.4)


def test_checkpoints_keep_the_square_root_of_what_is_carried():
    def bytes_of(steps, checkpoint):
        f = pygrad.grad(pygrad.compile(lambda x: scan(
            lambda c, _: (pygrad.sin(c) + x, None), x, length=steps, checkpoint=checkpoint)[0]))  # fmt: skip
        f(0.4)
        return f.stats()["bytes"]

    assert bytes_of(10_000, False) > 8 * 10_000
    assert bytes_of(10_000, True) < 8 * 4 * 100 + 2000
    assert bytes_of(1_000_000, True) < 8 * 4 * 1000 + 2000


def test_loops_within_loops_within_loops():
    def nested(depth, c, x):
        if depth == 0:
            return pygrad.sin(c) * x
        return scan(lambda c, _: (nested(depth - 1, c, x), None), c, length=1 + (depth == 1))[0]

    for depth in (3, 30):  # work that doubled with each level would not end
        f = lambda x, depth=depth: nested(depth, x, x)  # noqa: E731
        assert pygrad.grad(pygrad.compile(f))(0.5) == pygrad.grad(f)(0.5)
    with pytest.raises(CaptureError, match=r"^scan: loops and conditions are nested more than 32 deep"):
        pygrad.compile(lambda x: nested(33, x, x))(0.5)
    with pytest.raises(CaptureError, match=r"^cond: loops and conditions are nested more than 32 deep"):
        pygrad.compile(lambda x: cond(x > 0, lambda: nested(32, x, x), lambda: x))(0.5)


def test_a_million_steps():
    long = lambda x: scan(lambda c, _: (c * 0.999999 + x, None), x, length=10**6)[0]  # noqa: E731
    fast = pygrad.value_and_grad(pygrad.compile(long))
    value, gradient = fast(0.5)
    exact = 0.999999**10**6 + (1 - 0.999999**10**6) / (1 - 0.999999)
    assert value == pytest.approx(0.5 * exact, rel=1e-9)
    assert gradient == pytest.approx(exact, rel=1e-9)


def test_xs_are_differentiated():
    def f(xs):
        return scan(lambda c, x: (c * x, c), 1.0, xs)[0]

    assert pygrad.grad(pygrad.compile(f))([2.0, 3.0, 5.0]) == [15.0, 10.0, 6.0]
    assert pygrad.grad(pygrad.compile(f, as_values=True))(np.array([2.0, 3.0, 5.0])).tolist() == [15.0, 10.0, 6.0]


def test_loops_go_on_where_loops_ended():
    def f(x):
        carry, ys = scan(lambda c, _: (pygrad.sin(c) + x, c), x, length=4)
        carry, zs = scan(lambda c, y: (c * y, c + y), carry, ys)
        pairs = list(zip(ys, zs, strict=True))
        return scan(lambda c, pair: (c + pair[0] * pair[1], None), carry, pairs, reverse=True)[0]

    fast = pygrad.value_and_grad(pygrad.compile(f))
    assert fast(0.7) == pytest.approx(pygrad.value_and_grad(f)(0.7), rel=1e-14)
    assert fast.stats()["instructions"] < 60


def test_what_does_not_depend_on_inputs_is_a_number_of_the_capture():
    fast = pygrad.compile(lambda x: x * scan(lambda c, _: (2.0 * c, None), 1.0, length=10)[0])
    assert fast(3.0) == 3072.0
    assert fast.stats()["instructions"] == 1


def test_a_value_from_outside_is_an_input():
    w = Value(2.0)
    fast = pygrad.compile(lambda x: scan(lambda c, _: (c * w, None), x, length=3)[0])
    assert fast(1.0) == 8.0
    w.data = 3.0
    assert fast(1.0) == 27.0


def test_under_no_grad_a_loop_is_frozen():
    def f(x):
        with pygrad.no_grad():
            scale = scan(lambda c, _: (c * x, None), 1.0, length=2)[0]
        return scale * x

    fast = pygrad.value_and_grad(pygrad.compile(f))
    assert fast(3.0) == (27.0, 9.0)
    assert fast(2.0) == (8.0, 4.0)


def test_a_loop_of_numbers_alone_may_branch():
    fast = pygrad.compile(lambda x: x * scan(lambda c, _: (c * 2 if c < 5 else c + 1, None), 1.0, length=4)[0])
    assert fast(3.0) == 27.0


def test_many_loops_are_told_apart():
    def f(x):
        for i in range(300):
            x = scan(lambda c, _, i=i: (c * (1.0 + 0.001 * i), None), x, length=2)[0] / (1.0 + 0.001 * i) ** 2
        return x

    assert pygrad.value_and_grad(pygrad.compile(f))(1.5) == pygrad.value_and_grad(f)(1.5)


def test_bad_loops_say_what_is_wrong():
    for xs in ({"a": [1.0]}, np.array(1.0)):
        with pytest.raises(TypeError, match=r"^scan: xs must hold an x for each step, found"):
            scan(lambda c, x: (c, x), 1.0, xs)
    with pytest.raises(ValueError, match=r"^scan: needs xs, or a length$"):
        scan(lambda c, x: (c, x), 1.0)
    with pytest.raises(ValueError, match=r"^scan: length is 2, and xs has 1 elements$"):
        scan(lambda c, x: (c, x), 1.0, [1.0], length=2)
    with pytest.raises(ValueError, match=r"^scan: there is no step to take"):
        scan(lambda c, x: (c, x), 1.0, [])
    with pytest.raises(TypeError, match=r"^scan: f must return \(carry, y\), found 1.0 of type float$"):
        scan(lambda c, x: c, 1.0, [1.0])
    with pytest.raises(TypeError, match=r"^scan: f must carry on what it carries: it got 1.0, and returned \[1.0\]$"):
        scan(lambda c, x: ([c], None), 1.0, [1.0])
    with pytest.raises(
        TypeError, match=r"^scan: all elements of xs must have the structure of the first, found \[1.0\]"
    ):
        pygrad.compile(lambda v: scan(lambda c, x: (c, None), v, [1.0, [1.0]])[0])(1.0)


def nested(x, depth, length=2):
    if depth == 0:
        return pygrad.sin(x)
    return scan(lambda c, _: (nested(c, depth - 1, length), None), x, length=length)[0]


def test_nesting_costs_no_more_than_its_depth():
    fast = pygrad.grad(pygrad.compile(nested, static=["depth"]))
    for depth in (1, 2, 9):
        assert fast(0.5, depth) == pygrad.grad(nested)(0.5, depth)
    assert fast.capture(0.5, 9).stats()["instructions"] < 400


def test_a_step_that_branches_is_an_error_that_names_the_line():
    def f(x):
        return scan(lambda c, _: (c * 2 if c > 1 else c + x, None), x, length=5)[0]

    assert f(0.3) == pytest.approx(4.8)
    with pytest.raises(
        CaptureError, match=r"^scan: f goes a way of its own at .*test_loops.py:\d+ in <lambda>, by bool"
    ):
        pygrad.compile(f)(0.3)
    with pytest.raises(CaptureError, match="by int of a number"):
        pygrad.compile(lambda x: scan(lambda c, _: (c + int(c), None), x, length=5)[0])(0.3)
    for way in (lambda c, x: where(c > 1, c * 2, c + x), lambda c, x: cond(c > 1, lambda: c * 2, lambda: c + x)):
        g = lambda x, way=way: scan(lambda c, _: (way(c, x), None), x, length=5)[0]  # noqa: E731
        assert pygrad.value_and_grad(pygrad.compile(g))(0.3) == pygrad.value_and_grad(f)(0.3)


def test_a_branch_by_what_all_steps_share_is_a_guard_of_the_whole():
    def f(x, a):
        return scan(lambda c, _: (c * a if a > 1 else c + a, None), x, length=3)[0]

    fast = pygrad.grad(pygrad.compile(f), (0, 1))
    assert fast(1.0, 2.0) == (8.0, 12.0)
    assert fast(1.0, 0.5) == (1.0, 3.0)
    assert fast(1.0, 2.0) == (8.0, 12.0)
    assert fast.stats()["variants"] == 2


def test_an_error_in_a_step_leaves_nothing_behind():
    def f(x):
        return scan(lambda c, _: (c / 0 if x.no_such_thing else c, None), x, length=2)[0]

    with pytest.raises(AttributeError):
        pygrad.compile(f)(1.0)
    assert pygrad._core.capture_depth() == 0
    assert pygrad.compile(lambda x: compound(x, 2)[0])(0.0) == 100.0


def test_an_anomaly_names_the_loop_and_what_went_into_it():
    message = r"^scan: forward gave nan from operands \(2.0, -0.5\)"
    with pygrad.detect_anomaly(), pytest.raises(AnomalyError, match=message):
        pygrad.compile(lambda x, y: scan(lambda c, _: (pygrad.sqrt(c) * y, None), x, length=2)[0])(2.0, -0.5)


def test_a_graph_of_a_capture_that_has_ended_is_not_walked():
    kept = []

    def f(x):
        kept.append(scan(lambda c, _: (c * x, None), x, length=2)[0])
        return kept[0] * 1.0

    pygrad.compile(f)(2.0)
    with pytest.raises(pygrad.GraphError, match="made by scan or cond in a capture, which has ended"):
        kept[0].backward()


# ---- cond


def test_outside_of_captures_cond_is_an_if():
    calls = []
    first = lambda x: calls.append("first") or x + 1  # noqa: E731
    second = lambda x: calls.append("second") or x - 1  # noqa: E731
    assert cond(True, first, second, 1.0) == 2.0
    assert cond(Value(0.0), first, second, 1.0) == 0.0
    assert calls == ["first", "second"]


def option(spot):
    return cond(spot > 100, lambda s: (s - 100, s * s), lambda s: (0 * s, 3 * s), spot)


def test_both_branches_are_in_one_program():
    fast = pygrad.compile(lambda s: pygrad.sum(option(s)))
    for spot in (120.0, 80.0, 100.0, math.nan):
        f = lambda s: pygrad.sum(option(s))  # noqa: E731
        assert fast(spot) == f(spot) or math.isnan(spot)
        assert pygrad.grad(fast)(spot) == pygrad.grad(f)(spot) or math.isnan(spot)
    assert fast.stats()["variants"] == 1


def test_the_branch_that_is_not_taken_costs_and_poisons_nothing():
    def f(x):
        return cond(x > 0, lambda: pygrad.log(x), lambda: pygrad.sqrt(-x))

    fast = pygrad.value_and_grad(pygrad.compile(f))
    assert fast(1.0) == (0.0, 1.0)
    assert fast(-4.0) == (2.0, -0.25)
    assert pygrad.hessian(pygrad.compile(f))(-4.0) == pytest.approx(pygrad.hessian(f)(-4.0))


def test_branches_within_branches_are_guarded_only_where_they_are_come_to():
    def f(x, y):
        return cond(x > 0, lambda v: 2 * v if v > 10 else v, lambda v: -v if y > 0 else 0 * v, x)

    fast = pygrad.compile(f)
    for x, y in ((1.0, 1.0), (20.0, 1.0), (-1.0, 1.0), (-1.0, -1.0), (1.0, 1.0), (30.0, -1.0)):
        assert fast(x, y) == f(x, y)
        assert pygrad.grad(fast)(x, y) == pygrad.grad(f)(x, y)


def test_a_branch_within_a_branch_may_ask_for_what_it_gets_and_what_it_reads_at_once():
    def f(x, y):
        return cond(x > 0, lambda v: 2 * v if v > y else 3 * v, lambda v: v - y if v * y > -0.1 and y < 0.5 else v, x)

    def steps(x, y):
        def half(c):
            return 0.5 * c if y > 0 else 0.25 * c  # asked for by all steps: a guard of the whole

        return scan(lambda c, _: (cond(c > y, half, lambda c: c + y, c), None), x, length=4)[0]

    numbers = [-0.9 + 0.15 * i for i in range(13)]
    for g, ways in ((f, 9), (steps, 2)):
        fast = pygrad.value_and_grad(pygrad.compile(g), (0, 1))
        for x, y in itertools.product(numbers, numbers):
            assert fast(x, y) == pygrad.value_and_grad(g, (0, 1))(x, y)
        assert fast.stats()["variants"] <= ways


@pytest.mark.parametrize("where_to", ["result", "guard", "step", "branch"])
def test_a_value_of_one_step_or_branch_is_of_no_use_outside_of_it(where_to):
    def f(x):
        kept = []

        def step(c, _):
            kept.append(c * x)
            return c * x, None

        scan(step, x, length=3)
        if where_to == "guard":
            return x if x > kept[0] else -x
        if where_to == "step":
            return scan(lambda c, _: (c * kept[0], None), x, length=3)[0]
        return cond(x > 0, lambda: x * kept[0], lambda: x) if where_to == "branch" else kept[0]

    with pytest.raises(CaptureError, match=r"^compile: a Value of one step of scan, or of one branch of cond, is"):
        pygrad.compile(f)(2.0)


def test_branches_must_agree_in_structure():
    with pytest.raises(TypeError, match=r"^cond: both branches must return the same structure, found 0.0 and \[0.0\]$"):
        pygrad.compile(lambda x: cond(x > 0, lambda: x, lambda: [x]))(1.0)


def test_a_truth_that_does_not_vary_is_an_if_at_the_capture():
    fast = pygrad.compile(lambda x, kind: cond(kind == "call", lambda: x, lambda: -x), static=["kind"])
    assert (fast(2.0, "call"), fast(2.0, "put")) == (2.0, -2.0)


# ---- both, in lanes, saved, and with ops of the user's


def test_lanes_of_loops_and_conditions():
    def f(x, a):
        def step(c, t):
            return cond(c > t, lambda v: v - a, lambda v: pygrad.exp(0.1 * v) * a, c), c

        carry, ys = scan(step, x, [0.1, 0.5, 0.2, 0.9])
        return carry + ys[2] * a

    fast = pygrad.value_and_grad(pygrad.compile(f), (0, 1))
    xs = np.linspace(-1, 1, 1003)
    values, gradients = fast.map(xs, 0.3)
    for other in (fast.map(xs, 0.3, threads=3), fast.map(xs, np.full(1003, 0.3), threads=1)):
        assert np.array_equal(values, other[0])
        assert np.array_equal(gradients[0], other[1][0])
        assert np.array_equal(gradients[1], other[1][1])
    for lane in range(0, 1003, 50):
        value, slopes = fast(float(xs[lane]), 0.3)
        assert values[lane] == pytest.approx(value, rel=1e-13)
        assert [g[lane] for g in gradients] == pytest.approx(slopes, rel=1e-12)


def test_an_op_of_the_user_s_in_a_loop():
    cube = pygrad.custom_op(lambda a: a**3, lambda g, y, a: g * 3 * a * a, name="cube")
    f = lambda x: scan(lambda c, _: (cube(c) * 0.9 + x, None), x, length=3)[0]  # noqa: E731
    fast = pygrad.compile(f)
    assert pygrad.value_and_grad(fast)(0.5) == pygrad.value_and_grad(f)(0.5)
    assert pygrad.hessian(fast)(0.5) == pytest.approx(pygrad.hessian(f)(0.5), rel=1e-14)
