/*
 * Successive halving: who is tried, for how long, and who is left; numbers that a journal keeps.
 */
#include <glib/gstdio.h>
#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/jsonread.h"
#include "tune/halving.h"
#include "tune/journal.h"

/* A candidate's loss falls from its start to its end by its rate; it may fail. */
typedef struct {
    const double *loss; /* by candidate */
    GString *told;
    double last[8];
    int fails; /* trial, from 1; 0: none */
    int trials;
} Job;

static gboolean attempt(gpointer data, guint candidate, int64_t length, GError **error)
{
    Job *job = data;
    g_string_append_printf(job->told, "%u:%d ", candidate, (int)length);
    job->last[candidate] = job->loss[candidate] / (double)length;
    if (++job->trials != job->fails)
        return TRUE;
    g_set_error(error, HN_ERROR, HN_ERROR_IO, "no more");
    return FALSE;
}

static gboolean better(gpointer data, guint a, guint b)
{
    const Job *job = data;
    return job->last[a] < job->last[b];
}

static void expect(guint n, int64_t first, int64_t most, const double *loss, const char *told, const char *order)
{
    g_autoptr(GError) error = NULL;
    Job job = { .loss = loss, .told = g_string_new(NULL) };
    const HnHalving h = { n, first, most, attempt, better, &job };
    g_autofree guint *got = g_new(guint, n + 1);
    g_autoptr(GString) text = g_string_new(NULL);
    guint trials;
    g_assert_true(hn_halving_run(&h, got, &error));
    g_assert_no_error(error);
    for (guint i = 0; i < n; i++)
        g_string_append_printf(text, "%u ", got[i]);
    g_assert_cmpstr(job.told->str, ==, told);
    g_assert_cmpstr(text->str, ==, order);
    int64_t sum = 0;
    const char *last = strrchr(told, ':');
    g_assert_cmpint(hn_halving_last(&h), ==, last != NULL ? g_ascii_strtoll(last + 1, NULL, 10) : MIN(h.first, h.most));
    for (const char *at = told; (at = strchr(at, ':')) != NULL; at++)
        sum += g_ascii_strtoll(at + 1, NULL, 10);
    g_assert_cmpint(hn_halving_length(&h, &trials), ==, sum);
    g_assert_cmpint((int)trials, ==, job.trials);
    g_string_free(job.told, TRUE);
}

static void test_halving(void)
{
    const double falls[] = { 5, 4, 3, 2, 1 }, same[] = { 1, 1, 1 };
    expect(5, 1, 100, falls, "0:1 1:1 2:1 3:1 4:1 4:2 3:2 2:2 4:4 3:4 ", "4 3 2 1 0 ");
    expect(5, 2, 3, falls, "0:2 1:2 2:2 3:2 4:2 4:3 3:3 2:3 4:3 3:3 ", "4 3 2 1 0 ");
    expect(3, 8, 4, same, "0:4 1:4 2:4 0:4 1:4 ", "0 1 2 ");
    expect(1, 8, 4, same, "", "0 ");
}

static void test_failure(void)
{
    g_autoptr(GError) error = NULL;
    const double falls[] = { 3, 2, 1 };
    Job job = { .loss = falls, .told = g_string_new(NULL), .fails = 4 };
    const HnHalving h = { 3, 1, 9, attempt, better, &job };
    guint order[3];
    g_assert_false(hn_halving_run(&h, order, &error));
    g_assert_error(error, HN_ERROR, HN_ERROR_IO);
    g_assert_cmpstr(job.told->str, ==, "0:1 1:1 2:1 2:2 ");
    g_string_free(job.told, TRUE);
}

static JsonObject *header(const char *model)
{
    return hn_journal_header(&(HnJournalOf){ .model = model, .device = "cpu", .threads = 1 });
}

/* Numbers come back to the last digit; what is not finite as what is not known. */
static void test_found(void)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *folder = g_dir_make_tmp("hone-XXXXXX", &error), *path = g_build_filename(folder, "j", NULL);
    for (int run = 0; run < 2; run++) {
        g_autoptr(JsonObject) of = header("a");
        g_autoptr(HnJournal) j = hn_journal_new();
        g_assert_true(hn_journal_open(j, path, run == 1, of, &error));
        g_assert_no_error(error);
        g_assert_cmpuint(hn_journal_resumed(j), ==, (guint)run);
        double x;
        if (run == 1) {
            JsonObject *numbers = hn_journal_found(j, "one");
            g_assert_true(hn_json_number_at(numbers, "third", &x));
            g_assert_cmpfloat(x, ==, 1.0 / 3);
            g_assert_false(hn_json_number_at(numbers, "none", &x));
            continue;
        }
        g_assert_null(hn_journal_found(j, "one"));
        JsonObject *numbers = json_object_new();
        hn_json_set_number(numbers, "third", 1.0 / 3);
        hn_json_set_number(numbers, "none", NAN);
        g_assert_true(hn_journal_add_found(j, "one", numbers, &error));
        g_assert_no_error(error);
        g_assert_nonnull(hn_journal_found(j, "one"));
    }
    g_autoptr(JsonObject) other = header("b");
    g_autoptr(HnJournal) j = hn_journal_new();
    g_assert_false(hn_journal_open(j, path, TRUE, other, &error));
    g_assert_error(error, HN_ERROR, HN_ERROR_USAGE);
    g_assert_cmpint(g_remove(path), ==, 0);
    g_assert_cmpint(g_rmdir(folder), ==, 0);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/tune/halving", test_halving);
    g_test_add_func("/tune/halving/failure", test_failure);
    g_test_add_func("/tune/journal/found", test_found);
    return g_test_run();
}
