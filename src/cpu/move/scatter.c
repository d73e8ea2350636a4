/*
 * ScatterND, ScatterElements and Scatter: a copy of the data (none where it may be overwritten) and updates written
 * over it, or reduced into it for f32. All indices are checked before anything is written.
 */
#include "op/scatter.h"

#include <math.h>
#include <string.h>

#include "cpu/core/strided_copy.h"
#include "cpu/core/indices.h"
#include "op/index.h"
#include "op/types.h"
#include "run/index_forms.h"

static const char *scatter_reject(const HnStep *s)
{
    const char *reason = hn_scatter_reject(s);
    const gboolean reduces = ((const HnScatter *)s->params)->reduction != HN_SCATTER_SET;
    return reason == NULL && reduces && hn_cpu_in(s, 0)->dtype != HN_F32 ? "reductions only in f32" : reason;
}

static void put(float *y, const float *x, HnReduction r, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        const float a = y[i], b = x[i];
        if (r == HN_SCATTER_ADD)
            y[i] = a + b;
        else if (r == HN_SCATTER_MUL)
            y[i] = a * b;
        else if (isnan(b))
            y[i] = b;
        else if (r == HN_SCATTER_MAX)
            y[i] = b > a ? b : a; /* one instruction, where which is larger cannot be foreseen; a NaN stays */
        else
            y[i] = b < a ? b : a;
    }
}

static void copy_data(const HnStep *s)
{
    void *y = hn_cpu_data(&s->out[0]);
    const HnTensor *x = hn_cpu_in(s, 0);
    if (y != x->data)
        memcpy(y, x->data, x->bytes);
}

/* --- ScatterND --------------------------------------------------------------------------------------------------- */

static const char *tuples_reject(const HnStep *s)
{
    const char *reason = scatter_reject(s);
    return reason != NULL ? reason : hn_scatter_tuples_reject(s);
}

/* Where constant indices put the updates: pieces of the output that adjacent updates fill, in order. */
typedef struct {
    int64_t n;
    struct {
        int64_t at, updates; /* element of the output; how many updates */
    } piece[];
} Pieces;

/* NULL: an index is outside. run() says which. */
static Pieces *pieces_of(const HnStep *s)
{
    const HnTensor *x = hn_cpu_in(s, 0), *at = hn_cpu_in(s, 1);
    const int depth = (int)at->dims[at->ndim - 1];
    const int64_t count = at->n / depth, run = hn_span(x->dims, depth, x->ndim);
    int64_t strides[HN_MAX_RANK];
    Pieces *p = g_malloc(sizeof *p + (gsize)count * sizeof *p->piece);
    p->n = 0;
    hn_strides(x->ndim, x->dims, strides);
    for (int64_t i = 0; i < count; i++) {
        int64_t place = 0;
        for (int d = 0; d < depth; d++) {
            const int64_t k = hn_tensor_get_i64(at, i * depth + d);
            if (k < -x->dims[d] || k >= x->dims[d]) {
                g_free(p);
                return NULL;
            }
            place += (k < 0 ? k + x->dims[d] : k) * strides[d];
        }
        if (p->n > 0 && place == p->piece[p->n - 1].at + p->piece[p->n - 1].updates * run) {
            p->piece[p->n - 1].updates++;
        } else {
            p->piece[p->n].at = place;
            p->piece[p->n++].updates = 1;
        }
    }
    return g_realloc(p, sizeof *p + (gsize)p->n * sizeof *p->piece);
}

static gboolean tuples_prepare(HnStep *s, GError **error)
{
    (void)error;
    const HnScatter *p = s->params;
    const HnTensor *at = hn_cpu_in(s, 1);
    if (s->in[1].slot->constant && p->reduction == HN_SCATTER_SET)
        s->state = pieces_of(s);
    s->in[1].unread = s->state != NULL;
    s->scratch_bytes = s->state != NULL ? 0 : (gsize)(at->n / at->dims[at->ndim - 1]) * sizeof(int64_t);
    return TRUE;
}

static void run_pieces(const HnStep *s, const Pieces *p)
{
    const HnTensor *x = hn_cpu_in(s, 0), *at = hn_cpu_in(s, 1);
    const size_t size = hn_dtype_size(x->dtype);
    const size_t bytes = (size_t)hn_span(x->dims, (int)at->dims[at->ndim - 1], x->ndim) * size;
    char *y = hn_cpu_data(&s->out[0]);
    const char *from = hn_cpu_data(&s->in[2]);
    for (int64_t i = 0; i < p->n; i++) {
        const size_t n = (size_t)p->piece[i].updates * bytes;
        hn_copy_bytes(y + (size_t)p->piece[i].at * size, from, n);
        from += n;
    }
}

static gboolean tuples_run(HnStep *s, GError **error)
{
    const HnScatter *p = s->params;
    const HnTensor *x = hn_cpu_in(s, 0), *at = hn_cpu_in(s, 1);
    const int depth = (int)at->dims[at->ndim - 1];
    int64_t strides[HN_MAX_RANK], *place = s->scratch;
    if (s->state != NULL) {
        copy_data(s);
        run_pieces(s, s->state);
        return TRUE;
    }
    hn_strides(x->ndim, x->dims, strides);
    if (!hn_indices_tuples(s, at, depth, x->dims, strides, place, error))
        return FALSE;
    copy_data(s);
    const int64_t run = hn_span(x->dims, depth, x->ndim), count = at->n / depth;
    const size_t size = hn_dtype_size(x->dtype), bytes = (size_t)run * size;
    char *y = hn_cpu_data(&s->out[0]);
    const char *from = hn_cpu_data(&s->in[2]);
    for (int64_t i = 0; i < count; i++, from += bytes) {
        char *to = y + (size_t)place[i] * size;
        if (p->reduction == HN_SCATTER_SET)
            hn_copy_bytes(to, from, bytes);
        else
            put((float *)(void *)to, (const float *)(const void *)from, p->reduction, run);
    }
    return TRUE;
}

static const HnKernel scatter_tuples = {
    .name = "cpu.scatternd",
    .reject = tuples_reject,
    .prepare = tuples_prepare,
    .run = tuples_run,
    .release = hn_cpu_release,
    .inplace = TRUE,
};

const HnKernel *const hn_cpu_scatternd[] = { &scatter_tuples, NULL };

/* --- ScatterElements --------------------------------------------------------------------------------------------- */

static const char *elements_reject(const HnStep *s)
{
    const char *reason = scatter_reject(s);
    reason = reason != NULL ? reason : hn_scatter_elements_reject(s);
    return reason == NULL && hn_dtype_size(hn_cpu_in(s, 0)->dtype) > 8 ? "elements of 16 bytes" : reason;
}

static gboolean elements_prepare(HnStep *s, GError **error)
{
    (void)error;
    s->scratch_bytes = (gsize)hn_cpu_in(s, 1)->n * sizeof(int64_t);
    return TRUE;
}

static gboolean elements_run(HnStep *s, GError **error)
{
    const HnScatter *p = s->params;
    const HnTensor *x = hn_cpu_in(s, 0), *at = hn_cpu_in(s, 1);
    const int axis = hn_scatter_axis(s), last = x->ndim - 1;
    int64_t strides[HN_MAX_RANK], idx[HN_MAX_RANK] = { 0 }, off[1] = { 0 }, *place = s->scratch;
    hn_strides(x->ndim, x->dims, strides);
    memset(place, 0, (size_t)at->n * sizeof *place);
    if (!hn_indices_add(s, at, 0, 1, at->n, x->dims[axis], strides[axis], place, error))
        return FALSE;
    copy_data(s);
    const int64_t along = axis == last ? 0 : 1, n = at->dims[last];
    int64_t *const all[1] = { strides };
    strides[axis] = 0;
    const size_t size = hn_dtype_size(x->dtype);
    const char *from = hn_cpu_data(&s->in[2]);
    char *y = hn_cpu_data(&s->out[0]);
    do {
        char *to = y + (size_t)off[0] * size;
#define PUT(T)                                  \
    const T *f = (const T *)(const void *)from; \
    T *t = (T *)(void *)to;                     \
    for (int64_t i = 0; i < n; i++)             \
        t[place[i] + i * along] = f[i];
        if (p->reduction == HN_SCATTER_SET) {
            HN_FOR_SIZE(size, PUT)
        } else {
            float *t = (float *)(void *)to;
            for (int64_t i = 0; i < n; i++)
                put(&t[place[i] + i * along], (const float *)(const void *)from + i, p->reduction, 1);
        }
#undef PUT
        place += n;
        from += (size_t)n * size;
    } while (hn_index_next(last, at->dims, idx, 1, all, off));
    return TRUE;
}

static const HnKernel scatter_elements = {
    .name = "cpu.scatterelements",
    .reject = elements_reject,
    .prepare = elements_prepare,
    .run = elements_run,
    .inplace = TRUE,
};

const HnKernel *const hn_cpu_scatterelements[] = { &scatter_elements, NULL };
const HnKernel *const hn_cpu_scatter[] = { &scatter_elements, NULL };
