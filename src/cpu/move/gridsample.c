/*
 * GridSample of f32 images, linear and nearest: places and weights of a strip of outputs first, then channel by
 * channel.
 */
#include "op/gridsample.h"

#include <math.h>

#include "cpu/core/cpu_kernel.h"

#define STRIP 128 /* outputs whose taps are kept at a time */

/* Of each output: elements of a plane, -1 for a zero, and their weights. */
typedef struct {
    int n; /* 1 or 4 */
    int64_t at[4][STRIP];
    float w[4][STRIP];
} Taps;

static const char *gridsample_reject(const HnStep *s)
{
    const HnGridSample *p = s->params;
    const char *reason = hn_cpu_reject_f32(s);
    if (reason != NULL)
        return reason;
    return hn_cpu_in(s, 0)->ndim != 4 ? "other than 2 spatial axes" : p->mode == HN_GRID_CUBIC ? "mode cubic" : NULL;
}

static gboolean gridsample_prepare(HnStep *s, GError **error)
{
    (void)s;
    (void)error;
    return TRUE;
}

static void find_taps(const HnGridSample *p, Taps *t, const float *grid, int64_t n, int64_t height, int64_t width)
{
    t->n = p->mode == HN_GRID_NEAREST ? 1 : 4;
    for (int64_t i = 0; i < n; i++) {
        const double x = hn_grid_place(p, (double)grid[2 * i], width);
        const double y = hn_grid_place(p, (double)grid[2 * i + 1], height);
        const double left = floor(x), top = floor(y);
        for (int k = 0; k < t->n; k++) {
            const int64_t c = hn_grid_settle(p, (int64_t)left + k % 2, width);
            const int64_t r = hn_grid_settle(p, (int64_t)top + k / 2, height);
            t->at[k][i] = c < 0 || r < 0 ? -1 : r * width + c;
            t->w[k][i] =
                t->n == 1 ? 1
                          : (float)((k % 2 == 0 ? 1 - (x - left) : x - left) * (k / 2 == 0 ? 1 - (y - top) : y - top));
        }
    }
}

static gboolean gridsample_run(HnStep *s, GError **error)
{
    (void)error;
    const HnGridSample *p = s->params;
    const HnTensor *in = hn_cpu_in(s, 0), *out = s->out[0].slot->tensor;
    const int64_t channels = in->dims[1], from = in->dims[2] * in->dims[3], to = out->dims[2] * out->dims[3];
    const float *x = in->data, *grid = hn_cpu_in(s, 1)->data;
    float *y = out->data;
    Taps t;
    for (int64_t b = 0; b < in->dims[0]; b++, grid += 2 * to)
        for (int64_t i = 0; i < to; i += STRIP) {
            const int64_t n = MIN(STRIP, to - i);
            find_taps(p, &t, grid + 2 * i, n, in->dims[2], in->dims[3]);
            for (int64_t c = 0; c < channels; c++) {
                const float *plane = x + (b * channels + c) * from;
                float *row = y + (b * channels + c) * to + i;
                for (int64_t j = 0; j < n; j++) {
                    float sum = 0;
                    for (int k = 0; k < t.n; k++)
                        sum += t.at[k][j] < 0 ? 0 : plane[t.at[k][j]] * t.w[k][j];
                    row[j] = sum;
                }
            }
        }
    return TRUE;
}

static const HnKernel gridsample_strips = {
    .name = "cpu.gridsample",
    .reject = gridsample_reject,
    .prepare = gridsample_prepare,
    .run = gridsample_run,
};

const HnKernel *const hn_cpu_gridsample[] = { &gridsample_strips, NULL };
