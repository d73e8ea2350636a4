#include "cuda/move/cuda_copies.h"

#include "cuda/move/cuda_copies_args.h"

#define THREADS 256
#define AT_ONCE 2 /* elements of a thread */

HnCudaCopies *hn_cuda_copies_new(HnStep *s, guint n)
{
    HnCudaCopies *c = g_malloc0(sizeof *c + n * sizeof *c->part);
    c->n = n;
    s->state = c;
    return c;
}

gboolean hn_cuda_copies_together(HnStep *s, GError **error)
{
    HnCudaCopies *c = s->state;
    for (int w = 0; c->n > 1 && w < HN_CUDA_WIDTHS; w++)
        if ((c->together[w] = hn_cuda_sized(s, "cuda_copies", "copies", (size_t)1 << w, error)) == NULL)
            return FALSE;
    return TRUE;
}

/* Copies that are to be one launch, in bytes. */
typedef struct {
    guint n;
    guint which[HN_CUDA_COPIES];
    HnCudaRunBytes run[HN_CUDA_COPIES];
    uint64_t y[HN_CUDA_COPIES], x[HN_CUDA_COPIES];
} Batch;

static gboolean run_part(const HnStep *s, guint k, GError **error)
{
    const HnCudaCopies *c = s->state;
    return hn_cuda_strided_run(s, c->part[k].copy, hn_cuda_address(&s->out[c->part[k].out]),
                               hn_cuda_address(&s->in[c->part[k].in]), error);
}

/* The widest elements that all of them consist of: its logarithm. */
static int width_of(const Batch *b)
{
    uint64_t bits = 16;
    int w = 0;
    for (guint i = 0; i < b->n; i++) {
        bits |= b->y[i] | b->x[i] | (uint64_t)b->run[i].run;
        bits |= b->run[i].rows > 1 ? (uint64_t)(b->run[i].y_row | b->run[i].x_row) : 0;
    }
    while ((bits >> w & 1) == 0)
        w++;
    return w;
}

static gboolean run_batch(const HnStep *s, Batch *b, GError **error)
{
    const HnCudaCopies *c = s->state;
    const int w = width_of(b);
    const guint n = b->n;
    HnCudaCopiesArgs a = { 0 }; /* no addresses that are not used: a recorded launch is held to what it was given */
    int64_t most = 0;
    b->n = 0;
    if (n < 2)
        return n == 0 || run_part(s, b->which[0], error);
    for (guint i = 0; i < n; i++) {
        const HnCudaRunBytes *r = &b->run[i];
        a.part[i] = (HnCudaRuns){ b->y[i],
                                  b->x[i],
                                  (uint32_t)(r->rows * r->run >> w),
                                  (uint32_t)(r->y_row >> w),
                                  (uint32_t)(r->x_row >> w),
                                  hn_divisor(r->run >> w) };
        most = MAX(most, r->rows * r->run >> w);
    }
    HnCudaGrid g = hn_cuda_spread(s, (most + AT_ONCE - 1) / AT_ONCE, THREADS);
    g.grid[1] = n;
    return hn_cuda_launch(s, c->together[w], g, &a, error);
}

/* 32 bits count its bytes. */
static gboolean is_small(const HnCudaRunBytes *r)
{
    return r->rows * r->run < HN_DIVIDE_LIMIT && r->y_row < HN_DIVIDE_LIMIT && r->x_row < HN_DIVIDE_LIMIT;
}

gboolean hn_cuda_copies_run(HnStep *s, GError **error)
{
    const HnCudaCopies *c = s->state;
    Batch b = { .n = 0 };
    for (guint k = 0; k < c->n; k++) {
        const HnPort *from = &s->in[c->part[k].in], *to = &s->out[c->part[k].out];
        HnCudaRunBytes *r = &b.run[b.n];
        if (from->joined || to->joined)
            continue;
        if (c->together[0] == NULL || !hn_cuda_strided_runs(c->part[k].copy, r) || !is_small(r)) {
            if (!run_part(s, k, error))
                return FALSE;
            continue;
        }
        b.which[b.n] = k;
        b.y[b.n] = hn_cuda_address(to) + (uint64_t)r->y0;
        b.x[b.n++] = hn_cuda_address(from) + (uint64_t)r->x0;
        if (b.n == HN_CUDA_COPIES && !run_batch(s, &b, error))
            return FALSE;
    }
    return run_batch(s, &b, error);
}

void hn_cuda_copies_release(HnStep *s)
{
    HnCudaCopies *c = s->state;
    for (guint k = 0; c != NULL && k < c->n; k++)
        hn_cuda_strided_free(c->part[k].copy);
    hn_cuda_release(s);
}

/* The copy of a port: each has one, or one alone; NULL: there is none. */
static const HnCudaStrided *copy_of(const HnCudaCopies *c, gboolean in, int port)
{
    const guint k = c->n > 1 ? (guint)port : 0;
    return k < c->n && (in ? c->part[k].in : c->part[k].out) == port ? c->part[k].copy : NULL;
}

HnPlace hn_cuda_copies_joins(const HnStep *s, int i, gsize *offset)
{
    const HnCudaStrided *c = copy_of(s->state, TRUE, i);
    return c != NULL ? hn_cuda_strided_place(c, TRUE, offset) : HN_PLACE_NONE;
}

HnPlace hn_cuda_copies_splits(const HnStep *s, int k, gsize *offset)
{
    const HnCudaStrided *c = copy_of(s->state, FALSE, k);
    return c != NULL ? hn_cuda_strided_place(c, FALSE, offset) : HN_PLACE_NONE;
}
