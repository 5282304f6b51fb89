/* Batches by hand: WIDTH paths side by side, so that each line of a loop over them is a few vector instructions.
 *
 * noise[number][lane] as it comes, values[lane], gradients[lane][leaf]. Lanes beyond the last are computed as copies of
 * it and not stored. Built with -ffast-math, which lets gcc take exp from libmvec (4 ulps): the best that users of C
 * get without writing one of their own. */
#ifndef LANES_H
#define LANES_H
#include <math.h>
#include <stddef.h>

enum { WIDTH = 16 };

typedef double lanes[WIDTH];

#define EACH _Pragma("omp simd") for (int j = 0; j < WIDTH; j++)

static inline void load(lanes to, const double *row, size_t first, size_t count)
{
    if (first + WIDTH <= count)
        EACH to[j] = row[first + (size_t)j];
    else
        EACH to[j] = row[first + (size_t)j < count ? first + (size_t)j : count - 1];
}

static inline int filled(size_t first, size_t count)
{
    return first + WIDTH <= count ? WIDTH : (int)(count - first);
}
#endif
