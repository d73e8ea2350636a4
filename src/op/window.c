#include "op/window.h"

#include <string.h>

#include "base/checked.h"

/* --- attributes -------------------------------------------------------------------------------------------------- */

/* Values are kept below 2^31, so that products of two of them fit. */
static const int64_t *bind_list(HnBind *b, HnWindow *w, const char *name, int per_axis, int64_t least)
{
    int64_t n;
    const int64_t *v = hn_bind_ints(b, name, &n);
    if (n == 0)
        return NULL;
    if (n % per_axis != 0 || (w->n > 0 && n / per_axis != w->n) || n / per_axis > HN_MAX_RANK) {
        hn_bind_fail(b, HN_ERROR_ATTRIBUTE, "attribute '%s' has %" PRId64 " elements, which do not fit the others",
                     name, n);
        return NULL;
    }
    for (int64_t i = 0; i < n; i++)
        if (v[i] < least || v[i] > INT32_MAX) {
            hn_bind_fail(b, HN_ERROR_ATTRIBUTE, "attribute '%s' cannot hold %" PRId64, name, v[i]);
            return NULL;
        }
    w->n = (int)(n / per_axis);
    return v;
}

void hn_window_bind(HnBind *b, HnWindow *w, unsigned has)
{
    static const char *const modes[] = { "NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID", NULL };
    w->pad_mode = (HnPadMode)hn_bind_word(b, "auto_pad", modes, HN_PAD_EXPLICIT);
    w->kernel = bind_list(b, w, "kernel_shape", 1, 1);
    w->strides = bind_list(b, w, "strides", 1, 1);
    w->dilations = (has & HN_WINDOW_DILATIONS) != 0 ? bind_list(b, w, "dilations", 1, 1) : NULL;
    w->pads = w->pad_mode == HN_PAD_EXPLICIT ? bind_list(b, w, "pads", 2, 0) : NULL;
    w->ceil_mode = (has & HN_WINDOW_CEIL) != 0 && hn_bind_bool(b, "ceil_mode", FALSE);
}

/* --- sizes ------------------------------------------------------------------------------------------------------- */

static int64_t stride_of(const HnWindow *w, int axis)
{
    return w->strides != NULL ? w->strides[axis] : 1;
}

static HnDim reach_of(const HnWindow *w, int axis, int64_t kernel)
{
    HnDim taps = hn_dim_sub(hn_dim(kernel), hn_dim(1));
    int64_t dilation = w->dilations != NULL ? w->dilations[axis] : 1;
    return hn_dim_add(hn_dim_mul(taps, hn_dim(dilation)), hn_dim(1));
}

HnDim hn_window_out(const HnWindow *w, int axis, HnDim in, int64_t kernel)
{
    HnDim stride = hn_dim(stride_of(w, axis));
    if (w->pad_mode == HN_PAD_SAME_UPPER || w->pad_mode == HN_PAD_SAME_LOWER)
        return hn_dim_ceil_div(in, stride);
    HnDim pad = hn_dim(w->pads != NULL ? w->pads[axis] : 0),
          pad_end = hn_dim(w->pads != NULL ? w->pads[w->n + axis] : 0);
    HnDim begun = hn_dim_add(in, pad);
    HnDim span = hn_dim_sub(hn_dim_add(begun, pad_end), reach_of(w, axis, kernel));
    HnDim out = hn_dim_add(w->ceil_mode ? hn_dim_ceil_div(span, stride) : hn_dim_floor_div(span, stride), hn_dim(1));
    if (w->ceil_mode) /* windows that would start in the end padding are left out */
        out = hn_dim_min(out, hn_dim_ceil_div(begun, stride));
    return out;
}

gboolean hn_window_check(const HnWindow *w, int n, GError **error)
{
    if (w->n == 0 || w->n == n)
        return TRUE;
    g_set_error(error, HN_ERROR, HN_ERROR_ATTRIBUTE, "the attributes speak of %d spatial axes, the input has %d", w->n,
                n);
    return FALSE;
}

gboolean hn_window_place(const HnWindow *w, int n, const int64_t *in, const int64_t *kernel, HnWindowAxis *axes,
                         GError **error)
{
    if (!hn_window_check(w, n, error))
        return FALSE;
    for (int i = 0; i < n; i++) {
        int64_t k = kernel != NULL ? kernel[i] : w->kernel[i];
        HnDim reach = reach_of(w, i, k), out = hn_window_out(w, i, hn_dim(in[i]), k);
        HnWindowAxis a = { .in = in[i], .out = out.n, .kernel = k, .stride = stride_of(w, i) };
        a.dilation = w->dilations != NULL ? w->dilations[i] : 1;
        a.pad = w->pads != NULL ? w->pads[i] : 0;
        a.pad_end = w->pads != NULL ? w->pads[w->n + i] : 0;
        if (!out.known || !reach.known || k < 1 || out.n < 0) {
            g_set_error(error, HN_ERROR, HN_ERROR_SHAPE,
                        "a window of %" PRId64 " does not fit into size %" PRId64 " of spatial axis %d", k, in[i], i);
            return FALSE;
        }
        if (w->pad_mode == HN_PAD_SAME_UPPER || w->pad_mode == HN_PAD_SAME_LOWER) {
            int64_t total = MAX(0, (a.out - 1) * a.stride + reach.n - a.in);
            a.pad = w->pad_mode == HN_PAD_SAME_UPPER ? total / 2 : total - total / 2;
            a.pad_end = total - a.pad;
        }
        axes[i] = a;
    }
    return TRUE;
}

/* --- loops ------------------------------------------------------------------------------------------------------- */

/* ceil(a / b), b > 0 */
static int64_t ceil_div(int64_t a, int64_t b)
{
    return a / b + (a % b > 0);
}

void hn_window_axes(int n, const HnWindowAxis *axes, int want, HnWindowAxis *to)
{
    for (int i = 0; i < want; i++)
        to[i] = i < want - n ? hn_window_one() : axes[i - (want - n)];
}

void hn_window_range(const HnWindowAxis *a, int64_t k, int64_t *lo, int64_t *hi)
{
    int64_t first = a->pad - k * a->dilation;
    *lo = CLAMP(ceil_div(first, a->stride), 0, a->out);
    *hi = CLAMP(ceil_div(first + a->in, a->stride), *lo, a->out);
}

/* Taps [*lo, *hi) that lie in the input for some output: however large a kernel is, no more of them are looked at. */
static void tap_range(const HnWindowAxis *a, int64_t *lo, int64_t *hi)
{
    *lo = CLAMP(ceil_div(a->pad - (a->out - 1) * a->stride, a->dilation), 0, a->kernel);
    *hi = CLAMP(ceil_div(a->pad + a->in, a->dilation), *lo, a->kernel);
}

typedef struct {
    int64_t k, k_hi; /* tap and its end */
    int64_t lo, hi;  /* outputs that the tap serves */
    int64_t o;
} Axis;

/* Rows of one tap: every output position of the axes before the last. */
static void tap_rows(int n, const HnWindowAxis *axes, Axis *s, int64_t tap, HnWindowRowFn f, gpointer data)
{
    const HnWindowAxis *last = &axes[n - 1];
    int64_t len = s[n - 1].hi - s[n - 1].lo;
    int64_t x0 = s[n - 1].lo * last->stride + s[n - 1].k * last->dilation - last->pad;
    for (int i = 0; i < n - 1; i++)
        s[i].o = s[i].lo;
    for (;;) {
        int64_t x = 0, y = 0;
        for (int i = 0; i < n - 1; i++) {
            x = x * axes[i].in + s[i].o * axes[i].stride + s[i].k * axes[i].dilation - axes[i].pad;
            y = y * axes[i].out + s[i].o;
        }
        f(data, tap, x * last->in + x0, last->stride, y * last->out + s[n - 1].lo, len);
        int i = n - 2;
        for (; i >= 0 && ++s[i].o == s[i].hi; i--)
            s[i].o = s[i].lo;
        if (i < 0)
            return;
    }
}

void hn_window_rows(int n, const HnWindowAxis *axes, HnWindowRowFn f, gpointer data)
{
    Axis s[HN_MAX_RANK];
    int64_t first[HN_MAX_RANK];
    for (int i = 0; i < n; i++) {
        if (axes[i].out == 0)
            return;
        tap_range(&axes[i], &first[i], &s[i].k_hi);
        s[i].k = first[i];
        if (s[i].k == s[i].k_hi)
            return;
    }
    for (;;) {
        gboolean any = TRUE;
        int64_t tap = 0;
        for (int i = 0; i < n; i++) {
            hn_window_range(&axes[i], s[i].k, &s[i].lo, &s[i].hi);
            any = any && s[i].lo < s[i].hi;
            tap = (int64_t)((uint64_t)tap * (uint64_t)axes[i].kernel + (uint64_t)s[i].k);
        }
        if (any)
            tap_rows(n, axes, s, tap, f, data);
        int i = n - 1;
        for (; i >= 0 && ++s[i].k == s[i].k_hi; i--)
            s[i].k = first[i];
        if (i < 0)
            return;
    }
}
