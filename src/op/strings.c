/*
 * Operators of strings: StringConcat, StringSplit, StringNormalizer. Bytes that are no UTF-8 stay as they are.
 */
#include <string.h>

#include "base/checked.h"
#include "op/move.h"

static const char *text_of(const HnTensor *t, int64_t i, gsize *n)
{
    const char *s = g_bytes_get_data(hn_tensor_get_string(t, i), n);
    return s != NULL ? s : "";
}

static void store(HnTensor *t, int64_t i, const char *text, gsize n)
{
    g_autoptr(GBytes) s = g_bytes_new(text, n);
    hn_tensor_set_string(t, i, s);
}

/* The bytes of strings are no budget's: what may become large asks whether there would be room. */
static gboolean is_room(HnEval *e, gsize n)
{
    if (!hn_budget_charge(e->budget, n, &e->error))
        return FALSE;
    hn_budget_uncharge(e->budget, n);
    return TRUE;
}

/* --- StringConcat ------------------------------------------------------------------------------------------------ */

static gboolean join(HnEval *e, const HnTensor *x, int64_t i, const HnTensor *y, int64_t j, int64_t at)
{
    gsize n, m, all;
    const char *a = text_of(x, i, &n), *b = text_of(y, j, &m);
    if (!hn_add_size(n, m, &all) || !is_room(e, all)) {
        hn_eval_fail(e, HN_ERROR_BUDGET, "a string is too large");
        return FALSE;
    }
    char *both = g_malloc(all + 1);
    memcpy(both, a, n);
    memcpy(both + n, b, m);
    g_autoptr(GBytes) s = g_bytes_new_take(both, all);
    hn_tensor_set_string(e->out[0], at, s);
    return TRUE;
}

static void stringconcat_ref(HnEval *e)
{
    const HnTensor *x = hn_eval_in(e, 0), *y = hn_eval_in(e, 1);
    int64_t dims[HN_MAX_RANK], sx[HN_MAX_RANK], sy[HN_MAX_RANK], index[HN_MAX_RANK] = { 0 }, off[2] = { 0, 0 };
    int64_t *const strides[2] = { sx, sy };
    const int rank = hn_eval_broadcast(e, x, y, dims);
    if (rank < 0 || hn_eval_out(e, 0, HN_STRING, rank, dims) == NULL)
        return;
    hn_broadcast_strides(x, rank, sx);
    hn_broadcast_strides(y, rank, sy);
    const int64_t n = e->out[0]->n;
    for (int64_t i = 0; i < n && join(e, x, off[0], y, off[1], i); i++)
        hn_index_next(rank, dims, index, 2, strides, off);
}

const HnOp hn_op_stringconcat = {
    .name = "StringConcat",
    .flags = HN_OP_ELEMENTWISE,
    .since = { 20 },
    .in = "TT",
    .out = "T",
    .T = HN_BIT(HN_STRING),
    .infer = hn_infer_broadcast_all,
    .cost = hn_cost_elementwise,
    .ref = stringconcat_ref,
};

/* --- StringSplit ------------------------------------------------------------------------------------------------- */

typedef struct {
    GBytes *delimiter; /* borrowed; NULL: runs of blanks, none at either end */
    int64_t most;      /* cuts */
} Split;

static void stringsplit_bind(HnBind *b, void *params)
{
    Split *p = params;
    const HnAttr *a = hn_node_attr(b->node, "delimiter");
    hn_bind_string(b, "delimiter", NULL); /* its kind */
    p->delimiter = a != NULL && a->kind == HN_ATTR_STRING && g_bytes_get_size(a->s) > 0 ? a->s : NULL;
    p->most = hn_bind_int(b, "maxsplit", INT64_MAX);
    if (p->most < 0)
        p->most = INT64_MAX;
}

static void stringsplit_infer(HnInfer *x)
{
    const int rank = hn_infer_rank(x, 0);
    HnDim dims[HN_MAX_RANK + 1];
    hn_infer_out_shape_of(x, 1, HN_I64, 0);
    if (rank < 0 || rank >= HN_MAX_RANK) {
        hn_infer_out_unknown(x, 0, HN_STRING);
        return;
    }
    for (int i = 0; i < rank; i++)
        dims[i] = hn_infer_dim(x, 0, i);
    dims[rank] = hn_dim_unknown();
    hn_infer_out(x, 0, HN_STRING, rank + 1, dims);
}

typedef struct {
    const char *at, *end;
} Text;

/* Bytes of the character at t, and whether it is a blank as Python has it. */
static gsize look(Text t, gboolean *blank)
{
    const guchar first = (guchar)*t.at;
    *blank = first == ' ' || (first >= '\t' && first <= '\r') || (first >= 0x1c && first <= 0x1f);
    if (first < 0x80)
        return 1;
    const gunichar c = g_utf8_get_char_validated(t.at, t.end - t.at);
    if (c >= 0x110000)
        return 1;
    *blank = c == 0x85 || g_unichar_isspace(c);
    return (gsize)(g_utf8_next_char(t.at) - t.at);
}

static void skip(Text *t, gboolean blanks)
{
    gboolean blank;
    while (t->at < t->end) {
        const gsize n = look(*t, &blank);
        if (blank != blanks)
            return;
        t->at += n;
    }
}

/* Between runs of blanks; behind the last cut everything but what it begins with. FALSE: nothing is left. */
static gboolean next_word(Text *t, gboolean last, Text *part)
{
    skip(t, TRUE);
    if (t->at == t->end)
        return FALSE;
    *part = *t;
    if (last)
        t->at = t->end;
    else
        skip(t, FALSE);
    part->end = t->at;
    return TRUE;
}

static const char *find(const Text *t, const char *d, gsize n)
{
    for (const char *at = t->at; (gsize)(t->end - at) >= n; at++) {
        at = memchr(at, *d, (gsize)(t->end - at) - n + 1);
        if (at == NULL || memcmp(at, d, n) == 0)
            return at;
    }
    return NULL;
}

/* Up to the next delimiter. */
static gboolean next_field(Text *t, GBytes *delimiter, gboolean last, Text *part)
{
    gsize n;
    const char *d = g_bytes_get_data(delimiter, &n);
    if (t->at == NULL)
        return FALSE;
    const char *cut = last ? NULL : find(t, d, n);
    *part = (Text){ t->at, cut != NULL ? cut : t->end };
    t->at = cut != NULL ? cut + n : NULL;
    return TRUE;
}

/* The parts of string i of x, appended to `parts`; how many. */
static int64_t split_one(const Split *p, const HnTensor *x, int64_t i, GArray *parts)
{
    gsize n;
    Text t = { text_of(x, i, &n), NULL }, part;
    int64_t count = 0;
    t.end = t.at + n;
    while (p->delimiter != NULL ? next_field(&t, p->delimiter, count == p->most, &part)
                                : next_word(&t, count == p->most, &part)) {
        g_array_append_val(parts, part);
        count++;
    }
    return count;
}

static void stringsplit_ref(HnEval *e)
{
    const HnTensor *x = hn_eval_in(e, 0);
    int64_t dims[HN_MAX_RANK + 1], widest = 0;
    if (x->ndim >= HN_MAX_RANK) {
        hn_eval_fail(e, HN_ERROR_UNSUPPORTED, "%d dimensions are more than %d", x->ndim + 1, HN_MAX_RANK);
        return;
    }
    g_autoptr(GArray) parts = g_array_new(FALSE, FALSE, sizeof(Text));
    int64_t *count = hn_eval_out(e, 1, HN_I64, x->ndim, x->dims);
    for (int64_t i = 0; count != NULL && i < x->n; i++) {
        count[i] = split_one(e->params, x, i, parts);
        widest = MAX(widest, count[i]);
    }
    for (int i = 0; i < x->ndim; i++)
        dims[i] = x->dims[i];
    dims[x->ndim] = widest;
    if (count == NULL || hn_eval_out(e, 0, HN_STRING, x->ndim + 1, dims) == NULL)
        return;
    for (int64_t i = 0, from = 0; i < x->n; from += count[i++])
        for (int64_t k = 0; k < count[i]; k++) {
            const Text *t = &g_array_index(parts, Text, from + k);
            store(e->out[0], i * widest + k, t->at, (gsize)(t->end - t->at));
        }
}

const HnOp hn_op_stringsplit = {
    .name = "StringSplit",
    .flags = HN_OP_DYNAMIC,
    .since = { 20 },
    .in = "T",
    .out = "Ti",
    .T = HN_BIT(HN_STRING),
    .params_size = sizeof(Split),
    .bind = stringsplit_bind,
    .infer = stringsplit_infer,
    .cost = hn_cost_nothing,
    .ref = stringsplit_ref,
};

/* --- StringNormalizer -------------------------------------------------------------------------------------------- */

enum { CASE_NONE, CASE_LOWER, CASE_UPPER };

typedef struct {
    int change;
    gboolean sensitive;
    GBytes *const *stop; /* borrowed */
    gsize n_stop;
} Normalizer;

static void stringnormalizer_bind(HnBind *b, void *params)
{
    static const char *const words[] = { "NONE", "LOWER", "UPPER", NULL };
    Normalizer *p = params;
    const HnAttr *a = hn_node_attr(b->node, "stopwords");
    p->change = hn_bind_word(b, "case_change_action", words, CASE_NONE);
    p->sensitive = hn_bind_bool(b, "is_case_sensitive", FALSE);
    hn_bind_string(b, "locale", NULL);
    if (a == NULL)
        return;
    if (a->kind != HN_ATTR_STRINGS || a->ref_attr != NULL)
        hn_bind_fail(b, HN_ERROR_ATTRIBUTE, "attribute 'stopwords' is no list of strings");
    else {
        p->stop = a->strings;
        p->n_stop = a->n;
    }
}

static void stringnormalizer_infer(HnInfer *x)
{
    const Normalizer *p = x->params;
    const int rank = hn_infer_rank(x, 0);
    HnDim dims[2] = { hn_dim_unknown(), hn_dim_unknown() };
    if (rank < 0) {
        hn_infer_out_unknown(x, 0, HN_STRING);
        return;
    }
    const HnDim rows = rank == 2 ? hn_infer_dim(x, 0, 0) : hn_dim(1);
    if (rank == 0 || rank > 2 || (rows.known && rows.n != 1)) {
        hn_infer_fail(x, HN_ERROR_SHAPE, "the input is neither a list of strings nor one row of them");
        return;
    }
    const HnDim n = hn_infer_dim(x, 0, rank - 1);
    dims[0] = hn_dim(1);
    if (p->n_stop == 0 && n.known)
        dims[rank - 1] = hn_dim(MAX(n.n, 1));
    else
        dims[rank - 1] = hn_dim_unknown();
    hn_infer_out(x, 0, HN_STRING, rank, dims);
}

/* The same in another case, character by character, whatever the user's language is. */
static GBytes *in_case(GBytes *s, int change)
{
    gsize n;
    const char *text = g_bytes_get_data(s, &n);
    if (change == CASE_NONE || n == 0 || !g_utf8_validate_len(text, n, NULL))
        return g_bytes_ref(s);
    GString *y = g_string_sized_new(n);
    for (const char *c = text; c < text + n; c = g_utf8_next_char(c)) {
        const gunichar u = g_utf8_get_char(c);
        g_string_append_unichar(y, change == CASE_LOWER ? g_unichar_tolower(u) : g_unichar_toupper(u));
    }
    return g_string_free_to_bytes(y);
}

/* Words as they are compared with one another. */
static GHashTable *stop_words(const Normalizer *p)
{
    GHashTable *words = g_hash_table_new_full(g_bytes_hash, g_bytes_equal, (GDestroyNotify)g_bytes_unref, NULL);
    for (gsize i = 0; i < p->n_stop; i++)
        g_hash_table_add(words, in_case(p->stop[i], p->sensitive ? CASE_NONE : CASE_LOWER));
    return words;
}

static void stringnormalizer_ref(HnEval *e)
{
    const Normalizer *p = e->params;
    const HnTensor *x = hn_eval_in(e, 0);
    if (x->ndim == 0 || x->ndim > 2 || (x->ndim == 2 && x->dims[0] != 1)) {
        hn_eval_fail(e, HN_ERROR_SHAPE, "the input is neither a list of strings nor one row of them");
        return;
    }
    g_autoptr(GHashTable) stop = stop_words(p);
    g_autoptr(GPtrArray) kept = g_ptr_array_new();
    for (int64_t i = 0; i < x->n; i++) {
        g_autoptr(GBytes) word = in_case(hn_tensor_get_string(x, i), p->sensitive ? CASE_NONE : CASE_LOWER);
        if (!g_hash_table_contains(stop, word))
            g_ptr_array_add(kept, hn_tensor_get_string(x, i));
    }
    int64_t dims[2] = { 1, MAX(kept->len, 1) }; /* one empty string where nothing is left */
    if (hn_eval_out(e, 0, HN_STRING, x->ndim, x->ndim == 2 ? dims : dims + 1) == NULL)
        return;
    for (guint i = 0; i < kept->len; i++) {
        g_autoptr(GBytes) word = in_case(kept->pdata[i], p->change);
        hn_tensor_set_string(e->out[0], i, word);
    }
    if (kept->len == 0)
        store(e->out[0], 0, "", 0);
}

const HnOp hn_op_stringnormalizer = {
    .name = "StringNormalizer",
    .flags = HN_OP_DYNAMIC,
    .since = { 10 },
    .in = "T",
    .out = "T",
    .T = HN_BIT(HN_STRING),
    .params_size = sizeof(Normalizer),
    .bind = stringnormalizer_bind,
    .infer = stringnormalizer_infer,
    .cost = hn_cost_nothing,
    .ref = stringnormalizer_ref,
};
