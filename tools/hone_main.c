/* hone: `hone VERB ...` runs the tool hone-VERB that lies beside it, else the one on PATH. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/file.h"
#include "base/nearest.h"
#include "cli/options.h"
#include "cli/child_program.h"
#include "cli/tool.h"

#define PREFIX "hone-"

/* what --help says about tools that come with hone */
static const struct {
    const char *verb, *summary;
} summaries[] = {
    { "bench", "measure a model's speed and memory" },
    { "diff", "find where two models, or one on two devices, begin to differ" },
    { "distill", "train a model, from labels or from what another model says" },
    { "export", "simplify and convert a model, and prove that it computes the same" },
    { "inspect", "show what a model is: inputs, outputs, operators, weights" },
    { "profile", "show where a model's time and memory go, node by node" },
    { "prune", "remove channels and repair what is left, without training" },
    { "quantize", "make a model of integers, where that is right, smaller and faster" },
    { "replay", "make a model again as its recipe says, and compare" },
    { "run", "compute the outputs of a model, or compare them with expected ones" },
};

/* verbs of the executable files hone-VERB of a folder into the set */
static void add_verbs(GHashTable *verbs, const char *folder)
{
    g_autoptr(GDir) dir = folder ? g_dir_open(folder, 0, NULL) : NULL;
    const char *name;
    while (dir && (name = g_dir_read_name(dir))) {
        g_autofree char *path = g_build_filename(folder, name, NULL);
        if (g_str_has_prefix(name, PREFIX) && !strchr(name, '.') && name[strlen(PREFIX)] &&
            g_file_test(path, G_FILE_TEST_IS_REGULAR) && g_file_test(path, G_FILE_TEST_IS_EXECUTABLE))
            g_hash_table_add(verbs, g_strdup(name + strlen(PREFIX)));
    }
}

static int compare_names(gconstpointer a, gconstpointer b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* All verbs there are, sorted and ended by NULL: beside this program, and on PATH. */
static GPtrArray *find_verbs(gboolean on_path)
{
    g_autoptr(GHashTable) verbs = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    g_autofree char *folder = hn_program_folder();
    g_auto(GStrv) path = g_strsplit(g_getenv("PATH") ? g_getenv("PATH") : "", ":", -1);
    add_verbs(verbs, folder);
    for (char **p = path; on_path && *p; p++)
        add_verbs(verbs, *p);
    GPtrArray *names = g_ptr_array_new_with_free_func(g_free);
    GHashTableIter iter;
    gpointer name;
    g_hash_table_iter_init(&iter, verbs);
    while (g_hash_table_iter_next(&iter, &name, NULL))
        g_ptr_array_add(names, g_strdup(name));
    g_ptr_array_sort(names, compare_names);
    g_ptr_array_add(names, NULL);
    return names;
}

static gboolean print(const char *text, GError **error)
{
    return hn_out_save("-", text, strlen(text), error);
}

static gboolean print_help(GError **error)
{
    g_autoptr(GPtrArray) verbs = find_verbs(TRUE);
    g_autoptr(GString) s = g_string_new("Usage: hone VERB [OPTIONS] ...\n\n"
                                        "Make ONNX models smaller and faster, and prove it.\n\nVerbs:\n");
    for (guint i = 0; verbs->pdata[i]; i++) {
        const char *summary = "";
        for (gsize k = 0; k < G_N_ELEMENTS(summaries); k++)
            if (!strcmp(summaries[k].verb, verbs->pdata[i]))
                summary = summaries[k].summary;
        g_autofree char *line = g_strdup_printf("  %-10s %s", (char *)verbs->pdata[i], summary);
        g_string_append_printf(s, "%s\n", g_strchomp(line));
    }
    g_string_append(s, "\n'hone help VERB' opens the manual of one; 'hone VERB --help' lists what is used\nmost.\n");
    return print(s->str, error);
}

static gboolean unknown_verb(const char *verb, GError **error)
{
    g_autoptr(GPtrArray) verbs = find_verbs(TRUE);
    const char *near = hn_nearest(verb, (const char *const *)verbs->pdata);
    if (near)
        g_set_error(error, HN_ERROR, HN_ERROR_USAGE, "'%s' is not a verb; did you mean '%s'?", verb, near);
    else
        g_set_error(error, HN_ERROR, HN_ERROR_USAGE, "'%s' is not a verb; 'hone --help' lists them", verb);
    return FALSE;
}

/* Becomes hone-VERB; returns only where that fails. */
static gboolean become(const char *verb, char **args, GError **error)
{
    GError *cause = NULL;
    g_autofree char *name = g_strconcat(PREFIX, verb, NULL);
    g_autoptr(GPtrArray) rest = g_ptr_array_new();
    if (!*verb || *verb == '-' || strchr(verb, '/'))
        return unknown_verb(verb, error);
    for (; *args; args++)
        g_ptr_array_add(rest, *args);
    hn_program_become(name, rest, &cause);
    if (!g_error_matches(cause, HN_ERROR, HN_ERROR_UNSUPPORTED)) {
        g_propagate_error(error, cause);
        return FALSE;
    }
    g_error_free(cause);
    return unknown_verb(verb, error);
}

/* --- manual and completion ---------------------------------------------------------------------------------------- */

/* The page of a verb, as it was installed or built beside this program; NULL: there is none. */
static char *find_page(const char *verb)
{
    static const char *const places[] = { "../share/man/man1/hone-%s.1", "../share/man/man1/hone-%s.1.gz",
                                          "../man/hone-%s.1" };
    g_autofree char *folder = hn_program_folder();
    for (gsize i = 0; folder != NULL && strchr(verb, '/') == NULL && i < G_N_ELEMENTS(places); i++) {
        g_auto(GStrv) parts = g_strsplit(places[i], "%s", 2);
        g_autofree char *name = g_strjoinv(verb, parts), *path = g_build_filename(folder, name, NULL);
        if (g_file_test(path, G_FILE_TEST_IS_REGULAR))
            return g_steal_pointer(&path);
    }
    return NULL;
}

/* Opens the manual on a terminal where there is one, else prints all options. */
static gboolean help_of(const char *verb, GError **error)
{
    g_autofree char *page = isatty(STDOUT_FILENO) ? find_page(verb) : NULL, *man = g_find_program_in_path("man");
    if (page != NULL && man != NULL) {
        g_autoptr(GPtrArray) args = g_ptr_array_new();
        g_ptr_array_add(args, page);
        hn_program_become("man", args, NULL);
    }
    return become(verb, (char *[]){ (char *)"--help-all", NULL }, error);
}

/* %s: the verbs. What follows one is completed as its tool completes it. */
static const char bash_script[] =
    "_hone() {\n"
    "    if ((COMP_CWORD == 1)); then\n"
    "        mapfile -t COMPREPLY < <(compgen -W 'help %s' -- \"${COMP_WORDS[1]}\")\n"
    "        return\n"
    "    fi\n"
    "    local verb=${COMP_WORDS[1]}\n"
    "    if [[ $verb == help ]]; then\n"
    "        mapfile -t COMPREPLY < <(compgen -W '%s' -- \"${COMP_WORDS[COMP_CWORD]}\")\n"
    "        return\n"
    "    fi\n"
    "    declare -F \"_hone_$verb\" >/dev/null || source <(\"hone-$verb\" --completion=bash 2>/dev/null)\n"
    "    declare -F \"_hone_$verb\" >/dev/null && \"_hone_$verb\"\n"
    "}\n"
    "complete -o filenames -F _hone hone\n";
static const char zsh_script[] = "#compdef hone\n"
                                 "if ((CURRENT == 2)); then\n"
                                 "    compadd help %s\n"
                                 "elif [[ $words[2] == help ]]; then\n"
                                 "    compadd %s\n"
                                 "else\n"
                                 "    local service=hone-$words[2]\n"
                                 "    words=($service $words[3,-1])\n"
                                 "    ((CURRENT--))\n"
                                 "    eval \"$($service --completion=zsh 2>/dev/null)\"\n"
                                 "fi\n";
static const char fish_script[] =
    "complete -c hone -n '__fish_is_nth_token 1' -f -a 'help %s'\n"
    "complete -c hone -n '__fish_seen_subcommand_from help' -f -a '%s'\n"
    "complete -c hone -n 'not __fish_is_nth_token 1' "
    "-a '(set -l w (commandline -opc); complete -C \"hone-$w[2] \"(string join \" \" $w[3..-1] (commandline -ct)))'\n";

static gboolean print_completion(const char *shell, GError **error)
{
    g_autoptr(GPtrArray) verbs = find_verbs(FALSE); /* the same on every machine */
    g_autofree char *list = g_strjoinv(" ", (char **)verbs->pdata);
    const char *script = strcmp(shell, "bash") == 0   ? bash_script
                         : strcmp(shell, "zsh") == 0  ? zsh_script
                         : strcmp(shell, "fish") == 0 ? fish_script
                                                      : NULL;
    if (script == NULL) {
        g_set_error(error, HN_ERROR, HN_ERROR_USAGE, "option '--completion': '%s' is none of bash, zsh, fish", shell);
        return FALSE;
    }
    g_auto(GStrv) parts = g_strsplit(script, "%s", -1);
    g_autofree char *text = g_strjoinv(list, parts);
    return print(text, error);
}

static gboolean act(int argc, char **argv, GError **error)
{
    const char *verb = argc > 1 ? argv[1] : NULL;
    if (!verb)
        return print_help(error);
    if (g_str_has_prefix(verb, "--completion="))
        return print_completion(strchr(verb, '=') + 1, error);
    if (!strcmp(verb, "--version")) {
        g_autofree char *line = g_strdup_printf("hone %s\n", hn_version());
        return print(line, error);
    }
    gboolean help = !strcmp(verb, "help");
    if ((help && argc == 2) || !strcmp(verb, "--help") || !strcmp(verb, "-h"))
        return print_help(error);
    if (help)
        return help_of(argv[2], error);
    return become(verb, argv + 2, error);
}

int main(int argc, char **argv)
{
    g_autoptr(GError) error = NULL;
    if (act(argc, argv, &error))
        return 0;
    g_autofree char *line = hn_tool_line("hone", error->message);
    fprintf(stderr, "%s\n", line);
    return hn_error_exit_status(error);
}
