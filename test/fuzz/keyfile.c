/* Key files: the options that --config and --preset take out of them, and what the command line makes of these. */
#include <string.h>

#include "cli/keyfile.h"
#include "cli/options.h"
#include "scratch.h"

typedef struct {
    char *output;
    char **set;
    int samples;
    double part;
    gboolean force;
} Params;

static const GOptionEntry entries[] = {
    { "output", 'o', 0, G_OPTION_ARG_FILENAME, HN_FIELD(Params, output), "", "PATH" },
    { "set", 0, 0, G_OPTION_ARG_STRING_ARRAY, HN_FIELD(Params, set), "", "X" },
    { "samples", 0, 0, G_OPTION_ARG_INT, HN_FIELD(Params, samples), "", "N" },
    { "part", 0, 0, G_OPTION_ARG_DOUBLE, HN_FIELD(Params, part), "", "X" },
    { "force", 0, 0, G_OPTION_ARG_NONE, HN_FIELD(Params, force), "", NULL },
    G_OPTION_ENTRY_NULL,
};
static const HnTool tool = { .name = "hone-fuzz", .options = entries, .params_size = sizeof(Params) };

/* Each argument is an option that there is, by its long name, and none that would read another file of options. */
static void check(const char *arg)
{
    const GOptionEntry *const tables[] = { entries, hn_options_common() };
    const gsize n = strcspn(arg, "=");
    for (gsize t = 0; t < G_N_ELEMENTS(tables); t++)
        for (const GOptionEntry *e = tables[t]; e->long_name != NULL; e++)
            if (n > 2 && strlen(e->long_name) == n - 2 && strncmp(e->long_name, arg + 2, n - 2) == 0 &&
                strcmp(e->long_name, "config") != 0 && strcmp(e->long_name, "preset") != 0)
                return;
    g_error("'%s' came out of a key file", arg);
}

static void one(const uint8_t *data, size_t size)
{
    g_autoptr(Scratch) file = scratch_new(data, size);
    const GOptionEntry *const tables[] = { entries, hn_options_common(), NULL };
    char *argv[] = { (char *)"hone-fuzz", (char *)"--set=x", NULL, NULL };
    for (int lenient = 0; lenient < 2; lenient++) {
        g_autoptr(GPtrArray) args = g_ptr_array_new_with_free_func(g_free);
        g_autoptr(GError) error = NULL;
        const gboolean ok = hn_keyfile_args(scratch_path(file), "hone-fuzz", tables, argv, lenient, args, &error);
        fuzz_result(ok, error);
        for (guint i = 0; i < args->len; i++)
            check(args->pdata[i]);
    }
    g_autofree char *config = argv[2] = g_strconcat("--config=", scratch_path(file), NULL);
    g_auto(GStrv) rest = NULL;
    g_autoptr(GError) error = NULL;
    HnCommon common = { 0 };
    HnAction action;
    Params params = { 0 };
    const gboolean ok = hn_options_parse(&tool, 3, argv, &common, &params, &rest, &action, &error);
    fuzz_result(ok, error);
    if (!ok)
        return;
    hn_common_clear(&common);
    hn_options_clear(&tool, &params);
}

const FuzzTarget fuzz_target = { .one = one, .times = 4 };
