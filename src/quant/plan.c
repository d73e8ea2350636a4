#include "quant/plan.h"

#include <string.h>

static const char *const form_names[] = { "f32", "int8", "w8", "w4" };

const char *hn_quant_form_name(HnQuantForm form)
{
    return form_names[form];
}

gboolean hn_quant_form_parse(const char *name, HnQuantForm *form)
{
    for (gsize i = 0; i < G_N_ELEMENTS(form_names); i++)
        if (strcmp(name, form_names[i]) == 0) {
            *form = (HnQuantForm)i;
            return TRUE;
        }
    return FALSE;
}

HnQuantPlan *hn_quant_plan_new(const HnQuantOptions *o)
{
    HnQuantPlan *p = g_new0(HnQuantPlan, 1);
    p->o = *o;
    p->forms = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    p->spans = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    return p;
}

void hn_quant_plan_free(HnQuantPlan *p)
{
    if (p == NULL)
        return;
    g_hash_table_unref(p->forms);
    g_hash_table_unref(p->spans);
    g_free(p);
}

HnQuantPlan *hn_quant_plan_copy(const HnQuantPlan *p)
{
    HnQuantPlan *c = hn_quant_plan_new(&p->o);
    GHashTableIter iter;
    gpointer name, value;
    g_hash_table_iter_init(&iter, p->forms);
    while (g_hash_table_iter_next(&iter, &name, &value))
        g_hash_table_insert(c->forms, g_strdup(name), value);
    g_hash_table_iter_init(&iter, p->spans);
    while (g_hash_table_iter_next(&iter, &name, &value))
        g_hash_table_insert(c->spans, g_strdup(name), g_memdup2(value, sizeof(HnQuantSpan)));
    return c;
}

static const char *node_name(const HnNode *n)
{
    const HnValue *v = hn_node_out(n, 0);
    return v != NULL ? v->name : "";
}

HnQuantForm hn_quant_plan_form(const HnQuantPlan *p, const HnNode *n)
{
    return (HnQuantForm)GPOINTER_TO_INT(g_hash_table_lookup(p->forms, node_name(n)));
}

void hn_quant_plan_set_form(HnQuantPlan *p, const char *node, HnQuantForm form)
{
    if (form == HN_FORM_F32)
        g_hash_table_remove(p->forms, node);
    else
        g_hash_table_insert(p->forms, g_strdup(node), GINT_TO_POINTER(form));
}

const HnQuantSpan *hn_quant_plan_span(const HnQuantPlan *p, const HnValue *v)
{
    return g_hash_table_lookup(p->spans, v->name);
}

void hn_quant_plan_set_span(HnQuantPlan *p, const char *value, double lo, double hi)
{
    const HnQuantSpan span = { lo, hi };
    g_hash_table_insert(p->spans, g_strdup(value), g_memdup2(&span, sizeof span));
}

/* --- which nodes -------------------------------------------------------------------------------------------------- */

static gboolean is_f32(const HnValue *v)
{
    return v != NULL && v->type != NULL && v->type->kind == HN_TYPE_TENSOR && v->type->dtype == HN_F32;
}

static gboolean is_weight(const HnValue *v)
{
    return v != NULL && v->weight != NULL && !v->is_input && v->weight->dtype == HN_F32 && v->weight->n > 0;
}

static void add_candidate(HnNode *n, gpointer data)
{
    const HnValue *x = hn_node_in(n, 0), *y = hn_node_out(n, 0);
    if (n->op != NULL && n->op->quant.kind == HN_Q_WEIGHTED && is_weight(hn_node_in(n, 1)) && y != NULL && x != NULL &&
        x->weight == NULL && is_f32(x) && is_f32(y))
        g_ptr_array_add(data, n);
}

GPtrArray *hn_quant_candidates(HnModel *m)
{
    GPtrArray *found = g_ptr_array_new();
    hn_graph_foreach_node(m->graph, add_candidate, found);
    return found;
}

/* --- nodes between ------------------------------------------------------------------------------------------------ */

typedef struct {
    HnQuantPlan *p;
    gboolean changed;
} Spread;

/* Integers on its way in and out gain something: no sums over many, no functions that need numbers as they are. */
static gboolean may_spread(const HnNode *n)
{
    const HnQuantKind kind = n->op != NULL ? n->op->quant.kind : HN_Q_NONE;
    return (kind == HN_Q_PASS || kind == HN_Q_ELEMENTWISE || kind == HN_Q_FIXED_RANGE) && is_f32(hn_node_out(n, 0)) &&
           is_f32(hn_node_in(n, 0)) && n->out->len == 1;
}

static gboolean makes_integers(const HnQuantPlan *p, const HnValue *v)
{
    return v->producer != NULL && hn_quant_plan_form(p, v->producer) == HN_FORM_INT8;
}

/* Somebody reads v as integers. */
static gboolean is_wanted(const HnQuantPlan *p, const HnValue *v)
{
    for (guint i = 0; i < v->users->len; i++) {
        const HnNode *u = v->users->pdata[i];
        if (hn_quant_plan_form(p, u) == HN_FORM_INT8 && (u->op->quant.kind != HN_Q_WEIGHTED || hn_node_in(u, 0) == v))
            return TRUE;
    }
    return FALSE;
}

static gboolean fits(const HnQuantPlan *p, const HnNode *n)
{
    for (guint i = 0; i < n->in->len; i++) {
        const HnValue *v = n->in->pdata[i];
        if (is_f32(v) && v->weight == NULL && !makes_integers(p, v))
            return FALSE;
        if (is_f32(v) && v->weight != NULL && !n->op->quant.clamps)
            return FALSE; /* a constant operand would have to be quantized, too */
    }
    return is_wanted(p, hn_node_out(n, 0));
}

/* Begins with all that might, and takes away what does not fit until all do. */
static void mark(HnNode *n, gpointer data)
{
    Spread *s = data;
    if (may_spread(n))
        hn_quant_plan_set_form(s->p, node_name(n), HN_FORM_INT8);
}

static void unmark(HnNode *n, gpointer data)
{
    Spread *s = data;
    if (!may_spread(n) || hn_quant_plan_form(s->p, n) != HN_FORM_INT8 || fits(s->p, n))
        return;
    hn_quant_plan_set_form(s->p, node_name(n), HN_FORM_F32);
    s->changed = TRUE;
}

void hn_quant_spread(HnQuantPlan *p, HnModel *m)
{
    Spread s = { p, TRUE };
    hn_graph_foreach_node(m->graph, mark, &s);
    while (s.changed) {
        s.changed = FALSE;
        hn_graph_foreach_node(m->graph, unmark, &s);
    }
}

/* --- which tensors ------------------------------------------------------------------------------------------------ */

typedef struct {
    const HnQuantPlan *p;
    GPtrArray *found;
    GHashTable *seen;
} Wanted;

static void add_wanted(Wanted *w, HnValue *v)
{
    if (is_f32(v) && v->weight == NULL && g_hash_table_add(w->seen, v))
        g_ptr_array_add(w->found, v);
}

static void want(HnNode *n, gpointer data)
{
    Wanted *w = data;
    if (hn_quant_plan_form(w->p, n) != HN_FORM_INT8)
        return;
    add_wanted(w, hn_node_in(n, 0));
    for (guint i = 1; i < n->in->len && n->op->quant.kind != HN_Q_WEIGHTED; i++)
        add_wanted(w, n->in->pdata[i]);
    add_wanted(w, hn_node_out(n, 0));
}

GPtrArray *hn_quant_wanted(const HnQuantPlan *p, HnModel *m)
{
    Wanted w = { p, g_ptr_array_new(), g_hash_table_new(NULL, NULL) };
    hn_graph_foreach_node(m->graph, want, &w);
    g_hash_table_unref(w.seen);
    return w.found;
}
