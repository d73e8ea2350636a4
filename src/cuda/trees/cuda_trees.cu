#include "cuda/core/device.cuh"
#include "cuda/trees/cuda_trees_args.h"

#define KEY_LEAF 0x7fffffff

/* --- keys -------------------------------------------------------------------------------------------------------- */

/* -0 is 0; in the order of the numbers. */
__device__ inline int32_t key32(float x)
{
    const int32_t bits = __float_as_int(x + 0.0f);
    return bits ^ ((bits >> 31) & 0x7fffffff);
}
__device__ inline int64_t key64(double x)
{
    const int64_t bits = __double_as_longlong(x + 0.0);
    return bits ^ ((bits >> 63) & 0x7fffffffffffffff);
}

/* How many thresholds are below x. */
__device__ inline int32_t rank_below(const int64_t *v, int32_t n, int64_t x)
{
    int32_t first = 0;
    while (n > 0) {
        const int32_t half = n / 2;
        const bool below = v[first + half] < x;
        first = below ? first + half + 1 : first;
        n = below ? n - half - 1 : half;
    }
    return first;
}

/* Integers count as the f32 next to them. */
__device__ inline double number(float x)
{
    return (double)x;
}
__device__ inline double number(double x)
{
    return x;
}
__device__ inline double number(int32_t x)
{
    return (double)(float)x;
}
__device__ inline double number(int64_t x)
{
    return (double)(float)x;
}

template <typename T> __device__ void keys(const HnCudaTreeKeysArgs &a)
{
    for (int64_t i = hn_first(); i < a.rows * a.columns; i += hn_stride()) {
        const HnCudaTreeColumn &c = hn_at<const HnCudaTreeColumn>(a.column)[i / a.rows];
        const double x = number(hn_at<const T>(a.x)[i % a.rows * a.features + c.feature]);
        hn_at<int32_t>(a.key)[i] = x != x        ? c.nan
                                   : a.rank != 0 ? rank_below(hn_at<const int64_t>(a.rank) + c.first, c.n, key64(x))
                                                 : key32((float)x);
    }
}

#define DEFINE(suffix, type)                                                                     \
    extern "C" __global__ void trees_keys_##suffix(const __grid_constant__ HnCudaTreeKeysArgs a) \
    {                                                                                            \
        keys<type>(a);                                                                           \
    }
DEFINE(f32, float)
DEFINE(f64, double)
DEFINE(i32, int32_t)
DEFINE(i64, int64_t)

/* --- walks ------------------------------------------------------------------------------------------------------- */

/* Takes a weight in. */
__device__ inline void add(int how, double &sum, bool has, double w)
{
    if (how == HN_CUDA_TREES_MIN || how == HN_CUDA_TREES_MAX)
        sum = !has || (how == HN_CUDA_TREES_MIN ? w < sum : w > sum) ? w : sum;
    else
        sum += w;
}

/* What a thread, of one row, collects of its group. */
struct Collected {
    const HnCudaTreeWalkArgs &a;
    double *sum;  /* of target 0; those of the others are `rows` apart */
    uint8_t *has; /* NULL: nobody asks */

    __device__ void clear() const
    {
        for (int64_t k = 0; k < a.targets; k++) {
            sum[k * a.rows] = 0;
            if (has != nullptr)
                has[k * a.rows] = 0;
        }
    }
    __device__ void take(int64_t k, double w) const
    {
        double s = sum[k * a.rows];
        add(a.aggregate, s, has != nullptr && has[k * a.rows] != 0, w);
        sum[k * a.rows] = s;
        if (has != nullptr)
            has[k * a.rows] = 1;
    }
    __device__ void take_leaf(const HnCudaTree &t, int64_t leaf) const
    {
        if (t.kind == HN_CUDA_LEAF_VALUE) {
            take(t.target, (double)hn_at<const float>(a.value)[leaf]);
            return;
        }
        const int32_t at = hn_at<const int32_t>(a.value)[leaf];
        if (t.kind == HN_CUDA_LEAF_DENSE) {
            for (int64_t k = 0; k < a.targets; k++)
                take(k, hn_at<const double>(a.table)[at * a.targets + k]);
            return;
        }
        const int32_t *first = hn_at<const int32_t>(a.first);
        const HnCudaTreeWeight *weight = hn_at<const HnCudaTreeWeight>(a.weight);
        for (int32_t i = first[at]; i < first[at + 1]; i++)
            take(weight[i].target, weight[i].value);
    }
};

/* Where row r ends in the tree. */
__device__ inline int64_t leaf_of(const HnCudaTreeWalkArgs &a, int64_t root, const int32_t *key)
{
    const uint2 *cell = hn_at<const uint2>(a.cell) + root;
    const uint32_t columns = (1u << a.bits) - 1;
    for (uint32_t at = 0;;) {
        const uint2 c = cell[at];
        if ((int32_t)c.x == KEY_LEAF)
            return root + at;
        at = (c.y >> a.bits) + (key[(c.y & columns) * a.rows] > (int32_t)c.x);
    }
}

/* A thread for each row and group; rows side by side. */
extern "C" __global__ void trees_walk(const __grid_constant__ HnCudaTreeWalkArgs a)
{
    for (int64_t i = hn_first(); i < a.rows * a.groups; i += hn_stride()) {
        const int64_t row = i % a.rows, g = i / a.rows, end = min(a.trees, (g + 1) * a.group);
        const int32_t *key = hn_at<const int32_t>(a.key) + row;
        const int64_t place = g * a.targets * a.rows + row;
        const Collected c = { a, hn_at<double>(a.sum) + place, a.has != 0 ? hn_at<uint8_t>(a.has) + place : nullptr };
        c.clear();
        for (int64_t t = g * a.group; t < end; t++) {
            const HnCudaTree tree = hn_at<const HnCudaTree>(a.tree)[t];
            c.take_leaf(tree, leaf_of(a, tree.first, key));
        }
    }
}

/* --- scores ------------------------------------------------------------------------------------------------------ */

__device__ inline double logistic(double v)
{
    return 1 / (1 + exp(-v));
}

/* As op/ml.c has it. */
__device__ inline double probit(double p)
{
    const double pi = 3.14159265358979323846, v = 2 * p - 1, ln = log((1 - v) * (1 + v)),
                 half = 2 / (pi * 0.147) + 0.5 * ln;
    const double inverse = sqrt(sqrt(half * half - ln / 0.147) - half);
    return 1.41421356237309504880 * (v < 0 ? -inverse : inverse);
}

/* The scores of one row, `rows` apart: those of group 0, when the others are added. */
struct Scores {
    const HnCudaTreeScoresArgs &a;
    double *sum;
    int64_t row;

    __device__ double &at(int64_t k) const
    {
        return sum[k * a.rows];
    }
    /* Whether some leaf gave target k a weight. */
    __device__ bool has(int64_t k) const
    {
        return a.has != 0 ? hn_at<const uint8_t>(a.has)[k * a.rows + row] != 0 : hn_at<const uint8_t>(a.given)[k] != 0;
    }
    __device__ double base(int64_t k) const
    {
        return hn_at<const double>(a.base)[k];
    }
    /* Groups in their order. */
    __device__ void collect(int64_t k) const
    {
        const int64_t apart = a.targets * a.rows;
        uint8_t *flag = a.has != 0 ? hn_at<uint8_t>(a.has) + k * a.rows + row : nullptr;
        double s = at(k);
        bool any = flag != nullptr && *flag != 0;
        for (int64_t g = 1; g < a.groups; g++) {
            if (flag != nullptr && flag[g * apart] == 0)
                continue;
            add(a.aggregate, s, any, at(k + g * a.targets));
            any = true;
        }
        at(k) = s;
        if (flag != nullptr)
            *flag = any;
    }

    __device__ void softmax(bool skip) const
    {
        double most = -__builtin_huge_val(), all = 0;
        for (int64_t k = 0; k < a.targets; k++)
            most = at(k) > most ? at(k) : most;
        for (int64_t k = 0; k < a.targets; k++) {
            if (skip && fabs(at(k)) <= 1e-7) {
                at(k) *= exp(-most);
                continue;
            }
            at(k) = exp(at(k) - most);
            all += at(k);
        }
        for (int64_t k = 0; k < a.targets; k++)
            at(k) /= all;
    }
    __device__ void transform() const
    {
        if (a.transform == HN_CUDA_ML_SOFTMAX || a.transform == HN_CUDA_ML_SOFTMAX_ZERO)
            softmax(a.transform == HN_CUDA_ML_SOFTMAX_ZERO);
        for (int64_t k = 0; a.transform == HN_CUDA_ML_LOGISTIC && k < a.targets; k++)
            at(k) = logistic(at(k));
        for (int64_t k = 0; a.transform == HN_CUDA_ML_PROBIT && k < a.targets; k++)
            at(k) = probit(at(k));
    }
    /* Of one target only PROBIT says something. */
    __device__ void transform_all() const
    {
        if (a.targets > 1)
            transform();
        else if (a.transform == HN_CUDA_ML_PROBIT)
            at(0) = probit(at(0));
    }

    __device__ void targets() const
    {
        for (int64_t k = 0; k < a.targets; k++)
            at(k) = at(k) / a.divide + (a.n_base > 0 ? base(k) : 0);
        transform_all();
    }
    __device__ int64_t classes() const
    {
        int64_t best = -1;
        for (int64_t k = 0; k < a.targets; k++) {
            at(k) += a.n_base > 0 ? base(k) : 0;
            if ((has(k) || a.n_base > 0) && (best < 0 || at(k) > at(best)))
                best = k;
        }
        transform_all();
        return best > 0 ? best : 0;
    }
    /* Two classes, of one score. */
    __device__ int64_t binary() const
    {
        const double v = at(0);
        const bool signs = !a.probability;
        double first = signs ? -v : 1 - v, second = v;
        if (a.transform == HN_CUDA_ML_PROBIT) {
            first = probit(v);
            second = 0;
        } else if (signs && a.transform == HN_CUDA_ML_LOGISTIC) {
            first = logistic(-v);
            second = logistic(v);
        }
        at(0) = first;
        at(1) = second;
        return v > (signs ? 0.0 : 0.5);
    }
    __device__ int64_t pair() const
    {
        const bool second = has(1);
        if (!second && a.n_base < 2) {
            at(0) += a.n_base == 1 ? base(0) : 0;
            return binary();
        }
        if (a.n_base == 1)
            at(0) += base(0);
        if (a.n_base == 2 && second) { /* base value 0 is left out, and the score is that of class 0 */
            at(1) = base(1) + at(0);
            at(0) = -at(1);
        } else if (a.n_base == 2) {
            at(0) += base(0);
            at(1) += base(1);
        }
        const double decides = second ? at(1) : at(0);
        transform();
        return decides > (a.probability ? 0.5 : 0.0);
    }
    __device__ void put() const
    {
        const int64_t to = row * a.targets;
        for (int64_t k = 0; a.y != 0 && k < a.targets; k++)
            if (a.wide)
                hn_at<double>(a.y)[to + k] = at(k);
            else
                hn_at<float>(a.y)[to + k] = (float)at(k);
    }
};

/* A thread for each row. */
extern "C" __global__ void trees_scores(const __grid_constant__ HnCudaTreeScoresArgs a)
{
    for (int64_t row = hn_first(); row < a.rows; row += hn_stride()) {
        const Scores s = { a, hn_at<double>(a.sum) + row, row };
        int64_t label = 0;
        for (int64_t k = 0; k < a.targets; k++)
            s.collect(k);
        if (a.how == HN_CUDA_TREES_TARGETS)
            s.targets();
        else
            label = a.how == HN_CUDA_TREES_PAIR ? s.pair() : s.classes();
        if (a.labels != 0)
            hn_at<int64_t>(a.labels)[row] = hn_at<const int64_t>(a.label)[label];
        s.put();
    }
}
