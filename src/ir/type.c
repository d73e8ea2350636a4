#include "ir/type.h"

HnType *hn_type_tensor(HnDtype dtype, int rank, const HnDim *dims)
{
    HnType *t = g_new0(HnType, 1);
    t->ref = 1;
    t->kind = HN_TYPE_TENSOR;
    t->dtype = dtype;
    t->has_elem = TRUE;
    t->rank = rank;
    if (rank > 0) {
        t->dims = g_new(HnDim, rank);
        for (int i = 0; i < rank; i++)
            t->dims[i] = dims[i];
    }
    return t;
}

HnType *hn_type_fixed(HnDtype dtype, int rank, const int64_t *dims)
{
    HnType *t = hn_type_tensor(dtype, 0, NULL);
    t->rank = rank;
    t->dims = rank > 0 ? g_new(HnDim, rank) : NULL;
    for (int i = 0; i < rank; i++)
        t->dims[i] = hn_dim(dims[i]);
    return t;
}

HnType *hn_type_list(HnTypeKind kind, HnDtype key, HnType *elem)
{
    HnType *t = g_new0(HnType, 1);
    t->ref = 1;
    t->kind = kind;
    t->dtype = key;
    t->elem = elem;
    t->has_elem = elem != NULL;
    return t;
}

static HnType *common_elem(const HnTensor *list)
{
    HnType *t = list->n > 0 ? hn_type_of(hn_tensor_get_item(list, 0)) : NULL;
    for (int64_t i = 1; i < list->n && t; i++) {
        g_autoptr(HnType) so_far = t, next = hn_type_of(hn_tensor_get_item(list, i));
        t = hn_type_common(so_far, next);
    }
    return t;
}

HnType *hn_type_of(const HnTensor *t)
{
    switch (t->dtype) {
    case HN_SEQUENCE:
        return hn_type_list(HN_TYPE_SEQUENCE, HN_UNDEFINED, common_elem(t));
    case HN_OPTIONAL:
        return hn_type_list(HN_TYPE_OPTIONAL, HN_UNDEFINED, common_elem(t));
    case HN_MAP:
        return hn_type_list(HN_TYPE_MAP, hn_tensor_get_item(t, 0)->dtype,
                            hn_type_fixed(hn_tensor_get_item(t, 1)->dtype, 0, NULL));
    default:
        return hn_type_fixed(t->dtype, t->ndim, t->dims);
    }
}

static HnType *common_tensor(const HnType *a, const HnType *b)
{
    HnDim dims[HN_MAX_RANK];
    HnDtype dtype = a->dtype == b->dtype ? a->dtype : HN_UNDEFINED;
    if (a->rank != b->rank || a->rank < 0 || a->rank > HN_MAX_RANK)
        return hn_type_tensor(dtype, -1, NULL);
    for (int i = 0; i < a->rank; i++)
        dims[i] = hn_dim_equal(a->dims[i], b->dims[i]) ? a->dims[i] : hn_dim_unknown();
    return hn_type_tensor(dtype, a->rank, dims);
}

HnType *hn_type_common(HnType *a, HnType *b)
{
    if (!a || !b || a->kind != b->kind)
        return NULL;
    if (a->kind == HN_TYPE_TENSOR)
        return common_tensor(a, b);
    if (!hn_type_is_list(a) || a->dtype != b->dtype)
        return NULL;
    return hn_type_list(a->kind, a->dtype, hn_type_common(a->elem, b->elem));
}

gboolean hn_type_is_list(const HnType *t)
{
    return t && (t->kind == HN_TYPE_SEQUENCE || t->kind == HN_TYPE_OPTIONAL || t->kind == HN_TYPE_MAP);
}

gboolean hn_type_is_of(const HnType *t, const HnTensor *x)
{
    if (hn_tensor_is_list(x)) {
        g_autoptr(HnType) type = hn_type_of(x);
        return hn_type_equal(t, type);
    }
    if (t->kind != HN_TYPE_TENSOR || t->dtype != x->dtype || t->rank != x->ndim)
        return FALSE;
    for (int i = 0; i < x->ndim; i++)
        if (!t->dims[i].known || t->dims[i].n != x->dims[i])
            return FALSE;
    return TRUE;
}

HnType *hn_type_ref(HnType *t)
{
    if (t)
        g_atomic_int_inc(&t->ref);
    return t;
}

void hn_type_unref(HnType *t)
{
    while (t && g_atomic_int_dec_and_test(&t->ref)) {
        HnType *elem = t->elem;
        if (t->denotations)
            for (int i = 0; i < t->rank; i++)
                g_free(t->denotations[i]);
        g_free(t->denotations);
        g_free(t->dims);
        g_free(t->denotation);
        g_free(t->domain);
        g_free(t->name);
        if (t->unknown)
            g_bytes_unref(t->unknown);
        g_free(t);
        t = elem;
    }
}

gboolean hn_type_is_tensor(const HnType *t)
{
    return t && t->kind == HN_TYPE_TENSOR;
}

HnDtype hn_type_dtype(const HnType *t)
{
    return hn_type_is_tensor(t) ? t->dtype : HN_UNDEFINED;
}

int hn_type_rank(const HnType *t)
{
    return hn_type_is_tensor(t) ? t->rank : -1;
}

gboolean hn_type_may_be(const HnType *t, HnTypeMask mask)
{
    if (!hn_type_is_tensor(t))
        return !t || t->kind == HN_TYPE_NONE;
    return t->dtype == HN_UNDEFINED || hn_dtype_in(t->dtype, mask);
}

gboolean hn_type_is_fixed(const HnType *t, int64_t *dims)
{
    if (!hn_type_is_tensor(t) || t->rank < 0 || t->rank > HN_MAX_RANK)
        return FALSE;
    for (int i = 0; i < t->rank; i++)
        if (!t->dims[i].known || t->dims[i].n < 0)
            return FALSE;
    for (int i = 0; dims && i < t->rank; i++)
        dims[i] = t->dims[i].n;
    return TRUE;
}

static gboolean bytes_equal(GBytes *a, GBytes *b)
{
    return a == b || (a && b && g_bytes_equal(a, b));
}

gboolean hn_type_same_shape(const HnType *a, const HnType *b)
{
    gboolean same = a != NULL && b != NULL && a->rank >= 0 && a->rank == b->rank;
    for (int i = 0; same && i < a->rank; i++)
        same = hn_dim_equal(a->dims[i], b->dims[i]);
    return same;
}

gboolean hn_type_equal(const HnType *a, const HnType *b)
{
    for (; a != b; a = a->elem, b = b->elem) {
        if (!a || !b || a->kind != b->kind || a->dtype != b->dtype || a->rank != b->rank)
            return FALSE;
        if (!a->has_elem != !b->has_elem || !a->denotations != !b->denotations || !bytes_equal(a->unknown, b->unknown))
            return FALSE;
        if (g_strcmp0(a->denotation, b->denotation) || g_strcmp0(a->domain, b->domain) || g_strcmp0(a->name, b->name))
            return FALSE;
        for (int i = 0; i < a->rank; i++) {
            HnDim x = a->dims[i], y = b->dims[i];
            if (x.known != y.known || (x.known && x.n != y.n) || g_strcmp0(x.sym, y.sym) != 0)
                return FALSE;
            if (a->denotations && g_strcmp0(a->denotations[i], b->denotations[i]) != 0)
                return FALSE;
        }
    }
    return TRUE;
}

static void print_tensor(const HnType *t, GString *out)
{
    g_string_append(out, t->dtype == HN_UNDEFINED ? "?" : hn_dtype_name(t->dtype));
    if (t->rank < 0) {
        g_string_append(out, "[...]");
        return;
    }
    g_string_append_c(out, '[');
    for (int i = 0; i < t->rank; i++) {
        if (i)
            g_string_append_c(out, ',');
        hn_dim_print(t->dims[i], out);
    }
    g_string_append_c(out, ']');
}

static void print_wrapped(const char *word, const HnType *t, GString *out)
{
    g_string_append(out, word);
    if (t->kind == HN_TYPE_MAP)
        g_string_append_printf(out, "%s,", hn_dtype_name(t->dtype));
    hn_type_print(t->elem, out);
    g_string_append_c(out, ')');
}

void hn_type_print(const HnType *t, GString *out)
{
    switch (t ? t->kind : HN_TYPE_NONE) {
    case HN_TYPE_NONE:
        g_string_append_c(out, '?');
        break;
    case HN_TYPE_TENSOR:
        print_tensor(t, out);
        break;
    case HN_TYPE_SPARSE:
        g_string_append(out, "sparse(");
        print_tensor(t, out);
        g_string_append_c(out, ')');
        break;
    case HN_TYPE_SEQUENCE:
        print_wrapped("seq(", t, out);
        break;
    case HN_TYPE_OPTIONAL:
        print_wrapped("opt(", t, out);
        break;
    case HN_TYPE_MAP:
        print_wrapped("map(", t, out);
        break;
    case HN_TYPE_OPAQUE:
        g_string_append(out, "opaque");
        break;
    }
}

char *hn_type_describe(const HnType *t)
{
    GString *s = g_string_new(NULL);
    hn_type_print(t, s);
    return g_string_free(s, FALSE);
}
