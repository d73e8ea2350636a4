/* Options: argv as users type it, configuration files and presets, help within 80 columns. */
#include <glib/gstdio.h>
#include <string.h>

#include "base/cpu.h"
#include "cli/options.h"

typedef struct {
    char *out;
    char **set;
    int runs;
    gboolean strict;
    gint64 big;
    double rate;
    int calls;
} Params;

static gboolean on_trace(G_GNUC_UNUSED const char *option, const char *value, gpointer data,
                         G_GNUC_UNUSED GError **error)
{
    Params *p = data;
    p->calls += *value ? 100 : 1;
    return TRUE;
}

static const GOptionEntry entries[] = {
    { "output", 'o', 0, G_OPTION_ARG_FILENAME, HN_FIELD(Params, out), "write to PATH", "PATH" },
    { "set", 0, 0, G_OPTION_ARG_STRING_ARRAY, HN_FIELD(Params, set), "a rule; may be repeated", "RULE" },
    { "runs", 'n', 0, G_OPTION_ARG_INT, HN_FIELD(Params, runs), "number of runs", "N" },
    { "strict", 0, 0, G_OPTION_ARG_NONE, HN_FIELD(Params, strict), "fail where something is missing", NULL },
    { "big", 0, 0, G_OPTION_ARG_INT64, HN_FIELD(Params, big), "a large number", "N" },
    { "rate", 0, 0, G_OPTION_ARG_DOUBLE, HN_FIELD(Params, rate),
      "a number with a description so long that it cannot stand in one line of a help text of 80 columns", "X" },
    { "trace", 0, G_OPTION_FLAG_OPTIONAL_ARG, G_OPTION_ARG_CALLBACK, (gpointer)on_trace, "trace", "FILE" },
    { "hidden", 0, G_OPTION_FLAG_HIDDEN, G_OPTION_ARG_INT, HN_FIELD(Params, runs), "not shown", "N" },
    G_OPTION_ENTRY_NULL,
};

static const Params defaults = { .runs = 7 };

static const HnTool tool = {
    .name = "hone-test",
    .summary = "try out what the command line can do",
    .usage = "[OPTIONS] MODEL...",
    .details = "A first paragraph.\n\nA second one.",
    .options = entries,
    .params_size = sizeof(Params),
    .defaults = &defaults,
};

typedef struct {
    HnCommon common;
    Params params;
    GStrv args;
    HnAction action;
} Parsed;

static void parsed_clear(Parsed *p)
{
    hn_common_clear(&p->common);
    hn_options_clear(&tool, &p->params);
    g_strfreev(p->args);
}

/* line: arguments separated by blanks */
static gboolean parse(const char *line, Parsed *p, GError **error)
{
    g_autofree char *full = g_strconcat("hone-test", *line ? " " : "", line, NULL);
    g_auto(GStrv) argv = g_strsplit(full, " ", -1);
    *p = (Parsed){ 0 };
    return hn_options_parse(&tool, (int)g_strv_length(argv), argv, &p->common, &p->params, &p->args, &p->action, error);
}

static void expect_args(const char *line, const char *args)
{
    Parsed p;
    g_autoptr(GError) error = NULL;
    g_assert_true(parse(line, &p, &error));
    g_autofree char *joined = g_strjoinv(" ", p.args);
    g_assert_cmpstr(joined, ==, args);
    parsed_clear(&p);
}

static void expect_usage(const char *line, const char *message)
{
    Parsed p;
    g_autoptr(GError) error = NULL;
    g_assert_false(parse(line, &p, &error));
    g_assert_error(error, HN_ERROR, HN_ERROR_USAGE);
    g_assert_cmpstr(error->message, ==, message);
}

static void test_values(void)
{
    Parsed p;
    g_assert_true(parse("a -o x.onnx --set=a=1 b --set b;c=2 --runs 3 --strict --big 5000000000 --rate 2.5 -t 4 "
                        "--device cuda:1 --seed 12 --mem-limit 2GB --device-mem-limit 1GiB -q -vv -v --no-progress",
                        &p, NULL));
    g_assert_cmpstr(p.params.out, ==, "x.onnx");
    g_assert_cmpuint(g_strv_length(p.params.set), ==, 2);
    g_assert_cmpstr(p.params.set[1], ==, "b;c=2");
    g_assert_cmpint(p.params.runs, ==, 3);
    g_assert_true(p.params.strict);
    g_assert_cmpint(p.params.big, ==, G_GINT64_CONSTANT(5000000000));
    g_assert_cmpfloat(p.params.rate, ==, 2.5);
    g_assert_cmpint(p.common.threads, ==, 4);
    g_assert_cmpstr(p.common.device, ==, "cuda");
    g_assert_cmpint(p.common.device_index, ==, 1);
    g_assert_cmpuint(p.common.seed, ==, 12);
    g_assert_cmpuint(p.common.mem_limit, ==, 2000000000);
    g_assert_cmpuint(p.common.device_mem_limit, ==, (guint64)1 << 30);
    g_assert_true(p.common.quiet && p.common.no_progress);
    g_assert_cmpint(p.common.verbose, ==, 3);
    g_assert_cmpuint(g_strv_length(p.args), ==, 2);
    parsed_clear(&p);

    g_assert_true(parse("m", &p, NULL));
    g_assert_cmpint(p.params.runs, ==, 7);
    g_assert_cmpint(p.common.threads, ==, hn_cpu_threads(NULL));
    g_assert_cmpstr(p.common.device, ==, "cpu");
    g_assert_cmpint(p.action, ==, HN_ACTION_RUN);
    parsed_clear(&p);

    g_assert_true(parse("-vn4 -t2 -ox.onnx", &p, NULL));
    g_assert_cmpint(p.params.runs, ==, 4);
    g_assert_cmpint(p.common.threads, ==, 2);
    g_assert_cmpint(p.common.verbose, ==, 1);
    g_assert_cmpstr(p.params.out, ==, "x.onnx");
    parsed_clear(&p);
}

static void test_twice(void)
{
    Parsed p;
    /* switches, and what is a list */
    g_assert_true(parse("--strict --strict -q -q -v -vv --set a=1 --set a=1 --set b=2 m", &p, NULL));
    g_assert_true(p.params.strict && p.common.quiet);
    g_assert_cmpint(p.common.verbose, ==, 3);
    g_assert_cmpuint(g_strv_length(p.params.set), ==, 3);
    g_assert_cmpstr(p.params.set[1], ==, "a=1");
    parsed_clear(&p);

    expect_usage("-o a -o b", "option '--output' is given twice, and takes one value");
    expect_usage("-oa m --output=b", "option '--output' is given twice, and takes one value");
    expect_usage("-o a -o a", "option '--output' is given twice, and takes one value");
    expect_usage("-vn4 -qn4", "option '--runs' is given twice, and takes one value");
    expect_usage("--big 1 --big 2", "option '--big' is given twice, and takes one value");
    expect_usage("--rate 1 --rate 2", "option '--rate' is given twice, and takes one value");
    expect_usage("--trace=a --trace=b", "option '--trace' is given twice, and takes one value");
    expect_usage("--trace --trace", "option '--trace' is given twice, and takes one value");
    expect_usage("--device null --device cpu", "option '--device' is given twice, and takes one value");
    expect_usage("-t 3 --threads 2", "option '--threads' is given twice, and takes one value");
    expect_usage("--seed 1 m --seed 1", "option '--seed' is given twice, and takes one value");
    expect_usage("--json --json=x", "option '--json' is given twice, and takes one value");
    /* values and arguments are none */
    expect_args("-o --runs --runs 3 -- --runs --runs", "--runs --runs");
    expect_args("-o -n4 -n 4", "");
}

static void test_arguments(void)
{
    expect_args("", "");
    expect_args("- a", "- a");
    expect_args("-o - m", "m");
    expect_args("a -- -b --json", "a -b --json");
    expect_args("--json m", "m");
    expect_args("m --csv=x.csv --json -", "m -");
    expect_args("-- -", "-");
    expect_args("-n4 -vqt2 m", "m");
    expect_args("-o -n4 m", "m");
    expect_args("-o --json m", "m");
    expect_args("-o -- m", "m");
}

static void test_optional_value(void)
{
    Parsed p;
    g_assert_true(parse("--json m", &p, NULL));
    g_assert_true(p.common.json);
    g_assert_null(p.common.json_file);
    parsed_clear(&p);
    g_assert_true(parse("--json=r.json --csv m", &p, NULL));
    g_assert_cmpstr(p.common.json_file, ==, "r.json");
    g_assert_true(p.common.csv);
    parsed_clear(&p);
    g_assert_true(parse("--trace m", &p, NULL));
    g_assert_cmpint(p.params.calls, ==, 1);
    parsed_clear(&p);
    g_assert_true(parse("--trace=x m", &p, NULL));
    g_assert_cmpint(p.params.calls, ==, 100);
    parsed_clear(&p);
}

static void test_actions(void)
{
    Parsed p;
    g_assert_true(parse("--help", &p, NULL));
    g_assert_cmpint(p.action, ==, HN_ACTION_HELP);
    parsed_clear(&p);
    g_assert_true(parse("m -h", &p, NULL));
    g_assert_cmpint(p.action, ==, HN_ACTION_HELP);
    parsed_clear(&p);
    g_assert_true(parse("--version", &p, NULL));
    g_assert_cmpint(p.action, ==, HN_ACTION_VERSION);
    parsed_clear(&p);
}

static void test_refused(void)
{
    expect_usage("--jsno m", "unknown option '--jsno'; did you mean '--json'?");
    expect_usage("--ouptut=x m", "unknown option '--ouptut'; did you mean '--output'?");
    expect_usage("--zzzzzz m", "unknown option '--zzzzzz'");
    expect_usage("m -x", "unknown option '-x'");
    expect_usage("--strict=yes m", "option '--strict' takes no value");
    expect_usage("m --runs", "missing argument for '--runs'");
    expect_usage("--runs 3x", "cannot parse integer value '3x' for '--runs'");
    expect_usage("-t 0", "option '-t': '0' is not a list such as 1,8,32 or 1..4 or 1..32*2 of numbers from 1 to 4096");
    expect_usage("-t 1,2", "option '--threads' takes one number");
    expect_usage("--device gpu", "option '--device': 'gpu' is not a device: cpu, cuda, cuda:N, null or ref");
    expect_usage("--seed=-1", "option '--seed': '-1' is not a whole number of at least 0");
    expect_usage("--mem-limit 5X", "option '--mem-limit': '5X' is not a size such as 512M, 2GB or 1.5GiB");
    expect_usage("--device-mem-limit 5X",
                 "option '--device-mem-limit': '5X' is not a size such as 512M, 2GB or 1.5GiB");
    expect_usage("--mem-limit 0", "option '--mem-limit': '0' leaves no memory at all");
    expect_usage("--format md --json", "'--format' and '--json' cannot both go to stdout; name a file: '--json=FILE'");
    expect_usage("--format csv --csv=x", "'--format csv' and '--csv=FILE' are one option: give one of them");
    expect_usage("--format png", "option '--format': 'png' is none of table, json, csv, md, html");
    expect_usage("--report a.png", "option '--report': 'a.png' ends in none of .txt, .json, .csv, .md, .html");
    expect_usage("--json --csv", "'--json' and '--csv' cannot both go to stdout; name a file: '--json=FILE'");
}

/* write text to folder/name, return the path */
static char *put_file(const char *folder, const char *name, const char *text)
{
    char *path = g_build_filename(folder, name, NULL);
    g_autofree char *parent = g_path_get_dirname(path);
    g_assert_cmpint(g_mkdir_with_parents(parent, 0700), ==, 0);
    g_assert_true(g_file_set_contents(path, text, -1, NULL));
    return path;
}

static gboolean parse_config(const char *folder, const char *text, const char *rest, Parsed *p, GError **error)
{
    g_autofree char *path = put_file(folder, "config.conf", text);
    g_autofree char *line = g_strdup_printf("--config %s %s", path, rest);
    gboolean ok = parse(line, p, error);
    g_remove(path);
    return ok;
}

static void test_config(void)
{
    g_autofree char *folder = g_dir_make_tmp("hone-options-XXXXXX", NULL);
    g_autoptr(GError) error = NULL;
    Parsed p;
    const char *text = "[hone]\nthreads=3\nquiet=true\nno-progress=false\n[hone-test]\nruns=9\n"
                       "set=a\\d=1;b=2\nstrict=true\njson=true\n[hone-other]\nnonsense=1\n";
    g_assert_true(parse_config(folder, text, "m", &p, &error));
    g_assert_no_error(error);
    g_assert_cmpint(p.common.threads, ==, 3);
    g_assert_true(p.common.quiet && !p.common.no_progress && p.params.strict && p.common.json);
    g_assert_null(p.common.json_file);
    g_assert_cmpint(p.params.runs, ==, 9);
    g_assert_cmpuint(g_strv_length(p.params.set), ==, 2);
    g_assert_cmpstr(p.params.set[0], ==, "a\\d=1");
    g_assert_cmpstr(p.args[0], ==, "m");
    parsed_clear(&p);

    /* the command line wins */
    g_assert_true(parse_config(folder, text, "-t 2 --runs=1 --set c=3", &p, &error));
    g_assert_cmpint(p.common.threads, ==, 2);
    g_assert_cmpint(p.params.runs, ==, 1);
    g_assert_cmpuint(g_strv_length(p.params.set), ==, 1);
    parsed_clear(&p);

    /* a key may be in both groups: that of the tool wins */
    g_assert_true(parse_config(folder, "[hone]\nseed=1\n[hone-test]\nseed=2\n", "m", &p, &error));
    g_assert_cmpuint(p.common.seed, ==, 2);
    parsed_clear(&p);

    static const char *const bad[] = { "[hone]\nthreds=3\n",
                                       "[hone-test]\nconfig=x\n",
                                       "[hone]\nquiet=perhaps\n",
                                       "threads=3\n",
                                       "[hone]\nthreads=x\n",
                                       "[hone]\nseed=1\n[hone-test]\nruns=1\n[hone]\nseed=2\n",
                                       "[hone-test]\nset=a=1\n# again\n set = b=2\n" };
    for (gsize i = 0; i < G_N_ELEMENTS(bad); i++) {
        g_assert_false(parse_config(folder, bad[i], "m", &p, &error));
        g_assert_error(error, HN_ERROR, HN_ERROR_USAGE);
        g_clear_error(&error);
    }
    g_assert_false(parse("--config /no/such/file", &p, &error));
    g_assert_error(error, HN_ERROR, HN_ERROR_IO);
    g_rmdir(folder);
}

static void test_preset(void)
{
    g_autofree char *folder = g_dir_make_tmp("hone-options-XXXXXX", NULL);
    g_autofree char *presets = g_build_filename(folder, "presets", NULL);
    g_autofree char *one = put_file(presets, "slow.conf", "[hone]\nthreads=1\nfor-others=2\nseed=5\n");
    g_autofree char *two = put_file(presets, "bad.conf", "[hone-test]\nfor-others=2\n");
    g_autofree char *config = put_file(folder, "c.conf", "[hone]\nseed=6\n");
    g_autofree char *line = g_strdup_printf("--preset slow --config %s m", config);
    g_autoptr(GError) error = NULL;
    Parsed p;
    g_setenv("HONE_DATADIR", folder, TRUE);
    g_assert_true(parse(line, &p, &error));
    g_assert_no_error(error);
    g_assert_cmpint(p.common.threads, ==, 1);
    g_assert_cmpuint(p.common.seed, ==, 6);
    parsed_clear(&p);
    expect_usage("--preset fast", "unknown preset 'fast'; there are bad, slow");
    expect_usage("--preset ../presets/slow", "unknown preset '../presets/slow'; there are bad, slow");
    g_assert_false(parse("--preset bad", &p, NULL));
    g_remove(one);
    g_remove(two);
    g_remove(config);
    expect_usage("--preset slow", "unknown preset 'slow'; no presets are installed");
    g_rmdir(presets);
    g_rmdir(folder);
    g_unsetenv("HONE_DATADIR");
}

static void test_help(void)
{
    g_autofree char *help = hn_options_help(&tool, TRUE);
    g_auto(GStrv) lines = g_strsplit(help, "\n", -1);
    for (int i = 0; lines[i]; i++) {
        g_assert_cmpint(g_utf8_strlen(lines[i], -1), <, 80);
        g_assert_false(g_str_has_suffix(lines[i], " "));
    }
    g_assert_true(g_str_has_prefix(help, "Usage: hone-test [OPTIONS] MODEL...\nTry out what"));
    g_assert_nonnull(strstr(help, "\n  -o, --output=PATH       write to PATH\n"));
    g_assert_nonnull(strstr(help, "\n      --json[=FILE]       report as JSON"));
    g_assert_nonnull(strstr(help, "\nExit status: 0 done;"));
    g_assert_null(strstr(help, "hidden"));
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/cli/options/values", test_values);
    g_test_add_func("/cli/options/twice", test_twice);
    g_test_add_func("/cli/options/arguments", test_arguments);
    g_test_add_func("/cli/options/optional-value", test_optional_value);
    g_test_add_func("/cli/options/actions", test_actions);
    g_test_add_func("/cli/options/refused", test_refused);
    g_test_add_func("/cli/options/config", test_config);
    g_test_add_func("/cli/options/preset", test_preset);
    g_test_add_func("/cli/options/help", test_help);
    return g_test_run();
}
