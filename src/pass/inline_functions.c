#include "pass/inline_functions.h"

#include <string.h>

#include "base/error.h"
#include "pass/contrib.h"

#define MAX_NODES 100000 /* a chain of functions that call the next one twice doubles with each link */

typedef struct {
    HnModel *model;
    const HnFunction *function;
    const HnNode *call;
    GHashTable *values; /* HnValue * of the body -> HnValue * of the target */
    guint *made;
    GError **error;
} Inline;

static const HnFunction *function_of(const HnModel *m, const HnNode *n)
{
    for (guint i = 0; i < m->functions->len; i++) {
        const HnFunction *f = m->functions->pdata[i];
        if (strcmp(f->name, n->op_type) == 0 && hn_domain_equal(f->domain, n->domain) &&
            g_strcmp0(f->overload != NULL ? f->overload : "", n->overload != NULL ? n->overload : "") == 0)
            return f;
    }
    return NULL;
}

/* The target's value for one of the body's; made on first sight. */
static HnValue *mapped(Inline *x, HnGraph *to, HnValue *v)
{
    if (v == NULL)
        return NULL;
    gpointer known;
    if (g_hash_table_lookup_extended(x->values, v, NULL, &known))
        return known;
    HnValue *made = hn_graph_new_value(to, v->name);
    if (v->type != NULL)
        hn_value_set_type(made, v->type);
    g_hash_table_insert(x->values, v, made);
    return made;
}

static HnGraph *clone_graph(Inline *x, const HnGraph *g, HnGraph *outer);

static void clone_strings(HnAttr *to, const HnAttr *from)
{
    to->strings = g_new0(GBytes *, (gsize)from->n + 1);
    for (int64_t i = 0; i < from->n; i++)
        to->strings[i] = g_bytes_ref(from->strings[i]);
}

static HnSparse *clone_sparse(const HnSparse *s)
{
    HnSparse *c = g_new0(HnSparse, 1);
    c->values = s->values != NULL ? hn_tensor_ref(s->values) : NULL;
    c->indices = s->indices != NULL ? hn_tensor_ref(s->indices) : NULL;
    c->ndim = s->ndim;
    c->dims = g_memdup2(s->dims, (gsize)s->ndim * sizeof *s->dims);
    c->unknown = s->unknown != NULL ? g_bytes_ref(s->unknown) : NULL;
    return c;
}

/* A copy of `a` under another name; NULL and an error for kinds that no call carries. */
static HnAttr *clone_attr(Inline *x, const HnAttr *a, const char *name, HnGraph *to)
{
    HnAttr *c = hn_attr_new(name, a->kind);
    c->has_kind = TRUE;
    c->n = a->n;
    switch (a->kind) {
    case HN_ATTR_FLOAT:
        c->f = a->f;
        break;
    case HN_ATTR_INT:
        c->i = a->i;
        break;
    case HN_ATTR_STRING:
        c->s = g_bytes_ref(a->s);
        break;
    case HN_ATTR_TENSOR:
        c->t = hn_tensor_ref(a->t);
        break;
    case HN_ATTR_GRAPH:
        c->g = clone_graph(x, a->g, to);
        break;
    case HN_ATTR_FLOATS:
        c->floats = g_memdup2(a->floats, (gsize)a->n * sizeof *a->floats);
        break;
    case HN_ATTR_INTS:
        c->ints = g_memdup2(a->ints, (gsize)a->n * sizeof *a->ints);
        break;
    case HN_ATTR_STRINGS:
        clone_strings(c, a);
        break;
    case HN_ATTR_SPARSE:
        c->sparse = clone_sparse(a->sparse);
        break;
    case HN_ATTR_TYPE:
        c->type = hn_type_ref(a->type);
        break;
    default:
        c->kind = HN_ATTR_UNDEFINED;
        c->n = 0;
        hn_attr_free(c);
        if (*x->error == NULL)
            g_set_error(x->error, HN_ERROR, HN_ERROR_UNSUPPORTED, "attribute '%s' of function '%s' cannot be inlined",
                        name, x->function->name);
        return NULL;
    }
    return c;
}

/* What an attribute that stands for one of the function's own is worth in this call; NULL: nothing. */
static const HnAttr *referred(const Inline *x, const char *name)
{
    const HnAttr *given = hn_node_attr(x->call, name);
    for (guint i = 0; given == NULL && i < x->function->attr_defaults->len; i++) {
        const HnAttr *a = x->function->attr_defaults->pdata[i];
        given = strcmp(a->name, name) == 0 ? a : NULL;
    }
    return given;
}

static gboolean clone_node(Inline *x, const HnNode *n, HnGraph *to, int at)
{
    if (++*x->made > MAX_NODES) {
        g_set_error(x->error, HN_ERROR, HN_ERROR_UNSUPPORTED,
                    "the functions called by node '%s' unfold to more than %d nodes", hn_node_label(x->call),
                    MAX_NODES);
        return FALSE;
    }
    HnNode *c = hn_graph_add_node(to, at, n->op_type, n->domain, n->name);
    c->version = n->version;
    c->overload = hn_model_text(c->graph->model, n->overload);
    for (guint i = 0; i < n->in->len; i++)
        hn_node_add_in(c, mapped(x, to, n->in->pdata[i]));
    for (guint k = 0; k < n->out->len; k++) {
        hn_node_add_out(c, NULL);
        hn_node_set_out(c, (int)k, mapped(x, to, n->out->pdata[k]));
    }
    for (guint i = 0; i < n->attrs->len; i++) {
        const HnAttr *a = n->attrs->pdata[i], *from = a->ref_attr != NULL ? referred(x, a->ref_attr) : a;
        HnAttr *copy = from != NULL ? clone_attr(x, from, a->name, to) : NULL;
        if (from != NULL && copy == NULL)
            return FALSE;
        if (copy != NULL)
            hn_node_set_attr(c, copy);
        if (*x->error != NULL)
            return FALSE;
    }
    return TRUE;
}

/* A sub-graph of a body. A failure is left in x->error; what is built so far is valid to free. */
static HnGraph *clone_graph(Inline *x, const HnGraph *g, HnGraph *outer)
{
    HnGraph *c = hn_graph_new(x->model, outer, g->name);
    for (guint i = 0; i < g->inputs->len; i++)
        hn_graph_add_input(c, mapped(x, c, g->inputs->pdata[i]));
    for (guint i = 0; i < g->weights->len; i++) {
        HnValue *v = g->weights->pdata[i];
        if (v->weight != NULL)
            hn_graph_add_weight(c, mapped(x, c, v), v->weight);
    }
    for (guint i = 0; i < g->nodes->len; i++)
        if (!clone_node(x, g->nodes->pdata[i], c, -1))
            break;
    for (guint i = 0; i < g->outputs->len; i++)
        hn_graph_add_output(c, mapped(x, c, g->outputs->pdata[i]));
    return c;
}

/* An output that the body hands through from an input, or gives twice, needs a node of its own. */
static void add_identity(HnGraph *g, int at, HnValue *from, HnValue *to)
{
    HnNode *n = hn_graph_add_node(g, at, "Identity", NULL, NULL);
    if (n->version == 0)
        n->version = 1;
    hn_node_add_in(n, from);
    hn_node_add_out(n, NULL);
    hn_node_set_out(n, 0, to);
}

static gboolean inline_call(HnModel *m, const HnFunction *f, HnNode *call, guint *made, GError **error)
{
    HnGraph *to = call->graph;
    guint index = 0;
    g_ptr_array_find(to->nodes, call, &index);
    int at = (int)index;
    if (call->in->len > f->body->inputs->len || call->out->len > f->body->outputs->len) {
        g_set_error(error, HN_ERROR, HN_ERROR_GRAPH, "node '%s' gives function '%s' more inputs or outputs than it has",
                    hn_node_label(call), f->name);
        return FALSE;
    }
    GError *failure = NULL;
    g_autoptr(GHashTable) values = g_hash_table_new(NULL, NULL);
    Inline x = { m, f, call, values, made, &failure };
    for (guint i = 0; i < f->body->inputs->len; i++)
        g_hash_table_insert(values, f->body->inputs->pdata[i], hn_node_in(call, (int)i));
    g_autofree HnValue **handed = g_new0(HnValue *, call->out->len + 1u);
    for (guint k = 0; k < call->out->len; k++) {
        HnValue *formal = f->body->outputs->pdata[k], *actual = hn_node_out(call, (int)k);
        if (actual != NULL && g_hash_table_contains(values, formal))
            handed[k] = formal;
        else if (actual != NULL)
            g_hash_table_insert(values, formal, actual);
    }
    for (guint i = 0; failure == NULL && i < f->body->weights->len; i++) {
        HnValue *v = f->body->weights->pdata[i];
        if (v->weight != NULL)
            hn_graph_add_weight(to, mapped(&x, to, v), v->weight);
    }
    guint before = to->nodes->len;
    for (guint i = 0; failure == NULL && i < f->body->nodes->len; i++)
        clone_node(&x, f->body->nodes->pdata[i], to, at + (int)i);
    if (failure != NULL) {
        g_propagate_error(error, failure);
        return FALSE;
    }
    at += (int)(to->nodes->len - before);
    for (guint k = 0; k < call->out->len; k++)
        if (handed[k] != NULL)
            add_identity(to, at++, mapped(&x, to, handed[k]), hn_node_out(call, (int)k));
    hn_graph_remove_node(to, call);
    return TRUE;
}

/* Calls in g and below, until there are none: a chain of calls is at most as deep as there are functions. */
static gboolean inline_graph(HnModel *m, HnGraph *g, guint *made, GError **error)
{
    for (guint round = 0; round <= m->functions->len; round++) {
        const HnFunction *found = NULL;
        for (guint i = 0; i < g->nodes->len;) {
            HnNode *n = g->nodes->pdata[i];
            const HnFunction *f = function_of(m, n);
            if (f == NULL) {
                i++;
                continue;
            }
            found = f;
            guint body = f->body->nodes->len, before = g->nodes->len;
            if (!inline_call(m, f, n, made, error))
                return FALSE;
            i += MAX(body, g->nodes->len + 1 - before); /* what the body calls is the next round's */
        }
        if (!found)
            break;
        if (round == m->functions->len) {
            g_set_error(error, HN_ERROR, HN_ERROR_GRAPH, "function '%s' is called by itself or in a circle",
                        found->name);
            return FALSE;
        }
    }
    for (guint i = 0; i < g->nodes->len; i++) {
        const HnNode *n = g->nodes->pdata[i];
        for (guint k = 0; k < n->attrs->len; k++) {
            const HnAttr *a = n->attrs->pdata[k];
            if (a->kind == HN_ATTR_GRAPH && !inline_graph(m, a->g, made, error))
                return FALSE;
            for (int64_t j = 0; a->kind == HN_ATTR_GRAPHS && j < a->n; j++)
                if (!inline_graph(m, a->graphs[j], made, error))
                    return FALSE;
        }
    }
    return TRUE;
}

gboolean hn_inline_functions(HnModel *m, GError **error)
{
    guint made = 0;
    return (m->functions->len == 0 || inline_graph(m, m->graph, &made, error)) && hn_spell_out_contrib(m, error);
}
