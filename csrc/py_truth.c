/* py_truth.c: comparisons and logic as nodes. See py_truth.h. */
#include "py_truth.h"

#include "py_capture.h"
#include "py_record.h"
#include "scalar.h"

static PyObject *record(int op, const pg_arg *args, int count) {
    return pg_record(op, pg_forward(op, args[0].data, count > 1 ? args[1].data : 0, 0), args, count);
}

/* An int is compared as a float here, and only where it is one: 1, or -1 with an error. */
static int load_int(PyObject *object, pg_arg *arg, int row) {
    arg->node = NULL;
    arg->data = PyLong_AsDouble(object);
    if (arg->data == -1.0 && PyErr_Occurred()) {
        if (!PyErr_ExceptionMatches(PyExc_OverflowError)) return -1;
        PyErr_Clear();
        arg->data = 0.0; /* which a number that large does not equal */
    }
    PyObject *number = PyFloat_FromDouble(arg->data);
    int equal = number ? PyObject_RichCompareBool(number, object, Py_EQ) : -1;
    Py_XDECREF(number);
    if (equal == 0)
        PyErr_Format(pg_hooks.capture_error,
                     "%s: the int %R is no float exactly, and a replay compares floats; write the float that is meant",
                     pg_ops[row].name, object);
    return equal == 1 ? 1 : -1;
}

PyObject *pg_truth_compare(PyObject *left, PyObject *right, int op) {
    static const int rows[] = {[Py_LT] = PG_OP_less,    [Py_LE] = PG_OP_less_equal, [Py_EQ] = PG_OP_equal,
                               [Py_NE] = PG_OP_not_equal, [Py_GT] = PG_OP_greater,  [Py_GE] = PG_OP_greater_equal};
    pg_arg args[2];
    int loaded = pg_load(left, &args[0]);
    if (loaded > 0) loaded = PyLong_Check(right) ? load_int(right, &args[1], rows[op]) : pg_load(right, &args[1]);
    if (loaded < 0) return NULL;
    if (loaded == 0) Py_RETURN_NOTIMPLEMENTED;
    return record(rows[op], args, 2);
}

/* ---- & | ^ ~ ---- */

static int load_truth(PyObject *object, pg_arg *arg) {
    if (PG_IS_VALUE(object) ? !pg_is_truth((pg_node *)object) : !PyBool_Check(object)) return 0;
    return pg_load(object, arg);
}

static PyObject *combine(int op, PyObject *left, PyObject *right) {
    pg_arg args[2];
    if (load_truth(left, &args[0]) == 0 || load_truth(right, &args[1]) == 0) Py_RETURN_NOTIMPLEMENTED;
    return record(op, args, 2);
}

PyObject *pg_truth_and(PyObject *left, PyObject *right) { return combine(PG_OP_logical_and, left, right); }
PyObject *pg_truth_or(PyObject *left, PyObject *right) { return combine(PG_OP_logical_or, left, right); }
PyObject *pg_truth_xor(PyObject *left, PyObject *right) { return combine(PG_OP_not_equal, left, right); }

PyObject *pg_truth_invert(PyObject *self) {
    pg_arg arg;
    if (load_truth(self, &arg) > 0) return record(PG_OP_logical_not, &arg, 1);
    return PyErr_Format(PyExc_TypeError, "bad operand type for unary ~: '%.200s'", Py_TYPE(self)->tp_name);
}
