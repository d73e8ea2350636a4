/* hone-inspect: one tensor, by its name. */
#include <math.h>
#include <string.h>

#include "base/jsonread.h"
#include "base/nearest.h"
#include "base/text.h"
#include "hone_inspect.h"
#include "perf/weight_stats.h"

#define BINS 20     /* of the histogram, at most */
#define BAR 50      /* columns of the longest */
#define ALL 64      /* elements that are all shown */
#define FIRST 16    /* of larger tensors, */
#define LAST 4      /* and at their ends */
#define TEXT_MAX 40 /* bytes of an element that is a string */

/* --- finding it --------------------------------------------------------------------------------------------------- */

typedef struct {
    const char *name;
    const HnValue *found;
    GPtrArray *names; /* const char * */
} Search;

static void search_graph(Search *s, const HnGraph *g)
{
    GHashTableIter iter;
    gpointer value;
    const HnValue *v = g_hash_table_lookup(g->values, s->name);
    if (s->found == NULL)
        s->found = v;
    g_hash_table_iter_init(&iter, g->values);
    while (g_hash_table_iter_next(&iter, NULL, &value))
        g_ptr_array_add(s->names, ((HnValue *)value)->name);
    for (guint i = 0; i < g->inner->len; i++)
        search_graph(s, g->inner->pdata[i]);
}

static const HnValue *find_value(const HnModel *m, const char *name, GError **error)
{
    g_autoptr(GPtrArray) names = g_ptr_array_new();
    Search s = { name, NULL, names };
    search_graph(&s, m->graph);
    if (s.found != NULL)
        return s.found;
    g_ptr_array_add(names, NULL);
    g_autofree char *words = hn_nearest_words(name, (const char *const *)names->pdata);
    g_set_error(error, HN_ERROR, HN_ERROR_USAGE, "option '--tensor': the model has no value '%s'%s", name, words);
    return NULL;
}

/* Elements that the file holds: of a weight, or of a node without inputs that has them as an attribute. */
static HnTensor *elements_of(const HnValue *v)
{
    if (v->weight != NULL || v->producer == NULL || v->producer->in->len > 0)
        return v->weight;
    for (guint i = 0; i < v->producer->attrs->len; i++) {
        const HnAttr *a = v->producer->attrs->pdata[i];
        if (a->kind == HN_ATTR_TENSOR)
            return a->t;
    }
    return NULL;
}

/* --- elements ----------------------------------------------------------------------------------------------------- */

static void add_element(JsonArray *list, const HnTensor *t, int64_t i)
{
    if (t->dtype == HN_STRING) {
        GBytes *bytes = hn_tensor_get_string(t, i);
        gsize n;
        const char *data = g_bytes_get_data(bytes, &n);
        g_autofree char *copy = g_strndup(data != NULL ? data : "", n), *valid = g_utf8_make_valid(copy, -1);
        json_array_add_string_element(list, valid);
        return;
    }
    const double x = hn_tensor_get_f64(t, i);
    if (!hn_dtype_in(t->dtype, HN_T_INTS | HN_T_BOOL) && isfinite(x))
        json_array_add_double_element(list, x);
    else if (hn_dtype_in(t->dtype, HN_T_INTS | HN_T_BOOL))
        json_array_add_int_element(list, hn_tensor_get_i64(t, i));
    else
        json_array_add_null_element(list);
}

static void append_element(GString *out, const HnTensor *t, int64_t i)
{
    g_string_append(out, out->len > 0 ? " " : "");
    if (t->dtype == HN_STRING) {
        GBytes *bytes = hn_tensor_get_string(t, i);
        gsize n;
        const char *data = g_bytes_get_data(bytes, &n);
        g_autofree char *copy = g_strndup(data != NULL ? data : "", n), *cut = hn_text_cut(copy, TEXT_MAX);
        g_string_append_printf(out, "'%s'", cut);
    } else if (hn_dtype_in(t->dtype, HN_T_INTS | HN_T_BOOL)) {
        g_string_append_printf(out, "%" PRId64, hn_tensor_get_i64(t, i));
    } else {
        g_string_append_printf(out, "%.6g", hn_tensor_get_f64(t, i));
    }
}

static void add_elements(Inspect *x, const HnTensor *t, JsonObject *o)
{
    JsonArray *first = json_array_new(), *last = json_array_new();
    const int64_t n_first = t->n <= ALL ? t->n : FIRST, from = t->n <= ALL ? t->n : t->n - LAST;
    g_autoptr(GString) text = g_string_new(NULL);
    for (int64_t i = 0; i < n_first; i++) {
        add_element(first, t, i);
        append_element(text, t, i);
    }
    if (from > n_first)
        g_string_append(text, " ...");
    for (int64_t i = from; i < t->n; i++) {
        add_element(last, t, i);
        append_element(text, t, i);
    }
    json_object_set_array_member(o, "first", first);
    json_object_set_array_member(o, "last", last);
    hn_report_line(x->report, "values: %s", text->str);
}

/* --- histogram ---------------------------------------------------------------------------------------------------- */

typedef struct {
    int n;
    double lo, width; /* bin k holds [lo + k width, lo + (k + 1) width), the last one its end, too */
    gint64 count[BINS];
} Bins;

/* Few integers have a bin each. */
static void make_bins(const HnTensor *t, const HnWeightReport *r, Bins *b)
{
    const double span = r->max - r->min;
    const gboolean whole = !hn_dtype_in(t->dtype, HN_T_FLOATS | HN_T_F8) && span < BINS;
    *b = (Bins){ .n = whole ? (int)span + 1 : span > 0 ? BINS : 1, .lo = r->min };
    b->width = whole ? 1 : span > 0 ? span / BINS : 1;
    for (int64_t i = 0; i < t->n; i++) {
        const double v = hn_tensor_get_f64(t, i);
        if (isfinite(v))
            b->count[CLAMP((int)((v - b->lo) / b->width), 0, b->n - 1)]++;
    }
}

static void tell_bins(Inspect *x, const Bins *b, gboolean whole)
{
    gint64 most = 1;
    for (int k = 0; k < b->n; k++)
        most = MAX(most, b->count[k]);
    for (int k = 0; k < b->n; k++) {
        const int bar = (int)ceil((double)b->count[k] / (double)most * BAR);
        g_autofree char *line = g_strnfill((gsize)bar, '#');
        g_autofree char *count = hn_text_number((double)b->count[k]);
        if (whole)
            hn_report_line(x->report, "%11.0f  %-*s %s", b->lo + k, BAR, line, count);
        else
            hn_report_line(x->report, "%11.4g  %-*s %s", b->lo + k * b->width, BAR, line, count);
    }
}

static void add_histogram(Inspect *x, const HnTensor *t, const HnWeightReport *r, JsonObject *o)
{
    Bins b;
    JsonObject *h = json_object_new();
    JsonArray *counts = json_array_new();
    make_bins(t, r, &b);
    for (int k = 0; k < b.n; k++)
        json_array_add_int_element(counts, b.count[k]);
    hn_json_set_number(h, "from", b.lo);
    hn_json_set_number(h, "width", b.width);
    json_object_set_array_member(h, "counts", counts);
    json_object_set_object_member(o, "histogram", h);
    tell_bins(x, &b, !hn_dtype_in(t->dtype, HN_T_FLOATS | HN_T_F8) && b.width == 1);
}

static void add_statistics(Inspect *x, const HnTensor *t, JsonObject *o)
{
    HnWeightReport r = { 0 };
    hn_weight_scan(t, &r);
    hn_json_set_number(o, "zeros", r.zeros);
    hn_json_set_number(o, "min", r.min);
    hn_json_set_number(o, "max", r.max);
    hn_json_set_number(o, "mean", r.mean);
    hn_json_set_number(o, "stddev", r.stddev);
    json_object_set_int_member(o, "not_finite", r.not_finite);
    g_autofree char *zeros = hn_text_percent(r.zeros);
    if (isnan(r.min)) {
        json_object_set_null_member(o, "histogram");
        return;
    }
    hn_report_line(x->report, "min %.6g, max %.6g, mean %.6g, standard deviation %.6g, zeros %s%s", r.min, r.max,
                   r.mean, r.stddev, zeros, r.not_finite > 0 ? "" : ", all finite");
    if (r.not_finite > 0)
        hn_report_line(x->report, "%" G_GINT64_FORMAT " elements are not finite", r.not_finite);
    add_histogram(x, t, &r, o);
}

/* --- all of it ---------------------------------------------------------------------------------------------------- */

static void add_users(Inspect *x, const HnValue *v, JsonObject *o)
{
    JsonArray *users = json_array_new();
    g_autoptr(GString) text = g_string_new(NULL);
    for (guint i = 0; i < v->users->len; i++) {
        const HnNode *n = v->users->pdata[i];
        if (i > 0 && n == v->users->pdata[i - 1])
            continue;
        json_array_add_string_element(users, hn_node_label(n));
        if (i < 8)
            g_string_append_printf(text, "%s'%s' (%s)", text->len > 0 ? ", " : "", hn_node_label(n), n->op_type);
    }
    json_object_set_array_member(o, "users", users);
    json_object_set_string_member(o, "producer", v->producer != NULL ? hn_node_label(v->producer) : NULL);
    if (v->producer != NULL)
        hn_report_line(x->report, "made by '%s' (%s)", hn_node_label(v->producer), v->producer->op_type);
    if (text->len > 0)
        hn_report_line(x->report, "read by %s%s", text->str, v->users->len > 8 ? " and more" : "");
}

gboolean inspect_add_tensor(Inspect *x, GError **error)
{
    const HnValue *v = find_value(x->subject->model, x->p->tensor, error);
    if (v == NULL)
        return FALSE;
    HnTensor *t = elements_of(v);
    JsonObject *o = json_object_new();
    json_object_set_object_member(hn_report_root(x->report), "tensor", o);
    g_autofree char *type = t != NULL ? hn_tensor_describe(t) : hn_type_describe(v->type);
    g_autofree char *size = t != NULL && t->dtype != HN_STRING ? hn_text_size(t->bytes) : NULL;
    json_object_set_string_member(o, "name", v->name);
    json_object_set_string_member(o, "type", type);
    hn_report_line(x->report, "%s: %s%s%s%s", v->name, type, size != NULL ? ", " : "", size != NULL ? size : "",
                   v->sparse != NULL ? ", stored as a sparse tensor" : "");
    add_users(x, v, o);
    json_object_set_boolean_member(o, "constant", t != NULL);
    if (t == NULL)
        return TRUE;
    if (t->unloaded) {
        hn_report_line(x->report, "its file is not there");
        return TRUE;
    }
    if (hn_progress_stop(&x->ctx->progress, error))
        return FALSE;
    add_elements(x, t, o);
    if (t->dtype != HN_STRING)
        add_statistics(x, t, o);
    return TRUE;
}
