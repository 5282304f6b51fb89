/* test_emit_regions.c: loops, conditions and arrays as C source, made by hand and drawn at random. Alone it emits them all
 * and prints what fails. With a directory it writes the sources there, and a main.c that compares what they give with what
 * pg_program_evaluate gave, to the last bit; test_c.py compiles and runs that. */
#include <stdio.h>
#include <string.h>

#include "check.h"
#include "emit_c.h"
#include "emit_layout.h"
#include "regions.h"

#ifndef FIRST_SEED
#define FIRST_SEED 0
#endif

enum { DRAWN = 40, DEEPEST = 3, POINTS = 3, MOST_INPUTS = 2048 };

/* ---- drawing ---- */

static uint32_t state;

static size_t draw(size_t below) {
    state = state * 1664525 + 1013904223;
    return (size_t)((uint64_t)(state >> 4) * below >> 28);
}

static double draw_number(void) {
    static const double some[] = {0.0, -0.0, 1.0, 0.5, -2.0, 1e-3, 0.1, 3.0};
    return draw(3) ? (double)draw(1000) / 500 - 1 : some[draw(sizeof some / sizeof *some)];
}

typedef struct {
    pg_program *program;
    pg_index numbers[4000], arrays[200];
    size_t number_count, array_count;
    int depth;
} drawing;

static pg_index a_number(const drawing *d) { /* mostly a late one */
    size_t late = d->number_count < 12 || !draw(4) ? d->number_count : 12;
    return d->numbers[d->number_count - 1 - draw(late)];
}

static void put_number(drawing *d, pg_index value) { d->numbers[d->number_count++] = value; }
static void put_array(drawing *d, pg_index value) {
    if (d->array_count < sizeof d->arrays / sizeof *d->arrays) d->arrays[d->array_count++] = value;
}

static void draw_row(drawing *d) {
    static const int ops[] = {PG_OP_add, PG_OP_sub, PG_OP_mul, PG_OP_tanh, PG_OP_sin, PG_OP_less, PG_OP_where,
                              PG_OP_maximum, PG_OP_neg, PG_OP_atan, PG_OP_cos, PG_OP_sigmoid, PG_OP_tanh};
    put_number(d, pg_program_row(d->program, ops[draw(sizeof ops / sizeof *ops)], a_number(d), a_number(d), a_number(d)));
}

/* An array of this length: one that is there, constants, inputs side by side, a mixture. */
static pg_index array_of(drawing *d, size_t length) {
    double numbers[64];
    pg_index operands[64], made;
    for (size_t i = 0; i < d->array_count && draw(2); i++) {
        size_t k = draw(d->array_count);
        if (pg_length_of(d->program, d->arrays[k]) == length) return d->arrays[k];
    }
    size_t kind = draw(4), inputs = d->program->input_count;
    for (size_t i = 0; i < length; i++) numbers[i] = draw_number();
    for (size_t i = 0; i < length; i++) operands[i] = kind == 1 && inputs >= length ? (pg_index)(inputs - length + i) : a_number(d);
    made = kind ? pg_program_pack(d->program, operands, length) : pg_program_array(d->program, numbers, length);
    put_array(d, made);
    return made;
}

static pg_program *drawn(size_t inputs, size_t outputs, size_t statements, int depth);

static void take_results(drawing *d, pg_index region) {
    for (size_t i = 0; i < pg_results_of(d->program, region); i++)
        if (draw(4)) put_number(d, pg_program_result(d->program, region, i));
    for (size_t i = 0; i < pg_stacks_of(d->program, region); i++)
        if (draw(3)) put_array(d, pg_program_stack(d->program, region, i));
}

static void draw_loop(drawing *d) {
    pg_region region = {.length = 1 + draw(draw(3) ? 9 : 40), .carries = draw(4), .shared = draw(3), .arrays = draw(3)};
    pg_index operands[16], loop;
    size_t stacks = draw(3), numbers = region.carries + region.shared, count = numbers + region.arrays;
    region.backwards = (uint8_t)draw(2);
    region.saves = (uint8_t)draw(2);
    for (size_t i = 0; i < count; i++) operands[i] = i < numbers ? a_number(d) : array_of(d, region.length);
    region.body[0] = drawn(count, region.carries + stacks, 1 + draw(12), d->depth - 1);
    loop = pg_program_region(d->program, PG_OP_loop, &region, operands, count);
    take_results(d, loop);
    if (!draw(3)) { /* again, with the same body */
        region.backwards = !region.backwards;
        for (size_t i = 0; i < count; i++) operands[i] = i < numbers ? a_number(d) : array_of(d, region.length);
        take_results(d, pg_program_region(d->program, PG_OP_loop, &region, operands, count));
    }
    pg_program_free(region.body[0]);
}

static void draw_condition(drawing *d) {
    pg_index operands[8];
    size_t count = 1 + draw(5), outputs = 1 + draw(3);
    pg_region region = {.body = {drawn(count - 1, outputs, draw(8), d->depth - 1), NULL}};
    region.body[1] = draw(5) ? drawn(count - 1, outputs, draw(8), d->depth - 1) : pg_program_hold(region.body[0]);
    for (size_t i = 0; i < count; i++) operands[i] = a_number(d);
    take_results(d, region_of(d->program, PG_OP_cond, region, operands, count));
}

static void draw_statement(drawing *d) {
    size_t kind = draw(20);
    if (kind == 0) {
        put_number(d, pg_program_constant(d->program, draw_number()));
    } else if (kind == 1) {
        array_of(d, 1 + draw(30));
    } else if (kind == 2 && d->array_count) {
        pg_index array = d->arrays[draw(d->array_count)];
        put_number(d, pg_program_element(d->program, array, draw(pg_length_of(d->program, array))));
    } else if ((kind == 3 || kind == 4) && d->depth) {
        draw_loop(d);
    } else if (kind == 5 && d->depth) {
        draw_condition(d);
    } else {
        draw_row(d);
    }
}

static pg_program *drawn(size_t inputs, size_t outputs, size_t statements, int depth) {
    drawing *d = calloc(1, sizeof *d);
    d->program = pg_program_new(inputs);
    d->depth = depth;
    for (size_t i = 0; i < inputs; i++) put_number(d, (pg_index)i);
    if (!inputs) put_number(d, pg_program_constant(d->program, draw_number()));
    for (size_t i = 0; i < statements; i++) draw_statement(d);
    for (size_t i = 0; i < outputs; i++) pg_program_output(d->program, draw(8) ? d->numbers[d->number_count - 1 - i % d->number_count] : a_number(d));
    pg_program *made = d->program;
    free(d);
    return made;
}

/* ---- made by hand ---- */

/* Each of `count` carries is computed from itself, the next one and an element, in a body of as many statements or more. */
static pg_program *wide(size_t count, int backwards) {
    pg_program *body = pg_program_new(count + 1), *program = pg_program_new(count + 4);
    pg_index *operands = malloc((count + 1) * sizeof *operands);
    for (size_t i = 0; i < count; i++) {
        pg_index turned = row(body, PG_OP_sub, (pg_index)i, row(body, PG_OP_mul, (pg_index)((i + 1) % count), (pg_index)count));
        pg_program_output(body, i % 3 ? turned : row(body, PG_OP_tanh, turned, 0));
        operands[i] = (pg_index)(i % 7 ? i : (i * 5) % count);
    }
    pg_program_output(body, 0);
    pg_index elements[] = {(pg_index)count, (pg_index)count + 1, (pg_index)count + 2, (pg_index)count + 3};
    operands[count] = pg_program_pack(program, elements, 4);
    pg_region region = {.body = {body}, .length = 4, .carries = count, .arrays = 1, .saves = 1, .backwards = (uint8_t)backwards};
    pg_index loop = region_of(program, PG_OP_loop, region, operands, count + 1);
    for (size_t i = 0; i < count; i++) pg_program_output(program, pg_program_result(program, loop, i));
    for (size_t i = 0; i < 4; i++) pg_program_output(program, pg_program_element(program, pg_program_stack(program, loop, count / 2), i));
    pg_program_output(program, pg_program_element(program, pg_program_stack(program, loop, 0), 3));
    free(operands);
    return program;
}

/* A pack of many values of all kinds, made in several parts, and a loop over it. */
static pg_program *long_pack(size_t count) {
    pg_program *program = pg_program_new(40);
    pg_index *operands = malloc(count * sizeof *operands), last = 0;
    for (size_t i = 0; i < count; i++) {
        if (i % 100 >= 20 && i % 100 < 50) operands[i] = (pg_index)(i % 100 - 20);
        else if (i % 5 == 0) operands[i] = pg_program_constant(program, (double)i / 7);
        else operands[i] = last = row(program, i % 2 ? PG_OP_sin : PG_OP_sub, last, (pg_index)(i % 40));
    }
    pg_index over[] = {0, 1, pg_program_pack(program, operands, count)};
    pg_index loop = region_of(program, PG_OP_loop,
                              (pg_region){.body = {step_body()}, .length = count, .carries = 1, .shared = 1, .arrays = 1}, over, 3);
    pg_program_output(program, pg_program_result(program, loop, 0));
    for (size_t i = 0; i < count; i += 37) {
        pg_program_output(program, pg_program_element(program, pg_program_stack(program, loop, 0), i));
        pg_program_output(program, operands[i]);
    }
    free(operands);
    return program;
}

/* Many steps, of which two arrays are stacked: more work than a stack should hold. */
static pg_program *many_steps(size_t length) {
    pg_program *program = pg_program_new(2), *body = branch_body(PG_OP_sub);
    pg_index operands[] = {0, 1};
    pg_index loop = region_of(program, PG_OP_loop, (pg_region){.body = {body}, .length = length, .carries = 2, .saves = 1},
                              operands, 2);
    pg_index stacks[] = {0, 0, pg_program_stack(program, loop, 0), pg_program_stack(program, loop, 1)};
    pg_program *sum = pg_program_new(4);
    pg_program_output(sum, row(sum, PG_OP_add, 0, row(sum, PG_OP_mul, 2, 3)));
    loop = region_of(program, PG_OP_loop, (pg_region){.body = {sum}, .length = length, .carries = 1, .shared = 1, .arrays = 2, .backwards = 1},
                     stacks, 4);
    pg_program_output(program, pg_program_result(program, loop, 0));
    return program;
}

/* ---- writing ---- */

static uint64_t bits_of(double number) {
    uint64_t bits;
    memcpy(&bits, &number, sizeof bits);
    return bits;
}

static void write_bits(FILE *file, const char *name, size_t number, const double *numbers, size_t count) {
    fprintf(file, "static const uint64_t %s%zu[] = {0", name, number);
    for (size_t i = 0; i < count; i++) fprintf(file, "%s0x%llx", i % 8 ? ", " : ",\n", (unsigned long long)bits_of(numbers[i]));
    fprintf(file, "};\n");
}

/* The source into a file of its own, and what it must give at some points into main.c. */
static void write_one(const pg_program *program, size_t number, const char *directory, FILE *file) {
    char name[32], path[4096];
    snprintf(name, sizeof name, "p%zu", number);
    char *source = pg_emit_c(program, name, NULL, NULL);
    CHECK(source && pg_program_check(program) == NULL && program->input_count <= MOST_INPUTS);
    if (!file) {
        free(source);
        return;
    }
    snprintf(path, sizeof path, "%s/%s.c", directory, name);
    FILE *own = fopen(path, "w");
    fputs(source, own);
    fclose(own);
    size_t inputs = program->input_count, outputs = program->output_count;
    double *given = malloc((POINTS * inputs + 1) * sizeof *given), *found = malloc((POINTS * outputs + 1) * sizeof *found);
    double *values = malloc((program->count + 1) * sizeof *values);
    fprintf(file, "static const int gave%zu[] = {", number);
    for (size_t point = 0; point < POINTS; point++) {
        for (size_t i = 0; i < inputs; i++) given[point * inputs + i] = draw_number();
        CHECK(pg_program_evaluate(program, given + point * inputs, values) == 0);
        for (size_t i = 0; i < outputs; i++) found[point * outputs + i] = values[program->outputs[i]];
        int failed = -1;
        for (size_t i = program->guard_count; i-- > 0;)
            if (!pg_guard_holds(values[program->guards[i].value], program->guards[i].expected)) failed = (int)i;
        fprintf(file, "%d, ", failed);
    }
    fprintf(file, "};\n");
    write_bits(file, "in", number, given, POINTS * inputs);
    write_bits(file, "out", number, found, POINTS * outputs);
    int with = strstr(source, "_with(") != NULL; /* `work` is filled with what must not be seen */
    fprintf(file, "extern const size_t %s_counts[4];\nint %s%s(const double *, double *%s);\n", name, name, with ? "_with" : "",
            with ? ", double *" : "");
    fprintf(file, "static int run%zu(const double *in, double *out, double *work) { (void)work; return %s%s(in, out%s); }\n", number,
            name, with ? "_with" : "", with ? ", work" : "");
    free(given);
    free(found);
    free(values);
    free(source);
}

static const char *const checker =
    "static void check(const char *name, int (*run)(const double *, double *, double *), const uint64_t *in,\n"
    "                  const uint64_t *out, const int *gave, const size_t *counts) {\n"
    "    double *a = malloc(counts[0] * 8 + 8), *b = malloc(counts[1] * 8 + 8), *w = malloc(counts[3] * 8 + 8);\n"
    "    for (size_t k = 0; k < POINTS; k++) {\n"
    "        memcpy(a, in + 1 + k * counts[0], counts[0] * 8);\n"
    "        memset(w, 0xff, counts[3] * 8);\n"
    "        if (run(a, b, w) != gave[k]) printf(\"%s: another guard fails\\n\", name), failures++;\n"
    "        for (size_t i = 0; gave[k] < 0 && i < counts[1]; i++) {\n"
    "            double wanted;\n"
    "            memcpy(&wanted, out + 1 + k * counts[1] + i, 8);\n"
    "            if (memcmp(&wanted, b + i, 8) == 0 || (wanted != wanted && b[i] != b[i])) continue;\n"
    "            printf(\"%s: output %zu is %.17g, not %.17g\\n\", name, i, b[i], wanted);\n"
    "            failures++;\n"
    "            break;\n"
    "        }\n"
    "    }\n"
    "    free(a);\n    free(b);\n    free(w);\n"
    "}\n";

/* Long packs are in parts, and so are wide bodies; arrays that are there are not copied. */
static void test_form(void) {
    pg_program *program = many_steps(100000);
    char *source = pg_emit_c(program, "f", NULL, NULL);
    CHECK(source && !strstr(source, "int f(const double *inputs, double *outputs);") && strstr(source, "there is no f without"));
    CHECK(source && strstr(source, "f_counts[4] = {2, 1, 0, 200000}"));
    free(source);
    pg_program_free(program);
    program = many_steps(1000);
    source = pg_emit_c(program, "f", NULL, NULL);
    CHECK(source && strstr(source, "int f(const double *inputs, double *outputs);") && strstr(source, "for (size_t k = 1000; k-- > 0;)"));
    CHECK(source && strstr(source, "f_counts[4] = {2, 1, 0, 2000}"));
    free(source);
    pg_program_free(program);
    program = wide(500, 0);
    source = pg_emit_c(program, "f", NULL, NULL);
    CHECK(source && strstr(source, "static void pg_body_0_part_1(") && strstr(source, "double *const in = w + "));
    CHECK(source && strstr(source, "in[500] = inputs[500 + k];"));
    free(source);
    pg_program_free(program);
    program = pg_program_new(0); /* what nobody uses is not there */
    region_of(program, PG_OP_loop, (pg_region){.body = {pg_program_new(0)}, .length = 3}, NULL, 0);
    source = pg_emit_c(program, "f", NULL, NULL);
    CHECK(source && !strstr(source, "body"));
    free(source);
    pg_program_free(program);
}

int main(int count, char **arguments) {
    pg_ops_init();
    const char *directory = count > 1 ? arguments[1] : NULL;
    char path[4096];
    FILE *file = NULL;
    if (directory) {
        snprintf(path, sizeof path, "%s/main.c", directory);
        file = fopen(path, "w");
        fprintf(file, "#include <stdint.h>\n#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n\n"
                      "enum { POINTS = %d };\nstatic int failures;\n%s", POINTS, checker);
    }
    pg_program *programs[DRAWN + 16];
    size_t made = 0;
    programs[made++] = with_regions();
    programs[made++] = nested_in_loops(PG_MOST_NESTED);
    for (size_t carries = 1; carries <= 1000; carries *= 10) programs[made++] = wide(carries, carries % 3 == 0);
    programs[made++] = wide(110, 1);
    programs[made++] = wide(300, 0);
    programs[made++] = long_pack(20);
    programs[made++] = long_pack(1500);
    programs[made++] = many_steps(1000);
    programs[made++] = many_steps(100000);
    for (uint32_t seed = 0; seed < DRAWN; seed++) {
        state = seed + FIRST_SEED;
        programs[made++] = drawn(draw(30), 1 + draw(20), seed % 20 ? draw(60) : 1500, DEEPEST);
    }
    for (size_t i = 0; i < made; i++) write_one(programs[i], i, directory, file);
    if (file) {
        fprintf(file, "int main(void) {\n");
        for (size_t i = 0; i < made; i++) fprintf(file, "    check(\"p%zu\", run%zu, in%zu, out%zu, gave%zu, p%zu_counts);\n", i, i, i, i, i, i);
        fprintf(file, "    if (!failures) printf(\"ok\\n\");\n    return failures != 0;\n}\n");
        fclose(file);
    }
    for (size_t i = 0; i < made; i++) pg_program_free(programs[i]);
    test_form();
    if (!failures) printf("ok\n");
    return failures != 0;
}
