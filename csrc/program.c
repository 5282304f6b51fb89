/* program.c: building, printing and evaluating programs. See program.h; check.c checks them. */
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
    program->input_count = inputs;
    for (size_t i = 0; i < inputs; i++) {
        if (append(program, (pg_instruction){.op = PG_OP_input, .in = {(pg_index)i}}) == PG_NONE) {
            pg_program_free(program);
            return NULL;
        }
    }
    return program;
}

static void *copied(const void *array, size_t count, size_t size, int *failed) {
    void *copy = malloc(count ? count * size : 1);
    if (!copy) *failed = 1;
    else if (count) memcpy(copy, array, count * size);
    return copy;
}

/* What a region refers to has one holder more, or one less. */
static void hold_parts(const pg_region *region, int more) {
    for (int i = 0; i < 2; i++) {
        if (!region->body[i]) continue;
        if (more > 0) pg_program_hold(region->body[i]);
        else pg_program_free(region->body[i]);
    }
    if (region->callee.self) region->callee.hold(region->callee.self, more);
}

pg_program *pg_program_hold(pg_program *program) {
    program->holders++;
    return program;
}

pg_program *pg_program_copy(const pg_program *program) {
    pg_program *copy = malloc(sizeof *copy);
    int failed = 0;
    if (!copy) return NULL;
    *copy = *program;
    copy->holders = 0;
    copy->code_room = program->count;
    copy->constant_room = program->constant_count;
    copy->operand_room = program->operand_count;
    copy->output_room = program->output_count;
    copy->guard_room = program->guard_count;
    copy->region_room = program->region_count;
    copy->code = copied(program->code, program->count, sizeof *copy->code, &failed);
    copy->constants = copied(program->constants, program->constant_count, sizeof *copy->constants, &failed);
    copy->operands = copied(program->operands, program->operand_count, sizeof *copy->operands, &failed);
    copy->outputs = copied(program->outputs, program->output_count, sizeof *copy->outputs, &failed);
    copy->guards = copied(program->guards, program->guard_count, sizeof *copy->guards, &failed);
    copy->regions = copied(program->regions, program->region_count, sizeof *copy->regions, &failed);
    for (size_t i = 0; copy->regions && i < copy->region_count; i++) hold_parts(&copy->regions[i], 1);
    if (!failed) return copy;
    if (!copy->regions) copy->region_count = 0;
    pg_program_free(copy);
    return NULL;
}

void pg_program_free(pg_program *program) {
    if (!program || program->holders-- > 0) return;
    for (size_t i = 0; i < program->region_count; i++) hold_parts(&program->regions[i], -1);
    free(program->regions);
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

/* A list of operands: where it begins, or PG_NONE. */
static pg_index list(pg_program *program, const pg_index *operands, size_t count) {
    size_t start = program->operand_count;
    for (size_t i = 0; i < count; i++) {
        if (GROW(program, operands, operand) < 0) return PG_NONE;
        program->operands[program->operand_count++] = operands[i];
    }
    return (pg_index)start;
}

pg_index pg_program_many(pg_program *program, int op, const pg_index *operands, size_t count) {
    pg_index start = list(program, operands, count);
    if (start == PG_NONE) return PG_NONE;
    return append(program, (pg_instruction){.op = (uint16_t)op, .in = {start, (pg_index)count}});
}

pg_index pg_program_array(pg_program *program, const double *numbers, size_t count) {
    size_t start = program->constant_count;
    for (size_t i = 0; i < count; i++) {
        if (GROW(program, constants, constant) < 0) return PG_NONE;
        program->constants[program->constant_count++] = numbers[i];
    }
    return append(program, (pg_instruction){.op = PG_OP_array, .in = {(pg_index)start, (pg_index)count}});
}

/* The array of which these are all elements in order, or PG_NONE. */
static pg_index array_of_elements(const pg_program *program, const pg_index *operands, size_t count) {
    if (count < 2 || program->code[operands[0]].op != PG_OP_element) return PG_NONE;
    pg_index array = program->code[operands[0]].in[0];
    if (pg_length_of(program, array) != count) return PG_NONE;
    for (size_t i = 0; i < count; i++) {
        const pg_instruction *element = &program->code[operands[i]];
        if (element->op != PG_OP_element || element->in[0] != array || element->in[1] != i) return PG_NONE;
    }
    return array;
}

pg_index pg_program_pack(pg_program *program, const pg_index *operands, size_t count) {
    pg_index whole = array_of_elements(program, operands, count);
    if (whole != PG_NONE) return whole;
    size_t constants = 0;
    while (constants < count && pg_is_constant(program, operands[constants])) constants++;
    if (constants < count) return pg_program_many(program, PG_OP_pack, operands, count);
    size_t start = program->constant_count;
    for (size_t i = 0; i < count; i++) {
        if (GROW(program, constants, constant) < 0) return PG_NONE;
        program->constants[program->constant_count++] = pg_constant_of(program, operands[i]);
    }
    return append(program, (pg_instruction){.op = PG_OP_array, .in = {(pg_index)start, (pg_index)count}});
}

pg_index pg_program_element(pg_program *program, pg_index array, size_t number) {
    const pg_instruction *instruction = &program->code[array];
    if (instruction->op == PG_OP_pack) return program->operands[instruction->in[0] + number];
    if (instruction->op == PG_OP_array) return pg_program_constant(program, program->constants[instruction->in[0] + number]);
    return append(program, (pg_instruction){.op = PG_OP_element, .in = {array, (pg_index)number}});
}

pg_index pg_program_region(pg_program *program, int op, const pg_region *region, const pg_index *operands, size_t count) {
    for (int i = 0; i < 2; i++)
        if (region->body[i] && region->body[i]->nested >= PG_MOST_NESTED) return PG_NONE;
    pg_index start = list(program, operands, count), number = (pg_index)program->region_count;
    if (start == PG_NONE || GROW(program, regions, region) < 0) return PG_NONE;
    pg_index value = append(program, (pg_instruction){.op = (uint16_t)op, .in = {start, (pg_index)count, number}});
    if (value == PG_NONE) return PG_NONE;
    program->regions[program->region_count++] = *region;
    hold_parts(region, 1);
    program->calls |= op == PG_OP_call;
    for (int i = 0; i < 2; i++) {
        if (!region->body[i]) continue;
        program->calls |= region->body[i]->calls;
        if (program->nested <= region->body[i]->nested) program->nested = region->body[i]->nested + 1;
    }
    return value;
}

pg_index pg_program_result(pg_program *program, pg_index of, size_t number) {
    return append(program, (pg_instruction){.op = PG_OP_result, .in = {of, (pg_index)number}});
}

pg_index pg_program_stack(pg_program *program, pg_index of, size_t number) {
    return append(program, (pg_instruction){.op = PG_OP_stack, .in = {of, (pg_index)number}});
}

const pg_callee *pg_program_callee(const pg_program *program) {
    for (size_t i = 0; program->calls && i < program->count; i++) {
        if (!pg_is_region(program->code[i].op)) continue;
        const pg_region *region = pg_region_of(program, (pg_index)i);
        if (program->code[i].op == PG_OP_call) return &region->callee;
        for (int k = 0; k < 2; k++)
            if (region->body[k] && region->body[k]->calls) return pg_program_callee(region->body[k]);
    }
    return NULL;
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

size_t pg_operands_of(const pg_program *program, pg_index value) {
    const pg_instruction *instruction = &program->code[value];
    return pg_is_many(instruction->op) ? instruction->in[1] : (size_t)pg_ops[instruction->op].arity;
}

pg_index pg_operand_of(const pg_program *program, pg_index value, size_t i) {
    const pg_instruction *instruction = &program->code[value];
    return pg_is_many(instruction->op) ? program->operands[instruction->in[0] + i] : instruction->in[i];
}

pg_index pg_program_append(pg_program *program, const pg_program *from, pg_index value, const pg_index *places) {
    const pg_instruction *instruction = &from->code[value];
    const pg_index *in = instruction->in;
    int op = instruction->op, arity = pg_ops[op].arity;
    if (op == PG_OP_constant) return pg_program_constant(program, pg_constant_of(from, value));
    if (op == PG_OP_array) return pg_program_array(program, from->constants + in[0], in[1]);
    if (op == PG_OP_element) return pg_program_element(program, places[in[0]], in[1]);
    if (op == PG_OP_result) return pg_program_result(program, places[in[0]], in[1]);
    if (op == PG_OP_stack) return pg_program_stack(program, places[in[0]], in[1]);
    if (!pg_is_many(op))
        return pg_program_row(program, op, places[in[0]], arity > 1 ? places[in[1]] : 0, arity > 2 ? places[in[2]] : 0);
    pg_index *operands = malloc((in[1] ? in[1] : 1) * sizeof *operands), made;
    if (!operands) return PG_NONE;
    for (size_t i = 0; i < in[1]; i++) operands[i] = places[from->operands[in[0] + i]];
    if (op == PG_OP_pack) made = pg_program_pack(program, operands, in[1]);
    else if (pg_is_region(op)) made = pg_program_region(program, op, pg_region_of(from, value), operands, in[1]);
    else made = pg_program_many(program, op, operands, in[1]);
    free(operands);
    return made;
}

int pg_program_inline(pg_program *program, const pg_program *from, const pg_index *inputs, pg_index *outputs) {
    pg_index *places = malloc((from->count ? from->count : 1) * sizeof *places);
    int failed = !places;
    for (size_t i = 0; i < from->count && !failed; i++) {
        places[i] = i < from->input_count ? inputs[i] : pg_program_append(program, from, (pg_index)i, places);
        failed = places[i] == PG_NONE;
    }
    for (size_t i = 0; i < from->output_count && !failed; i++) outputs[i] = places[from->outputs[i]];
    free(places);
    return failed ? -1 : 0;
}

size_t pg_results_of(const pg_program *program, pg_index value) {
    const pg_region *region = pg_region_of(program, value);
    switch (program->code[value].op) {
    case PG_OP_loop: return region->carries;
    case PG_OP_cond: return region->body[0]->output_count;
    default: return region->outputs;
    }
}

size_t pg_stacks_of(const pg_program *program, pg_index value) {
    const pg_region *region = pg_region_of(program, value);
    if (program->code[value].op != PG_OP_loop) return 0;
    return region->body[0]->output_count - region->carries + (region->saves ? region->carries : 0);
}

size_t pg_program_size(const pg_program *program) {
    size_t size = 0;
    for (size_t i = program->input_count; i < program->count; i++) {
        int op = program->code[i].op;
        size += pg_is_work(op);
        for (int k = 0; (op == PG_OP_loop || op == PG_OP_cond) && k < 2; k++) {
            const pg_program *body = pg_region_of(program, (pg_index)i)->body[k];
            size += body ? pg_program_size(body) : 0;
        }
    }
    return size;
}

enum pg_kind pg_kind_of(const pg_program *program, pg_index value) {
    int op = program->code[value].op;
    if (pg_is_region(op)) return PG_REGION_KIND;
    return op == PG_OP_array || op == PG_OP_pack || op == PG_OP_stack ? PG_ARRAY_KIND : PG_NUMBER_KIND;
}

size_t pg_length_of(const pg_program *program, pg_index array) {
    const pg_instruction *instruction = &program->code[array];
    return instruction->op == PG_OP_stack ? pg_region_of(program, instruction->in[0])->length : instruction->in[1];
}

/* ---- printing ---- */

enum { OPERANDS_SHOWN = 8 };

int pg_instruction_text(const pg_program *program, pg_index value, char *text, size_t room) {
    const pg_instruction *instruction = &program->code[value];
    size_t used = 0, operands = pg_operands_of(program, value);
#define PRINT(...) used += (size_t)snprintf(used < room ? text + used : NULL, used < room ? room - used : 0, __VA_ARGS__)
    switch (instruction->op) {
    case PG_OP_input: PRINT("v%u = input %u", value, instruction->in[0]); break;
    case PG_OP_constant: PRINT("v%u = %.17g", value, pg_constant_of(program, value)); break;
    case PG_OP_array: PRINT("v%u = array of %u constants", value, instruction->in[1]); break;
    case PG_OP_element:
    case PG_OP_result:
    case PG_OP_stack:
        PRINT("v%u = %s %u of v%u", value, pg_ops[instruction->op].name, instruction->in[1], instruction->in[0]);
        break;
    case PG_OP_loop: {
        const pg_region *region = pg_region_of(program, value);
        PRINT("v%u = loop %zu steps%s, %zu carried, %zu shared, %zu arrays:", value, region->length,
              region->backwards ? " backwards" : "", region->carries, region->shared, region->arrays);
        break;
    }
    default: PRINT("v%u = %s", value, pg_ops[instruction->op].name);
    }
    int is_shown = instruction->op != PG_OP_element && instruction->op != PG_OP_result && instruction->op != PG_OP_stack;
    for (size_t i = 0; is_shown && i < operands; i++) {
        int left_out = operands > OPERANDS_SHOWN && i >= OPERANDS_SHOWN / 2 && i < operands - OPERANDS_SHOWN / 2;
        if (!left_out) PRINT(" v%u", pg_operand_of(program, value, i));
        else if (i == OPERANDS_SHOWN / 2) PRINT(" ...");
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

/* What regions and arrays hold: of a region its results and then its stacks, of an array its elements. */
static double *held_by(const pg_program *program, pg_index value, double **held) {
    const pg_instruction *instruction = &program->code[value];
    if (instruction->op != PG_OP_stack) return held[value];
    pg_index loop = instruction->in[0];
    return held[loop] + pg_results_of(program, loop) + instruction->in[1] * pg_region_of(program, loop)->length;
}

static int run_body(const pg_program *body, const double *inputs, double *outputs) {
    double *values = malloc((body->count ? body->count : 1) * sizeof *values);
    int failed = !values || pg_program_evaluate(body, inputs, values) < 0;
    for (size_t i = 0; i < body->output_count && !failed; i++) outputs[i] = values[body->outputs[i]];
    free(values);
    return failed ? -1 : 0;
}

static int evaluate_loop(const pg_program *program, pg_index value, double *inputs, double **held) {
    const pg_region *region = pg_region_of(program, value);
    const pg_program *body = region->body[0];
    size_t carries = region->carries, own = body->output_count - carries, length = region->length;
    double *results = held[value], *stacks = results + carries, *outputs = malloc((body->output_count + 1) * sizeof *outputs);
    int failed = !outputs;
    for (size_t step = 0; step < length && !failed; step++) {
        size_t at = region->backwards ? length - 1 - step : step;
        for (size_t i = 0; i < region->arrays; i++) {
            size_t place = carries + region->shared + i;
            inputs[place] = held_by(program, pg_operand_of(program, value, place), held)[at];
        }
        for (size_t i = 0; region->saves && i < carries; i++) stacks[(own + i) * length + at] = inputs[i];
        failed = run_body(body, inputs, outputs) < 0;
        for (size_t i = 0; i < carries && !failed; i++) inputs[i] = outputs[i];
        for (size_t i = 0; i < own && !failed; i++) stacks[i * length + at] = outputs[carries + i];
    }
    if (carries) memcpy(results, inputs, carries * sizeof *results);
    free(outputs);
    return failed ? -1 : 0;
}

static int evaluate_region(const pg_program *program, pg_index value, const double *values, double **held) {
    const pg_region *region = pg_region_of(program, value);
    size_t operands = pg_operands_of(program, value);
    size_t room = pg_results_of(program, value) + pg_stacks_of(program, value) * region->length + 1;
    double *inputs = malloc((operands + 1) * sizeof *inputs);
    held[value] = malloc(room * sizeof **held);
    int failed = !inputs || !held[value];
    for (size_t i = 0; i < operands && !failed; i++) inputs[i] = values[pg_operand_of(program, value, i)];
    if (!failed) {
        int op = program->code[value].op;
        if (op == PG_OP_loop) failed = evaluate_loop(program, value, inputs, held);
        else if (op == PG_OP_cond) failed = run_body(region->body[inputs[0] == 0], inputs + 1, held[value]);
        else failed = region->callee.run(region->callee.self, inputs, held[value], operands, region->outputs);
    }
    free(inputs);
    return failed ? -1 : 0;
}

static int evaluate_array(const pg_program *program, pg_index value, const double *values, double **held) {
    const pg_instruction *instruction = &program->code[value];
    size_t count = instruction->in[1];
    if (!(held[value] = malloc((count + 1) * sizeof **held))) return -1;
    for (size_t i = 0; i < count; i++)
        held[value][i] = instruction->op == PG_OP_array ? program->constants[instruction->in[0] + i]
                                                        : values[program->operands[instruction->in[0] + i]];
    return 0;
}

int pg_program_evaluate(const pg_program *program, const double *inputs, double *values) {
    double **held = calloc(program->count ? program->count : 1, sizeof *held);
    int failed = !held;
    for (size_t i = 0; i < program->count && !failed; i++) {
        const pg_instruction *instruction = &program->code[i];
        const pg_index *in = instruction->in, value = (pg_index)i;
        values[i] = 0;
        switch (instruction->op) {
        case PG_OP_input: values[i] = inputs[in[0]]; break;
        case PG_OP_constant: values[i] = program->constants[in[0]]; break;
        case PG_OP_sum:
        case PG_OP_dot: values[i] = evaluate_many(program, value, values); break;
        case PG_OP_array:
        case PG_OP_pack: failed = evaluate_array(program, value, values, held); break;
        case PG_OP_element: values[i] = held_by(program, in[0], held)[in[1]]; break;
        case PG_OP_loop:
        case PG_OP_cond:
        case PG_OP_call: failed = evaluate_region(program, value, values, held); break;
        case PG_OP_result: values[i] = held[in[0]][in[1]]; break;
        case PG_OP_stack: break;
        default: {
            int arity = pg_ops[instruction->op].arity;
            values[i] = pg_forward(instruction->op, values[in[0]], arity > 1 ? values[in[1]] : 0.0,
                                   arity > 2 ? values[in[2]] : 0.0);
        }
        }
    }
    for (size_t i = 0; held && i < program->count; i++) free(held[i]);
    free(held);
    return failed ? -1 : 0;
}
