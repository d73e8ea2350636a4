/* JPEG, by libjpeg. It leaves its functions by longjmp(): those that setjmp() are small, and what they change while
 * that may happen lives in a struct of the caller. */
#include <setjmp.h>
#include <string.h>

#include "base/error.h"
#include "data/codecs.h"
#include "data/image.h"

#ifndef HN_HAVE_JPEG

HnImage *hn_image_read_jpeg(G_GNUC_UNUSED const guint8 *data, G_GNUC_UNUSED gsize size, const char *name,
                            G_GNUC_UNUSED int *orientation, G_GNUC_UNUSED HnBudget *budget, GError **error)
{
    g_set_error(error, HN_ERROR, HN_ERROR_UNSUPPORTED, "'%s' is a JPEG file, and this hone was built without libjpeg",
                name);
    return NULL;
}

#else

#include <jerror.h>

#define MOST_SCANS 64        /* of a progressive file: each goes over the whole picture; encoders make about 10 */
#define EXIF (JPEG_APP0 + 1) /* the marker that holds it */
#define MOST_EXIF 65533
#define ORIENTATION 0x0112 /* the tag in the first directory */

typedef struct {
    const HnJpeg *lib;
    struct jpeg_decompress_struct jpeg;
    struct jpeg_error_mgr errors;
    struct jpeg_progress_mgr progress;
    jmp_buf back;
    const char *reason; /* of hone; NULL: libjpeg has one */
    HnImage *image;
    guint8 *inks; /* a row of CMYK; NULL: pixels come as they are kept */
} Reader;

/* jpeg->client_data is the Reader. */
static void on_error(j_common_ptr jpeg)
{
    Reader *r = jpeg->client_data;
    longjmp(r->back, 1);
}

/* Warnings have level -1. Those of pixels that are missing end it; others, such as a few bytes too many, which cameras
 * write, do not. */
static void on_message(j_common_ptr jpeg, int level)
{
    if (level < 0 && (jpeg->err->msg_code == JWRN_JPEG_EOF || jpeg->err->msg_code == JWRN_HIT_MARKER))
        on_error(jpeg);
}

static void on_progress(j_common_ptr jpeg)
{
    Reader *r = jpeg->client_data;
    if (r->jpeg.input_scan_number <= MOST_SCANS)
        return;
    r->reason = "it has too many scans";
    on_error(jpeg);
}

static gboolean read_head(Reader *r, const guint8 *data, gsize size)
{
    if (setjmp(r->back))
        return FALSE;
    r->lib->jpeg_CreateDecompress(&r->jpeg, JPEG_LIB_VERSION, sizeof r->jpeg);
    r->jpeg.client_data = r;
    r->jpeg.progress = &r->progress;
    r->progress.progress_monitor = on_progress;
    r->lib->jpeg_save_markers(&r->jpeg, EXIF, MOST_EXIF);
    r->lib->jpeg_mem_src(&r->jpeg, data, (unsigned long)size);
    r->lib->jpeg_read_header(&r->jpeg, TRUE);
    return TRUE;
}

/* n pixels of CMYK, inverted as Adobe's programs store them: 255 is no ink. */
static void to_rgb(guint8 *rgb, const guint8 *inks, int n)
{
    for (int i = 0; i < n; i++)
        for (int c = 0; c < 3; c++) {
            const guint white = inks[4 * i + 3], product = (255u - inks[4 * i + c]) * white + 128;
            rgb[3 * i + c] = (guint8)(white - ((product + (product >> 8)) >> 8)); /* product / 255, rounded */
        }
}

static gboolean read_rows(Reader *r)
{
    if (setjmp(r->back))
        return FALSE;
    r->lib->jpeg_start_decompress(&r->jpeg);
    const gsize row = (gsize)r->image->width * (gsize)r->image->channels;
    while (r->jpeg.output_scanline < r->jpeg.output_height) {
        guint8 *pixels = r->image->data + (gsize)r->jpeg.output_scanline * row;
        JSAMPROW at = r->inks != NULL ? r->inks : pixels;
        r->lib->jpeg_read_scanlines(&r->jpeg, &at, 1);
        if (r->inks != NULL)
            to_rgb(pixels, r->inks, r->image->width);
    }
    return TRUE;
}

/* --- Exif --------------------------------------------------------------------------------------------------------- */

static guint number(const guint8 *p, gboolean big, int bytes)
{
    guint x = 0;
    for (int i = 0; i < bytes; i++)
        x |= (guint)p[big ? bytes - 1 - i : i] << 8 * i;
    return x;
}

/* The orientation that an Exif segment of n bytes names; 1: as it is. It is a TIFF file behind "Exif\0\0": byte order,
 * place of the first directory, which counts its entries of 12 bytes. */
static int orientation_of(const guint8 *p, gsize n)
{
    if (n < 14 || memcmp(p, "Exif\0", 6) != 0)
        return 1;
    p += 6;
    n -= 6;
    const gboolean big = p[0] == 'M';
    const gsize at = number(p + 4, big, 4);
    if (at > n - 2)
        return 1;
    const guint entries = number(p + at, big, 2);
    for (gsize k = 0; k < entries && at + 2 + 12 * (k + 1) <= n; k++) {
        const guint8 *entry = p + at + 2 + 12 * k;
        if (number(entry, big, 2) == ORIENTATION)
            return (int)number(entry + 8, big, 2);
    }
    return 1;
}

static int find_orientation(const Reader *r)
{
    for (jpeg_saved_marker_ptr m = r->jpeg.marker_list; m != NULL; m = m->next)
        if (m->marker == EXIF)
            return orientation_of(m->data, m->data_length);
    return 1;
}

/* --- reading ------------------------------------------------------------------------------------------------------ */

/* Bytes that libjpeg takes for all coefficients, 16 bits each, of a file with several scans; else it needs a few rows.
 */
static gsize coefficients(const Reader *r)
{
    gsize n = 0;
    if (!r->jpeg.progressive_mode && r->jpeg.comps_in_scan == r->jpeg.num_components)
        return 0;
    for (int c = 0; c < r->jpeg.num_components; c++) {
        const jpeg_component_info *k = &r->jpeg.comp_info[c];
        n += ((gsize)k->width_in_blocks + 8) * ((gsize)k->height_in_blocks + 8) * DCTSIZE2 * sizeof(JCOEF);
    }
    return n;
}

static gboolean choose_output(Reader *r, const char *name, GError **error)
{
    const J_COLOR_SPACE stored = r->jpeg.jpeg_color_space;
    const gboolean inks = stored == JCS_CMYK || stored == JCS_YCCK;
    if (!hn_image_check_size(r->jpeg.image_width, r->jpeg.image_height, name, error))
        return FALSE;
    if (!inks && stored != JCS_GRAYSCALE && stored != JCS_RGB && stored != JCS_YCbCr) {
        g_set_error(error, HN_ERROR, HN_ERROR_FORMAT, "'%s' is a JPEG file of %d channels of no known colours", name,
                    r->jpeg.num_components);
        return FALSE;
    }
    r->jpeg.out_color_space = inks ? JCS_CMYK : stored == JCS_GRAYSCALE ? JCS_GRAYSCALE : JCS_RGB;
    if (inks)
        r->inks = g_malloc_n(r->jpeg.image_width, 4);
    return TRUE;
}

static gboolean read_pixels(Reader *r, const char *name, HnBudget *budget, gboolean *ours, GError **error)
{
    *ours = TRUE;
    if (!choose_output(r, name, error))
        return FALSE;
    const gsize more = coefficients(r);
    r->image = hn_image_new((int)r->jpeg.image_width, (int)r->jpeg.image_height,
                            r->jpeg.out_color_space == JCS_GRAYSCALE ? 1 : 3, budget, error);
    if (r->image == NULL || !hn_budget_charge(budget, more, error))
        return FALSE;
    *ours = FALSE;
    const gboolean ok = read_rows(r);
    hn_budget_uncharge(budget, more);
    return ok;
}

static gboolean read_jpeg(Reader *r, const guint8 *data, gsize size, const char *name, int *orientation,
                          HnBudget *budget, GError **error)
{
    char reason[JMSG_LENGTH_MAX] = "";
    gboolean ours = FALSE;
    if (read_head(r, data, size)) {
        *orientation = find_orientation(r);
        if (read_pixels(r, name, budget, &ours, error))
            return TRUE;
    }
    if (ours)
        return FALSE;
    if (r->reason == NULL)
        r->errors.format_message((j_common_ptr)&r->jpeg, reason);
    g_set_error(error, HN_ERROR, HN_ERROR_FORMAT, "'%s' is no valid JPEG file: %s", name,
                r->reason != NULL ? r->reason : reason);
    return FALSE;
}

HnImage *hn_image_read_jpeg(const guint8 *data, gsize size, const char *name, int *orientation, HnBudget *budget,
                            GError **error)
{
    Reader *r = g_new0(Reader, 1); /* not on the stack: longjmp() leaves it as it is */
    r->lib = hn_jpeg(error);
    if (r->lib == NULL) {
        g_prefix_error(error, "'%s': ", name);
        g_free(r);
        return NULL;
    }
    r->jpeg.err = r->lib->jpeg_std_error(&r->errors);
    r->jpeg.client_data = r;
    r->errors.error_exit = on_error;
    r->errors.emit_message = on_message;
    const gboolean ok = read_jpeg(r, data, size, name, orientation, budget, error);
    r->lib->jpeg_destroy_decompress(&r->jpeg);
    HnImage *m = r->image;
    g_free(r->inks);
    g_free(r);
    if (ok)
        return m;
    hn_image_free(m);
    return NULL;
}

#endif
