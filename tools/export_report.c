/* hone-export: what was done, as lines, a table and JSON. */
#include <math.h>
#include <string.h>

#include "base/jsonread.h"
#include "base/text.h"
#include "hone_export.h"
#include "plot_rows.h"
#include "verdict.h"

#define OPERATORS_DRAWN 16

/* --- passes ------------------------------------------------------------------------------------------------------- */

static const HnColumn pass_columns[] = {
    { "name", "pass", HN_COL_TEXT },
    { "level", "level", HN_COL_INT },
    { "summary", "what it does", HN_COL_PROSE },
    { 0 },
};

gboolean export_list_passes(HnContext *ctx, GError **error)
{
    g_autoptr(HnReport) report = hn_report_new(ctx, "hone.passes/1", &(HnReportEnv){ 0 });
    JsonArray *rows = json_array_new();
    for (const HnPass *const *p = hn_pass_all(); *p != NULL; p++) {
        JsonObject *row = json_object_new();
        json_object_set_string_member(row, "name", (*p)->name);
        json_object_set_int_member(row, "level", (*p)->level);
        json_object_set_string_member(row, "summary", (*p)->summary);
        json_array_add_object_element(rows, row);
    }
    json_object_set_array_member(hn_report_root(report), "passes", rows);
    hn_report_table(report, "passes", pass_columns);
    return hn_report_write(report, error);
}

/* What --explain asks for is printed without -v, too. */
static gboolean in_full(const Export *e)
{
    return hn_verdict_in_full(e->ctx);
}

/* Rewrites by pass, in the order of running. */
static void add_passes(const Export *e, HnReport *report)
{
    JsonArray *rows = json_array_new();
    g_autoptr(GString) line = g_string_new(NULL);
    for (const HnPass *const *p = hn_pass_all(); *p != NULL; p++) {
        guint n = 0;
        for (guint i = 0; i < e->x.log.made->len; i++)
            n += ((const HnSite *)e->x.log.made->pdata[i])->pass == *p;
        if (n == 0)
            continue;
        JsonObject *row = json_object_new();
        json_object_set_string_member(row, "name", (*p)->name);
        json_object_set_int_member(row, "rewrites", n);
        json_array_add_object_element(rows, row);
        g_string_append_printf(line, "%s%s %u", line->len > 0 ? ", " : "", (*p)->name, n);
    }
    json_object_set_array_member(hn_report_root(report), "passes", rows);
    if (in_full(e))
        hn_report_line(report, "passes: %s", line->len > 0 ? line->str : "nothing to do");
}

/* What was left out since the file would have grown: a line for each pass. */
static void add_grown(const Export *e, HnReport *report)
{
    JsonArray *grown = json_array_new();
    g_autoptr(GString) line = g_string_new(NULL);
    for (const HnPass *const *p = hn_pass_all(); *p != NULL; p++) {
        guint n = 0;
        guint64 bytes = 0;
        for (guint i = 0; i < e->x.grown->len; i++) {
            const HnDropped *d = e->x.grown->pdata[i];
            const gboolean same = strcmp(d->pass, (*p)->name) == 0;
            bytes += same ? (guint64)d->bytes : 0;
            n += same;
        }
        g_autofree char *size = hn_text_size(bytes);
        if (n > 0)
            g_string_append_printf(line, "%s%s %u (%s)", line->len > 0 ? ", " : "", (*p)->name, n, size);
    }
    for (guint i = 0; i < e->x.grown->len; i++) {
        const HnDropped *d = e->x.grown->pdata[i];
        JsonObject *row = json_object_new();
        json_object_set_string_member(row, "pass", d->pass);
        json_object_set_string_member(row, "op", d->op);
        json_object_set_string_member(row, "site", d->site);
        json_object_set_int_member(row, "bytes", d->bytes);
        json_array_add_object_element(grown, row);
    }
    json_object_set_array_member(hn_report_root(report), "grown", grown);
    json_object_set_boolean_member(hn_report_root(report), "kept_functions", e->x.functions);
    if (line->len > 0)
        hn_report_line(report, "left out, since the file would grow: %s", line->str);
    if (e->x.functions)
        hn_report_line(report, "the model's own functions stay, since their bodies would make the file grow");
}

/* A file that is longer all the same: measured to be worth it, or asked for. */
static void tell_growth(const Export *e, HnReport *report)
{
    const double more = e->file_before > 0 ? (double)e->file_after / (double)e->file_before - 1 : 0;
    if (more > 0.1)
        hn_report_line(report, "the file is %.0f %% longer%s", more * 100,
                       e->x.has_speedup ? ", and the model faster" : ", as the options ask for or allow");
}

static void add_sites(const Export *e, HnReport *report)
{
    JsonArray *dropped = json_array_new(), *missed = json_array_new();
    for (guint i = 0; i < e->x.dropped->len; i++) {
        const HnDropped *d = e->x.dropped->pdata[i];
        JsonObject *row = json_object_new();
        json_object_set_string_member(row, "pass", d->pass);
        json_object_set_string_member(row, "op", d->op);
        json_object_set_string_member(row, "site", d->site);
        json_object_set_string_member(row, "why", d->why);
        json_object_set_string_member(row, "repro", d->repro);
        json_array_add_object_element(dropped, row);
        if (in_full(e))
            hn_report_line(report, "undone: %s at '%s': %s", d->pass, d->site, d->why);
    }
    for (guint i = 0; i < e->x.log.missed->len; i++) {
        const HnSite *s = e->x.log.missed->pdata[i];
        JsonObject *row = json_object_new();
        json_object_set_string_member(row, "pass", s->pass->name);
        json_object_set_string_member(row, "op", s->op);
        json_object_set_string_member(row, "site", s->site);
        json_object_set_string_member(row, "why", s->why);
        json_array_add_object_element(missed, row);
        hn_report_line(report, "near miss: %s at '%s' (%s): %s", s->pass->name, s->site, s->op, s->why);
    }
    json_object_set_array_member(hn_report_root(report), "dropped", dropped);
    json_object_set_array_member(hn_report_root(report), "missed", missed);
}

/* --- before and after --------------------------------------------------------------------------------------------- */

static JsonObject *facts_object(const HnFacts *f, guint64 file, double p50_ms)
{
    JsonObject *o = json_object_new();
    json_object_set_int_member(o, "nodes", f->nodes);
    json_object_set_int_member(o, "operators", g_hash_table_size(f->operators));
    json_object_set_int_member(o, "weights", f->weights);
    json_object_set_int_member(o, "weight_bytes", (gint64)f->weight_bytes);
    json_object_set_int_member(o, "duplicate_bytes", (gint64)f->duplicate_bytes);
    if (file > 0)
        json_object_set_int_member(o, "file_bytes", (gint64)file);
    else
        json_object_set_null_member(o, "file_bytes");
    json_object_set_int_member(o, "opset", f->opset);
    hn_json_set_number(o, "flops", f->flops);
    if (f->planned_bytes > 0)
        json_object_set_int_member(o, "planned_bytes", (gint64)f->planned_bytes);
    else
        json_object_set_null_member(o, "planned_bytes");
    hn_json_set_number(o, "latency_p50_ms", p50_ms);
    return o;
}

static void line_of(HnReport *report, const char *what, char *before, char *after)
{
    hn_report_fact(report, what, "%s, before %s", after, before);
    g_free(before);
    g_free(after);
}

static char *bytes_text(guint64 n)
{
    return n > 0 ? hn_text_size(n) : g_strdup("-");
}

static char *flops_text(double x)
{
    return isfinite(x) ? hn_text_number(x) : g_strdup("-");
}

/* Before and after, side by side. */
static void tell_facts(const Export *e, HnReport *report)
{
    const HnFacts *a = &e->before, *b = &e->after;
    hn_report_section(report, "Before and after");
    line_of(report, "nodes", g_strdup_printf("%u", a->nodes), g_strdup_printf("%u", b->nodes));
    line_of(report, "operators", g_strdup_printf("%u", g_hash_table_size(a->operators)),
            g_strdup_printf("%u", g_hash_table_size(b->operators)));
    line_of(report, "opset", g_strdup_printf("%d", (int)a->opset), g_strdup_printf("%d", (int)b->opset));
    line_of(report, "weights", g_strdup_printf("%u", a->weights), g_strdup_printf("%u", b->weights));
    line_of(report, "weight bytes", bytes_text(a->weight_bytes), bytes_text(b->weight_bytes));
    line_of(report, "file", bytes_text(e->file_before), bytes_text(e->file_after));
    line_of(report, "flops", flops_text(a->flops), flops_text(b->flops));
    line_of(report, "planned memory", bytes_text(a->planned_bytes), bytes_text(b->planned_bytes));
    if (e->has_speedup)
        line_of(report, "latency", hn_text_time(e->speedup.old_ms / 1e3), hn_text_time(e->speedup.new_ms / 1e3));
}

/* Bytes that nobody needs. */
static void tell_waste(const Export *e, HnReport *report)
{
    const HnFacts *a = &e->before, *b = &e->after;
    if (e->orphaned > 0) {
        g_autofree char *text = hn_text_size(e->orphaned);
        hn_report_line(report, "the data file of the original holds %s that nothing refers to", text);
    }
    if (a->duplicate_bytes > 0 && in_full(e)) {
        g_autofree char *x = hn_text_size(a->duplicate_bytes), *y = hn_text_size(b->duplicate_bytes);
        hn_report_line(report, "bytes of weights that are equal to others: %s before, %s after", x, y);
    }
}

static void add_facts(const Export *e, HnReport *report)
{
    const HnFacts *a = &e->before, *b = &e->after;
    const double ms[2] = { e->has_speedup ? e->speedup.old_ms : NAN, e->has_speedup ? e->speedup.new_ms : NAN };
    json_object_set_object_member(hn_report_root(report), "before", facts_object(a, e->file_before, ms[0]));
    json_object_set_object_member(hn_report_root(report), "after", facts_object(b, e->file_after, ms[1]));
    json_object_set_int_member(hn_report_root(report), "orphaned_bytes", (gint64)e->orphaned);
    if (in_full(e))
        tell_facts(e, report);
    tell_waste(e, report);
}

static const HnColumn operator_columns[] = {
    { "op", "operator", HN_COL_TEXT },
    { "before", "before", HN_COL_INT },
    { "after", "after", HN_COL_INT },
    { 0 },
};

static gint by_count(gconstpointer a, gconstpointer b)
{
    gint64 n[2];
    for (int i = 0; i < 2; i++) {
        JsonObject *row = *(JsonObject *const *)(i == 0 ? a : b);
        const gint64 before = json_object_get_int_member(row, "before"),
                     after = json_object_get_int_member(row, "after");
        n[i] = MAX(before, after);
    }
    return (n[0] < n[1]) - (n[0] > n[1]);
}

static JsonArray *most_first(JsonArray *operators)
{
    g_autoptr(GPtrArray) order = g_ptr_array_new();
    JsonArray *rows = json_array_new();
    for (guint i = 0; i < json_array_get_length(operators); i++)
        g_ptr_array_add(order, json_array_get_object_element(operators, i));
    g_ptr_array_sort(order, by_count);
    for (guint i = 0; i < order->len; i++)
        json_array_add_object_element(rows, json_object_ref(order->pdata[i]));
    return rows;
}

/* What changed, as pictures: sizes and counts as parts of what they were, and operators. */
static void plot_change(const Export *e, JsonArray *operators, HnReport *report)
{
    static const char *const names[] = { "file", "weights", "nodes", "operations", "planned memory", "latency" };
    const HnFacts *a = &e->before, *b = &e->after;
    const gboolean timed = e->has_speedup;
    const double before[] = { (double)e->file_before,   (double)a->weight_bytes,        a->nodes, a->flops,
                              (double)a->planned_bytes, timed ? e->speedup.old_ms : NAN };
    const double after[] = { (double)e->file_after,    (double)b->weight_bytes,        b->nodes, b->flops,
                             (double)b->planned_bytes, timed ? e->speedup.new_ms : NAN };
    g_autofree char *name = g_path_get_basename(e->path), *about = hn_plot_about(strcmp(e->path, "-") ? name : "stdin");
    JsonArray *parts = json_array_new();
    for (gsize i = 0; i < G_N_ELEMENTS(names); i++) {
        JsonObject *row = json_object_new();
        json_object_set_string_member(row, "what", names[i]);
        hn_json_set_number(row, "part", before[i] > 0 && after[i] > 0 ? after[i] / before[i] : NAN);
        json_array_add_object_element(parts, row);
    }
    hn_plot_bars(report, parts,
                 &(HnBars){ .caption = "What is left of the original",
                            .title = about,
                            .axis = "after, % of before",
                            .name = "what",
                            .value = "part",
                            .factor = 100,
                            .most = G_N_ELEMENTS(names) });
    json_array_unref(parts);
    JsonArray *most = most_first(operators);
    hn_plot_bars(report, most,
                 &(HnBars){ .caption = "Nodes by operator",
                            .title = about,
                            .axis = "nodes",
                            .name = "op",
                            .value = "before",
                            .second = "after",
                            .legend = { "before", "after" },
                            .factor = 1,
                            .most = OPERATORS_DRAWN });
    json_array_unref(most);
}

static gint by_text(gconstpointer a, gconstpointer b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static void add_operators(const Export *e, HnReport *report)
{
    g_autoptr(GPtrArray) names = g_ptr_array_new();
    GHashTableIter iter;
    gpointer name;
    g_hash_table_iter_init(&iter, e->before.operators);
    while (g_hash_table_iter_next(&iter, &name, NULL))
        g_ptr_array_add(names, name);
    g_hash_table_iter_init(&iter, e->after.operators);
    while (g_hash_table_iter_next(&iter, &name, NULL))
        if (!g_hash_table_contains(e->before.operators, name))
            g_ptr_array_add(names, name);
    g_ptr_array_sort(names, by_text);
    JsonArray *rows = json_array_new();
    for (guint i = 0; i < names->len; i++) {
        JsonObject *row = json_object_new();
        json_object_set_string_member(row, "op", names->pdata[i]);
        json_object_set_int_member(row, "before",
                                   GPOINTER_TO_UINT(g_hash_table_lookup(e->before.operators, names->pdata[i])));
        json_object_set_int_member(row, "after",
                                   GPOINTER_TO_UINT(g_hash_table_lookup(e->after.operators, names->pdata[i])));
        json_array_add_object_element(rows, row);
    }
    json_object_set_array_member(hn_report_root(report), "operators", rows);
    hn_report_csv_table(report, "operators", operator_columns);
    plot_change(e, rows, report);
    if (in_full(e)) {
        hn_report_section(report, "Operators");
        hn_report_table(report, "operators", operator_columns);
    }
}

/* --- checks ------------------------------------------------------------------------------------------------------- */

static void add_check(const Export *e, HnReport *report)
{
    JsonObject *o = json_object_new();
    const HnVerified *v = &e->x.verified;
    json_object_set_object_member(hn_report_root(report), "check", o);
    json_object_set_string_member(o, "status", e->verify != NULL ? "equal" : "off");
    json_object_set_int_member(o, "samples", e->verify != NULL ? hn_samples_count(hn_verify_samples(e->verify)) : 0);
    json_object_set_boolean_member(o, "synthetic",
                                   e->verify != NULL && hn_samples_synthetic(hn_verify_samples(e->verify)));
    hn_json_set_number(o, "rtol", e->o.tolerance.rtol);
    hn_json_set_number(o, "atol", e->o.tolerance.atol);
    hn_json_set_number(o, "part", e->o.tolerance.part);
    JsonArray *rows = json_array_new();
    for (guint k = 0; k < v->n; k++) {
        JsonObject *row = json_object_new();
        json_object_set_string_member(row, "name", v->row[k].name);
        hn_json_set_number(row, "max_abs", v->row[k].max_abs);
        hn_json_set_number(row, "largest", v->row[k].scale);
        json_array_add_object_element(rows, row);
    }
    json_object_set_array_member(o, "outputs", rows);
}

static void add_speed(const Export *e, HnReport *report)
{
    if (!e->has_speedup) {
        json_object_set_null_member(hn_report_root(report), "speed");
        return;
    }
    const HnEffect *f = &e->speedup.effect;
    JsonObject *o = json_object_new();
    JsonArray *ci = json_array_new();
    json_object_set_double_member(o, "effect", f->effect);
    if (isfinite(f->lo) && isfinite(f->hi)) {
        json_array_add_double_element(ci, f->lo);
        json_array_add_double_element(ci, f->hi);
    }
    json_object_set_array_member(o, "ci95", ci);
    json_object_set_string_member(o, "verdict", hn_verdict_name(f->verdict));
    json_object_set_object_member(hn_report_root(report), "speed", o);
}

static void add_precision(const Export *e, HnReport *report)
{
    const HnPrecisionLog *log = &e->x.precision;
    if (!e->x.converted) {
        json_object_set_null_member(hn_report_root(report), "precision");
        return;
    }
    JsonObject *o = json_object_new();
    JsonArray *kept = json_array_new();
    json_object_set_object_member(hn_report_root(report), "precision", o);
    json_object_set_string_member(o, "to", e->p->to);
    json_object_set_int_member(o, "converted", log->converted);
    json_object_set_int_member(o, "casts_added", log->casts_added);
    json_object_set_int_member(o, "casts_dropped", log->casts_dropped);
    json_object_set_int_member(o, "weights", log->weights);
    json_object_set_int_member(o, "weights_kept", log->weights_kept);
    json_object_set_int_member(o, "flushed", log->flushed);
    json_object_set_int_member(o, "clamped", log->clamped);
    json_object_set_array_member(o, "kept", kept);
    if (in_full(e))
        hn_report_line(report, "%s: %u of %u nodes and %u weights, with %u Casts more", e->p->to, log->converted,
                       log->nodes->len, log->weights, log->casts_added);
    if (log->flushed > 0)
        hn_report_line(report, "%" PRId64 " elements of weights became 0", log->flushed);
    if (log->clamped > 0)
        hn_report_line(report, "%" PRId64 " masks and bounds beyond its range were moved into it", log->clamped);
    for (guint i = 0; i < log->nodes->len; i++) {
        const HnPrecisionNode *n = log->nodes->pdata[i];
        if (n->kept == HN_KEPT_NOT)
            continue;
        JsonObject *row = json_object_new();
        json_object_set_string_member(row, "op", n->op);
        json_object_set_string_member(row, "site", n->site);
        json_object_set_string_member(row, "reason", hn_kept_name(n->kept));
        json_object_set_string_member(row, "why", n->why);
        hn_json_set_number(row, "headroom", n->headroom);
        json_array_add_object_element(kept, row);
        if (in_full(e))
            hn_report_line(report, "kept f32: '%s' (%s): %s", n->site, n->op, n->why != NULL ? n->why : "");
    }
}

/* --- the verdict ----------------------------------------------------------------------------------------------------
 */

static void tell_accuracy(const Export *e, HnReport *report)
{
    if (e->verify == NULL) {
        hn_report_fact(report, "accuracy", "results were not compared");
        return;
    }
    const HnSamples *samples = hn_verify_samples(e->verify);
    const char *shapes = hn_samples_shapes(samples);
    const guint n = hn_samples_count(samples);
    hn_report_fact(report, "accuracy", "same results on %u %ssample%s%s%s%s, within %.2g of the largest value", n,
                   hn_samples_synthetic(samples) ? "synthetic " : "", n == 1 ? "" : "s", *shapes ? " (" : "", shapes,
                   *shapes ? ")" : "", e->x.verified.worst);
}

/* It was not the type of what surrounds it that kept it, but its numbers or its operator. */
static gboolean is_kept(const HnPrecisionNode *n)
{
    return n->kept != HN_KEPT_NOT && n->kept != HN_KEPT_AROUND;
}

/* "3 of 50 nodes: 2 overflow ('x', 'y'), 1 small ('z')" */
static void tell_kept(const Export *e, HnReport *report)
{
    const GPtrArray *nodes = e->x.precision.nodes;
    g_autoptr(GString) text = g_string_new(NULL);
    guint kept = 0;
    for (int why = 0; why <= HN_KEPT_CHECKED; why++) {
        g_autoptr(GPtrArray) names = g_ptr_array_new();
        for (guint i = 0; i < nodes->len; i++) {
            const HnPrecisionNode *n = nodes->pdata[i];
            if ((int)n->kept == why && is_kept(n))
                g_ptr_array_add(names, n->site);
        }
        kept += names->len;
        g_autofree char *list = hn_verdict_names(names);
        if (names->len > 0)
            g_string_append_printf(text, "%s%u by %s (%s)", text->len > 0 ? ", " : ": ", names->len,
                                   hn_kept_name((HnKept)why), list);
    }
    hn_report_fact(report, e->to == HN_F32 ? "kept half" : "kept f32", "%u of %u nodes%s", kept, nodes->len, text->str);
}

/* Where no type was asked for: what was rewritten. */
static void tell_rewrites(const Export *e, HnReport *report)
{
    const guint made = e->x.log.made->len, undone = e->x.dropped->len;
    g_autofree char *bad = undone > 0 ? g_strdup_printf(", %u undone since results differed", undone) : g_strdup("");
    hn_report_fact(report, "rewrites", "%u, %u nodes instead of %u%s", made, e->after.nodes, e->before.nodes, bad);
}

static void tell_verdict(const Export *e, HnReport *report)
{
    hn_verdict_size(report, e->file_before, e->file_after);
    hn_verdict_speed(report, e->has_speedup ? &e->speedup : NULL, e->ctx->common.threads, "--bench does that");
    tell_accuracy(e, report);
    if (e->x.converted)
        tell_kept(e, report);
    else
        tell_rewrites(e, report);
}

gboolean export_report(const Export *e, GError **error)
{
    g_autoptr(HnReport) report =
        hn_report_new(e->ctx, "hone.export/1", &(HnReportEnv){ .onednn = hn_tool_onednn(e->backend) });
    JsonObject *root = hn_report_root(report);
    json_object_set_string_member(root, "model", e->path);
    json_object_set_string_member(root, "output", e->p->output != NULL ? e->p->output : "-");
    tell_verdict(e, report);
    export_report_face(e, report);
    add_facts(e, report);
    add_operators(e, report);
    add_passes(e, report);
    add_sites(e, report);
    add_grown(e, report);
    tell_growth(e, report);
    add_precision(e, report);
    add_check(e, report);
    add_speed(e, report);
    json_object_set_int_member(root, "peak_bytes", (gint64)hn_budget_peak(e->ctx->budget));
    return hn_report_write(report, error);
}
