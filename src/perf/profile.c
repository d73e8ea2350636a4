#include "perf/profile.h"

#include <math.h>
#include <string.h>

#include "base/progress_time.h"
#include "perf/step_facts.h"

#define BLOCK_NS 50000000 /* runs between two looks at the spans */
#define BLOCK_SPANS ((gsize)1 << 15)
#define GROWTH 1.25                   /* of the time measured between two looks at the intervals */
#define LOST_MOST 3                   /* runs in a row without the records that they should have */
#define USUAL 1001                    /* times that tell what an outlier is */
#define FNV_START 0xcbf29ce484222325u /* the hash FNV-1a, of 64 bits, over rows instead of bytes */
#define FNV_PRIME 0x100000001b3u
static const char reorder_key[] = "reorder"; /* its address is the key of steps without node or value */
static const char between_key[] = "between kernels", waiting_key[] = "waiting for the host"; /* of rows of no step */

/* Where a profiled run of the present block is in the list of spans. */
typedef struct {
    guint64 start, end;
    gsize from, to;
    guint kind;        /* of its inputs */
    double unprofiled; /* ms of the run beside it */
    double marked;     /* ms of another one beside it, and where they went on the device; runs is 0: there was none */
    HnDeviceTimes there;
    GArray *records, *work;                 /* of a fourth run (hn_session_device_records()); NULL: there was none */
    guint64 origin, traced_from, traced_to; /* ticks, of the same: when records began, and the run */
} Part;

static void part_clear(gpointer data)
{
    Part *part = data;
    g_clear_pointer(&part->records, g_array_unref);
    g_clear_pointer(&part->work, g_array_unref);
}

static void row_free(gpointer data)
{
    HnProfileRow *r = data;
    g_free(r->name);
    g_free(r->op);
    g_ptr_array_unref(r->refusals);
    g_strfreev(r->in);
    g_strfreev(r->out);
    g_free(r);
}

static void run_free(gpointer data)
{
    HnProfileRun *r = data;
    g_free(r->spans);
    g_free(r->records);
    g_free(r);
}

static void call_free(gpointer data)
{
    HnProfileCall *c = data;
    g_strfreev(c->in);
    g_strfreev(c->out);
    g_free(c);
}

void hn_profile_init(HnProfile *p, HnSession *session)
{
    *p = (HnProfile){ .session = session, .rng = hn_rng(0) };
    hn_ticks_start(&p->timer, &p->ticks);
    p->rows = g_ptr_array_new_with_free_func(row_free);
    p->by_key = g_hash_table_new(NULL, NULL);
    p->runs = g_ptr_array_new_with_free_func(g_free);
    p->traces = g_ptr_array_new_with_free_func(run_free);
    p->calls = g_hash_table_new_full(NULL, NULL, NULL, call_free);
    hn_outliers_init(&p->outliers, 0);
    hn_times_init(&p->profiled, 0);
    hn_times_init(&p->unprofiled, 0);
    hn_times_init(&p->marked_ms, 0);
    hn_times_init(&p->traced_ms, 0);
    hn_device_work_init(&p->device_work);
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
    g_hash_table_unref(p->calls);
    hn_outliers_clear(&p->outliers);
    hn_times_clear(&p->profiled);
    hn_times_clear(&p->unprofiled);
    hn_times_clear(&p->marked_ms);
    hn_times_clear(&p->traced_ms);
    hn_device_work_clear(&p->device_work);
    g_free(p->no_records);
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
    *r = (HnProfileRow){ .key = key, .node = node, .value = value, .depth = depth, .parent = -1, .error = NAN };
    r->name = g_strdup(node ? hn_node_label(node) : value ? value->name : reorder_key);
    r->op = g_strdup(node ? node->op_type : reorder_key);
    r->refusals = g_ptr_array_new();
    g_ptr_array_add(p->rows, r);
    g_hash_table_insert(p->by_key, (gpointer)key, GINT_TO_POINTER(p->rows->len));
    return (int)p->rows->len - 1;
}

/* Of what is no step. */
static int rest_index(HnProfile *p, const char *name)
{
    gpointer found = g_hash_table_lookup(p->by_key, name);
    if (found)
        return GPOINTER_TO_INT(found) - 1;
    HnProfileRow *r = g_new0(HnProfileRow, 1);
    *r = (HnProfileRow){ .key = name, .parent = -1, .error = NAN, .place = HN_ROW_REST };
    r->name = g_strdup(name);
    r->op = g_strdup(name);
    r->refusals = g_ptr_array_new();
    g_ptr_array_add(p->rows, r);
    g_hash_table_insert(p->by_key, (gpointer)name, GINT_TO_POINTER(p->rows->len));
    return (int)p->rows->len - 1;
}

const HnProfileRow *hn_profile_row(const HnProfile *p, const HnSpan *s)
{
    gpointer found = g_hash_table_lookup(p->by_key, key_of(s->node, s->value));
    return found ? p->rows->pdata[GPOINTER_TO_INT(found) - 1] : NULL;
}

/* --- a run's spans ---------------------------------------------------------------------------------------- */

const HnProfileCall *hn_profile_call(const HnProfile *p, const HnSpan *s)
{
    const HnProfileCall *c = g_hash_table_lookup(p->calls, s->step);
    return c && c->node == s->node ? c : NULL;
}

/* Of a row in one run. */
typedef struct {
    guint64 ticks; /* own */
    guint calls;
} Own;

/* Own times of rows; returns those of the main graph's steps together, in ticks. A step of a sub-graph comes before the
 * step that holds it. kind: a hash that the sequence of steps goes into */
static guint64 add_spans(HnProfile *p, const HnSpan *spans, gsize n, GArray *own, guint64 *kind)
{
    g_autoptr(GArray) inside = g_array_new(FALSE, TRUE, sizeof(guint64)); /* by depth: steps not yet claimed */
    guint64 sum = 0;
    for (gsize i = 0; i < n; i++) {
        const HnSpan *s = &spans[i];
        guint64 took = s->end - s->start;
        int at = row_index(p, s->node, s->value, s->depth);
        HnProfileRow *row = p->rows->pdata[at];
        *kind = (*kind ^ (guint64)at) * FNV_PRIME;
        if (row->calls++ == 0 && s->moves) {
            g_free(row->op);
            row->op = g_strdup("copy");
        }
        row->kernel = s->kernel;
        row->launches += s->launches;
        row->place = s->moves ? HN_ROW_COPY : s->device ? HN_ROW_DEVICE : HN_ROW_HOST;
        if ((guint)at >= own->len)
            g_array_set_size(own, (guint)at + 1);
        if ((guint)s->depth + 2 > inside->len)
            g_array_set_size(inside, (guint)s->depth + 2);
        guint64 *held = &g_array_index(inside, guint64, s->depth + 1);
        g_array_index(own, Own, at).ticks += took - MIN(took, *held);
        g_array_index(own, Own, at).calls++;
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

/* Milliseconds, with what the steps of the clock hide filled in at random: quantiles of times of few steps would be
 * whole steps, and not add up. */
static double to_ms(HnProfile *p, double ticks)
{
    return (ticks * p->ticks.ns + (hn_rng_double(&p->rng) - 0.5) * p->ticks.step) * 1e-6;
}

static int row_of_work(const HnProfile *p, const HnStepWork *w)
{
    gpointer found = g_hash_table_lookup(p->by_key, key_of(w->node, w->value));
    return found ? GPOINTER_TO_INT(found) - 1 : -1;
}

static void keep_records(const HnProfile *p, const Part *part, HnProfileRun *r)
{
    const guint n = part->records->len;
    r->traced_start = part->traced_from;
    r->traced_end = part->traced_to;
    r->origin = part->origin;
    r->n_records = n;
    r->records = g_new(HnProfileRecord, n + 1);
    for (guint i = 0; i < n; i++)
        r->records[i] = (HnProfileRecord){ g_array_index(part->records, HnDeviceRecord, i), -1 };
    for (guint k = 0; k < part->work->len; k++) {
        const HnStepWork *w = &g_array_index(part->work, HnStepWork, k);
        for (guint i = w->from; i < w->to; i++)
            r->records[i].row = row_of_work(p, w);
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
    *r = (HnProfileRun){ .start = part->start,
                         .end = part->end,
                         .n = n,
                         .spans = g_memdup2(p->timer.spans + part->from, n * sizeof(HnSpan)) };
    if (part->records)
        keep_records(p, part, r);
    put(p->traces, at, r, run_free);
}

/* Why there are no records; takes the text. */
static void note_none(HnProfile *p, char *why)
{
    g_free(p->no_records);
    p->no_records = why;
}

/* The same of a run that should have some. Too often in a row, and there are no more such runs. */
static void note_lost(HnProfile *p, char *why)
{
    note_none(p, why);
    p->lost++;
    p->trace_ended |= ++p->lost_in_row >= LOST_MOST;
}

/* Rows of the device take what records say. FALSE: the run had other steps. */
static gboolean take_records(HnProfile *p, const Part *part, const HnRowPlace *places, guint n, double *ms)
{
    const GArray *work = part->work;
    g_autofree int *rows = g_new(int, work->len + 1);
    for (guint k = 0; k < work->len; k++) {
        rows[k] = row_of_work(p, &g_array_index(work, HnStepWork, k));
        if (rows[k] < 0 || (guint)rows[k] >= n || (places[rows[k]] != HN_ROW_DEVICE && places[rows[k]] != HN_ROW_COPY))
            return FALSE;
    }
    for (guint i = 0; i < n; i++)
        if (places[i] == HN_ROW_DEVICE || places[i] == HN_ROW_COPY)
            ms[i] = 0;
    for (guint k = 0; k < work->len; k++) {
        const HnStepWork *w = &g_array_index(work, HnStepWork, k);
        for (guint i = w->from; i < w->to; i++) {
            const HnDeviceRecord *r = &g_array_index(part->records, HnDeviceRecord, i);
            ms[rows[k]] += (r->end - r->start) * 1e-6 / w->shared_by;
        }
    }
    hn_device_work_add(&p->device_work, part->records, work, rows);
    return TRUE;
}

/* The run's rows are made those of the run with marks between segments. */
static void settle(HnProfile *p, const Part *part, const GArray *own, double *ms, HnRowRun *k)
{
    const guint n = own->len;
    g_autofree guint *calls = g_new0(guint, n + 1);
    g_autofree HnRowPlace *places = g_new0(HnRowPlace, n + 1);
    const int between = rest_index(p, between_key), waiting = rest_index(p, waiting_key); /* below n: reserved */
    HnDeviceRest rest;
    for (guint i = 0; i < n; i++) {
        calls[i] = g_array_index(own, Own, i).calls;
        places[i] = ((const HnProfileRow *)p->rows->pdata[i])->place;
    }
    k->by_records = part->records && take_records(p, part, places, n, ms);
    if (k->by_records)
        p->traced++;
    else if (part->records)
        note_lost(p, g_strdup("a run had other steps than the one beside it"));
    hn_device_rows(ms, calls, places, n, &part->there, part->marked, &rest);
    ms[between] = rest.between;
    ms[waiting] = rest.waiting;
    k->profiled = part->marked;
    k->outside = rest.outside;
    p->mark_ms += rest.mark;
    p->settled++;
}

/* Room for all rows that are known, those of no step included where a device has them. */
static void reserve_rows(HnProfile *p, const Part *part, GArray *own)
{
    if (part->there.runs == 0)
        return;
    rest_index(p, between_key);
    rest_index(p, waiting_key);
    g_array_set_size(own, MAX(own->len, p->rows->len));
    p->marked++;
    p->segments += part->there.segments;
    p->recorded += part->there.recorded;
    hn_times_add(&p->marked_ms, part->marked);
}

static void add_run(HnProfile *p, const Part *part)
{
    g_autoptr(GArray) own = g_array_new(FALSE, TRUE, sizeof(Own));
    gsize n = part->to - part->from;
    double total = to_ms(p, (double)(part->end - part->start));
    guint64 kind = (FNV_START ^ part->kind) * FNV_PRIME, sum = add_spans(p, p->timer.spans + part->from, n, own, &kind);
    hn_times_add(&p->profiled, total);
    p->spans += (double)n;
    if (p->trace_spans)
        keep_trace(p, part);
    reserve_rows(p, part, own);
    gint64 at = place(&p->rng, p->profiled.seen, p->runs->len, HN_PROFILE_KEPT);
    if (at < 0)
        return;
    HnRowRun *k = g_malloc0(sizeof *k + own->len * sizeof k->ms[0]);
    g_autofree double *ms = g_new0(double, own->len + 1);
    k->kind = kind;
    k->number = p->profiled.seen;
    k->profiled = total;
    k->unprofiled = part->unprofiled;
    k->outside = to_ms(p, (double)(part->end - part->start) - (double)sum);
    k->n = own->len;
    for (guint i = 0; i < own->len; i++)
        ms[i] = to_ms(p, (double)g_array_index(own, Own, i).ticks);
    if (part->there.runs > 0)
        settle(p, part, own, ms, k);
    for (guint i = 0; i < own->len; i++)
        k->ms[i] = (float)ms[i];
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

/* What happened in a run that took very long is asked right behind it. */
static void look_at(HnProfile *p, double ms)
{
    if (ms * 1e6 > p->outliers.limit_ns)
        hn_outliers_add(&p->outliers, p->runs_made, ms * 1e6);
    p->runs_made++;
}

static gboolean run_profiled(HnProfile *p, const HnProfileOptions *o, guint64 i, gsize spans, Part *part,
                             GError **error)
{
    HnTimer *t = &p->timer;
    reserve_spans(t, spans);
    part->from = t->n;
    hn_session_set_timer(p->session, t);
    part->start = hn_timer_now(t);
    gboolean ok = o->run(o->data, i, error);
    part->end = hn_timer_now(t);
    hn_session_set_timer(p->session, NULL);
    part->to = t->n;
    if (!p->on_device) /* there it is a run of another kind */
        look_at(p, (double)(part->end - part->start) * p->ticks.ns * 1e-6);
    return ok;
}

static gboolean run_unprofiled(HnProfile *p, const HnProfileOptions *o, guint64 i, Part *part, GError **error)
{
    hn_times_reserve(&p->unprofiled);
    guint64 start = hn_timer_now(&p->timer);
    if (!o->run(o->data, i, error))
        return FALSE;
    part->unprofiled = to_ms(p, (double)(hn_timer_now(&p->timer) - start));
    hn_times_add(&p->unprofiled, part->unprofiled);
    look_at(p, part->unprofiled);
    return TRUE;
}

/* On a device with a clock: one more run, with marks between segments. */
static gboolean run_marked(HnProfile *p, const HnProfileOptions *o, guint64 i, Part *part, GError **error)
{
    if (!p->on_device)
        return TRUE;
    hn_session_time_device(p->session, TRUE);
    hn_times_reserve(&p->marked_ms);
    const guint64 start = hn_timer_now(&p->timer);
    const gboolean ok = o->run(o->data, i, error);
    part->marked = to_ms(p, (double)(hn_timer_now(&p->timer) - start));
    const gboolean told = ok && hn_session_device_times(p->session, &part->there, error);
    hn_session_time_device(p->session, FALSE);
    return told;
}

/* One more run, of which the device keeps records. What goes wrong with these is told, and no error. */
static gboolean run_traced(HnProfile *p, const HnProfileOptions *o, guint64 i, Part *part, GError **error)
{
    char *why = NULL;
    if (!p->on_device || p->trace_ended)
        return TRUE;
    part->origin = hn_timer_now(&p->timer);
    if (!hn_session_trace_device(p->session, &why)) {
        note_none(p, why);
        p->trace_ended = TRUE;
        return TRUE;
    }
    part->records = g_array_new(FALSE, FALSE, sizeof(HnDeviceRecord));
    part->work = g_array_new(FALSE, FALSE, sizeof(HnStepWork));
    hn_times_reserve(&p->traced_ms);
    part->traced_from = hn_timer_now(&p->timer);
    const gboolean ok = o->run(o->data, i, error);
    part->traced_to = hn_timer_now(&p->timer);
    const gboolean all = hn_session_device_records(p->session, part->records, part->work, &why);
    if (ok && all)
        p->lost_in_row = 0;
    else
        part_clear(part);
    if (ok && !all)
        note_lost(p, why);
    else
        g_free(why);
    if (ok)
        hn_times_add(&p->traced_ms, to_ms(p, (double)(part->traced_to - part->traced_from)));
    return ok;
}

/* A profiled and an unprofiled run of the i-th inputs. spans: of a run before */
static gboolean run_pair(HnProfile *p, const HnProfileOptions *o, guint64 i, gsize spans, Part *part, GError **error)
{
    gboolean first = i % 2 != 0;
    part->kind = o->kind ? o->kind(o->data, i) : 0;
    if (first && !run_profiled(p, o, i, spans, part, error))
        return FALSE;
    if (!run_unprofiled(p, o, i, part, error) || !run_marked(p, o, i, part, error) || !run_traced(p, o, i, part, error))
        return FALSE;
    return first || run_profiled(p, o, i, spans, part, error);
}

/* Pairs of runs until the block is long enough or pair number `last` is reached; *i counts pairs. */
static gboolean block(HnProfile *p, const HnProfileOptions *o, guint64 *i, guint64 last, const gint *cancel,
                      GError **error)
{
    g_autoptr(GArray) parts = g_array_new(FALSE, FALSE, sizeof(Part));
    g_array_set_clear_func(parts, part_clear);
    guint64 start = hn_now_ns();
    gboolean ok;
    p->timer.n = 0;
    gboolean full;
    hn_outliers_mark(&p->outliers);
    do {
        Part part = { 0 };
        const Part *before = parts->len ? &g_array_index(parts, Part, parts->len - 1) : NULL;
        ok = run_pair(p, o, *i, before ? before->to - before->from : p->timer.room / 4, &part, error);
        g_array_append_val(parts, part);
        full = ++*i >= last || hn_now_ns() - start >= BLOCK_NS || p->timer.n >= BLOCK_SPANS;
    } while (ok && !full && !(cancel && g_atomic_int_get(cancel)));
    for (guint k = 0; ok && k < parts->len; k++)
        add_run(p, &g_array_index(parts, Part, k));
    if (!o->kind)
        hn_outliers_expect(&p->outliers, hn_times_usual(&p->unprofiled, USUAL) * 1e6);
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
    p->trace_ended = !o->records;
    p->on_device = hn_session_time_device(p->session, TRUE);
    hn_session_time_device(p->session, FALSE);
    p->first = hn_timer_now(&p->timer);
    for (;;) {
        double passed = (double)(hn_now_ns() - start) * 1e-9;
        if (enough(p, o, pairs, passed, &look))
            return TRUE;
        if (o->runs)
            hn_progress_tell(progress, "profiling", pairs, o->runs);
        else
            hn_progress_tell_time(progress, "profiling", passed, o->seconds);
        if (cancel && g_atomic_int_get(cancel))
            return pairs > 0 || !hn_progress_stop(progress, error);
        GError *failure = NULL;
        if (!warm_block(p, o, &pairs, last, cancel, &failure) && (p->profiled.n == 0 || !hn_progress_cut(&failure))) {
            g_propagate_error(error, failure);
            return FALSE;
        }
    }
}

/* --- what rows are ---------------------------------------------------------------------------------------- */

static void keep_call(HnProfile *p, const HnStep *s, const HnCost *cost)
{
    HnProfileCall *c = g_new0(HnProfileCall, 1);
    *c = (HnProfileCall){ s->origin, hn_step_shapes(s->in, s->n_in), hn_step_shapes(s->out, s->n_out), *cost };
    g_hash_table_insert(p->calls, (gpointer)s, c);
}

/* HnStepFn. A node with a plan for each of several shapes gets the mean; known counts the plans meanwhile. */
static void describe(const HnStep *s, int depth, gpointer data)
{
    HnProfile *p = data;
    HnCost c;
    const HnValue *value = !s->node && s->in[0].slot ? s->in[0].slot->value : NULL;
    if (!hn_step_has_types(s) || !g_hash_table_contains(p->by_key, key_of(s->origin, value)))
        return;
    HnProfileRow *r = p->rows->pdata[row_index(p, s->origin, value, depth)];
    hn_step_cost(s, &c);
    double made = s->kernel && s->kernel->products ? c.flops * s->kernel->products(s) : c.flops;
    if (p->trace_spans)
        keep_call(p, s, &c);
    r->flops = (r->flops * r->known + c.flops) / (r->known + 1);
    r->made = (r->made * r->known + made) / (r->known + 1);
    r->bytes = (r->bytes * r->known + c.bytes) / (r->known + 1);
    if (r->known++)
        return;
    r->integer = hn_step_is_int8(s);
    r->half = hn_step_is_half(s);
    r->in = hn_step_shapes(s->in, s->n_in);
    r->out = hn_step_shapes(s->out, s->n_out);
    if (s->node) {
        g_free(r->op);
        r->op = hn_step_operators(s);
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

/* Times by records and times by marks are not mixed: what fewer runs have goes. */
static void choose_runs(HnProfile *p)
{
    guint n = 0;
    for (guint i = 0; i < p->runs->len; i++)
        n += ((const HnRowRun *)p->runs->pdata[i])->by_records;
    p->by_records = n > 0 && 2 * n >= p->runs->len;
    for (guint i = p->runs->len; i > 0; i--)
        if (((const HnRowRun *)p->runs->pdata[i - 1])->by_records != p->by_records)
            g_ptr_array_remove_index(p->runs, i - 1);
}

/* By the device's clock alone: kernels, and copies that there are records of. */
static gboolean is_exact(const HnProfile *p, guint row)
{
    const HnRowPlace place = ((const HnProfileRow *)p->rows->pdata[row])->place;
    return place == HN_ROW_DEVICE || (p->by_records && place == HN_ROW_COPY);
}

/* What marks between segments make a run longer by is the host's: no kernel gets shorter without them. It is taken off
 * all else, as much in each run as in the median one. */
static void take_marks_off(HnProfile *p)
{
    g_autofree double *more = g_new(double, p->runs->len + 1);
    for (guint i = 0; i < p->runs->len; i++) {
        const HnRowRun *k = p->runs->pdata[i];
        more[i] = k->profiled - k->unprofiled;
    }
    const double most = p->runs->len > 0 ? fmax(hn_median(more, p->runs->len), 0) : 0;
    for (guint i = 0; i < p->runs->len; i++) {
        HnRowRun *k = p->runs->pdata[i];
        double rest = k->outside;
        for (guint r = 0; r < k->n; r++)
            rest += is_exact(p, r) ? 0 : (double)k->ms[r];
        const double off = fmin(most, rest), left = rest > 0 ? 1 - off / rest : 1;
        for (guint r = 0; r < k->n; r++)
            k->ms[r] *= is_exact(p, r) ? 1 : (float)left;
        k->outside *= left;
        k->profiled -= off;
    }
}

static void times_of_rows(HnProfile *p)
{
    HnRowTimes t;
    choose_runs(p);
    if (p->settled > 0)
        take_marks_off(p);
    hn_row_times(p->runs, p->rows->len, p->ticks.step * 1e-6, &t);
    p->nodes_ms = 0;
    for (guint i = 0; i < p->rows->len; i++) {
        HnProfileRow *row = p->rows->pdata[i];
        row->ms = row->with_ms = t.rows[i].ms;
        row->p10 = t.rows[i].p10;
        row->p90 = t.rows[i].p90;
        row->spread = t.rows[i].spread;
        row->lo = t.rows[i].lo;
        row->hi = t.rows[i].hi;
        row->level = t.rows[i].level;
        row->per_run = (double)row->calls / (double)p->profiled.seen;
        p->nodes_ms += row->ms;
    }
    const HnRowTime *outside = &t.rows[p->rows->len];
    p->outside_ms = outside->ms;
    p->outside_p10 = outside->p10;
    p->outside_p90 = outside->p90;
    p->total_ms = t.total;
    p->unprofiled_ms = t.unprofiled;
    p->disturbed_ms = t.disturbed;
    p->overhead = t.scale > 0 ? 1 / t.scale - 1 : NAN;
    p->kinds = t.kinds;
    hn_row_times_clear(&t);
}

static void find_places(HnProfile *p)
{
    const guint n = p->rows->len;
    g_autofree double *lo = g_new(double, n + 1), *hi = g_new(double, n + 1);
    g_autofree HnRowPlaces *places = g_new(HnRowPlaces, n + 1);
    for (guint i = 0; i < n; i++) {
        const HnProfileRow *row = p->rows->pdata[i];
        lo[i] = row->lo;
        hi[i] = row->hi;
    }
    hn_row_places(lo, hi, n, places);
    for (guint i = 0; i < n; i++)
        ((HnProfileRow *)p->rows->pdata[i])->places = places[i];
}

/* The time of sub-graphs goes up to the nodes that hold them, innermost first. */
static void find_parents(HnProfile *p)
{
    int deepest = 0;
    for (guint i = 0; i < p->rows->len; i++) {
        HnProfileRow *r = p->rows->pdata[i];
        const HnGraph *g = r->node ? r->node->graph : r->value ? r->value->graph : NULL;
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

/* roofline: of where the row's steps are */
static void rate(HnProfileRow *r, const HnRoofline *roofline)
{
    const HnRate rate = r->integer ? HN_RATE_INT8 : r->half ? HN_RATE_HALF : HN_RATE_F32;
    r->gflops = r->gbytes = r->limit_ms = NAN;
    r->bound = HN_BOUND_NONE;
    if (!r->known || !(r->ms > 0))
        return;
    r->gflops = r->flops * r->per_run / r->ms * 1e-6;
    r->gbytes = r->bytes * r->per_run / r->ms * 1e-6;
    if (!roofline)
        return;
    r->bound = hn_roofline_limit(roofline, r->made, r->bytes, rate, r->ms / r->per_run, &r->limit_ms);
    r->limit_ms = fmin(r->limit_ms * r->per_run, r->ms);
}

void hn_profile_finish(HnProfile *p, const HnRoofline *roofline, const HnRoofline *there)
{
    hn_session_foreach_step(p->session, describe, p);
    times_of_rows(p);
    find_places(p);
    find_parents(p);
    for (guint i = 0; i < p->rows->len; i++) {
        HnProfileRow *r = p->rows->pdata[i];
        rate(r, r->place == HN_ROW_DEVICE ? there : r->place == HN_ROW_HOST ? roofline : NULL);
    }
    hn_times_stats(&p->profiled, &p->with);
    hn_times_stats(&p->unprofiled, &p->without);
    if (isfinite(p->outliers.limit_ns)) /* it was looked for them */
        hn_outliers_finish(&p->outliers, p->without.p50 * 1e6);
}
