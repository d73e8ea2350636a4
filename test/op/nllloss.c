#include "case.h"

/* Logarithms by hand: the first example of the specification, and its other reductions. */
#define X "f32[2,3,2]={1,2,2,2,3,2,0,1,2,2,1,2}"
#define LABELS "i64[2,2]={2,1,0,2}"

static const HnCase negativeloglikelihoodloss[] = {
    { X " " LABELS, "reduction='none'", "f32[2,2]={-3,-2,0,-2}" },
    { X " " LABELS " f32[3]={0.2,0.3,0.1}", "reduction='sum'", "f32={-1.1}", .rtol = 1e-6 },
    { X " " LABELS " f32[3]={0.2,0.3,0.1}", NULL, "f32={-1.5714286}", .rtol = 1e-6 },
    { X " " LABELS, NULL, "f32={-1.75}" },
    { X " i32[2,2]={2,1,0,2}", "reduction='sum' ignore_index=2", "f32={-2}" },
    { X " " LABELS, "ignore_index=2", "f32={-1}" },
    { X " i64[2,2]={-1,1,0,-1} f32[3]={0.5,0.25,1}", "ignore_index=-1", "f32={-0.6666667}", .rtol = 1e-6 },
    { X " i64[2,2]={-100,1,0,-100} f32[3]={0.5,0.25,1}", "ignore_index=-100 reduction='none'",
      "f32[2,2]={0,-0.5,0,0}" },
    { "f32[1,2]={-inf,-1} i64[1]={0}", "ignore_index=0 reduction='sum'", "f32={0}" },
    { "f32[0,3] i64[0]", "reduction='sum'", "f32={0}" },
    { "f32[0,3] i64[0]", "reduction='none'", "f32[0]={}" },
    { "f32[7,5] i64[7]@0:4 f32[5]@0.5:1", NULL },
    { "f32[2,5,3,2,4] i32[2,3,2,4]@0:4 f32[5]@0.5:1", "reduction='none' ignore_index=3" },
    { "f32[2,5,3,2,4] i32[2,3,2,4]@0:4", "reduction='sum'" },
    { "f32[2,2] i64[2]={0,2}", NULL, .refused = TRUE, .code = HN_ERROR_VALUE },
    { "f32[2,2] i64[2]={0,-1}", NULL, .refused = TRUE, .code = HN_ERROR_VALUE },
    { "f32[2,2] i64[3]={0,1,1}", NULL, .refused = TRUE, .code = HN_ERROR_SHAPE },
    { "f32[2,2] i64[2,1]={0,1}", NULL, .refused = TRUE, .code = HN_ERROR_SHAPE },
    { "f32[2,2] i64[2]={0,1} f32[3]", NULL, .refused = TRUE, .code = HN_ERROR_SHAPE },
    { "f32[2] i64={0}", NULL, .refused = TRUE, .code = HN_ERROR_SHAPE },
    { "f32[2,2] i64[2]={0,1}", "reduction='max'", .refused = TRUE, .code = HN_ERROR_ATTRIBUTE },
};
HN_CASES(negativeloglikelihoodloss, "NegativeLogLikelihoodLoss", negativeloglikelihoodloss);

/* log(1 + e^-1) = 0.31326168751822286 */
static const HnCase softmaxcrossentropyloss[] = {
    { "f32[1,2]={0,1} i64[1]={1}", NULL, "f32={0.31326168751822286}", .rtol = 1e-6 },
    { "f32[2,2]={0,1,1000,1001} i32[2]={1,0}", "reduction='sum'", "f32={1.6265233750364456}", .rtol = 1e-6 },
    { "f32[2,2]={0,1,1,0} i64[2]={1,0}", "reduction='none'",
      "f32[2]={0.31326168751822286,0.31326168751822286} "
      "f32[2,2]={-1.3132616875182228,-0.31326168751822286,-0.31326168751822286,-1.3132616875182228}",
      .rtol = 1e-6 },
    { "f32[2,2]={0,1,1,0} i64[2]={1,1} f32[2]={1,3}", NULL, "f32={0.8132616875182228}", .rtol = 1e-6 },
    { "f32[2,2]={0,1,1,0} i64[2]={1,0} f32[2]={1,3}", "ignore_index=0", "f32={0.31326168751822286}", .rtol = 1e-6 },
    { "f32[2,2,2]={0,1,1,0,1,1,2,0} i64[2,2]={1,0,0,1}", "reduction='sum'", "f32={3.2530467500728915}", .rtol = 1e-5 },
    { "f32[0,3] i64[0]", "reduction='none'", "f32[0]={} f32[0,3]={}" },
    { "f32[7,5] i64[7]@0:4 f32[5]@0.5:1", NULL, .n_out = 2 },
    { "f32[2,5,3,2,4] i32[2,3,2,4]@0:4 f32[5]@0.5:1", "reduction='none' ignore_index=3", .n_out = 2 },
    { "f32[2,5,3,2,4] i32[2,3,2,4]@0:4", "reduction='mean' ignore_index=0" },
    { "f32[2,2] i64[2]={0,2}", NULL, .refused = TRUE, .code = HN_ERROR_VALUE },
    { "f32[2,2] i64[3]={0,1,1}", NULL, .refused = TRUE, .code = HN_ERROR_SHAPE },
    { "f32[2] i64={0}", NULL, .refused = TRUE, .code = HN_ERROR_SHAPE },
};
HN_CASES(softmaxcrossentropyloss, "SoftmaxCrossEntropyLoss", softmaxcrossentropyloss);
