#include "data/data.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "data/open_sizes.h"
#include "data/arrays.h"
#include "data/kept.h"
#include "data/media_files.h"
#include "data/npy.h"
#include "data/npz.h"
#include "data/numbers.h"
#include "data/random.h"
#include "data/testset.h"
#include "onnx/tensor_file.h"

#define RAW "raw:"
#define LOOKED 256 /* samples, at most, of which the largest is looked for */

typedef enum {
    SOURCE_GIVEN, /* one sample, all of it given */
    SOURCE_RANDOM,
    SOURCE_SETS,  /* paths: folders */
    SOURCE_FILES, /* paths: .npz and .npy */
    SOURCE_WHOLE, /* arrays, one sample as they stand */
    SOURCE_ROWS,  /* arrays, samples along their first axes */
    SOURCE_MEDIA, /* files: pictures or sound */
} SourceKind;

struct HnData {
    const HnData *whole; /* hn_data_some(): these samples of it, and nothing below but count and o counts. Else NULL */
    int64_t *some;       /* [count] */
    SourceKind kind;
    char *source; /* NULL: given */
    HnDataOptions o;
    int n;
    HnValue **inputs;
    HnTensor **given; /* n places, NULL: from the source */
    HnShapes *sizes;  /* RANDOM: those of the options, and of dimensions that they say nothing of */
    int64_t count;
    GPtrArray *paths;
    HnArrays arrays;
    int64_t rows;         /* ROWS: of a sample */
    gboolean *drops_axis; /* ROWS, per input: rows is 1 and the first axis goes */
    HnMediaFiles files;   /* MEDIA */
    HnMediaTarget target; /* MEDIA: of input media_input; rows of its files make a sample */
    int media_input;
    GBytes *bytes; /* MEDIA: of the only file, where that is stdin. NULL: they are read from their paths */
    char *cache;   /* MEDIA; NULL: none */
    HnKept *kept;  /* NULL: none are */
};

/* --- samples ----------------------------------------------------------------------------------------------------- */

void hn_sample_free(HnSample *s)
{
    if (!s)
        return;
    for (int i = 0; i < s->n; i++)
        if (s->in[i])
            hn_tensor_unref(s->in[i]);
    if (s->label)
        hn_tensor_unref(s->label);
    g_free(s->in);
    g_free(s->which);
    g_free(s->name);
    g_free(s);
}

char *hn_data_name(const HnData *d, int64_t i)
{
    while (d->whole != NULL)
        d = d->whole;
    switch (d->kind) {
    case SOURCE_GIVEN:
        return g_strdup("input");
    case SOURCE_RANDOM:
        return g_strdup_printf("random sample %" PRId64, i);
    case SOURCE_WHOLE:
        return g_strdup(d->arrays.name);
    case SOURCE_ROWS:
        return g_strdup_printf("%s sample %" PRId64, d->arrays.name, i);
    case SOURCE_MEDIA:
        return g_strdup(d->files.paths->pdata[i * d->rows]);
    default:
        return g_strdup(d->paths->pdata[i]);
    }
}

static HnSample *sample_new(const HnData *d, int64_t index, int64_t count)
{
    HnSample *s = g_new0(HnSample, 1);
    s->n = d->n;
    s->in = g_new0(HnTensor *, MAX(d->n, 1));
    s->index = index;
    s->count = count;
    s->which = g_new(int64_t, (gsize)count);
    s->which[0] = index;
    s->name = hn_data_name(d, index);
    for (int i = 0; i < d->n; i++)
        s->in[i] = d->given[i] ? hn_tensor_ref(d->given[i]) : NULL;
    return s;
}

static gboolean load_whole(const HnData *d, const HnArrays *a, HnSample *s, GError **error)
{
    for (int i = 0; i < d->n; i++) {
        const HnValue *v = d->inputs[i];
        if (a->of_input[i] == HN_ARRAYS_LIST &&
            !(s->in[i] = hn_npz_read_list(a->npz, v->name, v->type, d->o.budget, error)))
            return FALSE;
        if (a->of_input[i] < 0)
            continue;
        HnTensor *t = hn_array_read(a, a->of_input[i], error);
        if (!t)
            return FALSE;
        s->in[i] = hn_input_add_leading(d->inputs[i], t);
    }
    return a->label < 0 || (s->label = hn_array_read(a, a->label, error));
}

/* Of samples index[0..n). */
static gboolean load_rows(const HnData *d, const int64_t *index, int64_t n, HnSample *s, GError **error)
{
    const HnArrays *a = &d->arrays;
    g_autofree int64_t *first = g_new(int64_t, (gsize)n);
    for (int64_t k = 0; k < n; k++)
        first[k] = index[k] * d->rows;
    for (int i = 0; i < d->n; i++) {
        if (a->of_input[i] < 0)
            continue;
        HnTensor *t = hn_array_pieces(a, a->of_input[i], first, n, d->rows, d->o.budget, error);
        if (t && d->drops_axis[i]) {
            s->in[i] = hn_tensor_reshaped(t, t->ndim - 1, t->dims + 1);
            hn_tensor_unref(t);
        } else {
            s->in[i] = t;
        }
        if (!t)
            return FALSE;
    }
    return a->label < 0 || (s->label = hn_array_pieces(a, a->label, first, n, d->rows, d->o.budget, error));
}

static gboolean load_set(const HnData *d, const char *path, HnSample *s, GError **error)
{
    int n = 0;
    g_autofree const HnType **types = g_new0(const HnType *, MAX(d->n, 1));
    for (int i = 0; i < d->n; i++)
        if (!hn_value_is_weight(d->inputs[i]))
            types[n++] = d->inputs[i]->type;
    g_autofree HnTensor **tensors = g_new0(HnTensor *, MAX(n, 1));
    if (!hn_testset_read(path, "input", n, types, tensors, d->o.budget, error))
        return FALSE;
    for (int i = 0, k = 0; i < d->n; i++) {
        if (hn_value_is_weight(d->inputs[i]))
            continue;
        if (s->in[i] && tensors[k])
            hn_tensor_unref(tensors[k]);
        else if (!s->in[i])
            s->in[i] = tensors[k];
        k++;
    }
    return TRUE;
}

static gboolean load_file(const HnData *d, const char *path, HnSample *s, GError **error)
{
    HnArrays a;
    if (!hn_arrays_read(&a, path, d->o.budget, error))
        return FALSE;
    gboolean ok = hn_arrays_match(&a, d->inputs, d->given, d->n, error) && load_whole(d, &a, s, error);
    hn_arrays_clear(&a);
    return ok;
}

static gboolean load_random(const HnData *d, HnSample *s, GError **error)
{
    HnRng all = hn_rng(d->o.seed), sample = hn_rng_split(&all, (uint64_t)s->index);
    for (int i = 0; i < d->n; i++)
        if (!s->in[i] && !(s->in[i] = hn_random_tensor(hn_rng_split(&sample, (uint64_t)i), d->inputs[i], d->sizes,
                                                       d->o.budget, error)))
            return FALSE;
    return TRUE;
}

static HnTensor *load_media_row(const HnData *d, int64_t k, GError **error)
{
    const char *path = d->files.paths->pdata[k];
    return d->bytes != NULL ? hn_media_row(&d->target, d->bytes, path, d->o.budget, error)
                            : hn_media_row_cached(&d->target, path, d->cache, d->o.budget, error);
}

static HnTensor *media_label(const HnData *d, int64_t i)
{
    return d->files.labels != NULL ? hn_tensor_ints(&g_array_index(d->files.labels, gint64, i * d->rows), d->rows)
                                   : NULL;
}

/* Sample s->index: d->rows files, and their labels. */
static gboolean load_media(const HnData *d, HnSample *s, GError **error)
{
    g_autoptr(GPtrArray) rows = g_ptr_array_new_with_free_func((GDestroyNotify)hn_tensor_unref);
    for (int64_t k = 0; k < d->rows; k++) {
        HnTensor *row = load_media_row(d, s->index * d->rows + k, error);
        if (row == NULL)
            return FALSE;
        g_ptr_array_add(rows, row);
    }
    s->in[d->media_input] = hn_media_join(&d->target, (HnTensor *const *)rows->pdata, d->o.budget, error);
    if (s->in[d->media_input] != NULL)
        s->label = media_label(d, s->index);
    return s->in[d->media_input] != NULL;
}

static HnSample *load(const HnData *d, int64_t i, GError **error)
{
    g_autoptr(HnSample) s = sample_new(d, i, 1);
    gboolean ok = TRUE;
    switch (d->kind) {
    case SOURCE_GIVEN:
        break;
    case SOURCE_RANDOM:
        ok = load_random(d, s, error);
        break;
    case SOURCE_SETS:
        ok = load_set(d, d->paths->pdata[i], s, error);
        break;
    case SOURCE_FILES:
        ok = load_file(d, d->paths->pdata[i], s, error);
        break;
    case SOURCE_WHOLE:
        ok = load_whole(d, &d->arrays, s, error);
        break;
    case SOURCE_ROWS:
        ok = load_rows(d, &i, 1, s, error);
        break;
    case SOURCE_MEDIA:
        ok = load_media(d, s, error);
        break;
    }
    return ok ? g_steal_pointer(&s) : NULL;
}

HnSample *hn_data_load(const HnData *d, int64_t i, GError **error)
{
    g_assert(i >= 0 && i < d->count);
    if (d->whole != NULL)
        return hn_data_load(d->whole, d->some[i], error);
    HnSample *s = hn_kept_get(d->kept, i);
    if (s != NULL || (s = load(d, i, error)) == NULL)
        return s;
    hn_kept_put(d->kept, i, s);
    return s;
}

HnSample *hn_data_load_label(const HnData *d, int64_t i, GError **error)
{
    g_assert(i >= 0 && i < d->count);
    if (d->whole != NULL)
        return hn_data_load_label(d->whole, d->some[i], error);
    const int64_t first = i * d->rows;
    const HnArrays *a = &d->arrays;
    g_autoptr(HnSample) s = sample_new(d, i, 1);
    if (d->kind == SOURCE_MEDIA)
        s->label = media_label(d, i);
    if (d->kind != SOURCE_ROWS || a->label < 0)
        return g_steal_pointer(&s);
    s->label = hn_array_pieces(a, a->label, &first, 1, d->rows, d->o.budget, error);
    return s->label != NULL ? g_steal_pointer(&s) : NULL;
}

HnSample *hn_data_load_largest(const HnData *d, GError **error)
{
    g_autoptr(HnSample) largest = NULL;
    for (int64_t i = 0; i < MIN(hn_data_count(d), LOOKED); i++) {
        g_autoptr(HnSample) s = hn_data_load(d, i, error);
        if (s == NULL)
            return NULL;
        if (largest != NULL && hn_sample_bytes(s) <= hn_sample_bytes(largest))
            continue;
        hn_sample_free(largest);
        largest = g_steal_pointer(&s);
    }
    return g_steal_pointer(&largest);
}

/* --- batches ----------------------------------------------------------------------------------------------------- */

static gboolean can_join(const HnTensor *a, const HnTensor *b)
{
    if (!a || !b || a->dtype != b->dtype || hn_dtype_bits(a->dtype) % 8 != 0 ||
        (hn_dtype_bits(a->dtype) == 0 && a->dtype != HN_STRING))
        return FALSE;
    return a->ndim == b->ndim && a->ndim > 0 &&
           !memcmp(a->dims + 1, b->dims + 1, (gsize)(a->ndim - 1) * sizeof a->dims[0]);
}

/* Tensors of n samples, at place i of each (-1: labels), one behind the other; *joined stays NULL where all are. */
static gboolean join(HnSample *const *samples, int n, int i, const char *what, HnBudget *budget, HnTensor **joined,
                     GError **error)
{
    g_autofree HnTensor **parts = g_new(HnTensor *, n);
    int64_t dims[HN_MAX_RANK], rows = 0;
    gboolean any = FALSE;
    for (int k = 0; k < n; k++) {
        parts[k] = i < 0 ? samples[k]->label : samples[k]->in[i];
        any |= parts[k] != NULL;
    }
    if (!any)
        return TRUE;
    for (int k = 0; k < n; k++) {
        if (!can_join(parts[0], parts[k]) || __builtin_add_overflow(rows, parts[k]->dims[0], &rows)) {
            g_set_error(error, HN_ERROR, HN_ERROR_SHAPE, "'%s' and '%s' cannot be one batch: %s differs or has no axis",
                        samples[0]->name, samples[k]->name, what);
            return FALSE;
        }
    }
    memcpy(dims, parts[0]->dims, (gsize)parts[0]->ndim * sizeof dims[0]);
    dims[0] = rows;
    HnTensor *t = hn_tensor_new_uninit(parts[0]->dtype, parts[0]->ndim, dims, budget, error);
    if (!t)
        return FALSE;
    for (int64_t k = 0, at = 0; k < n; at += parts[k++]->n)
        hn_tensor_copy_elements(t, at, parts[k], 0, parts[k]->n);
    *joined = t;
    return TRUE;
}

/* Inputs that are the same in every sample are not joined. */
static gboolean check_batch(const HnData *d, GError **error)
{
    for (int i = 0; i < d->n; i++) {
        const gboolean alone = d->kind == SOURCE_MEDIA && i == d->media_input && !d->target.batched;
        if (!alone && (d->kind != SOURCE_ROWS || !d->drops_axis[i]))
            continue;
        g_set_error(error, HN_ERROR, HN_ERROR_SHAPE, "input '%s' has no axis for a batch of samples",
                    d->inputs[i]->name);
        return FALSE;
    }
    return TRUE;
}

HnSample *hn_data_load_batch(const HnData *d, const int64_t *index, int n, GError **error)
{
    g_assert(n > 0);
    if (d->whole != NULL) {
        g_autofree int64_t *at = g_new(int64_t, (gsize)n);
        for (int k = 0; k < n; k++)
            at[k] = d->some[index[k]];
        return hn_data_load_batch(d->whole, at, n, error);
    }
    if (n == 1)
        return hn_data_load(d, index[0], error);
    if (!check_batch(d, error))
        return NULL;
    g_autoptr(HnSample) batch = sample_new(d, index[0], n);
    memcpy(batch->which, index, (gsize)n * sizeof *index);
    if (d->kind == SOURCE_ROWS)
        return load_rows(d, index, n, batch, error) ? g_steal_pointer(&batch) : NULL;

    g_autoptr(GPtrArray) samples = g_ptr_array_new_with_free_func((GDestroyNotify)hn_sample_free);
    for (int k = 0; k < n; k++) {
        HnSample *s = hn_data_load(d, index[k], error);
        if (!s)
            return NULL;
        g_ptr_array_add(samples, s);
    }
    HnSample *const *all = (HnSample *const *)samples->pdata;
    for (int i = 0; i < d->n; i++) {
        g_autofree char *what = g_strdup_printf("input '%s'", d->inputs[i]->name);
        if (!d->given[i] && !join(all, n, i, what, d->o.budget, &batch->in[i], error))
            return NULL;
    }
    return join(all, n, -1, "the label", d->o.budget, &batch->label, error) ? g_steal_pointer(&batch) : NULL;
}

/* --- opening ----------------------------------------------------------------------------------------------------- */

/* Whether the array fits the input as it stands, missing leading dimensions aside. */
static gboolean fits_whole(const HnData *d, int input, int rank, const int64_t *dims)
{
    const HnType *type = hn_input_tensor_type(d->inputs[input], NULL);
    if (!type || type->rank < 0)
        return TRUE;
    if (rank > type->rank)
        return FALSE;
    for (int k = 0; k < type->rank; k++) {
        int64_t n = k < type->rank - rank ? 1 : dims[k - (type->rank - rank)];
        if (type->dims[k].known && type->dims[k].n != n)
            return FALSE;
    }
    return TRUE;
}

static gboolean all_fit_whole(const HnData *d)
{
    const HnArrays *a = &d->arrays;
    for (int i = 0; i < d->n; i++)
        if (a->of_input[i] >= 0 &&
            !fits_whole(d, i, hn_array_rank(a, a->of_input[i]), hn_array_dims(a, a->of_input[i])))
            return FALSE;
    return TRUE;
}

/* The first axis of all arrays is one that inputs leave open. */
static gboolean has_open_rows(const HnData *d)
{
    const HnArrays *a = &d->arrays;
    for (int i = 0; i < d->n; i++) {
        const HnType *type = a->of_input[i] >= 0 ? hn_input_tensor_type(d->inputs[i], NULL) : NULL;
        if (a->of_input[i] < 0)
            continue;
        if (type == NULL || type->rank < 1 || type->rank != hn_array_rank(a, a->of_input[i]) || type->dims[0].known)
            return FALSE;
    }
    return TRUE;
}

/* Length of all first axes; -1: they differ, or an array has none. */
static int64_t common_rows(const HnArrays *a, int n)
{
    int64_t rows = -1;
    for (int i = -1; i < n; i++) {
        int k = i < 0 ? a->label : a->of_input[i];
        if (k == HN_ARRAYS_LIST) /* of one sample */
            return -1;
        if (k < 0)
            continue;
        if (hn_array_rank(a, k) == 0 || (rows >= 0 && hn_array_dims(a, k)[0] != rows))
            return -1;
        rows = hn_array_dims(a, k)[0];
    }
    return rows;
}

/* Rows of a sample, from what inputs declare; 0: they contradict each other. */
static int64_t rows_of_sample(HnData *d)
{
    const HnArrays *a = &d->arrays;
    int64_t rows = 0;
    for (int i = 0; i < d->n; i++) {
        const HnType *type = hn_input_tensor_type(d->inputs[i], NULL);
        if (a->of_input[i] < 0 || !type || type->rank < 0)
            continue;
        int rank = hn_array_rank(a, a->of_input[i]);
        int64_t r = 0;
        d->drops_axis[i] = rank == type->rank + 1;
        if (d->drops_axis[i])
            r = 1;
        else if (rank == type->rank && type->dims[0].known)
            r = type->dims[0].n;
        if (r > 0 && rows > 0 && r != rows)
            return 0;
        rows = r > 0 ? r : rows;
    }
    return MAX(rows, 1);
}

static gboolean open_rows(HnData *d, int64_t total, GError **error)
{
    d->drops_axis = g_new0(gboolean, MAX(d->n, 1));
    d->rows = rows_of_sample(d);
    if (d->rows == 0) {
        g_set_error(error, HN_ERROR, HN_ERROR_SHAPE,
                    "inputs of the model declare different first dimensions, so the "
                    "rows of '%s' cannot be samples",
                    d->source);
        return FALSE;
    }
    d->kind = SOURCE_ROWS;
    d->count = total / d->rows;
    if (total % d->rows && !d->o.drop_rest) {
        g_set_error(error, HN_ERROR, HN_ERROR_SHAPE,
                    "the %" PRId64 " rows of '%s' do not make batches of %" PRId64 " as the model has them", total,
                    d->source, d->rows);
        return FALSE;
    }
    return TRUE;
}

/* d->arrays is known: one sample, or several along first axes. */
static gboolean open_arrays(HnData *d, GError **error)
{
    if (!hn_arrays_match(&d->arrays, d->inputs, d->given, d->n, error))
        return FALSE;
    int64_t total = common_rows(&d->arrays, d->n);
    d->kind = SOURCE_WHOLE;
    d->count = 1;
    const gboolean rows = d->o.rows && total != 1 && has_open_rows(d);
    if (total < 0 || (d->arrays.npy && all_fit_whole(d) && !rows))
        return TRUE;
    GError *cause = NULL;
    if (open_rows(d, total, &cause))
        return TRUE;
    if (!all_fit_whole(d)) {
        g_propagate_error(error, cause);
        return FALSE;
    }
    g_error_free(cause);
    d->kind = SOURCE_WHOLE;
    d->count = 1;
    return TRUE;
}

/* The input that a file without names becomes: the only one that is not given. */
static gboolean find_only_input(HnData *d, GError **error)
{
    g_autoptr(GString) names = g_string_new(NULL);
    int found = 0;
    for (int i = 0; i < d->n; i++) {
        gboolean optional;
        hn_input_tensor_type(d->inputs[i], &optional);
        if (d->given[i] != NULL || optional)
            continue;
        d->media_input = i;
        g_string_append_printf(names, "%s'%s'", found++ > 0 ? ", " : "", d->inputs[i]->name);
    }
    if (found == 1)
        return TRUE;
    g_set_error(error, HN_ERROR, HN_ERROR_USAGE,
                found == 0 ? "no input is left for '%s'"
                           : "'%s' becomes one input, and there are %s: give the others with '--input'",
                d->source, names->str);
    return FALSE;
}

/* d->files is known. */
static gboolean open_media(HnData *d, GError **error)
{
    if (!find_only_input(d, error) ||
        !hn_media_target(&d->target, d->inputs[d->media_input], d->files.kind, d->o.preprocess, error))
        return FALSE;
    d->kind = SOURCE_MEDIA;
    d->rows = d->target.files;
    d->count = d->files.paths->len / d->rows;
    if (d->files.paths->len % d->rows == 0 || (d->o.drop_rest && d->count > 0))
        return TRUE;
    g_set_error(error, HN_ERROR, HN_ERROR_SHAPE,
                "the %u files of '%s' do not make batches of %" PRId64 " as input '%s' has them", d->files.paths->len,
                d->source, d->rows, d->inputs[d->media_input]->name);
    return FALSE;
}

static gboolean open_media_bytes(HnData *d, GBytes *bytes, HnMediaKind kind, GError **error)
{
    const gboolean is_stdin = strcmp(d->source, "-") == 0;
    d->files = (HnMediaFiles){ .kind = kind, .paths = g_ptr_array_new_with_free_func(g_free) };
    g_ptr_array_add(d->files.paths, g_strdup(is_stdin ? "stdin" : d->source));
    d->bytes = is_stdin ? g_bytes_ref(bytes) : NULL;
    return open_media(d, error);
}

static gboolean is_text(const char *path)
{
    return g_str_has_suffix(path, ".csv") || g_str_has_suffix(path, ".txt");
}

static gboolean open_numbers(HnData *d, GBytes *bytes, const char *path, gboolean raw, GError **error)
{
    gsize size;
    const char *text = g_bytes_get_data(bytes, &size), *name = strcmp(path, "-") != 0 ? path : "stdin";
    if (!find_only_input(d, error))
        return FALSE;
    const HnValue *input = d->inputs[d->media_input];
    HnTensor *t = raw ? hn_numbers_raw(bytes, input, name, d->o.budget, error)
                      : hn_numbers_text(text, size, input, name, d->o.budget, error);
    d->arrays = (HnArrays){ .name = g_strdup(name), .npy = t, .label = -1 };
    return t != NULL && open_arrays(d, error);
}

static gboolean open_file(HnData *d, GError **error)
{
    const gboolean raw = g_str_has_prefix(d->source, RAW);
    const char *path = raw ? d->source + strlen(RAW) : d->source;
    g_autoptr(GBytes) bytes = hn_file_bytes(path, d->o.budget, error);
    if (bytes == NULL)
        return FALSE;
    gsize size;
    gconstpointer data = g_bytes_get_data(bytes, &size);
    const HnMediaKind kind = raw ? HN_MEDIA_NONE : hn_media_kind(data, size);
    if (kind != HN_MEDIA_NONE)
        return open_media_bytes(d, bytes, kind, error);
    if (!raw && !hn_npy_is(data, size) && !hn_npz_is(data, size) && !hn_media_is_as_named(path, kind, error))
        return FALSE;
    if (!raw && is_text(path) && hn_media_files_are(data, size))
        return hn_media_files_list(&d->files, data, size, path, error) && open_media(d, error);
    if (raw || is_text(path))
        return open_numbers(d, bytes, path, raw, error);
    return hn_arrays_open(&d->arrays, bytes, strcmp(path, "-") ? path : "stdin", d->o.budget, error) &&
           open_arrays(d, error);
}

static int compare_paths(gconstpointer a, gconstpointer b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* .npz and .npy files, a sample each. */
static gboolean open_array_files(HnData *d, GError **error)
{
    d->kind = SOURCE_FILES;
    d->paths = g_ptr_array_new_with_free_func(g_free);
    g_autoptr(GDir) dir = g_dir_open(d->source, 0, NULL);
    const char *name;
    while (dir && (name = g_dir_read_name(dir)))
        if (g_str_has_suffix(name, ".npy") || g_str_has_suffix(name, ".npz"))
            g_ptr_array_add(d->paths, g_build_filename(d->source, name, NULL));
    g_ptr_array_sort(d->paths, compare_paths);
    d->count = d->paths->len;
    if (d->count > 0)
        return TRUE;
    g_set_error(error, HN_ERROR, HN_ERROR_FORMAT, "folder '%s' holds no test set, .npz, .npy, picture or sound",
                d->source);
    return FALSE;
}

static gboolean open_folder(HnData *d, GError **error)
{
    d->paths = hn_testset_find(d->source, NULL);
    if (d->paths) {
        d->kind = SOURCE_SETS;
        d->count = d->paths->len;
        return TRUE;
    }
    if (!hn_media_files_in(&d->files, d->source, error))
        return FALSE;
    return d->files.paths->len > 0 ? open_media(d, error) : open_array_files(d, error);
}

static gboolean open_random(HnData *d, const char *count, GError **error)
{
    gint64 n = 1;
    if (*count && !hn_parse_int(count + 1, 1, G_MAXINT32, &n, error)) {
        g_prefix_error(error, "data '%s': ", d->source);
        return FALSE;
    }
    d->kind = SOURCE_RANDOM;
    d->count = n;
    d->sizes = hn_shapes_copy(d->o.shapes);
    return hn_open_sizes_fit(d->sizes, d->inputs, d->given, d->n, d->o.budget, error);
}

static gboolean open_source(HnData *d, GError **error)
{
    const char *source = d->source, *word = "random";
    gsize n = strlen(word);
    d->count = 1;
    if (!source)
        return TRUE;
    if (!strncmp(source, word, n) && (!source[n] || source[n] == ':'))
        return open_random(d, source + n, error);
    if (g_file_test(source, G_FILE_TEST_IS_DIR))
        return open_folder(d, error);
    return open_file(d, error);
}

HnData *hn_data_open(const char *source, HnValue *const *inputs, int n, const HnDataOptions *options, GError **error)
{
    g_autoptr(HnData) d = g_new0(HnData, 1);
    d->source = g_strdup(source);
    d->o = *options;
    d->o.given = NULL;
    d->cache = g_strdup(options->cache);
    hn_budget_ref(d->o.budget);
    d->arrays.label = -1;
    d->n = n;
    d->inputs = g_new0(HnValue *, MAX(n, 1));
    d->given = g_new0(HnTensor *, MAX(n, 1));
    for (int i = 0; i < n; i++) {
        d->inputs[i] = inputs[i];
        d->given[i] = options->given && options->given[i] ? hn_tensor_ref(options->given[i]) : NULL;
    }
    if (!open_source(d, error))
        return NULL;
    if (d->count == 0 || d->count > G_MAXINT32) {
        g_set_error(error, HN_ERROR, HN_ERROR_FORMAT, d->count ? "'%s' has too many samples" : "'%s' has no samples",
                    d->source);
        return NULL;
    }
    d->kept = d->o.keep > 0 ? hn_kept_new(d->count, d->o.keep) : NULL;
    return g_steal_pointer(&d);
}

/* The model leaves a dimension of the input open, and nobody chose its size. */
static gboolean is_guessed(const HnData *d, int i)
{
    const HnType *t = d->inputs[i]->type;
    int64_t n;
    for (int a = 0; a < hn_type_rank(t) && d->given[i] == NULL; a++)
        if (!t->dims[a].known && (d->o.shapes == NULL || !hn_shapes_says(d->o.shapes, d->inputs[i], a, &n)))
            return TRUE;
    return FALSE;
}

void hn_data_explain(const HnData *d, GError **error)
{
    g_autoptr(GString) text = g_string_new(NULL);
    int64_t dims[HN_MAX_RANK];
    if (d == NULL || d->kind != SOURCE_RANDOM || error == NULL || *error == NULL ||
        ((*error)->code != HN_ERROR_SHAPE && (*error)->code != HN_ERROR_VALUE))
        return;
    for (int i = 0; i < d->n; i++) {
        const int rank = is_guessed(d, i) ? hn_shapes_dims(d->sizes, d->inputs[i], dims, NULL) : 0;
        if (rank > 0)
            g_string_append_printf(text, "%s%s:", text->len > 0 ? "," : "", d->inputs[i]->name);
        for (int a = 0; a < rank; a++)
            g_string_append_printf(text, "%s%" PRId64, a > 0 ? "x" : "", dims[a]);
    }
    if (text->len == 0)
        return;
    char *message = g_strdup_printf("%s (sizes that the model leaves open were guessed: '--shapes %s' sets them)",
                                    (*error)->message, text->str);
    g_free((*error)->message);
    (*error)->message = message;
}

HnData *hn_data_some(const HnData *d, const int64_t *index, int64_t n)
{
    HnData *some = g_new0(HnData, 1);
    *some = (HnData){ .whole = d,
                      .some = g_memdup2(index, (gsize)n * sizeof *index),
                      .kind = d->kind,
                      .o = { .budget = hn_budget_ref(d->o.budget) },
                      .count = n };
    some->arrays.label = d->arrays.label;
    some->files.labels = d->files.labels != NULL ? g_array_ref(d->files.labels) : NULL;
    some->source = g_strdup(d->source);
    return some;
}

HnData *hn_data_without(const HnData *d, int64_t i)
{
    g_autofree int64_t *rest = g_new(int64_t, (gsize)d->count);
    for (int64_t k = 0; k + 1 < d->count; k++)
        rest[k] = k < i ? k : k + 1;
    return hn_data_some(d, rest, d->count - 1);
}

void hn_data_free(HnData *d)
{
    if (!d)
        return;
    for (int i = 0; i < d->n; i++)
        if (d->given[i])
            hn_tensor_unref(d->given[i]);
    hn_arrays_clear(&d->arrays);
    hn_media_files_clear(&d->files);
    g_clear_pointer(&d->bytes, g_bytes_unref);
    g_free(d->cache);
    hn_kept_free(d->kept);
    g_clear_pointer(&d->paths, g_ptr_array_unref);
    hn_budget_unref(d->o.budget);
    hn_shapes_free(d->sizes);
    g_free(d->some);
    g_free(d->drops_axis);
    g_free(d->given);
    g_free(d->inputs);
    g_free(d->source);
    g_free(d);
}

int64_t hn_data_count(const HnData *d)
{
    return d->count;
}

gboolean hn_data_synthetic(const HnData *d)
{
    return d->kind == SOURCE_RANDOM;
}

gboolean hn_data_labelled(const HnData *d)
{
    return d->arrays.label >= 0 || d->files.labels != NULL;
}

const HnMediaTarget *hn_data_media(const HnData *d)
{
    while (d->whole != NULL)
        d = d->whole;
    return d->kind == SOURCE_MEDIA ? &d->target : NULL;
}

HnValue *const *hn_data_inputs(const HnData *d, int *n)
{
    while (d->whole != NULL)
        d = d->whole;
    *n = d->n;
    return d->inputs;
}

const char *hn_data_source(const HnData *d)
{
    return d->source;
}
