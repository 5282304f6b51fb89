/* py_scan.c: backward without a list. See py_scan.h.
 *
 * Nodes of ops lie in memory in the order of creation (Note [Slabs] in py_heap.h), which backwards is the order of
 * backward (Note [Order] in py_graph.c). So the walk goes down through memory from the root, steps on what has been
 * reached, and ends when all that was reached has been stepped on.
 *
 * Note [Scan]. `mark` says that a node has been reached in this walk; until then its gradient counts as 0.0. A leaf's
 * counts as it is, and a leaf is never stepped on. The slab of what is reached is marked too, so that slabs with
 * nothing in them are passed over. What is older than the last write to any node's data may be stale; younger nodes
 * need no look. No code of the user's runs here but signal handlers, between slabs: see Note [Walks] in py_order.h.
 *
 * Note [Spending]. Where nothing else holds the root, a transform gives it up, and the graph is freed on the way, for a
 * fraction of what a second pass would cost. The root starts with a count of 0. A node that is stepped on with a count of
 * 0 takes its reference off each operand, which may bring that one to 0 before its own step; a node with another holder
 * stays, and all below it. Memory goes back only once the walk has succeeded, slabs count their spent nodes until then,
 * so that a walk that ends early can give every reference back (look_back).
 */
#include "py_scan.h"

#include <string.h>

#include "py_graph.h"
#include "py_heap.h"
#include "py_order.h"
#include "scalar.h"

typedef struct {
    pg_node *root;
    uint32_t epoch;
    size_t remaining; /* nodes reached and not yet stepped on */
    pg_node *at;      /* where it ended */
    pg_many *blocks;  /* of spent nodes */
} scan;

/* How a walk ends: well, with an error, or meeting a leaf that was not marked beforehand, some operands of `at` having
 * been served; the last two also at a node of which nothing was. */
enum { DONE, FAILED, FAILED_BEFORE, MET_LEAF, MET_STAND_IN };

static inline int is_spent(const pg_node *node) { return node->ob_base.ob_refcnt == 0; }

#define PUT(target, contribution)                                               \
    do {                                                                        \
        pg_node *put_ = (target);                                               \
        int leaf_ = pg_is_leaf(put_), met_ = put_->mark == epoch;               \
        if (for_targets && PG_UNLIKELY(leaf_ & !met_)) LEAVE(MET_LEAF);         \
        int counts_ = for_targets ? met_ : met_ | leaf_;                        \
        double before_ = counts_ ? put_->grad : 0.0;                            \
        put_->grad = before_ + (contribution);                                  \
        put_->mark = epoch;                                                     \
        if (for_targets) put_->ob_base.ob_refcnt -= spent;                      \
        pg_slab_of(put_)->reached = epoch;                                      \
        remaining += !counts_;                                                  \
    } while (0)

/* The step of any node. */
static PG_NOINLINE int step(pg_node *node, scan *state, const int for_targets) {
    const uint32_t epoch = state->epoch;
    const int spent = is_spent(node);
    size_t remaining = state->remaining;
    double g = node->grad;
    unsigned flags = node->flags;
    switch (node->op) {
#define LEAVE(outcome) return outcome
#define STALE return FAILED_BEFORE
#define MAY_BE_STALE 1
#include "py_steps.inc"
#undef MAY_BE_STALE
#undef STALE
    case PG_OP_stand_in: /* its leaf is not its own to give up */
        if (for_targets && spent) return MET_STAND_IN;
        PUT(node->in[0].node, g);
        break;
    case PG_OP_sum:
    case PG_OP_dot:
        if (pg_check_fresh(node) < 0) return FAILED_BEFORE;
        for (Py_ssize_t i = 0; i < pg_operand_count(node); i++) {
            pg_node *operand = pg_operand_node(node, i);
            if (operand) PUT(operand, node->op == PG_OP_sum ? g : pg_zmul(g, pg_operand_data(node, i ^ 1)));
        }
        if (!spent) break;
        node->in[0].many->next = state->blocks;
        state->blocks = node->in[0].many;
        break;
    default: pg_released_error(node); return FAILED_BEFORE;
    }
#undef LEAVE
    state->remaining = remaining;
    return DONE;
}

PG_INLINE int scan_down(scan *state, const int for_targets) {
    const uint32_t epoch = state->epoch;
    pg_node *node = state->root, *first = node;
    pg_slab *slab = pg_slab_of(node);
    size_t remaining = 1;
    int outcome = DONE;
#define LEAVE(code)       \
    do {                  \
        outcome = (code); \
        goto leave;       \
    } while (0)
#define STALE LEAVE(FAILED_BEFORE)
    for (;;) {
        const int may_be_stale = slab->base < pg_written_at;
        uint32_t spent_here = 0;
        for (first = pg_slab_nodes(slab);; node--) {
            if (PG_LIKELY(node->mark == epoch)) {
                const int spent = for_targets ? is_spent(node) : 0;
                double g = node->grad;
                unsigned flags = node->flags;
                remaining--;
                switch (node->op) {
#define PG_ARITHMETIC_ONLY /* rows without calls in line, so that no registers are saved for them */
#define MAY_BE_STALE may_be_stale
#include "py_steps.inc"
#undef MAY_BE_STALE
#undef PG_ARITHMETIC_ONLY
                default:
                    state->remaining = remaining;
                    outcome = step(node, state, for_targets);
                    if (PG_UNLIKELY(outcome != DONE)) goto leave;
                    remaining = state->remaining;
                }
                spent_here += (uint32_t)spent;
                if (!remaining) break;
            }
            if (PG_UNLIKELY(node == first)) break;
        }
        if (for_targets) slab->spent = spent_here;
        if (!remaining) break;
        if (PyErr_CheckSignals() < 0) LEAVE(FAILED);
        do slab = slab->previous;
        while (slab && slab->reached != epoch);
        if (!slab) {
            PyErr_SetString(PyExc_SystemError, "pygrad: backward lost a node that it had reached");
            LEAVE(FAILED);
        }
        node = (pg_node *)slab->bump - 1;
    }
leave:
    state->at = node;
    return outcome;
}
#undef STALE
#undef LEAVE
#undef PUT

/* ---- what was spent ---- */

/* The slabs that the walk passed through, one after the other. */
static pg_slab *next_passed(pg_slab *slab, uint32_t epoch, int upwards) {
    do slab = upwards ? slab->next : slab->previous;
    while (slab && slab->reached != epoch);
    return slab;
}

static void free_spent(scan *state) {
    pg_slab *last = pg_slab_of(state->at), *slab = pg_slab_of(state->root), *next;
    for (; slab; slab = next) {
        next = slab == last ? NULL : next_passed(slab, state->epoch, 0);
#ifdef PG_POISONS
        for (pg_node *node = pg_slab_nodes(slab); (char *)node < slab->bump; node++)
            if (node->mark == state->epoch && is_spent(node)) PG_POISON(node);
#endif
        uint32_t spent = slab->spent;
        slab->spent = 0;
        if (spent) pg_slab_lost(slab, spent);
    }
    for (pg_many *block = state->blocks, *after; block; block = after) {
        after = block->next;
        PyMem_Free(block);
    }
}

/* Up to a leaf that the walk has not marked: there it ended. */
static void give_back_references(pg_node *node, uint32_t epoch) {
    for (Py_ssize_t i = 0; i < pg_operand_count(node); i++) {
        pg_node *operand = pg_operand_node(node, i);
        if (!operand) continue;
        if (pg_is_leaf(operand) && operand->mark != epoch) return;
        operand->ob_base.ob_refcnt++;
    }
}

/* From where the walk ended up to the root, so that a node's own count still tells whether it is spent: gives back the
 * references that were taken, and returns how many nodes were stepped on. */
static size_t look_back(scan *state, int at_served, int give_back) {
    pg_slab *last = pg_slab_of(state->root), *slab = pg_slab_of(state->at);
    pg_node *node = state->at + !at_served;
    for (size_t done = 0;;) {
        const char *end = slab == last ? (const char *)(state->root + 1) : slab->bump;
        slab->spent = 0;
        for (; (char *)node < end; node++) {
            if (node->mark != state->epoch) continue;
            if (give_back && is_spent(node)) give_back_references(node, state->epoch);
            done++;
        }
        if (slab == last) return done;
        slab = next_passed(slab, state->epoch, 1);
        node = pg_slab_nodes(slab);
    }
}

/* ---- the walks ---- */

int pg_can_scan(const pg_node *root) {
    return !(root->flags & PG_COLLECTED) && !pg_is_leaf(root) && !pg_walks && !pg_thread.anomaly;
}

static int begin(scan *state, pg_node *root, double grad) {
    *state = (scan){.root = root, .epoch = pg_epoch_begin()};
    if (!state->epoch || pg_walk_enter(state->epoch) < 0) return -1;
    root->mark = state->epoch;
    root->grad = grad;
    return 0;
}

int pg_scan(pg_node *root, double grad, size_t *done) {
    scan state;
    if (begin(&state, root, grad) < 0) return -1;
    int outcome = scan_down(&state, 0);
    if (outcome != DONE) *done = look_back(&state, outcome == FAILED, 0);
    pg_walk_leave(state.epoch);
    return outcome == DONE ? 0 : -1;
}

int pg_scan_targets(pg_node **root, double grad, pg_node *const *targets, size_t count, size_t *done) {
    scan state;
    if (begin(&state, *root, grad) < 0) return -1;
    for (size_t i = 0; i < count; i++) {
        targets[i]->mark = state.epoch;
        targets[i]->grad = 0.0;
    }
#if defined(Py_REF_DEBUG) || defined(Py_TRACE_REFS)
    const int last = 0; /* these count references themselves */
#else
    const int last = Py_REFCNT(*root) == 1 && !pg_places_noted();
#endif
    (*root)->ob_base.ob_refcnt -= last;
    int outcome = scan_down(&state, 1);
    if (outcome != DONE) {
        *done = look_back(&state, outcome == FAILED || outcome == MET_LEAF, last);
        (*root)->ob_base.ob_refcnt += last;
    } else if (last) {
        free_spent(&state);
        *root = NULL;
    }
    pg_walk_leave(state.epoch);
    return outcome == DONE ? 0 : outcome == MET_LEAF || outcome == MET_STAND_IN ? PG_MET_OTHER : -1;
}
