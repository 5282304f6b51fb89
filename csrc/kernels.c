/* kernels.c: the loops of kernels.inc for each instruction set, and the choice among them. See Note [Kernels]. */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("no-tree-ter") /* which would load an operand again for each of its uses */
#endif

#include "kernels.h"

#include <string.h>

#include "scalar.h"

#if defined(__GNUC__)
#define PG_ALIGNED(pointer) __builtin_assume_aligned((pointer), PG_VECTOR * sizeof(double))
#else
#define PG_ALIGNED(pointer) (pointer)
#endif

#define PG_TARGET
#define PG_NAMED(name) plain_##name
#include "kernels.inc"

#if defined(__GNUC__) && defined(__x86_64__)

#define PG_TARGET __attribute__((target("avx2,fma")))
#define PG_NAMED(name) avx2_##name
#include "kernels.inc"

#if defined(__clang__)
#define PG_TARGET __attribute__((target("avx512f,avx512dq,avx512vl,fma"), min_vector_width(512)))
#else
#define PG_TARGET __attribute__((target("avx512f,avx512dq,avx512vl,fma,prefer-vector-width=512")))
#endif
#define PG_NAMED(name) avx512_##name
#include "kernels.inc"

/* The best of three that there is up to a level. */
static const pg_kernel_row *best(int level, const pg_kernel_row *plain, const pg_kernel_row *avx2,
                                 const pg_kernel_row *avx512) {
    __builtin_cpu_init();
    int has_fma = __builtin_cpu_supports("fma");
    if (level >= 2 && has_fma && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512vl"))
        return avx512;
    return level >= 1 && has_fma && __builtin_cpu_supports("avx2") ? avx2 : plain;
}

const pg_kernel_row *pg_kernels(int level) { return best(level, plain_kernels, avx2_kernels, avx512_kernels); }

const pg_kernel_row *pg_sum_kernels(int level) {
    return best(level, plain_sum_kernels, avx2_sum_kernels, avx512_sum_kernels);
}

#else

const pg_kernel_row *pg_kernels(int level) {
    (void)level;
    return plain_kernels;
}

const pg_kernel_row *pg_sum_kernels(int level) {
    (void)level;
    return plain_sum_kernels;
}

#endif
