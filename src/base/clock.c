#include "base/clock.h"

#include <fcntl.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

static guint64 clock_ns(clockid_t id)
{
    struct timespec t;
    if (clock_gettime(id, &t) != 0)
        return 0;
    return (guint64)t.tv_sec * 1000000000u + (guint64)t.tv_nsec;
}

guint64 hn_now_ns(void)
{
    return clock_ns(CLOCK_MONOTONIC);
}

guint64 hn_thread_cpu_ns(void)
{
    return clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

guint64 hn_process_cpu_ns(void)
{
    return clock_ns(CLOCK_PROCESS_CPUTIME_ID);
}

void hn_sleep_ns(guint64 ns)
{
    struct timespec t = { .tv_sec = (time_t)(ns / 1000000000u), .tv_nsec = (long)(ns % 1000000000u) };
    nanosleep(&t, NULL);
}

/* "VmRSS:     1234 kB" lines: the number after the key, in bytes; 0 where it is missing */
static guint64 kb_field(const char *text, const char *key)
{
    gsize n = strlen(key);
    for (const char *p = text; p; p = strchr(p, '\n')) {
        p += *p == '\n';
        if (!strncmp(p, key, n) && p[n] == ':')
            return g_ascii_strtoull(p + n + 1, NULL, 10) * 1024;
    }
    return 0;
}

gboolean hn_mem_read(HnMem *mem)
{
    g_autofree char *text = NULL;
    *mem = (HnMem){ 0 };
    if (!g_file_get_contents("/proc/self/status", &text, NULL, NULL))
        return FALSE;
    mem->rss = kb_field(text, "VmRSS");
    mem->peak_rss = kb_field(text, "VmHWM");
    mem->anon = kb_field(text, "RssAnon");
    mem->file = kb_field(text, "RssFile");
    mem->shmem = kb_field(text, "RssShmem");
    return mem->rss > 0;
}

guint64 hn_mem_private(void)
{
    g_autofree char *text = NULL;
    if (!g_file_get_contents("/proc/self/smaps_rollup", &text, NULL, NULL))
        return 0;
    return kb_field(text, "Anonymous");
}

guint64 hn_mem_available(void)
{
    g_autofree char *text = NULL;
    return g_file_get_contents("/proc/meminfo", &text, NULL, NULL) ? kb_field(text, "MemAvailable") : 0;
}

gboolean hn_mem_reset_peak(void)
{
    int fd = open("/proc/self/clear_refs", O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return FALSE;
    gboolean ok = write(fd, "5", 1) == 1;
    close(fd);
    return ok;
}

void hn_usage_read(HnUsage *usage)
{
    struct rusage r = { 0 };
    g_autofree char *text = NULL;
    getrusage(RUSAGE_SELF, &r);
    *usage = (HnUsage){
        .minor_faults = (guint64)r.ru_minflt,
        .major_faults = (guint64)r.ru_majflt,
        .waits = (guint64)r.ru_nvcsw,
        .preemptions = (guint64)r.ru_nivcsw,
        .migrations = -1,
    };
    /* "se.nr_migrations       :       12" */
    if (g_file_get_contents("/proc/self/sched", &text, NULL, NULL)) {
        const char *p = strstr(text, "nr_migrations");
        p = p ? strchr(p, ':') : NULL;
        if (p)
            usage->migrations = g_ascii_strtoll(p + 1, NULL, 10);
    }
}
