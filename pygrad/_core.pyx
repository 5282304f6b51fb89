# cython: language_level=3, boundscheck=False, wraparound=False
"""The extension module: what Python sees of csrc. This file is its table of contents.

The node, its arithmetic and its walks are C (csrc); here they are given Python names. No mathematics here.
"""

from cpython.buffer cimport (
    PyBUF_C_CONTIGUOUS, PyBUF_WRITABLE, PyBuffer_Release, PyObject_GetBuffer
)
from cpython.object cimport PyObject
from cpython.mem cimport PyMem_Free, PyMem_Malloc
from cpython.pycapsule cimport PyCapsule_New
from cpython.ref cimport Py_DECREF, Py_INCREF

from threading import Thread

from numpy import ascontiguousarray, empty, int32, ndarray, uint32

include "_core_c.pxi"          # declarations of csrc
include "_core_table.pxi"      # the op table as Python objects
include "_core_modes.pxi"      # no_grad, anomaly and tracing of the running thread
include "_core_capture.pxi"    # captures of what is to be replayed
include "_core_graph.pxi"      # gradients, sums, ops of the user's
include "_core_copy.pxi"       # copy, deepcopy, pickle
include "_core_program.pxi"    # programs
include "_core_rolled.pxi"     # loops, conditions and calls in programs
include "_core_replay.pxi"     # the call of a compiled function
include "_core_lanes.pxi"      # programs over many lanes

pg_core_init()
pg_loops_find()

Value = <object><PyObject *>&pg_value_type
