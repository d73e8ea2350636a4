/*
 * Samples that are copies of others: their inputs are the same, to the last bit. Whatever is judged by a copy of what
 * was learned from, or calibrated with, is judged by what was used; and ten copies tell no more than one.
 *
 * Inputs are told apart by 128 bits of a hash; -0.0 is 0. Labels are not looked at.
 */
#pragma once

#include "data/data.h"

G_BEGIN_DECLS

/* Those of d, in its order, whose inputs no sample before them has; no more are looked for behind `most` of them. They
 * are samples of d for as long as it is there (hn_data_some()). *copies: how many were left out on the way. */
HnData *hn_data_distinct(const HnData *d, int64_t most, int64_t *copies, GError **error);

/* Those of d, in its order, whose inputs no sample of `other` has. */
HnData *hn_data_unlike(const HnData *d, const HnData *other, GError **error);

G_END_DECLS
