/* scalar.c: the forward and the vjp of every row, one switch each. Knows no Python; see scalar.h. */
#include "scalar.h"

double pg_forward(int op, double a, double b, double c) {
    switch (op) {
#include "scalar_names.h"
#define UNARY(name, value, ...) case PG_OP_##name: return value;
#define BINARY(name, value, ...) case PG_OP_##name: return value;
#define TERNARY(name, value, ...) case PG_OP_##name: return value;
#include "ops.def"
#include "scalar_names_end.h"
    default: return NAN;
    }
}

void pg_vjp(int op, double g, double y, double a, double b, double c, double partial[PG_MAX_ARITY]) {
    switch (op) {
#include "scalar_names.h"
#define UNARY(name, value, da, ...) case PG_OP_##name: partial[0] = da; break;
#define BINARY(name, value, da, db, ...) case PG_OP_##name: partial[0] = da; partial[1] = db; break;
#define TERNARY(name, value, da, db, dc, ...) \
    case PG_OP_##name: partial[0] = da; partial[1] = db; partial[2] = dc; break;
#include "ops.def"
#include "scalar_names_end.h"
    default: break;
    }
}
