#include "ir/type.h"

#include "ir/tensor.h"

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
