/* hone-distill: losses and metrics while it learns, as lines of a file and as a picture. */
#include <errno.h>
#include <glib/gstdio.h>
#include <math.h>

#include "base/jsonread.h"
#include "cli/plot.h"
#include "hone_distill.h"

static const char *const names[] = { "step", "epoch", "lr", "loss", "val_loss", "top1", "agreement" };

#define N_NAMES G_N_ELEMENTS(names)

static gboolean is_csv(const Distill *q)
{
    return g_str_has_suffix(q->p->log, ".csv");
}

/* Errors of writing are told when it is closed. */
static void put_row(const Distill *q, const double x[N_NAMES])
{
    g_autoptr(JsonObject) o = json_object_new();
    g_autoptr(GString) line = g_string_new(NULL);
    for (guint i = 0; i < N_NAMES; i++) {
        g_autofree char *text = isfinite(x[i]) ? hn_json_number(x[i]) : g_strdup("");
        g_string_append_printf(line, "%s%s", i > 0 ? "," : "", text);
        if (isfinite(x[i]))
            hn_json_set_number(o, names[i], x[i]);
    }
    g_autofree char *json = hn_json_line(o);
    fprintf(q->log, "%s\n", is_csv(q) ? line->str : json);
}

gboolean distill_open_log(Distill *q, gboolean append, GError **error)
{
    if (q->p->log == NULL)
        return TRUE;
    if ((q->log = g_fopen(q->p->log, append ? "a" : "w")) == NULL) {
        g_set_error(error, HN_ERROR, HN_ERROR_IO, "'%s': %s", q->p->log, g_strerror(errno));
        return FALSE;
    }
    for (guint i = 0; is_csv(q) && !append && i < N_NAMES; i++)
        fprintf(q->log, "%s%c", names[i], i + 1 < N_NAMES ? ',' : '\n');
    return TRUE;
}

void distill_log_step(const Distill *q, const HnFitStep *s, int64_t epoch)
{
    if (q->log != NULL)
        put_row(q, (const double[]){ (double)s->steps, (double)epoch, s->lr, s->loss, NAN, NAN, NAN });
}

void distill_log_epoch(const Distill *q, const HnEpoch *e)
{
    const HnJudgement *j = &e->judged;
    if (q->log == NULL)
        return;
    put_row(q, (const double[]){ (double)e->steps, (double)e->epoch, e->lr, NAN, j->loss, j->top1, j->agreement });
    fflush(q->log);
}

gboolean distill_close_log(Distill *q, GError **error)
{
    if (q->log == NULL)
        return TRUE;
    const gboolean bad = ferror(q->log) != 0, ok = fclose(q->log) == 0 && !bad;
    q->log = NULL;
    if (!ok)
        g_set_error(error, HN_ERROR, HN_ERROR_IO, "'%s' could not be written", q->p->log);
    return ok;
}

/* --- the picture -------------------------------------------------------------------------------------------------- */

static double loss_of(const HnEpoch *e)
{
    return e->loss;
}

static double judged_of(const HnEpoch *e)
{
    return e->judged.loss;
}

static double metric_of(const HnEpoch *e)
{
    const char *name;
    return 100 * distill_metric(&e->judged, &name);
}

static void put_points(GString *out, const GArray *epochs, double (*of)(const HnEpoch *e))
{
    for (guint i = 0; i < epochs->len; i++) {
        const HnEpoch *e = &g_array_index(epochs, HnEpoch, i);
        if (!isfinite(of(e)))
            continue;
        g_string_append_printf(out, "%" G_GINT64_FORMAT " ", e->epoch);
        hn_plot_number(out, of(e), '\n');
    }
    g_string_append(out, "e\n");
}

gboolean distill_plot(const Distill *q, GError **error)
{
    const GArray *epochs = hn_fit_epochs(q->fit);
    const gboolean metric = !isnan(q->after.top1) || !isnan(q->after.agreement);
    if (q->p->plot == NULL || epochs->len == 0)
        return TRUE;
    g_autoptr(GString) out = g_string_new(NULL);
    g_string_append(out, "set xlabel 'epoch'\nset ylabel 'loss'\nset logscale y\n");
    if (metric)
        g_string_append_printf(out, "set y2label '%s, %%'\nset y2tics\nset ytics nomirror\n",
                               isnan(q->after.top1) ? "as the teacher" : "top-1");
    g_string_append(out, "plot '-' using 1:2 with lines lw 2 title \"loss while learning\", "
                         "'-' using 1:2 with lines lw 2 title \"loss of validation\"");
    if (metric)
        g_string_append_printf(out, ", '-' using 1:2 axes x1y2 with linespoints lw 2 title \"%s\"",
                               isnan(q->after.top1) ? "as the teacher" : "top-1");
    g_string_append_c(out, '\n');
    put_points(out, epochs, loss_of);
    put_points(out, epochs, judged_of);
    if (metric)
        put_points(out, epochs, metric_of);
    return hn_plot_draw(q->p->plot, "900,500", out->str, error);
}
