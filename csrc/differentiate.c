/* differentiate.c: see Note [Sweeps] in differentiate.h; a sweep itself is in sweep.c. */
#include "differentiate.h"

#include <stdlib.h>
#include <string.h>

#include "sweep.h"

/* ---- derivatives ---- */

/* Zeros get the sign of a sum that begins with 0.0, as on nodes. */
static pg_index gradient(pg_sweep *d, pg_index input) {
    pg_index adjoint = pg_sweep_derivative(d, input), zero = pg_sweep_constant(d, 0.0);
    return adjoint == PG_NONE ? zero : pg_sweep_row(d, PG_OP_add, zero, adjoint, 0);
}

static pg_index tangent_of(pg_sweep *d, pg_index value) {
    pg_index tangent = pg_sweep_derivative(d, value);
    return tangent == PG_NONE ? pg_sweep_constant(d, 0.0) : tangent;
}

pg_program *pg_reverse(const pg_program *program, const pg_index *wrt, size_t wrt_count, pg_index of) {
    pg_sweep d = {0};
    int seeded = of == PG_NONE;
    size_t inputs = program->input_count + (seeded ? program->output_count : 0);
    int failed = pg_sweep_init(&d, program, wrt, wrt_count, inputs, NULL) < 0;
    if (!failed) {
        pg_sweep_begin(&d);
        for (size_t i = 0; i < program->output_count; i++) {
            if (!seeded && i != of) continue;
            pg_index output = program->outputs[i];
            pg_sweep_meet(&d, output);
            if (d.met[output] != d.sweep) continue;
            pg_sweep_add_adjoint(&d, output, seeded ? (pg_index)(program->input_count + i) : pg_sweep_constant(&d, 1.0));
        }
        pg_sweep_back(&d);
        for (size_t i = 0; i < wrt_count && !failed; i++) failed = pg_program_output(d.to, gradient(&d, wrt[i])) < 0;
    }
    return pg_sweep_end(&d, failed);
}

pg_program *pg_forward_mode(const pg_program *program, const pg_index *wrt, size_t wrt_count) {
    pg_sweep d = {0};
    int failed = pg_sweep_init(&d, program, wrt, wrt_count, program->input_count + wrt_count, NULL) < 0;
    failed = failed || pg_sweep_find_followers(&d) < 0;
    if (!failed) {
        pg_sweep_begin(&d);
        for (size_t i = 0; i < wrt_count; i++) {
            pg_sweep_meet(&d, wrt[i]);
            d.derivative[wrt[i]] = (pg_index)(program->input_count + i);
        }
        pg_sweep_forward(&d);
        for (size_t i = 0; i < program->output_count && !failed; i++)
            failed = pg_program_output(d.to, tangent_of(&d, program->outputs[i])) < 0;
    }
    return pg_sweep_end(&d, failed);
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

static int reverse_rows(pg_sweep *d, const pg_index *wrt, size_t wrt_count, entries *all) {
    const pg_program *from = d->from;
    pg_index *column = malloc((from->input_count ? from->input_count : 1) * sizeof *column);
    int failed = !column;
    for (size_t k = 0; k < wrt_count && !failed; k++) column[wrt[k]] = (pg_index)k;
    for (size_t i = 0; i < from->output_count && !failed; i++) {
        pg_sweep_begin(d);
        pg_sweep_meet(d, from->outputs[i]);
        if (!d->cone_count) continue;
        if (!d->only_look) pg_sweep_add_adjoint(d, from->outputs[i], pg_sweep_constant(d, 1.0));
        pg_sweep_back(d);
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

static int forward_columns(pg_sweep *d, const pg_index *wrt, size_t wrt_count, entries *all) {
    const pg_program *from = d->from;
    pg_index *first = malloc((from->count ? from->count : 1) * sizeof *first); /* the outputs that a value is */
    pg_index *next = malloc((from->output_count ? from->output_count : 1) * sizeof *next);
    int failed = !first || !next || pg_sweep_find_followers(d) < 0;
    if (!failed) memset(first, 0xff, from->count * sizeof *first);
    for (size_t i = from->output_count; i-- > 0 && !failed;) {
        next[i] = first[from->outputs[i]];
        first[from->outputs[i]] = (pg_index)i;
    }
    for (size_t k = 0; k < wrt_count && !failed; k++) {
        pg_sweep_begin(d);
        pg_sweep_meet(d, wrt[k]);
        if (!d->only_look) d->derivative[wrt[k]] = pg_sweep_constant(d, 1.0);
        pg_sweep_forward(d);
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

static int sweep_jacobian(pg_sweep *d, const pg_program *program, const pg_index *wrt, size_t wrt_count, int forward,
                          pg_index **rows, pg_index **columns, size_t *count) {
    entries all = {0};
    *rows = *columns = NULL;
    *count = 0;
    int failed = pg_sweep_init(d, program, wrt, wrt_count, program->input_count, NULL) < 0;
    if (!failed) failed = (forward ? forward_columns : reverse_rows)(d, wrt, wrt_count, &all) < 0;
    if (!failed) failed = hand_over(&all, d->only_look ? NULL : d->to, rows, columns, count) < 0;
    free(all.entries);
    return failed;
}

pg_program *pg_jacobian(const pg_program *program, const pg_index *wrt, size_t wrt_count, int forward, pg_index **rows,
                        pg_index **columns, size_t *count) {
    pg_sweep d = {0};
    pg_program *made = pg_sweep_end(&d, sweep_jacobian(&d, program, wrt, wrt_count, forward, rows, columns, count));
    if (made) return made;
    free(*rows);
    free(*columns);
    *rows = *columns = NULL;
    return NULL;
}

int pg_jacobian_pattern(const pg_program *program, const pg_index *wrt, size_t wrt_count, int forward, pg_index **rows,
                        pg_index **columns, size_t *count, size_t *work) {
    pg_sweep d = {.only_look = 1};
    pg_program *made = pg_sweep_end(&d, sweep_jacobian(&d, program, wrt, wrt_count, forward, rows, columns, count));
    *work = d.work;
    pg_program_free(made);
    if (made) return 0;
    free(*rows);
    free(*columns);
    *rows = *columns = NULL;
    return -1;
}
