/* hone-bench: the combinations of values that its options name. */
#include <math.h>
#include <string.h>

#include "base/text.h"
#include "hone_bench.h"

#define MAX_POINTS 10000

typedef enum { AXIS_DIM, AXIS_SHAPES, AXIS_THREADS, AXIS_PRECISION, AXIS_IO, AXIS_STREAMS } AxisKind;

typedef struct {
    AxisKind kind;
    char *name;
    char **words; /* the values, NULL at the end */
    guint n;
} Axis;

static void axis_clear(gpointer data)
{
    Axis *a = data;
    g_free(a->name);
    g_strfreev(a->words);
}

static void swept_clear(gpointer data)
{
    Swept *s = data;
    g_free(s->name);
    g_free(s->text);
}

/* Takes the words. */
static void add_axis(GArray *axes, AxisKind kind, const char *name, char **words)
{
    Axis a = { kind, g_strdup(name), words, g_strv_length(words) };
    g_array_append_val(axes, a);
}

static char **words_of(const GArray *numbers)
{
    g_autoptr(GStrvBuilder) b = g_strv_builder_new();
    for (guint i = 0; i < numbers->len; i++) {
        g_autofree char *text = g_strdup_printf("%" G_GINT64_FORMAT, g_array_index(numbers, gint64, i));
        g_strv_builder_add(b, text);
    }
    return g_strv_builder_end(b);
}

static gboolean has_axis(const GArray *axes, const char *name)
{
    for (guint i = 0; i < axes->len; i++)
        if (strcmp(g_array_index(axes, Axis, i).name, name) == 0)
            return TRUE;
    return FALSE;
}

static gboolean add_dim(const char *text, GArray *axes, GError **error)
{
    const char *eq = strrchr(text, '=');
    if (!eq || eq == text) {
        g_set_error(error, HN_ERROR, HN_ERROR_USAGE, "option '--dim': '%s' is not of the form NAME=N", text);
        return FALSE;
    }
    g_autoptr(GArray) values = hn_parse_ints(eq + 1, 0, G_MAXINT64, error);
    if (!values) {
        g_prefix_error(error, "option '--dim': ");
        return FALSE;
    }
    g_autofree char *name = g_strndup(text, (gsize)(eq - text));
    if (has_axis(axes, name)) {
        g_set_error(error, HN_ERROR, HN_ERROR_USAGE,
                    "option '--dim' names '%s' twice; several values of one are a list, such as %s=1,8", name, name);
        return FALSE;
    }
    add_axis(axes, AXIS_DIM, name, words_of(values));
    return TRUE;
}

/* --- --shapes ---------------------------------------------------------------------------------------------------- */

/* Where the shapes of an entry begin, "a:1x3/1x4": behind its last colon. */
static const char *shapes_in(const char *entry)
{
    const char *colon = strrchr(entry, ':');
    return colon ? colon + 1 : entry + strlen(entry);
}

/* One text in which each entry has one shape: the k-th, or the one that there is. */
static char *shapes_at(char *const *entries, guint k)
{
    GString *out = g_string_new(NULL);
    for (guint i = 0; entries[i]; i++) {
        const char *shapes = shapes_in(entries[i]);
        g_auto(GStrv) all = g_strsplit(shapes, "/", -1);
        g_string_append(out, i > 0 ? "," : "");
        g_string_append_len(out, entries[i], shapes - entries[i]);
        g_string_append(out, g_strv_length(all) > 1 ? all[k] : shapes);
    }
    return g_string_free(out, FALSE);
}

/* "x:1x3x8x8/1x3x16x16,mask:1x8/1x16" is two: entries with several shapes go through them together. */
static gboolean add_shapes(const Bench *b, GArray *axes, GError **error)
{
    if (!b->p->shapes)
        return TRUE;
    g_autofree char *all = g_strjoinv(",", b->p->shapes);
    g_auto(GStrv) entries = g_strsplit(all, ",", -1);
    guint n = 1;
    for (char **e = entries; *e; e++) {
        g_auto(GStrv) parts = g_strsplit(shapes_in(*e), "/", -1);
        const guint here = g_strv_length(parts);
        if (here > 1 && n > 1 && here != n) {
            g_set_error(error, HN_ERROR, HN_ERROR_USAGE,
                        "option '--shapes': '%s' has %u shapes, an input before it %u; they go together", *e, here, n);
            return FALSE;
        }
        n = MAX(n, here);
    }
    g_autoptr(GStrvBuilder) words = g_strv_builder_new();
    for (guint k = 0; k < n; k++) {
        g_autofree char *text = shapes_at(entries, k);
        g_strv_builder_add(words, text);
    }
    add_axis(axes, AXIS_SHAPES, "shapes", g_strv_builder_end(words));
    return TRUE;
}

/* --- precisions and inputs --------------------------------------------------------------------------------------- */

static gboolean add_precisions(const Bench *b, GArray *axes, GError **error)
{
    HnDtype half;
    char **words = g_strsplit(b->p->precision ? b->p->precision : "model", ",", -1);
    add_axis(axes, AXIS_PRECISION, "precision", words);
    for (; *words; words++)
        if (b->p->training.train ? !hn_tool_train_precision(b->ctx, *words, &half, error)
                                 : !hn_tool_precision(b->ctx, *words, error))
            return FALSE;
    return TRUE;
}

static const char *const io_names[] = { "reuse", "copy", "fresh", "device", "host", NULL }; /* by BenchIo */

static gboolean add_io(const Bench *b, GArray *axes, GError **error)
{
    char **words = g_strsplit(b->p->io ? b->p->io : "reuse", ",", -1);
    add_axis(axes, AXIS_IO, "io", words);
    for (; *words; words++)
        if (!g_strv_contains(io_names, *words)) {
            g_set_error(error, HN_ERROR, HN_ERROR_USAGE,
                        "option '--io': '%s' is none of reuse, copy, fresh, device, host", *words);
            return FALSE;
        }
    return TRUE;
}

/* In the order in which labels name them; the last one changes fastest. */
static gboolean make_axes(const Bench *b, GArray *axes, GError **error)
{
    for (char **p = b->p->dim; p && *p; p++)
        if (!add_dim(*p, axes, error))
            return FALSE;
    if (!add_shapes(b, axes, error) || !add_precisions(b, axes, error) || !add_io(b, axes, error))
        return FALSE;
    add_axis(axes, AXIS_THREADS, "threads", words_of(b->ctx->common.thread_list));
    if (b->p->streams) {
        g_autoptr(GArray) streams = hn_parse_ints(b->p->streams, 1, BENCH_STREAMS, error);
        if (!streams)
            return FALSE;
        add_axis(axes, AXIS_STREAMS, "streams", words_of(streams));
    }
    return TRUE;
}

/* --- points ------------------------------------------------------------------------------------------------------ */

static gboolean set_value(Point *point, const Axis *a, const char *word, GError **error)
{
    const gint64 number = g_ascii_strtoll(word, NULL, 10);
    switch (a->kind) {
    case AXIS_DIM:
        hn_shapes_set_dim(point->shapes, a->name, number);
        return TRUE;
    case AXIS_SHAPES:
        return hn_shapes_parse(point->shapes, word, error);
    case AXIS_THREADS:
        point->threads = (int)number;
        return TRUE;
    case AXIS_STREAMS:
        point->streams = (int)number;
        return TRUE;
    case AXIS_PRECISION:
        point->precision = g_strdup(word);
        return TRUE;
    default:
        while (strcmp(io_names[point->io], word) != 0)
            point->io++;
        if (point->io == BENCH_HOST)
            point->io = BENCH_REUSE;
        return TRUE;
    }
}

/* "batch=8,t=2": what sets the point apart. */
static char *label_of(const Point *point)
{
    g_autoptr(GString) label = g_string_new(NULL);
    for (guint i = 0; i < point->swept->len; i++) {
        const Swept *s = &g_array_index(point->swept, Swept, i);
        const gboolean bare = !s->is_dim && (strcmp(s->name, "shapes") == 0 || strcmp(s->name, "io") == 0);
        const char *name = !s->is_dim && strcmp(s->name, "threads") == 0 ? "t" : s->name;
        g_string_append_printf(label, "%s%s%s%s", i ? "," : "", bare ? "" : name, bare ? "" : "=", s->text);
    }
    return g_strdup(label->str);
}

/* With what is swept of it; shapes are NULL on failure. */
static Point *make_point(const GArray *axes, guint index, GError **error)
{
    Point *point = g_new0(Point, 1);
    gboolean ok = TRUE;
    point->shapes = hn_shapes_new();
    point->swept = g_array_new(FALSE, FALSE, sizeof(Swept));
    g_array_set_clear_func(point->swept, swept_clear);
    for (guint i = axes->len; ok && i-- > 0;) {
        const Axis *a = &g_array_index(axes, Axis, i);
        const char *word = a->words[index % a->n];
        index /= a->n;
        ok = set_value(point, a, word, error);
        const gboolean is_dim = a->kind == AXIS_DIM;
        Swept s = { g_strdup(a->name), g_strdup(word), is_dim,
                    is_dim || a->kind == AXIS_THREADS || a->kind == AXIS_STREAMS };
        if (a->n > 1)
            g_array_prepend_val(point->swept, s);
        else
            swept_clear(&s);
    }
    const Swept *one = point->swept->len == 1 ? &g_array_index(point->swept, Swept, 0) : NULL;
    point->x = one && one->is_number ? g_ascii_strtod(one->text, NULL) : NAN;
    point->x_name = one && one->is_number ? g_strdup(one->name) : NULL;
    point->label = label_of(point);
    if (!ok)
        g_clear_pointer(&point->shapes, hn_shapes_free);
    return point;
}

static void point_free(gpointer data)
{
    Point *point = data;
    hn_shapes_free(point->shapes);
    g_array_unref(point->swept);
    g_free(point->precision);
    g_free(point->label);
    g_free(point->x_name);
    g_free(point->batch_dim);
    g_free(point);
}

gboolean bench_points(Bench *b, GError **error)
{
    g_autoptr(GArray) axes = g_array_new(FALSE, FALSE, sizeof(Axis));
    g_array_set_clear_func(axes, axis_clear);
    guint n = 1;
    if (!make_axes(b, axes, error))
        return FALSE;
    for (guint i = 0; i < axes->len; i++) {
        const guint values = g_array_index(axes, Axis, i).n;
        if (values == 0 || values > MAX_POINTS / n) {
            g_set_error(error, HN_ERROR, HN_ERROR_USAGE, "the sweep has more than %d points", MAX_POINTS);
            return FALSE;
        }
        n *= values;
    }
    b->points = g_ptr_array_new_with_free_func(point_free);
    for (guint i = 0; i < n; i++) {
        Point *point = make_point(axes, i, error);
        g_ptr_array_add(b->points, point);
        if (!point->shapes)
            return FALSE;
    }
    return TRUE;
}

void bench_points_free(Bench *b)
{
    if (b->points)
        g_ptr_array_unref(b->points);
}
