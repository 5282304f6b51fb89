/* interpret.c: one loop over runs, in each one loop over its instructions. See interpret.h and Note [Runs] in plan.h. */
#include "interpret.h"

#include <stdlib.h>
#include <string.h>

#include "scalar.h"

double *pg_slots_new(const pg_plan *plan) {
    double *slots = calloc(plan->slot_count ? plan->slot_count : 1, sizeof *slots);
    if (slots && plan->constant_count) memcpy(slots, plan->constants, plan->constant_count * sizeof *slots);
    return slots;
}

double *pg_numbers_new(const pg_plan *plan) { return calloc(plan->input_count + plan->output_count + 1, sizeof(double)); }

static void run(const uint32_t *word, const uint32_t *end, double *slot) {
    while (word < end) {
        uint32_t op = *word++, count = *word++;
        switch (op) {
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
}

ptrdiff_t pg_interpret(const pg_plan *plan, const double *inputs, double *slots, double *outputs) {
    if (plan->input_count) memcpy(slots + plan->constant_count, inputs, plan->input_count * sizeof *slots);
    run(plan->words, plan->words + plan->word_count, slots);
    for (size_t i = 0; i < plan->guard_count; i++)
        if (!pg_guard_holds(slots[plan->guards[i]], plan->expected[i])) return (ptrdiff_t)i;
    for (size_t i = 0; i < plan->output_count; i++) outputs[i] = slots[plan->outputs[i]];
    return -1;
}
