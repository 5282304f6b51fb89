/* special_gamma.c - the gamma function family.
 *
 * Owns the formulas of gamma, of its logarithm and of the derivatives of that.  The
 * contract is in special.h; the twin is pygrad/reference_special_gamma.py.
 * Next: special_tables.py for the coefficients. */
#include "special.h"
#include "special_blocks.h"
#include "special_tables.h"

#include <math.h>

static const double EULER = 0.5772156649015329;
static const double SQRT_TWO_PI = 2.5066282746310007;
static const double HALF_LOG_TWO_PI_LESS_HALF = 0.4189385332046727;

/* log gamma(x) - (x - 1/2) log x + x - log(2 pi) / 2 for x >= 7 (DLMF 5.11.1). */
static double stirling(double x)
{
    double r = 1.0 / x;
    return r * POLYNOMIAL(STIRLING, r * r);
}

static double gamma_integer(double x)
{
    if (x == 0.0)
        return copysign(INFINITY, x);
    if (x < 0.0)
        return NAN;
    double product = 1.0;
    while (x > 2.0) {
        x -= 1.0;
        product *= x;
    }
    return product;
}

/* gamma for 0 < x < 7, from 1 / gamma(1 + t) on 0 <= t < 1. */
static double gamma_small(double x)
{
    if (x < 1.0)
        return 1.0 / (x * POLYNOMIAL(RECIPROCAL_GAMMA, x - 0.5));
    double product = 1.0;
    while (x >= 2.0) {
        x -= 1.0;
        product *= x;
    }
    return product / POLYNOMIAL(RECIPROCAL_GAMMA, x - 1.5);
}

/* p and *q with gamma(x) = p q p for 7 <= x <= 200: p = x^((x - 1/2) / 2). */
static double gamma_factors(double x, double *q)
{
    double p = pow(x, 0.5 * x - 0.25);
    *q = exp(-x) * (SQRT_TWO_PI + SQRT_TWO_PI * expm1(stirling(x)));
    return p;
}

/* gamma(-y) = -pi / (y sin(pi y) gamma(y)) (DLMF 5.5.3), y > 0 not an integer. */
static double gamma_negative(double y)
{
    double d = y * sin_pi(y);
    if (y < 7.0)
        return -PI / (d * gamma_small(y));
    if (y > 200.0)
        return copysign(0.0, -d);
    double q, p = gamma_factors(y, &q);
    return ((-PI / d) / p / q) / p;
}

/* Exact for the integers up to 23. */
double pg_gamma(double x)
{
    if (x > 172.0)
        return INFINITY;
    if (x <= 23.0 && x == floor(x))
        return gamma_integer(x);
    if (fabs(x) < 1e-9)
        return 1.0 / (x * (1.0 + EULER * x));
    if (x < 0.0)
        return gamma_negative(-x);
    if (x < 7.0)
        return gamma_small(x);
    double q, p = gamma_factors(x, &q);
    return (p * q) * p;
}

/* Fitted pieces that carry the zeros at 1 and 2 as factors, Stirling from 7 on. */
static double lgamma_positive(double x)
{
    if (x < 0.25)
        return x * POLYNOMIAL(LGAMMA[0], x) - log(x);
    if (x < 0.75)
        return POLYNOMIAL(LGAMMA[1], x - 0.5) - log(x);
    if (x < 1.25)
        return (1.0 - x) * -POLYNOMIAL(LGAMMA[0], x - 1.0); /* +0 at x = 1 */
    if (x < 1.75)
        return POLYNOMIAL(LGAMMA[1], x - 1.5);
    if (x < 2.5)
        return (x - 2.0) * POLYNOMIAL(LGAMMA[2], x - 2.125);
    if (x < 7.0) {
        double product = 1.0;
        while (x >= 3.5) {
            x -= 1.0;
            product *= x;
        }
        return POLYNOMIAL(LGAMMA[3], x - 3.0) + log(product);
    }
    double lead = (x - 0.5) * (log(x) - 1.0);
    return lead + (HALF_LOG_TWO_PI_LESS_HALF + stirling(x));
}

/* For x < 0 by reflection (DLMF 5.5.3), where the error is relative to the larger of the
 * two terms; inf at the poles. */
double pg_lgamma(double x)
{
    if (x > 0.0)
        return lgamma_positive(x);
    if (x == floor(x))
        return INFINITY;
    if (x > -0.25)
        return x * POLYNOMIAL(LGAMMA[0], x) - log(-x);
    double y = -x;
    return log(PI / (y * fabs(sin_pi(y)))) - lgamma_positive(y);
}

/* digamma(1 + t) for 0 <= t < 2, the zero taken out in two doubles. */
static double digamma_one_plus(double t)
{
    double factor = (t - PSI_ROOT_LESS_ONE[0]) - PSI_ROOT_LESS_ONE[1];
    if (t < 0.75)
        return factor * POLYNOMIAL(DIGAMMA[0], t - 0.375);
    return factor * POLYNOMIAL(DIGAMMA[1], t - 1.375);
}

/* Recurrence (DLMF 5.5.2) below 7, asymptotic series (DLMF 5.11.2) from there on. */
static double digamma_positive(double x)
{
    if (x < 1.0)
        return digamma_one_plus(x) - 1.0 / x;
    if (x < 7.0) {
        double total = 0.0;
        while (x >= 3.0) {
            x -= 1.0;
            total += 1.0 / x;
        }
        return digamma_one_plus(x - 1.0) + total;
    }
    double r = 1.0 / x;
    double square = r * r;
    return (log(x) - 0.5 * r) - square * POLYNOMIAL(DIGAMMA_LARGE, square);
}

/* For x < 0 by reflection (DLMF 5.5.4). */
double pg_digamma(double x)
{
    if (x > 0.0)
        return digamma_positive(x);
    if (x == 0.0)
        return copysign(INFINITY, -x);
    if (x == floor(x) || x != x)
        return NAN;
    double y = -x;
    double cotangent = PI / tan(PI * (y - floor(y + 0.5)));
    if (y < 1.0)
        return digamma_one_plus(y) + cotangent;
    return (digamma_positive(y) + 1.0 / y) + cotangent;
}

/* a^n sum_{k >= 0} (a + k)^-(n+1) for a >= n + 10: Euler-Maclaurin (DLMF 25.11.43). */
static double zeta_tail(double n, double a)
{
    double r = 1.0 / a;
    double square = r * r;
    double rising = (n + 1.0) * square;
    double total = 0.0;
    double step = n + 2.0;
    for (int j = 0; j < 12; j++) {
        total += ZETA_TAIL[j] * rising;
        rising = rising * ((step * (step + 1.0)) * square);
        step += 2.0;
    }
    return 1.0 / n + (0.5 * r + total);
}

/* base^n zeta(n + 1, x) for x > 0, n >= 1, smallest terms first.  Stops where
 * Euler-Maclaurin takes over or the terms have fallen below 1e-18 of the first. */
static double zeta_sum(double n, double x, double base)
{
    double full = floor(n + 11.0 - x);
    double enough = floor(x * expm1(42.0 / n)) + 1.0;
    double k = full > 0.0 ? full : 0.0;
    double total = 0.0;
    if (k <= enough)
        total = pow((x + k) / base, -n) * zeta_tail(n, x + k);
    else
        k = enough;
    while (k > 0.0) {
        k -= 1.0;
        total += pow((x + k) / base, -n - 1.0) / base;
    }
    return total;
}

/* n! zeta(n + 1, x), |polygamma(n, x)| for x > 0; scaled where a factor leaves the range
 * of doubles (beyond n = 170 to a relative error of about 1e-12). */
static double factorial_zeta(double n, double x)
{
    if (n <= 170.0 && pow(x, -n) > 1e-290)
        return pg_gamma(n + 1.0) * zeta_sum(n, x, 1.0);
    double total = zeta_sum(n, x, x);
    if (n <= 170.0) {
        double p = pow(x, -0.5 * n);
        return ((pg_gamma(n + 1.0) * total) * p) * p;
    }
    return exp((pg_lgamma(n + 1.0) - n * log(x)) + log(total));
}

/* polygamma(n, -y), y > 0 not an integer: the sum of (k - y)^-(n+1) over k >= 0 is the
 * sum over all integers k, about the nearest pole, less the sum over k < 0. */
static double polygamma_negative(double n, double y, int odd)
{
    double r = floor(y + 0.5) - y;
    double nearest = pg_gamma(n + 1.0) * pow(fabs(r), -n - 1.0);
    if (nearest == INFINITY)
        return odd || r < 0.0 ? INFINITY : -INFINITY;
    double right = factorial_zeta(n, 1.0 + r);
    double left = factorial_zeta(n, 1.0 - r);
    double rest = factorial_zeta(n, 1.0 + y);
    if (odd)
        return nearest + ((right + left) - rest);
    if (r < 0.0)
        nearest = -nearest;
    return -(nearest + ((right - left) + rest));
}

/* (-1)^(n+1) n! zeta(n + 1, x) (DLMF 5.15.1, 25.11.12).  At the poles inf for odd n; for
 * even n nan, but -inf at 0 and inf at -0. */
double pg_polygamma(double n, double x)
{
    if (!is_order(n) || x != x || x == -INFINITY)
        return NAN;
    if (n == 0.0)
        return pg_digamma(x);
    int odd = fmod(n, 2.0) == 1.0;
    if (x == INFINITY)
        return 0.0;
    if (x > 0.0)
        return odd ? factorial_zeta(n, x) : -factorial_zeta(n, x);
    if (x == floor(x)) {
        if (odd)
            return INFINITY;
        return x == 0.0 ? copysign(INFINITY, -x) : NAN;
    }
    return polygamma_negative(n, -x, odd);
}
