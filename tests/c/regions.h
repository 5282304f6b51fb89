/* regions.h: programs with loops and conditions for the tests beside it, made by hand and drawn at random. */
#ifndef REGIONS_H
#define REGIONS_H

#include <stdint.h>
#include <stdlib.h>

#include "program.h"

static inline pg_index row(pg_program *program, int op, pg_index a, pg_index b) { return pg_program_row(program, op, a, b, 0); }

/* The value of a region whose bodies it takes over. */
static inline pg_index region_of(pg_program *program, int op, pg_region region, const pg_index *operands, size_t count) {
    pg_index value = pg_program_region(program, op, &region, operands, count);
    for (int i = 0; i < 2; i++) pg_program_free(region.body[i]);
    return value;
}

/* (c, s, e) -> tanh(c s + e), and it times e. */
static inline pg_program *step_body(void) {
    pg_program *body = pg_program_new(3);
    pg_index next = row(body, PG_OP_tanh, row(body, PG_OP_add, row(body, PG_OP_mul, 0, 1), 2), 0);
    pg_program_output(body, next);
    pg_program_output(body, row(body, PG_OP_mul, next, 2));
    return body;
}

/* (a, b) -> a op b, a. */
static inline pg_program *branch_body(int op) {
    pg_program *body = pg_program_new(2);
    pg_program_output(body, row(body, op, 0, 1));
    pg_program_output(body, 0);
    return body;
}

/* (c, d, s, e): a loop over constants, one backwards over what it stacked and saved, with the same body, and a
 * condition of which one body is the other. Two to be carried on, one to be stacked. */
static inline pg_program *outer_body(void) {
    static const double numbers[] = {0.5, -0.25, 3.0, -0.0, 1e-3};
    pg_program *body = pg_program_new(4), *step = step_body(), *product = branch_body(PG_OP_mul);
    pg_index constants = pg_program_array(body, numbers, 5), first[] = {0, 2, constants};
    pg_index loop = pg_program_region(body, PG_OP_loop,
                                      &(pg_region){.body = {step}, .length = 5, .carries = 1, .shared = 1, .arrays = 1, .saves = 1},
                                      first, 3);
    pg_index end = pg_program_result(body, loop, 0), second[] = {end, 3, pg_program_stack(body, loop, 1)};
    pg_index back = region_of(body, PG_OP_loop,
                              (pg_region){.body = {step}, .length = 5, .carries = 1, .shared = 1, .arrays = 1, .backwards = 1},
                              second, 3);
    pg_index operands[] = {row(body, PG_OP_less, 0, 1), end, pg_program_element(body, pg_program_stack(body, back, 0), 4)};
    pg_index either = region_of(body, PG_OP_cond, (pg_region){.body = {product, branch_body(PG_OP_sub)}, .shared = 1}, operands, 3);
    pg_index both = pg_program_region(body, PG_OP_cond, &(pg_region){.body = {product, product}}, operands, 3);
    pg_program_output(body, pg_program_result(body, back, 0));
    pg_program_output(body, pg_program_result(body, either, 0));
    pg_program_output(body, row(body, PG_OP_add, pg_program_result(body, either, 1), pg_program_result(body, both, 0)));
    return body;
}

/* Three inputs, four outputs. */
static inline pg_program *with_regions(void) {
    pg_program *program = pg_program_new(3);
    pg_index mixed[] = {0, pg_program_constant(program, 0.75), row(program, PG_OP_sin, 1, 0), 2};
    pg_index start[] = {0, 1, 2, pg_program_pack(program, mixed, 4)};
    pg_index loop = region_of(program, PG_OP_loop,
                              (pg_region){.body = {outer_body()}, .length = 4, .carries = 2, .shared = 1, .arrays = 1, .saves = 1},
                              start, 4);
    pg_index inputs[] = {0, 1, 2}, packed = pg_program_pack(program, inputs, 3);
    pg_index over[] = {pg_program_result(program, loop, 0), 1, packed};
    pg_index last = region_of(program, PG_OP_loop,
                              (pg_region){.body = {step_body()}, .length = 3, .carries = 1, .shared = 1, .arrays = 1}, over, 3);
    pg_program_output(program, pg_program_result(program, last, 0));
    pg_program_output(program, pg_program_result(program, loop, 1));
    for (size_t i = 0; i < 3; i++)
        pg_program_output(program, pg_program_element(program, pg_program_stack(program, loop, i), i));
    pg_program_guard(program, row(program, PG_OP_less, pg_program_result(program, loop, 0), 0), 0.0);
    return program;
}

/* Bodies within bodies, `depth` of them: each a loop of one step around the one before. */
static inline pg_program *nested_in_loops(int depth) {
    pg_program *program = branch_body(PG_OP_add);
    for (int i = 0; i < depth && program; i++) {
        pg_program *around = pg_program_new(2);
        pg_index operands[] = {0, 1};
        pg_index loop = region_of(around, PG_OP_loop, (pg_region){.body = {program}, .length = 1, .carries = 2}, operands, 2);
        if (loop == PG_NONE) {
            pg_program_free(around);
            return NULL;
        }
        pg_program_output(around, pg_program_result(around, loop, 0));
        pg_program_output(around, pg_program_result(around, loop, 1));
        program = around;
    }
    return program;
}

#endif
