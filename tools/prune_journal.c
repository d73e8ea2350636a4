/* hone-prune: what a run leaves behind so that another one can go on, and finds the same times again. */
#include "hone_prune.h"

gboolean prune_open_journal(Prune *q, GError **error)
{
    const PruneParams *p = q->p;
    g_autofree char *path = hn_tool_journal_path(p->journal, p->output), *cache = hn_tool_cache_path(p->timing_cache);
    g_autoptr(JsonObject) options = hn_recorded_json(&prune_recorded, p, q->ctx->common.seed);
    g_autoptr(JsonObject) header =
        hn_journal_header(&(HnJournalOf){ .model = q->model_hash,
                                          .data = q->data_hash,
                                          .options = options,
                                          .metric = q->choice.command != NULL ? p->metric : NULL,
                                          .device = q->ctx->common.device,
                                          .threads = q->ctx->common.threads });
    if (p->resume && path == NULL)
        return hn_tool_usage(error, "'--resume' needs a journal: '-o FILE' or '--journal FILE'");
    q->journal = hn_journal_new();
    if (cache != NULL) {
        g_autofree char *key = hn_journal_key(header);
        hn_journal_use_cache(q->journal, cache, key);
    }
    const gboolean resume = p->resume && g_file_test(path, G_FILE_TEST_EXISTS); /* killed before it began */
    if (path != NULL && q->recipe == NULL && !hn_journal_open(q->journal, path, resume, header, error))
        return FALSE;
    if (resume)
        hn_context_note(q->ctx, 1, "goes on with %u trials of '%s'", hn_journal_resumed(q->journal), path);
    return TRUE;
}

void prune_close_journal(Prune *q, const GError *why)
{
    const gboolean opened = q->journal != NULL && q->recipe == NULL;
    if (q->journal != NULL) {
        g_autoptr(JsonObject) line = json_object_new();
        json_object_set_string_member(line, "end", why == NULL ? "done" : why->message);
        hn_journal_note(q->journal, line, NULL);
    }
    g_clear_pointer(&q->journal, hn_journal_free);
    if (opened && why == NULL)
        hn_tool_drop_journal(q->p->journal, q->p->output);
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
