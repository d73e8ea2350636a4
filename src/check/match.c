#include "check/match.h"

#include <string.h>

#define AHEAD 64 /* results that the search in order looks ahead, over both graphs */

typedef struct {
    const HnGraph *a, *b;
    GPtrArray *as, *bs; /* HnValue *: results of nodes, in order */
    GHashTable *to_a;   /* HnValue * of b -> HnMatch * */
    GHashTable *to_b;   /* HnValue * of a -> HnMatch * */
} Match;

static void add(Match *m, HnValue *a, HnValue *b, HnMatchKind by)
{
    if (g_hash_table_contains(m->to_b, a) || g_hash_table_contains(m->to_a, b))
        return;
    HnMatch *x = g_new(HnMatch, 1);
    *x = (HnMatch){ a, b, by };
    g_hash_table_insert(m->to_a, b, x);
    g_hash_table_insert(m->to_b, a, x);
}

static GPtrArray *fed(const HnGraph *g)
{
    GPtrArray *inputs = g_ptr_array_new();
    for (guint i = 0; i < g->inputs->len; i++)
        if (!hn_value_is_weight(g->inputs->pdata[i]))
            g_ptr_array_add(inputs, g->inputs->pdata[i]);
    return inputs;
}

static GPtrArray *results(const HnGraph *g)
{
    GPtrArray *all = g_ptr_array_new();
    for (guint i = 0; i < g->nodes->len; i++) {
        const HnNode *n = g->nodes->pdata[i];
        for (guint k = 0; k < n->out->len; k++)
            if (hn_node_out(n, (int)k) != NULL)
                g_ptr_array_add(all, hn_node_out(n, (int)k));
    }
    return all;
}

/* Number k of either list, where both are as long; what is matched already stays so. */
static void by_position(Match *m, const GPtrArray *a, const GPtrArray *b)
{
    for (guint k = 0; a->len == b->len && k < a->len; k++) {
        HnValue *x = a->pdata[k], *y = b->pdata[k];
        if ((x->producer != NULL) == (y->producer != NULL) && !hn_value_is_weight(x) && !hn_value_is_weight(y))
            add(m, x, y, HN_MATCH_OUTPUT);
    }
}

/* Two nodes whose inputs are matched, but with others, do different things. */
static gboolean inputs_agree(const Match *m, const HnNode *a, const HnNode *b)
{
    for (guint i = 0; i < MIN(a->in->len, b->in->len); i++) {
        const HnValue *x = hn_node_in(a, (int)i), *y = hn_node_in(b, (int)i);
        const HnMatch *of_x = x != NULL ? g_hash_table_lookup(m->to_b, x) : NULL;
        const HnMatch *of_y = y != NULL ? g_hash_table_lookup(m->to_a, y) : NULL;
        if (of_x != NULL && of_y != NULL && of_x != of_y)
            return FALSE;
    }
    return TRUE;
}

static gboolean alike(const Match *m, const HnValue *a, const HnValue *b)
{
    const HnNode *p = a->producer, *q = b->producer;
    return a->producer_out == b->producer_out && strcmp(p->op_type, q->op_type) == 0 &&
           hn_domain_equal(p->domain, q->domain) && inputs_agree(m, p, q);
}

/* Results a[i..n) and b[j..k), none of them matched: one behind the other, leaving out as few as possible. */
static void by_order(Match *m, GPtrArray *a, GPtrArray *b)
{
    guint i = 0, j = 0;
    while (i < a->len && j < b->len) {
        guint x = 0, y = 0;
        gboolean found = FALSE;
        for (guint left_out = 0; left_out <= AHEAD && !found; left_out++)
            for (x = 0; x <= left_out; x++) {
                y = left_out - x;
                found = i + x < a->len && j + y < b->len && alike(m, a->pdata[i + x], b->pdata[j + y]);
                if (found)
                    break;
            }
        if (!found)
            return;
        add(m, a->pdata[i + x], b->pdata[j + y], HN_MATCH_ORDER);
        i += x + 1;
        j += y + 1;
    }
}

/* What lies between two neighbouring matches of b, and between their partners in a. */
static void fill_gaps(Match *m)
{
    g_autoptr(GHashTable) place = g_hash_table_new(NULL, NULL); /* HnValue * of a -> index */
    for (guint i = 0; i < m->as->len; i++)
        g_hash_table_insert(place, m->as->pdata[i], GUINT_TO_POINTER(i));
    g_autoptr(GPtrArray) gap_a = g_ptr_array_new(), gap_b = g_ptr_array_new();
    guint from = 0;
    for (guint j = 0; j <= m->bs->len; j++) {
        const HnMatch *x = j < m->bs->len ? g_hash_table_lookup(m->to_a, m->bs->pdata[j]) : NULL;
        if (x == NULL && j < m->bs->len) {
            g_ptr_array_add(gap_b, m->bs->pdata[j]);
            continue;
        }
        guint to = x != NULL ? GPOINTER_TO_UINT(g_hash_table_lookup(place, x->a)) : m->as->len;
        for (guint i = from; i < to; i++)
            if (!g_hash_table_contains(m->to_b, m->as->pdata[i]))
                g_ptr_array_add(gap_a, m->as->pdata[i]);
        by_order(m, gap_a, gap_b);
        g_ptr_array_set_size(gap_a, 0);
        g_ptr_array_set_size(gap_b, 0);
        from = x != NULL ? to + 1 : from;
    }
}

static void collect(const Match *m, const GPtrArray *values, GArray *out)
{
    for (guint i = 0; i < values->len; i++) {
        const HnMatch *x = g_hash_table_lookup(m->to_a, values->pdata[i]);
        if (x != NULL)
            g_array_append_val(out, *x);
    }
}

GArray *hn_match_values(const HnGraph *a, const HnGraph *b)
{
    g_autoptr(GPtrArray) as = results(a), bs = results(b), fed_a = fed(a), fed_b = fed(b);
    g_autoptr(GHashTable) to_a = g_hash_table_new_full(NULL, NULL, NULL, g_free), to_b = g_hash_table_new(NULL, NULL);
    Match m = { a, b, as, bs, to_a, to_b };
    for (guint i = 0; i < fed_b->len + bs->len; i++) {
        HnValue *y = i < fed_b->len ? fed_b->pdata[i] : bs->pdata[i - fed_b->len];
        HnValue *x = g_hash_table_lookup(a->values, y->name);
        if (x != NULL && !hn_value_is_weight(x) && (x->producer != NULL) == (y->producer != NULL))
            add(&m, x, y, HN_MATCH_NAME);
    }
    by_position(&m, fed_a, fed_b);
    by_position(&m, a->outputs, b->outputs);
    fill_gaps(&m);
    GArray *out = g_array_new(FALSE, FALSE, sizeof(HnMatch));
    collect(&m, fed_b, out);
    collect(&m, bs, out);
    return out;
}
