/* py_graph.h: backward. Owns the walk of the eager graph.
 * Knows nodes and the table's gradients; gradients that are nodes themselves are in py_gradient.c. */
#ifndef PG_PY_GRAPH_H
#define PG_PY_GRAPH_H

#include "py_node.h"

/* 0, or -1 with GraphError where backward needs an operand, or the node's own value, that was written since. */
int pg_check_fresh(const pg_node *node);

/* 0, or -1 with GraphError where `root` does not require a gradient. */
int pg_check_root(const pg_node *root);

/* y.backward(grad): 0, or -1 with an error. */
int pg_backward(pg_node *root, double grad, int retain_graph);

/* gradients[i] of `root` with respect to targets[i], times grad, without touching any leaf's gradient but theirs.
 * *oldest is the first run of the other leaves from which `root` was computed, PG_NO_RUN where there is none. A reference
 * to *root is given up: as pg_scan_targets. */
int pg_gradients(pg_node **root, double grad, pg_node *const *targets, size_t count, double *gradients, uint64_t *oldest);

PyObject *pg_operand_numbers(const pg_node *node); /* the operands' numbers as a tuple */

/* Adds one node's contributions to the gradients of its operands, as the walk would. */
int pg_step(pg_node *node);

#endif
