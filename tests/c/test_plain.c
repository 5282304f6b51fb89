/* test_plain.c: the C files that know no Python, linked without it. Prints what fails; exit status 0 where nothing does. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "blocks.h"
#include "check.h"
#include "formula.h"
#include "scalar.h"

static int same(double a, double b) { return (a != a && b != b) || memcmp(&a, &b, sizeof a) == 0; }

static void test_names(void) {
    CHECK(pg_op_find("tanh") == PG_OP_tanh);
    CHECK(pg_op_find("arctan2") == PG_OP_atan2);
    CHECK(pg_op_find("no such op") == -1);
    CHECK(pg_op_find("leaf") == -1);
}

static void test_saved_letters(void) {
    CHECK(pg_ops[PG_OP_add].saved == 0);
    CHECK(pg_ops[PG_OP_mul].saved == (PG_SAVES_A | PG_SAVES_B));
    CHECK(pg_ops[PG_OP_exp].saved == PG_SAVES_Y);
    CHECK(pg_ops[PG_OP_fma].saved == (PG_SAVES_A | PG_SAVES_B));
}

static void test_defaults(void) {
    CHECK(pg_ops[PG_OP_leaky_relu].required == 1 && pg_ops[PG_OP_leaky_relu].fallback[1] == 0.01);
    CHECK(pg_ops[PG_OP_clip].required == 1 && pg_ops[PG_OP_clip].fallback[2] == INFINITY);
    CHECK(pg_ops[PG_OP_atan2].required == 2);
}

/* The compiled vjp and the formula read from the row's text are the same arithmetic. */
static void test_formulas(void) {
    static const double samples[] = {0.0, -0.0, 1.0, -1.0, 0.3, -2.7, 2.0, 1e-300, 1e300, 5.5, INFINITY, -INFINITY, NAN};
    enum { COUNT = sizeof samples / sizeof samples[0] };
    for (int op = 1; op < PG_OP_TABLE_END; op++) {
        for (int k = 0; k < COUNT * COUNT; k++) {
            double a = samples[k % COUNT], b = samples[k / COUNT], c = samples[(k * 7 + 3) % COUNT], partial[3];
            double g = samples[(k * 5 + 2) % COUNT], y = pg_forward(op, a, b, c);
            double letters[PG_LETTERS] = {a, b, c, y, g};
            pg_vjp(op, g, y, a, b, c, partial);
            for (int i = 0; i < pg_ops[op].arity; i++) {
                const pg_formula *formula = &pg_gradient_formulas[op][i];
                if (same(partial[i], pg_formula_number(formula, formula->root, letters))) continue;
                printf("%s: operand %d at (%g, %g, %g), g = %g\n", pg_ops[op].name, i, a, b, c, g);
                failures++;
            }
        }
    }
}

static void test_zmul(void) {
    CHECK(pg_zmul(0.0, INFINITY) == 0.0 && pg_zmul(0.0, NAN) == 0.0);
    CHECK(pg_zmul(2.0, 3.0) == 6.0 && isnan(pg_zmul(1.0, NAN)));
}

static void count_calls(char **args, const ptrdiff_t *count, const ptrdiff_t *strides, void *data) {
    ++*(int *)data;
    for (ptrdiff_t i = 0; i < *count; i++) {
        double a;
        memcpy(&a, args[0] + i * strides[0], sizeof a);
        a = exp(a);
        memcpy(args[1] + i * strides[1], &a, sizeof a);
    }
}

/* Lanes of y = row(...) + exp(first operand) against pg_forward, over shared and other inputs, in memory of exactly the
 * size asked for; a guard holds where the first operand is 1. */
static void test_blocks_of(int op, int level, unsigned shared_bits, size_t lanes) {
    static const double samples[] = {0.0, -0.0, 1.0, -1.0, 0.3, -2.7, 2.0, 1e-300, 1e300, 5.5, INFINITY, NAN};
    enum { COUNT = sizeof samples / sizeof samples[0], MOST = 300 };
    static double columns[PG_MAX_ARITY][MOST], out[MOST][2];
    static int32_t failed[MOST];
    int arity = pg_ops[op].arity, calls = 0;
    pg_program *program = pg_program_new((size_t)arity);
    pg_index row = pg_program_row(program, op, 0, arity > 1 ? 1 : 0, arity > 2 ? 2 : 0);
    CHECK(pg_program_output(program, row) == 0);
    CHECK(pg_program_output(program, pg_program_row(program, PG_OP_exp, 0, 0, 0)) == 0);
    CHECK(pg_program_guard(program, 0, 1.0) == 0);
    pg_plan *plan = pg_plan_make(program);
    pg_loop loops[PG_OP_TABLE_END] = {{NULL, NULL}};
    loops[PG_OP_exp] = (pg_loop){count_calls, &calls};
    uint8_t shared[PG_MAX_ARITY];
    pg_lanes inputs[PG_MAX_ARITY];
    pg_lanes outputs[2] = {{(char *)&out[0][0], sizeof out[0]}, {(char *)&out[0][1], sizeof out[0]}};
    for (int i = 0; i < arity; i++) {
        shared[i] = shared_bits >> i & 1;
        inputs[i] = (pg_lanes){(char *)columns[i], shared[i] ? 0 : sizeof(double)};
        for (size_t k = 0; k < lanes; k++)
            columns[i][k] = samples[shared[i] ? 2 : (k * (size_t)(1 + 2 * i) + k / COUNT) % COUNT];
    }
    pg_blocks *blocks = pg_blocks_new(plan, shared, loops, level, 0);
    size_t width = pg_blocks_width(pg_blocks_rows(blocks), lanes);
    void *memory = malloc(pg_blocks_bytes(blocks, width));
    pg_blocks_run(blocks, memory, width, inputs, outputs, failed, 0, lanes / 3);
    pg_blocks_run(blocks, memory, width, inputs, outputs, failed, lanes / 3, lanes);
    CHECK(calls > 0);
    for (size_t k = 0; k < lanes; k++) {
        double a = columns[0][k], b = columns[1][k], c = columns[2][k], y = pg_forward(op, a, b, c);
        CHECK(failed[k] == (a == 1.0 ? -1 : 0));
        if (same(out[k][0], y) && same(out[k][1], exp(a))) continue;
        printf("%s: level %d, shared %u, lane %zu at (%g, %g, %g): %g, %g\n", pg_ops[op].name, level, shared_bits, k, a, b,
               c, out[k][0], y);
        failures++;
    }
    free(memory);
    pg_blocks_free(blocks);
    pg_plan_free(plan);
    pg_program_free(program);
}

/* The sums of a row, of an input and of what no lane has for itself, over segments, against those of their lanes. */
static void test_sums_of(int op, int level, unsigned shared_bits) {
    enum { LANES = 45, SEGMENT = 16, SEGMENTS = 3, OUTPUTS = 4 };
    static double columns[PG_MAX_ARITY][LANES], out[OUTPUTS][LANES], sums[SEGMENTS][OUTPUTS];
    int arity = pg_ops[op].arity;
    pg_program *program = pg_program_new((size_t)arity);
    pg_index row = pg_program_row(program, op, 0, arity > 1 ? 1 : 0, arity > 2 ? 2 : 0);
    CHECK(pg_program_output(program, row) == 0);
    CHECK(pg_program_output(program, pg_program_row(program, PG_OP_mul, 0, 0, 0)) == 0);
    CHECK(pg_program_output(program, 0) == 0);
    CHECK(pg_program_output(program, pg_program_constant(program, 0.1)) == 0);
    pg_plan *plan = pg_plan_make(program);
    uint8_t shared[PG_MAX_ARITY];
    pg_lanes inputs[PG_MAX_ARITY], outputs[OUTPUTS], summed[OUTPUTS];
    for (int i = 0; i < arity; i++) {
        shared[i] = shared_bits >> i & 1;
        inputs[i] = (pg_lanes){(char *)columns[i], shared[i] ? 0 : sizeof(double)};
        for (size_t k = 0; k < LANES; k++) columns[i][k] = 1.0 / (1.3 + (double)(shared[i] ? 0 : k * (size_t)(i + 1)));
    }
    for (int i = 0; i < OUTPUTS; i++) {
        outputs[i] = (pg_lanes){(char *)out[i], sizeof(double)};
        summed[i] = (pg_lanes){(char *)&sums[0][i], sizeof sums[0]};
    }
    for (size_t segment = 0; segment <= SEGMENT; segment += SEGMENT) {
        pg_blocks *blocks = pg_blocks_new(plan, shared, NULL, level, segment);
        void *memory = malloc(pg_blocks_bytes(blocks, PG_VECTOR));
        CHECK(pg_blocks_run(blocks, memory, PG_VECTOR, inputs, segment ? summed : outputs, NULL, 0, LANES));
        free(memory);
        pg_blocks_free(blocks);
    }
    for (size_t k = 0; k < SEGMENTS; k++)
        for (int i = 0; i < OUTPUTS; i++) {
            size_t end = (k + 1) * SEGMENT < LANES ? (k + 1) * SEGMENT : LANES;
            CHECK(same(sums[k][i], pg_sum_row(&outputs[i], k * SEGMENT, end)));
        }
    pg_plan_free(plan);
    pg_program_free(program);
}

static void test_blocks(void) {
    for (int op = 1; op < PG_OP_TABLE_END; op++)
        for (int level = 0; level < PG_LEVELS; level++)
            for (unsigned shared = 0; shared < 1u << pg_ops[op].arity; shared++) {
                test_blocks_of(op, level, shared, shared ? 21 : 300);
                test_sums_of(op, level, shared);
            }
}

int main(void) {
    pg_ops_init();
    CHECK(pg_formulas_init() == 0);
    CHECK(pg_formulas_init() == 0);
    test_names();
    test_saved_letters();
    test_defaults();
    test_formulas();
    test_zmul();
    test_blocks();
    if (!failures) printf("ok\n");
    return failures != 0;
}
