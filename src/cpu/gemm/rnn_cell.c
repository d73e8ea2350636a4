#include "cpu/gemm/rnn_cell.h"

#include <immintrin.h>
#include <math.h>
#include <string.h>

#include "base/cpu.h"

#define INLINE static inline __attribute__((always_inline))

/* --- functions of one unit; the compiler makes vectors of loops over 16 ------------------------------------------ */

/* What arguments of exp_of() are clamped to, read when it runs: of a constant the compiler computes what follows for
 * the clamped lanes apart, and multiplies all lanes by a sigmoid of 1.6e-38, which takes the processor hundreds of
 * cycles as results are denormal. */
static const volatile float most_exponent = 87.0f;

/* e^x for x in [-most, most], relative error below 2e-7: 2^n times a polynomial of the remainder. */
INLINE float exp_of(float x, float most)
{
    const float magic = 12582912.0f; /* 1.5 * 2^23: its sum's last bits are the rounded integer */
    x = x < -most ? -most : x;
    x = x > most ? most : x;
    const float shifted = x * 1.44269504089f + magic, n = shifted - magic;
    const float r = (x - n * 0.693359375f) + n * 2.12194440e-4f;
    float p = 1.9875691500e-4f;
    p = p * r + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    p = p * (r * r) + r + 1.0f;
    union {
        float f;
        guint32 i;
    } s = { .f = shifted };
    s.i = (s.i + 127u) << 23;
    return p * s.f;
}

INLINE float sigmoid_of(float x, float most)
{
    return 1.0f / (1.0f + exp_of(-x, most));
}

INLINE float tanh_of(float x, float most)
{
    const float z = x * x, large = 1.0f - 2.0f / (exp_of(2.0f * x, most) + 1.0f);
    float p = -5.70498872745e-3f;
    p = p * z + 2.06390887954e-2f;
    p = p * z - 5.37397155531e-2f;
    p = p * z + 1.33314422036e-1f;
    p = p * z - 3.33332819422e-1f;
    p = p * z * x + x;
    return z < 0.390625f ? p : large;
}

INLINE float clamp_of(float x, float to)
{
    x = x < -to ? -to : x;
    return x > to ? to : x;
}

INLINE void lstm_body(const HnRnnCellGates *p, const float *restrict g, float *restrict c, float *restrict h)
{
    float in[HN_RNN_CELL], forget[HN_RNN_CELL], out[HN_RNN_CELL];
    const float clip = p->clip, most = most_exponent;
    for (int i = 0; i < HN_RNN_CELL; i++) {
        in[i] = g[i];
        out[i] = g[HN_RNN_CELL + i];
        forget[i] = g[2 * HN_RNN_CELL + i];
    }
    if (p->peep[0] != NULL)
        for (int i = 0; i < HN_RNN_CELL; i++) {
            in[i] += p->peep[0][i] * c[i];
            forget[i] += p->peep[2][i] * c[i];
        }
    for (int i = 0; i < HN_RNN_CELL; i++)
        c[i] = sigmoid_of(clamp_of(forget[i], clip), most) * c[i] +
               sigmoid_of(clamp_of(in[i], clip), most) * tanh_of(clamp_of(g[3 * HN_RNN_CELL + i], clip), most);
    if (p->peep[0] != NULL)
        for (int i = 0; i < HN_RNN_CELL; i++)
            out[i] += p->peep[1][i] * c[i];
    for (int i = 0; i < HN_RNN_CELL; i++)
        h[i] = sigmoid_of(clamp_of(out[i], clip), most) * tanh_of(c[i], most);
}

INLINE void gru_body(const HnRnnCellGates *p, const float *restrict g, gboolean linear, const float *restrict h,
                     float *restrict to)
{
    const float clip = p->clip, most = most_exponent;
    float in[HN_RNN_CELL];
    for (int i = 0; i < HN_RNN_CELL; i++)
        in[i] = g[2 * HN_RNN_CELL + i];
    if (linear)
        for (int i = 0; i < HN_RNN_CELL; i++)
            in[i] = in[i] * sigmoid_of(clamp_of(g[HN_RNN_CELL + i], clip), most) + g[3 * HN_RNN_CELL + i];
    for (int i = 0; i < HN_RNN_CELL; i++) {
        const float z = sigmoid_of(clamp_of(g[i], clip), most);
        to[i] = (1.0f - z) * tanh_of(clamp_of(in[i], clip), most) + z * h[i];
    }
}

INLINE void reset_body(const HnRnnCellGates *p, const float *restrict g, const float *restrict h, float *restrict to)
{
    const float clip = p->clip, most = most_exponent;
    for (int i = 0; i < HN_RNN_CELL; i++)
        to[i] = sigmoid_of(clamp_of(g[HN_RNN_CELL + i], clip), most) * h[i];
}

INLINE void rnn_body(const HnRnnCellGates *p, const float *restrict g, float *restrict to)
{
    const float clip = p->clip, most = most_exponent;
    for (int i = 0; i < HN_RNN_CELL; i++)
        to[i] = tanh_of(clamp_of(g[i], clip), most);
}

INLINE void softmax_body(float *restrict s, int64_t n)
{
    const float most = most_exponent;
    float max = -INFINITY, sum = 0, part[HN_RNN_CELL] = { 0 };
    int64_t i = 0;
    for (int64_t k = 0; k < n; k++)
        max = s[k] > max ? s[k] : max;
    const float from = max == -INFINITY ? 0 : max;
    for (; i + HN_RNN_CELL <= n; i += HN_RNN_CELL)
        for (int j = 0; j < HN_RNN_CELL; j++) {
            const float x = s[i + j] - from;
            s[i + j] = x < -87.0f ? 0 : exp_of(x, most);
            part[j] += s[i + j];
        }
    for (; i < n; i++) {
        const float x = s[i] - from;
        s[i] = x < -87.0f ? 0 : exp_of(x, most);
        sum += s[i];
    }
    for (int j = 0; j < HN_RNN_CELL; j++)
        sum += part[j];
    const float factor = max == -INFINITY ? 0 : 1 / sum;
    for (i = 0; i < n; i++)
        s[i] *= factor;
}

/* The cells for one set of instructions, and the table of it. */
#define CELLS(isa, attribute)                                                                              \
    attribute static void lstm_##isa(const HnRnnCellGates *p, const float *g, float *c, float *h)          \
    {                                                                                                      \
        lstm_body(p, g, c, h);                                                                             \
    }                                                                                                      \
    attribute static void gru_##isa(const HnRnnCellGates *p, const float *g, gboolean linear_before_reset, \
                                    const float *h, float *to)                                             \
    {                                                                                                      \
        gru_body(p, g, linear_before_reset, h, to);                                                        \
    }                                                                                                      \
    attribute static void reset_##isa(const HnRnnCellGates *p, const float *g, const float *h, float *to)  \
    {                                                                                                      \
        reset_body(p, g, h, to);                                                                           \
    }                                                                                                      \
    attribute static void softmax_##isa(float *s, int64_t n)                                               \
    {                                                                                                      \
        softmax_body(s, n);                                                                                \
    }                                                                                                      \
    attribute static void rnn_##isa(const HnRnnCellGates *p, const float *g, float *to)                    \
    {                                                                                                      \
        rnn_body(p, g, to);                                                                                \
    }                                                                                                      \
    static const HnRnnCellOps ops_##isa = { one_##isa,   rows_##isa, lstm_##isa,   gru_##isa,              \
                                            reset_##isa, rnn_##isa,  softmax_##isa };

/* --- plain C ------------------------------------------------------------------------------------------------------ */

static void one_plain(float *c, const int *slot, const float *x, const float *w, int64_t k, int gates, int all)
{
    for (int g = 0; g < gates; g++) {
        float *restrict to = c + slot[g] * HN_RNN_CELL;
        const float *from = w + g * HN_RNN_CELL;
        for (int64_t i = 0; i < k; i++, from += all * HN_RNN_CELL)
            for (int j = 0; j < HN_RNN_CELL; j++)
                to[j] += x[i] * from[j];
    }
}

static void rows_plain(float *const *c, const float *const *x, int n, const float *w, int64_t step, int64_t k)
{
    for (int r = 0; r < n; r++) {
        float *restrict to = c[r];
        for (int64_t i = 0; i < k; i++)
            for (int j = 0; j < HN_RNN_CELL; j++)
                to[j] += x[r][i] * w[i * step + j];
    }
}

CELLS(plain, )

/* --- AVX2 --------------------------------------------------------------------------------------------------------- */

#define AVX2 __attribute__((target("avx2,fma")))
#define AVX2_INLINE AVX2 INLINE

AVX2_INLINE void one_of_avx2(float *c, const int *slot, const float *x, const float *w, int64_t k, const int gates,
                             int all)
{
    __m256 a[4], b[4];
#pragma GCC unroll 4
    for (int g = 0; g < gates; g++) {
        a[g] = _mm256_loadu_ps(c + slot[g] * HN_RNN_CELL);
        b[g] = _mm256_loadu_ps(c + slot[g] * HN_RNN_CELL + 8);
    }
    for (int64_t i = 0; i < k; i++, w += all * HN_RNN_CELL) {
        const __m256 v = _mm256_broadcast_ss(x + i);
#pragma GCC unroll 4
        for (int g = 0; g < gates; g++) {
            a[g] = _mm256_fmadd_ps(v, _mm256_loadu_ps(w + g * HN_RNN_CELL), a[g]);
            b[g] = _mm256_fmadd_ps(v, _mm256_loadu_ps(w + g * HN_RNN_CELL + 8), b[g]);
        }
    }
#pragma GCC unroll 4
    for (int g = 0; g < gates; g++) {
        _mm256_storeu_ps(c + slot[g] * HN_RNN_CELL, a[g]);
        _mm256_storeu_ps(c + slot[g] * HN_RNN_CELL + 8, b[g]);
    }
}

AVX2 static void one_avx2(float *c, const int *slot, const float *x, const float *w, int64_t k, int gates, int all)
{
    switch (gates) {
    case 1:
        one_of_avx2(c, slot, x, w, k, 1, all);
        break;
    case 2:
        one_of_avx2(c, slot, x, w, k, 2, all);
        break;
    case 3:
        one_of_avx2(c, slot, x, w, k, 3, all);
        break;
    default:
        one_of_avx2(c, slot, x, w, k, 4, all);
    }
}

AVX2_INLINE void rows_of_avx2(float *const *c, const float *const *x, const int n, const float *w, int64_t step,
                              int64_t k)
{
    __m256 a[4], b[4];
#pragma GCC unroll 4
    for (int r = 0; r < n; r++) {
        a[r] = _mm256_loadu_ps(c[r]);
        b[r] = _mm256_loadu_ps(c[r] + 8);
    }
    for (int64_t i = 0; i < k; i++, w += step) {
        const __m256 w0 = _mm256_loadu_ps(w), w1 = _mm256_loadu_ps(w + 8);
#pragma GCC unroll 4
        for (int r = 0; r < n; r++) {
            const __m256 v = _mm256_broadcast_ss(x[r] + i);
            a[r] = _mm256_fmadd_ps(v, w0, a[r]);
            b[r] = _mm256_fmadd_ps(v, w1, b[r]);
        }
    }
#pragma GCC unroll 4
    for (int r = 0; r < n; r++) {
        _mm256_storeu_ps(c[r], a[r]);
        _mm256_storeu_ps(c[r] + 8, b[r]);
    }
}

AVX2 static void rows_avx2(float *const *c, const float *const *x, int n, const float *w, int64_t step, int64_t k)
{
    for (; n >= 4; n -= 4, c += 4, x += 4)
        rows_of_avx2(c, x, 4, w, step, k);
    if (n >= 2) {
        rows_of_avx2(c, x, 2, w, step, k);
        n -= 2;
        c += 2;
        x += 2;
    }
    if (n == 1)
        rows_of_avx2(c, x, 1, w, step, k);
}

CELLS(avx2, AVX2)

/* --- AVX-512 ------------------------------------------------------------------------------------------------------ */

#define AVX512 __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma" HN_WIDE)))
#define AVX512_INLINE AVX512 INLINE

/* Two sums per gate, of even and odd k: one alone waits for the multiply-add before it. */
AVX512_INLINE void one_of_avx512(float *c, const int *slot, const float *x, const float *w, int64_t k, const int gates,
                                 int all)
{
    __m512 a[4], b[4];
#pragma GCC unroll 4
    for (int g = 0; g < gates; g++) {
        a[g] = _mm512_loadu_ps(c + slot[g] * HN_RNN_CELL);
        b[g] = _mm512_setzero_ps();
    }
    int64_t i = 0;
    for (; i + 2 <= k; i += 2, w += 2 * all * HN_RNN_CELL) {
        const __m512 v0 = _mm512_set1_ps(x[i]), v1 = _mm512_set1_ps(x[i + 1]);
#pragma GCC unroll 4
        for (int g = 0; g < gates; g++) {
            a[g] = _mm512_fmadd_ps(v0, _mm512_loadu_ps(w + g * HN_RNN_CELL), a[g]);
            b[g] = _mm512_fmadd_ps(v1, _mm512_loadu_ps(w + (all + g) * HN_RNN_CELL), b[g]);
        }
    }
    if (i < k) {
        const __m512 v = _mm512_set1_ps(x[i]);
#pragma GCC unroll 4
        for (int g = 0; g < gates; g++)
            a[g] = _mm512_fmadd_ps(v, _mm512_loadu_ps(w + g * HN_RNN_CELL), a[g]);
    }
#pragma GCC unroll 4
    for (int g = 0; g < gates; g++)
        _mm512_storeu_ps(c + slot[g] * HN_RNN_CELL, _mm512_add_ps(a[g], b[g]));
}

AVX512 static void one_avx512(float *c, const int *slot, const float *x, const float *w, int64_t k, int gates, int all)
{
    switch (gates) {
    case 1:
        one_of_avx512(c, slot, x, w, k, 1, all);
        break;
    case 2:
        one_of_avx512(c, slot, x, w, k, 2, all);
        break;
    case 3:
        one_of_avx512(c, slot, x, w, k, 3, all);
        break;
    default:
        one_of_avx512(c, slot, x, w, k, 4, all);
    }
}

/* Two sums per row here, too: however many rows there are, each is summed in the same order. */
AVX512_INLINE void rows_of_avx512(float *const *c, const float *const *x, const int n, const float *w, int64_t step,
                                  int64_t k)
{
    __m512 a[8], b[8];
#pragma GCC unroll 8
    for (int r = 0; r < n; r++) {
        a[r] = _mm512_loadu_ps(c[r]);
        b[r] = _mm512_setzero_ps();
    }
    int64_t i = 0;
    for (; i + 2 <= k; i += 2, w += 2 * step) {
        const __m512 v0 = _mm512_loadu_ps(w), v1 = _mm512_loadu_ps(w + step);
#pragma GCC unroll 8
        for (int r = 0; r < n; r++) {
            a[r] = _mm512_fmadd_ps(_mm512_set1_ps(x[r][i]), v0, a[r]);
            b[r] = _mm512_fmadd_ps(_mm512_set1_ps(x[r][i + 1]), v1, b[r]);
        }
    }
    if (i < k) {
        const __m512 v = _mm512_loadu_ps(w);
#pragma GCC unroll 8
        for (int r = 0; r < n; r++)
            a[r] = _mm512_fmadd_ps(_mm512_set1_ps(x[r][i]), v, a[r]);
    }
#pragma GCC unroll 8
    for (int r = 0; r < n; r++)
        _mm512_storeu_ps(c[r], _mm512_add_ps(a[r], b[r]));
}

AVX512 static void rows_avx512(float *const *c, const float *const *x, int n, const float *w, int64_t step, int64_t k)
{
    for (; n >= 8; n -= 8, c += 8, x += 8)
        rows_of_avx512(c, x, 8, w, step, k);
    if (n >= 4) {
        rows_of_avx512(c, x, 4, w, step, k);
        n -= 4;
        c += 4;
        x += 4;
    }
    if (n == 3)
        rows_of_avx512(c, x, 3, w, step, k);
    else if (n == 2)
        rows_of_avx512(c, x, 2, w, step, k);
    else if (n == 1)
        rows_of_avx512(c, x, 1, w, step, k);
}

CELLS(avx512, AVX512)

const HnRnnCellOps *hn_rnn_cell_ops(void)
{
    const HnIsa isa = hn_cpu_isa();
    return isa >= HN_ISA_AVX512 ? &ops_avx512 : isa >= HN_ISA_AVX2 ? &ops_avx2 : &ops_plain;
}
