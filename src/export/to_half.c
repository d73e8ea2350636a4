/*
 * The conversion of precision, with as many nodes left alone as the results ask for.
 *
 * Ranges seen on the samples keep what would overflow. Where results are then still too far from the original's, groups
 * of nodes are converted one at a time, and those that cost most precision alone stay as they are: as few as bring the
 * error down to what is aimed at.
 */
#include <math.h>

#include "check/ranges.h"
#include "export/private.h"
#include "onnx/onnx.h"

#define MOST_GROUPS 64
#define MOST_KEPT 0.8 /* of the groups: beyond that nothing is left of the conversion */

typedef struct {
    const HnExportOptions *o;
    const HnVerify *verify;
    HnPrecisionOptions p;
    GBytes *bytes;    /* of the model before the conversion */
    GPtrArray *sites; /* char *: nodes that may be converted, in order */
    guint groups;
    double aim;
} Half;

/* Shows the probe all samples. */
static gboolean watch(const HnVerify *v, HnRangeProbe *w, GError **error)
{
    const int n = hn_range_probe_n_inputs(w);
    g_autofree HnTensor **in = g_new0(HnTensor *, (gsize)n + 1);
    gboolean ok = TRUE;
    for (guint s = 0; s < hn_samples_count(hn_verify_samples(v)) && ok; s++) {
        for (int i = 0; i < n; i++)
            in[i] = NULL;
        for (int i = 0; i < n && ok; i++)
            ok = hn_samples_input(hn_verify_samples(v), s, hn_range_probe_input(w, i), &in[i], error);
        ok = ok && hn_range_probe_run(w, in, error);
        for (int i = 0; i < n; i++)
            hn_tensor_unref(in[i]);
    }
    return ok;
}

static HnModel *open_bytes(const Half *h, GError **error)
{
    return hn_onnx_read_bytes(h->bytes, NULL, &(HnOnnxOptions){ .budget = h->p.budget }, error);
}

/* Converts a fresh copy with these groups left alone, into *m and *log; how far off it is, infinite where it does not
 * run, NaN with an error. */
static double try_groups(Half *h, const gboolean *keep, HnModel **m, HnPrecisionLog *log, HnVerified *v, GError **error)
{
    g_autoptr(GPtrArray) names = g_ptr_array_new();
    HnPrecisionOptions p = h->p;
    if (h->o->progress != NULL && hn_progress_stop(h->o->progress, error))
        return NAN;
    for (guint i = 0; i < h->sites->len; i++)
        if (keep[i * h->groups / h->sites->len])
            g_ptr_array_add(names, h->sites->pdata[i]);
    g_ptr_array_add(names, NULL);
    p.keep = (const char *const *)names->pdata;
    hn_precision_log_init(log);
    *m = open_bytes(h, error);
    if (*m == NULL || !hn_convert_precision(*m, &p, log, error) ||
        !hn_verify(h->verify, *m, &(HnVerifyTolerance){ .part = h->aim }, 0, v, error))
        return NAN;
    return v->equal ? 0 : isfinite(v->worst) && v->worst > 0 ? v->worst : INFINITY;
}

static double try_only(Half *h, const gboolean *keep, GError **error)
{
    g_autoptr(HnModel) m = NULL;
    HnPrecisionLog log;
    HnVerified v = { 0 };
    double off = try_groups(h, keep, &m, &log, &v, error);
    off = off == 0 ? v.worst : off;
    hn_precision_log_clear(&log);
    hn_verified_clear(&v);
    return off;
}

/* Groups by what they cost alone, the worst first. */
static guint *ranking(Half *h, GError **error)
{
    g_autofree gboolean *keep = g_new(gboolean, h->groups);
    g_autofree double *off = g_new(double, h->groups);
    guint *order = g_new(guint, h->groups);
    for (guint g = 0; g < h->groups; g++) {
        for (guint i = 0; i < h->groups; i++)
            keep[i] = i != g;
        hn_progress_tell(h->o->progress, "precision", g, h->groups);
        off[g] = try_only(h, keep, error);
        if (isnan(off[g])) {
            g_free(order);
            return NULL;
        }
        guint at = g;
        for (; at > 0 && off[order[at - 1]] < off[g]; at--)
            order[at] = order[at - 1];
        order[at] = g;
    }
    return order;
}

static void take(HnExported *x, HnModel **m, HnPrecisionLog *log, HnVerified *v)
{
    hn_model_free(x->model);
    hn_precision_log_clear(&x->precision);
    hn_verified_clear(&x->verified);
    x->model = g_steal_pointer(m);
    x->precision = *log;
    x->verified = *v;
}

/* As few of the costliest groups as possible stay, at most `most`. FALSE with an error; *found: it was enough. */
static gboolean find_kept(Half *h, HnExported *x, const guint *order, guint most, gboolean *found, GError **error)
{
    guint bad = 0, good = most + 1;
    *found = FALSE;
    for (guint k = 1; bad + 1 < good; k = MAX(k, bad + 1)) {
        g_autofree gboolean *keep = g_new0(gboolean, h->groups);
        HnModel *m = NULL;
        HnPrecisionLog log;
        HnVerified v = { 0 };
        for (guint i = 0; i < k; i++)
            keep[order[i]] = TRUE;
        const double off = try_groups(h, keep, &m, &log, &v, error);
        if (off == 0) {
            take(x, &m, &log, &v);
            *found = TRUE;
            good = k;
        } else {
            hn_precision_log_clear(&log);
            hn_verified_clear(&v);
            bad = k;
        }
        hn_model_free(m);
        if (isnan(off))
            return FALSE;
        k = good > most ? MIN(2 * k, most) : (bad + good) / 2;
    }
    return TRUE;
}

/* Nodes that the conversion, as it is now, has converted. */
static void list_sites(Half *h, const HnPrecisionLog *log)
{
    h->sites = g_ptr_array_new_with_free_func(g_free);
    for (guint i = 0; i < log->nodes->len; i++) {
        const HnPrecisionNode *n = log->nodes->pdata[i];
        if (n->kept == HN_KEPT_NOT)
            g_ptr_array_add(h->sites, g_strdup(n->site));
    }
    h->groups = MIN(h->sites->len, MOST_GROUPS);
}

/* From the error that the whole conversion has to the one aimed at, or to twice that and so on, up to what is allowed,
 * which has to be reached. */
static gboolean refine(Half *h, HnExported *x, GError **error)
{
    const gboolean enough = x->verified.equal;
    gboolean found = FALSE;
    if (x->verified.worst <= h->aim && enough)
        return TRUE;
    list_sites(h, &x->precision);
    g_autofree guint *order = h->groups > 1 ? ranking(h, error) : NULL;
    if (h->groups > 1 && order == NULL)
        return FALSE;
    for (; order != NULL && !found && h->aim <= h->o->half_tol; h->aim *= 2)
        if (!find_kept(h, x, order, MAX((guint)(MOST_KEPT * h->groups), 1), &found, error))
            return FALSE;
    if (found || enough)
        return TRUE;
    g_set_error(error, HN_ERROR, HN_ERROR_GUARD, "%s is not precise enough: %s", hn_dtype_name(h->p.to),
                x->verified.why);
    return FALSE;
}

gboolean hn_export_half(const HnExportOptions *o, const HnVerify *verify, HnExported *x, GError **error)
{
    Half h = { .o = o,
               .verify = verify,
               .p = { .to = o->to, .keep_io = o->keep_io, .keep_checked = TRUE, .budget = o->pass.budget } };
    g_autoptr(HnModel) seen = NULL; /* outlives the probe */
    g_autoptr(HnRangeProbe) w = NULL;
    hn_precision_log_init(&x->precision);
    x->converted = TRUE;
    if (verify == NULL || o->to == HN_F32)
        return hn_convert_precision(x->model, &h.p, &x->precision, error);
    const HnRangeProbeOptions wo = { .budget = h.p.budget, .progress = o->progress };
    /* made-up samples show less than real ones: they get a quarter of what is allowed */
    h.aim = hn_samples_synthetic(hn_verify_samples(verify)) ? o->half_tol / 4 : o->half_tol;
    hn_model_name_apart(x->model); /* ranges go by name */
    h.bytes = hn_onnx_write_bytes(x->model, h.p.budget, error);
    gboolean ok = h.bytes != NULL && (seen = open_bytes(&h, error)) != NULL &&
                  (w = hn_range_probe_new(seen, o->backend, &wo, error)) != NULL && watch(verify, w, error);
    if (ok) {
        h.p.ranges = hn_range_probe_ranges(w);
        ok = hn_convert_precision(x->model, &h.p, &x->precision, error);
    }
    if (ok) {
        hn_verified_clear(&x->verified);
        ok = hn_verify(verify, x->model, &(HnVerifyTolerance){ .part = o->half_tol }, 0, &x->verified, error) &&
             refine(&h, x, error);
    }
    g_clear_pointer(&h.bytes, g_bytes_unref);
    g_clear_pointer(&h.sites, g_ptr_array_unref);
    g_clear_pointer(&w, hn_range_probe_free);
    return ok;
}
