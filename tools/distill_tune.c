/* hone-distill --tune and --time-budget: settings are tried in short runs, of which the better half goes on, twice as
 * long; and all that for as long as there is time. */
#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "base/jsonread.h"
#include "base/rng.h"
#include "hone_distill.h"

/* What may be tried. The first of each is the default. */
static const double rates[] = { 1, 2, 0.5, 4, 0.25 };

typedef struct {
    const char *kd;
    double temperature; /* NaN: the default */
} Loss;

static const Loss losses[] = { { NULL, NAN }, { "mse", NAN }, { "standardize", NAN }, { NULL, 2 },
                               { NULL, 8 },   { NULL, 1 },    { "standardize", 2 } };

typedef struct {
    double lr;
    Loss loss;
    char *text; /* losses that fall, as --loss would say them */
    int epochs; /* of its last trial */
    HnJudgement judged;
} Setting;

struct DistillTune {
    DistillParams given;  /* what the command line says, for as many epochs as there is time for */
    DistillParams params; /* with the setting of the last run */
    char *lr;             /* of params; its kd is a constant */
    Distill base;         /* a run of `given`, never trained: its judge is everybody's */
    DistillCost cost;
    HnJournal *journal;
    GArray *settings; /* Setting; the first is the default */
    GArray *drawn;    /* guint: those that are tried */
    GArray *order;    /* the same, the best first; none where nothing was tried */
};

static void setting_clear(gpointer setting)
{
    g_free(((Setting *)setting)->text);
}

void distill_tune_free(DistillTune *t)
{
    if (t == NULL)
        return;
    distill_clear(&t->base);
    hn_journal_free(t->journal);
    g_array_unref(t->settings);
    g_array_unref(t->drawn);
    g_array_unref(t->order);
    g_free(t->lr);
    g_free(t);
}

/* By its place in a list of them. */
static Setting *setting_at(const DistillTune *t, const GArray *list, guint place)
{
    return &g_array_index(t->settings, Setting, g_array_index(list, guint, place));
}

/* --- runs --------------------------------------------------------------------------------------------------------- */

/* The options of a run with that setting. */
static void set_params(DistillTune *t, const Setting *s, int epochs)
{
    g_free(t->lr);
    t->lr = g_strdup_printf("%.4g", s->lr);
    t->params = t->given;
    t->params.epochs = epochs;
    if (t->base.rule != NULL && s->lr != t->base.rule->lr) /* the usual one is left unsaid, to the last digit */
        t->params.lr = t->lr;
    if (s->loss.kd != NULL)
        t->params.kd = (char *)s->loss.kd;
    if (!isnan(s->loss.temperature))
        t->params.temperature = s->loss.temperature;
}

/* As another command would make it. */
static gboolean open_run(const DistillTune *t, const DistillParams *p, const Distill *like, Distill *run,
                         GError **error)
{
    *run = (Distill){
        .ctx = like->ctx, .p = p, .backend = like->backend, .tuned_epochs = t->given.epochs, .timing = TRUE
    };
    return distill_parse(run, error) && distill_open(run, error);
}

/* A student that was lost on the way is as bad as any. */
static gboolean is_lost(GError **failure)
{
    if (!g_error_matches(*failure, HN_ERROR, HN_ERROR_GUARD))
        return FALSE;
    g_clear_error(failure);
    return TRUE;
}

/* HnHalving.attempt: what the journal knows is not tried again. */
static gboolean try_setting(gpointer data, guint candidate, int64_t epochs, GError **error)
{
    DistillTune *t = data;
    Setting *s = setting_at(t, t->drawn, candidate);
    Distill run;
    GError *failure = NULL;
    set_params(t, s, (int)epochs);
    s->epochs = (int)epochs;
    s->judged = (HnJudgement){ INFINITY, NAN, NAN, 0 };
    g_autofree char *name = distill_trial_name(&t->base, &t->params);
    if (distill_known(t->journal, name, &s->judged))
        return TRUE;
    gboolean ok = open_run(t, &t->params, &t->base, &run, &failure) && distill_try(&run, &failure) &&
                  distill_judge_fit(&run, &t->base, &s->judged, &failure);
    distill_clear(&run);
    ok = ok || is_lost(&failure);
    if (!ok)
        g_propagate_error(error, failure);
    return ok && distill_note_trial(t->journal, name, &s->judged, error);
}

/* --- settings ----------------------------------------------------------------------------------------------------- */

static gboolean is_said(const DistillTune *t, const Loss *l)
{
    return t->given.loss != NULL || t->given.teacher == NULL || (l->kd != NULL && t->given.kd != NULL) ||
           (!isnan(l->temperature) && !isnan(t->given.temperature));
}

static gboolean is_known(const DistillTune *t, const char *text)
{
    for (guint i = 0; i < t->settings->len; i++)
        if (strcmp(g_array_index(t->settings, Setting, i).text, text) == 0)
            return TRUE;
    return FALSE;
}

/* With the default rate: of losses that come out the same, as of outputs that are no classes, the first. */
static gboolean add_loss(DistillTune *t, const Loss *l, GError **error)
{
    Distill run;
    Setting s = { .lr = t->base.rule->lr, .loss = *l, .judged = { INFINITY, NAN, NAN, 0 } };
    set_params(t, &s, t->given.epochs);
    const gboolean ok = open_run(t, &t->params, &t->base, &run, error);
    if (ok)
        s.text = hn_objectives_describe(run.objectives);
    if (ok && !is_known(t, s.text))
        g_array_append_val(t->settings, s);
    else
        g_free(s.text);
    distill_clear(&run);
    return ok;
}

static gboolean add_losses(DistillTune *t, GError **error)
{
    const Setting first = { .lr = t->base.rule->lr,
                            .loss = losses[0],
                            .text = hn_objectives_describe(t->base.objectives),
                            .judged = { INFINITY, NAN, NAN, 0 } };
    g_array_append_val(t->settings, first);
    for (gsize i = 1; i < G_N_ELEMENTS(losses); i++)
        if (!is_said(t, &losses[i]) && !add_loss(t, &losses[i], error))
            return FALSE;
    return TRUE;
}

static void add_rates(DistillTune *t)
{
    const guint n = t->given.lr == NULL ? t->settings->len : 0;
    for (gsize r = 1; r < G_N_ELEMENTS(rates); r++) {
        for (guint i = 0; i < n; i++) {
            Setting s = g_array_index(t->settings, Setting, i);
            s.lr *= rates[r];
            s.text = g_strdup(s.text);
            g_array_append_val(t->settings, s);
        }
    }
}

/* The default, and n - 1 of the others in an order that follows from the seed. */
static void draw(DistillTune *t, guint n, uint64_t seed)
{
    const guint others = t->settings->len - 1;
    g_autofree uint32_t *index = g_new(uint32_t, others + 1);
    HnRng rng = hn_rng(seed);
    for (guint i = 0; i < others; i++)
        index[i] = i + 1;
    hn_rng_shuffle(&rng, index, others);
    for (guint i = 0; i < MIN(n, others + 1); i++) {
        const guint at = i == 0 ? 0 : index[i - 1];
        g_array_append_val(t->drawn, at);
    }
}

/* --- halving ------------------------------------------------------------------------------------------------------ */

/* By the metric where the samples are enough to be sure, else by the loss, which tells more. */
static gboolean is_better(gpointer data, guint first, guint second)
{
    const DistillTune *t = data;
    const HnJudgement *a = &setting_at(t, t->drawn, first)->judged, *b = &setting_at(t, t->drawn, second)->judged;
    const char *name;
    const double x = distill_metric(a, &name), y = distill_metric(b, &name);
    const gboolean parts = isfinite(a->top1) || isfinite(a->agreement);
    if (!isfinite(a->loss) || !isfinite(b->loss))
        return isfinite(a->loss) && !isfinite(b->loss);
    if (parts && hn_parts_differ(x, y, a->samples))
        return x > y;
    return a->loss < b->loss;
}

static gboolean halve(DistillTune *t, G_GNUC_UNUSED const Distill *q, GError **error)
{
    HnHalving h = distill_halving(t->drawn->len, t->given.epochs);
    g_autofree guint *order = g_new(guint, h.n + 1);
    h.attempt = try_setting;
    h.better = is_better;
    h.data = t;
    if (!hn_halving_run(&h, order, error))
        return FALSE;
    for (guint i = 0; i < h.n; i++)
        g_array_append_val(t->order, g_array_index(t->drawn, guint, order[i]));
    return TRUE;
}

static gboolean open_base(DistillTune *t, const Distill *q, GError **error)
{
    const guint64 began = hn_now_ns();
    if (!open_run(t, &t->given, q, &t->base, error) || !distill_open_journal(&t->base, &t->given, &t->journal, error))
        return FALSE;
    t->cost.epochs = t->given.epochs;
    t->cost.settings = (guint)t->given.tune;
    return distill_known_cost(t->journal, &t->cost) || distill_measure(&t->base, began, &t->cost, error);
}

/* A shorter run may have other losses, by which all are judged. */
static gboolean find_settings(DistillTune *t, const Distill *q, GError **error)
{
    if (t->base.p->epochs != t->cost.epochs) {
        t->given.epochs = t->cost.epochs;
        distill_clear(&t->base);
        if (!open_run(t, &t->given, q, &t->base, error))
            return FALSE;
    }
    if (!add_losses(t, error))
        return FALSE;
    add_rates(t);
    if (t->settings->len < 2)
        return hn_tool_usage(error, "'--tune' has nothing to try: rate and loss are said");
    draw(t, t->cost.settings, q->ctx->common.seed);
    return TRUE;
}

/* What each run would say is said once, by the run that follows. */
static gboolean silently(gboolean (*work)(DistillTune *, const Distill *, GError **), DistillTune *t, const Distill *q,
                         GError **error)
{
    HnCommon *c = &q->ctx->common;
    const gboolean quiet = c->quiet;
    const int verbose = c->verbose;
    c->quiet = TRUE;
    c->verbose = 0;
    const gboolean ok = work(t, q, error);
    c->quiet = quiet;
    c->verbose = verbose;
    return ok;
}

static gboolean search(DistillTune *t, const Distill *q, GError **error)
{
    if (!silently(find_settings, t, q, error))
        return FALSE;
    if (t->drawn->len < t->cost.settings)
        hn_context_note(q->ctx, 0, "'--tune' tries %u settings: there are no more", t->drawn->len);
    return silently(halve, t, q, error);
}

static void say_chosen(const Distill *q, const Setting *s)
{
    g_autoptr(GString) text = g_string_new(NULL);
    g_string_append_printf(text, "--lr %.4g", s->lr);
    if (s->loss.kd != NULL)
        g_string_append_printf(text, " --kd %s", s->loss.kd);
    if (!isnan(s->loss.temperature))
        g_string_append_printf(text, " --temperature %g", s->loss.temperature);
    hn_context_note(q->ctx, 0, "of %u settings the best is %s", q->tune->order->len, text->str);
}

static DistillTune *new_tune(const DistillParams *p)
{
    DistillTune *t = g_new0(DistillTune, 1);
    t->given = *p;
    t->settings = g_array_new(FALSE, FALSE, sizeof(Setting));
    t->drawn = g_array_new(FALSE, FALSE, sizeof(guint));
    t->order = g_array_new(FALSE, FALSE, sizeof(guint));
    g_array_set_clear_func(t->settings, setting_clear);
    return t;
}

/* What t->params are, for the run behind. */
static void choose(DistillTune *t, const Distill *q)
{
    t->given.epochs = t->cost.epochs;
    t->params = t->given;
    if (t->order->len == 0)
        return;
    const Setting *best = setting_at(t, t->order, 0);
    say_chosen(q, best);
    set_params(t, best, t->given.epochs);
}

gboolean distill_tune(Distill *q, GError **error)
{
    const DistillParams *p = q->p;
    if ((p->tune == 0 && p->time_budget == NULL) || p->list_trainable)
        return TRUE;
    DistillTune *t = q->tune = new_tune(p);
    if (!silently(open_base, t, q, error))
        return FALSE;
    const gboolean known = hn_journal_resumed(t->journal) > 0;
    if (known)
        hn_context_note(q->ctx, 1, "goes on with %u trials of the journal",
                        hn_journal_resumed(t->journal) - 1); /* the forecast is none */
    else if (!distill_plan_time(q, q->time_budget, &t->cost, t->journal, error))
        return FALSE;
    if (p->tune > 0 && !search(t, q, error))
        return FALSE;
    choose(t, q);
    q->tune = NULL;
    const Distill fresh = { .ctx = q->ctx,
                            .p = &t->params,
                            .backend = q->backend,
                            .tune = t,
                            .derived = g_steal_pointer(&t->base.derived),
                            .begins = known };
    distill_clear(q);
    distill_clear(&t->base);
    t->base = (Distill){ 0 };
    *q = fresh;
    return distill_parse(q, error);
}

void distill_end_tune(Distill *q, const GError *why)
{
    if (q->tune != NULL && q->tune->journal != NULL)
        distill_close_journal(q, g_steal_pointer(&q->tune->journal), why);
}

/* --- what is said ------------------------------------------------------------------------------------------------- */

static const HnColumn columns[] = { { "lr", "rate", HN_COL_NUMBER },
                                    { "loss", "losses", HN_COL_TEXT },
                                    { "epochs", "epochs", HN_COL_INT },
                                    { "val_loss", "validation", HN_COL_NUMBER },
                                    { "metric", "metric", HN_COL_NUMBER },
                                    { "chosen", "chosen", HN_COL_TEXT },
                                    { 0 } };

void distill_report_tune(const Distill *q, HnReport *report)
{
    const DistillTune *t = q->tune;
    if (t == NULL)
        return;
    json_object_set_double_member(hn_report_root(report), "forecast_s", t->cost.trials_s + t->cost.learning_s);
    if (t->order->len == 0)
        return;
    JsonArray *rows = json_array_new();
    for (guint i = 0; i < t->order->len; i++) {
        const Setting *s = setting_at(t, t->order, i);
        const char *metric;
        JsonObject *row = json_object_new();
        hn_json_set_number(row, "lr", s->lr);
        json_object_set_string_member(row, "loss", s->text);
        json_object_set_int_member(row, "epochs", s->epochs);
        hn_json_set_number(row, "val_loss", s->judged.loss);
        hn_json_set_number(row, "metric", distill_metric(&s->judged, &metric));
        json_object_set_string_member(row, "chosen", i == 0 ? "yes" : "no");
        json_array_add_object_element(rows, row);
    }
    json_object_set_array_member(hn_report_root(report), "tune", rows);
    hn_report_table(report, "tune", columns);
}
