#include "tune/timing.h"

#include <math.h>

#include "perf/profile.h"

typedef struct {
    HnSession *session;
    HnTensor *const *in;
    HnTensor **out;
    int n_out;
} Run;

static void drop_results(Run *r)
{
    for (int k = 0; k < r->n_out; k++)
        g_clear_pointer(&r->out[k], hn_tensor_unref);
}

static gboolean run_once(gpointer data, guint64 i, GError **error)
{
    Run *r = data;
    (void)i;
    drop_results(r);
    return hn_session_run(r->session, r->in, r->out, error);
}

static HnNodeTime *at_name(HnNodeTimes *t, const char *name)
{
    HnNodeTime *at = g_hash_table_lookup(t->nodes, name);
    if (at == NULL) {
        at = g_new0(HnNodeTime, 1);
        g_hash_table_insert(t->nodes, g_strdup(name), at);
    }
    return at;
}

static void count_elements(const HnStep *s, int depth, gpointer data)
{
    const HnSlot *slot = s->n_out > 0 ? s->out[0].slot : NULL;
    (void)depth;
    if (slot != NULL && slot->value != NULL && slot->tensor != NULL)
        at_name(data, slot->value->name)->elements = (double)slot->tensor->n;
    const HnValue *v = s->origin != NULL ? hn_node_result(s->origin) : NULL;
    if (slot != NULL && slot->tensor != NULL && v != NULL)
        at_name(data, v->name)->elements = (double)slot->tensor->n;
}

static HnNodeTimes *times_of(const HnProfile *p)
{
    HnNodeTimes *t = hn_node_times_new();
    t->total_ms = p->without.p50;
    for (guint i = 0; i < p->rows->len; i++) {
        const HnProfileRow *row = p->rows->pdata[i];
        const HnValue *v = row->node != NULL ? hn_node_result(row->node) : NULL;
        const char *name = v != NULL ? v->name : row->node == NULL ? row->name : NULL; /* reorders have a value's */
        if (name != NULL && isfinite(row->ms))
            at_name(t, name)->ms += row->ms;
    }
    hn_session_foreach_step(p->session, count_elements, t);
    return t;
}

HnNodeTimes *hn_node_times_measure(HnModel *m, const HnTimingOptions *o, GError **error)
{
    const HnSessionOptions so = { .threads = o->threads, .budget = o->budget };
    g_autoptr(HnSession) session = hn_session_new(m, o->backend, &so, error);
    if (session == NULL)
        return NULL;
    Run r = { session, o->in, NULL, hn_session_n_outputs(session) };
    const HnProfileOptions po = { .run = run_once, .data = &r, .seconds = o->seconds };
    HnProfile profile;
    HnNodeTimes *times = NULL;
    r.out = g_new0(HnTensor *, (gsize)r.n_out + 1);
    hn_profile_init(&profile, session);
    if (hn_profile_measure(&profile, &po, o->progress, error) && !hn_progress_stop(o->progress, error)) {
        hn_profile_finish(&profile, NULL, NULL);
        times = times_of(&profile);
    }
    hn_profile_clear(&profile);
    drop_results(&r);
    g_free(r.out);
    return times;
}

const HnNodeTime *hn_node_time(const HnNodeTimes *t, const char *name)
{
    return g_hash_table_lookup(t->nodes, name);
}
