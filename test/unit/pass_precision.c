/*
 * Conversion of precision: what a half may be, what it may not, and that what comes out computes the same.
 */
#include "base/error.h"
#include "check/speedup.h"
#include "check/ranges.h"
#include "pass/precision/precision.h"
#include "run_model.h"

/* --- models before and after ------------------------------------------------------------------------------------- */

typedef struct {
    const char *name;
    const char *before;
    HnDtype to;
    gboolean keep_io;
    const char *keep;    /* an operator or node; NULL: none */
    const char *samples; /* tensors for the inputs, for ranges; NULL: nothing is observed */
    const char *after;
} Case;

static const Case cases[] = {
    { "weights and edges",
      "opset 17 graph g(%x:f32[2,2]) -> (%y:f32[2,2]) { %a = MatMul(%x, w:f32[2,2]={1,0.1,3,4})\n %y = Relu(%a) }",
      HN_F16,
      .after = "ir 8\n"
               "opset 17\n"
               "graph g(%x:f16[2,2]) -> (%y:f16[2,2]) {\n"
               "  %a:f16[2,2] = MatMul(%x, w:f16[2,2]={1.0,0.0999755859,3.0,4.0})\n"
               "  %y = Relu(%a)\n"
               "}\n" },
    { "edges kept",
      "opset 17 graph g(%x:f32[2,2]) -> (%y:f32[2,2]) { %a = MatMul(%x, w:f32[2,2]={1,2,3,4})\n %y = Relu(%a) }",
      HN_F16, .keep_io = TRUE,
      .after = "ir 8\n"
               "opset 17\n"
               "graph g(%x:f32[2,2]) -> (%y:f32[2,2]) {\n"
               "  %x_f16:f16[2,2] = Cast(%x) to=10\n"
               "  %a:f16[2,2] = MatMul(%x_f16, w:f16[2,2]={1.0,2.0,3.0,4.0})\n"
               "  %y_f16:f16[2,2] = Relu(%a)\n"
               "  %y = Cast(%y_f16) to=1\n"
               "}\n" },
    { "the scales of Resize", /* row 25 */
      "opset 13 graph g(%x:f32[1,1,2,2]) -> (%y) { %a = Relu(%x)\n"
      "%y = Resize(%a, -, s:f32[4]={1,1,2,2}) mode='nearest' }",
      HN_F16,
      .after = "ir 8\n"
               "opset 13\n"
               "graph g(%x:f16[1,1,2,2]) -> (%y:f16[1,1,4,4]) {\n"
               "  %a:f16[1,1,2,2] = Relu(%x)\n"
               "  %y = Resize(%a, -, s:f32[4]={1.0,1.0,2.0,2.0}) mode='nearest'\n"
               "}\n" },
    { "roi and scales of Resize",
      "opset 13 graph g(%x:f32[1,1,2,2]) -> (%y) { %a = MatMul(%x, w:f32[2,2]={1,2,3,4})\n"
      "%y = Resize(%a, r:f32[8]={0,0,0,0,1,1,1,1}, s:f32[4]={1,1,2,2}) "
      "coordinate_transformation_mode='tf_crop_and_resize' }",
      HN_F16,
      .after = "ir 8\n"
               "opset 13\n"
               "graph g(%x:f16[1,1,2,2]) -> (%y:f16[1,1,4,4]) {\n"
               "  %a:f16[1,1,2,2] = MatMul(%x, w:f16[2,2]={1.0,2.0,3.0,4.0})\n"
               "  %y = Resize(%a, r:f32[8]={0.0,0.0,0.0,0.0,1.0,1.0,1.0,1.0}, s:f32[4]={1.0,1.0,2.0,2.0}) "
               "coordinate_transformation_mode='tf_crop_and_resize'\n"
               "}\n" },
    { "targets of Cast",
      "opset 17 graph g(%i:i64[2,2]) -> (%y:f32[2,2]) { %a = Cast(%i) to=1\n %y = MatMul(%a, w:f32[2,2]={1,2,3,4}) }",
      HN_F16,
      .after = "ir 8\n"
               "opset 17\n"
               "graph g(%i:i64[2,2]) -> (%y:f16[2,2]) {\n"
               "  %a:f16[2,2] = Cast(%i) to=10\n"
               "  %y = MatMul(%a, w:f16[2,2]={1.0,2.0,3.0,4.0})\n"
               "}\n" },
    { "Cast from what is a half by now",
      "opset 17 graph g(%x:f32[2,2]) -> (%y:f32[2,2]) { %h = Cast(%x) to=10\n %z = Cast(%h) to=1\n"
      "%y = MatMul(%z, w:f32[2,2]={1,2,3,4}) }",
      HN_F16,
      .after = "ir 8\n"
               "opset 17\n"
               "graph g(%x:f16[2,2]) -> (%y:f16[2,2]) {\n"
               "  %y = MatMul(%x, w:f16[2,2]={1.0,2.0,3.0,4.0})\n"
               "}\n" },
    { "one Cast for all who read", /* NonMaxSuppression takes f32 only */
      "opset 17 graph g(%x:f32[1,2,4]) -> (%y, %n, %k) { %b = MatMul(%x, "
      "w:f32[4,4]={1,0,0,0,0,1,0,0,0,0,1,0,0,0,0,1})\n"
      "%s = Transpose(%b) perm=[0,2,1]\n"
      "%n = NonMaxSuppression(%b, sc:f32[1,1,2]={0.5,0.25}, m:i64={2}, t:f32={0.5})\n"
      "%k = NonMaxSuppression(%b, sc, m, t)\n %y = MatMul(%s, v:f32[2,2]={1,2,3,4}) }",
      HN_F16,
      .after =
          "ir 8\n"
          "opset 17\n"
          "graph g(%x:f16[1,2,4]) -> (%y:f16[1,4,2], %n, %k) {\n"
          "  %b:f16[1,2,4] = MatMul(%x, w:f16[4,4]={1.0,0.0,0.0,0.0,0.0,1.0,0.0,0.0,0.0,0.0,1.0,0.0,0.0,0.0,0.0,1.0})\n"
          "  %s:f16[1,4,2] = Transpose(%b) perm=[0,2,1]\n"
          "  %b_f32:f32[1,2,4] = Cast(%b) to=1\n"
          "  %n = NonMaxSuppression(%b_f32, sc:f32[1,1,2]={0.5,0.25}, m:i64[]={2}, t:f32[]={0.5})\n"
          "  %k = NonMaxSuppression(%b_f32, sc, m, t)\n"
          "  %y = MatMul(%s, v:f16[2,2]={1.0,2.0,3.0,4.0})\n"
          "}\n" },
    { "masks are clamped", /* row 26 */
      "opset 17 graph g(%c:bool[2,2], %x:f32[2,2]) -> (%y) { %a = MatMul(%x, w:f32[2,2]={1,2,3,4})\n"
      "%b = Where(%c, %a, m:f32={-3.4028235e38})\n %y = Softmax(%b) }",
      HN_F16,
      .after = "ir 8\n"
               "opset 17\n"
               "graph g(%c:bool[2,2], %x:f16[2,2]) -> (%y:f16[2,2]) {\n"
               "  %a:f16[2,2] = MatMul(%x, w:f16[2,2]={1.0,2.0,3.0,4.0})\n"
               "  %b:f16[2,2] = Where(%c, %a, m:f16[]={-32752.0})\n"
               "  %y = Softmax(%b)\n"
               "}\n" },
    { "an added mask",
      "opset 17 graph g(%c:i64[2,2], %x:f32[2,2]) -> (%y) { %a = MatMul(%x, w:f32[2,2]={1,2,3,4})\n"
      "%f = Cast(%c) to=1\n %d = Sub(one:f32={1}, %f)\n %e = Mul(%d, m:f32={-1e9})\n %b = Add(%a, %e)\n"
      "%y = Softmax(%b) }",
      HN_F16, .samples = "i64[2,2]={1,0,1,1} f32[2,2]={1,2,3,4}",
      .after = "ir 8\n"
               "opset 17\n"
               "graph g(%c:i64[2,2], %x:f16[2,2]) -> (%y:f16[2,2]) {\n"
               "  %a:f16[2,2] = MatMul(%x, w:f16[2,2]={1.0,2.0,3.0,4.0})\n"
               "  %f:f16[2,2] = Cast(%c) to=10\n"
               "  %d:f16[2,2] = Sub(one:f16[]={1.0}, %f)\n"
               "  %e:f16[2,2] = Mul(%d, m:f16[]={-32752.0})\n"
               "  %b:f16[2,2] = Add(%a, %e)\n"
               "  %y = Softmax(%b)\n"
               "}\n" },
    { "a weight that does not fit",
      "opset 17 graph g(%x:f32[2,2]) -> (%y) { %a = MatMul(%x, w:f32[2,2]={1,2,3,1e6})\n %y = MatMul(%a, "
      "v:f32[2,2]={1e-6,0,0,1}) }",
      HN_F16, .samples = "f32[2,2]={1,2,3,0.001}",
      .after = "ir 8\n"
               "opset 17\n"
               "graph g(%x:f32[2,2]) -> (%y) {\n"
               "  %a = MatMul(%x, w:f32[2,2]={1.0,2.0,3.0,1000000.0})\n"
               "  %y = MatMul(%a, v:f32[2,2]={9.99999997e-07,0.0,0.0,1.0})\n"
               "}\n" },
    { "a weight that two want differently",
      "opset 17 graph g(%x:f32[2,2], %z:f32[2,2]) -> (%y) { %a = MatMul(%x, w:f32[2,2]={1,2,3,4})\n"
      "%b = MatMul(%z, w) @'wide'\n %y = MatMul(%a, %b) }",
      HN_F16, .keep = "wide",
      .after = "ir 8\n"
               "opset 17\n"
               "graph g(%x:f16[2,2], %z:f32[2,2]) -> (%y:f16[2,2]) {\n"
               "  %a:f16[2,2] = MatMul(%x, w_f16:f16[2,2]={1.0,2.0,3.0,4.0})\n"
               "  %b = MatMul(%z, w:f32[2,2]={1.0,2.0,3.0,4.0}) @'wide'\n"
               "  %b_f16:f16[2,2] = Cast(%b) to=10\n"
               "  %y = MatMul(%a, %b_f16)\n"
               "}\n" },
    { "an epsilon that would vanish",
      "opset 17 graph g(%x:f32[2,2]) -> (%y) { %a = MatMul(%x, w:f32[2,2]={1,2,3,4})\n %b = Add(%a, e:f32={1e-12})\n"
      "%y = MatMul(%b, w) }",
      HN_F16,
      .after = "ir 8\n"
               "opset 17\n"
               "graph g(%x:f16[2,2]) -> (%y:f16[2,2]) {\n"
               "  %a:f16[2,2] = MatMul(%x, w:f16[2,2]={1.0,2.0,3.0,4.0})\n"
               "  %a_f32:f32[2,2] = Cast(%a) to=1\n"
               "  %b = Add(%a_f32, e:f32[]={9.99999996e-13})\n"
               "  %b_f16:f16[2,2] = Cast(%b) to=10\n"
               "  %y = MatMul(%b_f16, w)\n"
               "}\n" },
    { "branches agree, and captured values", /* If */
      "opset 17 graph g(%c:bool, %x:f32[2,2]) -> (%y:f32[2,2]) { %a = MatMul(%x, w:f32[2,2]={1,2,3,4})\n"
      "%y = If(%c) then_branch=graph() -> (%t) { %t = MatMul(%a, w) } "
      "else_branch=graph() -> (%e) { %e = MatMul(%x, v:f32[2,2]={1,2,3,1e6}) } }",
      HN_F16, .samples = "bool={0} f32[2,2]={1,0.001,0.5,0.002}",
      .after = "ir 8\n"
               "opset 17\n"
               "graph g(%c:bool[], %x:f16[2,2]) -> (%y:f16[2,2]) {\n"
               "  %a:f16[2,2] = MatMul(%x, w:f16[2,2]={1.0,2.0,3.0,4.0})\n"
               "  %x_f32:f32[2,2] = Cast(%x) to=1\n"
               "  %y = If(%c) then_branch=graph() -> (%t:f16[2,2]) {\n"
               "    %t = MatMul(%a, w)\n"
               "  } else_branch=graph() -> (%e_f16:f16[2,2]) {\n"
               "    %e = MatMul(%x_f32, v:f32[2,2]={1.0,2.0,3.0,1000000.0})\n"
               "    %e_f16 = Cast(%e) to=10\n"
               "  }\n"
               "}\n" },
    { "captured by a branch in a branch",
      "opset 17 graph g(%c:bool, %x:f32[2,2]) -> (%y:f32[2,2]) {\n"
      "%y = If(%c) then_branch=graph() -> (%t) { %r = Relu(%x)\n %u = MatMul(%r, w:f32[2,2]={1,2,3,4})\n"
      "%t = If(%c) then_branch=graph() -> (%a) { %a = Neg(%u) } else_branch=graph() -> (%b) { %b = Identity(%u) } } "
      "else_branch=graph() -> (%e) { %e = Identity(%x) } }",
      HN_F16, .samples = "bool={1} f32[2,2]={1,0.001,0.5,0.002}",
      .after = "ir 8\n"
               "opset 17\n"
               "graph g(%c:bool[], %x:f16[2,2]) -> (%y:f16[2,2]) {\n"
               "  %y = If(%c) then_branch=graph() -> (%t:f16[2,2]) {\n"
               "    %r:f16[2,2] = Relu(%x)\n"
               "    %u:f16[2,2] = MatMul(%r, w:f16[2,2]={1.0,2.0,3.0,4.0})\n"
               "    %t = If(%c) then_branch=graph() -> (%a:f16[2,2]) {\n"
               "      %a = Neg(%u)\n"
               "    } else_branch=graph() -> (%b:f16[2,2]) {\n"
               "      %b = Identity(%u)\n"
               "    }\n"
               "  } else_branch=graph() -> (%e:f16[2,2]) {\n"
               "    %e = Identity(%x)\n"
               "  }\n"
               "}\n" },
    { "carried from run to run", /* Loop */
      "opset 17 graph g(%n:i64, %x:f32[2,2]) -> (%y:f32[2,2], %s) { %y, %s = Loop(%n, -, %x) "
      "body=graph(%i:i64, %q:bool, %v:f32[2,2]) -> (%q, %u, %o) { %u = MatMul(%v, w:f32[2,2]={0.5,0.25,0.125,1})\n"
      "%o = Relu(%u) } }",
      HN_F16,
      .after = "ir 8\n"
               "opset 17\n"
               "graph g(%n:i64[], %x:f16[2,2]) -> (%y:f16[2,2], %s:f16[?,2,2]) {\n"
               "  %y, %s = Loop(%n, -, %x) body=graph(%i:i64[], %q:bool[], %v:f16[2,2]) -> (%q, %u:f16[2,2], "
               "%o:f16[2,2]) {\n"
               "    %u = MatMul(%v, w:f16[2,2]={0.5,0.25,0.125,1.0})\n"
               "    %o = Relu(%u)\n"
               "  }\n"
               "}\n" },
    { "a loop that has to stay",
      "opset 17 graph g(%n:i64, %x:f32[2,2]) -> (%y:f32[2,2]) { %y = Loop(%n, -, %x) "
      "body=graph(%i:i64, %q:bool, %v:f32[2,2]) -> (%q, %u) { %u = MatMul(%v, w:f32[2,2]={0.5,0.25,0.125,1e6}) } }",
      HN_F16, .samples = "i64={1} f32[2,2]={1,0.001,0.5,0.002}",
      .after = "ir 8\n"
               "opset 17\n"
               "graph g(%n:i64[], %x:f16[2,2]) -> (%y:f16[2,2]) {\n"
               "  %y = Loop(%n, -, %x) body=graph(%i:i64[], %q:bool[], %v:f16[2,2]) -> (%q, %u_f16:f16[2,2]) {\n"
               "    %v_f32:f32[2,2] = Cast(%v) to=1\n"
               "    %u = MatMul(%v_f32, w:f32[2,2]={0.5,0.25,0.125,1000000.0})\n"
               "    %u_f16 = Cast(%u) to=10\n"
               "  }\n"
               "}\n" },
    { "Scan",
      "opset 17 graph g(%x:f32[2], %z:f32[3,2]) -> (%y, %s) { %y, %s = Scan(%x, %z) num_scan_inputs=1 "
      "body=graph(%v:f32[2], %e:f32[2]) -> (%u, %o) { %u = Add(%v, %e)\n %o = Mul(%u, %u) } }",
      HN_F16,
      .after =
          "ir 8\n"
          "opset 17\n"
          "graph g(%x:f16[2], %z:f16[3,2]) -> (%y:f16[2], %s:f16[3,2]) {\n"
          "  %y, %s = Scan(%x, %z) num_scan_inputs=1 body=graph(%v:f16[2], %e:f16[2]) -> (%u:f16[2], %o:f16[2]) {\n"
          "    %u = Add(%v, %e)\n"
          "    %o = Mul(%u, %u)\n"
          "  }\n"
          "}\n" },
    { "TopK",
      "opset 17 graph g(%x:f32[2,2]) -> (%v, %i) { %a = MatMul(%x, w:f32[2,2]={1,2,3,4})\n %v, %i = TopK(%a, "
      "k:i64[1]={1}) }",
      HN_F16,
      .after = "ir 8\n"
               "opset 17\n"
               "graph g(%x:f16[2,2]) -> (%v:f16[2,1], %i) {\n"
               "  %a:f16[2,2] = MatMul(%x, w:f16[2,2]={1.0,2.0,3.0,4.0})\n"
               "  %v, %i = TopK(%a, k:i64[1]={1})\n"
               "}\n" },
    { "constants as nodes",
      "opset 17 graph g(%x:f32[2]) -> (%y, %z) { %c = Constant() value=f32[2]={1,0.1}\n %d = Constant() "
      "value_float=0.5\n"
      "%s = Constant() value_ints=[2]\n %e = ConstantOfShape(%s) value=f32[1]={3}\n %f = ConstantOfShape(%s)\n"
      "%a = Mul(%x, %c)\n %b = Add(%a, %d)\n %y = Sub(%b, %e)\n %z = Add(%x, %f) }",
      HN_F16,
      .after = "ir 8\n"
               "opset 17\n"
               "graph g(%x:f16[2]) -> (%y:f16[2], %z:f16[2]) {\n"
               "  %c:f16[2] = Constant() value=f16[2]={1.0,0.0999755859}\n"
               "  %d:f16[] = Constant() value=f16[]={0.5}\n"
               "  %s = Constant() value_ints=[2]\n"
               "  %e:f16[2] = ConstantOfShape(%s) value=f16[1]={3.0}\n"
               "  %f:f16[2] = ConstantOfShape(%s) value=f16[1]={0.0}\n"
               "  %a:f16[2] = Mul(%x, %c)\n"
               "  %b:f16[2] = Add(%a, %d)\n"
               "  %y = Sub(%b, %e)\n"
               "  %z = Add(%x, %f)\n"
               "}\n" },
    { "positions stay",
      "opset 17 graph g(%x:f32[2,2], %n:f32) -> (%y, %r) { %r = Range(z:f32={0}, %n, o:f32={1})\n"
      "%a = ReduceMax(%x)\n %s = Mul(%a, t:f32={1000})\n %f = Floor(%s)\n %y = Cast(%f) to=7 }",
      HN_F16, .samples = "f32[2,2]={1,2,3,12.5} f32={3}",
      .after = "ir 8\n"
               "opset 17\n"
               "graph g(%x:f16[2,2], %n:f32[]) -> (%y, %r:f16[?]) {\n"
               "  %r_f32 = Range(z:f32[]={0.0}, %n, o:f32[]={1.0})\n"
               "  %a:f16[1,1] = ReduceMax(%x)\n"
               "  %a_f32:f32[1,1] = Cast(%a) to=1\n"
               "  %s = Mul(%a_f32, t:f32[]={1000.0})\n"
               "  %f = Floor(%s)\n"
               "  %y = Cast(%f) to=7\n"
               "  %r = Cast(%r_f32) to=10\n"
               "}\n" },
    { "a function's body",
      "opset 17 opset com.acme 1 function com.acme::F(%a) -> (%b) { opset 17 %c = Constant() value_float=2.0\n %b = "
      "Mul(%a, %c) }\n"
      "graph g(%x:f32[2]) -> (%y:f32[2]) { %y = com.acme::F(%x) }",
      HN_F16,
      .after = "ir 8\n"
               "opset 17\n"
               "opset com.acme 1\n"
               "graph g(%x:f16[2]) -> (%y:f16[2]) {\n"
               "  %c:f16[] = Constant() value=f16[]={2.0}\n"
               "  %y = Mul(%x, %c)\n"
               "}\n" },
    { "an operator nobody knows",
      "opset 17 opset com.acme 1 graph g(%x:f32[2,2]) -> (%y:f32[2,2]) { %a = MatMul(%x, w:f32[2,2]={1,2,3,4})\n"
      "%b:f32[2,2] = com.acme::Odd(%a)\n %y = MatMul(%b, w) }",
      HN_F16,
      .after = "ir 8\n"
               "opset 17\n"
               "opset com.acme 1\n"
               "graph g(%x:f16[2,2]) -> (%y:f16[2,2]) {\n"
               "  %a:f16[2,2] = MatMul(%x, w:f16[2,2]={1.0,2.0,3.0,4.0})\n"
               "  %a_f32:f32[2,2] = Cast(%a) to=1\n"
               "  %b:f32[2,2] = com.acme::Odd(%a_f32)\n"
               "  %b_f16:f16[2,2] = Cast(%b) to=10\n"
               "  %y = MatMul(%b_f16, w)\n"
               "}\n" },
    { "CastLike", "opset 17 graph g(%x:f32[2,2], %i:i64[2,2]) -> (%y) { %a = CastLike(%i, %x)\n %y = MatMul(%a, %x) }",
      HN_F16,
      .after = "ir 8\n"
               "opset 17\n"
               "graph g(%x:f16[2,2], %i:i64[2,2]) -> (%y:f16[2,2]) {\n"
               "  %a:f16[2,2] = Cast(%i) to=10\n"
               "  %y = MatMul(%a, %x)\n"
               "}\n" },
    { "an output that is an input", "opset 17 graph g(%x:f32[2]) -> (%x, %y:f32[2]) { %y = Relu(%x) }", HN_F16,
      .after = "ir 8\n"
               "opset 17\n"
               "graph g(%x:f16[2]) -> (%x, %y:f16[2]) {\n"
               "  %y = Relu(%x)\n"
               "}\n" },
    { "bf16",
      "opset 13 graph g(%x:f32[1,1,2,2]) -> (%y) { %a = Conv(%x, w:f32[1,1,1,1]={2})\n %y = MatMul(%a, "
      "v:f32[2,2]={1,2,3,1e9}) }",
      HN_BF16,
      .after = "ir 8\n"
               "opset 13\n"
               "graph g(%x:f32[1,1,2,2]) -> (%y:bf16[1,1,2,2]) {\n"
               "  %a = Conv(%x, w:f32[1,1,1,1]={2.0})\n"
               "  %a_bf16:bf16[1,1,2,2] = Cast(%a) to=16\n"
               "  %y = MatMul(%a_bf16, v:bf16[2,2]={1.0,2.0,3.0,998244352.0})\n"
               "}\n" },
    { "back to f32",
      "opset 17 graph g(%x:f16[2,2]) -> (%y:f16[2,2]) { %a = MatMul(%x, w:f16[2,2]={1,0.5,3,4})\n %b = Cast(%a) to=1\n"
      "%c = MatMul(%b, v:f32[2,2]={1,2,3,4})\n %d = Cast(%c) to=10\n %y = MatMul(%d, w) }",
      HN_F32,
      .after = "ir 8\n"
               "opset 17\n"
               "graph g(%x:f32[2,2]) -> (%y:f32[2,2]) {\n"
               "  %a:f32[2,2] = MatMul(%x, w:f32[2,2]={1.0,0.5,3.0,4.0})\n"
               "  %c = MatMul(%a, v:f32[2,2]={1.0,2.0,3.0,4.0})\n"
               "  %y = MatMul(%c, w)\n"
               "}\n" },
    { "back to f32, edges kept",
      "opset 17 graph g(%x:f16[2,2]) -> (%y:f16[2,2]) { %y = MatMul(%x, w:f16[2,2]={1,0.5,3,4}) }", HN_F32,
      .keep_io = TRUE,
      .after = "ir 8\n"
               "opset 17\n"
               "graph g(%x:f16[2,2]) -> (%y:f16[2,2]) {\n"
               "  %x_f32:f32[2,2] = Cast(%x) to=1\n"
               "  %y_f32:f32[2,2] = MatMul(%x_f32, w:f32[2,2]={1.0,0.5,3.0,4.0})\n"
               "  %y = Cast(%y_f32) to=10\n"
               "}\n" },
    { "a mean that overflows on the way", /* row 26 */
      "opset 13 graph g(%x:f32[2,4]) -> (%y) { %a = MatMul(%x, w:f32[4,4]={1,0,0,0,0,1,0,0,0,0,1,0,0,0,0,1})\n"
      "%m = ReduceMean(%a) axes=[1]\n %d = Sub(%a, %m)\n %y = MatMul(%d, w) }",
      HN_F16, .samples = "f32[2,4]={9000,9008,9000,8000,1,2,3,4}",
      .after =
          "ir 8\n"
          "opset 13\n"
          "graph g(%x:f16[2,4]) -> (%y:f16[2,4]) {\n"
          "  %a:f16[2,4] = MatMul(%x, w:f16[4,4]={1.0,0.0,0.0,0.0,0.0,1.0,0.0,0.0,0.0,0.0,1.0,0.0,0.0,0.0,0.0,1.0})\n"
          "  %a_f32:f32[2,4] = Cast(%a) to=1\n"
          "  %m = ReduceMean(%a_f32) axes=[1]\n"
          "  %m_f16:f16[2,1] = Cast(%m) to=10\n"
          "  %d:f16[2,4] = Sub(%a, %m_f16)\n"
          "  %y = MatMul(%d, w)\n"
          "}\n" },
    { "a normalization whose squares overflow",
      "opset 17 graph g(%x:f32[2,4]) -> (%y) { %a = MatMul(%x, w:f32[4,4]={1,0,0,0,0,1,0,0,0,0,1,0,0,0,0,1})\n"
      "%n = LayerNormalization(%a, s:f32[4]={1,1,1,1}, b:f32[4]={0,0,0,0})\n %y = MatMul(%n, w) }",
      HN_F16, .samples = "f32[2,4]={300,-300,300,100,1,2,3,4}",
      .after =
          "ir 8\n"
          "opset 17\n"
          "graph g(%x:f16[2,4]) -> (%y:f16[2,4]) {\n"
          "  %a:f16[2,4] = MatMul(%x, w:f16[4,4]={1.0,0.0,0.0,0.0,0.0,1.0,0.0,0.0,0.0,0.0,1.0,0.0,0.0,0.0,0.0,1.0})\n"
          "  %a_f32:f32[2,4] = Cast(%a) to=1\n"
          "  %n = LayerNormalization(%a_f32, s:f32[4]={1.0,1.0,1.0,1.0}, b:f32[4]={0.0,0.0,0.0,0.0})\n"
          "  %n_f16:f16[2,4] = Cast(%n) to=10\n"
          "  %y = MatMul(%n_f16, w)\n"
          "}\n" },
    { "a normalization that fits",
      "opset 17 graph g(%x:f32[2,4]) -> (%y) { %n = LayerNormalization(%x, s:f32[4]={1,1,1,1}, b:f32[4]={0,0,0,0})\n"
      "%y = MatMul(%n, w:f32[4,4]) }",
      HN_F16, .samples = "f32[2,4]={3,-3,3,1,1,2,3,4}",
      .after = "ir 8\n"
               "opset 17\n"
               "graph g(%x:f16[2,4]) -> (%y:f16[2,4]) {\n"
               "  %n:f16[2,4] = LayerNormalization(%x, s:f16[4]={1.0,1.0,1.0,1.0}, b:f16[4]={0.0,0.0,0.0,0.0})\n"
               "  %y = MatMul(%n, "
               "w:f16[4,4]={0.9296875,0.0563354492,0.841796875,0.208007812,0.555175781,-0.897949219,0.590820312,-0."
               "815917969,-0.185546875,-0.258544922,0.950195312,0.752929688,-0.00717926025,-0.327636719,-0.205200195,0."
               "267822266})\n"
               "}\n" },
    { "a divisor that would be 0",
      "opset 17 graph g(%x:f32[2,2], %d:f32[2,2]) -> (%y) { %a = MatMul(%x, w:f32[2,2]={1,2,3,4})\n %b = Mul(%d, %d)\n"
      "%c = Div(%a, %b)\n %y = MatMul(%c, w) }",
      HN_F16, .samples = "f32[2,2]={1e-4,2e-4,3,4} f32[2,2]={1e-5,1,1,1}",
      .after = "ir 8\n"
               "opset 17\n"
               "graph g(%x:f16[2,2], %d:f32[2,2]) -> (%y) {\n"
               "  %a:f16[2,2] = MatMul(%x, w_f16:f16[2,2]={1.0,2.0,3.0,4.0})\n"
               "  %b = Mul(%d, %d)\n"
               "  %a_f32:f32[2,2] = Cast(%a) to=1\n"
               "  %c = Div(%a_f32, %b)\n"
               "  %y = MatMul(%c, w:f32[2,2]={1.0,2.0,3.0,4.0})\n"
               "}\n" },
    { "in a branch too",
      "opset 17 graph g(%c:bool, %x:f32[2,2]) -> (%y) { %a = MatMul(%x, w:f32[2,2]={1,2,3,4})\n"
      "%y = If(%c) then_branch=graph() -> (%t) { %s = Mul(%a, %a)\n %t = ReduceMean(%s) } "
      "else_branch=graph() -> (%e) { %e = ReduceMax(%a) } }",
      HN_F16, .samples = "bool={1} f32[2,2]={100,200,300,400}",
      .after = "ir 8\n"
               "opset 17\n"
               "graph g(%c:bool[], %x:f16[2,2]) -> (%y) {\n"
               "  %a:f16[2,2] = MatMul(%x, w:f16[2,2]={1.0,2.0,3.0,4.0})\n"
               "  %a_f32:f32[2,2] = Cast(%a) to=1\n"
               "  %y = If(%c) then_branch=graph() -> (%t) {\n"
               "    %s = Mul(%a_f32, %a_f32)\n"
               "    %t = ReduceMean(%s)\n"
               "  } else_branch=graph() -> (%e_f32:f32[1,1]) {\n"
               "    %e:f16[1,1] = ReduceMax(%a)\n"
               "    %e_f32 = Cast(%e) to=1\n"
               "  }\n"
               "}\n" },
};

static GPtrArray *tensors_of(const char *text)
{
    GPtrArray *t = g_ptr_array_new_with_free_func((GDestroyNotify)hn_tensor_unref);
    g_autoptr(GError) error = NULL;
    while (text != NULL && *text != '\0') {
        g_ptr_array_add(t, hn_tensor_parse(&text, NULL, &error));
        g_assert_no_error(error);
        while (*text == ' ')
            text++;
    }
    return t;
}

static HnRangeProbe *observe(HnModel *m, const char *samples)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(GPtrArray) in = tensors_of(samples);
    HnRangeProbe *w = hn_range_probe_new(m, &hn_backend_cpu, &(HnRangeProbeOptions){ .threads = 1 }, &error);
    g_assert_no_error(error);
    g_assert_cmpint(hn_range_probe_n_inputs(w), ==, (int)in->len);
    (void)hn_range_probe_run(w, (HnTensor *const *)in->pdata, &error);
    g_assert_no_error(error);
    return w;
}

static HnTensor *in_type(const HnTensor *t, HnDtype dtype)
{
    HnTensor *c = hn_tensor_new(dtype, t->ndim, t->dims, NULL, NULL);
    for (int64_t i = 0; i < t->n; i++)
        hn_tensor_set_f64(c, i, hn_tensor_get_f64(t, i));
    return c;
}

/* Both models on the same inputs, which are small enough for a half. */
static void compare(const Case *c, HnModel *a, HnModel *b, const HnBackend *backend)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(HnSession) sa = hn_session_new(a, &hn_backend_ref, &(HnSessionOptions){ 0 }, &error);
    if (g_error_matches(error, HN_ERROR, HN_ERROR_UNSUPPORTED))
        return; /* an operator that nobody knows */
    g_assert_no_error(error);
    g_autoptr(HnSession) sb = test_session(b, backend, &(HnSessionOptions){ .threads = 1 });
    g_autoptr(GPtrArray) in_a = c->samples != NULL ? tensors_of(c->samples) : test_inputs(sa, 71);
    g_autoptr(GPtrArray) in_b = g_ptr_array_new_with_free_func((GDestroyNotify)hn_tensor_unref);
    g_assert_cmpint(hn_session_n_inputs(sa), ==, hn_session_n_inputs(sb));
    for (guint i = 0; i < in_a->len; i++) {
        g_assert_cmpstr(hn_session_input(sa, (int)i)->name, ==, hn_session_input(sb, (int)i)->name);
        g_ptr_array_add(in_b, in_type(in_a->pdata[i], hn_session_input(sb, (int)i)->type->dtype));
    }
    g_autoptr(GPtrArray) want = test_run(sa, in_a), got = test_run(sb, in_b);
    for (guint k = 0; k < want->len; k++) {
        const HnTensor *x = want->pdata[k];
        double most = 0;
        for (int64_t i = 0; hn_dtype_in(x->dtype, HN_T_FLOATS) && i < x->n; i++)
            most = MAX(most, fabs(hn_tensor_get_f64(x, i)));
        g_autoptr(HnTensor) y = in_type(got->pdata[k], x->dtype);
        g_assert_cmpstr(hn_session_output(sa, (int)k)->name, ==, hn_session_output(sb, (int)k)->name);
        test_assert_close(y, x, 1e-2, 1e-2 * most, c->name);
    }
}

static void test_case(gconstpointer data)
{
    const Case *c = data;
    g_autoptr(GError) error = NULL;
    g_autoptr(HnModel) a = test_model(c->before), b = test_model(c->before), want = NULL;
    g_autoptr(HnRangeProbe) w = c->samples != NULL ? observe(a, c->samples) : NULL;
    const char *keep[] = { c->keep, NULL };
    HnPrecisionLog log;
    hn_precision_log_init(&log);
    const HnPrecisionOptions o = { .to = c->to,
                                   .keep_io = c->keep_io,
                                   .keep = c->keep != NULL ? keep : NULL,
                                   .ranges = w != NULL ? hn_range_probe_ranges(w) : NULL };
    (void)hn_convert_precision(b, &o, &log, &error);
    g_assert_no_error(error);
    g_assert_true(hn_model_verify(b, &error));
    g_autoptr(GString) text = g_string_new(NULL);
    hn_model_print(b, -1, text);
    if (!g_str_equal(text->str, c->after)) {
        g_test_message("%s: is\n%s\nand not\n%s", c->name, text->str, c->after);
        g_test_fail();
    }
    compare(c, a, b, &hn_backend_ref);
    compare(c, a, b, &hn_backend_cpu);
    hn_precision_log_clear(&log);
}

/* --- refusals, the log, ranges ----------------------------------------------------------------------------------- */

static void test_refused(void)
{
    static const struct {
        const char *text;
        HnDtype to;
        HnError code;
    } refused[] = {
        { "opset 11 graph g(%x:f32[2]) -> (%y) { %y = Relu(%x) }", HN_BF16, HN_ERROR_UNSUPPORTED },
        { "opset 17 graph g(%x:f32[2]) -> (%y) { %y = Relu(%x) }", HN_I8, HN_ERROR_USAGE },
    };
    for (guint i = 0; i < G_N_ELEMENTS(refused); i++) {
        g_autoptr(GError) error = NULL;
        g_autoptr(HnModel) m = test_model(refused[i].text);
        HnPrecisionLog log;
        hn_precision_log_init(&log);
        g_assert_false(hn_convert_precision(m, &(HnPrecisionOptions){ .to = refused[i].to }, &log, &error));
        g_assert_error(error, HN_ERROR, (int)refused[i].code);
        hn_precision_log_clear(&log);
    }
}

static const HnPrecisionNode *logged(const HnPrecisionLog *log, const char *site)
{
    for (guint i = 0; i < log->nodes->len; i++)
        if (g_str_equal(((HnPrecisionNode *)log->nodes->pdata[i])->site, site))
            return log->nodes->pdata[i];
    g_assert_not_reached();
}

static void test_log(void)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(HnModel) m =
        test_model("opset 17 graph g(%x:f32[1,4]) -> (%y, %z) { %a = MatMul(%x, w:f32[4,4]={1,1e-9,0,0,0,1,0,0,0,0,1,0,"
                   "0,0,0,1})\n %m = ReduceMean(%a) axes=[1]\n %d = Sub(%a, %m)\n %y = MatMul(%d, w)\n"
                   "%z = MatMul(%x, v:f32[4,4]) @'stays' }");
    g_autoptr(HnRangeProbe) w = observe(m, "f32[1,4]={8000,8008,9000,8192}");
    const char *const keep[] = { "stays", NULL };
    HnPrecisionLog log;
    hn_precision_log_init(&log);
    g_assert_true(hn_convert_precision(
        m, &(HnPrecisionOptions){ .to = HN_F16, .ranges = hn_range_probe_ranges(w), .keep = keep }, &log, &error));
    g_assert_no_error(error);
    g_assert_cmpuint(log.nodes->len, ==, 5);
    g_assert_cmpuint(log.converted, ==, 3);
    g_assert_cmpuint(log.unseen, ==, 0);
    g_assert_cmpuint(log.weights, ==, 1);
    g_assert_cmpuint(log.weights_twice, ==, 0);
    g_assert_cmpuint(log.weights_kept, ==, 1);
    g_assert_cmpint(log.flushed, ==, 1);
    g_assert_cmpint(log.clamped, ==, 0);
    g_assert_cmpuint(log.bytes_before, ==, 128);
    g_assert_cmpuint(log.bytes_after, ==, 96);
    g_assert_cmpuint(log.inputs, ==, 1);
    g_assert_cmpuint(log.outputs, ==, 2);
    const HnPrecisionNode *mean = logged(&log, "m"), *product = logged(&log, "a");
    g_assert_cmpint(mean->kept, ==, HN_KEPT_INSIDE);
    g_assert_cmpstr(mean->why, ==, "the sum of magnitudes inside reaches 3.32e+04");
    g_assert_cmpfloat_with_epsilon(mean->headroom, 65504.0 / 33200, 1e-9);
    g_assert_cmpint(product->kept, ==, HN_KEPT_NOT);
    g_assert_null(product->why);
    g_assert_cmpfloat_with_epsilon(product->headroom, 65504.0 / 9000, 1e-3);
    g_assert_cmpint(logged(&log, "z")->kept, ==, HN_KEPT_ASKED);
    hn_precision_log_clear(&log);
}

/* What a check took back was not asked for. */
static void test_checked(void)
{
    static const char *const keep[] = { "z", NULL };
    g_autoptr(HnModel) m = test_model("opset 17 graph g(%x:f32[4]) -> (%z) { %y = Exp(%x)\n %z = Sin(%y) }");
    g_autoptr(GError) error = NULL;
    HnPrecisionLog log;
    hn_precision_log_init(&log);
    const HnPrecisionOptions o = { .to = HN_F16, .keep = keep, .keep_checked = TRUE };
    g_assert_true(hn_convert_precision(m, &o, &log, &error));
    g_assert_no_error(error);
    g_assert_cmpint(logged(&log, "z")->kept, ==, HN_KEPT_CHECKED);
    g_assert_cmpstr(logged(&log, "z")->why, ==, "results would be too far off");
    g_assert_cmpstr(hn_kept_name(HN_KEPT_CHECKED), ==, "checked");
    hn_precision_log_clear(&log);
}

static void check_opset(const char *text, HnDtype to, int64_t want)
{
    g_autoptr(HnModel) m = test_model(text);
    g_assert_cmpint(hn_precision_opset(m, to), ==, want);
}

/* bf16: 13, or what the last operator asks for that ever takes it; never lower than the model's own. */
static void test_opset(void)
{
    check_opset("opset 9 graph g(%x:f32[4]) -> (%y) { %y = Relu(%x) }", HN_BF16, 13);
    check_opset("opset 18 graph g(%x:f32[4]) -> (%y) { %y = Relu(%x) }", HN_BF16, 18);
    check_opset("opset 9 graph g(%x:f32[4]) -> (%y) { %y = Elu(%x) }", HN_BF16, 22);
    check_opset("opset 9 graph g(%x:f32[4]) -> (%y) { %z = Relu(%x)\n %y = LeakyRelu(%z) }", HN_BF16, 16);
    check_opset("opset 13 graph g(%x:f32[4]) -> (%y) { %y = Elu(%x) }", HN_F16, 13);
    check_opset("opset 9 graph g(%x:f32[4]) -> (%y) { %y = Elu(%x) }", HN_F32, 9);
}

static void test_ranges(void)
{
    static const char *const texts[] = { "f32[9]={0,-3,0.5,1e-30,-65504,-1e9,70000,-2,0}",
                                         "f64[9]={0,-3,0.5,1e-30,-65504,-1e9,70000,-2,0}" };
    for (guint i = 0; i < G_N_ELEMENTS(texts); i++) {
        g_autoptr(HnTensor) t = test_tensor(texts[i]);
        HnRange r;
        hn_tensor_set_f64(t, 0, (double)INFINITY);
        hn_tensor_set_f64(t, 7, (double)NAN);
        hn_range_of(t, &r);
        g_assert_cmpint(r.n, ==, 9);
        g_assert_cmpint(r.n_zero, ==, 1);
        g_assert_cmpint(r.n_mask, ==, 2);
        g_assert_cmpint(r.n_other, ==, 2);
        g_assert_cmpfloat(r.largest, ==, 70000);
        g_assert_cmpfloat_with_epsilon(r.smallest, 1e-30, 1e-36);
        g_assert_true(r.negative);
    }
}

/* What comes up inside, by each of the rules. */
static void test_inside(void)
{
    g_autoptr(HnModel) m = test_model(
        "opset 18 graph g(%x:f32[1,2,1,2], %c:bool) -> (%mean, %norm, %soft, %len, %pool, %conv, %inst, %if) {\n"
        "%mean = ReduceMean(%x, ax:i64[1]={3})\n %norm = LayerNormalization(%x, s:f32[2]={1,1})\n"
        "%soft = Softmax(%x) axis=1\n %len = ReduceL2(%x, ax)\n %pool = AveragePool(%x) kernel_shape=[1,2]\n"
        "%conv = Conv(%x, w:f32[1,2,1,1]={2,-1})\n"
        "%inst = InstanceNormalization(%x, s, s)\n"
        "%if = If(%c) then_branch=graph() -> (%t) { %t = ReduceMean(%x, ax) } else_branch=graph() -> (%e) { %e = "
        "ReduceMean(%x, ax) } }");
    g_autoptr(HnRangeProbe) w = observe(m, "f32[1,2,1,2]={3,-4,1,2} bool={1}");
    static const struct {
        const char *name;
        double inside;
    } want[] = { { "mean", 7 }, { "norm", 25 }, { "soft", 1.1353352832 }, { "len", 25 },
                 { "pool", 7 }, { "conv", 10 }, { "inst", 25 },           { "t", 7 } };
    for (guint i = 0; i < G_N_ELEMENTS(want); i++) {
        const HnRange *r = hn_ranges_get(hn_range_probe_ranges(w), want[i].name);
        g_assert_nonnull(r);
        g_assert_nonnull(r->inside_what);
        g_assert_cmpfloat_with_epsilon(r->inside, want[i].inside, 1e-4);
    }
    g_assert_null(hn_ranges_get(hn_range_probe_ranges(w), "e")); /* the branch that was not taken */
    const HnRange *x = hn_ranges_get(hn_range_probe_ranges(w), "x");
    g_assert_cmpfloat(x->largest, ==, 4);
    g_assert_cmpfloat(x->smallest, ==, 1);
}

static void test_speedup(void)
{
    static const char text[] = "opset 17 graph g(%x:f32[1,64]) -> (%y) { %y = MatMul(%x, w:f32[64,64]) }";
    g_autoptr(GError) error = NULL;
    g_autoptr(HnModel) a = test_model(text), b = test_model(text);
    g_autoptr(HnTensor) x = test_random(HN_F32, 2, (int64_t[]){ 1, 64 }, 1);
    HnPrecisionLog log;
    HnSpeedup speedup;
    hn_precision_log_init(&log);
    const HnSpeedupOptions o = { .threads = 1, .seconds = 0.05 };
    g_assert_true(hn_measure_speedup(a, b, &hn_backend_cpu, &x, &o, &speedup, &error));
    g_assert_no_error(error);
    g_assert_false(speedup.smaller);
    g_assert_true(speedup.pointless == !speedup.faster);
    /* the very same steps: nothing to be decided, however noisy it is; another shape, or another operator: raced */
    const HnSpeedupOptions decide = { .threads = 1, .seconds = 0.05, .limit = 1 },
                           others = { .threads = 1, .after_threads = 2, .seconds = 0.05, .limit = 1 };
    g_autoptr(HnModel) c = test_model("opset 17 graph g(%x:f32[1,64]) -> (%y) { %y = MatMul(%x, w:f32[64,63]) }"),
                       d = test_model("opset 17 graph g(%x:f32[1,64]) -> (%y) { %y = Sin(%x) }"),
                       e = test_model("opset 17 graph g(%x:f32[1,64]) -> (%y) { %y = Cos(%x) }");
    g_assert_true(hn_measure_speedup(a, b, &hn_backend_cpu, &x, &decide, &speedup, &error));
    g_assert_true(speedup.same && speedup.effect.effect == 1 && speedup.new_ms == speedup.old_ms);
    g_assert_cmpint(hn_decide(&speedup.effect, 1), ==, HN_WON);
    g_assert_true(hn_measure_speedup(a, c, &hn_backend_cpu, &x, &decide, &speedup, &error));
    g_assert_false(speedup.same);
    g_assert_cmpfloat_with_epsilon(speedup.new_ms, speedup.old_ms * speedup.effect.effect, 1e-9);
    g_assert_true(hn_measure_speedup(d, e, &hn_backend_cpu, &x, &decide, &speedup, &error));
    g_assert_false(speedup.same);
    g_assert_true(hn_measure_speedup(a, b, &hn_backend_cpu, &x, &others, &speedup, &error));
    g_assert_false(speedup.same); /* with other threads */
    g_assert_true(hn_convert_precision(b, &(HnPrecisionOptions){ .to = HN_F16 }, &log, &error));
    g_assert_true(hn_measure_speedup(a, b, &hn_backend_cpu, &x, &o, &speedup, &error));
    g_assert_no_error(error);
    g_assert_true(speedup.smaller && !speedup.pointless);
    g_assert_cmpuint(speedup.new_bytes * 2, ==, speedup.old_bytes);
    g_autofree char *text_of_it = hn_speedup_describe(&speedup);
    g_assert_nonnull(strstr(text_of_it, "0.500 times the bytes"));
    hn_precision_log_clear(&log);
}

/* Steps are the same where what is computed along with them is; inputs may be others; a few bytes are none. */
static void test_sides(void)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(HnTensor) x = test_random(HN_F32, 2, (int64_t[]){ 1, 64 }, 1),
                        more = test_random(HN_F32, 2, (int64_t[]){ 3, 64 }, 1);
    g_autoptr(HnModel) relu = test_model("opset 17 graph g(%x:f32[N,64]) -> (%y) { %a = MatMul(%x, w:f32[64,64]) "
                                         "%y = Relu(%a) }"),
                       sigmoid = test_model("opset 17 graph g(%x:f32[N,64]) -> (%y) { %a = MatMul(%x, w:f32[64,64]) "
                                            "%y = Sigmoid(%a) }"),
                       plus = test_model("opset 17 graph g(%x:f32[N,64]) -> (%y) { %a = MatMul(%x, w:f32[64,64]) "
                                         "%y = Add(%a, b:f32[1]) }"),
                       three = test_model("opset 17 graph g(%x:f32[3,64]) -> (%y) { %a = MatMul(%x, w:f32[64,64]) "
                                          "%y = Relu(%a) }");
    HnTensor *const in[] = { more };
    const HnSpeedupOptions o = { .threads = 1, .seconds = 0.05, .limit = 1 },
                           other_in = { .threads = 1, .seconds = 0.05, .limit = 1, .after_in = in };
    HnSpeedup speedup;
    g_assert_true(hn_measure_speedup(relu, sigmoid, &hn_backend_cpu, &x, &o, &speedup, &error));
    g_assert_false(speedup.same);
    g_assert_true(hn_measure_speedup(plus, relu, &hn_backend_cpu, &x, &o, &speedup, &error));
    g_assert_cmpuint(speedup.new_bytes, <, speedup.old_bytes);
    g_assert_false(speedup.smaller);
    g_assert_true(hn_measure_speedup(relu, three, &hn_backend_cpu, &x, &other_in, &speedup, &error));
    g_assert_false(speedup.same);
    g_assert_false(hn_measure_speedup(relu, three, &hn_backend_cpu, &x, &o, &speedup, &error));
    g_assert_nonnull(error);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    for (guint i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *path = g_strdup_printf("/precision/%s", cases[i].name);
        g_test_add_data_func(path, &cases[i], test_case);
    }
    g_test_add_func("/precision/refused", test_refused);
    g_test_add_func("/precision/log", test_log);
    g_test_add_func("/precision/checked", test_checked);
    g_test_add_func("/precision/opset", test_opset);
    g_test_add_func("/precision/ranges", test_ranges);
    g_test_add_func("/precision/inside", test_inside);
    g_test_add_func("/precision/gain", test_speedup);
    g_test_add_func("/precision/gain/sides", test_sides);
    return g_test_run();
}
