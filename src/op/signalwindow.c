/*
 * HannWindow, HammingWindow and BlackmanWindow: a sum of cosines over `size` points, which end where the next period
 * begins (periodic) or with the last of a symmetric window. MelWeightMatrix: triangles that weigh the bins of a
 * spectrum, even on the mel scale, mel(f) = 2595 log10(1 + f / 700).
 */
#include <math.h>
#include <string.h>

#include "op/convert.h"
#include "op/move.h"
#include "op/unbind.h"

#define PI 3.14159265358979323846

typedef struct {
    HnDtype dtype; /* of the result */
    gboolean periodic;
    double a[3]; /* a[0] - a[1] cos x + a[2] cos 2x */
} HnSignalWindow;

static void window_bind(HnBind *b, HnSignalWindow *p, double a0, double a1, double a2)
{
    const int64_t dtype = hn_bind_int(b, "output_datatype", HN_F32);
    p->periodic = hn_bind_bool(b, "periodic", TRUE);
    if (dtype > 0 && dtype < HN_DTYPE_COUNT && hn_dtype_in((HnDtype)dtype, HN_T_NUM))
        p->dtype = (HnDtype)dtype;
    else
        hn_bind_fail(b, HN_ERROR_ATTRIBUTE, "attribute 'output_datatype' cannot be %" PRId64, dtype);
    p->a[0] = a0;
    p->a[1] = a1;
    p->a[2] = a2;
}

static void hann_bind(HnBind *b, void *params)
{
    window_bind(b, params, 0.5, 0.5, 0);
}

static void hamming_bind(HnBind *b, void *params)
{
    window_bind(b, params, 25.0 / 46, 21.0 / 46, 0);
}

static void blackman_bind(HnBind *b, void *params)
{
    window_bind(b, params, 0.42, 0.5, 0.08);
}

/* The only element of input i as a dimension. */
static HnDim scalar_dim(HnInfer *x, int i)
{
    const HnContents *c = hn_infer_contents(x, i);
    const int n = hn_infer_length(x, i);
    if (hn_infer_rank(x, i) > 1 || (n >= 0 && n != 1 && hn_infer_rank(x, i) == 1))
        hn_infer_fail(x, HN_ERROR_SHAPE, "input %d is not a scalar", i);
    return c != NULL && c->n == 1 ? c->d[0] : hn_dim_unknown();
}

static void window_infer(HnInfer *x)
{
    const HnSignalWindow *p = x->params;
    const HnDim n = scalar_dim(x, 0);
    if (n.known && n.n < 0)
        hn_infer_fail(x, HN_ERROR_VALUE, "a window cannot have a size of %" PRId64, n.n);
    hn_infer_out(x, 0, p->dtype, 1, &n);
}

static void window_ref(HnEval *e)
{
    const HnSignalWindow *p = e->params;
    const HnConvert how = { TRUE, HN_E8M0_UP };
    int64_t n;
    if (!hn_eval_int(e, 0, &n))
        return;
    if (n < 0) {
        hn_eval_fail(e, HN_ERROR_VALUE, "a window cannot have a size of %" PRId64, n);
        return;
    }
    void *y = hn_eval_out(e, 0, p->dtype, 1, &n);
    const double period = p->periodic ? (double)n : (double)(n - 1);
    double v[HN_CONVERT_CHUNK];
    for (int64_t at = 0; y != NULL && at < n; at += HN_CONVERT_CHUNK) {
        const int64_t m = MIN(HN_CONVERT_CHUNK, n - at);
        for (int64_t i = 0; i < m; i++) {
            const double x = period > 0 ? 2 * PI * (double)(at + i) / period : PI; /* a symmetric point is 1 */
            v[i] = p->a[0] - p->a[1] * cos(x) + p->a[2] * cos(2 * x);
        }
        hn_convert_from_f64(p->dtype, y, at, m, v, &how);
    }
}

/* What follows from numbers that are known is a constant before opset 17. */
static void settle_unbind(HnUnbind *u)
{
    if (u->to < 17)
        hn_unbind_settle(u, 0);
}

#define WINDOW(symbol, Name)                   \
    const HnOp hn_op_##symbol##window = {      \
        .name = Name "Window",                 \
        .since = { 17 },                       \
        .in = "j",                             \
        .out = "T",                            \
        .T = HN_T_NUM,                         \
        .unbind = settle_unbind,               \
        .params_size = sizeof(HnSignalWindow), \
        .bind = symbol##_bind,                 \
        .infer = window_infer,                 \
        .cost = hn_cost_elementwise,           \
        .ref = window_ref,                     \
    }

WINDOW(hann, "Hann");
WINDOW(hamming, "Hamming");
WINDOW(blackman, "Blackman");

/* --- MelWeightMatrix ------------------------------------------------------------------------------------------------
 */

enum { MEL_BANDS, MEL_LENGTH, MEL_RATE, MEL_LOWER, MEL_UPPER };

static void mel_bind(HnBind *b, void *params)
{
    HnSignalWindow *p = params;
    const int64_t dtype = hn_bind_int(b, "output_datatype", HN_F32);
    if (dtype > 0 && dtype < HN_DTYPE_COUNT && hn_dtype_in((HnDtype)dtype, HN_T_NUM))
        p->dtype = (HnDtype)dtype;
    else
        hn_bind_fail(b, HN_ERROR_ATTRIBUTE, "attribute 'output_datatype' cannot be %" PRId64, dtype);
}

static void mel_infer(HnInfer *x)
{
    const HnSignalWindow *p = x->params;
    HnDim bands = scalar_dim(x, MEL_BANDS), length = scalar_dim(x, MEL_LENGTH);
    HnDim dims[] = { hn_dim_add(hn_dim_floor_div(length, hn_dim(2)), hn_dim(1)), bands };
    for (int i = MEL_RATE; i <= MEL_UPPER; i++)
        scalar_dim(x, i);
    if ((bands.known && bands.n < 0) || (length.known && length.n < 1))
        hn_infer_fail(x, HN_ERROR_VALUE, "bands and length of a spectrum have to be numbers from 0 and 1 on");
    else
        hn_infer_out(x, 0, p->dtype, 2, dims);
}

/* Bin of each edge: bands + 2 of them, ascending. FALSE: one is outside the spectrum's bins. */
static gboolean mel_edges(const HnEval *e, int64_t bands, int64_t length, int64_t *edge)
{
    const double rate = hn_tensor_get_f64(e->in[MEL_RATE], 0);
    const double lower = 2595 * log10(1 + hn_tensor_get_f64(e->in[MEL_LOWER], 0) / 700);
    const double upper = 2595 * log10(1 + hn_tensor_get_f64(e->in[MEL_UPPER], 0) / 700);
    const double step = (upper - lower) / (double)(bands + 2);
    for (int64_t i = 0; i < bands + 2; i++) {
        const double hertz = 700 * (pow(10, (lower + (double)i * step) / 2595) - 1);
        const double bin = floor((double)(length + 1) * hertz / rate);
        if (!(bin >= 0 && bin <= (double)(length / 2)) || (i > 0 && bin < (double)edge[i - 1]))
            return FALSE;
        edge[i] = (int64_t)bin;
    }
    return TRUE;
}

/* Rises from 0 to 1 between the first two edges, falls to 0 until the third. */
static double mel_weight(const int64_t *edge, int64_t bin)
{
    if (bin < edge[0] || bin > edge[2])
        return 0;
    if (bin == edge[1])
        return 1;
    if (bin < edge[1])
        return (double)(bin - edge[0]) / (double)(edge[1] - edge[0]);
    return (double)(edge[2] - bin) / (double)(edge[2] - edge[1]);
}

static void mel_fill(HnEval *e, HnDtype dtype, int64_t bins, int64_t bands, const int64_t *edge)
{
    void *y = hn_eval_out(e, 0, dtype, 2, (int64_t[]){ bins, bands });
    const gboolean whole = hn_dtype_in(dtype, HN_T_INTS);
    for (int64_t r = 0; y != NULL && r < bins; r++)
        for (int64_t c = 0; c < bands; c++) {
            const double v = mel_weight(edge + c, r);
            hn_tensor_set_f64(e->out[0], r * bands + c, whole ? trunc(v) : v);
        }
}

static void mel_ref(HnEval *e)
{
    const HnSignalWindow *p = e->params;
    int64_t bands, length;
    for (int i = MEL_RATE; i <= MEL_UPPER; i++)
        if (e->in[i]->n != 1) {
            hn_eval_fail(e, HN_ERROR_SHAPE, "input %d does not have one element", i);
            return;
        }
    if (!hn_eval_int(e, MEL_BANDS, &bands) || !hn_eval_int(e, MEL_LENGTH, &length))
        return;
    if (bands < 0 || bands > INT64_MAX - 2 || length < 1 || length == INT64_MAX) {
        hn_eval_fail(e, HN_ERROR_VALUE, "bands and length of a spectrum have to be numbers from 0 and 1 on");
        return;
    }
    int64_t *edge = hn_eval_scratch(e, bands + 2, sizeof *edge);
    if (edge == NULL)
        return;
    if (mel_edges(e, bands, length, edge))
        mel_fill(e, p->dtype, length / 2 + 1, bands, edge);
    else
        hn_eval_fail(e, HN_ERROR_VALUE, "the band from input 3 to input 4 is not within the bins of the spectrum");
    hn_eval_scratch_free(e, edge);
}

const HnOp hn_op_melweightmatrix = {
    .name = "MelWeightMatrix",
    .since = { 17 },
    .in = "TTTUU",
    .out = "V",
    .T = HN_BIT(HN_I32) | HN_BIT(HN_I64),
    .U = HN_T_FLOATS,
    .V = HN_T_NUM,
    .unbind = settle_unbind,
    .params_size = sizeof(HnSignalWindow),
    .bind = mel_bind,
    .infer = mel_infer,
    .cost = hn_cost_elementwise,
    .ref = mel_ref,
};
