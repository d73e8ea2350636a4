#include "perf/weight_stats.h"

#include <math.h>

#include "op/linear.h"

#define DEAD 1e-6

/* Elements as float, as many at a time as fit. */
#define CHUNK 4096

static void load(const HnTensor *t, int64_t at, int n, double *x)
{
    if (t->dtype == HN_F32 && !t->misaligned) {
        const float *from = (const float *)t->data + at;
        for (int i = 0; i < n; i++)
            x[i] = (double)from[i];
        return;
    }
    for (int i = 0; i < n; i++)
        x[i] = hn_tensor_get_f64(t, at + i);
}

/* The axis of output channels as the node that computes with it sees it; -1: it is no such weight. */
static int channel_axis(const HnValue *v, const HnTensor *t)
{
    for (guint i = 0; i < v->users->len; i++) {
        HnLinearView l;
        if (hn_op_linear(v->users->pdata[i], &l) && l.w == v)
            return l.out < t->ndim ? l.out : -1;
    }
    return -1;
}

/* Sums over all elements; the largest magnitude of each channel goes to largest (NULL: not asked for). */
static void scan(HnWeightReport *r, int64_t inner, double *largest)
{
    const HnTensor *t = r->tensor;
    double x[CHUNK], sum = 0, squares = 0;
    int64_t zeros = 0, finite = 0;
    r->min = INFINITY;
    r->max = -INFINITY;
    for (int64_t at = 0; at < t->n; at += CHUNK) {
        int n = (int)MIN(t->n - at, CHUNK);
        load(t, at, n, x);
        for (int i = 0; i < n; i++) {
            zeros += x[i] == 0;
            if (!isfinite(x[i]))
                continue;
            finite++;
            sum += x[i];
            squares += x[i] * x[i];
            r->min = fmin(r->min, x[i]);
            r->max = fmax(r->max, x[i]);
            if (largest) {
                double *most = &largest[(at + i) / inner % r->channels];
                *most = fmax(*most, fabs(x[i]));
            }
        }
    }
    double n = (double)finite;
    r->not_finite = t->n - finite;
    r->zeros = t->n ? (double)zeros / (double)t->n : NAN;
    r->mean = finite ? sum / n : NAN;
    r->stddev = finite ? sqrt(fmax(squares / n - r->mean * r->mean, 0)) : NAN;
    if (!finite)
        r->min = r->max = NAN;
}

void hn_weight_scan(const HnTensor *t, HnWeightReport *r)
{
    r->tensor = t;
    scan(r, 1, NULL);
}

static void look_at(const HnValue *v, GArray *out)
{
    const HnTensor *t = v->weight;
    HnWeightReport r = { .value = v, .tensor = t, .user = v->users->len ? v->users->pdata[0] : NULL };
    int64_t inner = 1;
    r.axis = channel_axis(v, t);
    for (int i = r.axis + 1; r.axis >= 0 && i < t->ndim; i++)
        inner *= t->dims[i];
    r.channels = r.axis >= 0 ? t->dims[r.axis] : 0;
    g_autofree double *largest = r.channels > 0 && t->n > 0 ? g_try_new0(double, r.channels) : NULL;
    scan(&r, inner, largest);
    double bar = DEAD * fmax(fabs(r.min), fabs(r.max));
    for (int64_t k = 0; largest && k < r.channels; k++)
        r.dead += !(largest[k] > bar);
    g_array_append_val(out, r);
}

static void look_into(const HnGraph *g, GArray *out)
{
    for (guint i = 0; i < g->weights->len; i++) {
        const HnValue *v = g->weights->pdata[i];
        if (v->weight && v->weight->dtype != HN_STRING && !v->weight->unloaded)
            look_at(v, out);
    }
    for (guint i = 0; i < g->inner->len; i++)
        look_into(g->inner->pdata[i], out);
}

GArray *hn_weights_report(const HnGraph *g)
{
    GArray *out = g_array_new(FALSE, FALSE, sizeof(HnWeightReport));
    look_into(g, out);
    return out;
}
