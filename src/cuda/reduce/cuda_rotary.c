/*
 * RotaryEmbedding, a thread for each pair of elements.
 */
#include "cuda/core/cuda_kernel.h"
#include "cuda/reduce/cuda_rotary_args.h"
#include "op/rotary.h"

enum { X, COSINE, SINE, IDS };

#define THREADS 256

typedef struct {
    HnCuFunction f;
    HnCudaGrid grid;
    HnCudaRotaryArgs args;
} Rotary;

/* Sizes and strides. FALSE: the shapes do not fit. */
static gboolean form_of(const HnStep *s, HnCudaRotaryArgs *f)
{
    const HnRotary *p = s->params;
    const HnTensor *x = hn_cuda_in(s, X), *ids = hn_cuda_in(s, IDS);
    if (x->ndim == 4) {
        *f = (HnCudaRotaryArgs){ .batch = x->dims[0], .heads = x->dims[1], .length = x->dims[2], .head = x->dims[3] };
        f->s_token = f->head;
        f->s_head = f->length * f->head;
        f->s_batch = f->heads * f->s_head;
    } else if (x->ndim == 3 && p->heads > 0 && x->dims[2] % p->heads == 0) {
        *f = (HnCudaRotaryArgs){ .batch = x->dims[0], .heads = p->heads, .length = x->dims[1] };
        f->head = x->dims[2] / p->heads;
        f->s_token = x->dims[2];
        f->s_head = f->head;
        f->s_batch = f->length * f->s_token;
    } else {
        return FALSE;
    }
    const int64_t dim = p->dim > 0 ? p->dim : f->head;
    f->half = dim / 2;
    f->places = hn_cuda_in(s, COSINE)->dims[0];
    f->interleaved = p->interleaved;
    if (dim > f->head || dim % 2 != 0)
        return FALSE;
    for (int i = COSINE; i <= SINE; i++) {
        const HnTensor *t = hn_cuda_in(s, i);
        if (ids != NULL ? t->ndim != 2 || t->dims[1] != f->half || t->dims[0] != f->places
                        : t->ndim != 3 || t->dims[0] != f->batch || t->dims[1] != f->length || t->dims[2] != f->half)
            return FALSE;
    }
    return ids == NULL || (ids->ndim == 2 && ids->dims[0] == f->batch && ids->dims[1] == f->length);
}

static const char *rotary_reject(const HnStep *s)
{
    HnCudaRotaryArgs f;
    const char *reason = hn_cuda_reject_floats(s);
    if (reason != NULL)
        return reason;
    for (int i = COSINE; i <= SINE; i++) {
        if (hn_cuda_in(s, i)->dtype != hn_cuda_in(s, X)->dtype)
            return "caches of another type than the elements";
        if (hn_cuda_in(s, i)->n == 0 || hn_cuda_in(s, i)->ndim == 0)
            return "nothing to compute";
    }
    return form_of(s, &f) ? NULL : "the shapes do not fit";
}

static void say(const HnStep *s, int64_t at, GError **error)
{
    g_set_error(error, HN_ERROR, HN_ERROR_VALUE, "the position of token %" PRId64 " is outside [0, %" PRId64 ")", at,
                hn_cuda_in(s, COSINE)->dims[0]);
}

static gboolean rotary_prepare(HnStep *s, GError **error)
{
    Rotary *r = g_new0(Rotary, 1);
    HnCudaRotaryArgs *a = &r->args;
    s->state = r;
    form_of(s, a);
    if (hn_cuda_in(s, IDS) != NULL && !hn_cuda_complains(s, say, &a->complaint, error))
        return FALSE;
    r->grid = hn_cuda_loop(s, a->batch * a->heads * a->length * (a->head - a->half), THREADS);
    r->f = hn_cuda_typed(s, "cuda_rotary", "rotary", hn_cuda_in(s, X)->dtype, error);
    return r->f != NULL;
}

static gboolean rotary_run(HnStep *s, GError **error)
{
    const Rotary *r = s->state;
    HnCudaRotaryArgs a = r->args;
    a.x = hn_cuda_in_address(s, X);
    a.cosine = hn_cuda_in_address(s, COSINE);
    a.sine = hn_cuda_in_address(s, SINE);
    a.ids = hn_cuda_in_address(s, IDS);
    a.y = hn_cuda_out_address(s, 0);
    return hn_cuda_launch(s, r->f, r->grid, &a, error);
}

static void rotary_release(HnStep *s)
{
    hn_cuda_complains_no_more(s);
    hn_cuda_release(s);
}

static const HnKernel rotary = {
    .name = "cuda.rotaryembedding",
    .reject = rotary_reject,
    .prepare = rotary_prepare,
    .run = rotary_run,
    .release = rotary_release,
    .inplace = TRUE,
};

const HnKernel *const hn_cuda_rotaryembedding[] = { &rotary, NULL };
