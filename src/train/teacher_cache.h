/*
 * HnTeacherCache: what a teacher makes of each sample of a set, computed once: epochs behind the first cost no pass of
 * it. Rows are made in the set's order, so that they do not depend on who asks for which first: whoever goes on from a
 * checkpoint has the same.
 *
 * Of sets that augmentation changes there is nothing to keep.
 */
#pragma once

#include "base/progress.h"
#include "data/data.h"
#include "train/forward.h"

G_BEGIN_DECLS

typedef struct HnTeacherCache HnTeacherCache;

typedef struct {
    HnForward *teacher;
    guint n;            /* values that it makes: objectives */
    const HnData *data; /* outlives the cache */
    int batch;          /* samples at a time */
    gsize most;         /* bytes; of more there is no cache */
    const char *path;   /* a file that keeps it, read where it is of the same key, else written; NULL: none */
    const char *key;    /* a hash of the teacher, the data and what is compared; NULL where path is */
    HnBudget *budget;
    const HnProgress *progress;
} HnTeacherCacheOptions;

/* *made NULL: it would be larger, or a value has no row for each sample. Errors: those of running and of loading, IO,
 * INTERRUPTED. */
gboolean hn_teacher_cache_new(const HnTeacherCacheOptions *o, HnTeacherCache **made, GError **error);
void hn_teacher_cache_free(HnTeacherCache *c);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(HnTeacherCache, hn_teacher_cache_free)

gboolean hn_teacher_cache_is_of(const HnTeacherCache *c, const HnData *d);
gsize hn_teacher_cache_bytes(const HnTeacherCache *c);
gboolean hn_teacher_cache_was_read(const HnTeacherCache *c); /* from its file */
/* Rows of value i for the samples of a batch of those data. A new tensor. Errors: BUDGET. */
HnTensor *hn_teacher_cache_rows(const HnTeacherCache *c, const HnSample *s, guint i, GError **error);

G_END_DECLS
