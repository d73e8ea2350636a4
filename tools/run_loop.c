/* hone-run --steps: outputs of a step are inputs of the next one. */
#include <inttypes.h>
#include <math.h>

#include "base/clock.h"
#include "hone_run.h"

struct RunLoop {
    HnLoop *loop;
    GArray *feeds;
    int n_out; /* of the session */
    gboolean tokens;
    int64_t wanted;
    int64_t steps;            /* of all samples */
    double first_ms, rest_ms; /* of all samples: first steps, and all the others */
    int64_t samples;
    char *why; /* each step is planned; NULL: it is not */
};

RunLoop *run_loop_new(HnSession *s, const HnModel *m, const RunLoopOptions *o, GError **error)
{
    GArray *feeds = o->rules ? hn_feeds_parse(s, o->rules, error) : hn_feeds_usual(s, o->sample);
    if (!feeds)
        return NULL;
    if (feeds->len == 0) {
        g_array_unref(feeds);
        hn_tool_usage(error, "option '--steps': the names of inputs and outputs do not say what is fed back: name it "
                             "with '--loop'");
        return NULL;
    }
    RunLoop *l = g_new0(RunLoop, 1);
    l->feeds = feeds;
    l->n_out = hn_session_n_outputs(s);
    l->wanted = o->steps;
    for (guint k = 0; k < feeds->len; k++)
        l->tokens = l->tokens || g_array_index(feeds, HnFeed, k).kind == HN_FEED_TOKEN;
    l->loop = hn_loop_new(
        s, m,
        &(HnLoopOptions){
            .feeds = feeds, .picking = o->picking, .steps = o->steps, .stop = o->stop, .session = *o->session });
    return l;
}

void run_loop_free(RunLoop *l)
{
    if (!l)
        return;
    hn_loop_free(l->loop);
    g_array_unref(l->feeds);
    g_free(l->why);
    g_free(l);
}

gboolean run_loop_makes(const RunLoop *l, int i)
{
    const HnFeed *f = hn_feeds_of(l->feeds, i);
    return f && hn_feeds_make(l->feeds, f);
}

gboolean run_loop_has_tokens(const RunLoop *l)
{
    return l->tokens;
}

gboolean run_loop_run(RunLoop *l, HnContext *ctx, HnTensor *const *in, HnTensor **out, GError **error)
{
    if (!hn_loop_start(l->loop, in, error))
        return FALSE;
    for (guint64 t = hn_now_ns(), now; !hn_loop_done(l->loop); t = now) {
        if (hn_progress_stop(&ctx->progress, error) || !hn_loop_step(l->loop, error))
            return FALSE;
        now = hn_now_ns();
        *(hn_loop_steps(l->loop) == 1 ? &l->first_ms : &l->rest_ms) += (double)(now - t) / 1e6;
        hn_progress_tell(&ctx->progress, "steps", (guint64)hn_loop_steps(l->loop), (guint64)l->wanted);
    }
    l->samples++;
    l->steps += hn_loop_steps(l->loop);
    g_free(l->why);
    l->why = g_strdup(hn_loop_plans(l->loop));
    if (l->why)
        hn_context_note(ctx, 1, "each step is planned for its shapes: %s", l->why);
    for (int k = 0; k < l->n_out + l->tokens; k++) {
        GError *cause = NULL;
        out[k] = k < l->n_out ? hn_loop_output(l->loop, k, &cause) : hn_loop_tokens(l->loop, &cause);
        if (!cause)
            continue;
        g_propagate_error(error, cause);
        while (k-- > 0)
            g_clear_pointer(&out[k], hn_tensor_unref);
        return FALSE;
    }
    return TRUE;
}

void run_loop_report(const RunLoop *l, HnReport *report)
{
    const int64_t rest = l->steps - l->samples;
    const double first = l->samples ? l->first_ms / (double)l->samples : NAN,
                 step = rest > 0 ? l->rest_ms / (double)rest : NAN;
    JsonObject *o = json_object_new();
    json_object_set_int_member(o, "steps", l->steps);
    json_object_set_double_member(o, "first_ms", first);
    json_object_set_double_member(o, "step_ms", step);
    if (l->why)
        json_object_set_string_member(o, "planned", l->why);
    else
        json_object_set_null_member(o, "planned");
    json_object_set_object_member(hn_report_root(report), "loop", o);
    hn_report_line(report, "%" PRId64 " steps: the first %.3g ms, %.3g ms each of the others", l->steps, first, step);
}
