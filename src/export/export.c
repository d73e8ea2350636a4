#include "export/export.h"

#include <string.h>

#include "export/cut.h"
#include "export/private.h"
#include "pass/opset.h"

#define MOST_DROPPED 64 /* rewrites undone one by one; with more the export fails */

/* --- making the model --------------------------------------------------------------------------------------------- */

HnModel *hn_export_original(const HnExportOptions *o, GError **error)
{
    g_autoptr(HnModel) m = o->open(o->data, error);
    if (m == NULL ||
        ((o->extract_in != NULL || o->extract_out != NULL) && !hn_extract(m, o->extract_in, o->extract_out, error)))
        return NULL;
    if (o->fix != NULL && !hn_fix_shapes(m, o->fix, error))
        return NULL;
    return g_steal_pointer(&m);
}

static gboolean convert(const HnExportOptions *o, HnModel *m, GPtrArray *blocked, GError **error)
{
    if (!o->keep_functions)
        return hn_settle_opset(m, o->opset, blocked, error);
    return o->opset == 0 || o->opset == hn_model_opset(m, NULL) || hn_convert_opset(m, o->opset, blocked, error);
}

static gboolean run_passes(const HnExportOptions *o, HnModel *m, guint64 most, GHashTable *banned, HnPassLog *log,
                           GError **error)
{
    HnPassOptions p = o->pass;
    p.most = most;
    p.banned = banned;
    return most == 0 || hn_pass_run(m, &p, log, error);
}

/* The model with the first `most` rewrites; 0: with none. */
static HnModel *make(const HnExportOptions *o, guint64 most, GHashTable *banned, HnPassLog *log, GPtrArray *blocked,
                     GError **error)
{
    g_autoptr(HnModel) m = hn_export_original(o, error);
    if (m == NULL || !convert(o, m, blocked, error))
        return NULL;
    if (o->pass.level > 0)
        hn_model_drop_defaults(m);
    return run_passes(o, m, most, banned, log, error) ? g_steal_pointer(&m) : NULL;
}

/* --- undoing ------------------------------------------------------------------------------------------------------ */

static void dropped_free(gpointer data)
{
    HnDropped *d = data;
    g_free(d->pass);
    g_free(d->op);
    g_free(d->site);
    g_free(d->why);
    g_free(d->repro);
    g_free(d);
}

typedef struct {
    const HnExportOptions *o;
    const HnVerify *verify;
    HnExported *x;
    GHashTable *banned;
} Export;

static HnDropped *drop(Export *e, const HnSite *site, const char *why)
{
    HnDropped *d = g_new0(HnDropped, 1);
    d->pass = g_strdup(site->pass->name);
    d->op = g_strdup(site->op);
    d->site = g_strdup(site->site);
    d->why = g_strdup(why);
    g_hash_table_add(e->banned, hn_site_key(site->pass, site->site));
    g_ptr_array_add(e->x->dropped, d);
    return d;
}

static gboolean is_final(const GError *error)
{
    return g_error_matches(error, HN_ERROR, HN_ERROR_INTERRUPTED) ||
           g_error_matches(error, HN_ERROR, HN_ERROR_BUDGET) || g_error_matches(error, HN_ERROR, HN_ERROR_IO);
}

/* The model with at most so many rewrites; those that fail are dropped on the way. */
static HnModel *build(Export *e, guint64 most, GError **error)
{
    for (;;) {
        GError *failure = NULL;
        hn_pass_log_clear(&e->x->log);
        hn_pass_log_init(&e->x->log);
        g_ptr_array_set_size(e->x->blocked, 0);
        HnModel *m = make(e->o, most, e->banned, &e->x->log, e->x->blocked, &failure);
        if (m != NULL)
            return m;
        const guint made = e->x->log.made->len;
        if (made == 0 || is_final(failure) || e->x->dropped->len >= MOST_DROPPED) {
            g_propagate_error(error, failure);
            return NULL;
        }
        drop(e, e->x->log.made->pdata[made - 1], failure->message);
        g_error_free(failure);
    }
}

/* --- proving ------------------------------------------------------------------------------------------------------ */

static void verify(const Export *e, HnModel *m, HnVerified *out)
{
    hn_verify(e->verify, m, e->o->rtol, e->o->atol, 0, out);
}

/* TRUE: the outputs agree after the first n rewrites. */
static gboolean agrees(Export *e, guint64 n, gboolean *failed, GError **error)
{
    g_autoptr(HnModel) m = build(e, n, error);
    HnVerified v;
    *failed = m == NULL;
    if (m == NULL)
        return FALSE;
    verify(e, m, &v);
    const gboolean equal = v.equal;
    hn_verified_clear(&v);
    return equal;
}

/* Number of the first rewrite behind which outputs differ, out of n behind which they do; 0: they do before all. */
static guint64 first_bad(Export *e, guint64 n, GError **error)
{
    guint64 good = 0, bad = n;
    gboolean failed;
    if (!agrees(e, 0, &failed, error))
        return 0;
    while (bad - good > 1) {
        if (e->o->progress != NULL && hn_progress_stop(e->o->progress, error))
            return 0;
        const guint64 mid = good + (bad - good) / 2;
        const gboolean equal = agrees(e, mid, &failed, error);
        if (failed)
            return 0;
        if (equal)
            good = mid;
        else
            bad = mid;
    }
    return bad;
}

/* Finds the rewrite that changes results, and drops it. */
static gboolean drop_guilty(Export *e, const HnVerified *v, GError **error)
{
    GError *failure = NULL;
    const guint made = e->x->log.made->len;
    const guint64 bad = made > 0 && e->x->dropped->len < MOST_DROPPED ? first_bad(e, made, &failure) : 0;
    if (failure != NULL) {
        g_propagate_error(error, failure);
        return FALSE;
    }
    if (bad == 0) {
        g_set_error(error, HN_ERROR, HN_ERROR_GUARD,
                    "the new model computes something else, and no rewrite is to blame: %s", v->why);
        return FALSE;
    }
    g_autoptr(HnModel) m = build(e, bad, error);
    if (m == NULL || e->x->log.made->len == 0)
        return FALSE;
    HnVerified at;
    verify(e, m, &at);
    if (hn_progress_stop(e->o->progress, error)) { /* what was found by then is no verdict */
        hn_verified_clear(&at);
        return FALSE;
    }
    g_autoptr(HnModel) before = NULL;
    HnSite *site = e->x->log.made->pdata[e->x->log.made->len - 1];
    HnDropped *d = drop(e, site, at.why != NULL ? at.why : v->why);
    hn_verified_clear(&at);
    if (e->o->repro != NULL) {
        const HnPass *pass = site->pass;
        g_autofree char *name = g_strdup(site->site);
        before = build(e, bad - 1, error);
        if (before == NULL)
            return FALSE;
        d->repro = hn_export_repro(e->o, before, pass, name, e->x->dropped->len);
    }
    return TRUE;
}

static gboolean prove(Export *e, GError **error)
{
    for (;;) {
        verify(e, e->x->model, &e->x->verified);
        if (e->x->verified.equal)
            return TRUE;
        if (e->o->progress != NULL && hn_progress_stop(e->o->progress, error))
            return FALSE;
        HnVerified v = e->x->verified;
        e->x->verified = (HnVerified){ 0 };
        g_clear_pointer(&e->x->model, hn_model_free);
        const gboolean dropped = drop_guilty(e, &v, error);
        hn_verified_clear(&v);
        if (!dropped || (e->x->model = build(e, G_MAXUINT64, error)) == NULL)
            return FALSE;
    }
}

/* --- the end ------------------------------------------------------------------------------------------------------ */

static void declare(HnNode *n, gpointer data)
{
    (void)data;
    for (guint k = 0; k < n->out->len; k++) {
        HnValue *v = n->out->pdata[k];
        if (v == NULL || v->has_info || v->is_output || v->type == NULL || v->type->kind == HN_TYPE_NONE)
            continue;
        v->has_info = TRUE;
        g_ptr_array_add(v->graph->infos, v);
    }
}

static void clear_node(HnNode *n, gpointer data)
{
    (void)data;
    g_clear_pointer(&n->doc, g_free);
    g_clear_pointer(&n->metadata, g_ptr_array_unref);
}

static void clear_metadata(HnModel *m)
{
    g_clear_pointer(&m->doc, g_free);
    g_clear_pointer(&m->metadata, g_ptr_array_unref);
    g_clear_pointer(&m->graph->doc, g_free);
    g_clear_pointer(&m->graph->metadata, g_ptr_array_unref);
    g_clear_pointer(&m->producer_name, g_free);
    g_clear_pointer(&m->producer_version, g_free);
    hn_graph_foreach_node(m->graph, clear_node, NULL);
}

/* Running a model unfolds its functions: where they are to stay it is made again. */
static gboolean finish(Export *e, GError **error)
{
    HnModel *m = e->x->model;
    if (m->functions->len == 0 || e->verify == NULL)
        return TRUE;
    hn_model_free(m);
    return (e->x->model = build(e, G_MAXUINT64, error)) != NULL;
}

static gboolean declare_all(const Export *e, GError **error)
{
    HnModel *m = e->x->model;
    if ((e->o->infer_shapes || e->o->fix != NULL) && !hn_graph_infer(m->graph, FALSE, error))
        return FALSE;
    if (e->o->infer_shapes)
        hn_graph_foreach_node(m->graph, declare, NULL);
    if (e->o->clear_metadata)
        clear_metadata(m);
    return hn_model_verify(m, error);
}

gboolean hn_export(const HnExportOptions *o, const HnVerify *v, HnExported *x, GError **error)
{
    *x = (HnExported){ .dropped = g_ptr_array_new_with_free_func(dropped_free),
                       .blocked = g_ptr_array_new_with_free_func(g_free) };
    Export e = { o, v, x, g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL) };
    hn_pass_log_init(&x->log);
    x->model = build(&e, G_MAXUINT64, error);
    const gboolean ok = x->model != NULL && (v == NULL || prove(&e, error)) && finish(&e, error) &&
                        (o->to == HN_UNDEFINED || hn_export_half(o, v, x, error)) && declare_all(&e, error);
    g_hash_table_unref(e.banned);
    return ok;
}

void hn_exported_clear(HnExported *x)
{
    g_clear_pointer(&x->model, hn_model_free);
    hn_pass_log_clear(&x->log);
    g_clear_pointer(&x->dropped, g_ptr_array_unref);
    g_clear_pointer(&x->blocked, g_ptr_array_unref);
    hn_verified_clear(&x->verified);
    if (x->converted)
        hn_precision_log_clear(&x->precision);
}
