/* Resizing as Pillow does (image.h): Contribution of source pixels to each result by a filter's kernel, whose support
 * is stretched by the factor of reduction, in 8-bit fixed point. */
#include <math.h>
#include <string.h>

#include "base/error.h"
#include "data/image.h"

#define BITS 22 /* of a weight's fraction: sums of products with 8 bits stay within 32 */

/* Where the kernel of one result begins and how many pixels it covers; its weights. */
typedef struct {
    int n;      /* results */
    int widest; /* pixels under a kernel, at most */
    int *first, *count;
    gint32 *weight; /* [n][widest] */
} Kernels;

static double triangle(double x)
{
    return MAX(0, 1 - fabs(x));
}

/* Keys' cubic convolution with a = -0.5. */
static double cubic(double x)
{
    const double a = -0.5;
    x = fabs(x);
    if (x < 1)
        return ((a + 2) * x - (a + 3)) * x * x + 1;
    return x < 2 ? ((x - 5) * x + 8) * x * a - 4 * a : 0;
}

/* The weights of result i, which add up to 1. */
static void make_kernel(Kernels *k, int i, int from, double ratio, HnFilter filter, double *sum)
{
    const double stretch = MAX(ratio, 1), reach = (filter == HN_FILTER_BICUBIC ? 2 : 1) * stretch;
    const double centre = (i + 0.5) * ratio;
    const int first = (int)MAX(centre - reach + 0.5, 0), end = (int)MIN(centre + reach + 0.5, from);
    double total = 0;
    for (int x = first; x < end; x++) {
        const double at = (x - centre + 0.5) / stretch;
        sum[x - first] = filter == HN_FILTER_BICUBIC ? cubic(at) : triangle(at);
        total += sum[x - first];
    }
    k->first[i] = first;
    k->count[i] = end - first;
    for (int x = 0; x < end - first; x++) {
        const double w = total != 0 ? sum[x] / total : 0;
        k->weight[(gsize)i * (gsize)k->widest + (gsize)x] = (gint32)(w * (1 << BITS) + (w < 0 ? -0.5 : 0.5));
    }
}

static gboolean kernels_make(Kernels *k, int from, int to, HnFilter filter, HnBudget *budget, GError **error)
{
    const double ratio = (double)from / to, reach = (filter == HN_FILTER_BICUBIC ? 2 : 1) * MAX(ratio, 1);
    *k = (Kernels){ .n = to, .widest = (int)ceil(reach) * 2 + 1 };
    k->weight = hn_budget_alloc_n(budget, (gsize)to * (gsize)k->widest, sizeof *k->weight, error);
    double *sum = hn_budget_alloc_n(budget, (gsize)k->widest, sizeof *sum, k->weight != NULL ? error : NULL);
    k->first = g_new(int, to);
    k->count = g_new(int, to);
    const gboolean ok = k->weight != NULL && sum != NULL;
    for (int i = 0; ok && i < to; i++)
        make_kernel(k, i, from, ratio, filter, sum);
    if (sum != NULL)
        hn_budget_free(budget, sum);
    return ok;
}

static void kernels_clear(Kernels *k, HnBudget *budget)
{
    if (k->weight != NULL)
        hn_budget_free(budget, k->weight);
    g_free(k->first);
    g_free(k->count);
}

static guint8 rounded(gint64 sum)
{
    return (guint8)CLAMP((sum + (1 << (BITS - 1))) >> BITS, 0, 255);
}

/* Each row of m by k: [height][k->n]. */
static HnImage *across(const HnImage *m, const Kernels *k, GError **error)
{
    HnImage *t = hn_image_new(k->n, m->height, m->channels, m->budget, error);
    const int c = m->channels;
    for (int y = 0; t != NULL && y < m->height; y++) {
        const guint8 *from = m->data + (gsize)y * (gsize)m->width * (gsize)c;
        guint8 *to = t->data + (gsize)y * (gsize)k->n * (gsize)c;
        for (int i = 0; i < k->n; i++) {
            const gint32 *w = k->weight + (gsize)i * (gsize)k->widest;
            for (int ch = 0; ch < c; ch++) {
                gint64 sum = 0;
                for (int x = 0; x < k->count[i]; x++)
                    sum += (gint64)w[x] * from[(k->first[i] + x) * c + ch];
                *to++ = rounded(sum);
            }
        }
    }
    return t;
}

/* Columns: a row of results is a sum of rows. */
static HnImage *down(const HnImage *m, const Kernels *k, GError **error)
{
    HnImage *t = hn_image_new(m->width, k->n, m->channels, m->budget, error);
    const gsize row = (gsize)m->width * (gsize)m->channels;
    gint32 *sum = t != NULL ? hn_budget_alloc_n(m->budget, row, sizeof *sum, error) : NULL;
    for (int i = 0; sum != NULL && i < k->n; i++) {
        memset(sum, 0, row * sizeof *sum);
        for (int y = 0; y < k->count[i]; y++) {
            const gint32 w = k->weight[(gsize)i * (gsize)k->widest + (gsize)y];
            const guint8 *from = m->data + (gsize)(k->first[i] + y) * row;
            for (gsize x = 0; x < row; x++)
                sum[x] += w * from[x];
        }
        for (gsize x = 0; x < row; x++)
            t->data[(gsize)i * row + x] = rounded(sum[x]);
    }
    if (sum == NULL) {
        hn_image_free(t);
        return NULL;
    }
    hn_budget_free(m->budget, sum);
    return t;
}

static HnImage *nearest(const HnImage *m, int width, int height, GError **error)
{
    HnImage *t = hn_image_new(width, height, m->channels, m->budget, error);
    const gsize c = (gsize)m->channels;
    const double across_by = (double)m->width / width, down_by = (double)m->height / height;
    for (int y = 0; t != NULL && y < height; y++)
        for (int x = 0; x < width; x++) {
            const int from_x = MIN((int)((x + 0.5) * across_by), m->width - 1);
            const int from_y = MIN((int)((y + 0.5) * down_by), m->height - 1);
            memcpy(t->data + ((gsize)y * (gsize)width + (gsize)x) * c,
                   m->data + ((gsize)from_y * (gsize)m->width + (gsize)from_x) * c, c);
        }
    return t;
}

/* Colours times alpha, or, `back`, what they were before that: what cannot be seen has no part in a mean of colours. */
static void multiply_alpha(HnImage *m, gboolean back)
{
    const gsize n = (gsize)m->width * (gsize)m->height, c = (gsize)m->channels;
    for (gsize i = 0; i < n; i++) {
        guint8 *pixel = m->data + i * c;
        const guint alpha = pixel[c - 1];
        for (gsize k = 0; k + 1 < c && (!back || alpha > 0); k++) {
            const guint x = pixel[k] * alpha + 128;
            pixel[k] = (guint8)(back ? MIN(pixel[k] * 255u / alpha, 255) : (x + (x >> 8)) >> 8);
        }
    }
}

static HnImage *filtered(const HnImage *m, int width, int height, HnFilter filter, GError **error)
{
    Kernels rows = { 0 }, columns = { 0 };
    HnImage *wide = NULL, *done = NULL;
    if (kernels_make(&rows, m->width, width, filter, m->budget, error) &&
        kernels_make(&columns, m->height, height, filter, m->budget, error))
        wide = across(m, &rows, error);
    if (wide != NULL)
        done = down(wide, &columns, error);
    hn_image_free(wide);
    kernels_clear(&rows, m->budget);
    kernels_clear(&columns, m->budget);
    return done;
}

HnImage *hn_image_resize(const HnImage *m, int width, int height, HnFilter filter, GError **error)
{
    if (filter == HN_FILTER_NEAREST)
        return nearest(m, width, height, error);
    if (m->channels % 2 != 0)
        return filtered(m, width, height, filter, error);
    HnImage *copy = hn_image_crop(m, 0, 0, m->width, m->height, error), *t = NULL;
    if (copy != NULL) {
        multiply_alpha(copy, FALSE);
        t = filtered(copy, width, height, filter, error);
    }
    if (t != NULL)
        multiply_alpha(t, TRUE);
    hn_image_free(copy);
    return t;
}
