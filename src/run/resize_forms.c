#include "run/resize_forms.h"

#include <string.h>

#include "op/index.h"
#include "run/move_forms.h"

#define MAX_TAPS 64
#define MOST_BETWEEN ((int64_t)1 << 40) /* elements when each axis has the larger of its two sizes */

#define SIZES 4 /* inputs of Resize; of ResizeGrad, too, whose next one is the gradient */

static const HnTensor *input(const HnStep *s, int i)
{
    return i < s->n_in && s->in[i].slot != NULL ? s->in[i].slot->tensor : NULL;
}

int hn_resize_source(const HnStep *s)
{
    return s->n_in > SIZES ? SIZES : 0;
}

gboolean hn_resize_stays(const HnResize *p, const HnResizeAxis *a)
{
    return a->in == a->out && a->scale == 1 &&
           (p->mode != HN_RESIZE_NEAREST ||
            (hn_resize_nearest(p, a, 0) == 0 && hn_resize_nearest(p, a, a->in - 1) == a->in - 1));
}

const char *hn_resize_form(const HnStep *s, gboolean last, int *n, HnResizeAxis *axis)
{
    const HnResize *p = s->params;
    const HnTensor *x = input(s, 0), *y = hn_resize_source(s) == 0 ? s->out[0].slot->tensor : input(s, SIZES);
    HnTensor *in[SIZES] = { NULL };
    HnResizeAxis all[HN_MAX_RANK];
    const int n_in = MIN(s->n_in, SIZES);
    if (y->n == 0 || x->n == 0 || x->ndim == 0 || y->ndim != x->ndim)
        return "nothing to compute";
    if (p->place == HN_RESIZE_CROP)
        return "cropped inputs";
    for (int i = 1; i < n_in; i++)
        if (hn_copy_varies(s, i))
            return "sizes that are known only at run time";
    for (int i = 0; i < n_in; i++)
        in[i] = s->in[i].slot != NULL ? s->in[i].slot->tensor : NULL;
    HnEval e = { .node = s->node, .params = p, .n_in = n_in, .in = in };
    gboolean known = hn_resize_axes(&e, all);
    g_clear_error(&e.error);
    for (int a = 0; known && a < x->ndim; a++)
        known = all[a].in == x->dims[a] && all[a].out == y->dims[a];
    if (!known)
        return "sizes that do not fit";
    if (last) {
        const HnResizeAxis channels = all[1];
        memmove(all + 1, all + 2, (gsize)(x->ndim - 2) * sizeof *all);
        all[x->ndim - 1] = channels;
    }
    gboolean before = FALSE; /* the axis before stays */
    *n = 0;
    for (int a = 0; a < x->ndim; a++) {
        const gboolean same = hn_resize_stays(p, &all[a]);
        if (same && before) {
            axis[*n - 1].in *= all[a].in;
            axis[*n - 1].out *= all[a].in;
            axis[*n - 1].length = (double)axis[*n - 1].out;
        } else {
            axis[(*n)++] = all[a];
        }
        before = same;
    }
    return NULL;
}

gpointer hn_resize_table(const HnStep *s, int64_t n, gsize size, GError **error)
{
    gpointer table = hn_budget_alloc_n(s->budget, (gsize)n, size, error);
    if (table == NULL)
        g_prefix_error(error, "node '%s': ", hn_node_label(s->node));
    return table;
}

/* --- means ------------------------------------------------------------------------------------------------------- */

/* Elements that one is a mean of. */
static int64_t taps_of(const HnResize *p, const HnResizeAxis *a)
{
    return p->mode == HN_RESIZE_NEAREST ? 1 : hn_resize_taps(p, a);
}

static void weights_of(const HnResize *p, const HnResizeAxis *a, int64_t y, int64_t *first, double *w)
{
    w[0] = 1;
    if (p->mode == HN_RESIZE_NEAREST)
        *first = hn_resize_nearest(p, a, y);
    else
        (void)hn_resize_weights(p, a, y, first, w);
}

const char *hn_resize_means_reject(const HnStep *s, gboolean last)
{
    const HnResize *p = s->params;
    HnResizeAxis axis[HN_MAX_RANK];
    int64_t most[HN_MAX_RANK], elements;
    int n;
    const char *reason = hn_resize_form(s, last, &n, axis);
    for (int a = 0; reason == NULL && a < n; a++) {
        const int64_t taps = taps_of(p, &axis[a]);
        if (taps < 0 || taps > MAX_TAPS)
            reason = "means of too many elements";
        most[a] = MAX(axis[a].in, axis[a].out);
    }
    if (reason == NULL && (!hn_dims_count(n, most, &elements) || elements > MOST_BETWEEN))
        reason = "too large between two axes";
    return reason;
}

/* The transpose of the weights: what each element of the source is part of, in the order of the results. */
static void transpose_weights(HnResizePass *p, const HnResize *r, const HnResizeAxis *a)
{
    const int64_t taps = taps_of(r, a);
    double w[MAX_TAPS];
    int64_t first;
    memset(p->first, 0, (size_t)(a->in + 1) * sizeof *p->first);
    for (int fill = 0; fill < 2; fill++) {
        for (int64_t y = 0; y < a->out; y++) {
            weights_of(r, a, y, &first, w);
            for (int64_t k = 0; k < taps; k++) {
                const int64_t i = CLAMP(first + k, 0, a->in - 1);
                if (w[k] == 0)
                    continue;
                if (fill == 1) {
                    p->at[p->first[i]] = y;
                    p->weight[p->first[i]] = (float)w[k];
                }
                p->first[i]++;
            }
        }
        int64_t sum = 0; /* counts become beginnings, and ends those of the elements behind */
        for (int64_t i = 0; i <= a->in; i++) {
            const int64_t n = p->first[i];
            p->first[i] = sum;
            sum = fill == 0 ? sum + n : n;
        }
    }
}

static gboolean pass_init(HnResizePass *p, const HnStep *s, const HnResizeAxis *a, int64_t outer, int64_t inner,
                          GError **error)
{
    const HnResize *r = s->params;
    const int64_t taps = taps_of(r, a);
    const gboolean back = hn_resize_source(s) != 0;
    double w[MAX_TAPS];
    int64_t n = 0, first;
    *p = (HnResizePass){ .in = back ? a->out : a->in, .out = back ? a->in : a->out, .outer = outer, .inner = inner };
    if ((p->first = hn_resize_table(s, p->out + 1, sizeof *p->first, error)) == NULL ||
        (p->at = hn_resize_table(s, a->out * taps, sizeof *p->at, error)) == NULL ||
        (p->weight = hn_resize_table(s, a->out * taps, sizeof *p->weight, error)) == NULL)
        return FALSE;
    if (back) {
        transpose_weights(p, r, a);
        return TRUE;
    }
    for (int64_t y = 0; y < a->out; y++) {
        p->first[y] = n;
        (void)hn_resize_weights(r, a, y, &first, w);
        for (int64_t k = 0; k < taps; k++)
            if (w[k] != 0) {
                p->at[n] = CLAMP(first + k, 0, a->in - 1);
                p->weight[n++] = (float)w[k];
            }
    }
    p->first[a->out] = n;
    return TRUE;
}

gboolean hn_resize_means_init(HnResizeMeans *m, const HnStep *s, gboolean last, GError **error)
{
    HnResizeAxis axis[HN_MAX_RANK];
    int n, first;
    int64_t dims[HN_MAX_RANK];
    (void)hn_resize_form(s, last, &n, axis);
    const gboolean back = hn_resize_source(s) != 0;
    first = hn_resize_stays(s->params, &axis[0]) ? 1 : 0;
    m->pieces = first == 1 ? axis[0].in : 1;
    m->from = input(s, hn_resize_source(s))->n / m->pieces;
    m->to = s->out[0].slot->tensor->n / m->pieces;
    for (int a = 0; a < n; a++)
        dims[a] = back ? axis[a].out : axis[a].in;
    for (int k = first; k < n; k++) { /* where things grow, the last axis first: fewer rows to pick elements from */
        const int a = m->to >= m->from ? n - 1 - (k - first) : k;
        if (hn_resize_stays(s->params, &axis[a]))
            continue;
        if (m->n > 0) /* what the pass before gives */
            m->between = MAX(m->between, hn_span(dims, first, n));
        if (!pass_init(&m->pass[m->n++], s, &axis[a], hn_span(dims, first, a), hn_span(dims, a + 1, n), error))
            return FALSE;
        dims[a] = back ? axis[a].in : axis[a].out;
    }
    return TRUE;
}

void hn_resize_means_clear(HnResizeMeans *m, const HnStep *s)
{
    for (int i = 0; i < m->n; i++) {
        hn_budget_free(s->budget, m->pass[i].first);
        hn_budget_free(s->budget, m->pass[i].at);
        hn_budget_free(s->budget, m->pass[i].weight);
    }
    m->n = 0;
}
