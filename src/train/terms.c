#include "train/terms.h"

#include <math.h>
#include <string.h>

#include "base/error.h"

void hn_terms_free(HnTerms *t)
{
    if (t == NULL)
        return;
    for (guint i = 0; i < t->terms->len; i++)
        g_free(g_array_index(t->terms, HnTerm, i).key);
    g_array_unref(t->terms);
    g_free(t->name);
    g_free(t);
}

static gboolean add_term(HnTerms *t, const char *what, const char *text, GError **error)
{
    const char *equal = strchr(text, '=');
    char *end = NULL;
    const double value = equal != NULL ? g_ascii_strtod(equal + 1, &end) : 0;
    if (equal == NULL || equal == text || end == equal + 1 || *end != '\0' || !isfinite(value)) {
        g_set_error(error, HN_ERROR, HN_ERROR_USAGE, "%s: '%s' is not of the form KEY=NUMBER", what, text);
        return FALSE;
    }
    HnTerm term = { g_strndup(text, (gsize)(equal - text)), value };
    if (!isnan(hn_terms_get(t, term.key))) {
        g_set_error(error, HN_ERROR, HN_ERROR_USAGE, "%s: '%s' is given twice", what, term.key);
        g_free(term.key);
        return FALSE;
    }
    g_array_append_val(t->terms, term);
    return TRUE;
}

HnTerms *hn_terms_parse(const char *what, const char *text, gsize n, GError **error)
{
    g_autofree char *copy = g_strndup(text, n);
    g_auto(GStrv) parts = g_strsplit(copy, ":", -1);
    g_autoptr(HnTerms) t = g_new0(HnTerms, 1);
    t->terms = g_array_new(FALSE, FALSE, sizeof(HnTerm));
    if (parts[0] == NULL || *parts[0] == '\0') {
        g_set_error(error, HN_ERROR, HN_ERROR_USAGE, "%s: a name is missing in '%s'", what, copy);
        return NULL;
    }
    t->name = g_strdup(parts[0]);
    for (int i = 1; parts[i] != NULL; i++)
        if (!add_term(t, what, parts[i], error))
            return NULL;
    return g_steal_pointer(&t);
}

double hn_terms_get(const HnTerms *t, const char *key)
{
    for (guint i = 0; i < t->terms->len; i++) {
        const HnTerm *term = &g_array_index(t->terms, HnTerm, i);
        if (strcmp(term->key, key) == 0)
            return term->value;
    }
    return NAN;
}

void hn_terms_set(HnTerms *t, const char *key, double value)
{
    const HnTerm term = { g_strdup(key), value };
    g_array_append_val(t->terms, term);
}

static gboolean is_among(const char *const *keys, const char *key)
{
    return keys != NULL && g_strv_contains(keys, key);
}

static void list(GString *out, const char *const *keys)
{
    for (int i = 0; keys != NULL && keys[i] != NULL; i++)
        g_string_append_printf(out, "%s%s", out->len > 0 ? ", " : "", keys[i]);
}

static gboolean is_known(const char *key, const char *const *const *lists, int n)
{
    gboolean known = FALSE;
    for (int i = 0; i < n && !known; i++)
        known = is_among(lists[i], key);
    return known;
}

gboolean hn_terms_check(const HnTerms *t, const char *what, const char *const *const *lists, int n, GError **error)
{
    for (guint i = 0; i < t->terms->len; i++) {
        const char *key = g_array_index(t->terms, HnTerm, i).key;
        if (is_known(key, lists, n))
            continue;
        g_autoptr(GString) all = g_string_new(NULL);
        for (int k = 0; k < n; k++)
            list(all, lists[k]);
        g_set_error(error, HN_ERROR, HN_ERROR_USAGE, "%s: '%s' does not know '%s'; %s%s", what, t->name, key,
                    all->len > 0 ? "it takes " : "it takes nothing", all->str);
        return FALSE;
    }
    return TRUE;
}

void hn_terms_apply(const HnTerms *t, const char *const *floats, const char *const *ints, HnNode *n)
{
    for (guint i = 0; i < t->terms->len; i++) {
        const HnTerm *term = &g_array_index(t->terms, HnTerm, i);
        if (is_among(floats, term->key))
            hn_node_set_float(n, term->key, (float)term->value);
        if (is_among(ints, term->key))
            hn_node_set_int(n, term->key, (int64_t)term->value);
    }
}
