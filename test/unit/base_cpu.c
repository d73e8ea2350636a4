/* What the machine grants: instruction sets and their cap, quotas of control groups read from made-up folders. */
#include <glib/gstdio.h>
#include <math.h>
#include <string.h>

#include "base/cpu.h"
#include "base/error.h"

/* A made-up root with files given as path, text, ..., NULL. */
static char *root_new(const char *first, ...)
{
    char *root = g_dir_make_tmp("hone-cpu-XXXXXX", NULL);
    va_list args;
    va_start(args, first);
    for (const char *path = first; path; path = va_arg(args, const char *)) {
        const char *text = va_arg(args, const char *);
        g_autofree char *full = g_build_filename(root, path, NULL);
        g_autofree char *folder = g_path_get_dirname(full);
        g_assert_cmpint(g_mkdir_with_parents(folder, 0700), ==, 0);
        g_assert_true(g_file_set_contents(full, text, -1, NULL));
    }
    va_end(args);
    return root;
}

static void remove_tree(const char *path)
{
    g_autoptr(GDir) dir = g_dir_open(path, 0, NULL);
    const char *name;
    while (dir && (name = g_dir_read_name(dir))) {
        g_autofree char *full = g_build_filename(path, name, NULL);
        remove_tree(full);
    }
    g_remove(path);
}

static void test_governor(void)
{
#define POLICY "sys/devices/system/cpu/cpufreq/policy"
    char *root = root_new(POLICY "0/scaling_governor", "powersave\n", POLICY "1/scaling_governor", "performance\n",
                          POLICY "2/scaling_governor", "powersave\n", "proc/loadavg", "1.25 0.5 0.1 1/2 3\n", NULL);
    g_autofree char *names = hn_cpu_governor(root), *none = hn_cpu_governor("/nowhere");
    g_assert_cmpstr(names, ==, "performance,powersave");
    g_assert_null(none);
    g_assert_cmpfloat(hn_cpu_load(root), ==, 1.25);
    g_assert_true(isnan(hn_cpu_load("/nowhere")));
    remove_tree(root);
    g_free(root);
}

static void expect_quota(char *root, double quota)
{
    g_assert_cmpfloat(hn_cpu_quota(root), ==, quota);
    int threads = hn_cpu_threads(root);
    g_assert_cmpint(threads, >=, 1);
    g_assert_cmpint(threads, <=, hn_cpu_affinity());
    if (quota > 0)
        g_assert_cmpint(threads, <=, (int)ceil(quota));
    remove_tree(root);
    g_free(root);
}

#define V2_MOUNT "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n"

static void test_quota_v2(void)
{
    expect_quota(root_new("proc/self/cgroup", "0::/a/b\n", "proc/self/mountinfo", V2_MOUNT, "sys/fs/cgroup/a/b/cpu.max",
                          "250000 100000\n", NULL),
                 2.5);
    /* an ancestor is tighter */
    expect_quota(root_new("proc/self/cgroup", "0::/a/b/c\n", "proc/self/mountinfo", V2_MOUNT,
                          "sys/fs/cgroup/a/b/c/cpu.max", "max 100000\n", "sys/fs/cgroup/a/b/cpu.max", "400000 100000\n",
                          "sys/fs/cgroup/a/cpu.max", "50000 100000\n", NULL),
                 0.5);
    expect_quota(root_new("proc/self/cgroup", "0::/\n", "proc/self/mountinfo", V2_MOUNT, "sys/fs/cgroup/cpu.max",
                          "150000 100000\n", NULL),
                 1.5);
    expect_quota(root_new("proc/self/cgroup", "0::/a\n", "proc/self/mountinfo", V2_MOUNT, "sys/fs/cgroup/a/cpu.max",
                          "max 100000\n", NULL),
                 0);
    /* the container sees its own group as the mount's root, yet is named from outside */
    expect_quota(root_new("proc/self/cgroup", "0::/docker/x\n", "proc/self/mountinfo",
                          "30 23 0:26 /docker/x /sys/fs/cgroup ro - cgroup2 cgroup rw\n", "sys/fs/cgroup/cpu.max",
                          "300000 100000\n", NULL),
                 3);
    expect_quota(root_new("proc/self/cgroup", "0::/../..\n", "proc/self/mountinfo", V2_MOUNT, "sys/fs/cgroup/cpu.max",
                          "100000 100000\n", NULL),
                 1);
}

static void test_quota_v1(void)
{
    const char *mounts = "31 25 0:27 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
                         "32 25 0:28 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n";
    expect_quota(root_new("proc/self/cgroup", "5:cpuset:/x\n4:cpu,cpuacct:/a/b\n1:name=systemd:/s\n",
                          "proc/self/mountinfo", mounts, "sys/fs/cgroup/cpu,cpuacct/a/b/cpu.cfs_quota_us", "-1\n",
                          "sys/fs/cgroup/cpu,cpuacct/a/b/cpu.cfs_period_us", "100000\n",
                          "sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_quota_us", "75000\n",
                          "sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_period_us", "50000\n", NULL),
                 1.5);
    /* blanks in a mount point are written as octal */
    expect_quota(root_new("proc/self/cgroup", "4:cpu:/\n", "proc/self/mountinfo",
                          "31 25 0:27 / /my\\040groups rw - cgroup cgroup rw,cpu\n", "my groups/cpu.cfs_quota_us",
                          "200000\n", "my groups/cpu.cfs_period_us", "100000\n", NULL),
                 2);
}

static void test_quota_odd(void)
{
    expect_quota(root_new("nothing", "", NULL), 0);
    expect_quota(root_new("proc/self/cgroup", "0::/a\n", NULL), 0);
    expect_quota(root_new("proc/self/cgroup", "garbage\n::\n0::\n", "proc/self/mountinfo", "1 2\n - cgroup2\n" V2_MOUNT,
                          "sys/fs/cgroup/cpu.max", "0 0\n", NULL),
                 0);
    expect_quota(root_new("proc/self/cgroup", "0::/a\n", "proc/self/mountinfo", V2_MOUNT, "sys/fs/cgroup/a/cpu.max",
                          "100000\n", NULL),
                 0);
}

static void test_isa(void)
{
    HnIsa isa = HN_ISA_AMX;
    g_autoptr(GError) error = NULL;
    g_assert_true(hn_cpu_cap_isa(HN_ISA_VNNI, NULL, &isa, &error) && isa == HN_ISA_VNNI);
    g_assert_true(hn_cpu_cap_isa(HN_ISA_VNNI, "avx2", &isa, &error) && isa == HN_ISA_AVX2);
    g_assert_true(hn_cpu_cap_isa(HN_ISA_AVX2, "amx", &isa, &error) && isa == HN_ISA_AVX2);
    g_assert_true(hn_cpu_cap_isa(HN_ISA_AMX, "none", &isa, &error) && isa == HN_ISA_NONE);
    isa = HN_ISA_AMX;
    g_assert_false(hn_cpu_cap_isa(HN_ISA_AVX2, "AVX3", &isa, &error));
    g_assert_error(error, HN_ERROR, HN_ERROR_USAGE);
    g_assert_cmpint(isa, ==, HN_ISA_AMX);
    g_assert_cmpint(hn_cpu_isa(), <=, hn_cpu_machine_isa());
    for (int i = HN_ISA_NONE; i <= HN_ISA_AMX; i++)
        g_assert_true(hn_cpu_cap_isa(HN_ISA_AMX, hn_cpu_isa_name((HnIsa)i), &isa, NULL) && (int)isa == i);
}

static gpointer level_of_another(gpointer data)
{
    (void)data;
    return GINT_TO_POINTER(hn_cpu_isa());
}

static void test_limit(void)
{
    const HnIsa all = hn_cpu_isa();
    const HnIsa before = hn_cpu_limit_isa(HN_ISA_NONE);
    g_assert_cmpint(before, >=, all);
    g_assert_cmpint(hn_cpu_isa(), ==, HN_ISA_NONE);
    GThread *other = g_thread_new("other", level_of_another, NULL);
    g_assert_cmpint(GPOINTER_TO_INT(g_thread_join(other)), ==, all);
    g_assert_cmpint(hn_cpu_limit_isa(before), ==, HN_ISA_NONE);
    g_assert_cmpint(hn_cpu_isa(), ==, all);
    g_assert_cmpint(hn_cpu_lowest_isa(), ==, HN_ISA_NONE); /* for what is opened once */
}

static void test_readings(void)
{
    char *root = root_new("proc/cpuinfo",
                          "processor\t: 0\nmodel name\t: A Chip @ 2GHz\ncpu MHz\t\t: 2000.000\n\nprocessor\t: 1\n"
                          "model name\t: A Chip @ 2GHz\ncpu MHz\t\t: 3000.000\n",
                          "proc/stat", "cpu  10 20 30 40 50 60 70 80 5 6\ncpu0 1 2 3\n", NULL);
    g_autofree char *model = hn_cpu_model(root);
    HnCpuStat stat;
    g_assert_cmpstr(model, ==, "A Chip @ 2GHz");
    g_assert_cmpfloat(hn_cpu_mhz(root), ==, 2500);
    g_assert_true(hn_cpu_stat(root, &stat));
    g_assert_cmpuint(stat.total, ==, 360);
    g_assert_cmpuint(stat.idle, ==, 90);
    g_assert_cmpuint(stat.steal, ==, 80);
    remove_tree(root);
    g_free(root);

    root = root_new("proc/stat", "intr 5\n", NULL);
    g_autofree char *unknown = hn_cpu_model(root);
    g_assert_cmpstr(unknown, ==, "unknown");
    g_assert_true(isnan(hn_cpu_mhz(root)));
    g_assert_false(hn_cpu_stat(root, &stat));
    remove_tree(root);
    g_free(root);

    g_assert_cmpint(hn_cpu_affinity(), >=, 1);
    g_assert_cmpint(hn_cpu_threads(NULL), >=, 1);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/base/cpu/quota-v2", test_quota_v2);
    g_test_add_func("/base/cpu/quota-v1", test_quota_v1);
    g_test_add_func("/base/cpu/quota-odd", test_quota_odd);
    g_test_add_func("/base/cpu/isa", test_isa);
    g_test_add_func("/base/cpu/limit", test_limit);
    g_test_add_func("/base/cpu/readings", test_readings);
    g_test_add_func("/base/cpu/governor", test_governor);
    return g_test_run();
}
