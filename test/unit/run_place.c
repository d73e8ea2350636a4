/*
 * Sessions on a backend with memory of its own, behind a fence that the host cannot look over (test/fence.h): whatever
 * the host touches there ends the test. Results are ref's, bit by bit.
 */
#include <string.h>

#include "../fence.h"
#include "run_model.h"

#define RUNS 4

/* Values on one side and on both, views, results that are inputs or constants, shapes that depend on elements, graphs
 * inside, strings. */
static const char *const models[] = {
    "opset 17 graph g(%x:f32[4,8]) -> (%y) { %y = Neg(%x) }",
    "opset 17 graph g(%x:f32[4,8]) -> (%y, %z, %u) { %a = Add(%x, w:f32[4,8]) %y = Relu(%a) %b = Mul(%a, %x) "
    "%c = Sub(%b, w) %z = Exp(%c) %u = Neg(%z) }",
    "opset 17 graph g(%x:f32[1,8,9,9]) -> (%y) { %c = Conv(%x, w:f32[16,8,3,3], b:f32[16]) %r = Relu(%c) "
    "%p = MaxPool(%r) kernel_shape=[2,2] %f = Flatten(%p) %y = Gemm(%f, v:f32[576,5], d:f32[5]) }",
    "opset 17 graph g(%x:f32[4,6]) -> (%y, %r) { %n = Neg(%x) %r = Reshape(%n, to:i64[2]={8,3}) %t = Transpose(%r) "
    "%q = Reshape(%t, then:i64[3]={3,2,4}) %y = ReduceSum(%q) }",
    "opset 17 graph g(%x:f32[4,6]) -> (%x2, %k, %y) { %x2 = Identity(%x) %k = Identity(c:f32[3]) %y = Abs(%x) }",
    "opset 17 graph g(%x:f32[6,5]) -> (%y) { %n = Neg(%x) %i = NonZero(%n) %f = Cast(%i) to=1 %g = Mul(%f, "
    "two:f32={2}) "
    "%s = ReduceSum(%g) keepdims=0 %m = Mul(%n, %s) %y = Sqrt(%m) }",
    "opset 17 graph g(%x:f32[2,3], %m:i64) -> (%last, %all) { %n = Neg(%x) %last, %all = Loop(%m, -, %n) "
    "body=graph(%i:i64, %c:bool, %s:f32[2,3]) -> (%go, %next, %copy) { %go = Identity(%c) %e = Exp(%n) "
    "%next = Add(%s, %e) %copy = Neg(%next) } }",
    "opset 17 graph g(%x:f32[2,3], %c:bool) -> (%y) { %n = Neg(%x) %r = If(%c) "
    "then_branch=graph() -> (%t) { %t = Mul(%n, %x) } else_branch=graph() -> (%e) { %e = Sub(%n, k:f32[2,3]) } "
    "%y = Abs(%r) }",
    "opset 17 graph g(%x:f32[8,3], %i:i64[2]) -> (%y) { %n = Neg(%x) %g = Gather(%n, %i) %a, %b = Split(%g) axis=0 "
    "%y = Concat(%b, %a, %g) axis=0 }",
    "opset 17 graph g(%x:f32[5]) -> (%y) { %n = Neg(%x) %s = Cast(%n) to=8 %f = Cast(%s) to=1 %y = Add(%f, %n) }",
    "opset 17 graph g(%x:f16[5,4]) -> (%y) { %m = MatMul(%x, w:f16[4,3]) %y = Relu(%m) }",
    "opset 17 graph g(%x:f32[0,4]) -> (%y) { %n = Neg(%x) %y = Concat(%n, w:f32[2,4]) axis=0 }",
};

typedef struct {
    HnModel *model;
    HnDevice *device;
    HnEngine *engine;
} Place;

static void place_open(Place *p, const char *text)
{
    g_autoptr(GError) error = NULL;
    p->model = test_model(text);
    p->device = hn_device_new(&hn_backend_fence, &error);
    p->engine = hn_engine_new(p->model, p->device, NULL, &error);
    g_assert_no_error(error);
}

static void place_close(Place *p)
{
    hn_engine_unref(p->engine);
    g_assert_cmpuint(hn_fence_counts(p->device).bytes, ==, 0);
    hn_device_unref(p->device);
    hn_model_free(p->model);
}

static HnSession *place_session(const Place *p, const HnSessionOptions *o)
{
    g_autoptr(GError) error = NULL;
    HnSession *s = hn_session_new_on(p->engine, o, &error);
    g_assert_no_error(error);
    return s;
}

static void assert_same(GPtrArray *got, GPtrArray *want, const char *text)
{
    for (guint k = 0; k < want->len; k++)
        if (!hn_tensor_equal(got->pdata[k], want->pdata[k])) {
            g_test_message("output %u is another: %s", k, text);
            g_test_fail();
        }
}

static void check(const char *text, const HnSessionOptions *o)
{
    Place p;
    place_open(&p, text);
    HnSession *s = place_session(&p, o);
    g_autoptr(HnSession) ref = test_session(p.model, &hn_backend_ref, &(HnSessionOptions){ .threads = 1 });
    for (uint64_t run = 0; run < RUNS; run++) { /* plain, recorded, and twice again */
        g_autoptr(GPtrArray) in = test_inputs(ref, 71 + run);
        g_autoptr(GPtrArray) want = test_run(ref, in), got = test_run(s, in);
        assert_same(got, want, text);
    }
    hn_session_free(s);
    place_close(&p);
}

static void test_models(void)
{
    for (guint i = 0; i < G_N_ELEMENTS(models); i++) {
        check(models[i], &(HnSessionOptions){ .threads = 1 });
        check(models[i], &(HnSessionOptions){ .threads = 1, .apart = TRUE });
        check(models[i], &(HnSessionOptions){ .threads = 1, .prefer = "fence.host" });
    }
}

/* Once for all who read them: three steps read %a and %x, which is fed; weights are copied for all sessions. */
static void test_moved_once(void)
{
    Place p;
    place_open(&p, "opset 17 graph g(%x:f32[4,8]) -> (%y, %z) { %a = Add(%x, w:f32[4,8]) %b = Mul(%a, %x) "
                   "%c = Sub(%x, w) %y = Add(%b, %c) %z = Mul(%y, %a) }");
    HnSession *s[3];
    for (int k = 0; k < 3; k++) {
        s[k] = place_session(&p, &(HnSessionOptions){ .threads = 1 });
        g_autoptr(GPtrArray) in = test_inputs(s[k], 1);
        g_autoptr(GPtrArray) out = test_run(s[k], in);
    }
    const HnFenceCounts c = hn_fence_counts(p.device);
    HnSessionStats stats;
    hn_session_stats(s[0], &stats);
    g_assert_cmpint(c.uploads, ==, 1 + 3);
    g_assert_cmpint(c.downloads, ==, 2 * 3);
    g_assert_cmpint(c.launches, ==, 5 * 3);
    g_assert_cmpuint(stats.packed_bytes, ==, 4 * 8 * sizeof(float));
    g_assert_cmpuint(c.bytes, >=, 3 * (stats.arena_bytes - 2 * 4 * 8 * sizeof(float)));
    for (int k = 0; k < 3; k++)
        hn_session_free(s[k]);
    place_close(&p);
}

/* The second run of a plan records it, later ones replay it: one wait each, and nothing else is enqueued by kernels. */
static void test_replayed(void)
{
    Place p;
    place_open(&p, models[2]);
    HnSession *s = place_session(&p, &(HnSessionOptions){ .threads = 1 });
    g_autoptr(GPtrArray) in = test_inputs(s, 1);
    for (int run = 0; run < RUNS; run++) {
        const HnFenceCounts before = hn_fence_counts(p.device);
        g_autoptr(GPtrArray) out = test_run(s, in);
        const HnFenceCounts after = hn_fence_counts(p.device);
        g_assert_cmpint(after.recorded - before.recorded, ==, run == 1);
        g_assert_cmpint(after.replays - before.replays, ==, run > 0);
        g_assert_cmpint(after.waits - before.waits, ==, run == 0 ? 5 : 1); /* four weights */
        g_assert_cmpint(after.downloads - before.downloads, ==, 1);
    }
    hn_session_free(s);
    place_close(&p);
}

/* What the host reads when a kernel is enqueued may be another the next time: such steps are not recorded. */
static void test_host_inputs(void)
{
    Place p;
    place_open(&p, "opset 17 graph g(%x:f32[8,3], %i:i64[2]) -> (%y) { %y = Gather(%x, %i) }");
    HnSession *s = place_session(&p, &(HnSessionOptions){ .threads = 1, .prefer = "fence.host" });
    g_autoptr(HnSession) ref = test_session(p.model, &hn_backend_ref, &(HnSessionOptions){ .threads = 1 });
    for (uint64_t run = 0; run < RUNS; run++) {
        g_autoptr(GPtrArray) in = test_inputs(ref, run);
        g_autoptr(GPtrArray) want = test_run(ref, in), got = test_run(s, in);
        assert_same(got, want, "host inputs");
    }
    g_assert_cmpint(hn_fence_counts(p.device).recorded, ==, 0);
    g_assert_cmpint(hn_fence_counts(p.device).uploads, ==, RUNS); /* of %x alone */
    hn_session_free(s);
    place_close(&p);
}

/* --- who looks on ------------------------------------------------------------------------------------------------ */

typedef struct {
    GHashTable *sums; /* name -> sum of the elements, g_free */
} Sums;

static gboolean wants_all(const HnValue *v, gpointer data)
{
    (void)v;
    (void)data;
    return TRUE;
}

static void add_up(const HnValue *v, const HnSeen *seen, gpointer data)
{
    double *sum = g_new0(double, 1);
    for (int64_t i = 0; i < seen->rows; i++)
        for (int64_t k = 0; k < seen->width && seen->dtype == HN_F32; k++)
            *sum += (double)((const float *)seen->data)[i * seen->pitch + k];
    g_hash_table_insert(((Sums *)data)->sums, v->name, sum);
}

static void test_watched(void)
{
    Sums sums[2];
    Place p;
    place_open(&p, models[1]);
    for (int k = 0; k < 2; k++) {
        sums[k].sums = g_hash_table_new_full(g_str_hash, g_str_equal, NULL, g_free);
        const HnWatch watch = { wants_all, add_up, &sums[k] };
        const HnSessionOptions o = { .threads = 1, .watch = &watch };
        g_autoptr(HnSession) s = k == 0 ? place_session(&p, &o) : test_session(p.model, &hn_backend_ref, &o);
        g_autoptr(GPtrArray) in = test_inputs(s, 5);
        g_autoptr(GPtrArray) out = test_run(s, in);
    }
    GHashTableIter iter;
    gpointer name, sum;
    g_hash_table_iter_init(&iter, sums[1].sums);
    g_assert_cmpuint(g_hash_table_size(sums[1].sums), ==, 7);
    while (g_hash_table_iter_next(&iter, &name, &sum)) {
        const double *got = g_hash_table_lookup(sums[0].sums, name);
        g_assert_true(got != NULL && *got == *(double *)sum);
    }
    for (int k = 0; k < 2; k++)
        g_hash_table_unref(sums[k].sums);
    place_close(&p);
}

/* A timed step is over when its span ends. */
static void test_timed(void)
{
    HnTimer timer = { 0 };
    Place p;
    place_open(&p, models[1]);
    HnSession *s = place_session(&p, &(HnSessionOptions){ .threads = 1 });
    g_autoptr(GPtrArray) in = test_inputs(s, 5);
    hn_session_set_timer(s, &timer);
    const int before = hn_fence_counts(p.device).waits;
    g_autoptr(GPtrArray) out = test_run(s, in);
    g_assert_cmpuint(timer.n, ==, 1 + 6 + 3); /* the input, the nodes, the results */
    g_assert_cmpint(hn_fence_counts(p.device).waits - before, >=, 10);
    g_free(timer.spans);
    g_ptr_array_set_size(out, 0);
    hn_session_free(s);
    place_close(&p);
}

/* --- what goes wrong --------------------------------------------------------------------------------------------- */

/* Whatever fails there is said, leaves nothing behind, and the next run is right. */
static void test_failures(void)
{
    for (guint i = 0; i < G_N_ELEMENTS(models); i++)
        for (int kind = 0; kind < 2; kind++) {
            gboolean all = FALSE;
            for (int k = 1; !all; k++) {
                Place p;
                g_autoptr(GError) error = NULL;
                place_open(&p, models[i]);
                HnSession *s = place_session(&p, &(HnSessionOptions){ .threads = 1 });
                g_autoptr(HnSession) ref = test_session(p.model, &hn_backend_ref, &(HnSessionOptions){ .threads = 1 });
                g_autoptr(GPtrArray) in = test_inputs(ref, 3);
                g_autoptr(GPtrArray) want = test_run(ref, in);
                HnTensor *out[3] = { NULL };
                hn_fence_fail(p.device, kind == 0 ? k : 0, kind == 1 ? k : 0);
                all = hn_session_run(s, (HnTensor *const *)in->pdata, out, &error);
                g_assert_true(all == (error == NULL) && all == (out[0] != NULL));
                hn_fence_fail(p.device, 0, 0);
                for (int j = 0; j < 3; j++)
                    hn_tensor_unref(out[j]);
                g_autoptr(GPtrArray) again = test_run(s, in);
                assert_same(again, want, models[i]);
                g_ptr_array_set_size(again, 0);
                hn_session_free(s);
                place_close(&p);
            }
        }
}

/* A step on the host fails while the device has not begun yet: nothing of it is done later. */
static void test_host_failure(void)
{
    Place p;
    g_autoptr(GError) error = NULL;
    g_autoptr(HnBudget) budget = hn_budget_new(0);
    place_open(&p, "opset 17 graph g(%x:f32[6,5]) -> (%n, %i) { %n = Neg(%x) %i = NonZero(%x) }");
    HnSession *s = place_session(&p, &(HnSessionOptions){ .threads = 1, .budget = budget });
    g_autoptr(GPtrArray) in = test_inputs(s, 3);
    g_autoptr(GPtrArray) out = test_run(s, in);
    HnTensor *none[2] = { NULL };
    const int before = hn_fence_counts(p.device).waits;
    hn_budget_fail_at(budget, 1);
    g_assert_false(hn_session_run(s, (HnTensor *const *)in->pdata, none, &error));
    g_assert_error(error, HN_ERROR, HN_ERROR_BUDGET);
    g_assert_cmpint(hn_fence_counts(p.device).waits, ==, before + 1);
    g_ptr_array_set_size(out, 0);
    hn_session_free(s);
    place_close(&p);
}

/* The fence is one. */
static void test_fence(void)
{
    if (g_test_subprocess()) {
        g_autoptr(HnDevice) d = hn_device_new(&hn_backend_fence, NULL);
        const volatile char *p = hn_backend_fence.memory->alloc(d->handle, 1, NULL);
        g_print("%d", *p);
        return;
    }
    g_test_trap_subprocess(NULL, 0, 0);
    g_test_trap_assert_failed();
    g_test_trap_assert_stdout_unmatched("*88*");
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/place/models", test_models);
    g_test_add_func("/place/moved_once", test_moved_once);
    g_test_add_func("/place/replayed", test_replayed);
    g_test_add_func("/place/host_inputs", test_host_inputs);
    g_test_add_func("/place/watched", test_watched);
    g_test_add_func("/place/timed", test_timed);
    g_test_add_func("/place/failures", test_failures);
    g_test_add_func("/place/host_failure", test_host_failure);
    g_test_add_func("/place/fence", test_fence);
    return g_test_run();
}
