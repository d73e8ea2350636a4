/* Does a model with another face compute what the original does? On the same data, in the form that each takes. */
#include <math.h>
#include <string.h>

#include "check/samples.h"
#include "check/tensor_diff.h"
#include "data/random.h"
#include "export/face.h"
#include "ir/copy.h"

#define MOST 8 /* samples */

typedef struct {
    const HnFaceOptions *o;
    const HnFaceCheck *c;
    HnFaced *f;
    const HnModel *original;
    HnShapes *shapes; /* of all inputs of the original */
    int n_in, n_out;  /* of the original */
    HnTensor *few[8]; /* of the first sample, what is the same for all */
    HnTensor **in;    /* [runs * n_in]: in the form that the new model takes, for as many samples as the original has */
    HnTensor **out;   /* [runs * n_out] of the original */
    int runs;
} Check;

/* --- tensors ------------------------------------------------------------------------------------------------------ */

/* The first n of what `count` tensors hold along `axis` one behind the other; lead: each is one, along a new first
 * axis.
 */
static HnTensor *rows_of(HnTensor *const *t, int count, int axis, gboolean lead, int64_t n, HnBudget *budget,
                         GError **error)
{
    int64_t dims[HN_MAX_RANK + 1] = { 1 }, outer = 1, inner = 1;
    const HnTensor *x = t[0];
    const int rank = x->ndim + lead;
    for (int a = 0; a < rank; a++)
        dims[a] = lead ? a == 0 ? 1 : x->dims[a - 1] : x->dims[a];
    const int64_t each = dims[axis];
    for (int a = 0; a < rank; a++) {
        outer *= a < axis ? dims[a] : 1;
        inner *= a > axis ? dims[a] : 1;
    }
    dims[axis] = n;
    HnTensor *y = hn_tensor_new(x->dtype, rank, dims, budget, error);
    for (int64_t i = 0; y != NULL && i < n && i / each < count; i++)
        for (int64_t k = 0; k < outer; k++)
            hn_tensor_copy_elements(y, (k * n + i) * inner, t[i / each], (k * each + i % each) * inner, inner);
    return y;
}

/* What the original takes where the new model takes x. */
static HnTensor *for_original(const HnFacePixels *p, HnTensor *x, HnDtype dtype, GError **error)
{
    int64_t dims[HN_MAX_RANK];
    const int rank = x->ndim;
    for (int a = 0; a < rank; a++)
        dims[a] = !p->nhwc || a == 0 ? x->dims[a] : a == 1 ? x->dims[rank - 1] : x->dims[a - 1];
    HnTensor *y = hn_tensor_new(dtype, rank, dims, NULL, error);
    const int64_t batch = dims[0], channels = p->nhwc ? dims[1] : p->channels_last ? dims[rank - 1] : dims[1];
    const int64_t area = batch * channels > 0 ? x->n / (batch * channels) : 0;
    for (int64_t i = 0; y != NULL && i < x->n; i++) {
        const int64_t n = i / (channels * area), rest = i % (channels * area);
        const int64_t c = p->channels_last ? rest % channels : rest / area, at = rest % area;
        double v = hn_tensor_get_f64(x, p->nhwc ? (n * area + at) * channels + c : i);
        if (p->u8 && p->n_mean > 0)
            v -= p->mean[p->n_mean > 1 ? c : 0];
        if (p->u8 && p->n_scale > 0)
            v /= p->scale[p->n_scale > 1 ? c : 0];
        hn_tensor_set_f64(y, i, v);
    }
    return y;
}

static const HnFacePixels *pixels_of(const Check *k, const HnValue *v)
{
    for (guint i = 0; i < k->o->pixels->len; i++)
        if (!strcmp(((const HnFacePixels *)k->o->pixels->pdata[i])->input, v->name))
            return k->o->pixels->pdata[i];
    return NULL;
}

static const HnFaceFree *freed_of(const Check *k, const HnValue *v)
{
    for (guint i = 0; i < k->o->free->len; i++)
        if (!strcmp(((const HnFaceFree *)k->o->free->pdata[i])->input, v->name))
            return k->o->free->pdata[i];
    return NULL;
}

static const HnValue *input_at(const HnModel *m, int i)
{
    for (guint k = 0; k < m->graph->inputs->len; k++) {
        const HnValue *v = m->graph->inputs->pdata[k];
        if (!hn_value_is_weight(v) && i-- == 0)
            return v;
    }
    return NULL;
}

/* --- the original ------------------------------------------------------------------------------------------------- */

/* A sample whose sizes the original accepts, into k->shapes; what is the same for all samples comes from it. */
static HnSamples *first_sample(Check *k, GError **error)
{
    g_autoptr(HnModel) m = hn_model_copy(k->original);
    const HnSamplesOptions so = { .backend = k->c->backend,
                                  .threads = k->c->threads,
                                  .seed = k->c->seed,
                                  .samples = 1,
                                  .shapes = k->c->shapes,
                                  .given_names = k->c->given_names,
                                  .given = k->c->given,
                                  .budget = k->c->budget,
                                  .progress = k->c->progress };
    HnSamples *s = hn_samples_new(m, &so, error);
    if (s != NULL)
        k->shapes = hn_shapes_copy(hn_samples_sizes(s, 0));
    return s;
}

/* For run r, in the form of the new model; *y: for the original. */
static HnTensor *make_input(const Check *k, const HnSamples *s, int r, int i, HnTensor **y, GError **error)
{
    const HnValue *v = input_at(k->original, i);
    const HnFacePixels *p = pixels_of(k, v);
    HnTensor *first = hn_samples_inputs(s, 0)[i], *x = NULL;
    if (first == NULL)
        return *y = NULL;
    if (p == NULL && (r == 0 || freed_of(k, v) == NULL)) {
        *y = hn_tensor_ref(first);
        return hn_tensor_ref(first);
    }
    const HnRng all = hn_rng(k->c->seed);
    HnRng rng = hn_rng_split(&all, (uint64_t)(1000 + r * 64 + i));
    if (p == NULL) {
        x = hn_random_tensor(rng, v, k->shapes, k->c->budget, error);
        *y = x != NULL ? hn_tensor_ref(x) : NULL;
        return x;
    }
    int64_t dims[HN_MAX_RANK];
    for (int a = 0; a < first->ndim; a++)
        dims[a] = !p->nhwc || a == 0 ? first->dims[a] : a == first->ndim - 1 ? first->dims[1] : first->dims[a + 1];
    x = hn_tensor_new(p->u8 ? HN_U8 : first->dtype, first->ndim, dims, k->c->budget, error);
    for (int64_t e = 0; x != NULL && e < x->n; e++)
        hn_tensor_set_f64(x, e, p->u8 ? (double)hn_rng_int(&rng, 0, 255) : hn_rng_normal(&rng));
    *y = x != NULL ? for_original(p, x, first->dtype, error) : NULL;
    return x;
}

static gboolean run_original(Check *k, const HnSamples *s, GError **error)
{
    g_autoptr(HnModel) m = hn_model_copy(k->original);
    const HnSessionOptions so = { .threads = k->c->threads, .budget = k->c->budget, .seed = k->c->seed };
    g_autoptr(HnSession) session = hn_session_new(m, k->c->backend, &so, error);
    if (session == NULL)
        return FALSE;
    g_autoptr(GPtrArray) in = g_ptr_array_new_with_free_func((GDestroyNotify)hn_tensor_unref);
    g_autofree HnTensor **out = g_new0(HnTensor *, (gsize)k->n_out + 1);
    for (int r = 0; r < k->runs; r++) {
        g_ptr_array_set_size(in, 0);
        for (int i = 0; i < k->n_in; i++) {
            HnTensor *y;
            HnTensor *x = make_input(k, s, r, i, &y, error);
            k->in[r * k->n_in + i] = x;
            g_ptr_array_add(in, y);
            if (*error != NULL)
                return FALSE;
        }
        if (!hn_session_run(session, (HnTensor *const *)in->pdata, out, error))
            return FALSE;
        for (int o = 0; o < k->n_out; o++) {
            k->out[r * k->n_out + o] = out[o] != NULL ? hn_tensor_copy(out[o], k->c->budget, error) : NULL;
            g_clear_pointer(&out[o], hn_tensor_unref);
        }
        if (*error != NULL || (k->c->progress != NULL && hn_progress_stop(k->c->progress, error)))
            return FALSE;
    }
    return TRUE;
}

/* --- what the new one shall say ----------------------------------------------------------------------------------- */

static void rows_along(const HnTensor *x, int64_t *outer, int64_t *n, int64_t *inner)
{
    gboolean ones = x->ndim > 2;
    *outer = *inner = 1;
    for (int a = 2; a < x->ndim; a++)
        ones = ones && x->dims[a] == 1;
    *n = x->dims[ones ? 1 : x->ndim - 1];
    *outer = *n > 0 ? x->n / *n : 0;
}

static void softmax(HnTensor *x)
{
    int64_t outer, n, inner;
    rows_along(x, &outer, &n, &inner);
    for (int64_t r = 0; r < outer; r++) {
        double most = -INFINITY, sum = 0;
        for (int64_t i = 0; i < n; i++)
            most = MAX(most, hn_tensor_get_f64(x, r * n + i));
        for (int64_t i = 0; i < n; i++)
            sum += exp(hn_tensor_get_f64(x, r * n + i) - most);
        for (int64_t i = 0; i < n; i++)
            hn_tensor_set_f64(x, r * n + i, exp(hn_tensor_get_f64(x, r * n + i) - most) / sum);
    }
}

/* got, places among the rows of x, hold the largest: what lies there is what `values` says, largest first. */
static gboolean are_best(const HnTensor *x, const HnTensor *values, const HnTensor *places, double tolerance)
{
    int64_t outer, n, inner;
    rows_along(x, &outer, &n, &inner);
    const int64_t k = outer > 0 ? values->n / outer : 0;
    for (int64_t r = 0; r < outer; r++) {
        double least = INFINITY;
        gboolean seen_more = FALSE;
        for (int64_t i = 0; i < k; i++) {
            const int64_t at = hn_tensor_get_i64(places, r * k + i);
            const double v = hn_tensor_get_f64(values, r * k + i);
            if (at < 0 || at >= n || v > least || fabs(hn_tensor_get_f64(x, r * n + at) - v) > tolerance)
                return FALSE;
            least = v;
        }
        int64_t more = 0;
        for (int64_t i = 0; i < n; i++)
            more += hn_tensor_get_f64(x, r * n + i) > least + tolerance;
        seen_more = more > k;
        if (seen_more)
            return FALSE;
    }
    return TRUE;
}

static const HnFaceScores *scores_at(const Check *k, int o)
{
    const HnGraph *g = k->original->graph;
    for (guint i = 0; i < k->o->scores->len; i++) {
        const HnFaceScores *s = k->o->scores->pdata[i];
        const HnValue *v = g->outputs->pdata[o];
        if (s->output != NULL ? !strcmp(s->output, v->name) : hn_dtype_in(hn_type_dtype(v->type), HN_T_FLOATS))
            return s;
    }
    return NULL;
}

static double largest_of(const HnTensor *t)
{
    double most = 0;
    for (int64_t i = 0; i < t->n && !hn_dtype_is_refs(t->dtype); i++) {
        const double v = fabs(hn_tensor_get_f64(t, i));
        most = isfinite(v) && v > most ? v : most;
    }
    return most;
}

static gboolean differ(const Check *k, int o, int64_t n, const char *why, GError **error)
{
    const HnValue *v = k->f->model->graph->outputs->pdata[o];
    g_set_error(error, HN_ERROR, HN_ERROR_GUARD,
                "with %" PRId64 " samples output '%s' is not what single runs make: %s", n, v->name, why);
    return FALSE;
}

static gboolean compare(Check *k, int o, int64_t n, HnTensor *const *got, GError **error)
{
    const HnFaceScores *s = scores_at(k, o);
    const int axis = k->f->batch != NULL ? k->f->batch[o] : -1;
    HnTensor *first = k->out[o];
    g_autofree HnTensor **parts = g_new0(HnTensor *, (gsize)k->runs + 1);
    if (first == NULL || got[o] == NULL)
        return first == got[o] || differ(k, o, n, "one of them has no value", error);
    for (int r = 0; r < k->runs; r++)
        parts[r] = k->out[r * k->n_out + o];
    const gboolean lead = axis == 0 && got[o]->ndim == first->ndim + 1;
    g_autoptr(HnTensor) want = axis >= 0 && !hn_tensor_is_list(first)
                                   ? rows_of(parts, k->runs, axis, lead, n, k->c->budget, error)
                                   : hn_tensor_copy(first, k->c->budget, error);
    if (want == NULL)
        return FALSE;
    if (s != NULL && s->softmax)
        softmax(want);
    const gboolean half = want->dtype == HN_F16 || want->dtype == HN_BF16;
    const HnTolerance t = { .rtol = isnan(k->c->rtol) ? half ? 1e-2 : 1e-3 : k->c->rtol,
                            .atol = isnan(k->c->atol) ? (half ? 4e-3 : 1e-4) * largest_of(want) : k->c->atol,
                            .min_cos = NAN };
    HnDiff d;
    if (s != NULL && s->top_k > 0)
        return are_best(want, got[o], got[k->n_out], t.atol + t.rtol * largest_of(want)) ||
               differ(k, o, n, "they are not the best", error);
    if (!hn_compare(got[o], want, &t, &d)) {
        g_autofree char *why = hn_diff_describe(&d, got[o], want, &t);
        return differ(k, o, n, why, error);
    }
    k->f->worst = MAX(k->f->worst, t.atol > 0 && isfinite(d.max_abs) ? d.max_abs / t.atol : 0);
    return TRUE;
}

/* --- the new one -------------------------------------------------------------------------------------------------- */

static gboolean run_new(Check *k, HnSession *session, int64_t n, GError **error)
{
    const int n_out = hn_session_n_outputs(session);
    g_autoptr(GPtrArray) in = g_ptr_array_new_with_free_func((GDestroyNotify)hn_tensor_unref);
    g_autofree HnTensor **parts = g_new0(HnTensor *, (gsize)k->runs + 1), **out = g_new0(HnTensor *, (gsize)n_out + 1);
    for (int i = 0; i < k->n_in; i++) {
        const HnFaceFree *free = k->f->mixes == NULL ? freed_of(k, input_at(k->original, i)) : NULL;
        const HnFacePixels *p = pixels_of(k, input_at(k->original, i));
        for (int r = 0; r < k->runs; r++)
            parts[r] = k->in[r * k->n_in + i];
        const int axis = free == NULL ? 0 : p == NULL || !p->nhwc || free->axis == 0 ? free->axis : -1;
        HnTensor *x = free == NULL || parts[0] == NULL
                          ? parts[0] != NULL ? hn_tensor_ref(parts[0]) : NULL
                          : rows_of(parts, k->runs, MAX(axis, 0), FALSE, n, k->c->budget, error);
        g_ptr_array_add(in, x);
        if (x == NULL && parts[0] != NULL)
            return FALSE;
    }
    if (!hn_session_run(session, (HnTensor *const *)in->pdata, out, error)) {
        g_prefix_error(error, "with %" PRId64 " samples the new model does not run: ", n);
        return FALSE;
    }
    gboolean ok = TRUE;
    for (int o = 0; o < k->n_out && ok; o++)
        ok = compare(k, o, n, out, error);
    for (int o = 0; o < n_out; o++)
        g_clear_pointer(&out[o], hn_tensor_unref);
    return ok;
}

/* Output o has the sizes that the model declares, with `size` for what was freed. */
static gboolean declared(const Check *k, int o, const HnTensor *got, int64_t size, GError **error)
{
    const HnValue *v = k->f->model->graph->outputs->pdata[o];
    g_autoptr(GHashTable) names = g_hash_table_new(g_str_hash, g_str_equal);
    g_hash_table_insert(names, ((HnFaceFree *)k->o->free->pdata[0])->symbol, &size);
    for (int a = 0; got != NULL && a < hn_type_rank(v->type); a++) {
        int64_t n;
        if (got->ndim == v->type->rank && (!hn_dim_eval(v->type->dims[a], names, &n) || n == got->dims[a]))
            continue;
        g_set_error(error, HN_ERROR, HN_ERROR_GUARD, "with a size of %" PRId64 " output '%s' is not as declared", size,
                    v->name);
        return FALSE;
    }
    return TRUE;
}

/* By itself, at another size. */
static gboolean run_at(Check *k, HnSession *session, int64_t size, GError **error)
{
    const int n_out = hn_session_n_outputs(session);
    g_autoptr(GPtrArray) in = g_ptr_array_new_with_free_func((GDestroyNotify)hn_tensor_unref);
    g_autofree HnTensor **out = g_new0(HnTensor *, (gsize)n_out + 1);
    for (int i = 0; i < k->n_in; i++) {
        const HnValue *v = hn_session_input(session, i);
        g_autoptr(HnShapes) s = hn_shapes_new();
        HnTensor *x = k->in[i];
        int64_t dims[HN_MAX_RANK];
        for (int a = 0; x != NULL && a < x->ndim; a++) {
            const HnDim d = v->type->dims[a];
            const gboolean free =
                d.sym != NULL && g_str_has_prefix(d.sym, ((HnFaceFree *)k->o->free->pdata[0])->symbol);
            dims[a] = free ? MAX(1, x->dims[a] * size / k->f->n0) : x->dims[a];
        }
        if (x != NULL)
            hn_shapes_set(s, v->name, dims, x->ndim);
        const HnRng all = hn_rng(k->c->seed);
        const gboolean same = x == NULL || freed_of(k, input_at(k->original, i)) == NULL;
        x = same ? x != NULL ? hn_tensor_ref(x) : NULL
                 : hn_random_tensor(hn_rng_split(&all, (uint64_t)i), v, s, k->c->budget, error);
        g_ptr_array_add(in, x);
        if (x == NULL && k->in[i] != NULL)
            return FALSE;
    }
    if (!hn_session_run(session, (HnTensor *const *)in->pdata, out, error)) {
        g_prefix_error(error, "with a size of %" PRId64 " the new model does not run: ", size);
        if (!hn_samples_is_final(*error))
            (*error)->code = HN_ERROR_GUARD;
        return FALSE;
    }
    gboolean ok = TRUE;
    for (int o = 0; o < n_out; o++) {
        ok = ok && declared(k, o, out[o], size, error);
        g_clear_pointer(&out[o], hn_tensor_unref);
    }
    return ok;
}

static gboolean run_sizes(Check *k, GError **error)
{
    static const int64_t sizes[] = { 1, 3, MOST };
    g_autoptr(HnModel) m = hn_model_copy(k->f->model);
    const HnSessionOptions so = { .threads = k->c->threads, .budget = k->c->budget, .seed = k->c->seed };
    g_autoptr(HnSession) session = hn_session_new(m, k->c->backend, &so, error);
    if (session == NULL)
        return FALSE;
    const gboolean samples = k->o->free->len > 0 && k->f->mixes == NULL;
    const guint n = samples ? G_N_ELEMENTS(sizes) : 1;
    for (guint i = 0; i < n; i++)
        if (!run_new(k, session, samples ? sizes[i] : 1, error))
            return FALSE;
    k->f->sizes = n;
    if (k->f->mixes == NULL)
        return TRUE;
    k->f->sizes = 3;
    return run_at(k, session, 2 * k->f->n0, error) &&
           run_at(k, session, k->f->n0 % 2 == 0 ? k->f->n0 / 2 : 3 * k->f->n0, error);
}

gboolean hn_face_check(const HnModel *m, const HnFaceOptions *o, const HnFaceCheck *c, HnFaced *f, GError **error)
{
    GError *failure = NULL;
    Check k = { .o = o, .c = c, .f = f, .original = m, .n_out = (int)m->graph->outputs->len };
    while (input_at(m, k.n_in) != NULL)
        k.n_in++;
    k.runs = o->free->len == 0 || f->mixes != NULL ? 1 : (int)((MOST + f->n0 - 1) / MAX(f->n0, 1));
    k.in = g_new0(HnTensor *, (gsize)k.runs * (gsize)k.n_in + 1);
    k.out = g_new0(HnTensor *, (gsize)k.runs * (gsize)k.n_out + 1);
    g_autoptr(HnSamples) s = first_sample(&k, &failure);
    const gboolean ok = s != NULL && run_original(&k, s, &failure) && run_sizes(&k, &failure);
    for (int i = 0; i < k.runs * k.n_in; i++)
        g_clear_pointer(&k.in[i], hn_tensor_unref);
    for (int i = 0; i < k.runs * k.n_out; i++)
        g_clear_pointer(&k.out[i], hn_tensor_unref);
    g_free(k.in);
    g_free(k.out);
    hn_shapes_free(k.shapes);
    if (!ok)
        g_propagate_error(error, failure);
    return ok;
}
