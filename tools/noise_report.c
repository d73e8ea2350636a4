#include "noise_report.h"

#include <math.h>
#include <string.h>

#include "base/jsonread.h"
#include "base/text.h"

#define WORST 16u /* outliers in the report */

void hn_report_noise(const HnNoise *n, JsonObject *o)
{
    JsonObject *noise = json_object_new();
    JsonArray *list = json_array_new();
    const struct {
        const char *name;
        double x;
    } times[] = { { "wall_ms", n->wall_ms },           { "cpu_ms", n->cpu_ms },
                  { "steal_ms", n->steal_ms },         { "waiting_ms", n->waiting_ms },
                  { "throttled_ms", n->throttled_ms }, { "mhz_before", n->mhz_before },
                  { "mhz_after", n->mhz_after } };
    for (gsize i = 0; i < G_N_ELEMENTS(times); i++)
        json_object_set_double_member(noise, times[i].name, times[i].x);
    const struct {
        const char *name;
        gint64 n;
    } counts[] = { { "minor_faults", n->minor_faults },
                   { "major_faults", n->major_faults },
                   { "waits", n->waits },
                   { "preemptions", n->preemptions },
                   { "migrations", n->migrations } };
    for (gsize i = 0; i < G_N_ELEMENTS(counts); i++)
        hn_json_set_count(noise, counts[i].name, counts[i].n);
    g_autofree const char **causes = hn_noise_causes(n);
    for (int i = 0; causes[i]; i++)
        json_array_add_string_element(list, causes[i]);
    json_object_set_array_member(noise, "causes", list);
    json_object_set_object_member(o, "noise", noise);
}

/* Outliers with a cause; HN_CAUSES: without one that is known. */
static gint64 count_cause(const HnOutliers *x, int bit)
{
    gint64 n = 0;
    for (guint i = 0; i < x->n; i++)
        n += bit == HN_CAUSES ? x->x[i].causes == 0 : (x->x[i].causes >> bit) & 1;
    return n;
}

static JsonObject *outlier_object(const HnOutlier *x)
{
    JsonObject *one = json_object_new();
    JsonArray *list = json_array_new();
    json_object_set_int_member(one, "run", (gint64)x->run);
    json_object_set_double_member(one, "ms", x->ms);
    for (int bit = 0; bit < HN_CAUSES; bit++)
        if (x->causes & (1u << bit))
            json_array_add_string_element(list, hn_cause_name(bit));
    json_object_set_array_member(one, "causes", list);
    return one;
}

void hn_report_outliers(const HnOutliers *x, JsonObject *o)
{
    JsonObject *outliers = json_object_new(), *causes = json_object_new();
    JsonArray *worst = json_array_new();
    json_object_set_double_member(outliers, "limit_ms", x->limit_ns * 1e-6);
    json_object_set_int_member(outliers, "n", (gint64)x->seen);
    for (int bit = 0; bit <= HN_CAUSES; bit++)
        json_object_set_int_member(causes, hn_cause_name(bit), count_cause(x, bit));
    for (guint i = 0; i < MIN(x->n, WORST); i++)
        json_array_add_object_element(worst, outlier_object(&x->x[i]));
    json_object_set_object_member(outliers, "causes", causes);
    json_object_set_array_member(outliers, "worst", worst);
    json_object_set_object_member(o, "outliers", outliers);
}

/* How long a cause took; NaN where that is not measured. */
static double cause_ms(const HnNoise *n, const char *cause)
{
    return !strcmp(cause, "steal")     ? n->steal_ms
           : !strcmp(cause, "quota")   ? n->throttled_ms
           : !strcmp(cause, "waiting") ? n->waiting_ms
                                       : NAN;
}

char *hn_noise_line(const HnNoise *n)
{
    g_autofree const char **causes = hn_noise_causes(n);
    g_autofree char *wall = hn_text_time(n->wall_ms * 1e-3);
    g_autoptr(GString) text = g_string_new(NULL);
    for (int i = 0; causes[i]; i++) {
        const double ms = cause_ms(n, causes[i]);
        g_autofree char *time = isnan(ms) ? NULL : hn_text_time(ms * 1e-3);
        g_string_append_printf(text, "%s%s%s%s", i ? ", " : "", causes[i], time ? " " : "", time ? time : "");
    }
    return text->len ? g_strdup_printf("noise in %s: %s", wall, text->str) : NULL;
}

char *hn_outliers_line(const HnOutliers *x, guint64 runs)
{
    g_autoptr(GString) text = g_string_new(NULL);
    if (x->n == 0)
        return NULL;
    for (int bit = 0; bit <= HN_CAUSES; bit++) {
        const gint64 n = count_cause(x, bit);
        if (n)
            g_string_append_printf(text, "%s%s %" G_GINT64_FORMAT, text->len ? ", " : "", hn_cause_name(bit), n);
    }
    g_autofree char *worst = hn_text_time(x->x[0].ms * 1e-3);
    return g_strdup_printf("%" G_GUINT64_FORMAT " of %" G_GUINT64_FORMAT
                           " runs took over %g x the median, up to %s: %s",
                           x->seen, runs, HN_OUTLIER, worst, text->str);
}
