#include "cpu/core/post.h"

#define HN_LOOPS "cpu/core/post_loops.h"
#include "base/every_level.h"

#define NEAR_ROWS 64 /* of one vector, which stay in the first cache from one operation to the next */

typedef void (*PostFn)(const HnPost *p, float *y, int64_t pitch, int64_t rows, int64_t c, int64_t n);

/* All channels are treated alike. */
static gboolean is_plain(const HnPost *post, int n)
{
    for (int k = 0; k < n; k++)
        if (post[k].scale != NULL || post[k].shift != NULL)
            return FALSE;
    return TRUE;
}

void hn_post_rows(const HnPost *post, int n, float *y, int64_t pitch, int64_t rows, int64_t col, int64_t cols)
{
    static const PostFn levels[HN_LEVELS] = HN_TABLE_OF_LEVELS(post_rows);
    const int level = hn_cpu_level(), lanes = 4 << level;
    if (pitch == cols && cols % lanes > 0 && rows > 1 && is_plain(post, n)) { /* rows of whole vectors, and the rest */
        const int64_t all = rows * cols, whole = all / lanes;
        hn_post_rows(post, n, y, lanes, whole, 0, lanes);
        y += whole * lanes;
        rows = all % lanes > 0 ? 1 : 0;
        cols = all % lanes;
    }
    for (int64_t r = 0, some; r < rows; r += some) {
        some = MIN(NEAR_ROWS, rows - r);
        for (int64_t c = 0; c < cols; c += lanes)
            for (int k = 0; k < n; k++)
                levels[level](&post[k], y + r * pitch + c, pitch, some, col + c, MIN(lanes, cols - c));
    }
}
