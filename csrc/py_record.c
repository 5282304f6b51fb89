/* py_record.c: the general way from operands to a node, and the n-ary ops. See py_record.h for the fast way. */
#include "py_record.h"

#include "py_capture.h"
#include "py_graph.h"
#include "py_order.h"
#include "scalar.h"

pg_hooks_table pg_hooks;

int pg_load_slow(PyObject *object, pg_arg *arg) {
    arg->node = NULL;
    if (PyLong_Check(object)) {
        arg->data = PyLong_AsDouble(object);
        return arg->data == -1.0 && PyErr_Occurred() ? -1 : 1;
    }
    if (PyFloat_Check(object)) {
        arg->data = PyFloat_AS_DOUBLE(object);
        return 1;
    }
    if (object == Py_None || PyUnicode_Check(object) || PyList_Check(object) || PyTuple_Check(object)) return 0;
    PyObject *number = PyObject_CallOneArg(pg_hooks.real, object);
    if (!number) return -1;
    int known = PyFloat_Check(number);
    if (known) arg->data = PyFloat_AS_DOUBLE(number);
    Py_DECREF(number);
    return known;
}

pg_node *pg_leaf(double data, int requires_grad) {
    pg_node *node = pg_alloc_leaf();
    if (!node) return NULL;
    pg_node_set(node, PG_OP_leaf, data, PG_AMONG_LEAVES | PG_CONSTANTS | (requires_grad ? PG_REQUIRES_GRAD : 0), 0);
    node->in[0].node = node->in[1].node = NULL;
    node->in[2].run = pg_last_run;
    if (requires_grad && pg_is_capturing() && pg_capture_note_leaf(node) < 0) Py_CLEAR(node);
    return node;
}

/* In detect_anomaly: raises where `y` is the first number that is not finite, and notes where the node was made. */
static int watch(int op, double y, const pg_arg *args, Py_ssize_t count, PyObject *closure, PyObject **place) {
    *place = PyObject_CallNoArgs(pg_hooks.place);
    if (!*place) return -1;
    if (isfinite(y)) return 0;
    const pg_node *whole = op == PG_OP_result ? args[0].node : NULL; /* that it is a result of */
    if (whole) closure = whole->in[0].many->closure;
    PyObject *operands = whole ? pg_operand_numbers(whole) : PyTuple_New(count);
    for (Py_ssize_t i = 0; operands && !whole && i < count; i++) {
        PyObject *number = PyFloat_FromDouble(args[i].data);
        if (!number) Py_CLEAR(operands);
        else PyTuple_SET_ITEM(operands, i, number);
    }
    PyObject *label = closure ? PyObject_GetAttrString(closure, "__name__") : PyUnicode_FromString(pg_ops[op].name);
    PyObject *result = operands && label ? PyObject_CallFunction(pg_hooks.anomaly, "OOdOs", label, operands, y, *place,
                                                                 "forward") : NULL;
    Py_XDECREF(label);
    Py_XDECREF(result);
    Py_XDECREF(operands);
    Py_CLEAR(*place);
    return -1;
}

/* The node's fields but for its operands; NULL with an error, or a leaf (with *recorded 0) where nothing is recorded. */
static pg_node *node_begin(int op, double y, const pg_arg *args, Py_ssize_t count, PyObject *closure, int *recorded,
                           PyObject **place) {
    unsigned parents = 0, seen = 0;
    *place = NULL;
    for (Py_ssize_t i = 0; i < count; i++) {
        if (!args[i].node) continue;
        parents |= args[i].node->flags;
        seen += args[i].node->version;
    }
    int looked_at = op != PG_OP_closure && op != PG_OP_frozen; /* the others make no number of their own */
    if (pg_thread.anomaly && looked_at && watch(op, y, args, count, closure, place) < 0) return NULL;
    *recorded = (parents & PG_REQUIRES_GRAD) && (!pg_thread.no_grad || pg_thread.capture);
    if (!*recorded) {
        Py_CLEAR(*place);
        return pg_leaf(y, 0);
    }
    int collected = (parents & PG_COLLECTED) || closure || op == PG_OP_closure;
    pg_node *node = collected ? pg_node_alloc_collected() : pg_alloc_op();
    if (!node) Py_CLEAR(*place);
    else pg_node_set(node, op, y, PG_REQUIRES_GRAD | PG_CONSTANTS | (collected ? PG_COLLECTED : 0), seen);
    return node;
}

static PyObject *node_end(pg_node *node, PyObject *place) {
    if (node->flags & PG_COLLECTED) pg_node_track(node);
    if (place) {
        int failed = pg_place_note(node, place);
        Py_DECREF(place);
        if (failed) Py_CLEAR(node);
    }
    if (PG_LIKELY(!pg_thread.no_grad) || !node) return (PyObject *)node;
    PyObject *frozen = pg_capture_freeze(node);
    Py_DECREF(node);
    return frozen;
}

PyObject *pg_record(int op, double y, const pg_arg *args, int count) {
    int recorded;
    PyObject *place;
    pg_node *node = node_begin(op, y, args, count, NULL, &recorded, &place);
    if (!node || !recorded) return (PyObject *)node;
    for (int i = 0; i < count; i++) {
        if (args[i].node) {
            Py_INCREF(args[i].node);
            node->in[i].node = args[i].node;
            node->flags &= (uint8_t)~(PG_CONST0 << i);
        } else {
            node->in[i].constant = args[i].data;
        }
    }
    return node_end(node, place);
}

PyObject *pg_record_many(int op, double y, const pg_arg *args, Py_ssize_t count, PyObject *closure) {
    int recorded;
    PyObject *place;
    pg_many *many = pg_many_new(count);
    pg_node *node = many ? node_begin(op, y, args, count, closure, &recorded, &place) : NULL;
    if (!node || !recorded) {
        PyMem_Free(many);
        Py_XDECREF(closure);
        return (PyObject *)node;
    }
    many->closure = closure;
    for (Py_ssize_t i = 0; i < count; i++) {
        pg_many_is_node(many)[i] = args[i].node != NULL;
        if (args[i].node) {
            many->seen += args[i].node->version;
            Py_INCREF(args[i].node);
            many->operand[i].node = args[i].node;
        } else {
            many->operand[i].constant = args[i].data;
        }
    }
    node->flags |= PG_MANY;
    node->in[0].many = many;
    return node_end(node, place);
}

/* The operand `object` of an n-ary op, loaded; an error names the op and the position. */
static int load_at(PyObject *object, pg_arg *arg, const char *op, Py_ssize_t position) {
    int loaded = pg_load(object, arg);
    if (loaded == 0)
        PyErr_Format(PyExc_TypeError, "%s: element %zd must be a Value or a real number, found %R of type %.100s", op,
                     position, object, Py_TYPE(object)->tp_name);
    return loaded > 0 ? 0 : -1;
}

/* Without a Value among the operands, the result of sum and dot is a float. */
static PyObject *finish_many(int op, double y, const pg_arg *args, Py_ssize_t count, int any_value) {
    return any_value ? pg_record_many(op, y, args, count, NULL) : PyFloat_FromDouble(y);
}

/* A tuple of what `object` yields: it owns the elements while hooks run code of the user's. */
static PyObject *elements(PyObject *object, const char *op) {
    if (!Py_TYPE(object)->tp_iter && !PySequence_Check(object)) {
        PyErr_Format(PyExc_TypeError, "%s: needs an iterable of Values and real numbers, found %R of type %.100s", op,
                     object, Py_TYPE(object)->tp_name);
        return NULL;
    }
    return PySequence_Tuple(object);
}

static pg_arg *args_new(Py_ssize_t count) {
    pg_arg *args = PyMem_New(pg_arg, count ? count : 1);
    if (!args) PyErr_NoMemory();
    return args;
}

PyObject *pg_sum(PyObject *values) {
    PyObject *items = elements(values, "sum");
    if (!items) return NULL;
    Py_ssize_t count = PyTuple_GET_SIZE(items);
    pg_arg *args = args_new(count);
    int any_value = 0, failed = !args;
    double y = 0.0;
    for (Py_ssize_t i = 0; !failed && i < count; i++) {
        PyObject *item = PyTuple_GET_ITEM(items, i);
        failed = load_at(item, &args[i], "sum", i) < 0;
        if (failed) break;
        any_value |= PG_IS_VALUE(item);
        y += args[i].data;
    }
    PyObject *result = failed ? NULL : finish_many(PG_OP_sum, y, args, count, any_value);
    PyMem_Free(args);
    Py_DECREF(items);
    return result;
}

PyObject *pg_dot(PyObject *left, PyObject *right) {
    PyObject *lefts = elements(left, "dot"), *rights = lefts ? elements(right, "dot") : NULL, *result = NULL;
    pg_arg *args = NULL;
    if (!rights) goto done;
    Py_ssize_t count = PyTuple_GET_SIZE(lefts);
    if (count != PyTuple_GET_SIZE(rights)) {
        PyErr_Format(PyExc_ValueError, "dot: operands must be equally long, found lengths %zd and %zd", count,
                     PyTuple_GET_SIZE(rights));
        goto done;
    }
    if (!(args = args_new(2 * count))) goto done;
    int any_value = 0;
    double y = 0.0;
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *a = PyTuple_GET_ITEM(lefts, i), *b = PyTuple_GET_ITEM(rights, i);
        any_value |= PG_IS_VALUE(a) | PG_IS_VALUE(b);
        if (load_at(a, &args[2 * i], "dot", i) < 0 || load_at(b, &args[2 * i + 1], "dot", i) < 0) goto done;
        y += args[2 * i].data * args[2 * i + 1].data;
    }
    result = finish_many(PG_OP_dot, y, args, 2 * count, any_value);
done:
    PyMem_Free(args);
    Py_XDECREF(lefts);
    Py_XDECREF(rights);
    return result;
}
