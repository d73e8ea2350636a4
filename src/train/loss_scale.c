#include "train/loss_scale.h"

#define FIRST 65536
#define MOST 16777216
#define EVERY 2000

HnTensor *hn_loss_scale_new(int every)
{
    const int64_t n = HN_LOSS_SCALES;
    HnTensor *state = hn_tensor_new(HN_F32, 1, &n, NULL, NULL);
    float *v = state->data;
    v[HN_LOSS_SCALE] = FIRST;
    v[HN_LOSS_SCALE_EVERY] = every > 0 ? (float)every : EVERY;
    return state;
}

void hn_loss_scale_heard(HnTensor *state, gboolean finite)
{
    float *v = state->data;
    if (finite && ++v[HN_LOSS_SCALE_GOOD] < v[HN_LOSS_SCALE_EVERY])
        return;
    v[HN_LOSS_SCALE] = finite ? MIN(2 * v[HN_LOSS_SCALE], MOST) : MAX(v[HN_LOSS_SCALE] / 2, 1);
    v[HN_LOSS_SCALE_GOOD] = 0;
    v[HN_LOSS_SCALE_SKIPPED] += finite ? 0 : 1;
}
