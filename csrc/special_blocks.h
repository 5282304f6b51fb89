/* special_blocks.h - what the families of special functions are built of.
 *
 * Owns Horner's rule, the exact product, sine and cosine of pi x and the check of an order,
 * in line in special_*.c, which alone include it.  Must know no family.  The twin, under the
 * contract of special.h, is pygrad/reference_special_blocks.py.
 * Next: special_sinc.c, the shortest of the families. */
#ifndef PG_SPECIAL_BLOCKS_H
#define PG_SPECIAL_BLOCKS_H

#include <math.h>
#include <stddef.h>

static const double PI = 3.141592653589793;
static const double SPLITTER = 134217729.0; /* 2^27 + 1 */
static const double MAX_ORDER = 1e9; /* larger orders n count as invalid */

/* Horner's rule, lowest power first in the table. */
static inline double polynomial(const double *coefficients, size_t count, double x)
{
    double value = 0.0;
    while (count > 0)
        value = value * x + coefficients[--count];
    return value;
}

#define POLYNOMIAL(table, x) polynomial(table, sizeof(table) / sizeof(table[0]), x)

/* a * b - *low exactly (Dekker 1971), for |a|, |b| < 1e150 unless *low underflows. */
static inline double two_product(double a, double b, double *low)
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

static inline int is_order(double n)
{
    return 0.0 <= n && n <= MAX_ORDER && n == floor(n);
}

/* sin(pi x) for x >= 0: the reduction modulo 2 and into [0, 1/4] is exact. */
static inline double sin_pi(double x)
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
static inline double cos_pi(double x)
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

#endif
