/*
 * The driver: which pass next, which node next, and what must hold behind each.
 */
#include "pass/pass.h"

#include <string.h>

#include "pass/driver.h"

#define MOST_ROUNDS 64 /* passes that undo each other would go on for ever */

#define HN_PASS(symbol) extern const HnPass hn_pass_##symbol;
#include "pass/passes.def"
#undef HN_PASS

const HnPass *const *hn_pass_all(void)
{
    static const HnPass *const all[] = {
#define HN_PASS(symbol) &hn_pass_##symbol,
#include "pass/passes.def"
#undef HN_PASS
        NULL,
    };
    return all;
}

const HnPass *hn_pass_find(const char *name)
{
    for (const HnPass *const *p = hn_pass_all(); *p != NULL; p++)
        if (strcmp((*p)->name, name) == 0)
            return *p;
    return NULL;
}

static void site_free(gpointer data)
{
    HnSite *s = data;
    g_free(s->op);
    g_free(s->site);
    g_free(s->why);
    g_free(s);
}

void hn_pass_log_init(HnPassLog *log)
{
    log->made = g_ptr_array_new_with_free_func(site_free);
    log->missed = g_ptr_array_new_with_free_func(site_free);
    log->spared = g_ptr_array_new_with_free_func(site_free);
    log->rounds = 0;
}

void hn_pass_log_clear(HnPassLog *log)
{
    g_clear_pointer(&log->made, g_ptr_array_unref);
    g_clear_pointer(&log->missed, g_ptr_array_unref);
    g_clear_pointer(&log->spared, g_ptr_array_unref);
}

char *hn_site_key(const HnPass *pass, const char *site)
{
    return g_strdup_printf("%s\t%s", pass->name, site);
}

/* --- what is known ------------------------------------------------------------------------------------------------ */

/* Every value's type from scratch. */
static gboolean know(HnRewrite *r)
{
    hn_types_free(r->types);
    r->types = hn_types_new(r->model);
    hn_types_set_budget(r->types, r->o->budget);
    hn_types_name_unknown(r->types);
    if (!hn_types_graph(r->types, r->model->graph, r->o->fold_bytes, HN_OP_UNPACK, &r->error))
        return FALSE;
    for (guint i = 0; i < r->model->functions->len; i++) {
        HnFunction *f = r->model->functions->pdata[i];
        if (!hn_types_graph(r->types, f->body, r->o->fold_bytes, HN_OP_UNPACK, &r->error))
            return FALSE;
    }
    return TRUE;
}

static void bind_and_list(HnNode *n, gpointer data)
{
    HnRewrite *r = data;
    hn_op_bind(n, NULL); /* what is not known stays as it is */
    g_hash_table_add(r->live, n);
}

/* --- walks -------------------------------------------------------------------------------------------------------- */

static void list_node(HnNode *n, gpointer data)
{
    g_ptr_array_add(data, n);
}

static void walk_nodes(HnRewrite *r, HnGraph *g)
{
    g_autoptr(GPtrArray) nodes = g_ptr_array_new();
    hn_graph_foreach_node(g, list_node, nodes);
    r->burying = TRUE;
    for (guint i = 0; i < nodes->len && r->error == NULL && !r->full; i++) {
        HnNode *n = nodes->pdata[i];
        if (hn_progress_stop(r->o->progress, &r->error) || !hn_budget_ask(r->o->budget, &r->error))
            break;
        if (g_hash_table_contains(r->live, n) && r->pass->node(r, n))
            hn_rw_sweep(r);
    }
    r->burying = FALSE;
    hn_graph_settle(g);
}

static void walk_graphs(HnRewrite *r, HnGraph *g)
{
    if (r->pass->graph(r, g) && r->error == NULL)
        hn_rw_sweep(r);
    for (guint i = 0; i < g->inner->len && r->error == NULL && !r->full; i++)
        walk_graphs(r, g->inner->pdata[i]);
}

static void walk(HnRewrite *r, HnGraph *g)
{
    if (r->pass->graph != NULL)
        walk_graphs(r, g);
    else
        walk_nodes(r, g);
}

/* One pass over everything. */
static gboolean run_pass(HnRewrite *r, const HnPass *pass)
{
    r->pass = pass;
    r->changed = FALSE;
    g_clear_pointer(&r->names, g_hash_table_unref);
    walk(r, r->model->graph);
    for (guint i = 0; i < r->model->functions->len && r->error == NULL; i++)
        walk(r, ((HnFunction *)r->model->functions->pdata[i])->body);
    if (r->error == NULL && r->changed)
        hn_model_verify(r->model, &r->error);
    if (r->error != NULL)
        g_prefix_error(&r->error, "pass '%s': ", pass->name);
    return r->error == NULL;
}

static gboolean listed(const char *const *names, const char *name)
{
    return names != NULL && g_strv_contains(names, name);
}

static gboolean named(const HnPassOptions *o, const HnPass *pass)
{
    return (o->only == NULL || listed(o->only, pass->name)) && !listed(o->skip, pass->name);
}

static gboolean wanted(const HnPassOptions *o, const HnPass *pass)
{
    return pass->level <= o->level && named(o, pass);
}

static gboolean run_rounds(HnRewrite *r)
{
    const HnPass *const *passes = r->o->passes != NULL ? r->o->passes : hn_pass_all();
    for (gboolean changed = TRUE; changed && !r->full && r->log->rounds < MOST_ROUNDS; r->log->rounds++) {
        changed = FALSE;
        if (!know(r))
            return FALSE;
        for (const HnPass *const *p = passes; *p != NULL && !r->full; p++) {
            if (!wanted(r->o, *p))
                continue;
            if (hn_progress_stop(r->o->progress, &r->error))
                return FALSE;
            if (!run_pass(r, *p))
                return FALSE;
            changed = changed || r->changed;
        }
    }
    return TRUE;
}

/* Values that nothing makes any more are not declared in the file. */
static void undeclare(HnGraph *g)
{
    for (guint i = g->infos->len; i-- > 0;) {
        HnValue *v = g->infos->pdata[i];
        if (v->graph == g && (v->producer != NULL || v->is_input || hn_value_is_weight(v)))
            continue;
        v->has_info = FALSE;
        g_ptr_array_remove_index(g->infos, i);
    }
    for (guint i = 0; i < g->inner->len; i++)
        undeclare(g->inner->pdata[i]);
}

/* A function's body has no place for weights in a file: each becomes a Constant. */
static void weights_to_nodes(HnGraph *body)
{
    while (body->weights->len > 0) {
        HnValue *v = body->weights->pdata[body->weights->len - 1];
        if (v->weight == NULL)
            return;
        HnAttr *a = hn_attr_new("value", HN_ATTR_TENSOR);
        a->has_kind = TRUE;
        a->t = hn_tensor_ref(v->weight);
        HnNode *n = hn_graph_add_node(body, 0, "Constant", NULL, NULL);
        hn_node_set_attr(n, a);
        hn_graph_remove_weight(body, v);
        hn_node_set_out(n, 0, v);
    }
}

static void rewrite_init(HnRewrite *r, HnModel *m, const HnPassOptions *o, HnPassLog *log)
{
    *r = (HnRewrite){
        .model = m,
        .o = o,
        .log = log,
        .live = g_hash_table_new(NULL, NULL),
        .loose = g_ptr_array_new(),
        .unused = g_ptr_array_new(),
        .misses = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL),
    };
}

/* Its types stay, if it has any. */
static void rewrite_clear(HnRewrite *r)
{
    g_hash_table_unref(r->live);
    g_ptr_array_unref(r->loose);
    g_ptr_array_unref(r->unused);
    g_hash_table_unref(r->misses);
    g_clear_pointer(&r->names, g_hash_table_unref);
}

gboolean hn_pass_apply(HnModel *m, HnTypes *types, const HnPassOptions *o, GError **error)
{
    g_autoptr(GPtrArray) nodes = g_ptr_array_copy(m->graph->nodes, NULL, NULL);
    HnPassLog log;
    HnRewrite r;
    hn_pass_log_init(&log);
    rewrite_init(&r, m, o, &log);
    r.types = types;
    for (guint i = 0; i < m->graph->nodes->len; i++)
        g_hash_table_add(r.live, m->graph->nodes->pdata[i]);
    r.burying = TRUE;
    for (guint i = 0; i < nodes->len && hn_budget_ask(o->budget, &r.error); i++)
        for (const HnPass *const *p = o->passes; *p != NULL && g_hash_table_contains(r.live, nodes->pdata[i]); p++) {
            if (r.error != NULL || !named(o, *p))
                continue;
            r.pass = *p;
            if (r.pass->node(&r, nodes->pdata[i]))
                hn_rw_sweep(&r);
        }
    hn_graph_settle(m->graph);
    if (r.error != NULL)
        g_propagate_error(error, r.error);
    const gboolean ok = r.error == NULL;
    rewrite_clear(&r);
    hn_pass_log_clear(&log);
    return ok;
}

gboolean hn_pass_run(HnModel *m, const HnPassOptions *o, HnPassLog *log, GError **error)
{
    HnRewrite r;
    rewrite_init(&r, m, o, log);
    hn_graph_foreach_node(m->graph, bind_and_list, &r);
    for (guint i = 0; i < m->functions->len; i++)
        hn_graph_foreach_node(((HnFunction *)m->functions->pdata[i])->body, bind_and_list, &r);
    gboolean ok = run_rounds(&r);
    hn_rw_weigh(&r);
    if (ok && log->made->len > 0)
        undeclare(m->graph);
    for (guint i = 0; ok && i < m->functions->len; i++)
        weights_to_nodes(((HnFunction *)m->functions->pdata[i])->body);
    if (!ok)
        g_propagate_error(error, r.error);
    hn_types_free(r.types);
    rewrite_clear(&r);
    return ok;
}
