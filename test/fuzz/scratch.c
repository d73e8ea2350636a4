#include "scratch.h"

#include <sys/mman.h>
#include <unistd.h>

struct Scratch {
    int fd;
    char *path;
};

Scratch *scratch_new(const uint8_t *data, size_t size)
{
    Scratch *s = g_new0(Scratch, 1);
    s->fd = memfd_create("scratch", MFD_CLOEXEC);
    s->path = g_strdup_printf("/proc/self/fd/%d", s->fd);
    if (s->fd < 0 || write(s->fd, data, size) != (ssize_t)size)
        g_error("no scratch file of %zu bytes", size);
    return s;
}

const char *scratch_path(const Scratch *s)
{
    return s->path;
}

void scratch_free(Scratch *s)
{
    close(s->fd);
    g_free(s->path);
    g_free(s);
}
