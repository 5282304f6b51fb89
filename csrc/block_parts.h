/* block_parts.h: the inside of blocks.h, which three files share: block_places.c makes of a plan steps that name the
 * places of their operands, blocks.c runs them, and block_regions.c is what loops and conditions do in a run. The first
 * places hold numbers, one a constant or a shared value, the others addresses of rows.
 *
 * Note [Bodies]. A body is a pg_blocks of its own, with memory of its own inside that of the whole, where its inputs
 * are addresses of rows: so a step copies no operand that is a row. What is carried on trades its row with what was
 * carried, where it is computed in the step and carried once; else it is copied, into one of two rows by turns. What is
 * a number around is one in the body; what is carried is a row. An array is a list of places, a number or a row each.
 * Where lanes want both branches of a condition, both run, and each takes its own. */
#ifndef PG_BLOCK_PARTS_H
#define PG_BLOCK_PARTS_H

#include "blocks.h"

typedef struct {
    uint32_t op, out, in[PG_MAX_ARITY];
} pg_once; /* an instruction on numbers */

typedef struct {
    const pg_plan_region *plan;
    const pg_blocks *around;
    pg_blocks *body[2];
    uint32_t rooms;     /* the place where the address of the first body's memory is; that of the second follows */
    uint32_t *operands; /* places: of what is carried and shared; of a condition of its truth and what both take */
    uint32_t *elements; /* of arrays, one after the other */
    uint32_t *results;
    uint8_t *trades;    /* of what is carried, whether it trades rows */
    uint32_t *stacked;  /* in the body: what goes into a stack */
    uint32_t *stacks;   /* one after the other */
    uint32_t spare[2];  /* of each body its first spare row: two for each carry, one for each array; of a condition one */
} pg_block_region;

/* All that a step of a region needs is in it. */
void pg_block_region_run(const pg_place *places, const pg_step *step, size_t lanes);

typedef struct {
    uint32_t place, step;
} pg_reading; /* of an input's row: the first */

enum { PG_READ = 1, PG_COPIED = 2 };
struct pg_blocks {
    const pg_plan *plan;
    const pg_loop *loops;
    uint8_t *shared; /* of inputs: whether it is a number */
    uint8_t *use;    /* of the first rows, which are inputs': PG_READ by a step, and PG_COPIED, into memory of the run */
    pg_reading *reads;
    pg_step *steps;
    pg_once *onces;
    pg_block_region *regions;
    uint32_t *inputs, *outputs, *guards; /* places */
    size_t step_count, once_count, read_count, region_count, number_count, row_count, input_rows, first_row, segment;
};

static inline int pg_is_number(const pg_blocks *blocks, uint32_t place) { return place < blocks->first_row; }

/* A row of one number. */
double *pg_filled(double *row, double number, size_t lanes);

/* The loop from elsewhere for an opcode, or NULL; and a call of it, on rows alone. */
const pg_loop *pg_loop_for(const pg_blocks *blocks, uint32_t op);
void pg_call_loop(double *a, double *b, double *y, const pg_loop *loop, size_t lanes);

#endif
