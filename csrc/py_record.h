/* py_record.h: from Python operands to a recorded node. Owns what counts as a number, and the one way an op's result
 * becomes a node; knows no formula. The number slots (py_value.c) and the op functions (py_op.c) call it. */
#ifndef PG_PY_RECORD_H
#define PG_PY_RECORD_H

#include "py_heap.h"
#include "py_node.h"

/* An operand as recorded: its number, and its node where that requires a gradient, else NULL (borrowed). */
typedef struct {
    pg_node *node;
    double data;
} pg_arg;

/* What the core asks of Python, set once at import by pg_set_hooks. */
typedef struct {
    PyObject *real;    /* real(object) -> float or NotImplemented: numbers that are neither float nor int */
    PyObject *place;   /* place() -> (file, line, function) of the user's code that is running */
    PyObject *arrays;  /* arrays(op, args) -> an op applied to operands of which one is an array, or NotImplemented */
    PyObject *anomaly; /* anomaly(op, operands, value, place, phase) raises AnomalyError */
    PyObject *graph_error; /* the exception class GraphError */
    PyObject *capture_error; /* the exception class CaptureError */
} pg_hooks_table;
extern pg_hooks_table pg_hooks;

/* 1 and *arg set; 0 where `object` is no real number, without an error; -1 with an error. */
int pg_load_slow(PyObject *object, pg_arg *arg);

static inline int pg_load(PyObject *object, pg_arg *arg) {
    if (PG_LIKELY(PG_IS_VALUE(object))) {
        pg_node *node = (pg_node *)object;
        arg->node = node->flags & PG_REQUIRES_GRAD ? node : NULL;
        arg->data = node->data;
        return 1;
    }
    if (PG_LIKELY(PyFloat_CheckExact(object))) {
        arg->node = NULL;
        arg->data = PyFloat_AS_DOUBLE(object);
        return 1;
    }
    return pg_load_slow(object, arg);
}

/* A leaf; NULL with an error where memory runs out. */
pg_node *pg_leaf(double data, int requires_grad);

/* The result `y` of a row of the table as a node: recorded where an operand requires a gradient, else a leaf. What is
 * recorded under no_grad, during a capture, is a row `frozen` over the node. */
PyObject *pg_record(int op, double y, const pg_arg *args, int count);

/* The same for n-ary ops. Steals `closure`, also on failure. */
PyObject *pg_record_many(int op, double y, const pg_arg *args, Py_ssize_t count, PyObject *closure);

PyObject *pg_sum(PyObject *values);
PyObject *pg_dot(PyObject *left, PyObject *right);

static inline void pg_node_set(pg_node *node, int op, double y, unsigned flags, unsigned seen) {
    node->data = y;
    node->grad = 0.0;
    node->head = (pg_head){(uint8_t)op, (uint8_t)flags, 0, (uint8_t)seen, 0};
}

/* ---- the fast way, for what is neither frozen nor collected, while nothing is unusual ---- */

static inline int pg_is_usual(const pg_node *node) {
    return PG_LIKELY((node->flags & (PG_REQUIRES_GRAD | PG_COLLECTED)) == PG_REQUIRES_GRAD && !pg_unusual);
}

static inline pg_node *pg_take(pg_node *node) {
    Py_INCREF(node);
    return node;
}

static inline PyObject *pg_record_n(int op, double y, pg_node *a) {
    pg_node *node = pg_alloc_op();
    if (PG_UNLIKELY(!node)) return NULL;
    pg_node_set(node, op, y, PG_REQUIRES_GRAD | PG_CONST1 | PG_CONST2, a->version);
    node->in[0].node = pg_take(a);
    return (PyObject *)node;
}

static inline PyObject *pg_record_nn(int op, double y, pg_node *a, pg_node *b) {
    pg_node *node = pg_alloc_op();
    if (PG_UNLIKELY(!node)) return NULL;
    pg_node_set(node, op, y, PG_REQUIRES_GRAD | PG_CONST2, (unsigned)a->version + b->version);
    node->in[0].node = pg_take(a);
    node->in[1].node = pg_take(b);
    return (PyObject *)node;
}

static inline PyObject *pg_record_nc(int op, double y, pg_node *a, double b) {
    pg_node *node = pg_alloc_op();
    if (PG_UNLIKELY(!node)) return NULL;
    pg_node_set(node, op, y, PG_REQUIRES_GRAD | PG_CONST1 | PG_CONST2, a->version);
    node->in[0].node = pg_take(a);
    node->in[1].constant = b;
    return (PyObject *)node;
}

static inline PyObject *pg_record_cn(int op, double y, double a, pg_node *b) {
    pg_node *node = pg_alloc_op();
    if (PG_UNLIKELY(!node)) return NULL;
    pg_node_set(node, op, y, PG_REQUIRES_GRAD | PG_CONST0 | PG_CONST2, b->version);
    node->in[0].constant = a;
    node->in[1].node = pg_take(b);
    return (PyObject *)node;
}

#endif
