#include "check/guard.h"

#include <math.h>

#include "base/error.h"
#include "check/outputs.h"
#include "check/samples.h"

#define SPARE 512 /* bytes that any file may grow by: a recipe, an axis that became an input */

gboolean hn_guard_speed(const HnEffect *e, double most, const char *what, GError **error)
{
    const HnDecision decision = hn_decide(e, most);
    g_autofree char *interval =
        isfinite(e->sure_lo) ? g_strdup_printf(", 99.9%% interval %.3f to %.3f", e->sure_lo, e->sure_hi) : g_strdup("");
    if (decision == HN_LOST)
        g_set_error(error, HN_ERROR, HN_ERROR_GUARD, "%s takes %.3f of the time of the original, more than %.3f%s",
                    what, e->effect, most, interval);
    else if (decision == HN_UNDECIDED)
        g_set_error(
            error, HN_ERROR, HN_ERROR_NOISE,
            "it is too noisy, or too near, to tell whether %s takes more than %.3f of the time of the original: %.3f%s",
            what, most, e->effect, interval);
    return decision == HN_WON;
}

static gboolean run(HnModel *m, const HnBackend *backend, const HnSessionOptions *o, HnTensor *const *in,
                    GError **error)
{
    g_autoptr(HnSession) s = hn_session_new(m, backend, o, error);
    const int n = s != NULL ? hn_session_n_inputs(s) : 0;
    gboolean ok = s != NULL;
    g_autofree HnTensor **own = g_new0(HnTensor *, (gsize)n + 1);
    for (int i = 0; ok && i < n; i++)
        ok = in[i] == NULL || (own[i] = hn_input_for(hn_session_input(s, i), in[i], o->budget, error)) != NULL;
    HnTensor **out = ok ? hn_outputs_run(s, own, o->budget, error) : NULL;
    for (int i = 0; i < n; i++)
        hn_tensor_unref(own[i]);
    hn_outputs_free(out, s != NULL ? hn_session_n_outputs(s) : 0);
    return out != NULL;
}

gboolean hn_guard_runs(HnModel *m, const HnBackend *backend, const HnSessionOptions *o, HnTensor *const *in,
                       const char *what, GError **error)
{
    g_autoptr(GError) why = NULL;
    if (in == NULL || run(m, backend, o, in, &why))
        return TRUE;
    if (hn_samples_is_final(why))
        g_propagate_error(error, g_steal_pointer(&why));
    else
        g_set_error(error, HN_ERROR, HN_ERROR_GUARD, "%s does not run as it was written: %s", what, why->message);
    return FALSE;
}

guint64 hn_guard_room(guint64 bytes)
{
    return bytes + MAX(bytes / 20, SPARE);
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
