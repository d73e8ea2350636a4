#include "verdict.h"

#include <math.h>

#include "base/error.h"
#include "base/text.h"

#define NAMED 3 /* names in a line; of more the number */

gboolean hn_verdict_in_full(const HnContext *ctx)
{
    return ctx->common.verbose > 0 || ctx->common.report != NULL || ctx->common.format == HN_FORMAT_MD ||
           ctx->common.format == HN_FORMAT_HTML;
}

void hn_verdict_size(HnReport *report, guint64 before, guint64 after)
{
    g_autofree char *a = hn_text_size(before), *b = hn_text_size(after);
    if (after > 0)
        hn_report_fact(report, "size", "%s, %.3g of %s", b, (double)after / (double)before, a);
    else
        hn_report_fact(report, "size", "not known, the original has %s", a);
}

/* Of times over times, as speeds over speeds: "1.85 times as fast (99.9 %: 1.79 to 1.92)" */
static char *speed_text(const HnEffect *e)
{
    g_autofree char *interval = isfinite(e->sure_lo) && isfinite(e->sure_hi)
                                    ? g_strdup_printf(" (99.9 %%: %.3g to %.3g)", 1 / e->sure_hi, 1 / e->sure_lo)
                                    : g_strdup("");
    return g_strdup_printf("%.3g times as fast%s", 1 / e->effect, interval);
}

void hn_verdict_speed(HnReport *report, const HnSpeedup *s, int threads, const char *why)
{
    if (s == NULL) {
        hn_report_fact(report, "speed", "not measured%s%s", why != NULL ? ": " : "", why != NULL ? why : "");
        return;
    }
    g_autofree char *before = hn_text_time(s->old_ms / 1e3), *after = hn_text_time(s->new_ms / 1e3),
                    *speed = speed_text(&s->effect);
    if (s->same)
        hn_report_fact(report, "speed", "as before, since the same kernels run: %s, %d thread%s", before, threads,
                       threads == 1 ? "" : "s");
    else
        hn_report_fact(report, "speed", "%s, %s instead of %s, %d thread%s", speed, after, before, threads,
                       threads == 1 ? "" : "s");
}

char *hn_verdict_names(const GPtrArray *names)
{
    GString *text = g_string_new(NULL);
    for (guint i = 0; i < MIN(names->len, NAMED); i++)
        g_string_append_printf(text, "%s'%s'", i > 0 ? ", " : "", (const char *)names->pdata[i]);
    if (names->len > NAMED)
        g_string_append_printf(text, " and %u more", names->len - NAMED);
    return g_string_free(text, FALSE);
}

gboolean hn_verdict_judges(HnContext *ctx, const HnScorer *s, gboolean force, GError **error)
{
    g_autoptr(GPtrArray) empty = hn_scorer_empty(s);
    if (empty->len == 0)
        return TRUE;
    g_autofree char *names = hn_verdict_names(empty);
    if ((int)empty->len == hn_scorer_n_outputs(s) && !force) {
        g_set_error(error, HN_ERROR, HN_ERROR_GUARD,
                    "outputs are empty in all samples: nothing tells whether another model is right");
        return FALSE;
    }
    hn_context_warn(ctx, "judged by nothing, since empty in all samples: %s", names);
    return TRUE;
}
