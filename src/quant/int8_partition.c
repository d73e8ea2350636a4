#include "quant/int8_partition.h"

#include <math.h>
#include <string.h>

#define ELEMENT_MS 1.5e-7 /* of converting an element, where no conversion was measured */
#define NEVER 1e30        /* ms: what no cut goes through */
#define LEAST 1e-9        /* ms: less is nothing */

/* --- a network ---------------------------------------------------------------------------------------------------- */

enum { INTEGERS, FLOATS, FIRST_FREE }; /* places: the two sides, then nodes */

typedef struct {
    guint to;
    double left; /* of what may flow */
} Arc;           /* arc k ^ 1 is its way back */

typedef struct {
    GArray *arcs;      /* Arc */
    GPtrArray *leaves; /* GArray * of guint: arcs that leave each place */
} Net;

static guint add_place(Net *net)
{
    g_ptr_array_add(net->leaves, g_array_new(FALSE, FALSE, sizeof(guint)));
    return net->leaves->len - 1;
}

static void net_init(Net *net)
{
    net->arcs = g_array_new(FALSE, FALSE, sizeof(Arc));
    net->leaves = g_ptr_array_new_with_free_func((GDestroyNotify)g_array_unref);
    add_place(net);
    add_place(net);
}

static void net_clear(Net *net)
{
    g_array_unref(net->arcs);
    g_ptr_array_unref(net->leaves);
}

/* What it costs when `from` is of integers and `to` of floats. */
static void add_arc(Net *net, guint from, guint to, double ms)
{
    const Arc there = { to, ms }, back = { from, 0 };
    guint k = net->arcs->len;
    g_array_append_val(net->arcs, there);
    g_array_append_val(net->arcs, back);
    g_array_append_val((GArray *)net->leaves->pdata[from], k);
    k++;
    g_array_append_val((GArray *)net->leaves->pdata[to], k);
}

/* by[place]: 1 + the arc on the shortest way from INTEGERS that something may flow on; 0: none. TRUE: to FLOATS too. */
static gboolean find_way(const Net *net, guint *by)
{
    g_autofree guint *queue = g_new(guint, net->leaves->len);
    guint n = 1;
    memset(by, 0, net->leaves->len * sizeof *by);
    queue[0] = INTEGERS;
    for (guint i = 0; i < n; i++) {
        const GArray *leaves = net->leaves->pdata[queue[i]];
        for (guint e = 0; e < leaves->len; e++) {
            const guint k = g_array_index(leaves, guint, e);
            const Arc *a = &g_array_index(net->arcs, Arc, k);
            if (a->left <= LEAST || a->to == INTEGERS || by[a->to] != 0)
                continue;
            by[a->to] = k + 1;
            queue[n++] = a->to;
        }
    }
    return by[FLOATS] != 0;
}

/* side[place]: 0 where it is of floats; to be freed. */
static guint *cut(Net *net)
{
    guint *by = g_new(guint, net->leaves->len);
    while (find_way(net, by)) {
        double least = INFINITY;
        for (guint at = FLOATS; at != INTEGERS; at = g_array_index(net->arcs, Arc, (by[at] - 1) ^ 1).to)
            least = fmin(least, g_array_index(net->arcs, Arc, by[at] - 1).left);
        for (guint at = FLOATS; at != INTEGERS;) {
            const guint k = by[at] - 1;
            g_array_index(net->arcs, Arc, k).left -= least;
            g_array_index(net->arcs, Arc, k ^ 1).left += least;
            at = g_array_index(net->arcs, Arc, k ^ 1).to;
        }
    }
    return by;
}

/* --- the model as one --------------------------------------------------------------------------------------------- */

typedef struct {
    const HnQuantPlan *p; /* spread */
    const HnPartitionOptions *o;
    Net net;
    GHashTable *places; /* HnNode * -> place */
    GPtrArray *values;  /* HnValue * that integer nodes make or read */
    GHashTable *known;  /* the same */
    double element_ms;
} Region;

static double ms_of(const HnNodeTimes *t, const char *name)
{
    const HnNodeTime *at = hn_node_time(t, name);
    return at != NULL ? at->ms : 0;
}

static double integer_ms(const Region *r, const char *name)
{
    const double ms = hn_node_integer_ms(r->o->integers, name, r->p->o.integers);
    return isnan(ms) ? 0 : ms;
}

static gboolean is_integer(const HnQuantPlan *p, const HnNode *n)
{
    return n->op != NULL && hn_quant_plan_form(p, n) == HN_FORM_INT8;
}

static gboolean is_weighted(const HnNode *n)
{
    return n->op->quant.kind == HN_Q_WEIGHTED;
}

static gboolean is_f32(const HnValue *v)
{
    return v != NULL && v->weight == NULL && hn_type_dtype(v->type) == HN_F32;
}

/* n, which is a user of v, takes it as activations: a weight's node does so with its first input. */
static gboolean takes(const HnNode *n, const HnValue *v)
{
    return !is_weighted(n) || hn_node_in(n, 0) == v;
}

static void add_value(Region *r, HnValue *v)
{
    if (is_f32(v) && g_hash_table_add(r->known, v))
        g_ptr_array_add(r->values, v);
}

static void add_node(HnNode *n, gpointer data)
{
    Region *r = data;
    if (!is_integer(r->p, n))
        return;
    const char *name = hn_node_out(n, 0)->name;
    const gboolean pinned = r->o->pinned != NULL && g_hash_table_contains(r->o->pinned, name);
    const guint place = add_place(&r->net);
    const double *penalty = r->o->penalty != NULL ? g_hash_table_lookup(r->o->penalty, name) : NULL;
    const double ms = (1 - r->o->bonus) * integer_ms(r, name) + (penalty != NULL ? *penalty : 0);
    g_hash_table_insert(r->places, n, GUINT_TO_POINTER(place));
    add_arc(&r->net, INTEGERS, place, pinned ? NEVER : ms_of(r->o->f32, name));
    add_arc(&r->net, place, FLOATS, ms);
    for (guint i = 0; i < n->in->len && !(is_weighted(n) && i > 0); i++)
        add_value(r, n->in->pdata[i]);
    add_value(r, hn_node_out(n, 0));
}

static guint place_of(const Region *r, const HnNode *n)
{
    const guint place = n != NULL ? GPOINTER_TO_UINT(g_hash_table_lookup(r->places, n)) : 0;
    return place >= FIRST_FREE ? place : FLOATS;
}

/* What converting v once costs: as measured, where it was. */
static double conversion_ms(const Region *r, const HnValue *v)
{
    g_autofree char *made = g_strconcat(v->name, "_q", NULL);
    const HnNodeTime *seen = hn_node_time(r->o->integers, made), *f32 = hn_node_time(r->o->f32, v->name);
    if (seen != NULL && seen->ms > 0 && !r->p->o.integers)
        return seen->ms;
    return f32 != NULL ? f32->elements * r->element_ms : 0;
}

static void connect(Region *r, const HnValue *v)
{
    const guint from = place_of(r, v->producer);
    const double ms = conversion_ms(r, v);
    const guint to_integers = add_place(&r->net), to_floats = add_place(&r->net);
    add_arc(&r->net, to_integers, from, ms); /* of integers as soon as one that reads it is */
    if (from != FLOATS)
        add_arc(&r->net, from, to_floats, ms); /* of floats as soon as one that reads it is */
    for (guint i = 0; i < v->users->len; i++) {
        const HnNode *u = v->users->pdata[i];
        const guint place = place_of(r, u);
        if (place != FLOATS && takes(u, v))
            add_arc(&r->net, place, to_integers, NEVER);
        add_arc(&r->net, to_floats, place, NEVER);
    }
    if (v->is_output)
        add_arc(&r->net, to_floats, FLOATS, NEVER);
}

/* The mean over those that were measured. */
static double element_ms(const HnNodeTimes *t, gboolean operators)
{
    double ms = 0, elements = 0;
    if (operators)
        return ELEMENT_MS;
    GHashTableIter iter;
    gpointer name, at;
    g_hash_table_iter_init(&iter, t->nodes);
    while (g_hash_table_iter_next(&iter, &name, &at))
        if (g_str_has_suffix(name, "_q")) {
            ms += ((const HnNodeTime *)at)->ms;
            elements += ((const HnNodeTime *)at)->elements;
        }
    return elements > 0 ? ms / elements : ELEMENT_MS;
}

typedef struct {
    const Region *r;
    const guint *side;
    HnQuantPlan *chosen;
} Choice;

/* Of a node that converts for itself alone. */
static gboolean is_slower(const Region *r, const HnNode *n)
{
    const char *name = hn_node_out(n, 0)->name;
    const double *penalty = r->o->penalty != NULL ? g_hash_table_lookup(r->o->penalty, name) : NULL;
    return (r->o->pinned == NULL || !g_hash_table_contains(r->o->pinned, name)) &&
           (1 - r->o->bonus) * integer_ms(r, name) + (penalty != NULL ? *penalty : 0) > ms_of(r->o->f32, name);
}

static void choose(HnNode *n, gpointer data)
{
    Choice *c = data;
    const guint place = place_of(c->r, n);
    const gboolean dynamic = n->op != NULL && hn_quant_plan_form(c->r->p, n) == HN_FORM_DYNAMIC;
    if (dynamic ? !is_slower(c->r, n) : place == FLOATS || c->side[place] != 0)
        return;
    if (dynamic || is_weighted(n))
        hn_quant_plan_set_form(c->chosen, hn_node_out(n, 0)->name, HN_FORM_F32);
}

/* Nodes and values of p, spread, as a network. */
static void region_init(Region *r, HnQuantPlan *spread, HnModel *m, const HnPartitionOptions *o)
{
    hn_quant_spread(spread, m);
    *r = (Region){ .p = spread,
                   .o = o,
                   .places = g_hash_table_new(NULL, NULL),
                   .values = g_ptr_array_new(),
                   .known = g_hash_table_new(NULL, NULL),
                   .element_ms = element_ms(o->integers, spread->o.integers) };
    net_init(&r->net);
    hn_graph_foreach_node(m->graph, add_node, r);
}

static void region_clear(Region *r)
{
    net_clear(&r->net);
    g_hash_table_unref(r->places);
    g_ptr_array_unref(r->values);
    g_hash_table_unref(r->known);
}

HnQuantPlan *hn_partition_choose(const HnQuantPlan *p, HnModel *m, const HnPartitionOptions *o)
{
    g_autoptr(HnQuantPlan) spread = hn_quant_plan_copy(p);
    Region r;
    region_init(&r, spread, m, o);
    for (guint i = 0; i < r.values->len; i++)
        connect(&r, r.values->pdata[i]);
    g_autofree guint *side = cut(&r.net);
    Choice c = { &r, side, hn_quant_plan_copy(p) };
    hn_graph_foreach_node(m->graph, choose, &c);
    region_clear(&r);
    return c.chosen;
}

/* v is made in one form and read in the other. */
static gboolean is_border(const Region *r, const HnValue *v)
{
    const gboolean made = place_of(r, v->producer) != FLOATS;
    gboolean other = made && v->is_output;
    for (guint i = 0; i < v->users->len; i++) {
        const HnNode *u = v->users->pdata[i];
        const gboolean read = place_of(r, u) != FLOATS && takes(u, v);
        other = other || read != made;
    }
    return other;
}

typedef struct {
    const Region *r;
    double ms;
} Sum;

static void add_ms(HnNode *n, gpointer data)
{
    Sum *s = data;
    if (n->op == NULL || (place_of(s->r, n) == FLOATS && hn_quant_plan_form(s->r->p, n) != HN_FORM_DYNAMIC))
        return;
    const char *name = hn_node_out(n, 0)->name;
    s->ms += integer_ms(s->r, name) - ms_of(s->r->o->f32, name);
}

double hn_partition_ms(const HnQuantPlan *p, HnModel *m, const HnPartitionOptions *o)
{
    g_autoptr(HnQuantPlan) spread = hn_quant_plan_copy(p);
    Region r;
    region_init(&r, spread, m, o);
    Sum s = { &r, o->f32->total_ms };
    hn_graph_foreach_node(m->graph, add_ms, &s);
    for (guint i = 0; i < r.values->len; i++)
        if (is_border(&r, r.values->pdata[i]))
            s.ms += conversion_ms(&r, r.values->pdata[i]);
    region_clear(&r);
    return s.ms;
}

/* --- regions ------------------------------------------------------------------------------------------------------ */

typedef struct {
    const HnQuantPlan *p;
    GHashTable *number; /* HnNode * -> region */
    guint regions;
} Chains;

/* Everything that hangs together with n by values gets its number. */
static void reach(Chains *c, HnNode *start)
{
    g_autoptr(GPtrArray) open = g_ptr_array_new();
    g_ptr_array_add(open, start);
    while (open->len > 0) {
        HnNode *n = g_ptr_array_steal_index_fast(open, open->len - 1);
        if (!is_integer(c->p, n) || g_hash_table_contains(c->number, n))
            continue;
        g_hash_table_insert(c->number, n, GUINT_TO_POINTER(c->regions));
        for (guint i = 0; i < n->in->len && !(is_weighted(n) && i > 0); i++) {
            const HnValue *v = n->in->pdata[i];
            if (v != NULL && v->producer != NULL)
                g_ptr_array_add(open, v->producer);
        }
        const HnValue *y = hn_node_out(n, 0);
        for (guint i = 0; i < y->users->len; i++) {
            HnNode *u = y->users->pdata[i];
            if (u->op != NULL && takes(u, y))
                g_ptr_array_add(open, u);
        }
    }
}

static void add_chain(HnNode *n, gpointer data)
{
    Chains *c = data;
    if (!is_integer(c->p, n) || g_hash_table_contains(c->number, n))
        return;
    c->regions++;
    reach(c, n);
}

GHashTable *hn_partition_regions(const HnQuantPlan *p, HnModel *m)
{
    g_autoptr(HnQuantPlan) spread = hn_quant_plan_copy(p);
    GHashTable *names = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    GHashTableIter iter;
    gpointer node, region;
    hn_quant_spread(spread, m);
    Chains c = { spread, g_hash_table_new(NULL, NULL), 0 };
    hn_graph_foreach_node(m->graph, add_chain, &c);
    g_hash_table_iter_init(&iter, c.number);
    while (g_hash_table_iter_next(&iter, &node, &region))
        if (is_weighted(node))
            g_hash_table_insert(names, g_strdup(hn_node_out(node, 0)->name), region);
    g_hash_table_unref(c.number);
    return names;
}

double hn_node_integer_ms(const HnNodeTimes *t, const char *name, gboolean operators)
{
    const char *const parts[] = { "", "_sums", operators ? "_q" : NULL };
    double ms = NAN;
    for (gsize i = 0; i < G_N_ELEMENTS(parts); i++) {
        g_autofree char *part = g_strconcat(name, parts[i], NULL);
        const HnNodeTime *at = parts[i] != NULL ? hn_node_time(t, part) : NULL;
        if (at != NULL)
            ms = (isnan(ms) ? 0 : ms) + at->ms;
    }
    return ms;
}
