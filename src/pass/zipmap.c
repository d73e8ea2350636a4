#include "pass/zipmap.h"

#include "op/ops.h"

#define OPSET 13 /* of a model that imports none of the default domain: the oldest whose Identity takes every type */

static HnType *scores_type(const HnNode *n)
{
    HnType *t = hn_node_in(n, 0) != NULL ? hn_node_in(n, 0)->type : NULL;
    if (hn_type_is_tensor(t))
        return hn_type_ref(t);
    const HnDim dims[] = { hn_dim_unknown(), hn_dim_unknown() };
    return hn_type_tensor(HN_F32, 2, dims);
}

static gboolean unzip(HnModel *m, HnNode *n)
{
    HnValue *v = hn_node_out(n, 0);
    if (v == NULL || !v->is_output || v->users->len > 0 || hn_node_in(n, 0) == NULL)
        return FALSE;
    g_autoptr(HnType) type = scores_type(n);
    if (hn_model_opset(m, NULL) == 0)
        hn_model_set_opset(m, NULL, OPSET);
    while (n->attrs->len > 0) {
        g_autofree char *name = g_strdup(((const HnAttr *)n->attrs->pdata[0])->name);
        hn_node_remove_attr(n, name);
    }
    hn_node_become(n, hn_op_identity.name, NULL);
    hn_value_set_type(v, type);
    return TRUE;
}

int hn_unzip_maps(HnModel *m)
{
    int count = 0;
    for (guint i = 0; i < m->graph->nodes->len; i++) {
        HnNode *n = m->graph->nodes->pdata[i];
        if (hn_op_find(n->domain, n->op_type) == &hn_op_zipmap)
            count += unzip(m, n);
    }
    return count;
}
