/* py_value.c: the Python type `Value`: number slots, comparisons, conversions, attributes, the constructor.
 * Owns how a node looks from Python; recording is py_record's, the walk py_graph's. What need not be fast (copy,
 * pickle, format, NumPy's protocol) is written in Python and put on the type by pg_type_add. */
#include "py_value.h"

#include <math.h>
#include <string.h>

#include "formula.h"
#include "py_capture.h"
#include "py_gradient.h"
#include "py_graph.h"
#include "py_order.h"
#include "py_op.h"
#include "py_record.h"
#include "py_truth.h"
#include "scalar.h"

/* ---- number slots ---- */

#define LOAD(object, arg)                                     \
    do {                                                      \
        int loaded = pg_load(object, &arg);                   \
        if (PG_UNLIKELY(loaded <= 0)) {                       \
            if (loaded < 0) return NULL;                      \
            Py_RETURN_NOTIMPLEMENTED;                         \
        }                                                     \
    } while (0)

/* Whatever the operands are. Not in line, so that the fast ways save no registers for it. */
static PG_NOINLINE PyObject *binary(int op, PyObject *left, PyObject *right) {
    pg_arg args[2];
    LOAD(left, args[0]);
    LOAD(right, args[1]);
    return pg_record(op, pg_forward(op, args[0].data, args[1].data, 0), args, 2);
}

#define BINARY_SLOT(name, value)                                                                    \
    static PyObject *value_##name(PyObject *left, PyObject *right) {                                \
        pg_node *p = (pg_node *)left, *q = (pg_node *)right;                                        \
        if (PG_LIKELY(PG_IS_VALUE(left))) {                                                         \
            if (PG_LIKELY(PG_IS_VALUE(right))) {                                                    \
                double a = p->data, b = q->data;                                                    \
                if (pg_is_usual(p) && pg_is_usual(q)) return pg_record_nn(PG_OP_##name, value, p, q); \
            } else if (PG_LIKELY(PyFloat_CheckExact(right))) {                                      \
                double a = p->data, b = PyFloat_AS_DOUBLE(right);                                   \
                if (pg_is_usual(p)) return pg_record_nc(PG_OP_##name, value, p, b);                 \
            }                                                                                       \
        } else if (PG_LIKELY(PyFloat_CheckExact(left))) {                                           \
            double a = PyFloat_AS_DOUBLE(left), b = q->data;                                        \
            if (pg_is_usual(q)) return pg_record_cn(PG_OP_##name, value, a, q);                     \
        }                                                                                           \
        return binary(PG_OP_##name, left, right);                                                   \
    }

BINARY_SLOT(add, a + b)
BINARY_SLOT(sub, a - b)
BINARY_SLOT(mul, a * b)
BINARY_SLOT(div, a / b)

static PyObject *value_floordiv(PyObject *left, PyObject *right) { return binary(PG_OP_floordiv, left, right); }
static PyObject *value_mod(PyObject *left, PyObject *right) { return binary(PG_OP_mod, left, right); }

static PyObject *value_pow(PyObject *base, PyObject *exponent, PyObject *modulus) {
    if (modulus != Py_None)
        return PyErr_Format(PyExc_TypeError, "pow: a Value takes no modulus, found %R", modulus);
    if (PG_IS_VALUE(base) && PyLong_CheckExact(exponent) && pg_is_usual((pg_node *)base)) {
        double a = ((pg_node *)base)->data, b = PyLong_AsDouble(exponent);
        if (b == -1.0 && PyErr_Occurred()) return NULL;
        return pg_record_nc(PG_OP_pow, pg_power_inline(a, b), (pg_node *)base, b);
    }
    return binary(PG_OP_pow, base, exponent);
}

#define UNARY_SLOT(name, value)                                                                 \
    static PyObject *value_##name(PyObject *self) {                                             \
        pg_node *node = (pg_node *)self;                                                        \
        double a = node->data;                                                                  \
        if (pg_is_usual(node)) return pg_record_n(PG_OP_##name, value, node);                   \
        pg_arg arg = {node->flags & PG_REQUIRES_GRAD ? node : NULL, a};                         \
        return pg_record(PG_OP_##name, value, &arg, 1);                                         \
    }

UNARY_SLOT(neg, -a)
UNARY_SLOT(pos, a)
UNARY_SLOT(abs, fabs(a))

static PyObject *value_divmod(PyObject *left, PyObject *right) {
    PyObject *quotient = value_floordiv(left, right);
    if (!quotient || quotient == Py_NotImplemented) return quotient;
    PyObject *rest = value_mod(left, right);
    PyObject *pair = rest ? PyTuple_Pack(2, quotient, rest) : NULL;
    Py_DECREF(quotient);
    Py_XDECREF(rest);
    return pair;
}

static int value_bool(PyObject *self) {
    pg_node *node = (pg_node *)self;
    return PG_UNLIKELY(pg_is_captured(node)) ? pg_capture_truth(node) : node->data != 0;
}

static PyObject *value_int(PyObject *self) {
    if (PG_UNLIKELY(pg_is_captured((pg_node *)self)) && pg_capture_guard((pg_node *)self, PG_OP_trunc, "int") < 0)
        return NULL;
    PyObject *number = PyFloat_FromDouble(((pg_node *)self)->data);
    PyObject *integer = number ? PyNumber_Long(number) : NULL;
    Py_XDECREF(number);
    return integer;
}

/* Within a transform a float would leave the graph, and its gradient would be silently zero. */
static PyObject *value_float(PyObject *self) {
    pg_node *node = (pg_node *)self;
    if (PG_UNLIKELY(pg_is_captured(node)) &&
        pg_capture_refuse(node, "float(x)", PG_WOULD_REUSE,
                          "use pygrad.math in place of math, and the Value itself in place of a float") < 0)
        return NULL;
    if (PG_UNLIKELY(pg_thread.tracing && (node->flags & PG_REQUIRES_GRAD))) {
        PyErr_SetString(PyExc_TypeError,
                        "float(): a Value that is being differentiated would leave the graph as a constant; use "
                        "pygrad.math in place of math, or stop_gradient(x) where a constant is meant");
        return NULL;
    }
    return PyFloat_FromDouble(node->data);
}

/* ---- comparisons: of data, recorded during a capture; the hash is of identity ---- */

static PyObject *value_richcompare(PyObject *self, PyObject *other, int op) {
    pg_arg b;
    double a = ((pg_node *)self)->data;
    if (pg_is_capturing() && (pg_is_captured((pg_node *)self) || (PG_IS_VALUE(other) && pg_is_captured((pg_node *)other))))
        return pg_truth_compare(self, other, op);
    if (PyLong_Check(other)) { /* as a float does it: exactly, and whatever its size */
        PyObject *number = PyFloat_FromDouble(a), *truth = number ? PyObject_RichCompare(number, other, op) : NULL;
        Py_XDECREF(number);
        return truth;
    }
    LOAD(other, b);
    Py_RETURN_RICHCOMPARE(a, b.data, op);
}

static Py_hash_t value_hash(PyObject *self) {
    uintptr_t address = (uintptr_t)self;
    Py_hash_t hash = (Py_hash_t)((address >> 4) | (address << (8 * sizeof address - 4)));
    return hash == -1 ? -2 : hash;
}

/* ---- text: of the node alone, whatever the depth of its graph ---- */

static PyObject *value_repr(PyObject *self) {
    pg_node *node = (pg_node *)self;
    char *data = PyOS_double_to_string(node->data, 'r', 0, Py_DTSF_ADD_DOT_0, NULL);
    char *grad = data ? PyOS_double_to_string(node->grad, 'r', 0, Py_DTSF_ADD_DOT_0, NULL) : NULL;
    PyObject *text = grad ? PyUnicode_FromFormat("Value(data=%s, grad=%s)", data, grad) : NULL;
    PyMem_Free(data);
    PyMem_Free(grad);
    return text;
}

/* ---- attributes ---- */

static PyObject *get_data(PyObject *self, void *closure) {
    (void)closure;
    pg_node *node = (pg_node *)self;
    if (PG_UNLIKELY(pg_is_captured(node)) &&
        pg_capture_refuse(node, "x.data", PG_WOULD_REUSE,
                          "compute with the Value itself, or return it as a further result") < 0)
        return NULL;
    return PyFloat_FromDouble(node->data);
}

/* A real number for an attribute: 0, or -1 with an error that names it. */
static int load_number(PyObject *object, const char *name, double *number) {
    pg_arg arg;
    if (!object) {
        PyErr_Format(PyExc_AttributeError, "%s: cannot be deleted", name);
        return -1;
    }
    int loaded = PG_IS_VALUE(object) ? 0 : pg_load(object, &arg);
    if (loaded == 0)
        PyErr_Format(PyExc_TypeError, "%s: must be a real number, found %R of type %.100s%s", name, object,
                     Py_TYPE(object)->tp_name, PG_IS_VALUE(object) ? "; take its .data" : "");
    if (loaded <= 0) return -1;
    *number = arg.data;
    return 0;
}

static int set_data(PyObject *self, PyObject *value, void *closure) {
    (void)closure;
    pg_node *node = (pg_node *)self;
    if (pg_is_capturing())
        return pg_capture_error("x.data = ...", PG_WOULD_NOT_REPEAT, "make a new Value, or return the number and write it "
                                "outside");
    if (load_number(value, "Value.data", &node->data) < 0) return -1;
    node->version++;
    pg_writes++;
    pg_note_write();
    return 0;
}

#define BY_A_TRANSFORM "use pygrad.grad or value_and_grad here, or differentiate the whole"

/* During a capture, what has to do with a node's gradient: 0, or -1 with an error. */
static int refuse_gradient(pg_node *node, const char *what, const char *why) {
    return PG_UNLIKELY(pg_is_captured(node)) ? pg_capture_refuse(node, what, why, BY_A_TRANSFORM) : 0;
}

/* After backward(create_graph=True) the gradient of a leaf is a node, as long as nothing else was added to it. */
static PyObject *get_grad(PyObject *self, void *closure) {
    (void)closure;
    pg_node *node = (pg_node *)self;
    if (refuse_gradient(node, "x.grad", PG_WOULD_REUSE) < 0) return NULL;
    PyObject *gradient = PG_UNLIKELY(node->flags & PG_NOTED) ? pg_leaf_gradient(node) : NULL;
    if (gradient && memcmp(&((pg_node *)gradient)->data, &node->grad, sizeof(double)) == 0) {
        Py_INCREF(gradient);
        return gradient;
    }
    return PyFloat_FromDouble(node->grad);
}

static void forget_gradient(pg_node *node) {
    PyObject *gradient = node->flags & PG_NOTED ? pg_leaf_gradient(node) : NULL;
    if (!gradient) return;
    node->in[0].node = NULL;
    if (!node->in[1].node) node->flags &= (uint8_t)~PG_NOTED;
    Py_DECREF(gradient);
}

static int set_grad(PyObject *self, PyObject *value, void *closure) {
    (void)closure;
    pg_node *node = (pg_node *)self;
    double number = 0.0;
    if (refuse_gradient(node, "x.grad = ...", PG_WOULD_NOT_REPEAT) < 0) return -1;
    if (value != Py_None && load_number(value, "Value.grad", &number) < 0) return -1;
    forget_gradient(node);
    node->grad = number;
    pg_writes++;
    return 0;
}

PyObject *pg_value_operands(PyObject *self) {
    pg_node *node = (pg_node *)self;
    Py_ssize_t count = pg_operand_count(node);
    PyObject *operands = PyTuple_New(count);
    for (Py_ssize_t i = 0; operands && i < count; i++) {
        PyObject *operand = (PyObject *)pg_operand_node(node, i);
        if (operand) Py_INCREF(operand);
        else operand = PyFloat_FromDouble(pg_operand_data(node, i));
        if (!operand) Py_CLEAR(operands);
        else PyTuple_SET_ITEM(operands, i, operand);
    }
    return operands;
}

static PyObject *get_parents(PyObject *self, void *closure) {
    (void)closure;
    pg_node *node = (pg_node *)self;
    Py_ssize_t count = pg_operand_count(node), nodes = 0;
    for (Py_ssize_t i = 0; i < count; i++) nodes += pg_operand_node(node, i) != NULL;
    PyObject *parents = PyTuple_New(nodes);
    for (Py_ssize_t i = 0, at = 0; parents && i < count; i++) {
        PyObject *parent = (PyObject *)pg_operand_node(node, i);
        if (!parent) continue;
        Py_INCREF(parent);
        PyTuple_SET_ITEM(parents, at++, parent);
    }
    return parents;
}

static PyObject *get_op(PyObject *self, void *closure) {
    (void)closure;
    return pg_op_label((pg_node *)self);
}

static PyObject *get_requires_grad(PyObject *self, void *closure) {
    (void)closure;
    return PyBool_FromLong(((pg_node *)self)->flags & PG_REQUIRES_GRAD);
}

/* What was a constant may not become an input, nor an input a constant: but for leaves of the capture's own. */
static int set_requires_grad_captured(pg_node *node, int truth) {
    static const char instead[] = "use stop_gradient(x) for a constant, and set it outside";
    if (truth) return pg_capture_error("x.requires_grad = True", PG_WOULD_NOT_REPEAT, instead);
    return pg_capture_refuse(node, "x.requires_grad = False", PG_WOULD_NOT_REPEAT, instead);
}

static int set_requires_grad(PyObject *self, PyObject *value, void *closure) {
    (void)closure;
    pg_node *node = (pg_node *)self;
    int truth = value ? PyObject_IsTrue(value) : -1;
    if (!value) PyErr_SetString(PyExc_AttributeError, "Value.requires_grad: cannot be deleted");
    if (truth < 0) return -1;
    if (!truth && !pg_is_leaf(node)) {
        PyErr_Format(pg_hooks.graph_error,
                     "Value.requires_grad: only a leaf can be frozen, this is a node of op '%s'; use detach()",
                     pg_op_name(node));
        return -1;
    }
    if (pg_is_capturing() && truth != (node->flags & PG_REQUIRES_GRAD) && set_requires_grad_captured(node, truth) < 0)
        return -1;
    pg_writes++;
    node->flags = (uint8_t)(truth ? node->flags | PG_REQUIRES_GRAD : node->flags & ~PG_REQUIRES_GRAD);
    return 0;
}

static PyObject *step_method(PyObject *self, PyObject *ignored) {
    (void)ignored;
    if (refuse_gradient((pg_node *)self, "x.backward_fn()", PG_WOULD_NOT_REPEAT) < 0) return NULL;
    if (pg_step((pg_node *)self) < 0) return NULL;
    Py_RETURN_NONE;
}

static PyMethodDef step_def = {"backward_fn", step_method, METH_NOARGS,
                               "Adds this node's contributions to the gradients of its parents."};

static PyObject *get_backward_fn(PyObject *self, void *closure) {
    (void)closure;
    pg_node *node = (pg_node *)self;
    if (pg_is_leaf(node)) Py_RETURN_NONE;
    if (node->op == PG_OP_closure && (node->flags & PG_MANY)) {
        PyObject *step = node->in[0].many->closure ? node->in[0].many->closure : Py_None;
        Py_INCREF(step);
        return step;
    }
    return PyCFunction_New(&step_def, self);
}

static int set_backward_fn(PyObject *self, PyObject *value, void *closure) {
    (void)closure;
    pg_node *node = (pg_node *)self;
    if (value && value != Py_None && !PyCallable_Check(value)) {
        PyErr_Format(PyExc_TypeError, "Value.backward_fn: must be callable or None, found %R of type %.100s", value,
                     Py_TYPE(value)->tp_name);
        return -1;
    }
    if (!(node->flags & PG_REQUIRES_GRAD)) return 0; /* under no_grad: nothing will call it */
    if (node->op != PG_OP_closure || !(node->flags & PG_MANY)) {
        PyErr_Format(pg_hooks.graph_error,
                     "Value.backward_fn: can be set on a node made by Value(data, parents), this is a node of op '%s' with "
                     "a gradient of its own; make one with out = Value(data, parents)", pg_op_name(node));
        return -1;
    }
    pg_writes++;
    PyObject *old = node->in[0].many->closure;
    node->in[0].many->closure = value == Py_None ? NULL : value;
    Py_XINCREF(node->in[0].many->closure);
    Py_XDECREF(old);
    return 0;
}

static PyGetSetDef value_getset[] = {
    {"data", get_data, set_data, "The number, a float.", NULL},
    {"grad", get_grad, set_grad, "The gradient of the last backward, a float; of a leaf the sum over calls.", NULL},
    {"parents", get_parents, NULL, "Tuple of the Values that this one was computed from; constants are left out.", NULL},
    {"op", get_op, NULL, "Name of the op that made this Value, 'leaf' where none did.", NULL},
    {"requires_grad", get_requires_grad, set_requires_grad, "Whether backward computes a gradient for it.", NULL},
    {"backward_fn", get_backward_fn, set_backward_fn,
     "Callable that adds this node's contributions to the gradients of its parents; assignable on a node made with "
     "Value(data, parents).", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

/* ---- methods ---- */

static PyObject *value_backward(PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *keywords) {
    static const char *const names[] = {"retain_graph", "create_graph"};
    int flags[] = {1, 0};
    double grad = 1.0;
    PyObject *seed = count ? args[0] : NULL;
    if (count > 1) return PyErr_Format(PyExc_TypeError, "backward: takes one positional argument, found %zd", count);
    for (Py_ssize_t k = 0; keywords && k < PyTuple_GET_SIZE(keywords); k++) {
        PyObject *name = PyTuple_GET_ITEM(keywords, k), *value = args[count + k];
        int known = 0;
        if (!seed && PyUnicode_CompareWithASCIIString(name, "grad") == 0) {
            seed = value;
            known = 1;
        }
        for (int i = 0; i < 2 && !known; i++) {
            if (PyUnicode_CompareWithASCIIString(name, names[i]) != 0) continue;
            known = 1;
            if ((flags[i] = PyObject_IsTrue(value)) < 0) return NULL;
        }
        if (!known) return PyErr_Format(PyExc_TypeError, "backward: unexpected keyword '%U'", name);
    }
    if (seed && load_number(seed, "backward: grad", &grad) < 0) return NULL;
    if (refuse_gradient((pg_node *)self, "x.backward()", PG_WOULD_NOT_REPEAT) < 0) return NULL;
    pg_writes++;
    if (flags[1]) return pg_backward_graph((pg_node *)self, grad, flags[0]);
    if (pg_backward((pg_node *)self, grad, flags[0]) < 0) return NULL;
    Py_RETURN_NONE;
}

static PyObject *value_detach(PyObject *self, PyObject *ignored) {
    (void)ignored;
    pg_node *node = (pg_node *)self;
    return PG_UNLIKELY(pg_is_captured(node)) ? pg_capture_freeze(node) : (PyObject *)pg_leaf(node->data, 0);
}

static PyObject *value_zero_grad(PyObject *self, PyObject *ignored) {
    (void)ignored;
    if (refuse_gradient((pg_node *)self, "x.zero_grad()", PG_WOULD_NOT_REPEAT) < 0) return NULL;
    forget_gradient((pg_node *)self);
    ((pg_node *)self)->grad = 0.0;
    pg_writes++;
    Py_RETURN_NONE;
}

static PyObject *value_sizeof(PyObject *self, PyObject *ignored) {
    (void)ignored;
    pg_node *node = (pg_node *)self;
    Py_ssize_t size = node->flags & PG_COLLECTED ? sizeof(pg_collected_node) : sizeof(pg_node);
    if (node->flags & PG_MANY) size += sizeof(pg_many) + node->in[0].many->count * ((Py_ssize_t)sizeof(pg_operand) + 1);
    return PyLong_FromSsize_t(size);
}

static PyMethodDef value_methods[] = {
    {"__sizeof__", value_sizeof, METH_NOARGS, "Bytes of the node, its list of operands included."},
    {"backward", (PyCFunction)(void (*)(void))value_backward, METH_FASTCALL | METH_KEYWORDS,
     "backward($self, grad=1.0, *, retain_graph=True, create_graph=False)\n--\n\n"
     "Adds to .grad of every leaf the derivative of this Value with respect to it, times grad.\n\n"
     "Leaves accumulate over calls; interior nodes hold the gradient of this call. With retain_graph=False the graph is\n"
     "released on the way. With create_graph=True the gradients of leaves are Values, to be differentiated again.\n\n"
     "Raises GraphError (a RuntimeError) where nothing requires a gradient, where the graph has been released, and where\n"
     "a number that the gradient needs was written since.\n\n"
     ">>> from pygrad import Value\n>>> x = Value(3.0)\n>>> (x * x).backward()\n>>> x.grad\n6.0"},
    {"detach", value_detach, METH_NOARGS,
     "detach($self)\n--\n\nA new leaf with the same number, which does not require a gradient."},
    {"zero_grad", value_zero_grad, METH_NOARGS, "zero_grad($self)\n--\n\nSets .grad to 0.0."},
    {NULL, NULL, 0, NULL},
};

/* ---- the constructor ---- */

static PyObject *value_make(PyObject *data, PyObject *parents, int requires_grad) {
    double number;
    if (load_number(data, "Value: data", &number) < 0) return NULL;
    Py_ssize_t count = parents ? PyTuple_GET_SIZE(parents) : 0;
    if (count == 0) return (PyObject *)pg_leaf(number, requires_grad);
    pg_arg *args = PyMem_New(pg_arg, count);
    if (!args) return PyErr_NoMemory();
    PyObject *result = NULL;
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *parent = PyTuple_GET_ITEM(parents, i);
        if (!PG_IS_VALUE(parent)) {
            PyErr_Format(PyExc_TypeError, "Value: parents must be Values, found %R of type %.100s at %zd", parent,
                         Py_TYPE(parent)->tp_name, i);
            goto done;
        }
        pg_load(parent, &args[i]);
        if (args[i].node && pg_is_capturing() &&
            pg_capture_refuse(args[i].node, "Value(data, parents)", "a replay can neither compute data nor call backward_fn",
                              "make the op with pygrad.custom_op") < 0)
            goto done;
        if (!requires_grad) args[i].node = NULL;
    }
    result = pg_record_many(PG_OP_closure, number, args, count, NULL);
done:
    PyMem_Free(args);
    return result;
}

static PyObject *value_new(PyTypeObject *type, PyObject *args, PyObject *keywords) {
    (void)type;
    static char *names[] = {"data", "parents", "requires_grad", NULL};
    PyObject *data, *parents = NULL, *tuple = NULL;
    int requires_grad = 1;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "O|O$p:Value", names, &data, &parents, &requires_grad)) return NULL;
    if (parents && !(tuple = PySequence_Tuple(parents))) return NULL;
    PyObject *result = value_make(data, tuple, requires_grad);
    Py_XDECREF(tuple);
    return result;
}

static PyObject *value_vectorcall(PyObject *type, PyObject *const *args, size_t nargsf, PyObject *names) {
    Py_ssize_t count = PyVectorcall_NARGS(nargsf);
    if (PG_LIKELY(count == 1 && !names)) return value_make(args[0], NULL, 1);
    PyObject *tuple = PyTuple_New(count), *keywords = NULL, *result = NULL;
    for (Py_ssize_t i = 0; tuple && i < count; i++) {
        Py_INCREF(args[i]);
        PyTuple_SET_ITEM(tuple, i, args[i]);
    }
    if (!tuple || (names && !(keywords = PyDict_New()))) goto done;
    for (Py_ssize_t i = 0; names && i < PyTuple_GET_SIZE(names); i++)
        if (PyDict_SetItem(keywords, PyTuple_GET_ITEM(names, i), args[count + i]) < 0) goto done;
    result = value_new((PyTypeObject *)type, tuple, keywords);
done:
    Py_XDECREF(tuple);
    Py_XDECREF(keywords);
    return result;
}

static PyNumberMethods value_number = {
    .nb_add = value_add, .nb_subtract = value_sub, .nb_multiply = value_mul, .nb_true_divide = value_div,
    .nb_floor_divide = value_floordiv, .nb_remainder = value_mod, .nb_divmod = value_divmod, .nb_power = value_pow,
    .nb_and = pg_truth_and, .nb_or = pg_truth_or, .nb_xor = pg_truth_xor, .nb_invert = pg_truth_invert,
    .nb_negative = value_neg, .nb_positive = value_pos, .nb_absolute = value_abs,
    .nb_bool = value_bool, .nb_int = value_int, .nb_float = value_float,
};

PyTypeObject pg_value_type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "pygrad.Value",
    .tp_doc = "Value(data, parents=(), *, requires_grad=True)\n--\n\n"
              "A number that remembers how it was computed: one node of the graph.\n\n"
              "data is a real number (float64 is kept). With parents, a tuple of Values, the node stands for a computation\n"
              "of the user's, whose gradient is assigned to backward_fn. Comparisons compare data; the hash is of identity.\n\n"
              "Raises TypeError where data is no real number, OverflowError where it is too large for a float.\n\n"
              ">>> from pygrad import Value\n>>> x, w, b = Value(2.0), Value(-0.5), Value(0.3)\n"
              ">>> y = (x * w + b).tanh()\n>>> y.backward()\n>>> print(f\"{w.grad:.4f}\")\n1.2695",
    .tp_basicsize = sizeof(pg_collected_node), /* what the collector's allocator takes; others are smaller */
    .tp_dealloc = pg_node_dealloc,
    .tp_repr = value_repr,
    .tp_as_number = &value_number,
    .tp_hash = value_hash,
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .tp_traverse = pg_node_traverse,
    .tp_clear = pg_node_clear,
    .tp_is_gc = pg_node_is_collected,
    .tp_richcompare = value_richcompare,
    .tp_methods = value_methods,
    .tp_getset = value_getset,
    .tp_new = value_new,
    .tp_vectorcall = value_vectorcall,
};

/* ---- set-up ---- */

void pg_set_hooks(PyObject *real, PyObject *place, PyObject *arrays, PyObject *anomaly, PyObject *graph_error,
                  PyObject *capture_error) {
    PyObject *given[] = {real, place, arrays, anomaly, graph_error, capture_error};
    PyObject **hooks[] = {&pg_hooks.real,    &pg_hooks.place,       &pg_hooks.arrays,
                          &pg_hooks.anomaly, &pg_hooks.graph_error, &pg_hooks.capture_error};
    for (int i = 0; i < 6; i++) {
        Py_INCREF(given[i]);
        Py_XDECREF(*hooks[i]);
        *hooks[i] = given[i];
    }
}

int pg_type_add(const char *name, PyObject *attribute) {
    if (PyDict_SetItemString(pg_value_type.tp_dict, name, attribute) < 0) return -1;
    PyType_Modified(&pg_value_type);
    return 0;
}

int pg_core_init(void) {
    pg_ops_init();
    int unread = pg_formulas_init();
    if (unread) {
        PyErr_Format(PyExc_ImportError, "pygrad: the formula of op '%s' is not understood",
                     unread > 0 ? pg_ops[unread].name : "?");
        return -1;
    }
    for (int op = 0; op < PG_OP_COUNT; op++) {
        pg_arity[op] = (uint8_t)pg_ops[op].arity;
        pg_saved[op] = (uint8_t)pg_ops[op].saved;
    }
    pg_saved[PG_OP_custom] = PG_SAVES_A | PG_SAVES_Y;
    pg_saved[PG_OP_call] = PG_SAVES_A;
    pg_arity[PG_OP_result] = 2; /* in a node the second operand is its number */
    return PyType_Ready(&pg_op_type) < 0 || PyType_Ready(&pg_value_type) < 0 ? -1 : 0;
}
