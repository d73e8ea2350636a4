/*
 * A node's copy in another graph, with everything inside it.
 */
#include "ir/graph.h"

typedef struct {
    GHashTable *values; /* HnValue * of the original's world -> HnValue * of the copy's */
} Copy;

static HnGraph *copy_graph(const Copy *c, const HnGraph *g, HnGraph *outer);

/* The copy's value for v; made in `to`, which is the copy of v's graph, on first sight. */
static HnValue *copy_value(const Copy *c, HnGraph *to, HnValue *v)
{
    HnValue *made = v != NULL ? g_hash_table_lookup(c->values, v) : NULL;
    if (made != NULL || v == NULL)
        return made;
    made = hn_graph_value(to, v->name);
    if (v->type != NULL)
        hn_value_set_type(made, v->type);
    g_hash_table_insert(c->values, v, made);
    return made;
}

static HnSparse *copy_sparse(const HnSparse *s)
{
    HnSparse *t = g_new0(HnSparse, 1);
    t->values = s->values != NULL ? hn_tensor_ref(s->values) : NULL;
    t->indices = s->indices != NULL ? hn_tensor_ref(s->indices) : NULL;
    t->ndim = s->ndim;
    t->dims = g_memdup2(s->dims, (gsize)s->ndim * sizeof *s->dims);
    return t;
}

/* n references in an array of its own. */
static gpointer copy_array(gpointer const *from, int64_t n, gpointer (*ref)(gpointer))
{
    gpointer *to = g_new0(gpointer, (gsize)n + 1);
    for (int64_t i = 0; from != NULL && i < n; i++)
        to[i] = from[i] != NULL ? ref(from[i]) : NULL;
    return to;
}

static gpointer ref_bytes(gpointer p)
{
    return g_bytes_ref(p);
}

static gpointer ref_tensor(gpointer p)
{
    return hn_tensor_ref(p);
}

static gpointer ref_type(gpointer p)
{
    return hn_type_ref(p);
}

static gpointer ref_sparse(gpointer p)
{
    return copy_sparse(p);
}

static HnAttr *copy_attr(const Copy *c, const HnAttr *a, HnGraph *to)
{
    HnAttr *b = hn_attr_new(a->name, a->kind);
    b->has_kind = a->has_kind;
    b->implicit = a->implicit;
    b->ref_attr = g_strdup(a->ref_attr);
    b->n = a->n;
    switch (a->kind) {
    case HN_ATTR_UNDEFINED:
        break;
    case HN_ATTR_FLOAT:
        b->f = a->f;
        break;
    case HN_ATTR_INT:
        b->i = a->i;
        break;
    case HN_ATTR_STRING:
        b->s = a->s != NULL ? g_bytes_ref(a->s) : NULL;
        break;
    case HN_ATTR_TENSOR:
        b->t = a->t != NULL ? hn_tensor_ref(a->t) : NULL;
        break;
    case HN_ATTR_GRAPH:
        b->g = a->g != NULL ? copy_graph(c, a->g, to) : NULL;
        break;
    case HN_ATTR_SPARSE:
        b->sparse = a->sparse != NULL ? copy_sparse(a->sparse) : NULL;
        break;
    case HN_ATTR_TYPE:
        b->type = a->type != NULL ? hn_type_ref(a->type) : NULL;
        break;
    case HN_ATTR_FLOATS:
        b->floats = g_memdup2(a->floats, (gsize)a->n * sizeof *a->floats);
        break;
    case HN_ATTR_INTS:
        b->ints = g_memdup2(a->ints, (gsize)a->n * sizeof *a->ints);
        break;
    case HN_ATTR_STRINGS:
        b->strings = copy_array((gpointer const *)a->strings, a->n, ref_bytes);
        break;
    case HN_ATTR_TENSORS:
        b->tensors = copy_array((gpointer const *)a->tensors, a->n, ref_tensor);
        break;
    case HN_ATTR_TYPES:
        b->types = copy_array((gpointer const *)a->types, a->n, ref_type);
        break;
    case HN_ATTR_SPARSES:
        b->sparses = copy_array((gpointer const *)a->sparses, a->n, ref_sparse);
        break;
    case HN_ATTR_GRAPHS:
        b->graphs = g_new0(HnGraph *, (gsize)a->n + 1);
        for (int64_t i = 0; i < a->n; i++)
            b->graphs[i] = copy_graph(c, a->graphs[i], to);
        break;
    }
    return b;
}

static HnNode *copy_node(const Copy *c, const HnNode *n, HnGraph *to)
{
    HnNode *m = hn_graph_add_node(to, -1, n->op_type, n->domain, n->name);
    m->version = n->version;
    m->overload = g_strdup(n->overload);
    for (guint i = 0; i < n->in->len; i++)
        hn_node_add_in(m, copy_value(c, to, n->in->pdata[i]));
    for (guint k = 0; k < n->out->len; k++)
        hn_node_add_out(m, copy_value(c, to, n->out->pdata[k]));
    for (guint i = 0; i < n->attrs->len; i++)
        hn_node_set_attr(m, copy_attr(c, n->attrs->pdata[i], to));
    return m;
}

static HnGraph *copy_graph(const Copy *c, const HnGraph *g, HnGraph *outer)
{
    HnGraph *h = hn_graph_new(outer->model, outer, g->name);
    for (guint i = 0; i < g->inputs->len; i++)
        hn_graph_add_input(h, copy_value(c, h, g->inputs->pdata[i]));
    for (guint i = 0; i < g->weights->len; i++) {
        HnValue *v = g->weights->pdata[i];
        if (v->weight != NULL)
            hn_graph_add_weight(h, copy_value(c, h, v), v->weight);
        else
            hn_graph_add_sparse(h, copy_value(c, h, v), copy_sparse(v->sparse));
    }
    for (guint i = 0; i < g->nodes->len; i++)
        copy_node(c, g->nodes->pdata[i], h);
    for (guint i = 0; i < g->outputs->len; i++)
        hn_graph_add_output(h, copy_value(c, h, g->outputs->pdata[i]));
    return h;
}

HnNode *hn_node_copy(HnGraph *to, const HnNode *n, GHashTable *values)
{
    Copy c = { values };
    return copy_node(&c, n, to);
}
