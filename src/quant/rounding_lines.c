#include "quant/rounding_lines.h"

#include <math.h>
#include <string.h>

#define PASSES 24 /* over a row of weights, at most */
#define PAIR 128  /* sum of two neighbours that 16 bits hold after a multiplication by 255 */

#define HN_LOOPS "quant/rounding_lines_loops.h"
#include "base/every_level.h"

static void (*const add_at[])(float *g, const float *row, float d, int64_t k) = HN_TABLE_OF_LEVELS(add);
static void (*const add_row_at[])(float *const *g, const float *row, const float *d,
                                  int64_t k) = HN_TABLE_OF_LEVELS(add_row);
static void (*const add_rows_at[])(float *const *g, const float *h, const float *const *d,
                                   int64_t k) = HN_TABLE_OF_LEVELS(add_rows);
static int64_t (*const first_change_at[])(const float *scale, const float *g, const float *diagonal, const int *q,
                                          const int *zero, const float bounds[2], int64_t from,
                                          int64_t k) = HN_TABLE_OF_LEVELS(first_change);

static int room_for(const HnRoundLine *l, int64_t i)
{
    int other = 0;
    if (!l->pairs)
        return G_MAXINT;
    const int64_t at[] = { i - 1, i + 1, l->taps > 1 ? i - l->taps : -1, l->taps > 1 ? i + l->taps : -1 };
    for (guint k = 0; k < G_N_ELEMENTS(at); k++)
        if (at[k] >= 0 && at[k] < l->k)
            other = MAX(other, ABS(l->q[at[k]]));
    return PAIR - other;
}

/* The best integer for weight i while the others stay: the error falls by its distance from the present one. */
static int best_for(const HnRoundLine *l, int64_t i)
{
    const float here = l->scale[i] * (float)(l->q[i] - l->zero[i]), h = l->h[i * l->k + i];
    const float x = rintf((here - l->g[i] / h) / l->scale[i]) + (float)l->zero[i];
    const int q = (int)fminf(fmaxf(x, (float)l->least), (float)l->most), room = room_for(l, i);
    return ABS(q) <= room ? q : l->q[i];
}

void hn_round_multiply(const HnRoundLine *l, int n, int level)
{
    const int64_t k = l->k;
    int64_t i = 0;
    for (int c = 0; c < n; c++)
        memset(l[c].g, 0, (gsize)k * sizeof *l->g);
    if (n == HN_ROUND_LINES) {
        float *const g[HN_ROUND_LINES] = { l[0].g, l[1].g, l[2].g, l[3].g };
        for (; i + 4 <= k; i += 4)
            add_rows_at[level](g, l->h + i * k,
                               (const float *const[HN_ROUND_LINES]){ l[0].d + i, l[1].d + i, l[2].d + i, l[3].d + i },
                               k);
    }
    for (; i < k; i++)
        for (int c = 0; c < n; c++)
            add_at[level](l[c].g, l->h + i * k, l[c].d[i], k);
}

static float distance(const HnRoundLine *l, int64_t i)
{
    return l->scale[i] * (float)(l->q[i] - l->zero[i]) - l->w[i];
}

void hn_round_gradient(const HnRoundLine *l, int n, int level)
{
    for (int c = 0; c < n; c++)
        for (int64_t i = 0; i < l->k; i++)
            l[c].d[i] = distance(&l[c], i);
    hn_round_multiply(l, n, level);
}

double hn_round_error(const HnRoundLine *l)
{
    double sum = 0;
    for (int64_t i = 0; i < l->k; i++)
        sum += (double)distance(l, i) * (double)l->g[i];
    return fmax(sum, 0);
}

static void settle(const HnRoundLine *l, int level)
{
    const float bounds[] = { (float)l->least, (float)l->most };
    for (int pass = 0; pass < PASSES; pass++) {
        gboolean changed = FALSE;
        for (int64_t i = 0; i < l->k; i++) {
            i = first_change_at[level](l->scale, l->g, l->diagonal, l->q, l->zero, bounds, i, l->k);
            const int q = i < l->k ? best_for(l, i) : 0;
            if (i == l->k || q == l->q[i])
                continue;
            add_at[level](l->g, l->h + i * l->k, l->scale[i] * (float)(q - l->q[i]), l->k);
            l->q[i] = q;
            changed = TRUE;
        }
        if (!changed)
            break;
    }
}

/* Integer i makes up for those before it. */
static void diffuse_one(const HnRoundLine *l, int64_t i)
{
    const float x = rintf((l->w[i] - l->g[i] / l->diagonal[i]) / l->scale[i]) + (float)l->zero[i];
    const int q = (int)fminf(fmaxf(x, (float)l->least), (float)l->most);
    if (!l->pairs || ABS(q) <= ABS(l->q[i])) /* else what was there fits its neighbours */
        l->q[i] = q;
}

/* Each integer makes up for those before it, as if those behind it were exact. */
static void diffuse(const HnRoundLine *l, int n, int level)
{
    for (int c = 0; c < n; c++)
        memset(l[c].g, 0, (gsize)l->k * sizeof *l->g);
    for (int64_t i = 0; i < l->k; i++) {
        float d[HN_ROUND_LINES], *g[HN_ROUND_LINES];
        for (int c = 0; c < n; c++) {
            diffuse_one(&l[c], i);
            d[c] = distance(&l[c], i);
            g[c] = l[c].g;
        }
        if (n == HN_ROUND_LINES)
            add_row_at[level](g, l->h + i * l->k, d, l->k);
        for (int c = 0; c < n && n < HN_ROUND_LINES; c++)
            add_at[level](g[c], l->h + i * l->k, d[c], l->k);
    }
}

/* What l has stays, where it is better. */
static void keep_better(const HnRoundLine *l, double *after)
{
    const double now = hn_round_error(l);
    if (!(now < *after))
        return;
    memcpy(l->best, l->q, (gsize)l->k * sizeof *l->q);
    *after = now;
}

void hn_round_lines(const HnRoundLine *l, int n, int level, double *after)
{
    const gsize bytes = (gsize)l->k * sizeof *l->q;
    g_autofree int *start = g_malloc(bytes * (gsize)n);
    for (int c = 0; c < n; c++) {
        memcpy(l[c].best, l[c].q, bytes);
        memcpy(start + c * l->k, l[c].q, bytes);
        after[c] = hn_round_error(&l[c]);
        settle(&l[c], level);
        keep_better(&l[c], &after[c]);
        memcpy(l[c].q, start + c * l->k, bytes);
    }
    diffuse(l, n, level);
    for (int c = 0; c < n; c++)
        settle(&l[c], level);
    hn_round_gradient(l, n, level); /* anew: sums of many small steps drift */
    for (int c = 0; c < n; c++)
        keep_better(&l[c], &after[c]);
}
