#include "cpu/conv/depthwise_packed.h"

#include <string.h>

#include "op/index.h"

#define RING_BYTES (192 << 10) /* outputs of a row are cut into blocks for it */
#define BLOCK_LEAST 64         /* outputs of a block, where the row has as many */
#define WIDE_MOST 4            /* vectors of a strip */
#define RING_MOST (1 << 20)
#define PARTS_MOST 8

/* Runs of taps of a row, each of taps that see vectors side by side: those of the same remainder by the stride. */
static void plan_passes(HnDepthPacked *p)
{
    const HnWindowAxis *v = &p->axis[2];
    const int64_t most = p->lanes >= 16 ? HN_DEPTH_TAPS : HN_DEPTH_TAPS_FEW;
    int64_t at = 0;
    p->pass = g_new0(HnDepthPass, (gsize)v->kernel);
    p->order = g_new(int64_t, (gsize)v->kernel);
    for (int64_t rest = 0; rest < v->stride; rest++) {
        const int64_t taps = v->kernel > rest ? (v->kernel - rest + v->stride - 1) / v->stride : 0;
        const int64_t runs = (taps + most - 1) / most;
        for (int64_t i = 0; i < runs; i++) {
            const int64_t first = taps * i / runs;
            p->pass[p->passes++] = (HnDepthPass){ .at = (rest * p->segment + first) * p->lanes,
                                                  .taps = (int)(taps * (i + 1) / runs - first) };
        }
        for (int64_t j = 0; j < taps; j++)
            p->order[at++] = rest + j * v->stride;
    }
}

/* Of a row for `outputs` outputs. */
static int64_t columns_of(const HnDepthPacked *p, int64_t outputs)
{
    const HnWindowAxis *v = &p->axis[2];
    return ((outputs - 1) * v->stride + (v->kernel - 1) * v->dilation + p->parts) / p->parts;
}

static int64_t ring_bytes(const HnDepthPacked *p, int64_t outputs)
{
    return p->span[0] * p->span[1] * columns_of(p, outputs) * p->parts * p->lanes * (int64_t)sizeof(float);
}

gboolean hn_depth_packed_init(HnDepthPacked *p, const HnWindowAxis *axis, int64_t channels)
{
    *p = (HnDepthPacked){ .channels = channels };
    memcpy(p->axis, axis, sizeof p->axis);
    const HnWindowAxis *v = &axis[2];
    if (v->stride > 1 && v->dilation > 1)
        return FALSE;
    p->fn = hn_depth_tiles(HN_DEPTH_PACKED, channels, &p->lanes);
    p->lines = v->dilation;
    p->parts = v->stride * v->dilation;
    for (int i = 0; i < 2; i++)
        p->span[i] = CLAMP((axis[i].kernel - 1) * axis[i].dilation + 1, 1, MAX(axis[i].in, 1));
    int64_t blocks = 1, block = MAX(v->out, 1);
    while (block > BLOCK_LEAST && ring_bytes(p, block) > RING_BYTES) {
        blocks++;
        block = (v->out + blocks - 1) / blocks;
    }
    p->block = (block + p->lines - 1) / p->lines * p->lines;
    p->blocks = (v->out + p->block - 1) / p->block;
    if (p->parts > PARTS_MOST || ring_bytes(p, p->block) > RING_MOST)
        return FALSE;
    p->segment = columns_of(p, p->block);
    p->line = p->segment * p->parts * p->lanes;
    const int64_t vectors = (channels + p->lanes - 1) / p->lanes;
    p->wide = CLAMP(RING_BYTES / ring_bytes(p, p->block), 1, MIN(vectors, WIDE_MOST));
    p->strips = (vectors + p->wide - 1) / p->wide;
    plan_passes(p);
    p->weights = g_new0(float, (gsize)(axis[0].kernel * axis[1].kernel * v->kernel * vectors * p->lanes));
    return TRUE;
}

void hn_depth_packed_clear(HnDepthPacked *p)
{
    g_free(p->pass);
    g_free(p->order);
    g_free(p->weights);
    p->pass = NULL;
    p->order = NULL;
    p->weights = NULL;
}

void hn_depth_packed_fill(HnDepthPacked *p, const float *weights)
{
    const int64_t kernel = p->axis[2].kernel, taps = p->axis[0].kernel * p->axis[1].kernel * kernel;
    for (int64_t i = 0; i * p->lanes < p->channels; i++)
        for (int64_t t = 0; t < taps; t++) {
            const int64_t c = i * p->lanes, from = t / kernel * kernel + p->order[t % kernel];
            memcpy(p->weights + (i * taps + t) * p->lanes, weights + from * p->channels + c,
                   (gsize)MIN(p->lanes, p->channels - c) * sizeof(float));
        }
}

static int64_t rows_of(const HnDepthPacked *p)
{
    return p->span[0] * p->span[1];
}

gsize hn_depth_packed_bytes(const HnDepthPacked *p)
{
    const gsize bytes = (gsize)(rows_of(p) * p->wide * p->line) * sizeof(float) + (gsize)rows_of(p) * sizeof(int64_t) +
                        2 * (gsize)(p->axis[0].kernel * p->axis[1].kernel) * sizeof(void *);
    return (bytes + 63) / 64 * 64;
}

void hn_depth_packed_begin(const HnDepthPacked *p, HnDepthRing *r, void *memory)
{
    r->ring = memory;
    r->held = (int64_t *)(void *)(r->ring + rows_of(p) * p->wide * p->line);
    r->row = (const float **)(void *)(r->held + rows_of(p));
    r->w = r->row + p->axis[0].kernel * p->axis[1].kernel;
    r->strip = r->block = -1;
    for (int64_t i = 0; i < rows_of(p); i++)
        r->held[i] = HN_DEPTH_ROW_NEW;
}

void hn_depth_packed_turn(const HnDepthPacked *p, HnDepthRing *r, int64_t strip, int64_t block)
{
    if (r->strip == strip && r->block == block)
        return;
    const gboolean new = r->block != block;
    for (int64_t i = 0; i < rows_of(p); i++)
        r->held[i] = new || r->held[i] == HN_DEPTH_ROW_NEW ? HN_DEPTH_ROW_NEW : HN_DEPTH_ROW_STALE;
    r->strip = strip;
    r->block = block;
}

static void set_zero(const HnDepthPacked *p, float *to, int64_t lo, int64_t hi)
{
    for (int64_t k = 0; k < p->wide && lo < hi; k++)
        memset(to + k * p->line + lo * p->lanes, 0, (gsize)((hi - lo) * p->lanes) * sizeof(float));
}

/* A row of the source into the ring. */
static void copy_row(const HnDepthPacked *p, const HnDepthRing *r, float *to, const float *x, int64_t pitch,
                     gboolean pad)
{
    const HnWindowAxis *v = &p->axis[2];
    const int64_t c = r->strip * p->wide * p->lanes, begin = r->block * p->block * v->stride - v->pad;
    const int64_t step = p->parts;
    for (int64_t part = 0; part < step; part++, to += p->segment * p->lanes) {
        const int64_t first = begin + part; /* columns first, first + step, ... */
        const int64_t lo = CLAMP((step - 1 - first) / step, 0, p->segment);
        const int64_t hi = first < v->in ? CLAMP((v->in - first + step - 1) / step, lo, p->segment) : lo;
        if (pad) {
            set_zero(p, to, 0, lo);
            set_zero(p, to, hi, p->segment);
        }
        hn_depth_copy(p->lanes, to + lo * p->lanes, p->line, x + (first + lo * step) * pitch + c, step * pitch, hi - lo,
                      MIN(p->wide * p->lanes, p->channels - c));
    }
}

/* Rows of the source that row `at` of the result sees, and their weights. */
static int find_rows(const HnDepthPacked *p, HnDepthRing *r, const float *x, int64_t pitch, const int64_t at[3])
{
    const HnWindowAxis *a = &p->axis[0], *h = &p->axis[1], *v = &p->axis[2];
    const int64_t lines = p->wide * p->line, taps = v->kernel * p->lanes;
    const float *w = p->weights + r->strip * p->wide * a->kernel * h->kernel * taps;
    const int64_t first = at[2] * h->stride - h->pad; /* row of the source */
    const int64_t skip = first < 0 ? (-first + h->dilation - 1) / h->dilation : 0;
    const int64_t begin = (first + skip * h->dilation) % p->span[1];
    int rows = 0;
    for (int64_t i = 0; i < a->kernel; i++, w += h->kernel * taps) {
        const int64_t z = at[1] * a->stride + i * a->dilation - a->pad;
        if (z < 0 || z >= a->in)
            continue;
        const int64_t slots = z % p->span[0] * p->span[1];
        int64_t y = first + skip * h->dilation, in_ring = begin;
        for (int64_t j = skip; j < h->kernel && y < h->in; j++, y += h->dilation) {
            float *to = r->ring + (slots + in_ring) * lines;
            const int64_t id = (at[0] * a->in + z) * h->in + y;
            int64_t *held = &r->held[slots + in_ring];
            if (*held != id)
                copy_row(p, r, to, x + id * v->in * pitch, pitch, *held == HN_DEPTH_ROW_NEW);
            *held = id;
            r->row[rows] = to;
            r->w[rows++] = w + j * taps;
            in_ring += h->dilation;
            in_ring -= in_ring >= p->span[1] ? p->span[1] : 0;
        }
    }
    return rows;
}

void hn_depth_packed_row(const HnDepthPacked *p, HnDepthRing *r, HnDepthTile *t, const float *x, int64_t x_pitch,
                         const int64_t at[3], float *y, const float *add)
{
    const int64_t begin = r->block * p->block, outputs = MIN(p->block, p->axis[2].out - begin);
    const int64_t pitch = t->pitch, add_pitch = t->add_pitch;
    const int64_t taps = p->axis[0].kernel * p->axis[1].kernel * p->axis[2].kernel;
    t->from = r->row;
    t->w = r->w;
    t->rows = find_rows(p, r, x, x_pitch, at);
    t->pass = p->pass;
    t->passes = p->passes;
    t->pitch = pitch * p->lines;
    t->add_pitch = add_pitch * p->lines;
    for (int64_t k = 0; k < p->wide; k++) {
        t->first = (r->strip * p->wide + k) * p->lanes;
        t->end = MIN(t->first + p->lanes, p->channels);
        t->w_at = k * taps * p->lanes;
        for (int64_t line = 0; line < MIN(p->lines, outputs) && t->first < t->end; line++) {
            const int64_t out = (outputs - line + p->lines - 1) / p->lines,
                          tiles = (out + HN_DEPTH_NX - 1) / HN_DEPTH_NX;
            for (int64_t i = 0; i < tiles; i++) {
                const int64_t o = out * i / tiles, n = out * (i + 1) / tiles - o, to = begin + line + o * p->lines;
                t->at = k * p->line + (line * p->segment + o) * p->lanes;
                t->y = y + to * pitch;
                t->add = add != NULL ? add + to * add_pitch : NULL;
                p->fn[n - 1](t);
            }
        }
    }
    t->pitch = pitch;
    t->add_pitch = add_pitch;
}
