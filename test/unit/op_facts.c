/*
 * What an operator's record says of one node, asked as passes and planners ask: the linear layer that it is, the
 * parameters that it quantizes with, whether it only moves elements. Models are text, answers are too.
 */
#include <string.h>

#include "op/move.h"
#include "op/linear.h"
#include "op/ops.h"
#include "op/quantize.h"
#include "run_model.h"

/* The node that makes y, bound. */
static const HnNode *maker(HnModel *m)
{
    g_autoptr(GError) error = NULL;
    g_assert_true(hn_graph_infer(m->graph, TRUE, &error));
    g_assert_no_error(error);
    return hn_graph_find(m->graph, "y")->producer;
}

/* --- linear layers ------------------------------------------------------------------------------------------------ */

static const char *name_of(const HnValue *v)
{
    return v != NULL ? v->name : "-";
}

static char *describe_linear(const HnLinearView *v)
{
    return g_strdup_printf("%s*%s+%s in %d,%d,%d out %d in %d x %d y %d groups %d%s%s%s alpha %g beta %g%s", v->x->name,
                           v->w->name, name_of(v->b), v->x_in, v->w_in, v->b_in, v->out, v->in, v->x_axis, v->y_axis,
                           (int)v->groups, v->x_turned ? " x'" : "", v->w_turned ? " w'" : "",
                           v->adjoint ? " adjoint" : "", v->alpha, v->beta, v->window != NULL ? " window" : "");
}

static void expect_linear(const char *text, const char *first, const char *want)
{
    g_autofree char *whole = g_strconcat("opset 17\n", text, "\n", NULL);
    g_autoptr(HnModel) m = test_model(whole);
    const HnNode *n = maker(m);
    HnLinearView v;
    const gboolean is = first != NULL ? hn_op_linear_first(n, &v) : hn_op_linear(n, &v);
    g_autofree char *got = is ? describe_linear(&v) : g_strdup("none");
    g_assert_cmpstr(got, ==, want);
}

static void test_linear(void)
{
    expect_linear("%y = Conv(%x:f32[1,6,8,8], w:f32[4,3,3,3], b:f32[4]) group=2", NULL,
                  "x*w+b in 0,1,2 out 0 in 1 x 1 y 1 groups 2 alpha 1 beta 1 window");
    expect_linear("%y = ConvTranspose(%x:f32[1,6,8,8], w:f32[6,2,3,3]) group=2", NULL,
                  "x*w+- in 0,1,2 out 1 in 0 x 1 y 1 groups 2 adjoint alpha 1 beta 1 window");
    expect_linear("%y = Gemm(%x:f32[2,3], w:f32[3,4], c:f32[4]) alpha=0.5 beta=2.0", NULL,
                  "x*w+c in 0,1,2 out 1 in 0 x 1 y 1 groups 1 alpha 0.5 beta 2");
    expect_linear("%y = Gemm(%x:f32[3,2], w:f32[4,3]) transA=1 transB=1", NULL,
                  "x*w+- in 0,1,2 out 0 in 1 x 0 y 1 groups 1 x' w' alpha 1 beta 1");
    expect_linear("%y = MatMul(%x:f32[5,2,3], w:f32[3,4])", NULL,
                  "x*w+- in 0,1,-1 out 1 in 0 x -1 y -1 groups 1 alpha 1 beta 1");
    expect_linear("%y = MatMul(%x:f32[5,2,3], w:f32[5,3,4])", NULL,
                  "x*w+- in 0,1,-1 out 2 in 1 x -1 y -1 groups 1 alpha 1 beta 1");
    expect_linear("%y = MatMul(w:f32[4,3], %x:f32[5,3,2])", "first",
                  "x*w+- in 1,0,-1 out 0 in 1 x -2 y -2 groups 1 alpha 1 beta 1");
    expect_linear("%y = Conv(%x:f32[1,6,8,8], w:f32[4,6,3,3])", "first", "none");
    expect_linear("%y = MatMul(%x:f32[2,3], w:f32[3])", NULL, "none");
    expect_linear("%y = Add(%x:f32[2,3], w:f32[3])", NULL, "none");
}

/* --- quantization parameters -------------------------------------------------------------------------------------- */

static void expect_qparams(const char *text, const char *want)
{
    g_autofree char *whole = g_strconcat("opset 23\n", text, "\n", NULL);
    g_autoptr(HnModel) m = test_model(whole);
    HnQParams p;
    g_autofree char *got = NULL;
    if (hn_op_qparams(maker(m), NULL, NULL, &p))
        got = g_strdup_printf("%s %s %s, %d of %s and %s, axis %d block %d", p.real->name, p.back ? "of" : "to",
                              p.q->name, (int)p.scale->n, p.scale_of->name, name_of(p.zero_of), p.axis, (int)p.block);
    g_assert_cmpstr(got, ==, want);
}

static HnTensor *knows_nothing(gconstpointer of, HnValue *v)
{
    (void)of;
    (void)v;
    return NULL;
}

static void test_qparams(void)
{
    expect_qparams("%y = QuantizeLinear(%x:f32[2,3], s:f32, z:u8)", "x to y, 1 of s and z, axis -1 block 0");
    expect_qparams("%y = DequantizeLinear(%x:i8[2,3], s:f32)", "y of x, 1 of s and -, axis -1 block 0");
    expect_qparams("%y = DequantizeLinear(q:i8[2,3]=fill(1), s:f32[2], z:i8[2]) axis=-2",
                   "y of q, 2 of s and z, axis 0 block 0");
    expect_qparams("%y = DequantizeLinear(q:i32[4]=fill(1), s:f32[4])", "y of q, 4 of s and -, axis 0 block 0");
    expect_qparams("%y = DequantizeLinear(q:i4[2,6]=fill(1), s:f32[2,2]) axis=1 block_size=3",
                   "y of q, 4 of s and -, axis 1 block 3");
    /* no operator of this kind; what is computed, of another type, or rounded to less */
    expect_qparams("%y = Relu(%x:f32[2])", NULL);
    expect_qparams("%y = QuantizeLinear(%x:f32[2,3], %s:f32, z:u8)", NULL);
    expect_qparams("%y = QuantizeLinear(%x:f32[2,3], s:f32, %z:u8)", NULL);
    expect_qparams("%y = QuantizeLinear(%x:f16[2,3], s:f16, z:u8)", NULL);
    expect_qparams("%y = QuantizeLinear(%x:f32[2,3], s:f32, z:u8) precision=10", NULL);
    expect_qparams("%y = DequantizeLinear(q:i8[2,3]=fill(1), s:f32[2], z:i8) axis=0", NULL);
    g_autoptr(HnModel) m = test_model("opset 17\n%y = QuantizeLinear(%x:f32[2,3], s:f32, z:u8)\n");
    HnQParams p;
    g_assert_false(hn_op_qparams(maker(m), knows_nothing, NULL, &p));
    g_assert_false(hn_op_qparams(NULL, NULL, NULL, &p));
}

/* --- moves -------------------------------------------------------------------------------------------------------- */

static void expect_bytes(const char *opset, const char *text, HnQuantBytes want)
{
    g_autofree char *whole = g_strdup_printf("opset %s\n%s\n", opset, text);
    g_autoptr(HnModel) m = test_model(whole);
    g_assert_cmpint((int)hn_op_bytes(maker(m)), ==, (int)want);
}

static void test_bytes(void)
{
    expect_bytes("17", "%y = Reshape(%x:f32[2,3], s:i64[1]={6})", HN_QB_MOVES);
    expect_bytes("17", "%y = Transpose(%x:f32[2,3])", HN_QB_MOVES);
    expect_bytes("17", "%y = MaxPool(%x:f32[1,1,4,4]) kernel_shape=[2,2]", HN_QB_MOST);
    expect_bytes("17", "%y = Relu(%x:f32[2,3])", HN_QB_NONE);
    const char *const nearest = "%y = Resize(%x:f32[1,1,2,2], -, s:f32[4]={1,1,2,2}) mode='nearest'";
    const char *const linear = "%y = Resize(%x:f32[1,1,2,2], -, s:f32[4]={1,1,2,2}) mode='linear'";
    const char *const crop = "%y = Resize(%x:f32[1,1,2,2], r:f32[8]={0,0,0,0,1,1,1,1}, s:f32[4]={1,1,2,2}) "
                             "mode='nearest' coordinate_transformation_mode='tf_crop_and_resize'";
    expect_bytes("17", nearest, HN_QB_MOVES);
    expect_bytes("17", linear, HN_QB_NONE);
    expect_bytes("17", crop, HN_QB_NONE); /* what lies outside is another number */
    expect_bytes("17", "%y = Pad(%x:f32[2], p:i64[2]={1,1})", HN_QB_FILLS);
    expect_bytes("10", "%y = Pad(%x:f32[2]) pads=[1,1]", HN_QB_NONE);

    g_autoptr(HnModel) concat = test_model("opset 17\n%y = Concat(%x:f32[2], %z:f32[2], %u:f32[2]) axis=0\n");
    g_assert_true(hn_op_is_moved(maker(concat), 2));
    g_autoptr(HnModel) gather = test_model("opset 17\n%y = Gather(%x:f32[2], %i:i64[3])\n");
    g_assert_true(hn_op_is_moved(maker(gather), 0));
    g_assert_false(hn_op_is_moved(maker(gather), 1));
    g_autoptr(HnModel) pad = test_model("opset 17\n%y = Pad(%x:f32[2], p:i64[2]={1,1}, v:f32)\n");
    g_assert_true(hn_op_is_moved(maker(pad), 0));
    g_assert_false(hn_op_is_moved(maker(pad), 2)); /* it fills, and may be of another step */
}

/* --- weights ------------------------------------------------------------------------------------------------------ */

static void test_weight_bytes(void)
{
    g_autoptr(HnModel) m =
        test_model("opset 17\n%c = Constant() value=i64[3]={1,2,3}\n%r = Reshape(%x:f32[6], s:i64[1]={6})\n"
                   "%1 = Add(%r, a:f32[6])\n%y = Mul(%1, b:f32[6])\n%z = Neg(%c)\n");
    g_assert_cmpuint(hn_model_weight_bytes(m), ==, 3 * 8 + 8 + 6 * 4 + 6 * 4);
    HnValue *a = hn_graph_find(m->graph, "a"), *b = hn_graph_find(m->graph, "b");
    hn_graph_add_weight(m->graph, b, a->weight); /* as edits go, so goes the number */
    g_assert_cmpuint(hn_model_weight_bytes(m), ==, 3 * 8 + 8 + 6 * 4);
}

/* Weights lie where their file has them: copies by strides read elements of each size from any byte. */
static void test_move_anywhere(void)
{
    enum { ROWS = 19, COLUMNS = 21 };
    const int64_t dims[] = { COLUMNS, ROWS }, strides[] = { 1, COLUMNS };
    guint8 x[ROWS * COLUMNS * 16 + 1], y[ROWS * COLUMNS * 16];
    for (gsize i = 0; i < sizeof x; i++)
        x[i] = (guint8)(i * 7 + i / 256);
    for (gsize size = 1; size <= 16; size *= 2) {
        hn_move_strided(y, x + 1, size, 2, dims, strides);
        for (gsize c = 0; c < COLUMNS; c++)
            for (gsize r = 0; r < ROWS; r++)
                g_assert_cmpmem(y + (c * ROWS + r) * size, size, x + 1 + (r * COLUMNS + c) * size, size);
    }
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/op/linear", test_linear);
    g_test_add_func("/op/qparams", test_qparams);
    g_test_add_func("/op/bytes", test_bytes);
    g_test_add_func("/ir/weight-bytes", test_weight_bytes);
    g_test_add_func("/op/move-anywhere", test_move_anywhere);
    return g_test_run();
}
