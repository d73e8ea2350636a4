#include "prune/spd.h"

#include <math.h>
#include <string.h>

#define HN_LOOPS "prune/spd_loops.h"
#include "base/every_level.h"

#define BLOCK 48 /* columns that are factored together */

static double (*const dot_at[])(const double *a, const double *b, int64_t n) = HN_TABLE_OF_LEVELS(dot);
static void (*const subtract_at[])(double *y, const double *x, int64_t ld, const double *t, int64_t m,
                                   int64_t n) = HN_TABLE_OF_LEVELS(subtract);

static void (*const subtract4_at[])(double *y, int64_t ldy, const double *x, int64_t ld, const double *t, int64_t ldt,
                                    int64_t m, int64_t n) = HN_TABLE_OF_LEVELS(subtract4);

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

/* Rows [i, i + n_rows) of a factor's inverse X in their place, those above being done; t[4, n] is room. */
static void invert_rows(double *l, int64_t n, int64_t i, int64_t n_rows, double *t, int level)
{
    for (int64_t r = 0; r < n_rows; r++) {
        double *row = l + (i + r) * n;
        memcpy(t + r * n, row, (gsize)(i + r + 1) * sizeof *t);
        memset(row, 0, (gsize)n * sizeof *row);
    }
    if (n_rows == 4)
        subtract4_at[level](l + i * n, n, l, n, t, n, i, i);
    for (int64_t r = 0; r < n_rows; r++) {
        double *row = l + (i + r) * n;
        if (n_rows < 4)
            subtract_at[level](row, l, n, t + r * n, i, i);
        subtract_at[level](row, l + i * n, n, t + r * n + i, r, i + r); /* those of the same four */
        const double d = 1 / t[r * n + i + r];
        for (int64_t j = 0; j < i + r; j++)
            row[j] *= d;
        row[i + r] = d;
    }
}

/* Rows [i, i + n_rows) of X' X, up to column i + n_rows; x is 0 above its diagonal. */
static void square_rows(const double *x, int64_t n, int64_t i, int64_t n_rows, double *inverse, double *t, int level)
{
    for (int64_t r = 0; r < n_rows; r++) {
        for (int64_t q = i; q < n; q++)
            t[r * n + q - i] = -x[q * n + i + r];
        memset(inverse + (i + r) * n, 0, (gsize)(i + n_rows) * sizeof *inverse);
    }
    if (n_rows == 4)
        subtract4_at[level](inverse + i * n, n, x + i * n, n, t, n, n - i, i + 4);
    for (int64_t r = 0; r < n_rows && n_rows < 4; r++)
        subtract_at[level](inverse + (i + r) * n, x + i * n, n, t + r * n, n - i, i + n_rows);
}

void hn_spd_invert(double *l, int64_t n, double *inverse)
{
    const int level = hn_cpu_level();
    g_autofree double *t = g_new(double, (gsize)n * 4 + 1);
    for (int64_t i = 0; i < n; i += 4)
        invert_rows(l, n, i, MIN(4, n - i), t, level);
    for (int64_t i = 0; i < n; i += 4)
        square_rows(l, n, i, MIN(4, n - i), inverse, t, level);
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
