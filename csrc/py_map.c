/* py_map.c: open addressing with linear probing, at most two thirds full. See py_map.h. */
#include "py_map.h"

static size_t slot_of(const pg_map *map, const pg_node *node) {
    size_t slot = (size_t)(((uint64_t)(uintptr_t)node >> 4) * UINT64_C(0x9E3779B97F4A7C15) >> 20) & (map->capacity - 1);
    while (map->keys[slot] && map->keys[slot] != node) slot = (slot + 1) & (map->capacity - 1);
    return slot;
}

int64_t pg_map_get(const pg_map *map, const pg_node *node) {
    if (!map->capacity) return -1;
    size_t slot = slot_of(map, node);
    return map->keys[slot] ? map->numbers[slot] : -1;
}

static int grow(pg_map *map) {
    pg_map larger = {NULL, NULL, map->capacity ? 2 * map->capacity : 64, map->count};
    larger.keys = PyMem_RawCalloc(larger.capacity, sizeof *larger.keys);
    larger.numbers = PyMem_RawMalloc(larger.capacity * sizeof *larger.numbers);
    if (!larger.keys || !larger.numbers) {
        PyMem_RawFree(larger.keys);
        PyMem_RawFree(larger.numbers);
        PyErr_NoMemory();
        return -1;
    }
    for (size_t i = 0; i < map->capacity; i++) {
        if (!map->keys[i]) continue;
        size_t slot = slot_of(&larger, map->keys[i]);
        larger.keys[slot] = map->keys[i];
        larger.numbers[slot] = map->numbers[i];
    }
    PyMem_RawFree(map->keys);
    PyMem_RawFree(map->numbers);
    *map = larger;
    return 0;
}

int pg_map_set(pg_map *map, pg_node *node, int64_t number) {
    if (3 * (map->count + 1) > 2 * map->capacity && grow(map) < 0) return -1;
    size_t slot = slot_of(map, node);
    if (!map->keys[slot]) {
        map->keys[slot] = node;
        map->count++;
    }
    map->numbers[slot] = number;
    return 0;
}

void pg_map_clear(pg_map *map) {
    PyMem_RawFree(map->keys);
    PyMem_RawFree(map->numbers);
    map->keys = NULL;
    map->numbers = NULL;
    map->capacity = map->count = 0;
}
