/* The loops of histogram.c over elements; included once for each level of instructions (base/level.h). */

/* Keys are f32 bits as integers in the order of the numbers; -0 is one below +0. */
HN_TARGET static void HN_V(survey)(const float *x, int n, Survey *s)
{
    int32_t lo = INT32_MAX, hi = INT32_MIN, odd = 0, zero = 0;
    HN_OMP(omp simd reduction(min : lo) reduction(max : hi) reduction(+ : odd, zero))
    for (int i = 0; i < n; i++) {
        int32_t u;
        memcpy(&u, x + i, sizeof u);
        const int32_t key = u ^ ((u >> 31) & INT32_MAX);
        const int32_t out = -(int32_t)((uint32_t)key - (uint32_t)(KEY_OF_MASK + 1) >= KEYS); /* all bits or none */
        const int32_t low = (key & ~out) | (INT32_MAX & out), high = (key & ~out) | (INT32_MIN & out);
        lo = low < lo ? low : lo;
        hi = high > hi ? high : hi;
        odd -= out;
        zero += (u & INT32_MAX) == 0;
    }
    *s = (Survey){ lo, hi, odd, zero };
}

/* at[i]: the bin of x[i], those of numbers below 0 behind the others; |x[i]| * scale < HN_HISTOGRAM_BINS */
HN_TARGET static void HN_V(place)(const float *x, int n, float scale, uint16_t *at)
{
    for (int i = 0; i < n; i++) {
        const int32_t k = (int32_t)(fabsf(x[i]) * scale);
        at[i] = (uint16_t)(x[i] < 0 ? k + HN_HISTOGRAM_BINS : k);
    }
}
