/* Progress of work that is told by its time, as a number of parts that are all alike: of these there is no rate. */
#pragma once

#include "base/progress.h"

G_BEGIN_DECLS

#define HN_PROGRESS_PARTS ((guint64)1 << 20)

static inline void hn_progress_tell_time(const HnProgress *progress, const char *what, double seconds, double of)
{
    const double part = of > 0 ? CLAMP(seconds / of, 0, 1) : 0;
    hn_progress_tell(progress, what, (guint64)(part * (double)HN_PROGRESS_PARTS), HN_PROGRESS_PARTS);
}

G_END_DECLS
