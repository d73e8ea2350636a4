/*
 * Samples that stay in memory once they were loaded, the first to come as long as they fit: who looks at all of them
 * again and again reads no file twice. Several threads may put and get.
 */
#pragma once

#include "data/data.h"

G_BEGIN_DECLS

typedef struct HnKept HnKept;

HnKept *hn_kept_new(int64_t count, gsize bytes); /* of samples 0 to count - 1, at most so many bytes */
void hn_kept_free(HnKept *k);                    /* NULL: nothing */

/* A sample of the same tensors; NULL: it is not there, or k is NULL. */
HnSample *hn_kept_get(HnKept *k, int64_t i);
void hn_kept_put(HnKept *k, int64_t i, const HnSample *s); /* k NULL: nothing */

gsize hn_sample_bytes(const HnSample *s); /* of its inputs */

G_END_DECLS
