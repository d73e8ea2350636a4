/*
 * One tensor for one input, as the value of --input says.
 *
 *   FILE                  .npy, .npz with one array, .pb, a picture, sound, or numbers as text (.txt, .csv)
 *   raw:FILE              its elements
 *   zeros, ones, random[:SEED]
 *   16000, 0.5            a number: all elements
 *   [1,2,3], [[1,2],[3,4]]
 *
 * "-" is a file from stdin. A file that is called as one of the others is ./FILE.
 */
#pragma once

#include "data/input_shapes.h"
#include "data/media.h"

G_BEGIN_DECLS

typedef struct {
    HnBudget *budget;               /* NULL: unlimited */
    uint64_t seed;                  /* of random */
    const HnShapes *shapes;         /* of zeros, ones and random; may be NULL */
    const HnPreprocess *preprocess; /* of pictures and sound; may be NULL */
} HnGivenOptions;

typedef struct {
    gboolean made;        /* of no file, and of the size that shapes say */
    HnMediaTarget target; /* of a picture or sound; kind NONE: it is none */
} HnGiven;

/* *how: where it came from. Errors: IO, FORMAT, TYPE, SHAPE, USAGE, UNSUPPORTED, BUDGET. */
HnTensor *hn_given_read(const HnValue *input, const char *text, const HnGivenOptions *o, HnGiven *how, GError **error);

G_END_DECLS
