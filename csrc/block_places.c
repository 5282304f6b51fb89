/* block_places.c: a plan becomes steps, which name the places of their operands. See block_parts.h. */
#include <stdlib.h>
#include <string.h>

#include "block_parts.h"

static void *zeros(size_t count, size_t size) { return calloc(count ? count : 1, size); }

typedef struct {
    pg_blocks *blocks;
    const pg_kernel_row *kernels, *sum_kernels;
    int level, failed;
    uint32_t *place;  /* of each slot, at this point of the plan */
    uint32_t *row;    /* of each slot, or PG_NONE */
    uint32_t *writer; /* of each slot the last instruction that writes it, or PG_NONE if that is read, or no output */
    uint32_t *sum;    /* of each slot the output that it is at the end, or PG_NONE */
} placing;

static uint32_t place_of_row(placing *p, uint32_t slot) {
    pg_blocks *blocks = p->blocks;
    if (p->row[slot] == PG_NONE) p->row[slot] = (uint32_t)blocks->row_count++;
    return p->place[slot] = (uint32_t)(blocks->first_row + p->row[slot]);
}

/* ---- loops from elsewhere ---- */

static void loop_of_1(const pg_place *places, const pg_step *step, size_t lanes) {
    pg_call_loop(places[step->in[0]].row, NULL, places[step->out].row, step->loop, lanes);
}

static void loop_of_2(const pg_place *places, const pg_step *step, size_t lanes) {
    pg_call_loop(places[step->in[0]].row, places[step->in[1]].row, places[step->out].row, step->loop, lanes);
}

static void loop_of_number_and_row(const pg_place *places, const pg_step *step, size_t lanes) {
    double *a = pg_filled(places[step->in[2]].row, places[step->in[0]].number, lanes); /* in[2]: a row to spare */
    pg_call_loop(a, places[step->in[1]].row, places[step->out].row, step->loop, lanes);
}

static void loop_of_row_and_number(const pg_place *places, const pg_step *step, size_t lanes) {
    double *b = pg_filled(places[step->in[2]].row, places[step->in[1]].number, lanes);
    pg_call_loop(places[step->in[0]].row, b, places[step->out].row, step->loop, lanes);
}

/* ---- instructions ---- */

/* A loop from elsewhere gets rows that are aligned as all are; an output may lie where another input does. */
static void note_copy(pg_blocks *blocks, uint32_t place) {
    if (!pg_is_number(blocks, place) && place - blocks->first_row <= blocks->input_rows)
        blocks->use[place - blocks->first_row] |= PG_COPIED;
}

static void note_reads(pg_blocks *blocks, const uint32_t *in, uint32_t rows, int by_loop) {
    for (int i = 0; i < PG_MAX_ARITY; i++) {
        size_t row = in[i] - blocks->first_row;
        if (!(rows >> i & 1) || row > blocks->input_rows) continue;
        if (!(blocks->use[row] & PG_READ)) blocks->reads[blocks->read_count++] = (pg_reading){in[i], (uint32_t)blocks->step_count};
        blocks->use[row] |= PG_READ;
        if (by_loop) note_copy(blocks, in[i]);
    }
}

/* An instruction whose result is added up and not written. */
static int place_sum(placing *p, uint32_t op, uint32_t slot, uint32_t numbers, size_t number) {
    if (p->writer[slot] != number || !p->sum_kernels[op][numbers]) return 0;
    pg_step *step = &p->blocks->steps[p->blocks->step_count++];
    step->kernel = p->sum_kernels[op][numbers];
    step->out = PG_VECTOR * p->sum[slot];
    p->sum[slot] = PG_NONE;
    return 1;
}

/* One instruction: on numbers alone it is done once a run, and its result is a number of its own. */
static void place_instruction(placing *p, uint32_t op, const uint32_t *word, size_t number) {
    pg_blocks *blocks = p->blocks;
    uint32_t in[PG_MAX_ARITY] = {0}, numbers = 0, all = 0;
    int arity = pg_plan_arity(op);
    for (int i = 0; i < arity; i++) {
        in[i] = p->place[word[1 + i]];
        if (pg_is_number(blocks, in[i])) numbers |= 1u << i;
        all |= 1u << i;
    }
    if (numbers == all) {
        pg_once *made = &blocks->onces[blocks->once_count++];
        made->op = op;
        made->out = p->place[word[0]] = (uint32_t)blocks->number_count++;
        memcpy(made->in, in, sizeof in);
        return;
    }
    pg_step *step = &blocks->steps[blocks->step_count];
    memcpy(step->in, in, sizeof in);
    step->loop = pg_loop_for(blocks, op);
    note_reads(blocks, in, all & ~numbers, step->loop != NULL);
    if (place_sum(p, op, word[0], numbers, number)) return;
    blocks->step_count++;
    step->out = place_of_row(p, word[0]);
    step->kernel = p->kernels[op][numbers];
    if (!step->loop) return;
    step->kernel = arity == 1 ? loop_of_1 : numbers == 0 ? loop_of_2 : numbers == 1 ? loop_of_number_and_row
                 : loop_of_row_and_number;
    step->in[2] = (uint32_t)blocks->first_row; /* see place_all */
}

/* What a region reads is no output that nothing else reads. */
static void read_by_region(placing *p, const pg_plan_region *region) {
    size_t numbers = region->operand_count - region->arrays;
    for (size_t i = 0; i < region->operand_count; i++)
        for (size_t k = 0; k < (i < numbers ? 1 : region->length); k++) p->writer[region->operands[i] + k] = PG_NONE;
}

/* Which instructions give what is only added up: see Note [Sums]. */
static void find_sums(placing *p) {
    const pg_plan *plan = p->blocks->plan;
    uint32_t number = 0;
    for (const uint32_t *word = plan->words, *end = word + plan->word_count; word < end;) {
        uint32_t op = *word++, count = *word++;
        if (op == PG_PLAN_REGION) {
            read_by_region(p, &plan->regions[*word++]);
            continue;
        }
        if (op == PG_PLAN_PACK) {
            for (word++; count; count--) p->writer[*word++] = PG_NONE;
            continue;
        }
        for (; count; count--, word += 1 + pg_plan_arity(op)) {
            for (int i = 0; i < pg_plan_arity(op); i++) p->writer[word[1 + i]] = PG_NONE;
            p->writer[word[0]] = number++;
        }
    }
    for (size_t i = 0; i < plan->guard_count; i++) p->writer[plan->guards[i]] = PG_NONE;
    for (size_t i = 0; i < plan->output_count; i++) {
        uint32_t slot = plan->outputs[i];
        if (p->sum[slot] != PG_NONE) p->writer[slot] = PG_NONE; /* two outputs */
        p->sum[slot] = (uint32_t)i;
    }
    for (size_t i = 0; i < plan->slot_count; i++)
        if (p->sum[i] == PG_NONE) p->writer[i] = PG_NONE;
}

/* The sums of the outputs that are written, or numbers. */
static void place_other_sums(placing *p) {
    pg_blocks *blocks = p->blocks;
    const pg_plan *plan = blocks->plan;
    for (size_t i = 0; i < plan->output_count; i++) {
        if (p->sum[plan->outputs[i]] == PG_NONE) continue;
        pg_step *step = &blocks->steps[blocks->step_count++];
        step->in[0] = blocks->outputs[i];
        step->kernel = p->sum_kernels[PG_OP_pos][pg_is_number(blocks, step->in[0])];
        step->out = (uint32_t)(PG_VECTOR * i);
    }
}

/* ---- regions ---- */

static pg_step *further_step(placing *p) { return &p->blocks->steps[p->blocks->step_count++]; }

/* The numbers of a pack stay where they are; its rows are copied, since theirs may serve again. */
static void place_pack(placing *p, const uint32_t *slots, size_t count) {
    for (size_t i = 0; i < count; i++) {
        uint32_t from = p->place[slots[1 + i]], slot = slots[0] + (uint32_t)i;
        if (pg_is_number(p->blocks, from)) {
            p->place[slot] = from;
            continue;
        }
        pg_step *step = further_step(p);
        step->in[0] = from;
        step->out = place_of_row(p, slot);
        step->kernel = p->kernels[PG_OP_pos][0];
    }
}

/* Where a slot of a body's plan is at the end: what is stacked is one of its inputs or outputs. */
static uint32_t place_at_end(const pg_blocks *body, uint32_t slot) {
    const pg_plan *plan = body->plan;
    size_t i = 0;
    if (slot >= plan->constant_count && slot < plan->constant_count + plan->input_count)
        return body->inputs[slot - plan->constant_count];
    while (plan->outputs[i] != slot) i++;
    return body->outputs[i];
}

static uint32_t *places_of(placing *p, size_t count) {
    uint32_t *places = malloc((count ? count : 1) * sizeof *places);
    p->failed |= !places;
    return places;
}

static void place_operands(placing *p, const pg_plan_region *plan, pg_block_region *region) {
    size_t numbers = plan->operand_count - plan->arrays;
    for (size_t i = 0; i < numbers; i++) region->operands[i] = p->place[plan->operands[i]];
    for (size_t i = 0; i < plan->arrays; i++)
        for (size_t k = 0; k < plan->length; k++)
            region->elements[i * plan->length + k] = p->place[plan->operands[numbers + i] + k];
}

/* A body, whose inputs are numbers where they are one around, and no carry. */
static pg_blocks *body_of(placing *p, const pg_plan_region *plan, const pg_block_region *region, int which) {
    size_t inputs = plan->body[which]->input_count, numbers = plan->operand_count - plan->arrays;
    size_t first = plan->op == PG_OP_cond; /* behind the truth */
    uint8_t *shared = calloc(inputs + 1, 1);
    for (size_t i = 0; shared && i < inputs && i + first < numbers; i++)
        shared[i] = (first || i >= plan->carries) && pg_is_number(p->blocks, region->operands[i + first]);
    pg_blocks *body = shared ? pg_blocks_new(plan->body[which], shared, p->blocks->loops, p->level, 0) : NULL;
    free(shared);
    if (!body) return NULL;
    body->row_count += plan->op == PG_OP_cond ? 1 : 2 * plan->carries + plan->arrays; /* the spare ones */
    return body;
}

/* Whether carry i of a body is computed in it, and carried on once. */
static int trades(const pg_blocks *body, size_t carries, size_t i) {
    uint32_t place = body->outputs[i];
    int found = pg_is_number(body, place);
    for (size_t k = 0; k < body->plan->input_count; k++) found |= body->inputs[k] == place;
    for (size_t k = 0; k < carries; k++) found |= k != i && body->outputs[k] == place;
    return !found;
}

static void place_region(placing *p, size_t number) {
    pg_blocks *blocks = p->blocks;
    const pg_plan_region *plan = &blocks->plan->regions[number];
    pg_block_region *region = &blocks->regions[blocks->region_count++];
    size_t stacked = plan->stack_count * plan->length;
    *region = (pg_block_region){.plan = plan, .around = blocks};
    region->operands = places_of(p, plan->operand_count - plan->arrays);
    region->elements = places_of(p, plan->arrays * plan->length);
    region->results = places_of(p, plan->result_count);
    region->stacked = places_of(p, plan->stack_count);
    region->stacks = places_of(p, stacked);
    region->trades = zeros(plan->carries, 1);
    p->failed |= !region->trades;
    if (p->failed) return;
    place_operands(p, plan, region);
    for (size_t i = 0; i < plan->operand_count - plan->arrays; i++) note_copy(blocks, region->operands[i]);
    for (size_t i = 0; i < plan->arrays * plan->length; i++) note_copy(blocks, region->elements[i]);
    for (int k = 0; k < 2 && plan->body[k] && !p->failed; k++) {
        p->failed |= !(region->body[k] = body_of(p, plan, region, k));
        if (p->failed) return;
        size_t rows = plan->op == PG_OP_cond ? 1 : 2 * plan->carries + plan->arrays;
        region->spare[k] = (uint32_t)(region->body[k]->first_row + region->body[k]->row_count - rows);
    }
    for (size_t i = 0; i < plan->carries; i++) region->trades[i] = (uint8_t)trades(region->body[0], plan->carries, i);
    region->rooms = (uint32_t)blocks->number_count;
    blocks->number_count += 2;
    for (size_t i = 0; i < plan->result_count; i++) region->results[i] = place_of_row(p, plan->results + (uint32_t)i);
    for (size_t i = 0; i < stacked; i++)
        region->stacks[i] = place_of_row(p, plan->stacks[i / plan->length] + (uint32_t)(i % plan->length));
    for (size_t i = 0; i < plan->stack_count; i++)
        region->stacked[i] = place_at_end(region->body[0], plan->stacked[i]);
    pg_step *step = further_step(p);
    step->region = region;
    step->kernel = pg_block_region_run;
}

static void place_all(placing *p) {
    pg_blocks *blocks = p->blocks;
    const pg_plan *plan = blocks->plan;
    size_t number = 0;
    blocks->number_count = PG_SUMS + 1;
    blocks->row_count = 1; /* the first is to spare */
    if (blocks->segment) find_sums(p);
    for (size_t i = 0; i < plan->constant_count; i++) p->place[i] = (uint32_t)blocks->number_count++;
    for (size_t i = 0; i < plan->input_count; i++) {
        uint32_t slot = (uint32_t)(plan->constant_count + i);
        if (blocks->shared[i]) p->place[slot] = (uint32_t)blocks->number_count++;
        else place_of_row(p, slot);
        blocks->inputs[i] = p->place[slot];
        blocks->input_rows += !blocks->shared[i];
    }
    for (const uint32_t *word = plan->words, *end = word + plan->word_count; word < end;) {
        uint32_t op = *word++, count = *word++;
        if (op == PG_PLAN_REGION) {
            place_region(p, *word++);
            if (p->failed) return;
        } else if (op == PG_PLAN_PACK) {
            place_pack(p, word, count);
            word += 1 + count;
        } else {
            for (; count; count--, word += 1 + pg_plan_arity(op)) place_instruction(p, op, word, number++);
        }
    }
    for (size_t i = 0; i < plan->output_count; i++) note_copy(blocks, blocks->outputs[i] = p->place[plan->outputs[i]]);
    for (size_t i = 0; i < plan->guard_count; i++) blocks->guards[i] = p->place[plan->guards[i]];
    if (blocks->segment) place_other_sums(p);
}

static uint32_t *nones(size_t count) {
    uint32_t *made = zeros(count, sizeof *made);
    if (made) memset(made, 0xff, count * sizeof *made);
    return made;
}

pg_blocks *pg_blocks_new(const pg_plan *plan, const uint8_t *shared, const pg_loop *loops, int level, size_t segment) {
    size_t instructions = plan->instruction_count, inputs = plan->input_count;
    pg_blocks *blocks = zeros(1, sizeof *blocks);
    placing p = {.blocks = blocks, .kernels = pg_kernels(level), .sum_kernels = pg_sum_kernels(level),
                 .level = level};
    int failed = !blocks;
    if (!failed) {
        blocks->plan = plan;
        blocks->loops = loops;
        blocks->segment = segment;
        failed |= !(p.place = zeros(plan->slot_count, sizeof *p.place));
        failed |= !(p.row = nones(plan->slot_count));
        failed |= !(p.writer = nones(plan->slot_count));
        failed |= !(p.sum = nones(plan->slot_count));
        failed |= !(blocks->shared = zeros(inputs, sizeof *blocks->shared));
        failed |= !(blocks->use = zeros(inputs + 1, sizeof *blocks->use));
        failed |= !(blocks->reads = zeros(inputs, sizeof *blocks->reads));
        failed |= !(blocks->steps = zeros(plan->word_count + plan->output_count, sizeof *blocks->steps));
        failed |= !(blocks->regions = zeros(plan->region_count, sizeof *blocks->regions));
        failed |= !(blocks->onces = zeros(instructions, sizeof *blocks->onces));
        failed |= !(blocks->inputs = zeros(inputs, sizeof *blocks->inputs));
        failed |= !(blocks->outputs = zeros(plan->output_count, sizeof *blocks->outputs));
        failed |= !(blocks->guards = zeros(plan->guard_count, sizeof *blocks->guards));
    }
    if (!failed) {
        size_t numbers = PG_SUMS + 1 + plan->constant_count + instructions + 2 * plan->region_count;
        if (inputs) memcpy(blocks->shared, shared, inputs);
        for (size_t i = 0; i < inputs; i++) numbers += shared[i] != 0;
        blocks->first_row = numbers;
        failed |= numbers + plan->slot_count + PG_VECTOR * plan->output_count > UINT32_MAX;
        if (!failed) place_all(&p);
        failed |= p.failed;
    }
    free(p.place);
    free(p.row);
    free(p.writer);
    free(p.sum);
    if (!failed) return blocks;
    pg_blocks_free(blocks);
    return NULL;
}

void pg_blocks_free(pg_blocks *blocks) {
    if (!blocks) return;
    free(blocks->shared);
    free(blocks->use);
    free(blocks->reads);
    for (size_t i = 0; i < blocks->region_count; i++) {
        pg_block_region *region = &blocks->regions[i];
        for (int k = 0; k < 2; k++) pg_blocks_free(region->body[k]);
        free(region->operands);
        free(region->elements);
        free(region->results);
        free(region->trades);
        free(region->stacked);
        free(region->stacks);
    }
    free(blocks->regions);
    free(blocks->steps);
    free(blocks->onces);
    free(blocks->inputs);
    free(blocks->outputs);
    free(blocks->guards);
    free(blocks);
}
