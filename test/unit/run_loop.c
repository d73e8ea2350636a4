/*
 * Models whose outputs are fed back (run/feedback.h): caches of a fixed size against plans for each shape, rules,
 * tokens.
 */
#include "run_model.h"

#include <string.h>

#include "run/feedback.h"

/* A layer of attention with two query heads for one key head, a mask that is given and one that follows from shapes. */
#define DECODER(more)                                                                          \
    "opset 17\n"                                                                               \
    "graph main(%input_ids:i64[B,S], %attention_mask:i64[B,T], %position_ids:i64[B,S],\n"      \
    "           %past_key_values.0.key:f32[B,1,P,4], %past_key_values.0.value:f32[B,1,P,5])\n" \
    "  -> (%logits, %present.0.key, %present.0.value) {\n"                                     \
    "  one:i64[1]={1} zero:i64[1]={0} two:i64[1]={2} start:i64={0} step:i64={1}\n"             \
    "  %e = Gather(words:f32[11,8], %input_ids)\n"                                             \
    "  %f = Gather(places:f32[2000,8], %position_ids)\n"                                       \
    "  %h = Add(%e, %f)\n"                                                                     \
    "  %q0 = MatMul(%h, wq:f32[8,8])\n"                                                        \
    "  %q1 = Reshape(%q0, qs:i64[4]={0,0,2,4})\n"                                              \
    "  %q = Transpose(%q1) perm=[0,2,1,3]\n"                                                   \
    "  %k0 = MatMul(%h, wk:f32[8,4])\n"                                                        \
    "  %k1 = Unsqueeze(%k0, one)\n"                                                            \
    "  %v0 = MatMul(%h, wv:f32[8,5])\n"                                                        \
    "  %v1 = Unsqueeze(%v0, one)\n"                                                            \
    "  %present.0.key = Concat(%past_key_values.0.key, %k1) axis=2\n"                          \
    "  %present.0.value = Concat(%past_key_values.0.value, %v1) axis=2\n"                      \
    "  %n0 = Shape(%past_key_values.0.key)\n"                                                  \
    "  %n1 = Gather(%n0, two)\n"                                                               \
    "  %n2 = Shape(%attention_mask)\n"                                                         \
    "  %n3 = Gather(%n2, one)\n"                                                               \
    "  %n4 = Squeeze(%n1, zero)\n"                                                             \
    "  %n5 = Squeeze(%n3, zero)\n"                                                             \
    "  %keys = Range(start, %n5, step)\n"                                                      \
    "  %rows0 = Range(%n4, %n5, step)\n"                                                       \
    "  %rows = Unsqueeze(%rows0, one)\n"                                                       \
    "  %seen0 = LessOrEqual(%keys, %rows)\n"                                                   \
    "  %seen = Unsqueeze(%seen0, both:i64[2]={0,1})\n"                                         \
    "  %m0 = Cast(%attention_mask) to=9\n"                                                     \
    "  %m1 = Unsqueeze(%m0, axes:i64[2]={1,2})\n"                                              \
    "  %m2 = And(%seen, %m1)\n"                                                                \
    "  %mask = Where(%m2, none:f32={0}, most:f32={-10000})\n"                                  \
    "  %kt = Transpose(%present.0.key) perm=[0,1,3,2]\n"                                       \
    "  %s0 = MatMul(%q, %kt)\n"                                                                \
    "  %s1 = Mul(%s0, half:f32={0.5})\n"                                                       \
    "  %s2 = Add(%s1, %mask)\n"                                                                \
    "  %p = Softmax(%s2) axis=-1\n"                                                            \
    "  %y0 = MatMul(%p, %present.0.value)\n"                                                   \
    "  %y1 = Transpose(%y0) perm=[0,2,1,3]\n"                                                  \
    "  %y2 = Reshape(%y1, ys:i64[3]={0,0,10})\n"                                               \
    "  %y3 = MatMul(%y2, wo:f32[10,11])\n" more "}\n"

static const char decoder[] = DECODER("  %logits = Mul(%y3, loud:f32={9})\n");

/* Attention as one operator, with a mask and without. */
static const char attention[] =
    "opset 23\n"
    "graph main(%input_ids:i64[1,S], %attention_mask:i64[1,T],\n"
    "           %past_key_values.0.key:f32[1,2,P,4], %past_key_values.0.value:f32[1,2,P,4])\n"
    "  -> (%logits, %present.0.key, %present.0.value) {\n"
    "  %h = Gather(words:f32[11,8], %input_ids)\n"
    "  %q1 = Reshape(%h, qs:i64[4]={0,0,2,4})\n"
    "  %q = Transpose(%q1) perm=[0,2,1,3]\n"
    "  %k0 = MatMul(%h, wk:f32[8,8])\n"
    "  %k1 = Reshape(%k0, qs)\n"
    "  %k = Transpose(%k1) perm=[0,2,1,3]\n"
    "  %present.0.key = Concat(%past_key_values.0.key, %k) axis=2\n"
    "  %present.0.value = Concat(%past_key_values.0.value, %q) axis=2\n"
    "  %m0 = Cast(%attention_mask) to=9\n"
    "  %m = Unsqueeze(%m0, axes:i64[2]={1,2})\n"
    "  %a = Attention(%q, %present.0.key, %present.0.value, %m)\n"
    "  %b = Attention(%a, %present.0.key, %present.0.value)\n"
    "  %y1 = Transpose(%b) perm=[0,2,1,3]\n"
    "  %y2 = Reshape(%y1, ys:i64[3]={0,0,8})\n"
    "  %logits = MatMul(%y2, wo:f32[8,11])\n"
    "}\n";

/* The largest score of all is no sum that zeros could end. */
static const char largest[] = DECODER("  %z = ReduceMax(%s0) axes=[1,2,3] keepdims=1\n"
                                      "  %z1 = Squeeze(%z, two)\n"
                                      "  %logits = Add(%y3, %z1)\n");

typedef struct {
    HnModel *m;
    HnSession *s;
    GArray *feeds;
    HnLoop *l;
} Test;

static Test open_loop(const char *text, const char *const *rules, const HnPicking *picking, int64_t steps, int64_t stop,
                      gboolean plans)
{
    g_autoptr(GError) error = NULL;
    const HnSessionOptions o = { .threads = 1, .lasting = TRUE };
    Test t = { .m = test_model(text) };
    t.s = test_session(t.m, &hn_backend_cpu, &o);
    t.feeds = rules != NULL ? hn_feeds_parse(t.s, rules, &error) : hn_feeds_usual(t.s, picking != NULL);
    g_assert_no_error(error);
    const HnPicking likeliest = { .temperature = 1, .top_p = 1 };
    t.l = hn_loop_new(t.s, t.m,
                      &(HnLoopOptions){ .feeds = t.feeds,
                                        .picking = picking != NULL ? *picking : likeliest,
                                        .steps = steps,
                                        .stop = stop,
                                        .session = o,
                                        .plans = plans });
    return t;
}

static void close_loop(Test *t)
{
    hn_loop_free(t->l);
    g_array_unref(t->feeds);
    hn_session_free(t->s);
    hn_model_free(t->m);
}

static void run_all(Test *t, const char *ids, const char *mask)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(HnTensor) x = test_tensor(ids), m = mask != NULL ? test_tensor(mask) : NULL;
    HnTensor *in[5] = { x, m };
    hn_loop_start(t->l, in, &error);
    g_assert_no_error(error);
    while (!hn_loop_done(t->l) && hn_loop_step(t->l, &error)) {
    }
    g_assert_no_error(error);
}

/* The same tokens, logits and caches whether each step is planned or not; *why: why it is, in the end. */
static void assert_same(const char *text, const char *ids, const char *mask, int64_t steps, char **why)
{
    Test a = open_loop(text, NULL, NULL, steps, -1, TRUE), b = open_loop(text, NULL, NULL, steps, -1, FALSE);
    run_all(&a, ids, mask);
    for (int again = 0; again < 2; again++) { /* the second time with what the first has made */
        run_all(&b, ids, mask);
        g_autoptr(HnTensor) want = hn_loop_tokens(a.l, NULL), got = hn_loop_tokens(b.l, NULL);
        test_assert_close(got, want, 0, 0, "tokens");
        for (int k = 0; k < 3; k++) {
            g_autoptr(HnTensor) x = hn_loop_output(a.l, k, NULL), y = hn_loop_output(b.l, k, NULL);
            test_assert_close(y, x, 1e-4, 1e-4, "outputs");
        }
    }
    *why = g_strdup(hn_loop_plans(b.l));
    close_loop(&a);
    close_loop(&b);
}

static void test_fixed(void)
{
    static const struct {
        const char *ids, *mask;
        int64_t steps;
    } cases[] = {
        { "i64[1,3]={1,2,3}", NULL, 40 },
        { "i64[2,2]={1,2,3,4}", NULL, 12 },
        { "i64[2,3]={1,2,3,4,5,6}", "i64[2,3]={1,1,1,0,1,1}", 12 },
        { "i64[1,1]={7}", NULL, 600 }, /* more than there is room for at first */
    };
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *why = NULL;
        assert_same(decoder, cases[i].ids, cases[i].mask, cases[i].steps, &why);
        g_assert_cmpstr(why, ==, NULL);
    }
}

static void test_attention(void)
{
    g_autofree char *why = NULL;
    assert_same(attention, "i64[1,3]={1,2,3}", "i64[1,3]={1,0,1}", 20, &why);
    g_assert_cmpstr(why, ==, NULL);
}

static void test_not_fixed(void)
{
    g_autofree char *why = NULL;
    assert_same(largest, "i64[1,3]={1,2,3}", NULL, 8, &why);
    g_assert_nonnull(why);
    g_assert_nonnull(strstr(why, "ReduceMax"));
}

static void test_state(void)
{
    g_autoptr(GError) error = NULL;
    static const char *const rules[] = { "y=x", NULL };
    Test t = open_loop("opset 17\ngraph main(%x:f32[3], %by:f32[3]) -> (%y, %z) {\n"
                       "  %y = Mul(%x, %by)\n  %z = Neg(%x)\n}\n",
                       rules, NULL, 3, -1, FALSE);
    g_autoptr(HnTensor) x = test_tensor("f32[3]={1,2,3}"), by = test_tensor("f32[3]={2,2,3}");
    HnTensor *in[2] = { x, by };
    g_assert_true(hn_loop_start(t.l, in, &error));
    while (!hn_loop_done(t.l))
        g_assert_true(hn_loop_step(t.l, &error));
    g_autoptr(HnTensor) want = test_tensor("f32[3]={8,16,81}"), y = hn_loop_output(t.l, 0, NULL);
    g_autoptr(HnTensor) last = test_tensor("f32[3]={-4,-8,-27}"), z = hn_loop_output(t.l, 1, NULL);
    test_assert_close(y, want, 0, 0, "the state");
    test_assert_close(z, last, 0, 0, "of the last step");
    g_assert_null(hn_loop_tokens(t.l, NULL));
    close_loop(&t);
}

static void test_tokens(void)
{
    Test a = open_loop(decoder, NULL, NULL, 30, -1, FALSE);
    run_all(&a, "i64[1,3]={1,2,3}", NULL);
    g_autoptr(HnTensor) all = hn_loop_tokens(a.l, NULL);
    const int64_t stop = hn_tensor_get_i64(all, 6);
    int64_t first = 0;
    while (hn_tensor_get_i64(all, first) != stop)
        first++;
    Test b = open_loop(decoder, NULL, NULL, 30, stop, FALSE);
    run_all(&b, "i64[1,3]={1,2,3}", NULL);
    g_assert_cmpint(hn_loop_steps(b.l), ==, first + 1);
    const HnPicking one = { .temperature = 5, .top_p = 1, .seed = 1 },
                    other = { .temperature = 5, .top_p = 1, .seed = 2 };
    Test c = open_loop(decoder, NULL, &one, 30, -1, FALSE), d = open_loop(decoder, NULL, &other, 30, -1, FALSE);
    run_all(&c, "i64[1,3]={1,2,3}", NULL);
    run_all(&d, "i64[1,3]={1,2,3}", NULL);
    g_autoptr(HnTensor) x = hn_loop_tokens(c.l, NULL), y = hn_loop_tokens(d.l, NULL);
    g_assert_cmpint(memcmp(x->data, y->data, x->bytes), !=, 0);
    run_all(&c, "i64[1,3]={1,2,3}", NULL);
    g_autoptr(HnTensor) again = hn_loop_tokens(c.l, NULL);
    test_assert_close(again, x, 0, 0, "the same seed");
    Test *const tests[] = { &a, &b, &c, &d };
    for (gsize i = 0; i < G_N_ELEMENTS(tests); i++)
        close_loop(tests[i]);
}

static void test_pick(void)
{
    const float x[5] = { 1, 3, 2, 3, NAN };
    int32_t room[5];
    const HnPicking all = { .temperature = 1, .top_p = 1 }, two = { .temperature = 1, .top_p = 1, .top_k = 2 };
    const HnPicking half = { .temperature = 1, .top_p = 0.5 };
    g_assert_cmpint(hn_pick(x, 5, &all, FALSE, 0, room), ==, 1); /* the first of equals, never NaN */
    g_assert_cmpint(hn_pick(x + 4, 1, &all, TRUE, 0.5, room), ==, 0);
    /* e^0, e^-1, e^0, e^-2 of their sum: 0.400, 0.400, 0.147, 0.054 */
    g_assert_cmpint(hn_pick(x, 4, &all, TRUE, 0.39, room), ==, 1);
    g_assert_cmpint(hn_pick(x, 4, &all, TRUE, 0.41, room), ==, 3);
    g_assert_cmpint(hn_pick(x, 4, &all, TRUE, 0.81, room), ==, 2);
    g_assert_cmpint(hn_pick(x, 4, &all, TRUE, 0.99, room), ==, 0);
    g_assert_cmpint(hn_pick(x, 4, &two, TRUE, 0.99, room), ==, 3);
    g_assert_cmpint(hn_pick(x, 4, &half, TRUE, 0.99, room), ==, 3);
    g_assert_cmpint(hn_pick(x, 4, &half, TRUE, 0.49, room), ==, 1);
}

static void test_rules(void)
{
    static const struct {
        const char *rule, *error;
    } bad[] = {
        { "logits", "is not OUTPUT=INPUT" },
        { "nothing=input_ids", "no output 'nothing'" },
        { "present.*=past.*", "has an input 'past.*'" },
        { "logits:argmax=ids", "no input 'ids'" },
        { "@twos=attention_mask", "@ones" },
        { "@ones=mask", "no input 'mask'" },
    };
    static const char *const rules[] = { "present.*.*=past_key_values.*.*", "logits:sample=input_ids",
                                         "@ones=attention_mask", "@positions=position_ids", NULL };
    static const char *const twice[] = { "present.0.key=past_key_values.0.key", "present.*=past_key_values.*", NULL };
    g_autoptr(HnModel) m = test_model(decoder);
    g_autoptr(HnSession) s = test_session(m, &hn_backend_cpu, &(HnSessionOptions){ .threads = 1 });
    for (gsize i = 0; i < G_N_ELEMENTS(bad); i++) {
        const char *const one[] = { bad[i].rule, NULL };
        g_autoptr(GError) error = NULL;
        g_assert_null(hn_feeds_parse(s, one, &error));
        g_assert_error(error, HN_ERROR, HN_ERROR_USAGE);
        g_assert_nonnull(strstr(error->message, bad[i].error));
    }
    g_autoptr(GError) error = NULL;
    g_assert_null(hn_feeds_parse(s, twice, &error));
    g_assert_nonnull(strstr(error->message, "fed twice"));
    g_autoptr(GArray) said = hn_feeds_parse(s, rules, NULL), usual = hn_feeds_usual(s, TRUE);
    g_assert_cmpuint(said->len, ==, 5);
    g_assert_cmpuint(usual->len, ==, 5);
    for (int i = 0; i < 5; i++) {
        const HnFeed *a = hn_feeds_of(said, i), *b = hn_feeds_of(usual, i);
        g_assert_true(a->kind == b->kind && a->out == b->out && a->sample == b->sample);
    }
}

static void test_missing(void)
{
    g_autoptr(GError) error = NULL;
    Test t = open_loop(decoder, NULL, NULL, 3, -1, FALSE);
    HnTensor *in[5] = { NULL };
    g_assert_false(hn_loop_start(t.l, in, &error));
    g_assert_error(error, HN_ERROR, HN_ERROR_USAGE);
    close_loop(&t);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/run/loop/fixed", test_fixed);
    g_test_add_func("/run/loop/attention", test_attention);
    g_test_add_func("/run/loop/not-fixed", test_not_fixed);
    g_test_add_func("/run/loop/state", test_state);
    g_test_add_func("/run/loop/tokens", test_tokens);
    g_test_add_func("/run/loop/pick", test_pick);
    g_test_add_func("/run/loop/rules", test_rules);
    g_test_add_func("/run/loop/missing", test_missing);
    return g_test_run();
}
