/* py_program.h: from recorded nodes to a program. Owns that one step; capture itself is py_capture.h's, what a program is
 * program.h's. */
#ifndef PG_PY_PROGRAM_H
#define PG_PY_PROGRAM_H

#include "py_node.h"

#include "program.h"

/* Within a capture: the program that computes `outputs`, a list of Values and floats, and the guards so far from
 * `inputs`, a list of its leaves. What they were computed from besides that the capture did not make becomes further
 * inputs, which are appended to the list `outside`: it is not looked behind. NULL with an error. */
pg_program *pg_program_of_nodes(PyObject *inputs, PyObject *outputs, PyObject *outside);

#endif
