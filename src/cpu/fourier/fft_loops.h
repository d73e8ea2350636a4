/*
 * Stages of HnFft, and batches of signals that go through them, at one instruction level.
 */
#include "cpu/core/vec.h"
#include "cpu/fourier/fft.h"
#include "cpu/fourier/square.h"

#define LANES HN_LANES
#define VEC HN_VEC
#define INLINE static inline __attribute__((always_inline)) HN_TARGET

/* --- butterflies: radix points in registers, in place ------------------------------------------------------------ */

INLINE void HN_V(butterfly2)(VEC *r, VEC *i)
{
    const VEC dr = r[0] - r[1], di = i[0] - i[1];
    r[0] += r[1];
    i[0] += i[1];
    r[1] = dr;
    i[1] = di;
}

INLINE void HN_V(butterfly4)(VEC *r, VEC *i)
{
    const VEC sr = r[0] + r[2], si = i[0] + i[2], dr = r[0] - r[2], di = i[0] - i[2];
    const VEC tr = r[1] + r[3], ti = i[1] + i[3], er = r[1] - r[3], ei = i[1] - i[3];
    r[0] = sr + tr;
    i[0] = si + ti;
    r[1] = dr + ei;
    i[1] = di - er;
    r[2] = sr - tr;
    i[2] = si - ti;
    r[3] = dr - ei;
    i[3] = di + er;
}

/* Even and odd points by themselves; the odd ones turn by 0, 1, 2 and 3 eighths. */
INLINE void HN_V(butterfly8)(VEC *r, VEC *i)
{
    const VEC half = HN_VSET(0.70710678118654752f);
    VEC er[4] = { r[0], r[2], r[4], r[6] }, ei[4] = { i[0], i[2], i[4], i[6] };
    VEC odr[4] = { r[1], r[3], r[5], r[7] }, odi[4] = { i[1], i[3], i[5], i[7] };
    HN_V(butterfly4)(er, ei);
    HN_V(butterfly4)(odr, odi);
    VEC t = half * (odr[1] + odi[1]);
    odi[1] = half * (odi[1] - odr[1]);
    odr[1] = t;
    t = odi[2];
    odi[2] = HN_VSET(0) - odr[2];
    odr[2] = t;
    t = half * (odi[3] - odr[3]);
    odi[3] = HN_VSET(0) - half * (odr[3] + odi[3]);
    odr[3] = t;
    HN_UNROLL for (int k = 0; k < 4; k++)
    {
        r[k] = er[k] + odr[k];
        i[k] = ei[k] + odi[k];
        r[k + 4] = er[k] - odr[k];
        i[k + 4] = ei[k] - odi[k];
    }
}

/* 3, 5 and 7: sums and differences of points j and radix - j times cosines and sines, for results k and radix - k at
 * once. */
INLINE void HN_V(butterfly_odd)(VEC *r, VEC *i, int radix, const float *trig)
{
    const int half = radix / 2;
    const VEC r0 = r[0], i0 = i[0];
    HN_UNROLL for (int j = 1; j <= half; j++)
    {
        const VEC dr = r[j] - r[radix - j], di = i[j] - i[radix - j];
        r[j] += r[radix - j];
        i[j] += i[radix - j];
        r[radix - j] = dr;
        i[radix - j] = di;
        r[0] += r[j];
        i[0] += i[j];
    }
    VEC ar[4], ai[4], br[4], bi[4];
    HN_UNROLL for (int k = 1; k <= half; k++)
    {
        ar[k] = r0;
        ai[k] = i0;
        br[k] = bi[k] = HN_VSET(0);
        HN_UNROLL for (int j = 1; j <= half; j++)
        {
            const VEC c = HN_VSET(trig[2 * (j * k % radix)]), s = HN_VSET(trig[2 * (j * k % radix) + 1]);
            ar[k] = HN_VFMA(c, r[j], ar[k]);
            ai[k] = HN_VFMA(c, i[j], ai[k]);
            br[k] = HN_VFMA(s, r[radix - j], br[k]);
            bi[k] = HN_VFMA(s, i[radix - j], bi[k]);
        }
    }
    HN_UNROLL for (int k = 1; k <= half; k++)
    {
        r[k] = ar[k] + bi[k];
        i[k] = ai[k] - br[k];
        r[radix - k] = ar[k] - bi[k];
        i[radix - k] = ai[k] + br[k];
    }
}

INLINE void HN_V(butterfly)(VEC *r, VEC *i, int radix, const float *trig)
{
    if (radix == 2)
        HN_V(butterfly2)(r, i);
    else if (radix == 4)
        HN_V(butterfly4)(r, i);
    else if (radix == 8)
        HN_V(butterfly8)(r, i);
    else
        HN_V(butterfly_odd)(r, i, radix, trig);
}

/* --- stages ------------------------------------------------------------------------------------------------------ */

/* All points of place p; `turns` where p is not 0. */
INLINE void HN_V(stage_place)(const HnFftStage *s, int radix, const float *x, float *y, int64_t p, gboolean turns)
{
    const float *w = s->twiddle + 2 * p * (radix - 1);
    for (int64_t q = 0; q < s->stride; q++) {
        VEC r[8], i[8];
        HN_UNROLL for (int j = 0; j < radix; j++)
        {
            const float *at = x + 2 * LANES * (q + s->stride * (p + s->places * j));
            r[j] = HN_VLOAD(at);
            i[j] = HN_VLOAD(at + LANES);
        }
        HN_V(butterfly)(r, i, radix, s->trig);
        HN_UNROLL for (int k = 0; k < radix; k++)
        {
            float *at = y + 2 * LANES * (q + s->stride * (radix * p + k));
            VEC re = r[k], im = i[k];
            if (turns && k > 0) {
                const VEC c = HN_VSET(w[2 * k - 2]), d = HN_VSET(w[2 * k - 1]);
                re = HN_VFNMA(i[k], d, r[k] * c);
                im = HN_VFMA(r[k], d, i[k] * c);
            }
            HN_VSTORE(at, re);
            HN_VSTORE(at + LANES, im);
        }
    }
}

INLINE void HN_V(stage_of)(const HnFftStage *s, int radix, const float *x, float *y)
{
    HN_V(stage_place)(s, radix, x, y, 0, FALSE);
    for (int64_t p = 1; p < s->places; p++)
        HN_V(stage_place)(s, radix, x, y, p, TRUE);
}

#define STAGE(radix)                                                                        \
    static HN_TARGET void HN_V(stage##radix)(const HnFftStage *s, const float *x, float *y) \
    {                                                                                       \
        HN_V(stage_of)(s, radix, x, y);                                                     \
    }
STAGE(2)
STAGE(3)
STAGE(4)
STAGE(5)
STAGE(7)
STAGE(8)
#undef STAGE

/* Result k of place p, turned. */
INLINE void HN_V(put)(const HnFftStage *s, float *y, int64_t q, int64_t p, int k, VEC re, VEC im)
{
    const float *w = s->twiddle + 2 * (p * (s->radix - 1) + k - 1);
    const VEC c = HN_VSET(w[0]), d = HN_VSET(w[1]);
    float *at = y + 2 * LANES * (q + s->stride * (s->radix * p + k));
    HN_VSTORE(at, HN_VFNMA(im, d, re * c));
    HN_VSTORE(at + LANES, HN_VFMA(re, d, im * c));
}

/* Any odd radix, point q of place p: as butterfly_odd, with room for more. */
static HN_TARGET void HN_V(any_point)(const HnFftStage *s, const float *x, float *y, int64_t q, int64_t p)
{
    const int radix = s->radix, half = radix / 2;
    const float *first = x + 2 * LANES * (q + s->stride * p);
    const VEC r0 = HN_VLOAD(first), i0 = HN_VLOAD(first + LANES);
    VEC r[HN_FFT_PRIME], i[HN_FFT_PRIME], sr = r0, si = i0;
    for (int j = 1; j < radix; j++) {
        const float *at = first + 2 * LANES * s->stride * s->places * j;
        r[j] = HN_VLOAD(at);
        i[j] = HN_VLOAD(at + LANES);
    }
    for (int j = 1; j <= half; j++) {
        const VEC dr = r[j] - r[radix - j], di = i[j] - i[radix - j];
        sr += r[j] += r[radix - j];
        si += i[j] += i[radix - j];
        r[radix - j] = dr;
        i[radix - j] = di;
    }
    HN_VSTORE(y + 2 * LANES * (q + s->stride * radix * p), sr);
    HN_VSTORE(y + 2 * LANES * (q + s->stride * radix * p) + LANES, si);
    for (int k = 1; k <= half; k++) {
        VEC ar = r0, ai = i0, br = HN_VSET(0), bi = HN_VSET(0);
        for (int j = 1, at = k; j <= half; j++, at += at + k < radix ? k : k - radix) {
            const VEC c = HN_VSET(s->trig[2 * at]), d = HN_VSET(s->trig[2 * at + 1]);
            ar = HN_VFMA(c, r[j], ar);
            ai = HN_VFMA(c, i[j], ai);
            br = HN_VFMA(d, r[radix - j], br);
            bi = HN_VFMA(d, i[radix - j], bi);
        }
        HN_V(put)(s, y, q, p, k, ar + bi, ai - br);
        HN_V(put)(s, y, q, p, radix - k, ar - bi, ai + br);
    }
}

static HN_TARGET void HN_V(stage_any)(const HnFftStage *s, const float *x, float *y)
{
    for (int64_t p = 0; p < s->places; p++)
        for (int64_t q = 0; q < s->stride; q++)
            HN_V(any_point)(s, x, y, q, p);
}

static HN_TARGET void HN_V(stage)(const HnFftStage *s, const float *x, float *y)
{
    switch (s->radix) {
    case 2:
        HN_V(stage2)(s, x, y);
        break;
    case 3:
        HN_V(stage3)(s, x, y);
        break;
    case 4:
        HN_V(stage4)(s, x, y);
        break;
    case 5:
        HN_V(stage5)(s, x, y);
        break;
    case 7:
        HN_V(stage7)(s, x, y);
        break;
    case 8:
        HN_V(stage8)(s, x, y);
        break;
    default:
        HN_V(stage_any)(s, x, y);
        break;
    }
}

/* Each stage reads one block and writes the other: the one that holds the result. */
static HN_TARGET float *HN_V(run_stages)(const HnFft *f, float *a, float *b)
{
    for (int i = 0; i < f->n_stages; i++) {
        float *t = a;
        HN_V(stage)(&f->stage[i], a, b);
        a = b;
        b = t;
    }
    return a;
}

/* y[j] = x[j] w[j]; swapped: with the parts of the result exchanged, which is what turns a transform into its inverse.
 */
static HN_TARGET void HN_V(turn)(const float *x, const float *w, float *y, int64_t n, gboolean swapped)
{
    for (int64_t j = 0; j < n; j++) {
        const VEC r = HN_VLOAD(x + 2 * LANES * j), i = HN_VLOAD(x + 2 * LANES * j + LANES);
        const VEC c = HN_VSET(w[2 * j]), d = HN_VSET(w[2 * j + 1]);
        HN_VSTORE(y + 2 * LANES * j + (swapped ? LANES : 0), HN_VFNMA(i, d, r * c));
        HN_VSTORE(y + 2 * LANES * j + (swapped ? 0 : LANES), HN_VFMA(r, d, i * c));
    }
}

static HN_TARGET void HN_V(swap_parts)(float *x, int64_t n)
{
    for (int64_t j = 0; j < n; j++) {
        const VEC r = HN_VLOAD(x + 2 * LANES * j), i = HN_VLOAD(x + 2 * LANES * j + LANES);
        HN_VSTORE(x + 2 * LANES * j, i);
        HN_VSTORE(x + 2 * LANES * j + LANES, r);
    }
}

/* Transforms the signals in block a; the block that holds the result. */
static HN_TARGET float *HN_V(fft)(const HnFft *f, float *a, float *b)
{
    if (f->inner == NULL)
        return HN_V(run_stages)(f, a, b);
    const int64_t m = f->inner->n;
    HN_V(turn)(a, f->chirp, a, f->n, FALSE);
    memset(a + 2 * LANES * f->n, 0, (size_t)(m - f->n) * 2 * LANES * sizeof(float));
    float *z = HN_V(run_stages)(f->inner, a, b);
    HN_V(turn)(z, f->spectrum, z, m, TRUE);
    z = HN_V(run_stages)(f->inner, z, z == a ? b : a);
    HN_V(swap_parts)(z, f->n);
    HN_V(turn)(z, f->chirp, z, f->n, FALSE);
    return z;
}

/* --- from rows to lanes and back --------------------------------------------------------------------------------- */

/* The rows that share the lanes of a block: up to LANES of them, from `first` on. */
INLINE const float *HN_V(row_in)(const HnFftBatch *b, int64_t r)
{
    return b->x + r / b->group * b->far + r % b->group * b->near;
}

/* Column c of the rows goes to the vector at z + LANES * ((c * step + shift) ^ swap). */
static HN_TARGET void HN_V(load_rows)(const HnFftBatch *b, int64_t first, int n, float *z, int step, int shift,
                                      int swap)
{
    const float *row[LANES];
    for (int l = 0; l < LANES; l++)
        row[l] = HN_V(row_in)(b, first + (l < n ? l : 0));
    int64_t c = 0;
    for (; c + LANES <= b->used; c += LANES) {
        VEC v[LANES];
        HN_UNROLL for (int l = 0; l < LANES; l++) v[l] = HN_VLOAD(row[l] + c);
        if (b->factor != NULL) {
            const VEC w = HN_VLOAD(b->factor + c);
            HN_UNROLL for (int l = 0; l < LANES; l++) v[l] *= w;
        }
        HN_V(hn_square)(v);
        HN_UNROLL for (int l = 0; l < LANES; l++) HN_VSTORE(z + LANES * (((c + l) * step + shift) ^ swap), v[l]);
    }
    for (; c < b->used; c++)
        for (int l = 0; l < LANES; l++)
            z[LANES * ((c * step + shift) ^ swap) + l] = b->factor != NULL ? row[l][c] * b->factor[c] : row[l][c];
}

/* The reverse, for all columns of output. */
static HN_TARGET void HN_V(store_rows)(const HnFftBatch *b, int64_t first, int n, const float *z, int step, int shift,
                                       int swap)
{
    float *y = b->y + first * b->columns_out;
    int64_t c = 0;
    for (; c + LANES <= b->columns_out; c += LANES) {
        VEC v[LANES];
        HN_UNROLL for (int l = 0; l < LANES; l++) v[l] = HN_VLOAD(z + LANES * (((c + l) * step + shift) ^ swap));
        HN_V(hn_square)(v);
        if (n == LANES) {
            HN_UNROLL for (int l = 0; l < LANES; l++) HN_VSTORE(y + l * b->columns_out + c, v[l]);
        } else {
            for (int l = 0; l < n; l++)
                HN_VSTORE(y + l * b->columns_out + c, v[l]);
        }
    }
    for (; c < b->columns_out; c++)
        for (int l = 0; l < n; l++)
            y[l * b->columns_out + c] = z[LANES * ((c * step + shift) ^ swap) + l];
}

/* Rows that lie side by side: those of one turn of `inner` are next to each other. */
static HN_TARGET void HN_V(load_beside)(const HnFftBatch *b, int64_t first, int n, float *z, int step, int shift,
                                        int swap)
{
    for (int l = 0; l < LANES; l++) {
        const int64_t r = first + (l < n ? l : 0);
        const float *x = b->x + r / b->inner * b->inner * b->columns_in + r % b->inner * b->parts_in;
        for (int64_t c = 0; c < b->used; c++) {
            const float v = x[c / b->parts_in * b->inner * b->parts_in + c % b->parts_in];
            z[LANES * ((c * step + shift) ^ swap) + l] = b->factor != NULL ? v * b->factor[c] : v;
        }
    }
}

static HN_TARGET void HN_V(store_beside)(const HnFftBatch *b, int64_t first, int n, const float *z, int step, int shift,
                                         int swap)
{
    for (int l = 0; l < n; l++) {
        const int64_t r = first + l;
        float *y = b->y + r / b->inner * b->inner * b->columns_out + r % b->inner * b->parts_out;
        for (int64_t c = 0; c < b->columns_out; c++)
            y[c / b->parts_out * b->inner * b->parts_out + c % b->parts_out] =
                z[LANES * ((c * step + shift) ^ swap) + l];
    }
}

static HN_TARGET void HN_V(load)(const HnFftBatch *b, int64_t first, int n, float *z, int step, int shift, int swap)
{
    if (b->inner == 1)
        HN_V(load_rows)(b, first, n, z, step, shift, swap);
    else
        HN_V(load_beside)(b, first, n, z, step, shift, swap);
}

static HN_TARGET void HN_V(store)(const HnFftBatch *b, int64_t first, int n, const float *z, int step, int shift,
                                  int swap)
{
    if (b->inner == 1)
        HN_V(store_rows)(b, first, n, z, step, shift, swap);
    else
        HN_V(store_beside)(b, first, n, z, step, shift, swap);
}

/* --- two real signals as one complex one ------------------------------------------------------------------------- */

/* Bins of the signal in the real parts (second: in the imaginary ones) of z, out of z[k] and z[n - k]. */
static HN_TARGET void HN_V(part_of)(const float *z, int64_t n, int64_t bins, gboolean second, float *y)
{
    const VEC half = HN_VSET(0.5f);
    for (int64_t k = 0; k < bins; k++) {
        const float *a = z + 2 * LANES * k, *c = z + 2 * LANES * (k == 0 ? 0 : n - k);
        const VEC ar = HN_VLOAD(a), ai = HN_VLOAD(a + LANES), cr = HN_VLOAD(c), ci = HN_VLOAD(c + LANES);
        HN_VSTORE(y + 2 * LANES * k, half * (second ? ai + ci : ar + cr));
        HN_VSTORE(y + 2 * LANES * k + LANES, half * (second ? cr - ar : ai - ci));
    }
}

/* z, whole, = the spectrum whose first half is h, as of a real signal; `second`: z += i times it. The imaginary parts
 * of bins that are their own opposites count for nothing. */
static HN_TARGET void HN_V(add_half)(float *z, const float *h, int64_t n, gboolean second)
{
    for (int64_t k = 0; k <= n / 2; k++) {
        const gboolean own = k == 0 || 2 * k == n;
        const VEC r = HN_VLOAD(h + 2 * LANES * k), i = own ? HN_VSET(0) : HN_VLOAD(h + 2 * LANES * k + LANES);
        float *a = z + 2 * LANES * k, *c = z + 2 * LANES * (own ? k : n - k);
        if (second) {
            const VEC cr = HN_VLOAD(c) + i, ci = HN_VLOAD(c + LANES) + r;
            if (!own) {
                HN_VSTORE(a, HN_VLOAD(a) - i);
                HN_VSTORE(a + LANES, HN_VLOAD(a + LANES) + r);
            }
            HN_VSTORE(c, cr);
            HN_VSTORE(c + LANES, ci);
        } else {
            HN_VSTORE(a, r);
            HN_VSTORE(a + LANES, i);
            HN_VSTORE(c, r);
            HN_VSTORE(c + LANES, HN_VSET(0) - i);
        }
    }
}

static HN_TARGET void HN_V(clear_from)(float *z, int64_t number, int64_t end)
{
    if (number < end)
        memset(z + LANES * number, 0, (size_t)(end - number) * LANES * sizeof(float));
}

/* --- a real signal as a complex one of half as many points -------------------------------------------------------- */

/* Bins 0 to n of a signal of 2 n points: with z[k] and the conjugate of z[n - k] those of its even points are their
 * half sum, those of its odd ones -i times their half difference, which e^(-pi i k / n) turns. */
static HN_TARGET void HN_V(take_apart)(const HnFft *f, const float *z, float *y)
{
    const VEC half = HN_VSET(0.5f);
    for (int64_t k = 0; k <= f->n / 2; k++) {
        const float *a = z + 2 * LANES * k, *b = z + 2 * LANES * (k == 0 ? 0 : f->n - k);
        const VEC ar = HN_VLOAD(a), ai = HN_VLOAD(a + LANES), br = HN_VLOAD(b), bi = HN_VLOAD(b + LANES);
        const VEC er = half * (ar + br), ei = half * (ai - bi), dr = half * (ai + bi), di = half * (br - ar);
        const VEC c = HN_VSET(f->apart[2 * k]), d = HN_VSET(f->apart[2 * k + 1]);
        const VEC tr = HN_VFNMA(di, d, dr * c), ti = HN_VFMA(dr, d, di * c);
        float *low = y + 2 * LANES * k, *high = y + 2 * LANES * (f->n - k);
        HN_VSTORE(high, er - tr);
        HN_VSTORE(high + LANES, ti - ei);
        HN_VSTORE(low, er + tr);
        HN_VSTORE(low + LANES, ei + ti);
    }
}

/* Bins from n + 1 on, conjugates of those before it. */
static HN_TARGET void HN_V(mirror)(float *y, int64_t n, int64_t bins)
{
    for (int64_t k = n + 1; k < bins; k++) {
        const float *from = y + 2 * LANES * (2 * n - k);
        HN_VSTORE(y + 2 * LANES * k, HN_VLOAD(from));
        HN_VSTORE(y + 2 * LANES * k + LANES, HN_VSET(0) - HN_VLOAD(from + LANES));
    }
}

INLINE VEC HN_V(sum_of)(const HnFftBatch *b, const float *y, int64_t c)
{
    const HnFftSum *s = &b->sums[c];
    const float *bin = y + 2 * LANES * s->bin;
    const VEC shift = HN_VSET(b->bias != NULL ? b->bias[c] : 0);
    return HN_VFMA(HN_VLOAD(bin), HN_VSET(s->re), HN_VFMA(HN_VLOAD(bin + LANES), HN_VSET(s->im), shift));
}

/* Columns of rows [first, first + n) of bins y, each the rows of a group side by side. */
static HN_TARGET void HN_V(store_planar)(const HnFftBatch *b, int64_t first, int n, const float *y)
{
    const int64_t plane = b->group, at = first % plane;
    float *to = b->y + first / plane * plane * b->columns_out + at;
    for (int64_t c = 0; c < b->columns_out; c++, to += plane) {
        const VEC v = HN_V(sum_of)(b, y, c);
        if (at + n > plane) {
            float each[LANES];
            HN_VSTORE(each, v);
            for (int l = 0; l < n; l++)
                to[l + (at + l) / plane * plane * (b->columns_out - 1)] = each[l];
        } else if (n == LANES) {
            HN_VSTORE(to, v);
        } else {
            HN_VSTORE_N(to, v, n);
        }
    }
}

static HN_TARGET void HN_V(real_rows)(const HnFftBatch *b, int64_t first, int n, float *p, float *q)
{
    const HnFft *f = b->fft;
    HN_V(clear_from)(p, b->used, 2 * f->n);
    HN_V(load)(b, first, n, p, 1, 0, 0);
    float *z = HN_V(fft)(f, p, q), *y = z == p ? q : p;
    HN_V(take_apart)(f, z, y);
    if (b->sums == NULL) {
        HN_V(mirror)(y, f->n, b->columns_out / 2);
        HN_V(store)(b, first, n, y, 1, 0, 0);
    } else if (b->planar) {
        HN_V(store_planar)(b, first, n, y);
    } else {
        for (int64_t c = 0; c < b->columns_out; c++)
            HN_VSTORE(z + LANES * c, HN_V(sum_of)(b, y, c));
        HN_V(store)(b, first, n, z, 1, 0, 0);
    }
}

/* Rows [first, first + n) of a batch, at most hn_fft_step() of them, in two blocks of memory. */
static HN_TARGET void HN_V(fft_rows)(const HnFftBatch *b, int64_t first, int n, float *p, float *q)
{
    const HnFft *f = b->fft;
    if (f->apart != NULL) {
        HN_V(real_rows)(b, first, n, p, q);
        return;
    }
    const int swap = b->inverse ? 1 : 0, na = MIN(n, LANES), nb = n - na;
    const gboolean pair = hn_fft_step(b, LANES) > LANES;
    const int64_t other = first + (nb > 0 ? LANES : 0); /* without a second one, the first once more */
    if (b->half) {
        HN_V(clear_from)(q, b->parts_in == 2 ? b->used : 0, 2 * (f->n / 2 + 1));
        HN_V(load)(b, first, na, q, 3 - b->parts_in, 0, 0);
        HN_V(add_half)(p, q, f->n, FALSE);
        HN_V(load)(b, other, MAX(nb, 1), q, 3 - b->parts_in, 0, 0);
        HN_V(add_half)(p, q, f->n, TRUE);
        if (swap)
            HN_V(swap_parts)(p, f->n);
    } else if (pair) {
        HN_V(clear_from)(p, 2 * b->used, 2 * f->n);
        HN_V(load)(b, first, na, p, 2, 0, swap);
        HN_V(load)(b, other, MAX(nb, 1), p, 2, 1, swap);
    } else {
        HN_V(clear_from)(p, b->used, 2 * f->n);
        HN_V(load)(b, first, na, p, 1, 0, swap);
    }
    float *z = HN_V(fft)(f, p, q), *t = z == p ? q : p;
    if (!pair) {
        HN_V(store)(b, first, na, z, 1, 0, swap);
    } else if (b->parts_out == 1) {
        HN_V(store)(b, first, na, z, 2, 0, swap);
        if (nb > 0)
            HN_V(store)(b, other, nb, z, 2, 1, swap);
    } else {
        if (swap)
            HN_V(swap_parts)(z, f->n);
        HN_V(part_of)(z, f->n, b->columns_out / 2, FALSE, t);
        HN_V(store)(b, first, na, t, 1, 0, 0);
        HN_V(part_of)(z, f->n, b->columns_out / 2, TRUE, t);
        if (nb > 0)
            HN_V(store)(b, other, nb, t, 1, 0, 0);
    }
}

#undef LANES
#undef VEC
#undef INLINE
