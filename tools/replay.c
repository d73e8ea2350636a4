/* hone-replay: a model made again as the recipe in its metadata says. */
#include <string.h>

#include "base/jsonread.h"
#include "check/recipe.h"
#include "cli/program.h"
#include "common.h"

typedef struct {
    char *output, *calib, *plan, *ranges;
} ReplayParams;

static const GOptionEntry entries[] = {
    { "output", 'o', 0, G_OPTION_ARG_FILENAME, HN_FIELD(ReplayParams, output),
      "write the model to PATH as well, '-' is stdout", "PATH" },
    { "calib", 0, 0, G_OPTION_ARG_FILENAME, HN_FIELD(ReplayParams, calib), "the samples that MADE was made with",
      "SRC" },
    { "plan", 0, 0, G_OPTION_ARG_FILENAME, HN_FIELD(ReplayParams, plan), "the plan that MADE was made with", "FILE" },
    { "ranges", 0, 0, G_OPTION_ARG_FILENAME, HN_FIELD(ReplayParams, ranges), "the ranges that MADE was made with",
      "FILE" },
    G_OPTION_ENTRY_NULL,
};

/* The name of the tool that made the model: g_free. */
static char *tool_of(HnContext *ctx, const char *path, GError **error)
{
    ctx->common.verify_data = TRUE; /* a model is made of it */
    g_autoptr(HnModel) m = hn_tool_read_model(ctx, path, error);
    g_autoptr(JsonParser) parser = json_parser_new();
    const char *recipe = m != NULL ? hn_model_metadata(m, HN_RECIPE) : NULL;
    JsonNode *root =
        recipe != NULL && json_parser_load_from_data(parser, recipe, -1, NULL) ? json_parser_get_root(parser) : NULL;
    const char *tool = hn_json_string_at(hn_json_object(root), "tool");
    if (m == NULL)
        return NULL;
    if (g_strcmp0(tool, "hone-quantize") == 0)
        return g_strdup(tool);
    g_set_error(error, HN_ERROR, HN_ERROR_UNSUPPORTED, "'%s' has no recipe of a tool that can repeat it", path);
    return NULL;
}

static void add(GPtrArray *args, const char *option, const char *value)
{
    if (value == NULL)
        return;
    g_ptr_array_add(args, g_strdup(option));
    g_ptr_array_add(args, g_strdup(value));
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
    g_autofree char *tool = tool_of(ctx, ctx->args[0], error);
    if (tool == NULL)
        return FALSE;
    g_autoptr(GPtrArray) args = g_ptr_array_new_with_free_func(g_free);
    g_autofree char *threads = g_strdup_printf("%d", ctx->common.threads);
    add(args, "--replay", ctx->args[0]);
    add(args, "--calib", p->calib);
    add(args, "--plan", p->plan);
    add(args, "--ranges", p->ranges);
    add(args, "--output", p->output);
    add(args, "--threads", threads);
    add(args, "--", ctx->args[1]);
    hn_program_become(tool, args, error);
    return FALSE;
}

static const HnTool tool = {
    .name = "hone-replay",
    .summary = "make a model again as its recipe says, and compare",
    .usage = "[OPTIONS] MADE ORIGINAL --calib SRC",
    .details =
        "MADE has a recipe in its metadata, as hone-quantize leaves one. What went in is compared first, then what "
        "comes "
        "out, byte by byte.\n\n"
        "Exit status: 0 the same; 1 bad model or data; 2 usage; 3 something else went in, or comes out; 4 there is no "
        "recipe that can be repeated; 130 interrupted.",
    .options = entries,
    .params_size = sizeof(ReplayParams),
    .run = run,
};

int main(int argc, char **argv)
{
    return hn_tool_main(argc, argv, &tool);
}
