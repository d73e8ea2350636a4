#include "check/recipe.h"

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
