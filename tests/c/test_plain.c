/* test_plain.c: the C files that know no Python, linked without it. Prints what fails; exit status 0 where nothing does. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "formula.h"
#include "scalar.h"

static int failures;

#define CHECK(condition)                                                   \
    do {                                                                   \
        if (!(condition)) {                                                \
            printf("%s:%d: %s\n", __FILE__, __LINE__, #condition);         \
            failures++;                                                    \
        }                                                                  \
    } while (0)

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

int main(void) {
    pg_ops_init();
    CHECK(pg_formulas_init() == 0);
    CHECK(pg_formulas_init() == 0);
    test_names();
    test_saved_letters();
    test_defaults();
    test_formulas();
    test_zmul();
    if (!failures) printf("ok\n");
    return failures != 0;
}
