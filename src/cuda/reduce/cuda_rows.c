#include "cuda/reduce/cuda_rows.h"

#define THREADS 256
#define PIECE 4
#define MOST_PIECES 8
#define FEW_ROWS 512 /* a warp for each would leave most of the device idle */
#define LONG_ROW 256 /* elements from which a block gains where rows are few */

HnCuFunction hn_cuda_rows(const HnStep *s, const char *module, const char *prefix, int64_t rows, int64_t n,
                          HnCudaGrid *grid, GError **error)
{
    const gboolean block = n > HN_CUDA_WARP * PIECE * MOST_PIECES || (n > LONG_ROW && rows <= FEW_ROWS);
    const int64_t team = block ? THREADS : HN_CUDA_WARP;
    int pieces = 1;
    while (pieces <= MOST_PIECES && pieces * PIECE * team < n)
        pieces *= 2;
    *grid = block ? hn_cuda_row(rows, THREADS) : hn_cuda_spread(s, rows * HN_CUDA_WARP, THREADS);
    g_autofree char *name = pieces > MOST_PIECES
                                ? g_strdup_printf("%s_long", prefix)
                                : g_strdup_printf("%s_%s_%d", prefix, block ? "block" : "warp", pieces);
    return hn_cuda_typed(s, module, name, hn_cuda_in(s, 0)->dtype, error);
}
