#include "quant/rows.h"

#include <string.h>

#include "op/gemm.h"
#include "pass/rewrite.h"

static gboolean is_weight(const HnValue *v)
{
    return v != NULL && v->weight != NULL && !v->is_input && v->weight->dtype == HN_F32 && v->weight->n > 0;
}

/* Weights [k, outs], or [outs, k] where they are `turned`. */
static void matrix(HnRows *p, gboolean turned)
{
    p->axis = turned ? 1 : 0;
    p->k = p->w->dims[p->axis];
    p->outs = p->w->dims[1 - p->axis];
    p->row = turned ? p->k : 1;
    p->col = turned ? 1 : p->outs;
}

gboolean hn_rows_of(const HnNode *n, HnRows *p)
{
    const HnValue *w = hn_node_in(n, 1);
    if (n->op == NULL || !is_weight(w))
        return FALSE;
    *p = (HnRows){ .node = n, .w = w->weight, .groups = 1, .taps = 1 };
    if (n->op == &hn_op_conv && w->weight->ndim > 2) {
        const HnConv *c = n->params;
        if (c->group < 1 || w->weight->dims[0] % c->group != 0)
            return FALSE;
        p->groups = c->group;
        p->outs = w->weight->dims[0] / c->group;
        p->k = p->row = w->weight->n / w->weight->dims[0];
        p->col = 1;
        p->axis = 1;
        p->taps = p->k / w->weight->dims[1];
        return TRUE;
    }
    if (w->weight->ndim != 2 || (n->op != &hn_op_gemm && n->op != &hn_op_matmul))
        return FALSE;
    matrix(p, n->op == &hn_op_gemm && ((const HnGemmParams *)n->params)->trans_b);
    return TRUE;
}

static gboolean is_turned(const HnNode *n)
{
    return n->op == &hn_op_gemm && ((const HnGemmParams *)n->params)->trans_a;
}

int64_t hn_rows_feed(HnRows *p, const HnTensor *x)
{
    p->x = x;
    if (x->dtype != HN_F32 || x->n == 0 || x->ndim < 1)
        return 0;
    if (p->node->op == &hn_op_conv) {
        if (!hn_conv_plan(p->node->params, x->ndim, x->dims, p->w->ndim, p->w->dims, &p->plan, NULL))
            return 0;
        return p->plan.batch * p->plan.y_plane;
    }
    if (is_turned(p->node))
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

void hn_rows_get(const HnRows *p, int64_t r, float *row)
{
    const float *x = p->x->data;
    if (p->node->op != &hn_op_conv) {
        const int64_t width = is_turned(p->node) ? p->x->dims[1] : 0;
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
    for (int64_t t = 0; t < p->taps; t++) {
        const int64_t place = place_of(c, r % c->y_plane, t);
        for (int64_t i = 0; i < channels; i++)
            row[i * p->taps + t] = place >= 0 ? x[i * c->x_plane + place] : 0;
    }
}
