/*
 * LayerNormalization, RMSNormalization, InstanceNormalization, GroupNormalization and BatchNormalization of f32. The
 * last also channels last. Differences from the mean are squared in a second pass over the row, which is in the cache
 * by then.
 */
#include "cpu/reduce/norm.h"

#include <math.h>
#include <string.h>

#include "cpu/reduce/batchnorm.h"
#include "op/batchnorm.h"
#include "op/index.h"
#include "op/instancenorm.h"
#include "op/layernorm.h"

#define HN_LOOPS "cpu/reduce/norm_loops.h"
#include "base/every_level.h"

#define ROWS(level)                                                                                           \
    {                                                                                                         \
        row_sum_##level, row_squares_##level, row_scale_##level, short_norm_##level, 4 * HN_LANES_##level,    \
            row_affine_##level, down_sum_##level, down_squares_##level, down_affine_##level, row_max_##level, \
            row_exp_##level, row_exp_sum_##level, row_log_share_##level, columns_softmax_##level,             \
            short_softmax_##level                                                                             \
    }

const HnRowFns *hn_cpu_rows(void)
{
    static const HnRowFns fns[HN_LEVELS] = { ROWS(plain), ROWS(avx2), ROWS(avx512) };
    return &fns[hn_cpu_level()];
}

/* --- rows: LayerNormalization, RMSNormalization --------------------------------------------------------------------
 */

typedef struct {
    const HnRowFns *fns;
    int64_t rows, cols;
    float epsilon;
    gboolean centre;
    int threads;
} LayerNorm;

static int norm_axis(const HnStep *s)
{
    const HnLayerNorm *p = s->params;
    return hn_axis(p->axis, hn_cpu_in(s, 0)->ndim);
}

static const char *layernorm_reject(const HnStep *s)
{
    const char *reason = hn_cpu_reject_f32(s);
    if (reason != NULL)
        return reason;
    if (hn_step_out(s, 0) == NULL)
        return "no normalized elements are wanted";
    const HnTensor *x = hn_cpu_in(s, 0), *scale = hn_cpu_in(s, 1), *bias = hn_cpu_in(s, 2);
    int axis = norm_axis(s);
    if ((scale != NULL && !hn_is_norm_row(scale, x, axis)) || (bias != NULL && !hn_is_norm_row(bias, x, axis)))
        return "a scale or bias that is not one row";
    return NULL;
}

static gboolean layernorm_prepare(HnStep *s, GError **error)
{
    (void)error;
    const HnLayerNorm *p = s->params;
    const HnTensor *x = hn_cpu_in(s, 0);
    LayerNorm *n = g_new0(LayerNorm, 1);
    s->state = n;
    n->fns = hn_cpu_rows();
    n->rows = hn_span(x->dims, 0, norm_axis(s));
    n->cols = x->n / n->rows;
    n->epsilon = p->epsilon;
    n->centre = s->op == &hn_op_layernormalization;
    n->threads = hn_cpu_threads_for(s, 8 * (double)x->n);
    return TRUE;
}

/* Rows [first, last). */
static void layernorm_rows(gpointer step, G_GNUC_UNUSED int thread, int64_t first, int64_t last)
{
    const HnStep *s = step;
    const LayerNorm *n = s->state;
    const HnRowFns *f = n->fns;
    const float *x = hn_cpu_data(&s->in[0]), *w = hn_cpu_in(s, 1) != NULL ? hn_cpu_data(&s->in[1]) : NULL;
    const float *b = hn_cpu_in(s, 2) != NULL ? hn_cpu_data(&s->in[2]) : NULL;
    float *y = hn_cpu_data(&s->out[0]), *means = NULL, *invs = NULL;
    if (s->n_out > 1 && s->out[1].slot != NULL)
        means = hn_cpu_data(&s->out[1]);
    if (s->n_out > 2 && s->out[2].slot != NULL)
        invs = hn_cpu_data(&s->out[2]);
    if (n->cols < f->short_norm_end) {
        f->short_norm(y + first * n->cols, x + first * n->cols, n->cols, last - first, n->epsilon, n->centre, w, b,
                      means != NULL ? means + first : NULL, invs != NULL ? invs + first : NULL);
        return;
    }
    for (int64_t r = first; r < last; r++) {
        const float *from = x + r * n->cols;
        const float mean = n->centre ? f->sum(from, n->cols) / (float)n->cols : 0;
        const float inv = 1.0f / sqrtf(f->squares(from, n->cols, mean) / (float)n->cols + n->epsilon);
        f->scale(y + r * n->cols, from, n->cols, mean, inv, w, b);
        if (means != NULL)
            means[r] = mean;
        if (invs != NULL)
            invs[r] = inv;
    }
}

static gboolean layernorm_run(HnStep *s, GError **error)
{
    (void)error;
    const LayerNorm *n = s->state;
    hn_parallel_for(n->rows, n->threads, layernorm_rows, s);
    return TRUE;
}

static const HnKernel layernorm = {
    .name = "cpu.layernorm",
    .reject = layernorm_reject,
    .prepare = layernorm_prepare,
    .run = layernorm_run,
    .release = hn_cpu_release,
    .inplace = TRUE,
};

const HnKernel *const hn_cpu_layernormalization[] = { &layernorm, NULL };
const HnKernel *const hn_cpu_rmsnormalization[] = { &layernorm, NULL };

/* --- groups of channels: InstanceNormalization, GroupNormalization -------------------------------------------------
 */

typedef struct {
    const HnRowFns *fns;
    int64_t n, groups, each, inner; /* samples, groups, channels of one, elements of one */
    float epsilon;
    gboolean per_group; /* of scale and bias */
    int threads;
} GroupNorm;

static const char *groupnorm_reject(const HnStep *s)
{
    return hn_cpu_reject_f32(s);
}

static gboolean groupnorm_prepare(HnStep *s, GError **error)
{
    const HnGroupNorm *p = s->params;
    const HnTensor *x = hn_cpu_in(s, 0);
    GroupNorm *g = g_new0(GroupNorm, 1);
    s->state = g;
    g->fns = hn_cpu_rows();
    g->n = x->dims[0];
    g->groups = p->groups > 0 ? p->groups : x->dims[1];
    g->each = x->dims[1] / g->groups;
    g->inner = hn_span(x->dims, 2, x->ndim);
    g->epsilon = p->epsilon;
    g->per_group = p->per_group;
    g->threads = hn_cpu_threads_for(s, 6 * (double)x->n);
    int64_t factors = g->per_group ? g->groups : x->dims[1];
    if (x->dims[1] % g->groups == 0 && hn_cpu_in(s, 1)->n == factors && hn_cpu_in(s, 2)->n == factors)
        return TRUE;
    g_set_error(error, HN_ERROR, HN_ERROR_SHAPE, "scale or bias of node '%s' does not have %" PRId64 " elements",
                hn_node_label(s->node), factors);
    return FALSE;
}

/* Groups [first, last) of all samples. */
static void groupnorm_groups(gpointer step, G_GNUC_UNUSED int thread, int64_t first, int64_t last)
{
    const HnStep *s = step;
    const GroupNorm *g = s->state;
    const HnRowFns *f = g->fns;
    const float *x = hn_cpu_data(&s->in[0]), *scale = hn_cpu_data(&s->in[1]), *bias = hn_cpu_data(&s->in[2]);
    float *y = hn_cpu_data(&s->out[0]);
    const int64_t size = g->each * g->inner;
    for (int64_t i = first; i < last; i++) {
        const float *from = x + i * size;
        const float mean = f->sum(from, size) / (float)size;
        const float inv = 1.0f / sqrtf(f->squares(from, size, mean) / (float)size + g->epsilon);
        for (int64_t c = 0; c < g->each; c++) {
            const int64_t k = g->per_group ? i % g->groups : i % g->groups * g->each + c;
            const float a = inv * scale[k];
            f->affine(y + i * size + c * g->inner, from + c * g->inner, g->inner, a, bias[k] - mean * a);
        }
    }
}

static gboolean groupnorm_run(HnStep *s, GError **error)
{
    (void)error;
    const GroupNorm *g = s->state;
    hn_parallel_for(g->n * g->groups, g->threads, groupnorm_groups, s);
    return TRUE;
}

static const HnKernel groupnorm = {
    .name = "cpu.groupnorm",
    .reject = groupnorm_reject,
    .prepare = groupnorm_prepare,
    .run = groupnorm_run,
    .release = hn_cpu_release,
    .inplace = TRUE,
};

const HnKernel *const hn_cpu_instancenormalization[] = { &hn_cpu_groupnorm_last, &groupnorm, NULL };
const HnKernel *const hn_cpu_groupnormalization[] = { &hn_cpu_groupnorm_last, &groupnorm, NULL };

/* --- one factor and one shift a channel: BatchNormalization ---------------------------------------------------------
 */

enum { X, SCALE, SHIFT, MEAN, VARIANCE };

typedef struct {
    const HnRowFns *fns;
    int64_t n, channels, inner;
    float epsilon;
    int threads;
    gboolean constant; /* factors are known */
    float factors[];   /* [2, channels]: factor, shift */
} BatchNorm;

static const char *batchnorm_reject(const HnStep *s)
{
    const HnBatchNorm *p = s->params;
    const char *reason = hn_cpu_reject_f32(s);
    const HnTensor *x = hn_cpu_in(s, X);
    if (reason != NULL)
        return reason;
    if (p->training || p->per_element)
        return "only inference with one mean and variance per channel";
    if (x->ndim < 2)
        return "no axis of channels";
    for (int i = SCALE; i <= VARIANCE; i++)
        if (hn_cpu_in(s, i)->n != x->dims[1])
            return "an input of another size than the channels";
    return NULL;
}

/* Of constants at any address: they are read once, as bytes. */
static float element(const HnStep *s, int i, int64_t c)
{
    float v;
    memcpy(&v, (const char *)hn_cpu_data(&s->in[i]) + (gsize)c * sizeof v, sizeof v);
    return v;
}

static void make_factors(const HnStep *s, const BatchNorm *b, float *factor, float *shift)
{
    for (int64_t c = 0; c < b->channels; c++) {
        const double a = (double)element(s, SCALE, c) / sqrt((double)element(s, VARIANCE, c) + (double)b->epsilon);
        factor[c] = (float)a;
        shift[c] = (float)((double)element(s, SHIFT, c) - (double)element(s, MEAN, c) * a);
    }
}

static gboolean batchnorm_prepare(HnStep *s, GError **error)
{
    (void)error;
    const HnBatchNorm *p = s->params;
    const HnTensor *x = hn_cpu_in(s, X);
    BatchNorm *b = g_malloc0(sizeof *b + 2 * (gsize)x->dims[1] * sizeof *b->factors);
    s->state = b;
    b->fns = hn_cpu_rows();
    b->n = x->dims[0];
    b->channels = x->dims[1];
    b->inner = hn_span(x->dims, 2, x->ndim);
    if (s->in[X].slot->layout != NULL && (s->in[X].want = hn_layout_last(x)) != NULL) {
        s->out[0].slot->layout = hn_layout_ref(s->in[X].want);
        b->n *= b->inner; /* pixels */
        b->inner = 1;
    }
    b->epsilon = p->epsilon;
    b->threads = hn_cpu_threads_for(s, 0);
    b->constant = TRUE;
    for (int i = SCALE; i <= VARIANCE; i++)
        b->constant = b->constant && s->in[i].slot->constant;
    for (int i = SCALE; i <= VARIANCE; i++)
        s->in[i].unread = b->constant;
    if (b->constant)
        make_factors(s, b, b->factors, b->factors + b->channels);
    return TRUE;
}

/* Rows [lo, hi): of a channel each, or of all channels. */
static void batchnorm_rows(const HnStep *s, int64_t lo, int64_t hi)
{
    const BatchNorm *b = s->state;
    const float *x = hn_cpu_data(&s->in[X]), *factor = b->factors, *shift = factor + b->channels;
    float *y = hn_cpu_data(&s->out[0]);
    const int64_t n = b->inner == 1 ? b->channels : b->inner;
    for (int64_t i = lo; i < hi; i++)
        if (b->inner == 1)
            b->fns->scale(y + i * n, x + i * n, n, 0, 1, factor, shift);
        else
            b->fns->affine(y + i * n, x + i * n, n, factor[i % b->channels], shift[i % b->channels]);
}

static gboolean batchnorm_run(HnStep *s, GError **error)
{
    (void)error;
    BatchNorm *b = s->state;
    const int64_t all = b->inner == 1 ? b->n : b->n * b->channels;
    if (!b->constant)
        make_factors(s, b, b->factors, b->factors + b->channels);
    if (b->threads == 1) {
        batchnorm_rows(s, 0, all);
        return TRUE;
    }
#pragma omp parallel for num_threads(b->threads)
    for (int t = 0; t < b->threads; t++)
        batchnorm_rows(s, all * t / b->threads, all * (t + 1) / b->threads);
    return TRUE;
}

static const HnKernel batchnorm = {
    .name = "cpu.batchnorm",
    .reject = batchnorm_reject,
    .prepare = batchnorm_prepare,
    .run = batchnorm_run,
    .release = hn_cpu_release,
    .inplace = TRUE,
};

const HnKernel *const hn_cpu_batchnormalization[] = { &batchnorm, &hn_cpu_batchnorm_train, NULL };
