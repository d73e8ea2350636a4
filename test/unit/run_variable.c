/*
 * Weights that change while sessions live (run/variable.h): kernels, packed weights, in-place updates.
 */
#include "run_model.h"

#include <string.h>

static HnEngine *engine_of(HnModel *m, const HnVariable *variables, HnBudget *budget)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(HnDevice) device = hn_device_new(&hn_backend_cpu, &error);
    HnEngine *e = hn_engine_new(m, device, &(HnEngineOptions){ .variables = variables, .budget = budget }, &error);
    g_assert_no_error(error);
    return e;
}

static HnSession *session_on(HnEngine *e, int threads)
{
    g_autoptr(GError) error = NULL;
    HnSession *s = hn_session_new_on(e, &(HnSessionOptions){ .threads = threads, .plan_cache = threads }, &error);
    g_assert_no_error(error);
    return s;
}

static void fill(HnTensor *t, uint64_t seed)
{
    HnRng rng = hn_rng(seed);
    for (int64_t i = 0; i < t->n; i++)
        hn_tensor_set_f64(t, i, hn_rng_range(&rng, -1, 1));
}

static void note_kernel(const HnStep *s, int depth, gpointer names)
{
    (void)depth;
    g_string_append_printf(names, "%s ", s->kernel != NULL ? s->kernel->name : "ref");
}

static char *kernels_of(const HnSession *s)
{
    GString *names = g_string_new(NULL);
    hn_session_foreach_step(s, note_kernel, names);
    return g_string_free(names, FALSE);
}

/* The model's own weights are what the engine's variables are now. */
static void take_weights(HnModel *m, HnEngine *e)
{
    for (guint i = 0; i < m->graph->weights->len; i++) {
        HnValue *v = m->graph->weights->pdata[i];
        const HnTensor *now = hn_engine_variable(e, v->name);
        if (now == NULL)
            continue;
        hn_tensor_unref(v->weight);
        v->weight = hn_tensor_copy(now, NULL, NULL);
    }
}

/* --- kernels ------------------------------------------------------------------------------------------------------ */

static const struct {
    const char *text, *kernel; /* that takes the variable as it takes a constant; NULL: any */
} layers[] = {
    { "Conv(%x:f32[1,16,20,20], w:f32[32,16,3,3], b:f32[32]) pads=[1,1,1,1]", "cpu.winograd" },
    { "Conv(%x:f32[1,64,40,40], w:f32[64,1,3,3], b:f32[64]) group=64", "cpu.depthwise " },
    { "Conv(%x:f32[1,3,12,12], w:f32[6,3,3,3], b:f32[6]) strides=[2,2]", "cpu.conv " },
    { "Conv(%x:f32[1,32,20,20], w:f32[64,32,1,1], b:f32[64])", "cpu.conv_gemm" },
    { "ConvTranspose(%x:f32[1,4,6,6], w:f32[4,3,3,3], b:f32[3]) strides=[2,2]", "cpu.convtranspose " },
    { "ConvTranspose(%x:f32[1,64,16,16], w:f32[64,32,2,2], b:f32[32]) strides=[2,2]", "cpu.convtranspose_gemm" },
    { "ConvTranspose(%x:f32[1,32,20,20], w:f32[32,16,3,3], b:f32[16]) pads=[1,1,1,1]", "cpu.winograd" },
    { "ConvTranspose(%x:f32[1,64,20,20], w:f32[64,1,3,3], b:f32[64]) group=64", "cpu.depthwise " },
    { "ConvTranspose(%x:f32[1,64,20,20], w:f32[64,40,1,1], b:f32[40])", "cpu.conv_gemm" },
    { "ConvTranspose(%x:f32[2,64,20,20], w:f32[64,1,3,3], b:f32[64]) group=64 strides=[2,2]",
      "cpu.depthwise_transposed" },
    { "Gemm(%x:f32[40,64], w:f32[64,48], b:f32[48])", "cpu.gemm_packed" },
    { "MatMul(%x:f32[40,64], w:f32[64,48])", "cpu.matmul_packed" },
    { "LSTM(%x:f32[5,2,12], w:f32[1,64,12], r:f32[1,64,16], b:f32[1,128]) hidden_size=16", "cpu.lstm " },
    { "GRU(%x:f32[5,2,12], w:f32[1,48,12], r:f32[1,48,16], b:f32[1,96]) hidden_size=16", "cpu.gru " },
    { "BatchNormalization(%x:f32[1,8,6,6], w:f32[8], b:f32[8], mean:f32[8], var:f32[8])", NULL },
    { "Add(%x:f32[3,8], b:f32[8])", NULL },
};

static char *layer_text(guint i)
{
    const char *x = strstr(layers[i].text, "%x:"), *end = strchr(x, ']') + 1;
    g_autofree char *input = g_strndup(x, (gsize)(end - x));
    GString *body = g_string_new_len(layers[i].text, x - layers[i].text);
    g_string_append_printf(body, "%%x%s", end);
    char *text = g_strdup_printf("opset 17 graph g(%s) -> (%%y) { %%y = %s }", input, body->str);
    g_string_free(body, TRUE);
    return text;
}

static const HnVariable all[] = { { .name = "w" }, { .name = "r" }, { .name = "b" }, { .name = NULL } };

/* Those of `all` that the model has. */
static void pick(const HnModel *m, HnVariable *of)
{
    for (const HnVariable *v = all; v->name != NULL; v++)
        if (g_hash_table_contains(m->graph->values, v->name))
            *of++ = *v;
    *of = (HnVariable){ .name = NULL };
}

/* Each layer, run with elements that are written twice: to the last bit what the same kernel makes of constants. */
static void test_layers(void)
{
    for (guint i = 0; i < G_N_ELEMENTS(layers); i++)
        for (int threads = 1; threads <= 2; threads++) {
            g_autofree char *text = layer_text(i);
            g_autoptr(HnModel) m = test_model(text), fixed = test_model(text);
            HnVariable variables[G_N_ELEMENTS(all)];
            pick(m, variables);
            g_autoptr(HnEngine) e = engine_of(m, variables, NULL);
            g_autoptr(HnSession) s = session_on(e, threads);
            for (uint64_t run = 0; run < 3; run++) {
                take_weights(fixed, e);
                g_autoptr(HnSession) judge =
                    test_session(fixed, &hn_backend_cpu, &(HnSessionOptions){ .threads = threads });
                g_autoptr(GPtrArray) in = test_inputs(judge, 5 + run);
                g_autoptr(GPtrArray) want = test_run(judge, in), got = test_run(s, in);
                g_autofree char *as_constant = kernels_of(judge), *as_variable = kernels_of(s);
                if (layers[i].kernel != NULL) {
                    g_assert_cmpstr(as_variable, ==, as_constant);
                    g_test_message("%s: %s", text, as_constant);
                    g_assert_nonnull(strstr(as_constant, layers[i].kernel));
                    test_assert_close(got->pdata[0], want->pdata[0], 0, 0, text);
                } else {
                    test_assert_close(got->pdata[0], want->pdata[0], 1e-5, 1e-6, text);
                }
                for (const HnVariable *v = variables; v->name != NULL; v++)
                    fill(hn_engine_variable(e, v->name), 100 * run + (uint64_t)v->name[0]);
                hn_engine_wrote(e);
            }
        }
}

/* Nothing is made anew that was not said to have changed; each of two sessions and each of two shapes makes its own;
 * one of the sessions has forgotten the other shape each time. */
static void test_generations(void)
{
    g_autoptr(HnModel) m =
        test_model("opset 17 graph g(%x:f32[N,16,20,20]) -> (%y) { %y = Conv(%x, w:f32[32,16,3,3]) }");
    g_autoptr(HnModel) fixed =
        test_model("opset 17 graph g(%x:f32[N,16,20,20]) -> (%y) { %y = Conv(%x, w:f32[32,16,3,3]) }");
    g_autoptr(HnEngine) e = engine_of(m, (const HnVariable[]){ { .name = "w" }, { .name = NULL } }, NULL);
    g_autoptr(HnSession) a = session_on(e, 1), b = session_on(e, 2);
    for (uint64_t run = 0; run < 4; run++) {
        take_weights(fixed, e);
        g_autoptr(HnSession) judge = test_session(fixed, &hn_backend_cpu, &(HnSessionOptions){ .threads = 1 });
        for (int64_t n = 1; n <= 2; n++) {
            g_autoptr(GPtrArray) in = g_ptr_array_new_with_free_func((GDestroyNotify)hn_tensor_unref);
            g_ptr_array_add(in, test_random(HN_F32, 4, (int64_t[]){ n, 16, 20, 20 }, run));
            g_autoptr(GPtrArray) want = test_run(judge, in), one = test_run(a, in), two = test_run(b, in);
            test_assert_close(one->pdata[0], want->pdata[0], 0, 0, "first session");
            test_assert_close(two->pdata[0], want->pdata[0], 1e-5, 1e-5, "second session");
        }
        fill(hn_engine_variable(e, "w"), run);
        hn_engine_wrote(e);
    }
}

static void test_memory_goes(void)
{
    g_autoptr(HnModel) m =
        test_model("opset 17 graph g(%x:f32[1,16,20,20]) -> (%y) { %y = Conv(%x, w:f32[32,16,3,3]) }");
    g_autoptr(HnBudget) budget = hn_budget_new(0);
    HnEngine *e = engine_of(m, (const HnVariable[]){ { .name = "w" }, { .name = NULL } }, budget);
    const gsize before = hn_budget_used(budget);
    g_assert_cmpuint(before, >=, 32 * 16 * 9 * sizeof(float));
    for (int k = 0; k < 2; k++) {
        g_autoptr(GError) error = NULL;
        g_autoptr(HnSession) s = hn_session_new_on(e, &(HnSessionOptions){ .threads = 1, .budget = budget }, &error);
        g_autoptr(GPtrArray) in = test_inputs(s, 1), out = test_run(s, in);
        HnSessionStats stats;
        hn_session_stats(s, &stats);
        g_assert_cmpuint(stats.packed_bytes, >, 0);
        g_clear_pointer(&out, g_ptr_array_unref);
        g_clear_pointer(&s, hn_session_free);
        g_assert_cmpuint(hn_budget_used(budget), ==, before);
    }
    hn_engine_unref(e);
    g_assert_cmpuint(hn_budget_used(budget), ==, 0);
}

/* --- updates by a run -------------------------------------------------------------------------------------------- */

/* What a model does to its variables in three runs, beside the same done by hand. */
static void test_next(void)
{
    static const struct {
        const char *body;
        gboolean inplace;
    } cases[] = {
        { "%g = Mul(%x, w:f32[6]) %n = Sub(w, %g)", TRUE },  /* the last reader writes over it */
        { "%g = Mul(%x, w:f32[6]) %n = Sub(%g, w)", FALSE }, /* of the second operand it cannot */
        { "%g = Mul(%x, w:f32[6]) %n = Neg(%g)", TRUE },     /* nobody reads it any more */
        { "%n = Mul(w:f32[6], %x) %g = Add(%n, w)", FALSE }, /* somebody reads it later */
        { "%n = Mul(w:f32[6], w) %g = Relu(%x)", TRUE },     /* element by element */
        { "%v = Reshape(w:f32[6], s:i64[1]={6}) %n = ScatterND(w, at:i64[6,1]={5,4,3,2,1,0}, %v) %g = Relu(%x)",
          FALSE },                                          /* another input looks at it */
        { "%g = Relu(%x) %n = Identity(w:f32[6])", FALSE }, /* it stays what it is */
    };
    for (guint i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *text = g_strdup_printf("opset 17 graph g(%%x:f32[6]) -> (%%g, %%n) { %s }", cases[i].body);
        g_autoptr(HnModel) m = test_model(text), fixed = test_model(text);
        g_autoptr(HnEngine) e =
            engine_of(m, (const HnVariable[]){ { .name = "w", .next = "n" }, { .name = NULL } }, NULL);
        g_autoptr(HnSession) s = session_on(e, 1);
        for (uint64_t run = 0; run < 3; run++) {
            take_weights(fixed, e);
            g_autoptr(HnSession) judge = test_session(fixed, &hn_backend_ref, &(HnSessionOptions){ .threads = 1 });
            g_autoptr(GPtrArray) in = test_inputs(judge, run);
            g_autoptr(GPtrArray) want = test_run(judge, in), got = test_run(s, in);
            for (guint k = 0; k < 2; k++)
                test_assert_close(got->pdata[k], want->pdata[k], 1e-6, 0, cases[i].body);
            test_assert_close(hn_engine_variable(e, "w"), want->pdata[1], 1e-6, 0, cases[i].body);
            const HnTensor *n = got->pdata[1];
            g_assert_cmpint(n->data == hn_engine_variable(e, "w")->data, ==,
                            cases[i].inplace || strstr(cases[i].body, "Identity") != NULL);
        }
    }
}

static void note_inplace(const HnStep *s, int depth, gpointer bits)
{
    (void)depth;
    *(guint32 *)bits |= s->n_out > 1 ? s->inplace : 0;
}

/* An optimizer's weights and state, each in its own memory, as long as nobody else reads what was there. */
static void test_next_each(void)
{
    static const struct {
        const char *body;
        guint32 inplace; /* bit k: output k of the optimizer is written over variable k */
    } cases[] = {
        { "%n, %o, %p = hone::AdamW(w:f32[70], m:f32[70], v:f32[70], %x, h) %y = Neg(%x)", 7 },
        { "%y = Add(m:f32[70], v:f32[70]) %n, %o, %p = hone::AdamW(w:f32[70], m, v, %y, h)", 7 },
        { "%n, %o, %p = hone::AdamW(w:f32[70], m:f32[70], v:f32[70], %x, h) %y = Neg(m)", 5 },
        { "%n, %o, %p = hone::AdamW(w:f32[70], m:f32[70], v:f32[70], %x, h) %y = Add(w, v)", 2 },
        { "%n, %o, %p = hone::AdamW(w:f32[70], m:f32[70], v:f32[70], w, h) %y = Neg(%x)", 7 },
        { "%n, %o, %p = hone::AdamW(w:f32[70], m:f32[70], v:f32[70], v, h) %y = Neg(%x)", 3 },
        { "%r = Reshape(w:f32[70], s:i64[1]={70}) %n, %o, %p = hone::AdamW(w, m:f32[70], v:f32[70], %r, h) "
          "%y = Neg(%x)",
          6 },
        { "%o, %n, %p = hone::AdamW(w:f32[70], m:f32[70], v:f32[70], %x, h) %y = Neg(%x)", 4 }, /* crosswise */
        { "%n, %o = hone::Lion(w:f32[70], m:f32[70], %x, h) %p = Abs(v:f32[70]) %y = Neg(%x)", 3 },
        { "%n, %o = hone::Sgd(w:f32[70], m:f32[70], %x, h) momentum=0.5 %p = Abs(v:f32[70]) %y = Neg(%x)", 3 },
        { "%q = Neg(%x) %r = Abs(%x) %i, %j = hone::Lion(%q, %r, %x, h) %n = Add(w:f32[70], %i) "
          "%o = Add(m:f32[70], %j) %p = Abs(v:f32[70]) %y = Neg(%x)",
          3 }, /* of what is between nodes, too */
        { "%n, %o = hone::Sgd(w:f32[70], w, %x, h) momentum=0.5 %p = Abs(v:f32[70]) %y = Neg(m:f32[70])", 1 },
    };
    static const char *const names[] = { "w", "m", "v" };
    for (guint i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *text =
            g_strdup_printf("opset 17 opset hone 1 graph g(%%x:f32[70]) -> (%%y, %%n, %%o, %%p) { %%a = "
                            "Identity(h:f32[4]={0.1,1,1,0.5}) %s }",
                            cases[i].body);
        g_autoptr(HnModel) m = test_model(text), fixed = test_model(text);
        g_autoptr(HnEngine) e = engine_of(m,
                                          (const HnVariable[]){ { .name = "w", .next = "n" },
                                                                { .name = "m", .next = "o" },
                                                                { .name = "v", .next = "p" },
                                                                { .name = NULL } },
                                          NULL);
        for (guint k = 0; k < G_N_ELEMENTS(names); k++)
            for (int64_t j = 0; j < 70; j++)
                hn_tensor_set_f64(hn_engine_variable(e, names[k]), j, 0.25 * (double)(k + 1) + 0.01 * (double)j);
        g_autoptr(HnSession) s = session_on(e, 2);
        for (uint64_t run = 0; run < 3; run++) {
            take_weights(fixed, e);
            g_autoptr(HnSession) judge = test_session(fixed, &hn_backend_ref, &(HnSessionOptions){ .threads = 1 });
            g_autoptr(GPtrArray) in = test_inputs(judge, run);
            g_autoptr(GPtrArray) want = test_run(judge, in), got = test_run(s, in);
            guint32 inplace = 0;
            hn_session_foreach_step(s, note_inplace, &inplace);
            g_assert_cmphex(inplace, ==, cases[i].inplace);
            test_assert_close(got->pdata[0], want->pdata[0], 1e-6, 1e-6, cases[i].body);
            for (guint k = 0; k < G_N_ELEMENTS(names); k++) {
                const HnTensor *now = hn_engine_variable(e, names[k]), *out = got->pdata[k + 1];
                test_assert_close(now, want->pdata[k + 1], 1e-6, 1e-6, cases[i].body);
                if ((inplace >> k & 1) != 0)
                    g_assert_true(out->data == now->data);
            }
        }
    }
}

/* A packed weight that the run itself replaces. */
static void test_next_is_packed(void)
{
    static const char *const text =
        "opset 17 graph g(%x:f32[1,16,20,20]) -> (%y, %n) { %y = Conv(%x, w:f32[32,16,3,3]) "
        "%half = Mul(w, by:f32[]={0.5}) %n = Sub(w, %half) }";
    g_autoptr(HnModel) m = test_model(text), fixed = test_model(text);
    g_autoptr(HnEngine) e = engine_of(m, (const HnVariable[]){ { .name = "w", .next = "n" }, { .name = NULL } }, NULL);
    g_autoptr(HnSession) s = session_on(e, 2);
    for (uint64_t run = 0; run < 4; run++) {
        take_weights(fixed, e);
        g_autoptr(HnSession) judge = test_session(fixed, &hn_backend_cpu, &(HnSessionOptions){ .threads = 2 });
        g_autoptr(GPtrArray) in = test_inputs(judge, run);
        g_autoptr(GPtrArray) want = test_run(judge, in), got = test_run(s, in);
        test_assert_close(got->pdata[0], want->pdata[0], 0, 0, "packed");
        test_assert_close(hn_engine_variable(e, "w"), want->pdata[1], 0, 0, "packed");
    }
}

/* Two that change places, whichever is written first. */
static void test_swap(void)
{
    g_autoptr(HnModel) m = test_model("opset 17 graph g(%x:f32[3]) -> (%y, %n, %o) { %y = Add(%x, w:f32[3]={1,2,3}) "
                                      "%n = Identity(v:f32[3]={4,5,6}) %o = Identity(w) }");
    g_autoptr(HnEngine) e = engine_of(
        m, (const HnVariable[]){ { .name = "w", .next = "n" }, { .name = "v", .next = "o" }, { .name = NULL } }, NULL);
    g_autoptr(HnSession) s = session_on(e, 1);
    for (int run = 1; run <= 3; run++) {
        g_autoptr(GPtrArray) in = test_inputs(s, 1), out = test_run(s, in);
        g_assert_cmpfloat(hn_tensor_get_f64(hn_engine_variable(e, "w"), 0), ==, run % 2 ? 4 : 1);
        g_assert_cmpfloat(hn_tensor_get_f64(hn_engine_variable(e, "v"), 0), ==, run % 2 ? 1 : 4);
    }
}

/* A sub-graph sees what a variable is now. */
static void test_subgraph(void)
{
    g_autoptr(HnModel) m = test_model(
        "opset 17 graph g(%x:f32[3], %c:bool[]) -> (%y) { %k = Add(%x, w:f32[3]={1,1,1}) %y = If(%c) "
        "then_branch=graph () -> (%a) { %a = Mul(%k, w) } else_branch=graph () -> (%b) { %b = Sub(%k, w) } }");
    g_autoptr(HnEngine) e = engine_of(m, (const HnVariable[]){ { .name = "w" }, { .name = NULL } }, NULL);
    g_autoptr(HnSession) s = session_on(e, 1);
    for (int run = 0; run < 4; run++) {
        g_autoptr(GPtrArray) in = g_ptr_array_new_with_free_func((GDestroyNotify)hn_tensor_unref);
        g_ptr_array_add(in, test_tensor("f32[3]={1,2,3}"));
        g_ptr_array_add(in, test_tensor(run % 2 == 0 ? "bool[]={1}" : "bool[]={0}"));
        HnTensor *w = hn_engine_variable(e, "w");
        for (int64_t i = 0; i < 3; i++)
            hn_tensor_set_f64(w, i, run + 1);
        hn_engine_wrote(e);
        g_autoptr(GPtrArray) out = test_run(s, in);
        for (int64_t i = 0; i < 3; i++)
            g_assert_cmpfloat(hn_tensor_get_f64(out->pdata[0], i), ==,
                              run % 2 == 0 ? (double)(i + 2 + run) * (run + 1) : (double)(i + 1));
    }
}

static void count(const HnStep *s, gpointer data)
{
    g_assert_null(data);
    g_atomic_int_inc((gint *)s->state);
}

/* Each is called once, on however many threads; those of a step that is gone are not. */
static void test_renewals(void)
{
    g_autoptr(GArray) renewals = hn_renewals_new();
    gint times[9] = { 0 };
    HnStep steps[G_N_ELEMENTS(times)] = { 0 };
    for (guint i = 0; i < G_N_ELEMENTS(times); i++) {
        steps[i] = (HnStep){ .state = &times[i], .renewals = renewals };
        for (guint k = 0; k <= i % 3; k++)
            hn_step_renews(&steps[i], count, NULL);
    }
    hn_renewals_forget(renewals, &steps[4]);
    hn_renewals_forget(renewals, &steps[8]);
    for (int threads = 1; threads <= 4; threads++)
        hn_renewals_run(renewals, threads);
    for (guint i = 0; i < G_N_ELEMENTS(times); i++)
        g_assert_cmpint(times[i], ==, i == 4 || i == 8 ? 0 : 4 * (gint)(i % 3 + 1));
}

/* --- errors ------------------------------------------------------------------------------------------------------- */

static void test_errors(void)
{
    static const struct {
        HnVariable variables[3];
        const char *feed, *text;
        gint code;
    } cases[] = {
        { { { .name = "nobody" } }, NULL, "'nobody' is no weight of the model, as a variable is", HN_ERROR_USAGE },
        { { { .name = "x" } }, NULL, "'x' is to be fed, and is no variable", HN_ERROR_USAGE },
        { { { .name = "y" } }, NULL, "'y' is no weight of the model, as a variable is", HN_ERROR_USAGE },
        { { { .name = "w" }, { .name = "w" } }, NULL, "'w' is a variable twice", HN_ERROR_USAGE },
        { { { .name = "w", .next = "x" } },
          NULL,
          "'x', which is to replace 'w', is no output of the model",
          HN_ERROR_USAGE },
        { { { .name = "w", .next = "y" } }, NULL, "'y', which is to replace 'w', is of another type", HN_ERROR_SHAPE },
        { { { .name = "w" } }, "w", "'w' is to be fed, and is no variable", HN_ERROR_USAGE },
    };
    for (guint i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(GError) error = NULL;
        g_autoptr(HnModel) m = test_model("opset 17 graph g(%x:f32[2,3]) -> (%y:f32[2,3]) { %y = Add(%x, w:f32[3]) }");
        hn_graph_add_input(m->graph, hn_graph_find(m->graph, "w"));
        g_autoptr(HnDevice) device = hn_device_new(&hn_backend_cpu, NULL);
        const HnEngineOptions o = { .variables = cases[i].variables,
                                    .feeds = (const char *const[]){ cases[i].feed, NULL } };
        g_assert_null(hn_engine_new(m, device, &o, &error));
        g_assert_error(error, HN_ERROR, cases[i].code);
        g_assert_cmpstr(error->message, ==, cases[i].text);
    }
}

/* Of a type that shows only when it is computed. */
static void test_late_error(void)
{
    g_autoptr(HnModel) m = test_model("opset 17 graph g(%x:f32[N]) -> (%y) { %y = Mul(%x, w:f32[1]={2}) }");
    g_autoptr(HnEngine) e = engine_of(m, (const HnVariable[]){ { .name = "w", .next = "y" }, { .name = NULL } }, NULL);
    g_autoptr(HnSession) s = session_on(e, 1);
    for (int64_t n = 1; n <= 2; n++) {
        g_autoptr(GError) error = NULL;
        g_autoptr(HnTensor) x = test_random(HN_F32, 1, &n, 1);
        HnTensor *out = NULL;
        const gboolean ok = hn_session_run(s, &x, &out, &error);
        g_assert_true(ok == (n == 1));
        if (n == 2)
            g_assert_error(error, HN_ERROR, HN_ERROR_SHAPE);
        g_assert_true((out != NULL) == ok);
        hn_tensor_unref(out);
    }
}

int main(int argc, char **argv)
{
    if (test_same_level())
        return 0;
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/variable/layers", test_layers);
    g_test_add_func("/variable/generations", test_generations);
    g_test_add_func("/variable/memory-goes", test_memory_goes);
    g_test_add_func("/variable/next", test_next);
    g_test_add_func("/variable/next-each", test_next_each);
    g_test_add_func("/variable/next-is-packed", test_next_is_packed);
    g_test_add_func("/variable/swap", test_swap);
    g_test_add_func("/variable/subgraph", test_subgraph);
    g_test_add_func("/variable/renewals", test_renewals);
    g_test_add_func("/variable/errors", test_errors);
    g_test_add_func("/variable/late-error", test_late_error);
    return g_test_run();
}
