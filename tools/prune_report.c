/* hone-prune: what it says, and what it leaves in the model. */
#include <math.h>
#include <string.h>

#include "base/jsonread.h"
#include "base/text.h"
#include "hone_prune.h"

#define CLASS_COLUMNS                                                                      \
    { "name", "class", HN_COL_TEXT }, { "members", "tensors", HN_COL_INT },                \
        { "width_before", "channels", HN_COL_INT }, { "width_after", "left", HN_COL_INT }, \
    {                                                                                      \
        "error", "error", HN_COL_PERCENT                                                   \
    }

static const HnColumn class_columns[] = { CLASS_COLUMNS, { 0 } };
static const HnColumn timed_class_columns[] = { CLASS_COLUMNS, { "ms", "saves", HN_COL_MS }, { 0 } };
static const HnColumn layer_columns[] = { { "name", "layer", HN_COL_TEXT },
                                          { "op", "operator", HN_COL_TEXT },
                                          { "weights_before", "weights", HN_COL_INT },
                                          { "zeros", "zeros", HN_COL_PERCENT },
                                          { 0 } };
static const HnColumn explain_columns[] = { { "name", "class", HN_COL_TEXT },
                                            { "members", "tensors", HN_COL_INT },
                                            { "width_before", "channels", HN_COL_INT },
                                            { "locked", "stays, because", HN_COL_TEXT },
                                            { 0 } };
static const HnColumn repair_columns[] = { { "name", "repair", HN_COL_TEXT },
                                           { "before", "dB before", HN_COL_NUMBER },
                                           { "after", "dB after", HN_COL_NUMBER },
                                           { "kept", "kept", HN_COL_TEXT },
                                           { 0 } };
static const HnColumn point_columns[] = { { "name", "tried", HN_COL_TEXT },
                                          { "flops", "operations", HN_COL_PERCENT },
                                          { "bytes", "bytes", HN_COL_PERCENT },
                                          { "latency", "time", HN_COL_PERCENT },
                                          { "sqnr_db", "dB", HN_COL_NUMBER },
                                          { "within", "within", HN_COL_TEXT },
                                          { "best", "best", HN_COL_TEXT },
                                          { "chosen", "chosen", HN_COL_TEXT },
                                          { 0 } };

static const HnColumn block_columns[] = { { "out", "block up to", HN_COL_TEXT },
                                          { "in", "its place takes", HN_COL_TEXT },
                                          { "layers", "layers", HN_COL_INT },
                                          { "sqnr_db", "dB without", HN_COL_NUMBER },
                                          { 0 } };

#define FEW_SAMPLES 32
#define UNSURE \
    2.0 /* times the difference between samples that weights were fitted to and others: as much may yet be lost */

static HnReport *report_new(const Prune *q)
{
    HnReport *report = hn_report_new(q->ctx, "hone.prune/1", &(HnReportEnv){ .onednn = hn_tool_onednn(q->backend) });
    JsonObject *root = hn_report_root(report);
    json_object_set_string_member(root, "model", q->path);
    json_object_set_string_member(root, "calibration", q->p->calib != NULL ? hn_data_source(q->all) : NULL);
    return report;
}

/* What the readers of class c lose, those that stay of it. */
static double loss_of(const Prune *q, guint c)
{
    const HnPruneClass *k = q->map->classes->pdata[c];
    if (q->pruned != NULL)
        return q->pruned->loss[c];
    return q->loss != NULL && q->keep[c] > 0 && q->keep[c] < k->n ? q->loss[c][k->n - q->keep[c] - 1] : NAN;
}

/* What the model costs with that width of class c alone; NaN: not known. */
static double cost_of(const Prune *q, const HnPruneCosts *costs, guint c, int width)
{
    const guint n = q->map->classes->len;
    g_autofree int *keep = g_new(int, n + 1u);
    for (guint i = 0; i < n; i++)
        keep[i] = ((const HnPruneClass *)q->map->classes->pdata[i])->n;
    keep[c] = width;
    return costs != NULL ? hn_prune_cost(costs, keep) : NAN;
}

static JsonArray *curve_of(const Prune *q, guint c)
{
    const HnPruneClass *k = q->map->classes->pdata[c];
    JsonArray *curve = json_array_new();
    const int step = hn_prune_step(q->map, (int)c, hn_prune_steps(q->vector));
    for (int width = (k->n - 1) / step * step; q->loss != NULL && width >= 1; width -= step) {
        JsonObject *o = json_object_new();
        json_object_set_int_member(o, "width", width);
        hn_json_set_number(o, "error", q->loss[c][k->n - width - 1]);
        hn_json_set_number(o, "ms", cost_of(q, q->ms, c, width));
        hn_json_set_number(o, "bytes", cost_of(q, q->bytes, c, width));
        json_array_add_object_element(curve, o);
    }
    return curve;
}

static void add_classes(const Prune *q, HnReport *report)
{
    JsonArray *rows = json_array_new();
    for (guint c = 0; c < q->map->classes->len; c++) {
        const HnPruneClass *k = q->map->classes->pdata[c];
        JsonObject *row = json_object_new();
        json_object_set_string_member(row, "name", k->name);
        json_object_set_int_member(row, "members", k->group->spans->len);
        json_object_set_int_member(row, "width_before", k->n);
        const int left = q->pruned != NULL ? q->pruned->kept[c] : q->keep[c];
        json_object_set_int_member(row, "width_after", left);
        hn_json_set_number(row, "error", loss_of(q, c));
        hn_json_set_number(row, "ms", cost_of(q, q->ms, c, k->n) - cost_of(q, q->ms, c, left));
        if (q->p->analyze)
            json_object_set_array_member(row, "curve", curve_of(q, c));
        json_array_add_object_element(rows, row);
    }
    json_object_set_array_member(hn_report_root(report), "classes", rows);
    if (q->budget != PRUNE_ZEROS)
        hn_report_table(report, "classes", q->ms != NULL ? timed_class_columns : class_columns);
}

/* Elements of a weight; -1: it is none. */
static int64_t elements_of(const HnValue *w)
{
    int64_t n;
    if (w != NULL && w->sparse != NULL)
        return hn_dims_count(w->sparse->ndim, w->sparse->dims, &n) ? n : -1;
    return w != NULL && w->weight != NULL ? w->weight->n : -1;
}

static int64_t others_than_zero(const HnTensor *t)
{
    int64_t n = 0;
    for (int64_t i = 0; i < t->n; i++)
        n += hn_tensor_get_f64(t, i) != 0;
    return n;
}

/* Elements of a weight that are not 0. */
static int64_t others_of(const HnValue *w)
{
    return w->sparse != NULL ? w->sparse->values->n : others_than_zero(w->weight);
}

/* Layers with weights: elements before and after. */
static void add_layers(const Prune *q, HnReport *report)
{
    JsonArray *rows = json_array_new();
    for (guint i = 0; i < q->map->layers->len; i++) {
        const HnPruneLayer *l = q->map->layers->pdata[i];
        const char *name = hn_node_out(l->node, 0)->name;
        const HnValue *v = q->result != NULL ? hn_graph_find(q->result->graph, name) : NULL;
        const HnValue *w = v != NULL && v->producer != NULL ? hn_node_in(v->producer, l->w) : NULL;
        JsonObject *row = json_object_new();
        json_object_set_string_member(row, "name", name);
        json_object_set_string_member(row, "op", l->node->op_type);
        json_object_set_int_member(row, "weights_before", l->rows.w->n);
        const int64_t n = elements_of(w);
        if (n >= 0)
            json_object_set_int_member(row, "weights_after", n);
        else
            json_object_set_null_member(row, "weights_after");
        hn_json_set_number(row, "zeros", n > 0 ? 1 - (double)others_of(w) / (double)n : NAN);
        json_object_set_boolean_member(row, "fitted", q->pruned != NULL && q->pruned->fits[2 * (gsize)i] != NULL);
        json_array_add_object_element(rows, row);
    }
    json_object_set_array_member(hn_report_root(report), "layers", rows);
    if (q->budget == PRUNE_ZEROS)
        hn_report_table(report, "layers", layer_columns);
}

/* Of all layers together: those that took part, and all. */
static void add_zeros(const Prune *q, HnReport *report)
{
    double zeros = 0, weights = 0, all = 0;
    int layers = 0;
    for (guint i = 0; i < q->map->layers->len; i++) {
        const HnPruneLayer *l = q->map->layers->pdata[i];
        const HnTensor *t = q->pruned->fits[2 * (gsize)i];
        all += (double)l->rows.w->n;
        if (t == NULL || !hn_zeros_takes(l))
            continue;
        zeros += (double)(t->n - others_than_zero(t));
        weights += (double)t->n;
        layers++;
    }
    JsonObject *o = json_object_new();
    json_object_set_string_member(o, "pattern", q->pattern);
    hn_json_set_number(o, "part", weights > 0 ? zeros / weights : NAN);
    hn_json_set_number(o, "weights", weights);
    json_object_set_int_member(o, "layers", layers);
    json_object_set_object_member(hn_report_root(report), "zeros", o);
    hn_report_line(report, "zeros: %.1f %% of the %.0f weights of %d layers (%s); %.0f weights of other layers stay",
                   100 * zeros / weights, weights, layers, q->pattern, all - weights);
    if (q->zeros.of_four > 0)
        hn_report_line(report, "2:4 is a pattern that other runtimes know: here it gains no time");
}

static void add_blocks(const Prune *q, HnReport *report)
{
    JsonArray *rows = json_array_new();
    for (guint i = 0; i < q->blocks->len; i++) {
        const PruneBlock *b = &g_array_index(q->blocks, PruneBlock, i);
        JsonObject *row = json_object_new();
        json_object_set_string_member(row, "out", b->out);
        json_object_set_string_member(row, "in", b->in);
        json_object_set_int_member(row, "layers", b->layers);
        hn_json_set_number(row, "sqnr_db", b->db);
        json_array_add_object_element(rows, row);
    }
    json_object_set_array_member(hn_report_root(report), "blocks", rows);
    if (q->blocks->len > 0)
        hn_report_table(report, "blocks", block_columns);
}

static void add_repairs(const Prune *q, HnReport *report)
{
    JsonArray *rows = json_array_new();
    for (guint i = 0; i < q->repairs->len; i++) {
        const PruneRepair *r = &g_array_index(q->repairs, PruneRepair, i);
        JsonObject *row = json_object_new();
        json_object_set_string_member(row, "name", r->name);
        json_object_set_string_member(row, "kept", r->kept ? "yes" : "no");
        hn_json_set_number(row, "before", r->before);
        hn_json_set_number(row, "after", r->after);
        json_array_add_object_element(rows, row);
    }
    json_object_set_array_member(hn_report_root(report), "repairs", rows);
    if (q->repairs->len > 0)
        hn_report_table(report, "repairs", repair_columns);
}

static void add_points(const Prune *q, HnReport *report)
{
    JsonArray *rows = json_array_new();
    for (guint i = 0; i < q->points->len; i++) {
        const PrunePoint *p = &g_array_index(q->points, PrunePoint, i);
        JsonObject *row = json_object_new();
        json_object_set_string_member(row, "name", p->what);
        hn_json_set_number(row, "flops", p->flops);
        hn_json_set_number(row, "bytes", p->bytes);
        hn_json_set_number(row, "latency", p->latency);
        hn_json_set_number(row, "top1", p->top1);
        hn_json_set_number(row, "sqnr_db", p->db);
        json_object_set_string_member(row, "within", p->within ? "yes" : "no");
        json_object_set_string_member(row, "best", p->best ? "yes" : "no");
        json_object_set_string_member(row, "chosen", p->chosen ? "yes" : "no");
        json_array_add_object_element(rows, row);
    }
    json_object_set_array_member(hn_report_root(report), "points", rows);
    if (q->points->len > 0)
        hn_report_table(report, "points", point_columns);
}

/* Readers of channels that went, whose weights stayed what they were: those in f16, and those behind DequantizeLinear.
 */
static void add_unfitted(const Prune *q, HnReport *report)
{
    const GPtrArray *members = hn_channels_members(q->map->channels);
    g_autoptr(GHashTable) half = g_hash_table_new(NULL, NULL), quantized = g_hash_table_new(NULL, NULL);
    for (guint c = 0; c < q->map->classes->len; c++) {
        const HnPruneClass *k = q->map->classes->pdata[c];
        for (guint i = 0; q->pruned->kept[c] < k->n && i < k->others->len; i++) {
            const HnChannelMember *f = members->pdata[g_array_index(k->others, int, i)];
            const HnNode *n = hn_graph_find(q->map->model->graph, f->node)->producer;
            const HnDtype type = hn_node_in(n, f->input)->weight->dtype;
            if (hn_dtype_is_half(type))
                g_hash_table_add(half, (gpointer)n);
            else if (hn_dtype_in(type, HN_T_INTS))
                g_hash_table_add(quantized, (gpointer)n);
        }
    }
    if (g_hash_table_size(half) > 0)
        hn_report_line(report,
                       "%u nodes with weights of f16 read channels that went, and only weights of f32 are computed "
                       "anew: use 'hone-export --to f32' before, and '--to f16' afterwards",
                       g_hash_table_size(half));
    if (g_hash_table_size(quantized) > 0)
        hn_report_line(report,
                       "%u nodes with quantized weights read channels that went, and only weights of f32 are computed "
                       "anew: prune first, and quantize what comes of it",
                       g_hash_table_size(quantized));
}

static JsonObject *pair(double before, double after)
{
    JsonObject *o = json_object_new();
    hn_json_set_number(o, "before", before);
    hn_json_set_number(o, "after", after);
    hn_json_set_number(o, "ratio", before > 0 ? after / before : NAN);
    return o;
}

/* Why little is left of an output, or may be; NULL: that is not so. */
static const char *reason_of(const Prune *q, const PruneOutput *o)
{
    if (q->folds != NULL && o->db >= PRUNE_LITTLE && UNSURE * (o->seen - o->db) > o->db - PRUNE_LITTLE)
        return "samples are too few to be sure that others keep above 13 dB";
    if (!(o->db < PRUNE_LITTLE))
        return NULL;
    const gboolean few = isnan(o->seen) ? q->calib < FEW_SAMPLES : o->seen >= PRUNE_LITTLE;
    return few ? "samples are few" : "more went than the rest can make up for";
}

static void add_score(const Prune *q, HnReport *report)
{
    JsonObject *root = hn_report_root(report), *o = json_object_new();
    if (q->scorer == NULL || q->pruned == NULL) {
        json_object_unref(o);
        json_object_set_null_member(root, "score");
        return;
    }
    hn_json_set_number(o, "top1_before", q->original.top1);
    hn_json_set_number(o, "top1", q->score.top1);
    hn_json_set_number(o, "r2_lost", 1 - q->score.r2);
    hn_json_set_number(o, "cos", q->score.cos);
    hn_json_set_number(o, "sqnr_db", q->score.sqnr);
    json_object_set_int_member(o, "samples", q->held);
    json_object_set_string_member(o, "how",
                                  q->held_first > 0  ? "held out"
                                  : q->folds != NULL ? "left out in turn"
                                                     : "used to prune by");
    json_object_set_object_member(root, "score", o);
    if (!isnan(q->score.top1))
        hn_report_line(report, "top-1 %.2f %% instead of %.2f %%, %.1f dB, on %" G_GINT64_FORMAT " samples%s",
                       q->score.top1 * 100, q->original.top1 * 100, q->score.sqnr, q->held,
                       q->held_first > 0 ? " held out" : "");
    else
        hn_report_line(report, "%.1f dB, cosine %.4f, on %" G_GINT64_FORMAT " samples%s", q->score.sqnr, q->score.cos,
                       q->held, q->held_first > 0 ? " held out" : "");
    if (q->folds != NULL)
        hn_report_line(report, "each sample was judged by a model that was made without it");
    else if (q->held_first == 0)
        hn_report_line(report, "judged on data that was also used to prune by");
    for (guint k = 0; k < q->outputs->len; k++) {
        const PruneOutput *of = &g_array_index(q->outputs, PruneOutput, k);
        const char *reason = reason_of(q, of);
        g_autofree char *seen = isnan(of->seen)
                                    ? g_strdup("")
                                    : g_strdup_printf(", %.1f dB on samples that weights were fitted to", of->seen);
        if (reason != NULL)
            hn_report_line(report, "output '%s': its error is %.1f dB below its spread%s: %s",
                           hn_scorer_output_name(q->scorer, (int)k), of->db, seen, reason);
    }
}

static void add_outputs(const Prune *q, HnReport *report)
{
    JsonArray *rows = json_array_new();
    for (int k = 0; k < (int)q->outputs->len; k++) {
        const PruneOutput *of = &g_array_index(q->outputs, PruneOutput, k);
        JsonObject *row = json_object_new();
        json_object_set_string_member(row, "name", hn_scorer_output_name(q->scorer, k));
        json_object_set_string_member(row, "kind", hn_output_kind_name(hn_scorer_output_kind(q->scorer, k)));
        hn_json_set_number(row, "r2_lost", 1 - of->score.r2);
        hn_json_set_number(row, "spread_db", of->db);
        hn_json_set_number(row, "seen_db", of->seen);
        json_object_set_string_member(row, "reason", reason_of(q, of));
        hn_json_set_number(row, "cos", of->score.cos);
        json_array_add_object_element(rows, row);
    }
    json_object_set_array_member(hn_report_root(report), "outputs", rows);
}

static void add_gain(const Prune *q, HnReport *report)
{
    JsonObject *root = hn_report_root(report), *gain = json_object_new();
    json_object_set_object_member(root, "flops", pair(q->flops_before, q->flops_after));
    json_object_set_object_member(root, "bytes", pair((double)q->file_before, (double)q->file_after));
    if (q->has_speedup) {
        const HnEffect *e = &q->speedup.effect;
        hn_json_set_number(gain, "effect", e->effect);
        hn_json_set_number(gain, "lo", e->sure_lo);
        hn_json_set_number(gain, "hi", e->sure_hi);
        hn_json_set_number(gain, "before_ms", q->speedup.old_ms);
        hn_json_set_number(gain, "after_ms", q->speedup.new_ms);
    }
    json_object_set_object_member(root, "gain", gain);
    g_autofree char *f0 = hn_text_number(q->flops_before), *f1 = hn_text_number(q->flops_after),
                    *b0 = hn_text_size(q->file_before), *b1 = hn_text_size(q->file_after);
    hn_report_line(report, "operations: %s instead of %s, %.3f", f1, f0, q->flops_after / q->flops_before);
    if (q->store_sparse)
        hn_report_line(report,
                       "%d weights are stored as indices and values: ONNX Runtime makes them dense when it reads them, "
                       "OpenVINO refuses the file",
                       q->stored_sparse);
    hn_report_line(report, "bytes: %s instead of %s, %.3f", b1, b0, (double)q->file_after / (double)q->file_before);
    if (!q->has_speedup)
        return;
    const HnEffect *e = &q->speedup.effect;
    g_autofree char *old_ms = hn_text_time(q->speedup.old_ms / 1e3), *new_ms = hn_text_time(q->speedup.new_ms / 1e3);
    g_autofree char *interval =
        isfinite(e->sure_lo) ? g_strdup_printf(" (99.9 %%: %.3f to %.3f)", e->sure_lo, e->sure_hi) : g_strdup("");
    hn_report_line(report, "latency: %s instead of %s, %.3f%s", new_ms, old_ms, e->effect, interval);
}

gboolean prune_report(const Prune *q, GError **error)
{
    g_autoptr(HnReport) report = report_new(q);
    add_blocks(q, report);
    add_classes(q, report);
    add_layers(q, report);
    if (q->budget == PRUNE_ZEROS && q->pruned != NULL)
        add_zeros(q, report);
    add_points(q, report);
    add_repairs(q, report);
    if (q->fit && q->o.data != NULL && q->budget != PRUNE_ZEROS && q->pruned != NULL)
        add_unfitted(q, report);
    add_outputs(q, report);
    add_score(q, report);
    if (q->result != NULL)
        add_gain(q, report);
    json_object_set_int_member(hn_report_root(report), "peak_bytes", (gint64)hn_budget_peak(q->ctx->budget));
    return hn_report_write(report, error);
}

static void add_group(JsonArray *rows, const HnChannelGroup *g)
{
    JsonObject *row = json_object_new();
    json_object_set_string_member(row, "name", g_array_index(g->spans, HnChannelSpan, 0).v->name);
    json_object_set_int_member(row, "members", g->spans->len);
    json_object_set_int_member(row, "width_before", g->classes->len);
    json_object_set_string_member(row, "locked", g->locked);
    json_array_add_object_element(rows, row);
}

gboolean prune_explain(const Prune *q, GError **error)
{
    g_autoptr(HnReport) report = report_new(q);
    JsonArray *rows = json_array_new();
    guint channels = 0;
    for (guint i = 0; i < q->map->classes->len; i++) {
        const HnPruneClass *k = q->map->classes->pdata[i];
        add_group(rows, k->group);
        channels += (guint)k->n;
    }
    for (guint i = 0; i < q->map->locked->len; i++)
        add_group(rows, q->map->locked->pdata[i]);
    json_object_set_array_member(hn_report_root(report), "classes", rows);
    hn_report_table(report, "classes", explain_columns);
    hn_report_line(report, "%u %s of %u channels may go, %u %s to stay", q->map->classes->len,
                   q->map->classes->len == 1 ? "class" : "classes", channels, q->map->locked->len,
                   q->map->locked->len == 1 ? "has" : "have");
    return hn_report_write(report, error);
}
