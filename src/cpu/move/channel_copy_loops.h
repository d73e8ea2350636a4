/*
 * Channels of pixels for channel_copy.c, at one instruction level.
 */
#include <stdint.h>

#include "cpu/core/vec.h"

/* `count` adjacent channels; the last vector lies back so that it fits. */
static HN_TARGET void HN_V(copy_pixels)(float *y, int64_t y_pitch, const float *x, int64_t x_pitch, int64_t count,
                                        int64_t pixels)
{
    for (int64_t i = 0; i < pixels; i++, y += y_pitch, x += x_pitch) {
        if (count < HN_LANES) {
            for (int64_t c = 0; c < count; c++)
                y[c] = x[c];
            continue;
        }
        int64_t c = 0;
        for (; c + HN_LANES < count; c += HN_LANES)
            HN_VSTORE(y + c, HN_VLOAD(x + c));
        HN_VSTORE(y + count - HN_LANES, HN_VLOAD(x + count - HN_LANES));
    }
}

/* Channels 0, step, ... of bytes. */
static HN_TARGET void HN_V(pick_bytes)(uint8_t *restrict y, int64_t y_pitch, const uint8_t *restrict x, int64_t x_pitch,
                                       int64_t step, int64_t count, int64_t pixels)
{
    for (int64_t i = 0; i < pixels; i++, y += y_pitch, x += x_pitch) {
        if (step == 2)
            for (int64_t c = 0; c < count; c++)
                y[c] = x[2 * c];
        else
            for (int64_t c = 0; c < count; c++)
                y[c] = x[c * step];
    }
}

/* Every other channel: 2 * count of them are there from x on, the even or the odd ones are wanted. */
static inline __attribute__((always_inline)) HN_TARGET void
HN_V(halve)(float *y, int64_t y_pitch, const float *x, int64_t x_pitch, int64_t count, int64_t pixels, int odd)
{
    for (int64_t i = 0; i < pixels; i++, y += y_pitch, x += x_pitch)
        for (int64_t j = 0; j < count; j += HN_LANES) {
            const int64_t c = MIN(j, count - HN_LANES);
            const HN_VEC a = HN_VLOAD(x + 2 * c), b = HN_VLOAD(x + 2 * c + HN_LANES);
            HN_VSTORE(y + c, odd ? HN_VODD(a, b) : HN_VEVEN(a, b));
        }
}

/* Channels 0, step, ... of `left` that are there from x on, and one more before x where `before`. */
static HN_TARGET void HN_V(pick_pixels)(float *y, int64_t y_pitch, const float *x, int64_t x_pitch, int64_t step,
                                        int64_t count, int64_t pixels, int64_t left, gboolean before)
{
    if (step == 2 && count >= HN_LANES && left >= 2 * count) {
        HN_V(halve)(y, y_pitch, x, x_pitch, count, pixels, 0);
        return;
    }
    if (step == 2 && count >= HN_LANES && before) {
        HN_V(halve)(y, y_pitch, x - 1, x_pitch, count, pixels, 1);
        return;
    }
    for (int64_t i = 0; i < pixels; i++, y += y_pitch, x += x_pitch)
        for (int64_t c = 0; c < count; c++)
            y[c] = x[c * step];
}
