#include "cli/json.h"

#include <math.h>
#include <string.h>

#include "base/jsonread.h"
#include "base/text.h"

static JsonNode *element(JsonArray *array, const char *number)
{
    guint64 k;
    const gboolean ok = g_ascii_string_to_unsigned(number, 10, 0, G_MAXUINT, &k, NULL);
    return ok && k < json_array_get_length(array) ? json_array_get_element(array, (guint)k) : NULL;
}

JsonNode *hn_json_find(JsonNode *node, const char *path)
{
    while (node && *path) {
        if (JSON_NODE_HOLDS_OBJECT(node) && json_object_has_member(json_node_get_object(node), path))
            return json_object_get_member(json_node_get_object(node), path);
        const gsize n = strcspn(path, ".");
        g_autofree char *name = g_strndup(path, n);
        path += n + (path[n] == '.');
        if (n == 0)
            continue;
        if (JSON_NODE_HOLDS_OBJECT(node))
            node = json_object_get_member(json_node_get_object(node), name);
        else
            node = JSON_NODE_HOLDS_ARRAY(node) ? element(json_node_get_array(node), name) : NULL;
    }
    return node;
}

/* By its number, beyond 16 bits by those of two halves: what a terminal would act upon is ASCII then. */
static void put_escaped(GString *out, gunichar c)
{
    if (c > 0xffff)
        g_string_append_printf(out, "\\u%04x\\u%04x", 0xd7c0 + (c >> 10), 0xdc00 + (c & 0x3ff));
    else
        g_string_append_printf(out, "\\u%04x", c);
}

static void put_string(GString *out, const char *s)
{
    g_autofree char *valid = g_utf8_make_valid(s, -1);
    g_string_append_c(out, '"');
    for (const char *p = valid; *p; p = g_utf8_next_char(p)) {
        const gunichar c = g_utf8_get_char(p);
        if (c == '"' || c == '\\')
            g_string_append_printf(out, "\\%c", *p);
        else if (c == '\n')
            g_string_append(out, "\\n");
        else if (c == '\t')
            g_string_append(out, "\\t");
        else if (hn_text_is_hidden(c))
            put_escaped(out, c);
        else
            g_string_append_unichar(out, c);
    }
    g_string_append_c(out, '"');
}

static void put_value(GString *out, JsonNode *node)
{
    GType type = json_node_get_value_type(node);
    if (type == G_TYPE_STRING) {
        put_string(out, json_node_get_string(node));
    } else if (type == G_TYPE_BOOLEAN) {
        g_string_append(out, json_node_get_boolean(node) ? "true" : "false");
    } else if (type == G_TYPE_INT64) {
        g_string_append_printf(out, "%" G_GINT64_FORMAT, json_node_get_int(node));
    } else if (type == G_TYPE_DOUBLE && isfinite(json_node_get_double(node))) {
        g_autofree char *text = hn_json_number(json_node_get_double(node));
        g_string_append(out, text);
    } else {
        g_string_append(out, "null");
    }
}

static void line_break(GString *out, int level)
{
    g_string_append_printf(out, "\n%*s", 2 * level, "");
}

static void put_node(GString *out, JsonNode *node, int level);

static gboolean is_plain(JsonNode *node)
{
    return JSON_NODE_HOLDS_VALUE(node) ? json_node_get_value_type(node) != G_TYPE_STRING : JSON_NODE_HOLDS_NULL(node);
}

static void put_array(GString *out, JsonArray *array, int level)
{
    guint n = json_array_get_length(array);
    gboolean plain = TRUE;
    for (guint i = 0; i < n && plain; i++)
        plain = is_plain(json_array_get_element(array, i));
    g_string_append_c(out, '[');
    for (guint i = 0; i < n; i++) {
        if (i)
            g_string_append(out, plain ? ", " : ",");
        if (!plain)
            line_break(out, level + 1);
        put_node(out, json_array_get_element(array, i), level + 1);
    }
    if (!plain)
        line_break(out, level);
    g_string_append_c(out, ']');
}

static void put_object(GString *out, JsonObject *object, int level)
{
    g_autoptr(GList) names = json_object_get_members(object); /* in the order in which they were set */
    g_string_append_c(out, '{');
    for (GList *l = names; l; l = l->next) {
        if (l != names)
            g_string_append_c(out, ',');
        line_break(out, level + 1);
        put_string(out, l->data);
        g_string_append(out, ": ");
        put_node(out, json_object_get_member(object, l->data), level + 1);
    }
    if (names)
        line_break(out, level);
    g_string_append_c(out, '}');
}

static void put_node(GString *out, JsonNode *node, int level)
{
    if (JSON_NODE_HOLDS_OBJECT(node))
        put_object(out, json_node_get_object(node), level);
    else if (JSON_NODE_HOLDS_ARRAY(node))
        put_array(out, json_node_get_array(node), level);
    else if (JSON_NODE_HOLDS_VALUE(node))
        put_value(out, node);
    else
        g_string_append(out, "null");
}

char *hn_json_text(JsonNode *node)
{
    GString *out = g_string_new(NULL);
    put_node(out, node, 0);
    g_string_append_c(out, '\n');
    return g_string_free(out, FALSE);
}
