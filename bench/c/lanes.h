/* Batches by hand: WIDTH paths side by side, so that each line of a loop over them is a few vector instructions.
 *
 * noise[block][number][lane of the block], so that a block reads one piece of memory; of the last block the caller fills
 * what is beyond `count`, and nothing is stored for it. values[lane], gradients[lane][leaf]. Built with -ffast-math, which
 * lets gcc take exp from libmvec (4 ulps): the best that users of C get without writing one of their own. */
#ifndef LANES_H
#define LANES_H
#include <math.h>
#include <stddef.h>

typedef double lanes[WIDTH];

#define EACH _Pragma("omp simd") for (int j = 0; j < WIDTH; j++)

static inline int filled(size_t first, size_t count)
{
    return first + WIDTH <= count ? WIDTH : (int)(count - first);
}
#endif
