/* sweep_regions.c: what arrays, loops, conditions and calls do within a sweep. See sweep.h and Note [Regions] in program.h.
 *
 * Note [Rolled]. The reverse of a loop is a loop from the other end. Its body is the reverse of the first one's, which
 * computes a step again from what that step began with: the first loop stacks that (`saves`), and nothing else is kept.
 * It carries the adjoints of what was carried, and those of what is shared, which begin with what has come together so
 * far: so contributions are added in the order of the eager graph, where steps are nodes one after the other. Tangents
 * go through a loop in its own direction, over what it stacked. All of this is programs and loops again, so it may be
 * differentiated in turn; what nobody needs is stripped by pg_optimise. */
#include "sweep.h"

#include <stdlib.h>
#include <string.h>

/* A list of indices that grows; on failure `failed` is set, and it is of no use. */
typedef struct {
    pg_index *at;
    size_t count, room;
    int failed;
} list;

static void add(list *all, pg_index index) {
    if (all->count == all->room) {
        size_t room = all->room ? 2 * all->room : 16;
        pg_index *moved = realloc(all->at, room * sizeof *moved);
        if (!moved) {
            all->failed = 1;
            return;
        }
        all->at = moved;
        all->room = room;
    }
    all->at[all->count++] = index;
}

static pg_index *filled(size_t count, pg_index with) {
    pg_index *made = malloc((count ? count : 1) * sizeof *made);
    for (size_t i = 0; made && i < count; i++) made[i] = with;
    return made;
}

/* ---- arrays ---- */

/* The sum of two arrays, element by element: a loop that carries nothing. */
static pg_index array_sum(pg_sweep *d, pg_index a, pg_index b) {
    pg_program *body = pg_program_new(2);
    pg_index sum = body ? pg_program_row(body, PG_OP_add, 0, 1, 0) : PG_NONE;
    pg_region region = {.body = {body}, .length = pg_length_of(d->to, a), .arrays = 2};
    const pg_index operands[] = {a, b};
    pg_index loop = PG_NONE;
    if (sum != PG_NONE && pg_program_output(body, sum) == 0)
        loop = pg_program_region(d->to, PG_OP_loop, &region, operands, 2);
    pg_program_free(body);
    return pg_sweep_checked(d, loop == PG_NONE ? PG_NONE : pg_program_stack(d->to, loop, 0));
}

static void add_array(pg_sweep *d, pg_index array, pg_index contribution) {
    pg_index *adjoint = &d->derivative[array];
    if (d->failed) return;
    *adjoint = *adjoint == PG_NONE ? contribution : array_sum(d, *adjoint, contribution);
}

/* The adjoint of an array: of it as a whole, and of its elements. */
static pg_index array_adjoint(pg_sweep *d, pg_index array) {
    pg_index whole = d->derivative[array];
    if (d->parts[array] == PG_NONE) return whole;
    size_t count = pg_length_of(d->from, array);
    pg_index zero = pg_sweep_constant(d, 0.0), *elements = filled(count, zero);
    if (!elements) return pg_sweep_checked(d, PG_NONE);
    for (pg_index part = d->parts[array]; part != PG_NONE; part = d->next_part[part]) {
        pg_index *element = &elements[d->from->code[part].in[1]], g = d->derivative[part];
        *element = *element == zero ? g : pg_sweep_row(d, PG_OP_add, *element, g, 0);
    }
    pg_index packed = pg_sweep_checked(d, pg_program_pack(d->to, elements, count));
    free(elements);
    return whole == PG_NONE || d->failed ? packed : array_sum(d, whole, packed);
}

static void pack_back(pg_sweep *d, pg_index value) {
    pg_index g = array_adjoint(d, value);
    if (g == PG_NONE) return;
    for (size_t i = pg_operands_of(d->from, value); i-- > 0 && !d->failed;) {
        pg_index operand = pg_operand_of(d->from, value, i);
        if (d->depends[operand])
            pg_sweep_add_adjoint(d, operand, pg_sweep_checked(d, pg_program_element(d->to, g, i)));
    }
}

static void pack_forward(pg_sweep *d, pg_index value) {
    size_t count = pg_operands_of(d->from, value), found = 0;
    pg_index *elements = filled(count, pg_sweep_constant(d, 0.0));
    for (size_t i = 0; elements && i < count; i++) {
        pg_index tangent = pg_sweep_derivative(d, pg_operand_of(d->from, value, i));
        if (tangent == PG_NONE) continue;
        elements[i] = tangent;
        found++;
    }
    d->derivative[value] = PG_NONE;
    if (!elements || found) d->derivative[value] = pg_sweep_checked(d, elements ? pg_program_pack(d->to, elements, count) : PG_NONE);
    free(elements);
}

/* ---- derivatives of bodies, as bodies ---- */

/* The reverse of a body. It has `inputs` inputs: those of the body lie at `places`, the adjoint of output i is input
 * given[i], input i's adjoint begins with input begun[i]; both PG_NONE where there is none. Puts out the adjoints of `wrt`. */
static pg_program *reversed(const pg_program *body, size_t inputs, const pg_index *places, const pg_index *given,
                            const pg_index *begun, const pg_index *wrt, size_t wrt_count) {
    pg_sweep d = {0};
    int failed = pg_sweep_init(&d, body, wrt, wrt_count, inputs, places) < 0;
    if (!failed) {
        pg_sweep_begin(&d);
        for (size_t i = 0; i < body->input_count; i++) {
            if (begun[i] == PG_NONE) continue;
            pg_sweep_meet(&d, (pg_index)i);
            if (pg_sweep_is_met(&d, (pg_index)i)) pg_sweep_add_adjoint(&d, (pg_index)i, begun[i]);
        }
        for (size_t i = body->output_count; i-- > 0;) { /* as nodes, made one after the other, are walked back */
            if (given[i] == PG_NONE) continue;
            pg_sweep_meet(&d, body->outputs[i]);
            if (pg_sweep_is_met(&d, body->outputs[i])) pg_sweep_add_adjoint(&d, body->outputs[i], given[i]);
        }
        pg_sweep_back(&d);
    }
    for (size_t i = 0; i < wrt_count && !failed; i++) {
        pg_index adjoint = pg_sweep_derivative(&d, wrt[i]);
        failed = pg_program_output(d.to, adjoint == PG_NONE ? pg_sweep_constant(&d, 0.0) : adjoint) < 0;
    }
    return pg_sweep_end(&d, failed);
}

/* The tangents of a body: that of input i is input given[i], or PG_NONE. Puts out those of the outputs in `of`. */
static pg_program *pushed(const pg_program *body, size_t inputs, const pg_index *places, const pg_index *given,
                          const pg_index *of, size_t of_count) {
    pg_sweep d = {0};
    list wrt = {0};
    for (size_t i = 0; i < body->input_count; i++)
        if (given[i] != PG_NONE) add(&wrt, (pg_index)i);
    int failed = wrt.failed || pg_sweep_init(&d, body, wrt.at, wrt.count, inputs, places) < 0;
    failed = failed || pg_sweep_find_followers(&d) < 0;
    if (!failed) {
        pg_sweep_begin(&d);
        for (size_t i = 0; i < wrt.count; i++) {
            pg_sweep_meet(&d, wrt.at[i]);
            d.derivative[wrt.at[i]] = given[wrt.at[i]];
        }
        pg_sweep_forward(&d);
    }
    for (size_t i = 0; i < of_count && !failed; i++) {
        pg_index tangent = pg_sweep_derivative(&d, body->outputs[of[i]]);
        failed = pg_program_output(d.to, tangent == PG_NONE ? pg_sweep_constant(&d, 0.0) : tangent) < 0;
    }
    free(wrt.at);
    return pg_sweep_end(&d, failed);
}

/* Which outputs of a body depend on the inputs that are active: 0, or -1. */
static int find_active(const pg_program *body, const uint8_t *active, uint8_t *outputs) {
    uint8_t *depends = calloc(body->count ? body->count : 1, 1);
    if (!depends) return -1;
    if (body->input_count) memcpy(depends, active, body->input_count);
    for (size_t i = body->input_count; i < body->count; i++)
        for (size_t k = 0; k < pg_operands_of(body, (pg_index)i) && !depends[i]; k++)
            depends[i] = depends[pg_operand_of(body, (pg_index)i, k)];
    for (size_t i = 0; i < body->output_count; i++) outputs[i] |= depends[body->outputs[i]];
    free(depends);
    return 0;
}

/* The same for a loop, whose carries become active by what they are carried on with. */
static int find_active_in_loop(const pg_region *region, uint8_t *active, uint8_t *outputs) {
    for (int grows = 1; grows;) {
        grows = 0;
        if (find_active(region->body[0], active, outputs) < 0) return -1;
        for (size_t i = 0; i < region->carries; i++) {
            grows |= outputs[i] && !active[i];
            active[i] |= outputs[i];
        }
    }
    return 0;
}

/* ---- back ---- */

/* Whether an operand of the region is the first with its value from operand `from` on. */
static int is_first(const pg_sweep *d, pg_index value, size_t from, size_t i) {
    for (size_t k = from; k < i; k++)
        if (pg_operand_of(d->from, value, k) == pg_operand_of(d->from, value, i)) return 0;
    return 1;
}

/* The adjoint that an operand which is shared, from operand `from` on, begins with. */
static pg_index so_far(pg_sweep *d, pg_index value, size_t from, size_t i) {
    pg_index adjoint = is_first(d, value, from, i) ? d->derivative[pg_operand_of(d->from, value, i)] : PG_NONE;
    return adjoint == PG_NONE ? pg_sweep_constant(d, 0.0) : adjoint;
}

/* What began with what had come so far, and now is all of it. */
static void replace(pg_sweep *d, pg_index value, size_t from, size_t i, pg_index adjoint) {
    pg_index operand = pg_operand_of(d->from, value, i);
    if (is_first(d, value, from, i)) d->derivative[operand] = adjoint;
    else pg_sweep_add_adjoint(d, operand, adjoint);
}

typedef struct {
    const pg_region *region;
    size_t carries, shared, arrays, own; /* own: stacks of the body's own */
    uint8_t *active, *outputs;           /* of inputs, and of outputs of the body */
    pg_index *adjoints;                  /* of results, and then of stacks; PG_NONE where there is none */
    pg_index *places, *given, *begun;    /* in the body's derivative */
    list operands, wrt;
    size_t passed; /* inputs of the derivative so far */
} loop_parts;

static int parts_init(loop_parts *p, pg_sweep *d, pg_index value) {
    const pg_region *region = pg_region_of(d->from, value);
    size_t results = pg_results_of(d->from, value), stacks = pg_stacks_of(d->from, value);
    const pg_program *body = region->body[0];
    memset(p, 0, sizeof *p);
    p->region = region;
    p->carries = region->carries;
    p->shared = region->shared;
    p->arrays = region->arrays;
    p->own = body->output_count - (d->from->code[value].op == PG_OP_loop ? region->carries : body->output_count);
    p->active = calloc(body->input_count + 1, 1);
    p->outputs = calloc(body->output_count + 1, 1);
    p->adjoints = filled(results + stacks, PG_NONE);
    p->places = filled(body->input_count, PG_NONE);
    p->given = filled(body->output_count > body->input_count ? body->output_count : body->input_count, PG_NONE);
    p->begun = filled(body->input_count, PG_NONE);
    if (!p->active || !p->outputs || !p->adjoints || !p->places || !p->given || !p->begun) return -1;
    return 0;
}

static void parts_free(loop_parts *p) {
    free(p->active);
    free(p->outputs);
    free(p->adjoints);
    free(p->places);
    free(p->given);
    free(p->begun);
    free(p->operands.at);
    free(p->wrt.at);
}

/* A further input of the derivative, which gets `operand`: its number. */
static pg_index pass(loop_parts *p, pg_index operand) {
    add(&p->operands, operand);
    return (pg_index)p->passed++;
}

/* The adjoints of what the region gives, from its parts; whether there are any. */
static int gather(pg_sweep *d, loop_parts *p, pg_index value) {
    size_t results = pg_results_of(d->from, value);
    int any = 0;
    for (pg_index part = d->parts[value]; part != PG_NONE; part = d->next_part[part]) {
        int is_stack = d->from->code[part].op == PG_OP_stack;
        pg_index *adjoint = &p->adjoints[d->from->code[part].in[1] + (is_stack ? results : 0)], g = d->derivative[part];
        if (*adjoint == PG_NONE) *adjoint = g;
        else *adjoint = is_stack ? array_sum(d, *adjoint, g) : pg_sweep_row(d, PG_OP_add, *adjoint, g, 0);
        any = 1;
    }
    return any;
}

static pg_index made_region(pg_sweep *d, const loop_parts *p, int op, const pg_region *region) {
    if (p->operands.failed || p->wrt.failed || !region->body[0]) return pg_sweep_checked(d, PG_NONE);
    return pg_sweep_checked(d, pg_program_region(d->to, op, region, p->operands.at, p->operands.count));
}

static pg_index result_of(pg_sweep *d, pg_index region, size_t number) {
    return pg_sweep_checked(d, pg_program_result(d->to, region, number));
}

static pg_index stack_of(pg_sweep *d, pg_index loop, size_t number) {
    return pg_sweep_checked(d, pg_program_stack(d->to, loop, number));
}

/* The operands of the reverse loop, in the order of their kinds: see Note [Rolled]. */
static void pass_back(pg_sweep *d, loop_parts *p, pg_index value, pg_region *made) {
    size_t first_shared = p->carries, first_array = p->carries + p->shared;
    pg_index loop = d->places[value], zero = pg_sweep_constant(d, 0.0);
    for (size_t i = 0; i < p->carries; i++) {
        if (!p->active[i]) continue;
        p->given[i] = pass(p, p->adjoints[i] == PG_NONE ? zero : p->adjoints[i]);
        add(&p->wrt, (pg_index)i);
    }
    for (size_t i = first_shared; i < first_array; i++) {
        if (!p->active[i]) continue;
        p->begun[i] = pass(p, so_far(d, value, first_shared, i));
        add(&p->wrt, (pg_index)i);
    }
    made->carries = p->passed;
    for (size_t i = first_shared; i < first_array; i++)
        p->places[i] = pass(p, d->places[pg_operand_of(d->from, value, i)]);
    made->shared = p->passed - made->carries;
    pg_region_of(d->to, loop)->saves = 1;
    for (size_t i = 0; i < p->carries; i++) p->places[i] = pass(p, stack_of(d, loop, p->own + i));
    for (size_t i = first_array; i < first_array + p->arrays; i++) {
        p->places[i] = pass(p, d->places[pg_operand_of(d->from, value, i)]);
        if (p->active[i]) add(&p->wrt, (pg_index)i);
    }
    for (size_t i = 0; i < p->own; i++) {
        pg_index adjoint = p->adjoints[p->carries + i];
        if (adjoint != PG_NONE && p->outputs[p->carries + i]) p->given[p->carries + i] = pass(p, adjoint);
    }
    for (size_t i = 0; p->region->saves && i < p->carries; i++) {
        pg_index adjoint = p->adjoints[p->carries + p->own + i];
        if (adjoint != PG_NONE && p->active[i]) p->begun[i] = pass(p, adjoint);
    }
    made->arrays = p->passed - made->carries - made->shared;
}

static void loop_back(pg_sweep *d, pg_index value) {
    loop_parts p;
    pg_region made = {.length = pg_region_of(d->from, value)->length, .backwards = !pg_region_of(d->from, value)->backwards};
    int failed = parts_init(&p, d, value) < 0;
    if (!failed && gather(d, &p, value)) {
        size_t operands = p.carries + p.shared + p.arrays, result = 0, stack = 0, carried = 0;
        for (size_t i = 0; i < operands; i++) p.active[i] = d->depends[pg_operand_of(d->from, value, i)];
        failed = find_active_in_loop(p.region, p.active, p.outputs) < 0;
        if (!failed) pass_back(d, &p, value, &made);
        if (!failed && !p.wrt.failed)
            made.body[0] = reversed(p.region->body[0], p.passed, p.places, p.given, p.begun, p.wrt.at, p.wrt.count);
        pg_index loop = made_region(d, &p, PG_OP_loop, &made);
        for (size_t i = 0; i < p.carries && !d->failed; i++) result += p.active[i];
        for (size_t i = p.carries; i < operands && !d->failed; i++) {
            if (!p.active[i]) continue;
            if (i < p.carries + p.shared) replace(d, value, p.carries, i, result_of(d, loop, result++));
            else add_array(d, pg_operand_of(d->from, value, i), stack_of(d, loop, stack++));
        }
        for (size_t i = 0; i < p.carries; i++) carried += p.active[i];
        for (size_t i = p.carries; i-- > 0 && !d->failed;) {
            if (!p.active[i]) continue;
            pg_index operand = pg_operand_of(d->from, value, i), adjoint = result_of(d, loop, --carried);
            if (d->depends[operand]) pg_sweep_add_adjoint(d, operand, adjoint);
        }
    }
    d->failed |= failed;
    pg_program_free(made.body[0]);
    parts_free(&p);
}

/* Its reverse is a condition on the same truth, over the reverse of both bodies, which compute their own way again. */
static void cond_back(pg_sweep *d, pg_index value) {
    loop_parts p;
    pg_region made = {0};
    int failed = parts_init(&p, d, value) < 0;
    if (!failed && gather(d, &p, value)) {
        size_t inputs = p.region->body[0]->input_count, first_shared = inputs - p.region->shared;
        for (size_t i = 0; i < inputs; i++) p.active[i] = d->depends[pg_operand_of(d->from, value, i + 1)];
        for (int i = 0; i < 2; i++) failed |= find_active(p.region->body[i], p.active, p.outputs) < 0;
        add(&p.operands, d->places[pg_operand_of(d->from, value, 0)]);
        for (size_t i = 0; i < p.region->body[0]->output_count; i++)
            if (p.adjoints[i] != PG_NONE && p.outputs[i]) p.given[i] = pass(&p, p.adjoints[i]);
        for (size_t i = 0; i < inputs; i++) {
            p.places[i] = pass(&p, d->places[pg_operand_of(d->from, value, i + 1)]);
            if (!p.active[i]) continue;
            if (i >= first_shared) p.begun[i] = pass(&p, so_far(d, value, first_shared + 1, i + 1));
            add(&p.wrt, (pg_index)i);
        }
        for (int i = 0; i < 2 && !failed && !p.wrt.failed; i++)
            made.body[i] = reversed(p.region->body[i], p.passed, p.places, p.given, p.begun, p.wrt.at, p.wrt.count);
        pg_index cond = made.body[1] ? made_region(d, &p, PG_OP_cond, &made) : pg_sweep_checked(d, PG_NONE);
        for (size_t i = 0; i < p.wrt.count && !d->failed; i++)
            if (p.wrt.at[i] >= first_shared)
                replace(d, value, first_shared + 1, p.wrt.at[i] + 1, result_of(d, cond, i));
        for (size_t i = p.wrt.count; i-- > 0 && !d->failed;)
            if (p.wrt.at[i] < first_shared)
                pg_sweep_add_adjoint(d, pg_operand_of(d->from, value, p.wrt.at[i] + 1), result_of(d, cond, i));
    }
    d->failed |= failed;
    pg_program_free(made.body[0]);
    pg_program_free(made.body[1]);
    parts_free(&p);
}

/* What a call contributes to its operands for the adjoint g: by the program that comes with it, which takes g, the result
 * and the operands. A call without one raises, and so does its derivative. PG_NONE where memory runs out. */
static pg_index *contributions(pg_sweep *d, pg_index value, pg_index g) {
    const pg_program *gradient = pg_region_of(d->from, value)->body[0];
    size_t operands = pg_operands_of(d->from, value);
    pg_index result = result_of(d, d->places[value], 0), *made = filled(operands, result);
    pg_index *inputs = filled(operands + 2, g);
    for (size_t i = 0; inputs && i < operands; i++) inputs[i + 2] = d->places[pg_operand_of(d->from, value, i)];
    if (inputs) inputs[1] = result;
    int failed = !made || !inputs || d->failed;
    if (!failed && gradient) failed = pg_program_inline(d->to, gradient, inputs, made) < 0;
    free(inputs);
    if (!failed) return made;
    free(made);
    pg_sweep_checked(d, PG_NONE);
    return NULL;
}

static void call_back(pg_sweep *d, pg_index value) {
    pg_index g = PG_NONE;
    for (pg_index part = d->parts[value]; part != PG_NONE; part = d->next_part[part])
        g = g == PG_NONE ? d->derivative[part] : pg_sweep_row(d, PG_OP_add, g, d->derivative[part], 0);
    pg_index *made = g == PG_NONE ? NULL : contributions(d, value, g);
    for (size_t i = 0; made && i < pg_operands_of(d->from, value); i++) {
        pg_index operand = pg_operand_of(d->from, value, i);
        if (d->depends[operand]) pg_sweep_add_adjoint(d, operand, made[i]);
    }
    free(made);
}

/* A part with an adjoint, to be found from the whole. */
static void note_part(pg_sweep *d, pg_index value) {
    pg_index whole = d->from->code[value].in[0], g = d->derivative[value];
    if (g == PG_NONE || (pg_is_constant(d->to, g) && pg_constant_of(d->to, g) == 0)) return;
    d->next_part[value] = d->parts[whole];
    d->parts[whole] = value;
}

void pg_region_back(pg_sweep *d, pg_index value) {
    switch (d->from->code[value].op) {
    case PG_OP_stack: d->derivative[value] = array_adjoint(d, value); /* fall through */
    case PG_OP_result:
    case PG_OP_element: note_part(d, value); break;
    case PG_OP_pack: pack_back(d, value); break;
    case PG_OP_loop: loop_back(d, value); break;
    case PG_OP_cond: cond_back(d, value); break;
    case PG_OP_call: call_back(d, value); break;
    default: break; /* an array of constants */
    }
}

/* ---- forward ---- */

/* An operand that stays as it was, and behind it its tangent if it has one. */
static void pass_with_tangent(pg_sweep *d, loop_parts *p, pg_index value, size_t i) {
    pg_index operand = pg_operand_of(d->from, value, i), tangent = pg_sweep_derivative(d, operand);
    p->places[i] = pass(p, d->places[operand]);
    if (tangent != PG_NONE) p->given[i] = pass(p, tangent);
}

/* The operands of the loop of tangents. */
static void pass_forward(pg_sweep *d, loop_parts *p, pg_index value, pg_region *made) {
    size_t first_array = p->carries + p->shared;
    pg_index loop = d->places[value], zero = pg_sweep_constant(d, 0.0);
    for (size_t i = 0; i < p->carries; i++) {
        if (!p->active[i]) continue;
        pg_index tangent = pg_sweep_derivative(d, pg_operand_of(d->from, value, i));
        p->given[i] = pass(p, tangent == PG_NONE ? zero : tangent);
        add(&p->wrt, (pg_index)i);
    }
    made->carries = p->passed;
    for (size_t i = p->carries; i < first_array; i++) pass_with_tangent(d, p, value, i);
    made->shared = p->passed - made->carries;
    pg_region_of(d->to, loop)->saves = 1;
    for (size_t i = 0; i < p->carries; i++) p->places[i] = pass(p, stack_of(d, loop, p->own + i));
    for (size_t i = first_array; i < first_array + p->arrays; i++) pass_with_tangent(d, p, value, i);
    made->arrays = p->passed - made->carries - made->shared;
    for (size_t i = 0; i < p->own; i++)
        if (p->outputs[p->carries + i]) add(&p->wrt, (pg_index)(p->carries + i));
}

static void loop_forward(pg_sweep *d, pg_index value) {
    loop_parts p;
    const pg_region *region = pg_region_of(d->from, value);
    pg_region made = {.length = region->length, .backwards = region->backwards, .saves = region->saves};
    int failed = parts_init(&p, d, value) < 0;
    if (!failed) {
        for (size_t i = 0; i < p.carries + p.shared + p.arrays; i++)
            p.active[i] = pg_sweep_derivative(d, pg_operand_of(d->from, value, i)) != PG_NONE;
        failed = find_active_in_loop(region, p.active, p.outputs) < 0;
    }
    if (!failed) pass_forward(d, &p, value, &made);
    if (!failed && !p.wrt.failed)
        made.body[0] = pushed(region->body[0], p.passed, p.places, p.given, p.wrt.at, p.wrt.count);
    pg_index loop = made_region(d, &p, PG_OP_loop, &made);
    for (size_t i = 0, result = 0, stack = 0; i < p.carries + p.own && !d->failed; i++) {
        if (i < p.carries ? !p.active[i] : !p.outputs[i]) continue;
        p.adjoints[i] = i < p.carries ? result_of(d, loop, result++) : stack_of(d, loop, stack++);
    }
    for (size_t i = 0, saved = p.wrt.count - made.carries; region->saves && i < p.carries && !d->failed; i++)
        if (p.active[i]) p.adjoints[p.carries + p.own + i] = stack_of(d, loop, saved++);
    free(d->tangents[value]);
    d->tangents[value] = p.adjoints;
    p.adjoints = NULL;
    d->failed |= failed || !d->tangents[value];
    pg_program_free(made.body[0]);
    parts_free(&p);
}

static void cond_forward(pg_sweep *d, pg_index value) {
    loop_parts p;
    pg_region made = {0};
    int failed = parts_init(&p, d, value) < 0;
    if (!failed) {
        add(&p.operands, d->places[pg_operand_of(d->from, value, 0)]);
        for (size_t i = 0; i < p.region->body[0]->input_count; i++) {
            pg_index operand = pg_operand_of(d->from, value, i + 1), tangent = pg_sweep_derivative(d, operand);
            p.active[i] = tangent != PG_NONE;
            p.places[i] = pass(&p, d->places[operand]);
            if (p.active[i]) p.given[i] = pass(&p, tangent);
        }
        for (int i = 0; i < 2; i++) failed |= find_active(p.region->body[i], p.active, p.outputs) < 0;
        for (size_t i = 0; i < p.region->body[0]->output_count; i++)
            if (p.outputs[i]) add(&p.wrt, (pg_index)i);
        for (int i = 0; i < 2 && !failed && !p.wrt.failed; i++)
            made.body[i] = pushed(p.region->body[i], p.passed, p.places, p.given, p.wrt.at, p.wrt.count);
    }
    pg_index cond = made.body[1] ? made_region(d, &p, PG_OP_cond, &made) : pg_sweep_checked(d, PG_NONE);
    for (size_t i = 0; i < p.wrt.count && !d->failed; i++) p.adjoints[p.wrt.at[i]] = result_of(d, cond, i);
    free(d->tangents[value]);
    d->tangents[value] = p.adjoints;
    p.adjoints = NULL;
    d->failed |= failed || !d->tangents[value];
    pg_program_free(made.body[0]);
    pg_program_free(made.body[1]);
    parts_free(&p);
}

static void call_forward(pg_sweep *d, pg_index value) {
    pg_index *slopes = contributions(d, value, pg_sweep_constant(d, 1.0)), *tangent = filled(1, PG_NONE);
    for (size_t i = 0; slopes && tangent && i < pg_operands_of(d->from, value); i++) {
        pg_index along = pg_sweep_derivative(d, pg_operand_of(d->from, value, i));
        if (along != PG_NONE) pg_sweep_add_tangent(d, tangent, along, slopes[i]);
    }
    free(slopes);
    free(d->tangents[value]);
    d->tangents[value] = tangent;
    d->failed |= !tangent;
}

void pg_region_forward(pg_sweep *d, pg_index value) {
    const pg_instruction *instruction = &d->from->code[value];
    pg_index whole = instruction->in[0], tangent = PG_NONE;
    switch (instruction->op) {
    case PG_OP_loop: loop_forward(d, value); return;
    case PG_OP_cond: cond_forward(d, value); return;
    case PG_OP_call: call_forward(d, value); return;
    case PG_OP_pack: pack_forward(d, value); return;
    case PG_OP_element:
        tangent = pg_sweep_derivative(d, whole);
        if (tangent != PG_NONE) tangent = pg_sweep_checked(d, pg_program_element(d->to, tangent, instruction->in[1]));
        break;
    case PG_OP_stack: tangent = d->tangents[whole][pg_results_of(d->from, whole) + instruction->in[1]]; break;
    case PG_OP_result: tangent = d->tangents[whole][instruction->in[1]]; break;
    default: break;
    }
    d->derivative[value] = tangent;
}
