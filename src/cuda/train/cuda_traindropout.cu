#include "base/philox.h"
#include "cuda/reduce/cuda_rows.cuh"
#include "cuda/train/cuda_traindropout_args.h"

/* hn_philox() */
__device__ static void philox(uint64_t key, uint32_t word[4])
{
    uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);
    for (int r = 0; r < HN_PHILOX_ROUNDS; r++, k0 += HN_PHILOX_W0, k1 += HN_PHILOX_W1) {
        const uint32_t lo0 = HN_PHILOX_M0 * word[0], hi0 = __umulhi(HN_PHILOX_M0, word[0]);
        const uint32_t lo1 = HN_PHILOX_M1 * word[2], hi1 = __umulhi(HN_PHILOX_M1, word[2]);
        word[0] = hi1 ^ word[1] ^ k0;
        word[1] = lo1;
        word[2] = hi0 ^ word[3] ^ k1;
        word[3] = lo0;
    }
}

/* A thread for each four elements, whose random bits are those of one counter. */
template <typename T> __device__ static void traindropout(const HnCudaTrainDropoutArgs &a)
{
    const int64_t *state = hn_at<const int64_t>(a.state);
    const uint64_t seed = (uint64_t)state[0];
    const uint32_t step = (uint32_t)state[1];
    const bool vector = a.n % 4 == 0 && (a.x | a.y) % 16 == 0;
    for (int64_t k = hn_first(); 4 * k < a.n; k += hn_stride()) {
        uint32_t word[4] = { (uint32_t)k, (uint32_t)(k >> 32), step, a.salt };
        float v[4];
        philox(seed, word);
        hn_load4(v, hn_at<const T>(a.x), 4 * k, a.n, vector);
        for (int j = 0; j < 4; j++)
            v[j] = word[j] < a.threshold ? 0.0f : v[j] * a.scale;
        hn_store4(hn_at<T>(a.y), v, 4 * k, a.n, vector);
    }
}

#define DEFINE(suffix, type)                                                                           \
    extern "C" __global__ void traindropout_##suffix(const __grid_constant__ HnCudaTrainDropoutArgs a) \
    {                                                                                                  \
        traindropout<type>(a);                                                                         \
    }
HN_EACH_FLOAT(DEFINE)
