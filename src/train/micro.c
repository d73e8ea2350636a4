#include "train/micro.h"

#include <math.h>
#include <string.h>

#include "base/error.h"
#include "train/open_batch.h"

#define ENOUGH_BYTES ((gsize)16 << 20) /* of an arena: a share of the last cache */
#define OF_OWN 4                       /* or as many times the weights and states, which each part reads and adds to */
#define LEAST_SAMPLES 4                /* of a part */
#define LOOKED_AT 4                    /* samples */
#define NEAR 1e-4                      /* of the largest result: kernels sum differently for other batches */

int hn_micro_parts(gsize arena, gsize own, int64_t batch)
{
    int best = 1;
    for (int64_t p = 2; p <= batch / LEAST_SAMPLES && p < G_MAXINT; p++) {
        if (arena / (gsize)best <= MAX(ENOUGH_BYTES, OF_OWN * own))
            break;
        best = batch % p == 0 ? (int)p : best;
    }
    return best;
}

/* --- do samples have to do with each other? ----------------------------------------------------------------------- */

/* Runs the session on samples [from, from + n). FALSE: it cannot. */
static gboolean run_rows(HnSession *s, HnTensor *const *in, int64_t from, int64_t n, HnTensor **out)
{
    const int n_in = hn_session_n_inputs(s), n_out = hn_session_n_outputs(s);
    g_autofree HnTensor **part = g_new0(HnTensor *, n_in + 1), **made = g_new0(HnTensor *, n_out + 1);
    for (int i = 0; i < n_in; i++) {
        int64_t dims[HN_MAX_RANK];
        memcpy(dims, in[i]->dims, (gsize)in[i]->ndim * sizeof *dims);
        const gsize row = in[i]->bytes / (gsize)dims[0];
        dims[0] = n;
        part[i] = hn_tensor_new_borrowed(in[i]->dtype, in[i]->ndim, dims, (char *)in[i]->data + (gsize)from * row);
    }
    gboolean ok = hn_session_run(s, part, made, NULL);
    for (int k = 0; k < n_out; k++) {
        out[k] = ok ? hn_tensor_copy(made[k], NULL, NULL) : NULL;
        ok = ok && out[k] != NULL;
        hn_tensor_unref(made[k]);
    }
    for (int i = 0; i < n_in; i++)
        hn_tensor_unref(part[i]);
    return ok;
}

/* `part` is what `whole` is from sample `from` on. */
static gboolean is_part(const HnTensor *whole, const HnTensor *part, int64_t from)
{
    double most = 0, apart = 0;
    if (whole->ndim == 0 || part->ndim != whole->ndim || whole->dims[0] != LOOKED_AT ||
        part->n * LOOKED_AT != whole->n * part->dims[0] || whole->dtype == HN_STRING)
        return FALSE;
    const int64_t start = whole->n / LOOKED_AT * from;
    for (int64_t i = 0; i < part->n; i++) {
        const double a = hn_tensor_get_f64(whole, start + i), b = hn_tensor_get_f64(part, i);
        most = MAX(most, fabs(a));
        apart = isfinite(a - b) ? MAX(apart, fabs(a - b)) : INFINITY;
    }
    return apart <= NEAR * most;
}

static gboolean same_both_ways(HnSession *s, HnTensor *const *in)
{
    const int n = hn_session_n_outputs(s);
    g_autofree HnTensor **whole = g_new0(HnTensor *, n + 1), **part = g_new0(HnTensor *, n + 1);
    gboolean same = run_rows(s, in, 0, LOOKED_AT, whole);
    for (int64_t from = 0; from < LOOKED_AT && same; from += LOOKED_AT / 2) {
        same = run_rows(s, in, from, LOOKED_AT / 2, part);
        for (int k = 0; k < n; k++) {
            same = same && is_part(whole[k], part[k], from);
            g_clear_pointer(&part[k], hn_tensor_unref);
        }
    }
    for (int k = 0; k < n; k++)
        hn_tensor_unref(whole[k]);
    return same;
}

gboolean hn_micro_apart(HnModel *m, const HnBackend *backend, HnTensor *const *in)
{
    const HnSessionOptions o = { .threads = 1 };
    m = hn_train_open_batch(m, NULL, NULL);
    HnSession *s = hn_model_prepare(m, NULL) ? hn_session_new(m, backend, &o, NULL) : NULL;
    gboolean apart = s != NULL && hn_session_n_inputs(s) > 0;
    for (int i = 0; apart && i < hn_session_n_inputs(s); i++)
        apart = in[i] != NULL && in[i]->ndim > 0 && in[i]->dims[0] >= LOOKED_AT && in[i]->dims[0] == in[0]->dims[0];
    apart = apart && same_both_ways(s, in);
    hn_session_free(s);
    hn_model_free(m);
    return apart;
}

/* --- trainers ----------------------------------------------------------------------------------------------------- */

/* As few parts as fit, from `least` on. */
static HnTrainer *fewest(const HnMicroOptions *o, int least, int *parts, GError **error)
{
    for (int64_t p = least; p <= o->batch; p++) {
        GError *cause = NULL;
        HnTrainer *t = o->batch % p == 0 ? o->make((int)p, o->data, &cause) : NULL;
        *parts = (int)p;
        if (t != NULL)
            return t;
        if (cause != NULL && (p == o->batch || !g_error_matches(cause, HN_ERROR, HN_ERROR_BUDGET))) {
            g_propagate_error(error, cause);
            return NULL;
        }
        g_clear_error(&cause);
    }
    return NULL;
}

/* The whole batch does not fit: as few parts as do, if that is the same. NULL: it is not, or none fits. */
static HnTrainer *instead(const HnMicroOptions *o, int *parts)
{
    HnTrainer *t = o->batch > 1 && o->apart(o->data) ? fewest(o, 2, parts, NULL) : NULL;
    if (t != NULL && hn_trainer_statistics(t) == 0)
        return t;
    hn_trainer_free(t);
    *parts = 1;
    return NULL;
}

HnTrainer *hn_micro_trainer(const HnMicroOptions *o, int *parts, GError **error)
{
    HnForecast f;
    *parts = 1;
    if (o->fit && o->batch > 0)
        return fewest(o, 1, parts, error);
    GError *cause = NULL;
    HnTrainer *t = o->make(1, o->data, &cause);
    if (t == NULL && g_error_matches(cause, HN_ERROR, HN_ERROR_BUDGET))
        t = instead(o, parts);
    if (t == NULL)
        g_propagate_error(error, cause);
    else
        g_clear_error(&cause);
    if (t == NULL || *parts > 1 || o->batch <= 0 || o->whole || hn_trainer_statistics(t) > 0)
        return t;
    hn_trainer_forecast(t, &f);
    const gsize own = hn_trainer_bytes(t);
    const int n = hn_micro_parts(f.plain - own, own, o->batch);
    if (n == 1 || !o->apart(o->data))
        return t;
    hn_trainer_free(t);
    if ((t = o->make(n, o->data, NULL)) == NULL)
        return o->make(1, o->data, error);
    *parts = n;
    return t;
}
