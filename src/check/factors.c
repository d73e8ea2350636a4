#include "check/factors.h"

#include <math.h>
#include <string.h>

#include "base/jsonread.h"
#include "check/recipe.h"

#define MOST_BYTES ((gsize)1 << 24) /* of the entry */
#define DIGITS "%.6g"               /* 1e-6 of a number: 120 dB */

typedef struct {
    int axis;
    GArray *factors; /* double */
} Unit;

struct HnFactors {
    GHashTable *units; /* char * -> Unit * */
    GPtrArray *order;  /* char *, borrowed */
};

static void unit_free(gpointer data)
{
    Unit *u = data;
    g_array_unref(u->factors);
    g_free(u);
}

static HnFactors *factors_new(void)
{
    HnFactors *f = g_new0(HnFactors, 1);
    f->units = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, unit_free);
    f->order = g_ptr_array_new();
    return f;
}

void hn_factors_free(HnFactors *f)
{
    if (f == NULL)
        return;
    g_hash_table_unref(f->units);
    g_ptr_array_unref(f->order);
    g_free(f);
}

void hn_factors_add(HnFactors *f, const char *tensor, int axis, const double *factors, int64_t n)
{
    Unit *u = g_hash_table_lookup(f->units, tensor);
    gboolean any = FALSE;
    for (int64_t i = 0; i < n && !any; i++)
        any = factors[i] != 1;
    if (!any || (u != NULL && (u->axis != axis || u->factors->len != n)))
        return;
    if (u == NULL) {
        char *name = g_strdup(tensor);
        u = g_new(Unit, 1);
        *u = (Unit){ axis, g_array_new(FALSE, FALSE, sizeof(double)) };
        g_array_append_vals(u->factors, factors, (guint)n);
        g_hash_table_insert(f->units, name, u);
        g_ptr_array_add(f->order, name);
        return;
    }
    for (int64_t i = 0; i < n; i++)
        g_array_index(u->factors, double, i) *= factors[i];
}

/* --- the metadata ------------------------------------------------------------------------------------------------- */

/* NULL: something else than positive numbers. */
static GArray *read_numbers(JsonArray *list)
{
    g_autoptr(GArray) a = g_array_new(FALSE, FALSE, sizeof(double));
    for (guint i = 0; list != NULL && i < json_array_get_length(list); i++) {
        JsonNode *n = json_array_get_element(list, i);
        const double x = hn_json_is_number(n) ? json_node_get_double(n) : NAN;
        if (!(x > 0 && isfinite(x)))
            return NULL;
        g_array_append_val(a, x);
    }
    return list != NULL ? g_steal_pointer(&a) : NULL;
}

static void read_row(HnFactors *f, JsonObject *row)
{
    double axis;
    JsonArray *names = hn_json_array_at(row, "tensors");
    g_autoptr(GArray) numbers = read_numbers(hn_json_array_at(row, "factors"));
    if (names == NULL || numbers == NULL || !hn_json_number_at(row, "axis", &axis) ||
        !(axis >= 0 && axis < HN_MAX_RANK))
        return;
    for (guint i = 0; i < json_array_get_length(names); i++) {
        const char *name = hn_json_string(json_array_get_element(names, i));
        if (name != NULL)
            hn_factors_add(f, name, (int)axis, (const double *)(const void *)numbers->data, numbers->len);
    }
}

HnFactors *hn_factors_read(const HnModel *m)
{
    HnFactors *f = factors_new();
    const char *text = hn_model_metadata(m, HN_UNITS);
    g_autoptr(JsonNode) root = text != NULL ? hn_json_read(text, strlen(text), MOST_BYTES, NULL, NULL) : NULL;
    JsonArray *rows = root != NULL && JSON_NODE_HOLDS_ARRAY(root) ? json_node_get_array(root) : NULL;
    for (guint i = 0; rows != NULL && i < json_array_get_length(rows); i++) {
        JsonObject *row = hn_json_object(json_array_get_element(rows, i));
        if (row != NULL)
            read_row(f, row);
    }
    return f;
}

/* "axis": 1, "factors": [...] */
static char *numbers_of(const Unit *u)
{
    g_autoptr(GString) s = g_string_new(NULL);
    g_string_append_printf(s, "\"axis\":%d,\"factors\":[", u->axis);
    for (guint i = 0; i < u->factors->len; i++) {
        char text[G_ASCII_DTOSTR_BUF_SIZE];
        g_ascii_formatd(text, sizeof text, DIGITS, g_array_index(u->factors, double, i));
        g_string_append_printf(s, "%s%s", i > 0 ? "," : "", text);
    }
    g_string_append_c(s, ']');
    return g_string_free(g_steal_pointer(&s), FALSE);
}

static void append_name(GString *s, const char *name)
{
    g_autoptr(JsonNode) n = json_node_init_string(json_node_alloc(), name);
    g_autofree char *text = json_to_string(n, FALSE);
    g_string_append_printf(s, "%s%s", s->len > 0 ? "," : "", text);
}

void hn_factors_write(const HnFactors *f, HnModel *m)
{
    g_autoptr(GHashTable) rows = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL); /* numbers -> names */
    g_autoptr(GPtrArray) numbers = g_ptr_array_new(), names = g_ptr_array_new();
    for (guint i = 0; i < f->order->len; i++) {
        char *text = numbers_of(g_hash_table_lookup(f->units, f->order->pdata[i]));
        GString *list = g_hash_table_lookup(rows, text);
        if (list == NULL) {
            list = g_string_new(NULL);
            g_hash_table_insert(rows, text, list);
            g_ptr_array_add(numbers, text);
            g_ptr_array_add(names, list);
        } else {
            g_free(text);
        }
        append_name(list, f->order->pdata[i]);
    }
    g_autoptr(GString) all = g_string_new("[");
    for (guint i = 0; i < names->len; i++) {
        GString *list = names->pdata[i];
        g_string_append_printf(all, "%s{\"tensors\":[%s],%s}", i > 0 ? "," : "", list->str,
                               (const char *)numbers->pdata[i]);
        g_string_free(list, TRUE);
    }
    g_string_append_c(all, ']');
    if (names->len > 0)
        hn_model_set_metadata(m, HN_UNITS, all->str);
}

/* --- tensors ------------------------------------------------------------------------------------------------------ */

gboolean hn_factors_has(const HnFactors *f, const char *tensor)
{
    return g_hash_table_contains(f->units, tensor);
}

HnTensor *hn_factors_apply(const HnFactors *f, const char *tensor, HnTensor *t, gboolean back, HnBudget *budget,
                           GError **error)
{
    const Unit *u = g_hash_table_lookup(f->units, tensor);
    if (u == NULL)
        return hn_tensor_ref(t);
    if (t->dtype != HN_F32 || u->axis >= t->ndim || t->dims[u->axis] != u->factors->len)
        return NULL;
    HnTensor *scaled = hn_tensor_copy(t, budget, error);
    if (scaled == NULL)
        return NULL;
    int64_t inner = 1;
    for (int i = u->axis + 1; i < t->ndim; i++)
        inner *= t->dims[i];
    float *x = scaled->data;
    for (int64_t i = 0; i < t->n; i++) {
        const double factor = g_array_index(u->factors, double, i / inner % u->factors->len);
        x[i] = (float)(back ? (double)x[i] / factor : (double)x[i] * factor);
    }
    return scaled;
}
