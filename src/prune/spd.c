#include "prune/spd.h"

#include <math.h>
#include <string.h>

#define HN_LEVEL plain
#include "prune/spd_loops.h"
#undef HN_LEVEL
#define HN_LEVEL avx2
#include "prune/spd_loops.h"
#undef HN_LEVEL
#define HN_LEVEL avx512
#include "prune/spd_loops.h"
#undef HN_LEVEL

#define BLOCK 48 /* columns that are factored together */

static double (*const dot_at[])(const double *a, const double *b, int64_t n) = HN_TABLE_OF_LEVELS(dot);
static void (*const subtract_at[])(double *y, const double *x, int64_t ld, const double *t, int64_t m,
                                   int64_t n) = HN_TABLE_OF_LEVELS(subtract);

void hn_spd_subtract(double *y, const double *x, int64_t ld, const double *t, int64_t m, int64_t n)
{
    subtract_at[hn_cpu_level()](y, x, ld, t, m, n);
}

/* Columns [from, to) of rows from `from` on, of which all columns before are taken off already. */
static gboolean factor_block(double *a, int64_t n, int64_t from, int64_t to, int level)
{
    for (int64_t j = from; j < to; j++) {
        double *row = a + j * n;
        const double d = row[j] - dot_at[level](row + from, row + from, j - from);
        if (!(d > 0) || !isfinite(d))
            return FALSE;
        row[j] = sqrt(d);
        for (int64_t i = j + 1; i < n; i++)
            a[i * n + j] = (a[i * n + j] - dot_at[level](a + i * n + from, row + from, j - from)) / row[j];
    }
    return TRUE;
}

gboolean hn_spd_factor(double *a, int64_t n)
{
    const int level = hn_cpu_level();
    for (int64_t from = 0; from < n; from += BLOCK) {
        const int64_t to = MIN(from + BLOCK, n);
        if (!factor_block(a, n, from, to, level))
            return FALSE;
        for (int64_t i = to; i < n; i++)
            for (int64_t j = to; j <= i; j++)
                a[i * n + j] -= dot_at[level](a + i * n + from, a + j * n + from, to - from);
    }
    return TRUE;
}

void hn_spd_invert(double *l, int64_t n, double *inverse)
{
    const int level = hn_cpu_level();
    g_autofree double *t = g_new(double, (gsize)n + 1);
    for (int64_t i = 0; i < n; i++) { /* the factor's inverse X, row by row: row i is made of those above */
        double *row = l + i * n;
        const double d = 1 / row[i];
        for (int64_t j = 0; j < i; j++)
            t[j] = row[j] * d;
        memset(row, 0, (gsize)n * sizeof *row);
        subtract_at[level](row, l, n, t, i, i);
        row[i] = d;
    }
    for (int64_t i = 0; i < n; i++) { /* X' X */
        double *row = inverse + i * n;
        for (int64_t r = i; r < n; r++)
            t[r - i] = -l[r * n + i];
        memset(row, 0, (gsize)(i + 1) * sizeof *row);
        subtract_at[level](row, l + i * n, n, t, n - i, i + 1);
    }
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < i; j++)
            inverse[j * n + i] = inverse[i * n + j];
}

void hn_spd_solve(const double *l, int64_t n, double *x, int64_t m)
{
    const int level = hn_cpu_level();
    g_autofree double *t = g_new(double, (gsize)n + 1);
    for (int64_t i = 0; i < n; i++) {
        subtract_at[level](x + i * m, x, m, l + i * n, i, m);
        for (int64_t k = 0; k < m; k++)
            x[i * m + k] /= l[i * n + i];
    }
    for (int64_t i = n; i-- > 0;) {
        for (int64_t r = i + 1; r < n; r++)
            t[r - i - 1] = l[r * n + i];
        subtract_at[level](x + i * m, x + (i + 1) * m, m, t, n - i - 1, m);
        for (int64_t k = 0; k < m; k++)
            x[i * m + k] /= l[i * n + i];
    }
}
