/*
 * Losses over rows and their gradients, of f32 along any axis. A row is read from its place where its elements lie side
 * by side, else COLUMNS rows at a time are brought together. Sums over rows are cut into parts, as many as the shape
 * says.
 */
#include "op/loss.h"

#include <math.h>
#include <string.h>

#include "cpu/reduce/loss.h"
#include "cpu/reduce/norm.h"

#define HN_LOOPS "cpu/reduce/loss_loops.h"
#include "base/every_level.h"

#define PARTS 64   /* at most */
#define COLUMNS 16 /* rows that are brought together at a time: a cache line of each of their elements */

/* Rows to be compared: `a` is what the model made. */
typedef struct {
    const HnLoss *p;
    const HnLossFns *fns;
    const HnRowFns *rows_fns;
    int64_t n, label; /* label: -1: ignored */
    const float *a, *b;
    float *y;     /* of a gradient: where it goes, perhaps onto a */
    float *spare; /* [n] */
    double dy;
} Rows;

/* The loss; of a gradient something. */
typedef double (*RowFn)(const Rows *r);

typedef struct {
    RowFn fn;
    Rows rows; /* what is the same for all */
    HnLossRows shape;
    gboolean labels, gradient;
    int64_t width, blocks, units, parts; /* blocks of `width` rows in each of `outer`; units: all of them */
    int64_t floats;                      /* of memory for each thread */
    int threads;
} Loss;

/* --- rows ----------------------------------------------------------------------------------------------------------
 */

static HnSoftRow logits(const Rows *r, const float *x, double by)
{
    return (HnSoftRow){ x, r->rows_fns->max(x, r->n), (float)by };
}

static double cross_entropy(const Rows *r)
{
    const HnSoftRow a = logits(r, r->a, 1);
    const double smoothing = r->p->smoothing, log_sum = log(r->fns->powers(&a, r->n));
    double all = 0;
    if (smoothing > 0)
        all = smoothing * (log_sum - r->fns->sum(a.x, r->n, a.most) / (double)r->n);
    return all + (smoothing < 1 ? (1 - smoothing) * (log_sum - (double)(a.x[r->label] - a.most)) : 0);
}

static double cross_entropy_grad(const Rows *r)
{
    if (r->label < 0) {
        memset(r->y, 0, (gsize)r->n * sizeof *r->y);
        return 0;
    }
    const HnSoftRow a = logits(r, r->a, 1);
    const double own = exp((double)(a.x[r->label] - a.most)), least = r->p->smoothing / (double)r->n;
    const double sum = r->fns->powers_kept(r->y, &a, r->n);
    r->rows_fns->affine(r->y, r->y, r->n, (float)(r->dy / sum), (float)(-r->dy * least));
    r->y[r->label] = (float)(r->dy * (own / sum - least - (1 - r->p->smoothing)));
    return 0;
}

/* What x becomes by, until it is read as e^((x - most) * by), and its mean: with `standardize` it is (x - mean) / s. */
static double softening(const Rows *r, const float *x, double *mean, double *s)
{
    *mean = 0;
    *s = 1;
    if (r->p->standardize) {
        *mean = r->fns->sum(x, r->n, 0) / (double)r->n;
        *s = sqrt(r->fns->squares(x, r->n, *mean) / (double)r->n) + HN_LOSS_STD_EPSILON;
    }
    return 1 / (*s * r->p->temperature);
}

static double kl(const Rows *r)
{
    double mean, s;
    const HnSoftRow a = logits(r, r->a, softening(r, r->a, &mean, &s));
    const HnSoftRow b = logits(r, r->b, softening(r, r->b, &mean, &s));
    const double sum_a = r->fns->powers(&a, r->n), sum_b = r->fns->powers(&b, r->n);
    const double loss = r->fns->excess(&a, &b, r->n) / sum_b + log(sum_a) - log(sum_b);
    return r->p->temperature * r->p->temperature * loss;
}

/* Through z = (x - mean) / s, whose gradient is T d, d being the difference of two distributions: its sum is 0. */
static void kl_standardized(const Rows *r, const HnSoftRow *a, double along, double mean, double s)
{
    const double t = r->p->temperature, std = s - HN_LOSS_STD_EPSILON, stretch = std > 0 ? s / std : 0;
    const double c = r->dy * t * t * along / (double)r->n * stretch / (s * s);
    r->fns->mix(r->y, r->spare, (float)(r->dy * t / s), a->x, a->most, (float)-c, (float)(c * (mean - (double)a->most)),
                r->n);
}

static double kl_grad(const Rows *r)
{
    double mean, s, unused;
    const HnSoftRow b = logits(r, r->b, softening(r, r->b, &mean, &unused));
    const HnSoftRow a = logits(r, r->a, softening(r, r->a, &mean, &s));
    const double by = r->p->standardize ? 1 : r->dy * r->p->temperature;
    const double of_a = by / r->fns->powers(&a, r->n), of_b = by / r->fns->powers(&b, r->n);
    float *y = r->p->standardize ? r->spare : r->y;
    const double along = r->fns->difference(y, &a, &b, (float)of_a, (float)of_b, r->n);
    if (r->p->standardize)
        kl_standardized(r, &a, along, mean, s);
    return 0;
}

static double length(double squares)
{
    return MAX(sqrt(squares), HN_LOSS_LEAST_NORM);
}

static double cosine(const Rows *r)
{
    HnRowDots d;
    r->fns->dots(&d, r->a, r->b, r->n);
    return 1 - d.ab / length(d.aa) / length(d.bb);
}

static double cosine_grad(const Rows *r)
{
    HnRowDots d;
    r->fns->dots(&d, r->a, r->b, r->n);
    const double a = length(d.aa), b = length(d.bb), along = a > HN_LOSS_LEAST_NORM ? d.ab / (a * b) / (a * a) : 0;
    r->fns->mix(r->y, r->a, (float)(r->dy * along), r->b, 0, (float)(-r->dy / b / a), 0, r->n);
    return 0;
}

/* --- all of them ---------------------------------------------------------------------------------------------------
 */

/* Input 1: labels or a tensor like input 0; input 2: of a gradient, a number. */
static const char *loss_reject(const HnStep *s)
{
    const HnTensor *x = hn_cpu_in(s, 0), *target = hn_cpu_in(s, 1);
    if (x->dtype != HN_F32 || (s->op->in[1] == 'T' && target->dtype != HN_F32))
        return "only f32";
    return x->n == 0 ? "nothing to compute" : NULL;
}

/* Channels last where input 0 lies so and the rows are of channels. */
static void choose_layout(HnStep *s, Loss *l)
{
    const HnTensor *x = hn_cpu_in(s, 0);
    const int64_t axis = l->rows.p->axis;
    if ((axis != 1 && axis != 1 - x->ndim) || !hn_layout_is_last(s->in[0].slot->layout))
        return;
    s->in[0].want = hn_layout_last(x);
    if (!l->labels)
        s->in[1].want = hn_layout_last(x);
    if (l->gradient)
        s->out[0].slot->layout = hn_layout_last(x);
    l->shape.outer *= l->shape.inner;
    l->shape.inner = 1;
}

static gboolean prepare(HnStep *s, RowFn fn, gboolean gradient)
{
    static const HnLossFns *const levels[HN_LEVELS] = { &loss_fns_plain, &loss_fns_avx2, &loss_fns_avx512 };
    const HnTensor *x = hn_cpu_in(s, 0);
    Loss *l = g_new0(Loss, 1);
    s->state = l;
    l->fn = fn;
    l->gradient = gradient;
    l->labels = s->op->in[1] != 'T';
    l->rows = (Rows){ .p = s->params, .fns = levels[hn_cpu_level()], .rows_fns = hn_cpu_rows() };
    hn_loss_rows(l->rows.p->axis, x, &l->shape);
    choose_layout(s, l);
    l->rows.n = l->shape.n;
    l->width = l->shape.inner == 1 ? 1 : COLUMNS;
    l->blocks = (l->shape.inner + l->width - 1) / l->width;
    l->units = l->shape.outer * l->blocks;
    l->parts = MIN(l->units, PARTS);
    l->threads = hn_cpu_threads_for(s, 24 * (double)x->n);
    l->floats = l->shape.n * (1 + (l->shape.inner == 1 ? 0 : 2 * COLUMNS));
    s->scratch_bytes = (gsize)l->parts * sizeof(double) + (gsize)(l->floats * l->threads) * sizeof(float);
    return TRUE;
}

/* The columns of x [n, inner], `width` of them, as rows, and back. */
static void gather_rows(float *rows, const float *x, const HnLossRows *shape, int64_t width)
{
    for (int64_t k = 0; k < shape->n; k++)
        for (int64_t c = 0; c < width; c++)
            rows[c * shape->n + k] = x[k * shape->inner + c];
}

static void scatter_rows(float *y, const float *rows, const HnLossRows *shape, int64_t width)
{
    for (int64_t k = 0; k < shape->n; k++)
        for (int64_t c = 0; c < width; c++)
            y[k * shape->inner + c] = rows[c * shape->n + k];
}

/* The loss of r, row `at` of all. */
static double one_row(const HnStep *s, Rows *r, int64_t at)
{
    const Loss *l = s->state;
    r->label = l->labels ? hn_loss_label(r->p, hn_cpu_in(s, 1), at) : 0;
    return r->label >= 0 || l->gradient ? l->fn(r) : 0;
}

/* The block of columns at `from` elements, whose first one is row `row`; r->spare: Loss.floats. */
static double one_block(const HnStep *s, Rows *r, int64_t from, int64_t row, int64_t width)
{
    const Loss *l = s->state;
    float *a = r->spare + r->n, *b = a + COLUMNS * r->n;
    double sum = 0;
    gather_rows(a, (const float *)hn_cpu_data(&s->in[0]) + from, &l->shape, width);
    if (!l->labels)
        gather_rows(b, (const float *)hn_cpu_data(&s->in[1]) + from, &l->shape, width);
    for (int64_t c = 0; c < width; c++) {
        r->a = r->y = a + c * r->n;
        r->b = b + c * r->n;
        sum += one_row(s, r, row + c);
    }
    if (l->gradient)
        scatter_rows((float *)hn_cpu_data(&s->out[0]) + from, a, &l->shape, width);
    return sum;
}

static double one_unit(const HnStep *s, Rows *r, int64_t unit)
{
    const Loss *l = s->state;
    const int64_t o = unit / l->blocks, c = unit % l->blocks * l->width, from = o * r->n * l->shape.inner + c;
    if (l->width > 1)
        return one_block(s, r, from, o * l->shape.inner + c, MIN(l->width, l->shape.inner - c));
    r->a = (const float *)hn_cpu_data(&s->in[0]) + from;
    r->b = l->labels ? NULL : (const float *)hn_cpu_data(&s->in[1]) + from;
    r->y = l->gradient ? (float *)hn_cpu_data(&s->out[0]) + from : NULL;
    return one_row(s, r, unit);
}

/* Parts of thread t, and their sums. */
static void run_parts(const HnStep *s, int t)
{
    const Loss *l = s->state;
    double *sums = s->scratch;
    Rows r = l->rows;
    r.spare = (float *)(sums + l->parts) + t * l->floats;
    r.dy = l->gradient ? (double)*(const float *)hn_cpu_data(&s->in[2]) : 0;
    for (int64_t i = l->parts * t / l->threads; i < l->parts * (t + 1) / l->threads; i++) {
        sums[i] = 0;
        for (int64_t u = l->units * i / l->parts; u < l->units * (i + 1) / l->parts; u++)
            sums[i] += one_unit(s, &r, u);
    }
}

static gboolean fits(const HnStep *s, GError **error)
{
    const Loss *l = s->state;
    if (l->gradient && hn_cpu_in(s, 2)->n != 1) {
        g_set_error(error, HN_ERROR, HN_ERROR_SHAPE, "node '%s' (%s): input 2 is not one number",
                    hn_node_label(s->node), s->node->op_type);
        return FALSE;
    }
    if (!l->labels || hn_loss_labels_fit(l->rows.p, hn_cpu_in(s, 1), l->shape.n, error))
        return TRUE;
    g_prefix_error(error, "node '%s' (%s): ", hn_node_label(s->node), s->node->op_type);
    return FALSE;
}

static gboolean loss_run(HnStep *s, GError **error)
{
    const Loss *l = s->state;
    if (!fits(s, error))
        return FALSE;
    if (l->threads == 1) {
        run_parts(s, 0);
    } else {
#pragma omp parallel for num_threads(l->threads)
        for (int t = 0; t < l->threads; t++)
            run_parts(s, t);
    }
    double sum = 0;
    for (int64_t i = 0; i < l->parts; i++)
        sum += ((const double *)s->scratch)[i];
    if (!l->gradient)
        *(float *)hn_cpu_data(&s->out[0]) = (float)sum;
    return TRUE;
}

#define LOSS(symbol, title, row, is_gradient)                   \
    static gboolean symbol##_prepare(HnStep *s, GError **error) \
    {                                                           \
        (void)error;                                            \
        return prepare(s, row, is_gradient);                    \
    }                                                           \
    static const HnKernel symbol = {                            \
        .name = "cpu." title,                                   \
        .reject = loss_reject,                                  \
        .prepare = symbol##_prepare,                            \
        .run = loss_run,                                        \
        .release = hn_cpu_release,                              \
        .inplace = is_gradient,                                 \
    };                                                          \
    const HnKernel *const hn_cpu_##symbol[] = { &symbol, NULL };

LOSS(crossentropyloss, "crossentropyloss", cross_entropy, FALSE)
LOSS(crossentropylossgrad, "crossentropyloss_grad", cross_entropy_grad, TRUE)
LOSS(klloss, "klloss", kl, FALSE)
LOSS(kllossgrad, "klloss_grad", kl_grad, TRUE)
LOSS(cosineloss, "cosineloss", cosine, FALSE)
LOSS(cosinelossgrad, "cosineloss_grad", cosine_grad, TRUE)
