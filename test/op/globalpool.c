#include "case.h"

static const HnCase globalaveragepool[] = {
    { "f32[1,1,3,3]={1,2,3,4,5,6,7,8,9}", NULL, "f32[1,1,1,1]={5}" },
    { "f32[2,2,2]={1,3,0,0,-1,1,5,7}", NULL, "f32[2,2,1]={2,0,0,6}" },
    { "f32[2,3]={1,2,3,4,5,6}", NULL, "f32[2,3]={1,2,3,4,5,6}" },
    { "f32[0,3,4,4]", NULL, "f32[0,3,1,1]={}" },
    { "f32[3,70,5,6,2]", NULL },
    { "f32[1,5,133,131]", NULL },
    { "f32[3]", NULL, .refused = TRUE, .code = HN_ERROR_SHAPE },
};
HN_CASES(globalaveragepool, "GlobalAveragePool", globalaveragepool);

static const HnCase globalmaxpool[] = {
    { "f32[1,2,3]={-3,-2,-5,1,inf,0}", NULL, "f32[1,2,1]={-2,inf}" },
    { "f64[2,3,7,7]", NULL },
    { "f32[2,5,133,31]", NULL },
    { "f32[1,2,3]={nan,-2,-inf,nan,nan,nan}", NULL, "f32[1,2,1]={-2,-inf}" },
    { "i32[1,1,1]", NULL, .refused = TRUE, .code = HN_ERROR_TYPE },
};
HN_CASES(globalmaxpool, "GlobalMaxPool", globalmaxpool);

static const HnCase globallppool[] = {
    { "f32[1,2,2]={3,-4,5,12}", NULL, "f32[1,2,1]={5,13}" },
    { "f32[1,2,2]={3,-4,5,12}", "p=1", "f32[1,2,1]={7,17}" },
    { "f32[1,2,2]={3,-4,5,12}", "p=2.0", "f32[1,2,1]={5,13}", .opset = 1 },
    { "f32[1,1,1]", "p=-1", .refused = TRUE, .code = HN_ERROR_ATTRIBUTE },
};
HN_CASES(globallppool, "GlobalLpPool", globallppool);
