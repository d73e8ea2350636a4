/* hone-quantize: what a search leaves behind so that another run can go on, and plans as files. */
#include <string.h>

#include "base/file.h"
#include "base/jsonread.h"
#include "cli/json.h"
#include "quant/plan_file.h"
#include "hone_quantize.h"

/* --- the journal -------------------------------------------------------------------------------------------------- */

static HnToolJournal options_of(const Quantize *q)
{
    return (HnToolJournal){ .journal = q->p->journal,
                            .output = q->p->analyze ? NULL : q->p->output,
                            .timing_cache = q->p->timing_cache,
                            .resume = q->p->resume };
}

gboolean quantize_open_journal(Quantize *q, GError **error)
{
    const HnToolJournal o = options_of(q);
    g_autofree char *path = hn_tool_journal_path(o.journal, o.output), *plan = hn_quant_plan_hash(q->base);
    g_autoptr(JsonObject) options = quantize_options_json(q);
    const HnJournalOf of = { .model = q->model_hash,
                             .data = q->data_hash,
                             .plan = plan,
                             .options = options,
                             .metric = q->choice.command != NULL ? q->p->metric : NULL,
                             .device = q->ctx->common.device,
                             .threads = q->ctx->common.threads };
    q->so.journal = q->journal = hn_tool_open_journal(q->ctx, &o, &of, error);
    if (q->journal != NULL && path != NULL && o.output != NULL && !hn_out_is_stdout(o.output))
        q->best_path = g_strconcat(o.output, ".best-so-far", NULL);
    return q->journal != NULL;
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
    const HnToolJournal o = options_of(q);
    hn_tool_close_journal(g_steal_pointer(&q->journal), &o, why);
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
