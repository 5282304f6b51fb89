/* py_heap.h: where nodes live. Owns slabs and regions, and the position of a node in the order of creation.
 * Knows no op and no operand. */
#ifndef PG_PY_HEAP_H
#define PG_PY_HEAP_H

#include <stddef.h>

#include "py_node.h"

/* Note [Slabs]. Regions of 2 MiB are cut into slabs of 64 KiB, aligned to their size, so that a node finds its slab by
 * a mask. There are two kinds.
 *   - Slabs of ops are filled from the bottom up and never refilled: within one, address order is the order of creation,
 *     and the slabs are linked in that order. So the walk needs no sort: see Note [Order] in py_graph.c. Once its last
 *     node is gone a slab starts afresh, or goes back to its region; a graph goes as a whole, so that is soon.
 *   - Slabs of leaves, which may live long beside short-lived graphs, have a list of freed nodes.
 * A region without slabs in use goes back to the system, but for a few. */
enum {
    PG_SLAB_BYTES = 1 << 16,
    PG_REGION_BYTES = 2 << 20,
    PG_SLABS_A_REGION = PG_REGION_BYTES / PG_SLAB_BYTES,
    PG_SLAB_HEADER = 2 * sizeof(pg_node),
    PG_SLAB_NODES = (PG_SLAB_BYTES - PG_SLAB_HEADER) / sizeof(pg_node)
};

typedef struct pg_slab pg_slab;
struct pg_slab {
    char *bump, *end;         /* nodes never used yet */
    pg_node *free;            /* leaves: freed nodes, linked through their first word */
    uint64_t base;            /* ops: position of the slab's first node in the order of creation */
    pg_slab *previous, *next; /* ops: in the order of creation; leaves: with room */
    uint32_t gone;            /* ops: nodes freed since it started afresh; leaves: nodes alive */
    uint32_t reached;         /* epoch of the last walk that reached a node here */
    uint32_t spent;           /* ops: nodes spent by the walk under way: Note [Spending] in py_scan.c */
    uint8_t of_leaves;
    uint8_t listed;           /* leaves: current, or among those with room */
};

extern pg_slab *pg_slab_of_ops, *pg_slab_of_leaves; /* the current ones */

static inline pg_slab *pg_slab_of(const pg_node *node) {
    return (pg_slab *)((uintptr_t)node & ~(uintptr_t)(PG_SLAB_BYTES - 1));
}
static inline pg_node *pg_slab_nodes(pg_slab *slab) { return (pg_node *)((char *)slab + PG_SLAB_HEADER); }

/* Large buffers that go back to the system, touched no further than they are used; NULL without an error where there is
 * no memory. */
void *pg_pages_alloc(size_t bytes);
void pg_pages_free(void *start, size_t bytes);

pg_node *pg_alloc_op_slow(void);
pg_node *pg_alloc_leaf_slow(void);
void pg_slab_of_ops_emptied(pg_slab *slab);
void pg_slab_of_leaves_changed(pg_slab *slab); /* unlisted, or emptied */
/* A position after those of all nodes made so far, for a node that lives elsewhere; UINT64_MAX with MemoryError. */
uint64_t pg_position_take(void);
/* Data of a node that exists are written: no node made so far is known to be fresh. See Note [Scan] in py_scan.c. */
extern uint64_t pg_written_at; /* the position of the first node that is younger */
void pg_note_write(void);
void pg_heap_clear_marks(void);                /* of every node in a slab */
void pg_heap_stats(size_t *regions, size_t *live); /* counts slab by slab */

/* In sanitizer builds a freed node is poisoned, but for the word with `mark`, which walks look at. */
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define __SANITIZE_ADDRESS__ 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
_Static_assert(offsetof(pg_node, mark) / 8 == 4 && sizeof(pg_node) == 64, "the word that stays readable");
#include <sanitizer/asan_interface.h>
#define PG_POISONS
#define PG_POISON(node) (ASAN_POISON_MEMORY_REGION(node, 32), ASAN_POISON_MEMORY_REGION((char *)(node) + 40, 24))
#define PG_UNPOISON(node) ASAN_UNPOISON_MEMORY_REGION(node, sizeof(pg_node))
#define PG_UNPOISON_SLAB(slab) ASAN_UNPOISON_MEMORY_REGION(slab, PG_SLAB_BYTES)
#else
#define PG_POISON(node) ((void)(node))
#define PG_UNPOISON(node) ((void)(node))
#define PG_UNPOISON_SLAB(slab) ((void)(slab))
#endif

static inline uint64_t pg_position_in_slab(const pg_node *node) {
    pg_slab *slab = pg_slab_of(node);
    return slab->base + (uint64_t)(node - pg_slab_nodes(slab));
}

static inline pg_node *pg_node_init(pg_node *node) {
    PG_UNPOISON(node);
#ifdef Py_TRACE_REFS
    return (pg_node *)PyObject_Init((PyObject *)node, &pg_value_type);
#else
    /* Not Py_SET_REFCNT: from Python 3.12 on it looks at the old count first, which here is what was left in memory. */
    node->ob_base = (PyObject){.ob_refcnt = 1, .ob_type = &pg_value_type};
    return node;
#endif
}

/* A node with its object header set and nothing else: of an op, or a leaf. */
static inline pg_node *pg_alloc_op(void) {
    pg_slab *slab = pg_slab_of_ops;
    pg_node *node = (pg_node *)slab->bump;
    if (PG_UNLIKELY(slab->bump == slab->end)) return pg_alloc_op_slow();
    slab->bump += sizeof(pg_node);
    PG_PREFETCH(node + 4); /* made next */
    return pg_node_init(node);
}

static inline pg_node *pg_alloc_leaf(void) {
    pg_slab *slab = pg_slab_of_leaves;
    pg_node *node = slab->free;
    if (PG_UNLIKELY(!node)) return pg_alloc_leaf_slow();
    PG_UNPOISON(node);
    slab->free = *(pg_node **)node;
    slab->gone++;
    return pg_node_init(node);
}

/* Tells a slab of ops that `count` of its nodes have gone. */
static inline void pg_slab_lost(pg_slab *slab, uint32_t count) {
    slab->gone += count;
    if (PG_UNLIKELY((char *)(pg_slab_nodes(slab) + slab->gone) == slab->bump)) pg_slab_of_ops_emptied(slab);
}

static inline void pg_heap_free(pg_node *node) {
    pg_slab *slab = pg_slab_of(node);
    node->mark = 0; /* no walk has reached what is not there */
    if (PG_UNLIKELY(slab->of_leaves)) {
        *(pg_node **)node = slab->free;
        slab->free = node;
        PG_POISON(node);
        if (PG_UNLIKELY(--slab->gone == 0 || !slab->listed)) pg_slab_of_leaves_changed(slab);
        return;
    }
    PG_POISON(node);
    pg_slab_lost(slab, 1);
}

#endif
