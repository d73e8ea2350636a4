#include "perf/memory_timeline.h"

typedef struct {
    const HnSlot *slot;
    gboolean made; /* by a step of this plan */
    int from, to;
} Life;

static void collect(const HnStep *s, int depth, gpointer data)
{
    if (depth == 0)
        g_ptr_array_add(data, (gpointer)s);
}

/* The step's index in its plan, -1: not to be seen. */
static int index_of(const HnStep *s)
{
    for (int k = 0; k < s->n_out; k++)
        if (s->out[k].slot)
            return s->out[k].slot->first;
    return -1;
}

static const HnSlot *root_of(const HnSlot *s)
{
    while (s->root)
        s = s->root;
    return s;
}

/* HN_PLACES as the place that is asked for: all of them. */
static gboolean is_in(const HnSlot *s, HnWhere where)
{
    return where == HN_PLACES || s->where == where;
}

/* Scratch memory of a step in that place: where its results are. */
static gsize scratch_in(const HnStep *s, HnWhere where)
{
    const HnSlot *out = s->n_out > 0 ? s->out[0].slot : NULL;
    return where == HN_PLACES || (out ? out->where : HN_HOST) == where ? s->scratch_bytes : 0;
}

static gsize bytes_of(const HnSlot *s)
{
    return !s->tensor ? 0 : s->layout ? s->layout->bytes : s->tensor->bytes;
}

static Life *life_of(GArray *lives, GHashTable *seen, const HnSlot *slot)
{
    gpointer at = g_hash_table_lookup(seen, slot);
    if (!at) {
        Life l = { .slot = slot };
        g_array_append_val(lives, l);
        at = GUINT_TO_POINTER(lives->len);
        g_hash_table_insert(seen, (gpointer)slot, at);
    }
    return &g_array_index(lives, Life, GPOINTER_TO_UINT(at) - 1);
}

/* Who is alive when, by step of the segment. Where a result took over its input's memory, it counts from the next step
 * on. */
static GArray *lives_of(HnStep *const *steps, int n)
{
    GArray *lives = g_array_new(FALSE, FALSE, sizeof(Life));
    g_autoptr(GHashTable) seen = g_hash_table_new(NULL, NULL);
    for (int i = 0; i < n; i++) {
        const HnStep *s = steps[i];
        for (int k = 0; k < s->n_in + s->n_hidden; k++)
            if (s->in[k].slot && !s->in[k].unread && !root_of(s->in[k].slot)->constant)
                life_of(lives, seen, root_of(s->in[k].slot))->to = i;
        for (int k = 0; k < s->n_out; k++) {
            if (!s->out[k].slot)
                continue;
            const HnSlot *root = root_of(s->out[k].slot);
            Life *l = life_of(lives, seen, root);
            if (!l->made)
                l->from = k < HN_INPLACE_MAX && (s->inplace >> k & 1) != 0 ? i + 1 : i;
            l->made = TRUE;
            l->to = root->kept ? n - 1 : MAX(l->to, i);
        }
    }
    return lives;
}

static const char *kind_of(const Life *l)
{
    return l->slot->kept ? "result" : !l->made ? "input" : "between";
}

static gint larger_first(gconstpointer a, gconstpointer b)
{
    gsize x = ((const HnMemoryTensor *)a)->bytes, y = ((const HnMemoryTensor *)b)->bytes;
    return (x < y) - (x > y);
}

static void tensor_clear(gpointer data)
{
    HnMemoryTensor *t = data;
    g_free(t->name);
    g_free(t->type);
}

static void list_alive(HnMemoryTimeline *t, const GArray *lives, const HnStep *step, int at, HnWhere where)
{
    g_array_set_size(t->alive, 0);
    for (guint i = 0; i < lives->len; i++) {
        const Life *l = &g_array_index(lives, Life, i);
        if (l->from > at || l->to < at || !l->slot->tensor || !is_in(l->slot, where))
            continue;
        const HnValue *v = l->slot->value;
        HnMemoryTensor x = { .name = g_strdup(v ? v->name : "reordered"),
                             .type = hn_tensor_describe(l->slot->tensor),
                             .source = v ? v->producer : NULL,
                             .kind = kind_of(l),
                             .bytes = bytes_of(l->slot) };
        g_array_append_val(t->alive, x);
    }
    if (scratch_in(step, where)) {
        HnMemoryTensor x = { g_strdup("scratch"), NULL, step->origin, "scratch", step->scratch_bytes };
        g_array_append_val(t->alive, x);
    }
    g_array_sort(t->alive, larger_first);
}

static void add_segment(HnMemoryTimeline *t, HnStep *const *steps, int n, HnWhere where)
{
    g_autoptr(GArray) lives = lives_of(steps, n);
    g_autofree gint64 *change = g_new0(gint64, n + 2);
    for (guint i = 0; i < lives->len; i++) {
        const Life *l = &g_array_index(lives, Life, i);
        if (l->to < l->from || !is_in(l->slot, where))
            continue;
        change[l->from] += (gint64)bytes_of(l->slot);
        change[l->to + 1] -= (gint64)bytes_of(l->slot);
    }
    gint64 now = 0;
    int best = -1;
    for (int i = 0; i < n; i++) {
        now += change[i];
        HnMemoryPoint p = { steps[i]->origin, (gsize)now + scratch_in(steps[i], where) };
        g_array_append_val(t->points, p);
        if (t->points->len == 1 || p.bytes > g_array_index(t->points, HnMemoryPoint, t->peak).bytes) {
            t->peak = t->points->len - 1;
            best = i;
        }
    }
    if (best >= 0)
        list_alive(t, lives, steps[best], best, where);
}

void hn_memory_timeline(const HnSession *s, HnMemoryTimeline *out)
{
    hn_memory_timeline_in(s, HN_PLACES, out);
}

void hn_memory_timeline_in(const HnSession *s, HnWhere where, HnMemoryTimeline *out)
{
    g_autoptr(GPtrArray) steps = g_ptr_array_new();
    *out = (HnMemoryTimeline){ .points = g_array_new(FALSE, FALSE, sizeof(HnMemoryPoint)),
                               .alive = g_array_new(FALSE, FALSE, sizeof(HnMemoryTensor)) };
    g_array_set_clear_func(out->alive, tensor_clear);
    hn_session_foreach_step(s, collect, steps);
    for (guint from = 0, to; from < steps->len; from = to) {
        to = from + 1;
        while (to < steps->len && index_of(steps->pdata[to]) != 0)
            to++;
        add_segment(out, (HnStep *const *)steps->pdata + from, (int)(to - from), where);
    }
}

void hn_memory_timeline_clear(HnMemoryTimeline *t)
{
    g_clear_pointer(&t->points, g_array_unref);
    g_clear_pointer(&t->alive, g_array_unref);
}
