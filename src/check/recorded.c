#include "check/recorded.h"

#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/jsonread.h"

#define PROGRAM "cmd"
#define SEED "seed"

gboolean hn_recorded_has(const HnRecorded *r, const GOptionEntry *e)
{
    switch (e->arg) {
    case G_OPTION_ARG_NONE:
    case G_OPTION_ARG_INT:
    case G_OPTION_ARG_INT64:
    case G_OPTION_ARG_DOUBLE:
    case G_OPTION_ARG_STRING:
    case G_OPTION_ARG_STRING_ARRAY:
        return !g_strv_contains(r->left_out, e->long_name);
    default:
        return FALSE;
    }
}

/* --- out ---------------------------------------------------------------------------------------------------------- */

static gboolean names_program(const HnRecorded *r, const char *option, const char *text)
{
    return r->program != NULL && strcmp(option, r->program) == 0 &&
           (strcmp(text, PROGRAM) == 0 || g_str_has_prefix(text, PROGRAM ":"));
}

static void add_strings(JsonObject *o, const char *name, char *const *texts)
{
    JsonArray *list = json_array_new();
    for (; *texts != NULL; texts++)
        json_array_add_string_element(list, *texts);
    json_object_set_array_member(o, name, list);
}

static void add_option(const HnRecorded *r, JsonObject *o, const GOptionEntry *e, gconstpointer p)
{
    const glong at = (glong)GPOINTER_TO_SIZE(e->arg_data);
    if (e->arg == G_OPTION_ARG_NONE && G_STRUCT_MEMBER(gboolean, p, at))
        json_object_set_boolean_member(o, e->long_name, TRUE);
    else if (e->arg == G_OPTION_ARG_INT && G_STRUCT_MEMBER(int, p, at) != G_STRUCT_MEMBER(int, r->defaults, at))
        json_object_set_int_member(o, e->long_name, G_STRUCT_MEMBER(int, p, at));
    else if (e->arg == G_OPTION_ARG_INT64 && G_STRUCT_MEMBER(gint64, p, at) != G_STRUCT_MEMBER(gint64, r->defaults, at))
        json_object_set_int_member(o, e->long_name, G_STRUCT_MEMBER(gint64, p, at));
    else if (e->arg == G_OPTION_ARG_DOUBLE && !isnan(G_STRUCT_MEMBER(double, p, at)) &&
             G_STRUCT_MEMBER(double, p, at) != G_STRUCT_MEMBER(double, r->defaults, at))
        json_object_set_double_member(o, e->long_name, G_STRUCT_MEMBER(double, p, at));
    else if (e->arg == G_OPTION_ARG_STRING && G_STRUCT_MEMBER(char *, p, at) != NULL) {
        const char *text = G_STRUCT_MEMBER(char *, p, at);
        json_object_set_string_member(o, e->long_name, names_program(r, e->long_name, text) ? PROGRAM : text);
    } else if (e->arg == G_OPTION_ARG_STRING_ARRAY && G_STRUCT_MEMBER(char **, p, at) != NULL)
        add_strings(o, e->long_name, G_STRUCT_MEMBER(char **, p, at));
}

JsonObject *hn_recorded_json(const HnRecorded *r, gconstpointer params, guint64 seed)
{
    JsonObject *o = json_object_new();
    for (const GOptionEntry *e = r->entries; e->long_name != NULL; e++)
        if (hn_recorded_has(r, e))
            add_option(r, o, e, params);
    if (seed != 0)
        json_object_set_int_member(o, SEED, (gint64)seed);
    return o;
}

/* --- in ----------------------------------------------------------------------------------------------------------- */

/* A whole number from 0 to `most`. */
static gboolean whole(JsonNode *n, gint64 most, gint64 *x)
{
    if (n == NULL || !JSON_NODE_HOLDS_VALUE(n) || json_node_get_value_type(n) != G_TYPE_INT64)
        return FALSE;
    *x = json_node_get_int(n);
    return *x >= 0 && *x <= most;
}

static gboolean read_texts(JsonNode *n, char ***out)
{
    JsonArray *list = JSON_NODE_HOLDS_ARRAY(n) ? json_node_get_array(n) : NULL;
    const guint count = list != NULL ? json_array_get_length(list) : 0;
    g_auto(GStrv) texts = g_new0(char *, (gsize)count + 1);
    for (guint i = 0; i < count; i++) {
        const char *text = hn_json_string(json_array_get_element(list, i));
        if (text == NULL)
            return FALSE;
        texts[i] = g_strdup(text);
    }
    if (list == NULL)
        return FALSE;
    *out = g_steal_pointer(&texts);
    return TRUE;
}

/* No option comes twice: the reader of JSON sees to that. */
static gboolean read_option(const HnRecorded *r, const GOptionEntry *e, JsonNode *n, gpointer p)
{
    const glong at = (glong)GPOINTER_TO_SIZE(e->arg_data);
    const char *text = hn_json_string(n);
    gint64 x;
    switch (e->arg) {
    case G_OPTION_ARG_NONE:
        if (hn_json_is_switch(n))
            G_STRUCT_MEMBER(gboolean, p, at) = json_node_get_boolean(n);
        return hn_json_is_switch(n);
    case G_OPTION_ARG_INT:
        if (!whole(n, G_MAXINT, &x))
            return FALSE;
        G_STRUCT_MEMBER(int, p, at) = (int)x;
        return TRUE;
    case G_OPTION_ARG_INT64:
        if (whole(n, G_MAXINT64, &x))
            G_STRUCT_MEMBER(gint64, p, at) = x;
        return whole(n, G_MAXINT64, &x);
    case G_OPTION_ARG_DOUBLE:
        if (!hn_json_is_number(n))
            return FALSE;
        G_STRUCT_MEMBER(double, p, at) = json_node_get_double(n);
        return isfinite(json_node_get_double(n));
    case G_OPTION_ARG_STRING:
        if (text != NULL)
            G_STRUCT_MEMBER(char *, p, at) = g_strdup(names_program(r, e->long_name, text) ? PROGRAM : text);
        else if (whole(n, G_MAXINT, &x)) /* a number in older recipes */
            G_STRUCT_MEMBER(char *, p, at) = g_strdup_printf("%" G_GINT64_FORMAT, x);
        return G_STRUCT_MEMBER(char *, p, at) != NULL;
    case G_OPTION_ARG_STRING_ARRAY:
        return read_texts(n, &G_STRUCT_MEMBER(char **, p, at));
    default:
        return FALSE;
    }
}

static const GOptionEntry *entry_of(const HnRecorded *r, const char *name)
{
    for (const GOptionEntry *e = r->entries; e->long_name != NULL; e++)
        if (strcmp(e->long_name, name) == 0 && hn_recorded_has(r, e))
            return e;
    return NULL;
}

gboolean hn_recorded_read(const HnRecorded *r, JsonObject *options, gpointer params, guint64 *seed, GError **error)
{
    JsonObjectIter iter;
    const char *name;
    JsonNode *n;
    json_object_iter_init_ordered(&iter, options);
    while (json_object_iter_next_ordered(&iter, &name, &n)) {
        const GOptionEntry *e = entry_of(r, name);
        gint64 x;
        if (strcmp(name, SEED) == 0 && whole(n, G_MAXINT64, &x)) {
            *seed = (guint64)x;
        } else if (e == NULL || !read_option(r, e, n, params)) {
            g_set_error(error, HN_ERROR, HN_ERROR_UNSUPPORTED, "option '%s' in the recipe is not known here", name);
            return FALSE;
        }
    }
    return TRUE;
}

void hn_recorded_clear(const HnRecorded *r, gpointer params)
{
    for (const GOptionEntry *e = r->entries; e->long_name != NULL; e++) {
        const glong at = (glong)GPOINTER_TO_SIZE(e->arg_data);
        if (e->arg == G_OPTION_ARG_STRING && hn_recorded_has(r, e))
            g_clear_pointer(&G_STRUCT_MEMBER(char *, params, at), g_free);
        else if (e->arg == G_OPTION_ARG_STRING_ARRAY && hn_recorded_has(r, e))
            g_clear_pointer(&G_STRUCT_MEMBER(char **, params, at), g_strfreev);
    }
}
