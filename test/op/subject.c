#include "subject.h"

#include "base/rng.h"
#include "spec.h"

void hn_subject_inputs_free(GArray *in)
{
    for (guint i = 0; in != NULL && i < in->len; i++)
        hn_spec_clear(&g_array_index(in, HnSpec, i));
    if (in != NULL)
        g_array_unref(in);
}

void hn_subject_clear(HnSubject *s)
{
    g_clear_pointer(&s->in, hn_subject_inputs_free);
    g_clear_pointer(&s->model, hn_model_free);
}

/* f32 elements as another float type; other tensors as they are */
HnTensor *hn_subject_as(HnTensor *t, HnDtype dtype)
{
    if (t == NULL || t->dtype != HN_F32 || dtype == HN_F32)
        return t != NULL ? hn_tensor_ref(t) : NULL;
    HnTensor *c = hn_tensor_new(dtype, t->ndim, t->dims, NULL, NULL);
    for (int64_t i = 0; i < t->n; i++)
        hn_tensor_set_f64(c, i, hn_tensor_get_f64(t, i));
    return c;
}

/* The case's inputs, f32 as dtype. */
GArray *hn_subject_inputs(const HnCase *c, uint64_t seed, HnDtype dtype)
{
    HnRng rng = hn_rng(seed);
    GArray *in = g_array_new(FALSE, FALSE, sizeof(HnSpec));
    g_auto(GStrv) words = hn_spec_words(c->in);
    for (char **w = words; *w != NULL; w++) {
        HnSpec spec = hn_spec_parse(*w, &rng);
        HnTensor *t = hn_subject_as(spec.tensor, dtype);
        hn_tensor_unref(spec.tensor);
        spec.tensor = t;
        g_array_append_val(in, spec);
    }
    return in;
}

/* The newest of the operator's domain, or the one that changed it last. */
static int64_t version_of(const HnOp *op, const HnCase *c)
{
    int64_t newest = op->until > 0 ? op->until : HN_OPSET_MAX;
    for (guint i = 0; op->domain != NULL && i < G_N_ELEMENTS(op->since) && op->since[i] != 0; i++)
        newest = op->since[i];
    return c->opset > 0 ? c->opset : newest;
}

/* in: of hn_subject_inputs(), referred to and left as it is. */
void hn_subject_init(HnSubject *s, const HnOp *op, const HnCase *c, const GArray *in, int n_out)
{
    s->model = hn_model_new();
    const int64_t version = version_of(op, c);
    hn_model_set_opset(s->model, op->domain, version);
    s->in = g_array_new(FALSE, FALSE, sizeof(HnSpec));
    g_array_append_vals(s->in, in->data, in->len);
    for (guint i = 0; i < in->len; i++)
        if (g_array_index(in, HnSpec, i).tensor != NULL)
            hn_tensor_ref(g_array_index(in, HnSpec, i).tensor);
    HnGraph *g = s->model->graph;
    s->node = hn_graph_add_node(g, -1, op->name, op->domain, "node");
    s->node->version = version;
    for (guint i = 0; i < s->in->len; i++) {
        const HnSpec spec = g_array_index(s->in, HnSpec, i);
        HnTensor *t = spec.tensor;
        if (t == NULL) {
            hn_node_add_in(s->node, NULL);
            continue;
        }
        g_autofree char *name = g_strdup_printf("x%u", i);
        HnValue *v = hn_graph_value(g, name);
        g_autoptr(HnType) type = hn_type_of(t);
        hn_value_set_type(v, type);
        if (spec.weight)
            hn_graph_add_weight(g, v, t);
        else
            hn_graph_add_input(g, v);
        hn_node_add_in(s->node, v);
    }
    for (int k = 0; k < n_out; k++) {
        g_autofree char *name = g_strdup_printf("y%d", k);
        HnValue *v = hn_graph_value(g, name);
        hn_node_add_out(s->node, v);
        hn_graph_add_output(g, v);
    }
    g_auto(GStrv) attrs = hn_spec_words(c->attrs);
    for (char **a = attrs; *a != NULL; a++)
        hn_node_set_attr(s->node, hn_spec_attr(*a));
}

int hn_subject_outputs(const HnCase *c)
{
    g_auto(GStrv) want = hn_spec_words(c->want);
    const guint n = g_strv_length(want);
    return c->n_out > 0 ? c->n_out : n > 0 ? (int)n : 1;
}
