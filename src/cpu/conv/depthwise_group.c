#include "cpu/conv/depthwise_group.h"

#include <string.h>

#define HN_LOOPS "cpu/conv/depthwise_group_loops.h"
#include "base/every_level.h"

#define MOST 8 /* channels of a group: tiles of conv_gemm.c are as fast with more */

/* The level whose vectors are of whole groups, and filled: vectors of AVX2 take what is too narrow for more. */
static int level_for(int64_t each, int64_t channels)
{
    int level = hn_cpu_level();
    while (level >= 0 && (channels < 4 << level || (4 << level) % each != 0))
        level--;
    return level == 0 && each != 4 ? -1 : level;
}

gboolean hn_depth_group_fits(int64_t each, int64_t channels)
{
    return each > 1 && each <= MOST && level_for(each, channels) >= 0;
}

const HnDepthFn *hn_depth_group_tiles(const HnWindowAxis *w, int64_t each, int64_t channels, int64_t *lanes)
{
    static const HnDepthFn(*const levels[HN_LEVELS])[3][HN_DEPTH_NX] = HN_TABLE_OF_LEVELS(group_tiles);
    const int level = level_for(each, channels);
    const gboolean known = w->kernel == 3 && w->stride <= 2 && (w->dilation == 1 || w->stride == 1);
    *lanes = 4 << level;
    return levels[level][each == *lanes ? 1 : 0][known ? w->stride - 1 : 2];
}

void hn_depth_group_spread(float *to, int64_t each, int64_t lanes)
{
    for (int64_t i = 0; i < each; i++)
        for (int64_t j = 0; j < lanes; j++, to++) {
            const int32_t at = (int32_t)(j / each * each + i);
            memcpy(to, &at, sizeof at);
        }
}

int64_t hn_depth_group_at(const HnDepthGroup *g, int64_t block, int64_t tap, int64_t i)
{
    return (((block * g->rows + tap / g->kernel) * g->each + i) * g->kernel + tap % g->kernel) * g->lanes;
}
