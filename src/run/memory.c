#include "run/memory.h"

#include <stdlib.h>

#define ALIGN ((gsize)64)

static int by_size(const void *a, const void *b)
{
    const HnBlock *x = *(HnBlock *const *)a, *y = *(HnBlock *const *)b;
    if (x->bytes != y->bytes)
        return x->bytes < y->bytes ? 1 : -1;
    return x->first != y->first ? (x->first < y->first ? -1 : 1) : (x < y ? -1 : x > y);
}

static gsize rounded(gsize bytes)
{
    return (bytes + ALIGN - 1) & ~(ALIGN - 1);
}

/* Lowest offset for b among the blocks placed so far, which are sorted by offset. */
static gsize lowest_gap(const HnBlock *b, GPtrArray *placed)
{
    gsize at = 0;
    for (guint i = 0; i < placed->len; i++) {
        const HnBlock *p = placed->pdata[i];
        if (p->last < b->first || b->last < p->first)
            continue;
        if (p->offset >= at + rounded(b->bytes))
            break;
        at = MAX(at, p->offset + rounded(p->bytes));
    }
    return at;
}

gsize hn_memory_plan(HnBlock *blocks, int n)
{
    g_autofree HnBlock **order = g_new(HnBlock *, (gsize)n + 1);
    g_autoptr(GPtrArray) placed = g_ptr_array_new();
    gsize sum = 0, end = 0;
    for (int i = 0; i < n; i++) {
        order[i] = &blocks[i];
        if (blocks[i].bytes > G_MAXSIZE / 2 || sum > G_MAXSIZE / 2)
            return G_MAXSIZE;
        sum += rounded(blocks[i].bytes);
    }
    qsort(order, (size_t)n, sizeof *order, by_size);
    for (int i = 0; i < n; i++) {
        HnBlock *b = order[i];
        b->offset = lowest_gap(b, placed);
        end = MAX(end, b->offset + rounded(b->bytes));
        guint at = placed->len;
        while (at > 0 && ((HnBlock *)placed->pdata[at - 1])->offset > b->offset)
            at--;
        g_ptr_array_insert(placed, (gint)at, b);
    }
    return end;
}

gsize hn_memory_floor(const HnBlock *blocks, int n)
{
    gsize floor = 0;
    int steps = 0;
    for (int i = 0; i < n; i++)
        steps = MAX(steps, blocks[i].last + 1);
    g_autofree gssize *change = g_new0(gssize, (gsize)steps + 1);
    for (int i = 0; i < n; i++) {
        change[blocks[i].first] += (gssize)rounded(blocks[i].bytes);
        change[blocks[i].last + 1] -= (gssize)rounded(blocks[i].bytes);
    }
    gssize alive = 0;
    for (int i = 0; i < steps; i++) {
        alive += change[i];
        floor = MAX(floor, (gsize)alive);
    }
    return floor;
}
