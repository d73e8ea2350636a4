#include "data/media.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/file.h"
#include "data/npy.h"
#include "data/sound.h"

#define CROP_WITHOUT_SIZE 224 /* pixels, where a part is asked for and the input's size is free */
#define LEVELS 256

/* --- kinds -------------------------------------------------------------------------------------------------------- */

HnMediaKind hn_media_kind(gconstpointer data, gsize size)
{
    if (hn_image_is(data, size))
        return HN_MEDIA_IMAGE;
    return hn_sound_is(data, size) ? HN_MEDIA_SOUND : HN_MEDIA_NONE;
}

HnMediaKind hn_media_kind_of_name(const char *name)
{
    static const char *const images[] = { ".png", ".jpg", ".jpeg", ".ppm", ".pgm", ".pnm" };
    static const char *const sounds[] = { ".wav", ".flac", ".ogg", ".aiff", ".aif" };
    g_autofree char *lower = g_ascii_strdown(name, -1);
    for (gsize i = 0; i < G_N_ELEMENTS(images); i++)
        if (g_str_has_suffix(lower, images[i]))
            return HN_MEDIA_IMAGE;
    for (gsize i = 0; i < G_N_ELEMENTS(sounds); i++)
        if (g_str_has_suffix(lower, sounds[i]))
            return HN_MEDIA_SOUND;
    return HN_MEDIA_NONE;
}

static const char *plural(HnMediaKind kind)
{
    return kind == HN_MEDIA_IMAGE ? "pictures" : "sound";
}

static void is_none_of(const char *name, HnMediaKind kind, GError **error)
{
    g_set_error(error, HN_ERROR, HN_ERROR_FORMAT, "'%s' is no file of %s that hone reads", name, plural(kind));
}

gboolean hn_media_is_as_named(const char *name, HnMediaKind kind, GError **error)
{
    const HnMediaKind named = hn_media_kind_of_name(name);
    if (named == HN_MEDIA_NONE || kind != HN_MEDIA_NONE)
        return TRUE;
    is_none_of(name, named, error);
    return FALSE;
}

/* --- what the input wants ----------------------------------------------------------------------------------------- */

/* Of an input's axis; 0: free. */
static int64_t size_of(const HnType *type, int axis)
{
    return type->rank > axis && type->dims[axis].known ? type->dims[axis].n : 0;
}

static gboolean are_channels(const HnMediaTarget *t, int64_t n)
{
    return t->kind == HN_MEDIA_IMAGE ? n == 1 || n == 3 || n == 4 : n >= 1 && n <= 8;
}

static gboolean no_fit(const HnMediaTarget *t, GError **error)
{
    g_autofree char *type = hn_type_describe(t->input->type);
    g_set_error(error, HN_ERROR, HN_ERROR_SHAPE, "input '%s' is %s, which %s do not fit", t->input->name, type,
                plural(t->kind));
    return FALSE;
}

/* Which axes count files and channels: a row has `in_row` axes besides that of channels. */
static gboolean find_axes(HnMediaTarget *t, const HnType *type, GError **error)
{
    const int in_row = t->kind == HN_MEDIA_IMAGE ? 2 : 1, more = t->rank - in_row;
    if (more < 0 || more > 2)
        return no_fit(t, error);
    const gboolean one = more == 1, said = t->keys.layout != HN_LAYOUT_ANY;
    const gboolean first = more > 0 && are_channels(t, size_of(type, more - 1));
    const gboolean last = more > 0 && are_channels(t, size_of(type, t->rank - 1));
    /* a single further axis counts files, unless something says that it is one of channels; of sound it does */
    t->channel_axis = more == 2 || (one && (said || (t->kind == HN_MEDIA_IMAGE && (first || last))));
    t->batched = more == 2 || (one && !t->channel_axis);
    t->channels_last = said ? t->keys.layout == HN_LAYOUT_CHANNELS_LAST : t->channel_axis && last && !first;
    return TRUE;
}

static gboolean find_sizes(HnMediaTarget *t, const HnType *type, GError **error)
{
    const int row = t->batched ? 1 : 0, space = row + (t->channel_axis && !t->channels_last ? 1 : 0);
    const int channels = t->channels_last ? t->rank - 1 : row;
    const gboolean image = t->kind == HN_MEDIA_IMAGE;
    t->files = t->batched ? MAX(size_of(type, 0), 1) : 1;
    t->height = image ? size_of(type, space) : 1;
    t->width = size_of(type, space + (image ? 1 : 0));
    int64_t n = t->channel_axis ? size_of(type, channels) : 1;
    if (n > 0 && !are_channels(t, n))
        return no_fit(t, error);
    if (n > 0 && t->keys.channels > 0 && t->keys.channels != n) {
        g_autofree char *text = hn_type_describe(t->input->type);
        g_set_error(error, HN_ERROR, HN_ERROR_USAGE, "'channels': input '%s' is %s, which has %" PRId64 ", not %d",
                    t->input->name, text, n, t->keys.channels);
        return FALSE;
    }
    n = n > 0 ? n : t->keys.channels;
    t->channels = n > 0 ? (int)n : image ? 3 : 1;
    return t->files <= G_MAXINT16 && t->height <= G_MAXUINT16 && t->width <= G_MAXINT32 ? TRUE : no_fit(t, error);
}

static gboolean misfit(const HnMediaTarget *t, const char *key, const char *what, GError **error)
{
    g_set_error(error, HN_ERROR, HN_ERROR_USAGE, "'%s' does not fit input '%s': %s", key, t->input->name, what);
    return FALSE;
}

static gboolean check_count(const HnMediaTarget *t, const char *key, int n, GError **error)
{
    if (n <= 1 || n == t->channels)
        return TRUE;
    g_autofree char *what = g_strdup_printf("there are %d values for %d channels", n, t->channels);
    return misfit(t, key, what, error);
}

static gboolean check_keys(const HnMediaTarget *t, GError **error)
{
    const HnInputKeys *k = &t->keys;
    if (!check_count(t, "mean", k->n_mean, error) || !check_count(t, "scale", k->n_scale, error))
        return FALSE;
    if (t->kind == HN_MEDIA_IMAGE && k->rate > 0)
        return misfit(t, "rate", "it is for sound, not for pictures", error);
    if (t->kind == HN_MEDIA_IMAGE && t->channels == 2)
        return misfit(t, "channels", "pictures have 1, 3 or 4", error);
    if (t->kind == HN_MEDIA_IMAGE)
        return TRUE;
    if (k->resize_h > 0 || k->crop_h > 0 || k->crop_part > 0)
        return misfit(t, k->resize_h > 0 ? "resize" : "crop", "it is for pictures, not for sound", error);
    return k->exif ? misfit(t, "exif", "it is for pictures, not for sound", error) : TRUE;
}

gboolean hn_media_target(HnMediaTarget *t, const HnValue *input, HnMediaKind kind, const HnPreprocess *p,
                         GError **error)
{
    static const HnType nothing = { .rank = -1 };
    const HnType *type = input->type;
    while (type != NULL && type->kind == HN_TYPE_OPTIONAL)
        type = type->elem;
    *t = (HnMediaTarget){ .kind = kind, .input = input, .keys = hn_preprocess_keys(p, input->name) };
    t->dtype = type != NULL && type->dtype != HN_UNDEFINED ? type->dtype : HN_F32;
    if ((type != NULL && !hn_type_is_tensor(type)) || !hn_dtype_in(t->dtype, HN_T_NUM)) {
        g_autofree char *text = hn_type_describe(input->type);
        g_set_error(error, HN_ERROR, HN_ERROR_TYPE, "input '%s' is %s, which %s cannot become", input->name, text,
                    plural(kind));
        return FALSE;
    }
    type = type != NULL ? type : &nothing;
    t->rank = type->rank >= 0 ? type->rank : kind == HN_MEDIA_IMAGE ? 4 : 2;
    const gboolean scaled = t->keys.u8 || t->keys.n_mean > 0 || t->keys.n_scale > 0;
    t->unscaled = kind == HN_MEDIA_IMAGE && hn_dtype_in(t->dtype, HN_T_FLOATS) && !scaled;
    return find_axes(t, type, error) && find_sizes(t, type, error) && check_keys(t, error);
}

char *hn_media_describe(const HnMediaTarget *t)
{
    g_autofree char *type = hn_type_describe(t->input->type), *keys = hn_input_keys_describe(&t->keys);
    return g_strdup_printf("input '%s', %s: %s as %d channel%s%s, %s", t->input->name, type, plural(t->kind),
                           t->channels, t->channels > 1 ? "s" : "",
                           !t->channel_axis   ? ""
                           : t->channels_last ? ", the last axis"
                                              : ", first",
                           keys);
}

/* --- values ------------------------------------------------------------------------------------------------------- */

static double scaled(const HnMediaTarget *t, int channel, double x)
{
    const HnInputKeys *k = &t->keys;
    const double mean = k->n_mean > 0 ? k->mean[k->n_mean > 1 ? channel : 0] : 0;
    const double scale = k->n_scale > 0 ? k->scale[k->n_scale > 1 ? channel : 0] : 1;
    return (x - mean) / scale;
}

/* Integers are rounded, and end at their range. */
static void store(HnTensor *t, int64_t i, double x)
{
    if (hn_dtype_in(t->dtype, HN_T_INTS)) {
        const unsigned bits = hn_dtype_bits(t->dtype);
        const gboolean has_sign = hn_dtype_in(t->dtype, HN_T_SINTS);
        const double top = ldexp(1, (int)bits - has_sign), most = bits < 64 ? top - 1 : nextafter(top, 0);
        const double least = has_sign ? -top : 0, whole = rint(x);
        x = CLAMP(whole, least, most);
    }
    hn_tensor_set_f64(t, i, x);
}

/* Dims of a row of a file with that size. */
static int row_dims(const HnMediaTarget *t, int64_t height, int64_t width, int64_t *dims)
{
    int n = 0;
    if (t->channel_axis && !t->channels_last)
        dims[n++] = t->channels;
    if (t->kind == HN_MEDIA_IMAGE)
        dims[n++] = height;
    dims[n++] = width;
    if (t->channel_axis && t->channels_last)
        dims[n++] = t->channels;
    return n;
}

/* Element c of pixel or frame i of n. */
static int64_t place(const HnMediaTarget *t, int64_t n, int64_t i, int c)
{
    return t->channels_last ? i * t->channels + c : c * n + i;
}

/* --- pictures ----------------------------------------------------------------------------------------------------- */

/* What is left after resizing: *w and *h; 0: all. */
static void crop_size(const HnMediaTarget *t, int *w, int *h)
{
    const HnInputKeys *k = &t->keys;
    *w = k->crop_w;
    *h = k->crop_h;
    if (k->crop_part > 0) {
        *w = t->width > 0 ? (int)t->width : CROP_WITHOUT_SIZE;
        *h = t->height > 0 ? (int)t->height : CROP_WITHOUT_SIZE;
    }
}

/* What m is resized to; crop: what is cut out of that. */
static void resized_size(const HnMediaTarget *t, const HnImage *m, int crop_w, int crop_h, int *w, int *h)
{
    const HnInputKeys *k = &t->keys;
    int side = k->resize_w == 0 ? k->resize_h : 0;
    *w = k->resize_w > 0 ? k->resize_w : m->width;
    *h = k->resize_w > 0 ? k->resize_h : m->height;
    if (k->resize_h == 0 && k->crop_part > 0)
        side = (int)(MAX(crop_w, crop_h) / k->crop_part);
    if (side > 0) {
        *w = m->width <= m->height ? side : (int)MIN((int64_t)side * m->width / m->height, HN_IMAGE_MOST);
        *h = m->width <= m->height ? (int)MIN((int64_t)side * m->height / m->width, HN_IMAGE_MOST) : side;
    } else if (k->resize_h == 0 && crop_h == 0) {
        *w = t->width > 0 ? (int)t->width : m->width;
        *h = t->height > 0 ? (int)t->height : m->height;
    }
}

static HnImage *resized(HnImage *m, int w, int h, HnFilter filter, const char *name, GError **error)
{
    if (w == m->width && h == m->height)
        return m;
    HnImage *t =
        hn_image_check_size((uint64_t)w, (uint64_t)h, name, error) ? hn_image_resize(m, w, h, filter, error) : NULL;
    hn_image_free(m);
    return t;
}

/* The middle; of an odd number of pixels that are too many, halves are rounded to even. */
static HnImage *cropped(HnImage *m, int w, int h, const char *name, GError **error)
{
    HnImage *t = NULL;
    if (w > m->width || h > m->height)
        g_set_error(error, HN_ERROR, HN_ERROR_SHAPE, "'%s': %d x %d pixels cannot be cut out of %d x %d", name, w, h,
                    m->width, m->height);
    else
        t = hn_image_crop(m, (int)rint((m->width - w) / 2.0), (int)rint((m->height - h) / 2.0), w, h, error);
    hn_image_free(m);
    return t;
}

static HnImage *read_image(const HnMediaTarget *t, const guint8 *data, gsize size, const char *name, HnBudget *budget,
                           GError **error)
{
    int w, h, crop_w, crop_h;
    HnImage *m = hn_image_read(data, size, name, t->keys.exif, budget, error);
    m = m != NULL ? hn_image_to_channels(m, t->channels, error) : NULL;
    if (m == NULL)
        return NULL;
    crop_size(t, &crop_w, &crop_h);
    resized_size(t, m, crop_w, crop_h, &w, &h);
    m = resized(m, w, h, t->keys.filter, name, error);
    if (m != NULL && crop_h > 0)
        m = cropped(m, crop_w, crop_h, name, error);
    if (m == NULL || ((t->width == 0 || m->width == t->width) && (t->height == 0 || m->height == t->height)))
        return m;
    g_autofree char *type = hn_type_describe(t->input->type);
    g_set_error(error, HN_ERROR, HN_ERROR_SHAPE,
                "'%s' comes to %d x %d pixels (width x height), but input '%s' is %s: 'resize' or 'crop' say more",
                name, m->width, m->height, t->input->name, type);
    hn_image_free(m);
    return NULL;
}

/* What each of the 256 levels of each channel becomes. */
static HnTensor *make_levels(const HnMediaTarget *t, GError **error)
{
    const int64_t n = (int64_t)t->channels * LEVELS;
    HnTensor *levels = hn_tensor_new(t->dtype, 1, &n, NULL, error);
    for (int64_t i = 0; levels != NULL && i < n; i++)
        store(levels, i, scaled(t, (int)(i / LEVELS), (double)(i % LEVELS)));
    return levels;
}

static HnTensor *image_row(const HnMediaTarget *t, const guint8 *data, gsize size, const char *name, HnBudget *budget,
                           GError **error)
{
    int64_t dims[HN_MAX_RANK];
    g_autoptr(HnImage) m = read_image(t, data, size, name, budget, error);
    g_autoptr(HnTensor) levels = m != NULL ? make_levels(t, error) : NULL;
    if (levels == NULL)
        return NULL;
    HnTensor *row = hn_tensor_new_uninit(t->dtype, row_dims(t, m->height, m->width, dims), dims, budget, error);
    const int64_t n = (int64_t)m->height * m->width;
    const gsize each = hn_dtype_size(t->dtype);
    for (int c = 0; row != NULL && c < t->channels; c++) {
        const guint8 *from = m->data + (t->keys.bgr ? 2 - c : c);
        const guint8 *level = (const guint8 *)levels->data + (gsize)c * LEVELS * each;
        for (int64_t i = 0; i < n; i++)
            memcpy((guint8 *)row->data + (gsize)place(t, n, i, c) * each, level + from[i * t->channels] * each, each);
    }
    return row;
}

/* --- sound -------------------------------------------------------------------------------------------------------- */

static HnTensor *sound_row(const HnMediaTarget *t, const guint8 *data, gsize size, const char *name, HnBudget *budget,
                           GError **error)
{
    int64_t dims[HN_MAX_RANK];
    HnSound *s = hn_sound_read(data, size, name, budget, error);
    const int channels = s == NULL || t->channel_axis || t->keys.channels > 0 ? t->channels : 1;
    s = s != NULL ? hn_sound_to_channels(s, channels, name, error) : NULL;
    s = s != NULL && t->keys.rate > 0 ? hn_sound_to_rate(s, t->keys.rate, error) : s;
    if (s == NULL)
        return NULL;
    const int64_t n = t->width > 0 ? t->width : s->frames;
    const gboolean whole = hn_dtype_in(t->dtype, HN_T_SINTS) && t->keys.n_scale == 0;
    const double range = whole ? ldexp(1, (int)hn_dtype_bits(t->dtype) - 1) : 1;
    HnTensor *row = hn_tensor_new(t->dtype, row_dims(t, 1, n, dims), dims, budget, error);
    for (int64_t i = 0; row != NULL && i < MIN(n, s->frames); i++)
        for (int c = 0; c < channels; c++)
            store(row, place(t, n, i, c), scaled(t, c, range * (double)s->data[i * channels + c]));
    hn_sound_free(s);
    return row;
}

/* --- rows and samples --------------------------------------------------------------------------------------------- */

HnTensor *hn_media_row(const HnMediaTarget *t, GBytes *bytes, const char *name, HnBudget *budget, GError **error)
{
    gsize size;
    const guint8 *data = g_bytes_get_data(bytes, &size);
    const HnMediaKind kind = hn_media_kind(data, size);
    if (size == 0) {
        g_set_error(error, HN_ERROR, HN_ERROR_FORMAT, "'%s' is empty", name);
        return NULL;
    }
    if (kind != t->kind) {
        is_none_of(name, t->kind, error);
        return NULL;
    }
    GError *cause = NULL;
    HnTensor *row = kind == HN_MEDIA_IMAGE ? image_row(t, data, size, name, budget, &cause)
                                           : sound_row(t, data, size, name, budget, &cause);
    if (row != NULL)
        return row;
    if (g_error_matches(cause, HN_ERROR, HN_ERROR_BUDGET))
        g_prefix_error(&cause, "'%s' ", name);
    g_propagate_error(error, cause);
    return NULL;
}

HnTensor *hn_media_join(const HnMediaTarget *t, HnTensor *const *rows, HnBudget *budget, GError **error)
{
    const HnTensor *first = rows[0];
    int64_t dims[HN_MAX_RANK] = { t->files };
    if (!t->batched)
        return hn_tensor_ref(rows[0]);
    memcpy(dims + 1, first->dims, (gsize)first->ndim * sizeof dims[0]);
    if (t->files == 1)
        return hn_tensor_reshaped(rows[0], first->ndim + 1, dims);
    HnTensor *all = hn_tensor_new_uninit(t->dtype, first->ndim + 1, dims, budget, error);
    for (int64_t i = 0; all != NULL && i < t->files; i++) {
        if (memcmp(rows[i]->dims, first->dims, (gsize)first->ndim * sizeof dims[0]) != 0) {
            g_set_error(error, HN_ERROR, HN_ERROR_SHAPE,
                        "the %" PRId64 " files of a sample for input '%s' differ in size", t->files, t->input->name);
            hn_tensor_unref(all);
            return NULL;
        }
        memcpy((guint8 *)all->data + (gsize)i * first->bytes, rows[i]->data, first->bytes);
    }
    return all;
}
