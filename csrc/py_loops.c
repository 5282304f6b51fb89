/* py_loops.c: see py_loops.h. */
#include "py_loops.h"

#define NPY_NO_DEPRECATED_API NPY_1_7_API_VERSION
#define NO_IMPORT_ARRAY
#define NO_IMPORT_UFUNC
#include <numpy/arrayobject.h>
#include <numpy/ufuncobject.h>

_Static_assert(sizeof(npy_intp) == sizeof(ptrdiff_t), "the signature of NumPy's loops");

pg_loop pg_numpy_loops[PG_OP_TABLE_END];

/* Rows for which NumPy is faster than a loop over libm, and as close to the truth as tests/contract.py promises. */
static const struct { int op; const char *ufunc; } served[] = {
    {PG_OP_exp, "exp"}, {PG_OP_exp2, "exp2"}, {PG_OP_expm1, "expm1"}, {PG_OP_log, "log"}, {PG_OP_log2, "log2"},
    {PG_OP_log10, "log10"}, {PG_OP_log1p, "log1p"}, {PG_OP_tan, "tan"},
    {PG_OP_asin, "arcsin"}, {PG_OP_acos, "arccos"}, {PG_OP_atan, "arctan"}, {PG_OP_atan2, "arctan2"},
    {PG_OP_sinh, "sinh"}, {PG_OP_cosh, "cosh"}, {PG_OP_tanh, "tanh"}, {PG_OP_asinh, "arcsinh"},
    {PG_OP_acosh, "arccosh"}, {PG_OP_atanh, "arctanh"}, {PG_OP_pow, "power"},
};

/* The loop of a ufunc for doubles alone, or none. */
static pg_loop loop_of(const PyUFuncObject *ufunc, int arity) {
    pg_loop none = {NULL, NULL};
    if (ufunc->nin != arity || ufunc->nout != 1) return none;
    for (int i = 0; i < ufunc->ntypes; i++) {
        const char *types = ufunc->types + i * ufunc->nargs;
        int doubles = 1;
        for (int k = 0; k < ufunc->nargs; k++) doubles &= types[k] == NPY_DOUBLE;
        if (doubles && ufunc->functions[i])
            return (pg_loop){(pg_loop_function)ufunc->functions[i], ufunc->data ? (void *)ufunc->data[i] : NULL};
    }
    return none;
}

int pg_loops_find(void) {
    PyObject *numpy = PyImport_ImportModule("numpy");
    PyObject *type = numpy ? PyObject_GetAttrString(numpy, "ufunc") : NULL;
    for (size_t i = 0; type && i < sizeof served / sizeof *served; i++) {
        PyObject *ufunc = PyObject_GetAttrString(numpy, served[i].ufunc); /* kept, as its loops are pointed at */
        if (!ufunc) break;
        if ((PyObject *)Py_TYPE(ufunc) == type)
            pg_numpy_loops[served[i].op] = loop_of((const PyUFuncObject *)ufunc, pg_ops[served[i].op].arity);
    }
    Py_XDECREF(type);
    Py_XDECREF(numpy);
    return PyErr_Occurred() ? -1 : 0;
}
