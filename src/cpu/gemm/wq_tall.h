/*
 * The products of cpu/gemm/wq_kernel.h for many rows on processors with AVX-512 VNNI: a segment of a panel becomes
 * differences of weights and zero points in 16 bits once for all rows, so that tiles of 12 rows are nothing but
 * products. Sums of segments are added in memory. A row's results do not depend on how many there are.
 */
#pragma once

#include "cpu/gemm/wq_kernel.h"

G_BEGIN_DECLS

#define HN_WQ_TALL_ROWS 12 /* at least */

gboolean hn_wq_has_tall(void);
/* Memory of a thread for so many rows. */
gsize hn_wq_tall_bytes(int64_t rows);
/* Rows of t->x times the panel t->w, into t->c; memory is aligned to 64 bytes. */
void hn_wq_tall(const HnWqKernel *t, int64_t rows, void *memory);

G_END_DECLS
