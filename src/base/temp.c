#include "base/temp.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <unistd.h>

#define NAMES 100   /* that are tried */
#define SWEPT 8     /* of them are looked through: more are only needed where so many programs write one file at once */
#define LONGEST 200 /* bytes of NAME that a temporary name repeats */

static char *nth_name(const char *beside, int n)
{
    g_autofree char *folder = g_path_get_dirname(beside), *base = g_path_get_basename(beside);
    g_autofree char *name = g_strdup_printf(".%.*s.hone-%d", LONGEST, base, n);
    return g_build_filename(folder, name, NULL);
}

static HnTemp *temp_new(char *path, const struct stat *st, int fd)
{
    HnTemp *temp = g_new(HnTemp, 1);
    *temp = (HnTemp){ path, st->st_dev, st->st_ino, fd };
    return temp;
}

static void temp_free(HnTemp *temp)
{
    if (temp->fd >= 0)
        close(temp->fd);
    g_free(temp->path);
    g_free(temp);
}

HnTemp *hn_temp_create(const char *beside, int *fd)
{
    struct stat st;
    errno = EEXIST;
    for (int i = 0; i < NAMES; i++) {
        g_autofree char *path = nth_name(beside, i);
        *fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (*fd < 0 && errno != EEXIST)
            return NULL;
        if (*fd < 0)
            continue;
        /* between these two calls somebody may have taken it for left behind */
        flock(*fd, LOCK_EX);
        if (fstat(*fd, &st) == 0 && st.st_nlink > 0)
            return temp_new(g_steal_pointer(&path), &st, -1);
        close(*fd);
    }
    *fd = -1;
    return NULL;
}

HnTemp *hn_temp_name(int fd, const char *beside)
{
    char source[64];
    struct stat st;
    g_snprintf(source, sizeof source, "/proc/self/fd/%d", fd);
    flock(fd, LOCK_EX | LOCK_NB);
    if (fstat(fd, &st) != 0)
        return NULL;
    errno = EEXIST;
    for (int i = 0; i < NAMES && errno == EEXIST; i++) {
        g_autofree char *path = nth_name(beside, i);
        if (linkat(AT_FDCWD, source, AT_FDCWD, path, AT_SYMLINK_FOLLOW) == 0)
            return temp_new(g_steal_pointer(&path), &st, -1);
    }
    return NULL;
}

/* Locked by us: nobody else holds it. -1: not so. NFS locks only what is open for writing. */
static int open_locked(const char *path, struct stat *st)
{
    const int flags = O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
    int fd = open(path, O_RDWR | flags);
    if (fd < 0 && (errno == EACCES || errno == EROFS || errno == ETXTBSY))
        fd = open(path, O_RDONLY | flags);
    if (fd < 0)
        return -1;
    if (fstat(fd, st) == 0 && S_ISREG(st->st_mode) && flock(fd, LOCK_EX | LOCK_NB) == 0)
        return fd;
    const int why = errno;
    close(fd);
    errno = why;
    return -1;
}

HnTemp *hn_temp_link(const char *path, const char *beside)
{
    struct stat st;
    int fd = open_locked(path, &st);
    errno = fd < 0 ? errno : EEXIST;
    for (int i = 0; fd >= 0 && i < NAMES && errno == EEXIST; i++) {
        g_autofree char *name = nth_name(beside, i);
        if (link(path, name) == 0)
            return temp_new(g_steal_pointer(&name), &st, fd);
    }
    const int why = errno;
    if (fd >= 0)
        close(fd);
    errno = why;
    return NULL;
}

gboolean hn_temp_rename(HnTemp *temp, const char *path, int *errnum)
{
    const gboolean ok = rename(temp->path, path) == 0;
    *errnum = errno;
    if (!ok)
        unlink(temp->path);
    temp_free(temp);
    return ok;
}

void hn_temp_remove(HnTemp *temp)
{
    if (temp == NULL)
        return;
    unlink(temp->path);
    temp_free(temp);
}

GPtrArray *hn_temp_sweep(const char *beside, gboolean linked)
{
    GPtrArray *list = g_ptr_array_new_with_free_func((GDestroyNotify)hn_temp_remove);
    for (int i = 0; i < SWEPT; i++) {
        g_autofree char *path = nth_name(beside, i);
        struct stat st, now;
        int fd = open_locked(path, &st);
        /* its owner may have renamed it before the lock was ours */
        const gboolean same = fd >= 0 && fstat(fd, &st) == 0 && lstat(path, &now) == 0 && now.st_dev == st.st_dev &&
                              now.st_ino == st.st_ino;
        if (same && st.st_nlink > 1 && linked) {
            g_ptr_array_add(list, temp_new(g_steal_pointer(&path), &st, fd));
            continue;
        }
        if (same && st.st_nlink == 1)
            unlink(path);
        if (fd >= 0)
            close(fd);
    }
    return list;
}
