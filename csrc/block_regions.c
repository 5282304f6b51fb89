/* block_regions.c: see Note [Bodies] in block_parts.h. */
#include "block_parts.h"

#include <string.h>

static void copy(double *to, const pg_blocks *blocks, const pg_place *places, uint32_t place, size_t lanes) {
    if (pg_is_number(blocks, place)) pg_filled(to, places[place].number, lanes);
    else memcpy(to, places[place].row, PG_PADDED(lanes) * sizeof *to);
}

static void run_body(const pg_blocks *body, const pg_place *places, size_t lanes) {
    for (const pg_step *step = body->steps, *end = step + body->step_count; step < end; step++)
        step->kernel(places, step, lanes);
}

/* What a body takes from around: the addresses of rows. Numbers were put in their places when the run began. */
static void lend(const pg_blocks *body, pg_place *in, const pg_place *places, const uint32_t *operands, size_t from,
                 size_t to) {
    for (size_t i = from; i < to; i++)
        if (!body->shared[i]) in[body->inputs[i]].row = places[operands[i]].row;
}

/* ---- loops ---- */

static void run_loop(const pg_block_region *region, const pg_blocks *around, const pg_place *places, size_t lanes) {
    const pg_plan_region *plan = region->plan;
    const pg_blocks *body = region->body[0];
    pg_place *in = (pg_place *)places[region->rooms].row;
    size_t carries = plan->carries, first_array = carries + plan->shared, length = plan->length;
    uint32_t spare = region->spare[0];
    for (size_t i = 0; i < carries; i++) {
        if (!region->trades[i]) in[body->inputs[i]].row = in[spare + i].row;
        copy(in[body->inputs[i]].row, around, places, region->operands[i], lanes);
    }
    lend(body, in, places, region->operands, carries, first_array);
    for (size_t step = 0; step < length; step++) {
        size_t at = plan->backwards ? length - 1 - step : step, other = step % 2 ? spare : spare + carries;
        for (size_t i = 0; i < plan->arrays; i++) {
            uint32_t element = region->elements[i * length + at];
            double *row = in[spare + 2 * carries + i].row;
            in[body->inputs[first_array + i]].row =
                pg_is_number(around, element) ? pg_filled(row, places[element].number, lanes) : places[element].row;
        }
        run_body(body, in, lanes);
        for (size_t i = 0; i < plan->stack_count; i++)
            copy(places[region->stacks[i * length + at]].row, body, in, region->stacked[i], lanes);
        for (size_t i = 0; i < carries; i++)
            if (!region->trades[i]) copy(in[other + i].row, body, in, body->outputs[i], lanes);
        for (size_t i = 0; i < carries; i++) {
            pg_place *now = &in[body->inputs[i]], *next = &in[region->trades[i] ? body->outputs[i] : other + i];
            pg_place before = *now;
            *now = *next;
            if (region->trades[i]) *next = before;
        }
    }
    for (size_t i = 0; i < carries; i++) copy(places[region->results[i]].row, body, in, body->inputs[i], lanes);
}

/* ---- conditions ---- */

/* Whether some lanes want the first body, and whether some want the second. */
static void ask(const double *truth, size_t lanes, int wanted[2]) {
    wanted[0] = wanted[1] = 0;
    for (size_t k = 0; k < lanes; k++) wanted[truth[k] == 0] = 1;
}

static void choose(double *to, const double *truth, const double *other, size_t lanes) {
    for (size_t k = 0; k < PG_PADDED(lanes); k++) to[k] = truth[k] == 0 ? other[k] : to[k];
}

static void run_cond(const pg_block_region *region, const pg_blocks *around, const pg_place *places, size_t lanes) {
    const uint32_t truth = region->operands[0];
    int wanted[2], is_number = pg_is_number(around, truth);
    if (is_number) wanted[1] = places[truth].number == 0, wanted[0] = !wanted[1];
    else ask(places[truth].row, lanes, wanted);
    for (int k = 0; k < 2; k++) {
        const pg_blocks *body = region->body[k];
        pg_place *in = (pg_place *)places[region->rooms + k].row;
        if (!wanted[k]) continue;
        lend(body, in, places, region->operands + 1, 0, body->plan->input_count);
        run_body(body, in, lanes);
        for (size_t i = 0; i < region->plan->result_count; i++) {
            double *to = places[region->results[i]].row, *other = in[region->spare[k]].row;
            if (k == 1 && wanted[0]) {
                copy(other, body, in, body->outputs[i], lanes);
                choose(to, places[truth].row, other, lanes);
            } else {
                copy(to, body, in, body->outputs[i], lanes);
            }
        }
    }
}

void pg_block_region_run(const pg_place *places, const pg_step *step, size_t lanes) {
    const pg_block_region *region = step->region;
    (region->plan->op == PG_OP_loop ? run_loop : run_cond)(region, region->around, places, lanes);
}
