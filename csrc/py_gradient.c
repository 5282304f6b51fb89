/* py_gradient.c: gradients that are nodes. The formulas that backward evaluates on numbers are evaluated on nodes here,
 * in the same order, so that the numbers are equal. See py_gradient.h. */
#include "py_gradient.h"

#include <math.h>
#include <string.h>

#include "formula.h"
#include "py_capture.h"
#include "py_graph.h"
#include "py_record.h"
#include "scalar.h"

/* ---- formulas on nodes: every object is a Value or a float ---- */

double pg_number_of(PyObject *object) {
    return PG_IS_VALUE(object) ? ((pg_node *)object)->data : PyFloat_AS_DOUBLE(object);
}

PyObject *pg_apply(int op, PyObject *const *operands, int count) {
    pg_arg args[PG_MAX_ARITY] = {{NULL, 0.0}};
    int any_value = 0;
    for (int i = 0; i < count; i++) {
        pg_load(operands[i], &args[i]);
        any_value |= args[i].node != NULL;
    }
    double y = pg_forward(op, args[0].data, args[1].data, args[2].data);
    return any_value ? pg_record(op, y, args, count) : PyFloat_FromDouble(y);
}

static const int comparison_rows[] = {
    [PG_LT] = PG_OP_less,          [PG_LE] = PG_OP_less_equal, [PG_GT] = PG_OP_greater,
    [PG_GE] = PG_OP_greater_equal, [PG_EQ] = PG_OP_equal,      [PG_NE] = PG_OP_not_equal,
};

/* A select of which both ways are recorded. */
static PyObject *evaluate_where(const pg_formula *formula, const pg_expression *e, PyObject *const *letters,
                                const double *numbers) {
    PyObject *parts[4] = {NULL}, *chosen[3], *result = NULL;
    int i = 0;
    while (i < 2 && (parts[i] = pg_evaluate(formula, e->operand[i], letters, numbers))) i++;
    PyObject *truth = i == 2 ? pg_apply(comparison_rows[e->what], parts, 2) : NULL;
    if (truth && !PG_IS_VALUE(truth)) { /* which way is known for every replay */
        result = pg_evaluate(formula, e->operand[PyFloat_AS_DOUBLE(truth) != 0 ? 2 : 3], letters, numbers);
    } else if (truth) {
        while (i < 4 && (parts[i] = pg_evaluate(formula, e->operand[i], letters, numbers))) i++;
        chosen[0] = truth, chosen[1] = parts[2], chosen[2] = parts[3];
        if (i == 4) result = pg_apply(PG_OP_where, chosen, 3);
    }
    for (i = 0; i < 4; i++) Py_XDECREF(parts[i]);
    Py_XDECREF(truth);
    return result;
}

PyObject *pg_evaluate(const pg_formula *formula, int at, PyObject *const *letters, const double *numbers) {
    const pg_expression *e = &formula->expressions[at];
    if (e->kind == PG_LETTER) {
        Py_INCREF(letters[e->what]);
        return letters[e->what];
    }
    if (e->kind == PG_NUMBER) return PyFloat_FromDouble(e->number);
    if (e->kind == PG_SELECT && pg_is_capturing()) return evaluate_where(formula, e, letters, numbers);
    if (e->kind == PG_SELECT) {
        double left = pg_formula_number(formula, e->operand[0], numbers);
        double right = pg_formula_number(formula, e->operand[1], numbers);
        return pg_evaluate(formula, e->operand[pg_compare(e->what, left, right) ? 2 : 3], letters, numbers);
    }
    PyObject *parts[PG_MAX_ARITY] = {NULL}, *result = NULL;
    int arity = pg_ops[e->what].arity, i = 0;
    while (i < arity && (parts[i] = pg_evaluate(formula, e->operand[i], letters, numbers))) i++;
    if (i == arity) result = pg_apply(e->what, parts, arity);
    for (i = 0; i < arity; i++) Py_XDECREF(parts[i]);
    return result;
}

/* ---- adjoints ---- */

int pg_adjoints_make(pg_adjoints *all, pg_order *order, pg_node *const *targets, size_t count) {
    size_t total = order->count + count;
    memset(all, 0, sizeof *all);
    all->objects = PyMem_Calloc(total ? total : 1, sizeof(PyObject *));
    if (!all->objects) return PyErr_NoMemory(), -1;
    all->count = total;
    pg_order_prune(order);
    for (size_t i = 0; i < order->count; i++)
        if (pg_is_needed(order, order->nodes[i]) && pg_map_set(&all->places, order->nodes[i], (int64_t)i) < 0) return -1;
    for (size_t i = 0; i < count; i++)
        if (pg_map_set(&all->places, targets[i], (int64_t)(order->count + i)) < 0) return -1;
    return 0;
}

void pg_adjoints_free(pg_adjoints *all) {
    for (size_t i = 0; all->objects && i < all->count; i++) Py_XDECREF(all->objects[i]);
    PyMem_Free(all->objects);
    pg_map_clear(&all->places);
}

PyObject **pg_adjoint_of(const pg_adjoints *all, const pg_node *node) {
    int64_t place = node ? pg_map_get(&all->places, node) : -1;
    return place < 0 ? NULL : &all->objects[place];
}

/* *adjoint += contribution. Steals the contribution; NULL is an error that is under way. */
static int accumulate(PyObject **adjoint, PyObject *contribution) {
    if (!contribution) return -1;
    double number = pg_number_of(contribution);
    int varies = pg_is_capturing() && PG_IS_VALUE(contribution); /* a replay may find a zero of the other sign */
    if (!*adjoint && !varies && !(number == 0 && signbit(number))) {
        *adjoint = contribution;
        return 0;
    }
    /* The first sum is 0.0 + contribution: -0.0 becomes 0.0. */
    PyObject *zero = *adjoint ? NULL : PyFloat_FromDouble(0.0);
    PyObject *terms[] = {*adjoint ? *adjoint : zero, contribution};
    PyObject *sum = terms[0] ? pg_apply(PG_OP_add, terms, 2) : NULL;
    Py_XDECREF(zero);
    Py_DECREF(contribution);
    if (!sum) return -1;
    Py_XSETREF(*adjoint, sum);
    return 0;
}

PyObject *pg_operand_object(const pg_node *node, Py_ssize_t i) {
    PyObject *operand = (PyObject *)pg_operand_node(node, i);
    if (!operand) return PyFloat_FromDouble(pg_operand_data(node, i));
    Py_INCREF(operand);
    return operand;
}

int pg_letters_make(PyObject *letters[PG_LETTERS], double numbers[PG_LETTERS], pg_node *node, PyObject *g) {
    int arity = pg_ops[node->op].arity, failed = 0;
    memset(letters, 0, PG_LETTERS * sizeof *letters);
    for (int i = 0; i < arity && !failed; i++) failed = !(letters[PG_A + i] = pg_operand_object(node, i));
    Py_INCREF(g);
    letters[PG_G] = g;
    Py_INCREF(node);
    letters[PG_Y] = (PyObject *)node;
    for (int i = 0; i < PG_LETTERS && !failed; i++) numbers[i] = letters[i] ? pg_number_of(letters[i]) : 0.0;
    return failed ? -1 : 0;
}

void pg_letters_free(PyObject *letters[PG_LETTERS]) {
    for (int i = 0; i < PG_LETTERS; i++) Py_XDECREF(letters[i]);
}

static int contribute_row(pg_adjoints *all, pg_node *node, PyObject *g) {
    PyObject *letters[PG_LETTERS];
    double numbers[PG_LETTERS];
    int failed = pg_letters_make(letters, numbers, node, g);
    for (int i = 0; i < pg_ops[node->op].arity && !failed; i++) {
        PyObject **adjoint = PG_IS_VALUE(letters[i]) ? pg_adjoint_of(all, (pg_node *)letters[i]) : NULL;
        const pg_formula *formula = &pg_gradient_formulas[node->op][i];
        if (adjoint) failed = accumulate(adjoint, pg_evaluate(formula, formula->root, letters, numbers));
    }
    pg_letters_free(letters);
    return failed;
}

PyObject *pg_operands_tuple(const pg_node *node, int swap_pairs) {
    Py_ssize_t count = pg_operand_count(node);
    PyObject *operands = PyTuple_New(count);
    for (Py_ssize_t i = 0; operands && i < count; i++) {
        PyObject *operand = pg_operand_object(node, swap_pairs ? i ^ 1 : i);
        if (!operand) Py_CLEAR(operands);
        else PyTuple_SET_ITEM(operands, i, operand);
    }
    return operands;
}

PyObject *pg_custom_partials(pg_node *node, PyObject *g, PyObject *operands) {
    PyObject *closure = node->in[0].many->closure;
    Py_INCREF(closure);
    PyObject *result = PyObject_CallMethod(closure, "gradients_graph", "OOO", g, (PyObject *)node, operands);
    Py_DECREF(closure);
    if (result && !(PyTuple_Check(result) && PyTuple_GET_SIZE(result) == PyTuple_GET_SIZE(operands))) {
        PyErr_SetString(PyExc_TypeError, "gradients_graph of a custom op must give a tuple with an entry an operand");
        Py_CLEAR(result);
    }
    return result;
}

/* The operands of an n-ary node are held by a tuple: code of the user's may release the node meanwhile. */
static int contribute_many(pg_adjoints *all, pg_node *node, PyObject *g) {
    PyObject *operands = pg_operands_tuple(node, 0), *custom = NULL;
    int failed = !operands;
    if (!failed && pg_has_closure(node)) failed = !(custom = pg_custom_partials(node, g, operands));
    for (Py_ssize_t i = 0; !failed && i < PyTuple_GET_SIZE(operands); i++) {
        PyObject *operand = PyTuple_GET_ITEM(operands, i), *contribution;
        PyObject **adjoint = PG_IS_VALUE(operand) ? pg_adjoint_of(all, (pg_node *)operand) : NULL;
        if (!adjoint) continue;
        if (node->op == PG_OP_dot) {
            PyObject *factors[] = {g, PyTuple_GET_ITEM(operands, i ^ 1)};
            contribution = pg_apply(PG_OP_zmul, factors, 2);
        } else {
            contribution = custom ? PyTuple_GET_ITEM(custom, i) : g;
            Py_INCREF(contribution);
        }
        failed = accumulate(adjoint, contribution);
    }
    Py_XDECREF(operands);
    Py_XDECREF(custom);
    return failed;
}

/* The adjoint of a result: the node that gives it, a program on its operands, has a dict of them for an adjoint. */
static int contribute_result(pg_adjoints *all, pg_node *node, PyObject *g) {
    PyObject **adjoint = pg_adjoint_of(all, node->in[0].node), *number, *before, *sum = NULL;
    if (!adjoint) return 0;
    if (!*adjoint && !(*adjoint = PyDict_New())) return -1;
    if (!(number = PyLong_FromDouble(node->in[1].constant))) return -1;
    before = PyDict_GetItemWithError(*adjoint, number);
    PyObject *terms[] = {before, g};
    if (before) sum = pg_apply(PG_OP_add, terms, 2);
    int failed = (PyErr_Occurred() || (before && !sum)) ? -1 : PyDict_SetItem(*adjoint, number, sum ? sum : g);
    Py_XDECREF(sum);
    Py_DECREF(number);
    return failed;
}

static int contribute(pg_adjoints *all, pg_node *node, PyObject *g) {
    if (node->op == PG_OP_result) return contribute_result(all, node, g);
    if (node->op == PG_OP_released) return pg_released_error(node);
    if (pg_check_fresh(node) < 0) return -1;
    if (node->op == PG_OP_closure) {
        PyErr_SetString(pg_hooks.graph_error,
                        "backward: a backward_fn adds numbers, so its gradient cannot be differentiated again; make the op "
                        "with pygrad.custom_op, whose gradient may be written in terms of Values");
        return -1;
    }
    return node->op < PG_OP_TABLE_END ? contribute_row(all, node, g) : contribute_many(all, node, g);
}

static int is_zero(PyObject *adjoint) {
    return !adjoint || (PyFloat_CheckExact(adjoint) && PyFloat_AS_DOUBLE(adjoint) == 0);
}

static int walk(const pg_order *order, pg_adjoints *all) {
    for (size_t i = order->count; i-- > 0;) {
        if ((i & PG_SIGNAL_MASK) == 0 && PyErr_CheckSignals() < 0) return -1;
        PyObject *g = all->objects[i];
        if (is_zero(g)) continue;
        Py_INCREF(g);
        int failed = contribute(all, order->nodes[i], g);
        Py_DECREF(g);
        if (failed) return -1;
    }
    return 0;
}

PyObject *pg_gradients_of_order(pg_order *order, PyObject *root, PyObject *grad, pg_node *const *targets, size_t count) {
    pg_adjoints all;
    PyObject *result = NULL;
    if (pg_adjoints_make(&all, order, targets, count) == 0) {
        PyObject **adjoint = pg_adjoint_of(&all, (pg_node *)root);
        if (adjoint) {
            Py_INCREF(grad);
            *adjoint = grad;
        }
        if (walk(order, &all) == 0) result = PyList_New((Py_ssize_t)count);
    }
    for (size_t i = 0; i < count && result; i++) { /* a target given twice has one place */
        PyObject *adjoint = *pg_adjoint_of(&all, targets[i]);
        if (adjoint) Py_INCREF(adjoint);
        else adjoint = PyFloat_FromDouble(0.0);
        if (!adjoint) Py_CLEAR(result);
        else PyList_SET_ITEM(result, (Py_ssize_t)i, adjoint);
    }
    for (size_t i = 0; i < order->count && result; i++)
        order->nodes[i]->grad = all.objects[i] && !PyDict_Check(all.objects[i]) ? pg_number_of(all.objects[i]) : 0.0;
    pg_adjoints_free(&all);
    return result;
}

PyObject *pg_gradients_graph(pg_node *root, PyObject *grad, pg_node *const *targets, size_t count) {
    pg_order order;
    PyObject *result = NULL;
    Py_INCREF(root);
    if (pg_order_make(&order, root, targets, count, 0) == 0)
        result = pg_gradients_of_order(&order, (PyObject *)root, grad, targets, count);
    pg_order_free(&order);
    Py_DECREF(root);
    return result;
}
