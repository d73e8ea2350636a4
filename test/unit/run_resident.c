/*
 * Variables on a device with memory of its own (run/resident.h), behind a fence that the host cannot look over: results
 * are ref's, bit by bit, and copies as many as have to be.
 */
#include <string.h>

#include "../fence.h"
#include "run/variable.h"
#include "run_model.h"

#define RUNS 4

typedef struct {
    HnModel *model;
    HnDevice *device;
    HnEngine *engine;
} Place;

static HnEngine *engine_on(HnModel *m, HnDevice *device, const HnVariable *variables)
{
    g_autoptr(GError) error = NULL;
    HnEngine *e = hn_engine_new(m, device, &(HnEngineOptions){ .variables = variables }, &error);
    g_assert_no_error(error);
    return e;
}

static void place_open(Place *p, const char *text, const HnVariable *variables)
{
    g_autoptr(GError) error = NULL;
    p->model = test_model(text);
    p->device = hn_device_new(&hn_backend_fence, &error);
    g_assert_no_error(error);
    p->engine = engine_on(p->model, p->device, variables);
}

static void place_close(Place *p)
{
    hn_engine_unref(p->engine);
    g_assert_cmpuint(hn_fence_counts(p->device).bytes, ==, 0);
    hn_device_unref(p->device);
    hn_model_free(p->model);
}

static HnSession *session_of(HnEngine *e)
{
    g_autoptr(GError) error = NULL;
    HnSession *s = hn_session_new_on(e, &(HnSessionOptions){ .threads = 1 }, &error);
    g_assert_no_error(error);
    return s;
}

static void fetch(HnEngine *e)
{
    g_autoptr(GError) error = NULL;
    g_assert_true(hn_engine_fetch(e, &error));
    g_assert_no_error(error);
}

static void fill(HnTensor *t, uint64_t seed)
{
    HnRng rng = hn_rng(seed);
    for (int64_t i = 0; i < t->n; i++)
        hn_tensor_set_f64(t, i, hn_rng_range(&rng, -1, 1));
}

/* What is done with each variable: outputs of the judge become its weights. */
static void replace_weights(const HnModel *judge, const HnVariable *variables, const GPtrArray *out)
{
    for (const HnVariable *v = variables; v->name != NULL; v++)
        for (guint k = 0; v->next != NULL && k < judge->graph->outputs->len; k++) {
            HnValue *w = hn_graph_find(judge->graph, v->name);
            if (strcmp(((HnValue *)judge->graph->outputs->pdata[k])->name, v->next) != 0)
                continue;
            hn_tensor_unref(w->weight);
            w->weight = hn_tensor_copy(out->pdata[k], NULL, NULL);
        }
}

static gboolean is_next(const HnVariable *variables, const char *name)
{
    for (const HnVariable *v = variables; v->name != NULL; v++)
        if (g_strcmp0(v->next, name) == 0)
            return TRUE;
    return FALSE;
}

/* --- runs --------------------------------------------------------------------------------------------------------- */

static const HnVariable one[] = { { "w", "n", NULL }, { NULL, NULL, NULL } };
static const HnVariable two[] = { { "w", "n", NULL }, { "v", "o", NULL }, { NULL, NULL, NULL } };
static const HnVariable both[] = { { "w", "n", NULL }, { "v", "n", NULL }, { NULL, NULL, NULL } };
static const HnVariable read_only[] = { { "w", NULL, NULL }, { "v", "n", NULL }, { NULL, NULL, NULL } };

static const struct {
    const char *text;
    const HnVariable *variables;
    int downloads, copies; /* of a run */
} cases[] = {
    { "(%x:f32[6]) -> (%y, %n) { %y = Mul(%x, w:f32[6]) %n = Sub(w, %y) }", one, 1, 0 },
    { "(%x:f32[6]) -> (%y, %n) { %y = Mul(%x, w:f32[6]) %n = Neg(%y) }", one, 1, 0 }, /* nobody reads it any more */
    { "(%x:f32[6]) -> (%y, %n) { %n = Mul(w:f32[6], %x) %y = Add(%n, w) }", one, 1, 1 },
    { "(%x:f32[6]) -> (%y, %n) { %n = Mul(w:f32[6], %x) %y = Identity(w) }", one, 1, 1 }, /* as it was */
    { "(%x:f32[6]) -> (%y, %n) { %y = Neg(%x) %n = Identity(w:f32[6]) }", one, 1, 0 },
    { "(%x:f32[6]) -> (%y, %n) { %r = Reshape(w:f32[2,3], s:i64[1]={6}) %y = Add(%r, %x) %n = Neg(w) }", one, 1, 0 },
    { "(%x:f32[6]) -> (%y, %n) { %r = Reshape(w:f32[6], s:i64[2]={2,3}) %t = Transpose(%r) "
      "%n = Reshape(%t, u:i64[1]={6}) %y = Add(%x, %n) }",
      one, 1, 1 },
    { "(%x:f32[6]) -> (%y, %n, %o) { %y = Add(w:f32[6], %x) %n = Identity(v:f32[6]) %o = Identity(w) }", two, 1, 4 },
    { "(%x:f32[6]) -> (%y, %n, %o) { %y = Add(w:f32[6], %x) %n = Neg(v:f32[6]) %o = Identity(w) }", two, 1, 3 },
    { "(%x:f32[6]) -> (%y, %n) { %y = Add(w:f32[6], v:f32[6]) %n = Add(%y, %x) }", both, 1, 1 },
    { "(%x:f32[6]) -> (%y, %n) { %y = Add(w:f32[6], %x) %n = Add(v:f32[6], %y) }", read_only, 1, 0 },
    { "(%x:f32[6]) -> (%y, %n) { %s = Cast(w:f32[6]) to=8 %f = Cast(%s) to=1 %y = Add(%f, %x) %n = Neg(w) }", one, 2,
      0 }, /* read on the host */
    { "(%x:f32[6], %c:bool[]) -> (%y, %n) { %k = Add(%x, w:f32[6]) %y = If(%c) then_branch=graph() -> (%a) { %a = "
      "Mul(%k, w) } "
      "else_branch=graph() -> (%b) { %b = Sub(%k, w) } %n = Neg(w) }",
      one, -1, 0 },
    { "(%x:f32[6]) -> (%y, %n) { %z = NonZero(%x) %t = Transpose(%z) %g = GatherND(w:f32[6], %t) %y = Neg(%g) "
      "%n = Add(w, %x) }",
      one, -1, -1 }, /* two plans */
    { "(%x:f32[6]) -> (%y, %n) { %s = Cast(%x) to=8 %f = Cast(%s) to=1 %y = Mul(%x, w:f32[6]) %n = Identity(%f) }", one,
      1, 0 }, /* made on the host */
};

static void run_case(guint i, gboolean fetches)
{
    g_autofree char *text = g_strconcat("opset 17 graph g", cases[i].text, NULL);
    Place p;
    place_open(&p, text, cases[i].variables);
    HnSession *s = session_of(p.engine);
    g_autoptr(HnModel) judge = test_model(text);
    for (const HnVariable *v = cases[i].variables; v->name != NULL; v++) {
        fill(hn_engine_variable(p.engine, v->name), (uint64_t)v->name[0]);
        HnValue *w = hn_graph_find(judge->graph, v->name);
        hn_tensor_unref(w->weight);
        w->weight = hn_tensor_copy(hn_engine_variable(p.engine, v->name), NULL, NULL);
    }
    hn_engine_wrote(p.engine);
    for (uint64_t run = 0; run < RUNS; run++) {
        g_autoptr(HnSession) ref = test_session(judge, &hn_backend_ref, &(HnSessionOptions){ .threads = 1 });
        g_autoptr(GPtrArray) in = test_inputs(ref, 20 + run), want = test_run(ref, in);
        const HnFenceCounts before = hn_fence_counts(p.device);
        g_autoptr(GPtrArray) got = test_run(s, in);
        const HnFenceCounts after = hn_fence_counts(p.device);
        g_test_message("run %d of %s", (int)run, text);
        if (cases[i].downloads >= 0)
            g_assert_cmpint(after.downloads - before.downloads, ==, cases[i].downloads);
        if (cases[i].copies >= 0)
            g_assert_cmpint(after.copies - before.copies, ==, run < 2 ? cases[i].copies : 0);
        for (guint k = 0; k < want->len; k++)
            if (!is_next(cases[i].variables, ((HnValue *)p.model->graph->outputs->pdata[k])->name))
                g_assert_true(hn_tensor_equal(got->pdata[k], want->pdata[k]));
        replace_weights(judge, cases[i].variables, want);
        if (!fetches && run + 1 < RUNS)
            continue;
        fetch(p.engine);
        for (const HnVariable *v = cases[i].variables; v->name != NULL; v++)
            g_assert_true(
                hn_tensor_equal(hn_engine_variable(p.engine, v->name), hn_graph_find(judge->graph, v->name)->weight));
    }
    hn_session_free(s);
    place_close(&p);
}

static void test_runs(void)
{
    for (guint i = 0; i < G_N_ELEMENTS(cases); i++)
        for (int fetches = 0; fetches < 2; fetches++)
            run_case(i, fetches);
}

/* Copies of variables: up at the first run and behind wrote(), down when they are fetched and newer there. */
static void test_counts(void)
{
    Place p;
    place_open(&p,
               "opset 17 graph g(%x:f32[6]) -> (%y, %n) { %y = Mul(%x, w:f32[6]) %z = Add(%y, v:f32[6]) "
               "%n = Sub(w, %z) }",
               (const HnVariable[]){ { "w", "n", NULL }, { "v", NULL, NULL }, { NULL, NULL, NULL } });
    HnSession *s = session_of(p.engine);
    g_autoptr(GPtrArray) in = test_inputs(s, 3);
    for (int run = 0; run < 6; run++) {
        const HnFenceCounts before = hn_fence_counts(p.device);
        if (run == 4)
            hn_engine_wrote(p.engine);
        g_autoptr(GPtrArray) out = test_run(s, in);
        g_assert_true(out->pdata[1] == hn_engine_variable(p.engine, "w"));
        const HnFenceCounts after = hn_fence_counts(p.device);
        g_assert_cmpint(after.uploads - before.uploads, ==, run == 0 || run == 4 ? 3 : 1);
        g_assert_cmpint(after.downloads - before.downloads, ==, 1);
        g_assert_cmpint(after.recorded - before.recorded, ==, run == 1);
        if (run == 2 || run == 3)
            for (int k = 0; k < 2; k++)
                fetch(p.engine);
        g_assert_cmpint(hn_fence_counts(p.device).downloads - after.downloads, ==, run == 2 || run == 3);
    }
    hn_session_free(s);
    place_close(&p);
}

/* An engine that is given another one's elements reads what that one's runs made, without a copy. */
static void test_shared(void)
{
    Place p;
    place_open(&p, "opset 17 graph g(%x:f32[6]) -> (%n) { %n = Mul(w:f32[6], %x) }",
               (const HnVariable[]){ { "w", "n", NULL }, { NULL, NULL, NULL } });
    fill(hn_engine_variable(p.engine, "w"), 5);
    HnModel *reads = test_model("opset 17 graph g(%x:f32[6]) -> (%y) { %y = Add(w:f32[6], %x) }");
    const HnVariable shared[] = { { "w", NULL, hn_engine_variable(p.engine, "w") }, { NULL, NULL, NULL } };
    HnEngine *reader = engine_on(reads, p.device, shared);
    HnSession *a = session_of(p.engine), *b = session_of(reader);
    g_autoptr(GPtrArray) in = test_inputs(a, 3);
    const float *x = ((const HnTensor *)in->pdata[0])->data;
    float w[6];
    memcpy(w, hn_engine_variable(p.engine, "w")->data, sizeof w);
    for (int run = 0; run < 3; run++) {
        g_ptr_array_unref(test_run(a, in));
        hn_engine_replaced(reader);
        const HnFenceCounts before = hn_fence_counts(p.device);
        g_autoptr(GPtrArray) y = test_run(b, in);
        const HnFenceCounts after = hn_fence_counts(p.device);
        g_assert_cmpint(after.uploads - before.uploads, ==, 1); /* of %x */
        g_assert_cmpint(after.downloads - before.downloads, ==, 1);
        for (int i = 0; i < 6; i++) {
            w[i] *= x[i];
            g_assert_cmpfloat(((const float *)((const HnTensor *)y->pdata[0])->data)[i], ==, w[i] + x[i]);
        }
    }
    hn_session_free(a);
    hn_session_free(b);
    hn_engine_unref(reader);
    place_close(&p);
    hn_model_free(reads);
}

/* Runs that are taken back: on the device nothing comes to the host for it. */
static void test_snapshot(void)
{
    static const char *const names[] = { "w", "v" };
    static const char text[] = "opset 17 graph g(%x:f32[6]) -> (%n, %o, %q) { %n = Mul(w:f32[6], %x) "
                               "%o = Add(v:f32[6], %x) %q = Neg(u:f32[6]) }";
    const HnVariable all[] = { { "w", "n", NULL }, { "v", "o", NULL }, { "u", "q", NULL }, { NULL, NULL, NULL } };
    for (int host = 0; host < 2; host++) {
        g_autoptr(GError) error = NULL;
        g_autoptr(HnModel) m = test_model(text);
        g_autoptr(HnDevice) device = hn_device_new(host ? &hn_backend_cpu : &hn_backend_fence, &error);
        HnEngine *e = engine_on(m, device, all);
        HnSession *s = session_of(e);
        HnSnapshot *x = hn_snapshot_new(s, names, 2, NULL, &error);
        g_assert_no_error(error);
        g_autoptr(GPtrArray) in = test_inputs(s, 3);
        for (int run = 0; run < 4; run++) {
            fetch(e);
            g_autoptr(HnTensor) w = hn_tensor_copy(hn_engine_variable(e, "w"), NULL, NULL);
            g_autoptr(HnTensor) v = hn_tensor_copy(hn_engine_variable(e, "v"), NULL, NULL);
            g_autoptr(HnTensor) u = hn_tensor_copy(hn_engine_variable(e, "u"), NULL, NULL);
            const int downloads = host ? 0 : hn_fence_counts(device).downloads;
            g_assert_true(hn_snapshot_take(x, NULL));
            g_ptr_array_unref(test_run(s, in));
            if (run % 2 == 0)
                g_assert_true(hn_snapshot_restore(x, NULL));
            g_assert_cmpint(host ? 0 : hn_fence_counts(device).downloads, ==, downloads);
            fetch(e);
            g_assert_true(hn_tensor_equal(hn_engine_variable(e, "w"), w) == (run % 2 == 0));
            g_assert_true(hn_tensor_equal(hn_engine_variable(e, "v"), v) == (run % 2 == 0));
            g_assert_false(hn_tensor_equal(hn_engine_variable(e, "u"), u));
        }
        hn_snapshot_free(x);
        hn_session_free(s);
        hn_engine_unref(e);
    }
}

/* --- errors ------------------------------------------------------------------------------------------------------- */

static void test_late_error(void)
{
    Place p;
    place_open(&p, "opset 17 graph g(%x:f32[N]) -> (%y) { %y = Mul(%x, w:f32[1]={2}) }",
               (const HnVariable[]){ { "w", "y", NULL }, { NULL, NULL, NULL } });
    HnSession *s = session_of(p.engine);
    for (int64_t n = 1; n <= 2; n++) {
        g_autoptr(GError) error = NULL;
        g_autoptr(HnTensor) x = test_random(HN_F32, 1, &n, 1);
        HnTensor *out = NULL;
        g_assert_true(hn_session_run(s, &x, &out, &error) == (n == 1));
        if (n == 2)
            g_assert_error(error, HN_ERROR, HN_ERROR_SHAPE);
        hn_tensor_unref(out);
    }
    hn_session_free(s);
    place_close(&p);
}

/* Whichever allocation fails, nothing is left behind, and the next run is right. */
static void test_failing_allocations(void)
{
    gboolean done = FALSE;
    for (int k = 1; !done; k++) {
        g_autoptr(GError) error = NULL;
        Place p;
        place_open(&p, "opset 17 graph g(%x:f32[6]) -> (%y, %n) { %n = Mul(w:f32[6], %x) %y = Add(%n, w) }", one);
        fill(hn_engine_variable(p.engine, "w"), 1);
        g_autoptr(HnTensor) w = hn_tensor_copy(hn_engine_variable(p.engine, "w"), NULL, NULL);
        HnSession *s = session_of(p.engine);
        g_autoptr(GPtrArray) in = test_inputs(s, 1);
        HnTensor *out[2] = { NULL };
        hn_fence_fail(p.device, k, 0);
        done = hn_session_run(s, (HnTensor *const *)in->pdata, out, &error);
        hn_fence_fail(p.device, 0, 0);
        if (!done) {
            g_assert_error(error, HN_ERROR, HN_ERROR_BUDGET);
            g_assert_true(hn_session_run(s, (HnTensor *const *)in->pdata, out, NULL));
        }
        fetch(p.engine);
        for (int64_t i = 0; i < 6; i++)
            g_assert_cmpfloat((float)hn_tensor_get_f64(hn_engine_variable(p.engine, "w"), i), ==,
                              (float)hn_tensor_get_f64(w, i) * (float)hn_tensor_get_f64(in->pdata[0], i));
        for (int i = 0; i < 2; i++)
            hn_tensor_unref(out[i]);
        g_assert_cmpint(k, <, 100);
        hn_session_free(s);
        place_close(&p);
    }
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/resident/runs", test_runs);
    g_test_add_func("/resident/counts", test_counts);
    g_test_add_func("/resident/shared", test_shared);
    g_test_add_func("/resident/snapshot", test_snapshot);
    g_test_add_func("/resident/late-error", test_late_error);
    g_test_add_func("/resident/failing-allocations", test_failing_allocations);
    return g_test_run();
}
