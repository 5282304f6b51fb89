/* serialize.c: writing and reading the format of serialize.h, field by field. See Note [Format] there. */
#include "serialize.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAGIC = 8, NAME = 24, LENGTH_AT = 16, SUM_AT = 24, COUNTS_AT = 32, COUNTS = 6, HEAD = COUNTS_AT + 8 * COUNTS };
enum { INPUTS, INSTRUCTIONS, CONSTANTS, OPERANDS, OUTPUTS, GUARDS };

static const unsigned char magic[MAGIC] = {0x89, 'p', 'y', 'g', 'r', 'a', 'd', '\n'};
static const unsigned sizes[COUNTS] = {0, 16, 8, 4, 4, 12}; /* of one, in bytes; inputs are instructions */

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
    return add_to_sum(sum, bytes + COUNTS_AT, size - COUNTS_AT);
}

/* ---- writing ---- */

unsigned char *pg_program_to_bytes(const pg_program *program, size_t *size) {
    uint32_t number[PG_OP_COUNT] = {0}, names = 0; /* of each op's name, from 1 on; 0: not used */
    uint16_t named[PG_OP_COUNT];
    const size_t counts[COUNTS] = {program->input_count,   program->count,        program->constant_count,
                                   program->operand_count, program->output_count, program->guard_count};
    for (size_t i = 0; i < program->count; i++) {
        uint16_t op = program->code[i].op;
        if (number[op]) continue;
        named[names++] = op;
        number[op] = names;
    }
    size_t length = HEAD + (size_t)NAME * names;
    for (int i = 0; i < COUNTS; i++) {
        if (counts[i] > (SIZE_MAX - length) / 16) return NULL;
        length += sizes[i] * counts[i];
    }
    unsigned char *bytes = calloc(length, 1), *at = bytes + HEAD;
    if (!bytes) return NULL;
    memcpy(bytes, magic, MAGIC);
    set32(bytes + MAGIC, PG_FORMAT_VERSION);
    set32(bytes + MAGIC + 4, names);
    set64(bytes + LENGTH_AT, length);
    for (int i = 0; i < COUNTS; i++) set64(bytes + COUNTS_AT + 8 * i, counts[i]);
    for (uint32_t i = 0; i < names; i++, at += NAME) memcpy(at, pg_ops[named[i]].name, strlen(pg_ops[named[i]].name));
    for (size_t i = 0; i < program->count; i++, at += 16) {
        set32(at, number[program->code[i].op] - 1);
        for (int k = 0; k < PG_MAX_ARITY; k++) set32(at + 4 + 4 * k, program->code[i].in[k]);
    }
    for (size_t i = 0; i < program->constant_count; i++, at += 8) set_double(at, program->constants[i]);
    for (size_t i = 0; i < program->operand_count; i++, at += 4) set32(at, program->operands[i]);
    for (size_t i = 0; i < program->output_count; i++, at += 4) set32(at, program->outputs[i]);
    for (size_t i = 0; i < program->guard_count; i++, at += 12) {
        set32(at, program->guards[i].value);
        set_double(at + 4, program->guards[i].expected);
    }
    set64(bytes + SUM_AT, sum_of(bytes, length));
    *size = length;
    return bytes;
}

/* ---- reading ---- */

typedef struct {
    const unsigned char *bytes;
    size_t size, counts[COUNTS];
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
    uint64_t length = get64(bytes + LENGTH_AT);
    if (length != r->size) return wrong(r, "has %zu bytes, needs %llu", r->size, (unsigned long long)length);
    if (sum_of(bytes, r->size) != get64(bytes + SUM_AT)) return wrong(r, "was damaged: its checksum differs");
    r->names = get32(bytes + MAGIC + 4);
    uint64_t needed = HEAD + (uint64_t)NAME * r->names;
    for (int i = 0; i < COUNTS; i++) {
        uint64_t count = get64(bytes + COUNTS_AT + 8 * i);
        if (count >= PG_NONE) return wrong(r, "claims to have more than a program can have");
        r->counts[i] = (size_t)count;
        needed += sizes[i] * count; /* below 6 * 2**36: no overflow */
    }
    if (needed != r->size) return wrong(r, "has %zu bytes, its counts need %llu", r->size, (unsigned long long)needed);
    if (r->counts[INPUTS] > r->counts[INSTRUCTIONS]) return wrong(r, "has more inputs than instructions");
    return 0;
}

/* The op of a name that may stand in a program, or -1. */
static int op_of(const char *name) {
    static const int others[] = {PG_OP_input, PG_OP_constant, PG_OP_sum, PG_OP_dot};
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

/* Operand lists follow one after the other, as pg_program_many makes them: what is checked, differentiated and
 * optimised is then never longer than what was read. */
static int read_code(const reader *r, pg_program *program, const unsigned char *at) {
    size_t operands = 0;
    for (size_t i = 0; i < r->counts[INSTRUCTIONS]; i++, at += 16) {
        uint32_t number = get32(at);
        if (number >= r->names) return wrong(r, "has an instruction without an op");
        pg_instruction *instruction = &program->code[i];
        *instruction = (pg_instruction){.op = r->ops[number], .in = {get32(at + 4), get32(at + 8), get32(at + 12)}};
        if (instruction->op != PG_OP_sum && instruction->op != PG_OP_dot) continue;
        if (instruction->in[0] != operands || instruction->in[1] > r->counts[OPERANDS] - operands)
            return wrong(r, "has an operand list in a wrong place");
        operands += instruction->in[1];
    }
    return operands == r->counts[OPERANDS] ? 0 : wrong(r, "has operands that no instruction uses");
}

static int has_room(pg_program *program, const size_t *counts) {
#define ROOM(array, singular, which)                                                             \
    (program->array = calloc(counts[which] ? counts[which] : 1, sizeof *program->array),         \
     program->singular##_room = counts[which], program->array != NULL)
    int room = ROOM(code, code, INSTRUCTIONS) & ROOM(constants, constant, CONSTANTS) &
               ROOM(operands, operand, OPERANDS) & ROOM(outputs, output, OUTPUTS) & ROOM(guards, guard, GUARDS);
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
    if (!has_room(program, r->counts) || read_names(r) < 0) return -1;
    const unsigned char *at = r->bytes + HEAD + (size_t)NAME * r->names;
    if (read_code(r, program, at) < 0) return -1;
    at += 16 * program->count;
    for (size_t i = 0; i < program->constant_count; i++, at += 8) program->constants[i] = get_double(at);
    for (size_t i = 0; i < program->operand_count; i++, at += 4) program->operands[i] = get32(at);
    for (size_t i = 0; i < program->output_count; i++, at += 4) program->outputs[i] = get32(at);
    for (size_t i = 0; i < program->guard_count; i++, at += 12)
        program->guards[i] = (pg_guard){get32(at), get_double(at + 4)};
    const char *found = pg_program_check(program);
    return found ? wrong(r, "is not a program: %s", found) : 0;
}

pg_program *pg_program_from_bytes(const unsigned char *bytes, size_t size, char *message, size_t room) {
    reader r = {.bytes = bytes, .size = size, .message = message, .room = room};
    message[0] = '\0';
    if (read_head(&r) < 0) return NULL;
    pg_program *program = calloc(1, sizeof *program);
    int failed = !program || read_program(&r, program) < 0;
    free(r.ops);
    if (!failed) return program;
    pg_program_free(program);
    return NULL;
}
