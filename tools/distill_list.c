/* hone-distill --list-trainable. */
#include "hone_distill.h"

static const HnColumn columns[] = { { "name", "weight", HN_COL_TEXT },
                                    { "shape", "shape", HN_COL_TEXT },
                                    { "elements", "elements", HN_COL_INT },
                                    { "trained", "trained", HN_COL_TEXT },
                                    { 0 } };

static const char *const whys[] = {
    [HN_WHY_TRAINED] = "yes",
    [HN_WHY_FROZEN] = "no: '--freeze' matches",
    [HN_WHY_UNNAMED] = "no: '--train' does not match",
    [HN_WHY_TYPE] = "no: no floats",
    [HN_WHY_ELEMENT] = "no: one number",
    [HN_WHY_UNREACHED] = "no: no operator has it as weight, bias, scale or table",
    [HN_WHY_MASK] = "no: a mask",
    [HN_WHY_SCALE] = "no: a scale that follows others, whose integers stay, or that something else reads, too",
};

static JsonObject *row_of(const HnTrainableWeight *w)
{
    const HnTensor *t = hn_trainable_elements(w->v);
    g_autofree char *shape = hn_tensor_describe(t);
    JsonObject *row = json_object_new();
    json_object_set_string_member(row, "name", w->v->name);
    json_object_set_string_member(row, "shape", shape);
    json_object_set_int_member(row, "elements", t->n);
    json_object_set_string_member(row, "trained", whys[w->why]);
    return row;
}

gboolean distill_list(Distill *q, GError **error)
{
    const HnTrainableOptions o = { q->p->freeze, q->p->train };
    gint64 elements = 0, all = 0, n = 0;
    if (!hn_model_prepare(q->plain, error))
        return FALSE;
    g_autoptr(GArray) list = hn_trainable_list(q->plain, &o, error);
    if (list == NULL)
        return FALSE;
    g_autoptr(HnReport) report = hn_report_new(q->ctx, "hone.distill/1", &(HnReportEnv){ 0 });
    JsonObject *root = hn_report_root(report), *trained = json_object_new();
    JsonArray *rows = json_array_new();
    for (guint i = 0; i < list->len; i++) {
        const HnTrainableWeight *w = &g_array_index(list, HnTrainableWeight, i);
        const gint64 own = hn_trainable_elements(w->v)->n;
        json_array_add_object_element(rows, row_of(w));
        all += own;
        elements += w->why == HN_WHY_TRAINED ? own : 0;
        n += w->why == HN_WHY_TRAINED;
    }
    json_object_set_string_member(root, "model", q->p->student);
    json_object_set_int_member(trained, "weights", n);
    json_object_set_int_member(trained, "elements", elements);
    json_object_set_object_member(root, "trained", trained);
    json_object_set_array_member(root, "weights", rows);
    hn_report_table(report, "weights", columns);
    hn_report_line(
        report, "%" G_GINT64_FORMAT " of %u weights are trained, %" G_GINT64_FORMAT " of %" G_GINT64_FORMAT " elements",
        n, list->len, elements, all);
    return hn_report_write(report, error);
}
