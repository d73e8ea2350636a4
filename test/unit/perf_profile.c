/* Profiles of small models: what adds up, who is inside whom, what costs what, when memory is in use. */
#include <glib/gstdio.h>

#include "perf/memory_timeline.h"
#include "perf/trace.h"
#include "perf/weight_stats.h"
#include "run_model.h"

typedef struct {
    HnSession *s;
    GPtrArray *in;
} Runner;

static gboolean run_once(gpointer data, G_GNUC_UNUSED guint64 i, GError **error)
{
    Runner *r = data;
    HnTensor *out[4] = { NULL };
    if (!hn_session_run(r->s, (HnTensor *const *)r->in->pdata, out, error))
        return FALSE;
    for (int k = 0; k < 4; k++)
        hn_tensor_unref(out[k]);
    return TRUE;
}

static void profile(HnProfile *p, HnSession *s, GPtrArray *in, guint64 runs, gsize trace_spans, const HnRoofline *roof)
{
    g_autoptr(GError) error = NULL;
    Runner r = { s, in };
    HnProfileOptions o = { .run = run_once, .data = &r, .runs = runs, .trace_spans = trace_spans };
    hn_profile_init(p, s);
    g_assert_true(hn_profile_measure(p, &o, NULL, &error));
    g_assert_no_error(error);
    hn_profile_finish(p, roof, NULL);
}

static const HnProfileRow *row_named(const HnProfile *p, const char *name)
{
    for (guint i = 0; i < p->rows->len; i++)
        if (g_str_equal(((HnProfileRow *)p->rows->pdata[i])->name, name))
            return p->rows->pdata[i];
    g_error("no row '%s'", name);
}

static void test_flat(void)
{
    HnRoofline roof = { .threads = 1, .flops = 1e12, .int8_ops = 4e12 };
    for (int k = 0; k < HN_ROOFLINE_TIERS; k++) {
        roof.tiers[k].bytes = 100 * (k + 1);
        roof.tiers[k].bytes_per_s = 1e11 / (k + 1);
    }
    g_autoptr(HnModel) m = test_model("opset 17 graph g(%x:f32[8,16]) -> (%y) { %1 = MatMul(%x, w:f32[16,4]) "
                                      "%2 = Exp(%1) %y = Softmax(%2) axis=1 }");
    g_autoptr(HnSession) s = test_session(m, &hn_backend_ref, &(HnSessionOptions){ .threads = 1 });
    g_autoptr(GPtrArray) in = test_inputs(s, 1);
    HnProfile p;
    profile(&p, s, in, 200, 0, &roof);
    g_assert_cmpuint(p.rows->len, ==, 3);
    g_assert_cmpuint(p.profiled.seen, ==, 200);
    g_assert_cmpuint(p.unprofiled.seen, ==, 200);
    g_assert_cmpfloat(p.spans, ==, 600);
    double sum = 0;
    for (guint i = 0; i < p.rows->len; i++) {
        const HnProfileRow *r = p.rows->pdata[i];
        sum += r->ms;
        g_assert_cmpuint(r->calls, ==, 200);
        g_assert_cmpfloat(r->per_run, ==, 1);
        g_assert_true(r->ms > 0 && r->p10 <= r->ms && r->ms <= r->p90 && r->spread >= 0 && r->parent == -1 &&
                      r->kernel == NULL);
    }
    g_assert_cmpfloat_with_epsilon(sum, p.nodes_ms, 1e-9);
    g_assert_true(p.outside_ms > 0);
    g_assert_cmpfloat_with_epsilon(p.nodes_ms + p.outside_ms, p.total_ms, 1e-9);
    g_assert_cmpfloat_with_epsilon(p.unprofiled_ms, p.without.p50, 1e-9); /* all runs were kept, and are of one kind */
    g_assert_cmpuint(p.kinds, ==, 1);
    g_assert_true(p.overhead >= 0);
    g_assert_cmpfloat_with_epsilon(p.total_ms / p.unprofiled_ms, 1, 0.5);
    const HnProfileRow *product = p.rows->pdata[0];
    g_assert_cmpstr(product->op, ==, "MatMul");
    g_assert_cmpfloat(product->flops, ==, 2 * 8 * 16 * 4);
    g_assert_cmpfloat(product->bytes, ==, 4 * (8 * 16 + 16 * 4 + 8 * 4));
    /* 896 bytes go at the pace of the last tier: 1e11 / 6; 1024 operations take less */
    g_assert_cmpfloat_with_epsilon(product->limit_ms, 896 * 6 * 1e-8, 1e-12);
    g_assert_cmpint(product->bound, ==, HN_BOUND_MEMORY);
    hn_profile_clear(&p);
}

/* Winograd's convolution rounds more than a sum, but not much; strict math has nothing to tell. */
static void test_errors(void)
{
    g_autoptr(HnModel) m = test_model("opset 17 graph g(%x:f32[1,64,24,25], %r:f32[1,64,24,25]) -> (%y) { "
                                      "%1 = Conv(%x, w:f32[64,64,3,3], b:f32[64]) pads=[1,1,1,1] %2 = HardSwish(%1) "
                                      "%3 = Add(%2, %r) %y = Relu(%3) }");
    for (int strict = 0; strict < 2; strict++) {
        g_autoptr(GError) error = NULL;
        g_autoptr(HnSession) s = test_session(
            m, &hn_backend_cpu, &(HnSessionOptions){ .threads = 1, .strict_math = strict, .prefer = "cpu.winograd" });
        g_autoptr(GPtrArray) in = test_inputs(s, 1);
        HnProfile p;
        profile(&p, s, in, 5, 0, NULL);
        g_assert_true(hn_profile_errors(&p, run_once, &(Runner){ s, in }, &error));
        double worst = -1;
        for (guint i = 0; i < p.rows->len; i++)
            worst = fmax(worst, ((HnProfileRow *)p.rows->pdata[i])->error);
        g_assert_true(strict ? worst == -1 : worst > 1e-9 && worst < 1e-5);
        hn_profile_clear(&p);
    }
}

/* Winograd's algorithm makes fewer products than the operator has: its limit is that of those it makes. */
static void test_fewer_products(void)
{
    const HnRoofline roof = { .threads = 1, .flops = 1e14, .int8_ops = 1e14, .tiers = { { 1, 1e18 } } };
    g_autoptr(HnModel) m = test_model("opset 17 graph g(%x:f32[1,64,24,24]) -> (%y) { "
                                      "%y = Conv(%x, w:f32[64,64,3,3]) pads=[1,1,1,1] }");
    for (int strict = 0; strict < 2; strict++) {
        g_autoptr(HnSession) s = test_session(
            m, &hn_backend_cpu, &(HnSessionOptions){ .threads = 1, .strict_math = strict, .prefer = "cpu.winograd" });
        g_autoptr(GPtrArray) in = test_inputs(s, 1);
        HnProfile p;
        profile(&p, s, in, 5, 0, &roof);
        const HnProfileRow *conv = row_named(&p, "y");
        const double part = strict ? 1 : conv->made / conv->flops;
        g_assert_cmpfloat(conv->flops, ==, 2.0 * 9 * 64 * 64 * 24 * 24);
        g_assert_true(part == 1 ? strict : fabs(part - 36.0 / 144) < 1e-9 || fabs(part - 16.0 / 36) < 1e-9);
        g_assert_cmpfloat_with_epsilon(conv->limit_ms, conv->flops * part / 1e14 * 1e3, 1e-9);
        g_assert_cmpint(conv->bound, ==, HN_BOUND_COMPUTE);
        hn_profile_clear(&p);
    }
}

static guint kind_of_pair(gpointer data, guint64 i)
{
    (void)data;
    return i % 3 == 0;
}

/* Runs of two kinds, by what the caller says and by what ran. */
static void test_kinds(void)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(HnModel) m = test_model("opset 17 graph g(%x:f32[64]) -> (%y) { %1 = Neg(%x) %y = Exp(%1) }");
    g_autoptr(HnSession) s = test_session(m, &hn_backend_ref, &(HnSessionOptions){ .threads = 1 });
    g_autoptr(GPtrArray) in = test_inputs(s, 1);
    Runner r = { s, in };
    HnProfile p;
    hn_profile_init(&p, s);
    const HnProfileOptions o = { .run = run_once, .data = &r, .kind = kind_of_pair, .runs = 30 };
    g_assert_true(hn_profile_measure(&p, &o, NULL, &error));
    hn_profile_finish(&p, NULL, NULL);
    g_assert_cmpuint(p.kinds, ==, 2);
    g_assert_true(isinf(p.outliers.limit_ns)); /* which run takes long depends on its kind */
    hn_profile_clear(&p);
}

static gboolean run_in_turn(gpointer data, guint64 i, GError **error)
{
    return run_once((Runner *)data + i % 2, i, error);
}

/* Inputs of the same shapes, with which other nodes run. */
static void test_branches(void)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(HnModel) m =
        test_model("opset 17 graph g(%c:bool, %x:f32[64]) -> (%y) { %y = If(%c) "
                   "then_branch=graph() -> (%a) { %a = Exp(%x) } else_branch=graph() -> (%b) { %b = Sin(%x) } }");
    g_autoptr(HnSession) s = test_session(m, &hn_backend_ref, &(HnSessionOptions){ .threads = 1 });
    g_autoptr(GPtrArray) yes = test_inputs(s, 1), no = test_inputs(s, 1);
    hn_tensor_set_f64(yes->pdata[0], 0, 1);
    hn_tensor_set_f64(no->pdata[0], 0, 0);
    HnProfile p;
    hn_profile_init(&p, s);
    Runner r[2] = { { s, yes }, { s, no } };
    g_assert_true(
        hn_profile_measure(&p, &(HnProfileOptions){ .run = run_in_turn, .data = r, .runs = 40 }, NULL, &error));
    hn_profile_finish(&p, NULL, NULL);
    g_assert_cmpuint(p.kinds, ==, 2);
    g_assert_cmpfloat(row_named(&p, "a")->per_run, ==, 0.5);
    g_assert_true(row_named(&p, "a")->ms > 0 && row_named(&p, "b")->ms > 0);
    hn_profile_clear(&p);
}

static void test_inner(void)
{
    g_autoptr(HnModel) m = test_model(
        "opset 17 graph g(%x:f32[64]) -> (%y) { %y = Loop(m:i64={5}, -, %x) "
        "body=graph(%i:i64, %c:bool, %s:f32[64]) -> (%go, %next) { %go = Identity(%c) %next = Add(%s, %x) } }");
    g_autoptr(HnSession) s = test_session(m, &hn_backend_ref, &(HnSessionOptions){ .threads = 1 });
    g_autoptr(GPtrArray) in = test_inputs(s, 1);
    HnProfile p;
    profile(&p, s, in, 50, 0, NULL);
    const HnProfileRow *loop = row_named(&p, "y"), *add = row_named(&p, "next");
    g_assert_cmpint(loop->depth, ==, 0);
    g_assert_cmpint(add->depth, ==, 1);
    g_assert_true(p.rows->pdata[add->parent] == loop);
    g_assert_cmpuint(add->calls, ==, 250);
    g_assert_cmpfloat(add->per_run, ==, 5);
    g_assert_cmpfloat(add->flops, ==, 64);
    g_assert_true(isnan(add->limit_ms));
    double inside = 0;
    for (guint i = 0; i < p.rows->len; i++) {
        const HnProfileRow *r = p.rows->pdata[i];
        inside += r->depth == 1 ? r->ms : 0;
    }
    /* nothing is counted twice */
    g_assert_cmpfloat_with_epsilon(loop->with_ms, loop->ms + inside, 1e-9);
    g_assert_cmpfloat_with_epsilon(loop->with_ms, p.nodes_ms, 1e-9);
    hn_profile_clear(&p);
}

/* The list of spans is full: what is inside counts as the holder's, and that is said. */
static void test_full(void)
{
    g_autoptr(HnModel) m = test_model("opset 17 graph g(%x:f32[1]) -> (%y) { %y = Neg(%x) }");
    g_autoptr(HnSession) s = test_session(m, &hn_backend_ref, &(HnSessionOptions){ .threads = 1 });
    g_autoptr(GPtrArray) in = test_inputs(s, 1);
    g_autoptr(GError) error = NULL;
    Runner r = { s, in };
    HnTimer t = { .n = HN_TIMER_SPANS, .room = HN_TIMER_SPANS, .spans = g_new0(HnSpan, HN_TIMER_SPANS) };
    hn_session_set_timer(s, &t);
    g_assert_true(run_once(&r, 0, &error));
    g_assert_cmpuint(t.n, ==, HN_TIMER_SPANS + 1);
    t.depth = 1;
    g_assert_true(run_once(&r, 0, &error));
    g_assert_cmpuint(t.n, ==, HN_TIMER_SPANS + 1);
    g_assert_cmpuint(t.dropped, ==, 1);
    hn_session_set_timer(s, NULL);
    g_assert_true(run_once(&r, 0, &error));
    g_assert_cmpuint(t.n, ==, HN_TIMER_SPANS + 1);
    g_free(t.spans);
}

typedef struct {
    double start, end;
} Event;

/* The number behind key, from `at` on. */
static double number_at(const char *at, const char *key)
{
    const char *found = strstr(at, key);
    g_assert_nonnull(found);
    return g_ascii_strtod(found + strlen(key), NULL);
}

static double cut_off(double us)
{
    return floor(us * 1000);
}

static double rounded(double us)
{
    return floor(us * 1000 + 0.5);
}

static double as_it_is(double us)
{
    return us;
}

/* Events lie within or behind each other, however a viewer reads microseconds. Returns how many there are. */
static guint check_nesting(const char *trace, double (*read)(double us))
{
    g_autoptr(GArray) open = g_array_new(FALSE, FALSE, sizeof(Event));
    guint n = 0;
    double last = 0;
    for (const char *at = trace; (at = strstr(at, "\"ph\":\"X\"")) != NULL; at++, n++) {
        Event e = { .start = read(number_at(at, "\"ts\":")) };
        e.end = e.start + read(number_at(at, "\"dur\":"));
        g_assert_true(e.start >= last && e.end >= e.start);
        last = e.start;
        while (open->len && g_array_index(open, Event, open->len - 1).end <= e.start)
            g_array_set_size(open, open->len - 1);
        g_assert_true(open->len == 0 || e.end <= g_array_index(open, Event, open->len - 1).end);
        g_array_append_val(open, e);
    }
    return n;
}

static char *written(gboolean (*write)(const HnProfile *p, const char *model, const char *path, GError **error),
                     const HnProfile *p)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *folder = g_dir_make_tmp("hone-profile-XXXXXX", &error);
    g_autofree char *path = g_build_filename(folder, "out", NULL);
    char *text = NULL;
    g_assert_true(write(p, "m", path, &error));
    g_assert_no_error(error);
    g_assert_true(g_file_get_contents(path, &text, NULL, NULL));
    g_remove(path);
    g_rmdir(folder);
    return text;
}

static void test_files(void)
{
    g_autoptr(HnModel) m = test_model("opset 17 graph g(%x:f32[4]) -> (%y) { %1 = Neg(%x) %y = Exp(%1) }");
    ((HnNode *)m->graph->nodes->pdata[0])->name = g_strdup("/a;b/\"c\\\n/d");
    g_autoptr(HnSession) s = test_session(m, &hn_backend_ref, &(HnSessionOptions){ .threads = 1 });
    g_autoptr(GPtrArray) in = test_inputs(s, 1);
    HnProfile p;
    profile(&p, s, in, 500, 40, NULL);
    g_assert_cmpuint(p.traces->len, ==, 20); /* of 2 spans each */
    p.disturbed_ms = 0.25;
    g_autofree char *text = written(hn_trace_write, &p), *folded = written(hn_folded_write, &p);
    g_assert_nonnull(strstr(text, "\"name\":\"/a;b/\\\"c\\\\\\u000a/d\""));
    g_assert_nonnull(strstr(text, "\"args\":{\"kernel\":\"ref\",\"shapes\":{\"in\":[\"f32[4]\"],\"out\":[\"f32[4]\"]},"
                                  "\"flops\":4,\"bytes\":32}"));
    g_assert_nonnull(strstr(folded, "m;a:b;\"c\\?;d (Neg) "));
    g_assert_nonnull(strstr(folded, "\nm;outside nodes "));
    g_assert_nonnull(strstr(folded, "\nm;disturbed 250000\n"));
    hn_profile_clear(&p);
}

/* Steps follow each other without a gap, some within others: none of them overlaps. */
static void test_trace(void)
{
    g_autoptr(HnModel) m =
        test_model("opset 17 graph g(%x:f32[64]) -> (%y) { %1 = Neg(%x) %2 = Loop(m:i64={5}, -, %1) "
                   "body=graph(%i:i64, %c:bool, %s:f32[64]) -> (%go, %next) { %go = Identity(%c) %next = Add(%s, %x) } "
                   "%y = Exp(%2) }");
    g_autoptr(HnSession) s = test_session(m, &hn_backend_ref, &(HnSessionOptions){ .threads = 1 });
    g_autoptr(GPtrArray) in = test_inputs(s, 1);
    HnProfile p;
    profile(&p, s, in, 300, HN_TRACE_SPANS, NULL);
    g_autofree char *text = written(hn_trace_write, &p);
    guint spans = 0;
    for (guint i = 0; i < p.traces->len; i++)
        spans += 1 + (guint)((HnProfileRun *)p.traces->pdata[i])->n;
    g_assert_cmpuint(spans, >=, 300 * (1 + 3 + 5));
    g_assert_cmpuint(check_nesting(text, as_it_is), ==, spans);
    g_assert_cmpuint(check_nesting(text, cut_off), ==, spans);
    g_assert_cmpuint(check_nesting(text, rounded), ==, spans);
    hn_profile_clear(&p);
}

/* Steps of a few nanoseconds without a gap between them, each with one inside that takes all or half of its time: what
 * a viewer makes of decimals may not turn any of them round. */
static void test_trace_to_the_nanosecond(void)
{
    g_autoptr(HnModel) m = test_model("opset 17 graph g(%x:f32[4]) -> (%y) { %y = Neg(%x) }");
    g_autoptr(HnSession) s = test_session(m, &hn_backend_ref, &(HnSessionOptions){ .threads = 1 });
    HnProfile p;
    hn_profile_init(&p, s);
    p.ticks.ns = 0.4; /* of which ends and starts are no whole nanoseconds */
    HnRng rng = hn_rng(1);
    HnProfileRun *run = g_new0(HnProfileRun, 1);
    run->n = 4000;
    run->spans = g_new0(HnSpan, run->n);
    guint64 at = 7;
    run->start = at;
    for (gsize i = 0; i < run->n; i += 2) {
        const guint64 end = at + (guint64)hn_rng_int(&rng, 0, 50);
        run->spans[i] = (HnSpan){ .depth = 1,
                                  .start = i % 3 ? at + (end - at) / 2 : at,
                                  .end = end }; /* what is inside was noted first */
        run->spans[i + 1] = (HnSpan){ .start = at, .end = end };
        at = end;
    }
    run->end = at;
    g_ptr_array_add(p.traces, run);
    p.first = 0;
    g_autofree char *text = written(hn_trace_write, &p);
    g_assert_cmpuint(check_nesting(text, as_it_is), ==, 4001);
    g_assert_cmpuint(check_nesting(text, cut_off), ==, 4001);
    g_assert_cmpuint(check_nesting(text, rounded), ==, 4001);
    hn_profile_clear(&p);
}

static void test_memory(void)
{
    /* sizes of 64-byte multiples: x 256, 1 256 (dead after 2), 2 1024, y 256 */
    g_autoptr(HnModel) m = test_model("opset 17 graph g(%x:f32[64]) -> (%y) { %1 = Neg(%x) "
                                      "%2 = Concat(%1, %1, %1, %1) axis=0 %y = ReduceSum(%2) keepdims=1 }");
    g_autoptr(HnSession) s = test_session(m, &hn_backend_ref, &(HnSessionOptions){ .threads = 1 });
    g_autoptr(GPtrArray) in = test_inputs(s, 1), out = test_run(s, in);
    HnMemoryTimeline t;
    hn_memory_timeline(s, &t);
    const HnMemoryPoint *points = (const HnMemoryPoint *)(void *)t.points->data;
    g_assert_cmpuint(t.points->len, ==, 3);
    g_assert_cmpuint(points[0].bytes, ==, 512);
    g_assert_cmpuint(points[1].bytes, ==, 256 + 1024);
    g_assert_cmpuint(points[2].bytes, ==, 1024 + 4);
    g_assert_cmpuint(t.peak, ==, 1);
    g_assert_cmpuint(t.alive->len, ==, 2);
    const HnMemoryTensor *most = (const HnMemoryTensor *)(void *)t.alive->data;
    g_assert_cmpstr(most->type, ==, "f32[256]");
    g_assert_cmpstr(most->kind, ==, "between");
    g_assert_true(most->source == m->graph->nodes->pdata[1]);
    hn_memory_timeline_clear(&t);
}

static void test_weights(void)
{
    g_autoptr(HnModel) m = test_model("opset 17 graph g(%x:f32[1,2]) -> (%y) { "
                                      "%1 = MatMul(%x, w:f32[2,3]={1,0,-4,2,1e-9,0}) %y = Add(%1, b:f32={nan}) }");
    g_autoptr(HnSession) s = test_session(m, &hn_backend_ref, &(HnSessionOptions){ .threads = 1 });
    g_autoptr(GArray) list = hn_weights_report(m->graph);
    const HnWeightReport *w = (const HnWeightReport *)(void *)list->data;
    g_assert_cmpuint(list->len, ==, 2);
    g_assert_cmpfloat_with_epsilon(w->zeros, 2.0 / 6, 1e-12);
    g_assert_cmpfloat(w->min, ==, -4);
    g_assert_cmpfloat(w->max, ==, 2);
    g_assert_cmpfloat_with_epsilon(w->mean, -1.0 / 6, 1e-6);
    g_assert_cmpint(w->axis, ==, 1);
    g_assert_cmpint(w->channels, ==, 3);
    g_assert_cmpint(w->dead, ==, 1);
    g_assert_cmpint(w[1].not_finite, ==, 1);
    g_assert_cmpint(w[1].axis, ==, -1);
    g_assert_true(isnan(w[1].min));
}

/* Output channels lie where the node says: the same weights, stored both ways. */
static void test_weights_axis(void)
{
    static const char *const texts[] = {
        "opset 17 graph g(%x:f32[1,2]) -> (%y) { %y = Gemm(%x, w:f32[2,3]={0,1,2,0,3,4}) }",
        "opset 17 graph g(%x:f32[1,2]) -> (%y) { %y = Gemm(%x, w:f32[3,2]={0,0,1,3,2,4}) transB=1 }",
        "opset 17 graph g(%x:f32[1,2,4]) -> (%y) { %y = ConvTranspose(%x, w:f32[2,3,1]={0,1,2,0,3,4}) }",
        "opset 17 graph g(%x:f32[1,2,4]) -> (%y) { %y = Conv(%x, w:f32[3,2,1]={0,0,1,3,2,4}) }",
    };
    for (gsize i = 0; i < G_N_ELEMENTS(texts); i++) {
        g_autoptr(HnModel) m = test_model(texts[i]);
        g_autoptr(HnSession) s = test_session(m, &hn_backend_ref, &(HnSessionOptions){ .threads = 1 });
        g_autoptr(GArray) list = hn_weights_report(m->graph);
        const HnWeightReport *w = (const HnWeightReport *)(void *)list->data;
        g_assert_cmpint(w->channels, ==, 3);
        g_assert_cmpint(w->dead, ==, 1);
    }
}

static void test_roofline(void)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *folder = g_dir_make_tmp("hone-profile-XXXXXX", &error);
    g_autofree char *inside = g_build_filename(folder, "new", NULL);
    g_autofree char *file = g_build_filename(inside, "roofline.ini", NULL);
    HnRoofline a, b;
    hn_roofline_get(1, inside, FALSE, NULL, &a);
    hn_roofline_get(1, inside, FALSE, NULL, &b);
    g_assert_true(!a.cached && b.cached);
    g_assert_cmpfloat(a.flops, ==, b.flops);
    g_assert_true(a.flops > 1e8 && a.int8_ops >= a.flops);
    for (int k = 0; k < HN_ROOFLINE_TIERS; k++) {
        g_assert_cmpfloat(a.tiers[k].bytes_per_s, ==, b.tiers[k].bytes_per_s);
        g_assert_true(k == 0 || a.tiers[k].bytes_per_s <= a.tiers[k - 1].bytes_per_s);
    }
    g_assert_cmpfloat(hn_roofline_bandwidth(&a, 1), ==, a.tiers[0].bytes_per_s);
    g_assert_cmpfloat(hn_roofline_bandwidth(&a, 1e12), ==, a.tiers[HN_ROOFLINE_TIERS - 1].bytes_per_s);
    /* a file of another content is no figure */
    g_assert_true(g_file_set_contents(file, "[x]\nflops=-1\n", -1, NULL));
    hn_roofline_get(1, inside, FALSE, NULL, &b);
    g_assert_false(b.cached);
    /* no room for the large tiers: their pace is not known */
    g_autoptr(HnBudget) budget = hn_budget_new(2000000);
    hn_roofline_get(1, inside, TRUE, budget, &b);
    g_assert_true(isnan(b.tiers[HN_ROOFLINE_TIERS - 1].bytes_per_s) && hn_roofline_bandwidth(&b, 1e9) > 0);
    g_remove(file);
    g_rmdir(inside);
    g_rmdir(folder);
}

static void test_limit(void)
{
    const HnRoofline roof = {
        .threads = 1,
        .flops = 1e9,
        .int8_ops = 4e9,
        .tiers = { { 100, 8e9 }, { 200, 4e9 }, { 300, NAN }, { 400, 2e9 }, { 500, 1e9 }, { 600, 1e9 } }
    };
    const struct {
        double flops, bytes;
        gboolean integer;
        double us, limit_us;
        HnBound bound;
    } cases[] = {
        { 1000, 0, FALSE, 2, 1, HN_BOUND_COMPUTE },     { 1000, 0, TRUE, 2, 0.25, HN_BOUND_COMPUTE },
        { 0, 500, FALSE, 2, 0.5, HN_BOUND_MEMORY },     { 0, 500, FALSE, 0.5, 0.5, HN_BOUND_MEMORY },
        { 0, 500, FALSE, 0.4, 0.25, HN_BOUND_CACHE }, /* more than 1e9 per second: at least 2e9, then */
        { 0, 500, FALSE, 0.1, 0.0625, HN_BOUND_CACHE }, { 0, 500, FALSE, 0.01, 0.01, HN_BOUND_CACHE },
        { 1000, 0, FALSE, 0.5, 0.5, HN_BOUND_COMPUTE }, { 100, 500, FALSE, 0.2, 0.125, HN_BOUND_CACHE },
        { 0, 0, FALSE, 1, 0, HN_BOUND_NONE },
    };
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        double limit;
        const HnBound bound =
            hn_roofline_limit(&roof, cases[i].flops, cases[i].bytes, cases[i].integer, cases[i].us * 1e-3, &limit);
        g_assert_cmpfloat_with_epsilon(limit * 1e3, cases[i].limit_us, 1e-9);
        g_assert_cmpint(bound, ==, cases[i].bound);
    }
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/profile/flat", test_flat);
    g_test_add_func("/profile/errors", test_errors);
    g_test_add_func("/profile/fewer-products", test_fewer_products);
    g_test_add_func("/profile/kinds", test_kinds);
    g_test_add_func("/profile/branches", test_branches);
    g_test_add_func("/profile/inner", test_inner);
    g_test_add_func("/profile/full", test_full);
    g_test_add_func("/profile/files", test_files);
    g_test_add_func("/profile/trace", test_trace);
    g_test_add_func("/profile/trace/nanoseconds", test_trace_to_the_nanosecond);
    g_test_add_func("/profile/memory", test_memory);
    g_test_add_func("/profile/weights", test_weights);
    g_test_add_func("/profile/weights/axis", test_weights_axis);
    g_test_add_func("/profile/roofline", test_roofline);
    g_test_add_func("/profile/limit", test_limit);
    return g_test_run();
}
