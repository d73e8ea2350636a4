/*
 * HnPost: what a kernel does to its sums while they are in registers, or near: functions of some instructions and
 * constants per channel, one after the other. Epilogues (cpu/core/epilogue.h) are made of them as far as they go.
 */
#pragma once

#include <glib.h>
#include <stdint.h>

G_BEGIN_DECLS

typedef enum {
    HN_POST_CLIP,  /* into [a, b] */
    HN_POST_LEAKY, /* y < 0: a * y, a finite */
    HN_POST_RAMP,  /* a * y + b into [0, 1] */
    HN_POST_GATE,  /* y * (a * y + b into [0, 1]) */
    HN_POST_SCALE, /* y * scale[c] + shift[c] */
    HN_POST_SHIFT, /* y + shift[c] */
    /* Of rows in memory only: too many instructions to stand behind every tile of registers. */
    HN_POST_SIGMOID,
    HN_POST_SWISH, /* y * sigmoid(a * y) */
    HN_POST_GELU,  /* with erf */
    HN_POST_GELU_TANH,
} HnPostKind;

typedef struct {
    HnPostKind kind;
    float a, b;
    const float *scale, *shift; /* of channel 0 */
} HnPost;

/* All n of them for channels [col, col + cols) of `rows` rows of y, which are `pitch` apart. */
void hn_post_rows(const HnPost *post, int n, float *y, int64_t pitch, int64_t rows, int64_t col, int64_t cols);

static inline gboolean hn_post_in_registers(HnPostKind kind)
{
    return kind < HN_POST_SIGMOID;
}

G_END_DECLS
