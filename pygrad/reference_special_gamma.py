"""The gamma function family: the twin of csrc/special_gamma.c.

Owns the formulas of gamma, of its logarithm and of the derivatives of that.  The contract
is in reference_special.py.
Next: csrc/special_tables.py, which derives the coefficients.
"""

import math

from pygrad import reference_special_tables as table
from pygrad.reference_special_blocks import INF, NAN, PI, exp, floor, is_order, polynomial, pow, sin_pi

EULER = 0.5772156649015329
SQRT_TWO_PI = 2.5066282746310007
HALF_LOG_TWO_PI_LESS_HALF = 0.4189385332046727


def _stirling(x: float) -> float:
    """log gamma(x) - (x - 1/2) log x + x - log(2 pi) / 2 for x >= 7 (DLMF 5.11.1)."""
    r = 1.0 / x
    return r * polynomial(table.STIRLING, r * r)


def _gamma_integer(x: float) -> float:
    if x == 0.0:
        return math.copysign(INF, x)
    if x < 0.0:
        return NAN
    product = 1.0
    while x > 2.0:
        x -= 1.0
        product *= x
    return product


def _gamma_small(x: float) -> float:
    """gamma for 0 < x < 7, from 1 / gamma(1 + t) on 0 <= t < 1."""
    if x < 1.0:
        return 1.0 / (x * polynomial(table.RECIPROCAL_GAMMA, x - 0.5))
    product = 1.0
    while x >= 2.0:
        x -= 1.0
        product *= x
    return product / polynomial(table.RECIPROCAL_GAMMA, x - 1.5)


def _gamma_factors(x: float) -> tuple[float, float]:
    """(p, q) with gamma(x) = p q p for 7 <= x <= 200: p = x^((x - 1/2) / 2)."""
    p = math.pow(x, 0.5 * x - 0.25)
    q = SQRT_TWO_PI + SQRT_TWO_PI * math.expm1(_stirling(x))
    return p, math.exp(-x) * q


def _gamma_negative(y: float) -> float:
    """gamma(-y) = -pi / (y sin(pi y) gamma(y)) (DLMF 5.5.3), y > 0 not an integer."""
    d = y * sin_pi(y)
    if y < 7.0:
        return -PI / (d * _gamma_small(y))
    if y > 200.0:
        return math.copysign(0.0, -d)
    p, q = _gamma_factors(y)
    return ((-PI / d) / p / q) / p


def gamma(x: float) -> float:
    """The gamma function; exact for the integers up to 23."""
    if x > 172.0:
        return INF
    if x <= 23.0 and x == floor(x):
        return _gamma_integer(x)
    if abs(x) < 1e-9:
        return 1.0 / (x * (1.0 + EULER * x))
    if x < 0.0:
        return _gamma_negative(-x)
    if x < 7.0:
        return _gamma_small(x)
    p, q = _gamma_factors(x)
    return (p * q) * p


def _lgamma_positive(x: float) -> float:
    """Fitted pieces that carry the zeros at 1 and 2 as factors, Stirling from 7 on."""
    if x < 0.25:
        return x * polynomial(table.LGAMMA[0], x) - math.log(x)
    if x < 0.75:
        return polynomial(table.LGAMMA[1], x - 0.5) - math.log(x)
    if x < 1.25:
        return (1.0 - x) * -polynomial(table.LGAMMA[0], x - 1.0)  # +0 at x = 1
    if x < 1.75:
        return polynomial(table.LGAMMA[1], x - 1.5)
    if x < 2.5:
        return (x - 2.0) * polynomial(table.LGAMMA[2], x - 2.125)
    if x < 7.0:
        product = 1.0
        while x >= 3.5:
            x -= 1.0
            product *= x
        return polynomial(table.LGAMMA[3], x - 3.0) + math.log(product)
    lead = (x - 0.5) * (math.log(x) - 1.0)
    return lead + (HALF_LOG_TWO_PI_LESS_HALF + _stirling(x))


def lgamma(x: float) -> float:
    """log |gamma(x)|; for x < 0 by reflection (DLMF 5.5.3), where the error is relative
    to the larger of the two terms; inf at the poles."""
    if x > 0.0:
        return _lgamma_positive(x)
    if x == floor(x):
        return INF
    if x > -0.25:
        return x * polynomial(table.LGAMMA[0], x) - math.log(-x)
    y = -x
    return math.log(PI / (y * abs(sin_pi(y)))) - _lgamma_positive(y)


def _digamma_one_plus(t: float) -> float:
    """digamma(1 + t) for 0 <= t < 2, the zero taken out in two floats."""
    factor = (t - table.PSI_ROOT_LESS_ONE[0]) - table.PSI_ROOT_LESS_ONE[1]
    if t < 0.75:
        return factor * polynomial(table.DIGAMMA[0], t - 0.375)
    return factor * polynomial(table.DIGAMMA[1], t - 1.375)


def _digamma_positive(x: float) -> float:
    """Recurrence (DLMF 5.5.2) below 7, asymptotic series (DLMF 5.11.2) from there on."""
    if x < 1.0:
        return _digamma_one_plus(x) - 1.0 / x
    if x < 7.0:
        total = 0.0
        while x >= 3.0:
            x -= 1.0
            total += 1.0 / x
        return _digamma_one_plus(x - 1.0) + total
    r = 1.0 / x
    square = r * r
    return (math.log(x) - 0.5 * r) - square * polynomial(table.DIGAMMA_LARGE, square)


def digamma(x: float) -> float:
    """The logarithmic derivative of gamma; for x < 0 by reflection (DLMF 5.5.4)."""
    if x > 0.0:
        return _digamma_positive(x)
    if x == 0.0:
        return math.copysign(INF, -x)
    if x == floor(x) or x != x:
        return NAN
    y = -x
    cotangent = PI / math.tan(PI * (y - floor(y + 0.5)))
    if y < 1.0:
        return _digamma_one_plus(y) + cotangent
    return (_digamma_positive(y) + 1.0 / y) + cotangent


def _zeta_tail(n: float, a: float) -> float:
    """a^n sum_{k >= 0} (a + k)^-(n+1) for a >= n + 10: Euler-Maclaurin (DLMF 25.11.43)."""
    r = 1.0 / a
    square = r * r
    rising = (n + 1.0) * square
    total = 0.0
    step = n + 2.0
    for c in table.ZETA_TAIL:
        total += c * rising
        rising = rising * ((step * (step + 1.0)) * square)
        step += 2.0
    return 1.0 / n + (0.5 * r + total)


def _zeta_sum(n: float, x: float, base: float) -> float:
    """base^n zeta(n + 1, x) for x > 0, n >= 1, smallest terms first.  Stops where
    Euler-Maclaurin takes over or the terms have fallen below 1e-18 of the first."""
    full = floor(n + 11.0 - x)
    enough = floor(x * math.expm1(42.0 / n)) + 1.0
    k = full if full > 0.0 else 0.0
    total = 0.0
    if k <= enough:
        total = pow((x + k) / base, -n) * _zeta_tail(n, x + k)
    else:
        k = enough
    while k > 0.0:
        k -= 1.0
        total += pow((x + k) / base, -n - 1.0) / base
    return total


def _factorial_zeta(n: float, x: float) -> float:
    """n! zeta(n + 1, x), |polygamma(n, x)| for x > 0; scaled where a factor leaves the
    range of floats (beyond n = 170 to a relative error of about 1e-12)."""
    if n <= 170.0 and pow(x, -n) > 1e-290:
        return gamma(n + 1.0) * _zeta_sum(n, x, 1.0)
    total = _zeta_sum(n, x, x)
    if n <= 170.0:
        p = pow(x, -0.5 * n)
        return ((gamma(n + 1.0) * total) * p) * p
    return exp((lgamma(n + 1.0) - n * math.log(x)) + math.log(total))


def _polygamma_negative(n: float, y: float, odd: bool) -> float:
    """polygamma(n, -y), y > 0 not an integer: the sum of (k - y)^-(n+1) over k >= 0 is
    the sum over all integers k, about the nearest pole, less the sum over k < 0."""
    r = floor(y + 0.5) - y
    nearest = gamma(n + 1.0) * pow(abs(r), -n - 1.0)
    if nearest == INF:
        return INF if odd or r < 0.0 else -INF
    right = _factorial_zeta(n, 1.0 + r)
    left = _factorial_zeta(n, 1.0 - r)
    rest = _factorial_zeta(n, 1.0 + y)
    if odd:
        return nearest + ((right + left) - rest)
    if r < 0.0:
        nearest = -nearest
    return -(nearest + ((right - left) + rest))


def polygamma(n: float, x: float) -> float:
    """The n-th derivative of digamma, (-1)^(n+1) n! zeta(n + 1, x) (DLMF 5.15.1, 25.11.12).
    At the poles inf for odd n; for even n nan, but -inf at 0 and inf at -0."""
    if not is_order(n) or x != x or x == -INF:
        return NAN
    if n == 0.0:
        return digamma(x)
    odd = math.fmod(n, 2.0) == 1.0
    if x == INF:
        return 0.0
    if x > 0.0:
        return _factorial_zeta(n, x) if odd else -_factorial_zeta(n, x)
    if x == floor(x):
        if odd:
            return INF
        return math.copysign(INF, -x) if x == 0.0 else NAN
    return _polygamma_negative(n, -x, odd)
