#include "prune/zeros_solve.h"

#include <string.h>

#include "base/team.h"

#define HN_LOOPS "prune/zeros_solve_loops.h"
#include "base/every_level.h"

#define ENOUGH 1e-6 /* residuals that are such a part of what they were need no further step */

static void (*const tile_at[])(float *y, const float *h, const float *x, int64_t k) = HN_TABLE_OF_LEVELS(tile);

/* Numbers of all outputs lie in blocks of WIDE outputs, [blocks, rows, WIDE]; rows and outputs that are none are 0. */
struct HnZerosSystem {
    int64_t k, outs, rows, blocks; /* rows: k, up to whole tiles */
    float *h;                      /* [rows, k] */
    float *x, *residual, *way, *image;
    guint8 *zero;
    double *energy, *before, *step; /* by output */
};

HnZerosSystem *hn_zeros_system_new(const double *h, int64_t k, int64_t outs)
{
    const int64_t rows = (k + TILE - 1) / TILE * TILE, blocks = (outs + WIDE - 1) / WIDE;
    const gsize n = (gsize)(blocks * rows * WIDE);
    float *memory = g_try_malloc0_n((gsize)(rows * k) + 4 * n, sizeof *memory);
    if (memory == NULL)
        return NULL;
    HnZerosSystem *s = g_new(HnZerosSystem, 1);
    *s = (HnZerosSystem){ .k = k, .outs = outs, .rows = rows, .blocks = blocks, .h = memory };
    s->x = memory + rows * k;
    s->residual = s->x + n;
    s->way = s->residual + n;
    s->image = s->way + n;
    s->zero = g_malloc0(n);
    s->energy = g_new0(double, 3 * (gsize)(blocks * WIDE));
    s->before = s->energy + blocks * WIDE;
    s->step = s->before + blocks * WIDE;
    for (int64_t i = 0; i < k; i++)
        for (int64_t j = 0; j <= i; j++)
            s->h[i * k + j] = s->h[j * k + i] = (float)h[i * k + j];
    return s;
}

void hn_zeros_system_free(HnZerosSystem *s)
{
    if (s == NULL)
        return;
    g_free(s->h);
    g_free(s->zero);
    g_free(s->energy);
    g_free(s);
}

/* --- a block of outputs ------------------------------------------------------------------------------------------- */

/* Energy: squares of the residual, by the diagonal of h. */
static void add_energy(const HnZerosSystem *s, int64_t at, int64_t i, double *energy)
{
    const double d = s->h[i * (s->k + 1)];
    for (int c = 0; c < WIDE; c++)
        energy[c] += (double)s->residual[at + c] * (double)s->residual[at + c] / d;
}

static void start(const HnZerosSystem *s, const double *b, int64_t block)
{
    double *energy = s->energy + block * WIDE;
    memset(energy, 0, WIDE * sizeof *energy);
    for (int64_t i = 0; i < s->k; i++) {
        const int64_t at = (block * s->rows + i) * WIDE;
        for (int c = 0; c < WIDE; c++) {
            const int64_t q = block * WIDE + c;
            s->residual[at + c] = q < s->outs && !s->zero[at + c] ? (float)b[i * s->outs + q] - s->image[at + c] : 0;
        }
        add_energy(s, at, i, energy);
    }
}

/* way = residual by the diagonal + (energy / before) way */
static void turn(const HnZerosSystem *s, gboolean first, int64_t block)
{
    double *energy = s->energy + block * WIDE, *before = s->before + block * WIDE;
    float on[WIDE];
    for (int c = 0; c < WIDE; c++)
        on[c] = first || before[c] <= 0 ? 0 : (float)(energy[c] / before[c]);
    for (int64_t i = 0; i < s->k; i++) {
        const int64_t at = (block * s->rows + i) * WIDE;
        const float d = s->h[i * (s->k + 1)];
        for (int c = 0; c < WIDE; c++)
            s->way[at + c] = s->residual[at + c] / d + on[c] * s->way[at + c];
    }
    memcpy(before, energy, WIDE * sizeof *before);
}

static void go(const HnZerosSystem *s, int64_t block)
{
    double *energy = s->energy + block * WIDE, *step = s->step + block * WIDE, size[WIDE] = { 0 };
    for (int64_t i = 0; i < s->k; i++) {
        const int64_t at = (block * s->rows + i) * WIDE;
        for (int c = 0; c < WIDE; c++)
            size[c] += (double)s->way[at + c] * (double)s->image[at + c]; /* way is 0 where x has to be */
    }
    for (int c = 0; c < WIDE; c++)
        step[c] = size[c] > 0 ? energy[c] / size[c] : 0;
    memset(energy, 0, WIDE * sizeof *energy);
    for (int64_t i = 0; i < s->k; i++) {
        const int64_t at = (block * s->rows + i) * WIDE;
        for (int c = 0; c < WIDE; c++) {
            s->x[at + c] += (float)step[c] * s->way[at + c];
            s->residual[at + c] = s->zero[at + c] ? 0 : s->residual[at + c] - (float)step[c] * s->image[at + c];
        }
        add_energy(s, at, i, energy);
    }
}

/* --- all outputs -------------------------------------------------------------------------------------------------- */

typedef struct {
    const HnZerosSystem *s;
    const double *b;
    const float *x;
    gboolean first;
    int n; /* shares */
} Work;

/* Those of n that the calling thread does. */
static void part_of(const Work *w, int64_t n, int64_t *from, int64_t *to)
{
    const int id = hn_team_share()->id;
    *from = n * id / w->n;
    *to = n * (id + 1) / w->n;
}

/* image = h x, for tiles of rows */
static void multiply(void *data)
{
    const Work *w = data;
    const HnZerosSystem *s = w->s;
    const int level = hn_cpu_level();
    int64_t from, to;
    part_of(w, s->rows / TILE, &from, &to);
    for (int64_t tile = from; tile < to; tile++)
        for (int64_t block = 0; block < s->blocks; block++)
            tile_at[level](s->image + (block * s->rows + tile * TILE) * WIDE, s->h + tile * TILE * s->k,
                           w->x + block * s->rows * WIDE, s->k);
}

static void start_all(void *data)
{
    const Work *w = data;
    int64_t from, to;
    part_of(w, w->s->blocks, &from, &to);
    for (int64_t block = from; block < to; block++)
        start(w->s, w->b, block);
}

static void turn_all(void *data)
{
    const Work *w = data;
    int64_t from, to;
    part_of(w, w->s->blocks, &from, &to);
    for (int64_t block = from; block < to; block++)
        turn(w->s, w->first, block);
}

static void go_all(void *data)
{
    const Work *w = data;
    int64_t from, to;
    part_of(w, w->s->blocks, &from, &to);
    for (int64_t block = from; block < to; block++)
        go(w->s, block);
}

static void run(Work *w, HnTeamFn fn)
{
    HnRegion region = { .fn = fn, .data = w, .n = w->n };
    hn_team_run(&region, FALSE);
}

/* --- solving ------------------------------------------------------------------------------------------------------ */

static double energy_of(const HnZerosSystem *s)
{
    double sum = 0;
    for (int64_t q = 0; q < s->outs; q++)
        sum += s->energy[q];
    return sum;
}

/* w to blocks, or back. */
static void put(const HnZerosSystem *s, const guint8 *zero, const double *w)
{
    for (int64_t i = 0; i < s->k; i++)
        for (int64_t q = 0; q < s->outs; q++) {
            const int64_t at = (q / WIDE * s->rows + i) * WIDE + q % WIDE;
            s->zero[at] = zero[i * s->outs + q];
            s->x[at] = s->zero[at] ? 0 : (float)w[i * s->outs + q];
        }
}

static void get(const HnZerosSystem *s, double *w)
{
    for (int64_t i = 0; i < s->k; i++)
        for (int64_t q = 0; q < s->outs; q++)
            w[i * s->outs + q] = s->x[(q / WIDE * s->rows + i) * WIDE + q % WIDE];
}

void hn_zeros_system_solve(HnZerosSystem *s, const double *b, const guint8 *zero, double *w, int steps, int threads)
{
    Work work = { .s = s, .b = b, .x = s->x, .n = MAX(threads, 1) };
    put(s, zero, w);
    run(&work, multiply);
    run(&work, start_all);
    const double most = ENOUGH * ENOUGH * energy_of(s);
    work.x = s->way;
    for (int i = 0; i < steps && energy_of(s) > most; i++) {
        work.first = i == 0;
        run(&work, turn_all);
        run(&work, multiply);
        run(&work, go_all);
    }
    get(s, w);
}
