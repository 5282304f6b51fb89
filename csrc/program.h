/* program.h: a static graph of scalars. Owns the program and how it is built, checked and printed; knows no Python.
 * Next: optimise.h makes a program smaller, differentiate.h makes its derivatives, plan.h and interpret.h run it.
 *
 * Note [Program]. A program is flat: instruction i gives value i, from values before it, so the order of the code is an
 * order in which it can be run. The inputs come first, one instruction each. Rows of the op table have their operands
 * in the instruction; `sum` and `dot` have them in a list of their own (in[0] is where it begins, in[1] how many), which
 * differentiation needs to add in the order of the eager graph; pg_optimise turns them into rows. A guard is a value
 * that must come out as it did when the program was captured, else the program does not hold for its inputs. */
#ifndef PG_PROGRAM_H
#define PG_PROGRAM_H

#include <stddef.h>
#include <stdint.h>

#include "ops.h"

typedef uint32_t pg_index;
#define PG_NONE UINT32_MAX /* no value: memory ran out, or there is none */

typedef struct {
    uint16_t op;     /* a row, PG_OP_sum, PG_OP_dot, PG_OP_input or PG_OP_constant */
    uint16_t spare;
    pg_index in[PG_MAX_ARITY];
} pg_instruction;

typedef struct {
    pg_index value;
    double expected;
} pg_guard;

typedef struct {
    pg_instruction *code;
    double *constants;
    pg_index *operands; /* of sums and dots, one list after the other */
    pg_index *outputs;
    pg_guard *guards;
    size_t count, constant_count, operand_count, output_count, guard_count;
    size_t code_room, constant_room, operand_room, output_room, guard_room;
    size_t input_count;
} pg_program;

/* All that make something return NULL, PG_NONE or -1 where memory runs out or a program grows beyond 2**32 - 1. */
pg_program *pg_program_new(size_t inputs);
pg_program *pg_program_copy(const pg_program *program);
void pg_program_free(pg_program *program);

pg_index pg_program_constant(pg_program *program, double number);
pg_index pg_program_row(pg_program *program, int op, pg_index a, pg_index b, pg_index c); /* what is beyond the arity is not looked at */
pg_index pg_program_many(pg_program *program, int op, const pg_index *operands, size_t count);
int pg_program_output(pg_program *program, pg_index value);
int pg_program_guard(pg_program *program, pg_index value, double expected);

static inline int pg_is_constant(const pg_program *program, pg_index value) {
    return program->code[value].op == PG_OP_constant;
}
static inline double pg_constant_of(const pg_program *program, pg_index value) {
    return program->constants[program->code[value].in[0]];
}

/* The operands of an instruction: how many, and each. */
size_t pg_operands_of(const pg_program *program, pg_index value);
pg_index pg_operand_of(const pg_program *program, pg_index value, size_t i);

static inline int pg_guard_holds(double found, double expected) {
    return found == expected || (found != found && expected != expected);
}

/* NULL, or what is wrong with a program that came from elsewhere. A program that passes runs without a crash. */
const char *pg_program_check(const pg_program *program);

/* The text of one instruction ("v7 = tanh v4") into `text`: its length, as snprintf counts it. Of a long list of operands
 * the middle is left out. */
int pg_instruction_text(const pg_program *program, pg_index value, char *text, size_t room);

/* Runs a program as it stands, one instruction after the other, into `values`, of which there are program->count. The
 * plain meaning of a program, which the executors are held to. */
void pg_program_evaluate(const pg_program *program, const double *inputs, double *values);

#endif
