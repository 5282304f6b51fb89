/* py_graph.c: backward. See py_graph.h.
 *
 * Note [Order]. The order is specification: a node is made after its operands, so the order of creation, from the
 * youngest to the oldest, is a topological one, and it is the order of backward. A node adds to its operands from left
 * to right. The reference does the same, so gradients are equal bit for bit. Leaves accumulate; the gradient of an
 * interior node starts at 0.0.
 *
 * The plain backward needs no list (py_scan.h). Where a Python closure may run on the way, or nodes are released, or some
 * leaves are left alone, a list is made first (py_order.h) and walked.
 */
#include "py_graph.h"

#include <math.h>
#include <string.h>

#include "py_order.h"
#include "py_record.h"
#include "py_scan.h"
#include "scalar.h"

enum { PREFETCH_AHEAD = 8 };

int pg_check_fresh(const pg_node *node) {
    unsigned saved = pg_saved[node->op];
    uint64_t seen = 0;
    for (Py_ssize_t i = 0; i < pg_operand_count(node); i++) {
        pg_node *operand = pg_operand_node(node, i);
        if (operand) seen += operand->version;
    }
    int written = node->flags & PG_MANY ? seen != node->in[0].many->seen : (uint8_t)seen != node->seen;
    int operands = written && (saved & (PG_SAVES_A | PG_SAVES_B | PG_SAVES_C));
    int value = node->version && (saved & PG_SAVES_Y);
    if (!operands && !value) return 0;
    PyObject *label = pg_op_label(node);
    if (!label) return -1;
    PyErr_Format(pg_hooks.graph_error,
                 "backward: %s of a node of op '%U' was written after the node was made, and its gradient needs the old "
                 "number; run the forward pass again, or write .data only after backward",
                 operands ? "the data of an operand" : "the data", label);
    Py_DECREF(label);
    return -1;
}

/* ---- a step in a list of nodes ---- */

/* The user's closure on a leaf made with parents: it adds to the parents' gradients itself. */
static int step_closure(pg_node *node) {
    PyObject *closure = node->in[0].many->closure;
    if (!closure) {
        char number[32]; /* PyErr_Format knows no %g */
        PyOS_snprintf(number, sizeof number, "%g", node->data);
        PyErr_Format(pg_hooks.graph_error,
                     "backward: a node made by Value(%s, parents) has no backward_fn; assign a function that adds to the "
                     "parents' .grad, or use detach() to cut the graph here", number);
        return -1;
    }
    Py_INCREF(closure);
    PyObject *result = PyObject_CallNoArgs(closure);
    Py_DECREF(closure);
    Py_XDECREF(result);
    if (!result) return -1;
    return node->op == PG_OP_released ? pg_released_error(node) : 0;
}

static int captured_error(void) {
    PyErr_SetString(pg_hooks.graph_error,
                    "backward: this graph was made by scan or cond in a capture, which has ended; take the gradient in the "
                    "function that is compiled, or of the compiled function");
    return -1;
}

PyObject *pg_operand_numbers(const pg_node *node) {
    Py_ssize_t count = pg_operand_count(node);
    PyObject *numbers = PyTuple_New(count);
    for (Py_ssize_t i = 0; numbers && i < count; i++) {
        PyObject *number = PyFloat_FromDouble(pg_operand_data(node, i));
        if (!number) Py_CLEAR(numbers);
        else PyTuple_SET_ITEM(numbers, i, number);
    }
    return numbers;
}

/* An op of the user's: closure.gradients(g, y, operands) gives a tuple with a float an operand. */
static int step_custom(pg_node *node) {
    PyObject *operands = pg_operand_numbers(node), *closure = node->in[0].many->closure, *result = NULL;
    Py_INCREF(closure);
    if (operands) result = PyObject_CallMethod(closure, "gradients", "ddO", node->grad, node->data, operands);
    Py_DECREF(closure);
    int failed = !result;
    if (!failed && node->op == PG_OP_released) failed = pg_released_error(node);
    if (!failed && !(PyTuple_Check(result) && PyTuple_GET_SIZE(result) == pg_operand_count(node))) {
        PyErr_SetString(PyExc_TypeError, "gradients of a custom op must give a tuple with a float an operand");
        failed = -1;
    }
    for (Py_ssize_t i = 0; !failed && i < pg_operand_count(node); i++) {
        pg_node *operand = pg_operand_node(node, i);
        double contribution = operand ? PyFloat_AsDouble(PyTuple_GET_ITEM(result, i)) : 0.0;
        if (contribution == -1.0 && PyErr_Occurred()) failed = -1;
        else if (operand) operand->grad += contribution;
    }
    Py_XDECREF(operands);
    Py_XDECREF(result);
    return failed ? -1 : 0;
}

/* One node's contributions, in the order of its operands. */
static int step(pg_node *node) {
    double g = node->grad;
    unsigned flags = node->flags;
    switch (node->op) {
#define PUT(operand, contribution) (operand)->grad += (contribution)
#define STALE return -1
#define MAY_BE_STALE 1
#include "py_steps.inc"
#undef MAY_BE_STALE
#undef STALE
#undef PUT
    case PG_OP_closure: return step_closure(node);
    case PG_OP_custom: return pg_check_fresh(node) < 0 ? -1 : step_custom(node);
    case PG_OP_call:
    case PG_OP_result: return captured_error();
    case PG_OP_stand_in: node->in[0].node->grad += g; break;
    case PG_OP_sum:
    case PG_OP_dot:
        if (pg_check_fresh(node) < 0) return -1;
        for (Py_ssize_t i = 0; i < pg_operand_count(node); i++) {
            pg_node *operand = pg_operand_node(node, i);
            if (operand) operand->grad += node->op == PG_OP_sum ? g : pg_zmul(g, pg_operand_data(node, i ^ 1));
        }
        break;
    default: break;
    }
    return 0;
}

int pg_step(pg_node *node) {
    if (node->op == PG_OP_released) return pg_released_error(node);
    return pg_is_leaf(node) ? 0 : step(node);
}

/* The step of a node in detect_anomaly: the operand that got a contribution that is not finite, -1 where none did,
 * -2 with an error. A gradient that was not finite before is put aside meanwhile, so that no op is blamed for it. */
static Py_ssize_t step_and_look(pg_node *node) {
    Py_ssize_t count = pg_operand_count(node), bad = -1;
    double *aside = PyMem_Calloc(count ? count : 1, sizeof(double));
    if (!aside) return PyErr_NoMemory(), -2;
    for (Py_ssize_t i = 0; i < count; i++) {
        pg_node *operand = pg_operand_node(node, i);
        if (!operand || isfinite(operand->grad)) continue;
        aside[i] = operand->grad;
        operand->grad = 0.0;
    }
    int failed = step(node);
    for (Py_ssize_t i = count; i-- > 0 && !failed;) {
        pg_node *operand = pg_operand_node(node, i);
        if (!operand) continue;
        if (!isfinite(operand->grad)) bad = i;
        operand->grad += aside[i];
    }
    PyMem_Free(aside);
    return failed ? -2 : bad;
}

/* In detect_anomaly: the step of a node, with an error where it makes a gradient that is not finite. */
static int step_watched(pg_node *node) {
    Py_ssize_t count = pg_operand_count(node), bad = count; /* the seed, or a closure's doing */
    if (isfinite(node->grad)) bad = step_and_look(node);
    if (bad < 0) return bad == -2 ? -1 : 0;
    PyObject *place = pg_place_of(node);
    PyObject *operands = pg_operand_numbers(node);
    if (operands && !PyErr_Occurred()) {
        double found = bad < count ? pg_operand_node(node, bad)->grad : node->grad;
        PyObject *label = pg_op_label(node);
        PyObject *result = label ? PyObject_CallFunction(pg_hooks.anomaly, "OOdOs", label, operands, found,
                                                         place ? place : Py_None, "backward") : NULL;
        Py_XDECREF(label);
        Py_XDECREF(result);
    }
    Py_XDECREF(operands);
    return -1;
}

/* The error under way gets a note that says how far backward came: leaves are updated in part. */
static void note_partial(size_t done, int released) {
    PyObject *type, *value, *trace;
    if (!PyErr_Occurred()) return;
    PyErr_Fetch(&type, &value, &trace);
    PyErr_NormalizeException(&type, &value, &trace);
    PyObject *note = PyUnicode_FromFormat(
        "pygrad: backward stopped after %zu node(s); .grad of leaves holds part of the gradient (zero it before trying "
        "again), the graph %s", done, released ? "has been released so far" : "is whole");
    PyObject *notes = note && value ? PyObject_GetAttrString(value, "__notes__") : NULL;
    if (note && value && !notes) {
        PyErr_Clear();
        notes = PyList_New(0);
        if (notes && PyObject_SetAttrString(value, "__notes__", notes) < 0) Py_CLEAR(notes);
    }
    if (notes && PyList_Check(notes)) PyList_Append(notes, note);
    PyErr_Clear();
    Py_XDECREF(notes);
    Py_XDECREF(note);
    PyErr_Restore(type, value, trace);
}

/* ---- the walk down a list ---- */

static int step_listed(pg_order *order, size_t i) {
    if (PG_LIKELY(i >= PREFETCH_AHEAD)) PG_PREFETCH(order->nodes[i - PREFETCH_AHEAD]);
    if (PG_UNLIKELY(pg_thread.anomaly)) {
        if (step_watched(order->nodes[i]) < 0) return -1;
    } else if (step(order->nodes[i]) < 0) {
        return -1;
    }
    return PG_UNLIKELY((i & PG_SIGNAL_MASK) == PG_SIGNAL_MASK) ? PyErr_CheckSignals() : 0;
}

static int walk(pg_order *order) {
    for (size_t i = order->count; i-- > 0;)
        if (step_listed(order, i) < 0) return note_partial(order->count - i - 1, 0), -1;
    return 0;
}

/* The same, releasing each node once its step is done. The order owns its nodes meanwhile. */
static int walk_releasing(pg_order *order) {
    int failed = 0;
    for (size_t i = 0; i < order->count; i++) Py_INCREF(order->nodes[i]);
    for (size_t i = order->count; i-- > 0;) {
        pg_node *node = order->nodes[i];
        if (!failed) {
            failed = step_listed(order, i) < 0;
            if (failed) note_partial(order->count - i - 1, 1);
            else failed = pg_node_release(node, pg_graveyard()) < 0;
        }
        Py_DECREF(node);
    }
    return failed ? -1 : 0;
}

/* Contributions to needed operands only. */
static int walk_pruned(pg_order *order) {
    for (size_t i = order->count; i-- > 0;) {
        pg_node *node = order->nodes[i];
        if (!pg_is_needed(order, node)) continue;
        Py_ssize_t count = pg_operand_count(node);
        double kept[PG_MAX_ARITY], *others = kept;
        if (count > PG_MAX_ARITY && !(others = PyMem_New(double, count))) return PyErr_NoMemory(), -1;
        for (Py_ssize_t k = 0; k < count; k++) {
            pg_node *operand = pg_operand_node(node, k);
            if (operand) others[k] = operand->grad;
        }
        int failed = step_listed(order, i);
        /* Backwards: the first sight of an operand holds its old gradient. */
        for (Py_ssize_t k = node->op == PG_OP_released ? 0 : count; k-- > 0;) {
            pg_node *operand = pg_operand_node(node, k);
            if (operand && !pg_is_needed(order, operand)) operand->grad = others[k];
        }
        if (others != kept) PyMem_Free(others);
        if (failed < 0) return -1;
    }
    return 0;
}

/* ---- backward ---- */

int pg_check_root(const pg_node *root) {
    if (root->flags & PG_REQUIRES_GRAD) return 0;
    PyErr_SetString(pg_hooks.graph_error,
                    "backward: this Value does not require a gradient: it was made under no_grad(), by detach(), or from "
                    "operands that do not require one");
    return -1;
}

static int backward_over_list(pg_node *root, double grad, int retain_graph) {
    pg_order order;
    int failed = pg_order_make(&order, root, NULL, 0, 1);
    if (!failed) {
        root->grad = grad;
        failed = retain_graph ? walk(&order) : walk_releasing(&order);
    }
    pg_order_free(&order);
    return failed;
}

int pg_backward(pg_node *root, double grad, int retain_graph) {
    size_t done = 0;
    if (pg_check_root(root) < 0) return -1;
    if (pg_is_leaf(root)) {
        root->grad += grad;
        return 0;
    }
    Py_INCREF(root);
    int failed = -1;
    if (!retain_graph || !pg_can_scan(root)) failed = backward_over_list(root, grad, retain_graph);
    else if ((failed = pg_scan(root, grad, &done)) < 0) note_partial(done, 0);
    Py_DECREF(root);
    return failed;
}

static int gradients_over_list(pg_node *root, double grad, pg_node *const *targets, size_t count, double *gradients,
                               uint64_t *oldest) {
    pg_order order;
    int failed = pg_order_make(&order, root, targets, count, 1);
    for (size_t i = 0; i < count && !failed; i++) targets[i]->grad = 0.0;
    if (!failed) {
        if (order.foreign) pg_order_prune(&order);
        if (root->mark == order.epoch + 1 || !order.foreign) root->grad = grad;
        failed = order.foreign ? walk_pruned(&order) : walk(&order);
        *oldest = order.oldest;
    }
    for (size_t i = 0; i < count && !failed; i++) gradients[i] = targets[i]->grad;
    pg_order_free(&order);
    return failed;
}

int pg_gradients(pg_node **root, double grad, pg_node *const *targets, size_t count, double *gradients, uint64_t *oldest) {
    int scannable = pg_can_scan(*root) && count > 0, outcome = PG_MET_OTHER;
    size_t done = 0;
    *oldest = PG_NO_RUN;
    for (size_t i = 0; i < count; i++) scannable &= pg_is_leaf(targets[i]);
    if (scannable) outcome = pg_scan_targets(root, grad, targets, count, &done);
    if (outcome < 0) note_partial(done, 0);
    for (size_t i = 0; i < count && !outcome; i++) gradients[i] = targets[i]->grad;
    if (outcome == PG_MET_OTHER) outcome = gradients_over_list(*root, grad, targets, count, gradients, oldest);
    return outcome;
}
