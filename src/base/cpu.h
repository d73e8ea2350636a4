/*
 * What the machine has, and how much of it this process may use.
 *
 * Functions with a root argument read the files of /proc and /sys below it: NULL for the real ones, a folder in tests.
 */
#pragma once

#include <glib.h>

G_BEGIN_DECLS

/* Behind the names in a target attribute: vectors of 512 bits for what compilers make of loops. */
#ifdef __clang__ /* knows no such preference in an attribute */
#define HN_WIDE
#else
#define HN_WIDE ",prefer-vector-width=512"
#endif

/* Each level includes those before it. */
typedef enum {
    HN_ISA_NONE,   /* plain C */
    HN_ISA_AVX2,   /* with FMA and F16C */
    HN_ISA_AVX512, /* F, BW, DQ, VL */
    HN_ISA_VNNI,   /* 8-bit dot products on 512 bits */
    HN_ISA_BF16,   /* dot products of pairs of bf16 on 512 bits */
    HN_ISA_AMX,    /* tiles for bf16 and int8 */
} HnIsa;

#define HN_ISA_NAMES "none, avx2, avx512, vnni, bf16, amx"

HnIsa hn_cpu_machine_isa(void);
const char *hn_cpu_isa_name(HnIsa isa); /* "none", "avx2", ... */
gboolean hn_cpu_isa_parse(const char *name, HnIsa *isa);

/* machine capped by the name cap (NULL: not capped); an unknown name is HN_ERROR_USAGE */
gboolean hn_cpu_cap_isa(HnIsa machine, const char *cap, HnIsa *isa, GError **error);

/* The level to use: the machine's, capped by the environment variable HONE_MAX_ISA, which is read once, and by the
 * calling thread's limit. A value that means nothing caps nothing; tools call hn_cpu_check_env() at their start to
 * refuse it. */
HnIsa hn_cpu_isa(void);
gboolean hn_cpu_check_env(GError **error);
/* From now on the calling thread, and the regions that it runs (base/team.h), use none above `most`. Returns what was
 * before, to be set again. */
HnIsa hn_cpu_limit_isa(HnIsa most);
/* The lowest level that any thread was limited to so far, or hn_cpu_isa()'s: what libraries are opened with whose level
 * is one of the process. */
HnIsa hn_cpu_lowest_isa(void);

char *hn_cpu_model(const char *root); /* "Intel(R) Xeon(R) ...", "unknown" */

int hn_cpu_affinity(void);             /* CPUs that the scheduler may give us, at least 1 */
double hn_cpu_quota(const char *root); /* CPUs' worth of time of the tightest control group, 0: no quota */
int hn_cpu_threads(const char *root);  /* min(affinity, quota rounded up), at least 1 */

double hn_cpu_mhz(const char *root); /* mean present clock, NaN: the machine does not say */
/* How clocks are chosen: "performance", or several names with commas; NULL: the machine does not say. g_free. */
char *hn_cpu_governor(const char *root);
double
hn_cpu_load(const char *root); /* mean number of threads that ran or wanted to in the last minute, NaN: unknown */

/* All CPUs' time since boot, in ticks (usually 10 ms). FALSE: not known. */
typedef struct {
    guint64 total;
    guint64 idle;
    guint64 steal; /* taken by the hypervisor */
} HnCpuStat;

gboolean hn_cpu_stat(const char *root, HnCpuStat *stat);

G_END_DECLS
