/* ops.c: the op table expanded into the info array, and what is derived from a row's text. Knows no Python. */
#include "ops.h"

#include <ctype.h>
#include <math.h>
#include <string.h>

#define UNARY(name, value, da, domain, summary) \
    [PG_OP_##name] = {#name, 1, #value, {#da}, domain, summary, 1, {0}, {0}, 0},
#define BINARY(name, value, da, db, domain, summary) \
    [PG_OP_##name] = {#name, 2, #value, {#da, #db}, domain, summary, 2, {0}, {0}, 0},
#define TERNARY(name, value, da, db, dc, domain, summary) \
    [PG_OP_##name] = {#name, 3, #value, {#da, #db, #dc}, domain, summary, 3, {0}, {0}, 0},
#define ALIAS(spelling, name)
#define DEFAULT(name, operand, keyword, value)

/* Not in a macro's argument list, so that no name in a formula is expanded before it is made text. */
pg_op_info pg_ops[PG_OP_COUNT] = {
    [PG_OP_leaf] = {.name = "leaf", .summary = "a value with no parents"},
#include "ops.def"
    [PG_OP_sum] = {.name = "sum", .summary = "sum of many values, added from left to right"},
    [PG_OP_dot] = {.name = "dot", .summary = "sum of products of pairs, added from left to right"},
    [PG_OP_closure] = {.name = "leaf", .summary = "a value with parents and a backward_fn of the user's"},
    [PG_OP_custom] = {.name = "custom", .summary = "an op of the user's"},
    [PG_OP_released] = {.name = "released", .summary = "a node whose operands are gone"},
    [PG_OP_input] = {.name = "input", .summary = "an input of a program"},
    [PG_OP_constant] = {.name = "constant", .summary = "a constant of a program"},
    [PG_OP_array] = {.name = "array", .summary = "numbers of a program, side by side"},
    [PG_OP_pack] = {.name = "pack", .summary = "values, side by side"},
    [PG_OP_element] = {.name = "element", .arity = 1, .summary = "one of an array"},
    [PG_OP_loop] = {.name = "loop", .summary = "a program run for each step"},
    [PG_OP_cond] = {.name = "cond", .summary = "one of two programs"},
    [PG_OP_call] = {.name = "call", .summary = "a function of the user's"},
    [PG_OP_result] = {.name = "result", .arity = 1, .summary = "what a loop, a condition or a call gives"},
    [PG_OP_stack] = {.name = "stack", .arity = 1, .summary = "what each step of a loop gives, side by side"},
    [PG_OP_stand_in] = {.name = "stand_in", .arity = 1, .summary = "a leaf's place in the graph of its gradient"},
};

#undef UNARY
#undef BINARY
#undef TERNARY
#undef ALIAS
#undef DEFAULT
#define UNARY(...)
#define BINARY(...)
#define TERNARY(...)
#define DEFAULT(...)
#define ALIAS(spelling, name) {#spelling, PG_OP_##name},
const pg_op_alias pg_op_aliases[] = {
#include "ops.def"
};
const int pg_op_alias_count = sizeof pg_op_aliases / sizeof pg_op_aliases[0];

/* The operands whose letters stand alone in `text`: "a" in "g * a", not in "tanh(a1)". */
static unsigned letters_of(const char *text) {
    unsigned found = 0;
    for (const char *at = text; *at; at++) {
        int inside = at > text && (isalnum((unsigned char)at[-1]) || at[-1] == '_' || at[-1] == '.');
        int goes_on = isalnum((unsigned char)at[1]) || at[1] == '_';
        if (inside || goes_on) continue;
        if (*at == 'a') found |= PG_SAVES_A;
        if (*at == 'b') found |= PG_SAVES_B;
        if (*at == 'c') found |= PG_SAVES_C;
        if (*at == 'y') found |= PG_SAVES_Y;
    }
    return found;
}

static void give_default(int op, int operand, const char *keyword, double value) {
    pg_op_info *info = &pg_ops[op];
    info->keyword[operand] = keyword;
    info->fallback[operand] = value;
    if (operand < info->required) info->required = operand;
}

void pg_ops_init(void) {
    for (int op = 1; op < PG_OP_TABLE_END; op++) {
        pg_ops[op].saved = 0;
        for (int i = 0; i < pg_ops[op].arity; i++) pg_ops[op].saved |= letters_of(pg_ops[op].gradient[i]);
    }
    pg_ops[PG_OP_dot].saved = PG_SAVES_A | PG_SAVES_B;
#undef ALIAS
#undef DEFAULT
#define ALIAS(...)
#define DEFAULT(name, operand, keyword, value) give_default(PG_OP_##name, operand, #keyword, value);
#include "ops.def"
}

int pg_op_find(const char *name) {
    for (int op = 1; op < PG_OP_TABLE_END; op++)
        if (strcmp(pg_ops[op].name, name) == 0) return op;
    for (int i = 0; i < pg_op_alias_count; i++)
        if (strcmp(pg_op_aliases[i].spelling, name) == 0) return pg_op_aliases[i].op;
    return -1;
}

int pg_op_is_flat(int op) {
    if (op <= PG_OP_leaf || op >= PG_OP_TABLE_END) return 0;
    for (int i = 0; i < pg_ops[op].arity; i++)
        if (strcmp(pg_ops[op].gradient[i], "0") != 0) return 0;
    return 1;
}
