/*
 * Which channels go together (HN_BOND_FATE): models as text, groups of classes as text. A line is how many classes lie
 * along which axes of which values and weights, in how many places of each, and why they stay where they do. What may
 * go is removed: the model without it does what the whole one does with 0 in its place.
 */
#include <string.h>

#include "pass/lib/channel_removal.h"
#include "run_model.h"

typedef struct {
    const char *text, *want;
} Case;

static HnModel *typed(const char *text)
{
    g_autoptr(GError) error = NULL;
    HnModel *m = test_model(text);
    g_assert_true(hn_graph_infer(m->graph, FALSE, &error));
    g_assert_no_error(error);
    return m;
}

/* --- without them ------------------------------------------------------------------------------------------------- */

/* Random inputs; sizes that are symbols are 8. */
static GPtrArray *inputs_of(const HnModel *m)
{
    GPtrArray *in = g_ptr_array_new_with_free_func((GDestroyNotify)hn_tensor_unref);
    for (guint i = 0; i < m->graph->inputs->len; i++) {
        const HnType *t = ((const HnValue *)m->graph->inputs->pdata[i])->type;
        int64_t dims[HN_MAX_RANK];
        for (int k = 0; k < t->rank; k++)
            dims[k] = t->dims[k].known ? t->dims[k].n : 8;
        g_ptr_array_add(in, test_random(t->dtype, t->rank, dims, 11 + i));
    }
    return in;
}

/* NULL: it does not run on such inputs. */
static GPtrArray *results_of(HnModel *m, GError **error)
{
    g_autoptr(HnSession) s = test_session(m, &hn_backend_ref, &(HnSessionOptions){ .threads = 1 });
    g_autoptr(GPtrArray) in = inputs_of(m);
    GPtrArray *out = g_ptr_array_new_with_free_func((GDestroyNotify)hn_tensor_unref);
    g_ptr_array_set_size(out, hn_session_n_outputs(s));
    if (hn_session_run(s, (HnTensor *const *)in->pdata, (HnTensor **)out->pdata, error))
        return out;
    g_ptr_array_unref(out);
    return NULL;
}

/* Weights that a reader has less of; none has more. */
static guint smaller_weights(const HnModel *less, const HnModel *whole)
{
    guint n = 0;
    for (guint i = 0; i < less->graph->nodes->len; i++) { /* the masked one has nodes of its own besides */
        const HnNode *b = less->graph->nodes->pdata[i];
        const HnNode *a = hn_graph_find(whole->graph, hn_node_out(b, 0)->name)->producer;
        for (guint k = 0; k < a->in->len; k++) {
            const HnValue *x = a->in->pdata[k], *y = b->in->pdata[k];
            if (x == NULL || x->weight == NULL || x->weight->dtype != HN_F32)
                continue;
            g_assert_cmpint(y->weight->n, <=, x->weight->n);
            n += y->weight->n < x->weight->n;
        }
    }
    return n;
}

/* The model without those classes does what it does with 0 in their places; nothing of them is left. */
static void without(const HnChannels *c, const char *text, const guint8 *gone)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(HnModel) whole = typed(text), less = typed(text);
    g_assert_true(hn_channels_mask(c, gone, whole, &error));
    g_assert_no_error(error);
    hn_channels_remove(c, gone, less, &error);
    g_assert_no_error(error);
    g_assert_true(hn_model_verify(less, &error));
    g_assert_no_error(error);
    g_assert_cmpuint(smaller_weights(less, whole), >, 0);
    g_autoptr(GPtrArray) want = results_of(whole, NULL), got = want != NULL ? results_of(less, &error) : NULL;
    if (want == NULL)
        return;
    g_assert_no_error(error);
    for (guint i = 0; i < want->len; i++)
        test_assert_close(got->pdata[i], want->pdata[i], 1e-5, 1e-6, text);
}

/* Of each group the first class, the last, every second one, and others by chance. */
static void remove_some(HnChannels *c, const char *text)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(GPtrArray) groups = hn_channels_groups(c);
    HnRng rng = hn_rng(3);
    for (int way = 0; way < 5; way++) {
        g_autofree guint8 *gone = g_new0(guint8, (gsize)hn_channels_count(c) + 1);
        gboolean any = FALSE;
        for (guint i = 0; i < groups->len; i++) {
            const HnChannelGroup *g = groups->pdata[i];
            for (guint k = 0; hn_channels_locked(c, g_array_index(g->classes, int, 0)) == NULL && k < g->classes->len;
                 k++) {
                const guint last = g->classes->len - 1, keep = hn_rng_int(&rng, 0, (int64_t)last);
                const gboolean now = way == 0 ? k == 0 : way == 1 ? k == last : way == 2 ? k % 2 == 1 : k != keep;
                if (!now || last == 0 || (way > 2 && hn_rng_double(&rng) < 0.4))
                    continue;
                gone[g_array_index(g->classes, int, k)] = 1;
                any = TRUE;
            }
            /* one stays */
            guint left = 0;
            for (guint k = 0; k < g->classes->len; k++)
                left += !gone[g_array_index(g->classes, int, k)];
            gone[g_array_index(g->classes, int, 0)] &= left > 0;
        }
        if (any)
            without(c, text, gone);
    }
}

/* --- what is said ------------------------------------------------------------------------------------------------- */

static void expect(const Case *x)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(HnModel) m = typed(x->text);
    g_autoptr(HnBudget) budget = hn_budget_new((gsize)1 << 30);
    HnChannels *c = hn_channels_new(m, HN_BOND_FATE, budget, &error);
    g_assert_no_error(error);
    g_autofree char *got = hn_channels_describe(c);
    if (strcmp(got, x->want) != 0) {
        g_test_message("of\n%sgot\n%swanted\n%s", x->text, got, x->want);
        g_test_fail();
    }
    hn_channels_lock_fixed(c, &error);
    g_assert_no_error(error);
    remove_some(c, x->text);
    hn_channels_free(c);
    g_assert_cmpuint(hn_budget_used(budget), ==, 0);
}

#define LAST "3: y[1] z[0]; locked: 'y' is an output of the model\n"

static const Case chain[] = {
    /* convolution, norm, activation, pool, another one; a batch and an image of any size */
    { "opset 17\n"
      "%1 = Conv(%x:f32[N,3,H,W], w:f32[4,3,3,3], b:f32[4])\n"
      "%2 = BatchNormalization(%1, s:f32[4], t:f32[4], m:f32[4], v:f32[4]=fill(1,1,2))\n"
      "%3 = Sigmoid(%2)\n"
      "%4 = MaxPool(%3) kernel_shape=[2,2]\n"
      "%y = Conv(%4, z:f32[3,4,1,1])\n",
      "4: 1[1] 2[1] 3[1] 4[1] w[0] b[0] s[0] t[0] m[0] v[0] z[1]\n" LAST },
    /* a norm written out decides by all channels */
    { "opset 17\n"
      "%1 = MatMul(%x:f32[2,3], w:f32[3,4])\n"
      "%2 = Mul(%1, %1)\n"
      "%3 = ReduceMean(%2) axes=[-1]\n"
      "%4 = Sqrt(%3)\n"
      "%5 = Div(%1, %4)\n"
      "%y = MatMul(%5, z:f32[4,3])\n",
      "4: 1[1] 2[1] 5[1] w[1] z[0]; locked: '3' (ReduceMean): it reduces all channels to one number\n"
      "3: y[1] z[1]; locked: 'y' is an output of the model\n" },
    /* one written out by sums, which miss nothing; its scales are spread over rows of one number, not over two */
    { "opset 17\n"
      "%1 = MatMul(%x:f32[2,3], w:f32[3,4])\n"
      "%2 = Sigmoid(%1)\n"
      "%3 = ReduceSum(%2, a:i64[1]={-1})\n"
      "%4 = Mul(%3, s:f32[1,4])\n"
      "%5 = Mul(%2, %4)\n"
      "%y = MatMul(%5, z:f32[4,3])\n",
      "4: 1[1] 2[1] 4[1] 5[1] w[1] s[1] z[0]\n"
      "3: y[1] z[1]; locked: 'y' is an output of the model\n" },
    { "opset 17\n"
      "%1 = MatMul(%x:f32[2,3], w:f32[3,4])\n"
      "%2 = Mul(%u:f32[2,1], s:f32[2,4])\n"
      "%y = Mul(%1, %2)\n",
      "4: 1[1] w[1]; locked: 'y' (Mul): channels of an operand stay\n" },
    /* a bias that several read is short: each has its own */
    { "opset 17\n"
      "%1 = Conv(%x:f32[2,3,8,8], w:f32[4,3,1,1], b:f32[4])\n"
      "%2 = Relu(%1)\n"
      "%3 = Conv(%2, v:f32[4,4,1,1], b)\n"
      "%y = Conv(%3, z:f32[3,4,1,1])\n",
      "4: 1[1] 2[1] w[0] b[0] v[1]\n"
      "4: 3[1] v[0] b[0] z[1]\n" LAST },
    /* planes flattened: 9 features for each channel */
    { "opset 17\n"
      "%1 = Conv(%x:f32[2,3,3,3], w:f32[4,3,1,1])\n"
      "%2 = Flatten(%1)\n"
      "%y = Gemm(%2, z:f32[3,36], c:f32[3]) transB=1\n",
      "4: 1[1] 2[1]x9 w[0] z[1]x9\n"
      "3: y[1] z[0] c[0]; locked: 'y' is an output of the model\n" },
    /* means over the plane, with and without its axes */
    { "opset 17\n"
      "%1 = Conv(%x:f32[2,3,3,3], w:f32[4,3,1,1])\n"
      "%2 = ReduceMean(%1) axes=[2,3] keepdims=0\n"
      "%y = Gemm(%2, z:f32[4,3])\n",
      "4: 1[1] 2[1] w[0] z[0]\n"
      "3: y[1] z[1]; locked: 'y' is an output of the model\n" },
    /* near miss: a mean over channels */
    { "opset 17\n"
      "%1 = Conv(%x:f32[2,3,3,3], w:f32[4,3,1,1])\n"
      "%2 = ReduceMean(%1) axes=[1]\n"
      "%y = Conv(%2, z:f32[3,1,1,1])\n",
      "4: 1[1] w[0]; locked: '2' (ReduceMean): it reduces all channels to one number\n" LAST },
    /* a sum over channels leaves nothing to follow */
    { "opset 17\n"
      "%1 = Conv(%x:f32[2,3,3,3], w:f32[4,3,1,1])\n"
      "%2 = ReduceSum(%1, a:i64[1]={1})\n"
      "%y = Conv(%2, z:f32[3,1,1,1])\n",
      "4: 1[1] w[0]\n" LAST },
    /* near miss: a softmax over channels; one over the plane lets them through */
    { "opset 17\n"
      "%1 = Conv(%x:f32[2,3,3,3], w:f32[4,3,1,1])\n"
      "%2 = Softmax(%1) axis=1\n"
      "%y = Conv(%2, z:f32[3,4,1,1])\n",
      "4: 1[1] w[0]; locked: '2' (Softmax): all channels of a row decide about each\n" LAST },
    { "opset 17\n"
      "%1 = Conv(%x:f32[2,3,3,3], w:f32[4,3,1,1])\n"
      "%2 = Softmax(%1) axis=-1\n"
      "%y = Conv(%2, z:f32[3,4,1,1])\n",
      "4: 1[1] 2[1] w[0] z[1]\n" LAST },
    /* near miss: an operator that mixes */
    { "opset 17\n"
      "%1 = Conv(%x:f32[2,3,3,3], w:f32[4,3,1,1])\n"
      "%2 = LRN(%1) size=3\n"
      "%y = Conv(%2, z:f32[3,4,1,1])\n",
      "4: 1[1] w[0]; locked: '2' (LRN): what it does to channels is not known\n" LAST },
    /* an old Pad may move them */
    { "opset 10\n"
      "%1 = Conv(%x:f32[2,3,4,4], w:f32[4,3,1,1])\n"
      "%2 = Pad(%1) pads=[0,0,1,1,0,0,1,1]\n"
      "%y = Conv(%2, z:f32[3,4,1,1])\n",
      "4: 1[1] w[0]; locked: '2' (Pad): where it moves channels is not known\n" LAST },
    /* near miss: somebody reads which elements were dropped */
    { "opset 17\n"
      "%1 = Conv(%x:f32[2,3,4,4], w:f32[4,3,1,1])\n"
      "%2, %3 = Dropout(%1)\n"
      "%4 = Conv(%2, z:f32[3,4,1,1])\n"
      "%5 = Cast(%3) to=1\n"
      "%y = ReduceMax(%5)\n",
      "4: 1[1] w[0]; locked: '2' (Dropout): it has several results\n"
      "3: 4[1] z[0]; locked: '4' is an output of the model\n" },
    /* near miss: a branch reads them */
    { "opset 17\n"
      "%1 = Conv(%x:f32[2,3,4,4], w:f32[4,3,1,1])\n"
      "%2 = If(%c:bool) then_branch=graph() -> (%t) { %t = Relu(%1) } else_branch=graph() -> (%e) { %e = Neg(%1) }\n"
      "%y = Conv(%1, z:f32[3,4,1,1])\n",
      "4: 1[1] w[0] z[1]; locked: '2' (If): what it does to channels is not known\n" LAST },
    /* near miss: weights that are computed */
    { "opset 17\n"
      "%1 = Conv(%x:f32[2,3,4,4], w:f32[4,3,1,1])\n"
      "%2 = Conv(%1, %v:f32[4,4,1,1])\n"
      "%y = Conv(%2, z:f32[3,4,1,1])\n",
      "4: 1[1] w[0]; locked: '2' (Conv): its weights are not constant\n" LAST },
    /* an output in the middle */
    { "opset 17 graph g(%x:f32[2,3,4,4]) -> (%1, %y) { %1 = Conv(%x, w:f32[4,3,1,1]) %y = Conv(%1, z:f32[3,4,1,1]) }\n",
      "4: 1[1] w[0] z[1]; locked: '1' is an output of the model\n" LAST },
    /* a long weight of two layers: one fate for what both make and read */
    { "opset 17\n"
      "%1 = MatMul(%x:f32[2,72], w:f32[72,72])\n"
      "%2 = Relu(%1)\n"
      "%3 = MatMul(%2, v:f32[72,72])\n"
      "%4 = Relu(%3)\n"
      "%5 = MatMul(%4, v)\n"
      "%y = MatMul(%5, z:f32[72,3])\n",
      "72: 1[1] 2[1] 3[1] 4[1] 5[1] w[1] v[1] v[0] z[0]\n"
      "3: y[1] z[1]; locked: 'y' is an output of the model\n" },
    /* near miss: another node reads it as it is */
    { "opset 17\n"
      "%1 = MatMul(%x:f32[2,72], w:f32[72,72])\n"
      "%2 = Relu(%1)\n"
      "%3 = MatMul(%2, v:f32[72,72])\n"
      "%u = Neg(v)\n"
      "%y = MatMul(%3, z:f32[72,3])\n",
      "72: 1[1] 2[1] w[1] v[0]; locked: weight 'v' is read by several nodes\n"
      "72: 3[1] v[1] z[0]; locked: weight 'v' is read by several nodes\n"
      "3: y[1] z[1]; locked: 'y' is an output of the model\n" },
    /* near miss: a long weight of two products that read it along different axes */
    { "opset 17\n"
      "%1 = MatMul(%x:f32[2,72], w:f32[72,72])\n"
      "%2 = Relu(%1)\n"
      "%3 = MatMul(%2, v:f32[72,72])\n"
      "%4 = Relu(%3)\n"
      "%5 = MatMul(%u:f32[2,72], v)\n"
      "%6 = Relu(%5)\n"
      "%7 = MatMul(%6, q:f32[72,3])\n"
      "%8 = MatMul(%4, z:f32[72,3])\n"
      "%y = Add(%7, %8)\n",
      "72: 1[1] 2[1] w[1] v[0]; locked: weight 'v' is read by several nodes\n"
      "72: 3[1] 4[1] v[1] z[0]; locked: weight 'v' is read by several nodes\n"
      "72: 5[1] 6[1] v[1] q[0]; locked: weight 'v' is read by several nodes\n"
      "3: 7[1] 8[1] y[1] q[1] z[1]; locked: 'y' is an output of the model\n" },
    { NULL, NULL },
};

static const Case heads[] = {
    /* sequences of any length */
    { "opset 17\n"
      "%q = MatMul(%x:f32[N,T,6], wq:f32[6,8])\n"
      "%q1 = Reshape(%q, s:i64[4]={0,0,2,4})\n"
      "%q2 = Transpose(%q1) perm=[0,2,1,3]\n"
      "%1 = Softmax(%q2)\n"
      "%2 = Transpose(%1) perm=[0,2,1,3]\n"
      "%3 = Reshape(%2, t:i64[3]={0,0,8})\n"
      "%y = MatMul(%3, z:f32[8,3])\n",
      "2: q[2]x4 q1[2] q2[1] 1[1] 2[2] 3[2]x4 wq[1]x4 z[0]x4\n"
      "3: y[2] z[1]; locked: 'y' is an output of the model\n" },
    /* heads, written out: queries, keys and values of one go together */
    { "opset 17\n"
      "%q = MatMul(%x:f32[2,5,6], wq:f32[6,8])\n"
      "%k = MatMul(%x, wk:f32[6,8])\n"
      "%v = MatMul(%x, wv:f32[6,8])\n"
      "%q1 = Reshape(%q, s:i64[4]={0,0,2,4})\n"
      "%k1 = Reshape(%k, s)\n"
      "%v1 = Reshape(%v, s)\n"
      "%q2 = Transpose(%q1) perm=[0,2,1,3]\n"
      "%k2 = Transpose(%k1) perm=[0,2,3,1]\n"
      "%v2 = Transpose(%v1) perm=[0,2,1,3]\n"
      "%p = MatMul(%q2, %k2)\n"
      "%p1 = Mul(%p, c:f32)\n"
      "%p2 = Add(%p1, %m:f32[2,1,5,5])\n"
      "%p3 = Softmax(%p2)\n"
      "%o = MatMul(%p3, %v2)\n"
      "%o1 = Transpose(%o) perm=[0,2,1,3]\n"
      "%o2 = Reshape(%o1, t:i64[3]={0,0,8})\n"
      "%y = MatMul(%o2, z:f32[8,3])\n",
      "2: q[2]x4 k[2]x4 v[2]x4 q1[2] k1[2] v1[2] q2[1] k2[1] v2[1] p[1] p1[1] p2[1] p3[1] o[1] o1[2] o2[2]x4 wq[1]x4 "
      "wk[1]x4 wv[1]x4 z[0]x4\n"
      "3: y[2] z[1]; locked: 'y' is an output of the model\n" },
    /* near miss: keys are an input */
    { "opset 17\n"
      "%q = MatMul(%x:f32[2,5,6], wq:f32[6,8])\n"
      "%q1 = Reshape(%q, s:i64[4]={0,0,2,4})\n"
      "%q2 = Transpose(%q1) perm=[0,2,1,3]\n"
      "%p = MatMul(%q2, %k:f32[2,2,4,5])\n"
      "%y = Neg(%p)\n",
      "8: q[2] wq[1]; locked: 'p' (MatMul): it multiplies them with what stays\n" },
    /* one head: what is summed over goes pair by pair */
    { "opset 17\n"
      "%q = MatMul(%x:f32[2,5,6], wq:f32[6,4])\n"
      "%k = MatMul(%x, wk:f32[6,4])\n"
      "%k1 = Transpose(%k) perm=[0,2,1]\n"
      "%y = MatMul(%q, %k1)\n",
      "4: q[2] k[2] k1[1] wq[1] wk[1]\n" },
    /* rotations of pairs within a head: what they are multiplied by has no heads */
    { "opset 17\n"
      "%q = MatMul(%x:f32[2,5,6], wq:f32[6,8])\n"
      "%1 = Reshape(%q, s:i64[4]={0,0,2,4})\n"
      "%2 = Mul(%1, c:f32[5,1,4])\n"
      "%3, %4 = Split(%1, p:i64[2]={2,2}) axis=-1\n"
      "%5 = Neg(%4)\n"
      "%6 = Concat(%5, %3) axis=-1\n"
      "%7 = Mul(%6, d:f32[5,1,4])\n"
      "%8 = Add(%2, %7)\n"
      "%9 = Reshape(%8, t:i64[3]={0,0,8})\n"
      "%y = MatMul(%9, z:f32[8,3])\n",
      "2: q[2]x4 1[2] 2[2] 3[2] 4[2] 5[2] 6[2] 7[2] 8[2] 9[2]x4 wq[1]x4 z[0]x4\n"
      "3: y[2] z[1]; locked: 'y' is an output of the model\n" },
    /* near miss: a number for each head cannot go with it */
    { "opset 17\n"
      "%q = MatMul(%x:f32[2,5,6], wq:f32[6,8])\n"
      "%1 = Reshape(%q, s:i64[4]={0,0,2,4})\n"
      "%2 = Mul(%1, c:f32[2,1])\n"
      "%9 = Reshape(%2, t:i64[3]={0,0,8})\n"
      "%y = MatMul(%9, z:f32[8,3])\n",
      "4: q[2]x2 1[3] 2[3] 9[2]x2 wq[1]x2 z[0]x2\n"
      "3: y[2] z[1]; locked: 'y' is an output of the model\n" },
    /* heads of each batch by themselves, where keys have one for all */
    { "opset 17\n"
      "%q = MatMul(%x:f32[2,5,6], wq:f32[6,8])\n"
      "%k = MatMul(%x, wk:f32[6,4])\n"
      "%q1 = Reshape(%q, s:i64[4]={0,0,2,4})\n"
      "%k1 = Reshape(%k, t:i64[4]={0,0,1,4})\n"
      "%q2 = Transpose(%q1) perm=[0,2,1,3]\n"
      "%k2 = Transpose(%k1) perm=[0,2,3,1]\n"
      "%p = MatMul(%q2, %k2)\n"
      "%y = ReduceMax(%p) axes=[-1]\n",
      "1: q[2]x8 k[2]x4 k1[3]x4 k2[2]x4 p[1]x2 y[1]x2 wq[1]x8 wk[1]x4; locked: 'y' is an output of the model\n" },
    { NULL, NULL },
};

static const Case joins[] = {
    /* two that are multiplied, and a choice between two */
    { "opset 17\n"
      "%1 = MatMul(%x:f32[2,3], w:f32[3,4])\n"
      "%2 = MatMul(%x, v:f32[3,4])\n"
      "%3 = Mul(%1, %2)\n"
      "%4 = Greater(%1, %2)\n"
      "%5 = Where(%c:bool[2,1], %3, %1)\n"
      "%y = MatMul(%5, z:f32[4,3])\n",
      "4: 1[1] 2[1] 3[1] 5[1] w[1] v[1] z[0]; locked: '4' (Greater): its result is no number\n"
      "3: y[1] z[1]; locked: 'y' is an output of the model\n" },
    /* a residual: one fate for both summands */
    { "opset 17\n"
      "%1 = Conv(%x:f32[2,3,8,8], w:f32[4,3,1,1])\n"
      "%2 = Relu(%1)\n"
      "%3 = Conv(%2, v:f32[4,4,1,1])\n"
      "%4 = Add(%2, %3)\n"
      "%y = Conv(%4, z:f32[3,4,1,1])\n",
      "4: 1[1] 2[1] 3[1] 4[1] w[0] v[0] v[1] z[1]\n" LAST },
    /* near miss: what is added is an input */
    { "opset 17\n"
      "%1 = Conv(%x:f32[2,3,8,8], w:f32[4,3,1,1])\n"
      "%2 = Add(%1, %u:f32[2,4,8,8])\n"
      "%y = Conv(%2, z:f32[3,4,1,1])\n",
      "4: 1[1] w[0]; locked: '2' (Add): channels of an operand stay\n" LAST },
    /* a number, a list, and a plane that is the same for all channels may be added */
    { "opset 17\n"
      "%1 = Conv(%x:f32[2,3,2,2], w:f32[4,3,1,1])\n"
      "%2 = Add(%1, a:f32)\n"
      "%3 = Mul(%2, b:f32[4,1,1])\n"
      "%4 = Sub(%3, c:f32[2,2])\n"
      "%5 = Div(%4, %u:f32[2,1,2,2])\n"
      "%y = Conv(%5, z:f32[3,4,1,1])\n",
      "4: 1[1] 2[1] 3[1] 4[1] 5[1] w[0] b[0] z[1]\n" LAST },
    /* gates of squeeze and excitation go with what they gate; what is squeezed does not */
    { "opset 17\n"
      "%1 = Conv(%x:f32[2,3,8,8], w:f32[4,3,1,1])\n"
      "%2 = GlobalAveragePool(%1)\n"
      "%3 = Conv(%2, v:f32[2,4,1,1], b:f32[2])\n"
      "%4 = Relu(%3)\n"
      "%5 = Conv(%4, u:f32[4,2,1,1])\n"
      "%6 = HardSigmoid(%5)\n"
      "%7 = Mul(%1, %6)\n"
      "%y = Conv(%7, z:f32[3,4,1,1])\n",
      "4: 1[1] 2[1] 5[1] 6[1] 7[1] w[0] v[1] u[0] z[1]\n"
      "2: 3[1] 4[1] v[0] b[0] u[1]\n" LAST },
    /* a map of one channel gates all: it has to stay */
    { "opset 17\n"
      "%1 = Conv(%x:f32[2,3,8,8], w:f32[4,3,1,1])\n"
      "%2 = Conv(%1, v:f32[1,4,1,1])\n"
      "%3 = Sigmoid(%2)\n"
      "%4 = Mul(%1, %3)\n"
      "%y = Conv(%4, z:f32[3,4,1,1])\n",
      "4: 1[1] 4[1] w[0] v[1] z[1]\n"
      "1: 2[1] 3[1] v[0]; locked: '4' (Mul): it is spread over all channels\n" LAST },
    /* a concatenation: each at its own offset */
    { "opset 17\n"
      "%1 = Conv(%x:f32[2,3,8,8], w:f32[4,3,1,1])\n"
      "%2 = Conv(%x, v:f32[2,3,1,1])\n"
      "%3 = Concat(%1, %2) axis=1\n"
      "%y = Conv(%3, z:f32[3,6,1,1])\n",
      "4: 1[1] 3[1] w[0] z[1]\n"
      "2: 2[1] 3[1] v[0] z[1]\n" LAST },
    /* one of an input: its channels stay, the others may go */
    { "opset 17\n"
      "%1 = Conv(%x:f32[2,3,8,8], w:f32[4,3,1,1])\n"
      "%2 = Concat(%x, %1) axis=1\n"
      "%y = Conv(%2, z:f32[3,7,1,1])\n",
      "4: 1[1] 2[1] w[0] z[1]\n"
      "1: 2[1]x3 z[1]x3; locked: it does not come from weights that could be smaller\n" LAST },
    /* halves of a split go together when they are added */
    { "opset 17\n"
      "%1 = Conv(%x:f32[2,3,8,8], w:f32[4,3,1,1])\n"
      "%2, %3 = Split(%1, s:i64[2]={2,2}) axis=1\n"
      "%4 = Add(%2, %3)\n"
      "%y = Conv(%4, z:f32[3,2,1,1])\n",
      "2: 1[1]x2 2[1] 3[1] 4[1] w[0]x2 z[1]\n" LAST },
    /* slices of channels; the rest is read by nobody else */
    { "opset 17\n"
      "%1 = Conv(%x:f32[2,3,8,8], w:f32[4,3,1,1])\n"
      "%2 = Slice(%1, b:i64[1]={1}, e:i64[1]={3}, a:i64[1]={1})\n"
      "%y = Conv(%2, z:f32[3,2,1,1])\n",
      "2: 1[1] w[0]\n"
      "2: 1[1] 2[1] w[0] z[1]\n" LAST },
    /* near miss: channels along different axes */
    { "opset 17\n"
      "%1 = MatMul(%x:f32[2,4,3], w:f32[3,4])\n"
      "%2 = Conv(%u:f32[2,3,4], v:f32[4,3,1])\n"
      "%3 = Add(%1, %2)\n"
      "%y = MatMul(%3, z:f32[4,3])\n",
      "4: 1[2] w[1]; locked: '3' (Add): operands have channels along different axes\n"
      "4: 2[1] v[0]; locked: '3' (Add): operands have channels along different axes\n"
      "3: y[2] z[1]; locked: 'y' is an output of the model\n" },
    /* a class of two makers is locked with either */
    { "opset 17 graph g(%x:f32[2,3,4,4]) -> (%3, %y) { %1 = Conv(%x, w:f32[4,3,1,1]) %2 = Conv(%x, v:f32[4,3,1,1]) %3 "
      "= Neg(%2) %4 = Add(%1, %2) %y = Conv(%4, z:f32[3,4,1,1]) }\n",
      "4: 1[1] 2[1] 3[1] 4[1] w[0] v[0] z[1]; locked: '3' is an output of the model\n" LAST },
    { NULL, NULL },
};

static const Case groups[] = {
    /* depthwise: a channel's kernel goes with it */
    { "opset 17\n"
      "%1 = Conv(%x:f32[2,3,8,8], w:f32[4,3,1,1])\n"
      "%2 = Conv(%1, d:f32[4,1,3,3], e:f32[4]) group=4\n"
      "%y = Conv(%2, z:f32[3,4,1,1])\n",
      "4: 1[1] 2[1] w[0] d[0] e[0] z[1]\n" LAST },
    /* two kernels for each */
    { "opset 17\n"
      "%1 = Conv(%x:f32[2,3,8,8], w:f32[2,3,1,1])\n"
      "%2 = Conv(%1, d:f32[4,1,3,3]) group=2\n"
      "%y = Conv(%2, z:f32[3,4,1,1])\n",
      "2: 1[1] 2[1]x2 w[0] d[0]x2 z[1]x2\n" LAST },
    /* few groups: one channel of each */
    { "opset 17\n"
      "%1 = Conv(%x:f32[2,3,8,8], w:f32[8,3,1,1])\n"
      "%2 = Conv(%1, v:f32[8,4,1,1]) group=2\n"
      "%y = Conv(%2, z:f32[3,8,1,1])\n",
      "4: 1[1]x2 w[0]x2 v[1]\n"
      "4: 2[1]x2 v[0]x2 z[1]x2\n" LAST },
    /* many groups: whole ones */
    { "opset 17\n"
      "%1 = Conv(%x:f32[2,3,8,8], w:f32[8,3,1,1])\n"
      "%2 = Conv(%1, v:f32[8,2,1,1], b:f32[8]) group=4\n"
      "%y = Conv(%2, z:f32[3,8,1,1])\n",
      "4: 1[1]x2 2[1]x2 w[0]x2 v[0]x2 b[0]x2 z[1]x2\n" LAST },
    /* near miss: whole groups of an input */
    { "opset 17\n"
      "%2 = Conv(%x:f32[2,8,8,8], v:f32[8,2,1,1], b:f32[8]) group=4\n"
      "%y = Conv(%2, z:f32[3,8,1,1])\n",
      "8: 2[1] z[1]; locked: '2' (Conv): its groups read what stays\n" LAST },
    /* transposed convolutions have their axes the other way round */
    { "opset 17\n"
      "%1 = ConvTranspose(%x:f32[2,3,8,8], w:f32[3,4,2,2], b:f32[4]) strides=[2,2]\n"
      "%2 = ConvTranspose(%1, d:f32[4,1,2,2]) group=4\n"
      "%y = ConvTranspose(%2, z:f32[4,3,1,1])\n",
      "4: 1[1] 2[1] w[1] b[0] d[0] z[0]\n"
      "3: y[1] z[1]; locked: 'y' is an output of the model\n" },
    /* channels normalized together go together */
    { "opset 17\n"
      "%1 = Conv(%x:f32[2,3,8,8], w:f32[4,3,1,1])\n"
      "%2 = InstanceNormalization(%1, s:f32[4], t:f32[4])\n"
      "%3 = Reshape(%2, r:i64[3]={0,2,-1})\n"
      "%4 = InstanceNormalization(%3, p:f32[2], q:f32[2])\n"
      "%5 = Reshape(%4, u:i64[4]={0,4,8,8})\n"
      "%y = Conv(%5, z:f32[3,4,1,1])\n",
      "2: 1[1]x2 2[1]x2 3[1] 4[1] 5[1]x2 w[0]x2 s[0]x2 t[0]x2 p[0] q[0] z[1]x2\n" LAST },
    /* a shuffle of channels */
    { "opset 17\n"
      "%1 = Conv(%x:f32[1,3,4,4], w:f32[4,3,1,1])\n"
      "%2 = Reshape(%1, s:i64[5]={1,2,2,4,4})\n"
      "%3 = Transpose(%2) perm=[0,2,1,3,4]\n"
      "%4 = Reshape(%3, t:i64[4]={1,4,4,4})\n"
      "%5 = Slice(%4, b:i64[1]={0}, e:i64[1]={2}, a:i64[1]={1})\n"
      "%y = Conv(%5, z:f32[3,2,1,1])\n",
      "2: 1[1]x2 2[1] 3[2] 4[1]x2 5[1] w[0]x2 z[1]\n" LAST },
    /* pixels of a channel go together */
    { "opset 17\n"
      "%1 = Conv(%x:f32[2,3,4,4], w:f32[8,3,1,1])\n"
      "%2 = DepthToSpace(%1) blocksize=2\n"
      "%y = Conv(%2, z:f32[3,2,1,1])\n",
      "2: 1[1]x4 2[1] w[0]x4 z[1]\n" LAST },
    { NULL, NULL },
};

static const Case moves[] = {
    /* padding, nearest neighbours and means of them keep channels apart */
    { "opset 17\n"
      "%1 = Conv(%x:f32[2,3,4,4], w:f32[4,3,1,1])\n"
      "%2 = Pad(%1, p:i64[8]={0,0,1,1,0,0,1,1}, f:f32)\n"
      "%3 = Resize(%2, -, s:f32[4]={1,1,2,2}) mode='linear'\n"
      "%4 = Resize(%3, -, t:f32[4]={1,1,2,2}) mode='nearest'\n"
      "%y = Conv(%4, z:f32[3,4,1,1])\n",
      "4: 1[1] 2[1] 3[1] 4[1] w[0] z[1]\n" LAST },
    /* near miss: padding of channels; the new ones stay */
    { "opset 17\n"
      "%1 = Conv(%x:f32[2,3,4,4], w:f32[4,3,1,1])\n"
      "%2 = Pad(%1, p:i64[8]={0,1,0,0,0,0,0,0}, f:f32)\n"
      "%y = Conv(%2, z:f32[3,5,1,1])\n",
      "4: 1[1] 2[1] w[0] z[1]\n"
      "1: 2[1] z[1]; locked: it does not come from weights that could be smaller\n" LAST },
    /* near miss: positions of channels come at run time */
    { "opset 17\n"
      "%1 = Conv(%x:f32[2,3,4,4], w:f32[4,3,1,1])\n"
      "%2 = Gather(%1, %i:i64[2]) axis=1\n"
      "%y = Conv(%2, z:f32[3,2,1,1])\n",
      "4: 1[1] w[0]; locked: '2' (Gather): where it moves channels is not known\n" LAST },
    /* positions along another axis that come at run time */
    { "opset 17\n"
      "%1 = Conv(%x:f32[2,3,8,8], w:f32[4,3,1,1])\n"
      "%2 = Gather(%1, %i:i64[2]) axis=2\n"
      "%y = Conv(%2, z:f32[3,4,1,1])\n",
      "4: 1[1] 2[1] w[0] z[1]\n" LAST },
    /* a table of words: columns are channels */
    { "opset 17\n"
      "%1 = Gather(e:f32[50,4], %i:i64[2,5])\n"
      "%2 = MatMul(%1, v:f32[4,6])\n"
      "%y = MatMul(%2, z:f32[6,3])\n",
      "4: 1[2] e[1] v[0]\n"
      "6: 2[2] v[1] z[0]\n"
      "3: y[2] z[1]; locked: 'y' is an output of the model\n" },
    /* the size of the batch may be computed with, that of channels not */
    { "opset 17\n"
      "%1 = Conv(%x:f32[2,3,4,4], w:f32[4,3,1,1])\n"
      "%2 = Shape(%1)\n"
      "%3 = Gather(%2, i:i64={0})\n"
      "%4 = Unsqueeze(%3, u:i64[1]={0})\n"
      "%5 = Concat(%4, m:i64[1]={64}) axis=0\n"
      "%6 = Reshape(%1, %5)\n"
      "%y = MatMul(%6, z:f32[64,3])\n",
      "4: 1[1] 6[1]x16 w[0] z[0]x16\n"
      "3: y[1] z[1]; locked: 'y' is an output of the model\n" },
    { "opset 17\n"
      "%1 = Conv(%x:f32[2,3,4,4], w:f32[4,3,1,1])\n"
      "%2 = Shape(%1)\n"
      "%3 = Gather(%2, i:i64={1})\n"
      "%4 = Cast(%3) to=1\n"
      "%5 = Mul(%1, %4)\n"
      "%y = Conv(%5, z:f32[3,4,1,1])\n",
      "4: 1[1] 5[1] w[0] z[1]; locked: '2' (Shape): its size is computed with\n" LAST },
    { NULL, NULL },
};

static const Case rows[] = {
    /* rows of a product: the hidden layer of a transformer's block may be smaller, its width not */
    { "opset 17\n"
      "%1 = MatMul(%x:f32[2,5,3], w:f32[3,4])\n"
      "%2 = LayerNormalization(%1, g:f32[4], h:f32[4])\n"
      "%3 = MatMul(%2, v:f32[4,6])\n"
      "%4 = Add(%3, b:f32[6])\n"
      "%5 = Sigmoid(%4)\n"
      "%6 = MatMul(%5, u:f32[6,4])\n"
      "%7 = Add(%1, %6)\n"
      "%y = MatMul(%7, z:f32[4,3])\n",
      "4: 1[2] 6[2] 7[2] w[1] u[1] z[0]; locked: '2' (LayerNormalization): all channels of a row decide about each\n"
      "6: 3[2] 4[2] 5[2] v[1] b[0] u[0]\n"
      "3: y[2] z[1]; locked: 'y' is an output of the model\n" },
    /* channels in front, a product over the rest */
    { "opset 17\n"
      "%1 = Conv(%x:f32[2,3,8], w:f32[4,3,1])\n"
      "%2 = MatMul(%1, v:f32[8,5])\n"
      "%y = Conv(%2, z:f32[3,4,1])\n",
      "4: 1[1] 2[1] w[0] z[1]\n" LAST },
    /* near miss: an old Softmax takes all axes from the first of a row on */
    { "opset 12\n"
      "%1 = Conv(%x:f32[2,3,4,4], w:f32[4,3,1,1])\n"
      "%2 = Softmax(%1)\n"
      "%3 = Conv(%2, z:f32[3,4,1,1])\n"
      "%y = Neg(%3)\n",
      "4: 1[1] w[0]; locked: '2' (Softmax): all channels of a row decide about each\n"
      "3: 3[1] y[1] z[0]; locked: 'y' is an output of the model\n" },
    /* and so does a norm from its axis on */
    { "opset 17\n"
      "%1 = Conv(%x:f32[2,3,4,4], w:f32[4,3,1,1])\n"
      "%2 = Transpose(%1) perm=[0,2,1,3]\n"
      "%3 = LayerNormalization(%2, s:f32[4,4,4]) axis=1\n"
      "%4 = Transpose(%3) perm=[0,2,1,3]\n"
      "%y = Conv(%4, z:f32[3,4,1,1])\n",
      "4: 1[1] 2[2] w[0]; locked: '3' (LayerNormalization): all channels of a row decide about each\n" LAST },
    /* a mean over an axis in front of the channels, which is gone then */
    { "opset 17\n"
      "%1 = MatMul(%x:f32[2,5,3], w:f32[3,4])\n"
      "%2 = ReduceMean(%1) axes=[1] keepdims=0\n"
      "%y = MatMul(%2, z:f32[4,3])\n",
      "4: 1[2] 2[1] w[1] z[0]\n"
      "3: y[1] z[1]; locked: 'y' is an output of the model\n" },
    /* the same where another axis has as many */
    { "opset 17\n"
      "%1 = MatMul(%x:f32[4,5,3], w:f32[3,4])\n"
      "%2 = ReduceMax(%1) axes=[1] keepdims=0\n"
      "%y = MatMul(%2, z:f32[4,3])\n",
      "4: 1[2] 2[1] w[1] z[0]\n"
      "3: y[1] z[1]; locked: 'y' is an output of the model\n" },
    { NULL, NULL },
};

static const Case steps[] = {
    /* bytes between, and weights of bytes with a scale for each channel */
    { "opset 17\n"
      "%1 = DequantizeLinear(q:i8[4,3,1,1]=fill(1), s:f32[4]) axis=0\n"
      "%2 = DequantizeLinear(p:i32[4]=fill(2), t:f32[4]) axis=0\n"
      "%3 = Conv(%x:f32[2,3,4,4], %1, %2)\n"
      "%4 = QuantizeLinear(%3, u:f32={0.1}, v:u8={128})\n"
      "%5 = DequantizeLinear(%4, u, v)\n"
      "%y = Conv(%5, z:f32[3,4,1,1])\n",
      "4: 3[1] 4[1] 5[1] q[0] s[0] p[0] t[0] z[1]\n" LAST },
    /* near miss: blocks share a scale */
    { "opset 21\n"
      "%1 = DequantizeLinear(q:i8[4,4]=fill(1), s:f32[2,4]=fill(3)) axis=0 block_size=2\n"
      "%2 = MatMul(%x:f32[2,3], w:f32[3,4])\n"
      "%3 = MatMul(%2, %1)\n"
      "%y = MatMul(%3, z:f32[4,3])\n",
      "4: 2[1] w[1]; locked: '3' (MatMul): it multiplies them with what stays\n"
      "3: y[1] z[1]; locked: 'y' is an output of the model\n" },
    { NULL, NULL },
};

static const Case recurrent[] = {
    /* units of an LSTM: rows of all gates, columns of what it feeds itself with */
    { "opset 17\n"
      "%1 = MatMul(%x:f32[5,2,3], e:f32[3,6])\n"
      "%2 = LSTM(%1, w:f32[1,16,6], r:f32[1,16,4], b:f32[1,32]) hidden_size=4\n"
      "%3 = Squeeze(%2, a:i64[1]={1})\n"
      "%y = MatMul(%3, z:f32[4,3])\n",
      "6: 1[2] e[1] w[2]\n"
      "4: 2[3] 3[2] w[1]x4 r[1]x4 r[2] b[1]x8 z[0]\n"
      "3: y[2] z[1]; locked: 'y' is an output of the model\n" },
    /* both directions of a GRU have one size; its last state too */
    { "opset 17\n"
      "%1, %2 = GRU(%x:f32[5,2,3], w:f32[2,12,3], r:f32[2,12,4], -, -, h:f32[2,2,4]) hidden_size=4 "
      "direction='bidirectional'\n"
      "%3 = Transpose(%1) perm=[0,2,1,3]\n"
      "%4 = Reshape(%3, s:i64[3]={0,0,8})\n"
      "%5 = MatMul(%4, z:f32[8,3])\n"
      "%6 = MatMul(%2, v:f32[4,3])\n"
      "%7 = ReduceMax(%6) axes=[0]\n"
      "%y = Add(%5, %7)\n",
      "4: 1[3] 2[2] 3[3] 4[2]x2 w[1]x3 r[1]x3 r[2] h[2] z[0]x2 v[0]\n"
      "3: 5[2] 6[2] 7[2] y[2] z[1] v[1]; locked: 'y' is an output of the model\n" },
    /* near miss: it begins with an input */
    { "opset 17\n"
      "%1 = RNN(%x:f32[5,2,3], w:f32[1,4,3], r:f32[1,4,4], -, -, %h:f32[1,2,4]) hidden_size=4\n"
      "%2 = Squeeze(%1, a:i64[1]={1})\n"
      "%y = MatMul(%2, z:f32[4,3])\n",
      "4: 1[3] 2[2] w[1] r[1] r[2] z[0]; locked: '1' (RNN): it begins with states that stay\n"
      "3: y[2] z[1]; locked: 'y' is an output of the model\n" },
    /* a cell written out: the sum of two products; zeros to begin with */
    { "opset 17\n"
      "%h = Expand(o:f32[1,4]={0,0,0,0}, s:i64[2]={2,4})\n"
      "%1 = Gemm(%h, r:f32[4,4], b:f32[4])\n"
      "%2 = Gemm(%x:f32[2,3], w:f32[3,4], %1)\n"
      "%3 = Tanh(%2)\n"
      "%y = Gemm(%3, z:f32[4,3])\n",
      "4: 1[1] 2[1] 3[1] r[1] b[0] w[1] z[0]\n"
      "3: y[1] z[1]; locked: 'y' is an output of the model\n" },
    /* zeros that are computed are what an absent state is */
    { "opset 17\n"
      "%h = Expand(o:f32[1,1,1]={0}, s:i64[3]={1,2,4})\n"
      "%1 = RNN(%x:f32[5,2,3], w:f32[1,4,3], r:f32[1,4,4], -, -, %h) hidden_size=4\n"
      "%2 = Squeeze(%1, a:i64[1]={1})\n"
      "%y = MatMul(%2, z:f32[4,3])\n",
      "4: 1[3] 2[2] w[1] r[1] r[2] z[0]\n"
      "3: y[2] z[1]; locked: 'y' is an output of the model\n" },
    { NULL, NULL },
};

static const Case fused[] = {
    /* attention: two heads of queries for one of keys and values */
    { "opset 23\n"
      "%q = MatMul(%x:f32[2,5,6], wq:f32[6,8])\n"
      "%k = MatMul(%x, wk:f32[6,4])\n"
      "%v = MatMul(%x, wv:f32[6,6])\n"
      "%1 = Attention(%q, %k, %v) q_num_heads=4 kv_num_heads=2\n"
      "%y = MatMul(%1, z:f32[12,3])\n",
      "2: q[2]x4 k[2]x2 v[2]x3 1[2]x6 wq[1]x4 wk[1]x2 wv[1]x3 z[0]x6\n"
      "3: y[2] z[1]; locked: 'y' is an output of the model\n" },
    /* near miss: values are an input */
    { "opset 23\n"
      "%q = MatMul(%x:f32[2,5,6], wq:f32[6,8])\n"
      "%k = MatMul(%x, wk:f32[6,8])\n"
      "%1 = Attention(%q, %k, %v:f32[2,5,8]) q_num_heads=4 kv_num_heads=4\n"
      "%y = MatMul(%1, z:f32[8,3])\n",
      "8: q[2] wq[1]; locked: '1' (Attention): queries, keys or values stay\n"
      "8: k[2] wk[1]; locked: '1' (Attention): queries, keys or values stay\n"
      "3: y[2] z[1]; locked: 'y' is an output of the model\n" },
    /* groups of channels normalized together */
    { "opset 21\n"
      "%1 = Conv(%x:f32[2,3,4,4], w:f32[6,3,1,1])\n"
      "%2 = GroupNormalization(%1, s:f32[6], t:f32[6]) num_groups=3\n"
      "%y = Conv(%2, z:f32[3,6,1,1])\n",
      "3: 1[1]x2 2[1]x2 w[0]x2 s[0]x2 t[0]x2 z[1]x2\n" LAST },
    { "opset 18\n"
      "%1 = Conv(%x:f32[2,3,4,4], w:f32[6,3,1,1])\n"
      "%2 = GroupNormalization(%1, s:f32[3], t:f32[3]) num_groups=3\n"
      "%y = Conv(%2, z:f32[3,6,1,1])\n",
      "3: 1[1]x2 2[1]x2 w[0]x2 s[0] t[0] z[1]x2\n" LAST },
    /* queries normalized head by head */
    { "opset 23\n"
      "%q = MatMul(%x:f32[2,5,6], wq:f32[6,8])\n"
      "%1 = Reshape(%q, s:i64[4]={0,0,2,4})\n"
      "%2 = RMSNormalization(%1, g:f32[4])\n"
      "%3 = Reshape(%2, t:i64[3]={0,0,8})\n"
      "%y = MatMul(%3, z:f32[8,3])\n",
      "2: q[2]x4 1[2] 2[2] 3[2]x4 wq[1]x4 z[0]x4\n"
      "3: y[2] z[1]; locked: 'y' is an output of the model\n" },
    /* a gate of the same width: pairs of the halves of one product */
    { "opset 28\n"
      "%1 = MatMul(%x:f32[2,3], w:f32[3,8])\n"
      "%2, %3 = Split(%1, s:i64[2]={4,4}) axis=-1\n"
      "%4 = SwiGLU(%2, %3)\n"
      "%y = MatMul(%4, z:f32[4,3])\n",
      "4: 1[1]x2 2[1] 3[1] 4[1] w[1]x2 z[0]\n"
      "3: y[1] z[1]; locked: 'y' is an output of the model\n" },
    { NULL, NULL },
};

static void test_list(gconstpointer list)
{
    for (const Case *x = list; x->text != NULL; x++)
        expect(x);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_data_func("/pass/channels/chain", chain, test_list);
    g_test_add_data_func("/pass/channels/heads", heads, test_list);
    g_test_add_data_func("/pass/channels/joins", joins, test_list);
    g_test_add_data_func("/pass/channels/groups", groups, test_list);
    g_test_add_data_func("/pass/channels/moves", moves, test_list);
    g_test_add_data_func("/pass/channels/rows", rows, test_list);
    g_test_add_data_func("/pass/channels/steps", steps, test_list);
    g_test_add_data_func("/pass/channels/recurrent", recurrent, test_list);
    g_test_add_data_func("/pass/channels/fused", fused, test_list);
    return g_test_run();
}
