#include "export/face.h"

#include <string.h>

#include "base/error.h"
#include "data/interface.h"
#include "ir/build.h"
#include "ir/copy.h"
#include "op/infer.h"
#include "pass/free_size.h"

/* --- options ------------------------------------------------------------------------------------------------------ */

static void free_free(gpointer p)
{
    g_free(((HnFaceFree *)p)->input);
    g_free(((HnFaceFree *)p)->symbol);
    g_free(p);
}

static void rename_free(gpointer p)
{
    g_free(((HnFaceRename *)p)->from);
    g_free(((HnFaceRename *)p)->to);
    g_free(p);
}

static void pixels_free(gpointer p)
{
    g_free(((HnFacePixels *)p)->input);
    g_free(p);
}

static void scores_free(gpointer p)
{
    g_free(((HnFaceScores *)p)->output);
    g_free(p);
}

HnFaceOptions *hn_face_options_new(void)
{
    HnFaceOptions *o = g_new(HnFaceOptions, 1);
    o->free = g_ptr_array_new_with_free_func(free_free);
    o->renames = g_ptr_array_new_with_free_func(rename_free);
    o->pixels = g_ptr_array_new_with_free_func(pixels_free);
    o->scores = g_ptr_array_new_with_free_func(scores_free);
    return o;
}

void hn_face_options_free(HnFaceOptions *o)
{
    if (o == NULL)
        return;
    g_ptr_array_unref(o->free);
    g_ptr_array_unref(o->renames);
    g_ptr_array_unref(o->pixels);
    g_ptr_array_unref(o->scores);
    g_free(o);
}

gboolean hn_face_is_empty(const HnFaceOptions *o)
{
    return o->free->len + o->renames->len + o->pixels->len + o->scores->len == 0;
}

HnFacePixels *hn_face_pixels(HnFaceOptions *o, const char *input)
{
    for (guint i = 0; i < o->pixels->len; i++)
        if (!strcmp(((HnFacePixels *)o->pixels->pdata[i])->input, input))
            return o->pixels->pdata[i];
    HnFacePixels *p = g_new0(HnFacePixels, 1);
    p->input = g_strdup(input);
    g_ptr_array_add(o->pixels, p);
    return p;
}

HnFaceScores *hn_face_scores(HnFaceOptions *o, const char *output)
{
    for (guint i = 0; i < o->scores->len; i++)
        if (g_strcmp0(((HnFaceScores *)o->scores->pdata[i])->output, output) == 0)
            return o->scores->pdata[i];
    HnFaceScores *s = g_new0(HnFaceScores, 1);
    s->output = g_strdup(output);
    g_ptr_array_add(o->scores, s);
    return s;
}

/* --- free dimensions ---------------------------------------------------------------------------------------------- */

static gboolean is_freed(const HnFaceOptions *o, const char *input)
{
    for (guint i = 0; i < o->free->len; i++)
        if (!strcmp(((HnFaceFree *)o->free->pdata[i])->input, input))
            return TRUE;
    return FALSE;
}

static void set_dim(HnValue *v, int axis, int64_t n)
{
    HnDim dims[HN_MAX_RANK];
    const HnType *t = v->type;
    memcpy(dims, t->dims, (gsize)t->rank * sizeof *dims);
    dims[axis] = hn_dim(n);
    g_autoptr(HnType) type = hn_type_tensor(t->dtype, t->rank, dims);
    hn_value_set_type(v, type);
}

/* The dimension that x names; NULL: there is none. */
static HnDim *dim_of(const HnModel *m, const HnFaceFree *x)
{
    const HnValue *v = g_hash_table_lookup(m->graph->values, x->input);
    const gboolean has = v != NULL && v->is_input && !hn_value_is_weight(v) && hn_type_rank(v->type) > x->axis;
    return has && v->type->rank <= HN_MAX_RANK ? &v->type->dims[x->axis] : NULL;
}

static gboolean frees(const HnFaceOptions *o, const char *input, int axis)
{
    for (guint i = 0; i < o->free->len; i++) {
        const HnFaceFree *x = o->free->pdata[i];
        if (x->axis == axis && !strcmp(x->input, input))
            return TRUE;
    }
    return FALSE;
}

/* Names that the file has for what is freed, and that it gets. */
static GHashTable *names_of_free(const HnModel *m, const HnFaceOptions *o, int64_t *n0)
{
    GHashTable *names = g_hash_table_new(g_str_hash, g_str_equal);
    *n0 = 1;
    for (guint i = 0; i < o->free->len; i++) {
        const HnFaceFree *x = o->free->pdata[i];
        const HnDim *d = dim_of(m, x);
        g_hash_table_add(names, x->symbol);
        if (d != NULL && d->sym != NULL)
            g_hash_table_add(names, (gpointer)d->sym);
        if (d != NULL && d->known)
            *n0 = d->n;
    }
    return names;
}

void hn_face_tie(HnModel *m, HnFaceOptions *o)
{
    int64_t n0;
    g_autoptr(GHashTable) names = names_of_free(m, o, &n0);
    const GPtrArray *in = m->graph->inputs;
    for (guint i = 0; i < in->len && o->free->len > 0; i++) {
        HnValue *v = in->pdata[i];
        if (hn_value_is_weight(v) || !hn_type_is_tensor(v->type) || v->type->rank > HN_MAX_RANK)
            continue;
        for (int a = 0; a < v->type->rank; a++) {
            const HnDim d = v->type->dims[a];
            const gboolean asked = frees(o, v->name, a), called = d.sym != NULL && g_hash_table_contains(names, d.sym);
            if (d.known || (!asked && !called))
                continue;
            set_dim(v, a, n0);
            if (asked)
                continue;
            HnFaceFree *f = g_new(HnFaceFree, 1);
            *f = (HnFaceFree){ g_strdup(v->name), a, g_strdup(((HnFaceFree *)o->free->pdata[0])->symbol),
                               "it was called the same" };
            g_ptr_array_add(o->free, f);
        }
    }
}

/* A state that an output of samples feeds has to hold them, too: along the axis that the output has them. *added. */
static void free_states(const HnModel *m, HnFaceOptions *o, const HnFreedBatch *freed, gboolean *added)
{
    const HnGraph *g = m->graph;
    *added = FALSE;
    for (guint i = 0; i < g->inputs->len; i++) {
        HnSeems s;
        const HnValue *v = g->inputs->pdata[i];
        if (hn_value_is_weight(v) || is_freed(o, v->name))
            continue;
        hn_seems(m, v, &s);
        for (int k = 0; s.role == HN_ROLE_STATE && k < freed->n_out; k++) {
            const HnType *t = v->type;
            int axis = freed->out[k];
            if (g->outputs->pdata[k] != s.partner || axis < 0 || hn_type_rank(t) < 1)
                continue;
            while (axis < t->rank && !hn_dim_is(t->dims[axis], freed->n0))
                axis++;
            if (axis >= t->rank)
                continue;
            HnFaceFree *f = g_new(HnFaceFree, 1);
            *f = (HnFaceFree){ g_strdup(v->name), axis, g_strdup(((HnFaceFree *)o->free->pdata[0])->symbol),
                               "the output that feeds it is" };
            g_ptr_array_add(o->free, f);
            *added = TRUE;
        }
    }
}

/* Outputs that feed freed states have their samples where those have. */
static HnFreeDim *wanted_places(const HnModel *m, const HnFaceOptions *o)
{
    g_autoptr(GArray) a = g_array_new(TRUE, TRUE, sizeof(HnFreeDim));
    for (guint i = 0; i < o->free->len; i++) {
        HnSeems s;
        const HnFaceFree *f = o->free->pdata[i];
        const HnValue *v = hn_graph_find(m->graph, f->input);
        if (v == NULL || !v->is_input)
            continue;
        hn_seems(m, v, &s);
        const HnFreeDim d = { s.role == HN_ROLE_STATE ? s.partner->name : NULL, f->axis };
        if (d.input != NULL)
            g_array_append_val(a, d);
    }
    return (HnFreeDim *)g_array_free(g_steal_pointer(&a), FALSE);
}

static gboolean free_once(const HnModel *m, const HnFaceOptions *o, HnBudget *budget, HnFreedBatch *freed,
                          GError **error)
{
    g_autofree HnFreeDim *dims = g_new(HnFreeDim, o->free->len), *wanted = wanted_places(m, o);
    const HnFaceFree *first = o->free->pdata[0];
    for (guint i = 0; i < o->free->len; i++) {
        const HnFaceFree *f = o->free->pdata[i];
        dims[i] = (HnFreeDim){ f->input, f->axis };
        if (strcmp(f->symbol, first->symbol)) {
            g_set_error(error, HN_ERROR, HN_ERROR_UNSUPPORTED,
                        "dimensions that become free together have one name, not '%s' and '%s': one after the other "
                        "can be done",
                        first->symbol, f->symbol);
            return FALSE;
        }
    }
    return hn_free_batch(m, dims, o->free->len, first->symbol, wanted, budget, freed, error);
}

/* Nothing else than a number of samples is meant. */
static gboolean means_samples(const HnModel *m, const HnFaceOptions *o)
{
    for (guint i = 0; i < o->free->len; i++) {
        const HnFaceFree *f = o->free->pdata[i];
        const HnDim *d = dim_of(m, f);
        if (d == NULL || (f->axis == 0 && hn_dim_is(*d, 1)) || g_str_has_prefix(f->symbol, "batch") ||
            !g_ascii_strcasecmp(f->symbol, "n") || !g_ascii_strcasecmp(f->symbol, "b"))
            return TRUE;
    }
    return FALSE;
}

/* As a size. *why: what mixes samples, where it is one; left alone where that cannot be done either. */
static gboolean free_size(const HnModel *m, const HnFaceOptions *o, HnBudget *budget, HnFaced *out, GError **why)
{
    g_autofree HnFreeDim *dims = g_new(HnFreeDim, o->free->len);
    const HnFaceFree *first = o->free->pdata[0];
    if (why == NULL || !g_error_matches(*why, HN_ERROR, HN_ERROR_GUARD) || means_samples(m, o))
        return FALSE;
    for (guint i = 0; i < o->free->len; i++) {
        const HnFaceFree *f = o->free->pdata[i];
        dims[i] = (HnFreeDim){ f->input, f->axis };
    }
    g_autoptr(GError) failure = NULL;
    if (!hn_free_size(m, dims, o->free->len, first->symbol, budget, &out->model, &failure)) {
        g_prefix_error(why, "as a size: %s; as a number of samples: ", failure->message);
        return FALSE;
    }
    out->n0 = dim_of(m, first)->n;
    out->mixes = g_strdup((*why)->message);
    g_clear_error(why);
    return TRUE;
}

/* "; ...": an input whose first dimension is open may count the same samples, which nobody has said. g_free. */
static char *open_one(const HnModel *m, const HnFaceOptions *o)
{
    const HnFaceFree *f = o->free->pdata[0];
    for (guint i = 0; i < m->graph->inputs->len; i++) {
        const HnValue *v = m->graph->inputs->pdata[i];
        if (hn_value_is_weight(v) || hn_type_rank(v->type) < 1 || is_freed(o, v->name) || v->type->dims[0].sym == NULL)
            continue;
        return g_strdup_printf("; where dimension 0 of input '%s' counts the same, '--free %s:%d=%s' frees both",
                               v->name, f->input, f->axis, v->type->dims[0].sym);
    }
    return g_strdup("");
}

static gboolean free_all(const HnModel *m, HnFaceOptions *o, HnBudget *budget, HnFaced *out, GError **error)
{
    HnFreedBatch freed;
    gboolean again = TRUE;
    while (again) {
        if (!free_once(m, o, budget, &freed, error)) {
            const HnFaceFree *f = o->free->pdata[0];
            if (free_size(m, o, budget, out, error))
                return TRUE;
            if (error != NULL && g_error_matches(*error, HN_ERROR, HN_ERROR_GUARD)) {
                g_autofree char *why = g_strdup((*error)->message), *hint = open_one(m, o);
                g_clear_error(error);
                g_set_error(error, HN_ERROR, HN_ERROR_GUARD, "dimension %d of input '%s' cannot be free: %s%s", f->axis,
                            f->input, why, hint);
            }
            return FALSE;
        }
        free_states(m, o, &freed, &again);
        if (again)
            hn_freed_batch_clear(&freed);
    }
    out->model = freed.model;
    out->batch = freed.out;
    out->n_batch = freed.n_out;
    out->n0 = freed.n0;
    out->n_apart = freed.n_apart;
    out->apart = freed.apart;
    return TRUE;
}

/* --- inputs ------------------------------------------------------------------------------------------------------- */

static HnValue *input_of(const HnGraph *g, const char *name, GError **error)
{
    HnValue *v = g_hash_table_lookup(g->values, name);
    if (v != NULL && v->is_input && !hn_value_is_weight(v))
        return v;
    g_set_error(error, HN_ERROR, HN_ERROR_USAGE, "the model has no input '%s'", name);
    return NULL;
}

/* Numbers for each channel, along an axis that has `behind` axes behind it; of the type of x. */
static HnValue *per_channel(HnBuild *b, const char *stem, const double *v, int n, int behind, HnDtype dtype)
{
    int64_t dims[HN_MAX_RANK] = { n };
    for (int i = 0; i < behind; i++)
        dims[1 + i] = 1;
    HnTensor *t = hn_tensor_new(dtype, n == 1 ? 0 : 1 + behind, dims, NULL, NULL);
    for (int i = 0; i < n; i++)
        hn_tensor_set_f64(t, i, v[i]);
    return hn_build_constant(b, stem, t);
}

static HnValue *normalize(HnBuild *b, HnValue *x, const HnFacePixels *p, int behind, HnDtype dtype)
{
    double factor[4];
    for (int i = 0; i < p->n_scale; i++)
        factor[i] = 1 / p->scale[i];
    if (p->n_mean > 0)
        x = hn_build_op2(b, "Sub", x, per_channel(b, "mean", p->mean, p->n_mean, behind, dtype));
    if (p->n_scale > 0)
        x = hn_build_op2(b, "Mul", x, per_channel(b, "scale", factor, p->n_scale, behind, dtype));
    return x;
}

/* rank 4: [0,3,1,2]. */
static HnValue *channels_second(HnBuild *b, HnValue *x, int rank)
{
    int64_t perm[HN_MAX_RANK] = { 0, rank - 1 };
    for (int a = 2; a < rank; a++)
        perm[a] = a - 1;
    return hn_build_transpose(b, x, perm, rank);
}

static HnType *outer_type(const HnType *t, const HnFacePixels *p)
{
    HnDim dims[HN_MAX_RANK];
    for (int a = 0; a < t->rank; a++)
        dims[a] = !p->nhwc || a == 0 ? t->dims[a] : a == t->rank - 1 ? t->dims[1] : t->dims[a + 1];
    return hn_type_tensor(p->u8 ? HN_U8 : t->dtype, t->rank, dims);
}

static gboolean check_channels(const HnValue *v, const HnFacePixels *p, GError **error)
{
    const HnType *t = v->type;
    if (!hn_type_is_tensor(t) || t->rank < 3 || t->rank > HN_MAX_RANK || !hn_dtype_in(t->dtype, HN_T_FLOATS)) {
        g_autofree char *type = hn_type_describe(t);
        g_set_error(error, HN_ERROR, HN_ERROR_USAGE, "input '%s' is %s, no picture of floats", v->name, type);
        return FALSE;
    }
    const HnDim d = t->dims[p->channels_last ? t->rank - 1 : 1];
    const int n = MAX(p->n_mean, p->n_scale);
    if ((p->n_mean > 1 && p->n_scale > 1 && p->n_mean != p->n_scale) || (n > 1 && d.known && d.n != n)) {
        g_set_error(error, HN_ERROR, HN_ERROR_USAGE, "means or scales do not fit the channels of input '%s'", v->name);
        return FALSE;
    }
    return TRUE;
}

static gboolean change_pixels(HnModel *m, const HnFacePixels *p, GError **error)
{
    HnGraph *g = m->graph;
    HnValue *v = input_of(g, p->input, error);
    if (v == NULL || !check_channels(v, p, error))
        return FALSE;
    HnBuild b = { .graph = g, .before = g->nodes->len > 0 ? g->nodes->pdata[0] : NULL };
    const HnType *t = v->type;
    HnValue *inner = hn_graph_new_value(g, v->name), *x = v;
    hn_value_replace(v, inner);
    if (p->u8)
        x = hn_build_cast(&b, x, t->dtype);
    if (p->nhwc)
        x = channels_second(&b, x, t->rank);
    if (p->u8)
        x = normalize(&b, x, p, p->channels_last ? 0 : t->rank - 2, t->dtype);
    hn_node_set_out(x->producer, 0, inner);
    g_autoptr(HnType) type = outer_type(t, p);
    hn_value_set_type(v, type);
    return TRUE;
}

/* --- outputs ------------------------------------------------------------------------------------------------------ */

/* Scores of classes: floats of at least one known axis. */
static HnValue *scores_of(const HnGraph *g, const HnFaceScores *s, GError **error)
{
    HnValue *found = NULL;
    for (guint k = 0; k < g->outputs->len; k++) {
        HnValue *v = g->outputs->pdata[k];
        if (s->output != NULL ? strcmp(v->name, s->output) : !hn_dtype_in(hn_type_dtype(v->type), HN_T_FLOATS))
            continue;
        if (found != NULL) {
            g_set_error(error, HN_ERROR, HN_ERROR_USAGE, "of which output: '%s' or '%s'?", found->name, v->name);
            return NULL;
        }
        found = v;
    }
    if (found == NULL || !hn_dtype_in(hn_type_dtype(found->type), HN_T_FLOATS) || hn_type_rank(found->type) < 1) {
        g_set_error(error, HN_ERROR, HN_ERROR_USAGE, "%s%s%s", s->output != NULL ? "'" : "no output",
                    s->output != NULL ? s->output : "",
                    s->output != NULL ? "' is no output with scores" : " has scores");
        return NULL;
    }
    return found;
}

/* Where classes lie: the second axis of [n,c,1,1], else the last. */
static int class_axis(const HnType *t)
{
    gboolean ones = t->rank > 2;
    for (int a = 2; a < t->rank; a++)
        ones = ones && hn_dim_is(t->dims[a], 1);
    return ones ? 1 : t->rank - 1;
}

static guint output_index(const HnGraph *g, const HnValue *v)
{
    guint k = 0;
    while (g->outputs->pdata[k] != v)
        k++;
    return k;
}

/* v's name goes to what takes its place as output k. */
static void take_over(HnGraph *g, HnValue *v, HnValue *to)
{
    hn_graph_set_output(g, output_index(g, v), to);
    hn_value_swap_names(v, to);
}

static HnValue *top_k(HnBuild *b, HnValue *v, int64_t k, int axis, HnValue **index)
{
    HnValue *in[2] = { v, NULL };
    const gboolean attribute = hn_graph_opset(b->graph, NULL) < 10;
    if (!attribute)
        in[1] = hn_build_list(b, &k, 1);
    HnNode *n = hn_build_node(b, "TopK", NULL, 2, in, 2);
    hn_node_set_int(n, "axis", axis);
    if (attribute)
        hn_node_set_int(n, "k", k);
    *index = hn_node_out(n, 1);
    return hn_node_out(n, 0);
}

static void call(HnGraph *g, HnValue *v, const char *base, const char *what)
{
    g_autofree char *name = g_strconcat(base, what, NULL);
    HnValue *to = hn_model_has_name(g->model, name) ? hn_graph_new_value(g, name) : hn_graph_value(g, name);
    hn_value_swap_names(v, to);
}

static gboolean change_scores(HnModel *m, const HnFaceScores *s, GError **error)
{
    HnGraph *g = m->graph;
    HnValue *v = scores_of(g, s, error), *index;
    HnBuild b = { .graph = g };
    if (v == NULL)
        return FALSE;
    g_autoptr(HnType) type = hn_type_ref(v->type);
    const int axis = class_axis(type);
    HnDim dims[HN_MAX_RANK];
    memcpy(dims, type->dims, (gsize)type->rank * sizeof *dims);
    if (s->softmax) {
        HnValue *p = hn_build_op1(&b, "Softmax", v);
        hn_node_set_int(p->producer, "axis", axis);
        hn_value_set_type(p, type);
        take_over(g, v, p);
        v = p;
    }
    if (s->top_k == 0)
        return TRUE;
    if (dims[axis].known && dims[axis].n < s->top_k) {
        g_set_error(error, HN_ERROR, HN_ERROR_USAGE,
                    "output '%s' has %" PRId64 " classes, and %" PRId64 " are asked for", v->name, dims[axis].n,
                    s->top_k);
        return FALSE;
    }
    dims[axis] = hn_dim(s->top_k);
    HnValue *values = top_k(&b, v, s->top_k, axis, &index);
    g_autoptr(HnType) few = hn_type_tensor(type->dtype, type->rank, dims);
    g_autoptr(HnType) places = hn_type_tensor(HN_I64, type->rank, dims);
    hn_value_set_type(values, few);
    hn_value_set_type(index, places);
    const guint k = output_index(g, v);
    hn_graph_set_output(g, k, values);
    hn_graph_add_output(g, index);
    call(g, values, v->name, "_values");
    call(g, index, v->name, "_indices");
    return TRUE;
}

/* --- names -------------------------------------------------------------------------------------------------------- */

/* Values of graphs inside g that are called so get other names. */
static void make_way(HnGraph *g, const char *name)
{
    for (guint i = 0; i < g->inner->len; i++) {
        HnGraph *inner = g->inner->pdata[i];
        HnValue *v = g_hash_table_lookup(inner->values, name);
        if (v != NULL)
            hn_value_swap_names(v, hn_graph_new_value(inner, name));
        make_way(inner, name);
    }
}

static gboolean change_name(HnModel *m, const HnFaceRename *r, GError **error)
{
    HnGraph *g = m->graph;
    HnValue *v = g_hash_table_lookup(g->values, r->from), *to = g_hash_table_lookup(g->values, r->to);
    if (v == NULL || (!v->is_output && (!v->is_input || hn_value_is_weight(v)))) {
        g_set_error(error, HN_ERROR, HN_ERROR_USAGE, "option '--rename': the model has no input or output '%s'",
                    r->from);
        return FALSE;
    }
    if (*r->to == '\0' || (to != NULL && to != v && (to->is_input || to->is_output))) {
        g_set_error(error, HN_ERROR, HN_ERROR_USAGE, "option '--rename': there is an input or output '%s' already",
                    r->to);
        return FALSE;
    }
    if (to == v)
        return TRUE;
    make_way(g, r->to);
    hn_value_swap_names(v, to != NULL ? to : hn_graph_value(g, r->to));
    return TRUE;
}

/* --- report ------------------------------------------------------------------------------------------------------- */

static void row_free(gpointer p)
{
    HnFaceRow *r = p;
    g_free(r->old_name);
    g_free(r->old_type);
    g_free(r->new_name);
    g_free(r->new_type);
    g_free(r->note);
    g_free(r);
}

static void add_row(HnFaced *f, gboolean input, const HnValue *old, const HnValue *new, const char *note)
{
    HnFaceRow *r = g_new0(HnFaceRow, 1);
    r->input = input;
    r->old_name = old != NULL ? g_strdup(old->name) : NULL;
    r->old_type = old != NULL ? hn_type_describe(old->type) : NULL;
    r->new_name = new != NULL ? g_strdup(new->name) : NULL;
    r->new_type = new != NULL ? hn_type_describe(new->type) : NULL;
    r->note = g_strdup(note);
    g_ptr_array_add(f->rows, r);
}

static char *input_note(const HnFaceOptions *o, const char *name)
{
    GString *s = g_string_new(NULL);
    for (guint i = 0; i < o->free->len; i++) {
        const HnFaceFree *x = o->free->pdata[i];
        if (!strcmp(x->input, name))
            g_string_append_printf(s, "%sdimension %d is free%s%s", s->len > 0 ? "; " : "", x->axis,
                                   x->also != NULL ? ", since " : "", x->also != NULL ? x->also : "");
    }
    for (guint i = 0; i < o->pixels->len; i++) {
        const HnFacePixels *p = o->pixels->pdata[i];
        if (!strcmp(p->input, name))
            g_string_append_printf(s, "%s%s%s%s", s->len > 0 ? "; " : "", p->u8 ? "bytes" : "",
                                   p->u8 && p->nhwc ? ", " : "", p->nhwc ? "channels last" : "");
    }
    return g_string_free(s, FALSE);
}

static void add_rows(const HnModel *m, const HnFaceOptions *o, HnFaced *f)
{
    const HnGraph *was = m->graph, *now = f->model->graph;
    for (guint i = 0; i < was->inputs->len; i++) {
        const HnValue *v = was->inputs->pdata[i];
        g_autofree char *note = input_note(o, v->name);
        if (!hn_value_is_weight(v))
            add_row(f, TRUE, v, now->inputs->pdata[i], note);
    }
    for (guint k = 0; k < now->outputs->len; k++) {
        const HnValue *v = k < was->outputs->len ? was->outputs->pdata[k] : NULL;
        add_row(f, FALSE, v, now->outputs->pdata[k], v == NULL ? "places of the best" : "");
    }
}

gboolean hn_face_change(const HnModel *m, HnFaceOptions *o, HnBudget *budget, HnFaced *out, GError **error)
{
    *out = (HnFaced){ .n0 = 1, .rows = g_ptr_array_new_with_free_func(row_free) };
    gboolean ok = TRUE;
    if (o->free->len > 0)
        ok = free_all(m, o, budget, out, error);
    else
        out->model = hn_model_copy(m);
    ok = ok && hn_graph_infer(out->model->graph, FALSE, error);
    for (guint i = 0; i < o->scores->len && ok; i++)
        ok = change_scores(out->model, o->scores->pdata[i], error);
    for (guint i = 0; i < o->pixels->len && ok; i++)
        ok = change_pixels(out->model, o->pixels->pdata[i], error);
    for (guint i = 0; i < o->renames->len && ok; i++)
        ok = change_name(out->model, o->renames->pdata[i], error);
    ok = ok && hn_graph_infer(out->model->graph, FALSE, error) && hn_model_verify(out->model, error);
    if (ok)
        add_rows(m, o, out);
    return ok;
}

void hn_faced_clear(HnFaced *f)
{
    g_clear_pointer(&f->model, hn_model_free);
    g_clear_pointer(&f->rows, g_ptr_array_unref);
    g_clear_pointer(&f->batch, g_free);
    g_clear_pointer(&f->mixes, g_free);
    g_clear_pointer(&f->apart, g_free);
}
