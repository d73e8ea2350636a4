#include "case.h"

#define HYPER "f32[4]={0.1,2,4,0.5}" /* rate, 1 / (1 - beta1^t), 1 / (1 - beta2^t), scale of the gradient */

#define HYPER_NAN "f32[4]={0.1,2,4,nan}" /* a step that is skipped */
#define HYPER_INF "f32[4]={0.1,2,4,-inf}"

/* By hand: g = 1; m = 0.25 and v = 0.0625 are new; 0.25 * 2 / sqrt(0.0625 * 4) = 1 */
static const HnCase adamw[] = {
    { "f32[1]={1} f32[1]={-0.5} f32[1]={0} f32[1]={2} " HYPER, "beta1=0.5 beta2=0.9375 epsilon=0.0 weight_decay=0.5",
      "f32[1]={0.85} f32[1]={0.25} f32[1]={0.0625}", .rtol = 1e-6 },
    { "f32[1]={1} f32[1]={-0.5} f32[1]={0} f32[1]={2} " HYPER, "beta1=0.5 beta2=0.9375 epsilon=0.5 weight_decay=0.0",
      "f32[1]={0.95} f32[1]={0.25} f32[1]={0.0625}", .rtol = 1e-6 },
    { "f32[2]={1,1} f32[2]={0,0} f32[2]={0,0} f32[2]={0,-2} f32[4]={0.1,10,1000,1}", NULL,
      "f32[2]={0.999,1.099} f32[2]={0,-0.2} f32[2]={0,0.004}", .rtol = 1e-5 },
    { "f32[3,5,7] f32[3,5,7] f32[3,5,7]@0.1:1 f32[3,5,7] " HYPER, NULL, .n_out = 3 },
    { "f32[300,1001] f32[300,1001] f32[300,1001]@0.1:1 f32[300,1001] " HYPER, "weight_decay=0.1", .n_out = 3 },
    { "f32[2]={1,-2} f32[2]={0.5,nan} f32[2]={3,4} f32[2]={nan,1} " HYPER_NAN, NULL,
      "f32[2]={1,-2} f32[2]={0.5,nan} f32[2]={3,4}" },
    { "f32[2]={1,-2} f32[2]={0.5,1} f32[2]={3,4} f32[2]={0,1} " HYPER_INF, NULL,
      "f32[2]={1,-2} f32[2]={0.5,1} f32[2]={3,4}" },
    { "f32[0] f32[0] f32[0] f32[0] " HYPER, NULL, "f32[0]={} f32[0]={} f32[0]={}" },
    { "f32[2] f32[2] f32[3] f32[2] " HYPER, NULL, .n_out = 3, .refused = TRUE, .code = HN_ERROR_SHAPE },
    { "f32[2] f32[2] f32[2] f32[2] f32[3]", NULL, .n_out = 3, .refused = TRUE, .code = HN_ERROR_SHAPE },
    { "f32[2] f32[2] f32[2] f32[2] f32[4]", "beta2=1.0", .n_out = 3, .refused = TRUE, .code = HN_ERROR_ATTRIBUTE },
    { "f32[2] f32[2] f32[2] f32[2] f32[4]", "epsilon=-1.0", .n_out = 3, .refused = TRUE, .code = HN_ERROR_ATTRIBUTE },
};
HN_CASES(adamw, "AdamW", adamw);

static const HnCase sgd[] = {
    { "f32[2]={1,2} - f32[2]={2,-4} " HYPER, NULL, "f32[2]={0.9,2.2}" },
    { "f32[2]={1,2} - f32[2]={2,-4} " HYPER, "weight_decay=0.5", "f32[2]={0.85,2.1}" },
    { "f32[2]={1,2} f32[2]={1,-1} f32[2]={2,-4} " HYPER, "momentum=0.5", "f32[2]={0.85,2.25} f32[2]={1.5,-2.5}" },
    { "f32[2]={1,2} f32[2]={1,-1} f32[2]={2,-4} " HYPER, "momentum=0.5 nesterov=1",
      "f32[2]={0.825,2.325} f32[2]={1.5,-2.5}" },
    { "f32[3,5,7] f32[3,5,7] f32[3,5,7] " HYPER, "momentum=0.9 weight_decay=0.01 nesterov=1", .n_out = 2 },
    { "f32[300,1001] f32[300,1001] f32[300,1001] " HYPER, "momentum=0.9", .n_out = 2 },
    { "f32[300,1001] - f32[300,1001] " HYPER, "weight_decay=0.1" },
    { "f32[2]={1,2} f32[2]={1,-1} f32[2]={2,-4} " HYPER_NAN, "momentum=0.5 weight_decay=0.5",
      "f32[2]={1,2} f32[2]={1,-1}" },
    { "f32[2]={1,2} - f32[2]={inf,-4} " HYPER_INF, NULL, "f32[2]={1,2}" },
    { "f32[0] f32[0] f32[0] " HYPER, NULL, "f32[0]={} f32[0]={}" },
    { "f32[2] - f32[2] " HYPER, "momentum=0.5", .refused = TRUE, .code = HN_ERROR_ATTRIBUTE },
    { "f32[2] - f32[3] " HYPER, NULL, .refused = TRUE, .code = HN_ERROR_SHAPE },
};
HN_CASES(sgd, "Sgd", sgd);

static const HnCase lion[] = {
    { "f32[3]={1,2,3} f32[3]={1,-1,0} f32[3]={2,-8,0} " HYPER, "beta1=0.5 beta2=0.75",
      "f32[3]={0.9,2.1,3} f32[3]={1,-1.75,0}" },
    { "f32[2]={1,2} f32[2]={1,-1} f32[2]={-4,4} " HYPER, "beta1=0.5 beta2=0.75 weight_decay=0.5",
      "f32[2]={1.05,1.8} f32[2]={0.25,-0.25}" },
    { "f32[3,5,7] f32[3,5,7] f32[3,5,7] " HYPER, NULL, .n_out = 2 },
    { "f32[300,1001] f32[300,1001] f32[300,1001] " HYPER, "weight_decay=0.1", .n_out = 2 },
    { "f32[2]={1,2} f32[2]={1,-1} f32[2]={-4,4} " HYPER_NAN, "weight_decay=0.5", "f32[2]={1,2} f32[2]={1,-1}" },
    { "f32[0] f32[0] f32[0] " HYPER, NULL, "f32[0]={} f32[0]={}" },
    { "f32[2] f32[3] f32[2] " HYPER, NULL, .n_out = 2, .refused = TRUE, .code = HN_ERROR_SHAPE },
};
HN_CASES(lion, "Lion", lion);

#define TEN(of) of of of of of of of of of of

static const HnCase clipbynorm[] = {
    { HYPER TEN(TEN(" f32[3]")) TEN(TEN(" f32[2,5]")), "limit=1.0", .n_out = 2 },
    { HYPER " f32[2]={6,0} f32={8}", "limit=2.5", "f32[4]={0.1,2,4,0.25} f32={5}", .rtol = 1e-6 },
    { HYPER " f32[2]={6,0} f32={8}", "limit=6.0", "f32[4]={0.1,2,4,0.5} f32={5}" },
    { HYPER " f32[2]={6,0} f32={8}", NULL, "f32[4]={0.1,2,4,0.5} f32={5}" },
    { HYPER " f32[0]={} f32[2]={0,0}", "limit=1.0", "f32[4]={0.1,2,4,0.5} f32={0}" },
    { HYPER " f32[2]={inf,0} f32={8}", "limit=1.0", "f32[4]={0.1,2,4,nan} f32={inf}" },
    { HYPER " f32[2]={nan,0} f32={8}", "limit=1.0", "f32[4]={0.1,2,4,nan} f32={nan}" },
    { HYPER " f32[2]={inf,0}", NULL, "f32[4]={0.1,2,4,nan} f32={inf}" },
    { HYPER " f32[300,1001] f32[17] f32[3,33]", "limit=1.0", .n_out = 2 },
    { HYPER " f32[1]={3e38}", "limit=1.0", "f32[4]={0.1,2,4,3.3333333e-39} f32={1.5e38}", .rtol = 1e-6 },
    { "f32[3] f32[2]={6,0}", "limit=1.0", .n_out = 2, .refused = TRUE, .code = HN_ERROR_SHAPE },
    { HYPER " f32[2]={6,0}", "limit=0.0", .n_out = 2, .refused = TRUE, .code = HN_ERROR_ATTRIBUTE },
};
HN_CASES(clipbynorm, "ClipByNorm", clipbynorm);

static const HnCase movingaverage[] = {
    { "f32[2]={1,2} f32[2]={5,-2}", "decay=0.75", "f32[2]={2,1}" },
    { "f32[2]={1,2} f32[2]={5,-2} " HYPER, "decay=0.75", "f32[2]={2,1}" },
    { "f32[2]={1,nan} f32[2]={5,-2} " HYPER_NAN, "decay=0.75", "f32[2]={1,nan}" },
    { "f32[2]={1,2} f32[2]={5,-2} " HYPER_INF, "decay=0.75", "f32[2]={1,2}" },
    { "f32[2] f32[2] f32[3]", NULL, .refused = TRUE, .code = HN_ERROR_SHAPE },
    { "f32[3,5,7] f32[3,5,7]", NULL },
    { "f32[300,1001] f32[300,1001]", "decay=0.9" },
    { "f32[0] f32[0]", NULL, "f32[0]={}" },
    { "f32[2] f32[1]", NULL, .refused = TRUE, .code = HN_ERROR_SHAPE },
    { "f32[2] f32[2]", "decay=1.0", .refused = TRUE, .code = HN_ERROR_ATTRIBUTE },
};
HN_CASES(movingaverage, "MovingAverage", movingaverage);
