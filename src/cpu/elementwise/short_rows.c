#include "cpu/elementwise/short_rows.h"

#include <string.h>

#include "cpu/core/strided_copy.h"
#include "op/types.h"

#define HN_LOOPS "cpu/elementwise/short_rows_loops.h"
#include "base/every_level.h"

static void repeat(void *to, const void *from, gsize size, int64_t rows, int64_t n, int64_t stride)
{
    static void (*const floats[])(float *, const float *, int64_t, int64_t, int64_t) =
        HN_TABLE_OF_LEVELS(repeat_floats);
    if (size == sizeof(float)) {
        floats[hn_cpu_level()](to, from, rows, n, stride);
        return;
    }
#define REPEAT(T)                                           \
    T *y = to;                                              \
    const T *x = from;                                      \
    for (int64_t i = 0; i < rows; i++, x += stride, y += n) \
        for (int64_t k = 0; k < n; k++)                     \
            y[k] = *x;
    HN_FOR_SIZE(size, REPEAT)
#undef REPEAT
}

void hn_short_rows(void *y, const void *x, gsize size, int64_t rows, int64_t n, int64_t stride, int step)
{
    if (step == 0) {
        repeat(y, x, size, rows, n, stride);
        return;
    }
    if (stride == n) {
        hn_copy_bytes(y, x, (gsize)(rows * n) * size);
        return;
    }
    if (stride == 0) { /* one row: twice as much at each turn */
        const gsize all = (gsize)(rows * n) * size;
        hn_copy_bytes(y, x, (gsize)n * size);
        for (gsize done = (gsize)n * size; done < all; done *= 2)
            memcpy((char *)y + done, y, MIN(done, all - done));
        return;
    }
    for (int64_t i = 0; i < rows; i++)
        hn_copy_bytes((char *)y + (gsize)(i * n) * size, (const char *)x + (gsize)(i * stride) * size, (gsize)n * size);
}
