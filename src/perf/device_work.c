#include "perf/device_work.h"

#include <string.h>

const char *hn_work_kind_name(HnWorkKind kind)
{
    static const char *const names[] = { "kernel", "upload", "download", "copy", "fill" };
    return names[kind];
}

static guint sum_hash(gconstpointer key)
{
    const HnWorkSum *s = key;
    const HnDeviceRecord *r = &s->record;
    guint h = (guint)s->row * 31 + (guint)r->kind;
    for (int i = 0; i < 3; i++)
        h = (h * 31 + r->grid[i]) * 31 + r->block[i];
    return h * 31 + g_direct_hash(r->name) + (guint)r->bytes;
}

/* Names are constants, one for each text. */
static gboolean sum_equal(gconstpointer a, gconstpointer b)
{
    const HnWorkSum *s = a, *t = b;
    const HnDeviceRecord *x = &s->record, *y = &t->record;
    if (s->row != t->row || x->kind != y->kind || x->name != y->name || x->bytes != y->bytes)
        return FALSE;
    if (x->registers != y->registers || x->shared != y->shared)
        return FALSE;
    return memcmp(x->grid, y->grid, sizeof x->grid) == 0 && memcmp(x->block, y->block, sizeof x->block) == 0;
}

static guint gap_hash(gconstpointer key)
{
    const HnWorkGap *g = key;
    return (guint)g->before * 65599 + (guint)g->after;
}

static gboolean gap_equal(gconstpointer a, gconstpointer b)
{
    const HnWorkGap *x = a, *y = b;
    return x->before == y->before && x->after == y->after;
}

void hn_device_work_init(HnDeviceWork *w)
{
    *w = (HnDeviceWork){ .sums = g_hash_table_new_full(sum_hash, sum_equal, NULL, g_free),
                         .gaps = g_hash_table_new_full(gap_hash, gap_equal, NULL, g_free) };
}

void hn_device_work_clear(HnDeviceWork *w)
{
    g_clear_pointer(&w->sums, g_hash_table_unref);
    g_clear_pointer(&w->gaps, g_hash_table_unref);
}

static void add_sum(HnDeviceWork *w, int row, const HnDeviceRecord *r, double part)
{
    const HnWorkSum key = { .row = row, .record = *r };
    HnWorkSum *s = g_hash_table_lookup(w->sums, &key);
    if (s == NULL)
        g_hash_table_add(w->sums, s = g_memdup2(&key, sizeof key));
    s->count += part;
    s->ms += part * (r->end - r->start) * 1e-6;
}

static void add_gap(HnDeviceWork *w, int before, int after, double ms)
{
    const HnWorkGap key = { .before = before, .after = after };
    HnWorkGap *g = g_hash_table_lookup(w->gaps, &key);
    if (g == NULL)
        g_hash_table_add(w->gaps, g = g_memdup2(&key, sizeof key));
    g->count++;
    g->ms += ms;
    g->longest = MAX(g->longest, ms);
    w->idle_ms += ms;
}

void hn_device_work_add(HnDeviceWork *w, const GArray *records, const GArray *work, const int *rows)
{
    const HnDeviceRecord *r = (const HnDeviceRecord *)(const void *)records->data;
    g_autofree int *row_of = g_new(int, records->len + 1);
    double end = 0; /* ns, of what ran so far */
    for (guint i = 0; i < records->len; i++)
        row_of[i] = -1;
    for (guint k = 0; k < work->len; k++) {
        const HnStepWork *s = &g_array_index(work, HnStepWork, k);
        for (guint i = s->from; rows[k] >= 0 && i < s->to; i++) {
            row_of[i] = rows[k];
            add_sum(w, rows[k], &r[i], 1.0 / s->shared_by);
        }
    }
    for (guint i = 0; i < records->len; i++) {
        w->busy_ms += (r[i].end - r[i].start) * 1e-6;
        if (i > 0 && r[i].start > end)
            add_gap(w, row_of[i - 1], row_of[i], (r[i].start - end) * 1e-6);
        end = i > 0 ? MAX(end, r[i].end) : r[i].end;
    }
    w->runs++;
    w->pieces += records->len;
}

static gint longer_sum(gconstpointer a, gconstpointer b)
{
    const HnWorkSum *x = *(HnWorkSum *const *)a, *y = *(HnWorkSum *const *)b;
    return x->ms != y->ms ? (x->ms < y->ms) - (x->ms > y->ms) : x->row - y->row;
}

static gint longer_gap(gconstpointer a, gconstpointer b)
{
    const HnWorkGap *x = *(HnWorkGap *const *)a, *y = *(HnWorkGap *const *)b;
    return x->ms != y->ms ? (x->ms < y->ms) - (x->ms > y->ms) : x->before - y->before;
}

static GPtrArray *sorted(GHashTable *table, GCompareFunc order)
{
    GPtrArray *list = g_ptr_array_new();
    GHashTableIter iter;
    gpointer key;
    g_hash_table_iter_init(&iter, table);
    while (g_hash_table_iter_next(&iter, &key, NULL))
        g_ptr_array_add(list, key);
    g_ptr_array_sort(list, order);
    return list;
}

GPtrArray *hn_device_work_sums(const HnDeviceWork *w)
{
    return sorted(w->sums, longer_sum);
}

GPtrArray *hn_device_work_gaps(const HnDeviceWork *w)
{
    return sorted(w->gaps, longer_gap);
}
