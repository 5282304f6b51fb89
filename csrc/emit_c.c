/* emit_c.c: text from a program. See emit_c.h; Notes [Bits] and [Parts] say what the text has to mind. */
#include "emit_c.h"

#include <ctype.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Note [Bits]. The emitted numbers are pygrad's to the last bit, whatever the compiler sees through. It may evaluate or
 * replace a call of libm whose operands it knows (pow(x, -1) is 1 / x to gcc, log(3) a number), and what comes out is
 * rounded otherwise than libm's own. So a row that calls what IEEE 754 does not define to the last bit takes its operands
 * through volatile. Additions, products and their like come out the same whoever does them.
 *
 * Note [Parts]. Compilers take time that grows faster than a function does: gcc -O2 0.3 ms a statement at 200 to 1,000 of
 * them, 0.65 at 4,000. Beyond PART statements the code is cut into static functions. What one of them computes and a
 * later one needs lies in an array `w`, whose places are given back. */

typedef struct {
    const char *name;
    int rounded;              /* calls a function of libm whose last bit is its own */
    const short *needs;       /* earlier items, and -1 */
    const char *const *lines; /* and NULL */
} emit_item;

#include "emit_texts.h"

enum { ITEMS = sizeof items / sizeof items[0], PART = 400 };

/* The rows' formulas, after the preprocessor has put in what their names mean: as scalar.c compiles them. <math.h> may
 * have macros of its own and is not included. */
#define TEXT(...) TEXT_OF_EXPANDED(__VA_ARGS__)
#define TEXT_OF_EXPANDED(...) #__VA_ARGS__
#define UNARY(name, value, ...) [PG_OP_##name] = TEXT(value),
#define BINARY(name, value, ...) [PG_OP_##name] = TEXT(value),
#define TERNARY(name, value, ...) [PG_OP_##name] = TEXT(value),
static const char *const formulas[PG_OP_TABLE_END] = {
#include "scalar_names.h"
#include "ops.def"
#include "scalar_names_end.h"
};

typedef struct {
    const pg_program *program;
    const char *name;
    char *text;
    size_t length, room;
    int failed;           /* memory ran out */
    int cut;              /* into parts */
    size_t parts;
    pg_index *part;       /* of each value: the part that computes it */
    pg_index *place;      /* in `w`, of a value that a later part needs; else PG_NONE */
    size_t places;
} emitter;

/* ---- text ---- */

static void put(emitter *e, const char *format, ...) {
    while (!e->failed) {
        va_list arguments;
        va_start(arguments, format);
        int length = vsnprintf(e->text + e->length, e->room - e->length, format, arguments);
        va_end(arguments);
        if (length >= 0 && (size_t)length < e->room - e->length) {
            e->length += (size_t)length;
            return;
        }
        size_t room = 2 * e->room + (length > 0 ? (size_t)length : 0);
        char *text = length < 0 || room < e->room ? NULL : realloc(e->text, room);
        e->failed = !text;
        if (text) {
            e->text = text;
            e->room = room;
        }
    }
}

/* A number as a literal that is it exactly. By hand: printf asks the locale for its decimal point. */
static void put_number(emitter *e, double number) {
    uint64_t bits;
    memcpy(&bits, &number, sizeof bits);
    const char *sign = bits >> 63 ? "-" : "";
    uint64_t fraction = bits & ((UINT64_C(1) << 52) - 1);
    int exponent = (int)(bits >> 52 & 0x7ff), digits = 13;
    double magnitude = bits >> 63 ? -number : number;
    if (exponent == 0x7ff) {
        put(e, "%s%s", sign, fraction ? "NAN" : "HUGE_VAL");
    } else if (magnitude < 1e9 && magnitude == (double)(long)magnitude) {
        put(e, "%s%ld.0", sign, (long)magnitude);
    } else {
        while (digits > 1 && !(fraction & 15)) fraction >>= 4, digits--;
        put(e, "%s0x%d.%0*llxp%d", sign, exponent > 0, digits, (unsigned long long)fraction,
            exponent > 0 ? exponent - 1023 : -1022);
    }
}

/* A name of the caller's, in a comment that it cannot end, nor continue in ways that compilers warn of. */
static void put_name(emitter *e, const char *name) {
    for (const unsigned char *at = (const unsigned char *)name; *at; at++) {
        int turns = at[0] == 0xe2 && (at[1] == 0x80 || at[1] == 0x81) && at[2]; /* right to left, ... in UTF-8 */
        int ends = (at[0] == '*' && at[1] == '/') || (at[0] == '/' && at[1] == '*');
        put(e, "%c", *at < ' ' || *at == 127 || *at == '\\' || *at == '?' || turns || ends ? '_' : *at);
        if (turns) at += 2;
    }
}

/* ---- names ---- */

const char *pg_emit_name_wrong(const char *name) {
    static const char *const taken[] = {
        "auto", "break", "case", "char", "const", "continue", "default", "do", "double", "else", "enum", "extern",
        "float", "for", "goto", "if", "inline", "int", "long", "register", "restrict", "return", "short", "signed", "sizeof",
        "static", "struct", "switch", "typedef", "union", "unsigned", "void", "volatile", "while", "main", "size_t",
        "NULL", "NAN", "INFINITY", "HUGE_VAL"};
    if (!isalpha((unsigned char)name[0])) return "does not begin with a letter";
    for (const char *at = name; *at; at++)
        if (!(isalnum((unsigned char)*at) || *at == '_') || (unsigned char)*at > 127)
            return "has a character that is no letter, digit or underscore of ASCII";
    if (strncmp(name, "pg_", 3) == 0) return "begins with pg_, as what is emitted with it";
    if (strlen(name) > 200) return "is longer than 200 characters";
    if (pg_op_find(name) >= 0) return "is the name of an op, and maybe of a function of C";
    for (size_t i = 0; i < sizeof taken / sizeof taken[0]; i++)
        if (strcmp(name, taken[i]) == 0) return "is a word of C";
    for (size_t i = 0; i < ITEMS; i++)
        if (strcmp(name, items[i].name) == 0) return "is the name of a function or constant that is emitted with it";
    return NULL;
}

/* ---- rows, and what they call ---- */

/* Marks the items that a formula calls. Whether a call in it is rounded as libm pleases. */
static int mark_called(const char *formula, char *used) {
    int rounded = 0;
    for (const char *at = formula; *at;) {
        size_t length = strspn(at, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.");
        if (length) {
            size_t i = 0;
            while (i < ITEMS && (strncmp(items[i].name, at, length) != 0 || items[i].name[length])) i++;
            if (i < ITEMS) {
                used[i] = 1;
                rounded |= items[i].rounded;
            } else {
                rounded |= at[length] == '(';
            }
        }
        at += length ? length : 1;
    }
    return rounded;
}

static void put_row(emitter *e, int op, int rounded) {
    static const char *const operands[] = {"double a", "double a, double b", "double a, double b, double c"};
    static const char *const given[] = {"double p", "double p, double q", "double p, double q, double r"};
    static const char *const taken[] = {"a_ = p", "a_ = p, b_ = q", "a_ = p, b_ = q, c_ = r"};
    static const char *const read[] = {"a = a_", "a = a_, b = b_", "a = a_, b = b_, c = c_"};
    int last = pg_ops[op].arity - 1;
    if (!rounded) {
        put(e, "static double pg_row_%s(%s) { return %s; }\n", pg_ops[op].name, operands[last], formulas[op]);
        return;
    }
    put(e, "static double pg_row_%s(%s) {\n", pg_ops[op].name, given[last]);
    put(e, "    const volatile double %s;\n    const double %s;\n", taken[last], read[last]);
    put(e, "    return %s;\n}\n", formulas[op]);
}

static void put_definitions(emitter *e) {
    char used_ops[PG_OP_TABLE_END] = {0}, used[ITEMS] = {0}, rounded[PG_OP_TABLE_END] = {0};
    int volatiles = 0;
    for (size_t i = e->program->input_count; i < e->program->count; i++)
        if (e->program->code[i].op < PG_OP_TABLE_END) used_ops[e->program->code[i].op] = 1;
    for (int op = 1; op < PG_OP_TABLE_END; op++) {
        if (used_ops[op]) rounded[op] = (char)mark_called(formulas[op], used);
        volatiles |= rounded[op];
    }
    for (size_t i = ITEMS; i-- > 0;)
        for (const short *need = items[i].needs; used[i] && *need >= 0; need++) used[*need] = 1;
    for (size_t i = 0; i < ITEMS; i++) {
        for (const char *const *line = items[i].lines; used[i] && *line; line++) put(e, "%s", *line);
        if (used[i] && *items[i].lines) put(e, "\n");
    }
    if (volatiles)
        put(e, "/* Operands go through volatile where a compiler that knew them might round otherwise than libm. */\n");
    for (int op = 1; op < PG_OP_TABLE_END; op++)
        if (used_ops[op]) put_row(e, op, rounded[op]);
    put(e, "\n");
}

/* ---- statements ---- */

static int is_row(const pg_program *program, size_t value) { return program->code[value].op < PG_OP_TABLE_END; }

/* A value in an expression of the function `part`. */
static void put_value(emitter *e, pg_index value, size_t part) {
    if (value < e->program->input_count) put(e, "inputs[%u]", value);
    else if (pg_is_constant(e->program, value)) put_number(e, pg_constant_of(e->program, value));
    else if (e->part[value] == part) put(e, "v%u", value);
    else put(e, "w[%u]", e->place[value]);
}

static void put_instruction(emitter *e, pg_index value, size_t part) {
    const pg_instruction *instruction = &e->program->code[value];
    put(e, "    const double v%u = pg_row_%s(", value, pg_ops[instruction->op].name);
    for (int i = 0; i < pg_ops[instruction->op].arity; i++) {
        if (i) put(e, ", ");
        put_value(e, instruction->in[i], part);
    }
    put(e, ");\n");
    if (e->place[value] != PG_NONE) put(e, "    w[%u] = v%u;\n", e->place[value], value);
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
        else put_number(e, guard->expected);
    }
    put(e, ")) return %zu;\n", i);
}

static void put_output(emitter *e, size_t i, size_t part) {
    put(e, "    outputs[%zu] = ", i);
    put_value(e, e->program->outputs[i], part);
    put(e, ";\n");
}

/* ---- parts ---- */

/* Cuts the rows into parts. Guards and outputs come after the last. */
static void cut(emitter *e) {
    size_t rows = 0;
    for (size_t i = e->program->input_count; i < e->program->count; i++)
        if (is_row(e->program, i)) e->part[i] = (pg_index)(rows++ / PART);
    e->parts = (rows + PART - 1) / PART;
}

static void note_use(const emitter *e, pg_index *last, pg_index value, pg_index part) {
    if (value >= e->program->input_count && is_row(e->program, value) && part > last[value]) last[value] = part;
}

/* Gives places to the values that a later part needs: 0, or -1. A place is free after the last part that uses it. */
static int place(emitter *e) {
    const pg_program *program = e->program;
    size_t count = program->count + 1;
    pg_index *last = malloc(3 * count * sizeof *last + (e->parts + 1) * sizeof *last);
    if (!last) return -1;
    pg_index *next = last + count, *spare = next + count, *ends = spare + count;
    size_t spares = 0;
    memcpy(last, e->part, program->count * sizeof *last);
    memset(ends, 0xff, (e->parts + 1) * sizeof *ends);
    for (size_t i = program->input_count; i < program->count; i++)
        for (int k = 0; is_row(program, i) && k < pg_ops[program->code[i].op].arity; k++)
            note_use(e, last, program->code[i].in[k], e->part[i]);
    for (size_t i = 0; i < program->output_count; i++) note_use(e, last, program->outputs[i], (pg_index)e->parts);
    for (size_t i = 0; i < program->guard_count; i++) note_use(e, last, program->guards[i].value, (pg_index)e->parts);
    size_t part = 0;
    for (size_t i = program->input_count; i < program->count; i++) {
        if (!is_row(program, i)) continue;
        for (; part < e->part[i]; part++)
            for (pg_index gone = ends[part]; gone != PG_NONE; gone = next[gone]) spare[spares++] = e->place[gone];
        if (last[i] == e->part[i]) continue;
        e->place[i] = spares ? spare[--spares] : (pg_index)e->places++;
        next[i] = ends[last[i]];
        ends[last[i]] = (pg_index)i;
    }
    if (!e->places) e->places = 1; /* no array is empty */
    free(last);
    return 0;
}

static void put_parts(emitter *e) {
    const pg_program *program = e->program;
    size_t open = SIZE_MAX;
    for (size_t i = program->input_count; i < program->count; i++) {
        if (!is_row(program, i)) continue;
        if (e->part[i] != open) {
            if (open != SIZE_MAX) put(e, "}\n\n");
            open = e->part[i];
            put(e, "static void pg_part_%zu(const double *restrict inputs, double *restrict w) {\n", open);
            put(e, "    (void)inputs;\n");
        }
        put_instruction(e, (pg_index)i, open);
    }
    if (open != SIZE_MAX) put(e, "}\n\n");
}

/* The guards or the outputs, PART in a function: how many functions. */
static size_t put_pieces(emitter *e, const char *head, size_t count, void (*put_one)(emitter *, size_t, size_t),
                         const char *end) {
    size_t pieces = 0;
    for (size_t i = 0; i < count; i++) {
        if (i % PART == 0) put(e, head, pieces++);
        put_one(e, i, e->parts);
        if (i % PART == PART - 1 || i == count - 1) put(e, "%s}\n\n", end);
    }
    return pieces;
}

/* A table of functions: a compiler that saw each called once would put them all into one. */
static void put_table(emitter *e, const char *head, const char *prefix, size_t count) {
    if (!count) return;
    put(e, "%s", head);
    for (size_t i = 0; i < count; i++) put(e, "%s%s_%zu", i % 6 ? ", " : i ? ",\n    " : "\n    ", prefix, i);
    put(e, "\n};\n\n");
}

static void put_cut_program(emitter *e) {
    const char *guard = "static int pg_guards_%zu(const double *inputs, const double *w) {\n"
                        "    (void)inputs; (void)w;\n";
    const char *output = "static void pg_outputs_%zu(const double *inputs, const double *w, double *outputs) {\n"
                         "    (void)inputs; (void)w;\n";
    put_parts(e);
    size_t guards = put_pieces(e, guard, e->program->guard_count, put_guard, "    return -1;\n");
    size_t outputs = put_pieces(e, output, e->program->output_count, put_output, "");
    put_table(e, "static void (*const pg_parts[])(const double *, double *) = {", "pg_part", e->parts);
    put_table(e, "static int (*const pg_guards[])(const double *, const double *) = {", "pg_guards", guards);
    put_table(e, "static void (*const pg_outputs[])(const double *, const double *, double *) = {", "pg_outputs",
              outputs);
    put(e, "int %s_with(const double *inputs, double *outputs, double *w) {\n", e->name);
    put(e, "    (void)inputs; (void)outputs; (void)w;\n");
    if (e->parts) put(e, "    for (size_t i = 0; i < %zu; i++) pg_parts[i](inputs, w);\n", e->parts);
    if (guards)
        put(e, "    for (size_t i = 0; i < %zu; i++) {\n"
               "        int failed = pg_guards[i](inputs, w);\n"
               "        if (failed >= 0) return failed;\n    }\n", guards);
    if (outputs) put(e, "    for (size_t i = 0; i < %zu; i++) pg_outputs[i](inputs, w, outputs);\n", outputs);
    put(e, "    return -1;\n}\n\n");
    put(e, "int %s(const double *inputs, double *outputs) {\n    double w[%zu];\n", e->name, e->places);
    put(e, "    return %s_with(inputs, outputs, w);\n}\n", e->name);
}

static void put_whole_program(emitter *e) {
    const pg_program *program = e->program;
    put(e, "int %s(const double *inputs, double *outputs) {\n", e->name);
    put(e, "    (void)inputs;\n    (void)outputs;\n");
    for (size_t i = program->input_count; i < program->count; i++)
        if (is_row(program, i)) put_instruction(e, (pg_index)i, 0);
    for (size_t i = 0; i < program->guard_count; i++) put_guard(e, i, 0);
    for (size_t i = 0; i < program->output_count; i++) put_output(e, i, 0);
    put(e, "    return -1;\n}\n");
}

/* ---- the whole ---- */

static void put_names(emitter *e, const char *what, size_t count, const char *const *names) {
    for (size_t i = 0; i < count; i++) {
        put(e, " *   %s[%zu]", what, i);
        if (names) put(e, "  "), put_name(e, names[i]);
        put(e, "\n");
    }
}

static void put_head(emitter *e, size_t rows, const char *const *inputs, const char *const *outputs) {
    const pg_program *program = e->program;
    put(e, "/* int %s(const double *inputs, double *outputs): %zu operations, emitted by pygrad.\n *\n", e->name, rows);
    put_names(e, "inputs", program->input_count, inputs);
    put_names(e, "outputs", program->output_count, outputs);
    put(e, " *\n * Returns -1; or the number of the first guard that did not hold, of %zu, and leaves the outputs\n"
           " * alone: the program was captured for inputs that take other branches. Inputs and outputs must not overlap.\n",
        program->guard_count);
    if (e->cut)
        put(e, " * Needs %zu bytes of stack; %s_with takes them from the caller instead: w has %zu numbers.\n",
            sizeof(double) * e->places, e->name, e->places);
    put(e, " * %s_counts: how many inputs, outputs, guards, and numbers in w (0: there is no %s_with).\n", e->name,
        e->name);
    put(e, " * C99, and libm. To the last bit with -ffp-contract=off, and without -ffast-math and its parts. */\n"
           "#include <math.h>\n#include <stddef.h>\n\n");
    put(e, "extern const size_t %s_counts[4];\nint %s(const double *inputs, double *outputs);\n", e->name, e->name);
    if (e->cut) put(e, "int %s_with(const double *inputs, double *outputs, double *w);\n", e->name);
    put(e, "\nconst size_t %s_counts[4] = {%zu, %zu, %zu, %zu};\n\n", e->name, program->input_count,
        program->output_count, program->guard_count, e->places);
}

char *pg_emit_c(const pg_program *program, const char *name, const char *const *inputs, const char *const *outputs) {
    size_t rows = 0, count = program->count + 1;
    for (size_t i = program->input_count; i < program->count; i++) rows += (size_t)is_row(program, i);
    emitter e = {.program = program, .name = name, .room = 4096};
    e.text = malloc(e.room);
    e.part = calloc(count, sizeof *e.part);
    e.place = malloc(count * sizeof *e.place);
    e.failed = !e.text || !e.part || !e.place || program->guard_count > INT_MAX;
    if (!e.failed) {
        memset(e.place, 0xff, count * sizeof *e.place);
        e.cut = rows + program->guard_count + program->output_count > PART;
        if (e.cut) {
            cut(&e);
            e.failed = place(&e) < 0;
        }
        put_head(&e, rows, inputs, outputs);
        put_definitions(&e);
        if (e.cut) put_cut_program(&e);
        else put_whole_program(&e);
    }
    free(e.part);
    free(e.place);
    if (!e.failed) return e.text;
    free(e.text);
    return NULL;
}
