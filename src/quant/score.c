#include "quant/score.h"

#include <math.h>
#include <string.h>

#include "check/compare.h"

#define LEAST_CLASSES 8

typedef struct {
    HnSample *sample;
    HnTensor **out;
} Kept;

struct HnScorer {
    HnScorerOptions o;
    int n_in, n_out;
    GPtrArray *kept; /* Kept * */
    gboolean labelled, classes;
    HnScore original;
};

static const char *const names[] = { "top1", "cos", "sqnr" };

gboolean hn_metric_name_parse(const char *name, HnMetric *metric, GError **error)
{
    for (gsize i = 0; i < G_N_ELEMENTS(names); i++)
        if (strcmp(name, names[i]) == 0) {
            *metric = (HnMetric)i;
            return TRUE;
        }
    g_set_error(error, HN_ERROR, HN_ERROR_USAGE, "metric '%s' is none of top1, cos, sqnr", name);
    return FALSE;
}

const char *hn_metric_name(HnMetric metric)
{
    return names[metric];
}

/* --- running ------------------------------------------------------------------------------------------------------ */

static void kept_free(const HnScorer *s, Kept *k)
{
    for (int i = 0; k->out != NULL && i < s->n_out; i++)
        hn_tensor_unref(k->out[i]);
    g_free(k->out);
    hn_sample_free(k->sample);
    g_free(k);
}

static HnTensor **run_sample(const HnScorer *s, HnSession *session, const HnSample *sample, GError **error)
{
    g_autofree HnTensor **out = g_new0(HnTensor *, (gsize)s->n_out + 1);
    HnTensor **copy = g_new0(HnTensor *, (gsize)s->n_out + 1);
    gboolean ok = hn_session_run(session, sample->in, out, error);
    for (int k = 0; k < s->n_out; k++) {
        if (ok && out[k] != NULL)
            ok = (copy[k] = hn_tensor_copy(out[k], s->o.budget, error)) != NULL;
        hn_tensor_unref(out[k]);
    }
    if (ok)
        return copy;
    for (int k = 0; k < s->n_out; k++)
        hn_tensor_unref(copy[k]);
    g_free(copy);
    return NULL;
}

static HnSession *open_session(const HnScorer *s, HnModel *m, GError **error)
{
    const HnSessionOptions o = { .threads = s->o.threads, .budget = s->o.budget };
    return hn_session_new(m, s->o.backend, &o, error);
}

/* --- scores ------------------------------------------------------------------------------------------------------- */

typedef struct {
    int64_t rows, right;
    double cos, worst_cos;
    guint n_cos;
    double signal, noise;
} Sums;

static int64_t best_of(const HnTensor *t, int64_t row, int64_t n)
{
    int64_t best = 0;
    double most = -INFINITY;
    for (int64_t i = 0; i < n; i++) {
        const double x = hn_tensor_get_f64(t, row * n + i);
        if (x > most) {
            most = x;
            best = i;
        }
    }
    return best;
}

static void add_classes(Sums *sums, const HnTensor *got, const HnTensor *want, const HnTensor *label)
{
    if (got == NULL || want == NULL || got->n != want->n || want->ndim < 1)
        return;
    int64_t n = 1, rows;
    for (int i = want->ndim - 1; i >= 0 && n == 1; i--) /* [N, C, 1, 1] too */
        n = want->dims[i];
    rows = n > 0 ? want->n / n : 0;
    for (int64_t r = 0; r < rows; r++) {
        const int64_t right = label != NULL && label->n == rows ? hn_tensor_get_i64(label, r) : best_of(want, r, n);
        sums->right += best_of(got, r, n) == right;
        sums->rows++;
    }
}

static void add_output(Sums *sums, const HnTensor *got, const HnTensor *want)
{
    const HnTolerance any = { INFINITY, INFINITY, NAN };
    HnDiff d;
    if (got == NULL || want == NULL || !hn_dtype_in(want->dtype, HN_T_FLOATS) || want->n == 0)
        return;
    hn_compare_numbers(got, want, &any, &d);
    const double cos = isfinite(d.cos) ? d.cos : 0;
    sums->cos += cos;
    sums->worst_cos = fmin(sums->worst_cos, cos);
    sums->n_cos++;
    for (int64_t i = 0; i < want->n && got->n == want->n; i++) {
        const double w = hn_tensor_get_f64(want, i), e = hn_tensor_get_f64(got, i) - w;
        sums->signal += isfinite(w) ? w * w : 0;
        sums->noise += isfinite(e) ? e * e : 0;
    }
}

static void add_sample(const HnScorer *s, Sums *sums, HnTensor *const *got, const Kept *k)
{
    if (s->classes)
        add_classes(sums, got[0], k->out[0], k->sample->label);
    for (int i = 0; i < s->n_out; i++)
        add_output(sums, got[i], k->out[i]);
}

static void finish(const Sums *sums, HnScore *score)
{
    score->top1 = sums->rows > 0 ? (double)sums->right / (double)sums->rows : NAN;
    score->cos = sums->n_cos > 0 ? sums->cos / sums->n_cos : 1;
    score->worst_cos = sums->n_cos > 0 ? sums->worst_cos : 1;
    score->sqnr = sums->noise > 0 ? 10 * log10(sums->signal / sums->noise) : INFINITY;
}

double hn_score_drop(HnMetric metric, const HnScore *score, const HnScore *original)
{
    switch (metric) {
    case HN_METRIC_TOP1:
        return original->top1 - score->top1;
    case HN_METRIC_COS:
        return original->cos - score->cos;
    case HN_METRIC_SQNR:
        return isfinite(score->sqnr) ? pow(10, -score->sqnr / 20) : 0;
    }
    return INFINITY;
}

/* --- the scorer --------------------------------------------------------------------------------------------------- */

static gboolean looks_like_classes(const HnScorer *s)
{
    const HnTensor *t = s->kept->len > 0 ? ((const Kept *)s->kept->pdata[0])->out[0] : NULL;
    if (t == NULL || !hn_dtype_in(t->dtype, HN_T_FLOATS) || t->ndim < 1)
        return FALSE;
    int wide = 0;
    int64_t n = 0;
    for (int i = t->ndim > 1; i < t->ndim; i++) /* one axis beside the batch is longer than 1 */
        if (t->dims[i] > 1) {
            wide++;
            n = t->dims[i];
        }
    return wide == 1 && n >= LEAST_CLASSES;
}

HnScorer *hn_scorer_new(HnModel *original, const HnData *d, int64_t first, int64_t n, const HnScorerOptions *o,
                        GError **error)
{
    g_autoptr(HnScorer) s = g_new0(HnScorer, 1);
    s->o = *o;
    s->kept = g_ptr_array_new();
    g_autoptr(HnSession) session = open_session(s, original, error);
    if (session == NULL)
        return NULL;
    s->n_in = hn_session_n_inputs(session);
    s->n_out = hn_session_n_outputs(session);
    for (int64_t i = 0; i < n; i++) {
        if (o->progress != NULL && hn_progress_stop(o->progress, error))
            return NULL;
        Kept *k = g_new0(Kept, 1);
        g_ptr_array_add(s->kept, k);
        k->sample = hn_data_load(d, first + i, error);
        if (k->sample == NULL || (k->out = run_sample(s, session, k->sample, error)) == NULL)
            return NULL;
        s->labelled = s->labelled || k->sample->label != NULL;
    }
    s->classes = s->n_out > 0 && (s->labelled || looks_like_classes(s));
    Sums sums = { .worst_cos = 1 };
    for (guint i = 0; i < s->kept->len; i++)
        add_sample(s, &sums, ((const Kept *)s->kept->pdata[i])->out, s->kept->pdata[i]);
    finish(&sums, &s->original);
    return g_steal_pointer(&s);
}

void hn_scorer_free(HnScorer *s)
{
    if (s == NULL)
        return;
    for (guint i = 0; i < s->kept->len; i++)
        kept_free(s, s->kept->pdata[i]);
    g_ptr_array_unref(s->kept);
    g_free(s);
}

gboolean hn_scorer_run(HnScorer *s, HnModel *m, HnScore *score, GError **error)
{
    g_autoptr(HnSession) session = open_session(s, m, error);
    Sums sums = { .worst_cos = 1 };
    for (guint i = 0; session != NULL && i < s->kept->len; i++) {
        Kept *k = s->kept->pdata[i];
        if (s->o.progress != NULL && hn_progress_stop(s->o.progress, error))
            return FALSE;
        HnTensor **out = run_sample(s, session, k->sample, error);
        if (out == NULL)
            return FALSE;
        add_sample(s, &sums, out, k);
        for (int i2 = 0; i2 < s->n_out; i2++)
            hn_tensor_unref(out[i2]);
        g_free(out);
    }
    finish(&sums, score);
    return session != NULL;
}

void hn_scorer_original(const HnScorer *s, HnScore *score)
{
    *score = s->original;
}

gboolean hn_scorer_has_classes(const HnScorer *s)
{
    return s->classes;
}

guint hn_scorer_samples(const HnScorer *s)
{
    return s->kept->len;
}

HnTensor *const *hn_scorer_inputs(const HnScorer *s, guint i)
{
    return ((const Kept *)s->kept->pdata[i])->sample->in;
}
