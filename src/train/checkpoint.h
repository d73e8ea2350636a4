/*
 * HnCheckpoint: all that training needs to go on, as one .npz: tensors by name, and numbers as JSON in the array
 * `about`. A file is written as a whole: who is killed in between leaves the old one.
 */
#pragma once

#include <json-glib/json-glib.h>

#include "data/npz.h"

G_BEGIN_DECLS

typedef struct {
    JsonObject *about;
    GPtrArray *names;   /* char * */
    GPtrArray *tensors; /* HnTensor * */
    HnNpz *file;        /* of one that was read, which has them; else NULL */
} HnCheckpoint;

HnCheckpoint *hn_checkpoint_new(void); /* empty */
void hn_checkpoint_free(HnCheckpoint *c);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(HnCheckpoint, hn_checkpoint_free)

/* "KIND:NAME"; a reference of t is taken. */
void hn_checkpoint_add(HnCheckpoint *c, const char *kind, const char *name, HnTensor *t);
/* Out of one that was read. A new reference. Errors: FORMAT: it has none that is like that tensor. */
HnTensor *hn_checkpoint_find(const HnCheckpoint *c, const char *kind, const char *name, const HnTensor *like,
                             GError **error);

/* The same of any shape; NULL: it has none, or cannot be read. */
HnTensor *hn_checkpoint_get(const HnCheckpoint *c, const char *kind, const char *name);

/* Errors: IO, BUDGET. */
gboolean hn_checkpoint_write(const HnCheckpoint *c, const char *path, HnBudget *budget, GError **error);
/* Errors: IO, FORMAT: it is no checkpoint; BUDGET. */
HnCheckpoint *hn_checkpoint_read(const char *path, HnBudget *budget, GError **error);

G_END_DECLS
