#include "data/given.h"

#include <string.h>

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "data/arrays.h"
#include "data/media.h"
#include "data/npy.h"
#include "data/numbers.h"
#include "data/random.h"
#include "onnx/tensor_file.h"

#define RAW "raw:"
#define RANDOM "random"

/* --- without a file ----------------------------------------------------------------------------------------------- */

static HnTensor *constant(const HnValue *input, int64_t x, const HnGivenOptions *o, GError **error)
{
    int64_t dims[HN_MAX_RANK];
    const HnType *type = hn_input_tensor_type(input, NULL);
    const int rank = hn_shapes_dims(o->shapes, input, dims, error);
    if (rank < 0)
        return NULL;
    const HnDtype dtype = type != NULL && type->dtype != HN_UNDEFINED ? type->dtype : HN_F32;
    HnTensor *t = hn_tensor_new(dtype, rank, dims, o->budget, error);
    for (int64_t i = 0; t != NULL && x != 0 && i < t->n; i++)
        hn_tensor_set_i64(t, i, x);
    return t;
}

static HnTensor *random_numbers(const HnValue *input, const char *seed, const HnGivenOptions *o, GError **error)
{
    gint64 x = (gint64)o->seed;
    if (*seed == ':' && !hn_parse_int(seed + 1, 0, G_MAXINT64, &x, error))
        return NULL;
    return hn_random_tensor(hn_rng((uint64_t)x), input, o->shapes, o->budget, error);
}

static gboolean is_number(const char *text)
{
    char *end = NULL;
    if (!g_ascii_isdigit(text[0]) && strchr("+-.", text[0]) == NULL)
        return FALSE;
    g_ascii_strtod(text, &end);
    return end != text && *end == '\0';
}

/* --- files -------------------------------------------------------------------------------------------------------- */

static HnTensor *only_array(GBytes *bytes, const char *name, HnBudget *budget, GError **error)
{
    HnArrays a;
    HnTensor *t = NULL;
    if (!hn_arrays_open(&a, bytes, name, budget, error))
        return NULL;
    if (hn_arrays_count(&a) == 1)
        t = hn_array_read(&a, 0, error);
    else
        g_set_error(error, HN_ERROR, HN_ERROR_FORMAT, "'%s' holds %d arrays instead of one", name, hn_arrays_count(&a));
    hn_arrays_clear(&a);
    return t;
}

static HnTensor *picture_or_sound(const HnValue *input, GBytes *bytes, HnMediaKind kind, const char *name,
                                  const HnGivenOptions *o, HnMediaTarget *target, GError **error)
{
    if (!hn_media_target(target, input, kind, o->preprocess, error))
        return NULL;
    if (target->files > 1) {
        g_set_error(error, HN_ERROR, HN_ERROR_SHAPE, "input '%s' takes %d files at once: give them with '--data'",
                    input->name, (int)target->files);
        return NULL;
    }
    HnTensor *row = hn_media_row(target, bytes, name, o->budget, error);
    HnTensor *t = row != NULL ? hn_media_join(target, &row, o->budget, error) : NULL;
    if (row != NULL)
        hn_tensor_unref(row);
    return t;
}

static HnTensor *from_bytes(const HnValue *input, GBytes *bytes, const char *name, const HnGivenOptions *o,
                            HnMediaTarget *target, GError **error)
{
    gsize size;
    gconstpointer data = g_bytes_get_data(bytes, &size);
    const HnMediaKind kind = hn_media_kind(data, size);
    if (size == 0) {
        g_set_error(error, HN_ERROR, HN_ERROR_FORMAT, "'%s' is empty", name);
        return NULL;
    }
    if (hn_npy_is(data, size) || hn_npz_is(data, size))
        return only_array(bytes, name, o->budget, error);
    if (kind != HN_MEDIA_NONE)
        return picture_or_sound(input, bytes, kind, name, o, target, error);
    if (!hn_media_is_as_named(name, kind, error))
        return NULL;
    if (g_str_has_suffix(name, ".txt") || g_str_has_suffix(name, ".csv")) {
        HnTensor *t = hn_numbers_text(data, size, input, name, o->budget, error);
        return t != NULL ? hn_numbers_fit(t, input) : NULL;
    }
    HnTensor *t = hn_onnx_value_read_bytes(bytes, input->type, o->budget, error);
    if (t == NULL)
        g_prefix_error(error, "'%s': ", name);
    return t;
}

HnTensor *hn_given_read(const HnValue *input, const char *text, const HnGivenOptions *o, HnGiven *how, GError **error)
{
    const gboolean raw = g_str_has_prefix(text, RAW), zeros = strcmp(text, "zeros") == 0;
    const char *path = raw ? text + strlen(RAW) : text;
    *how = (HnGiven){ 0 };
    how->made = zeros || strcmp(text, "ones") == 0;
    if (how->made)
        return constant(input, zeros ? 0 : 1, o, error);
    how->made = strcmp(text, RANDOM) == 0 || g_str_has_prefix(text, RANDOM ":");
    if (how->made)
        return random_numbers(input, text + strlen(RANDOM), o, error);
    if (text[0] == '[' || is_number(text))
        return hn_numbers_list(text, input, o->budget, error);
    const char *name = strcmp(path, "-") != 0 ? path : "stdin";
    g_autoptr(GBytes) bytes = hn_file_bytes(path, o->budget, error);
    if (bytes == NULL)
        return NULL;
    return raw ? hn_numbers_raw(bytes, input, name, o->budget, error)
               : from_bytes(input, bytes, name, o, &how->target, error);
}
