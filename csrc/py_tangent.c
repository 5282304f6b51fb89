/* py_tangent.c: forward mode. Tangents instead of adjoints, from the oldest node to the youngest, by the same formulas
 * with g = 1. See py_gradient.h. */
#include "py_gradient.h"

#include "py_capture.h"
#include "py_graph.h"
#include "py_record.h"

/* The same for any number that a replay may find. */
static PyObject *tangent_term_captured(PyObject *const *parts, PyObject *const *swapped) {
    if (!PG_IS_VALUE(parts[0]) && isfinite(pg_number_of(parts[0]))) return pg_apply(PG_OP_zmul, parts, 2);
    PyObject *zero = PyFloat_FromDouble(0.0), *choice[3] = {NULL}, *result = NULL;
    PyObject *compared[] = {parts[1], zero};
    if (zero) choice[0] = pg_apply(PG_OP_equal, compared, 2);
    if (choice[0]) choice[1] = pg_apply(PG_OP_zmul, swapped, 2);
    if (choice[1]) choice[2] = pg_apply(PG_OP_zmul, parts, 2);
    if (choice[2]) result = pg_apply(PG_OP_where, choice, 3);
    for (int i = 0; i < 3; i++) Py_XDECREF(choice[i]);
    Py_XDECREF(zero);
    return result;
}

/* tangent * partial, zero where either is zero: a partial of zero is a branch not taken (reverse mode's g of zero). */
static PyObject *tangent_term(PyObject *tangent, PyObject *partial) {
    PyObject *parts[] = {tangent, partial}, *swapped[] = {partial, tangent};
    if (pg_is_capturing() && PG_IS_VALUE(partial)) return tangent_term_captured(parts, swapped);
    return pg_apply(PG_OP_zmul, pg_number_of(partial) == 0 ? swapped : parts, 2);
}

/* *total += tangent * partial, where a partial of NULL is 1: 0, or -1 with an error. */
static int add_term(PyObject **total, PyObject *tangent, PyObject *partial) {
    PyObject *term = partial ? tangent_term(tangent, partial) : (Py_INCREF(tangent), tangent);
    if (!term) return -1;
    if (!*total) {
        *total = term;
        return 0;
    }
    PyObject *terms[] = {*total, term}, *sum = pg_apply(PG_OP_add, terms, 2);
    Py_DECREF(term);
    Py_SETREF(*total, sum);
    return sum ? 0 : -1;
}

static int tangent_of_row(pg_adjoints *all, pg_node *node, PyObject *one, PyObject **total) {
    PyObject *letters[PG_LETTERS];
    double numbers[PG_LETTERS];
    int failed = pg_letters_make(letters, numbers, node, one);
    for (int i = 0; i < pg_ops[node->op].arity && !failed; i++) {
        PyObject **tangent = PG_IS_VALUE(letters[i]) ? pg_adjoint_of(all, (pg_node *)letters[i]) : NULL;
        if (!tangent || !*tangent) continue;
        const pg_formula *formula = &pg_gradient_formulas[node->op][i];
        PyObject *partial = pg_evaluate(formula, formula->root, letters, numbers);
        failed = !partial || add_term(total, *tangent, partial) < 0;
        Py_XDECREF(partial);
    }
    pg_letters_free(letters);
    return failed ? -1 : 0;
}

static int tangent_of_many(pg_adjoints *all, pg_node *node, PyObject *one, PyObject **total) {
    PyObject *operands = pg_operands_tuple(node, 0), *partials = NULL;
    int failed = !operands;
    if (!failed && node->op == PG_OP_custom) failed = !(partials = pg_custom_partials(node, one, operands));
    if (!failed && node->op == PG_OP_dot) failed = !(partials = pg_operands_tuple(node, 1));
    for (Py_ssize_t i = 0; !failed && i < PyTuple_GET_SIZE(operands); i++) {
        PyObject *operand = PyTuple_GET_ITEM(operands, i);
        PyObject **tangent = PG_IS_VALUE(operand) ? pg_adjoint_of(all, (pg_node *)operand) : NULL;
        if (tangent && *tangent) failed = add_term(total, *tangent, partials ? PyTuple_GET_ITEM(partials, i) : NULL) < 0;
    }
    Py_XDECREF(operands);
    Py_XDECREF(partials);
    return failed ? -1 : 0;
}

/* Of a program on operands the tangents of all that it gives, as a list. */
static PyObject *tangents_of_call(pg_adjoints *all, pg_node *node) {
    PyObject *operands = pg_operands_tuple(node, 0), *along = operands ? PyList_New(0) : NULL, *result = NULL;
    int failed = !along;
    for (Py_ssize_t i = 0; !failed && i < PyTuple_GET_SIZE(operands); i++) {
        PyObject *operand = PyTuple_GET_ITEM(operands, i);
        PyObject **tangent = PG_IS_VALUE(operand) ? pg_adjoint_of(all, (pg_node *)operand) : NULL;
        failed = PyList_Append(along, tangent && *tangent ? *tangent : Py_None) < 0;
    }
    if (!failed) result = PyObject_CallMethod(node->in[0].many->closure, "tangents_graph", "OO", along, operands);
    Py_XDECREF(along);
    Py_XDECREF(operands);
    return result;
}

static PyObject *tangent_of_result(pg_adjoints *all, pg_node *node) {
    PyObject **tangents = pg_adjoint_of(all, node->in[0].node);
    if (!tangents || !*tangents) return PyFloat_FromDouble(0.0);
    return PySequence_GetItem(*tangents, (Py_ssize_t)node->in[1].constant);
}

/* The tangent of a node; NULL with an error. */
static PyObject *tangent_of(pg_adjoints *all, pg_node *node, PyObject *one) {
    PyObject *total = NULL;
    if (node->op == PG_OP_call) return tangents_of_call(all, node);
    if (node->op == PG_OP_result) return tangent_of_result(all, node);
    int failed = node->op == PG_OP_released ? pg_released_error(node) : pg_check_fresh(node);
    if (!failed && node->op == PG_OP_closure) {
        PyErr_SetString(pg_hooks.graph_error,
                        "jvp: a backward_fn adds to the gradients of parents, so it cannot be run forwards; make the op "
                        "with pygrad.custom_op");
        failed = -1;
    }
    if (!failed) failed = node->op < PG_OP_TABLE_END ? tangent_of_row(all, node, one, &total)
                                                     : tangent_of_many(all, node, one, &total);
    if (failed) Py_CLEAR(total);
    else if (!total) total = PyFloat_FromDouble(0.0);
    return total;
}

static PyObject *zeros(Py_ssize_t count) {
    PyObject *result = PyList_New(count);
    for (Py_ssize_t i = 0; result && i < count; i++) {
        PyObject *zero = PyFloat_FromDouble(0.0);
        if (!zero) Py_CLEAR(result);
        else PyList_SET_ITEM(result, i, zero);
    }
    return result;
}

/* A node over all outputs, so that one sort meets them; NULL where none is a Value that requires a gradient. */
static PyObject *join(PyObject *outputs) {
    Py_ssize_t count = PyList_GET_SIZE(outputs);
    pg_arg *args = PyMem_New(pg_arg, count ? count : 1);
    if (!args) return PyErr_NoMemory();
    int any = 0;
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *output = PyList_GET_ITEM(outputs, i);
        if (!PG_IS_VALUE(output)) args[i] = (pg_arg){NULL, 0.0};
        else pg_load(output, &args[i]);
        any |= args[i].node != NULL;
    }
    PyObject *root = any ? pg_record_many(PG_OP_sum, 0.0, args, count, NULL) : NULL;
    PyMem_Free(args);
    return root;
}

/* Fills in the tangents of the order's nodes: 0, or -1 with an error. */
static int walk(const pg_order *order, pg_adjoints *all, PyObject *one) {
    for (size_t i = 0; i < order->count; i++) {
        if ((i & PG_SIGNAL_MASK) == 0 && PyErr_CheckSignals() < 0) return -1;
        PyObject **tangent = pg_adjoint_of(all, order->nodes[i]);
        if (tangent && !(*tangent = tangent_of(all, order->nodes[i], one))) return -1;
    }
    return 0;
}

static PyObject *tangents_of_order(pg_order *order, PyObject *outputs, pg_node *const *targets, size_t count,
                                   PyObject *directions) {
    pg_adjoints all;
    PyObject *one = PyFloat_FromDouble(1.0), *result = NULL;
    int failed = pg_adjoints_make(&all, order, targets, count) < 0 || !one;
    for (size_t i = 0; i < count && !failed; i++) {
        PyObject *direction = PyList_GET_ITEM(directions, (Py_ssize_t)i);
        Py_INCREF(direction);
        all.objects[order->count + i] = direction;
    }
    if (!failed) failed = walk(order, &all, one) < 0;
    if (!failed) result = zeros(PyList_GET_SIZE(outputs));
    for (Py_ssize_t i = 0; result && i < PyList_GET_SIZE(outputs); i++) {
        PyObject *output = PyList_GET_ITEM(outputs, i);
        PyObject **tangent = PG_IS_VALUE(output) ? pg_adjoint_of(&all, (pg_node *)output) : NULL;
        if (!tangent || !*tangent) continue;
        Py_INCREF(*tangent);
        PyList_SetItem(result, i, *tangent);
    }
    pg_adjoints_free(&all);
    Py_XDECREF(one);
    return result;
}

PyObject *pg_tangents(PyObject *outputs, pg_node *const *targets, size_t count, PyObject *directions, int graph) {
    pg_order order;
    PyObject *root = join(outputs), *result = NULL;
    if (!root) return PyErr_Occurred() ? NULL : zeros(PyList_GET_SIZE(outputs));
    int no_grad = pg_thread.no_grad;
    if (pg_order_make(&order, (pg_node *)root, targets, count, 0) == 0) {
        if (!graph) pg_set_no_grad(1);
        result = tangents_of_order(&order, outputs, targets, count, directions);
        pg_set_no_grad(no_grad);
    }
    pg_order_free(&order);
    Py_DECREF(root);
    return result;
}
