/* sweep.h: one sweep over a program, back or forward, which adds derivatives to another: what differentiate.c begins and
 * ends, and what regions do within a sweep (sweep_regions.c). See Note [Sweeps] in differentiate.h. */
#ifndef PG_SWEEP_H
#define PG_SWEEP_H

#include "program.h"

typedef struct {
    const pg_program *from;
    pg_program *to;
    pg_index *places;     /* of each value of `from` its place in `to` */
    pg_index *derivative; /* in this sweep: adjoint or tangent, a value of `to`, or PG_NONE for zero */
    uint8_t *depends;     /* on an input that is asked for */
    pg_index *cone;       /* the values this sweep passes through, as a queue and then in order */
    uint32_t *met;        /* the sweep that met a value last */
    uint32_t sweep;
    int only_look;        /* sweeps find what they pass through, and make nothing */
    size_t cone_count, work;
    pg_index *first_follower, *followers; /* forward mode: who uses a value */
    /* Where there are regions. Back: the parts of a region or an array that have an adjoint, as a list of values of
     * `from`. Forward: of a region the tangents of its results and then its stacks. */
    pg_index *parts, *next_part;
    pg_index **tangents;
    int failed;           /* memory ran out; what is made from then on is of no use */
} pg_sweep;

/* With `places`, inputs of the program lie there in the new one, which has `inputs` inputs, and nothing is put out; else
 * its inputs come first, its outputs and guards are those of the new one. 0, or -1 where memory runs out. */
int pg_sweep_init(pg_sweep *d, const pg_program *program, const pg_index *wrt, size_t wrt_count, size_t inputs,
                  const pg_index *places);
/* The new program, or NULL. */
pg_program *pg_sweep_end(pg_sweep *d, int failed);

void pg_sweep_begin(pg_sweep *d);
void pg_sweep_meet(pg_sweep *d, pg_index value); /* where it depends on what is asked for */
void pg_sweep_back(pg_sweep *d);
void pg_sweep_forward(pg_sweep *d);
int pg_sweep_find_followers(pg_sweep *d);

/* Making instructions. A row of constants is a constant, as on nodes. */
pg_index pg_sweep_checked(pg_sweep *d, pg_index value);
pg_index pg_sweep_constant(pg_sweep *d, double number);
pg_index pg_sweep_row(pg_sweep *d, int op, pg_index a, pg_index b, pg_index c);

static inline int pg_sweep_is_met(const pg_sweep *d, pg_index value) { return d->met[value] == d->sweep; }
static inline pg_index pg_sweep_derivative(const pg_sweep *d, pg_index value) {
    return pg_sweep_is_met(d, value) ? d->derivative[value] : PG_NONE;
}
void pg_sweep_add_adjoint(pg_sweep *d, pg_index value, pg_index contribution);
void pg_sweep_add_tangent(pg_sweep *d, pg_index *total, pg_index tangent, pg_index slope);

/* What regions and arrays do within a sweep: sweep_regions.c. */
void pg_region_back(pg_sweep *d, pg_index value);
void pg_region_forward(pg_sweep *d, pg_index value);

#endif
