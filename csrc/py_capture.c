/* py_capture.c: the stack of captures, guards, dependence on the outside. See Note [Capture] in py_capture.h. */
#include "py_capture.h"

#include "py_heap.h"
#include "py_map.h"
#include "py_order.h"
#include "py_record.h"
#include "py_truth.h"
#include "scalar.h"

struct pg_capture {
    pg_capture *outer;
    PyObject *inputs; /* held, so that their addresses are not reused */
    PyObject *guards;
    PyObject *asked;  /* the nodes below which `known` was found, held likewise */
    pg_map known;     /* node -> whether it depends on the outside */
    PyObject *leaves; /* those made in this capture; at its end they become the outer one's */
    pg_map made;      /* the same, to be looked up */
    uint64_t since;   /* position of its first node of an op */
    int rolled;       /* of a part that will run more than once, or not at all: guards stay in it, with their places */
};

enum { OWN, OF_PART }; /* what `made` tells of a leaf: whether it was an input of a part that has ended */

/* ---- begin and end ---- */

static int check_inputs(PyObject *inputs) {
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(inputs); i++) {
        PyObject *input = PyList_GET_ITEM(inputs, i);
        int fits = PG_IS_VALUE(input) && pg_is_leaf((pg_node *)input) && ((pg_node *)input)->flags & PG_REQUIRES_GRAD;
        if (fits) continue;
        PyErr_Format(PyExc_TypeError, "capture: input %zd must be a leaf that requires a gradient, found %R", i, input);
        return -1;
    }
    return 0;
}

static void capture_free(pg_capture *capture) {
    pg_map_clear(&capture->known);
    pg_map_clear(&capture->made);
    Py_XDECREF(capture->inputs);
    Py_XDECREF(capture->guards);
    Py_XDECREF(capture->asked);
    Py_XDECREF(capture->leaves);
    PyMem_Free(capture);
}

int pg_capture_begin(PyObject *inputs, int rolled) {
    if (check_inputs(inputs) < 0) return -1;
    pg_capture *capture = PyMem_Calloc(1, sizeof *capture);
    if (!capture) return PyErr_NoMemory(), -1;
    capture->inputs = PyList_GetSlice(inputs, 0, PyList_GET_SIZE(inputs));
    capture->guards = PyList_New(0);
    capture->asked = PyList_New(0);
    capture->leaves = PyList_New(0);
    capture->since = pg_position_take();
    capture->rolled = rolled;
    if (capture->since == UINT64_MAX || !capture->inputs || !capture->guards || !capture->asked || !capture->leaves) {
        capture_free(capture);
        return -1;
    }
    capture->outer = pg_thread.capture;
    pg_thread.capture = capture;
    pg_unusual++;
    return 0;
}

PyObject *pg_capture_guards(void) { return pg_thread.capture->guards; }

int pg_capture_made(const pg_node *node) {
    const pg_capture *capture = pg_thread.capture;
    if (!capture) return 1;
    return pg_is_leaf(node) ? pg_map_get(&capture->made, node) >= 0 : pg_position(node) >= capture->since;
}

pg_capture *pg_capture_outer(const pg_capture *capture) { return capture->outer; }

static int note(pg_capture *capture, pg_node *leaf, int64_t what) {
    return PyList_Append(capture->leaves, (PyObject *)leaf) < 0 ? -1 : pg_map_set(&capture->made, leaf, what);
}

int pg_capture_note_leaf(pg_node *leaf) { return note(pg_thread.capture, leaf, OWN); }

int pg_capture_is_of_part(const pg_node *node) {
    return pg_thread.capture && pg_map_get(&pg_thread.capture->made, node) == OF_PART;
}

/* What the outer capture needs to know: all leaves are its own too, but the inputs of a part stand for many numbers. */
static int tell_outer(const pg_capture *capture) {
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(capture->leaves); i++) {
        pg_node *leaf = (pg_node *)PyList_GET_ITEM(capture->leaves, i);
        if (note(capture->outer, leaf, pg_map_get(&capture->made, leaf)) < 0) return -1;
    }
    for (Py_ssize_t i = 0; capture->rolled && i < PyList_GET_SIZE(capture->inputs); i++)
        if (note(capture->outer, (pg_node *)PyList_GET_ITEM(capture->inputs, i), OF_PART) < 0) return -1;
    return 0;
}

PyObject *pg_capture_end(void) {
    pg_capture *capture = pg_thread.capture;
    if (!capture) {
        PyErr_SetString(PyExc_RuntimeError, "capture: none is under way in this thread");
        return NULL;
    }
    pg_thread.capture = capture->outer;
    pg_unusual--;
    int failed = capture->outer && tell_outer(capture) < 0;
    PyObject *guards = capture->guards;
    capture->guards = NULL;
    capture_free(capture);
    if (failed) Py_CLEAR(guards);
    return guards;
}

/* ---- what depends on the outside: depth first, so that the way to a leaf outside is known to depend on it at once,
 * and later walks end where they meet it ---- */

typedef struct {
    pg_node *node;
    Py_ssize_t next; /* the operand to look at */
} step;

static int is_made_since(const pg_capture *capture, const pg_node *leaf) {
    for (const pg_capture *at = pg_thread.capture;; at = at->outer) {
        if (pg_map_get(&at->made, leaf) >= 0) return 1;
        if (at == capture) return 0;
    }
}

/* 1, 0, or -1 where that is not known yet. */
static int64_t look_up(const pg_capture *capture, const pg_node *node) {
    if (pg_operand_count(node) == 0) return !is_made_since(capture, node);
    return pg_map_get(&capture->known, node);
}

static int push(step **path, size_t *depth, size_t *capacity, pg_node *node) {
    if (*depth == *capacity) {
        size_t larger = *capacity ? 2 * *capacity : 256;
        step *moved = larger <= SIZE_MAX / sizeof **path ? PyMem_Realloc(*path, larger * sizeof **path) : NULL;
        if (!moved) return PyErr_NoMemory(), -1;
        *path = moved;
        *capacity = larger;
    }
    (*path)[(*depth)++] = (step){node, 0};
    return 0;
}

/* 1 where a leaf outside was met, whatever is on the path depends on it; 0 where there is none; -1 with an error. */
static int walk(pg_capture *capture, step **path, size_t *depth, size_t *capacity) {
    while (*depth) {
        step *top = &(*path)[*depth - 1];
        if (top->next == pg_operand_count(top->node)) {
            if (pg_map_set(&capture->known, top->node, 0) < 0) return -1;
            --*depth;
            continue;
        }
        pg_node *operand = pg_operand_node(top->node, top->next++);
        int64_t found = operand ? look_up(capture, operand) : 0;
        if (found == 1) return 1;
        if (found < 0 && push(path, depth, capacity, operand) < 0) return -1;
    }
    return 0;
}

static int depends(pg_capture *capture, pg_node *node) {
    int64_t known = look_up(capture, node);
    if (known >= 0) return (int)known;
    step *path = NULL;
    size_t depth = 0, capacity = 0;
    if (PyList_Append(capture->asked, (PyObject *)node) < 0) return -1;
    int found = push(&path, &depth, &capacity, node);
    if (!found) found = walk(capture, &path, &depth, &capacity);
    for (size_t i = 0; found == 1 && i < depth; i++)
        if (pg_map_set(&capture->known, path[i].node, 1) < 0) found = -1;
    PyMem_Free(path);
    return found;
}

int pg_capture_depends(pg_node *node) {
    return node->flags & PG_REQUIRES_GRAD ? depends(pg_thread.capture, node) : 0;
}

/* ---- guards ---- */

int pg_capture_pass_on(PyObject *guard) {
    pg_node *node = (pg_node *)PyTuple_GET_ITEM(guard, 0);
    for (pg_capture *at = pg_thread.capture; at; at = at->outer) {
        int found = depends(at, node);
        if (found <= 0) return found; /* nor does it on what is further out */
        if (PyList_Append(at->guards, guard) < 0) return -1;
        if (at->rolled) break; /* loops.py passes on what does not depend on the inputs of the part */
    }
    return 0;
}

int pg_capture_guard(pg_node *node, int row, const char *kind) {
    int found = pg_capture_depends(node);
    if (found <= 0) return found;
    pg_arg args[] = {{node, node->data}, {NULL, 0.0}};
    PyObject *guarded = (PyObject *)node;
    if (row == PG_OP_leaf) Py_INCREF(guarded);
    else guarded = pg_record(row, pg_forward(row, node->data, 0, 0), args, pg_ops[row].arity);
    if (!guarded) return -1;
    PyObject *place = pg_thread.capture->rolled ? PyObject_CallNoArgs(pg_hooks.place) : NULL;
    PyObject *guard = Py_BuildValue("(NdsO)", guarded, ((pg_node *)guarded)->data, kind, place ? place : Py_None);
    int failed = !guard || (pg_thread.capture->rolled && !place);
    Py_XDECREF(place);
    if (!failed) failed = pg_capture_pass_on(guard) < 0;
    Py_XDECREF(guard);
    return failed ? -1 : 0;
}

int pg_capture_truth(pg_node *node) {
    int truth = node->data != 0;
    return pg_capture_guard(node, pg_is_truth(node) ? PG_OP_leaf : PG_OP_not_equal, "bool") < 0 ? -1 : truth;
}

PyObject *pg_capture_freeze(pg_node *node) {
    if (pg_op_is_flat(node->op)) {
        Py_INCREF(node);
        return (PyObject *)node;
    }
    pg_arg arg = {node, node->data};
    return pg_record(PG_OP_frozen, node->data, &arg, 1);
}

/* ---- errors ---- */

int pg_capture_error(const char *what, const char *why, const char *instead) {
    PyObject *place = PyObject_CallNoArgs(pg_hooks.place);
    if (place)
        PyErr_Format(pg_hooks.capture_error, "%s, at %S:%S in %S: %s; %s", what, PyTuple_GET_ITEM(place, 0),
                     PyTuple_GET_ITEM(place, 1), PyTuple_GET_ITEM(place, 2), why, instead);
    Py_XDECREF(place);
    return -1;
}

int pg_capture_refuse(pg_node *node, const char *what, const char *why, const char *instead) {
    int found = pg_capture_depends(node);
    return found == 1 ? pg_capture_error(what, why, instead) : found;
}
