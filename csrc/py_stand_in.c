/* py_stand_in.c: backward(create_graph=True), which leaves nodes in the .grad of leaves. See py_gradient.h. */
#include "py_gradient.h"

#include <string.h>

#include "py_graph.h"
#include "py_heap.h"
#include "py_record.h"

/* ---- Note [Stand-ins]. The gradient that backward(create_graph=True) leaves on a leaf is a node, whose graph leads
 * back to the leaf: a cycle of references, which nothing would ever free. So that graph is built over a copy of the
 * first one in which a stand-in takes the place of each leaf. A stand-in passes its gradient on to the leaf, but leaf
 * and stand-in know each other by borrowed links; whichever is freed first takes the link away. It holds
 * the number that the leaf had; for another number there is another stand-in. ---- */

pg_node *pg_stand_in_of(pg_node *leaf) {
    pg_node *old = leaf->flags & PG_NOTED ? leaf->in[1].node : NULL;
    if (old && old->seen == leaf->version && memcmp(&old->data, &leaf->data, sizeof(double)) == 0) {
        Py_INCREF(old);
        return old;
    }
    pg_node *stand_in = pg_alloc_op();
    if (!stand_in) return NULL;
    pg_node_set(stand_in, PG_OP_stand_in, leaf->data, PG_REQUIRES_GRAD | PG_NOTED | PG_CONST1 | PG_CONST2, leaf->version);
    stand_in->in[0].node = leaf;
    if (old) pg_stand_in_unlink(old);
    leaf->in[1].node = stand_in;
    leaf->flags |= PG_NOTED;
    return stand_in;
}

/* A graph and its copy: original nodes, then leaves, in `places`; copies and stand-ins in the same places of `copies`. */
typedef struct {
    pg_map places;
    PyObject *leaves, *copies;
    size_t interior;
} twin;

/* The leaves under the order's nodes, each once. */
static int find_leaves(twin *both, const pg_order *order) {
    if (!(both->leaves = PyList_New(0))) return -1;
    for (size_t i = 0; i < order->count; i++) {
        for (Py_ssize_t k = 0; k < pg_operand_count(order->nodes[i]); k++) {
            pg_node *operand = pg_operand_node(order->nodes[i], k);
            if (!operand || !pg_is_leaf(operand) || pg_map_get(&both->places, operand) >= 0) continue;
            if (pg_map_set(&both->places, operand, (int64_t)order->count + PyList_GET_SIZE(both->leaves)) < 0) return -1;
            if (PyList_Append(both->leaves, (PyObject *)operand) < 0) return -1;
        }
    }
    return 0;
}

/* A copy of `node` over the copies of its operands. */
static PyObject *copy_over(const twin *both, const pg_node *node) {
    Py_ssize_t count = pg_operand_count(node);
    pg_arg kept[PG_MAX_ARITY], *args = count > PG_MAX_ARITY ? PyMem_New(pg_arg, count) : kept;
    if (!args) return PyErr_NoMemory();
    for (Py_ssize_t i = 0; i < count; i++) {
        pg_node *operand = pg_operand_node(node, i);
        int64_t place = operand ? pg_map_get(&both->places, operand) : -1;
        args[i].node = operand ? (pg_node *)PyList_GET_ITEM(both->copies, (Py_ssize_t)place) : NULL;
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

static int twin_make(twin *both, const pg_order *order) {
    both->interior = order->count;
    if (find_leaves(both, order) < 0) return -1;
    Py_ssize_t leaves = PyList_GET_SIZE(both->leaves);
    if (!(both->copies = PyList_New((Py_ssize_t)order->count + leaves))) return -1;
    for (Py_ssize_t i = 0; i < leaves; i++) {
        pg_node *stand_in = pg_stand_in_of((pg_node *)PyList_GET_ITEM(both->leaves, i));
        if (!stand_in) return -1;
        PyList_SET_ITEM(both->copies, (Py_ssize_t)order->count + i, (PyObject *)stand_in);
    }
    for (size_t i = 0; i < order->count; i++) {
        pg_node *node = order->nodes[i];
        if (pg_check_fresh(node) < 0) return -1;
        PyObject *copy = node->op == PG_OP_stand_in ? (Py_INCREF(node), (PyObject *)node) : copy_over(both, node);
        if (!copy) return -1;
        PyList_SET_ITEM(both->copies, (Py_ssize_t)i, copy);
        if (pg_map_set(&both->places, node, (int64_t)i) < 0) return -1;
    }
    return 0;
}

static void twin_free(twin *both) {
    pg_map_clear(&both->places);
    Py_XDECREF(both->leaves);
    Py_XDECREF(both->copies);
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
        sum = pg_apply(PG_OP_add, terms, 2);
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

/* The gradients of the copied root with respect to the stand-ins; interior nodes of the original get their numbers. */
static PyObject *gradients_of_twin(const twin *both, pg_order *order, PyObject *grad) {
    Py_ssize_t leaves = PyList_GET_SIZE(both->leaves);
    pg_node **stand_ins = PyMem_New(pg_node *, leaves ? leaves : 1), *root;
    PyObject *gradients = NULL;
    pg_order copied;
    if (!stand_ins) return PyErr_NoMemory();
    for (Py_ssize_t i = 0; i < leaves; i++)
        stand_ins[i] = (pg_node *)PyList_GET_ITEM(both->copies, (Py_ssize_t)both->interior + i);
    root = (pg_node *)PyList_GET_ITEM(both->copies, (Py_ssize_t)both->interior - 1);
    if (pg_order_make(&copied, root, stand_ins, (size_t)leaves, 0) == 0)
        gradients = pg_gradients_of_order(&copied, (PyObject *)root, grad, stand_ins, (size_t)leaves);
    for (size_t i = 0; i < order->count && gradients; i++)
        order->nodes[i]->grad = ((pg_node *)PyList_GET_ITEM(both->copies, (Py_ssize_t)i))->grad;
    pg_order_free(&copied);
    PyMem_Free(stand_ins);
    return gradients;
}

static int backward_over(pg_order *order, PyObject *grad) {
    twin both = {0};
    PyObject *gradients = NULL;
    int failed = twin_make(&both, order);
    if (!failed) failed = !(gradients = gradients_of_twin(&both, order, grad));
    for (Py_ssize_t i = 0; !failed && i < PyList_GET_SIZE(both.leaves); i++)
        failed = add_gradient((pg_node *)PyList_GET_ITEM(both.leaves, i), PyList_GET_ITEM(gradients, i)) < 0;
    Py_XDECREF(gradients);
    twin_free(&both);
    return failed ? -1 : 0;
}

PyObject *pg_backward_graph(pg_node *root, double grad, int retain_graph) {
    PyObject *seed = PyFloat_FromDouble(grad);
    int failed = !seed || pg_check_root(root) < 0, no_grad = pg_thread.no_grad;
    if (!failed && pg_is_leaf(root)) {
        failed = add_gradient(root, seed) < 0;
    } else if (!failed) {
        pg_order order;
        Py_INCREF(root);
        pg_set_no_grad(0); /* gradients are nodes here, whatever the mode */
        failed = pg_order_make(&order, root, NULL, 0, 1) < 0 || backward_over(&order, seed) < 0;
        pg_set_no_grad(no_grad);
        if (!failed && !retain_graph) failed = pg_order_release(&order) < 0;
        pg_order_free(&order);
        Py_DECREF(root);
    }
    Py_XDECREF(seed);
    if (failed) return NULL;
    Py_RETURN_NONE;
}
