/*
 * Conversion of precision: what a half would not hold.
 *
 * A large negative constant is mostly a mask: it is added or chosen where a softmax shall not look. Masks are not
 * overflows as long as only such operators see them that treat a smaller mask the same: those that work element by
 * element, that move elements, and softmax.
 */
#include <math.h>

#include "pass/precision/precision_plan.h"
#include "pass/rewrite.h"

#define MAX_ROUNDS 8
#define EXPONENT 256 /* an f16 near it is off by up to 1/16, and e to the power of it by 6 % */

typedef struct {
    HnPrecisionPlan *p;
    const HnRanges *ranges;
    double largest, least; /* that values may have */
    gboolean *masked;      /* by HnValue.id: holds masks that came from a constant */
    gboolean changed;
} Look;

static void keep(Look *l, int port, HnKept kept, const char *name, const char *what, double x)
{
    l->changed = hn_precision_keep(l->p, port, kept,
                                   g_strdup_printf("%s '%s' %s %.3g", name, what,
                                                   kept == HN_KEPT_SMALL ? "is as small as" : "reaches", x)) ||
                 l->changed;
}

static const HnOp *op_of(const HnPortNode *pn)
{
    return pn->node->op;
}

/* The node treats a mask and a smaller one alike at this port. */
static gboolean takes_masks(const Look *l, const HnPortNode *pn, int port)
{
    const HnPortSet *s = hn_precision_set(l->p, port);
    const HnOp *op = op_of(pn);
    return s->kept == HN_KEPT_NOT && op != NULL &&
           ((op->flags & HN_OP_ELEMENTWISE) != 0 || s->mover || op->range.kind == HN_R_EXPONENTS);
}

static gboolean is_bound(const Look *l, const HnPortNode *pn, int port)
{
    const HnOp *op = op_of(pn);
    return op == &hn_op_clip || op == &hn_op_max || op == &hn_op_min || hn_precision_set(l->p, port)->mover;
}

static gboolean range_of(const Look *l, const HnValue *v, HnRange *r)
{
    HnTensor *t = hn_precision_constant(v);
    if (t != NULL) {
        hn_range_of(t, r);
        return TRUE;
    }
    const HnRange *seen = hn_ranges_get(l->ranges, v->name);
    if (seen != NULL)
        *r = *seen;
    return seen != NULL;
}

/* A mask times this is a mask or 0. */
static gboolean is_switch(const Look *l, const HnValue *v)
{
    HnRange r;
    return v == NULL || !range_of(l, v, &r) || r.largest == 0 || (r.largest == 1 && r.smallest == 1);
}

static gboolean is_addend(const HnPortNode *pn, int i)
{
    return op_of(pn) != NULL && i < 8 && (op_of(pn)->range.addends >> i & 1) != 0;
}

/* Looks at a weight that the node reads. TRUE: it brings masks into what the node makes. */
static gboolean look_at_weight(Look *l, const HnPortNode *pn, int i, const HnValue *v, const HnTensor *t)
{
    const int port = pn->port[i];
    HnRange r;
    hn_range_of(t, &r);
    if (r.largest > l->largest && !is_bound(l, pn, port))
        keep(l, port, HN_KEPT_WEIGHT, "weight", v->name, r.largest);
    /* a single number that is lost is wrong (an epsilon, say); of many the largest count, and not those of a bias */
    else if (r.largest > 0 && r.largest < (t->n == 1 ? l->least / 8 : is_addend(pn, i) ? 0 : l->least))
        keep(l, port, HN_KEPT_WEIGHT, "weight", v->name, r.largest);
    if (r.n_mask == 0 || l->p->o->to != HN_F16)
        return FALSE;
    const gboolean product = op_of(pn) == &hn_op_mul;
    if (takes_masks(l, pn, port) && (!product || is_switch(l, hn_node_in(pn->node, 1 - i))))
        return TRUE;
    if (!is_bound(l, pn, port))
        keep(l, port, HN_KEPT_WEIGHT, "weight", v->name, HN_MASK);
    return FALSE;
}

/* The port's value as a half: does it fit? */
static void look_at_value(Look *l, int port, const HnValue *v, gboolean masks)
{
    const HnRange *r = hn_ranges_get(l->ranges, v->name);
    if (r == NULL || port < 0)
        return;
    const double headroom = l->p->o->headroom > 0 ? l->p->o->headroom : HN_HEADROOM;
    if (r->largest * headroom > l->largest)
        keep(l, port, HN_KEPT_OVERFLOW, "value", v->name, r->largest);
    else if (r->n_mask > 0 && !masks && l->p->o->to == HN_F16)
        keep(l, port, HN_KEPT_OVERFLOW, "value", v->name, HN_MASK);
    else if (r->largest > 0 && r->largest < l->least)
        keep(l, port, HN_KEPT_SMALL, "value", v->name, r->largest);
}

static void look_inside(Look *l, const HnPortNode *pn)
{
    const HnValue *v = hn_node_out(pn->node, 0);
    const HnRange *r = v != NULL ? hn_ranges_get(l->ranges, v->name) : NULL;
    const double headroom = l->p->o->headroom > 0 ? l->p->o->headroom : HN_HEADROOM;
    if (r == NULL || r->inside_what == NULL || !(r->inside * headroom > l->largest))
        return;
    for (guint k = 0; k < pn->node->in->len + pn->node->out->len; k++)
        l->changed = hn_precision_keep(l->p, pn->port[k], HN_KEPT_INSIDE,
                                       g_strdup_printf("%s inside reaches %.3g", r->inside_what, r->inside)) ||
                     l->changed;
}

static void look_at_divisor(Look *l, const HnPortNode *pn, int i, const HnValue *v)
{
    HnRange r, power;
    if (op_of(pn) == &hn_op_pow && range_of(l, hn_node_in(pn->node, 1), &power) && power.smallest >= 1 &&
        !power.negative)
        return;
    if (op_of(pn) == NULL || i >= 8 || (op_of(pn)->range.divisors >> i & 1) == 0 || !range_of(l, v, &r) ||
        r.smallest >= l->least)
        return;
    keep(l, pn->port[i], HN_KEPT_SMALL, "divisor", v->name, r.smallest);
    if (l->p->of_value[v->id] >= 0) /* who makes it must not round it away before */
        keep(l, l->p->of_value[v->id], HN_KEPT_SMALL, "divisor", v->name, r.smallest);
}

/* An exponent that is large has no digits left behind the point. */
static void look_at_exponents(Look *l, const HnPortNode *pn)
{
    const HnValue *v = hn_node_in(pn->node, 0);
    const HnRange *r = v != NULL ? hn_ranges_get(l->ranges, v->name) : NULL;
    if (r == NULL || op_of(pn) == NULL || op_of(pn)->range.kind != HN_R_EXPONENTS || l->p->o->to != HN_F16 ||
        r->largest <= EXPONENT)
        return;
    keep(l, pn->port[0], HN_KEPT_COARSE, "exponent", v->name, r->largest);
    if (l->p->of_value[v->id] >= 0)
        keep(l, l->p->of_value[v->id], HN_KEPT_COARSE, "exponent", v->name, r->largest);
}

static void look_at_node(Look *l, const HnPortNode *pn)
{
    const HnNode *n = pn->node;
    gboolean masks = FALSE;
    for (guint i = 0; i < n->in->len; i++) {
        const HnValue *v = hn_node_in(n, (int)i);
        const int port = pn->port[i];
        if (v == NULL || port < 0)
            continue;
        const HnTensor *t = hn_precision_constant(v);
        const gboolean accepts = t == NULL && v->id < l->p->n_values && l->masked[v->id] && takes_masks(l, pn, port);
        if (t != NULL)
            masks = look_at_weight(l, pn, (int)i, v, t) || masks;
        else
            look_at_value(l, port, v, accepts);
        look_at_divisor(l, pn, (int)i, v);
        masks = masks || accepts;
    }
    masks = masks && op_of(pn)->range.kind != HN_R_EXPONENTS;
    for (guint k = 0; k < n->out->len; k++) {
        const HnValue *v = hn_node_out(n, (int)k);
        const int port = pn->port[n->in->len + k];
        if (v == NULL || port < 0)
            continue;
        l->masked[v->id] = masks && hn_precision_set(l->p, port)->kept == HN_KEPT_NOT;
        look_at_value(l, port, v, masks);
    }
    look_inside(l, pn);
    look_at_exponents(l, pn);
}

/* What a graph takes in and gives out. */
static void look_at_edges(Look *l, const HnGraph *g)
{
    const int *port = g_hash_table_lookup(l->p->outputs, g);
    for (guint k = 0; port != NULL && k < g->outputs->len; k++) {
        const HnValue *v = g->outputs->pdata[k];
        look_at_value(l, port[k], v, v->id < l->p->n_values && l->masked[v->id]);
    }
    for (guint i = 0; i < g->inputs->len; i++) {
        const HnValue *v = g->inputs->pdata[i];
        if (l->p->of_value[v->id] >= 0)
            look_at_value(l, l->p->of_value[v->id], v, FALSE);
    }
    for (guint i = 0; i < g->inner->len; i++)
        look_at_edges(l, g->inner->pdata[i]);
}

void hn_precision_keep_ranges(HnPrecisionPlan *p)
{
    Look l = { .p = p,
               .ranges = p->o->ranges,
               .largest = hn_precision_largest(p->o->to),
               .least = hn_precision_least(p->o->to),
               .changed = TRUE };
    l.masked = g_new0(gboolean, p->n_values + 1u);
    for (int round = 0; round < MAX_ROUNDS && l.changed; round++) { /* what stays as it is hands on no masks */
        l.changed = FALSE;
        for (guint i = 0; i < p->nodes->len; i++)
            look_at_node(&l, p->nodes->pdata[i]);
        look_at_edges(&l, p->model->graph);
    }
    g_free(l.masked);
}

double hn_precision_headroom(const HnPrecisionPlan *p, const HnPortNode *pn)
{
    const HnNode *n = pn->node;
    const guint n_in = n->in->len;
    double most = -1;
    for (guint k = 0; k < n_in + n->out->len; k++) {
        const HnValue *v = k < n_in ? n->in->pdata[k] : n->out->pdata[k - n_in];
        const HnRange *r = v != NULL && pn->port[k] != HN_PORT_NONE ? hn_ranges_get(p->o->ranges, v->name) : NULL;
        if (r != NULL)
            most = MAX(most, MAX(r->largest, k == n_in && r->inside_what != NULL ? r->inside : 0));
    }
    return most < 0 ? (double)NAN : most == 0 ? (double)INFINITY : hn_precision_largest(p->o->to) / most;
}
