/* hone-inspect: the graph, for graphviz, coloured by what a profile or a comparison found out. */
#include <math.h>
#include <string.h>

#include "base/file.h"
#include "base/jsonread.h"
#include "base/text.h"
#include "check/flops.h"
#include "graphviz.h"
#include "hone_inspect.h"

#define LABEL 28     /* bytes of a name in a box */
#define TYPED 600    /* nodes up to which edges have types */
#define DB_FINE 60.0 /* SQNR from which on a tensor is white, */
#define DB_BAD 10.0  /* and up to which it is red */

typedef struct {
    const Inspect *x;
    const HnTypes *types;
    GHashTable *heat;  /* name of a node or of a value -> double *: 0 white, 1 red */
    GHashTable *words; /* the same -> char *: what it is due to */
    GHashTable *ids;   /* HnNode * -> GUINT_TO_POINTER(its number in the graph) */
    GString *out;
    guint nodes, clusters;
} Drawing;

gboolean inspect_check_graph(const Inspect *x, GError **error)
{
    const InspectParams *p = x->p;
    HnContext *ctx = x->ctx;
    if (p->profile != NULL && p->diff != NULL)
        return hn_tool_usage(error, "options '--profile' and '--diff' exclude each other");
    if ((p->profile != NULL || p->diff != NULL) && p->dot == NULL && p->svg == NULL)
        return hn_tool_usage(error, "'--profile' and '--diff' colour a graph: name its file with '--svg' or '--dot'");
    if (p->dot != NULL && hn_out_is_stdout(p->dot) && !hn_context_take_stdout(ctx, "the graph", error))
        return FALSE;
    if (p->svg != NULL && hn_out_is_stdout(p->svg) && !hn_context_take_stdout(ctx, "the picture", error))
        return FALSE;
    return p->svg == NULL || hn_dot_check(error);
}

/* --- colours ----------------------------------------------------------------------------------------------------- */

static void set_heat(Drawing *d, const char *name, double heat, char *words)
{
    double *old = g_hash_table_lookup(d->heat, name);
    if (old != NULL && *old >= heat) {
        g_free(words);
        return;
    }
    double *copy = g_new(double, 1);
    *copy = heat;
    g_hash_table_replace(d->heat, g_strdup(name), copy);
    g_hash_table_replace(d->words, g_strdup(name), words);
}

static JsonArray *read_rows(const Inspect *x, const char *path, const char *schema, const char *rows, JsonNode **file,
                            GError **error)
{
    *file = hn_json_read_file(path, HN_JSON_BYTES, x->ctx->budget, error);
    if (*file == NULL)
        return NULL;
    JsonObject *root = hn_json_object(*file);
    JsonArray *list = hn_json_array_at(root, rows);
    if (list == NULL || g_strcmp0(hn_json_string_at(root, "schema"), schema) != 0) {
        g_set_error(error, HN_ERROR, HN_ERROR_FORMAT, "'%s' is no report of the form %s", path, schema);
        return NULL;
    }
    return list;
}

/* Red is the node that takes longest. */
static gboolean heat_of_profile(Drawing *d, const char *path, GError **error)
{
    g_autoptr(JsonNode) file = NULL;
    JsonArray *rows = read_rows(d->x, path, "hone.profile/1", "nodes", &file, error);
    double most = 0, ms, share;
    for (guint i = 0; rows != NULL && i < json_array_get_length(rows); i++)
        if (hn_json_number_at(hn_json_object(json_array_get_element(rows, i)), "ms", &ms))
            most = fmax(most, ms);
    for (guint i = 0; rows != NULL && i < json_array_get_length(rows); i++) {
        JsonObject *o = hn_json_object(json_array_get_element(rows, i));
        const char *name = hn_json_string_at(o, "name");
        if (name == NULL || !hn_json_number_at(o, "ms", &ms) || !hn_json_number_at(o, "share", &share))
            continue;
        g_autofree char *time = hn_text_time(ms * 1e-3), *part = hn_text_percent(share);
        set_heat(d, name, most > 0 ? sqrt(ms / most) : 0, g_strdup_printf("%s, %s", time, part));
    }
    return rows != NULL;
}

/* Red is what has an SQNR of DB_BAD or less; of several reports of a node the worst. */
static gboolean heat_of_diff(Drawing *d, const char *path, GError **error)
{
    g_autoptr(JsonNode) file = NULL;
    JsonArray *rows = read_rows(d->x, path, "hone.diff/1", "tensors", &file, error);
    for (guint i = 0; rows != NULL && i < json_array_get_length(rows); i++) {
        JsonObject *o = hn_json_object(json_array_get_element(rows, i));
        JsonObject *e = hn_json_object_at(o, "accumulated");
        const char *a = hn_json_string_at(o, "name"), *b = hn_json_string_at(o, "name_b");
        double db = INFINITY;
        if (e == NULL || a == NULL || b == NULL)
            continue;
        (void)hn_json_number_at(e, "sqnr_db", &db);
        const double heat = CLAMP((DB_FINE - db) / (DB_FINE - DB_BAD), 0, 1);
        const char *names[] = { a, b };
        for (int k = 0; k < 2; k++)
            set_heat(d, names[k], heat, isinf(db) ? g_strdup("equal") : g_strdup_printf("%.3g dB", db));
    }
    return rows != NULL;
}

/* What is known of a node, by its name or by those of its results. */
static const char *heat_key(const Drawing *d, const HnNode *n)
{
    const char *key = hn_node_label(n);
    if (g_hash_table_contains(d->heat, key))
        return key;
    for (guint k = 0; k < n->out->len; k++) {
        const HnValue *v = n->out->pdata[k];
        if (v != NULL && g_hash_table_contains(d->heat, v->name))
            return v->name;
    }
    return NULL;
}

/* --- graph ------------------------------------------------------------------------------------------------------- */

static char *cut_text(const char *text)
{
    g_autofree char *cut = hn_text_cut(text, LABEL);
    return hn_dot_text(cut);
}

static char *type_text(const Drawing *d, const HnValue *v)
{
    HnType *t = hn_types_get(d->types, v);
    g_autofree char *type = hn_type_describe(t != NULL ? t : v->type);
    return hn_dot_text(type);
}

/* Parameters that a node reads. */
static int64_t weights_of(const HnNode *n)
{
    int64_t elements = 0;
    for (guint i = 0; i < n->in->len; i++) {
        const HnValue *v = n->in->pdata[i];
        elements += v != NULL && v->weight != NULL ? v->weight->n : 0;
    }
    return elements;
}

/* Nodes that only hold a constant are part of those that read it. */
static gboolean is_constant(const HnNode *n)
{
    const HnOp *op = hn_op_find(n->domain, n->op_type);
    const HnValue *v = n->out->len == 1 ? n->out->pdata[0] : NULL;
    return op != NULL && op->in[0] == '\0' && (op->flags & HN_OP_RANDOM) == 0 && v != NULL && v->is_output == 0;
}

static void put_node(Drawing *d, const HnNode *n)
{
    g_autofree char *op = cut_text(n->op_type), *name = cut_text(hn_node_label(n)),
                    *full = hn_dot_text(hn_node_label(n));
    const char *key = heat_key(d, n);
    const double heat = key != NULL ? *(double *)g_hash_table_lookup(d->heat, key) : 0;
    const int64_t weights = weights_of(n);
    g_hash_table_insert(d->ids, (gpointer)n, GUINT_TO_POINTER(++d->nodes));
    g_string_append_printf(d->out, "n%u [label=\"%s\\n%s", d->nodes, op, name);
    if (weights > 0) {
        g_autofree char *elements = hn_text_number((double)weights);
        g_string_append_printf(d->out, "\\n%s weights", elements);
    }
    if (key != NULL)
        g_string_append_printf(d->out, "\\n%s", (char *)g_hash_table_lookup(d->words, key));
    /* from white to red */
    g_string_append_printf(d->out, "\" tooltip=\"%s\" fillcolor=\"#ff%02x%02x\"", full, 255 - (int)lrint(heat * 175),
                           255 - (int)lrint(heat * 185));
    g_string_append(d->out, key == NULL && g_hash_table_size(d->heat) > 0 ? " color=gray fontcolor=gray];\n" : "];\n");
}

static guint id_of(const Drawing *d, const HnNode *n)
{
    return GPOINTER_TO_UINT(g_hash_table_lookup(d->ids, n));
}

static void put_edge(Drawing *d, const HnValue *v, const HnNode *to)
{
    if (v->producer != NULL && is_constant(v->producer))
        return;
    if (v->producer != NULL)
        g_string_append_printf(d->out, "n%u", id_of(d, v->producer));
    else
        g_string_append_printf(d->out, "v%u", v->id);
    g_string_append_printf(d->out, " -> n%u", id_of(d, to));
    if (d->nodes <= TYPED) {
        g_autofree char *type = type_text(d, v);
        g_string_append_printf(d->out, " [label=\"%s\"]", type);
    }
    g_string_append(d->out, ";\n");
}

static void put_end(Drawing *d, const HnValue *v, const char *prefix, const char *shape)
{
    g_autofree char *name = cut_text(v->name), *type = type_text(d, v);
    g_string_append_printf(d->out, "%s%u [label=\"%s\\n%s\" shape=%s fillcolor=\"#e8eef8\"];\n", prefix, v->id, name,
                           type, shape);
}

static void put_nodes(Drawing *d, const HnGraph *g)
{
    for (guint i = 0; i < g->nodes->len; i++)
        if (!is_constant(g->nodes->pdata[i]))
            put_node(d, g->nodes->pdata[i]);
    for (guint i = 0; i < g->inner->len; i++) {
        const HnGraph *inner = g->inner->pdata[i];
        g_autofree char *name = cut_text(inner->holder != NULL ? hn_node_label(inner->holder) : inner->name);
        g_string_append_printf(d->out, "subgraph cluster%u {\nlabel=\"in %s\"; color=gray;\n", d->clusters++, name);
        for (guint k = 0; k < inner->inputs->len; k++)
            put_end(d, inner->inputs->pdata[k], "v", "ellipse");
        put_nodes(d, inner);
        g_string_append(d->out, "}\n");
    }
}

static void put_edges(Drawing *d, const HnGraph *g)
{
    for (guint i = 0; i < g->nodes->len; i++) {
        const HnNode *n = g->nodes->pdata[i];
        for (guint k = 0; k < n->in->len; k++) {
            const HnValue *v = n->in->pdata[k];
            if (v != NULL && !hn_value_is_weight(v))
                put_edge(d, v, n);
        }
    }
    for (guint i = 0; i < g->inner->len; i++) {
        const HnGraph *inner = g->inner->pdata[i];
        if (inner->holder != NULL && inner->nodes->len > 0) /* which node its results go to */
            for (guint k = 0; k < inner->outputs->len; k++) {
                const HnValue *v = inner->outputs->pdata[k];
                if (v->producer != NULL && !is_constant(v->producer))
                    g_string_append_printf(d->out, "n%u -> n%u [style=dashed];\n", id_of(d, v->producer),
                                           id_of(d, inner->holder));
            }
        put_edges(d, inner);
    }
}

static void put_graph(Drawing *d, const HnGraph *g)
{
    g_autofree char *base = g_path_get_basename(inspect_name(d->x->subject)), *title = hn_dot_text(base);
    g_string_append_printf(d->out,
                           "digraph \"%s\" {\nrankdir=TB; nodesep=0.2; ranksep=0.35;\n"
                           "node [shape=box style=\"filled,rounded\" fillcolor=white fontname=\"sans-serif\" "
                           "fontsize=11 height=0.3 margin=\"0.1,0.05\"];\n"
                           "edge [fontname=\"sans-serif\" fontsize=9 arrowsize=0.6 color=\"#606060\" "
                           "fontcolor=\"#606060\"];\n",
                           title);
    for (guint i = 0; i < g->inputs->len; i++)
        if (!hn_value_is_weight(g->inputs->pdata[i]))
            put_end(d, g->inputs->pdata[i], "v", "ellipse");
    put_nodes(d, g);
    put_edges(d, g);
    for (guint i = 0; i < g->outputs->len; i++) {
        const HnValue *v = g->outputs->pdata[i];
        put_end(d, v, "o", "ellipse");
        if (v->producer != NULL && !is_constant(v->producer))
            g_string_append_printf(d->out, "n%u -> o%u;\n", id_of(d, v->producer), v->id);
    }
    g_string_append(d->out, "}\n");
}

gboolean inspect_draw(const Inspect *x, GError **error)
{
    const InspectParams *p = x->p;
    if (p->dot == NULL && p->svg == NULL)
        return TRUE;
    g_autoptr(HnTypes) types = hn_flops_types(x->subject->model, x->shapes, x->ctx->budget);
    g_autoptr(GString) out = g_string_new(NULL);
    g_autoptr(GHashTable) heat = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    g_autoptr(GHashTable) words = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    g_autoptr(GHashTable) ids = g_hash_table_new(NULL, NULL);
    Drawing d = { x, types, heat, words, ids, out, 0, 0 };
    if ((p->profile != NULL && !heat_of_profile(&d, p->profile, error)) ||
        (p->diff != NULL && !heat_of_diff(&d, p->diff, error)))
        return FALSE;
    put_graph(&d, x->subject->model->graph);
    hn_progress_tell(&x->ctx->progress, "drawing", 0, 0);
    return (p->dot == NULL || hn_out_save(p->dot, out->str, out->len, error)) &&
           (p->svg == NULL || hn_dot_draw(p->svg, out->str, d.nodes, error));
}
