#include "pass/precision/precision_plan.h"

#include <float.h>
#include <string.h>

#include "base/forest.h"
#include "op/unbind.h"
#include "pass/rewrite.h"

#define MAX_DEPTH 64 /* nodes behind one another that compute a position */

double hn_precision_largest(HnDtype to)
{
    return to == HN_F16 ? 65504 : to == HN_BF16 ? 0x1.fep127 : (double)FLT_MAX;
}

double hn_precision_least(HnDtype to)
{
    return to == HN_F16 ? 0x1p-14 : 0x1p-126;
}

double hn_precision_clamp(HnDtype to)
{
    /* Half of what there is: two masks may be added, and values that are within the headroom stay within a bound. */
    return to == HN_F16 ? 32752 : hn_precision_largest(to);
}

/* --- sets -------------------------------------------------------------------------------------------------------- */

static HnPortSet *at(const HnPrecisionPlan *p, int i)
{
    return &g_array_index(p->sets, HnPortSet, i);
}

static int root(const HnPrecisionPlan *p, int i)
{
    while (at(p, i)->parent != i) {
        at(p, i)->parent = at(p, at(p, i)->parent)->parent;
        i = at(p, i)->parent;
    }
    return i;
}

HnPortSet *hn_precision_set(const HnPrecisionPlan *p, int port)
{
    return at(p, root(p, port));
}

static int new_set(HnPrecisionPlan *p, gboolean mover, gboolean cheap)
{
    HnPortSet s = { .parent = (int)p->sets->len, .mover = mover, .cheap = cheap };
    g_array_append_val(p->sets, s);
    return s.parent;
}

gboolean hn_precision_keep(HnPrecisionPlan *p, int port, HnKept kept, char *why)
{
    HnPortSet *s = port >= 0 ? hn_precision_set(p, port) : NULL;
    if (s == NULL || s->kept != HN_KEPT_NOT) {
        g_free(why);
        return FALSE;
    }
    s->kept = kept;
    s->why = why;
    return TRUE;
}

static int fixed_set(HnPrecisionPlan *p, HnKept kept, const char *why)
{
    int i = new_set(p, FALSE, FALSE);
    (void)hn_precision_keep(p, i, kept, g_strdup(why));
    return i;
}

static void unite(HnPrecisionPlan *p, int a, int b)
{
    if (a < 0 || b < 0 || (a = root(p, a)) == (b = root(p, b)))
        return;
    HnPortSet *x = at(p, a), *y = at(p, b);
    y->parent = a;
    x->mover = x->mover && y->mover;
    x->cheap = x->cheap && y->cheap;
    x->edge = x->edge || y->edge;
    if (y->kept != HN_KEPT_NOT)
        (void)hn_precision_keep(p, a, y->kept, g_strdup(y->why));
}

/* --- ports of nodes ---------------------------------------------------------------------------------------------- */

HnDtype hn_precision_dtype(const HnPrecisionPlan *p, const HnValue *v)
{
    const HnType *t = v != NULL ? hn_types_get(p->types, v) : NULL;
    return hn_type_is_tensor(t) && hn_dtype_in(t->dtype, p->from) ? t->dtype : HN_UNDEFINED;
}

static gboolean concerned(const HnPrecisionPlan *p, const HnValue *v)
{
    return hn_precision_dtype(p, v) != HN_UNDEFINED;
}

static gboolean unknown(const HnPrecisionPlan *p, const HnValue *v)
{
    const HnType *t = v != NULL ? hn_types_get(p->types, v) : NULL;
    return v != NULL && (t == NULL || (t->kind == HN_TYPE_TENSOR && t->dtype == HN_UNDEFINED));
}

HnTensor *hn_precision_constant(const HnValue *v)
{
    if (v->weight != NULL)
        return v->weight->unloaded ? NULL : v->weight;
    const HnNode *n = v->producer;
    if (n == NULL || n->op != &hn_op_constant)
        return NULL;
    const HnAttr *a = hn_node_attr(n, "value");
    return a != NULL && a->kind == HN_ATTR_TENSOR && a->t != NULL && !a->t->unloaded ? a->t : NULL;
}

static HnValue *port_value(const HnNode *n, int k)
{
    return k < (int)n->in->len ? hn_node_in(n, k) : hn_node_out(n, k - (int)n->in->len);
}

static int n_ports(const HnNode *n)
{
    return (int)n->in->len + (int)n->out->len;
}

/* All ports that are concerned: one set. */
static void one_set(HnPrecisionPlan *p, HnPortNode *pn, int set)
{
    for (int k = 0; k < n_ports(pn->node); k++)
        if (concerned(p, port_value(pn->node, k)))
            pn->port[k] = set;
}

typedef struct {
    int set[26];
    gboolean in[26]; /* an input is of this letter */
} Letters;

static const char *letter_fault(const HnPrecisionPlan *p, const HnNode *n, char letter)
{
    if (letter < 'A' || letter > 'Z')
        return "the operator takes one type here";
    if (hn_dtype_in(p->o->to, hn_op_types(n->op, letter, n->version)))
        return NULL;
    return "the operator does not take the new type in this opset";
}

static int letter_set(HnPrecisionPlan *p, Letters *l, const HnNode *n, char letter, gboolean same)
{
    const char *fault = letter_fault(p, n, letter);
    const gboolean mover =
        fault == NULL && letter != '.' && hn_dtype_in(HN_BOOL, hn_op_types(n->op, letter, n->version));
    int *set = letter >= 'A' && letter <= 'Z' && same ? &l->set[letter - 'A'] : NULL;
    if (set != NULL && *set >= 0)
        return *set;
    int made =
        fault != NULL ? fixed_set(p, HN_KEPT_TYPE, fault) : new_set(p, mover, (n->op->flags & HN_OP_ELEMENTWISE) != 0);
    if (fault == NULL && n->op->range.exact != NULL && strchr(n->op->range.exact, letter) != NULL)
        (void)hn_precision_keep(p, made, HN_KEPT_POSITION, g_strdup("it reads or makes positions"));
    if (set != NULL)
        *set = made;
    return made;
}

/* As the record's letters say. */
static void lettered(HnPrecisionPlan *p, HnPortNode *pn)
{
    const HnNode *n = pn->node;
    Letters l = { .set = { 0 } };
    memset(l.set, -1, sizeof l.set);
    gboolean same;
    for (int k = 0; k < n_ports(n); k++) {
        const gboolean is_in = k < (int)n->in->len;
        const HnValue *v = port_value(n, k);
        const char letter = hn_op_letter(is_in ? n->op->in : n->op->out, is_in ? k : k - (int)n->in->len, &same);
        const gboolean variable = letter >= 'A' && letter <= 'Z';
        if (v == NULL)
            continue;
        if (variable && is_in)
            l.in[letter - 'A'] = TRUE;
        if (unknown(p, v) && variable && same)
            (void)hn_precision_keep(p, letter_set(p, &l, n, letter, TRUE), HN_KEPT_TYPE,
                                    g_strdup("a type of it is not known"));
        if (!concerned(p, v))
            continue;
        if (is_in && k == 0 && (n->op->flags & HN_OP_SHAPE_ONLY) != 0) {
            pn->port[k] = HN_PORT_ANY;
            continue;
        }
        pn->port[k] = letter_set(p, &l, n, letter, same);
        if (!is_in && (!variable || !l.in[letter - 'A']))
            (void)hn_precision_keep(p, pn->port[k], HN_KEPT_TYPE, g_strdup("the operator makes one type here"));
    }
    for (guint k = 0; k < n->out->len; k++)
        if (pn->port[n->in->len + k] >= 0)
            return;
    for (guint i = 0; i < n->in->len; i++) /* looks at elements and makes none: a comparison */
        if (pn->port[i] >= 0 && n->op != &hn_op_quantizelinear)
            hn_precision_set(p, pn->port[i])->mover = TRUE;
}

/* What makes elements of any type: the set of its only output. */
static void source(HnPrecisionPlan *p, HnPortNode *pn)
{
    for (guint i = 0; i < pn->node->in->len; i++)
        if (concerned(p, hn_node_in(pn->node, (int)i)))
            pn->port[i] = HN_PORT_ANY;
    if (concerned(p, hn_node_out(pn->node, 0))) /* few have EyeLike in halves */
        pn->port[pn->node->in->len] = pn->node->op != &hn_op_eyelike
                                          ? new_set(p, TRUE, FALSE)
                                          : fixed_set(p, HN_KEPT_TYPE, "the operator makes one type here");
}

static gboolean takes_any(const HnPrecisionPlan *p, const HnNode *n)
{
    return hn_dtype_in(p->o->to, hn_op_types(n->op, '.', n->version));
}

static gboolean is_control(const HnNode *n)
{
    return n->op == &hn_op_if || n->op == &hn_op_loop || n->op == &hn_op_scan;
}

/* Each input and output of its own: what the sub-graphs do with them is tied later. */
static void control(HnPrecisionPlan *p, HnPortNode *pn)
{
    for (int k = 0; k < n_ports(pn->node); k++)
        if (concerned(p, port_value(pn->node, k)))
            pn->port[k] = takes_any(p, pn->node)
                              ? new_set(p, TRUE, FALSE)
                              : fixed_set(p, HN_KEPT_TYPE, "the operator does not take the new type in this opset");
}

/* What is of several letters now was of one in older opsets. */
static void unite_old(HnPrecisionPlan *p, const HnPortNode *pn)
{
    const HnNode *n = pn->node;
    if (!(n->op == &hn_op_pow || (n->op == &hn_op_batchnormalization && n->version < 15) ||
          (n->op == &hn_op_quantizelinear && n->version < 23)))
        return;
    for (int k = 1; k < n_ports(n); k++)
        unite(p, pn->port[0], pn->port[k]);
}

static void dequantize_ports(HnPrecisionPlan *p, HnPortNode *pn)
{
    const HnNode *n = pn->node;
    lettered(p, pn);
    int *out = &pn->port[n->in->len];
    if (*out >= 0 && pn->port[1] >= 0 && hn_node_attr(n, "output_dtype") == NULL)
        *out = pn->port[1]; /* the scale's type is the result's */
}

static void find_ports(HnPrecisionPlan *p, HnNode *n)
{
    HnPortNode *pn = g_new0(HnPortNode, 1);
    pn->node = n;
    pn->port = g_new(int, (gsize)n_ports(n) + 1);
    for (int k = 0; k < n_ports(n); k++)
        pn->port[k] = HN_PORT_NONE;
    g_ptr_array_add(p->nodes, pn);
    g_hash_table_insert(p->by_node, n, pn);
    if (!hn_op_bind(n, NULL))
        one_set(p, pn, fixed_set(p, HN_KEPT_TYPE, "the operator is not known"));
    else if (is_control(n))
        control(p, pn);
    else if (n->op == &hn_op_constant)
        return;
    else if (n->op == &hn_op_bitcast)
        one_set(p, pn, fixed_set(p, HN_KEPT_TYPE, "it looks at the bits"));
    else if (n->op == &hn_op_cast || n->op == &hn_op_constantofshape || n->op == &hn_op_eyelike)
        takes_any(p, n) ? source(p, pn) : one_set(p, pn, fixed_set(p, HN_KEPT_TYPE, "not in this opset"));
    else if (n->op == &hn_op_identity)
        one_set(p, pn, takes_any(p, n) ? new_set(p, TRUE, FALSE) : fixed_set(p, HN_KEPT_TYPE, "not in this opset"));
    else if (n->op == &hn_op_dequantizelinear)
        dequantize_ports(p, pn);
    else
        lettered(p, pn);
    unite_old(p, pn);
}

/* --- graphs ------------------------------------------------------------------------------------------------------ */

static void collect(HnNode *n, gpointer data)
{
    find_ports(data, n);
}

static void set_value(HnPrecisionPlan *p, const HnValue *v, int set)
{
    if (v != NULL && set >= 0)
        p->of_value[v->id] = set;
}

/* Formal input i of g is port `set` of its holder, or fixed. */
static void formal_input(HnPrecisionPlan *p, HnGraph *g, guint i, int set)
{
    HnValue *v = i < g->inputs->len ? g->inputs->pdata[i] : NULL;
    if (v == NULL || !concerned(p, v) || v->weight != NULL)
        return;
    set_value(p, v, set >= 0 ? set : fixed_set(p, HN_KEPT_TYPE, "what holds the sub-graph does not take it"));
}

static int *output_ports(HnPrecisionPlan *p, HnGraph *g)
{
    int *port = g_new(int, g->outputs->len + 1u);
    for (guint k = 0; k < g->outputs->len; k++)
        port[k] = HN_PORT_NONE;
    g_hash_table_insert(p->outputs, g, port);
    return port;
}

static void formal_output(HnPrecisionPlan *p, HnGraph *g, int *port, guint k, int set)
{
    if (k < g->outputs->len && concerned(p, g->outputs->pdata[k]))
        port[k] = set >= 0 ? set : fixed_set(p, HN_KEPT_TYPE, "what holds the sub-graph does not take it");
}

static int out_port(const HnPortNode *pn, guint k)
{
    return k < pn->node->out->len ? pn->port[pn->node->in->len + k] : HN_PORT_NONE;
}

/* An output that nobody wants has no port, and the body makes it all the same. */
static int out_port_or_new(HnPrecisionPlan *p, const HnPortNode *pn, guint k)
{
    int port = out_port(pn, k);
    return port >= 0 || hn_node_out(pn->node, (int)k) != NULL || !takes_any(p, pn->node) ? port
                                                                                         : new_set(p, TRUE, FALSE);
}

static void tie_graph(HnPrecisionPlan *p, const HnPortNode *pn, HnGraph *g)
{
    const HnNode *n = pn->node;
    int *port = output_ports(p, g);
    const gboolean loop = n->op == &hn_op_loop, scan = n->op == &hn_op_scan, known = n->op != NULL && is_control(n);
    const guint first = loop ? 2 : scan && n->version < 9 ? 1 : 0; /* input of the node that states begin with */
    const guint formal = loop ? 2 : 0, result = loop ? 1 : 0;      /* the same of the body's inputs and outputs */
    const HnAttr *scans = scan ? hn_node_attr(n, "num_scan_inputs") : NULL;
    const guint inputs = n->in->len > first ? n->in->len - first : 0;
    const guint states = loop ? inputs : scans != NULL && scans->i <= (int64_t)inputs ? inputs - (guint)scans->i : 0;
    for (guint i = 0; i < g->inputs->len; i++)
        formal_input(p, g, i,
                     known && i >= formal && i - formal < inputs ? pn->port[first + i - formal] : HN_PORT_NONE);
    for (guint k = 0; k < g->outputs->len; k++)
        formal_output(p, g, port, k, known && k >= result ? out_port_or_new(p, pn, k - result) : HN_PORT_NONE);
    for (guint i = 0; i < states && i + result < g->outputs->len; i++) {
        unite(p, pn->port[first + i], port[i + result]);
        unite(p, pn->port[first + i], out_port(pn, i));
    }
}

static void tie_graphs(HnPrecisionPlan *p, const HnPortNode *pn)
{
    for (guint i = 0; i < pn->node->attrs->len; i++) {
        const HnAttr *a = pn->node->attrs->pdata[i];
        if (a->kind == HN_ATTR_GRAPH && a->g != NULL)
            tie_graph(p, pn, a->g);
        for (int64_t k = 0; a->kind == HN_ATTR_GRAPHS && k < a->n; k++)
            tie_graph(p, pn, a->graphs[k]);
    }
}

static int edge_set(HnPrecisionPlan *p)
{
    int set =
        p->o->keep_io ? fixed_set(p, HN_KEPT_ASKED, "inputs and outputs keep their types") : new_set(p, FALSE, FALSE);
    at(p, set)->edge = TRUE;
    return set;
}

/* What the model takes in and gives out. An output that is an input, or given out twice, is one. */
static void find_edges(HnPrecisionPlan *p)
{
    HnGraph *g = p->model->graph;
    int *port = output_ports(p, g);
    for (guint i = 0; i < g->inputs->len; i++) {
        const HnValue *v = g->inputs->pdata[i];
        if (concerned(p, v) && hn_precision_constant(v) == NULL)
            set_value(p, v, edge_set(p));
    }
    for (guint k = 0; k < g->outputs->len; k++) {
        const HnValue *v = g->outputs->pdata[k];
        if (!concerned(p, v))
            continue;
        port[k] = v->producer == NULL && p->of_value[v->id] >= 0 ? p->of_value[v->id]
                  : hn_precision_constant(v) != NULL ? fixed_set(p, HN_KEPT_TYPE, "a weight that is a result")
                                                     : edge_set(p);
        for (guint i = 0; i < k; i++)
            if (g->outputs->pdata[i] == v)
                port[k] = port[i];
    }
}

static void find_values(HnPrecisionPlan *p)
{
    for (guint i = 0; i < p->nodes->len; i++) {
        const HnPortNode *pn = p->nodes->pdata[i];
        for (guint k = 0; k < pn->node->out->len; k++)
            set_value(p, hn_node_out(pn->node, (int)k), out_port(pn, k));
    }
}

/* Dense weights are made in the type that is wanted; what is none of them and has no maker stays. */
static void find_weights(HnPrecisionPlan *p, HnGraph *g)
{
    for (guint i = 0; i < g->weights->len; i++) {
        const HnValue *v = g->weights->pdata[i];
        if (concerned(p, v) && hn_precision_constant(v) == NULL)
            set_value(p, v, fixed_set(p, HN_KEPT_TYPE, "a weight without elements"));
    }
    for (guint i = 0; i < g->inner->len; i++)
        find_weights(p, g->inner->pdata[i]);
}

/* A Constant that holds something else than a dense tensor makes what it makes. */
static void find_odd_constants(HnPrecisionPlan *p)
{
    for (guint i = 0; i < p->nodes->len; i++) {
        const HnPortNode *pn = p->nodes->pdata[i];
        const HnValue *v = pn->node->op == &hn_op_constant ? hn_node_out(pn->node, 0) : NULL;
        if (v != NULL && concerned(p, v) && hn_precision_constant(v) == NULL)
            set_value(p, v, fixed_set(p, HN_KEPT_TYPE, "a constant without elements"));
    }
}

/* --- what stays -------------------------------------------------------------------------------------------------- */

static gboolean asked(const HnPrecisionPlan *p, const HnNode *n)
{
    const HnValue *v = hn_node_out(n, 0);
    for (int i = 0; p->o->keep != NULL && p->o->keep[i] != NULL; i++)
        if (g_str_equal(p->o->keep[i], n->op_type) || g_strcmp0(p->o->keep[i], n->name) == 0 ||
            (v != NULL && g_str_equal(p->o->keep[i], v->name)))
            return TRUE;
    return FALSE;
}

static void keep_asked(HnPrecisionPlan *p, const HnPortNode *pn)
{
    const gboolean checked = p->o->keep_checked;
    for (int k = 0; k < n_ports(pn->node) && asked(p, pn->node); k++)
        (void)hn_precision_keep(p, pn->port[k], checked ? HN_KEPT_CHECKED : HN_KEPT_ASKED,
                                g_strdup(checked ? "results would be too far off" : "it was asked for"));
}

/* What computes v element by element, or moves it there, stays exact: v becomes integers. */
static void keep_position(HnPrecisionPlan *p, const HnValue *v, const char *becomes, int depth)
{
    const HnPortNode *pn = v->producer != NULL ? hn_precision_node(p, v->producer) : NULL;
    const int set = p->of_value[v->id];
    if (set >= 0 && v->producer == NULL && v->is_input)
        (void)hn_precision_keep(p, set, HN_KEPT_POSITION, g_strdup_printf("it makes the integers '%s'", becomes));
    if (pn == NULL || set < 0 || depth == MAX_DEPTH || pn->node->op == NULL || is_control(pn->node))
        return;
    const HnPortSet *s = hn_precision_set(p, set);
    if (!(s->mover || s->cheap) || s->edge || pn->node->op == &hn_op_cast ||
        !hn_precision_keep(p, set, HN_KEPT_POSITION, g_strdup_printf("it makes the integers '%s'", becomes)))
        return;
    for (guint i = 0; i < pn->node->in->len; i++)
        if (pn->port[i] == set)
            keep_position(p, hn_node_in(pn->node, (int)i), becomes, depth + 1);
}

static void keep_positions(HnPrecisionPlan *p, const HnPortNode *pn)
{
    const HnAttr *to = pn->node->op == &hn_op_cast ? hn_node_attr(pn->node, "to") : NULL;
    const HnValue *v = hn_node_in(pn->node, 0), *out = hn_node_out(pn->node, 0);
    if (to != NULL && out != NULL && v != NULL && concerned(p, v) && hn_dtype_in((HnDtype)to->i, HN_T_INTS))
        keep_position(p, v, out->name, 0);
}

/* --- what goes along --------------------------------------------------------------------------------------------- */

typedef struct {
    int64_t with, against; /* neighbours that convert, and that do not */
    gboolean edge;
} Group;

/* Each use of a value that is no constant: the set it is stored as, and the one it is wanted as. */
typedef void (*EdgeFn)(HnPrecisionPlan *p, int from, int to, gpointer data);

static void each_edge(HnPrecisionPlan *p, EdgeFn fn, gpointer data)
{
    for (guint i = 0; i < p->nodes->len; i++) {
        const HnPortNode *pn = p->nodes->pdata[i];
        for (guint k = 0; k < pn->node->in->len; k++) {
            const HnValue *v = hn_node_in(pn->node, (int)k);
            if (v != NULL && pn->port[k] >= 0 && p->of_value[v->id] >= 0)
                fn(p, root(p, p->of_value[v->id]), root(p, pn->port[k]), data);
        }
    }
    GHashTableIter it;
    gpointer key, value;
    g_hash_table_iter_init(&it, p->outputs);
    while (g_hash_table_iter_next(&it, &key, &value)) {
        const HnGraph *g = key;
        const int *port = value;
        for (guint k = 0; k < g->outputs->len; k++) {
            const HnValue *v = g->outputs->pdata[k];
            if (port[k] >= 0 && p->of_value[v->id] >= 0)
                fn(p, root(p, p->of_value[v->id]), root(p, port[k]), data);
        }
    }
}

typedef struct {
    Group *group;
    int *parent;    /* of each set: hn_forest_root() has the group */
    gboolean cheap; /* element-wise sets are in groups too */
} Grouping;

static gboolean in_group(const Grouping *w, const HnPortSet *s)
{
    return s->kept == HN_KEPT_NOT && !s->edge && (s->mover || (w->cheap && s->cheap));
}

static void join(HnPrecisionPlan *p, int a, int b, gpointer data)
{
    const Grouping *w = data;
    if (in_group(w, at(p, a)) && in_group(w, at(p, b)))
        w->parent[hn_forest_root(w->parent, a)] = hn_forest_root(w->parent, b);
}

static void count_one(HnPrecisionPlan *p, const Grouping *w, int inside, int outside)
{
    if (!in_group(w, at(p, inside)) || in_group(w, at(p, outside)))
        return;
    Group *g = &w->group[hn_forest_root(w->parent, inside)];
    if (at(p, outside)->kept == HN_KEPT_NOT)
        g->with++;
    else
        g->against++;
}

static void count(HnPrecisionPlan *p, int a, int b, gpointer data)
{
    count_one(p, data, a, b);
    count_one(p, data, b, a);
}

/* Groups of sets that go along: where more of those around stay than convert (`cheap`: where all of them stay). */
static void follow(HnPrecisionPlan *p, gboolean cheap)
{
    g_autofree Group *group = g_new0(Group, p->sets->len + 1u);
    g_autofree int *parent = g_new(int, p->sets->len + 1u);
    Grouping w = { group, parent, cheap };
    for (guint i = 0; i < p->sets->len; i++)
        parent[i] = (int)i;
    each_edge(p, join, &w);
    each_edge(p, count, &w);
    for (guint i = 0; i < p->sets->len; i++) {
        if (root(p, (int)i) != (int)i || !in_group(&w, at(p, (int)i)))
            continue;
        const Group *g = &group[hn_forest_root(parent, (int)i)];
        if (cheap ? g->with == 0 && g->against > 0 : g->against > g->with)
            (void)hn_precision_keep(p, (int)i, HN_KEPT_AROUND, g_strdup("what is around it stays"));
    }
}

typedef struct {
    gboolean *read; /* by set: somebody reads it in the new type */
} Reading;

static void note_reading(HnPrecisionPlan *p, int from, int to, gpointer data)
{
    const Reading *r = data;
    r->read[from] = r->read[from] || at(p, to)->kept == HN_KEPT_NOT;
}

/* A Cast to another float type reads v. */
static gboolean is_cast(const HnPrecisionPlan *p, const HnValue *v)
{
    for (guint i = 0; i < v->users->len; i++) {
        const HnNode *n = v->users->pdata[i];
        const HnAttr *to = n->op == &hn_op_cast ? hn_node_attr(n, "to") : NULL;
        if (to != NULL && hn_dtype_in((HnDtype)to->i, HN_T_FLOATS) && hn_precision_node(p, n) != NULL)
            return TRUE;
    }
    return FALSE;
}

/* An input that is read as it is by everybody who reads it stays. */
static void keep_inputs(HnPrecisionPlan *p)
{
    g_autofree gboolean *read = g_new0(gboolean, p->sets->len + 1u);
    Reading r = { read };
    const HnGraph *g = p->model->graph;
    each_edge(p, note_reading, &r);
    for (guint i = 0; i < g->inputs->len; i++) {
        const HnValue *v = g->inputs->pdata[i];
        const int set = p->of_value[v->id];
        if (set >= 0 && !read[root(p, set)] && v->users->len > 0 && !is_cast(p, v))
            (void)hn_precision_keep(p, set, HN_KEPT_AROUND, g_strdup("whoever reads it stays"));
    }
}

/* --- the plan ---------------------------------------------------------------------------------------------------- */

void hn_precision_plan_free(HnPrecisionPlan *p)
{
    if (p == NULL)
        return;
    for (guint i = 0; i < p->sets->len; i++)
        g_free(at(p, (int)i)->why);
    g_array_unref(p->sets);
    g_hash_table_unref(p->by_node);
    g_hash_table_unref(p->outputs);
    g_ptr_array_unref(p->nodes);
    hn_types_free(p->types);
    g_free(p->of_value);
    g_free(p);
}

static void port_node_free(gpointer data)
{
    HnPortNode *pn = data;
    g_free(pn->port);
    g_free(pn);
}

HnPrecisionPlan *hn_precision_plan(HnModel *m, const HnPrecisionOptions *o, GError **error)
{
    g_autoptr(HnPrecisionPlan) p = g_new0(HnPrecisionPlan, 1);
    p->model = m;
    p->o = o;
    p->from = o->to == HN_F32 ? HN_BIT(HN_F16) | HN_BIT(HN_BF16) : HN_BIT(HN_F32);
    p->sets = g_array_new(FALSE, FALSE, sizeof(HnPortSet));
    p->nodes = g_ptr_array_new_with_free_func(port_node_free);
    p->by_node = g_hash_table_new(NULL, NULL);
    p->outputs = g_hash_table_new_full(NULL, NULL, NULL, g_free);
    p->types = hn_precision_types(m, error);
    p->n_values = m->n_values;
    p->of_value = g_new(int, p->n_values + 1u);
    for (guint i = 0; i < p->n_values; i++)
        p->of_value[i] = HN_PORT_NONE;
    if (p->types == NULL)
        return NULL;
    hn_graph_foreach_node(m->graph, collect, p);
    find_values(p);
    find_weights(p, m->graph);
    find_odd_constants(p);
    find_edges(p);
    for (guint i = 0; i < p->nodes->len; i++)
        tie_graphs(p, p->nodes->pdata[i]);
    for (guint i = 0; i < p->nodes->len; i++)
        keep_asked(p, p->nodes->pdata[i]);
    if (o->to != HN_F32) {
        for (guint i = 0; i < p->nodes->len; i++)
            keep_positions(p, p->nodes->pdata[i]);
        hn_precision_keep_ranges(p);
    }
    follow(p, FALSE);
    if (o->to != HN_F32) {
        follow(p, TRUE);
        keep_inputs(p);
    }
    for (guint i = 0; i < p->sets->len; i++)
        at(p, (int)i)->converts = hn_precision_set(p, (int)i)->kept == HN_KEPT_NOT;
    return g_steal_pointer(&p);
}
