/*
 * OneHotEncoder, LabelEncoder and CategoryMapper: elements that are found in a list.
 *
 * LabelEncoder maps keys to values: strings to their places and back in version 1, any of floats, integers and strings
 * to any since 2, tensors (of double or 16-bit integers as well) since 4. Of equal keys the first counts; NaN is a key
 * as any other since version 4, and equals nothing before.
 */
#include "op/ml_encode.h"

#include <math.h>
#include <string.h>

/* --- finding ----------------------------------------------------------------------------------------------------- */

typedef struct {
    GHashTable *table; /* key -> 1 + its place in the list; texts are GBytes, numbers their bits */
    gboolean strings;
    int64_t nan; /* 1 + place of NaN; 0: none */
} Finder;

static gint64 bits_of(double v)
{
    gint64 bits;
    v = v == 0 ? 0 : v; /* -0 equals 0 */
    memcpy(&bits, &v, sizeof bits);
    return bits;
}

static double list_number(const HnMlList *l, int64_t i)
{
    return l->tensor != NULL ? hn_tensor_get_f64(l->tensor, i) : l->floats != NULL ? (double)l->floats[i] : 0;
}

static gint64 list_int(const HnMlList *l, int64_t i)
{
    return l->ints != NULL ? l->ints[i] : hn_tensor_get_i64(l->tensor, i);
}

static GBytes *list_string(const HnMlList *l, int64_t i)
{
    return l->strings != NULL ? l->strings[i] : hn_tensor_get_string(l->tensor, i);
}

static gint64 key_of(const HnMlList *l, int64_t i)
{
    return hn_dtype_in(l->dtype, HN_T_INTS) ? list_int(l, i) : bits_of(list_number(l, i));
}

static void finder_init(Finder *f, const HnMlList *l)
{
    f->strings = l->dtype == HN_STRING;
    f->nan = 0;
    f->table = f->strings ? g_hash_table_new(g_bytes_hash, g_bytes_equal)
                          : g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, NULL);
    for (int64_t i = 0; i < l->n; i++) {
        gpointer place = GSIZE_TO_POINTER((gsize)i + 1);
        if (f->strings) {
            if (!g_hash_table_contains(f->table, list_string(l, i)))
                g_hash_table_insert(f->table, list_string(l, i), place);
            continue;
        }
        const gint64 key = key_of(l, i);
        if (hn_dtype_in(l->dtype, HN_T_FLOATS) && isnan(list_number(l, i)))
            f->nan = f->nan == 0 ? i + 1 : f->nan;
        else if (!g_hash_table_contains(f->table, &key))
            g_hash_table_insert(f->table, g_memdup2(&key, sizeof key), place);
    }
}

static void finder_clear(Finder *f)
{
    g_hash_table_unref(f->table);
}

/* Place of element i in the list; -1: it is not there. */
static int64_t find(const Finder *f, const HnTensor *x, int64_t i)
{
    if (f->strings)
        return (int64_t)GPOINTER_TO_SIZE(g_hash_table_lookup(f->table, hn_tensor_get_string(x, i))) - 1;
    gint64 key = 0;
    if (hn_dtype_in(x->dtype, HN_T_FLOATS)) {
        const double v = hn_tensor_get_f64(x, i);
        if (isnan(v))
            return f->nan - 1;
        key = bits_of(v);
    } else {
        key = hn_tensor_get_i64(x, i);
    }
    return (int64_t)GPOINTER_TO_SIZE(g_hash_table_lookup(f->table, &key)) - 1;
}

/* --- OneHotEncoder ----------------------------------------------------------------------------------------------- */

static void onehotencoder_bind(HnBind *b, void *params)
{
    HnOneHotEncoder *p = params;
    hn_ml_bind_labels(b, "cats_strings", "cats_int64s", &p->categories);
    p->zeros = hn_bind_bool(b, "zeros", TRUE);
    if (p->categories.n == 0)
        hn_bind_fail(b, HN_ERROR_ATTRIBUTE, "there are no categories");
}

static void onehotencoder_infer(HnInfer *x)
{
    const HnOneHotEncoder *p = x->params;
    const int rank = hn_infer_rank(x, 0);
    const HnDtype dtype = hn_infer_dtype(x, 0);
    if (dtype != HN_UNDEFINED && (dtype == HN_STRING) != (p->categories.strings != NULL))
        hn_infer_fail(x, HN_ERROR_TYPE, "categories and input 0 are of different kinds");
    if (rank >= HN_MAX_RANK)
        hn_infer_fail(x, HN_ERROR_UNSUPPORTED, "%d dimensions are more than %d", rank + 1, HN_MAX_RANK);
    if (rank < 0 || rank >= HN_MAX_RANK) {
        hn_infer_out_unknown(x, 0, HN_F32);
        return;
    }
    HnDim dims[HN_MAX_RANK];
    for (int a = 0; a < rank; a++)
        dims[a] = hn_infer_dim(x, 0, a);
    dims[rank] = hn_dim(p->categories.n);
    hn_infer_out(x, 0, HN_F32, rank + 1, dims);
}

/* Numbers are cut to integers. */
static void onehotencoder_ref(HnEval *e)
{
    const HnOneHotEncoder *p = e->params;
    const HnTensor *x = e->in[0];
    if ((x->dtype == HN_STRING) != (p->categories.strings != NULL) || x->ndim >= HN_MAX_RANK) {
        hn_eval_fail(e, HN_ERROR_TYPE, "categories and input 0 are of different kinds");
        return;
    }
    int64_t dims[HN_MAX_RANK];
    memcpy(dims, x->dims, (size_t)x->ndim * sizeof *dims);
    dims[x->ndim] = p->categories.n;
    float *y = hn_ml_floats_out(e, 0, x->ndim + 1, dims);
    if (y == NULL)
        return;
    memset(y, 0, e->out[0]->bytes);
    const HnMlList list = { .dtype = p->categories.strings != NULL ? HN_STRING : HN_I64,
                            .n = p->categories.n,
                            .strings = p->categories.strings,
                            .ints = p->categories.ints };
    Finder f;
    finder_init(&f, &list);
    for (int64_t i = 0; i < x->n && e->error == NULL; i++) {
        const gint64 key = f.strings ? 0 : hn_tensor_get_i64(x, i);
        const int64_t at =
            f.strings ? find(&f, x, i) : (int64_t)GPOINTER_TO_SIZE(g_hash_table_lookup(f.table, &key)) - 1;
        if (at >= 0)
            y[i * p->categories.n + at] = 1;
        else if (!p->zeros)
            hn_eval_fail(e, HN_ERROR_VALUE, "element %" PRId64 " is no category", i);
    }
    finder_clear(&f);
}

/* --- mappings ---------------------------------------------------------------------------------------------------- */

static HnMlList strings_list(HnBind *b, const char *name)
{
    HnMlList l = { .dtype = HN_STRING };
    l.strings = hn_ml_bind_strings(b, name, &l.n);
    return l;
}

/* The one of the lists that is there; a tensor only where its name is given. */
static HnMlList find_list(HnBind *b, const char *strings, const char *ints, const char *floats, const char *tensor)
{
    HnMlList all[4] = { strings_list(b, strings), { .dtype = HN_I64 }, { .dtype = HN_F32 }, { 0 } };
    all[1].ints = hn_bind_ints(b, ints, &all[1].n);
    all[2].floats = hn_bind_floats(b, floats, &all[2].n);
    const HnTensor *t = tensor != NULL ? hn_bind_tensor(b, tensor) : NULL;
    if (t != NULL && t->unloaded)
        hn_bind_fail(b, HN_ERROR_ATTRIBUTE, "attribute '%s' is not loaded", tensor);
    else if (t != NULL)
        all[3] = (HnMlList){ .dtype = t->dtype, .n = t->n, .tensor = t };
    int found = -1;
    for (int i = 0; i < 4; i++)
        if (all[i].n > 0) {
            if (found >= 0)
                hn_bind_fail(b, HN_ERROR_ATTRIBUTE, "keys or values are given twice");
            found = i;
        }
    if (found < 0)
        hn_bind_fail(b, HN_ERROR_ATTRIBUTE, "attribute '%s' or one of its kind is missing", ints);
    return all[MAX(found, 0)];
}

/* A string attribute's bytes, borrowed; NULL: absent. */
static GBytes *string_of(HnBind *b, const char *name)
{
    const HnAttr *a = hn_node_attr(b->node, name);
    if (a != NULL && (a->kind != HN_ATTR_STRING || a->ref_attr != NULL))
        hn_bind_fail(b, HN_ERROR_ATTRIBUTE, "attribute '%s' is no string", name);
    return a != NULL && a->kind == HN_ATTR_STRING ? a->s : NULL;
}

static void bind_others(HnBind *b, HnMlMapping *p, float other_float)
{
    p->other_int = hn_bind_int(b, "default_int64", -1);
    p->other_float = hn_bind_float(b, "default_float", other_float);
    p->other_string = string_of(b, "default_string");
}

static void bind_both_ways(HnBind *b, HnMlMapping *p, const char *strings, const char *ints)
{
    p->both = TRUE;
    p->keys = strings_list(b, strings);
    p->values = (HnMlList){ .dtype = HN_I64, .n = p->keys.n };
    if (ints != NULL)
        p->values.ints = hn_bind_ints(b, ints, &p->values.n);
    if (p->values.n != p->keys.n || p->keys.n == 0)
        hn_bind_fail(b, HN_ERROR_ATTRIBUTE, "%" PRId64 " strings and %" PRId64 " integers are no pairs", p->keys.n,
                     p->values.n);
    bind_others(b, p, 0);
}

static void categorymapper_bind(HnBind *b, void *params)
{
    bind_both_ways(b, params, "cats_strings", "cats_int64s");
}

static void labelencoder_bind(HnBind *b, void *params)
{
    HnMlMapping *p = params;
    if (b->version < 2) {
        bind_both_ways(b, p, "classes_strings", NULL);
        return;
    }
    const gboolean tensors = b->version >= 4;
    p->keys = find_list(b, "keys_strings", "keys_int64s", "keys_floats", tensors ? "keys_tensor" : NULL);
    p->values = find_list(b, "values_strings", "values_int64s", "values_floats", tensors ? "values_tensor" : NULL);
    if (p->keys.n != p->values.n)
        hn_bind_fail(b, HN_ERROR_ATTRIBUTE, "%" PRId64 " keys and %" PRId64 " values are no pairs", p->keys.n,
                     p->values.n);
    bind_others(b, p, -0.0f);
    const HnTensor *t = tensors ? hn_bind_tensor(b, "default_tensor") : NULL;
    if (t != NULL && (t->unloaded || t->n != 1 || t->dtype != p->values.dtype))
        hn_bind_fail(b, HN_ERROR_ATTRIBUTE, "attribute 'default_tensor' is no value");
    else if (t != NULL)
        p->other = (HnMlList){ .dtype = t->dtype, .n = 1, .tensor = t };
}

static HnDtype mapped_type(const HnMlMapping *p, HnDtype in)
{
    if (!p->both)
        return in == p->keys.dtype ? p->values.dtype : HN_UNDEFINED;
    return in == HN_STRING ? HN_I64 : in == HN_I64 ? HN_STRING : HN_UNDEFINED;
}

static void mapping_infer(HnInfer *x)
{
    const HnDtype in = hn_infer_dtype(x, 0), out = mapped_type(x->params, in);
    if (in != HN_UNDEFINED && out == HN_UNDEFINED)
        hn_infer_fail(x, HN_ERROR_TYPE, "input 0 is %s, which is not what keys are", hn_dtype_name(in));
    hn_infer_out_shape_of(x, 0, out, 0);
}

static void put_string(HnTensor *y, int64_t i, GBytes *s, const char *otherwise)
{
    g_autoptr(GBytes) own = s == NULL ? g_bytes_new(otherwise, strlen(otherwise)) : NULL;
    hn_tensor_set_string(y, i, s != NULL ? s : own);
}

static void put_other(const HnMlMapping *p, HnTensor *y, int64_t i)
{
    if (y->dtype == HN_STRING)
        put_string(y, i, p->other.tensor != NULL ? list_string(&p->other, 0) : p->other_string, "_Unused");
    else if (hn_dtype_in(y->dtype, HN_T_INTS))
        hn_tensor_set_i64(y, i,
                          p->other.tensor != NULL ? list_int(&p->other, 0)
                          : y->dtype == HN_I64    ? p->other_int
                                                  : -1);
    else
        hn_tensor_set_f64(y, i, p->other.tensor != NULL ? list_number(&p->other, 0) : (double)p->other_float);
}

static void put_value(const HnMlList *values, HnTensor *y, int64_t i, int64_t at)
{
    if (y->dtype == HN_STRING)
        hn_tensor_set_string(y, i, list_string(values, at));
    else if (!hn_dtype_in(y->dtype, HN_T_INTS))
        hn_tensor_set_f64(y, i, list_number(values, at));
    else /* places in a list without numbers */
        hn_tensor_set_i64(y, i, values->ints == NULL && values->tensor == NULL ? at : list_int(values, at));
}

/* From integers back to strings, in forms without numbers: the string at that place. */
static int64_t place_of(const Finder *f, const HnMlMapping *p, const HnTensor *x, int64_t i)
{
    if (!p->both || x->dtype == HN_STRING || p->values.ints != NULL)
        return find(f, x, i);
    const int64_t at = hn_tensor_get_i64(x, i);
    return at >= 0 && at < p->keys.n ? at : -1;
}

static void mapping_ref(HnEval *e)
{
    const HnMlMapping *p = e->params;
    const HnTensor *x = e->in[0];
    const HnDtype dtype = mapped_type(p, x->dtype);
    if (dtype == HN_UNDEFINED)
        hn_eval_fail(e, HN_ERROR_TYPE, "input 0 is %s, which is not what keys are", hn_dtype_name(x->dtype));
    if (e->error != NULL || hn_eval_out(e, 0, dtype, x->ndim, x->dims) == NULL)
        return;
    const gboolean back = p->both && x->dtype != HN_STRING;
    const HnMlList none = { .dtype = HN_I64 }, *keys = !back ? &p->keys : p->values.ints != NULL ? &p->values : &none;
    Finder f;
    finder_init(&f, keys);
    if (!p->both && e->node->version < 4)
        f.nan = 0;
    for (int64_t i = 0; i < x->n; i++) {
        const int64_t at = place_of(&f, p, x, i);
        if (at < 0)
            put_other(p, e->out[0], i);
        else
            put_value(back ? &p->keys : &p->values, e->out[0], i, at);
    }
    finder_clear(&f);
}

const HnOp hn_op_onehotencoder = {
    .name = "OneHotEncoder",
    .domain = HN_DOMAIN_ML,
    .since = { 1 },
    .in = "T",
    .out = "f",
    .T = HN_ML_NUMBERS | HN_BIT(HN_STRING),
    .params_size = sizeof(HnOneHotEncoder),
    .bind = onehotencoder_bind,
    .infer = onehotencoder_infer,
    .ref = onehotencoder_ref,
};

const HnOp hn_op_labelencoder = {
    .name = "LabelEncoder",
    .domain = HN_DOMAIN_ML,
    .since = { 1, 2, 4 },
    .in = "T",
    .out = "U",
    .T = HN_ML_NUMBERS | HN_BIT(HN_STRING) | HN_BIT(HN_I16),
    .U = HN_ML_NUMBERS | HN_BIT(HN_STRING) | HN_BIT(HN_I16),
    .params_size = sizeof(HnMlMapping),
    .bind = labelencoder_bind,
    .infer = mapping_infer,
    .ref = mapping_ref,
};

const HnOp hn_op_categorymapper = {
    .name = "CategoryMapper",
    .domain = HN_DOMAIN_ML,
    .since = { 1 },
    .in = "T",
    .out = "U",
    .T = HN_ML_LABEL_TYPES,
    .U = HN_ML_LABEL_TYPES,
    .params_size = sizeof(HnMlMapping),
    .bind = categorymapper_bind,
    .infer = mapping_infer,
    .ref = mapping_ref,
};
