/*
 * Which work comes behind which: by streams, by events, and by what the host waited for. Work that may run beside other
 * work must not use what that one writes. Clocks say for each stream how much of it is ordered before.
 *
 * What a kernel used is read from the interpreter's stamps; that costs time, and is done only while more than one
 * stream has work that the host has not waited for.
 */
#include <stdlib.h>
#include <string.h>

#include "emu_device.h"
#include "ptx.h"

#define MOST_REMEMBERED 1000

typedef struct {
    uint64_t from, to;
    gboolean wrote;
} Range;

/* Work that was done, and that other work may still be found to run beside. */
typedef struct {
    int stream, number; /* its place in clocks; its number in messages */
    guint32 turn;
    char *name;
    GArray *ranges; /* Range, by address */
} Done;

static void done_free(gpointer data)
{
    Done *d = data;
    g_array_unref(d->ranges);
    g_free(d->name);
    g_free(d);
}

/* --- clocks ------------------------------------------------------------------------------------------------------- */

static guint32 at(const GArray *clock, int stream)
{
    return clock != NULL && stream < (int)clock->len ? g_array_index(clock, guint32, stream) : 0;
}

/* Replaces *clock, which others may hold, by one that is as late as both, and as late as that turn of the stream. */
static void join(GArray **clock, const GArray *other, int stream, guint32 turn)
{
    guint n = MAX(stream + 1, 0);
    n = *clock != NULL ? MAX(n, (*clock)->len) : n;
    n = other != NULL ? MAX(n, other->len) : n;
    GArray *both = g_array_sized_new(FALSE, TRUE, sizeof(guint32), n);
    g_array_set_size(both, n);
    for (int i = 0; i < (int)n; i++) {
        const guint32 mine = at(*clock, i), its = at(other, i), own = i == stream ? turn : 0, most = MAX(mine, its);
        g_array_index(both, guint32, i) = MAX(most, own);
    }
    g_clear_pointer(clock, g_array_unref);
    *clock = both;
}

void emu_order_op(EmuStream *s, EmuOp *op)
{
    const EmuContext *c = s->context;
    if (s->waited != c->waited) { /* all that the host waited for comes before */
        join(&s->clock, c->clock_of_host, -1, 0);
        s->waited = c->waited;
    }
    op->stream = s->index;
    op->number = s->number;
    op->turn = ++s->turn;
    op->clock = s->clock != NULL ? g_array_ref(s->clock) : NULL;
}

void emu_order_mark(const EmuStream *s, EmuMark *m)
{
    m->clock = s->clock != NULL ? g_array_ref(s->clock) : NULL;
    m->index = s->index;
    m->turn = s->turn;
}

void emu_order_wait(EmuStream *s, const EmuMark *m)
{
    if (at(s->clock, m->index) < m->turn)
        join(&s->clock, m->clock, m->index, m->turn);
}

void emu_order_host(EmuContext *c, const EmuMark *m)
{
    if (at(c->clock_of_host, m->index) >= m->turn)
        return;
    join(&c->clock_of_host, m->clock, m->index, m->turn);
    c->waited++;
}

void emu_order_host_stream(const EmuStream *s)
{
    EmuContext *c = s->context;
    for (guint i = 1; s->index == 0 && i < c->streams->len; i++)
        if (((EmuStream *)g_ptr_array_index(c->streams, i))->blocking)
            emu_order_host_stream(g_ptr_array_index(c->streams, i));
    if (at(c->clock_of_host, s->index) >= s->turn)
        return;
    join(&c->clock_of_host, s->clock, s->index, s->turn);
    c->waited++;
}

/* --- what work uses ------------------------------------------------------------------------------------------------
 */

static void add_range(GArray *ranges, uint64_t from, size_t bytes, gboolean wrote)
{
    Range *last = ranges->len > 0 ? &g_array_index(ranges, Range, ranges->len - 1) : NULL;
    if (last != NULL && last->to == from && last->wrote == wrote)
        last->to += bytes;
    else
        g_array_append_vals(ranges, &(Range){ from, from + bytes, wrote }, 1);
}

static int by_address(gconstpointer a, gconstpointer b)
{
    const Range *x = a, *y = b;
    return x->from < y->from ? -1 : x->from > y->from;
}

static GArray *ranges_of(const EmuContext *c, const EmuOp *op)
{
    GArray *ranges = g_array_new(FALSE, FALSE, sizeof(Range));
    const EmuSpace *s = &c->device->memory.space;
    if (op->work == EMU_TO_HOST || op->work == EMU_WITHIN)
        add_range(ranges, op->from, op->bytes, FALSE);
    for (int i = 0; op->work == EMU_LIBRARY && i < op->library->n; i++)
        add_range(ranges, op->library->range[i].address, op->library->range[i].bytes, op->library->range[i].wrote);
    if (op->work != EMU_TO_HOST && op->work != EMU_LAUNCH && op->work != EMU_LIBRARY)
        add_range(ranges, op->to, op->bytes, TRUE);
    for (size_t i = 0; op->work == EMU_LAUNCH && i < s->n; i++) {
        const PtxStamp *stamps = s->region[i]->races;
        for (size_t k = 0; stamps != NULL && k < (s->region[i]->bytes + 3) / 4; k++)
            if (stamps[k].wrote != 0 || stamps[k].read != 0)
                add_range(ranges, s->region[i]->base + 4 * k, 4, stamps[k].wrote != 0);
    }
    g_array_sort(ranges, by_address);
    return ranges;
}

/* --- work beside other work ----------------------------------------------------------------------------------------
 */

static gboolean others_wait(const EmuContext *c)
{
    for (guint i = 0; i < c->streams->len; i++) {
        const EmuStream *s = g_ptr_array_index(c->streams, i);
        if (s->index != c->doing->stream && s->turn > at(c->clock_of_host, s->index))
            return TRUE;
    }
    return FALSE;
}

/* Nothing that waits anywhere can run beside what the host has waited for. */
static void forget_old(EmuContext *c)
{
    for (guint i = 0; i < c->streams->len; i++)
        if (!g_queue_is_empty(&((EmuStream *)g_ptr_array_index(c->streams, i))->ops))
            return;
    for (guint i = c->remembered->len; i-- > 0;) {
        const Done *d = g_ptr_array_index(c->remembered, i);
        if (at(c->clock_of_host, d->stream) >= d->turn && at(c->doing->clock, d->stream) >= d->turn)
            g_ptr_array_remove_index_fast(c->remembered, i);
    }
}

gboolean emu_order_begin(EmuContext *c, const EmuOp *op)
{
    const EmuSpace *s = &c->device->memory.space;
    if (c->doing == NULL)
        return FALSE;
    if (c->remembered->len > 0)
        forget_old(c);
    if (c->remembered->len == 0 && !others_wait(c))
        return FALSE;
    for (size_t i = 0; op->work == EMU_LAUNCH && i < s->n; i++)
        g_clear_pointer(&s->region[i]->races, free);
    return TRUE;
}

/* The first bytes that both use and one of them writes. */
static gboolean meet(const GArray *a, const GArray *b, Range *where, gboolean *other_wrote)
{
    for (guint i = 0, k = 0; i < a->len && k < b->len;) {
        const Range *x = &g_array_index(a, Range, i), *y = &g_array_index(b, Range, k);
        if (x->from < y->to && y->from < x->to && (x->wrote || y->wrote)) {
            *where = (Range){ MAX(x->from, y->from), MIN(x->to, y->to), x->wrote };
            *other_wrote = y->wrote;
            return TRUE;
        }
        if (x->to < y->to)
            i++;
        else
            k++;
    }
    return FALSE;
}

void emu_order_end(EmuContext *c, const EmuOp *op)
{
    const EmuOp *as = c->doing;
    Done *now = g_new0(Done, 1);
    *now = (Done){ .stream = as->stream, .number = as->number, .turn = as->turn };
    now->name = g_strdup(emu_name_of(op));
    now->ranges = ranges_of(c, op);
    for (guint i = 0; i < c->remembered->len && c->fault == EMU_OK; i++) {
        const Done *d = g_ptr_array_index(c->remembered, i);
        Range r;
        gboolean wrote;
        if (d->stream == as->stream || at(as->clock, d->stream) >= d->turn || !meet(now->ranges, d->ranges, &r, &wrote))
            continue;
        emu_fail(c, EMU_LAUNCH_FAILED,
                 "race between streams: '%s' in stream %d %s 0x%" G_GINT64_MODIFIER
                 "x, which '%s' in stream %d %s, and neither waits for the other",
                 now->name, now->number, r.wrote ? "writes" : "reads", r.from, d->name, d->number,
                 wrote ? "writes" : "reads");
    }
    if (c->remembered->len == MOST_REMEMBERED)
        g_ptr_array_remove_index(c->remembered, 0);
    g_ptr_array_add(c->remembered, now);
}

GPtrArray *emu_order_new(void)
{
    return g_ptr_array_new_with_free_func(done_free);
}
