/* py_op.h: a row of the table as a Python callable, function and method at once. */
#ifndef PG_PY_OP_H
#define PG_PY_OP_H

#include "py_node.h"

extern PyTypeObject pg_op_type;

PyObject *pg_op_new(int op, const char *name); /* `name` must outlive it: a row's or an alias's */

#endif
