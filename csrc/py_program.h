/* py_program.h: from recorded nodes to a program. Owns that one step; capture itself is py_capture.h's, what a program is
 * program.h's. */
#ifndef PG_PY_PROGRAM_H
#define PG_PY_PROGRAM_H

#include "py_node.h"

#include "program.h"

/* The program that computes `outputs`, a list of Values and floats, and `guards`, a list of tuples (Value, expected, ...),
 * from `inputs`, a list of leaves. Within a capture what they were computed from besides that it did not make becomes
 * further inputs, which are appended to the list `outside`, and it is not looked behind. NULL with an error. */
pg_program *pg_program_of_nodes(PyObject *inputs, PyObject *outputs, PyObject *guards, PyObject *outside);

#endif
