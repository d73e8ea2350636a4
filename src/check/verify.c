#include "check/verify.h"

#include <math.h>
#include <string.h>

#include "check/output_kind.h"

/* What f32 may leave of the largest magnitude in numbers that others cancel out of. */
#define ROUNDING 0x1p-20

struct HnVerify {
    const HnSamplesOptions *o;
    HnSamples *samples; /* with the outputs of the original */
    int n_out;
    double unit;           /* coarsest() of the original */
    HnChannelKinds *kinds; /* of each output, in all samples */
    double *turn;          /* of each output: of angles; 0: it holds none */
};

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
        const HnDtype d = v->weight != NULL ? v->weight->dtype : hn_type_dtype(v->type);
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
    const guint n = hn_samples_count(v->samples);
    g_autofree HnTensor **t = g_new(HnTensor *, (gsize)n + 1);
    v->kinds = g_new0(HnChannelKinds, (gsize)v->n_out + 1);
    v->turn = g_new0(double, (gsize)v->n_out + 1);
    for (int k = 0; k < v->n_out; k++) {
        for (guint i = 0; i < n; i++)
            t[i] = hn_samples_output(v->samples, i, k);
        hn_channel_kinds_find(&v->kinds[k], t, n);
        v->turn[k] = hn_output_turn(t, n);
    }
}

HnVerify *hn_verify_new(HnModel *original, const HnSamplesOptions *o, GError **error)
{
    HnSamples *samples = hn_samples_new(original, o, error);
    if (samples == NULL)
        return NULL;
    HnVerify *v = g_new0(HnVerify, 1);
    v->o = o;
    v->samples = samples;
    v->n_out = hn_samples_n_outputs(samples);
    v->unit = coarsest(original->graph);
    find_kinds(v);
    return v;
}

void hn_verify_free(HnVerify *v)
{
    if (v == NULL)
        return;
    for (int k = 0; k < v->n_out; k++)
        hn_channel_kinds_clear(&v->kinds[k]);
    g_free(v->kinds);
    g_free(v->turn);
    hn_samples_free(v->samples);
    g_free(v);
}

const HnSamples *hn_verify_samples(const HnVerify *v)
{
    return v->samples;
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
    if (hn_samples_is_final(failure)) {
        g_propagate_error(error, failure);
        return FALSE;
    }
    blame(j, g_strdup_printf("the new model does not run: %s", failure->message));
    g_error_free(failure);
    return TRUE;
}

/* Largest magnitudes of the channels' kinds, channel by channel; *largest: of all. */
static double *sizes_of(const Judge *j, const HnChannelKinds *kinds, const HnTensor *want, double *largest)
{
    double *size = g_new0(double, (gsize)kinds->channels + 1);
    g_autofree double *kind = g_new0(double, (gsize)kinds->n + 1);
    const int64_t step = hn_channel_kinds_step(kinds, want);
    const float *f = want->dtype == HN_F32 ? want->data : NULL;
    *largest = 0;
    for (int64_t first = 0; first < want->n; first += step) {
        double *most = &kind[kinds->of[first / step % kinds->channels]];
        for (int64_t i = first; i < first + step; i++) {
            const double a = fabs(f != NULL ? (double)f[i] : hn_tensor_get_f64(want, i));
            *most = a < kinds->beyond && isfinite(a) && a > *most ? a : *most;
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
    const HnChannelKinds *kinds = &j->v->kinds[k];
    double scale = 0;
    g_autofree double *size = floats ? sizes_of(j, kinds, want, &scale) : NULL;
    HnTolerance tol = { .min_cos = NAN };
    if (floats)
        tol = (HnTolerance){ .rtol = j->t->rtol,
                             .atol = j->t->atol,
                             .min_cos = NAN,
                             .part = j->t->part,
                             .size = size,
                             .step = hn_channel_kinds_step(kinds, want),
                             .channels = kinds->channels,
                             .turn = j->v->turn[k],
                             .beyond = kinds->beyond };
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
    const int n_in = hn_session_n_inputs(j->session), n_out = j->v->n_out;
    g_autofree HnTensor **in = g_new0(HnTensor *, (gsize)n_in + 1), **out = g_new0(HnTensor *, (gsize)n_out + 1);
    GError *failure = NULL;
    gboolean ok = TRUE;
    for (int i = 0; ok && i < n_in; i++)
        ok = hn_samples_input(j->v->samples, sample, hn_session_input(j->session, i), &in[i], error);
    const gboolean ran = ok && hn_session_run(j->session, in, out, &failure);
    if (ok && !ran)
        ok = fails(j, failure, error);
    for (int k = 0; ran && k < n_out; k++) {
        compare(j, k, out[k], hn_samples_output(j->v->samples, sample, k));
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
        out->row[k].name = hn_samples_output_name(v->samples, k);
        out->row[k].equal = TRUE;
    }
    Judge j = { v, hn_session_new(candidate, v->o->backend, &o, &failure), t, out };
    if (j.session == NULL)
        ok = fails(&j, failure, error);
    else if (hn_session_n_outputs(j.session) != v->n_out)
        blame(&j, g_strdup("the new model does not run: other outputs"));
    const guint all = hn_samples_count(v->samples), n = !out->equal ? 0 : samples > 0 ? MIN(samples, all) : all;
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
