/* Journals of trials and times, and the cache of times, as files: whole, cut off, damaged, too large, and nowhere. */
#include <glib/gstdio.h>
#include <math.h>
#include <string.h>

#include "tune/timing.h"

static HnTried *a_trial(const char *plan)
{
    HnTried *t = g_new0(HnTried, 1);
    t->plan = g_strdup(plan);
    t->what = g_strdup("all");
    t->score =
        (HnScore){ .top1 = NAN, .cos = 1.0 / 3, .sqnr = INFINITY, .worst_cos = 1, .scores = 0.5, .command = NAN };
    t->bytes = 77;
    t->f32 = g_ptr_array_new_with_free_func(g_free);
    g_ptr_array_add(t->f32, g_strdup("a"));
    return t;
}

static HnNodeTimes *some_times(void)
{
    HnNodeTimes *t = hn_node_times_new();
    t->total_ms = 1.0 / 7;
    const HnNodeTime a = { .ms = 1.0 / 9, .elements = 4 };
    g_hash_table_insert(t->nodes, g_strdup("a"), g_memdup2(&a, sizeof a));
    return t;
}

static void test_journal(void)
{
    GError *error = NULL;
    g_autofree char *folder = g_dir_make_tmp("hone-XXXXXX", NULL), *path = g_build_filename(folder, "j", NULL);
    g_autoptr(JsonObject) header = json_object_new();
    json_object_set_string_member(header, "model", "m");
    {
        g_autoptr(HnJournal) j = hn_journal_new();
        g_assert_true(hn_journal_open(j, path, FALSE, header, &error));
        g_assert_true(hn_journal_add_tried(j, a_trial("p1"), &error));
        g_assert_true(hn_journal_add_times(j, "p1", some_times(), &error));
        g_assert_true(hn_journal_add_race(j, "p1", "p2",
                                          &(HnEffect){ .effect = 0.75, .sure_lo = 0.5, .sure_hi = 0.875 }, &error));
        g_assert_true(hn_journal_add_tried(j, a_trial("p2"), &error));
    }
    g_autofree char *text = NULL;
    gsize n;
    g_assert_true(g_file_get_contents(path, &text, &n, NULL));
    /* killed in the middle of the last line, at each of its bytes */
    const char *last = g_strrstr_len(text, (gssize)n - 1, "\n") + 1;
    for (const char *end = last; end < text + n; end++) {
        g_assert_true(g_file_set_contents(path, text, end - text, NULL));
        g_autoptr(HnJournal) j = hn_journal_new();
        HnEffect effect;
        g_assert_true(hn_journal_open(j, path, TRUE, header, &error));
        g_assert_no_error(error);
        g_assert_cmpuint(hn_journal_resumed(j), ==, 1);
        const HnTried *t = hn_journal_tried(j, "p1");
        g_assert_cmpfloat(t->score.cos, ==, 1.0 / 3);
        g_assert_true(isinf(t->score.sqnr) && isnan(t->score.top1));
        g_assert_cmpuint(t->bytes, ==, 77);
        g_assert_cmpstr(t->f32->pdata[0], ==, "a");
        g_assert_null(hn_journal_tried(j, "p2"));
        g_assert_cmpfloat(hn_journal_times(j, "p1")->total_ms, ==, 1.0 / 7);
        g_assert_true(hn_journal_race(j, "p1", "p2", &effect));
        g_assert_cmpfloat(effect.effect, ==, 0.75);
        g_assert_true(effect.sure_lo == 0.5 && effect.sure_hi == 0.875);
        g_assert_false(hn_journal_race(j, "p2", "p1", &effect));
        g_assert_true(hn_journal_add_tried(j, a_trial("p2"), &error));
        g_autofree char *again = NULL;
        g_assert_true(g_file_get_contents(path, &again, NULL, NULL));
        g_assert_cmpstr(again, ==, text); /* what was cut off is there again, and whole */
    }
    { /* a line that cannot be read: what stands behind it is done again */
        g_autofree char *damaged = g_strdup_printf("%.*snonsense\n%s", (int)(last - text), text, last);
        g_assert_true(g_file_set_contents(path, damaged, -1, NULL));
        g_autoptr(HnJournal) j = hn_journal_new();
        g_assert_true(hn_journal_open(j, path, TRUE, header, &error));
        g_assert_cmpuint(hn_journal_resumed(j), ==, 1);
        g_assert_null(hn_journal_tried(j, "p2"));
    }
    json_object_set_string_member(header, "model", "other");
    g_autoptr(HnJournal) j = hn_journal_new();
    g_assert_false(hn_journal_open(j, path, TRUE, header, &error));
    g_assert_error(error, HN_ERROR, HN_ERROR_USAGE);
    g_assert_nonnull(strstr(error->message, "'model'"));
    g_clear_error(&error);
    g_unlink(path);
    g_rmdir(folder);
}

static void test_cache(void)
{
    g_autofree char *folder = g_dir_make_tmp("hone-XXXXXX", NULL), *path = g_build_filename(folder, "in", "c", NULL);
    g_autofree char *inner = g_path_get_dirname(path);
    for (int i = 0; i < 2; i++) {
        g_autoptr(HnJournal) j = hn_journal_new();
        hn_journal_use_cache(j, path, i == 0 ? "k1" : "k2");
        g_assert_null(hn_journal_times(j, "p"));
        g_assert_true(hn_journal_add_times(j, "p", some_times(), NULL));
        g_assert_true(hn_journal_add_tried(j, a_trial("p"), NULL));
    }
    g_autofree char *text = NULL;
    gsize n;
    g_assert_true(g_file_get_contents(path, &text, &n, NULL));
    const char *const before = "nonsense\n[]\n{\"times\":3}\n{\"race\":[\"a\",\"b\"],\"effect\":0.5,\"key\":\"k2\"}\n"
                               "{\"times\":\"q3\",\"total_ms\":1,\"nodes\":{\"a\":{\"ms\":-1,\"elements\":1}},"
                               "\"key\":\"k2\"}\n";
    g_autofree char *damaged = g_strconcat(before, text, "{\"times\":\"q", NULL);
    g_assert_true(g_file_set_contents(path, damaged, -1, NULL));
    for (int i = 0; i < 2; i++) {
        g_autoptr(HnJournal) j = hn_journal_new();
        hn_journal_use_cache(j, path, "k2");
        g_assert_cmpfloat(hn_node_time(hn_journal_times(j, "p"), "a")->ms, ==, 1.0 / 9);
        g_assert_null(hn_journal_tried(j, "p"));                                  /* times only */
        g_assert_false(hn_journal_race(j, "a", "b", &(HnEffect){ .effect = 0 })); /* without an interval */
        g_assert_cmpint(hn_journal_times(j, "q2") != NULL, ==, i == 1);
        g_assert_null(hn_journal_times(j, "q3")); /* less than nothing is no time */
        if (i == 0)
            g_assert_true(hn_journal_add_times(j, "q2", some_times(), NULL));
    }
    g_unlink(path);
    g_rmdir(inner);
    g_rmdir(folder);
}

#define CACHE_BYTES (16 << 20) /* a cache that is larger starts anew */

static goffset size_of_file(const char *path)
{
    GStatBuf st;
    g_assert_cmpint(g_stat(path, &st), ==, 0);
    return st.st_size;
}

/* A cache that has become too large is given up, and no sooner; races of the same key come out of it. */
static void test_cache_size(void)
{
    g_autofree char *folder = g_dir_make_tmp("hone-XXXXXX", NULL), *path = g_build_filename(folder, "c", NULL);
    const HnEffect e = { .effect = 0.75, .sure_lo = 0.5, .sure_hi = 0.875 };
    for (int more = 0; more < 2; more++) {
        HnEffect found;
        {
            g_autoptr(HnJournal) j = hn_journal_new();
            hn_journal_use_cache(j, path, "k");
            g_assert_true(hn_journal_add_race(j, "a", "b", &e, NULL));
        }
        const goffset line = size_of_file(path);
        g_autofree char *text = g_malloc(CACHE_BYTES + 1), *first = NULL;
        g_assert_true(g_file_get_contents(path, &first, NULL, NULL));
        memset(text, ' ', CACHE_BYTES + 1);
        memcpy(text, first, (gsize)line);
        text[CACHE_BYTES - 1 + more] = '\n';
        g_assert_true(g_file_set_contents(path, text, CACHE_BYTES + more, NULL));
        g_autoptr(HnJournal) j = hn_journal_new(), other = hn_journal_new();
        hn_journal_use_cache(j, path, "k");
        g_assert_cmpint(hn_journal_race(j, "a", "b", &found), ==, more == 0);
        g_assert_cmpint(size_of_file(path), ==, more == 0 ? CACHE_BYTES : 0);
        hn_journal_use_cache(other, path, "of another machine");
        g_assert_false(hn_journal_race(other, "a", "b", &found));
        g_unlink(path);
    }
    g_rmdir(folder);
}

/* Where a cache cannot be, or takes no more, work goes on without it. */
static void test_cache_lost(void)
{
    static const char *const places[] = { "/dev/full", "/dev/null/hone/c", "/dev/null" };
    for (guint i = 0; i < G_N_ELEMENTS(places); i++) {
        g_autoptr(GError) error = NULL;
        g_autoptr(HnJournal) j = hn_journal_new();
        hn_journal_use_cache(j, places[i], "k");
        for (int n = 0; n < 2; n++)
            g_assert_true(hn_journal_add_times(j, "p", some_times(), &error));
        g_assert_no_error(error);
        g_assert_cmpfloat(hn_journal_times(j, "p")->total_ms, ==, 1.0 / 7);
    }
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/tune/journal", test_journal);
    g_test_add_func("/tune/timing-cache", test_cache);
    g_test_add_func("/tune/timing-cache/size", test_cache_size);
    g_test_add_func("/tune/timing-cache/lost", test_cache_lost);
    return g_test_run();
}
