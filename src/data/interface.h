/*
 * What a model's inputs and outputs seem to be, judged by names, types, shapes and the nodes next to them: for people,
 * and for messages that have to say what a model wants. Nothing is computed by it.
 */
#pragma once

#include "ir/graph.h"

G_BEGIN_DECLS

typedef enum {
    HN_ROLE_UNKNOWN,
    HN_ROLE_IMAGE,         /* rank 4, of 1, 3 or 4 channels */
    HN_ROLE_SIGNAL,        /* what a convolution along one axis reads: [N,C,W] */
    HN_ROLE_AUDIO,         /* by its name */
    HN_ROLE_TOKENS,        /* integers that pick rows of a table */
    HN_ROLE_POSITIONS,     /* integers, by their name */
    HN_ROLE_MASK,          /* 0 and 1 */
    HN_ROLE_STATE,         /* an input that an output of the run before feeds; that output */
    HN_ROLE_SCALAR,        /* a single number */
    HN_ROLE_PROBABILITIES, /* of a softmax */
    HN_ROLE_SCORES,        /* each in [0,1] */
    HN_ROLE_LOGITS,        /* a number for each row of the table that the tokens pick from */
    HN_ROLE_INDICES,       /* integers that come out */
    HN_ROLE_COUNT
} HnRole;

typedef struct {
    HnRole role;
    const char *layout;     /* "NCHW", "NHWC", "NCW"; NULL: none */
    int64_t channels;       /* of an image or signal; 0: not known */
    int64_t entries;        /* rows of the table, classes; 0: not known */
    const HnValue *partner; /* of a state: the output that feeds it, or the input that it feeds */
} HnSeems;

/* "image", "tokens", ...; NULL for HN_ROLE_UNKNOWN. */
const char *hn_role_name(HnRole role);

/* v is an input of m's graph that is no weight, or an output of it. A value that is both is taken for an input. */
void hn_seems(const HnModel *m, const HnValue *v, HnSeems *s);
/* "image NCHW, 3 channels", "token ids below 32000", "state, fed by 'hn'"; "" where nothing is known. g_free. */
char *hn_seems_text(const HnSeems *s);

/* The end of a message that asks for data: "; the model's inputs are 'x' f32[1,3,224,224] (image NCHW, 3 channels) and
 * 'sr' i64 (scalar)"; the first few of many. inputs: n of one model. g_free. */
char *hn_inputs_words(HnValue *const *inputs, guint n);
/* The same for all inputs of m that are no weights. */
char *hn_model_inputs_words(const HnModel *m);

G_END_DECLS
