/* py_op.c: a row of the table as a Python callable. `exp(x)` and `x.exp()` are the same object: it binds like a
 * function, and its type says so, so that the interpreter calls a method without making a bound one.
 * Floats give a float, a Value among the operands gives a Value, arrays go to the hook. */
#include "py_op.h"

#include <stddef.h>
#include <string.h>

#include "py_record.h"
#include "scalar.h"

typedef struct {
    PyObject_HEAD
    vectorcallfunc call;
    int op;
    const char *name;
    PyObject *doc; /* the attributes set from Python; NULL until then */
} pg_op_object;

static PyObject *op_many_error(pg_op_object *self, Py_ssize_t found) {
    const pg_op_info *info = &pg_ops[self->op];
    PyErr_Format(PyExc_TypeError, "%s: needs %d%s operand%s, found %zd", self->name, info->required,
                 info->required < info->arity ? " or more" : "", info->arity == 1 ? "" : "s", found);
    return NULL;
}

/* An operand that is no real number: an array goes to the hook, anything else is an error. */
static PyObject *op_other(pg_op_object *self, PyObject *const *values, int given) {
    PyObject *operands = PyTuple_New(given);
    if (!operands) return NULL;
    for (int i = 0; i < given; i++) {
        Py_INCREF(values[i]);
        PyTuple_SET_ITEM(operands, i, values[i]);
    }
    PyObject *result = PyObject_CallFunctionObjArgs(pg_hooks.arrays, (PyObject *)self, operands, NULL);
    Py_DECREF(operands);
    if (result != Py_NotImplemented) return result;
    Py_DECREF(result);
    for (int i = 0; i < given; i++) {
        pg_arg arg;
        int loaded = pg_load(values[i], &arg);
        if (loaded < 0) return NULL;
        if (loaded == 0)
            return PyErr_Format(PyExc_TypeError, "%s: operand %d must be a Value or a real number, found %R of type %.100s",
                                self->name, i, values[i], Py_TYPE(values[i])->tp_name);
    }
    return PyErr_Format(PyExc_TypeError, "%s: cannot be applied to these operands", self->name);
}

/* Keywords: those of the trailing operands, and out=None, which NumPy passes along. */
static int op_keywords(pg_op_object *self, PyObject *const *args, Py_ssize_t positional, PyObject *names,
                       PyObject *values[PG_MAX_ARITY]) {
    const pg_op_info *info = &pg_ops[self->op];
    for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(names); k++) {
        PyObject *name = PyTuple_GET_ITEM(names, k), *value = args[positional + k];
        int at = info->arity;
        for (int i = 0; i < info->arity; i++)
            if (info->keyword[i] && PyUnicode_CompareWithASCIIString(name, info->keyword[i]) == 0) at = i;
        if (at < info->arity && !values[at]) {
            values[at] = value;
        } else if (at < info->arity) {
            PyErr_Format(PyExc_TypeError, "%s: operand '%U' is given twice", self->name, name);
            return -1;
        } else if (PyUnicode_CompareWithASCIIString(name, "out") != 0 || value != Py_None) {
            PyErr_Format(PyExc_TypeError, "%s: unknown keyword '%U'", self->name, name);
            return -1;
        }
    }
    return 0;
}

static PyObject *op_call(PyObject *callable, PyObject *const *args, size_t nargsf, PyObject *names) {
    pg_op_object *self = (pg_op_object *)callable;
    const pg_op_info *info = &pg_ops[self->op];
    Py_ssize_t given = PyVectorcall_NARGS(nargsf);
    pg_arg loaded[PG_MAX_ARITY] = {{NULL, 0.0}};
    if (PG_LIKELY(given == 1 && info->arity == 1 && !names)) {
        if (PG_LIKELY(PG_IS_VALUE(args[0]))) {
            pg_node *node = (pg_node *)args[0];
            double y = pg_forward(self->op, node->data, 0, 0);
            if (pg_is_usual(node)) return pg_record_n(self->op, y, node);
            pg_load(args[0], &loaded[0]);
            return pg_record(self->op, y, loaded, 1);
        }
        if (PyFloat_CheckExact(args[0]))
            return PyFloat_FromDouble(pg_forward(self->op, PyFloat_AS_DOUBLE(args[0]), 0, 0));
    }
    PyObject *values[PG_MAX_ARITY] = {NULL};
    if (given > info->arity) return op_many_error(self, given);
    for (Py_ssize_t i = 0; i < given; i++) values[i] = args[i];
    if (names && op_keywords(self, args, given, names, values) < 0) return NULL;
    int any_value = 0;
    for (int i = 0; i < info->arity; i++) {
        if ((!values[i] || values[i] == Py_None) && info->keyword[i]) { /* None is NumPy's way to leave a bound out */
            loaded[i].data = info->fallback[i];
            continue;
        }
        if (!values[i]) return op_many_error(self, given);
        int known = pg_load(values[i], &loaded[i]);
        if (known < 0) return NULL;
        if (known == 0) {
            int last = info->arity;
            while (last > 0 && !values[last - 1]) last--;
            for (int k = 0; k < last; k++)
                if (!values[k]) values[k] = Py_None;
            return op_other(self, values, last);
        }
        any_value |= PG_IS_VALUE(values[i]);
    }
    double y = pg_forward(self->op, loaded[0].data, loaded[1].data, loaded[2].data);
    if (!any_value) return PyFloat_FromDouble(y);
    return pg_record(self->op, y, loaded, info->arity);
}

static PyObject *op_get(PyObject *self, PyObject *object, PyObject *type) {
    (void)type;
    if (!object || object == Py_None) {
        Py_INCREF(self);
        return self;
    }
    return PyMethod_New(self, object);
}

static PyObject *op_repr(PyObject *self) { return PyUnicode_FromFormat("<op %s>", ((pg_op_object *)self)->name); }

static void op_dealloc(PyObject *self) {
    Py_XDECREF(((pg_op_object *)self)->doc);
    PyObject_Free(self);
}

static PyObject *op_name(PyObject *self, void *closure) {
    (void)closure;
    return PyUnicode_FromString(((pg_op_object *)self)->name);
}

static PyObject *op_row(PyObject *self, void *closure) {
    (void)closure;
    return PyUnicode_FromString(pg_ops[((pg_op_object *)self)->op].name);
}

static PyObject *op_doc(PyObject *self, void *closure) {
    (void)closure;
    PyObject *doc = ((pg_op_object *)self)->doc ? ((pg_op_object *)self)->doc : Py_None;
    Py_INCREF(doc);
    return doc;
}

static int op_set_doc(PyObject *self, PyObject *value, void *closure) {
    (void)closure;
    Py_XINCREF(value);
    PyObject *old = ((pg_op_object *)self)->doc;
    ((pg_op_object *)self)->doc = value;
    Py_XDECREF(old);
    return 0;
}

static PyObject *op_module(PyObject *self, void *closure) {
    (void)self;
    (void)closure;
    return PyUnicode_FromString("pygrad");
}

static PyObject *op_reduce(PyObject *self, PyObject *ignored) {
    (void)ignored;
    return op_name(self, NULL); /* pickle looks the name up in __module__ */
}

static PyGetSetDef op_getset[] = {
    {"__name__", op_name, NULL, NULL, NULL},
    {"__qualname__", op_name, NULL, NULL, NULL},
    {"__module__", op_module, NULL, NULL, NULL},
    {"__doc__", op_doc, op_set_doc, NULL, NULL},
    {"row", op_row, NULL, "name of the op's row in the table", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMethodDef op_methods[] = {
    {"__reduce__", op_reduce, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

PyTypeObject pg_op_type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "pygrad._core.Op",
    .tp_basicsize = sizeof(pg_op_object),
    .tp_dealloc = op_dealloc,
    .tp_vectorcall_offset = offsetof(pg_op_object, call),
    .tp_call = PyVectorcall_Call,
    .tp_repr = op_repr,
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_METHOD_DESCRIPTOR,
    .tp_getset = op_getset,
    .tp_methods = op_methods,
    .tp_descr_get = op_get,
};

PyObject *pg_op_new(int op, const char *name) {
    pg_op_object *self = PyObject_New(pg_op_object, &pg_op_type);
    if (!self) return NULL;
    self->call = op_call;
    self->op = op;
    self->name = name;
    self->doc = NULL;
    return (PyObject *)self;
}
