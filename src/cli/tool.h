/*
 * hn_tool_main(): the main program of every tool, around its own run function.
 *
 *     int main(int argc, char **argv) { return hn_tool_main(argc, argv, &tool); }
 *
 * It reads the options, calls run, prints the error if there is one ("hone-run: sentence" on stderr, once) and returns
 * the exit status. The first Ctrl-C sets the flag that ctx->progress carries, the second ends the process. A closed
 * stdout ends the tool quietly with status 1. A mapped file that another program cuts short ends it with a sentence and
 * status 1, whatever thread reads there.
 */
#pragma once

#include <glib.h>

#include "base/budget.h"
#include "base/progress.h"
#include "cli/options.h"
#include "cli/progress_bar.h"

G_BEGIN_DECLS

struct HnContext {
    const HnTool *tool;
    HnCommon common;
    gpointer params; /* the tool's own options */
    char **argv;     /* the command line as it was given */
    GStrv args;      /* what is not an option: models */
    int n_args;
    HnBudget *budget;    /* has the limit of --mem-limit */
    HnProgress progress; /* the bar, and Ctrl-C: hand &ctx->progress to long work */
    gint *halt;          /* atomic: the HnHalt behind both, for whoever gives parts of the work a time of their own */
    double load;         /* of the machine before anything was done, as hn_cpu_load() */
    guint64 since_ns;    /* when the program began, of hn_now_ns() */
    HnBar *bar;
    const char *stdin_user; /* what reads stdin, what writes to stdout; NULL: nothing yet */
    const char *stdout_user;
};

int hn_tool_main(int argc, char **argv, const HnTool *tool);

/*
 * Say that stdin is read as what ("the model"), or that stdout carries it. HN_ERROR_USAGE where something else has the
 * stream already, where a model would be read from or written to a terminal, and where --json, --csv or --format need
 * stdout.
 */
gboolean hn_context_take_stdin(HnContext *ctx, const char *what, GError **error);
gboolean hn_context_take_stdout(HnContext *ctx, const char *what, GError **error);

/* "hone-run: sentence" as all that is said goes to stderr: without what a terminal would act upon, and where it is very
 * long with its beginning and its end alone; g_free. */
char *hn_tool_line(const char *name, const char *text);

/* A line on stderr, "hone-run: ..."; note: only with -v given at least level times; warn: unless -q. */
void hn_context_warn(HnContext *ctx, const char *format, ...) G_GNUC_PRINTF(2, 3);
void hn_context_note(HnContext *ctx, int level, const char *format, ...) G_GNUC_PRINTF(3, 4);

G_END_DECLS
