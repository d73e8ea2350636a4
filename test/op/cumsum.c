#include "case.h"

static const HnCase cumsum[] = {
    { "f64[5]={1,2,3,4,5} i32={0}", NULL, "f64[5]={1,3,6,10,15}", .opset = 11 },
    { "i32[3]={1,2,3} !i64={-1}", "exclusive=1", "i32[3]={0,1,3}" },
    { "i64[3]={1,2,3} i64={0}", "reverse=1", "i64[3]={6,5,3}" },
    { "u32[3]={1,2,3} i64={0}", "exclusive=1 reverse=1", "u32[3]={5,3,0}" },
    { "f32[2,3]={1,2,3,4,5,6} i64={0}", NULL, "f32[2,3]={1,2,3,5,7,9}" },
    { "i32[2]={2147483647,1} i64={0}", NULL, "i32[2]={2147483647,-2147483648}" },
    { "f32[3,5,70] i64[1]={1}" },
    { "f32[0,2] i64={0}", NULL, "f32[0,2]={}" },
    { "f32[3] i64={1}", NULL, .refused = TRUE, .code = HN_ERROR_ATTRIBUTE },
    { "i8[3] i64={0}", NULL, .refused = TRUE, .code = HN_ERROR_TYPE },
    { "f32[3,700]@0:1 !i64={1}", NULL },
    { "f64[2,300]@0:1 !i32={-1}", "exclusive=1 reverse=1" },
    { "i32[4,40] !i64={-1}", "exclusive=1" },
    { "f32[3,30,40]@0:1 !i64={1}", "reverse=1" },
};
HN_CASES(cumsum, "CumSum", cumsum);

static const HnCase cumprod[] = {
    { "i32[3]={1,2,3} i64={0}", NULL, "i32[3]={1,2,6}" },
    { "f32[3]={1,2,3} i64={0}", "exclusive=1", "f32[3]={1,1,2}" },
    { "f64[3]={1,2,3} i32={-1}", "reverse=1", "f64[3]={6,6,3}" },
    { "u64[3]={1,2,3} i64={0}", "exclusive=1 reverse=1", "u64[3]={6,3,1}" },
    { "f32[3] i64={0}", NULL, .opset = 25, .refused = TRUE, .code = HN_ERROR_UNSUPPORTED },
    { "f32[2,100]@0.9:1.1 !i64={1}", "exclusive=1" },
};
HN_CASES(cumprod, "CumProd", cumprod);
