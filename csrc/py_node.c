/* py_node.c: where nodes come from and how they go. Owns slabs, teardown, the mode of the thread.
 * Knows no op and no arithmetic. See Note [Node] in py_node.h. */
#if defined(__linux__) && !defined(_GNU_SOURCE)
#define _GNU_SOURCE
#endif
#include "py_node.h"

#if defined(__unix__) || defined(__APPLE__)
#include <sys/mman.h>
#define PG_HAVE_MMAP 1
#else
#include <malloc.h>
#define PG_HAVE_MMAP 0
#endif

enum { SLAB_BYTES = 2 << 20, EMPTY_KEPT = 16 };

uint8_t pg_arity[PG_OP_COUNT];
uint8_t pg_saved[PG_OP_COUNT];

/* ---- mode ---- */

_Thread_local pg_mode pg_thread;
long pg_unusual;

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

void pg_place_forget(pg_node *node) {
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    PyObject *key = PyLong_FromVoidPtr(node);
    if (!key || PyDict_DelItem(places, key) < 0) PyErr_Clear();
    Py_XDECREF(key);
    PyErr_Restore(type, value, trace);
}

/* ---- pages: large buffers that are given back to the system, touched no further than they are used ---- */

static inline void advise_huge(void *start, size_t bytes) {
#ifdef MADV_HUGEPAGE
    madvise(start, bytes, MADV_HUGEPAGE);
#else
    (void)start, (void)bytes;
#endif
}

void *pg_pages_alloc(size_t bytes) {
#if PG_HAVE_MMAP
    void *start = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (start == MAP_FAILED) return NULL;
    if (bytes > SLAB_BYTES) advise_huge(start, bytes);
    return start;
#else
    return malloc(bytes);
#endif
}

void pg_pages_free(void *start, size_t bytes) {
    if (!start) return;
#if PG_HAVE_MMAP
    munmap(start, bytes);
#else
    (void)bytes;
    free(start);
#endif
}

/* ---- Note [Slabs]. Nodes come from slabs of 2 MiB, aligned to their size, so that a node finds its slab by a mask.
 * A slab has a list of freed nodes and a pointer to what was never used; when its last node goes it starts afresh, so
 * that the next graph is laid out in order. A few empty slabs are kept, the rest go back to the system. ---- */

static size_t collected_nodes;

#ifdef PG_PLAIN_MALLOC /* sanitizer builds: every node is an allocation that the sanitizer sees */

static pg_slab no_slab;
pg_slab *pg_current_slab = &no_slab;
static size_t live_nodes;

pg_node *pg_node_alloc_slow(void) {
    pg_node *node = malloc(sizeof(pg_node));
    if (!node) return (pg_node *)PyErr_NoMemory();
    live_nodes++;
    return (pg_node *)PyObject_Init((PyObject *)node, &pg_value_type);
}

static void node_free(pg_node *node) {
    live_nodes--;
    free(node);
}

void pg_heap_stats(size_t *slabs, size_t *live) {
    *slabs = 0;
    *live = live_nodes + collected_nodes;
}

#else

static pg_slab no_slab; /* always full: stands in until the first node is made */
pg_slab *pg_current_slab = &no_slab;
static pg_slab *with_room; /* slabs with free nodes, but for the current one */
static pg_slab *empty;     /* slabs without nodes, singly linked */
static int empty_count;
static pg_slab *all_slabs;
static size_t slab_count;

static void *slab_map(void) {
#if PG_HAVE_MMAP
    /* Twice as much, then the ends cut off: mmap aligns to pages only. A small program stays small: no huge page yet. */
    char *raw = mmap(NULL, 2 * SLAB_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (raw == MAP_FAILED) return NULL;
    char *start = (char *)(((uintptr_t)raw + SLAB_BYTES - 1) & ~(uintptr_t)(SLAB_BYTES - 1));
    if (start > raw) munmap(raw, (size_t)(start - raw));
    char *end = start + SLAB_BYTES;
    if (raw + 2 * SLAB_BYTES > end) munmap(end, (size_t)(raw + 2 * SLAB_BYTES - end));
    if (slab_count > 0) advise_huge(start, SLAB_BYTES);
    return start;
#else
    return _aligned_malloc(SLAB_BYTES, SLAB_BYTES);
#endif
}

static void slab_unmap(pg_slab *slab) {
#if PG_HAVE_MMAP
    munmap(slab, SLAB_BYTES);
#else
    _aligned_free(slab);
#endif
}

static void slab_reset(pg_slab *slab) {
    slab->free = NULL;
    slab->bump = (char *)slab + sizeof(pg_node) * ((sizeof(pg_slab) + sizeof(pg_node) - 1) / sizeof(pg_node));
    slab->end = (char *)slab + SLAB_BYTES;
}

static void list_remove(pg_slab *slab) {
    if (slab->previous) slab->previous->next = slab->next;
    else with_room = slab->next;
    if (slab->next) slab->next->previous = slab->previous;
}

static void list_add(pg_slab *slab) {
    slab->previous = NULL;
    slab->next = with_room;
    if (with_room) with_room->previous = slab;
    with_room = slab;
    slab->listed = 1;
}

/* The current slab is full: take an empty one, else one with room, else a new one. */
pg_node *pg_node_alloc_slow(void) {
    pg_slab *slab;
    if (empty) {
        slab = empty;
        empty = slab->next;
        empty_count--;
    } else if (with_room) {
        slab = with_room;
        list_remove(slab);
    } else {
        slab = slab_map();
        if (!slab) return (pg_node *)PyErr_NoMemory();
        slab_count++;
        slab->live = 0;
        slab->previous_of_all = NULL;
        slab->next_of_all = all_slabs;
        if (all_slabs) all_slabs->previous_of_all = slab;
        all_slabs = slab;
        slab_reset(slab);
    }
    slab->listed = 1;
    pg_current_slab->listed = 0;
    pg_current_slab = slab;
    return pg_node_alloc();
}

static void slab_emptied(pg_slab *slab) {
    slab_reset(slab);
    if (slab == pg_current_slab) return;
    list_remove(slab);
    if (empty_count < EMPTY_KEPT) {
        slab->next = empty;
        empty = slab;
        empty_count++;
    } else {
        slab_count--;
        if (slab->previous_of_all) slab->previous_of_all->next_of_all = slab->next_of_all;
        else all_slabs = slab->next_of_all;
        if (slab->next_of_all) slab->next_of_all->previous_of_all = slab->previous_of_all;
        slab_unmap(slab);
    }
}

static inline void node_free(pg_node *node) {
    pg_slab *slab = (pg_slab *)((uintptr_t)node & ~(uintptr_t)(SLAB_BYTES - 1));
    *(pg_node **)node = slab->free;
    slab->free = node;
    slab->live--;
    if (PG_UNLIKELY(!slab->listed)) list_add(slab);
    if (PG_UNLIKELY(slab->live == 0)) slab_emptied(slab);
}

void pg_heap_stats(size_t *slabs, size_t *live) {
    *slabs = slab_count;
    *live = collected_nodes;
    for (pg_slab *slab = all_slabs; slab; slab = slab->next_of_all) *live += (size_t)slab->live;
}

#endif

/* ---- Note [Cycles]. Edges go from child to parent, so a cycle needs a closure of the user's that names a node made
 * later. Only nodes that carry a closure, and what is computed from them, have a header of the cyclic collector and
 * are tracked; the type has tp_is_gc to tell the two kinds apart. ---- */

pg_node *pg_node_alloc_collected(void) {
    pg_node *node = PyObject_GC_New(pg_node, &pg_value_type);
    if (!node) return NULL;
    collected_nodes++;
    return node;
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
    many->cursor = 0;
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

PyObject *pg_leaf_gradient(pg_node *leaf) {
    return pg_is_leaf(leaf) && (leaf->flags & PG_NOTED) ? (PyObject *)leaf->in[0].node : NULL;
}

/* ---- Note [Teardown]. Freeing a node drops its parents, which may free them, and so on, ten million deep. So a node
 * that dies while another is being freed goes on a list, linked through `grad`, and the outermost call drains it.
 * A closure is dropped before anything else of its node: it runs code of the user's, which may make and free nodes. */

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
    Py_ssize_t count = Py_REFCNT(parent) - 1;
    Py_SET_REFCNT((PyObject *)parent, count);
    if (count == 0) pending_push(parent);
#endif
}

/* A stand-in and its leaf know each other by borrowed links: whoever goes first takes the link away. */
static void unlink_noted(pg_node *node) {
    if (node->op == PG_OP_leaf) {
        pg_node *stand_in = node->in[1].node;
        if (stand_in) {
            stand_in->flags &= (uint8_t)~PG_NOTED;
            stand_in->op = PG_OP_leaf;
            stand_in->flags |= PG_CONSTANTS;
            stand_in->in[0].node = stand_in->in[1].node = NULL;
        }
        if (node->in[0].node) drop(node->in[0].node);
    } else if (node->op == PG_OP_stand_in) {
        node->in[0].node->in[1].node = NULL;
    } else {
        pg_place_forget(node);
    }
}

static void drop_many(pg_node *node) {
    pg_many *many = node->in[0].many;
    node->flags &= (uint8_t)~PG_MANY;
    if (many->closure) Py_DECREF(many->closure);
    for (Py_ssize_t i = 0; i < many->count; i++)
        if (pg_many_is_node(many)[i]) drop(many->operand[i].node);
    PyMem_Free(many);
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

static inline void node_destroy(pg_node *node) {
    if (PG_UNLIKELY(node->flags & PG_COLLECTED)) {
        drop_operands(node);
        collected_nodes--;
        PyObject_GC_Del(node);
        return;
    }
    drop_operands(node);
    node_free(node);
}

void pg_node_dealloc(PyObject *self) {
    pg_node *node = (pg_node *)self;
    if (PG_UNLIKELY(node->flags & PG_COLLECTED)) PyObject_GC_UnTrack(self);
    if (draining) {
        pending_push(node);
        return;
    }
    draining = 1;
    node_destroy(node);
    while (pending) {
        node = pending_pop();
        if (PG_UNLIKELY(node->flags & PG_COLLECTED)) PyObject_GC_UnTrack(node);
        node_destroy(node);
    }
    draining = 0;
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
    if (pg_is_leaf(node) || node->op == PG_OP_stand_in || (node->flags & PG_RELEASED)) return 0;
    if (graveyard && bury(node, graveyard) < 0) return -1;
    pg_many *many = node->flags & PG_MANY ? node->in[0].many : NULL;
    unsigned mask = pg_operand_mask(node);
    node->flags = (uint8_t)((node->flags & ~PG_MANY) | PG_CONSTANTS | PG_RELEASED);
    for (; mask; mask &= mask - 1) Py_DECREF(node->in[pg_lowest(mask)].node);
    if (!many) return 0;
    for (Py_ssize_t i = 0; i < many->count; i++)
        if (pg_many_is_node(many)[i]) Py_DECREF(many->operand[i].node);
    Py_XDECREF(many->closure);
    PyMem_Free(many);
    return 0;
}
