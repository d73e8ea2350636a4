/*
 * Values that are no tensors as arrays of an archive: NAME.0, NAME.1, ... are a sequence, NAME.keys and NAME.values a
 * map, NAME alone an optional that holds it. An empty one has no arrays.
 */
#include <string.h>

#include "base/error.h"
#include "data/npz.h"

static gboolean is_there(const HnNpz *z, const char *name, const HnType *type)
{
    g_autofree char *first = type && type->kind == HN_TYPE_SEQUENCE ? g_strdup_printf("%s.0", name)
                             : type && type->kind == HN_TYPE_MAP    ? g_strdup_printf("%s.keys", name)
                                                                    : g_strdup(name);
    if (type && type->kind == HN_TYPE_SEQUENCE && hn_type_is_list(type->elem))
        return is_there(z, first, type->elem);
    return type && type->kind == HN_TYPE_OPTIONAL ? is_there(z, name, type->elem) : hn_npz_find(z, first) >= 0;
}

gboolean hn_npz_has_list(const HnNpz *z, const char *name, const HnType *type)
{
    return hn_type_is_list(type) && is_there(z, name, type);
}

static HnTensor *read_any(HnNpz *z, const char *name, const HnType *type, HnBudget *budget, GError **error)
{
    if (hn_type_is_list(type))
        return hn_npz_read_list(z, name, type, budget, error);
    const int i = hn_npz_find(z, name);
    if (i >= 0)
        return hn_npz_read(z, i, error);
    g_set_error(error, HN_ERROR, HN_ERROR_FORMAT, "there is no array '%s'", name);
    return NULL;
}

static HnTensor *list_of(HnDtype kind, const GPtrArray *items, HnBudget *budget, GError **error)
{
    HnTensor *list = hn_tensor_new_list(kind, items->len, budget, error);
    for (guint i = 0; list && i < items->len; i++)
        hn_tensor_set_item(list, i, items->pdata[i]);
    return list;
}

static HnTensor *read_map(HnNpz *z, const char *name, HnBudget *budget, GError **error)
{
    g_autoptr(GPtrArray) pair = g_ptr_array_new_with_free_func((GDestroyNotify)hn_tensor_unref);
    static const char *const words[] = { "keys", "values" };
    for (guint i = 0; i < G_N_ELEMENTS(words); i++) {
        g_autofree char *part = g_strdup_printf("%s.%s", name, words[i]);
        HnTensor *t = read_any(z, part, NULL, budget, error);
        if (!t)
            return NULL;
        g_ptr_array_add(pair, t);
    }
    const HnTensor *keys = pair->pdata[0], *values = pair->pdata[1];
    if (keys->ndim == 1 && values->ndim == 1 && keys->n == values->n &&
        (keys->dtype == HN_I64 || keys->dtype == HN_STRING))
        return list_of(HN_MAP, pair, budget, error);
    g_set_error(error, HN_ERROR, HN_ERROR_FORMAT,
                "'%s.keys' and '%s.values' are no lists of one length, the keys of i64 or strings", name, name);
    return NULL;
}

HnTensor *hn_npz_read_list(HnNpz *z, const char *name, const HnType *type, HnBudget *budget, GError **error)
{
    if (type->kind == HN_TYPE_MAP)
        return read_map(z, name, budget, error);
    g_autoptr(GPtrArray) items = g_ptr_array_new_with_free_func((GDestroyNotify)hn_tensor_unref);
    const gboolean sequence = type->kind == HN_TYPE_SEQUENCE;
    for (guint i = 0; sequence || i == 0; i++) {
        g_autofree char *part = sequence ? g_strdup_printf("%s.%u", name, i) : g_strdup(name);
        if (!is_there(z, part, type->elem))
            break;
        HnTensor *t = read_any(z, part, type->elem, budget, error);
        if (!t)
            return NULL;
        g_ptr_array_add(items, t);
    }
    return list_of(sequence ? HN_SEQUENCE : HN_OPTIONAL, items, budget, error);
}

void hn_npz_flatten(const char *name, HnTensor *t, GPtrArray *names, GPtrArray *tensors)
{
    if (!hn_tensor_is_list(t)) {
        g_ptr_array_add(names, g_strdup(name));
        g_ptr_array_add(tensors, t);
        return;
    }
    for (int64_t i = 0; i < t->n; i++) {
        g_autofree char *part = t->dtype == HN_SEQUENCE ? g_strdup_printf("%s.%" G_GINT64_FORMAT, name, i)
                                : t->dtype == HN_MAP    ? g_strdup_printf("%s.%s", name, i ? "values" : "keys")
                                                        : g_strdup(name);
        hn_npz_flatten(part, hn_tensor_get_item(t, i), names, tensors);
    }
}
