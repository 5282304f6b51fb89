/* py_order.c: reachable nodes, sorted by their position in the order of creation. See py_order.h. */
#include "py_order.h"

#include <string.h>

#include "py_heap.h"
#include "py_record.h"

/* ---- operands ---- */

Py_ssize_t pg_operand_count(const pg_node *node) {
    if (node->flags & PG_MANY) return node->in[0].many->count;
    return pg_arity[node->op]; /* none for a leaf, or a node that has been released */
}

pg_node *pg_operand_node(const pg_node *node, Py_ssize_t i) {
    if (node->flags & PG_MANY) {
        pg_many *many = node->in[0].many;
        return i < many->count && pg_many_is_node(many)[i] ? many->operand[i].node : NULL;
    }
    return i >= pg_arity[node->op] || node->flags & (PG_CONST0 << i) ? NULL : node->in[i].node;
}

double pg_operand_data(const pg_node *node, Py_ssize_t i) {
    pg_node *operand = pg_operand_node(node, i);
    if (operand) return operand->data;
    return node->flags & PG_MANY ? node->in[0].many->operand[i].constant : node->in[i].constant;
}

int pg_released_error(const pg_node *node) {
    PyErr_Format(pg_hooks.graph_error,
                 "backward: a node of op '%s' has been released by an earlier backward(retain_graph=False); run the "
                 "forward pass again, or leave retain_graph=True in the first call", pg_op_name(node));
    return -1;
}

/* ---- reaching: the list is its own queue ---- */

uint64_t pg_last_run;
uint32_t pg_last_epoch;
static pg_node **spare; /* a buffer of the first capacity, kept for the next list */
enum { FIRST_CAPACITY = 1 << 15, GROWTH = 4 };

/* ---- walks under way ---- */

int pg_walks;
uint32_t pg_epochs[PG_EPOCHS];
PyObject *pg_graves;

int pg_walk_enter_another(uint32_t epoch) {
    if (!pg_graves && !(pg_graves = PyList_New(0))) return -1;
    if (pg_walks < PG_EPOCHS) pg_epochs[pg_walks] = epoch;
    pg_walks++;
    return 0;
}

void pg_walk_leave_another(uint32_t epoch) {
    pg_walks--;
    for (int i = 0; i < PG_EPOCHS && i <= pg_walks; i++) {
        if (pg_epochs[i] != epoch) continue;
        if (pg_walks < PG_EPOCHS) pg_epochs[i] = pg_epochs[pg_walks]; /* the last takes its place */
        break;
    }
    if (pg_walks > 0 || !pg_graves) return;
    PyObject *type, *value, *trace; /* what dies here may run code of the user's */
    PyErr_Fetch(&type, &value, &trace);
    Py_CLEAR(pg_graves);
    PyErr_Restore(type, value, trace);
}

/* Whether a walk under way, other than the one of this epoch, has marked the node. */
static int is_in_use(const pg_node *node, uint32_t own) {
    if (pg_walks > PG_EPOCHS) return 1;
    for (int i = 0; i < pg_walks; i++)
        if (pg_epochs[i] != own && node->mark - pg_epochs[i] <= 1) return 1;
    return 0;
}

PyObject *pg_graveyard(void) { return pg_walks > 1 ? pg_graves : NULL; }

/* After 2**31 walks epochs begin again, and no node may keep a mark from before. 0 is the mark of a new node. */
uint32_t pg_epoch_begin_again(void) {
    if (pg_walks > 0) {
        PyErr_SetString(pg_hooks.graph_error, "backward: inside another backward, at a bad moment; try again");
        return 0;
    }
    pg_heap_clear_marks();
    pg_collected_clear_marks();
    return pg_last_epoch = 2;
}

struct pg_kept {
    pg_node *node;
    double grad;
    uint32_t mark;
};

static int keep(pg_order *order, pg_node *node) {
    if (!is_in_use(node, order->epoch)) return 0;
    if (order->kept_count == order->kept_capacity) {
        size_t capacity = order->kept_capacity ? 2 * order->kept_capacity : 64;
        struct pg_kept *larger = PyMem_Realloc(order->kept, capacity * sizeof *larger);
        if (!larger) return PyErr_NoMemory(), -1;
        order->kept = larger;
        order->kept_capacity = capacity;
    }
    order->kept[order->kept_count++] = (struct pg_kept){node, node->grad, node->mark};
    return 0;
}

static void put_back(pg_order *order) {
    for (size_t i = order->kept_count; i-- > 0;) { /* a target may be kept twice: what was first counts */
        order->kept[i].node->grad = order->kept[i].grad;
        order->kept[i].node->mark = order->kept[i].mark;
    }
    PyMem_Free(order->kept);
    order->kept = NULL;
    order->kept_count = order->kept_capacity = 0;
}

static int list_grow(pg_order *order) {
    size_t capacity = order->capacity ? GROWTH * order->capacity : FIRST_CAPACITY;
    pg_node **nodes = order->capacity ? NULL : spare;
    if (nodes) spare = NULL;
    else if (capacity <= SIZE_MAX / sizeof *nodes) nodes = pg_pages_alloc(capacity * sizeof *nodes);
    if (!nodes) {
        PyErr_NoMemory();
        return -1;
    }
    if (order->count) memcpy(nodes, order->nodes, order->count * sizeof *nodes);
    pg_pages_free(order->nodes, order->capacity * sizeof *nodes);
    order->nodes = nodes;
    order->capacity = capacity;
    return 0;
}

void pg_order_free(pg_order *order) {
    put_back(order);
    if (order->entered) pg_walk_leave(order->epoch);
    order->entered = 0;
    if (!spare && order->capacity == FIRST_CAPACITY) spare = order->nodes;
    else pg_pages_free(order->nodes, order->capacity * sizeof *order->nodes);
    order->nodes = NULL;
    order->capacity = order->count = 0;
}

static inline int reach(pg_order *order, pg_node *node, int zero) {
    if (node->mark - order->epoch <= 1) return 0;
    if (pg_is_leaf(node)) {
        order->foreign = 1;
        if (node->in[2].run < order->oldest) order->oldest = node->in[2].run;
        return 0;
    }
    if (PG_UNLIKELY(pg_walks > 1) && keep(order, node) < 0) return -1;
    node->mark = order->epoch;
    if (PG_UNLIKELY(order->count == order->capacity) && list_grow(order) < 0) return -1;
    if (zero) node->grad = 0.0;
    order->nodes[order->count++] = node;
    return 0;
}

static int reach_operands(pg_order *order, pg_node *node, int zero) {
    if (node->op == PG_OP_released) return pg_released_error(node);
    if (node->flags & PG_MANY) {
        pg_many *many = node->in[0].many;
        for (Py_ssize_t i = 0; i < many->count; i++)
            if (pg_many_is_node(many)[i] && reach(order, many->operand[i].node, zero) < 0) return -1;
        return 0;
    }
    for (int i = 0; i < PG_MAX_ARITY; i++)
        if (!(node->flags & (PG_CONST0 << i)) && reach(order, node->in[i].node, zero) < 0) return -1;
    return 0;
}

/* 0 done, 1 a signal handler made another list: begin again, -1 error. */
static int reach_all(pg_order *order, int zero) {
    for (size_t i = 0; i < order->count; i++) {
        if (reach_operands(order, order->nodes[i], zero) < 0) return -1;
        if (PG_LIKELY((i & PG_SIGNAL_MASK) != PG_SIGNAL_MASK)) continue;
        if (PyErr_CheckSignals() < 0) return -1;
        if (pg_last_epoch != order->epoch) return 1;
    }
    return 0;
}

/* ---- sorting by position: least significant digit first, over the digits in which positions differ ---- */

typedef struct {
    uint64_t position;
    pg_node *node;
} placed;

enum { DIGIT_BITS = 11, DIGITS = 1 << DIGIT_BITS, FEW = 32 };

static void sort_few(placed *items, size_t count) {
    for (size_t i = 1; i < count; i++) {
        placed item = items[i];
        size_t k = i;
        for (; k > 0 && items[k - 1].position > item.position; k--) items[k] = items[k - 1];
        items[k] = item;
    }
}

/* The sorted half of from and to; NULL with an error from a signal handler. */
static placed *sort_digits(placed *from, placed *to, size_t count, uint64_t least, uint64_t most) {
    for (int shift = 0; shift < 64 && (most - least) >> shift; shift += DIGIT_BITS) {
        size_t starts[DIGITS] = {0}, start = 0;
        for (size_t i = 0; i < count; i++) starts[(from[i].position - least) >> shift & (DIGITS - 1)]++;
        for (int digit = 0; digit < DIGITS; digit++) {
            size_t here = starts[digit];
            starts[digit] = start;
            start += here;
        }
        for (size_t i = 0; i < count; i++) to[starts[(from[i].position - least) >> shift & (DIGITS - 1)]++] = from[i];
        placed *swap = from;
        from = to;
        to = swap;
        if (PyErr_CheckSignals() < 0) return NULL;
    }
    return from;
}

/* 0 done, 1 a signal handler walked: begin again, -1 error. */
static int sort_by_position(pg_order *order) {
    size_t count = order->count, bytes = 2 * count * sizeof(placed);
    placed few[FEW], *items = few;
    if (count > FEW && !(items = pg_pages_alloc(bytes))) {
        PyErr_NoMemory();
        return -1;
    }
    uint64_t least = UINT64_MAX, most = 0;
    for (size_t i = 0; i < count; i++) {
        uint64_t position = pg_position(order->nodes[i]);
        items[i] = (placed){position, order->nodes[i]};
        if (position < least) least = position;
        if (position > most) most = position;
    }
    placed *sorted = items;
    if (count > FEW) sorted = sort_digits(items, items + count, count, least, most);
    else sort_few(items, count);
    for (size_t i = 0; i < count && sorted; i++) order->nodes[i] = sorted[i].node;
    if (items != few) pg_pages_free(items, bytes);
    return !sorted ? -1 : pg_last_epoch != order->epoch;
}

/* ---- the list ---- */

static int begin(pg_order *order, pg_node *const *targets, size_t target_count) {
    put_back(order);
    if (order->entered) pg_walk_leave(order->epoch);
    order->entered = 0;
    if (!(order->epoch = pg_epoch_begin()) || pg_walk_enter(order->epoch) < 0) return -1;
    order->entered = 1;
    order->foreign = 0;
    order->oldest = PG_NO_RUN;
    order->count = 0;
    for (size_t i = 0; i < target_count; i++) {
        if (pg_walks > 1 && keep(order, targets[i]) < 0) return -1;
        targets[i]->mark = order->epoch + 1;
    }
    return 0;
}

int pg_order_make_all(pg_order *order, pg_node *const *roots, size_t root_count, pg_node *const *targets,
                      size_t target_count, int zero) {
    int again;
    memset(order, 0, sizeof *order);
    do {
        again = begin(order, targets, target_count);
        for (size_t i = 0; i < root_count && !again; i++) again = reach(order, roots[i], zero);
        if (!again) again = reach_all(order, zero);
        if (!again) again = sort_by_position(order);
    } while (again > 0);
    return again;
}

int pg_order_make(pg_order *order, pg_node *root, pg_node *const *targets, size_t target_count, int zero) {
    return pg_order_make_all(order, &root, 1, targets, target_count, zero);
}

int pg_order_release(pg_order *order) {
    int failed = 0;
    for (size_t i = 0; i < order->count; i++) Py_INCREF(order->nodes[i]);
    for (size_t i = order->count; i-- > 0;) {
        if (!failed) failed = pg_node_release(order->nodes[i], pg_graveyard());
        Py_DECREF(order->nodes[i]);
    }
    return failed;
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

/* ---- what leads outside of a run: depth first, so that all of the way to a leaf outside is known to at once ---- */

typedef struct {
    pg_node *node;
    Py_ssize_t next; /* the operand to look at */
} way_step;

typedef struct {
    way_step *steps;
    size_t depth, capacity;
} way;

static int go_down(pg_order *order, way *path, pg_node *node) {
    if (node->op == PG_OP_released) return pg_released_error(node);
    if (PG_UNLIKELY(pg_walks > 1) && keep(order, node) < 0) return -1;
    if (path->depth == path->capacity) {
        size_t capacity = path->capacity ? 2 * path->capacity : 256;
        way_step *larger = capacity <= SIZE_MAX / sizeof *larger ? PyMem_Realloc(path->steps, capacity * sizeof *larger) : NULL;
        if (!larger) return PyErr_NoMemory(), -1;
        path->steps = larger;
        path->capacity = capacity;
    }
    node->mark = order->epoch;
    path->steps[path->depth++] = (way_step){node, 0};
    return 0;
}

/* 1 where the way has met something that leads outside, 0 where there is nothing left to look at, -1 with an error. */
static int go_on(pg_order *order, way *path, uint64_t run) {
    while (path->depth) {
        way_step *top = &path->steps[path->depth - 1];
        if (top->next == pg_operand_count(top->node)) {
            path->depth--;
            continue;
        }
        pg_node *operand = pg_operand_node(top->node, top->next++);
        if (!operand) continue;
        if (pg_is_leaf(operand) ? operand->in[2].run < run : pg_is_needed(order, operand)) return 1;
        if (!pg_is_leaf(operand) && operand->mark != order->epoch && go_down(order, path, operand) < 0) return -1;
    }
    return 0;
}

int pg_order_mark_outside(pg_order *order, pg_node *const *roots, size_t root_count, uint64_t run) {
    way path = {0};
    memset(order, 0, sizeof *order);
    int found = begin(order, NULL, 0);
    for (size_t i = 0; i < root_count && found >= 0; i++) {
        path.depth = 0;
        if (pg_is_leaf(roots[i]) || roots[i]->mark - order->epoch <= 1) continue;
        found = go_down(order, &path, roots[i]);
        if (!found) found = go_on(order, &path, run);
        for (size_t k = 0; k < path.depth && found > 0; k++) path.steps[k].node->mark = order->epoch + 1;
    }
    PyMem_Free(path.steps);
    return found < 0 ? -1 : 0;
}
