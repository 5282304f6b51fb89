/* formula.c: a recursive-descent reader of the table's formulas, and their evaluation on numbers. See formula.h.
 *
 *   sum     = product { (+|-) product }        product = factor { (*|/) factor }
 *   factor  = - factor | number | letter | nan | name ( sum {, sum} ) | select ( sum compare sum , sum , sum ) | ( sum )
 */
#include "formula.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "scalar.h"

pg_formula pg_gradient_formulas[PG_OP_COUNT][PG_MAX_ARITY];

enum { MOST_EXPRESSIONS = 64, LONGEST_NAME = 32 };

typedef struct {
    const char *at;
    pg_expression *expressions;
    int count;
    int failed;
} reader;

static int read_sum(reader *r);

static void skip(reader *r) {
    while (*r->at == ' ') r->at++;
}

static int accept(reader *r, char wanted) {
    skip(r);
    if (*r->at != wanted) return 0;
    r->at++;
    return 1;
}

static void expect(reader *r, char wanted) {
    if (!accept(r, wanted)) r->failed = 1;
}

static int add(reader *r, enum pg_expression_kind kind, int what) {
    if (r->count == MOST_EXPRESSIONS) {
        r->failed = 1;
        return 0;
    }
    r->expressions[r->count] = (pg_expression){.kind = kind, .what = what};
    return r->count++;
}

static int add_apply(reader *r, int op, int p, int q) {
    int at = add(r, PG_APPLY, op);
    r->expressions[at].operand[0] = (short)p;
    r->expressions[at].operand[1] = (short)q;
    return at;
}

static int read_comparison(reader *r) {
    static const char *const texts[] = {"<=", ">=", "==", "!=", "<", ">"};
    static const int meanings[] = {PG_LE, PG_GE, PG_EQ, PG_NE, PG_LT, PG_GT};
    skip(r);
    for (int i = 0; i < 6; i++) {
        size_t length = strlen(texts[i]);
        if (strncmp(r->at, texts[i], length) != 0) continue;
        r->at += length;
        return meanings[i];
    }
    r->failed = 1;
    return PG_EQ;
}

static int read_select(reader *r) {
    int parts[4], at, comparison;
    parts[0] = read_sum(r);
    comparison = read_comparison(r);
    parts[1] = read_sum(r);
    expect(r, ',');
    parts[2] = read_sum(r);
    expect(r, ',');
    parts[3] = read_sum(r);
    expect(r, ')');
    at = add(r, PG_SELECT, comparison);
    for (int i = 0; i < 4; i++) r->expressions[at].operand[i] = (short)parts[i];
    return at;
}

static int read_call(reader *r, const char *name) {
    if (strcmp(name, "select") == 0) return read_select(r);
    int op = pg_op_find(name), parts[PG_MAX_ARITY] = {0}, arity = 0;
    do {
        if (arity == PG_MAX_ARITY) {
            r->failed = 1;
            return 0;
        }
        parts[arity++] = read_sum(r);
    } while (!r->failed && accept(r, ','));
    expect(r, ')');
    if (op < 0 || arity != pg_ops[op].arity) {
        r->failed = 1;
        return 0;
    }
    int at = add(r, PG_APPLY, op);
    for (int i = 0; i < arity; i++) r->expressions[at].operand[i] = (short)parts[i];
    return at;
}

static int read_name(reader *r) {
    static const char letters[] = "abcyg";
    char name[LONGEST_NAME] = {0};
    int length = 0;
    while ((isalnum((unsigned char)*r->at) || *r->at == '_') && length < LONGEST_NAME - 1) name[length++] = *r->at++;
    if (accept(r, '(')) return read_call(r, name);
    if (strcmp(name, "nan") == 0) {
        int at = add(r, PG_NUMBER, 0);
        r->expressions[at].number = NAN;
        return at;
    }
    const char *letter = length == 1 ? strchr(letters, name[0]) : NULL;
    if (!letter) r->failed = 1;
    return add(r, PG_LETTER, letter ? (int)(letter - letters) : 0);
}

static int read_factor(reader *r) {
    if (r->failed) return 0;
    if (accept(r, '-')) {
        int operand = read_factor(r);
        return add_apply(r, PG_OP_neg, operand, 0);
    }
    if (accept(r, '(')) {
        int inside = read_sum(r);
        expect(r, ')');
        return inside;
    }
    if (isdigit((unsigned char)*r->at)) {
        char *end;
        int at = add(r, PG_NUMBER, 0);
        r->expressions[at].number = strtod(r->at, &end);
        r->at = end;
        return at;
    }
    return read_name(r);
}

static int read_product(reader *r) {
    int left = read_factor(r);
    for (;;) {
        int op = accept(r, '*') ? PG_OP_mul : accept(r, '/') ? PG_OP_div : 0;
        if (!op || r->failed) return left;
        int right = read_factor(r);
        left = add_apply(r, op, left, right);
    }
}

static int read_sum(reader *r) {
    int left = read_product(r);
    for (;;) {
        int op = accept(r, '+') ? PG_OP_add : accept(r, '-') ? PG_OP_sub : 0;
        if (!op || r->failed) return left;
        int right = read_product(r);
        left = add_apply(r, op, left, right);
    }
}

/* 0, 1 where the text is not understood, -1 where memory runs out. */
static int read_formula(pg_formula *formula, const char *text) {
    pg_expression expressions[MOST_EXPRESSIONS];
    reader r = {text, expressions, 0, 0};
    int root = read_sum(&r);
    skip(&r);
    if (r.failed || *r.at) return 1;
    formula->expressions = malloc((size_t)r.count * sizeof(pg_expression));
    if (!formula->expressions) return -1;
    memcpy(formula->expressions, expressions, (size_t)r.count * sizeof(pg_expression));
    formula->count = r.count;
    formula->root = root;
    return 0;
}

int pg_formulas_init(void) {
    for (int op = 1; op < PG_OP_TABLE_END; op++) {
        for (int i = 0; i < pg_ops[op].arity; i++) {
            if (pg_gradient_formulas[op][i].expressions) continue; /* the module is imported a second time */
            int failed = read_formula(&pg_gradient_formulas[op][i], pg_ops[op].gradient[i]);
            if (failed) return failed > 0 ? op : -1;
        }
    }
    return 0;
}

int pg_compare(enum pg_comparison comparison, double left, double right) {
    switch (comparison) {
    case PG_LT: return left < right;
    case PG_LE: return left <= right;
    case PG_GT: return left > right;
    case PG_GE: return left >= right;
    case PG_EQ: return left == right;
    default: return left != right;
    }
}

double pg_formula_number(const pg_formula *formula, int at, const double letters[PG_LETTERS]) {
    const pg_expression *e = &formula->expressions[at];
    double parts[PG_MAX_ARITY] = {0};
    switch (e->kind) {
    case PG_LETTER: return letters[e->what];
    case PG_NUMBER: return e->number;
    case PG_SELECT:
        parts[0] = pg_formula_number(formula, e->operand[0], letters);
        parts[1] = pg_formula_number(formula, e->operand[1], letters);
        return pg_formula_number(formula, e->operand[pg_compare(e->what, parts[0], parts[1]) ? 2 : 3], letters);
    default:
        for (int i = 0; i < pg_ops[e->what].arity; i++) parts[i] = pg_formula_number(formula, e->operand[i], letters);
        return pg_forward(e->what, parts[0], parts[1], parts[2]);
    }
}
