/*
 * Convolutions with a filter for each channel at one instruction level with vectors, for int8_depthwise.c.
 *
 * A vector of bytes holds the channels of a block. HN_DW_TAPS of a column's rows are interleaved, channel by channel,
 * into four vectors of 32-bit groups: in lane l of 128 bits, vector j has channels 16 l + 4 j to 16 l + 4 j + 3, in
 * which order the sums are packed to bytes again.
 */
#ifndef HN_LEVEL /* read by itself */
#define HN_LEVEL avx512
#endif
#include "cpu/int8/int8_depthwise_level.h"
#include "cpu/core/vec.h"

#define IVEC HN_JOIN(IVEC, HN_LEVEL)
#define ILOAD HN_JOIN(ILOAD, HN_LEVEL)
#define ISTORE HN_JOIN(ISTORE, HN_LEVEL)
#define WIDTH HN_JOIN(HN_DW_WIDTH, HN_LEVEL) /* bytes of a vector: channels of a block */
#define TAPS HN_JOIN(HN_DW_TAPS, HN_LEVEL)
#define DOT HN_JOIN(HN_DW_DOT, HN_LEVEL)
#define INTERLEAVE HN_JOIN(HN_DW_INTERLEAVE, HN_LEVEL)
#define LOADX HN_JOIN(HN_DW_LOAD, HN_LEVEL)
#define STOREY HN_JOIN(HN_DW_STORE, HN_LEVEL)
#define SETX HN_JOIN(HN_DW_SET, HN_LEVEL)
#define FLIP HN_JOIN(HN_DW_XOR, HN_LEVEL)
#define FINISH HN_JOIN(HN_DW_FINISH, HN_LEVEL)
#define AT_ONCE HN_JOIN(HN_DW_AT_ONCE, HN_LEVEL) /* outputs */
#define OF_TWO HN_JOIN(HN_DW_OF_TWO, HN_LEVEL)   /* ... of either of two lines */

/* `columns` columns of TAPS lines, each `step` bytes apart or the same everywhere; `next` bytes from one to the next.
 */
static inline __attribute__((always_inline)) HN_TARGET void HN_V(dw_columns)(uint8_t *to, const uint8_t *const *row,
                                                                             const int64_t *step, int64_t columns,
                                                                             int64_t next, int channels,
                                                                             const uint8_t *end, uint8_t flip_by)
{
    const IVEC flip = SETX((char)flip_by);
    const uint8_t *at[TAPS];
    HN_UNROLL
    for (int t = 0; t < TAPS; t++)
        at[t] = row[t];
    for (int64_t i = 0; i < columns; i++, to += next) {
        IVEC x[TAPS], z[4];
        HN_UNROLL
        for (int t = 0; t < TAPS; t++) {
            x[t] = FLIP(LOADX(at[t], channels, end), flip);
            at[t] += step[t];
        }
        INTERLEAVE(z, x);
        HN_UNROLL
        for (int j = 0; j < 4; j++)
            ISTORE(to + j * WIDTH, z[j]);
    }
}

static HN_TARGET void HN_V(dw_stage)(const HnDepthwiseRow *d)
{
    const int64_t groups = d->groups, next = groups * 4 * WIDTH;
    const int64_t from = CLAMP(-d->first, 0, d->columns), to = CLAMP(d->in - d->first, from, d->columns);
    uint8_t pad[WIDTH];
    memset(pad, d->pad ^ d->flip, sizeof pad);
    for (int64_t g = 0; g < groups; g++) {
        const uint8_t *row[TAPS], *none[TAPS];
        int64_t step[TAPS];
        const int64_t still[TAPS] = { 0 };
        uint8_t *at = d->staged + g * 4 * WIDTH;
        for (int64_t t = 0; t < TAPS; t++) {
            const uint8_t *line = g * TAPS + t < d->seen ? d->row[g * TAPS + t] : NULL;
            row[t] = line != NULL ? line + (d->first + from) * d->pitch : pad;
            step[t] = line != NULL ? d->pitch : 0;
            none[t] = pad;
        }
        HN_V(dw_columns)(at, none, still, from, next, WIDTH, NULL, d->flip);
        if (d->channels == WIDTH)
            HN_V(dw_columns)(at + from * next, row, step, to - from, next, WIDTH, NULL, d->flip);
        else
            HN_V(dw_columns)(at + from * next, row, step, to - from, next, d->channels, d->end, d->flip);
        HN_V(dw_columns)(at + to * next, none, still, d->columns - to, next, WIDTH, NULL, d->flip);
    }
}

/* n outputs of `lines` lines, constants after inlining */
static inline __attribute__((always_inline)) HN_TARGET void HN_V(dw_some)(const HnDepthwiseRow *d, int64_t o,
                                                                          const int n, const int lines)
{
    const int64_t groups = d->groups, column = groups * 4 * WIDTH;
    IVEC sum[2][AT_ONCE][4];
    HN_UNROLL
    for (int j = 0; j < 4; j++) {
        const IVEC begin = ILOAD(d->begin + j * (WIDTH / 4));
        HN_UNROLL
        for (int i = 0; i < n * lines; i++)
            sum[i % lines][i / lines][j] = begin;
    }
    const uint8_t *w = d->weights;
    for (int64_t k = 0; k < d->kernel_w; k++) {
        const uint8_t *x = d->staged + (o * d->stride + k * d->dilation) * column;
        for (int64_t g = 0; g < groups; g++, w += 4 * WIDTH, x += 4 * WIDTH)
            HN_UNROLL
        for (int j = 0; j < 4; j++) {
            const IVEC v = ILOAD(w + j * WIDTH), u = lines > 1 ? ILOAD(w + d->weights_line + j * WIDTH) : v;
            HN_UNROLL
            for (int i = 0; i < n; i++) {
                const IVEC at = ILOAD(x + i * d->stride * column + j * WIDTH);
                sum[0][i][j] = DOT(sum[0][i][j], at, v);
                if (lines > 1)
                    sum[1][i][j] = DOT(sum[1][i][j], at, u);
            }
        }
    }
    HN_UNROLL
    for (int l = 0; l < lines; l++) {
        HN_UNROLL
        for (int i = 0; i < n; i++)
            if (d->sums == NULL) {
                STOREY(d->y + l * d->y_line + (o + i) * d->y_pitch, FINISH(d, sum[l][i]), d->channels);
            } else {
                HN_UNROLL
                for (int j = 0; j < 4; j++)
                    ISTORE(d->sums + l * d->sums_line + ((o + i) * 4 + j) * (WIDTH / 4), sum[l][i][j]);
            }
    }
}

static HN_TARGET void HN_V(dw_row)(const HnDepthwiseRow *d)
{
    HN_V(dw_stage)(d);
    int64_t o = 0;
    for (; d->lines > 1 && o + OF_TWO <= d->out; o += OF_TWO)
        HN_V(dw_some)(d, o, OF_TWO, 2);
    for (; d->lines > 1 && o < d->out; o++)
        HN_V(dw_some)(d, o, 1, 2);
    for (; o + AT_ONCE <= d->out; o += AT_ONCE)
        HN_V(dw_some)(d, o, AT_ONCE, 1);
    for (; AT_ONCE > 2 && o + 2 <= d->out; o += 2)
        HN_V(dw_some)(d, o, 2, 1);
    for (; o < d->out; o++)
        HN_V(dw_some)(d, o, 1, 1);
}

#undef IVEC
#undef ILOAD
#undef ISTORE
#undef WIDTH
#undef TAPS
#undef DOT
#undef INTERLEAVE
#undef LOADX
#undef STOREY
#undef SETX
#undef FLIP
#undef FINISH
#undef AT_ONCE
#undef OF_TWO
