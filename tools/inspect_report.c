/* hone-inspect: what a model is, as JSON, tables and lines. */
#include <math.h>
#include <string.h>

#include "base/jsonread.h"
#include "base/text.h"
#include "check/recipe.h"
#include "data/interface.h"
#include "hone_inspect.h"

#define RECIPE_BYTES ((gsize)1 << 20)

static const HnColumn input_columns[] = {
    { "name", "input", HN_COL_TEXT }, { "type", "type", HN_COL_TEXT }, { "seems", "seems to be", HN_COL_TEXT }, { 0 }
};
static const HnColumn output_columns[] = {
    { "name", "output", HN_COL_TEXT }, { "type", "type", HN_COL_TEXT }, { "seems", "seems to be", HN_COL_TEXT }, { 0 }
};
static const HnColumn operator_columns[] = { { "name", "operator", HN_COL_TEXT },
                                             { "nodes", "nodes", HN_COL_INT },
                                             { "inner", "in sub-graphs", HN_COL_INT | HN_COL_MINOR },
                                             { "support", "runs by", HN_COL_TEXT },
                                             { 0 } };
static const HnColumn flat_columns[] = {
    { "name", "operator", HN_COL_TEXT }, { "nodes", "nodes", HN_COL_INT }, { "support", "runs by", HN_COL_TEXT }, { 0 }
};
static const HnColumn unknown_columns[] = {
    { "name", "cannot run", HN_COL_TEXT }, { "nodes", "nodes", HN_COL_INT }, { "reason", "why", HN_COL_PROSE }, { 0 }
};
static const HnColumn type_columns[] = {
    { "type", "weights", HN_COL_TEXT }, { "tensors", "tensors", HN_COL_INT }, { "elements", "elements", HN_COL_NUMBER },
    { "bytes", "bytes", HN_COL_BYTES }, { "share", "share", HN_COL_PERCENT }, { 0 }
};
static const HnColumn file_columns[] = { { "location", "file of weights", HN_COL_TEXT },
                                         { "tensors", "tensors", HN_COL_INT },
                                         { "bytes", "used", HN_COL_BYTES },
                                         { "file_bytes", "file", HN_COL_BYTES },
                                         { 0 } };

/* --- inputs and outputs ------------------------------------------------------------------------------------------ */

static JsonArray *dims_json(const HnType *t)
{
    JsonArray *dims = json_array_new();
    for (int i = 0; i < t->rank; i++) {
        g_autoptr(GString) text = g_string_new(NULL);
        hn_dim_print(t->dims[i], text);
        if (t->dims[i].known)
            json_array_add_int_element(dims, t->dims[i].n);
        else if (t->dims[i].sym != NULL)
            json_array_add_string_element(dims, text->str);
        else
            json_array_add_null_element(dims);
    }
    return dims;
}

static void set_count(JsonObject *o, const char *name, int64_t n)
{
    hn_json_set_count(o, name, n > 0 ? n : -1);
}

JsonObject *inspect_value(const HnModel *m, const HnValue *v)
{
    JsonObject *o = json_object_new();
    HnSeems s;
    hn_seems(m, v, &s);
    g_autofree char *type = hn_type_describe(v->type), *seems = hn_seems_text(&s);
    json_object_set_string_member(o, "name", v->name);
    json_object_set_string_member(o, "type", type);
    if (hn_type_is_tensor(v->type))
        json_object_set_string_member(o, "dtype", hn_dtype_name(v->type->dtype));
    else
        json_object_set_null_member(o, "dtype");
    if (hn_type_rank(v->type) >= 0)
        json_object_set_array_member(o, "dims", dims_json(v->type));
    else
        json_object_set_null_member(o, "dims");
    json_object_set_string_member(o, "role", hn_role_name(s.role));
    json_object_set_string_member(o, "layout", s.layout);
    set_count(o, "channels", s.channels);
    set_count(o, "entries", s.entries);
    json_object_set_string_member(o, "partner", s.partner != NULL ? s.partner->name : NULL);
    json_object_set_string_member(o, "seems", seems);
    return o;
}

/* fed: those that are no weights. */
static JsonArray *values_json(const HnModel *m, const GPtrArray *values, gboolean fed)
{
    JsonArray *list = json_array_new();
    for (guint i = 0; i < values->len; i++)
        if (!fed || !hn_value_is_weight(values->pdata[i]))
            json_array_add_object_element(list, inspect_value(m, values->pdata[i]));
    return list;
}

/* --- where it is from -------------------------------------------------------------------------------------------- */

static void set_text(JsonObject *o, const char *name, const char *text)
{
    json_object_set_string_member(o, name, text != NULL && *text != '\0' ? text : NULL);
}

static JsonArray *opsets_json(const HnModel *m)
{
    JsonArray *list = json_array_new();
    for (guint i = 0; i < m->opsets->len; i++) {
        const HnOpset *s = &g_array_index(m->opsets, HnOpset, i);
        JsonObject *o = json_object_new();
        json_object_set_string_member(o, "domain", hn_domain_equal(s->domain, NULL) ? "" : s->domain);
        json_object_set_int_member(o, "version", s->version);
        json_array_add_object_element(list, o);
    }
    return list;
}

/* Entries of its metadata but the recipe, which is JSON. */
static JsonObject *metadata_json(const HnModel *m)
{
    JsonObject *o = json_object_new();
    for (guint i = 0; m->metadata != NULL && i + 1 < m->metadata->len; i += 2)
        if (strcmp(m->metadata->pdata[i], HN_RECIPE) != 0)
            json_object_set_string_member(o, m->metadata->pdata[i], m->metadata->pdata[i + 1]);
    return o;
}

static void add_recipe(Inspect *x, JsonObject *root)
{
    const char *text = hn_model_metadata(x->subject->model, HN_RECIPE);
    g_autoptr(JsonNode) recipe =
        text != NULL ? hn_json_read(text, strlen(text), RECIPE_BYTES, x->ctx->budget, NULL) : NULL;
    JsonObject *o = hn_json_object(recipe);
    if (o == NULL) {
        json_object_set_null_member(root, "recipe");
        return;
    }
    json_object_set_object_member(root, "recipe", json_object_ref(o));
}

static void add_origin(Inspect *x, JsonObject *root)
{
    const HnModel *m = x->subject->model;
    JsonObject *producer = json_object_new();
    json_object_set_string_member(root, "model", x->subject->path);
    json_object_set_int_member(root, "file_bytes", (gint64)m->file_bytes);
    json_object_set_int_member(root, "ir_version", m->ir_version);
    set_text(producer, "name", m->producer_name);
    set_text(producer, "version", m->producer_version);
    json_object_set_object_member(root, "producer", producer);
    set_text(root, "domain", m->domain);
    json_object_set_int_member(root, "model_version", m->model_version);
    set_text(root, "doc", m->doc);
    set_text(root, "graph", m->graph->name);
    json_object_set_array_member(root, "opsets", opsets_json(m));
    json_object_set_object_member(root, "metadata", metadata_json(m));
    add_recipe(x, root);
}

/* --- what it consists of ------------------------------------------------------------------------------------------ */

static const char *support_name(HnSupport support)
{
    static const char *const names[] = { "kernel", "reference", "refused", "unknown" };
    return names[support];
}

static JsonArray *operators_json(const GPtrArray *ops)
{
    JsonArray *list = json_array_new();
    for (guint i = 0; i < ops->len; i++) {
        const HnOverviewOp *op = ops->pdata[i];
        JsonObject *o = json_object_new();
        json_object_set_string_member(o, "name", op->name);
        json_object_set_int_member(o, "nodes", op->nodes);
        json_object_set_int_member(o, "inner", op->inner);
        json_object_set_string_member(o, "support", support_name(op->support));
        json_object_set_string_member(o, "reason",
                                      op->support == HN_SUPPORT_UNKNOWN ? "the operator is not known" : op->reason);
        json_array_add_object_element(list, o);
    }
    return list;
}

static JsonArray *types_json(const HnOverview *v)
{
    JsonArray *list = json_array_new();
    for (guint i = 0; i < v->types->len; i++) {
        const HnOverviewType *t = v->types->pdata[i];
        JsonObject *o = json_object_new();
        json_object_set_string_member(o, "type", hn_dtype_name(t->dtype));
        json_object_set_int_member(o, "tensors", t->tensors);
        json_object_set_int_member(o, "elements", (gint64)t->elements);
        json_object_set_int_member(o, "bytes", (gint64)t->bytes);
        hn_json_set_number(o, "share", v->weight_bytes > 0 ? (double)t->bytes / (double)v->weight_bytes : NAN);
        json_array_add_object_element(list, o);
    }
    return list;
}

static JsonArray *files_json(const HnOverview *v)
{
    JsonArray *list = json_array_new();
    for (guint i = 0; i < v->files->len; i++) {
        const HnOverviewFile *f = v->files->pdata[i];
        JsonObject *o = json_object_new();
        json_object_set_string_member(o, "location", f->location);
        json_object_set_int_member(o, "tensors", f->tensors);
        json_object_set_int_member(o, "bytes", (gint64)f->bytes);
        if (f->file_bytes >= 0)
            json_object_set_int_member(o, "file_bytes", f->file_bytes);
        else
            json_object_set_null_member(o, "file_bytes");
        json_array_add_object_element(list, o);
    }
    return list;
}

static void add_counts(const HnOverview *v, JsonObject *root)
{
    JsonObject *nodes = json_object_new(), *quantized = json_object_new(), *weights = json_object_new();
    json_object_set_int_member(nodes, "main", v->nodes);
    json_object_set_int_member(nodes, "inner", v->inner);
    json_object_set_int_member(nodes, "functions", v->in_bodies);
    json_object_set_object_member(root, "node_counts", nodes);
    json_object_set_int_member(root, "subgraphs", v->graphs);
    json_object_set_int_member(root, "functions", v->functions);
    json_object_set_array_member(root, "operators", operators_json(v->operators));
    json_object_set_array_member(root, "cannot_run", operators_json(v->unknown));
    json_object_set_array_member(root, "no_kernel", operators_json(v->slow));
    json_object_set_string_member(root, "not_inlined", v->not_inlined);
    json_object_set_int_member(root, "parameters", (gint64)v->parameters);
    json_object_set_int_member(weights, "tensors", v->tensors);
    json_object_set_int_member(weights, "bytes", (gint64)v->weight_bytes);
    json_object_set_int_member(weights, "sparse", v->sparse);
    json_object_set_array_member(weights, "types", types_json(v));
    json_object_set_array_member(weights, "files", files_json(v));
    json_object_set_object_member(root, "weights", weights);
    JsonObject *held = json_object_new();
    for (guint i = 0; i < v->held->len; i++)
        json_object_set_int_member(held, ((const HnHeld *)v->held->pdata[i])->name,
                                   ((const HnHeld *)v->held->pdata[i])->n);
    json_object_set_object_member(root, "held", held);
    json_object_set_string_member(quantized, "kind", hn_quantized_name(v->quantized));
    json_object_set_int_member(quantized, "quantize_nodes", v->quantize_nodes);
    json_object_set_int_member(quantized, "dequantize_nodes", v->dequantize_nodes);
    json_object_set_int_member(quantized, "integer_nodes", v->integer_nodes);
    json_object_set_int_member(quantized, "tensors", v->quantized_tensors);
    json_object_set_int_member(quantized, "elements", (gint64)v->quantized_elements);
    json_object_set_object_member(root, "quantized", quantized);
}

/* Sizes of inputs that flops are counted at. */
static JsonObject *sizes_json(const Inspect *x)
{
    JsonObject *o = json_object_new();
    const GPtrArray *inputs = x->subject->model->graph->inputs;
    for (guint i = 0; i < inputs->len; i++) {
        const HnValue *v = inputs->pdata[i];
        int64_t dims[HN_MAX_RANK];
        const int rank = hn_value_is_weight(v) ? -1 : hn_shapes_dims(x->shapes, v, dims, NULL);
        if (rank < 0)
            continue;
        JsonArray *list = json_array_new();
        for (int d = 0; d < rank; d++)
            json_array_add_int_element(list, dims[d]);
        json_object_set_array_member(o, v->name, list);
    }
    return o;
}

static void add_flops(const Inspect *x, JsonObject *root)
{
    const HnOverview *v = x->subject->overview;
    JsonObject *o = json_object_new();
    hn_json_set_number(o, "total", v->flops);
    json_object_set_int_member(o, "unknown_nodes", v->flops_left);
    json_object_set_object_member(o, "shapes", sizes_json(x));
    json_object_set_object_member(root, "flops", o);
}

/* --- lines ------------------------------------------------------------------------------------------------------- */

static void tell_head(const Inspect *x)
{
    const HnModel *m = x->subject->model;
    const HnOverview *v = x->subject->overview;
    g_autofree char *size = hn_text_size(m->file_bytes), *parameters = hn_text_number((double)v->parameters);
    g_autoptr(GString) line = g_string_new(NULL);
    hn_report_line(x->report, "%s: %s, %u node%s, %s parameter%s", inspect_name(x->subject), size, v->nodes + v->inner,
                   v->nodes + v->inner == 1 ? "" : "s", parameters, v->parameters == 1 ? "" : "s");
    for (guint i = 0; i < m->opsets->len; i++) {
        const HnOpset *s = &g_array_index(m->opsets, HnOpset, i);
        const gboolean plain = hn_domain_equal(s->domain, NULL);
        g_string_append_printf(line, "%s%s%s%" PRId64, i > 0 ? ", " : "opset ", plain ? "" : s->domain,
                               plain ? "" : " ", s->version);
    }
    g_string_append_printf(line, "%sIR version %" PRId64, line->len > 0 ? ", " : "", m->ir_version);
    if (m->producer_name != NULL && *m->producer_name != '\0')
        g_string_append_printf(line, ", made by %s %s", m->producer_name,
                               m->producer_version != NULL ? m->producer_version : "");
    hn_report_line(x->report, "%s", g_strchomp(line->str));
    if (v->graphs > 0)
        hn_report_line(x->report, "%u of the nodes are in %u sub-graph%s", v->inner, v->graphs,
                       v->graphs == 1 ? "" : "s");
    if (v->functions > 0)
        hn_report_line(x->report, "%u function%s of its own, of %u nodes", v->functions, v->functions == 1 ? "" : "s",
                       v->in_bodies);
}

/* "x:1x3x224x224,ids:1x7" */
static char *sizes_text(const Inspect *x)
{
    GString *s = g_string_new(NULL);
    const GPtrArray *inputs = x->subject->model->graph->inputs;
    for (guint i = 0; i < inputs->len && s->len < 200; i++) {
        const HnValue *v = inputs->pdata[i];
        int64_t dims[HN_MAX_RANK];
        const int rank = hn_value_is_weight(v) ? -1 : hn_shapes_dims(x->shapes, v, dims, NULL);
        if (rank <= 0)
            continue;
        g_string_append_printf(s, "%s%s:", s->len > 0 ? "," : "", v->name);
        for (int d = 0; d < rank; d++)
            g_string_append_printf(s, "%s%" PRId64, d > 0 ? "x" : "", dims[d]);
    }
    return g_string_free(s, FALSE);
}

static void tell_flops(const Inspect *x)
{
    const HnOverview *v = x->subject->overview;
    g_autofree char *flops = hn_text_number(v->flops), *sizes = sizes_text(x);
    if (isnan(v->flops))
        hn_report_line(x->report, "flops: not known at %s; '--shapes' may tell more", sizes);
    else if (v->flops_left > 0)
        hn_report_line(x->report, "flops: %s a run at %s, without %u nodes whose shapes are not known", flops, sizes,
                       v->flops_left);
    else
        hn_report_line(x->report, "flops: %s a run at %s", flops, sizes);
}

static void tell_quantized(const Inspect *x)
{
    const HnOverview *v = x->subject->overview;
    g_autofree char *elements = hn_text_number((double)v->quantized_elements);
    if (v->quantized == HN_QUANTIZED_NO)
        hn_report_line(x->report, "quantized: no");
    else
        hn_report_line(x->report,
                       "quantized: %s; %s elements of %u weights; %u nodes to integers, %u back, %u on integers",
                       hn_quantized_name(v->quantized), elements, v->quantized_tensors, v->quantize_nodes,
                       v->dequantize_nodes, v->integer_nodes);
    for (guint i = 0; i < v->held->len; i++) {
        const HnHeld *h = v->held->pdata[i];
        hn_report_line(x->report, "%s: %" PRId64, h->name, h->n);
    }
    if (v->sparse > 0)
        hn_report_line(x->report, "sparse: %u weights are stored as sparse tensors", v->sparse);
    else if (!x->p->weights)
        hn_report_line(x->report, "sparse: none is stored so; '--weights' counts zeros");
}

static void tell_support(const Inspect *x)
{
    const HnOverview *v = x->subject->overview;
    g_autoptr(GString) slow = g_string_new(NULL);
    for (guint i = 0; i < v->slow->len; i++) {
        const HnOverviewOp *op = v->slow->pdata[i];
        g_string_append_printf(slow, "%s%s (%u)", i > 0 ? ", " : "", op->name, op->nodes);
    }
    if (v->not_inlined != NULL)
        hn_report_line(x->report, "functions cannot be inlined: %s", v->not_inlined);
    if (v->unknown->len == 0)
        hn_report_line(x->report, "support: every operator is known%s%s",
                       slow->len > 0 ? "; without a kernel of its own: " : ", and has a kernel or needs none",
                       slow->str);
    else if (slow->len > 0)
        hn_report_line(x->report, "without a kernel of its own: %s", slow->str);
}

static void tell_recipe(const Inspect *x, JsonObject *root)
{
    JsonObject *recipe = hn_json_object_at(root, "recipe");
    const HnModel *m = x->subject->model;
    const char *checked = hn_model_metadata(m, HN_CHECKED);
    if (recipe != NULL) {
        const char *tool = hn_json_string_at(recipe, "tool"), *version = hn_json_string_at(recipe, "hone");
        JsonObject *options = hn_json_object_at(recipe, "options");
        g_autofree char *text = options != NULL ? hn_json_line(options) : NULL;
        hn_report_line(x->report, "recipe: %s %s %s", tool != NULL ? tool : "unknown", version != NULL ? version : "",
                       text != NULL ? text : "");
    }
    if (checked != NULL)
        hn_report_line(x->report, "checked: %s", checked);
    if (hn_model_is_speed_only(m))
        hn_report_line(x->report, "made without data, to measure speed with: its results mean nothing");
}

/* A table of as many rows as --top says, and a line that tells how many are left out. */
static void table(const Inspect *x, const char *path, const HnColumn *columns, guint n, const char *what)
{
    const guint shown = inspect_rows(x, n);
    if (n == 0)
        return;
    hn_report_line(x->report, "%s", "");
    hn_report_top_table(x->report, path, columns, (guint)x->p->top);
    if (shown < n)
        hn_report_line(x->report, "and %u more %s ('--top 0' shows all)", n - shown, what);
}

static guint length_at(JsonObject *root, const char *name)
{
    JsonArray *list = hn_json_array_at(root, name);
    return list != NULL ? json_array_get_length(list) : 0;
}

static void tell(Inspect *x, JsonObject *root)
{
    const HnOverview *v = x->subject->overview;
    tell_head(x);
    table(x, "inputs", input_columns, length_at(root, "inputs"), "inputs");
    table(x, "outputs", output_columns, length_at(root, "outputs"), "outputs");
    table(x, "operators", v->graphs + v->functions > 0 ? operator_columns : flat_columns, v->operators->len,
          "operators");
    if (v->unknown->len > 0) {
        hn_report_line(x->report, "%s", "");
        hn_report_table(x->report, "cannot_run", unknown_columns);
    }
    table(x, "weights.types", type_columns, v->types->len, "types");
    table(x, "weights.files", file_columns, v->files->len, "files");
    hn_report_line(x->report, "%s", "");
    tell_flops(x);
    tell_quantized(x);
    tell_support(x);
    tell_recipe(x, root);
}

gboolean inspect_report(Inspect *x, GError **error)
{
    Subject *s = x->subject;
    x->report = hn_report_new(x->ctx, "hone.inspect/1", &(HnReportEnv){ .onednn = NULL });
    JsonObject *root = hn_report_root(x->report);
    add_origin(x, root);
    json_object_set_array_member(root, "inputs", values_json(s->model, s->model->graph->inputs, TRUE));
    json_object_set_array_member(root, "outputs", values_json(s->model, s->model->graph->outputs, FALSE));
    if (x->p->nodes)
        inspect_add_nodes(x);
    if (x->p->tensor != NULL && !inspect_add_tensor(x, error))
        return FALSE;
    s->overview = hn_overview_new(s->model, x->shapes, x->backend, x->ctx->budget);
    if (hn_progress_stop(&x->ctx->progress, error) || !hn_budget_ask(x->ctx->budget, error))
        return FALSE;
    add_counts(s->overview, root);
    add_flops(x, root);
    if (x->p->weights)
        inspect_add_weights(x);
    if (!x->p->nodes && !x->p->weights && x->p->tensor == NULL)
        tell(x, root);
    return hn_report_write(x->report, error);
}
