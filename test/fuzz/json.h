/*
 * What the targets that read JSON share.
 */
#pragma once

#include "fuzz.h"

G_BEGIN_DECLS

/* A FuzzTarget.mutate: changes to one line of JSON, three times out of four, or to all of it where it is one line. */
size_t fuzz_mutate_json(uint8_t *data, size_t size, size_t max, HnRng *rng);

G_END_DECLS
