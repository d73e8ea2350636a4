/* hone-quantize: what a search leaves behind so that another run can go on, and plans as files. */
#include <glib/gstdio.h>
#include <string.h>

#include "base/file.h"
#include "base/jsonread.h"
#include "cli/json.h"
#include "quant/plan_file.h"
#include "hone_quantize.h"

/* --- the journal -------------------------------------------------------------------------------------------------- */

static gboolean is_file(const Quantize *q)
{
    return q->p->output != NULL && !hn_out_is_stdout(q->p->output);
}

gboolean quantize_open_journal(Quantize *q, GError **error)
{
    g_autofree char *path = hn_tool_journal_path(q->p->journal, q->p->analyze ? NULL : q->p->output),
                    *cache = hn_tool_cache_path(q->p->timing_cache);
    g_autoptr(JsonObject) options = quantize_options_json(q);
    g_autofree char *plan = hn_quant_plan_hash(q->base);
    g_autoptr(JsonObject) header =
        hn_journal_header(&(HnJournalOf){ .model = q->model_hash,
                                          .data = q->data_hash,
                                          .plan = plan,
                                          .options = options,
                                          .metric = q->choice.command != NULL ? q->p->metric : NULL,
                                          .device = q->ctx->common.device,
                                          .threads = q->ctx->common.threads });
    if (q->p->resume && path == NULL) {
        g_set_error_literal(error, HN_ERROR, HN_ERROR_USAGE,
                            "'--resume' needs a journal: '-o FILE' or '--journal FILE'");
        return FALSE;
    }
    q->journal = hn_journal_new();
    if (cache != NULL) {
        g_autofree char *key = hn_journal_key(header);
        hn_journal_use_cache(q->journal, cache, key);
    }
    const gboolean resume = q->p->resume && g_file_test(path, G_FILE_TEST_EXISTS); /* killed before it began */
    if (path != NULL && !hn_journal_open(q->journal, path, resume, header, error))
        return FALSE;
    if (resume)
        hn_context_note(q->ctx, 1, "goes on with %u trials of '%s'", hn_journal_resumed(q->journal), path);
    q->so.journal = q->journal;
    if (path != NULL && is_file(q) && !q->p->analyze)
        q->best_path = g_strconcat(q->p->output, ".best-so-far", NULL);
    return TRUE;
}

gboolean quantize_improved(gpointer data, const HnQuantPlan *p, GError **error)
{
    Quantize *q = data;
    HnQuantLog log;
    if (q->best_path == NULL || g_hash_table_size(p->forms) == 0)
        return TRUE;
    g_autoptr(HnModel) m = hn_quant_build(p, &q->so, &log, error);
    return m != NULL && quantize_write(q, m, q->best_path, error);
}

/* What ended early leaves its best model beside its journal. */
void quantize_close_journal(Quantize *q, const GError *why)
{
    const gboolean early = g_error_matches(why, HN_ERROR, HN_ERROR_BUDGET) ||
                           g_error_matches(why, HN_ERROR, HN_ERROR_INTERRUPTED) ||
                           g_error_matches(why, HN_ERROR, HN_ERROR_IO);
    if (q->best_path != NULL && !early)
        hn_onnx_remove(q->best_path);
    const gboolean opened = q->journal != NULL;
    if (opened) {
        g_autoptr(JsonObject) line = json_object_new();
        json_object_set_string_member(line, "end", why == NULL ? "done" : why->message);
        hn_journal_note(q->journal, line, NULL);
    }
    g_clear_pointer(&q->journal, hn_journal_free);
    if (opened && why == NULL && !q->p->analyze)
        hn_tool_drop_journal(q->p->journal, q->p->output);
    g_clear_pointer(&q->best_path, g_free);
}

/* --- plans -------------------------------------------------------------------------------------------------------- */

static GPtrArray *names_of(const GPtrArray *nodes)
{
    GPtrArray *names = g_ptr_array_new();
    for (guint i = 0; i < nodes->len; i++)
        g_ptr_array_add(names, (gpointer)hn_quant_name(nodes->pdata[i]));
    return names;
}

gboolean quantize_read_plan(Quantize *q, const HnQuantOptions *o, const GPtrArray *nodes, GError **error)
{
    g_autoptr(JsonNode) json = hn_json_read_file(q->p->plan, HN_JSON_BYTES, q->ctx->budget, error);
    g_autoptr(GPtrArray) names = names_of(nodes);
    HnPlanFile file;
    if (json == NULL)
        return FALSE;
    if (!hn_quant_plan_read(json, o, names, &file, error)) {
        g_prefix_error(error, "'%s': ", q->p->plan);
        return FALSE;
    }
    q->base = g_steal_pointer(&file.plan);
    q->plan_repairs =
        file.repairs != NULL && file.repairs[0] != NULL ? g_strjoinv(",", file.repairs) : g_strdup("none");
    q->plan_spans = file.has_spans;
    hn_plan_file_clear(&file);
    return TRUE;
}

gboolean quantize_write_plan(const Quantize *q, GError **error)
{
    const char *repairs[HN_REPAIRS + 1] = { NULL };
    guint n = 0;
    if (q->p->write_plan == NULL || q->search.plan == NULL)
        return TRUE;
    for (int k = 0; k < HN_REPAIRS; k++)
        if (q->repairs.kept >> k & 1)
            repairs[n++] = hn_repair_name((HnRepair)k);
    g_autoptr(GPtrArray) nodes = hn_quant_candidates(q->f32);
    g_autoptr(GPtrArray) names = names_of(nodes);
    JsonNode *json = hn_quant_plan_json(q->search.plan, names, repairs);
    g_autofree char *text = hn_json_text(json);
    json_node_unref(json);
    return hn_out_save(q->p->write_plan, text, strlen(text), error);
}
