/* differentiate.h: program -> program: derivatives in reverse and forward mode, from the table's formulas. Owns the
 * sweeps; knows no Python. What comes out may be differentiated again; optimise it last.
 *
 * Note [Sweeps]. A sweep adds to a program what one walk of the eager graph would compute, instruction by instruction in
 * the same order (Note [Order] in py_graph.c; py_gradient.c and py_tangent.c are the same on nodes), so that a gradient
 * comes out equal to the last bit. Adjoints that are zero whatever the inputs are never written. In between, an adjoint
 * of zero may have another sign than the eager one; formulas are linear in it, so no other number shows that, and each
 * gradient ends with 0.0 + x as there. */
#ifndef PG_DIFFERENTIATE_H
#define PG_DIFFERENTIATE_H

#include "program.h"

/* All take the inputs `wrt` (their numbers) of a program, and keep its inputs, outputs and guards; derivatives become
 * further outputs. NULL where memory runs out. */

/* Gradients of output `of`; where that is PG_NONE, of the sum of all outputs times further inputs, one an output. */
pg_program *pg_reverse(const pg_program *program, const pg_index *wrt, size_t wrt_count, pg_index of);

/* Derivatives of all outputs along a direction, which is given by further inputs, one a wrt. */
pg_program *pg_forward_mode(const pg_program *program, const pg_index *wrt, size_t wrt_count);

/* The entries of the Jacobian that may differ from zero, row by row. Which they are is told in `rows` and `columns`, two
 * arrays of *entries numbers, to be freed. `forward` sweeps once a wrt instead of once an output. */
pg_program *pg_jacobian(const pg_program *program, const pg_index *wrt, size_t wrt_count, int forward, pg_index **rows,
                        pg_index **columns, size_t *entries);

/* Which entries pg_jacobian would find, at most, row by row, without making them; *work is the number of instructions
 * that its sweeps would pass through. 0, or -1 where memory runs out. */
int pg_jacobian_pattern(const pg_program *program, const pg_index *wrt, size_t wrt_count, int forward, pg_index **rows,
                        pg_index **columns, size_t *entries, size_t *work);

#endif
