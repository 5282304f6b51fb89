/* emit_layout.c: one walk backwards for what is live, one forwards for the parts, one for the places. See emit_layout.h. */
#include "emit_layout.h"

#include <stdlib.h>
#include <string.h>

int pg_is_in_place(const pg_program *program, pg_index pack) {
    size_t count = pg_operands_of(program, pack);
    pg_index first = pg_operand_of(program, pack, 0);
    if (first >= program->input_count || count > program->input_count - first) return 0;
    for (size_t i = 1; i < count; i++)
        if (pg_operand_of(program, pack, i) != first + i) return 0;
    return 1;
}

/* ---- what is live ---- */

static int is_given(int op) { return op == PG_OP_result || op == PG_OP_stack; }

/* From the end on, so that the first use that is met is the last one. */
static void find_uses(pg_layout *layout) {
    const pg_program *program = layout->program;
    memset(layout->last, 0xff, (program->count + 1) * sizeof *layout->last);
    memset(layout->given, 0xff, (program->count + 1) * sizeof *layout->given);
    for (size_t i = 0; i < program->output_count; i++) layout->last[program->outputs[i]] = (pg_index)program->count;
    for (size_t i = 0; i < program->guard_count; i++) layout->last[program->guards[i].value] = (pg_index)program->count;
    for (size_t i = program->count; i-- > program->input_count;) {
        if (!pg_is_live(layout, i)) continue;
        for (size_t k = 0; k < pg_operands_of(program, (pg_index)i); k++) {
            pg_index operand = pg_operand_of(program, (pg_index)i, k);
            if (layout->last[operand] == PG_NONE) layout->last[operand] = (pg_index)i;
        }
        if (!is_given(program->code[i].op)) continue;
        pg_index of = program->code[i].in[0];
        layout->given[i] = layout->given[of];
        layout->given[of] = (pg_index)i;
    }
}

/* ---- parts ---- */

/* How many statements an instruction is, more or less: of a region not more than a part has, since it is not cut. */
static size_t weight_of(const pg_program *program, pg_index value) {
    int op = program->code[value].op;
    if (op < PG_OP_TABLE_END || op == PG_OP_element) return 1;
    if (op == PG_OP_pack) return pg_is_in_place(program, value) ? 0 : pg_operands_of(program, value);
    if (!pg_is_region(op)) return 0;
    size_t weight = 4 + pg_operands_of(program, value) + pg_region_of(program, value)->body[0]->output_count;
    return weight < PG_PART ? weight : PG_PART;
}

static void cut(pg_layout *layout) {
    const pg_program *program = layout->program;
    size_t at = 0;
    for (size_t i = program->input_count; i < program->count; i++) {
        int op = program->code[i].op;
        layout->at[i] = is_given(op) ? layout->at[program->code[i].in[0]] : at;
        if (pg_is_live(layout, i)) at += weight_of(program, (pg_index)i);
    }
    layout->cut = at + program->guard_count + program->output_count > PG_PART;
    layout->parts = layout->cut ? (at + PG_PART - 1) / PG_PART : 0;
}

/* ---- places ---- */

typedef struct { size_t place, length; } spare;

typedef struct {
    pg_layout *layout;
    uint8_t *far;          /* of each value: a later part needs it; or it is an array in `w` */
    size_t *numbers;       /* places of numbers that are free again, the last given back first */
    spare *arrays;         /* and of arrays, which are taken for such of the same length */
    size_t number_count, array_count, array_room;
    int failed;
} placing;

static void note_use(placing *p, pg_index value, size_t part) {
    const pg_program *program = p->layout->program;
    if (value < program->input_count || pg_is_constant(program, value)) return;
    if (pg_kind_of(program, value) == PG_NUMBER_KIND && pg_part_of(p->layout, value) != part) p->far[value] = 1;
}

static void find_far(placing *p) {
    const pg_layout *layout = p->layout;
    const pg_program *program = layout->program;
    for (size_t i = program->input_count; i < program->count; i++) {
        int op = program->code[i].op;
        if (!pg_is_live(layout, i)) continue;
        if (op == PG_OP_stack || (op == PG_OP_pack && !pg_is_in_place(program, (pg_index)i))) p->far[i] = 1;
        for (size_t k = 0; k < pg_operands_of(program, (pg_index)i); k++) /* a pack goes on into later parts */
            note_use(p, pg_operand_of(program, (pg_index)i, k),
                     pg_part_at(layout, layout->at[i] + (op == PG_OP_pack ? k : 0)));
    }
    for (size_t i = 0; i < program->output_count; i++) note_use(p, program->outputs[i], layout->parts);
    for (size_t i = 0; i < program->guard_count; i++) note_use(p, program->guards[i].value, layout->parts);
}

static size_t taken(placing *p, size_t length) {
    if (length == 1 && p->number_count) return p->numbers[--p->number_count];
    for (size_t i = p->array_count; length > 1 && i-- > 0;) {
        if (p->arrays[i].length != length) continue;
        size_t place = p->arrays[i].place;
        p->arrays[i] = p->arrays[--p->array_count];
        return place;
    }
    p->failed |= length > SIZE_MAX / 64 - p->layout->places;
    p->layout->places += length;
    return p->layout->places - length;
}

static void give_back(placing *p, size_t place, size_t length) {
    if (length == 1) {
        p->numbers[p->number_count++] = place;
        return;
    }
    if (p->array_count == p->array_room) {
        size_t room = p->array_room ? 2 * p->array_room : 16;
        spare *arrays = realloc(p->arrays, room * sizeof *arrays);
        if (!arrays) return; /* lost, which costs room alone */
        p->arrays = arrays;
        p->array_room = room;
    }
    p->arrays[p->array_count++] = (spare){place, length};
}

static size_t length_of(const pg_program *program, pg_index value) {
    return pg_kind_of(program, value) == PG_ARRAY_KIND ? pg_length_of(program, value) : 1;
}

static void place_one(placing *p, pg_index value) {
    if (p->far[value]) p->layout->place[value] = taken(p, length_of(p->layout->program, value));
}

/* What a region gives is there when it has run; what goes in and out is not needed after that. */
static void place_region(placing *p, pg_index value) {
    const pg_program *program = p->layout->program, *body = pg_region_of(program, value)->body[0];
    size_t both = body->input_count + body->output_count;
    for (pg_index given = p->layout->given[value]; given != PG_NONE; given = p->layout->given[given]) place_one(p, given);
    if (both <= PG_LOCAL) return;
    p->layout->place[value] = taken(p, both);
    give_back(p, p->layout->place[value], both);
}

static void place_all(placing *p) {
    const pg_layout *layout = p->layout;
    const pg_program *program = layout->program;
    for (size_t i = program->input_count; i < program->count && !p->failed; i++) {
        if (!pg_is_live(layout, i) || is_given(program->code[i].op)) continue;
        if (pg_is_region(program->code[i].op)) place_region(p, (pg_index)i);
        else place_one(p, (pg_index)i);
        for (size_t k = 0; k < pg_operands_of(program, (pg_index)i); k++) {
            pg_index operand = pg_operand_of(program, (pg_index)i, k);
            if (layout->last[operand] != i || !p->far[operand]) continue;
            p->far[operand] = 0;
            give_back(p, layout->place[operand], length_of(program, operand));
        }
    }
    if (layout->cut && !layout->places) p->layout->places = 1; /* no array is empty */
}

int pg_layout_make(pg_layout *layout, const pg_program *program) {
    size_t count = program->count + 1;
    *layout = (pg_layout){.program = program};
    layout->at = calloc(count, sizeof *layout->at);
    layout->place = malloc(count * sizeof *layout->place);
    layout->last = malloc(count * sizeof *layout->last);
    layout->given = malloc(count * sizeof *layout->given);
    placing p = {.layout = layout, .far = calloc(count, 1), .numbers = malloc(count * sizeof *p.numbers)};
    p.failed = !layout->at || !layout->place || !layout->last || !layout->given || !p.far || !p.numbers;
    if (!p.failed) {
        memset(layout->place, 0xff, count * sizeof *layout->place);
        find_uses(layout);
        cut(layout);
        find_far(&p);
        place_all(&p);
    }
    free(p.far);
    free(p.numbers);
    free(p.arrays);
    return p.failed ? -1 : 0;
}

void pg_layout_free(pg_layout *layout) {
    free(layout->at);
    free(layout->place);
    free(layout->last);
    free(layout->given);
}
