#include "data/interface.h"

#include <string.h>

#include "data/arrays.h"
#include "op/op.h"

#define FAR 6          /* nodes between an input and the one that tells what it is */
#define LEAST_PIXELS 8 /* along an image's side: what is shorter has another meaning */
#define MOST_VISITS 64 /* nodes that are looked at, of an input that many read */
#define MOST_ENDS                                                                                                     \
    1024                /* inputs or outputs among which a state's other end is looked for: each is held against each \
                         */
#define SOFTMAX_LAST 13 /* opset from which on a softmax without an axis goes along the last one */
#define SHOWN 6         /* inputs in a message */

static const char *const names[HN_ROLE_COUNT] = {
    NULL,    "image",  "signal",        "audio",  "tokens", "positions", "mask",
    "state", "scalar", "probabilities", "scores", "logits", "indices",
};

const char *hn_role_name(HnRole role)
{
    return names[role];
}

/* Size of an axis; 0: free or not known. */
static int64_t size_of(const HnType *t, int axis)
{
    return axis < t->rank && t->dims[axis].known ? t->dims[axis].n : 0;
}

static gboolean is_side(const HnType *t, int axis)
{
    const int64_t n = size_of(t, axis);
    return n == 0 || n >= LEAST_PIXELS;
}

static gboolean is_colour(int64_t channels)
{
    return channels == 1 || channels == 3 || channels == 4;
}

/* --- the nodes next to an input ---------------------------------------------------------------------------------- */

typedef struct {
    int visits;
    gboolean last;      /* channels lie last: a transposition brings them to axis 1 */
    int conv_rank;      /* of the first weight that is convolved with; 0: none was met */
    int64_t channels;   /* that it reads; 0: not known */
    int64_t table;      /* rows of the shortest table that elements are looked up in; 0: none */
    gboolean recurrent; /* is a recurrent layer's first state */
} Near;

/* Result 0 holds the elements of input 0, in another shape, order, type or choice. */
static gboolean keeps_elements(const HnOp *op)
{
    return (op->flags & (HN_OP_VIEW | HN_OP_CONVERT)) != 0 || op->quant.kind == HN_Q_PASS ||
           op->channels.kind == HN_CH_MOVE || op->channels.kind == HN_CH_STEP;
}

static gboolean keeps_places(const HnOp *op)
{
    return keeps_elements(op) || (op->flags & (HN_OP_ELEMENTWISE | HN_OP_ALONG)) != 0;
}

/* [0,3,1,2] */
static gboolean brings_channels(const HnNode *n)
{
    static const int64_t want[] = { 0, 3, 1, 2 };
    const HnAttr *a = hn_node_attr(n, "perm");
    return a != NULL && a->kind == HN_ATTR_INTS && a->n == 4 && memcmp(a->ints, want, sizeof want) == 0;
}

static int64_t int_attr(const HnNode *n, const char *name, int64_t def)
{
    const HnAttr *a = hn_node_attr(n, name);
    return a != NULL && a->kind == HN_ATTR_INT ? a->i : def;
}

static void see_weight(const HnNode *n, const HnOp *op, Near *near)
{
    const HnValue *w = hn_node_in(n, op->linear.weight);
    const HnTensor *t = w != NULL ? w->weight : NULL;
    const int rank = t != NULL ? t->ndim : w != NULL ? hn_type_rank(w->type) : -1;
    if (near->conv_rank != 0 || rank < 3 || hn_node_attr(n, "kernel_shape") == NULL)
        return;
    near->conv_rank = rank;
    const int64_t groups = int_attr(n, "group", 1), in = t != NULL ? t->dims[1] : size_of(w->type, 1);
    near->channels = groups > 0 && groups < G_MAXINT32 && in < G_MAXINT32 ? groups * in : 0;
}

static void see_table(const HnNode *n, Near *near)
{
    const HnValue *table = hn_node_in(n, 0);
    int64_t axis = int_attr(n, "axis", 0);
    if (table == NULL || table->weight == NULL)
        return;
    axis += axis < 0 ? table->weight->ndim : 0;
    const int64_t rows = axis >= 0 && axis < table->weight->ndim ? table->weight->dims[axis] : 0;
    if (rows > 0 && (near->table == 0 || rows < near->table))
        near->table = rows;
}

static void look(const HnValue *v, int depth, Near *near)
{
    for (guint i = 0; i < v->users->len && near->visits < MOST_VISITS; i++) {
        const HnNode *n = v->users->pdata[i];
        const HnOp *op = hn_op_find(n->domain, n->op_type);
        near->visits++;
        if (op == NULL || (i > 0 && n == v->users->pdata[i - 1]))
            continue;
        if (op->linear.weight != 0 && hn_node_in(n, 0) == v)
            see_weight(n, op, near);
        if (hn_op_is_lookup(op) && hn_node_in(n, 1) == v)
            see_table(n, near);
        if (op->channels.kind == HN_CH_RECURRENT && n->in->len > 5)
            near->recurrent |= hn_node_in(n, 5) == v || hn_node_in(n, 6) == v;
        if (depth == 0 || !keeps_places(op) || hn_node_out(n, 0) == NULL)
            continue;
        near->last |= near->conv_rank == 0 && brings_channels(n);
        for (guint k = 0; k < n->out->len && (k == 0 || hn_node_in(n, 0) == v); k++)
            if (hn_node_out(n, (int)k) != NULL)
                look(hn_node_out(n, (int)k), depth - 1, near);
    }
}

/* --- states ------------------------------------------------------------------------------------------------------ */

/* Words that tell the two ends of a state apart, and say nothing else. */
static gboolean is_side_word(const char *word)
{
    static const char *const words[] = { "in",       "input", "out",     "output", "past",    "present", "prev",
                                         "previous", "next",  "new",     "cur",    "current", "n",       "o",
                                         "i",        "init",  "initial", "last",   "values",  NULL };
    return g_strv_contains(words, word);
}

static void end_word(GString *word, GString *out)
{
    if (g_str_equal(word->str, "hn") || g_str_equal(word->str, "cn"))
        g_string_truncate(word, 1);
    if (word->len > 0 && !is_side_word(word->str))
        g_string_append_printf(out, "%s ", word->str);
    g_string_truncate(word, 0);
}

/* "conv_cache_out" and "conv_cache" are "conv cache ", "past_key_values.0.key" and "present.0.key" "0 key ". */
static char *stem(const char *name)
{
    g_autoptr(GString) word = g_string_new(NULL), out = g_string_new(NULL);
    for (const char *p = name; *p != '\0'; p++) {
        const gboolean upper = g_ascii_isupper(*p) && p > name && g_ascii_islower(p[-1]);
        const gboolean digit = word->len > 0 && g_ascii_isdigit(*p) != g_ascii_isdigit(p[-1]);
        if (!g_ascii_isalnum(*p) || upper || digit)
            end_word(word, out);
        if (g_ascii_isalnum(*p))
            g_string_append_c(word, g_ascii_tolower(*p));
    }
    end_word(word, out);
    g_string_replace(out, "past key ", "", 0);
    if (g_str_has_prefix(name, "past_key_values") && g_str_has_prefix(out->str, "key "))
        g_string_erase(out, 0, 4);
    if (g_str_equal(out->str, "h 0 ") || g_str_equal(out->str, "c 0 "))
        g_string_truncate(out, 2);
    return g_strdup(out->str);
}

/* Could one be fed to the other? same: all dimensions have to be known to be equal. */
static gboolean types_fit(const HnValue *a, const HnValue *b, gboolean same)
{
    const HnType *s = hn_input_tensor_type(a, NULL), *t = hn_input_tensor_type(b, NULL);
    if (s == NULL || t == NULL || s->dtype != t->dtype)
        return FALSE;
    if (s->rank < 0 || t->rank < 0)
        return !same;
    if (s->rank != t->rank)
        return FALSE;
    for (int i = 0; i < s->rank; i++)
        if (s->dims[i].known && t->dims[i].known ? s->dims[i].n != t->dims[i].n : same && i > 0)
            return FALSE;
    return TRUE;
}

static gboolean is_fed(const HnValue *v)
{
    return !hn_value_is_weight(v);
}

/* The member of `among` that goes by the same name as v but for words of its side, and fits. */
static const HnValue *same_stem(const HnValue *v, const GPtrArray *among)
{
    g_autofree char *want = stem(v->name);
    for (guint i = 0; *want != '\0' && i < among->len && among->len <= MOST_ENDS; i++) {
        const HnValue *w = among->pdata[i];
        if (w == v || !types_fit(v, w, FALSE) || !is_fed(w))
            continue;
        g_autofree char *got = stem(w->name);
        if (g_str_equal(want, got))
            return w;
    }
    return NULL;
}

/* The only member that fits v, which is the only one of `mine` that fits it. */
static const HnValue *only_fit(const HnValue *v, const GPtrArray *mine, const GPtrArray *among)
{
    const HnValue *found = NULL;
    if (mine->len > MOST_ENDS || among->len > MOST_ENDS)
        return NULL;
    for (guint i = 0; i < among->len; i++) {
        const HnValue *w = among->pdata[i];
        if (!is_fed(w) || !types_fit(v, w, TRUE))
            continue;
        if (found != NULL)
            return NULL;
        found = w;
    }
    for (guint i = 0; found != NULL && i < mine->len; i++) {
        const HnValue *w = mine->pdata[i];
        if (w != v && is_fed(w) && types_fit(w, found, TRUE))
            return NULL;
    }
    return found;
}

/* The output that feeds an input, by name, or by type where the input starts a recurrent layer. */
static const HnValue *fed_by(const HnModel *m, const HnValue *input, gboolean recurrent)
{
    const HnGraph *g = m->graph;
    const HnValue *v = same_stem(input, g->outputs);
    return v == NULL && recurrent ? only_fit(input, g->inputs, g->outputs) : v;
}

static const HnValue *feeds(const HnModel *m, const HnValue *output)
{
    const GPtrArray *inputs = m->graph->inputs;
    const HnValue *named = same_stem(output, inputs);
    for (guint i = 0; named == NULL && i < inputs->len && inputs->len <= MOST_ENDS; i++) {
        const HnValue *v = inputs->pdata[i];
        Near near = { 0 };
        if (!is_fed(v) || v == output || !types_fit(v, output, FALSE))
            continue;
        look(v, FAR, &near);
        if (near.recurrent && fed_by(m, v, TRUE) == output)
            return v;
    }
    return named;
}

/* --- inputs ------------------------------------------------------------------------------------------------------ */

static gboolean name_has(const HnValue *v, const char *const *words)
{
    g_autofree char *name = g_ascii_strdown(v->name, -1);
    for (; *words != NULL; words++)
        if (strstr(name, *words) != NULL)
            return TRUE;
    return FALSE;
}

#define NAME_HAS(v, ...) name_has(v, (const char *const[]){ __VA_ARGS__, NULL })

static gboolean see_image(const HnType *t, const Near *near, HnSeems *s)
{
    const gboolean last = near->last && near->conv_rank == 4;
    int64_t c = near->conv_rank == 4 ? near->channels : 0;
    if (t->rank != 4 || hn_dtype_in(t->dtype, HN_T_BOOL))
        return FALSE;
    if (c == 0)
        c = size_of(t, last ? 3 : 1);
    if (is_colour(c) && is_side(t, last ? 1 : 2) && is_side(t, last ? 2 : 3)) {
        *s = (HnSeems){ .role = HN_ROLE_IMAGE, .layout = last ? "NHWC" : "NCHW", .channels = c };
        return TRUE;
    }
    if (near->conv_rank == 0 && is_colour(size_of(t, 3)) && is_side(t, 1) && is_side(t, 2)) {
        *s = (HnSeems){ .role = HN_ROLE_IMAGE, .layout = "NHWC", .channels = size_of(t, 3) };
        return TRUE;
    }
    return FALSE;
}

/* Channels are where as many are as the convolution reads. */
static void see_signal(const HnType *t, const Near *near, HnSeems *s)
{
    const int64_t c = near->channels;
    const gboolean last = c > 0 && size_of(t, 2) == c && size_of(t, 1) != c;
    *s = (HnSeems){ .role = HN_ROLE_SIGNAL, .layout = last ? "NWC" : "NCW", .channels = c };
}

static gboolean is_one(const HnType *t)
{
    return t->rank == 0 || (t->rank == 1 && hn_dim_is(t->dims[0], 1));
}

static void see_integers(const HnValue *v, const HnType *t, const Near *near, HnSeems *s)
{
    if (hn_dtype_in(t->dtype, HN_T_BOOL) || NAME_HAS(v, "mask"))
        s->role = HN_ROLE_MASK;
    else if (NAME_HAS(v, "position"))
        s->role = HN_ROLE_POSITIONS;
    else if (is_one(t))
        s->role = HN_ROLE_SCALAR;
    else if (near->table > 0 || NAME_HAS(v, "input_ids", "token"))
        *s = (HnSeems){ .role = HN_ROLE_TOKENS, .entries = near->table };
}

static void see_input(const HnModel *m, const HnValue *v, HnSeems *s)
{
    const HnType *t = hn_input_tensor_type(v, NULL);
    Near near = { 0 };
    if (t == NULL)
        return;
    look(v, FAR, &near);
    const HnValue *output = is_one(t) ? NULL : fed_by(m, v, near.recurrent);
    if (output != NULL)
        *s = (HnSeems){ .role = HN_ROLE_STATE, .partner = output };
    else if (see_image(t, &near, s))
        return;
    else if (!hn_dtype_in(t->dtype, HN_T_FLOATS))
        see_integers(v, t, &near, s);
    else if (NAME_HAS(v, "mask"))
        s->role = HN_ROLE_MASK;
    else if (is_one(t))
        s->role = HN_ROLE_SCALAR;
    else if (NAME_HAS(v, "audio", "wave", "pcm", "speech"))
        s->role = HN_ROLE_AUDIO;
    else if (t->rank == 3 && near.conv_rank == 3)
        see_signal(t, &near, s);
}

/* --- outputs ----------------------------------------------------------------------------------------------------- */

/* The node whose results v holds, maybe in another form. */
static const HnNode *source_of(const HnValue *v)
{
    const HnNode *n = v->producer;
    for (int i = 0; i < FAR && n != NULL; i++) {
        const HnOp *op = hn_op_find(n->domain, n->op_type);
        if (op == NULL || !keeps_elements(op) || op->quant.kind == HN_Q_FIXED_RANGE)
            return n;
        const HnValue *in = hn_node_in(n, 0);
        n = in != NULL ? in->producer : NULL;
    }
    return n;
}

/* The size of the only axis behind the first that is not 1; 0: there is not one. */
static int64_t only_axis(const HnType *t)
{
    int found = -1;
    for (int a = 1; a < t->rank; a++) {
        if (hn_dim_is(t->dims[a], 1))
            continue;
        if (found >= 0)
            return 0;
        found = a;
    }
    return found >= 0 ? size_of(t, found) : 0;
}

/* t: of v, which holds the results of n. */
static gboolean see_range(const HnNode *n, const HnValue *v, const HnType *t, HnSeems *s)
{
    const HnOp *op = n != NULL ? hn_op_find(n->domain, n->op_type) : NULL;
    if (op == NULL || op->quant.kind != HN_Q_FIXED_RANGE || op->quant.lo != 0 || op->quant.hi != 1)
        return FALSE;
    const gboolean softmax = op->range.kind == HN_R_EXPONENTS;
    int64_t axis = int_attr(n, "axis", n->version < SOFTMAX_LAST ? 1 : -1);
    axis += axis < 0 ? t->rank : 0;
    *s = (HnSeems){ .role = softmax ? HN_ROLE_PROBABILITIES : HN_ROLE_SCORES };
    if (softmax && v->producer != n) /* in another form: the axis may be another one */
        s->entries = only_axis(t);
    else if (softmax && axis >= 0 && axis < t->rank)
        s->entries = size_of(t, (int)axis);
    return TRUE;
}

/* Rows of the table that some input's elements pick from. */
static int64_t vocabulary(const HnModel *m)
{
    for (guint i = 0; i < m->graph->inputs->len; i++) {
        const HnValue *v = m->graph->inputs->pdata[i];
        HnSeems s = { 0 };
        if (is_fed(v))
            see_input(m, v, &s);
        if (s.role == HN_ROLE_TOKENS)
            return s.entries;
    }
    return 0;
}

static void see_output(const HnModel *m, const HnValue *v, HnSeems *s)
{
    const HnType *t = hn_input_tensor_type(v, NULL);
    const HnValue *input = t != NULL ? feeds(m, v) : NULL;
    if (t == NULL)
        return;
    if (input != NULL)
        *s = (HnSeems){ .role = HN_ROLE_STATE, .partner = input };
    else if (see_range(source_of(v), v, t, s))
        return;
    else if (hn_dtype_in(t->dtype, HN_T_SINTS) && hn_dtype_size(t->dtype) >= 4)
        s->role = HN_ROLE_INDICES;
    else if (t->rank >= 2 && size_of(t, t->rank - 1) > 0 && size_of(t, t->rank - 1) == vocabulary(m))
        *s = (HnSeems){ .role = HN_ROLE_LOGITS, .entries = size_of(t, t->rank - 1) };
    else if (t->rank == 4 && is_colour(size_of(t, 1)) && is_side(t, 2) && is_side(t, 3))
        *s = (HnSeems){ .role = HN_ROLE_IMAGE, .layout = "NCHW", .channels = size_of(t, 1) };
}

void hn_seems(const HnModel *m, const HnValue *v, HnSeems *s)
{
    *s = (HnSeems){ 0 };
    if (v->is_input)
        see_input(m, v, s);
    else
        see_output(m, v, s);
}

/* --- words ------------------------------------------------------------------------------------------------------- */

static char *with_channels(const char *what, const HnSeems *s)
{
    if (s->channels == 0)
        return g_strdup_printf("%s %s", what, s->layout);
    return g_strdup_printf("%s %s, %" PRId64 " channel%s", what, s->layout, s->channels, s->channels == 1 ? "" : "s");
}

char *hn_seems_text(const HnSeems *s)
{
    switch (s->role) {
    case HN_ROLE_IMAGE:
    case HN_ROLE_SIGNAL:
        return with_channels(hn_role_name(s->role), s);
    case HN_ROLE_TOKENS:
        return s->entries > 0 ? g_strdup_printf("token ids below %" PRId64, s->entries) : g_strdup("token ids");
    case HN_ROLE_STATE:
        return g_strdup_printf("state, %s '%s'", s->partner->is_input ? "for" : "fed by", s->partner->name);
    case HN_ROLE_PROBABILITIES:
        return s->entries > 0 ? g_strdup_printf("probabilities of %" PRId64 " classes", s->entries)
                              : g_strdup("probabilities");
    case HN_ROLE_SCORES:
        return g_strdup("scores from 0 to 1");
    case HN_ROLE_LOGITS:
        return g_strdup_printf("logits of %" PRId64 " tokens", s->entries);
    default:
        return g_strdup(s->role != HN_ROLE_UNKNOWN ? hn_role_name(s->role) : "");
    }
}

static void add_input(const HnValue *v, GString *out)
{
    HnSeems s;
    hn_seems(v->graph->model, v, &s);
    g_autofree char *seems = hn_seems_text(&s);
    g_string_append_printf(out, "'%s' ", v->name);
    hn_type_print(v->type, out);
    if (*seems != '\0')
        g_string_append_printf(out, " (%s)", seems);
}

char *hn_inputs_words(HnValue *const *inputs, guint n)
{
    GString *out = g_string_new(n == 1 ? "; the model's input is " : "; the model's inputs are ");
    const guint shown = n > SHOWN + 1 ? SHOWN : n;
    if (n == 0)
        g_string_assign(out, "; the model has no inputs");
    for (guint i = 0; i < shown; i++) {
        g_string_append(out, i == 0 ? "" : i + 1 == n ? " and " : ", ");
        add_input(inputs[i], out);
    }
    if (shown < n)
        g_string_append_printf(out, " and %u more", n - shown);
    return g_string_free(out, FALSE);
}

char *hn_model_inputs_words(const HnModel *m)
{
    g_autoptr(GPtrArray) list = g_ptr_array_new();
    for (guint i = 0; i < m->graph->inputs->len; i++)
        if (is_fed(m->graph->inputs->pdata[i]))
            g_ptr_array_add(list, m->graph->inputs->pdata[i]);
    return hn_inputs_words((HnValue *const *)list->pdata, list->len);
}
