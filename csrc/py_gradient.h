/* py_gradient.h: gradients that are nodes themselves, so that they can be differentiated again. Owns the evaluation of
 * the table's formulas on nodes, and adjoints that are objects; shared with forward mode (py_tangent.c) and with
 * backward(create_graph=True) (py_stand_in.c). The order comes from py_order.h. */
#ifndef PG_PY_GRADIENT_H
#define PG_PY_GRADIENT_H

#include "formula.h"
#include "py_map.h"
#include "py_node.h"
#include "py_order.h"

/* List of the gradients of `root` with respect to the targets, times `grad` (a Value or float): Values, or floats where
 * a gradient is constant. Touches the .grad of no leaf. */
PyObject *pg_gradients_graph(pg_node *root, PyObject *grad, pg_node *const *targets, size_t count);
PyObject *pg_gradients_of_order(pg_order *order, PyObject *root, PyObject *grad, pg_node *const *targets, size_t count);

/* Forward mode: list of the derivatives of the outputs (Values or floats) along `directions`, one a target: floats, or
 * with `graph` nodes. */
PyObject *pg_tangents(PyObject *outputs, pg_node *const *targets, size_t count, PyObject *directions, int graph);

/* y.backward(grad, create_graph=True): None, or NULL with an error. */
PyObject *pg_backward_graph(pg_node *root, double grad, int retain_graph);

/* The stand-in of a leaf, made where there is none for its present number; a new reference. */
pg_node *pg_stand_in_of(pg_node *leaf);

/* ---- adjoints: an object (a Value or a float) for each node that leads to a target, and for each target. Nothing of
 * them is kept in nodes, since code of the user's may run on the way. ---- */
typedef struct {
    PyObject **objects; /* of the order's nodes, then of the targets; NULL is zero */
    size_t count;
    pg_map places;      /* of what is needed */
} pg_adjoints;

/* 0, or -1 with an error; to be freed either way. */
int pg_adjoints_make(pg_adjoints *all, pg_order *order, pg_node *const *targets, size_t count);
void pg_adjoints_free(pg_adjoints *all);
PyObject **pg_adjoint_of(const pg_adjoints *all, const pg_node *node); /* NULL for what is not needed */

/* ---- formulas on nodes: every object is a Value or a float; results are new references ---- */
double pg_number_of(PyObject *object);
PyObject *pg_apply(int op, PyObject *const *operands, int count);
/* During a capture a select among nodes is recorded as `where`, so that a replay chooses anew: see Note [Capture]. */
PyObject *pg_evaluate(const pg_formula *formula, int at, PyObject *const *letters, const double *numbers);
PyObject *pg_operand_object(const pg_node *node, Py_ssize_t i);
PyObject *pg_operands_tuple(const pg_node *node, int swap_pairs);
static inline int pg_has_closure(const pg_node *node) { return node->op == PG_OP_custom || node->op == PG_OP_call; }
PyObject *pg_custom_partials(pg_node *node, PyObject *g, PyObject *operands); /* op.gradients_graph(g, y, operands) */

/* What the letters of a row's formulas stand for at a node; free them on failure too. */
int pg_letters_make(PyObject *letters[PG_LETTERS], double numbers[PG_LETTERS], pg_node *node, PyObject *g);
void pg_letters_free(PyObject *letters[PG_LETTERS]);

#endif
