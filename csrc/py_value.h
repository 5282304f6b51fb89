/* py_value.h: the Python type of a node, and what the extension module needs of it. */
#ifndef PG_PY_VALUE_H
#define PG_PY_VALUE_H

#include "py_node.h"

#if defined(__clang__)
#define PG_COMPILER "clang " __clang_version__
#elif defined(__GNUC__)
#define PG_COMPILER "gcc " __VERSION__
#else
#define PG_COMPILER "unknown"
#endif
#ifndef PG_FLAGS
#define PG_FLAGS "unknown" /* set by setup.py */
#endif

int pg_core_init(void);                                    /* readies types and tables; call once, before all else */
void pg_set_hooks(PyObject *real, PyObject *place, PyObject *arrays, PyObject *anomaly, PyObject *graph_error,
                  PyObject *capture_error);
int pg_type_add(const char *name, PyObject *attribute);    /* a method or attribute of Value, written in Python */
PyObject *pg_value_operands(PyObject *self);               /* tuple of nodes and floats */

#endif
