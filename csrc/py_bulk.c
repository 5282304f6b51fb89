/* py_bulk.c: loops over many Values for the transforms. See py_bulk.h. */
#include "py_bulk.h"

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

PyObject *pg_gradients_list(PyObject *root, PyObject *targets, double grad, int others) {
    Py_ssize_t count = PyList_GET_SIZE(targets);
    int foreign = 0, failed = 0;
    pg_node **nodes = pg_nodes_of(targets);
    double *gradients = nodes ? PyMem_Calloc(count ? count : 1, sizeof(double)) : NULL;
    PyObject *result = NULL;
    if (!gradients) {
        if (nodes) PyErr_NoMemory();
        goto done;
    }
    Py_INCREF(targets); /* a signal handler may run */
    if (PG_IS_VALUE(root)) failed = pg_gradients((pg_node *)root, grad, nodes, (size_t)count, gradients, &foreign);
    Py_DECREF(targets);
    if (failed) goto done;
    if (foreign && !others) {
        result = Py_None;
        Py_INCREF(result);
        goto done;
    }
    result = PyList_New(count);
    for (Py_ssize_t i = 0; i < count && result; i++) {
        PyObject *number = PyFloat_FromDouble(gradients[i]);
        if (!number) Py_CLEAR(result);
        else PyList_SET_ITEM(result, i, number);
    }
done:
    PyMem_Free(gradients);
    PyMem_Free(nodes);
    return result;
}
