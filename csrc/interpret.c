/* interpret.c: one loop over runs, in each one loop over its instructions. See interpret.h and Note [Runs] in plan.h. */
#include "interpret.h"

#include <stdlib.h>
#include <string.h>

#include "scalar.h"

static void place_constants(const pg_plan *plan, double *slots) {
    if (plan->constant_count) memcpy(slots, plan->constants, plan->constant_count * sizeof *slots);
    for (size_t i = 0; i < plan->region_count; i++)
        for (int k = 0; k < 2; k++)
            if (plan->regions[i].body[k]) place_constants(plan->regions[i].body[k], slots + plan->regions[i].at[k]);
}

double *pg_slots_new(const pg_plan *plan) {
    double *slots = calloc(plan->slot_count ? plan->slot_count : 1, sizeof *slots);
    if (slots) place_constants(plan, slots);
    return slots;
}

double *pg_numbers_new(const pg_plan *plan) { return calloc(plan->input_count + plan->output_count + 1, sizeof(double)); }

static int run_region(const pg_plan_region *region, double *slot);

/* 0, or -1 where a call failed. */
static int run(const pg_plan *plan, double *slot) {
    const uint32_t *word = plan->words, *end = word + plan->word_count;
    while (word < end) {
        uint32_t op = *word++, count = *word++;
        switch (op) {
        case PG_PLAN_REGION:
            if (run_region(&plan->regions[*word++], slot) < 0) return -1;
            break;
        case PG_PLAN_PACK: {
            double *array = slot + *word++;
            for (; count; count--) *array++ = slot[*word++];
            break;
        }
#define UNARY(name, value, ...)              \
    case PG_OP_##name:                       \
        for (; count; count--, word += 2) {  \
            double a = slot[word[1]];        \
            slot[word[0]] = (value);         \
        }                                    \
        break;
#define BINARY(name, value, ...)                              \
    case PG_OP_##name:                                        \
        for (; count; count--, word += 3) {                   \
            double a = slot[word[1]], b = slot[word[2]];      \
            slot[word[0]] = (value);                          \
        }                                                     \
        break;
#define TERNARY(name, value, ...)                                                   \
    case PG_OP_##name:                                                              \
        for (; count; count--, word += 4) {                                         \
            double a = slot[word[1]], b = slot[word[2]], c = slot[word[3]];         \
            slot[word[0]] = (value);                                                \
        }                                                                           \
        break;
#include "scalar_names.h"
#include "ops.def"
#include "scalar_names_end.h"
#define FUSED(outer, inner, value)                                                  \
    case PG_FUSED(outer, inner):                                                    \
        for (; count; count--, word += 4) {                                         \
            double a = slot[word[1]], b = slot[word[2]], c = slot[word[3]];         \
            slot[word[0]] = (value);                                                \
        }                                                                           \
        break;
#define FUSED_WITH(inner, i)               \
    FUSED(PG_INNER_ADD, inner, (i) + c)    \
    FUSED(PG_INNER_SUB, inner, (i) - c)    \
    FUSED(PG_SUB_INNER, inner, c - (i))    \
    FUSED(PG_INNER_MUL, inner, (i) * c)
            FUSED_WITH(PG_BY_MUL, a * b)
            FUSED_WITH(PG_BY_ZMUL, pg_zmul(a, b))
            FUSED_WITH(PG_BY_ADD, a + b)
            FUSED_WITH(PG_BY_SUB, a - b)
        }
    }
    return 0;
}

/* ---- regions ---- */

/* What is carried on goes to the results, so that each step reads all of the one before. */
static int run_loop(const pg_plan_region *region, double *slot) {
    const pg_plan *body = region->body[0];
    const uint32_t *arrays = region->operands + region->carries + region->shared;
    double *own = slot + region->at[0], *inputs = own + body->constant_count, *elements = inputs + region->carries + region->shared;
    double *results = slot + region->results;
    size_t carries = region->carries, array_count = region->arrays, stack_count = region->stack_count;
    for (size_t i = 0; i < carries + region->shared; i++) inputs[i] = slot[region->operands[i]];
    for (size_t step = 0; step < region->length; step++) {
        size_t at = region->backwards ? region->length - 1 - step : step;
        for (size_t i = 0; i < array_count; i++) elements[i] = slot[arrays[i] + at];
        if (run(body, own) < 0) return -1;
        for (size_t i = 0; i < stack_count; i++) slot[region->stacks[i] + at] = own[region->stacked[i]];
        for (size_t i = 0; i < carries; i++) results[i] = own[body->outputs[i]];
        for (size_t i = 0; i < carries; i++) inputs[i] = results[i];
    }
    return 0;
}

static int run_cond(const pg_plan_region *region, double *slot) {
    int which = slot[region->operands[0]] == 0;
    const pg_plan *body = region->body[which];
    double *own = slot + region->at[which], *inputs = own + body->constant_count;
    for (size_t i = 0; i < body->input_count; i++) inputs[i] = slot[region->operands[i + 1]];
    if (run(body, own) < 0) return -1;
    for (size_t i = 0; i < body->output_count; i++) slot[region->results + i] = own[body->outputs[i]];
    return 0;
}

static int run_region(const pg_plan_region *region, double *slot) {
    if (region->op == PG_OP_loop) return run_loop(region, slot);
    if (region->op == PG_OP_cond) return run_cond(region, slot);
    for (size_t i = 0; i < region->operand_count; i++) slot[region->at[0] + i] = slot[region->operands[i]];
    return region->callee.run(region->callee.self, slot + region->at[0], slot + region->results, region->operand_count,
                              region->result_count);
}

ptrdiff_t pg_interpret(const pg_plan *plan, const double *inputs, double *slots, double *outputs) {
    if (plan->input_count) memcpy(slots + plan->constant_count, inputs, plan->input_count * sizeof *slots);
    if (run(plan, slots) < 0) return PG_CALL_FAILED;
    for (size_t i = 0; i < plan->guard_count; i++)
        if (!pg_guard_holds(slots[plan->guards[i]], plan->expected[i])) return (ptrdiff_t)i;
    for (size_t i = 0; i < plan->output_count; i++) outputs[i] = slots[plan->outputs[i]];
    return -1;
}
