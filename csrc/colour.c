/* colour.c: see colour.h. */
#include "colour.h"

#include <stdlib.h>
#include <string.h>

typedef struct {
    size_t *first;    /* of each column the first of its entries in `at`; one more at the end */
    size_t *at;       /* places of entries, column by column */
    size_t *row_from; /* of each entry the first and the end of its row */
    size_t *row_to;
    size_t *taken_by; /* of each colour the column, plus 1, that may not have it */
} tables;

static int fill(tables *t, const uint32_t *rows, const uint32_t *columns, size_t entries, size_t column_count) {
    t->first = calloc(column_count + 1, sizeof *t->first);
    t->at = malloc((entries ? entries : 1) * sizeof *t->at);
    t->row_from = malloc((entries ? entries : 1) * sizeof *t->row_from);
    t->row_to = malloc((entries ? entries : 1) * sizeof *t->row_to);
    t->taken_by = calloc(column_count + 1, sizeof *t->taken_by);
    if (!t->first || !t->at || !t->row_from || !t->row_to || !t->taken_by) return -1;
    for (size_t from = 0, to; from < entries; from = to) {
        for (to = from; to < entries && rows[to] == rows[from]; to++) t->first[columns[to]]++;
        for (size_t i = from; i < to; i++) t->row_from[i] = from, t->row_to[i] = to;
    }
    size_t sum = 0;
    for (size_t c = 0; c <= column_count; c++) t->first[c] = sum += c < column_count ? t->first[c] : 0;
    for (size_t i = entries; i-- > 0;) t->at[--t->first[columns[i]]] = i;
    return 0;
}

size_t pg_colour_columns(const uint32_t *rows, const uint32_t *columns, size_t entries, size_t column_count,
                         uint32_t *colours) {
    tables t = {0};
    size_t count = 0;
    int failed = fill(&t, rows, columns, entries, column_count) < 0;
    if (!failed) memset(colours, 0xff, column_count * sizeof *colours);
    for (size_t c = 0; c < column_count && !failed; c++) {
        for (size_t k = t.first[c]; k < t.first[c + 1]; k++)
            for (size_t i = t.row_from[t.at[k]]; i < t.row_to[t.at[k]]; i++)
                if (colours[columns[i]] != UINT32_MAX) t.taken_by[colours[columns[i]]] = c + 1;
        uint32_t colour = 0;
        while (t.taken_by[colour] == c + 1) colour++;
        colours[c] = colour;
        if (colour >= count) count = (size_t)colour + 1;
    }
    free(t.first);
    free(t.at);
    free(t.row_from);
    free(t.row_to);
    free(t.taken_by);
    return failed ? 0 : count;
}
