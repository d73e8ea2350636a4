#include "quant/pack_weights.h"

#include <math.h>
#include <string.h>

#include "base/half.h"

#define FULL 127
#define HALF 63               /* two of them times 255 fit 15 bits whatever they are */
#define INFINITE 0x7f800000   /* bits */
#define NO_FRACTION 0x1.8p23f /* a sum with it has no place for a fraction: halves go to even */
#define SMALLEST 1e-30f       /* scale: what is below is taken for zeros */

void hn_packed_clear(HnPacked *p)
{
    g_clear_pointer(&p->q, hn_tensor_unref);
    g_clear_pointer(&p->scale, hn_tensor_unref);
    g_clear_pointer(&p->zero, hn_tensor_unref);
}

/* The whole number next to x within [lo, hi]; 0 for NaN, whatever becomes of a model with such weights. */
static int nearest(float x, int lo, int hi)
{
    x = rintf(x);
    return x > (float)lo ? (x < (float)hi ? (int)x : hi) : x <= (float)lo ? lo : 0;
}

/* w as [outer, n, inner] around an axis; axis -1 is [1, 1, all]. */
typedef struct {
    int64_t outer, n, inner;
} View;

static View view_of(const HnTensor *w, int axis)
{
    View v = { 1, 1, 1 };
    for (int i = 0; i < w->ndim; i++)
        if (axis < 0 || i > axis)
            v.inner *= w->dims[i];
        else if (i < axis)
            v.outer *= w->dims[i];
        else
            v.n = w->dims[i];
    return v;
}

/* The larger of two magnitudes as their bits, which are integers in the same order and found many at a time; NaN is
 * none. */
static int32_t larger(int32_t most, float magnitude)
{
    int32_t bits;
    memcpy(&bits, &magnitude, sizeof bits);
    bits = bits <= INFINITE ? bits : 0;
    return bits > most ? bits : most;
}

static float largest_of(const float *w, const View *v, int64_t c)
{
    int32_t most = 0;
    for (int64_t o = 0; o < v->outer; o++) {
        const float *row = w + (o * v->n + c) * v->inner;
        for (int64_t i = 0; i < v->inner; i++)
            most = larger(most, fabsf(row[i]));
    }
    return hn_f32_from_bits((uint32_t)most);
}

/* Largest sum of the magnitudes of two weights of channel c that a kernel multiplies side by side: neighbours in the
 * order of the sum, which for convolutions goes over channels and then taps, or over taps and then channels. */
static float largest_pair(const float *w, const View *v, int64_t c, int64_t taps)
{
    int32_t most = 0;
    float last = 0;
    for (int64_t o = 0; o < v->outer && v->inner > 0; o++) {
        const float *row = w + (o * v->n + c) * v->inner;
        most = larger(most, fabsf(row[0]) + last);
        for (int64_t i = 1; i < v->inner; i++)
            most = larger(most, fabsf(row[i]) + fabsf(row[i - 1]));
        for (int64_t i = 0; taps > 1 && i + taps < v->inner; i++)
            most = larger(most, fabsf(row[i]) + fabsf(row[i + taps]));
        last = fabsf(row[v->inner - 1]);
    }
    return hn_f32_from_bits((uint32_t)most);
}

/* nearest() of n numbers within [-most, most], in a form that is found many at a time. */
static void quantize_run(const float *w, int64_t n, float inverse, float most, int8_t *restrict q)
{
    for (int64_t i = 0; i < n; i++) {
        float x = w[i] * inverse;
        x = x > most ? most : x;
        x = x < -most ? -most : x;
        x = x == x ? x : 0;
        q[i] = (int8_t)(int)(x + NO_FRACTION - NO_FRACTION);
    }
}

static void quantize(const float *w, const View *v, int64_t c, float scale, int most, int8_t *q)
{
    for (int64_t o = 0; o < v->outer; o++) {
        const int64_t at = (o * v->n + c) * v->inner;
        quantize_run(w + at, v->inner, 1 / scale, (float)most, q + at);
    }
}

gboolean hn_pack_s8(const HnTensor *w, int axis, const float *least, gboolean reduce, gboolean reduce_all,
                    HnBudget *budget, HnPacked *out, GError **error)
{
    const View v = view_of(w, axis);
    int64_t taps = 1; /* of a convolution */
    for (int i = 2; i < w->ndim; i++)
        taps *= w->dims[i];
    *out = (HnPacked){ .axis = axis };
    out->q = hn_tensor_new_uninit(HN_I8, w->ndim, w->dims, budget, error);
    out->scale = out->q != NULL ? hn_tensor_new(HN_F32, axis >= 0, &v.n, budget, error) : NULL;
    out->zero = out->scale != NULL ? hn_tensor_new(HN_I8, axis >= 0, &v.n, budget, error) : NULL;
    if (out->zero == NULL) {
        hn_packed_clear(out);
        return FALSE;
    }
    for (int64_t c = 0; c < v.n; c++) {
        const float largest = largest_of(w->data, &v, c);
        int most = reduce_all ? HALF : FULL;
        if (reduce && largest > 0) {
            /* a pair in integers is at most `most` * pair / largest, and 1 by rounding: 128 times 255 fits 15 bits */
            const double pair = (double)largest_pair(w->data, &v, c, taps) / (double)largest;
            most = MIN(most, (int)fmax(127.9 / pair, HALF));
        }
        float scale = largest / (float)most;
        if (least != NULL && scale < least[c])
            scale = least[c];
        if (!(scale > SMALLEST) || !isfinite(scale))
            scale = 1;
        quantize(w->data, &v, c, scale, most, out->q->data);
        ((float *)out->scale->data)[c] = scale;
        out->reduced += most < FULL;
    }
    return TRUE;
}

static void put_nibble(uint8_t *p, int64_t i, int x)
{
    const int shift = (int)(i & 1) * 4;
    p[i / 2] = (uint8_t)((p[i / 2] & ~(15 << shift)) | (x & 15) << shift);
}

/* Scale and zero point of the numbers from lo to hi. */
static void span_4(float lo, float hi, gboolean symmetric, float *scale, int *zero)
{
    lo = fminf(lo, 0);
    hi = fmaxf(hi, 0);
    *scale = symmetric ? fmaxf(-lo / 8, hi / 7) : (hi - lo) / 15;
    if (!(*scale > SMALLEST) || !isfinite(*scale))
        *scale = 1;
    *zero = symmetric ? 0 : nearest(-lo / *scale, 0, 15);
}

gboolean hn_pack_4(const HnTensor *w, int axis, int block, gboolean symmetric, HnBudget *budget, HnPacked *out,
                   GError **error)
{
    const View v = view_of(w, axis);
    const int64_t blocks = (v.n + block - 1) / block;
    const HnDtype dtype = symmetric ? HN_I4 : HN_U4;
    g_autofree int64_t *dims = g_memdup2(w->dims, (gsize)w->ndim * sizeof *dims);
    const float *x = w->data;
    dims[axis] = blocks;
    *out = (HnPacked){ .axis = axis, .block = block };
    out->q = hn_tensor_new(dtype, w->ndim, w->dims, budget, error);
    out->scale = out->q != NULL ? hn_tensor_new(HN_F32, w->ndim, dims, budget, error) : NULL;
    out->zero = out->scale != NULL ? hn_tensor_new(dtype, w->ndim, dims, budget, error) : NULL;
    if (out->zero == NULL) {
        hn_packed_clear(out);
        return FALSE;
    }
    for (int64_t o = 0; o < v.outer; o++)
        for (int64_t b = 0; b < blocks; b++)
            for (int64_t i = 0; i < v.inner; i++) {
                const int64_t end = MIN((b + 1) * block, v.n), s = (o * blocks + b) * v.inner + i;
                float lo = 0, hi = 0, scale;
                int zero;
                for (int64_t k = b * block; k < end; k++) {
                    const float e = x[(o * v.n + k) * v.inner + i];
                    lo = fminf(lo, e);
                    hi = fmaxf(hi, e);
                }
                span_4(lo, hi, symmetric, &scale, &zero);
                ((float *)out->scale->data)[s] = scale;
                put_nibble(out->zero->data, s, zero);
                for (int64_t k = b * block; k < end; k++) {
                    const int64_t at = (o * v.n + k) * v.inner + i;
                    const int least = symmetric ? -8 : -zero;
                    put_nibble(out->q->data, at, zero + nearest(x[at] / scale, least, least + 15));
                }
            }
    return TRUE;
}

HnTensor *hn_pack_bias(const HnTensor *b, const double *unit, HnBudget *budget)
{
    HnTensor *q = hn_tensor_new_uninit(HN_I32, 1, &b->n, budget, NULL);
    for (int64_t i = 0; q != NULL && i < b->n; i++) {
        const double x = rint(hn_tensor_get_f64(b, i) / unit[i]);
        if (!(fabs(x) < 2147483647.0)) {
            g_clear_pointer(&q, hn_tensor_unref);
            break;
        }
        ((int32_t *)q->data)[i] = (int32_t)x;
    }
    return q;
}
