#include "ir/sparse.h"

#include <string.h>

#define LEAST_BYTES 1024 /* of a dense weight: shorter ones are not worth a second tensor */
#define WORTH 0.9        /* of the dense bytes at most */
#define MOST_DENSE 64    /* times the sparse bytes: a larger weight stays as it is */
#define OTHER_BYTES 32   /* of a second tensor's fields */

/* As protobuf stores it. */
static gsize varint_bytes(int64_t v)
{
    gsize n = 1;
    for (uint64_t u = (uint64_t)v; u >= 128; u >>= 7)
        n++;
    return n;
}

static gboolean is_zero(const HnTensor *t, int64_t i, size_t size)
{
    static const char zero[16] = { 0 };
    return memcmp((const char *)t->data + (size_t)i * size, zero, size) == 0;
}

/* Elements that are not 0; 0: the sparse form is no shorter. */
static int64_t count_of(const HnTensor *t, size_t size)
{
    int64_t n = 0;
    gsize bytes = OTHER_BYTES;
    for (int64_t i = 0; i < t->n; i++)
        if (!is_zero(t, i, size)) {
            n++;
            bytes += size + varint_bytes(i);
        }
    return (double)bytes < WORTH * (double)t->bytes ? n : 0;
}

HnSparse *hn_sparse_of(const HnTensor *t, HnBudget *budget, GError **error)
{
    const size_t size = hn_dtype_bits(t->dtype) % 8 == 0 ? hn_dtype_size(t->dtype) : 0;
    if (t->dtype == HN_STRING || size == 0 || t->unloaded || t->ndim == 0 || t->bytes < LEAST_BYTES)
        return NULL;
    const int64_t n = count_of(t, size);
    if (n == 0)
        return NULL;
    HnSparse *s = g_new0(HnSparse, 1);
    s->ndim = t->ndim;
    s->dims = g_memdup2(t->dims, (gsize)t->ndim * sizeof *s->dims);
    s->values = hn_tensor_new_uninit(t->dtype, 1, &n, budget, error);
    s->indices = s->values != NULL ? hn_tensor_new_uninit(HN_I64, 1, &n, budget, error) : NULL;
    if (s->indices == NULL) {
        hn_sparse_free(s);
        return NULL;
    }
    s->indices->stored = HN_STORED_TYPED; /* packed varints */
    int64_t k = 0, *index = s->indices->data;
    for (int64_t i = 0; i < t->n; i++)
        if (!is_zero(t, i, size)) {
            memcpy((char *)s->values->data + (size_t)k * size, (const char *)t->data + (size_t)i * size, size);
            index[k++] = i;
        }
    return s;
}

/* -1: an error. */
typedef int (*StoreFn)(HnGraph *g, HnValue *v, HnBudget *budget, GError **error);

static int make_sparse(HnGraph *g, HnValue *v, HnBudget *budget, GError **error)
{
    GError *failure = NULL;
    HnSparse *s = v->weight != NULL ? hn_sparse_of(v->weight, budget, &failure) : NULL;
    if (failure != NULL) {
        g_propagate_error(error, failure);
        return -1;
    }
    if (s != NULL)
        hn_graph_add_sparse(g, v, s);
    return s != NULL;
}

static int is_sparse(HnGraph *g, HnValue *v, HnBudget *budget, GError **error)
{
    (void)g, (void)budget, (void)error;
    return v->sparse != NULL;
}

static int make_dense(HnGraph *g, HnValue *v, HnBudget *budget, GError **error)
{
    int64_t n;
    const HnSparse *s = v->sparse;
    if (s == NULL || s->values == NULL || s->values->dtype == HN_STRING || !hn_dims_count(s->ndim, s->dims, &n))
        return 0;
    if ((double)n * (double)hn_dtype_bits(s->values->dtype) / 8 > MOST_DENSE * (double)(s->values->bytes + LEAST_BYTES))
        return 0;
    g_autoptr(HnTensor) t = hn_sparse_dense(s, budget, error);
    if (t == NULL)
        return -1;
    hn_graph_add_weight(g, v, t);
    return 1;
}

/* All graphs, the outer ones first. */
static int store(const HnModel *m, StoreFn fn, HnBudget *budget, GError **error)
{
    int all = 0;
    g_autoptr(GPtrArray) graphs = g_ptr_array_new();
    g_ptr_array_add(graphs, m->graph);
    for (guint i = 0; i < graphs->len; i++) {
        HnGraph *g = graphs->pdata[i];
        g_ptr_array_extend(graphs, g->inner, NULL, NULL);
        for (guint k = 0; k < g->weights->len; k++) {
            const int n = fn(g, g->weights->pdata[k], budget, error);
            if (n < 0)
                return -1;
            all += n;
        }
    }
    return all;
}

gboolean hn_model_has_sparse(const HnModel *m)
{
    return store(m, is_sparse, NULL, NULL) > 0;
}

int hn_model_store_sparse(HnModel *m, HnBudget *budget, GError **error)
{
    return store(m, make_sparse, budget, error);
}

int hn_model_store_dense(HnModel *m, HnBudget *budget, GError **error)
{
    return store(m, make_dense, budget, error);
}
