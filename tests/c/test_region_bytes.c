/* test_region_bytes.c: programs with loops and conditions as bytes, and what is no such program. Prints what fails; exit
 * status 0 where nothing does. Every buffer is as long as it must be, so that a sanitizer sees a byte read beyond it. */
#include <stdio.h>
#include <string.h>

#include "check.h"
#include "regions.h"
#include "serialize.h"

enum { SUM_AT = 24, PROGRAMS_AT = 32, MOST = 1 << 16 }; /* Note [Format] in serialize.h */

static void put64(unsigned char *at, uint64_t number) {
    for (int i = 0; i < 8; i++) at[i] = (unsigned char)(number >> 8 * i);
}

/* With the checksum and the length that belong to it: as made up by someone who knows the format. */
static void sign(unsigned char *bytes, size_t size) {
    uint64_t sum = UINT64_C(0xcbf29ce484222325);
    put64(bytes + 16, size);
    for (size_t i = 0; i < size; i++)
        if (i < SUM_AT || i >= PROGRAMS_AT) sum = (sum ^ bytes[i]) * UINT64_C(0x100000001b3);
    put64(bytes + SUM_AT, sum);
}

/* The program of a copy of the bytes that ends where they end. */
static pg_program *read_copy(const unsigned char *bytes, size_t size, char *message, size_t room) {
    unsigned char *copy = malloc(size ? size : 1);
    if (size) memcpy(copy, bytes, size);
    pg_program *program = pg_program_from_bytes(copy, size, message, room);
    CHECK(program ? !message[0] : message[0] != 0);
    free(copy);
    return program;
}

/* Steps of a run, bodies that are used twice counted twice; no more than MOST. */
static size_t work_of(const pg_program *program) {
    size_t work = program->count;
    for (size_t i = 0; i < program->region_count && work < MOST; i++) {
        const pg_region *region = &program->regions[i];
        size_t once = work_of(region->body[0]);
        if (region->body[1] && work_of(region->body[1]) > once) once = work_of(region->body[1]);
        size_t steps = region->body[1] ? 1 : region->length < MOST ? region->length : MOST;
        work += steps * once;
    }
    return work < MOST ? work : MOST;
}

static void test_round_trip(const pg_program *program) {
    size_t size = 0, again = 0;
    char message[200];
    double inputs[3] = {0.3, -1.5, 0.7}, *values = malloc((program->count + 1) * sizeof *values), *other;
    unsigned char *bytes = pg_program_to_bytes(program, &size);
    pg_program *loaded = read_copy(bytes, size, message, sizeof message);
    CHECK(loaded && loaded->nested == program->nested && loaded->count == program->count);
    unsigned char *second = pg_program_to_bytes(loaded, &again);
    CHECK(again == size && memcmp(bytes, second, size) == 0);
    other = malloc((program->count + 1) * sizeof *values);
    CHECK(pg_program_evaluate(program, inputs, values) == 0 && pg_program_evaluate(loaded, inputs, other) == 0);
    CHECK(memcmp(values, other, program->count * sizeof *values) == 0);
    free(values);
    free(other);
    free(second);
    pg_program_free(loaded);
    free(bytes);
}

/* A body comes back once, and is held by all that used it. */
static void test_sharing(const pg_program *program) {
    size_t size = 0;
    char message[200];
    unsigned char *bytes = pg_program_to_bytes(program, &size);
    pg_program *loaded = read_copy(bytes, size, message, sizeof message);
    const pg_region *regions = loaded->regions[0].body[0]->regions;
    CHECK(bytes[PROGRAMS_AT] == 6);
    CHECK(regions[0].body[0] == regions[1].body[0] && regions[0].body[0] != loaded->regions[1].body[0]);
    CHECK(regions[2].body[0] == regions[3].body[0] && regions[2].body[0] == regions[3].body[1]);
    CHECK(regions[2].body[0] != regions[2].body[1] && regions[2].body[0]->holders == 2);
    CHECK(regions[2].shared == 1 && regions[3].shared == 0);
    CHECK(regions[0].saves && !regions[0].backwards && !regions[1].saves && regions[1].backwards && loaded->holders == 0);
    pg_program_free(loaded);
    free(bytes);
}

static void test_damage(const pg_program *program) {
    size_t size = 0;
    char message[200];
    unsigned char *bytes = pg_program_to_bytes(program, &size);
    for (size_t at = 0; at < size; at++) {
        CHECK(!read_copy(bytes, at, message, sizeof message));
        for (int bit = 0; bit < 8; bit++) {
            bytes[at] ^= 1 << bit;
            CHECK(!read_copy(bytes, size, message, sizeof message));
            bytes[at] ^= 1 << bit;
        }
    }
    free(bytes);
}

/* Whatever passes runs. */
static int passes(const unsigned char *bytes, size_t size) {
    char message[200];
    pg_program *program = read_copy(bytes, size, message, sizeof message);
    if (!program) return 0;
    if (work_of(program) < MOST && program->input_count < MOST) {
        double *inputs = calloc(program->input_count + 1, sizeof *inputs), *values = calloc(program->count + 1, sizeof *values);
        CHECK(pg_program_evaluate(program, inputs, values) == 0);
        free(inputs);
        free(values);
    }
    pg_program_free(program);
    return 1;
}

/* Every field set to what it cannot be, and to what it might. */
static void test_hostile_fields(const pg_program *program) {
    static const uint32_t numbers[] = {0, 1, 2, 3, 4, 5, 7, 200, 1u << 31, UINT32_MAX, UINT32_MAX - 1};
    size_t size = 0, rejected = 0, passed = 0;
    unsigned char *bytes = pg_program_to_bytes(program, &size), *copy = malloc(size);
    for (size_t at = PROGRAMS_AT; at + 4 <= size; at += 4) {
        for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
            memcpy(copy, bytes, size);
            for (int k = 0; k < 4; k++) copy[at + k] = (unsigned char)(numbers[i] >> 8 * k);
            sign(copy, size);
            *(passes(copy, size) ? &passed : &rejected) += 1;
        }
    }
    CHECK(rejected > 2000 && passed > 100);
    for (size_t length = PROGRAMS_AT + 8; length < size; length++) {
        memcpy(copy, bytes, length);
        sign(copy, length);
        CHECK(!passes(copy, length));
    }
    free(copy);
    free(bytes);
}

static void test_random_changes(const pg_program *program) {
    size_t size = 0, passed = 0;
    uint32_t state = 1;
    unsigned char *bytes = pg_program_to_bytes(program, &size), *copy = malloc(size);
    for (int i = 0; i < 40000; i++) {
        memcpy(copy, bytes, size);
        for (int k = 0; k <= i % 4; k++) {
            state = state * 1664525 + 1013904223;
            copy[PROGRAMS_AT + (state >> 8) % (size - PROGRAMS_AT)] = (unsigned char)(i % 2 ? state >> 3 & 7 : state >> 24);
        }
        sign(copy, size);
        passed += (size_t)passes(copy, size);
    }
    CHECK(passed > 0 && passed < 40000);
    free(copy);
    free(bytes);
}

/* What the message of such bytes has in it. */
static void check_refused(const pg_program *program, const char *why) {
    size_t size = 0;
    char message[200] = "";
    unsigned char *bytes = pg_program_to_bytes(program, &size);
    pg_program *loaded = read_copy(bytes, size, message, sizeof message);
    if (loaded || !strstr(message, why)) {
        printf("'%s', not '%s'\n", message, why);
        failures++;
    }
    pg_program_free(loaded);
    free(bytes);
}

static void test_depth(void) {
    pg_program *deepest = nested_in_loops(PG_MOST_NESTED);
    CHECK(deepest && deepest->nested == PG_MOST_NESTED && !nested_in_loops(PG_MOST_NESTED + 1));
    test_round_trip(deepest);
    pg_program *around = pg_program_new(2);
    pg_index operands[] = {0, 1};
    deepest->nested = 0; /* a lie, for bytes that no builder makes */
    pg_index loop = region_of(around, PG_OP_loop, (pg_region){.body = {deepest}, .length = 1, .carries = 2}, operands, 2);
    pg_program_output(around, pg_program_result(around, loop, 0));
    check_refused(around, "bodies are nested too deeply");
    pg_program_free(around);
}

/* Two regions with one body, in each of the bodies: 2**depth bodies, if each were looked at for each use. */
static void test_shared_bodies_are_looked_at_once(void) {
    pg_program *program = branch_body(PG_OP_add);
    size_t size = 0;
    char message[200];
    for (int i = 0; i < PG_MOST_NESTED; i++) {
        pg_program *around = pg_program_new(2);
        pg_index operands[] = {0, 0, 1};
        pg_index value = region_of(around, PG_OP_cond, (pg_region){.body = {program, pg_program_hold(program)}}, operands, 3);
        pg_program_output(around, pg_program_result(around, value, 0));
        pg_program_output(around, pg_program_result(around, value, 1));
        program = around;
    }
    unsigned char *bytes = pg_program_to_bytes(program, &size);
    pg_program *loaded = read_copy(bytes, size, message, sizeof message);
    CHECK(loaded && bytes[PROGRAMS_AT] == PG_MOST_NESTED + 1 && size < 10000);
    pg_program_free(loaded);
    pg_program_free(program);
    free(bytes);
}

static pg_program *one_loop(pg_region region, size_t inputs) {
    pg_program *program = pg_program_new(inputs);
    pg_index operands[] = {0, 1, 2};
    region_of(program, PG_OP_loop, region, operands, inputs);
    return program;
}

static void test_regions_that_cannot_be(void) {
    pg_region region = {.length = 3, .carries = 2};
    struct { pg_region region; const char *why; } wrong[] = {
        {region, "a body is missing"},
        {{.body = {branch_body(PG_OP_add)}, .length = 0, .carries = 2}, "a loop has no steps"},
        {{.body = {branch_body(PG_OP_add)}, .length = SIZE_MAX, .carries = 2}, "has a region that cannot be"},
        {{.body = {branch_body(PG_OP_add)}, .length = 3, .carries = 1}, "wrong number of operands"},
        {{.body = {branch_body(PG_OP_add)}, .length = 3, .carries = 3, .shared = UINT32_MAX}, "wrong number of operands"},
        {{.body = {branch_body(PG_OP_add)}, .length = 3, .carries = 1, .arrays = 1}, "an operand is of a wrong kind"},
        {{.body = {pg_program_new(2)}, .length = 3, .carries = 2}, "does not carry on"},
        {{.body = {branch_body(PG_OP_add)}, .length = PG_NONE - 2, .shared = 2}, "stack more than a program can hold"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        pg_program *program = one_loop(wrong[i].region, 2);
        check_refused(program, wrong[i].why);
        pg_program_free(program);
    }
    pg_program *empty = pg_program_new(0);
    pg_program_array(empty, NULL, 0);
    check_refused(empty, "an array is empty");
    pg_program_free(empty);
    pg_program *overlapping = pg_program_new(0);
    static const double numbers[4] = {1, 2, 3, 4};
    pg_program_array(overlapping, numbers, 4);
    pg_program_array(overlapping, numbers, 4);
    overlapping->code[1].in[0] = 0;
    overlapping->constant_count = 4;
    check_refused(overlapping, "has arrays that overlap");
    pg_program_free(overlapping);
}

static int never(void *self, const double *inputs, double *outputs, size_t input_count, size_t output_count) {
    (void)self, (void)inputs, (void)outputs, (void)input_count, (void)output_count;
    return -1;
}
static void hold(void *self, int more) { *(int *)self += more; }

static void test_calls(void) {
    int held = 0;
    size_t size = 0;
    pg_program *body = pg_program_new(2), *program = pg_program_new(2);
    pg_index operands[] = {0, 1};
    pg_index call = region_of(body, PG_OP_call, (pg_region){.callee = {never, hold, &held}, .outputs = 2}, operands, 2);
    pg_program_output(body, pg_program_result(body, call, 0));
    pg_program_output(body, pg_program_result(body, call, 1));
    CHECK(!pg_program_callee(program) && pg_program_callee(body)->self == &held && held == 1);
    region_of(program, PG_OP_loop, (pg_region){.body = {body}, .length = 3, .carries = 2}, operands, 2);
    CHECK(pg_program_check(program) == NULL && pg_program_callee(program)->self == &held);
    CHECK(!pg_program_to_bytes(program, &size));
    pg_program_free(program);
    CHECK(held == 0);
}

int main(void) {
    pg_ops_init();
    pg_program *program = with_regions();
    CHECK(pg_program_check(program) == NULL);
    test_round_trip(program);
    test_sharing(program);
    test_damage(program);
    test_hostile_fields(program);
    test_random_changes(program);
    test_depth();
    test_shared_bodies_are_looked_at_once();
    test_regions_that_cannot_be();
    test_calls();
    pg_program_free(program);
    if (!failures) printf("ok\n");
    return failures != 0;
}
