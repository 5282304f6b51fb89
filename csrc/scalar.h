/* scalar.h: the op table as arithmetic on doubles, shared by eager nodes and interpreters. Knows no Python.
 * Owns the functions that formulas call and libm lacks in that form; the long ones are in special.h.
 * The formula names (sign, zmul, gamma, ...) are visible only between scalar_names.h and scalar_names_end.h. */
#ifndef PG_SCALAR_H
#define PG_SCALAR_H

#include "ops.h"
#include "special.h"

#include <math.h>

/* a * b, but zero (with a's sign) where a is zero and b is inf or nan: a masked branch stays masked. */
static inline double pg_zmul(double a, double b) {
    double product = a * b;
    return product != product && a == 0 ? a : product;
}

static inline double pg_sign(double a) { return a > 0 ? 1 : a < 0 ? -1 : a == 0 ? 0 : a; }

/* a * a and a itself are exact to the last rounding where pow may be one ulp off, and ten times as fast. */
static inline double pg_power_inline(double a, double b) { return b == 2 ? a * a : pg_power(a, b); }

static inline double pg_sigmoid(double a) { return a < 0 ? exp(a) / (1 + exp(a)) : 1 / (1 + exp(-a)); }

static inline double pg_maximum(double a, double b) { return a >= b ? a : b > a ? b : a + b; }

double pg_forward(int op, double a, double b, double c);

/* Gradients of a row's operands: partial[0 .. arity - 1], from the operands, the value y and its adjoint g. */
void pg_vjp(int op, double g, double y, double a, double b, double c, double partial[PG_MAX_ARITY]);

#endif
