#include "case.h"

static const HnCase arrayfeatureextractor[] = {
    { "string[2,2]={'a','b','c','d'} i64[1]={1}", NULL, "string[2,1]={'b','d'}" },
    { "f32[2,3]={1,2,3,4,5,6} i64[2]={2,0}", NULL, "f32[2,2]={3,1,6,4}" },
    { "i64[3]={1,2,3} i64[2]={2,2}", NULL, "i64[1,2]={3,3}" },
    { "f64[1,2,2]={1,2,3,4} i64[1,1]={1}", NULL, "f64[1,2,1]={2,4}" },
    { "f32[2,3] i64[1]={3}", NULL, .refused = TRUE, .code = HN_ERROR_VALUE },
    { "f32[2,3] i64[1]={-1}", NULL, .refused = TRUE, .code = HN_ERROR_VALUE },
    { "f32 i64[1]={0}", NULL, .refused = TRUE, .code = HN_ERROR_SHAPE },
};
HN_CASES(arrayfeatureextractor, "ArrayFeatureExtractor", arrayfeatureextractor);

static const HnCase featurevectorizer[] = {
    { "f32[2,2]={1,2,3,4} i64[2,1]={5,6}", "inputdimensions=[2,1]", "f32[2,3]={1,2,5,3,4,6}" },
    { "f32[2,2]={1,2,3,4} f32[2,1]={5,6}", "inputdimensions=[1,2]", "f32[2,3]={1,5,0,3,6,0}" },
    { "f64[2]={1,2}", "inputdimensions=[2]", "f32[1,2]={1,2}" },
    { "f32[2,2] f32[3,2]", "inputdimensions=[2,2]", .refused = TRUE, .code = HN_ERROR_SHAPE },
    { "f32[2,2] f32[2,2]", "inputdimensions=[2]", .refused = TRUE, .code = HN_ERROR_ATTRIBUTE },
    { "f32[2,2]", "inputdimensions=[-2]", .refused = TRUE, .code = HN_ERROR_ATTRIBUTE },
};
HN_CASES(featurevectorizer, "FeatureVectorizer", featurevectorizer);
