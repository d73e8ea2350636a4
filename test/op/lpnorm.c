#include "case.h"

static const HnCase lpnormalization[] = {
    { "f32[2,2]={3,4,0,0}", NULL, "f32[2,2]={0.6,0.8,0,0}" },
    { "f32[2,2]={1,-3,3,1}", "axis=0 p=1", "f32[2,2]={0.25,-0.75,0.75,0.25}", .opset = 1 },
    { "f32[3,4,5]", "axis=1" },
    { "f32[3,0,5]", "axis=1", "f32[3,0,5]={}" },
    { "f32[3]", "p=3", .refused = TRUE, .code = HN_ERROR_ATTRIBUTE },
    { "f32[3]", "axis=1", .refused = TRUE, .code = HN_ERROR_ATTRIBUTE },
};
HN_CASES(lpnormalization, "LpNormalization", lpnormalization);

static const HnCase meanvariancenormalization[] = {
    { "f32[2,2,1,1]={1,2,3,6}", NULL, "f32[2,2,1,1]={-1,-1,1,1}" },
    { "f32[2,2]={1,3,5,9}", "axes=[-1]", "f32[2,2]={-1,1,-1,1}", .opset = 9 },
    { "f32[2,3,4,5]", NULL },
    { "f32[2,3,4]", "axes=[1]" },
    { "f32[0,2,1,1]", NULL, "f32[0,2,1,1]={}" },
    { "f32[2,3]", NULL, .refused = TRUE, .code = HN_ERROR_ATTRIBUTE },
};
HN_CASES(meanvariancenormalization, "MeanVarianceNormalization", meanvariancenormalization);
