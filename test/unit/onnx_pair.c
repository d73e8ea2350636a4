/* A model and its data file: one is never without the other, and nothing is left behind. */
#include <fcntl.h>
#include <glib/gstdio.h>
#include <signal.h>
#include <string.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "base/temp.h"
#include "onnx/onnx.h"
#include "onnx/pair.h"

#define N 2000 /* floats of the weight */

typedef struct {
    char *folder, *model;
} Files;

static void files_init(Files *f, gconstpointer unused)
{
    (void)unused;
    f->folder = g_dir_make_tmp("hone-pair-XXXXXX", NULL);
    g_assert_nonnull(f->folder);
    f->model = g_build_filename(f->folder, "m.onnx", NULL);
}

static void files_clear(Files *f, gconstpointer unused)
{
    (void)unused;
    g_autoptr(GDir) dir = g_dir_open(f->folder, 0, NULL);
    for (const char *name; (name = g_dir_read_name(dir));) {
        g_autofree char *path = g_build_filename(f->folder, name, NULL);
        g_assert_cmpint(g_remove(path), ==, 0);
    }
    g_assert_cmpint(g_rmdir(f->folder), ==, 0);
    g_free(f->folder);
    g_free(f->model);
}

static char *in(const Files *f, const char *name)
{
    return g_build_filename(f->folder, name, NULL);
}

/* A model with one weight whose elements are all x. */
static gboolean save(const char *path, float x, HnExternal external, GError **error)
{
    const int64_t dims[] = { N };
    g_autoptr(HnModel) m = hn_model_new();
    HnTensor *t = hn_tensor_new(HN_F32, 1, dims, NULL, NULL);
    for (int i = 0; i < N; i++)
        hn_tensor_set_f64(t, i, (double)x);
    t->name = g_strdup("w");
    HnValue *v = hn_graph_value(m->graph, "w");
    hn_graph_add_weight(m->graph, v, t);
    hn_graph_add_output(m->graph, v);
    hn_tensor_unref(t);
    return hn_onnx_write_file(m, path, &(HnOnnxWriteOptions){ .external = external }, error);
}

static void save_ok(const char *path, float x, HnExternal external)
{
    g_autoptr(GError) error = NULL;
    g_assert_true(save(path, x, external, &error));
    g_assert_no_error(error);
}

/* The name of the model's data file; g_free(). x: what it must hold. */
static char *data_of(const char *path, float x)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(HnModel) m = hn_onnx_read_file(path, &(HnOnnxOptions){ .verify_data = TRUE }, &error);
    g_assert_no_error(error);
    const HnTensor *t = hn_graph_find(m->graph, "w")->weight;
    g_assert_cmpfloat(hn_tensor_get_f64(t, N - 1), ==, x);
    for (guint i = 0; t->extra && i + 1 < t->extra->len; i += 2)
        if (!strcmp(t->extra->pdata[i], "location"))
            return g_strdup(t->extra->pdata[i + 1]);
    return NULL;
}

static gboolean exists(const Files *f, const char *name)
{
    g_autofree char *path = in(f, name);
    return g_file_test(path, G_FILE_TEST_EXISTS);
}

static guint count(const Files *f)
{
    guint n = 0;
    g_autoptr(GDir) dir = g_dir_open(f->folder, 0, NULL);
    while (g_dir_read_name(dir))
        n++;
    return n;
}

static void test_replace(Files *f, gconstpointer unused)
{
    (void)unused;
    save_ok(f->model, 1, HN_EXTERNAL_ONE_FILE);
    g_autofree char *one = data_of(f->model, 1);
    save_ok(f->model, 1, HN_EXTERNAL_ONE_FILE); /* what it names is what it named */
    g_assert_true(exists(f, one) && count(f) == 2);
    save_ok(f->model, 2, HN_EXTERNAL_ONE_FILE);
    g_autofree char *two = data_of(f->model, 2);
    g_assert_true(!exists(f, one) && exists(f, two) && count(f) == 2);
    save_ok(f->model, 3, HN_EXTERNAL_INLINE);
    g_assert_cmpuint(count(f), ==, 1);
    save_ok(f->model, 4, HN_EXTERNAL_ONE_FILE);
    hn_onnx_remove(f->model);
    g_assert_cmpuint(count(f), ==, 0);
}

/* What somebody else names, or hone did not write for this model, stays. */
static void test_others(Files *f, gconstpointer unused)
{
    (void)unused;
    g_autofree char *copy = in(f, "copy.onnx"), *backup = in(f, "m.onnx.bak"), *odd = in(f, "odd.onnx");
    g_autofree char *old = in(f, "m.onnx.data"), *orphan = in(f, "m.onnx.0123456789abcdef.data"), *bytes = NULL;
    gsize n;
    const char *const others[] = { copy, backup };
    g_assert_true(g_file_set_contents(old, "old", 3, NULL) && g_file_set_contents(orphan, "not ours", 8, NULL));
    for (guint i = 0; i < G_N_ELEMENTS(others); i++) {
        save_ok(f->model, 1, HN_EXTERNAL_ONE_FILE);
        g_autofree char *one = data_of(f->model, 1);
        g_assert_true(g_file_get_contents(f->model, &bytes, &n, NULL));
        g_assert_true(g_file_set_contents(others[i], bytes, (gssize)n, NULL));
        g_clear_pointer(&bytes, g_free);
        save_ok(f->model, 2, HN_EXTERNAL_ONE_FILE);
        g_assert_true(exists(f, one));
        g_free(data_of(others[i], 1));
        g_assert_cmpint(g_remove(others[i]), ==, 0);
        g_autofree char *path = in(f, one);
        g_assert_cmpint(g_remove(path), ==, 0);
    }
    /* nobody knows what this one names */
    save_ok(f->model, 1, HN_EXTERNAL_ONE_FILE);
    g_autofree char *one = data_of(f->model, 1);
    g_assert_true(g_file_set_contents(odd, "\x0a\xff", 2, NULL));
    save_ok(f->model, 2, HN_EXTERNAL_ONE_FILE);
    g_assert_true(exists(f, one) && exists(f, "m.onnx.data") && exists(f, "m.onnx.0123456789abcdef.data"));
}

/* The right name is not enough. */
static void test_damaged(Files *f, gconstpointer unused)
{
    (void)unused;
    save_ok(f->model, 1, HN_EXTERNAL_ONE_FILE);
    g_autofree char *name = data_of(f->model, 1), *path = in(f, name), *bytes = NULL;
    gsize n;
    g_assert_true(g_file_get_contents(path, &bytes, &n, NULL));
    bytes[n / 2] ^= 1;
    g_assert_true(g_file_set_contents(path, bytes, (gssize)n, NULL));
    g_autoptr(GError) error = NULL;
    g_assert_null(hn_onnx_read_file(f->model, &(HnOnnxOptions){ .verify_data = TRUE }, &error));
    g_assert_error(error, HN_ERROR, HN_ERROR_FORMAT);
    g_assert_nonnull(strstr(error->message, name));
    g_assert_nonnull(strstr(error->message, "tensor 'w'"));
    g_autoptr(HnModel) unread = hn_onnx_read_file(f->model, NULL, NULL);
    g_assert_nonnull(unread);
    save_ok(f->model, 1, HN_EXTERNAL_ONE_FILE);
    g_autofree char *again = data_of(f->model, 1);
    g_assert_cmpstr(again, ==, name);
    g_assert_cmpuint(count(f), ==, 2);
}

/* A second name that nobody holds: its writer was killed. */
static void mark(const Files *f, const char *data)
{
    g_autofree char *path = in(f, data), *temp = in(f, ".m.onnx.hone-3");
    g_assert_cmpint(link(path, temp), ==, 0);
}

static void test_killed(Files *f, gconstpointer unused)
{
    (void)unused;
    g_autofree char *aside = in(f, "aside");
    save_ok(f->model, 1, HN_EXTERNAL_ONE_FILE);
    g_autofree char *one = data_of(f->model, 1);
    save_ok(aside, 2, HN_EXTERNAL_ONE_FILE);
    g_autofree char *two = data_of(aside, 2), *two_path = in(f, two);
    g_autofree char *orphan = in(f, "m.onnx.00112233445566ff.data"), *plain = in(f, ".m.onnx.hone-0");
    /* before the model was renamed: its new data, and the old that is still named */
    g_assert_cmpint(rename(two_path, orphan), ==, 0);
    g_assert_cmpint(g_remove(aside), ==, 0);
    mark(f, "m.onnx.00112233445566ff.data");
    g_assert_true(g_file_set_contents(plain, "half", 4, NULL));
    save_ok(f->model, 1, HN_EXTERNAL_ONE_FILE);
    g_assert_true(exists(f, one) && count(f) == 2);
    /* the same file, old data about to be removed, and the next model has none at all */
    mark(f, one);
    save_ok(f->model, 3, HN_EXTERNAL_INLINE);
    g_assert_cmpuint(count(f), ==, 1);
}

/* A file that somebody holds is not taken for left behind. */
static void test_held(Files *f, gconstpointer unused)
{
    (void)unused;
    int fd;
    g_assert_true(g_file_set_contents(f->model, "", 0, NULL));
    HnTemp *temp = hn_temp_create(f->model, &fd);
    g_assert_nonnull(temp);
    save_ok(f->model, 1, HN_EXTERNAL_ONE_FILE);
    g_assert_cmpuint(count(f), ==, 3);
    close(fd); /* as if its program was gone */
    save_ok(f->model, 1, HN_EXTERNAL_ONE_FILE);
    g_assert_cmpuint(count(f), ==, 2);
    hn_temp_remove(temp);
}

/* Two programs write one model until told to end, a third looks at it. */
static void test_two_writers(Files *f, gconstpointer unused)
{
    (void)unused;
    pid_t writers[2];
    save_ok(f->model, 1, HN_EXTERNAL_ONE_FILE);
    for (int i = 0; i < 2; i++) {
        writers[i] = fork();
        if (writers[i] == 0)
            for (int k = 0; k < 100; k++)
                if (!save(f->model, (float)(1 + i), k % 8 == 7 ? HN_EXTERNAL_INLINE : HN_EXTERNAL_ONE_FILE, NULL) ||
                    k == 99)
                    _exit(k == 99 ? 0 : 1);
    }
    for (int i = 0; i < 2; i++) {
        int status;
        g_assert_cmpint(waitpid(writers[i], &status, 0), ==, writers[i]);
        g_assert_cmpint(status, ==, 0);
    }
    g_autoptr(GError) error = NULL;
    g_autoptr(HnModel) m = hn_onnx_read_file(f->model, &(HnOnnxOptions){ .verify_data = TRUE }, &error);
    g_assert_no_error(error);
    g_assert_cmpuint(count(f), ==, 2);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
#define ADD(name, test) g_test_add("/onnx/pair/" name, Files, NULL, files_init, test, files_clear)
    ADD("replace", test_replace);
    ADD("others", test_others);
    ADD("damaged", test_damaged);
    ADD("killed", test_killed);
    ADD("held", test_held);
    ADD("two-writers", test_two_writers);
    return g_test_run();
}
