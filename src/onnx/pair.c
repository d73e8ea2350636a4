#include "onnx/pair.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/error.h"
#include "base/temp.h"
#include "onnx/wire.h"

#define SUFFIX ".data"

/* A data file that may have to go. */
typedef struct {
    char *name;
    HnTemp *temp; /* its second name; NULL: it could not be given one, or has one of `stale` */
} Doubt;

typedef struct {
    char *folder, *base; /* of OUT */
    int lock;            /* -1: the folder could not be locked */
    GPtrArray *stale;    /* HnTemp *: second names left behind by killed programs */
    GPtrArray *doubts;   /* Doubt * */
} Pair;

char *hn_pair_data_name(const char *path, const char *sum)
{
    g_autofree char *base = g_path_get_basename(path);
    return g_strdup_printf("%s.%.*s" SUFFIX, base, HN_PAIR_HASH, sum);
}

char *hn_pair_sum(GBytes *bytes)
{
    return g_compute_checksum_for_bytes(G_CHECKSUM_SHA1, bytes);
}

/* name is OUT.HASH.data */
static gboolean is_data_name(const Pair *p, const char *name)
{
    const gsize n = strlen(p->base);
    const char *hash = name + n + 1;
    return g_str_has_prefix(name, p->base) && name[n] == '.' && strspn(hash, "0123456789abcdef") == HN_PAIR_HASH &&
           !strcmp(hash + HN_PAIR_HASH, SUFFIX);
}

static void doubt_free(gpointer data)
{
    Doubt *d = data;
    hn_temp_remove(d->temp);
    g_free(d->name);
    g_free(d);
}

/* --- who names what ----------------------------------------------------------------------------------------------- */

/* The bytes of a model without its raw data; NULL: it is no model, or cannot be read. */
static GBytes *outline(const char *path)
{
    gsize size;
    g_autoptr(GBytes) bytes = g_file_test(path, G_FILE_TEST_IS_REGULAR) ? hn_file_bytes(path, NULL, NULL) : NULL;
    const guint8 *data = bytes ? g_bytes_get_data(bytes, &size) : NULL;
    return data ? hn_wire_compact(data, size, HN_WIRE_MODEL, NULL, NULL) : NULL;
}

static gboolean names(GBytes *model, const char *name)
{
    gsize n;
    gconstpointer data = g_bytes_get_data(model, &n);
    return n > 0 && memmem(data, n, name, strlen(name)) != NULL;
}

/* Drops the doubts about what this file names. */
static void ask(Pair *p, const char *name)
{
    g_autofree char *path = g_build_filename(p->folder, name, NULL), *lower = g_ascii_strdown(name, -1);
    const gboolean certain = g_str_has_suffix(lower, ".onnx");
    const char *dot = strrchr(p->base, '.');
    const gsize stem = dot ? (gsize)(dot - p->base) : strlen(p->base);
    if ((!certain && strncmp(name, p->base, stem) != 0) || is_data_name(p, name) ||
        !g_file_test(path, G_FILE_TEST_IS_REGULAR))
        return;
    g_autoptr(GBytes) model = outline(path);
    for (guint i = p->doubts->len; i-- > 0;)
        if (model ? names(model, ((const Doubt *)p->doubts->pdata[i])->name) : certain)
            g_ptr_array_remove_index_fast(p->doubts, i);
}

static GPtrArray *list_folder(const Pair *p)
{
    GPtrArray *list = g_ptr_array_new_with_free_func(g_free);
    g_autoptr(GDir) dir = g_dir_open(p->folder, 0, NULL);
    for (const char *name; dir && (name = g_dir_read_name(dir));)
        g_ptr_array_add(list, g_strdup(name));
    return list;
}

/* --- the steps ---------------------------------------------------------------------------------------------------- */

/* FALSE: it was interrupted, or a data file needs the lock and must not go without. */
static gboolean lock(Pair *p, gboolean needed, GError **error)
{
    p->lock = open(p->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (p->lock < 0 && needed) {
        g_set_error(error, HN_ERROR, HN_ERROR_IO, "cannot lock folder '%s': %s", p->folder, g_strerror(errno));
        return FALSE;
    }
    if (p->lock < 0 || flock(p->lock, LOCK_EX) == 0)
        return TRUE;
    const gboolean interrupted = errno == EINTR;
    close(p->lock);
    p->lock = -1;
    if (interrupted)
        g_set_error_literal(error, HN_ERROR, HN_ERROR_INTERRUPTED, "interrupted");
    return !interrupted;
}

static gboolean is_stale(const Pair *p, const char *path)
{
    struct stat st;
    for (guint i = 0; i < p->stale->len; i++) {
        const HnTemp *t = p->stale->pdata[i];
        if (lstat(path, &st) == 0 && st.st_dev == t->dev && st.st_ino == t->ino)
            return TRUE;
    }
    return FALSE;
}

/* Step 1, and what others left in doubt. */
static void find_doubts(Pair *p, const char *path)
{
    p->stale = hn_temp_sweep(path, TRUE);
    g_autoptr(GPtrArray) list = list_folder(p);
    g_autoptr(GBytes) replaced = NULL;
    gboolean looked = FALSE;
    for (guint i = 0; i < list->len; i++) {
        const char *name = list->pdata[i];
        if (!is_data_name(p, name))
            continue;
        if (!looked)
            replaced = outline(path);
        looked = TRUE;
        g_autofree char *file = g_build_filename(p->folder, name, NULL);
        const gboolean stale = is_stale(p, file);
        if (!stale && (!replaced || !names(replaced, name)))
            continue;
        Doubt *d = g_new0(Doubt, 1);
        d->name = g_strdup(name);
        d->temp = stale ? NULL : hn_temp_link(file, path);
        g_ptr_array_add(p->doubts, d);
    }
}

static gboolean begin(Pair *p, const char *path, gboolean needs_lock, GError **error)
{
    *p = (Pair){ .folder = g_path_get_dirname(path), .base = g_path_get_basename(path), .lock = -1 };
    p->doubts = g_ptr_array_new_with_free_func(doubt_free);
    if (!lock(p, needs_lock, error))
        return FALSE;
    if (p->lock >= 0)
        find_doubts(p, path);
    return TRUE;
}

/* Step 4. */
static void remove_unnamed(Pair *p, const char *path)
{
    g_autoptr(GPtrArray) list = p->doubts->len > 0 ? list_folder(p) : g_ptr_array_new();
    g_autofree char *base = g_path_get_basename(path);
    if (p->doubts->len > 0)
        ask(p, base); /* whatever its name */
    for (guint i = 0; i < list->len && p->doubts->len > 0; i++)
        ask(p, list->pdata[i]);
    for (guint i = 0; i < p->doubts->len; i++) {
        g_autofree char *file = g_build_filename(p->folder, ((const Doubt *)p->doubts->pdata[i])->name, NULL);
        unlink(file);
    }
}

static void end(Pair *p)
{
    g_ptr_array_unref(p->doubts);
    if (p->stale)
        g_ptr_array_unref(p->stale);
    if (p->lock >= 0)
        close(p->lock);
    g_free(p->folder);
    g_free(p->base);
}

/* The data file is there already. */
static gboolean holds(const char *file, const char *sum)
{
    g_autoptr(GBytes) bytes = g_file_test(file, G_FILE_TEST_IS_REGULAR) ? hn_file_bytes(file, NULL, NULL) : NULL;
    g_autofree char *found = bytes ? hn_pair_sum(bytes) : NULL;
    return found && !strcmp(found, sum);
}

static gboolean put(HnOutFile *out, const char *path, HnOutFile *data, const char *sum, GError **error)
{
    if (!data)
        return hn_out_commit(out, error);
    g_autofree char *folder = g_path_get_dirname(path), *name = hn_pair_data_name(path, sum);
    g_autofree char *file = g_build_filename(folder, name, NULL);
    const gboolean there = holds(file, sum), fresh = access(file, F_OK) != 0;
    if (!there && !hn_out_link(data, file, error))
        return FALSE;
    if (hn_out_commit(out, error))
        return TRUE;
    if (fresh)
        unlink(file);
    return FALSE;
}

gboolean hn_pair_commit(HnOutFile *out, const char *path, HnOutFile *data, const char *sum, GError **error)
{
    Pair p = { .lock = -1 };
    const gboolean ok = begin(&p, path, data != NULL, error) && put(out, path, data, sum, error);
    if (ok)
        remove_unnamed(&p, path);
    hn_out_free(data); /* and its second name, before others may look */
    end(&p);
    return ok;
}

void hn_pair_remove(const char *path)
{
    Pair p;
    gboolean ok = begin(&p, path, FALSE, NULL);
    unlink(path);
    if (ok)
        remove_unnamed(&p, path);
    end(&p);
}
