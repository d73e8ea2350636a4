#include "quant/plan_file.h"

#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/jsonread.h"
#include "base/nearest.h"

#define SCHEMA "hone.plan/1"
#define REPORT "hone.quantize/1"

/* The options that are switches, by name. */
static const struct {
    const char *name;
    gsize at;
} switches[] = {
    { "symmetric", G_STRUCT_OFFSET(HnQuantOptions, symmetric) },
    { "per_tensor", G_STRUCT_OFFSET(HnQuantOptions, per_tensor) },
    { "reduced", G_STRUCT_OFFSET(HnQuantOptions, reduced) },
    { "reduced_all", G_STRUCT_OFFSET(HnQuantOptions, reduced_all) },
    { "symmetric_block", G_STRUCT_OFFSET(HnQuantOptions, symmetric_block) },
    { "integers", G_STRUCT_OFFSET(HnQuantOptions, integers) },
};

/* --- writing ------------------------------------------------------------------------------------------------------ */

static JsonObject *options_of(const HnQuantOptions *o)
{
    JsonObject *json = json_object_new();
    json_object_set_string_member(json, "activations", o->activations == HN_I8 ? "s8" : "u8");
    json_object_set_int_member(json, "block", o->block);
    for (gsize i = 0; i < G_N_ELEMENTS(switches); i++)
        json_object_set_boolean_member(json, switches[i].name, G_STRUCT_MEMBER(gboolean, o, switches[i].at));
    return json;
}

static gint by_name(gconstpointer a, gconstpointer b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static GPtrArray *sorted_keys(GHashTable *table)
{
    GPtrArray *keys = g_ptr_array_new();
    GHashTableIter iter;
    gpointer key;
    g_hash_table_iter_init(&iter, table);
    while (g_hash_table_iter_next(&iter, &key, NULL))
        g_ptr_array_add(keys, key);
    g_ptr_array_sort(keys, by_name);
    return keys;
}

static JsonArray *nodes_of(const HnQuantPlan *p, const GPtrArray *nodes)
{
    JsonArray *rows = json_array_new();
    for (guint i = 0; i < nodes->len; i++) {
        const char *name = nodes->pdata[i];
        const HnQuantForm form = (HnQuantForm)GPOINTER_TO_INT(g_hash_table_lookup(p->forms, name));
        JsonObject *row = json_object_new();
        json_object_set_string_member(row, "name", name);
        json_object_set_string_member(row, "form", hn_quant_form_name(form));
        json_array_add_object_element(rows, row);
    }
    return rows;
}

static JsonObject *spans_of(const HnQuantPlan *p)
{
    JsonObject *spans = json_object_new();
    g_autoptr(GPtrArray) names = sorted_keys(p->spans);
    for (guint i = 0; i < names->len; i++) {
        const HnQuantSpan *s = g_hash_table_lookup(p->spans, names->pdata[i]);
        JsonObject *row = json_object_new();
        json_object_set_double_member(row, "lo", s->lo);
        json_object_set_double_member(row, "hi", s->hi);
        json_object_set_object_member(spans, names->pdata[i], row);
    }
    return spans;
}

JsonNode *hn_quant_plan_json(const HnQuantPlan *p, const GPtrArray *nodes, const char *const *repairs)
{
    JsonObject *plan = json_object_new();
    JsonArray *done = json_array_new();
    g_autoptr(GPtrArray) sorted = nodes == NULL ? sorted_keys(p->forms) : NULL;
    for (int i = 0; repairs != NULL && repairs[i] != NULL; i++)
        json_array_add_string_element(done, repairs[i]);
    json_object_set_string_member(plan, "schema", SCHEMA);
    json_object_set_object_member(plan, "options", options_of(&p->o));
    json_object_set_array_member(plan, "repairs", done);
    json_object_set_array_member(plan, "nodes", nodes_of(p, nodes != NULL ? nodes : sorted));
    json_object_set_object_member(plan, "spans", spans_of(p));
    JsonNode *node = json_node_new(JSON_NODE_OBJECT);
    json_node_take_object(node, plan);
    return node;
}

/* What was repaired follows from all the rest; whether it was does not. */
static void add_names(GString *text, GHashTable *table)
{
    g_autoptr(GPtrArray) names = sorted_keys(table);
    for (guint i = 0; i < names->len; i++)
        g_string_append_printf(text, "\n%s", (const char *)names->pdata[i]);
    g_string_append_c(text, '\n');
}

char *hn_quant_plan_hash(const HnQuantPlan *p)
{
    JsonNode *node = hn_quant_plan_json(p, NULL, NULL);
    g_autofree char *json = json_to_string(node, FALSE);
    GString *text = g_string_new(json);
    json_node_unref(node);
    add_names(text, p->integers);
    add_names(text, p->shifts);
    char *hash = g_compute_checksum_for_string(G_CHECKSUM_SHA256, text->str, (gssize)text->len);
    g_string_free(text, TRUE);
    return hash;
}

/* --- reading ------------------------------------------------------------------------------------------------------ */

static gboolean wrong(GError **error, const char *what, const char *name)
{
    g_set_error(error, HN_ERROR, HN_ERROR_FORMAT, "%s of '%s' is missing or wrong in the plan", what, name);
    return FALSE;
}

static gboolean read_options(JsonObject *o, HnQuantOptions *out, GError **error)
{
    const char *activations = hn_json_string_at(o, "activations");
    double block;
    if (activations == NULL || (strcmp(activations, "u8") && strcmp(activations, "s8")))
        return wrong(error, "an option", "activations");
    out->activations = strcmp(activations, "u8") ? HN_I8 : HN_U8;
    if (!hn_json_number_at(o, "block", &block) || (block != 32 && block != 64 && block != 128))
        return wrong(error, "an option", "block");
    out->block = (int)block;
    for (gsize i = 0; i < G_N_ELEMENTS(switches); i++) {
        JsonNode *n = json_object_get_member(o, switches[i].name);
        if (!hn_json_is_switch(n))
            return wrong(error, "an option", switches[i].name);
        G_STRUCT_MEMBER(gboolean, out, switches[i].at) = json_node_get_boolean(n);
    }
    return TRUE;
}

static char *nearest(const char *name, const GPtrArray *nodes)
{
    g_autoptr(GPtrArray) names = g_ptr_array_new();
    for (guint i = 0; i < nodes->len; i++)
        g_ptr_array_add(names, nodes->pdata[i]);
    g_ptr_array_add(names, NULL);
    return hn_nearest_words(name, (const char *const *)names->pdata);
}

static gboolean read_nodes(JsonArray *rows, const GPtrArray *nodes, HnQuantPlan *p, GError **error)
{
    g_autoptr(GHashTable) known = g_hash_table_new(g_str_hash, g_str_equal);
    for (guint i = 0; i < nodes->len; i++)
        g_hash_table_add(known, nodes->pdata[i]);
    for (guint i = 0; i < json_array_get_length(rows); i++) {
        JsonNode *n = json_array_get_element(rows, i);
        JsonObject *row = hn_json_object(n);
        const char *name = hn_json_string_at(row, "name"), *form_name = hn_json_string_at(row, "form");
        HnQuantForm form;
        if (name == NULL)
            return wrong(error, "the name", "nodes");
        if (form_name == NULL || !hn_quant_form_parse(form_name, &form))
            return wrong(error, "the form", name);
        if (!g_hash_table_contains(known, name)) {
            g_autofree char *words = nearest(name, nodes);
            g_set_error(error, HN_ERROR, HN_ERROR_USAGE,
                        "the plan names node '%s', which the model does not have, or which has no weights to "
                        "quantize%s",
                        name, words);
            return FALSE;
        }
        hn_quant_plan_set_form(p, name, form);
    }
    return TRUE;
}

static gboolean read_spans(JsonObject *spans, HnQuantPlan *p, GError **error)
{
    JsonObjectIter iter;
    const char *name;
    JsonNode *row;
    json_object_iter_init(&iter, spans);
    while (json_object_iter_next(&iter, &name, &row)) {
        HnQuantSpan s;
        JsonObject *o = hn_json_object(row);
        if (o == NULL || !hn_json_number_at(o, "lo", &s.lo) || !hn_json_number_at(o, "hi", &s.hi) || s.lo > s.hi)
            return wrong(error, "the span", name);
        hn_quant_plan_set_span(p, name, s.lo, s.hi);
    }
    return TRUE;
}

static gboolean read_repairs(JsonArray *names, HnPlanFile *out, GError **error)
{
    g_autoptr(GPtrArray) repairs = g_ptr_array_new();
    for (guint i = 0; names != NULL && i < json_array_get_length(names); i++) {
        JsonNode *n = json_array_get_element(names, i);
        if (hn_json_string(n) == NULL)
            return wrong(error, "a name", "repairs");
        g_ptr_array_add(repairs, (gpointer)json_node_get_string(n));
    }
    g_ptr_array_add(repairs, NULL);
    out->repairs = g_strdupv((char **)repairs->pdata);
    return TRUE;
}

static gboolean read_plan(JsonObject *root, const HnQuantOptions *o, const GPtrArray *nodes, HnPlanFile *out,
                          GError **error)
{
    const char *schema = hn_json_string_at(root, "schema");
    JsonArray *rows = hn_json_array_at(root, "nodes");
    JsonObject *options = hn_json_object_at(root, "options"), *spans = hn_json_object_at(root, "spans");
    HnQuantOptions read = *o;
    if (schema == NULL || (strcmp(schema, SCHEMA) && strcmp(schema, REPORT)) || rows == NULL) {
        g_set_error_literal(error, HN_ERROR, HN_ERROR_FORMAT,
                            "this is no plan: it has nodes, and the schema '" SCHEMA "' or '" REPORT "'");
        return FALSE;
    }
    const gboolean is_plan = strcmp(schema, SCHEMA) == 0;
    out->has_options = is_plan && options != NULL;
    if (out->has_options && !read_options(options, &read, error))
        return FALSE;
    out->plan = hn_quant_plan_new(&read);
    out->has_spans = is_plan && spans != NULL && json_object_get_size(spans) > 0;
    return read_nodes(rows, nodes, out->plan, error) && (!out->has_spans || read_spans(spans, out->plan, error)) &&
           read_repairs(is_plan ? hn_json_array_at(root, "repairs") : NULL, out, error);
}

gboolean hn_quant_plan_read(JsonNode *root, const HnQuantOptions *o, const GPtrArray *nodes, HnPlanFile *out,
                            GError **error)
{
    *out = (HnPlanFile){ 0 };
    if (read_plan(hn_json_object(root), o, nodes, out, error))
        return TRUE;
    hn_plan_file_clear(out);
    return FALSE;
}

void hn_plan_file_clear(HnPlanFile *f)
{
    g_clear_pointer(&f->plan, hn_quant_plan_free);
    g_clear_pointer(&f->repairs, g_strfreev);
}

JsonObject *hn_quant_forms_json(const HnQuantPlan *p, const HnQuantPlan *base, const GPtrArray *nodes)
{
    JsonObject *forms = json_object_new();
    for (guint i = 0; i < nodes->len; i++) {
        const HnQuantForm form = hn_quant_plan_form(p, nodes->pdata[i]);
        if (form != hn_quant_plan_form(base, nodes->pdata[i]))
            json_object_set_string_member(forms, hn_quant_name(nodes->pdata[i]), hn_quant_form_name(form));
    }
    if (json_object_get_size(forms) == 0)
        g_clear_pointer(&forms, json_object_unref);
    return forms;
}

gboolean hn_quant_forms_read(JsonObject *forms, HnQuantPlan *p)
{
    JsonObjectIter iter;
    const char *name;
    JsonNode *n;
    if (forms != NULL)
        json_object_iter_init(&iter, forms);
    while (forms != NULL && json_object_iter_next(&iter, &name, &n)) {
        HnQuantForm form;
        if (!g_hash_table_contains(p->forms, name) || hn_json_string(n) == NULL ||
            !hn_quant_form_parse(hn_json_string(n), &form))
            return FALSE;
        hn_quant_plan_set_form(p, name, form);
    }
    return TRUE;
}
