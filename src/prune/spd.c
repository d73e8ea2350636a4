#include "prune/spd.h"

#include <math.h>
#include <string.h>

#define HN_LOOPS "prune/spd_loops.h"
#include "base/every_level.h"

#define BLOCK 48  /* rows and columns that are done together */
#define DEPTH 128 /* rows of x whose tile stays in the first cache */
#define WIDE 96   /* columns of a factor's inverse, whose rows above them are 0 */

static double (*const dot_at[])(const double *a, const double *b, int64_t n) = HN_TABLE_OF_LEVELS(dot);
static void (*const subtract_at[])(double *y, const double *x, int64_t ld, const double *t, int64_t m,
                                   int64_t n) = HN_TABLE_OF_LEVELS(subtract);
static void (*const subtract_tile_at[])(double *const *y, const double *x, const double *const *t,
                                        int64_t m) = HN_TABLE_OF_LEVELS(subtract_tile);
static const int64_t tile_at[] = { HN_TILE_plain, HN_TILE_avx2, HN_TILE_avx512 };

double hn_spd_dot(const double *a, const double *b, int64_t n)
{
    return dot_at[hn_cpu_level()](a, b, n);
}

void hn_spd_subtract(double *y, const double *x, int64_t ld, const double *t, int64_t m, int64_t n)
{
    subtract_at[hn_cpu_level()](y, x, ld, t, m, n);
}

static int64_t least_of(const HnSpdRow *four)
{
    return MIN(MIN(four[0].n, four[1].n), MIN(four[2].n, four[3].n));
}

/* Four rows' columns from j on, of which *strip has those of x from row `from` on. */
static void subtract_four(const HnSpdRow *four, int64_t j, const double *strip, int64_t from, int64_t depth, int level)
{
    double *const y[] = { four[0].y + j, four[1].y + j, four[2].y + j, four[3].y + j };
    const double *const t[] = { four[0].t + from, four[1].t + from, four[2].t + from, four[3].t + from };
    subtract_tile_at[level](y, strip, t, depth);
}

void hn_spd_subtract_rows(const HnSpdRow *rows, int64_t n_rows, const double *x, int64_t ld, int64_t m)
{
    const int level = hn_cpu_level();
    const int64_t tile = tile_at[level], fours = n_rows & ~(int64_t)3;
    int64_t widest = 0;
    double strip[DEPTH * HN_TILE_avx512]; /* a tile's columns of x, one row behind the other */
    for (int64_t r = 0; r < fours; r += 4)
        widest = MAX(widest, least_of(rows + r));
    for (int64_t from = 0; from < m; from += DEPTH) {
        const int64_t depth = MIN(DEPTH, m - from);
        for (int64_t j = 0; j + tile <= widest; j += tile) {
            for (int64_t i = 0; i < depth; i++)
                memcpy(strip + i * tile, x + (from + i) * ld + j, (gsize)tile * sizeof *strip);
            for (int64_t r = 0; r < fours; r += 4)
                if (j + tile <= least_of(rows + r))
                    subtract_four(rows + r, j, strip, from, depth, level);
        }
        for (int64_t r = 0; r < n_rows; r++) {
            const int64_t done = r < fours ? least_of(rows + (r & ~(int64_t)3)) / tile * tile : 0;
            subtract_at[level](rows[r].y + done, x + from * ld + done, ld, rows[r].t + from, depth, rows[r].n - done);
        }
    }
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
    g_autofree double *across = g_new(double, (gsize)n *BLOCK + 1); /* the block's columns, as rows */
    g_autofree HnSpdRow *rows = g_new(HnSpdRow, (gsize)n + 1);
    for (int64_t from = 0; from < n; from += BLOCK) {
        const int64_t to = MIN(from + BLOCK, n), left = n - to;
        if (!factor_block(a, n, from, to, level))
            return FALSE;
        for (int64_t i = to; i < n; i++) {
            rows[i - to] = (HnSpdRow){ a + i * n + to, a + i * n + from, i - to + 1 };
            for (int64_t j = from; j < to; j++)
                across[(j - from) * left + i - to] = a[i * n + j];
        }
        hn_spd_subtract_rows(rows, left, across, left, to - from);
    }
    return TRUE;
}

/* Rows [i, i + n_rows) of a factor's inverse X in their place, those above being done; t[BLOCK, n] is room. */
static void invert_rows(double *l, int64_t n, int64_t i, int64_t n_rows, double *t)
{
    HnSpdRow rows[BLOCK];
    for (int64_t r = 0; r < n_rows; r++) {
        double *row = l + (i + r) * n;
        memcpy(t + r * n, row, (gsize)(i + r + 1) * sizeof *t);
        memset(row, 0, (gsize)n * sizeof *row);
    }
    for (int64_t j = 0; j < i; j += WIDE) {
        for (int64_t r = 0; r < n_rows; r++)
            rows[r] = (HnSpdRow){ l + (i + r) * n + j, t + r * n + j, MIN(WIDE, i - j) };
        hn_spd_subtract_rows(rows, n_rows, l + j * n + j, n, i - j);
    }
    for (int64_t r = 0; r < n_rows; r++) {
        double *row = l + (i + r) * n;
        hn_spd_subtract(row, l + i * n, n, t + r * n + i, r, i + r); /* those of the same block */
        const double d = 1 / t[r * n + i + r];
        for (int64_t j = 0; j < i + r; j++)
            row[j] *= d;
        row[i + r] = d;
    }
}

/* Rows [i, i + n_rows) of X' X, up to the diagonal; x is 0 above its own. */
static void square_rows(const double *x, int64_t n, int64_t i, int64_t n_rows, double *inverse, double *t)
{
    HnSpdRow rows[BLOCK];
    for (int64_t q = i; q < n; q++)
        for (int64_t r = 0; r < n_rows; r++)
            t[r * n + q - i] = -x[q * n + i + r];
    for (int64_t r = 0; r < n_rows; r++) {
        rows[r] = (HnSpdRow){ inverse + (i + r) * n, t + r * n, i + r + 1 };
        memset(rows[r].y, 0, (gsize)rows[r].n * sizeof *inverse);
    }
    hn_spd_subtract_rows(rows, n_rows, x + i * n, n, n - i);
}

void hn_spd_invert(double *l, int64_t n, double *inverse)
{
    g_autofree double *t = g_new(double, (gsize)n *BLOCK + 1);
    for (int64_t i = 0; i < n; i += BLOCK)
        invert_rows(l, n, i, MIN(BLOCK, n - i), t);
    for (int64_t i = 0; i < n; i += BLOCK)
        square_rows(l, n, i, MIN(BLOCK, n - i), inverse, t);
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < i; j++)
            inverse[j * n + i] = inverse[i * n + j];
}

/* Rows [i, to) of x, from which others are taken off already: L x = what they are, or, backwards, L' x. */
static void solve_block(const double *l, int64_t n, double *x, int64_t m, int64_t i, int64_t to, gboolean backwards)
{
    double t[BLOCK];
    for (int64_t q = 0; q < to - i; q++) {
        const int64_t r = backwards ? to - 1 - q : i + q, first = backwards ? r + 1 : i;
        for (int64_t s = 0; s < q; s++)
            t[s] = backwards ? l[(first + s) * n + r] : l[r * n + first + s];
        hn_spd_subtract(x + r * m, x + first * m, m, t, q, m);
        for (int64_t k = 0; k < m; k++)
            x[r * m + k] /= l[r * n + r];
    }
}

void hn_spd_solve(const double *l, int64_t n, double *x, int64_t m)
{
    HnSpdRow rows[BLOCK];
    g_autofree double *t = g_new(double, (gsize)n *BLOCK + 1);
    for (int64_t i = 0; i < n; i += BLOCK) {
        const int64_t to = MIN(i + BLOCK, n);
        for (int64_t r = i; r < to; r++)
            rows[r - i] = (HnSpdRow){ x + r * m, l + r * n, m };
        hn_spd_subtract_rows(rows, to - i, x, m, i);
        solve_block(l, n, x, m, i, to, FALSE);
    }
    for (int64_t i = (n - 1) / BLOCK * BLOCK; i >= 0; i -= BLOCK) {
        const int64_t to = MIN(i + BLOCK, n);
        for (int64_t q = to; q < n; q++)
            for (int64_t r = i; r < to; r++)
                t[(r - i) * n + q - to] = l[q * n + r];
        for (int64_t r = i; r < to; r++)
            rows[r - i] = (HnSpdRow){ x + r * m, t + (r - i) * n, m };
        hn_spd_subtract_rows(rows, to - i, x + to * m, m, n - to);
        solve_block(l, n, x, m, i, to, TRUE);
    }
}
