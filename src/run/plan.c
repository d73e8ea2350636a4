/*
 * Planning: from a graph and fixed input types to a flat list of steps with places in memory.
 *
 *   1. types:    shapes become numbers, shape arithmetic and what follows from weights becomes constant
 *   2. liveness: nodes whose results nobody reads are dropped
 *                what has to run becomes a graph of its own (lower/), its element-wise nodes groups (group.c)
 *   3. steps:    views become aliases; kernels are chosen and prepared, reorders put in between
 *   4. memory:   lifetimes, in-place results, places in the arena
 */
#include "run/plan.h"

#include <string.h>

#include "base/clock.h"
#include "op/ops.h"
#include "run/memory.h"

#define FOLD_BYTES ((gsize)1 << 20)   /* constants beyond it are made only where their inputs were as large */
#define CHARGE_STEP ((gsize)16 << 10) /* the budget is told in steps: an object at a time would be a lock each */
#define NODE_BYTES 320 /* about what a node takes apart from its step: types of its outputs, places in tables */
#define MAX_DEPTH 4000 /* plans one behind the other, which are freed and counted by recursion */

/* --- 1. types ---------------------------------------------------------------------------------------------------- */

static gboolean known_or_fixed(const HnPlan *p, const HnNode *n)
{
    for (guint k = 0; k < n->out->len; k++) {
        HnValue *v = hn_node_out(n, (int)k);
        HnType *t = v != NULL ? hn_types_get(p->known, v) : NULL;
        if (v != NULL && hn_types_value(p->known, v) == NULL && !hn_type_is_list(t) && !hn_type_is_fixed(t, NULL))
            return FALSE;
    }
    return TRUE;
}

static gboolean ends_known(const HnPlan *p, int last)
{
    const HnExec *x = p->exec;
    return (x->owner == NULL && x->env->engine->settled[last] != 0) || known_or_fixed(p, x->graph->nodes->pdata[last]);
}

static gboolean infer_nodes(HnPlan *p, GError **error)
{
    GPtrArray *nodes = p->exec->graph->nodes;
    p->end = p->start;
    const guint8 *settled = p->exec->owner == NULL ? p->exec->env->engine->settled : NULL;
    while (p->end < (int)nodes->len) {
        HnNode *n = nodes->pdata[p->end++];
        if (settled != NULL && settled[p->end - 1] != 0)
            continue;
        if (!hn_types_node(p->known, n, hn_plan_unpacks(p, n) ? HN_TENSOR_SMALL : FOLD_BYTES, error))
            return FALSE;
        if (!known_or_fixed(p, n))
            break;
    }
    p->last = p->end == (int)nodes->len && (p->end == p->start || ends_known(p, p->end - 1));
    if (settled != NULL)
        hn_engine_settle(p->exec->env->engine, p->known, p->start, p->end);
    return TRUE;
}

/* --- 2. liveness ------------------------------------------------------------------------------------------------- */

static void note_use(const HnValue *v, GHashTable *last_use, int use)
{
    if (v != NULL)
        g_hash_table_insert(last_use, (gpointer)v, GINT_TO_POINTER(use));
}

static void foreach_use(const HnNode *n, void (*fn)(const HnValue *v, GHashTable *table, int use), GHashTable *table,
                        int use)
{
    for (guint i = 0; i < n->in->len; i++)
        fn(hn_node_in(n, (int)i), table, use);
    if (n->op == NULL || (n->op->flags & HN_OP_CONTROL) != 0) {
        g_autoptr(GPtrArray) captures = hn_node_captures(n);
        for (guint i = 0; i < captures->len; i++)
            fn(captures->pdata[i], table, use);
    }
}

/* Found once: looking at all nodes behind each of many plans would take their square. */
GHashTable *hn_plan_last_uses(const HnGraph *g)
{
    GHashTable *last_use = g_hash_table_new(NULL, NULL);
    for (guint i = 0; i < g->nodes->len; i++)
        foreach_use(g->nodes->pdata[i], note_use, last_use, (int)i + 1);
    for (guint i = 0; i < g->outputs->len; i++)
        note_use(g->outputs->pdata[i], last_use, G_MAXINT);
    return last_use;
}

static gboolean read_behind(const HnPlan *p, const HnValue *v)
{
    return GPOINTER_TO_INT(g_hash_table_lookup(p->exec->last_use, v)) > p->end && hn_types_value(p->known, v) == NULL;
}

/* Does something behind the plan's end read v, is it a result, or does somebody watch it? Not where its elements are
 * known. */
static gboolean needed_behind(const HnPlan *p, const HnValue *v)
{
    return read_behind(p, v) || (hn_types_value(p->known, v) == NULL && hn_plan_watches(p, v));
}

static void need(const HnValue *v, GHashTable *needed, int use)
{
    (void)use;
    if (v != NULL)
        g_hash_table_add(needed, (gpointer)v);
}

/* Does node i of the plan have to run? The node that a plan ends with always has: its shapes choose what follows. */
static gboolean *live_nodes(const HnPlan *p)
{
    g_autoptr(GHashTable) needed = g_hash_table_new(NULL, NULL);
    gboolean *live = g_new0(gboolean, (gsize)(p->end - p->start) + 1);
    for (int i = p->end - 1; i >= p->start; i--) {
        const HnNode *n = p->exec->graph->nodes->pdata[i];
        gboolean *l = &live[i - p->start];
        *l = !p->last && i == p->end - 1;
        for (guint k = 0; k < n->out->len && !*l; k++) {
            const HnValue *v = hn_node_out(n, (int)k);
            *l = v != NULL &&
                 (needed_behind(p, v) || (g_hash_table_contains(needed, v) && hn_types_value(p->known, v) == NULL));
        }
        if (*l)
            foreach_use(n, need, needed, 0);
    }
    return live;
}

/* --- the plan ---------------------------------------------------------------------------------------------------- */

static void plan_free(gpointer data)
{
    HnPlan *p = data;
    if (p == NULL)
        return;
    hn_plan_forget_segments(p);
    hn_plan_forget_pieces(p);
    g_ptr_array_unref(p->next);
    g_ptr_array_unref(p->steps);
    g_hash_table_unref(p->copies);
    g_hash_table_unref(p->fused);
    g_hash_table_unref(p->groups);
    g_ptr_array_unref(p->slots);
    g_hash_table_unref(p->by_value);
    g_ptr_array_unref(p->inputs);
    g_ptr_array_unref(p->aliases);
    g_ptr_array_unref(p->fresh);
    g_ptr_array_unref(p->results);
    g_ptr_array_unref(p->seen);
    hn_types_free(p->known);
    hn_lowered_free(p->low);
    for (guint i = 0; i < p->n_key; i++)
        hn_type_unref(p->key[i]);
    g_free(p->key);
    hn_budget_uncharge(p->exec->env->o.budget, p->charged);
    hn_plan_free_memory(p);
    g_free(p);
}

static HnPlan *plan_new(HnExec *x, HnPlan *before, guint n_key, HnType *const *key)
{
    HnPlan *p = g_new0(HnPlan, 1);
    p->exec = x;
    p->before = before;
    p->depth = before != NULL ? before->depth + 1 : 0;
    p->start = before != NULL ? before->end : 0;
    p->parts = 1;
    p->n_key = n_key;
    p->key = g_new0(HnType *, (gsize)n_key + 1);
    for (guint i = 0; i < n_key; i++)
        p->key[i] = hn_type_ref(key[i]);
    p->slots = g_ptr_array_new_with_free_func(hn_slot_free);
    p->by_value = g_hash_table_new(NULL, NULL);
    p->steps = g_ptr_array_new_with_free_func(hn_step_free);
    p->copies = g_hash_table_new_full(NULL, NULL, NULL, (GDestroyNotify)g_ptr_array_unref);
    p->fused = g_hash_table_new(NULL, NULL);
    p->groups = g_hash_table_new_full(NULL, NULL, NULL, (GDestroyNotify)g_ptr_array_unref);
    p->inputs = g_ptr_array_new();
    p->aliases = g_ptr_array_new();
    p->fresh = g_ptr_array_new();
    p->results = g_ptr_array_new();
    p->seen = g_ptr_array_new();
    p->next = g_ptr_array_new_with_free_func(plan_free);
    const HnTypes *base = before != NULL ? before->known : x->owner != NULL ? x->owner->known : x->env->engine->base;
    p->known = hn_types_copy(base);
    p->integers = x->env->backend->kernels(&hn_op_quantconv) != NULL;
    return p;
}

/* Slots of the exec's inputs: the first plan of a chain. */
static gboolean add_inputs(HnPlan *p, GError **error)
{
    const HnEngine *e = p->exec->env->engine;
    for (guint i = 0; i < p->exec->inputs->len; i++) {
        const HnValue *v = p->exec->inputs->pdata[i];
        HnSlot *s = hn_plan_result_slot(p, v, p->key[i], error);
        if (s == NULL)
            return FALSE;
        s->changing = TRUE;
        if (p->exec->owner == NULL && i >= e->inputs->len) {
            HnTensor *there = hn_engine_place(e, i - e->inputs->len, HN_DEVICE);
            hn_tensor_unref(s->tensor);
            s->tensor = hn_tensor_ref(there != NULL ? there : hn_engine_place(e, i - e->inputs->len, HN_HOST));
            s->where = there != NULL ? HN_DEVICE : HN_HOST;
            s->variable = TRUE;
        }
        g_ptr_array_add(p->inputs, s);
    }
    return TRUE;
}

gboolean hn_plan_charge(HnPlan *p, GError **error)
{
    if (p->objects <= p->charged)
        return TRUE;
    gsize more = p->objects - p->charged + CHARGE_STEP;
    if (!hn_budget_charge(p->exec->env->o.budget, more, error))
        return FALSE;
    p->charged += more;
    return TRUE;
}

static void give_back_rest(HnPlan *p)
{
    if (p->charged <= p->objects)
        return;
    hn_budget_uncharge(p->exec->env->o.budget, p->charged - p->objects);
    p->charged = p->objects;
}

/* Somebody else reads v. The shapes of what the plan ends with are looked at. */
static gboolean is_kept(const HnValue *v, gpointer data)
{
    const HnPlan *p = data;
    return needed_behind(p, v) || (!p->last && v->producer == p->exec->graph->nodes->pdata[p->end - 1]);
}

static gboolean lower(HnPlan *p, const gboolean *live, GError **error)
{
    const HnLowering o = { .graph = p->exec->graph,
                           .start = p->start,
                           .end = p->end,
                           .live = live,
                           .types = p->known,
                           .is_kept = is_kept,
                           .runs = hn_plan_runs,
                           .data = p,
                           .plain = !p->exec->env->backend->lowers,
                           .budget = p->exec->env->o.budget };
    p->low = hn_lower(&o, error);
    if (p->low == NULL)
        return FALSE;
    p->types = p->low->types;
    p->objects += p->low->model->objects;
    return hn_plan_charge(p, error);
}

const HnTypes *hn_plan_types(const HnPlan *p, const HnValue *v)
{
    return p->low != NULL && v->graph->model == p->low->model ? p->types : p->known;
}

static gboolean all_known(const HnPlan *p, const HnNode *n)
{
    gboolean known = TRUE;
    for (guint k = 0; k < n->out->len; k++)
        known = known && (n->out->pdata[k] == NULL || hn_types_value(p->types, n->out->pdata[k]) != NULL);
    return known;
}

static gboolean add_steps(HnPlan *p, GError **error)
{
    const GPtrArray *nodes = p->low->model->graph->nodes;
    for (guint i = 0; i < nodes->len; i++) {
        if (!hn_plan_charge(p, error))
            return FALSE;
        HnNode *n = nodes->pdata[i];
        if (all_known(p, n) || g_hash_table_contains(p->fused, n) || hn_plan_is_deferred(p, n) ||
            hn_plan_is_late(p, n) || hn_plan_exchanges(p, n))
            continue;
        HnType *out0 = hn_node_out(n, 0) != NULL ? hn_types_get(p->types, hn_node_out(n, 0)) : NULL;
        gboolean view = (n->op->flags & HN_OP_VIEW) != 0 && out0 != NULL && hn_type_is_fixed(out0, NULL) &&
                        out0->dtype != HN_STRING;
        gboolean done = FALSE;
        if (!view && !hn_plan_add_turned(p, n, &done, error))
            return FALSE;
        if (done)
            continue;
        const GPtrArray *group = g_hash_table_lookup(p->groups, n);
        if (group != NULL && n != group->pdata[group->len - 1])
            continue;
        if (view            ? !hn_plan_add_view(p, n, error)
            : group != NULL ? !hn_plan_add_group(p, group, error)
                            : !hn_plan_add_step(p, n, error))
            return FALSE;
    }
    return TRUE;
}

/* Shapes that a file declares are often wrong and harmless; what has another element type is another model. */
static gboolean as_declared(const HnPlan *p, const HnSlot *s, const HnValue *v, GError **error)
{
    const HnType *t = v->type;
    if (p->exec->owner != NULL || t == NULL || t->kind != HN_TYPE_TENSOR || t->dtype == HN_UNDEFINED ||
        s->tensor == NULL || s->tensor->dtype == t->dtype)
        return TRUE;
    g_set_error(error, HN_ERROR, HN_ERROR_TYPE, "output '%s' is declared as %s, but is computed as %s", v->name,
                hn_dtype_name(t->dtype), hn_dtype_name(s->tensor->dtype));
    return FALSE;
}

static gboolean add_ends(HnPlan *p, GError **error)
{
    const HnGraph *g = p->exec->graph;
    for (guint k = 0; p->last && k < g->outputs->len; k++) {
        HnSlot *s = hn_plan_slot(p, g->outputs->pdata[k], error);
        if (s == NULL || (s = hn_plan_held(p, s, FALSE, error)) == NULL ||
            (s = hn_plan_in_layout(p, s, NULL, error)) == NULL ||
            (!hn_plan_stays(p, k, s) && (s = hn_plan_moved(p, s, HN_HOST, error)) == NULL) ||
            !as_declared(p, s, g->outputs->pdata[k], error))
            return FALSE;
        hn_slot_root(s)->kept = TRUE;
        g_ptr_array_add(p->results, s);
    }
    for (guint i = 0; i < p->slots->len && !p->last; i++) {
        HnSlot *s = p->slots->pdata[i];
        if (s->value != NULL && read_behind(p, s->value))
            hn_slot_root(s)->kept = TRUE;
    }
    const HnStep *end = !p->last && p->steps->len > 0 ? p->steps->pdata[p->steps->len - 1] : NULL;
    for (int k = 0; end != NULL && k < end->n_out; k++)
        if (end->out[k].slot != NULL && end->out[k].slot->tensor == NULL) {
            end->out[k].slot->changing = TRUE;
            g_ptr_array_add(p->seen, end->out[k].slot);
        }
    return TRUE;
}

/* May anybody ask for p->known later? Steps with sub-graphs plan them by it, a plan that goes on starts from it. */
static gboolean types_stay(const HnPlan *p)
{
    for (guint i = 0; i < p->steps->len; i++) {
        const HnStep *s = p->steps->pdata[i];
        if (s->op != NULL && (s->op->flags & HN_OP_CONTROL) != 0)
            return TRUE;
    }
    return !p->last;
}

static gboolean plan_build(HnPlan *p, GError **error)
{
    HnRunEnv *env = p->exec->env;
    gint64 t0 = hn_now_ns();
    p->end = p->start;
    p->objects = ((gsize)p->exec->graph->nodes->len - (gsize)p->start) * NODE_BYTES;
    gboolean ok = hn_plan_charge(p, error) && infer_nodes(p, error);
    gint64 t1 = hn_now_ns();
    p->objects -= ((gsize)p->exec->graph->nodes->len - (gsize)p->end) * NODE_BYTES;
    if (ok) {
        g_autofree gboolean *live = live_nodes(p);
        ok = lower(p, live, error);
    }
    if (ok) {
        hn_plan_cut(p);
        hn_plan_find_groups(p);
        ok = add_steps(p, error) && add_ends(p, error) && hn_plan_charge(p, error);
        hn_lowered_settle(p->low);
        p->types = NULL;
    }
    give_back_rest(p);
    hn_plan_drop_wide(p);
    if (ok) {
        hn_plan_hoist_moves(p);
        hn_plan_gather(p);
        hn_plan_join(p);
        hn_plan_lifetimes(p);
        ok = hn_plan_place(p, error) && hn_plan_own_memory(p, error) && hn_plan_settle(p, error);
    }
    if (ok) {
        hn_plan_resolve_aliases(p);
        hn_plan_find_segments(p);
        hn_plan_watch_slots(p);
    }
    if (ok && !types_stay(p))
        g_clear_pointer(&p->known, hn_types_free);
    env->optimize_ms += (double)(t1 - t0) * 1e-6;
    env->prepare_ms += (double)(hn_now_ns() - t1) * 1e-6;
    return ok;
}

/* --- caches ------------------------------------------------------------------------------------------------------ */

static HnPlan *cache_find(GPtrArray *plans, guint n, HnType *const *key)
{
    for (guint i = 0; i < plans->len; i++) {
        HnPlan *p = plans->pdata[i];
        gboolean same = p->n_key == n;
        for (guint k = 0; k < n && same; k++)
            same = hn_type_equal(p->key[k], key[k]);
        if (!same)
            continue;
        if (i > 0) { /* to the front */
            memmove(plans->pdata + 1, plans->pdata, i * sizeof(gpointer));
            plans->pdata[0] = p;
        }
        return p;
    }
    return NULL;
}

/* The session's limit is for the main graph's plans, each of which may hold weights once more, in its own order. Those
 * of a sub-graph take turns within one run: fewer would make each of its runs plan anew. */
static guint cache_limit(const HnExec *x)
{
    const int limit = x->env->o.plan_cache;
    return (guint)(x->owner != NULL ? MAX(limit, HN_PLAN_CACHE) : limit);
}

/* Builds p and puts it in front, or frees it. It takes the place of another one before it is made: there are never more
 * than the limit, not even for a moment. Only what both have packed in the same way stays. */
static gboolean cache_build(GPtrArray *plans, HnPlan *p, GError **error)
{
    const guint limit = cache_limit(p->exec);
    HnEngine *e = p->exec->env->engine;
    HnPacks *packs = e->device->packs;
    hn_packs_hold(packs); /* also those that a kernel makes to find out whether it takes a step */
    if (plans->len >= limit) {
        g_ptr_array_set_size(plans, (gint)limit - 1);
        hn_constants_sweep(e->constants);
        hn_packs_sweep(packs);
    }
    const gboolean ok = plan_build(p, error);
    hn_packs_release(packs);
    if (ok)
        g_ptr_array_insert(plans, 0, p);
    else
        plan_free(p);
    hn_constants_sweep(e->constants);
    return ok;
}

HnExec *hn_exec_new(HnRunEnv *env, HnGraph *g, const HnPlan *owner, GPtrArray *inputs)
{
    HnExec *x = g_new0(HnExec, 1);
    x->env = env;
    x->graph = g;
    x->owner = owner;
    x->inputs = g_ptr_array_ref(inputs);
    x->plans = g_ptr_array_new_with_free_func(plan_free);
    x->last_use = owner == NULL ? g_hash_table_ref(env->engine->last_use) : hn_plan_last_uses(g);
    return x;
}

void hn_exec_free(HnExec *x)
{
    if (x == NULL)
        return;
    g_ptr_array_unref(x->plans);
    g_ptr_array_unref(x->inputs);
    g_hash_table_unref(x->last_use);
    g_free(x);
}

/* The first plan of a chain; under the engine's lock. */
static HnPlan *plan_first(HnExec *x, HnType *const *in, GError **error)
{
    HnPlan *p = plan_new(x, NULL, x->inputs->len, in);
    if (x->owner != NULL && !hn_types_enter(p->known, x->graph, FALSE, error)) {
        plan_free(p);
        return NULL;
    }
    for (guint i = 0; i < x->inputs->len; i++)
        hn_types_set(p->known, x->inputs->pdata[i], in[i]);
    if ((x->owner == NULL && !hn_engine_reside(x->env->engine, error)) || !add_inputs(p, error)) {
        plan_free(p);
        return NULL;
    }
    return cache_build(x->plans, p, error) ? p : NULL;
}

HnPlan *hn_exec_plan(HnExec *x, HnType *const *in, GError **error)
{
    HnPlan *p = cache_find(x->plans, x->inputs->len, in);
    if (p != NULL)
        return p;
    g_mutex_lock(&x->env->engine->lock);
    p = plan_first(x, in, error);
    g_mutex_unlock(&x->env->engine->lock);
    return p;
}

HnPlan *hn_plan_next(HnPlan *p, GError **error)
{
    g_autoptr(GPtrArray) key = g_ptr_array_new_with_free_func((GDestroyNotify)hn_type_unref);
    for (guint i = 0; i < p->seen->len; i++) {
        const HnTensor *t = ((HnSlot *)p->seen->pdata[i])->tensor;
        g_ptr_array_add(key, hn_type_of(t));
    }
    HnPlan *q = cache_find(p->next, key->len, (HnType *const *)key->pdata);
    if (q != NULL)
        return q;
    if (p->depth >= MAX_DEPTH) {
        g_set_error(error, HN_ERROR, HN_ERROR_UNSUPPORTED,
                    "the shapes behind node '%s' and more than %d before it depend on data",
                    hn_node_label(p->exec->graph->nodes->pdata[p->end - 1]), MAX_DEPTH);
        return NULL;
    }
    g_mutex_lock(&p->exec->env->engine->lock);
    q = plan_new(p->exec, p, key->len, (HnType *const *)key->pdata);
    for (guint i = 0; i < p->seen->len; i++)
        hn_types_set(q->known, ((HnSlot *)p->seen->pdata[i])->value, key->pdata[i]);
    if (!cache_build(p->next, q, error))
        q = NULL;
    g_mutex_unlock(&p->exec->env->engine->lock);
    return q;
}
