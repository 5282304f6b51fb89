/* optimise.c: one pass that folds, simplifies and merges, one that strips. Both are linear. See optimise.h. */
#include "optimise.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "scalar.h"
#include "trim.h"

/* A body, and what it became. */
typedef struct {
    const pg_program *from;
    pg_program *to;
} optimised_body;

typedef struct {
    pg_program *to;
    pg_index *table; /* open addressing by what an instruction computes; PG_NONE where free */
    size_t slots;    /* a power of two, more than twice as many as there will be instructions */
    optimised_body *bodies;
    pg_index *made;    /* the loops, conditions, calls and arrays made so far, */
    uint64_t *hashes;  /* and what tells most of them apart */
    size_t body_count, made_count, made_room;
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

/* Where such an instruction is, or will be; NULL where memory runs out. */
static pg_index *place_of(builder *b, pg_instruction wanted) {
    if (2 * (b->to->count + 1) > b->slots && rehash(b) < 0) return NULL;
    size_t slot = hash_of(wanted) & (b->slots - 1);
    while (b->table[slot] != PG_NONE && !is_same(b, b->table[slot], wanted)) slot = (slot + 1) & (b->slots - 1);
    return &b->table[slot];
}

static pg_index row(builder *b, int op, pg_index p, pg_index q, pg_index r) {
    int arity = pg_ops[op].arity;
    pg_index *place = place_of(b, (pg_instruction){.op = (uint16_t)op, .in = {p, arity > 1 ? q : 0, arity > 2 ? r : 0}});
    if (!place) return PG_NONE;
    b->report->merged += *place != PG_NONE;
    return *place != PG_NONE ? *place : (*place = pg_program_row(b->to, op, p, q, r));
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

/* ---- regions ---- */

static void add_report(pg_optimise_report *all, const pg_optimise_report *of_body) {
    all->before += of_body->before;
    all->folded += of_body->folded;
    all->simplified += of_body->simplified;
    all->merged += of_body->merged;
    all->dead += of_body->dead;
}

/* Whether two bodies are the same, instruction for instruction. */
static int is_same_body(const pg_program *a, const pg_program *b) {
#define SAME(array, count) (a->count == b->count && (!a->count || memcmp(a->array, b->array, a->count * sizeof *a->array) == 0))
    return a->input_count == b->input_count && SAME(code, count) && SAME(constants, constant_count) &&
           SAME(operands, operand_count) && SAME(outputs, output_count) && SAME(regions, region_count);
#undef SAME
}

/* A body made smaller. What has the same body, or one that becomes the same, has one body afterwards. */
static pg_program *optimised(builder *b, const pg_program *body) {
    for (size_t i = 0; i < b->body_count; i++)
        if (b->bodies[i].from == body) return b->bodies[i].to;
    optimised_body *moved = realloc(b->bodies, (b->body_count + 1) * sizeof *moved);
    if (!moved) return NULL;
    b->bodies = moved;
    pg_optimise_report report;
    pg_program *made = pg_optimise(body, &report);
    if (!made) return NULL;
    add_report(b->report, &report);
    for (size_t i = 0; i < b->body_count; i++) {
        if (!is_same_body(b->bodies[i].to, made)) continue;
        pg_program_free(made);
        made = pg_program_hold(b->bodies[i].to);
        break;
    }
    b->bodies[b->body_count++] = (optimised_body){body, made};
    return made;
}

static int is_same_region(const builder *b, pg_index value, int op, const pg_region *region, const pg_index *operands,
                          size_t count) {
    const pg_instruction *instruction = &b->to->code[value];
    if (instruction->op != op || instruction->in[1] != count) return 0;
    const pg_region *other = pg_region_of(b->to, value);
    return other->body[0] == region->body[0] &&
           other->body[1] == region->body[1] && other->callee.self == region->callee.self &&
           other->callee.run == region->callee.run && other->length == region->length &&
           other->backwards == region->backwards && other->carries == region->carries &&
           memcmp(b->to->operands + instruction->in[0], operands, count * sizeof *operands) == 0;
}

/* What was made, to be found again; or PG_NONE. */
static pg_index noted(builder *b, pg_index value, uint64_t hash) {
    if (b->made_count == b->made_room) {
        size_t room = b->made_room ? 2 * b->made_room : 16;
        pg_index *made = realloc(b->made, room * sizeof *made);
        if (!made) return PG_NONE;
        b->made = made;
        uint64_t *hashes = realloc(b->hashes, room * sizeof *hashes);
        if (!hashes) return PG_NONE;
        b->hashes = hashes;
        b->made_room = room;
    }
    b->hashes[b->made_count] = hash;
    return b->made[b->made_count++] = value;
}

static uint64_t hash_of_region(int op, const pg_region *region, const pg_index *operands, size_t count) {
    uint64_t hash = mix(mix((uint64_t)op, (uintptr_t)region->body[0]), (uintptr_t)region->body[1]);
    for (size_t i = 0; i < count; i++) hash = mix(hash, operands[i]);
    return hash;
}

/* The region on these operands: the one that is there already, which from now on may save more, or a new one. */
static pg_index region_on(builder *b, int op, const pg_region *region, const pg_index *operands, size_t count) {
    uint64_t hash = hash_of_region(op, region, operands, count);
    for (size_t i = 0; i < b->made_count; i++) {
        if (b->hashes[i] != hash || !is_same_region(b, b->made[i], op, region, operands, count)) continue;
        pg_region_of(b->to, b->made[i])->saves |= region->saves;
        b->report->merged++;
        return b->made[i];
    }
    return noted(b, pg_program_region(b->to, op, region, operands, count), hash);
}

/* The same for an array of constants. */
static pg_index array_of(builder *b, const double *numbers, size_t count) {
    uint64_t hash = mix(PG_OP_array, count);
    for (size_t i = 0; i < count; i++) hash = mix(hash, bits_of(numbers[i]));
    for (size_t i = 0; i < b->made_count; i++) {
        const pg_instruction *array = &b->to->code[b->made[i]];
        if (b->hashes[i] != hash || array->op != PG_OP_array || array->in[1] != count) continue;
        if (memcmp(b->to->constants + array->in[0], numbers, count * sizeof *numbers) == 0) return b->made[i];
    }
    return noted(b, pg_program_array(b->to, numbers, count), hash);
}

static pg_index rebuilt_list(builder *b, const pg_program *from, pg_index value, const pg_index *places) {
    const pg_instruction *instruction = &from->code[value];
    size_t count = instruction->in[1];
    pg_index *operands = malloc((count ? count : 1) * sizeof *operands), made = PG_NONE;
    if (!operands) return PG_NONE;
    for (size_t i = 0; i < count; i++) operands[i] = places[from->operands[instruction->in[0] + i]];
    if (instruction->op == PG_OP_pack) {
        made = pg_program_pack(b->to, operands, count);
    } else {
        pg_region region = *pg_region_of(from, value);
        int failed = 0;
        for (int i = 0; i < 2 && instruction->op != PG_OP_call; i++)
            failed |= region.body[i] && !(region.body[i] = optimised(b, region.body[i]));
        b->report->before++;
        if (!failed) made = region_on(b, instruction->op, &region, operands, count);
    }
    free(operands);
    return made;
}

/* What a region gives, where that is known without it: a value of `to`, or PG_NONE. */
static pg_index known_result(builder *b, int op, pg_index of, pg_index number) {
    const pg_program *body = pg_region_of(b->to, of)->body[0];
    if (b->to->code[of].op != PG_OP_loop) return PG_NONE;
    size_t output = number + (op == PG_OP_stack ? pg_region_of(b->to, of)->carries : 0);
    if (output >= body->output_count) return PG_NONE;
    pg_index value = body->outputs[output];
    if (op == PG_OP_result && pg_is_constant(body, value)) return constant(b, pg_constant_of(body, value));
    int unchanged = op == PG_OP_result ? value == number
                  : value < body->input_count && value >= body->input_count - pg_region_of(b->to, of)->arrays;
    return unchanged ? pg_operand_of(b->to, of, value) : PG_NONE;
}

static pg_index rebuilt_part(builder *b, int op, pg_index of, pg_index number) {
    pg_index known = op == PG_OP_element ? PG_NONE : known_result(b, op, of, number);
    if (known != PG_NONE) return given(b, known);
    pg_index *place = place_of(b, (pg_instruction){.op = (uint16_t)op, .in = {of, number}});
    if (!place) return PG_NONE;
    if (*place != PG_NONE) return *place;
    if (op == PG_OP_result) return *place = pg_program_result(b->to, of, number);
    if (op == PG_OP_stack) return *place = pg_program_stack(b->to, of, number);
    pg_index element = pg_program_element(b->to, of, number);
    if (element != PG_NONE && b->to->code[element].op == PG_OP_element) *place = element;
    return element;
}

static pg_index rebuilt(builder *b, const pg_program *from, pg_index value, const pg_index *places) {
    const pg_instruction *instruction = &from->code[value];
    const pg_index *in = instruction->in;
    switch (instruction->op) {
    case PG_OP_input: return value;
    case PG_OP_constant: return constant(b, pg_constant_of(from, value));
    case PG_OP_array: return array_of(b, from->constants + in[0], in[1]);
    case PG_OP_pack:
    case PG_OP_loop:
    case PG_OP_cond:
    case PG_OP_call: return rebuilt_list(b, from, value, places);
    case PG_OP_element:
    case PG_OP_result:
    case PG_OP_stack: return rebuilt_part(b, instruction->op, places[in[0]], in[1]);
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

/* ---- the second pass: what is live, and no more of a region than that ---- */

typedef struct {
    const pg_program *from;
    pg_program *to;
    uint8_t *live;
    pg_index *places;
    pg_trimmed *trimmed; /* of each region */
    pg_optimise_report *report;
} stripper;

static int want(stripper *s, pg_index region, size_t number) {
    pg_trimmed *trimmed = &s->trimmed[s->from->code[region].in[2]];
    s->live[region] = 1;
    if (!trimmed->wanted && pg_trimmed_init(trimmed, s->from, region) < 0) return -1;
    trimmed->wanted[number] = 1;
    return 0;
}

/* From the last to the first, so that what is wanted of a region is known when it is met. */
static int mark_live(stripper *s) {
    const pg_program *from = s->from;
    for (size_t i = 0; i < from->output_count; i++) s->live[from->outputs[i]] = 1;
    for (size_t i = 0; i < from->guard_count; i++) s->live[from->guards[i].value] = 1;
    for (size_t i = from->count; i-- > 0;) {
        if (!s->live[i]) continue;
        const pg_instruction *instruction = &from->code[i];
        pg_index of = instruction->in[0];
        int failed = 0;
        if (instruction->op == PG_OP_result) failed = want(s, of, instruction->in[1]);
        else if (instruction->op == PG_OP_stack) failed = want(s, of, pg_results_of(from, of) + instruction->in[1]);
        else if (pg_is_region(instruction->op)) failed = pg_trim(&s->trimmed[instruction->in[2]], from, (pg_index)i);
        if (failed) return -1;
        const pg_trimmed *trimmed = pg_is_region(instruction->op) ? &s->trimmed[instruction->in[2]] : NULL;
        size_t count = trimmed ? trimmed->operand_count : pg_operands_of(from, (pg_index)i);
        for (size_t k = 0; k < count; k++)
            s->live[pg_operand_of(from, (pg_index)i, trimmed ? trimmed->operands[k] : k)] = 1;
    }
    return 0;
}

static pg_index stripped_region(stripper *s, pg_index value) {
    const pg_instruction *instruction = &s->from->code[value];
    const pg_trimmed *trimmed = &s->trimmed[instruction->in[2]];
    pg_index *operands = malloc((trimmed->operand_count + 1) * sizeof *operands), made;
    if (!operands) return PG_NONE;
    for (size_t i = 0; i < trimmed->operand_count; i++)
        operands[i] = s->places[pg_operand_of(s->from, value, trimmed->operands[i])];
    made = pg_program_region(s->to, instruction->op, &trimmed->region, operands, trimmed->operand_count);
    free(operands);
    for (int i = 0; i < 2; i++) {
        const pg_program *body = trimmed->region.body[i];
        if (body && instruction->op != PG_OP_call) s->report->after += pg_program_size(body);
    }
    return made;
}

static pg_index stripped_value(stripper *s, pg_index value) {
    const pg_instruction *instruction = &s->from->code[value];
    pg_index of = instruction->in[0];
    int op = instruction->op;
    if (pg_is_region(op)) return stripped_region(s, value);
    if (op != PG_OP_result && op != PG_OP_stack) return pg_program_append(s->to, s->from, value, s->places);
    size_t number = instruction->in[1] + (op == PG_OP_stack ? pg_results_of(s->from, of) : 0);
    pg_index now = s->trimmed[s->from->code[of].in[2]].number[number];
    return op == PG_OP_stack ? pg_program_stack(s->to, s->places[of], now) : pg_program_result(s->to, s->places[of], now);
}

static int strip_all(stripper *s) {
    const pg_program *from = s->from;
    if (mark_live(s) < 0) return -1;
    for (size_t i = 0; i < from->count; i++) {
        int op = from->code[i].op;
        if (i < from->input_count) {
            s->places[i] = (pg_index)i;
        } else if (!s->live[i]) {
            s->report->dead += pg_is_work(op);
        } else {
            s->places[i] = stripped_value(s, (pg_index)i);
            s->report->after += pg_is_work(op);
            if (s->places[i] == PG_NONE) return -1;
        }
    }
    return carry_over(s->to, from, s->places);
}

pg_program *pg_strip(const pg_program *program, pg_optimise_report *report) {
    size_t count = program->count ? program->count : 1;
    stripper s = {.from = program, .to = pg_program_new(program->input_count), .report = report};
    s.live = calloc(count, 1);
    s.places = malloc(count * sizeof *s.places);
    s.trimmed = calloc(program->region_count + 1, sizeof *s.trimmed);
    int failed = !s.live || !s.places || !s.to || !s.trimmed;
    if (!failed) {
        memset(s.places, 0xff, program->count * sizeof *s.places);
        failed = strip_all(&s) < 0;
    }
    for (size_t i = 0; s.trimmed && i < program->region_count; i++) pg_trimmed_free(&s.trimmed[i]);
    free(s.live);
    free(s.places);
    free(s.trimmed);
    if (!failed) return s.to;
    pg_program_free(s.to);
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
    if (!failed && carry_over(b.to, program, places) == 0) result = pg_strip(b.to, report);
    pg_program_free(b.to);
    for (size_t i = 0; i < b.body_count; i++) pg_program_free(b.bodies[i].to);
    free(b.bodies);
    free(b.made);
    free(b.hashes);
    free(b.table);
    free(places);
    return result;
}
