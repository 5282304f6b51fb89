/* py_scan.h: the walk down through memory. Owns the plain backward, which needs no sort and no list.
 * Knows how nodes lie in slabs, and the table's gradients; where a list is needed the walk is in py_graph.c. */
#ifndef PG_PY_SCAN_H
#define PG_PY_SCAN_H

#include "py_node.h"

/* Whether a scan may start at `root`: no closure of the user's runs on the way, and no other walk is under way. */
int pg_can_scan(const pg_node *root);

/* Adds the gradient of `root`, times grad, to the leaves it was computed from: 0, or -1 with an error, and in *done the
 * number of nodes stepped on. The caller owns a reference to the root meanwhile. */
int pg_scan(pg_node *root, double grad, size_t *done);

/* Sets the gradients of `targets`, which are leaves, and of no other. PG_MET_OTHER where another leaf was met or the walk
 * must keep a list for another reason; then gradients of targets are as good as unset, all else is as it was.
 *
 * A reference to *root goes to the walk. It comes back in *root, unless it was the only one and the walk succeeded: then
 * the graph is gone, all of it that nothing else holds, and *root is NULL. See Note [Spending]. */
enum { PG_MET_OTHER = 1 };
int pg_scan_targets(pg_node **root, double grad, pg_node *const *targets, size_t count, size_t *done);

#endif
