/* Names that are most like a given one. */
#include <glib.h>

#include "base/nearest.h"

static void test_one(void)
{
    const char *const names[] = { "threads", "device", "json", "no-progress", NULL };
    g_assert_cmpstr(hn_nearest("thread", names), ==, "threads");
    g_assert_cmpstr(hn_nearest("jsno", names), ==, "json");
    g_assert_cmpstr(hn_nearest("noprogress", names), ==, "no-progress");
    g_assert_null(hn_nearest("x", names));
    g_assert_null(hn_nearest("", names));
    g_autofree char *longest = g_strnfill(1000, 'a');
    g_assert_null(hn_nearest(longest, names));
}

static void expect(const char *asked, const char *const *names, const char *want)
{
    g_autofree char *words = hn_nearest_words(asked, names);
    g_assert_cmpstr(words, ==, want);
}

static void test_words(void)
{
    const char *const none[] = { NULL }, *const one[] = { "x", "x", NULL };
    const char *const two[] = { "images", "mask", NULL };
    const char *const nodes[] = {
        "/body/relu_1", "/head/cls/Conv", "/body/conv_2", "/body/conv_12", "/body/conv_12", "/head/box/Conv", NULL
    };
    expect("a", none, "; there is none");
    expect("a", one, "; there is 'x'");
    expect("msk", two, "; the nearest are 'mask' and 'images'");
    expect("image", two, "; the nearest are 'images' and 'mask'");
    /* a part of a name, in another case, with a typing error, as an expression; the shorter name of equals first */
    expect("conv_12", nodes, "; the nearest are '/body/conv_12', '/body/conv_2' and '/head/cls/Conv'");
    expect("^/BODY/cnov_\\d*2$", nodes, "; the nearest are '/body/conv_2', '/body/conv_12' and '/body/relu_1'");
    expect("^(/head/boxes)/Conv", nodes, "; the nearest are '/head/box/Conv', '/head/cls/Conv' and '/body/conv_2'");
    const char *const classes[] = { "dddd", "mask", NULL };
    expect("\\d\\d\\d\\dmask", classes, "; the nearest are 'mask' and 'dddd'");
    /* what is no text at all, and a name longer than all that counts */
    expect("^.*$\\", two, "; the nearest are 'mask' and 'images'");
    g_autofree char *longest = g_strnfill(10000, 'm');
    const char *const long_names[] = { longest, "mask", NULL };
    g_autofree char *words = hn_nearest_words(longest, long_names);
    g_assert_true(g_str_has_prefix(words, "; the nearest are 'mmm"));
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/base/nearest/one", test_one);
    g_test_add_func("/base/nearest/words", test_words);
    return g_test_run();
}
