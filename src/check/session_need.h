/*
 * HnSessionNeed: what a session of a model takes, found out before any of it is taken.
 *
 * Values are planned without memory for them. What kernels take beside them, scratch memory and packed weights, is
 * known by preparing the model once within a limit; where that does not do, or where no limit is set, it is guessed by
 * the bytes of the weights, and more than that limit. What branches and loops take is known by running them: a model
 * with inner graphs is run once.
 */
#pragma once

#include "run/session.h"

G_BEGIN_DECLS

/* Beside what is counted: graphs and plans of any model take some bytes, and what libraries keep is nowhere counted. */
#define HN_SPARE_BYTES ((gsize)3 << 19)

typedef struct {
    gsize values;  /* of one run, results included */
    gsize results; /* of these */
    gsize beside;  /* scratch memory and packed weights, and what packing takes */
} HnSessionNeed;

/* in: a sample. most: bytes that finding out may take for the time being. Errors: those of preparing the model, but for
 * BUDGET. */
gboolean hn_session_need(HnModel *m, const HnBackend *backend, int threads, HnTensor *const *in, gsize most,
                         HnSessionNeed *need, GError **error);

/* Bytes of values where those of that name are results, and no others are: at least, since a plan may end where a shape
 * follows from elements. Inputs of the model are none. Errors: those of planning. */
gboolean hn_session_values(const HnModel *m, const GPtrArray *names, HnTensor *const *in, gsize *bytes, GError **error);

G_END_DECLS
