#include "cli/completion.h"

#include <string.h>

#include "base/error.h"

/* What may follow an option. */
typedef enum { WANTS_NOTHING, WANTS_TEXT, WANTS_FILE } Wants;

static Wants wants(const GOptionEntry *e)
{
    static const char *const files[] = { "FILE", "PATH", "SRC", "DIR", "MODEL", NULL };
    if (e->arg == G_OPTION_ARG_NONE || (e->flags & G_OPTION_FLAG_NO_ARG))
        return WANTS_NOTHING;
    return e->arg_description != NULL && g_strv_contains(files, e->arg_description) ? WANTS_FILE : WANTS_TEXT;
}

static gboolean is_optional(const GOptionEntry *e)
{
    return (e->flags & G_OPTION_FLAG_OPTIONAL_ARG) != 0;
}

typedef void (*EachFn)(GString *out, const GOptionEntry *e);

static void each(GString *out, const HnTool *tool, EachFn fn)
{
    const GOptionEntry *const tables[] = { tool->options, hn_options_common() };
    for (gsize t = 0; t < G_N_ELEMENTS(tables); t++)
        for (const GOptionEntry *e = tables[t]; e != NULL && e->long_name != NULL; e++)
            if ((e->flags & G_OPTION_FLAG_HIDDEN) == 0)
                fn(out, e);
}

/* A description without what a shell's quotes or zsh's lists would take for their own. */
static char *plain(const char *text)
{
    char *copy = g_strdup(text);
    g_strdelimit(copy, "'\"`\\$", ' ');
    g_strdelimit(copy, "[", '(');
    g_strdelimit(copy, "]", ')');
    g_strdelimit(copy, ":", ',');
    return copy;
}

/* --- bash -------------------------------------------------------------------------------------------------------- */

static void bash_name(GString *out, const GOptionEntry *e)
{
    g_string_append_printf(out, " --%s%s", e->long_name, is_optional(e) ? "=" : "");
}

static void bash_patterns(GString *out, const GOptionEntry *e)
{
    g_string_append_printf(out, "|--%s", e->long_name);
    if (e->short_name != '\0')
        g_string_append_printf(out, "|-%c", e->short_name);
}

static void bash_file(GString *out, const GOptionEntry *e)
{
    if (wants(e) == WANTS_FILE)
        bash_patterns(out, e);
}

static void bash_text(GString *out, const GOptionEntry *e)
{
    if (wants(e) == WANTS_TEXT)
        bash_patterns(out, e);
}

static void bash(GString *out, const HnTool *tool, const char *function)
{
    g_autoptr(GString) names = g_string_new(NULL), files = g_string_new(NULL), texts = g_string_new(NULL);
    each(names, tool, bash_name);
    each(files, tool, bash_file);
    each(texts, tool, bash_text);
    g_string_append_printf(out, "%s() {\n", function);
    g_string_append(out, "    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}\n"
                         "    COMPREPLY=()\n"
                         "    if [[ $cur == = ]]; then\n"
                         "        cur=\n"
                         "    elif [[ $prev == = && $COMP_CWORD -ge 2 ]]; then\n"
                         "        prev=${COMP_WORDS[COMP_CWORD - 2]}\n"
                         "    fi\n"
                         "    case $prev in\n");
    if (files->len > 0)
        g_string_append_printf(
            out, "    %s)\n        mapfile -t COMPREPLY < <(compgen -f -- \"$cur\")\n        return\n        ;;\n",
            files->str + 1);
    if (texts->len > 0)
        g_string_append_printf(out, "    %s)\n        return\n        ;;\n", texts->str + 1);
    g_string_append_printf(out,
                           "    esac\n"
                           "    if [[ $cur == -* ]]; then\n"
                           "        mapfile -t COMPREPLY < <(compgen -W '%s' -- \"$cur\")\n"
                           "        [[ ${COMPREPLY[0]-} != *= ]] || compopt -o nospace\n"
                           "    else\n"
                           "        mapfile -t COMPREPLY < <(compgen -f -- \"$cur\")\n"
                           "    fi\n"
                           "}\n"
                           "complete -o filenames -F %s %s\n",
                           names->str + 1, function, tool->name);
}

/* --- zsh --------------------------------------------------------------------------------------------------------- */

static void zsh_option(GString *out, const GOptionEntry *e)
{
    g_autofree char *about = plain(e->description);
    const Wants w = wants(e);
    const char *then = w == WANTS_FILE ? ":file:_files" : w == WANTS_TEXT ? ":value: " : "";
    const gboolean twice = e->arg == G_OPTION_ARG_STRING_ARRAY || e->arg == G_OPTION_ARG_FILENAME_ARRAY;
    g_string_append_printf(out, "    '%s--%s%s[%s]%s%s'\n", twice ? "*" : "", e->long_name,
                           is_optional(e)       ? "=-"
                           : w != WANTS_NOTHING ? "="
                                                : "",
                           about, is_optional(e) ? ":" : "", then);
    if (e->short_name != '\0')
        g_string_append_printf(out, "    '-%c[%s]%s'\n", e->short_name, about, then);
}

static void zsh(GString *out, const HnTool *tool)
{
    g_string_append_printf(out, "#compdef %s\nlocal -a options=(\n", tool->name);
    each(out, tool, zsh_option);
    g_string_append(out, ")\n_arguments -s $options '*:file:_files'\n");
}

/* --- fish -------------------------------------------------------------------------------------------------------- */

/* \001 stands for the tool's name. */
static void fish_option(GString *out, const GOptionEntry *e)
{
    g_autofree char *about = plain(e->description);
    g_string_append_printf(out, "complete -c \001 -l %s", e->long_name);
    if (e->short_name != '\0')
        g_string_append_printf(out, " -s %c", e->short_name);
    if (wants(e) == WANTS_FILE && !is_optional(e))
        g_string_append(out, " -r -F");
    else if (wants(e) == WANTS_TEXT)
        g_string_append(out, " -x");
    g_string_append_printf(out, " -d '%s'\n", about);
}

static void fish(GString *out, const HnTool *tool)
{
    each(out, tool, fish_option);
    g_string_replace(out, "\001", tool->name, 0);
}

/* ----------------------------------------------------------------------------------------------------------------- */

char *hn_completion(const HnTool *tool, const char *shell, GError **error)
{
    g_autoptr(GString) out = g_string_new(NULL);
    g_autofree char *function = g_strdelimit(g_strconcat("_", tool->name, NULL), "-", '_');
    if (strcmp(shell, "bash") == 0)
        bash(out, tool, function);
    else if (strcmp(shell, "zsh") == 0)
        zsh(out, tool);
    else if (strcmp(shell, "fish") == 0)
        fish(out, tool);
    else {
        g_set_error(error, HN_ERROR, HN_ERROR_USAGE, "option '--completion': '%s' is none of bash, zsh, fish", shell);
        return NULL;
    }
    return g_strdup(out->str);
}
