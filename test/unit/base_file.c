/* Files: mapped, piped, limited; written whole or not at all. */
#include <fcntl.h>
#include <glib/gstdio.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/file.h"

static char *folder_new(void)
{
    g_autoptr(GError) error = NULL;
    char *folder = g_dir_make_tmp("hone-file-XXXXXX", &error);
    g_assert_no_error(error);
    return folder;
}

/* names in folder, to see that nothing is left behind */
static guint count_names(const char *folder)
{
    guint n = 0;
    g_autoptr(GDir) dir = g_dir_open(folder, 0, NULL);
    while (g_dir_read_name(dir))
        n++;
    return n;
}

static void folder_free(char *folder)
{
    g_autoptr(GDir) dir = g_dir_open(folder, 0, NULL);
    const char *name;
    while ((name = g_dir_read_name(dir))) {
        g_autofree char *path = g_build_filename(folder, name, NULL);
        g_remove(path);
    }
    g_rmdir(folder);
    g_free(folder);
}

static void expect_content(const char *path, const char *text)
{
    g_autofree char *found = NULL;
    g_assert_true(g_file_get_contents(path, &found, NULL, NULL));
    g_assert_cmpstr(found, ==, text);
}

static void test_save(void)
{
    char *folder = folder_new();
    g_autofree char *path = g_build_filename(folder, "out.bin", NULL);
    g_autoptr(GError) error = NULL;
    struct stat st;

    g_assert_true(hn_out_save(path, "one", 3, &error));
    expect_content(path, "one");
    g_assert_cmpint(stat(path, &st), ==, 0);
    mode_t mask = umask(0);
    umask(mask);
    g_assert_cmpint(st.st_mode & 0777, ==, 0666 & ~mask);

    /* the old content stays until the new one is complete, and so do its permissions */
    g_assert_cmpint(chmod(path, 0640), ==, 0);
    g_autoptr(HnOutFile) file = hn_out_open(path, &error);
    g_autofree char *large = g_strnfill(300000, 'x');
    g_assert_true(hn_out_write(file, "two", 3, &error));
    g_assert_true(hn_out_write(file, large, 300000, &error));
    g_assert_true(hn_out_write(file, "", 0, &error));
    g_assert_true(hn_out_write(file, "end", 3, &error));
    g_assert_cmpuint(hn_out_tell(file), ==, 300006);
    expect_content(path, "one");
    g_assert_true(hn_out_commit(file, &error));
    g_autofree char *whole = g_strconcat("two", large, "end", NULL);
    expect_content(path, whole);
    g_assert_cmpint(stat(path, &st), ==, 0);
    g_assert_cmpint(st.st_mode & 0777, ==, 0640);
    g_assert_cmpuint(count_names(folder), ==, 1);
    folder_free(folder);
}

static void test_abort(void)
{
    char *folder = folder_new();
    g_autofree char *path = g_build_filename(folder, "out.bin", NULL), *fresh = g_build_filename(folder, "new", NULL);
    g_assert_true(hn_out_save(path, "one", 3, NULL));
    const char *const paths[] = { path, fresh };
    for (gsize i = 0; i < G_N_ELEMENTS(paths); i++) {
        HnOutFile *file = hn_out_open(paths[i], NULL);
        g_assert_true(hn_out_write(file, "two", 3, NULL));
        hn_out_free(file);
    }
    expect_content(path, "one");
    g_assert_cmpuint(count_names(folder), ==, 1);
    hn_out_free(NULL);
    folder_free(folder);
}

static void expect_open_error(const char *path, const char *message)
{
    g_autoptr(GError) error = NULL;
    g_assert_null(hn_out_open(path, &error));
    g_assert_error(error, HN_ERROR, HN_ERROR_IO);
    if (message)
        g_assert_cmpstr(error->message, ==, message);
}

static void test_refused(void)
{
    char *folder = folder_new();
    g_autofree char *nowhere = g_build_filename(folder, "no", "such", "file", NULL);
    expect_open_error(folder, NULL);
    expect_open_error(nowhere, NULL);
    expect_open_error("", "cannot write '': it is no name");
    g_autofree char *locked = g_build_filename(folder, "locked", NULL);
    g_assert_true(hn_out_save(locked, "1", 1, NULL));
    g_assert_cmpint(chmod(locked, 0444), ==, 0);
    if (geteuid() != 0)
        expect_open_error(locked, NULL);
    folder_free(folder);
}

static void test_link_and_device(void)
{
    char *folder = folder_new();
    g_autofree char *path = g_build_filename(folder, "real", NULL), *link = g_build_filename(folder, "link", NULL);
    g_assert_true(hn_out_save(path, "one", 3, NULL));
    g_assert_cmpint(symlink("real", link), ==, 0);
    g_assert_true(hn_out_save(link, "two", 3, NULL));
    expect_content(path, "two");
    g_assert_true(g_file_test(link, G_FILE_TEST_IS_SYMLINK));
    g_assert_true(hn_out_save("/dev/null", "x", 1, NULL));
    g_assert_false(g_file_test("/dev/null", G_FILE_TEST_IS_REGULAR));

    g_autoptr(GError) error = NULL;
    g_assert_false(hn_out_save("/dev/full", "x", 1, &error));
    g_assert_error(error, HN_ERROR, HN_ERROR_IO);
    folder_free(folder);
}

/* What a link names is written though it is not there yet, as a shell's redirection would. */
static void test_dangling_link(void)
{
    char *folder = folder_new();
    g_autofree char *link = g_build_filename(folder, "link", NULL), *loop = g_build_filename(folder, "loop", NULL);
    g_autofree char *nowhere = g_build_filename(folder, "nowhere", NULL);
    g_autofree char *second = g_build_filename(folder, "second", NULL), *end = g_build_filename(folder, "end", NULL);
    g_assert_cmpint(symlink("second", link), ==, 0);
    g_assert_cmpint(symlink(end, second), ==, 0);
    g_assert_cmpint(symlink("loop", loop), ==, 0);
    g_assert_cmpint(symlink("no/such", nowhere), ==, 0);
    g_assert_true(hn_out_save(link, "one", 3, NULL));
    expect_content(end, "one");
    g_assert_true(g_file_test(link, G_FILE_TEST_IS_SYMLINK) && g_file_test(second, G_FILE_TEST_IS_SYMLINK));
    expect_open_error(loop, NULL);
    expect_open_error(nowhere, NULL);
    g_assert_cmpuint(count_names(folder), ==, 5);
    folder_free(folder);
}

static void expect_bytes(GBytes *bytes, const char *data, gsize size)
{
    g_assert_nonnull(bytes);
    gsize n;
    const char *p = g_bytes_get_data(bytes, &n);
    g_assert_cmpmem(p, n, data, size);
    g_bytes_unref(bytes);
}

static void test_map(void)
{
    char *folder = folder_new();
    g_autofree char *path = g_build_filename(folder, "in", NULL), *empty = g_build_filename(folder, "empty", NULL);
    g_autoptr(HnBudget) budget = hn_budget_new(100000); /* mapped bytes do not count */
    g_autofree char *large = g_strnfill(200000, 'x');
    g_assert_true(hn_out_save(path, large, 200000, NULL));
    expect_bytes(hn_file_bytes(path, budget, NULL), large, 200000);
    g_assert_true(hn_out_save(path, "content", 7, NULL));
    g_assert_true(hn_out_save(empty, "", 0, NULL));
    expect_bytes(hn_file_bytes(path, budget, NULL), "content", 7);
    expect_bytes(hn_file_bytes(empty, budget, NULL), "", 0);

    int fd = open(path, O_RDONLY);
    g_assert_cmpint(lseek(fd, 3, SEEK_SET), ==, 3);
    expect_bytes(hn_fd_bytes(fd, "in", budget, NULL), "tent", 4);
    close(fd);

    g_autoptr(GError) error = NULL;
    g_assert_null(hn_file_bytes(folder, NULL, &error));
    g_assert_error(error, HN_ERROR, HN_ERROR_IO);
    g_assert_nonnull(strstr(error->message, "it is a folder"));
    g_clear_error(&error);
    g_assert_null(hn_file_bytes("/no/such/file", NULL, &error));
    g_assert_error(error, HN_ERROR, HN_ERROR_IO);
    g_assert_cmpstr(error->message, ==, "cannot open '/no/such/file': No such file or directory");
    folder_free(folder);
}

typedef struct {
    int fd;
    gsize size;
} Feed;

static gpointer feed(gpointer data)
{
    Feed *f = data;
    for (gsize at = 0; at < f->size;) {
        guint8 piece[997];
        gsize n = MIN(sizeof piece, f->size - at);
        for (gsize i = 0; i < n; i++)
            piece[i] = (guint8)((at + i) * 31 >> 3);
        if (write(f->fd, piece, n) != (gssize)n)
            break;
        at += n;
    }
    close(f->fd);
    return NULL;
}

/* read size bytes through a pipe */
static GBytes *through_pipe(gsize size, HnBudget *budget, GError **error)
{
    int fds[2];
    g_assert_cmpint(pipe(fds), ==, 0);
    Feed f = { fds[1], size };
    GThread *thread = g_thread_new("feed", feed, &f);
    GBytes *bytes = hn_fd_bytes(fds[0], "pipe", budget, error);
    close(fds[0]);
    g_thread_join(thread);
    return bytes;
}

static void test_pipe(void)
{
    static const gsize sizes[] = { 0, 1, 4096, 1 << 20, (1 << 20) + 1, 5000000 };
    for (gsize i = 0; i < G_N_ELEMENTS(sizes); i++) {
        g_autoptr(HnBudget) budget = hn_budget_new(0);
        g_autoptr(GError) error = NULL;
        GBytes *bytes = through_pipe(sizes[i], budget, &error);
        g_assert_no_error(error);
        gsize n;
        const guint8 *p = g_bytes_get_data(bytes, &n);
        g_assert_cmpuint(n, ==, sizes[i]);
        for (gsize k = 0; k < n; k++)
            g_assert_cmpuint(p[k], ==, (guint8)(k * 31 >> 3));
        g_assert_cmpuint(hn_budget_used(budget), >=, n);
        g_assert_cmpuint(hn_budget_used(budget), <, n + 65536);
        g_bytes_unref(bytes);
        g_assert_cmpuint(hn_budget_used(budget), ==, 0);
    }
}

static void test_pipe_limit(void)
{
    g_autoptr(HnBudget) budget = hn_budget_new(2000000);
    g_autoptr(GError) error = NULL;
    g_assert_null(through_pipe(3000000, budget, &error));
    g_assert_error(error, HN_ERROR, HN_ERROR_BUDGET);
    g_assert_true(g_str_has_prefix(error->message, "cannot read 'pipe': needs "));
    g_assert_cmpuint(hn_budget_used(budget), ==, 0);

    hn_budget_fail_at(budget, 1);
    g_clear_error(&error);
    g_assert_null(through_pipe(3, budget, &error));
    g_assert_error(error, HN_ERROR, HN_ERROR_BUDGET);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    signal(SIGPIPE, SIG_IGN);
    g_test_add_func("/base/file/save", test_save);
    g_test_add_func("/base/file/abort", test_abort);
    g_test_add_func("/base/file/refused", test_refused);
    g_test_add_func("/base/file/link-and-device", test_link_and_device);
    g_test_add_func("/base/file/dangling-link", test_dangling_link);
    g_test_add_func("/base/file/map", test_map);
    g_test_add_func("/base/file/pipe", test_pipe);
    g_test_add_func("/base/file/pipe-limit", test_pipe_limit);
    return g_test_run();
}
