#include "data/media_files.h"

#include <string.h>

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"

#define MOST_BYTES ((gsize)1 << 28) /* of a list: some million files */

void hn_media_files_clear(HnMediaFiles *f)
{
    g_clear_pointer(&f->paths, g_ptr_array_unref);
    g_clear_pointer(&f->labels, g_array_unref);
    g_clear_pointer(&f->classes, g_ptr_array_unref);
    f->kind = HN_MEDIA_NONE;
}

static int compare_strings(gconstpointer a, gconstpointer b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Names in a folder, sorted, but for hidden ones. */
static GPtrArray *names_in(const char *folder, GError **error)
{
    g_autoptr(GDir) dir = g_dir_open(folder, 0, NULL);
    if (dir == NULL) {
        g_set_error(error, HN_ERROR, HN_ERROR_IO, "cannot open folder '%s'", folder);
        return NULL;
    }
    GPtrArray *names = g_ptr_array_new_with_free_func(g_free);
    for (const char *name; (name = g_dir_read_name(dir)) != NULL;)
        if (name[0] != '.')
            g_ptr_array_add(names, g_strdup(name));
    g_ptr_array_sort(names, compare_strings);
    return names;
}

/* --- lists -------------------------------------------------------------------------------------------------------- */

/* One line: a path, in quotes or not, and a label, "" where there is none. Both g_free(). FALSE: an empty line. */
static gboolean split_line(const char *line, char **path, char **label)
{
    g_autofree char *text = g_strstrip(g_strdup(line));
    if (text[0] == '\0' || text[0] == '#')
        return FALSE;
    const gboolean quoted = text[0] == '"' && strchr(text + 1, '"') != NULL;
    char *end = quoted ? strchr(text + 1, '"') : text + strcspn(text, ",;\t");
    if (!quoted && *end == '\0' && hn_media_kind_of_name(text) == HN_MEDIA_NONE) {
        char *blank = strrchr(text, ' '); /* a label, unless it is a part of the name */
        end = blank != NULL ? blank : end;
    }
    *path = g_strstrip(g_strndup(text + quoted, (gsize)(end - text) - (gsize)quoted));
    const char *rest = end + quoted;
    *label = g_strdup(rest + strspn(rest, ",;\t "));
    return TRUE;
}

gboolean hn_media_files_are(const char *text, gsize size)
{
    const char *at = text, *end = text + size;
    for (int line = 0; line < 2 && at < end; line++) { /* the first may be names of columns */
        const char *stop = memchr(at, '\n', (gsize)(end - at));
        stop = stop != NULL ? stop : end;
        g_autofree char *words = g_strndup(at, (gsize)(stop - at)), *path = NULL, *label = NULL;
        if (g_utf8_validate(words, -1, NULL) && split_line(words, &path, &label) &&
            hn_media_kind_of_name(path) != HN_MEDIA_NONE)
            return TRUE;
        at = stop + 1;
    }
    return FALSE;
}

/* kind becomes that of the file, or is that. */
static gboolean take_kind(HnMediaFiles *f, const char *path, const char *where, GError **error)
{
    const HnMediaKind kind = hn_media_kind_of_name(path);
    if (f->kind == HN_MEDIA_NONE)
        f->kind = kind;
    if (kind != HN_MEDIA_NONE && kind == f->kind)
        return TRUE;
    g_autofree char *first = f->paths->len > 0 ? g_path_get_basename(f->paths->pdata[0]) : NULL;
    g_autofree char *name = g_path_get_basename(path);
    g_set_error(error, HN_ERROR, HN_ERROR_FORMAT, "'%s' names '%s'%s%s%s: samples are pictures, or all of them sound",
                where, name, first != NULL ? " beside '" : "", first != NULL ? first : "", first != NULL ? "'" : "");
    return FALSE;
}

static gboolean take_label(HnMediaFiles *f, const char *label, const char *where, const char *path, GError **error)
{
    gint64 x;
    if (hn_parse_int(label, G_MININT64, G_MAXINT64, &x, NULL)) {
        g_array_append_val(f->labels, x);
        return TRUE;
    }
    g_set_error(error, HN_ERROR, HN_ERROR_FORMAT, "'%s': the label of '%s' is '%s', which is no integer", where, path,
                label);
    return FALSE;
}

static gboolean take_line(HnMediaFiles *f, const char *line, const char *folder, const char *where, GError **error)
{
    g_autofree char *path = NULL, *label = NULL;
    if (!split_line(line, &path, &label))
        return TRUE;
    const gboolean head = f->paths->len == 0 && hn_media_kind_of_name(path) == HN_MEDIA_NONE;
    if (head) /* names of columns */
        return TRUE;
    if (!take_kind(f, path, where, error))
        return FALSE;
    if (f->paths->len == 0 && label[0] != '\0')
        f->labels = g_array_new(FALSE, FALSE, sizeof(gint64));
    if ((f->labels != NULL) != (label[0] != '\0')) {
        g_set_error(error, HN_ERROR, HN_ERROR_FORMAT, "'%s' has labels for some files only: not for '%s'", where,
                    label[0] != '\0' ? (char *)f->paths->pdata[0] : path);
        return FALSE;
    }
    g_ptr_array_add(f->paths, g_path_is_absolute(path) ? g_strdup(path) : g_build_filename(folder, path, NULL));
    return f->labels == NULL || take_label(f, label, where, path, error);
}

gboolean hn_media_files_list(HnMediaFiles *f, const char *text, gsize size, const char *path, GError **error)
{
    g_autofree char *copy = g_strndup(size > 0 ? text : "", size), *folder = g_path_get_dirname(path);
    g_auto(GStrv) lines = g_strsplit(copy, "\n", -1);
    *f = (HnMediaFiles){ .paths = g_ptr_array_new_with_free_func(g_free) };
    gboolean ok = g_utf8_validate(copy, -1, NULL) && strlen(copy) == size;
    if (!ok)
        g_set_error(error, HN_ERROR, HN_ERROR_FORMAT, "'%s' is no text", path);
    for (char **line = lines; ok && *line != NULL; line++)
        ok = take_line(f, *line, folder, path, error);
    if (ok && f->paths->len == 0) {
        ok = FALSE;
        g_set_error(error, HN_ERROR, HN_ERROR_FORMAT, "'%s' names no file of pictures or sound", path);
    }
    if (!ok)
        hn_media_files_clear(f);
    return ok;
}

/* --- folders ------------------------------------------------------------------------------------------------------ */

static gboolean is_array(const char *name)
{
    return g_str_has_suffix(name, ".npy") || g_str_has_suffix(name, ".npz");
}

static gboolean add_files(HnMediaFiles *f, const char *folder, const GPtrArray *names, GError **error)
{
    const char *array = NULL, *media = NULL;
    for (guint i = 0; i < names->len; i++) {
        const char *name = names->pdata[i];
        g_autofree char *path = g_build_filename(folder, name, NULL);
        if (is_array(name))
            array = name;
        if (hn_media_kind_of_name(name) == HN_MEDIA_NONE || g_file_test(path, G_FILE_TEST_IS_DIR))
            continue;
        media = name;
        if (!take_kind(f, path, folder, error))
            return FALSE;
        g_ptr_array_add(f->paths, g_steal_pointer(&path));
    }
    if (array == NULL || media == NULL)
        return TRUE;
    g_set_error(error, HN_ERROR, HN_ERROR_FORMAT,
                "folder '%s' holds '%s' and '%s': samples are arrays, or pictures, or sound", folder, media, array);
    return FALSE;
}

/* Folders that hold pictures or sound. */
static gboolean add_classes(HnMediaFiles *f, const char *folder, const GPtrArray *names, GError **error)
{
    f->classes = g_ptr_array_new_with_free_func(g_free);
    f->labels = g_array_new(FALSE, FALSE, sizeof(gint64));
    const char *empty = NULL;
    for (guint i = 0; i < names->len; i++) {
        g_autofree char *inner = g_build_filename(folder, names->pdata[i], NULL);
        if (!g_file_test(inner, G_FILE_TEST_IS_DIR))
            continue;
        g_autoptr(GPtrArray) files = names_in(inner, error);
        if (files == NULL || !add_files(f, inner, files, error))
            return FALSE;
        const gint64 class = f->classes->len;
        if (f->labels->len == f->paths->len)
            empty = names->pdata[i];
        while (f->labels->len < f->paths->len)
            g_array_append_val(f->labels, class);
        g_ptr_array_add(f->classes, g_strdup(names->pdata[i]));
    }
    if (empty == NULL || f->paths->len == 0)
        return TRUE;
    g_set_error(error, HN_ERROR, HN_ERROR_FORMAT, "folder '%s' is one of classes, and its '%s' holds no sample", folder,
                empty);
    return FALSE;
}

/* Labels of the files of f, by their names, out of labels.txt or labels.csv, if that is there. */
static gboolean add_labels(HnMediaFiles *f, const char *folder, GError **error)
{
    static const char *const names[] = { "labels.csv", "labels.txt" };
    g_autofree char *path = NULL;
    for (gsize i = 0; i < G_N_ELEMENTS(names); i++) {
        g_free(path);
        path = g_build_filename(folder, names[i], NULL);
        if (g_file_test(path, G_FILE_TEST_IS_REGULAR))
            break;
        g_clear_pointer(&path, g_free);
    }
    g_autoptr(GBytes) bytes = path != NULL ? hn_file_bytes_most(path, MOST_BYTES, NULL, error) : NULL;
    if (path == NULL || bytes == NULL)
        return path == NULL;
    gsize size;
    const char *text = g_bytes_get_data(bytes, &size);
    if (!hn_media_files_are(text, size))
        return TRUE; /* names of classes, which hone-run --labels prints */
    HnMediaFiles listed;
    if (!hn_media_files_list(&listed, text, size, path, error))
        return FALSE;
    g_autoptr(GHashTable) places = g_hash_table_new(g_str_hash, g_str_equal);
    for (guint i = 0; i < listed.paths->len; i++)
        g_hash_table_insert(places, listed.paths->pdata[i], GUINT_TO_POINTER(i + 1));
    f->labels = listed.labels != NULL ? g_array_new(FALSE, FALSE, sizeof(gint64)) : NULL;
    gboolean ok = TRUE;
    for (guint i = 0; ok && f->labels != NULL && i < f->paths->len; i++) {
        const guint at = GPOINTER_TO_UINT(g_hash_table_lookup(places, f->paths->pdata[i]));
        ok = at > 0;
        if (ok)
            g_array_append_val(f->labels, g_array_index(listed.labels, gint64, at - 1));
        else
            g_set_error(error, HN_ERROR, HN_ERROR_FORMAT, "'%s' has no label for '%s'", path,
                        (char *)f->paths->pdata[i]);
    }
    hn_media_files_clear(&listed);
    return ok;
}

gboolean hn_media_files_in(HnMediaFiles *f, const char *folder, GError **error)
{
    *f = (HnMediaFiles){ .paths = g_ptr_array_new_with_free_func(g_free) };
    g_autoptr(GPtrArray) names = names_in(folder, error);
    gboolean ok = names != NULL && add_files(f, folder, names, error), array = FALSE;
    for (guint i = 0; ok && i < names->len; i++)
        array = array || is_array(names->pdata[i]);
    if (ok && f->paths->len > 0)
        ok = add_labels(f, folder, error);
    else if (ok && !array)
        ok = add_classes(f, folder, names, error);
    if (!ok)
        hn_media_files_clear(f);
    return ok;
}
