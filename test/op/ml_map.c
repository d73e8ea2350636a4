#include "case.h"

static const HnCase zipmap[] = {
    { "f32[2,2]={0.25,0.75,1,0}", "classlabels_int64s=[7,9]",
      "seq{map{i64[2]={7,9} f32[2]={0.25,0.75}} map{i64[2]={7,9} f32[2]={1,0}}}" },
    { "f32[2]={0.25,0.75}", "classlabels_strings=['a','b']", "seq{map{string[2]={'a','b'} f32[2]={0.25,0.75}}}" },
    { "f32[0,2]={}", "classlabels_int64s=[7,9]", "seq{}" },
    { "f32[2,3]", "classlabels_int64s=[7,9]", .refused = TRUE, .code = HN_ERROR_SHAPE },
    { "f32[2,2]", NULL, .refused = TRUE, .code = HN_ERROR_ATTRIBUTE },
    { "f32[2,2]", "classlabels_int64s=[7,9] classlabels_strings=['a','b']", .refused = TRUE,
      .code = HN_ERROR_ATTRIBUTE },
};
HN_CASES(zipmap, "ZipMap", zipmap);

static const HnCase dictvectorizer[] = {
    { "map{string[2]={'a','c'} f32[2]={4,8}}", "string_vocabulary=['a','b','c','z']", "f32[1,4]={4,0,8,0}" },
    { "map{i64[2]={3,1} string[2]={'x','y'}}", "int64_vocabulary=[1,2,3]", "string[1,3]={'y','','x'}" },
    { "map{i64[2]={3,1} i64[2]={30,10}}", "int64_vocabulary=[1,1]", "i64[1,2]={10,10}" },
    { "map{i64[2]={3,1} f32[2]}", "string_vocabulary=['a']", .refused = TRUE, .code = HN_ERROR_TYPE },
    { "f32[2]", "string_vocabulary=['a']", .refused = TRUE, .code = HN_ERROR_TYPE },
    { "map{i64[2]={3,1} f32[2]}", NULL, .refused = TRUE, .code = HN_ERROR_ATTRIBUTE },
};
HN_CASES(dictvectorizer, "DictVectorizer", dictvectorizer);

static const HnCase castmap[] = {
    { "map{i64[3]={5,0,2} f32[3]={1.5,2.5,3.5}}", NULL, "f32[1,3]={2.5,3.5,1.5}" },
    { "map{i64[2]={5,2} f32[2]={1.5,-3.5}}", "cast_to='TO_INT64' map_form='SPARSE' max_map=4", "i64[1,4]={0,0,-3,0}" },
    { "map{i64[2]={0,1} string[2]={'2.5','7'}}", NULL, "f32[1,2]={2.5,7}" },
    { "map{i64[1]={1} f32[1]={2.5}}", "cast_to='TO_STRING' map_form='SPARSE' max_map=2",
      "string[1,2]={'0.f','2.500000'}" },
    { "map{i64[1]={0} string[1]={'x'}}", NULL, .refused = TRUE, .code = HN_ERROR_VALUE },
    { "map{i64[1]={-1} f32[1]}", "map_form='SPARSE' max_map=2", .refused = TRUE, .code = HN_ERROR_VALUE },
    { "map{i64[1]={1} f32[1]}", "map_form='SPARSE' max_map=0", .refused = TRUE, .code = HN_ERROR_ATTRIBUTE },
    { "map{string[1]={'a'} f32[1]}", NULL, .refused = TRUE, .code = HN_ERROR_TYPE },
};
HN_CASES(castmap, "CastMap", castmap);
