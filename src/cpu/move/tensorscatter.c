/*
 * TensorScatter: rows are copied into a cache, in place where the cache is not needed as it was.
 */
#include <string.h>

#include "cpu/core/strided_copy.h"
#include "op/scatter.h"

/* The cache as [outer, length, run bytes], of which each batch has `per_batch` outer ones; n rows are written. */
typedef struct {
    int64_t outer, per_batch, length, n, run;
    gboolean circular;
} Write;

static const char *tensorscatter_reject(const HnStep *s)
{
    const HnTensor *x = hn_cpu_in(s, 0), *updates = hn_cpu_in(s, 1);
    int axis;
    if (!hn_tensorscatter_fits(s->params, x, updates, hn_cpu_in(s, 2), &axis))
        return "shapes that do not fit";
    return hn_copy_reject(x);
}

static gboolean tensorscatter_prepare(HnStep *s, GError **error)
{
    (void)error;
    const HnTensorScatter *p = s->params;
    const HnTensor *x = hn_cpu_in(s, 0);
    const int64_t axis = p->axis < 0 ? p->axis + x->ndim : p->axis;
    Write *w = g_new0(Write, 1);
    *w = (Write){ 1, 1, x->dims[axis], hn_cpu_in(s, 1)->dims[axis], (int64_t)hn_dtype_size(x->dtype), p->circular };
    for (int64_t a = 0; a < axis; a++) {
        w->outer *= x->dims[a];
        w->per_batch *= a > 0 ? x->dims[a] : 1;
    }
    for (int64_t a = axis + 1; a < x->ndim; a++)
        w->run *= x->dims[a];
    s->state = w;
    return TRUE;
}

static gboolean check_places(const HnStep *s, const Write *w, const HnTensor *at, GError **error)
{
    for (int64_t b = 0; at != NULL && b < at->n; b++) {
        const int64_t k = ((const int64_t *)at->data)[b];
        if (k >= 0 && (w->circular || k <= w->length - w->n))
            continue;
        g_set_error(error, HN_ERROR, HN_ERROR_VALUE,
                    "node '%s': write position %" PRId64 " does not fit into a cache of %" PRId64,
                    hn_node_label(s->node), k, w->length);
        return FALSE;
    }
    return TRUE;
}

static gboolean tensorscatter_run(HnStep *s, GError **error)
{
    const Write *w = s->state;
    const HnTensor *x = hn_cpu_in(s, 0), *at = hn_cpu_in(s, 2);
    const char *from = hn_cpu_in(s, 1)->data;
    char *to = hn_cpu_data(&s->out[0]);
    if (!check_places(s, w, at, error))
        return FALSE;
    if (to != x->data)
        memcpy(to, x->data, x->bytes);
    for (int64_t o = 0; o < w->outer; o++) {
        const int64_t k = at != NULL ? ((const int64_t *)at->data)[o / w->per_batch] % w->length : 0;
        const int64_t head = MIN(w->n, w->length - k); /* the rest begins again at 0 */
        char *row = to + o * w->length * w->run;
        memcpy(row + k * w->run, from, (size_t)(head * w->run));
        memcpy(row, from + head * w->run, (size_t)((w->n - head) * w->run));
        from += w->n * w->run;
    }
    return TRUE;
}

static const HnKernel tensorscatter_rows = {
    .name = "cpu.tensorscatter",
    .reject = tensorscatter_reject,
    .prepare = tensorscatter_prepare,
    .run = tensorscatter_run,
    .release = hn_cpu_release,
    .inplace = TRUE,
};

const HnKernel *const hn_cpu_tensorscatter[] = { &tensorscatter_rows, NULL };
