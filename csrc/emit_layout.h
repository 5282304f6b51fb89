/* emit_layout.h: where the values of one program lie in emitted C. Owns what is live, the cut into parts and the places in
 * `w`; knows no text. Next: emit_c.c writes it.
 *
 * Note [Parts]. Compilers take time that grows faster than a function does: gcc -O2 0.3 ms a statement at 200 to 1,000 of
 * them, 0.65 at 4,000. Beyond PG_PART statements the code is cut into static functions. What one of them computes and a
 * later one needs lies in an array `w`, whose places are given back.
 *
 * Note [Work]. Arrays lie in `w` too, from where they are made to their last use, but for those that are there already:
 * constants, and inputs side by side. So does what goes into a body and comes out of it, where that is much. A body's
 * own part of `w` begins behind all that its caller has there, and is free again when it returns. */
#ifndef PG_EMIT_LAYOUT_H
#define PG_EMIT_LAYOUT_H

#include "program.h"

enum {
    PG_PART = 400,   /* statements in a function */
    PG_LOCAL = 256,  /* numbers that go into a body and come out: what is more lies in `w` */
};
#define PG_NOWHERE SIZE_MAX

typedef struct {
    const pg_program *program;
    int cut;          /* into parts */
    size_t parts;
    size_t *at;       /* of each value: how many statements come before those that make it */
    size_t *place;    /* in `w`: of an array, a number that a later part needs, what a large body takes; else PG_NOWHERE */
    size_t places;
    pg_index *last;   /* the last instruction that uses a value, program->count for an output or a guard; PG_NONE: dead */
    pg_index *given;  /* of a region the first of its results and stacks, of each of them the next; PG_NONE: no more */
} pg_layout;

/* 0, or -1 where memory runs out. To be freed in either case. */
int pg_layout_make(pg_layout *layout, const pg_program *program);
void pg_layout_free(pg_layout *layout);

/* The part of a statement, or of an output or a guard. */
static inline size_t pg_part_at(const pg_layout *layout, size_t at) { return layout->cut ? at / PG_PART : 0; }
static inline size_t pg_part_of(const pg_layout *layout, pg_index value) { return pg_part_at(layout, layout->at[value]); }

static inline int pg_is_live(const pg_layout *layout, size_t value) { return layout->last[value] != PG_NONE; }

/* Whether all operands of a pack are inputs side by side: it is there already. */
int pg_is_in_place(const pg_program *program, pg_index pack);

#endif
