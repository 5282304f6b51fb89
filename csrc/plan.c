/* plan.c: see Note [Runs] and Note [Slots] in plan.h. */
#include "plan.h"

#include <stdlib.h>
#include <string.h>

enum { WINDOW = 2048 };

typedef struct {
    const pg_program *program;
    pg_plan *plan;
    uint32_t *uses;    /* of each value: not yet served */
    pg_index *partner; /* of each value the one that is fused into it, or PG_NONE */
    uint8_t *inner;    /* whether it is fused into another */
    uint32_t *slot;
    uint32_t *given_back; /* a stack */
    size_t given_back_count, word_room;
    /* of the window */
    size_t from, to;
    uint32_t *waits;  /* operands that are yet to come */
    uint32_t *next;   /* in a queue of what is ready */
    uint32_t *first_follower, *followers;
    uint32_t head[PG_PLAN_OPS], tail[PG_PLAN_OPS], ready[PG_PLAN_OPS];
    uint16_t active[PG_PLAN_OPS];
    size_t active_count;
    uint32_t draining; /* the opcode of the run under way */
} planner;

/* ---- fusing ---- */

static int inner_kind(int op) {
    switch (op) {
    case PG_OP_mul: return PG_BY_MUL;
    case PG_OP_zmul: return PG_BY_ZMUL;
    case PG_OP_add: return PG_BY_ADD;
    case PG_OP_sub: return PG_BY_SUB;
    default: return -1;
    }
}

static int can_be_inner(const planner *p, pg_index value) {
    return p->uses[value] == 1 && p->partner[value] == PG_NONE && inner_kind(p->program->code[value].op) >= 0;
}

static void fuse(planner *p) {
    for (size_t i = 0; i < p->program->count; i++) {
        const pg_instruction *instruction = &p->program->code[i];
        p->partner[i] = PG_NONE;
        if (instruction->op != PG_OP_add && instruction->op != PG_OP_sub && instruction->op != PG_OP_mul) continue;
        pg_index left = instruction->in[0], right = instruction->in[1];
        int of_left = can_be_inner(p, left), of_right = can_be_inner(p, right);
        if (!of_left && !of_right) continue;
        pg_index chosen = of_left && (!of_right || left > right) ? left : right; /* the one that came last */
        p->partner[i] = chosen;
        p->inner[chosen] = 1;
        p->plan->fused_count++;
    }
}

/* What a plan has for the instruction: its opcode, and its operands in the order of the words. */
static uint32_t planned(const planner *p, pg_index value, pg_index operands[PG_MAX_ARITY]) {
    const pg_instruction *instruction = &p->program->code[value];
    pg_index chosen = p->partner[value];
    memcpy(operands, instruction->in, sizeof instruction->in);
    if (chosen == PG_NONE) return instruction->op;
    const pg_instruction *inside = &p->program->code[chosen];
    int of_left = chosen == instruction->in[0];
    pg_index other = instruction->in[of_left];
    int outer = instruction->op == PG_OP_add ? PG_INNER_ADD : instruction->op == PG_OP_mul ? PG_INNER_MUL
              : of_left ? PG_INNER_SUB : PG_SUB_INNER;
    operands[0] = inside->in[0];
    operands[1] = inside->in[1];
    operands[2] = other;
    return (uint32_t)PG_FUSED(outer, inner_kind(inside->op));
}

/* ---- words and slots ---- */

static int put(planner *p, uint32_t word) {
    pg_plan *plan = p->plan;
    if (plan->word_count == p->word_room) {
        size_t room = p->word_room ? 2 * p->word_room : 256;
        uint32_t *moved = realloc(plan->words, room * sizeof *moved);
        if (!moved) return -1;
        plan->words = moved;
        p->word_room = room;
    }
    plan->words[plan->word_count++] = word;
    return 0;
}

static uint32_t take_slot(planner *p) {
    return p->given_back_count ? p->given_back[--p->given_back_count] : (uint32_t)p->plan->slot_count++;
}

static void serve(planner *p, pg_index value) {
    if (--p->uses[value] == 0) p->given_back[p->given_back_count++] = p->slot[value];
}

static int emit(planner *p, pg_index value) {
    pg_index operands[PG_MAX_ARITY];
    int arity = pg_plan_arity(planned(p, value, operands)), failed = 0;
    p->slot[value] = take_slot(p);
    failed |= put(p, p->slot[value]);
    for (int i = 0; i < arity; i++) failed |= put(p, p->slot[operands[i]]);
    for (int i = 0; i < arity; i++) serve(p, operands[i]);
    return failed;
}

/* ---- scheduling a window ---- */

static void get_ready(planner *p, pg_index value) {
    pg_index operands[PG_MAX_ARITY];
    uint32_t op = planned(p, value, operands), place = (uint32_t)(value - p->from);
    p->next[place] = UINT32_MAX;
    if (p->ready[op]++) p->next[p->tail[op]] = place;
    else p->head[op] = place;
    if (p->ready[op] == 1 && op != p->draining) p->active[p->active_count++] = (uint16_t)op;
    p->tail[op] = place;
}

static int is_unit(const planner *p, size_t value) {
    int op = p->program->code[value].op;
    return op != PG_OP_input && op != PG_OP_constant && !p->inner[value];
}

/* Within the window: who waits for whom. `followers` are sorted by what they follow. */
static void link_window(planner *p) {
    pg_index operands[PG_MAX_ARITY];
    size_t size = p->to - p->from;
    memset(p->first_follower, 0, (size + 1) * sizeof *p->first_follower);
    for (int pass = 0; pass < 2; pass++) {
        for (size_t value = p->from; value < p->to; value++) {
            if (!is_unit(p, value)) continue;
            int arity = pg_plan_arity(planned(p, (pg_index)value, operands));
            if (pass == 0) p->waits[value - p->from] = 0;
            for (int i = 0; i < arity; i++) {
                if (operands[i] < p->from || !is_unit(p, operands[i])) continue;
                size_t followed = operands[i] - p->from;
                if (pass == 0) p->first_follower[followed]++, p->waits[value - p->from]++;
                else p->followers[--p->first_follower[followed]] = (uint32_t)(value - p->from);
            }
        }
        if (pass) break;
        uint32_t sum = 0;
        for (size_t i = 0; i <= size; i++) p->first_follower[i] = sum += i < size ? p->first_follower[i] : 0;
    }
}

/* The opcode with the most that is ready, taken off the list. */
static uint32_t pick(planner *p) {
    size_t best = 0;
    for (size_t i = 1; i < p->active_count; i++)
        if (p->ready[p->active[i]] > p->ready[p->active[best]]) best = i;
    uint32_t op = p->active[best];
    p->active[best] = p->active[--p->active_count];
    return op;
}

static int drain(planner *p, uint32_t op) {
    size_t header = p->plan->word_count;
    uint32_t count = 0;
    if (put(p, op) < 0 || put(p, 0) < 0) return -1;
    for (p->draining = op; p->ready[op]; count++) {
        uint32_t place = p->head[op];
        p->head[op] = p->next[place];
        p->ready[op]--;
        if (emit(p, (pg_index)(p->from + place)) < 0) return -1;
        for (uint32_t i = p->first_follower[place]; i < p->first_follower[place + 1]; i++)
            if (--p->waits[p->followers[i]] == 0) get_ready(p, (pg_index)(p->from + p->followers[i]));
    }
    p->draining = UINT32_MAX;
    p->plan->words[header + 1] = count;
    p->plan->run_count++;
    return 0;
}

static int schedule_window(planner *p) {
    link_window(p);
    for (size_t value = p->from; value < p->to; value++)
        if (is_unit(p, value) && p->waits[value - p->from] == 0) get_ready(p, (pg_index)value);
    while (p->active_count)
        if (drain(p, pick(p)) < 0) return -1;
    return 0;
}

/* ---- a plan ---- */

/* What every value is needed for; outputs and guards are needed for ever. Constants and inputs keep their slots. */
static void count_uses(planner *p) {
    const pg_program *program = p->program;
    for (size_t i = 0; i < program->count; i++) {
        int op = program->code[i].op;
        if (op == PG_OP_input || op == PG_OP_constant) p->uses[i]++;
        for (size_t k = 0; k < pg_operands_of(program, (pg_index)i); k++) p->uses[pg_operand_of(program, (pg_index)i, k)]++;
    }
    for (size_t i = 0; i < program->output_count; i++) p->uses[program->outputs[i]] += 2; /* not to be fused either */
    for (size_t i = 0; i < program->guard_count; i++) p->uses[program->guards[i].value] += 2;
}

static void place_constants(planner *p) {
    pg_plan *plan = p->plan;
    for (size_t i = 0; i < p->program->count; i++) {
        if (p->program->code[i].op != PG_OP_constant) continue;
        plan->constants[plan->constant_count] = pg_constant_of(p->program, (pg_index)i);
        p->slot[i] = (uint32_t)plan->constant_count++;
    }
    for (size_t i = 0; i < p->program->input_count; i++) p->slot[i] = (uint32_t)(plan->constant_count + i);
    plan->slot_count = plan->constant_count + p->program->input_count;
}

static void place_results(planner *p) {
    pg_plan *plan = p->plan;
    for (size_t i = 0; i < plan->output_count; i++) plan->outputs[i] = p->slot[p->program->outputs[i]];
    for (size_t i = 0; i < plan->guard_count; i++) {
        plan->guards[i] = p->slot[p->program->guards[i].value];
        plan->expected[i] = p->program->guards[i].expected;
    }
}

static int plan_all(planner *p) {
    place_constants(p);
    count_uses(p);
    fuse(p);
    for (size_t i = 0; i < p->program->count; i++) {
        int op = p->program->code[i].op;
        p->plan->instruction_count += op != PG_OP_input && op != PG_OP_constant;
    }
    for (p->from = 0; p->from < p->program->count; p->from = p->to) {
        p->to = p->from + WINDOW < p->program->count ? p->from + WINDOW : p->program->count;
        if (schedule_window(p) < 0) return -1;
    }
    place_results(p);
    return 0;
}

static void *zeros(size_t count, size_t size) { return calloc(count ? count : 1, size); }

pg_plan *pg_plan_make(const pg_program *program) {
    planner *p = zeros(1, sizeof *p);
    pg_plan *plan = zeros(1, sizeof *plan);
    size_t count = program->count;
    int failed = !p || !plan;
    if (!failed) {
        p->program = program;
        p->plan = plan;
        p->draining = UINT32_MAX;
        plan->input_count = program->input_count;
        plan->output_count = program->output_count;
        plan->guard_count = program->guard_count;
        failed |= !(plan->constants = zeros(program->constant_count, sizeof *plan->constants));
        failed |= !(plan->outputs = zeros(program->output_count, sizeof *plan->outputs));
        failed |= !(plan->guards = zeros(program->guard_count, sizeof *plan->guards));
        failed |= !(plan->expected = zeros(program->guard_count, sizeof *plan->expected));
        failed |= !(p->uses = zeros(count, sizeof *p->uses));
        failed |= !(p->partner = zeros(count, sizeof *p->partner));
        failed |= !(p->inner = zeros(count, sizeof *p->inner));
        failed |= !(p->slot = zeros(count, sizeof *p->slot));
        failed |= !(p->given_back = zeros(count, sizeof *p->given_back));
        failed |= !(p->waits = zeros(WINDOW, sizeof *p->waits));
        failed |= !(p->next = zeros(WINDOW, sizeof *p->next));
        failed |= !(p->first_follower = zeros(WINDOW + 1, sizeof *p->first_follower));
        failed |= !(p->followers = zeros(WINDOW * PG_MAX_ARITY, sizeof *p->followers));
        if (!failed) failed = plan_all(p) < 0;
    }
    if (p) {
        free(p->uses);
        free(p->partner);
        free(p->inner);
        free(p->slot);
        free(p->given_back);
        free(p->waits);
        free(p->next);
        free(p->first_follower);
        free(p->followers);
    }
    free(p);
    if (!failed) return plan;
    pg_plan_free(plan);
    return NULL;
}

void pg_plan_free(pg_plan *plan) {
    if (!plan) return;
    free(plan->words);
    free(plan->constants);
    free(plan->outputs);
    free(plan->guards);
    free(plan->expected);
    free(plan);
}
