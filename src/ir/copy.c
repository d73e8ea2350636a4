/*
 * A node's copy in another graph, with everything inside it, and a model's.
 */
#include "ir/copy.h"

typedef struct {
    GHashTable *values; /* HnValue * of the original's world -> HnValue * of the copy's */
    gboolean all;       /* what only a file holds too: documentation, metadata, declarations */
} Copy;

static HnGraph *copy_graph(const Copy *c, const HnGraph *g, HnModel *m, HnGraph *outer);

static GBytes *copy_bytes(GBytes *b)
{
    return b != NULL ? g_bytes_ref(b) : NULL;
}

static GPtrArray *copy_texts(const GPtrArray *a)
{
    if (a == NULL)
        return NULL;
    GPtrArray *b = g_ptr_array_new_with_free_func(g_free);
    for (guint i = 0; i < a->len; i++)
        g_ptr_array_add(b, g_strdup(a->pdata[i]));
    return b;
}

/* The copy's value for v; made in `to`, which is the copy of v's graph, on first sight. */
static HnValue *copy_value(const Copy *c, HnGraph *to, HnValue *v)
{
    HnValue *made = v != NULL ? g_hash_table_lookup(c->values, v) : NULL;
    if (made != NULL || v == NULL)
        return made;
    made = hn_graph_value(to, v->name);
    if (v->type != NULL)
        hn_value_set_type(made, v->type);
    if (c->all) {
        made->doc = g_strdup(v->doc);
        made->metadata = copy_texts(v->metadata);
        made->unknown = copy_bytes(v->unknown);
    }
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
    t->unknown = copy_bytes(s->unknown);
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
    b->doc = c->all ? g_strdup(a->doc) : NULL;
    b->unknown = c->all ? copy_bytes(a->unknown) : NULL;
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
        b->g = a->g != NULL ? copy_graph(c, a->g, to->model, to) : NULL;
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
            b->graphs[i] = copy_graph(c, a->graphs[i], to->model, to);
        break;
    }
    return b;
}

static HnNode *copy_node(const Copy *c, const HnNode *n, HnGraph *to)
{
    HnNode *m = hn_graph_add_node(to, -1, n->op_type, n->domain, n->name);
    m->version = n->version;
    m->overload = hn_model_text(to->model, n->overload);
    for (guint i = 0; i < n->in->len; i++)
        hn_node_add_in(m, copy_value(c, to, n->in->pdata[i]));
    for (guint k = 0; k < n->out->len; k++)
        hn_node_add_out(m, copy_value(c, to, n->out->pdata[k]));
    for (guint i = 0; i < n->attrs->len; i++)
        hn_node_set_attr(m, copy_attr(c, n->attrs->pdata[i], to));
    if (c->all) {
        m->doc = g_strdup(n->doc);
        m->metadata = copy_texts(n->metadata);
        m->unknown = copy_bytes(n->unknown);
    }
    return m;
}

static void copy_messages(const GPtrArray *from, GPtrArray *to)
{
    for (guint i = 0; i < from->len; i++)
        g_ptr_array_add(to, g_bytes_ref(from->pdata[i]));
}

/* What stands beside values and nodes in a graph's message. */
static void copy_rest(const Copy *c, const HnGraph *g, HnGraph *h)
{
    GHashTableIter iter;
    gpointer key, bytes;
    for (guint i = 0; i < g->infos->len; i++) {
        HnValue *v = copy_value(c, h, g->infos->pdata[i]);
        v->has_info = TRUE;
        g_ptr_array_add(h->infos, v);
    }
    h->doc = g_strdup(g->doc);
    h->metadata = copy_texts(g->metadata);
    h->unknown = copy_bytes(g->unknown);
    copy_messages(g->quant, h->quant);
    if (g->variants == NULL)
        return;
    h->variants = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, (GDestroyNotify)g_bytes_unref);
    g_hash_table_iter_init(&iter, g->variants);
    while (g_hash_table_iter_next(&iter, &key, &bytes))
        g_hash_table_insert(h->variants, g_strdup(key), g_bytes_ref(bytes));
}

static void fill_graph(const Copy *c, const HnGraph *g, HnGraph *h)
{
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
    if (c->all)
        copy_rest(c, g, h);
}

static HnGraph *copy_graph(const Copy *c, const HnGraph *g, HnModel *m, HnGraph *outer)
{
    HnGraph *h = hn_graph_new(m, outer, g->name);
    fill_graph(c, g, h);
    return h;
}

HnNode *hn_node_copy(HnGraph *to, const HnNode *n, GHashTable *values)
{
    const Copy c = { values, FALSE };
    return copy_node(&c, n, to);
}

HnModel *hn_model_copy(const HnModel *m)
{
    g_return_val_if_fail(m->functions->len == 0, NULL);
    g_autoptr(GHashTable) values = g_hash_table_new(NULL, NULL);
    const Copy c = { values, TRUE };
    HnModel *k = hn_model_new();
    hn_model_set_budget(k, m->budget);
    k->kept = m->kept;
    k->ir_version = m->ir_version;
    k->has_ir_version = m->has_ir_version;
    for (guint i = 0; i < m->opsets->len; i++) {
        const HnOpset *o = &g_array_index(m->opsets, HnOpset, i);
        const HnOpset p = { g_strdup(o->domain), o->version, copy_bytes(o->unknown) };
        g_array_append_val(k->opsets, p);
    }
    k->producer_name = g_strdup(m->producer_name);
    k->producer_version = g_strdup(m->producer_version);
    k->domain = g_strdup(m->domain);
    k->doc = g_strdup(m->doc);
    k->model_version = m->model_version;
    k->has_model_version = m->has_model_version;
    k->metadata = copy_texts(m->metadata);
    copy_messages(m->training, k->training);
    copy_messages(m->configs, k->configs);
    k->unknown = copy_bytes(m->unknown);
    k->path = g_strdup(m->path);
    k->file_bytes = m->file_bytes;
    g_free(k->graph->name);
    k->graph->name = g_strdup(m->graph->name);
    fill_graph(&c, m->graph, k->graph);
    return k;
}
