/*
 * What losses are multiplied by before gradients are made of them, so that these are no zeros in f16: as much as goes
 * without infinities. A step with an infinity changes nothing, and the next is made with half of it; behind many steps
 * without one it is doubled.
 */
#pragma once

#include "ir/tensor.h"

G_BEGIN_DECLS

enum {
    HN_LOSS_SCALE,         /* a power of 2 */
    HN_LOSS_SCALE_GOOD,    /* steps since it last changed */
    HN_LOSS_SCALE_SKIPPED, /* steps in all that changed nothing */
    HN_LOSS_SCALE_EVERY,   /* so many good ones double it */
    HN_LOSS_SCALES
};

/* Its state, f32[HN_LOSS_SCALES]; every: 0 for the usual number. */
HnTensor *hn_loss_scale_new(int every);
/* A step was made; finite: all gradients were. */
void hn_loss_scale_heard(HnTensor *state, gboolean finite);

G_END_DECLS
