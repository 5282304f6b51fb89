/* test_programs.c: programs as bytes and as C source, in the plain C alone. Prints what fails; exit status 0 where
 * nothing does. Every buffer is as long as it must be, so that a sanitizer sees a byte read beyond it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "emit_c.h"
#include "emit_rows.h"
#include "optimise.h"
#include "serialize.h"

/* Every row once, a sum, a dot, a guard; `length` more rows, each on the one before. */
static pg_program *made(size_t length) {
    pg_program *program = pg_program_new(3);
    pg_index last = 0, operands[4] = {0, 1, 2, 0};
    for (int op = 1; op < PG_OP_TABLE_END; op++)
        pg_program_output(program, last = pg_program_row(program, op, 0, 1, 2));
    for (size_t i = 0; i < length; i++) last = pg_program_row(program, i % 2 ? PG_OP_add : PG_OP_mul, last, 1, 0);
    pg_program_output(program, last);
    pg_program_output(program, pg_program_many(program, PG_OP_sum, operands, 3));
    pg_program_output(program, pg_program_many(program, PG_OP_dot, operands, 4));
    pg_program_output(program, pg_program_constant(program, 0.1));
    CHECK(pg_program_guard(program, pg_program_row(program, PG_OP_less, 0, 1, 0), 1.0) == 0);
    CHECK(pg_program_check(program) == NULL);
    return program;
}

/* The program of a copy of the bytes that ends where they end. */
static pg_program *read_copy(const unsigned char *bytes, size_t size, char *message, size_t room) {
    unsigned char *copy = malloc(size ? size : 1);
    if (size) memcpy(copy, bytes, size);
    pg_program *program = pg_program_from_bytes(copy, size, message, room);
    free(copy);
    return program;
}

static void test_round_trip(const pg_program *program) {
    size_t size = 0, again = 0;
    char message[200];
    unsigned char *bytes = pg_program_to_bytes(program, &size);
    pg_program *loaded = read_copy(bytes, size, message, sizeof message);
    CHECK(loaded && !message[0]);
    unsigned char *second = pg_program_to_bytes(loaded, &again);
    CHECK(again == size && memcmp(bytes, second, size) == 0);
    free(second);
    pg_program_free(loaded);
    free(bytes);
}

static void test_damage(const pg_program *program) {
    size_t size = 0;
    char message[200], little[8];
    unsigned char *bytes = pg_program_to_bytes(program, &size);
    for (size_t length = 0; length < size; length++) {
        CHECK(!read_copy(bytes, length, message, sizeof message) && message[0]);
        bytes[length] ^= 1 << length % 8;
        CHECK(!read_copy(bytes, size, message, sizeof message) && message[0]);
        CHECK(!read_copy(bytes, size, little, sizeof little) && little[0] && memchr(little, 0, sizeof little));
        bytes[length] ^= 1 << length % 8;
    }
    free(bytes);
}

static void test_emitted(const pg_program *program) {
    pg_optimise_report report;
    pg_program *small = pg_optimise(program, &report);
    char **names = calloc(small->output_count, sizeof *names);
    for (size_t i = 0; i < small->output_count; i++) names[i] = "a name */ that ends a comment \xe2\x80\xae";
    char *plain = pg_emit_c(small, "f", NULL, NULL), *named = pg_emit_c(small, "f", NULL, (const char *const *)names);
    CHECK(plain && strstr(plain, "int f(const double *inputs, double *outputs) {"));
    CHECK(plain && strstr(plain, "pg_row_polygamma"));
    CHECK(named && strlen(named) > strlen(plain) && !strstr(named, "*/ that"));
    free(names);
    free(plain);
    free(named);
    pg_program_free(small);
}

static void test_names(void) {
    CHECK(!pg_emit_name_wrong("price") && !pg_emit_name_wrong("f2_"));
    CHECK(pg_emit_name_wrong("") && pg_emit_name_wrong("2f") && pg_emit_name_wrong("f-") && pg_emit_name_wrong("int"));
    CHECK(pg_emit_name_wrong("tanh") && pg_emit_name_wrong("polynomial") && pg_emit_name_wrong("pg_f"));
}

int main(void) {
    pg_ops_init();
    pg_program *little = made(0), *large = made(5000), *empty = pg_program_new(0);
    test_round_trip(little);
    test_round_trip(large);
    test_round_trip(empty);
    test_damage(little);
    test_damage(empty);
    test_emitted(little);
    test_emitted(large);
    test_names();
    pg_program_free(little);
    pg_program_free(large);
    pg_program_free(empty);
    if (!failures) printf("ok\n");
    return failures != 0;
}
