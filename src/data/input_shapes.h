/*
 * HnShapes: what --dim and --shapes say about the dimensions that a model leaves open.
 *
 *   --dim batch=8                  the dimension that the model calls batch
 *   --shapes x:1x3x224x224,m:1x7   all dimensions of inputs; also x:1,3,224,224; "s:" is a tensor without dimensions
 *
 * A dimension of which nothing is said is 1 (data/open_sizes.h tries others).
 */
#pragma once

#include "ir/graph.h"

G_BEGIN_DECLS

typedef struct HnShapes HnShapes;

HnShapes *hn_shapes_new(void);
void hn_shapes_free(HnShapes *s);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(HnShapes, hn_shapes_free)

void hn_shapes_set_dim(HnShapes *s, const char *name, int64_t n);            /* n >= 0; replaces an earlier one */
gboolean hn_shapes_parse_dim(HnShapes *s, const char *text, GError **error); /* "batch=8": USAGE */
gboolean hn_shapes_parse(HnShapes *s, const char *text, GError **error);     /* the value of --shapes: USAGE */

void hn_shapes_set(HnShapes *s, const char *input, const int64_t *dims, int rank); /* all of an input's dimensions */
HnShapes *hn_shapes_copy(const HnShapes *s);                                       /* NULL: an empty one */

/* USAGE where a name is no dimension or input of these inputs. */
gboolean hn_shapes_check(const HnShapes *s, HnValue *const *inputs, int n, GError **error);

/* The dims of an input into dims (HN_MAX_RANK places); the rank, or -1 with UNSUPPORTED (no tensor), USAGE (its rank is
 * not known) or SHAPE (too many dimensions). s may be NULL. */
int hn_shapes_dims(const HnShapes *s, const HnValue *input, int64_t *dims, GError **error);

/* Did somebody choose a size of this input? */
gboolean hn_shapes_chosen(const HnShapes *s, const HnValue *input);

/* Is anything said of this input's dimension, which the model leaves open? Then *n is its size. */
gboolean hn_shapes_says(const HnShapes *s, const HnValue *input, int axis, int64_t *n);

G_END_DECLS
