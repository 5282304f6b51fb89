/* py_order.h: the operands of a node, and the nodes under a root as a list in the order of creation.
 * Knows no arithmetic. The plain backward needs no list (py_scan.c); everything else that follows a graph takes one. */
#ifndef PG_PY_ORDER_H
#define PG_PY_ORDER_H

#include "py_node.h"

/* Operands of any node, one by one: NULL where operand i is a constant. */
Py_ssize_t pg_operand_count(const pg_node *node);
pg_node *pg_operand_node(const pg_node *node, Py_ssize_t i);
double pg_operand_data(const pg_node *node, Py_ssize_t i);

/* The nodes from which a root was computed and the root, leaves left out, oldest first (borrowed pointers). */
typedef struct {
    pg_node **nodes;
    size_t count, capacity;
    uint32_t epoch;   /* `mark` of what was met; epoch + 1 marks the targets, and what leads to them */
    int foreign;      /* met a leaf that is not a target */
    int entered;
    uint64_t oldest;  /* the first run of such a leaf; PG_NO_RUN without one: Note [Runs] */
    struct pg_kept *kept; /* marks and gradients as they were met, to be put back: Note [Walks] */
    size_t kept_count, kept_capacity;
} pg_order;

/* Lists the nodes under `root`; what is a target is neither looked behind nor listed. With `zero`, their gradients
 * become 0. Returns 0, or -1 with an error; either way end with pg_order_free.
 * The caller owns a reference to the root meanwhile. */
int pg_order_make(pg_order *order, pg_node *root, pg_node *const *targets, size_t target_count, int zero);
int pg_order_make_all(pg_order *order, pg_node *const *roots, size_t root_count, pg_node *const *targets,
                      size_t target_count, int zero); /* under several roots */
void pg_order_free(pg_order *order);

/* Note [Runs]. Each run of a function by a transform has a number, and a leaf that of the last run that had begun when it
 * was made: a leaf is outside of a run, made before it, where its number is smaller. The leaves that a transform made of
 * numbers are outside of no run once it is done: what was computed from them may live on in a graph. */
#define PG_NO_RUN UINT64_MAX
extern uint64_t pg_last_run;

/* Marks with epoch + 1 the nodes of the order that lead to a target. */
void pg_order_prune(pg_order *order);
static inline int pg_is_needed(const pg_order *order, const pg_node *node) { return node->mark == order->epoch + 1; }

/* An order that lists nothing: marks with epoch + 1 the roots that lead to a leaf outside of a run (and are no leaf), and
 * what it met on the way to one. Stops there, so it seldom walks all of a graph. Returns and ends as pg_order_make. */
int pg_order_mark_outside(pg_order *order, pg_node *const *roots, size_t root_count, uint64_t run);

/* Drops the operands of every node of the order: 0, or -1 with an error. */
int pg_order_release(pg_order *order);

/* Note [Walks]. Code of the user's may run during a walk (a closure, an op of the user's, a signal handler), and may walk
 * the same nodes. So whatever walks a graph counts itself in pg_walks, with its epoch; and a walk inside another puts
 * back the marks and gradients of the interior nodes that it found marked by one under way. What is released meanwhile
 * lives on in a graveyard until the last walk has ended. An order does all that between pg_order_make and pg_order_free. */
enum { PG_EPOCHS = 64 };
extern int pg_walks;
extern uint32_t pg_epochs[PG_EPOCHS]; /* theirs, in no order; of more walks inside one another the rest is not told apart */
int pg_walk_enter_another(uint32_t epoch);
void pg_walk_leave_another(uint32_t epoch);
extern PyObject *pg_graves;   /* a list, or NULL */
PyObject *pg_graveyard(void); /* for pg_node_release: NULL where this is the only walk (borrowed) */

/* 0, or -1 with an error. */
static inline int pg_walk_enter(uint32_t epoch) {
    if (PG_UNLIKELY(pg_walks > 0)) return pg_walk_enter_another(epoch);
    pg_epochs[pg_walks++] = epoch;
    return 0;
}

static inline void pg_walk_leave(uint32_t epoch) {
    if (PG_LIKELY(pg_walks == 1 && !pg_graves)) pg_walks = 0;
    else pg_walk_leave_another(epoch);
}

/* The epoch of a new walk, it and the next one; 0 with an error where that is not possible. */
extern uint32_t pg_last_epoch;
uint32_t pg_epoch_begin_again(void);
static inline uint32_t pg_epoch_begin(void) {
    return PG_UNLIKELY(pg_last_epoch > UINT32_MAX - 4) ? pg_epoch_begin_again() : (pg_last_epoch += 2);
}

/* -1 with GraphError: `node` has been released. */
int pg_released_error(const pg_node *node);

#endif
