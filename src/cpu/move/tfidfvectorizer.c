/*
 * TfIdfVectorizer: the tree of n-grams is made once, when the step is; a run only looks up.
 */
#include "op/tfidfvectorizer.h"

#include "cpu/core/cpu_kernel.h"

static const char *tfidf_reject(const HnStep *s)
{
    return hn_cpu_in(s, 0)->ndim == 0 ? "a scalar" : NULL;
}

static gboolean tfidf_prepare(HnStep *s, GError **error)
{
    (void)error;
    const HnTensor *x = hn_cpu_in(s, 0);
    s->scratch_bytes = (gsize)x->dims[x->ndim - 1] * sizeof(int32_t);
    s->state = hn_ngrams_new(s->params);
    return TRUE;
}

static gboolean tfidf_run(HnStep *s, GError **error)
{
    (void)error;
    const HnTensor *x = hn_cpu_in(s, 0), *y = s->out[0].slot->tensor;
    const int64_t n = x->dims[x->ndim - 1], width = ((const HnTfIdf *)s->params)->width;
    for (int64_t i = 0; i * width < y->n; i++)
        hn_ngrams_row(s->state, x, i * n, n, s->scratch, (float *)y->data + i * width);
    return TRUE;
}

static void tfidf_release(HnStep *s)
{
    hn_ngrams_free(s->state);
}

static const HnKernel tfidf = {
    .name = "cpu.tfidf",
    .reject = tfidf_reject,
    .prepare = tfidf_prepare,
    .run = tfidf_run,
    .release = tfidf_release,
};

const HnKernel *const hn_cpu_tfidfvectorizer[] = { &tfidf, NULL };
