/* py_call.h: functions of Python's as the callees of programs (Note [Regions] in program.h). Owns the way from a thread
 * that runs a program without the GIL to Python and back. */
#ifndef PG_PY_CALL_H
#define PG_PY_CALL_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "program.h"

#define PG_PROGRAM_CAPSULE "pygrad.program"

/* The callee that calls `object.numbers(operands)`, which gives a tuple of floats. Whoever keeps it holds it. */
pg_callee pg_callee_of(PyObject *object);

/* The object behind a callee, borrowed. */
PyObject *pg_object_of_callee(const pg_callee *callee);

#endif
