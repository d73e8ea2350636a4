/* hone-inspect: nodes and weights, one by one. */
#include <math.h>

#include "base/jsonread.h"
#include "base/text.h"
#include "check/flops.h"
#include "hone_inspect.h"
#include "weight_json.h"

#define MANY_ZEROS 0.5 /* part of a weight's elements, to be counted as sparse */

/* --- nodes ------------------------------------------------------------------------------------------------------- */

static const HnColumn node_columns[] = { { "index", "#", HN_COL_INT },
                                         { "op", "operator", HN_COL_TEXT },
                                         { "name", "node", HN_COL_TEXT },
                                         { "takes", "inputs", HN_COL_TEXT },
                                         { "makes", "outputs", HN_COL_TEXT },
                                         { "flops", "flops", HN_COL_NUMBER },
                                         { 0 } };
static const HnColumn node_csv[] = { { "index", "index", HN_COL_INT },
                                     { "op", "op", HN_COL_TEXT },
                                     { "name", "name", HN_COL_TEXT },
                                     { "inside", "inside", HN_COL_TEXT },
                                     { "takes", "takes", HN_COL_TEXT },
                                     { "makes", "makes", HN_COL_TEXT },
                                     { "flops", "flops", HN_COL_NUMBER },
                                     { "weight_bytes", "bytes", HN_COL_BYTES },
                                     { 0 } };

typedef struct {
    const HnTypes *types;
    JsonArray *rows;
} Nodes;

static HnType *type_of(const Nodes *l, const HnValue *v)
{
    HnType *t = hn_types_get(l->types, v);
    return t != NULL ? t : v->type;
}

/* Names and types of a node's ends into o; *bytes of the weights among them, where it is not NULL. */
static void add_ends(const Nodes *l, const HnPtrs *ends, JsonObject *o, const char *names, const char *types,
                     const char *text, guint64 *bytes)
{
    JsonArray *name_list = json_array_new(), *type_list = json_array_new();
    g_autoptr(GString) line = g_string_new(NULL);
    for (guint i = 0; i < ends->len; i++) {
        const HnValue *v = ends->pdata[i];
        if (v == NULL) {
            json_array_add_null_element(name_list);
            json_array_add_null_element(type_list);
            continue;
        }
        g_autofree char *type = hn_type_describe(type_of(l, v));
        gsize size = 0;
        json_array_add_string_element(name_list, v->name);
        json_array_add_string_element(type_list, type);
        g_string_append_printf(line, "%s%s", line->len > 0 ? " " : "", type);
        if (bytes != NULL && v->weight != NULL && hn_dtype_bytes(v->weight->dtype, v->weight->n, &size))
            *bytes += size;
    }
    json_object_set_array_member(o, names, name_list);
    json_object_set_array_member(o, types, type_list);
    json_object_set_string_member(o, text, line->str);
}

static void add_node(HnNode *n, gpointer data)
{
    Nodes *l = data;
    JsonObject *o = json_object_new();
    g_autofree char *op = hn_operator_name(n);
    guint64 bytes = 0;
    double flops;
    json_object_set_int_member(o, "index", json_array_get_length(l->rows));
    json_object_set_string_member(o, "name", hn_node_label(n));
    json_object_set_string_member(o, "op", op);
    json_object_set_string_member(o, "inside", n->graph->holder != NULL ? hn_node_label(n->graph->holder) : NULL);
    add_ends(l, n->in, o, "inputs", "input_types", "takes", &bytes);
    add_ends(l, n->out, o, "outputs", "output_types", "makes", NULL);
    hn_json_set_number(o, "flops", hn_flops_node(l->types, n, &flops) ? flops : NAN);
    json_object_set_int_member(o, "weight_bytes", (gint64)bytes);
    json_array_add_object_element(l->rows, o);
}

void inspect_add_nodes(Inspect *x)
{
    HnModel *m = x->subject->model;
    g_autoptr(HnTypes) types = hn_flops_types(m, x->shapes, x->ctx->budget);
    Nodes l = { types, json_array_new() };
    hn_graph_foreach_node(m->graph, add_node, &l);
    json_object_set_array_member(hn_report_root(x->report), "nodes", l.rows);
    hn_report_table(x->report, "nodes", node_columns);
    hn_report_csv_table(x->report, "nodes", node_csv);
}

/* --- weights ----------------------------------------------------------------------------------------------------- */

static const HnColumn weight_columns[] = { { "name", "weight", HN_COL_TEXT },
                                           { "type", "type", HN_COL_TEXT },
                                           { "bytes", "bytes", HN_COL_BYTES },
                                           { "zeros", "zeros", HN_COL_PERCENT },
                                           { "min", "min", HN_COL_NUMBER },
                                           { "max", "max", HN_COL_NUMBER },
                                           { "stddev", "stddev", HN_COL_NUMBER },
                                           { "dead", "dead", HN_COL_INT | HN_COL_MINOR },
                                           { "node", "read by", HN_COL_TEXT | HN_COL_MINOR },
                                           { 0 } };

static int larger_first(gconstpointer a, gconstpointer b)
{
    const HnWeightReport *x = a, *y = b;
    if (x->tensor->bytes != y->tensor->bytes)
        return x->tensor->bytes < y->tensor->bytes ? 1 : -1;
    return x->value->id < y->value->id ? -1 : x->value->id > y->value->id;
}

void inspect_add_weights(Inspect *x)
{
    g_autoptr(GArray) all = hn_weights_report(x->subject->model->graph);
    JsonArray *rows = json_array_new();
    double zeros = 0, elements = 0;
    guint sparse = 0;
    g_array_sort(all, larger_first);
    for (guint i = 0; i < all->len; i++) {
        const HnWeightReport *w = &g_array_index(all, HnWeightReport, i);
        json_array_add_object_element(rows, hn_tool_weight_json(w));
        zeros += w->tensor->n > 0 ? w->zeros * (double)w->tensor->n : 0;
        elements += (double)w->tensor->n;
        sparse += w->tensor->ndim > 1 && w->zeros >= MANY_ZEROS;
    }
    json_object_set_array_member(hn_report_root(x->report), "weight_list", rows);
    g_autofree char *part = hn_text_percent(elements > 0 ? zeros / elements : 0);
    hn_report_table(x->report, "weight_list", weight_columns);
    hn_report_line(x->report, "zeros: %s of all elements; %u weights of several axes have half of theirs or more", part,
                   sparse);
}
