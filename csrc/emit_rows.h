/* emit_rows.h: the text of emitted C from below: growing text, numbers as literals, the rows of the op table and what they
 * call. Owns how a row is written; knows no program. Rows come from ops.def, the functions that their formulas call from
 * emit_texts.py: nothing here is a second list of either. Next: emit_c.c writes programs. */
#ifndef PG_EMIT_ROWS_H
#define PG_EMIT_ROWS_H

#include <stddef.h>

#include "ops.h"

typedef struct {
    char *text;
    size_t length, room;
    int failed; /* memory ran out */
} pg_text;

/* NULL, or why `name` cannot be the name of an emitted function. */
const char *pg_emit_name_wrong(const char *name);

void pg_put(pg_text *e, const char *format, ...);

/* A number as a literal that is it exactly. */
void pg_put_number(pg_text *e, double number);

/* A name of the caller's, in a comment that it cannot end, nor continue in ways that compilers warn of. */
void pg_put_name(pg_text *e, const char *name);

/* The functions pg_row_... of the rows that are used, by opcode, and what they call. */
void pg_put_rows(pg_text *e, const char *used_ops);

#endif
