/* plan.c: see Note [Runs] and Note [Slots] in plan.h. */
#include "plan.h"

#include <stdlib.h>
#include <string.h>

enum { WINDOW = 2048 };

/* Slots side by side, and the last value that reads them. */
typedef struct {
    size_t length, last;
    uint32_t slot;
} stretch;

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
    /* where there are regions */
    size_t *last;                      /* of each value the last that reads it */
    pg_index *first_part, *next_part;  /* of a region the results and stacks that are taken of it */
    stretch *stretches;
    size_t stretch_count, stretch_room;
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
    return p->program->code[value].op < PG_OP_TABLE_END && !p->inner[value];
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

/* ---- arrays and regions: each is a run of its own, between windows ---- */

/* Who reads a value last: what is put out, nobody is the last of. A pair that is fused reads when its outer one does. */
static void find_last(planner *p) {
    const pg_program *program = p->program;
    for (size_t i = 0; i < program->output_count; i++) p->last[program->outputs[i]] = SIZE_MAX;
    for (size_t i = 0; i < program->guard_count; i++) p->last[program->guards[i].value] = SIZE_MAX;
    for (size_t i = program->count; i-- > 0;) {
        int op = program->code[i].op, is_part = op == PG_OP_element || op == PG_OP_result || op == PG_OP_stack;
        size_t reader = p->inner[i] || is_part ? (p->last[i] > i ? p->last[i] : i) : i;
        for (size_t k = 0; k < pg_operands_of(program, (pg_index)i); k++) {
            size_t *last = &p->last[pg_operand_of(program, (pg_index)i, k)];
            if (reader > *last) *last = reader;
        }
        if (op != PG_OP_result && op != PG_OP_stack) continue;
        p->next_part[i] = p->first_part[program->code[i].in[0]];
        p->first_part[program->code[i].in[0]] = (pg_index)i;
    }
}

/* So many slots side by side that nothing else uses: 0, or -1. */
static int take_slots(planner *p, size_t length, uint32_t *slot) {
    if (length >= PG_NONE - p->plan->slot_count) return -1;
    *slot = (uint32_t)p->plan->slot_count;
    p->plan->slot_count += length;
    return 0;
}

/* The same until `last`; those that nothing from `now` on reads serve again. */
static int take_stretch(planner *p, size_t length, size_t now, size_t last, uint32_t *slot) {
    for (size_t i = 0; i < p->stretch_count; i++) {
        stretch *found = &p->stretches[i];
        if (found->length != length || found->last >= now) continue;
        found->last = last;
        *slot = found->slot;
        return 0;
    }
    if (p->stretch_count == p->stretch_room) {
        size_t room = p->stretch_room ? 2 * p->stretch_room : 16;
        stretch *moved = realloc(p->stretches, room * sizeof *moved);
        if (!moved) return -1;
        p->stretches = moved;
        p->stretch_room = room;
    }
    if (take_slots(p, length, slot) < 0) return -1;
    p->stretches[p->stretch_count++] = (stretch){length, last, *slot};
    return 0;
}

static int is_barrier(int op) { return op == PG_OP_pack || pg_is_region(op); }

/* Inputs side by side are an array as they lie. */
static int is_of_inputs(const planner *p, pg_index pack) {
    for (size_t i = 0; i < pg_operands_of(p->program, pack); i++) {
        pg_index operand = pg_operand_of(p->program, pack, i);
        if (operand >= p->program->input_count || operand != pg_operand_of(p->program, pack, 0) + i) return 0;
    }
    return 1;
}

static int plan_pack(planner *p, pg_index value) {
    size_t count = pg_operands_of(p->program, value);
    if (is_of_inputs(p, value)) {
        p->slot[value] = count ? p->slot[pg_operand_of(p->program, value, 0)] : 0;
        return 0;
    }
    if (take_stretch(p, count, value, p->last[value], &p->slot[value]) < 0) return -1;
    int failed = put(p, PG_PLAN_PACK) < 0 || put(p, (uint32_t)count) < 0 || put(p, p->slot[value]) < 0;
    for (size_t i = 0; i < count && !failed; i++) failed = put(p, p->slot[pg_operand_of(p->program, value, i)]) < 0;
    for (size_t i = 0; i < count && !failed; i++) serve(p, pg_operand_of(p->program, value, i));
    p->plan->run_count++;
    return failed ? -1 : 0;
}

static void *zeros(size_t count, size_t size) { return calloc(count ? count : 1, size); }

/* The arrays that are read of a loop. */
static int place_stacks(planner *p, pg_index value, pg_plan_region *planned_region) {
    const pg_region *region = pg_region_of(p->program, value);
    const pg_plan *body = planned_region->body[0];
    size_t own = body->output_count - region->carries;
    for (pg_index part = p->first_part[value]; part != PG_NONE; part = p->next_part[part]) {
        const pg_instruction *instruction = &p->program->code[part];
        if (instruction->op != PG_OP_stack) continue;
        size_t number = instruction->in[1], at = planned_region->stack_count++;
        if (take_stretch(p, region->length, value, p->last[part], &p->slot[part]) < 0) return -1;
        planned_region->stacks[at] = p->slot[part];
        planned_region->stacked[at] = number < own ? body->outputs[region->carries + number]
                                                   : (uint32_t)(body->constant_count + number - own);
    }
    return 0;
}

static int plan_region(planner *p, pg_index value) {
    const pg_instruction *instruction = &p->program->code[value];
    const pg_region *region = pg_region_of(p->program, value);
    pg_plan_region *made = &p->plan->regions[p->plan->region_count++];
    size_t operands = pg_operands_of(p->program, value);
    *made = (pg_plan_region){.op = instruction->op, .backwards = region->backwards, .length = region->length,
                             .carries = region->carries, .shared = region->shared, .arrays = region->arrays,
                             .operand_count = operands, .result_count = pg_results_of(p->program, value),
                             .callee = region->callee};
    made->operands = zeros(operands, sizeof *made->operands);
    made->stacked = zeros(pg_stacks_of(p->program, value), sizeof *made->stacked);
    made->stacks = zeros(pg_stacks_of(p->program, value), sizeof *made->stacks);
    if (!made->operands || !made->stacked || !made->stacks) return -1;
    for (int i = 0; i < 2 && instruction->op != PG_OP_call; i++) {
        if (!region->body[i]) continue;
        if (!(made->body[i] = pg_plan_make(region->body[i]))) return -1;
        p->plan->calls |= made->body[i]->calls;
        if (take_slots(p, made->body[i]->slot_count, &made->at[i]) < 0) return -1; /* it has constants to keep */
    }
    p->plan->calls |= instruction->op == PG_OP_call;
    if (instruction->op == PG_OP_call && take_stretch(p, operands, value, value, &made->at[0]) < 0) return -1;
    for (size_t i = 0; i < operands; i++) made->operands[i] = p->slot[pg_operand_of(p->program, value, i)];
    if (take_stretch(p, made->result_count, value, p->last[value] > value ? p->last[value] : value, &made->results) < 0)
        return -1;
    p->slot[value] = made->results;
    if (instruction->op == PG_OP_loop && place_stacks(p, value, made) < 0) return -1;
    if (put(p, PG_PLAN_REGION) < 0 || put(p, 1) < 0 || put(p, (uint32_t)(p->plan->region_count - 1)) < 0) return -1;
    p->plan->run_count++;
    for (size_t i = 0; i < operands; i++) {
        pg_index operand = pg_operand_of(p->program, value, i);
        if (pg_kind_of(p->program, operand) == PG_NUMBER_KIND) serve(p, operand);
    }
    return 0;
}

/* Where elements and results lie. Of what is not computed in a window, that is all. */
static void place_parts(planner *p) {
    for (size_t i = p->from; i < p->to; i++) {
        const pg_instruction *instruction = &p->program->code[i];
        if (instruction->op == PG_OP_element || instruction->op == PG_OP_result)
            p->slot[i] = p->slot[instruction->in[0]] + instruction->in[1];
    }
}

/* ---- a plan ---- */

/* What every value is needed for; outputs and guards are needed for ever. What is not computed in a window keeps its
 * slots. */
static void count_uses(planner *p) {
    const pg_program *program = p->program;
    for (size_t i = 0; i < program->count; i++) {
        if (program->code[i].op >= PG_OP_TABLE_END) p->uses[i]++;
        for (size_t k = 0; k < pg_operands_of(program, (pg_index)i); k++) p->uses[pg_operand_of(program, (pg_index)i, k)]++;
    }
    for (size_t i = 0; i < program->output_count; i++) p->uses[program->outputs[i]] += 2; /* not to be fused either */
    for (size_t i = 0; i < program->guard_count; i++) p->uses[program->guards[i].value] += 2;
}

static void place_constants(planner *p) {
    pg_plan *plan = p->plan;
    for (size_t i = 0; i < p->program->count; i++) {
        const pg_instruction *instruction = &p->program->code[i];
        size_t count = instruction->op == PG_OP_constant ? 1 : instruction->op == PG_OP_array ? instruction->in[1] : 0;
        if (instruction->op == PG_OP_constant || instruction->op == PG_OP_array) p->slot[i] = (uint32_t)plan->constant_count;
        if (count) memcpy(plan->constants + plan->constant_count, p->program->constants + instruction->in[0],
                          count * sizeof *plan->constants);
        plan->constant_count += count;
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

/* A window ends where a region or a pack stands, and that comes after it. */
static int plan_all(planner *p) {
    const pg_program *program = p->program;
    place_constants(p);
    count_uses(p);
    fuse(p);
    if (p->last) find_last(p);
    for (size_t i = 0; i < program->count; i++) p->plan->instruction_count += program->code[i].op < PG_OP_TABLE_END;
    for (p->from = 0; p->from < program->count; p->from = p->to) {
        int op = program->code[p->from].op;
        p->to = p->from + 1;
        if (is_barrier(op)) {
            if ((op == PG_OP_pack ? plan_pack : plan_region)(p, (pg_index)p->from) < 0) return -1;
            continue;
        }
        while (p->to < program->count && p->to < p->from + WINDOW && !is_barrier(program->code[p->to].op)) p->to++;
        place_parts(p);
        if (schedule_window(p) < 0) return -1;
    }
    place_results(p);
    return 0;
}

/* Lists that programs with regions or packs need: 0, or -1. */
static int init_regions(planner *p) {
    size_t count = p->program->count, barriers = 0, constants = 0;
    for (size_t i = 0; i < count; i++) {
        barriers += (size_t)is_barrier(p->program->code[i].op);
        constants += p->program->code[i].op == PG_OP_constant     ? 1
                     : p->program->code[i].op == PG_OP_array ? p->program->code[i].in[1]
                                                             : 0;
    }
    if (constants >= PG_NONE || !(p->plan->constants = zeros(constants, sizeof *p->plan->constants))) return -1;
    if (!barriers) return 0;
    p->plan->regions = zeros(barriers, sizeof *p->plan->regions);
    p->last = zeros(count, sizeof *p->last);
    p->first_part = zeros(count, sizeof *p->first_part);
    p->next_part = zeros(count, sizeof *p->next_part);
    if (!p->plan->regions || !p->last || !p->first_part || !p->next_part) return -1;
    memset(p->first_part, 0xff, count * sizeof *p->first_part);
    return 0;
}

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
        failed |= init_regions(p) < 0;
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
        free(p->last);
        free(p->first_part);
        free(p->next_part);
        free(p->stretches);
    }
    free(p);
    if (!failed) return plan;
    pg_plan_free(plan);
    return NULL;
}

double pg_plan_work(const pg_plan *plan) {
    double work = (double)plan->instruction_count;
    for (size_t i = 0; i < plan->region_count; i++) {
        const pg_plan_region *region = &plan->regions[i];
        double steps = region->op == PG_OP_loop ? (double)region->length : 1;
        for (int k = 0; k < 2; k++) work += region->body[k] ? steps * pg_plan_work(region->body[k]) : 0;
    }
    return work;
}

void pg_plan_free(pg_plan *plan) {
    if (!plan) return;
    for (size_t i = 0; i < plan->region_count; i++) {
        for (int k = 0; k < 2; k++) pg_plan_free(plan->regions[i].body[k]);
        free(plan->regions[i].operands);
        free(plan->regions[i].stacked);
        free(plan->regions[i].stacks);
    }
    free(plan->regions);
    free(plan->words);
    free(plan->constants);
    free(plan->outputs);
    free(plan->guards);
    free(plan->expected);
    free(plan);
}
