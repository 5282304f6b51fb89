"""sinc and its derivatives: the twin of csrc/special_sinc.c.

Owns their formulas.  The contract is in reference_special.py.
"""

from pygrad.reference_special_blocks import INF, NAN, PI, cos_pi, is_order, pow, sin_pi

PI_TAIL = 3.8981718325193755e-17  # (pi - PI) / pi


def sinc(x: float) -> float:
    """sin(pi x) / (pi x), exactly 0 at the other integers."""
    y = abs(x)
    if y == 0.0:
        return 1.0
    if y >= 4503599627370496.0:
        return 0.0
    return sin_pi(y) / (PI * y)


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
    power = pow(PI, n)
    return power + power * (n * PI_TAIL)


def sinc_derivative(n: float, x: float) -> float:
    """The n-th derivative of sinc; nan beyond n = 619, where pi^(n+1) overflows.  Near 0 the
    first term of the series keeps an odd derivative accurate down into the subnormals."""
    if n == 0.0:
        return sinc(x)
    if not is_order(n) or n > 619.0 or x != x:
        return NAN
    y = abs(x)
    if y == INF:
        return 0.0
    order = int(n)
    odd = order % 2 == 1
    if odd and y < 1e-9:
        g = (-_sine_derivative(order, 0.0, 1.0) / (n + 2.0) * _pi_power(n + 1.0)) * y
    else:
        g = _sine_ratio_derivative(order, PI * y, sin_pi(y), cos_pi(y)) * _pi_power(n)
    return -g if x < 0.0 and odd else g
