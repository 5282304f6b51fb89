"""The special functions in plain Python: the readable twin of csrc/special.c.

Owns the formulas of the gamma, error-function and sinc families, powers and remainders
for one float at a time.  Every function runs the same operations in the same order as
pg_<name> in csrc/special.c, so that the two agree bit for bit; change both or neither.
Must not know arrays, derivatives or the extension module.  All functions are total:
poles, overflow and domain errors give inf or nan, never an exception.
Next: csrc/special_tables.py, which derives the coefficients.
"""

import math
from collections.abc import Sequence

from pygrad import reference_special_tables as table

INF = math.inf
NAN = math.nan
PI = 3.141592653589793
PI_TAIL = 3.8981718325193755e-17  # (pi - PI) / pi
EULER = 0.5772156649015329
SQRT_HALF = 0.7071067811865476
SQRT_TWO_PI = 2.5066282746310007
INV_SQRT_PI = 0.5641895835477563
TWO_OVER_SQRT_PI = 1.1283791670955126
INV_SQRT_TWO_PI = 0.3989422804014327
HALF_LOG_TWO_PI_LESS_HALF = 0.4189385332046727
IERFCX_REACH = 200.0  # x^2 + 2 k from which the expansion of the ratio is good
SPLITTER = 134217729.0  # 2^27 + 1
MAX_ORDER = 1e9  # larger orders n count as invalid


# IEEE versions of what the standard library answers with an exception or an int.


def _exp(x: float) -> float:
    try:
        return math.exp(x)
    except OverflowError:
        return INF


def _pow(a: float, b: float) -> float:
    """C pow, signs of zeros and infinities included."""
    try:
        return math.pow(a, b)
    except ValueError:  # pole at zero, or a negative base with a fractional exponent
        if a != 0.0:
            return NAN
        odd = b != -INF and math.fmod(b, 2.0) == -1.0
        return math.copysign(INF, a) if odd else INF
    except OverflowError:
        return -INF if a < 0.0 and math.fmod(b, 2.0) != 0.0 else INF


def _divide(a: float, b: float) -> float:
    if b != 0.0:
        return a / b
    if a == 0.0 or a != a or b != b:
        return NAN
    return math.copysign(INF, a) * math.copysign(1.0, b)


def _floor(x: float) -> float:
    """floor as a float; inf, nan and -0.0 pass through."""
    return float(math.floor(x)) if abs(x) < 4503599627370496.0 and x != 0.0 else x


# Building blocks.


def _polynomial(coefficients: Sequence[float], x: float) -> float:
    """Horner's rule, lowest power first in the table."""
    value = 0.0
    for c in reversed(coefficients):
        value = value * x + c
    return value


def _two_product(a: float, b: float) -> tuple[float, float]:
    """a * b as an unevaluated sum of two floats (Dekker 1971); exact for |a|, |b| < 1e150
    unless the low part underflows."""
    t = SPLITTER * a
    ah = t - (t - a)
    al = a - ah
    t = SPLITTER * b
    bh = t - (t - b)
    bl = b - bh
    p = a * b
    return p, ((ah * bh - p) + ah * bl + al * bh) + al * bl


def _is_order(n: float) -> bool:
    return 0.0 <= n <= MAX_ORDER and n == _floor(n)


def _sin_pi(x: float) -> float:
    """sin(pi x) for x >= 0: the reduction modulo 2 and into [0, 1/4] is exact."""
    r = math.fmod(x, 2.0)
    sign = 1.0
    if r >= 1.0:
        r = r - 1.0
        sign = -1.0
    if r == 0.0:
        return 0.0
    if r > 0.5:
        r = 1.0 - r
    if r <= 0.25:
        return sign * math.sin(PI * r)
    return sign * math.cos(PI * (0.5 - r))


def _cos_pi(x: float) -> float:
    """cos(pi x) for x >= 0, reduced like _sin_pi."""
    r = math.fmod(x, 2.0)
    sign = 1.0
    if r > 1.0:
        r = 2.0 - r
    if r > 0.5:
        r = 1.0 - r
        sign = -1.0
    if r <= 0.25:
        return sign * math.cos(PI * r)
    return sign * math.sin(PI * (0.5 - r))


# Powers and roots.


def cbrt(x: float) -> float:
    """Cube root: pow as a start, then one Newton step on an exactly computed residual."""
    if x == 0.0 or x - x != 0.0:
        return x
    m, e = math.frexp(abs(x))
    shift = e % 3
    m = math.ldexp(m, shift)
    y = math.pow(m, 0.3333333333333333)
    square, square_low = _two_product(y, y)
    cube, cube_low = _two_product(square, y)
    y = y + (((m - cube) - cube_low) - square_low * y) / (3.0 * square)
    return math.copysign(math.ldexp(y, (e - shift) // 3), x)


def power(a: float, b: float) -> float:
    """C pow(a, b), but the exponents 1 and 2 are exact respectively rounded once."""
    if b == 2.0:
        return a * a
    if b == 1.0:
        return a
    return _pow(a, b)


def pow_less_one(a: float, b: float) -> float:
    """a ** (b - 1), without the rounding error of b - 1 in the exponent."""
    if b == 2.0:
        return a
    if (b - 1.0) + 1.0 == b:
        return power(a, b - 1.0)
    y = _pow(a, b)
    if 1e-290 < abs(y) < 1e290:
        return y / a
    return power(a, b - 1.0)


def ldexp(a: float, b: float) -> float:
    """a * 2^b for a float b, also where 2^b alone overflows; rounded once if b is an integer."""
    if b - b != 0.0:
        return a * _pow(2.0, b)  # inf, nan
    whole = math.trunc(b)
    try:
        scaled = math.ldexp(a, min(max(whole, -1000000), 1000000))
    except OverflowError:
        scaled = math.copysign(INF, a)
    return scaled * _pow(2.0, b - whole)


# Division with remainder.


def mod(a: float, b: float) -> float:
    """Python's a % b (sign of b), nan at b == 0."""
    return a % b if b != 0.0 else NAN


def floordiv(a: float, b: float) -> float:
    """Python's a // b, a / b at b == 0."""
    return a // b if b != 0.0 else _divide(a, b)


def ieee_remainder(a: float, b: float) -> float:
    """IEEE 754 remainder: a - n b with n the integer nearest to a / b, ties to even."""
    try:
        return math.remainder(a, b)
    except ValueError:
        return NAN


# The normal distribution and the error function family.


def _scaled_exp(c: float, p: float, e: float) -> float:
    """c exp(-(p + e)) with |e| a rounding error of p; in two factors where exp(-p) would
    be subnormal, so that the only rounding there is the last one."""
    if p < 700.0:
        y = _exp(-p)
        return c * (y - y * e)
    y = _exp(-0.5 * p)
    return (c * (y - y * e)) * y


def gaussian(x: float) -> float:
    """exp(-x^2), x^2 carried in two floats."""
    if abs(x) > 40.0:
        return 0.0
    p, e = _two_product(x, x)
    return _scaled_exp(1.0, p, e)


def norm_pdf(x: float) -> float:
    """Standard normal density exp(-x^2 / 2) / sqrt(2 pi)."""
    if abs(x) > 40.0:
        return 0.0
    p, e = _two_product(x, x)
    return _scaled_exp(INV_SQRT_TWO_PI, 0.5 * p, 0.5 * e)


def ndtr(x: float) -> float:
    """Standard normal cdf: exp(-x^2 / 2) erfcx(|x| / sqrt 2) / 2 is the tail (DLMF 7.17)."""
    if x > 40.0:
        return 1.0
    if x < -40.0:
        return 0.0
    p, e = _two_product(x, x)
    tail = _scaled_exp(0.5 * _erfcx_right(abs(x) * SQRT_HALF), 0.5 * p, 0.5 * e)
    return tail if x < 0.0 else 1.0 - tail


def _erfcx_right(x: float) -> float:
    """erfcx for x >= -1/2: fitted polynomials, from 5 on in 1 / x^2 (DLMF 7.12.1)."""
    if x < 0.5:
        return _polynomial(table.ERFCX[0], x)
    if x < 1.5:
        return _polynomial(table.ERFCX[1], x - 1.0)
    if x < 3.0:
        return _polynomial(table.ERFCX[2], x - 2.25)
    if x < 5.0:
        return _polynomial(table.ERFCX[3], x - 4.0)
    r = 1.0 / x
    return (_polynomial(table.ERFCX_LARGE, r * r) * INV_SQRT_PI) / x


def erfcx(x: float) -> float:
    """exp(x^2) erfc(x); left of -1/2 by erfc(x) = 2 - erfc(-x)."""
    if x < -26.64:
        return INF
    if x < -0.5:
        p, e = _two_product(x, x)
        y = _exp(p)
        return 2.0 * (y + y * e) - _erfcx_right(-x)
    return _erfcx_right(x)


def _ierfcx_start(k: float, x: float) -> float:
    """I_k / I_{k-1} for large x^2 + 2 k.  With s^2 = x^2 + 2 k and c = x / s the solution of
    v' = v^2 - s^2 + 1 expands as s + sum p_j(c) / s^(2 j - 1), and the ratio is
    (v - x) / (2 k): the Riccati equation of y'' = 2 x y' + 2 k y, y = I_{k-1}."""
    if x > 1e10:
        return 0.5 / x
    s = math.sqrt(x * x + 2.0 * k)
    c = x / s
    r = 1.0 / s
    factor = r * r
    total = 0.0
    for j in range(7, -1, -1):
        total = total * factor + _polynomial(table.IERFCX_START[j], c)
    return (2.0 * k / (s + x) + total * r) / (2.0 * k)


def _ierfcx_forward(n: float, x: float) -> float:
    """2 k I_k = I_{k-2} - 2 x I_{k-1} (DLMF 7.18.7): all terms positive for x <= 0."""
    before = TWO_OVER_SQRT_PI
    value = erfcx(x)
    k = 1.0
    while k <= n and 0.0 < value < INF:
        after = (0.5 * before - x * value) / k
        before = value
        value = after
        k += 1.0
    return value


def _ierfcx_backward(n: float, x: float) -> float:
    """erfcx times the ratios I_k / I_{k-1}, which the same recurrence gives downwards
    without cancellation (Gautschi 1961)."""
    k = n + 1.0
    if x < 100.0 and k < _floor(0.5 * (IERFCX_REACH - x * x)):
        k = _floor(0.5 * (IERFCX_REACH - x * x))
    ratio = _ierfcx_start(k, x)
    product = 1.0
    while k > 1.0:
        ratio = 0.5 / (x + k * ratio)
        k -= 1.0
        if k <= n:
            product = product * ratio
    return product * erfcx(x)


def ierfcx(n: float, x: float) -> float:
    """exp(x^2) i^n erfc(x), the scaled repeated integral of erfc (DLMF 7.18)."""
    if not _is_order(n) or x != x:
        return NAN
    if n == 0.0:
        return erfcx(x)
    if x <= 0.0 or n * x * x < 0.02:
        return _ierfcx_forward(n, x)
    if n > 300.0:
        return 0.0
    return _ierfcx_backward(n, x)


# The gamma function family.


def _stirling(x: float) -> float:
    """log gamma(x) - (x - 1/2) log x + x - log(2 pi) / 2 for x >= 7 (DLMF 5.11.1)."""
    r = 1.0 / x
    return r * _polynomial(table.STIRLING, r * r)


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
        return 1.0 / (x * _polynomial(table.RECIPROCAL_GAMMA, x - 0.5))
    product = 1.0
    while x >= 2.0:
        x -= 1.0
        product *= x
    return product / _polynomial(table.RECIPROCAL_GAMMA, x - 1.5)


def _gamma_factors(x: float) -> tuple[float, float]:
    """(p, q) with gamma(x) = p q p for 7 <= x <= 200: p = x^((x - 1/2) / 2)."""
    p = math.pow(x, 0.5 * x - 0.25)
    q = SQRT_TWO_PI + SQRT_TWO_PI * math.expm1(_stirling(x))
    return p, math.exp(-x) * q


def _gamma_negative(y: float) -> float:
    """gamma(-y) = -pi / (y sin(pi y) gamma(y)) (DLMF 5.5.3), y > 0 not an integer."""
    d = y * _sin_pi(y)
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
    if x <= 23.0 and x == _floor(x):
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
        return x * _polynomial(table.LGAMMA[0], x) - math.log(x)
    if x < 0.75:
        return _polynomial(table.LGAMMA[1], x - 0.5) - math.log(x)
    if x < 1.25:
        return (1.0 - x) * -_polynomial(table.LGAMMA[0], x - 1.0)  # +0 at x = 1
    if x < 1.75:
        return _polynomial(table.LGAMMA[1], x - 1.5)
    if x < 2.5:
        return (x - 2.0) * _polynomial(table.LGAMMA[2], x - 2.125)
    if x < 7.0:
        product = 1.0
        while x >= 3.5:
            x -= 1.0
            product *= x
        return _polynomial(table.LGAMMA[3], x - 3.0) + math.log(product)
    lead = (x - 0.5) * (math.log(x) - 1.0)
    return lead + (HALF_LOG_TWO_PI_LESS_HALF + _stirling(x))


def lgamma(x: float) -> float:
    """log |gamma(x)|; for x < 0 by reflection (DLMF 5.5.3), where the error is relative
    to the larger of the two terms; inf at the poles."""
    if x > 0.0:
        return _lgamma_positive(x)
    if x == _floor(x):
        return INF
    if x > -0.25:
        return x * _polynomial(table.LGAMMA[0], x) - math.log(-x)
    y = -x
    return math.log(PI / (y * abs(_sin_pi(y)))) - _lgamma_positive(y)


def _digamma_one_plus(t: float) -> float:
    """digamma(1 + t) for 0 <= t < 2, the zero taken out in two floats."""
    factor = (t - table.PSI_ROOT_LESS_ONE[0]) - table.PSI_ROOT_LESS_ONE[1]
    if t < 0.75:
        return factor * _polynomial(table.DIGAMMA[0], t - 0.375)
    return factor * _polynomial(table.DIGAMMA[1], t - 1.375)


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
    return (math.log(x) - 0.5 * r) - square * _polynomial(table.DIGAMMA_LARGE, square)


def digamma(x: float) -> float:
    """The logarithmic derivative of gamma; for x < 0 by reflection (DLMF 5.5.4)."""
    if x > 0.0:
        return _digamma_positive(x)
    if x == 0.0:
        return math.copysign(INF, -x)
    if x == _floor(x) or x != x:
        return NAN
    y = -x
    cotangent = PI / math.tan(PI * (y - _floor(y + 0.5)))
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
    full = _floor(n + 11.0 - x)
    enough = _floor(x * math.expm1(42.0 / n)) + 1.0
    k = full if full > 0.0 else 0.0
    total = 0.0
    if k <= enough:
        total = _pow((x + k) / base, -n) * _zeta_tail(n, x + k)
    else:
        k = enough
    while k > 0.0:
        k -= 1.0
        total += _pow((x + k) / base, -n - 1.0) / base
    return total


def _factorial_zeta(n: float, x: float) -> float:
    """n! zeta(n + 1, x), |polygamma(n, x)| for x > 0; scaled where a factor leaves the
    range of floats (beyond n = 170 to a relative error of about 1e-12)."""
    if n <= 170.0 and _pow(x, -n) > 1e-290:
        return gamma(n + 1.0) * _zeta_sum(n, x, 1.0)
    total = _zeta_sum(n, x, x)
    if n <= 170.0:
        p = _pow(x, -0.5 * n)
        return ((gamma(n + 1.0) * total) * p) * p
    return _exp((lgamma(n + 1.0) - n * math.log(x)) + math.log(total))


def _polygamma_negative(n: float, y: float, odd: bool) -> float:
    """polygamma(n, -y), y > 0 not an integer: the sum of (k - y)^-(n+1) over k >= 0 is
    the sum over all integers k, about the nearest pole, less the sum over k < 0."""
    r = _floor(y + 0.5) - y
    nearest = gamma(n + 1.0) * _pow(abs(r), -n - 1.0)
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
    if not _is_order(n) or x != x or x == -INF:
        return NAN
    if n == 0.0:
        return digamma(x)
    odd = math.fmod(n, 2.0) == 1.0
    if x == INF:
        return 0.0
    if x > 0.0:
        return _factorial_zeta(n, x) if odd else -_factorial_zeta(n, x)
    if x == _floor(x):
        if odd:
            return INF
        return math.copysign(INF, -x) if x == 0.0 else NAN
    return _polygamma_negative(n, -x, odd)


# sinc and its derivatives.


def sinc(x: float) -> float:
    """sin(pi x) / (pi x), exactly 0 at the other integers."""
    y = abs(x)
    if y == 0.0:
        return 1.0
    if y >= 4503599627370496.0:
        return 0.0
    return _sin_pi(y) / (PI * y)


def _sine_derivative(k: int, s: float, c: float) -> float:
    """The k-th derivative of sine, given its sine and cosine."""
    value = s if k % 2 == 0 else c
    return -value if k % 4 >= 2 else value


def _sine_ratio_derivative(n: int, u: float, s: float, c: float) -> float:
    """g^(n)(u) for g = sin(u) / u, s = sin(u), c = cos(u), from the derivatives of u g:
    u g^(k) + k g^(k-1) = sin^(k).  Upwards for u >= n, where the errors shrink; else
    downwards from the order k where g^(k) no longer matters, as u < k there."""
    if n <= u and u >= 1.0:
        g = s / u
        for k in range(1, n + 1):
            g = (_sine_derivative(k, s, c) - k * g) / u
        return g
    tolerance = 1e-18 * (u if u < 1.0 else 1.0)
    k = n
    weight = 1.0
    while weight > tolerance:
        k += 1
        weight = weight * (u / k)
    g = 0.0
    while k > n:
        g = (_sine_derivative(k, s, c) - u * g) / k
        k -= 1
    return g


def _pi_power(n: float) -> float:
    """pi^n, with the rounding error of PI taken out."""
    power = _pow(PI, n)
    return power + power * (n * PI_TAIL)


def sinc_derivative(n: float, x: float) -> float:
    """The n-th derivative of sinc; nan beyond n = 619, where pi^(n+1) overflows.  Near 0 the
    first term of the series keeps an odd derivative accurate down into the subnormals."""
    if n == 0.0:
        return sinc(x)
    if not _is_order(n) or n > 619.0 or x != x:
        return NAN
    y = abs(x)
    if y == INF:
        return 0.0
    order = int(n)
    odd = order % 2 == 1
    if odd and y < 1e-9:
        g = (-_sine_derivative(order, 0.0, 1.0) / (n + 2.0) * _pi_power(n + 1.0)) * y
    else:
        g = _sine_ratio_derivative(order, PI * y, _sin_pi(y), _cos_pi(y)) * _pi_power(n)
    return -g if x < 0.0 and odd else g
