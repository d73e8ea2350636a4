/*
 * Maps: ZipMap makes a sequence of them, one for each row of scores, DictVectorizer and CastMap make a row of one. All
 * maps of a ZipMap share their keys.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "op/ml.h"
#include "op/sequence.h"

static HnTensor *labels_tensor(const HnMlLabels *labels, HnBudget *budget, GError **error)
{
    HnTensor *t = hn_tensor_new(labels->strings != NULL ? HN_STRING : HN_I64, 1, &labels->n, budget, error);
    for (int64_t i = 0; t != NULL && i < labels->n; i++)
        hn_ml_label(t, i, labels, i);
    return t;
}

/* --- ZipMap ------------------------------------------------------------------------------------------------------ */

typedef struct {
    HnMlLabels keys;
} ZipMap;

static void zipmap_bind(HnBind *b, void *params)
{
    ZipMap *p = params;
    hn_ml_bind_labels(b, "classlabels_strings", "classlabels_int64s", &p->keys);
    if (p->keys.n == 0)
        hn_bind_fail(b, HN_ERROR_ATTRIBUTE, "there are no labels of classes");
}

static void zipmap_infer(HnInfer *x)
{
    const ZipMap *p = x->params;
    const int rank = hn_infer_rank(x, 0);
    const HnDim d = rank > 0 ? hn_infer_dim(x, 0, rank - 1) : hn_dim_unknown();
    if (rank == 0 || rank > 2)
        hn_infer_fail(x, HN_ERROR_SHAPE, "rows of scores have 1 or 2 dimensions, not %d", rank);
    if (d.known && d.n != p->keys.n)
        hn_infer_fail(x, HN_ERROR_SHAPE, "%" PRId64 " scores do not fit to %" PRId64 " labels", d.n, p->keys.n);
    HnType *map =
        hn_type_list(HN_TYPE_MAP, p->keys.strings != NULL ? HN_STRING : HN_I64, hn_type_tensor(HN_F32, 0, NULL));
    hn_infer_out_sequence(x, 0, map);
}

/* Row `row` of input 0 under the keys; NULL: e->error is set. */
static HnTensor *map_of_row(HnEval *e, HnTensor *keys, int64_t row)
{
    HnTensor *map = hn_tensor_new_list(HN_MAP, 2, e->budget, &e->error);
    if (map == NULL)
        return NULL;
    HnTensor *values = hn_tensor_new_uninit(HN_F32, 1, &keys->n, e->budget, &e->error);
    if (values == NULL) {
        hn_tensor_unref(map);
        return NULL;
    }
    memcpy(values->data, (const float *)e->in[0]->data + row * keys->n, values->bytes);
    hn_tensor_set_item(map, 0, keys);
    hn_tensor_set_item(map, 1, values);
    hn_tensor_unref(values);
    return map;
}

static void zipmap_ref(HnEval *e)
{
    const ZipMap *p = e->params;
    int64_t rows, n;
    if (!hn_ml_rows(e, e->in[0], &rows, &n))
        return;
    if (n != p->keys.n) {
        hn_eval_fail(e, HN_ERROR_SHAPE, "%" PRId64 " scores do not fit to %" PRId64 " labels", n, p->keys.n);
        return;
    }
    g_autoptr(HnTensor) keys = labels_tensor(&p->keys, e->budget, &e->error);
    HnTensor *list = keys != NULL ? hn_eval_out_list(e, 0, HN_SEQUENCE, rows) : NULL;
    for (int64_t i = 0; list != NULL && i < rows && e->error == NULL; i++) {
        g_autoptr(HnTensor) map = map_of_row(e, keys, i);
        if (map != NULL)
            hn_tensor_set_item(list, i, map);
    }
}

/* --- of one map -------------------------------------------------------------------------------------------------- */

/* The map of input 0; FALSE: failed. */
static gboolean read_map(HnEval *e, HnDtype key, const HnTensor **keys, const HnTensor **values)
{
    const HnTensor *map = e->in[0];
    if (map->dtype != HN_MAP) {
        hn_eval_fail(e, HN_ERROR_TYPE, "input 0 is no map");
        return FALSE;
    }
    *keys = hn_tensor_get_item(map, 0);
    *values = hn_tensor_get_item(map, 1);
    if ((*keys)->dtype != key) {
        hn_eval_fail(e, HN_ERROR_TYPE, "the map's keys are %s, not %s", hn_dtype_name((*keys)->dtype),
                     hn_dtype_name(key));
        return FALSE;
    }
    if ((*values)->n == (*keys)->n && !hn_tensor_is_list(*values))
        return TRUE;
    hn_eval_fail(e, HN_ERROR_TYPE, "the map's values are no numbers or strings");
    return FALSE;
}

/* Type of the values of the map at input 0; HN_UNDEFINED: not known. */
static HnDtype infer_values(HnInfer *x, HnDtype key)
{
    const HnType *t = x->in[0];
    if (t == NULL || t->kind == HN_TYPE_NONE)
        return HN_UNDEFINED;
    if (t->kind != HN_TYPE_MAP)
        hn_infer_fail(x, HN_ERROR_TYPE, "input 0 is no map");
    else if (t->dtype != HN_UNDEFINED && t->dtype != key)
        hn_infer_fail(x, HN_ERROR_TYPE, "the map's keys are %s, not %s", hn_dtype_name(t->dtype), hn_dtype_name(key));
    return t->kind == HN_TYPE_MAP ? hn_type_dtype(t->elem) : HN_UNDEFINED;
}

static void infer_row(HnInfer *x, HnDtype dtype, HnDim n)
{
    const HnDim dims[] = { hn_dim(1), n };
    hn_infer_out(x, 0, dtype, 2, dims);
}

/* --- DictVectorizer ---------------------------------------------------------------------------------------------- */

typedef struct {
    HnMlLabels words;
} DictVectorizer;

static HnDtype key_type(const DictVectorizer *p)
{
    return p->words.strings != NULL ? HN_STRING : HN_I64;
}

static void dictvectorizer_bind(HnBind *b, void *params)
{
    DictVectorizer *p = params;
    hn_ml_bind_labels(b, "string_vocabulary", "int64_vocabulary", &p->words);
    if (p->words.n == 0)
        hn_bind_fail(b, HN_ERROR_ATTRIBUTE, "the vocabulary is empty");
}

static void dictvectorizer_infer(HnInfer *x)
{
    const DictVectorizer *p = x->params;
    infer_row(x, infer_values(x, key_type(p)), hn_dim(p->words.n));
}

/* 1 + place of each key; of equal ones the last. */
static GHashTable *places_of(const HnTensor *keys)
{
    GHashTable *at = keys->dtype == HN_STRING ? g_hash_table_new(g_bytes_hash, g_bytes_equal)
                                              : g_hash_table_new(g_int64_hash, g_int64_equal);
    for (int64_t i = 0; i < keys->n; i++)
        g_hash_table_insert(at,
                            keys->dtype == HN_STRING ? (gpointer)hn_tensor_get_string(keys, i)
                                                     : (gpointer)((int64_t *)keys->data + i),
                            GSIZE_TO_POINTER((gsize)i + 1));
    return at;
}

static void copy_value(HnTensor *to, int64_t i, const HnTensor *from, int64_t k)
{
    if (to->dtype == HN_STRING)
        hn_tensor_set_string(to, i, hn_tensor_get_string(from, k));
    else if (hn_dtype_in(to->dtype, HN_T_INTS))
        hn_tensor_set_i64(to, i, hn_tensor_get_i64(from, k));
    else
        hn_tensor_set_f64(to, i, hn_tensor_get_f64(from, k));
}

/* Words that are no key are 0, or empty. */
static void dictvectorizer_ref(HnEval *e)
{
    const DictVectorizer *p = e->params;
    const HnTensor *keys, *values;
    const int64_t dims[] = { 1, p->words.n };
    if (!read_map(e, key_type(p), &keys, &values) || hn_eval_out(e, 0, values->dtype, 2, dims) == NULL)
        return;
    HnTensor *y = e->out[0];
    g_autoptr(GHashTable) places = places_of(keys);
    g_autoptr(GBytes) empty = g_bytes_new(NULL, 0);
    for (int64_t i = 0; i < p->words.n; i++) {
        const gconstpointer word = p->words.strings != NULL ? (gconstpointer)p->words.strings[i] : &p->words.ints[i];
        const int64_t at = (int64_t)GPOINTER_TO_SIZE(g_hash_table_lookup(places, word)) - 1;
        if (at >= 0)
            copy_value(y, i, values, at);
        else if (y->dtype == HN_STRING)
            hn_tensor_set_string(y, i, empty);
        else
            hn_tensor_set_f64(y, i, 0);
    }
}

/* --- CastMap ----------------------------------------------------------------------------------------------------- */

typedef struct {
    HnDtype to;
    gboolean sparse;
    int64_t n; /* of a sparse row */
} CastMap;

static void castmap_bind(HnBind *b, void *params)
{
    static const char *const to[] = { "TO_FLOAT", "TO_STRING", "TO_INT64", NULL };
    static const HnDtype types[] = { HN_F32, HN_STRING, HN_I64 };
    static const char *const forms[] = { "DENSE", "SPARSE", NULL };
    CastMap *p = params;
    p->to = types[hn_bind_word(b, "cast_to", to, 0)];
    p->sparse = hn_bind_word(b, "map_form", forms, 0) == 1;
    p->n = hn_bind_int(b, "max_map", 1);
    if (p->sparse && p->n <= 0)
        hn_bind_fail(b, HN_ERROR_ATTRIBUTE, "attribute 'max_map' is %" PRId64, p->n);
}

static void castmap_infer(HnInfer *x)
{
    const CastMap *p = x->params;
    infer_values(x, HN_I64);
    infer_row(x, p->to, p->sparse ? hn_dim(p->n) : hn_dim_unknown());
}

typedef struct {
    int64_t key, at;
} Entry;

static int compare_entries(const void *a, const void *b)
{
    const Entry *x = a, *y = b;
    return x->key < y->key ? -1 : x->key > y->key;
}

/* Element k of values as a number: all of a string has to be one. */
static gboolean number_of(HnEval *e, const HnTensor *values, int64_t k, double *v)
{
    if (values->dtype != HN_STRING) {
        *v = hn_tensor_get_f64(values, k);
        return TRUE;
    }
    gsize n;
    GBytes *s = hn_tensor_get_string(values, k);
    const char *bytes = g_bytes_get_data(s, &n);
    g_autofree char *text = g_strndup(bytes != NULL ? bytes : "", n);
    char *end;
    *v = g_ascii_strtod(text, &end);
    if (end != text && *end == '\0')
        return TRUE;
    hn_eval_fail(e, HN_ERROR_VALUE, "'%.40s' is no number", text);
    return FALSE;
}

static void put_cast(HnEval *e, int64_t i, const HnTensor *values, int64_t k)
{
    HnTensor *y = e->out[0];
    double v;
    if (y->dtype == HN_STRING && values->dtype == HN_STRING) {
        hn_tensor_set_string(y, i, hn_tensor_get_string(values, k));
        return;
    }
    if (!number_of(e, values, k, &v))
        return;
    if (y->dtype == HN_F32)
        hn_tensor_set_f64(y, i, v);
    else if (y->dtype == HN_I64)
        hn_tensor_set_i64(y, i, isnan(v) ? 0 : v >= 0x1p63 ? G_MAXINT64 : v < -0x1p63 ? G_MININT64 : (int64_t)v);
    else {
        g_autofree char *text = g_strdup_printf("%f", v);
        g_autoptr(GBytes) s = g_bytes_new(text, strlen(text));
        hn_tensor_set_string(y, i, s);
    }
}

/* Places of a sparse row that no key names. */
static void put_nothing(HnTensor *y, int64_t i)
{
    if (y->dtype != HN_STRING) {
        hn_tensor_set_f64(y, i, 0);
        return;
    }
    g_autoptr(GBytes) s = g_bytes_new_static("0.f", 3);
    hn_tensor_set_string(y, i, s);
}

static void castmap_ref(HnEval *e)
{
    const CastMap *p = e->params;
    const HnTensor *keys, *values;
    if (!read_map(e, HN_I64, &keys, &values))
        return;
    const int64_t dims[] = { 1, p->sparse ? p->n : keys->n };
    if (hn_eval_out(e, 0, p->to, 2, dims) == NULL)
        return;
    g_autofree Entry *entry = g_new(Entry, (gsize)keys->n + 1);
    for (int64_t i = 0; i < keys->n; i++)
        entry[i] = (Entry){ ((const int64_t *)keys->data)[i], i };
    qsort(entry, (size_t)keys->n, sizeof *entry, compare_entries);
    if (p->sparse && keys->n > 0 && entry[0].key < 0)
        hn_eval_fail(e, HN_ERROR_VALUE, "key %" PRId64 " is no place in a row", entry[0].key);
    for (int64_t i = 0, k = 0; i < dims[1] && e->error == NULL; i++) {
        while (p->sparse && k < keys->n && entry[k].key < i)
            k++;
        if (!p->sparse)
            put_cast(e, i, values, entry[i].at);
        else if (k < keys->n && entry[k].key == i)
            put_cast(e, i, values, entry[k].at);
        else
            put_nothing(e->out[0], i);
    }
}

const HnOp hn_op_zipmap = {
    .name = "ZipMap",
    .domain = HN_DOMAIN_ML,
    .since = { 1 },
    .in = "f",
    .out = ".",
    .params_size = sizeof(ZipMap),
    .bind = zipmap_bind,
    .infer = zipmap_infer,
    .ref = zipmap_ref,
};

const HnOp hn_op_dictvectorizer = {
    .name = "DictVectorizer",
    .domain = HN_DOMAIN_ML,
    .since = { 1 },
    .in = ".",
    .out = ".",
    .params_size = sizeof(DictVectorizer),
    .bind = dictvectorizer_bind,
    .infer = dictvectorizer_infer,
    .ref = dictvectorizer_ref,
};

const HnOp hn_op_castmap = {
    .name = "CastMap",
    .domain = HN_DOMAIN_ML,
    .flags = HN_OP_DYNAMIC,
    .since = { 1 },
    .in = ".",
    .out = ".",
    .params_size = sizeof(CastMap),
    .bind = castmap_bind,
    .infer = castmap_infer,
    .ref = castmap_ref,
};
