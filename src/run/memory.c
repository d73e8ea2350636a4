#include "run/memory.h"

#include <stdlib.h>

#define ALIGN ((gsize)64)
#define WORK ((gsize)1 << 22) /* looks at blocks placed so far, beyond which gaps are no longer searched */
#define WORK_EACH 100         /* as many more for each block */
#define CLOSE 32              /* an arena that is larger than what is alive at once by more than such a part ... */
#define MANY 4000             /* ... of no more blocks than that is planned in another order, too */

static int by_size(const void *a, const void *b)
{
    const HnBlock *x = *(HnBlock *const *)a, *y = *(HnBlock *const *)b;
    if (x->bytes != y->bytes)
        return x->bytes < y->bytes ? 1 : -1;
    return x->first != y->first ? (x->first < y->first ? -1 : 1) : (x < y ? -1 : x > y);
}

static int by_offset(const void *a, const void *b)
{
    const HnBlock *x = *(HnBlock *const *)a, *y = *(HnBlock *const *)b;
    return x->offset < y->offset ? -1 : x->offset > y->offset;
}

static gsize rounded(gsize bytes)
{
    return (bytes + ALIGN - 1) & ~(ALIGN - 1);
}

static gsize larger(gsize a, gsize b)
{
    return a > b ? a : b;
}

static int steps_of(const HnBlock *blocks, int n)
{
    int steps = 0;
    for (int i = 0; i < n; i++)
        steps = MAX(steps, blocks[i].last + 1);
    return steps;
}

static int leaves_for(int n)
{
    int leaves = 1;
    while (leaves < n)
        leaves *= 2;
    return leaves;
}

/* --- how high memory is, step by step ------------------------------------------------------------------------------
 *
 * A tree over the steps, the children of node k being 2 k and 2 k + 1. Where it is told from where to where it is used,
 * `most` is the largest number below a node. */

typedef struct {
    int leaves; /* a power of two */
    gsize *most;
    gsize *all; /* of a ceiling: what all steps below the node are at least */
} Heights;

typedef struct {
    int node, lo, hi; /* steps [lo, hi) */
} Part;

static Part whole(const Heights *h)
{
    return (Part){ 1, 0, h->leaves };
}

static Part half(Part p, int k)
{
    const int mid = p.lo + (p.hi - p.lo) / 2;
    return (Part){ 2 * p.node + k, k == 0 ? p.lo : mid, k == 0 ? mid : p.hi };
}

static gboolean is_outside(Part p, const HnBlock *b)
{
    return p.hi <= b->first || b->last < p.lo;
}

static gboolean is_inside(Part p, const HnBlock *b)
{
    return b->first <= p.lo && p.hi - 1 <= b->last;
}

/* The floor: below it there is no gap, at that step. A node that is higher than its children stands for those steps
 * below it that were highest, which have been raised. */
static void sink(Heights *h, int node)
{
    gsize *child = h->most + 2 * node, before = larger(child[0], child[1]);
    for (int k = 0; k < 2 && h->most[node] > before; k++)
        if (child[k] == before)
            child[k] = h->most[node];
}

/* The highest floor while b is alive. */
static gsize floor_of(Heights *h, Part p, const HnBlock *b)
{
    if (is_outside(p, b))
        return 0;
    if (is_inside(p, b))
        return h->most[p.node];
    sink(h, p.node);
    const gsize low = floor_of(h, half(p, 0), b), high = floor_of(h, half(p, 1), b);
    return larger(low, high);
}

/* Where the floor is as high as b's offset, which is the highest while b is alive, it is b's end from now on. */
static void raise_floor(Heights *h, Part p, const HnBlock *b)
{
    if (is_outside(p, b) || h->most[p.node] < b->offset)
        return;
    if (is_inside(p, b)) {
        h->most[p.node] = b->offset + rounded(b->bytes);
        return;
    }
    sink(h, p.node);
    raise_floor(h, half(p, 0), b);
    raise_floor(h, half(p, 1), b);
    h->most[p.node] = larger(h->most[2 * p.node], h->most[2 * p.node + 1]);
}

/* The ceiling: above it there is nothing, at that step. */
static gsize ceiling_of(const Heights *h, Part p, const HnBlock *b)
{
    if (is_outside(p, b))
        return 0;
    if (is_inside(p, b))
        return h->most[p.node];
    const gsize low = ceiling_of(h, half(p, 0), b), high = ceiling_of(h, half(p, 1), b);
    return larger(h->all[p.node], larger(low, high));
}

static void raise_ceiling(Heights *h, Part p, const HnBlock *b)
{
    const gsize end = b->offset + rounded(b->bytes);
    if (is_outside(p, b))
        return;
    h->most[p.node] = larger(h->most[p.node], end);
    if (is_inside(p, b)) {
        h->all[p.node] = larger(h->all[p.node], end);
        return;
    }
    raise_ceiling(h, half(p, 0), b);
    raise_ceiling(h, half(p, 1), b);
}

/* --- blocks placed so far ---------------------------------------------------------------------------------------- */

typedef struct {
    HnBlock **sorted;    /* all blocks by their first step */
    int *from;           /* blocks that start before this step; steps + 1 of them */
    int *place;          /* of a block, by its index, among the sorted ones */
    const HnBlock *base; /* block 0 */
    int leaves;          /* a power of two; the tree is over the sorted blocks, children as above */
    int *last;           /* the latest last step of the placed blocks below a node, -1: there are none */
    gsize *end;          /* and their highest end */
    HnBlock **found;
    int n_found;
    gsize work;
    Heights floor;
} Placed;

static void placed_init(Placed *p, HnBlock *blocks, int n)
{
    const int steps = steps_of(blocks, n);
    *p = (Placed){ .base = blocks, .leaves = leaves_for(n), .floor.leaves = leaves_for(steps) };
    p->sorted = g_new(HnBlock *, (gsize)n + 1);
    p->found = g_new(HnBlock *, (gsize)n + 1);
    p->place = g_new(int, (gsize)n + 1);
    p->from = g_new0(int, (gsize)steps + 2);
    p->last = g_new(int, 2 * (gsize)p->leaves);
    p->end = g_new0(gsize, 2 * (gsize)p->leaves);
    p->floor.most = g_new0(gsize, 2 * (gsize)p->floor.leaves);
    for (int i = 0; i < 2 * p->leaves; i++)
        p->last[i] = -1;
    for (int i = 0; i < n; i++)
        p->from[blocks[i].first + 1]++;
    for (int i = 0; i < steps; i++)
        p->from[i + 1] += p->from[i];
    g_autofree int *next = g_memdup2(p->from, ((gsize)steps + 1) * sizeof *next);
    for (int i = 0; i < n; i++) {
        p->place[i] = next[blocks[i].first]++;
        p->sorted[p->place[i]] = &blocks[i];
    }
}

static void placed_clear(Placed *p)
{
    g_free(p->sorted);
    g_free(p->found);
    g_free(p->place);
    g_free(p->from);
    g_free(p->last);
    g_free(p->end);
    g_free(p->floor.most);
}

/* Those of the first `n` sorted blocks that are alive with b and end above `at`. */
static void find(Placed *p, Part part, int n, const HnBlock *b, gsize at)
{
    p->work++;
    if (part.lo >= n || p->last[part.node] < b->first || p->end[part.node] <= at)
        return;
    if (part.hi - part.lo == 1) {
        p->found[p->n_found++] = p->sorted[part.lo];
        return;
    }
    find(p, half(part, 0), n, b, at);
    find(p, half(part, 1), n, b, at);
}

/* Lowest offset for b that leaves what was placed where it is. */
static gsize lowest_gap(Placed *p, const HnBlock *b)
{
    gsize at = floor_of(&p->floor, whole(&p->floor), b);
    p->n_found = 0;
    find(p, (Part){ 1, 0, p->leaves }, p->from[b->last + 1], b, at);
    qsort(p->found, (size_t)p->n_found, sizeof *p->found, by_offset);
    for (int i = 0; i < p->n_found; i++) {
        const HnBlock *q = p->found[i];
        if (q->offset >= at + rounded(b->bytes))
            break;
        at = larger(at, q->offset + rounded(q->bytes));
    }
    return at;
}

static void put(Placed *p, const HnBlock *b)
{
    if (floor_of(&p->floor, whole(&p->floor), b) == b->offset)
        raise_floor(&p->floor, whole(&p->floor), b);
    for (int k = p->leaves + p->place[b - p->base]; k > 0; k /= 2) {
        p->last[k] = MAX(p->last[k], b->last);
        p->end[k] = larger(p->end[k], b->offset + rounded(b->bytes));
    }
}

/* --- all of it --------------------------------------------------------------------------------------------------- */

/* Blocks order[done..n) on top of all that lives with them: no gaps are looked for. */
static void pile(HnBlock *const *order, int done, int n, int steps)
{
    Heights h = { .leaves = leaves_for(steps) };
    h.most = g_new0(gsize, 2 * (gsize)h.leaves);
    h.all = g_new0(gsize, 2 * (gsize)h.leaves);
    for (int i = 0; i < n; i++) {
        if (i >= done)
            order[i]->offset = ceiling_of(&h, whole(&h), order[i]);
        raise_ceiling(&h, whole(&h), order[i]);
    }
    g_free(h.most);
    g_free(h.all);
}

/* The first n blocks of that order, one after the other; the bytes needed. */
static gsize place(HnBlock *blocks, int all, HnBlock *const *order, int n)
{
    gsize end = 0;
    int done = 0;
    Placed placed;
    placed_init(&placed, blocks, all);
    for (; done < n && placed.work < WORK + WORK_EACH * (gsize)n; done++) {
        order[done]->offset = lowest_gap(&placed, order[done]);
        put(&placed, order[done]);
    }
    placed_clear(&placed);
    if (done < n)
        pile(order, done, n, steps_of(blocks, all));
    for (int i = 0; i < n; i++)
        end = larger(end, order[i]->offset + rounded(order[i]->bytes));
    return end;
}

/* Bytes alive at each step. */
static gsize *alive_of(const HnBlock *blocks, int n)
{
    const int steps = steps_of(blocks, n);
    gsize *alive = g_new0(gsize, (gsize)steps + 1);
    for (int i = 0; i < n; i++) {
        alive[blocks[i].first] += rounded(blocks[i].bytes);
        alive[blocks[i].last + 1] -= rounded(blocks[i].bytes);
    }
    for (int i = 1; i < steps; i++)
        alive[i] += alive[i - 1];
    return alive;
}

/* Blocks with the most that is alive at one of their steps. */
typedef struct {
    HnBlock *block;
    gsize most;
} Pressed;

/* What lives where most is alive comes first, the longest of it. */
static int by_pressure(const void *a, const void *b)
{
    const Pressed *x = a, *y = b;
    if (x->most != y->most)
        return x->most < y->most ? 1 : -1;
    const int apart = (y->block->last - y->block->first) - (x->block->last - x->block->first);
    return apart != 0 ? apart : by_size(&x->block, &y->block);
}

static void sort_by_pressure(HnBlock **order, int n, const HnBlock *blocks, int all)
{
    g_autofree gsize *alive = alive_of(blocks, all);
    g_autofree Pressed *p = g_new0(Pressed, (gsize)n);
    for (int i = 0; i < n; i++) {
        p[i].block = order[i];
        for (int k = order[i]->first; k <= order[i]->last; k++)
            p[i].most = larger(p[i].most, alive[k]);
    }
    qsort(p, (size_t)n, sizeof *p, by_pressure);
    for (int i = 0; i < n; i++)
        order[i] = p[i].block;
}

/* The other order, where the one by size left gaps: what is placed then is `end` bytes. */
static gsize place_otherwise(HnBlock *blocks, int all, HnBlock **order, int n, gsize end)
{
    g_autofree gsize *offset = g_new(gsize, (gsize)all);
    for (int i = 0; i < all; i++)
        offset[i] = blocks[i].offset;
    sort_by_pressure(order, n, blocks, all);
    const gsize other = place(blocks, all, order, n);
    for (int i = 0; other >= end && i < all; i++)
        blocks[i].offset = offset[i];
    return MIN(end, other);
}

gsize hn_memory_plan(HnBlock *blocks, int all)
{
    g_autofree HnBlock **order = g_new(HnBlock *, (gsize)all + 1);
    gsize sum = 0;
    int n = all;
    for (int i = 0; i < all; i++) {
        order[i] = &blocks[i];
        order[i]->offset = 0;
        if (blocks[i].bytes > G_MAXSIZE / 2 || sum > G_MAXSIZE / 2)
            return G_MAXSIZE;
        sum += rounded(blocks[i].bytes);
    }
    qsort(order, (size_t)all, sizeof *order, by_size);
    while (n > 0 && order[n - 1]->bytes == 0) /* nothing fits anywhere */
        n--;
    const gsize end = place(blocks, all, order, n), floor = hn_memory_floor(blocks, all);
    return n > MANY || end <= floor + floor / CLOSE ? end : place_otherwise(blocks, all, order, n, end);
}

gsize hn_memory_floor(const HnBlock *blocks, int n)
{
    const int steps = steps_of(blocks, n);
    gsize floor = 0;
    g_autofree gsize *alive = alive_of(blocks, n);
    for (int i = 0; i < steps; i++)
        floor = larger(floor, alive[i]);
    return floor;
}
