#include "lower/lower.h"

#include "lower/qdq_value.h"
#include "pass/driver.h"

#define HN_PASS(symbol) extern const HnPass hn_pass_##symbol;
#include "lower/lower.def"
#undef HN_PASS

const HnPass *const hn_lower_passes[] = {
#define HN_PASS(symbol) &hn_pass_##symbol,
#include "lower/lower.def"
#undef HN_PASS
    NULL,
};

/* A lowered graph with what nobody else asks for. */
typedef struct {
    HnLowered l;
    GHashTable *credits; /* HnNode * -> HnNode *: hn_lower_credit(); NULL: none */
} Whole;

/* --- copying --------------------------------------------------------------------------------------------------------
 */

typedef struct {
    const HnLowering *o;
    HnLowered *l;
    GHashTable *of; /* HnValue * before -> HnValue * of the lowered graph */
} Copy;

/* A new value that stands for v, with what is known of it. */
static HnValue *value_for(const Copy *c, HnValue *v)
{
    HnLowered *l = c->l;
    HnValue *made = hn_graph_value(l->model->graph, v->name);
    if (made->id < l->origin->len) /* graphs around this one may have a value of the same name */
        made = hn_graph_new_value(l->model->graph, v->name);
    HnType *type = hn_types_get(c->o->types, v);
    HnTensor *known = hn_types_value(c->o->types, v);
    if (type != NULL) {
        hn_value_set_type(made, type);
        hn_types_set(l->types, made, type);
    }
    if (known != NULL)
        hn_types_set_value(l->types, made, known);
    g_hash_table_insert(c->of, v, made);
    g_ptr_array_add(l->origin, v);
    return made;
}

/* The operator is today what it was in n's version. */
static gboolean is_newest(const HnNode *n)
{
    const HnOp *op = n->op;
    guint last = 0;
    while (last + 1 < G_N_ELEMENTS(op->since) && op->since[last + 1] != 0)
        last++;
    return op->until == 0 && n->version >= op->since[last];
}

gboolean hn_lower_unpacks(const HnTypes *types, const HnNode *n, int moves)
{
    if (n == NULL || n->op == NULL || n->out->len != 1 || n->in->len == 0)
        return FALSE;
    const HnValue *x = hn_node_in(n, 0);
    const gboolean unpacks = (n->op->flags & HN_OP_UNPACK) != 0;
    const gboolean is_move = (n->op->flags & HN_OP_VIEW) != 0 || n->op == &hn_op_transpose;
    if (!unpacks && (!is_move || moves == 0 || x == NULL || x->graph != n->graph ||
                     !hn_lower_unpacks(types, x->producer, moves - 1)))
        return FALSE;
    for (guint i = unpacks ? 0 : 1; i < n->in->len; i++)
        if (n->in->pdata[i] != NULL && hn_types_value(types, n->in->pdata[i]) == NULL)
            return FALSE;
    return TRUE;
}

static HnValue *read_value(const Copy *c, HnValue *v, gboolean unpacked);

/* What it reads of few bytes is made of them in the graph, too, if `unpacked` says so. */
static void copy_node(const Copy *c, const HnNode *n, gboolean unpacked)
{
    g_autoptr(GPtrArray) captures = (n->op->flags & HN_OP_CONTROL) != 0 ? hn_node_captures(n) : NULL;
    const guint n_captures = captures != NULL ? captures->len : 0;
    for (guint i = 0; i < n->in->len; i++)
        read_value(c, n->in->pdata[i], unpacked);
    for (guint i = 0; i < n_captures; i++)
        read_value(c, captures->pdata[i], unpacked);
    HnNode *m = hn_graph_add_node(c->l->model->graph, -1, n->op_type, n->domain, n->name);
    if (n->op->domain != NULL || !is_newest(n)) /* the graph imports the default domain only */
        m->version = n->version;
    for (guint i = 0; i < n->in->len; i++)
        hn_node_add_in(m, read_value(c, n->in->pdata[i], unpacked));
    for (guint i = 0; i < n_captures; i++)
        hn_node_add_in(m, read_value(c, captures->pdata[i], unpacked));
    for (guint k = 0; k < n->out->len; k++)
        hn_node_add_out(m, n->out->pdata[k] != NULL ? value_for(c, n->out->pdata[k]) : NULL);
    hn_node_share_attrs(m, n);
    m->op = n->op;
    m->params = g_memdup2(n->params, MAX(n->op->params_size, 1));
}

/* What a node reads: made by one before, or else a weight where it is known, or an input. What was made of fewer bytes
 * is a node again if `unpacked` says so: whoever can do with these wants to see them. So is what a graph around this
 * one makes of them, which is not made there before somebody asks. */
static HnValue *read_value(const Copy *c, HnValue *v, gboolean unpacked)
{
    HnValue *made = v != NULL ? g_hash_table_lookup(c->of, v) : NULL;
    if (made != NULL || v == NULL)
        return made;
    HnTensor *known = hn_types_value(c->o->types, v);
    if (unpacked && hn_lower_unpacks(c->o->types, v->producer, known != NULL ? 0 : HN_LOWER_MOVES)) {
        copy_node(c, v->producer, !hn_op_is_unpacked(v));
        return g_hash_table_lookup(c->of, v);
    }
    made = value_for(c, v);
    if (known != NULL)
        hn_graph_add_weight(c->l->model->graph, made, known);
    else
        hn_graph_add_input(c->l->model->graph, made);
    return made;
}

static gboolean copy_nodes(const Copy *c, GError **error)
{
    HnLowered *l = c->l;
    for (int i = l->start; i < l->end; i++) {
        HnNode *n = l->from->nodes->pdata[i];
        if (!l->live[i - l->start])
            continue;
        copy_node(c, n, TRUE);
        if (!hn_budget_ask(c->o->budget, error))
            return FALSE;
        for (guint k = 0; k < n->out->len; k++) {
            HnValue *v = n->out->pdata[k];
            if (v != NULL && c->o->is_kept(v, c->o->data))
                hn_graph_add_output(l->model->graph, g_hash_table_lookup(c->of, v));
        }
    }
    return TRUE;
}

static HnModel *model_new(void)
{
    HnModel *m = hn_model_new();
    hn_model_set_opset(m, NULL, HN_OPSET_MAX);
    hn_model_set_opset(m, "hone", 1);
    return m;
}

static HnLowered *copy(const HnLowering *o, GError **error)
{
    g_autoptr(GHashTable) of = g_hash_table_new(NULL, NULL);
    Whole *whole = g_new0(Whole, 1);
    HnLowered *l = &whole->l;
    *l = (HnLowered){ .model = model_new(), .from = o->graph, .start = o->start, .end = o->end };
    l->types = hn_types_new(l->model);
    l->live = g_memdup2(o->live, (gsize)(o->end - o->start) * sizeof *o->live);
    l->origin = g_ptr_array_new();
    hn_types_set_budget(l->types, o->budget);
    if (copy_nodes(&(Copy){ o, l, of }, error))
        return l;
    hn_lowered_free(l);
    return NULL;
}

typedef struct {
    const HnLowering *o;
    HnLowered *l;
} Lower;

static gboolean runs(const HnDraft *d, gpointer data)
{
    const Lower *w = data;
    return w->o->runs(d, w->o->data);
}

void hn_lower_credit(HnRewrite *r, HnNode *made, const HnNode *n)
{
    const Lower *w = r->o->data;
    if (w == NULL)
        return;
    Whole *of = (Whole *)w->l;
    if (of->credits == NULL)
        of->credits = g_hash_table_new(NULL, NULL);
    g_hash_table_remove(of->credits, made); /* of a node that was there before it */
    const HnNode *m = n != NULL ? hn_lowered_node(w->l, n) : NULL;
    if (m != NULL && m->graph->model != w->l->model) /* others may be gone before anybody asks */
        g_hash_table_insert(of->credits, made, (gpointer)m);
}

/* The last pass looks at what nodes read and who reads them, as far as it did not change that itself. */
static gboolean apply(const HnLowering *o, HnLowered *l, GError **error)
{
    enum { LAST = G_N_ELEMENTS(hn_lower_passes) - 2 };
    g_autofree const HnPass **passes = g_memdup2(hn_lower_passes, sizeof hn_lower_passes);
    Lower w = { o, l };
    HnPassOptions p = {
        .passes = passes, .lowering = TRUE, .runs = o->runs != NULL ? runs : NULL, .data = &w, .budget = o->budget
    };
    passes[LAST] = NULL;
    if (!hn_pass_apply(l->model, l->types, &p, error))
        return FALSE;
    p.passes = &hn_lower_passes[LAST];
    return hn_pass_apply(l->model, l->types, &p, error);
}

HnLowered *hn_lower(const HnLowering *o, GError **error)
{
    GError *failure = NULL;
    HnLowered *l = copy(o, error);
    if (l == NULL || o->plain || apply(o, l, &failure))
        return l;
    hn_lowered_free(l);
    if (!g_error_matches(failure, HN_ERROR, HN_ERROR_BUDGET)) { /* then node by node */
        g_clear_error(&failure);
        return copy(o, error);
    }
    g_propagate_error(error, failure);
    return NULL;
}

void hn_lowered_settle(HnLowered *l)
{
    g_clear_pointer(&l->types, hn_types_free);
}

void hn_lowered_free(HnLowered *l)
{
    if (l == NULL)
        return;
    hn_types_free(l->types);
    hn_model_free(l->model);
    g_ptr_array_unref(l->origin);
    g_clear_pointer(&((Whole *)l)->credits, g_hash_table_unref);
    g_clear_pointer(&l->parts, g_hash_table_unref);
    g_free(l->live);
    g_free(l);
}

/* --- what stands for what -------------------------------------------------------------------------------------------
 */

const HnValue *hn_lowered_origin(const HnLowered *l, const HnValue *v)
{
    if (l == NULL || v == NULL || v->graph->model != l->model || v->id >= l->origin->len ||
        l->origin->pdata[v->id] == NULL)
        return v;
    return l->origin->pdata[v->id];
}

const HnNode *hn_lowered_node(const HnLowered *l, const HnNode *n)
{
    GHashTable *credits = ((const Whole *)l)->credits;
    const HnNode *credited = credits != NULL ? g_hash_table_lookup(credits, n) : NULL;
    if (credited != NULL)
        return credited;
    for (guint k = 0; k < n->out->len; k++) {
        const HnValue *v = hn_lowered_origin(l, n->out->pdata[k]);
        if (v != NULL && v->graph->model != l->model)
            return v->producer;
    }
    return n;
}

static void add_part(HnLowered *l, const HnNode *of, HnNode *part)
{
    GPtrArray *parts = g_hash_table_lookup(l->parts, of);
    if (parts == NULL)
        g_hash_table_insert(l->parts, (gpointer)of, parts = g_ptr_array_new());
    g_ptr_array_add(parts, part);
}

/* A node that is there no longer is part of what its reader is part of. */
static void find_parts(HnLowered *l)
{
    g_autoptr(GHashTable) owner = g_hash_table_new(NULL, NULL); /* HnNode * before -> HnNode * of the lowered graph */
    const GPtrArray *nodes = l->model->graph->nodes;
    l->parts = g_hash_table_new_full(NULL, NULL, NULL, (GDestroyNotify)g_ptr_array_unref);
    for (guint i = 0; i < nodes->len; i++)
        g_hash_table_insert(owner, (gpointer)hn_lowered_node(l, nodes->pdata[i]), nodes->pdata[i]);
    for (int i = l->end - 1; i >= l->start; i--) {
        const HnNode *n = l->from->nodes->pdata[i];
        gpointer of = g_hash_table_lookup(owner, n);
        for (guint k = 0; k < n->out->len && of == NULL; k++) {
            const HnValue *v = n->out->pdata[k];
            for (guint u = v != NULL ? v->users->len : 0; u-- > 0 && of == NULL;)
                of = g_hash_table_lookup(owner, v->users->pdata[u]);
        }
        if (of != NULL && l->live[i - l->start])
            g_hash_table_insert(owner, (gpointer)n, of);
    }
    for (int i = l->start; i < l->end; i++) {
        HnNode *n = l->from->nodes->pdata[i];
        const HnNode *of = g_hash_table_lookup(owner, n);
        if (of != NULL)
            add_part(l, of, n);
    }
}

const GPtrArray *hn_lowered_parts(HnLowered *l, const HnNode *n)
{
    if (l->parts == NULL)
        find_parts(l);
    if (!g_hash_table_contains(l->parts, n))
        add_part(l, n, (HnNode *)hn_lowered_node(l, n));
    return g_hash_table_lookup(l->parts, n);
}

/* --- for people and tests -------------------------------------------------------------------------------------------
 */

static HnValue *same_value(HnGraph *g, const HnValue *v, GHashTable *values)
{
    HnValue *made = v != NULL ? g_hash_table_lookup(values, v) : NULL;
    if (made != NULL || v == NULL)
        return made;
    made = hn_graph_value(g, v->name);
    if (v->type != NULL)
        hn_value_set_type(made, v->type);
    g_hash_table_insert(values, (gpointer)v, made);
    return made;
}

/* A node with sub-graphs is copied from the graph before: what that one calls by its own values are those of n. */
static void copy_control(const HnLowered *l, HnGraph *g, const HnNode *n, GHashTable *values)
{
    const HnNode *before = hn_lowered_node(l, n);
    g_autoptr(GPtrArray) captures = hn_node_captures(before);
    for (guint i = 0; i < n->in->len; i++) {
        const guint own = before->in->len;
        gpointer v = i < own ? before->in->pdata[i] : captures->pdata[i - own];
        if (v != NULL)
            g_hash_table_insert(values, v, same_value(g, n->in->pdata[i], values));
    }
    for (guint k = 0; k < n->out->len; k++)
        if (n->out->pdata[k] != NULL)
            g_hash_table_insert(values, before->out->pdata[k], same_value(g, n->out->pdata[k], values));
    hn_node_copy(g, before, values);
}

HnModel *hn_lowered_model(const HnLowered *l)
{
    const HnGraph *from = l->model->graph;
    HnModel *m = model_new();
    HnGraph *g = m->graph;
    g_autoptr(GHashTable) values = g_hash_table_new(NULL, NULL);
    for (guint i = 0; i < from->inputs->len; i++)
        hn_graph_add_input(g, same_value(g, from->inputs->pdata[i], values));
    for (guint i = 0; i < from->weights->len; i++) {
        const HnValue *v = from->weights->pdata[i];
        hn_graph_add_weight(g, same_value(g, v, values), v->weight);
    }
    for (guint i = 0; i < from->nodes->len; i++) {
        const HnNode *n = from->nodes->pdata[i];
        if ((n->op->flags & HN_OP_CONTROL) != 0)
            copy_control(l, g, n, values);
        else
            hn_node_copy(g, n, values);
    }
    for (guint k = 0; k < from->outputs->len; k++)
        hn_graph_add_output(g, same_value(g, from->outputs->pdata[k], values));
    return m;
}
