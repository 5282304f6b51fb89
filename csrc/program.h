/* program.h: a static graph of scalars. Owns the program and how it is built, checked and printed; knows no Python.
 * Next: optimise.h makes a program smaller, differentiate.h makes its derivatives, plan.h and interpret.h run it.
 *
 * Note [Program]. A program is flat: instruction i gives value i, from values before it, so the order of the code is an
 * order in which it can be run. The inputs come first, one instruction each. Rows of the op table have their operands
 * in the instruction; `sum` and `dot` have them in a list of their own (in[0] is where it begins, in[1] how many), which
 * differentiation needs to add in the order of the eager graph; pg_optimise turns them into rows. A guard is a value
 * that must come out as it did when the program was captured, else the program does not hold for its inputs.
 *
 * Note [Regions]. What stays rolled has a program of its own, its body, in a region (in[2] is its number), and its
 * operands in a list, as `sum` has them. A loop runs its body once a step: the body's inputs are what is carried from
 * step to step, what all steps share, and one element of each array; its outputs are what is carried on, and what is
 * stacked into arrays, one element a step. A condition runs one of two bodies on the same operands, behind the truth that
 * chooses. A call asks a function from elsewhere. What they give are `result` (in[1] is its number) and `stack`.
 *
 * An array is a value like another, of a length that is known: constants side by side (`array`: in[0] is where they
 * begin, in[1] how many), values side by side (`pack`), or a stack. Only loops and `element` (in[1] is which) take one.
 * So the reverse of a loop is a loop over what the first one stacked, and derivatives of any order come from one rule. */
#ifndef PG_PROGRAM_H
#define PG_PROGRAM_H

#include <stddef.h>
#include <stdint.h>

#include "ops.h"

typedef uint32_t pg_index;
#define PG_NONE UINT32_MAX /* no value: memory ran out, or there is none */

typedef struct pg_program pg_program;

typedef struct {
    uint16_t op;     /* a row, PG_OP_sum, PG_OP_dot, or one of those from PG_OP_input on */
    uint16_t spare;
    pg_index in[PG_MAX_ARITY];
} pg_instruction;

typedef struct {
    pg_index value;
    double expected;
} pg_guard;

/* A function from elsewhere: gives `outputs` numbers for those of the operands: 0, or -1 with an error of its own. */
typedef struct {
    int (*run)(void *self, const double *inputs, double *outputs, size_t input_count, size_t output_count);
    void (*hold)(void *self, int more); /* one holder more, or one less */
    void *self;
} pg_callee;

/* The part of a loop, a condition or a call that is not operands. Bodies never change, and are held by all that use
 * them: two regions with the same body compute the same. */
typedef struct {
    pg_program *body[2];  /* of a condition: where it holds, and where it does not */
    pg_callee callee;     /* of a call */
    size_t length;        /* steps */
    size_t carries, shared, arrays; /* operands of a loop, in this order; of a condition the last ones are shared */
    size_t outputs;       /* of a call: numbers it gives */
    uint8_t backwards;    /* the last step comes first */
    uint8_t saves;        /* what each step begins with is stacked too, behind the body's own stacks */
} pg_region;

struct pg_program {
    pg_instruction *code;
    double *constants;
    pg_index *operands; /* of sums, dots, packs, loops, ..., one list after the other */
    pg_index *outputs;
    pg_guard *guards;
    pg_region *regions;
    size_t count, constant_count, operand_count, output_count, guard_count, region_count;
    size_t code_room, constant_room, operand_room, output_room, guard_room, region_room;
    size_t input_count;
    size_t holders; /* besides the first */
    size_t nested;  /* bodies within one another, beneath it */
    uint8_t calls;  /* it has a call, or a body of it has one */
};

enum { PG_MOST_NESTED = 32 }; /* bodies within bodies: what walks them may recurse */

/* All that make something return NULL, PG_NONE or -1 where memory runs out, a program grows beyond 2**32 - 1, or bodies
 * would be nested beyond PG_MOST_NESTED. */
pg_program *pg_program_new(size_t inputs);
pg_program *pg_program_copy(const pg_program *program);
void pg_program_free(pg_program *program); /* once the last holder is gone */
pg_program *pg_program_hold(pg_program *program);

pg_index pg_program_constant(pg_program *program, double number);
pg_index pg_program_row(pg_program *program, int op, pg_index a, pg_index b, pg_index c); /* what is beyond the arity is not looked at */
pg_index pg_program_many(pg_program *program, int op, const pg_index *operands, size_t count); /* sum, dot */
int pg_program_output(pg_program *program, pg_index value);
int pg_program_guard(pg_program *program, pg_index value, double expected);

/* Arrays. A pack of all elements of an array, in order, is that array; one of constants alone an array of them. */
pg_index pg_program_array(pg_program *program, const double *numbers, size_t count);
pg_index pg_program_pack(pg_program *program, const pg_index *operands, size_t count);
pg_index pg_program_element(pg_program *program, pg_index array, size_t number);

/* A loop, a condition or a call; its bodies and its callee are held, not taken. */
pg_index pg_program_region(pg_program *program, int op, const pg_region *region, const pg_index *operands, size_t count);
pg_index pg_program_result(pg_program *program, pg_index of, size_t number);
pg_index pg_program_stack(pg_program *program, pg_index of, size_t number);

/* A value of another program, the values of which lie at `places` here; and all of it, at the places of its inputs. */
pg_index pg_program_append(pg_program *program, const pg_program *from, pg_index value, const pg_index *places);
int pg_program_inline(pg_program *program, const pg_program *from, const pg_index *inputs, pg_index *outputs);

static inline int pg_is_constant(const pg_program *program, pg_index value) {
    return program->code[value].op == PG_OP_constant;
}
static inline double pg_constant_of(const pg_program *program, pg_index value) {
    return program->constants[program->code[value].in[0]];
}

static inline int pg_is_region(int op) { return op == PG_OP_loop || op == PG_OP_cond || op == PG_OP_call; }
static inline int pg_is_many(int op) { /* has its operands in a list */
    return op == PG_OP_sum || op == PG_OP_dot || op == PG_OP_pack || pg_is_region(op);
}

/* The operands of an instruction: how many, and each. */
size_t pg_operands_of(const pg_program *program, pg_index value);
pg_index pg_operand_of(const pg_program *program, pg_index value, size_t i);

/* Of loops, conditions and calls. */
static inline pg_region *pg_region_of(const pg_program *program, pg_index value) {
    return &program->regions[program->code[value].in[2]];
}
size_t pg_results_of(const pg_program *program, pg_index value); /* how many numbers it gives */
size_t pg_stacks_of(const pg_program *program, pg_index value);  /* how many arrays */

/* Whether an instruction does something when a program runs; of a program how many do, in bodies too. */
static inline int pg_is_work(int op) { return op < PG_OP_TABLE_END || op == PG_OP_sum || op == PG_OP_dot || pg_is_region(op); }
size_t pg_program_size(const pg_program *program);

/* What a value is: a number, an array, or neither: a loop, a condition or a call, of which results and stacks are taken. */
enum pg_kind { PG_NUMBER_KIND, PG_ARRAY_KIND, PG_REGION_KIND };
enum pg_kind pg_kind_of(const pg_program *program, pg_index value);
size_t pg_length_of(const pg_program *program, pg_index array);

static inline int pg_guard_holds(double found, double expected) {
    return found == expected || (found != found && expected != expected);
}

/* NULL, or what is wrong with a program that came from elsewhere. A program that passes runs without a crash. Its bodies
 * are checked before it: however often a body is used, and at whatever depth, it is checked once. */
const char *pg_program_check(const pg_program *program);

/* The callee of a call in the program or in a body of it, which neither bytes nor C can hold; NULL where there is none. */
const pg_callee *pg_program_callee(const pg_program *program);

/* The text of one instruction ("v7 = tanh v4") into `text`: its length, as snprintf counts it. Of a long list of operands
 * the middle is left out. */
int pg_instruction_text(const pg_program *program, pg_index value, char *text, size_t room);

/* Runs a program as it stands, one instruction after the other, into `values`, of which there are program->count; of what
 * is no number, 0. The plain meaning of a program, which the executors are held to. 0, or -1 where memory runs out or a
 * call fails. */
int pg_program_evaluate(const pg_program *program, const double *inputs, double *values);

#endif
