#include "data/preprocess.h"

#include <string.h>

#include "base/error.h"
#include "base/file.h"
#include "base/nearest.h"
#include "base/text.h"

#define MOST_SIDE 65536 /* pixels of what pictures are resized to */
#define MOST_RATE 768000
#define MOST_BYTES ((gsize)1 << 16) /* of a key file */
#define ALL "preprocess"
#define ONE "input "

/* One "key=value". */
typedef struct {
    char *input; /* NULL: all */
    const char *key;
    char *value;
} Said;

struct HnPreprocess {
    GArray *said; /* of Said, in order */
};

static void said_clear(gpointer data)
{
    Said *s = data;
    g_free(s->input);
    g_free(s->value);
}

HnPreprocess *hn_preprocess_new(void)
{
    HnPreprocess *p = g_new0(HnPreprocess, 1);
    p->said = g_array_new(FALSE, FALSE, sizeof(Said));
    g_array_set_clear_func(p->said, said_clear);
    return p;
}

void hn_preprocess_free(HnPreprocess *p)
{
    if (p == NULL)
        return;
    g_array_unref(p->said);
    g_free(p);
}

/* --- values of keys ----------------------------------------------------------------------------------------------- */

static gboolean set_numbers(const char *value, gboolean divides, int *n, double *x, gboolean *u8, GError **error)
{
    g_auto(GStrv) parts = g_strsplit(value, ",", -1);
    const guint count = g_strv_length(parts);
    if (count < 1 || count > 4) {
        g_set_error(error, HN_ERROR, HN_ERROR_USAGE, "'%s' is not one number, or one for each of up to 4 channels",
                    value);
        return FALSE;
    }
    for (guint i = 0; i < count; i++) {
        if (!hn_parse_double(g_strstrip(parts[i]), -1e30, 1e30, &x[i], error))
            return FALSE;
        if (divides && x[i] == 0) {
            g_set_error(error, HN_ERROR, HN_ERROR_USAGE, "'%s' would divide by 0", value);
            return FALSE;
        }
    }
    *n = (int)count;
    *u8 = FALSE;
    return TRUE;
}

static gboolean set_bool(const char *value, gboolean *to, GError **error)
{
    *to = strcmp(value, "true") == 0;
    if (*to || strcmp(value, "false") == 0)
        return TRUE;
    g_set_error(error, HN_ERROR, HN_ERROR_USAGE, "'%s' is neither true nor false", value);
    return FALSE;
}

static gboolean set_layout(const char *value, HnChannelLayout *to, GError **error)
{
    static const char *const first[] = { "nchw", "chw", "nct", "ct", NULL };
    static const char *const last[] = { "nhwc", "hwc", "ntc", "tc", NULL };
    g_autofree char *lower = g_ascii_strdown(value, -1);
    *to = g_strv_contains(first, lower)  ? HN_LAYOUT_CHANNELS_FIRST
          : g_strv_contains(last, lower) ? HN_LAYOUT_CHANNELS_LAST
                                         : HN_LAYOUT_ANY;
    if (*to != HN_LAYOUT_ANY)
        return TRUE;
    g_set_error(error, HN_ERROR, HN_ERROR_USAGE, "'%s' is none of nchw, nhwc, nct, ntc", value);
    return FALSE;
}

/* "WxH", or "N" alone: *w and *h; in the latter case *w is 0. */
static gboolean parse_size(const char *text, int *w, int *h, GError **error)
{
    g_auto(GStrv) parts = g_strsplit(text, "x", 3);
    gint64 x[2] = { 0 };
    const guint n = g_strv_length(parts);
    gboolean ok = n == 1 || n == 2;
    for (guint i = 0; ok && i < n; i++)
        ok = hn_parse_int(parts[i], 1, MOST_SIDE, &x[i], NULL);
    if (!ok) {
        g_set_error(error, HN_ERROR, HN_ERROR_USAGE, "'%s' is no size such as 224x224, width first, of up to %d pixels",
                    text, MOST_SIDE);
        return FALSE;
    }
    *w = n == 2 ? (int)x[0] : 0;
    *h = (int)x[n - 1];
    return TRUE;
}

static gboolean set_resize(const char *value, HnInputKeys *k, GError **error)
{
    static const char *const filters[] = { "bilinear", "bicubic", "nearest" };
    g_auto(GStrv) parts = g_strsplit(value, ":", 2);
    k->filter = HN_FILTER_BILINEAR;
    if (!parse_size(parts[0] != NULL ? parts[0] : "", &k->resize_w, &k->resize_h, error))
        return FALSE;
    if (parts[1] == NULL)
        return TRUE;
    for (gsize i = 0; i < G_N_ELEMENTS(filters); i++)
        if (strcmp(parts[1], filters[i]) == 0) {
            k->filter = (HnFilter)i;
            return TRUE;
        }
    g_set_error(error, HN_ERROR, HN_ERROR_USAGE, "'%s' is none of bilinear, bicubic, nearest", parts[1]);
    return FALSE;
}

static gboolean set_crop(const char *value, HnInputKeys *k, GError **error)
{
    k->crop_w = k->crop_h = 0;
    k->crop_part = 0;
    if (g_str_has_suffix(value, "%")) {
        if (!hn_parse_percent(value, &k->crop_part, error))
            return FALSE;
        if (k->crop_part > 0.01 && k->crop_part <= 1)
            return TRUE;
        g_set_error(error, HN_ERROR, HN_ERROR_USAGE, "'%s' is not between 1 %% and 100 %%", value);
        return FALSE;
    }
    if (!parse_size(value, &k->crop_w, &k->crop_h, error))
        return FALSE;
    k->crop_w = k->crop_w > 0 ? k->crop_w : k->crop_h;
    return TRUE;
}

static gboolean set_channels(const char *value, HnInputKeys *k, GError **error)
{
    static const struct {
        const char *name;
        int n;
        gboolean bgr;
    } known[] = {
        { "1", 1, FALSE },   { "3", 3, FALSE },    { "4", 4, FALSE },  { "grey", 1, FALSE }, { "gray", 1, FALSE },
        { "rgb", 3, FALSE }, { "rgba", 4, FALSE }, { "bgr", 3, TRUE }, { "2", 2, FALSE },
    };
    for (gsize i = 0; i < G_N_ELEMENTS(known); i++)
        if (strcmp(value, known[i].name) == 0) {
            k->channels = known[i].n;
            k->bgr = known[i].bgr;
            return TRUE;
        }
    g_set_error(error, HN_ERROR, HN_ERROR_USAGE, "'%s' is none of 1, 2 (of sound), 3, 4, grey, rgb, bgr, rgba", value);
    return FALSE;
}

/* --- presets ------------------------------------------------------------------------------------------------------ */

typedef struct {
    const char *name;
    int n;
    double mean[3], scale[3]; /* of values from 0 to 255 */
    double crop_part;
} Preset;

/* imagenet: mean and standard deviation of the ImageNet set, of 0.485, 0.456, 0.406 and 0.229, 0.224, 0.225 of 255, and
 * a crop of 224 of 256, as torchvision's and timm's weights have them. */
static const Preset presets[] = {
    { "imagenet", 3, { 123.675, 116.28, 103.53 }, { 58.395, 57.12, 57.375 }, 0.875 },
    { "0-1", 1, { 0 }, { 255 }, 0 },
    { "-1-1", 1, { 127.5 }, { 127.5 }, 0 },
    { "none", 0, { 0 }, { 0 }, 0 },
};

static const Preset *find_preset(const char *name)
{
    for (gsize i = 0; i < G_N_ELEMENTS(presets); i++)
        if (strcmp(name, presets[i].name) == 0)
            return &presets[i];
    return NULL;
}

gboolean hn_preprocess_is_preset(const char *name)
{
    return find_preset(name) != NULL;
}

static gboolean set_preset(const char *value, HnInputKeys *k, GError **error)
{
    const Preset *p = find_preset(value);
    if (p == NULL) {
        g_set_error(error, HN_ERROR, HN_ERROR_USAGE, "'%s' is none of imagenet, 0-1, -1-1, none", value);
        return FALSE;
    }
    *k = (HnInputKeys){ .n_mean = p->n, .n_scale = p->n, .crop_part = p->crop_part };
    memcpy(k->mean, p->mean, sizeof p->mean);
    memcpy(k->scale, p->scale, sizeof p->scale);
    return TRUE;
}

/* --- keys --------------------------------------------------------------------------------------------------------- */

static const char *const keys[] = { "preset", "mean",     "scale", "u8",   "layout", "resize",
                                    "crop",   "channels", "exif",  "rate", NULL };

/* Of what was said earlier nothing is left. */
static gboolean set_u8(const char *value, HnInputKeys *k, GError **error)
{
    if (!set_bool(value, &k->u8, error))
        return FALSE;
    if (k->u8)
        k->n_mean = k->n_scale = 0;
    return TRUE;
}

static gboolean set_rate(const char *value, HnInputKeys *k, GError **error)
{
    gint64 x;
    if (!hn_parse_int(value, 1, MOST_RATE, &x, error))
        return FALSE;
    k->rate = (int)x;
    return TRUE;
}

static gboolean apply(HnInputKeys *k, const char *key, const char *value, GError **error)
{
    if (strcmp(key, "preset") == 0)
        return set_preset(value, k, error);
    if (strcmp(key, "mean") == 0)
        return set_numbers(value, FALSE, &k->n_mean, k->mean, &k->u8, error);
    if (strcmp(key, "scale") == 0)
        return set_numbers(value, TRUE, &k->n_scale, k->scale, &k->u8, error);
    if (strcmp(key, "u8") == 0)
        return set_u8(value, k, error);
    if (strcmp(key, "layout") == 0)
        return set_layout(value, &k->layout, error);
    if (strcmp(key, "resize") == 0)
        return set_resize(value, k, error);
    if (strcmp(key, "crop") == 0)
        return set_crop(value, k, error);
    if (strcmp(key, "channels") == 0)
        return set_channels(value, k, error);
    return strcmp(key, "exif") == 0 ? set_bool(value, &k->exif, error) : set_rate(value, k, error);
}

static const char *find_key(const char *key)
{
    for (const char *const *k = keys; *k != NULL; k++)
        if (strcmp(*k, key) == 0)
            return *k;
    return NULL;
}

gboolean hn_preprocess_set(HnPreprocess *p, const char *input, const char *key, const char *value, GError **error)
{
    HnInputKeys ignored = { 0 };
    const Said s = { g_strdup(input), find_key(key), g_strstrip(g_strdup(value)) };
    gboolean ok = FALSE;
    if (s.key == NULL) {
        g_autofree char *words = hn_nearest_words(key, keys);
        g_set_error(error, HN_ERROR, HN_ERROR_USAGE, "there is no key '%s'%s", key, words);
    } else {
        ok = apply(&ignored, s.key, s.value, error);
    }
    if (ok) {
        g_array_append_val(p->said, s);
        return TRUE;
    }
    g_free(s.input);
    g_free(s.value);
    return FALSE;
}

HnInputKeys hn_preprocess_keys(const HnPreprocess *p, const char *input)
{
    HnInputKeys k = { 0 };
    for (guint i = 0; p != NULL && i < p->said->len; i++) {
        const Said *s = &g_array_index(p->said, Said, i);
        if (s->input == NULL || strcmp(s->input, input) == 0)
            apply(&k, s->key, s->value, NULL);
    }
    return k;
}

const char **hn_preprocess_inputs(const HnPreprocess *p)
{
    GPtrArray *names = g_ptr_array_new();
    for (guint i = 0; p != NULL && i < p->said->len; i++)
        if (g_array_index(p->said, Said, i).input != NULL)
            g_ptr_array_add(names, g_array_index(p->said, Said, i).input);
    g_ptr_array_add(names, NULL);
    return (const char **)g_ptr_array_free(names, FALSE);
}

/* --- key files ---------------------------------------------------------------------------------------------------- */

static gboolean read_group(HnPreprocess *p, GKeyFile *file, const char *group, GError **error)
{
    const char *input = g_str_has_prefix(group, ONE) ? group + strlen(ONE) : NULL;
    if (input == NULL && strcmp(group, ALL) != 0) {
        g_set_error(error, HN_ERROR, HN_ERROR_FORMAT, "group '%s' is neither [preprocess] nor [input NAME]", group);
        return FALSE;
    }
    g_auto(GStrv) names = g_key_file_get_keys(file, group, NULL, error);
    /* a preset sets others: it comes first, wherever it stands */
    for (int preset = 1; names != NULL && preset >= 0; preset--)
        for (char **key = names; *key != NULL; key++) {
            if ((strcmp(*key, "preset") == 0) != preset)
                continue;
            g_autofree char *value = g_key_file_get_value(file, group, *key, error);
            if (value != NULL && hn_preprocess_set(p, input, *key, value, error))
                continue;
            g_prefix_error(error, "'%s': ", *key);
            return FALSE;
        }
    return names != NULL;
}

gboolean hn_preprocess_read_text(HnPreprocess *p, const char *text, gsize size, const char *name, GError **error)
{
    g_autoptr(GKeyFile) file = g_key_file_new();
    GError *cause = NULL;
    gboolean ok = g_key_file_load_from_data(file, size > 0 ? text : "", size, G_KEY_FILE_NONE, &cause);
    g_auto(GStrv) groups = ok ? g_key_file_get_groups(file, NULL) : NULL;
    /* what is said of one input comes after what is said of all */
    for (int all = 1; all >= 0; all--)
        for (char **group = groups; ok && *group != NULL; group++)
            if ((strcmp(*group, ALL) == 0) == all)
                ok = read_group(p, file, *group, &cause);
    if (ok)
        return TRUE;
    g_autofree char *reason = hn_text_clean(cause->message);
    g_set_error(error, HN_ERROR, HN_ERROR_FORMAT, "'%s': %s", name, reason);
    g_error_free(cause);
    return FALSE;
}

gboolean hn_preprocess_read(HnPreprocess *p, const char *path, HnBudget *budget, GError **error)
{
    g_autoptr(GBytes) bytes = hn_file_bytes_most(path, MOST_BYTES, budget, error);
    gsize size = 0;
    const char *text = bytes != NULL ? g_bytes_get_data(bytes, &size) : NULL;
    return bytes != NULL && hn_preprocess_read_text(p, text, size, path, error);
}

/* --- as text ------------------------------------------------------------------------------------------------------ */

static void print_numbers(GString *s, const char *key, int n, const double *x)
{
    for (int i = 0; i < n; i++) {
        char text[G_ASCII_DTOSTR_BUF_SIZE];
        g_ascii_formatd(text, sizeof text, "%.9g", x[i]);
        g_string_append_printf(s, "%s%s", i > 0 ? "," : "", i > 0 ? "" : key);
        g_string_append(s, text);
    }
}

char *hn_input_keys_describe(const HnInputKeys *k)
{
    static const char *const filters[] = { "bilinear", "bicubic", "nearest" };
    GString *s = g_string_new(NULL);
    if (k->exif)
        g_string_append(s, " exif");
    if (k->resize_w > 0)
        g_string_append_printf(s, " resize=%dx%d", k->resize_w, k->resize_h);
    else if (k->resize_h > 0)
        g_string_append_printf(s, " resize=%d", k->resize_h);
    g_string_append_printf(s, " %s", filters[k->filter]);
    if (k->crop_h > 0)
        g_string_append_printf(s, " crop=%dx%d", k->crop_w, k->crop_h);
    if (k->crop_part > 0) {
        g_string_append_c(s, ' ');
        print_numbers(s, "crop-part=", 1, &k->crop_part);
    }
    if (k->rate > 0)
        g_string_append_printf(s, " rate=%d", k->rate);
    if (k->channels > 0)
        g_string_append_printf(s, " channels=%d%s", k->channels, k->bgr ? " bgr" : "");
    print_numbers(s, " mean=", k->n_mean, k->mean);
    print_numbers(s, " scale=", k->n_scale, k->scale);
    if (k->layout != HN_LAYOUT_ANY)
        g_string_append(s, k->layout == HN_LAYOUT_CHANNELS_FIRST ? " channels-first" : " channels-last");
    g_string_erase(s, 0, 1);
    return g_string_free(s, FALSE);
}
