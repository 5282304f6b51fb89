/* blocks.h: runs a plan for many lanes, each instruction over a block of them. Owns the block, its memory and how lanes
 * go in and out; knows no Python. The loops are in kernels.h; interpret.h is the same for one lane.
 *
 * Note [Lanes]. What a lane gives depends on its inputs alone, to the last bit: not on its place in a block, the lanes
 * beside it, how many there are, or which inputs are shared. So the last lane of a block that is not full is repeated
 * up to a multiple of PG_VECTOR, and a loop from elsewhere must treat all lanes alike: tests/test_blocks.py holds
 * NumPy's to it. What depends on shared inputs alone is computed once a run, by the same loops. */
#ifndef PG_BLOCKS_H
#define PG_BLOCKS_H

#include "kernels.h"

typedef struct pg_blocks pg_blocks;

/* An input or an output: a number a lane, `stride` bytes from one to the next; an input of stride 0 is shared. */
typedef struct {
    char *at;
    ptrdiff_t stride;
} pg_lanes;

/* Lanes in a block, of runs of about so many lanes; a multiple of PG_VECTOR. */
size_t pg_blocks_width(const pg_plan *plan, size_t lanes);

/* The plan with its places in memory; NULL where memory runs out. `shared[i]` says whether input i is; `loops`, by
 * opcode, are preferred to kernels, and NULL where there are none. The plan and the loops must outlive it. */
pg_blocks *pg_blocks_new(const pg_plan *plan, size_t width, const uint8_t *shared, const pg_loop *loops, int level);
void pg_blocks_free(pg_blocks *blocks);

/* Of memory that one thread needs for a run; no alignment is asked. */
size_t pg_blocks_bytes(const pg_blocks *blocks);

/* Runs the lanes from .. to - 1. `failed[lane]`, unless it is NULL, becomes the number of the first guard that did not
 * hold, or -1; the outputs of such a lane are of no use. Threads may share all but `memory`. */
void pg_blocks_run(const pg_blocks *blocks, void *memory, const pg_lanes *inputs, const pg_lanes *outputs,
                   int32_t *failed, size_t from, size_t to);

#endif
