#include "check/whole_numbers.h"

#include "op/op.h"

typedef enum { CONSTANT, NAMES, REALS } What;

static What of_value(const HnValue *v, GHashTable *seen);

static gboolean is_float(const HnValue *v)
{
    return v->type != NULL && hn_dtype_in(v->type->dtype, HN_T_FLOATS);
}

/* Input of v's producer whose type is v's; NULL: none. */
static const HnValue *of_same_type(const HnValue *v, char letter)
{
    const HnNode *n = v->producer;
    gboolean same;
    for (guint i = 0; i < n->in->len; i++)
        if (n->in->pdata[i] != NULL && hn_op_letter(n->op->in, (int)i, &same) == letter)
            return n->in->pdata[i];
    return NULL;
}

/* Of what nothing is known but its type, which the file may not say. */
static What of_type(const HnValue *v)
{
    while (v != NULL && v->type == NULL && v->producer != NULL && v->producer->op != NULL) {
        gboolean same;
        const char letter = hn_op_letter(v->producer->op->out, v->producer_out, &same);
        if (letter == 'f')
            return REALS;
        v = letter == '.' ? NULL : of_same_type(v, letter);
    }
    return v != NULL && is_float(v) ? REALS : NAMES;
}

static What of_results(const HnNode *n, const HnValue *v, GHashTable *seen)
{
    if (n->op == NULL)
        return of_type(v);
    const gboolean each = (n->op->flags & (HN_OP_ELEMENTWISE | HN_OP_CONVERT | HN_OP_STEPS)) != 0;
    const gboolean moves = !each && hn_op_bytes(n) == HN_QB_MOVES;
    if (!each && !moves)
        return of_type(v);
    What what = CONSTANT;
    for (guint i = 0; i < n->in->len; i++) {
        if (n->in->pdata[i] == NULL || !(each || hn_op_is_moved(n, (int)i)))
            continue;
        const What one = of_value(n->in->pdata[i], seen);
        what = MAX(what, one);
    }
    return what;
}

static What of_value(const HnValue *v, GHashTable *seen)
{
    if (v->type != NULL && v->type->dtype == HN_BOOL)
        return NAMES;
    if (v->producer == NULL)
        return v->weight != NULL || v->sparse != NULL ? CONSTANT : of_type(v);
    gpointer known;
    if (g_hash_table_lookup_extended(seen, v, NULL, &known))
        return (What)GPOINTER_TO_INT(known);
    const What what = of_results(v->producer, v, seen);
    g_hash_table_insert(seen, (gpointer)v, GINT_TO_POINTER((int)what));
    return what;
}

gboolean hn_whole_numbers_are_real(const HnValue *v)
{
    g_autoptr(GHashTable) seen = g_hash_table_new(NULL, NULL);
    return of_value(v, seen) == REALS;
}
