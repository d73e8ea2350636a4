#include "cli/options.h"

#include <string.h>

#include "config.h" /* HN_VERSION */

#include "base/cpu.h"
#include "base/file.h"
#include "base/nearest.h"
#include "base/text.h"
#include "cli/foreign.h"
#include "cli/keyfile.h"

#define MAX_THREADS 4096
#define MAX_DEVICE 1023
#define LEAST_TIME_S 1e-3 /* of --time-limit */

const char *hn_version(void)
{
    return HN_VERSION;
}

/* What the callbacks of the common options fill. */
typedef struct {
    const HnTool *tool;
    HnCommon *common;
    HnAction action;
} Parse;

static gboolean set_threads(Parse *p, const char *value, GError **error)
{
    GArray *list = hn_parse_ints(value, 1, MAX_THREADS, error);
    if (!list)
        return FALSE;
    g_clear_pointer(&p->common->thread_list, g_array_unref);
    p->common->thread_list = list;
    p->common->threads = (int)g_array_index(list, gint64, 0);
    p->common->threads_set = TRUE;
    return TRUE;
}

static gboolean set_device(Parse *p, const char *value, GError **error)
{
    gint64 index = 0;
    g_auto(GStrv) two = g_strsplit(value, ",", 2);
    if (p->tool->two_devices && *value != '\0') {
        g_free(p->common->device_b);
        p->common->device_b = g_strdup(two[1]);
        value = two[0];
    }
    gboolean cuda = g_str_has_prefix(value, "cuda:");
    if (cuda ? !hn_parse_int(value + 5, 0, MAX_DEVICE, &index, NULL)
             : strcmp(value, "cpu") && strcmp(value, "cuda") && strcmp(value, "null") && strcmp(value, "ref")) {
        g_set_error(error, HN_ERROR, HN_ERROR_USAGE, "'%s' is not a device: cpu, cuda, cuda:N, null or ref", value);
        return FALSE;
    }
    g_free(p->common->device);
    p->common->device = g_strdup(cuda ? "cuda" : value);
    p->common->device_index = (int)index;
    return TRUE;
}

static gboolean set_seed(Parse *p, const char *value, GError **error)
{
    gint64 x;
    if (!hn_parse_int(value, 0, G_MAXINT64, &x, error))
        return FALSE;
    p->common->seed = (guint64)x;
    return TRUE;
}

static gboolean set_mem_limit(guint64 *limit, const char *value, GError **error)
{
    guint64 x;
    if (!hn_parse_size(value, &x, error))
        return FALSE;
    if (x == 0) {
        g_set_error(error, HN_ERROR, HN_ERROR_USAGE, "'%s' leaves no memory at all", value);
        return FALSE;
    }
    *limit = x;
    return TRUE;
}

static gboolean set_time_limit(Parse *p, const char *value, GError **error)
{
    double x;
    if (!hn_parse_seconds(value, &x, error))
        return FALSE;
    if (x < LEAST_TIME_S) {
        g_set_error(error, HN_ERROR, HN_ERROR_USAGE, "'%s' leaves no time at all", value);
        return FALSE;
    }
    p->common->time_limit = x;
    return TRUE;
}

/* "" and "-" are stdout */
static void set_file(gboolean *on, char **file, const char *value)
{
    *on = TRUE;
    g_free(*file);
    *file = *value && !hn_out_is_stdout(value) ? g_strdup(value) : NULL;
}

gboolean hn_format_parse(const char *name, HnFormat *format)
{
    static const struct {
        const char *name;
        HnFormat format;
    } all[] = { { "table", HN_FORMAT_TABLE }, { "txt", HN_FORMAT_TABLE }, { "json", HN_FORMAT_JSON },
                { "csv", HN_FORMAT_CSV },     { "md", HN_FORMAT_MD },     { "markdown", HN_FORMAT_MD },
                { "html", HN_FORMAT_HTML },   { "htm", HN_FORMAT_HTML } };
    for (gsize i = 0; i < G_N_ELEMENTS(all); i++)
        if (strcmp(name, all[i].name) == 0) {
            *format = all[i].format;
            return TRUE;
        }
    return FALSE;
}

static gboolean set_format(HnCommon *common, const char *name, GError **error)
{
    if (hn_format_parse(name, &common->format))
        return TRUE;
    g_set_error(error, HN_ERROR, HN_ERROR_USAGE, "'%s' is none of table, json, csv, md, html", name);
    return FALSE;
}

static gboolean set_report(HnCommon *common, const char *file, GError **error)
{
    HnFormat format;
    const char *dot = strrchr(file, '.');
    if (dot == NULL || !hn_format_parse(dot + 1, &format)) {
        g_set_error(error, HN_ERROR, HN_ERROR_USAGE, "'%s' ends in none of .txt, .json, .csv, .md, .html", file);
        return FALSE;
    }
    g_free(common->report);
    common->report = g_strdup(file);
    return TRUE;
}

static gboolean on_value(const char *option, const char *value, gpointer data, GError **error)
{
    Parse *p = data;
    gboolean ok = TRUE;
    if (!strcmp(option, "--threads") || !strcmp(option, "-t"))
        ok = set_threads(p, value, error);
    else if (!strcmp(option, "--device"))
        ok = set_device(p, value, error);
    else if (!strcmp(option, "--seed"))
        ok = set_seed(p, value, error);
    else if (!strcmp(option, "--mem-limit"))
        ok = set_mem_limit(&p->common->mem_limit, value, error);
    else if (!strcmp(option, "--device-mem-limit"))
        ok = set_mem_limit(&p->common->device_mem_limit, value, error);
    else if (!strcmp(option, "--time-limit"))
        ok = set_time_limit(p, value, error);
    else if (!strcmp(option, "--json"))
        set_file(&p->common->json, &p->common->json_file, value);
    else if (!strcmp(option, "--csv"))
        set_file(&p->common->csv, &p->common->csv_file, value);
    else if (!strcmp(option, "--format"))
        ok = set_format(p->common, value, error);
    else if (!strcmp(option, "--report"))
        ok = set_report(p->common, value, error);
    else if (!strcmp(option, "--config"))
        g_free(p->common->config), p->common->config = g_strdup(value);
    else if (!strcmp(option, "--completion"))
        g_free(p->common->completion), p->common->completion = g_strdup(value), p->action = HN_ACTION_COMPLETION;
    else if (!strcmp(option, "--preset"))
        g_free(p->common->preset), p->common->preset = g_strdup(value);
    if (!ok)
        g_prefix_error(error, "option '%s': ", option);
    return ok;
}

static gboolean on_flag(const char *option, G_GNUC_UNUSED const char *value, gpointer data,
                        G_GNUC_UNUSED GError **error)
{
    Parse *p = data;
    if (!strcmp(option, "--quiet") || !strcmp(option, "-q"))
        p->common->quiet = TRUE;
    else if (!strcmp(option, "--verbose") || !strcmp(option, "-v"))
        p->common->verbose++;
    else if (!strcmp(option, "--strict-math"))
        p->common->strict_math = TRUE;
    else if (!strcmp(option, "--verify-data"))
        p->common->verify_data = TRUE;
    else if (!strcmp(option, "--no-progress"))
        p->common->no_progress = TRUE;
    else if (!strcmp(option, "--version"))
        p->action = HN_ACTION_VERSION;
    else if (!strcmp(option, "--help-all"))
        p->action = HN_ACTION_HELP_ALL;
    else
        p->action = HN_ACTION_HELP;
    return TRUE;
}

#define FILENAME G_OPTION_FLAG_FILENAME
#define OPTIONAL (G_OPTION_FLAG_OPTIONAL_ARG | G_OPTION_FLAG_FILENAME)
#define FLAG G_OPTION_FLAG_NO_ARG
#define HIDDEN (G_OPTION_FLAG_HIDDEN | G_OPTION_FLAG_FILENAME)
#define CALLBACK G_OPTION_ARG_CALLBACK

static const GOptionEntry common_entries[] = {
    { "threads", 't', FILENAME, CALLBACK, (gpointer)on_value,
      "threads to compute with (default: what CPU affinity and quota allow)", "N" },
    { "device", 0, FILENAME, CALLBACK, (gpointer)on_value,
      "cpu, cuda[:N], null, which computes nothing, or ref, which is slow and plain", "DEVICE" },
    { "seed", 0, FILENAME, CALLBACK, (gpointer)on_value, "seed of everything random (default: 0)", "N" },
    { "strict-math", 0, FLAG, CALLBACK, (gpointer)on_flag,
      "compute what operators say term by term: no faster algorithms that round otherwise", NULL },
    { "mem-limit", 0, FILENAME, CALLBACK, (gpointer)on_value,
      "end with status 6 rather than use more private memory than this, such as 512M or 2GB", "SIZE" },
    { "device-mem-limit", 0, FILENAME, CALLBACK, (gpointer)on_value,
      "the same for the memory of the device that --device names", "SIZE" },
    { "verify-data", 0, FLAG, CALLBACK, (gpointer)on_flag,
      "compare files of weights beside a model with the checksums that it gives", NULL },
    { "time-limit", 0, FILENAME, CALLBACK, (gpointer)on_value,
      "end with status 6, nothing written, when this time has passed, such as 30s or 2m", "T" },
    { "json", 0, OPTIONAL, CALLBACK, (gpointer)on_value, "report as JSON, to FILE or in place of the table", "FILE" },
    { "csv", 0, OPTIONAL, CALLBACK, (gpointer)on_value, "report as CSV, to FILE or in place of the table", "FILE" },
    { "format", 0, FILENAME, CALLBACK, (gpointer)on_value,
      "report to stdout as table, json, csv, md (for a pull request) or html (a page with plots)", "FORMAT" },
    { "report", 0, FILENAME, CALLBACK, (gpointer)on_value,
      "report to FILE too, in the format that it ends in: .html, .md, .json, .csv or .txt", "FILE" },
    { "config", 0, FILENAME, CALLBACK, (gpointer)on_value, "read options from a key file", "FILE" },
    { "preset", 0, FILENAME, CALLBACK, (gpointer)on_value, "a shipped set of options: low-memory, throughput, latency",
      "NAME" },
    { "quiet", 'q', FLAG, CALLBACK, (gpointer)on_flag, "say nothing but errors; reports go to --json and --csv", NULL },
    { "verbose", 'v', FLAG, CALLBACK, (gpointer)on_flag, "say more; may be repeated", NULL },
    { "no-progress", 0, FLAG, CALLBACK, (gpointer)on_flag, "show no progress bar", NULL },
    { "help", 'h', FLAG, CALLBACK, (gpointer)on_flag, "print the most used options and end", NULL },
    { "help-all", 0, FLAG, CALLBACK, (gpointer)on_flag, "print all options and end", NULL },
    { "completion", 0, HIDDEN, CALLBACK, (gpointer)on_value, "print the completion script for a shell", "SHELL" },
    { "version", 0, FLAG, CALLBACK, (gpointer)on_flag, "print the version and end", NULL },
    G_OPTION_ENTRY_NULL,
};

static const GOptionEntry no_entries[] = { G_OPTION_ENTRY_NULL };

const GOptionEntry *hn_options_common(void)
{
    return common_entries;
}

void hn_common_clear(HnCommon *common)
{
    g_clear_pointer(&common->thread_list, g_array_unref);
    g_free(common->device);
    g_free(common->device_b);
    g_free(common->json_file);
    g_free(common->csv_file);
    g_free(common->report);
    g_free(common->config);
    g_free(common->preset);
    g_free(common->completion);
    *common = (HnCommon){ 0 };
}

void hn_options_clear(const HnTool *tool, gpointer params)
{
    for (const GOptionEntry *e = tool->options; e && e->long_name; e++) {
        gpointer field = (guint8 *)params + GPOINTER_TO_SIZE(e->arg_data);
        if (e->arg == G_OPTION_ARG_STRING || e->arg == G_OPTION_ARG_FILENAME)
            g_clear_pointer((char **)field, g_free);
        else if (e->arg == G_OPTION_ARG_STRING_ARRAY || e->arg == G_OPTION_ARG_FILENAME_ARRAY)
            g_clear_pointer((char ***)field, g_strfreev);
    }
}

static gboolean unknown_option(const HnTool *tool, const char *arg, GError **error)
{
    g_autoptr(GPtrArray) names = g_ptr_array_new();
    const GOptionEntry *const tables[] = { tool->options ? tool->options : no_entries, common_entries };
    for (gsize t = 0; t < G_N_ELEMENTS(tables); t++)
        for (const GOptionEntry *e = tables[t]; e->long_name; e++)
            if (!(e->flags & G_OPTION_FLAG_HIDDEN))
                g_ptr_array_add(names, (gpointer)e->long_name);
    g_ptr_array_add(names, NULL);

    g_autofree char *option = g_strndup(arg, strcspn(arg, "="));
    const char *near = NULL;
    g_autofree char *foreign = hn_foreign_words(tool, option + strspn(option, "-"));
    if (foreign != NULL) {
        g_set_error(error, HN_ERROR, HN_ERROR_USAGE, "unknown option '%s': %s", option, foreign);
        return FALSE;
    }
    if (g_str_has_prefix(option, "--"))
        near = hn_nearest(option + 2, (const char *const *)names->pdata);
    if (near)
        g_set_error(error, HN_ERROR, HN_ERROR_USAGE, "unknown option '%s'; did you mean '--%s'?", option, near);
    else
        g_set_error(error, HN_ERROR, HN_ERROR_USAGE, "unknown option '%s'", option);
    return FALSE;
}

/* The tool's table with offsets turned into addresses in params. */
static GOptionEntry *relocate(const HnTool *tool, gpointer params)
{
    GArray *out = g_array_new(TRUE, TRUE, sizeof(GOptionEntry));
    for (const GOptionEntry *e = tool->options; e && e->long_name; e++) {
        GOptionEntry copy = *e;
        if (e->arg != G_OPTION_ARG_CALLBACK)
            copy.arg_data = (guint8 *)params + GPOINTER_TO_SIZE(e->arg_data);
        g_array_append_val(out, copy);
    }
    return (GOptionEntry *)(gpointer)g_array_free(out, FALSE);
}

/* The entry of a long name (length n), or of a short one where name is NULL. */
static const GOptionEntry *find_entry(const HnTool *tool, const char *name, gsize n, char letter)
{
    const GOptionEntry *const tables[] = { tool->options ? tool->options : no_entries, common_entries };
    for (gsize t = 0; t < G_N_ELEMENTS(tables); t++)
        for (const GOptionEntry *e = tables[t]; e->long_name; e++)
            if (name ? strlen(e->long_name) == n && !strncmp(e->long_name, name, n) : e->short_name == letter)
                return e;
    return NULL;
}

static gboolean is_flag(const GOptionEntry *e)
{
    return e->arg == G_OPTION_ARG_NONE || (e->flags & G_OPTION_FLAG_NO_ARG);
}

/* Options by what a further one does: a switch says the same again, or adds to it (-v); values of a list add up; what
 * takes one value takes one. */
static gboolean once(const GOptionEntry *e, GHashTable *seen, GError **error)
{
    if (seen == NULL || is_flag(e) || e->arg == G_OPTION_ARG_STRING_ARRAY || e->arg == G_OPTION_ARG_FILENAME_ARRAY ||
        g_hash_table_add(seen, (gpointer)e))
        return TRUE;
    g_set_error(error, HN_ERROR, HN_ERROR_USAGE, "option '--%s' is given twice, and takes one value", e->long_name);
    return FALSE;
}

/* "--json out.json", in which out.json would be a model: what takes its file after '=' alone is followed by one whose
 * name ends as the option is called. */
static gboolean file_apart(const GOptionEntry *e, const char *next, GError **error)
{
    g_autofree char *ending = g_strconcat(".", e->long_name, NULL);
    if (next == NULL || *next == '-' || !g_str_has_suffix(next, ending))
        return FALSE;
    g_set_error(error, HN_ERROR, HN_ERROR_USAGE, "option '--%s' takes its file after '=': did you mean '--%s=%s'?",
                e->long_name, e->long_name, next);
    return TRUE;
}

/* One "--..." into out; *takes_next where its value is the next argument. */
static gboolean normalise_long(const HnTool *tool, const char *arg, const char *next, GHashTable *seen,
                               GStrvBuilder *out, gboolean *takes_next, GError **error)
{
    gsize n = strcspn(arg + 2, "=");
    const GOptionEntry *e = find_entry(tool, arg + 2, n, 0);
    gboolean has_value = arg[2 + n] == '=';
    if (e && !once(e, seen, error))
        return FALSE;
    if (e && is_flag(e) && has_value) {
        g_set_error(error, HN_ERROR, HN_ERROR_USAGE, "option '--%s' takes no value", e->long_name);
        return FALSE;
    }
    gboolean optional = e && (e->flags & G_OPTION_FLAG_OPTIONAL_ARG);
    *takes_next = e && !is_flag(e) && !optional && !has_value;
    if (optional && !has_value && file_apart(e, next, error))
        return FALSE;
    g_autofree char *text = g_strconcat(arg, optional && !has_value ? "=" : "", NULL);
    g_strv_builder_add(out, text);
    return TRUE;
}

/* One "-abc" into out: "-t4" becomes "-t" "4". */
static gboolean normalise_short(const HnTool *tool, const char *arg, GHashTable *seen, GStrvBuilder *out,
                                gboolean *takes_next, GError **error)
{
    g_autofree char *word = g_strndup(arg + 1, strcspn(arg + 1, "="));
    g_autofree char *foreign = strlen(word) > 2 ? hn_foreign_words(tool, word) : NULL;
    if (foreign != NULL) { /* "-niter" is no "-n iter" */
        g_set_error(error, HN_ERROR, HN_ERROR_USAGE, "unknown option '-%s': %s", word, foreign);
        return FALSE;
    }
    for (gsize i = 1; arg[i]; i++) {
        const GOptionEntry *e = find_entry(tool, NULL, 0, arg[i]);
        if (!e)
            break;
        if (is_flag(e))
            continue;
        if (!once(e, seen, error))
            return FALSE;
        g_autofree char *letters = g_strndup(arg, i + 1);
        g_strv_builder_add(out, letters);
        if (arg[i + 1])
            g_strv_builder_add(out, arg + i + 1);
        *takes_next = !arg[i + 1];
        return TRUE;
    }
    g_strv_builder_add(out, arg);
    return TRUE;
}

/* argv as GOption understands it: "--json" becomes "--json=", so that the next argument is not taken as its value.
 * seen: entries that were there; NULL: what comes later wins. */
static GStrv normalise(const HnTool *tool, char *const *argv, GHashTable *seen, GError **error)
{
    g_autoptr(GStrvBuilder) out = g_strv_builder_new();
    gboolean options = TRUE;
    g_strv_builder_add(out, argv[0]);
    for (int i = 1; argv[i]; i++) {
        gboolean takes_next = FALSE;
        if (options && !strcmp(argv[i], "--"))
            options = FALSE;
        if (options && g_str_has_prefix(argv[i], "--")) {
            if (!normalise_long(tool, argv[i], argv[i + 1], seen, out, &takes_next, error))
                return NULL;
        } else if (options && argv[i][0] == '-') {
            if (!normalise_short(tool, argv[i], seen, out, &takes_next, error))
                return NULL;
        } else {
            g_strv_builder_add(out, argv[i]);
        }
        if (takes_next && argv[i + 1])
            g_strv_builder_add(out, argv[++i]);
    }
    return g_strv_builder_end(out);
}

/* GOption's own words brought into our form: lower case, plain quotes, option names quoted. */
static void adopt_error(GError **error, GError *cause)
{
    if (cause->domain == HN_ERROR) {
        g_propagate_error(error, cause);
        return;
    }
    g_autoptr(GString) text = g_string_new(cause->message);
    g_string_replace(text, "\xe2\x80\x9c", "'", 0);
    g_string_replace(text, "\xe2\x80\x9d", "'", 0);
    text->str[0] = g_ascii_tolower(text->str[0]);
    char *dash = strstr(text->str, " -");
    if (dash) {
        gsize at = (gsize)(dash - text->str) + 1;
        gsize end = at + strcspn(dash + 1, " ");
        g_string_insert_c(text, (gssize)end, '\'');
        g_string_insert_c(text, (gssize)at, '\'');
    }
    g_set_error_literal(error, HN_ERROR, HN_ERROR_USAGE, text->str);
    g_error_free(cause);
}

/* What GOption left over: arguments, and options that nobody knows. argv[0] is the program. */
static gboolean collect_args(const HnTool *tool, char *const *argv, GStrv *args, GError **error)
{
    g_autoptr(GStrvBuilder) b = g_strv_builder_new();
    gboolean options = TRUE;
    for (int i = 1; argv[0] && argv[i]; i++) {
        if (options && !strcmp(argv[i], "--"))
            options = FALSE;
        else if (options && argv[i][0] == '-' && argv[i][1])
            return unknown_option(tool, argv[i], error);
        else
            g_strv_builder_add(b, argv[i]);
    }
    *args = g_strv_builder_end(b);
    return TRUE;
}

/* One run of GOption over argv, on zeroed common and params; on failure both are clear. merged: argv has options of
 * several sources, of which the last wins; else one that takes one value comes once. */
static gboolean parse_once(const HnTool *tool, char *const *argv, gboolean merged, HnCommon *common, gpointer params,
                           GStrv *args, HnAction *action, GError **error)
{
    Parse parse = { tool, common, HN_ACTION_RUN };
    g_autofree GOptionEntry *entries = relocate(tool, params);
    g_autoptr(GOptionContext) context = g_option_context_new(NULL);
    GOptionGroup *own = g_option_group_new("tool", "", "", params, NULL);
    GOptionGroup *shared = g_option_group_new("common", "", "", &parse, NULL);
    g_option_group_add_entries(own, entries);
    g_option_group_add_entries(shared, common_entries);
    g_option_context_set_main_group(context, own);
    g_option_context_add_group(context, shared);
    g_option_context_set_help_enabled(context, FALSE);
    g_option_context_set_ignore_unknown_options(context, TRUE);

    *common = (HnCommon){ 0 };
    if (tool->params_size && tool->defaults)
        memcpy(params, tool->defaults, tool->params_size);
    else if (tool->params_size)
        memset(params, 0, tool->params_size);

    GError *cause = NULL;
    g_autoptr(GHashTable) seen = g_hash_table_new(NULL, NULL);
    g_auto(GStrv) rest = normalise(tool, argv, merged ? NULL : seen, &cause);
    gboolean ok = rest && g_option_context_parse_strv(context, &rest, &cause);
    if (!ok)
        adopt_error(error, cause);
    else
        ok = collect_args(tool, rest, args, error);
    *action = parse.action;
    if (!ok) {
        hn_common_clear(common);
        hn_options_clear(tool, params);
    }
    return ok;
}

/* argv with the options of preset and configuration before those of the command line */
static GStrv merge(const HnTool *tool, char *const *argv, const char *preset, const char *config, GError **error)
{
    const GOptionEntry *const tables[] = { tool->options ? tool->options : no_entries, common_entries, NULL };
    g_autoptr(GPtrArray) from_config = g_ptr_array_new_with_free_func(g_free);
    g_autoptr(GPtrArray) from_preset = g_ptr_array_new_with_free_func(g_free);
    if (config && !hn_keyfile_args(config, tool->name, tables, argv + 1, FALSE, from_config, error))
        return NULL;
    g_autoptr(GPtrArray) wins = g_ptr_array_new();
    for (guint i = 0; i < from_config->len; i++)
        g_ptr_array_add(wins, from_config->pdata[i]);
    for (int i = 1; argv[i]; i++)
        g_ptr_array_add(wins, argv[i]);
    g_ptr_array_add(wins, NULL);
    if (preset) {
        g_autofree char *path = hn_preset_path(preset, error);
        if (!path || !hn_keyfile_args(path, tool->name, tables, (char *const *)wins->pdata, TRUE, from_preset, error))
            return NULL;
    }
    g_autoptr(GStrvBuilder) b = g_strv_builder_new();
    g_strv_builder_add(b, argv[0]);
    for (guint i = 0; i < from_preset->len; i++)
        g_strv_builder_add(b, from_preset->pdata[i]);
    for (guint i = 0; wins->pdata[i]; i++)
        g_strv_builder_add(b, wins->pdata[i]);
    return g_strv_builder_end(b);
}

/* --format json is --json, and what it names is alone on stdout. */
static gboolean one_on_stdout(HnCommon *common, GError **error)
{
    const gboolean json = common->json && !common->json_file, csv = common->csv && !common->csv_file;
    if (json && csv) {
        g_set_error_literal(error, HN_ERROR, HN_ERROR_USAGE,
                            "'--json' and '--csv' cannot both go to stdout; name a file: '--json=FILE'");
        return FALSE;
    }
    if (common->format == HN_FORMAT_TABLE)
        return TRUE;
    if ((json && common->format != HN_FORMAT_JSON) || (csv && common->format != HN_FORMAT_CSV)) {
        const char *other = json ? "--json" : "--csv";
        g_set_error(error, HN_ERROR, HN_ERROR_USAGE,
                    "'--format' and '%s' cannot both go to stdout; name a file: '%s=FILE'", other, other);
        return FALSE;
    }
    if (json || csv)
        return TRUE;
    if ((common->format == HN_FORMAT_JSON && common->json) || (common->format == HN_FORMAT_CSV && common->csv)) {
        const char *other = common->format == HN_FORMAT_JSON ? "json" : "csv";
        g_set_error(error, HN_ERROR, HN_ERROR_USAGE, "'--format %s' and '--%s=FILE' are one option: give one of them",
                    other, other);
        return FALSE;
    }
    common->json = common->json || common->format == HN_FORMAT_JSON;
    common->csv = common->csv || common->format == HN_FORMAT_CSV;
    return TRUE;
}

gboolean hn_common_set_format(HnCommon *common, HnFormat format, GError **error)
{
    common->format = format;
    return one_on_stdout(common, error);
}

/* defaults that depend on the machine, and options that contradict each other */
static gboolean finish(const HnTool *tool, HnCommon *common, GError **error)
{
    if (!common->threads_set) {
        gint64 n = common->threads = hn_cpu_threads(NULL);
        common->thread_list = g_array_new(FALSE, FALSE, sizeof(gint64));
        g_array_append_val(common->thread_list, n);
    }
    if (!common->device)
        common->device = g_strdup("cpu");
    if (common->thread_list->len > 1 && !tool->sweeps_threads) {
        g_set_error_literal(error, HN_ERROR, HN_ERROR_USAGE, "option '--threads' takes one number");
        return FALSE;
    }
    return one_on_stdout(common, error);
}

gboolean hn_options_parse(const HnTool *tool, int argc, char *const *argv, HnCommon *common, gpointer params,
                          GStrv *args, HnAction *action, GError **error)
{
    g_auto(GStrv) rest = NULL;
    g_autoptr(GPtrArray) given = g_ptr_array_new();
    g_ptr_array_add(given, argc > 0 ? argv[0] : (gpointer)tool->name);
    for (int i = 1; i < argc; i++)
        g_ptr_array_add(given, argv[i]);
    g_ptr_array_add(given, NULL);

    if (!parse_once(tool, (char *const *)given->pdata, FALSE, common, params, &rest, action, error))
        return FALSE;
    if (*action == HN_ACTION_RUN && (common->config || common->preset)) {
        g_autofree char *config = g_steal_pointer(&common->config), *preset = g_steal_pointer(&common->preset);
        hn_common_clear(common);
        hn_options_clear(tool, params);
        g_clear_pointer(&rest, g_strfreev);
        g_auto(GStrv) merged = merge(tool, (char *const *)given->pdata, preset, config, error);
        if (!merged || !parse_once(tool, merged, TRUE, common, params, &rest, action, error))
            return FALSE;
    }
    if (!finish(tool, common, error)) {
        hn_common_clear(common);
        hn_options_clear(tool, params);
        return FALSE;
    }
    *args = g_steal_pointer(&rest);
    return TRUE;
}
