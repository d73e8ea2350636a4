#include "check/recipe.h"

#include <string.h>

#include "base/error.h"
#include "base/jsonread.h"

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
