#include "check/linear_rows.h"

#include <string.h>

#include "op/linear.h"

#define TAPS 32 /* of a window at a time */

static gboolean is_weight(const HnValue *v)
{
    return v != NULL && v->weight != NULL && !v->is_input && v->weight->dtype == HN_F32 && v->weight->n > 0;
}

gboolean hn_linear_rows_of(const HnNode *n, HnLinearRows *p)
{
    HnLinearView l;
    if (!hn_op_linear(n, &l) || l.adjoint || !is_weight(l.w))
        return FALSE;
    const HnTensor *w = l.w->weight;
    *p = (HnLinearRows){ .node = n, .w = w, .groups = l.groups, .axis = l.in, .taps = 1, .x_turned = l.x_turned };
    if (l.window != NULL) {
        if (w->ndim < 3 || w->dims[0] % l.groups != 0)
            return FALSE;
        p->conv = TRUE;
        p->outs = w->dims[0] / l.groups;
        p->k = p->row = w->n / w->dims[0];
        p->col = 1;
        p->taps = p->k / w->dims[1];
        return TRUE;
    }
    if (w->ndim != 2)
        return FALSE;
    p->k = w->dims[l.in];
    p->outs = w->dims[l.out];
    p->row = l.w_turned ? p->k : 1;
    p->col = l.w_turned ? 1 : p->outs;
    return TRUE;
}

int64_t hn_linear_rows_feed(HnLinearRows *p, const HnTensor *x)
{
    p->x = x;
    if (x->dtype != HN_F32 || x->n == 0 || x->ndim < 1)
        return 0;
    if (p->conv) {
        if (!hn_conv_plan(p->node->params, x->ndim, x->dims, p->w->ndim, p->w->dims, &p->plan, NULL))
            return 0;
        return p->plan.batch * p->plan.y_plane;
    }
    if (p->x_turned)
        return x->ndim == 2 && x->dims[0] == p->k ? x->dims[1] : 0;
    return x->dims[x->ndim - 1] == p->k ? x->n / p->k : 0;
}

/* Where tap t of the window at output position `at` lies in a plane of x; -1: outside. */
static int64_t place_of(const HnConvPlan *c, int64_t at, int64_t t)
{
    int64_t place = 0, step = 1;
    for (int i = c->n - 1; i >= 0; i--) {
        const HnWindowAxis *a = &c->axis[i];
        const int64_t in = at % a->out * a->stride + t % a->kernel * a->dilation - a->pad;
        if (in < 0 || in >= a->in)
            return -1;
        place += in * step;
        step *= a->in;
        at /= a->out;
        t /= a->kernel;
    }
    return place;
}

void hn_linear_rows_get(const HnLinearRows *p, int64_t r, float *row)
{
    const float *x = p->x->data;
    if (!p->conv) {
        const int64_t width = p->x_turned ? p->x->dims[1] : 0;
        if (width == 0)
            memcpy(row, x + r * p->k, (gsize)p->k * sizeof *row);
        else
            for (int64_t i = 0; i < p->k; i++)
                row[i] = x[i * width + r];
        return;
    }
    const HnConvPlan *c = &p->plan;
    const int64_t channels = p->groups * p->k / p->taps;
    x += r / c->y_plane * channels * c->x_plane;
    for (int64_t from = 0; from < p->taps; from += TAPS) {
        const int64_t n = MIN(TAPS, p->taps - from);
        int64_t place[TAPS];
        for (int64_t t = 0; t < n; t++)
            place[t] = place_of(c, r % c->y_plane, from + t);
        for (int64_t i = 0; i < channels; i++) /* its taps are near each other */
            for (int64_t t = 0; t < n; t++)
                row[i * p->taps + from + t] = place[t] >= 0 ? x[i * c->x_plane + place[t]] : 0;
    }
}
