#include "export/export.h"

#include "check/recipe.h"
#include "export/extract.h"
#include "export/private.h"
#include "pass/expand_contrib.h"
#include "pass/inline_functions.h"
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

/* The opset asked for, or the one that bf16 or core operators need; 0: it stays. */
static int64_t target(const HnExportJob *e, HnModel *m)
{
    const HnExportOptions *o = e->o;
    if (o->opset != 0)
        return o->opset;
    const int64_t least = o->to == HN_BF16 ? hn_precision_opset(m, o->to) : 0;
    return MAX(least, e->core_opset);
}

static gboolean convert(const HnExportJob *e, HnModel *m, GError **error)
{
    const HnExportOptions *o = e->o;
    GPtrArray *blocked = e->x->blocked;
    const int64_t opset = target(e, m);
    if (o->to_core)
        return hn_inline_calls(m, error) && hn_spell_out_contrib(m, TRUE, error) &&
               hn_settle_calls(m, opset, blocked, error);
    if (!o->keep_functions && !e->keep_functions)
        return hn_settle_calls(m, opset, blocked, error);
    return opset == 0 || opset == hn_model_opset(m, NULL) || hn_convert_opset(m, opset, blocked, error);
}

static gboolean run_passes(HnExportJob *e, HnModel *m, guint64 most, GError **error)
{
    HnPassOptions p = e->o->pass;
    p.most = most;
    p.banned = e->banned;
    p.lean = e->lean;
    return most == 0 || hn_pass_run(m, &p, &e->x->log, error);
}

HnModel *hn_export_plain(const HnExportJob *e, GError **error)
{
    g_autoptr(HnModel) m = hn_export_original(e->o, error);
    if (m == NULL || !convert(e, m, error))
        return NULL;
    if (e->o->pass.level > 0)
        hn_model_drop_defaults(m);
    hn_type_contrib(m);
    return g_steal_pointer(&m);
}

/* The lowest opset that has core forms for all operators of ONNX Runtime's domain, where the model's own has not: those
 * of blocks of few bits came with 21, of two bits with 25. */
static gboolean find_core_opset(HnExportJob *e, GError **error)
{
    static const int64_t later[] = { 21, 24, 25 };
    GError *failure = NULL;
    g_autoptr(HnModel) m = e->o->to_core && e->o->opset == 0 ? hn_export_plain(e, &failure) : NULL;
    for (guint i = 0; i < G_N_ELEMENTS(later) && failure != NULL && e->x->blocked->len > 0; i++) {
        g_clear_error(&failure);
        g_ptr_array_set_size(e->x->blocked, 0);
        e->core_opset = later[i];
        m = hn_export_plain(e, &failure);
    }
    if (failure != NULL)
        g_propagate_error(error, failure);
    return failure == NULL;
}

/* The model with the first `most` rewrites; 0: with none. */
static HnModel *make(HnExportJob *e, guint64 most, GError **error)
{
    g_autoptr(HnModel) m = hn_export_plain(e, error);
    return m != NULL && run_passes(e, m, most, error) ? g_steal_pointer(&m) : NULL;
}

/* --- undoing ------------------------------------------------------------------------------------------------------ */

HnDropped *hn_dropped_new(const HnSite *site, const char *why)
{
    HnDropped *d = g_new0(HnDropped, 1);
    d->pass = g_strdup(site->pass->name);
    d->op = g_strdup(site->op);
    d->site = g_strdup(site->site);
    d->why = g_strdup(why);
    return d;
}

void hn_dropped_free(gpointer dropped)
{
    HnDropped *d = dropped;
    g_free(d->pass);
    g_free(d->op);
    g_free(d->site);
    g_free(d->why);
    g_free(d->repro);
    g_free(d);
}

void hn_export_note_growth(HnExported *x, const HnSite *site)
{
    HnDropped *d = hn_dropped_new(site, "it makes the file longer");
    d->bytes = site->bytes;
    g_ptr_array_add(x->grown, d);
}

static HnDropped *drop(HnExportJob *e, const HnSite *site, const char *why)
{
    HnDropped *d = hn_dropped_new(site, why);
    g_hash_table_add(e->banned, hn_site_key(site->pass, site->site));
    g_ptr_array_add(e->x->dropped, d);
    return d;
}

HnModel *hn_export_build(HnExportJob *e, guint64 most, GError **error)
{
    for (;;) {
        GError *failure = NULL;
        hn_pass_log_clear(&e->x->log);
        hn_pass_log_init(&e->x->log);
        g_ptr_array_set_size(e->x->blocked, 0);
        HnModel *m = make(e, most, &failure);
        if (m != NULL)
            return m;
        const guint made = e->x->log.made->len;
        if (made == 0 || hn_samples_is_final(failure) || e->x->dropped->len >= MOST_DROPPED) {
            g_propagate_error(error, failure);
            return NULL;
        }
        drop(e, e->x->log.made->pdata[made - 1], failure->message);
        g_error_free(failure);
    }
}

/* --- proving ------------------------------------------------------------------------------------------------------ */

static gboolean verify(const HnExportJob *e, HnModel *m, HnVerified *out, GError **error)
{
    return hn_verify(e->verify, m, &e->o->tolerance, 0, out, error);
}

/* *equal: the outputs agree after the first n rewrites. */
static gboolean agrees(HnExportJob *e, guint64 n, gboolean *equal, GError **error)
{
    g_autoptr(HnModel) m = hn_export_build(e, n, error);
    HnVerified v;
    if (m == NULL || !verify(e, m, &v, error))
        return FALSE;
    *equal = v.equal;
    hn_verified_clear(&v);
    return TRUE;
}

/* *bad: number of the first rewrite behind which outputs differ, out of n behind which they do; 0: they do before all.
 */
static gboolean first_bad(HnExportJob *e, guint64 n, guint64 *bad, GError **error)
{
    guint64 good = 0, found = n;
    gboolean equal;
    *bad = 0;
    if (!agrees(e, 0, &equal, error))
        return FALSE;
    if (!equal)
        return TRUE;
    while (found - good > 1) {
        const guint64 mid = good + (found - good) / 2;
        if ((e->o->progress != NULL && hn_progress_stop(e->o->progress, error)) || !agrees(e, mid, &equal, error))
            return FALSE;
        if (equal)
            good = mid;
        else
            found = mid;
    }
    *bad = found;
    return TRUE;
}

/* Drops the rewrite numbered `bad`, behind which results are no longer the same; `why`: what the end result showed. */
static gboolean drop_bad(HnExportJob *e, guint64 bad, const char *why, GError **error)
{
    g_autoptr(HnModel) m = hn_export_build(e, bad, error);
    HnVerified at;
    if (m == NULL)
        return FALSE;
    if (e->x->log.made->len == 0) {
        g_set_error(error, HN_ERROR, HN_ERROR_GUARD, "results differ, but not each time: %s", why);
        return FALSE;
    }
    if (!verify(e, m, &at, error))
        return FALSE;
    g_clear_pointer(&m, hn_model_free);
    HnSite *site = e->x->log.made->pdata[e->x->log.made->len - 1];
    HnDropped *d = drop(e, site, at.why != NULL ? at.why : why);
    hn_verified_clear(&at);
    if (e->o->repro == NULL)
        return TRUE;
    const HnPass *pass = site->pass;
    if ((m = hn_export_build(e, bad - 1, error)) == NULL)
        return FALSE;
    d->repro = hn_export_repro(e->o, m, pass, d->site, e->x->dropped->len);
    return TRUE;
}

/* Finds the rewrite that changes results, and drops it. */
static gboolean drop_guilty(HnExportJob *e, const HnVerified *v, GError **error)
{
    const guint made = e->x->log.made->len;
    guint64 bad = 0;
    if (made > 0 && e->x->dropped->len < MOST_DROPPED && !first_bad(e, made, &bad, error))
        return FALSE;
    if (bad > 0)
        return drop_bad(e, bad, v->why, error);
    g_set_error(error, HN_ERROR, HN_ERROR_GUARD,
                "the new model computes something else, and no rewrite is to blame: %s", v->why);
    return FALSE;
}

/* Until results are the same. *again: the model was made again on the way. */
static gboolean prove(HnExportJob *e, gboolean *again, GError **error)
{
    for (*again = FALSE;; *again = TRUE) {
        if (!verify(e, e->x->model, &e->x->verified, error))
            return FALSE;
        if (e->x->verified.equal)
            return TRUE;
        if (e->o->progress != NULL && hn_progress_stop(e->o->progress, error))
            return FALSE;
        HnVerified v = e->x->verified;
        e->x->verified = (HnVerified){ 0 };
        g_clear_pointer(&e->x->model, hn_model_free);
        const gboolean dropped = drop_guilty(e, &v, error);
        hn_verified_clear(&v);
        if (!dropped || (e->x->model = hn_export_build(e, G_MAXUINT64, error)) == NULL)
            return FALSE;
    }
}

/* Small enough and the same: what is undone for one of them can cost the other. */
static gboolean settle(HnExportJob *e, GError **error)
{
    for (;;) {
        gboolean smaller, remade;
        if (!hn_export_fit(e, &smaller, error))
            return FALSE;
        if (e->verify == NULL || (e->x->verified.equal && !smaller))
            return TRUE;
        hn_verified_clear(&e->x->verified);
        if (!prove(e, &remade, error))
            return FALSE;
        if (!remade)
            return TRUE;
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

/* Running a model unfolds its functions and spells operators out: where they are to stay it is made again. */
static gboolean finish(HnExportJob *e, GError **error)
{
    HnModel *m = e->x->model;
    if ((m->functions->len == 0 && !e->contrib) || e->verify == NULL)
        return TRUE;
    hn_model_free(m);
    return (e->x->model = hn_export_build(e, G_MAXUINT64, error)) != NULL;
}

static gboolean declare_all(const HnExportJob *e, GError **error)
{
    HnModel *m = e->x->model;
    if ((e->o->infer_shapes || e->o->fix != NULL) && !hn_graph_infer(m->graph, FALSE, error))
        return FALSE;
    if (e->o->infer_shapes)
        hn_graph_foreach_node(m->graph, declare, NULL);
    if (e->o->clear_metadata)
        clear_metadata(m);
    hn_model_set_metadata(m, HN_CHECKED, e->verify != NULL ? NULL : HN_NOT_COMPARED);
    return hn_model_verify(m, error);
}

gboolean hn_export(const HnExportOptions *o, const HnVerify *v, HnExported *x, GError **error)
{
    *x = (HnExported){ .dropped = g_ptr_array_new_with_free_func(hn_dropped_free),
                       .grown = g_ptr_array_new_with_free_func(hn_dropped_free),
                       .blocked = g_ptr_array_new_with_free_func(g_free) };
    HnExportJob e = {
        .o = o, .verify = v, .x = x, .banned = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL)
    };
    hn_pass_log_init(&x->log);
    x->model = find_core_opset(&e, error) ? hn_export_build(&e, G_MAXUINT64, error) : NULL;
    e.contrib = x->model != NULL && hn_count_contrib(x->model) > 0;
    const gboolean ok = x->model != NULL && settle(&e, error) && finish(&e, error) &&
                        (o->to == HN_UNDEFINED || hn_export_half(o, v, x, error)) && declare_all(&e, error);
    for (guint i = 0; i < x->log.spared->len; i++)
        hn_export_note_growth(x, x->log.spared->pdata[i]);
    g_hash_table_unref(e.banned);
    return ok;
}

void hn_exported_clear(HnExported *x)
{
    g_clear_pointer(&x->model, hn_model_free);
    hn_pass_log_clear(&x->log);
    g_clear_pointer(&x->dropped, g_ptr_array_unref);
    g_clear_pointer(&x->grown, g_ptr_array_unref);
    g_clear_pointer(&x->blocked, g_ptr_array_unref);
    hn_verified_clear(&x->verified);
    if (x->converted)
        hn_precision_log_clear(&x->precision);
}
