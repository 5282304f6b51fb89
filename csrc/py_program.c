/* py_program.c: the nodes under the outputs, in the order of creation, as instructions. See py_program.h. */
#include "py_program.h"

#include "py_call.h"
#include "py_capture.h"
#include "py_graph.h"
#include "py_map.h"
#include "py_order.h"
#include "py_record.h"

typedef struct {
    PyObject *inputs, *outputs, *guards, *outside;
    PyObject *gradients; /* programs of gradients, which are held to the end, so that each is made once */
    pg_program *program;
    pg_map places;      /* of nodes: their values; of a program on operands: where its results are */
    pg_index *results;
    size_t result_count, result_room;
} maker;

static int memory_error(void) {
    PyErr_NoMemory();
    return -1;
}

static int note(maker *m, pg_node *node, pg_index value) {
    if (value == PG_NONE) return memory_error();
    return pg_map_set(&m->places, node, (int64_t)value);
}

/* The value of a node that has a place, or of a leaf that was made on the way; PG_NONE with an error. */
static pg_index value_of(maker *m, pg_node *node) {
    int64_t place = pg_map_get(&m->places, node);
    if (place >= 0) return (pg_index)place;
    if (pg_capture_is_of_part(node)) {
        PyErr_SetString(pg_hooks.capture_error,
                        "compile: a Value of one step of scan, or of one branch of cond, is used outside of it; return it "
                        "from there, as part of y or of the result");
        return PG_NONE;
    }
    pg_index value = pg_program_constant(m->program, node->data);
    return note(m, node, value) < 0 ? PG_NONE : value;
}

/* The operand as a value of the program; PG_NONE with an error. */
static pg_index operand(maker *m, const pg_node *node, Py_ssize_t i) {
    pg_node *of = pg_operand_node(node, i);
    if (of) return value_of(m, of);
    pg_index value = pg_program_constant(m->program, pg_operand_data(node, i));
    if (value == PG_NONE) memory_error();
    return value;
}

static int add_row(maker *m, pg_node *node) {
    pg_index in[PG_MAX_ARITY] = {0};
    for (int i = 0; i < pg_ops[node->op].arity; i++)
        if ((in[i] = operand(m, node, i)) == PG_NONE) return -1;
    return note(m, node, pg_program_row(m->program, node->op, in[0], in[1], in[2]));
}

/* The operands of an n-ary node, to be freed by PyMem_Free; NULL with an error. */
static pg_index *operands_of(maker *m, const pg_node *node) {
    Py_ssize_t count = pg_operand_count(node);
    pg_index *operands = PyMem_New(pg_index, count ? count : 1);
    if (!operands) memory_error();
    for (Py_ssize_t i = 0; operands && i < count; i++) {
        if ((operands[i] = operand(m, node, i)) != PG_NONE) continue;
        PyMem_Free(operands);
        return NULL;
    }
    return operands;
}

static int add_many(maker *m, pg_node *node) {
    pg_index *operands = operands_of(m, node);
    if (!operands) return -1;
    int failed = note(m, node, pg_program_many(m->program, node->op, operands, (size_t)pg_operand_count(node)));
    PyMem_Free(operands);
    return failed;
}

/* A program on operands: its instructions become part of this one. */
static int add_applied(maker *m, pg_node *node) {
    PyObject *capsule = PyObject_CallMethod(node->in[0].many->closure, "capsule", NULL);
    const pg_program *applied = capsule ? PyCapsule_GetPointer(capsule, PG_PROGRAM_CAPSULE) : NULL;
    pg_index *operands = applied ? operands_of(m, node) : NULL;
    int failed = !operands;
    size_t at = m->result_count;
    if (!failed && m->result_count + applied->output_count > m->result_room) {
        size_t room = 2 * (m->result_count + applied->output_count);
        pg_index *moved = PyMem_Realloc(m->results, room * sizeof *moved);
        failed = !moved;
        if (failed) memory_error();
        else m->results = moved, m->result_room = room;
    }
    if (!failed) {
        m->result_count += applied->output_count;
        failed = pg_program_inline(m->program, applied, operands, m->results + at) < 0;
        if (failed) memory_error();
    }
    PyMem_Free(operands);
    Py_XDECREF(capsule);
    return failed ? -1 : pg_map_set(&m->places, node, (int64_t)at);
}

static int add_result(maker *m, pg_node *node) {
    int64_t at = pg_map_get(&m->places, node->in[0].node);
    return note(m, node, m->results[at + (int64_t)node->in[1].constant]);
}

/* An op of the user's: a call, which brings along the program of its gradient. */
static int add_custom(maker *m, pg_node *node) {
    PyObject *closure = node->in[0].many->closure;
    PyObject *numbers = pg_operand_numbers(node);
    PyObject *made = numbers ? PyObject_CallMethod(closure, "gradient_program", "dO", node->data, numbers) : NULL;
    PyObject *capsule = made && PyList_Append(m->gradients, made) == 0 ? PyObject_CallMethod(made, "capsule", NULL) : NULL;
    pg_program *gradient = capsule ? PyCapsule_GetPointer(capsule, PG_PROGRAM_CAPSULE) : NULL;
    pg_index *operands = gradient ? operands_of(m, node) : NULL, call = PG_NONE;
    if (operands) {
        pg_region region = {.body = {gradient}, .callee = pg_callee_of(closure), .outputs = 1};
        call = pg_program_region(m->program, PG_OP_call, &region, operands, (size_t)pg_operand_count(node));
        if (call == PG_NONE) memory_error();
    }
    PyMem_Free(operands);
    Py_XDECREF(capsule);
    Py_XDECREF(made);
    Py_XDECREF(numbers);
    return call == PG_NONE ? -1 : note(m, node, pg_program_result(m->program, call, 0));
}

static int add(maker *m, pg_node *node) {
    if (node->op < PG_OP_TABLE_END) return add_row(m, node);
    switch (node->op) {
    case PG_OP_sum:
    case PG_OP_dot: return add_many(m, node);
    case PG_OP_call: return add_applied(m, node);
    case PG_OP_result: return add_result(m, node);
    case PG_OP_custom: return add_custom(m, node);
    case PG_OP_released: return pg_released_error(node);
    default:
        PyErr_SetString(PyExc_NotImplementedError,
                        "compile: a Value with a backward_fn cannot be part of a program; make the op with "
                        "pygrad.custom_op");
        return -1;
    }
}

/* ---- what comes from outside ---- */

/* Notes a node that the capture did not make as a further input: 0, or -1 with an error. */
static int look_at(maker *m, pg_node *node) {
    if (!(node->flags & PG_REQUIRES_GRAD) || pg_map_get(&m->places, node) >= 0) return 0;
    if (pg_capture_made(node)) return 0;
    pg_index value = (pg_index)(PyList_GET_SIZE(m->inputs) + PyList_GET_SIZE(m->outside));
    if (PyList_Append(m->outside, (PyObject *)node) < 0) return -1;
    return note(m, node, value);
}

static int look_at_all(maker *m, const pg_order *order, pg_node *const *roots, size_t root_count) {
    for (size_t i = 0; i < root_count; i++)
        if (look_at(m, roots[i]) < 0) return -1;
    for (size_t i = 0; i < order->count; i++) {
        if (!pg_capture_made(order->nodes[i])) continue;
        for (Py_ssize_t k = 0; k < pg_operand_count(order->nodes[i]); k++) {
            pg_node *of = pg_operand_node(order->nodes[i], k);
            if (of && look_at(m, of) < 0) return -1;
        }
    }
    return 0;
}

/* ---- the whole ---- */

static int add_results(maker *m) {
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(m->outputs); i++) {
        PyObject *output = PyList_GET_ITEM(m->outputs, i);
        pg_index value = PG_IS_VALUE(output) ? value_of(m, (pg_node *)output)
                                             : pg_program_constant(m->program, PyFloat_AsDouble(output));
        if (value == PG_NONE && PyErr_Occurred()) return -1;
        if (value == PG_NONE || pg_program_output(m->program, value) < 0) return memory_error();
    }
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(m->guards); i++) {
        PyObject *guard = PyList_GET_ITEM(m->guards, i);
        pg_index value = value_of(m, (pg_node *)PyTuple_GET_ITEM(guard, 0));
        double expected = PyFloat_AsDouble(PyTuple_GET_ITEM(guard, 1));
        if (value == PG_NONE && PyErr_Occurred()) return -1;
        if (value == PG_NONE || pg_program_guard(m->program, value, expected) < 0) return memory_error();
    }
    return 0;
}

static int fill(maker *m, const pg_order *order, pg_node *const *roots, size_t root_count) {
    Py_ssize_t inputs = PyList_GET_SIZE(m->inputs);
    for (Py_ssize_t i = 0; i < inputs; i++)
        if (note(m, (pg_node *)PyList_GET_ITEM(m->inputs, i), (pg_index)i) < 0) return -1;
    if (look_at_all(m, order, roots, root_count) < 0) return -1;
    m->program = pg_program_new((size_t)(inputs + PyList_GET_SIZE(m->outside)));
    if (!m->program) return memory_error();
    for (size_t i = 0; i < order->count; i++) {
        if ((i & PG_SIGNAL_MASK) == PG_SIGNAL_MASK && PyErr_CheckSignals() < 0) return -1;
        if (pg_capture_made(order->nodes[i]) && add(m, order->nodes[i]) < 0) return -1;
    }
    return add_results(m);
}

/* The Values among outputs and guards, to be freed by PyMem_Free; NULL with an error. */
static pg_node **roots_of(const maker *m, size_t *count) {
    Py_ssize_t outputs = PyList_GET_SIZE(m->outputs), guards = PyList_GET_SIZE(m->guards);
    pg_node **roots = PyMem_New(pg_node *, outputs + guards + 1);
    if (!roots) return (pg_node **)PyErr_NoMemory();
    *count = 0;
    for (Py_ssize_t i = 0; i < outputs; i++) {
        PyObject *output = PyList_GET_ITEM(m->outputs, i);
        if (PG_IS_VALUE(output)) roots[(*count)++] = (pg_node *)output;
    }
    for (Py_ssize_t i = 0; i < guards; i++)
        roots[(*count)++] = (pg_node *)PyTuple_GET_ITEM(PyList_GET_ITEM(m->guards, i), 0);
    return roots;
}

pg_program *pg_program_of_nodes(PyObject *inputs, PyObject *outputs, PyObject *guards, PyObject *outside) {
    maker m = {.inputs = inputs, .outputs = outputs, .guards = guards, .outside = outside, .gradients = PyList_New(0)};
    pg_order order;
    size_t root_count = 0;
    pg_node **roots = m.gradients ? roots_of(&m, &root_count) : NULL;
    if (!roots) {
        Py_XDECREF(m.gradients);
        return NULL;
    }
    int failed = pg_order_make_all(&order, roots, root_count, NULL, 0, 0);
    if (!failed) failed = fill(&m, &order, roots, root_count) < 0;
    pg_order_free(&order);
    PyMem_Free(roots);
    pg_map_clear(&m.places);
    PyMem_Free(m.results);
    Py_DECREF(m.gradients);
    if (!failed) return m.program;
    pg_program_free(m.program);
    return NULL;
}
