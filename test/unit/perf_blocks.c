/* Blocks of profiles: by the scopes in names, else by places where one value alone is on its way. */
#include "perf/blocks.h"
#include "run_model.h"

typedef struct {
    HnSession *s;
    GPtrArray *in;
} Runner;

static gboolean run_once(gpointer data, G_GNUC_UNUSED guint64 i, G_GNUC_UNUSED GError **error)
{
    const Runner *r = data;
    g_autoptr(GPtrArray) out = test_run(r->s, r->in);
    return out->len > 0;
}

/* "name(rows) ..." of the blocks of a profile of the model, whose nodes have these names; NULL: none */
static char *blocks_of(const char *text, const char *const *names)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(HnModel) m = test_model(text);
    for (guint i = 0; names && i < m->graph->nodes->len; i++)
        ((HnNode *)m->graph->nodes->pdata[i])->name = g_strdup(names[i]);
    g_autoptr(HnSession) s = test_session(m, &hn_backend_ref, &(HnSessionOptions){ .threads = 1 });
    g_autoptr(GPtrArray) in = test_inputs(s, 1);
    g_autoptr(GString) out = g_string_new(NULL);
    Runner r = { s, in };
    HnProfile p;
    hn_profile_init(&p, s);
    g_assert_true(hn_profile_measure(&p, &(HnProfileOptions){ .run = run_once, .data = &r, .runs = 3 }, NULL, &error));
    hn_profile_finish(&p, NULL, NULL);
    g_autoptr(GPtrArray) blocks = hn_profile_blocks(&p);
    for (guint i = 0; i < blocks->len; i++) {
        const HnProfileBlock *b = blocks->pdata[i];
        g_assert_cmpint(b->parent, <, (int)i);
        g_string_append_printf(out, "%s%s(%u)", i ? ", " : "", b->name, b->rows->len);
        if (b->parent >= 0)
            g_string_append_printf(out, " in %s", ((HnProfileBlock *)blocks->pdata[b->parent])->name);
    }
    hn_profile_clear(&p);
    return g_strdup(out->str);
}

static void check(const char *text, const char *const *names, const char *want)
{
    g_autofree char *got = blocks_of(text, names);
    g_assert_cmpstr(got, ==, want);
}

static void test_scopes(void)
{
    const char *chain = "opset 17 graph g(%x:f32[4]) -> (%y) { %1 = Neg(%x) %2 = Exp(%1) %3 = Neg(%2) %4 = Exp(%3) "
                        "%y = Sin(%4) }";
    /* one within the other; of /m and /m/enc with the same rows the inner one; none of a single row */
    check(chain,
          (const char *const[]){ "/m/enc/l0/neg", "/m/enc/l0/exp", "/m/enc/l1/neg", "/m/enc/l1/exp", "/m/enc/out" },
          "/m/enc(5), /m/enc/l0(2) in /m/enc, /m/enc/l1(2) in /m/enc");
    /* names that begin alike are no scope; a slash at either end has nothing before or behind it */
    check(chain, (const char *const[]){ "a/1", "ab/", "a/3", "/ab", "a/4" }, "a(3)");
    /* some with scopes are enough */
    check(chain, (const char *const[]){ "enc/1", "enc/2", "enc/3", "neg", "exp" }, "enc(3)");
}

/* Two residual blocks and what is around them; a mask that all of them read does not join them. */
static void test_graph(void)
{
    const char *text = "opset 17 graph g(%x:f32[4], %m:f32[4]) -> (%y) { %0 = Neg(%m) %a = Exp(%x) "
                       "%1 = Sin(%a) %2 = Mul(%1, %0) %b = Add(%2, %a) "
                       "%3 = Cos(%b) %4 = Mul(%3, %0) %c = Add(%4, %b) %y = Neg(%c) }";
    const char *const names[] = { "mask", "stem", "sin", "mul1", "add1", "cos", "mul2", "add2", "head" };
    check(text, names, "sin .. add1(3), cos .. add2(3)");
    /* a chain has no blocks */
    check("opset 17 graph g(%x:f32[4]) -> (%y) { %1 = Neg(%x) %2 = Exp(%1) %y = Sin(%2) }", NULL, "");
    /* of one node in scopes nothing follows for the others */
    const char *const mixed[] = { "a/mask", "a/stem", "sin", "mul1", "add1", "cos", "mul2", "add2", "head" };
    check(text, mixed, "sin .. add1(3), cos .. add2(3)");
}

/* What follows from shapes is on its way, too, but says nothing. */
static void test_shapes(void)
{
    check("opset 17 graph g(%x:f32[2,4]) -> (%y) { %a = Exp(%x) %s = Shape(%a) %1 = Sin(%a) %b = Add(%1, %a) "
          "%2 = Cos(%b) %3 = Reshape(%2, %s) %c = Add(%3, %b) %d = Neg(%c) %y = Exp(%d) }",
          (const char *const[]){ "stem", "shape", "sin", "add1", "cos", "reshape", "add2", "head", "end" },
          "sin .. add1(2), cos .. add2(2)");
}

/* A loop is a block of itself and what runs in it. */
static void test_holders(void)
{
    check("opset 17 graph g(%x:f32[64]) -> (%y) { %1 = Neg(%x) %2 = Exp(%1) %y = Loop(m:i64={5}, -, %2) "
          "body=graph(%i:i64, %c:bool, %s:f32[64]) -> (%go, %next) { %go = Identity(%c) %t = Add(%s, %x) "
          "%next = Neg(%t) } }",
          (const char *const[]){ "a", "b", "/dec/loop" }, "/dec/loop(3)");
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/blocks/scopes", test_scopes);
    g_test_add_func("/blocks/graph", test_graph);
    g_test_add_func("/blocks/shapes", test_shapes);
    g_test_add_func("/blocks/holders", test_holders);
    return g_test_run();
}
