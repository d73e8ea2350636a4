/* hone-replay: a model made again as the recipe in its metadata says. */
#include "base/jsonread.h"
#include "check/recipe.h"
#include "cli/child_program.h"
#include "common.h"

typedef struct {
    char *output, *calib, *plan, *ranges, *metric, *data, *val, *teacher;
    HnToolDataParams from;
    char **input;
} ReplayParams;

static const GOptionEntry entries[] = {
    { "output", 'o', 0, G_OPTION_ARG_FILENAME, HN_FIELD(ReplayParams, output),
      "write the model to PATH as well, '-' is stdout", "PATH" },
    { "calib", 0, 0, G_OPTION_ARG_FILENAME, HN_FIELD(ReplayParams, calib), "the samples that MADE was made with",
      "SRC" },
    { "plan", 0, 0, G_OPTION_ARG_FILENAME, HN_FIELD(ReplayParams, plan), "the plan that MADE was made with", "FILE" },
    { "ranges", 0, 0, G_OPTION_ARG_FILENAME, HN_FIELD(ReplayParams, ranges), "the ranges that MADE was made with",
      "FILE" },
    { "data", 0, 0, G_OPTION_ARG_FILENAME, HN_FIELD(ReplayParams, data),
      "the samples that hone-export compared MADE on, where it was given some; those that hone-distill's MADE learned "
      "from",
      "SRC" },
    { "val", 0, 0, G_OPTION_ARG_FILENAME, HN_FIELD(ReplayParams, val),
      "the samples that hone-distill judged MADE by, where they were others", "SRC" },
    { "teacher", 0, 0, G_OPTION_ARG_FILENAME, HN_FIELD(ReplayParams, teacher), "the teacher that MADE had", "MODEL" },
    { "metric", 0, 0, G_OPTION_ARG_STRING, HN_FIELD(ReplayParams, metric),
      "the program that MADE was judged by, where one was: a recipe names none", "cmd:PROGRAM" },
    { "input", 0, 0, G_OPTION_ARG_FILENAME_ARRAY, HN_FIELD(ReplayParams, input),
      "what fed input NAME where MADE was made; may be repeated", "NAME=VALUE" },
    HN_TOOL_DATA_ENTRIES(ReplayParams, from),
    G_OPTION_ENTRY_NULL,
};

/* Those that leave recipes, and which of the options above are for what they make. */
static const struct {
    const char *tool;
    const char *takes[6]; /* ended by NULL */
} tools[] = {
    { "hone-quantize", { "calib", "plan", "ranges", "metric", "input", NULL } },
    { "hone-export", { "data", "input", NULL } },
    { "hone-prune", { "calib", "metric", "input", NULL } },
    { "hone-distill", { "data", "val", "teacher", NULL } },
};

/* -1: none of them. */
static int tool_of(JsonObject *recipe)
{
    const char *name = hn_json_string_at(recipe, "tool");
    for (int i = 0; i < (int)G_N_ELEMENTS(tools); i++)
        if (g_strcmp0(name, tools[i].tool) == 0)
            return i;
    return -1;
}

/* What one of them left in the model's metadata; json_object_unref(). */
static JsonObject *recipe_of(HnContext *ctx, const char *path, GError **error)
{
    ctx->common.verify_data = TRUE; /* a model is made of it */
    g_autoptr(HnModel) m = hn_tool_read_model(ctx, path, error);
    g_autoptr(JsonObject) recipe = m != NULL ? hn_recipe_read(hn_model_metadata(m, HN_RECIPE), path, error) : NULL;
    if (recipe == NULL)
        return NULL;
    if (tool_of(recipe) >= 0)
        return g_steal_pointer(&recipe);
    g_set_error(error, HN_ERROR, HN_ERROR_UNSUPPORTED, "'%s' has no recipe of a tool that can repeat it", path);
    return NULL;
}

/* As one word: a value that begins with '-' is no option. */
static void add(GPtrArray *args, const char *option, const char *value)
{
    if (value != NULL)
        g_ptr_array_add(args, g_strconcat(option, "=", value, NULL));
}

static void add_data_options(GPtrArray *args, const HnToolDataParams *from)
{
    add(args, "--preprocess", from->preprocess);
    add(args, "--mean", from->mean);
    add(args, "--scale", from->scale);
    add(args, "--layout", from->layout);
    add(args, "--resize", from->resize);
    add(args, "--crop", from->crop);
    add(args, "--channels", from->channels);
    add(args, "--rate", from->rate);
    add(args, "--data-cache", from->cache);
    if (from->u8)
        g_ptr_array_add(args, g_strdup("--u8"));
    if (from->exif)
        g_ptr_array_add(args, g_strdup("--exif"));
}

static void add_common(GPtrArray *args, const HnCommon *c)
{
    g_ptr_array_add(args, g_strdup_printf("--threads=%d", c->threads));
    if (c->mem_limit > 0)
        g_ptr_array_add(args, g_strdup_printf("--mem-limit=%" G_GUINT64_FORMAT, c->mem_limit));
    if (c->device_mem_limit > 0)
        g_ptr_array_add(args, g_strdup_printf("--device-mem-limit=%" G_GUINT64_FORMAT, c->device_mem_limit));
    if (c->quiet)
        g_ptr_array_add(args, g_strdup("--quiet"));
    if (c->no_progress)
        g_ptr_array_add(args, g_strdup("--no-progress"));
    for (int i = 0; i < c->verbose; i++)
        g_ptr_array_add(args, g_strdup("--verbose"));
}

/* No option is for what another tool makes. */
static gboolean fits(const ReplayParams *p, const char *path, int tool, GError **error)
{
    const struct {
        const char *name, *value;
    } given[] = { { "calib", p->calib },     { "plan", p->plan },
                  { "ranges", p->ranges },   { "metric", p->metric },
                  { "data", p->data },       { "val", p->val },
                  { "teacher", p->teacher }, { "input", p->input ? p->input[0] : NULL } };
    for (guint i = 0; i < G_N_ELEMENTS(given); i++)
        if (given[i].value != NULL && !g_strv_contains(tools[tool].takes, given[i].name)) {
            g_set_error(error, HN_ERROR, HN_ERROR_USAGE, "'%s' was made by %s, which takes no '--%s'", path,
                        tools[tool].tool, given[i].name);
            return FALSE;
        }
    return TRUE;
}

/* Becomes the tool. */
static gboolean run(HnContext *ctx, GError **error)
{
    const ReplayParams *p = ctx->params;
    if (ctx->n_args != 2) {
        g_set_error_literal(error, HN_ERROR, HN_ERROR_USAGE,
                            "two models are wanted: the one that was made, and the one that it was made of");
        return FALSE;
    }
    g_autoptr(JsonObject) recipe = recipe_of(ctx, ctx->args[0], error);
    if (recipe == NULL || !hn_recipe_check_metric(recipe, ctx->args[0], p->metric, error))
        return FALSE;
    const int tool = tool_of(recipe);
    if (!fits(p, ctx->args[0], tool, error))
        return FALSE;
    g_autoptr(GPtrArray) args = g_ptr_array_new_with_free_func(g_free);
    add(args, "--replay", ctx->args[0]);
    add(args, "--calib", p->calib);
    add(args, "--plan", p->plan);
    add(args, "--ranges", p->ranges);
    add(args, "--metric", p->metric);
    add(args, "--data", p->data);
    add(args, "--val", p->val);
    add(args, "--teacher", p->teacher);
    add(args, "--output", p->output);
    for (char **input = p->input; input != NULL && *input != NULL; input++)
        add(args, "--input", *input);
    add_data_options(args, &p->from);
    add_common(args, &ctx->common);
    g_ptr_array_add(args, g_strdup("--"));
    g_ptr_array_add(args, g_strdup(ctx->args[1]));
    hn_program_become(tools[tool].tool, args, error);
    return FALSE;
}

static const char *const usual[] = { "calib", "data", "threads", "json", "verbose", "help", "help-all", NULL };

static const HnTool replay = {
    .name = "hone-replay",
    .summary = "make a model again as its recipe says, and compare",
    .usage = "[OPTIONS] MADE ORIGINAL",
    .usual = usual,
    .examples = "hone-replay int8.onnx model.onnx --calib samples/\n"
                "hone-replay small.onnx model.onnx",
    .details =
        "MADE has a recipe in its metadata, as hone-quantize, hone-prune, hone-distill and hone-export leave one. What "
        "went in is "
        "compared first, then what comes out, byte by byte. A recipe names neither programs nor files: those of the "
        "command line are taken.\n\n"
        "Exit status: 0 the same; 1 bad model or data; 2 usage; 3 something else went in, or comes out; 4 there is no "
        "recipe that can be repeated, or it needs '--metric'; 130 interrupted.",
    .options = entries,
    .params_size = sizeof(ReplayParams),
    .run = run,
};

int main(int argc, char **argv)
{
    return hn_tool_main(argc, argv, &replay);
}
