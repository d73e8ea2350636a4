/*
 * Index arithmetic of row-major tensors, for reference kernels.
 */
#pragma once

#include <glib.h>
#include <stdint.h>

#include "ir/tensor.h"

/* strides[i] = product of dims[i+1...], in elements. */
static inline void hn_strides(int ndim, const int64_t *dims, int64_t *strides)
{
    int64_t s = 1;
    for (int i = ndim - 1; i >= 0; i--) {
        strides[i] = s;
        s *= dims[i];
    }
}

/* Strides of `t` seen through an output of `ndim` dims that it broadcasts to: 0 where t has size 1 or no axis. */
static inline void hn_broadcast_strides(const HnTensor *t, int ndim, int64_t *strides)
{
    int64_t s = 1;
    for (int i = ndim - 1, j = t->ndim - 1; i >= 0; i--, j--) {
        strides[i] = j >= 0 && t->dims[j] != 1 ? s : 0;
        if (j >= 0)
            s *= t->dims[j];
    }
}

/* t broadcasts to z, axes against the last ones. */
static inline gboolean hn_broadcasts_to(const HnTensor *t, const HnTensor *z)
{
    gboolean ok = t->ndim <= z->ndim;
    for (int i = 0; i < t->ndim && ok; i++)
        ok = t->dims[i] == 1 || t->dims[i] == z->dims[z->ndim - t->ndim + i];
    return ok;
}

/* Product of dims[from, to). */
static inline int64_t hn_span(const int64_t *dims, int from, int to)
{
    int64_t n = 1;
    for (int i = from; i < to; i++)
        n *= dims[i];
    return n;
}

/* Counts the index up by one with carry, keeping element offsets of `k` operands in step: off[j] += step along
 * strides[j]. FALSE after the last index. Only the axes [0, ndim) are counted; idx starts at zero. */
static inline gboolean hn_index_next(int ndim, const int64_t *dims, int64_t *idx, int k, int64_t *const *strides,
                                     int64_t *off)
{
    for (int i = ndim - 1; i >= 0; i--) {
        if (++idx[i] < dims[i]) {
            for (int j = 0; j < k; j++)
                off[j] += strides[j][i];
            return TRUE;
        }
        idx[i] = 0;
        for (int j = 0; j < k; j++)
            off[j] -= strides[j][i] * (dims[i] - 1);
    }
    return FALSE;
}
