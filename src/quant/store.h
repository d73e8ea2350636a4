/*
 * What stays f32, stored in 8 bits. For search.c.
 *
 * A file where only some nodes compute with integers holds the others' weights as floats, most of its bytes. As 8-bit
 * integers behind Cast and Mul they cost nobody any time: runtimes compute them once, when the model is loaded.
 */
#pragma once

#include "quant/search_state.h"

G_BEGIN_DECLS

/* The plan so far, of which some nodes compute with integers, gets 8-bit weights for as many f32 nodes as the goals
 * allow, those with the largest weights first, unless that makes it slower. Errors: those of hn_tune_try(). */
gboolean hn_search_store(HnSearchState *s, GError **error);

G_END_DECLS
