/* py_bulk.h: what the transforms do to many Values at once. Owns no mechanism: it is loops over py_record and py_graph. */
#ifndef PG_PY_BULK_H
#define PG_PY_BULK_H

#include "py_node.h"

/* A list of new leaves for a list of nothing but floats; None for any other list. */
PyObject *pg_lift_floats(PyObject *numbers);

/* The same for the doubles of a C-contiguous buffer. */
PyObject *pg_lift_buffer(PyObject *buffer);

/* List of the gradients of `root` with respect to a list of Values, as floats. None where `root` was computed from other
 * leaves too that are outside of `run`; 0 is a run that nothing is outside of. The root may be in a list by itself: then, where nothing else holds it, the graph is freed
 * on the way (Note [Spending] in py_scan.c), and None is left in the list. */
PyObject *pg_gradients_list(PyObject *root, PyObject *targets, double grad, uint64_t run);

/* The same into a writable C-contiguous buffer of as many doubles, which is returned. */
PyObject *pg_gradients_buffer(PyObject *root, PyObject *targets, double grad, uint64_t run, PyObject *buffer);

/* The list with floats for its Values, but for those that were computed from leaves outside of `run`. Where there are such,
 * which may hold the run's inputs, the run ends. */
PyObject *pg_settled(PyObject *numbers, uint64_t run, PyObject *inputs);

/* From now on the leaves in a list of Values are outside of no run. */
void pg_end_run(PyObject *inputs);

/* The nodes of a list of Values, borrowed, to be freed by PyMem_Free; NULL with TypeError for anything else in it. */
pg_node **pg_nodes_of(PyObject *values);

#endif
