#include "quant/rounding.h"

#include <math.h>
#include <string.h>

#include "base/team.h"
#include "quant/qdq.h"
#include "check/linear_rows.h"
#include "quant/rounding_lines.h"

#define LONGEST 2304               /* inputs of a row: H takes k * k numbers, and time */
#define TOGETHER ((gsize)32 << 20) /* bytes of H and of inputs for one pass over the samples */
#define MOST_ROOM 4                /* times that, where several plans share a pass */
#define ROWS 4096                  /* of inputs that are looked at in all samples together, at least; */
#define ROWS_OF_K 2                /* and so many times k more */
#define BATCH 8                    /* of products() */
#define KEPT (1 << 18)             /* elements of rows that are kept meanwhile */
#define DAMPING 0.01               /* of H's mean diagonal: what samples did not show */
#define CUTS 6                     /* steps in which a range of 4 bits is made smaller, */
#define CUT_TO 0.5F                /* down to that */

#define HN_LOOPS "quant/rounding_loops.h"
#include "base/every_level.h"

static void (*const products_at[])(float *h, const float *x, int64_t k, int64_t from,
                                   int64_t to) = HN_TABLE_OF_LEVELS(products);

/* A weight and all nodes that multiply by it. */
typedef struct {
    HnValue *value;
    HnQuantForm form;
    GPtrArray *nodes; /* HnNode * */
    GArray *inputs;   /* guint, as many: numbers of their inputs among those that are looked at */
    int64_t k, groups;
    float *h;     /* [parts, groups, k, k], below the diagonal until solve() */
    double *sum;  /* [parts, groups, k]: of the rows */
    double *seen; /* [parts]: rows */
} Layer;

typedef struct {
    HnQuantPlan *const *p; /* [plans], alike: of the i-th of several integers are chosen without sample i */
    int64_t plans;
    int64_t part; /* that inputs are added to: the present sample where there are several plans */
    const HnCaptureOptions *o;
    HnBudget *budget;
    int level;
    GPtrArray *layers; /* of this pass */
    float *rows;       /* [BATCH] rows of the layer that is looked at, those of its groups one behind the other */
    HnRoundingLog *log;
} Rounding;

/* Samples that inputs are looked at of, for each plan. */
static int64_t samples_of(const Rounding *r)
{
    return MAX(r->plans > 1 ? r->o->n - 1 : r->o->n, 1);
}

static float *h_of(const Layer *l, int64_t part)
{
    return l->h + part * l->groups * l->k * l->k;
}

static void layer_free(gpointer data)
{
    Layer *l = data;
    g_ptr_array_unref(l->nodes);
    g_array_unref(l->inputs);
    g_free(l);
}

/* --- in a plan ---------------------------------------------------------------------------------------------------- */

static void rounded_clear(gpointer data)
{
    hn_packed_clear(&((HnRounded *)data)->packed);
}

HnRounded *hn_rounded_ref(HnRounded *r)
{
    return g_rc_box_acquire(r);
}

void hn_rounded_unref(HnRounded *r)
{
    g_rc_box_release_full(r, rounded_clear);
}

/* Channel c of k becomes that of r. */
static void use_channel(const HnPacked *r, HnPacked *k, int64_t c)
{
    int64_t outer = 1, inner = 1;
    for (int i = 0; i < k->axis; i++)
        outer *= k->q->dims[i];
    for (int i = k->axis + 1; i < k->q->ndim; i++)
        inner *= k->q->dims[i];
    for (int64_t o = 0; o < outer; o++) {
        const int64_t at = (o * k->scale->n + c) * inner;
        memcpy((int8_t *)k->q->data + at, (const int8_t *)r->q->data + at, (gsize)inner);
    }
    ((float *)k->scale->data)[c] = ((const float *)r->scale->data)[c];
}

/* In HnQuantPlan.integers; g_free. */
static char *key_of(const char *weight, HnQuantForm form)
{
    return g_strconcat(hn_quant_form_name(form), " ", weight, NULL);
}

void hn_rounded_use(const HnQuantPlan *p, const char *weight, HnQuantForm form, HnPacked *k)
{
    g_autofree char *key = key_of(weight, form);
    const HnRounded *r = g_hash_table_lookup(p->integers, key);
    if (r == NULL || r->packed.axis != k->axis || r->packed.block != k->block ||
        !hn_tensor_same_form(r->packed.q, k->q) || !hn_tensor_same_form(r->packed.scale, k->scale))
        return;
    const float *there = r->packed.scale->data, *here = k->scale->data;
    if (form == HN_FORM_W4 || k->axis < 0) {
        if (form != HN_FORM_W4 && there[0] < here[0])
            return;
        const int64_t reduced = k->reduced;
        hn_packed_clear(k);
        *k = r->packed;
        k->reduced = reduced;
        hn_tensor_ref(k->q);
        hn_tensor_ref(k->scale);
        hn_tensor_ref(k->zero);
        return;
    }
    for (int64_t c = 0; c < k->scale->n; c++)
        if (there[c] >= here[c]) /* else a bias asks for more */
            use_channel(&r->packed, k, c);
}

/* --- inputs ------------------------------------------------------------------------------------------------------- */

typedef struct {
    const Rounding *r;
    const Layer *l;
    int n; /* shares */
} Split;

static void add_share(void *data)
{
    const Split *s = data;
    const int64_t k = s->l->k;
    const int id = hn_team_share()->id;
    for (int64_t g = 0; g < s->l->groups; g++) {
        const float *x = s->r->rows + g * BATCH * k;
        /* shares of a triangle have the same area */
        const int64_t from = s->n == 1 ? 0 : (int64_t)((double)k * sqrt((double)id / s->n));
        const int64_t to = id + 1 == s->n ? k : (int64_t)((double)k * sqrt((double)(id + 1) / s->n));
        products_at[s->r->level](h_of(s->l, s->r->part) + g * k * k, x, k, from, to);
    }
}

static void add_rows(const Rounding *r, const Layer *l)
{
    Split s = { r, l, l->k >= 64 ? MAX(r->o->threads, 1) : 1 };
    HnRegion region = { .fn = add_share, .data = &s, .n = s.n };
    hn_team_run(&region, FALSE);
}

/* In four sums, so that none waits for the one before. */
static double energy_of(const float *row, int64_t n)
{
    double sum[4] = { 0 };
    int64_t k = 0;
    for (; k + 4 <= n; k += 4)
        for (int64_t i = 0; i < 4; i++)
            sum[i] += (double)row[k + i] * (double)row[k + i];
    for (; k < n; k++)
        sum[0] += (double)row[k] * (double)row[k];
    return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

/* Rows of a sample, one for each `step`, at their places, and their energies. */
typedef struct {
    const HnLinearRows *rows;
    float *row;
    double *energy;
    int64_t count, step, size, last; /* last: of the places */
    int n;                           /* shares */
} Fetch;

static void fetch_share(void *data)
{
    const Fetch *f = data;
    const int id = hn_team_share()->id;
    for (int64_t i = f->count * id / f->n; i < f->count * (id + 1) / f->n; i++) {
        float *const at = f->row + MIN(i, f->last) * f->size;
        hn_linear_rows_get(f->rows, i * f->step, at);
        f->energy[i] = energy_of(at, f->size);
    }
}

/* A few rows are much larger than all others (the first word of a text, the sun): they count for less. */
static void take_row(const Rounding *r, Layer *l, float *row, double energy, double mean, int64_t at)
{
    const float weight = (float)sqrt(1 / (1 + energy / mean));
    double *sum = l->sum + r->part * l->groups * l->k;
    for (int64_t k = 0; k < l->groups * l->k; k++) {
        row[k] *= weight;
        sum[k] += (double)row[k];
    }
    for (int64_t g = 0; g < l->groups; g++)
        memcpy(r->rows + (g * BATCH + at) * l->k, row + g * l->k, (gsize)l->k * sizeof *row);
    l->seen[r->part]++;
}

static gboolean see(const Rounding *r, Layer *l, const HnNode *n, const HnTensor *x, GError **error)
{
    const int64_t size = l->groups * l->k;
    HnLinearRows rows;
    hn_linear_rows_of(n, &rows);
    const int64_t all = hn_linear_rows_feed(&rows, x),
                  wanted = MAX((ROWS + ROWS_OF_K * l->k) / samples_of(r), 2 * BATCH);
    const int64_t step = MAX(all / wanted, 1), count = (all + step - 1) / step;
    /* rows that are there twice over, for their mean and for their products; the last place is for all others */
    const int64_t kept = hn_budget_limit(r->budget) > 0 ? 1 : CLAMP(KEPT / size, 1, MAX(count, 1));
    int64_t filled = 0;
    double mean = 0;
    g_autofree float *row = g_try_new(float, (gsize)(kept * size));
    g_autofree double *energy = g_try_new(double, (gsize)count + 1);
    if (row == NULL || energy == NULL)
        return hn_budget_ask(NULL, error);
    Fetch fetch = { &rows, row, energy, count, step, size, kept - 1, kept < count ? 1 : MAX(r->o->threads, 1) };
    HnRegion region = { .fn = fetch_share, .data = &fetch, .n = fetch.n };
    hn_team_run(&region, FALSE);
    for (int64_t i = 0; i < count; i++)
        mean += energy[i] * (double)step / (double)all;
    for (int64_t i = 0; i < count && mean > 0; i++) {
        float *at = row + MIN(i, kept - 1) * size;
        if (count > kept && i >= kept - 1)
            hn_linear_rows_get(&rows, i * step, at);
        take_row(r, l, at, energy[i], mean, filled);
        if (++filled == BATCH) {
            add_rows(r, l);
            filled = 0;
        }
    }
    if (filled > 0) {
        for (int64_t g = 0; g < l->groups; g++)
            memset(r->rows + (g * BATCH + filled) * l->k, 0, (gsize)((BATCH - filled) * l->k) * sizeof *row);
        add_rows(r, l);
    }
    return TRUE;
}

/* A sample is for the part of its own where there are several plans. */
static gboolean saw(gpointer data, int64_t sample, guint i, const HnTensor *x, GError **error)
{
    Rounding *r = data;
    r->part = r->plans > 1 ? sample : 0;
    for (guint k = 0; k < r->layers->len; k++) {
        Layer *l = r->layers->pdata[k];
        for (guint j = 0; j < l->nodes->len; j++)
            if (g_array_index(l->inputs, guint, j) == i && !see(r, l, l->nodes->pdata[j], x, error))
                return FALSE;
    }
    return TRUE;
}

/* --- integers ----------------------------------------------------------------------------------------------------- */

/* H in full. What the mean of the inputs does to each two of them is known well; how they vary together is taken for
 * less the fewer rows were seen. */
static void complete(float *h, const double *sum, int64_t k, double rows)
{
    const double trust = rows / (rows + (double)k);
    double mean = 0;
    for (int64_t i = 0; i < k; i++)
        mean += (double)h[i * k + i] / (double)k;
    for (int64_t i = 0; i < k; i++) {
        h[i * k + i] += (float)(DAMPING * mean);
        for (int64_t j = 0; j < i; j++) {
            const double together = sum[i] * sum[j] / rows, rest = (double)h[i * k + j] - together;
            h[j * k + i] = h[i * k + j] = (float)(together + trust * rest);
        }
    }
}

/* The rows of a weight, shared out among threads. */
typedef struct {
    const Rounding *r;
    const Layer *l;
    const HnLinearRows *rows;
    const HnPacked *packed;
    int shares;
    int16_t *q;     /* [row, k]: what was found */
    int64_t blocks; /* of a row, with scales of their own: along channels, for each tap */
    float *scale;   /* [row, blocks] */
    int8_t *zero;
    double *before, *after, *signal; /* of each row */
} Solve;

/* The block of a row that its element i belongs to. */
static int64_t block_of(const Solve *s, int64_t i)
{
    const int64_t taps = s->rows->taps;
    return i / taps / s->packed->block * taps + i % taps;
}

/* Place of the scale of block b in row m; without blocks of the row's. */
static int64_t scale_at(const Solve *s, int64_t m, int64_t b)
{
    const HnPacked *k = s->packed;
    if (k->block > 0)
        return s->rows->axis == 0 ? b * k->scale->dims[1] + m : m * s->blocks + b;
    return k->axis >= 0 ? m : 0;
}

/* Elements of a row that share a scale: from, from + step, ..., below to. */
typedef struct {
    int64_t from, to, step;
} Block;

static Block block_at(const Solve *s, int64_t b)
{
    const int64_t taps = s->rows->taps, first = b / taps * s->packed->block;
    return (Block){ first * taps + b % taps, MIN((first + s->packed->block) * taps, s->l->k), taps };
}

static int nearest(float w, float scale, int zero, int least, int most)
{
    return (int)fminf(fmaxf(rintf(w / scale) + (float)zero, (float)least), (float)most);
}

/* Sum of squared errors of a block's weights, each as heavy as its inputs. */
static double block_error(const HnRoundLine *l, const Block *b, float scale, int zero)
{
    double sum = 0;
    for (int64_t i = b->from; i < b->to; i += b->step) {
        const double e = (double)(scale * (float)(nearest(l->w[i], scale, zero, l->least, l->most) - zero) - l->w[i]);
        sum += e * e * (double)l->h[i * l->k + i];
    }
    return sum;
}

/* A smaller scale for some weights of 4 bits, where cutting off the largest costs less than it gains. */
static void fit_block(const HnRoundLine *l, const Block *block, gboolean symmetric)
{
    float scale = l->scale[block->from];
    int zero = l->zero[block->from];
    const float lo = scale * (float)(l->least - zero), hi = scale * (float)(l->most - zero);
    double best = block_error(l, block, scale, zero);
    for (int a = CUTS; a > 0; a--)
        for (int b = symmetric ? a : CUTS; b > 0 && (!symmetric || b == a); b--) {
            const float low = lo * (CUT_TO + (1 - CUT_TO) * (float)a / CUTS);
            const float high = hi * (CUT_TO + (1 - CUT_TO) * (float)b / CUTS);
            const float s = (high - low) / (float)(l->most - l->least);
            const int z = symmetric ? 0 : CLAMP((int)rintf(-low / s), l->least, l->most);
            const double error = block_error(l, block, s, z);
            if (error >= best)
                continue;
            best = error;
            scale = s;
            zero = z;
        }
    for (int64_t i = block->from; i < block->to; i += block->step) {
        l->scale[i] = scale;
        l->zero[i] = zero;
        l->q[i] = nearest(l->w[i], scale, zero, l->least, l->most);
    }
}

static void take_line(const Solve *s, const HnRoundLine *l, int64_t m)
{
    const HnPacked *k = s->packed;
    const float *w = s->l->value->weight->data;
    for (int64_t i = 0; i < l->k; i++) {
        const int64_t at = m * s->rows->row + i * s->rows->col,
                      scale = scale_at(s, m, k->block > 0 ? block_of(s, i) : 0);
        l->w[i] = l->d[i] = w[at];
        l->q[i] = l->best[i] = (int)hn_tensor_get_i64(k->q, at);
        l->scale[i] = ((const float *)k->scale->data)[scale];
        l->zero[i] = (int)hn_tensor_get_i64(k->zero, scale);
    }
}

static void store_line(const Solve *s, const HnRoundLine *l, int64_t m)
{
    for (int64_t i = 0; i < l->k; i++)
        s->q[m * l->k + i] = (int16_t)l->best[i];
    for (int64_t b = 0; b < s->blocks; b++) {
        const Block block = block_at(s, b);
        s->scale[m * s->blocks + b] = l->scale[block.from];
        s->zero[m * s->blocks + b] = (int8_t)l->zero[block.from];
    }
}

/* Rows [m, m + n) of one group. Those that samples show nothing of keep their integers. */
static void solve_rows(const Solve *s, const HnRoundLine *l, int64_t m, int n)
{
    HnRoundLine some[HN_ROUND_LINES];
    double after[HN_ROUND_LINES];
    int64_t row[HN_ROUND_LINES];
    int left = 0;
    for (int c = 0; c < n; c++)
        take_line(s, &l[c], m + c);
    hn_round_multiply(l, n, s->r->level);
    for (int c = 0; c < n; c++) {
        double signal = 0;
        for (int64_t i = 0; i < l->k; i++)
            signal += (double)l[c].w[i] * (double)l[c].g[i];
        s->signal[m + c] = signal;
        if (!isfinite(signal) || !(signal > 0))
            continue;
        row[left] = m + c;
        some[left++] = l[c];
    }
    if (left > 0)
        hn_round_gradient(some, left, s->r->level);
    for (int c = 0; c < left; c++) {
        s->before[row[c]] = hn_round_error(&some[c]);
        for (int64_t b = 0; b < s->blocks; b++) {
            const Block block = block_at(s, b);
            fit_block(&some[c], &block, s->r->p[0]->o.symmetric_block);
        }
    }
    if (left > 0 && s->blocks > 0)
        hn_round_gradient(some, left, s->r->level);
    if (left > 0)
        hn_round_lines(some, left, s->r->level, after);
    for (int c = 0; c < left; c++)
        s->after[row[c]] = after[c];
    for (int c = 0; c < n; c++)
        store_line(s, &l[c], m + c);
}

static void solve_share(void *data)
{
    const Solve *s = data;
    const int id = hn_team_share()->id;
    const int64_t k = s->l->k, all = s->rows->groups * s->rows->outs;
    const HnQuantOptions *o = &s->r->p[0]->o;
    const gboolean four = s->l->form == HN_FORM_W4, whole = four && !o->symmetric_block;
    const int most = four ? 7 : o->reduced_all ? 63 : 127;
    g_autofree float *floats = g_new(float, (gsize)k *(4 * HN_ROUND_LINES + 1));
    g_autofree int *ints = g_new(int, (gsize)k * 3 * HN_ROUND_LINES);
    HnRoundLine l[HN_ROUND_LINES];
    for (int c = 0; c < HN_ROUND_LINES; c++)
        l[c] = (HnRoundLine){ .k = k,
                              .taps = s->rows->taps,
                              .least = whole  ? 0
                                       : four ? -8
                                              : -most,
                              .most = whole ? 15 : most,
                              .pairs = s->l->form == HN_FORM_INT8 && o->reduced,
                              .diagonal = floats + 4 * HN_ROUND_LINES * k,
                              .w = floats + (4 * c) * k,
                              .scale = floats + (4 * c + 1) * k,
                              .g = floats + (4 * c + 2) * k,
                              .d = floats + (4 * c + 3) * k,
                              .q = ints + (3 * c) * k,
                              .zero = ints + (3 * c + 1) * k,
                              .best = ints + (3 * c + 2) * k };
    const int64_t end = all * (id + 1) / s->shares;
    for (int64_t m = all * id / s->shares, n; m < end; m += n) {
        const int64_t group = m / s->rows->outs;
        n = MIN(MIN(HN_ROUND_LINES, end - m), (group + 1) * s->rows->outs - m);
        const float *h = s->l->h + group * k * k;
        for (int64_t i = 0; i < k; i++)
            floats[4 * HN_ROUND_LINES * k + i] = h[i * k + i];
        for (int c = 0; c < HN_ROUND_LINES; c++)
            l[c].h = h;
        solve_rows(s, l, m, (int)n);
    }
}

static gboolean is_smooth(const float *h, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        if (!isfinite(h[i]))
            return FALSE;
    return TRUE;
}

/* By the first part of l. */
static gboolean solve(Rounding *r, const Layer *l, HnRounded *out, GError **error)
{
    HnLinearRows rows;
    const HnNode *n = l->nodes->pdata[0];
    if (!(l->seen[0] > 0) || !is_smooth(l->h, l->groups * l->k * l->k) || !hn_linear_rows_of(n, &rows))
        return TRUE;
    for (int64_t g = 0; g < l->groups; g++)
        complete(l->h + g * l->k * l->k, l->sum + g * l->k, l->k, l->seen[0]);
    if (!hn_quant_pack(r->p[0], n, l->value, 0, r->budget, &out->packed, error))
        return FALSE;
    const int64_t all = rows.groups * rows.outs;
    g_autofree double *errors = g_new0(double, (gsize)all * 3);
    g_autofree float *scales = NULL;
    g_autofree int8_t *zeros = NULL;
    g_autofree int16_t *q = g_try_new(int16_t, (gsize)(all * l->k));
    Solve s = { .r = r,
                .l = l,
                .rows = &rows,
                .packed = &out->packed,
                .shares = (int)MIN(MAX(r->o->threads, 1), all),
                .q = q,
                .before = errors,
                .after = errors + all,
                .signal = errors + 2 * all };
    if (q == NULL) {
        g_set_error(error, HN_ERROR, HN_ERROR_BUDGET, "no memory is left for the integers of '%s'", l->value->name);
        return FALSE;
    }
    s.blocks = out->packed.block > 0 ? out->packed.scale->n / all : 0;
    s.scale = scales = g_new(float, (gsize)(all * s.blocks + 1));
    s.zero = zeros = g_new(int8_t, (gsize)(all * s.blocks + 1));
    HnRegion region = { .fn = solve_share, .data = &s, .n = s.shares };
    hn_team_run(&region, FALSE);
    double before = 0, after = 0, signal = 0;
    for (int64_t m = 0; m < all; m++) {
        for (int64_t b = 0; b < s.blocks; b++) {
            const int64_t at = scale_at(&s, m, b);
            ((float *)out->packed.scale->data)[at] = s.scale[m * s.blocks + b];
            hn_tensor_set_i64(out->packed.zero, at, s.zero[m * s.blocks + b]);
        }
        before += s.before[m];
        after += s.after[m];
        signal += s.signal[m];
        if (out->packed.q->dtype == HN_I8)
            for (int64_t i = 0; i < l->k; i++)
                ((int8_t *)out->packed.q->data)[m * rows.row + i * rows.col] = q[m * l->k + i];
        else
            for (int64_t i = 0; i < l->k; i++)
                hn_tensor_set_i64(out->packed.q, m * rows.row + i * rows.col, q[m * l->k + i]);
    }
    if (signal > 0) {
        r->log->before += before / signal;
        r->log->after += after / signal;
    }
    r->log->weights++;
    return TRUE;
}

/* --- all ---------------------------------------------------------------------------------------------------------- */

static void list(HnNode *n, gpointer data)
{
    g_ptr_array_add(data, n);
}

/* Weights of the main graph that may be rounded, with their nodes. */
static GPtrArray *find_layers(const HnQuantPlan *p, HnModel *m, HnRoundingLog *log)
{
    g_autoptr(GPtrArray) nodes = g_ptr_array_new();
    g_autoptr(GHashTable) seen = g_hash_table_new(NULL, NULL);
    GPtrArray *layers = g_ptr_array_new_with_free_func(layer_free);
    hn_graph_foreach_node(m->graph, list, nodes);
    for (guint i = 0; i < nodes->len; i++) {
        HnNode *n = nodes->pdata[i];
        HnLinearRows rows;
        const HnQuantForm form = n->op != NULL && n->op->quant.kind == HN_Q_WEIGHTED ? hn_quant_plan_form(p, n) : 0;
        if (form == HN_FORM_F32)
            continue;
        Layer *l = g_hash_table_lookup(seen, hn_node_in(n, 1));
        const gboolean inner = n->graph != m->graph || hn_node_in(n, 0)->graph != m->graph;
        const gboolean good = !inner && hn_linear_rows_of(n, &rows) && rows.k <= LONGEST;
        if (!good || (l != NULL && (l->form != form || l->k != rows.k || l->groups != rows.groups))) {
            log->skipped++;
            continue;
        }
        if (l == NULL) {
            l = g_new0(Layer, 1);
            *l = (Layer){ .value = hn_node_in(n, 1), .form = form, .k = rows.k, .groups = rows.groups };
            l->nodes = g_ptr_array_new();
            l->inputs = g_array_new(FALSE, FALSE, sizeof(guint));
            g_hash_table_insert(seen, l->value, l);
            g_ptr_array_add(layers, l);
        }
        g_ptr_array_add(l->nodes, n);
    }
    return layers;
}

/* Of one of several plans there is a sum beside the parts. */
static int64_t parts_of(const Rounding *r)
{
    return r->plans > 1 ? r->plans + 1 : 1;
}

static gsize bytes_of(const Rounding *r, const Layer *l)
{
    return (gsize)(parts_of(r) * l->groups * l->k * l->k) * sizeof *l->h;
}

/* With the inputs, as far as their sizes are known. */
static gsize bytes_of_pass(const Rounding *r, const Layer *l)
{
    gsize bytes = bytes_of(r, l);
    for (guint i = 0; i < l->nodes->len; i++)
        bytes += (gsize)hn_type_count(hn_node_in(l->nodes->pdata[i], 0)->type) * sizeof *l->h;
    return bytes;
}

/* The last part of l becomes the sum of those of all samples but i. */
static Layer without(const Rounding *r, const Layer *l, int64_t i)
{
    const int64_t rows = l->groups * l->k, n = rows * l->k;
    Layer rest = *l;
    rest.h = h_of(l, r->plans);
    rest.sum = l->sum + r->plans * rows;
    rest.seen = l->seen + r->plans;
    memset(rest.h, 0, (gsize)n * sizeof *rest.h);
    memset(rest.sum, 0, (gsize)rows * sizeof *rest.sum);
    *rest.seen = 0;
    for (int64_t part = 0; part < r->plans; part++) {
        const float *h = h_of(l, part);
        if (part == i)
            continue;
        for (int64_t k = 0; k < n; k++)
            rest.h[k] += h[k];
        for (int64_t k = 0; k < rows; k++)
            rest.sum[k] += l->sum[part * rows + k];
        *rest.seen += l->seen[part];
    }
    return rest;
}

/* The integers of l in all plans. */
static gboolean choose(Rounding *r, const Layer *l, GError **error)
{
    gboolean ok = TRUE;
    for (int64_t i = 0; i < r->plans && ok; i++) {
        const Layer rest = r->plans > 1 ? without(r, l, i) : *l;
        HnRounded *out = g_rc_box_new0(HnRounded);
        ok = !hn_progress_stop(r->o->progress, error) && solve(r, &rest, out, error);
        if (ok && out->packed.q != NULL)
            g_hash_table_insert(r->p[i]->integers, key_of(l->value->name, l->form), hn_rounded_ref(out));
        hn_rounded_unref(out);
    }
    return ok;
}

/* One pass over the samples for the layers of r, whose inputs are captured. */
static gboolean look(Rounding *r, HnCapture *capture, GError **error)
{
    const gsize parts = (gsize)parts_of(r);
    gsize longest = 0;
    gboolean ok = TRUE;
    for (guint i = 0; i < r->layers->len; i++) {
        Layer *l = r->layers->pdata[i];
        longest = MAX(longest, (gsize)(l->groups * l->k));
        ok = ok && (l->h = hn_budget_alloc0(r->budget, bytes_of(r, l), error)) != NULL;
        l->sum = g_new0(double, parts *(gsize)(l->groups * l->k));
        l->seen = g_new0(double, parts);
    }
    if (ok)
        ok = (r->rows = hn_budget_alloc_n(r->budget, longest * BATCH, sizeof *r->rows, error)) != NULL;
    ok = ok && hn_capture_all(capture, saw, r, error);
    for (guint i = 0; i < r->layers->len && ok; i++) {
        hn_progress_tell(r->o->progress, "rounding", i, r->layers->len);
        ok = choose(r, r->layers->pdata[i], error);
    }
    for (guint i = 0; i < r->layers->len; i++) {
        Layer *l = r->layers->pdata[i];
        hn_budget_free(r->budget, l->h);
        l->h = NULL;
        g_clear_pointer(&l->sum, g_free);
        g_clear_pointer(&l->seen, g_free);
    }
    hn_budget_free(r->budget, r->rows);
    r->rows = NULL;
    return ok;
}

/* Bytes for one pass: where memory is limited no more than half of what is left. */
static gsize room_of(HnBudget *budget)
{
    const gsize limit = hn_budget_limit(budget), used = hn_budget_used(budget);
    return limit == 0 ? TOGETHER : MIN(TOGETHER, used < limit ? (limit - used) / 2 : 0);
}

static guint name_at(GPtrArray *names, const char *name)
{
    guint i = 0;
    while (i < names->len && !g_str_equal(names->pdata[i], name))
        i++;
    if (i == names->len)
        g_ptr_array_add(names, (gpointer)name);
    return i;
}

static gboolean round_all(HnQuantPlan *const *p, int64_t plans, HnModel *m, const HnCaptureOptions *o,
                          HnRoundingLog *log, GError **error)
{
    *log = (HnRoundingLog){ 0 };
    g_autoptr(GPtrArray) layers = find_layers(p[0], m, log), names = g_ptr_array_new();
    Rounding r = { .p = p, .plans = plans, .o = o, .budget = o->budget, .level = hn_cpu_level(), .log = log };
    gboolean ok = TRUE;
    for (guint i = 0; i < layers->len && ok;) {
        const gsize room = room_of(o->budget) * (gsize)MIN(parts_of(&r), MOST_ROOM);
        gsize bytes = 0;
        r.layers = g_ptr_array_new();
        g_ptr_array_set_size(names, 0);
        for (; i < layers->len && (r.layers->len == 0 || bytes + bytes_of_pass(&r, layers->pdata[i]) <= room); i++) {
            Layer *l = layers->pdata[i];
            for (guint k = 0; k < l->nodes->len; k++) {
                const guint at = name_at(names, hn_node_in(l->nodes->pdata[k], 0)->name);
                g_array_append_val(l->inputs, at);
            }
            bytes += bytes_of_pass(&r, l);
            g_ptr_array_add(r.layers, l);
        }
        HnCapture *capture = hn_capture_new(m, names, o, error);
        ok = capture != NULL && look(&r, capture, error);
        hn_capture_free(capture);
        g_clear_pointer(&r.layers, g_ptr_array_unref);
    }
    return ok;
}

/* The nodes with 4 bits, in the 8 that they may get instead; NULL: there are none. */
static HnQuantPlan *with_eight(const HnQuantPlan *p, HnModel *m)
{
    HnQuantPlan *q = hn_quant_plan_new(&p->o);
    g_autoptr(GPtrArray) nodes = hn_quant_candidates(m);
    for (guint i = 0; i < nodes->len; i++) {
        const HnNode *n = nodes->pdata[i];
        if (hn_quant_plan_form(p, n) == HN_FORM_W4)
            hn_quant_plan_set_form(q, hn_quant_name(n), hn_quant_form_fit(n, HN_FORM_W8, &p->o));
    }
    if (g_hash_table_size(q->forms) == 0)
        g_clear_pointer(&q, hn_quant_plan_free);
    return q;
}

static void take_integers(HnQuantPlan *p, const HnQuantPlan *from)
{
    GHashTableIter iter;
    gpointer key, rounded;
    g_hash_table_iter_init(&iter, from->integers);
    while (g_hash_table_iter_next(&iter, &key, &rounded))
        g_hash_table_insert(p->integers, g_strdup(key), hn_rounded_ref(rounded));
}

static gboolean round_plans(HnQuantPlan *const *p, int64_t plans, HnModel *m, const HnCaptureOptions *o,
                            HnRoundingLog *log, GError **error)
{
    if (!round_all(p, plans, m, o, log, error))
        return FALSE;
    HnQuantPlan *first = with_eight(p[0], m);
    HnRoundingLog beside;
    if (first == NULL)
        return TRUE;
    g_autoptr(GPtrArray) eight = g_ptr_array_new_with_free_func((GDestroyNotify)hn_quant_plan_free);
    g_ptr_array_add(eight, first);
    while (eight->len < plans)
        g_ptr_array_add(eight, hn_quant_plan_copy(first));
    if (!round_all((HnQuantPlan *const *)eight->pdata, plans, m, o, &beside, error))
        return FALSE;
    for (int64_t i = 0; i < plans; i++)
        take_integers(p[i], eight->pdata[i]);
    return TRUE;
}

gboolean hn_quant_round(HnQuantPlan *p, HnModel *m, const HnCaptureOptions *o, HnRoundingLog *log, GError **error)
{
    return round_plans(&p, 1, m, o, log, error);
}

gboolean hn_quant_round_without(HnQuantPlan *const *p, HnModel *m, const HnCaptureOptions *o, GError **error)
{
    HnRoundingLog log;
    g_return_val_if_fail(o->n > 1, FALSE);
    return round_plans(p, o->n, m, o, &log, error);
}
