/*
 * Nodes that nothing needs, weights that nobody reads, outputs that may be left out.
 */
#include "pass/driver.h"
#include "pass/rewrite.h"

static gboolean is_spare(const HnValue *v)
{
    return !hn_value_is_read(v) && !v->is_input;
}

static gboolean eliminate_dead(HnRewrite *r, HnGraph *g)
{
    const HnValue *site = NULL;
    for (guint i = 0; i < g->nodes->len && site == NULL; i++) {
        const HnNode *n = g->nodes->pdata[i];
        if (!hn_node_is_read(n) && n->out->len > 0)
            site = n->out->pdata[0];
    }
    for (guint i = 0; i < g->weights->len && site == NULL; i++)
        if (is_spare(g->weights->pdata[i]))
            site = g->weights->pdata[i];
    return site != NULL && hn_rw_go_graph(r, g, site) && hn_rw_sweep_all(r, g);
}

const HnPass hn_pass_eliminate_dead = {
    .name = "eliminate-dead",
    .summary = "remove nodes and weights that no output needs",
    .level = 1,
    .graph = eliminate_dead,
};
