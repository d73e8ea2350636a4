/* Patterns over names: what people write, and what would not end. */
#include <string.h>
#include <time.h>

#include "base/error.h"
#include "base/regex.h"

static double cpu_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void test_find(void)
{
    static const struct {
        const char *pattern, *name;
        gboolean found;
    } cases[] = {
        { "conv", "a.conv1", TRUE },
        { "^conv", "a.conv1", FALSE },
        { "scores|conv2", "conv2", TRUE },
        { "", "x", TRUE },
        { "^$", "", TRUE },
        { "a.\\.", "a\xff.", TRUE },

        { "\xc3\xa4", "\xc3\xa4", TRUE },
    };
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(GError) error = NULL;
        g_autoptr(HnRegex) r = hn_regex_new(cases[i].pattern, &error);
        gboolean found = !cases[i].found;
        g_assert_no_error(error);
        g_assert_true(hn_regex_find(r, cases[i].name, &found, &error));
        g_assert_cmpint(found, ==, cases[i].found);
    }
}

/* What people write is within the limits, on long names and many of them. */
static void test_ordinary(void)
{
    static const char *const patterns[] = { ".*attn.*weight.*", "layers?\\.(0|1|2|11)\\..*(query|key)",
                                            "^.*/MatMul_\\d+$", "(?i)embed.*norm", "a.*b.*c$" };
    g_autoptr(GString) name = g_string_new(NULL);
    while (name->len < 180)
        g_string_append(name, "/model/layers.7/self_attn/");
    for (gsize i = 0; i < G_N_ELEMENTS(patterns); i++) {
        g_autoptr(GError) error = NULL;
        g_autoptr(HnRegex) r = hn_regex_new(patterns[i], &error);
        gboolean found;
        g_assert_no_error(error);
        g_assert_true(hn_regex_find(r, name->str, &found, &error));
        g_assert_no_error(error);
    }
}

static void test_without_end(void)
{
    static const char *const patterns[] = { "(a+)+$",
                                            "(a*)*$",
                                            "(a|a)*$",
                                            "([^!]*[^!]*[^!]*[^!]*[^!]*)+$",
                                            "(?:a?){60}a{60}$",
                                            "(a|aa)+\\d",
                                            "((((a+)+)+)+)+$",
                                            "(?R)?a(?R)?$",
                                            "(?=(a+)+$)(a+)+\\1$" };
    g_autoptr(GString) name = g_string_new(NULL);
    while (name->len < HN_REGEX_BYTES - 50)
        g_string_append(name, "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa");
    g_string_append_c(name, '!');
    for (gsize i = 0; i < G_N_ELEMENTS(patterns); i++) {
        g_autoptr(GError) error = NULL;
        const double start = cpu_s();
        g_autoptr(HnRegex) r = hn_regex_new(patterns[i], &error);
        gboolean found = FALSE;
        if (r != NULL && !hn_regex_find(r, name->str, &found, &error))
            g_assert_error(error, HN_ERROR, HN_ERROR_USAGE);
        g_assert_false(found);
        const double took = cpu_s() - start;
        g_test_message("%s: %.1f ms, %s", patterns[i], took * 1e3, error != NULL ? "refused" : "not found");
        g_assert_cmpfloat(took, <, 0.5); /* 0.05 on an idle machine; sanitizers are slow */
    }
}

static void test_refused(void)
{
    g_autofree char *longer = g_strnfill(HN_REGEX_BYTES + 1, 'a');
    const char *const patterns[] = {
        "(", "a{2,1}", "[", "\xff", "(*LIMIT_MATCH=4000000000)(a+)+$", "(((a{1,60}){1,60}){1,60}){1,60}", longer
    };
    for (gsize i = 0; i < G_N_ELEMENTS(patterns); i++) {
        g_autoptr(GError) error = NULL;
        const double start = cpu_s();
        g_assert_null(hn_regex_new(patterns[i], &error));
        g_assert_error(error, HN_ERROR, HN_ERROR_USAGE);
        g_assert_false(g_str_has_suffix(error->message, "."));
        g_assert_cmpfloat(cpu_s() - start, <, 0.5);
        g_test_message("%s", error->message);
    }
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/base/regex/find", test_find);
    g_test_add_func("/base/regex/ordinary", test_ordinary);
    g_test_add_func("/base/regex/without-end", test_without_end);
    g_test_add_func("/base/regex/refused", test_refused);
    return g_test_run();
}
