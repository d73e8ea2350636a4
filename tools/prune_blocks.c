/* hone-prune: blocks that go before channels do. */
#include <math.h>

#include "base/regex.h"
#include "ir/copy.h"
#include "prune/branches.h"
#include "prune/ready.h"
#include "hone_prune.h"

#define LOOKS 32 /* samples that a model without a block is judged by */

/* The model without that block, and what only served it; NULL without an error: the block cannot go. */
static HnModel *without(const Prune *q, const HnModel *from, const char *out, const char *in, GError **error)
{
    g_autoptr(HnModel) m = hn_model_copy(from);
    return hn_prune_skip(m, out, in) && hn_prune_sweep(m, q->ctx->budget, error) ? g_steal_pointer(&m) : NULL;
}

/* One more goes; m is taken. */
static void take(Prune *q, HnModel *m, const char *out, const char *in, guint layers, double db)
{
    const PruneBlock b = { g_strdup(out), g_strdup(in), layers, db };
    g_array_append_val(q->blocks, b);
    if (q->base != q->dense)
        hn_model_free(q->base);
    q->base = m;
}

/* The block whose place nobody misses most, of those that --exclude leaves; without samples the last one. */
static gboolean take_best(Prune *q, HnScorer *by, HnRegex *excluded, GError **error)
{
    g_autoptr(GArray) blocks = hn_prune_blocks(q->base);
    g_autoptr(HnModel) best = NULL;
    guint chosen = 0;
    double best_db = -INFINITY;
    for (guint i = 0; i < blocks->len; i++) {
        const HnPruneBlock *b = &g_array_index(blocks, HnPruneBlock, i);
        gboolean stays = FALSE;
        HnScore s = { .sqnr = (double)i };
        hn_progress_tell(&q->ctx->progress, "blocks", i, blocks->len);
        if (hn_progress_stop(&q->ctx->progress, error) ||
            (excluded != NULL && !hn_regex_find(excluded, b->out->name, &stays, error)))
            return FALSE;
        GError *failure = NULL;
        g_autoptr(HnModel) m = stays ? NULL : without(q, q->base, b->out->name, b->in->name, &failure);
        if (failure == NULL && m != NULL && by != NULL)
            (void)hn_scorer_run(by, m, &s, &failure);
        if (failure != NULL) {
            g_propagate_error(error, failure);
            return FALSE;
        }
        if (m == NULL || !(s.sqnr > best_db || best == NULL))
            continue;
        hn_context_note(q->ctx, 2, "without '%s': %.2f dB", b->out->name, s.sqnr);
        hn_model_free(best);
        best = g_steal_pointer(&m);
        best_db = s.sqnr;
        chosen = i;
    }
    if (best == NULL) {
        g_autofree char *few = g_strdup_printf("only %u may", q->blocks->len);
        g_set_error(error, HN_ERROR, HN_ERROR_GUARD,
                    "%s go as a block: branches of sums may, and layers that make as many numbers as they read",
                    q->blocks->len > 0 ? few : "nothing of the model may");
        return FALSE;
    }
    const HnPruneBlock b = g_array_index(blocks, HnPruneBlock, chosen);
    g_autofree char *out = g_strdup(b.out->name), *in = g_strdup(b.in->name);
    take(q, g_steal_pointer(&best), out, in, b.layers, by != NULL ? best_db : NAN);
    return TRUE;
}

/* Those of the recipe or the plan. */
static gboolean take_recorded(Prune *q, GError **error)
{
    g_autoptr(GArray) named = prune_chosen_blocks(q, error);
    gboolean ok = named != NULL;
    for (guint i = 0; ok && i < named->len; i++) {
        const PruneBlock *b = &g_array_index(named, PruneBlock, i);
        GError *failure = NULL;
        HnModel *m = without(q, q->base, b->out, b->in, &failure);
        ok = m != NULL;
        if (ok)
            take(q, m, b->out, b->in, b->layers, b->db);
        else if (failure != NULL)
            g_propagate_error(error, failure);
        else
            g_set_error(error, HN_ERROR, HN_ERROR_FORMAT, "'%s' has a block '%s' that is none", prune_chosen_path(q),
                        b->out);
    }
    return ok;
}

gboolean prune_take_blocks(Prune *q, GError **error)
{
    q->base = q->dense;
    if (prune_chosen(q) != NULL)
        return take_recorded(q, error);
    if (q->p->layers == 0 || q->p->explain)
        return TRUE;
    g_autoptr(HnRegex) excluded = q->p->exclude != NULL ? hn_regex_new(q->p->exclude, error) : NULL;
    if (q->p->exclude != NULL && excluded == NULL) {
        g_prefix_error(error, "option '--exclude': ");
        return FALSE;
    }
    g_autoptr(HnScorer) by = q->p->speed_only ? NULL : prune_scorer_on(q, 0, MIN(q->calib, LOOKS), error);
    gboolean ok = q->p->speed_only || by != NULL;
    for (int i = 0; i < q->p->layers && ok; i++)
        ok = take_best(q, by, excluded, error);
    return ok;
}

static void clear_block(gpointer data)
{
    PruneBlock *b = data;
    g_free(b->out);
    g_free(b->in);
}

GArray *prune_blocks_new(void)
{
    GArray *a = g_array_new(FALSE, FALSE, sizeof(PruneBlock));
    g_array_set_clear_func(a, clear_block);
    return a;
}

void prune_clear_blocks(Prune *q)
{
    g_clear_pointer(&q->blocks, g_array_unref);
    if (q->base != q->dense)
        hn_model_free(q->base);
}
