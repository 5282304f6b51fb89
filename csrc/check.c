/* check.c: whether a program that came from elsewhere holds together. See program.h. Trusts no number in it, but for its
 * bodies, which were checked before. */
#include "program.h"

/* A region by itself. */
static const char *check_region(int op, const pg_region *region, size_t operands, size_t nested) {
    int bodies = op == PG_OP_loop ? 1 : 2;
    if (op == PG_OP_call) return region->callee.run ? NULL : "a call has no function";
    for (int i = 0; i < 2; i++) {
        if ((i < bodies) != (region->body[i] != NULL)) return "a body is missing";
        if (i >= bodies) continue;
        if (region->body[i]->nested >= nested) return "bodies are nested otherwise than it says";
        if (region->body[i]->guard_count) return "a body has guards";
    }
    if (op == PG_OP_cond) {
        if (!operands || region->body[0]->input_count != operands - 1 || region->body[1]->input_count != operands - 1)
            return "a condition has a wrong number of operands";
        if (region->shared > operands - 1) return "a condition shares more than it has";
        return region->body[0]->output_count == region->body[1]->output_count ? NULL : "a condition gives now more, now less";
    }
    if (region->length < 1 || region->length >= PG_NONE) return "a loop has no steps, or too many";
    if (region->carries > operands || region->shared > operands - region->carries ||
        region->arrays != operands - region->carries - region->shared || region->body[0]->input_count != operands)
        return "a loop has a wrong number of operands";
    return region->body[0]->output_count >= region->carries ? NULL : "a loop does not carry on what it carries";
}

/* The kinds of operands; they are known to come before. */
static const char *check_operands(const pg_program *program, pg_index value) {
    const pg_instruction *instruction = &program->code[value];
    int op = instruction->op;
    if (op == PG_OP_result || op == PG_OP_stack) {
        pg_index of = instruction->in[0];
        if (pg_kind_of(program, of) != PG_REGION_KIND) return "a result is of nothing that gives results";
        size_t count = op == PG_OP_result ? pg_results_of(program, of) : pg_stacks_of(program, of);
        return instruction->in[1] < count ? NULL : "a result is not given";
    }
    if (op == PG_OP_element) {
        if (pg_kind_of(program, instruction->in[0]) != PG_ARRAY_KIND) return "an element is of no array";
        return instruction->in[1] < pg_length_of(program, instruction->in[0]) ? NULL : "an array has no such element";
    }
    const pg_region *loop = op == PG_OP_loop ? pg_region_of(program, value) : NULL;
    size_t count = pg_operands_of(program, value), numbers = loop ? loop->carries + loop->shared : count;
    for (size_t i = 0; i < count; i++) {
        pg_index operand = pg_operand_of(program, value, i);
        if (pg_kind_of(program, operand) != (i < numbers ? PG_NUMBER_KIND : PG_ARRAY_KIND)) return "an operand is of a wrong kind";
        if (i >= numbers && pg_length_of(program, operand) != loop->length) return "an array is not as long as its loop";
    }
    return NULL;
}

static const char *check_instruction(const pg_program *program, pg_index value) {
    const pg_instruction *instruction = &program->code[value];
    int op = instruction->op;
    if (value < program->input_count)
        return op == PG_OP_input && instruction->in[0] == value ? NULL : "an input is missing";
    if (op == PG_OP_constant) return instruction->in[0] < program->constant_count ? NULL : "a constant is missing";
    if (op == PG_OP_array) {
        size_t start = instruction->in[0], count = instruction->in[1];
        if (!count) return "an array is empty";
        return start <= program->constant_count && count <= program->constant_count - start ? NULL : "an array is too long";
    }
    if (pg_is_many(op)) {
        size_t start = instruction->in[0], count = instruction->in[1];
        if (start > program->operand_count || count > program->operand_count - start) return "an operand list is too long";
        if (op == PG_OP_pack && !count) return "an array is empty";
        if (op == PG_OP_dot && count % 2) return "a dot has an odd number of operands";
        if (pg_is_region(op) && instruction->in[2] >= program->region_count) return "a region is missing";
    } else if (op != PG_OP_element && op != PG_OP_result && op != PG_OP_stack && (op < 1 || op >= PG_OP_TABLE_END)) {
        return "an opcode is unknown";
    }
    for (size_t i = 0; i < pg_operands_of(program, value); i++)
        if (pg_operand_of(program, value, i) >= value) return "an operand is not computed before it is used";
    const char *wrong = NULL;
    if (pg_is_region(op)) wrong = check_region(op, pg_region_of(program, value), instruction->in[1], program->nested);
    return wrong ? wrong : check_operands(program, value);
}

/* What the loops stack, together: an executor may add and multiply lengths without another look. */
static const char *check_room(const pg_program *program) {
    size_t room = 0;
    for (size_t i = 0; i < program->count; i++) {
        if (program->code[i].op != PG_OP_loop) continue;
        size_t stacks = pg_stacks_of(program, (pg_index)i), length = pg_region_of(program, (pg_index)i)->length;
        if (stacks && length > (PG_NONE - 1 - room) / stacks) return "its loops stack more than a program can hold";
        room += stacks * length;
    }
    return NULL;
}

const char *pg_program_check(const pg_program *program) {
    if (program->nested > PG_MOST_NESTED) return "bodies are nested too deeply";
    if (program->input_count > program->count) return "an input is missing";
    for (size_t i = 0; i < program->count; i++) {
        const char *wrong = check_instruction(program, (pg_index)i);
        if (wrong) return wrong;
    }
    for (size_t i = 0; i < program->output_count; i++)
        if (program->outputs[i] >= program->count || pg_kind_of(program, program->outputs[i]) != PG_NUMBER_KIND)
            return "an output is not computed";
    for (size_t i = 0; i < program->guard_count; i++)
        if (program->guards[i].value >= program->count || pg_kind_of(program, program->guards[i].value) != PG_NUMBER_KIND)
            return "a guard is not computed";
    return check_room(program);
}
