/* bodies.c: a walk down into bodies that comes to each once. See bodies.h. */
#include "bodies.h"

#include <stdlib.h>
#include <string.h>

/* Where a program is, or would be. */
static uint32_t *slot_of(const pg_bodies *bodies, const pg_program *program) {
    size_t at = (size_t)((uint64_t)(uintptr_t)program * UINT64_C(0x9E3779B97F4A7C15) >> 32);
    for (;; at++) {
        uint32_t *slot = &bodies->slots[at & (bodies->slot_count - 1)];
        if (!*slot || bodies->programs[*slot - 1] == program) return slot;
    }
}

static int make_room(pg_bodies *bodies) {
    if (bodies->count < bodies->room) return 0;
    size_t room = bodies->room ? 2 * bodies->room : 16;
    if (room > UINT32_MAX / 4) return -1;
    const pg_program **programs = realloc(bodies->programs, room * sizeof *programs);
    if (!programs) return -1;
    bodies->programs = programs;
    uint32_t *slots = calloc(4 * room, sizeof *slots);
    if (!slots) return -1;
    free(bodies->slots);
    bodies->slots = slots;
    bodies->slot_count = 4 * room;
    bodies->room = room;
    for (size_t i = 0; i < bodies->count; i++) *slot_of(bodies, programs[i]) = (uint32_t)i + 1;
    return 0;
}

/* Recurses as deep as bodies are nested: PG_MOST_NESTED. */
static int add(pg_bodies *bodies, const pg_program *program) {
    for (size_t i = 0; i < program->region_count; i++) {
        for (int k = 0; k < 2; k++) {
            const pg_program *body = program->regions[i].body[k];
            if (body && !*slot_of(bodies, body) && add(bodies, body) < 0) return -1;
        }
    }
    if (make_room(bodies) < 0) return -1;
    bodies->programs[bodies->count++] = program;
    *slot_of(bodies, program) = (uint32_t)bodies->count;
    return 0;
}

int pg_bodies_list(pg_bodies *bodies, const pg_program *program) {
    memset(bodies, 0, sizeof *bodies);
    return make_room(bodies) < 0 ? -1 : add(bodies, program);
}

void pg_bodies_free(pg_bodies *bodies) {
    free(bodies->programs);
    free(bodies->slots);
}

size_t pg_bodies_number(const pg_bodies *bodies, const pg_program *body) { return *slot_of(bodies, body) - 1; }
