/*
 * hn_free_batch(): what runs for one sample after the other, in a Scan: a node that has no rule, and with it the nodes
 * that read how much it finds, up to values of one shape for all samples (boxes that are suppressed, then padded).
 */
#include <string.h>

#include "pass/free_batch_inner.h"

#define WORD G_CSET_A_2_Z G_CSET_a_2_z G_CSET_DIGITS "_"

static void find_random(HnNode *n, gpointer data)
{
    gboolean *found = data;
    *found = *found || (n->op != NULL && (n->op->flags & HN_OP_RANDOM) != 0);
}

static gboolean is_random(HnNode *n)
{
    gboolean found = FALSE;
    find_random(n, &found);
    for (guint i = 0; i < n->attrs->len; i++) {
        const HnAttr *a = n->attrs->pdata[i];
        if (a->kind == HN_ATTR_GRAPH)
            hn_graph_foreach_node(a->g, find_random, &found);
    }
    return found;
}

/* A size that is a symbol of inputs, or computed of such. What a file calls otherwise may be another one each time. */
static gboolean follows_from_inputs(const HnFreeWalk *f, const char *sym)
{
    if (sym == NULL || g_hash_table_contains(f->symbols, sym))
        return sym != NULL;
    while (*sym != '\0') {
        const gsize n = strspn(sym, WORD);
        g_autofree char *word = g_strndup(sym, n);
        const gboolean number = g_ascii_isdigit(*sym), function = sym[n] == '(';
        if (n == 0 && strchr("+-*/(), ", *sym) == NULL)
            return FALSE;
        if (n > 0 && !number && !function && !g_hash_table_contains(f->symbols, word))
            return FALSE;
        sym += MAX(n, 1);
    }
    return TRUE;
}

/* Its sizes are known, or follow from those of inputs: the same for all samples. */
static gboolean has_one_shape(const HnFreeWalk *f, const HnType *t)
{
    if (!hn_type_is_tensor(t) || t->rank < 0 || t->rank >= HN_MAX_RANK)
        return FALSE;
    for (int a = 0; a < t->rank; a++)
        if (!t->dims[a].known && !follows_from_inputs(f, t->dims[a].sym))
            return FALSE;
    return TRUE;
}

/* --- which nodes -------------------------------------------------------------------------------------------------- */

typedef struct {
    const HnFreeWalk *f;
    GHashTable *follow; /* HnNode *: that depend on the first one */
    GHashTable *made;   /* HnValue *: of it and of those */
    GHashTable *in;     /* HnNode *: that run together */
    GPtrArray *nodes;   /* they in order */
} Region;

static void region_clear(Region *r)
{
    g_clear_pointer(&r->follow, g_hash_table_unref);
    g_clear_pointer(&r->made, g_hash_table_unref);
    g_clear_pointer(&r->in, g_hash_table_unref);
    g_clear_pointer(&r->nodes, g_ptr_array_unref);
}

static void add_results(GHashTable *values, const HnNode *n)
{
    for (guint k = 0; k < n->out->len; k++)
        if (n->out->pdata[k] != NULL)
            g_hash_table_add(values, n->out->pdata[k]);
}

/* Into r->follow and r->made; `ragged`: those that read a value whose shape differs from sample to sample. */
static void find_followers(Region *r, HnNode *first, GHashTable *ragged)
{
    const HnGraph *g = first->graph;
    add_results(r->made, first);
    for (guint i = hn_graph_index(g, first) + 1; i < g->nodes->len; i++) {
        HnNode *n = g->nodes->pdata[i];
        g_autoptr(GPtrArray) reads = hn_node_reads(n);
        gboolean follows = FALSE, any = FALSE;
        for (guint k = 0; k < reads->len; k++) {
            const gboolean made = g_hash_table_contains(r->made, reads->pdata[k]);
            follows = follows || made;
            any = any || (made && !has_one_shape(r->f, hn_types_get(r->f->was, reads->pdata[k])));
        }
        if (follows)
            g_hash_table_add(r->follow, n);
        if (follows)
            add_results(r->made, n);
        if (any)
            g_hash_table_add(ragged, n);
    }
}

static gboolean is_ragged(const HnFreeWalk *f, const HnNode *n)
{
    gboolean ragged = FALSE;
    for (guint k = 0; k < n->out->len && !ragged; k++)
        ragged = hn_value_is_read(n->out->pdata[k]) && !has_one_shape(f, hn_types_get(f->was, n->out->pdata[k]));
    return ragged;
}

/* The first node, those that read what differs in shape, and what lies between them. */
static void find_region(Region *r, const HnFreeWalk *f, HnNode *first)
{
    const HnGraph *g = first->graph;
    g_autoptr(GHashTable) ragged = g_hash_table_new(NULL, NULL), wanted = g_hash_table_new(NULL, NULL);
    *r = (Region){ .f = f, .nodes = g_ptr_array_new() };
    r->follow = g_hash_table_new(NULL, NULL);
    r->made = g_hash_table_new(NULL, NULL);
    r->in = g_hash_table_new(NULL, NULL);
    g_hash_table_add(r->in, first);
    if (is_ragged(f, first))
        find_followers(r, first, ragged);
    const guint at = hn_graph_index(g, first);
    for (guint i = g_hash_table_size(ragged) > 0 ? g->nodes->len : 0; i-- > at + 1;) {
        HnNode *n = g->nodes->pdata[i];
        gboolean in = g_hash_table_contains(ragged, n);
        for (guint k = 0; k < n->out->len && !in; k++)
            in = g_hash_table_contains(r->follow, n) && n->out->pdata[k] != NULL &&
                 g_hash_table_contains(wanted, n->out->pdata[k]);
        if (!in)
            continue;
        g_hash_table_add(r->in, n);
        g_autoptr(GPtrArray) reads = hn_node_reads(n);
        for (guint k = 0; k < reads->len; k++)
            g_hash_table_add(wanted, reads->pdata[k]);
    }
    for (guint i = at; i < g->nodes->len && r->nodes->len < g_hash_table_size(r->in); i++)
        if (g_hash_table_contains(r->in, g->nodes->pdata[i]))
            g_ptr_array_add(r->nodes, g->nodes->pdata[i]);
}

/* Node u is one of r, or in a body of one. */
static gboolean is_inside(const Region *r, const HnNode *u)
{
    const HnGraph *g = ((const HnNode *)r->nodes->pdata[0])->graph;
    while (u != NULL && u->graph != g)
        u = u->graph->holder;
    return u != NULL && g_hash_table_contains(r->in, u);
}

static gboolean leaves(const Region *r, const HnValue *v)
{
    gboolean outside = v != NULL && v->is_output > 0;
    for (guint i = 0; v != NULL && i < v->users->len && !outside; i++)
        outside = !is_inside(r, v->users->pdata[i]);
    return outside;
}

static gboolean can_run_apart(HnBatch *b, const Region *r)
{
    const HnNode *first = b->node;
    for (guint i = 0; i < r->nodes->len; i++) {
        HnNode *n = r->nodes->pdata[i];
        if (!hn_op_bind(n, &b->error))
            return FALSE;
        if (is_random(n))
            return n == first ? hn_batch_fail(b, "it draws numbers at random")
                              : hn_batch_fail(b, "%s '%s', which reads it, draws numbers at random", n->op_type,
                                              hn_node_label(n));
        for (guint k = 0; k < n->out->len; k++)
            if (leaves(r, hn_node_out(n, (int)k)) &&
                !has_one_shape(r->f, hn_types_get(r->f->was, hn_node_out(n, (int)k))))
                return hn_batch_fail(b, "how much it %s differs from sample to sample, and so does the shape of '%s'",
                                     (first->op->flags & HN_OP_CONTROL) != 0 ? "makes" : "finds",
                                     hn_node_out(n, (int)k)->name);
    }
    if (hn_graph_opset(first->graph, NULL) < 9)
        return hn_batch_fail(b, "it may mix samples");
    return b->n0 == 1 ||
           hn_batch_fail(b, "the %" PRId64 " samples of the model as it is would have to be taken apart", b->n0);
}

/* --- their order -------------------------------------------------------------------------------------------------- */

/* From the first node of r to the last: what does not depend on them, then they, then what does. The walk over nodes
 * goes on with the first that is there now. FALSE: they are in that order. */
static gboolean bring_together(HnFreeWalk *f, const Region *r)
{
    HnNode *first = r->nodes->pdata[0];
    HnGraph *g = first->graph;
    const guint from = hn_graph_index(g, first), to = hn_graph_index(g, r->nodes->pdata[r->nodes->len - 1]) + 1;
    if (to - from == r->nodes->len)
        return FALSE;
    g_autoptr(GPtrArray) before = g_ptr_array_new(), behind = g_ptr_array_new();
    for (guint i = from; i < to; i++) {
        HnNode *n = g->nodes->pdata[i];
        if (!g_hash_table_contains(r->in, n))
            g_ptr_array_add(g_hash_table_contains(r->follow, n) ? behind : before, n);
    }
    g_ptr_array_extend(before, r->nodes, NULL, NULL);
    g_ptr_array_extend(before, behind, NULL, NULL);
    memcpy(g->nodes->pdata + from, before->pdata, before->len * sizeof(gpointer));
    memcpy(f->todo->pdata + f->at, before->pdata, before->len * sizeof(gpointer));
    return f->again = TRUE;
}

/* --- the Scan ----------------------------------------------------------------------------------------------------- */

/* v with its samples in front of all other axes. */
static HnValue *samples_in_front(HnFreeWalk *f, HnNode *before, HnValue *v, GError **error)
{
    HnBatch b;
    HnNode *n = hn_graph_add_node_before(before->graph, before, "Identity", NULL, NULL);
    hn_node_add_in(n, v);
    hn_free_begin(f, n, &b);
    if (!hn_batch_lift(&b, 0, 0))
        g_propagate_error(error, g_steal_pointer(&b.error));
    HnValue *x = b.error == NULL && *error == NULL ? b.in[0].v : NULL;
    hn_free_end(&b);
    hn_graph_remove_node(n->graph, n);
    return x;
}

/* What a node of r reads, into `values`: what stands for it in body g. What holds samples becomes an input there, and
 * what the Scan is to read for it goes to `scans`. */
static gboolean bring_in(const Region *r, HnGraph *g, const HnNode *n, GHashTable *values, GPtrArray *scans,
                         GError **error)
{
    HnFreeWalk *f = (HnFreeWalk *)r->f;
    g_autoptr(GPtrArray) reads = hn_node_reads(n);
    for (guint i = 0; i < reads->len; i++) {
        HnValue *v = reads->pdata[i], *inner = v;
        if (g_hash_table_contains(values, v))
            continue;
        if (hn_free_place(f, v).axis >= 0) {
            HnValue *x = samples_in_front(f, r->nodes->pdata[0], v, error);
            if (x == NULL)
                return FALSE;
            g_ptr_array_add(scans, x);
            inner = hn_graph_new_value(g, v->name);
            hn_value_set_type(inner, hn_types_get(f->was, v));
            hn_graph_add_input(g, inner);
        }
        g_hash_table_insert(values, v, inner);
    }
    return TRUE;
}

/* The body: copies of the nodes of r, whose samples come in as inputs. */
static HnGraph *body_of(const Region *r, GPtrArray *scans, GError **error)
{
    HnNode *first = r->nodes->pdata[0];
    HnGraph *g = hn_graph_new(r->f->m, first->graph, "one_sample");
    g_autoptr(GHashTable) values = g_hash_table_new(NULL, NULL);
    for (guint i = 0; i < r->nodes->len; i++) {
        HnNode *n = r->nodes->pdata[i];
        if (!bring_in(r, g, n, values, scans, error))
            return g;
        for (guint k = 0; k < n->out->len; k++)
            if (n->out->pdata[k] != NULL)
                g_hash_table_insert(values, n->out->pdata[k], hn_graph_new_value(g, hn_node_out(n, (int)k)->name));
        HnNode *copy = hn_node_copy(g, n, values);
        for (guint k = 0; k < copy->out->len; k++) {
            HnValue *y = copy->out->pdata[k];
            if (!leaves(r, hn_node_out(n, (int)k)))
                continue;
            hn_value_set_type(y, hn_types_get(r->f->was, hn_node_out(n, (int)k)));
            hn_graph_add_output(g, y);
        }
    }
    return g;
}

/* Scan makes what leaves r, with the samples in front. */
static gboolean take_results(const Region *r, HnNode *scan, GError **error)
{
    HnFreeWalk *f = (HnFreeWalk *)r->f;
    int j = 0;
    for (guint i = 0; i < r->nodes->len; i++) {
        HnNode *n = r->nodes->pdata[i];
        for (guint k = 0; k < n->out->len; k++) {
            HnValue *y = hn_node_out(n, (int)k);
            if (!leaves(r, y))
                continue;
            hn_node_set_out(n, (int)k, NULL);
            hn_node_set_out(scan, j++, y);
        }
    }
    if (!hn_types_node(f->now, scan, 0, error))
        return FALSE;
    for (int k = 0; k < j; k++) {
        HnValue *y = hn_node_out(scan, k);
        HnBatchPlace at = hn_batch_place(0);
        if (!hn_free_check_out(f, y, hn_types_get(f->was, y), &at, error))
            return FALSE;
        hn_free_set_place(f, y, at);
    }
    return TRUE;
}

/* All of r but its first node, which its caller removes. */
static void remove_others(HnFreeWalk *f, const Region *r)
{
    for (guint i = r->nodes->len; i-- > 1;) {
        HnNode *n = r->nodes->pdata[i];
        f->todo->pdata[f->at + i] = NULL;
        hn_graph_remove_node(n->graph, n);
    }
}

static gboolean run_apart(HnBatch *b, const Region *r)
{
    HnFreeWalk *f = b->data;
    HnNode *n = b->node;
    g_autoptr(GPtrArray) scans = g_ptr_array_new();
    HnAttr *body = hn_attr_new("body", HN_ATTR_GRAPH);
    body->g = body_of(r, scans, &b->error);
    HnNode *scan = hn_graph_add_node_before(n->graph, n, "Scan", NULL, NULL);
    hn_node_set_attr(scan, body);
    if (b->error != NULL)
        return FALSE;
    for (guint i = 0; i < scans->len; i++)
        hn_node_add_in(scan, scans->pdata[i]);
    hn_node_set_int(scan, "num_scan_inputs", (int64_t)scans->len);
    if (f->n_apart == 0)
        f->apart = g_strdup_printf("'%s' (%s)", hn_node_label(n), n->op_type);
    f->n_apart++;
    if (!take_results(r, scan, &b->error))
        return FALSE;
    remove_others(f, r);
    return b->gone = TRUE;
}

gboolean hn_free_apart(HnBatch *b)
{
    HnFreeWalk *f = b->data;
    if (!hn_node_is_read(b->node))
        return b->gone = TRUE;
    Region r;
    find_region(&r, f, b->node);
    gboolean ok = can_run_apart(b, &r);
    if (ok && r.nodes->len > 1 && (f->todo == NULL || f->at >= f->todo->len || f->todo->pdata[f->at] != b->node))
        ok = hn_batch_fail(b, "how much it finds differs from sample to sample"); /* a node that a rule put there */
    if (ok && !bring_together(f, &r))
        ok = run_apart(b, &r);
    region_clear(&r);
    return ok;
}
