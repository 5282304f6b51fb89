/* kernels.c: the loops of kernels.inc for each instruction set, and the choice among them. See Note [Kernels]. */
#include "kernels.h"

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

const pg_kernel_row *pg_kernels(int level) {
    __builtin_cpu_init();
    int has_fma = __builtin_cpu_supports("fma");
    if (level >= 2 && has_fma && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512vl"))
        return avx512_kernels;
    if (level >= 1 && has_fma && __builtin_cpu_supports("avx2")) return avx2_kernels;
    return plain_kernels;
}

#else

const pg_kernel_row *pg_kernels(int level) {
    (void)level;
    return plain_kernels;
}

#endif
