#include "cpu/sparse/sparse_rows.h"

#include <stdlib.h>
#include <string.h>

#include "cpu/core/cpu_level.h"

#define HN_LOOPS "cpu/sparse/sparse_rows_loops.h"
#include "base/every_level.h"

#define VECTORS 6
#define SAMPLES 256 /* weights that are looked at before all are */
#define SHARED 0.75 /* of a strip's entries are not 0: below, its outputs are taken one by one */

/* --- counting ----------------------------------------------------------------------------------------------------- */

static float weight_at(const void *w, int64_t at)
{
    float v;
    memcpy(&v, (const char *)w + at * (int64_t)sizeof v, sizeof v);
    return v;
}

/* Entries of outputs [o, o + outs) if they are a strip, and weights that are not 0. */
static int64_t entries_of(const void *w, int64_t o, int outs, int64_t inputs, int64_t row, int64_t col, int64_t *others)
{
    int64_t entries = 0;
    for (int64_t i = 0; i < inputs; i++) {
        int n = 0;
        for (int q = 0; q < outs; q++)
            n += weight_at(w, (o + q) * row + i * col) != 0;
        entries += n > 0;
        *others += n;
    }
    return entries;
}

static gboolean is_strip(int64_t entries, int64_t others)
{
    return (double)others >= SHARED * (double)(entries * HN_SPARSE_STRIP);
}

gboolean hn_sparse_count(const void *w, int64_t outs, int64_t inputs, int64_t row, int64_t col, double least,
                         HnSparseCount *count)
{
    const int64_t all = outs * inputs, step = MAX(all / SAMPLES, 1) | 1;
    int64_t zeros = 0, seen = 0;
    for (int64_t e = 0; e < all; e += step, seen++)
        zeros += weight_at(w, e / inputs * row + e % inputs * col) == 0;
    if ((double)zeros < 0.8 * least * (double)seen)
        return FALSE;
    *count = (HnSparseCount){ .outs = outs, .inputs = inputs };
    int64_t others = 0;
    for (int64_t o = 0; o < outs;) {
        const int n = o + HN_SPARSE_STRIP <= outs ? HN_SPARSE_STRIP : 1;
        int64_t of = 0;
        const int64_t entries = entries_of(w, o, n, inputs, row, col, &of);
        others += of;
        if (n > 1 && is_strip(entries, of))
            count->entries4 += entries;
        else
            count->entries1 += of;
        count->strips += n > 1 && is_strip(entries, of) ? 1 : n;
        o += n;
    }
    return (double)(all - others) >= least * (double)all;
}

gsize hn_sparse_floats(const HnSparseCount *count)
{
    return (gsize)(count->entries4 * HN_SPARSE_STRIP + count->entries1);
}

/* --- lists -------------------------------------------------------------------------------------------------------- */

static int64_t count_strip(const HnSparseRows *r, const HnSparseStrip *s, const void *w, int64_t row, int64_t col,
                           const int64_t *offset)
{
    int64_t n = 0;
    for (int64_t i = 0; i < r->count.inputs; i++) {
        gboolean any = FALSE;
        for (int q = 0; q < s->outs; q++)
            any = any || weight_at(w, (s->first + q) * row + i * col) != 0;
        if (any && offset != NULL)
            r->at[s->at + n] = (int32_t)offset[i];
        n += any;
    }
    return n;
}

/* Strips of equally many entries one after the other: how often a loop turns is then foreseen. */
static int compare_strips(const void *a, const void *b)
{
    const HnSparseStrip *x = a, *y = b;
    if (x->outs != y->outs)
        return y->outs - x->outs;
    if (x->n != y->n)
        return x->n > y->n ? -1 : 1;
    return x->first < y->first ? -1 : x->first > y->first;
}

void hn_sparse_rows_init(HnSparseRows *r, const HnSparseCount *count, const void *w, int64_t row, int64_t col,
                         const int64_t *offset)
{
    *r = (HnSparseRows){ .count = *count,
                         .strip = g_new0(HnSparseStrip, (gsize)count->strips + 1),
                         .at = g_new(int32_t, (gsize)(count->entries4 + count->entries1) + 1) };
    int64_t at = 0, weights = 0, k = 0;
    for (int64_t o = 0; o < count->outs;) {
        const int n = o + HN_SPARSE_STRIP <= count->outs ? HN_SPARSE_STRIP : 1;
        int64_t of = 0;
        const int64_t entries = entries_of(w, o, n, count->inputs, row, col, &of);
        const gboolean strip = n > 1 && is_strip(entries, of);
        for (int q = 0; q < (strip ? 1 : n); q++) {
            HnSparseStrip *s = &r->strip[k++];
            *s = (HnSparseStrip){ .first = o + q, .outs = strip ? n : 1 };
            s->n = count_strip(r, s, w, row, col, NULL);
        }
        o += n;
    }
    qsort(r->strip, (size_t)count->strips, sizeof *r->strip, compare_strips);
    for (k = 0; k < count->strips; k++) {
        HnSparseStrip *s = &r->strip[k];
        s->at = at;
        s->w = weights;
        r->fours += s->outs == HN_SPARSE_STRIP;
        at += count_strip(r, s, w, row, col, offset);
        weights += s->n * s->outs;
    }
}

void hn_sparse_rows_clear(HnSparseRows *r)
{
    g_free(r->strip);
    g_free(r->at);
}

void hn_sparse_pack(const HnSparseRows *r, float *to, const void *w, int64_t row, int64_t col)
{
    for (int64_t k = 0; k < r->count.strips; k++) {
        const HnSparseStrip *s = &r->strip[k];
        for (int64_t i = 0; i < r->count.inputs; i++) {
            float v[HN_SPARSE_STRIP];
            gboolean any = FALSE;
            for (int q = 0; q < s->outs; q++) {
                v[q] = weight_at(w, (s->first + q) * row + i * col);
                any = any || v[q] != 0;
            }
            if (any)
                memcpy(to, v, (gsize)s->outs * sizeof *to);
            to += any ? s->outs : 0;
        }
    }
}

/* --- products ----------------------------------------------------------------------------------------------------- */

#define TABLE(name, level)                                                                        \
    {                                                                                             \
        { name##1_##level, name##1_tail_##level }, { name##2_##level, name##2_tail_##level },     \
            { name##3_##level, name##3_tail_##level }, { name##4_##level, name##4_tail_##level }, \
            { name##5_##level, name##5_tail_##level }, { name##6_##level, name##6_tail_##level }, \
    }

typedef struct {
    int lanes, most4; /* vectors of a strip of four that registers hold */
    HnSparseFn four[VECTORS][2], one[VECTORS][2];
} Level;

static const Level levels[HN_LEVELS] = {
    { 4, 3, TABLE(four, plain), TABLE(one, plain) },
    { 8, 3, TABLE(four, avx2), TABLE(one, avx2) },
    { 16, 6, TABLE(four, avx512), TABLE(one, avx512) },
};

int64_t hn_sparse_columns(void)
{
    return VECTORS * levels[hn_cpu_level()].lanes;
}

int64_t hn_sparse_lanes(void)
{
    return levels[hn_cpu_level()].lanes;
}

typedef void (*CopyFn)(float *to, int64_t to_pitch, const float *from, int64_t from_pitch, int64_t rows);

void hn_sparse_copy(float *to, int64_t to_pitch, const float *from, int64_t from_pitch, int64_t rows, int64_t columns)
{
    static const CopyFn fns[HN_LEVELS] = HN_TABLE_OF_LEVELS(copy);
    if (columns == hn_sparse_columns()) {
        fns[hn_cpu_level()](to, to_pitch, from, from_pitch, rows);
        return;
    }
    for (int64_t i = 0; i < rows; i++)
        memcpy(to + i * to_pitch, from + i * from_pitch, (gsize)columns * sizeof *to);
}

/* Strips [s, end), which have equally many outputs. */
static void do_strips(const HnSparseArgs *a, const HnSparseStrip *s, const HnSparseStrip *end, gboolean tile)
{
    const Level *l = &levels[hn_cpu_level()];
    if (s >= end)
        return;
    const int most = s->outs == 1 ? VECTORS : l->most4;
    for (int64_t p = 0; p < a->columns; p += most * l->lanes) {
        const int64_t n = MIN(a->columns - p, most * l->lanes);
        const int64_t vectors = (n + l->lanes - 1) / l->lanes;
        const HnSparseCall c = { .x = a->x + p,
                                 .w = a->weights,
                                 .bias = a->bias,
                                 .add = a->add != NULL ? a->add + p : NULL,
                                 .at = a->rows->at,
                                 .y = a->y + p,
                                 .y_pitch = a->y_pitch,
                                 .add_pitch = a->add_pitch,
                                 .lo = a->lo,
                                 .hi = a->hi,
                                 .tail = (int)(n - (vectors - 1) * l->lanes),
                                 .tile = tile };
        (s->outs == 1 ? l->one : l->four)[vectors - 1][c.tail < l->lanes](&c, s, end);
    }
}

void hn_sparse_strips(const HnSparseArgs *a, int64_t from, int64_t to)
{
    const HnSparseStrip *all = a->rows->strip;
    const int64_t fours = CLAMP(a->rows->fours, from, to);
    do_strips(a, all + from, all + fours, FALSE);
    do_strips(a, all + fours, all + to, FALSE);
}

void hn_sparse_tile(const HnSparseArgs *a, int64_t strip)
{
    do_strips(a, a->rows->strip + strip, a->rows->strip + strip + 1, TRUE);
}
