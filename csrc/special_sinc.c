/* special_sinc.c - sinc and its derivatives.
 *
 * Owns their formulas.  The contract is in special.h; the twin is
 * pygrad/reference_special_sinc.py. */
#include "special.h"
#include "special_blocks.h"

#include <math.h>

static const double PI_TAIL = 3.8981718325193755e-17; /* (pi - PI) / pi */

double pg_sinc(double x)
{
    double y = fabs(x);
    if (y == 0.0)
        return 1.0;
    if (y >= 4503599627370496.0) /* 2^52: all integers from here on */
        return 0.0;
    return sin_pi(y) / (PI * y);
}

/* The k-th derivative of sine, given its sine and cosine. */
static double sine_derivative(int k, double s, double c)
{
    double value = k % 2 == 0 ? s : c;
    return k % 4 >= 2 ? -value : value;
}

/* g^(n)(u) for g = sin(u) / u, s = sin(u), c = cos(u), from the derivatives of u g:
 * u g^(k) + k g^(k-1) = sin^(k).  Upwards for u >= n, where the errors shrink; else
 * downwards from the order k where g^(k) no longer matters, as u < k there. */
static double sine_ratio_derivative(int n, double u, double s, double c)
{
    if (n <= u && u >= 1.0) {
        double g = s / u;
        for (int k = 1; k <= n; k++)
            g = (sine_derivative(k, s, c) - k * g) / u;
        return g;
    }
    double tolerance = 1e-18 * (u < 1.0 ? u : 1.0);
    int k = n;
    double weight = 1.0;
    while (weight > tolerance) {
        k++;
        weight = weight * (u / k);
    }
    double g = 0.0;
    for (; k > n; k--)
        g = (sine_derivative(k, s, c) - u * g) / k;
    return g;
}

/* pi^n, with the rounding error of PI taken out. */
static double pi_power(double n)
{
    double power = pow(PI, n);
    return power + power * (n * PI_TAIL);
}

/* nan beyond n = 619, where pi^(n+1) overflows.  Near 0 the first term of the series
 * keeps an odd derivative accurate down into the subnormals. */
double pg_sinc_derivative(double n, double x)
{
    if (n == 0.0)
        return pg_sinc(x);
    if (!is_order(n) || n > 619.0 || x != x)
        return NAN;
    double y = fabs(x);
    if (y == INFINITY)
        return 0.0;
    int order = (int)n, odd = order % 2;
    double g;
    if (odd && y < 1e-9)
        g = (-sine_derivative(order, 0.0, 1.0) / (n + 2.0) * pi_power(n + 1.0)) * y;
    else
        g = sine_ratio_derivative(order, PI * y, sin_pi(y), cos_pi(y)) * pi_power(n);
    return x < 0.0 && odd ? -g : g;
}
