/* PNG, by libpng. It leaves its functions by longjmp(): those that setjmp() are small, and what they change while that
 * may happen lives in a struct of the caller. */
#include <setjmp.h>
#include <string.h>

#include "base/error.h"
#include "data/codecs.h"
#include "data/image.h"

#ifndef HN_HAVE_PNG

HnImage *hn_image_read_png(G_GNUC_UNUSED const guint8 *data, G_GNUC_UNUSED gsize size, const char *name,
                           G_GNUC_UNUSED HnBudget *budget, GError **error)
{
    g_set_error(error, HN_ERROR, HN_ERROR_UNSUPPORTED, "'%s' is a PNG file, and this hone was built without libpng",
                name);
    return NULL;
}

GBytes *hn_image_png(G_GNUC_UNUSED const HnImage *m, GError **error)
{
    g_set_error(error, HN_ERROR, HN_ERROR_UNSUPPORTED, "this hone was built without libpng");
    return NULL;
}

#else

#define MOST_RATIO 1032      /* bytes that deflate makes of one, at most */
#define MOST_CHUNK (1 << 20) /* bytes of a text or profile, which nobody reads */
#define MOST_CHUNKS 1000

typedef struct {
    const HnPng *lib;
    png_structp png;
    png_infop info;
    const guint8 *data; /* what is left of the file */
    gsize size;
    char reason[128]; /* of libpng */
    HnImage *image;
} Reader;

static void on_error(png_structp png, png_const_charp text)
{
    char *reason = hn_png(NULL)->png_get_error_ptr(png);
    g_strlcpy(reason, text, sizeof((Reader *)NULL)->reason);
    longjmp(*hn_png(NULL)->png_set_longjmp_fn(png, longjmp, sizeof(jmp_buf)), 1);
}

static void on_warning(G_GNUC_UNUSED png_structp png, G_GNUC_UNUSED png_const_charp text)
{
}

static void on_read(png_structp png, png_bytep to, size_t n)
{
    Reader *r = hn_png(NULL)->png_get_io_ptr(png);
    if (n > r->size)
        on_error(png, "the file ends too early");
    memcpy(to, r->data, n);
    r->data += n;
    r->size -= n;
}

/* All of them become 8 bits a channel, and palettes RGB. */
static gboolean read_head(Reader *r, png_uint_32 *width, png_uint_32 *height, int *channels)
{
    const HnPng *lib = r->lib;
    int bits, type;
    if (setjmp(*lib->png_set_longjmp_fn(r->png, longjmp, sizeof(jmp_buf))))
        return FALSE;
    lib->png_set_chunk_malloc_max(r->png, MOST_CHUNK);
    lib->png_set_chunk_cache_max(r->png, MOST_CHUNKS);
    lib->png_set_user_limits(r->png, G_MAXINT32, G_MAXINT32);
    lib->png_set_read_fn(r->png, r, on_read);
    lib->png_read_info(r->png, r->info);
    lib->png_get_IHDR(r->png, r->info, width, height, &bits, &type, NULL, NULL, NULL);
    *channels = type == PNG_COLOR_TYPE_GRAY         ? 1
                : type == PNG_COLOR_TYPE_GRAY_ALPHA ? 2
                : type == PNG_COLOR_TYPE_RGB_ALPHA  ? 4
                                                    : 3;
    return TRUE;
}

static gboolean read_rows(Reader *r)
{
    const HnPng *lib = r->lib;
    if (setjmp(*lib->png_set_longjmp_fn(r->png, longjmp, sizeof(jmp_buf))))
        return FALSE;
    const gsize row = (gsize)r->image->width * (gsize)r->image->channels;
    lib->png_set_strip_16(r->png);
    lib->png_set_palette_to_rgb(r->png);
    lib->png_set_expand_gray_1_2_4_to_8(r->png);
    const int passes = lib->png_set_interlace_handling(r->png);
    lib->png_read_update_info(r->png, r->info);
    if (lib->png_get_rowbytes(r->png, r->info) != row)
        on_error(r->png, "its rows have another length");
    for (int pass = 0; pass < passes; pass++)
        for (int y = 0; y < r->image->height; y++)
            lib->png_read_row(r->png, r->image->data + (gsize)y * row, NULL);
    return TRUE;
}

/* A file has its deflated pixels of at least a bit each: less is no file, whatever its header says. */
static gboolean check_length(guint64 width, guint64 height, gsize size, const char *name, GError **error)
{
    if (!hn_image_check_size(width, height, name, error))
        return FALSE;
    if (width * height / 8 <= (guint64)size * MOST_RATIO)
        return TRUE;
    g_set_error(error, HN_ERROR, HN_ERROR_FORMAT, "'%s' is too short for its %d x %d pixels", name, (int)width,
                (int)height);
    return FALSE;
}

static gboolean read_png(Reader *r, gsize size, const char *name, HnBudget *budget, GError **error)
{
    png_uint_32 width = 0, height = 0;
    int channels = 0;
    if (r->png != NULL && r->info != NULL && read_head(r, &width, &height, &channels)) {
        if (!check_length(width, height, size, name, error))
            return FALSE;
        r->image = hn_image_new((int)width, (int)height, channels, budget, error);
        if (r->image == NULL)
            return FALSE;
        memset(r->image->data, 0, (gsize)width * height * (gsize)channels); /* interlaced rows are read back */
        if (read_rows(r))
            return TRUE;
    }
    g_strchomp(r->reason);
    g_set_error(error, HN_ERROR, HN_ERROR_FORMAT, "'%s' is no valid PNG file: %s", name, r->reason);
    return FALSE;
}

HnImage *hn_image_read_png(const guint8 *data, gsize size, const char *name, HnBudget *budget, GError **error)
{
    Reader r = { .lib = hn_png(error), .data = data, .size = size };
    if (r.lib == NULL) {
        g_prefix_error(error, "'%s': ", name);
        return NULL;
    }
    r.png = r.lib->png_create_read_struct(PNG_LIBPNG_VER_STRING, r.reason, on_error, on_warning);
    r.info = r.png != NULL ? r.lib->png_create_info_struct(r.png) : NULL;
    const gboolean ok = read_png(&r, size, name, budget, error);
    r.lib->png_destroy_read_struct(&r.png, &r.info, NULL);
    if (ok)
        return r.image;
    hn_image_free(r.image);
    return NULL;
}

/* --- writing ------------------------------------------------------------------------------------------------------ */

static void on_write(png_structp png, png_bytep from, size_t n)
{
    g_byte_array_append(hn_png(NULL)->png_get_io_ptr(png), from, (guint)n);
}

static gboolean write_rows(const HnPng *lib, png_structp png, png_infop info, const HnImage *m, GByteArray *out)
{
    if (setjmp(*lib->png_set_longjmp_fn(png, longjmp, sizeof(jmp_buf))))
        return FALSE;
    lib->png_set_write_fn(png, out, on_write, NULL);
    lib->png_set_IHDR(png, info, (png_uint_32)m->width, (png_uint_32)m->height, 8,
                      m->channels == 1 ? PNG_COLOR_TYPE_GRAY : PNG_COLOR_TYPE_RGB, PNG_INTERLACE_NONE,
                      PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
    lib->png_write_info(png, info);
    for (int y = 0; y < m->height; y++)
        lib->png_write_row(png, m->data + (gsize)y * (gsize)m->width * (gsize)m->channels);
    lib->png_write_end(png, info);
    return TRUE;
}

GBytes *hn_image_png(const HnImage *m, GError **error)
{
    char reason[sizeof((Reader *)NULL)->reason] = "";
    const HnPng *lib = hn_png(error);
    g_assert(m->channels == 1 || m->channels == 3);
    if (lib == NULL)
        return NULL;
    png_structp png = lib->png_create_write_struct(PNG_LIBPNG_VER_STRING, reason, on_error, on_warning);
    png_infop info = png != NULL ? lib->png_create_info_struct(png) : NULL;
    GByteArray *out = g_byte_array_new();
    const gboolean ok = info != NULL && write_rows(lib, png, info, m, out);
    lib->png_destroy_write_struct(&png, &info);
    GBytes *bytes = g_byte_array_free_to_bytes(out);
    if (ok)
        return bytes;
    g_bytes_unref(bytes);
    g_set_error(error, HN_ERROR, HN_ERROR_UNSUPPORTED, "a picture of %d x %d pixels cannot be a PNG file: %s", m->width,
                m->height, g_strchomp(reason));
    return NULL;
}

#endif
