/* ir/text: what is printed reads back as the same; bad text is refused with its line; noise does no harm. */
#include "ir/ir_text.h"

#include <string.h>

#include "base/error.h"
#include "base/rng.h"

static char *print(const HnModel *m, int64_t max)
{
    GString *s = g_string_new(NULL);
    hn_model_print(m, max, s);
    return g_string_free(s, FALSE);
}

static HnModel *parse(const char *text)
{
    g_autoptr(GError) error = NULL;
    HnModel *m = hn_model_parse(text, NULL, &error);
    g_assert_no_error(error);
    g_assert_true(hn_model_verify(m, &error));
    g_assert_no_error(error);
    return m;
}

/* Parses `text`, expects `want` back (NULL: the same), and that once more. */
static void check(const char *text, const char *want)
{
    g_autofree char *why = NULL;
    g_autoptr(HnModel) m = parse(text);
    g_autofree char *once = print(m, -1);
    g_assert_cmpstr(once, ==, want ? want : text);
    g_autoptr(HnModel) again = parse(once);
    if (!hn_model_equal(m, again, &why))
        g_error("%s", why);
    g_autofree char *twice = print(again, -1);
    g_assert_cmpstr(twice, ==, once);
}

static const char everything[] =
    "ir 8\n"
    "opset 17\n"
    "opset com.acme 2\n"
    "function com.acme::Twice(%a) -> (%b) alpha beta=1.0 {\n"
    "  opset 17\n"
    "  %b = Scale(%a) scale=@alpha:float\n"
    "}\n"
    "graph main(%x:f32[N,8,4,2*N+1], %s:seq(f32[...]), %m:map(i64,f32[?]), %q:?) -> (%y:f32[N,8,?,?], %z) {\n"
    "  late:f32[2]={1.0,-2.5}\n"
    "  %1:f32['batch size',8] = Conv(%x, w:f32[1,1]={0.25}, -) pads=[1,1,1,1] mode='a\\'b\\\\\\n\\x00' @'first'\n"
    "  %\"odd name:0\", -, %\"graph\" = com.acme::Split(%1, b:i64[]={-3}, w) f=1.0 g=-inf i=-7 l=[1.0,2.5] e=[] "
    "fe=floats[] se=strings[] names=['a','b'] t=f16[2]={1.0,nan} ts=[bool[2]={true,false},u64={18446744073709551615}]\n"
    "  %y = \"Odd Op\"(%\"odd name:0\", sp:sparse[3,4](f32[2]={1.0,2.0},i64[2]={0,5})) "
    "k=sparse[2](i8[1]={1},i64[1]={0}) ty=type(opt(f32[2])) tys=[type(string[]),type(sparse(f32[3]))] none=? "
    "st=string[2]={'x','\\xff'} c=c64[2]={1.0,2.0,3.0,4.0} i4=i4[3]={-8,7,0}\n"
    "  %z = If(%\"graph\") then=graph yes() -> (%t) {\n"
    "    %t = Mul(%1, late)\n"
    "  } else=graph() -> (%1) {\n"
    "  }\n"
    "  - = Sink(%z) bodies=[graph(%i:i64[]) -> (%i) {\n"
    "  },graph() -> () {\n"
    "  }]\n"
    "}\n";

static void test_round_trip(void)
{
    g_autofree char *normal = NULL;
    GString *s = g_string_new(everything); /* the one shorthand in there */
    g_string_replace(s, "u64={", "u64[]={", 0);
    normal = g_string_free(s, FALSE);
    check(everything, normal);
}

static void test_short(void)
{
    check("opset 17 # newest\n"
          "%1 = Conv(%x:f32[1,3,8,8], w':f32[1,3,1,1]={1,2,3}, -) pads=[0,0,0,0]\n"
          "%y, %z = Split(%1, %n)\n",
          "ir 8\nopset 17\n"
          "graph main(%x:f32[1,3,8,8], %n) -> (%y, %z) {\n"
          "  %1 = Conv(%x, w':f32[1,3,1,1]={1.0,2.0,3.0}, -) pads=[0,0,0,0]\n"
          "  %y, %z = Split(%1, %n)\n"
          "}\n");
    /* a domain that reads as a number keeps its quotes */
    check("opset 7 opset \"7\" 6 opset \"inf\" 1 opset \"3a\" 2 graph main() -> () {}",
          "ir 8\nopset 7\nopset \"7\" 6\nopset \"inf\" 1\nopset \"3a\" 2\ngraph main() -> () {\n}\n");
    g_autoptr(HnModel) m = parse("%y = Add(%x, w:f32[2,3]) %z = Mul(%y, v:u8[4]=fill(3,5,6), w)");
    HnValue *w = hn_graph_find(m->graph, "w"), *v = hn_graph_find(m->graph, "v");
    g_assert_cmpint(w->weight->n, ==, 6);
    g_assert_cmpuint(w->users->len, ==, 2);
    g_assert_cmpint(hn_tensor_get_i64(v->weight, 3), ==, 5);
    g_assert_cmpfloat(hn_tensor_get_f64(w->weight, 0), !=, hn_tensor_get_f64(w->weight, 1));
    g_autoptr(HnModel) same = parse("%y = Add(%x, w:f32[2,3])");
    g_assert_true(hn_tensor_equal(w->weight, hn_graph_find(same->graph, "w")->weight)); /* from the name alone */
    g_autofree char *text = print(m, 4);
    g_assert_nonnull(strstr(text, "w:f32[2,3])")); /* too long to show */
    g_assert_nonnull(strstr(text, "v:u8[4]={5,5,5,5}"));
}

static void refused(const char *text, HnError code, const char *message)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(HnBudget) budget = hn_budget_new(1 << 20);
    g_assert_null(hn_model_parse(text, budget, &error));
    g_assert_error(error, HN_ERROR, (int)code);
    if (message)
        g_assert_cmpstr(error->message, ==, message);
    g_assert_cmpuint(hn_budget_used(budget), ==, 0);
}

static void test_refused(void)
{
    refused("%y = Add(%x,\n  w)", HN_ERROR_FORMAT, "line 2: weight 'w' is used before it is declared");
    refused("%y = Add(%x, )", HN_ERROR_FORMAT, "line 1: expected a name but found ')'");
    refused("%y = Add(%x) a=1 a=2", HN_ERROR_FORMAT, "line 1: attribute 'a' is given twice");
    refused("%y = Add(%x) a=[1,'b']", HN_ERROR_FORMAT, "line 1: the list 'a' mixes kinds");
    refused("%y = Add(%x) a='b", HN_ERROR_FORMAT, NULL);
    refused("%y = Add(%x) a=", HN_ERROR_FORMAT, "line 1: expected a type but found 'the end'");
    refused("%y = Add(%x) a=9223372036854775808", HN_ERROR_FORMAT, "line 1: a number is too large");
    refused("%y = Add(%x) a=i8={128}", HN_ERROR_FORMAT, "line 1: 128 does not fit into i8");
    refused("%y = Add(%x) a=f32[2]={1}", HN_ERROR_FORMAT, "line 1: expected ',' but found '}'");
    refused("%y = Add(%x) a=f32[N]", HN_ERROR_FORMAT, "line 1: a tensor needs fixed dimensions");
    refused("%y = Add(%x) a=f32[-1]", HN_ERROR_FORMAT, "line 1: a tensor needs fixed dimensions");
    refused("w:f32[1]\nw:f32[1]", HN_ERROR_FORMAT, "line 2: weight 'w' is declared twice");
    refused("w:f32[10000000]", HN_ERROR_BUDGET, NULL);
    refused("w:f32[4611686018427387904,4]", HN_ERROR_SHAPE, NULL);
    refused("graph main(%x) -> (%x) { } more", HN_ERROR_FORMAT, "line 1: there is more text behind the graph");
    refused("graph main(%x) -> (%x) {", HN_ERROR_FORMAT, NULL);
    refused("graph main(-) -> () {}", HN_ERROR_FORMAT, NULL);
    refused("opset", HN_ERROR_FORMAT, NULL);
    GString *deep = g_string_new(NULL);
    for (int i = 0; i < 10000; i++)
        g_string_append(deep, "%y = If() a=graph() -> () {");
    refused(deep->str, HN_ERROR_FORMAT, "line 1: graphs are nested too deep");
    g_string_assign(deep, "%y = Add(%x:");
    for (int i = 0; i < 10000; i++)
        g_string_append(deep, "seq(");
    refused(deep->str, HN_ERROR_FORMAT, "line 1: types are nested too deep");
    g_string_free(deep, TRUE);
}

static void test_noise(void)
{
    HnRng rng = hn_rng(5);
    gsize n = strlen(everything), read = 0;
    for (int round = 0; round < 6000; round++) {
        g_autofree char *text = g_strdup(everything);
        g_autoptr(HnBudget) budget = hn_budget_new(1 << 20);
        g_autoptr(GError) error = NULL;
        if (round < (int)n)
            text[round] = '\0'; /* cut everywhere */
        for (int k = (int)hn_rng_int(&rng, 0, 3); k > 0; k--) {
            gsize at = (gsize)hn_rng_int(&rng, 0, (int64_t)n - 1), from = (gsize)hn_rng_int(&rng, 0, (int64_t)n - 1);
            text[at] = hn_rng_int(&rng, 0, 9) ? everything[from] : (char)hn_rng_int(&rng, 1, 255);
        }
        g_autoptr(HnModel) m = hn_model_parse(text, budget, &error);
        g_assert_true(!m == (error != NULL));
        if (!m)
            continue;
        read++;
        g_autofree char *out = print(m, -1);
        g_assert_true(hn_model_verify(m, &error) || error);
    }
    g_assert_cmpuint(read, >, 100);
}

static void test_attrs(void)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(HnModel) m = hn_model_new();
    HnNode *n = hn_graph_add_node(m->graph, -1, "Pad", NULL, NULL);
    g_assert_true(hn_node_parse_attrs(n, "axis=1 alpha=0.5 pads=[0,1] mode='linear' value=f32[1]={3}", NULL, &error));
    g_assert_cmpint(hn_node_attr(n, "pads")->ints[1], ==, 1);
    g_assert_cmpfloat(hn_node_attr(n, "alpha")->f, ==, 0.5f);
    g_assert_false(hn_node_parse_attrs(n, "beta=1 )", NULL, &error));
    g_assert_error(error, HN_ERROR, HN_ERROR_FORMAT);
    g_clear_error(&error);
    const char *text = "i64[2]={3,4} f32";
    g_autoptr(HnTensor) a = hn_tensor_parse(&text, NULL, &error), b = NULL;
    g_assert_cmpint(hn_tensor_get_i64(a, 1), ==, 4);
    b = (text++, hn_tensor_parse(&text, NULL, &error));
    g_assert_cmpint(b->n, ==, 1);
    g_assert_cmpstr(text, ==, "");
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/ir/text/round-trip", test_round_trip);
    g_test_add_func("/ir/text/short", test_short);
    g_test_add_func("/ir/text/refused", test_refused);
    g_test_add_func("/ir/text/noise", test_noise);
    g_test_add_func("/ir/text/attrs", test_attrs);
    return g_test_run();
}
