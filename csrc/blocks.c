/* blocks.c: a run goes over the steps of a plan, block by block. The memory of a run is places, sums (PG_VECTOR an output)
 * and rows, `width` lanes each, and behind them that of bodies. An input's row is the caller's own where kernels can read
 * that. See Note [Lanes] and Note [Sums], and block_parts.h for the places. */
#include "blocks.h"

#include <stdlib.h>
#include <string.h>

#include "block_parts.h"
#include "scalar.h"

enum { LINE = 64 }; /* bytes that rows are aligned to */

/* ---- how many lanes ---- */

/* Few enough that the rows stay in the outer caches, as far as that leaves enough lanes to pay for the dispatch. Rows are
 * mostly used again soon, or late but in order, so that the nearer caches need not hold all. */
size_t pg_blocks_width(size_t rows, size_t lanes) {
    enum { CACHE = 1 << 22, LEAST = 32, MOST = 256, MANY = 1 << 16 };
    size_t fitting = CACHE / (sizeof(double) * (rows + 1)), width = PG_VECTOR;
    size_t least = rows > MANY ? PG_VECTOR : LEAST; /* arrays of long loops: memory, not dispatch, is what they cost */
    fitting = fitting < least ? least : fitting > MOST ? MOST : fitting;
    while (width < lanes && 2 * width <= fitting) width *= 2; /* rows no longer than they are filled lie closer */
    return width;
}

size_t pg_blocks_rows(const pg_blocks *blocks) {
    size_t rows = blocks->row_count;
    for (size_t i = 0; i < blocks->region_count; i++)
        for (int k = 0; k < 2; k++)
            if (blocks->regions[i].body[k]) rows += pg_blocks_rows(blocks->regions[i].body[k]);
    return rows;
}

/* ---- loops from elsewhere ---- */

/* Loops from elsewhere get rows alone: a loop may go another way where an operand has stride 0, and give other bits. */
void pg_call_loop(double *a, double *b, double *y, const pg_loop *loop, size_t lanes) {
    char *three[] = {(char *)a, (char *)b, (char *)y}, *two[] = {(char *)a, (char *)y};
    const ptrdiff_t count = (ptrdiff_t)PG_PADDED(lanes), strides[] = {sizeof *a, sizeof *a, sizeof *a};
    loop->run(b ? three : two, &count, strides, loop->data);
}

double *pg_filled(double *row, double number, size_t lanes) {
    for (size_t i = 0; i < PG_PADDED(lanes); i++) row[i] = number;
    return row;
}

const pg_loop *pg_loop_for(const pg_blocks *blocks, uint32_t op) {
    if (!blocks->loops || op >= PG_OP_TABLE_END || pg_ops[op].arity > 2) return NULL;
    return blocks->loops[op].run ? &blocks->loops[op] : NULL;
}

/* ---- once a run ---- */

/* What a loop gives for one number: a vector of it, so that the loop goes the way that it goes for lanes. */
static double loop_once(const pg_loop *loop, int arity, const double *in) {
    double a[PG_VECTOR], b[PG_VECTOR], y[PG_VECTOR];
    pg_call_loop(pg_filled(a, in[0], PG_VECTOR), arity == 1 ? NULL : pg_filled(b, in[1], PG_VECTOR), y, loop, PG_VECTOR);
    return y[0];
}

static double fused_once(uint32_t op, const double *in) {
    static const int inner[] = {PG_OP_mul, PG_OP_zmul, PG_OP_add, PG_OP_sub};
    uint32_t outer = (op - PG_FUSED_FIRST) / PG_FUSED_INNERS;
    double i = pg_forward(inner[(op - PG_FUSED_FIRST) % PG_FUSED_INNERS], in[0], in[1], 0);
    return outer == PG_INNER_ADD ? i + in[2] : outer == PG_INNER_SUB ? i - in[2]
         : outer == PG_SUB_INNER ? in[2] - i : i * in[2];
}

/* ---- a block ---- */

/* How many inputs from this one on lie side by side in each lane. */
static size_t neighbours(const pg_blocks *blocks, const pg_lanes *inputs, size_t first) {
    size_t count = 1;
    while (first + count < blocks->plan->input_count && !blocks->shared[first + count] &&
           inputs[first + count].stride == inputs[first].stride &&
           inputs[first + count].at == inputs[first].at + count * sizeof(double))
        count++;
    return count;
}

/* Neighbours into the rows from `row` on; a few lanes at a time, so that what is read and written are lines of memory. */
static void transpose(double *row, size_t width, const char *from, ptrdiff_t stride, size_t count, size_t lanes) {
    for (size_t first = 0; first < lanes; first += PG_VECTOR, from += PG_VECTOR * stride) {
        size_t some = lanes - first < PG_VECTOR ? lanes - first : PG_VECTOR;
        for (size_t i = 0; i < count; i++)
            for (size_t k = 0; k < some; k++)
                memcpy(row + i * width + first + k, from + (ptrdiff_t)k * stride + i * sizeof *row, sizeof *row);
    }
}

static int is_readable(const char *at, ptrdiff_t stride, size_t lanes) {
    return stride == sizeof(double) && (uintptr_t)at % sizeof(double) == 0 && lanes % PG_VECTOR == 0;
}

static void load(const pg_blocks *blocks, pg_place *places, double *rows, size_t width, const pg_lanes *inputs, size_t at,
                 size_t lanes) {
    for (size_t i = 0, count; i < blocks->plan->input_count; i += count) {
        count = 1;
        if (blocks->shared[i]) continue;
        size_t number = blocks->inputs[i] - blocks->first_row;
        ptrdiff_t stride = inputs[i].stride;
        const char *from = inputs[i].at + (ptrdiff_t)at * stride;
        double **place = &places[blocks->inputs[i]].row, *row = rows + number * width;
        if (is_readable(from, stride, lanes) && !(blocks->use[number] & PG_COPIED)) {
            *place = (double *)from;
            continue;
        }
        if (stride == sizeof *row) memcpy(row, from, lanes * sizeof *row);
        else transpose(row, width, from, stride, count = neighbours(blocks, inputs, i), lanes);
        for (size_t k = 0; k < count; k++, row += width) {
            places[blocks->inputs[i] + k].row = row;
            for (size_t pad = lanes; pad % PG_VECTOR; pad++) row[pad] = row[lanes - 1];
        }
    }
}

/* Where the lanes of a place are, and the step from one to the next. */
static const double *lanes_at(const pg_blocks *blocks, const pg_place *places, uint32_t place, size_t *step) {
    *step = !pg_is_number(blocks, place);
    return *step ? places[place].row : &places[place].number;
}

static void store(const pg_blocks *blocks, const pg_place *places, const pg_lanes *outputs, size_t at, size_t lanes) {
    for (size_t i = 0; i < blocks->plan->output_count; i++) {
        size_t step;
        const double *row = lanes_at(blocks, places, blocks->outputs[i], &step);
        char *to = outputs[i].at + (ptrdiff_t)at * outputs[i].stride;
        if (step && outputs[i].stride == sizeof *row) memcpy(to, row, lanes * sizeof *row);
        else for (size_t k = 0; k < lanes; k++, row += step, to += outputs[i].stride) memcpy(to, row, sizeof *row);
    }
}

static void check(const pg_blocks *blocks, const pg_place *places, int32_t *failed, size_t lanes) {
    const pg_plan *plan = blocks->plan;
    for (size_t k = 0; k < lanes; k++) failed[k] = -1;
    for (size_t i = plan->guard_count; i-- > 0;) {
        size_t step;
        const double *row = lanes_at(blocks, places, blocks->guards[i], &step), expected = plan->expected[i];
        for (size_t k = 0; k < lanes; k++) failed[k] = pg_guard_holds(row[k * step], expected) ? failed[k] : (int32_t)i;
    }
}

static int all_hold(const pg_blocks *blocks, const pg_place *places, size_t lanes) {
    int all = 1;
    for (size_t i = 0; i < blocks->plan->guard_count; i++) {
        size_t step;
        const double *row = lanes_at(blocks, places, blocks->guards[i], &step), expected = blocks->plan->expected[i];
        for (size_t k = 0; k < lanes; k++) all &= pg_guard_holds(row[k * step], expected);
    }
    return all;
}

/* ---- sums ---- */

/* Halves to halves; see Note [Sums]. */
static double folded(const double *sums) {
    return ((sums[0] + sums[4]) + (sums[2] + sums[6])) + ((sums[1] + sums[5]) + (sums[3] + sums[7]));
}

double pg_sum_row(const pg_lanes *row, size_t from, size_t to) {
    double sums[PG_VECTOR] = {0}, number;
    for (size_t k = from; k < to; k++) {
        memcpy(&number, row->at + (ptrdiff_t)k * row->stride, sizeof number);
        sums[(k - from) % PG_VECTOR] += number;
    }
    return folded(sums);
}

static void store_sums(const pg_blocks *blocks, const double *sums, const pg_lanes *outputs, size_t segment) {
    for (size_t i = 0; i < blocks->plan->output_count; i++, sums += PG_VECTOR) {
        double sum = folded(sums);
        memcpy(outputs[i].at + (ptrdiff_t)segment * outputs[i].stride, &sum, sizeof sum);
    }
}

/* ---- a run ---- */

typedef struct {
    pg_place *places;
    double *sums, *rows, *bodies;
} room;

/* What a run needs, from an address on; the numbers of it. */
static size_t laid_out(const pg_blocks *blocks, size_t width, double *at, room *made) {
    size_t places = PG_PADDED(blocks->first_row + blocks->row_count), rows = blocks->row_count * width;
    size_t sums = blocks->segment ? PG_VECTOR * blocks->plan->output_count : 0, bodies = 0;
    for (size_t i = 0; i < blocks->region_count; i++)
        for (int k = 0; k < 2; k++)
            if (blocks->regions[i].body[k]) bodies += laid_out(blocks->regions[i].body[k], width, NULL, NULL);
    if (made) *made = (room){(pg_place *)at, at + places, at + places + sums, at + places + sums + rows};
    return places + sums + rows + bodies;
}

static void begin_bodies(const pg_blocks *blocks, const room *in, size_t width);

/* The places of numbers, but for inputs, and the addresses of rows and of bodies' memory. */
static void begin(const pg_blocks *blocks, const room *in, size_t width) {
    const pg_plan *plan = blocks->plan;
    pg_place *places = in->places;
    double *constants = &places[PG_SUMS + 1].number;
    if (plan->constant_count) memcpy(constants, plan->constants, plan->constant_count * sizeof *constants);
    for (const pg_once *at = blocks->onces, *end = at + blocks->once_count; at < end; at++) {
        double operands[PG_MAX_ARITY] = {0}, *out = &places[at->out].number;
        for (int i = 0; i < pg_plan_arity(at->op); i++) operands[i] = places[at->in[i]].number;
        const pg_loop *loop = pg_loop_for(blocks, at->op);
        if (at->op >= PG_FUSED_FIRST) *out = fused_once(at->op, operands);
        else if (loop) *out = loop_once(loop, pg_ops[at->op].arity, operands);
        else *out = pg_forward((int)at->op, operands[0], operands[1], operands[2]);
    }
    for (size_t i = 0; i < blocks->row_count; i++) places[blocks->first_row + i].row = in->rows + i * width;
    begin_bodies(blocks, in, width);
}

static void begin_bodies(const pg_blocks *blocks, const room *in, size_t width) {
    double *at = in->bodies;
    for (size_t i = 0; i < blocks->region_count; i++) {
        const pg_block_region *region = &blocks->regions[i];
        const uint32_t *operands = region->operands + (region->plan->op == PG_OP_cond);
        for (int k = 0; k < 2; k++) {
            const pg_blocks *body = region->body[k];
            room own;
            if (!body) continue;
            in->places[region->rooms + k].row = at;
            at += laid_out(body, width, at, &own);
            for (size_t input = 0; input < body->plan->input_count; input++)
                if (body->shared[input]) own.places[body->inputs[input]].number = in->places[operands[input]].number;
            begin(body, &own, width);
        }
    }
}

size_t pg_blocks_bytes(const pg_blocks *blocks, size_t width) {
    return laid_out(blocks, width, NULL, NULL) * sizeof(double) + LINE;
}

static size_t least(size_t a, size_t b) { return a < b ? a : b; }

/* On its way into the cache. */
static void fetch(const double *row, size_t lanes) {
#if defined(__GNUC__)
    for (size_t i = 0; i < lanes; i += LINE / sizeof *row) __builtin_prefetch(row + i);
#else
    (void)row, (void)lanes;
#endif
}

/* Of the caller's rows those that are read next are fetched: each is short, so that no processor foresees them. */
static void run_block(const pg_blocks *blocks, const room *in, size_t width, const pg_lanes *inputs, size_t at,
                      size_t lanes) {
    enum { AHEAD = 16 };
    const pg_reading *reads = blocks->reads;
    const pg_step *step = blocks->steps;
    size_t count = blocks->read_count;
    load(blocks, in->places, in->rows, width, inputs, at, lanes);
    for (size_t i = 0; i < least(AHEAD, count); i++) fetch(in->places[reads[i].place].row, lanes);
    for (size_t i = 0; i <= count; i++) {
        const pg_step *end = blocks->steps + (i < count ? reads[i].step : blocks->step_count);
        if (i + AHEAD < count) fetch(in->places[reads[i + AHEAD].place].row, lanes);
        for (; step < end; step++) step->kernel(in->places, step, lanes);
    }
}

static int run_sums(const pg_blocks *blocks, const room *in, size_t width, const pg_lanes *inputs,
                    const pg_lanes *outputs, size_t from, size_t to) {
    size_t segment = blocks->segment;
    for (size_t end; from < to; from = end) {
        end = least(to, (from / segment + 1) * segment);
        memset(in->sums, 0, PG_VECTOR * blocks->plan->output_count * sizeof *in->sums);
        for (size_t at = from; at < end; at += width) {
            size_t lanes = least(width, end - at);
            run_block(blocks, in, width, inputs, at, lanes);
            if (!all_hold(blocks, in->places, lanes)) return 0;
        }
        store_sums(blocks, in->sums, outputs, from / segment);
    }
    return 1;
}

int pg_blocks_run(const pg_blocks *blocks, void *memory, size_t width, const pg_lanes *inputs, const pg_lanes *outputs,
                  int32_t *failed, size_t from, size_t to) {
    room in;
    laid_out(blocks, width, (double *)(((uintptr_t)memory + LINE - 1) / LINE * LINE), &in);
    in.places[PG_SUMS].row = in.sums;
    for (size_t i = 0; i < blocks->plan->input_count && from < to; i++)
        if (blocks->shared[i]) memcpy(&in.places[blocks->inputs[i]].number, inputs[i].at, sizeof(double));
    if (from < to) begin(blocks, &in, width);
    if (blocks->segment) return run_sums(blocks, &in, width, inputs, outputs, from, to);
    for (size_t at = from; at < to; at += width) {
        size_t lanes = least(width, to - at);
        run_block(blocks, &in, width, inputs, at, lanes);
        if (failed) check(blocks, in.places, failed + at, lanes);
        store(blocks, in.places, outputs, at, lanes);
    }
    return 1;
}
