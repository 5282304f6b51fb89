/* special.h - the special functions that libm lacks, or whose CPython version
 * differs from libm's.  Every function has a twin of the same name without pg_ in
 * pygrad/reference_special.py that runs the same operations in the same order;
 * the two agree bit for bit: change both or neither, and allow no contraction into
 * fused multiply-adds.  All are total: poles, overflow and domain errors give inf or
 * nan, never an error.  Integer orders n are passed as double.
 * The families know no Python, no arrays and no derivatives.
 * Next: special_*.c, a file a family; special_tables.py for the coefficients. */
#ifndef PG_SPECIAL_H
#define PG_SPECIAL_H

/* special_arithmetic.c: powers and roots */
double pg_cbrt(double x);
double pg_power(double a, double b);
double pg_pow_less_one(double a, double b);     /* a ** (b - 1) */
double pg_ldexp(double a, double b);

/* and division with remainder: Python's % and //, IEEE 754 remainder */
double pg_mod(double a, double b);
double pg_floordiv(double a, double b);
double pg_ieee_remainder(double a, double b);

/* special_erf.c: the normal distribution and the error function family */
double pg_gaussian(double x);                   /* exp(-x^2) */
double pg_norm_pdf(double x);                   /* exp(-x^2 / 2) / sqrt(2 pi) */
double pg_ndtr(double x);                       /* standard normal cdf */
double pg_erfcx(double x);                      /* exp(x^2) erfc(x) */
double pg_ierfcx(double n, double x);           /* exp(x^2) i^n erfc(x) */

/* special_gamma.c: the gamma function family */
double pg_gamma(double x);
double pg_lgamma(double x);                     /* log |gamma(x)| */
double pg_digamma(double x);
double pg_polygamma(double n, double x);

/* special_sinc.c: sin(pi x) / (pi x) and its n-th derivative */
double pg_sinc(double x);
double pg_sinc_derivative(double n, double x);

#endif
