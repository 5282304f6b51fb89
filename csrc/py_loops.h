/* py_loops.h: NumPy's inner loops, found once. Owns which rows they serve. Next: kernels.h, blocks.h. */
#ifndef PG_PY_LOOPS_H
#define PG_PY_LOOPS_H

#include <Python.h>

#include "kernels.h"

/* By opcode; a row that NumPy does not serve has none. They run without the GIL. Filled in by pg_loops_find, once, when
 * the module is made: -1 with an exception where it fails. */
extern pg_loop pg_numpy_loops[PG_OP_TABLE_END];
int pg_loops_find(void);

#endif
