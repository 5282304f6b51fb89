/* plan.h: in which order a program runs, and in which slot each value lies. Owns fusing, scheduling and the placing of
 * slots; knows no arithmetic and no Python. Next: interpret.h runs a plan for one lane, blocks.h for many.
 *
 * Note [Runs]. What an interpreter pays for is dispatch that the processor cannot foresee, and waiting for the
 * instruction before. So instructions are sorted, within windows of the program, into runs of one opcode, which are
 * dispatched once: from what is ready the opcode with the most instructions is taken, and drained, with what becomes
 * ready meanwhile. A run may feed itself, since it goes one by one. An addition, subtraction or product whose operand is
 * one too, used there alone, is fused with it, both roundings kept: the value between never goes through memory.
 *
 * Note [Slots]. Constants come first, then the inputs; the other slots are taken when a value is computed and given back
 * after its last use, the last given back first. A result never lies in a slot of its own operands. An array, what a
 * region gives and a body's own slots are slots side by side. Elements and results are read where they lie; an array's
 * slots serve the next one as long when nothing reads it any more. */
#ifndef PG_PLAN_H
#define PG_PLAN_H

#include "program.h"

/* Opcodes of plans: the rows of the table, and after them pairs of rows: PG_FUSED(outer, inner). */
enum pg_fused_outer { PG_INNER_ADD, PG_INNER_SUB, PG_SUB_INNER, PG_INNER_MUL, PG_FUSED_OUTERS }; /* i + c, i - c, c - i, i * c */
enum pg_fused_inner { PG_BY_MUL, PG_BY_ZMUL, PG_BY_ADD, PG_BY_SUB, PG_FUSED_INNERS };
enum {
    PG_FUSED_FIRST = PG_OP_TABLE_END,
    PG_PLAN_OPS = PG_FUSED_FIRST + PG_FUSED_OUTERS * PG_FUSED_INNERS
};
/* Runs of their own: of numbers of regions; of a pack's slots, of which the first is the array's. */
enum { PG_PLAN_REGION = PG_PLAN_OPS, PG_PLAN_PACK };
#define PG_FUSED(outer, inner) (PG_FUSED_FIRST + (outer) * PG_FUSED_INNERS + (inner))

typedef struct pg_plan pg_plan;

/* A region with its slots, or the first of slots side by side. */
typedef struct {
    uint16_t op;
    uint8_t backwards;
    size_t length, carries, shared, arrays, operand_count, result_count, stack_count;
    pg_plan *body[2];
    pg_callee callee;             /* which the program keeps */
    uint32_t at[2];               /* the bodies' own slots; of a call its operands, side by side */
    uint32_t *operands;
    uint32_t results;
    uint32_t *stacked, *stacks;   /* for each array that is read: a slot of the body, and the array */
} pg_plan_region;

struct pg_plan {
    uint32_t *words; /* for each run: opcode, count, then for each instruction the slots of its result and operands */
    double *constants;
    uint32_t *outputs, *guards; /* slots */
    double *expected;
    pg_plan_region *regions;
    size_t word_count, constant_count, input_count, output_count, guard_count, region_count;
    size_t slot_count, run_count, fused_count, instruction_count;
    int calls; /* whether it calls a function from elsewhere, in a body too */
};

/* Of a program without sums and dots, as pg_optimise gives it, which must outlive the plan; NULL where memory runs out. */
pg_plan *pg_plan_make(const pg_program *program);
void pg_plan_free(pg_plan *plan);

/* About how many instructions a run goes through: those of bodies once a step. */
double pg_plan_work(const pg_plan *plan);

static inline int pg_plan_arity(uint32_t op) { return op < PG_FUSED_FIRST ? pg_ops[op].arity : 3; }

#endif
