/* emit_c.c: programs as C source, the bodies first. See emit_c.h. */
#include "emit_c.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bodies.h"
#include "emit_layout.h"
#include "emit_rows.h"

typedef struct {
    pg_text text;
    const char *name;
    pg_bodies bodies;
    pg_layout *layouts;   /* of each of them */
    size_t *work;         /* how much of `w` each needs, with what it runs */
    uint8_t *runs;        /* whether anything runs it: a static function that nothing calls is a warning */
    const pg_program *program; /* the one that is being written, its number, where its values lie, */
    size_t number;
    const pg_layout *layout;
    char tag[32];         /* and what its functions have in their names: nothing for the whole */
} emitter;

#define put(e, ...) pg_put(&(e)->text, __VA_ARGS__)

static int is_whole(const emitter *e) { return e->number == e->bodies.count - 1; }

/* ---- values ---- */

/* A number in an expression of the function `part`. */
static void put_value(emitter *e, pg_index value, size_t part) {
    if (value < e->program->input_count) put(e, "inputs[%u]", value);
    else if (pg_is_constant(e->program, value)) pg_put_number(&e->text, pg_constant_of(e->program, value));
    else if (pg_part_of(e->layout, value) == part) put(e, "v%u", value);
    else put(e, "w[%zu]", e->layout->place[value]);
}

/* Element `number` of an array; or with `step`, the name of a variable, that many behind the one that it says. */
static void put_element(emitter *e, pg_index array, const char *step, size_t number) {
    size_t place = e->layout->place[array];
    if (e->program->code[array].op == PG_OP_array) {
        put(e, "pg_%sarray_%u[", e->tag, array);
    } else if (place != PG_NOWHERE) {
        put(e, "w[");
        number += place;
    } else {
        put(e, "inputs[");
        number += pg_operand_of(e->program, array, 0);
    }
    if (!step) put(e, "%zu]", number);
    else if (number) put(e, "%zu + %s]", number, step);
    else put(e, "%s]", step);
}

/* A copy for each element from..to of a list of operands, with a loop for many inputs side by side. `target` is the name of
 * what they are copied to, after the spaces before a statement. */
static void put_copies(emitter *e, pg_index value, size_t from, size_t to, const char *target, size_t start, size_t part) {
    int indent = (int)strspn(target, " ");
    enum { MANY = 8 };
    for (size_t i = from, end; i < to; i = end) {
        pg_index first = pg_operand_of(e->program, value, i);
        for (end = i + 1; end < to; end++) {
            pg_index next = pg_operand_of(e->program, value, end);
            if (next >= e->program->input_count || next != first + (end - i)) break;
        }
        if (end - i >= MANY && first < e->program->input_count) {
            put(e, "%.*sfor (size_t i = 0; i < %zu; i++) %s[%zu + i] = inputs[%u + i];\n", indent, target, end - i,
                target + indent, start + i, first);
            continue;
        }
        put(e, "%s[%zu] = ", target, start + i);
        put_value(e, first, part);
        put(e, ";\n");
        end = i + 1;
    }
}

/* The constants that are arrays, for the whole file: several parts may read one. */
static void put_arrays(emitter *e) {
    for (size_t i = e->program->input_count; i < e->program->count; i++) {
        const pg_instruction *instruction = &e->program->code[i];
        if (instruction->op != PG_OP_array || !pg_is_live(e->layout, i)) continue;
        put(e, "static const double pg_%sarray_%zu[%u] = {", e->tag, i, instruction->in[1]);
        for (size_t k = 0; k < instruction->in[1]; k++) {
            put(e, k % 6 ? ", " : k ? ",\n    " : "\n    ");
            pg_put_number(&e->text, e->program->constants[instruction->in[0] + k]);
        }
        put(e, "\n};\n\n");
    }
}

/* ---- loops and conditions ---- */

static void put_call(emitter *e, const pg_program *body) {
    size_t number = pg_bodies_number(&e->bodies, body);
    put(e, "pg_body_%zu(in, out", number);
    if (e->work[number]) put(e, ", w + %zu", e->layout->places);
    put(e, ");\n");
}

/* Numbers that go into a body and come out of it: local, where a compiler keeps few of them in registers. */
static void put_room(emitter *e, pg_index value, const pg_program *body) {
    size_t place = e->layout->place[value], inputs = body->input_count;
    if (place != PG_NOWHERE) put(e, "        double *const in = w + %zu, *const out = w + %zu;\n", place, place + inputs);
    else if (inputs) put(e, "        double in[%zu], out[%zu];\n", inputs, body->output_count);
    else put(e, "        double in[1] = {0}, out[%zu];\n", body->output_count);
}

static void put_carries(emitter *e, size_t carries) {
    enum { MANY = 8 };
    for (size_t i = 0; i < carries && carries <= MANY; i++) put(e, "            in[%zu] = out[%zu];\n", i, i);
    if (carries > MANY) put(e, "            for (size_t i = 0; i < %zu; i++) in[i] = out[i];\n", carries);
}

/* What a step stacks: with `saved` of what it began with, else of what it gave. */
static void put_stacks(emitter *e, pg_index value, int saved) {
    const pg_region *region = pg_region_of(e->program, value);
    size_t own = region->body[0]->output_count - region->carries;
    for (pg_index given = e->layout->given[value]; given != PG_NONE; given = e->layout->given[given]) {
        size_t number = e->program->code[given].in[1];
        if (e->program->code[given].op != PG_OP_stack || (number >= own) != saved) continue;
        put(e, "            ");
        put_element(e, given, "k", 0);
        if (saved) put(e, " = in[%zu];\n", number - own);
        else put(e, " = out[%zu];\n", region->carries + number);
    }
}

static void put_loop(emitter *e, pg_index value, size_t part) {
    const pg_region *region = pg_region_of(e->program, value);
    size_t numbers = region->carries + region->shared;
    put_copies(e, value, 0, numbers, "        in", 0, part);
    if (region->backwards) put(e, "        for (size_t k = %zu; k-- > 0;) {\n", region->length);
    else put(e, "        for (size_t k = 0; k < %zu; k++) {\n", region->length);
    for (size_t i = 0; i < region->arrays; i++) {
        put(e, "            in[%zu] = ", numbers + i);
        put_element(e, pg_operand_of(e->program, value, numbers + i), "k", 0);
        put(e, ";\n");
    }
    put_stacks(e, value, 1);
    put(e, "            ");
    put_call(e, region->body[0]);
    put_stacks(e, value, 0);
    put_carries(e, region->carries);
    put(e, "        }\n");
}

static void put_condition(emitter *e, pg_index value, size_t part) {
    const pg_region *region = pg_region_of(e->program, value);
    pg_index truth = pg_operand_of(e->program, value, 0);
    for (size_t i = 1; i < pg_operands_of(e->program, value); i++) {
        put(e, "        in[%zu] = ", i - 1);
        put_value(e, pg_operand_of(e->program, value, i), part);
        put(e, ";\n");
    }
    put(e, "        if (");
    put_value(e, truth, part);
    put(e, " != 0) ");
    put_call(e, region->body[0]);
    put(e, "        else ");
    put_call(e, region->body[1]);
}

static pg_index next_result(const emitter *e, pg_index value) {
    do value = e->layout->given[value];
    while (value != PG_NONE && e->program->code[value].op != PG_OP_result);
    return value;
}

/* Results are variables of the function, the rest is gone behind it. */
static void put_region(emitter *e, pg_index value, size_t part) {
    const pg_program *program = e->program;
    const size_t *place = e->layout->place;
    int is_loop = program->code[value].op == PG_OP_loop;
    pg_index first = next_result(e, value);
    for (pg_index result = first; result != PG_NONE; result = next_result(e, result)) put(e, "    double v%u;\n", result);
    put(e, "    {\n");
    put_room(e, value, pg_region_of(program, value)->body[0]);
    if (is_loop) put_loop(e, value, part);
    else put_condition(e, value, part);
    for (pg_index result = first; result != PG_NONE; result = next_result(e, result))
        put(e, "        v%u = %s[%u];\n", result, is_loop ? "in" : "out", program->code[result].in[1]);
    put(e, "    }\n");
    for (pg_index result = first; result != PG_NONE; result = next_result(e, result))
        if (place[result] != PG_NOWHERE) put(e, "    w[%zu] = v%u;\n", place[result], result);
}

/* ---- statements ---- */

static int is_row(const pg_program *program, size_t value) { return program->code[value].op < PG_OP_TABLE_END; }

/* What stands in the code by itself: neither what is there before, nor what a region gives. */
static int is_statement(const emitter *e, size_t value) {
    int op = e->program->code[value].op;
    if (!pg_is_live(e->layout, value)) return 0;
    if (op == PG_OP_pack) return e->layout->place[value] != PG_NOWHERE;
    return op < PG_OP_TABLE_END || op == PG_OP_element || pg_is_region(op);
}

static void put_row(emitter *e, pg_index value, size_t part) {
    const pg_instruction *instruction = &e->program->code[value];
    put(e, "    const double v%u = pg_row_%s(", value, pg_ops[instruction->op].name);
    for (int i = 0; i < pg_ops[instruction->op].arity; i++) {
        if (i) put(e, ", ");
        put_value(e, instruction->in[i], part);
    }
    put(e, ");\n");
}

/* An instruction but for a pack. */
static void put_instruction(emitter *e, pg_index value, size_t part) {
    const pg_instruction *instruction = &e->program->code[value];
    if (pg_is_region(instruction->op)) {
        put_region(e, value, part);
        return;
    }
    if (instruction->op == PG_OP_element) {
        put(e, "    const double v%u = ", value);
        put_element(e, instruction->in[0], NULL, instruction->in[1]);
        put(e, ";\n");
    } else {
        put_row(e, value, part);
    }
    if (e->layout->place[value] != PG_NOWHERE) put(e, "    w[%zu] = v%u;\n", e->layout->place[value], value);
}

/* As pg_guard_holds: a nan is found by a nan. */
static void put_guard(emitter *e, size_t i, size_t part) {
    const pg_guard *guard = &e->program->guards[i];
    put(e, "    if (!(");
    if (pg_is_constant(e->program, guard->value)) {
        put(e, "%d", pg_guard_holds(pg_constant_of(e->program, guard->value), guard->expected));
    } else {
        put_value(e, guard->value, part);
        put(e, guard->expected != guard->expected ? " != " : " == ");
        if (guard->expected != guard->expected) put_value(e, guard->value, part);
        else pg_put_number(&e->text, guard->expected);
    }
    put(e, ")) return %zu;\n", i);
}

static void put_output(emitter *e, size_t i, size_t part) {
    put(e, "    outputs[%zu] = ", i);
    put_value(e, e->program->outputs[i], part);
    put(e, ";\n");
}

/* ---- parts: see Note [Parts] in emit_layout.h ---- */

/* Ends the function of the part before, if there is one, and begins that of `part`. */
static void open_part(emitter *e, size_t *open, size_t part) {
    if (*open == part) return;
    if (*open != SIZE_MAX) put(e, "}\n\n");
    *open = part;
    put(e, "static void pg_%spart_%zu(const double *restrict inputs, double *restrict w) {\n", e->tag, part);
    put(e, "    (void)inputs; (void)w;\n");
}

static void put_parts(emitter *e) {
    const pg_layout *layout = e->layout;
    size_t open = SIZE_MAX;
    for (size_t i = e->program->input_count; i < e->program->count; i++) {
        pg_index value = (pg_index)i;
        if (!is_statement(e, i)) continue;
        if (e->program->code[i].op != PG_OP_pack) {
            open_part(e, &open, pg_part_of(layout, value));
            put_instruction(e, value, open);
            continue;
        }
        for (size_t from = 0, to, count = pg_operands_of(e->program, value); from < count; from = to) {
            size_t part = pg_part_at(layout, layout->at[i] + from), end = (part + 1) * PG_PART - layout->at[i];
            to = end < count ? end : count;
            open_part(e, &open, part);
            put_copies(e, value, from, to, "    w", layout->place[value], part);
        }
    }
    if (open != SIZE_MAX) put(e, "}\n\n");
}

/* The guards or the outputs, PG_PART in a function: how many functions. */
static size_t put_pieces(emitter *e, const char *head, const char *what, const char *parameters, size_t count,
                         void (*put_one)(emitter *, size_t, size_t), const char *end) {
    size_t pieces = 0;
    for (size_t i = 0; i < count; i++) {
        if (i % PG_PART == 0)
            put(e, "%s pg_%s%s_%zu(%s) {\n    (void)inputs; (void)w;\n", head, e->tag, what, pieces++, parameters);
        put_one(e, i, e->layout->parts);
        if (i % PG_PART == PG_PART - 1 || i == count - 1) put(e, "%s}\n\n", end);
    }
    return pieces;
}

/* A table of functions: a compiler that saw each called once would put them all into one. */
static void put_table(emitter *e, const char *head, const char *table, const char *parameters, const char *function,
                      size_t count) {
    if (!count) return;
    put(e, "%s (*const pg_%s%s[])(%s) = {", head, e->tag, table, parameters);
    for (size_t i = 0; i < count; i++) put(e, "%spg_%s%s_%zu", i % 6 ? ", " : i ? ",\n    " : "\n    ", e->tag, function, i);
    put(e, "\n};\n\n");
}

/* ---- one program ---- */

static void put_begin(emitter *e) {
    size_t work = e->work[e->number];
    if (is_whole(e)) {
        put(e, work ? "int %s_with(" : "int %s(", e->name);
        put(e, "const double *inputs, double *outputs%s) {\n", work ? ", double *w" : "");
    } else {
        put(e, "static void pg_body_%zu(const double *restrict inputs, double *restrict outputs%s) {\n", e->number,
            work ? ", double *restrict w" : "");
    }
    put(e, "    (void)inputs; (void)outputs;%s\n", work ? " (void)w;" : "");
}

static void put_end(emitter *e) {
    put(e, is_whole(e) ? "    return -1;\n}\n" : "}\n\n");
    if (!is_whole(e) || !e->work[e->number] || e->work[e->number] > PG_STACK_MOST / sizeof(double)) return;
    put(e, "\nint %s(const double *inputs, double *outputs) {\n    double w[%zu];\n", e->name, e->work[e->number]);
    put(e, "    return %s_with(inputs, outputs, w);\n}\n", e->name);
}

static void put_cut_program(emitter *e) {
    const pg_program *program = e->program;
    size_t parts = e->layout->parts;
    put_parts(e);
    size_t guards = put_pieces(e, "static int", "guards", "const double *inputs, const double *w", program->guard_count,
                               put_guard, "    return -1;\n");
    size_t outputs = put_pieces(e, "static void", "outputs", "const double *inputs, const double *w, double *outputs",
                                program->output_count, put_output, "");
    put_table(e, "static void", "parts", "const double *, double *", "part", parts);
    put_table(e, "static int", "guards", "const double *, const double *", "guards", guards);
    put_table(e, "static void", "outputs", "const double *, const double *, double *", "outputs", outputs);
    put_begin(e);
    if (parts) put(e, "    for (size_t i = 0; i < %zu; i++) pg_%sparts[i](inputs, w);\n", parts, e->tag);
    if (guards)
        put(e, "    for (size_t i = 0; i < %zu; i++) {\n"
               "        int failed = pg_guards[i](inputs, w);\n"
               "        if (failed >= 0) return failed;\n    }\n", guards);
    if (outputs) put(e, "    for (size_t i = 0; i < %zu; i++) pg_%soutputs[i](inputs, w, outputs);\n", outputs, e->tag);
    put_end(e);
}

static void put_program(emitter *e, size_t number) {
    e->number = number;
    e->program = e->bodies.programs[number];
    e->layout = &e->layouts[number];
    e->tag[0] = '\0';
    if (!is_whole(e)) snprintf(e->tag, sizeof e->tag, "body_%zu_", number);
    put_arrays(e);
    if (e->layout->cut) {
        put_cut_program(e);
        return;
    }
    put_begin(e);
    for (size_t i = e->program->input_count; i < e->program->count; i++) {
        if (!is_statement(e, i)) continue;
        if (e->program->code[i].op != PG_OP_pack) put_instruction(e, (pg_index)i, 0);
        else put_copies(e, (pg_index)i, 0, pg_operands_of(e->program, (pg_index)i), "    w", e->layout->place[i], 0);
    }
    for (size_t i = 0; i < e->program->guard_count; i++) put_guard(e, i, 0);
    for (size_t i = 0; i < e->program->output_count; i++) put_output(e, i, 0);
    put_end(e);
}

/* ---- the whole ---- */

static void put_names(emitter *e, const char *what, size_t count, const char *const *names) {
    for (size_t i = 0; i < count; i++) {
        put(e, " *   %s[%zu]", what, i);
        if (names) put(e, "  "), pg_put_name(&e->text, names[i]);
        put(e, "\n");
    }
}

static void put_head(emitter *e, const pg_program *program, size_t work, size_t rows, const char *const *inputs,
                     const char *const *outputs) {
    int on_stack = work <= PG_STACK_MOST / sizeof(double);
    put(e, "/* int %s%s(const double *inputs, double *outputs%s): %zu operations, emitted by pygrad.\n *\n", e->name,
        on_stack ? "" : "_with", on_stack ? "" : ", double *w", rows);
    put_names(e, "inputs", program->input_count, inputs);
    put_names(e, "outputs", program->output_count, outputs);
    put(e, " *\n * Returns -1; or the number of the first guard that did not hold, of %zu, and leaves the outputs\n"
           " * alone: the program was captured for inputs that take other branches. Inputs and outputs must not overlap.\n",
        program->guard_count);
    if (work && on_stack)
        put(e, " * Needs %zu bytes of stack; %s_with takes them from the caller instead: w has %zu numbers.\n",
            sizeof(double) * work, e->name, work);
    if (!on_stack)
        put(e, " * w has %zu numbers to work in, %zu bytes, which the caller gives, and which need not be set.\n"
               " * Calls at the same time need one each. It is too much for a stack: there is no %s without.\n",
            work, sizeof(double) * work, e->name);
    put(e, " * %s_counts: how many inputs, outputs, guards, and numbers in w (0: there is no %s_with).\n", e->name,
        e->name);
    put(e, " * C99, and libm. To the last bit with -ffp-contract=off, and without -ffast-math and its parts. */\n"
           "#include <math.h>\n#include <stddef.h>\n\n");
    put(e, "extern const size_t %s_counts[4];\n", e->name);
    if (on_stack) put(e, "int %s(const double *inputs, double *outputs);\n", e->name);
    if (work) put(e, "int %s_with(const double *inputs, double *outputs, double *w);\n", e->name);
    put(e, "\nconst size_t %s_counts[4] = {%zu, %zu, %zu, %zu};\n\n", e->name, program->input_count,
        program->output_count, program->guard_count, work);
}

/* How much of `w` the bodies that program k runs need; they come before it, and are marked. */
static size_t work_beneath(emitter *e, size_t k, int mark) {
    const pg_program *program = e->bodies.programs[k];
    size_t most = 0;
    for (size_t i = program->input_count; i < program->count; i++) {
        if (!pg_is_region(program->code[i].op) || !pg_is_live(&e->layouts[k], i)) continue;
        for (int b = 0; b < 2; b++) {
            const pg_program *body = pg_region_of(program, (pg_index)i)->body[b];
            size_t number = body ? pg_bodies_number(&e->bodies, body) : 0;
            if (body && mark) e->runs[number] = 1;
            if (body && e->work[number] > most) most = e->work[number];
        }
    }
    return most;
}

/* Lays out all that is to be written: 0, or -1. */
static int lay_out(emitter *e) {
    size_t count = e->bodies.count;
    e->layouts = calloc(count, sizeof *e->layouts);
    e->work = calloc(count, sizeof *e->work);
    e->runs = calloc(count, 1);
    if (!e->layouts || !e->work || !e->runs) return -1;
    for (size_t k = 0; k < count; k++) {
        if (pg_layout_make(&e->layouts[k], e->bodies.programs[k]) < 0) return -1;
        size_t beneath = work_beneath(e, k, 0);
        if (beneath > SIZE_MAX / 64 - e->layouts[k].places) return -1;
        e->work[k] = e->layouts[k].places + beneath;
    }
    for (size_t k = count; k-- > 0;) {
        if (k == count - 1) e->runs[k] = 1;
        if (e->runs[k]) work_beneath(e, k, 1);
    }
    return 0;
}

static void put_all(emitter *e, const char *const *inputs, const char *const *outputs) {
    char used[PG_OP_TABLE_END] = {0};
    size_t rows = 0, whole = e->bodies.count - 1;
    for (size_t k = 0; k <= whole; k++) {
        const pg_program *program = e->bodies.programs[k];
        for (size_t i = program->input_count; i < program->count && e->runs[k]; i++) {
            if (!is_row(program, i) || !pg_is_live(&e->layouts[k], i)) continue;
            used[program->code[i].op] = 1;
            rows++;
        }
    }
    put_head(e, e->bodies.programs[whole], e->work[whole], rows, inputs, outputs);
    pg_put_rows(&e->text, used);
    for (size_t k = 0; k <= whole; k++)
        if (e->runs[k]) put_program(e, k);
}

char *pg_emit_c(const pg_program *program, const char *name, const char *const *inputs, const char *const *outputs) {
    emitter e = {.name = name};
    if (program->calls || program->guard_count > INT_MAX) return NULL;
    e.text.room = 4096;
    e.text.text = malloc(e.text.room);
    e.text.failed = !e.text.text || pg_bodies_list(&e.bodies, program) < 0 || lay_out(&e) < 0;
    if (!e.text.failed) put_all(&e, inputs, outputs);
    for (size_t k = 0; e.layouts && k < e.bodies.count; k++) pg_layout_free(&e.layouts[k]);
    free(e.layouts);
    free(e.work);
    free(e.runs);
    pg_bodies_free(&e.bodies);
    if (!e.text.failed) return e.text.text;
    free(e.text.text);
    return NULL;
}
