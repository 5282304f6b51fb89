/* kernels.h: every opcode of a plan as a loop over lanes. Owns the loops and the choice of their instruction set; knows
 * no Python, and nothing of how lanes come into memory: that is blocks.h.
 *
 * Note [Kernels]. The rows of the op table are expanded into loops (kernels.inc), several times over: for each operand
 * that is one number for all lanes, and for each instruction set that the compiler and the processor offer. All of them
 * give the same bits, which are those of one lane alone: no loop contracts or reorders. */
#ifndef PG_KERNELS_H
#define PG_KERNELS_H

#include <stddef.h>
#include <stdint.h>

#include "plan.h"

/* A loop from elsewhere, with the signature of NumPy's inner loops: pointers, count, strides in bytes. */
typedef void (*pg_loop_function)(char **args, const ptrdiff_t *count, const ptrdiff_t *strides, void *data);
typedef struct {
    pg_loop_function run; /* NULL: there is none */
    void *data;
} pg_loop;

/* Where an operand is: a number for all lanes lies in its place, of a row of lanes its address does. */
typedef union {
    double number;
    double *row;
} pg_place;

/* An instruction over lanes, by the numbers of its places. */
typedef struct pg_step pg_step;
typedef void (*pg_kernel)(const pg_place *places, const pg_step *step, size_t lanes);
struct pg_step {
    pg_kernel kernel;
    union {
        const pg_loop *loop;
        const void *region; /* of block_parts.h */
    };
    uint32_t out, in[PG_MAX_ARITY];
};

enum {
    PG_VECTOR = 8,   /* lanes of the widest vector: kernels write a multiple of it, which rows have room for */
    PG_VARIANTS = 7, /* bit i: operand i is one number. That all are is not a variant: it is no work for a loop */
};
#define PG_PADDED(lanes) (((lanes) + PG_VECTOR - 1) / PG_VECTOR * PG_VECTOR)
typedef pg_kernel pg_kernel_row[PG_VARIANTS];

/* By opcode of the plan, in the best instruction set up to `level`; 0 is what every processor of the kind has. */
enum { PG_LEVELS = 3 };
const pg_kernel_row *pg_kernels(int level);

/* The same for kernels that write no row, but add what they compute to PG_VECTOR sums, lane k to sum k % PG_VECTOR, one
 * after the other. The sums begin `out` numbers behind the address in place PG_SUMS. Of the rows of plain arithmetic, and of
 * pos for whatever there is as a row or (variant 1) a number; NULL elsewhere. */
enum { PG_SUMS = 0 };
const pg_kernel_row *pg_sum_kernels(int level);

#endif
