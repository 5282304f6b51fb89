/* py_gradient.c: gradients that are nodes. The formulas that backward evaluates on numbers are evaluated on nodes here,
 * in the same order, so that the numbers are equal. See py_gradient.h. */
#include "py_gradient.h"

#include <math.h>
#include <string.h>

#include "formula.h"
#include "py_graph.h"
#include "py_order.h"
#include "py_record.h"
#include "scalar.h"

/* ---- formulas on nodes: every object is a Value or a float ---- */

static double number_of(PyObject *object) {
    return PG_IS_VALUE(object) ? ((pg_node *)object)->data : PyFloat_AS_DOUBLE(object);
}

static PyObject *apply(int op, PyObject *const *operands, int count) {
    pg_arg args[PG_MAX_ARITY] = {{NULL, 0.0}};
    int any_value = 0;
    for (int i = 0; i < count; i++) {
        pg_load(operands[i], &args[i]);
        any_value |= args[i].node != NULL;
    }
    double y = pg_forward(op, args[0].data, args[1].data, args[2].data);
    return any_value ? pg_record(op, y, args, count) : PyFloat_FromDouble(y);
}

static PyObject *evaluate(const pg_formula *formula, int at, PyObject *const *letters, const double *numbers) {
    const pg_expression *e = &formula->expressions[at];
    if (e->kind == PG_LETTER) {
        Py_INCREF(letters[e->what]);
        return letters[e->what];
    }
    if (e->kind == PG_NUMBER) return PyFloat_FromDouble(e->number);
    if (e->kind == PG_SELECT) {
        double left = pg_formula_number(formula, e->operand[0], numbers);
        double right = pg_formula_number(formula, e->operand[1], numbers);
        return evaluate(formula, e->operand[pg_compare(e->what, left, right) ? 2 : 3], letters, numbers);
    }
    PyObject *parts[PG_MAX_ARITY] = {NULL}, *result = NULL;
    int arity = pg_ops[e->what].arity, i = 0;
    while (i < arity && (parts[i] = evaluate(formula, e->operand[i], letters, numbers))) i++;
    if (i == arity) result = apply(e->what, parts, arity);
    for (i = 0; i < arity; i++) Py_XDECREF(parts[i]);
    return result;
}

/* ---- adjoints: one object a node, found through an index that the walk keeps in the node's `grad` ---- */

typedef struct {
    PyObject **objects; /* of the order's nodes, then of the targets; NULL is zero */
    size_t count;
} adjoints;

static void set_index(pg_node *node, uint64_t index) { memcpy(&node->grad, &index, sizeof index); }

static uint64_t index_of(const pg_node *node) {
    uint64_t index;
    memcpy(&index, &node->grad, sizeof index);
    return index;
}

/* adjoint += contribution. Steals the contribution; NULL is an error that is under way. */
static int accumulate(adjoints *all, pg_node *operand, PyObject *contribution) {
    if (!contribution) return -1;
    PyObject **adjoint = &all->objects[index_of(operand)];
    double number = number_of(contribution);
    if (!*adjoint && !(number == 0 && signbit(number))) {
        *adjoint = contribution;
        return 0;
    }
    PyObject *zero = *adjoint ? NULL : PyFloat_FromDouble(0.0); /* the first sum is 0.0 + contribution: -0.0 becomes 0.0 */
    PyObject *terms[] = {*adjoint ? *adjoint : zero, contribution}, *sum = terms[0] ? apply(PG_OP_add, terms, 2) : NULL;
    Py_XDECREF(zero);
    Py_DECREF(contribution);
    if (!sum) return -1;
    Py_XSETREF(*adjoint, sum);
    return 0;
}

static PyObject *operand_object(const pg_node *node, Py_ssize_t i) {
    PyObject *operand = (PyObject *)pg_operand_node(node, i);
    if (!operand) return PyFloat_FromDouble(pg_operand_data(node, i));
    Py_INCREF(operand);
    return operand;
}

static int contribute_row(const pg_order *order, adjoints *all, pg_node *node, PyObject *g) {
    PyObject *letters[PG_LETTERS] = {NULL};
    double numbers[PG_LETTERS] = {0};
    int arity = pg_ops[node->op].arity, failed = 0;
    letters[PG_G] = g;
    letters[PG_Y] = (PyObject *)node;
    for (int i = 0; i < arity && !failed; i++) failed = !(letters[PG_A + i] = operand_object(node, i));
    for (int i = 0; i < PG_LETTERS && !failed; i++)
        if (letters[i]) numbers[i] = number_of(letters[i]);
    for (int i = 0; i < arity && !failed; i++) {
        pg_node *operand = pg_operand_node(node, i);
        if (!operand || !pg_is_needed(order, operand)) continue;
        const pg_formula *formula = &pg_gradient_formulas[node->op][i];
        failed = accumulate(all, operand, evaluate(formula, formula->root, letters, numbers)) < 0;
    }
    for (int i = 0; i < arity; i++) Py_XDECREF(letters[PG_A + i]);
    return failed ? -1 : 0;
}

static int contribute_dot(const pg_order *order, adjoints *all, pg_node *node, PyObject *g) {
    Py_ssize_t count = pg_operand_count(node);
    for (Py_ssize_t i = 0; i < count; i++) {
        pg_node *operand = pg_operand_node(node, i);
        if (!operand || !pg_is_needed(order, operand)) continue;
        PyObject *factors[] = {g, operand_object(node, i ^ 1)};
        if (!factors[1]) return -1;
        PyObject *product = apply(PG_OP_zmul, factors, 2);
        Py_DECREF(factors[1]);
        if (accumulate(all, operand, product) < 0) return -1;
    }
    return 0;
}

/* An op of the user's: closure.gradients_graph(g, y, operands) gives a Value, a float or None an operand. */
static int contribute_custom(const pg_order *order, adjoints *all, pg_node *node, PyObject *g) {
    Py_ssize_t count = pg_operand_count(node);
    PyObject *operands = PyTuple_New(count), *result = NULL;
    int failed = -1;
    for (Py_ssize_t i = 0; operands && i < count; i++) {
        PyObject *operand = operand_object(node, i);
        if (!operand) Py_CLEAR(operands);
        else PyTuple_SET_ITEM(operands, i, operand);
    }
    if (operands)
        result = PyObject_CallMethod(node->in[0].many->closure, "gradients_graph", "OOO", g, (PyObject *)node, operands);
    if (!result) goto done;
    for (Py_ssize_t i = 0; i < count; i++) {
        pg_node *operand = pg_operand_node(node, i);
        PyObject *contribution = PyTuple_GET_ITEM(result, i);
        if (!operand || !pg_is_needed(order, operand)) continue;
        Py_INCREF(contribution);
        if (accumulate(all, operand, contribution) < 0) goto done;
    }
    failed = 0;
done:
    Py_XDECREF(operands);
    Py_XDECREF(result);
    return failed;
}

static int contribute(const pg_order *order, adjoints *all, pg_node *node, PyObject *g) {
    if (pg_check_fresh(node) < 0) return -1;
    if (node->op == PG_OP_dot) return contribute_dot(order, all, node, g);
    if (node->op == PG_OP_custom) return contribute_custom(order, all, node, g);
    if (node->op == PG_OP_closure) {
        PyErr_SetString(pg_hooks.graph_error,
                        "backward: a backward_fn adds numbers, so its gradient cannot be differentiated again; make the op "
                        "with pygrad.custom_op, whose gradient may be written in terms of Values");
        return -1;
    }
    if (node->op < PG_OP_TABLE_END) return contribute_row(order, all, node, g);
    for (Py_ssize_t i = 0; i < pg_operand_count(node); i++) { /* sum, stand-in */
        pg_node *operand = pg_operand_node(node, i);
        if (!operand || !pg_is_needed(order, operand)) continue;
        Py_INCREF(g);
        if (accumulate(all, operand, g) < 0) return -1;
    }
    return 0;
}

static int is_zero(PyObject *adjoint) { return !adjoint || (!PG_IS_VALUE(adjoint) && PyFloat_AS_DOUBLE(adjoint) == 0); }

static int walk(const pg_order *order, adjoints *all) {
    for (size_t i = order->count; i-- > 0;) {
        pg_node *node = order->nodes[i];
        if ((i & 0x3ff) == 0 && PyErr_CheckSignals() < 0) return -1;
        if (!pg_is_needed(order, node) || is_zero(all->objects[i])) continue;
        PyObject *g = all->objects[i];
        Py_INCREF(g);
        int failed = contribute(order, all, node, g) < 0;
        Py_DECREF(g);
        if (failed) return -1;
    }
    return 0;
}

/* Gradients of the order's root: a list, one object a target. Interior nodes are left with the number of theirs. */
static PyObject *gradients_of_order(pg_order *order, pg_node *root, PyObject *grad, pg_node *const *targets,
                                    size_t count) {
    size_t total = order->count + count;
    adjoints all = {PyMem_Calloc(total ? total : 1, sizeof(PyObject *)), total};
    double *before = PyMem_New(double, count ? count : 1);
    PyObject *result = NULL;
    if (!all.objects || !before) {
        PyErr_NoMemory();
        goto done;
    }
    pg_order_prune(order);
    for (size_t i = 0; i < order->count; i++) set_index(order->nodes[i], i);
    for (size_t i = 0; i < count; i++) before[i] = targets[i]->grad;
    for (size_t i = 0; i < count; i++) set_index(targets[i], order->count + i);
    int failed = 0;
    if (pg_is_needed(order, root)) {
        Py_INCREF(grad);
        all.objects[index_of(root)] = grad;
        failed = walk(order, &all) < 0;
    }
    result = failed ? NULL : PyList_New((Py_ssize_t)count);
    for (size_t i = 0; i < count && result; i++) { /* a target given twice has its index from the second */
        PyObject *adjoint = all.objects[index_of(targets[i])];
        if (adjoint) Py_INCREF(adjoint);
        else adjoint = PyFloat_FromDouble(0.0);
        if (!adjoint) Py_CLEAR(result);
        else PyList_SET_ITEM(result, (Py_ssize_t)i, adjoint);
    }
    for (size_t i = 0; i < order->count; i++)
        order->nodes[i]->grad = all.objects[i] ? number_of(all.objects[i]) : 0.0;
    for (size_t i = count; i-- > 0;) targets[i]->grad = before[i];
done:
    for (size_t i = 0; all.objects && i < total; i++) Py_XDECREF(all.objects[i]);
    PyMem_Free(all.objects);
    PyMem_Free(before);
    return result;
}

PyObject *pg_gradients_graph(pg_node *root, PyObject *grad, pg_node *const *targets, size_t count) {
    pg_order order;
    PyObject *result = NULL;
    Py_INCREF(root);
    if (pg_walk_enter() == 0) {
        if (pg_order_make(&order, root, targets, count, 0) == 0)
            result = gradients_of_order(&order, root, grad, targets, count);
        pg_order_free(&order);
        pg_walk_leave();
    }
    Py_DECREF(root);
    return result;
}

/* ---- forward mode: tangents instead of adjoints, in the order itself ---- */

/* tangent * partial, zero where either is zero: a partial of zero is a branch not taken (reverse mode's g of zero). */
static PyObject *tangent_term(PyObject *tangent, PyObject *partial) {
    PyObject *parts[] = {tangent, partial}, *swapped[] = {partial, tangent};
    return apply(PG_OP_zmul, number_of(partial) == 0 ? swapped : parts, 2);
}

/* The derivative of one row along its operands' tangents, from the formulas with g = 1. */
static PyObject *tangent_of_row(const pg_order *order, adjoints *all, pg_node *node, PyObject *one) {
    PyObject *letters[PG_LETTERS] = {NULL}, *total = NULL;
    double numbers[PG_LETTERS] = {0};
    int arity = pg_ops[node->op].arity, failed = 0;
    letters[PG_G] = one;
    letters[PG_Y] = (PyObject *)node;
    for (int i = 0; i < arity && !failed; i++) failed = !(letters[PG_A + i] = operand_object(node, i));
    for (int i = 0; i < PG_LETTERS && !failed; i++)
        if (letters[i]) numbers[i] = number_of(letters[i]);
    for (int i = 0; i < arity && !failed; i++) {
        pg_node *operand = pg_operand_node(node, i);
        PyObject *tangent = operand && pg_is_needed(order, operand) ? all->objects[index_of(operand)] : NULL;
        if (!tangent) continue;
        const pg_formula *formula = &pg_gradient_formulas[node->op][i];
        PyObject *partial = evaluate(formula, formula->root, letters, numbers);
        PyObject *term = partial ? tangent_term(tangent, partial) : NULL;
        Py_XDECREF(partial);
        if (term && total) {
            PyObject *terms[] = {total, term};
            Py_SETREF(term, apply(PG_OP_add, terms, 2));
        }
        failed = !term;
        Py_XSETREF(total, term);
    }
    for (int i = 0; i < arity; i++) Py_XDECREF(letters[PG_A + i]);
    return total || failed ? total : PyFloat_FromDouble(0.0);
}

/* Of an n-ary node: the sum over operands of its tangent times a partial, which is NULL for 1. */
static PyObject *tangent_of_many(const pg_order *order, adjoints *all, pg_node *node, PyObject *partials) {
    PyObject *total = PyFloat_FromDouble(0.0);
    for (Py_ssize_t i = 0; i < pg_operand_count(node) && total; i++) {
        pg_node *operand = pg_operand_node(node, i);
        PyObject *tangent = operand && pg_is_needed(order, operand) ? all->objects[index_of(operand)] : NULL;
        if (!tangent) continue;
        PyObject *partial = partials ? PyTuple_GET_ITEM(partials, i) : NULL;
        PyObject *term = partial ? tangent_term(tangent, partial) : (Py_INCREF(tangent), tangent);
        PyObject *terms[] = {total, term}, *sum = term ? apply(PG_OP_add, terms, 2) : NULL;
        Py_XDECREF(term);
        Py_SETREF(total, sum);
    }
    return total;
}

static PyObject *tangent_of(const pg_order *order, adjoints *all, pg_node *node, PyObject *one) {
    if (pg_check_fresh(node) < 0) return NULL;
    if (node->op < PG_OP_TABLE_END) return tangent_of_row(order, all, node, one);
    if (node->op == PG_OP_sum || node->op == PG_OP_stand_in) return tangent_of_many(order, all, node, NULL);
    if (node->op == PG_OP_closure)
        return PyErr_Format(pg_hooks.graph_error,
                            "jvp: a backward_fn adds to the gradients of parents, so it cannot be run forwards; make the op "
                            "with pygrad.custom_op");
    Py_ssize_t count = pg_operand_count(node);
    PyObject *operands = PyTuple_New(count), *partials = NULL, *result = NULL;
    for (Py_ssize_t i = 0; operands && i < count; i++) { /* dot: the partial of operand i is its neighbour */
        PyObject *operand = operand_object(node, node->op == PG_OP_dot ? i ^ 1 : i);
        if (!operand) Py_CLEAR(operands);
        else PyTuple_SET_ITEM(operands, i, operand);
    }
    if (operands && node->op == PG_OP_dot) {
        partials = operands;
        Py_INCREF(partials);
    } else if (operands) {
        partials = PyObject_CallMethod(node->in[0].many->closure, "gradients_graph", "OOO", one, (PyObject *)node, operands);
    }
    if (partials) result = tangent_of_many(order, all, node, partials);
    Py_XDECREF(operands);
    Py_XDECREF(partials);
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

static PyObject *tangents_of_order(pg_order *order, PyObject *outputs, pg_node *const *targets, size_t count,
                                   PyObject *directions) {
    size_t total = order->count + count;
    adjoints all = {PyMem_Calloc(total ? total : 1, sizeof(PyObject *)), total};
    double *before = PyMem_New(double, count ? count : 1);
    PyObject *one = PyFloat_FromDouble(1.0), *result = NULL;
    int failed = !all.objects || !before || !one;
    if (failed) {
        PyErr_NoMemory();
        goto done;
    }
    pg_order_prune(order);
    for (size_t i = 0; i < order->count; i++) set_index(order->nodes[i], i);
    for (size_t i = 0; i < count; i++) before[i] = targets[i]->grad;
    for (size_t i = 0; i < count; i++) {
        set_index(targets[i], order->count + i);
        all.objects[order->count + i] = PyList_GET_ITEM(directions, (Py_ssize_t)i);
        Py_INCREF(all.objects[order->count + i]);
    }
    for (size_t i = 0; i < order->count && !failed; i++) {
        if ((i & 0x3ff) == 0x3ff) failed = PyErr_CheckSignals() < 0;
        if (failed || !pg_is_needed(order, order->nodes[i])) continue;
        failed = !(all.objects[i] = tangent_of(order, &all, order->nodes[i], one));
    }
    result = failed ? NULL : PyList_New(PyList_GET_SIZE(outputs));
    for (Py_ssize_t i = 0; result && i < PyList_GET_SIZE(outputs); i++) {
        pg_node *output = (pg_node *)PyList_GET_ITEM(outputs, i);
        PyObject *tangent = PG_IS_VALUE((PyObject *)output) && pg_is_needed(order, output) ? all.objects[index_of(output)]
                                                                                          : NULL;
        if (tangent) Py_INCREF(tangent);
        else tangent = PyFloat_FromDouble(0.0);
        if (!tangent) Py_CLEAR(result);
        else PyList_SET_ITEM(result, i, tangent);
    }
    for (size_t i = 0; i < order->count; i++) order->nodes[i]->grad = 0.0;
    for (size_t i = count; i-- > 0;) targets[i]->grad = before[i];
done:
    for (size_t i = 0; all.objects && i < total; i++) Py_XDECREF(all.objects[i]);
    PyMem_Free(all.objects);
    PyMem_Free(before);
    Py_XDECREF(one);
    return result;
}

PyObject *pg_tangents(PyObject *outputs, pg_node *const *targets, size_t count, PyObject *directions, int graph) {
    pg_order order = {0};
    PyObject *result = NULL, *root;
    if (pg_walk_enter() < 0) return NULL;
    root = join(outputs);
    if (root) {
        int no_grad = pg_thread.no_grad;
        if (pg_order_make(&order, (pg_node *)root, targets, count, 0) == 0) {
            if (!graph) pg_set_no_grad(1);
            result = tangents_of_order(&order, outputs, targets, count, directions);
            pg_set_no_grad(no_grad);
        }
        pg_order_free(&order);
        Py_DECREF(root);
    } else if (!PyErr_Occurred()) {
        result = PyList_New(PyList_GET_SIZE(outputs));
        for (Py_ssize_t i = 0; result && i < PyList_GET_SIZE(outputs); i++) {
            PyObject *zero = PyFloat_FromDouble(0.0);
            if (!zero) Py_CLEAR(result);
            else PyList_SET_ITEM(result, i, zero);
        }
    }
    pg_walk_leave();
    return result;
}

/* ---- Note [Stand-ins]. The gradient that backward(create_graph=True) leaves on a leaf is a node, whose graph leads
 * back to the leaf: a cycle of references, which nothing would ever free. So that graph is built over a copy of the
 * first one in which a stand-in takes the place of each leaf. A stand-in passes its gradient on to the leaf, but leaf
 * and stand-in know each other by borrowed links; whichever is freed first takes the link away. ---- */

static pg_node *stand_in_of(pg_node *leaf) {
    if ((leaf->flags & PG_NOTED) && leaf->in[1].node) {
        Py_INCREF(leaf->in[1].node);
        return leaf->in[1].node;
    }
    pg_node *stand_in = pg_alloc_op();
    if (!stand_in) return NULL;
    pg_node_set(stand_in, PG_OP_stand_in, leaf->data, PG_REQUIRES_GRAD | PG_NOTED | PG_CONST1 | PG_CONST2, leaf->version);
    stand_in->in[0].node = leaf;
    leaf->in[1].node = stand_in;
    leaf->flags |= PG_NOTED;
    return stand_in;
}

/* The leaves under the order's nodes, each once: a list of new references, or NULL. */
static PyObject *leaves_of(pg_order *order) {
    PyObject *leaves = PyList_New(0);
    for (size_t i = 0; i < order->count && leaves; i++) {
        for (Py_ssize_t k = 0; k < pg_operand_count(order->nodes[i]); k++) {
            pg_node *operand = pg_operand_node(order->nodes[i], k);
            if (!operand || !pg_is_leaf(operand) || operand->mark == order->epoch + 1) continue;
            operand->mark = order->epoch + 1;
            if (PyList_Append(leaves, (PyObject *)operand) < 0) {
                Py_CLEAR(leaves);
                break;
            }
        }
    }
    return leaves;
}

/* A copy of `node` with each operand replaced by copies[index_of(operand)]. */
static PyObject *copy_over(const pg_node *node, PyObject *const *copies) {
    Py_ssize_t count = pg_operand_count(node);
    pg_arg kept[PG_MAX_ARITY], *args = count > PG_MAX_ARITY ? PyMem_New(pg_arg, count) : kept;
    if (!args) return PyErr_NoMemory();
    for (Py_ssize_t i = 0; i < count; i++) {
        pg_node *operand = pg_operand_node(node, i);
        args[i].node = operand ? (pg_node *)copies[index_of(operand)] : NULL;
        args[i].data = pg_operand_data(node, i);
    }
    PyObject *copy;
    if (node->flags & PG_MANY) {
        PyObject *closure = node->in[0].many->closure;
        Py_XINCREF(closure);
        copy = pg_record_many(node->op, node->data, args, count, closure);
    } else {
        copy = pg_record(node->op, node->data, args, (int)count);
    }
    if (args != kept) PyMem_Free(args);
    return copy;
}

/* leaf.grad += gradient, which stays a node. */
static int add_gradient(pg_node *leaf, PyObject *gradient) {
    PyObject *before = pg_leaf_gradient(leaf);
    PyObject *number = before && ((pg_node *)before)->data == leaf->grad ? NULL : PyFloat_FromDouble(leaf->grad);
    PyObject *terms[] = {number ? number : before, gradient}, *sum = NULL;
    if (terms[0] && number && leaf->grad == 0) {
        sum = gradient;
        Py_INCREF(sum);
    } else if (terms[0]) {
        sum = apply(PG_OP_add, terms, 2);
    }
    Py_XDECREF(number);
    if (sum && !PG_IS_VALUE(sum)) Py_SETREF(sum, (PyObject *)pg_leaf(PyFloat_AS_DOUBLE(sum), 0));
    if (!sum) return -1;
    leaf->grad = ((pg_node *)sum)->data;
    leaf->flags |= PG_NOTED;
    pg_node *old = leaf->in[0].node;
    leaf->in[0].node = (pg_node *)sum;
    Py_XDECREF(old);
    return 0;
}

static PyObject *backward_over(pg_order *order, pg_node *root, PyObject *grad) {
    PyObject *leaves = leaves_of(order), *copies = NULL, *gradients = NULL, *result = NULL;
    pg_order copied = {0};
    pg_node **targets = NULL;
    size_t count = leaves ? (size_t)PyList_GET_SIZE(leaves) : 0, made = 0;
    double *before = PyMem_New(double, count ? count : 1);
    if (!leaves || !before || !(targets = PyMem_New(pg_node *, count ? count : 1))) goto done;
    if (!(copies = PyList_New((Py_ssize_t)(order->count + count)))) goto done;
    for (; made < count; made++) {
        pg_node *leaf = (pg_node *)PyList_GET_ITEM(leaves, (Py_ssize_t)made);
        pg_node *stand_in = stand_in_of(leaf);
        if (!stand_in) break;
        PyList_SET_ITEM(copies, (Py_ssize_t)(order->count + made), (PyObject *)stand_in);
        targets[made] = stand_in;
        before[made] = leaf->grad;
        set_index(leaf, order->count + made);
    }
    int failed = made < count;
    PyObject **items = ((PyListObject *)copies)->ob_item;
    for (size_t i = 0; i < order->count && !failed; i++) {
        pg_node *node = order->nodes[i];
        PyObject *copy = node->op == PG_OP_stand_in ? (Py_INCREF(node), (PyObject *)node) : copy_over(node, items);
        set_index(node, i);
        failed = !copy;
        if (copy) PyList_SET_ITEM(copies, (Py_ssize_t)i, copy);
    }
    for (size_t i = 0; i < made; i++) ((pg_node *)PyList_GET_ITEM(leaves, (Py_ssize_t)i))->grad = before[i];
    if (failed) goto done;
    pg_node *copied_root = (pg_node *)PyList_GET_ITEM(copies, (Py_ssize_t)order->count - 1);
    if (pg_order_make(&copied, copied_root, targets, count, 0) == 0)
        gradients = gradients_of_order(&copied, copied_root, grad, targets, count);
    for (size_t i = 0; i < order->count; i++) {
        pg_node *copy = (pg_node *)PyList_GET_ITEM(copies, (Py_ssize_t)i);
        order->nodes[i]->grad = gradients ? copy->grad : 0.0;
    }
    failed = !gradients;
    for (size_t i = 0; i < count && !failed; i++)
        failed = add_gradient((pg_node *)PyList_GET_ITEM(leaves, (Py_ssize_t)i), PyList_GET_ITEM(gradients, (Py_ssize_t)i)) < 0;
    if (!failed) {
        result = Py_None;
        Py_INCREF(result);
    }
done:
    if (!result && !PyErr_Occurred()) PyErr_NoMemory();
    pg_order_free(&copied);
    PyMem_Free(before);
    PyMem_Free(targets);
    Py_XDECREF(gradients);
    Py_XDECREF(copies);
    Py_XDECREF(leaves);
    (void)root;
    return result;
}

PyObject *pg_backward_graph(pg_node *root, double grad) {
    pg_order order = {0};
    PyObject *seed = PyFloat_FromDouble(grad), *result = NULL;
    if (!seed || pg_check_root(root) < 0) {
        Py_XDECREF(seed);
        return NULL;
    }
    if (pg_is_leaf(root)) {
        if (add_gradient(root, seed) == 0) {
            result = Py_None;
            Py_INCREF(result);
        }
        Py_DECREF(seed);
        return result;
    }
    Py_INCREF(root);
    if (pg_walk_enter() == 0) {
        if (pg_order_make(&order, root, NULL, 0, 1) == 0) result = backward_over(&order, root, seed);
        pg_order_free(&order);
        pg_walk_leave();
    }
    Py_DECREF(root);
    Py_DECREF(seed);
    return result;
}
