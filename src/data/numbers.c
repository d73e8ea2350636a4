#include "data/numbers.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "base/error.h"
#include "data/arrays.h"

#define MOST_NESTED 8 /* brackets in brackets */
#define BETWEEN ",; \t\r"

static gboolean type_of(const HnValue *input, HnDtype *dtype, GError **error)
{
    const HnType *type = hn_input_tensor_type(input, NULL);
    *dtype = type != NULL && type->dtype != HN_UNDEFINED ? type->dtype : HN_F32;
    if ((type != NULL || input->type == NULL) && hn_dtype_in(*dtype, HN_T_NUM | HN_T_BOOL))
        return TRUE;
    g_autofree char *text = hn_type_describe(input->type);
    g_set_error(error, HN_ERROR, HN_ERROR_TYPE, "input '%s' is %s, which is not written as numbers", input->name, text);
    return FALSE;
}

/* --- one number --------------------------------------------------------------------------------------------------- */

static gboolean store_integer(HnTensor *t, int64_t i, const char *text, char **end)
{
    const unsigned bits = hn_dtype_bits(t->dtype);
    const gboolean has_sign = hn_dtype_in(t->dtype, HN_T_SINTS);
    errno = 0;
    if (t->dtype == HN_U64) {
        ((guint64 *)t->data)[i] = g_ascii_strtoull(text, end, 10);
        return errno == 0 && *text != '-';
    }
    const gint64 x = g_ascii_strtoll(text, end, 10);
    const gint64 top = t->dtype == HN_BOOL ? 1 : has_sign ? G_MAXINT64 >> (64 - bits) : (gint64)(~0ull >> (64 - bits));
    const gint64 least = has_sign ? -top - 1 : 0;
    if (errno != 0 || x < least || x > top)
        return FALSE;
    hn_tensor_set_i64(t, i, x);
    return TRUE;
}

/* Element i of t out of text[0..n). FALSE: it is no number of that type. */
static gboolean store_number(HnTensor *t, int64_t i, const char *text, gsize n)
{
    char buffer[64], *end = buffer;
    if (n == 0 || n >= sizeof buffer || !(g_ascii_isdigit(text[0]) || strchr("+-.niNI", text[0]) != NULL))
        return FALSE;
    memcpy(buffer, text, n);
    buffer[n] = '\0';
    if (hn_dtype_in(t->dtype, HN_T_INTS | HN_T_BOOL))
        return store_integer(t, i, buffer, &end) && *end == '\0';
    hn_tensor_set_f64(t, i, g_ascii_strtod(buffer, &end));
    return *end == '\0';
}

/* --- shapes ------------------------------------------------------------------------------------------------------- */

/* The input's dims where n elements fill them, at most one being free. */
static gboolean dims_of(const HnType *type, int64_t n, int64_t *dims)
{
    int free_axis = -1;
    int64_t product = 1;
    if (type == NULL || type->rank < 0 || type->rank > HN_MAX_RANK)
        return FALSE;
    for (int i = 0; i < type->rank; i++) {
        dims[i] = type->dims[i].known ? type->dims[i].n : 1;
        if ((!type->dims[i].known && free_axis >= 0) || !hn_mul_i64(product, dims[i], &product))
            return FALSE;
        free_axis = type->dims[i].known ? free_axis : i;
    }
    if (free_axis < 0)
        return product == n;
    if (product == 0 || n % product != 0)
        return FALSE;
    dims[free_axis] = n / product;
    return TRUE;
}

HnTensor *hn_numbers_fit(HnTensor *t, const HnValue *input)
{
    int64_t dims[HN_MAX_RANK];
    const HnType *type = hn_input_tensor_type(input, NULL);
    if (type == NULL || type->rank == t->ndim || !dims_of(type, t->n, dims))
        return t;
    HnTensor *fit = hn_tensor_reshaped(t, type->rank, dims);
    hn_tensor_unref(t);
    return fit;
}

/* [rows,numbers] whose numbers are those of a row of the input: [rows, the input's further dims]; takes t. */
static HnTensor *fit_rows(HnTensor *t, const HnValue *input)
{
    int64_t dims[HN_MAX_RANK] = { t->dims[0] }, product = 1;
    const HnType *type = hn_input_tensor_type(input, NULL);
    if (type == NULL || type->rank < 1 || type->rank > HN_MAX_RANK || type->rank == t->ndim)
        return t;
    for (int i = 1; i < type->rank; i++) {
        dims[i] = type->dims[i].n;
        if (!type->dims[i].known || !hn_mul_i64(product, dims[i], &product))
            return t;
    }
    if (product != (t->ndim > 1 ? t->dims[1] : 1))
        return hn_numbers_fit(t, input);
    HnTensor *fit = hn_tensor_reshaped(t, type->rank, dims);
    hn_tensor_unref(t);
    return fit;
}

/* --- text --------------------------------------------------------------------------------------------------------- */

typedef struct {
    const char *p, *end;
    int64_t line; /* from 1 */
} Lines;

/* The next line that says something: text[0..n). */
static gboolean next_line(Lines *l, const char **text, gsize *n)
{
    while (l->p < l->end) {
        const char *stop = memchr(l->p, '\n', (gsize)(l->end - l->p));
        stop = stop != NULL ? stop : l->end;
        *text = l->p;
        *n = (gsize)(stop - l->p);
        l->p = MIN(stop + 1, l->end);
        l->line++;
        for (; *n > 0 && strchr(" \t\r", **text) != NULL; (*n)--)
            (*text)++;
        if (*n > 0 && **text != '#')
            return TRUE;
    }
    return FALSE;
}

/* The next field of text[0..*n), which becomes what is behind it; its length, 0: there is none. */
static gsize next_field(const char **text, gsize *n, const char **field)
{
    while (*n > 0 && **text != '\0' && strchr(BETWEEN, **text) != NULL) {
        (*text)++;
        (*n)--;
    }
    *field = *text;
    while (*n > 0 && (**text == '\0' || strchr(BETWEEN, **text) == NULL)) {
        (*text)++;
        (*n)--;
    }
    return (gsize)(*text - *field);
}

static int64_t count_fields(const char *text, gsize n)
{
    int64_t fields = 0;
    const char *field;
    while (next_field(&text, &n, &field) > 0)
        fields++;
    return fields;
}

/* A first line whose first field is no number. */
static void skip_head(Lines *l)
{
    const Lines before = *l;
    const char *text, *field;
    gsize n;
    g_autoptr(HnTensor) one = hn_tensor_new(HN_F64, 0, NULL, NULL, NULL);
    if (one == NULL || !next_line(l, &text, &n))
        return;
    const gsize length = next_field(&text, &n, &field);
    if (store_number(one, 0, field, length))
        *l = before;
}

/* Lines, and fields of the first. FORMAT: another line has more or fewer. */
static gboolean measure(Lines l, int64_t *rows, int64_t *columns, const char *name, GError **error)
{
    const char *text;
    gsize n;
    for (*rows = 0; next_line(&l, &text, &n); (*rows)++) {
        const int64_t fields = count_fields(text, n);
        if (*rows == 0)
            *columns = fields;
        if (fields == *columns)
            continue;
        g_set_error(error, HN_ERROR, HN_ERROR_FORMAT, "'%s': line %" PRId64 " has %" PRId64 " numbers, not %" PRId64,
                    name, l.line, fields, *columns);
        return FALSE;
    }
    if (*rows > 0)
        return TRUE;
    g_set_error(error, HN_ERROR, HN_ERROR_FORMAT, "'%s' holds no number", name);
    return FALSE;
}

HnTensor *hn_numbers_text(const char *text, gsize size, const HnValue *input, const char *name, HnBudget *budget,
                          GError **error)
{
    Lines l = { text, text + size, 0 };
    int64_t dims[2];
    HnDtype dtype;
    skip_head(&l);
    if (!type_of(input, &dtype, error) || !measure(l, &dims[0], &dims[1], name, error))
        return NULL;
    g_autoptr(HnTensor) t = hn_tensor_new(dtype, dims[1] == 1 ? 1 : 2, dims, budget, error);
    const char *line, *field;
    gsize n, length;
    for (int64_t i = 0; t != NULL && next_line(&l, &line, &n);)
        while ((length = next_field(&line, &n, &field)) > 0)
            if (!store_number(t, i++, field, length)) {
                g_autofree char *shown = g_strndup(field, MIN(length, 40));
                g_set_error(error, HN_ERROR, HN_ERROR_FORMAT, "'%s': line %" PRId64 ": '%s' is no number of type %s",
                            name, l.line, shown, hn_dtype_name(dtype));
                return NULL;
            }
    return t != NULL ? fit_rows(g_steal_pointer(&t), input) : NULL;
}

/* --- lists -------------------------------------------------------------------------------------------------------- */

typedef struct {
    const char *p;
    int rank, depth;
    int64_t n;                                     /* elements so far */
    int64_t dims[MOST_NESTED], count[MOST_NESTED]; /* dims: -1 not known yet */
    HnTensor *t;                                   /* NULL: they are only counted */
} List;

static gboolean close_bracket(List *l)
{
    const int d = --l->depth;
    if (l->dims[d] < 0)
        l->dims[d] = l->count[d];
    if (l->dims[d] != l->count[d])
        return FALSE;
    if (d > 0)
        l->count[d - 1]++;
    return TRUE;
}

static gboolean read_element(List *l)
{
    const gsize length = strcspn(l->p, ",] \t");
    if (l->depth == 0 || (l->rank > 0 && l->rank != l->depth))
        return FALSE;
    l->rank = l->depth;
    if (l->t != NULL && !store_number(l->t, l->n, l->p, length))
        return FALSE;
    l->n++;
    l->count[l->depth - 1]++;
    l->p += length;
    return length > 0;
}

/* FALSE where it is no list, or a ragged one. */
static gboolean read_list(List *l)
{
    for (gboolean any = FALSE; *l->p != '\0'; any = TRUE) {
        if (strchr(", \t", *l->p) != NULL) {
            l->p++;
        } else if (*l->p == '[') {
            if (l->depth == MOST_NESTED || (any && l->depth == 0))
                return FALSE;
            l->count[l->depth++] = 0;
            l->p++;
        } else if (*l->p == ']') {
            l->p++;
            if (l->depth == 0 || !close_bracket(l))
                return FALSE;
        } else if (!read_element(l)) {
            return FALSE;
        }
    }
    return l->depth == 0 && l->n > 0;
}

static HnTensor *fill(const char *text, const HnValue *input, HnDtype dtype, HnBudget *budget, GError **error)
{
    int64_t dims[HN_MAX_RANK];
    const HnType *type = hn_input_tensor_type(input, NULL);
    const int rank = type != NULL && type->rank >= 0 && type->rank <= HN_MAX_RANK ? type->rank : 0;
    for (int i = 0; i < rank; i++)
        dims[i] = type->dims[i].known ? type->dims[i].n : 1;
    HnTensor *t = hn_tensor_new(dtype, rank, dims, budget, error);
    if (t == NULL || t->n == 0 || store_number(t, 0, text, strlen(text))) {
        const gsize each = hn_dtype_size(dtype);
        for (int64_t i = 1; t != NULL && i < t->n; i++)
            memcpy((guint8 *)t->data + (gsize)i * each, t->data, each);
        return t;
    }
    hn_tensor_unref(t);
    g_set_error(error, HN_ERROR, HN_ERROR_USAGE, "'%s' is no number of type %s, which input '%s' holds", text,
                hn_dtype_name(dtype), input->name);
    return NULL;
}

HnTensor *hn_numbers_list(const char *text, const HnValue *input, HnBudget *budget, GError **error)
{
    List l = { .p = text };
    HnDtype dtype;
    if (!type_of(input, &dtype, error))
        return NULL;
    if (text[0] != '[')
        return fill(text, input, dtype, budget, error);
    for (int i = 0; i < MOST_NESTED; i++)
        l.dims[i] = -1;
    gboolean ok = read_list(&l);
    if (ok) {
        l = (List){ .p = text, .t = hn_tensor_new(dtype, l.rank, l.dims, budget, error) };
        for (int i = 0; i < MOST_NESTED; i++)
            l.dims[i] = -1;
        if (l.t == NULL)
            return NULL;
        ok = read_list(&l);
    }
    if (ok)
        return hn_numbers_fit(l.t, input);
    if (l.t != NULL)
        hn_tensor_unref(l.t);
    g_set_error(error, HN_ERROR, HN_ERROR_USAGE, "'%s' is no list of numbers of type %s, such as [1,2,3] or [[1],[2]]",
                text, hn_dtype_name(dtype));
    return NULL;
}

/* --- bytes -------------------------------------------------------------------------------------------------------- */

HnTensor *hn_numbers_raw(GBytes *bytes, const HnValue *input, const char *name, HnBudget *budget, GError **error)
{
    int64_t dims[HN_MAX_RANK], row = 1;
    HnDtype dtype;
    if (!type_of(input, &dtype, error))
        return NULL;
    const HnType *type = hn_input_tensor_type(input, NULL);
    const gsize size = g_bytes_get_size(bytes), each = hn_dtype_size(dtype);
    const int64_t n = (int64_t)(size / each);
    int rank = type != NULL ? type->rank : -1;
    if (size % each != 0 || size == 0) {
        g_set_error(error, HN_ERROR, HN_ERROR_FORMAT, "'%s' holds %" G_GSIZE_FORMAT " bytes, no whole number of %s",
                    name, size, hn_dtype_name(dtype));
        return NULL;
    }
    if (rank < 0 || rank > HN_MAX_RANK) {
        rank = 1;
        dims[0] = n;
    } else if (!dims_of(type, n, dims)) {
        gboolean known = rank > 0;
        for (int i = 1; i < rank; i++) {
            dims[i] = type->dims[i].n;
            known = known && type->dims[i].known && hn_mul_i64(row, dims[i], &row);
        }
        if (!known || row == 0 || n % row != 0) {
            g_autofree char *text = hn_type_describe(input->type);
            g_set_error(error, HN_ERROR, HN_ERROR_FORMAT,
                        "the %" PRId64 " elements of '%s' do not say what shape they have: input '%s' is %s", n, name,
                        input->name, text);
            return NULL;
        }
        dims[0] = n / row;
    }
    return hn_tensor_new_bytes(dtype, rank, dims, bytes, 0, budget, error);
}
