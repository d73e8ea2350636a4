#include "check/histogram.h"

#include <math.h>
#include <string.h>

#include "base/half.h"
#include "ir/tensor.h"
#include "op/range.h"

#define BINS HN_HISTOGRAM_BINS
#define BLOCK 1024            /* elements that are looked at, then counted, while they are in the first cache */
#define MANY 16384            /* elements from which on tables of their own pay */
#define TABLE (2 * BINS + 96) /* not a multiple of 4 KB, which would make bins of two tables look like one */
#define TABLES 4              /* neighbours are often alike: a table each, so that no counter waits for the last one */
#define FLUSH ((int64_t)65000 * TABLES)

#define HN_LOOPS "check/histogram_loops.h"
#include "base/every_level.h"

static void (*const survey_at[])(const float *x, int n, int32_t *lo, int32_t *hi, int32_t *odd,
                                 int32_t *zero) = HN_TABLE_OF_LEVELS(survey);
static void (*const place_at[])(const float *x, int n, float scale, uint16_t *at) = HN_TABLE_OF_LEVELS(place);

/* One call of hn_histogram_add(). */
typedef struct {
    HnHistogram *h;
    int level;
    uint16_t (*table)[TABLE]; /* [TABLES]; NULL: bins are counted in directly */
    int64_t in_tables;        /* elements */
} Feed;

void hn_histogram_init(HnHistogram *h, HnBudget *budget)
{
    *h = (HnHistogram){ .budget = budget };
    hn_histogram_reset(h);
}

void hn_histogram_clear(HnHistogram *h)
{
    for (int i = 0; i < 2; i++) {
        hn_budget_free(h->budget, h->bins[i]);
        h->bins[i] = NULL;
    }
    hn_histogram_reset(h);
}

void hn_histogram_reset(HnHistogram *h)
{
    h->n = h->n_zero = h->n_nan = h->n_infinite = h->n_mask = 0;
    h->min = h->mask_min = INFINITY;
    h->max = -INFINITY;
    h->exponent = HN_HISTOGRAM_LOWEST;
    for (int i = 0; i < 2; i++)
        if (h->bins[i] != NULL)
            memset(h->bins[i], 0, BINS * sizeof(uint64_t));
}

gsize hn_histogram_bytes(void)
{
    return 2 * BINS * sizeof(uint64_t);
}

double hn_histogram_width(const HnHistogram *h)
{
    return ldexp(1.0 / BINS, h->exponent);
}

static gboolean need_row(HnHistogram *h, int sign, GError **error)
{
    return h->bins[sign] != NULL ||
           (h->bins[sign] = hn_budget_alloc0(h->budget, BINS * sizeof(uint64_t), error)) != NULL;
}

static void widen(HnHistogram *h, int exponent)
{
    const int by = MIN(exponent - h->exponent, 31);
    for (int sign = 0; sign < 2 && h->n > 0; sign++) {
        uint64_t *b = h->bins[sign];
        for (int i = 1; i < BINS && b != NULL; i++) {
            const uint64_t n = b[i];
            b[i] = 0;
            b[i >> by] += n;
        }
    }
    h->exponent = exponent;
}

static void flush(Feed *f)
{
    for (int sign = 0; sign < 2 && f->in_tables > 0; sign++) {
        uint64_t *b = f->h->bins[sign];
        for (int i = 0; i < BINS && b != NULL; i++)
            for (int t = 0; t < TABLES; t++)
                b[i] += f->table[t][sign * BINS + i];
    }
    if (f->in_tables > 0)
        memset(f->table, 0, TABLES * sizeof *f->table);
    f->in_tables = 0;
}

static float number_of(int32_t key)
{
    return hn_f32_from_bits((uint32_t)(key ^ ((key >> 31) & INT32_MAX)));
}

static void count(Feed *f, const uint16_t *at, int n)
{
    uint64_t *const *bins = f->h->bins;
    int i = 0;
    if (f->table == NULL) {
        for (; i < n; i++)
            bins[at[i] / BINS][at[i] % BINS]++;
        return;
    }
    for (; i + 4 <= n; i += 4) {
        uint64_t four;
        memcpy(&four, at + i, sizeof four);
        f->table[0][four & 0xffff]++;
        f->table[1][four >> 16 & 0xffff]++;
        f->table[2][four >> 32 & 0xffff]++;
        f->table[3][four >> 48]++;
    }
    for (; i < n; i++)
        f->table[0][at[i]]++;
    f->in_tables += n;
    if (f->in_tables > FLUSH)
        flush(f);
}

/* Counts what is in no bin and leaves it out. Returns how many are left, in `left`. */
static int sort_out(HnHistogram *h, const float *x, int n, float *left)
{
    int m = 0;
    for (int i = 0; i < n; i++) {
        if (isnan(x[i])) {
            h->n_nan++;
        } else if (isinf(x[i])) {
            h->n_infinite++;
        } else if (x[i] <= (float)HN_MASK) {
            h->n_mask++;
            h->mask_min = MIN(h->mask_min, x[i]);
        } else {
            left[m++] = x[i];
        }
    }
    return m;
}

/* n <= BLOCK */
static gboolean feed(Feed *f, const float *x, int n, GError **error)
{
    HnHistogram *h = f->h;
    float left[BLOCK];
    uint16_t at[BLOCK];
    int32_t least, largest, odd, zero;
    survey_at[f->level](x, n, &least, &largest, &odd, &zero);
    if (odd > 0) {
        n = sort_out(h, x, n, left);
        x = left;
    }
    if (n == 0)
        return TRUE;
    /* -0 counts as 0 */
    const float lo = least == -1 ? 0 : number_of(least), hi = largest == -1 ? 0 : number_of(largest);
    const double most = fmax(fabs((double)lo), fabs((double)hi));
    int exponent = HN_HISTOGRAM_LOWEST;
    if (most > 0)
        frexp(most, &exponent);
    if (exponent > h->exponent) {
        flush(f);
        widen(h, exponent);
    }
    if (!need_row(h, 0, error) || (lo < 0 && !need_row(h, 1, error)))
        return FALSE;
    place_at[f->level](x, n, ldexpf(BINS, -h->exponent), at);
    count(f, at, n);
    h->n += (uint64_t)n;
    h->n_zero += (uint64_t)zero;
    h->min = MIN(h->min, lo);
    h->max = MAX(h->max, hi);
    return TRUE;
}

/* Elements as f32; n <= BLOCK. */
static void convert(HnDtype dtype, const void *from, int n, float *to)
{
    if (dtype == HN_F16) {
        hn_f16_to_f32_n(to, from, (size_t)n);
    } else if (dtype == HN_BF16) {
        hn_bf16_to_f32_n(to, from, (size_t)n);
    } else if (dtype == HN_F64) {
        for (int i = 0; i < n; i++)
            to[i] = (float)((const double *)from)[i];
    } else {
        memcpy(to, from, (size_t)n * sizeof *to);
    }
}

gboolean hn_histogram_add(HnHistogram *h, HnDtype dtype, const void *data, int64_t rows, int64_t width, int64_t pitch,
                          GError **error)
{
    const size_t size = (size_t)hn_dtype_size(dtype);
    uint16_t tables[TABLES][TABLE];
    float block[BLOCK];
    int held = 0; /* elements in block */
    g_return_val_if_fail(hn_dtype_in(dtype, HN_T_FLOATS), FALSE);
    if (pitch == width && rows > 1) {
        width *= rows;
        rows = 1;
    }
    Feed f = { .h = h, .level = hn_cpu_level() };
    if (rows * width >= MANY) {
        f.table = tables;
        memset(tables, 0, sizeof tables);
    }
    gboolean ok = TRUE;
    for (int64_t r = 0; r < rows && ok; r++) {
        const char *row = (const char *)data + (size_t)(r * pitch) * size;
        for (int64_t i = 0; i < width && ok;) {
            const int n = (int)MIN(width - i, BLOCK - held);
            if (dtype == HN_F32 && n == BLOCK) {
                ok = feed(&f, (const float *)(const void *)row + i, n, error);
            } else {
                convert(dtype, row + (size_t)i * size, n, block + held);
                held += n;
            }
            if (held == BLOCK) {
                ok = ok && feed(&f, block, held, error);
                held = 0;
            }
            i += n;
        }
    }
    ok = ok && (held == 0 || feed(&f, block, held, error));
    flush(&f);
    return ok;
}

gboolean hn_histogram_merge(HnHistogram *h, const HnHistogram *from, GError **error)
{
    for (int sign = 0; sign < 2; sign++)
        if (from->n > 0 && from->bins[sign] != NULL && !need_row(h, sign, error))
            return FALSE;
    if (from->n > 0 && from->exponent > h->exponent)
        widen(h, from->exponent);
    const int by = MIN(h->exponent - from->exponent, 31);
    for (int sign = 0; sign < 2; sign++)
        for (int i = 0; i < BINS && from->n > 0 && from->bins[sign] != NULL; i++)
            h->bins[sign][i >> by] += from->bins[sign][i];
    h->n += from->n;
    h->n_zero += from->n_zero;
    h->n_nan += from->n_nan;
    h->n_infinite += from->n_infinite;
    h->n_mask += from->n_mask;
    h->min = MIN(h->min, from->min);
    h->max = MAX(h->max, from->max);
    h->mask_min = MIN(h->mask_min, from->mask_min);
    return TRUE;
}
