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

static const char *form_of(const HnStep *s, HnRotaryForm *f)
{
    return hn_rotary_form(s->params, hn_cuda_in(s, X), hn_cuda_in(s, COSINE), hn_cuda_in(s, SINE), hn_cuda_in(s, IDS),
                          f);
}

static const char *rotary_reject(const HnStep *s)
{
    HnRotaryForm f;
    const char *reason = hn_cuda_reject_floats(s);
    if (reason != NULL)
        return reason;
    for (int i = COSINE; i <= SINE; i++) {
        if (hn_cuda_in(s, i)->dtype != hn_cuda_in(s, X)->dtype)
            return "caches of another type than the elements";
        if (hn_cuda_in(s, i)->n == 0 || hn_cuda_in(s, i)->ndim == 0)
            return "nothing to compute";
    }
    return form_of(s, &f);
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
    HnRotaryForm f;
    s->state = r;
    (void)form_of(s, &f);
    *a = (HnCudaRotaryArgs){ .batch = f.batch,
                             .heads = f.heads,
                             .length = f.length,
                             .head = f.head,
                             .half = f.half,
                             .s_batch = f.s_batch,
                             .s_head = f.s_head,
                             .s_token = f.s_token,
                             .places = hn_cuda_in(s, COSINE)->dims[0],
                             .interleaved = ((const HnRotary *)s->params)->interleaved };
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
