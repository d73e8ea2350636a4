#include "cpu/core/indices.h"

#include <string.h>

static gboolean outside(const HnStep *s, int64_t k, int64_t n, GError **error)
{
    g_set_error(error, HN_ERROR, HN_ERROR_VALUE,
                "node '%s' (%s): index %" G_GINT64_FORMAT " is outside an axis of %" G_GINT64_FORMAT,
                hn_node_label(s->node), s->node->op_type, k, n);
    return FALSE;
}

#define ADD(T)                                \
    const T *v = (const T *)t->data + first;  \
    for (int64_t i = 0; i < count; i++) {     \
        const int64_t k = v[i * every];       \
        if (k < -n || k >= n)                 \
            return outside(s, k, n, error);   \
        to[i] += (k < 0 ? k + n : k) * scale; \
    }

gboolean hn_indices_add(const HnStep *s, const HnTensor *t, int64_t first, int64_t every, int64_t count, int64_t n,
                        int64_t scale, int64_t *to, GError **error)
{
    if (t->dtype == HN_I32) {
        ADD(int32_t)
    } else {
        ADD(int64_t)
    }
    return TRUE;
}

gboolean hn_indices_tuples(const HnStep *s, const HnTensor *t, int depth, const int64_t *dims, const int64_t *strides,
                           int64_t *to, GError **error)
{
    const int64_t count = t->n / depth;
    memset(to, 0, (size_t)count * sizeof *to);
    for (int d = 0; d < depth; d++)
        if (!hn_indices_add(s, t, d, depth, count, dims[d], strides[d], to, error))
            return FALSE;
    return TRUE;
}
