#include "ir/graph.h"

#include <string.h>

/* Where we are, outermost first; texts are borrowed. */
typedef struct {
    GPtrArray *path;
    char **why;
} Eq;

static gboolean differ(Eq *e, const char *what)
{
    if (e->why) {
        GString *s = g_string_new(NULL);
        for (guint i = 0; i < e->path->len; i++)
            g_string_append_printf(s, "%s%s", i ? "/" : "", (const char *)e->path->pdata[i]);
        g_string_append_printf(s, "%s%s differs", e->path->len ? ": " : "", what);
        *e->why = g_string_free(s, FALSE);
    }
    return FALSE;
}

static void enter(Eq *e, const char *name)
{
    g_ptr_array_add(e->path, (gpointer)(name ? name : ""));
}

static gboolean leave(Eq *e, gboolean same)
{
    g_ptr_array_set_size(e->path, (gint)e->path->len - 1);
    return same;
}

static gboolean same(Eq *e, gboolean equal, const char *what)
{
    return equal || differ(e, what);
}

static gboolean same_text(Eq *e, const char *a, const char *b, const char *what)
{
    return same(e, g_strcmp0(a, b) == 0, what);
}

static gboolean same_bytes(Eq *e, GBytes *a, GBytes *b, const char *what)
{
    return same(e, a == b || (a && b && g_bytes_equal(a, b)), what);
}

static guint len_of(const GPtrArray *a)
{
    return a ? a->len : 0;
}

static gboolean same_texts(Eq *e, const GPtrArray *a, const GPtrArray *b, const char *what)
{
    if (len_of(a) != len_of(b))
        return differ(e, what);
    for (guint i = 0; i < len_of(a); i++)
        if (g_strcmp0(a->pdata[i], b->pdata[i]) != 0)
            return differ(e, what);
    return TRUE;
}

/* The fields that most things have. */
#define SAME_REST(e, a, b)                                                                                 \
    (same_text(e, (a)->doc, (b)->doc, "doc") && same_texts(e, (a)->metadata, (b)->metadata, "metadata") && \
     same_bytes(e, (a)->unknown, (b)->unknown, "unknown field"))

static gboolean same_messages(Eq *e, const GPtrArray *a, const GPtrArray *b, const char *what)
{
    if (len_of(a) != len_of(b))
        return differ(e, what);
    for (guint i = 0; i < len_of(a); i++)
        if (!same_bytes(e, a->pdata[i], b->pdata[i], what))
            return FALSE;
    return TRUE;
}

static gboolean same_opsets(Eq *e, const GArray *a, const GArray *b)
{
    if (a->len != b->len)
        return differ(e, "number of opsets");
    for (guint i = 0; i < a->len; i++) {
        const HnOpset *x = &g_array_index(a, HnOpset, i), *y = &g_array_index(b, HnOpset, i);
        if (!same_text(e, x->domain, y->domain, "opset") || !same(e, x->version == y->version, "opset") ||
            !same_bytes(e, x->unknown, y->unknown, "opset"))
            return FALSE;
    }
    return TRUE;
}

static gboolean same_tensor(Eq *e, const HnTensor *a, const HnTensor *b)
{
    if (!a || !b)
        return same(e, a == b, "presence of a tensor");
    if (!same(e, hn_tensor_equal(a, b), "type, dimensions or an element"))
        return FALSE;
    if (a->stored != b->stored || !a->unloaded != !b->unloaded)
        return differ(e, "way of storing");
    return same_text(e, a->name, b->name, "tensor name") && same_text(e, a->doc, b->doc, "tensor doc") &&
           same_texts(e, a->extra, b->extra, "external data") &&
           same_texts(e, a->metadata, b->metadata, "tensor metadata") &&
           same_bytes(e, a->unknown, b->unknown, "unknown field");
}

static gboolean same_sparse(Eq *e, const HnSparse *a, const HnSparse *b)
{
    if (!a || !b)
        return same(e, a == b, "presence of a sparse tensor");
    if (a->ndim != b->ndim)
        return differ(e, "rank");
    for (int i = 0; i < a->ndim; i++)
        if (a->dims[i] != b->dims[i])
            return differ(e, "dimensions");
    return same_tensor(e, a->values, b->values) && same_tensor(e, a->indices, b->indices) &&
           same_bytes(e, a->unknown, b->unknown, "unknown field");
}

static gboolean same_graph(Eq *e, const HnGraph *a, const HnGraph *b);

static gboolean same_values_of_attr(Eq *e, const HnAttr *a, const HnAttr *b)
{
    const char *what = "value";
    size_t n = (size_t)a->n;
    switch (a->kind) {
    case HN_ATTR_UNDEFINED:
        return TRUE;
    case HN_ATTR_FLOAT:
        return same(e, memcmp(&a->f, &b->f, sizeof a->f) == 0, what);
    case HN_ATTR_INT:
        return same(e, a->i == b->i, what);
    case HN_ATTR_STRING:
        return same_bytes(e, a->s, b->s, what);
    case HN_ATTR_TENSOR:
        return same_tensor(e, a->t, b->t);
    case HN_ATTR_GRAPH:
        return same_graph(e, a->g, b->g);
    case HN_ATTR_SPARSE:
        return same_sparse(e, a->sparse, b->sparse);
    case HN_ATTR_TYPE:
        return same(e, hn_type_equal(a->type, b->type), what);
    case HN_ATTR_FLOATS:
        return same(e, n == 0 || memcmp(a->floats, b->floats, n * sizeof(float)) == 0, what);
    case HN_ATTR_INTS:
        return same(e, n == 0 || memcmp(a->ints, b->ints, n * sizeof(int64_t)) == 0, what);
    case HN_ATTR_STRINGS:
    case HN_ATTR_TENSORS:
    case HN_ATTR_GRAPHS:
    case HN_ATTR_SPARSES:
    case HN_ATTR_TYPES:
        break;
    }
    for (size_t i = 0; i < n; i++) {
        gboolean equal = TRUE;
        if (a->kind == HN_ATTR_STRINGS)
            equal = same_bytes(e, a->strings[i], b->strings[i], what);
        else if (a->kind == HN_ATTR_TENSORS)
            equal = same_tensor(e, a->tensors[i], b->tensors[i]);
        else if (a->kind == HN_ATTR_GRAPHS)
            equal = same_graph(e, a->graphs[i], b->graphs[i]);
        else if (a->kind == HN_ATTR_SPARSES)
            equal = same_sparse(e, a->sparses[i], b->sparses[i]);
        else
            equal = same(e, hn_type_equal(a->types[i], b->types[i]), what);
        if (!equal)
            return FALSE;
    }
    return TRUE;
}

static gboolean same_attr(Eq *e, const HnAttr *a, const HnAttr *b)
{
    if (!same_text(e, a->name, b->name, "name"))
        return FALSE;
    if (a->kind != b->kind || !a->has_kind != !b->has_kind)
        return differ(e, "kind");
    if (!same(e, a->n == b->n, "length") || !same(e, !a->implicit == !b->implicit, "presence of the value"))
        return FALSE;
    return same_text(e, a->ref_attr, b->ref_attr, "referred attribute") && same_text(e, a->doc, b->doc, "doc") &&
           same_bytes(e, a->unknown, b->unknown, "unknown field") && same_values_of_attr(e, a, b);
}

/* What LIST(x) passes on: entries of a GPtrArray or HnPtrs, and how many. */
typedef struct {
    gpointer const *p;
    guint len;
} List;
#define LIST(x) ((List){ (x)->pdata, (x)->len })

static gboolean same_attrs(Eq *e, List a, List b)
{
    if (a.len != b.len)
        return differ(e, "number of attributes");
    for (guint i = 0; i < a.len; i++) {
        enter(e, ((const HnAttr *)a.p[i])->name);
        if (!leave(e, same_attr(e, a.p[i], b.p[i])))
            return FALSE;
    }
    return TRUE;
}

static gboolean same_names(Eq *e, List a, List b, const char *what)
{
    if (a.len != b.len)
        return differ(e, what);
    for (guint i = 0; i < a.len; i++) {
        const HnValue *x = a.p[i], *y = b.p[i];
        if (g_strcmp0(x ? x->name : NULL, y ? y->name : NULL) != 0)
            return differ(e, what);
    }
    return TRUE;
}

static gboolean same_node(Eq *e, const HnNode *a, const HnNode *b)
{
    if (!same_text(e, a->name, b->name, "name") || !same_text(e, a->op_type, b->op_type, "operator") ||
        !same_text(e, a->domain, b->domain, "domain") || !same_text(e, a->overload, b->overload, "overload"))
        return FALSE;
    return same_names(e, LIST(a->in), LIST(b->in), "an input") &&
           same_names(e, LIST(a->out), LIST(b->out), "an output") && same_attrs(e, LIST(a->attrs), LIST(b->attrs)) &&
           SAME_REST(e, a, b);
}

static gboolean same_value(Eq *e, const HnValue *a, const HnValue *b)
{
    return same(e, hn_type_equal(a->type, b->type), "type") && SAME_REST(e, a, b);
}

static gboolean same_values(Eq *e, const GPtrArray *a, const GPtrArray *b, const char *what)
{
    if (!same_names(e, LIST(a), LIST(b), what))
        return FALSE;
    for (guint i = 0; i < a->len; i++) {
        enter(e, ((const HnValue *)a->pdata[i])->name);
        if (!leave(e, same_value(e, a->pdata[i], b->pdata[i])))
            return FALSE;
    }
    return TRUE;
}

static gboolean same_weights(Eq *e, const GPtrArray *a, const GPtrArray *b)
{
    if (!same_names(e, LIST(a), LIST(b), "a weight"))
        return FALSE;
    for (guint i = 0; i < a->len; i++) {
        const HnValue *x = a->pdata[i], *y = b->pdata[i];
        enter(e, x->name);
        gboolean equal =
            x->sparse || y->sparse ? same_sparse(e, x->sparse, y->sparse) : same_tensor(e, x->weight, y->weight);
        if (!leave(e, equal))
            return FALSE;
    }
    return TRUE;
}

static gboolean same_variants(Eq *e, GHashTable *a, GHashTable *b)
{
    GHashTableIter iter;
    gpointer key, bytes;
    if ((a ? g_hash_table_size(a) : 0) != (b ? g_hash_table_size(b) : 0))
        return differ(e, "number of second declarations");
    if (!a || !b)
        return TRUE;
    g_hash_table_iter_init(&iter, a);
    while (g_hash_table_iter_next(&iter, &key, &bytes))
        if (!same_bytes(e, bytes, g_hash_table_lookup(b, key), "a second declaration"))
            return FALSE;
    return TRUE;
}

static gboolean same_nodes(Eq *e, const GPtrArray *a, const GPtrArray *b)
{
    if (a->len != b->len)
        return differ(e, "number of nodes");
    for (guint i = 0; i < a->len; i++) {
        enter(e, hn_node_label(a->pdata[i]));
        if (!leave(e, same_node(e, a->pdata[i], b->pdata[i])))
            return FALSE;
    }
    return TRUE;
}

static gboolean same_declared(Eq *e, const HnGraph *a, const HnGraph *b)
{
    return same_values(e, a->inputs, b->inputs, "an input") && same_values(e, a->outputs, b->outputs, "an output") &&
           same_values(e, a->infos, b->infos, "a declared value") && same_variants(e, a->variants, b->variants) &&
           same_messages(e, a->quant, b->quant, "quantization annotation");
}

static gboolean same_graph(Eq *e, const HnGraph *a, const HnGraph *b)
{
    if (!a || !b)
        return same(e, a == b, "presence of a graph");
    enter(e, a->name);
    return leave(e, same_text(e, a->name, b->name, "name") && same_declared(e, a, b) &&
                        same_weights(e, a->weights, b->weights) && same_nodes(e, a->nodes, b->nodes) &&
                        SAME_REST(e, a, b));
}

static gboolean same_function(Eq *e, const HnFunction *a, const HnFunction *b)
{
    if (!same_text(e, a->name, b->name, "name") || !same_text(e, a->domain, b->domain, "domain") ||
        !same_text(e, a->overload, b->overload, "overload"))
        return FALSE;
    if (!same_texts(e, a->inputs, b->inputs, "an input") || !same_texts(e, a->outputs, b->outputs, "an output") ||
        !same_texts(e, a->attrs, b->attrs, "an attribute name"))
        return FALSE;
    return same_attrs(e, LIST(a->attr_defaults), LIST(b->attr_defaults)) && same_opsets(e, a->opsets, b->opsets) &&
           same_graph(e, a->body, b->body) && SAME_REST(e, a, b);
}

static gboolean same_functions(Eq *e, const GPtrArray *a, const GPtrArray *b)
{
    if (a->len != b->len)
        return differ(e, "number of functions");
    for (guint i = 0; i < a->len; i++) {
        enter(e, ((const HnFunction *)a->pdata[i])->name);
        if (!leave(e, same_function(e, a->pdata[i], b->pdata[i])))
            return FALSE;
    }
    return TRUE;
}

gboolean hn_model_equal(const HnModel *a, const HnModel *b, char **why)
{
    g_autoptr(GPtrArray) path = g_ptr_array_new();
    Eq e = { path, why };
    if (a->ir_version != b->ir_version || !a->has_ir_version != !b->has_ir_version)
        return differ(&e, "IR version");
    if (a->model_version != b->model_version || !a->has_model_version != !b->has_model_version)
        return differ(&e, "model version");
    if (!same_opsets(&e, a->opsets, b->opsets) || !same_text(&e, a->producer_name, b->producer_name, "producer name") ||
        !same_text(&e, a->producer_version, b->producer_version, "producer version") ||
        !same_text(&e, a->domain, b->domain, "domain"))
        return FALSE;
    return same_graph(&e, a->graph, b->graph) && same_functions(&e, a->functions, b->functions) &&
           same_messages(&e, a->training, b->training, "training information") &&
           same_messages(&e, a->configs, b->configs, "device configuration") && SAME_REST(&e, a, b);
}
