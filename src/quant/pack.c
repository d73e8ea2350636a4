#include "quant/pack.h"

#include <math.h>
#include <string.h>

#define SMALLEST 1e-30f /* scale: what is below is taken for zeros */

void hn_packed_clear(HnPacked *p)
{
    g_clear_pointer(&p->q, hn_tensor_unref);
    g_clear_pointer(&p->scale, hn_tensor_unref);
    g_clear_pointer(&p->zero, hn_tensor_unref);
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

/* Two largest magnitudes of channel c. */
static void largest_two(const float *w, const View *v, int64_t c, float *first, float *second)
{
    *first = *second = 0;
    for (int64_t o = 0; o < v->outer; o++) {
        const float *row = w + (o * v->n + c) * v->inner;
        for (int64_t i = 0; i < v->inner; i++) {
            const float a = fabsf(row[i]);
            if (a > *first) {
                *second = *first;
                *first = a;
            } else if (a > *second) {
                *second = a;
            }
        }
    }
}

static void quantize(const float *w, const View *v, int64_t c, float scale, int most, int8_t *q)
{
    const float inverse = 1 / scale;
    for (int64_t o = 0; o < v->outer; o++) {
        const int64_t at = (o * v->n + c) * v->inner;
        for (int64_t i = 0; i < v->inner; i++) {
            const float x = rintf(w[at + i] * inverse);
            q[at + i] = (int8_t)(x > (float)most ? (float)most : x < (float)-most ? (float)-most : x);
        }
    }
}

gboolean hn_pack_s8(const HnTensor *w, int axis, const float *least, gboolean reduce, gboolean reduce_all,
                    HnBudget *budget, HnPacked *out, GError **error)
{
    const View v = view_of(w, axis);
    *out = (HnPacked){ .axis = axis };
    out->q = hn_tensor_new_uninit(HN_I8, w->ndim, w->dims, budget, error);
    out->scale = out->q != NULL ? hn_tensor_new(HN_F32, axis >= 0, &v.n, budget, error) : NULL;
    out->zero = out->scale != NULL ? hn_tensor_new(HN_I8, axis >= 0, &v.n, budget, error) : NULL;
    if (out->zero == NULL) {
        hn_packed_clear(out);
        return FALSE;
    }
    for (int64_t c = 0; c < v.n; c++) {
        float first, second;
        largest_two(w->data, &v, c, &first, &second);
        /* as 8-bit numbers the two are 127 and 127 * second / first: pairs of 255 * their sum have to fit 15 bits */
        const gboolean halve = reduce_all || (reduce && 127 * (1 + second / first) * 255 > 32767);
        const int most = halve ? 63 : 127;
        float scale = first / (float)most;
        if (least != NULL && scale < least[c])
            scale = least[c];
        if (!(scale > SMALLEST) || !isfinite(scale))
            scale = 1;
        quantize(w->data, &v, c, scale, most, out->q->data);
        ((float *)out->scale->data)[c] = scale;
        out->reduced += halve;
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
    *zero = symmetric ? 0 : (int)fminf(fmaxf(rintf(-lo / *scale), 0), 15);
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
                    const int q = (int)rintf(x[at] / scale) + zero;
                    put_nibble(out->q->data, at, symmetric ? CLAMP(q, -8, 7) : CLAMP(q, 0, 15));
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
