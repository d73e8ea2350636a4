#include "check/samples.h"

#include <string.h>

#include "check/outputs.h"
#include "check/recipe.h"
#include "data/open_sizes.h"
#include "data/random.h"
#include "op/infer.h"

#define MOST_CHOICES 3 /* numbers that branches hang on, each tried */

#define MOST_ELEMENTS ((int64_t)1 << 24) /* of a made-up sample: sizes that make more are not tried */

/* Nor are those whose run would need more memory than this, and than some times what the first does that can be
 * planned: it is the smallest, and there are models that need much at any size. */
#define MOST_MEMORY ((gsize)256 << 20)
#define MOST_TIMES 4

typedef struct {
    HnTensor **in, **out;
    HnShapes *shapes;
} Sample;

struct HnSamples {
    const HnSamplesOptions *o;
    int n_in, n_out;
    char **in_name, **out_name;
    GHashTable *in_place; /* in_name[i] -> 1 + i */
    GPtrArray *samples;   /* Sample * */
    gboolean synthetic;
    GString *text;
    /* until the samples have been run: */
    HnModel *original;
    HnSession *session;
    const HnValue **in; /* of the original's graph */
    gboolean limited;   /* what a run may take */
};

/* --- samples ------------------------------------------------------------------------------------------------------ */

static void sample_free(const HnSamples *v, Sample *s)
{
    hn_outputs_free(s->in, v->n_in);
    hn_outputs_free(s->out, v->n_out);
    hn_shapes_free(s->shapes);
    g_free(s);
}

/* Runs the original; keeps what comes out. */
static gboolean run_original(HnSamples *v, Sample *s, GError **error)
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
static gboolean is_affordable(HnSamples *v, HnType *const *in, GError **error)
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

/* What input i gets in every sample; NULL: nothing is said. */
static HnTensor *given(const HnSamples *v, int i)
{
    for (int k = 0; v->o->given_names != NULL && v->o->given_names[k] != NULL; k++)
        if (strcmp(v->o->given_names[k], v->in[i]->name) == 0)
            return v->o->given[k];
    return NULL;
}

/* Plans for the sample's sizes before any of its numbers are drawn. */
static gboolean plan_sizes(HnSamples *v, const Sample *s, GError **error)
{
    g_autoptr(GPtrArray) in = g_ptr_array_new_with_free_func((GDestroyNotify)hn_type_unref);
    int64_t elements = 0;
    for (int i = 0; i < v->n_in; i++) {
        const HnValue *x = v->in[i];
        const HnTensor *t = given(v, i);
        int64_t dims[HN_MAX_RANK], n = 0;
        int rank = t != NULL ? t->ndim : hn_shapes_dims(s->shapes, x, dims, error);
        if (rank < 0)
            return FALSE;
        if (t != NULL)
            memcpy(dims, t->dims, (gsize)rank * sizeof *dims);
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

static gboolean make_inputs(HnSamples *v, Sample *s, uint64_t stream, int choice, GError **error)
{
    const HnRng root = hn_rng(v->o->seed);
    s->in = g_new0(HnTensor *, (gsize)v->n_in + 1);
    if (!plan_sizes(v, s, error))
        return FALSE;
    for (int i = 0; i < v->n_in; i++) {
        const HnValue *x = v->in[i];
        if (given(v, i) != NULL) {
            s->in[i] = hn_tensor_ref(given(v, i));
            continue;
        }
        s->in[i] =
            hn_random_tensor(hn_rng_split(&root, stream * 4096 + (uint64_t)i), x, s->shapes, v->o->budget, error);
        if (s->in[i] == NULL)
            return FALSE;
        choose(x, s->in[i], choice);
    }
    return TRUE;
}

/* Sizes for one sample, and what its single numbers are. */
typedef struct {
    HnOpenSizes open;
    int choice; /* 0: as they come, k: the k-th number that the model compares them with */
} Sizes;

static void describe(HnSamples *v, const Sample *s)
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
static gboolean try_sizes(HnSamples *v, const Sizes *z, uint64_t stream, gboolean *open, GError **error)
{
    Sample *s = g_new0(Sample, 1);
    s->shapes = hn_shapes_copy(v->o->shapes);
    *open = hn_open_sizes_fill(s->shapes, v->in, v->n_in, &z->open);
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
static int find_size(HnSamples *v, int64_t first, int at, Sizes *z, gboolean *open, GError **error)
{
    const guint nameless = hn_open_nameless(v->in, v->n_in);
    *open = TRUE;
    for (int i = at; hn_open_size(i) > 0; i++) {
        for (guint small = 0; small < 1u << nameless && *open; small++) {
            GError *failure = NULL;
            *z = (Sizes){ { first, hn_open_size(i), small }, 0 };
            if (!(v->o->progress != NULL && hn_progress_stop(v->o->progress, &failure)) &&
                try_sizes(v, z, v->samples->len, open, &failure))
                return i;
            const gboolean final = hn_samples_is_final(failure);
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

static int most_choices(const HnSamples *v)
{
    double c[MOST_CHOICES];
    int most = 0;
    for (int i = 0; i < v->n_in; i++) {
        const gboolean one = ((const Sample *)v->samples->pdata[0])->in[i]->n == 1 && given(v, i) == NULL;
        const int n = one ? hn_random_choices(v->in[i], c, MOST_CHOICES) : 0;
        most = MAX(most, n);
    }
    return most;
}

/* The model did not run on anything made up: by a mistake of its own, or other data might do. */
static void tell_failure(HnSamples *v, GError *failure, GError **error)
{
    GError *mistake = NULL;
    if (hn_samples_is_final(failure)) {
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
static gboolean find_second(HnSamples *v, int at, Sizes *z, gboolean *found, GError **error)
{
    GError *failure = NULL;
    gboolean open;
    *found = find_size(v, 2, at + 1, z, &open, &failure) >= 0 ||
             (!hn_samples_is_final(failure) && find_size(v, 1, at + 1, z, &open, &failure) >= 0);
    if (!*found && hn_samples_is_final(failure)) {
        g_propagate_error(error, failure);
        return FALSE;
    }
    g_clear_error(&failure);
    return TRUE;
}

/* Of `n` more samples those from `from` on in steps of `step`, which are of one shape. Single numbers in them go
 * through what the model compares them with; a branch that these shapes do not fit is left out. `before`: samples that
 * were there before the n. */
static gboolean add_samples(HnSamples *v, Sizes z, gint64 from, gint64 step, gint64 n, guint before, int choices,
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
        if (hn_samples_is_final(failure)) {
            g_propagate_error(error, failure);
            return FALSE;
        }
        g_error_free(failure);
        if (z.choice == 0 || k > choices)
            break;
    }
    return TRUE;
}

static gboolean all_given(const HnSamples *v)
{
    int n = 0;
    while (n < v->n_in && given(v, n) != NULL)
        n++;
    return v->n_in > 0 && n == v->n_in;
}

static gboolean make_samples(HnSamples *v, GError **error)
{
    gboolean open, second = FALSE;
    Sizes z[2];
    GError *failure = NULL;
    v->synthetic = !all_given(v);
    const int at = find_size(v, 1, 0, &z[0], &open, &failure);
    if (at < 0) {
        tell_failure(v, failure, error);
        return FALSE;
    }
    g_clear_error(&failure);
    const int choices = most_choices(v);
    open = open && v->synthetic;
    const gint64 wanted = !v->synthetic ? 1 : v->o->samples > 0 ? v->o->samples : (open ? 2 : 1) + choices;
    if (open && wanted > 1 && !find_second(v, at, &z[1], &second, error))
        return FALSE;
    /* shapes take turns by number, but those of one are run together: there is one plan at a time */
    const guint before = v->samples->len;
    const gint64 more = wanted - before;
    return second ? add_samples(v, z[1], 1, 2, more, before, choices, error) &&
                        add_samples(v, z[0], 0, 2, more, before, choices, error)
                  : add_samples(v, z[0], 0, 1, more, before, choices, error);
}

static gboolean read_samples(HnSamples *v, GError **error)
{
    g_autofree HnValue **inputs = g_new0(HnValue *, (gsize)v->n_in + 1);
    g_autofree HnTensor **fixed = g_new0(HnTensor *, (gsize)v->n_in + 1);
    for (int i = 0; i < v->n_in; i++) {
        inputs[i] = (HnValue *)v->in[i];
        fixed[i] = given(v, i);
    }
    const HnDataOptions o = { .budget = v->o->budget,
                              .given = fixed,
                              .seed = v->o->seed,
                              .shapes = v->o->shapes,
                              .preprocess = v->o->preprocess,
                              .cache = v->o->cache };
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

static void list_values(HnSamples *v)
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

HnSamples *hn_samples_new(HnModel *m, const HnSamplesOptions *o, GError **error)
{
    HnSamples *v = g_new0(HnSamples, 1);
    const HnSessionOptions so = { .threads = o->threads, .seed = o->seed, .budget = o->budget, .plan_cache = 1 };
    v->o = o;
    v->original = m;
    v->samples = g_ptr_array_new();
    v->text = g_string_new(NULL);
    v->session = hn_session_new(m, o->backend, &so, error);
    gboolean ok = v->session != NULL;
    if (ok) {
        list_values(v);
        ok = o->source != NULL ? read_samples(v, error) : make_samples(v, error);
    }
    if (!ok) {
        hn_samples_free(v);
        return NULL;
    }
    g_clear_pointer(&v->session, hn_session_free); /* others need the memory */
    g_clear_pointer(&v->in, g_free);
    v->original = NULL;
    return v;
}

void hn_samples_free(HnSamples *v)
{
    if (v == NULL)
        return;
    for (guint i = 0; i < v->samples->len; i++)
        sample_free(v, v->samples->pdata[i]);
    g_ptr_array_unref(v->samples);
    hn_session_free(v->session);
    g_free(v->in);
    if (v->in_place != NULL)
        g_hash_table_unref(v->in_place);
    g_strfreev(v->in_name);
    g_strfreev(v->out_name);
    g_string_free(v->text, TRUE);
    g_free(v);
}

guint hn_samples_count(const HnSamples *v)
{
    return v->samples->len;
}

gboolean hn_samples_synthetic(const HnSamples *v)
{
    return v->synthetic;
}

const char *hn_samples_shapes(const HnSamples *v)
{
    return v->text->str;
}

void hn_samples_hash(const HnSamples *v, GChecksum *sum)
{
    for (guint i = 0; i < v->samples->len; i++) {
        const Sample *s = v->samples->pdata[i];
        for (int k = 0; k < v->n_in; k++)
            if (s->in[k] != NULL)
                hn_recipe_hash_tensor(sum, s->in[k]);
    }
}

int hn_samples_n_outputs(const HnSamples *v)
{
    return v->n_out;
}

const char *hn_samples_output_name(const HnSamples *v, int k)
{
    return v->out_name[k];
}

HnTensor *hn_samples_output(const HnSamples *v, guint i, int k)
{
    return ((const Sample *)v->samples->pdata[i])->out[k];
}

const HnShapes *hn_samples_sizes(const HnSamples *v, guint i)
{
    return ((const Sample *)v->samples->pdata[i])->shapes;
}

HnTensor *const *hn_samples_inputs(const HnSamples *v, guint i)
{
    return ((const Sample *)v->samples->pdata[i])->in;
}

gboolean hn_samples_input(const HnSamples *v, guint i, const HnValue *input, HnTensor **out, GError **error)
{
    const Sample *s = v->samples->pdata[i];
    *out = NULL;
    const int at = GPOINTER_TO_INT(g_hash_table_lookup(v->in_place, input->name));
    HnTensor *t = at > 0 ? s->in[at - 1] : NULL;
    return t == NULL || (*out = hn_input_for(input, t, v->o->budget, error)) != NULL;
}
