"""The normal distribution and the error function family: the twin of csrc/special_erf.c.

Owns the formulas of erfcx, of its repeated integrals and of what is made of it.  The
contract is in reference_special.py.
Next: csrc/special_tables.py, which derives the coefficients.
"""

import math

from pygrad import reference_special_tables as table
from pygrad.reference_special_blocks import INF, NAN, exp, floor, is_order, polynomial, two_product

SQRT_HALF = 0.7071067811865476
INV_SQRT_PI = 0.5641895835477563
TWO_OVER_SQRT_PI = 1.1283791670955126
INV_SQRT_TWO_PI = 0.3989422804014327
IERFCX_REACH = 200.0  # x^2 + 2 k from which the expansion of the ratio is good


def _scaled_exp(c: float, p: float, e: float) -> float:
    """c exp(-(p + e)) with |e| a rounding error of p; in two factors where exp(-p) would
    be subnormal, so that the only rounding there is the last one."""
    if p < 700.0:
        y = exp(-p)
        return c * (y - y * e)
    y = exp(-0.5 * p)
    return (c * (y - y * e)) * y


def gaussian(x: float) -> float:
    """exp(-x^2), x^2 carried in two floats."""
    if abs(x) > 40.0:
        return 0.0
    p, e = two_product(x, x)
    return _scaled_exp(1.0, p, e)


def norm_pdf(x: float) -> float:
    """Standard normal density exp(-x^2 / 2) / sqrt(2 pi)."""
    if abs(x) > 40.0:
        return 0.0
    p, e = two_product(x, x)
    return _scaled_exp(INV_SQRT_TWO_PI, 0.5 * p, 0.5 * e)


def ndtr(x: float) -> float:
    """Standard normal cdf: exp(-x^2 / 2) erfcx(|x| / sqrt 2) / 2 is the tail (DLMF 7.17)."""
    if x > 40.0:
        return 1.0
    if x < -40.0:
        return 0.0
    p, e = two_product(x, x)
    tail = _scaled_exp(0.5 * _erfcx_right(abs(x) * SQRT_HALF), 0.5 * p, 0.5 * e)
    return tail if x < 0.0 else 1.0 - tail


def _erfcx_right(x: float) -> float:
    """erfcx for x >= -1/2: fitted polynomials, from 5 on in 1 / x^2 (DLMF 7.12.1)."""
    if x < 0.5:
        return polynomial(table.ERFCX[0], x)
    if x < 1.5:
        return polynomial(table.ERFCX[1], x - 1.0)
    if x < 3.0:
        return polynomial(table.ERFCX[2], x - 2.25)
    if x < 5.0:
        return polynomial(table.ERFCX[3], x - 4.0)
    r = 1.0 / x
    return (polynomial(table.ERFCX_LARGE, r * r) * INV_SQRT_PI) / x


def erfcx(x: float) -> float:
    """exp(x^2) erfc(x); left of -1/2 by erfc(x) = 2 - erfc(-x)."""
    if x < -26.64:
        return INF
    if x < -0.5:
        p, e = two_product(x, x)
        y = exp(p)
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
        total = total * factor + polynomial(table.IERFCX_START[j], c)
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
    if x < 100.0 and k < floor(0.5 * (IERFCX_REACH - x * x)):
        k = floor(0.5 * (IERFCX_REACH - x * x))
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
    if not is_order(n) or x != x:
        return NAN
    if n == 0.0:
        return erfcx(x)
    if x <= 0.0 or n * x * x < 0.02:
        return _ierfcx_forward(n, x)
    if n > 300.0:
        return 0.0
    return _ierfcx_backward(n, x)
