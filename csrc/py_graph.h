/* py_graph.h: topological order and backward. Owns the one sort and the one walk of the eager graph.
 * Knows nodes and the table's gradients; gradients that are nodes themselves are in py_gradient.c. */
#ifndef PG_PY_GRAPH_H
#define PG_PY_GRAPH_H

#include "py_node.h"

/* The nodes from which a root was computed, leaves left out, in depth-first post-order (borrowed pointers). */
typedef struct {
    pg_node **nodes;
    size_t count, capacity;
    uint32_t epoch;   /* `mark` of what the sort met; epoch + 1 marks the targets, and what leads to them */
    int foreign;      /* met a leaf that is not a target */
} pg_order;

/* Sorts from `root`; what is a target is neither descended into nor listed. With `zero`, interior gradients become 0.
 * Returns 0, or -1 with an error; either way end with pg_order_free. */
int pg_order_make(pg_order *order, pg_node *root, pg_node *const *targets, size_t target_count, int zero);
void pg_order_free(pg_order *order);

/* Marks with epoch + 1 the nodes of the order that lead to a target. */
void pg_order_prune(pg_order *order);
static inline int pg_is_needed(const pg_order *order, const pg_node *node) { return node->mark == order->epoch + 1; }

/* Operands of any node, one by one: NULL where operand i is a constant. */
Py_ssize_t pg_operand_count(const pg_node *node);
pg_node *pg_operand_node(const pg_node *node, Py_ssize_t i);
double pg_operand_data(const pg_node *node, Py_ssize_t i);

/* 0, or -1 with GraphError where backward needs an operand, or the node's own value, that was written since. */
int pg_check_fresh(const pg_node *node);

/* Around every walk: what is released while another walk is under way lives until the last one ends. */
int pg_walk_enter(void);
void pg_walk_leave(void);

/* 0, or -1 with GraphError where `root` does not require a gradient. */
int pg_check_root(const pg_node *root);

/* y.backward(grad): 0, or -1 with an error. */
int pg_backward(pg_node *root, double grad, int retain_graph);

/* gradients[i] of `root` with respect to targets[i], times grad, without touching any leaf's gradient but theirs. */
int pg_gradients(pg_node *root, double grad, pg_node *const *targets, size_t target_count, double *gradients);

/* Adds one node's contributions to the gradients of its operands, as the walk would. */
int pg_step(pg_node *node);

#endif
