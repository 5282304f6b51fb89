"""pygrad.math is the standard library's math for floats and Values: every name, equal numbers, IEEE 754 at poles."""

import inspect
import math as stdlib_math
import random
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pygrad
from pygrad import Value, grad, gradcheck, math, reference

INF, NAN = float("inf"), float("nan")

# The standard library's names of Python 3.10 to 3.13, by what becomes of a Value.
DIFFERENTIABLE = {
    "acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "cbrt", "copysign", "cos", "cosh", "degrees", "dist",
    "erf", "erfc", "exp", "exp2", "expm1", "fabs", "fma", "fmod", "frexp", "fsum", "gamma", "hypot", "ldexp", "lgamma",
    "log", "log10", "log1p", "log2", "modf", "pow", "prod", "radians", "remainder", "sin", "sinh", "sqrt", "sumprod",
    "tan", "tanh",
}  # fmt: skip
OF_DATA = {"ceil", "floor", "trunc", "isclose", "isfinite", "isinf", "isnan", "nextafter", "ulp"}
OF_INTEGERS = {"comb", "factorial", "gcd", "isqrt", "lcm", "perm"}
CONSTANTS = {"e", "inf", "nan", "pi", "tau"}
SINCE = {"cbrt": (3, 11), "exp2": (3, 11), "sumprod": (3, 12), "fma": (3, 13)}


def bits(x):
    return "nan" if x != x else repr(x)


def ulps(a, b):
    return 0.0 if a == b else abs(a - b) / stdlib_math.ulp(b)


# ---- the names


def test_every_name_of_the_standard_library_is_there():
    for name in DIFFERENTIABLE | OF_DATA | OF_INTEGERS | CONSTANTS:
        assert hasattr(math, name), name
        assert name in math.__all__
    missing = {name for name in dir(stdlib_math) if not name.startswith("_") and not hasattr(math, name)}
    if sys.version_info < (3, 14):
        assert missing == set()
        known = DIFFERENTIABLE | OF_DATA | OF_INTEGERS | CONSTANTS
        assert {name for name in dir(stdlib_math) if not name.startswith("_")} - known == set()


def test_a_star_import_leaves_math_and_the_builtins_alone():
    names = {"math": stdlib_math}
    exec("from pygrad import *", names)
    assert names["math"] is stdlib_math
    assert names["Value"] is Value
    assert not {"abs", "pow", "round", "sum"} & names.keys()
    assert pygrad.math is math


def test_constants_and_integers_are_the_standard_library_s():
    for name in CONSTANTS:
        assert bits(getattr(math, name)) == bits(getattr(stdlib_math, name))
    for name in OF_INTEGERS:
        assert getattr(math, name) is getattr(stdlib_math, name)
    with pytest.raises(TypeError):
        math.factorial(Value(3.0))


def test_functions_have_docs():
    for name in DIFFERENTIABLE | OF_DATA:
        assert inspect.getdoc(getattr(math, name)), name


# ---- floats

REAL = (-30.0, 30.0)
DOMAINS = {
    "acos": (-1.0, 1.0), "asin": (-1.0, 1.0), "atanh": (-1.0, 1.0), "acosh": (1.0, 100.0), "log": (1e-9, 100.0),
    "log2": (1e-9, 100.0), "log10": (1e-9, 100.0), "log1p": (-0.999, 100.0), "sqrt": (0.0, 100.0),
}  # fmt: skip
EQUAL = [
    "acos", "acosh", "asin", "asinh", "atan", "atanh", "cos", "cosh", "degrees", "erf", "erfc", "exp", "expm1", "fabs",
    "log", "log10", "log1p", "log2", "radians", "sin", "sinh", "sqrt", "tan", "tanh", "ceil", "floor", "trunc", "ulp",
    "isnan", "isinf", "isfinite", "frexp", "modf",
]  # fmt: skip


@pytest.mark.parametrize("name", EQUAL)
def test_functions_of_one_float_are_equal(name):
    rng = random.Random(name)
    mine, theirs = getattr(math, name), getattr(stdlib_math, name)
    low, high = DOMAINS.get(name, REAL)
    for _ in range(2000):
        x = rng.uniform(low, high)
        found, expected = mine(x), theirs(x)
        assert (type(found), found) == (type(expected), expected)
    for x in {"atanh": (0.0, 0.5), "acosh": (1.0, 2.0)}.get(name, (low, high, 0.5, 1.0, 1)):
        assert mine(x) == theirs(x)


@pytest.mark.parametrize("name", ["atan2", "copysign", "fmod", "remainder", "pow", "nextafter"])
def test_functions_of_two_floats_are_equal(name):
    rng = random.Random(name)
    mine, theirs = getattr(math, name), getattr(stdlib_math, name)
    for _ in range(2000):
        a, b = rng.uniform(0 if name == "pow" else -30.0, 30.0), rng.uniform(-30.0, 30.0)
        found = mine(a, b)
        assert type(found) is float
        assert found == theirs(a, b)


# What differs: pygrad's own are the more accurate, or round the result once less; tests/test_special.py has the truth.
NEAR = {"cbrt": 4, "exp2": 1, "hypot": 1, "gamma": 10, "fma": 0}


@pytest.mark.parametrize("name", sorted(NEAR))
def test_functions_that_are_equal_but_for_ulps(name):
    theirs = getattr(stdlib_math, name, None)
    if theirs is None:  # of a later Python
        theirs = {
            "cbrt": lambda x: float(np.cbrt(x)), "exp2": lambda x: 2.0**x, "fma": reference.fma
        }[name]  # fmt: skip
    count = {"hypot": 2, "fma": 3}.get(name, 1)
    rng = random.Random(name)
    for _ in range(2000):
        xs = [rng.uniform(0.1, 30.0) for _ in range(count)]
        assert ulps(getattr(math, name)(*xs), theirs(*xs)) <= NEAR[name]


def test_lgamma_is_near_the_standard_library_s():
    rng = random.Random(1)
    for _ in range(2000):
        x = rng.uniform(-30.0, 100.0)
        assert math.lgamma(x) == pytest.approx(stdlib_math.lgamma(x), rel=1e-12, abs=1e-13)


def test_functions_of_many_floats():
    rng = random.Random(2)
    for count in (1, 2, 3, 7):
        p = [rng.uniform(-9, 9) for _ in range(count)]
        q = [rng.uniform(-9, 9) for _ in range(count)]
        assert ulps(math.hypot(*p), stdlib_math.hypot(*p)) <= count
        assert ulps(math.dist(p, q), stdlib_math.dist(p, q)) <= count
        assert math.prod(p) == stdlib_math.prod(p)
        assert math.fsum(p) == stdlib_math.fsum(p)
        assert math.sumprod(p, q) == pytest.approx(sum(a * b for a, b in zip(p, q, strict=True)), rel=1e-13, abs=1e-13)
    assert (math.hypot(), math.hypot(-3.0), math.hypot(3, 4), math.dist([], [])) == (0.0, 3.0, 5.0, 0.0)
    assert (math.prod([]), math.prod([2, 3]), math.prod([2.0], start=5), math.prod(iter([2, 3]))) == (1, 6, 10.0, 6)
    assert (math.fsum([]), math.fsum([0.1] * 10), math.fsum([1e100, 1.0, -1e100])) == (0.0, 1.0, 1.0)
    assert math.sumprod([], []) == 0
    for wrong in (([1.0], []), ([1.0, 2.0], [1.0])):
        with pytest.raises(ValueError):
            math.dist(*wrong)
        with pytest.raises(ValueError):
            math.sumprod(*wrong)


def test_large_ints():
    for name in ("log", "log2", "log10"):
        for x in (10**400, 2**1000, 2**1024, 7):
            assert getattr(math, name)(x) == getattr(stdlib_math, name)(x)
    assert math.log(10**400, 10) == stdlib_math.log(10**400, 10)
    assert math.log(8.0, 2.0) == 3.0
    with pytest.raises(OverflowError):
        math.exp(10**400)


def test_rounding_gives_ints():
    for name, x in (("floor", -2.5), ("ceil", -2.5), ("trunc", -2.5), ("floor", 2.5), ("ceil", 2.5), ("trunc", 2.5)):
        expected = getattr(stdlib_math, name)(x)
        for number in (x, Value(x)):
            found = getattr(math, name)(number)
            assert (type(found), found) == (int, expected)
            assert getattr(stdlib_math, name)(number) == expected  # the standard library's, on a Value
    for name in ("floor", "ceil", "trunc"):
        with pytest.raises(OverflowError):
            getattr(math, name)(Value(INF))
        with pytest.raises(ValueError):
            getattr(math, name)(Value(NAN))


def test_predicates_and_neighbours():
    for x in (0.0, -1.5, INF, -INF, NAN):
        for name in ("isnan", "isinf", "isfinite"):
            assert getattr(math, name)(Value(x)) is getattr(math, name)(x) is getattr(stdlib_math, name)(x)
    assert math.isclose(Value(1.0), 1.0 + 1e-12)
    assert math.isclose(1.0, Value(1.1), rel_tol=0.2)
    assert not math.isclose(Value(1.0), Value(1.1), abs_tol=0.01)
    assert math.ulp(Value(1.0)) == stdlib_math.ulp(1.0)
    assert math.nextafter(Value(1.0), INF) == stdlib_math.nextafter(1.0, INF)
    assert math.nextafter(1.0, Value(0.0)) == stdlib_math.nextafter(1.0, 0.0)
    if sys.version_info >= (3, 12):
        assert math.nextafter(1.0, 2.0, steps=3) == stdlib_math.nextafter(1.0, 2.0, steps=3)


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (lambda f: math.log(f(0.0)), -INF),
        (lambda f: math.log(f(-1.0)), NAN),
        (lambda f: math.log2(f(0.0)), -INF),
        (lambda f: math.log10(f(0.0)), -INF),
        (lambda f: math.log1p(f(-1.0)), -INF),
        (lambda f: math.log1p(f(-2.0)), NAN),
        (lambda f: math.sqrt(f(-1.0)), NAN),
        (lambda f: math.sqrt(f(-0.0)), -0.0),
        (lambda f: math.exp(f(1000.0)), INF),
        (lambda f: math.exp(f(-1000.0)), 0.0),
        (lambda f: math.expm1(f(1000.0)), INF),
        (lambda f: math.exp2(f(2000.0)), INF),
        (lambda f: math.sinh(f(-1000.0)), -INF),
        (lambda f: math.cosh(f(1000.0)), INF),
        (lambda f: math.sin(f(INF)), NAN),
        (lambda f: math.cos(f(INF)), NAN),
        (lambda f: math.tan(f(-INF)), NAN),
        (lambda f: math.acos(f(2.0)), NAN),
        (lambda f: math.asin(f(-2.0)), NAN),
        (lambda f: math.acosh(f(0.5)), NAN),
        (lambda f: math.atanh(f(1.0)), INF),
        (lambda f: math.atanh(f(-1.0)), -INF),
        (lambda f: math.atanh(f(2.0)), NAN),
        (lambda f: math.pow(f(0.0), -1.0), INF),
        (lambda f: math.pow(f(-1.0), 0.5), NAN),
        (lambda f: math.pow(f(10.0), 400), INF),
        (lambda f: math.pow(f(NAN), 0.0), 1.0),
        (lambda f: math.fmod(f(1.0), 0.0), NAN),
        (lambda f: math.fmod(f(INF), 1.0), NAN),
        (lambda f: math.fmod(f(1.0), INF), 1.0),
        (lambda f: math.remainder(f(1.0), 0.0), NAN),
        (lambda f: math.gamma(f(0.0)), INF),
        (lambda f: math.gamma(f(200.0)), INF),
        (lambda f: math.gamma(f(-1.0)), NAN),
        (lambda f: math.lgamma(f(0.0)), INF),
        (lambda f: math.lgamma(f(-3.0)), INF),
        (lambda f: math.lgamma(f(1e306)), INF),
        (lambda f: math.ldexp(f(1.0), 2000), INF),
        (lambda f: math.hypot(f(INF), NAN), INF),
        (lambda f: math.hypot(f(1e200), 1e200), 1.4142135623730951e200),
        (lambda f: math.fma(f(1e200), 1e200, -INF), -INF),
        (lambda f: math.log(f(8.0), 0.0), -0.0),
        (lambda f: math.atan2(f(-0.0), -1.0), -stdlib_math.pi),
        (lambda f: math.copysign(f(1.0), -0.0), -1.0),
        (lambda f: math.prod([f(1e200), 1e200]), INF),
        (lambda f: math.dist([f(INF)], [0.0]), INF),
    ],
)
def test_poles(call, expected):
    """IEEE 754 where the standard library raises; the same for a float and a Value; no warning either."""
    assert bits(call(float)) == bits(expected)
    assert bits(call(Value).data) == bits(expected)


# ---- Values

POINTS = {
    "acos": (0.3,), "acosh": (1.7,), "asin": (0.3,), "atan2": (0.7, -1.2), "atanh": (0.3,), "copysign": (0.7, -1.2),
    "dist": ([0.5, 2.0, 3.0], [1.5, 0.25, -1.0]), "fma": (0.7, 1.2, -0.4), "fmod": (7.3, 2.1),
    "hypot": (3.0, -4.0, 1.5), "ldexp": (0.7, 3.0), "log": (2.5,), "pow": (1.3, 2.7), "prod": ([0.5, 2.0, -3.0],),
    "remainder": (7.3, 2.1),
    "fsum": ([0.5, 2.0, -3.0],), "sumprod": ([0.5, 2.0], [3.0, -1.0]), "gamma": (2.3,), "lgamma": (2.3,),
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(DIFFERENTIABLE))
def test_values(name):
    function, point = getattr(math, name), POINTS.get(name, (0.7,))
    lifted = [[Value(x) for x in arg] if isinstance(arg, list) else Value(arg) for arg in point]
    found, expected = function(*lifted), function(*point)
    first, first_expected = (found[0], expected[0]) if isinstance(found, tuple) else (found, expected)
    assert type(first) is Value
    assert first.data == (first_expected if name not in ("fsum", "sumprod") else pytest.approx(first_expected))
    if name not in ("ldexp",):  # an exponent moves by integers only
        assert gradcheck(lambda *a: y[0] if isinstance(y := function(*a), tuple) else y, *point)
    else:
        assert grad(lambda x: math.ldexp(x, 3))(0.7) == 8.0


def test_one_operand_or_the_other():
    for name in ("atan2", "copysign", "fmod", "hypot", "pow", "remainder"):
        function = getattr(math, name)
        expected = function(2.5, 1.5)
        for a, b in ((Value(2.5), 1.5), (2.5, Value(1.5)), (Value(2.5), Value(1.5)), (np.float64(2.5), Value(1.5))):
            assert (type(function(a, b)), function(a, b).data) == (Value, expected)
    assert math.log(Value(8.0), 2).data == 3.0
    assert math.log(8, Value(2.0)).data == 3.0
    assert grad(lambda b: math.log(8.0, b))(2.0) == pytest.approx(-3.0 / (2.0 * stdlib_math.log(2.0)), rel=1e-15)


def test_frexp_and_modf():
    for x in (6.0, -0.375, 1e-310, 1e308, 0.0, 1.0):
        m, e = math.frexp(Value(x))
        assert (m.data, e) == stdlib_math.frexp(x)
        f, w = math.modf(Value(x))
        assert (f.data, w) == stdlib_math.modf(x)
    assert grad(lambda x: math.frexp(x)[0])(6.0) == 0.125
    assert grad(lambda x: math.modf(x)[0])(6.25) == 1.0
    m, e = math.frexp(Value(INF))
    assert (m.data, e) == (INF, 0)


@pytest.mark.parametrize("x", [0.0, -0.0, 2.0, -2.0, 0.25, -0.75, 1e300, -5e-324, 2.0**52 + 0.5, INF, -INF, NAN])
def test_modf_keeps_signs_and_takes_infinities(x):
    expected = stdlib_math.modf(x)
    fraction, whole = math.modf(Value(x))
    assert (type(fraction), type(whole)) == (Value, float)
    assert [bits(fraction.data), bits(whole)] == list(map(bits, expected)) == list(map(bits, math.modf(x)))
    assert grad(lambda v: math.modf(v)[0])(x) == (0.0 if stdlib_math.isinf(x) else 1.0)


@given(st.lists(st.floats(-1e3, 1e3), min_size=1, max_size=8))
def test_sums_and_products_of_values(numbers):
    leaves = [Value(x) for x in numbers]
    total = 0.0
    for x in numbers:
        total += x
    assert math.fsum(leaves).data == total
    assert math.fsum(iter(leaves)).op == "sum"
    assert math.sumprod(leaves, [1.0] * len(leaves)).data == total
    assert math.prod(leaves).data == stdlib_math.prod(numbers)
    assert stdlib_math.prod(leaves).data == math.prod(leaves).data
    assert math.fsum([*numbers, leaves[0]]).data == total + numbers[0]


@given(st.lists(st.floats(-1e100, 1e100), min_size=1, max_size=5))
def test_hypot_of_values_is_that_of_floats(numbers):
    assert math.hypot(*map(Value, numbers)).data == math.hypot(*numbers)
    assert grad(lambda v: math.hypot(*v))([0.0] * len(numbers)) == [0.0] * len(numbers)


def test_code_written_for_math_runs_unchanged():
    def black_scholes(s, k, t, r, sigma, math):
        d1 = (math.log(s / k) + (r + 0.5 * sigma**2) * t) / (sigma * math.sqrt(t))
        d2 = d1 - sigma * math.sqrt(t)
        cdf = lambda x: 0.5 * math.erfc(-x / math.sqrt(2.0))  # noqa: E731
        return s * cdf(d1) - k * math.exp(-r * t) * cdf(d2)

    point = (100.0, 95.0, 0.75, 0.02, 0.3)
    price = black_scholes(*point, stdlib_math)
    assert black_scholes(*point, math) == pytest.approx(price, rel=1e-15)
    assert black_scholes(*map(Value, point), math).data == pytest.approx(price, rel=1e-15)
    delta = grad(lambda s: black_scholes(s, *point[1:], math))(100.0)
    d1 = (stdlib_math.log(100 / 95) + (0.02 + 0.045) * 0.75) / (0.3 * stdlib_math.sqrt(0.75))
    assert delta == pytest.approx(0.5 * stdlib_math.erfc(-d1 / stdlib_math.sqrt(2.0)), rel=1e-13)


@pytest.mark.parametrize("wrong", ["text", None, 1j, [1.0]])
def test_errors_name_the_function(wrong):
    for name in ("sin", "exp", "log", "sqrt", "gamma"):
        with pytest.raises(TypeError, match=rf"^{name}: operand 0 must be a Value or a real number, found "):
            getattr(math, name)(wrong)
