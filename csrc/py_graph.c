/* py_graph.c: topological order and backward. See py_graph.h.
 *
 * Note [Order]. The order is specification: depth-first post-order over operands from left to right, then reversed;
 * a node adds to its operands from left to right. The reference does the same, so gradients are equal bit for bit.
 * Interior gradients are zeroed as the sort meets them, leaves accumulate.
 */
#include "py_graph.h"

#include <string.h>

#include "py_record.h"
#include "scalar.h"

enum { SIGNAL_PERIOD = 1 << 14, PREFETCH_AHEAD = 8 };

/* ---- operands ---- */

Py_ssize_t pg_operand_count(const pg_node *node) {
    if (node->flags & PG_MANY) return node->in[0].many->count;
    return node->flags & PG_RELEASED ? 0 : pg_arity[node->op]; /* a leaf has none */
}

pg_node *pg_operand_node(const pg_node *node, Py_ssize_t i) {
    if (node->flags & PG_MANY) {
        pg_many *many = node->in[0].many;
        return pg_many_is_node(many)[i] ? many->operand[i].node : NULL;
    }
    return node->flags & (PG_CONST0 << i) ? NULL : node->in[i].node;
}

double pg_operand_data(const pg_node *node, Py_ssize_t i) {
    pg_node *operand = pg_operand_node(node, i);
    if (operand) return operand->data;
    return node->flags & PG_MANY ? node->in[0].many->operand[i].constant : node->in[i].constant;
}

int pg_check_fresh(const pg_node *node) {
    unsigned saved = pg_saved[node->op], seen = 0;
    for (Py_ssize_t i = 0; i < pg_operand_count(node); i++) {
        pg_node *operand = pg_operand_node(node, i);
        if (operand) seen += operand->version;
    }
    int operands = (uint8_t)seen != node->seen && (saved & (PG_SAVES_A | PG_SAVES_B | PG_SAVES_C));
    int value = node->version && (saved & PG_SAVES_Y);
    if (!operands && !value) return 0;
    PyErr_Format(pg_hooks.graph_error,
                 "backward: %s of a node of op '%s' was written after the node was made, and its gradient needs the old "
                 "number; run the forward pass again, or write .data only after backward",
                 operands ? "the data of an operand" : "the data", pg_ops[node->op].name);
    return -1;
}

/* ---- the sort ---- */

static uint32_t last_epoch;
static pg_node **spare; /* the buffer of the last sort, kept for the next */
enum { FIRST_CAPACITY = 1 << 18, GROWTH = 8 }; /* pages that are not used are not touched */

/* Note [Buffer]. Order and stack share one buffer: the order grows from its start, the stack from its end, and every
 * node met is on one of them. A stack entry keeps in its low bits the operands of the node that are yet to be looked at. */
static int buffer_grow(pg_order *order, size_t depth) {
    size_t capacity = order->capacity ? GROWTH * order->capacity : FIRST_CAPACITY;
    pg_node **nodes = order->capacity ? NULL : spare;
    if (nodes) {
        spare = NULL;
    } else if (capacity > SIZE_MAX / sizeof *nodes || !(nodes = pg_pages_alloc(capacity * sizeof *nodes))) {
        PyErr_NoMemory();
        return -1;
    }
    if (order->count) memcpy(nodes, order->nodes, order->count * sizeof *nodes);
    if (depth) memcpy(nodes + capacity - depth, order->nodes + order->capacity - depth, depth * sizeof *nodes);
    pg_pages_free(order->nodes, order->capacity * sizeof *nodes);
    order->nodes = nodes;
    order->capacity = capacity;
    return 0;
}

void pg_order_free(pg_order *order) {
    if (!spare && order->capacity == FIRST_CAPACITY) spare = order->nodes;
    else pg_pages_free(order->nodes, order->capacity * sizeof *order->nodes);
    order->nodes = NULL;
    order->capacity = order->count = 0;
}

static int released_error(const pg_node *node) {
    PyErr_Format(pg_hooks.graph_error,
                 "backward: a node of op '%s' has been released by an earlier backward(retain_graph=False); run the "
                 "forward pass again, or leave retain_graph=True in the first call", pg_ops[node->op].name);
    return -1;
}

/* Whether an operand need not be visited: met before, a target, or a leaf, which makes the order foreign. */
static inline int is_settled(pg_node *operand, uint32_t epoch, int *foreign) {
    if (operand->mark - epoch <= 1) return 1;
    operand->mark = epoch;
    if (!pg_is_leaf(operand)) return 0;
    *foreign = 1;
    return 1;
}

/* The next operand of an n-ary node that is to be visited; NULL at the end. */
static pg_node *next_of_many(pg_many *many, uint32_t epoch, int *foreign) {
    while (many->cursor < many->count) {
        Py_ssize_t i = many->cursor++;
        if (pg_many_is_node(many)[i] && !is_settled(many->operand[i].node, epoch, foreign)) return many->operand[i].node;
    }
    return NULL;
}

/* Where a node's operands are looked at next; kept in the low bits of a stack entry. */
enum { OPERAND0, OPERAND1, OPERAND2, NO_OPERAND, OPERANDS_OF_MANY, ENTRY_BITS = 7 };

/* 0 sorted, 1 a signal handler ran another sort: begin again, -1 error.
 * Each operand has a branch of its own: a predicted branch lets the processor go on to the next node before the last
 * one has arrived from memory, where a computed index would make it wait. */
static inline int sort_once(pg_order *order, pg_node *root, const int zero) {
    const uint32_t epoch = order->epoch;
    int foreign = 0, state = 0;
    size_t count = 0, depth = 0, capacity = order->capacity;
    pg_node **nodes = order->nodes, *node = root, *operand = root;
    unsigned next = NO_OPERAND, flags;
    if (is_settled(root, epoch, &foreign)) goto done;
    goto meet;
    for (;;) {
        switch (next) {
        case OPERAND0:
            operand = node->in[0].node;
            next = OPERAND1;
            if (!(flags & PG_CONST0) && !is_settled(operand, epoch, &foreign)) goto descend; /* fall through */
        case OPERAND1:
            operand = node->in[1].node;
            next = OPERAND2;
            if (!(flags & PG_CONST1) && !is_settled(operand, epoch, &foreign)) goto descend; /* fall through */
        case OPERAND2:
            operand = node->in[2].node;
            next = NO_OPERAND;
            if (!(flags & PG_CONST2) && !is_settled(operand, epoch, &foreign)) goto descend; /* fall through */
        case NO_OPERAND: break;
        default:
            operand = next_of_many(node->in[0].many, epoch, &foreign);
            if (operand) goto descend;
        }
        nodes[count++] = node;
        if (!depth) break;
        uintptr_t entry = (uintptr_t)nodes[capacity - depth--];
        node = (pg_node *)(entry & ~(uintptr_t)ENTRY_BITS);
        next = entry & ENTRY_BITS;
        flags = node->flags;
        if (PG_LIKELY(count & (SIGNAL_PERIOD - 1))) continue;
        if (PyErr_CheckSignals() < 0) goto failed;
        if (last_epoch == epoch) continue;
        state = 1;
        break;
    descend:
        nodes[capacity - ++depth] = (pg_node *)((uintptr_t)node | next);
    meet:
        node = operand;
        flags = node->flags;
        if (zero) node->grad = 0.0;
        next = OPERAND0;
        if (!(flags & PG_CONST1)) PG_PREFETCH(node->in[1].node);
        if (PG_UNLIKELY(flags & (PG_MANY | PG_RELEASED))) {
            if (flags & PG_RELEASED) {
                released_error(node);
                goto failed;
            }
            node->in[0].many->cursor = 0;
            next = OPERANDS_OF_MANY;
        }
        if (PG_LIKELY(count + depth + 2 <= capacity)) continue;
        order->count = count;
        if (buffer_grow(order, depth) < 0) goto failed;
        nodes = order->nodes;
        capacity = order->capacity;
    }
done:
    order->count = count;
    order->foreign = foreign;
    return state;
failed:
    order->count = count;
    return -1;
}

int pg_order_make(pg_order *order, pg_node *root, pg_node *const *targets, size_t target_count, int zero) {
    int again;
    memset(order, 0, sizeof *order);
    do {
        order->epoch = last_epoch += 2;
        order->foreign = 0;
        order->count = 0;
        for (size_t i = 0; i < target_count; i++) targets[i]->mark = order->epoch + 1;
        again = zero ? sort_once(order, root, 1) : sort_once(order, root, 0);
    } while (again > 0);
    return again;
}

void pg_order_prune(pg_order *order) {
    for (size_t i = 0; i < order->count; i++) {
        pg_node *node = order->nodes[i];
        Py_ssize_t operands = pg_operand_count(node);
        for (Py_ssize_t k = 0; k < operands; k++) {
            pg_node *operand = pg_operand_node(node, k);
            if (!operand || !pg_is_needed(order, operand)) continue;
            node->mark = order->epoch + 1;
            break;
        }
    }
}

/* ---- the walk ---- */

/* Walks under way, of any thread; while there is more than one, what is released goes to the graveyard, since the
 * other walk's order borrows it. */
static int walks;
static PyObject *graveyard;

int pg_walk_enter(void) {
    if (walks > 0 && !graveyard && !(graveyard = PyList_New(0))) return -1;
    walks++;
    return 0;
}

void pg_walk_leave(void) {
    if (--walks > 0 || !graveyard) return;
    PyObject *type, *value, *trace; /* what dies here may run code of the user's */
    PyErr_Fetch(&type, &value, &trace);
    Py_CLEAR(graveyard);
    PyErr_Restore(type, value, trace);
}

/* The user's closure on a leaf made with parents: it adds to the parents' gradients itself. */
static int step_closure(pg_node *node) {
    PyObject *closure = node->in[0].many->closure;
    if (!closure) {
        PyErr_Format(pg_hooks.graph_error,
                     "backward: a node made by Value(%g, parents) has no backward_fn; assign a function that adds to the "
                     "parents' .grad, or use detach() to cut the graph here", node->data);
        return -1;
    }
    Py_INCREF(closure);
    PyObject *result = PyObject_CallNoArgs(closure);
    Py_DECREF(closure);
    Py_XDECREF(result);
    return result ? 0 : -1;
}

/* An op of the user's: closure.gradients(g, y, operands) gives a float, or None for zero, an operand. */
static int step_custom(pg_node *node) {
    pg_many *many = node->in[0].many;
    PyObject *operands = PyTuple_New(many->count), *result = NULL;
    int failed = -1;
    for (Py_ssize_t i = 0; operands && i < many->count; i++) {
        PyObject *number = PyFloat_FromDouble(pg_operand_data(node, i));
        if (!number) Py_CLEAR(operands);
        else PyTuple_SET_ITEM(operands, i, number);
    }
    if (operands) result = PyObject_CallMethod(many->closure, "gradients", "ddO", node->grad, node->data, operands);
    if (!result || !(node->flags & PG_MANY)) goto done;
    for (Py_ssize_t i = 0; i < many->count; i++) {
        if (!pg_many_is_node(many)[i]) continue;
        double contribution = PyFloat_AsDouble(PyTuple_GET_ITEM(result, i));
        if (contribution == -1.0 && PyErr_Occurred()) goto done;
        many->operand[i].node->grad += contribution;
    }
    failed = 0;
done:
    Py_XDECREF(operands);
    Py_XDECREF(result);
    return failed;
}

static void step_sum(pg_node *node) {
    pg_many *many = node->in[0].many;
    for (Py_ssize_t i = 0; i < many->count; i++)
        if (pg_many_is_node(many)[i]) many->operand[i].node->grad += node->grad;
}

static void step_dot(pg_node *node) {
    pg_many *many = node->in[0].many;
    uint8_t *is_node = pg_many_is_node(many);
    pg_operand *operand = many->operand;
    double g = node->grad;
    for (Py_ssize_t i = 0; i < many->count; i += 2) {
        double a = is_node[i] ? operand[i].node->data : operand[i].constant;
        double b = is_node[i + 1] ? operand[i + 1].node->data : operand[i + 1].constant;
        if (is_node[i]) operand[i].node->grad += pg_zmul(g, b);
        if (is_node[i + 1]) operand[i + 1].node->grad += pg_zmul(g, a);
    }
}

/* Note [Operands]. Whether an operand is a constant or a node follows no pattern that a processor could learn, so the
 * addresses of its number, version and gradient are chosen without a branch; where a gradient is cheap, that of a
 * constant is computed too and goes to a sink. */
typedef struct {
    const double *data;
    const uint8_t *version;
    double *grad;
} pg_slot;

static const uint8_t never_written;

static inline pg_slot slot_of(pg_node *node, int i, double *sink) {
    pg_operand *operand = &node->in[i];
    int constant = node->flags & (PG_CONST0 << i);
    pg_slot slot = {
        constant ? &operand->constant : &operand->node->data,
        constant ? &never_written : &operand->node->version,
        constant ? sink : &operand->node->grad,
    };
    return slot;
}

#define CHECK(versions) \
    if (PG_UNLIKELY(((uint8_t)(versions) ^ node->seen) | node->version) && pg_check_fresh(node) < 0) return -1

/* Expansions of the table's rows: one node's contributions, in the order of its operands. */
#define STEP_UNARY(name, value, da, ...)                       \
    case PG_OP_##name: {                                       \
        double a = node->in[0].node->data, y = node->data;     \
        CHECK(node->in[0].node->version);                      \
        (void)a, (void)y;                                      \
        node->in[0].node->grad += da;                          \
        return 0;                                              \
    }
#define STEP_BINARY_INLINE(name, value, da, db, ...)           \
    case PG_OP_##name: {                                       \
        pg_slot p = slot_of(node, 0, &sink), q = slot_of(node, 1, &sink); \
        double a = *p.data, b = *q.data, y = node->data;       \
        CHECK(*p.version + *q.version);                        \
        (void)a, (void)b, (void)y;                             \
        *p.grad += da;                                         \
        *q.grad += db;                                         \
        return 0;                                              \
    }
#define STEP_BINARY(name, value, da, db, ...)                  \
    case PG_OP_##name: {                                       \
        pg_slot p = slot_of(node, 0, NULL), q = slot_of(node, 1, NULL); \
        double a = *p.data, b = *q.data, y = node->data;       \
        CHECK(*p.version + *q.version);                        \
        (void)a, (void)b, (void)y;                             \
        if (p.grad) *p.grad += da;                             \
        if (q.grad) *q.grad += db;                             \
        return 0;                                              \
    }
#define STEP_TERNARY(name, value, da, db, dc, ...)             \
    case PG_OP_##name: {                                       \
        pg_slot p = slot_of(node, 0, NULL), q = slot_of(node, 1, NULL), r = slot_of(node, 2, NULL); \
        double a = *p.data, b = *q.data, c = *r.data, y = node->data; \
        CHECK(*p.version + *q.version + *r.version);           \
        (void)a, (void)b, (void)c, (void)y;                    \
        if (p.grad) *p.grad += da;                             \
        if (q.grad) *q.grad += db;                             \
        if (r.grad) *r.grad += dc;                             \
        return 0;                                              \
    }

static PG_NOINLINE int step_any(pg_node *node) {
    double g = node->grad;
    switch (node->op) {
#include "scalar_names.h"
#define UNARY STEP_UNARY
#define BINARY STEP_BINARY
#define TERNARY STEP_TERNARY
#include "ops.def"
#include "scalar_names_end.h"
    case PG_OP_closure: return step_closure(node);
    case PG_OP_sum: step_sum(node); return 0;
    case PG_OP_dot:
        if (pg_check_fresh(node) < 0) return -1;
        step_dot(node);
        return 0;
    case PG_OP_custom:
        if (pg_check_fresh(node) < 0) return -1;
        return step_custom(node);
    case PG_OP_stand_in: node->in[0].node->grad += g; return 0;
    default: return 0;
    }
}

/* The rows without calls in line, so that no registers are saved for them. */
static inline int step(pg_node *node) {
    double g = node->grad, sink = 0;
    switch (node->op) {
#include "scalar_names.h"
#define PG_ARITHMETIC_ONLY
#define UNARY STEP_UNARY
#define BINARY STEP_BINARY_INLINE
#define TERNARY STEP_TERNARY
#include "ops.def"
#undef PG_ARITHMETIC_ONLY
#include "scalar_names_end.h"
    default: return step_any(node);
    }
}

int pg_step(pg_node *node) {
    if (node->flags & PG_RELEASED) return released_error(node);
    return pg_is_leaf(node) ? 0 : step(node);
}

/* In detect_anomaly: the step of a node, with an error where it makes a gradient that is not finite. */
static int step_watched(pg_node *node) {
    Py_ssize_t count = pg_operand_count(node), bad = -1;
    if (!isfinite(node->grad)) bad = count; /* the seed, or a closure's doing */
    if (bad < 0 && step(node) < 0) return -1;
    for (Py_ssize_t i = 0; i < count && bad < 0; i++) {
        pg_node *operand = pg_operand_node(node, i);
        if (operand && !isfinite(operand->grad)) bad = i;
    }
    if (bad < 0) return 0;
    PyObject *place = pg_place_of(node);
    PyObject *operands = PyTuple_New(count);
    for (Py_ssize_t i = 0; operands && i < count; i++) {
        PyObject *number = PyFloat_FromDouble(pg_operand_data(node, i));
        if (!number) Py_CLEAR(operands);
        else PyTuple_SET_ITEM(operands, i, number);
    }
    if (operands && !PyErr_Occurred()) {
        double found = bad < count ? pg_operand_node(node, bad)->grad : node->grad;
        PyObject *result = PyObject_CallFunction(pg_hooks.anomaly, "sOdOs", pg_ops[node->op].name, operands, found,
                                                 place ? place : Py_None, "backward");
        Py_XDECREF(result);
    }
    Py_XDECREF(operands);
    return -1;
}

/* The error under way gets a note that says how far backward came: leaves are updated in part. */
static void note_partial(size_t done, size_t total) {
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    PyErr_NormalizeException(&type, &value, &trace);
    PyObject *note = PyUnicode_FromFormat(
        "pygrad: backward stopped after %zu of %zu nodes; .grad of leaves holds part of the gradient (zero it before "
        "trying again), the graph is whole", done, total);
    PyObject *notes = note ? PyObject_GetAttrString(value, "__notes__") : NULL;
    if (note && !notes) {
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

static int walk(pg_order *order) {
    pg_node **nodes = order->nodes;
    if (PG_UNLIKELY(pg_thread.anomaly)) {
        for (size_t i = order->count; i-- > 0;)
            if (step_watched(nodes[i]) < 0) return note_partial(order->count - i - 1, order->count), -1;
        return 0;
    }
    for (size_t i = order->count; i-- > 0;) {
        if (PG_LIKELY(i >= PREFETCH_AHEAD)) PG_PREFETCH(nodes[i - PREFETCH_AHEAD]);
        if (PG_UNLIKELY(step(nodes[i]) < 0 || ((i & (SIGNAL_PERIOD - 1)) == 0 && i && PyErr_CheckSignals() < 0))) {
            note_partial(order->count - i - 1, order->count);
            return -1;
        }
    }
    return 0;
}

/* The same, releasing each node once its step is done. The order owns its nodes meanwhile. */
static int walk_releasing(pg_order *order) {
    int failed = 0;
    for (size_t i = 0; i < order->count; i++) Py_INCREF(order->nodes[i]);
    for (size_t i = order->count; i-- > 0;) {
        pg_node *node = order->nodes[i];
        if (!failed) {
            failed = pg_thread.anomaly ? step_watched(node) < 0 : step(node) < 0;
            if (!failed && (i & (SIGNAL_PERIOD - 1)) == 0 && i) failed = PyErr_CheckSignals() < 0;
            if (failed) note_partial(order->count - i - 1, order->count);
            else failed = pg_node_release(node, walks > 1 ? graveyard : NULL) < 0;
        }
        Py_DECREF(node);
    }
    return failed ? -1 : 0;
}

int pg_check_root(const pg_node *root) {
    if (root->flags & PG_REQUIRES_GRAD) return 0;
    PyErr_SetString(pg_hooks.graph_error,
                    "backward: this Value does not require a gradient: it was made under no_grad(), by detach(), or from "
                    "operands that do not require one");
    return -1;
}

int pg_backward(pg_node *root, double grad, int retain_graph) {
    pg_order order;
    if (pg_check_root(root) < 0) return -1;
    if (pg_is_leaf(root) && !(root->flags & PG_RELEASED)) {
        root->grad += grad;
        return 0;
    }
    Py_INCREF(root);
    if (pg_walk_enter() < 0) {
        Py_DECREF(root);
        return -1;
    }
    int failed = pg_order_make(&order, root, NULL, 0, 1);
    if (!failed) {
        root->grad = grad;
        failed = retain_graph ? walk(&order) : walk_releasing(&order);
    }
    pg_order_free(&order);
    pg_walk_leave();
    Py_DECREF(root);
    return failed;
}

/* Contributions to needed operands only: the walk where the graph holds leaves that are no targets. */
static int walk_pruned(pg_order *order) {
    for (size_t i = order->count; i-- > 0;) {
        pg_node *node = order->nodes[i];
        if ((i & (SIGNAL_PERIOD - 1)) == 0 && PyErr_CheckSignals() < 0) return -1;
        if (!pg_is_needed(order, node)) continue;
        Py_ssize_t count = pg_operand_count(node);
        double kept[PG_MAX_ARITY], *others = kept;
        if (count > PG_MAX_ARITY && !(others = PyMem_New(double, count))) return PyErr_NoMemory(), -1;
        for (Py_ssize_t k = 0; k < count; k++) {
            pg_node *operand = pg_operand_node(node, k);
            if (operand) others[k] = operand->grad;
        }
        int failed = step(node);
        for (Py_ssize_t k = count; k-- > 0;) { /* backwards: the first sight of an operand holds its old gradient */
            pg_node *operand = pg_operand_node(node, k);
            if (operand && !pg_is_needed(order, operand)) operand->grad = others[k];
        }
        if (others != kept) PyMem_Free(others);
        if (failed < 0) return -1;
    }
    return 0;
}

int pg_gradients(pg_node *root, double grad, pg_node *const *targets, size_t target_count, double *gradients) {
    pg_order order;
    Py_INCREF(root);
    if (pg_walk_enter() < 0) {
        Py_DECREF(root);
        return -1;
    }
    int failed = pg_order_make(&order, root, targets, target_count, 1);
    if (!failed) {
        for (size_t i = 0; i < target_count; i++) targets[i]->grad = 0.0;
        if (order.foreign) pg_order_prune(&order);
        if (root->mark == order.epoch + 1 || !order.foreign) root->grad = grad;
        failed = order.foreign ? walk_pruned(&order) : walk(&order);
        for (size_t i = 0; i < target_count; i++) gradients[i] = targets[i]->grad;
    }
    pg_order_free(&order);
    pg_walk_leave();
    Py_DECREF(root);
    return failed;
}
