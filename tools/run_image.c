/* hone-run --image: an output as a picture. */
#include <math.h>
#include <string.h>

#include "base/file.h"
#include "data/image.h"
#include "hone_run.h"

#define MOST_SIDE 65536

/* A row of the first axis, or all of it: [channels][height][width], or with channels last. */
typedef struct {
    int64_t rows, height, width, channels;
    gboolean last;
} Shape;

static gboolean is_count_of_channels(int64_t n)
{
    return n == 1 || n == 3;
}

/* More channels than a picture has are scores of classes for each pixel. */
static gboolean find_shape(const HnTensor *t, Shape *s)
{
    const int64_t *d = t->dims;
    *s = (Shape){ 0 };
    if (hn_dtype_is_refs(t->dtype) || t->ndim < 2 || t->ndim > 4)
        return FALSE;
    if (t->ndim == 4 || (t->ndim == 3 && (is_count_of_channels(d[0]) || is_count_of_channels(d[2])))) {
        const int64_t *row = t->ndim == 4 ? d + 1 : d;
        s->rows = t->ndim == 4 ? d[0] : 1;
        s->last = !is_count_of_channels(row[0]) && is_count_of_channels(row[2]);
        s->channels = row[s->last ? 2 : 0];
        s->height = row[s->last ? 0 : 1];
        s->width = row[s->last ? 1 : 2];
    } else {
        s->rows = t->ndim == 3 ? d[0] : 1;
        s->channels = 1;
        s->height = d[t->ndim - 2];
        s->width = d[t->ndim - 1];
    }
    return s->rows > 0 && s->channels > 0 && s->height > 1 && s->width > 1 && s->height <= MOST_SIDE &&
           s->width <= MOST_SIDE;
}

gboolean run_image_fits(const HnTensor *t)
{
    Shape s;
    return find_shape(t, &s) && (t->ndim > 2 || t->dims[0] > 7);
}

static int64_t index_of(const Shape *s, int64_t row, int64_t pixel, int64_t channel)
{
    const int64_t n = s->height * s->width;
    return row * n * s->channels + (s->last ? pixel * s->channels + channel : channel * n + pixel);
}

/* --- colours ------------------------------------------------------------------------------------------------------ */

/* Of a class, as PASCAL VOC's devkit has them: bits of the number, three by three, are the upper bits of red, green and
 * blue. */
static void class_colour(int64_t class, guint8 *rgb)
{
    rgb[0] = rgb[1] = rgb[2] = 0;
    for (int bit = 7; bit >= 0 && class > 0; bit--, class >>= 3)
        for (int c = 0; c < 3; c++)
            rgb[c] |= (guint8)((class >> c & 1) << bit);
}

typedef struct {
    double from, to; /* become 0 and 255 */
    const char *what;
} Range;

/* What elements range over, with some room for what a network overshoots. */
static Range find_range(const HnTensor *t)
{
    double least = INFINITY, most = -INFINITY;
    for (int64_t i = 0; i < t->n; i++) {
        const double x = hn_tensor_get_f64(t, i);
        least = x < least ? x : least;
        most = x > most ? x : most;
    }
    if (t->dtype == HN_BOOL || (least >= -0.2 && most <= 1.2))
        return (Range){ 0, 1, "0 to 1" };
    if (least >= -1.2 && most <= 1.2)
        return (Range){ -1, 1, "-1 to 1" };
    if (least >= -32 && most <= 288)
        return (Range){ 0, 255, "0 to 255" };
    return (Range){ least, most, "from its least to its largest element" };
}

static void draw_values(const HnTensor *t, const Shape *s, int64_t row, const Range *r, HnImage *m)
{
    for (int64_t i = 0; i < s->height * s->width; i++)
        for (int c = 0; c < m->channels; c++) {
            const double x = (hn_tensor_get_f64(t, index_of(s, row, i, c)) - r->from) / (r->to - r->from) * 255;
            m->data[i * m->channels + c] = (guint8)(isnan(x) ? 0 : lrint(CLAMP(x, 0, 255)));
        }
}

static void draw_classes(const HnTensor *t, const Shape *s, int64_t row, HnImage *m)
{
    for (int64_t i = 0; i < s->height * s->width; i++) {
        int64_t class = s->channels > 1 ? 0 : hn_tensor_get_i64(t, index_of(s, row, i, 0));
        for (int64_t c = 1; c < s->channels; c++)
            if (hn_tensor_get_f64(t, index_of(s, row, i, c)) > hn_tensor_get_f64(t, index_of(s, row, i, class)))
                class = c;
        class_colour(class, m->data + i * 3);
    }
}

/* --- files -------------------------------------------------------------------------------------------------------- */

static char *numbered(const char *path, int64_t i)
{
    const char *dot = strrchr(path, '.');
    dot = dot != NULL && strchr(dot, G_DIR_SEPARATOR) == NULL ? dot : path + strlen(path);
    return g_strdup_printf("%.*s-%" G_GINT64_FORMAT "%s", (int)(dot - path), path, i, dot);
}

static gboolean write_row(const HnTensor *t, const Shape *s, int64_t row, const Range *range, const char *path,
                          HnBudget *budget, GError **error)
{
    const gboolean classes = range == NULL;
    g_autoptr(HnImage) m = hn_image_new((int)s->width, (int)s->height, classes ? 3 : (int)s->channels, budget, error);
    if (m == NULL)
        return FALSE;
    if (classes)
        draw_classes(t, s, row, m);
    else
        draw_values(t, s, row, range, m);
    g_autoptr(GBytes) bytes = hn_image_png(m, error);
    return bytes != NULL && hn_out_save(path, g_bytes_get_data(bytes, NULL), g_bytes_get_size(bytes), error);
}

gboolean run_image_write(const HnTensor *t, const char *path, gboolean many, int64_t first, HnBudget *budget,
                         const char **what, GError **error)
{
    Shape s;
    if (!find_shape(t, &s))
        return FALSE;
    const gboolean numbers = hn_dtype_in(t->dtype, HN_T_INTS) && t->dtype != HN_U8 && t->dtype != HN_I8;
    const gboolean classes = !is_count_of_channels(s.channels) || (numbers && s.channels == 1);
    const Range range = classes ? (Range){ 0, 1, "a colour for each class" } : find_range(t);
    *what = range.what;
    for (int64_t i = 0; i < s.rows; i++) {
        g_autofree char *file = many || s.rows > 1 ? numbered(path, first + i) : g_strdup(path);
        if (!write_row(t, &s, i, classes ? NULL : &range, file, budget, error))
            return FALSE;
    }
    return TRUE;
}
