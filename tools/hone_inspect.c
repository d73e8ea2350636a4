/* hone-inspect: what a model is, without running it. */
#include "hone_inspect.h"

#include <string.h>

#include "backends.h"

#define TOP 12 /* rows of a table, unless said otherwise */

static const InspectParams defaults = { .top = TOP };

static const GOptionEntry entries[] = {
    { "nodes", 0, 0, G_OPTION_ARG_NONE, HN_FIELD(InspectParams, nodes),
      "list the nodes, with the types of their inputs and outputs, and flops", NULL },
    { "weights", 0, 0, G_OPTION_ARG_NONE, HN_FIELD(InspectParams, weights),
      "list the weights, with zeros, range and channels that do nothing; reads them all", NULL },
    { "tensor", 0, 0, G_OPTION_ARG_STRING, HN_FIELD(InspectParams, tensor),
      "show one tensor: values, statistics and a histogram of a weight; who makes and reads any other", "NAME" },
    { "compare", 0, 0, G_OPTION_ARG_NONE, HN_FIELD(InspectParams, compare),
      "tell in what two models differ: interface, operators, weights, bytes", NULL },
    { "dim", 0, 0, G_OPTION_ARG_STRING_ARRAY, HN_FIELD(InspectParams, dim),
      "a dimension for flops and shapes, such as batch=8 (default: 1)", "NAME=N" },
    { "shapes", 0, 0, G_OPTION_ARG_STRING_ARRAY, HN_FIELD(InspectParams, shapes),
      "shapes of inputs for flops and shapes, such as x:1x3x224x224", "LIST" },
    { "dot", 0, 0, G_OPTION_ARG_FILENAME, HN_FIELD(InspectParams, dot), "write the graph for graphviz", "FILE" },
    { "svg", 0, 0, G_OPTION_ARG_FILENAME, HN_FIELD(InspectParams, svg), "draw the graph, with graphviz's dot", "FILE" },
    { "profile", 0, 0, G_OPTION_ARG_FILENAME, HN_FIELD(InspectParams, profile),
      "colour the graph by time, out of a report of hone-profile --json", "FILE" },
    { "diff", 0, 0, G_OPTION_ARG_FILENAME, HN_FIELD(InspectParams, diff),
      "colour the graph by error, out of a report of hone-diff --per-layer --json", "FILE" },
    { "top", 0, 0, G_OPTION_ARG_INT, HN_FIELD(InspectParams, top), "rows of a table at most; 0: all (default: 12)",
      "N" },
    G_OPTION_ENTRY_NULL,
};

const char *inspect_name(const Subject *s)
{
    return strcmp(s->path, "-") != 0 ? s->path : "stdin";
}

guint inspect_rows(const Inspect *x, guint n)
{
    return x->p->top > 0 ? MIN(n, (guint)x->p->top) : n;
}

/* --- options ----------------------------------------------------------------------------------------------------- */

static gboolean check_compare(const Inspect *x, GError **error)
{
    const InspectParams *p = x->p;
    if (x->ctx->n_args != 2)
        return hn_tool_usage(error, "option '--compare' takes two models");
    if (p->nodes || p->tensor != NULL || p->dot != NULL || p->svg != NULL)
        return hn_tool_usage(error, "option '--compare' excludes '--nodes', '--tensor', '--dot' and '--svg'");
    if (!strcmp(x->ctx->args[0], "-") && !strcmp(x->ctx->args[1], "-"))
        return hn_tool_usage(error, "only one model can come from stdin, and be read once");
    return TRUE;
}

static gboolean check_options(Inspect *x, GError **error)
{
    HnContext *ctx = x->ctx;
    if (x->p->top < 0)
        return hn_tool_usage(error, "option '--top' needs a number from 0 on");
    if (x->p->compare ? !check_compare(x, error) : hn_tool_one_model(ctx, error) == NULL)
        return FALSE;
    for (int i = 0; i < ctx->n_args; i++)
        x->subject[i].path = ctx->args[i];
    if (!inspect_check_graph(x, error))
        return FALSE;
    x->backend = hn_tool_backend(ctx, error);
    if (x->backend != NULL && x->backend->kernels == NULL) /* which has none tells nothing */
        x->backend = hn_backend_find("cpu", error);
    x->shapes = x->backend != NULL ? hn_tool_shapes(x->p->dim, x->p->shapes, error) : NULL;
    return x->shapes != NULL;
}

/* --- reading ----------------------------------------------------------------------------------------------------- */

/* A model whose files of weights are not there can be looked at all the same. */
static gboolean read_without_weights(Inspect *x, Subject *s, GError **error)
{
    g_autoptr(GError) ignored = NULL;
    const HnOnnxOptions o = { .budget = x->ctx->budget, .keep_external = TRUE };
    if (!strcmp(s->path, "-") || g_error_matches(*error, HN_ERROR, HN_ERROR_BUDGET))
        return FALSE;
    s->model = hn_onnx_read_file(s->path, &o, &ignored);
    if (s->model == NULL)
        return FALSE;
    s->missing = g_strdup((*error)->message);
    g_clear_error(error);
    hn_context_warn(x->ctx, "%s", s->missing);
    return TRUE;
}

static gboolean read_model(Inspect *x, Subject *s, GError **error)
{
    GError *cause = NULL;
    s->model = hn_tool_read_model(x->ctx, s->path, &cause);
    if (s->model == NULL && !read_without_weights(x, s, &cause)) {
        g_propagate_error(error, cause);
        return FALSE;
    }
    g_autoptr(GPtrArray) inputs = g_ptr_array_new();
    for (guint i = 0; i < s->model->graph->inputs->len; i++)
        if (!hn_value_is_weight(s->model->graph->inputs->pdata[i]))
            g_ptr_array_add(inputs, s->model->graph->inputs->pdata[i]);
    return hn_shapes_check(x->shapes, (HnValue *const *)inputs->pdata, (int)inputs->len, error);
}

/* --- all of it --------------------------------------------------------------------------------------------------- */

static void inspect_clear(Inspect *x)
{
    for (int i = 0; i < 2; i++) {
        hn_overview_free(x->subject[i].overview);
        hn_model_free(x->subject[i].model);
        g_free(x->subject[i].missing);
    }
    hn_shapes_free(x->shapes);
    hn_report_free(x->report);
}

static gboolean work(Inspect *x, GError **error)
{
    if (!check_options(x, error))
        return FALSE;
    for (int i = 0; i < x->ctx->n_args; i++)
        if (!read_model(x, &x->subject[i], error))
            return FALSE;
    if (x->p->compare)
        return inspect_compare(x, error);
    return inspect_draw(x, error) && inspect_report(x, error);
}

static gboolean run(HnContext *ctx, GError **error)
{
    Inspect x = { .ctx = ctx, .p = ctx->params };
    const gboolean ok = work(&x, error);
    inspect_clear(&x);
    return ok;
}

static const char *const usual[] = { "nodes",   "weights", "tensor",  "compare", "dim",      "svg", "profile",
                                     "threads", "json",    "verbose", "help",    "help-all", NULL };

static const HnTool tool = {
    .name = "hone-inspect",
    .summary = "show what a model is: inputs, outputs, operators, weights, and what it was made by",
    .usage = "[OPTIONS] MODEL | --compare MODEL MODEL",
    .usual = usual,
    .examples = "hone-inspect model.onnx\n"
                "hone-inspect model.onnx --svg model.svg --profile times.json",
    .details = "Nothing is run, and weights are only read where --weights, --tensor or --compare ask for it, so that "
               "a model of gigabytes opens at once. What cannot run is told, and shown all the same.\n\n"
               "Exit status: 0 done; 1 bad model; 2 usage; 4 unsupported device; 6 a limit was reached; 130 "
               "interrupted.",
    .options = entries,
    .params_size = sizeof(InspectParams),
    .defaults = &defaults,
    .run = run,
};

int main(int argc, char **argv)
{
    return hn_tool_main(argc, argv, &tool);
}
