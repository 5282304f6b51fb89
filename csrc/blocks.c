/* blocks.c: a plan becomes steps, which say where in memory their operands are; a run goes over them block by block.
 * Memory is numbers, one a constant or a shared value, and behind them rows, `width` lanes each. See Note [Lanes]. */
#include "blocks.h"

#include <stdlib.h>
#include <string.h>

#include "scalar.h"

enum { LINE = 64 }; /* bytes that rows are aligned to */

typedef struct {
    uint32_t op, out, in[PG_MAX_ARITY];
} once; /* an instruction on numbers */

struct pg_blocks {
    const pg_plan *plan;
    const pg_loop *loops;
    uint8_t *shared;
    pg_step *steps;
    once *onces;
    uint32_t *inputs, *outputs, *guards; /* places */
    size_t step_count, once_count, number_count, row_count, width, first_row;
};

/* ---- how many lanes ---- */

/* Few enough that the rows stay in a core's share of the outer caches, as far as that leaves enough lanes to pay for
 * the dispatch. Rows are mostly used again soon, or late but in order, so that the nearest cache need not hold all. */
size_t pg_blocks_width(const pg_plan *plan, size_t lanes) {
    enum { CACHE = 1 << 20, LEAST = 32, MOST = 256 };
    size_t rows = plan->slot_count - plan->constant_count, needed = PG_VECTOR;
    size_t width = CACHE / (sizeof(double) * (rows + 1)) / PG_VECTOR * PG_VECTOR;
    width = width < LEAST ? LEAST : width > MOST ? MOST : width;
    while (needed < lanes && needed < width) needed *= 2;
    return needed < width ? needed : width; /* rows no longer than they are filled lie closer */
}

/* ---- from words to steps ---- */

typedef struct {
    pg_blocks *blocks;
    const pg_kernel_row *kernels;
    uint32_t *place; /* of each slot, at this point of the plan */
    uint32_t *row;   /* of each slot, or PG_NONE */
} placing;

static int is_number(const pg_blocks *blocks, uint32_t place) { return place < blocks->first_row; }

static uint32_t place_of_row(placing *p, uint32_t slot) {
    pg_blocks *blocks = p->blocks;
    if (p->row[slot] == PG_NONE) p->row[slot] = (uint32_t)blocks->row_count++;
    return p->place[slot] = (uint32_t)(blocks->first_row + p->row[slot] * blocks->width);
}

/* Loops from elsewhere get rows alone: a loop may go another way where an operand has stride 0, and give other bits. */
static void call_loop(double *a, double *b, double *y, const pg_loop *loop, size_t lanes) {
    char *three[] = {(char *)a, (char *)b, (char *)y}, *two[] = {(char *)a, (char *)y};
    const ptrdiff_t count = (ptrdiff_t)lanes, strides[] = {sizeof *a, sizeof *a, sizeof *a};
    loop->run(b ? three : two, &count, strides, loop->data);
}

static double *filled(double *row, double number, size_t lanes) {
    for (size_t i = 0; i < lanes; i++) row[i] = number;
    return row;
}

static void loop_of_1(double *memory, const pg_step *step, size_t lanes) {
    call_loop(memory + step->in[0], NULL, memory + step->out, step->loop, lanes);
}

static void loop_of_2(double *memory, const pg_step *step, size_t lanes) {
    call_loop(memory + step->in[0], memory + step->in[1], memory + step->out, step->loop, lanes);
}

static void loop_of_number_and_row(double *memory, const pg_step *step, size_t lanes) {
    double *a = filled(memory + step->in[2], memory[step->in[0]], lanes); /* in[2]: a row to spare */
    call_loop(a, memory + step->in[1], memory + step->out, step->loop, lanes);
}

static void loop_of_row_and_number(double *memory, const pg_step *step, size_t lanes) {
    double *b = filled(memory + step->in[2], memory[step->in[1]], lanes);
    call_loop(memory + step->in[0], b, memory + step->out, step->loop, lanes);
}

static const pg_loop *loop_for(const pg_blocks *blocks, uint32_t op) {
    if (!blocks->loops || op >= PG_OP_TABLE_END || pg_ops[op].arity > 2) return NULL;
    return blocks->loops[op].run ? &blocks->loops[op] : NULL;
}

/* One instruction: on numbers alone it is done once a run, and its result is a number of its own. */
static void place_instruction(placing *p, uint32_t op, const uint32_t *word) {
    pg_blocks *blocks = p->blocks;
    uint32_t in[PG_MAX_ARITY] = {0}, numbers = 0, all = 0;
    int arity = pg_plan_arity(op);
    for (int i = 0; i < arity; i++) {
        in[i] = p->place[word[1 + i]];
        if (is_number(blocks, in[i])) numbers |= 1u << i;
        all |= 1u << i;
    }
    if (numbers == all) {
        once *made = &blocks->onces[blocks->once_count++];
        made->op = op;
        made->out = p->place[word[0]] = (uint32_t)blocks->number_count++;
        memcpy(made->in, in, sizeof in);
        return;
    }
    pg_step *step = &blocks->steps[blocks->step_count++];
    memcpy(step->in, in, sizeof in);
    step->out = place_of_row(p, word[0]);
    step->kernel = p->kernels[op][numbers];
    step->loop = loop_for(blocks, op);
    if (!step->loop) return;
    step->kernel = arity == 1 ? loop_of_1 : numbers == 0 ? loop_of_2 : numbers == 1 ? loop_of_number_and_row
                 : loop_of_row_and_number;
    step->in[2] = (uint32_t)blocks->first_row; /* see place_all */
}

static void place_all(placing *p) {
    pg_blocks *blocks = p->blocks;
    const pg_plan *plan = blocks->plan;
    blocks->row_count = 1; /* the first is to spare */
    for (size_t i = 0; i < plan->constant_count; i++) p->place[i] = (uint32_t)blocks->number_count++;
    for (size_t i = 0; i < plan->input_count; i++) {
        uint32_t slot = (uint32_t)(plan->constant_count + i);
        if (blocks->shared[i]) p->place[slot] = (uint32_t)blocks->number_count++;
        else place_of_row(p, slot);
        blocks->inputs[i] = p->place[slot];
    }
    for (const uint32_t *word = plan->words, *end = word + plan->word_count; word < end;) {
        uint32_t op = *word++, count = *word++;
        for (; count; count--, word += 1 + pg_plan_arity(op)) place_instruction(p, op, word);
    }
    for (size_t i = 0; i < plan->output_count; i++) blocks->outputs[i] = p->place[plan->outputs[i]];
    for (size_t i = 0; i < plan->guard_count; i++) blocks->guards[i] = p->place[plan->guards[i]];
}

static void *zeros(size_t count, size_t size) { return calloc(count ? count : 1, size); }

pg_blocks *pg_blocks_new(const pg_plan *plan, size_t width, const uint8_t *shared, const pg_loop *loops, int level) {
    size_t instructions = plan->instruction_count, inputs = plan->input_count;
    pg_blocks *blocks = zeros(1, sizeof *blocks);
    placing p = {.blocks = blocks, .kernels = pg_kernels(level)};
    int failed = !blocks;
    if (!failed) {
        blocks->plan = plan;
        blocks->loops = loops;
        failed |= !(p.place = zeros(plan->slot_count, sizeof *p.place));
        failed |= !(p.row = zeros(plan->slot_count, sizeof *p.row));
        failed |= !(blocks->shared = zeros(inputs, sizeof *blocks->shared));
        failed |= !(blocks->steps = zeros(instructions, sizeof *blocks->steps));
        failed |= !(blocks->onces = zeros(instructions, sizeof *blocks->onces));
        failed |= !(blocks->inputs = zeros(inputs, sizeof *blocks->inputs));
        failed |= !(blocks->outputs = zeros(plan->output_count, sizeof *blocks->outputs));
        failed |= !(blocks->guards = zeros(plan->guard_count, sizeof *blocks->guards));
    }
    if (!failed) {
        size_t numbers = plan->constant_count + instructions;
        if (inputs) memcpy(blocks->shared, shared, inputs);
        for (size_t i = 0; i < inputs; i++) numbers += shared[i] != 0;
        for (size_t i = 0; i < plan->slot_count; i++) p.row[i] = PG_NONE;
        blocks->width = width;
        blocks->first_row = (numbers + LINE) / LINE * LINE;
        failed |= blocks->first_row + (plan->slot_count + 1) * blocks->width > UINT32_MAX;
        if (!failed) place_all(&p);
    }
    free(p.place);
    free(p.row);
    if (!failed) return blocks;
    pg_blocks_free(blocks);
    return NULL;
}

void pg_blocks_free(pg_blocks *blocks) {
    if (!blocks) return;
    free(blocks->shared);
    free(blocks->steps);
    free(blocks->onces);
    free(blocks->inputs);
    free(blocks->outputs);
    free(blocks->guards);
    free(blocks);
}

size_t pg_blocks_bytes(const pg_blocks *blocks) {
    return (blocks->first_row + blocks->row_count * blocks->width) * sizeof(double) + LINE;
}

/* ---- once a run ---- */

/* What a loop gives for one number: a vector of it, so that the loop goes the way that it goes for lanes. */
static double loop_once(const pg_loop *loop, int arity, const double *in) {
    double a[PG_VECTOR], b[PG_VECTOR], y[PG_VECTOR];
    call_loop(filled(a, in[0], PG_VECTOR), arity == 1 ? NULL : filled(b, in[1], PG_VECTOR), y, loop, PG_VECTOR);
    return y[0];
}

static double fused_once(uint32_t op, const double *in) {
    static const int inner[] = {PG_OP_mul, PG_OP_zmul, PG_OP_add, PG_OP_sub};
    uint32_t outer = (op - PG_FUSED_FIRST) / PG_FUSED_INNERS;
    double i = pg_forward(inner[(op - PG_FUSED_FIRST) % PG_FUSED_INNERS], in[0], in[1], 0);
    return outer == PG_INNER_ADD ? i + in[2] : outer == PG_INNER_SUB ? i - in[2]
         : outer == PG_SUB_INNER ? in[2] - i : i * in[2];
}

static void begin(const pg_blocks *blocks, double *memory, const pg_lanes *inputs) {
    const pg_plan *plan = blocks->plan;
    memory[0] = 0; /* the operand of those that have none */
    if (plan->constant_count) memcpy(memory, plan->constants, plan->constant_count * sizeof *memory);
    for (size_t i = 0; i < plan->input_count; i++)
        if (blocks->shared[i]) memcpy(memory + blocks->inputs[i], inputs[i].at, sizeof *memory);
    for (const once *at = blocks->onces, *end = at + blocks->once_count; at < end; at++) {
        double in[PG_MAX_ARITY] = {memory[at->in[0]], memory[at->in[1]], memory[at->in[2]]};
        const pg_loop *loop = loop_for(blocks, at->op);
        if (at->op >= PG_FUSED_FIRST) memory[at->out] = fused_once(at->op, in);
        else if (loop) memory[at->out] = loop_once(loop, pg_ops[at->op].arity, in);
        else memory[at->out] = pg_forward((int)at->op, in[0], in[1], in[2]);
    }
}

/* ---- a block ---- */

static void load(const pg_blocks *blocks, double *memory, const pg_lanes *inputs, size_t at, size_t lanes) {
    for (size_t i = 0; i < blocks->plan->input_count; i++) {
        if (blocks->shared[i]) continue;
        double *row = memory + blocks->inputs[i];
        const char *from = inputs[i].at + (ptrdiff_t)at * inputs[i].stride;
        if (inputs[i].stride == sizeof *row) memcpy(row, from, lanes * sizeof *row);
        else for (size_t k = 0; k < lanes; k++, from += inputs[i].stride) memcpy(row + k, from, sizeof *row);
        for (size_t k = lanes; k % PG_VECTOR; k++) row[k] = row[lanes - 1];
    }
}

static void store(const pg_blocks *blocks, const double *memory, const pg_lanes *outputs, size_t at, size_t lanes) {
    for (size_t i = 0; i < blocks->plan->output_count; i++) {
        const double *row = memory + blocks->outputs[i];
        char *to = outputs[i].at + (ptrdiff_t)at * outputs[i].stride;
        size_t step = !is_number(blocks, blocks->outputs[i]);
        if (step && outputs[i].stride == sizeof *row) memcpy(to, row, lanes * sizeof *row);
        else for (size_t k = 0; k < lanes; k++, row += step, to += outputs[i].stride) memcpy(to, row, sizeof *row);
    }
}

static void check(const pg_blocks *blocks, const double *memory, int32_t *failed, size_t lanes) {
    const pg_plan *plan = blocks->plan;
    for (size_t k = 0; k < lanes; k++) failed[k] = -1;
    for (size_t i = plan->guard_count; i-- > 0;) {
        const double *row = memory + blocks->guards[i], expected = plan->expected[i];
        size_t step = !is_number(blocks, blocks->guards[i]);
        for (size_t k = 0; k < lanes; k++) failed[k] = pg_guard_holds(row[k * step], expected) ? failed[k] : (int32_t)i;
    }
}

void pg_blocks_run(const pg_blocks *blocks, void *memory, const pg_lanes *inputs, const pg_lanes *outputs,
                   int32_t *failed, size_t from, size_t to) {
    double *aligned = (double *)(((uintptr_t)memory + LINE - 1) / LINE * LINE);
    if (from < to) begin(blocks, aligned, inputs);
    for (size_t at = from; at < to; at += blocks->width) {
        size_t lanes = to - at < blocks->width ? to - at : blocks->width;
        size_t padded = (lanes + PG_VECTOR - 1) / PG_VECTOR * PG_VECTOR;
        load(blocks, aligned, inputs, at, lanes);
        for (const pg_step *step = blocks->steps, *end = step + blocks->step_count; step < end; step++)
            step->kernel(aligned, step, padded);
        if (failed) check(blocks, aligned, failed + at, lanes);
        store(blocks, aligned, outputs, at, lanes);
    }
}
