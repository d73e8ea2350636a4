/*
 * The tools' main programs, called with the words of an input's first line, in a folder of their own with a model and
 * data for it. What stands behind the first line is the model m.onnx, as ONNX or as text; nothing: a small one.
 *
 * What a tool ends with has to be an exit status that hone-exit-status(7) knows, and something on stderr where that is
 * not 0, without control characters. Words that name files elsewhere or programs are not tried: the input would own the
 * machine.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <glib/gstdio.h>

#include "base/sanitize.h"
#include "data/npz.h"
#include "fuzz.h"
#include "ir/ir_text.h"
#include "onnx/onnx.h"

#if HN_SANITIZE_ADDRESS
#include <sanitizer/common_interface_defs.h>
#endif

#define MOST_WORDS 40
#define MOST_FILE ((rlim_t)256 << 20) /* bytes that a tool may write to one */
#define LONGEST_LINE 4096

int hone_bench_main(int argc, char **argv);
int hone_diff_main(int argc, char **argv);
int hone_export_main(int argc, char **argv);
int hone_profile_main(int argc, char **argv);
int hone_quantize_main(int argc, char **argv);
int hone_replay_main(int argc, char **argv);
int hone_run_main(int argc, char **argv);

static const struct {
    const char *name;
    int (*main)(int argc, char **argv);
} tools[] = {
    { "bench", hone_bench_main },       { "diff", hone_diff_main },     { "export", hone_export_main },
    { "profile", hone_profile_main },   { "replay", hone_replay_main }, { "run", hone_run_main },
    { "quantize", hone_quantize_main },
};

static const char *const files[] = { "m.onnx", "n.onnx", "x.npy", "x.npz", "bad.npy", "plan.json" };

static const char toy[] =
    "opset 17 graph g(%x:f32[N,8]) -> (%y) { w:f32[8,4]={1,2,3,4,5,6,7,8,9,1,2,3,4,5,6,7,8,9,1,2,3,4,"
    "5,6,7,8,9,1,2,3,4,5} %p = MatMul(%x, w) %r = Relu(%p) %y = Softmax(%r) axis=1 }";

/* libFuzzer's interface leaves no other place. */
static struct {
    char *path;      /* of the folder */
    int inside, out; /* that folder, and the one that was current before */
    int said;        /* what is written to stderr meanwhile */
    int own_stdout, own_stderr, null;
} place;

/* --- the folder --------------------------------------------------------------------------------------------------- */

/* Everything in a folder, or all that no tool is to find the next time. */
static void empty(const char *path, gboolean all)
{
    g_autoptr(GDir) dir = g_dir_open(path, 0, NULL);
    const char *name;
    while (dir != NULL && (name = g_dir_read_name(dir)) != NULL) {
        g_autofree char *inner = g_build_filename(path, name, NULL);
        gboolean keep = !all && strcmp(name, "cache") == 0;
        for (gsize i = 1; i < G_N_ELEMENTS(files) && !all; i++) /* m.onnx is made for each input */
            keep = keep || strcmp(name, files[i]) == 0;
        if (keep)
            continue;
        if (g_file_test(inner, G_FILE_TEST_IS_DIR) && !g_file_test(inner, G_FILE_TEST_IS_SYMLINK))
            empty(inner, TRUE);
        g_remove(inner);
    }
}

static void remove_folder(void)
{
    empty(place.path, TRUE);
    g_rmdir(place.path);
    g_free(place.path);
}

static char *inside(const char *name)
{
    return g_build_filename(place.path, name, NULL);
}

static void write_model(HnModel *m, const char *name)
{
    g_autofree char *path = inside(name);
    g_autoptr(GError) error = NULL;
    if (m == NULL || !hn_onnx_write_file(m, path, NULL, &error))
        g_error("cannot write '%s': %s", name, error != NULL ? error->message : "no model");
}

static void write_data(void)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *npy = inside("x.npy"), *npz = inside("x.npz"), *bad = inside("bad.npy"),
                    *plan = inside("plan.json");
    HnTensor *x = hn_tensor_new(HN_F32, 2, (int64_t[]){ 12, 8 }, NULL, &error);
    HnTensor *label = hn_tensor_new(HN_I64, 1, (int64_t[]){ 12 }, NULL, &error);
    for (int64_t i = 0; i < x->n; i++)
        hn_tensor_set_f64(x, i, (double)(i * 7 % 23) / 8 - 1);
    g_autoptr(HnOutFile) out = hn_out_open(npy, &error);
    if (out == NULL || !hn_npy_write(out, x, &error) || !hn_out_commit(out, &error) ||
        !hn_npz_write(npz, (const char *const[]){ "x", "label" }, (HnTensor *const[]){ x, label }, 2, NULL, &error) ||
        !g_file_set_contents(bad, "\x93NUMPY\1", 7, &error) || !g_file_set_contents(plan, "{}", 2, &error))
        g_error("cannot write data: %s", error->message);
    hn_tensor_unref(x);
    hn_tensor_unref(label);
}

static void init(void)
{
    g_autoptr(HnModel) m = hn_model_parse(toy, NULL, NULL);
    place.path = g_dir_make_tmp("hone-fuzz-XXXXXX", NULL);
    g_autofree char *cache = inside("cache");
    g_setenv("XDG_CACHE_HOME", cache, TRUE);
    g_setenv("HONE_PRESETS", place.path, TRUE);
    write_model(m, "n.onnx");
    write_data();
    place.inside = open(place.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    place.out = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    place.said = memfd_create("stderr", MFD_CLOEXEC);
    place.null = open("/dev/null", O_RDWR | O_CLOEXEC);
    place.own_stdout = dup(STDOUT_FILENO);
    place.own_stderr = dup(STDERR_FILENO);
#if HN_SANITIZE_ADDRESS
    __sanitizer_set_report_fd((void *)(gintptr)place.own_stderr);
#endif
    setrlimit(RLIMIT_FSIZE, &(struct rlimit){ MOST_FILE, MOST_FILE });
    atexit(remove_folder);
}

/* --- running ------------------------------------------------------------------------------------------------------ */

static gboolean harmless(char **words)
{
    for (char **w = words; *w != NULL; w++)
        if (strchr(*w, '/') != NULL || strstr(*w, "cmd:") != NULL || strstr(*w, "plot") != NULL)
            return FALSE;
    return g_strv_length(words) <= MOST_WORDS;
}

/* Files that cannot be written are what the words asked for: the model has no name then. */
static void enter(const uint8_t *model, size_t size)
{
    static const char text[] = "opset";
    g_autofree char *path = inside("m.onnx");
    if (size == 0 || (size >= strlen(text) && memcmp(model, text, strlen(text)) == 0)) {
        HnBudget *budget = hn_budget_new(FUZZ_BUDGET);
        HnModel *m = size > 0 ? fuzz_read_model(model, size, budget, NULL) : hn_model_parse(toy, NULL, NULL);
        if (m != NULL)
            hn_onnx_write_file(m, path, NULL, NULL);
        hn_model_free(m);
        hn_budget_unref(budget);
    } else {
        g_file_set_contents(path, (const char *)model, (gssize)size, NULL);
    }
    if (fchdir(place.inside) != 0 || ftruncate(place.said, 0) != 0 || lseek(place.said, 0, SEEK_SET) != 0)
        g_error("cannot enter '%s'", place.path);
    fflush(stdout);
    dup2(place.null, STDOUT_FILENO);
    if (g_getenv("FUZZ_VERBOSE") == NULL)
        dup2(place.said, STDERR_FILENO);
}

static void leave(void)
{
    fflush(stdout);
    fflush(stderr);
    dup2(place.own_stdout, STDOUT_FILENO);
    dup2(place.own_stderr, STDERR_FILENO);
    if (fchdir(place.out) != 0)
        g_error("cannot go back");
    empty(place.path, FALSE);
}

static void check_said(const char *tool, int status)
{
    char said[LONGEST_LINE + 1];
    const ssize_t n = pread(place.said, said, sizeof said - 1, 0);
    if (status != 130 && (status < 0 || status > 6))
        g_error("hone-%s ended with status %d", tool, status);
    if (status != 0 && n <= 0)
        g_error("hone-%s ended with status %d and without a word", tool, status);
    for (ssize_t i = 0; i < n; i++)
        if (g_ascii_iscntrl(said[i]) && said[i] != '\n')
            g_error("hone-%s wrote the control character %d", tool, said[i]);
}

static void run_tool(const char *name, int (*tool)(int, char **), char **words, const uint8_t *model, size_t size)
{
    g_autofree char *first = g_strconcat("hone-", name, NULL);
    const char *const more[] = { "-t", "1", "--mem-limit", "300M", "--time-limit", "2s", "--no-progress" };
    g_autofree char **argv = g_new0(char *, MOST_WORDS + G_N_ELEMENTS(more) + 2);
    int argc = 0;
    argv[argc++] = first;
    for (gsize i = 0; i < G_N_ELEMENTS(more); i++)
        argv[argc++] = (char *)more[i];
    for (char **w = words; *w != NULL; w++)
        if (**w != '\0')
            argv[argc++] = *w;
    enter(model, size);
    const int status = tool(argc, argv);
    leave();
    if (g_getenv("FUZZ_VERBOSE") == NULL)
        check_said(name, status);
}

static void one(const uint8_t *data, size_t size)
{
    const uint8_t *end = memchr(data, '\n', size);
    const size_t n = end != NULL ? (size_t)(end - data) : size;
    g_autofree char *line = g_strndup((const char *)data, n);
    g_auto(GStrv) words = g_strsplit(line, " ", MOST_WORDS + 2);
    for (gsize i = 0; i < G_N_ELEMENTS(tools) && words[0] != NULL && harmless(words); i++)
        if (strcmp(words[0], tools[i].name) == 0)
            run_tool(tools[i].name, tools[i].main, words + 1, end != NULL ? end + 1 : data,
                     end != NULL ? size - n - 1 : 0);
}

/* --- changes ------------------------------------------------------------------------------------------------------ */

static const char *const dictionary[] = {
    "run",
    "bench",
    "diff",
    "export",
    "profile",
    "quantize",
    "replay",
    "m.onnx",
    "n.onnx",
    "x.npy",
    "x.npz",
    "bad.npy",
    "plan.json",
    "out.onnx",
    "-",
    "-o",
    "--out",
    "--data",
    "--calib",
    "--input",
    "x=x.npy",
    "--json",
    "--json=j",
    "--csv",
    "--csv=c",
    "--shapes",
    "x:3x8",
    "x:0x8",
    "--dim",
    "N=1,2,3",
    "N=-1",
    "--runs",
    "1",
    "2",
    "--warmup",
    "0",
    "--samples",
    "--seed",
    "--batch",
    "--check",
    "--no-check",
    "--opset",
    "7",
    "21",
    "--precision",
    "f16",
    "bf16",
    "--external",
    "one-file",
    "inline",
    "--extract",
    "x:y",
    "x:p",
    "--skip",
    "--only",
    "fold-constants",
    "--list-passes",
    "--explain",
    "--keep-repro",
    "repro",
    "--mode",
    "weights",
    "dynamic",
    "static",
    "--format",
    "qdq",
    "qoperator",
    "--force",
    "--analyze",
    "--set",
    ".*=int4",
    ".*=f32",
    "--exclude",
    "(((",
    "--metric",
    "top1",
    "cos",
    "sqnr",
    "--max-drop",
    "1%",
    "--repair",
    "none",
    "--journal",
    "--timing-cache",
    "--plan",
    "--ranges",
    "--per-channel",
    "--per-layer",
    "--rtol",
    "1e-3",
    "--atol",
    "nan",
    "-v",
    "-q",
    "--help",
    "--version",
    "--config",
    "--preset",
    "latency",
    "--strict",
    "--device",
    "null",
    "cpu",
    "--streams",
    "--trace",
    "t",
    "--folded",
    "f",
    "--memory",
    "-t",
    "3",
    "999999999999999999999",
    "--mem-limit",
    "1M",
    "--time-limit",
    "1ms",
    "random:3",
    "random",
    "--test-data",
    "--verify-data",
};

static size_t mutate_words(uint8_t *data, size_t size, size_t max, HnRng *rng)
{
    const uint8_t *end = memchr(data, '\n', size);
    const size_t n = end != NULL ? (size_t)(end - data) : size;
    g_autofree char *line = g_strndup((const char *)data, n);
    g_auto(GStrv) words = g_strsplit(line, " ", -1);
    g_autoptr(GString) out = g_string_new(NULL);
    const int64_t n_words = (int64_t)g_strv_length(words), at = n_words > 0 ? hn_rng_int(rng, 0, n_words) : 0;
    const int64_t what = hn_rng_int(rng, 0, 3); /* put in one or two, or another one in place of it, or leave it out */
    for (int64_t i = 0; i <= n_words; i++) {
        for (int64_t k = 0; i == at && k < (what == 1 ? 2 : what < 3); k++)
            g_string_append_printf(out, "%s%s", out->len > 0 ? " " : "",
                                   dictionary[hn_rng_int(rng, 0, G_N_ELEMENTS(dictionary) - 1)]);
        if (i < n_words && !(i == at && what >= 2))
            g_string_append_printf(out, "%s%s", out->len > 0 ? " " : "", words[i]);
    }
    if (out->len + (size - n) > max)
        return 0;
    memmove(data + out->len, data + n, size - n);
    if (out->len > 0)
        memcpy(data, out->str, out->len);
    return out->len + (size - n);
}

static size_t mutate(uint8_t *data, size_t size, size_t max, HnRng *rng)
{
    const uint8_t *end = memchr(data, '\n', size);
    const size_t n = end != NULL ? (size_t)(end - data) + 1 : size;
    if (hn_rng_int(rng, 0, 15) == 0)
        return 0;
    if (n >= size || hn_rng_int(rng, 0, 2) == 0)
        return mutate_words(data, size, max, rng);
    const size_t model = fuzz_mutate_model(data + n, size - n, max - n, rng);
    return model > 0 ? n + model : 0;
}

/* A tool measures for as long as --time-limit lets it. */
const FuzzTarget fuzz_target = { .one = one, .init = init, .mutate = mutate, .times = 100 };
