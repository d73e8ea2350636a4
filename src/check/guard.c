#include "check/guard.h"

#include "base/error.h"

#define SPARE 4096 /* bytes that any file may grow by */

gboolean hn_is_slower(const HnEffect *e, double most, HnSurety by)
{
    return by == HN_BY_INTERVAL ? e->lo > most : !(e->effect <= most);
}

gboolean hn_guard_speed(const HnEffect *e, double most, HnSurety by, const char *what, GError **error)
{
    if (!hn_is_slower(e, most, by))
        return TRUE;
    g_set_error(error, HN_ERROR, HN_ERROR_GUARD, "%s takes %.3f of the time of the original, more than %.3f", what,
                e->effect, most);
    return FALSE;
}

guint64 hn_guard_room(guint64 bytes)
{
    return bytes + MAX(bytes / 10, SPARE);
}

gboolean hn_guard_smaller(guint64 now, guint64 before, const char *what, GError **error)
{
    if (now < before)
        return TRUE;
    g_set_error(error, HN_ERROR, HN_ERROR_GUARD, "%s has %" G_GUINT64_FORMAT " bytes, not less than %" G_GUINT64_FORMAT,
                what, now, before);
    return FALSE;
}

gboolean hn_guard_size(guint64 now, guint64 most, const char *option, const char *what, GError **error)
{
    if (most == 0 || now <= most)
        return TRUE;
    g_set_error(error, HN_ERROR, HN_ERROR_GUARD,
                "%s has %" G_GUINT64_FORMAT " bytes, more than the %" G_GUINT64_FORMAT " of '%s'", what, now, most,
                option);
    return FALSE;
}
