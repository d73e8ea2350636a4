#include "prune/gram.h"

#include <math.h>
#include <string.h>

#include "base/rng.h"
#include "base/team.h"

#define BATCH 64         /* rows that are added together, at most: ... */
#define TALL 8           /* rows of a tile of sums; */
#define LEAST_BATCH TALL /* ... and at least */
#define BLOCK 32         /* rows of sums whose x stays in the first cache */
#define LINE 16          /* floats */
#define ALONE 4096       /* numbers: fewer are not worth a second thread */

#define HN_LOOPS "prune/gram_loops.h"
#include "base/every_level.h"

static void (*const tile_at[])(float *y, int64_t ldy, const float *x, int64_t step, int64_t next, const float *z,
                               int64_t ldz, int64_t m) = HN_TABLE_OF_LEVELS(tile);
static const int64_t wide_at[] = { HN_GRAM_TILE_plain, HN_GRAM_TILE_avx2, HN_GRAM_TILE_avx512 };

/* --- how it lies in memory ---------------------------------------------------------------------------------------- */

static int64_t whole(int64_t n, int64_t of)
{
    return (n + of - 1) / of * of;
}

/* From row to row: an odd number of lines, so that a column's do not share few places of a cache. */
static int64_t stride_of(int64_t n)
{
    return n <= LINE ? n : (whole(n, LINE) / LINE | 1) * LINE;
}

static int64_t batch_of(int64_t groups)
{
    return MAX(BATCH / groups / TALL * TALL, LEAST_BATCH);
}

/* Floats of h and x, b and y; tiles read beyond the ends of x and y. */
typedef struct {
    gsize h, x, b, y;
} Parts;

static Parts parts_of(int64_t k, int64_t outs, int64_t groups, gboolean wanted)
{
    const int64_t n = groups * batch_of(groups);
    Parts p = { (gsize)whole(groups * k * k, LINE), (gsize)(n * stride_of(k) + LINE), 0, 0 };
    if (wanted) {
        p.b = (gsize)whole(groups * k * outs, LINE);
        p.y = (gsize)(n * stride_of(outs) + LINE);
    }
    return p;
}

gsize hn_gram_bytes(const HnLinearRows *rows, gboolean constant, gboolean wanted)
{
    const Parts p = parts_of(rows->k + constant, rows->outs, rows->groups, wanted);
    return (p.h + p.x + p.b + p.y) * sizeof(float);
}

HnGram *hn_gram_new(const HnLinearRows *rows, gboolean constant, gboolean wanted, HnBudget *budget, GError **error)
{
    HnGram *g = g_new0(HnGram, 1);
    *g = (HnGram){ .k = rows->k + constant,
                   .outs = rows->outs,
                   .groups = rows->groups,
                   .constant = constant,
                   .wanted = wanted,
                   .batch = batch_of(rows->groups),
                   .budget = budget };
    const Parts p = parts_of(g->k, g->outs, g->groups, wanted);
    g->h = hn_budget_alloc0(budget, hn_gram_bytes(rows, constant, wanted), error);
    if (g->h == NULL) {
        g_free(g);
        return NULL;
    }
    g->x = g->h + p.h;
    g->b = g->x + p.x;
    g->y = wanted ? g->b + p.b : NULL;
    g->squares = wanted ? g_new0(double, (gsize)(g->groups * g->outs)) : NULL;
    return g;
}

void hn_gram_free(HnGram *g)
{
    if (g == NULL)
        return;
    hn_budget_free(g->budget, g->h);
    hn_budget_free(g->budget, g->plain);
    g_free(g->squares);
    g_free(g);
}

static float *x_of(const HnGram *g, int64_t group, int64_t row)
{
    return g->x + (group * g->batch + row) * stride_of(g->k);
}

static float *y_of(const HnGram *g, int64_t group, int64_t row)
{
    return g->y + (group * g->batch + row) * stride_of(g->outs);
}

static float *plain_of(const HnGram *g, int64_t group, int64_t row)
{
    return g->plain_y + (group * g->batch + row) * stride_of(g->outs);
}

/* Bytes of a row of g->below and g->above. */
static int64_t bits_of(const HnGram *g)
{
    return (g->groups * g->outs + 7) / 8;
}

/* --- sums --------------------------------------------------------------------------------------------------------- */

/* y[rows, columns] += x' z over `batch` rows of both; x and z begin at those rows and columns. */
static void add_tile(const HnGram *g, float *y, int64_t ldy, const float *x, const float *z, int64_t ldz, int64_t rows,
                     int64_t columns, int level)
{
    const int64_t wide = wide_at[level], ldx = stride_of(g->k);
    float part[TALL * LINE] = { 0 };
    if (rows >= TALL && columns >= wide) {
        tile_at[level](y, ldy, x, ldx, 1, z, ldz, g->batch);
        return;
    }
    for (int64_t i = 0; i < MIN(rows, TALL); i++)
        memcpy(part + i * wide, y + i * ldy, (gsize)MIN(columns, wide) * sizeof *y);
    tile_at[level](part, wide, x, ldx, 1, z, ldz, g->batch);
    for (int64_t i = 0; i < MIN(rows, TALL); i++)
        memcpy(y + i * ldy, part + i * wide, (gsize)MIN(columns, wide) * sizeof *y);
}

/* Rows [from, to) of y[k, n]; of a triangle, up to the diagonal and somewhat beyond. */
static void add_products(const HnGram *g, float *y, int64_t n, const float *x, const float *z, int64_t ldz,
                         int64_t from, int64_t to, gboolean triangle, int level)
{
    const int64_t wide = wide_at[level];
    for (int64_t block = from; block < to; block += BLOCK) {
        const int64_t end = MIN(block + BLOCK, to);
        for (int64_t j = 0; j < (triangle ? end : n); j += wide)
            for (int64_t i = block; i < end; i += TALL)
                if (!triangle || j < i + TALL)
                    add_tile(g, y + i * n + j, n, x + i, z + j, ldz, end - i, n - j, level);
    }
}

typedef struct {
    HnGram *g;
    int n; /* shares */
} Split;

/* Of a part of n, in whole tiles. */
static int64_t at_tile(double part, int64_t n)
{
    return part < 1 ? MIN((int64_t)((double)n * part) / TALL * TALL, n) : n;
}

static void add_squares(const HnGram *g, int64_t from, int64_t to)
{
    for (int64_t group = 0; group < g->groups; group++)
        for (int64_t r = 0; r < g->held; r++) {
            const float *y = y_of(g, group, r);
            for (int64_t j = from; j < to; j++)
                g->squares[group * g->outs + j] += (double)y[j] * (double)y[j];
        }
}

static void add_share(void *data)
{
    const Split *s = data;
    const HnGram *g = s->g;
    const int id = hn_team_share()->id, level = hn_cpu_level();
    const double from = (double)id / s->n, to = (double)(id + 1) / s->n;
    for (int64_t i = 0; i < g->groups; i++) {
        const float *x = x_of(g, i, 0);
        if (!g->aims) /* shares of a triangle have the same area */
            add_products(g, g->h + i * g->k * g->k, g->k, x, x, stride_of(g->k), at_tile(sqrt(from), g->k),
                         at_tile(sqrt(to), g->k), TRUE, level);
        if (g->wanted)
            add_products(g, g->b + i * g->k * g->outs, g->outs, x, y_of(g, i, 0), stride_of(g->outs),
                         at_tile(from, g->k), at_tile(to, g->k), FALSE, level);
        if (g->plain != NULL && !g->aims)
            add_products(g, g->plain + i * g->k * g->outs, g->outs, x, plain_of(g, i, 0), stride_of(g->outs),
                         at_tile(from, g->k), at_tile(to, g->k), FALSE, level);
    }
    if (g->wanted && !g->aims)
        add_squares(g, g->outs * id / s->n, g->outs * (id + 1) / s->n);
}

/* --- targets ------------------------------------------------------------------------------------------------------ */

/* Floats of plain, plain_y and w, and bytes of below and above. */
typedef struct {
    gsize plain, y, w, below, above;
} OutcomeParts;

static OutcomeParts outcome_parts(const HnLinearRows *rows, gboolean constant, float lo, float hi, int64_t most)
{
    const gsize k = (gsize)(rows->k + constant), bytes = (gsize)((rows->groups * rows->outs + 7) / 8 * most);
    return (OutcomeParts){ .plain = (gsize)whole(rows->groups * (int64_t)k * rows->outs, LINE),
                           .y = (gsize)(rows->groups * batch_of(rows->groups) * stride_of(rows->outs) + LINE),
                           .w = (gsize)rows->groups * k * (gsize)whole(rows->outs, LINE),
                           .below = isfinite(lo) ? bytes : 0,
                           .above = isfinite(hi) ? bytes : 0 };
}

gsize hn_gram_outcome_bytes(const HnLinearRows *rows, gboolean constant, float lo, float hi, int64_t most)
{
    const OutcomeParts p = outcome_parts(rows, constant, lo, hi, most);
    return (p.plain + p.y + p.w) * sizeof(float) + p.below + p.above;
}

gboolean hn_gram_outcomes(HnGram *g, const HnLinearRows *rows, float lo, float hi, int64_t most, GError **error)
{
    const OutcomeParts p = outcome_parts(rows, g->constant, lo, hi, most);
    g->plain = hn_budget_alloc0(g->budget, hn_gram_outcome_bytes(rows, g->constant, lo, hi, most), error);
    if (g->plain == NULL)
        return FALSE;
    g->plain_y = g->plain + p.plain;
    g->w = g->plain_y + p.y;
    g->below = p.below > 0 ? (guint8 *)(g->w + p.w) : NULL;
    g->above = p.above > 0 ? (guint8 *)(g->w + p.w) + p.below : NULL;
    g->lo = lo;
    g->hi = hi;
    g->most = most;
    return TRUE;
}

/* Of the row of y that is held at `to`. */
static void note_outcomes(HnGram *g, int64_t to)
{
    const int64_t at = (g->taken + to - g->held) * bits_of(g);
    for (int64_t i = 0; i < g->groups; i++) {
        const float *y = y_of(g, i, to);
        float *plain = plain_of(g, i, to);
        for (int64_t j = 0; j < g->outs; j++) {
            const gboolean below = y[j] <= g->lo, above = !below && y[j] >= g->hi;
            const int64_t bit = i * g->outs + j;
            plain[j] = below || above ? 0 : y[j];
            if (below)
                g->below[at + bit / 8] |= (guint8)(1 << bit % 8);
            if (above)
                g->above[at + bit / 8] |= (guint8)(1 << bit % 8);
        }
    }
}

static gboolean is_set(const guint8 *bits, int64_t bit)
{
    return bits != NULL && (bits[bit / 8] >> bit % 8 & 1);
}

/* y[rows, columns] of results whose outcome is known becomes what is nearest to `made`, [8, wide], with the same one;
 * others are in the sums already. */
static void aim_tile(const HnGram *g, int64_t group, int64_t r, int64_t j, const float *made, int64_t wide)
{
    const int64_t columns = MIN(wide, g->outs - j);
    for (int64_t q = r; q < r + TALL; q++, made += wide) {
        const int64_t row = (g->taken - g->held + q) * bits_of(g);
        float *y = y_of(g, group, q) + j;
        for (int64_t c = 0; c < columns; c++) {
            const int64_t bit = group * g->outs + j + c;
            const gboolean is_row = q < g->held, below = is_row && is_set(g->below, row * 8 + bit),
                           above = is_row && is_set(g->above, row * 8 + bit);
            y[c] = below ? MIN(made[c], g->lo) : above ? MAX(made[c], g->hi) : 0;
        }
    }
}

/* Rows of one share. */
static void aim_share(void *data)
{
    const Split *s = data;
    const HnGram *g = s->g;
    const int id = hn_team_share()->id, level = hn_cpu_level();
    const int64_t wide = wide_at[level], ldw = whole(g->outs, LINE), from = at_tile((double)id / s->n, g->batch),
                  to = at_tile((double)(id + 1) / s->n, g->batch);
    for (int64_t i = 0; i < g->groups; i++)
        for (int64_t j = 0; j < g->outs; j += wide)
            for (int64_t r = from; r < to; r += TALL) {
                float made[TALL * LINE] = { 0 };
                tile_at[level](made, wide, x_of(g, i, r), 1, stride_of(g->k), g->w + i * g->k * ldw + j, ldw, g->k);
                aim_tile(g, i, r, j, made, wide);
            }
}

void hn_gram_aim(HnGram *g, const double *w)
{
    const int64_t ldw = whole(g->outs, LINE), n = g->groups * g->k;
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < g->outs; j++)
            g->w[i * ldw + j] = (float)w[i * g->outs + j];
    memcpy(g->b, g->plain, (gsize)(n * g->outs) * sizeof *g->b);
    g->aims = TRUE;
    g->taken = 0;
}

/* --- rows --------------------------------------------------------------------------------------------------------- */

static void run(HnTeamFn fn, void *data, int n)
{
    HnRegion region = { .fn = fn, .data = data, .n = n };
    hn_team_run(&region, FALSE);
}

static void add_held(HnGram *g, int threads)
{
    Split s = { g, g->k >= 64 ? MAX(threads, 1) : 1 };
    if (g->aims)
        run(aim_share, &s, s.n);
    run(add_share, &s, s.n);
    g->held = 0;
}

/* Row r of y, [groups * outs], to row `to` of what is held. */
static void get_wanted(const HnGram *g, const HnLinearRows *rows, const HnTensor *y, int64_t r, int64_t to)
{
    const float *from = y->data;
    const int64_t all = g->groups * g->outs, plane = rows->conv ? rows->plan.y_plane : 1;
    from += r / plane * all * plane + r % plane;
    for (int64_t i = 0; i < g->groups; i++) {
        float *row = y_of(g, i, to);
        for (int64_t c = 0; c < g->outs; c++)
            row[c] = from[(i * g->outs + c) * plane];
    }
}

static gboolean is_finite(const float *x, int64_t n)
{
    float sum = 0; /* NaN and infinity stay what they are */
    for (int64_t i = 0; i < n; i++)
        sum += x[i] * 0;
    return sum == 0;
}

/* Rows that are to be held, behind those that are. */
typedef struct {
    HnGram *g;
    const HnLinearRows *rows;
    const HnTensor *y;
    int64_t at[BATCH]; /* in x and y */
    gboolean bad[BATCH];
    int64_t n;
    float *row; /* [shares, groups * k] */
    int shares;
} Take;

/* Nothing is added of that many rows from `from` on. */
static void blank(const HnGram *g, int64_t group, int64_t from, int64_t n)
{
    memset(x_of(g, group, from), 0, (gsize)(n * stride_of(g->k)) * sizeof *g->x);
    if (g->wanted)
        memset(y_of(g, group, from), 0, (gsize)(n * stride_of(g->outs)) * sizeof *g->y);
    if (g->plain != NULL)
        memset(plain_of(g, group, from), 0, (gsize)(n * stride_of(g->outs)) * sizeof *g->y);
}

static void take_row(Take *t, int64_t i, float *row)
{
    HnGram *g = t->g;
    const int64_t k = g->k - g->constant, to = g->held + i;
    const gboolean wanted = g->wanted && !g->aims;
    hn_linear_rows_get(t->rows, t->at[i], row);
    t->bad[i] = !is_finite(row, g->groups * k);
    if (wanted)
        get_wanted(g, t->rows, t->y, t->at[i], to);
    for (int64_t group = 0; group < g->groups; group++) {
        float *x = x_of(g, group, to);
        memcpy(x, row + group * k, (gsize)k * sizeof *x);
        if (g->constant)
            x[k] = 1;
        t->bad[i] = t->bad[i] || (wanted && !is_finite(y_of(g, group, to), g->outs));
    }
    for (int64_t group = 0; group < g->groups && t->bad[i]; group++)
        blank(g, group, to, 1);
    if (g->plain != NULL && !g->aims && !t->bad[i])
        note_outcomes(g, to);
}

static void take_share(void *data)
{
    Take *t = data;
    const int id = hn_team_share()->id;
    for (int64_t i = t->n * id / t->shares; i < t->n * (id + 1) / t->shares; i++)
        take_row(t, i, t->row + id * t->rows->groups * t->rows->k);
}

static void take(Take *t, int threads)
{
    HnGram *g = t->g;
    const int64_t numbers = t->n * g->groups * (g->k + (g->wanted ? g->outs : 0));
    t->shares = numbers >= ALONE ? MAX(threads, 1) : 1;
    run(take_share, t, t->shares);
    for (int64_t i = 0; i < t->n && !g->aims; i++)
        g->rows += !t->bad[i];
    g->held += t->n;
    g->taken += t->n;
    t->n = 0;
    if (g->held == g->batch)
        add_held(g, threads);
}

void hn_gram_add(HnGram *g, const HnLinearRows *of, const HnTensor *x, const HnTensor *y, int64_t most, uint64_t seed,
                 int threads)
{
    HnLinearRows rows = *of;
    const int64_t all = hn_linear_rows_feed(&rows, x), n_x = rows.groups * rows.k, n_y = rows.groups * rows.outs;
    if (all == 0 || (g->wanted && !g->aims && (y == NULL || y->dtype != HN_F32 || y->n != all * n_y)))
        return;
    HnRng rng = hn_rng(seed);
    g_autofree float *row = g_new(float, (gsize)(n_x * MAX(threads, 1)));
    Take t = { .g = g, .rows = &rows, .y = y, .row = row };
    const int64_t n = MIN(all, MAX(most, 1));
    g_assert(g->plain == NULL || g->taken + n <= g->most);
    for (int64_t i = 0; i < n; i++) {
        const int64_t from = all * i / n, to = all * (i + 1) / n;
        t.at[t.n++] = n == all ? i : hn_rng_int(&rng, from, to - 1);
        if (g->held + t.n == g->batch || i + 1 == n)
            take(&t, threads);
    }
}

void hn_gram_settle(HnGram *g, int threads)
{
    if (g->held == 0)
        return;
    for (int64_t i = 0; i < g->groups; i++)
        blank(g, i, g->held, g->batch - g->held);
    add_held(g, threads);
}
