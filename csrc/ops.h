/* ops.h: the op table as data. Owns the opcodes, the info array and look-up by name; knows no Python.
 * The rows are in ops.def; scalar.h expands them into arithmetic, formula.h reads their texts. */
#ifndef PG_OPS_H
#define PG_OPS_H

enum pg_op {
    PG_OP_leaf = 0, /* no parents */
#define UNARY(name, ...) PG_OP_##name,
#define BINARY(name, ...) PG_OP_##name,
#define TERNARY(name, ...) PG_OP_##name,
#define ALIAS(spelling, name)
#define DEFAULT(name, operand, keyword, value)
#include "ops.def"
#undef UNARY
#undef BINARY
#undef TERNARY
#undef ALIAS
#undef DEFAULT
    PG_OP_TABLE_END, /* elementwise rows are 1 .. PG_OP_TABLE_END - 1 */
    PG_OP_sum = PG_OP_TABLE_END, /* n-ary: operands added from left to right, from 0.0 */
    PG_OP_dot,                   /* n-ary: operands a0, b0, a1, b1, ... */
    PG_OP_closure,               /* n-ary: Value(data, parents), with a backward_fn of the user's */
    PG_OP_custom,                /* n-ary: an op of the user's, in Python */
    PG_OP_released,              /* what backward(retain_graph=False) leaves; `seen` holds what it was */
    PG_OP_stand_in,              /* of a leaf, in the graph of a gradient: see Note [Stand-ins] in py_gradient.c */
    PG_OP_input,                 /* of a program, as all that follow: see program.h */
    PG_OP_constant,
    PG_OP_array,
    PG_OP_pack,
    PG_OP_element,
    PG_OP_loop,
    PG_OP_cond,
    PG_OP_call,
    PG_OP_result,
    PG_OP_stack,
    PG_OP_COUNT
};

enum { PG_MAX_ARITY = 3 };

typedef struct {
    const char *name;
    int arity;
    const char *value;                  /* formula of the value, as text */
    const char *gradient[PG_MAX_ARITY]; /* formula of each operand's gradient, as text */
    const char *domain;
    const char *summary;
    int required;                       /* operands that have no default */
    const char *keyword[PG_MAX_ARITY];  /* name of each operand with a default, else NULL */
    double fallback[PG_MAX_ARITY];      /* its default */
    unsigned saved;                     /* letters the gradients use: PG_SAVES_A ... */
} pg_op_info;

enum { PG_SAVES_A = 1, PG_SAVES_B = 2, PG_SAVES_C = 4, PG_SAVES_Y = 8 };

typedef struct { const char *spelling; int op; } pg_op_alias;

extern pg_op_info pg_ops[PG_OP_COUNT];
extern const pg_op_alias pg_op_aliases[];
extern const int pg_op_alias_count;

void pg_ops_init(void);               /* fills in what is derived: call once before anything else */
int pg_op_find(const char *name);     /* opcode of a row or alias, -1 if there is none */
int pg_op_is_flat(int op);            /* whether it is a row whose every gradient is 0 */

#endif
