/* py_heap.c: slabs and regions. See Note [Slabs] in py_heap.h. */
#include "py_heap.h" /* and so Python.h, first of all: it asks the system for mmap and madvise */

#if defined(__unix__) || defined(__APPLE__)
#include <sys/mman.h>
#define PG_HAVE_MMAP 1
#else
#include <malloc.h>
#define PG_HAVE_MMAP 0
#endif

enum { REGIONS_KEPT = 16 };

/* ---- pages: large buffers that are given back to the system, touched no further than they are used ---- */

static inline void advise_huge(void *start, size_t bytes) {
#ifdef MADV_HUGEPAGE
    madvise(start, bytes, MADV_HUGEPAGE);
#else
    (void)start, (void)bytes;
#endif
}

void *pg_pages_alloc(size_t bytes) {
#if PG_HAVE_MMAP
    void *start = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (start == MAP_FAILED) return NULL;
    if (bytes > PG_REGION_BYTES) advise_huge(start, bytes);
    return start;
#else
    return malloc(bytes);
#endif
}

void pg_pages_free(void *start, size_t bytes) {
    if (!start) return;
#if PG_HAVE_MMAP
    munmap(start, bytes);
#else
    (void)bytes;
    free(start);
#endif
}

/* ---- regions: the header of a region is in that of its first slab ---- */

typedef struct region region;
struct region {
    uint32_t idle;           /* bit i: slab i is not in use */
    region *previous, *next; /* of all regions, those with idle slabs first */
};

enum { REGION_HEADER_AT = sizeof(pg_node), ALL_IDLE = -1 };
_Static_assert(sizeof(pg_slab) <= REGION_HEADER_AT && sizeof(region) <= PG_SLAB_HEADER - REGION_HEADER_AT, "headers fit");
_Static_assert(PG_SLABS_A_REGION == 32, "a region's slabs are the bits of an uint32_t");

static region *first_region, *last_region;
static size_t region_count, empty_regions;

static char *start_of(const void *inside) { return (char *)((uintptr_t)inside & ~(uintptr_t)(PG_REGION_BYTES - 1)); }

static void *region_map(void) {
#if PG_HAVE_MMAP
    /* Twice as much, then the ends cut off: mmap aligns to pages only. A small program stays small: no huge page yet. */
    char *raw = mmap(NULL, 2 * PG_REGION_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (raw == MAP_FAILED) return NULL;
    char *start = start_of(raw + PG_REGION_BYTES - 1);
    if (start > raw) munmap(raw, (size_t)(start - raw));
    char *end = start + PG_REGION_BYTES;
    if (raw + 2 * PG_REGION_BYTES > end) munmap(end, (size_t)(raw + 2 * PG_REGION_BYTES - end));
    if (region_count > 0) advise_huge(start, PG_REGION_BYTES);
    return start;
#else
    return _aligned_malloc(PG_REGION_BYTES, PG_REGION_BYTES);
#endif
}

static void region_unlink(region *r) {
    *(r->previous ? &r->previous->next : &first_region) = r->next;
    *(r->next ? &r->next->previous : &last_region) = r->previous;
}

static void region_link_first(region *r) {
    r->previous = NULL;
    r->next = first_region;
    *(first_region ? &first_region->previous : &last_region) = r;
    first_region = r;
}

static void region_link_last(region *r) {
    r->next = NULL;
    r->previous = last_region;
    *(last_region ? &last_region->next : &first_region) = r;
    last_region = r;
}

/* An idle slab, the lowest of the first region that has one; NULL with MemoryError. */
static pg_slab *slab_take(int of_leaves) {
    region *r = first_region;
    if (!r || !r->idle) {
        char *start = region_map();
        if (!start) return (pg_slab *)PyErr_NoMemory();
        r = (region *)(start + REGION_HEADER_AT);
        r->idle = (uint32_t)ALL_IDLE;
        region_link_first(r);
        region_count++;
        empty_regions++;
    }
    int i = 0;
    while (!(r->idle >> i & 1)) i++;
    if (r->idle == (uint32_t)ALL_IDLE) empty_regions--;
    r->idle &= ~((uint32_t)1 << i);
    if (!r->idle) {
        region_unlink(r);
        region_link_last(r);
    }
    pg_slab *slab = (pg_slab *)(start_of(r) + (size_t)i * PG_SLAB_BYTES);
    memset(slab, 0, sizeof *slab);
    slab->of_leaves = (uint8_t)of_leaves;
    slab->bump = (char *)pg_slab_nodes(slab);
    slab->end = slab->bump + sizeof(pg_node) * PG_SLAB_NODES;
    return slab;
}

static void slab_give_back(pg_slab *slab) {
    PG_UNPOISON_SLAB(slab);
    char *start = start_of(slab);
    region *r = (region *)(start + REGION_HEADER_AT);
    int was_full = !r->idle;
    r->idle |= (uint32_t)1 << ((char *)slab - start) / PG_SLAB_BYTES;
    int now_empty = r->idle == (uint32_t)ALL_IDLE;
    if (!was_full && !now_empty) return;
    region_unlink(r);
    if (now_empty && empty_regions >= REGIONS_KEPT) {
        region_count--;
#if PG_HAVE_MMAP
        munmap(start, PG_REGION_BYTES);
#else
        _aligned_free(start);
#endif
        return;
    }
    empty_regions += (size_t)now_empty;
    region_link_first(r);
}

/* ---- slabs of ops, in the order of creation ---- */

static pg_slab none; /* full: stands in until the first node is made */
pg_slab *pg_slab_of_ops = &none, *pg_slab_of_leaves = &none;
static uint64_t next_base;

static void start_afresh(pg_slab *slab) {
    slab->bump = (char *)pg_slab_nodes(slab);
    slab->gone = 0;
    slab->base = next_base;
    next_base += PG_SLAB_NODES;
}

pg_node *pg_alloc_op_slow(void) {
    pg_slab *slab = slab_take(0);
    if (!slab) return NULL;
    start_afresh(slab);
    if (pg_slab_of_ops != &none) {
        slab->previous = pg_slab_of_ops;
        pg_slab_of_ops->next = slab;
    }
    pg_slab_of_ops = slab;
    return pg_alloc_op();
}

void pg_slab_of_ops_emptied(pg_slab *slab) {
    if (slab == pg_slab_of_ops) {
        start_afresh(slab);
        return;
    }
    if (slab->previous) slab->previous->next = slab->next;
    if (slab->next) slab->next->previous = slab->previous;
    slab_give_back(slab);
}

/* The next place of the current slab, taken and gone at once. */
uint64_t pg_position_take(void) {
    pg_node *node = pg_alloc_op();
    if (!node) return UINT64_MAX;
    uint64_t position = pg_position_in_slab(node);
    pg_heap_free(node);
    return position;
}

uint64_t pg_written_at;

void pg_note_write(void) {
    pg_slab *slab = pg_slab_of_ops;
    if (slab != &none) pg_written_at = slab->base + (uint64_t)((pg_node *)slab->bump - pg_slab_nodes(slab));
}

/* ---- slabs of leaves ---- */

static pg_slab *with_room; /* but for the current one */

pg_node *pg_alloc_leaf_slow(void) {
    pg_slab *slab = pg_slab_of_leaves;
    if (slab->bump == slab->end) {
        if (with_room) {
            slab = with_room;
            with_room = slab->next;
            if (with_room) with_room->previous = NULL;
        } else if (!(slab = slab_take(1))) {
            return NULL;
        }
        pg_slab_of_leaves->listed = 0;
        slab->listed = 1;
        pg_slab_of_leaves = slab;
        if (slab->free) return pg_alloc_leaf();
    }
    pg_node *node = (pg_node *)slab->bump;
    slab->bump += sizeof(pg_node);
    slab->gone++;
    return pg_node_init(node);
}

void pg_slab_of_leaves_changed(pg_slab *slab) {
    if (slab->gone == 0 && slab == pg_slab_of_leaves) {
        slab->free = NULL;
        slab->bump = (char *)pg_slab_nodes(slab);
    } else if (slab->gone == 0) {
        if (slab->listed) {
            *(slab->previous ? &slab->previous->next : &with_room) = slab->next;
            if (slab->next) slab->next->previous = slab->previous;
        }
        slab_give_back(slab);
    } else {
        slab->previous = NULL;
        slab->next = with_room;
        if (with_room) with_room->previous = slab;
        with_room = slab;
        slab->listed = 1;
    }
}

void pg_heap_clear_marks(void) {
    for (region *r = first_region; r; r = r->next) {
        for (int i = 0; i < PG_SLABS_A_REGION; i++) {
            pg_slab *slab = (pg_slab *)(start_of(r) + (size_t)i * PG_SLAB_BYTES);
            if (r->idle >> i & 1) continue;
            slab->reached = 0;
            for (pg_node *node = pg_slab_nodes(slab); (char *)node < slab->bump; node++) node->mark = 0;
        }
    }
}

void pg_heap_stats(size_t *regions, size_t *live) {
    *regions = region_count;
    *live = pg_collected_count();
    for (region *r = first_region; r; r = r->next) {
        for (int i = 0; i < PG_SLABS_A_REGION; i++) {
            pg_slab *slab = (pg_slab *)(start_of(r) + (size_t)i * PG_SLAB_BYTES);
            if (r->idle >> i & 1) continue;
            size_t used = (size_t)(slab->bump - (char *)pg_slab_nodes(slab)) / sizeof(pg_node);
            *live += slab->of_leaves ? slab->gone : used - slab->gone;
        }
    }
}
