#include "check/overview.h"

#include <math.h>
#include <string.h>
#include <sys/stat.h>

#include "base/text.h"
#include "check/abilities.h"
#include "check/flops.h"
#include "pass/inline_functions.h"

#define FEW_BITS 8

const char *hn_quantized_name(HnQuantized q)
{
    static const char *const names[] = { NULL, "weights only", "QDQ", "integer operators", "dynamic", "mixed" };
    return names[q];
}

char *hn_operator_name(const HnNode *n)
{
    return hn_domain_equal(n->domain, NULL) ? g_strdup(n->op_type) : g_strdup_printf("%s.%s", n->domain, n->op_type);
}

/* --- operators --------------------------------------------------------------------------------------------------- */

static void op_free(gpointer data)
{
    HnOverviewOp *op = data;
    g_free(op->name);
    g_free(op->reason);
    g_free(op);
}

static int by_nodes(gconstpointer a, gconstpointer b)
{
    const HnOverviewOp *x = *(HnOverviewOp *const *)a, *y = *(HnOverviewOp *const *)b;
    if (x->nodes != y->nodes)
        return x->nodes < y->nodes ? 1 : -1;
    return strcmp(x->name, y->name);
}

typedef struct {
    const HnBackend *backend;
    const HnModel *m;
    GHashTable *by_name; /* HnOverviewOp * */
} Census;

static gboolean calls_function(const HnModel *m, const HnNode *n)
{
    for (guint i = 0; i < m->functions->len; i++) {
        const HnFunction *f = m->functions->pdata[i];
        if (hn_domain_equal(f->domain, n->domain) && strcmp(f->name, n->op_type) == 0)
            return TRUE;
    }
    return FALSE;
}

static HnSupport support_of(const Census *c, HnNode *n, char **reason)
{
    GError *error = NULL;
    if (calls_function(c->m, n))
        return HN_SUPPORT_KERNEL;
    if (hn_op_find(n->domain, n->op_type) == NULL)
        return HN_SUPPORT_UNKNOWN;
    /* attributes of a body may stand for those of a call: there is nothing to bind */
    if (n->graph->function == NULL && !hn_op_bind(n, &error)) {
        *reason = g_strdup(error->message);
        g_error_free(error);
        return HN_SUPPORT_REFUSED;
    }
    const HnOp *op = hn_op_find(n->domain, n->op_type);
    return hn_op_has_kernel(op, c->backend) ? HN_SUPPORT_KERNEL : HN_SUPPORT_REFERENCE;
}

static void count_op(HnNode *n, gpointer data)
{
    Census *c = data;
    g_autofree char *name = hn_operator_name(n), *reason = NULL;
    HnOverviewOp *op = g_hash_table_lookup(c->by_name, name);
    if (op == NULL) {
        op = g_new0(HnOverviewOp, 1);
        op->name = g_strdup(name);
        g_hash_table_insert(c->by_name, op->name, op);
    }
    op->nodes++;
    op->inner += n->graph != c->m->graph;
    const HnSupport support = support_of(c, n, &reason);
    if (support <= op->support)
        return;
    op->support = support;
    g_free(op->reason);
    op->reason = g_steal_pointer(&reason);
}

static GPtrArray *sorted_ops(GHashTable *by_name)
{
    GPtrArray *ops = g_ptr_array_new_with_free_func(op_free);
    GHashTableIter iter;
    gpointer op;
    g_hash_table_iter_init(&iter, by_name);
    while (g_hash_table_iter_next(&iter, NULL, &op))
        g_ptr_array_add(ops, op);
    g_ptr_array_sort(ops, by_nodes);
    return ops;
}

/* bodies: those of functions, too */
static GPtrArray *count_ops(HnModel *m, const HnBackend *backend, gboolean bodies)
{
    g_autoptr(GHashTable) by_name = g_hash_table_new(g_str_hash, g_str_equal);
    Census c = { backend, m, by_name };
    hn_graph_foreach_node(m->graph, count_op, &c);
    for (guint i = 0; bodies && i < m->functions->len; i++)
        hn_graph_foreach_node(((HnFunction *)m->functions->pdata[i])->body, count_op, &c);
    return sorted_ops(by_name);
}

static GPtrArray *of_support(const GPtrArray *ops, HnSupport least, HnSupport most)
{
    GPtrArray *some = g_ptr_array_new_with_free_func(op_free);
    for (guint i = 0; i < ops->len; i++) {
        const HnOverviewOp *op = ops->pdata[i];
        if (op->support < least || op->support > most)
            continue;
        HnOverviewOp *copy = g_memdup2(op, sizeof *op);
        copy->name = g_strdup(op->name);
        copy->reason = g_strdup(op->reason);
        g_ptr_array_add(some, copy);
    }
    return some;
}

static void count_graphs(const HnGraph *g, guint *nodes, guint *graphs)
{
    for (guint i = 0; i < g->inner->len; i++) {
        const HnGraph *inner = g->inner->pdata[i];
        *nodes += inner->nodes->len;
        ++*graphs;
        count_graphs(inner, nodes, graphs);
    }
}

/* --- weights ----------------------------------------------------------------------------------------------------- */

static void file_free(gpointer data)
{
    HnOverviewFile *f = data;
    g_free(f->location);
    g_free(f);
}

static int by_bytes(gconstpointer a, gconstpointer b)
{
    const HnOverviewType *x = *(HnOverviewType *const *)a, *y = *(HnOverviewType *const *)b;
    if (x->bytes != y->bytes)
        return x->bytes < y->bytes ? 1 : -1;
    return (int)x->dtype - (int)y->dtype;
}

typedef struct {
    HnOverview *o;
    const HnModel *m;
    GHashTable *seen;  /* HnTensor *: shared ones count once */
    GHashTable *files; /* location -> HnOverviewFile * */
} Weights;

static HnOverviewType *type_row(HnOverview *o, HnDtype dtype)
{
    for (guint i = 0; i < o->types->len; i++) {
        HnOverviewType *t = o->types->pdata[i];
        if (t->dtype == dtype)
            return t;
    }
    HnOverviewType *t = g_new0(HnOverviewType, 1);
    t->dtype = dtype;
    g_ptr_array_add(o->types, t);
    return t;
}

static gint64 size_of_file(const HnModel *m, const char *location)
{
    g_autofree char *folder = m->path != NULL ? g_path_get_dirname(m->path) : g_strdup(".");
    g_autofree char *path = g_build_filename(folder, location, NULL);
    struct stat st;
    return stat(path, &st) == 0 ? (gint64)st.st_size : -1;
}

static void count_file(Weights *w, const HnTensor *t, gsize bytes)
{
    const char *location = t->stored == HN_STORED_EXTERNAL ? hn_tensor_extra(t, "location") : NULL;
    if (location == NULL)
        return;
    HnOverviewFile *f = g_hash_table_lookup(w->files, location);
    if (f == NULL) {
        f = g_new0(HnOverviewFile, 1);
        f->location = g_strdup(location);
        f->file_bytes = size_of_file(w->m, location);
        g_hash_table_insert(w->files, f->location, f);
        g_ptr_array_add(w->o->files, f);
    }
    f->tensors++;
    f->bytes += bytes;
}

static void count_tensor(Weights *w, const HnTensor *t)
{
    HnOverview *o = w->o;
    gsize bytes = 0;
    if (t == NULL || !g_hash_table_add(w->seen, (gpointer)t))
        return;
    (void)hn_dtype_bytes(t->dtype, t->n, &bytes); /* strings have no size of their own */
    HnOverviewType *type = type_row(o, t->dtype);
    type->tensors++;
    type->elements += (guint64)t->n;
    type->bytes += bytes;
    o->tensors++;
    o->weight_bytes += bytes;
    if (!hn_dtype_in(t->dtype, HN_BIT(HN_I64) | HN_T_BOOL | HN_BIT(HN_STRING)))
        o->parameters += (guint64)t->n;
    count_file(w, t, bytes);
}

static void count_attrs(HnNode *n, gpointer data)
{
    for (guint i = 0; i < n->attrs->len; i++) {
        const HnAttr *a = n->attrs->pdata[i];
        if (a->kind == HN_ATTR_TENSOR)
            count_tensor(data, a->t);
        for (int64_t k = 0; a->kind == HN_ATTR_TENSORS && k < a->n; k++)
            count_tensor(data, a->tensors[k]);
    }
}

static void count_weights(Weights *w, const HnGraph *g)
{
    for (guint i = 0; i < g->weights->len; i++) {
        const HnValue *v = g->weights->pdata[i];
        count_tensor(w, v->sparse != NULL ? v->sparse->values : v->weight);
        w->o->sparse += v->sparse != NULL;
    }
    for (guint i = 0; i < g->inner->len; i++)
        count_weights(w, g->inner->pdata[i]);
}

/* --- quantized or not -------------------------------------------------------------------------------------------- */

typedef struct {
    HnOverview *o;
    GHashTable *seen; /* HnValue * */
    guint dynamic, on_weights;
} Quant;

/* v's elements are integers in place of floats. */
static void quantized_weight(Quant *q, const HnValue *v)
{
    const HnTensor *t = v != NULL ? v->weight : NULL;
    const unsigned bits = t != NULL ? hn_dtype_bits(t->dtype) : 0;
    if (bits == 0 || bits > FEW_BITS || t->ndim == 0 || !g_hash_table_add(q->seen, (gpointer)v))
        return;
    q->o->quantized_tensors++;
    q->o->quantized_elements += (guint64)t->n;
}

static void count_quantized(HnNode *n, gpointer data)
{
    Quant *q = data;
    HnOverview *o = q->o;
    const HnOp *op = hn_op_find(n->domain, n->op_type);
    const uint32_t flags = op != NULL ? op->flags : 0;
    o->quantize_nodes += (flags & HN_OP_STEPS) != 0;
    o->dequantize_nodes += (flags & HN_OP_UNPACK) != 0;
    if ((flags & HN_OP_UNPACK) != 0 && hn_node_in(n, 0) != NULL) {
        q->on_weights += hn_node_in(n, 0)->weight != NULL;
        quantized_weight(q, hn_node_in(n, 0));
    }
    if ((flags & HN_OP_INTEGERS) == 0)
        return;
    o->integer_nodes++;
    q->dynamic += op->in[0] == 'f' && op->in[1] == '\0'; /* makes integers of floats by their range */
    for (guint i = 0; i < n->in->len; i++) {
        const HnValue *v = hn_node_in(n, (int)i);
        if (v != NULL && v->weight != NULL && v->weight->ndim > 1)
            quantized_weight(q, v);
    }
}

static HnQuantized kind_of(const Quant *q)
{
    const HnOverview *o = q->o;
    if (q->dynamic > 0)
        return o->quantize_nodes > 0 ? HN_QUANTIZED_MIXED : HN_QUANTIZED_DYNAMIC;
    if (o->integer_nodes > 0) /* at the ends of a model of integer operators there are others */
        return o->dequantize_nodes > o->integer_nodes ? HN_QUANTIZED_MIXED : HN_QUANTIZED_OPERATORS;
    if (o->quantize_nodes > 0)
        return HN_QUANTIZED_QDQ;
    return q->on_weights > 0 ? HN_QUANTIZED_WEIGHTS : HN_QUANTIZED_NO;
}

/* --- all of it --------------------------------------------------------------------------------------------------- */

static void count_file_facts(HnOverview *o, HnModel *m)
{
    g_autoptr(GHashTable) tensors = g_hash_table_new(NULL, NULL), values = g_hash_table_new(NULL, NULL);
    g_autoptr(GHashTable) files = g_hash_table_new(g_str_hash, g_str_equal);
    Weights w = { o, m, tensors, files };
    Quant q = { o, values, 0, 0 };
    guint ignored = 0;
    o->nodes = m->graph->nodes->len;
    count_graphs(m->graph, &o->inner, &o->graphs);
    count_weights(&w, m->graph);
    hn_graph_foreach_node(m->graph, count_attrs, &w);
    hn_graph_foreach_node(m->graph, count_quantized, &q);
    o->functions = m->functions->len;
    for (guint i = 0; i < m->functions->len; i++) {
        HnGraph *body = ((HnFunction *)m->functions->pdata[i])->body;
        o->in_bodies += body->nodes->len;
        count_graphs(body, &o->in_bodies, &ignored);
        hn_graph_foreach_node(body, count_attrs, &w);
        hn_graph_foreach_node(body, count_quantized, &q);
    }
    g_ptr_array_sort(o->types, by_bytes);
    o->quantized = kind_of(&q);
}

static void add_held(GPtrArray *list, const HnHeld *h)
{
    for (guint i = 0; i < list->len; i++) {
        HnHeld *known = list->pdata[i];
        if (strcmp(known->name, h->name) != 0)
            continue;
        known->n += MIN(h->n, G_MAXINT64 - known->n);
        return;
    }
    g_ptr_array_add(list, g_memdup2(h, sizeof *h));
}

/* Of a node that is bound. */
static void count_held(HnNode *n, gpointer data)
{
    HnHeld held[HN_HELD_MAX + 1] = { 0 };
    if (n->op == NULL || n->op->held == NULL)
        return;
    n->op->held(n->params, held);
    for (const HnHeld *h = held; h->name != NULL; h++)
        add_held(data, h);
}

HnOverview *hn_overview_new(HnModel *m, const HnShapes *shapes, const HnBackend *backend, HnBudget *budget)
{
    HnOverview *o = g_new0(HnOverview, 1);
    g_autoptr(GError) error = NULL;
    o->types = g_ptr_array_new_with_free_func(g_free);
    o->files = g_ptr_array_new_with_free_func(file_free);
    count_file_facts(o, m);
    o->operators = count_ops(m, backend, TRUE);
    if (!hn_inline_functions(m, &error))
        o->not_inlined = g_strdup(error->message);
    g_autoptr(GPtrArray) runs = count_ops(m, backend, o->not_inlined != NULL);
    o->unknown = of_support(runs, HN_SUPPORT_REFUSED, HN_SUPPORT_UNKNOWN);
    o->slow = of_support(runs, HN_SUPPORT_REFERENCE, HN_SUPPORT_REFERENCE);
    g_autoptr(HnTypes) types = hn_flops_types(m, shapes, budget);
    o->flops = hn_flops(types, m, &o->flops_left);
    if (o->nodes > 0 && o->flops == 0 && o->flops_left > 0)
        o->flops = NAN;
    o->held = g_ptr_array_new_with_free_func(g_free);
    hn_graph_foreach_node(m->graph, count_held, o->held);
    return o;
}

void hn_overview_free(HnOverview *o)
{
    if (o == NULL)
        return;
    g_ptr_array_unref(o->held);
    g_ptr_array_unref(o->operators);
    g_ptr_array_unref(o->unknown);
    g_ptr_array_unref(o->slow);
    g_ptr_array_unref(o->types);
    g_ptr_array_unref(o->files);
    g_free(o->not_inlined);
    g_free(o);
}
