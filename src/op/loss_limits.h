/*
 * What keeps losses finite (op/loss.h); plain numbers, for kernels of any kind.
 */
#pragma once

#define HN_LOSS_STD_EPSILON 1e-7        /* beside the standard deviation of logits */
#define HN_LOSS_LEAST_NORM 1e-8         /* a shorter vector counts as one of this length */
#define HN_LOSS_LEAST_LOG (-100)        /* the logarithm of a probability is at least this */
#define HN_LOSS_LEAST_PROBABILITY 1e-12 /* of a divisor */
