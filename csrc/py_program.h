/* py_program.h: from recorded nodes to a program. Owns that one step; capture itself is py_capture.h's, what a program is
 * program.h's. */
#ifndef PG_PY_PROGRAM_H
#define PG_PY_PROGRAM_H

#include "py_node.h"

#include "program.h"

/* What a capture leaves: all lists, of Values unless said otherwise. */
typedef struct {
    PyObject *inputs;  /* leaves */
    PyObject *outputs; /* Values and floats */
    PyObject *guards;  /* tuples (Value, expected float, kind) */
    PyObject *inner;   /* a set of the leaves that were made on the way: constants */
    uint64_t since;    /* position of the first node of the capture: older ones are not looked behind */
} pg_captured;

/* The program that computes outputs and guards from the inputs. What they were computed from besides, leaves and older
 * nodes, becomes further inputs, which are appended to the list `outside`. NULL with an error. */
pg_program *pg_program_of_nodes(const pg_captured *captured, PyObject *outside);

#endif
