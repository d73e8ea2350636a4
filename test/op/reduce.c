#include "case.h"

/* {{{5,1},{20,2}},{{30,1},{40,2}},{{55,1},{60,2}}}: the example of ONNX's documentation */
#define DOC "f32[3,2,2]={5,1,20,2,30,1,40,2,55,1,60,2}"

/* Axes that kernels know, of elements in a range: apart; some rows side by side; short, long, and very long rows, of an
 * odd number and of one that vectors divide; columns, few of them and in the middle. */
#define KNOWN(range)                                                                                           \
    { "f32[3,20,4,33]" range " !i64[2]={1,3}", NULL }, { "f32[5,3,70]" range " !i64[2]={0,1}", "keepdims=0" }, \
        { "f32[70,5]" range " !i64[1]={1}", NULL }, { "f32[7,67]" range " !i64[1]={-1}", NULL },               \
        { "f32[2,1101]" range " !i64[1]={1}", NULL }, { "f32[2,2204,2]" range " !i64[2]={1,2}", NULL },        \
        { "f32[4503]" range, NULL }, { "f32[1700,5]" range " !i64[1]={0}", NULL },                             \
    {                                                                                                          \
        "f32[2,300,40]" range " !i64[1]={1}", "keepdims=0"                                                     \
    }

static const HnCase reducesum[] = {
    KNOWN(""),
    { "f32[5,39,2] !i64[1]={2}", NULL }, /* many rows of few elements */
    { "f32[301,3] !i64[1]={1}", "keepdims=0" },
    { "f32[3,67,4] !i64[1]={-1}", NULL },
    { "f32[3,20,4,33] i64[2]={1,3}", NULL }, /* axes apart, rows longer than vectors */
    { "f32[2050,520] !i64[1]={1}", NULL },   /* many long rows */
    { "f32[2049,519] !i64[1]={1}", NULL },
    { "f32[5,3,70] i64[2]={0,1}", "keepdims=0" },
    { "f32[3,2,2]={1,2,3,4,5,6,7,8,9,10,11,12} i64[1]={1}", "keepdims=0", "f32[3,2]={4,6,12,14,20,22}" },
    { "f32[3,2,2]={1,2,3,4,5,6,7,8,9,10,11,12}", NULL, "f32[1,1,1]={78}" },
    { "f32[3,2,2]={1,2,3,4,5,6,7,8,9,10,11,12} i64[1]={-2}", NULL, "f32[3,1,2]={4,6,12,14,20,22}" },
    { "f32[2,2]={1,2,3,4} i64[0]", "noop_with_empty_axes=1", "f32[2,2]={1,2,3,4}" },
    { "f32[2,2]={1,2,3,4} -", "keepdims=0", "f32={10}" },
    { "f32[2,2]={1,2,3,4}", "axes=[0] keepdims=0", "f32[2]={4,6}", .opset = 12 }, /* attribute until 12 */
    { "f32[2,2,2]={1,2,3,4,5,6,7,8}", "axes=[-1,0] keepdims=0", "f32[2]={14,22}", .opset = 11 },
    { "i32[3]={2147483647,1,5}", "keepdims=0", "i32={-2147483643}" },
    { "u64[2]={18446744073709551615,3}", NULL, "u64[1]={2}" },
    { "f32[2,0,3] i64[1]={1}", NULL, "f32[2,1,3]={0,0,0,0,0,0}" },
    { "f32[2,0,3] i64[1]={0}", NULL, "f32[1,0,3]={}" },
    { "f32={3}", NULL, "f32={3}" },
    { "f32[2,3,4,5] i64[2]={1,3}", NULL },
    { "f32[2,3,4,5] !i64[2]={2,-4}", "keepdims=0" },
    { "f32[7,65] i64[1]={0}", NULL },
    { "f32[2,2] i64[1]={2}", NULL, .refused = TRUE, .code = HN_ERROR_ATTRIBUTE },
    { "f32[2,2]", "axes=[-3]", .opset = 11, .refused = TRUE, .code = HN_ERROR_ATTRIBUTE },
    { "f32[2,2] i64[1]={0}", NULL, .opset = 11, .refused = TRUE, .code = HN_ERROR_GRAPH },
    { "u8[2,2]", NULL, .refused = TRUE, .code = HN_ERROR_TYPE },
};
HN_CASES(reducesum, "ReduceSum", reducesum);

static const HnCase reducemean[] = {
    KNOWN(""),
    { "f32[3,20,4,33] i64[2]={1,3}", NULL }, /* axes apart, rows longer than vectors */
    { "f32[5,3,70] i64[2]={0,1}", "keepdims=0" },
    { DOC " i64[1]={1}", "keepdims=0", "f32[3,2]={12.5,1.5,35,1.5,57.5,1.5}" },
    { DOC, NULL, "f32[1,1,1]={18.25}" },
    { DOC, "axes=[1]", "f32[3,1,2]={12.5,1.5,35,1.5,57.5,1.5}", .opset = 17 },
    { "i32[4]={-1,-2,-2,-2}", "keepdims=0", "i32={-1}" }, /* towards zero */
    { "i64[3]={1,2,5}", "keepdims=0", "i64={2}" },
    { "f32[2,0] i64[1]={1}", NULL, "f32[2,1]={nan,nan}" },
    { "f32[5,3,7] i64[1]={-2}", NULL },
};
HN_CASES(reducemean, "ReduceMean", reducemean);

static const HnCase reduceprod[] = {
    KNOWN(""),
    { "f32[3,2,2]={1,2,3,4,5,6,7,8,9,10,11,12} i64[1]={1}", "keepdims=0", "f32[3,2]={3,8,35,48,99,120}" },
    { "f32[3,2,2]={1,2,3,4,5,6,7,8,9,10,11,12}", NULL, "f32[1,1,1]={479001600}" },
    { "i64[4]={2,3,4,5}", "axes=[0] keepdims=0", "i64={120}", .opset = 13 },
    { "f64[0,2] i64[1]={0}", "keepdims=0", "f64[2]={1,1}" },
    { "f32[2,3,4] i64[2]={0,2}", NULL },
};
HN_CASES(reduceprod, "ReduceProd", reduceprod);

static const HnCase reducemax[] = {
    KNOWN(""),
    { "f32[3,35,2] i64[1]={2}", "keepdims=0" },
    { "f32[2,3,35,2] i64[2]={3,1}", NULL },
    { "f32[3,20,4,33] i64[2]={1,3}", NULL }, /* axes apart, rows longer than vectors */
    { "f32[5,3,70] i64[2]={0,1}", "keepdims=0" },
    { DOC " i64[1]={1}", "keepdims=0", "f32[3,2]={20,2,40,2,60,2}" },
    { DOC " i64[1]={-2}", NULL, "f32[3,1,2]={20,2,40,2,60,2}" },
    { "bool[4,2]={true,true,true,false,false,true,false,false} i64[1]={1}", "keepdims=0",
      "bool[4]={true,true,true,false}" },
    { "i8[3]={-128,-5,-7}", NULL, "i8[1]={-5}", .opset = 12 },
    { "f32[3]={1,nan,2}", NULL, "f32[1]={nan}" },
    { "f32[2,0] i64[1]={1}", NULL, "f32[2,1]={-inf,-inf}" },
    { "i32[0] i64[1]={0}", "keepdims=0", "i32={-2147483648}" },
    { "u8[0] i64[1]={0}", NULL, "u8[1]={0}" },
    { "u64[2]={1,9223372036854775808}", NULL, "u64[1]={9223372036854775808}" },
    { "f32[4,5,6] i64[1]={1}", NULL },
};
HN_CASES(reducemax, "ReduceMax", reducemax);

static const HnCase reducemin[] = {
    KNOWN(""),
    { DOC " i64[1]={1}", "keepdims=0", "f32[3,2]={5,1,30,1,55,1}" },
    { DOC, "axes=[1]", "f32[3,1,2]={5,1,30,1,55,1}", .opset = 13 },
    { "bool[4,2]={true,true,true,false,false,true,false,false} i64[1]={1}", "keepdims=0",
      "bool[4]={true,false,false,false}" },
    { "f32[0,2] i64[1]={0}", NULL, "f32[1,2]={inf,inf}" },
    { "i8[0] i64[1]={0}", NULL, "i8[1]={127}" },
    { "f32[4,5,6] i64[1]={0}", NULL },
};
HN_CASES(reducemin, "ReduceMin", reducemin);

static const HnCase reducel1[] = {
    KNOWN(""),
    { "f32[3,35,2] i64[1]={2}", "keepdims=0" },
    { "f32[2,3,35,2] i64[2]={3,1}", NULL },
    { "f32[3,20,4,33] i64[2]={1,3}", NULL }, /* axes apart, rows longer than vectors */
    { "f32[5,3,70] i64[2]={0,1}", "keepdims=0" },
    { "f32[3,2,2]={1,2,3,4,5,6,7,8,9,10,11,12} i64[1]={2}", "keepdims=0", "f32[3,2]={3,7,11,15,19,23}" },
    { "i32[3]={-1,-2,3}", "axes=[0]", "i32[1]={6}", .opset = 11 },
    { "f32[2]={-1,2}", "noop_with_empty_axes=1", "f32[2]={1,2}" }, /* each element alone */
    { "f32[2,3,4] i64[1]={1}", NULL },
};
HN_CASES(reducel1, "ReduceL1", reducel1);

static const HnCase reducel2[] = {
    KNOWN(""),
    { "f32[3,35,2] i64[1]={2}", "keepdims=0" },
    { "f32[2,3,35,2] i64[2]={3,1}", NULL },
    { "f32[2,2]={3,4,-6,8} i64[1]={1}", "keepdims=0", "f32[2]={5,10}" },
    { "f32[2,2]={3,4,-6,8}", NULL, "f32[1,1]={11.180339887498949}", .opset = 1 },
    { "i64[3]={1,1,1}", NULL, "i64[1]={1}" },
    { "f32[0] i64[1]={0}", NULL, "f32[1]={0}" },
    { "f32[2,3,4] i64[1]={-3}", NULL },
};
HN_CASES(reducel2, "ReduceL2", reducel2);

static const HnCase reducesumsquare[] = {
    KNOWN(""),
    { "f32[3,35,2] i64[1]={2}", "keepdims=0" },
    { "f32[2,3,35,2] i64[2]={3,1}", NULL },
    { "f32[2,2]={1,2,3,-4} i64[1]={1}", "keepdims=0", "f32[2]={5,25}" },
    { "f32[2,2]={1,2,3,-4}", "axes=[0] keepdims=0", "f32[2]={10,20}", .opset = 11 },
    { "f32[2]={-3,2}", "noop_with_empty_axes=1", "f32[2]={9,4}" },
    { "u32[2]={65536,3}", NULL, "u32[1]={9}" },
    { "f32[2,3,4] i64[1]={2}", NULL },
};
HN_CASES(reducesumsquare, "ReduceSumSquare", reducesumsquare);

static const HnCase reducelogsum[] = {
    KNOWN("@1:2"),
    { "f32[2,2]={0.25,0.75,2,5.389056098930650} i64[1]={1}", "keepdims=0", "f32[2]={0,2}" },
    { "f32[2]={1,7.389056098930650}", "noop_with_empty_axes=1", "f32[2]={0,2}" },
    { "f32[0,2] i64[1]={0}", NULL, "f32[1,2]={-inf,-inf}" },
    { "i32[2]={4,4}", "axes=[0]", "i32[1]={2}", .opset = 13 }, /* log 8, cut */
    { "f32[2,3,4]@1:2 i64[1]={1}", NULL },
};
HN_CASES(reducelogsum, "ReduceLogSum", reducelogsum);

static const HnCase reducelogsumexp[] = {
    KNOWN(""),
    { "f32[3,35,2] i64[1]={2}", "keepdims=0" },
    { "f32[2,3,35,2] i64[2]={3,1}", NULL },
    { "f32[3,20,4,33] i64[2]={1,3}", NULL }, /* axes apart, rows longer than vectors */
    { "f32[5,3,70] i64[2]={0,1}", "keepdims=0" },
    { "f64[3,2,2]={5,1,20,2,30,1,40,2,55,1,60,2} i64[1]={1}", "keepdims=0",
      "f64[3,2]={20.00000030590227,2.313261687518223,40.00004539889922,2.313261687518223,60.00671534848912,"
      "2.313261687518223}" },
    { "f32[2]={1000,1000}", "axes=[0] keepdims=0", "f32={1000.6931471805599}", .opset = 11 }, /* no overflow */
    { "f32[2]={-inf,-inf}", NULL, "f32[1]={-inf}" },
    { "f32[2]={inf,1}", NULL, "f32[1]={inf}" },
    { "f32[0,2] i64[1]={0}", NULL, "f32[1,2]={-inf,-inf}" },
    { "f32[2]={-3,2}", "noop_with_empty_axes=1", "f32[2]={-3,2}" },
    { "f32[2,3,4] i64[2]={0,2}", NULL },
};
HN_CASES(reducelogsumexp, "ReduceLogSumExp", reducelogsumexp);
