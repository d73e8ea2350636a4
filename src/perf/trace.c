#include "perf/trace.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/text.h"

#define FLUSH 65536
#define HOST 1 /* tracks */
#define DEVICE 2
#define COPIES 3
#define NAME_MAX_CHARS 200 /* of a name in a trace */

/* --- trace -------------------------------------------------------------------------------------------------- */

/* s as a JSON string, cut where it is very long. */
static void put_string(GString *out, const char *s)
{
    g_autofree char *valid = g_utf8_make_valid(s, -1);
    int n = 0;
    g_string_append_c(out, '"');
    for (const char *p = valid; *p && n < NAME_MAX_CHARS; p = g_utf8_next_char(p), n++) {
        gunichar c = g_utf8_get_char(p);
        if (c == '"' || c == '\\')
            g_string_append_printf(out, "\\%c", (int)c);
        else if (c < 0x20)
            g_string_append_printf(out, "\\u%04x", c);
        else
            g_string_append_unichar(out, c);
    }
    g_string_append_c(out, '"');
}

/* A number with a point in any locale. */
static void put_us(GString *out, const char *key, double us)
{
    char text[G_ASCII_DTOSTR_BUF_SIZE];
    g_string_append_printf(out, ",\"%s\":%s", key, g_ascii_formatd(text, sizeof text, "%.5f", us));
}

typedef struct {
    const HnProfile *p;
    HnOutFile *file;
    GString *text;
} Trace;

/* Whole nanoseconds since measuring began. */
static guint64 to_ns(const Trace *t, guint64 ticks)
{
    return (guint64)((double)(ticks - t->p->first) * t->p->ticks.ns + 0.5);
}

static gboolean flush(Trace *t, gsize least, GError **error)
{
    if (t->text->len < least)
        return TRUE;
    gboolean ok = hn_out_write(t->file, t->text->str, t->text->len, error);
    g_string_truncate(t->text, 0);
    return ok;
}

/*
 * The head of a complete event ("ph":"X"), which the caller ends.
 *
 * Viewers turn microseconds into whole nanoseconds, some by rounding and some by cutting off, and drop an event that
 * does not lie within or behind the one before. So both ends are whole nanoseconds, where one step's end is the next
 * one's start; a quarter more, so that cutting off finds the same ones; and the end somewhat earlier than the start of
 * what follows, the deeper the more, so that the rounding of a sum start + duration cannot turn them round.
 */
static void put_event(Trace *t, const char *name, const char *category, const HnSpan *s, int depth)
{
    const guint64 start = to_ns(t, s->start), end = to_ns(t, s->end);
    const double less = 0.25 + MIN(depth, 8) / 64.0; /* ns; below a half, which would be rounded */
    g_string_append_printf(t->text, ",\n{\"ph\":\"X\",\"pid\":1,\"tid\":%d,\"name\":",
                           s->moves    ? COPIES
                           : s->device ? DEVICE
                                       : HOST);
    put_string(t->text, name);
    g_string_append(t->text, ",\"cat\":");
    put_string(t->text, category);
    put_us(t->text, "ts", ((double)start + 0.25) * 1e-3);
    put_us(t->text, "dur", end > start ? ((double)(end - start) - less) * 1e-3 : 0);
}

static void put_shapes(GString *out, const char *key, char *const *shapes)
{
    g_string_append_printf(out, "\"%s\":[", key);
    for (int i = 0; shapes[i]; i++) {
        g_string_append(out, i ? "," : "");
        put_string(out, shapes[i]);
    }
    g_string_append_c(out, ']');
}

static void put_span(Trace *t, const HnSpan *s)
{
    const HnProfileRow *row = hn_profile_row(t->p, s);
    const HnProfileCall *call = hn_profile_call(t->p, s);
    put_event(t, row ? row->name : "?", row ? row->op : "?", s, s->depth + 1);
    g_string_append(t->text, ",\"args\":{\"kernel\":");
    put_string(t->text, s->kernel ? s->kernel->name : "ref");
    if (s->launches > 0)
        g_string_append_printf(t->text, ",\"kernels\":%u", s->launches);
    if (call) {
        g_string_append(t->text, ",\"shapes\":{");
        put_shapes(t->text, "in", call->in);
        g_string_append_c(t->text, ',');
        put_shapes(t->text, "out", call->out);
        g_string_append_printf(t->text, "},\"flops\":%.0f,\"bytes\":%.0f", call->cost.flops, call->cost.bytes);
    }
    g_string_append(t->text, "}}");
}

static void put_grid(GString *out, const char *key, const guint *n)
{
    g_string_append_printf(out, ",\"%s\":[%u,%u,%u]", key, n[0], n[1], n[2]);
}

/* A kernel or copy of the run with records. */
static void put_record(Trace *t, const HnProfileRun *run, const HnProfileRecord *x)
{
    const HnDeviceRecord *r = &x->record;
    const HnProfileRow *row = x->row >= 0 ? t->p->rows->pdata[x->row] : NULL;
    const double tick = t->p->ticks.ns;
    const gboolean kernel = r->kind == HN_WORK_KERNEL, moves = r->kind == HN_WORK_UPLOAD || r->kind == HN_WORK_DOWNLOAD;
    const HnSpan s = { .start = run->origin + (guint64)(r->start / tick),
                       .end = run->origin + (guint64)(r->end / tick),
                       .device = TRUE,
                       .moves = moves };
    put_event(t, kernel ? r->name : hn_work_kind_name(r->kind), hn_work_kind_name(r->kind), &s, 1);
    g_string_append(t->text, ",\"args\":{\"node\":");
    put_string(t->text, row ? row->name : "-");
    if (kernel) {
        put_grid(t->text, "grid", r->grid);
        put_grid(t->text, "block", r->block);
        g_string_append_printf(t->text, ",\"registers\":%u,\"shared_bytes\":%u", r->registers, r->shared);
    } else {
        g_string_append_printf(t->text, ",\"bytes\":%" G_GUINT64_FORMAT, r->bytes);
    }
    g_string_append(t->text, "}}");
}

static gboolean is_full(const Trace *t)
{
    return hn_out_tell(t->file) + t->text->len > HN_TRACE_BYTES;
}

static gboolean put_records(Trace *t, const HnProfileRun *r, GError **error)
{
    if (r->n_records == 0)
        return TRUE;
    put_event(t, "run with records", "run", &(HnSpan){ .start = r->traced_start, .end = r->traced_end }, 0);
    g_string_append(t->text, "}");
    for (gsize k = 0; k < r->n_records && !is_full(t); k++) {
        put_record(t, r, &r->records[k]);
        if (!flush(t, FLUSH, error))
            return FALSE;
    }
    return TRUE;
}

static int by_start(gconstpointer a, gconstpointer b)
{
    const HnProfileRun *x = *(HnProfileRun *const *)a, *y = *(HnProfileRun *const *)b;
    return (x->start > y->start) - (x->start < y->start);
}

/* The order in which events nest: steps of a sub-graph were noted before the step that holds them. */
static int outer_first(const void *a, const void *b)
{
    const HnSpan *x = a, *y = b;
    if (x->start != y->start)
        return x->start > y->start ? 1 : -1;
    return x->depth != y->depth ? x->depth - y->depth : (x->end > y->end) - (x->end < y->end);
}

static void put_track(GString *text, int track, const char *name)
{
    g_string_append_printf(text,
                           ",\n{\"ph\":\"M\",\"pid\":1,\"tid\":%d,\"name\":\"thread_name\",\"args\":{\"name\":\"%s\"}}",
                           track, name);
}

static gboolean any_on_device(const HnProfile *p)
{
    for (guint i = 0; i < p->traces->len; i++) {
        const HnProfileRun *r = p->traces->pdata[i];
        for (gsize k = 0; k < r->n; k++)
            if (r->spans[k].device)
                return TRUE;
    }
    return FALSE;
}

static gboolean put_spans(Trace *t, const HnProfileRun *r, GError **error)
{
    qsort(r->spans, r->n, sizeof r->spans[0], outer_first);
    put_event(t, "run", "run", &(HnSpan){ .start = r->start, .end = r->end }, 0);
    g_string_append(t->text, "}");
    for (gsize k = 0; k < r->n && !is_full(t); k++) {
        put_span(t, &r->spans[k]);
        if (!flush(t, FLUSH, error))
            return FALSE;
    }
    return TRUE;
}

static gboolean put_runs(Trace *t, GError **error)
{
    g_ptr_array_sort(t->p->traces, by_start);
    for (guint i = 0; i < t->p->traces->len && !is_full(t); i++) {
        const HnProfileRun *r = t->p->traces->pdata[i];
        const gboolean before = r->n_records > 0 && r->traced_start < r->start;
        if ((before && !put_records(t, r, error)) || !put_spans(t, r, error) || (!before && !put_records(t, r, error)))
            return FALSE;
    }
    return TRUE;
}

gboolean hn_trace_write(const HnProfile *p, const char *model, const char *path, GError **error)
{
    g_autoptr(HnOutFile) file = hn_out_open(path, error);
    g_autoptr(GString) text = g_string_new("{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n"
                                           "{\"ph\":\"M\",\"pid\":1,\"name\":\"process_name\",\"args\":{\"name\":");
    Trace t = { p, file, text };
    if (!file)
        return FALSE;
    put_string(text, model);
    g_string_append(text, "}}");
    put_track(text, HOST, "steps");
    if (any_on_device(p)) {
        put_track(text, DEVICE, "device");
        put_track(text, COPIES, "copies");
    }
    if (!put_runs(&t, error))
        return FALSE;
    g_string_append(text, "\n]}\n");
    return flush(&t, 0, error) && hn_out_commit(file, error);
}

/* --- folded stacks ------------------------------------------------------------------------------------------ */

/* A frame: ';' and line breaks have a meaning. */
static void put_frame(GString *out, const char *name, gsize n)
{
    g_autofree char *part = g_strndup(name, n), *clean = hn_text_clean(part);
    g_strdelimit(clean, ";", ':');
    if (out->len)
        g_string_append_c(out, ';');
    g_string_append(out, clean);
}

static void put_path(GString *out, const HnProfile *p, const HnProfileRow *r)
{
    if (r->parent >= 0)
        put_path(out, p, p->rows->pdata[r->parent]);
    const char *at = r->name;
    for (const char *slash; r->node && (slash = strchr(at, '/')) && slash[1]; at = slash + 1)
        if (slash > at)
            put_frame(out, at, (gsize)(slash - at));
    g_autofree char *leaf = g_strdup_printf("%s (%s)", at, r->op);
    put_frame(out, leaf, strlen(leaf));
}

static void put_line(GString *out, const GString *stack, double ms)
{
    guint64 ns = ms > 0 ? (guint64)llround(ms * 1e6) : 0;
    if (ns)
        g_string_append_printf(out, "%s %" G_GUINT64_FORMAT "\n", stack->str, ns);
}

gboolean hn_folded_write(const HnProfile *p, const char *model, const char *path, GError **error)
{
    g_autoptr(GString) text = g_string_new(NULL), stack = g_string_new(NULL);
    put_frame(stack, model, strlen(model));
    gsize root = stack->len;
    for (guint i = 0; i < p->rows->len; i++) {
        const HnProfileRow *r = p->rows->pdata[i];
        g_string_truncate(stack, root);
        put_path(stack, p, r);
        put_line(text, stack, r->ms);
    }
    g_string_truncate(stack, root);
    put_frame(stack, "outside nodes", strlen("outside nodes"));
    put_line(text, stack, p->outside_ms);
    g_string_truncate(stack, root);
    put_frame(stack, "disturbed", strlen("disturbed"));
    put_line(text, stack, p->disturbed_ms);
    return hn_out_save(path, text->str, text->len, error);
}
