#include "case.h"

/* log(1 + e^-1) = 0.31326168751822286; softmax of (0, 1): 0.2689414213699951, 0.7310585786300049 */
static const HnCase crossentropyloss[] = {
    { "f32[1,2]={0,1} i64[1]={1}", NULL, "f32={0.31326168751822286}" },
    { "f32[1,2]={0,1} i64[1]={0}", NULL, "f32={1.3132616875182228}" },
    { "f32[2,2]={0,1,1000,1001} i32[2]={1,0}", NULL, "f32={1.6265233750364456}" },
    { "f32[2]={0,1} i64={1}", "axis=0", "f32={0.31326168751822286}" },
    { "f32[3,2]={0,1,5,7,0,1} i64[3]={1,-100,0}", NULL, "f32={1.6265233750364456}" },
    { "f32[2,2]={0,1,5,7} i64[2]={1,1}", "ignore_index=1", "f32={0}" },
    { "f32[1,2]={0,1} i64[1]={1}", "smoothing=0.5", "f32={0.56326168751822286}" },
    { "f32[1,2]={0,1} i64[1]={0}", "smoothing=1.0", "f32={0.81326168751822286}" },
    { "f32[2,2,2]={0,1,1,0,1,1,2,0} i64[2,2]={1,0,0,1}", NULL, "f32={3.2530467500728915}", .rtol = 1e-5 },
    { "f32[1,1]={3} i64[1]={0}", NULL, "f32={0}" },
    { "f32[0,3] i64[0]", NULL, "f32={0}" },
    { "f32[2,0,3] i64[2,0]", "axis=2", "f32={0}" },
    { "f32[7,10] i64[7]@0:9", NULL, .rtol = 1e-5 },
    { "f32[5,130] i32[5]@0:129", "smoothing=0.1", .rtol = 1e-5 },
    { "f32[3,1101] i64[3]={0,1100,512}", NULL, .rtol = 1e-5 },
    { "f32[300,17] i64[300]@-1:16", "ignore_index=-1", .rtol = 1e-5 },
    { "f32[2,5,3,70] i64[2,3,70]@0:4", "smoothing=0.1", .rtol = 1e-5 },
    { "f32[3,4,6] i64[3,4]@0:5", "axis=-1 ignore_index=2", .rtol = 1e-5 },
    { "f32[3,3]={0,-inf,0,90,-90,0,1,-200,3} i64[3]={0,0,2}", NULL, "f32={0.8200751916}", .rtol = 1e-5 },
    { "f32[2,1,5] i64[2,5]@0:0", NULL, "f32={0}" },
    { "f32[40,3,33] i64[40,33]@0:2", NULL, .rtol = 1e-5 },
    { "f32[2,2] i64[2]={1,2}", NULL, .refused = TRUE, .code = HN_ERROR_VALUE },
    { "f32[2,2] i32[2]={-1,1}", NULL, .refused = TRUE, .code = HN_ERROR_VALUE },
    { "f32[2,2,2] i32[2,2]={0,1,1,-3}", NULL, .refused = TRUE, .code = HN_ERROR_VALUE },
    { "f32[2,2] i64[3]={0,1,1}", NULL, .refused = TRUE, .code = HN_ERROR_SHAPE },
    { "f32[2,2] i64[2,1]={0,1}", NULL, .refused = TRUE, .code = HN_ERROR_SHAPE },
    { "f32[2] i64[2]={0,1}", NULL, .refused = TRUE, .code = HN_ERROR_ATTRIBUTE },
    { "f32[2,2] i64[2]={0,1}", "smoothing=1.5", .refused = TRUE, .code = HN_ERROR_ATTRIBUTE },
};
HN_CASES(crossentropyloss, "CrossEntropyLoss", crossentropyloss);

static const HnCase crossentropylossgrad[] = {
    { "f32[1,2]={0,1} i64[1]={1} f32={2}", NULL, "f32[1,2]={0.5378828427399902,-0.5378828427399902}" },
    { "f32[2,2]={0,1,3,4} i64[2]={-100,0} f32={1}", NULL, "f32[2,2]={0,0,-0.7310585786300049,0.7310585786300049}" },
    { "f32[1,2]={0,1} i64[1]={0} f32={1}", "smoothing=0.5", "f32[1,2]={-0.4810585786300049,0.4810585786300049}" },
    { "f32[1,2,2]={0,5,1,5} i32[1,2]={1,0} f32={1}", NULL,
      "f32[1,2,2]={0.2689414213699951,-0.5,-0.2689414213699951,0.5}" },
    { "f32[0,3] i64[0] f32", NULL, "f32[0,3]={}" },
    { "f32[7,10] i64[7]@0:9 f32={0.125}", NULL },
    { "f32[5,130] i32[5]@0:129 f32={3}", "smoothing=0.1" },
    { "f32[3,1101] i64[3]={0,1100,512} f32={1}", NULL },
    { "f32[300,17] i64[300]@-1:16 f32={1}", "ignore_index=-1" },
    { "f32[2,5,3,70] i64[2,3,70]@0:4 f32={1}", "smoothing=0.1" },
    { "f32[3,4,6] i64[3,4]@0:5 f32={1}", "axis=-1 ignore_index=2" },
    { "f32[2,2] i64[2]={1,2} f32={1}", NULL, .refused = TRUE, .code = HN_ERROR_VALUE },
    { "f32[2,2] i64[3]={0,1,1} f32={1}", NULL, .refused = TRUE, .code = HN_ERROR_SHAPE },
    { "f32[2,2] i64[2]={0,1} f32[2]", NULL, .refused = TRUE, .code = HN_ERROR_SHAPE },
};
HN_CASES(crossentropylossgrad, "CrossEntropyLossGrad", crossentropylossgrad);

/* KL((p, 1 - p) || (1/2, 1/2)), p = 0.7310585786300049: log 2 - 0.5822031088853 */
static const HnCase klloss[] = {
    { "f32[1,2]={3,3} f32[1,2]={0,1}", NULL, "f32={0.11094407167}", .rtol = 1e-5, .atol = 1e-6 },
    { "f32[1,2]={3,3} f32[1,2]={0,2}", "temperature=2.0", "f32={0.44377628669}", .rtol = 1e-5, .atol = 1e-6 },
    { "f32[2,1,2]={3,3,0,1} f32[2,1,2]={0,1,1,2}", NULL, "f32={0.11094407167}", .rtol = 1e-5, .atol = 1e-6 },
    { "f32[1,4]={3,5,3,5} f32[1,4]={-20,20,-20,20}", "standardize=1", "f32={0}", .atol = 1e-6 },
    { "f32[2,2]={3,0,3,1} f32[2,2]={0,1,1,2}", "axis=0", "f32={0.11094407167}", .rtol = 1e-5, .atol = 1e-6 },
    { "f32[1,2]={0,0} f32[1,2]={0,-inf}", NULL, "f32={0.6931471805599453}" },
    { "f32[0,2] f32[0,2]", NULL, "f32={0}" },
    { "f32[9,10] f32[9,10]", "temperature=4.0", .rtol = 1e-4, .atol = 1e-5 },
    { "f32[9,10] f32[9,10]", "temperature=2.0 standardize=1", .rtol = 1e-4, .atol = 1e-5 },
    { "f32[2,6,5,13] f32[2,6,5,13]", "axis=1 standardize=1", .rtol = 1e-4, .atol = 1e-5 },
    { "f32[3,200] f32[3,200]", NULL, .rtol = 1e-4, .atol = 1e-5 },
    { "f32[2,3] f32[3,2]", NULL, .refused = TRUE, .code = HN_ERROR_SHAPE },
    { "f32[2,3] f32[2,3]", "axis=2", .refused = TRUE, .code = HN_ERROR_ATTRIBUTE },
    { "f32[2,3] f32[2,3]", "temperature=0.0", .refused = TRUE, .code = HN_ERROR_ATTRIBUTE },
};
HN_CASES(klloss, "KlLoss", klloss);

static const HnCase kllossgrad[] = {
    { "f32[1,2]={3,3} f32[1,2]={0,1} f32={1}", NULL, "f32[1,2]={0.2310585786300049,-0.2310585786300049}" },
    { "f32[1,2]={3,3} f32[1,2]={0,2} f32={1}", "temperature=2.0", "f32[1,2]={0.4621171572600098,-0.4621171572600098}" },
    { "f32[0,2] f32[0,2] f32", NULL, "f32[0,2]={}" },
    { "f32[9,10] f32[9,10] f32={0.5}", "temperature=4.0" },
    { "f32[9,10] f32[9,10] f32={1}", "temperature=2.0 standardize=1", .rtol = 1e-4, .atol = 1e-5 },
    { "f32[2,6,5,13] f32[2,6,5,13] f32={1}", "axis=1 standardize=1", .rtol = 1e-4, .atol = 1e-5 },
    { "f32[3,200] f32[3,200] f32={2}", NULL },
    { "f32[90,70]@1000:1001 f32[90,70]@-1001:-1000 f32={1}", "standardize=1", .rtol = 1e-4, .atol = 1e-5 },
    { "f32[2,3] f32[3,2] f32={1}", NULL, .refused = TRUE, .code = HN_ERROR_SHAPE },
    { "f32[2,3] f32[2,3] f32[2]", NULL, .refused = TRUE, .code = HN_ERROR_SHAPE },
};
HN_CASES(kllossgrad, "KlLossGrad", kllossgrad);

static const HnCase cosineloss[] = {
    { "f32[3,2]={1,0,0,3,2,0} f32[3,2]={5,0,2,0,-7,0}", NULL, "f32={3}" },
    { "f32[2]={3,4} f32[2]={4,3}", NULL, "f32={0.04}", .rtol = 1e-5, .atol = 1e-6 },
    { "f32[2,2]={3,1,4,0} f32[2,2]={4,1,3,0}", "axis=0", "f32={0.04}", .rtol = 1e-5, .atol = 1e-6 },
    { "f32[1,2]={0,0} f32[1,2]={4,3}", NULL, "f32={1}" },
    { "f32[0,2] f32[0,2]", NULL, "f32={0}" },
    { "f32[5,40] f32[5,40]", NULL, .rtol = 1e-4, .atol = 1e-5 },
    { "f32[2,7,33] f32[2,7,33]", "axis=1", .rtol = 1e-4, .atol = 1e-5 },
    { "f32[2,3] f32[2,4]", NULL, .refused = TRUE, .code = HN_ERROR_SHAPE },
    { "f32[2,3] f32[2,3]", "axis=-3", .refused = TRUE, .code = HN_ERROR_ATTRIBUTE },
};
HN_CASES(cosineloss, "CosineLoss", cosineloss);

static const HnCase cosinelossgrad[] = {
    { "f32[1,2]={2,0} f32[1,2]={0,4} f32={3}", NULL, "f32[1,2]={0,-1.5}" },
    { "f32[1,2]={0,0} f32[1,2]={0,2} f32={1e-8}", NULL, "f32[1,2]={0,-1}" },
    { "f32[0,2] f32[0,2] f32", NULL, "f32[0,2]={}" },
    { "f32[5,40] f32[5,40] f32={1}", NULL },
    { "f32[2,7,33] f32[2,7,33] f32={1}", "axis=1", .rtol = 1e-4, .atol = 1e-5 },
    { "f32[2,3] f32[2,4] f32={1}", NULL, .refused = TRUE, .code = HN_ERROR_SHAPE },
    { "f32[2,3] f32[2,3] f32[2]", NULL, .refused = TRUE, .code = HN_ERROR_SHAPE },
};
HN_CASES(cosinelossgrad, "CosineLossGrad", cosinelossgrad);
