/* sweep.c: a sweep over rows, sums and dots. See sweep.h. */
#include "sweep.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "formula.h"
#include "scalar.h"

/* ---- making instructions: a row of constants is a constant, as on nodes ---- */

pg_index pg_sweep_checked(pg_sweep *d, pg_index value) {
    d->failed |= value == PG_NONE;
    return value == PG_NONE ? 0 : value;
}

pg_index pg_sweep_constant(pg_sweep *d, double number) { return pg_sweep_checked(d, pg_program_constant(d->to, number)); }

pg_index pg_sweep_row(pg_sweep *d, int op, pg_index a, pg_index b, pg_index c) {
    const pg_index in[] = {a, b, c};
    double numbers[PG_MAX_ARITY] = {0};
    for (int i = 0; i < pg_ops[op].arity; i++) {
        if (!pg_is_constant(d->to, in[i])) return pg_sweep_checked(d, pg_program_row(d->to, op, a, b, c));
        numbers[i] = pg_constant_of(d->to, in[i]);
    }
    return pg_sweep_constant(d, pg_forward(op, numbers[0], numbers[1], numbers[2]));
}

static int is_constant(const pg_sweep *d, pg_index value, double number) {
    return pg_is_constant(d->to, value) && pg_constant_of(d->to, value) == number;
}

/* ---- formulas ---- */

static pg_index evaluate(pg_sweep *d, const pg_formula *formula, int at, const pg_index *letters) {
    static const int comparisons[] = {[PG_LT] = PG_OP_less, [PG_LE] = PG_OP_less_equal, [PG_GT] = PG_OP_greater,
                                      [PG_GE] = PG_OP_greater_equal, [PG_EQ] = PG_OP_equal, [PG_NE] = PG_OP_not_equal};
    const pg_expression *e = &formula->expressions[at];
    pg_index parts[4] = {0};
    switch (e->kind) {
    case PG_LETTER: return letters[e->what];
    case PG_NUMBER: return pg_sweep_constant(d, e->number);
    case PG_SELECT: {
        for (int i = 0; i < 2; i++) parts[i] = evaluate(d, formula, e->operand[i], letters);
        pg_index truth = pg_sweep_row(d, comparisons[e->what], parts[0], parts[1], 0);
        if (pg_is_constant(d->to, truth))
            return evaluate(d, formula, e->operand[pg_constant_of(d->to, truth) != 0 ? 2 : 3], letters);
        for (int i = 2; i < 4; i++) parts[i] = evaluate(d, formula, e->operand[i], letters);
        return pg_sweep_row(d, PG_OP_where, truth, parts[2], parts[3]);
    }
    default:
        for (int i = 0; i < pg_ops[e->what].arity; i++) parts[i] = evaluate(d, formula, e->operand[i], letters);
        return pg_sweep_row(d, e->what, parts[0], parts[1], parts[2]);
    }
}

static pg_index partial(pg_sweep *d, pg_index value, int operand, pg_index g) {
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

void pg_sweep_begin(pg_sweep *d) {
    d->sweep++;
    d->cone_count = 0;
}

void pg_sweep_meet(pg_sweep *d, pg_index value) {
    if (d->met[value] == d->sweep || !d->depends[value]) return;
    d->met[value] = d->sweep;
    d->derivative[value] = PG_NONE;
    if (d->parts) d->parts[value] = PG_NONE;
    d->cone[d->cone_count++] = value;
}

static int compare_indices(const void *left, const void *right) {
    pg_index a = *(const pg_index *)left, b = *(const pg_index *)right;
    return (a > b) - (a < b);
}

/* In the order of the program: by counting where the cone is most of it, else by sorting. */
static void sort_cone(pg_sweep *d) {
    if (d->cone_count < d->from->count / 16) {
        qsort(d->cone, d->cone_count, sizeof *d->cone, compare_indices);
        return;
    }
    d->cone_count = 0;
    for (size_t i = 0; i < d->from->count; i++)
        if (d->met[i] == d->sweep) d->cone[d->cone_count++] = (pg_index)i;
}

/* What leads to the values met so far. */
static void meet_operands(pg_sweep *d) {
    for (size_t i = 0; i < d->cone_count; i++)
        for (size_t k = 0; k < pg_operands_of(d->from, d->cone[i]); k++)
            if (passes(d->from, d->cone[i], k)) pg_sweep_meet(d, pg_operand_of(d->from, d->cone[i], k));
    sort_cone(d);
}

static void meet_followers(pg_sweep *d) {
    for (size_t i = 0; i < d->cone_count; i++) {
        pg_index value = d->cone[i];
        for (pg_index k = d->first_follower[value]; k < d->first_follower[value + 1]; k++) pg_sweep_meet(d, d->followers[k]);
    }
    sort_cone(d);
}

/* A region counts as the instructions in it. */
static void count_work(pg_sweep *d) {
    d->work += d->cone_count;
    for (size_t i = 0; i < d->cone_count && d->parts; i++) {
        if (!pg_is_region(d->from->code[d->cone[i]].op)) continue;
        const pg_region *region = pg_region_of(d->from, d->cone[i]);
        for (int k = 0; k < 2; k++) d->work += region->body[k] ? region->body[k]->count : 0;
    }
}

/* ---- reverse ---- */

void pg_sweep_add_adjoint(pg_sweep *d, pg_index value, pg_index contribution) {
    pg_index *adjoint = &d->derivative[value];
    *adjoint = *adjoint == PG_NONE ? contribution : pg_sweep_row(d, PG_OP_add, *adjoint, contribution, 0);
}

static void step_back(pg_sweep *d, pg_index value) {
    pg_index g = d->derivative[value];
    int op = d->from->code[value].op;
    if (op > PG_OP_constant) {
        pg_region_back(d, value);
        return;
    }
    if (g == PG_NONE || is_constant(d, g, 0)) return;
    for (size_t i = 0; i < pg_operands_of(d->from, value); i++) {
        pg_index operand = pg_operand_of(d->from, value, i);
        if (!d->depends[operand] || !passes(d->from, value, i)) continue;
        pg_index contribution = g;
        if (op == PG_OP_dot) contribution = pg_sweep_row(d, PG_OP_zmul, g, d->places[pg_operand_of(d->from, value, i ^ 1)], 0);
        else if (op != PG_OP_sum) contribution = partial(d, value, (int)i, g);
        pg_sweep_add_adjoint(d, operand, contribution);
    }
}

void pg_sweep_back(pg_sweep *d) {
    meet_operands(d);
    count_work(d);
    if (d->only_look) return;
    for (size_t i = d->cone_count; i-- > 0 && !d->failed;) step_back(d, d->cone[i]);
}

/* ---- forward ---- */

/* tangent * partial, zero where either is zero. */
static pg_index tangent_term(pg_sweep *d, pg_index tangent, pg_index slope) {
    if (pg_is_constant(d->to, slope) && pg_constant_of(d->to, slope) != 0) return pg_sweep_row(d, PG_OP_zmul, tangent, slope, 0);
    double known = pg_is_constant(d->to, tangent) ? pg_constant_of(d->to, tangent) : 0;
    if (known != 0 && isfinite(known)) return pg_sweep_row(d, PG_OP_zmul, tangent, slope, 0); /* an infinite one times 0 is nan */
    pg_index none = pg_sweep_row(d, PG_OP_equal, slope, pg_sweep_constant(d, 0.0), 0);
    pg_index swapped = pg_sweep_row(d, PG_OP_zmul, slope, tangent, 0);
    return pg_sweep_row(d, PG_OP_where, none, swapped, pg_sweep_row(d, PG_OP_zmul, tangent, slope, 0));
}

void pg_sweep_add_tangent(pg_sweep *d, pg_index *total, pg_index tangent, pg_index slope) {
    pg_index term = slope == PG_NONE ? tangent : tangent_term(d, tangent, slope);
    *total = *total == PG_NONE ? term : pg_sweep_row(d, PG_OP_add, *total, term, 0);
}

static void step_forward(pg_sweep *d, pg_index value, pg_index one) {
    int op = d->from->code[value].op;
    if (op == PG_OP_input) return; /* its tangent is given */
    if (op > PG_OP_constant) {
        pg_region_forward(d, value);
        return;
    }
    pg_index total = PG_NONE;
    for (size_t i = 0; i < pg_operands_of(d->from, value); i++) {
        pg_index operand = pg_operand_of(d->from, value, i);
        if (d->met[operand] != d->sweep || d->derivative[operand] == PG_NONE || !passes(d->from, value, i)) continue;
        pg_index slope = op == PG_OP_sum ? PG_NONE
                       : op == PG_OP_dot ? d->places[pg_operand_of(d->from, value, i ^ 1)] : partial(d, value, (int)i, one);
        pg_sweep_add_tangent(d, &total, d->derivative[operand], slope);
    }
    d->derivative[value] = total;
}

void pg_sweep_forward(pg_sweep *d) {
    meet_followers(d);
    count_work(d);
    if (d->only_look) return;
    pg_index one = pg_sweep_constant(d, 1.0);
    for (size_t i = 0; i < d->cone_count && !d->failed; i++) step_forward(d, d->cone[i], one);
}

/* ---- begin and end ---- */

static int copy_primal(pg_sweep *d, size_t inputs, const pg_index *places) {
    const pg_program *from = d->from;
    if (!(d->to = pg_program_new(inputs))) return -1;
    for (size_t i = 0; i < from->count; i++) {
        if (i < from->input_count) d->places[i] = places ? places[i] : (pg_index)i;
        else d->places[i] = pg_program_append(d->to, from, (pg_index)i, d->places);
        if (d->places[i] == PG_NONE) return -1;
    }
    for (size_t i = 0; i < from->output_count && !places; i++)
        if (pg_program_output(d->to, d->places[from->outputs[i]]) < 0) return -1;
    for (size_t i = 0; i < from->guard_count && !places; i++)
        if (pg_program_guard(d->to, d->places[from->guards[i].value], from->guards[i].expected) < 0) return -1;
    return 0;
}

static void find_dependent(pg_sweep *d, const pg_index *wrt, size_t wrt_count) {
    for (size_t i = 0; i < wrt_count; i++) d->depends[wrt[i]] = 1;
    for (size_t i = 0; i < d->from->count; i++)
        for (size_t k = 0; k < pg_operands_of(d->from, (pg_index)i) && !d->depends[i]; k++)
            d->depends[i] = d->depends[pg_operand_of(d->from, (pg_index)i, k)] && passes(d->from, (pg_index)i, k);
}

int pg_sweep_init(pg_sweep *d, const pg_program *program, const pg_index *wrt, size_t wrt_count, size_t inputs,
                  const pg_index *places) {
    size_t count = program->count ? program->count : 1;
    d->from = program;
    d->places = malloc(count * sizeof *d->places);
    d->derivative = malloc(count * sizeof *d->derivative);
    d->depends = calloc(count, 1);
    d->cone = malloc(count * sizeof *d->cone);
    d->met = calloc(count, sizeof *d->met);
    if (!d->places || !d->derivative || !d->depends || !d->cone || !d->met) return -1;
    if (program->region_count) {
        d->parts = malloc(count * sizeof *d->parts);
        d->next_part = malloc(count * sizeof *d->next_part);
        d->tangents = calloc(count, sizeof *d->tangents);
        if (!d->parts || !d->next_part || !d->tangents) return -1;
    }
    find_dependent(d, wrt, wrt_count);
    return copy_primal(d, inputs, places);
}

/* Who uses a value, for forward sweeps; each user once for every use. */
int pg_sweep_find_followers(pg_sweep *d) {
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

pg_program *pg_sweep_end(pg_sweep *d, int failed) {
    free(d->places);
    free(d->derivative);
    free(d->depends);
    free(d->cone);
    free(d->met);
    free(d->first_follower);
    free(d->followers);
    free(d->parts);
    free(d->next_part);
    for (size_t i = 0; d->tangents && i < d->from->count; i++) free(d->tangents[i]);
    free(d->tangents);
    if (!failed && !d->failed) return d->to;
    pg_program_free(d->to);
    return NULL;
}

