/* What libFuzzer and driver.c call: a target's functions, and time per byte around them. */
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "base/clock.h"
#include "base/sanitize.h"
#include "fuzz.h"

#if HN_SANITIZE_ADDRESS || HN_SANITIZE_THREAD || !defined(__OPTIMIZE__)
#define SLOWDOWN 10
#else
#define SLOWDOWN 1
#endif

#define INPUT_S 0.050 /* of processor time for an input of no bytes */
#define BYTE_S 2e-6   /* and for each byte more */
#define MEMORY_S 1e-7 /* and for each byte that its budgets grant at a time */
#define TRIES 3       /* of which the fastest counts */

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned seed);

/* Inputs come one after the other, and libFuzzer's interface leaves no other place. */
static struct {
    int depth;    /* of begin and end */
    double since; /* when counting stopped, s */
    double sum;   /* not counted in this input, s */
} untimed;
static gsize granted; /* bytes, in this input */

/* Processor time of all threads, and of children that have ended, s. */
static double spent(void)
{
    struct rusage c;
    getrusage(RUSAGE_CHILDREN, &c);
    return (double)hn_process_cpu_ns() / 1e9 + (double)(c.ru_utime.tv_sec + c.ru_stime.tv_sec) +
           (double)(c.ru_utime.tv_usec + c.ru_stime.tv_usec) / 1e6;
}

void fuzz_untimed_begin(void)
{
    if (untimed.depth++ == 0)
        untimed.since = spent();
}

void fuzz_untimed_end(void)
{
    if (--untimed.depth == 0)
        untimed.sum += spent() - untimed.since;
}

void fuzz_budget_done(HnBudget *budget)
{
    if (hn_budget_used(budget) != 0)
        g_error("%" G_GSIZE_FORMAT " bytes were not given back", hn_budget_used(budget));
    granted += hn_budget_peak(budget);
    hn_budget_unref(budget);
}

static double run_timed(const uint8_t *data, size_t size)
{
    const double start = spent();
    untimed.sum = 0;
    granted = 0;
    fuzz_target.one(data, size);
    return spent() - start - untimed.sum;
}

/* What g_error() ends with; libFuzzer keeps the input of what aborts, but knows nothing of this one. */
static void on_trap(int signal_number)
{
    (void)signal_number;
    abort();
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    signal(SIGTRAP, on_trap);
    if (fuzz_target.init != NULL)
        fuzz_target.init();
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const double times = SLOWDOWN * (fuzz_target.times > 0 ? fuzz_target.times : 1);
    double least = G_MAXDOUBLE, limit = 0;
    for (int i = 0; i < TRIES && least > limit; i++) {
        const double t = run_timed(data, size);
        least = MIN(least, t);
        limit = times * (INPUT_S + BYTE_S * (double)size + MEMORY_S * (double)granted);
    }
    if (least > limit)
        g_error("%.3f s of processor time for %zu bytes, where %.3f s are allowed", least, size, limit);
    return 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned seed)
{
    HnRng rng = hn_rng(seed);
    const size_t n = fuzz_target.mutate != NULL ? fuzz_target.mutate(data, size, max, &rng) : 0;
    return n > 0 ? n : LLVMFuzzerMutate(data, size, max);
}
