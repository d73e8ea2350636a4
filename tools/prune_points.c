/* hone-prune: what was tried: the points of its table. */
#include <math.h>
#include <string.h>

#include "hone_prune.h"
#include "ir/copy.h"
#include "prune/count.h"

static void clear_point(gpointer data)
{
    PrunePoint *p = data;
    g_free(p->what);
    g_free(p->hash);
}

GArray *prune_points_new(void)
{
    GArray *a = g_array_new(FALSE, FALSE, sizeof(PrunePoint));
    g_array_set_clear_func(a, clear_point);
    return a;
}

static PrunePoint *find(const Prune *q, const char *hash)
{
    for (guint i = 0; i < q->points->len; i++) {
        PrunePoint *p = &g_array_index(q->points, PrunePoint, i);
        if (strcmp(p->hash, hash) == 0)
            return p;
    }
    return NULL;
}

static gboolean measure(const Prune *q, HnModel *m, PrunePoint *p, GError **error)
{
    double flops;
    gsize bytes;
    if (!prune_count_flops(q, m, &flops, error) || !hn_onnx_size(m, q->ctx->budget, &bytes, error))
        return FALSE;
    p->flops = flops / q->flops_before;
    p->bytes = (double)bytes / (double)q->file_before;
    return TRUE;
}

gboolean prune_note_point(Prune *q, const char *what, HnModel *m, const int *keep, const HnScore *s, double latency,
                          gboolean within, GError **error)
{
    g_autofree char *hash = prune_hash(q, keep, "point");
    PrunePoint now = { .flops = NAN, .bytes = NAN, .latency = latency, .top1 = NAN, .db = NAN, .within = within };
    PrunePoint *p = find(q, hash);
    if (s != NULL) {
        now.top1 = s->top1;
        now.db = s->sqnr;
    }
    if (p != NULL) { /* judged behind being timed */
        p->top1 = isnan(p->db) ? now.top1 : p->top1;
        p->within = isnan(p->db) ? within : p->within;
        p->db = isnan(p->db) ? now.db : p->db;
        return TRUE;
    }
    g_autoptr(HnModel) made = NULL;
    if (m == NULL)
        m = made = q->budget == PRUNE_ZEROS ? hn_model_copy(q->base) : hn_prune_narrow(q->map, &q->o, keep, error);
    if (m == NULL || !measure(q, m, &now, error))
        return FALSE;
    now.what = g_strdup(what);
    now.hash = g_steal_pointer(&hash);
    g_array_append_val(q->points, now);
    return TRUE;
}

static gboolean beats(const PrunePoint *a, const PrunePoint *b)
{
    const gboolean timed = !isnan(a->latency) && !isnan(b->latency);
    if (!(a->db >= b->db) || a->flops > b->flops || a->bytes > b->bytes || (timed && a->latency > b->latency))
        return FALSE;
    return a->db > b->db || a->flops < b->flops || a->bytes < b->bytes || (timed && a->latency < b->latency);
}

void prune_finish_points(Prune *q)
{
    g_autofree char *hash = prune_hash(q, q->keep, "point");
    for (guint i = 0; i < q->points->len; i++) {
        PrunePoint *p = &g_array_index(q->points, PrunePoint, i);
        p->chosen = strcmp(p->hash, hash) == 0;
        if (p->chosen && q->has_speedup)
            p->latency = q->speedup.effect.effect;
        p->best = !isnan(p->db);
        for (guint k = 0; k < q->points->len && p->best; k++)
            p->best = !beats(&g_array_index(q->points, PrunePoint, k), p);
    }
}
