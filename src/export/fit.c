/*
 * A file that grows has to pay: what makes the model too large is undone, largest first, by making it again without.
 *
 * First goes what was computed ahead: a session computes it when it opens, and is no slower for it. What grows for
 * other reasons (a loop unrolled, weights multiplied into others) stays where the model is measured to be faster.
 */
#include "base/text.h"
#include "check/guard.h"
#include "export/private.h"
#include "onnx/onnx.h"

#define RECIPE 256     /* bytes that the caller is about to add */
#define WORTH 0.98     /* of the time: what grows has to be faster by so much */
#define MOST_ROUNDS 16 /* of undoing: what is undone at one node may appear at the next */

extern const HnPass hn_pass_fold_constants;

gboolean hn_export_speedup(const HnExportOptions *o, const HnVerify *verify, HnModel *m, const HnSpeedupOptions *how,
                           HnSpeedup *speedup, GError **error)
{
    g_autoptr(HnModel) original = hn_export_original(o, error);
    HnTensor *const *in = hn_samples_inputs(hn_verify_samples(verify), 0);
    return original != NULL && hn_measure_speedup(original, m, o->backend, in, how, speedup, error);
}

/* What the model may have of bytes. */
static gsize room_for(gsize base)
{
    return hn_guard_room(base) - RECIPE;
}

/* --- what is too large -------------------------------------------------------------------------------------------- */

static gint by_bytes(gconstpointer a, gconstpointer b)
{
    const HnSite *x = *(HnSite *const *)a, *y = *(HnSite *const *)b;
    return (x->bytes < y->bytes) - (x->bytes > y->bytes);
}

/* Of the rewrites that made the file longer (only folds, or all) the largest are not made from now on, as many as take
 * `excess` bytes. TRUE: there are some. */
static gboolean ban(HnExportJob *e, gboolean folds, gsize excess)
{
    g_autoptr(GPtrArray) sites = g_ptr_array_new();
    for (guint i = 0; i < e->x->log.made->len; i++) {
        HnSite *s = e->x->log.made->pdata[i];
        if (s->bytes > 0 && (!folds || s->pass == &hn_pass_fold_constants))
            g_ptr_array_add(sites, s);
    }
    g_ptr_array_sort(sites, by_bytes); /* a merge sort: what is equal stays in order */
    gint64 left = (gint64)excess;
    gboolean any = FALSE;
    for (guint i = 0; i < sites->len && left > 0; i++) {
        const HnSite *s = sites->pdata[i];
        left -= s->bytes;
        if (!g_hash_table_add(e->banned, hn_site_key(s->pass, s->site)))
            continue;
        hn_export_note_growth(e->x, s);
        any = TRUE;
    }
    return any;
}

static gboolean rebuild(HnExportJob *e, gboolean *again, GError **error)
{
    *again = TRUE;
    g_clear_pointer(&e->x->model, hn_model_free);
    return (e->x->model = hn_export_build(e, G_MAXUINT64, error)) != NULL;
}

/* Length of the model before its rewrites, whose functions may be unfolded by then and whose opset may be another. */
static gboolean plain_bytes(const HnExportJob *e, gsize *bytes, GError **error)
{
    g_autoptr(HnModel) m = hn_export_plain(e, error);
    return m != NULL && hn_onnx_size(m, e->o->pass.budget, bytes, error);
}

/* Is what is left of the growth worth it? Where that cannot be measured, as with no memory for two models, it is not.
 */
static gboolean measure(HnExportJob *e, GError **error)
{
    const HnSpeedupOptions how = {
        .threads = e->o->threads, .limit = WORTH, .budget = e->o->pass.budget, .progress = e->o->progress
    };
    GError *failure = NULL;
    e->may_grow = e->o->growth == HN_GROWTH_STAYS;
    if (e->verify == NULL || e->x->has_speedup || e->o->growth != HN_GROWTH_MEASURED)
        return TRUE;
    if (hn_export_speedup(e->o, e->verify, e->x->model, &how, &e->x->speedup, &failure)) {
        const HnDecision decision = hn_decide(&e->x->speedup.effect, WORTH);
        e->may_grow = e->x->has_speedup = decision == HN_WON;
        e->noisy = decision == HN_UNDECIDED;
        return TRUE;
    }
    g_error_free(failure);
    return e->o->progress == NULL || !hn_progress_stop(e->o->progress, error);
}

/* Functions stay where their bodies are too much; what was undone before may have been right. */
static gboolean keep_functions(HnExportJob *e)
{
    if (e->o->keep_functions || e->keep_functions || e->o->opset != 0)
        return FALSE;
    e->keep_functions = e->x->functions = TRUE;
    for (guint i = 0; i < e->x->grown->len; i++) {
        const HnDropped *d = e->x->grown->pdata[i];
        g_autofree char *key = hn_site_key(&(HnPass){ .name = d->pass }, d->site);
        g_hash_table_remove(e->banned, key);
    }
    g_ptr_array_set_size(e->x->grown, 0);
    return TRUE;
}

static gboolean refuse(const HnExportJob *e, gsize bytes, GError **error)
{
    g_autofree char *now = hn_text_size(bytes), *before = hn_text_size(e->o->file_bytes);
    g_set_error(error, HN_ERROR, e->noisy ? HN_ERROR_NOISE : HN_ERROR_GUARD,
                "the new model would take %s, the original %s, and it is %s faster; '--allow-larger' writes it", now,
                before, e->noisy ? "too noisy to tell whether it is" : "not");
    return FALSE;
}

gboolean hn_export_fit(HnExportJob *e, gboolean *again, GError **error)
{
    gsize base = e->o->file_bytes, plain = 0, bytes = 0;
    gboolean measured = FALSE;
    *again = FALSE;
    for (guint round = 0; base > 0 && !e->may_grow; round++) {
        if (!hn_onnx_size(e->x->model, e->o->pass.budget, &bytes, error))
            return FALSE;
        if (bytes <= room_for(base))
            return TRUE;
        if (e->o->progress != NULL && hn_progress_stop(e->o->progress, error))
            return FALSE;
        if (plain == 0) {
            if (!plain_bytes(e, &plain, error))
                return FALSE;
            base = e->o->opset != 0 || e->o->to_core ? MAX(base, plain) : base; /* that conversion was asked for */
            continue;
        }
        /* computing ahead is worth nothing: none of what it adds has to stay */
        gboolean less = !e->lean || (round < MOST_ROUNDS && ban(e, TRUE, bytes - base));
        e->lean = TRUE;
        if (!less && !measured && !measure(e, error))
            return FALSE;
        measured = measured || !less;
        less = less || (!e->may_grow && round < MOST_ROUNDS &&
                        ((plain > room_for(base) && keep_functions(e)) || ban(e, FALSE, bytes - room_for(base))));
        if (!less && !e->may_grow)
            return refuse(e, bytes, error);
        if (less && !rebuild(e, again, error))
            return FALSE;
    }
    return TRUE;
}
