/* py_gradient.h: gradients that are nodes themselves, so that they can be differentiated again. Owns the evaluation of
 * the table's formulas on nodes; the order comes from py_graph.h. */
#ifndef PG_PY_GRADIENT_H
#define PG_PY_GRADIENT_H

#include "py_node.h"

/* List of the gradients of `root` with respect to the targets, times `grad` (a Value or float): Values, or floats where
 * a gradient is constant. Touches the .grad of no leaf. */
PyObject *pg_gradients_graph(pg_node *root, PyObject *grad, pg_node *const *targets, size_t count);

/* Forward mode: list of the derivatives of the outputs (Values or floats) along `directions`, one a target: floats, or
 * with `graph` nodes. */
PyObject *pg_tangents(PyObject *outputs, pg_node *const *targets, size_t count, PyObject *directions, int graph);

/* y.backward(grad, create_graph=True): None, or NULL with an error. */
PyObject *pg_backward_graph(pg_node *root, double grad);

#endif
