#include "run/feedback.h"

#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "base/rng.h"
#include "ir/copy.h"
#include "pass/fixed_cache.h"
#include "run/plan.h"

#define FIRST_CAPACITY 512   /* rows that a fixed cache has at first, if so many can come */
#define FEWEST_FIXED_STEPS 4 /* rewriting costs as much as planning some steps */
#define SAME_AS 1e-3         /* of the largest element: what a fixed cache may change */

/* The model with caches of a fixed size. */
typedef struct {
    HnModel *m;
    HnEngine *e;
    HnSession *s;
    int64_t capacity;
    char *key;     /* types of inputs that it was made for */
    HnTensor **in; /* of the session's inputs */
    int *from;     /* which input of the loop's session that is; -1: how many rows there are */
} Fixed;

struct HnLoop {
    HnSession *s;
    const HnModel *m;
    HnLoopOptions o;
    int n_in, n_out;
    HnTensor **in, **out;
    int *axis;           /* of each feed: along which the state grows; -1: it does not */
    int64_t batch;       /* rows of tokens */
    int64_t past, fresh; /* positions before the step, and those of it */
    int64_t done;
    GArray *tokens; /* int64_t: batch of them for each step */
    gboolean *ended;
    HnRng rng;
    float *row; /* of logits */
    int32_t *room;
    int64_t classes;
    Fixed *fixed;
    Fixed *spare;    /* of the loop before: it serves again where types are the same */
    gboolean tried;  /* to fix it */
    gboolean proven; /* nothing is left to be compared */
    char *why;       /* it is not */
};

static const HnFeed *feed(const HnLoop *l, guint k)
{
    return &g_array_index(l->o.feeds, HnFeed, k);
}

static const HnFeed *token_feed(const HnLoop *l)
{
    for (guint k = 0; k < l->o.feeds->len; k++)
        if (feed(l, k)->kind == HN_FEED_TOKEN)
            return feed(l, k);
    return NULL;
}

static HnBudget *budget_of(const HnLoop *l)
{
    return l->o.session.budget;
}

HnLoop *hn_loop_new(HnSession *s, const HnModel *m, const HnLoopOptions *o)
{
    HnLoop *l = g_new0(HnLoop, 1);
    l->s = s;
    l->m = m;
    l->o = *o;
    l->n_in = hn_session_n_inputs(s);
    l->n_out = hn_session_n_outputs(s);
    l->in = g_new0(HnTensor *, (gsize)l->n_in + 1);
    l->out = g_new0(HnTensor *, (gsize)l->n_out + 1);
    l->axis = g_new0(int, (gsize)o->feeds->len + 1);
    l->tokens = g_array_new(FALSE, FALSE, sizeof(int64_t));
    return l;
}

/* --- the fixed model ---------------------------------------------------------------------------------------------- */

static void drop_inputs(Fixed *x)
{
    for (int i = 0; x->in != NULL && i < hn_session_n_inputs(x->s); i++)
        hn_tensor_unref(x->in[i]);
    g_clear_pointer(&x->in, g_free);
    g_clear_pointer(&x->from, g_free);
}

static void fixed_free(Fixed *x)
{
    if (x == NULL)
        return;
    drop_inputs(x);
    hn_session_free(x->s);
    hn_engine_unref(x->e);
    hn_model_free(x->m);
    g_free(x->key);
    g_free(x);
}

static gboolean is_pair(const HnLoop *l, guint k)
{
    return feed(l, k)->kind == HN_FEED_STATE && l->axis[k] >= 0;
}

/* The feed of a growing state that output k is; -1: none. */
static int pair_of_output(const HnLoop *l, int k)
{
    for (guint i = 0; i < l->o.feeds->len; i++)
        if (feed(l, i)->out == k && is_pair(l, i))
            return (int)i;
    return -1;
}

static HnCachePair *pairs_of(const HnLoop *l, int *n)
{
    HnCachePair *pairs = g_new0(HnCachePair, (gsize)l->o.feeds->len + 1);
    *n = 0;
    for (guint k = 0; k < l->o.feeds->len; k++)
        if (is_pair(l, k))
            pairs[(*n)++] = (HnCachePair){ hn_session_input(l->s, feed(l, k)->in)->name,
                                           hn_session_output(l->s, feed(l, k)->out)->name };
    return pairs;
}

/* The type of input i in each of the next steps. */
static HnType *growing_type(const HnLoop *l, int i)
{
    const HnTensor *t = l->in[i];
    HnDim dims[HN_MAX_RANK];
    const HnDim past = hn_dim_symbol(HN_PAST_ROWS);
    if (hn_tensor_is_list(t))
        return hn_type_of(t);
    for (int a = 0; a < t->ndim; a++)
        dims[a] = hn_dim(t->dims[a]);
    for (guint k = 0; k < l->o.feeds->len; k++)
        if (feed(l, k)->in == i && is_pair(l, k))
            dims[l->axis[k]] = past;
        else if (feed(l, k)->in == i && feed(l, k)->kind == HN_FEED_ONES)
            dims[t->ndim - 1] = hn_dim_add(past, hn_dim(l->fresh));
    return hn_type_tensor(t->dtype, t->ndim, dims);
}

static int session_input(const HnLoop *l, const char *name)
{
    for (int i = 0; i < l->n_in; i++)
        if (strcmp(hn_session_input(l->s, i)->name, name) == 0)
            return i;
    return -1;
}

static HnModel *fixed_model(const HnLoop *l, int64_t capacity, const HnCachePair *pairs, int n, const char **length,
                            GError **error)
{
    g_autoptr(HnModel) m = hn_model_copy(l->m);
    const GPtrArray *inputs = m->graph->inputs;
    g_autoptr(GPtrArray) types = g_ptr_array_new_with_free_func((GDestroyNotify)hn_type_unref);
    for (guint i = 0; i < inputs->len; i++) {
        const int at = session_input(l, ((HnValue *)inputs->pdata[i])->name);
        g_ptr_array_add(types, at >= 0 ? growing_type(l, at) : NULL);
    }
    const HnFixedCache o = { .pairs = pairs,
                             .n_pairs = n,
                             .types = (HnType *const *)types->pdata,
                             .step = l->fresh,
                             .capacity = capacity,
                             .budget = budget_of(l) };
    return hn_fix_cache(m, &o, length, error) ? g_steal_pointer(&m) : NULL;
}

static HnEngine *fixed_engine(const HnLoop *l, HnModel *m, const HnCachePair *pairs, int n, GError **error)
{
    g_autofree HnVariable *variables = g_new0(HnVariable, (gsize)n + 1);
    for (int i = 0; i < n; i++)
        variables[i] = (HnVariable){ pairs[i].in, pairs[i].out, NULL };
    const HnEngineOptions o = { .budget = budget_of(l), .feeds = l->o.session.feeds, .variables = variables };
    return hn_engine_new(m, hn_session_engine(l->s)->device, &o, error);
}

/* An input that a rule makes grow: with room for the whole capacity, zeros behind what there is. */
static HnTensor *with_room(const HnLoop *l, const HnTensor *t, int64_t capacity, GError **error)
{
    int64_t dims[HN_MAX_RANK];
    memcpy(dims, t->dims, (gsize)t->ndim * sizeof *dims);
    const int64_t n = dims[t->ndim - 1], rows = n > 0 ? t->n / n : 0;
    dims[t->ndim - 1] = capacity;
    HnTensor *y = hn_tensor_new(t->dtype, t->ndim, dims, budget_of(l), error);
    for (int64_t r = 0; y != NULL && r < rows; r++)
        hn_tensor_copy_elements(y, r * capacity, t, r * n, n);
    return y;
}

static gboolean fixed_inputs(const HnLoop *l, Fixed *x, GError **error)
{
    const int n = hn_session_n_inputs(x->s);
    const int64_t one = 1;
    x->in = g_new0(HnTensor *, (gsize)n + 1);
    x->from = g_new0(int, (gsize)n + 1);
    for (int i = 0; i < n; i++) {
        const int at = x->from[i] = session_input(l, hn_session_input(x->s, i)->name);
        const HnFeed *f = at >= 0 ? hn_feeds_of(l->o.feeds, at) : NULL;
        if (at < 0)
            x->in[i] = hn_tensor_new(HN_I64, 1, &one, budget_of(l), error);
        else if (f != NULL && f->kind == HN_FEED_ONES)
            x->in[i] = with_room(l, l->in[at], x->capacity, error);
        else
            x->in[i] = f != NULL && f->kind != HN_FEED_STATE ? hn_tensor_copy(l->in[at], budget_of(l), error)
                                                             : hn_tensor_ref(l->in[at]);
        if (x->in[i] == NULL)
            return FALSE;
    }
    return TRUE;
}

/* The rows that `from` has along the axis go to the start of `to`, whose other sizes are the same; or back. */
static void copy_rows(HnTensor *to, const HnTensor *from, int axis)
{
    const int64_t rows = MIN(to->dims[axis], from->dims[axis]);
    int64_t outer = 1, inner = 1;
    for (int a = 0; a < axis; a++)
        outer *= to->dims[a];
    for (int a = axis + 1; a < to->ndim; a++)
        inner *= to->dims[a];
    for (int64_t o = 0; o < outer; o++)
        hn_tensor_copy_elements(to, o * to->dims[axis] * inner, from, o * from->dims[axis] * inner, rows * inner);
}

/* Caches begin with the states as they are, or with those of the fixed model before. */
static gboolean fill_caches(const HnLoop *l, Fixed *x, GError **error)
{
    if (l->fixed != NULL && !hn_engine_fetch(l->fixed->e, error))
        return FALSE;
    for (guint k = 0; k < l->o.feeds->len; k++) {
        if (!is_pair(l, k))
            continue;
        const char *name = hn_session_input(l->s, feed(l, k)->in)->name;
        HnTensor *to = hn_engine_variable(x->e, name);
        const HnTensor *from = l->fixed != NULL ? hn_engine_variable(l->fixed->e, name) : l->in[feed(l, k)->in];
        if (to == NULL || from == NULL || to->dtype == HN_STRING || hn_dtype_bits(to->dtype) % 8 != 0)
            return FALSE;
        memset(to->data, 0, to->bytes); /* what was there may be no number */
        copy_rows(to, from, l->axis[k]);
    }
    hn_engine_wrote(x->e);
    return TRUE;
}

static char *key_of(const HnLoop *l)
{
    GString *key = g_string_new(NULL);
    g_string_append_printf(key, "%" PRId64, l->fresh);
    for (int i = 0; i < l->n_in; i++) {
        g_autoptr(HnType) t = growing_type(l, i);
        g_string_append_c(key, ' ');
        hn_type_print(t, key);
    }
    return g_string_free(key, FALSE);
}

/* The one of the loop before, its caches filled anew; NULL: it does not serve. */
static Fixed *fixed_again(HnLoop *l, int64_t capacity)
{
    g_autofree char *key = key_of(l);
    Fixed *x = g_steal_pointer(&l->spare);
    if (x != NULL && strcmp(x->key, key) == 0 && x->capacity >= capacity) {
        drop_inputs(x);
        if (fixed_inputs(l, x, NULL) && fill_caches(l, x, NULL))
            return x;
    }
    fixed_free(x);
    return NULL;
}

static Fixed *fixed_new(const HnLoop *l, int64_t capacity, GError **error)
{
    int n;
    const char *length = NULL;
    Fixed *x = g_new0(Fixed, 1);
    g_autofree HnCachePair *pairs = pairs_of(l, &n);
    x->capacity = capacity;
    x->key = key_of(l);
    if ((x->m = fixed_model(l, capacity, pairs, n, &length, error)) != NULL &&
        (x->e = fixed_engine(l, x->m, pairs, n, error)) != NULL &&
        (x->s = hn_session_new_on(x->e, &l->o.session, error)) != NULL && fixed_inputs(l, x, error) &&
        fill_caches(l, x, error))
        return x;
    fixed_free(x);
    return NULL;
}

static int64_t capacity_for(const HnLoop *l)
{
    const int64_t need = l->past + (l->o.steps - l->done) * l->fresh;
    return MIN(need, MAX(FIRST_CAPACITY, 2 * (l->past + l->fresh)));
}

/* Behind the first step: the next ones would all be of other shapes. */
static gboolean try_fixed(HnLoop *l, GError **error)
{
    int n;
    g_free(pairs_of(l, &n));
    if (l->tried || n == 0 || l->o.plans || l->o.steps - l->done < FEWEST_FIXED_STEPS)
        return TRUE;
    GError *cause = NULL;
    l->tried = TRUE;
    if ((l->fixed = fixed_again(l, capacity_for(l))) == NULL)
        l->fixed = fixed_new(l, capacity_for(l), &cause);
    else
        l->proven = TRUE;
    if (cause != NULL && !g_error_matches(cause, HN_ERROR, HN_ERROR_UNSUPPORTED) &&
        !g_error_matches(cause, HN_ERROR, HN_ERROR_SHAPE) && !g_error_matches(cause, HN_ERROR, HN_ERROR_TYPE)) {
        g_propagate_error(error, cause);
        return FALSE;
    }
    if (cause != NULL)
        l->why = g_strdup(cause->message);
    g_clear_error(&cause);
    return TRUE;
}

/* More room, where there is none for the next step. */
static gboolean grow_fixed(HnLoop *l, GError **error)
{
    if (l->past + l->fresh <= l->fixed->capacity)
        return TRUE;
    Fixed *x = fixed_new(l, capacity_for(l), error);
    if (x == NULL)
        return FALSE;
    for (int i = 0; i < hn_session_n_inputs(x->s); i++) { /* masks go on as they are */
        const HnFeed *f = x->from[i] >= 0 ? hn_feeds_of(l->o.feeds, x->from[i]) : NULL;
        if (f != NULL && f->kind == HN_FEED_ONES)
            copy_rows(x->in[i], l->fixed->in[i], x->in[i]->ndim - 1);
    }
    fixed_free(l->fixed);
    l->fixed = x;
    return TRUE;
}

/* --- inputs of a step --------------------------------------------------------------------------------------------- */

/* What symbols of declared types stand for, as far as inputs that are there tell. */
static GHashTable *sizes_given(const HnLoop *l)
{
    GHashTable *sizes = g_hash_table_new(NULL, NULL);
    for (int i = 0; i < l->n_in; i++) {
        const HnType *t = hn_session_input(l->s, i)->type;
        for (int a = 0; l->in[i] != NULL && hn_type_is_tensor(t) && t->rank == l->in[i]->ndim && a < t->rank; a++)
            if (!t->dims[a].known && t->dims[a].sym != NULL)
                g_hash_table_insert(sizes, (gpointer)t->dims[a].sym, &l->in[i]->dims[a]);
    }
    return sizes;
}

/* A state before the first step: no rows yet, or zeros where no size is open. */
static HnTensor *first_state(const HnLoop *l, int i, GHashTable *sizes, GError **error)
{
    const HnValue *v = hn_session_input(l->s, i);
    const HnType *t = v->type;
    int64_t dims[HN_MAX_RANK];
    if (!hn_type_is_tensor(t) || t->rank < 0 || t->rank > HN_MAX_RANK || t->dtype == HN_UNDEFINED) {
        g_set_error(error, HN_ERROR, HN_ERROR_USAGE, "input '%s' has to be given: its first state is not known",
                    v->name);
        return NULL;
    }
    for (int a = 0; a < t->rank; a++) {
        const int64_t *n = t->dims[a].sym != NULL ? g_hash_table_lookup(sizes, t->dims[a].sym) : NULL;
        dims[a] = t->dims[a].known ? t->dims[a].n : n != NULL ? *n : a == 0 ? l->batch : 0;
    }
    return hn_tensor_new(t->dtype, t->rank, dims, budget_of(l), error);
}

static int64_t number_at(const HnLoop *l, const HnFeed *f, int64_t j)
{
    switch (f->kind) {
    case HN_FEED_ONES:
        return 1;
    case HN_FEED_POSITIONS:
        return l->past + j;
    case HN_FEED_PAST:
        return l->past;
    case HN_FEED_TOTAL:
        return l->past + l->fresh;
    default:
        return l->past > 0;
    }
}

/* What a rule makes of how many rows there are. */
static HnTensor *counted(const HnLoop *l, const HnFeed *f, GError **error)
{
    const HnValue *v = hn_session_input(l->s, f->in);
    const HnType *t = v->type;
    const gboolean rows = f->kind == HN_FEED_ONES || f->kind == HN_FEED_POSITIONS;
    const int64_t last = f->kind == HN_FEED_ONES ? l->past + l->fresh : rows ? l->fresh : 1;
    const int rank = hn_type_rank(t) >= 0 ? hn_type_rank(t) : rows ? 2 : 1;
    const int64_t dims[2] = { rank == 2 ? l->batch : last, last };
    HnDtype dtype = hn_type_dtype(t);
    if (dtype == HN_UNDEFINED)
        dtype = HN_I64;
    if (rank > 2 || dtype == HN_STRING) {
        g_set_error(error, HN_ERROR, HN_ERROR_USAGE, "option '--loop': input '%s' cannot hold counts or positions",
                    v->name);
        return NULL;
    }
    HnTensor *y = hn_tensor_new(dtype, rank, dims, budget_of(l), error);
    for (int64_t i = 0; y != NULL && i < y->n; i++)
        hn_tensor_set_i64(y, i, number_at(l, f, i % last));
    return y;
}

static void replace(HnTensor **place, HnTensor *t)
{
    hn_tensor_unref(*place);
    *place = t;
}

/* The mask of the first step may have been given: it goes on with ones. */
static HnTensor *more_ones(const HnLoop *l, const HnTensor *old, GError **error)
{
    const int64_t last = l->past + l->fresh, n = old->ndim > 0 ? old->dims[old->ndim - 1] : 0;
    HnTensor *y = old->ndim > 0 && n > 0 ? with_room(l, old, last, error) : NULL;
    for (int64_t i = 0; y != NULL && i < y->n; i++)
        if (i % last >= n)
            hn_tensor_set_i64(y, i, 1);
    return y;
}

static HnTensor *next_tokens(const HnLoop *l, int i, GError **error)
{
    const HnTensor *old = l->in[i];
    const int64_t dims[2] = { old->ndim == 2 ? l->batch : 1, 1 };
    HnTensor *y = hn_tensor_new(old->dtype, old->ndim, dims, budget_of(l), error);
    for (int64_t b = 0; y != NULL && b < y->n; b++)
        hn_tensor_set_i64(y, b, g_array_index(l->tokens, int64_t, (l->done - 1) * l->batch + b));
    return y;
}

/* Inputs of the next step, which is planned. */
static gboolean next_inputs(HnLoop *l, GError **error)
{
    for (guint k = 0; k < l->o.feeds->len; k++) {
        const HnFeed *f = feed(l, k);
        HnTensor *y = f->kind == HN_FEED_STATE   ? hn_tensor_ref(l->out[f->out])
                      : f->kind == HN_FEED_TOKEN ? next_tokens(l, f->in, error)
                      : f->kind == HN_FEED_ONES  ? more_ones(l, l->in[f->in], error)
                                                 : counted(l, f, error);
        if (y == NULL)
            return FALSE;
        replace(&l->in[f->in], y);
    }
    return TRUE;
}

/* The same in the fixed model's tensors, which stay. */
static void next_fixed(HnLoop *l)
{
    for (int i = 0; i < hn_session_n_inputs(l->fixed->s); i++) {
        const int at = l->fixed->from[i];
        const HnFeed *f = at >= 0 ? hn_feeds_of(l->o.feeds, at) : NULL;
        HnTensor *t = l->fixed->in[i];
        if (at < 0) {
            hn_tensor_set_i64(t, 0, l->past);
        } else if (f != NULL && f->kind == HN_FEED_STATE) {
            if (l->out[f->out] != NULL)
                replace(&l->fixed->in[i], hn_tensor_ref(l->out[f->out]));
        } else if (f != NULL && f->kind == HN_FEED_TOKEN) {
            for (int64_t b = 0; b < t->n; b++)
                hn_tensor_set_i64(t, b, g_array_index(l->tokens, int64_t, (l->done - 1) * l->batch + b));
        } else if (f != NULL && f->kind == HN_FEED_ONES) {
            const int64_t last = t->dims[t->ndim - 1];
            for (int64_t b = 0; b < t->n / last; b++)
                for (int64_t j = l->past; j < l->past + l->fresh; j++)
                    hn_tensor_set_i64(t, b * last + j, 1);
        } else if (f != NULL) {
            const int64_t last = t->ndim > 0 ? t->dims[t->ndim - 1] : 1;
            for (int64_t j = 0; j < t->n; j++)
                hn_tensor_set_i64(t, j, number_at(l, f, j % last));
        }
    }
}

/* --- tokens ------------------------------------------------------------------------------------------------------- */

static gboolean logits_fit(const HnLoop *l, const HnTensor *t, const HnFeed *f, GError **error)
{
    const int64_t classes = t->ndim > 0 ? t->dims[t->ndim - 1] : 0;
    if (t->n > 0 && classes > 0 && classes <= INT32_MAX && t->n / classes % l->batch == 0 &&
        hn_dtype_in(t->dtype, HN_T_FLOATS))
        return TRUE;
    g_autofree char *text = hn_tensor_describe(t);
    g_set_error(error, HN_ERROR, HN_ERROR_SHAPE, "output '%s' is %s, which is no score of classes for each of %" PRId64,
                hn_session_output(l->s, f->out)->name, text, l->batch);
    return FALSE;
}

static const float *logits_of(HnLoop *l, const HnTensor *t, int64_t at)
{
    if (t->dtype == HN_F32)
        return (const float *)t->data + at;
    for (int64_t i = 0; i < l->classes; i++)
        l->row[i] = (float)hn_tensor_get_f64(t, at + i);
    return l->row;
}

static gboolean pick(HnLoop *l, GError **error)
{
    const HnFeed *f = token_feed(l);
    const HnTensor *t = f != NULL ? l->out[f->out] : NULL;
    if (f == NULL)
        return TRUE;
    if (t == NULL || !logits_fit(l, t, f, error))
        return FALSE;
    if (l->classes != t->dims[t->ndim - 1]) {
        l->classes = t->dims[t->ndim - 1];
        l->row = g_renew(float, l->row, (gsize)l->classes);
        l->room = g_renew(int32_t, l->room, (gsize)l->classes);
    }
    const int64_t rows = t->n / l->classes / l->batch;
    for (int64_t b = 0; b < l->batch; b++) {
        const float *x = logits_of(l, t, ((b + 1) * rows - 1) * l->classes);
        const double u = f->sample ? hn_rng_double(&l->rng) : 0;
        const int64_t token = l->ended[b] ? l->o.stop : hn_pick(x, l->classes, &l->o.picking, f->sample, u, l->room);
        l->ended[b] = l->ended[b] || (l->o.stop >= 0 && token == l->o.stop);
        g_array_append_val(l->tokens, token);
    }
    return TRUE;
}

/* --- steps -------------------------------------------------------------------------------------------------------- */

static void clear(HnLoop *l)
{
    for (int i = 0; i < l->n_in; i++)
        g_clear_pointer(&l->in[i], hn_tensor_unref);
    for (int k = 0; k < l->n_out; k++)
        g_clear_pointer(&l->out[k], hn_tensor_unref);
    if (l->fixed != NULL) {
        fixed_free(l->spare);
        l->spare = g_steal_pointer(&l->fixed);
    }
    g_clear_pointer(&l->why, g_free);
    g_clear_pointer(&l->ended, g_free);
    g_array_set_size(l->tokens, 0);
    l->tried = l->proven = FALSE;
    l->done = l->past = 0;
    l->batch = l->fresh = 1;
}

void hn_loop_free(HnLoop *l)
{
    if (l == NULL)
        return;
    clear(l);
    fixed_free(l->spare);
    g_array_unref(l->tokens);
    g_free(l->in);
    g_free(l->out);
    g_free(l->axis);
    g_free(l->row);
    g_free(l->room);
    g_free(l);
}

/* Rows that a given state has: along its last axis of open size but for the first. */
static void count_past(HnLoop *l, const HnFeed *f)
{
    const HnType *t = hn_session_input(l->s, f->in)->type;
    const HnTensor *x = l->in[f->in];
    for (int a = 1; x != NULL && hn_type_is_tensor(t) && t->rank == x->ndim && a < t->rank; a++)
        if (!t->dims[a].known)
            l->past = x->dims[a];
}

static gboolean prompt(HnLoop *l, GError **error)
{
    const HnFeed *f = token_feed(l);
    const HnTensor *ids = f != NULL ? l->in[f->in] : NULL;
    if (f == NULL)
        return TRUE;
    if (ids != NULL && ids->n > 0 && (ids->ndim == 1 || ids->ndim == 2)) {
        l->batch = ids->ndim == 2 ? ids->dims[0] : 1;
        l->fresh = ids->dims[ids->ndim - 1];
        return TRUE;
    }
    g_set_error(error, HN_ERROR, HN_ERROR_USAGE, "input '%s' has to be given: the tokens to begin with",
                hn_session_input(l->s, f->in)->name);
    return FALSE;
}

gboolean hn_loop_start(HnLoop *l, HnTensor *const *in, GError **error)
{
    clear(l);
    for (int i = 0; i < l->n_in; i++)
        l->in[i] = in[i] != NULL ? hn_tensor_ref(in[i]) : NULL;
    if (!prompt(l, error))
        return FALSE;
    l->ended = g_new0(gboolean, (gsize)l->batch);
    l->rng = hn_rng(l->o.picking.seed);
    g_autoptr(GHashTable) sizes = sizes_given(l);
    for (guint k = 0; k < l->o.feeds->len; k++) {
        const HnFeed *f = feed(l, k);
        if (f->kind == HN_FEED_STATE && in[f->in] != NULL)
            count_past(l, f);
        else if (f->kind == HN_FEED_STATE && (l->in[f->in] = first_state(l, f->in, sizes, error)) == NULL)
            return FALSE;
    }
    for (guint k = 0; k < l->o.feeds->len; k++) {
        const HnFeed *f = feed(l, k);
        if (l->in[f->in] == NULL && (l->in[f->in] = counted(l, f, error)) == NULL)
            return FALSE;
    }
    return TRUE;
}

/* Along which axis states grew in the first step. */
static void find_axes(HnLoop *l)
{
    for (guint k = 0; k < l->o.feeds->len; k++) {
        const HnFeed *f = feed(l, k);
        const HnTensor *x = f->kind == HN_FEED_STATE ? l->in[f->in] : NULL, *y = x != NULL ? l->out[f->out] : NULL;
        int axis = -1, n = 0;
        for (int a = 0; y != NULL && x->ndim == y->ndim && a < x->ndim; a++)
            if (x->dims[a] != y->dims[a]) {
                axis = a;
                n++;
            }
        l->axis[k] = n == 1 ? axis : -1;
        if (n == 1 && token_feed(l) == NULL)
            l->fresh = y->dims[axis] - x->dims[axis];
    }
}

static gboolean same(const HnTensor *a, const HnTensor *b)
{
    double most = 0, off = 0;
    if (a->dtype != b->dtype || a->n != b->n)
        return FALSE;
    for (int64_t i = 0; hn_dtype_in(a->dtype, HN_T_FLOATS | HN_T_INTS) && i < a->n; i++) {
        const double x = hn_tensor_get_f64(a, i), y = hn_tensor_get_f64(b, i);
        if (isnan(x) != isnan(y))
            return FALSE;
        most = MAX(most, isfinite(x) ? fabs(x) : 0);
        off = MAX(off, isnan(x) || x == y ? 0 : fabs(x - y));
    }
    return off <= SAME_AS * most + 1e-6;
}

static void unref_all(HnTensor **t, int n)
{
    for (int k = 0; k < n; k++)
        g_clear_pointer(&t[k], hn_tensor_unref);
}

/* The first step with fixed caches is made with the model as it is, too: where results differ, all of them are. */
static gboolean prove_fixed(HnLoop *l, HnTensor **out, GError **error)
{
    g_autofree HnTensor **want = g_new0(HnTensor *, (gsize)l->n_out + 1);
    if (!hn_session_run(l->s, l->in, want, error))
        return FALSE;
    int k = 0;
    while (k < l->n_out && (out[k] == NULL || want[k] == NULL || pair_of_output(l, k) >= 0 || same(want[k], out[k])))
        k++;
    if (k == l->n_out) {
        unref_all(want, l->n_out);
        return TRUE;
    }
    l->why = g_strdup_printf("with caches of a fixed size output '%s' came out differently",
                             hn_session_output(l->s, k)->name);
    g_clear_pointer(&l->fixed, fixed_free);
    unref_all(out, l->n_out);
    memcpy(out, want, (gsize)l->n_out * sizeof *out);
    return TRUE;
}

static gboolean run(HnLoop *l, HnTensor **out, GError **error)
{
    if (l->fixed == NULL)
        return hn_session_run(l->s, l->in, out, error);
    const gboolean first = l->done == 1 && !l->proven;
    if (!grow_fixed(l, error))
        return FALSE;
    next_fixed(l);
    return hn_session_run(l->fixed->s, l->fixed->in, out, error) && (!first || prove_fixed(l, out, error));
}

gboolean hn_loop_step(HnLoop *l, GError **error)
{
    g_autofree HnTensor **out = g_new0(HnTensor *, (gsize)l->n_out + 1);
    if (l->done > 0) {
        l->past += l->fresh;
        if (token_feed(l) != NULL)
            l->fresh = 1;
        if (l->fixed == NULL && (!next_inputs(l, error) || !try_fixed(l, error)))
            return FALSE;
    }
    if (!run(l, out, error)) {
        unref_all(out, l->n_out);
        return FALSE;
    }
    unref_all(l->out, l->n_out);
    memcpy(l->out, out, (gsize)l->n_out * sizeof *out);
    if (l->done++ == 0)
        find_axes(l);
    return pick(l, error);
}

gboolean hn_loop_done(const HnLoop *l)
{
    gboolean ended = l->o.stop >= 0 && l->done > 0;
    for (int64_t b = 0; ended && b < l->batch; b++)
        ended = l->ended[b];
    return ended || l->done >= l->o.steps;
}

int64_t hn_loop_steps(const HnLoop *l)
{
    return l->done;
}

HnTensor *hn_loop_tokens(const HnLoop *l, GError **error)
{
    const int64_t dims[2] = { l->batch, l->done };
    HnTensor *t = token_feed(l) != NULL ? hn_tensor_new(HN_I64, 2, dims, budget_of(l), error) : NULL;
    for (int64_t i = 0; t != NULL && i < t->n; i++)
        hn_tensor_set_i64(t, i, g_array_index(l->tokens, int64_t, i % l->done * l->batch + i / l->done));
    return t;
}

HnTensor *hn_loop_output(const HnLoop *l, int k, GError **error)
{
    HnTensor *x = l->out[k];
    const int pair = l->fixed != NULL ? pair_of_output(l, k) : -1;
    int64_t dims[HN_MAX_RANK];
    if (pair < 0 || x == NULL)
        return x != NULL ? hn_tensor_ref(x) : NULL;
    if (!hn_engine_fetch(l->fixed->e, error))
        return NULL;
    memcpy(dims, x->dims, (gsize)x->ndim * sizeof *dims);
    dims[l->axis[pair]] = l->past + l->fresh;
    HnTensor *y = hn_tensor_new(x->dtype, x->ndim, dims, budget_of(l), error);
    if (y != NULL)
        copy_rows(y, x, l->axis[pair]);
    return y;
}

const char *hn_loop_plans(const HnLoop *l)
{
    return l->why;
}
