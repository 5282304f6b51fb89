/* bodies.h: the bodies of a program, each once. Owns the list and the number of each in it, for what writes a body once,
 * however many regions share it: serialize.c and emit_c.c. */
#ifndef PG_BODIES_H
#define PG_BODIES_H

#include "program.h"

typedef struct {
    const pg_program **programs; /* borrowed. Each body comes after those that it uses; the program itself is the last */
    size_t count;
    size_t room, slot_count;
    uint32_t *slots; /* open addressing by address: numbers from 1 on, 0 where free */
} pg_bodies;

/* In the order of first use: 0, or -1 where memory runs out. To be freed in either case. */
int pg_bodies_list(pg_bodies *bodies, const pg_program *program);
void pg_bodies_free(pg_bodies *bodies);

/* The number of one that is in the list. */
size_t pg_bodies_number(const pg_bodies *bodies, const pg_program *body);

#endif
