/* Recipes: the options of hone-quantize out of a model's metadata, up to what the command line's would go through. */
#include <string.h>

#include "../../tools/hone_quantize.h"
#include "base/jsonread.h"
#include "base/regex.h"
#include "check/recipe.h"
#include "cli/json.h"
#include "data/input_shapes.h"
#include "json.h"

static const char *const names[] = { "norm1.out", "/model/layers.10/self_attn/q_proj/MatMul_output_0",
                                     "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!" };

/* Nothing that a recipe says is a file, or a program. */
static void check_names(const QuantizeParams *p)
{
    for (const GOptionEntry *e = quantize_entries; e->long_name != NULL; e++) {
        const glong at = (glong)GPOINTER_TO_SIZE(e->arg_data);
        if (e->arg == G_OPTION_ARG_FILENAME && G_STRUCT_MEMBER(char *, p, at) != NULL)
            g_error("a recipe has set '--%s'", e->long_name);
    }
    if (p->metric != NULL && g_str_has_prefix(p->metric, "cmd:"))
        g_error("a recipe names a program: '%s'", p->metric);
}

static void match(const char *pattern)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(HnRegex) r = hn_regex_new(pattern, &error);
    fuzz_result(r != NULL, error);
    for (gsize i = 0; r != NULL && i < G_N_ELEMENTS(names); i++) {
        g_autoptr(GError) why = NULL;
        gboolean found;
        const gboolean ok = hn_regex_find(r, names[i], &found, &why);
        fuzz_result(ok, why);
    }
}

static void parse_shapes(const QuantizeParams *p)
{
    g_autoptr(HnShapes) s = hn_shapes_new();
    for (char **text = p->dim; text != NULL && *text != NULL; text++) {
        g_autoptr(GError) error = NULL;
        const gboolean ok = hn_shapes_parse_dim(s, *text, &error);
        fuzz_result(ok, error);
    }
    for (char **text = p->shapes; text != NULL && *text != NULL; text++) {
        g_autoptr(GError) error = NULL;
        const gboolean ok = hn_shapes_parse(s, *text, &error);
        fuzz_result(ok, error);
    }
}

/* What the tool makes of them. */
static void use(const QuantizeParams *p)
{
    g_autoptr(GError) mode = NULL, options = NULL;
    HnContext ctx = { 0 }; /* without arguments */
    Quantize q = { .ctx = &ctx, .p = p, .file_before = 1000 };
    HnQuantOptions o;
    gboolean ok = quantize_parse_mode(&q, &mode);
    fuzz_result(ok, mode);
    if (ok) {
        ok = quantize_parse_options(&q, &o, &options);
        fuzz_result(ok, options);
    }
    if (q.choice.command != NULL)
        g_error("a recipe names a program: '%s'", q.choice.command);
    if (p->exclude != NULL)
        match(p->exclude);
    for (char **set = p->set; set != NULL && *set != NULL; set++)
        match(*set);
    parse_shapes(p);
    hn_metric_choice_clear(&q.choice);
}

static char *text_of(JsonObject *o)
{
    g_autoptr(JsonNode) node = json_node_new(JSON_NODE_OBJECT);
    json_node_take_object(node, o);
    return hn_json_text(node);
}

static void read_options(JsonObject *options)
{
    g_autoptr(GError) error = NULL;
    QuantizeParams p = quantize_defaults, again = quantize_defaults;
    guint64 seed = 0, seed_again = 0;
    const gboolean ok = hn_recorded_read(&quantize_recorded, options, &p, &seed, &error);
    fuzz_result(ok, error);
    check_names(&p);
    if (ok) {
        g_autoptr(JsonObject) written = hn_recorded_json(&quantize_recorded, &p, seed);
        if (!hn_recorded_read(&quantize_recorded, written, &again, &seed_again, NULL))
            g_error("options that were written cannot be read");
        g_autofree char *before = text_of(hn_recorded_json(&quantize_recorded, &p, seed));
        g_autofree char *after = text_of(hn_recorded_json(&quantize_recorded, &again, seed_again));
        if (strcmp(before, after) != 0)
            g_error("options become others when they are written: %s, %s", before, after);
        use(&p);
    }
    hn_recorded_clear(&quantize_recorded, &p);
    hn_recorded_clear(&quantize_recorded, &again);
}

static void one(const uint8_t *data, size_t size)
{
    static const char *const metrics[] = { NULL, "cos", "cmd:true" };
    g_autofree char *text = g_strndup((const char *)data, size);
    g_autoptr(GError) error = NULL;
    g_autoptr(JsonObject) recipe = hn_recipe_read(text, "m.onnx", &error);
    fuzz_result(recipe != NULL, error);
    if (recipe == NULL)
        return;
    for (gsize i = 0; i < G_N_ELEMENTS(metrics); i++) {
        g_autoptr(GError) why = NULL;
        const gboolean ok = hn_recipe_check_metric(recipe, "m.onnx", metrics[i], &why);
        fuzz_result(ok, why);
    }
    if (hn_json_object_at(recipe, "options") != NULL)
        read_options(hn_json_object_at(recipe, "options"));
}

const FuzzTarget fuzz_target = { .one = one, .mutate = fuzz_mutate_json, .times = 4 };
