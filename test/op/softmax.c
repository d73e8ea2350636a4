#include "case.h"

static const HnCase softmax[] = {
    { "f32[1,3]={0,0.6931471805599453,1.0986122886681098}", NULL, "f32[1,3]={0.16666667,0.33333334,0.5}" },
    { "f32[2,2]={1000,1000,-1000,-1000}", NULL, "f32[2,2]={0.5,0.5,0.5,0.5}" }, /* no overflow, no zero sum */
    { "f32[2,3,5,7]", "axis=1" },
    { "f32[2,3,4]", "axis=1", .opset = 11 },
    { "f32[1,2,2]={0,0,0,0}", NULL, "f32[1,2,2]={0.25,0.25,0.25,0.25}", .opset = 11 }, /* flattened: rows of four */
    { "f32[4,0,8]", "axis=2" },
    { "f32[3,17]", "axis=9", .refused = TRUE, .code = HN_ERROR_ATTRIBUTE },
    { "i32[3]", NULL, .refused = TRUE, .code = HN_ERROR_TYPE },
    { "f32[2,5,130]", "axis=1" }, /* more columns than are taken at a time */
    { "f32[3,77]@-90:90", NULL },
    { "f32[7,196]@-40:40", NULL, .rtol = 8e-6, .atol = 1e-38 }, /* of 80 below the largest, 24 bits */
    { "f32[1,20]={0,0,0,0,-inf,0,0,0,0,-200,0,0,0,0,-inf,0,0,0,0,-inf}", NULL,
      "f32[1,20]={0.0625,0.0625,0.0625,0.0625,0,0.0625,0.0625,0.0625,0.0625,0,0.0625,0.0625,0.0625,0.0625,0,0.0625,"
      "0.0625,0.0625,0.0625,0}" },
    { "f32[1,17]={0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,nan}", NULL,
      "f32[1,17]={nan,nan,nan,nan,nan,nan,nan,nan,nan,nan,nan,nan,nan,nan,nan,nan,nan}" },
    /* rows that threads of a warp hold, those of a block, and longer ones */
    { "f32[520,130]@-90:90", NULL },
    { "f32[515,258]", NULL },
    { "f32[513,777]", NULL },
    { "f32[3,600]", NULL },
    { "f32[2,1101]", NULL },
    { "f32[2,2048]@-90:90", NULL },
    { "f32[1,5000]", NULL },
    { "f32[2,9001]@-90:90", NULL },
    /* short rows, many at a time */
    { "f32[131,2]", NULL },
    { "f32[2,65,3]@-90:90", "axis=2" },
    { "f32[64,4]", NULL },
    { "f32[5,16]@-20:20", NULL },
    { "f32[4,2]={0,-inf,1,1,1000,-1000,nan,0}", NULL, "f32[4,2]={1,0,0.5,0.5,1,0,nan,nan}" },
    { "f32[4]={0,-inf,1,-inf}", NULL, "f32[4]={0.26894142,0,0.73105858,0}" },
    { "f64[7,203]@-90:90", NULL, .rtol = 1e-13, .atol = 1e-300 },
    { "f64[3,71,5]", "axis=1", .rtol = 1e-13 },
    { "f64[2,3,130]@-800:800", "axis=1", .rtol = 1e-12, .atol = 1e-300 },
    { "f64[3,2]={0,-inf,1000,-1000,nan,0}", NULL, "f64[3,2]={1,0,1,0,nan,nan}" },
};
HN_CASES(softmax, "Softmax", softmax);

static const HnCase logsoftmax[] = {
    { "f64[2]={0,0}", NULL, "f64[2]={-0.6931471805599453,-0.6931471805599453}" },
    { "f64[5,77]@-30:30", NULL, .rtol = 1e-13 },
    { "f64[2,40,70]@-30:30", "axis=1", .rtol = 1e-12 },
    { "f32[3,1000]", "axis=-1" },
    { "f32[2,8200]", "axis=-1" },
    { "f32[514,260]", "axis=-1" },
    { "f32[200,2]", "axis=1", .rtol = 1e-5, .atol = 1e-5 },
    { "f32[2,5,67]", "axis=1", .rtol = 1e-5, .atol = 1e-5 },
};
HN_CASES(logsoftmax, "LogSoftmax", logsoftmax);

static const HnCase hardmax[] = {
    { "f32[2,3]={1,3,3,-1,-2,-3}", NULL, "f32[2,3]={0,1,0,1,0,0}" }, /* the first of equals */
};
HN_CASES(hardmax, "Hardmax", hardmax);
