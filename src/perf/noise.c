#include "perf/noise.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

static char *slurp(const char *root, const char *path)
{
    char *text = NULL;
    g_autofree char *full = g_strconcat(root ? root : "", path, NULL);
    g_file_get_contents(full, &text, NULL, NULL);
    return text;
}

/* /proc/self/task/N/schedstat: "time on a CPU, time ready without one (both ns), number of times it was given one" */
static double waiting_ms(const char *root)
{
    double sum = 0, ran = 0;
    g_autofree char *folder = g_strconcat(root ? root : "", "/proc/self/task", NULL);
    g_autoptr(GDir) dir = g_dir_open(folder, 0, NULL);
    const char *name;
    while (dir && (name = g_dir_read_name(dir))) {
        g_autofree char *path = g_strdup_printf("/proc/self/task/%s/schedstat", name);
        g_autofree char *text = slurp(root, path);
        char *end = NULL;
        if (!text)
            continue;
        ran += g_ascii_strtod(text, &end);
        sum += g_ascii_strtod(end, NULL);
    }
    return ran > 0 ? sum * 1e-6 : NAN; /* a kernel that does not count writes zeros */
}

/* The number behind key in "key value" lines; NaN where it is missing. */
static double field(const char *text, const char *key)
{
    gsize n = strlen(key);
    for (const char *p = text; p; p = strchr(p, '\n')) {
        p += *p == '\n';
        if (!strncmp(p, key, n) && p[n] == ' ')
            return g_ascii_strtod(p + n, NULL);
    }
    return NAN;
}

/* Time that the control group's quota took, as seen from inside a container or in the group's own folder. */
static double throttled_ms(const char *root)
{
    g_autofree char *groups = slurp(root, "/proc/self/cgroup");
    g_auto(GStrv) lines = g_strsplit(groups ? groups : "", "\n", -1);
    for (int i = 0; lines[i]; i++) {
        g_auto(GStrv) part = g_strsplit(lines[i], ":", 3);
        if (g_strv_length(part) < 3)
            continue;
        gboolean v2 = !*part[1];
        g_auto(GStrv) controllers = g_strsplit(part[1], ",", -1);
        if (!v2 && !g_strv_contains((const char *const *)controllers, "cpu"))
            continue;
        const char *top = v2 ? "/sys/fs/cgroup" : "/sys/fs/cgroup/cpu";
        const char *const folders[] = { part[2], "" };
        for (gsize k = 0; k < G_N_ELEMENTS(folders); k++) {
            g_autofree char *path = g_strconcat(top, folders[k], "/cpu.stat", NULL);
            g_autofree char *text = slurp(root, path);
            double t = v2 ? field(text, "throttled_usec") * 1e-3 : field(text, "throttled_time") * 1e-6;
            if (!isnan(t))
                return t;
        }
    }
    return NAN;
}

void hn_noise_mark(const char *root, HnNoiseMark *mark)
{
    *mark =
        (HnNoiseMark){ .waiting_ms = waiting_ms(root), .throttled_ms = throttled_ms(root), .mhz = hn_cpu_mhz(root) };
    mark->has_stat = hn_cpu_stat(root, &mark->stat);
    hn_usage_read(&mark->usage);
    mark->cpu = hn_process_cpu_ns();
    mark->now = hn_now_ns();
}

void hn_noise_between(const HnNoiseMark *before, const HnNoiseMark *after, HnNoise *noise)
{
    const HnUsage *a = &before->usage, *b = &after->usage;
    double tick_ms = 1000.0 / (double)MAX(sysconf(_SC_CLK_TCK), 1);
    *noise = (HnNoise){
        .wall_ms = (double)(after->now - before->now) * 1e-6,
        .cpu_ms = (double)(after->cpu - before->cpu) * 1e-6,
        .steal_ms = NAN,
        /* a thread that has ended took its waiting with it */
        .waiting_ms = fmax(after->waiting_ms - before->waiting_ms, 0),
        .throttled_ms = after->throttled_ms - before->throttled_ms,
        .mhz_before = before->mhz,
        .mhz_after = after->mhz,
        .minor_faults = (gint64)(b->minor_faults - a->minor_faults),
        .major_faults = (gint64)(b->major_faults - a->major_faults),
        .waits = (gint64)(b->waits - a->waits),
        .preemptions = (gint64)(b->preemptions - a->preemptions),
        .migrations = a->migrations < 0 || b->migrations < 0 ? -1 : b->migrations - a->migrations,
    };
    if (isnan(before->waiting_ms) || isnan(after->waiting_ms))
        noise->waiting_ms = NAN;
    if (before->has_stat && after->has_stat)
        noise->steal_ms = (double)(after->stat.steal - before->stat.steal) * tick_ms;
}

const char **hn_noise_causes(const HnNoise *n)
{
    GPtrArray *out = g_ptr_array_new();
    double least = 0.01 * n->wall_ms;
    if (n->steal_ms > least)
        g_ptr_array_add(out, (gpointer) "steal");
    if (n->throttled_ms > least)
        g_ptr_array_add(out, (gpointer) "quota");
    if (n->waiting_ms > least)
        g_ptr_array_add(out, (gpointer) "waiting");
    if (n->major_faults > 0)
        g_ptr_array_add(out, (gpointer) "page faults");
    if (fabs(n->mhz_after - n->mhz_before) > 0.02 * n->mhz_before)
        g_ptr_array_add(out, (gpointer) "clock");
    g_ptr_array_add(out, NULL);
    return (const char **)g_ptr_array_free(out, FALSE);
}
