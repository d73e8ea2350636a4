/*
 * TfIdfVectorizer: counts n-grams of a pool in each row, also such whose items lie up to max_skip_count + 1 apart, all
 * at the same distance. Single items are counted once, whatever may be skipped. Weights belong to places of the result,
 * as in ONNX's reference evaluator and in ONNX Runtime.
 */
#include "op/tfidfvectorizer.h"

#include <string.h>

#include "op/move.h"

/* --- parameters -------------------------------------------------------------------------------------------------- */

/* Pieces of the pool are whole n-grams, and each has a place. */
static void check_pool(HnBind *b, HnTfIdf *p)
{
    int64_t grams = 0;
    for (int64_t i = 0; i < p->n_starts; i++) {
        const int64_t end = i + 1 < p->n_starts ? p->starts[i + 1] : p->n_pool;
        if (p->starts[i] < 0 || end < p->starts[i] || end > p->n_pool || (end - p->starts[i]) % (i + 1) != 0) {
            hn_bind_fail(b, HN_ERROR_ATTRIBUTE, "attribute 'ngram_counts' does not cut the pool into n-grams");
            return;
        }
        grams += (end - p->starts[i]) / (i + 1);
    }
    if (grams != p->n_places || p->n_starts == 0 || p->starts[0] != 0)
        hn_bind_fail(b, HN_ERROR_ATTRIBUTE, "attribute 'ngram_indexes' has %" PRId64 " places for %" PRId64 " n-grams",
                     p->n_places, grams);
    for (int64_t i = 0; i < p->n_places && b->error == NULL; i++) {
        if (p->places[i] < 0 || p->places[i] > G_MAXINT32)
            hn_bind_fail(b, HN_ERROR_ATTRIBUTE, "attribute 'ngram_indexes' holds %" PRId64, p->places[i]);
        p->width = MAX(p->width, p->places[i] + 1);
    }
    if (b->error == NULL && p->weights != NULL && p->n_weights < p->width)
        hn_bind_fail(b, HN_ERROR_ATTRIBUTE, "attribute 'weights' has %" PRId64 " elements, not %" PRId64, p->n_weights,
                     p->width);
}

static void tfidf_bind(HnBind *b, void *params)
{
    static const char *const modes[] = { "TF", "IDF", "TFIDF", NULL };
    static const char *const needed[] = { "mode",           "ngram_counts",    "ngram_indexes",
                                          "max_skip_count", "min_gram_length", "max_gram_length" };
    HnTfIdf *p = params;
    const HnAttr *a = hn_node_attr(b->node, "pool_strings");
    for (guint i = 0; i < G_N_ELEMENTS(needed); i++)
        hn_bind_require(b, needed[i]);
    p->mode = hn_bind_word(b, "mode", modes, HN_TFIDF_TF);
    p->shortest = hn_bind_int(b, "min_gram_length", 1);
    p->longest = hn_bind_int(b, "max_gram_length", 1);
    p->most_skipped = hn_bind_int(b, "max_skip_count", 0);
    p->starts = hn_bind_ints(b, "ngram_counts", &p->n_starts);
    p->places = hn_bind_ints(b, "ngram_indexes", &p->n_places);
    p->weights = hn_bind_floats(b, "weights", &p->n_weights);
    p->ints = hn_bind_ints(b, "pool_int64s", &p->n_pool);
    if ((p->ints != NULL) == (a != NULL) || (a != NULL && (a->kind != HN_ATTR_STRINGS || a->ref_attr != NULL)))
        hn_bind_fail(b, HN_ERROR_ATTRIBUTE, "there is not one pool, of integers or of strings");
    if (p->shortest < 1 || p->longest < p->shortest || p->most_skipped < 0 || p->longest > p->n_starts)
        hn_bind_fail(b, HN_ERROR_ATTRIBUTE, "n-grams of %" PRId64 " to %" PRId64 " items are not to be had",
                     p->shortest, p->longest);
    if (b->error != NULL)
        return;
    if (a != NULL) {
        p->strings = a->strings;
        p->n_pool = (int64_t)a->n;
    }
    check_pool(b, p);
}

/* --- the tree ---------------------------------------------------------------------------------------------------- */

struct HnNgrams {
    const HnTfIdf *p;
    GHashTable *items; /* of the pool: gint64 * or GBytes * -> 1 + number */
    GHashTable *steps; /* (node << 32 | item) -> node */
    GArray *place;     /* int32_t, of a node: of the n-gram that ends there; -1: none does */
};

static int32_t new_node(HnNgrams *g)
{
    const int32_t none = -1;
    g_array_append_val(g->place, none);
    return (int32_t)g->place->len - 1;
}

/* The number of item i of the pool. */
static int32_t pool_item(HnNgrams *g, int64_t i)
{
    gconstpointer key = g->p->ints != NULL ? (gconstpointer)&g->p->ints[i] : g->p->strings[i];
    gpointer known = g_hash_table_lookup(g->items, key);
    if (known == NULL)
        g_hash_table_insert(g->items, (gpointer)key, known = GINT_TO_POINTER((int)g_hash_table_size(g->items) + 1));
    return GPOINTER_TO_INT(known) - 1;
}

static int32_t step(const HnNgrams *g, int32_t node, int32_t item)
{
    const gint64 key = (gint64)node << 32 | (guint32)item;
    return GPOINTER_TO_INT(g_hash_table_lookup(g->steps, &key));
}

/* Items [from, from + n) of the pool, whose place in results is `place`; of two that are the same the first counts. */
static void add_gram(HnNgrams *g, int64_t from, int64_t n, int64_t place)
{
    int32_t node = 0;
    for (int64_t i = from; i < from + n; i++) {
        const int32_t item = pool_item(g, i);
        int32_t next = step(g, node, item);
        if (next == 0) {
            const gint64 key = (gint64)node << 32 | (guint32)item;
            next = new_node(g);
            g_hash_table_insert(g->steps, g_memdup2(&key, sizeof key), GINT_TO_POINTER(next));
        }
        node = next;
    }
    int32_t *at = &g_array_index(g->place, int32_t, node);
    *at = *at < 0 ? (int32_t)place : *at;
}

HnNgrams *hn_ngrams_new(const HnTfIdf *p)
{
    HnNgrams *g = g_new0(HnNgrams, 1);
    g->p = p;
    g->items =
        p->ints != NULL ? g_hash_table_new(g_int64_hash, g_int64_equal) : g_hash_table_new(g_bytes_hash, g_bytes_equal);
    g->steps = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, NULL);
    g->place = g_array_new(FALSE, FALSE, sizeof(int32_t));
    new_node(g); /* the root, to which no step leads */
    int64_t gram = 0;
    for (int64_t n = 1; n <= p->n_starts; n++) {
        const int64_t end = n < p->n_starts ? p->starts[n] : p->n_pool;
        for (int64_t i = p->starts[n - 1]; i < end; i += n, gram++)
            if (n >= p->shortest && n <= p->longest)
                add_gram(g, i, n, p->places[gram]);
    }
    return g;
}

void hn_ngrams_free(HnNgrams *g)
{
    if (g == NULL)
        return;
    g_hash_table_unref(g->items);
    g_hash_table_unref(g->steps);
    g_array_unref(g->place);
    g_free(g);
}

static int compare_keys(gconstpointer a, gconstpointer b)
{
    const gint64 x = *(const gint64 *)a, y = *(const gint64 *)b; /* both kinds begin with it */
    return x < y ? -1 : x > y;
}

GArray *hn_ngrams_items(const HnNgrams *g)
{
    GArray *items = g_array_new(FALSE, TRUE, sizeof(HnNgramItem));
    GHashTableIter i;
    gpointer key, number;
    g_hash_table_iter_init(&i, g->items);
    while (g_hash_table_iter_next(&i, &key, &number)) {
        const HnNgramItem item = { .value = *(const gint64 *)key, .number = GPOINTER_TO_INT(number) - 1 };
        g_array_append_val(items, item);
    }
    g_array_sort(items, compare_keys);
    return items;
}

GArray *hn_ngrams_steps(const HnNgrams *g)
{
    GArray *steps = g_array_new(FALSE, TRUE, sizeof(HnNgramStep));
    GHashTableIter i;
    gpointer key, node;
    g_hash_table_iter_init(&i, g->steps);
    while (g_hash_table_iter_next(&i, &key, &node)) {
        const HnNgramStep step = { .key = *(const gint64 *)key, .node = GPOINTER_TO_INT(node) };
        g_array_append_val(steps, step);
    }
    g_array_sort(steps, compare_keys);
    return steps;
}

const gint32 *hn_ngrams_places(const HnNgrams *g, guint *n)
{
    *n = g->place->len;
    return (const gint32 *)(const void *)g->place->data;
}

/* --- a row ------------------------------------------------------------------------------------------------------- */

/* Numbers of a row's items; -1: the pool has no such one. */
static void look_up(const HnNgrams *g, const HnTensor *x, int64_t from, int64_t n, int32_t *item)
{
    for (int64_t i = 0; i < n; i++) {
        const gint64 v = x->dtype != HN_STRING ? hn_tensor_get_i64(x, from + i) : 0;
        gconstpointer key = x->dtype != HN_STRING ? (gconstpointer)&v : hn_tensor_get_string(x, from + i);
        item[i] = GPOINTER_TO_INT(g_hash_table_lookup(g->items, key)) - 1;
    }
}

/* All n-grams of at least `shortest` items that are `apart` of one another. */
static void count(const HnNgrams *g, const int32_t *item, int64_t n, int64_t apart, int64_t shortest, float *y)
{
    for (int64_t start = 0; start < n; start++) {
        int32_t node = 0;
        int64_t length = 1;
        for (int64_t i = start; i < n && item[i] >= 0 && length <= g->p->longest; i += apart, length++) {
            if ((node = step(g, node, item[i])) == 0)
                break;
            const int32_t place = g_array_index(g->place, int32_t, node);
            if (length >= shortest && place >= 0)
                y[place] += 1;
        }
    }
}

static void weigh(const HnTfIdf *p, float *y)
{
    for (int64_t i = 0; i < p->width && p->mode != HN_TFIDF_TF; i++) {
        const float w = p->weights != NULL ? p->weights[i] : 1;
        y[i] = p->mode == HN_TFIDF_TFIDF ? y[i] * w : y[i] > 0 ? w : 0;
    }
}

void hn_ngrams_row(const HnNgrams *g, const HnTensor *x, int64_t from, int64_t n, int32_t *item, float *y)
{
    const HnTfIdf *p = g->p;
    memset(y, 0, (size_t)p->width * sizeof *y);
    look_up(g, x, from, n, item);
    int64_t shortest = p->shortest;
    for (int64_t apart = 1; apart - 1 <= p->most_skipped && (apart == 1 || apart < n) && shortest <= p->longest;
         apart++) {
        count(g, item, n, apart, shortest, y);
        shortest = MAX(shortest, 2); /* single items once */
    }
    weigh(p, y);
}

/* --- the record -------------------------------------------------------------------------------------------------- */

static void tfidf_infer(HnInfer *x)
{
    const HnTfIdf *p = x->params;
    const int rank = hn_infer_rank(x, 0);
    const HnDtype dtype = hn_infer_dtype(x, 0);
    const HnDim dims[] = { rank == 2 ? hn_infer_dim(x, 0, 0) : hn_dim_unknown(), hn_dim(p->width) };
    if (dtype != HN_UNDEFINED && (dtype == HN_STRING) != (p->strings != NULL))
        hn_infer_fail(x, HN_ERROR_TYPE, "the pool is of %s, but the input of %s",
                      p->strings != NULL ? "strings" : "integers", hn_dtype_name(dtype));
    if (rank == 0 || rank > 2)
        hn_infer_fail(x, HN_ERROR_SHAPE, "the input has %d dimensions, not 1 or 2", rank);
    if (rank < 0)
        hn_infer_out_unknown(x, 0, HN_F32);
    else
        hn_infer_out(x, 0, HN_F32, rank, rank == 2 ? dims : dims + 1);
}

static void tfidf_ref(HnEval *e)
{
    const HnTfIdf *p = e->params;
    const HnTensor *x = hn_eval_in(e, 0);
    const int64_t rows = x->ndim == 2 ? x->dims[0] : 1, dims[] = { rows, p->width };
    if (x->ndim == 0 || x->ndim > 2) {
        hn_eval_fail(e, HN_ERROR_SHAPE, "the input has %d dimensions, not 1 or 2", x->ndim);
        return;
    }
    const int64_t n = x->dims[x->ndim - 1];
    float *y = hn_eval_out(e, 0, HN_F32, x->ndim, x->ndim == 2 ? dims : dims + 1);
    int32_t *item = y != NULL ? hn_eval_scratch(e, n, sizeof *item) : NULL;
    if (item == NULL)
        return;
    g_autoptr(HnNgrams) g = hn_ngrams_new(p);
    for (int64_t i = 0; i < rows; i++)
        hn_ngrams_row(g, x, i * n, n, item, y + i * p->width);
    hn_eval_scratch_free(e, item);
}

const HnOp hn_op_tfidfvectorizer = {
    .name = "TfIdfVectorizer",
    .since = { 9 },
    .in = "T",
    .out = "f",
    .T = HN_BIT(HN_STRING) | HN_BIT(HN_I32) | HN_BIT(HN_I64),
    .params_size = sizeof(HnTfIdf),
    .bind = tfidf_bind,
    .infer = tfidf_infer,
    .cost = hn_cost_elementwise,
    .ref = tfidf_ref,
};
