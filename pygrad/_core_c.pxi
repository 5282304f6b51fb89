# _core_c.pxi: declarations of csrc, for the other parts of _core.pyx.

from cpython.object cimport PyTypeObject
from libc.stdint cimport int32_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free, malloc

cdef extern from "ops.h":
    ctypedef struct pg_op_info:
        const char *name
        int arity
        const char *value
        const char *gradient[3]
        const char *domain
        const char *summary
        int required
        const char *keyword[3]
        double fallback[3]
        unsigned saved
    ctypedef struct pg_op_alias:
        const char *spelling
        int op
    pg_op_info pg_ops[]
    const pg_op_alias pg_op_aliases[]
    const int pg_op_alias_count
    int PG_OP_leaf, PG_OP_TABLE_END, PG_OP_sum, PG_OP_dot, PG_OP_closure, PG_OP_custom, PG_OP_released, PG_OP_stand_in
    int PG_OP_call, PG_OP_result, PG_OP_loop, PG_OP_cond, PG_OP_COUNT
    int pg_op_find(const char *name)

cdef extern from "scalar.h":
    double pg_forward(int op, double a, double b, double c)
    void pg_vjp(int op, double g, double y, double a, double b, double c, double *partial)

cdef extern from "py_node.h":
    ctypedef struct pg_capture:
        pass
    ctypedef struct pg_many:
        Py_ssize_t count
        unsigned long long seen
        PyObject *closure
    ctypedef union pg_operand:
        pg_node *node
        double constant
        pg_many *many
        uint64_t run
    ctypedef struct pg_node:
        double data
        double grad
        uint8_t op
        uint8_t flags
        uint8_t version
        uint8_t seen
        uint32_t mark
        pg_operand in_ "in"[3]
    ctypedef struct pg_mode:
        int no_grad
        int anomaly
        int tracing
        pg_capture *capture
    pg_mode pg_thread
    void pg_set_no_grad(int no_grad)
    size_t pg_writes
    void pg_enter_anomaly()
    void pg_leave_anomaly()
    int PG_REQUIRES_GRAD, PG_MANY
    bint PG_IS_VALUE(object)
    PyTypeObject pg_value_type

cdef extern from "py_heap.h":
    void pg_note_write()
    void pg_heap_stats(size_t *regions, size_t *live)

cdef extern from "py_record.h":
    ctypedef struct pg_arg:
        pg_node *node
        double data
    int pg_load(object value, pg_arg *arg) except -1
    pg_node *pg_leaf(double data, int requires_grad) except NULL
    object pg_record(int op, double y, const pg_arg *args, int count)
    object pg_record_many(int op, double y, const pg_arg *args, Py_ssize_t count, PyObject *closure)
    object pg_sum(object values)
    object pg_dot(object left, object right)

cdef extern from "py_capture.h":
    PyObject *pg_capture_guards()
    int pg_capture_begin(list inputs, int rolled) except -1
    list pg_capture_end()
    pg_capture *pg_capture_outer(const pg_capture *capture)
    int pg_capture_depends(pg_node *node) except -1
    int pg_capture_guard(pg_node *node, int row, const char *kind) except -1
    int pg_capture_pass_on(object guard) except -1
    int pg_capture_refuse(pg_node *node, const char *what, const char *why, const char *instead) except -1
    bint pg_is_capturing()
    bint pg_is_captured(const pg_node *node)
    const char *PG_WOULD_REUSE

cdef extern from "py_op.h":
    object pg_op_new(int op, const char *name)

cdef extern from "py_order.h":
    ctypedef struct pg_order:
        pg_node **nodes
        size_t count
        uint32_t epoch
    int pg_order_make(pg_order *order, pg_node *root, pg_node **targets, size_t count, int zero) except -1
    void pg_order_free(pg_order *order)
    Py_ssize_t pg_operand_count(const pg_node *node)
    pg_node *pg_operand_node(const pg_node *node, Py_ssize_t i)
    double pg_operand_data(const pg_node *node, Py_ssize_t i)
    uint32_t pg_last_epoch
    uint64_t pg_last_run

cdef extern from "py_bulk.h":
    object pg_lift_floats(list numbers)
    object pg_lift_buffer(object buffer)
    object pg_gradients_list(object root, list targets, double grad, uint64_t run)
    object pg_gradients_buffer(object root, list targets, double grad, uint64_t run, object buffer)
    list pg_settled(list numbers, uint64_t run, list inputs)
    void pg_end_run(list inputs)
    pg_node **pg_nodes_of(list values) except NULL

cdef extern from "py_gradient.h":
    object pg_tangents(list outputs, pg_node **targets, size_t count, list directions, int graph)
    pg_node *pg_stand_in_of(pg_node *leaf) except NULL
    object pg_gradients_graph(pg_node *root, object grad, pg_node **targets, size_t count)

cdef extern from "py_value.h":
    const char *PG_COMPILER
    const char *PG_FLAGS
    int pg_core_init() except -1
    void pg_set_hooks(object real, object place, object arrays, object anomaly, object graph_error, object capture_error)
    int pg_type_add(const char *name, object attribute) except -1
    tuple pg_value_operands(object node)

cdef extern from "py_map.h":
    ctypedef struct pg_map:
        size_t capacity
        size_t count
    long long pg_map_get(const pg_map *map, const pg_node *node)
    int pg_map_set(pg_map *map, pg_node *node, long long number) except -1
    void pg_map_clear(pg_map *map)

cdef extern from "program.h":
    ctypedef uint32_t pg_index
    const pg_index PG_NONE
    ctypedef struct pg_guard:
        pg_index value
        double expected
    ctypedef struct pg_instruction:
        uint16_t op
        pg_index in_ "in"[3]
    ctypedef struct pg_callee:
        pass
    ctypedef struct pg_region:
        pg_program *body[2]
        pg_callee callee
        size_t length, carries, shared, arrays, outputs
        uint8_t backwards
    ctypedef struct pg_program:
        pg_instruction *code
        pg_index *outputs
        pg_guard *guards
        pg_region *regions
        size_t count, input_count, output_count, guard_count, region_count, nested
    enum: PG_MOST_NESTED
    const pg_callee *pg_program_callee(const pg_program *program)
    pg_program *pg_program_new(size_t inputs)
    void pg_program_free(pg_program *program)
    pg_program *pg_program_copy(const pg_program *program)
    pg_index pg_program_constant(pg_program *program, double number)
    size_t pg_operands_of(const pg_program *program, pg_index value)
    pg_index pg_operand_of(const pg_program *program, pg_index value, size_t i)
    pg_index pg_program_array(pg_program *program, const double *numbers, size_t count)
    pg_index pg_program_pack(pg_program *program, const pg_index *operands, size_t count)
    pg_index pg_program_element(pg_program *program, pg_index array, size_t number)
    pg_index pg_program_region(pg_program *program, int op, const pg_region *region, const pg_index *operands, size_t count)
    pg_index pg_program_result(pg_program *program, pg_index of, size_t number)
    pg_index pg_program_stack(pg_program *program, pg_index of, size_t number)
    int pg_program_inline(pg_program *program, const pg_program *source, const pg_index *inputs, pg_index *outputs)
    int pg_program_output(pg_program *program, pg_index value)
    int pg_instruction_text(const pg_program *program, pg_index value, char *text, size_t room)

cdef extern from "py_call.h":
    const char *PG_PROGRAM_CAPSULE
    pg_callee pg_callee_of(object callee)
    PyObject *pg_object_of_callee(const pg_callee *callee)  # borrowed

cdef extern from "differentiate.h":
    pg_program *pg_reverse(const pg_program *program, const pg_index *wrt, size_t wrt_count, pg_index of)
    pg_program *pg_forward_mode(const pg_program *program, const pg_index *wrt, size_t wrt_count)
    pg_program *pg_jacobian(const pg_program *program, const pg_index *wrt, size_t wrt_count, int forward,
                            pg_index **rows, pg_index **columns, size_t *entries)

    int pg_jacobian_pattern(const pg_program *program, const pg_index *wrt, size_t wrt_count, int forward,
                            pg_index **rows, pg_index **columns, size_t *entries, size_t *work)

cdef extern from "colour.h":
    size_t pg_colour_columns(const pg_index *rows, const pg_index *columns, size_t entries, size_t column_count,
                             pg_index *colours)

cdef extern from "optimise.h":
    ctypedef struct pg_optimise_report:
        size_t before, folded, simplified, merged, dead, after
    pg_program *pg_optimise(const pg_program *program, pg_optimise_report *report)

cdef extern from "plan.h":
    ctypedef struct pg_plan:
        uint32_t *guards
        size_t word_count, constant_count, input_count, output_count, guard_count
        size_t slot_count, run_count, fused_count, instruction_count
        int calls
    pg_plan *pg_plan_make(const pg_program *program)
    void pg_plan_free(pg_plan *plan)
    double pg_plan_work(const pg_plan *plan)

cdef extern from "interpret.h":
    int PG_CALL_FAILED
    double *pg_slots_new(const pg_plan *plan)
    double *pg_numbers_new(const pg_plan *plan)
    Py_ssize_t pg_interpret(const pg_plan *plan, const double *inputs, double *slots, double *outputs)

cdef extern from "kernels.h":
    ctypedef struct pg_loop:
        pass
    int PG_LEVELS

cdef extern from "blocks.h":
    ctypedef struct pg_blocks:
        pass
    ctypedef struct pg_lanes:
        char *at
        Py_ssize_t stride
    pg_blocks *pg_blocks_new(const pg_plan *plan, const uint8_t *shared, const pg_loop *loops, int level, size_t segment)
    void pg_blocks_free(pg_blocks *blocks)
    size_t pg_blocks_width(size_t rows, size_t lanes)
    size_t pg_blocks_rows(const pg_blocks *blocks)
    size_t pg_blocks_bytes(const pg_blocks *blocks, size_t width)
    int pg_blocks_run(const pg_blocks *blocks, void *memory, size_t width, const pg_lanes *inputs,
                      const pg_lanes *outputs, int32_t *failed, size_t start, size_t stop) nogil
    double pg_sum_row(const pg_lanes *row, size_t start, size_t stop) nogil

cdef extern from "lane_by_lane.h":
    int pg_lane_by_lane_run(const pg_plan *plan, const pg_lanes *inputs, const pg_lanes *outputs, int32_t *failed,
                            size_t start, size_t stop) nogil

cdef extern from "py_loops.h":
    pg_loop pg_numpy_loops[]
    int pg_loops_find() except -1

cdef extern from "emit_rows.h":
    const char *pg_emit_name_wrong(const char *name)

cdef extern from "emit_c.h":
    char *pg_emit_c(const pg_program *program, const char *name, const char *const *inputs, const char *const *outputs)

cdef extern from "serialize.h":
    unsigned char *pg_program_to_bytes(const pg_program *program, size_t *size)
    pg_program *pg_program_from_bytes(const unsigned char *data, size_t size, char *message, size_t room)

cdef extern from "py_program.h":
    pg_program *pg_program_of_nodes(list inputs, list outputs, list guards, list outside) except NULL
