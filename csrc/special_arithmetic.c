/* special_arithmetic.c - powers, roots and scaling; division with remainder.
 *
 * Owns what libm rounds or signs otherwise than pygrad promises.  The contract is in
 * special.h; the twin is pygrad/reference_special_arithmetic.py. */
#include "special.h"
#include "special_blocks.h"

#include <math.h>

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
