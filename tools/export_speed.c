/* hone-export: latency of both models, interleaved. */
#include "export.h"

typedef struct {
    const Export *e;
    HnModel *model[2];
    HnSession *session[2];
    HnTensor **in[2], **out[2];
} Race;

static void close_side(gpointer data, int side)
{
    Race *r = data;
    HnSession *s = r->session[side];
    for (int i = 0; s != NULL && r->in[side] != NULL && i < hn_session_n_inputs(s); i++)
        hn_tensor_unref(r->in[side][i]);
    g_clear_pointer(&r->in[side], g_free);
    g_clear_pointer(&r->out[side], g_free);
    g_clear_pointer(&r->session[side], hn_session_free);
}

static gboolean open_side(gpointer data, int side, GError **error)
{
    Race *r = data;
    const HnCommon *c = &r->e->ctx->common;
    const HnSessionOptions o = {
        .threads = c->threads, .strict_math = c->strict_math, .seed = c->seed, .budget = r->e->ctx->budget
    };
    HnSession *s = r->session[side] = hn_session_new(r->model[side], r->e->backend, &o, error);
    if (s == NULL)
        return FALSE;
    r->in[side] = g_new0(HnTensor *, (gsize)hn_session_n_inputs(s) + 1);
    r->out[side] = g_new0(HnTensor *, (gsize)hn_session_n_outputs(s) + 1);
    for (int i = 0; i < hn_session_n_inputs(s); i++)
        r->in[side][i] = hn_verify_input(r->e->verify, 0, hn_session_input(s, i));
    return TRUE;
}

static gboolean run_side(gpointer data, int side, guint64 i, guint64 *start, guint64 *end, GError **error)
{
    Race *r = data;
    (void)i;
    *start = hn_now_ns();
    if (!hn_session_run(r->session[side], r->in[side], r->out[side], error))
        return FALSE;
    *end = hn_now_ns();
    for (int k = 0; k < hn_session_n_outputs(r->session[side]); k++)
        g_clear_pointer(&r->out[side][k], hn_tensor_unref);
    return TRUE;
}

gboolean export_speed(Export *e, GError **error)
{
    Race r = { .e = e, .model = { e->original, e->x.model } };
    const HnContest contest = { 2, open_side, close_side, run_side, &r, 1 };
    const HnContestOptions o = { .until = HN_UNTIL_INTERVAL, .seconds = 5, .margin = 0.02, .gate = 0.03 };
    HnContestResult result;
    gboolean ok = hn_contest(&contest, &o, &e->ctx->progress, &result, error);
    if (ok) {
        e->has_speed = TRUE;
        for (int i = 0; i < 2; i++)
            e->speed.p50_ms[i] = result.side[i].ms.p50;
        e->speed.effect = result.effect[1];
    }
    return ok;
}
