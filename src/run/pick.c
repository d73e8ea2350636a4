/*
 * Tokens from logits.
 */
#include <math.h>
#include <stdlib.h>

#include "run/feedback.h"

static int64_t likeliest(const float *x, int64_t n)
{
    int64_t best = 0;
    for (int64_t i = 1; i < n; i++)
        if (x[i] > x[best] || isnan(x[best]))
            best = i;
    return best;
}

/* A heap whose root is the least of those taken so far; of equal ones that with the largest index. */
static gboolean is_less(const float *x, int32_t a, int32_t b)
{
    return x[a] != x[b] ? x[a] < x[b] : a > b;
}

static void sink(const float *x, int32_t *heap, int64_t n, int64_t i)
{
    for (int64_t k; (k = 2 * i + 1) < n; i = k) {
        if (k + 1 < n && is_less(x, heap[k + 1], heap[k]))
            k++;
        if (is_less(x, heap[i], heap[k]))
            return;
        const int32_t t = heap[i];
        heap[i] = heap[k];
        heap[k] = t;
    }
}

/* The k likeliest, in order, into `to`. */
static void take_likeliest(const float *x, int64_t n, int32_t *to, int64_t k)
{
    for (int64_t i = 0; i < k; i++)
        to[i] = (int32_t)i;
    for (int64_t i = k / 2; i-- > 0;)
        sink(x, to, k, i);
    for (int64_t i = k; i < n; i++)
        if (is_less(x, to[0], (int32_t)i)) {
            to[0] = (int32_t)i;
            sink(x, to, k, 0);
        }
    for (int64_t m = k - 1; m > 0; m--) { /* the least goes to the end */
        const int32_t t = to[0];
        to[0] = to[m];
        to[m] = t;
        sink(x, to, m, 0);
    }
}

int64_t hn_pick(const float *x, int64_t n, const HnPicking *p, gboolean sample, double u, int32_t *room)
{
    const int64_t best = likeliest(x, n), k = p->top_k > 0 ? MIN(p->top_k, n) : n;
    if (!sample || p->temperature <= 0 || k == 1 || !isfinite(x[best]))
        return best;
    take_likeliest(x, n, room, k);
    double all = 0, sum = 0;
    for (int64_t i = 0; i < k; i++)
        all += exp(((double)x[room[i]] - (double)x[best]) / p->temperature);
    int64_t most = 0;
    do {
        sum += exp(((double)x[room[most]] - (double)x[best]) / p->temperature);
    } while (++most < k && sum < p->top_p * all);
    double left = u * sum;
    for (int64_t i = 0; i < most; i++)
        if ((left -= exp(((double)x[room[i]] - (double)x[best]) / p->temperature)) < 0)
            return room[i];
    return room[most - 1];
}
