/* py_capture.h: captures: runs of a function whose recorded graph is to be replayed for other inputs. Owns the stack of
 * captures of a thread, their guards, and what of a graph depends on the outside. Makes no program of what was recorded.
 *
 * Note [Capture]. A leaf that requires a gradient and was made during a capture is a constant of it; any other leaf (an
 * input, or what was there before) is the outside. A number that depends on the outside must not become a constant,
 * since a replay would reuse it. So during a capture
 *   - comparisons are recorded (py_truth.h), and where Python needs to know (bool, int, floor, ...) the node is guarded:
 *     a replay has to find the same number there, or may not use what was captured;
 *   - what cuts the graph (detach, no_grad) records a row `frozen` instead, and where a gradient's formula chooses
 *     by a number, all ways are recorded with `where` (py_gradient.c);
 *   - what would take the number out of the graph is an error.
 * repr, format and hash stay: text is for the eye, identity is no number. Captures nest: a leaf made in the inner one was
 * made during the outer one, too, so what depends on the outside of the outer one does on that of the inner one. */
#ifndef PG_PY_CAPTURE_H
#define PG_PY_CAPTURE_H

#include "py_node.h"

/* Of a list of leaves. A part that is `rolled` (pygrad/loops.py) keeps its guards to itself, and notes their places: 0, or
 * -1 with an error. */
int pg_capture_begin(PyObject *inputs, int rolled);
PyObject *pg_capture_end(void);         /* of the innermost: list of (node, number, kind, place or None) */
PyObject *pg_capture_guards(void);      /* of the innermost, so far (borrowed) */
int pg_capture_made(const pg_node *node); /* whether the innermost made it, or there is none; else input or older */
pg_capture *pg_capture_outer(const pg_capture *capture);

/* Whether the node depends on the outside of the innermost capture: 1, 0, or -1 with an error. */
int pg_capture_depends(pg_node *node);
int pg_capture_is_of_part(const pg_node *node); /* whether it was an input of a part that has ended */
int pg_capture_note_leaf(pg_node *leaf); /* one that was just made: 0, or -1 with an error */

/* Guards `row` of the node, recorded here (PG_OP_leaf: the node itself), where it depends on the outside: 0 or -1. */
int pg_capture_guard(pg_node *node, int row, const char *kind);
int pg_capture_pass_on(PyObject *guard); /* one of a part that has ended, to what is around it: 0 or -1 */
int pg_capture_truth(pg_node *node);     /* bool(node), guarded: 1, 0, or -1 with an error */
PyObject *pg_capture_freeze(pg_node *node);

/* -1 with CaptureError that says "what, at ...: why; instead"; the second only where the node depends on the outside. */
int pg_capture_error(const char *what, const char *why, const char *instead);
int pg_capture_refuse(pg_node *node, const char *what, const char *why, const char *instead);

#define PG_WOULD_REUSE "it depends on what is being captured, and a replay would reuse the number of this run"
#define PG_WOULD_NOT_REPEAT "a replay would not do it again"

static inline int pg_is_capturing(void) { return PG_UNLIKELY(pg_unusual != 0) && pg_thread.capture; }
static inline int pg_is_captured(const pg_node *node) { return pg_is_capturing() && node->flags & PG_REQUIRES_GRAD; }

#endif
