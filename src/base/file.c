#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/error.h"
#include "base/mapped.h"
#include "base/temp.h"
#include "base/text.h"

#define FIRST_READ ((gsize)1 << 16)   /* room for a pipe's content at the start; doubled when full */
#define WRITE_BUFFER ((gsize)1 << 17) /* larger pieces are written as they come */
#define MAX_LINKS 40                  /* that lead to each other, as in the kernel */

static void io_error(GError **error, const char *verb, const char *name, int errnum)
{
    if (errnum == EINTR)
        g_set_error_literal(error, HN_ERROR, HN_ERROR_INTERRUPTED, "interrupted");
    else
        g_set_error(error, HN_ERROR, HN_ERROR_IO, "cannot %s '%s': %s", verb, name, g_strerror(errnum));
}

/* An anonymous mapping: it grows without copying, and pages are made only where something is written. */
typedef struct {
    HnBudget *budget;
    guint8 *data;
    gsize room; /* bytes mapped and charged */
} Pages;

static void pages_free(gpointer data)
{
    Pages *pages = data;
    if (pages->data)
        munmap(pages->data, pages->room);
    hn_budget_uncharge(pages->budget, pages->room);
    hn_budget_unref(pages->budget);
    g_free(pages);
}

/* Change the room to size > 0; on failure everything stays as it is. */
static gboolean pages_resize(Pages *pages, gsize size, const char *name, GError **error)
{
    if (size > pages->room && !hn_budget_charge(pages->budget, size - pages->room, error)) {
        g_prefix_error(error, "cannot read '%s': ", name);
        return FALSE;
    }
    void *p = pages->data ? mremap(pages->data, pages->room, size, MREMAP_MAYMOVE)
                          : mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) {
        if (size > pages->room)
            hn_budget_uncharge(pages->budget, size - pages->room);
        g_set_error(error, HN_ERROR, HN_ERROR_BUDGET, "no memory to read '%s'", name);
        return FALSE;
    }
    if (size < pages->room)
        hn_budget_uncharge(pages->budget, pages->room - size);
    pages->data = p;
    pages->room = size;
    return TRUE;
}

/* Wait until fd is ready where somebody made it non-blocking; TRUE if errno said so and there is a point in going on.
 */
static gboolean wait_ready(int fd, short events)
{
    struct pollfd p = { .fd = fd, .events = events };
    return (errno == EAGAIN || errno == EWOULDBLOCK) && poll(&p, 1, -1) > 0;
}

/* Fill pages up to the end of what fd gives; the number of bytes, or -1. */
static gssize fill_pages(Pages *pages, int fd, const char *name, GError **error)
{
    gsize len = 0, room = FIRST_READ;
    for (;;) {
        if (len == pages->room) {
            if (!pages_resize(pages, room, name, error) || !hn_mul_size(room, 2, &room))
                return -1;
        }
        ssize_t n = read(fd, pages->data + len, pages->room - len);
        if (n < 0 && wait_ready(fd, POLLIN))
            continue;
        if (n < 0)
            io_error(error, "read", name, errno);
        if (n <= 0)
            return n < 0 ? -1 : (gssize)len;
        len += (gsize)n;
    }
}

static GBytes *read_to_end(int fd, const char *name, HnBudget *budget, GError **error)
{
    Pages *pages = g_new0(Pages, 1);
    pages->budget = hn_budget_ref(budget);
    gssize len = fill_pages(pages, fd, name, error);
    gsize fit;
    if (len > 0 && hn_align_size((gsize)len, (gsize)sysconf(_SC_PAGESIZE), &fit) &&
        (fit >= pages->room || pages_resize(pages, fit, name, error)))
        return g_bytes_new_with_free_func(pages->data, (gsize)len, pages_free, pages);
    pages_free(pages);
    return len == 0 ? g_bytes_new_static("", 0) : NULL;
}

typedef struct {
    gpointer start;
    gsize size;
    HnGuard *guard;
} Mapping;

static void mapping_free(gpointer data)
{
    Mapping *m = data;
    hn_guard_end(m->guard);
    munmap(m->start, m->size);
    g_free(m);
}

/* A read-only mapping of a regular file from where fd stands. */
static GBytes *map_rest(int fd, const char *name, const struct stat *st, GError **error)
{
    const gsize size = (gsize)st->st_size;
    off_t at = lseek(fd, 0, SEEK_CUR);
    if (at < 0)
        at = 0;
    if (st->st_size <= at)
        return g_bytes_new_static("", 0);
    gpointer start = mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (start == MAP_FAILED) {
        g_set_error(error, HN_ERROR, HN_ERROR_IO, "cannot map '%s' into memory: %s", name, g_strerror(errno));
        return NULL;
    }
    g_autofree char *clean = hn_text_clean(name);
    Mapping *m = g_new(Mapping, 1);
    *m = (Mapping){ start, size, hn_guard_mapping(start, size, clean) };
    return g_bytes_new_with_free_func((guint8 *)start + at, size - (gsize)at, mapping_free, m);
}

GBytes *hn_fd_bytes(int fd, const char *name, HnBudget *budget, GError **error)
{
    struct stat st;
    if (fstat(fd, &st) != 0) {
        io_error(error, "read", name, errno);
        return NULL;
    }
    if (S_ISDIR(st.st_mode)) {
        g_set_error(error, HN_ERROR, HN_ERROR_IO, "cannot read '%s': it is a folder", name);
        return NULL;
    }
    /* files of /proc say that they are empty: read those */
    if (S_ISREG(st.st_mode) && st.st_size > 0)
        return map_rest(fd, name, &st, error);
    return read_to_end(fd, name, budget, error);
}

GBytes *hn_stdin_bytes(HnBudget *budget, GError **error)
{
    return hn_fd_bytes(STDIN_FILENO, "stdin", budget, error);
}

GBytes *hn_file_bytes(const char *path, HnBudget *budget, GError **error)
{
    if (!strcmp(path, "-"))
        return hn_stdin_bytes(budget, error);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        io_error(error, "open", path, errno);
        return NULL;
    }
    GBytes *bytes = hn_fd_bytes(fd, path, budget, error);
    close(fd);
    return bytes;
}

/* A pipe or a device may have no end: what is read of it is counted by a budget with an end of its own, unless the
 * given one ends before. */
GBytes *hn_file_bytes_most(const char *path, gsize most, HnBudget *budget, GError **error)
{
    const gsize room = 2 * MAX(most, FIRST_READ), limit = hn_budget_limit(budget); /* it is doubled as it fills */
    const gboolean given = limit > 0 && limit <= room;
    g_autoptr(HnBudget) own = given ? hn_budget_ref(budget) : hn_budget_new(room);
    GError *cause = NULL;
    g_autoptr(GBytes) bytes = hn_file_bytes(path, own, &cause);
    const gboolean endless = !given && g_error_matches(cause, HN_ERROR, HN_ERROR_BUDGET);
    if (bytes != NULL && g_bytes_get_size(bytes) <= most)
        return g_steal_pointer(&bytes);
    if (cause != NULL && !endless) {
        g_propagate_error(error, cause);
        return NULL;
    }
    g_clear_error(&cause);
    g_set_error(error, HN_ERROR, HN_ERROR_FORMAT, "'%s' has more than %" G_GSIZE_FORMAT " bytes", path, most);
    return NULL;
}

/* --- out ---------------------------------------------------------------------------------------------------------- */

struct HnOutFile {
    char *name;   /* as the user wrote it, for messages */
    char *target; /* where the file goes, links followed; NULL: fd is what was asked for, written directly */
    HnTemp *temp; /* name beside the target, NULL while the file has none */
    HnGuard *guard;
    int fd;
    guint64 written;
    guint8 *buffer;
    gsize fill; /* bytes of buffer not yet written */
    gboolean synced, done;
};

gboolean hn_out_is_stdout(const char *path)
{
    struct stat st, out;
    if (!strcmp(path, "-"))
        return TRUE;
    if (stat(path, &st) != 0 || fstat(STDOUT_FILENO, &out) != 0 || st.st_dev != out.st_dev || st.st_ino != out.st_ino)
        return FALSE;
    return !S_ISCHR(st.st_mode) || st.st_rdev != makedev(1, 3); /* in /dev/null nothing gets mixed */
}

/* A file without a name disappears by itself however the process ends; not every file system can do that. */
static int open_nameless(const char *target)
{
#ifdef O_TMPFILE
    g_autofree char *folder = g_path_get_dirname(target);
    if (access("/proc/self/fd", X_OK) == 0)
        return open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0666);
#endif
    errno = EOPNOTSUPP;
    return -1;
}

static gboolean open_temp(HnOutFile *file)
{
    g_ptr_array_unref(hn_temp_sweep(file->target, FALSE));
    file->fd = open_nameless(file->target);
    if (file->fd >= 0)
        return TRUE;
    file->temp = hn_temp_create(file->target, &file->fd);
    file->guard = file->temp ? hn_guard_temp(file->temp->path) : NULL;
    return file->temp != NULL;
}

/* Where path leads to through links, the last of which may lead nowhere yet; NULL with errno. */
static char *follow(const char *path)
{
    g_autofree char *at = g_strdup(path);
    char next[PATH_MAX];
    for (int i = 0; i < MAX_LINKS; i++) {
        const ssize_t n = readlink(at, next, sizeof next - 1);
        if (n < 0 && (errno == EINVAL || errno == ENOENT)) /* no link, or nothing at all */
            return g_steal_pointer(&at);
        if (n < 0)
            return NULL;
        next[n] = '\0';
        g_autofree char *folder = g_path_get_dirname(at);
        char *to = g_path_is_absolute(next) ? g_strdup(next) : g_build_filename(folder, next, NULL);
        g_free(at);
        at = to;
    }
    errno = ELOOP;
    return NULL;
}

static HnOutFile *out_fail(const char *verb, const char *name, GError **error)
{
    io_error(error, verb, name, errno);
    return NULL;
}

HnOutFile *hn_out_open(const char *path, GError **error)
{
    g_autoptr(HnOutFile) file = g_new0(HnOutFile, 1);
    struct stat st;
    file->fd = -1;
    file->name = g_strdup(!strcmp(path, "-") ? "stdout" : path);
    if (hn_out_is_stdout(path)) {
        file->fd = dup(STDOUT_FILENO);
        return file->fd >= 0 ? g_steal_pointer(&file) : out_fail("write", file->name, error);
    }
    gboolean exists = stat(path, &st) == 0;
    if (*path && !exists && errno != ENOENT)
        return out_fail("write", path, error);
    if (!*path || (exists && S_ISDIR(st.st_mode))) {
        g_set_error(error, HN_ERROR, HN_ERROR_IO, "cannot write '%s': it is %s", path, *path ? "a folder" : "no name");
        return NULL;
    }
    if (exists && !S_ISREG(st.st_mode)) {
        file->fd = open(path, O_WRONLY | O_CLOEXEC);
        return file->fd >= 0 ? g_steal_pointer(&file) : out_fail("open", path, error);
    }
    /* through a link the file behind it is written; a file that forbids writing is left alone */
    file->target = follow(path);
    if (!file->target || (exists && access(path, W_OK) != 0) || !open_temp(file))
        return out_fail("write", path, error);
    if (exists && fchmod(file->fd, st.st_mode & 0777) != 0)
        return out_fail("write", path, error);
    return g_steal_pointer(&file);
}

gboolean hn_out_possible(const char *path, GError **error)
{
    struct stat st;
    if (hn_out_is_stdout(path))
        return TRUE;
    const gboolean exists = stat(path, &st) == 0;
    g_autofree char *target = follow(path), *folder = target != NULL ? g_path_get_dirname(target) : NULL;
    if (exists && S_ISDIR(st.st_mode))
        errno = EISDIR;
    else if (folder != NULL && (!exists || access(path, W_OK) == 0) &&
             ((exists && !S_ISREG(st.st_mode)) || access(folder, W_OK) == 0))
        return TRUE;
    io_error(error, "write", path, errno);
    return FALSE;
}

HnOutFile *hn_out_open_beside(const char *path, GError **error)
{
    g_autoptr(HnOutFile) file = g_new0(HnOutFile, 1);
    file->fd = -1;
    file->name = g_strdup(path);
    file->target = g_strdup(path);
    return open_temp(file) ? g_steal_pointer(&file) : out_fail("write", path, error);
}

gboolean hn_out_is_file(const HnOutFile *file)
{
    return file->target != NULL;
}

/* What is written may be bytes of a mapped file, which the kernel finds gone without a signal. */
static void write_error(const HnOutFile *file, gconstpointer data, GError **error)
{
    const char *source = errno == EFAULT ? hn_guard_find(data) : NULL;
    if (source)
        g_set_error(error, HN_ERROR, HN_ERROR_IO, "'%s' was cut short by another program while it was being read",
                    source);
    else
        io_error(error, "write", file->name, errno);
}

static gboolean write_all(HnOutFile *file, const guint8 *data, gsize size, GError **error)
{
    while (size > 0) {
        ssize_t n = write(file->fd, data, MIN(size, (gsize)1 << 30));
        if (n < 0 && wait_ready(file->fd, POLLOUT))
            continue;
        if (n < 0) {
            write_error(file, data, error);
            return FALSE;
        }
        data += n;
        size -= (gsize)n;
    }
    return TRUE;
}

static gboolean flush(HnOutFile *file, GError **error)
{
    gsize fill = file->fill;
    file->fill = 0;
    return write_all(file, file->buffer, fill, error);
}

gboolean hn_out_write(HnOutFile *file, gconstpointer data, gsize size, GError **error)
{
    g_assert(!file->done);
    if (size > WRITE_BUFFER - file->fill && !flush(file, error))
        return FALSE;
    if (size >= WRITE_BUFFER) {
        if (!write_all(file, data, size, error))
            return FALSE;
    } else if (size > 0) {
        if (!file->buffer)
            file->buffer = g_malloc(WRITE_BUFFER);
        memcpy(file->buffer + file->fill, data, size);
        file->fill += size;
    }
    file->written += size;
    return TRUE;
}

guint64 hn_out_tell(const HnOutFile *file)
{
    return file->written;
}

static gboolean fail_to_write(const HnOutFile *file, int errnum, GError **error)
{
    io_error(error, "write", file->name, errnum);
    return FALSE;
}

gboolean hn_out_sync(HnOutFile *file, GError **error)
{
    if (!flush(file, error))
        return FALSE;
    if (!file->synced && file->target && fsync(file->fd) != 0)
        return fail_to_write(file, errno, error);
    file->synced = TRUE;
    return TRUE;
}

GBytes *hn_out_bytes(HnOutFile *file, GError **error)
{
    g_assert(file->synced && file->target);
    if (lseek(file->fd, 0, SEEK_SET) == 0)
        return hn_fd_bytes(file->fd, file->name, NULL, error);
    fail_to_write(file, errno, error);
    return NULL;
}

/* Give a nameless file a name beside its target. */
static gboolean name_temp(HnOutFile *file)
{
    if (!file->temp)
        file->temp = hn_temp_name(file->fd, file->target);
    return file->temp != NULL;
}

void hn_sync_folder(const char *path)
{
    g_autofree char *folder = g_path_get_dirname(path);
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return;
    fsync(fd);
    close(fd);
}

gboolean hn_out_link(HnOutFile *file, const char *path, GError **error)
{
    int why = 0;
    g_assert(file->synced && !file->done);
    file->done = TRUE;
    if (!name_temp(file))
        return fail_to_write(file, errno, error);
    if (link(file->temp->path, path) != 0) { /* it is there, or the file system has no second names */
        hn_guard_end(g_steal_pointer(&file->guard));
        if (!hn_temp_rename(g_steal_pointer(&file->temp), path, &why))
            return fail_to_write(file, why, error);
    }
    hn_sync_folder(path);
    return TRUE;
}

static gboolean close_direct(HnOutFile *file, GError **error)
{
    int fd = file->fd;
    file->fd = -1;
    return close(fd) == 0 || errno == EINTR || fail_to_write(file, errno, error);
}

gboolean hn_out_commit(HnOutFile *file, GError **error)
{
    int why = 0;
    g_assert(!file->done);
    if (!hn_out_sync(file, error))
        return FALSE;
    file->done = TRUE;
    if (!file->target)
        return close_direct(file, error);
    if (!name_temp(file))
        return fail_to_write(file, errno, error);
    /* the descriptor stays open until then: it holds the lock that says that the temporary name is in use */
    hn_guard_end(g_steal_pointer(&file->guard));
    if (!hn_temp_rename(g_steal_pointer(&file->temp), file->target, &why))
        return fail_to_write(file, why, error);
    hn_sync_folder(file->target);
    return TRUE;
}

void hn_out_free(HnOutFile *file)
{
    if (!file)
        return;
    hn_guard_end(file->guard);
    hn_temp_remove(file->temp);
    if (file->fd >= 0)
        close(file->fd);
    g_free(file->target);
    g_free(file->name);
    g_free(file->buffer);
    g_free(file);
}

gboolean hn_out_save(const char *path, gconstpointer data, gsize size, GError **error)
{
    g_autoptr(HnOutFile) file = hn_out_open(path, error);
    return file && hn_out_write(file, data, size, error) && hn_out_commit(file, error);
}
