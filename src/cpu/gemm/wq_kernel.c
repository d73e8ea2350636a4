#include "cpu/gemm/wq_kernel.h"

#include <string.h>

#include "base/cpu.h"

#define HN_LOOPS "cpu/gemm/wq_kernel_loops.h"
#include "base/every_level.h"
#define HN_LEVEL weightvnni
#include "cpu/gemm/wq_kernel_loops.h"

typedef struct {
    int rows, lanes;
    const HnWqFn (*fns)[HN_WQ_MAX_ROWS];
    void (*row)(const HnWqCut *c, int16_t *q, float *scale, float *sum, const float *x, gboolean sums);
    void (*unpack)(const HnWqForm *f, const char *w, int64_t from, int64_t to, float *y);
    int64_t few[2]; /* rows that are few: with 8 bits, with 4 */
} Level;

static const Level *level(void)
{
#define LEVEL(v, few8, few4)                                                             \
    {                                                                                    \
        HN_WQ_ROWS_##v, HN_LANES_##v, weight_fns_##v, weight_row_##v, weight_unpack_##v, \
        {                                                                                \
            few8, few4                                                                   \
        }                                                                                \
    }
    static const Level levels[] = { LEVEL(plain, INT64_MAX, INT64_MAX), LEVEL(avx2, INT64_MAX, INT64_MAX),
                                    LEVEL(avx512, 48, 24), LEVEL(weightvnni, INT64_MAX, INT64_MAX) };
    const HnIsa isa = hn_cpu_isa();
    return &levels[isa >= HN_ISA_VNNI ? 3 : isa >= HN_ISA_AVX512 ? 2 : isa >= HN_ISA_AVX2 ? 1 : 0];
}

int hn_wq_rows(void)
{
    return level()->rows;
}

int hn_wq_cols(void)
{
    return level()->lanes * 2;
}

const HnWqFn *hn_wq_fns(int bits)
{
    return level()->fns[bits == 4];
}

gboolean hn_wq_is_few(int64_t rows, int bits)
{
    return rows <= level()->few[bits == 4];
}

void hn_wq_unpack(const HnWqForm *f, const char *panel, int64_t from, int64_t to, float *y)
{
    level()->unpack(f, panel, from, to, y);
}

static int64_t groups_of(int64_t k)
{
    return (k + HN_WQ_GROUP - 1) / HN_WQ_GROUP;
}

HnWqCut hn_wq_cut(int64_t k, int64_t segment)
{
    HnWqCut c = { .k = k, .segment = MIN(k, segment) };
    c.segs = (k + c.segment - 1) / c.segment;
    c.groups = groups_of(c.segment);
    c.last = groups_of(k - (c.segs - 1) * c.segment);
    c.padded = ((c.segs - 1) * c.groups + c.last) * HN_WQ_GROUP;
    return c;
}

#define LINE 64

static gsize whole_lines(gsize bytes)
{
    return (bytes + LINE - 1) / LINE * LINE;
}

gsize hn_wq_rows_bytes(const HnWqCut *c, int64_t rows)
{
    return whole_lines((gsize)(rows * c->padded) * sizeof(int16_t)) +
           2 * whole_lines((gsize)(rows * c->segs) * sizeof(float));
}

HnWqRows hn_wq_rows_in(void *memory, const HnWqCut *c, int64_t rows)
{
    char *m = memory, *scale = m + whole_lines((gsize)(rows * c->padded) * sizeof(int16_t));
    char *sum = scale + whole_lines((gsize)(rows * c->segs) * sizeof(float));
    return (HnWqRows){ (int16_t *)(void *)m, (float *)(void *)scale, (float *)(void *)sum };
}

void hn_wq_row(const HnWqCut *c, const HnWqRows *to, int64_t i, const float *x, gboolean sums)
{
    level()->row(c, to->q + i * c->padded, to->scale + i * c->segs, to->sum + i * c->segs, x, sums);
}

gsize hn_wq_panel(const HnWqForm *f)
{
    const gsize cols = (gsize)hn_wq_cols(), head = cols * (sizeof(float) + (f->zeros ? 1 : 0));
    return head * (f->blocked ? (gsize)f->cut.segs : 1) + (gsize)f->cut.padded * cols * (gsize)f->bits / 8;
}
