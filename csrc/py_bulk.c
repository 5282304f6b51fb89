/* py_bulk.c: loops over many Values for the transforms. See py_bulk.h. */
#include "py_bulk.h"

#include <string.h>

#include "py_graph.h"
#include "py_record.h"

PyObject *pg_lift_floats(PyObject *numbers) {
    Py_ssize_t count = PyList_GET_SIZE(numbers);
    PyObject *leaves = PyList_New(count); /* which may collect garbage, and run code of the user's: look again */
    if (count != PyList_GET_SIZE(numbers)) Py_CLEAR(leaves);
    for (Py_ssize_t i = 0; i < count && leaves; i++)
        if (!PyFloat_CheckExact(PyList_GET_ITEM(numbers, i))) Py_CLEAR(leaves);
    if (!leaves && !PyErr_Occurred()) Py_RETURN_NONE;
    for (Py_ssize_t i = 0; i < count && leaves; i++) {
        pg_node *leaf = pg_leaf(PyFloat_AS_DOUBLE(PyList_GET_ITEM(numbers, i)), 1);
        if (!leaf) Py_CLEAR(leaves);
        else PyList_SET_ITEM(leaves, i, (PyObject *)leaf);
    }
    return leaves;
}

pg_node **pg_nodes_of(PyObject *values) {
    Py_ssize_t count = PyList_GET_SIZE(values);
    pg_node **nodes = PyMem_New(pg_node *, count ? count : 1);
    if (!nodes) return (pg_node **)PyErr_NoMemory();
    for (Py_ssize_t i = 0; i < count; i++) {
        nodes[i] = (pg_node *)PyList_GET_ITEM(values, i);
        if (PG_IS_VALUE((PyObject *)nodes[i])) continue;
        PyErr_Format(PyExc_TypeError, "gradients: targets must be Values, found %R", (PyObject *)nodes[i]);
        PyMem_Free(nodes);
        return NULL;
    }
    return nodes;
}

PyObject *pg_lift_buffer(PyObject *buffer) {
    Py_buffer view;
    if (PyObject_GetBuffer(buffer, &view, PyBUF_C_CONTIGUOUS) < 0) return NULL;
    Py_ssize_t count = view.len / (Py_ssize_t)sizeof(double);
    PyObject *leaves = PyList_New(count);
    for (Py_ssize_t i = 0; i < count && leaves; i++) {
        pg_node *leaf = pg_leaf(((const double *)view.buf)[i], 1);
        if (!leaf) Py_CLEAR(leaves);
        else PyList_SET_ITEM(leaves, i, (PyObject *)leaf);
    }
    PyBuffer_Release(&view);
    return leaves;
}

/* Fills in the gradients: 0, 1 where the root was computed from other leaves too, -1 with an error. */
static int fill(PyObject *root, PyObject *targets, double grad, double *gradients) {
    size_t count = (size_t)PyList_GET_SIZE(targets);
    int boxed = PyList_CheckExact(root) && PyList_GET_SIZE(root) == 1, foreign = 0, failed = 0;
    PyObject *y = boxed ? PyList_GET_ITEM(root, 0) : root;
    if (!PG_IS_VALUE(y)) {
        memset(gradients, 0, count * sizeof *gradients);
        return 0;
    }
    pg_node **nodes = pg_nodes_of(targets), *node = (pg_node *)y;
    if (!nodes) return -1;
    Py_INCREF(targets); /* a signal handler may run */
    Py_INCREF(boxed ? Py_None : y);
    if (boxed) PyList_SET_ITEM(root, 0, Py_None);
    failed = pg_gradients(&node, grad, nodes, count, gradients, &foreign);
    if (boxed && node) failed |= PyList_SetItem(root, 0, (PyObject *)node);
    else Py_XDECREF(node);
    Py_DECREF(targets);
    PyMem_Free(nodes);
    return failed ? -1 : foreign;
}

PyObject *pg_gradients_list(PyObject *root, PyObject *targets, double grad, int others) {
    Py_ssize_t count = PyList_GET_SIZE(targets);
    double *gradients = PyMem_New(double, count ? count : 1);
    if (!gradients) return PyErr_NoMemory();
    int foreign = fill(root, targets, grad, gradients);
    PyObject *result = NULL;
    if (foreign > 0 && !others) {
        result = Py_None;
        Py_INCREF(result);
    } else if (foreign >= 0) {
        result = PyList_New(count);
        for (Py_ssize_t i = 0; i < count && result; i++) {
            PyObject *number = PyFloat_FromDouble(gradients[i]);
            if (!number) Py_CLEAR(result);
            else PyList_SET_ITEM(result, i, number);
        }
    }
    PyMem_Free(gradients);
    return result;
}

PyObject *pg_gradients_buffer(PyObject *root, PyObject *targets, double grad, int others, PyObject *buffer) {
    Py_buffer view;
    if (PyObject_GetBuffer(buffer, &view, PyBUF_C_CONTIGUOUS | PyBUF_WRITABLE) < 0) return NULL;
    int foreign = -1;
    if (view.len == PyList_GET_SIZE(targets) * (Py_ssize_t)sizeof(double))
        foreign = fill(root, targets, grad, view.buf);
    else PyErr_SetString(PyExc_ValueError, "gradients: the buffer must hold one double a target");
    PyBuffer_Release(&view);
    if (foreign < 0) return NULL;
    PyObject *result = foreign && !others ? Py_None : buffer;
    Py_INCREF(result);
    return result;
}
