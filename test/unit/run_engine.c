/*
 * One engine and many sessions: what they share is made once, is right whoever asks first, and is safe to use from
 * several threads. ThreadSanitizer looks on in scripts/test --long threads.
 */
#include <string.h>

#include "run_model.h"

#define SESSIONS 8
#define SIZES 4
#define RUNS 16

#define W4 "%w = DequantizeLinear(q:u4[96,180], s:f32[3,180], z:u4[3,180]) axis=0 block_size=32 "
#define TWICE "opset 17 opset com.acme 1 function com.acme::Twice(%a) -> (%b) { opset 17 %b = Add(%a, %a) } "

/* Weights of each kind: packed ones, computed ones, halves, few bits; branches, loops, results of unknown size. */
static const char *const models[] = {
    "opset 17 graph g(%x:f32[N,8,12,12]) -> (%y) { %c = Conv(%x, w:f32[40,8,3,3], b:f32[40]) pads=[1,1,1,1] "
    "%r = Relu(%c) %d = Conv(%r, v:f32[40,1,3,3]) group=40 %p = GlobalAveragePool(%d) %f = Flatten(%p) "
    "%t = Transpose(u:f32[70,40]) perm=[1,0] %y = MatMul(%f, %t) }",
    "opset 21 graph g(%x:f32[N,96]) -> (%y) { " W4 "%m = MatMul(%x, %w) %y = Relu(%m) }",
    "opset 21 graph g(%x:f32[N,7,9,8]) -> (%y) { %v = DequantizeLinear(k:i8[96,7,3,3], l:f32[96]) axis=0 "
    "%y = Conv(%x, %v) }",
    "opset 17 graph g(%x:f32[N,64]) -> (%y) { %h = Cast(%x) to=10 %m = MatMul(%h, w:f16[64,90]) "
    "%a = Add(%m, b:f16[40,1,90]) %y = Cast(%a) to=1 }",
    "opset 17 graph g(%x:f32[N,96]) -> (%y) { %m = ReduceMax(%x) keepdims=0 %c = Cast(%m) to=9 "
    "%i = If(%c) then_branch=graph a() -> (%p) { %p = MatMul(%x, v:f32[96,50]) } "
    "else_branch=graph b() -> (%e) { %e = MatMul(%x, o:f32[96,50]) } "
    "%y = Loop(turns:i64={3}, -, %i) body=graph(%k:i64, %d:bool, %s:f32[N,50]) -> (%go, %next) "
    "{ %go = Identity(%d) %next = MatMul(%s, r:f32[50,50]) } }",
    "opset 17 graph g(%x:f32[N,64]) -> (%y) { %i = NonZero(%x) %f = Cast(%i) to=1 %t = Transpose(%f) perm=[1,0] "
    "%y = MatMul(%t, w:f32[2,300]) }",
    TWICE "graph g(%x:f32[N,300]) -> (%y) { %t = com.acme::Twice(%x) %y = MatMul(%t, w:f32[300,70]) }",
};

/* The model's first input, its first dimension n. */
static GPtrArray *inputs_of(const HnModel *m, int64_t n)
{
    const HnValue *v = m->graph->inputs->pdata[0];
    int64_t dims[HN_MAX_RANK];
    for (int i = 0; i < v->type->rank; i++)
        dims[i] = v->type->dims[i].known ? v->type->dims[i].n : n;
    GPtrArray *in = g_ptr_array_new_with_free_func((GDestroyNotify)hn_tensor_unref);
    g_ptr_array_add(in, test_random(v->type->dtype, v->type->rank, dims, (uint64_t)n));
    return in;
}

static HnEngine *engine_of(HnModel *m, HnBudget *budget)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(HnDevice) device = hn_device_new(&hn_backend_cpu, &error);
    g_assert_no_error(error);
    HnEngine *e = hn_engine_new(m, device, &(HnEngineOptions){ .budget = budget }, &error);
    g_assert_no_error(error);
    return e;
}

static HnSession *session_on(HnEngine *e, const HnSessionOptions *o)
{
    g_autoptr(GError) error = NULL;
    HnSession *s = hn_session_new_on(e, o, &error);
    g_assert_no_error(error);
    return s;
}

/* --- once -------------------------------------------------------------------------------------------------------- */

/* However many sessions there are, and whatever shapes they have seen, weights are packed once. */
static void test_packed_once(void)
{
    for (guint i = 0; i < G_N_ELEMENTS(models); i++) {
        g_autoptr(HnModel) m = test_model(models[i]);
        g_autoptr(HnEngine) e = engine_of(m, NULL);
        HnSession *s[SESSIONS];
        HnSessionStats first, all;
        for (int k = 0; k < SESSIONS; k++) {
            g_autoptr(GPtrArray) in = inputs_of(m, 3);
            s[k] = session_on(e, &(HnSessionOptions){ .threads = 1 });
            g_autoptr(GPtrArray) out = test_run(s[k], in);
            hn_session_stats(s[k], k == 0 ? &first : &all);
        }
        g_assert_cmpuint(first.packed_bytes, >, 0);
        g_assert_cmpuint(all.packed_bytes, ==, first.packed_bytes);
        for (int k = 0; k < SESSIONS; k++)
            hn_session_free(s[k]);
    }
}

/* Packs and constants go with the last session that uses them; those that come later make them anew. */
static void test_comes_and_goes(void)
{
    for (guint i = 0; i < G_N_ELEMENTS(models); i++) {
        g_autoptr(HnModel) m = test_model(models[i]);
        g_autoptr(HnBudget) budget = hn_budget_new(0);
        g_autoptr(HnEngine) e = engine_of(m, budget);
        g_autoptr(GPtrArray) in = inputs_of(m, 2);
        g_autoptr(GPtrArray) want = NULL;
        gsize used = 0;
        for (int k = 0; k < 3; k++) {
            g_autoptr(HnSession) s = session_on(e, &(HnSessionOptions){ .threads = 1, .budget = budget });
            g_autoptr(GPtrArray) out = test_run(s, in);
            if (k == 0)
                want = test_copies(out);
            g_assert_true(hn_tensor_equal(out->pdata[0], want->pdata[0]));
            g_clear_pointer(&out, g_ptr_array_unref);
            g_clear_pointer(&s, hn_session_free);
            if (k == 0)
                used = hn_budget_used(budget);
            g_assert_cmpuint(hn_budget_used(budget), ==, used);
        }
    }
}

/* The weight's elements one byte behind where they may be. */
static const HnTensor *misalign(HnValue *v)
{
    const HnTensor *w = v->weight;
    g_autoptr(GError) error = NULL;
    char *bytes = g_malloc0(w->bytes + 1);
    memcpy(bytes + 1, w->data, w->bytes);
    g_autoptr(GBytes) all = g_bytes_new_take(bytes, w->bytes + 1);
    HnTensor *t = hn_tensor_new_mapped(w->dtype, w->ndim, w->dims, all, 1, NULL, &error);
    g_assert_no_error(error);
    g_assert_true(t->misaligned);
    hn_tensor_unref(v->weight);
    return v->weight = t;
}

/* What a misaligned or a half weight is turned into is there once, too, and the model's own tensor stays as it is. */
static void test_constants_once(void)
{
    static const char *const texts[] = {
        "opset 17 graph g(%x:f32[1,300]) -> (%y) { %y = Add(%x, w:f32[1000,300]) }",
        "opset 17 graph g(%x:f16[1,300]) -> (%y) { %y = Add(%x, w:f16[1000,300]) }",
        "opset 17 graph g(%x:f32[1,300]) -> (%y) { %t = Transpose(w:f32[300,1000]) %y = Add(%x, %t) }",
    };
    for (guint i = 0; i < G_N_ELEMENTS(texts); i++) {
        g_autoptr(HnModel) m = test_model(texts[i]);
        const HnTensor *w = misalign(m->graph->weights->pdata[0]);
        const void *bytes = w->data;
        g_autoptr(HnBudget) shared = hn_budget_new(0);
        HnEngine *e = engine_of(m, shared);
        HnSession *s[SESSIONS];
        gsize used[SESSIONS];
        for (int k = 0; k < SESSIONS; k++) {
            g_autoptr(GPtrArray) in = inputs_of(m, 0);
            s[k] = session_on(e, &(HnSessionOptions){ .threads = 1 });
            g_autoptr(GPtrArray) out = test_run(s[k], in);
            g_autoptr(HnTensor) sum = hn_tensor_copy(out->pdata[0], NULL, NULL);
            g_assert_cmpfloat(hn_tensor_get_f64(sum, 299999), !=, 0);
            used[k] = hn_budget_used(shared);
        }
        g_assert_cmpuint(used[0], >=, 300000 * sizeof(float));
        g_assert_cmpuint(used[SESSIONS - 1], ==, used[0]);
        g_assert_true(w->misaligned && w->data == bytes);
        for (int k = 0; k < SESSIONS; k++)
            hn_session_free(s[k]);
        g_assert_cmpuint(hn_budget_used(shared), ==, i < 2 ? 0 : used[0]); /* what was folded stays */
        hn_engine_unref(e);
    }
}

/* Numbers of few bits whose scale follows from the input's shape are others for each shape. */
static void test_scale_of_a_shape(void)
{
    g_autoptr(HnModel) m =
        test_model("opset 21 graph g(%x:f32[N,7,9,8]) -> (%y) { %n = Shape(%x) start=0 end=1 %f = Cast(%n) to=1 "
                   "%s = Squeeze(%f) %v = DequantizeLinear(k:i8[96,7,3,3], %s) %y = Conv(%x, %v) }");
    g_autoptr(HnSession) cpu = test_session(m, &hn_backend_cpu, &(HnSessionOptions){ .threads = 1 });
    for (int64_t n = 1; n <= 3; n++) {
        g_autoptr(HnSession) ref =
            test_session(m, &hn_backend_ref, &(HnSessionOptions){ .threads = 1 }); /* knows one */
        g_autoptr(GPtrArray) in = inputs_of(m, n);
        g_autoptr(GPtrArray) got = test_run(cpu, in), want = test_run(ref, in);
        test_assert_close(got->pdata[0], want->pdata[0], 1e-4, 1e-2, "scale of a shape");
    }
}

/* A result that follows from weights alone is there for those who come later, too. */
static void test_constant_result(void)
{
    g_autoptr(HnModel) m = test_model("opset 17 graph g(%x:f32[2]) -> (%t, %y) { %t = Transpose(w:f32[70,40]) "
                                      "%u = Transpose(%t) %s = ReduceSum(%u) keepdims=0 %y = Add(%x, %s) }");
    g_autoptr(HnEngine) e = engine_of(m, NULL);
    g_autoptr(HnSession) a = session_on(e, &(HnSessionOptions){ .threads = 1 });
    g_autoptr(HnSession) b = session_on(e, &(HnSessionOptions){ .threads = 1 });
    g_autoptr(GPtrArray) in = test_inputs(a, 1);
    g_autoptr(GPtrArray) first = test_run(a, in), second = test_run(b, in);
    for (guint k = 0; k < first->len; k++)
        g_assert_true(hn_tensor_equal(first->pdata[k], second->pdata[k]));
}

/* --- the model --------------------------------------------------------------------------------------------------- */

static char *printed(const HnModel *m)
{
    GString *text = g_string_new(NULL);
    hn_model_print(m, 4, text);
    return g_string_free(text, FALSE);
}

/* A model that is ready stays as it is, down to the lists of its nodes. */
static void test_prepared_stays(void)
{
    for (guint i = 0; i < G_N_ELEMENTS(models); i++) {
        g_autoptr(GError) error = NULL;
        g_autoptr(HnModel) m = test_model(models[i]);
        g_assert_true(hn_model_prepare(m, &error));
        g_autofree char *text = printed(m);
        const GPtrArray *nodes = m->graph->nodes;
        g_autofree gpointer *each = g_memdup2(nodes->pdata, nodes->len * sizeof(gpointer));
        g_assert_true(hn_model_prepare(m, &error));
        g_autoptr(HnEngine) e = engine_of(m, NULL);
        g_autoptr(HnSession) s = session_on(e, &(HnSessionOptions){ .threads = 1 });
        g_autoptr(GPtrArray) in = inputs_of(m, 2);
        g_autoptr(GPtrArray) out = test_run(s, in);
        g_autofree char *after = printed(m);
        g_assert_cmpstr(text, ==, after);
        g_assert_true(m->graph->nodes == nodes && memcmp(each, nodes->pdata, nodes->len * sizeof(gpointer)) == 0);
    }
}

static void test_refused(void)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(HnDevice) device = hn_device_new(&hn_backend_cpu, &error);
    g_autoptr(HnModel) unknown = test_model("opset 17 graph g(%x:f32[1]) -> (%y) { %y = Nonsense(%x) }");
    g_autoptr(HnModel) nothing = test_model("opset 17 graph g(%x:f32[1]) -> () { %y = Neg(%x) }");
    g_autoptr(HnModel) fine = test_model("opset 17 graph g(%x:f32[1], %w:f32[1]) -> (%y) { %y = Add(%x, %w) }");
    g_assert_null(hn_engine_new(unknown, device, NULL, &error));
    g_assert_error(error, HN_ERROR, HN_ERROR_UNSUPPORTED);
    g_clear_error(&error);
    g_assert_null(hn_engine_new(nothing, device, NULL, &error));
    g_assert_error(error, HN_ERROR, HN_ERROR_GRAPH);
    g_clear_error(&error);
    g_assert_null(
        hn_engine_new(fine, device, &(HnEngineOptions){ .feeds = (const char *const[]){ "v", NULL } }, &error));
    g_assert_error(error, HN_ERROR, HN_ERROR_USAGE);
}

/* --- threads ----------------------------------------------------------------------------------------------------- */

typedef struct {
    HnEngine *engine;
    HnModel *model;  /* instead of an engine: a session of its own */
    GPtrArray **in;  /* of each size */
    HnTensor **want; /* results of each size */
    int lane, wrong;
} Lane;

/* Sizes come in another order on each thread, and more of them than plans are kept. */
static gpointer run_lane(gpointer data)
{
    Lane *l = data;
    const HnSessionOptions o = { .threads = l->lane % 2 + 1, .plan_cache = 2 };
    g_autoptr(HnSession) s =
        l->engine != NULL ? session_on(l->engine, &o) : test_session(l->model, &hn_backend_cpu, &o);
    for (int i = 0; i < RUNS; i++) {
        const int k = (i * (l->lane | 1) + l->lane) % SIZES;
        g_autoptr(GPtrArray) out = test_run(s, l->in[k]);
        l->wrong += !hn_tensor_equal(out->pdata[0], l->want[k]);
    }
    return NULL;
}

static void run_lanes(HnModel *m, HnEngine *e)
{
    Lane lanes[SESSIONS];
    GThread *threads[SESSIONS];
    GPtrArray *in[SIZES];
    HnTensor *want[SIZES];
    g_autoptr(HnSession) alone = test_session(m, &hn_backend_cpu, &(HnSessionOptions){ .threads = 1 });
    for (int k = 0; k < SIZES; k++) {
        in[k] = inputs_of(m, k + 1);
        g_autoptr(GPtrArray) out = test_run(alone, in[k]);
        want[k] = hn_tensor_copy(out->pdata[0], NULL, NULL);
    }
    for (int i = 0; i < SESSIONS; i++) {
        lanes[i] = (Lane){ .engine = e, .model = m, .in = in, .want = want, .lane = i };
        threads[i] = g_thread_new("lane", run_lane, &lanes[i]);
    }
    for (int i = 0; i < SESSIONS; i++) {
        g_thread_join(threads[i]);
        g_assert_cmpint(lanes[i].wrong, ==, 0);
    }
    for (int k = 0; k < SIZES; k++) {
        g_ptr_array_unref(in[k]);
        hn_tensor_unref(want[k]);
    }
}

static void test_threads_on_one_engine(void)
{
    for (guint i = 0; i < G_N_ELEMENTS(models); i++) {
        g_autoptr(HnModel) m = test_model(models[i]);
        g_autoptr(HnEngine) e = engine_of(m, NULL);
        run_lanes(m, e);
    }
}

/* Engines of their own on one model, which was prepared before. */
static void test_threads_on_one_model(void)
{
    for (guint i = 0; i < G_N_ELEMENTS(models); i++) {
        g_autoptr(HnModel) m = test_model(models[i]);
        run_lanes(m, NULL);
    }
}

/* --- packs ------------------------------------------------------------------------------------------------------- */

typedef struct {
    HnPacks *packs;
    HnTensor *weight;
    gint filled;  /* atomic */
    gint failing; /* atomic: so many of the next ones fail */
} Packing;

static gboolean fill(const HnStep *s, void *to, const HnTensor *t, gconstpointer data, GError **error)
{
    Packing *p = (Packing *)data;
    (void)s;
    g_atomic_int_inc(&p->filled);
    g_usleep(2000); /* others come and wait */
    if (g_atomic_int_add(&p->failing, -1) > 0) {
        g_set_error_literal(error, HN_ERROR, HN_ERROR_BUDGET, "no");
        return FALSE;
    }
    memcpy(to, t->data, t->bytes);
    return TRUE;
}

static HnPack *get(Packing *p, int64_t variant, GError **error)
{
    HnSlot slot = { .tensor = p->weight, .constant = TRUE };
    const HnStep s = { .packs = p->packs };
    return hn_packs_get(&s, &slot, &(HnPackForm){ .variant = variant }, p->weight->bytes, fill, p, error);
}

static gpointer get_and_hold(gpointer data)
{
    Packing *p = data;
    HnPack *pack = get(p, 1, NULL);
    if (pack != NULL)
        g_assert_cmpmem(pack->data, p->weight->bytes, p->weight->data, p->weight->bytes);
    return pack;
}

static void packing_init(Packing *p)
{
    *p = (Packing){ .packs = hn_packs_new(&hn_backend_ref, NULL),
                    .weight = test_random(HN_F32, 1, &(int64_t){ 50 }, 1) };
}

/* Eight threads want the same at once: one makes it. Where that fails the next one does. */
static void test_pack_made_once(void)
{
    for (int failing = 0; failing <= 3; failing++) {
        Packing p;
        GThread *threads[SESSIONS];
        int got = 0;
        packing_init(&p);
        p.failing = failing;
        for (int i = 0; i < SESSIONS; i++)
            threads[i] = g_thread_new("pack", get_and_hold, &p);
        HnPack *packs[SESSIONS];
        for (int i = 0; i < SESSIONS; i++)
            got += (packs[i] = g_thread_join(threads[i])) != NULL;
        g_assert_cmpint(got, ==, SESSIONS - failing);
        g_assert_cmpint(p.filled, ==, failing + 1);
        g_assert_cmpuint(hn_packs_bytes(p.packs), ==, p.weight->bytes);
        for (int i = 0; i < SESSIONS; i++)
            hn_pack_unref(packs[i]);
        g_assert_cmpuint(hn_packs_bytes(p.packs), ==, 0);
        g_assert_cmpint(p.weight->ref, ==, 1);
        hn_packs_free(p.packs);
        hn_tensor_unref(p.weight);
    }
}

/* Unused ones go at once; held ones wait, until the last release, another form of the weight, or its end. */
static void test_pack_held(void)
{
    Packing p;
    packing_init(&p);
    const gsize one = p.weight->bytes;
    hn_packs_hold(p.packs);
    hn_packs_hold(p.packs);
    hn_pack_unref(get(&p, 1, NULL));
    hn_packs_sweep(p.packs); /* we hold the weight */
    g_assert_cmpuint(hn_packs_bytes(p.packs), ==, one);
    hn_pack_unref(get(&p, 1, NULL));
    g_assert_cmpint(p.filled, ==, 1);
    HnPack *other = get(&p, 2, NULL);
    g_assert_cmpint(p.filled, ==, 2);
    g_assert_cmpuint(hn_packs_bytes(p.packs), ==, one);
    hn_pack_unref(other);
    hn_packs_release(p.packs);
    g_assert_cmpuint(hn_packs_bytes(p.packs), ==, one); /* one more holds */
    hn_tensor_unref(g_steal_pointer(&p.weight));
    hn_packs_sweep(p.packs);
    g_assert_cmpuint(hn_packs_bytes(p.packs), ==, 0);
    hn_packs_release(p.packs);
    packing_init(&p);
    hn_packs_hold(p.packs);
    hn_pack_unref(get(&p, 1, NULL));
    hn_packs_release(p.packs);
    g_assert_cmpuint(hn_packs_bytes(p.packs), ==, 0);
    hn_packs_free(p.packs);
    hn_tensor_unref(p.weight);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/engine/packed_once", test_packed_once);
    g_test_add_func("/engine/comes_and_goes", test_comes_and_goes);
    g_test_add_func("/engine/constants_once", test_constants_once);
    g_test_add_func("/engine/scale_of_a_shape", test_scale_of_a_shape);
    g_test_add_func("/engine/constant_result", test_constant_result);
    g_test_add_func("/engine/prepared_stays", test_prepared_stays);
    g_test_add_func("/engine/refused", test_refused);
    g_test_add_func("/engine/threads_on_one_engine", test_threads_on_one_engine);
    g_test_add_func("/engine/threads_on_one_model", test_threads_on_one_model);
    g_test_add_func("/packs/made_once", test_pack_made_once);
    g_test_add_func("/packs/held", test_pack_held);
    return g_test_run();
}
