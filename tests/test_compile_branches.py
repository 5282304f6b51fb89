"""Compiled functions that branch: guards, variants, and what never settles. See Note [Variants] in variants.py."""

import gc
import random

import pytest
from compiled import counted, on_values, same

import pygrad
from pygrad import CaptureError, Value, math

INF, NAN = float("inf"), float("nan")


def payoff(s, strike=1.0):
    if s < strike:
        return 0.0 * s
    if s < 2 * strike:
        return (s - strike) ** 2
    return s - strike


def largest(x, y, z):
    return [max(x, y, z) * min(x, y), *(k * v for k, v in enumerate(sorted([z, x, y])))]


def root(a):
    """Newton's method until it settles."""
    x, count = a, 0
    while abs(x * x - a) > 1e-12 * a and count < 60:
        x = 0.5 * (x + a / x)
        count += 1
    return x


def bisection(a):
    low, high = 0.0 * a, a + 1
    while high - low > 1e-6:
        middle = (low + high) / 2
        if middle**3 > a:
            high = middle
        else:
            low = middle
    return low + high


TABLE = [0.0, 1.0, 4.0, 9.0, 16.0]


def look_up(x):
    k = min(max(int(x), 0), 3)
    return TABLE[k] + (TABLE[k + 1] - TABLE[k]) * (x - k)


def leaves_early(x, y):
    total = 0.0
    for k in range(1, 20):
        total = total + x**k / k
        if total > y:
            return [total, float(k)]
    return [total, -1.0]


def rounds(x):
    return x * round(x) + math.floor(x) * math.ceil(x) - math.trunc(x) * x


def kinked(x):
    if math.isnan(x):
        return 1.0
    if math.isinf(x):
        return x
    return -x if x < 0 else x * x


def recursive(x):
    return x if x < 1 else recursive(x / 2) * x


CASES = {
    payoff: ([0.5, 1.0, 1.5, 2.0, 3.0, -1.0], 1),
    largest: ([1.0, 2.0, 3.0, -1.0, 0.0, -0.0], 3),
    root: ([2.0, 1e-3, 1e6, 3.0, 0.5], 1),
    bisection: ([0.5, 0.3, 0.9, 0.1], 1),
    look_up: ([0.5, 1.5, 3.5, -2.0, 9.0, 1.0], 1),
    leaves_early: ([0.5, 0.9, 0.1, 1.5], 2),
    rounds: ([0.5, 1.5, 2.5, -0.5, -3.7, 0.0], 1),
    kinked: ([NAN, INF, -INF, 2.0, -2.0, 0.0, -0.0], 1),
    recursive: ([0.5, 3.0, 100.0, 1.0], 1),
}


def draws(numbers, arity, count, seed=1):
    rng = random.Random(seed)
    return [tuple(rng.choice(numbers) for _ in range(arity)) for _ in range(count)]


@pytest.mark.parametrize(("f", "given"), CASES.items(), ids=lambda x: getattr(x, "__name__", ""))
def test_values_and_gradients_at_each_call(f, given):
    """Branches flip between calls; a variant is captured once."""
    counting, runs = counted(f)
    fast = pygrad.compile(counting)
    several = isinstance(on_values(f, *[2.0] * given[1]), list)
    slope = pygrad.jacobian(fast) if several else pygrad.value_and_grad(fast)
    plain = pygrad.jacobian(f) if several else pygrad.value_and_grad(f)
    for args in draws(*given, 60):
        assert same(fast(*args), on_values(f, *args)), args
        assert same(slope(*args), plain(*args)), args
        assert same(pygrad.grad(pygrad.compile(f))(*args), pygrad.grad(f)(*args)) if not several else True
    assert len(runs) == fast.stats()["variants"] <= len(given[0]) ** given[1]
    before = len(runs)
    for args in draws(*given, 60):
        fast(*args)
        slope(*args)
    assert len(runs) == before


def test_second_derivatives_at_each_call():
    fast = pygrad.compile(lambda xs: payoff(xs[0]) * xs[1] ** 3)
    second, product = pygrad.hessian(fast), pygrad.hvp(fast)
    for s in (0.5, 1.5, 3.0, 1.5, 0.5):
        at = [s, 2.0]
        assert same(second(at), pygrad.hessian(lambda xs: payoff(xs[0]) * xs[1] ** 3)(at))
        assert same(product(at, [1.0, 2.0]), pygrad.hvp(lambda xs: payoff(xs[0]) * xs[1] ** 3)(at, [1.0, 2.0]))


def test_a_branch_as_data_needs_no_second_variant():
    fast = pygrad.compile(lambda x: pygrad.where((x > 1) & ~(x > 2), x * x, 0.0))
    assert [fast(x) for x in (0.5, 1.5, 2.5, NAN)] == [0.0, 2.25, 0.0, 0.0]
    assert (fast.stats()["variants"], fast.stats()["guards"]) == (1, 0)
    assert pygrad.grad(fast)(1.5) == 3.0


def test_guards_on_values_from_outside():
    w = Value(1.0)
    fast = pygrad.compile(lambda x: x * w if w > 0 else -x)
    for number, expected in ((1.0, 3.0), (-1.0, -3.0), (2.0, 6.0)):
        w.data = number
        assert fast(3.0) == expected
    assert fast.stats()["variants"] == 2


def test_guards_answered_by_nan():
    fast = pygrad.compile(lambda x: 1.0 if x == x else 2.0)
    assert [fast(x) for x in (1.0, NAN, INF, NAN, -0.0)] == [1, 2, 1, 2, 1]
    assert fast.stats()["variants"] == 2

    @pygrad.compile
    def whole(x):
        try:
            return float(int(x))
        except (ValueError, OverflowError) as error:
            return 100.0 if isinstance(error, ValueError) else 200.0

    for x, expected in (
        (1.5, 1.0),
        (NAN, 100.0),
        (INF, 200.0),
        (-INF, 200.0),
        (NAN, 100.0),
        (-0.5, 0.0),
        (1e300, 1e300),
    ):
        assert whole(x) == expected
    assert whole.stats()["variants"] == 6


# ---- how many


def test_the_limit_of_variants():
    fast = pygrad.compile(lambda x: x * int(x), variants=3)
    slope = pygrad.grad(fast)
    assert [slope(x) for x in (1.5, 2.5, 3.5)] == [1.0, 2.0, 3.0]
    text = (
        "compile: <lambda> has gone 3 ways through its branches for one structure of arguments, and now goes another; "
        "write branches as data with pygrad.where, or allow more by compile(f, "
        "variants=...)"
    )
    for call in (fast, slope, pygrad.hessian(fast)):
        with pytest.raises(CaptureError) as caught:
            call(4.5)
        assert str(caught.value) == text
    assert [fast(x) for x in (3.5, 1.5)] == [10.5, 1.5]  # those that are there still serve
    several = pygrad.compile(lambda xs: xs[0] * int(xs[0]), variants=1)
    assert [several([1.5]), several([1.5, 0.0]), several((1.5,))] == [1.5] * 3  # of one structure


def test_variants_are_shared_by_transforms_however_often_these_are_made():
    f, runs = counted(lambda x: x * x if x > 0 else -x)
    fast = pygrad.compile(f)
    first = pygrad.grad(fast)
    assert first(1.0) == 2.0
    second = pygrad.grad(fast)
    for k in range(600):  # more than there may be variants
        assert second(1.0 if k % 2 else -1.0) == (2.0 if k % 2 else -1.0)
        assert pygrad.grad(fast)(1.0) == 2.0
    assert [first(-1.0), first(1.0)] == [-1.0, 2.0]
    assert len(runs) == first.stats()["variants"] == second.stats()["variants"] == 2


def test_a_function_that_changes_is_an_error_and_no_loop():
    """Its variants contradict one another: each sends the call to the other."""
    thresholds = iter([0.9, 0.3])
    fast = pygrad.compile(lambda x: x if x > next(thresholds) else -x)
    assert [fast(0.95), fast(0.1)] == [0.95, -0.1]
    text = (
        "compile: <lambda> took another way for the same arguments when it was replayed; it depends on something that "
        "changes from call to call (a random number, a global): make that an argument"
    )
    for _ in range(2):
        with pytest.raises(CaptureError) as caught:
            fast(0.5)
        assert str(caught.value) == text
    assert [fast(0.95), fast(0.1)] == [0.95, -0.1]


def test_many_guards():
    """A way of 20,000 guards is found, differentiated and dropped without recursion."""

    def f(x):
        count = 0
        while x < 20_000:
            x = x + 1
            count += 1
        return x * count

    fast = pygrad.compile(f)
    assert fast(0.5) == 20_000.5 * 20_000
    assert fast(1.5) == 20_000.5 * 19_999
    assert pygrad.grad(fast)(1.5) == 19_999.0
    del fast
    gc.collect()
