/* optimise.h: a program made smaller without changing what it computes, to the last bit (a nan's payload aside).
 * Owns folding, the identities, deduplication and stripping; knows no Python. A program is differentiated before it is
 * optimised: merged values would add gradients in another order than the eager graph. */
#ifndef PG_OPTIMISE_H
#define PG_OPTIMISE_H

#include "program.h"

typedef struct {
    size_t before;     /* instructions that compute something: neither inputs nor constants; n-ary ones counted as rows */
    size_t folded;     /* had constant operands alone */
    size_t simplified; /* by an identity that is exact in IEEE 754 */
    size_t merged;     /* computed the same as one before */
    size_t dead;       /* led to no output and no guard */
    size_t after;
} pg_optimise_report;

/* A new program with the same inputs, outputs and guards, without sums and dots; NULL where memory runs out. */
pg_program *pg_optimise(const pg_program *program, pg_optimise_report *report);

/* The last step of it by itself: what leads to no output and no guard is left out, of loops and conditions too. The
 * program has no sums and dots. Adds to `dead` and `after` of the report. */
pg_program *pg_strip(const pg_program *program, pg_optimise_report *report);

#endif
