/*
 * Sliding windows: the geometry that convolutions and pools share. Along one spatial axis, tap k of the window at
 * output position o reads input position o * stride + k * dilation - pad; positions outside [0, in) are padding.
 */
#pragma once

#include "op/op.h"

G_BEGIN_DECLS

typedef enum { HN_PAD_EXPLICIT, HN_PAD_SAME_UPPER, HN_PAD_SAME_LOWER, HN_PAD_VALID } HnPadMode;

/* The attributes kernel_shape, strides, dilations, pads, auto_pad and ceil_mode. */
typedef struct {
    int n;                    /* spatial axes that the lists below speak of; 0: no list is given */
    const int64_t *kernel;    /* n; NULL: not given */
    const int64_t *strides;   /* n; NULL: all 1 */
    const int64_t *dilations; /* n; NULL: all 1 */
    const int64_t *pads;      /* 2n, begins before ends; NULL: all 0. Ignored unless pad_mode is explicit */
    HnPadMode pad_mode;
    gboolean ceil_mode; /* a last window may reach beyond the padded input, if it starts before the end padding */
} HnWindow;

/* One spatial axis with all sizes known. */
typedef struct {
    int64_t in, out, kernel, stride, dilation;
    int64_t pad, pad_end; /* with ceil_mode windows may reach beyond pad_end, see hn_window_overhang() */
} HnWindowAxis;

enum { HN_WINDOW_DILATIONS = 1 << 0, HN_WINDOW_CEIL = 1 << 1 }; /* attributes that the operator's version has */

void hn_window_bind(HnBind *b, HnWindow *w, unsigned has);
/* Output size along spatial axis `axis`, for a kernel of that size. Negative: the window does not fit. */
HnDim hn_window_out(const HnWindow *w, int axis, HnDim in, int64_t kernel);
/* All of n axes; `kernel` NULL: that of the attributes. Errors: ATTRIBUTE (lists of another length), SHAPE. */
gboolean hn_window_place(const HnWindow *w, int n, const int64_t *in, const int64_t *kernel, HnWindowAxis *axes,
                         GError **error);
/* The lists speak of n axes. */
gboolean hn_window_check(const HnWindow *w, int n, GError **error);

/* Input positions from the first of the last window to its end, beyond the input: the end padding in use. May be < 0.
 */
static inline int64_t hn_window_overhang(const HnWindowAxis *a)
{
    return (a->out - 1) * a->stride + (a->kernel - 1) * a->dilation + 1 - a->in - a->pad;
}

/* Of one element, which is looked at as it is. */
static inline HnWindowAxis hn_window_one(void)
{
    return (HnWindowAxis){ .in = 1, .out = 1, .kernel = 1, .stride = 1, .dilation = 1 };
}
/* n axes as `want` >= n of them: in front of them are axes of one element. */
void hn_window_axes(int n, const HnWindowAxis *axes, int want, HnWindowAxis *to);

/* Output positions [*lo, *hi) whose tap k lies in the input; *lo = *hi where there is none. */
void hn_window_range(const HnWindowAxis *a, int64_t k, int64_t *lo, int64_t *hi);

/*
 * Calls f for every tap and every row of outputs (along the last axis) whose taps lie in the input, taps in row-major
 * order: output positions y .. y + len - 1 of the output plane read positions x, x + step, ... of the input plane with
 * tap number k of the row-major kernel.
 */
typedef void (*HnWindowRowFn)(gpointer data, int64_t k, int64_t x, int64_t step, int64_t y, int64_t len);
void hn_window_rows(int n, const HnWindowAxis *axes, HnWindowRowFn f, gpointer data);

G_END_DECLS
