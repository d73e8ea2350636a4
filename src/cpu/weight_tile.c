#include "cpu/weight_tile.h"

#include <string.h>

#include "base/cpu.h"

#define HN_LEVEL plain
#include "cpu/weight_loops.h"
#undef HN_LEVEL
#define HN_LEVEL avx2
#include "cpu/weight_loops.h"
#undef HN_LEVEL
#define HN_LEVEL avx512
#include "cpu/weight_loops.h"
#undef HN_LEVEL
#define HN_LEVEL weightvnni
#include "cpu/weight_loops.h"

typedef struct {
    int rows, lanes;
    const HnWeightFn (*fns)[HN_WEIGHT_MAX_ROWS];
    void (*row)(const HnWeightCut *c, int16_t *q, float *scale, float *sum, const float *x);
    void (*unpack)(const HnWeightForm *f, const char *w, int64_t from, int64_t to, float *y);
    int64_t few[2]; /* rows that are few: with 8 bits, with 4 */
} Level;

static const Level *level(void)
{
#define LEVEL(v, few8, few4)                                                                 \
    {                                                                                        \
        HN_WEIGHT_ROWS_##v, HN_LANES_##v, weight_fns_##v, weight_row_##v, weight_unpack_##v, \
        {                                                                                    \
            few8, few4                                                                       \
        }                                                                                    \
    }
    static const Level levels[] = { LEVEL(plain, INT64_MAX, INT64_MAX), LEVEL(avx2, INT64_MAX, INT64_MAX),
                                    LEVEL(avx512, 48, 24), LEVEL(weightvnni, INT64_MAX, INT64_MAX) };
    const HnIsa isa = hn_cpu_isa();
    return &levels[isa >= HN_ISA_VNNI ? 3 : isa >= HN_ISA_AVX512 ? 2 : isa >= HN_ISA_AVX2 ? 1 : 0];
}

int hn_weight_rows(void)
{
    return level()->rows;
}

int hn_weight_cols(void)
{
    return level()->lanes * 2;
}

const HnWeightFn *hn_weight_fns(int bits)
{
    return level()->fns[bits == 4];
}

gboolean hn_weight_is_few(int64_t rows, int bits)
{
    return rows <= level()->few[bits == 4];
}

void hn_weight_unpack(const HnWeightForm *f, const char *panel, int64_t from, int64_t to, float *y)
{
    level()->unpack(f, panel, from, to, y);
}

static int64_t groups_of(int64_t k)
{
    return (k + HN_WEIGHT_GROUP - 1) / HN_WEIGHT_GROUP;
}

HnWeightCut hn_weight_cut(int64_t k, int64_t segment)
{
    HnWeightCut c = { .k = k, .segment = MIN(k, segment) };
    c.segs = (k + c.segment - 1) / c.segment;
    c.groups = groups_of(c.segment);
    c.last = groups_of(k - (c.segs - 1) * c.segment);
    c.padded = ((c.segs - 1) * c.groups + c.last) * HN_WEIGHT_GROUP;
    return c;
}

#define LINE 64

static gsize whole_lines(gsize bytes)
{
    return (bytes + LINE - 1) / LINE * LINE;
}

gsize hn_weight_rows_bytes(const HnWeightCut *c, int64_t rows)
{
    return whole_lines((gsize)(rows * c->padded) * sizeof(int16_t)) +
           2 * whole_lines((gsize)(rows * c->segs) * sizeof(float));
}

HnWeightRows hn_weight_rows_in(void *memory, const HnWeightCut *c, int64_t rows)
{
    char *m = memory, *scale = m + whole_lines((gsize)(rows * c->padded) * sizeof(int16_t));
    char *sum = scale + whole_lines((gsize)(rows * c->segs) * sizeof(float));
    return (HnWeightRows){ (int16_t *)(void *)m, (float *)(void *)scale, (float *)(void *)sum };
}

void hn_weight_row(const HnWeightCut *c, const HnWeightRows *to, int64_t i, const float *x)
{
    level()->row(c, to->q + i * c->padded, to->scale + i * c->segs, to->sum + i * c->segs, x);
}

gsize hn_weight_panel(const HnWeightForm *f)
{
    const gsize cols = (gsize)hn_weight_cols(), head = cols * (sizeof(float) + (f->zeros ? 1 : 0));
    return head * (f->blocked ? (gsize)f->cut.segs : 1) + (gsize)f->cut.padded * cols * (gsize)f->bits / 8;
}
