#include "quant/dynamic.h"

#include "quant/integer_product.h"

/* u8 of x, and the scale and zero point that it got. */
static HnQuantized quantized(HnValue *x)
{
    HnGraph *g = x->graph;
    g_autofree char *q = g_strconcat(x->name, "_q", NULL), *s = g_strconcat(x->name, "_scale", NULL);
    g_autofree char *z = g_strconcat(x->name, "_zero", NULL);
    HnNode *n;
    HnQuantized made = { .axis = -1 };
    made.q = hn_quant_node(g, "DynamicQuantizeLinear", q, (HnValue *const[]){ x, NULL }, &n);
    hn_node_add_out(n, made.scale = hn_quant_value(g, s));
    hn_node_add_out(n, made.zero = hn_quant_value(g, z));
    return made;
}

gboolean hn_quant_make_dynamic(HnModel *m, const GPtrArray *nodes, HnBudget *budget, GError **error)
{
    g_autoptr(GHashTable) seen = g_hash_table_new_full(NULL, NULL, NULL, g_free); /* HnValue * -> HnQuantized * */
    HnProducts p;
    gboolean ok = TRUE;
    hn_products_init(&p, budget);
    for (guint i = 0; i < nodes->len && ok; i++) {
        HnNode *n = nodes->pdata[i];
        HnValue *x = hn_node_in(n, 0);
        HnQuantized w;
        if (!hn_quantized_weight(n, &w))
            continue;
        HnQuantized *q = g_hash_table_lookup(seen, x);
        if (q == NULL) {
            const HnQuantized made = quantized(x);
            q = g_memdup2(&made, sizeof made);
            g_hash_table_insert(seen, x, q);
        }
        ok = hn_quant_product(&p, n, q, &w, error);
    }
    ok = ok && hn_products_settle(&p, error);
    hn_products_clear(&p);
    hn_quant_drop_unused(m->graph);
    return ok;
}
