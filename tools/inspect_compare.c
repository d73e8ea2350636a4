/* hone-inspect --compare: in what two models differ. */
#include <math.h>
#include <string.h>

#include "base/jsonread.h"
#include "base/text.h"
#include "hone_inspect.h"

static const HnColumn fact_columns[] = {
    { "what", "", HN_COL_TEXT }, { "a", "first", HN_COL_TEXT }, { "b", "second", HN_COL_TEXT }, { 0 }
};
static const HnColumn end_columns[] = {
    { "name", "input or output", HN_COL_TEXT }, { "a", "first", HN_COL_TEXT }, { "b", "second", HN_COL_TEXT }, { 0 }
};
static const HnColumn operator_columns[] = { { "name", "operator", HN_COL_TEXT },
                                             { "a", "first", HN_COL_INT },
                                             { "b", "second", HN_COL_INT },
                                             { "more", "more", HN_COL_INT },
                                             { 0 } };
static const HnColumn type_columns[] = {
    { "type", "weights", HN_COL_TEXT }, { "a", "first", HN_COL_BYTES }, { "b", "second", HN_COL_BYTES }, { 0 }
};
static const HnColumn weight_columns[] = { { "name", "weight", HN_COL_TEXT },
                                           { "a", "first", HN_COL_TEXT },
                                           { "b", "second", HN_COL_TEXT },
                                           { "max_abs", "differs by up to", HN_COL_NUMBER },
                                           { 0 } };

typedef struct {
    Inspect *x;
    const Subject *a, *b;
    JsonObject *root;
    guint differences;
} Pair;

/* --- facts ------------------------------------------------------------------------------------------------------- */

/* A row of what is there once in each model; text is taken. */
static void add_fact(Pair *p, JsonArray *rows, const char *what, char *a, char *b)
{
    if (g_strcmp0(a, b) != 0) {
        JsonObject *o = json_object_new();
        json_object_set_string_member(o, "what", what);
        json_object_set_string_member(o, "a", a);
        json_object_set_string_member(o, "b", b);
        json_array_add_object_element(rows, o);
        p->differences++;
    }
    g_free(a);
    g_free(b);
}

static char *opsets_text(const HnModel *m)
{
    GString *s = g_string_new(NULL);
    for (guint i = 0; i < m->opsets->len; i++) {
        const HnOpset *o = &g_array_index(m->opsets, HnOpset, i);
        const gboolean plain = hn_domain_equal(o->domain, NULL);
        g_string_append_printf(s, "%s%s%s%" PRId64, i > 0 ? ", " : "", plain ? "" : o->domain, plain ? "" : " ",
                               o->version);
    }
    return g_string_free(s, FALSE);
}

static char *producer_text(const HnModel *m)
{
    g_autofree char *text = g_strdup_printf("%s %s", m->producer_name != NULL ? m->producer_name : "",
                                            m->producer_version != NULL ? m->producer_version : "");
    return g_strdup(g_strstrip(text));
}

static char *quantized_text(const HnOverview *v)
{
    const char *name = hn_quantized_name(v->quantized);
    return g_strdup(name != NULL ? name : "no");
}

static char *count_text(guint64 n)
{
    return g_strdup_printf("%" G_GUINT64_FORMAT, n);
}

static void add_facts(Pair *p)
{
    const HnModel *a = p->a->model, *b = p->b->model;
    const HnOverview *u = p->a->overview, *v = p->b->overview;
    JsonArray *rows = json_array_new();
    add_fact(p, rows, "bytes of files", count_text(a->file_bytes), count_text(b->file_bytes));
    add_fact(p, rows, "nodes", count_text(u->nodes + u->inner), count_text(v->nodes + v->inner));
    add_fact(p, rows, "parameters", count_text(u->parameters), count_text(v->parameters));
    add_fact(p, rows, "bytes of weights", count_text(u->weight_bytes), count_text(v->weight_bytes));
    add_fact(p, rows, "flops", hn_text_number(u->flops), hn_text_number(v->flops));
    add_fact(p, rows, "quantized", quantized_text(u), quantized_text(v));
    add_fact(p, rows, "opset", opsets_text(a), opsets_text(b));
    add_fact(p, rows, "IR version", count_text((guint64)a->ir_version), count_text((guint64)b->ir_version));
    add_fact(p, rows, "producer", producer_text(a), producer_text(b));
    json_object_set_array_member(p->root, "facts", rows);
}

/* --- interface --------------------------------------------------------------------------------------------------- */

static const HnValue *named(const GPtrArray *values, const char *name)
{
    for (guint i = 0; i < values->len; i++) {
        const HnValue *v = values->pdata[i];
        if (strcmp(v->name, name) == 0)
            return v;
    }
    return NULL;
}

static void add_end(Pair *p, JsonArray *rows, const char *kind, const HnValue *a, const HnValue *b)
{
    g_autofree char *s = a != NULL ? hn_type_describe(a->type) : NULL,
                    *t = b != NULL ? hn_type_describe(b->type) : NULL;
    if (g_strcmp0(s, t) == 0)
        return;
    JsonObject *o = json_object_new();
    json_object_set_string_member(o, "kind", kind);
    json_object_set_string_member(o, "name", a != NULL ? a->name : b->name);
    json_object_set_string_member(o, "a", s);
    json_object_set_string_member(o, "b", t);
    json_array_add_object_element(rows, o);
    p->differences++;
}

static void compare_ends(Pair *p, JsonArray *rows, const char *kind, const GPtrArray *a, const GPtrArray *b)
{
    for (guint i = 0; i < a->len; i++)
        if (!hn_value_is_weight(a->pdata[i]))
            add_end(p, rows, kind, a->pdata[i], named(b, ((HnValue *)a->pdata[i])->name));
    for (guint i = 0; i < b->len; i++)
        if (!hn_value_is_weight(b->pdata[i]) && named(a, ((HnValue *)b->pdata[i])->name) == NULL)
            add_end(p, rows, kind, NULL, b->pdata[i]);
}

static void add_interface(Pair *p)
{
    JsonArray *rows = json_array_new();
    compare_ends(p, rows, "input", p->a->model->graph->inputs, p->b->model->graph->inputs);
    compare_ends(p, rows, "output", p->a->model->graph->outputs, p->b->model->graph->outputs);
    json_object_set_array_member(p->root, "interface", rows);
}

/* --- operators and types ----------------------------------------------------------------------------------------- */

static guint nodes_of(const HnOverview *v, const char *name)
{
    for (guint i = 0; i < v->operators->len; i++) {
        const HnOverviewOp *op = v->operators->pdata[i];
        if (strcmp(op->name, name) == 0)
            return op->nodes;
    }
    return 0;
}

static void add_operator(Pair *p, JsonArray *rows, const char *name, guint a, guint b)
{
    if (a == b)
        return;
    JsonObject *o = json_object_new();
    json_object_set_string_member(o, "name", name);
    json_object_set_int_member(o, "a", a);
    json_object_set_int_member(o, "b", b);
    json_object_set_int_member(o, "more", (gint64)b - (gint64)a);
    json_array_add_object_element(rows, o);
    p->differences++;
}

static void add_operators(Pair *p)
{
    const HnOverview *u = p->a->overview, *v = p->b->overview;
    JsonArray *rows = json_array_new();
    for (guint i = 0; i < u->operators->len; i++) {
        const HnOverviewOp *op = u->operators->pdata[i];
        add_operator(p, rows, op->name, op->nodes, nodes_of(v, op->name));
    }
    for (guint i = 0; i < v->operators->len; i++) {
        const HnOverviewOp *op = v->operators->pdata[i];
        if (nodes_of(u, op->name) == 0)
            add_operator(p, rows, op->name, 0, op->nodes);
    }
    json_object_set_array_member(p->root, "operators", rows);
}

static guint64 bytes_of(const HnOverview *v, HnDtype dtype)
{
    for (guint i = 0; i < v->types->len; i++) {
        const HnOverviewType *t = v->types->pdata[i];
        if (t->dtype == dtype)
            return t->bytes;
    }
    return 0;
}

static void add_types(Pair *p)
{
    JsonArray *rows = json_array_new();
    for (int d = 0; d < HN_DTYPE_COUNT; d++) {
        const guint64 a = bytes_of(p->a->overview, (HnDtype)d), b = bytes_of(p->b->overview, (HnDtype)d);
        if (a == b)
            continue;
        JsonObject *o = json_object_new();
        json_object_set_string_member(o, "type", hn_dtype_name((HnDtype)d));
        json_object_set_int_member(o, "a", (gint64)a);
        json_object_set_int_member(o, "b", (gint64)b);
        json_array_add_object_element(rows, o);
    }
    json_object_set_array_member(p->root, "types", rows);
}

/* --- weights by name --------------------------------------------------------------------------------------------- */

/* Largest difference of elements; NaN where there is none to be had. */
static double distance(const HnTensor *a, const HnTensor *b)
{
    double most = 0;
    if (a->ndim != b->ndim || memcmp(a->dims, b->dims, (gsize)a->ndim * sizeof a->dims[0]) != 0)
        return NAN;
    if (a->dtype != b->dtype || a->dtype == HN_STRING || a->unloaded || b->unloaded)
        return NAN;
    for (int64_t i = 0; i < a->n; i++)
        most = fmax(most, fabs(hn_tensor_get_f64(a, i) - hn_tensor_get_f64(b, i)));
    return most;
}

static void add_weight(JsonArray *rows, const HnValue *a, const HnValue *b)
{
    JsonObject *o = json_object_new();
    g_autofree char *s = a != NULL ? hn_tensor_describe(a->weight) : NULL;
    g_autofree char *t = b != NULL ? hn_tensor_describe(b->weight) : NULL;
    json_object_set_string_member(o, "name", a != NULL ? a->name : b->name);
    json_object_set_string_member(o, "a", s);
    json_object_set_string_member(o, "b", t);
    hn_json_set_number(o, "max_abs", a != NULL && b != NULL ? distance(a->weight, b->weight) : NAN);
    json_array_add_object_element(rows, o);
}

static const HnValue *weight_of(const HnModel *m, const char *name)
{
    const HnValue *v = g_hash_table_lookup(m->graph->values, name);
    return v != NULL && v->weight != NULL ? v : NULL;
}

static gboolean add_weights(Pair *p, GError **error)
{
    const GPtrArray *a = p->a->model->graph->weights, *b = p->b->model->graph->weights;
    JsonArray *rows = json_array_new();
    JsonObject *counts = json_object_new();
    guint same = 0, changed = 0, only_a = 0, only_b = 0;
    for (guint i = 0; i < a->len; i++) {
        const HnValue *v = a->pdata[i], *w = weight_of(p->b->model, v->name);
        if (hn_progress_stop(&p->x->ctx->progress, error)) {
            json_array_unref(rows);
            json_object_unref(counts);
            return FALSE;
        }
        if (v->weight == NULL)
            continue;
        if (w != NULL && hn_tensor_equal(v->weight, w->weight)) {
            same++;
            continue;
        }
        changed += w != NULL;
        only_a += w == NULL;
        add_weight(rows, v, w);
    }
    for (guint i = 0; i < b->len; i++) {
        const HnValue *w = b->pdata[i];
        if (w->weight == NULL || weight_of(p->a->model, w->name) != NULL)
            continue;
        only_b++;
        add_weight(rows, NULL, w);
    }
    json_object_set_int_member(counts, "equal", same);
    json_object_set_int_member(counts, "changed", changed);
    json_object_set_int_member(counts, "only_a", only_a);
    json_object_set_int_member(counts, "only_b", only_b);
    json_object_set_object_member(p->root, "weight_counts", counts);
    json_object_set_array_member(p->root, "weights", rows);
    p->differences += changed + only_a + only_b;
    hn_report_line(p->x->report, "weights by name: %u equal, %u changed, %u only in the first, %u only in the second",
                   same, changed, only_a, only_b);
    return TRUE;
}

/* --- all of it ---------------------------------------------------------------------------------------------------- */

static void table(const Pair *p, const char *path, const HnColumn *columns)
{
    if (json_array_get_length(hn_json_array_at(p->root, path)) == 0)
        return;
    hn_report_top_table(p->x->report, path, columns, (guint)p->x->p->top);
    hn_report_line(p->x->report, "%s", "");
}

gboolean inspect_compare(Inspect *x, GError **error)
{
    x->report = hn_report_new(x->ctx, "hone.inspect-compare/1", &(HnReportEnv){ .onednn = NULL });
    Pair p = { x, &x->subject[0], &x->subject[1], hn_report_root(x->report), 0 };
    for (int i = 0; i < 2; i++) {
        Subject *s = &x->subject[i];
        json_object_set_string_member(p.root, i == 0 ? "a" : "b", s->path);
    }
    add_interface(&p);
    hn_report_line(x->report, "first: %s", inspect_name(p.a));
    hn_report_line(x->report, "second: %s", inspect_name(p.b));
    hn_report_line(x->report, "%s", "");
    for (int i = 0; i < 2; i++)
        x->subject[i].overview = hn_overview_new(x->subject[i].model, x->shapes, x->backend, x->ctx->budget);
    add_facts(&p);
    add_operators(&p);
    add_types(&p);
    table(&p, "facts", fact_columns);
    table(&p, "interface", end_columns);
    table(&p, "operators", operator_columns);
    table(&p, "types", type_columns);
    if (!add_weights(&p, error))
        return FALSE;
    table(&p, "weights", weight_columns);
    if (p.differences == 0)
        hn_report_line(x->report, "no difference in interface, operators or weights");
    json_object_set_int_member(p.root, "differences", p.differences);
    return hn_report_write(x->report, error);
}
