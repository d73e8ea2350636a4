/*
 * HnImage: a picture of 8 bits a channel, out of PNG, JPEG and PPM or PGM files.
 *
 * PNG: any colour type; palettes become RGB, fewer than 8 bits grow to 8, of 16 bits the upper 8 are kept. An alpha
 * channel stays (2 and 4 channels). JPEG: grey and colour; CMYK is refused. PPM and PGM: binary and as text, P2, P3, P5
 * and P6, scaled to 255 where the largest value is another one. Colour profiles and gamma are ignored.
 *
 * Sizes are checked against the file's length and HN_IMAGE_MOST before anything is allocated, and all that a file's
 * size decides is the budget's.
 */
#pragma once

#include <glib.h>
#include <stdint.h>

#include "base/budget.h"

G_BEGIN_DECLS

#define HN_IMAGE_MOST ((int64_t)1 << 28) /* pixels of a file */

typedef struct {
    int width, height;
    int channels; /* 1 grey, 2 grey and alpha, 3 RGB, 4 RGB and alpha */
    guint8 *data; /* [height][width][channels], of the budget */
    HnBudget *budget;
} HnImage;

/* Elements are not set. Errors: BUDGET. */
HnImage *hn_image_new(int width, int height, int channels, HnBudget *budget, GError **error);
void hn_image_free(HnImage *m);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(HnImage, hn_image_free)

/* Whether these bytes begin like a picture of a kind that is known here, built in or not. */
gboolean hn_image_is(gconstpointer data, gsize size);

/* turn: as a JPEG's Exif orientation says. name is for messages. Errors: FORMAT; UNSUPPORTED: no library for it;
 * BUDGET. */
HnImage *hn_image_read(gconstpointer data, gsize size, const char *name, gboolean turn, HnBudget *budget,
                       GError **error);

/* The decoders behind it. */
HnImage *hn_image_read_png(const guint8 *data, gsize size, const char *name, HnBudget *budget, GError **error);
HnImage *hn_image_read_jpeg(const guint8 *data, gsize size, const char *name, int *orientation, HnBudget *budget,
                            GError **error);
HnImage *hn_image_read_pnm(const guint8 *data, gsize size, const char *name, HnBudget *budget, GError **error);

/* FORMAT for a size that no picture has: not positive, or beyond HN_IMAGE_MOST. */
gboolean hn_image_check_size(uint64_t width, uint64_t height, const char *name, GError **error);

/* PNG's bytes of a picture with 1 or 3 channels. Errors: UNSUPPORTED. */
GBytes *hn_image_png(const HnImage *m, GError **error);

/* The same picture with 1, 3 or 4 channels: grey is (19595 R + 38470 G + 7471 B + 32768) >> 16 (ITU-R 601), alpha is
 * dropped, or 255 where there was none. m itself where nothing changes; takes m. */
HnImage *hn_image_to_channels(HnImage *m, int channels, GError **error);

typedef enum { HN_FILTER_BILINEAR, HN_FILTER_BICUBIC, HN_FILTER_NEAREST } HnFilter;

/*
 * Resized as Pillow does: separable convolution, across and then down, whose kernel (triangle; cubic with a = -0.5)
 * grows with the factor by which the picture shrinks; weights of 22 fractional bits, sums rounded to 8 bits after each
 * pass. The nearest pixel is the one at floor((i + 0.5) * from / to).
 */
HnImage *hn_image_resize(const HnImage *m, int width, int height, HnFilter filter, GError **error);

/* The part that begins at x, y, which lies inside. */
HnImage *hn_image_crop(const HnImage *m, int x, int y, int width, int height, GError **error);

G_END_DECLS
