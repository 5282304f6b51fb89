/* py_node.h: the node of the eager graph, its allocation, its teardown, and the mode of the thread.
 * Owns the struct; knows the op table, not what any op computes. Next: py_record.c makes nodes, py_scan.c walks them. */
#ifndef PG_PY_NODE_H
#define PG_PY_NODE_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>

#include "ops.h"

#ifdef Py_GIL_DISABLED
#error "pygrad keeps its graph consistent by the GIL: build it for a Python that has one"
#endif

#if defined(__GNUC__) || defined(__clang__)
#define PG_LIKELY(x) __builtin_expect(!!(x), 1)
#define PG_UNLIKELY(x) __builtin_expect(!!(x), 0)
#define PG_PREFETCH(address) __builtin_prefetch(address, 1)
#define PG_NOINLINE __attribute__((noinline))
#define PG_INLINE static inline __attribute__((always_inline)) /* one copy for each constant that it is called with */
#else
#define PG_LIKELY(x) (x)
#define PG_UNLIKELY(x) (x)
#define PG_PREFETCH(address) ((void)(address))
#define PG_NOINLINE
#define PG_INLINE static inline
#endif

typedef struct pg_node pg_node;
typedef struct pg_many pg_many;
typedef struct pg_capture pg_capture;

/* An operand: a node (owned), or a number kept inline where the operand does not require a gradient. */
typedef union {
    pg_node *node;
    double constant;
    pg_many *many; /* in[0] of a node with PG_MANY */
    uint64_t run;  /* in[2] of a leaf: Note [Runs] in py_order.h */
} pg_operand;

/* Note [Node]. A node is its Python object: 64 bytes, one cache line, no dict. Edges go from child to parent alone.
 * `seen` is the sum of the operands' versions when the node was made, so that backward notices an operand whose data
 * were written since; `mark` is the epoch of the last walk that met the node. A leaf has no operands and keeps in
 * in[0] the node of its gradient and in in[1] (borrowed) its stand-in, after backward(create_graph=True), and in in[2]
 * when it was made. */
typedef struct {
    uint8_t op, flags, version, seen;
    uint32_t mark;
} pg_head;

struct pg_node {
    PyObject_HEAD
    double data;
    double grad;
    union {
        struct {
            uint8_t op, flags, version, seen;
            uint32_t mark;
        };
        pg_head head; /* the same, set as one */
    };
    pg_operand in[PG_MAX_ARITY];
};

/* A node with a header of the collector: it lives by itself, so its position and its neighbours are kept with it. */
typedef struct pg_collected_node pg_collected_node;
struct pg_collected_node {
    pg_node node;
    uint64_t position;
    pg_collected_node *younger, *older;
};

enum {
    PG_REQUIRES_GRAD = 1,
    PG_COLLECTED = 2,      /* has a header of the cyclic collector: see Note [Cycles] */
    PG_CONST0 = 4,         /* in[0] is no node but a constant, or absent; PG_CONST0 << i for in[i] */
    PG_CONST1 = 8,
    PG_CONST2 = 16,
    PG_CONSTANTS = PG_CONST0 | PG_CONST1 | PG_CONST2,
    PG_MANY = 32,          /* operands are in a block of their own */
    PG_NOTED = 64,         /* a leaf with a gradient node or stand-in; a stand-in; an op whose place is noted */
    PG_AMONG_LEAVES = 128  /* lives in a slab of leaves */
};

/* The operands of an n-ary node. After operand[count] come count bytes: 1 where the operand is a node. */
struct pg_many {
    Py_ssize_t count;
    uint64_t seen;      /* as in a node, but not modulo 256: many operands may have been written once each */
    pg_many *next;      /* in the list of those whose closure is to be dropped */
    PyObject *closure;  /* leaf: the user's backward_fn or NULL; custom: the op; else NULL */
    pg_operand operand[];
};

static inline uint8_t *pg_many_is_node(pg_many *many) { return (uint8_t *)(many->operand + many->count); }

extern PyTypeObject pg_value_type;
extern uint8_t pg_arity[PG_OP_COUNT]; /* of what has its operands in the node: one cache line or two */
extern uint8_t pg_saved[PG_OP_COUNT];

/* How often the walks look for signals: whenever these bits of a counter are all alike. */
enum { PG_SIGNAL_MASK = (1 << 14) - 1 };

#define PG_IS_VALUE(object) (Py_TYPE(object) == &pg_value_type)

PyObject *pg_leaf_gradient(pg_node *leaf); /* the node of its gradient, or NULL (borrowed) */
static inline const char *pg_op_name(const pg_node *node) {
    return pg_ops[node->op == PG_OP_released ? node->seen : node->op].name;
}
PyObject *pg_op_label(const pg_node *node); /* the same as a str; of a custom op, the name that the user gave it */
static inline int pg_is_leaf(const pg_node *node) { return node->op == PG_OP_leaf; }

/* Note [Operand mask]. Bit i is set where in[i] is a node; a stand-in's is borrowed. No loop over operands asks for
 * the arity: it takes the lowest bit off the mask until nothing is left. */
static inline unsigned pg_operand_mask(const pg_node *node) { return (~(unsigned)node->flags / PG_CONST0) & 7; }
static inline unsigned pg_lowest(unsigned mask) { return mask & 1 ? 0 : mask & 2 ? 1 : 2; }

/* ---- the mode of a thread. pg_unusual counts the threads in which something is not as usual, so that making a node
 * looks at one global and no thread-local while nothing is. ---- */
typedef struct {
    int no_grad;  /* nothing is recorded; during a capture, as frozen */
    int anomaly;  /* depth of detect_anomaly */
    int tracing;  /* depth of transforms */
    pg_capture *capture; /* the innermost under way, or NULL: py_capture.h */
} pg_mode;
extern _Thread_local pg_mode pg_thread;
extern long pg_unusual;
extern size_t pg_writes; /* counts what changes nodes that exist: a pickle under way tells by it whether it is stale */
void pg_set_no_grad(int no_grad);
void pg_enter_anomaly(void);
void pg_leave_anomaly(void);

int pg_place_note(pg_node *node, PyObject *place);
PyObject *pg_place_of(pg_node *node); /* borrowed; NULL without an error where nothing was noted */
void pg_place_forget(pg_node *node);
int pg_places_noted(void); /* whether any is */
void pg_stand_in_unlink(pg_node *stand_in); /* it becomes a leaf of its own */

/* ---- allocation ---- */
pg_node *pg_node_alloc_collected(void);
void pg_node_track(pg_node *node); /* once its fields are set */
pg_many *pg_many_new(Py_ssize_t count);
void pg_node_dealloc(PyObject *self);
int pg_node_traverse(PyObject *self, visitproc visit, void *arg);
int pg_node_clear(PyObject *self);
int pg_node_is_collected(PyObject *self);
size_t pg_collected_count(void);
void pg_collected_clear_marks(void);
uint64_t pg_position(const pg_node *node); /* in the order of creation; of an op's node, not of a leaf */

/* Drops the operands of a node that stays: afterwards its op is PG_OP_released. With `graveyard` the references go to that
 * list instead, since a walk further out may still need what they hold. */
int pg_node_release(pg_node *node, PyObject *graveyard);

#endif
