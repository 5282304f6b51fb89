/* interpret.h: runs a plan for one lane. Owns the interpreter; knows no Python. Every row of the op table is a case. */
#ifndef PG_INTERPRET_H
#define PG_INTERPRET_H

#include "plan.h"

/* Slots for one run at a time, with the constants in them: plan->slot_count numbers, to be freed by free(). */
double *pg_slots_new(const pg_plan *plan);

/* Room for the inputs and behind them the outputs, to be freed by free(). */
double *pg_numbers_new(const pg_plan *plan);

/* Fills in the outputs. -1; or the number of the first guard that did not hold: then the outputs are of no use; or
 * PG_CALL_FAILED, where a call set an error of its own. */
enum { PG_CALL_FAILED = -2 };
ptrdiff_t pg_interpret(const pg_plan *plan, const double *inputs, double *slots, double *outputs);

#endif
