#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/rng.h"

#define FIRST_READ ((gsize)1 << 16)   /* room for a pipe's content at the start; doubled when full */
#define WRITE_BUFFER ((gsize)1 << 17) /* larger pieces are written as they come */
#define NAME_TRIES 100                /* for a temporary name that is free */

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

/* A read-only mapping of a regular file from where fd stands. */
static GBytes *map_rest(int fd, const char *name, const struct stat *st, GError **error)
{
    off_t at = lseek(fd, 0, SEEK_CUR);
    if (at < 0)
        at = 0;
    if (st->st_size <= at)
        return g_bytes_new_static("", 0);
    g_autoptr(GError) cause = NULL;
    g_autoptr(GMappedFile) map = g_mapped_file_new_from_fd(fd, FALSE, &cause);
    if (!map) {
        g_set_error(error, HN_ERROR, HN_ERROR_IO, "cannot map '%s' into memory", name);
        return NULL;
    }
    g_autoptr(GBytes) all = g_mapped_file_get_bytes(map);
    gsize size = g_bytes_get_size(all), start = MIN((gsize)at, size);
    return g_bytes_new_from_bytes(all, start, size - start);
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

struct HnOutFile {
    char *name;   /* as the user wrote it, for messages */
    char *target; /* where the file goes, links followed; NULL: fd is what was asked for, written directly */
    char *temp;   /* name beside the target, NULL while the file has none */
    int fd;
    guint64 written;
    guint8 *buffer;
    gsize fill; /* bytes of buffer not yet written */
    gboolean done;
};

static char *temp_name(const char *target)
{
    HnRng rng = hn_rng(hn_now_ns() ^ (guint64)getpid() << 40);
    g_autofree char *folder = g_path_get_dirname(target), *base = g_path_get_basename(target);
    g_autofree char *name = g_strdup_printf(".%.64s.%08x", base, (guint)hn_rng_u64(&rng));
    return g_build_filename(folder, name, NULL);
}

/* A file without a name disappears by itself however the process ends; not every file system can do that. */
static int open_nameless(const char *target)
{
#ifdef O_TMPFILE
    g_autofree char *folder = g_path_get_dirname(target);
    if (access("/proc/self/fd", X_OK) == 0)
        return open(folder, O_TMPFILE | O_WRONLY | O_CLOEXEC, 0666);
#endif
    errno = EOPNOTSUPP;
    return -1;
}

static gboolean open_temp(HnOutFile *file)
{
    file->fd = open_nameless(file->target);
    for (int i = 0; file->fd < 0 && i < NAME_TRIES; i++) {
        g_autofree char *temp = temp_name(file->target);
        file->fd = open(temp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (file->fd >= 0)
            file->temp = g_steal_pointer(&temp);
        else if (errno != EEXIST)
            return FALSE;
    }
    return file->fd >= 0;
}

HnOutFile *hn_out_open(const char *path, GError **error)
{
    g_autoptr(HnOutFile) file = g_new0(HnOutFile, 1);
    struct stat st;
    file->fd = -1;
    if (!strcmp(path, "-")) {
        file->name = g_strdup("stdout");
        file->fd = dup(STDOUT_FILENO);
        if (file->fd < 0) {
            io_error(error, "write", file->name, errno);
            return NULL;
        }
        return g_steal_pointer(&file);
    }
    file->name = g_strdup(path);
    gboolean exists = stat(path, &st) == 0;
    if (!*path || (exists && S_ISDIR(st.st_mode))) {
        g_set_error(error, HN_ERROR, HN_ERROR_IO, "cannot write '%s': it is %s", path, *path ? "a folder" : "no name");
        return NULL;
    }
    if (exists && !S_ISREG(st.st_mode)) {
        file->fd = open(path, O_WRONLY | O_CLOEXEC);
        if (file->fd < 0) {
            io_error(error, "open", path, errno);
            return NULL;
        }
        return g_steal_pointer(&file);
    }
    /* through a link the file behind it is replaced; a file that forbids writing is left alone */
    char *real = exists ? realpath(path, NULL) : NULL;
    file->target = g_strdup(real ? real : path);
    free(real);
    if ((exists && access(path, W_OK) != 0) || !open_temp(file)) {
        io_error(error, "write", path, errno);
        return NULL;
    }
    if (exists && fchmod(file->fd, st.st_mode & 0777) != 0) {
        io_error(error, "write", path, errno);
        return NULL;
    }
    return g_steal_pointer(&file);
}

static gboolean write_all(HnOutFile *file, const guint8 *data, gsize size, GError **error)
{
    while (size > 0) {
        ssize_t n = write(file->fd, data, MIN(size, (gsize)1 << 30));
        if (n < 0 && wait_ready(file->fd, POLLOUT))
            continue;
        if (n < 0) {
            io_error(error, "write", file->name, errno);
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

/* Give a nameless file a name beside its target. */
static gboolean name_temp(HnOutFile *file)
{
    char source[64];
    g_snprintf(source, sizeof source, "/proc/self/fd/%d", file->fd);
    for (int i = 0; i < NAME_TRIES; i++) {
        g_autofree char *temp = temp_name(file->target);
        if (linkat(AT_FDCWD, source, AT_FDCWD, temp, AT_SYMLINK_FOLLOW) == 0) {
            file->temp = g_steal_pointer(&temp);
            return TRUE;
        }
        if (errno != EEXIST)
            return FALSE;
    }
    return FALSE;
}

/* The new name in its folder has to reach the disk too; where that cannot be asked for, nothing is lost by going on. */
static void sync_folder(const char *target)
{
    g_autofree char *folder = g_path_get_dirname(target);
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return;
    fsync(fd);
    close(fd);
}

gboolean hn_out_commit(HnOutFile *file, GError **error)
{
    g_assert(!file->done);
    if (!flush(file, error))
        return FALSE;
    file->done = TRUE;
    if (file->target && (fsync(file->fd) != 0 || (!file->temp && !name_temp(file)))) {
        io_error(error, "write", file->name, errno);
        return FALSE;
    }
    int fd = file->fd;
    file->fd = -1;
    if (close(fd) != 0 && errno != EINTR) {
        io_error(error, "write", file->name, errno);
        return FALSE;
    }
    if (!file->target)
        return TRUE;
    if (rename(file->temp, file->target) != 0) {
        io_error(error, "write", file->name, errno);
        return FALSE;
    }
    g_clear_pointer(&file->temp, g_free);
    sync_folder(file->target);
    return TRUE;
}

void hn_out_free(HnOutFile *file)
{
    if (!file)
        return;
    if (file->fd >= 0)
        close(file->fd);
    if (file->temp)
        unlink(file->temp);
    g_free(file->temp);
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
