/*
 * Planning, part 2b: groups of element-wise nodes that one step computes in one pass over memory.
 *
 * A group is a last node and the nodes before it whose results nobody but the group reads, all of one shape. Its step
 * stands where the last node does: by then everything that it reads is there.
 */
#include "run/plan.h"

/* The value's type is known, and is a tensor of numbers of fixed shape. */
static const HnType *fixed_type(const HnPlan *p, const HnValue *v)
{
    const HnType *t = v != NULL ? hn_types_get(p->types, v) : NULL;
    return t != NULL && hn_type_is_fixed(t, NULL) ? t : NULL;
}

/* May n be computed element by element together with others? */
static gboolean can_join(const HnPlan *p, const HnNode *n)
{
    const HnType *type[HN_GROUP_INPUTS] = { NULL };
    HnTensor *known[HN_GROUP_INPUTS] = { NULL };
    const HnType *out = fixed_type(p, hn_node_out(n, 0));
    if (n->op == NULL || g_hash_table_contains(p->groups, n) || (n->op->flags & HN_OP_ELEMENTWISE) == 0 ||
        (n->op->flags & (HN_OP_VIEW | HN_OP_RANDOM)) != 0 || out == NULL || n->in->len > HN_GROUP_INPUTS ||
        hn_types_value(p->types, hn_node_out(n, 0)) != NULL)
        return FALSE;
    for (guint k = 1; k < n->out->len; k++)
        if (n->out->pdata[k] != NULL)
            return FALSE;
    for (guint i = 0; i < n->in->len; i++) {
        const HnValue *v = n->in->pdata[i];
        if (v != NULL && (type[i] = fixed_type(p, v)) == NULL)
            return FALSE;
        known[i] = v != NULL ? hn_types_value(p->types, v) : NULL;
    }
    return p->exec->env->backend->group_takes(n, type, known, out);
}

/* The group that reads all of n's result; NULL: several do, or others. */
static HnNode *only_reader(const HnPlan *p, const HnNode *n, GHashTable *last_of)
{
    const HnValue *v = hn_node_out(n, 0);
    HnNode *reader = NULL;
    if (v->is_output || v->users->len == 0)
        return NULL;
    for (guint i = 0; i < v->users->len; i++) {
        HnNode *last = g_hash_table_lookup(last_of, v->users->pdata[i]);
        if (last == NULL || (reader != NULL && last != reader))
            return NULL;
        reader = last;
    }
    return hn_type_same_shape(fixed_type(p, v), fixed_type(p, hn_node_out(reader, 0))) ? reader : NULL;
}

void hn_plan_find_groups(HnPlan *p)
{
    if (p->exec->env->backend->group == NULL)
        return;
    g_autoptr(GHashTable) last_of = g_hash_table_new(NULL, NULL); /* node -> last node of its group */
    const GPtrArray *nodes = p->low->model->graph->nodes;
    for (guint i = nodes->len; i-- > 0;) {
        HnNode *n = nodes->pdata[i];
        if (!can_join(p, n))
            continue;
        HnNode *last = only_reader(p, n, last_of);
        GPtrArray *group = last != NULL ? g_hash_table_lookup(p->groups, last) : NULL;
        if (group == NULL || group->len >= HN_GROUP_NODES) {
            last = n;
            group = g_ptr_array_new();
        } else {
            g_ptr_array_ref(group);
        }
        g_hash_table_insert(last_of, n, last);
        g_ptr_array_insert(group, 0, n);
        g_hash_table_insert(p->groups, n, group);
    }
}

/* --- the step of a group ------------------------------------------------------------------------------------------ */

static int index_of(const GPtrArray *nodes, const HnNode *n)
{
    guint i;
    return n != NULL && g_ptr_array_find((GPtrArray *)nodes, n, &i) ? (int)i : -1;
}

static HnGroup *group_new(const GPtrArray *nodes, GPtrArray *reads)
{
    guint total = 0;
    for (guint k = 0; k < nodes->len; k++)
        total += ((const HnNode *)nodes->pdata[k])->in->len;
    HnGroup *g = g_malloc0(sizeof *g + (total + 1) * sizeof g->from[0]);
    g->n = (int)nodes->len;
    g->node = g_memdup2(nodes->pdata, nodes->len * sizeof(gpointer));
    for (guint k = 0, at = 0; k < nodes->len; k++) {
        const HnNode *n = nodes->pdata[k];
        for (guint i = 0; i < n->in->len; i++, at++) {
            HnValue *v = n->in->pdata[i];
            int made = v != NULL ? index_of(nodes, v->producer) : -1;
            guint port = 0;
            if (v != NULL && made < 0 && !g_ptr_array_find(reads, v, &port)) {
                port = reads->len;
                g_ptr_array_add(reads, v);
            }
            g->from[at] = v == NULL ? HN_GROUP_ABSENT : made >= 0 ? -1 - made : (int)port;
        }
    }
    return g;
}

void hn_group_free(HnGroup *g)
{
    if (g != NULL)
        g_free(g->node);
    g_free(g);
}

/* A step for the nodes, not prepared yet; takes g. */
static HnStep *group_step(HnPlan *p, HnGroup *g, const GPtrArray *reads, GError **error)
{
    const HnNode *last = g->node[g->n - 1];
    HnStep *s = hn_step_new(p, last, (int)reads->len, 0, 1);
    s->group = g;
    gboolean ok = TRUE;
    for (guint i = 0; ok && i < reads->len; i++)
        ok = (s->in[i].slot = hn_plan_slot(p, reads->pdata[i], error)) != NULL;
    const HnValue *v = hn_node_out(last, 0);
    if (ok && (s->out[0].slot = hn_plan_result_slot(p, v, hn_types_get(p->types, v), error)) != NULL) {
        if (p->exec->env->backend->widens && !hn_lowered_origin(p->low, v)->is_output)
            hn_plan_widen_result(s->out[0].slot);
        s->kernel = p->exec->env->backend->group;
        return s;
    }
    hn_step_free(s);
    return NULL;
}

gboolean hn_plan_add_group(HnPlan *p, const GPtrArray *group, GError **error)
{
    g_autoptr(GPtrArray) rest = g_ptr_array_new(); /* without those that an earlier step computes along */
    for (guint i = 0; i < group->len; i++)
        if (!g_hash_table_contains(p->fused, group->pdata[i]))
            g_ptr_array_add(rest, group->pdata[i]);
    g_autoptr(GPtrArray) reads = g_ptr_array_new();
    HnGroup *g = rest->len > 1 ? group_new(rest, reads) : NULL;
    if (g != NULL && reads->len <= HN_GROUP_PORTS) {
        HnStep *s = group_step(p, g, reads, error);
        return s != NULL && hn_plan_finish_step(p, s, s->kernel->prepare(s, error), error);
    }
    hn_group_free(g);
    for (guint i = 0; i < rest->len; i++)
        if (!hn_plan_add_step(p, rest->pdata[i], error))
            return FALSE;
    return TRUE;
}
