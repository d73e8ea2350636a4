#include "cpu/gemm/wq_block.h"

#include <immintrin.h>
#include <string.h>

#include "cpu/int8/int8_kernel.h"
#include "cpu/core/cpu_level.h"

#define COLS 32
#define LANES 16
#define UNIT 4 /* bytes of k side by side */

gboolean hn_wq_has_blocks(void)
{
    return hn_int8_has_blocks() && hn_wq_cols() == COLS;
}

HnWqBlock hn_wq_block_of(const HnWqForm *f)
{
    HnWqBlock b = { .form = *f, .seg = f->cut.groups * HN_WQ_GROUP };
    b.chunks = (b.seg + 63) / 64; /* of a group's size or a half of one */
    b.chunk = (int)(b.seg / b.chunks);
    return b;
}

/* --- rows ----------------------------------------------------------------------------------------------------------
 */

static gsize plane_bytes(const HnWqBlock *b, int64_t rows)
{
    return (gsize)(rows * b->form.cut.segs * b->seg + 63) / 64 * 64;
}

gsize hn_wq_planes_bytes(const HnWqBlock *b, int64_t rows)
{
    return 2 * plane_bytes(b, rows) + hn_wq_rows_bytes(&b->form.cut, rows);
}

HnWqPlanes hn_wq_planes_in(void *memory, const HnWqBlock *b, int64_t rows)
{
    int8_t *m = memory;
    const gsize plane = plane_bytes(b, rows);
    return (HnWqPlanes){ m, m + plane, hn_wq_rows_in(m + 2 * plane, &b->form.cut, rows) };
}

static HN_TARGET_avx512 void split(const int16_t *restrict q, int8_t *restrict high, int8_t *restrict low, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        low[i] = (int8_t)q[i];
        high[i] = (int8_t)((q[i] + 128) >> 8);
    }
}

void hn_wq_planes_row(const HnWqBlock *b, const HnWqPlanes *to, int64_t i, const float *x)
{
    const HnWqCut *cut = &b->form.cut;
    const int64_t plane = cut->segs * b->seg;
    hn_wq_row(cut, &to->q, i, x, TRUE);
    split(to->q.q + i * cut->padded, to->high + i * plane, to->low + i * plane, cut->padded);
    memset(to->high + i * plane + cut->padded, 0, (gsize)(plane - cut->padded));
    memset(to->low + i * plane + cut->padded, 0, (gsize)(plane - cut->padded));
}

/* --- weights -------------------------------------------------------------------------------------------------------
 */

/* Four k of 16 columns, of two pairs of bytes. */
static inline HN_TARGET_avx512 __m512i four_of(const char *first, const char *second)
{
    const __m512i a = _mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)(const void *)first));
    const __m512i b = _mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)(const void *)second));
    return _mm512_or_si512(a, _mm512_slli_epi32(b, 16));
}

/* The same of nibbles i and i + 1 of either half of a lane. */
static inline HN_TARGET_avx512 __m512i four_nibbles(const char *w, const int i)
{
    const __m512i mask = _mm512_set1_epi32(0x000f000f), v = _mm512_loadu_si512(w);
    const __m512i a = _mm512_and_si512(_mm512_srli_epi32(v, (unsigned)(4 * i)), mask);
    const __m512i b = _mm512_and_si512(_mm512_srli_epi32(v, (unsigned)(4 * i + 4)), mask);
    const __m512i lower = _mm512_and_si512(_mm512_or_si512(a, _mm512_srli_epi32(a, 8)), _mm512_set1_epi32(0xffff));
    return _mm512_or_si512(lower, _mm512_slli_epi32(_mm512_or_si512(b, _mm512_srli_epi32(b, 8)), 16));
}

/* Groups as [2 units][COLS][UNIT]. */
static HN_TARGET_avx512 void groups_to_bytes(const char *w, int bits, int64_t groups, int8_t *to)
{
    for (int64_t g = 0; g < groups; g++, w += COLS * bits)
        for (int u = 0; u < 2; u++)
            for (int v = 0; v < 2; v++, to += LANES * UNIT) {
                const char *const pair = w + u * COLS * 4 + v * COLS;
                _mm512_storeu_si512(to,
                                    bits == 4 ? four_nibbles(w + v * COLS * 2, 2 * u) : four_of(pair, pair + COLS * 2));
            }
}

/* Where the scales and the weights of a panel's segment are. */
static const char *head_of(const HnWqForm *f, const char *w, int64_t s, const char **groups)
{
    const int64_t head = COLS * ((int64_t)sizeof(float) + (f->zeros ? 1 : 0)), data = f->cut.groups * COLS * f->bits;
    const char *const h = f->blocked ? w + s * (head + data) : w;
    *groups = f->blocked ? h + head : w + head + s * data;
    return h;
}

/* --- products ------------------------------------------------------------------------------------------------------
 */

gsize hn_wq_block_bytes(const HnWqBlock *b)
{
    return (gsize)(b->form.cut.segs * b->seg) * COLS;
}

/* sum[rows][COLS] += the scaled sums of segment s. */
static HN_TARGET_avx512 void add_segment(const HnWqForm *f, const HnWqRows *x, int64_t from, int64_t rows, int64_t s,
                                         const char *head, const int32_t *high, const int32_t *low, float *sum)
{
    const float *const scale = (const float *)(const void *)head;
    __m512 less[2], by[2];
    for (int v = 0; v < 2; v++) {
        const __m128i z = _mm_loadu_si128((const __m128i *)(const void *)(scale + COLS) + v * (f->zeros ? 1 : 0));
        less[v] = f->zeros ? _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(z)) : _mm512_set1_ps((float)f->zero);
        by[v] = f->blocked ? _mm512_loadu_ps(scale + v * LANES) : _mm512_set1_ps(1);
    }
    for (int64_t r = 0; r < rows; r++) {
        const int64_t at = (from + r) * f->cut.segs + s;
        const __m512 step = _mm512_set1_ps(x->scale[at]), q = _mm512_set1_ps(x->sum[at]);
        for (int v = 0; v < 2; v++) {
            const int64_t i = r * COLS + v * LANES;
            const __m512i both =
                _mm512_add_epi32(_mm512_slli_epi32(_mm512_loadu_si512(high + i), 8), _mm512_loadu_si512(low + i));
            const __m512 p = _mm512_fnmadd_ps(q, less[v], _mm512_cvtepi32_ps(both));
            const __m512 before = s > 0 ? _mm512_loadu_ps(sum + i) : _mm512_setzero_ps();
            _mm512_storeu_ps(sum + i, _mm512_fmadd_ps(p, _mm512_mul_ps(step, by[v]), before));
        }
    }
}

static HN_TARGET_avx512 void finish(const HnWqBlock *b, const HnWqKernel *t, const float *sum, int64_t rows, float *c)
{
    const float *const scale = (const float *)(const void *)t->w;
    for (int v = 0; v < 2 && v * LANES < t->cols; v++) {
        const int left = MIN(LANES, t->cols - v * LANES);
        const __mmask16 mask = (__mmask16)((1u << left) - 1);
        const __m512 bias = t->bias != NULL ? _mm512_maskz_loadu_ps(mask, t->bias + v * LANES) : _mm512_setzero_ps();
        const __m512 by = b->form.blocked ? _mm512_set1_ps(1) : _mm512_loadu_ps(scale + v * LANES);
        for (int64_t r = 0; r < rows; r++)
            _mm512_mask_storeu_ps(c + r * t->c_pitch + v * LANES, mask,
                                  _mm512_fmadd_ps(_mm512_loadu_ps(sum + r * COLS + v * LANES), by, bias));
    }
}

void hn_wq_blocks_begin(const HnWqBlock *b)
{
    hn_int8_blocks_begin(b->chunk);
}

void hn_wq_blocks_end(void)
{
    hn_int8_blocks_end();
}

void hn_wq_block(const HnWqBlock *b, const HnWqPlanes *x, int64_t from, int64_t rows, const HnWqKernel *t, void *memory)
{
    static const int32_t none[COLS];
    const HnWqForm *f = &b->form;
    const int64_t plane = f->cut.segs * b->seg, at = 0;
    /* the sums of a segment are scaled while the units are at the next one */
    int32_t high[2][HN_INT8_BLOCK * COLS] __attribute__((aligned(64)));
    int32_t low[2][HN_INT8_BLOCK * COLS] __attribute__((aligned(64)));
    float sum[HN_INT8_BLOCK * COLS] __attribute__((aligned(64)));
    const char *groups;
    for (int64_t s = 0; s < f->cut.segs; s++) {
        (void)head_of(f, t->w, s, &groups);
        groups_to_bytes(groups, f->bits, s < f->cut.segs - 1 ? f->cut.groups : f->cut.last,
                        (int8_t *)memory + s * b->seg * COLS);
    }
    for (int64_t r = 0; r < rows;) {
        /* the last ones overlap with those before */
        const int64_t n = rows - r > HN_WQ_BLOCK_ROWS && rows >= HN_INT8_BLOCK ? HN_INT8_BLOCK : HN_WQ_BLOCK_ROWS;
        const int64_t first = MIN(r, rows - n);
        HnInt8Block block = { .a_step = plane,
                              .seg_at = &at,
                              .segs = 1,
                              .chunks = b->chunks,
                              .chunk = b->chunk,
                              .begin = none,
                              .rows = (int)n,
                              .cols = t->cols > LANES ? COLS : LANES,
                              .is_signed = TRUE };
        for (int64_t s = 0; s <= f->cut.segs; s++) {
            if (s < f->cut.segs) {
                const int64_t place = (from + first) * plane + s * b->seg;
                block.b = (const int8_t *)memory + s * b->seg * COLS;
                block.a = (const uint8_t *)x->high + place;
                block.c = high[s % 2];
                block.same_b = FALSE;
                hn_int8_block(&block);
                block.a = (const uint8_t *)x->low + place;
                block.c = low[s % 2];
                block.same_b = b->chunks == 1;
                hn_int8_block(&block);
            }
            if (s > 0)
                add_segment(f, &x->q, from + first, n, s - 1, head_of(f, t->w, s - 1, &groups), high[(s - 1) % 2],
                            low[(s - 1) % 2], sum);
        }
        finish(b, t, sum, n, t->c + first * t->c_pitch);
        r = first + n;
    }
}
