/*
 * Whether weights with zeros are worth the lists of sparse_rows.h: products of vectors against those of the dense
 * kernels that would run. Its numbers were measured with AVX2 and AVX-512 at 16 to 512 channels, 13 to 112 pixels a
 * side, 60 to 90 % zeros (test/perf/sparse.py).
 */
#pragma once

#include "cpu/core/cpu_kernel.h"
#include "cpu/sparse/sparse_rows.h"

G_BEGIN_DECLS

#define HN_SPARSE_LEAST_ZEROS 0.5
#define HN_SPARSE_LEAST_WORK 2e5 /* operations of the dense product: less takes no time in any way */

typedef struct {
    int64_t columns; /* that are computed, those that are dropped included */
    double dense;    /* products of the dense kernel for each weight: as many as results, fewer by Winograd */
    gboolean window; /* vectors lie across lines of the cache, and far apart */
    gboolean turned; /* operands are turned round */
    int64_t
        reorder; /* elements of a source that lies as dense kernels want it, and has to be reordered; 0: it need not */
} HnSparseWork;

/* Input i is a constant that lies as it is stored, and stays as it is. */
gboolean hn_sparse_weights_stay(const HnStep *s, int i);

gboolean hn_sparse_pays(const HnSparseCount *count, const HnSparseWork *work);

G_END_DECLS
