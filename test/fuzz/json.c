/* Changes to JSON that knows what it is: other values, members and elements that go, come, or come twice. */
#include <string.h>

#include "base/jsonread.h"
#include "json.h"

#define MOST_CHANGES 3

static const char *const values[] = { "null",
                                      "true",
                                      "false",
                                      "0",
                                      "-1",
                                      "-0.0",
                                      "0.5",
                                      "1e308",
                                      "5e-324",
                                      "9223372036854775807",
                                      "2147483648",
                                      "\"\"",
                                      "\"x\"",
                                      "\"\\u001b[31m\"",
                                      "\"cmd:true\"",
                                      "\"cmd\"",
                                      "\"int8\"",
                                      "\"f32\"",
                                      "\"w4\"",
                                      "\"(a+)+$\"",
                                      "\"N=4\"",
                                      "\"x:1x3,y\"",
                                      "\"9%\"",
                                      "[]",
                                      "{}",
                                      "[[]]",
                                      "[null,1,\"x\"]",
                                      "{\"lo\":1,\"hi\":2}",
                                      "[\"a\",\"b\"]" };
static const char *const names[] = { "",    "x",    "name", "form",   "lo",    "hi",    "options", "metric", "cmd",
                                     "set", "plan", "race", "effect", "times", "nodes", "key",     "config", "output" };

static JsonNode *some_value(HnRng *rng)
{
    const char *text = values[hn_rng_int(rng, 0, G_N_ELEMENTS(values) - 1)];
    return hn_json_read(text, strlen(text), HN_JSON_BYTES, NULL, NULL);
}

static void change_object(JsonObject *o, HnRng *rng)
{
    g_autoptr(GList) members = json_object_get_members(o);
    const guint n = g_list_length(members);
    const char *name = n > 0 ? g_list_nth_data(members, (guint)hn_rng_int(rng, 0, n - 1)) : NULL;
    switch (hn_rng_int(rng, 0, 3)) {
    case 0:
        if (name != NULL)
            json_object_remove_member(o, name);
        break;
    case 1:
        json_object_set_member(o, names[hn_rng_int(rng, 0, G_N_ELEMENTS(names) - 1)], some_value(rng));
        break;
    default:
        if (name != NULL)
            json_object_set_member(o, name, some_value(rng));
    }
}

static void change_array(JsonArray *a, HnRng *rng)
{
    const guint n = json_array_get_length(a), k = n > 0 ? (guint)hn_rng_int(rng, 0, n - 1) : 0;
    if (n > 0 && hn_rng_int(rng, 0, 1) == 0)
        json_array_remove_element(a, k);
    else if (n > 0 && hn_rng_int(rng, 0, 1) == 0)
        json_array_add_element(a, json_node_copy(json_array_get_element(a, k)));
    else
        json_array_add_element(a, some_value(rng));
}

/* The k-th object or array at or below `node`; *k becomes less by those that there are. */
static JsonNode *find(JsonNode *node, guint *k)
{
    JsonNode *found = NULL;
    if (!JSON_NODE_HOLDS_OBJECT(node) && !JSON_NODE_HOLDS_ARRAY(node))
        return NULL;
    if ((*k)-- == 0)
        return node;
    g_autoptr(GList) inside = JSON_NODE_HOLDS_OBJECT(node) ? json_object_get_values(json_node_get_object(node))
                                                           : json_array_get_elements(json_node_get_array(node));
    for (GList *l = inside; l != NULL && found == NULL; l = l->next)
        found = find(l->data, k);
    return found;
}

static guint count(JsonNode *root)
{
    guint k = G_MAXUINT;
    find(root, &k);
    return G_MAXUINT - k;
}

static void change(JsonNode *root, HnRng *rng)
{
    const guint n = count(root);
    guint k = n > 0 ? (guint)hn_rng_int(rng, 0, n - 1) : 0;
    JsonNode *at = find(root, &k);
    if (at != NULL && JSON_NODE_HOLDS_OBJECT(at))
        change_object(json_node_get_object(at), rng);
    else if (at != NULL)
        change_array(json_node_get_array(at), rng);
}

static char *changed(const char *text, gsize n, HnRng *rng)
{
    g_autoptr(JsonNode) root = hn_json_read(text, n, HN_JSON_BYTES, NULL, NULL);
    if (root == NULL)
        return NULL;
    for (int64_t i = hn_rng_int(rng, 1, MOST_CHANGES); i > 0; i--)
        change(root, rng);
    return json_to_string(root, FALSE);
}

size_t fuzz_mutate_json(uint8_t *data, size_t size, size_t max, HnRng *rng)
{
    const char *text = (const char *)data;
    g_autoptr(GString) out = g_string_new(NULL);
    gsize lines = 1;
    for (size_t i = 0; i < size; i++)
        lines += text[i] == '\n' && i + 1 < size;
    gsize chosen = (gsize)hn_rng_int(rng, 0, (int64_t)lines - 1);
    if (hn_rng_int(rng, 0, 3) == 0)
        return 0;
    for (size_t at = 0, k = 0; at < size; k++) {
        const char *end = memchr(text + at, '\n', size - at);
        const size_t n = end != NULL ? (size_t)(end - text) - at : size - at;
        g_autofree char *other = k == chosen ? changed(text + at, n, rng) : NULL;
        if (k == chosen && other == NULL)
            return 0;
        if (other != NULL)
            g_string_append(out, other);
        else
            g_string_append_len(out, text + at, (gssize)n);
        if (end != NULL)
            g_string_append_c(out, '\n');
        at += n + 1;
    }
    if (out->len == 0 || out->len > max)
        return 0;
    memcpy(data, out->str, out->len);
    return out->len;
}
