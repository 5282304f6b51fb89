/* py_call.c: see py_call.h. */
#include "py_call.h"

static void hold(void *self, int more) {
    PyGILState_STATE state = PyGILState_Ensure();
    if (more > 0) Py_INCREF((PyObject *)self);
    else Py_DECREF((PyObject *)self);
    PyGILState_Release(state);
}

/* The numbers of a tuple of floats: 0, or -1 with an error. */
static int take(PyObject *found, double *outputs) {
    if (!PyTuple_Check(found)) {
        PyErr_SetString(PyExc_TypeError, "numbers of an op must give a tuple of floats");
        return -1;
    }
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(found); i++) {
        outputs[i] = PyFloat_AsDouble(PyTuple_GET_ITEM(found, i));
        if (outputs[i] == -1.0 && PyErr_Occurred()) return -1;
    }
    return 0;
}

static int call(void *self, const double *inputs, double *outputs, size_t input_count, size_t output_count) {
    PyGILState_STATE state = PyGILState_Ensure();
    PyObject *operands = PyTuple_New((Py_ssize_t)input_count), *found = NULL;
    int failed = !operands;
    for (size_t i = 0; i < input_count && !failed; i++) {
        PyObject *number = PyFloat_FromDouble(inputs[i]);
        failed = !number;
        if (number) PyTuple_SET_ITEM(operands, (Py_ssize_t)i, number);
    }
    if (!failed) failed = !(found = PyObject_CallMethod((PyObject *)self, "numbers", "(O)", operands));
    if (!failed && PyTuple_Check(found) && PyTuple_GET_SIZE(found) != (Py_ssize_t)output_count) {
        PyErr_Format(PyExc_TypeError, "numbers of an op must give %zu floats", output_count);
        failed = 1;
    }
    if (!failed) failed = take(found, outputs) < 0;
    Py_XDECREF(operands);
    Py_XDECREF(found);
    PyGILState_Release(state);
    return failed ? -1 : 0;
}

pg_callee pg_callee_of(PyObject *object) { return (pg_callee){.run = call, .hold = hold, .self = object}; }

PyObject *pg_object_of_callee(const pg_callee *callee) { return callee->run == call ? callee->self : NULL; }
