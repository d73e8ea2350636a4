#include "quant/quant_plan.h"

#include <math.h>
#include <string.h>

#include "op/gather.h"
#include "op/linear.h"
#include "op/ops.h"
#include "op/transpose.h"
#include "quant/rounding.h"

#define LEAST_TABLE 4096 /* elements: a smaller one is not worth two nodes */
#define LEAST_WEIGHT 128 /* the same, of weights alone */
#define LEAST_BLOCK 16

static const char *const form_names[] = { "f32", "int8", "w8", "w4", "dynamic" };

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
    p->integers = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, (GDestroyNotify)hn_rounded_unref);
    p->shifts = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, (GDestroyNotify)hn_tensor_unref);
    return p;
}

void hn_quant_plan_free(HnQuantPlan *p)
{
    if (p == NULL)
        return;
    g_hash_table_unref(p->forms);
    g_hash_table_unref(p->spans);
    g_hash_table_unref(p->integers);
    g_hash_table_unref(p->shifts);
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
    g_hash_table_iter_init(&iter, p->integers);
    while (g_hash_table_iter_next(&iter, &name, &value))
        g_hash_table_insert(c->integers, g_strdup(name), hn_rounded_ref(value));
    g_hash_table_iter_init(&iter, p->shifts);
    while (g_hash_table_iter_next(&iter, &name, &value))
        g_hash_table_insert(c->shifts, g_strdup(name), hn_tensor_ref(value));
    return c;
}

static const HnValue *first_out(const HnNode *n)
{
    const HnValue *v = NULL;
    for (guint k = 0; k < n->out->len && v == NULL; k++)
        v = n->out->pdata[k];
    return v;
}

const char *hn_quant_name(const HnNode *n)
{
    const HnValue *v = first_out(n);
    return v != NULL ? v->name : "";
}

HnQuantForm hn_quant_plan_form(const HnQuantPlan *p, const HnNode *n)
{
    return (HnQuantForm)GPOINTER_TO_INT(g_hash_table_lookup(p->forms, hn_quant_name(n)));
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
    return v != NULL && hn_type_dtype(v->type) == HN_F32;
}

static HnValue *weight_of(HnValue *v)
{
    return v != NULL && v->weight != NULL && !v->is_input && v->weight->dtype == HN_F32 && v->weight->n > 0 ? v : NULL;
}

gboolean hn_quant_is_turned(const HnNode *n)
{
    const HnValue *v = hn_node_in(n, 1);
    const HnNode *t = v != NULL ? v->producer : NULL;
    if (n->op == NULL || n->op->quant.kind != HN_Q_WEIGHTED || t == NULL || t->op != &hn_op_transpose)
        return FALSE;
    const HnTranspose *p = t->params;
    return t->graph == n->graph && v->type != NULL && v->type->rank == 2 && (p->perm == NULL || p->perm[0] == 1);
}

static gboolean is_recurrent(const HnNode *n)
{
    return n->op != NULL && n->op->channels.kind == HN_CH_RECURRENT;
}

HnValue *hn_quant_weight(const HnNode *n)
{
    HnValue *v;
    if (n->op == NULL)
        return NULL;
    for (int i = 1; i < 3 && is_recurrent(n); i++) {
        v = weight_of(hn_node_in(n, i));
        if (v != NULL && v->weight->ndim == 3)
            return v;
    }
    if (hn_op_is_lookup(n->op)) {
        v = ((const HnGather *)n->params)->axis == 0 ? weight_of(hn_node_in(n, 0)) : NULL;
        return v != NULL && v->weight->ndim == 2 && v->weight->n >= LEAST_TABLE ? v : NULL;
    }
    if (n->op->quant.kind != HN_Q_WEIGHTED)
        return NULL;
    v = hn_node_in(n, 1);
    return weight_of(hn_quant_is_turned(n) ? hn_node_in(v->producer, 0) : v);
}

int hn_quant_scale_axis(const HnNode *n, int rank)
{
    if (hn_op_is_lookup(n->op))
        return 0;
    if (is_recurrent(n))
        return 1;
    HnLinearView l;
    if (!hn_op_linear(n, &l))
        return -1;
    int axis = l.out + (l.out < 0 ? rank : 0);
    if (rank == 2 && hn_quant_is_turned(n))
        axis = 1 - axis;
    return axis < rank && rank > 1 ? axis : -1;
}

/* Infinity and NaN have no integer. */
static gboolean all_finite(const HnTensor *w)
{
    for (int64_t i = 0; i < w->n; i++) {
        float x; /* the file's elements need not be aligned */
        memcpy(&x, (const char *)w->data + (gsize)i * sizeof x, sizeof x);
        if (!isfinite(x))
            return FALSE;
    }
    return TRUE;
}

static void add_candidate(HnNode *n, gpointer data)
{
    const HnValue *x = hn_node_in(n, 0), *y = first_out(n);
    if (n->op == NULL || !is_f32(y) || hn_quant_weight(n) == NULL)
        return;
    if (!hn_op_is_lookup(n->op) && (x->weight != NULL || !is_f32(x)))
        return;
    if (all_finite(hn_quant_weight(n)->weight))
        g_ptr_array_add(data, n);
}

static gboolean is_dynamic(const HnNode *n, const HnTensor *w)
{
    HnLinearView l;
    if (!hn_op_linear(n, &l) || l.adjoint)
        return FALSE;
    return l.window == NULL || (w->ndim > 2 && (l.b == NULL || l.b->weight != NULL));
}

/* Weights of several matrices. */
static gboolean is_batch(const HnNode *n, const HnTensor *w)
{
    HnLinearView l;
    return w->ndim > 2 && hn_op_linear(n, &l) && l.window == NULL;
}

int hn_quant_block(int64_t size, int most)
{
    for (int block = most; block >= LEAST_BLOCK; block--)
        if (size % block == 0)
            return block;
    return 0;
}

HnQuantForm hn_quant_form_fit(const HnNode *n, HnQuantForm wanted, const HnQuantOptions *o)
{
    const HnValue *v = hn_quant_weight(n);
    const HnTensor *w = v != NULL ? v->weight : NULL;
    const int axis = w != NULL ? hn_quant_scale_axis(n, w->ndim) : -1;
    HnQuantForm form = wanted;
    if (w == NULL)
        return HN_FORM_F32;
    if (form == HN_FORM_INT8 && n->op->quant.kind != HN_Q_WEIGHTED)
        form = HN_FORM_W8;
    if (form == HN_FORM_DYNAMIC && !is_dynamic(n, w))
        form = HN_FORM_W8;
    if (form == HN_FORM_W4 && (axis < 0 || axis > 1 || is_recurrent(n) || is_batch(n, w)))
        form = HN_FORM_W8;
    if (form == HN_FORM_W4 && hn_quant_block(w->dims[1 - axis], o->block) == 0)
        form = HN_FORM_W8;
    return form == HN_FORM_W8 && w->n < LEAST_WEIGHT ? HN_FORM_F32 : form;
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
    GQueue open;        /* HnNode *: to be looked at */
    GHashTable *marked; /* HnNode * -> 1 + whether it is open */
} Spread;

/* Integers on its way in and out gain something: no sums over many, no functions that need numbers as they are. */
static gboolean may_spread(const HnNode *n)
{
    if (hn_quant_weight(n) != NULL)
        return FALSE;
    const HnQuantKind kind = n->op != NULL ? n->op->quant.kind : HN_Q_NONE;
    const HnValue *first = hn_node_in(n, 0);
    int operands = 0;
    for (guint i = 0; i < n->in->len; i++)
        operands += is_f32(n->in->pdata[i]) && ((const HnValue *)n->in->pdata[i])->weight == NULL;
    for (guint k = 0; k < n->out->len; k++)
        if (!is_f32(n->out->pdata[k]))
            return FALSE;
    /* functions of one operand are tables; all else has to be something that works on bytes */
    const gboolean on_bytes = n->op != NULL && (n->op->quant.bytes != HN_QB_NONE || (n->op->flags & HN_OP_VIEW) != 0 ||
                                                ((n->op->flags & HN_OP_ELEMENTWISE) != 0 && operands == 1));
    if (first != NULL && first->weight != NULL) /* files need not say a constant's type */
        first = operands > 0 && first->weight->dtype == HN_F32 ? hn_node_in(n, 1) : NULL;
    if (!on_bytes || !is_f32(first) || n->out->len == 0)
        return FALSE;
    return kind == HN_Q_PASS || kind == HN_Q_ELEMENTWISE || kind == HN_Q_FIXED_RANGE;
}

static gboolean makes_integers(const HnQuantPlan *p, const HnValue *v)
{
    return v->producer != NULL && hn_quant_plan_form(p, v->producer) == HN_FORM_INT8;
}

/* A constant of several numbers that n has, other than limits and a product's bias, would have to be quantized, too. */
static gboolean takes_constants(const HnNode *n)
{
    if (n->op->quant.clamps || hn_op_is_bias(n))
        return TRUE;
    for (guint i = 0; i < n->in->len; i++) {
        const HnValue *v = n->in->pdata[i];
        if (is_f32(v) && v->weight != NULL && v->weight->n != 1)
            return FALSE;
    }
    return TRUE;
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
    if (!takes_constants(n))
        return FALSE;
    for (guint i = 0; i < n->in->len; i++) {
        const HnValue *v = n->in->pdata[i];
        if (is_f32(v) && v->weight == NULL && !makes_integers(p, v))
            return FALSE;
    }
    for (guint k = 0; k < n->out->len; k++)
        if (is_wanted(p, n->out->pdata[k]))
            return TRUE;
    return FALSE;
}

/* Begins with all that might, and takes away what does not fit until all do. */
static void mark(HnNode *n, gpointer data)
{
    Spread *s = data;
    if (!may_spread(n))
        return;
    hn_quant_plan_set_form(s->p, hn_quant_name(n), HN_FORM_INT8);
    g_hash_table_insert(s->marked, n, GINT_TO_POINTER(1 + TRUE));
    g_queue_push_tail(&s->open, n);
}

/* n is looked at once more. */
static void reopen(Spread *s, HnNode *n)
{
    if (n == NULL || GPOINTER_TO_INT(g_hash_table_lookup(s->marked, n)) != 1 + FALSE)
        return;
    g_hash_table_insert(s->marked, n, GINT_TO_POINTER(1 + TRUE));
    g_queue_push_tail(&s->open, n);
}

/* Those around n fit because it was marked, if they do. */
static void unmark(Spread *s, HnNode *n)
{
    hn_quant_plan_set_form(s->p, hn_quant_name(n), HN_FORM_F32);
    g_hash_table_remove(s->marked, n);
    for (guint i = 0; i < n->in->len; i++)
        if (n->in->pdata[i] != NULL)
            reopen(s, ((const HnValue *)n->in->pdata[i])->producer);
    for (guint k = 0; k < n->out->len; k++) {
        const HnValue *v = n->out->pdata[k];
        for (guint i = 0; v != NULL && i < v->users->len; i++)
            reopen(s, v->users->pdata[i]);
    }
}

void hn_quant_spread(HnQuantPlan *p, HnModel *m)
{
    Spread s = { p, G_QUEUE_INIT, g_hash_table_new(NULL, NULL) };
    HnNode *n;
    hn_graph_foreach_node(m->graph, mark, &s);
    while ((n = g_queue_pop_head(&s.open)) != NULL) { /* an open node is a marked one */
        g_hash_table_insert(s.marked, n, GINT_TO_POINTER(1 + FALSE));
        if (!fits(p, n))
            unmark(&s, n);
    }
    g_hash_table_unref(s.marked);
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
    for (guint k = 0; k < n->out->len; k++)
        add_wanted(w, n->out->pdata[k]);
}

GPtrArray *hn_quant_wanted(const HnQuantPlan *p, HnModel *m)
{
    Wanted w = { p, g_ptr_array_new(), g_hash_table_new(NULL, NULL) };
    hn_graph_foreach_node(m->graph, want, &w);
    g_hash_table_unref(w.seen);
    return w.found;
}
