/* emit_c.h: a program as C source, which any C99 compiler takes and which needs libm alone. Owns the text of programs; knows
 * no compiler (that is pygrad/cc.py) and no Python. emit_rows.h has the rows, emit_layout.h says where values lie.
 *
 * Each body is a static function, written once; a loop is a `for` over arrays, a condition an `if`. Nothing is allocated:
 * what does not lie in local variables lies in `w`, of which Notes [Parts] and [Work] in emit_layout.h tell. A program
 * that needs `w` is `name_with(inputs, outputs, w)`, and beside it, where `w` is no more than PG_STACK_MOST bytes, there
 * is `name(inputs, outputs)`, which has it on its stack. */
#ifndef PG_EMIT_C_H
#define PG_EMIT_C_H

#include "program.h"

enum { PG_STACK_MOST = 1 << 20 };

/* The source of `int name(const double *inputs, double *outputs)`, to be freed; NULL where memory runs out, or where it
 * calls a function: pg_program_callee. The program is in rows, arrays, loops and conditions alone, and so are its bodies,
 * as pg_optimise gives it. `inputs` and `outputs` are names for the comments, one each, or NULL. */
char *pg_emit_c(const pg_program *program, const char *name, const char *const *inputs, const char *const *outputs);

#endif
