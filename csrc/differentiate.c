/* differentiate.c: see Note [Sweeps] in differentiate.h. */
#include "differentiate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "formula.h"
#include "scalar.h"

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
    int failed;           /* memory ran out; what is made from then on is of no use */
} differentiator;

/* ---- making instructions: a row of constants is a constant, as on nodes ---- */

static pg_index checked(differentiator *d, pg_index value) {
    d->failed |= value == PG_NONE;
    return value == PG_NONE ? 0 : value;
}

static pg_index constant(differentiator *d, double number) { return checked(d, pg_program_constant(d->to, number)); }

static pg_index row(differentiator *d, int op, pg_index a, pg_index b, pg_index c) {
    const pg_index in[] = {a, b, c};
    double numbers[PG_MAX_ARITY] = {0};
    for (int i = 0; i < pg_ops[op].arity; i++) {
        if (!pg_is_constant(d->to, in[i])) return checked(d, pg_program_row(d->to, op, a, b, c));
        numbers[i] = pg_constant_of(d->to, in[i]);
    }
    return constant(d, pg_forward(op, numbers[0], numbers[1], numbers[2]));
}

static int is_constant(const differentiator *d, pg_index value, double number) {
    return pg_is_constant(d->to, value) && pg_constant_of(d->to, value) == number;
}

/* ---- formulas ---- */

static pg_index evaluate(differentiator *d, const pg_formula *formula, int at, const pg_index *letters) {
    static const int comparisons[] = {[PG_LT] = PG_OP_less, [PG_LE] = PG_OP_less_equal, [PG_GT] = PG_OP_greater,
                                      [PG_GE] = PG_OP_greater_equal, [PG_EQ] = PG_OP_equal, [PG_NE] = PG_OP_not_equal};
    const pg_expression *e = &formula->expressions[at];
    pg_index parts[4] = {0};
    switch (e->kind) {
    case PG_LETTER: return letters[e->what];
    case PG_NUMBER: return constant(d, e->number);
    case PG_SELECT: {
        for (int i = 0; i < 2; i++) parts[i] = evaluate(d, formula, e->operand[i], letters);
        pg_index truth = row(d, comparisons[e->what], parts[0], parts[1], 0);
        if (pg_is_constant(d->to, truth))
            return evaluate(d, formula, e->operand[pg_constant_of(d->to, truth) != 0 ? 2 : 3], letters);
        for (int i = 2; i < 4; i++) parts[i] = evaluate(d, formula, e->operand[i], letters);
        return row(d, PG_OP_where, truth, parts[2], parts[3]);
    }
    default:
        for (int i = 0; i < pg_ops[e->what].arity; i++) parts[i] = evaluate(d, formula, e->operand[i], letters);
        return row(d, e->what, parts[0], parts[1], parts[2]);
    }
}

static pg_index partial(differentiator *d, pg_index value, int operand, pg_index g) {
    const pg_instruction *instruction = &d->from->code[value];
    const pg_formula *formula = &pg_gradient_formulas[instruction->op][operand];
    pg_index letters[PG_LETTERS] = {[PG_Y] = d->places[value], [PG_G] = g};
    for (int i = 0; i < pg_ops[instruction->op].arity; i++) letters[PG_A + i] = d->places[instruction->in[i]];
    return evaluate(d, formula, formula->root, letters);
}

/* Whether a derivative passes through operand i: not where the table says 0. */
static int passes(const pg_program *program, pg_index value, size_t i) {
    int op = program->code[value].op;
    if (op >= PG_OP_TABLE_END) return 1;
    const pg_formula *formula = &pg_gradient_formulas[op][i];
    const pg_expression *root = &formula->expressions[formula->root];
    return root->kind != PG_NUMBER || root->number != 0;
}

/* ---- what a sweep passes through ---- */

static void begin_sweep(differentiator *d) {
    d->sweep++;
    d->cone_count = 0;
}

static void meet(differentiator *d, pg_index value) {
    if (d->met[value] == d->sweep || !d->depends[value]) return;
    d->met[value] = d->sweep;
    d->derivative[value] = PG_NONE;
    d->cone[d->cone_count++] = value;
}

static int compare_indices(const void *left, const void *right) {
    pg_index a = *(const pg_index *)left, b = *(const pg_index *)right;
    return (a > b) - (a < b);
}

/* In the order of the program: by counting where the cone is most of it, else by sorting. */
static void sort_cone(differentiator *d) {
    if (d->cone_count < d->from->count / 16) {
        qsort(d->cone, d->cone_count, sizeof *d->cone, compare_indices);
        return;
    }
    d->cone_count = 0;
    for (size_t i = 0; i < d->from->count; i++)
        if (d->met[i] == d->sweep) d->cone[d->cone_count++] = (pg_index)i;
}

/* What leads to the values met so far. */
static void meet_operands(differentiator *d) {
    for (size_t i = 0; i < d->cone_count; i++)
        for (size_t k = 0; k < pg_operands_of(d->from, d->cone[i]); k++)
            if (passes(d->from, d->cone[i], k)) meet(d, pg_operand_of(d->from, d->cone[i], k));
    sort_cone(d);
}

static void meet_followers(differentiator *d) {
    for (size_t i = 0; i < d->cone_count; i++) {
        pg_index value = d->cone[i];
        for (pg_index k = d->first_follower[value]; k < d->first_follower[value + 1]; k++) meet(d, d->followers[k]);
    }
    sort_cone(d);
}

/* ---- reverse ---- */

static void add_adjoint(differentiator *d, pg_index value, pg_index contribution) {
    pg_index *adjoint = &d->derivative[value];
    *adjoint = *adjoint == PG_NONE ? contribution : row(d, PG_OP_add, *adjoint, contribution, 0);
}

static void step_back(differentiator *d, pg_index value) {
    pg_index g = d->derivative[value];
    int op = d->from->code[value].op;
    if (g == PG_NONE || is_constant(d, g, 0)) return;
    for (size_t i = 0; i < pg_operands_of(d->from, value); i++) {
        pg_index operand = pg_operand_of(d->from, value, i);
        if (!d->depends[operand] || !passes(d->from, value, i)) continue;
        pg_index contribution = op == PG_OP_sum ? g
                              : op == PG_OP_dot ? row(d, PG_OP_zmul, g, d->places[pg_operand_of(d->from, value, i ^ 1)], 0)
                                                : partial(d, value, (int)i, g);
        add_adjoint(d, operand, contribution);
    }
}

static void sweep_back(differentiator *d) {
    meet_operands(d);
    d->work += d->cone_count;
    if (d->only_look) return;
    for (size_t i = d->cone_count; i-- > 0 && !d->failed;) step_back(d, d->cone[i]);
}

static pg_index gradient(differentiator *d, pg_index input) {
    if (d->met[input] != d->sweep || d->derivative[input] == PG_NONE) return constant(d, 0.0);
    return row(d, PG_OP_add, constant(d, 0.0), d->derivative[input], 0);
}

/* ---- forward ---- */

/* tangent * partial, zero where either is zero. */
static pg_index tangent_term(differentiator *d, pg_index tangent, pg_index slope) {
    if (pg_is_constant(d->to, slope) && pg_constant_of(d->to, slope) != 0) return row(d, PG_OP_zmul, tangent, slope, 0);
    double known = pg_is_constant(d->to, tangent) ? pg_constant_of(d->to, tangent) : 0;
    if (known != 0 && isfinite(known)) return row(d, PG_OP_zmul, tangent, slope, 0); /* an infinite one times 0 is nan */
    pg_index none = row(d, PG_OP_equal, slope, constant(d, 0.0), 0);
    return row(d, PG_OP_where, none, row(d, PG_OP_zmul, slope, tangent, 0), row(d, PG_OP_zmul, tangent, slope, 0));
}

static void step_forward(differentiator *d, pg_index value, pg_index one) {
    int op = d->from->code[value].op;
    if (op == PG_OP_input) return; /* its tangent is given */
    pg_index total = PG_NONE;
    for (size_t i = 0; i < pg_operands_of(d->from, value); i++) {
        pg_index operand = pg_operand_of(d->from, value, i);
        if (d->met[operand] != d->sweep || d->derivative[operand] == PG_NONE || !passes(d->from, value, i)) continue;
        pg_index tangent = d->derivative[operand], term = tangent;
        if (op == PG_OP_dot) term = tangent_term(d, tangent, d->places[pg_operand_of(d->from, value, i ^ 1)]);
        else if (op != PG_OP_sum) term = tangent_term(d, tangent, partial(d, value, (int)i, one));
        total = total == PG_NONE ? term : row(d, PG_OP_add, total, term, 0);
    }
    d->derivative[value] = total;
}

static void sweep_forward(differentiator *d) {
    meet_followers(d);
    d->work += d->cone_count;
    if (d->only_look) return;
    pg_index one = constant(d, 1.0);
    for (size_t i = 0; i < d->cone_count && !d->failed; i++) step_forward(d, d->cone[i], one);
}

static pg_index tangent_of(differentiator *d, pg_index value) {
    if (d->met[value] != d->sweep || d->derivative[value] == PG_NONE) return constant(d, 0.0);
    return d->derivative[value];
}

/* ---- begin and end ---- */

static int copy_primal(differentiator *d, size_t further_inputs) {
    const pg_program *from = d->from;
    if (!(d->to = pg_program_new(from->input_count + further_inputs))) return -1;
    for (size_t i = 0; i < from->count; i++) {
        const pg_instruction *instruction = &from->code[i];
        const pg_index *in = instruction->in;
        int op = instruction->op, arity = pg_ops[op].arity;
        if (op == PG_OP_input) {
            d->places[i] = (pg_index)i;
        } else if (op == PG_OP_constant) {
            d->places[i] = pg_program_constant(d->to, pg_constant_of(from, (pg_index)i));
        } else if (op == PG_OP_sum || op == PG_OP_dot) {
            size_t count = in[1];
            pg_index *operands = d->cone; /* free until the first sweep */
            if (count > from->count && !(operands = malloc(count * sizeof *operands))) return -1;
            for (size_t k = 0; k < count; k++) operands[k] = d->places[from->operands[in[0] + k]];
            d->places[i] = pg_program_many(d->to, op, operands, count);
            if (operands != d->cone) free(operands);
        } else {
            d->places[i] = pg_program_row(d->to, op, d->places[in[0]], arity > 1 ? d->places[in[1]] : 0,
                                          arity > 2 ? d->places[in[2]] : 0);
        }
        if (d->places[i] == PG_NONE) return -1;
    }
    for (size_t i = 0; i < from->output_count; i++)
        if (pg_program_output(d->to, d->places[from->outputs[i]]) < 0) return -1;
    for (size_t i = 0; i < from->guard_count; i++)
        if (pg_program_guard(d->to, d->places[from->guards[i].value], from->guards[i].expected) < 0) return -1;
    return 0;
}

static void find_dependent(differentiator *d, const pg_index *wrt, size_t wrt_count) {
    for (size_t i = 0; i < wrt_count; i++) d->depends[wrt[i]] = 1;
    for (size_t i = 0; i < d->from->count; i++)
        for (size_t k = 0; k < pg_operands_of(d->from, (pg_index)i) && !d->depends[i]; k++)
            d->depends[i] = d->depends[pg_operand_of(d->from, (pg_index)i, k)] && passes(d->from, (pg_index)i, k);
}

static int begin(differentiator *d, const pg_program *program, const pg_index *wrt, size_t wrt_count, size_t further_inputs) {
    size_t count = program->count ? program->count : 1;
    d->from = program;
    d->places = malloc(count * sizeof *d->places);
    d->derivative = malloc(count * sizeof *d->derivative);
    d->depends = calloc(count, 1);
    d->cone = malloc(count * sizeof *d->cone);
    d->met = calloc(count, sizeof *d->met);
    if (!d->places || !d->derivative || !d->depends || !d->cone || !d->met) return -1;
    find_dependent(d, wrt, wrt_count);
    return copy_primal(d, further_inputs);
}

/* Who uses a value, for forward sweeps; each user once for every use. */
static int find_followers(differentiator *d) {
    size_t count = d->from->count, uses = 0;
    if (!(d->first_follower = calloc(count + 1, sizeof *d->first_follower))) return -1;
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < pg_operands_of(d->from, (pg_index)i); k++, uses++)
            d->first_follower[pg_operand_of(d->from, (pg_index)i, k)]++;
    if (uses > UINT32_MAX || !(d->followers = malloc((uses ? uses : 1) * sizeof *d->followers))) return -1;
    pg_index sum = 0;
    for (size_t i = 0; i <= count; i++) d->first_follower[i] = sum += d->first_follower[i];
    for (size_t i = count; i-- > 0;)
        for (size_t k = 0; k < pg_operands_of(d->from, (pg_index)i); k++)
            d->followers[--d->first_follower[pg_operand_of(d->from, (pg_index)i, k)]] = (pg_index)i;
    return 0;
}

static pg_program *end(differentiator *d, int failed) {
    free(d->places);
    free(d->derivative);
    free(d->depends);
    free(d->cone);
    free(d->met);
    free(d->first_follower);
    free(d->followers);
    if (!failed && !d->failed) return d->to;
    pg_program_free(d->to);
    return NULL;
}

/* ---- derivatives ---- */

pg_program *pg_reverse(const pg_program *program, const pg_index *wrt, size_t wrt_count, pg_index of) {
    differentiator d = {0};
    int seeded = of == PG_NONE;
    int failed = begin(&d, program, wrt, wrt_count, seeded ? program->output_count : 0) < 0;
    if (!failed) {
        begin_sweep(&d);
        for (size_t i = 0; i < program->output_count; i++) {
            if (!seeded && i != of) continue;
            pg_index output = program->outputs[i];
            meet(&d, output);
            if (d.met[output] != d.sweep) continue;
            add_adjoint(&d, output, seeded ? (pg_index)(program->input_count + i) : constant(&d, 1.0));
        }
        sweep_back(&d);
        for (size_t i = 0; i < wrt_count && !failed; i++) failed = pg_program_output(d.to, gradient(&d, wrt[i])) < 0;
    }
    return end(&d, failed);
}

pg_program *pg_forward_mode(const pg_program *program, const pg_index *wrt, size_t wrt_count) {
    differentiator d = {0};
    int failed = begin(&d, program, wrt, wrt_count, wrt_count) < 0 || find_followers(&d) < 0;
    if (!failed) {
        begin_sweep(&d);
        for (size_t i = 0; i < wrt_count; i++) {
            meet(&d, wrt[i]);
            d.derivative[wrt[i]] = (pg_index)(program->input_count + i);
        }
        sweep_forward(&d);
        for (size_t i = 0; i < program->output_count && !failed; i++)
            failed = pg_program_output(d.to, tangent_of(&d, program->outputs[i])) < 0;
    }
    return end(&d, failed);
}

/* ---- Jacobians ---- */

typedef struct {
    pg_index row, column, value;
} entry;

typedef struct {
    entry *entries;
    size_t count, room;
} entries;

static int add_entry(entries *all, size_t row, size_t column, pg_index value) {
    if (all->count == all->room) {
        size_t room = all->room ? 2 * all->room : 64;
        entry *moved = realloc(all->entries, room * sizeof *moved);
        if (!moved) return -1;
        all->entries = moved;
        all->room = room;
    }
    all->entries[all->count++] = (entry){(pg_index)row, (pg_index)column, value};
    return 0;
}

static int reverse_rows(differentiator *d, const pg_index *wrt, size_t wrt_count, entries *all) {
    const pg_program *from = d->from;
    pg_index *column = malloc((from->input_count ? from->input_count : 1) * sizeof *column);
    int failed = !column;
    for (size_t k = 0; k < wrt_count && !failed; k++) column[wrt[k]] = (pg_index)k;
    for (size_t i = 0; i < from->output_count && !failed; i++) {
        begin_sweep(d);
        meet(d, from->outputs[i]);
        if (!d->cone_count) continue;
        if (!d->only_look) add_adjoint(d, from->outputs[i], constant(d, 1.0));
        sweep_back(d);
        /* Inputs come first, and those that were not asked for are never met. */
        for (size_t k = 0; k < d->cone_count && d->cone[k] < from->input_count && !failed; k++) {
            pg_index input = d->cone[k];
            if (!d->only_look && d->derivative[input] == PG_NONE) continue;
            failed = d->failed || add_entry(all, i, column[input], d->only_look ? 0 : gradient(d, input)) < 0;
        }
        failed |= d->failed;
    }
    free(column);
    return failed ? -1 : 0;
}

static int forward_columns(differentiator *d, const pg_index *wrt, size_t wrt_count, entries *all) {
    const pg_program *from = d->from;
    pg_index *first = malloc((from->count ? from->count : 1) * sizeof *first); /* the outputs that a value is */
    pg_index *next = malloc((from->output_count ? from->output_count : 1) * sizeof *next);
    int failed = !first || !next || find_followers(d) < 0;
    if (!failed) memset(first, 0xff, from->count * sizeof *first);
    for (size_t i = from->output_count; i-- > 0 && !failed;) {
        next[i] = first[from->outputs[i]];
        first[from->outputs[i]] = (pg_index)i;
    }
    for (size_t k = 0; k < wrt_count && !failed; k++) {
        begin_sweep(d);
        meet(d, wrt[k]);
        if (!d->only_look) d->derivative[wrt[k]] = constant(d, 1.0);
        sweep_forward(d);
        for (size_t i = 0; i < d->cone_count && !failed; i++) {
            pg_index value = d->cone[i];
            if (!d->only_look && d->derivative[value] == PG_NONE) continue;
            for (pg_index output = first[value]; output != PG_NONE && !failed; output = next[output])
                failed = add_entry(all, output, k, d->derivative[value]) < 0;
        }
        failed |= d->failed;
    }
    free(first);
    free(next);
    return failed ? -1 : 0;
}

static int compare_entries(const void *left, const void *right) {
    const entry *a = left, *b = right;
    if (a->row != b->row) return a->row < b->row ? -1 : 1;
    return (a->column > b->column) - (a->column < b->column);
}

/* Sorted, as two arrays; the values, if wanted, as outputs. 0, or -1. */
static int hand_over(entries *all, pg_program *to, pg_index **rows, pg_index **columns, size_t *count) {
    int failed = 0;
    if (all->count) qsort(all->entries, all->count, sizeof *all->entries, compare_entries);
    *rows = malloc((all->count ? all->count : 1) * sizeof **rows);
    *columns = malloc((all->count ? all->count : 1) * sizeof **columns);
    failed = !*rows || !*columns;
    for (size_t i = 0; i < all->count && !failed; i++) {
        (*rows)[i] = all->entries[i].row;
        (*columns)[i] = all->entries[i].column;
        if (to) failed = pg_program_output(to, all->entries[i].value) < 0;
    }
    *count = all->count;
    return failed ? -1 : 0;
}

static int sweep_jacobian(differentiator *d, const pg_program *program, const pg_index *wrt, size_t wrt_count, int forward,
                          pg_index **rows, pg_index **columns, size_t *count) {
    entries all = {0};
    *rows = *columns = NULL;
    *count = 0;
    int failed = begin(d, program, wrt, wrt_count, 0) < 0;
    if (!failed) failed = (forward ? forward_columns : reverse_rows)(d, wrt, wrt_count, &all) < 0;
    if (!failed) failed = hand_over(&all, d->only_look ? NULL : d->to, rows, columns, count) < 0;
    free(all.entries);
    return failed;
}

pg_program *pg_jacobian(const pg_program *program, const pg_index *wrt, size_t wrt_count, int forward, pg_index **rows,
                        pg_index **columns, size_t *count) {
    differentiator d = {0};
    pg_program *made = end(&d, sweep_jacobian(&d, program, wrt, wrt_count, forward, rows, columns, count));
    if (made) return made;
    free(*rows);
    free(*columns);
    *rows = *columns = NULL;
    return NULL;
}

int pg_jacobian_pattern(const pg_program *program, const pg_index *wrt, size_t wrt_count, int forward, pg_index **rows,
                        pg_index **columns, size_t *count, size_t *work) {
    differentiator d = {.only_look = 1};
    pg_program *made = end(&d, sweep_jacobian(&d, program, wrt, wrt_count, forward, rows, columns, count));
    *work = d.work;
    pg_program_free(made);
    if (made) return 0;
    free(*rows);
    free(*columns);
    *rows = *columns = NULL;
    return -1;
}
