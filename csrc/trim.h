/* trim.h: what of a loop or a condition is needed: its bodies with no more inputs and outputs than that. A part of
 * pg_optimise; knows no Python.
 *
 * Note [Trimming]. A loop is made whole: its reverse carries the adjoint of everything and stacks whatever it began with.
 * What is used of it is known once the program behind it is: a carry is kept if it is put out, stacked, or leads to one
 * that is; a carry that never changes becomes shared. */
#ifndef PG_TRIM_H
#define PG_TRIM_H

#include "program.h"

typedef struct {
    uint8_t *wanted;     /* results, and then stacks, that are used; filled in before pg_trim */
    pg_index *number;    /* of each of those its number in the trimmed region, or PG_NONE */
    pg_index *operands;  /* of the trimmed region: numbers in the list of the old one */
    size_t operand_count;
    pg_region region;    /* its bodies are held */
} pg_trimmed;

int pg_trimmed_init(pg_trimmed *trimmed, const pg_program *program, pg_index value);
int pg_trim(pg_trimmed *trimmed, const pg_program *program, pg_index value);
void pg_trimmed_free(pg_trimmed *trimmed);

#endif
