#include "perf/profile.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK_NS 50000000 /* runs between two looks at the spans */
#define BLOCK_SPANS ((gsize)1 << 15)
#define GROWTH 1.25 /* of the time measured between two looks at the intervals */
#define TYPICAL 0.1
#define TYPICAL_LEAST 3
static const char reorder_key[] = "reorder"; /* its address is the key of steps without node or value */

/* The times of a run, by row. */
typedef struct {
    double total, outside; /* ms */
    guint n;
    float ms[];
} Kept;

/* Where a profiled run of the present block is in the list of spans. */
typedef struct {
    guint64 start, end;
    gsize from, to;
} Part;

static void row_free(gpointer data)
{
    HnProfileRow *r = data;
    g_free(r->name);
    g_free(r->op);
    g_ptr_array_unref(r->refusals);
    g_free(r);
}

static void run_free(gpointer data)
{
    HnProfileRun *r = data;
    g_free(r->spans);
    g_free(r);
}

void hn_profile_init(HnProfile *p, HnSession *session)
{
    *p = (HnProfile){ .session = session, .rng = hn_rng(0) };
    hn_ticks_start(&p->timer, &p->ticks);
    p->rows = g_ptr_array_new_with_free_func(row_free);
    p->by_key = g_hash_table_new(NULL, NULL);
    p->runs = g_ptr_array_new_with_free_func(g_free);
    p->traces = g_ptr_array_new_with_free_func(run_free);
    hn_times_init(&p->profiled, 0);
    hn_times_init(&p->unprofiled, 0);
}

void hn_profile_clear(HnProfile *p)
{
    if (!p->rows)
        return;
    hn_session_set_timer(p->session, NULL);
    g_free(p->timer.spans);
    g_ptr_array_unref(p->rows);
    g_hash_table_unref(p->by_key);
    g_ptr_array_unref(p->runs);
    g_ptr_array_unref(p->traces);
    hn_times_clear(&p->profiled);
    hn_times_clear(&p->unprofiled);
    p->rows = NULL;
}

/* --- rows ------------------------------------------------------------------------------------------------ */

/* All reorders of what has no name are one row. */
static gconstpointer key_of(const HnNode *node, const HnValue *value)
{
    return node ? (gconstpointer)node : value ? (gconstpointer)value : (gconstpointer)reorder_key;
}

static int row_index(HnProfile *p, const HnNode *node, const HnValue *value, int depth)
{
    gconstpointer key = key_of(node, value);
    gpointer found = g_hash_table_lookup(p->by_key, key);
    if (found)
        return GPOINTER_TO_INT(found) - 1;
    HnProfileRow *r = g_new0(HnProfileRow, 1);
    *r = (HnProfileRow){ .key = key, .node = node, .depth = depth, .parent = -1, .error = NAN };
    r->name = g_strdup(node ? hn_node_label(node) : value ? value->name : reorder_key);
    r->op = g_strdup(node ? node->op_type : reorder_key);
    r->refusals = g_ptr_array_new();
    g_ptr_array_add(p->rows, r);
    g_hash_table_insert(p->by_key, (gpointer)key, GINT_TO_POINTER(p->rows->len));
    return (int)p->rows->len - 1;
}

const HnProfileRow *hn_profile_row(const HnProfile *p, const HnSpan *s)
{
    gpointer found = g_hash_table_lookup(p->by_key, key_of(s->node, s->value));
    return found ? p->rows->pdata[GPOINTER_TO_INT(found) - 1] : NULL;
}

/* --- a run's spans ---------------------------------------------------------------------------------------- */

/* Own times of rows in ticks; returns those of the main graph's steps together. A step of a sub-graph comes before the
 * step that holds it. */
static guint64 add_spans(HnProfile *p, const HnSpan *spans, gsize n, GArray *own)
{
    g_autoptr(GArray) inside = g_array_new(FALSE, TRUE, sizeof(guint64)); /* by depth: steps not yet claimed */
    guint64 sum = 0;
    for (gsize i = 0; i < n; i++) {
        const HnSpan *s = &spans[i];
        guint64 took = s->end - s->start;
        int at = row_index(p, s->node, s->value, s->depth);
        HnProfileRow *row = p->rows->pdata[at];
        row->calls++;
        row->kernel = s->kernel;
        if ((guint)at >= own->len)
            g_array_set_size(own, (guint)at + 1);
        if ((guint)s->depth + 2 > inside->len)
            g_array_set_size(inside, (guint)s->depth + 2);
        guint64 *held = &g_array_index(inside, guint64, s->depth + 1);
        g_array_index(own, guint64, at) += took - MIN(took, *held);
        *held = 0;
        if (s->depth > 0)
            g_array_index(inside, guint64, s->depth) += took;
        else
            sum += took;
    }
    return sum;
}

/* Room for one more in a random selection of at most `max`: where to put it, -1: nowhere. seen counts this one. */
static gint64 place(HnRng *rng, guint64 seen, guint n, guint max)
{
    if (n < max)
        return n;
    gint64 k = hn_rng_int(rng, 0, (gint64)seen - 1);
    return k < (gint64)max ? k : -1;
}

static void put(GPtrArray *list, gint64 at, gpointer x, GDestroyNotify destroy)
{
    if (at < (gint64)list->len) {
        destroy(list->pdata[at]);
        list->pdata[at] = x;
    } else {
        g_ptr_array_add(list, x);
    }
}

static void keep_trace(HnProfile *p, const Part *part)
{
    gsize n = part->to - part->from;
    guint room = (guint)CLAMP(p->trace_spans / MAX(n, 1), 1, 10000);
    gint64 at = place(&p->rng, p->profiled.seen, p->traces->len, MAX(room, p->traces->len));
    if (at < 0 || at >= (gint64)room)
        return;
    HnProfileRun *r = g_new0(HnProfileRun, 1);
    n = MIN(n, p->trace_spans);
    *r = (HnProfileRun){ part->start, part->end, n, g_memdup2(p->timer.spans + part->from, n * sizeof(HnSpan)) };
    put(p->traces, at, r, run_free);
}

static void add_run(HnProfile *p, const Part *part)
{
    g_autoptr(GArray) own = g_array_new(FALSE, TRUE, sizeof(guint64));
    gsize n = part->to - part->from;
    double to_ms = p->ticks.ns * 1e-6, total = (double)(part->end - part->start) * to_ms;
    guint64 sum = add_spans(p, p->timer.spans + part->from, n, own);
    hn_times_add(&p->profiled, total);
    p->spans += (double)n;
    if (p->trace_spans)
        keep_trace(p, part);
    gint64 at = place(&p->rng, p->profiled.seen, p->runs->len, HN_PROFILE_KEPT);
    if (at < 0)
        return;
    Kept *k = g_malloc0(sizeof *k + own->len * sizeof k->ms[0]);
    k->total = total;
    k->outside = total - (double)sum * to_ms;
    k->n = own->len;
    for (guint i = 0; i < own->len; i++)
        k->ms[i] = (float)((double)g_array_index(own, guint64, i) * to_ms);
    put(p->runs, at, k, g_free);
}

/* --- measuring -------------------------------------------------------------------------------------------- */

/* Room for a run like the last one, touched, so that the run itself asks for no memory. */
static void reserve_spans(HnTimer *t, gsize last)
{
    gsize want = t->n + last * 2 + 64;
    if (want <= t->room)
        return;
    gsize room = MAX(want, t->room * 2);
    t->spans = g_renew(HnSpan, t->spans, room);
    memset(t->spans + t->n, 0, (room - t->n) * sizeof(HnSpan));
    t->room = room;
}

static gboolean run_profiled(HnProfile *p, const HnProfileOptions *o, guint64 i, GArray *parts, GError **error)
{
    HnTimer *t = &p->timer;
    const Part *before = parts->len ? &g_array_index(parts, Part, parts->len - 1) : NULL;
    reserve_spans(t, before ? before->to - before->from : t->room / 4);
    Part part = { .from = t->n };
    hn_session_set_timer(p->session, t);
    part.start = hn_timer_now(t);
    gboolean ok = o->run(o->data, i, error);
    part.end = hn_timer_now(t);
    hn_session_set_timer(p->session, NULL);
    part.to = t->n;
    g_array_append_val(parts, part);
    return ok;
}

static gboolean run_unprofiled(HnProfile *p, const HnProfileOptions *o, guint64 i, GError **error)
{
    hn_times_reserve(&p->unprofiled);
    guint64 start = hn_timer_now(&p->timer);
    if (!o->run(o->data, i, error))
        return FALSE;
    hn_times_add(&p->unprofiled, (double)(hn_timer_now(&p->timer) - start) * p->ticks.ns * 1e-6);
    return TRUE;
}

/* Pairs of runs until the block is long enough or pair number `last` is reached; *i counts pairs. */
static gboolean block(HnProfile *p, const HnProfileOptions *o, guint64 *i, guint64 last, const gint *cancel,
                      GError **error)
{
    g_autoptr(GArray) parts = g_array_new(FALSE, FALSE, sizeof(Part));
    guint64 start = hn_now_ns();
    gboolean ok;
    p->timer.n = 0;
    gboolean full;
    do {
        gboolean first = *i % 2 != 0;
        ok = (!first || run_profiled(p, o, *i, parts, error)) && run_unprofiled(p, o, *i, error) &&
             (first || run_profiled(p, o, *i, parts, error));
        full = ++*i >= last || hn_now_ns() - start >= BLOCK_NS || p->timer.n >= BLOCK_SPANS;
    } while (ok && !full && !(cancel && g_atomic_int_get(cancel)));
    for (guint k = 0; ok && k < parts->len; k++)
        add_run(p, &g_array_index(parts, Part, k));
    return ok;
}

/* The same behind a run without a look at it. */
static gboolean warm_block(HnProfile *p, const HnProfileOptions *o, guint64 *i, guint64 last, const gint *cancel,
                           GError **error)
{
    return o->run(o->data, *i, error) && block(p, o, i, last, cancel, error);
}

static gboolean narrow(HnTimes *t, double precision)
{
    HnStats s;
    hn_stats(t->x, t->n, &s);
    return MAX(s.hi - s.p50, s.p50 - s.lo) <= precision * s.p50;
}

/* Whether enough was measured in `passed` seconds; *look is when to look at the intervals again. */
static gboolean enough(HnProfile *p, const HnProfileOptions *o, guint64 pairs, double passed, double *look)
{
    if (o->runs)
        return pairs >= o->runs;
    if (passed < o->seconds || pairs < HN_MIN_INTERVAL)
        return FALSE;
    if (!(o->precision > 0) || passed >= o->limit)
        return TRUE;
    if (passed < *look)
        return FALSE;
    *look = passed * GROWTH;
    return narrow(&p->profiled, o->precision) && narrow(&p->unprofiled, o->precision);
}

gboolean hn_profile_measure(HnProfile *p, const HnProfileOptions *o, const HnProgress *progress, GError **error)
{
    guint64 pairs = 0, start = hn_now_ns(), last = o->runs ? o->runs : G_MAXUINT64;
    const gint *cancel = progress ? progress->cancel : NULL;
    double look = 0;
    p->trace_spans = o->trace_spans;
    p->first = hn_timer_now(&p->timer);
    for (;;) {
        double passed = (double)(hn_now_ns() - start) * 1e-9;
        if (enough(p, o, pairs, passed, &look))
            return TRUE;
        if (o->runs)
            hn_progress_tell(progress, "profiling", pairs, o->runs);
        else
            hn_progress_tell(progress, "profiling", (guint64)(MIN(passed, o->seconds) * 1e3),
                             (guint64)(o->seconds * 1e3));
        if (cancel && g_atomic_int_get(cancel))
            return pairs > 0 || !hn_progress_stop(progress, error);
        GError *failure = NULL;
        if (!warm_block(p, o, &pairs, last, cancel, &failure) && (p->profiled.n == 0 || !hn_progress_cut(&failure))) {
            g_propagate_error(error, failure);
            return FALSE;
        }
    }
}

/* --- costs ------------------------------------------------------------------------------------------------ */

static gsize slot_bytes(const HnSlot *s)
{
    return !s || !s->tensor ? 0 : s->layout ? s->layout->bytes : s->tensor->bytes;
}

static HnType *type_of(const HnSlot *s)
{
    return s && s->tensor ? hn_type_fixed(s->tensor->dtype, s->tensor->ndim, s->tensor->dims) : NULL;
}

/* What the record says of the node with the step's shapes. */
static void node_cost(const HnStep *s, HnCost *c)
{
    HnNode as = *s->node; /* of what it is computed by, which may be an operator with other inputs */
    as.op = s->op;
    const int most = s->op == s->node->op ? (int)s->node->in->len : s->n_in;
    int n_in = MIN(s->n_in, most), n_out = MIN(s->n_out, (int)s->node->out->len);
    g_autoptr(GPtrArray) types = g_ptr_array_new_with_free_func((GDestroyNotify)hn_type_unref);
    g_autofree HnTensor **value = g_new0(HnTensor *, n_in + 1);
    g_autofree HnContents **contents = g_new0(HnContents *, n_in + 1), **out = g_new0(HnContents *, n_out + 1);
    for (int i = 0; i < n_in; i++) {
        const HnSlot *slot = s->in[i].slot;
        g_ptr_array_add(types, type_of(slot));
        value[i] = slot && slot->constant && slot->tensor->data ? slot->tensor : NULL; /* packed ones are gone */
    }
    for (int k = 0; k < n_out; k++)
        g_ptr_array_add(types, type_of(s->out[k].slot));
    g_ptr_array_add(types, NULL);
    HnInfer x = { .node = &as,
                  .params = s->params,
                  .n_in = n_in,
                  .n_out = n_out,
                  .in = (HnType **)types->pdata,
                  .value = value,
                  .contents = contents,
                  .out = (HnType **)types->pdata + n_in,
                  .out_contents = out };
    hn_op_cost(&x, c);
}

/* All that a record's cost function may look at has a type. */
static gboolean has_types(const HnStep *s)
{
    for (int i = 0; i < s->n_in; i++)
        if (s->in[i].slot && !s->in[i].slot->tensor)
            return FALSE;
    for (int k = 0; k < s->n_out; k++)
        if (s->out[k].slot && !s->out[k].slot->tensor)
            return FALSE;
    return s->n_out > 0 && s->out[0].slot;
}

static void step_cost(const HnStep *s, HnCost *c)
{
    if (!s->node) {
        *c = (HnCost){ 0, (double)(slot_bytes(s->in[0].slot) + slot_bytes(s->out[0].slot)) };
        return;
    }
    if (s->group) {
        *c = (HnCost){ (double)s->group->n * (double)s->out[0].slot->tensor->n, (double)slot_bytes(s->out[0].slot) };
        for (int i = 0; i < s->n_in; i++)
            c->bytes += (double)slot_bytes(s->in[i].slot);
        return;
    }
    node_cost(s, c);
    for (int i = 0; i < s->n_in + s->n_out; i++) { /* what lies in its place already is neither read nor written */
        const HnPort *p = i < s->n_in ? &s->in[i] : &s->out[i - s->n_in];
        if (p->joined)
            c->bytes = MAX(0, c->bytes - 2 * (double)slot_bytes(p->slot));
    }
    for (int i = 0; i < s->n_fused; i++) {
        c->flops += (double)s->out[0].slot->tensor->n;
        if (s->fused_port[i] >= 0)
            c->bytes += (double)slot_bytes(s->in[s->fused_port[i]].slot);
    }
}

#define SHOWN 4 /* operators of a group */

/* All nodes of the model that n stands for are added. */
static void add_parts(const HnStep *s, const HnNode *n, GPtrArray *all)
{
    const GPtrArray *parts = hn_lowered_parts(s->low, n);
    for (guint i = 0; i < parts->len; i++)
        g_ptr_array_add(all, parts->pdata[i]);
}

/* "Mul+Add", "Mul+Tanh+Add+5 more"; most: operators that are named. */
static char *joined_name(const GPtrArray *nodes, guint most)
{
    GString *name = g_string_new(((const HnNode *)nodes->pdata[0])->op_type);
    const guint n = nodes->len, shown = n <= most ? n : most - 1;
    for (guint i = 1; i < shown; i++)
        g_string_append_printf(name, "+%s", ((const HnNode *)nodes->pdata[i])->op_type);
    if (shown < n)
        g_string_append_printf(name, "+%u more", n - shown);
    return g_string_free(name, FALSE);
}

/* The operators of a step, of those computed along all. */
static char *step_name(const HnStep *s)
{
    g_autoptr(GPtrArray) nodes = g_ptr_array_new(), along = g_ptr_array_new();
    for (int i = 0; s->group && i < s->group->n; i++)
        add_parts(s, s->group->node[i], nodes);
    if (!s->group)
        add_parts(s, s->node, nodes);
    for (int i = 0; i < s->n_fused; i++)
        add_parts(s, s->fused[i], along);
    char *name = joined_name(nodes, SHOWN);
    if (along->len == 0)
        return name;
    g_autofree char *first = name, *rest = joined_name(along, along->len);
    return g_strconcat(first, "+", rest, NULL);
}

static gboolean is_int8(const HnStep *s)
{
    for (int i = 0; i < MIN(s->n_in, 2); i++) {
        const HnTensor *t = s->in[i].slot ? s->in[i].slot->tensor : NULL;
        if (t && (t->dtype == HN_I8 || t->dtype == HN_U8))
            return TRUE;
    }
    return FALSE;
}

/* HnStepFn. A node with a plan for each of several shapes gets the mean; known counts the plans meanwhile. */
static void describe(const HnStep *s, int depth, gpointer data)
{
    HnProfile *p = data;
    HnCost c;
    const HnValue *value = !s->node && s->in[0].slot ? s->in[0].slot->value : NULL;
    if (!has_types(s) || !g_hash_table_contains(p->by_key, key_of(s->origin, value)))
        return;
    HnProfileRow *r = p->rows->pdata[row_index(p, s->origin, value, depth)];
    step_cost(s, &c);
    r->flops = (r->flops * r->known + c.flops) / (r->known + 1);
    r->bytes = (r->bytes * r->known + c.bytes) / (r->known + 1);
    if (r->known++)
        return;
    r->integer = is_int8(s);
    if (s->node) {
        g_free(r->op);
        r->op = step_name(s);
    }
    for (guint i = 0; s->refusals && i < s->refusals->len; i++)
        g_ptr_array_add(r->refusals, s->refusals->pdata[i]);
}

/* --- errors ----------------------------------------------------------------------------------------------- */

/* HnTimer.after */
static void judge(const HnStep *s, gpointer data)
{
    HnProfile *p = data;
    gpointer found = s->node ? g_hash_table_lookup(p->by_key, s->origin) : NULL;
    if (!found || !s->kernel || !s->kernel->error)
        return;
    HnProfileRow *r = p->rows->pdata[GPOINTER_TO_INT(found) - 1];
    r->error = fmax(r->error, s->kernel->error(s));
}

static void has_errors(const HnStep *s, int depth, gpointer found)
{
    (void)depth;
    *(gboolean *)found |= s->kernel && s->kernel->error;
}

gboolean hn_profile_errors(HnProfile *p, gboolean (*run)(gpointer data, guint64 i, GError **error), gpointer data,
                           GError **error)
{
    gboolean any = FALSE;
    hn_session_foreach_step(p->session, has_errors, &any);
    if (!any)
        return TRUE;
    p->timer.n = 0;
    p->timer.after = judge;
    p->timer.data = p;
    hn_session_set_timer(p->session, &p->timer);
    gboolean ok = run(data, 0, error);
    hn_session_set_timer(p->session, NULL);
    p->timer.after = NULL;
    p->timer.n = 0;
    return ok;
}

/* --- statistics ------------------------------------------------------------------------------------------- */

static int by_distance(gconstpointer a, gconstpointer b, gpointer median)
{
    double x = fabs((*(Kept *const *)a)->total - *(double *)median);
    double y = fabs((*(Kept *const *)b)->total - *(double *)median);
    return (x > y) - (x < y);
}

static double cell(const Kept *k, guint row)
{
    return row < k->n ? (double)k->ms[row] : 0;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void quantiles(double *x, gsize n, double *p10, double *p90, double *spread)
{
    qsort(x, n, sizeof x[0], compare);
    *p10 = hn_quantile(x, n, 0.1);
    *p90 = hn_quantile(x, n, 0.9);
    *spread = (hn_quantile(x, n, 0.75) - hn_quantile(x, n, 0.25)) / 2;
}

static void times_of_rows(HnProfile *p)
{
    guint n = p->runs->len, most = MAX((guint)(TYPICAL * n), MIN(TYPICAL_LEAST, n));
    g_autofree double *x = g_new(double, n + 1);
    double unused, median = hn_median(p->unprofiled.x, p->unprofiled.n);
    g_ptr_array_sort_with_data(p->runs, by_distance, &median);
    p->typical = most;
    p->nodes_ms = 0;
    for (guint r = 0; r < p->rows->len; r++) {
        HnProfileRow *row = p->rows->pdata[r];
        row->ms = 0;
        for (guint i = 0; i < n; i++) {
            x[i] = cell(p->runs->pdata[i], r);
            row->ms += i < most ? x[i] / most : 0;
        }
        quantiles(x, n, &row->p10, &row->p90, &row->spread);
        row->per_run = (double)row->calls / (double)p->profiled.seen;
        row->with_ms = row->ms;
        p->nodes_ms += row->ms;
    }
    p->outside_ms = 0;
    for (guint i = 0; i < n; i++) {
        x[i] = ((Kept *)p->runs->pdata[i])->outside;
        p->outside_ms += i < most ? x[i] / most : 0;
    }
    quantiles(x, n, &p->outside_p10, &p->outside_p90, &unused);
}

/* The time of sub-graphs goes up to the nodes that hold them, innermost first. */
static void find_parents(HnProfile *p)
{
    int deepest = 0;
    for (guint i = 0; i < p->rows->len; i++) {
        HnProfileRow *r = p->rows->pdata[i];
        const HnValue *value = !r->node && r->key != (gconstpointer)reorder_key ? r->key : NULL;
        const HnGraph *g = r->node ? r->node->graph : value ? value->graph : NULL;
        gpointer found = g && g->holder ? g_hash_table_lookup(p->by_key, g->holder) : NULL;
        r->parent = found ? GPOINTER_TO_INT(found) - 1 : -1;
        deepest = MAX(deepest, r->depth);
    }
    for (int d = deepest; d > 0; d--)
        for (guint i = 0; i < p->rows->len; i++) {
            HnProfileRow *r = p->rows->pdata[i];
            if (r->depth == d && r->parent >= 0)
                ((HnProfileRow *)p->rows->pdata[r->parent])->with_ms += r->with_ms;
        }
}

static void rate(HnProfileRow *r, const HnRoofline *roofline)
{
    r->gflops = r->gbytes = r->limit_ms = NAN;
    if (!r->known || !(r->ms > 0))
        return;
    r->gflops = r->flops * r->per_run / r->ms * 1e-6;
    r->gbytes = r->bytes * r->per_run / r->ms * 1e-6;
    if (roofline)
        r->limit_ms = hn_roofline_ms(roofline, r->flops, r->bytes, r->integer) * r->per_run;
}

void hn_profile_finish(HnProfile *p, const HnRoofline *roofline)
{
    hn_session_foreach_step(p->session, describe, p);
    times_of_rows(p);
    find_parents(p);
    for (guint i = 0; i < p->rows->len; i++)
        rate(p->rows->pdata[i], roofline);
    hn_times_stats(&p->profiled, &p->with);
    hn_times_stats(&p->unprofiled, &p->without);
}
