/* hone-prune: what a run leaves behind so that another one can go on, and finds the same times again. */
#include "base/jsonread.h"
#include "hone_prune.h"

static HnToolJournal options_of(const Prune *q)
{
    return (HnToolJournal){ .journal = q->p->journal,
                            .output = q->p->output,
                            .timing_cache = q->p->timing_cache,
                            .resume = q->p->resume,
                            .repeats = q->recipe != NULL };
}

gboolean prune_open_journal(Prune *q, GError **error)
{
    const HnToolJournal o = options_of(q);
    g_autoptr(JsonObject) options = hn_recorded_json(&prune_recorded, q->p, q->ctx->common.seed);
    g_autofree char *plan = q->plan != NULL ? hn_json_line(q->plan) : NULL,
                    *hash = plan != NULL ? g_compute_checksum_for_string(G_CHECKSUM_SHA256, plan, -1) : NULL;
    const HnJournalOf of = { .model = q->model_hash,
                             .data = q->data_hash,
                             .plan = hash,
                             .options = options,
                             .metric = q->choice.command != NULL ? q->p->metric : NULL,
                             .device = q->ctx->common.device,
                             .threads = q->ctx->common.threads };
    return (q->journal = hn_tool_open_journal(q->ctx, &o, &of, error)) != NULL;
}

void prune_close_journal(Prune *q, const GError *why)
{
    const HnToolJournal o = options_of(q);
    hn_tool_close_journal(g_steal_pointer(&q->journal), &o, why);
}

char *prune_hash(const Prune *q, const int *keep, const char *judged)
{
    g_autoptr(GString) text = g_string_new(judged);
    for (guint i = 0; i < q->blocks->len; i++)
        g_string_append_printf(text, " %s", g_array_index(q->blocks, PruneBlock, i).out);
    for (guint c = 0; keep != NULL && c < q->map->classes->len; c++)
        g_string_append_printf(text, " %d", keep[c]);
    for (guint i = 0; q->zeros_part != NULL && i < q->map->layers->len; i++)
        g_string_append_printf(text, " %.17g", q->zeros_part[i]);
    return g_compute_checksum_for_string(G_CHECKSUM_SHA256, text->str, (gssize)text->len);
}

gboolean prune_known_score(const Prune *q, const char *hash, HnScore *s)
{
    const HnTried *known = hn_journal_tried(q->journal, hash);
    if (known != NULL)
        *s = known->score;
    return known != NULL;
}

gboolean prune_note_score(const Prune *q, const char *hash, const char *what, const HnScore *s, GError **error)
{
    HnTried *t = g_new0(HnTried, 1);
    t->plan = g_strdup(hash);
    t->what = g_strdup(what);
    t->score = *s;
    t->f32 = g_ptr_array_new();
    return hn_journal_add_tried(q->journal, t, error);
}
