/* blocks.h: runs a plan for many lanes, each instruction over a block of them. Owns the block, its memory and how lanes
 * go in and out; knows no Python. The loops are in kernels.h; interpret.h is the same for one lane.
 *
 * Note [Lanes]. What a lane gives depends on its inputs alone, to the last bit: not on its place in a block, the lanes
 * beside it, how many there are, or which inputs are shared. So the last lane of a block that is not full is repeated
 * up to a multiple of PG_VECTOR, and a loop from elsewhere must treat all lanes alike: tests/test_blocks.py holds
 * NumPy's to it. What depends on shared inputs alone is computed once a run, by the same loops.
 *
 * Note [Sums]. Blocks may give the sums of their outputs over segments of lanes instead. The order of additions is
 * specification, and that of pg_sum_row: in a segment lane k is added to sum k % PG_VECTOR, the lanes one after the other,
 * and then halves are added to halves. So a sum depends on the lanes and the length of segments alone, not on the width of
 * blocks or on threads, as long as each begins with a segment. An output that plain arithmetic gives, and nothing else
 * reads, is never written out: it is added up where it is computed. So a guard that fails spoils the sums; the run ends. */
#ifndef PG_BLOCKS_H
#define PG_BLOCKS_H

#include "kernels.h"

typedef struct pg_blocks pg_blocks;

/* An input or an output: a number a lane, `stride` bytes from one to the next; an input of stride 0 is shared. */
typedef struct {
    char *at;
    ptrdiff_t stride;
} pg_lanes;

/* The plan with its places; NULL where memory runs out. `shared[i]` says whether input i is; `loops`, by opcode, are
 * preferred to kernels, and NULL where there are none. `segment` is 0, or so many lanes are summed: outputs have a number
 * a segment. The plan and the loops must outlive it. */
pg_blocks *pg_blocks_new(const pg_plan *plan, const uint8_t *shared, const pg_loop *loops, int level, size_t segment);
void pg_blocks_free(pg_blocks *blocks);

/* Lanes in a block, of runs of about so many lanes; a multiple of PG_VECTOR. Without shared inputs the rows are the slots
 * that are no constants. */
size_t pg_blocks_width(size_t rows, size_t lanes);
size_t pg_blocks_rows(const pg_blocks *blocks);

/* Of memory that one thread needs for a run; no alignment is asked. */
size_t pg_blocks_bytes(const pg_blocks *blocks, size_t width);

/* Runs the lanes from .. to - 1. `failed[lane]`, unless it is NULL, becomes the number of the first guard that did not
 * hold, or -1; the outputs of such a lane are of no use, and may be an input, lane for lane. Of sums, which leave `failed`
 * alone, it says whether they are of use: all guards held. Threads may share all but `memory`. */
int pg_blocks_run(const pg_blocks *blocks, void *memory, size_t width, const pg_lanes *inputs, const pg_lanes *outputs,
                  int32_t *failed, size_t from, size_t to);

/* The sum of these lanes, as Note [Sums] has it. */
double pg_sum_row(const pg_lanes *row, size_t from, size_t to);

#endif
