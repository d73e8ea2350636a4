/*
 * Transposes move through operators that do not mind (pass/lib/carry.h) to where they meet their inverse, another of
 * the same, a constant or a reduction, if fewer of them, and none for more elements, are left then.
 *
 * For each permutation q: a connected set of such nodes is laid out in one of two ways, node by node: as it is, or with
 * every value stored the way it is in front of a Transpose by q. A value that is made in the one way and read in the
 * other costs a Transpose; results of Transposes by q, and what Transposes by its inverse read, come in the other way
 * for nothing, as do constants. A smallest cut between the two ways is the best layout.
 */
#include "op/transpose.h"
#include "pass/lib/carry.h"
#include "pass/lib/cut.h"

#define MOST_ORDERS 32 /* permutations of one graph that are looked at */

typedef enum { OTHER, OPENS, CLOSES, TURNS, ENDS, CARRIES } Role; /* Transposes: by q, by its inverse, by another */

typedef struct {
    HnRewrite *r;
    HnGraph *g;
    HnOrder q, inverse;
    GHashTable *place;  /* HnNode * -> number in g->nodes, plus 1 */
    GHashTable *closes; /* HnNode *: where q is its own inverse, those that undo it */
    GHashTable *seen;   /* HnNode *, HnValue *: in one of the sets */
    /* one set */
    HnCut *cut;
    GHashTable *vertex; /* HnNode * of CARRIES, HnValue * of TURNS -> vertex */
    GPtrArray *nodes, *values;
    GHashTable *stored; /* HnValue * -> HnValue *: as it is stored in the other way */
} Push;

static Role role_of(const Push *p, const HnNode *n)
{
    HnOrder o;
    if (n == NULL || n->graph != p->g || n->op == NULL)
        return OTHER;
    if (n->op == &hn_op_transpose) {
        if (!hn_order_of(p->r, n, &o) || o.rank != p->q.rank)
            return OTHER;
        gboolean opens = hn_order_equal(&o, &p->q), closes = hn_order_equal(&o, &p->inverse);
        if (opens && closes)
            return g_hash_table_contains(p->closes, n) ? CLOSES : OPENS;
        return opens ? OPENS : closes ? CLOSES : TURNS;
    }
    if (hn_carry_can(p->r, n, &p->q))
        return CARRIES;
    return hn_carry_ends(p->r, n, &p->q) ? ENDS : OTHER;
}

/* n reads v as data; *otherwise: also in another way. */
static gboolean reads(const Push *p, const HnNode *n, const HnValue *v, gboolean *otherwise)
{
    gboolean data = FALSE;
    *otherwise = FALSE;
    for (guint i = 0; i < n->in->len; i++)
        if (n->in->pdata[i] == v) {
            if (hn_carry_is_data(p->r, n, (int)i, p->q.rank))
                data = TRUE;
            else
                *otherwise = TRUE;
        }
    return data;
}

/* --- one set ------------------------------------------------------------------------------------------------------ */

static void add_value(Push *p, HnValue *v)
{
    if (v != NULL && hn_rw_known(p->r, v) == NULL && g_hash_table_add(p->seen, v))
        g_ptr_array_add(p->values, v);
}

static void add_node(Push *p, HnNode *n)
{
    if (n == NULL || role_of(p, n) != CARRIES || !g_hash_table_add(p->seen, n))
        return;
    g_ptr_array_add(p->nodes, n);
    g_hash_table_insert(p->vertex, n, GUINT_TO_POINTER(hn_cut_vertex(p->cut)));
    for (guint i = 0; i < n->in->len; i++)
        if (hn_carry_is_data(p->r, n, (int)i, p->q.rank))
            add_value(p, n->in->pdata[i]);
    for (guint k = 0; k < n->out->len; k++)
        add_value(p, n->out->pdata[k]);
}

/* All that hangs together with v by nodes that carry. */
static void grow(Push *p, HnValue *v)
{
    gboolean otherwise;
    add_value(p, v);
    for (guint i = 0; i < p->values->len; i++) {
        v = p->values->pdata[i];
        add_node(p, v->producer);
        for (guint u = 0; u < v->users->len; u++) {
            HnNode *n = v->users->pdata[u];
            if (n->graph == p->g && reads(p, n, v, &otherwise))
                add_node(p, n);
        }
    }
}

/* The way in which v is made: a vertex. */
static guint made(Push *p, HnValue *v)
{
    switch (role_of(p, v->producer)) {
    case OPENS:
        return HN_CUT_SINK;
    case CARRIES:
        return GPOINTER_TO_UINT(g_hash_table_lookup(p->vertex, v->producer));
    case TURNS: {
        guint vertex = GPOINTER_TO_UINT(g_hash_table_lookup(p->vertex, v));
        if (vertex == 0) {
            vertex = hn_cut_vertex(p->cut);
            g_hash_table_insert(p->vertex, v, GUINT_TO_POINTER(vertex));
        }
        return vertex;
    }
    default:
        return HN_CUT_SOURCE;
    }
}

/* Calls f with each way in which v is read. */
typedef void (*WayFn)(Push *p, guint way, gpointer data);
static void each_reader(Push *p, HnValue *v, WayFn f, gpointer data)
{
    gboolean otherwise = FALSE;
    if (v->is_output)
        f(p, HN_CUT_SOURCE, data);
    for (guint u = 0; u < v->users->len; u++) {
        const HnNode *n = v->users->pdata[u];
        switch (role_of(p, n)) {
        case CARRIES:
            if (reads(p, n, v, &otherwise))
                f(p, GPOINTER_TO_UINT(g_hash_table_lookup(p->vertex, n)), data);
            if (otherwise)
                f(p, HN_CUT_SOURCE, data);
            break;
        case CLOSES:
            f(p, HN_CUT_SINK, data);
            break;
        case TURNS:
        case ENDS:
            break; /* takes it as it comes */
        default:
            f(p, HN_CUT_SOURCE, data);
        }
    }
}

typedef struct {
    guint to, from; /* vertices of a value: that one Transpose to the other way, and from it, costs once */
} Ways;

static void add_way(Push *p, guint way, gpointer data)
{
    const Ways *w = data;
    if (way != HN_CUT_SOURCE)
        hn_cut_edge(p->cut, w->to, way, HN_CUT_NEVER);
    if (way != HN_CUT_SINK)
        hn_cut_edge(p->cut, way, w->from, HN_CUT_NEVER);
}

static void add_costs(Push *p)
{
    for (guint i = 0; i < p->values->len; i++) {
        HnValue *v = p->values->pdata[i];
        guint way = made(p, v);
        Ways w = { hn_cut_vertex(p->cut), hn_cut_vertex(p->cut) };
        hn_cut_edge(p->cut, way, w.to, 1);
        hn_cut_edge(p->cut, w.from, way, 1);
        each_reader(p, v, add_way, &w);
    }
}

typedef struct {
    gboolean cut, way[2]; /* read as it is, and in the other way */
} Readers;

static void note_way(Push *p, guint way, gpointer data)
{
    Readers *s = data;
    s->way[way == HN_CUT_SINK || (s->cut && way != HN_CUT_SOURCE && hn_cut_second(p->cut, way))] = TRUE;
}

/* Transposes, and elements that they move (symbolic sizes count as 1): as it is, or behind the cut. */
static void count(Push *p, gboolean cut, int64_t *n, double *elements)
{
    *n = 0;
    *elements = 0;
    for (guint i = 0; i < p->values->len; i++) {
        HnValue *v = p->values->pdata[i];
        guint way = made(p, v);
        gboolean other = way == HN_CUT_SINK || (cut && way != HN_CUT_SOURCE && hn_cut_second(p->cut, way));
        Readers s = { .cut = cut };
        each_reader(p, v, note_way, &s);
        if (!s.way[!other])
            continue;
        double size = 1;
        for (int a = 0; a < p->q.rank; a++) {
            HnDim d = hn_rw_dim(p->r, v, a);
            size *= d.known ? (double)d.n : 1;
        }
        *n += 1;
        *elements += size;
    }
}

/* --- edits -------------------------------------------------------------------------------------------------------- */

static HnNode *add_transpose(Push *p, HnNode *before, HnValue *x, const int *axes)
{
    int64_t perm[HN_MAX_RANK];
    for (int a = 0; a < p->q.rank; a++)
        perm[a] = axes[a];
    HnNode *t = hn_rw_add(p->r, before, "Transpose", HN_INS(x));
    hn_node_set_ints(t, "perm", perm, p->q.rank);
    return t;
}

/* v as it is stored in the other way, for n. */
static HnValue *stored(Push *p, HnValue *v, HnNode *n)
{
    HnValue *s = g_hash_table_lookup(p->stored, v);
    HnNode *m = v->producer;
    const HnTensor *t = hn_rw_const(p->r, v);
    HnOrder o;
    if (s != NULL)
        return s;
    if (t != NULL) {
        s = hn_rw_weight(p->r, p->g, v->name, hn_carry_constant(p->r, t, &p->q));
    } else if (role_of(p, m) == OPENS) {
        s = hn_node_in(m, 0);
    } else if (role_of(p, m) == TURNS && hn_order_of(p->r, m, &o)) {
        int axes[HN_MAX_RANK];
        for (int a = 0; a < o.rank; a++)
            axes[p->q.to[a]] = o.to[a];
        s = hn_rw_out(p->r, add_transpose(p, n, hn_node_in(m, 0), axes), v->name);
    } else {
        s = hn_rw_out(p->r, add_transpose(p, n, v, p->inverse.to), v->name);
    }
    g_hash_table_insert(p->stored, v, s);
    return s;
}

/* v, which n made, is stored as s now. TRUE: m goes on with s, or will. */
static gboolean follow(Push *p, HnNode *m, HnValue *v, HnValue *s)
{
    gboolean otherwise;
    HnOrder o;
    switch (role_of(p, m)) {
    case CLOSES:
        return hn_rw_bypass(p->r, m, hn_node_out(m, 0), s);
    case TURNS: {
        int64_t perm[HN_MAX_RANK];
        hn_order_of(p->r, m, &o);
        for (int a = 0; a < o.rank; a++)
            perm[a] = p->q.to[o.to[a]];
        hn_node_set_ints(m, "perm", perm, o.rank);
        hn_rw_set_in(p->r, m, 0, s);
        return hn_rw_done(p->r, m);
    }
    case ENDS:
        hn_carry(p->r, m, &p->q);
        hn_rw_set_in(p->r, m, 0, s);
        return hn_rw_done(p->r, m);
    case CARRIES:
        return hn_cut_second(p->cut, GPOINTER_TO_UINT(g_hash_table_lookup(p->vertex, m))) &&
               reads(p, m, v, &otherwise) && !otherwise;
    default:
        return FALSE;
    }
}

/* Whoever reads v as it was gets it from a Transpose behind n. */
static void settle(Push *p, HnNode *n, HnValue *v, HnValue *s)
{
    gboolean wanted = v->is_output;
    g_autoptr(GPtrArray) users = hn_ptrs_copy(v->users);
    g_autoptr(GHashTable) once = g_hash_table_new(NULL, NULL);
    for (guint u = 0; u < users->len; u++)
        if (g_hash_table_add(once, users->pdata[u]))
            wanted |= !follow(p, users->pdata[u], v, s);
    if (!wanted)
        return;
    HnNode *t = add_transpose(p, n, s, p->q.to);
    const guint at = hn_graph_index(p->g, t);
    p->g->nodes->pdata[at] = n;
    p->g->nodes->pdata[at + 1] = t;
    hn_rw_take_value(p->r, t, v);
}

static void turn(Push *p, HnNode *n)
{
    g_autofree gboolean *data = g_new0(gboolean, n->in->len + 1u);
    g_autofree HnValue **was = g_new0(HnValue *, n->out->len + 1u);
    const guint n_in = n->in->len, n_out = n->out->len;
    for (guint i = 0; i < n_in; i++)
        data[i] = hn_carry_is_data(p->r, n, (int)i, p->q.rank);
    hn_carry(p->r, n, &p->q);
    for (guint i = 0; i < n_in; i++)
        if (data[i])
            hn_rw_set_in(p->r, n, (int)i, stored(p, hn_node_in(n, (int)i), n));
    for (guint k = 0; k < n_out; k++) {
        was[k] = n->out->pdata[k];
        if (was[k] == NULL)
            continue;
        HnValue *s = hn_graph_new_value(p->g, was[k]->name);
        hn_node_set_out(n, (int)k, s);
        g_hash_table_insert(p->stored, was[k], s);
    }
    hn_rw_done(p->r, n);
    for (guint k = 0; k < n_out; k++)
        if (was[k] != NULL)
            settle(p, n, was[k], hn_node_out(n, (int)k));
}

static gint by_place(gconstpointer a, gconstpointer b, gpointer data)
{
    const Push *p = data;
    guint x = GPOINTER_TO_UINT(g_hash_table_lookup(p->place, *(HnNode *const *)a));
    guint y = GPOINTER_TO_UINT(g_hash_table_lookup(p->place, *(HnNode *const *)b));
    return x < y ? -1 : x > y;
}

/* The set around v, if there is a better layout. */
static gboolean improve(Push *p, HnValue *v, const HnNode *site)
{
    int64_t before, after;
    double moved, moves;
    grow(p, v);
    if (p->nodes->len == 0)
        return FALSE;
    add_costs(p);
    hn_cut_run(p->cut);
    count(p, FALSE, &before, &moved);
    count(p, TRUE, &after, &moves);
    if (after >= before)
        return FALSE;
    if (moves > moved)
        return hn_rw_miss(p->r, site, "fewer Transposes would move more elements");
    if (!hn_rw_go(p->r, site))
        return FALSE;
    g_ptr_array_sort_with_data(p->nodes, by_place, p);
    for (guint i = 0; i < p->nodes->len; i++) {
        HnNode *n = p->nodes->pdata[i];
        if (hn_cut_second(p->cut, GPOINTER_TO_UINT(g_hash_table_lookup(p->vertex, n))))
            turn(p, n);
    }
    return TRUE;
}

static gboolean improve_around(Push *p, HnValue *v, const HnNode *site)
{
    if (v == NULL || g_hash_table_contains(p->seen, v))
        return FALSE;
    p->cut = hn_cut_new();
    p->vertex = g_hash_table_new(NULL, NULL);
    p->stored = g_hash_table_new(NULL, NULL);
    p->nodes = g_ptr_array_new();
    p->values = g_ptr_array_new();
    gboolean changed = improve(p, v, site);
    hn_cut_free(p->cut);
    g_hash_table_unref(p->vertex);
    g_hash_table_unref(p->stored);
    g_ptr_array_unref(p->nodes);
    g_ptr_array_unref(p->values);
    return changed;
}

/* --- a graph ------------------------------------------------------------------------------------------------------ */

/* Where q is its own inverse, a Transpose behind another one, with nodes between them that carry, undoes it. */
static void find_closing(Push *p)
{
    g_autoptr(GHashTable) open = g_hash_table_new(NULL, NULL);
    for (guint i = 0; i < p->g->nodes->len && hn_order_equal(&p->q, &p->inverse); i++) {
        HnNode *n = p->g->nodes->pdata[i];
        const Role role = role_of(p, n);
        gboolean any = FALSE;
        for (guint k = 0; k < n->in->len && (role == OPENS || role == CARRIES); k++)
            any = any || g_hash_table_contains(open, n->in->pdata[k]);
        if (role == OPENS && any)
            g_hash_table_add(p->closes, n);
        else if (role == OPENS || any)
            for (guint k = 0; k < n->out->len; k++)
                g_hash_table_add(open, n->out->pdata[k]);
    }
}

static gboolean push_order(HnRewrite *r, HnGraph *g, const HnOrder *q)
{
    Push p = { .r = r, .g = g, .q = *q, .inverse = hn_order_inverse(q) };
    g_autoptr(GPtrArray) transposes = g_ptr_array_new();
    gboolean changed = FALSE;
    p.place = g_hash_table_new(NULL, NULL);
    p.closes = g_hash_table_new(NULL, NULL);
    p.seen = g_hash_table_new(NULL, NULL);
    find_closing(&p);
    for (guint i = 0; i < g->nodes->len; i++) {
        HnNode *n = g->nodes->pdata[i];
        const Role role = n->op == &hn_op_transpose ? role_of(&p, n) : OTHER;
        g_hash_table_insert(p.place, n, GUINT_TO_POINTER(i + 1));
        if (role == OPENS || role == CLOSES)
            g_ptr_array_add(transposes, n);
    }
    /* nothing is swept before the pass returns: all of them stay */
    for (guint i = 0; i < transposes->len; i++) {
        HnNode *n = transposes->pdata[i];
        changed |= improve_around(&p, role_of(&p, n) == OPENS ? hn_node_out(n, 0) : hn_node_in(n, 0), n);
    }
    g_hash_table_unref(p.place);
    g_hash_table_unref(p.closes);
    g_hash_table_unref(p.seen);
    return changed;
}

static void add_order(HnOrder *orders, guint *n, const HnOrder *o)
{
    for (guint i = 0; i < *n; i++)
        if (hn_order_equal(&orders[i], o))
            return;
    if (*n < MOST_ORDERS)
        orders[(*n)++] = *o;
}

static gboolean push_transposes(HnRewrite *r, HnGraph *g)
{
    g_autofree HnOrder *orders = g_new(HnOrder, MOST_ORDERS);
    HnOrder o;
    guint n = 0;
    gboolean changed = FALSE;
    for (guint i = 0; i < g->nodes->len; i++) {
        const HnNode *t = g->nodes->pdata[i];
        if (t->op != &hn_op_transpose || !hn_order_of(r, t, &o))
            continue;
        HnOrder inverse = hn_order_inverse(&o);
        add_order(orders, &n, &o);
        add_order(orders, &n, &inverse);
    }
    for (guint i = 0; i < n && !changed; i++) /* what is left is not swept yet: the rest is for the next round */
        changed = push_order(r, g, &orders[i]);
    return changed;
}

const HnPass hn_pass_push_transposes = {
    .name = "push-transposes",
    .summary = "move Transposes to where they meet their inverse or each other",
    .level = 1,
    .graph = push_transposes,
};
