/* formula.h: the gradient formulas of the op table as expression trees. Owns the reading of a row's text; knows no
 * Python. Read by py_gradient.c, which evaluates them on nodes. */
#ifndef PG_FORMULA_H
#define PG_FORMULA_H

#include "ops.h"

enum pg_expression_kind { PG_LETTER, PG_NUMBER, PG_APPLY, PG_SELECT };
enum pg_comparison { PG_LT, PG_LE, PG_GT, PG_GE, PG_EQ, PG_NE };
enum pg_letter { PG_A, PG_B, PG_C, PG_Y, PG_G, PG_LETTERS };

typedef struct {
    enum pg_expression_kind kind;
    int what;          /* a letter, an opcode or a comparison */
    double number;
    short operand[4];  /* indices of expressions; select: left, right, if true, if false */
} pg_expression;

typedef struct {
    pg_expression *expressions;
    int count;
    int root;
} pg_formula;

extern pg_formula pg_gradient_formulas[PG_OP_COUNT][PG_MAX_ARITY];

/* Reads every row: 0, or the opcode of the first whose text is not understood, or -1 where memory runs out. */
int pg_formulas_init(void);

/* The number of an expression, given those of the letters. */
double pg_formula_number(const pg_formula *formula, int at, const double letters[PG_LETTERS]);
int pg_compare(enum pg_comparison comparison, double left, double right);

#endif
