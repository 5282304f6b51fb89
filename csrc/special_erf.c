/* special_erf.c - the normal distribution and the error function family.
 *
 * Owns the formulas of erfcx, of its repeated integrals and of what is made of it.  The
 * contract is in special.h; the twin is pygrad/reference_special_erf.py.
 * Next: special_tables.py for the coefficients. */
#include "special.h"
#include "special_blocks.h"
#include "special_tables.h"

#include <math.h>

static const double SQRT_HALF = 0.7071067811865476;
static const double INV_SQRT_PI = 0.5641895835477563;
static const double TWO_OVER_SQRT_PI = 1.1283791670955126;
static const double INV_SQRT_TWO_PI = 0.3989422804014327;
static const double IERFCX_REACH = 200.0; /* x^2 + 2 k from which the expansion is good */

/* c exp(-(p + e)) with |e| a rounding error of p; in two factors where exp(-p) would be
 * subnormal, so that the only rounding there is the last one. */
static double scaled_exp(double c, double p, double e)
{
    if (p < 700.0) {
        double y = exp(-p);
        return c * (y - y * e);
    }
    double y = exp(-0.5 * p);
    return (c * (y - y * e)) * y;
}

double pg_gaussian(double x)
{
    if (fabs(x) > 40.0)
        return 0.0;
    double e, p = two_product(x, x, &e);
    return scaled_exp(1.0, p, e);
}

double pg_norm_pdf(double x)
{
    if (fabs(x) > 40.0)
        return 0.0;
    double e, p = two_product(x, x, &e);
    return scaled_exp(INV_SQRT_TWO_PI, 0.5 * p, 0.5 * e);
}

/* erfcx for x >= -1/2: fitted polynomials, from 5 on in 1 / x^2 (DLMF 7.12.1). */
static double erfcx_right(double x)
{
    if (x < 0.5)
        return POLYNOMIAL(ERFCX[0], x);
    if (x < 1.5)
        return POLYNOMIAL(ERFCX[1], x - 1.0);
    if (x < 3.0)
        return POLYNOMIAL(ERFCX[2], x - 2.25);
    if (x < 5.0)
        return POLYNOMIAL(ERFCX[3], x - 4.0);
    double r = 1.0 / x;
    return (POLYNOMIAL(ERFCX_LARGE, r * r) * INV_SQRT_PI) / x;
}

/* exp(-x^2 / 2) erfcx(|x| / sqrt 2) / 2 is the tail (DLMF 7.17). */
double pg_ndtr(double x)
{
    if (x > 40.0)
        return 1.0;
    if (x < -40.0)
        return 0.0;
    double e, p = two_product(x, x, &e);
    double tail = scaled_exp(0.5 * erfcx_right(fabs(x) * SQRT_HALF), 0.5 * p, 0.5 * e);
    return x < 0.0 ? tail : 1.0 - tail;
}

/* Left of -1/2 by erfc(x) = 2 - erfc(-x). */
double pg_erfcx(double x)
{
    if (x < -26.64)
        return INFINITY;
    if (x < -0.5) {
        double e, p = two_product(x, x, &e);
        double y = exp(p);
        return 2.0 * (y + y * e) - erfcx_right(-x);
    }
    return erfcx_right(x);
}

/* I_k / I_{k-1} for large x^2 + 2 k, where I_k = pg_ierfcx(k, x).  With s^2 = x^2 + 2 k and
 * c = x / s the solution of v' = v^2 - s^2 + 1 expands as s + sum p_j(c) / s^(2 j - 1), and
 * the ratio is (v - x) / (2 k): the Riccati equation of y'' = 2 x y' + 2 k y, y = I_{k-1}. */
static double ierfcx_start(double k, double x)
{
    if (x > 1e10)
        return 0.5 / x;
    double s = sqrt(x * x + 2.0 * k);
    double c = x / s;
    double r = 1.0 / s;
    double factor = r * r;
    double total = 0.0;
    for (int j = 7; j >= 0; j--)
        total = total * factor + POLYNOMIAL(IERFCX_START[j], c);
    return (2.0 * k / (s + x) + total * r) / (2.0 * k);
}

/* 2 k I_k = I_{k-2} - 2 x I_{k-1} (DLMF 7.18.7): all terms positive for x <= 0. */
static double ierfcx_forward(double n, double x)
{
    double before = TWO_OVER_SQRT_PI;
    double value = pg_erfcx(x);
    for (double k = 1.0; k <= n && 0.0 < value && value < INFINITY; k += 1.0) {
        double after = (0.5 * before - x * value) / k;
        before = value;
        value = after;
    }
    return value;
}

/* erfcx times the ratios I_k / I_{k-1}, which the same recurrence gives downwards
 * without cancellation (Gautschi 1961). */
static double ierfcx_backward(double n, double x)
{
    double k = n + 1.0;
    if (x < 100.0 && k < floor(0.5 * (IERFCX_REACH - x * x)))
        k = floor(0.5 * (IERFCX_REACH - x * x));
    double ratio = ierfcx_start(k, x);
    double product = 1.0;
    while (k > 1.0) {
        ratio = 0.5 / (x + k * ratio);
        k -= 1.0;
        if (k <= n)
            product = product * ratio;
    }
    return product * pg_erfcx(x);
}

double pg_ierfcx(double n, double x)
{
    if (!is_order(n) || x != x)
        return NAN;
    if (n == 0.0)
        return pg_erfcx(x);
    if (x <= 0.0 || n * x * x < 0.02)
        return ierfcx_forward(n, x);
    if (n > 300.0) /* below the smallest double */
        return 0.0;
    return ierfcx_backward(n, x);
}
