#include "case.h"

static const HnCase hann[] = {
    { "!i64={4}", NULL, "f32[4]={0,0.5,1,0.5}" },
    { "!i32={5}", "periodic=0", "f32[5]={0,0.5,1,0.5,0}" },
    { "i64={3}", "output_datatype=11", "f64[3]={0,0.75,0.75}" },
    { "i64={4}", "output_datatype=7", "i64[4]={0,0,1,0}" },
    { "i64={1}", "periodic=0", "f32[1]={1}" },
    { "i64={1}", NULL, "f32[1]={0}" },
    { "i64={0}", NULL, "f32[0]={}" },
    { "i64[1]={2}", NULL, "f32[2]={0,1}" },
    { "i64={-1}", NULL, .refused = TRUE, .code = HN_ERROR_VALUE },
    { "!i64={-1}", NULL, .refused = TRUE, .code = HN_ERROR_VALUE },
    { "i64[2]={1,2}", NULL, .refused = TRUE, .code = HN_ERROR_SHAPE },
    { "i64={4}", "output_datatype=9", .refused = TRUE, .code = HN_ERROR_ATTRIBUTE },
};
HN_CASES(hannwindow, "HannWindow", hann);

static const HnCase hamming[] = {
    { "!i64={4}", NULL, "f32[4]={0.08695652,0.54347826,1,0.54347826}" },
    { "i64={3}", "periodic=0", "f32[3]={0.08695652,1,0.08695652}" },
};
HN_CASES(hammingwindow, "HammingWindow", hamming);

static const HnCase blackman[] = {
    { "!i64={4}", NULL, "f32[4]={0,0.34,1,0.34}" },
    { "i64={3}", "periodic=0", "f32[3]={0,1,0}" },
};
HN_CASES(blackmanwindow, "BlackmanWindow", blackman);

static const HnCase mel[] = {
    /* edges at bins 0, 0, 1 and 2 of 0 to 4; then 0, 1, 3 and 6 of 0 to 12 */
    { "i64={2} i64={24} i64={8000} f64={0} f64={4000}", NULL,
      "f32[13,2]={0,0,1,0,0.5,0.5,0,1,0,0.6666667,0,0.3333333,0,0,0,0,0,0,0,0,0,0,0,0,0,0}" },
    { "!i64={2} !i64={8} !i64={8000} f32={0} f32={4000}", NULL, "f32[5,2]={1,0,0,1,0,0,0,0,0,0}" },
    { "i64={0} i64={4} i64={8000} f32={0} f32={4000}", NULL, "f32[3,0]={}" },
    { "i64={2} i64={8} i64={8000} f32={0} f32={90000}", NULL, .refused = TRUE, .code = HN_ERROR_VALUE },
    { "i64={2} i64={8} i64={8000} f32={3000} f32={1000}", NULL, .refused = TRUE, .code = HN_ERROR_VALUE },
    { "i64={2} i64={8} i64={0} f32={0} f32={1000}", NULL, .refused = TRUE, .code = HN_ERROR_VALUE },
    { "i64={2} i64={0} i64={8000} f32={0} f32={1000}", NULL, .refused = TRUE, .code = HN_ERROR_VALUE },
    { "i64={-1} i64={8} i64={8000} f32={0} f32={1000}", NULL, .refused = TRUE, .code = HN_ERROR_VALUE },
    { "i64={2} i64={8} i64={8000} f32[2]={0,0} f32={1000}", NULL, .refused = TRUE, .code = HN_ERROR_SHAPE },
};
HN_CASES(melweightmatrix, "MelWeightMatrix", mel);
