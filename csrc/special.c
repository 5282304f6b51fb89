/* special.c - the special functions, one double at a time.
 *
 * Owns the formulas of the gamma, error-function and sinc families, powers and
 * remainders.  Every pg_<name> runs the same operations in the same order as <name> in
 * pygrad/reference_special.py, so that the two agree bit for bit; change both or neither,
 * and allow no contraction into fused multiply-adds.  Must not know Python, arrays or
 * derivatives.
 * Next: reference_special.py, the easier read; special_tables.py for the coefficients. */
#include "special.h"
#include "special_tables.h"

#include <math.h>
#include <stddef.h>

static const double PI = 3.141592653589793;
static const double PI_TAIL = 3.8981718325193755e-17; /* (pi - PI) / pi */
static const double EULER = 0.5772156649015329;
static const double SQRT_HALF = 0.7071067811865476;
static const double SQRT_TWO_PI = 2.5066282746310007;
static const double INV_SQRT_PI = 0.5641895835477563;
static const double TWO_OVER_SQRT_PI = 1.1283791670955126;
static const double INV_SQRT_TWO_PI = 0.3989422804014327;
static const double HALF_LOG_TWO_PI_LESS_HALF = 0.4189385332046727;
static const double IERFCX_REACH = 200.0; /* x^2 + 2 k from which the expansion is good */
static const double SPLITTER = 134217729.0; /* 2^27 + 1 */
static const double MAX_ORDER = 1e9; /* larger orders n count as invalid */

#define POLYNOMIAL(table, x) polynomial(table, sizeof(table) / sizeof(table[0]), x)

/* Building blocks. */

/* Horner's rule, lowest power first in the table. */
static double polynomial(const double *coefficients, size_t count, double x)
{
    double value = 0.0;
    while (count > 0)
        value = value * x + coefficients[--count];
    return value;
}

/* a * b - *low exactly (Dekker 1971), for |a|, |b| < 1e150 unless *low underflows. */
static double two_product(double a, double b, double *low)
{
    double t = SPLITTER * a;
    double ah = t - (t - a);
    double al = a - ah;
    t = SPLITTER * b;
    double bh = t - (t - b);
    double bl = b - bh;
    double p = a * b;
    *low = ((ah * bh - p) + ah * bl + al * bh) + al * bl;
    return p;
}

static int is_order(double n)
{
    return 0.0 <= n && n <= MAX_ORDER && n == floor(n);
}

/* sin(pi x) for x >= 0: the reduction modulo 2 and into [0, 1/4] is exact. */
static double sin_pi(double x)
{
    double r = fmod(x, 2.0), sign = 1.0;
    if (r >= 1.0) {
        r = r - 1.0;
        sign = -1.0;
    }
    if (r == 0.0)
        return 0.0;
    if (r > 0.5)
        r = 1.0 - r;
    if (r <= 0.25)
        return sign * sin(PI * r);
    return sign * cos(PI * (0.5 - r));
}

/* cos(pi x) for x >= 0, reduced like sin_pi. */
static double cos_pi(double x)
{
    double r = fmod(x, 2.0), sign = 1.0;
    if (r > 1.0)
        r = 2.0 - r;
    if (r > 0.5) {
        r = 1.0 - r;
        sign = -1.0;
    }
    if (r <= 0.25)
        return sign * cos(PI * r);
    return sign * sin(PI * (0.5 - r));
}

/* Powers and roots. */

/* pow as a start, then one Newton step on an exactly computed residual. */
double pg_cbrt(double x)
{
    if (x == 0.0 || x - x != 0.0)
        return x;
    int e;
    double m = frexp(fabs(x), &e);
    int shift = ((e % 3) + 3) % 3;
    m = ldexp(m, shift);
    double y = pow(m, 0.3333333333333333);
    double square_low, cube_low;
    double square = two_product(y, y, &square_low);
    double cube = two_product(square, y, &cube_low);
    y = y + (((m - cube) - cube_low) - square_low * y) / (3.0 * square);
    return copysign(ldexp(y, (e - shift) / 3), x);
}

double pg_power(double a, double b)
{
    if (b == 2.0)
        return a * a;
    if (b == 1.0)
        return a;
    return pow(a, b);
}

/* a ** (b - 1), without the rounding error of b - 1 in the exponent. */
double pg_pow_less_one(double a, double b)
{
    if (b == 2.0)
        return a;
    if ((b - 1.0) + 1.0 == b)
        return pg_power(a, b - 1.0);
    double y = pow(a, b);
    if (1e-290 < fabs(y) && fabs(y) < 1e290)
        return y / a;
    return pg_power(a, b - 1.0);
}

double pg_ldexp(double a, double b)
{
    if (b - b != 0.0)
        return a * pow(2.0, b); /* inf, nan */
    double whole = trunc(b);
    int moderate = (int)(whole > 1e6 ? 1e6 : whole < -1e6 ? -1e6 : whole);
    return ldexp(a, moderate) * pow(2.0, b - whole);
}

/* Division with remainder. */

double pg_mod(double a, double b)
{
    if (b == 0.0)
        return NAN;
    double rest = fmod(a, b);
    if (rest == 0.0)
        return copysign(0.0, b);
    return (b < 0.0) != (rest < 0.0) ? rest + b : rest;
}

/* The quotient is recovered from the exact remainder, as Python's divmod does it. */
double pg_floordiv(double a, double b)
{
    if (b == 0.0)
        return a / b;
    double rest = fmod(a, b);
    double quotient = (a - rest) / b;
    if (rest != 0.0 && (b < 0.0) != (rest < 0.0))
        quotient -= 1.0;
    if (quotient == 0.0)
        return copysign(0.0, a / b);
    double whole = floor(quotient);
    return quotient - whole > 0.5 ? whole + 1.0 : whole;
}

double pg_ieee_remainder(double a, double b)
{
    double r = remainder(a, b);
    return r == 0.0 ? copysign(0.0, a) : r; /* some libm loses the sign for a subnormal b */
}

/* The normal distribution and the error function family. */

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

/* The gamma function family. */

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

/* sinc and its derivatives. */

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
