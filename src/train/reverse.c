#include "train/reverse.h"

#include "op/tape.h"

typedef struct {
    const HnReverse *r;
    HnBuild build;
    guint n_values;
    const HnValue **leads; /* by HnValue.id: a wanted value that this one depends on; NULL: none */
    GPtrArray **parts;     /* by HnValue.id: gradients that its uses gave; NULL: none */
} Walk;

static gboolean is_float(const Walk *w, const HnValue *v)
{
    const HnType *t = v != NULL ? hn_types_get(w->r->types, v) : NULL;
    return t != NULL && hn_type_is_tensor(t) && hn_dtype_in(t->dtype, HN_T_FLOATS);
}

static const HnValue *leads_to(const Walk *w, const HnValue *v)
{
    return v != NULL && v->id < w->n_values ? w->leads[v->id] : NULL;
}

/* Forward: which values depend on what is wanted. */
static void find_ways(Walk *w, guint n_nodes)
{
    for (int i = 0; i < w->r->n_wanted; i++)
        w->leads[w->r->wanted[i]->id] = w->r->wanted[i];
    for (guint i = 0; i < n_nodes; i++) {
        const HnNode *n = w->r->graph->nodes->pdata[i];
        const HnValue *to = NULL;
        for (guint k = 0; k < n->in->len && to == NULL; k++)
            to = leads_to(w, n->in->pdata[k]);
        for (guint k = 0; to != NULL && k < n->out->len; k++)
            if (is_float(w, n->out->pdata[k]))
                w->leads[((HnValue *)n->out->pdata[k])->id] = to;
    }
}

static void add_part(Walk *w, const HnValue *v, HnValue *part)
{
    if (leads_to(w, v) == NULL)
        return;
    if (w->parts[v->id] == NULL)
        w->parts[v->id] = g_ptr_array_new();
    g_ptr_array_add(w->parts[v->id], part);
}

/* The gradient of v, all of whose uses were walked over; NULL: none. */
static HnValue *gradient_of(Walk *w, const HnValue *v)
{
    GPtrArray *parts = v != NULL && v->id < w->n_values ? w->parts[v->id] : NULL;
    if (parts == NULL)
        return NULL;
    if (parts->len > 1) {
        HnNode *sum = hn_build_node(&w->build, "Sum", NULL, (int)parts->len, (HnValue *const *)parts->pdata, 1);
        g_ptr_array_set_size(parts, 0);
        g_ptr_array_add(parts, hn_node_out(sum, 0));
    }
    return parts->pdata[0];
}

/* The first input on the way to something that is wanted for which the record has nothing to say; -1: none. */
static int forgotten(const HnTape *t)
{
    for (int i = 0; i < (int)t->node->in->len; i++)
        if (t->needs[i] && t->dx[i] == NULL && !t->ends[i])
            return i;
    return -1;
}

static gboolean walk_node(Walk *w, HnNode *n, GError **error)
{
    const guint n_in = n->in->len, n_out = n->out->len;
    g_autofree HnValue **dy = g_new0(HnValue *, n_out + 1), **dx = g_new0(HnValue *, n_in + 1);
    g_autofree gboolean *needs = g_new0(gboolean, n_in + 1), *ends = g_new0(gboolean, n_in + 1);
    const HnValue *to = NULL;
    gboolean reached = FALSE;
    for (guint k = 0; k < n_out; k++)
        reached = (dy[k] = gradient_of(w, n->out->pdata[k])) != NULL || reached;
    for (guint i = 0; i < n_in; i++) {
        const HnValue *v = n->in->pdata[i];
        needs[i] = is_float(w, v) && leads_to(w, v) != NULL;
        to = needs[i] && to == NULL ? leads_to(w, v) : to;
    }
    if (!reached || to == NULL)
        return TRUE;
    HnTape t = { .node = n,
                 .params = n->params,
                 .build = &w->build,
                 .types = w->r->types,
                 .dy = dy,
                 .needs = needs,
                 .dx = dx,
                 .ends = ends };
    const char *name = n->name != NULL ? n->name : "";
    g_autoptr(GError) why = NULL;
    if (!hn_op_grad(&t, &why)) {
        g_set_error(error, HN_ERROR, HN_ERROR_UNSUPPORTED, "node '%s', on the way to '%s': %s", name, to->name,
                    why->message);
        return FALSE;
    }
    const int i = forgotten(&t);
    if (i >= 0) {
        g_set_error(error, HN_ERROR, HN_ERROR_UNSUPPORTED,
                    "node '%s', on the way to '%s': operator '%s' has no gradient of input %d", name, to->name,
                    n->op->name, i);
        return FALSE;
    }
    for (guint k = 0; k < n_in; k++)
        if (dx[k] != NULL)
            add_part(w, n->in->pdata[k], dx[k]);
    return TRUE;
}

gboolean hn_reverse(const HnReverse *r, HnValue **gradients, GError **error)
{
    const guint n_nodes = r->graph->nodes->len;
    Walk w = { .r = r, .build = { .graph = r->graph, .version = HN_OPSET_MAX }, .n_values = r->graph->model->n_values };
    gboolean ok = TRUE;
    w.leads = g_new0(const HnValue *, w.n_values + 1);
    w.parts = g_new0(GPtrArray *, w.n_values + 1);
    find_ways(&w, n_nodes);
    for (int i = 0; i < r->n; i++)
        add_part(&w, r->of[i], r->dy[i]);
    for (guint i = n_nodes; ok && i > 0; i--)
        ok = walk_node(&w, r->graph->nodes->pdata[i - 1], error);
    for (int i = 0; ok && i < r->n_wanted; i++)
        gradients[i] = gradient_of(&w, r->wanted[i]);
    for (guint i = 0; i < w.n_values; i++)
        if (w.parts[i] != NULL)
            g_ptr_array_unref(w.parts[i]);
    g_free(w.parts);
    g_free(w.leads);
    return ok;
}
