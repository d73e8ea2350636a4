/*
 * HnReport: what a tool found out, as text, JSON, CSV, Markdown or a page of HTML from one tree of values.
 *
 * A tool fills the JSON object hn_report_root() and says which arrays of objects in it are tables and how their columns
 * look. The root carries "schema", "hone" and "env" from the start. The first table is the one that CSV prints;
 * sections, lines, facts and tables in the order in which they were added make up the text, Markdown and HTML, plots
 * are in HTML alone. Numbers that are not finite become null, and "-" in a table.
 *
 *     static const HnColumn columns[] = {
 *         { "model", "model", HN_COL_TEXT }, { "latency_ms.p50", "median", HN_COL_MS }, { 0 },
 *     };
 *     g_autoptr(HnReport) r = hn_report_new(ctx, "hone.bench/1", &(HnReportEnv){ .onednn = "3.2.0" });
 *     json_object_set_array_member(hn_report_root(r), "runs", runs);
 *     hn_report_table(r, "runs", columns);
 *     return hn_report_write(r, error);
 */
#pragma once

#include <glib.h>
#include <json-glib/json-glib.h>

#include "cli/tool.h"

G_BEGIN_DECLS

typedef enum {
    HN_COL_TEXT,       /* left-aligned; the widest of them gives way on a narrow terminal */
    HN_COL_INT,        /* all digits */
    HN_COL_NUMBER,     /* three significant digits: "12.3 k" */
    HN_COL_MS,         /* milliseconds, printed with the unit that fits: "81.2 us" */
    HN_COL_BYTES,      /* "1.2 MB" */
    HN_COL_PERCENT,    /* a fraction: 0.031 is "3.1 %" */
    HN_COL_PROSE,      /* a sentence, in the last column: goes on below itself where a terminal is too narrow */
    HN_COL_MINOR = 16, /* or-ed to one of the others: left out where a terminal is too narrow */
} HnColumnKind;

typedef struct {
    const char *key; /* path in a row: "latency_ms.p50", "ci95.0"; also the column's name in CSV; NULL ends the list */
    const char *header;
    HnColumnKind kind;
} HnColumn;

/* What the tool knows about where it ran; the rest (cpu, isa, quota, threads, device) comes from ctx and the machine.
 */
typedef struct {
    const char *onednn; /* version, NULL: not used */
    const char *device; /* NULL: as asked for */
} HnReportEnv;

typedef struct HnReport HnReport;

HnReport *hn_report_new(HnContext *ctx, const char *schema, const HnReportEnv *env);
void hn_report_free(HnReport *report);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(HnReport, hn_report_free)

JsonObject *hn_report_root(HnReport *report);

/* The rows are the array at a dotted path of the root when the report is written. */
void hn_report_table(HnReport *report, const char *path, const HnColumn *columns);
/* The same, with no more than the first `top` rows in the text. */
void hn_report_top_table(HnReport *report, const char *path, const HnColumn *columns, guint top);
/* The same for CSV alone, in place of the first table: one with more columns than a terminal has room for. */
void hn_report_csv_table(HnReport *report, const char *path, const HnColumn *columns);
void hn_report_line(HnReport *report, const char *format, ...) G_GNUC_PRINTF(2, 3);
/* A value with its name, "size" and "12 MB": those that follow each other have their values in one column. */
void hn_report_fact(HnReport *report, const char *name, const char *format, ...) G_GNUC_PRINTF(3, 4);
/* What follows has this title in Markdown and HTML, where there is anything; in the text an empty line is before it. */
void hn_report_section(HnReport *report, const char *title);
/* A picture that gnuplot draws by these commands (cli/plot.h), which begin behind "set terminal". */
void hn_report_plot(HnReport *report, const char *caption, const char *commands);

/*
 * Write what --json, --csv, --format and --report ask for; the text goes to stdout unless one of them went there, to
 * stderr where a model or tensor has stdout, and nowhere with -q.
 */
gboolean hn_report_write(HnReport *report, GError **error);

/* The text for a terminal so many columns wide (0: no limit), with a bold header where bold is set. */
char *hn_report_text(HnReport *report, int width, gboolean bold);
char *hn_report_csv(HnReport *report);
char *hn_report_json(HnReport *report);
char *hn_report_md(HnReport *report);   /* for a pull request: no plots */
char *hn_report_html(HnReport *report); /* one page that needs nothing else, the report as JSON in it */

G_END_DECLS
