#include "export/verify.h"

#include <math.h>
#include <string.h>

#include "check/outputs.h"
#include "data/random.h"
#include "op/infer.h"

/* Tried one after the other for dimensions that are open. */
static const int64_t sizes[] = { 1, 2, 8, 16, 32, 64, 128, 224, 256, 320, 512, 576, 640, 1024, 16000 };
#define MOST_CHOICES 3  /* numbers that branches hang on, each tried */
#define MOST_NAMELESS 3 /* inputs of which both sizes are tried for dimensions without a name */

#define MOST_ELEMENTS ((int64_t)1 << 24) /* of a made-up sample: sizes that make more are not tried */

typedef struct {
    HnTensor **in, **out;
    HnShapes *shapes;
} Sample;

struct HnVerify {
    const HnVerifyOptions *o;
    HnModel *original;
    HnSession *session; /* until the samples have been run */
    int n_in, n_out;
    const HnValue **in, **out; /* of the original's graph */
    GPtrArray *samples;        /* Sample * */
    gboolean synthetic;
    GString *text;
};

/* --- samples ------------------------------------------------------------------------------------------------------ */

static void sample_free(const HnVerify *v, Sample *s)
{
    hn_outputs_free(s->in, v->n_in);
    hn_outputs_free(s->out, v->n_out);
    hn_shapes_free(s->shapes);
    g_free(s);
}

/* Runs the original; keeps what comes out. */
static gboolean run_original(HnVerify *v, Sample *s, GError **error)
{
    s->out = hn_outputs_run(v->session, s->in, v->o->budget, error);
    return s->out != NULL;
}

/* The k-th number (from 1) that the model compares this input's only element with, where there are so many. */
static void choose(const HnValue *x, HnTensor *t, int k)
{
    double c[MOST_CHOICES];
    if (t->n == 1 && k > 0 && k <= hn_random_choices(x, c, MOST_CHOICES))
        hn_tensor_set_f64(t, 0, c[k - 1]);
}

static gboolean make_inputs(HnVerify *v, Sample *s, uint64_t stream, int choice, GError **error)
{
    const HnRng root = hn_rng(v->o->seed);
    int64_t elements = 0;
    s->in = g_new0(HnTensor *, (gsize)v->n_in + 1);
    for (int i = 0; i < v->n_in; i++) {
        const HnValue *x = v->in[i];
        int64_t dims[HN_MAX_RANK], n = 0;
        int rank = hn_shapes_dims(s->shapes, x, dims, error);
        if (rank < 0)
            return FALSE;
        if (!hn_dims_count(rank, dims, &n) || n > MOST_ELEMENTS || (elements += n) > MOST_ELEMENTS) {
            g_set_error(error, HN_ERROR, HN_ERROR_UNSUPPORTED, "inputs are too large to be made up: give data");
            return FALSE;
        }
        s->in[i] =
            hn_random_tensor(hn_rng_split(&root, stream * 4096 + (uint64_t)i), x, s->shapes, v->o->budget, error);
        if (s->in[i] == NULL)
            return FALSE;
        choose(x, s->in[i], choice);
    }
    return TRUE;
}

/* An input whose file leaves dimensions open without a name, others than the first. */
static gboolean is_nameless(const HnValue *x)
{
    const HnType *t = x->type;
    for (int a = 1; t != NULL && t->kind == HN_TYPE_TENSOR && a < t->rank; a++)
        if (!t->dims[a].known && t->dims[a].sym == NULL)
            return TRUE;
    return FALSE;
}

/* Sizes for one sample, and what its single numbers are. */
typedef struct {
    int64_t first, other; /* of open dimensions in front, and of others */
    int choice;           /* 0: as they come, k: the k-th number that the model compares them with */
    guint small;          /* bit i: the i-th nameless input has `first` for the others too */
} Sizes;

static void size_nameless(HnShapes *s, const HnValue *x, const Sizes *z, gboolean small)
{
    const HnType *t = x->type;
    int64_t dims[HN_MAX_RANK], n;
    if (t == NULL || t->kind != HN_TYPE_TENSOR || t->rank <= 0 || t->rank > HN_MAX_RANK || hn_shapes_says(s, x, 0, &n))
        return;
    for (int a = 0; a < t->rank; a++)
        dims[a] = t->dims[a].known ? t->dims[a].n : a == 0 || small ? z->first : t->dims[a].sym == NULL ? z->other : 1;
    for (int a = 0; a < t->rank; a++)
        if (t->dims[a].sym != NULL && hn_shapes_says(s, x, a, &n))
            dims[a] = n;
    hn_shapes_set(s, x->name, dims, t->rank);
}

/* Gives every open dimension that nothing is said of a size. FALSE: there is none. */
static gboolean size_dims(const HnVerify *v, HnShapes *s, const Sizes *z)
{
    gboolean open = FALSE;
    guint nameless = 0;
    int64_t n;
    for (int pass = 0; pass < 2; pass++) { /* what is in front somewhere counts as such everywhere */
        for (int i = 0; i < v->n_in; i++) {
            const HnValue *x = v->in[i];
            const HnType *t = x->type;
            for (int a = 0; t != NULL && t->kind == HN_TYPE_TENSOR && a < t->rank; a++) {
                open = open || !t->dims[a].known;
                if ((a == 0) == (pass == 0) && t->dims[a].sym != NULL && !hn_shapes_says(s, x, a, &n))
                    hn_shapes_set_dim(s, t->dims[a].sym, pass == 0 ? z->first : z->other);
            }
        }
    }
    for (int i = 0; i < v->n_in; i++) {
        const HnValue *x = v->in[i];
        const HnType *t = x->type;
        gboolean unnamed = is_nameless(x);
        if (unnamed ||
            (t != NULL && t->kind == HN_TYPE_TENSOR && t->rank > 0 && !t->dims[0].known && t->dims[0].sym == NULL))
            size_nameless(s, x, z, unnamed && (z->small >> nameless & 1) != 0);
        nameless += unnamed && nameless < MOST_NAMELESS;
    }
    return open;
}

static void describe(HnVerify *v, const Sample *s)
{
    if (v->n_in == 0)
        return;
    if (v->text->len > 0)
        g_string_append(v->text, " and ");
    for (int i = 0; i < MIN(v->n_in, 3); i++) {
        g_string_append_printf(v->text, "%s%s:", i > 0 ? "," : "", v->in[i]->name);
        for (int a = 0; a < s->in[i]->ndim; a++)
            g_string_append_printf(v->text, "%s%" PRId64, a > 0 ? "x" : "", s->in[i]->dims[a]);
    }
    if (v->n_in > 3)
        g_string_append(v->text, ",...");
}

/* One more sample of these sizes, where the original accepts them. */
static gboolean try_sizes(HnVerify *v, const Sizes *z, gboolean *open, GError **error)
{
    Sample *s = g_new0(Sample, 1);
    s->shapes = hn_shapes_copy(v->o->shapes);
    *open = size_dims(v, s->shapes, z);
    if (make_inputs(v, s, v->samples->len, z->choice, error) && run_original(v, s, error)) {
        if (v->samples->len < 2)
            describe(v, s);
        g_ptr_array_add(v->samples, s);
        return TRUE;
    }
    sample_free(v, s);
    return FALSE;
}

/* The first of the sizes from `at` on that the original accepts, into *z; its place, or -1: none. The first error is
 * kept. */
static int find_size(HnVerify *v, int64_t first, int at, Sizes *z, gboolean *open, GError **error)
{
    guint nameless = 0;
    *open = TRUE;
    for (int i = 0; i < v->n_in && nameless < MOST_NAMELESS; i++)
        nameless += is_nameless(v->in[i]);
    for (int i = at; i < (int)G_N_ELEMENTS(sizes); i++) {
        for (guint small = 0; small < 1u << nameless && *open; small++) {
            GError *failure = NULL;
            *z = (Sizes){ first, sizes[i], 0, small };
            if (v->o->progress != NULL && hn_progress_stop(v->o->progress, NULL))
                return -1;
            if (try_sizes(v, z, open, &failure))
                return i;
            if (error != NULL && *error == NULL)
                *error = failure;
            else
                g_clear_error(&failure);
        }
    }
    return -1;
}

static int most_choices(const HnVerify *v)
{
    double c[MOST_CHOICES];
    int most = 0;
    for (int i = 0; i < v->n_in; i++) {
        const gboolean one = ((const Sample *)v->samples->pdata[0])->in[i]->n == 1;
        const int n = one ? hn_random_choices(v->in[i], c, MOST_CHOICES) : 0;
        most = MAX(most, n);
    }
    return most;
}

/* The model did not run on anything made up: by a mistake of its own, or other data might do. */
static void tell_failure(HnVerify *v, GError *failure, GError **error)
{
    GError *mistake = NULL;
    if (!hn_graph_infer(v->original->graph, TRUE, &mistake) && hn_error_exit_status(mistake) == 1) {
        g_error_free(failure);
        failure = g_steal_pointer(&mistake);
    } else if (!g_error_matches(failure, HN_ERROR, HN_ERROR_BUDGET)) {
        failure->code = HN_ERROR_UNSUPPORTED;
    }
    g_clear_error(&mistake);
    g_propagate_error(error, failure);
}

static gboolean make_samples(HnVerify *v, GError **error)
{
    gboolean open;
    Sizes z[2];
    GError *failure = NULL;
    v->synthetic = TRUE;
    const int at = find_size(v, 1, 0, &z[0], &open, &failure);
    if (at < 0) {
        if (v->o->progress != NULL && hn_progress_stop(v->o->progress, error)) {
            g_error_free(failure);
            return FALSE;
        }
        tell_failure(v, failure, error);
        return FALSE;
    }
    g_clear_error(&failure);
    const int choices = most_choices(v);
    const gint64 wanted = v->o->samples > 0 ? v->o->samples : (open ? 2 : 1) + choices;
    const gboolean second =
        open && wanted > 1 &&
        (find_size(v, 2, at + 1, &z[1], &open, NULL) >= 0 || find_size(v, 1, at + 1, &z[1], &open, NULL) >= 0);
    for (int k = 0; (gint64)v->samples->len < wanted; k++) {
        if (v->o->progress != NULL && hn_progress_stop(v->o->progress, error))
            return FALSE;
        Sizes *next = &z[second && v->samples->len % 2 == 1];
        next->choice = choices > 0 ? (k + 1) % (choices + 1) : 0;
        if (try_sizes(v, next, &open, NULL))
            continue;
        if (next->choice == 0 || k > choices) /* a branch that these shapes do not fit is left out */
            break;
    }
    return v->o->progress == NULL || !hn_progress_stop(v->o->progress, error);
}

static gboolean read_samples(HnVerify *v, GError **error)
{
    g_autofree HnValue **inputs = g_new0(HnValue *, (gsize)v->n_in + 1);
    for (int i = 0; i < v->n_in; i++)
        inputs[i] = (HnValue *)v->in[i];
    const HnDataOptions o = { .budget = v->o->budget, .seed = v->o->seed, .shapes = v->o->shapes };
    g_autoptr(HnData) d = hn_data_open(v->o->source, inputs, v->n_in, &o, error);
    if (d == NULL)
        return FALSE;
    const int64_t n = MIN(hn_data_count(d), v->o->samples > 0 ? v->o->samples : 8);
    v->synthetic = hn_data_synthetic(d);
    for (int64_t i = 0; i < n; i++) {
        g_autoptr(HnSample) loaded = hn_data_load(d, i, error);
        if (loaded == NULL || (v->o->progress != NULL && hn_progress_stop(v->o->progress, error)))
            return FALSE;
        Sample *s = g_new0(Sample, 1);
        s->in = g_steal_pointer(&loaded->in);
        loaded->n = 0;
        s->shapes = hn_shapes_copy(v->o->shapes);
        g_ptr_array_add(v->samples, s);
        if (!run_original(v, s, error)) {
            g_prefix_error(error, "sample '%s': ", loaded->name);
            return FALSE;
        }
    }
    if (n == 0)
        g_set_error(error, HN_ERROR, HN_ERROR_USAGE, "'%s' holds no samples", v->o->source);
    return n > 0;
}

static void list_values(HnVerify *v)
{
    v->n_in = hn_session_n_inputs(v->session);
    v->n_out = hn_session_n_outputs(v->session);
    v->in = g_new0(const HnValue *, (gsize)v->n_in + 1);
    v->out = g_new0(const HnValue *, (gsize)v->n_out + 1);
    for (int i = 0; i < v->n_in; i++)
        v->in[i] = hn_session_input(v->session, i);
    for (int k = 0; k < v->n_out; k++)
        v->out[k] = hn_session_output(v->session, k);
}

HnVerify *hn_verify_new(HnModel *original, const HnVerifyOptions *o, GError **error)
{
    HnVerify *v = g_new0(HnVerify, 1);
    const HnSessionOptions so = { .threads = o->threads, .seed = o->seed, .budget = o->budget, .plan_cache = 2 };
    v->o = o;
    v->original = original;
    v->samples = g_ptr_array_new();
    v->text = g_string_new(NULL);
    v->session = hn_session_new(original, o->backend, &so, error);
    gboolean ok = v->session != NULL;
    if (ok) {
        list_values(v);
        ok = o->source != NULL ? read_samples(v, error) : make_samples(v, error);
    }
    if (!ok) {
        hn_verify_free(v);
        return NULL;
    }
    g_clear_pointer(&v->session, hn_session_free); /* candidates need the memory */
    return v;
}

void hn_verify_free(HnVerify *v)
{
    if (v == NULL)
        return;
    for (guint i = 0; i < v->samples->len; i++)
        sample_free(v, v->samples->pdata[i]);
    g_ptr_array_unref(v->samples);
    hn_session_free(v->session);
    g_free(v->in);
    g_free(v->out);
    g_string_free(v->text, TRUE);
    g_free(v);
}

guint hn_verify_samples(const HnVerify *v)
{
    return v->samples->len;
}

gboolean hn_verify_synthetic(const HnVerify *v)
{
    return v->synthetic;
}

const char *hn_verify_shapes(const HnVerify *v)
{
    return v->text->str;
}

const HnShapes *hn_verify_sizes(const HnVerify *v, guint i)
{
    return ((const Sample *)v->samples->pdata[i])->shapes;
}

HnTensor *hn_verify_input(const HnVerify *v, guint i, const HnValue *input)
{
    const Sample *s = v->samples->pdata[i];
    for (int k = 0; k < v->n_in; k++) {
        HnTensor *t = s->in[k];
        if (strcmp(v->in[k]->name, input->name) != 0 || t == NULL)
            continue;
        const HnType *type = input->type;
        const HnDtype want = type != NULL && type->kind == HN_TYPE_TENSOR ? type->dtype : t->dtype;
        if (want == t->dtype || !hn_dtype_in(t->dtype, HN_T_FLOATS) || !hn_dtype_in(want, HN_T_FLOATS))
            return hn_tensor_ref(t);
        HnTensor *c = hn_tensor_new_uninit(want, t->ndim, t->dims, v->o->budget, NULL);
        for (int64_t e = 0; c != NULL && e < t->n; e++)
            hn_tensor_set_f64(c, e, hn_tensor_get_f64(t, e));
        return c;
    }
    return NULL;
}

/* --- tolerance ---------------------------------------------------------------------------------------------------- */

/* What one rounding costs in the coarsest of the halves that values of g are known to have, relative; 0: there are
 * none. */
static double coarsest(const HnGraph *g)
{
    double unit = 0;
    GHashTableIter iter;
    gpointer value;
    g_hash_table_iter_init(&iter, g->values);
    while (g_hash_table_iter_next(&iter, NULL, &value)) {
        const HnValue *v = value;
        const HnDtype d = v->weight != NULL                                    ? v->weight->dtype
                          : v->type != NULL && v->type->kind == HN_TYPE_TENSOR ? v->type->dtype
                                                                               : HN_UNDEFINED;
        unit = MAX(unit, d == HN_BF16 ? 0x1p-8 : d == HN_F16 ? 0x1p-11 : 0);
    }
    for (guint i = 0; i < g->inner->len; i++) {
        const double inner = coarsest(g->inner->pdata[i]);
        unit = MAX(unit, inner);
    }
    return unit;
}

void hn_verify_tolerance(const HnVerify *v, double *rtol, double *atol)
{
    const double unit = coarsest(v->original->graph);
    if (isnan(*rtol))
        *rtol = MAX(1e-3, 8 * unit);
    if (isnan(*atol))
        *atol = MAX(1e-4, 4 * unit);
}

/* --- candidates --------------------------------------------------------------------------------------------------- */

typedef struct {
    const HnVerify *v;
    HnSession *session;
    double rtol, atol;
    HnVerified *out;
} Judge;

static void blame(Judge *j, char *why)
{
    j->out->equal = FALSE;
    if (j->out->why == NULL)
        j->out->why = why;
    else
        g_free(why);
}

static double largest(const HnTensor *t)
{
    double most = 0;
    if (!hn_dtype_in(t->dtype, HN_T_FLOATS))
        return 0;
    for (int64_t i = 0; i < t->n; i++) {
        double a = t->dtype == HN_F32 ? fabs((double)((const float *)t->data)[i]) : fabs(hn_tensor_get_f64(t, i));
        if (isfinite(a) && a > most)
            most = a;
    }
    return most;
}

static void compare(Judge *j, int k, const HnTensor *got, const HnTensor *want)
{
    HnVerifyRow *row = &j->out->row[k];
    if (got == NULL || want == NULL) {
        row->equal = row->equal && got == want;
        return;
    }
    const gboolean floats = hn_dtype_in(want->dtype, HN_T_FLOATS) && hn_dtype_in(got->dtype, HN_T_FLOATS);
    const double scale = largest(want);
    const HnTolerance tol = { floats ? j->rtol : 0, floats ? j->atol * scale : 0, NAN };
    HnDiff d;
    gboolean equal = floats ? hn_compare_numbers(got, want, &tol, &d) : hn_compare(got, want, &tol, &d);
    row->scale = MAX(row->scale, scale);
    if (d.n > 0 && d.max_abs > row->max_abs)
        row->max_abs = d.max_abs;
    if (d.n > 0 && d.max_abs > 0)
        j->out->worst = MAX(j->out->worst, scale > 0 ? d.max_abs / scale : INFINITY);
    if (equal)
        return;
    if (row->why == NULL)
        row->why = hn_diff_describe(&d, got, want, &tol);
    row->equal = FALSE;
    blame(j, g_strdup_printf("output '%s': %s", row->name, row->why));
}

static void judge_sample(Judge *j, guint sample)
{
    const Sample *s = j->v->samples->pdata[sample];
    const int n_in = hn_session_n_inputs(j->session), n_out = j->v->n_out;
    g_autofree HnTensor **in = g_new0(HnTensor *, (gsize)n_in + 1), **out = g_new0(HnTensor *, (gsize)n_out + 1);
    GError *error = NULL;
    for (int i = 0; i < n_in; i++)
        in[i] = hn_verify_input(j->v, sample, hn_session_input(j->session, i));
    if (!hn_session_run(j->session, in, out, &error)) {
        blame(j, g_strdup_printf("the new model does not run: %s", error->message));
        g_error_free(error);
    } else {
        for (int k = 0; k < n_out; k++) {
            compare(j, k, out[k], s->out[k]);
            hn_tensor_unref(out[k]);
        }
    }
    for (int i = 0; i < n_in; i++)
        hn_tensor_unref(in[i]);
}

void hn_verify(const HnVerify *v, HnModel *candidate, double rtol, double atol, guint samples, HnVerified *out)
{
    const HnSessionOptions o = {
        .threads = v->o->threads, .seed = v->o->seed, .budget = v->o->budget, .plan_cache = 2
    };
    GError *error = NULL;
    *out = (HnVerified){ .n = (guint)v->n_out, .row = g_new0(HnVerifyRow, (gsize)v->n_out + 1), .equal = TRUE };
    for (int k = 0; k < v->n_out; k++) {
        out->row[k].name = v->out[k]->name;
        out->row[k].equal = TRUE;
    }
    Judge j = { v, hn_session_new(candidate, v->o->backend, &o, &error), rtol, atol, out };
    if (j.session == NULL || hn_session_n_outputs(j.session) != v->n_out) {
        blame(&j, g_strdup_printf("the new model does not run: %s", error != NULL ? error->message : "other outputs"));
        g_clear_error(&error);
    } else {
        for (guint i = 0; i < v->samples->len && (samples == 0 || i < samples); i++) {
            if (v->o->progress != NULL && hn_progress_stop(v->o->progress, NULL)) {
                blame(&j, g_strdup("interrupted"));
                break;
            }
            judge_sample(&j, i);
        }
    }
    hn_session_free(j.session);
}

void hn_verified_clear(HnVerified *out)
{
    for (guint k = 0; k < out->n; k++)
        g_free(out->row[k].why);
    g_clear_pointer(&out->row, g_free);
    g_clear_pointer(&out->why, g_free);
}
