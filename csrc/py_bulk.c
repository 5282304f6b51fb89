/* py_bulk.c: loops over many Values for the transforms. See py_bulk.h. */
#include "py_bulk.h"

#include <string.h>

#include "py_graph.h"
#include "py_order.h"
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

/* Fills in the gradients, and the first run of other leaves: 0, or -1 with an error. */
static int fill(PyObject *root, PyObject *targets, double grad, double *gradients, uint64_t *oldest) {
    size_t count = (size_t)PyList_GET_SIZE(targets);
    int boxed = PyList_CheckExact(root) && PyList_GET_SIZE(root) == 1, failed = 0;
    PyObject *y = boxed ? PyList_GET_ITEM(root, 0) : root;
    *oldest = PG_NO_RUN;
    if (!PG_IS_VALUE(y)) {
        memset(gradients, 0, count * sizeof *gradients);
        return 0;
    }
    pg_node **nodes = pg_nodes_of(targets), *node = (pg_node *)y;
    if (!nodes) return -1;
    Py_INCREF(targets); /* a signal handler may run */
    Py_INCREF(boxed ? Py_None : y);
    if (boxed) PyList_SET_ITEM(root, 0, Py_None);
    failed = pg_gradients(&node, grad, nodes, count, gradients, oldest);
    if (boxed && node) failed |= PyList_SetItem(root, 0, (PyObject *)node);
    else Py_XDECREF(node);
    Py_DECREF(targets);
    PyMem_Free(nodes);
    return failed ? -1 : 0;
}

PyObject *pg_gradients_list(PyObject *root, PyObject *targets, double grad, uint64_t run) {
    Py_ssize_t count = PyList_GET_SIZE(targets);
    double *gradients = PyMem_New(double, count ? count : 1);
    if (!gradients) return PyErr_NoMemory();
    uint64_t oldest;
    int failed = fill(root, targets, grad, gradients, &oldest);
    PyObject *result = NULL;
    if (!failed && oldest < run) {
        result = Py_None;
        Py_INCREF(result);
    } else if (!failed) {
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

PyObject *pg_gradients_buffer(PyObject *root, PyObject *targets, double grad, uint64_t run, PyObject *buffer) {
    Py_buffer view;
    if (PyObject_GetBuffer(buffer, &view, PyBUF_C_CONTIGUOUS | PyBUF_WRITABLE) < 0) return NULL;
    uint64_t oldest;
    int failed = -1;
    if (view.len == PyList_GET_SIZE(targets) * (Py_ssize_t)sizeof(double))
        failed = fill(root, targets, grad, view.buf, &oldest);
    else PyErr_SetString(PyExc_ValueError, "gradients: the buffer must hold one double a target");
    PyBuffer_Release(&view);
    if (failed) return NULL;
    PyObject *result = oldest < run ? Py_None : buffer;
    Py_INCREF(result);
    return result;
}

/* The node of a Value that requires a gradient, else NULL. */
static pg_node *node_of(PyObject *number) {
    return PG_IS_VALUE(number) && ((pg_node *)number)->flags & PG_REQUIRES_GRAD ? (pg_node *)number : NULL;
}

void pg_end_run(PyObject *inputs) {
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(inputs); i++) {
        pg_node *node = (pg_node *)PyList_GET_ITEM(inputs, i);
        if (PG_IS_VALUE((PyObject *)node) && pg_is_leaf(node)) node->in[2].run = PG_NO_RUN;
    }
}

PyObject *pg_settled(PyObject *numbers, uint64_t run, PyObject *inputs) {
    pg_order order;
    Py_ssize_t count = PyList_GET_SIZE(numbers), roots = 0;
    pg_node **nodes = PyMem_New(pg_node *, count ? count : 1), *node;
    if (!nodes) return PyErr_NoMemory();
    for (Py_ssize_t i = 0; i < count; i++)
        if ((node = node_of(PyList_GET_ITEM(numbers, i)))) nodes[roots++] = node;
    PyObject *result = NULL;
    int any = 0;
    if (pg_order_mark_outside(&order, nodes, (size_t)roots, run) == 0) result = PyList_New(count);
    for (Py_ssize_t i = 0; i < count && result; i++) {
        PyObject *item = PyList_GET_ITEM(numbers, i);
        int outside = (node = node_of(item)) && (pg_is_leaf(node) ? node->in[2].run < run : pg_is_needed(&order, node));
        any |= outside;
        if (PG_IS_VALUE(item) && !outside) item = PyFloat_FromDouble(((pg_node *)item)->data);
        else Py_INCREF(item);
        if (!item) Py_CLEAR(result);
        else PyList_SET_ITEM(result, i, item);
    }
    if (any) pg_end_run(inputs);
    pg_order_free(&order);
    PyMem_Free(nodes);
    return result;
}
