/*
 * Sorting on the device by keys of 32 bits, from the lowest digit on: items with equal keys keep their order, the same
 * each time.
 */
#pragma once

#include "cuda/core/cuda_kernel.h"

G_BEGIN_DECLS

typedef struct {
    HnCuFunction count, scan, place;
    int64_t n;
} HnCudaSort;

/* In prepare, of n items, below 2^32. */
gboolean hn_cuda_sort_new(const HnStep *s, int64_t n, HnCudaSort *c, GError **error);
/* Memory that it needs, its keys and items included; of an array of n numbers of 32 bits in it. */
gsize hn_cuda_sort_bytes(const HnCudaSort *c);
gsize hn_cuda_sort_array(const HnCudaSort *c);
/* Where keys are expected, and are afterwards, and where items are; `room`: begin of the memory. */
static inline uint64_t hn_cuda_sort_keys(uint64_t room)
{
    return room;
}
static inline uint64_t hn_cuda_sort_items(const HnCudaSort *c, uint64_t room)
{
    return room + 2 * hn_cuda_sort_array(c);
}
/* By the keys' lowest `bits` bits. first: items are their places, and need not be there. */
gboolean hn_cuda_sort_run(const HnStep *s, const HnCudaSort *c, uint64_t room, int bits, gboolean first,
                          GError **error);

G_END_DECLS
