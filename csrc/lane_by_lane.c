/* lane_by_lane.c: see lane_by_lane.h. */
#include "lane_by_lane.h"

#include <stdlib.h>
#include <string.h>

#include "interpret.h"

int pg_lane_by_lane_run(const pg_plan *plan, const pg_lanes *inputs, const pg_lanes *outputs, int32_t *failed, size_t from,
                        size_t to) {
    double *slots = pg_slots_new(plan), *numbers = pg_numbers_new(plan);
    int status = slots && numbers ? 0 : -1;
    for (size_t lane = from; lane < to && !status; lane++) {
        double *given = numbers + plan->input_count;
        for (size_t i = 0; i < plan->input_count; i++)
            memcpy(&numbers[i], inputs[i].at + (ptrdiff_t)lane * inputs[i].stride, sizeof *numbers);
        ptrdiff_t guard = pg_interpret(plan, numbers, slots, given);
        if (guard == PG_CALL_FAILED) status = PG_CALL_FAILED;
        failed[lane] = (int32_t)guard;
        for (size_t i = 0; i < plan->output_count && guard == -1; i++)
            memcpy(outputs[i].at + (ptrdiff_t)lane * outputs[i].stride, &given[i], sizeof *given);
    }
    free(slots);
    free(numbers);
    return status;
}
