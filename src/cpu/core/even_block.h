/* Sizes of blocks that several threads share. */
#pragma once

#include <glib.h>

G_BEGIN_DECLS

/* n items, `times` over (rows of an image, images), are cut into blocks of `least` to `most` items that parts take in
 * contiguous runs of equal number: returns the size at which the part with the most items has few more than the others.
 * Blocks stay as large as that allows, for what surrounds a block is read again by its neighbour: each size has to take
 * 2 % off the largest part. Never more than n or most; less than `least` only where these are. All are at least 1. */
int64_t hn_even_block(int64_t n, int64_t least, int64_t most, int64_t times, int parts);

G_END_DECLS
