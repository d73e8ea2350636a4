#include "base/error.h"

G_DEFINE_QUARK(hn - error - quark, hn_error)

int hn_error_exit_status(const GError *error)
{
    if (!error)
        return 0;
    if (error->domain != HN_ERROR)
        return 1;
    switch ((HnError)error->code) {
    case HN_ERROR_IO:
    case HN_ERROR_FORMAT:
    case HN_ERROR_GRAPH:
    case HN_ERROR_ATTRIBUTE:
    case HN_ERROR_SHAPE:
    case HN_ERROR_TYPE:
    case HN_ERROR_VALUE:
        return 1;
    case HN_ERROR_USAGE:
        return 2;
    case HN_ERROR_GUARD:
        return 3;
    case HN_ERROR_UNSUPPORTED:
        return 4;
    case HN_ERROR_NOISE:
        return 5;
    case HN_ERROR_BUDGET:
        return 6;
    case HN_ERROR_INTERRUPTED:
        return 130;
    }
    return 1;
}
