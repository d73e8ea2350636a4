/*
 * libpng, libjpeg and libsndfile, each opened when the first file wants it: a tool that reads no picture does not load
 * them, and an installation may do without. Built without one of them, its files are refused.
 *
 *     const HnPng *png = hn_png(error);
 *     if (png != NULL)
 *         png->png_set_strip_16(p);
 */
#pragma once

#include "config.h" /* HN_HAVE_PNG, HN_HAVE_JPEG, HN_HAVE_SNDFILE */

#include <glib.h>
#include <stdio.h>

G_BEGIN_DECLS

#define HN_CODEC(name) __typeof__(name) *name;

#ifdef HN_HAVE_PNG
#include <png.h>
typedef struct {
#include "data/png.def"
} HnPng;
const HnPng *hn_png(GError **error); /* UNSUPPORTED: the library is not there */
#endif

#ifdef HN_HAVE_JPEG
#include <jpeglib.h>
typedef struct {
#include "data/jpeg.def"
} HnJpeg;
const HnJpeg *hn_jpeg(GError **error);
#endif

#ifdef HN_HAVE_SNDFILE
#include <sndfile.h>
typedef struct {
#include "data/sndfile.def"
} HnSndfile;
const HnSndfile *hn_sndfile(GError **error);
#endif

#undef HN_CODEC

G_END_DECLS
