/*
 * hone-bench: against a report of an earlier day. Its times are medians of several instances where --instances made it,
 * and the one median of its one instance else; those of today are of instances one after the other, as many as it takes
 * to decide. What both were measured with has to be the same, or there is no verdict.
 */
#include <math.h>
#include <string.h>

#include "base/jsonread.h"
#include "cli/json.h"
#include "hone_bench.h"

gboolean bench_baseline_read(Bench *b, GError **error)
{
    b->baseline = hn_json_read_file(b->p->baseline, HN_JSON_BYTES, b->ctx->budget, error);
    if (!b->baseline)
        return FALSE;
    JsonObject *root = hn_json_object(b->baseline);
    const char *schema = root ? hn_json_string_at(root, "schema") : NULL;
    JsonArray *runs = root ? hn_json_array_at(root, "runs") : NULL;
    if (g_strcmp0(schema, "hone.bench/1") == 0 && runs && json_array_get_length(runs) > 0)
        return TRUE;
    g_set_error(error, HN_ERROR, HN_ERROR_FORMAT, "option '--baseline': '%s' is no report of hone-bench",
                b->p->baseline);
    return FALSE;
}

/* --- what has to be the same ------------------------------------------------------------------------------------- */

typedef struct {
    const char *path, *name;
} Same;

static const Same of_env[] = { { "env.cpu", "processor" },
                               { "env.isa", "instruction set" },
                               { "env.governor", "governor" } };
static const Same of_run[] = { { "model_hash", "model hash" },
                               { "threads", "thread count" },
                               { "streams", "number of streams" },
                               { "device", "device" },
                               { "precision", "precision" },
                               { "io", "way of inputs" },
                               { "mode", "mode" },
                               { "shapes", "shape" } };

static char *text_at(JsonNode *node, const char *path)
{
    JsonNode *found = hn_json_find(node, path);
    g_autofree char *text = found ? hn_json_text(found) : g_strdup("missing");
    g_auto(GStrv) words = g_strsplit_set(text, " \"\n", -1);
    g_autoptr(GString) out = g_string_new(NULL);
    for (char **w = words; *w; w++)
        if (**w)
            g_string_append_printf(out, "%s%s", out->len ? " " : "", *w);
    return g_strdup(out->str);
}

/* "the thread count is 2, and was 4"; NULL: all is the same. *n: how many differ. */
static char *difference(JsonNode *now, JsonNode *then, const Same *same, gsize n_same, guint *n)
{
    char *words = NULL;
    for (gsize i = 0; i < n_same; i++) {
        g_autofree char *a = text_at(now, same[i].path), *b = text_at(then, same[i].path);
        if (strcmp(a, b) == 0)
            continue;
        if (!words)
            words = g_strdup_printf("the %s is %s, and was %s", same[i].name, a, b);
        (*n)++;
    }
    return words;
}

/* The run of the baseline that is most like this one, and how it differs (NULL: in nothing). */
static JsonNode *find_run(const Bench *b, JsonNode *run, char **differs)
{
    JsonArray *runs = hn_json_array_at(hn_json_object(b->baseline), "runs");
    JsonNode *nearest = NULL;
    guint least = G_MAXUINT;
    for (guint i = 0; i < json_array_get_length(runs); i++) {
        JsonNode *then = json_array_get_element(runs, i);
        guint n = 0;
        g_autofree char *words = difference(run, then, of_run, G_N_ELEMENTS(of_run), &n);
        if (n >= least)
            continue;
        least = n;
        nearest = then;
        g_free(*differs);
        *differs = g_steal_pointer(&words);
    }
    return nearest;
}

/* --- times ------------------------------------------------------------------------------------------------------- */

/* A number of a run; NaN: there is none. */
static double number(JsonNode *run, const char *path)
{
    JsonNode *x = hn_json_find(run, path);
    return x && hn_json_is_number(x) ? json_node_get_double(x) : NAN;
}

/* Medians of instances of a run, or its one median: ms, above 0. */
static GArray *times_of(JsonNode *run)
{
    GArray *ms = g_array_new(FALSE, FALSE, sizeof(double));
    JsonNode *list = hn_json_find(run, "instances_ms");
    JsonArray *all = list && JSON_NODE_HOLDS_ARRAY(list) ? json_node_get_array(list) : NULL;
    const guint n = all ? json_array_get_length(all) : 0;
    for (guint i = 0; i < n && i < HN_MAX_ROUNDS; i++) {
        JsonNode *x = json_array_get_element(all, i);
        const double one = hn_json_is_number(x) ? json_node_get_double(x) : 0;
        if (one > 0)
            g_array_append_val(ms, one);
    }
    const double median = number(run, "latency_ms.p50");
    if (ms->len == 0 && median > 0)
        g_array_append_val(ms, median);
    return ms;
}

/*
 * By which part of itself a median may be too long by what others did meanwhile: that lasts as long as they do, and is
 * in no spread. As many runs as were interrupted, or all where processor time was taken away, could have been as short
 * as the shortest.
 */
static double disturbed(JsonNode *run)
{
    const double runs = number(run, "latency_ms.n"), wall = number(run, "noise.wall_ms");
    const double taken = fmax(number(run, "noise.steal_ms"), 0) + fmax(number(run, "noise.throttled_ms"), 0);
    const double part = taken > 0.01 * wall ? 1 : fmin(fmax(number(run, "noise.preemptions"), 0) / runs, 1);
    const double reach = 1 - number(run, "latency_ms.min") / number(run, "latency_ms.p50");
    return isfinite(part) && isfinite(reach) ? CLAMP(part * reach, 0, 0.99) : 0;
}

/* --- measuring --------------------------------------------------------------------------------------------------- */

typedef struct {
    const Bench *b;
    GArray *then;
} Known;

static gboolean is_known(const double *ms, guint rounds, gpointer data)
{
    const Known *k = data;
    const Bench *b = k->b;
    if (b->p->instances > 0)
        return rounds >= (guint)b->p->instances;
    const HnEffect e = hn_effect_apart((const double *)(gpointer)k->then->data, k->then->len, ms, rounds, b->margin);
    if (b->gate > 0)
        return hn_decide(&e, 1 + b->gate) != HN_UNDECIDED;
    return e.verdict == HN_VERDICT_NONE || e.lo > 1 + b->margin || e.hi < 1 - b->margin;
}

static gboolean open_one(gpointer data, G_GNUC_UNUSED int side, GError **error)
{
    Subject *s = data;
    return instance_open(s, &s->next, error);
}

static void close_one(gpointer data, G_GNUC_UNUSED int side)
{
    Subject *s = data;
    instance_clear(&s->next);
}

static gboolean run_one(gpointer data, G_GNUC_UNUSED int side, guint64 i, guint64 *start, guint64 *end, GError **error)
{
    Subject *s = data;
    return instance_run(&s->next, i, start, end, error);
}

/* What is likely the baseline's run of this point, before there is a report to look it up by. */
static GArray *times_then(const Subject *s)
{
    JsonArray *runs = s->b->baseline ? hn_json_array_at(hn_json_object(s->b->baseline), "runs") : NULL;
    guint at = 0;
    if (!runs)
        return g_array_new(FALSE, FALSE, sizeof(double));
    g_ptr_array_find(s->b->points, s->point, &at);
    const guint last = json_array_get_length(runs) - 1;
    return times_of(json_array_get_element(runs, MIN(at, last)));
}

gboolean bench_measure_instances(Subject *s, GError **error)
{
    const Bench *b = s->b;
    const gboolean counted = b->p->instances > 0 && b->measure.until == HN_UNTIL_INTERVAL;
    g_autoptr(GArray) then = times_then(s);
    Known known = { b, then };
    HnOutliers *outliers = &s->outliers;
    HnContest contest = { 1, open_one, close_one, run_one, s, s->n_sets };
    HnContestOptions o = { .until = b->measure.until,
                           .runs = b->measure.runs,
                           .seconds = counted ? G_MAXINT : b->measure.seconds,
                           .known = is_known,
                           .known_data = &known,
                           .rounds = counted ? (guint)b->p->instances : 0,
                           .raw = b->p->raw,
                           .outliers = &outliers };
    HnContestResult *r = g_new0(HnContestResult, 1);
    hn_outliers_init(outliers, s->warmed.median_ns);
    const gboolean ok = hn_contest(&contest, &o, &b->ctx->progress, r, error);
    if (ok) {
        s->measured = r->side[0];
        s->n_rounds = r->rounds;
        s->round_ms = g_memdup2(r->round_ms, r->rounds * sizeof r->round_ms[0]);
        s->has_outliers = s->measured.runs > 0;
        hn_outliers_finish(outliers, s->measured.ms.p50 * 1e6);
    }
    g_free(r);
    return ok;
}

/* --- judging ----------------------------------------------------------------------------------------------------- */

static void add_row(const Bench *b, const Subject *s, const HnEffect *e, const char *differs, guint n_then)
{
    JsonObject *row = json_object_new();
    JsonArray *interval = json_array_new();
    const char *verdict = differs ? "no verdict" : hn_verdict_name(e->verdict);
    json_object_set_string_member(row, "name", s->label);
    json_object_set_string_member(row, "differs", differs);
    json_object_set_double_member(row, "effect", e->effect);
    json_array_add_double_element(interval, e->lo);
    json_array_add_double_element(interval, e->hi);
    json_object_set_array_member(row, "ci95", interval);
    json_object_set_string_member(row, "verdict", verdict);
    json_object_set_double_member(row, "margin", b->margin);
    json_object_set_int_member(row, "instances", s->n_rounds);
    json_object_set_int_member(row, "instances_then", n_then);
    g_autofree char *line =
        differs
            ? g_strdup_printf("%s against the baseline: no verdict, %s", s->label, differs)
            : g_strdup_printf("%s against the baseline: %s, %+.1f %% (95 %%: %+.1f to %+.1f; %u instances, %u then)",
                              s->label, verdict, (e->effect - 1) * 100, (e->lo - 1) * 100, (e->hi - 1) * 100,
                              s->n_rounds, n_then);
    bench_report_baseline(b->report, row, line);
}

/* Against --fail-if-slower, or, without it, whether there is a difference at all. */
static void decide(Bench *b, const Subject *s, const HnEffect *e)
{
    const HnDecision decision = hn_decide(e, 1 + b->gate);
    const gboolean open = b->gate > 0 ? decision == HN_UNDECIDED : e->verdict == HN_VERDICT_NOISY;
    const double lo = (e->sure_lo - 1) * 100, hi = (e->sure_hi - 1) * 100;
    if (b->gate > 0 && decision == HN_LOST)
        bench_set_verdict(
            b, HN_ERROR_GUARD,
            "'%s' is %.1f %% slower than the baseline (99.9 %%: %+.1f to %+.1f), which is more than %g %%", s->label,
            (e->effect - 1) * 100, lo, hi, b->gate * 100);
    else if (open && b->fail_on_noise)
        bench_set_verdict(b, HN_ERROR_NOISE,
                          "it is too noisy, or too near the limit, to tell whether '%s' is slower than the baseline "
                          "(99.9 %%: %+.1f to %+.1f)",
                          s->label, lo, hi);
    else if (open && b->gate > 0)
        hn_context_warn(b->ctx,
                        "it is too noisy, or too near the limit, to tell whether '%s' is slower than the baseline",
                        s->label);
}

static HnEffect effect_of(const Bench *b, const Subject *s, const GArray *ms, JsonNode *run, JsonNode *then)
{
    HnEffect e = hn_effect_apart((const double *)(gpointer)ms->data, ms->len, s->round_ms, s->n_rounds, b->margin);
    const double now = 1 - disturbed(run), before = 1 - disturbed(then);
    e.lo *= now;
    e.sure_lo *= now;
    e.hi /= before;
    e.sure_hi /= before;
    e.verdict = hn_verdict(e.lo, e.hi, b->margin);
    return e;
}

void bench_judge_baseline(Bench *b, Subject *s)
{
    g_autoptr(JsonNode) report = bench_report_env(b->report);
    g_autoptr(JsonNode) run = json_node_init_object(json_node_alloc(), bench_report_last(b->report));
    guint n = 0;
    g_autofree char *of_this = NULL;
    g_autofree char *differs = difference(report, b->baseline, of_env, G_N_ELEMENTS(of_env), &n);
    JsonNode *then = find_run(b, run, &of_this);
    g_autoptr(GArray) ms = times_of(then);
    HnEffect e = { NAN, NAN, NAN, HN_VERDICT_NOISY, NAN, NAN };
    if (!differs)
        differs = g_steal_pointer(&of_this);
    if (!differs && ms->len == 0)
        differs = g_strdup("there are no times in it");
    if (!differs)
        e = effect_of(b, s, ms, run, then);
    add_row(b, s, &e, differs, ms->len);
    if (differs)
        bench_set_verdict(b, HN_ERROR_NOISE, "'%s' cannot be compared with '%s': %s", s->label, b->p->baseline,
                          differs);
    else
        decide(b, s, &e);
}
