/* hone-run: what came out, for people: statistics of each output, and the classes that scores are for. */
#include <math.h>
#include <string.h>

#include "base/file.h"
#include "base/text.h"
#include "hone_run.h"

#define FIRST 4  /* elements that are shown */
#define PLACES 5 /* classes */
#define MOST_CLASSES 1000000
#define MOST_LABELS ((gsize)1 << 26) /* bytes of their file */
#define NEAR_ONE 1e-3                /* a sum of probabilities, in f16 too */

/* --- labels ------------------------------------------------------------------------------------------------------- */

gboolean run_print_init(RunPrint *p, const char *labels, HnBudget *budget, GError **error)
{
    *p = (RunPrint){ json_array_new(), json_array_new(), json_array_new(), .labels_path = labels };
    g_autoptr(GBytes) bytes = labels != NULL ? hn_file_bytes_most(labels, MOST_LABELS, budget, error) : NULL;
    if (bytes == NULL)
        return labels == NULL;
    gsize size;
    const char *text = g_bytes_get_data(bytes, &size);
    g_autofree char *whole = g_strndup(size > 0 ? text : "", size);
    g_auto(GStrv) lines = g_strsplit(g_strchomp(whole), "\n", -1);
    p->labels = g_ptr_array_new_with_free_func(g_free);
    for (char **line = lines; *line != NULL; line++)
        g_ptr_array_add(p->labels, hn_text_clean(g_strstrip(*line)));
    if (p->labels->len > 0)
        return TRUE;
    g_set_error(error, HN_ERROR, HN_ERROR_FORMAT, "'%s' holds no label", labels);
    return FALSE;
}

void run_print_clear(RunPrint *p)
{
    g_clear_pointer(&p->results, json_array_unref);
    g_clear_pointer(&p->top, json_array_unref);
    g_clear_pointer(&p->best, json_array_unref);
    g_clear_pointer(&p->labels, g_ptr_array_unref);
}

/* --- statistics --------------------------------------------------------------------------------------------------- */

typedef struct {
    double min, max, sum;
    int64_t finite, nan;
} Stats;

static void add_stats(JsonObject *row, const HnTensor *t)
{
    Stats s = { INFINITY, -INFINITY, 0, 0, 0 };
    for (int64_t i = 0; i < t->n; i++) {
        const double x = hn_tensor_get_f64(t, i);
        s.nan += isnan(x);
        if (isnan(x))
            continue;
        s.min = MIN(s.min, x);
        s.max = MAX(s.max, x);
        s.sum += x;
        s.finite++;
    }
    json_object_set_double_member(row, "min", s.min);
    json_object_set_double_member(row, "max", s.max);
    json_object_set_double_member(row, "mean", s.finite > 0 ? s.sum / (double)s.finite : NAN);
    json_object_set_int_member(row, "nan", s.nan);
}

static void add_element(GString *text, const HnTensor *t, int64_t i)
{
    char number[G_ASCII_DTOSTR_BUF_SIZE];
    if (t->dtype == HN_STRING) {
        gsize n;
        const char *data = g_bytes_get_data(hn_tensor_get_string(t, i), &n);
        g_autofree char *copy = g_strndup(n > 0 ? data : "", MIN(n, 40)), *clean = hn_text_clean(copy);
        g_string_append_printf(text, "'%s'", clean);
    } else if (hn_dtype_in(t->dtype, HN_T_INTS | HN_T_BOOL)) {
        g_string_append_printf(text, "%" G_GINT64_FORMAT, hn_tensor_get_i64(t, i));
    } else {
        g_string_append(text, g_ascii_formatd(number, sizeof number, "%.4g", hn_tensor_get_f64(t, i)));
    }
}

/* "0.25 -1 3 7 ..." */
static void add_first(JsonObject *row, const HnTensor *t)
{
    g_autoptr(GString) text = g_string_new(NULL);
    for (int64_t i = 0; i < MIN(t->n, FIRST); i++) {
        g_string_append(text, i > 0 ? " " : "");
        add_element(text, t, i);
    }
    g_string_append(text, t->n > FIRST ? " ..." : "");
    json_object_set_string_member(row, "first", text->str);
}

static gboolean has_numbers(const HnTensor *t)
{
    return !hn_dtype_is_refs(t->dtype) && t->dtype != HN_C64 && t->dtype != HN_C128;
}

static char *short_name(const char *name)
{
    g_autofree char *folder = g_path_get_dirname(name), *last = g_path_get_basename(folder);
    g_autofree char *base = g_path_get_basename(name);
    const gboolean inner = strchr(name, G_DIR_SEPARATOR) != NULL && last[0] != '.' && last[0] != G_DIR_SEPARATOR;
    return inner ? g_build_filename(last, base, NULL) : g_strdup(base);
}

static void add_result(RunPrint *p, const char *sample, const char *name, const HnTensor *t)
{
    JsonObject *row = json_object_new();
    g_autofree char *type = hn_tensor_describe(t);
    json_object_set_string_member(row, "sample", sample);
    json_object_set_string_member(row, "output", name);
    json_object_set_string_member(row, "type", type);
    if (has_numbers(t)) {
        add_stats(row, t);
    } else {
        json_object_set_null_member(row, "min");
        json_object_set_null_member(row, "max");
        json_object_set_null_member(row, "mean");
        json_object_set_null_member(row, "nan");
    }
    if (hn_dtype_is_list(t->dtype) || t->dtype == HN_C64 || t->dtype == HN_C128)
        json_object_set_string_member(row, "first", "");
    else
        add_first(row, t);
    json_array_add_object_element(p->results, row);
}

/* --- classes ------------------------------------------------------------------------------------------------------ */

/* Classes of scores, a row of them for each of `samples`; 0: it is something else. */
static int64_t classes_of(const HnTensor *t, int64_t samples)
{
    const int64_t rows = t->ndim > 1 ? t->dims[0] : 1;
    int wide = 0;
    if (!hn_dtype_in(t->dtype, HN_T_FLOATS | HN_BIT(HN_U8) | HN_BIT(HN_I8)) || t->ndim == 0 || rows != samples)
        return 0;
    for (int i = t->ndim > 1; i < t->ndim; i++)
        wide += t->dims[i] != 1;
    const int64_t n = rows > 0 ? t->n / rows : 0;
    return wide == 1 && n >= 2 && n <= MOST_CLASSES ? n : 0;
}

/* The classes with the largest scores, in their order; of equal ones the first. NaN counts as least. */
static int find_top(const HnTensor *t, int64_t first, int64_t n, int64_t *top)
{
    int found = 0;
    for (int64_t i = 0; i < n; i++) {
        const double x = hn_tensor_get_f64(t, first + i);
        int at = found;
        while (at > 0 && !isnan(x) && !(hn_tensor_get_f64(t, first + top[at - 1]) >= x))
            at--;
        if (at == PLACES)
            continue;
        found = MIN(found + 1, PLACES);
        for (int k = found - 1; k > at; k--)
            top[k] = top[k - 1];
        top[at] = i;
    }
    return found;
}

/* What an element's share of softmax is divided by: *scale, after *shift was subtracted; 1 and NaN where elements are
 * probabilities already. */
static void softmax_of(const HnTensor *t, int64_t first, int64_t n, double *shift, double *scale)
{
    double sum = 0, least = INFINITY, most = -INFINITY;
    for (int64_t i = 0; i < n; i++) {
        const double x = hn_tensor_get_f64(t, first + i);
        sum += x;
        least = MIN(least, x);
        most = MAX(most, x);
    }
    *shift = most;
    *scale = 0;
    if (least >= 0 && fabs(sum - 1) < NEAR_ONE)
        *shift = NAN;
    for (int64_t i = 0; i < n; i++)
        *scale += exp(hn_tensor_get_f64(t, first + i) - most);
}

static void add_class(RunPrint *p, JsonArray *rows, const char *sample, const char *name, int place, int64_t class,
                      int64_t classes, double score, double share)
{
    JsonObject *row = json_object_new();
    json_object_set_string_member(row, "sample", sample);
    json_object_set_string_member(row, "output", name);
    json_object_set_int_member(row, "place", place);
    json_object_set_int_member(row, "class", class);
    if (p->labels != NULL && p->labels->len == classes)
        json_object_set_string_member(row, "label", p->labels->pdata[class]);
    else
        json_object_set_null_member(row, "label");
    json_object_set_double_member(row, "score", score);
    json_object_set_double_member(row, "share", share);
    json_array_add_object_element(rows, row);
}

static void add_classes(RunPrint *p, const char *sample, const char *name, const HnTensor *t, int64_t first, int64_t n)
{
    int64_t top[PLACES];
    double shift, scale;
    const int found = find_top(t, first, n, top);
    softmax_of(t, first, n, &shift, &scale);
    p->labelled |= p->labels != NULL && p->labels->len == n;
    for (int k = 0; k < found; k++) {
        const double x = hn_tensor_get_f64(t, first + top[k]);
        const double share = !hn_dtype_in(t->dtype, HN_T_FLOATS) ? NAN : isnan(shift) ? x : exp(x - shift) / scale;
        add_class(p, p->top, sample, name, k + 1, top[k], n, x, share);
        if (k == 0)
            add_class(p, p->best, sample, name, 1, top[k], n, x, share);
    }
}

/* Of a run: several samples make a batch, and so may what stands in one file. */
static int64_t rows_of(const HnSample *s)
{
    const HnTensor *first = s->n > 0 ? s->in[0] : NULL;
    return s->count == 1 && first != NULL && first->ndim > 1 ? MAX(first->dims[0], 1) : s->count;
}

void run_print_add(RunPrint *p, const HnSample *s, const char *name, const HnTensor *t)
{
    g_autofree char *sample = short_name(s->name);
    add_result(p, sample, name, t);
    const int64_t rows = rows_of(s), n = has_numbers(t) ? classes_of(t, rows) : 0;
    p->rows = MAX(p->rows, rows);
    for (int64_t i = 0; n > 0 && i < rows; i++) {
        g_autofree char *row = rows > 1 ? g_strdup_printf("%s +%" G_GINT64_FORMAT, sample, i) : g_strdup(sample);
        add_classes(p, row, name, t, i * n, n);
    }
}

/* --- the report --------------------------------------------------------------------------------------------------- */

#define RESULT_COLUMNS                                                                                     \
    { "output", "output", HN_COL_TEXT }, { "type", "type", HN_COL_TEXT }, { "min", "min", HN_COL_NUMBER }, \
        { "mean", "mean", HN_COL_NUMBER }, { "max", "max", HN_COL_NUMBER }, { "nan", "NaN", HN_COL_INT },  \
        { "first", "first", HN_COL_TEXT | HN_COL_MINOR },                                                  \
    {                                                                                                      \
        0                                                                                                  \
    }
#define CLASS_COLUMNS                                                                     \
    { "output", "output", HN_COL_TEXT | HN_COL_MINOR }, { "class", "class", HN_COL_INT }, \
        { "score", "score", HN_COL_NUMBER }, { "share", "softmax", HN_COL_PERCENT },      \
    {                                                                                     \
        "label", "label", HN_COL_TEXT                                                     \
    }

static const HnColumn one_result[] = { RESULT_COLUMNS };
static const HnColumn all_results[] = { { "sample", "sample", HN_COL_TEXT }, RESULT_COLUMNS };
/* The last column is left out where there are no labels. */
static const HnColumn top_classes[] = { { "place", "place", HN_COL_INT }, CLASS_COLUMNS, { 0 } };
static const HnColumn best_classes[] = { { "sample", "sample", HN_COL_TEXT }, CLASS_COLUMNS, { 0 } };

static void add_class_table(RunPrint *p, HnReport *report, const char *path, const HnColumn *columns, gsize n)
{
    memcpy(p->columns, columns, n * sizeof *columns);
    if (p->labels == NULL)
        p->columns[n - 2] = (HnColumn){ 0 };
    hn_report_table(report, path, p->columns);
}

gboolean run_print_report(RunPrint *p, HnReport *report, GError **error)
{
    JsonObject *root = hn_report_root(report);
    if (p->labels != NULL && !p->labelled) {
        g_set_error(error, HN_ERROR, HN_ERROR_FORMAT, "'%s' has %u labels, and no output has scores of as many classes",
                    p->labels_path, p->labels->len);
        return FALSE;
    }
    json_object_set_array_member(root, "results", json_array_ref(p->results));
    hn_report_table(report, "results", p->runs > 1 ? all_results : one_result);
    if (json_array_get_length(p->top) == 0)
        return TRUE;
    json_object_set_array_member(root, "top", json_array_ref(p->top));
    json_object_set_array_member(root, "best", json_array_ref(p->best));
    if (p->runs > 1 || p->rows > 1)
        add_class_table(p, report, "best", best_classes, G_N_ELEMENTS(best_classes));
    else
        add_class_table(p, report, "top", top_classes, G_N_ELEMENTS(top_classes));
    return TRUE;
}
