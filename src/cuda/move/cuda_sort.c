#include "cuda/move/cuda_sort.h"

#include "cuda/move/cuda_sort_args.h"

#define PLACE 256 /* bytes: where arrays begin */

gboolean hn_cuda_sort_new(const HnStep *s, int64_t n, HnCudaSort *c, GError **error)
{
    c->n = n;
    return (c->count = hn_cuda_named(s, "cuda_sort", "sort_count", error)) != NULL &&
           (c->scan = hn_cuda_named(s, "cuda_sort", "sort_scan", error)) != NULL &&
           (c->place = hn_cuda_named(s, "cuda_sort", "sort_place", error)) != NULL;
}

static gsize padded(gsize bytes)
{
    return (bytes + PLACE - 1) / PLACE * PLACE;
}

static int64_t tiles_of(const HnCudaSort *c)
{
    return (c->n + HN_CUDA_SORT_TILE - 1) / HN_CUDA_SORT_TILE;
}

gsize hn_cuda_sort_array(const HnCudaSort *c)
{
    return padded((gsize)c->n * sizeof(uint32_t));
}

gsize hn_cuda_sort_bytes(const HnCudaSort *c)
{
    return 4 * hn_cuda_sort_array(c) + padded((gsize)tiles_of(c) * HN_CUDA_SORT_DIGITS * sizeof(uint32_t));
}

gboolean hn_cuda_sort_run(const HnStep *s, const HnCudaSort *c, uint64_t room, int bits, gboolean first, GError **error)
{
    const gsize array = hn_cuda_sort_array(c);
    HnCudaSortArgs a = { .n = c->n, .tiles = tiles_of(c), .counts = room + 4 * array, .first = first };
    const HnCudaGrid tiles = hn_cuda_row(a.tiles, HN_CUDA_SORT_THREADS), one = hn_cuda_row(1, HN_CUDA_SCAN_THREADS);
    /* an even number of times, so that all is where it was */
    const int passes = ((bits + HN_CUDA_SORT_BITS - 1) / HN_CUDA_SORT_BITS + 1) / 2 * 2;
    for (int k = 0; k < passes; k++) {
        const uint64_t from = k % 2 * array, to = array - from;
        a.key = hn_cuda_sort_keys(room) + from;
        a.key_to = hn_cuda_sort_keys(room) + to;
        a.item = hn_cuda_sort_items(c, room) + from;
        a.item_to = hn_cuda_sort_items(c, room) + to;
        a.shift = k * HN_CUDA_SORT_BITS;
        if (!hn_cuda_launch(s, c->count, tiles, &a, error) || !hn_cuda_launch(s, c->scan, one, &a, error) ||
            !hn_cuda_launch(s, c->place, tiles, &a, error))
            return FALSE;
        a.first = FALSE;
    }
    return TRUE;
}
