/* serialize.c: writing and reading the format of serialize.h, field by field. See Note [Format] there. */
#include "serialize.h"

#include "bodies.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAGIC = 8, NAME = 24, LENGTH_AT = 16, SUM_AT = 24, PROGRAMS_AT = 32, HEAD = 40 };
enum { INPUTS, INSTRUCTIONS, CONSTANTS, OPERANDS, OUTPUTS, GUARDS, REGIONS, COUNTS };
enum { BACKWARDS = 1, SAVES = 2 };

static const unsigned char magic[MAGIC] = {0x89, 'p', 'y', 'g', 'r', 'a', 'd', '\n'};
static const unsigned sizes[COUNTS] = {0, 16, 8, 4, 4, 12, 32}; /* of one, in bytes; inputs are instructions */

#define UNARY(name, ...) _Static_assert(sizeof #name <= NAME, #name " is too long");
#define BINARY UNARY
#define TERNARY UNARY
#define ALIAS(...)
#define DEFAULT(...)
#include "ops.def"

/* ---- fields ---- */

static void set32(unsigned char *at, uint32_t number) {
    for (int i = 0; i < 4; i++) at[i] = (unsigned char)(number >> 8 * i);
}

static void set64(unsigned char *at, uint64_t number) {
    for (int i = 0; i < 8; i++) at[i] = (unsigned char)(number >> 8 * i);
}

static uint32_t get32(const unsigned char *at) {
    uint32_t number = 0;
    for (int i = 4; i-- > 0;) number = number << 8 | at[i];
    return number;
}

static uint64_t get64(const unsigned char *at) { return (uint64_t)get32(at + 4) << 32 | get32(at); }

static void set_double(unsigned char *at, double number) {
    uint64_t bits;
    memcpy(&bits, &number, sizeof bits);
    set64(at, bits);
}

static double get_double(const unsigned char *at) {
    uint64_t bits = get64(at);
    double number;
    memcpy(&number, &bits, sizeof number);
    return number;
}

/* FNV-1a. Each step is one to one in the sum, so that a change of one byte always changes what comes out. */
static uint64_t add_to_sum(uint64_t sum, const unsigned char *bytes, size_t count) {
    for (size_t i = 0; i < count; i++) sum = (sum ^ bytes[i]) * UINT64_C(0x100000001b3);
    return sum;
}

static uint64_t sum_of(const unsigned char *bytes, size_t size) {
    uint64_t sum = add_to_sum(UINT64_C(0xcbf29ce484222325), bytes, SUM_AT);
    return add_to_sum(sum, bytes + PROGRAMS_AT, size - PROGRAMS_AT);
}

/* ---- writing ---- */

typedef struct {
    pg_bodies bodies;
    uint32_t number[PG_OP_COUNT]; /* of each op's name, from 1 on; 0: not used */
    uint16_t named[PG_OP_COUNT];
    uint32_t names;
} writer;

static void counts_of(const pg_program *program, size_t *counts) {
    const size_t found[COUNTS] = {program->input_count,   program->count,        program->constant_count,
                                  program->operand_count, program->output_count, program->guard_count,
                                  program->region_count};
    memcpy(counts, found, sizeof found);
}

/* Numbers the names, and gives the length of the whole; 0 where it is too long. */
static size_t measured(writer *w) {
    size_t length = HEAD;
    for (size_t k = 0; k < w->bodies.count; k++) {
        const pg_program *program = w->bodies.programs[k];
        size_t counts[COUNTS];
        counts_of(program, counts);
        length += 8 * COUNTS;
        for (int i = 0; i < COUNTS; i++) {
            if (counts[i] > (SIZE_MAX / 2 - length) / 32) return 0;
            length += sizes[i] * counts[i];
        }
        for (size_t i = 0; i < program->count; i++) {
            uint16_t op = program->code[i].op;
            if (w->number[op]) continue;
            w->named[w->names++] = op;
            w->number[op] = w->names;
        }
    }
    return length + (size_t)NAME * w->names;
}

static unsigned char *put_region(const writer *w, const pg_program *program, pg_index value, unsigned char *at) {
    const pg_region *region = pg_region_of(program, value);
    for (int i = 0; i < 2; i++)
        set32(at + 4 * i, region->body[i] ? (uint32_t)pg_bodies_number(&w->bodies, region->body[i]) : PG_NONE);
    set32(at + 20, (uint32_t)region->shared);
    if (program->code[value].op == PG_OP_loop) {
        set64(at + 8, region->length);
        set32(at + 16, (uint32_t)region->carries);
        set32(at + 24, (uint32_t)region->arrays);
        set32(at + 28, (region->backwards ? BACKWARDS : 0) + (region->saves ? SAVES : 0));
    }
    return at + 32;
}

static unsigned char *put_program(const writer *w, const pg_program *program, unsigned char *at) {
    size_t counts[COUNTS];
    counts_of(program, counts);
    for (int i = 0; i < COUNTS; i++, at += 8) set64(at, counts[i]);
    for (size_t i = 0; i < program->count; i++, at += 16) {
        set32(at, w->number[program->code[i].op] - 1);
        for (int k = 0; k < PG_MAX_ARITY; k++) set32(at + 4 + 4 * k, program->code[i].in[k]);
    }
    for (size_t i = 0; i < program->constant_count; i++, at += 8) set_double(at, program->constants[i]);
    for (size_t i = 0; i < program->operand_count; i++, at += 4) set32(at, program->operands[i]);
    for (size_t i = 0; i < program->output_count; i++, at += 4) set32(at, program->outputs[i]);
    for (size_t i = 0; i < program->guard_count; i++, at += 12) {
        set32(at, program->guards[i].value);
        set_double(at + 4, program->guards[i].expected);
    }
    for (size_t i = 0; i < program->count; i++)
        if (pg_is_region(program->code[i].op)) at = put_region(w, program, (pg_index)i, at);
    return at;
}

unsigned char *pg_program_to_bytes(const pg_program *program, size_t *size) {
    writer w = {.names = 0};
    size_t length = program->calls || pg_bodies_list(&w.bodies, program) < 0 ? 0 : measured(&w);
    unsigned char *bytes = length ? calloc(length, 1) : NULL, *at = bytes;
    if (bytes) {
        memcpy(bytes, magic, MAGIC);
        set32(bytes + MAGIC, PG_FORMAT_VERSION);
        set32(bytes + MAGIC + 4, w.names);
        set64(bytes + LENGTH_AT, length);
        set64(bytes + PROGRAMS_AT, w.bodies.count);
        at += HEAD;
        for (uint32_t i = 0; i < w.names; i++, at += NAME)
            memcpy(at, pg_ops[w.named[i]].name, strlen(pg_ops[w.named[i]].name));
        for (size_t k = 0; k < w.bodies.count; k++) at = put_program(&w, w.bodies.programs[k], at);
        set64(bytes + SUM_AT, sum_of(bytes, length));
        *size = length;
    }
    pg_bodies_free(&w.bodies);
    return bytes;
}

/* ---- reading ---- */

typedef struct {
    const unsigned char *bytes, *at;
    size_t size, left; /* from `at` on */
    size_t programs, read;
    pg_program **program; /* those read so far */
    uint32_t names;
    uint16_t *ops; /* of each name */
    char *message;
    size_t room;
} reader;

static int wrong(const reader *r, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(r->message, r->room, format, arguments);
    va_end(arguments);
    return -1;
}

/* Everything of which the size alone, or the sum, tells that it is wrong: 0, or -1. No count is used before it is known
 * to fit. */
static int read_head(reader *r) {
    const unsigned char *bytes = r->bytes;
    if (r->size < MAGIC + 4 || memcmp(bytes, magic, MAGIC) != 0) return wrong(r, "is not a program that pygrad wrote");
    uint32_t version = get32(bytes + MAGIC);
    if (version != PG_FORMAT_VERSION)
        return wrong(r, "has version %lu of the format; this pygrad reads version %d", (unsigned long)version,
                     PG_FORMAT_VERSION);
    if (r->size < HEAD) return wrong(r, "is cut short: %zu bytes, and no program has less than %d", r->size, HEAD);
    uint64_t length = get64(bytes + LENGTH_AT), programs = get64(bytes + PROGRAMS_AT);
    if (length != r->size) return wrong(r, "has %zu bytes, needs %llu", r->size, (unsigned long long)length);
    if (sum_of(bytes, r->size) != get64(bytes + SUM_AT)) return wrong(r, "was damaged: its checksum differs");
    r->names = get32(bytes + MAGIC + 4);
    r->left = r->size - HEAD;
    if (r->names > r->left / NAME) return wrong(r, "claims to have more names than it has bytes for");
    r->left -= (size_t)NAME * r->names;
    r->at = r->bytes + r->size - r->left;
    if (programs < 1 || programs > r->left / (8 * COUNTS))
        return wrong(r, "claims to have %llu programs, which is none or more than it has bytes for",
                     (unsigned long long)programs);
    r->programs = (size_t)programs;
    return 0;
}

/* The op of a name that may stand in a program, or -1. */
static int op_of(const char *name) {
    static const int others[] = {PG_OP_input, PG_OP_constant, PG_OP_sum,  PG_OP_dot,  PG_OP_array, PG_OP_pack,
                                 PG_OP_element, PG_OP_loop,   PG_OP_cond, PG_OP_result, PG_OP_stack};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        if (strcmp(pg_ops[others[i]].name, name) == 0) return others[i];
    return pg_op_find(name);
}

static int read_names(reader *r) {
    if (!(r->ops = malloc((r->names ? r->names : 1) * sizeof *r->ops))) return -1;
    for (uint32_t i = 0; i < r->names; i++) {
        char name[NAME];
        memcpy(name, r->bytes + HEAD + (size_t)NAME * i, NAME);
        if (name[NAME - 1] || strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_") != strlen(name))
            return wrong(r, "has an op without a proper name");
        int op = op_of(name);
        if (op < 0) return wrong(r, "uses the op '%s', which is not known here: a newer pygrad wrote it", name);
        r->ops[i] = (uint16_t)op;
    }
    return 0;
}

static int read_counts(reader *r, size_t *counts) {
    uint64_t needed = 0;
    if (r->left < 8 * COUNTS) return wrong(r, "is cut short before its last program");
    for (int i = 0; i < COUNTS; i++, r->at += 8) {
        uint64_t count = get64(r->at);
        if (count >= PG_NONE) return wrong(r, "claims to have more than a program can have");
        counts[i] = (size_t)count;
        needed += sizes[i] * count; /* below 7 * 2**37: no overflow */
    }
    r->left -= 8 * COUNTS;
    if (needed > r->left)
        return wrong(r, "has %zu bytes left where its counts need %llu", r->left, (unsigned long long)needed);
    r->left -= (size_t)needed;
    return counts[INPUTS] <= counts[INSTRUCTIONS] ? 0 : wrong(r, "has more inputs than instructions");
}

/* Lists of operands follow one after the other, as pg_program_many makes them, and regions; arrays have no constants in
 * common. What is checked, differentiated and optimised is then never longer than what was read. */
static int read_code(reader *r, pg_program *program, const size_t *counts) {
    size_t operands = 0, regions = 0, constants = 0;
    for (size_t i = 0; i < counts[INSTRUCTIONS]; i++, r->at += 16) {
        uint32_t number = get32(r->at);
        if (number >= r->names) return wrong(r, "has an instruction without an op");
        pg_instruction *instruction = &program->code[i];
        *instruction = (pg_instruction){r->ops[number], 0, {get32(r->at + 4), get32(r->at + 8), get32(r->at + 12)}};
        const pg_index *in = instruction->in;
        if (pg_is_region(instruction->op) && in[2] != regions++) return wrong(r, "has a region in a wrong place");
        if (instruction->op == PG_OP_array) {
            if (in[1] > counts[CONSTANTS] - constants) return wrong(r, "has arrays that overlap");
            constants += in[1];
        }
        if (!pg_is_many(instruction->op)) continue;
        if (in[0] != operands || in[1] > counts[OPERANDS] - operands)
            return wrong(r, "has an operand list in a wrong place");
        operands += in[1];
    }
    if (operands != counts[OPERANDS]) return wrong(r, "has operands that no instruction uses");
    if (regions == counts[REGIONS]) return 0;
    return wrong(r, "has %zu regions, its instructions use %zu", counts[REGIONS], regions);
}

static int read_region(reader *r, pg_program *program, int op) {
    pg_region region = {.length = 0};
    uint64_t length = get64(r->at + 8);
    uint32_t flags = get32(r->at + 28);
    if (length >= PG_NONE || flags > BACKWARDS + SAVES) return wrong(r, "has a region that cannot be");
    region.length = (size_t)length;
    region.carries = get32(r->at + 16);
    region.shared = get32(r->at + 20);
    region.arrays = get32(r->at + 24);
    region.backwards = (flags & BACKWARDS) != 0;
    region.saves = (flags & SAVES) != 0;
    if (op == PG_OP_cond && (length || region.carries || region.arrays || flags))
        return wrong(r, "has a condition with the parts of a loop");
    for (int i = 0; i < 2; i++) {
        uint32_t number = get32(r->at + 4 * i);
        if (number != PG_NONE && number >= r->read) return wrong(r, "has a region whose body does not come before it");
        region.body[i] = number == PG_NONE ? NULL : r->program[number];
    }
    for (int i = 0; i < 2; i++) {
        if (!region.body[i]) continue;
        pg_program_hold(region.body[i]);
        if (program->nested <= region.body[i]->nested) program->nested = region.body[i]->nested + 1;
    }
    program->regions[program->region_count++] = region;
    r->at += 32;
    return 0;
}

static int has_room(pg_program *program, const size_t *counts) {
#define ROOM(array, singular, which)                                                             \
    (program->array = calloc(counts[which] ? counts[which] : 1, sizeof *program->array),         \
     program->singular##_room = counts[which], program->array != NULL)
    int room = ROOM(code, code, INSTRUCTIONS) & ROOM(constants, constant, CONSTANTS) &
               ROOM(operands, operand, OPERANDS) & ROOM(outputs, output, OUTPUTS) & ROOM(guards, guard, GUARDS) &
               ROOM(regions, region, REGIONS);
#undef ROOM
    program->input_count = counts[INPUTS];
    program->count = counts[INSTRUCTIONS];
    program->constant_count = counts[CONSTANTS];
    program->operand_count = counts[OPERANDS];
    program->output_count = counts[OUTPUTS];
    program->guard_count = counts[GUARDS];
    return room;
}

static int read_program(reader *r, pg_program *program) {
    size_t counts[COUNTS] = {0};
    if (read_counts(r, counts) < 0 || !has_room(program, counts) || read_code(r, program, counts) < 0) return -1;
    for (size_t i = 0; i < program->constant_count; i++, r->at += 8) program->constants[i] = get_double(r->at);
    for (size_t i = 0; i < program->operand_count; i++, r->at += 4) program->operands[i] = get32(r->at);
    for (size_t i = 0; i < program->output_count; i++, r->at += 4) program->outputs[i] = get32(r->at);
    for (size_t i = 0; i < program->guard_count; i++, r->at += 12)
        program->guards[i] = (pg_guard){get32(r->at), get_double(r->at + 4)};
    for (size_t i = 0; i < program->count; i++)
        if (pg_is_region(program->code[i].op) && read_region(r, program, program->code[i].op) < 0) return -1;
    const char *found = pg_program_check(program);
    return found ? wrong(r, "is not a program: %s", found) : 0;
}

static int read_programs(reader *r) {
    if (read_names(r) < 0 || !(r->program = malloc(r->programs * sizeof *r->program))) return -1;
    for (size_t i = 0; i < r->programs; i++) {
        pg_program *program = r->program[i] = calloc(1, sizeof *program);
        int failed = !program || read_program(r, program) < 0;
        r->read++;
        if (failed) return -1;
    }
    if (r->left) return wrong(r, "has %zu bytes behind its last program", r->left);
    for (size_t i = 0; i + 1 < r->programs; i++)
        if (!r->program[i]->holders) return wrong(r, "has a body that nothing uses");
    return 0;
}

pg_program *pg_program_from_bytes(const unsigned char *bytes, size_t size, char *message, size_t room) {
    reader r = {.bytes = bytes, .size = size, .message = message, .room = room};
    message[0] = '\0';
    pg_program *made = read_head(&r) < 0 || read_programs(&r) < 0 ? NULL : pg_program_hold(r.program[r.read - 1]);
    for (size_t i = 0; i < r.read; i++) pg_program_free(r.program[i]);
    free(r.program);
    free(r.ops);
    return made;
}
