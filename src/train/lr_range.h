/*
 * The learning rate by a range test (L. N. Smith, Cyclical Learning Rates for Training Neural Networks, WACV 2017):
 * some steps whose rate rises exponentially, and then everything is as it was.
 */
#pragma once

#include "train/train_fit.h"

G_BEGIN_DECLS

typedef struct {
    double lr;     /* a tenth of that at which the smoothed loss was least */
    double lowest; /* that loss */
    int steps;     /* that were made */
} HnLrRange;

/* Errors: those of steps; GUARD: not even the smallest rate has a finite loss. */
gboolean hn_lr_range(const HnFeed *f, HnLrRange *found, GError **error);

G_END_DECLS
