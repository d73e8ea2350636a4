#include "ir/graph.h"

#include <string.h>

#include "base/checked.h"
#include "base/error.h"
#include "ir/detach.h"

HnAttr *hn_attr_new(const char *name, HnAttrKind kind)
{
    HnAttr *a = g_new0(HnAttr, 1);
    a->refs = 1;
    a->name = g_strdup(name);
    a->kind = kind;
    a->has_kind = TRUE;
    return a;
}

int64_t hn_attr_graphs(const HnAttr *a, HnGraph *const **graphs)
{
    if (a->kind == HN_ATTR_GRAPH) {
        *graphs = &a->g;
        return 1;
    }
    *graphs = a->graphs;
    return a->kind == HN_ATTR_GRAPHS && a->graphs ? a->n : 0;
}

void hn_sparse_free(HnSparse *s)
{
    if (!s)
        return;
    hn_tensor_unref(s->values);
    hn_tensor_unref(s->indices);
    if (s->unknown)
        g_bytes_unref(s->unknown);
    g_free(s->dims);
    g_free(s);
}

static void string_free(GBytes *s)
{
    if (s)
        g_bytes_unref(s);
}

void hn_attr_release(HnAttr *a)
{
    if (!g_atomic_int_dec_and_test(&a->refs))
        return;
    switch (a->kind) {
    case HN_ATTR_UNDEFINED:
    case HN_ATTR_FLOAT:
    case HN_ATTR_INT:
        break;
    case HN_ATTR_STRING:
        string_free(a->s);
        break;
    case HN_ATTR_TENSOR:
        hn_tensor_unref(a->t);
        break;
    case HN_ATTR_GRAPH:
        if (a->g)
            hn_graph_release(a->g);
        break;
    case HN_ATTR_SPARSE:
        hn_sparse_free(a->sparse);
        break;
    case HN_ATTR_TYPE:
        hn_type_unref(a->type);
        break;
    case HN_ATTR_FLOATS:
        g_free(a->floats);
        break;
    case HN_ATTR_INTS:
        g_free(a->ints);
        break;
    case HN_ATTR_STRINGS:
        for (int64_t i = 0; a->strings && i < a->n; i++)
            string_free(a->strings[i]);
        g_free(a->strings);
        break;
    case HN_ATTR_TENSORS:
        for (int64_t i = 0; a->tensors && i < a->n; i++)
            hn_tensor_unref(a->tensors[i]);
        g_free(a->tensors);
        break;
    case HN_ATTR_GRAPHS:
        for (int64_t i = 0; a->graphs && i < a->n; i++)
            if (a->graphs[i])
                hn_graph_release(a->graphs[i]);
        g_free(a->graphs);
        break;
    case HN_ATTR_SPARSES:
        for (int64_t i = 0; a->sparses && i < a->n; i++)
            hn_sparse_free(a->sparses[i]);
        g_free(a->sparses);
        break;
    case HN_ATTR_TYPES:
        for (int64_t i = 0; a->types && i < a->n; i++)
            hn_type_unref(a->types[i]);
        g_free(a->types);
        break;
    }
    g_free(a->name);
    g_free(a->ref_attr);
    g_free(a->doc);
    if (a->unknown)
        g_bytes_unref(a->unknown);
    g_free(a);
}

void hn_attr_detach(const HnAttr *a)
{
    HnGraph *const *graphs;
    int64_t k = hn_attr_graphs(a, &graphs);
    while (k-- > 0) {
        HnGraph *g = graphs[k];
        if (!g || !g->outer)
            continue;
        hn_graph_detach(g);
        hn_array_drop(g->outer->inner, g);
    }
}

void hn_attr_free(HnAttr *a)
{
    if (!a)
        return;
    hn_attr_detach(a);
    hn_attr_release(a);
}

/* --- sparse tensors ---------------------------------------------------------------------------------------------- */

static gboolean sparse_bad(GError **error, const char *why)
{
    g_set_error(error, HN_ERROR, HN_ERROR_FORMAT, "sparse tensor with %s", why);
    return FALSE;
}

static gboolean sparse_check(const HnSparse *s, int64_t *total, gboolean *linear, GError **error)
{
    const HnTensor *v = s->values, *x = s->indices;
    if (!v || !x)
        return sparse_bad(error, "values or indices missing");
    if (v->unloaded || x->unloaded)
        return sparse_bad(error, "elements that were not loaded");
    if (v->ndim != 1)
        return sparse_bad(error, "values that are not one-dimensional");
    if (x->dtype != HN_I64)
        return sparse_bad(error, "indices that are not i64");
    if (!hn_dims_count(s->ndim, s->dims, total))
        return sparse_bad(error, "impossible dimensions");
    *linear = x->ndim == 1;
    if (!(*linear && x->dims[0] == v->n) && !(x->ndim == 2 && x->dims[0] == v->n && x->dims[1] == s->ndim))
        return sparse_bad(error, "another number of indices than of values");
    return TRUE;
}

/* Row-major offset of entry k in the dense tensor. */
static gboolean sparse_offset(const HnSparse *s, int64_t k, int64_t total, gboolean linear, int64_t *offset)
{
    if (linear) {
        *offset = hn_tensor_get_i64(s->indices, k);
        return *offset >= 0 && *offset < total;
    }
    int64_t at = 0;
    for (int i = 0; i < s->ndim; i++) {
        int64_t j = hn_tensor_get_i64(s->indices, k * s->ndim + i);
        if (j < 0 || j >= s->dims[i])
            return FALSE;
        at = at * s->dims[i] + j;
    }
    *offset = at;
    return at < total;
}

HnTensor *hn_sparse_dense(const HnSparse *s, HnBudget *budget, GError **error)
{
    int64_t total = 0;
    gboolean linear = FALSE;
    if (!sparse_check(s, &total, &linear, error))
        return NULL;
    const HnTensor *v = s->values;
    g_autoptr(HnTensor) t = hn_tensor_new(v->dtype, s->ndim, s->dims, budget, error);
    if (!t)
        return NULL;
    size_t size = hn_dtype_bits(v->dtype) % 8 == 0 ? hn_dtype_size(v->dtype) : 0;
    for (int64_t k = 0; k < v->n; k++) {
        int64_t at;
        if (!sparse_offset(s, k, total, linear, &at)) {
            sparse_bad(error, "an index out of range");
            return NULL;
        }
        if (v->dtype == HN_STRING)
            hn_tensor_set_string(t, at, hn_tensor_get_string(v, k));
        else if (size)
            memcpy((char *)t->data + (size_t)at * size, (const char *)v->data + (size_t)k * size, size);
        else
            hn_tensor_set_f64(t, at, hn_tensor_get_f64(v, k)); /* less than 8 bits: exact */
    }
    return g_steal_pointer(&t);
}
