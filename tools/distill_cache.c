/* hone-distill: what the teacher makes of the samples is computed once, and may be kept in a file. */
#include <string.h>

#include "base/text.h"
#include "hone_distill.h"

#define MOST (1u << 30) /* bytes that are kept in memory */

static char *key_of(const Distill *q)
{
    g_autofree char *values = hn_forward_describe(q->teacher);
    g_autofree char *text =
        g_strdup_printf("%s %s %s %" G_GINT64_FORMAT " %s %" G_GUINT64_FORMAT " %g %d", q->teacher_hash, q->data_hash,
                        values, hn_data_count(q->data), q->p->val != NULL ? "val" : "", q->ctx->common.seed,
                        q->p->val_part, distill_at_once(q, q->parts, q->data));
    return g_compute_checksum_for_string(G_CHECKSUM_SHA256, text, -1);
}

gboolean distill_open_cache(Distill *q, GError **error)
{
    if (q->teacher == NULL)
        return TRUE;
    if (q->p->cache != NULL && q->augment != NULL)
        hn_context_warn(q->ctx, "'--cache-teacher' keeps nothing: samples are changed at random");
    if (q->augment != NULL || q->p->no_cache)
        return TRUE;
    g_autofree char *key = key_of(q);
    const HnTeacherCacheOptions o = { .teacher = q->teacher,
                                      .n = q->objectives->len,
                                      .data = q->data,
                                      .batch = distill_at_once(q, q->parts, q->data),
                                      .most = MOST,
                                      .path = q->p->cache,
                                      .key = key,
                                      .budget = q->ctx->budget,
                                      .progress = &q->ctx->progress };
    if (!hn_teacher_cache_new(&o, &q->cache, error))
        return FALSE;
    q->targets.cache = q->cache;
    if (q->cache == NULL) /* too large, or no row for each sample */
        return TRUE;
    g_autofree char *size = hn_text_size(hn_teacher_cache_bytes(q->cache));
    hn_context_note(q->ctx, 1, "what the teacher says of %" G_GINT64_FORMAT " samples: %s, %s", hn_data_count(q->data),
                    size, hn_teacher_cache_was_read(q->cache) ? "read" : "computed");
    return TRUE;
}
