"""Accuracy of the special functions against mpmath, and bit equality of C and Python.

Owns the statement of how many ulps (units in the last place of the true value) each
function may err.  Must not know arrays or derivatives.
Next: csrc/special.h and pygrad/reference_special.py, which it compares.
"""

import math
import operator
import random
import struct

import pytest

from pygrad import math as compiled
from pygrad import reference_special as reference

mpmath = pytest.importorskip("mpmath")
mp, mpf = mpmath.mp, mpmath.mpf

INF, NAN, TINY, HUGE = math.inf, math.nan, 5e-324, 1.7976931348623157e308

# Worst error allowed, in ulps.  *_left: negative arguments, the error relative to the
# largest term of the formula used there.
BOUNDS = {
    "cbrt": 0.6,
    "pow_less_one": 2.0,
    "gaussian": 2.0,
    "norm_pdf": 3.0,
    "ndtr": 5.0,
    "erfcx": 3.0,
    "ierfcx": 8.0,  # n <= 6
    "ierfcx_high": 16.0,  # n <= 40
    "gamma": 6.0,
    "gamma_left": 7.0,
    "lgamma": 4.0,
    "lgamma_left": 6.0,
    "digamma": 4.0,
    "digamma_left": 4.0,
    "polygamma": 5.0,  # n <= 4
    "polygamma_high": 6.0,  # n <= 40
    "polygamma_left": 5.0,  # n <= 4
    "sinc": 3.0,
    "sinc_derivative": 4.0,  # n <= 6, |x| < 1/4
    "sinc_derivative_far": 8.0,  # n <= 6, relative to the envelope
    "sinc_derivative_high": 8.0,  # n <= 40, relative to the envelope
}


def spread(rng, count, low=-1074, high=1024, signed=True):
    """Floats whose exponents are uniform in [low, high)."""
    out = []
    for _ in range(count):
        x = math.ldexp(rng.uniform(0.5, 1.0), rng.randint(low, high))
        out.append(-x if signed and rng.random() < 0.5 else x)
    return out


def around(centres, steps=3):
    """Each centre with its nearest neighbours and points at growing distances."""
    out = []
    for c in centres:
        for direction in (INF, -INF):
            x = c
            for _ in range(steps):
                x = math.nextafter(x, direction)
                out.append(x)
            out += [c + math.copysign(10.0**-k, direction) for k in range(1, 17)]
        out.append(c)
    return out


def uniform(rng, count, low, high):
    return [rng.uniform(low, high) for _ in range(count)]


SPECIALS = [
    0.0,
    -0.0,
    1.0,
    -1.0,
    2.0,
    -2.0,
    3.0,
    -3.0,
    0.5,
    -0.5,
    INF,
    -INF,
    NAN,
    TINY,
    -TINY,
    2.2250738585072014e-308,
    HUGE,
    -HUGE,
    1e305,
    2.0**52,
    2.0**53,
    -(2.0**53),
    1e16,
]
# Where some algorithm changes branch, has a zero, overflows or underflows.
BRANCHES = [
    0.14,
    0.25,
    0.31830988618379067,
    0.5,
    0.75,
    1.0,
    1.25,
    1.4616321449683622,
    1.5,
    1.75,
    2.0,
    2.5,
    3.0,
    3.5,
    5.0,
    7.0,
    10.0,
    23.0,
    26.64,
    37.5,
    38.56,
    40.0,
    143.0,
    171.6243769563027,
    172.0,
    200.0,
    1e-9,
    1e10,
]


def true_erfcx(x):
    return mpmath.exp(mpf(x) ** 2) * mpmath.erfc(mpf(x))


def true_ierfcx(n, x):
    """The forward recurrence, with the digits it cancels added."""
    with mp.workprec(200 + int(8 * n * (1 + math.log2(1 + abs(x))))):
        before, value = 2 / mpmath.sqrt(mp.pi), true_erfcx(x)
        for k in range(1, int(n) + 1):
            before, value = value, (before / 2 - mpf(x) * value) / k
    return +value


def true_sinc_derivative(n, x):
    """pi^n times the integral of t^n cos(u t + n pi/2) over [0, 1] as a power series."""
    n = int(n)
    with mp.workprec(200 + int(10 * abs(x))):
        u, total, m = mp.pi * mpf(x), mpf(0), n % 2
        power = u**m
        while True:
            sign = -1 if ((m + n) // 2) % 2 else 1
            term = power / (m + n + 1)
            total += sign * term
            if abs(term) <= abs(total) * mpf(2) ** -150 and m > abs(u):
                return total * mp.pi**n
            power *= u * u / ((m + 1) * (m + 2))
            m += 2


def true_polygamma(n, x):
    sign = -1 if n % 2 == 0 else 1
    return sign * mpmath.factorial(n) * mpmath.zeta(n + 1, mpf(x))


def true_lgamma(x):
    return mpmath.log(abs(mpmath.gamma(mpf(x)))) if x < 1e4 else mpmath.loggamma(mpf(x))


def ulps(got, true, scale=None):
    """|got - true| in ulps of the larger of true and scale."""
    rounded = float(true)
    if math.isinf(rounded) or math.isinf(got):
        return 0.0 if got == rounded else INF
    unit = math.ulp(max(abs(rounded), float(scale) if scale is not None else 0.0))
    return float(abs(mpf(got) - true) / mpf(unit))


def check(name, function, true, points, scale=None):
    """Asserts the bound BOUNDS[name] at every point, a tuple of arguments."""
    worst, where = 0.0, None
    with mp.workprec(160):
        for p in points:
            error = ulps(function(*p), true(*p), scale(*p) if scale else None)
            if not error <= worst:
                worst, where = error, p
    assert worst <= BOUNDS[name], (name, worst, where)
    return worst, where


def singles(xs, low=-INF, high=INF):
    return [(x,) for x in xs if low <= x <= high and not math.isnan(x)]


def pairs(ns, xs, low=-INF, high=INF):
    return [(float(n), x) for n in ns for x in xs if low <= x <= high and not math.isnan(x)]


def positive(rng, count):
    return (
        uniform(rng, count, 0, 4)
        + uniform(rng, count, 0, 12)
        + spread(rng, count, -30, 12, False)
        + spread(rng, count // 2, signed=False)
        + around(b for b in BRANCHES if b < 1e3)
    )


def accuracy_cases(count):
    """(name, function, true value, points[, scale]) for every entry of BOUNDS."""
    rng = random.Random(7)
    right = positive(rng, count)
    both = right + [-x for x in right]
    negative = uniform(rng, count, -8, 0) + uniform(rng, count, -170, 0) + spread(rng, count, -30, 30)
    negative = [-abs(x) for x in negative + around([1.5, 2.5, 7.0, 0.25, 1.0, 2.0, 13.0])]
    negative = [x for x in negative if x != math.floor(x)]
    few = right[::6]
    moderate = [x for x in few if x < 60.0]
    bases = spread(rng, count, -40, 40, False)
    pi, sin = mp.pi, mpmath.sinpi

    def nearest(x):
        return abs(mpf(x) - mpmath.nint(mpf(x)))

    return [
        (
            "cbrt",
            compiled.cbrt,
            lambda x: mpmath.sign(x) * mpmath.cbrt(abs(mpf(x))),
            singles(spread(rng, 2 * count) + both),
        ),
        (
            "pow_less_one",
            compiled.pow_less_one,
            lambda a, b: mpf(a) ** (mpf(b) - 1),
            [(a, b) for a in bases for b in (0.1, 1 / 3, 0.5, 1e-3, 2.5, 3.0, -0.7, 1e-20)],
        ),
        (
            "gaussian",
            compiled.gaussian,
            lambda x: mpmath.exp(-(mpf(x) ** 2)),
            singles(both + uniform(rng, count, 20, 28), -1e3, 1e3),
        ),
        (
            "norm_pdf",
            compiled.norm_pdf,
            lambda x: mpmath.exp(-(mpf(x) ** 2) / 2) / mpmath.sqrt(2 * pi),
            singles(both + uniform(rng, count, 30, 40), -1e3, 1e3),
        ),
        (
            "ndtr",
            compiled.ndtr,
            lambda x: mpmath.erfc(-mpf(x) / mpmath.sqrt(2)) / 2,
            singles(both + uniform(rng, count, -40, 0), -1e3, 1e3),
        ),
        ("erfcx", compiled.erfcx, true_erfcx, singles(both, -27, 1e9)),
        (
            "ierfcx",
            compiled.ierfcx,
            true_ierfcx,
            pairs(range(1, 7), few, 0, 1e9) + pairs(range(1, 7), [-x for x in few], -26),
        ),
        (
            "ierfcx_high",
            compiled.ierfcx,
            true_ierfcx,
            pairs((7, 12, 25, 40), moderate[::2]) + pairs((10, 40), [-x for x in moderate[::2]], -20),
        ),
        (
            "gamma",
            compiled.gamma,
            lambda x: mpmath.gamma(mpf(x)),
            singles(right + uniform(rng, count, 0, 172), TINY, 1e3),
        ),
        ("gamma_left", compiled.gamma, lambda x: mpmath.gamma(mpf(x)), singles(negative, -300)),
        ("lgamma", compiled.lgamma, true_lgamma, singles(right, TINY)),
        (
            "lgamma_left",
            compiled.lgamma,
            true_lgamma,
            singles(negative, -300),
            lambda x: max(abs(true_lgamma(-x)), abs(mpmath.log(pi / abs(x * sin(mpf(x)))))),
        ),
        ("digamma", compiled.digamma, lambda x: mpmath.digamma(mpf(x)), singles(right, TINY)),
        (
            "digamma_left",
            compiled.digamma,
            lambda x: mpmath.digamma(mpf(x)),
            singles(negative, -1e9),
            lambda x: max(abs(mpmath.digamma(-mpf(x))), 1 / nearest(x)),
        ),
        ("polygamma", compiled.polygamma, true_polygamma, pairs(range(1, 5), few, TINY)),
        ("polygamma_high", compiled.polygamma, true_polygamma, pairs((5, 7, 10, 20, 40), moderate, 1e-6)),
        (
            "polygamma_left",
            compiled.polygamma,
            lambda n, x: mpmath.psi(int(n), mpf(x)),
            pairs(range(1, 5), negative[::8], -30),
            lambda n, x: mpmath.factorial(n) / nearest(x) ** (n + 1),
        ),
        ("sinc", compiled.sinc, mpmath_sinc, singles(both)),
        ("sinc_derivative", compiled.sinc_derivative, true_sinc_derivative, pairs(range(1, 7), both[::4], -0.25, 0.25)),
        (
            "sinc_derivative_far",
            compiled.sinc_derivative,
            true_sinc_derivative,
            pairs(range(1, 7), moderate),
            lambda n, x: pi**n / (n + 1 + pi * abs(x)),
        ),
        (
            "sinc_derivative_high",
            compiled.sinc_derivative,
            true_sinc_derivative,
            pairs((7, 10, 20, 40), moderate[::2]),
            lambda n, x: pi**n / (n + 1 + pi * abs(x)),
        ),
    ]


def mpmath_sinc(x):
    return mpmath.sinpi(mpf(x)) / (mp.pi * mpf(x)) if x else mpf(1)


@pytest.mark.parametrize("case", accuracy_cases(60), ids=operator.itemgetter(0))
def test_accuracy(case):
    check(*case)


def bits(x):
    return "nan" if x != x else struct.pack("<d", x)


EDGES = [
    ("cbrt", (0.0,), 0.0),
    ("cbrt", (-0.0,), -0.0),
    ("cbrt", (-INF,), -INF),
    ("cbrt", (NAN,), NAN),
    ("power", (0.0, -1.0), INF),
    ("power", (-0.0, -1.0), -INF),
    ("power", (-0.0, -2.0), INF),
    ("power", (-8.0, 1 / 3), NAN),
    ("power", (NAN, 0.0), 1.0),
    ("power", (1.0, NAN), 1.0),
    ("power", (-10.0, 309.0), -INF),
    ("power", (-10.0, 310.0), INF),
    ("power", (-INF, 3.0), -INF),
    ("pow_less_one", (0.0, 1.0), 1.0),
    ("pow_less_one", (0.0, 0.5), INF),
    ("ldexp", (3.0, 4.0), 48.0),
    ("ldexp", (-1.0, 2000.0), -INF),
    ("ldexp", (1.0, -1074.0), TINY),
    ("ldexp", (0.0, INF), NAN),
    ("ldexp", (3.0, 0.5), 3.0 * math.pow(2.0, 0.5)),
    ("mod", (5.0, 0.0), NAN),
    ("mod", (-1.0, 3.0), 2.0),
    ("mod", (4.0, -2.0), -0.0),
    ("mod", (1.0, -INF), -INF),
    ("floordiv", (5.0, 0.0), INF),
    ("floordiv", (-0.0, 3.0), -0.0),
    ("floordiv", (0.0, 0.0), NAN),
    ("ieee_remainder", (1.0, 0.0), NAN),
    ("ieee_remainder", (INF, 1.0), NAN),
    ("ieee_remainder", (5.0, INF), 5.0),
    ("gaussian", (INF,), 0.0),
    ("gaussian", (0.0,), 1.0),
    ("norm_pdf", (-INF,), 0.0),
    ("ndtr", (-INF,), 0.0),
    ("ndtr", (INF,), 1.0),
    ("ndtr", (0.0,), 0.5),
    ("ndtr", (NAN,), NAN),
    ("erfcx", (0.0,), 1.0),
    ("erfcx", (INF,), 0.0),
    ("erfcx", (-INF,), INF),
    ("erfcx", (-27.0,), INF),
    ("ierfcx", (0.5, 1.0), NAN),
    ("ierfcx", (-1.0, 1.0), NAN),
    ("ierfcx", (3.0, INF), 0.0),
    ("ierfcx", (3.0, -INF), INF),
    ("ierfcx", (2.0, 0.0), 0.25),
    ("ierfcx", (1e9, -3.0), 0.0),
    ("gamma", (0.0,), INF),
    ("gamma", (-0.0,), -INF),
    ("gamma", (-1.0,), NAN),
    ("gamma", (INF,), INF),
    ("gamma", (-INF,), NAN),
    ("gamma", (171.7,), INF),
    ("gamma", (-191.5,), 0.0),
    ("gamma", (-200.5,), -0.0),
    ("gamma", (TINY,), INF),
    ("lgamma", (1.0,), 0.0),
    ("lgamma", (2.0,), 0.0),
    ("lgamma", (-3.0,), INF),
    ("lgamma", (0.0,), INF),
    ("lgamma", (INF,), INF),
    ("lgamma", (-INF,), INF),
    ("lgamma", (HUGE,), INF),
    ("digamma", (0.0,), -INF),
    ("digamma", (-0.0,), INF),
    ("digamma", (-2.0,), NAN),
    ("digamma", (INF,), INF),
    ("digamma", (-INF,), NAN),
    ("polygamma", (1.0, 0.0), INF),
    ("polygamma", (1.0, -3.0), INF),
    ("polygamma", (2.0, 0.0), -INF),
    ("polygamma", (2.0, -0.0), INF),
    ("polygamma", (2.0, -3.0), NAN),
    ("polygamma", (3.0, INF), 0.0),
    ("polygamma", (1.5, 1.0), NAN),
    ("polygamma", (1.0, -INF), NAN),
    ("sinc", (0.0,), 1.0),
    ("sinc", (3.0,), 0.0),
    ("sinc", (-INF,), 0.0),
    ("sinc", (NAN,), NAN),
    ("sinc_derivative", (1.0, 1e-6), -3.28986813369321e-06),
    ("sinc_derivative", (1.0, 1e-9), -3.28986813369645e-09),
    ("sinc_derivative", (1.0, 4.0), 0.25),
    ("sinc_derivative", (2.0, INF), 0.0),
    ("sinc_derivative", (-1.0, 2.0), NAN),
]


@pytest.mark.parametrize("name, args, value", EDGES)
def test_edges(name, args, value):
    got = getattr(compiled, name)(*args)
    if 0 < abs(value) < INF:
        assert got == pytest.approx(value, rel=2e-15, abs=0.0)
    else:
        assert bits(got) == bits(value)


def test_exact_values():
    for k in range(-200, 201):
        assert compiled.cbrt(float(k**3)) == k
    for k in range(1, 24):
        assert compiled.gamma(float(k)) == math.factorial(k - 1)
    for x in (0.1, 1e-5, 0.7, 3.3, 25.5):
        for n in range(8):
            sign = -1.0 if n % 2 else 1.0
            assert compiled.sinc_derivative(float(n), -x) == sign * compiled.sinc_derivative(float(n), x)


def test_division_agrees_with_python():
    rng = random.Random(3)
    xs = spread(rng, 300, -60, 60) + [float(k) for k in range(-9, 10)] + [INF, -INF, -0.0, TINY, HUGE]
    for a in xs:
        for b in rng.sample(xs, 12):
            if b == 0.0:
                continue
            assert bits(compiled.mod(a, b)) == bits(a % b), (a, b)
            assert bits(compiled.floordiv(a, b)) == bits(a // b), (a, b)
            if not math.isinf(a):
                assert bits(compiled.ieee_remainder(a, b)) == bits(math.remainder(a, b)), (a, b)


UNARY = ["cbrt", "gaussian", "norm_pdf", "ndtr", "erfcx", "gamma", "lgamma", "digamma", "sinc"]
BINARY = ["power", "pow_less_one", "ldexp", "mod", "floordiv", "ieee_remainder"]
ORDERED = ["ierfcx", "polygamma", "sinc_derivative"]


def unary_points():
    rng = random.Random(1)
    special = around(BRANCHES) + SPECIALS + [k * 0.5 for k in range(400)]
    return (
        spread(rng, 6000)
        + spread(rng, 4000, -12, 10)
        + uniform(rng, 4000, -4, 4)
        + uniform(rng, 4000, -40, 40)
        + uniform(rng, 1500, -200, 200)
        + special
        + [-x for x in special]
    )


def binary_points():
    rng = random.Random(2)
    points = [(a, b) for a in SPECIALS for b in SPECIALS]
    points += list(zip(spread(rng, 6000), spread(rng, 6000), strict=True))
    points += list(zip(spread(rng, 6000, -40, 40), uniform(rng, 6000, -40, 40), strict=True))
    points += [(x, float(rng.randint(-1100, 1100))) for x in spread(rng, 4000)]
    points += [(x, rng.randint(-90, 90) / 2) for x in spread(rng, 4000, -12, 12)]
    return points


def ordered_points():
    rng = random.Random(4)
    points = [(n, x) for n in [*SPECIALS, 4.0, 5.0, 1e4] for x in SPECIALS]
    points += [(float(rng.randint(0, 7)), x) for x in unary_points()]
    points += [(float(rng.randint(0, 40)), x) for x in uniform(rng, 4000, -30, 30)]
    points += [(float(rng.randint(1, 7)), x) for x in uniform(rng, 4000, -4, 8)]
    points += [(float(rng.randint(100, 700)), x) for x in spread(rng, 400, -20, 20)]
    return points


@pytest.mark.parametrize("name", UNARY + BINARY + ORDERED)
def test_bits_agree(name):
    c, python = getattr(compiled, name), getattr(reference, name)
    if name in UNARY:
        points = [(x,) for x in unary_points()]
    else:
        points = binary_points() if name in BINARY else ordered_points()
    assert len(points) >= 20000
    different = [p for p in points if bits(c(*p)) != bits(python(*p))]
    assert not different, (len(different), different[:5])
