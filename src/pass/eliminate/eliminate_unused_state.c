/*
 * If, Loop and Scan: outputs that nobody reads go, with what computes them in the sub-graphs; so do states that only
 * feed themselves, and states that no run changes, whose readers in the body see the value from outside.
 */
#include "pass/driver.h"
#include "pass/shapes.h"

typedef struct {
    HnNode *n;
    HnGraph *body;
    int states, stacked;
    int first_in, first_out; /* what the first state is among n's inputs and the body's, and among the body's outputs */
} Control;

/* --- If ------------------------------------------------------------------------------------------------------------
 */

static gboolean shrink_if(HnRewrite *r, HnNode *n)
{
    const HnAttr *then = hn_node_attr(n, "then_branch"), *other = hn_node_attr(n, "else_branch");
    guint unread = 0;
    for (guint k = 0; k < n->out->len; k++)
        unread += hn_value_is_read(n->out->pdata[k]) ? 0 : 1;
    if (unread == 0 || unread == n->out->len || !hn_rw_go(r, n))
        return FALSE;
    for (guint k = n->out->len; k-- > 0;) {
        if (hn_value_is_read(n->out->pdata[k]))
            continue;
        hn_rw_remove_out(r, n, (int)k);
        hn_rw_remove_graph_out(r, then->g, (int)k);
        hn_rw_remove_graph_out(r, other->g, (int)k);
    }
    return hn_rw_done(r, n);
}

/* --- which states matter ------------------------------------------------------------------------------------------ */

static void need(GPtrArray *work, GHashTable *seen, HnValue *v)
{
    if (v != NULL && g_hash_table_add(seen, v))
        g_ptr_array_add(work, v);
}

/* What has to be computed inside the body for the outputs that matter: set of its values. */
static GHashTable *needed_inside(const Control *c)
{
    GHashTable *seen = g_hash_table_new(NULL, NULL);
    g_autoptr(GPtrArray) work = g_ptr_array_new();
    g_autoptr(GHashTable) state = g_hash_table_new(NULL, NULL); /* body's input -> 1 + the state it is */
    for (int i = 0; i < c->states; i++)
        g_hash_table_insert(state, c->body->inputs->pdata[c->first_in + i], GINT_TO_POINTER(i + 1));
    for (guint k = 0; k < c->body->outputs->len; k++)
        if ((int)k < c->first_out || hn_value_is_read(hn_node_out(c->n, (int)k - c->first_out)))
            need(work, seen, c->body->outputs->pdata[k]);
    while (work->len > 0) {
        const HnValue *v = g_ptr_array_steal_index_fast(work, work->len - 1);
        const int i = GPOINTER_TO_INT(g_hash_table_lookup(state, v));
        if (i > 0)
            need(work, seen, c->body->outputs->pdata[c->first_out + i - 1]);
        if (v->producer == NULL || v->graph != c->body)
            continue;
        g_autoptr(GPtrArray) used = hn_node_captures(v->producer);
        for (guint k = 0; k < used->len; k++)
            need(work, seen, used->pdata[k]);
        for (guint k = 0; k < v->producer->in->len; k++)
            need(work, seen, v->producer->in->pdata[k]);
    }
    return seen;
}

/* Every run hands state i on as it was. */
static gboolean is_constant(const Control *c, int i)
{
    const HnValue *v = c->body->inputs->pdata[c->first_in + i];
    return c->body->outputs->pdata[c->first_out + i] == v && v->is_output == 1;
}

/* What goes, for each output of n: 'u'nused, 'c'onstant, or 0. FALSE: nothing. */
static gboolean decide(const Control *c, char *what)
{
    g_autoptr(GHashTable) needed = needed_inside(c);
    gboolean any = FALSE;
    for (int i = 0; i < c->states + c->stacked; i++) {
        const HnValue *v = i < c->states ? c->body->inputs->pdata[c->first_in + i] : NULL;
        const gboolean read = hn_value_is_read(hn_node_out(c->n, i));
        if (!read && (v == NULL || !g_hash_table_contains(needed, v)))
            what[i] = 'u';
        else if (v != NULL && is_constant(c, i))
            what[i] = 'c';
        any = any || what[i] != 0;
    }
    return any;
}

/* The list in n's attribute loses element i, if there is one. */
static void shorten(HnNode *n, const char *name, int i)
{
    const HnAttr *a = hn_node_attr(n, name);
    if (a == NULL || a->kind != HN_ATTR_INTS || i >= a->n)
        return;
    g_autofree int64_t *rest = g_new(int64_t, (gsize)a->n);
    for (int64_t k = 0; k < a->n - 1; k++)
        rest[k] = a->ints[k < i ? k : k + 1];
    if (a->n == 1)
        hn_node_remove_attr(n, name);
    else
        hn_node_set_ints(n, name, rest, a->n - 1);
}

static void remove_place(HnRewrite *r, const Control *c, int i)
{
    if ((guint)i < c->n->out->len)
        hn_rw_remove_out(r, c->n, i);
    if (i < c->states) {
        hn_rw_remove_graph_in(r, c->body, c->first_in + i);
        hn_rw_remove_in(r, c->n, c->first_in + i);
    } else {
        shorten(c->n, "scan_output_axes", i - c->states);
        shorten(c->n, "scan_output_directions", i - c->states);
    }
}

static gboolean shrink_body(HnRewrite *r, const Control *c)
{
    const int places = c->states + c->stacked;
    g_autofree char *what = g_new0(char, (gsize)places + 1);
    gboolean read = FALSE;
    for (int i = 0; i < places && !read; i++)
        read = hn_value_is_read(hn_node_out(c->n, i));
    if (!read || !decide(c, what) || !hn_rw_go(r, c->n))
        return FALSE;
    for (int i = places - 1; i >= 0; i--) {
        if (what[i] == 0)
            continue;
        if (what[i] == 'c')
            hn_rw_stand_in(r, c->n, i, hn_node_in(c->n, c->first_in + i));
        hn_rw_remove_graph_out(r, c->body, c->first_out + i);
        if (what[i] == 'c')
            hn_rw_replace(r, c->body->inputs->pdata[c->first_in + i], hn_node_in(c->n, c->first_in + i));
    }
    for (int i = 0; i < places; i++)
        if (what[i] == 0 && hn_value_is_read(hn_node_out(c->n, i)))
            read = FALSE;
    if (read)
        return TRUE; /* all that was read is constant: n is useless now */
    hn_rw_sweep_all(r, c->body);
    for (int i = places - 1; i >= 0; i--)
        if (what[i] != 0)
            remove_place(r, c, i);
    return hn_rw_done(r, c->n);
}

static gboolean eliminate_unused_state(HnRewrite *r, HnNode *n)
{
    if (n->op == &hn_op_if)
        return shrink_if(r, n);
    if (n->op != &hn_op_loop && (n->op != &hn_op_scan || n->version < 9))
        return FALSE;
    const HnAttr *a = hn_node_attr(n, "body"), *scans = hn_node_attr(n, "num_scan_inputs");
    Control c = { .n = n, .body = a->g };
    c.first_in = n->op == &hn_op_loop ? 2 : 0;
    c.first_out = n->op == &hn_op_loop ? 1 : 0;
    c.states = (int)MAX(n->in->len, (guint)c.first_in) - c.first_in - (scans != NULL ? (int)scans->i : 0);
    c.stacked = (int)c.body->outputs->len - c.first_out - c.states;
    return shrink_body(r, &c);
}

const HnPass hn_pass_eliminate_unused_state = {
    .name = "eliminate-unused-state",
    .summary = "outputs and states of If, Loop and Scan that nothing needs or nothing changes",
    .level = 1,
    .node = eliminate_unused_state,
};
