/* lane_by_lane.h: runs a plan for many lanes, each by itself, in the interpreter: for programs that call functions from
 * elsewhere, which know no lanes. blocks.h is the other way. */
#ifndef PG_LANE_BY_LANE_H
#define PG_LANE_BY_LANE_H

#include "blocks.h"

/* As pg_blocks_run: 0, or -1 where memory runs out or PG_CALL_FAILED where a call did; `failed` may not be NULL. */
int pg_lane_by_lane_run(const pg_plan *plan, const pg_lanes *inputs, const pg_lanes *outputs, int32_t *failed, size_t from,
                        size_t to);

#endif
