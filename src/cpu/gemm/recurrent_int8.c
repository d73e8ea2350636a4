#include "cpu/gemm/recurrent_int8.h"

#include <string.h>

#include "cpu/gemm/rnn_cell.h"

#define HN_LOOPS "cpu/gemm/recurrent_int8_loops.h"
#include "base/every_level.h"

#define GATES 4
#define LONGEST 32768 /* rows of weights: sums of products of bytes stay in 32 bits */
#define MOST_EXTRAS 2 /* up to one extra group for so many, bytes take less time than pairs */
#define AT_ONCE 16    /* panels of one row */
#define LINE 64       /* bytes of the cache's */

typedef void (*RangeFn)(const float *x, int64_t n, float *range);
typedef void (*RoundFn)(void *to, const float *x, int64_t n, float scale, int zero);
typedef void (*AddFn)(float *to, const int32_t *sums, const float *scale, float by, int64_t n);
typedef void (*BeginFn)(int32_t *to, const int32_t *sums, int by, int64_t n);

static const RangeFn ranges[HN_LEVELS] = HN_TABLE_OF_LEVELS(range);
static const RoundFn round_bytes[HN_LEVELS] = HN_TABLE_OF_LEVELS(round_bytes);
static const RoundFn round_pairs[HN_LEVELS] = HN_TABLE_OF_LEVELS(round_pairs);
static const AddFn adds[HN_LEVELS] = HN_TABLE_OF_LEVELS(add);
static const BeginFn begins[HN_LEVELS] = HN_TABLE_OF_LEVELS(begin);

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

/* A column of a direction: its elements less their zero point. */
typedef struct {
    const uint8_t *at;
    int64_t step; /* from element to element */
    int flip, zero;
} Column;

static Column column_of(const Weights *o, int64_t d, int64_t c)
{
    const int flip = o->w->dtype == HN_I8 ? 0x80 : 0, zero = byte_at(o->zero, d * o->each + (o->each > 1 ? c : 0));
    const int64_t width = o->w->dims[2];
    return (Column){ (const uint8_t *)o->w->data + d * o->w->dims[1] * width + c, width, flip, flip + zero };
}

static int weight_at(const Column *of, int64_t k)
{
    return (of->at[k * of->step] ^ of->flip) - of->zero;
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
    return !are_bytes(&o) && hn_int8_pair_fns(TRUE) == NULL ? "zero points" : NULL;
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

static gsize group_bytes(const HnRnnInt8 *p)
{
    return (gsize)p->cols * HN_INT8_GROUP;
}

/* What would saturate goes from the panel's groups to those behind them, in the order of the list. */
static void split_panel(const HnRnnInt8 *p, const HnRnnPanel *panel, int8_t *b)
{
    for (int64_t e = 0; e < panel->extras; e++) {
        int8_t *from = b + p->extra[panel->extra + e] / HN_INT8_GROUP * (int64_t)group_bytes(p);
        int8_t *rest = b + (p->groups + e) * (int64_t)group_bytes(p);
        for (int j = 0; j < p->cols; j++)
            hn_int8_split(from + j * HN_INT8_GROUP, rest + j * HN_INT8_GROUP);
    }
}

/* w: [columns][inputs] of direction d, as they are multiplied; 0 where a panel has no such unit. */
static void get_columns(const Packing *g, int64_t d, int8_t *w)
{
    const HnRnnInt8 *p = g->p;
    memset(w, 0, (gsize)(p->columns * p->inputs));
    for (int64_t c = 0; c < g->o.w->dims[2]; c++) {
        const Column from = column_of(&g->o, d, c);
        int8_t *column = w + place_of(p, c) * p->inputs;
        for (int64_t k = 0; k < p->inputs; k++)
            column[k] = (int8_t)weight_at(&from, k);
    }
}

static HnSparseColumns panel_of(const HnRnnInt8 *p, const int8_t *w, int64_t panel)
{
    return (HnSparseColumns){
        .w = w + panel * p->cols * p->inputs, .length = p->inputs, .cols = p->cols, .segs = 1, .depth = p->inputs
    };
}

static void pack_column(const Packing *g, char *to, int32_t *sums, int64_t d, int64_t c)
{
    const HnRnnInt8 *p = g->p;
    const int64_t at = place_of(p, c), per = p->pairs ? 2 : 4;
    const Column from = column_of(&g->o, d, c);
    const HnRnnPanel *panel = &p->panel[d * p->panels + at / p->cols];
    char *column = to + panel->b + at % p->cols * HN_INT8_GROUP;
    for (int64_t k = 0; k < p->inputs; k++) {
        const int w = weight_at(&from, k);
        char *group = column + k / per * p->cols * HN_INT8_GROUP;
        sums[d * p->columns + at] += w;
        if (panel->sparse)
            continue;
        if (p->pairs)
            memcpy(group + k % per * 2, &(int16_t){ (int16_t)w }, 2);
        else
            group[k % per] = (char)(int8_t)w;
    }
}

static gsize panel_bytes(const HnRnnInt8 *p, const HnRnnPanel *panel)
{
    return panel->sparse ? hn_sparse_bytes_size(&panel->lists) : (gsize)(p->groups + panel->extras) * group_bytes(p);
}

static gsize packed_bytes(const HnRnnInt8 *p)
{
    const HnRnnPanel *last = &p->panel[p->directions * p->panels - 1];
    return last->b + panel_bytes(p, last);
}

static void pack_lists(const Packing *g, char *to)
{
    const HnRnnInt8 *p = g->p;
    if (!p->sparse)
        return;
    g_autofree int8_t *w = g_malloc((gsize)(p->columns * p->inputs) + 1);
    for (int64_t i = 0; i < p->directions * p->panels; i++) {
        if (i % p->panels == 0)
            get_columns(g, i / p->panels, w);
        if (!p->panel[i].sparse)
            continue;
        const HnSparseColumns columns = panel_of(p, w, i % p->panels);
        hn_sparse_bytes_pack(&columns, &p->panel[i].lists, to + p->panel[i].b);
    }
}

static void pack_weights(void *to, const HnTensor *t, gconstpointer data)
{
    const Packing *g = data;
    const HnRnnInt8 *p = g->p;
    memset(to, 0, packed_bytes(p));
    for (int64_t d = 0; d < t->dims[0]; d++)
        for (int64_t c = 0; c < t->dims[2]; c++)
            pack_column(g, to, to, d, c);
    for (int64_t i = 0; i < p->directions * p->panels; i++)
        if (!p->panel[i].sparse)
            split_panel(p, &p->panel[i], (int8_t *)to + p->panel[i].b);
    pack_lists(g, to);
}

/* One byte a group and panel of direction d: do two sums of its products saturate? */
static void find_saturated(const Packing *g, int64_t d, uint8_t *found)
{
    const HnRnnInt8 *p = g->p;
    for (int64_t c = 0; c < g->o.w->dims[2]; c++) {
        const Column from = column_of(&g->o, d, c);
        uint8_t *of_panel = found + place_of(p, c) / p->cols * p->groups;
        for (int64_t k = 0; k + 1 < p->inputs; k += 2)
            if (ABS(weight_at(&from, k) + weight_at(&from, k + 1)) > 128)
                of_panel[k / HN_INT8_GROUP] = 1;
    }
}

/* The list of extra groups; returns how many there are. */
static int64_t find_extras(HnRnnInt8 *p, const Packing *g)
{
    const gsize n = (gsize)(p->panels * p->groups);
    g_autofree uint8_t *found = g_malloc(n);
    GArray *extra = g_array_new(FALSE, FALSE, sizeof(int32_t));
    for (int64_t i = 0; i < p->directions * p->panels; i++) {
        if (i % p->panels == 0) {
            memset(found, 0, n);
            find_saturated(g, i / p->panels, found);
        }
        p->panel[i].extra = extra->len;
        for (int64_t k = 0; k < p->groups; k++)
            if (found[i % p->panels * p->groups + k])
                g_array_append_val(extra, ((int32_t){ (int32_t)(k * HN_INT8_GROUP) }));
        p->panel[i].extras = extra->len - p->panel[i].extra;
    }
    const int64_t all = extra->len;
    p->extra = (int32_t *)(void *)g_array_free(extra, FALSE);
    return all;
}

/* Which panels take less time as lists: of one row, as states are. */
static void find_lists(HnRnnInt8 *p, const Packing *g)
{
    g_autofree int8_t *w = g_malloc((gsize)(p->columns * p->inputs) + 1);
    for (int64_t i = 0; i < p->directions * p->panels; i++) {
        HnRnnPanel *panel = &p->panel[i];
        if (i % p->panels == 0)
            get_columns(g, i / p->panels, w);
        const HnSparseColumns columns = panel_of(p, w, i % p->panels);
        panel->lists = hn_sparse_bytes_count(&columns);
        panel->sparse =
            hn_sparse_bytes_cost(&panel->lists, 1) < hn_sparse_dense_cost(2 * (p->groups + panel->extras), 1);
        p->sparse = p->sparse || panel->sparse;
    }
}

/* Bytes or pairs, and where panels lie. */
static void lay_out(HnRnnInt8 *p, const Packing *g)
{
    const int64_t panels = p->directions * p->panels;
    p->panel = g_new0(HnRnnPanel, (gsize)panels);
    p->groups = (p->inputs + 3) / 4;
    p->pairs = !are_bytes(&g->o);
    if (!p->pairs && hn_int8_saturates())
        p->pairs = find_extras(p, g) > panels * p->groups / MOST_EXTRAS;
    if (p->pairs)
        p->groups = (p->inputs + 1) / 2;
    if (!p->pairs && hn_sparse_bytes_fit(p->inputs))
        find_lists(p, g);
    gsize at = (gsize)(p->directions * p->columns) * sizeof(int32_t);
    at = (at + LINE - 1) / LINE * LINE;
    for (int64_t i = 0; i < panels; i++) {
        if (p->pairs)
            p->panel[i].extras = 0;
        p->panel[i].b = at;
        at += panel_bytes(p, &p->panel[i]);
    }
}

HnRnnInt8 *hn_rnn_int8_new(HnStep *s, int i, int step, GError **error)
{
    HnRnnInt8 *p = g_new0(HnRnnInt8, 1);
    const Packing g = { p, weights_of(s, i, step) };
    p->directions = g.o.w->dims[0];
    p->inputs = g.o.w->dims[1];
    p->hidden = g.o.w->dims[2] / GATES;
    p->rows = hn_int8_rows();
    p->cols = hn_int8_cols();
    p->columns = (p->hidden + HN_RNN_CELL - 1) / HN_RNN_CELL * HN_RNN_CELL * GATES;
    p->panels = p->columns / p->cols;
    lay_out(p, &g);
    p->fns = p->pairs ? hn_int8_pair_fns(TRUE) : hn_int8_fns(hn_int8_cols());
    p->scale = g_new0(float, (gsize)(p->directions * p->columns));
    for (int64_t d = 0; d < p->directions; d++)
        for (int64_t c = 0; c < g.o.w->dims[2]; c++)
            p->scale[d * p->columns + place_of(p, c)] =
                (float)hn_tensor_get_f64(g.o.scale, d * g.o.each + (g.o.each > 1 ? c : 0));
    const guint64 variant = hn_pack_mix((guint64)(p->pairs * 64 + p->cols), g.o.zero);
    hn_pack_own(s, i, pack_weights, (int64_t)variant, packed_bytes(p), &g, &p->pack, error);
    return p;
}

void hn_rnn_int8_free(HnRnnInt8 *p)
{
    if (p == NULL)
        return;
    hn_pack_unref(p->pack);
    g_free(p->panel);
    g_free(p->extra);
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

static void multiply_lists(const HnInt8Kernel *t, const HnRnnPanel *panel, int64_t rows, int cols)
{
    HnSparseTile halves[2];
    const int n = hn_sparse_bytes_open(halves, &panel->lists, t->b, t->begin, cols);
    for (int i = 0; i < n; i++) {
        halves[i].a = t->a;
        halves[i].step = t->step;
        halves[i].seg_at = t->seg_at;
        halves[i].c = t->c + i * cols / 2;
        hn_sparse_bytes_fns()[rows - 1](&halves[i]);
    }
}

/* Panels [at, at + some); more than one of one row only. */
static void multiply_panels(const HnRnnInt8Product *m, int64_t at, int64_t some)
{
    static const int64_t seg_at[1] = { 0 };
    const HnRnnInt8 *p = m->p;
    const int level = hn_cpu_level();
    const char *w = hn_pack_data(p->pack, m->s, m->i);
    const int64_t first = m->d * p->columns + at * p->cols, cols = some * p->cols;
    int32_t begin[AT_ONCE * HN_INT8_MAX_COLS] = { 0 }, c[AT_ONCE * HN_INT8_MAX_COLS];
    if (!p->pairs)
        begins[level](begin, (const int32_t *)(const void *)w + first, -m->zero, cols);
    for (int64_t r = 0, rows; r < m->n; r += rows) {
        rows = MIN(m->n - r, p->rows);
        for (int64_t i = 0; i < some; i++) {
            const int64_t k = m->backwards ? some - 1 - i : i;
            const HnRnnPanel *panel = &p->panel[m->d * p->panels + at + k];
            const HnInt8Kernel t = { .a = (const uint8_t *)m->a + r * hn_rnn_int8_row(p),
                                     .step = hn_rnn_int8_row(p),
                                     .seg_at = seg_at,
                                     .segs = 1,
                                     .groups = p->groups,
                                     .more_at = panel->extras > 0 ? p->extra + panel->extra : NULL,
                                     .more = panel->extras,
                                     .b = (const int8_t *)w + panel->b,
                                     .begin = begin + k * p->cols,
                                     .c = c + k * p->cols };
            if (panel->sparse)
                multiply_lists(&t, panel, rows, p->cols);
            else
                p->fns[rows - 1](&t);
        }
        for (int64_t k = 0; k < rows; k++)
            adds[level](m->to + (r + k) * p->columns + at * p->cols, c + k * p->cols, p->scale + first, m->scale, cols);
    }
}

void hn_rnn_int8_multiply(const HnRnnInt8Product *m)
{
    const int64_t panels = m->p->panels, each = m->n == 1 ? AT_ONCE : 1, parts = (panels + each - 1) / each;
    for (int64_t k = 0; k < parts; k++) {
        const int64_t at = (m->backwards ? parts - 1 - k : k) * each;
        multiply_panels(m, at, MIN(each, panels - at));
    }
}
