#include "cli/options.h"

#include <string.h>

#define WIDTH 79  /* columns, so that terminals of 80 never wrap */
#define COLUMN 26 /* where descriptions start */

/* Append text word by word from column at on; further lines start at column indent. Ends with a line break. */
static void wrap(GString *out, const char *text, gsize at, gsize indent)
{
    g_auto(GStrv) words = g_strsplit_set(text, " \n", -1);
    gboolean first = TRUE;
    for (int i = 0; words[i]; i++) {
        gsize len = (gsize)g_utf8_strlen(words[i], -1);
        if (!len)
            continue;
        if (!first && at + 1 + len > WIDTH) {
            g_string_append_printf(out, "\n%*s", (int)indent, "");
            at = indent;
        } else if (!first) {
            g_string_append_c(out, ' ');
            at++;
        }
        g_string_append(out, words[i]);
        at += len;
        first = FALSE;
    }
    g_string_append_c(out, '\n');
}

static void describe(GString *out, const GOptionEntry *e)
{
    gsize start = out->len;
    if (e->short_name)
        g_string_append_printf(out, "  -%c, --%s", e->short_name, e->long_name);
    else
        g_string_append_printf(out, "      --%s", e->long_name);
    if (e->flags & G_OPTION_FLAG_OPTIONAL_ARG)
        g_string_append_printf(out, "[=%s]", e->arg_description);
    else if (e->arg != G_OPTION_ARG_NONE && !(e->flags & G_OPTION_FLAG_NO_ARG))
        g_string_append_printf(out, "=%s", e->arg_description ? e->arg_description : "VALUE");
    gsize at = out->len - start;
    if (at + 2 > COLUMN) {
        g_string_append_c(out, '\n');
        at = 0;
    }
    g_string_append_printf(out, "%*s", (int)(COLUMN - at), "");
    wrap(out, e->description, COLUMN, COLUMN);
}

/* title: NULL: none. usual: those alone; NULL: all. */
static void describe_all(GString *out, const char *title, const GOptionEntry *entries, const char *const *usual)
{
    if (title)
        g_string_append_printf(out, "\n%s:\n", title);
    for (const GOptionEntry *e = entries; e && e->long_name; e++)
        if (!(e->flags & G_OPTION_FLAG_HIDDEN) && (!usual || g_strv_contains(usual, e->long_name)))
            describe(out, e);
}

static void head(GString *out, const HnTool *tool)
{
    gsize indent = strlen("Usage: ") + strlen(tool->name) + 1;
    g_string_append_printf(out, "Usage: %s ", tool->name);
    wrap(out, tool->usage, indent, indent);
    g_autofree char *summary = g_strdup_printf("%s.", tool->summary);
    summary[0] = g_ascii_toupper(summary[0]);
    wrap(out, summary, 0, 0);
}

static char *short_help(const HnTool *tool)
{
    GString *out = g_string_new(NULL);
    g_auto(GStrv) examples = g_strsplit(tool->examples ? tool->examples : "", "\n", -1);
    head(out, tool);
    describe_all(out, "Options", tool->options, tool->usual);
    describe_all(out, NULL, hn_options_common(), tool->usual);
    if (*examples)
        g_string_append(out, "\nExamples:\n");
    for (char **line = examples; *line; line++)
        g_string_append_printf(out, "  %s\n", *line);
    g_string_append_printf(out, "\n'%s --help-all' lists all options, and '%s(1)' explains them.\n", tool->name,
                           tool->name);
    return g_string_free(out, FALSE);
}

char *hn_options_help(const HnTool *tool, gboolean all)
{
    if (!all && tool->usual)
        return short_help(tool);
    GString *out = g_string_new(NULL);
    head(out, tool);
    g_auto(GStrv) paragraphs = g_strsplit(tool->details ? tool->details : "", "\n\n", -1);
    for (int i = 0; paragraphs[i]; i++) {
        g_string_append_c(out, '\n');
        wrap(out, paragraphs[i], 0, 0);
    }
    if (tool->options && tool->options->long_name)
        describe_all(out, "Options", tool->options, NULL);
    describe_all(out, "Common options", hn_options_common(), NULL);
    g_string_append(out, "\n");
    wrap(
        out,
        "Exit status: 0 done; 1 invalid input or failed I/O; 2 usage; 3 a guard was missed; 4 unsupported; 5 too noisy "
        "to decide; 6 a budget was reached; 130 interrupted. See hone-exit-status(7).",
        0, 0);
    return g_string_free(out, FALSE);
}
