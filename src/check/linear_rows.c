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

/* A window's taps, the last axis fastest. */
typedef struct {
    int64_t first[HN_MAX_RANK]; /* place of its first tap along each axis */
    int64_t tap[HN_MAX_RANK];   /* of the one that is next */
} Walk;

static Walk walk_from(const HnConvPlan *c, int64_t at)
{
    Walk w = { .tap = { 0 } };
    for (int i = c->n - 1; i >= 0; i--) {
        const HnWindowAxis *a = &c->axis[i];
        w.first[i] = at % a->out * a->stride - a->pad;
        at /= a->out;
    }
    return w;
}

/* Where the next tap lies in a plane of x; -1: outside. */
static int64_t next_place(const HnConvPlan *c, Walk *w)
{
    int64_t place = 0;
    for (int i = 0; i < c->n; i++) {
        const HnWindowAxis *a = &c->axis[i];
        const int64_t in = w->first[i] + w->tap[i] * a->dilation;
        place = place < 0 || in < 0 || in >= a->in ? -1 : place * a->in + in;
    }
    for (int i = c->n - 1; i >= 0 && ++w->tap[i] == c->axis[i].kernel; i--)
        w->tap[i] = 0;
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
    Walk walk = walk_from(c, r % c->y_plane);
    x += r / c->y_plane * channels * c->x_plane;
    for (int64_t from = 0; from < p->taps; from += TAPS) {
        const int64_t n = MIN(TAPS, p->taps - from);
        int64_t place[TAPS];
        for (int64_t t = 0; t < n; t++)
            place[t] = next_place(c, &walk);
        for (int64_t i = 0; i < channels; i++) /* its taps are near each other */
            for (int64_t t = 0; t < n; t++)
                row[i * p->taps + from + t] = place[t] >= 0 ? x[i * c->x_plane + place[t]] : 0;
    }
}
