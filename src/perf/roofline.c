#include "perf/roofline.h"

#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "base/cpu.h"
#include "base/file.h"
#include "base/team.h"

#if defined __x86_64__
#include <immintrin.h>
#define X86 1
#else
#define X86 0
#endif

#define TRIAL_NS 500000 /* short enough that some of them are left alone */
#define TRIALS 40
#define FMA_ROUNDS 1000 /* of the multiply-adds between two looks at the clock */

static const double tier_bytes[HN_ROOFLINE_TIERS] = { 32e3, 256e3, 1e6, 4e6, 16e6, 96e6 }; /* 32e3: for one thread */

/* --- multiply-adds ------------------------------------------------------------------------------------------ */

typedef float (*Work)(int rounds);

/* Independent chains hide the latency of each; their sum is returned so that none is left out. */
static float fma_none(int rounds)
{
    float x[32], sum = 0;
    for (int i = 0; i < 32; i++)
        x[i] = (float)i;
    for (int r = 0; r < rounds; r++)
        for (int i = 0; i < 32; i++)
            x[i] = x[i] * 0.999f + 0.001f;
    for (int i = 0; i < 32; i++)
        sum += x[i];
    return sum;
}

#if X86
/* `n` chains of one vector each; every loop over them is unrolled, so that they stay in registers. */
#define CHAINS(n, V, init, step, join)                                      \
    V x[n];                                                                 \
    _Pragma("GCC unroll 16") for (int i = 0; i < (n); i++) x[i] = init;     \
    for (int r = 0; r < rounds; r++) {                                      \
        _Pragma("GCC unroll 16") for (int i = 0; i < (n); i++) x[i] = step; \
    }                                                                       \
    _Pragma("GCC unroll 16") for (int i = 1; i < (n); i++) x[0] = join;

__attribute__((target("avx2,fma"))) static float fma_avx2(int rounds)
{
    __m256 a = _mm256_set1_ps(0.999f), b = _mm256_set1_ps(0.001f);
    CHAINS(12, __m256, _mm256_set1_ps((float)i), _mm256_fmadd_ps(x[i], a, b), _mm256_add_ps(x[0], x[i]))
    return _mm256_cvtss_f32(x[0]);
}

__attribute__((target("avx512f"))) static float fma_avx512(int rounds)
{
    __m512 a = _mm512_set1_ps(0.999f), b = _mm512_set1_ps(0.001f);
    CHAINS(16, __m512, _mm512_set1_ps((float)i), _mm512_fmadd_ps(x[i], a, b), _mm512_add_ps(x[0], x[i]))
    return _mm512_cvtss_f32(x[0]);
}

__attribute__((target("avx512f,avx512vnni"))) static float dot_vnni(int rounds)
{
    __m512i a = _mm512_set1_epi8(3), b = _mm512_set1_epi8(1);
    CHAINS(16, __m512i, _mm512_set1_epi32(i), _mm512_dpbusd_epi32(x[i], a, b), _mm512_xor_si512(x[0], x[i]))
    return (float)_mm_cvtsi128_si32(_mm512_castsi512_si128(x[0]));
}
#endif

/* Operations per second of all threads together, the best of some trials. */
static double rate_of(Work work, double ops_per_round, int threads)
{
    double best = 0;
    for (int trial = 0; trial < TRIALS; trial++) {
        double rate = 0;
#pragma omp parallel num_threads(threads) reduction(+ : rate)
        {
            volatile float sink = work(FMA_ROUNDS);
            guint64 start = hn_now_ns(), now;
            double rounds = 0;
            do {
                sink = work(FMA_ROUNDS);
                rounds += FMA_ROUNDS;
                now = hn_now_ns();
            } while (now - start < TRIAL_NS);
            (void)sink;
            rate += rounds * ops_per_round / ((double)(now - start) * 1e-9);
        }
        best = fmax(best, rate);
    }
    return best;
}

static void measure_flops(HnRoofline *r)
{
    HnIsa isa = hn_cpu_isa();
#if X86
    if (isa >= HN_ISA_AVX512)
        r->flops = rate_of(fma_avx512, 16 * 16 * 2, r->threads);
    else if (isa >= HN_ISA_AVX2)
        r->flops = rate_of(fma_avx2, 12 * 8 * 2, r->threads);
    else
#endif
        r->flops = rate_of(fma_none, 32 * 2, r->threads);
    r->int8_ops = r->half_flops = r->flops;
#if X86
    if (isa >= HN_ISA_VNNI)
        r->int8_ops = fmax(r->flops, rate_of(dot_vnni, 16 * 64 * 2, r->threads));
#endif
    (void)isa;
}

/* --- bytes -------------------------------------------------------------------------------------------------- */

typedef gint64 Vec __attribute__((vector_size(64), may_alias));

#define READ_BODY                           \
    Vec a = { 0 }, b = a, c = a, d = a;     \
    for (gsize i = 0; i + 4 <= n; i += 4) { \
        a ^= x[i];                          \
        b ^= x[i + 1];                      \
        c ^= x[i + 2];                      \
        d ^= x[i + 3];                      \
    }                                       \
    a ^= b ^ c ^ d;                         \
    return a[0];
#define COPY_BODY                          \
    for (gsize i = 0; i < n / 2; i++)      \
        x[n / 2 + i] = x[i] ^ (x[i] << 1); \
    return 0;

static gint64 read_none(Vec *x, gsize n)
{
    READ_BODY
}
static gint64 copy_none(Vec *x, gsize n)
{
    COPY_BODY
}
#if X86
__attribute__((target("avx2"))) static gint64 read_avx2(Vec *x, gsize n)
{
    READ_BODY
}
__attribute__((target("avx2"))) static gint64 copy_avx2(Vec *x, gsize n)
{
    COPY_BODY
}
__attribute__((target("avx512f"))) static gint64 read_avx512(Vec *x, gsize n)
{
    READ_BODY
}
__attribute__((target("avx512f"))) static gint64 copy_avx512(Vec *x, gsize n)
{
    COPY_BODY
}
#endif

typedef gint64 (*Pass)(Vec *x, gsize n);

/* Bytes per second through n vectors for each thread, the best of some trials. */
static double bandwidth(Pass pass, Vec *x, gsize n, int threads)
{
    double best = 0;
    for (int trial = 0; trial < TRIALS; trial++) {
        double rate = 0;
        int t = 0;
#pragma omp parallel num_threads(threads) reduction(+ : rate)
        {
            int mine;
#pragma omp atomic capture
            mine = t++;
            Vec *at = x + (gsize)mine * n;
            volatile gint64 sink = pass(at, n);
            double bytes = 0;
            guint64 start = hn_now_ns(), now;
            do {
                for (gsize done = 0; done < 65536 / sizeof(Vec); done += n) {
                    sink = pass(at, n);
                    bytes += (double)(n * sizeof(Vec));
                }
                now = hn_now_ns();
            } while (now - start < TRIAL_NS);
            (void)sink;
            rate += bytes / ((double)(now - start) * 1e-9);
        }
        best = fmax(best, rate);
    }
    return best;
}

static void measure_bytes(HnRoofline *r, HnBudget *budget)
{
    Pass passes[2] = { read_none, copy_none };
#if X86
    HnIsa isa = hn_cpu_isa();
    if (isa >= HN_ISA_AVX512) {
        passes[0] = read_avx512;
        passes[1] = copy_avx512;
    } else if (isa >= HN_ISA_AVX2) {
        passes[0] = read_avx2;
        passes[1] = copy_avx2;
    }
#endif
    for (int k = 0; k < HN_ROOFLINE_TIERS; k++) {
        gsize each = (gsize)(tier_bytes[k] / sizeof(Vec) / (k ? r->threads : 1)) & ~(gsize)7, n = MAX(each, 8);
        gsize bytes = n * sizeof(Vec) * (gsize)r->threads;
        Vec *x = hn_budget_alloc(budget, bytes, NULL);
        r->tiers[k].bytes = (double)bytes;
        r->tiers[k].bytes_per_s = NAN;
        if (!x)
            continue;
        memset(x, 1, bytes);
        r->tiers[k].bytes_per_s = fmax(bandwidth(passes[0], x, n, r->threads), bandwidth(passes[1], x, n, r->threads));
        hn_budget_free(budget, x);
    }
    /* what is less is not slower: where it was, something else ran meanwhile */
    for (int k = HN_ROOFLINE_TIERS - 2; k >= 0; k--)
        r->tiers[k].bytes_per_s = fmax(r->tiers[k].bytes_per_s, r->tiers[k + 1].bytes_per_s);
}

/* --- the cache ---------------------------------------------------------------------------------------------- */

static char *group_name(int threads)
{
    g_autofree char *cpu = hn_cpu_model(NULL);
    g_strdelimit(cpu, "[]\n\r", '_');
    return g_strdup_printf("%s; %s; %d threads", cpu, hn_cpu_isa_name(hn_cpu_isa()), threads);
}

static gboolean load(GKeyFile *file, const char *group, HnRoofline *r)
{
    gsize n_bytes = 0, n_rates = 0;
    g_autofree double *bytes = g_key_file_get_double_list(file, group, "tier_bytes", &n_bytes, NULL);
    g_autofree double *rates = g_key_file_get_double_list(file, group, "tier_bytes_per_s", &n_rates, NULL);
    r->flops = g_key_file_get_double(file, group, "flops", NULL);
    r->int8_ops = g_key_file_get_double(file, group, "int8_ops", NULL);
    r->half_flops = fmax(g_key_file_get_double(file, group, "half_flops", NULL), r->flops);
    gboolean ok = bytes && rates && n_bytes == HN_ROOFLINE_TIERS && n_rates == HN_ROOFLINE_TIERS && r->flops > 0 &&
                  r->int8_ops >= r->flops && isfinite(r->int8_ops);
    for (int k = 0; ok && k < HN_ROOFLINE_TIERS; k++) {
        r->tiers[k].bytes = bytes[k];
        r->tiers[k].bytes_per_s = rates[k];
        ok = isfinite(rates[k]) && rates[k] > 0 && isfinite(bytes[k]) && (!k || bytes[k] > bytes[k - 1]);
    }
    return ok;
}

static void store(GKeyFile *file, const char *folder, const char *path, const char *group, const HnRoofline *r)
{
    double bytes[HN_ROOFLINE_TIERS], rates[HN_ROOFLINE_TIERS];
    gsize n;
    for (int k = 0; k < HN_ROOFLINE_TIERS; k++) {
        bytes[k] = r->tiers[k].bytes;
        rates[k] = r->tiers[k].bytes_per_s;
        if (isnan(rates[k]))
            return;
    }
    g_key_file_set_double(file, group, "flops", r->flops);
    g_key_file_set_double(file, group, "int8_ops", r->int8_ops);
    g_key_file_set_double(file, group, "half_flops", r->half_flops);
    g_key_file_set_double_list(file, group, "tier_bytes", bytes, HN_ROOFLINE_TIERS);
    g_key_file_set_double_list(file, group, "tier_bytes_per_s", rates, HN_ROOFLINE_TIERS);
    g_autofree char *text = g_key_file_to_data(file, &n, NULL);
    if (g_mkdir_with_parents(folder, 0755) == 0)
        hn_out_save(path, text, n, NULL);
}

/* The folder, and the file in it, read. */
static GKeyFile *open_cache(const char *folder, char **in, char **path)
{
    GKeyFile *file = g_key_file_new();
    *in = folder ? g_strdup(folder) : g_build_filename(g_get_user_cache_dir(), "hone", NULL);
    *path = g_build_filename(*in, "roofline.ini", NULL);
    g_key_file_load_from_file(file, *path, G_KEY_FILE_NONE, NULL);
    return file;
}

gboolean hn_roofline_load(const char *folder, const char *group, HnRoofline *r)
{
    g_autofree char *in = NULL, *path = NULL;
    g_autoptr(GKeyFile) file = open_cache(folder, &in, &path);
    return r->cached = load(file, group, r);
}

void hn_roofline_store(const char *folder, const char *group, const HnRoofline *r)
{
    g_autofree char *in = NULL, *path = NULL;
    g_autoptr(GKeyFile) file = open_cache(folder, &in, &path);
    store(file, in, path, group, r);
}

void hn_roofline_get(int threads, const char *folder, gboolean fresh, HnBudget *budget, HnRoofline *out)
{
    g_autofree char *group = group_name(threads);
    *out = (HnRoofline){ .threads = threads };
    if (!fresh && hn_roofline_load(folder, group, out))
        return;
    gboolean before = hn_team_together(TRUE);
    measure_flops(out);
    measure_bytes(out, budget);
    hn_team_together(before);
    hn_roofline_store(folder, group, out);
}

/* --- limits ------------------------------------------------------------------------------------------------- */

double hn_roofline_bandwidth(const HnRoofline *r, double bytes)
{
    double rate = NAN;
    for (int k = 0; k < HN_ROOFLINE_TIERS; k++) {
        if (!isnan(r->tiers[k].bytes_per_s))
            rate = r->tiers[k].bytes_per_s;
        if (!isnan(rate) && bytes <= r->tiers[k].bytes)
            break;
    }
    return rate;
}

const char *hn_bound_name(HnBound bound)
{
    static const char *const names[] = { NULL, "compute", "memory", "cache" };
    return names[bound];
}

/* Milliseconds for bytes through the nearest memory that they fit into, or one nearer still where that takes longer
 * than `ms`, which *nearer tells. */
static double move_ms(const HnRoofline *r, double bytes, double ms, gboolean *nearer)
{
    double least = bytes / hn_roofline_bandwidth(r, bytes) * 1e3;
    *nearer = least > ms;
    for (int k = HN_ROOFLINE_TIERS - 1; k >= 0 && least > ms; k--)
        if (!isnan(r->tiers[k].bytes_per_s))
            least = fmin(least, bytes / r->tiers[k].bytes_per_s * 1e3);
    return least;
}

HnBound hn_roofline_limit(const HnRoofline *r, double flops, double bytes, HnRate rate, double ms, double *limit_ms)
{
    gboolean nearer;
    const double rates[] = { r->flops, r->int8_ops, r->half_flops };
    const double compute = flops > 0 && rates[rate] > 0 ? flops / rates[rate] * 1e3 : 0,
                 move = move_ms(r, bytes, ms, &nearer);
    *limit_ms = fmin(fmax(compute, move), ms);
    if (!(*limit_ms > 0))
        return HN_BOUND_NONE;
    return compute >= move ? HN_BOUND_COMPUTE : nearer ? HN_BOUND_CACHE : HN_BOUND_MEMORY;
}
