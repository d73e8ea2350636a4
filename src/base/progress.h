/*
 * How long work tells its caller where it stands, and learns that it should stop.
 *
 * A job takes a const HnProgress * (NULL: nobody listens), calls hn_progress_tell() now and then (cheap, from any
 * thread) and hn_progress_stop() wherever it can end cleanly.
 */
#pragma once

#include <glib.h>

#include "base/halt.h"

G_BEGIN_DECLS

/* what: a few words such as "reading samples"; total is 0 where it is not known */
typedef void (*HnProgressFn)(gpointer data, const char *what, guint64 done, guint64 total);

typedef struct {
    HnProgressFn fn; /* may be NULL */
    gpointer data;
    const gint *cancel; /* atomic: an HnHalt; may be NULL */
} HnProgress;

static inline void hn_progress_tell(const HnProgress *progress, const char *what, guint64 done, guint64 total)
{
    if (progress && progress->fn)
        progress->fn(progress->data, what, done, total);
}

/* TRUE with HN_ERROR_INTERRUPTED set when the user wants to stop, with HN_ERROR_BUDGET when the time limit was reached
 */
static inline gboolean hn_progress_stop(const HnProgress *progress, GError **error)
{
    return progress && !hn_halt_go(progress->cancel, error);
}

/* Work that failed was only cut short by the user: TRUE, and the error is gone; what was done before stands. */
static inline gboolean hn_progress_cut(GError **failure)
{
    if (!g_error_matches(*failure, HN_ERROR, HN_ERROR_INTERRUPTED))
        return FALSE;
    g_clear_error(failure);
    return TRUE;
}

G_END_DECLS
