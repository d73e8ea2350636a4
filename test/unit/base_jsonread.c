/* JSON that comes from elsewhere: what is taken, what is refused, and that neither takes long. */
#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/jsonread.h"

#define MOST ((gsize)1 << 20)

static JsonNode *parsed(const char *text, GError **error)
{
    return hn_json_read(text, strlen(text), MOST, NULL, error);
}

/* What comes out, written again; "" is short for the same. */
static void test_taken(void)
{
    static const struct {
        const char *in, *out;
    } cases[] = {
        { "null", "" },
        { " [ ] \n", "[]" },
        { "{}", "" },
        { "[1,-2,0,true,false,null,\"\"]", "" },
        { "9223372036854775807", "" },
        { "-9223372036854775808", "" },
        { "-0.5e+2", "-50.0" },
        { "1E5", "100000.0" },
        { "{\"a\":{\"a\":[{\"a\":1},{\"a\":2}]}}", "" },
        { "\"\\ud83d\\ude00\\u00e4\\/\"", "\"\xf0\x9f\x98\x80\xc3\xa4/\"" },
        { "\"\\\"\\\\\\n /* \"", "" },
    };
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(GError) error = NULL;
        g_autoptr(JsonNode) n = parsed(cases[i].in, &error);
        g_assert_no_error(error);
        g_autofree char *text = json_to_string(n, FALSE);
        g_assert_cmpstr(text, ==, *cases[i].out ? cases[i].out : cases[i].in);
    }
}

static void test_refused(void)
{
    static const struct {
        const char *text, *words;
    } cases[] = {
        { "", "empty" },
        { " ", "no value" },
        { "[", "no value" },
        { "[1", "neither ',' nor ']'" },
        { "[1,]", "no value" },
        { "[1 2]", "neither" },
        { "[]]", "behind the end" },
        { "{\"a\"}", "no colon" },
        { "{\"a\":1,}", "no string" },
        { "{a:1}", "no string" },
        { "{\"a\":1]", "neither ',' nor '}'" },
        { "'x'", "no value" },
        { "nul", "unknown word" },
        { "NaN", "no value" },
        { "Infinity", "no value" },
        { "-", "no value" },
        { "01", "behind the end" },
        { "0x10", "behind the end" },
        { "1.", "no digit" },
        { "1e", "no digit" },
        { "+1", "no value" },
        { "1 /* one */", "behind the end" },
        { "// one\n1", "no value" },
        { "1 2", "behind the end" },
        { "9223372036854775808", "too large" }, /* which json-glib reads as -9223372036854775808 */
        { "99999999999999999999", "too large" },
        { "-1e999", "too large" },
        { "\"a", "without end" },
        { "\"\\x\"", "unknown escape" },
        { "\"\\u12g4\"", "hexadecimal" },
        { "\"a\\u0000b\"", "NUL" }, /* as which the rest would be lost */
        { "\"\\ud800\"", "half a character" },
        { "\"\\udc00\"", "half a character" },
        { "\"\\ud800\\u0041\"", "half a character" },
        { "\"\n\"", "control character" },
        { "\"\xff\"", "no UTF-8" },
        { "\xef\xbb\xbf{}", "no value" },
        { "{\"a\":1,\"b\":{\"a\":2},\"a\":1}", "two members of one name" },
        { "[{\"a\":1,\"\\u0061\":1}]", "two members of one name" },
    };
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(GError) error = NULL;
        g_assert_null(parsed(cases[i].text, &error));
        g_assert_error(error, HN_ERROR, HN_ERROR_FORMAT);
        if (strstr(error->message, cases[i].words) == NULL)
            g_error("'%s': '%s' does not say '%s'", cases[i].text, error->message, cases[i].words);
    }
    g_autoptr(GError) error = NULL;
    g_assert_null(hn_json_read("[\0]", 3, MOST, NULL, &error));
    g_assert_error(error, HN_ERROR, HN_ERROR_FORMAT);
}

/* `levels` times `open`, a value, and what closes it. */
static char *nested(const char *open, char close, int levels)
{
    GString *text = g_string_new(NULL);
    for (int i = 0; i < levels; i++)
        g_string_append(text, open);
    g_string_append_c(text, '1');
    for (int i = 0; i < levels; i++)
        g_string_append_c(text, close);
    return g_string_free(text, FALSE);
}

static void test_deep(void)
{
    static const struct {
        const char *open;
        char close;
        int levels;
    } cases[] = { { "[", ']', 1 }, { "{\"a\":", '}', 1 }, { "[{\"a\":", '}', 2 } };
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(GError) error = NULL;
        g_autofree char *endless = nested(cases[i].open, cases[i].close, 100000);
        g_assert_null(parsed(endless, &error));
        g_assert_error(error, HN_ERROR, HN_ERROR_FORMAT);
        g_assert_nonnull(strstr(error->message, "more than 100 levels"));
        if (cases[i].levels > 1)
            continue;
        g_autofree char *deepest = nested(cases[i].open, cases[i].close, HN_JSON_DEPTH);
        g_autoptr(JsonNode) n = parsed(deepest, NULL);
        g_assert_nonnull(n);
        g_autofree char *more = nested(cases[i].open, cases[i].close, HN_JSON_DEPTH + 1);
        g_assert_null(parsed(more, NULL));
    }
}

static void test_large(void)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(GString) text = g_string_new("[0");
    g_autoptr(HnBudget) budget = hn_budget_new(1 << 20);
    while (text->len < 4 * HN_JSON_VALUES)
        g_string_append(text, ",0");
    g_string_append_c(text, ']');
    g_assert_null(hn_json_read(text->str, text->len, text->len - 1, NULL, &error));
    g_assert_nonnull(strstr(error->message, "bytes"));
    g_clear_error(&error);
    g_assert_null(hn_json_read(text->str, text->len, text->len, NULL, &error));
    g_assert_nonnull(strstr(error->message, "values"));
    g_clear_error(&error);
    g_string_truncate(text, 20000); /* "[0,0,...,0" */
    g_string_append_c(text, ']');
    g_assert_null(hn_json_read(text->str, text->len, text->len, budget, &error));
    g_assert_error(error, HN_ERROR, HN_ERROR_BUDGET);
    g_assert_cmpuint(hn_budget_used(budget), ==, 0);
    g_autoptr(JsonNode) n = hn_json_read(text->str, text->len, text->len, NULL, NULL);
    g_assert_nonnull(n);
}

/* What has no end is not read to it. */
static void test_file(void)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(HnBudget) budget = hn_budget_new(1 << 16);
    g_assert_null(hn_json_read_file("/dev/zero", MOST, NULL, &error));
    g_assert_error(error, HN_ERROR, HN_ERROR_FORMAT);
    g_assert_cmpstr(error->message, ==, "'/dev/zero' has more than 1048576 bytes");
    g_clear_error(&error);
    g_assert_null(hn_json_read_file("/dev/zero", MOST, budget, &error));
    g_assert_error(error, HN_ERROR, HN_ERROR_BUDGET);
    g_clear_error(&error);
    g_assert_null(hn_json_read_file("/nowhere", MOST, NULL, &error));
    g_assert_error(error, HN_ERROR, HN_ERROR_IO);
}

static void test_members(void)
{
    g_autoptr(JsonNode) n = parsed("{\"s\":\"x\",\"n\":1.5,\"o\":{},\"a\":[],\"t\":true,\"z\":null}", NULL);
    JsonObject *o = hn_json_object(n);
    double x;
    g_assert_cmpstr(hn_json_string_at(o, "s"), ==, "x");
    g_assert_null(hn_json_string_at(o, "n"));
    g_assert_null(hn_json_string_at(NULL, "s"));
    g_assert_true(hn_json_number_at(o, "n", &x) && x == 1.5);
    g_assert_false(hn_json_number_at(o, "s", &x));
    g_assert_nonnull(hn_json_object_at(o, "o"));
    g_assert_null(hn_json_object_at(o, "a"));
    g_assert_nonnull(hn_json_array_at(o, "a"));
    g_assert_true(hn_json_is_switch(hn_json_at(o, "t")));
    g_assert_false(hn_json_is_number(hn_json_at(o, "z")));
    g_assert_null(hn_json_at(o, "q"));
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/base/jsonread/taken", test_taken);
    g_test_add_func("/base/jsonread/refused", test_refused);
    g_test_add_func("/base/jsonread/deep", test_deep);
    g_test_add_func("/base/jsonread/large", test_large);
    g_test_add_func("/base/jsonread/file", test_file);
    g_test_add_func("/base/jsonread/members", test_members);
    return g_test_run();
}
