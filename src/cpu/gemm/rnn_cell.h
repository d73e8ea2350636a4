/*
 * The arithmetic of recurrent layers on 16 hidden units at a time: products with packed weights, and the cells.
 * Attention has the same products.
 *
 * Weights are packed as [panels of 16 units][K][gates][16]; what goes into the gates lies as [gates][16] floats per
 * panel ("slots": the place of a gate is chosen by the caller).
 */
#pragma once

#include <glib.h>

G_BEGIN_DECLS

#define HN_RNN_CELL 16     /* units of a panel */
#define HN_RNN_CELL_ROWS 8 /* rows that one call takes */

/* What a gate's sum is clamped to, and the peepholes of 16 units: input, output, forget; NULL: none. */
typedef struct {
    float clip;
    const float *peep[3];
} HnRnnCellGates;

typedef struct {
    /* c[slot[g]][16] += sum over k of x[k] * w[k][g][16], for `gates` gates of rows of w that hold `all`. */
    void (*one)(float *c, const int *slot, const float *x, const float *w, int64_t k, int gates, int all);
    /* c[r][16] += sum over k of x[r][k] * w[k * step][16], for n <= HN_RNN_CELL_ROWS rows. */
    void (*rows)(float *const *c, const float *const *x, int n, const float *w, int64_t step, int64_t k);
    /* slots of g: input, output, forget, cell; c and h are written */
    void (*lstm)(const HnRnnCellGates *p, const float *g, float *c, float *h);
    /* slots of g: update, reset, and the hidden gate's sum by recurrence, by input. With rh NULL that by recurrence is
     * what is reset; else (update and reset are done by then) all is in slot 2. h: the last state, to: the next. */
    void (*gru)(const HnRnnCellGates *p, const float *g, gboolean linear_before_reset, const float *h, float *to);
    /* to = sigmoid(slot 1) * h */
    void (*reset)(const HnRnnCellGates *p, const float *g, const float *h, float *to);
    void (*rnn)(const HnRnnCellGates *p, const float *g, float *to);
    /* s = softmax(s) of n elements; zeros where all are -inf */
    void (*softmax)(float *s, int64_t n);
} HnRnnCellOps;

const HnRnnCellOps *hn_rnn_cell_ops(void); /* for the instructions that may be used */

G_END_DECLS
