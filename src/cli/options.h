/*
 * Options: what every tool shares, and how a tool adds its own.
 *
 * A tool is a constant HnTool. Its options are a GOptionEntry table whose arg_data is not an address but the offset of
 * a field in the tool's parameter struct, written HN_FIELD(Struct, field); the struct starts zeroed or as `defaults`
 * says. A G_OPTION_ARG_CALLBACK entry keeps its function there and gets the struct as data. The field's type follows
 * from the kind: gboolean, int, gint64, double, char * or char **; strings belong to the struct, hn_tool_main() frees
 * them.
 *
 *     typedef struct { char *out; gboolean strict; } Params;
 *     static const GOptionEntry entries[] = {
 *         { "output", 'o', 0, G_OPTION_ARG_FILENAME, HN_FIELD(Params, out), "write the model to PATH", "PATH" },
 *         { "strict", 0, 0, G_OPTION_ARG_NONE, HN_FIELD(Params, strict), "fail where a kernel is missing", NULL },
 *         G_OPTION_ENTRY_NULL,
 *     };
 *
 * A value flagged G_OPTION_FLAG_OPTIONAL_ARG is taken only after '=': "--json model.onnx" leaves the model's name
 * alone, and a callback then gets "". An unknown option is HN_ERROR_USAGE, with the nearest known name.
 *
 * Options that the tool does not have but other tools do (cli/foreign.h) are HN_ERROR_USAGE saying how hone spells
 * them, and so is "--json out.json model.onnx", in which out.json would be taken for a model.
 *
 * An option that comes again says what it said (a switch), adds to it (-v, and the kinds of arrays), or is
 * HN_ERROR_USAGE (all other kinds): nothing that was typed is dropped.
 *
 * Configuration: --config FILE and --preset NAME are key files; group [hone] is for every tool, group [hone-bench] for
 * that one. A key is an option's long name; an option that can be repeated takes several values separated by ';'.
 * A key that stands in a group twice is HN_ERROR_USAGE. Backslashes mean nothing special. The command line wins over
 * the file, the file over the preset. A key that the tool does not know is an error in a file, but not in group [hone]
 * of a shipped preset, which serves several tools.
 */
#pragma once

#include <glib.h>

#include "base/error.h"

G_BEGIN_DECLS

#define HN_FIELD(type, field) ((gpointer)G_STRUCT_OFFSET(type, field))

typedef struct HnContext HnContext;

typedef struct {
    const char *name;    /* "hone-run" */
    const char *summary; /* what it does, in one line without a full stop */
    const char *usage;   /* what follows the name: "[OPTIONS] MODEL" */
    /* --help tells of these options alone, the common ones among them, and lists examples, a line each; --help-all
     * tells of all. NULL: both tell of all. Ended by NULL. */
    const char *const *usual;
    const char *examples;
    const char *details; /* further paragraphs of --help, separated by empty lines; may be NULL */

    const GOptionEntry *options; /* see above; may be NULL */
    gsize params_size;
    gconstpointer defaults; /* a struct without strings; may be NULL */
    /* With these options --mem-limit is about a part of the memory, which the tool counts itself; NULL: never. */
    gboolean (*counts_memory)(const void *params);
    gboolean sweeps_threads; /* --threads may be a list: HnCommon.thread_list */
    gboolean two_devices;    /* --device may be two: HnCommon.device_b */

    /* FALSE with an error set ends the tool with that error's exit status */
    gboolean (*run)(HnContext *ctx, GError **error);
} HnTool;

typedef enum { HN_FORMAT_TABLE, HN_FORMAT_JSON, HN_FORMAT_CSV, HN_FORMAT_MD, HN_FORMAT_HTML } HnFormat;

/* As a name says ("table", "json", "csv", "md", "html"), or the ending of a file's. */
gboolean hn_format_parse(const char *name, HnFormat *format);

typedef struct {
    int threads;         /* at least 1; by default what affinity and quota allow */
    GArray *thread_list; /* of gint64: all that --threads names; threads is the first */
    gboolean threads_set;
    char *device;     /* "cpu", "cuda", "null" */
    int device_index; /* of "cuda:1" */
    char *device_b;   /* what follows the comma of "cpu,ref", as it is; NULL: none */
    guint64 seed;
    gboolean strict_math;
    gboolean verify_data;
    guint64 mem_limit, device_mem_limit; /* bytes, 0: none */
    double time_limit;                   /* seconds of the clock, 0: none */
    gboolean json;                       /* print JSON to json_file, or instead of the table to stdout (NULL) */
    char *json_file;
    gboolean csv;
    char *csv_file;
    HnFormat format; /* of what goes to stdout; JSON and CSV set the fields above, too */
    char *report;    /* a file for the report in the format that its ending says; NULL: none */
    char *config;
    char *preset;
    char *completion; /* the shell whose completion is asked for; NULL: none */
    gboolean quiet;
    int verbose; /* how often -v was given */
    gboolean no_progress;
} HnCommon;

void hn_common_clear(HnCommon *common);

/* --format, for a tool that has an option of that name itself. USAGE: something else has stdout. */
gboolean hn_common_set_format(HnCommon *common, HnFormat format, GError **error);

typedef enum {
    HN_ACTION_RUN,
    HN_ACTION_HELP,
    HN_ACTION_HELP_ALL,
    HN_ACTION_COMPLETION, /* HnCommon.completion */
    HN_ACTION_VERSION,
} HnAction;

/*
 * Read argv into common, params (tool->params_size bytes, may be NULL where that is 0) and args, the arguments that are
 * not options; files named by --config and --preset included. On failure nothing has to be freed.
 */
gboolean hn_options_parse(const HnTool *tool, int argc, char *const *argv, HnCommon *common, gpointer params,
                          GStrv *args, HnAction *action, GError **error);
void hn_options_clear(const HnTool *tool, gpointer params);

/* The text of --help, or with `all` of --help-all, at most 80 columns wide. */
char *hn_options_help(const HnTool *tool, gboolean all);

const char *hn_version(void);

/* The common options: entries for help and man page checks; they end with a NULL name. */
const GOptionEntry *hn_options_common(void);

G_END_DECLS
