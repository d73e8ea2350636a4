#include "perf/trace.h"

#include <math.h>
#include <string.h>

#include "base/file.h"
#include "base/text.h"

#define FLUSH 65536
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
    g_string_append_printf(out, ",\"%s\":%s", key, g_ascii_formatd(text, sizeof text, "%.3f", us));
}

typedef struct {
    const HnProfile *p;
    HnOutFile *file;
    GString *text;
} Trace;

static double to_us(const Trace *t, guint64 ticks)
{
    return (double)(ticks - t->p->first) * t->p->ticks.ns * 1e-3;
}

static gboolean flush(Trace *t, gsize least, GError **error)
{
    if (t->text->len < least)
        return TRUE;
    gboolean ok = hn_out_write(t->file, t->text->str, t->text->len, error);
    g_string_truncate(t->text, 0);
    return ok;
}

/* The head of a complete event ("ph":"X"), which the caller ends. */
static void put_event(Trace *t, const char *name, const char *category, guint64 start, guint64 end)
{
    g_string_append(t->text, ",\n{\"ph\":\"X\",\"pid\":1,\"tid\":1,\"name\":");
    put_string(t->text, name);
    g_string_append(t->text, ",\"cat\":");
    put_string(t->text, category);
    put_us(t->text, "ts", to_us(t, start));
    put_us(t->text, "dur", (double)(end - start) * t->p->ticks.ns * 1e-3);
}

static void put_span(Trace *t, const HnSpan *s)
{
    const HnProfileRow *row = hn_profile_row(t->p, s);
    put_event(t, row ? row->name : "?", row ? row->op : "?", s->start, s->end);
    g_string_append(t->text, ",\"args\":{\"kernel\":");
    put_string(t->text, s->kernel ? s->kernel->name : "ref");
    g_string_append(t->text, "}}");
}

static int by_start(gconstpointer a, gconstpointer b)
{
    const HnProfileRun *x = *(HnProfileRun *const *)a, *y = *(HnProfileRun *const *)b;
    return (x->start > y->start) - (x->start < y->start);
}

static gboolean put_runs(Trace *t, GError **error)
{
    g_ptr_array_sort(t->p->traces, by_start);
    for (guint i = 0; i < t->p->traces->len; i++) {
        const HnProfileRun *r = t->p->traces->pdata[i];
        put_event(t, "run", "run", r->start, r->end);
        g_string_append(t->text, "}");
        for (gsize k = 0; k < r->n; k++) {
            if (hn_out_tell(t->file) + t->text->len > HN_TRACE_BYTES)
                return TRUE;
            put_span(t, &r->spans[k]);
            if (!flush(t, FLUSH, error))
                return FALSE;
        }
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
    g_string_append(text,
                    "}},\n{\"ph\":\"M\",\"pid\":1,\"tid\":1,\"name\":\"thread_name\",\"args\":{\"name\":\"steps\"}}");
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
    return hn_out_save(path, text->str, text->len, error);
}
