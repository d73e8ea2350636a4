#include "cpu/core/post.h"

#define HN_LOOPS "cpu/core/post_loops.h"
#include "base/every_level.h"

#define NEAR_ROWS 64 /* of one vector, which stay in the first cache from one operation to the next */

typedef void (*PostFn)(const HnPost *p, float *y, int64_t pitch, int64_t rows, int64_t c, int64_t n);

void hn_post_rows(const HnPost *post, int n, float *y, int64_t pitch, int64_t rows, int64_t col, int64_t cols)
{
    static const PostFn levels[HN_LEVELS] = HN_TABLE_OF_LEVELS(post_rows);
    const int level = hn_cpu_level(), lanes = 4 << level;
    for (int64_t r = 0, some; r < rows; r += some) {
        some = MIN(NEAR_ROWS, rows - r);
        for (int64_t c = 0; c < cols; c += lanes)
            for (int k = 0; k < n; k++)
                levels[level](&post[k], y + r * pitch + c, pitch, some, col + c, MIN(lanes, cols - c));
    }
}
