/* hone-export: options that change a model's interface, and what is told of it. */
#include <string.h>

#include "base/text.h"
#include "hone_export.h"
#include "ir/copy.h"
#include "op/op.h"
#include "pass/expand_contrib.h"
#include "pass/inline_functions.h"
#include "export/extract.h"

/* --- reading options ---------------------------------------------------------------------------------------------- */

static gboolean bad(GError **error, const char *option, const char *text, const char *form)
{
    g_set_error(error, HN_ERROR, HN_ERROR_USAGE, "option '--%s': '%s' is not of the form %s", option, text, form);
    return FALSE;
}

/* "x:0=batch"; without a name it is "batch". Names of inputs may hold colons. */
static gboolean read_free(HnFaceOptions *o, const char *text, GError **error)
{
    const char *equals = strrchr(text, '=');
    g_autofree char *where = equals != NULL ? g_strndup(text, (gsize)(equals - text)) : g_strdup(text);
    const char *symbol = equals != NULL ? equals + 1 : "batch";
    char *colon = strrchr(where, ':');
    gint64 axis;
    if (colon == NULL || !hn_parse_int(colon + 1, 0, HN_MAX_RANK - 1, &axis, NULL) || *symbol == '\0' ||
        strpbrk(symbol, "~?") != NULL)
        return bad(error, "free", text, "INPUT:AXIS=NAME");
    *colon = '\0';
    HnFaceFree *f = g_new(HnFaceFree, 1);
    *f = (HnFaceFree){ g_strdup(where), (int)axis, g_strdup(symbol), NULL };
    g_ptr_array_add(o->free, f);
    return TRUE;
}

static gboolean read_rename(HnFaceOptions *o, const HnGraph *g, const char *text, GError **error)
{
    for (const char *e = strchr(text, '='); e != NULL; e = strchr(e + 1, '=')) {
        g_autofree char *from = g_strndup(text, (gsize)(e - text));
        if (e[1] == '\0' || !g_hash_table_contains(g->values, from))
            continue;
        HnFaceRename *r = g_new(HnFaceRename, 1);
        *r = (HnFaceRename){ g_steal_pointer(&from), g_strdup(e + 1) };
        g_ptr_array_add(o->renames, r);
        return TRUE;
    }
    if (strchr(text, '=') == NULL)
        return bad(error, "rename", text, "OLD=NEW");
    g_set_error(error, HN_ERROR, HN_ERROR_USAGE, "option '--rename': the model has no input or output as '%s' says",
                text);
    return FALSE;
}

/* "1,2,3", four at most; none for "". */
static gboolean read_numbers(const char *text, double *v, int *n)
{
    g_auto(GStrv) parts = g_strsplit(text, ",", -1);
    for (*n = 0; parts[*n] != NULL; (*n)++) {
        char *end;
        if (*n == 4)
            return FALSE;
        v[*n] = g_ascii_strtod(parts[*n], &end);
        if (end == parts[*n] || *end != '\0')
            return FALSE;
    }
    return TRUE;
}

/* "x", or "x=MEAN/SCALE" as recipes say it. What is not said there is as for pictures (--mean, --scale, a preset). */
static gboolean read_u8(Export *e, const char *text, GError **error)
{
    const char *equals = strrchr(text, '='), *slash = equals != NULL ? strchr(equals, '/') : NULL;
    g_autofree char *name = slash != NULL ? g_strndup(text, (gsize)(equals - text)) : g_strdup(text);
    HnFacePixels *p = hn_face_pixels(e->face, name);
    p->u8 = TRUE;
    const HnInputKeys keys = hn_preprocess_keys(e->preprocess, name);
    p->channels_last = keys.layout == HN_LAYOUT_CHANNELS_LAST;
    if (slash == NULL) {
        p->n_mean = keys.u8 ? 0 : keys.n_mean;
        p->n_scale = keys.u8 ? 0 : keys.n_scale;
        memcpy(p->mean, keys.mean, sizeof p->mean);
        memcpy(p->scale, keys.scale, sizeof p->scale);
        return TRUE;
    }
    g_autofree char *mean = g_strndup(equals + 1, (gsize)(slash - equals - 1));
    if (!read_numbers(mean, p->mean, &p->n_mean) || !read_numbers(slash + 1, p->scale, &p->n_scale))
        return bad(error, "u8-input", text, "INPUT or INPUT=MEAN/SCALE");
    for (int i = 0; i < p->n_scale; i++)
        if (p->scale[i] == 0)
            return bad(error, "u8-input", text, "INPUT or INPUT=MEAN/SCALE, with scales that are not 0");
    return TRUE;
}

/* "5" or "5@scores" */
static gboolean read_top_k(HnFaceOptions *o, const char *text, GError **error)
{
    char *end;
    const gint64 k = g_ascii_strtoll(text, &end, 10);
    if (end == text || k < 1 || (*end != '\0' && (*end != '@' || end[1] == '\0')))
        return bad(error, "top-k", text, "K or K@OUTPUT");
    hn_face_scores(o, *end == '@' ? end + 1 : NULL)->top_k = k;
    return TRUE;
}

gboolean export_on_softmax(const char *name, const char *value, gpointer params, GError **error)
{
    (void)name;
    (void)error;
    ExportParams *p = params;
    const guint n = p->softmax != NULL ? g_strv_length(p->softmax) : 0;
    p->softmax = g_renew(char *, p->softmax, (gsize)n + 2);
    p->softmax[n] = g_strdup(value != NULL ? value : "");
    p->softmax[n + 1] = NULL;
    return TRUE;
}

/* Inputs' channels last: the axis that means belong to moves along. */
static gboolean read_all(Export *e, const HnGraph *g, GError **error)
{
    const ExportParams *p = e->p;
    gboolean ok = TRUE;
    for (char **t = p->free; t != NULL && *t != NULL && ok; t++)
        ok = read_free(e->face, *t, error);
    for (char **t = p->rename; t != NULL && *t != NULL && ok; t++)
        ok = read_rename(e->face, g, *t, error);
    for (char **t = p->nhwc_input; t != NULL && *t != NULL; t++)
        hn_face_pixels(e->face, *t)->nhwc = TRUE;
    for (char **t = p->u8_input; t != NULL && *t != NULL && ok; t++)
        ok = read_u8(e, *t, error);
    for (char **t = p->top_k; t != NULL && *t != NULL && ok; t++)
        ok = read_top_k(e->face, *t, error);
    for (char **t = p->softmax; t != NULL && *t != NULL; t++)
        hn_face_scores(e->face, **t != '\0' ? *t : NULL)->softmax = TRUE;
    for (guint i = 0; i < e->face->pixels->len; i++) {
        HnFacePixels *x = e->face->pixels->pdata[i];
        x->channels_last = x->channels_last && !x->nhwc;
    }
    return ok;
}

/* Fixed dimensions of which --shapes says something else have to be free first. */
static void free_overridden(Export *e, const HnGraph *g)
{
    for (guint i = 0; i < g->inputs->len; i++) {
        const HnValue *v = g->inputs->pdata[i];
        int64_t n;
        if (hn_value_is_weight(v) || !hn_type_is_tensor(v->type))
            continue;
        for (int a = 0; a < v->type->rank; a++) {
            if (!v->type->dims[a].known || !hn_shapes_says(e->shapes, v, a, &n) || v->type->dims[a].n == n)
                continue;
            HnFaceFree *f = g_new(HnFaceFree, 1);
            *f = (HnFaceFree){ g_strdup(v->name), a, g_strdup(a == 0 ? "batch" : "size"), NULL };
            g_ptr_array_add(e->face->free, f);
        }
    }
}

/* "x=1,2,3/4": what recipes say of an input of bytes. */
static char **pixels_said(const HnFaceOptions *o)
{
    g_autoptr(GPtrArray) all = g_ptr_array_new();
    for (guint i = 0; i < o->pixels->len; i++) {
        const HnFacePixels *p = o->pixels->pdata[i];
        GString *s = g_string_new(p->input);
        g_string_append_c(s, '=');
        char number[G_ASCII_DTOSTR_BUF_SIZE];
        for (int k = 0; k < p->n_mean; k++)
            g_string_append_printf(s, "%s%s", k > 0 ? "," : "", g_ascii_dtostr(number, sizeof number, p->mean[k]));
        g_string_append_c(s, '/');
        for (int k = 0; k < p->n_scale; k++)
            g_string_append_printf(s, "%s%s", k > 0 ? "," : "", g_ascii_dtostr(number, sizeof number, p->scale[k]));
        char *text = g_string_free(s, FALSE);
        if (p->u8)
            g_ptr_array_add(all, text);
        else
            g_free(text);
    }
    g_ptr_array_add(all, NULL);
    return (char **)g_ptr_array_free(g_steal_pointer(&all), FALSE);
}

/* --- the model ---------------------------------------------------------------------------------------------------- */

/* Pictures of --data go in as bytes where the model takes bytes. */
static gboolean raw_pixels(Export *e, GError **error)
{
    for (guint i = 0; i < e->face->pixels->len; i++) {
        const HnFacePixels *p = e->face->pixels->pdata[i];
        const char *name = p->input;
        for (guint k = 0; k < e->face->renames->len; k++) {
            const HnFaceRename *r = e->face->renames->pdata[k];
            name = strcmp(r->from, name) ? name : r->to;
        }
        if ((p->u8 && !hn_preprocess_set(e->preprocess, name, "u8", "true", error)) ||
            (p->nhwc && !hn_preprocess_set(e->preprocess, name, "layout", "nhwc", error)))
            return FALSE;
    }
    return TRUE;
}

/* What --shapes says of inputs that have other names or another order of axes now. */
static void translate_shapes(Export *e, const HnModel *m)
{
    const GPtrArray *was = m->graph->inputs, *now = e->faced.model->graph->inputs;
    HnShapes *s = hn_shapes_new();
    for (char **t = e->p->dim; t != NULL && *t != NULL; t++)
        hn_shapes_parse_dim(s, *t, NULL); /* read before */
    for (guint i = 0; i < was->len && e->p->shapes != NULL; i++) {
        const HnValue *v = was->pdata[i];
        const int rank = hn_type_rank(v->type);
        int64_t dims[HN_MAX_RANK], moved[HN_MAX_RANK];
        int a = 0;
        while (a < rank && a < HN_MAX_RANK && hn_shapes_says(e->shapes, v, a, &dims[a]))
            a++;
        if (rank < 1 || a < rank)
            continue;
        gboolean nhwc = FALSE;
        for (guint k = 0; k < e->face->pixels->len; k++) {
            const HnFacePixels *p = e->face->pixels->pdata[k];
            nhwc = nhwc || (p->nhwc && !strcmp(p->input, v->name));
        }
        for (a = 0; a < rank; a++)
            moved[a] = dims[!nhwc || a == 0 ? a : a == rank - 1 ? 1 : a + 1];
        hn_shapes_set(s, ((const HnValue *)now->pdata[i])->name, moved, rank);
    }
    hn_shapes_free(e->shapes);
    e->shapes = s;
}

/* What --input says of inputs that the original has, too: neither freed nor with other pixels. */
static void keep_given(const Export *e, const HnModel *m, GPtrArray *names, GPtrArray *tensors)
{
    const GPtrArray *was = m->graph->inputs, *now = e->faced.model->graph->inputs;
    for (guint i = 0; e->given.names != NULL && i < was->len && i < now->len; i++) {
        const HnValue *v = was->pdata[i], *y = now->pdata[i];
        HnTensor *t = hn_tool_input(&e->given, y->name);
        if (t == NULL || !hn_type_equal(v->type, y->type))
            continue;
        g_ptr_array_add(names, v->name);
        g_ptr_array_add(tensors, t);
    }
    g_ptr_array_add(names, NULL);
}

/* shapes: what is said of m. */
static gboolean check(Export *e, const HnModel *m, const HnShapes *shapes, GError **error)
{
    g_autoptr(GPtrArray) names = g_ptr_array_new(), tensors = g_ptr_array_new();
    keep_given(e, m, names, tensors);
    const HnFaceCheck c = { .backend = e->backend,
                            .threads = e->ctx->common.threads,
                            .seed = e->ctx->common.seed,
                            .shapes = e->overrides ? NULL : shapes,
                            .given_names = (const char *const *)names->pdata,
                            .given = (HnTensor *const *)tensors->pdata,
                            .rtol = e->p->rtol,
                            .atol = e->p->atol,
                            .budget = e->ctx->budget,
                            .progress = &e->ctx->progress };
    return e->p->no_check || hn_face_check(m, e->face, &c, &e->faced, error);
}

gboolean export_make_face(Export *e, HnModel *m, GError **error)
{
    e->face = hn_face_options_new();
    e->preprocess = hn_tool_preprocess(e->ctx, &e->p->from, e->path, error);
    if (e->preprocess == NULL || !read_all(e, m->graph, error))
        return FALSE;
    if (e->p->shapes != NULL) {
        const guint before = e->face->free->len;
        free_overridden(e, m->graph);
        e->overrides = e->face->free->len > before;
    }
    if (hn_face_is_empty(e->face))
        return TRUE;
    if (!hn_inline_calls(m, error) || (e->face->free->len > 0 && !hn_spell_out_contrib(m, FALSE, error)) ||
        ((e->in != NULL || e->out != NULL) &&
         !hn_extract(m, (const char *const *)e->in, (const char *const *)e->out, error)))
        return FALSE;
    hn_model_drop_defaults(m);
    hn_face_tie(m, e->face);
    e->u8_said = pixels_said(e->face);
    if (!hn_face_change(m, e->face, e->ctx->budget, &e->faced, error) || !raw_pixels(e, error))
        return FALSE;
    g_autoptr(HnShapes) of_m = hn_shapes_copy(e->shapes);
    translate_shapes(e, m);
    return export_take_inputs(e, e->faced.model, error) && check(e, m, of_m, error);
}

gboolean export_has_face(const Export *e)
{
    return e->faced.model != NULL;
}

void export_clear_face(Export *e)
{
    g_clear_pointer(&e->face, hn_face_options_free);
    g_strfreev(e->u8_said);
    hn_faced_clear(&e->faced);
}

/* --- report ------------------------------------------------------------------------------------------------------- */

static void set_text(JsonObject *o, const char *name, const char *text)
{
    if (text != NULL)
        json_object_set_string_member(o, name, text);
    else
        json_object_set_null_member(o, name);
}

static JsonObject *row_object(const HnFaceRow *r)
{
    JsonObject *o = json_object_new();
    json_object_set_string_member(o, "kind", r->input ? "input" : "output");
    set_text(o, "old_name", r->old_name);
    set_text(o, "old_type", r->old_type);
    json_object_set_string_member(o, "new_name", r->new_name);
    json_object_set_string_member(o, "new_type", r->new_type);
    json_object_set_string_member(o, "note", r->note);
    return o;
}

void export_report_face(const Export *e, HnReport *report)
{
    JsonArray *rows = json_array_new();
    json_object_set_array_member(hn_report_root(report), "interface", rows);
    for (guint i = 0; e->faced.rows != NULL && i < e->faced.rows->len; i++) {
        const HnFaceRow *r = e->faced.rows->pdata[i];
        const gboolean same = g_strcmp0(r->old_name, r->new_name) == 0 && g_strcmp0(r->old_type, r->new_type) == 0;
        json_array_add_object_element(rows, row_object(r));
        if (!same)
            hn_report_line(report, "%s %s%s%s%s%s %s%s%s%s", r->input ? "input " : "output",
                           r->old_name != NULL ? r->old_name : "(new)", r->old_name != NULL ? " " : "",
                           r->old_name != NULL ? r->old_type : "", " -> ", r->new_name, r->new_type,
                           *r->note != '\0' ? " (" : "", r->note, *r->note != '\0' ? ")" : "");
    }
    if (e->faced.sizes > 1 && e->faced.mixes == NULL)
        hn_report_line(report, "1, 3 and 8 samples at once give what single runs of the original give");
    if (e->faced.n_apart > 0)
        hn_report_line(report, "for one sample after the other: %u node%s that may mix them, as %s", e->faced.n_apart,
                       e->faced.n_apart > 1 ? "s" : "", e->faced.apart);
    if (e->faced.mixes != NULL)
        hn_report_line(report,
                       "freed as a size, since %s; at that of the original (%" PRId64
                       ") results are the same, at others nothing can be compared%s",
                       e->faced.mixes, e->faced.n0,
                       e->faced.sizes > 1 ? ": it runs at two, with shapes as declared" : "");
}
