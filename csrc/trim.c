/* trim.c: see Note [Trimming] in trim.h. */
#include "trim.h"

#include <stdlib.h>
#include <string.h>

#include "optimise.h"

typedef struct {
    const pg_program *body;
    uint8_t *needed;   /* values of the body */
    pg_index *pending; /* needed, and what leads to them not looked at yet */
    size_t pending_count;
} marks;

static int marks_init(marks *m, const pg_program *body) {
    *m = (marks){.body = body};
    m->needed = calloc(body->count + 1, 1);
    m->pending = malloc((body->count + 1) * sizeof *m->pending);
    return m->needed && m->pending ? 0 : -1;
}

static void marks_free(marks *m) {
    free(m->needed);
    free(m->pending);
}

static void need(marks *m, pg_index value) {
    if (m->needed[value]) return;
    m->needed[value] = 1;
    m->pending[m->pending_count++] = value;
}

/* Until all that leads to what is needed is; what a loop carries is needed with what it is carried on with. */
static void spread(marks *m, size_t carries) {
    while (m->pending_count) {
        pg_index value = m->pending[--m->pending_count];
        if (value < carries) need(m, m->body->outputs[value]);
        for (size_t i = 0; i < pg_operands_of(m->body, value); i++) need(m, pg_operand_of(m->body, value, i));
    }
}

/* The part of a body that is needed, with the inputs and outputs of these numbers; inner loops and conditions are trimmed
 * in turn. (Optimising the part once more would double the work with each level of nesting.) */
static pg_program *part_of(const marks *m, const pg_index *inputs, size_t input_count, const pg_index *outputs,
                           size_t output_count) {
    const pg_program *body = m->body;
    pg_program *made = pg_program_new(input_count);
    pg_index *places = malloc((body->count + 1) * sizeof *places);
    int failed = !made || !places;
    for (size_t i = 0; i < input_count && !failed; i++) places[inputs[i]] = (pg_index)i;
    for (size_t i = body->input_count; i < body->count && !failed; i++) {
        if (!m->needed[i]) continue;
        places[i] = pg_program_append(made, body, (pg_index)i, places);
        failed = places[i] == PG_NONE;
    }
    for (size_t i = 0; i < output_count && !failed; i++)
        failed = pg_program_output(made, places[body->outputs[outputs[i]]]) < 0;
    free(places);
    if (!failed && !made->region_count) return made;
    pg_optimise_report report = {0};
    pg_program *small = failed ? NULL : pg_strip(made, &report);
    pg_program_free(made);
    return small;
}

int pg_trimmed_init(pg_trimmed *trimmed, const pg_program *program, pg_index value) {
    size_t given = pg_results_of(program, value) + pg_stacks_of(program, value) + 1;
    trimmed->wanted = calloc(given, 1);
    trimmed->number = malloc(given * sizeof *trimmed->number);
    trimmed->operands = malloc((pg_operands_of(program, value) + 1) * sizeof *trimmed->operands);
    if (!trimmed->wanted || !trimmed->number || !trimmed->operands) return -1;
    memset(trimmed->number, 0xff, given * sizeof *trimmed->number);
    return 0;
}

void pg_trimmed_free(pg_trimmed *trimmed) {
    free(trimmed->wanted);
    free(trimmed->number);
    free(trimmed->operands);
    for (int i = 0; i < 2; i++) pg_program_free(trimmed->region.body[i]);
}

static void keep(pg_trimmed *trimmed, size_t operand) { trimmed->operands[trimmed->operand_count++] = (pg_index)operand; }

/* Numbers for what is kept of the results and stacks of a loop; the outputs of the body that they are. */
static size_t number_outputs(pg_trimmed *trimmed, const pg_region *region, const uint8_t *carried, pg_index *outputs) {
    size_t carries = region->carries, own = region->body[0]->output_count - carries, count = 0, stacks = 0;
    const uint8_t *wanted = trimmed->wanted;
    for (size_t i = 0; i < carries; i++) {
        if (!carried[i]) continue;
        trimmed->number[i] = (pg_index)count;
        outputs[count++] = (pg_index)i;
    }
    for (size_t i = carries; i < carries + own; i++) {
        if (!wanted[i]) continue;
        trimmed->number[i] = (pg_index)stacks++;
        outputs[count++] = (pg_index)i;
    }
    trimmed->region.saves = 0;
    for (size_t i = 0; region->saves && i < carries; i++) {
        if (!carried[i]) continue;
        trimmed->number[carries + own + i] = (pg_index)stacks++;
        trimmed->region.saves |= wanted[carries + own + i];
    }
    return count;
}

static int trim_loop(pg_trimmed *trimmed, const pg_region *region) {
    const pg_program *body = region->body[0];
    size_t carries = region->carries, own = body->output_count - carries, inputs = body->input_count;
    marks m;
    uint8_t *carried = calloc(carries + 1, 1);
    pg_index *outputs = malloc((body->output_count + 1) * sizeof *outputs);
    int failed = marks_init(&m, body) < 0 || !carried || !outputs;
    if (!failed) {
        for (size_t i = 0; i < carries; i++) {
            carried[i] = trimmed->wanted[i] || (region->saves && trimmed->wanted[carries + own + i]);
            if (carried[i]) need(&m, (pg_index)i);
        }
        for (size_t i = carries; i < carries + own; i++)
            if (trimmed->wanted[i]) need(&m, body->outputs[i]);
        spread(&m, carries);
        for (size_t i = 0; i < carries; i++) carried[i] |= m.needed[i] && body->outputs[i] != i;
        for (size_t i = 0; i < carries; i++)
            if (carried[i]) keep(trimmed, i);
        trimmed->region.carries = trimmed->operand_count;
        for (size_t i = 0; i < carries + region->shared; i++)
            if (m.needed[i] && (i >= carries || !carried[i])) keep(trimmed, i);
        trimmed->region.shared = trimmed->operand_count - trimmed->region.carries;
        for (size_t i = carries + region->shared; i < inputs; i++)
            if (m.needed[i]) keep(trimmed, i);
        trimmed->region.arrays = trimmed->operand_count - trimmed->region.carries - trimmed->region.shared;
        size_t count = number_outputs(trimmed, region, carried, outputs);
        trimmed->region.body[0] = part_of(&m, trimmed->operands, trimmed->operand_count, outputs, count);
        failed = !trimmed->region.body[0];
    }
    marks_free(&m);
    free(carried);
    free(outputs);
    return failed ? -1 : 0;
}

static int trim_cond(pg_trimmed *trimmed, const pg_region *region) {
    size_t count = 0, shared = 0, inputs = region->body[0]->input_count;
    marks m[2] = {{0}, {0}};
    pg_index *outputs = malloc((region->body[0]->output_count + 1) * sizeof *outputs);
    pg_index *kept = malloc((inputs + 1) * sizeof *kept);
    int failed = marks_init(&m[0], region->body[0]) < 0 || marks_init(&m[1], region->body[1]) < 0 || !outputs || !kept;
    for (size_t i = 0; i < region->body[0]->output_count && !failed; i++) {
        if (!trimmed->wanted[i]) continue;
        trimmed->number[i] = (pg_index)count;
        outputs[count++] = (pg_index)i;
        for (int k = 0; k < 2; k++) need(&m[k], region->body[k]->outputs[i]);
    }
    for (int k = 0; k < 2 && !failed; k++) spread(&m[k], 0);
    if (!failed) keep(trimmed, 0);
    for (size_t i = 0; i < inputs && !failed; i++) {
        if (!m[0].needed[i] && !m[1].needed[i]) continue;
        kept[trimmed->operand_count - 1] = (pg_index)i;
        shared += i >= inputs - region->shared;
        keep(trimmed, i + 1);
    }
    trimmed->region.shared = shared;
    for (int k = 0; k < 2 && !failed; k++) {
        trimmed->region.body[k] = part_of(&m[k], kept, trimmed->operand_count - 1, outputs, count);
        failed = !trimmed->region.body[k];
    }
    for (int k = 0; k < 2; k++) marks_free(&m[k]);
    free(outputs);
    free(kept);
    return failed ? -1 : 0;
}

int pg_trim(pg_trimmed *trimmed, const pg_program *program, pg_index value) {
    const pg_region *region = pg_region_of(program, value);
    trimmed->region = *region;
    trimmed->region.body[0] = trimmed->region.body[1] = NULL;
    switch (program->code[value].op) {
    case PG_OP_loop: return trim_loop(trimmed, region);
    case PG_OP_cond: return trim_cond(trimmed, region);
    default:
        if (region->body[0]) trimmed->region.body[0] = pg_program_hold(region->body[0]);
        for (size_t i = 0; i < pg_operands_of(program, value); i++) keep(trimmed, i);
        for (size_t i = 0; i < region->outputs; i++) trimmed->number[i] = (pg_index)i;
        return 0;
    }
}
