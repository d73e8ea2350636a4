#include "case.h"

static const HnCase mseloss[] = {
    { "f32[3]={1,2,3} f32[3]={1,0,6}", NULL, "f32={13}" },
    { "f32={1} f32={3}", NULL, "f32={4}" },
    { "f32[0,2] f32[0,2]", NULL, "f32={0}" },
    { "f32[33,70] f32[33,70]", NULL },
    { "f32[3,100000] f32[3,100000]", NULL },
    { "f32[3] f32[1]", NULL, .refused = TRUE, .code = HN_ERROR_SHAPE },
};
HN_CASES(mseloss, "MseLoss", mseloss);

static const HnCase l1loss[] = {
    { "f32[3]={1,2,3} f32[3]={1,0,6}", NULL, "f32={5}" },
    { "f32[0,2] f32[0,2]", NULL, "f32={0}" },
    { "f32[33,70] f32[33,70]", NULL },
    { "f32[3,100000] f32[3,100000]", NULL },
    { "f32[3] f32[3,1]", NULL, .refused = TRUE, .code = HN_ERROR_SHAPE },
};
HN_CASES(l1loss, "L1Loss", l1loss);

static const HnCase binarycrossentropyloss[] = {
    { "f32[2]={0,1} f32[2]={0,1}", NULL, "f32={1.0064088680781682}" },
    { "f32[2]={1000,-1000} f32[2]={0,1}", NULL, "f32={2000}" },
    { "f32[2]={1000,-1000} f32[2]={1,0}", NULL, "f32={0}" },
    { "f32[2]={0.5,0.25} f32[2]={1,0}", "probabilities=1", "f32={0.9808292530117262}" },
    { "f32[4]={0,1,1,0} f32[4]={1,0,1,0}", "probabilities=1", "f32={200}" },
    { "f32[0,2] f32[0,2]", NULL, "f32={0}" },
    { "f32[5,37]@-4:4 f32[5,37]@0:1", NULL, .rtol = 1e-5 },
    { "f32[5,37]@0.01:0.99 f32[5,37]@0:1", "probabilities=1", .rtol = 1e-5 },
    { "f32[3,50000]@-4:4 f32[3,50000]@0:1", NULL, .rtol = 1e-5 },
    { "f32[3] f32[1]", NULL, .refused = TRUE, .code = HN_ERROR_SHAPE },
};
HN_CASES(binarycrossentropyloss, "BinaryCrossEntropyLoss", binarycrossentropyloss);

static const HnCase binarycrossentropylossgrad[] = {
    { "f32[3]={0,1000,-1000} f32[3]={0,1,1} f32={2}", NULL, "f32[3]={1,0,-2}" },
    { "f32[3]={0.5,1,0} f32[3]={1,0,0} f32={1}", "probabilities=1", "f32[3]={-2,1e12,1}" },
    { "f32[0,2] f32[0,2] f32", NULL, "f32[0,2]={}" },
    { "f32[5,37]@-4:4 f32[5,37]@0:1 f32={1}", NULL },
    { "f32[5,37]@0.01:0.99 f32[5,37]@0:1 f32={1}", "probabilities=1" },
    { "f32[3,50000]@-4:4 f32[3,50000]@0:1 f32={1}", NULL },
    { "f32[3] f32[1] f32={1}", NULL, .refused = TRUE, .code = HN_ERROR_SHAPE },
    { "f32[3] f32[3] f32[3]", NULL, .refused = TRUE, .code = HN_ERROR_SHAPE },
};
HN_CASES(binarycrossentropylossgrad, "BinaryCrossEntropyLossGrad", binarycrossentropylossgrad);
