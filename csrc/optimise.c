/* optimise.c: one pass that folds, simplifies and merges, one that strips. Both are linear. See optimise.h. */
#include "optimise.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "scalar.h"

typedef struct {
    pg_program *to;
    pg_index *table; /* open addressing by what an instruction computes; PG_NONE where free */
    size_t slots;    /* a power of two, more than twice as many as there will be instructions */
    pg_optimise_report *report;
} builder;

/* ---- merging ---- */

static uint64_t bits_of(double number) {
    uint64_t bits;
    memcpy(&bits, &number, sizeof bits);
    return bits;
}

static uint64_t mix(uint64_t hash, uint64_t word) {
    hash = (hash ^ word) * UINT64_C(0x9E3779B97F4A7C15);
    return hash ^ hash >> 29;
}

static uint64_t hash_of(pg_instruction wanted) {
    return mix(mix(mix(mix(0, wanted.op), wanted.in[0]), wanted.in[1]), wanted.in[2]);
}

static int is_same(const builder *b, pg_index value, pg_instruction wanted) {
    return memcmp(&b->to->code[value], &wanted, sizeof wanted) == 0;
}

static int rehash(builder *b) {
    size_t slots = b->slots ? b->slots : 64;
    while (slots < 4 * (b->to->count + 1)) slots *= 2;
    pg_index *table = malloc(slots * sizeof *table);
    if (!table) return -1;
    memset(table, 0xff, slots * sizeof *table);
    for (size_t i = 0; i < b->to->count; i++) {
        const pg_instruction *instruction = &b->to->code[i];
        uint64_t hash = instruction->op == PG_OP_constant ? mix(1, bits_of(pg_constant_of(b->to, (pg_index)i)))
                                                          : hash_of(*instruction);
        size_t slot = hash & (slots - 1);
        while (table[slot] != PG_NONE) slot = (slot + 1) & (slots - 1);
        table[slot] = (pg_index)i;
    }
    free(b->table);
    b->table = table;
    b->slots = slots;
    return 0;
}

static pg_index constant(builder *b, double number) {
    if (2 * (b->to->count + 1) > b->slots && rehash(b) < 0) return PG_NONE;
    uint64_t bits = bits_of(number);
    size_t slot = mix(1, bits) & (b->slots - 1);
    for (; b->table[slot] != PG_NONE; slot = (slot + 1) & (b->slots - 1)) {
        pg_index found = b->table[slot];
        if (pg_is_constant(b->to, found) && bits_of(pg_constant_of(b->to, found)) == bits) return found;
    }
    return b->table[slot] = pg_program_constant(b->to, number);
}

static pg_index row(builder *b, int op, pg_index p, pg_index q, pg_index r) {
    if (2 * (b->to->count + 1) > b->slots && rehash(b) < 0) return PG_NONE;
    int arity = pg_ops[op].arity;
    pg_instruction wanted = {.op = (uint16_t)op, .in = {p, arity > 1 ? q : 0, arity > 2 ? r : 0}};
    size_t slot = hash_of(wanted) & (b->slots - 1);
    for (; b->table[slot] != PG_NONE; slot = (slot + 1) & (b->slots - 1)) {
        if (!is_same(b, b->table[slot], wanted)) continue;
        b->report->merged++;
        return b->table[slot];
    }
    return b->table[slot] = pg_program_row(b->to, op, p, q, r);
}

/* ---- identities: each is exact in IEEE 754 for all operands, signed zeros, inf and nan among them ---- */

static int is(const builder *b, pg_index value, double number) {
    return pg_is_constant(b->to, value) && bits_of(pg_constant_of(b->to, value)) == bits_of(number);
}

static int is_op(const builder *b, pg_index value, int op) { return b->to->code[value].op == op; }
static pg_index inside(const builder *b, pg_index value) { return b->to->code[value].in[0]; }

/* Whether zmul(p, q) is p * q: where p is a constant that is not zero, or q one that is finite. */
static int is_plain_product(const builder *b, pg_index p, pg_index q) {
    return (pg_is_constant(b->to, p) && pg_constant_of(b->to, p) != 0) ||
           (pg_is_constant(b->to, q) && isfinite(pg_constant_of(b->to, q)));
}

static pg_index make(builder *b, int op, pg_index p, pg_index q, pg_index r);

static pg_index simplified(builder *b, int op, pg_index p, pg_index q, pg_index r) {
    b->report->simplified++;
    return make(b, op, p, q, r);
}

static pg_index given(builder *b, pg_index value) {
    b->report->simplified++;
    return value;
}

static pg_index product(builder *b, int op, pg_index p, pg_index q) {
    if (is(b, q, 1)) return given(b, p);
    if (is(b, p, 1)) return given(b, q);
    if (is(b, q, -1)) return simplified(b, PG_OP_neg, p, 0, 0);
    if (is(b, p, -1)) return simplified(b, PG_OP_neg, q, 0, 0);
    if (is_op(b, p, PG_OP_neg) && is_op(b, q, PG_OP_neg)) return simplified(b, op, inside(b, p), inside(b, q), 0);
    return p <= q ? row(b, op, p, q, 0) : row(b, op, q, p, 0);
}

static pg_index sum(builder *b, pg_index p, pg_index q) {
    if (is(b, q, -0.0)) return given(b, p);
    if (is(b, p, -0.0)) return given(b, q);
    if (is_op(b, q, PG_OP_neg)) return simplified(b, PG_OP_sub, p, inside(b, q), 0);
    if (is_op(b, p, PG_OP_neg)) return simplified(b, PG_OP_sub, q, inside(b, p), 0);
    return p <= q ? row(b, PG_OP_add, p, q, 0) : row(b, PG_OP_add, q, p, 0);
}

/* A row whose operands are not all constant. */
static pg_index make(builder *b, int op, pg_index p, pg_index q, pg_index r) {
    switch (op) {
    case PG_OP_add: return sum(b, p, q);
    case PG_OP_sub:
        if (is(b, q, 0)) return given(b, p);
        if (is_op(b, q, PG_OP_neg)) return simplified(b, PG_OP_add, p, inside(b, q), 0);
        break;
    case PG_OP_mul: return product(b, op, p, q);
    case PG_OP_zmul:
        if (is_plain_product(b, p, q)) return simplified(b, PG_OP_mul, p, q, 0);
        break;
    case PG_OP_div:
        if (is(b, q, 1)) return given(b, p);
        if (is(b, q, -1)) return simplified(b, PG_OP_neg, p, 0, 0);
        if (is(b, p, 1)) return simplified(b, PG_OP_reciprocal, q, 0, 0);
        break;
    case PG_OP_neg:
        if (is_op(b, p, PG_OP_neg)) return given(b, inside(b, p));
        break;
    case PG_OP_pos: return given(b, p);
    case PG_OP_square: return simplified(b, PG_OP_mul, p, p, 0);
    case PG_OP_abs:
        if (is_op(b, p, PG_OP_abs)) return given(b, p);
        if (is_op(b, p, PG_OP_neg)) return simplified(b, op, inside(b, p), 0, 0);
        break;
    case PG_OP_pow: /* the table's pow is a * a where b is 2 */
        if (is(b, q, 2)) return simplified(b, PG_OP_mul, p, p, 0);
        if (is(b, q, 1)) return given(b, p);
        break;
    case PG_OP_pow_less_one: /* pow, which the blocks have a loop for, but for the square of the table's pow */
        if (is(b, q, 2)) return given(b, p);
        if (pg_is_constant(b->to, q) && !is(b, q, 3)) {
            double less = pg_constant_of(b->to, q) - 1;
            pg_index exponent = less + 1 == pg_constant_of(b->to, q) ? constant(b, less) : q;
            if (exponent == PG_NONE) return PG_NONE;
            if (exponent != q) return simplified(b, PG_OP_pow, p, exponent, 0);
        }
        break;
    case PG_OP_where:
        if (pg_is_constant(b->to, p)) return given(b, pg_constant_of(b->to, p) != 0 ? q : r);
        if (q == r) return given(b, q);
        break;
    default: break;
    }
    return row(b, op, p, q, r);
}

/* ---- the first pass ---- */

static pg_index rebuilt_row(builder *b, int op, pg_index p, pg_index q, pg_index r) {
    int arity = pg_ops[op].arity;
    const pg_index in[] = {p, q, r};
    double numbers[PG_MAX_ARITY] = {0};
    b->report->before++;
    for (int i = 0; i < arity; i++) {
        if (in[i] == PG_NONE) return PG_NONE;
        if (!pg_is_constant(b->to, in[i])) return make(b, op, p, q, r);
        numbers[i] = pg_constant_of(b->to, in[i]);
    }
    b->report->folded++;
    return constant(b, pg_forward(op, numbers[0], numbers[1], numbers[2]));
}

static pg_index rebuilt_many(builder *b, const pg_program *from, pg_index value, const pg_index *places) {
    size_t count = pg_operands_of(from, value), step = from->code[value].op == PG_OP_dot ? 2 : 1;
    pg_index total = constant(b, 0.0);
    for (size_t i = 0; i < count && total != PG_NONE; i += step) {
        pg_index term = places[pg_operand_of(from, value, i)];
        if (step == 2) term = rebuilt_row(b, PG_OP_mul, term, places[pg_operand_of(from, value, i + 1)], 0);
        total = term == PG_NONE ? PG_NONE : rebuilt_row(b, PG_OP_add, total, term, 0);
    }
    return total;
}

static pg_index rebuilt(builder *b, const pg_program *from, pg_index value, const pg_index *places) {
    const pg_instruction *instruction = &from->code[value];
    const pg_index *in = instruction->in;
    switch (instruction->op) {
    case PG_OP_input: return value;
    case PG_OP_constant: return constant(b, pg_constant_of(from, value));
    case PG_OP_sum:
    case PG_OP_dot: return rebuilt_many(b, from, value, places);
    default: {
        int arity = pg_ops[instruction->op].arity;
        return rebuilt_row(b, instruction->op, places[in[0]], arity > 1 ? places[in[1]] : 0, arity > 2 ? places[in[2]] : 0);
    }
    }
}

/* Outputs and guards of `from`, whose values are now at `places`: 0, or -1. All guards stay, in their order: variants.py
 * tells them by their number. */
static int carry_over(pg_program *to, const pg_program *from, const pg_index *places) {
    for (size_t i = 0; i < from->output_count; i++)
        if (pg_program_output(to, places[from->outputs[i]]) < 0) return -1;
    for (size_t i = 0; i < from->guard_count; i++)
        if (pg_program_guard(to, places[from->guards[i].value], from->guards[i].expected) < 0) return -1;
    return 0;
}

/* ---- the second pass ---- */

static void mark_live(const pg_program *program, uint8_t *live) {
    for (size_t i = 0; i < program->output_count; i++) live[program->outputs[i]] = 1;
    for (size_t i = 0; i < program->guard_count; i++) live[program->guards[i].value] = 1;
    for (size_t i = program->count; i-- > 0;) {
        if (!live[i]) continue;
        for (size_t k = 0; k < pg_operands_of(program, (pg_index)i); k++) live[pg_operand_of(program, (pg_index)i, k)] = 1;
    }
}

static int stripped_into(pg_program *to, const pg_program *from, const uint8_t *live, pg_index *places,
                         pg_optimise_report *report) {
    for (size_t i = 0; i < from->count; i++) {
        const pg_instruction *instruction = &from->code[i];
        const pg_index *in = instruction->in;
        if (i < from->input_count) {
            places[i] = (pg_index)i;
        } else if (!live[i]) {
            report->dead += instruction->op != PG_OP_constant;
        } else if (instruction->op == PG_OP_constant) {
            places[i] = pg_program_constant(to, pg_constant_of(from, (pg_index)i));
        } else {
            int arity = pg_ops[instruction->op].arity;
            places[i] = pg_program_row(to, instruction->op, places[in[0]], arity > 1 ? places[in[1]] : 0,
                                       arity > 2 ? places[in[2]] : 0);
            report->after++;
        }
        if (places[i] == PG_NONE && live[i]) return -1;
    }
    return carry_over(to, from, places);
}

static pg_program *strip(const pg_program *program, pg_optimise_report *report) {
    uint8_t *live = calloc(program->count ? program->count : 1, 1);
    pg_index *places = malloc((program->count ? program->count : 1) * sizeof *places);
    pg_program *to = pg_program_new(program->input_count);
    int failed = !live || !places || !to;
    if (!failed) {
        memset(places, 0xff, program->count * sizeof *places);
        mark_live(program, live);
        failed = stripped_into(to, program, live, places, report) < 0;
    }
    free(live);
    free(places);
    if (!failed) return to;
    pg_program_free(to);
    return NULL;
}

pg_program *pg_optimise(const pg_program *program, pg_optimise_report *report) {
    pg_index *places = malloc((program->count ? program->count : 1) * sizeof *places);
    builder b = {.to = pg_program_new(program->input_count), .report = report};
    pg_program *result = NULL;
    memset(report, 0, sizeof *report);
    int failed = !places || !b.to;
    for (size_t i = 0; i < program->count && !failed; i++) {
        places[i] = rebuilt(&b, program, (pg_index)i, places);
        failed = places[i] == PG_NONE;
    }
    if (!failed && carry_over(b.to, program, places) == 0) result = strip(b.to, report);
    pg_program_free(b.to);
    free(b.table);
    free(places);
    return result;
}
