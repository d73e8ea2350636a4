/*
 * TfIdfVectorizer of integers: their numbers in the pool, then ways through the tree of n-grams from each of them, at
 * each distance, whose ends are counted.
 */
#include "op/tfidfvectorizer.h"

#include "cuda/core/cuda_kernel.h"
#include "cuda/move/cuda_tfidf_args.h"

#define THREADS 256

_Static_assert(sizeof(HnNgramItem) == sizeof(HnCudaNgramItem) && sizeof(HnNgramStep) == sizeof(HnCudaNgramStep),
               "tables are copied as they are");

typedef struct {
    HnCuFunction items, count, weigh;
    HnCudaTfIdfArgs args;
} TfIdf;

static const char *tfidf_reject(const HnStep *s)
{
    const HnTensor *x = hn_cuda_in(s, 0);
    return x->dtype == HN_STRING ? "texts" : x->ndim == 0 ? "a scalar" : NULL;
}

/* What is empty is looked up by nobody. */
static gboolean keep(const HnStep *s, uint64_t *table, gconstpointer data, gsize n, gsize size, GError **error)
{
    return n == 0 || (*table = hn_cuda_table_new(s, data, n * size, error)) != 0;
}

static gboolean keep_tables(const HnStep *s, HnCudaTfIdfArgs *a, GError **error)
{
    const HnTfIdf *p = s->params;
    g_autoptr(HnNgrams) g = hn_ngrams_new(p);
    g_autoptr(GArray) items = hn_ngrams_items(g), steps = hn_ngrams_steps(g);
    guint nodes;
    const gint32 *place = hn_ngrams_places(g, &nodes);
    a->n_items = (int32_t)items->len;
    a->n_steps = (int32_t)steps->len;
    return keep(s, &a->items, items->data, items->len, sizeof(HnNgramItem), error) &&
           keep(s, &a->steps, steps->data, steps->len, sizeof(HnNgramStep), error) &&
           keep(s, &a->place, place, nodes, sizeof *place, error) &&
           keep(s, &a->weights, p->weights, p->weights != NULL ? (gsize)p->width : 0, sizeof *p->weights, error);
}

static gboolean tfidf_prepare(HnStep *s, GError **error)
{
    const HnTfIdf *p = s->params;
    const HnTensor *x = hn_cuda_in(s, 0);
    TfIdf *t = g_new0(TfIdf, 1);
    s->state = t;
    HnCudaTfIdfArgs *a = &t->args;
    a->n = x->dims[x->ndim - 1];
    a->rows = x->ndim == 2 ? x->dims[0] : 1;
    a->width = p->width;
    a->shortest = p->shortest;
    a->longest = p->longest;
    a->distances = p->longest == 1 ? 1 : 1 + MIN(p->most_skipped, MAX(a->n - 2, 0));
    a->wide = x->dtype == HN_I64;
    a->flags = p->mode == HN_TFIDF_IDF;
    a->weigh = p->mode != HN_TFIDF_TF;
    s->scratch_bytes = x->bytes / hn_dtype_size(x->dtype) * sizeof(int32_t);
    return keep_tables(s, a, error) && (t->items = hn_cuda_named(s, "cuda_tfidf", "tfidf_items", error)) != NULL &&
           (t->count = hn_cuda_named(s, "cuda_tfidf", "tfidf_count", error)) != NULL &&
           (t->weigh = hn_cuda_named(s, "cuda_tfidf", "tfidf_weigh", error)) != NULL;
}

static gboolean tfidf_run(HnStep *s, GError **error)
{
    const TfIdf *t = s->state;
    HnCudaTfIdfArgs a = t->args;
    a.x = hn_cuda_in_address(s, 0);
    a.item = hn_cuda_scratch(s);
    a.y = hn_cuda_out_address(s, 0);
    const int64_t n = a.rows * a.n, all = a.rows * a.width;
    return hn_cuda_zeros(s, a.y, (gsize)all * sizeof(float), error) &&
           (n == 0 || (hn_cuda_launch(s, t->items, hn_cuda_loop(s, n, THREADS), &a, error) &&
                       hn_cuda_launch(s, t->count, hn_cuda_loop(s, n * a.distances, THREADS), &a, error))) &&
           (all == 0 || hn_cuda_launch(s, t->weigh, hn_cuda_loop(s, all, THREADS), &a, error));
}

static void tfidf_release(HnStep *s)
{
    const TfIdf *t = s->state;
    if (t != NULL) {
        hn_cuda_table_free(s, t->args.items);
        hn_cuda_table_free(s, t->args.steps);
        hn_cuda_table_free(s, t->args.place);
        hn_cuda_table_free(s, t->args.weights);
    }
    hn_cuda_release(s);
}

static const HnKernel tfidf = {
    .name = "cuda.tfidf",
    .reject = tfidf_reject,
    .prepare = tfidf_prepare,
    .run = tfidf_run,
    .release = tfidf_release,
};
const HnKernel *const hn_cuda_tfidfvectorizer[] = { &tfidf, NULL };
