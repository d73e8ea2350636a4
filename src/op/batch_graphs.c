/* How samples pass through sub-graphs: rules that several records share (op/batch.h). */
#include "op/batch.h"

/* --- branches ----------------------------------------------------------------------------------------------------- */

static gboolean same_formal(const HnBatchFormal *a, const HnBatchFormal *b)
{
    return a->at.axis == b->at.axis && a->front == b->front && hn_batch_alike(&a->at, &b->at);
}

/* Where all of them can have the samples of output k: one place as it is, or else in front. */
static gboolean settle_branches(HnBatch *b, HnGraph *const *branch, int n, HnBatchFormal *const *at, int k)
{
    gboolean same = TRUE, any = FALSE;
    for (int i = 0; i < n; i++) {
        same = same && same_formal(&at[i][k], &at[0][k]);
        any = any || at[i][k].at.axis >= 0;
    }
    b->out[k] = at[0][k].at;
    if (same || !any)
        return TRUE;
    for (int i = 0; i < n; i++)
        if (!b->settle(b, branch[i], k, -1))
            return FALSE;
    b->out[k] = hn_batch_place(0);
    return TRUE;
}

void hn_batch_branches(HnBatch *b, HnGraph *const *branch, int n)
{
    HnBatchFormal *at[2] = { NULL };
    gboolean ok = TRUE;
    for (int i = 0; i < n; i++) {
        at[i] = g_new0(HnBatchFormal, (gsize)b->n_out + 1);
        ok = ok && b->graph(b, branch[i], 0, NULL, at[i]);
    }
    for (int k = 0; k < b->n_out && ok; k++)
        ok = settle_branches(b, branch, n, at, k);
    for (int i = 0; i < n; i++)
        g_free(at[i]);
}

/* --- bodies that run again and again ------------------------------------------------------------------------------ */

/* Values of the body that may differ from sample to sample, into `seen`, which begins with what goes into it. */
static void spread(const HnBatch *b, const HnGraph *body, GHashTable *seen)
{
    for (guint i = 0; i < body->nodes->len; i++) {
        const HnNode *n = body->nodes->pdata[i];
        g_autoptr(GPtrArray) reads = hn_node_reads(n);
        gboolean any = FALSE;
        for (guint k = 0; k < reads->len && !any; k++)
            any = g_hash_table_contains(seen, reads->pdata[k]) || b->holds(b, reads->pdata[k]);
        for (guint k = 0; k < n->out->len && any; k++)
            if (n->out->pdata[k] != NULL)
                g_hash_table_add(seen, n->out->pdata[k]);
    }
}

/* Which of the carried values hold samples: those that do at first, and those that become such. */
static void find_carried(const HnBatch *b, const HnBatchCarry *c, gboolean *holds)
{
    g_autoptr(GHashTable) seen = g_hash_table_new(NULL, NULL);
    for (guint i = 0; i < c->body->inputs->len; i++) {
        const int k = (int)i - c->formal;
        const gboolean carried = k >= 0 && k < c->n;
        if (carried ? hn_batch_split(b, c->in + k) : c->formals[i].at.axis >= 0)
            g_hash_table_add(seen, c->body->inputs->pdata[i]);
    }
    for (gboolean more = TRUE; more;) {
        more = FALSE;
        spread(b, c->body, seen);
        for (int k = 0; k < c->n; k++) {
            const HnValue *y = c->body->outputs->pdata[c->result + k];
            if (g_hash_table_contains(seen, y) || b->holds(b, y))
                more |= g_hash_table_add(seen, c->body->inputs->pdata[c->formal + k]);
        }
    }
    for (int k = 0; k < c->n; k++)
        holds[k] = g_hash_table_contains(seen, c->body->inputs->pdata[c->formal + k]);
}

/* Carried value k goes in with its samples along an axis of their own: the one that it has, a first one of 1, or a new
 * one in front. */
static gboolean carry_in(HnBatch *b, const HnBatchCarry *c, int k)
{
    const int i = c->in + k;
    const HnBatchPlace *at = &b->in[i].at;
    const gboolean alone = hn_dim_is(at->outer, 1) && hn_dim_is(at->inner, 1) && !hn_batch_in_front(b, i);
    const gboolean first = hn_batch_rank_was(b, i) > 0 && hn_dim_is(b->in[i].was->dims[0], 1);
    if (hn_batch_split(b, i) ? !alone && !hn_batch_lift(b, i, 0)
                             : !(first ? hn_batch_put(b, i, 0) : hn_batch_lift(b, i, 0)))
        return FALSE;
    c->formals[c->formal + k] = (HnBatchFormal){ b->in[i].at, hn_batch_in_front(b, i) };
    return TRUE;
}

static gboolean carry_out(HnBatch *b, const HnBatchCarry *c, int k)
{
    const HnBatchFormal *in = &c->formals[c->formal + k];
    HnBatchFormal *out = &c->results[c->result + k];
    if (in->at.axis < 0)
        return out->at.axis < 0 || hn_batch_fail(b, "what it carries from run to run holds samples only later on");
    if (!same_formal(in, out) && !b->settle(b, c->body, c->result + k, in->front ? -1 : in->at.axis))
        return FALSE;
    *out = *in;
    return TRUE;
}

gboolean hn_batch_carry(HnBatch *b, const HnBatchCarry *c)
{
    g_autofree gboolean *holds = g_new0(gboolean, (gsize)c->n + 1);
    find_carried(b, c, holds);
    for (int k = 0; k < c->n; k++) {
        c->formals[c->formal + k].at = hn_batch_none();
        if (holds[k] && !carry_in(b, c, k))
            return FALSE;
    }
    if (!b->graph(b, c->body, (int)c->body->inputs->len, c->formals, c->results))
        return FALSE;
    for (int k = 0; k < c->n; k++)
        if (!carry_out(b, c, k))
            return FALSE;
    return TRUE;
}
