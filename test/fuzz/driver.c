/*
 * Runs a target without libFuzzer: over files, and folders of files, each one test of the TAP it prints; with --mutate
 * also over N changed copies of each. --save keeps what is being run in a file: what is found there after a crash
 * repeats it. --write puts the changed copies into a folder instead of running them.
 */
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fuzz.h"

size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned seed);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerInitialize(int *argc, char ***argv);

#define LIMIT_S 30      /* for one input; a signal ends the program then */
#define LONG_US 1000000 /* a file that takes longer (a loop without end) is run as it is, without changes */

typedef struct {
    gint64 mutate, seed;
    char *save, *write;
    int written;
    int n, failed; /* tests */
} Driver;

static HnRng mutate_rng; /* libFuzzer's interface leaves no other place */

/* What libFuzzer offers to custom mutators: here a few bytes become others. */
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max)
{
    (void)max;
    for (int64_t i = hn_rng_int(&mutate_rng, 1, 4); i > 0 && size > 0; i--)
        data[hn_rng_int(&mutate_rng, 0, (int64_t)size - 1)] = (uint8_t)hn_rng_u64(&mutate_rng);
    return size;
}

static void run(const Driver *d, const uint8_t *data, size_t size)
{
    if (d->save != NULL && !g_file_set_contents(d->save, (const char *)data, (gssize)size, NULL))
        fprintf(stderr, "cannot write %s\n", d->save);
    alarm(LIMIT_S);
    LLVMFuzzerTestOneInput(data, size);
    alarm(0);
}

static void write_copy(Driver *d, const uint8_t *data, size_t size)
{
    g_autofree char *name = g_strdup_printf("%06d", d->written++), *path = g_build_filename(d->write, name, NULL);
    if (!g_file_set_contents(path, (const char *)data, (gssize)size, NULL))
        fprintf(stderr, "cannot write %s\n", path);
}

static void run_changed(Driver *d, const char *data, size_t size)
{
    size_t max = size * 2 + 4096;
    g_autofree uint8_t *copy = g_malloc(max);
    for (gint64 i = 0; i < d->mutate; i++) {
        unsigned seed = (unsigned)(d->seed + i);
        memcpy(copy, data, size);
        mutate_rng = hn_rng(seed);
        const size_t n = LLVMFuzzerCustomMutator(copy, size, max, seed);
        if (d->write != NULL)
            write_copy(d, copy, n);
        else
            run(d, copy, n);
    }
}

static void run_file(Driver *d, const char *path)
{
    g_autofree char *data = NULL, *name = g_path_get_basename(path);
    gsize size;
    gboolean ok = g_file_get_contents(path, &data, &size, NULL);
    if (ok) {
        gint64 start = g_get_monotonic_time();
        if (d->write == NULL)
            run(d, (const uint8_t *)data, size);
        if (g_get_monotonic_time() - start < LONG_US)
            run_changed(d, data, size);
    }
    printf("%sok %d - %s\n", ok ? "" : "not ", ++d->n, name);
    fflush(stdout);
    d->failed += !ok;
}

static int compare_names(gconstpointer a, gconstpointer b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static void run_path(Driver *d, const char *path)
{
    g_autoptr(GDir) dir = g_dir_open(path, 0, NULL);
    if (dir == NULL) {
        if (!g_file_test(path, G_FILE_TEST_EXISTS) || g_file_test(path, G_FILE_TEST_IS_REGULAR))
            run_file(d, path);
        return;
    }
    g_autoptr(GPtrArray) names = g_ptr_array_new_with_free_func(g_free);
    const char *name;
    while ((name = g_dir_read_name(dir)) != NULL)
        g_ptr_array_add(names, g_build_filename(path, name, NULL));
    g_ptr_array_sort(names, compare_names);
    for (guint i = 0; i < names->len; i++)
        run_path(d, names->pdata[i]);
}

int main(int argc, char **argv)
{
    Driver d = { .seed = 71 };
    g_auto(GStrv) paths = NULL;
    GOptionEntry entries[] = {
        { "mutate", 0, 0, G_OPTION_ARG_INT64, &d.mutate, "changed copies of each file", "N" },
        { "seed", 0, 0, G_OPTION_ARG_INT64, &d.seed, "of the changes", "N" },
        { "save", 0, 0, G_OPTION_ARG_FILENAME, &d.save, "keep what is being run here", "FILE" },
        { "write", 0, 0, G_OPTION_ARG_FILENAME, &d.write, "write the changed copies here, and run nothing", "FOLDER" },
        { G_OPTION_REMAINING, 0, 0, G_OPTION_ARG_FILENAME_ARRAY, &paths, NULL, "PATH..." },
        { NULL, 0, 0, 0, NULL, NULL, NULL },
    };
    g_autoptr(GOptionContext) context = g_option_context_new(NULL);
    g_autoptr(GError) error = NULL;
    setlocale(LC_ALL, "C");
    g_option_context_add_main_entries(context, entries, NULL);
    if (!g_option_context_parse(context, &argc, &argv, &error) || paths == NULL) {
        fprintf(stderr, "%s: %s\n", argv[0], error != NULL ? error->message : "no file or folder is named");
        return 2;
    }
    LLVMFuzzerInitialize(&argc, &argv);
    for (char **p = paths; *p != NULL; p++)
        run_path(&d, *p);
    printf("1..%d\n", d.n);
    g_free(d.save);
    g_free(d.write);
    return d.failed > 0 || d.n == 0 ? 1 : 0;
}
