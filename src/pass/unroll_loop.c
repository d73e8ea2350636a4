/*
 * Loop that is known to run a few times, and Scan over few elements: the body's nodes stand in the graph around it,
 * once for each run. Limits keep the model from growing: one that runs once or never goes whatever its size.
 */
#include "op/cast.h"
#include "pass/shapes.h"

#define MOST_RUNS 16
#define MOST_NODES 128  /* of all runs together */
#define GROWN 128       /* times these where hn_rw_unrolls() */
#define MOST_BYTES 4096 /* of weights in graphs inside the body, which are written once for each run */

typedef struct {
    HnNode *n;
    HnGraph *body;
    int64_t runs;
    int states, stacked; /* outputs of n: states first */
    int first_out;       /* output of the body that the first state is */
    int64_t scans;       /* Scan: inputs that are looked at element by element */
} Unroll;

/* --- how often ---------------------------------------------------------------------------------------------------- */

static void count_node(HnNode *n, gpointer data)
{
    int64_t *count = data; /* nodes, bytes of weights below */
    count[0]++;
    for (guint i = 0; i < n->attrs->len; i++) {
        const HnAttr *a = n->attrs->pdata[i];
        for (guint k = 0; a->kind == HN_ATTR_GRAPH && k < a->g->weights->len; k++) {
            const HnValue *v = a->g->weights->pdata[k];
            count[1] += v->weight != NULL ? (int64_t)v->weight->bytes : MOST_BYTES;
        }
        count[1] += a->kind == HN_ATTR_TENSOR ? (int64_t)a->t->bytes : 0;
    }
}

static gboolean is_small(HnRewrite *r, const Unroll *u)
{
    int64_t count[2] = { 0, 0 };
    const int most = hn_rw_unrolls(r) ? GROWN : 1;
    if (u->runs <= 1)
        return TRUE;
    if (u->runs > most * MOST_RUNS)
        return hn_rw_miss(r, u->n, "%" PRId64 " runs are more than %d", u->runs, most * MOST_RUNS);
    hn_graph_foreach_node(u->body, count_node, count);
    if (count[0] * u->runs > most * MOST_NODES)
        return hn_rw_miss(r, u->n, "%" PRId64 " runs would be %" PRId64 " nodes, more than %d", u->runs,
                          count[0] * u->runs, most * MOST_NODES);
    return count[1] <= MOST_BYTES || hn_rw_miss(r, u->n, "weights inside the body would be written several times");
}

/* One bool that is known: 0 or 1; -1: not known. */
static int truth(const HnRewrite *r, const HnValue *v)
{
    const HnTensor *t = hn_rw_const(r, v);
    return t == NULL || t->dtype != HN_BOOL || t->n != 1 ? -1 : hn_tensor_get_i64(t, 0) != 0;
}

/* v, through Identity and Cast to bool in the body. */
static const HnValue *handed_on(const Unroll *u, const HnValue *v)
{
    for (int i = 0; i < 8 && v->graph == u->body && v->producer != NULL; i++) {
        const HnNode *n = v->producer;
        if (n->op != &hn_op_identity && (n->op != &hn_op_cast || ((const HnCast *)n->params)->to != HN_BOOL))
            break;
        v = hn_node_in(n, 0);
    }
    return v;
}

static gboolean loop_runs(HnRewrite *r, Unroll *u)
{
    const HnValue *m = hn_node_in(u->n, 0), *c = hn_node_in(u->n, 1), *next = u->body->outputs->pdata[0];
    const int go = c != NULL ? truth(r, c) : 1;
    int64_t most = G_MAXINT64;
    int len;
    const gboolean counted = m != NULL && hn_rw_ints(r, m, &most, 1, &len) && len == 1;
    if (go == 0 || (counted && most <= 0)) {
        u->runs = 0;
        return TRUE;
    }
    if (go < 0)
        return hn_rw_miss(r, u->n, "the condition is not constant");
    if (m != NULL && !counted)
        return hn_rw_miss(r, u->n, "the number of runs is not known");
    /* without a condition the body's is not looked at, or so the specification says: it has to be true all the same */
    const int more = handed_on(u, next) == u->body->inputs->pdata[1] ? go : truth(r, next);
    if (more == 0 && (c != NULL || m == NULL))
        most = 1;
    if (most != 1 && more != 1)
        return hn_rw_miss(r, u->n, "the body may end the loop");
    if (most == G_MAXINT64)
        return hn_rw_miss(r, u->n, "the loop has no end");
    u->runs = most;
    return TRUE;
}

static int64_t int_of(const HnNode *n, const char *name, int i)
{
    const HnAttr *a = hn_node_attr(n, name);
    return a == NULL ? 0 : a->kind == HN_ATTR_INT ? a->i : a->kind == HN_ATTR_INTS && i < a->n ? a->ints[i] : 0;
}

static gboolean scan_runs(HnRewrite *r, Unroll *u)
{
    for (int i = 0; i < u->scans; i++) {
        HnDim d = hn_rw_dim(r, hn_node_in(u->n, u->states + i), (int)int_of(u->n, "scan_input_axes", i));
        if (d.known) {
            u->runs = d.n;
            return TRUE;
        }
    }
    return hn_rw_miss(r, u->n, "the number of runs is not known");
}

/* --- one run ------------------------------------------------------------------------------------------------------ */

static HnTensor *bool_tensor(int rank)
{
    const int64_t one[] = { 1 };
    HnTensor *t = hn_tensor_new(HN_BOOL, rank, one, NULL, NULL);
    if (t != NULL)
        *(uint8_t *)t->data = 1;
    return t;
}

static int declared_rank(const HnValue *v)
{
    return hn_type_rank(v->type) == 1;
}

/* The two inputs that every Loop body has: the number of the run, and that it goes on. */
static void loop_inputs(HnRewrite *r, const Unroll *u, int64_t run, HnValue **in)
{
    HnGraph *g = u->n->graph;
    const HnValue *number = u->body->inputs->pdata[0], *go = u->body->inputs->pdata[1];
    in[0] = hn_rw_weight(r, g, "run", declared_rank(number) == 1 ? hn_tensor_ints(&run, 1) : hn_tensor_scalar_i64(run));
    in[1] = hn_rw_weight(r, g, "go", bool_tensor(declared_rank(go)));
}

/* Element `run` of the scanned inputs. */
static void scan_inputs(HnRewrite *r, const Unroll *u, int64_t run, HnValue **in)
{
    for (int i = 0; i < u->scans; i++) {
        HnValue *x = hn_node_in(u->n, u->states + i);
        const int64_t at = int_of(u->n, "scan_input_directions", i) != 0 ? u->runs - 1 - run : run;
        HnValue *index = hn_rw_weight(r, u->n->graph, "run", hn_tensor_scalar_i64(at));
        HnNode *gather = hn_rw_add(r, u->n, "Gather", HN_INS(x, index));
        hn_node_set_int(gather, "axis", int_of(u->n, "scan_input_axes", i));
        in[u->states + i] = hn_rw_out(r, gather, x->name);
    }
}

/* v with a new axis of one element; where the axis counts from the back, v's rank is known or does not matter. */
static HnNode *unsqueeze(HnRewrite *r, const Unroll *u, HnValue *v, int64_t axis)
{
    const int at = (int)axis;
    return hn_shapes_squeeze(r, u->n, "Unsqueeze", v, &at, 1);
}

/* Output k of n: what all runs gave, one behind the other. */
static void stack(HnRewrite *r, const Unroll *u, int k, HnValue *const *items)
{
    const gboolean scan = u->scans > 0, back = int_of(u->n, "scan_output_directions", k - u->states) != 0;
    const int64_t axis = scan ? int_of(u->n, "scan_output_axes", k - u->states) : 0;
    HnValue *to = hn_node_out(u->n, k);
    if (u->runs == 1) {
        hn_rw_take_value(r, unsqueeze(r, u, items[0], axis), to);
        return;
    }
    g_autofree HnValue **parts = g_new(HnValue *, (gsize)u->runs);
    for (int64_t i = 0; i < u->runs; i++)
        parts[back ? u->runs - 1 - i : i] = hn_rw_out(r, unsqueeze(r, u, items[i], axis), items[i]->name);
    HnNode *all = hn_rw_add(r, u->n, "Concat", parts, (int)u->runs);
    hn_node_set_int(all, "axis", axis);
    hn_rw_take_value(r, all, to);
}

static void unroll(HnRewrite *r, const Unroll *u)
{
    const int head = u->scans > 0 ? 0 : 2;
    const guint n_out = u->body->outputs->len;
    g_autofree HnValue **in = g_new0(HnValue *, u->body->inputs->len + 1u);
    g_autofree HnValue **out = g_new0(HnValue *, n_out + 1u);
    g_autofree HnValue **items = g_new0(HnValue *, (gsize)u->stacked * (gsize)u->runs + 1);
    g_autoptr(GHashTable) shared = g_hash_table_new(NULL, NULL);
    for (int i = 0; i < u->states; i++)
        in[head + i] = hn_node_in(u->n, head + i);
    for (int64_t run = 0; run < u->runs; run++) {
        if (u->scans > 0)
            scan_inputs(r, u, run, in);
        else
            loop_inputs(r, u, run, in);
        hn_rw_inline_graph(r, u->n, u->body, in, shared, out);
        for (int i = 0; i < u->states; i++)
            in[head + i] = out[u->first_out + i];
        for (int k = 0; k < u->stacked; k++)
            items[k * u->runs + run] = out[u->first_out + u->states + k];
    }
    for (int k = 0; k < u->stacked; k++)
        if (hn_value_is_read(hn_node_out(u->n, u->states + k)))
            stack(r, u, u->states + k, items + k * u->runs);
    for (int i = 0; i < u->states; i++)
        hn_rw_stand_in(r, u->n, i, in[head + i]);
}

static gboolean unroll_loop(HnRewrite *r, HnNode *n)
{
    if (n->op != &hn_op_loop && (n->op != &hn_op_scan || n->version < 9))
        return FALSE;
    const gboolean loop = n->op == &hn_op_loop;
    const HnAttr *a = hn_node_attr(n, "body");
    Unroll u = { .n = n, .body = a->g, .first_out = loop ? 1 : 0 };
    u.scans = loop ? 0 : int_of(n, "num_scan_inputs", 0);
    u.states = loop ? (int)MAX(n->in->len, 2) - 2 : (int)(n->in->len - u.scans);
    u.stacked = (int)a->g->outputs->len - u.first_out - u.states;
    if (!hn_node_is_read(n) || !(loop ? loop_runs(r, &u) : scan_runs(r, &u)) || !is_small(r, &u))
        return FALSE;
    for (int k = 0; k < u.stacked; k++) {
        const int64_t axis = int_of(n, "scan_output_axes", k);
        if (u.runs == 0 && hn_value_is_read(hn_node_out(n, u.states + k)))
            return hn_rw_miss(r, n, "it never runs, and '%s' has no shape", hn_node_out(n, u.states + k)->name);
        if (axis < 0 && !loop && hn_rw_opset(n->graph) < 11)
            return hn_rw_miss(r, n, "axis %" PRId64 " counts from the back", axis);
    }
    if (!hn_rw_go(r, n))
        return FALSE;
    unroll(r, &u);
    return TRUE;
}

const HnPass hn_pass_unroll_loop = {
    .name = "unroll-loop",
    .summary = "Loop and Scan that run a few times become the nodes of their runs",
    .level = 1,
    .node = unroll_loop,
};
