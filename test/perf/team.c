/*
 * What a parallel region costs (no test): build-.../test/perf-team [SECONDS]. Beside a busy neighbour:
 *     taskset -c 1 sh -c 'while :; do :; done' & build/test/perf-team 5; kill %1
 */
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/team.h"

#define N (1 << 20)
#define MOST (1 << 21)
#define BLOCK_NS 30000000

static const int pauses[] = { 0, 30, 1000 }; /* us between regions */

static float *x;

static void work(long n)
{
    for (long i = 0; i < n; i++) {
        float v = x[i];
        x[i] = ((v * 0.25f + 0.5f) * v + 0.125f) * v * 0.5f + 0.1f;
    }
}

static void parallel(long n)
{
#pragma omp parallel for num_threads(2)
    for (int k = 0; k < 2; k++) {
        long from = n * k / 2, to = n * (k + 1) / 2;
        for (long i = from; i < to; i++) {
            float v = x[i];
            x[i] = ((v * 0.25f + 0.5f) * v + 0.125f) * v * 0.5f + 0.1f;
        }
    }
}

static void barriers(long n)
{
    gboolean before = hn_team_together(TRUE);
    parallel(n);
    hn_team_together(before);
}

typedef struct {
    double mean, p50, p99, max; /* us */
} Times;

static int by_size(const void *a, const void *b)
{
    double d = *(const double *)a - *(const double *)b;
    return (d > 0) - (d < 0);
}

typedef struct {
    void (*run)(long n);
    double *t; /* us */
    int n;
} Variant;

/* A block of calls, with a pause behind each. */
static void block(Variant *v, long n, int pause_us)
{
    guint64 start = hn_now_ns(), b = start;
    while (v->n < MOST && b - start < BLOCK_NS) {
        guint64 a = hn_now_ns();
        v->run(n);
        b = hn_now_ns();
        v->t[v->n++] = (double)(b - a) * 1e-3;
        while (hn_now_ns() - b < (guint64)pause_us * 1000)
            ;
    }
}

static Times times(Variant *v)
{
    Times r = { 0 };
    for (int i = 0; i < v->n; i++)
        r.mean += v->t[i] / v->n;
    qsort(v->t, (size_t)v->n, sizeof v->t[0], by_size);
    r.p50 = v->t[v->n / 2];
    r.p99 = v->t[v->n / 100 * 99];
    r.max = v->t[v->n - 1];
    return r;
}

/* All variants in turn, so that what else happens on the machine hits them alike. */
static void line(long n, double seconds, int pause_us)
{
    Variant v[3] = { { .run = work }, { .run = parallel }, { .run = barriers } };
    Times t[3];
    for (int k = 0; k < 3; k++)
        v[k].t = g_new(double, MOST);
    for (guint64 start = hn_now_ns(); (double)(hn_now_ns() - start) < 3e9 * seconds;)
        for (int k = 0; k < 3; k++)
            block(&v[k], n, pause_us);
    printf("%5d %8ld", pause_us, n);
    for (int k = 0; k < 3; k++) {
        t[k] = times(&v[k]);
        printf(" | %8.2f %8.2f %8.2f %8.2f", t[k].mean, t[k].p50, t[k].p99, t[k].max);
        g_free(v[k].t);
    }
    printf(" | %.2f %.2f\n", t[0].mean / t[1].mean, t[0].mean / t[2].mean);
}

static void empty(long n)
{
    guint64 a = hn_now_ns();
    for (long i = 0; i < n; i++)
#pragma omp parallel num_threads(2)
    {
        static _Thread_local volatile int calls;
        calls++;
    }
    printf("fork and join, %ld in a row: %.3f us\n", n, (double)(hn_now_ns() - a) * 1e-3 / (double)n);
}

int main(int argc, char **argv)
{
    double seconds = argc > 1 ? g_ascii_strtod(argv[1], NULL) : 0.3;
    x = calloc(N, sizeof x[0]);
    for (int i = 0; i < 3; i++)
        empty(200000);
    printf("us: pause, elements | mean p50 p99 max of one thread | claimed | together | gain of claimed, together\n");
    for (int k = 0; k < (int)G_N_ELEMENTS(pauses); k++)
        for (long n = 256; n <= N; n *= k == 0 ? 2 : 16)
            line(n, seconds, pauses[k]);
    free(x);
    return 0;
}
