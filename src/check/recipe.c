#include "check/recipe.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "config.h" /* HN_VERSION */

#include "base/error.h"
#include "base/file.h"
#include "base/jsonread.h"
#include "onnx/onnx.h"

#define MOST_BYTES ((gsize)1 << 20) /* of a recipe: each node with weights takes some 60 at most */

static guint find(const HnModel *m, const char *key)
{
    const guint n = m->metadata != NULL ? m->metadata->len : 0;
    for (guint i = 0; i + 1 < n; i += 2)
        if (g_strcmp0(m->metadata->pdata[i], key) == 0)
            return i;
    return n;
}

const char *hn_model_metadata(const HnModel *m, const char *key)
{
    const guint i = find(m, key);
    return m->metadata != NULL && i < m->metadata->len ? m->metadata->pdata[i + 1] : NULL;
}

void hn_model_set_metadata(HnModel *m, const char *key, const char *value)
{
    if (m->metadata == NULL)
        m->metadata = g_ptr_array_new_with_free_func(g_free);
    const guint i = find(m, key);
    if (i < m->metadata->len)
        g_ptr_array_remove_range(m->metadata, i, 2);
    if (value == NULL)
        return;
    g_ptr_array_insert(m->metadata, (gint)i, g_strdup(key));
    g_ptr_array_insert(m->metadata, (gint)i + 1, g_strdup(value));
}

gboolean hn_model_is_speed_only(const HnModel *m)
{
    return g_strcmp0(hn_model_metadata(m, HN_SPEED_ONLY), "true") == 0;
}

void hn_recipe_write(HnModel *m, const char *tool, JsonObject *options, JsonObject *rest)
{
    g_autoptr(JsonObject) o = json_object_new();
    JsonObjectIter iter;
    const char *name;
    JsonNode *n;
    json_object_set_string_member(o, "tool", tool);
    json_object_set_string_member(o, "hone", HN_VERSION);
    json_object_set_object_member(o, "options", options);
    json_object_iter_init_ordered(&iter, rest);
    while (json_object_iter_next_ordered(&iter, &name, &n))
        json_object_set_member(o, name, json_node_copy(n));
    json_object_unref(rest);
    g_autofree char *text = hn_json_line(o);
    hn_model_set_metadata(m, HN_RECIPE, text);
}

JsonObject *hn_recipe_read(const char *text, const char *path, GError **error)
{
    if (text == NULL) {
        g_set_error(error, HN_ERROR, HN_ERROR_UNSUPPORTED, "'%s' has no recipe in its metadata", path);
        return NULL;
    }
    g_autoptr(JsonNode) root = hn_json_read(text, strlen(text), MOST_BYTES, NULL, error);
    if (root == NULL)
        g_prefix_error(error, "the recipe of '%s': ", path);
    else if (hn_json_object(root) == NULL)
        g_set_error(error, HN_ERROR, HN_ERROR_FORMAT, "the recipe of '%s' is no object of JSON", path);
    else
        return json_object_ref(hn_json_object(root));
    return NULL;
}

static gboolean wrong(const char *path, const char *name, GError **error)
{
    g_set_error(error, HN_ERROR, HN_ERROR_FORMAT, "'%s' in the recipe of '%s' is missing or wrong", name, path);
    return FALSE;
}

JsonObject *hn_recipe_open(const char *path, const char *tool, HnBudget *budget, GError **error)
{
    const HnOnnxOptions o = { .budget = budget, .verify_data = TRUE };
    g_autoptr(HnModel) made = hn_onnx_read_file(path, &o, error);
    const char *text = made != NULL ? hn_model_metadata(made, HN_RECIPE) : NULL;
    g_autoptr(JsonObject) recipe = text != NULL ? hn_recipe_read(text, path, error) : NULL;
    if (made == NULL || (text != NULL && recipe == NULL))
        return NULL;
    if (g_strcmp0(hn_json_string_at(recipe, "tool"), tool) != 0) {
        g_set_error(error, HN_ERROR, HN_ERROR_FORMAT, "'%s' has no recipe of %s in its metadata", path, tool);
        return NULL;
    }
    if (hn_json_object_at(recipe, "options") == NULL && !wrong(path, "options", error))
        return NULL;
    return g_steal_pointer(&recipe);
}

gboolean hn_recipe_by_program(JsonObject *recipe)
{
    const char *metric = hn_json_string_at(hn_json_object_at(recipe, "options"), "metric");
    return metric != NULL && (strcmp(metric, "cmd") == 0 || g_str_has_prefix(metric, "cmd:"));
}

gboolean hn_recipe_check_metric(JsonObject *recipe, const char *path, const char *metric, GError **error)
{
    const gboolean program = hn_recipe_by_program(recipe);
    if (program && metric == NULL)
        g_set_error(error, HN_ERROR, HN_ERROR_UNSUPPORTED,
                    "'%s' was judged by a program, which its recipe does not name: say '--metric cmd:PROGRAM'", path);
    else if (program && !g_str_has_prefix(metric, "cmd:"))
        g_set_error(error, HN_ERROR, HN_ERROR_USAGE, "'%s' was judged by a program: '--metric %s' names none", path,
                    metric);
    else if (!program && metric != NULL)
        g_set_error(error, HN_ERROR, HN_ERROR_USAGE, "'%s' was not judged by a program: its recipe says by what", path);
    else
        return TRUE;
    return FALSE;
}

/* --- what went in, and what came out ------------------------------------------------------------------------------ */

void hn_recipe_hash_tensor(GChecksum *sum, const HnTensor *t)
{
    g_autoptr(GString) text = g_string_new(hn_dtype_name(t->dtype));
    for (int i = 0; i < t->ndim; i++)
        g_string_append_printf(text, ",%" PRId64, t->dims[i]);
    g_checksum_update(sum, (const guchar *)text->str, (gssize)text->len + 1);
    for (int64_t i = 0; t->dtype == HN_STRING && i < t->n; i++) {
        gsize n;
        const guchar *s = g_bytes_get_data(hn_tensor_get_string(t, i), &n);
        g_checksum_update(sum, (const guchar *)&n, sizeof n);
        g_checksum_update(sum, s, (gssize)n);
    }
    if (t->dtype != HN_STRING && t->bytes > 0)
        g_checksum_update(sum, t->data, (gssize)t->bytes);
}

char *hn_recipe_hash_model(const char *path, GBytes *file, HnBudget *budget, GError **error)
{
    const HnOnnxOptions o = { .budget = budget };
    g_autoptr(GBytes) bytes = file != NULL ? g_bytes_ref(file) : hn_file_bytes(path, budget, error);
    if (bytes == NULL)
        return NULL;
    g_autoptr(HnModel) m =
        file != NULL ? hn_onnx_read_bytes(file, NULL, &o, error) : hn_onnx_read_file(path, &o, error);
    if (m == NULL)
        return NULL;
    g_autoptr(GChecksum) sum = g_checksum_new(G_CHECKSUM_SHA256);
    gsize n = 0;
    const guchar *data = g_bytes_get_data(bytes, &n);
    g_checksum_update(sum, data, (gssize)n);
    for (guint i = 0; m->file_bytes > n && i < m->graph->weights->len; i++) {
        const HnValue *v = m->graph->weights->pdata[i];
        if (v->weight != NULL)
            hn_recipe_hash_tensor(sum, v->weight);
    }
    return g_strdup(g_checksum_get_string(sum));
}

char *hn_recipe_hash_data(const HnData *d, int64_t n, GError **error)
{
    g_autoptr(GChecksum) sum = g_checksum_new(G_CHECKSUM_SHA256);
    for (int64_t i = 0; i < n; i++) {
        g_autoptr(HnSample) s = hn_data_load(d, i, error);
        if (s == NULL)
            return NULL;
        for (int k = 0; k < s->n; k++)
            if (s->in[k] != NULL)
                hn_recipe_hash_tensor(sum, s->in[k]);
        if (s->label != NULL)
            hn_recipe_hash_tensor(sum, s->label);
    }
    return g_strdup(g_checksum_get_string(sum));
}

void hn_recipe_add_numbers(JsonObject *recipe, double original, double made)
{
    JsonObject *numbers = json_object_new();
    hn_json_set_number(numbers, "original", original);
    hn_json_set_number(numbers, "made", made);
    json_object_set_object_member(recipe, "cmd", numbers);
}

gboolean hn_recipe_has_numbers(JsonObject *recipe, const char *path, GError **error)
{
    const char *metric = hn_json_string_at(hn_json_object_at(recipe, "options"), "metric");
    double x;
    return g_strcmp0(metric, "cmd") != 0 || hn_json_number_at(hn_json_object_at(recipe, "cmd"), "original", &x) ||
           wrong(path, "cmd", error);
}

gboolean hn_recipe_check_number(JsonObject *recipe, const char *path, const char *name, const char *of,
                                const char *command, double now, GError **error)
{
    JsonObject *numbers = hn_json_object_at(recipe, "cmd");
    double then;
    if (command == NULL || numbers == NULL)
        return TRUE;
    if (!hn_json_number_at(numbers, name, &then))
        then = NAN;
    if (then == now || (isnan(then) && isnan(now)))
        return TRUE;
    g_autofree char *was = isnan(then) ? g_strdup("none") : hn_json_number(then);
    g_autofree char *is = isnan(now) ? g_strdup("none") : hn_json_number(now);
    g_set_error(error, HN_ERROR, HN_ERROR_GUARD, "'%s' gives %s for the %s model, where the recipe of '%s' says %s",
                command, is, of, path, was);
    return FALSE;
}

gboolean hn_recipe_has_hash(JsonObject *recipe, const char *path, const char *name, gboolean may_be_null,
                            GError **error)
{
    JsonNode *n = hn_json_at(recipe, name);
    const gboolean is_null = n != NULL && JSON_NODE_HOLDS_NULL(n);
    return hn_json_string(n) != NULL || (may_be_null && is_null) || wrong(path, name, error);
}

gboolean hn_recipe_check_hash(JsonObject *recipe, const char *path, const char *name, const char *hash,
                              const char *another, GError **error)
{
    const char *recorded = hn_json_string_at(recipe, name);
    if (g_strcmp0(recorded, hash) == 0)
        return TRUE;
    g_set_error(error, HN_ERROR, HN_ERROR_GUARD, "'%s' was made of %s: of %s, not %s", path, another,
                recorded != NULL ? recorded : "none", hash != NULL ? hash : "none");
    return FALSE;
}

/* The bytes of a model that lies in several files, as those of one. */
static GBytes *gather(const char *path, HnBudget *budget, GError **error)
{
    g_autoptr(GBytes) file = hn_file_bytes(path, budget, error);
    if (file == NULL)
        return NULL;
    g_autoptr(HnModel) m = hn_onnx_read_file(path, &(HnOnnxOptions){ .budget = budget, .verify_data = TRUE }, error);
    if (m == NULL)
        return NULL;
    return m->file_bytes > g_bytes_get_size(file) ? hn_onnx_write_bytes(m, budget, error) : g_bytes_ref(file);
}

gboolean hn_recipe_check_bytes(const char *path, const HnModel *m, HnBudget *budget, GError **error)
{
    g_autoptr(GBytes) made = gather(path, budget, error);
    g_autoptr(GBytes) now = made != NULL ? hn_onnx_write_bytes(m, budget, error) : NULL;
    if (now == NULL)
        return FALSE;
    if (g_bytes_equal(made, now))
        return TRUE;
    g_set_error(error, HN_ERROR, HN_ERROR_GUARD, "what the recipe of '%s' makes here has other bytes", path);
    return FALSE;
}
