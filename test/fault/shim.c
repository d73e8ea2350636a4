/*
 * Faults on purpose: loaded before libc (LD_PRELOAD), lets the k-th call of a class fail in a tool of hone.
 *
 * HONE_FAULT is CLASS:K:ACTION. CLASS is open (of what is there), create, read, write, sync, rename, link, unlink, map,
 * truncate, close, lock, folder, alloc, or any (all but alloc). K counts from 1. ACTION is the name of an error
 * ("EIO"), with '+' behind it for all calls from K on; SHORT: half of the bytes; KILL, INT: the process gets that
 * signal before the call, which then goes on.
 *
 * Only files in the folder HONE_FAULT_DIR (its real path) count; of memory what the program itself allocates, which is
 * what the budget gives out, and not what libraries do. The file HONE_FAULT_LOG gets "hit CALL FILE" when the fault
 * happens, and "total CLASS N" for each class when the program ends. With HONE_FAULT_NAMELESS=no the folder's file
 * system has no files without names (O_TMPFILE).
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))
/* the function of libc that this one stands before */
#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t n, size_t size);

/* What the environment says; constant after start(). */
static char class_name[16], action[16], folder[PATH_MAX];
static long at;
static int error_number, for_ever, no_nameless, log_fd = -1;
static uintptr_t text_start, text_end; /* of the program */
static int count;                      /* of the calls that HONE_FAULT is about */

/* All calls, by class. */
static const char *const classes[] = { "any",    "open", "create",   "read",  "write", "sync",   "rename", "link",
                                       "unlink", "map",  "truncate", "close", "lock",  "folder", "alloc" };
#define N_CLASSES (sizeof classes / sizeof *classes)
static int counts[N_CLASSES];

static const struct {
    const char *name;
    int value;
} errors[] = { { "EIO", EIO },       { "ENOSPC", ENOSPC }, { "EINTR", EINTR },
               { "ENOMEM", ENOMEM }, { "EACCES", EACCES }, { "EMFILE", EMFILE },
               { "ENOLCK", ENOLCK }, { "EPERM", EPERM },   { "EOPNOTSUPP", EOPNOTSUPP } };

/* The first object is the program. */
static int find_text(struct dl_phdr_info *info, size_t size, void *data)
{
    (void)size, (void)data;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *p = &info->dlpi_phdr[i];
        if (p->p_type != PT_LOAD || !(p->p_flags & PF_X))
            continue;
        text_start = info->dlpi_addr + p->p_vaddr;
        text_end = text_start + p->p_memsz;
    }
    return 1;
}

__attribute__((constructor)) static void start(void)
{
    const char *what = getenv("HONE_FAULT"), *where = getenv("HONE_FAULT_DIR"), *report = getenv("HONE_FAULT_LOG");
    if (!what || !where || strncmp(program_invocation_short_name, "hone-", 5) != 0)
        return;
    dl_iterate_phdr(find_text, NULL);
    no_nameless = getenv("HONE_FAULT_NAMELESS") != NULL;
    snprintf(folder, sizeof folder, "%s", where);
    log_fd = report ? open(report, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666) : -1;
    if (sscanf(what, "%15[^:]:%ld:%15s", class_name, &at, action) != 3)
        abort();
    size_t n = strlen(action);
    if (action[n - 1] == '+') {
        for_ever = 1;
        action[n - 1] = '\0';
    }
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
        if (!strcmp(action, errors[i].name))
            error_number = errors[i].value;
}

__attribute__((destructor)) static void end(void)
{
    for (size_t i = 0; i < N_CLASSES && log_fd >= 0; i++)
        dprintf(log_fd, "total %s %d\n", classes[i], counts[i]);
}

/* --- what counts -------------------------------------------------------------------------------------------------- */

static int is_inside(const char *path)
{
    size_t n = strlen(folder);
    return !strncmp(path, folder, n) && (path[n] == '/' || path[n] == '\0');
}

/* The folder of path lies in ours; the path itself need not exist. */
static int path_counts(const char *path)
{
    char copy[PATH_MAX], real[PATH_MAX];
    if (!at || !path || strlen(path) >= sizeof copy)
        return 0;
    memcpy(copy, path, strlen(path) + 1);
    char *slash = strrchr(copy, '/');
    if (slash == copy)
        slash[1] = '\0';
    else if (slash)
        *slash = '\0';
    return realpath(slash ? copy : ".", real) && is_inside(real);
}

static int fd_counts(int fd)
{
    char name[64], path[PATH_MAX];
    if (!at || fd < 0)
        return 0;
    int saved = errno;
    snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
    ssize_t n = readlink(name, path, sizeof path - 1);
    errno = saved;
    if (n < 0)
        return 0;
    path[n] = '\0';
    return is_inside(path);
}

static void report(const char *call, const char *path, int fd)
{
    char line[PATH_MAX + 100], name[64], real[PATH_MAX] = "";
    if (!path && fd >= 0) {
        snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
        ssize_t n = readlink(name, real, sizeof real - 1);
        real[n > 0 ? n : 0] = '\0';
    }
    int n = snprintf(line, sizeof line, "hit %s %s\n", call, path ? path : real);
    if (log_fd >= 0)
        syscall(SYS_write, log_fd, line, n);
}

enum { GO_ON, FAIL, HALF };

/* What becomes of this call, which is one that counts. */
static int fault(const char *kind, const char *call, const char *path, int fd)
{
    int any = !strcmp(class_name, "any") && strcmp(kind, "alloc") != 0;
    for (size_t i = 0; i < N_CLASSES; i++)
        if (!strcmp(kind, classes[i]) || (i == 0 && strcmp(kind, "alloc") != 0))
            __atomic_add_fetch(&counts[i], 1, __ATOMIC_SEQ_CST);
    if (!any && strcmp(class_name, kind) != 0)
        return GO_ON;
    long now = __atomic_add_fetch(&count, 1, __ATOMIC_SEQ_CST);
    if (now != at && !(for_ever && now > at))
        return GO_ON;
    report(call, path, fd);
    if (!strcmp(action, "KILL"))
        kill(getpid(), SIGKILL);
    if (!strcmp(action, "INT"))
        kill(getpid(), SIGINT);
    if (!strcmp(action, "SHORT"))
        return HALF;
    errno = error_number;
    return error_number ? FAIL : GO_ON;
}

/* What is not there cannot be opened without a fault, either. */
static int open_fault(const char *path, int flags)
{
    const int makes = (flags & O_CREAT) || (flags & O_TMPFILE) == O_TMPFILE, saved = errno;
    const int matters = path_counts(path) && (makes || faccessat(AT_FDCWD, path, F_OK, AT_SYMLINK_NOFOLLOW) == 0);
    errno = saved;
    return matters ? fault(makes ? "create" : "open", "open", path, -1) : GO_ON;
}

static int path_fault(const char *kind, const char *call, const char *path)
{
    return path_counts(path) ? fault(kind, call, path, -1) : GO_ON;
}

static int fd_fault(const char *kind, const char *call, int fd)
{
    return fd_counts(fd) ? fault(kind, call, NULL, fd) : GO_ON;
}

/* --- calls -------------------------------------------------------------------------------------------------------- */

static int takes_mode(int flags)
{
    return (flags & O_CREAT) || (flags & O_TMPFILE) == O_TMPFILE;
}

static int refuses_nameless(const char *path, int flags)
{
    if (!no_nameless || (flags & O_TMPFILE) != O_TMPFILE || !path_counts(path))
        return 0;
    errno = EOPNOTSUPP;
    return 1;
}

#define OPEN(name, ...)                                                   \
    mode_t mode = 0;                                                      \
    va_list args;                                                         \
    va_start(args, flags);                                                \
    if (takes_mode(flags))                                                \
        mode = va_arg(args, mode_t);                                      \
    va_end(args);                                                         \
    if (refuses_nameless(path, flags) || open_fault(path, flags) == FAIL) \
        return -1;                                                        \
    return REAL(name)(__VA_ARGS__)

EXPORT int open(const char *path, int flags, ...)
{
    OPEN(open, path, flags, mode);
}

EXPORT int open64(const char *path, int flags, ...)
{
    OPEN(open64, path, flags, mode);
}

EXPORT int openat(int dir, const char *path, int flags, ...)
{
    OPEN(openat, dir, path, flags, mode);
}

EXPORT int openat64(int dir, const char *path, int flags, ...)
{
    OPEN(openat64, dir, path, flags, mode);
}

EXPORT int __open_2(const char *path, int flags)
{
    return open(path, flags);
}

EXPORT int __open64_2(const char *path, int flags)
{
    return open64(path, flags);
}

/* f is the result of fd_fault(): n bytes, or fewer */
#define MOVE(call) (f == FAIL ? -1 : call)
#define SIZE(n) (f == HALF && (n) > 1 ? (n) / 2 : (n))

EXPORT ssize_t read(int fd, void *data, size_t n)
{
    int f = fd_fault("read", "read", fd);
    return MOVE(REAL(read)(fd, data, SIZE(n)));
}

EXPORT ssize_t __read_chk(int fd, void *data, size_t n, size_t room)
{
    (void)room;
    return read(fd, data, n);
}

EXPORT ssize_t pread(int fd, void *data, size_t n, off_t offset)
{
    int f = fd_fault("read", "pread", fd);
    return MOVE(REAL(pread)(fd, data, SIZE(n), offset));
}

EXPORT ssize_t pread64(int fd, void *data, size_t n, off64_t offset)
{
    return pread(fd, data, n, offset);
}

EXPORT ssize_t write(int fd, const void *data, size_t n)
{
    int f = fd_fault("write", "write", fd);
    return MOVE(REAL(write)(fd, data, SIZE(n)));
}

EXPORT ssize_t pwrite(int fd, const void *data, size_t n, off_t offset)
{
    int f = fd_fault("write", "pwrite", fd);
    return MOVE(REAL(pwrite)(fd, data, SIZE(n), offset));
}

EXPORT ssize_t pwrite64(int fd, const void *data, size_t n, off64_t offset)
{
    return pwrite(fd, data, n, offset);
}

/* one call of libc in a line: what it returns where it fails, what counts */
#define CALL(result, name, kind, subject, faulted, params, values) \
    EXPORT result name params                                      \
    {                                                              \
        if (subject##_fault(kind, #name, faulted) == FAIL)         \
            return -1;                                             \
        return REAL(name) values;                                  \
    }

CALL(int, fsync, "sync", fd, fd, (int fd), (fd))
CALL(int, fdatasync, "sync", fd, fd, (int fd), (fd))
CALL(int, close, "close", fd, fd, (int fd), (fd))
CALL(int, ftruncate, "truncate", fd, fd, (int fd, off_t size), (fd, size))
CALL(int, ftruncate64, "truncate", fd, fd, (int fd, off64_t size), (fd, size))
CALL(int, flock, "lock", fd, fd, (int fd, int how), (fd, how))
CALL(int, rename, "rename", path, to, (const char *from, const char *to), (from, to))
CALL(int, renameat, "rename", path, to, (int a, const char *from, int b, const char *to), (a, from, b, to))
CALL(int, link, "link", path, to, (const char *from, const char *to), (from, to))
CALL(int, linkat, "link", path, to, (int a, const char *from, int b, const char *to, int how), (a, from, b, to, how))
CALL(int, unlink, "unlink", path, path, (const char *path), (path))
CALL(int, unlinkat, "unlink", path, path, (int dir, const char *path, int how), (dir, path, how))
CALL(int, mkdir, "folder", path, path, (const char *path, mode_t mode), (path, mode))

/* --- memory ------------------------------------------------------------------------------------------------------- */

static int is_own(const void *caller)
{
    return at && (uintptr_t)caller >= text_start && (uintptr_t)caller < text_end;
}

static int no_memory(const char *kind, const char *call, const void *caller)
{
    return is_own(caller) && fault(kind, call, "", -1) == FAIL;
}

static void *map(void *start_at, size_t n, int protection, int flags, int fd, off_t offset, const void *caller)
{
    if ((fd >= 0 ? fd_counts(fd) : is_own(caller)) && fault("map", "mmap", NULL, fd) == FAIL)
        return MAP_FAILED;
    return (void *)syscall(SYS_mmap, start_at, n, protection, flags, fd, offset);
}

EXPORT void *mmap(void *start_at, size_t n, int protection, int flags, int fd, off_t offset)
{
    return map(start_at, n, protection, flags, fd, offset, __builtin_return_address(0));
}

EXPORT void *mmap64(void *start_at, size_t n, int protection, int flags, int fd, off64_t offset)
{
    return map(start_at, n, protection, flags, fd, offset, __builtin_return_address(0));
}

EXPORT void *malloc(size_t n)
{
    return no_memory("alloc", "malloc", __builtin_return_address(0)) ? NULL : __libc_malloc(n);
}

EXPORT void *calloc(size_t n, size_t size)
{
    return no_memory("alloc", "calloc", __builtin_return_address(0)) ? NULL : __libc_calloc(n, size);
}

EXPORT void *aligned_alloc(size_t align, size_t n)
{
    return no_memory("alloc", "aligned_alloc", __builtin_return_address(0)) ? NULL : REAL(aligned_alloc)(align, n);
}

EXPORT int posix_memalign(void **p, size_t align, size_t n)
{
    if (no_memory("alloc", "posix_memalign", __builtin_return_address(0)))
        return ENOMEM;
    return REAL(posix_memalign)(p, align, n);
}
