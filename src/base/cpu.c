#include "base/cpu.h"

#include <math.h>
#include <sched.h>
#include <string.h>
#include <unistd.h>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include "base/error.h"
#include "base/thread_local.h"

static const char *const isa_names[] = {
    [HN_ISA_NONE] = "none", [HN_ISA_AVX2] = "avx2", [HN_ISA_AVX512] = "avx512",
    [HN_ISA_VNNI] = "vnni", [HN_ISA_BF16] = "bf16", [HN_ISA_AMX] = "amx",
};

#if defined(__x86_64__)
/* clang 14 has no names for these: CPUID leaf 1, and leaf 7 with state bits 17 and 18 that the kernel must have enabled
 */
static gboolean has_f16c(void)
{
    unsigned a, b, c, d;
    return __get_cpuid(1, &a, &b, &c, &d) && (c & 1u << 29);
}

static gboolean has_amx(void)
{
    unsigned a, b, c, d, low, high;
    const unsigned bf16 = 1u << 22, tile = 1u << 24, int8 = 1u << 25, state = 3u << 17;
    if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || (d & (bf16 | tile | int8)) != (bf16 | tile | int8))
        return FALSE;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return (low & state) == state;
}
#endif

/* The compiler's own detection also asks whether the kernel saves the registers. */
HnIsa hn_cpu_machine_isa(void)
{
#if defined(__x86_64__)
    __builtin_cpu_init();
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma") || !has_f16c())
        return HN_ISA_NONE;
    if (!__builtin_cpu_supports("avx512f") || !__builtin_cpu_supports("avx512bw") ||
        !__builtin_cpu_supports("avx512dq") || !__builtin_cpu_supports("avx512vl"))
        return HN_ISA_AVX2;
    if (!__builtin_cpu_supports("avx512vnni"))
        return HN_ISA_AVX512;
    if (!__builtin_cpu_supports("avx512bf16"))
        return HN_ISA_VNNI;
    return has_amx() ? HN_ISA_AMX : HN_ISA_BF16;
#else
    return HN_ISA_NONE;
#endif
}

const char *hn_cpu_isa_name(HnIsa isa)
{
    return isa_names[isa];
}

gboolean hn_cpu_isa_parse(const char *name, HnIsa *isa)
{
    for (gsize i = 0; i < G_N_ELEMENTS(isa_names); i++)
        if (!strcmp(name, isa_names[i])) {
            *isa = (HnIsa)i;
            return TRUE;
        }
    return FALSE;
}

gboolean hn_cpu_cap_isa(HnIsa machine, const char *cap, HnIsa *isa, GError **error)
{
    if (!cap || !*cap) {
        *isa = machine;
        return TRUE;
    }
    HnIsa most;
    if (hn_cpu_isa_parse(cap, &most)) {
        *isa = MIN(machine, most);
        return TRUE;
    }
    g_set_error(error, HN_ERROR, HN_ERROR_USAGE, "HONE_MAX_ISA is '%s', not one of " HN_ISA_NAMES, cap);
    return FALSE;
}

static HN_THREAD_LOCAL HnIsa limit = HN_ISA_AMX;
static gint lowest = HN_ISA_AMX; /* of all limits; atomic */

static HnIsa process_isa(void)
{
    static gsize once; /* level + 1 */
    if (g_once_init_enter(&once)) {
        HnIsa machine = hn_cpu_machine_isa(), isa = machine;
        hn_cpu_cap_isa(machine, g_getenv("HONE_MAX_ISA"), &isa, NULL);
        g_once_init_leave(&once, (gsize)isa + 1);
    }
    return (HnIsa)(once - 1);
}

HnIsa hn_cpu_isa(void)
{
    const HnIsa process = process_isa();
    return MIN(process, limit);
}

HnIsa hn_cpu_limit_isa(HnIsa most)
{
    const HnIsa before = limit;
    limit = most;
    gint seen = g_atomic_int_get(&lowest);
    while ((gint)most < seen && !g_atomic_int_compare_and_exchange(&lowest, seen, (gint)most))
        seen = g_atomic_int_get(&lowest);
    return before;
}

HnIsa hn_cpu_lowest_isa(void)
{
    const HnIsa process = process_isa(), least = (HnIsa)g_atomic_int_get(&lowest);
    return MIN(process, least);
}

gboolean hn_cpu_check_env(GError **error)
{
    HnIsa isa;
    return hn_cpu_cap_isa(HN_ISA_AMX, g_getenv("HONE_MAX_ISA"), &isa, error);
}

/* text of a small file below root, NULL where it cannot be read */
static char *slurp(const char *root, const char *path)
{
    g_autofree char *full = g_strconcat(root ? root : "", path, NULL);
    char *text = NULL;
    g_file_get_contents(full, &text, NULL, NULL);
    return text;
}

/* "model name      : Intel..." in /proc/cpuinfo: the value, stripped; NULL where it is missing */
static char *cpuinfo_value(const char *line, const char *key)
{
    const char *colon = strchr(line, ':');
    if (!g_str_has_prefix(line, key) || !colon)
        return NULL;
    for (const char *p = line + strlen(key); p < colon; p++)
        if (!g_ascii_isspace(*p))
            return NULL;
    return g_strstrip(g_strdup(colon + 1));
}

char *hn_cpu_model(const char *root)
{
    g_autofree char *text = slurp(root, "/proc/cpuinfo");
    g_auto(GStrv) lines = g_strsplit(text ? text : "", "\n", -1);
    for (int i = 0; lines[i]; i++) {
        char *value = cpuinfo_value(lines[i], "model name");
        if (value)
            return value;
    }
    return g_strdup("unknown");
}

double hn_cpu_mhz(const char *root)
{
    double sum = 0;
    int n = 0;
    g_autofree char *text = slurp(root, "/proc/cpuinfo");
    g_auto(GStrv) lines = g_strsplit(text ? text : "", "\n", -1);
    for (int i = 0; lines[i]; i++) {
        g_autofree char *value = cpuinfo_value(lines[i], "cpu MHz");
        if (value) {
            sum += g_ascii_strtod(value, NULL);
            n++;
        }
    }
    return n && sum > 0 ? sum / n : NAN;
}

static gint by_name(gconstpointer a, gconstpointer b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

#define POLICIES "/sys/devices/system/cpu/cpufreq"

char *hn_cpu_governor(const char *root)
{
    g_autofree char *folder = g_strconcat(root ? root : "", POLICIES, NULL);
    g_autoptr(GDir) dir = g_dir_open(folder, 0, NULL);
    g_autoptr(GPtrArray) names = g_ptr_array_new_with_free_func(g_free);
    for (const char *policy = dir ? g_dir_read_name(dir) : NULL; policy; policy = g_dir_read_name(dir)) {
        g_autofree char *path = g_strconcat(POLICIES, "/", policy, "/scaling_governor", NULL);
        char *name = slurp(root, path);
        if (name && *g_strstrip(name) && !g_ptr_array_find_with_equal_func(names, name, g_str_equal, NULL))
            g_ptr_array_add(names, name);
        else
            g_free(name);
    }
    g_ptr_array_sort(names, by_name);
    g_ptr_array_add(names, NULL);
    return names->len > 1 ? g_strjoinv(",", (char **)names->pdata) : NULL;
}

double hn_cpu_load(const char *root)
{
    g_autofree char *text = slurp(root, "/proc/loadavg");
    char *end = text;
    const double load = text ? g_ascii_strtod(text, &end) : NAN;
    return end != text ? load : NAN;
}

gboolean hn_cpu_stat(const char *root, HnCpuStat *stat)
{
    g_autofree char *text = slurp(root, "/proc/stat");
    if (!text || !g_str_has_prefix(text, "cpu "))
        return FALSE;
    /* user nice system idle iowait irq softirq steal; guest times are already in user and nice */
    guint64 field[8] = { 0 };
    char *p = text + 4;
    for (gsize i = 0; i < G_N_ELEMENTS(field) && *p && *p != '\n'; i++)
        field[i] = g_ascii_strtoull(p, &p, 10);
    *stat = (HnCpuStat){ .idle = field[3] + field[4], .steal = field[7] };
    for (gsize i = 0; i < G_N_ELEMENTS(field); i++)
        stat->total += field[i];
    return TRUE;
}

int hn_cpu_affinity(void)
{
    /* a fixed cpu_set_t ends at 1024 CPUs, and the call fails where the kernel's mask is longer */
    for (int cpus = 1024; cpus <= 1024 * 64; cpus *= 4) {
        cpu_set_t *set = CPU_ALLOC((size_t)cpus);
        size_t size = CPU_ALLOC_SIZE((size_t)cpus);
        if (!set)
            break;
        CPU_ZERO_S(size, set);
        int n = sched_getaffinity(0, size, set) == 0 ? CPU_COUNT_S(size, set) : 0;
        CPU_FREE(set);
        if (n > 0)
            return n;
    }
    return (int)MAX(sysconf(_SC_NPROCESSORS_ONLN), 1);
}

/* Where a control group hierarchy is mounted, and which group of it is that mount's root. */
typedef struct {
    char *point;
    char *root;
} Mount;

/* One line of /proc/self/mountinfo: "36 35 0:31 /root /point opts ... - type source superopts". */
static gboolean parse_mount(const char *line, gboolean v2, Mount *mount)
{
    const char *dash = strstr(line, " - ");
    g_auto(GStrv) left = g_strsplit(line, " ", 6);
    if (!dash || g_strv_length(left) < 6)
        return FALSE;
    g_auto(GStrv) right = g_strsplit(dash + 3, " ", 3);
    if (g_strv_length(right) < 3 || strcmp(right[0], v2 ? "cgroup2" : "cgroup") != 0)
        return FALSE;
    g_auto(GStrv) options = g_strsplit(right[2], ",", -1);
    if (!v2 && !g_strv_contains((const char *const *)options, "cpu"))
        return FALSE;
    mount->root = g_strcompress(left[3]); /* blanks are written \040 */
    mount->point = g_strcompress(left[4]);
    return TRUE;
}

/* The group that /proc/self/cgroup names: "0::/a/b" for version 2, "4:cpu,cpuacct:/a/b" for version 1. */
static char *own_group(const char *groups, gboolean v2)
{
    g_auto(GStrv) lines = g_strsplit(groups, "\n", -1);
    for (int i = 0; lines[i]; i++) {
        g_auto(GStrv) part = g_strsplit(lines[i], ":", 3);
        if (g_strv_length(part) < 3)
            continue;
        g_auto(GStrv) controllers = g_strsplit(part[1], ",", -1);
        if (v2 ? !strcmp(part[0], "0") && !*part[1] : g_strv_contains((const char *const *)controllers, "cpu"))
            return g_strdup(part[2]);
    }
    return NULL;
}

/* CPUs allowed by the files of one group's folder, 0: no quota there */
static double folder_quota(const char *root, const char *folder, gboolean v2)
{
    double quota = 0, period = 0;
    if (v2) {
        g_autofree char *path = g_strconcat(folder, "/cpu.max", NULL);
        g_autofree char *text = slurp(root, path);
        char *end = NULL;
        if (text && g_ascii_isdigit(*text)) { /* "150000 100000", or "max 100000" */
            quota = g_ascii_strtod(text, &end);
            period = g_ascii_strtod(end, NULL);
        }
    } else {
        g_autofree char *quota_path = g_strconcat(folder, "/cpu.cfs_quota_us", NULL);
        g_autofree char *period_path = g_strconcat(folder, "/cpu.cfs_period_us", NULL);
        g_autofree char *quota_text = slurp(root, quota_path), *period_text = slurp(root, period_path);
        quota = quota_text ? g_ascii_strtod(quota_text, NULL) : 0; /* -1: none */
        period = period_text ? g_ascii_strtod(period_text, NULL) : 0;
    }
    return quota > 0 && period > 0 ? quota / period : 0;
}

/* tightest quota of a group and all its ancestors up to the mount point */
static double hierarchy_quota(const char *root, const Mount *mount, const char *group, gboolean v2)
{
    /* inside a container the group may be named from outside it: cut what the mount hides */
    const char *below = group;
    gsize n = strlen(mount->root);
    if (n > 1)
        below = !strncmp(group, mount->root, n) && (!group[n] || group[n] == '/') ? group + n : "";
    if (strstr(below, "/.."))
        below = "";
    g_autofree char *folder = g_strconcat(strcmp(mount->point, "/") ? mount->point : "", below, NULL);
    gsize top = strlen(folder) - strlen(below);
    double least = 0;
    for (;;) {
        gsize len = strlen(folder);
        while (len > top && folder[len - 1] == '/')
            folder[--len] = 0;
        double quota = folder_quota(root, folder, v2);
        if (quota > 0 && (least == 0 || quota < least))
            least = quota;
        if (len <= top)
            return least;
        *strrchr(folder, '/') = 0;
    }
}

double hn_cpu_quota(const char *root)
{
    g_autofree char *groups = slurp(root, "/proc/self/cgroup");
    g_autofree char *mounts = slurp(root, "/proc/self/mountinfo");
    g_auto(GStrv) lines = g_strsplit(mounts ? mounts : "", "\n", -1);
    double least = 0;
    for (int v2 = 0; v2 <= 1 && groups; v2++) {
        g_autofree char *group = own_group(groups, v2);
        for (int i = 0; group && lines[i]; i++) {
            Mount mount;
            if (!parse_mount(lines[i], v2, &mount))
                continue;
            double quota = hierarchy_quota(root, &mount, group, v2);
            if (quota > 0 && (least == 0 || quota < least))
                least = quota;
            g_free(mount.point);
            g_free(mount.root);
        }
    }
    return least;
}

int hn_cpu_threads(const char *root)
{
    int cpus = hn_cpu_affinity();
    double quota = hn_cpu_quota(root);
    return quota > 0 && quota < cpus ? (int)MAX(ceil(quota), 1) : cpus;
}
