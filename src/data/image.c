#include "data/image.h"

#include <inttypes.h>
#include <string.h>

#include "base/checked.h"
#include "base/error.h"
#include "data/codecs.h"

HnImage *hn_image_new(int width, int height, int channels, HnBudget *budget, GError **error)
{
    gsize n;
    g_assert(width > 0 && height > 0 && channels > 0 && channels <= 4);
    if (!hn_mul_size((gsize)width * (gsize)channels, (gsize)height, &n)) {
        g_set_error(error, HN_ERROR, HN_ERROR_BUDGET, "a picture of %d x %d pixels is too large", width, height);
        return NULL;
    }
    guint8 *data = hn_budget_alloc(budget, n, error);
    if (data == NULL)
        return NULL;
    HnImage *m = g_new(HnImage, 1);
    *m = (HnImage){ width, height, channels, data, budget != NULL ? hn_budget_ref(budget) : NULL };
    return m;
}

void hn_image_free(HnImage *m)
{
    if (m == NULL)
        return;
    hn_budget_free(m->budget, m->data);
    if (m->budget != NULL)
        hn_budget_unref(m->budget);
    g_free(m);
}

gboolean hn_image_check_size(uint64_t width, uint64_t height, const char *name, GError **error)
{
    if (width > 0 && height > 0 && width <= G_MAXINT32 && height <= (uint64_t)HN_IMAGE_MOST / width)
        return TRUE;
    g_set_error(error, HN_ERROR, HN_ERROR_FORMAT, "'%s' says that it has %" PRIu64 " x %" PRIu64 " pixels%s", name,
                width, height, width > 0 && height > 0 ? ", more than hone reads" : "");
    return FALSE;
}

/* --- which kind --------------------------------------------------------------------------------------------------- */

static gboolean is_png(const guint8 *p, gsize n)
{
    return n >= 8 && memcmp(p, "\211PNG\r\n\032\n", 8) == 0;
}

static gboolean is_jpeg(const guint8 *p, gsize n)
{
    return n >= 3 && p[0] == 0xff && p[1] == 0xd8 && p[2] == 0xff;
}

static gboolean is_pnm(const guint8 *p, gsize n)
{
    return n >= 3 && p[0] == 'P' && p[1] >= '1' && p[1] <= '7' && (g_ascii_isspace(p[2]) || p[2] == '#');
}

gboolean hn_image_is(gconstpointer data, gsize size)
{
    return is_png(data, size) || is_jpeg(data, size) || is_pnm(data, size);
}

/* --- turning ------------------------------------------------------------------------------------------------------ */

/* Exif's orientations: where pixel (x, y) of the picture that is shown stands in the one that is stored, w by h. */
static void stored_at(int orientation, int w, int h, int x, int y, int *sx, int *sy)
{
    const gboolean swap = orientation >= 5, right = orientation == 2 || orientation == 3,
                   down = orientation == 3 || orientation == 4;
    if (!swap) {
        *sx = right ? w - 1 - x : x;
        *sy = down ? h - 1 - y : y;
        return;
    }
    *sx = orientation == 7 || orientation == 8 ? w - 1 - y : y;
    *sy = orientation == 6 || orientation == 7 ? h - 1 - x : x;
}

static HnImage *turned(HnImage *m, int orientation, GError **error)
{
    if (orientation < 2 || orientation > 8)
        return m;
    const gboolean swap = orientation >= 5;
    HnImage *t = hn_image_new(swap ? m->height : m->width, swap ? m->width : m->height, m->channels, m->budget, error);
    const gsize c = (gsize)m->channels;
    for (int y = 0; t != NULL && y < t->height; y++)
        for (int x = 0; x < t->width; x++) {
            int sx, sy;
            stored_at(orientation, m->width, m->height, x, y, &sx, &sy);
            memcpy(t->data + ((gsize)y * (gsize)t->width + (gsize)x) * c,
                   m->data + ((gsize)sy * (gsize)m->width + (gsize)sx) * c, c);
        }
    hn_image_free(m);
    return t;
}

HnImage *hn_image_read(gconstpointer data, gsize size, const char *name, gboolean turn, HnBudget *budget,
                       GError **error)
{
    int orientation = 1;
    if (is_png(data, size))
        return hn_image_read_png(data, size, name, budget, error);
    if (!is_jpeg(data, size))
        return hn_image_read_pnm(data, size, name, budget, error);
    HnImage *m = hn_image_read_jpeg(data, size, name, &orientation, budget, error);
    return m != NULL && turn ? turned(m, orientation, error) : m;
}

/* --- channels ----------------------------------------------------------------------------------------------------- */

static guint8 grey_of(const guint8 *p)
{
    return (guint8)((19595u * p[0] + 38470u * p[1] + 7471u * p[2] + 0x8000u) >> 16);
}

static void convert_pixel(guint8 *to, int n_to, const guint8 *from, int n_from)
{
    const gboolean colour = n_from >= 3;
    if (n_to == 1) {
        to[0] = colour ? grey_of(from) : from[0];
        return;
    }
    for (int c = 0; c < 3; c++)
        to[c] = from[colour ? c : 0];
    if (n_to == 4)
        to[3] = n_from % 2 == 0 ? from[n_from - 1] : 255;
}

HnImage *hn_image_to_channels(HnImage *m, int channels, GError **error)
{
    g_assert(channels == 1 || channels == 3 || channels == 4);
    if (m->channels == channels)
        return m;
    HnImage *t = hn_image_new(m->width, m->height, channels, m->budget, error);
    const gsize n = (gsize)m->width * (gsize)m->height;
    for (gsize i = 0; t != NULL && i < n; i++)
        convert_pixel(t->data + i * (gsize)channels, channels, m->data + i * (gsize)m->channels, m->channels);
    hn_image_free(m);
    return t;
}

HnImage *hn_image_crop(const HnImage *m, int x, int y, int width, int height, GError **error)
{
    g_assert(x >= 0 && y >= 0 && width <= m->width - x && height <= m->height - y);
    HnImage *t = hn_image_new(width, height, m->channels, m->budget, error);
    const gsize c = (gsize)m->channels, row = (gsize)width * c;
    for (int k = 0; t != NULL && k < height; k++)
        memcpy(t->data + (gsize)k * row, m->data + ((gsize)(y + k) * (gsize)m->width + (gsize)x) * c, row);
    return t;
}

/* --- PPM and PGM -------------------------------------------------------------------------------------------------- */

typedef struct {
    const guint8 *p, *end;
} Text;

/* The next number behind blanks and comments; -1: there is none, or one of more than 7 digits. */
static int64_t next_number(Text *t)
{
    while (t->p < t->end && (g_ascii_isspace(*t->p) || *t->p == '#')) {
        if (*t->p == '#')
            while (t->p < t->end && *t->p != '\n')
                t->p++;
        else
            t->p++;
    }
    int64_t x = 0;
    int digits = 0;
    for (; t->p < t->end && g_ascii_isdigit(*t->p) && digits < 8; digits++)
        x = 10 * x + (*t->p++ - '0');
    return digits > 0 && digits < 8 ? x : -1;
}

static gboolean cut_short(const char *name, GError **error)
{
    g_set_error(error, HN_ERROR, HN_ERROR_FORMAT, "'%s' ends before its last pixel", name);
    return FALSE;
}

static guint8 to_eight_bits(int64_t x, int64_t most)
{
    return (guint8)((MIN(x, most) * 255 + most / 2) / most);
}

static gboolean read_binary(Text *t, HnImage *m, int64_t most, const char *name, GError **error)
{
    const gsize n = (gsize)m->width * (gsize)m->height * (gsize)m->channels, wide = most > 255 ? 2 : 1;
    if ((gsize)(t->end - t->p) < n * wide)
        return cut_short(name, error);
    for (gsize i = 0; i < n; i++)
        m->data[i] = to_eight_bits(wide == 2 ? t->p[2 * i] << 8 | t->p[2 * i + 1] : t->p[i], most);
    return TRUE;
}

static gboolean read_digits(Text *t, HnImage *m, int64_t most, const char *name, GError **error)
{
    const gsize n = (gsize)m->width * (gsize)m->height * (gsize)m->channels;
    for (gsize i = 0; i < n; i++) {
        const int64_t x = next_number(t);
        if (x < 0)
            return cut_short(name, error);
        m->data[i] = to_eight_bits(x, most);
    }
    return TRUE;
}

HnImage *hn_image_read_pnm(const guint8 *data, gsize size, const char *name, HnBudget *budget, GError **error)
{
    Text t = { data + 2, data + size };
    const char kind = is_pnm(data, size) ? (char)data[1] : '0';
    if (kind != '2' && kind != '3' && kind != '5' && kind != '6') {
        g_set_error(error, HN_ERROR, HN_ERROR_FORMAT, "'%s' is no PPM or PGM file (P2, P3, P5 or P6)", name);
        return NULL;
    }
    const gboolean binary = kind >= '5';
    const int channels = kind == '3' || kind == '6' ? 3 : 1;
    const int64_t width = next_number(&t), height = next_number(&t), most = next_number(&t);
    if (width < 0 || height < 0 || most < 1 || most > 65535) {
        g_set_error(error, HN_ERROR, HN_ERROR_FORMAT, "'%s' has no valid width, height and largest value", name);
        return NULL;
    }
    if (!hn_image_check_size((uint64_t)width, (uint64_t)height, name, error))
        return NULL;
    t.p += binary && t.p < t.end;                  /* one blank ends the header */
    if (t.end - t.p < width * height * channels) { /* a byte for each, at least */
        cut_short(name, error);
        return NULL;
    }
    g_autoptr(HnImage) m = hn_image_new((int)width, (int)height, channels, budget, error);
    if (m == NULL)
        return NULL;
    const gboolean ok = binary ? read_binary(&t, m, most, name, error) : read_digits(&t, m, most, name, error);
    return ok ? g_steal_pointer(&m) : NULL;
}
