/* py_truth.h: truths that are Values: 1.0 or 0.0, of a row of comparisons or logic. Owns what comparison operators and
 * & | ^ ~ mean for them; knows nothing of captures, in which alone the operators record (py_capture.h). */
#ifndef PG_PY_TRUTH_H
#define PG_PY_TRUTH_H

#include "py_node.h"

static inline int pg_is_truth(const pg_node *node) {
    return node->op >= PG_OP_less && node->op <= PG_OP_logical_not;
}

/* left op right as a recorded truth, for one of Py_LT ... Py_GE. */
PyObject *pg_truth_compare(PyObject *left, PyObject *right, int op);

/* Number slots: truths and bools give a truth, anything else is a TypeError. */
PyObject *pg_truth_and(PyObject *left, PyObject *right);
PyObject *pg_truth_or(PyObject *left, PyObject *right);
PyObject *pg_truth_xor(PyObject *left, PyObject *right);
PyObject *pg_truth_invert(PyObject *self);

#endif
