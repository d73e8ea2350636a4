/*
 * How long work tells its caller where it stands, and learns that it should stop.
 *
 * A job takes a const HnProgress * (NULL: nobody listens), calls hn_progress_tell() now and then (cheap, from any
 * thread) and hn_progress_stop() wherever it can end cleanly.
 */
#pragma once

#include <glib.h>

#include "base/error.h"

G_BEGIN_DECLS

/* what: a few words such as "reading samples"; total is 0 where it is not known */
typedef void (*HnProgressFn)(gpointer data, const char *what, guint64 done, guint64 total);

typedef struct {
    HnProgressFn fn; /* may be NULL */
    gpointer data;
    const gint *cancel; /* atomic; not 0: please stop; may be NULL */
} HnProgress;

static inline void hn_progress_tell(const HnProgress *progress, const char *what, guint64 done, guint64 total)
{
    if (progress && progress->fn)
        progress->fn(progress->data, what, done, total);
}

/* TRUE with HN_ERROR_INTERRUPTED set when the user wants to stop */
static inline gboolean hn_progress_stop(const HnProgress *progress, GError **error)
{
    if (!progress || !progress->cancel || !g_atomic_int_get(progress->cancel))
        return FALSE;
    g_set_error_literal(error, HN_ERROR, HN_ERROR_INTERRUPTED, "interrupted");
    return TRUE;
}

G_END_DECLS
