#include "data/augment.h"

#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/nearest.h"
#include "base/rng.h"
#include "base/text.h"
#include "data/arrays.h"

#define MOST_WORDS 1000

typedef enum { SHIFT, SHIFT_T, FLIP_X, FLIP_Y, NOISE, SCALE } Kind;

typedef struct {
    const char *name;
    double most; /* of its size; 0: it has none */
} Word;

static const Word words[] = {
    [SHIFT] = { "shift", 10000 }, [SHIFT_T] = { "shift-t", 10000 }, [FLIP_X] = { "flip-x", 0 },
    [FLIP_Y] = { "flip-y", 0 },   [NOISE] = { "noise", 1000 },      [SCALE] = { "scale", 1 },
};

typedef struct {
    char *input; /* NULL: the first of floats */
    Kind kind;
    double size;
} Step;

struct HnAugment {
    GArray *steps;
};

/* --- text -------------------------------------------------------------------------------------------------------- */

static void step_clear(gpointer step)
{
    g_free(((Step *)step)->input);
}

static gboolean find_word(const char *name, Kind *kind, GError **error)
{
    const char *names[G_N_ELEMENTS(words) + 1] = { 0 };
    for (guint i = 0; i < G_N_ELEMENTS(words); i++) {
        names[i] = words[i].name;
        *kind = (Kind)i;
        if (!strcmp(name, words[i].name))
            return TRUE;
    }
    const char *near = hn_nearest(name, names);
    g_set_error(error, HN_ERROR, HN_ERROR_USAGE,
                near ? "augmentation '%s' is not known; there is '%s'"
                     : "augmentation '%s' is none of shift, shift-t, flip-x, flip-y, noise, scale",
                name, near);
    return FALSE;
}

static gboolean parse_size(const char *word, const char *size, Step *s, GError **error)
{
    gint64 whole;
    const double most = words[s->kind].most;
    if ((most > 0) != (size != NULL)) {
        g_set_error(error, HN_ERROR, HN_ERROR_USAGE,
                    most > 0 ? "augmentation '%s' has no size, as in '%s:1'" : "augmentation '%s' takes no size", word,
                    word);
        return FALSE;
    }
    gboolean ok = TRUE;
    if (s->kind == SHIFT || s->kind == SHIFT_T) {
        ok = hn_parse_int(size, 0, (gint64)most, &whole, error);
        s->size = ok ? (double)whole : 0;
    } else if (size) {
        ok = hn_parse_double(size, 0, most, &s->size, error);
    }
    if (!ok)
        g_prefix_error(error, "augmentation '%s': ", word);
    return ok;
}

/* "NAME/word:size"; a name may have slashes and colons of its own */
static gboolean parse_step(const char *text, Step *s, GError **error)
{
    const char *slash = strrchr(text, '/'), *word = slash ? slash + 1 : text;
    g_auto(GStrv) parts = g_strsplit(word, ":", 2);
    if (!parts[0] || !find_word(parts[0], &s->kind, error) || !parse_size(parts[0], parts[1], s, error)) {
        if (!parts[0])
            g_set_error(error, HN_ERROR, HN_ERROR_USAGE, "an augmentation in '%s' is empty", text);
        return FALSE;
    }
    if (slash == text) {
        g_set_error(error, HN_ERROR, HN_ERROR_USAGE, "augmentation '%s' names no input in front of its '/'", text);
        return FALSE;
    }
    s->input = slash ? g_strndup(text, (gsize)(slash - text)) : NULL;
    return TRUE;
}

HnAugment *hn_augment_parse(const char *text, GError **error)
{
    g_autoptr(HnAugment) a = g_new0(HnAugment, 1);
    g_auto(GStrv) parts = g_strsplit(text, ",", -1);
    a->steps = g_array_new(FALSE, TRUE, sizeof(Step));
    g_array_set_clear_func(a->steps, step_clear);
    if (g_strv_length(parts) > MOST_WORDS) {
        g_set_error(error, HN_ERROR, HN_ERROR_USAGE, "there are more than %d augmentations", MOST_WORDS);
        return NULL;
    }
    for (int i = 0; parts[i]; i++) {
        Step s = { 0 };
        if (!parse_step(g_strstrip(parts[i]), &s, error))
            return NULL;
        g_array_append_val(a->steps, s);
    }
    return g_steal_pointer(&a);
}

void hn_augment_free(HnAugment *a)
{
    if (!a)
        return;
    g_array_unref(a->steps);
    g_free(a);
}

/* The fewest digits that give x again. */
static void print_number(GString *out, double x)
{
    char text[G_ASCII_DTOSTR_BUF_SIZE], format[8];
    for (int digits = x == floor(x) ? 5 : 1; digits <= 17; digits++) { /* 5: 10000 is not 1e+04 */
        g_snprintf(format, sizeof format, "%%.%dg", digits);
        g_ascii_formatd(text, sizeof text, format, x);
        if (g_ascii_strtod(text, NULL) == x)
            break;
    }
    g_string_append(out, text);
}

char *hn_augment_print(const HnAugment *a)
{
    GString *out = g_string_new(NULL);
    for (guint i = 0; i < a->steps->len; i++) {
        const Step *s = &g_array_index(a->steps, Step, i);
        g_string_append_printf(out, "%s%s%s%s", i ? "," : "", s->input ? s->input : "", s->input ? "/" : "",
                               words[s->kind].name);
        if (words[s->kind].most > 0) {
            g_string_append_c(out, ':');
            print_number(out, s->size);
        }
    }
    return g_string_free(out, FALSE);
}

/* --- what goes --------------------------------------------------------------------------------------------------- */

/* dims[axis] < 0: not known */
static gboolean check_shift(const Step *s, const char *name, int axis, const int64_t *dims, GError **error)
{
    if (dims[axis] < 0 || s->size < (double)dims[axis])
        return TRUE;
    g_set_error(error, HN_ERROR, HN_ERROR_USAGE,
                "augmentation '%s:%.0f' moves all of input '%s' away, which has %" G_GINT64_FORMAT " along axis %d",
                words[s->kind].name, s->size, name, dims[axis], axis);
    return FALSE;
}

static gboolean check_floats(const Step *s, const char *name, HnDtype dtype, GError **error)
{
    if (hn_dtype_in(dtype, HN_T_FLOATS))
        return TRUE;
    g_set_error(error, HN_ERROR, HN_ERROR_USAGE, "augmentation '%s' is for floats, and input '%s' is %s",
                words[s->kind].name, name, hn_dtype_name(dtype));
    return FALSE;
}

static gboolean check_rank(const Step *s, const char *name, HnDtype dtype, int rank, GError **error)
{
    const char *wants = NULL;
    if (s->kind == SHIFT_T && rank != 3)
        wants = "inputs [N,T,C]";
    else if ((s->kind == SHIFT || s->kind == FLIP_X || s->kind == FLIP_Y) && rank < 3)
        wants = "inputs [N,H,W] or [N,C,H,W]";
    else if (rank < 1)
        wants = "inputs whose first axis counts samples";
    if (wants)
        g_set_error(error, HN_ERROR, HN_ERROR_USAGE, "augmentation '%s' is for %s, and input '%s' has rank %d",
                    words[s->kind].name, wants, name, rank);
    else if (hn_dtype_bits(dtype) < 8 || hn_dtype_bits(dtype) % 8 != 0)
        g_set_error(error, HN_ERROR, HN_ERROR_USAGE, "augmentation '%s' cannot change input '%s' of %s",
                    words[s->kind].name, name, hn_dtype_name(dtype));
    return wants == NULL && hn_dtype_bits(dtype) >= 8 && hn_dtype_bits(dtype) % 8 == 0;
}

static gboolean check_step(const Step *s, const char *name, HnDtype dtype, int rank, const int64_t *dims,
                           GError **error)
{
    if ((s->kind == NOISE || s->kind == SCALE) && !check_floats(s, name, dtype, error))
        return FALSE;
    if (!check_rank(s, name, dtype, rank, error))
        return FALSE;
    if (s->kind == SHIFT)
        return check_shift(s, name, rank - 2, dims, error) && check_shift(s, name, rank - 1, dims, error);
    return s->kind != SHIFT_T || check_shift(s, name, 1, dims, error);
}

/* Which input a step changes; -1 with an error: there is none. */
static int find_input(const Step *s, HnValue *const *inputs, int n, GError **error)
{
    g_autofree const char **names = g_new0(const char *, (gsize)n + 1);
    for (int i = 0; i < n; i++) {
        const HnType *t = hn_input_tensor_type(inputs[i], NULL);
        names[i] = inputs[i]->name;
        if (s->input ? !strcmp(s->input, inputs[i]->name) : t && hn_dtype_in(t->dtype, HN_T_FLOATS))
            return i;
    }
    if (s->input) {
        g_autofree char *near = hn_nearest_words(s->input, names);
        g_set_error(error, HN_ERROR, HN_ERROR_USAGE, "augmentation '%s' is for an input '%s', which is not there%s",
                    words[s->kind].name, s->input, near);
    } else {
        g_set_error(error, HN_ERROR, HN_ERROR_USAGE, "augmentation '%s' has no input of floats to change",
                    words[s->kind].name);
    }
    return -1;
}

gboolean hn_augment_check(const HnAugment *a, HnValue *const *inputs, int n, GError **error)
{
    for (guint k = 0; k < a->steps->len; k++) {
        const Step *s = &g_array_index(a->steps, Step, k);
        const int i = find_input(s, inputs, n, error);
        if (i < 0)
            return FALSE;
        const HnType *t = hn_input_tensor_type(inputs[i], NULL);
        if (!t || t->rank < 0 || t->rank > HN_MAX_RANK)
            continue;
        int64_t dims[HN_MAX_RANK];
        for (int axis = 0; axis < t->rank; axis++)
            dims[axis] = t->dims[axis].known ? t->dims[axis].n : -1;
        if (!check_step(s, inputs[i]->name, t->dtype, t->rank, dims, error))
            return FALSE;
    }
    return TRUE;
}

/* --- changes of one sample --------------------------------------------------------------------------------------- */

/* A sample as `planes` pictures of h rows with w pieces of `piece` bytes each. */
typedef struct {
    guint8 *data;
    int64_t planes, h, w;
    gsize piece;
} Image;

/* Row y of a plane becomes row y - dy, dx pieces to the right; 0 where nothing comes from. */
static void move_row(guint8 *to, const guint8 *from, int64_t w, gsize piece, int64_t dx)
{
    const gsize gap = (gsize)ABS(dx) * piece, rest = (gsize)w * piece - gap;
    memmove(to + (dx > 0 ? gap : 0), from + (dx < 0 ? gap : 0), rest);
    memset(to + (dx > 0 ? 0 : rest), 0, gap);
}

/* In place: rows are taken in the order in which none is overwritten before it was read. */
static void shift(const Image *m, int64_t dy, int64_t dx)
{
    const gsize row = (gsize)m->w * m->piece;
    for (int64_t p = 0; p < m->planes; p++) {
        guint8 *plane = m->data + (gsize)(p * m->h) * row;
        for (int64_t i = 0; i < m->h; i++) {
            const int64_t y = dy > 0 ? m->h - 1 - i : i, from = y - dy;
            if (from >= 0 && from < m->h)
                move_row(plane + (gsize)y * row, plane + (gsize)from * row, m->w, m->piece, dx);
            else
                memset(plane + (gsize)y * row, 0, row);
        }
    }
}

static void swap(guint8 *a, guint8 *b, gsize n)
{
    guint8 held[256];
    for (gsize at = 0, part; at < n; at += part) {
        part = MIN(n - at, sizeof held);
        memcpy(held, a + at, part);
        memcpy(a + at, b + at, part);
        memcpy(b + at, held, part);
    }
}

/* n pieces in the opposite order */
static void reverse(guint8 *data, int64_t n, gsize piece)
{
    for (int64_t i = 0, k = n - 1; i < k; i++, k--)
        swap(data + (gsize)i * piece, data + (gsize)k * piece, piece);
}

static void reverse_floats(float *x, int64_t n)
{
    for (int64_t i = 0, k = n - 1; i < k; i++, k--) {
        const float held = x[i];
        x[i] = x[k];
        x[k] = held;
    }
}

static void flip(const Image *m, Kind kind, HnDtype dtype)
{
    const gsize row = (gsize)m->w * m->piece;
    for (int64_t p = 0; kind == FLIP_Y && p < m->planes; p++)
        reverse(m->data + (gsize)(p * m->h) * row, m->h, row);
    for (int64_t y = 0; kind == FLIP_X && y < m->planes * m->h; y++)
        if (dtype == HN_F32)
            reverse_floats((float *)(m->data + (gsize)y * row), m->w);
        else
            reverse(m->data + (gsize)y * row, m->w, m->piece);
}

/* Elements [first, first + n) become factor * x + deviation * normal. */
static void change_numbers(HnTensor *t, int64_t first, int64_t n, double factor, double deviation, HnRng *rng)
{
    for (int64_t i = first; i < first + n; i++) {
        const double add = deviation > 0 ? deviation * hn_rng_normal(rng) : 0;
        if (t->dtype == HN_F32)
            ((float *)t->data)[i] = (float)((double)((float *)t->data)[i] * factor + add);
        else
            hn_tensor_set_f64(t, i, hn_tensor_get_f64(t, i) * factor + add);
    }
}

static Image image_of(const Step *s, const HnTensor *t, int64_t row)
{
    const gsize size = hn_dtype_size(t->dtype), bytes = t->bytes / (gsize)t->dims[0];
    Image m = { .data = (guint8 *)t->data + (gsize)row * bytes, .piece = size };
    m.w = t->dims[t->ndim - 1];
    m.h = t->dims[t->ndim - 2];
    if (s->kind == SHIFT_T) {
        m.piece = (gsize)m.w * size;
        m.w = 1;
    }
    m.planes = m.h * m.w > 0 ? (int64_t)(bytes / ((gsize)(m.h * m.w) * m.piece)) : 0;
    return m;
}

/* Row `row` of t, which is a sample or a part of one. */
static void change(const Step *s, HnTensor *t, int64_t row, HnRng rng)
{
    const int64_t n = t->n / t->dims[0], most = (int64_t)s->size;
    if (s->kind == NOISE) {
        change_numbers(t, row * n, n, 1, s->size, &rng);
    } else if (s->kind == SCALE) {
        change_numbers(t, row * n, n, 1 + hn_rng_range(&rng, -s->size, s->size), 0, &rng);
    } else if (s->kind == SHIFT || s->kind == SHIFT_T) {
        const Image m = image_of(s, t, row);
        const int64_t dy = hn_rng_int(&rng, -most, most), dx = s->kind == SHIFT ? hn_rng_int(&rng, -most, most) : 0;
        shift(&m, dy, dx);
    } else if (hn_rng_u64(&rng) >> 63) {
        const Image m = image_of(s, t, row);
        flip(&m, s->kind, t->dtype);
    }
}

/* --- a batch ----------------------------------------------------------------------------------------------------- */

/* The generator of step k for a row: from the sample's place, and the row in it where a sample has several. */
static HnRng row_rng(const HnRng *epoch, const HnSample *batch, int64_t rows, int64_t row, guint k)
{
    const int64_t each = MAX(rows / batch->count, 1), i = MIN(row / each, batch->count - 1);
    const HnRng sample = hn_rng_split(epoch, (uint64_t)batch->which[i]);
    return hn_rng_split(&sample, (uint64_t)(row - i * each) * MOST_WORDS + k);
}

/* The tensor of input i where it may be written to: as it is where nobody else has it, else a copy. */
static HnTensor *own(HnSample *batch, int i, HnBudget *budget, GError **error)
{
    HnTensor *t = batch->in[i];
    if (t->own && g_atomic_int_get(&t->ref) == 1)
        return t;
    HnTensor *copy = hn_tensor_copy(t, budget, error);
    if (!copy)
        return NULL;
    hn_tensor_unref(t);
    return batch->in[i] = copy;
}

gboolean hn_augment_apply(const HnAugment *a, HnValue *const *inputs, HnSample *batch, uint64_t seed, int64_t epoch,
                          HnBudget *budget, GError **error)
{
    const HnRng all = hn_rng(seed), of_epoch = hn_rng_split(&all, (uint64_t)epoch);
    for (guint k = 0; k < a->steps->len; k++) {
        const Step *s = &g_array_index(a->steps, Step, k);
        const int i = find_input(s, inputs, batch->n, error);
        if (i < 0)
            return FALSE;
        HnTensor *t = batch->in[i];
        if (!t) /* an optional input that the data have not */
            continue;
        if (!check_step(s, inputs[i]->name, t->dtype, t->ndim, t->dims, error) || !(t = own(batch, i, budget, error)))
            return FALSE;
        for (int64_t row = 0; t->n > 0 && row < t->dims[0]; row++)
            change(s, t, row, row_rng(&of_epoch, batch, t->dims[0], row, k));
    }
    return TRUE;
}
