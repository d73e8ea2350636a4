#include "export/verify.h"

#include <math.h>
#include <string.h>

#include "check/kinds.h"
#include "check/outputs.h"
#include "check/recipe.h"
#include "data/random.h"
#include "export/private.h"
#include "op/infer.h"

/* Tried one after the other for dimensions that are open. */
static const int64_t sizes[] = {
    1, 2, 8, 16, 32, 64, 128, 224, 256, 320, 512, 576, 640, 1024, 2048, 4096, 8192, 16000
};
#define MOST_CHOICES 3  /* numbers that branches hang on, each tried */
#define MOST_NAMELESS 3 /* inputs of which both sizes are tried for dimensions without a name */

#define MOST_ELEMENTS ((int64_t)1 << 24) /* of a made-up sample: sizes that make more are not tried */

/* Nor are those whose run would need more memory than this, and than some times what the first does that can be
 * planned: it is the smallest, and there are models that need much at any size. */
#define MOST_MEMORY ((gsize)256 << 20)
#define MOST_TIMES 4

/* What f32 may leave of the largest magnitude in numbers that others cancel out of. */
#define ROUNDING 0x1p-20

typedef struct {
    HnTensor **in, **out;
    HnShapes *shapes;
} Sample;

struct HnVerify {
    const HnVerifyOptions *o;
    int n_in, n_out;
    char **in_name, **out_name;
    GHashTable *in_place; /* in_name[i] -> 1 + i */
    double unit;          /* coarsest() of the original */
    GPtrArray *samples;   /* Sample * */
    HnKinds *kinds;       /* of each output, in all samples */
    gboolean synthetic;
    GString *text;
    /* until the samples have been run: */
    HnModel *original;
    HnSession *session;
    const HnValue **in; /* of the original's graph */
    gboolean limited;   /* what a run may take */
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

/* A run on inputs of these types can be planned. The first that can is the smallest, and says what is too large. */
static gboolean is_affordable(HnVerify *v, HnType *const *in, GError **error)
{
    HnSessionStats stats;
    if (!hn_session_prepare(v->session, in, error))
        return FALSE;
    if (v->limited)
        return TRUE;
    hn_session_stats(v->session, &stats);
    hn_session_limit(v->session, MAX(MOST_MEMORY, MOST_TIMES * (stats.arena_bytes + stats.output_bytes)));
    v->limited = TRUE;
    return TRUE;
}

/* Plans for the sample's sizes before any of its numbers are drawn. */
static gboolean plan_sizes(HnVerify *v, const Sample *s, GError **error)
{
    g_autoptr(GPtrArray) in = g_ptr_array_new_with_free_func((GDestroyNotify)hn_type_unref);
    int64_t elements = 0;
    for (int i = 0; i < v->n_in; i++) {
        const HnValue *x = v->in[i];
        int64_t dims[HN_MAX_RANK], n = 0;
        int rank = hn_shapes_dims(s->shapes, x, dims, error);
        if (rank < 0)
            return FALSE;
        if (!hn_dims_count(rank, dims, &n) || n > MOST_ELEMENTS || (elements += n) > MOST_ELEMENTS) {
            g_set_error(error, HN_ERROR, HN_ERROR_UNSUPPORTED, "input '%s' is too large to be made up: give data",
                        x->name);
            return FALSE;
        }
        if (x->type->kind == HN_TYPE_TENSOR && hn_dtype_in(x->type->dtype, HN_T_COMPUTE))
            g_ptr_array_add(in, hn_type_fixed(x->type->dtype, rank, dims));
    }
    g_ptr_array_add(in, NULL);
    return (int)in->len <= v->n_in || is_affordable(v, (HnType *const *)in->pdata, error);
}

static gboolean make_inputs(HnVerify *v, Sample *s, uint64_t stream, int choice, GError **error)
{
    const HnRng root = hn_rng(v->o->seed);
    s->in = g_new0(HnTensor *, (gsize)v->n_in + 1);
    if (!plan_sizes(v, s, error))
        return FALSE;
    for (int i = 0; i < v->n_in; i++) {
        const HnValue *x = v->in[i];
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

/* One more sample of these sizes, drawn from a stream of its own, where the original accepts them. */
static gboolean try_sizes(HnVerify *v, const Sizes *z, uint64_t stream, gboolean *open, GError **error)
{
    Sample *s = g_new0(Sample, 1);
    s->shapes = hn_shapes_copy(v->o->shapes);
    *open = size_dims(v, s->shapes, z);
    if (make_inputs(v, s, stream, z->choice, error) && run_original(v, s, error)) {
        if (v->samples->len < 2)
            describe(v, s);
        g_ptr_array_add(v->samples, s);
        return TRUE;
    }
    sample_free(v, s);
    return FALSE;
}

/* The first of the sizes from `at` on that the original accepts, into *z; its place, or -1: none. They grow, so that
 * the one that is found costs least, and the first that there is no memory for is the last; that error is kept, else
 * the first. */
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
            if (!(v->o->progress != NULL && hn_progress_stop(v->o->progress, &failure)) &&
                try_sizes(v, z, v->samples->len, open, &failure))
                return i;
            const gboolean final = hn_export_is_final(failure);
            if (final)
                g_clear_error(error);
            if (*error == NULL)
                *error = failure;
            else
                g_error_free(failure);
            if (final)
                return -1;
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
    if (hn_export_is_final(failure)) {
        g_propagate_error(error, failure);
        return;
    }
    if (!hn_graph_infer(v->original->graph, TRUE, &mistake) && hn_error_exit_status(mistake) == 1) {
        g_error_free(failure);
        failure = g_steal_pointer(&mistake);
    } else {
        failure->code = HN_ERROR_UNSUPPORTED;
    }
    g_clear_error(&mistake);
    g_propagate_error(error, failure);
}

/* A second sample of another shape, where there is one: what differs by chance only shows at two of them. */
static gboolean find_second(HnVerify *v, int at, Sizes *z, gboolean *found, GError **error)
{
    GError *failure = NULL;
    gboolean open;
    *found = find_size(v, 2, at + 1, z, &open, &failure) >= 0 ||
             (!hn_export_is_final(failure) && find_size(v, 1, at + 1, z, &open, &failure) >= 0);
    if (!*found && hn_export_is_final(failure)) {
        g_propagate_error(error, failure);
        return FALSE;
    }
    g_clear_error(&failure);
    return TRUE;
}

/* Of `n` more samples those from `from` on in steps of `step`, which are of one shape. Single numbers in them go
 * through what the model compares them with; a branch that these shapes do not fit is left out. `before`: samples that
 * were there before the n. */
static gboolean add_samples(HnVerify *v, Sizes z, gint64 from, gint64 step, gint64 n, guint before, int choices,
                            GError **error)
{
    for (gint64 k = from; k < n; k += step) {
        GError *failure = NULL;
        gboolean open;
        z.choice = choices > 0 ? (int)((k + 1) % (choices + 1)) : 0;
        if (v->o->progress != NULL && hn_progress_stop(v->o->progress, error))
            return FALSE;
        if (try_sizes(v, &z, before + (uint64_t)k, &open, &failure))
            continue;
        if (hn_export_is_final(failure)) {
            g_propagate_error(error, failure);
            return FALSE;
        }
        g_error_free(failure);
        if (z.choice == 0 || k > choices)
            break;
    }
    return TRUE;
}

static gboolean make_samples(HnVerify *v, GError **error)
{
    gboolean open, second = FALSE;
    Sizes z[2];
    GError *failure = NULL;
    v->synthetic = TRUE;
    const int at = find_size(v, 1, 0, &z[0], &open, &failure);
    if (at < 0) {
        tell_failure(v, failure, error);
        return FALSE;
    }
    g_clear_error(&failure);
    const int choices = most_choices(v);
    const gint64 wanted = v->o->samples > 0 ? v->o->samples : (open ? 2 : 1) + choices;
    if (open && wanted > 1 && !find_second(v, at, &z[1], &second, error))
        return FALSE;
    /* shapes take turns by number, but those of one are run together: there is one plan at a time */
    const guint before = v->samples->len;
    const gint64 more = wanted - before;
    return second ? add_samples(v, z[1], 1, 2, more, before, choices, error) &&
                        add_samples(v, z[0], 0, 2, more, before, choices, error)
                  : add_samples(v, z[0], 0, 1, more, before, choices, error);
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
    v->in_name = g_new0(char *, (gsize)v->n_in + 1);
    v->in_place = g_hash_table_new(g_str_hash, g_str_equal);
    v->out_name = g_new0(char *, (gsize)v->n_out + 1);
    for (int i = 0; i < v->n_in; i++) {
        v->in[i] = hn_session_input(v->session, i);
        v->in_name[i] = g_strdup(v->in[i]->name);
        g_hash_table_insert(v->in_place, v->in_name[i], GINT_TO_POINTER(i + 1));
    }
    for (int k = 0; k < v->n_out; k++)
        v->out_name[k] = g_strdup(hn_session_output(v->session, k)->name);
}

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

static void find_kinds(HnVerify *v)
{
    g_autofree HnTensor **t = g_new(HnTensor *, (gsize)v->samples->len + 1);
    v->kinds = g_new0(HnKinds, (gsize)v->n_out + 1);
    for (int k = 0; k < v->n_out; k++) {
        for (guint i = 0; i < v->samples->len; i++)
            t[i] = ((const Sample *)v->samples->pdata[i])->out[k];
        hn_kinds_find(&v->kinds[k], t, v->samples->len);
    }
}

HnVerify *hn_verify_new(HnModel *original, const HnVerifyOptions *o, GError **error)
{
    HnVerify *v = g_new0(HnVerify, 1);
    const HnSessionOptions so = { .threads = o->threads, .seed = o->seed, .budget = o->budget, .plan_cache = 1 };
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
    v->unit = coarsest(original->graph);
    find_kinds(v);
    g_clear_pointer(&v->session, hn_session_free); /* candidates need the memory */
    g_clear_pointer(&v->in, g_free);
    v->original = NULL;
    return v;
}

void hn_verify_free(HnVerify *v)
{
    if (v == NULL)
        return;
    for (guint i = 0; i < v->samples->len; i++)
        sample_free(v, v->samples->pdata[i]);
    g_ptr_array_unref(v->samples);
    for (int k = 0; v->kinds != NULL && k < v->n_out; k++)
        hn_kinds_clear(&v->kinds[k]);
    g_free(v->kinds);
    hn_session_free(v->session);
    g_free(v->in);
    if (v->in_place != NULL)
        g_hash_table_unref(v->in_place);
    g_strfreev(v->in_name);
    g_strfreev(v->out_name);
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

void hn_verify_hash(const HnVerify *v, GChecksum *sum)
{
    for (guint i = 0; i < v->samples->len; i++) {
        const Sample *s = v->samples->pdata[i];
        for (int k = 0; k < v->n_in; k++)
            if (s->in[k] != NULL)
                hn_recipe_hash_tensor(sum, s->in[k]);
    }
}

const HnShapes *hn_verify_sizes(const HnVerify *v, guint i)
{
    return ((const Sample *)v->samples->pdata[i])->shapes;
}

gboolean hn_verify_input(const HnVerify *v, guint i, const HnValue *input, HnTensor **out, GError **error)
{
    const Sample *s = v->samples->pdata[i];
    *out = NULL;
    const int at = GPOINTER_TO_INT(g_hash_table_lookup(v->in_place, input->name));
    HnTensor *t = at > 0 ? s->in[at - 1] : NULL;
    const HnType *type = input->type;
    if (t == NULL)
        return TRUE;
    const HnDtype want = type != NULL && type->kind == HN_TYPE_TENSOR ? type->dtype : t->dtype;
    if (want == t->dtype || !hn_dtype_in(t->dtype, HN_T_FLOATS) || !hn_dtype_in(want, HN_T_FLOATS)) {
        *out = hn_tensor_ref(t);
        return TRUE;
    }
    if ((*out = hn_tensor_new_uninit(want, t->ndim, t->dims, v->o->budget, error)) == NULL)
        return FALSE;
    for (int64_t e = 0; e < t->n; e++)
        hn_tensor_set_f64(*out, e, hn_tensor_get_f64(t, e));
    return TRUE;
}

/* --- tolerance ---------------------------------------------------------------------------------------------------- */

void hn_verify_tolerance(const HnVerify *v, HnVerifyTolerance *t)
{
    if (isnan(t->rtol))
        t->rtol = MAX(1e-3, 8 * v->unit);
    if (isnan(t->part))
        t->part = isnan(t->atol) ? MAX(1e-4, 4 * v->unit) : 0;
    if (isnan(t->atol))
        t->atol = 0;
}

/* --- candidates --------------------------------------------------------------------------------------------------- */

typedef struct {
    const HnVerify *v;
    HnSession *session;
    const HnVerifyTolerance *t;
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

/* Takes the error: the candidate is to blame for it, or it goes to the caller: FALSE. */
static gboolean fails(Judge *j, GError *failure, GError **error)
{
    if (hn_export_is_final(failure)) {
        g_propagate_error(error, failure);
        return FALSE;
    }
    blame(j, g_strdup_printf("the new model does not run: %s", failure->message));
    g_error_free(failure);
    return TRUE;
}

/* Largest magnitudes of the channels' kinds, channel by channel; *largest: of all. */
static double *sizes_of(const Judge *j, const HnKinds *kinds, const HnTensor *want, double *largest)
{
    double *size = g_new0(double, (gsize)kinds->channels + 1);
    g_autofree double *kind = g_new0(double, (gsize)kinds->n + 1);
    const int64_t step = hn_kinds_step(kinds, want);
    const float *f = want->dtype == HN_F32 ? want->data : NULL;
    *largest = 0;
    for (int64_t first = 0; first < want->n; first += step) {
        double *most = &kind[kinds->of[first / step % kinds->channels]];
        for (int64_t i = first; i < first + step; i++) {
            const double a = fabs(f != NULL ? (double)f[i] : hn_tensor_get_f64(want, i));
            *most = isfinite(a) && a > *most ? a : *most;
        }
    }
    for (int k = 0; k < kinds->n; k++)
        *largest = fmax(*largest, kind[k]);
    const double least = j->t->part > 0 ? *largest * ROUNDING / j->t->part : 0;
    for (int64_t c = 0; c < kinds->channels; c++)
        size[c] = fmax(kind[kinds->of[c]], least);
    return size;
}

static void compare(Judge *j, int k, const HnTensor *got, const HnTensor *want)
{
    HnVerifyRow *row = &j->out->row[k];
    if (got == NULL || want == NULL) {
        if (got == want)
            return;
        row->equal = FALSE;
        blame(j, g_strdup_printf("output '%s': %s", row->name, got == NULL ? "it is missing" : "it was absent before"));
        return;
    }
    const gboolean floats = hn_dtype_in(want->dtype, HN_T_FLOATS) && hn_dtype_in(got->dtype, HN_T_FLOATS);
    const HnKinds *kinds = &j->v->kinds[k];
    double scale = 0;
    g_autofree double *size = floats ? sizes_of(j, kinds, want, &scale) : NULL;
    HnTolerance tol = { .min_cos = NAN };
    if (floats)
        tol = (HnTolerance){ .rtol = j->t->rtol,
                             .atol = j->t->atol,
                             .min_cos = NAN,
                             .part = j->t->part,
                             .size = size,
                             .step = hn_kinds_step(kinds, want),
                             .channels = kinds->channels };
    HnDiff d;
    gboolean equal = floats ? hn_compare_numbers(got, want, &tol, &d) : hn_compare(got, want, &tol, &d);
    row->scale = MAX(row->scale, scale);
    if (d.n > 0 && d.max_abs > row->max_abs)
        row->max_abs = d.max_abs;
    if (d.n > 0 && d.max_abs > 0)
        j->out->worst = MAX(j->out->worst, floats ? d.max_part : INFINITY);
    if (equal)
        return;
    if (row->why == NULL)
        row->why = hn_diff_describe(&d, got, want, &tol);
    row->equal = FALSE;
    blame(j, g_strdup_printf("output '%s': %s", row->name, row->why));
}

/* FALSE with an error that says nothing about the candidate. */
static gboolean judge_sample(Judge *j, guint sample, GError **error)
{
    const Sample *s = j->v->samples->pdata[sample];
    const int n_in = hn_session_n_inputs(j->session), n_out = j->v->n_out;
    g_autofree HnTensor **in = g_new0(HnTensor *, (gsize)n_in + 1), **out = g_new0(HnTensor *, (gsize)n_out + 1);
    GError *failure = NULL;
    gboolean ok = TRUE;
    for (int i = 0; ok && i < n_in; i++)
        ok = hn_verify_input(j->v, sample, hn_session_input(j->session, i), &in[i], error);
    const gboolean ran = ok && hn_session_run(j->session, in, out, &failure);
    if (ok && !ran)
        ok = fails(j, failure, error);
    for (int k = 0; ran && k < n_out; k++) {
        compare(j, k, out[k], s->out[k]);
        hn_tensor_unref(out[k]);
    }
    for (int i = 0; i < n_in; i++)
        hn_tensor_unref(in[i]);
    return ok;
}

gboolean hn_verify(const HnVerify *v, HnModel *candidate, const HnVerifyTolerance *t, guint samples, HnVerified *out,
                   GError **error)
{
    const HnSessionOptions o = {
        .threads = v->o->threads, .seed = v->o->seed, .budget = v->o->budget, .plan_cache = 1
    };
    GError *failure = NULL;
    gboolean ok = TRUE;
    *out = (HnVerified){ .n = (guint)v->n_out, .row = g_new0(HnVerifyRow, (gsize)v->n_out + 1), .equal = TRUE };
    for (int k = 0; k < v->n_out; k++) {
        out->row[k].name = v->out_name[k];
        out->row[k].equal = TRUE;
    }
    Judge j = { v, hn_session_new(candidate, v->o->backend, &o, &failure), t, out };
    if (j.session == NULL)
        ok = fails(&j, failure, error);
    else if (hn_session_n_outputs(j.session) != v->n_out)
        blame(&j, g_strdup("the new model does not run: other outputs"));
    const guint n = !out->equal ? 0 : samples > 0 ? MIN(samples, v->samples->len) : v->samples->len;
    for (guint i = 0; ok && i < n; i++)
        ok = !(v->o->progress != NULL && hn_progress_stop(v->o->progress, error)) && judge_sample(&j, i, error);
    hn_session_free(j.session);
    if (!ok)
        hn_verified_clear(out);
    return ok;
}

void hn_verified_clear(HnVerified *out)
{
    for (guint k = 0; k < out->n; k++)
        g_free(out->row[k].why);
    g_free(out->row);
    g_free(out->why);
    *out = (HnVerified){ 0 };
}
