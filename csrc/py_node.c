/* py_node.c: how nodes go, and the nodes of the cyclic collector. Owns teardown and the mode of the thread.
 * Knows no arithmetic. See Note [Node] in py_node.h. */
#include "py_node.h"

#include "py_heap.h"

uint8_t pg_arity[PG_OP_COUNT];
uint8_t pg_saved[PG_OP_COUNT];

/* ---- mode ---- */

_Thread_local pg_mode pg_thread;
long pg_unusual;
size_t pg_writes;

void pg_set_no_grad(int no_grad) {
    pg_unusual += (no_grad != 0) - (pg_thread.no_grad != 0);
    pg_thread.no_grad = no_grad != 0;
}

void pg_enter_anomaly(void) {
    pg_thread.anomaly++;
    pg_unusual++;
}

void pg_leave_anomaly(void) {
    pg_thread.anomaly--;
    pg_unusual--;
}

/* ---- places: where a node was made, kept while anomalies are looked for ---- */

static PyObject *places; /* {address: (file, line, function)} */

int pg_place_note(pg_node *node, PyObject *place) {
    if (!places && !(places = PyDict_New())) return -1;
    PyObject *key = PyLong_FromVoidPtr(node);
    if (!key) return -1;
    int failed = PyDict_SetItem(places, key, place);
    Py_DECREF(key);
    if (!failed) node->flags |= PG_NOTED;
    return failed;
}

PyObject *pg_place_of(pg_node *node) {
    PyObject *key = places ? PyLong_FromVoidPtr(node) : NULL;
    if (!key) return NULL;
    PyObject *place = PyDict_GetItemWithError(places, key);
    Py_DECREF(key);
    return place;
}

int pg_places_noted(void) { return places && PyDict_GET_SIZE(places) > 0; }

void pg_place_forget(pg_node *node) {
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    PyObject *key = PyLong_FromVoidPtr(node);
    if (!key || PyDict_DelItem(places, key) < 0) PyErr_Clear();
    Py_XDECREF(key);
    PyErr_Restore(type, value, trace);
}

/* ---- Note [Cycles]. Edges go from child to parent, so a cycle needs a closure of the user's that names a node made
 * later. Only nodes that carry a closure, and what is computed from them, have a header of the cyclic collector and
 * are tracked; the type has tp_is_gc to tell the two kinds apart. ---- */

static pg_collected_node *all_collected; /* the youngest */
static size_t collected_nodes;

pg_node *pg_node_alloc_collected(void) {
    uint64_t position = pg_position_take();
    if (position == UINT64_MAX) return NULL;
    pg_collected_node *made = PyObject_GC_New(pg_collected_node, &pg_value_type);
    if (!made) return NULL;
    made->position = position;
    made->younger = NULL;
    made->older = all_collected;
    if (all_collected) all_collected->younger = made;
    all_collected = made;
    collected_nodes++;
    return &made->node;
}

static void collected_free(pg_node *node) {
    pg_collected_node *gone = (pg_collected_node *)node;
    *(gone->younger ? &gone->younger->older : &all_collected) = gone->older;
    if (gone->older) gone->older->younger = gone->younger;
    collected_nodes--;
    PyObject_GC_Del(node);
}

uint64_t pg_position(const pg_node *node) {
    return node->flags & PG_COLLECTED ? ((const pg_collected_node *)node)->position : pg_position_in_slab(node);
}

size_t pg_collected_count(void) { return collected_nodes; }

void pg_collected_clear_marks(void) {
    for (pg_collected_node *node = all_collected; node; node = node->older) node->node.mark = 0;
}

void pg_node_track(pg_node *node) { PyObject_GC_Track((PyObject *)node); }

int pg_node_is_collected(PyObject *self) { return (((pg_node *)self)->flags & PG_COLLECTED) != 0; }

pg_many *pg_many_new(Py_ssize_t count) {
    if (count > (PY_SSIZE_T_MAX - (Py_ssize_t)sizeof(pg_many)) / ((Py_ssize_t)sizeof(pg_operand) + 1)) {
        PyErr_NoMemory();
        return NULL;
    }
    pg_many *many = PyMem_Malloc(sizeof(pg_many) + (size_t)count * (sizeof(pg_operand) + 1));
    if (!many) {
        PyErr_NoMemory();
        return NULL;
    }
    many->count = count;
    many->seen = 0;
    many->next = NULL;
    many->closure = NULL;
    return many;
}

int pg_node_traverse(PyObject *self, visitproc visit, void *arg) {
    pg_node *node = (pg_node *)self;
    if (node->flags & PG_MANY) {
        pg_many *many = node->in[0].many;
        Py_VISIT(many->closure);
        for (Py_ssize_t i = 0; i < many->count; i++)
            if (pg_many_is_node(many)[i]) Py_VISIT(many->operand[i].node);
    }
    for (unsigned mask = pg_operand_mask(node); mask; mask &= mask - 1) Py_VISIT(node->in[pg_lowest(mask)].node);
    return 0;
}

/* The closure closes the cycle; the parents stay, so that a node seen by a finalizer is still whole. */
int pg_node_clear(PyObject *self) {
    pg_node *node = (pg_node *)self;
    if (node->flags & PG_MANY) Py_CLEAR(node->in[0].many->closure);
    return 0;
}

PyObject *pg_op_label(const pg_node *node) {
    if (node->op != PG_OP_custom || !(node->flags & PG_MANY)) return PyUnicode_FromString(pg_op_name(node));
    return PyObject_GetAttrString(node->in[0].many->closure, "__name__");
}

PyObject *pg_leaf_gradient(pg_node *leaf) {
    return pg_is_leaf(leaf) && (leaf->flags & PG_NOTED) ? (PyObject *)leaf->in[0].node : NULL;
}

/* ---- Note [Teardown]. Freeing a node drops its parents, which may free them, and so on, ten million deep. So a node
 * that dies while another is being freed waits in a list, linked through `grad`, and the outermost call drains it. No
 * code of the user's runs while a node without references waits: closures are dropped afterwards, one by one, by the
 * outermost call again, and may make and free nodes as they like. ---- */

static pg_node *pending;
static int draining;

static inline void pending_push(pg_node *node) {
    memcpy(&node->grad, &pending, sizeof pending);
    pending = node;
}

static inline pg_node *pending_pop(void) {
    pg_node *node = pending;
    memcpy(&pending, &node->grad, sizeof pending);
    return node;
}

static inline void drop(pg_node *parent) {
#if defined(Py_REF_DEBUG) || defined(Py_TRACE_REFS)
    Py_DECREF(parent);
#else
    if (--parent->ob_base.ob_refcnt > 0) return;
    if (parent->flags & PG_COLLECTED) PyObject_GC_UnTrack(parent); /* what waits is not for the collector to see */
    pending_push(parent);
#endif
}

void pg_stand_in_unlink(pg_node *stand_in) {
    stand_in->flags = (uint8_t)((stand_in->flags & ~PG_NOTED) | PG_CONSTANTS);
    stand_in->op = PG_OP_leaf;
    stand_in->in[0].node = stand_in->in[1].node = NULL;
    stand_in->in[2].run = 0; /* as old as can be */
}

/* A stand-in and its leaf know each other by borrowed links: whoever goes first takes the link away. */
static void unlink_noted(pg_node *node) {
    if (node->op == PG_OP_leaf) {
        if (node->in[1].node) pg_stand_in_unlink(node->in[1].node);
        if (node->in[0].node) drop(node->in[0].node);
    } else if (node->op == PG_OP_stand_in) {
        node->in[0].node->in[1].node = NULL;
    } else {
        pg_place_forget(node);
    }
}

static pg_many *condemned; /* blocks whose closure is to be dropped */
static int condemning;

static void drop_many(pg_node *node) {
    pg_many *many = node->in[0].many;
    node->flags &= (uint8_t)~PG_MANY;
    for (Py_ssize_t i = 0; i < many->count; i++)
        if (pg_many_is_node(many)[i]) drop(many->operand[i].node);
    if (many->closure) {
        many->next = condemned;
        condemned = many;
    } else {
        PyMem_Free(many);
    }
}

static inline void drop_operands(pg_node *node) {
    if (PG_UNLIKELY(node->flags & (PG_MANY | PG_NOTED))) {
        if (node->flags & PG_NOTED) unlink_noted(node);
        if (node->flags & PG_MANY) drop_many(node);
        if (node->op == PG_OP_stand_in) return;
    }
    unsigned mask = pg_operand_mask(node);
    if (mask & 1) drop(node->in[0].node);
    if (mask & 2) drop(node->in[1].node);
    if (mask & 4) drop(node->in[2].node);
}

/* Any node, with everything that may hang on it. */
static PG_NOINLINE void destroy(pg_node *node) {
    if (node->flags & PG_COLLECTED) {
        PyObject_GC_UnTrack(node);
        drop_operands(node);
        collected_free(node);
    } else {
        drop_operands(node);
        pg_heap_free(node);
    }
}

/* An operand's last reference may have been this one: then it is the next to go, or waits. */
static inline pg_node *drop_plain(pg_node *parent, pg_node *next) {
#if defined(Py_REF_DEBUG) || defined(Py_TRACE_REFS)
    drop(parent);
    return next;
#else
    if (--parent->ob_base.ob_refcnt > 0) return next;
    if (!next) return parent;
    pending_push(parent);
    return next;
#endif
}

/* Frees `node` and what waits. Nodes of ops with nothing special about them take the short way; how many have gone from
 * a slab is counted here and told to the slab when the next node is from another. */
static void drain(pg_node *node) {
    pg_slab *slab = NULL;
    uint32_t gone = 0;
    do {
        unsigned flags = node->flags;
        if (PG_UNLIKELY(flags & (PG_MANY | PG_NOTED | PG_COLLECTED | PG_AMONG_LEAVES))) {
            if (gone) pg_slab_lost(slab, gone);
            gone = 0;
            if ((flags & (PG_AMONG_LEAVES | PG_NOTED)) == PG_AMONG_LEAVES) pg_heap_free(node);
            else destroy(node);
            node = NULL;
        } else {
            pg_slab *its = pg_slab_of(node);
            pg_node *next = NULL;
            /* The last operand first: it is the youngest, so the way goes down through memory. */
            if (!(flags & PG_CONST2)) next = drop_plain(node->in[2].node, next);
            if (!(flags & PG_CONST1)) next = drop_plain(node->in[1].node, next);
            if (!(flags & PG_CONST0)) next = drop_plain(node->in[0].node, next);
            if (its != slab && gone) {
                pg_slab_lost(slab, gone);
                gone = 0;
            }
            slab = its;
            PG_PREFETCH(node - 8); /* older nodes are below, and go next */
            gone++; /* its mark stays: no later walk has the same epoch */
            PG_POISON(node);
            node = next;
        }
        if (!node && pending) node = pending_pop();
    } while (node);
    if (gone) pg_slab_lost(slab, gone);
}

void pg_node_dealloc(PyObject *self) {
    unsigned flags = ((pg_node *)self)->flags;
    if ((flags & (PG_AMONG_LEAVES | PG_NOTED)) == PG_AMONG_LEAVES) { /* nothing hangs on it */
        pg_heap_free((pg_node *)self);
        return;
    }
    if (draining) {
        if (flags & PG_COLLECTED) PyObject_GC_UnTrack(self);
        pending_push((pg_node *)self);
        return;
    }
    draining = 1;
    drain((pg_node *)self);
    draining = 0;
    if (condemning) return;
    condemning = 1;
    while (condemned) {
        pg_many *many = condemned;
        condemned = many->next;
        Py_DECREF(many->closure);
        PyMem_Free(many);
    }
    condemning = 0;
}

/* Its operands and closure, owned by the list from now on as well: 0, or -1 with an error. */
static int bury(pg_node *node, PyObject *graveyard) {
    for (unsigned mask = pg_operand_mask(node); mask; mask &= mask - 1)
        if (PyList_Append(graveyard, (PyObject *)node->in[pg_lowest(mask)].node) < 0) return -1;
    pg_many *many = node->flags & PG_MANY ? node->in[0].many : NULL;
    for (Py_ssize_t i = 0; many && i < many->count; i++)
        if (pg_many_is_node(many)[i] && PyList_Append(graveyard, (PyObject *)many->operand[i].node) < 0) return -1;
    return many && many->closure ? PyList_Append(graveyard, many->closure) : 0;
}

int pg_node_release(pg_node *node, PyObject *graveyard) {
    if (pg_is_leaf(node) || node->op == PG_OP_stand_in || node->op == PG_OP_released) return 0;
    if (graveyard && bury(node, graveyard) < 0) return -1;
    pg_many *many = node->flags & PG_MANY ? node->in[0].many : NULL;
    unsigned mask = pg_operand_mask(node);
    node->flags = (uint8_t)((node->flags & ~PG_MANY) | PG_CONSTANTS);
    node->seen = node->op; /* whose versions no longer matter */
    node->op = PG_OP_released;
    for (; mask; mask &= mask - 1) Py_DECREF(node->in[pg_lowest(mask)].node);
    if (!many) return 0;
    for (Py_ssize_t i = 0; i < many->count; i++)
        if (pg_many_is_node(many)[i]) Py_DECREF(many->operand[i].node);
    Py_XDECREF(many->closure);
    PyMem_Free(many);
    return 0;
}
