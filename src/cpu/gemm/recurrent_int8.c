#include "cpu/gemm/recurrent_int8.h"

#include <string.h>

#include "cpu/gemm/rnn_cell.h"

#define HN_LOOPS "cpu/gemm/recurrent_int8_loops.h"
#include "base/every_level.h"

#define GATES 4
#define LONGEST 32768 /* rows of weights: sums of products of bytes stay in 32 bits */

typedef void (*RangeFn)(const float *x, int64_t n, float *range);
typedef void (*RoundFn)(void *to, const float *x, int64_t n, float scale, int zero);
typedef void (*AddFn)(float *to, const int32_t *sums, const float *scale, float by, int64_t n);

static const RangeFn ranges[HN_LEVELS] = HN_TABLE_OF_LEVELS(range);
static const RoundFn round_bytes[HN_LEVELS] = HN_TABLE_OF_LEVELS(round_bytes);
static const RoundFn round_pairs[HN_LEVELS] = HN_TABLE_OF_LEVELS(round_pairs);
static const AddFn adds[HN_LEVELS] = HN_TABLE_OF_LEVELS(add);

/* --- weights ------------------------------------------------------------------------------------------------------ */

typedef struct {
    const HnTensor *w, *scale, *zero;
    int64_t each; /* steps of a direction: 1, or one for each column */
} Weights;

static Weights weights_of(const HnStep *s, int i, int step)
{
    Weights o = { hn_cpu_in(s, i), hn_cpu_in(s, step), hn_cpu_in(s, step + 1), 1 };
    o.each = o.scale->n / MAX(1, o.w->dims[0]);
    return o;
}

static int byte_at(const HnTensor *t, int64_t i)
{
    return t->dtype == HN_I8 ? ((const int8_t *)t->data)[i] : ((const uint8_t *)t->data)[i];
}

/* Element k of column c of direction d, less its zero point. */
static int weight_at(const Weights *o, int64_t d, int64_t k, int64_t c)
{
    const int64_t width = o->w->dims[2];
    return byte_at(o->w, (d * o->w->dims[1] + k) * width + c) - byte_at(o->zero, d * o->each + (o->each > 1 ? c : 0));
}

/* Less their zero points all are signed bytes. */
static gboolean are_bytes(const Weights *o)
{
    const gboolean is_signed = o->w->dtype == HN_I8;
    for (int64_t i = 0; i < o->zero->n; i++)
        if (o->zero->dtype != o->w->dtype || byte_at(o->zero, i) != (is_signed ? 0 : 128))
            return FALSE;
    return TRUE;
}

const char *hn_rnn_int8_reject(const HnStep *s, int i, int step)
{
    for (int k = step; k < step + 2; k++)
        if (!s->in[k].slot->constant)
            return "steps of weights that are computed";
    if (!s->in[i].slot->constant)
        return "weights that are computed";
    const Weights o = weights_of(s, i, step);
    if (o.w->ndim != 3 || o.w->dims[1] > LONGEST || o.scale->n != o.zero->n ||
        (o.scale->n != o.w->dims[0] && o.scale->n != o.w->dims[0] * o.w->dims[2]))
        return "the shapes do not fit";
    return (hn_int8_saturates() || !are_bytes(&o)) && hn_int8_pair_fns(TRUE) == NULL ? "zero points" : NULL;
}

/* Where column c of the file goes. */
static int64_t place_of(const HnRnnInt8 *p, int64_t c)
{
    const int64_t gate = c / p->hidden, unit = c % p->hidden;
    return (unit / HN_RNN_CELL * GATES + gate) * HN_RNN_CELL + unit % HN_RNN_CELL;
}

typedef struct {
    const HnRnnInt8 *p;
    Weights o;
} Packing;

static gsize direction_bytes(const HnRnnInt8 *p)
{
    return (gsize)p->columns * ((gsize)p->groups * HN_INT8_GROUP + sizeof(int32_t));
}

static void pack_column(const Packing *g, char *to, int32_t *sums, int64_t d, int64_t c)
{
    const HnRnnInt8 *p = g->p;
    const int64_t at = place_of(p, c), per = p->pairs ? 2 : 4;
    char *column = to + ((at / p->cols) * p->groups * p->cols + at % p->cols) * HN_INT8_GROUP;
    for (int64_t k = 0; k < p->inputs; k++) {
        const int w = weight_at(&g->o, d, k, c);
        char *group = column + k / per * p->cols * HN_INT8_GROUP;
        sums[at] += w;
        if (p->pairs)
            memcpy(group + k % per * 2, &(int16_t){ (int16_t)w }, 2);
        else
            group[k % per] = (char)(int8_t)w;
    }
}

static void pack_weights(void *to, const HnTensor *t, gconstpointer data)
{
    const Packing *g = data;
    const gsize bytes = direction_bytes(g->p);
    memset(to, 0, bytes * (gsize)t->dims[0]);
    for (int64_t d = 0; d < t->dims[0]; d++) {
        char *part = (char *)to + (gsize)d * bytes;
        int32_t *sums = (int32_t *)(void *)(part + bytes - (gsize)g->p->columns * sizeof(int32_t));
        for (int64_t c = 0; c < t->dims[2]; c++)
            pack_column(g, part, sums, d, c);
    }
}

HnRnnInt8 *hn_rnn_int8_new(HnStep *s, int i, int step, GError **error)
{
    HnRnnInt8 *p = g_new0(HnRnnInt8, 1);
    const Packing g = { p, weights_of(s, i, step) };
    p->directions = g.o.w->dims[0];
    p->inputs = g.o.w->dims[1];
    p->hidden = g.o.w->dims[2] / GATES;
    p->pairs = hn_int8_saturates() || !are_bytes(&g.o);
    p->fns = p->pairs ? hn_int8_pair_fns(TRUE) : hn_int8_fns(TRUE);
    p->rows = hn_int8_rows();
    p->cols = hn_int8_cols();
    p->groups = (p->inputs + (p->pairs ? 1 : 3)) / (p->pairs ? 2 : 4);
    p->columns = (p->hidden + HN_RNN_CELL - 1) / HN_RNN_CELL * HN_RNN_CELL * GATES;
    p->panels = p->columns / p->cols;
    p->scale = g_new0(float, (gsize)(p->directions * p->columns));
    for (int64_t d = 0; d < p->directions; d++)
        for (int64_t c = 0; c < g.o.w->dims[2]; c++)
            p->scale[d * p->columns + place_of(p, c)] =
                (float)hn_tensor_get_f64(g.o.scale, d * g.o.each + (g.o.each > 1 ? c : 0));
    const guint64 variant = hn_pack_mix((guint64)(p->pairs * 64 + p->cols), g.o.zero);
    hn_pack_own(s, i, pack_weights, (int64_t)variant, direction_bytes(p) * (gsize)p->directions, &g, &p->pack, error);
    return p;
}

void hn_rnn_int8_free(HnRnnInt8 *p)
{
    if (p == NULL)
        return;
    hn_pack_unref(p->pack);
    g_free(p->scale);
    g_free(p);
}

/* --- run ---------------------------------------------------------------------------------------------------------- */

void hn_rnn_int8_range(const float *x, int64_t n, float *range)
{
    ranges[hn_cpu_level()](x, n, range);
}

void hn_rnn_int8_round(const HnRnnInt8 *p, void *to, const float *x, float scale, int zero)
{
    const gsize used = (gsize)p->inputs * (p->pairs ? 2 : 1);
    (p->pairs ? round_pairs : round_bytes)[hn_cpu_level()](to, x, p->inputs, scale, zero);
    memset((char *)to + used, 0, (gsize)hn_rnn_int8_row(p) - used);
}

void hn_rnn_int8_multiply(const HnRnnInt8 *p, const HnStep *s, int i, int64_t d, const void *a, int64_t n, float scale,
                          int zero, float *to)
{
    static const int64_t seg_at[1] = { 0 };
    const AddFn add = adds[hn_cpu_level()];
    const char *w = (const char *)hn_pack_data(p->pack, s, i) + (gsize)d * direction_bytes(p);
    const int32_t *sums = (const int32_t *)(const void *)(w + (gsize)p->columns * (gsize)hn_rnn_int8_row(p));
    int32_t c[HN_INT8_MAX_ROWS * HN_INT8_MAX_COLS], begin[HN_INT8_MAX_COLS];
    for (int64_t panel = 0; panel < p->panels; panel++) {
        const int64_t at = panel * p->cols;
        for (int k = 0; k < p->cols; k++)
            begin[k] = p->pairs ? 0 : -zero * sums[at + k];
        HnInt8Kernel t = { .step = hn_rnn_int8_row(p),
                           .seg_at = seg_at,
                           .segs = 1,
                           .groups = p->groups,
                           .b = (const int8_t *)w + at * hn_rnn_int8_row(p),
                           .begin = begin,
                           .c = c };
        for (int64_t r = 0, rows; r < n; r += rows) {
            rows = MIN(n - r, p->rows);
            t.a = (const uint8_t *)a + r * t.step;
            p->fns[rows - 1](&t);
            for (int64_t k = 0; k < rows; k++)
                add(to + (r + k) * p->columns + at, c + k * p->cols, p->scale + d * p->columns + at, scale, p->cols);
        }
    }
}
