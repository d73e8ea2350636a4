/*
 * Variables as they were before a run.
 */
#include <string.h>

#include "run/plan.h"

/* Bytes that follow each other: on the host those of a variable, on the device of several ones. */
typedef struct {
    void *now, *before;
    gsize bytes;
} Piece;

struct HnSnapshot {
    HnRunEnv *env;
    HnBudget *budget;
    HnWhere where;
    void *room; /* for all of it */
    GArray *pieces;
};

void hn_snapshot_free(HnSnapshot *x)
{
    if (x == NULL)
        return;
    if (x->where == HN_HOST)
        hn_budget_free(x->budget, x->room);
    else if (x->room != NULL)
        x->env->backend->memory->free(x->env->device, x->room);
    g_array_unref(x->pieces);
    if (x->budget != NULL)
        hn_budget_unref(x->budget);
    g_free(x);
}

/* Behind the piece before it where it lies there. */
static void add_piece(HnSnapshot *x, const HnTensor *t, gsize *bytes)
{
    Piece *last = x->pieces->len > 0 ? &g_array_index(x->pieces, Piece, x->pieces->len - 1) : NULL;
    const gsize gap = last != NULL ? (gsize)((const char *)t->data - (const char *)last->now) - last->bytes : G_MAXSIZE;
    if (x->where == HN_DEVICE && gap < HN_RESIDENT_ALIGN) {
        last->bytes += gap + t->bytes;
        *bytes += gap + t->bytes;
        return;
    }
    *bytes = (*bytes + HN_RESIDENT_ALIGN - 1) / HN_RESIDENT_ALIGN * HN_RESIDENT_ALIGN;
    const Piece p = { t->data, GSIZE_TO_POINTER(*bytes), t->bytes }; /* an offset as yet */
    g_array_append_val(x->pieces, p);
    *bytes += t->bytes;
}

static gboolean fill(HnSnapshot *x, const char *const *names, guint n, GError **error)
{
    const HnEngine *e = x->env->engine;
    gsize bytes = 0;
    for (guint i = 0; i < n; i++)
        for (guint k = 0; k < e->variables->len; k++)
            if (strcmp(((HnValue *)e->fed->pdata[e->inputs->len + k])->name, names[i]) == 0)
                add_piece(x, hn_engine_place(e, k, x->where), &bytes);
    if (bytes == 0)
        return TRUE;
    x->room = x->where == HN_HOST ? hn_budget_alloc(x->budget, bytes, error)
                                  : x->env->backend->memory->alloc(x->env->device, bytes, error);
    for (guint i = 0; i < x->pieces->len && x->room != NULL; i++) {
        Piece *p = &g_array_index(x->pieces, Piece, i);
        p->before = (char *)x->room + GPOINTER_TO_SIZE(p->before);
    }
    return x->room != NULL;
}

HnSnapshot *hn_snapshot_new(HnSession *s, const char *const *names, guint n, HnBudget *budget, GError **error)
{
    HnRunEnv *env = hn_session_env(s);
    g_mutex_lock(&env->engine->lock);
    const gboolean ok = !env->backend->computes || hn_engine_reside(env->engine, error);
    g_mutex_unlock(&env->engine->lock);
    if (!ok)
        return NULL;
    HnSnapshot *x = g_new0(HnSnapshot, 1);
    x->env = env;
    x->budget = budget != NULL ? hn_budget_ref(budget) : NULL;
    x->where = env->engine->residents != NULL ? HN_DEVICE : HN_HOST;
    x->pieces = g_array_new(FALSE, FALSE, sizeof(Piece));
    if (fill(x, names, n, error))
        return x;
    hn_snapshot_free(x);
    return NULL;
}

/* back: to where the variables are. */
static gboolean copy(const HnSnapshot *x, gboolean back, GError **error)
{
    gboolean ok = TRUE;
    for (guint i = 0; i < x->pieces->len && ok; i++) {
        const Piece *p = &g_array_index(x->pieces, Piece, i);
        void *to = back ? p->now : p->before;
        const void *from = back ? p->before : p->now;
        if (x->where == HN_DEVICE)
            ok = x->env->backend->memory->copy(x->env->stream, to, from, p->bytes, error);
        else
            memcpy(to, from, p->bytes);
    }
    return ok;
}

gboolean hn_snapshot_take(HnSnapshot *x, GError **error)
{
    return x->pieces->len == 0 || (hn_engine_upload(x->env->engine, x->env->stream, error) && copy(x, FALSE, error));
}

gboolean hn_snapshot_restore(HnSnapshot *x, GError **error)
{
    if (x->pieces->len == 0)
        return TRUE;
    const gboolean ok = copy(x, TRUE, error) && hn_env_wait(x->env, error);
    hn_engine_replaced(x->env->engine);
    return ok;
}
