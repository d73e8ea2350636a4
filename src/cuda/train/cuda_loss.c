/*
 * Losses over rows and over elements, and their gradients. A loss is made of sums in f64: one for each of at most PARTS
 * blocks, as many as the shape says, which a second launch adds up in their order.
 */
#include "op/loss.h"

#include "cuda/core/cuda_kernel.h"
#include "cuda/train/cuda_loss_args.h"

enum { A, B, DY }; /* B: or labels */

#define THREADS 256
#define PARTS 1024
#define EACH 4    /* elements of a row that a thread takes, at least, where there are as many */
#define WIDEST 32 /* rows that a block takes at a time */
#define PART_ELEMENTS 1024

typedef struct {
    HnCuFunction f, join; /* join: of a loss */
    HnCudaGrid grid;
    HnCudaLossArgs args;
} Loss;

static gboolean has_labels(const HnStep *s)
{
    return s->op->in[B] != 'T';
}

static const char *loss_reject(const HnStep *s)
{
    const char *reason = hn_cuda_reject_floats(s);
    if (reason != NULL)
        return reason;
    if (!has_labels(s) && hn_cuda_in(s, B)->n != hn_cuda_in(s, A)->n)
        return "inputs of different shapes";
    return s->n_in > DY && hn_cuda_in(s, DY)->n != 1 ? "input 2 is not one number" : NULL;
}

static void say(const HnStep *s, int64_t at, GError **error)
{
    const Loss *l = s->state;
    g_set_error(error, HN_ERROR, HN_ERROR_VALUE, "the label of row %" PRId64 " is outside [0, %" PRId64 ")", at,
                l->args.n);
}

/* A thread for a row at least, and so many rows side by side that each thread has some elements. */
static int32_t width_for(const HnLossRows *r)
{
    int32_t width = 1;
    while (width < WIDEST && (r->inner > width || THREADS / width * EACH > r->n))
        width *= 2;
    return width;
}

static gboolean prepare(HnStep *s, const char *name, gboolean rows, GError **error)
{
    const HnLoss *p = s->params;
    const HnTensor *x = hn_cuda_in(s, A);
    const gboolean gradient = s->n_in > DY;
    Loss *l = g_new0(Loss, 1);
    HnCudaLossArgs *a = &l->args;
    HnLossRows r = { x->n, 1, 1 };
    s->state = l;
    if (rows)
        hn_loss_rows(p->axis, x, &r);
    a->rows = r.outer * r.inner;
    a->n = r.n;
    a->inner = r.inner;
    a->ignore_index = p->ignore_index;
    a->smoothing = (float)p->smoothing;
    a->temperature = (float)p->temperature;
    a->standardize = p->standardize;
    a->probabilities = p->probabilities;
    a->width = rows ? width_for(&r) : PART_ELEMENTS;
    a->parts = MIN((a->rows + a->width - 1) / a->width, PARTS);
    if (has_labels(s)) {
        a->label_bytes = hn_cuda_in(s, B)->dtype == HN_I32 ? 4 : 8;
        if (!hn_cuda_complains(s, say, &a->complaint, error))
            return FALSE;
    }
    l->grid = hn_cuda_row(a->parts, THREADS);
    if ((l->f = hn_cuda_typed(s, "cuda_loss", name, x->dtype, error)) == NULL || gradient)
        return l->f != NULL;
    s->scratch_bytes = (gsize)a->parts * sizeof(double);
    return (l->join = hn_cuda_typed(s, "cuda_loss", "loss_join", x->dtype, error)) != NULL;
}

static gboolean loss_run(HnStep *s, GError **error)
{
    const Loss *l = s->state;
    HnCudaLossArgs a = l->args;
    a.a = hn_cuda_in_address(s, A);
    if (has_labels(s))
        a.labels = hn_cuda_in_address(s, B);
    else
        a.b = hn_cuda_in_address(s, B);
    a.dy = hn_cuda_in_address(s, DY);
    a.y = hn_cuda_out_address(s, 0);
    a.partial = hn_cuda_scratch(s);
    return hn_cuda_launch(s, l->f, l->grid, &a, error) &&
           (l->join == NULL || hn_cuda_launch(s, l->join, hn_cuda_row(1, THREADS), &a, error));
}

static void loss_release(HnStep *s)
{
    hn_cuda_complains_no_more(s);
    hn_cuda_release(s);
}

#define LOSS(symbol, title, rows, gradient)                     \
    static gboolean symbol##_prepare(HnStep *s, GError **error) \
    {                                                           \
        return prepare(s, title, rows, error);                  \
    }                                                           \
    static const HnKernel symbol = {                            \
        .name = "cuda." #symbol,                                \
        .reject = loss_reject,                                  \
        .prepare = symbol##_prepare,                            \
        .run = loss_run,                                        \
        .release = loss_release,                                \
        .inplace = gradient,                                    \
    };                                                          \
    const HnKernel *const hn_cuda_##symbol[] = { &symbol, NULL };

LOSS(crossentropyloss, "loss_crossentropy", TRUE, FALSE)
LOSS(crossentropylossgrad, "loss_crossentropy_grad", TRUE, TRUE)
LOSS(klloss, "loss_kl", TRUE, FALSE)
LOSS(kllossgrad, "loss_kl_grad", TRUE, TRUE)
LOSS(cosineloss, "loss_cosine", TRUE, FALSE)
LOSS(cosinelossgrad, "loss_cosine_grad", TRUE, TRUE)
LOSS(mseloss, "loss_mse", FALSE, FALSE)
LOSS(l1loss, "loss_l1", FALSE, FALSE)
LOSS(binarycrossentropyloss, "loss_bce", FALSE, FALSE)
LOSS(binarycrossentropylossgrad, "loss_bce_grad", FALSE, TRUE)
