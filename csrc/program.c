/* program.c: building, checking and printing programs. See program.h. */
#include "program.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "scalar.h"

/* ---- growing ---- */

/* Room for one element more: 0, or -1. */
static int grow(void **array, size_t *room, size_t count, size_t size) {
    if (count < *room) return 0;
    size_t larger = *room ? 2 * *room : 16;
    if (larger > UINT32_MAX || larger > SIZE_MAX / size) larger = UINT32_MAX;
    if (larger <= count) return -1;
    void *moved = realloc(*array, larger * size);
    if (!moved) return -1;
    *array = moved;
    *room = larger;
    return 0;
}

#define GROW(program, array, singular) \
    grow((void **)&(program)->array, &(program)->singular##_room, (program)->singular##_count, sizeof *(program)->array)

static pg_index append(pg_program *program, pg_instruction instruction) {
    if (grow((void **)&program->code, &program->code_room, program->count, sizeof *program->code) < 0) return PG_NONE;
    program->code[program->count] = instruction;
    return (pg_index)program->count++;
}

pg_program *pg_program_new(size_t inputs) {
    pg_program *program = calloc(1, sizeof *program);
    if (!program) return NULL;
    for (size_t i = 0; i < inputs; i++) {
        if (append(program, (pg_instruction){.op = PG_OP_input, .in = {(pg_index)i}}) == PG_NONE) {
            pg_program_free(program);
            return NULL;
        }
    }
    program->input_count = inputs;
    return program;
}

static void *copied(const void *array, size_t count, size_t size, int *failed) {
    void *copy = malloc(count ? count * size : 1);
    if (!copy) *failed = 1;
    else if (count) memcpy(copy, array, count * size);
    return copy;
}

pg_program *pg_program_copy(const pg_program *program) {
    pg_program *copy = malloc(sizeof *copy);
    int failed = 0;
    if (!copy) return NULL;
    *copy = *program;
    copy->code_room = program->count;
    copy->constant_room = program->constant_count;
    copy->operand_room = program->operand_count;
    copy->output_room = program->output_count;
    copy->guard_room = program->guard_count;
    copy->code = copied(program->code, program->count, sizeof *copy->code, &failed);
    copy->constants = copied(program->constants, program->constant_count, sizeof *copy->constants, &failed);
    copy->operands = copied(program->operands, program->operand_count, sizeof *copy->operands, &failed);
    copy->outputs = copied(program->outputs, program->output_count, sizeof *copy->outputs, &failed);
    copy->guards = copied(program->guards, program->guard_count, sizeof *copy->guards, &failed);
    if (!failed) return copy;
    pg_program_free(copy);
    return NULL;
}

void pg_program_free(pg_program *program) {
    if (!program) return;
    free(program->code);
    free(program->constants);
    free(program->operands);
    free(program->outputs);
    free(program->guards);
    free(program);
}

/* ---- building ---- */

pg_index pg_program_constant(pg_program *program, double number) {
    if (GROW(program, constants, constant) < 0) return PG_NONE;
    pg_index place = (pg_index)program->constant_count;
    pg_index value = append(program, (pg_instruction){.op = PG_OP_constant, .in = {place}});
    if (value != PG_NONE) program->constants[program->constant_count++] = number;
    return value;
}

pg_index pg_program_row(pg_program *program, int op, pg_index a, pg_index b, pg_index c) {
    int arity = pg_ops[op].arity;
    return append(program, (pg_instruction){.op = (uint16_t)op, .in = {a, arity > 1 ? b : 0, arity > 2 ? c : 0}});
}

pg_index pg_program_many(pg_program *program, int op, const pg_index *operands, size_t count) {
    size_t start = program->operand_count;
    for (size_t i = 0; i < count; i++) {
        if (GROW(program, operands, operand) < 0) return PG_NONE;
        program->operands[program->operand_count++] = operands[i];
    }
    return append(program, (pg_instruction){.op = (uint16_t)op, .in = {(pg_index)start, (pg_index)count}});
}

int pg_program_output(pg_program *program, pg_index value) {
    if (GROW(program, outputs, output) < 0) return -1;
    program->outputs[program->output_count++] = value;
    return 0;
}

int pg_program_guard(pg_program *program, pg_index value, double expected) {
    if (GROW(program, guards, guard) < 0) return -1;
    program->guards[program->guard_count++] = (pg_guard){value, expected};
    return 0;
}

/* ---- operands ---- */

static int is_many(int op) { return op == PG_OP_sum || op == PG_OP_dot; }

size_t pg_operands_of(const pg_program *program, pg_index value) {
    const pg_instruction *instruction = &program->code[value];
    return is_many(instruction->op) ? instruction->in[1] : (size_t)pg_ops[instruction->op].arity;
}

pg_index pg_operand_of(const pg_program *program, pg_index value, size_t i) {
    const pg_instruction *instruction = &program->code[value];
    return is_many(instruction->op) ? program->operands[instruction->in[0] + i] : instruction->in[i];
}

/* ---- checking ---- */

static const char *check_instruction(const pg_program *program, pg_index value) {
    const pg_instruction *instruction = &program->code[value];
    int op = instruction->op;
    if (value < program->input_count)
        return op == PG_OP_input && instruction->in[0] == value ? NULL : "an input is missing";
    if (op == PG_OP_constant) return instruction->in[0] < program->constant_count ? NULL : "a constant is missing";
    if (is_many(op)) {
        size_t start = instruction->in[0], count = instruction->in[1];
        if (start > program->operand_count || count > program->operand_count - start) return "an operand list is too long";
        if (op == PG_OP_dot && count % 2) return "a dot has an odd number of operands";
    } else if (op < 1 || op >= PG_OP_TABLE_END) {
        return "an opcode is unknown";
    }
    for (size_t i = 0; i < pg_operands_of(program, value); i++)
        if (pg_operand_of(program, value, i) >= value) return "an operand is not computed before it is used";
    return NULL;
}

const char *pg_program_check(const pg_program *program) {
    if (program->input_count > program->count) return "an input is missing";
    for (size_t i = 0; i < program->count; i++) {
        const char *wrong = check_instruction(program, (pg_index)i);
        if (wrong) return wrong;
    }
    for (size_t i = 0; i < program->output_count; i++)
        if (program->outputs[i] >= program->count) return "an output is not computed";
    for (size_t i = 0; i < program->guard_count; i++)
        if (program->guards[i].value >= program->count) return "a guard is not computed";
    return NULL;
}

/* ---- printing ---- */

enum { OPERANDS_SHOWN = 8 };

int pg_instruction_text(const pg_program *program, pg_index value, char *text, size_t room) {
    const pg_instruction *instruction = &program->code[value];
    size_t used = 0, operands = pg_operands_of(program, value);
#define PRINT(...) used += (size_t)snprintf(used < room ? text + used : NULL, used < room ? room - used : 0, __VA_ARGS__)
    if (instruction->op == PG_OP_input) {
        PRINT("v%u = input %u", value, instruction->in[0]);
    } else if (instruction->op == PG_OP_constant) {
        PRINT("v%u = %.17g", value, pg_constant_of(program, value));
    } else {
        PRINT("v%u = %s", value, pg_ops[instruction->op].name);
        for (size_t i = 0; i < operands; i++) {
            int left_out = operands > OPERANDS_SHOWN && i >= OPERANDS_SHOWN / 2 && i < operands - OPERANDS_SHOWN / 2;
            if (!left_out) PRINT(" v%u", pg_operand_of(program, value, i));
            else if (i == OPERANDS_SHOWN / 2) PRINT(" ...");
        }
    }
#undef PRINT
    return (int)used;
}

/* ---- the plain meaning ---- */

static double evaluate_many(const pg_program *program, pg_index value, const double *values) {
    const pg_instruction *instruction = &program->code[value];
    const pg_index *operands = program->operands + instruction->in[0];
    double total = 0.0;
    if (instruction->op == PG_OP_sum) {
        for (size_t i = 0; i < instruction->in[1]; i++) total += values[operands[i]];
    } else {
        for (size_t i = 0; i < instruction->in[1]; i += 2) total += values[operands[i]] * values[operands[i + 1]];
    }
    return total;
}

void pg_program_evaluate(const pg_program *program, const double *inputs, double *values) {
    for (size_t i = 0; i < program->count; i++) {
        const pg_instruction *instruction = &program->code[i];
        const pg_index *in = instruction->in;
        switch (instruction->op) {
        case PG_OP_input: values[i] = inputs[in[0]]; break;
        case PG_OP_constant: values[i] = program->constants[in[0]]; break;
        case PG_OP_sum:
        case PG_OP_dot: values[i] = evaluate_many(program, (pg_index)i, values); break;
        default: {
            int arity = pg_ops[instruction->op].arity;
            values[i] = pg_forward(instruction->op, values[in[0]], arity > 1 ? values[in[1]] : 0.0,
                                   arity > 2 ? values[in[2]] : 0.0);
        }
        }
    }
}
