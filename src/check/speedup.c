#include "check/speedup.h"

#include <inttypes.h>
#include <math.h>

#include "base/clock.h"
#include "check/outputs.h"
#include "ir/tensor.h"

#define MEANT 0.01 /* of the bytes: what is smaller by less is not smaller */
#define BRIEF 0.2  /* seconds of runs of each side, where both are the same */

typedef struct {
    HnModel *model;
    HnSession *session;
    HnTensor **in, **out;
    int n_in;
    const char *name;
} Side;

typedef struct {
    Side side[2];
    const HnBackend *backend;
    const HnSpeedupOptions *o;
} Sides;

static gboolean open_side(gpointer data, int i, GError **error)
{
    Sides *g = data;
    Side *s = &g->side[i];
    const int threads = i == 1 && g->o->after_threads > 0 ? g->o->after_threads : g->o->threads;
    HnSessionOptions o = { .threads = threads, .budget = g->o->budget };
    s->session = hn_session_new(s->model, g->backend, &o, error);
    if (s->session != NULL)
        return TRUE;
    g_prefix_error(error, "%s: ", s->name);
    return FALSE;
}

static void drop_results(Side *s)
{
    for (guint k = 0; k < s->model->graph->outputs->len; k++)
        g_clear_pointer(&s->out[k], hn_tensor_unref);
}

static void close_side(gpointer data, int i)
{
    Sides *g = data;
    drop_results(&g->side[i]);
    g_clear_pointer(&g->side[i].session, hn_session_free);
}

static gboolean run_side(gpointer data, int i, guint64 run, guint64 *start, guint64 *end, GError **error)
{
    Sides *g = data;
    Side *s = &g->side[i];
    (void)run;
    drop_results(s);
    *start = hn_now_ns();
    const gboolean ok = hn_session_run(s->session, s->in, s->out, error);
    *end = hn_now_ns();
    if (!ok)
        g_prefix_error(error, "%s: ", s->name);
    return ok;
}

/* The sample's inputs in the types that the model declares. */
static gboolean take_inputs(Sides *g, Side *s, HnTensor *const *in, GError **error)
{
    g_autoptr(HnSession) looked =
        hn_session_new(s->model, &hn_backend_null, &(HnSessionOptions){ .budget = g->o->budget }, error);
    if (looked == NULL)
        return FALSE;
    const int n = s->n_in = hn_session_n_inputs(looked);
    s->in = g_new0(HnTensor *, (gsize)n + 1);
    s->out = g_new0(HnTensor *, s->model->graph->outputs->len + 1u);
    for (int i = 0; i < n; i++) {
        const HnValue *v = hn_session_input(looked, i);
        if (in[i] != NULL && (s->in[i] = hn_input_for(v, in[i], g->o->budget, error)) == NULL)
            return FALSE;
    }
    return TRUE;
}

static void side_clear(Side *s)
{
    for (int i = 0; i < s->n_in; i++)
        hn_tensor_unref(s->in[i]);
    g_free(s->in);
    g_free(s->out);
}

/* --- the same ----------------------------------------------------------------------------------------------------- */

static void add_port(GString *text, const HnPort *port)
{
    const HnTensor *t = port->slot != NULL ? port->slot->tensor : NULL;
    g_string_append_printf(text, " %d", t != NULL ? (int)t->dtype : -1);
    for (int i = 0; t != NULL && i < t->ndim; i++)
        g_string_append_printf(text, "x%" PRId64, t->dims[i]);
}

static void add_step(const HnStep *s, int depth, gpointer data)
{
    GString *text = data;
    g_string_append_printf(text, "%d %s %s", depth, s->node != NULL ? s->node->op_type : "reorder",
                           s->kernel != NULL ? s->kernel->name : "ref");
    for (int i = 0; i < s->n_fused; i++)
        g_string_append_printf(text, "+%s", s->fused[i]->op_type);
    for (int i = 0; i < s->n_in + s->n_hidden; i++)
        add_port(text, &s->in[i]);
    for (int i = 0; i < s->n_out; i++)
        add_port(text, &s->out[i]);
    g_string_append(text, s->inplace ? " in place\n" : "\n");
}

/* What a run of the side consists of; NULL with an error. */
static GString *steps_of(Sides *g, int i, GError **error)
{
    guint64 start, end;
    GString *text = NULL;
    if (open_side(g, i, error) && run_side(g, i, 0, &start, &end, error)) {
        text = g_string_new(NULL);
        hn_session_foreach_step(g->side[i].session, add_step, text);
    }
    close_side(g, i);
    return text;
}

static gboolean run_the_same(Sides *g, gboolean *same, GError **error)
{
    g_autoptr(GString) before = steps_of(g, 0, error);
    g_autoptr(GString) after = before != NULL ? steps_of(g, 1, error) : NULL;
    *same = after != NULL && g_string_equal(before, after);
    return after != NULL;
}

/* --- all of it ---------------------------------------------------------------------------------------------------- */

static gboolean contest(Sides *g, HnSpeedup *out, GError **error)
{
    const gboolean alike = g->o->after_threads == 0 && g->o->after_in == NULL;
    if ((g->o->limit >= 1 || g->o->precision > 0) && alike && !run_the_same(g, &out->same, error))
        return FALSE;
    const HnContest c = { .sides = 2, .open = open_side, .close = close_side, .run = run_side, .data = g, .period = 1 };
    const HnContestOptions o = { .until = HN_UNTIL_INTERVAL,
                                 .seconds = out->same           ? BRIEF
                                            : g->o->seconds > 0 ? g->o->seconds
                                                                : 3,
                                 .margin = g->o->margin > 0 ? g->o->margin : 0.02,
                                 .limit = g->o->limit,
                                 .useful = g->o->useful,
                                 .precision = g->o->precision,
                                 .decide = g->o->limit > 0 || g->o->precision > 0,
                                 .end = g->o->end };
    g_autofree HnContestResult *r = g_new0(HnContestResult, 1);
    if (!hn_contest(&c, &o, g->o->progress, r, error))
        return FALSE;
    out->effect = out->same ? r->effect[0] : r->effect[1];
    out->old_ms = r->ms;
    out->new_ms = r->ms * out->effect.effect;
    return TRUE;
}

gboolean hn_measure_speedup(HnModel *before, HnModel *after, const HnBackend *backend, HnTensor *const *in,
                            const HnSpeedupOptions *o, HnSpeedup *out, GError **error)
{
    Sides g = { .side = { { .model = before, .name = "original" }, { .model = after, .name = "converted" } },
                .backend = backend,
                .o = o };
    *out = (HnSpeedup){ .old_bytes = hn_model_weight_bytes(before), .new_bytes = hn_model_weight_bytes(after) };
    const gboolean ok = take_inputs(&g, &g.side[0], in, error) &&
                        take_inputs(&g, &g.side[1], o->after_in != NULL ? o->after_in : in, error) &&
                        contest(&g, out, error);
    side_clear(&g.side[0]);
    side_clear(&g.side[1]);
    if (!ok)
        return FALSE;
    out->faster = out->effect.verdict == HN_VERDICT_FASTER;
    out->smaller = (double)out->new_bytes < (1 - MEANT) * (double)out->old_bytes;
    out->pointless = !out->faster && !out->smaller;
    return TRUE;
}

char *hn_speedup_describe(const HnSpeedup *speedup)
{
    const double bytes = speedup->old_bytes > 0 ? (double)speedup->new_bytes / (double)speedup->old_bytes : 1;
    const HnEffect *e = &speedup->effect;
    g_autofree char *interval = isfinite(e->lo) && isfinite(e->hi)
                                    ? g_strdup_printf(", 95%% interval %.3f to %.3f", e->lo, e->hi)
                                    : g_strdup("");
    return g_strdup_printf("%s on this machine (%.3f times the latency%s), %.3f times the bytes of the weights%s",
                           hn_verdict_name(e->verdict), e->effect, interval, bytes,
                           speedup->pointless ? ": pointless" : "");
}
