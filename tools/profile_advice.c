/* hone-profile: what would help, by trying it, and what would not. */
#include "profile_advice.h"

#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "base/jsonread.h"

#define RACE_SECONDS 1.0 /* of runs of each side, at most */
#define PRECISION 0.05   /* of a gain: then a race ends */
#define LIMIT_NS \
    ((guint64)4000000000) /* that a race lasts, and when somebody asked for it; the first round is made in any case */
#define ASKED_NS ((guint64)30000000000)
#define ALL_NS ((guint64)12000000000) /* that all trials take, where nobody asked for them */
#define ROUND_RUNS 16.0               /* of both sides in a round, roughly */
#define LEAST_GAIN 1.02
#define FAR 1.1      /* times as fast: an interval that holds 1 and this tells nothing */
#define AT_LIMIT 0.8 /* of the roofline */

static void trial_clear(gpointer data)
{
    ProfileTrial *t = data;
    g_free(t->command);
    g_free(t->what);
    g_free(t->why_not);
    hn_model_free(t->model);
    hn_sample_free(t->sample);
}

double profile_share_at(const Profiling *f, HnBound bound, double part)
{
    double ms = 0;
    for (guint i = 0; i < f->profile.rows->len; i++) {
        const HnProfileRow *row = f->profile.rows->pdata[i];
        if (row->bound == bound && row->limit_ms >= part * row->ms)
            ms += row->ms;
    }
    return f->profile.total_ms > 0 ? ms / f->profile.total_ms : 0;
}

/* --- trying ------------------------------------------------------------------------------------------------------- */

static void judge(ProfileTrial *t)
{
    const HnEffect *e = &t->speedup.effect;
    t->gain = t->samples / e->effect;
    t->lo = t->samples / e->hi;
    t->hi = t->samples / e->lo;
    t->helps = isfinite(t->lo) && isfinite(t->hi) && t->lo > 1 && t->gain > LEAST_GAIN;
}

/* Against the file as it is. */
static gboolean race(Profiling *f, ProfileTrial *t, GError **error)
{
    const HnSpeedupOptions o = { .threads = f->ctx->common.threads,
                                 .seconds = RACE_SECONDS,
                                 .precision = PRECISION,
                                 .end = hn_now_ns() + (f->p->advise ? ASKED_NS : LIMIT_NS),
                                 .after_threads = t->threads,
                                 .after_in = t->sample != NULL ? t->sample->in : NULL,
                                 .budget = f->ctx->budget,
                                 .progress = &f->ctx->progress };
    g_autoptr(HnModel) before = profile_read_plain(f, error);
    if (before != NULL && t->model == NULL)
        t->model = profile_read_plain(f, error);
    if (before == NULL || t->model == NULL ||
        !hn_measure_speedup(before, t->model, f->backend, f->sets[0]->in, &o, &t->speedup, error))
        return FALSE;
    g_clear_pointer(&t->model, hn_model_free);
    judge(t);
    return TRUE;
}

static void attempt(Profiling *f, const ProfileIdea *idea)
{
    ProfileTrial t = { .name = idea->name, .samples = 1, .gain = NAN, .lo = NAN, .hi = NAN };
    GError *failure = NULL;
    hn_progress_tell(&f->ctx->progress, "trying", 0, 0);
    const gboolean made = idea->make(f, &t, &failure);
    if (made && t.command == NULL) {
        trial_clear(&t);
        return;
    }
    if (!made || !race(f, &t, &failure) || !isfinite(t.gain))
        t.why_not = g_strdup(failure != NULL ? failure->message : "no run of it was measured");
    g_clear_error(&failure);
    g_array_append_val(f->trials, t);
}

/* Of what is tried unasked: it is nothing that takes long, and the same file computes the same way. */
static gboolean is_worth(const Profiling *f)
{
    const ProfileParams *p = f->p;
    if (p->no_advise || f->training != NULL || !strcmp(f->path, "-") || f->given.feeds->pdata[0] != NULL ||
        f->ctx->common.strict_math || strcmp(f->ctx->common.device, "cpu") != 0)
        return FALSE;
    return p->advise || (p->runs == -1 && p->time == NULL);
}

static gint most_gain_first(gconstpointer a, gconstpointer b)
{
    const ProfileTrial *x = a, *y = b;
    const double p = isfinite(x->gain) ? x->gain : 0, q = isfinite(y->gain) ? y->gain : 0;
    return (p < q) - (p > q);
}

void profile_try(Profiling *f)
{
    const guint64 start = hn_now_ns();
    f->trials = g_array_new(FALSE, TRUE, sizeof(ProfileTrial));
    g_array_set_clear_func(f->trials, trial_clear);
    f->tried = is_worth(f);
    if (!f->tried || (!f->p->advise && f->profile.unprofiled_ms * 1e6 * ROUND_RUNS > (double)LIMIT_NS))
        return;
    for (const ProfileIdea *idea = profile_ideas; idea->name != NULL; idea++) {
        if (hn_progress_stop(&f->ctx->progress, NULL))
            break;
        if (f->p->advise || hn_now_ns() - start < ALL_NS)
            attempt(f, idea);
        else
            f->untried++;
    }
    g_array_sort(f->trials, most_gain_first);
}

gboolean profile_helped(const Profiling *f)
{
    for (guint i = 0; i < f->trials->len; i++)
        if (g_array_index(f->trials, ProfileTrial, i).helps)
            return TRUE;
    return FALSE;
}

/* --- telling ------------------------------------------------------------------------------------------------------ */

static JsonObject *trial_object(const ProfileTrial *t)
{
    JsonObject *o = json_object_new();
    json_object_set_string_member(o, "name", t->name);
    json_object_set_string_member(o, "command", t->command);
    json_object_set_string_member(o, "what", t->what);
    hn_json_set_number(o, "times_as_fast", t->gain);
    hn_json_set_number(o, "lo", t->lo);
    hn_json_set_number(o, "hi", t->hi);
    json_object_set_boolean_member(o, "same_steps", t->speedup.same);
    json_object_set_boolean_member(o, "helps", t->helps);
    json_object_set_string_member(o, "why_not", t->why_not);
    return o;
}

static gboolean has_no_kernel(const HnProfileRow *row)
{
    return row->node != NULL && row->kernel == NULL &&
           (row->node->op == NULL || !(row->node->op->flags & HN_OP_CONTROL));
}

static JsonArray *without_kernel(const Profiling *f)
{
    JsonArray *list = json_array_new();
    for (guint i = 0; i < f->profile.rows->len; i++) {
        const HnProfileRow *row = f->profile.rows->pdata[i];
        if (!has_no_kernel(row))
            continue;
        JsonObject *o = json_object_new();
        json_object_set_string_member(o, "name", row->name);
        json_object_set_string_member(o, "op", row->op);
        json_object_set_string_member(o, "type", row->in != NULL ? row->in[0] : NULL);
        hn_json_set_number(o, "share", f->profile.total_ms > 0 ? row->ms / f->profile.total_ms : NAN);
        json_array_add_object_element(list, o);
    }
    return list;
}

void profile_add_advice(const Profiling *f, JsonObject *root)
{
    JsonArray *advice = json_array_new();
    JsonObject *limits = json_object_new();
    for (guint i = 0; i < f->trials->len; i++)
        json_array_add_object_element(advice, trial_object(&g_array_index(f->trials, ProfileTrial, i)));
    json_object_set_array_member(root, "advice", advice);
    json_object_set_boolean_member(root, "advised", f->tried);
    for (HnBound b = HN_BOUND_COMPUTE; b <= HN_BOUND_CACHE; b++)
        hn_json_set_number(limits, hn_bound_name(b), profile_share_at(f, b, AT_LIMIT));
    json_object_set_object_member(root, "at_limit", limits);
    json_object_set_array_member(root, "no_kernel", without_kernel(f));
}

/* "95 %: 2.25 to 2.4" */
static char *interval(const ProfileTrial *t)
{
    return isfinite(t->lo) && isfinite(t->hi) ? g_strdup_printf("95 %%: %.3g to %.3g", t->lo, t->hi)
                                              : g_strdup("few runs");
}

static const char *proviso(const ProfileTrial *t)
{
    return !strcmp(t->name, "int8") || !strcmp(t->name, "weights") || !strcmp(t->name, "prune") ||
                   !strcmp(t->name, "bf16")
               ? "; what it loses is that command's to measure"
           : !strcmp(t->name, "batch") ? ", for each of them"
                                       : "";
}

static void tell_helping(const Profiling *f, HnReport *report)
{
    guint n = 0;
    for (guint i = 0; i < f->trials->len; i++) {
        const ProfileTrial *t = &g_array_index(f->trials, ProfileTrial, i);
        g_autofree char *sure = interval(t);
        if (!t->helps)
            continue;
        if (n++ == 0)
            hn_report_line(report, "advice, made in memory and raced against the file as it is:");
        hn_report_line(report, "  %.3g times as fast (%s): %s%s", t->gain, sure, t->what, proviso(t));
        hn_report_line(report, "    %s", t->command);
    }
    if (n == 0 && f->trials->len > 0)
        hn_report_line(report, "advice: nothing that was tried makes it faster");
}

/* Too few runs for an interval, or it holds 1 and reaches far beyond: it is not known whether it helps. */
static gboolean is_open(const ProfileTrial *t)
{
    const gboolean known = isfinite(t->lo) && isfinite(t->hi);
    return !t->helps && !t->speedup.same && (!known || (t->lo < 1 && t->hi > FAR));
}

/* "label: int8 (1.3 times as fast), export (the same kernels run)" */
static void tell_list(const Profiling *f, HnReport *report, const char *label, gboolean open)
{
    g_autoptr(GString) text = g_string_new(NULL);
    for (guint i = 0; i < f->trials->len; i++) {
        const ProfileTrial *t = &g_array_index(f->trials, ProfileTrial, i);
        if (t->helps || t->why_not != NULL || is_open(t) != open)
            continue;
        g_autofree char *sure = interval(t);
        g_string_append_printf(text, "%s%s ", text->len > 0 ? ", " : "", t->name);
        if (t->speedup.same)
            g_string_append(text, "(the same kernels run)");
        else
            g_string_append_printf(text, "(%.3g times as fast%s%s)", t->gain, open ? "; " : "", open ? sure : "");
    }
    if (text->len > 0)
        hn_report_line(report, "%s: %s", label, text->str);
}

static void tell_others(const Profiling *f, HnReport *report)
{
    tell_list(f, report, "too noisy to tell", TRUE);
    tell_list(f, report, "no gain by", FALSE);
    for (guint i = 0; i < f->trials->len && f->ctx->common.verbose > 0; i++) {
        const ProfileTrial *t = &g_array_index(f->trials, ProfileTrial, i);
        if (t->why_not != NULL)
            hn_report_line(report, "could not be tried: %s: %s", t->name, t->why_not);
    }
}

static void tell_limits(const Profiling *f, HnReport *report)
{
    const double bytes = profile_share_at(f, HN_BOUND_MEMORY, AT_LIMIT) + profile_share_at(f, HN_BOUND_CACHE, AT_LIMIT);
    const double work = profile_share_at(f, HN_BOUND_COMPUTE, AT_LIMIT);
    if (bytes > BOTTLENECK)
        hn_report_line(report,
                       "at the limit: %.0f %% of the time moves bytes at over 80 %% of the roofline: only fewer bytes "
                       "help there",
                       bytes * 100);
    if (work > BOTTLENECK)
        hn_report_line(
            report,
            "at the limit: %.0f %% of the time computes at over 80 %% of the roofline: only fewer operations "
            "or smaller types help there",
            work * 100);
}

static void tell_no_kernel(const Profiling *f, HnReport *report)
{
    g_autoptr(GString) ops = g_string_new(NULL);
    g_autoptr(GHashTable) seen = g_hash_table_new(g_str_hash, g_str_equal);
    double ms = 0;
    guint n = 0;
    for (guint i = 0; i < f->profile.rows->len; i++) {
        const HnProfileRow *row = f->profile.rows->pdata[i];
        if (!has_no_kernel(row))
            continue;
        n++;
        ms += row->ms;
        if (g_hash_table_add(seen, row->op))
            g_string_append_printf(ops, "%s%s", ops->len > 0 ? ", " : "", row->op);
    }
    if (n > 0)
        hn_report_line(report, "no kernel: %u node%s on ref, %.1f %% of the time: %s", n, n == 1 ? "" : "s",
                       100 * ms / f->profile.total_ms, ops->str);
}

void profile_tell_advice(const Profiling *f, HnReport *report)
{
    tell_no_kernel(f, report);
    tell_limits(f, report);
    if (!f->tried)
        return;
    hn_report_section(report, "Advice");
    tell_helping(f, report);
    tell_others(f, report);
    if (f->trials->len == 0)
        hn_report_line(report, "a run takes too long to try what would help: --advise does it all the same");
    if (f->untried > 0)
        hn_report_line(report, "there was no time for %u more trial%s: --advise takes it", f->untried,
                       f->untried == 1 ? "" : "s");
}
