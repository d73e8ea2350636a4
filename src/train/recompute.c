#include "train/recompute.h"

#include <string.h>

#include "op/infer.h"
#include "train/step_graph.h"

#define FLOPS 5e10             /* a second: of products */
#define BYTES 1e10             /* a second: of reading and writing memory */
#define MOVES 16               /* times its bytes that making a value again may move to be cheap */
#define LEAST ((gsize)1 << 20) /* an arena that is smaller stays in the second cache */
#define ROUNDS 6               /* plans that are made to come below the limit */
#define BETTER 3               /* and more, to make less again */
#define ENOUGH 0.98

/* A value with memory in the arena. */
typedef struct {
    HnValue *value; /* NULL: the planner's own copy */
    gsize bytes;
    int first, last;       /* steps between which it is alive */
    int forward, backward; /* the last step that reads it in the forward part, the first behind it; -1: none */
    gboolean choice;       /* may be made again */
    GPtrArray *needs;      /* Kept *: what it is made of that is alive in the backward part */
    gsize passing;         /* bytes of values between them and it */
    double cost;           /* seconds */
    gboolean chosen;
    int at, until; /* steps between which it is alive the second time, or is needed, for the choice made so far */
} Kept;

typedef struct {
    const HnGraph *graph;
    const HnTypes *types;
    HnSession *session;
    GPtrArray *kept;      /* Kept * */
    GHashTable *by_slot;  /* HnSlot *, a root -> Kept * */
    GHashTable *by_value; /* HnValue * -> HnSlot *, a root */
    GHashTable *step_of;  /* HnNode * -> HnStep *: which computes it */
    GHashTable *copy_of;  /* HnSlot *, a root that the planner made -> HnSlot *, a root: in another layout */
    GPtrArray *steps;     /* const HnStep * */
    int turn;             /* the first that is no forward one */
    gssize *load;         /* [steps]: bytes that nothing is chosen of, as changes from step to step */
    double all;           /* seconds of a step */
} Plan;

/* --- what is alive when --------------------------------------------------------------------------------------------
 */

static void kept_free(gpointer data)
{
    Kept *k = data;
    if (k->needs != NULL)
        g_ptr_array_unref(k->needs);
    g_free(k);
}

static const HnSlot *root_of(const HnSlot *s)
{
    while (s->root != NULL)
        s = s->root;
    return s;
}

/* Forward steps come first; the planner's own steps belong to those around them. */
static int find_turn(const Plan *p)
{
    guint i = 0;
    while (i < p->steps->len) {
        const HnStep *s = p->steps->pdata[i];
        if (s->origin != NULL && hn_step_graph_phase(s->origin) != HN_PHASE_FORWARD)
            break;
        i++;
    }
    return (int)i;
}

static void add_step(const HnStep *s, int depth, gpointer data)
{
    Plan *p = data;
    if (depth > 0)
        return;
    g_ptr_array_add(p->steps, (gpointer)s);
    const GPtrArray *parts = s->node != NULL && s->low != NULL ? hn_lowered_parts(s->low, s->node) : NULL;
    for (guint i = 0; parts != NULL && i < parts->len; i++)
        g_hash_table_insert(p->step_of, parts->pdata[i], (gpointer)s);
    for (int i = 0; s->group != NULL && i < s->group->n; i++) {
        parts = hn_lowered_parts(s->low, s->group->node[i]);
        for (guint k = 0; k < parts->len; k++)
            g_hash_table_insert(p->step_of, parts->pdata[k], (gpointer)s);
    }
}

static void note_slot(Plan *p, const HnSlot *slot)
{
    const HnSlot *r = root_of(slot);
    if (slot->value != NULL)
        g_hash_table_insert(p->by_value, (gpointer)slot->value, (gpointer)r);
    if (r->block < 0 || g_hash_table_contains(p->by_slot, r))
        return;
    Kept *k = g_new0(Kept, 1);
    *k = (Kept){ .value = (HnValue *)r->value,
                 .bytes = r->layout != NULL ? r->layout->bytes : r->tensor->bytes,
                 .first = r->first,
                 .last = r->last,
                 .forward = -1,
                 .backward = -1 };
    g_ptr_array_add(p->kept, k);
    g_hash_table_insert(p->by_slot, (gpointer)r, k);
}

/* Output k of step i lies in the memory of an input, which is gone then. */
static void note_place(const Plan *p, const HnStep *s, int i, const HnSlot *out)
{
    for (int j = 0; j < s->n_in && out->block >= 0; j++) {
        const HnSlot *in = s->in[j].slot != NULL ? root_of(s->in[j].slot) : out;
        Kept *k = in != out && in->block == out->block ? g_hash_table_lookup(p->by_slot, in) : NULL;
        if (k != NULL && k->last == i && k->first < i)
            k->last = i - 1;
    }
}

/* The first backward step that reads it, and the last forward one. */
static void note_reads(Plan *p, const HnStep *s, int i)
{
    for (int j = 0; j < s->n_in + s->n_hidden; j++) {
        const HnSlot *slot = s->in[j].slot;
        Kept *k = slot != NULL && !s->in[j].unread ? g_hash_table_lookup(p->by_slot, root_of(slot)) : NULL;
        if (k == NULL)
            continue;
        if (i < p->turn)
            k->forward = MAX(k->forward, i);
        else if (k->backward < 0)
            k->backward = i;
    }
}

static const HnSlot *slot_of(const Plan *p, const HnValue *v)
{
    return g_hash_table_lookup(p->by_value, v);
}

static Kept *kept_of(const Plan *p, const HnValue *v)
{
    const HnSlot *s = slot_of(p, v);
    return s != NULL ? g_hash_table_lookup(p->by_slot, s) : NULL;
}

/* v is there whenever somebody asks: it is fed, a weight, or known. */
static gboolean is_given(const Plan *p, const HnValue *v)
{
    return v->producer == NULL || hn_types_value(p->types, v) != NULL;
}

/* --- what can be made again ----------------------------------------------------------------------------------------
 */

static double seconds_of(const Plan *p, const HnNode *n)
{
    HnCost c = { 0, 0 };
    if ((n->op->flags & HN_OP_VIEW) != 0 || !hn_types_cost(p->types, n, &c))
        return 0;
    return MAX(c.flops / FLOPS, c.bytes / BYTES);
}

/* A weight that n reads is replaced before step `at`. */
static gboolean reads_replaced(const Plan *p, const HnNode *n, int at)
{
    for (guint i = 0; i < n->in->len; i++) {
        const HnValue *v = n->in->pdata[i];
        for (guint k = 0; v != NULL && v->producer == NULL && k < v->users->len; k++) {
            const HnNode *user = v->users->pdata[k];
            const HnStep *s = g_hash_table_lookup(p->step_of, user);
            guint j;
            if (user->op->optimizer.name != NULL && s != NULL && g_ptr_array_find(p->steps, s, &j) && (int)j <= at)
                return TRUE;
        }
    }
    return FALSE;
}

typedef struct {
    const Plan *p;
    Kept *of;
    GHashTable *seen; /* nodes */
} Closure;

/* Collects what v is made of, as far as it has to be made again, too. FALSE: it cannot be. */
static gboolean collect(Closure *c, const HnValue *v)
{
    HnNode *n = v->producer;
    if (!g_hash_table_add(c->seen, n))
        return TRUE;
    if (n->op == NULL || (n->op->flags & (HN_OP_RANDOM | HN_OP_CONTROL | HN_OP_DYNAMIC)) != 0 ||
        hn_step_graph_phase(n) != HN_PHASE_FORWARD || reads_replaced(c->p, n, c->of->backward))
        return FALSE;
    c->of->cost += seconds_of(c->p, n);
    for (guint i = 0; i < n->in->len; i++) {
        const HnValue *in = n->in->pdata[i];
        Kept *k = in != NULL ? kept_of(c->p, in) : NULL;
        if (in == NULL || is_given(c->p, in))
            continue;
        if (k != NULL && k != c->of && k->backward >= 0 && k->value == in) {
            if (!g_ptr_array_find(c->of->needs, k, NULL))
                g_ptr_array_add(c->of->needs, k);
            continue;
        }
        if (k != NULL && k != c->of && k->value == in)
            c->of->passing += k->bytes;
        if (!collect(c, in))
            return FALSE;
    }
    return TRUE;
}

static void find_choice(const Plan *p, Kept *k)
{
    if (k->value == NULL || k->value->producer == NULL || k->value->is_output > 0 || k->backward < 0 ||
        hn_step_graph_phase(k->value->producer) != HN_PHASE_FORWARD)
        return;
    Closure c = { p, k, g_hash_table_new(NULL, NULL) };
    k->needs = g_ptr_array_new();
    k->forward = MAX(k->forward, k->first);
    k->choice = k->forward + 1 < k->backward && collect(&c, k->value);
    g_hash_table_unref(c.seen);
}

static int by_first(gconstpointer a, gconstpointer b)
{
    const Kept *x = *(Kept *const *)a, *y = *(Kept *const *)b;
    return x->first - y->first;
}

static void plan_clear(Plan *p)
{
    hn_session_free(p->session);
    g_ptr_array_unref(p->kept);
    g_ptr_array_unref(p->steps);
    g_hash_table_unref(p->by_slot);
    g_hash_table_unref(p->by_value);
    g_hash_table_unref(p->step_of);
    g_hash_table_unref(p->copy_of);
    g_free(p->load);
}

static void add_load(gssize *load, gsize bytes, int first, int last)
{
    load[first] += (gssize)bytes;
    load[last + 1] -= (gssize)bytes;
}

/* Takes the session. */
static void plan_init(Plan *p, const HnGraph *g, const HnTypes *types, HnSession *session)
{
    *p = (Plan){ .graph = g, .types = types, .session = session };
    p->kept = g_ptr_array_new_with_free_func(kept_free);
    p->steps = g_ptr_array_new();
    p->by_slot = g_hash_table_new(NULL, NULL);
    p->by_value = g_hash_table_new(NULL, NULL);
    p->step_of = g_hash_table_new(NULL, NULL);
    p->copy_of = g_hash_table_new(NULL, NULL);
    hn_session_foreach_step(session, add_step, p);
    p->turn = find_turn(p);
    for (guint i = 0; i < p->steps->len; i++) {
        const HnStep *s = p->steps->pdata[i];
        for (int k = 0; k < s->n_out; k++)
            if (s->out[k].slot != NULL)
                note_slot(p, s->out[k].slot);
        for (int k = 0; k < s->n_in + s->n_hidden; k++)
            if (s->in[k].slot != NULL)
                note_slot(p, s->in[k].slot);
    }
    p->load = g_new0(gssize, p->steps->len + 2);
    for (guint i = 0; i < p->steps->len; i++) {
        const HnStep *s = p->steps->pdata[i];
        note_reads(p, s, (int)i);
        for (int k = 0; k < s->n_out; k++)
            if (s->out[k].slot != NULL)
                note_place(p, s, (int)i, root_of(s->out[k].slot));
        if (s->node == NULL && s->n_in > 0 && s->n_out > 0 && s->in[0].slot != NULL && s->out[0].slot != NULL)
            g_hash_table_insert(p->copy_of, (gpointer)root_of(s->out[0].slot), (gpointer)root_of(s->in[0].slot));
        add_load(p->load, s->scratch_bytes, (int)i, (int)i);
    }
    g_ptr_array_sort(p->kept, by_first);
    for (guint i = 0; i < p->kept->len; i++)
        find_choice(p, p->kept->pdata[i]);
    for (guint i = 0; i < p->kept->len; i++) {
        const Kept *k = p->kept->pdata[i];
        if (!k->choice)
            add_load(p->load, k->bytes, k->first, k->last);
    }
    for (guint i = 0; i < g->nodes->len; i++)
        p->all += seconds_of(p, g->nodes->pdata[i]);
}

/* --- what is chosen ------------------------------------------------------------------------------------------------
 */

/* From when to when each value is needed the second time: what is made of others needs them from then on. */
static void settle_times(const Plan *p)
{
    for (guint i = 0; i < p->kept->len; i++) {
        Kept *k = p->kept->pdata[i];
        k->at = k->backward;
        k->until = k->last;
    }
    for (guint i = p->kept->len; i > 0; i--) { /* what is made of a value comes behind it */
        const Kept *k = p->kept->pdata[i - 1];
        for (guint j = 0; k->chosen && j < k->needs->len; j++) {
            Kept *need = k->needs->pdata[j];
            need->at = MIN(need->at, k->at);
            need->until = MAX(need->until, k->at);
        }
    }
}

/* The largest sum of bytes alive at one step, and that step. */
static gsize peak_of(const Plan *p, int *where)
{
    const guint n = p->steps->len;
    g_autofree gssize *load = g_memdup2(p->load, (n + 2) * sizeof *load);
    gssize sum = 0, most = 0;
    settle_times(p);
    for (guint i = 0; i < p->kept->len; i++) {
        const Kept *k = p->kept->pdata[i];
        if (!k->choice && k->until > k->last)
            add_load(load, k->bytes, k->last + 1, k->until);
        if (!k->choice)
            continue;
        add_load(load, k->bytes, k->first, k->chosen ? k->forward : k->until);
        if (k->chosen) {
            add_load(load, k->bytes, k->at, k->until);
            add_load(load, k->passing, k->at, k->at);
        }
    }
    for (guint i = 0; i < n; i++) {
        sum += load[i];
        if (sum > most) {
            most = sum;
            *where = (int)i;
        }
    }
    return (gsize)most;
}

/* Alive at that step, and made again in no more than `most` seconds; where there is such a limit, in hardly more than
 * its elements and what it is made of take to be moved. */
static Kept *best_choice(const Plan *p, int where, double most)
{
    Kept *best = NULL;
    for (guint i = 0; i < p->kept->len; i++) {
        Kept *k = p->kept->pdata[i];
        if (!k->choice || k->chosen || where <= k->forward || where >= k->at || k->cost > most)
            continue;
        if (most < G_MAXDOUBLE && k->cost * BYTES > MOVES * (double)k->bytes)
            continue;
        if (best == NULL || k->cost * (double)best->bytes < best->cost * (double)k->bytes)
            best = k;
    }
    return best;
}

static void forget_choice(const Plan *p)
{
    for (guint i = 0; i < p->kept->len; i++)
        ((Kept *)p->kept->pdata[i])->chosen = FALSE;
}

/* Without those that turn out not to be needed, the dearest first. */
static void drop_needless(const Plan *p, gsize target)
{
    g_autoptr(GPtrArray) left = g_ptr_array_new();
    int where;
    for (guint i = 0; i < p->kept->len; i++)
        if (((Kept *)p->kept->pdata[i])->chosen)
            g_ptr_array_add(left, p->kept->pdata[i]);
    while (left->len > 0) {
        guint dearest = 0;
        for (guint i = 1; i < left->len; i++)
            if (((Kept *)left->pdata[i])->cost > ((Kept *)left->pdata[dearest])->cost)
                dearest = i;
        Kept *k = g_ptr_array_remove_index_fast(left, dearest);
        k->chosen = FALSE;
        k->chosen = peak_of(p, &where) > target;
    }
}

/* With what takes no more than `most` seconds. FALSE: what is chosen comes as near to the target as it can. */
static gboolean choose(const Plan *p, gsize target, double most)
{
    int where = 0;
    gsize peak;
    forget_choice(p);
    while ((peak = peak_of(p, &where)) > target) {
        Kept *k = best_choice(p, where, most);
        if (k == NULL)
            break;
        k->chosen = TRUE;
        most -= k->cost;
    }
    drop_needless(p, MAX(peak, target));
    return peak <= target;
}

/* All but what one segment of the forward part hands to another. */
static void choose_segments(const Plan *p, int segments)
{
    const int end = MAX(p->turn, 1);
    for (guint i = 0; i < p->kept->len; i++) {
        Kept *k = p->kept->pdata[i];
        k->chosen = k->choice && (gint64)k->first * segments / end == (gint64)k->forward * segments / end;
    }
}

/* --- the rewrite ---------------------------------------------------------------------------------------------------
 */

typedef struct {
    HnNode *node;
    int in;
    HnValue *before;
} Redirect;

typedef struct {
    const Plan *p;
    HnGraph *graph;
    GHashTable *again;   /* HnValue * -> HnValue *: of what is chosen, and views of it */
    GHashTable *passing; /* the same of what is made for one reader */
    GPtrArray *nodes;    /* HnNode * made */
    GArray *redirects;
} Rewrite;

static HnValue *again(Rewrite *w, HnValue *v, HnNode *before);

static gboolean is_variadic(const HnNode *n)
{
    return n->op->out != NULL && strpbrk(n->op->out, "*~") != NULL;
}

static HnNode *make_again(Rewrite *w, const HnNode *n, const HnValue *wanted, HnNode *before)
{
    const guint n_in = n->in->len;
    g_autofree HnValue **in = g_new0(HnValue *, n_in + 1);
    for (guint i = 0; i < n_in; i++)
        in[i] = n->in->pdata[i] != NULL ? again(w, n->in->pdata[i], before) : NULL;
    g_autofree char *name = g_strconcat(hn_node_label(n), HN_AGAIN_SUFFIX, NULL);
    HnNode *m = hn_graph_add_node_before(w->graph, before, n->op_type, n->domain, name);
    m->version = n->version;
    for (guint i = 0; i < n_in; i++)
        hn_node_add_in(m, in[i]);
    for (guint k = 0; k < n->out->len; k++) {
        HnValue *v = n->out->pdata[k];
        const gboolean made = v != NULL && (v == wanted || k == 0 || is_variadic(n));
        hn_node_add_out(m, made ? hn_graph_new_value(w->graph, v->name) : NULL);
    }
    hn_node_share_attrs(m, n);
    g_ptr_array_add(w->nodes, m);
    return m;
}

/* What stands for v in front of that node, with all that has to be made for it. */
static HnValue *again(Rewrite *w, HnValue *v, HnNode *before)
{
    const Kept *k = kept_of(w->p, v);
    HnValue *made = g_hash_table_lookup(w->again, v);
    made = made != NULL ? made : g_hash_table_lookup(w->passing, v);
    if (made != NULL || is_given(w->p, v))
        return made != NULL ? made : v;
    if (hn_step_graph_phase(v->producer) != HN_PHASE_FORWARD) /* a view, whose source was made again before */
        return v;
    if (k != NULL && k->backward >= 0 && k->value == v && !k->chosen)
        return v;
    HnNode *m = make_again(w, v->producer, v, before);
    made = hn_node_out(m, v->producer_out);
    g_hash_table_insert(k != NULL && k->chosen ? w->again : w->passing, v, made);
    return made;
}

/* n is computed, and its memory read there: not within a step that knows the value otherwise. */
static gboolean reads(const Plan *p, const HnNode *n, const HnValue *v)
{
    const HnStep *s = g_hash_table_lookup(p->step_of, n);
    const HnSlot *r = slot_of(p, v);
    if (s == NULL && (n->op->flags & HN_OP_VIEW) != 0) {
        const HnValue *out = hn_node_out(n, 0);
        for (guint i = 0; i < out->users->len; i++)
            if (reads(p, out->users->pdata[i], out))
                return TRUE;
        return FALSE;
    }
    for (int i = 0; s != NULL && i < s->n_in + s->n_hidden; i++) {
        const HnSlot *in = s->in[i].slot != NULL ? root_of(s->in[i].slot) : NULL;
        if (in != NULL && (in == r || g_hash_table_lookup(p->copy_of, in) == r))
            return TRUE;
    }
    return FALSE;
}

static void redirect(Rewrite *w, HnNode *n)
{
    for (guint i = 0; i < n->in->len; i++) {
        HnValue *v = n->in->pdata[i];
        const Kept *k = v != NULL ? kept_of(w->p, v) : NULL;
        if (k == NULL || !k->chosen || !reads(w->p, n, v))
            continue;
        const Redirect r = { n, (int)i, v };
        g_array_append_val(w->redirects, r);
        hn_node_set_in(n, (int)i, again(w, v, n));
        g_hash_table_remove_all(w->passing);
    }
}

static void rewrite_init(Rewrite *w, const Plan *p, HnGraph *g)
{
    *w = (Rewrite){ .p = p, .graph = g };
    w->again = g_hash_table_new(NULL, NULL);
    w->passing = g_hash_table_new(NULL, NULL);
    w->nodes = g_ptr_array_new();
    w->redirects = g_array_new(FALSE, FALSE, sizeof(Redirect));
}

static void rewrite_clear(Rewrite *w)
{
    g_hash_table_unref(w->again);
    g_hash_table_unref(w->passing);
    g_ptr_array_unref(w->nodes);
    g_array_unref(w->redirects);
}

static gboolean rewrite(Rewrite *w, GError **error)
{
    g_autoptr(GPtrArray) nodes = g_ptr_array_new();
    gboolean ok = TRUE;
    for (guint i = 0; i < w->graph->nodes->len; i++)
        if (hn_step_graph_phase(w->graph->nodes->pdata[i]) != HN_PHASE_FORWARD)
            g_ptr_array_add(nodes, w->graph->nodes->pdata[i]);
    for (guint i = 0; i < nodes->len; i++)
        redirect(w, nodes->pdata[i]);
    for (guint i = 0; ok && i < w->nodes->len; i++)
        ok = hn_op_bind(w->nodes->pdata[i], error);
    return ok;
}

static void take_back(Rewrite *w)
{
    for (guint i = 0; i < w->redirects->len; i++) {
        const Redirect *r = &g_array_index(w->redirects, Redirect, i);
        hn_node_set_in(r->node, r->in, r->before);
    }
    for (guint i = w->nodes->len; i > 0; i--)
        hn_graph_remove_node(w->graph, w->nodes->pdata[i - 1]);
}

/* --- all of it -----------------------------------------------------------------------------------------------------
 */

typedef struct {
    HnModel *m;
    const HnRecomputeOptions *o;
    const Plan *p;
    HnRecomputed *made;
} Search;

static gboolean arena_of(const Search *s, gsize *bytes, GError **error)
{
    HnSessionStats stats;
    g_autoptr(HnSession) session = s->o->plan(s->m, s->o->data, error);
    if (session == NULL)
        return FALSE;
    hn_session_stats(session, &stats);
    *bytes = stats.arena_bytes;
    return TRUE;
}

/* The arena with what is chosen. Where it is larger than `keep`, the graph is then as it was. */
static gboolean try_choice(const Search *s, gsize keep, GError **error)
{
    Rewrite w;
    rewrite_init(&w, s->p, s->m->graph);
    gboolean ok = rewrite(&w, error) && arena_of(s, &s->made->arena, error);
    s->made->nodes = w.nodes->len;
    s->made->part = 0;
    for (guint i = 0; i < s->p->kept->len; i++) {
        const Kept *k = s->p->kept->pdata[i];
        s->made->part += k->chosen ? k->cost / MAX(s->p->all, 1e-12) : 0;
    }
    if (!ok || s->made->arena > keep)
        take_back(&w);
    rewrite_clear(&w);
    return ok;
}

/* The largest target for the model of memory whose choice fits the limit in truth; 0: none was found. */
static gboolean find_target(const Search *s, gsize *target, GError **error)
{
    double low = 0, high = 0, now = (double)s->o->limit;
    for (int i = 0; i < ROUNDS + BETTER; i++) {
        const gboolean reached = choose(s->p, (gsize)now, G_MAXDOUBLE);
        if (!try_choice(s, 0, error))
            return FALSE;
        const double ratio = (double)s->o->limit / (double)s->made->arena;
        if (ratio >= 1)
            low = MAX(low, now);
        else
            high = now;
        if (low > 0 && (high == 0 || low > high * ENOUGH || ratio < 1 / ENOUGH || i >= ROUNDS))
            break;
        if (low == 0 && !reached)
            break;
        now = low > 0 ? (low + high) / 2 : now * MIN(ratio, 0.995);
    }
    *target = (gsize)low;
    return TRUE;
}

/* What is nearly free, if it is worth it and the limit asks for no more; else the graph is as it was. */
static gboolean choose_cheap(const Search *s, gboolean *done, GError **error)
{
    const gsize worth = MIN((gsize)((double)s->made->plain * ENOUGH), s->o->limit);
    if (s->made->plain < LEAST || s->o->part <= 0)
        return TRUE;
    choose(s->p, 0, s->o->part * s->p->all);
    if (!try_choice(s, worth, error))
        return FALSE;
    *done = s->made->arena <= worth;
    if (!*done)
        *s->made = (HnRecomputed){ .plain = s->made->plain, .arena = s->made->plain };
    return TRUE;
}

static gboolean search(const Search *s, GError **error)
{
    gsize target = 0;
    if (s->o->segments > 0) {
        choose_segments(s->p, s->o->segments);
        return try_choice(s, G_MAXSIZE, error);
    }
    gboolean done = FALSE;
    if (!choose_cheap(s, &done, error))
        return FALSE;
    if (done || s->made->plain <= s->o->limit)
        return TRUE;
    if (!find_target(s, &target, error))
        return FALSE;
    choose(s->p, target, G_MAXDOUBLE);
    return try_choice(s, G_MAXSIZE, error);
}

gboolean hn_recompute(HnModel *m, const HnRecomputeOptions *o, HnRecomputed *made, GError **error)
{
    HnSessionStats stats;
    Plan p;
    *made = (HnRecomputed){ 0 };
    g_autoptr(HnTypes) types = hn_types_new(m);
    if (!hn_types_enter(types, m->graph, TRUE, error) || !hn_types_graph(types, m->graph, HN_FOLD_BYTES, 0, error))
        return FALSE;
    HnSession *session = o->plan(m, o->data, error);
    if (session == NULL)
        return FALSE;
    hn_session_stats(session, &stats);
    made->plain = made->arena = stats.arena_bytes;
    gboolean ok = TRUE;
    plan_init(&p, m->graph, types, session);
    if (!o->never)
        ok = search(&(Search){ m, o, &p, made }, error);
    made->fits = made->arena <= o->limit;
    plan_clear(&p);
    return ok;
}

gboolean hn_is_again(const HnNode *n)
{
    return n->name != NULL && g_str_has_suffix(n->name, HN_AGAIN_SUFFIX);
}
