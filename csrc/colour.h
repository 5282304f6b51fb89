/* colour.h: groups of columns of a sparse matrix that share no row, so that one sweep serves a group. Knows no program. */
#ifndef PG_COLOUR_H
#define PG_COLOUR_H

#include <stddef.h>
#include <stdint.h>

/* Greedily, in the order of the columns: colours[column] for each, and how many there are; 0 where memory runs out or
 * there is no column. Entries are given by their rows and columns, sorted by row. The time is the sum over rows of the
 * square of their number of entries. After Curtis, Powell and Reid (1974). */
size_t pg_colour_columns(const uint32_t *rows, const uint32_t *columns, size_t entries, size_t column_count,
                         uint32_t *colours);

#endif
