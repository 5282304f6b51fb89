/* emit_c.h: a program as C source, which any C99 compiler takes and which needs libm alone. Owns the text; knows no
 * compiler (that is pygrad/cc.py) and no Python. Rows come from ops.def, the functions that their formulas call from
 * emit_texts.py: nothing here is a second list of either. */
#ifndef PG_EMIT_C_H
#define PG_EMIT_C_H

#include "program.h"

/* NULL, or why `name` cannot be the name of an emitted function. */
const char *pg_emit_name_wrong(const char *name);

/* The source of `int name(const double *inputs, double *outputs)`, to be freed; NULL where memory runs out. The program
 * is in rows alone, as pg_optimise gives it. `inputs` and `outputs` are names for the comments, one each, or NULL. */
char *pg_emit_c(const pg_program *program, const char *name, const char *const *inputs, const char *const *outputs);

#endif
