#include "data/arrays.h"

#include <string.h>

#include "base/error.h"
#include "base/file.h"
#include "base/nearest.h"
#include "data/interface.h"

void hn_arrays_clear(HnArrays *a)
{
    hn_npz_free(a->npz);
    g_clear_pointer(&a->npy, hn_tensor_unref);
    g_free(a->of_input);
    g_free(a->name);
    *a = (HnArrays){ .label = -1 };
}

int hn_arrays_count(const HnArrays *a)
{
    return a->npz ? hn_npz_count(a->npz) : 1;
}

static const char *array_name(const HnArrays *a, int i)
{
    return a->npz ? hn_npz_array(a->npz, i)->name : "arr_0";
}

int hn_array_rank(const HnArrays *a, int i)
{
    return a->npz ? hn_npz_array(a->npz, i)->head.ndim : a->npy->ndim;
}

const int64_t *hn_array_dims(const HnArrays *a, int i)
{
    return a->npz ? hn_npz_array(a->npz, i)->head.dims : a->npy->dims;
}

HnTensor *hn_array_read(const HnArrays *a, int i, GError **error)
{
    return a->npz ? hn_npz_read(a->npz, i, error) : hn_tensor_ref(a->npy);
}

/* n pieces of so many rows, which begin with rows first[0..n) */
HnTensor *hn_array_pieces(const HnArrays *a, int i, const int64_t *first, int64_t n, int64_t rows, HnBudget *budget,
                          GError **error)
{
    if (a->npz)
        return hn_npz_pieces(a->npz, i, first, n, rows, error);
    const HnTensor *all = a->npy;
    int64_t dims[HN_MAX_RANK];
    memcpy(dims, all->dims, (gsize)all->ndim * sizeof dims[0]);
    dims[0] = n * rows;
    HnTensor *t = hn_tensor_new_uninit(all->dtype, all->ndim, dims, budget, error);
    if (!t || t->bytes == 0)
        return t;
    const int64_t row = all->n / all->dims[0];
    for (int64_t k = 0; k < n; k++)
        hn_tensor_copy_elements(t, k * rows * row, all, first[k] * row, rows * row);
    return t;
}

gboolean hn_arrays_open(HnArrays *a, GBytes *bytes, const char *name, HnBudget *budget, GError **error)
{
    gsize size;
    gconstpointer data = g_bytes_get_data(bytes, &size);
    *a = (HnArrays){ .name = g_strdup(name), .label = -1 };
    if (hn_npy_is(data, size))
        a->npy = hn_npy_read_bytes(bytes, name, budget, error);
    else if (hn_npz_is(data, size))
        a->npz = hn_npz_open(bytes, name, budget, error);
    else if (size == 0)
        g_set_error(error, HN_ERROR, HN_ERROR_FORMAT, "'%s' is empty", name);
    else
        g_set_error(error, HN_ERROR, HN_ERROR_FORMAT,
                    "'%s' is no file of data that hone reads: .npy, .npz, a picture or sound", name);
    if (a->npy || a->npz)
        return TRUE;
    hn_arrays_clear(a);
    return FALSE;
}

gboolean hn_arrays_read(HnArrays *a, const char *path, HnBudget *budget, GError **error)
{
    g_autoptr(GBytes) bytes = hn_file_bytes(path, budget, error);
    return bytes && hn_arrays_open(a, bytes, strcmp(path, "-") ? path : "stdin", budget, error);
}

const HnType *hn_input_tensor_type(const HnValue *v, gboolean *optional)
{
    const HnType *t = v->type;
    if (optional)
        *optional = t && t->kind == HN_TYPE_OPTIONAL;
    while (t && t->kind == HN_TYPE_OPTIONAL)
        t = t->elem;
    return hn_type_is_tensor(t) ? t : NULL;
}

static int find_array(const HnArrays *a, const char *name)
{
    if (a->npz)
        return hn_npz_find(a->npz, name);
    return strcmp(name, "arr_0") ? -1 : 0;
}

static gboolean no_array(const HnArrays *a, const HnValue *input, GError **error)
{
    g_autoptr(GPtrArray) names = g_ptr_array_new();
    for (int i = 0; i < hn_arrays_count(a); i++)
        if (i != a->label)
            g_ptr_array_add(names, (gpointer)array_name(a, i));
    g_ptr_array_add(names, NULL);
    g_autofree char *words = hn_nearest_words(input->name, (const char *const *)names->pdata);
    g_autofree char *inputs = hn_model_inputs_words(input->graph->model);
    g_set_error(error, HN_ERROR, HN_ERROR_FORMAT, "'%s' has no array for input '%s'%s%s", a->name, input->name, words,
                inputs);
    return FALSE;
}

/* Decide which array each input gets: by name, else the only one, else by position. */
gboolean hn_arrays_match(HnArrays *a, HnValue *const *inputs, HnTensor *const *given, int n, GError **error)
{
    int wanted = 0, free_arrays, only = -1;
    a->of_input = g_new(int, MAX(n, 1));
    a->label = find_array(a, "label");
    for (int i = 0; i < n; i++) {
        a->of_input[i] = given[i] ? -1 : find_array(a, inputs[i]->name);
        wanted += !given[i];
        if (a->of_input[i] >= 0 && a->of_input[i] == a->label)
            a->label = -1; /* the model's own input has that name */
    }
    free_arrays = hn_arrays_count(a) - (a->label >= 0);
    for (int i = 0; i < hn_arrays_count(a); i++)
        only = i != a->label ? i : only;
    for (int i = 0, k = 0; i < n; i++) {
        gboolean optional;
        if (given[i])
            continue;
        hn_input_tensor_type(inputs[i], &optional);
        if (a->npz && hn_npz_has_list(a->npz, inputs[i]->name, inputs[i]->type)) {
            a->of_input[i] = HN_ARRAYS_LIST;
            continue;
        }
        g_autofree char *positional = g_strdup_printf("arr_%d", k++);
        if (a->of_input[i] < 0 && wanted == 1 && free_arrays == 1)
            a->of_input[i] = only;
        if (a->of_input[i] < 0)
            a->of_input[i] = find_array(a, positional);
        if (a->of_input[i] < 0 && !optional)
            return no_array(a, inputs[i], error);
    }
    return TRUE;
}

/* t, with leading dimensions of 1 where the input declares more than it has; takes t */
HnTensor *hn_input_add_leading(const HnValue *input, HnTensor *t)
{
    const HnType *type = hn_input_tensor_type(input, NULL);
    if (!type || type->rank <= t->ndim || type->rank > HN_MAX_RANK)
        return t;
    int64_t dims[HN_MAX_RANK];
    int more = type->rank - t->ndim;
    for (int i = 0; i < more; i++) {
        if (type->dims[i].known && type->dims[i].n != 1)
            return t;
        dims[i] = 1;
    }
    memcpy(dims + more, t->dims, (gsize)t->ndim * sizeof dims[0]);
    HnTensor *wide = hn_tensor_reshaped(t, type->rank, dims);
    hn_tensor_unref(t);
    return wide;
}
