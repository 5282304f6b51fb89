/* py_map.h: a map from node to number, for walks that copy or write out a graph. Owns its table; borrows the nodes. */
#ifndef PG_PY_MAP_H
#define PG_PY_MAP_H

#include "py_node.h"

typedef struct {
    pg_node **keys;
    int64_t *numbers;
    size_t capacity, count;
} pg_map;

int64_t pg_map_get(const pg_map *map, const pg_node *node); /* -1 where there is none */
int pg_map_set(pg_map *map, pg_node *node, int64_t number); /* 0, or -1 with MemoryError */
void pg_map_clear(pg_map *map);

#endif
