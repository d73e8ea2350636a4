#include "cli/keyfile.h"

#include <string.h>
#include <unistd.h>

#include "config.h" /* HN_DATADIR */

#include "base/error.h"
#include "base/file.h"

#define SUFFIX ".conf"
#define MOST_BYTES ((gsize)1 << 16) /* of a key file: there are some 50 options */

static const GOptionEntry *find_entry(const GOptionEntry *const *tables, const char *key)
{
    for (; *tables; tables++)
        for (const GOptionEntry *e = *tables; e->long_name; e++)
            if (!strcmp(e->long_name, key))
                return e;
    return NULL;
}

/* argv has the option by its long name or alone by its short one */
static gboolean is_given(char *const *argv, const GOptionEntry *e)
{
    g_autofree char *name = g_strconcat("--", e->long_name, NULL);
    for (; *argv && strcmp(*argv, "--"); argv++) {
        if (g_str_has_prefix(*argv, name) && (!(*argv)[strlen(name)] || (*argv)[strlen(name)] == '='))
            return TRUE;
        if (e->short_name && (*argv)[0] == '-' && (*argv)[1] == e->short_name)
            return TRUE;
    }
    return FALSE;
}

static gboolean add_flag(GKeyFile *file, const char *path, const char *group, const char *key, GPtrArray *out,
                         GError **error)
{
    g_autoptr(GError) cause = NULL;
    gboolean on = g_key_file_get_boolean(file, group, key, &cause);
    if (cause) {
        g_set_error(error, HN_ERROR, HN_ERROR_USAGE, "'%s' in '%s' is neither true nor false", key, path);
        return FALSE;
    }
    if (on)
        g_ptr_array_add(out, g_strconcat("--", key, NULL));
    return TRUE;
}

static gboolean add_key(GKeyFile *file, const char *path, const char *group, const char *key, const GOptionEntry *e,
                        char *const *argv, GPtrArray *out, GError **error)
{
    if (e->arg == G_OPTION_ARG_NONE || (e->flags & G_OPTION_FLAG_NO_ARG))
        return add_flag(file, path, group, key, out, error);
    g_autofree char *value = g_key_file_get_value(file, group, key, error);
    if (!value)
        return FALSE;
    gboolean array = e->arg == G_OPTION_ARG_STRING_ARRAY || e->arg == G_OPTION_ARG_FILENAME_ARRAY;
    if (!array) {
        gboolean bare = (e->flags & G_OPTION_FLAG_OPTIONAL_ARG) && !strcmp(value, "true");
        g_ptr_array_add(out, g_strconcat("--", key, "=", bare ? "" : value, NULL));
        return TRUE;
    }
    g_auto(GStrv) parts = g_strsplit(value, ";", -1);
    for (int i = 0; parts[i] && !is_given(argv, e); i++)
        if (*g_strstrip(parts[i]))
            g_ptr_array_add(out, g_strconcat("--", key, "=", parts[i], NULL));
    return TRUE;
}

/* GKeyFile takes the last of what stands in a group several times. */
static gboolean check_twice(GBytes *bytes, const char *path, GError **error)
{
    gsize n;
    const char *data = g_bytes_get_data(bytes, &n);
    g_autofree char *text = g_strndup(n > 0 ? data : "", n);
    g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
    g_autofree char *group = g_strdup("");
    g_autoptr(GHashTable) seen = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    for (char **line = lines; *line != NULL; line++) {
        char *key = g_strstrip(*line), *equals = strchr(key, '=');
        if (*key == '[') {
            g_free(group);
            group = g_strdup(key);
        }
        if (*key == '[' || *key == '#' || equals == NULL)
            continue;
        *equals = '\0';
        g_strchomp(key);
        if (g_hash_table_add(seen, g_strconcat(group, key, NULL)))
            continue;
        g_set_error(error, HN_ERROR, HN_ERROR_USAGE, "'%s' is in '%s' twice", key, path);
        return FALSE;
    }
    return TRUE;
}

gboolean hn_keyfile_args(const char *path, const char *tool, const GOptionEntry *const *tables, char *const *argv,
                         gboolean lenient, GPtrArray *out, GError **error)
{
    static const char *const refused[] = { "config", "preset", "help", "version", NULL };
    g_autoptr(GKeyFile) file = g_key_file_new();
    g_autoptr(GError) cause = NULL;
    g_autoptr(GBytes) bytes = hn_file_bytes_most(path, MOST_BYTES, NULL, error);
    if (bytes == NULL) {
        g_prefix_error(error, "configuration: ");
        return FALSE;
    }
    if (!g_key_file_load_from_bytes(file, bytes, G_KEY_FILE_NONE, &cause)) {
        g_set_error(error, HN_ERROR, HN_ERROR_USAGE, "cannot read configuration '%s': %s", path, cause->message);
        return FALSE;
    }
    if (!check_twice(bytes, path, error))
        return FALSE;
    const char *const groups[] = { "hone", tool };
    for (gsize g = 0; g < G_N_ELEMENTS(groups); g++) {
        g_auto(GStrv) keys = g_key_file_get_keys(file, groups[g], NULL, NULL);
        for (int i = 0; keys && keys[i]; i++) {
            const GOptionEntry *e = find_entry(tables, keys[i]);
            if (!e && lenient && g == 0)
                continue;
            if (!e || g_strv_contains(refused, keys[i])) {
                g_set_error(error, HN_ERROR, HN_ERROR_USAGE, "'%s' in '%s' is not an option of %s", keys[i], path,
                            tool);
                return FALSE;
            }
            if (!add_key(file, path, groups[g], keys[i], e, argv, out, error))
                return FALSE;
        }
    }
    return TRUE;
}

/* folders that may hold presets, in order */
static GStrv preset_folders(void)
{
    g_autoptr(GStrvBuilder) b = g_strv_builder_new();
    const char *env = g_getenv("HONE_DATADIR");
    if (env && *env) {
        g_autofree char *folder = g_build_filename(env, "presets", NULL);
        g_strv_builder_add(b, folder);
    } else {
        char exe[4096];
        ssize_t n = readlink("/proc/self/exe", exe, sizeof exe - 1);
        if (n > 0) {
            exe[n] = 0;
            g_autofree char *bin = g_path_get_dirname(exe);
            g_autofree char *folder = g_build_filename(bin, "..", "share", "hone", "presets", NULL);
            g_strv_builder_add(b, folder);
        }
        g_strv_builder_add(b, HN_DATADIR "/presets");
    }
    return g_strv_builder_end(b);
}

static int compare_strings(gconstpointer a, gconstpointer b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* "latency, low-memory": the presets in folder, or NULL */
static char *list_presets(const char *folder)
{
    g_autoptr(GDir) dir = g_dir_open(folder, 0, NULL);
    g_autoptr(GPtrArray) names = g_ptr_array_new_with_free_func(g_free);
    const char *entry;
    while (dir && (entry = g_dir_read_name(dir)))
        if (g_str_has_suffix(entry, SUFFIX))
            g_ptr_array_add(names, g_strndup(entry, strlen(entry) - strlen(SUFFIX)));
    if (!names->len)
        return NULL;
    g_ptr_array_sort(names, compare_strings);
    g_ptr_array_add(names, NULL);
    return g_strjoinv(", ", (char **)names->pdata);
}

char *hn_preset_path(const char *name, GError **error)
{
    g_auto(GStrv) folders = preset_folders();
    g_autofree char *known = NULL;
    for (int i = 0; folders[i]; i++) {
        g_autofree char *file = g_strconcat(name, SUFFIX, NULL);
        g_autofree char *path = g_build_filename(folders[i], file, NULL);
        if (*name && !strchr(name, '/') && g_file_test(path, G_FILE_TEST_IS_REGULAR))
            return g_steal_pointer(&path);
        if (!known)
            known = list_presets(folders[i]);
    }
    if (known)
        g_set_error(error, HN_ERROR, HN_ERROR_USAGE, "unknown preset '%s'; there are %s", name, known);
    else
        g_set_error(error, HN_ERROR, HN_ERROR_USAGE, "unknown preset '%s'; no presets are installed", name);
    return NULL;
}
