#include "train/reverse.h"

#include "op/tape.h"
#include "op/unbind.h"

#define FOLD_BYTES 4096 /* elements of branches that are computed at once: shape arithmetic */

typedef struct {
    const HnReverse *r;
    HnTypes **own; /* the table with what copies of sub-graphs make; NULL so far: r's is enough */
    HnBuild build;
    GHashTable *leads; /* HnValue * -> a wanted value that it depends on */
    GHashTable *parts; /* HnValue * -> GPtrArray * of HnValue *: gradients that its uses gave */
} Walk;

static const HnTypes *types_of(const Walk *w)
{
    return *w->own != NULL ? *w->own : w->r->types;
}

/* A float, or for all that is known it could be one, or a sequence of them. */
static gboolean is_float(const Walk *w, const HnValue *v)
{
    const HnType *t = hn_types_get(types_of(w), v);
    return !hn_type_is_tensor(t) || t->dtype == HN_UNDEFINED || hn_dtype_in(t->dtype, HN_T_FLOATS);
}

static const HnValue *leads_to(const Walk *w, const HnValue *v)
{
    return v != NULL ? g_hash_table_lookup(w->leads, v) : NULL;
}

static const HnValue *first_lead(const Walk *w, gpointer const *values, guint n)
{
    const HnValue *to = NULL;
    for (guint i = 0; i < n && to == NULL; i++)
        to = leads_to(w, values[i]);
    return to;
}

static gboolean holds_graphs(const HnNode *n)
{
    return n->op == NULL || (n->op->flags & HN_OP_CONTROL) != 0;
}

/* May integers that n makes have a gradient? They stand for floats behind QuantizeLinear, and behind what moves such
 * integers: those are asked, or refuse. */
static gboolean stands_for_floats(const Walk *w, const HnNode *n)
{
    if (!w->r->straight || n->op == NULL || (n->op->flags & HN_OP_SHAPE_ONLY) != 0)
        return FALSE;
    for (guint i = 0; i < n->in->len; i++)
        if (leads_to(w, n->in->pdata[i]) != NULL && !is_float(w, n->in->pdata[i]))
            return TRUE;
    return (n->op->flags & HN_OP_STEPS) != 0;
}

/* Forward: which values depend on what is wanted, that nodes [first, end) make. */
static void find_ways(Walk *w, guint first, guint end)
{
    for (guint i = first; i < end; i++) {
        const HnNode *n = w->r->graph->nodes->pdata[i];
        g_autoptr(GPtrArray) reads = holds_graphs(n) ? hn_node_reads(n) : NULL;
        const HnValue *to =
            reads != NULL ? first_lead(w, reads->pdata, reads->len) : first_lead(w, n->in->pdata, n->in->len);
        const gboolean integers = to != NULL && stands_for_floats(w, n);
        for (guint k = 0; to != NULL && k < n->out->len; k++)
            if (n->out->pdata[k] != NULL && (integers || is_float(w, n->out->pdata[k])))
                g_hash_table_insert(w->leads, n->out->pdata[k], (gpointer)to);
    }
}

static void add_part(Walk *w, HnValue *v, HnValue *part)
{
    GPtrArray *parts = g_hash_table_lookup(w->parts, v);
    if (leads_to(w, v) == NULL)
        return;
    if (parts == NULL)
        g_hash_table_insert(w->parts, v, parts = g_ptr_array_new());
    g_ptr_array_add(parts, part);
}

/* The gradient of v, all of whose uses were walked over; NULL: none. */
static HnValue *gradient_of(Walk *w, const HnValue *v)
{
    GPtrArray *parts = v != NULL ? g_hash_table_lookup(w->parts, v) : NULL;
    if (parts == NULL)
        return NULL;
    if (parts->len > 1) { /* an Add may become part of the node that made one of the two */
        HnNode *sum = hn_build_node(&w->build, parts->len == 2 ? "Add" : "Sum", NULL, (int)parts->len,
                                    (HnValue *const *)parts->pdata, 1);
        g_ptr_array_set_size(parts, 0);
        g_ptr_array_add(parts, hn_node_out(sum, 0));
    }
    return parts->pdata[0];
}

/* --- one node ----------------------------------------------------------------------------------------------------- */

static gboolean reverse(const HnReverse *r, HnTypes **own, HnValue **gradients, GError **error);

/* Types of what the copy g of a branch consists of. FALSE: it is impossible with these shapes, so that nobody takes it.
 */
static gboolean infer(const Walk *w, HnGraph *g)
{
    if (*w->own == NULL)
        *w->own = hn_types_copy(w->r->types);
    if (!hn_types_enter(*w->own, g, FALSE, NULL))
        return FALSE;
    for (guint i = 0; i < g->nodes->len; i++)
        if (!hn_types_node(*w->own, g->nodes->pdata[i], FOLD_BYTES, NULL))
            return FALSE;
    return TRUE;
}

/* HnTape.graph */
static gboolean branch(HnTape *t, HnGraph *g, HnValue **dx)
{
    const Walk *w = t->data;
    g_autoptr(GPtrArray) of = g_ptr_array_new(), dy = g_ptr_array_new();
    if (!infer(w, g))
        return TRUE;
    t->types = *w->own;
    for (guint k = 0; k < g->outputs->len; k++)
        if (t->dy[k] != NULL) {
            g_ptr_array_add(of, g->outputs->pdata[k]);
            g_ptr_array_add(dy, t->dy[k]);
        }
    const HnReverse r = { .graph = g,
                          .types = *w->own,
                          .n = (int)of->len,
                          .of = (HnValue *const *)of->pdata,
                          .dy = (HnValue *const *)dy->pdata,
                          .n_wanted = t->n_captures,
                          .wanted = t->captures,
                          .straight = t->straight };
    return reverse(&r, w->own, dx, &t->error);
}

/* Nodes from `first` on are written for the node, or value, that is called so. */
static void name_nodes(const Walk *w, const char *label, guint first)
{
    for (guint i = first; i < w->r->graph->nodes->len; i++) {
        HnNode *made = w->r->graph->nodes->pdata[i];
        g_free(made->name);
        made->name = g_strconcat(label, HN_GRADIENT_SUFFIX, NULL);
    }
}

/* The first input on the way to something that is wanted for which the record has nothing to say; -1: none. */
static int forgotten(const HnTape *t)
{
    for (int i = 0; i < (int)t->node->in->len; i++)
        if (t->needs[i] && t->dx[i] == NULL && !t->ends[i])
            return i;
    return -1;
}

/* Values around n's sub-graphs that lead to what is wanted. */
static GPtrArray *captures_of(const Walk *w, const HnNode *n)
{
    GPtrArray *all = holds_graphs(n) ? hn_node_captures(n) : g_ptr_array_new();
    for (guint i = all->len; i > 0; i--)
        if (leads_to(w, all->pdata[i - 1]) == NULL)
            g_ptr_array_remove_index(all, i - 1);
    return all;
}

static gboolean ask_record(HnTape *t, GError **error)
{
    const HnNode *n = t->node;
    const gboolean integers = n->op != NULL && (n->op->flags & (HN_OP_VIEW | HN_OP_UNPACK)) != 0;
    for (int i = 0; i < (int)n->in->len; i++) {
        const HnDtype dtype = hn_tape_dtype(t, hn_tape_in(t, i));
        if (t->needs[i] && !integers && dtype != HN_UNDEFINED && !hn_dtype_in(dtype, HN_T_FLOATS))
            hn_tape_refuse(t, "operator '%s' has no gradient of integers", n->op_type);
    }
    if (t->error == NULL && !hn_op_grad(t, error))
        return FALSE;
    const int i = t->error == NULL && !t->apart ? forgotten(t) : -1;
    if (i >= 0)
        hn_tape_refuse(t, "operator '%s' has no gradient of input %d", n->op_type, i);
    if (t->error != NULL)
        g_propagate_error(error, g_steal_pointer(&t->error));
    return *error == NULL;
}

/* apart: what it consists of comes next. */
static gboolean walk_node(Walk *w, HnNode *n, gboolean *apart, GError **error)
{
    const guint n_in = n->in->len, n_out = n->out->len;
    g_autofree HnValue **dy = g_new0(HnValue *, n_out + 1), **dx = g_new0(HnValue *, n_in + 1);
    g_autofree gboolean *needs = g_new0(gboolean, n_in + 1), *ends = g_new0(gboolean, n_in + 1);
    g_autoptr(GPtrArray) captures = captures_of(w, n);
    g_autofree HnValue **dcapture = g_new0(HnValue *, captures->len + 1u);
    const HnValue *to = first_lead(w, n->in->pdata, n_in);
    gboolean reached = FALSE;
    for (guint k = 0; k < n_out; k++)
        reached = (dy[k] = gradient_of(w, n->out->pdata[k])) != NULL || reached;
    for (guint i = 0; i < n_in; i++)
        needs[i] = leads_to(w, n->in->pdata[i]) != NULL;
    to = to != NULL ? to : first_lead(w, captures->pdata, captures->len);
    if (!reached || to == NULL)
        return TRUE;
    HnTape t = { .node = n,
                 .params = n->params,
                 .build = &w->build,
                 .types = types_of(w),
                 .dy = dy,
                 .needs = needs,
                 .dx = dx,
                 .ends = ends,
                 .straight = w->r->straight,
                 .n_captures = (int)captures->len,
                 .captures = (HnValue *const *)captures->pdata,
                 .dcapture = dcapture,
                 .graph = branch,
                 .data = w };
    g_autoptr(GError) why = NULL;
    if (!ask_record(&t, &why)) {
        g_set_error(error, HN_ERROR, HN_ERROR_UNSUPPORTED, "node '%s', on the way to '%s': %s", hn_node_label(n),
                    to->name, why->message);
        return FALSE;
    }
    *apart = t.apart;
    for (guint k = 0; k < n_in; k++)
        if (dx[k] != NULL)
            add_part(w, n->in->pdata[k], dx[k]);
    for (guint k = 0; k < captures->len; k++)
        if (dcapture[k] != NULL)
            add_part(w, captures->pdata[k], dcapture[k]);
    return TRUE;
}

/* n becomes what it consists of, *end the place behind that. */
static gboolean take_apart(Walk *w, HnNode *n, guint *end, GError **error)
{
    const HnGraph *g = w->r->graph;
    const guint others = g->nodes->len - 1;
    g_autofree char *label = g_strdup(hn_node_label(n));
    if (*w->own == NULL)
        *w->own = hn_types_copy(w->r->types);
    if (!hn_node_take_apart(n, *w->own, error)) {
        g_prefix_error(error, "node '%s' has no gradient: ", label);
        return FALSE;
    }
    const guint first = *end - 1;
    *end += g->nodes->len - others - 1;
    find_ways(w, first, *end);
    return TRUE;
}

/* --- the graph ---------------------------------------------------------------------------------------------------- */

static gboolean reverse(const HnReverse *r, HnTypes **own, HnValue **gradients, GError **error)
{
    const guint n_nodes = r->graph->nodes->len;
    Walk w = { .r = r,
               .own = own,
               .build = { .graph = r->graph, .version = HN_OPSET_MAX },
               .leads = g_hash_table_new(NULL, NULL),
               .parts = g_hash_table_new_full(NULL, NULL, NULL, (GDestroyNotify)g_ptr_array_unref) };
    gboolean ok = TRUE;
    for (int i = 0; i < r->n_wanted; i++)
        g_hash_table_insert(w.leads, r->wanted[i], r->wanted[i]);
    find_ways(&w, 0, n_nodes);
    for (int i = 0; i < r->n; i++)
        add_part(&w, r->of[i], r->dy[i]);
    for (guint i = n_nodes; ok && i > 0;) {
        HnNode *n = r->graph->nodes->pdata[i - 1];
        const guint first = r->graph->nodes->len;
        gboolean apart = FALSE;
        ok = walk_node(&w, n, &apart, error);
        name_nodes(&w, hn_node_label(n), first);
        if (ok && apart)
            ok = take_apart(&w, n, &i, error);
        else
            i--;
    }
    for (int i = 0; ok && i < r->n_wanted; i++) {
        const guint first = r->graph->nodes->len;
        gradients[i] = gradient_of(&w, r->wanted[i]);
        name_nodes(&w, r->wanted[i]->name, first);
    }
    g_hash_table_unref(w.parts);
    g_hash_table_unref(w.leads);
    return ok;
}

/* Wanted values of sub-graphs: the graph's results know nothing of their gradients. */
static gboolean all_inside(const HnReverse *r, GError **error)
{
    for (int i = 0; i < r->n_wanted; i++)
        if (r->wanted[i]->graph != r->graph) {
            g_set_error(error, HN_ERROR, HN_ERROR_UNSUPPORTED,
                        "'%s' belongs to a sub-graph, and has no gradient around it", r->wanted[i]->name);
            return FALSE;
        }
    return TRUE;
}

gboolean hn_reverse(const HnReverse *r, HnValue **gradients, GError **error)
{
    HnTypes *own = NULL;
    const gboolean ok = all_inside(r, error) && reverse(r, &own, gradients, error);
    hn_types_free(own);
    return ok;
}
