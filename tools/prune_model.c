/* hone-prune: the model, made ready, and samples for it. */
#include <string.h>

#include "base/file.h"
#include "base/regex.h"
#include "base/rng.h"
#include "data/distinct.h"
#include "prune/ready.h"
#include "hone_prune.h"
#include "verdict.h"

#define LEAST_SPLIT 8 /* samples: fewer serve for everything */

HnModel *prune_open_given(const Prune *q, GError **error)
{
    const HnOnnxOptions o = { .budget = q->ctx->budget, .verify_data = q->dense == NULL };
    return q->file != NULL ? hn_onnx_read_bytes(q->file, NULL, &o, error) : hn_onnx_read_file(q->path, &o, error);
}

static gboolean prepare(Prune *q, GError **error)
{
    g_autoptr(HnModel) m = prune_open_given(q, error);
    if (m == NULL || !hn_tool_has_outputs(m, q->path, error))
        return FALSE;
    q->file_before = m->file_bytes;
    if (!hn_prune_ready(m, q->ctx->budget, &q->ctx->progress, error))
        return FALSE;
    q->dense = g_steal_pointer(&m);
    return TRUE;
}

static gboolean learns(const Prune *q)
{
    return !q->p->speed_only && (q->heal || q->p->finetune > 0 || q->p->steps > 1);
}

/* Any N of the samples, as the seed says, and none twice; those to judge by are the last ones. Learning has all others
 * but copies of these: it looks at a batch at a time, however many there are. */
static gboolean draw(Prune *q, GError **error)
{
    const int64_t all = hn_data_count(q->all);
    g_autofree uint32_t *index = g_new(uint32_t, (gsize)all);
    g_autofree int64_t *order = g_new(int64_t, (gsize)all);
    HnRng rng = hn_rng(q->ctx->common.seed);
    for (int64_t i = 0; i < all; i++)
        index[i] = (uint32_t)i;
    hn_rng_shuffle(&rng, index, (uint32_t)all);
    for (int64_t i = 0; i < all; i++)
        order[i] = index[i];
    int64_t copies;
    q->drawn = hn_data_some(q->all, order, all);
    if ((q->data = hn_data_distinct(q->drawn, q->p->samples, &copies, error)) == NULL)
        return FALSE;
    hn_tool_warn_copies(q->ctx, hn_data_source(q->all), copies);
    const int64_t n = hn_data_count(q->data);
    q->held = n < LEAST_SPLIT ? n : MIN(MAX(n / 8, 2), PRUNE_MOST_HELD);
    q->held_first = n - q->held;
    q->calib = n < LEAST_SPLIT ? n : q->held_first;
    if (q->held_first == 0 || !learns(q))
        return TRUE;
    for (int64_t i = 0; i < q->held; i++)
        order[i] = q->held_first + i;
    g_autoptr(HnData) held = hn_data_some(q->data, order, q->held);
    return (q->lessons = hn_data_unlike(q->drawn, held, error)) != NULL;
}

static gboolean open_data(Prune *q, GError **error)
{
    const char *source = q->p->calib != NULL ? q->p->calib : "random:1";
    q->all = hn_tool_open_samples(q->ctx, q->dense, q->p->input, &q->p->from, q->path, source, q->shapes, error);
    if (q->all == NULL)
        return FALSE;
    if (hn_data_count(q->all) == 0 || hn_data_count(q->all) > G_MAXUINT32) {
        g_set_error(error, HN_ERROR, HN_ERROR_USAGE, "'%s' holds no samples, or too many", source);
        return FALSE;
    }
    if (hn_data_synthetic(q->all) && !q->p->speed_only && !q->p->explain)
        return hn_tool_usage(error, "made-up samples are no data to prune by; '--speed-only' makes a model for "
                                    "measuring speed");
    if (!draw(q, error))
        return FALSE;
    if (q->held_first == 0 && learns(q))
        return hn_tool_usage(error, "what is learned, and what comes of steps, is judged by samples that are held out: "
                                    "of fewer than 8 there are "
                                    "none");
    q->sample = hn_data_load(q->data, 0, error);
    if (q->sample != NULL)
        hn_tool_note_device(q->ctx, q->dense, q->backend, q->sample->in);
    return q->sample != NULL;
}

HnScorer *prune_scorer_on(const Prune *q, int64_t first, int64_t n, GError **error)
{
    const HnScorerOptions o = { .backend = q->backend,
                                .threads = q->ctx->common.threads,
                                .budget = q->ctx->budget,
                                .progress = &q->ctx->progress,
                                .choice = &q->choice };
    g_autoptr(HnModel) given = prune_open_given(q, error); /* what preparing broke would not be seen by the other one */
    return given != NULL ? hn_scorer_new(g_steal_pointer(&given), q->data, first, n, &o, error) : NULL;
}

static gboolean open_scorer(Prune *q, GError **error)
{
    if (q->p->speed_only || q->p->explain)
        return TRUE;
    q->scorer = prune_scorer_on(q, q->held_first, q->held, error);
    if (q->scorer == NULL)
        return FALSE;
    hn_scorer_original(q->scorer, &q->original);
    return hn_verdict_judges(q->ctx, q->scorer, q->p->force, error);
}

gboolean prune_open_chooser(Prune *q, GError **error)
{
    return q->chooser != NULL || (q->chooser = prune_scorer_on(q, 0, MIN(q->calib, PRUNE_MOST_HELD), error)) != NULL;
}

/* --exclude: classes that a tensor of such a name belongs to stay. */
static gboolean exclude(Prune *q, GError **error)
{
    g_autoptr(HnRegex) regex = q->p->exclude != NULL ? hn_regex_new(q->p->exclude, error) : NULL;
    if (q->p->exclude != NULL && regex == NULL) {
        g_prefix_error(error, "option '--exclude': ");
        return FALSE;
    }
    gboolean any = regex == NULL || q->blocks->len > 0; /* which it was for, too */
    for (guint c = 0; regex != NULL && c < q->map->classes->len; c++) {
        HnPruneClass *k = q->map->classes->pdata[c];
        gboolean found = FALSE;
        for (guint i = 0; i < k->group->spans->len && !found; i++)
            if (!hn_regex_find(regex, g_array_index(k->group->spans, HnChannelSpan, i).v->name, &found, error))
                return FALSE;
        k->fixed = found;
        any = any || found;
    }
    return any || hn_tool_usage(error, "option '--exclude': no tensor whose channels may go matches");
}

static void set_options(Prune *q)
{
    q->learner = (HnPruneLearner){ prune_taylor, prune_heal_between, q };
    q->o = (HnPruneOptions){ .backend = q->backend,
                             .threads = q->ctx->common.threads,
                             .budget = q->ctx->budget,
                             .progress = &q->ctx->progress,
                             .data = q->p->speed_only ? NULL : q->data,
                             .n = q->calib,
                             .score = q->by,
                             .fit = q->fit,
                             .learner = &q->learner,
                             .seed = q->ctx->common.seed };
}

/* Before anything is run: what the dense model needs is the most that any other one does. */
static gboolean plan_memory(Prune *q, GError **error)
{
    set_options(q);
    if ((q->map = hn_prune_map_new(q->dense, q->ctx->budget, error)) == NULL)
        return FALSE;
    const gboolean ok = prune_plan_memory(q, error);
    g_clear_pointer(&q->map, hn_prune_map_free);
    return ok;
}

gboolean prune_open(Prune *q, GError **error)
{
    if (!strcmp(q->path, "-") && (!hn_context_take_stdin(q->ctx, "the model", error) ||
                                  (q->file = hn_stdin_bytes(q->ctx->budget, error)) == NULL))
        return FALSE;
    if (!prepare(q, error) || !open_data(q, error) || !prune_count_flops(q, q->dense, &q->flops_before, error) ||
        !plan_memory(q, error))
        return FALSE;
    if (!open_scorer(q, error) || !prune_take_blocks(q, error))
        return FALSE;
    if ((q->map = hn_prune_map_new(q->base, q->ctx->budget, error)) == NULL || !exclude(q, error))
        return FALSE;
    q->o.wanted = q->base != q->dense ? q->dense : NULL;
    return TRUE;
}
