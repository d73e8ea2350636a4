#include "case.h"

static const HnCase concat[] = {
    { "string[2]={'a','b'} string[2]={'1',''}", NULL, "string[2]={'a1','b'}" },
    { "string[2,1]={'a','b'} string[3]={'x','y','z'}", NULL, "string[2,3]={'ax','ay','az','bx','by','bz'}" },
    { "string={'a'} string={'b'}", NULL, "string={'ab'}" },
    { "string[0]={} string={'b'}", NULL, "string[0]={}" },
    { "string[2]={'a','b'} string[3]={'a','b','c'}", NULL, .refused = TRUE, .code = HN_ERROR_SHAPE },
    { "string[1]={'a'} f32[1]={1}", NULL, .refused = TRUE, .code = HN_ERROR_TYPE },
    { "f32[1] f32[1]", NULL, .refused = TRUE, .code = HN_ERROR_TYPE },
};
HN_CASES(stringconcat, "StringConcat", concat);

static const HnCase split[] = {
    { "string[2]={'a,b','c'}", "delimiter=','", "string[2,2]={'a','b','c',''} i64[2]={2,1}" },
    { "string[2]={' a  b c ',''}", NULL, "string[2,3]={'a','b','c','','',''} i64[2]={3,0}" },
    { "string[1]={' a  b c '}", "maxsplit=1", "string[1,2]={'a','b c '} i64[1]={2}" },
    { "string[1]={'a,b,c'}", "maxsplit=1 delimiter=','", "string[1,2]={'a','b,c'} i64[1]={2}" },
    { "string[1]={'a,b,c'}", "maxsplit=0 delimiter=','", "string[1,1]={'a,b,c'} i64[1]={1}" },
    { "string[1]={'aXXXb'}", "delimiter='XX'", "string[1,2]={'a','Xb'} i64[1]={2}" },
    { "string={''}", "delimiter='-'", "string[1]={''} i64={1}" },
    { "string[1,2]={'a-','-'}", "delimiter='-'", "string[1,2,2]={'a','','',''} i64[1,2]={2,2}" },
    { "string[2]={'x','y z'}", "delimiter=''", "string[2,2]={'x','','y','z'} i64[2]={1,2}" },
    { "string[0]={}", NULL, "string[0,0]={} i64[0]={}" },
    { "i64[1]={1}", NULL, .refused = TRUE, .code = HN_ERROR_TYPE },
    { "string[1]={'a'}", "delimiter=1", .refused = TRUE, .code = HN_ERROR_ATTRIBUTE },
};
HN_CASES(stringsplit, "StringSplit", split);

static const HnCase normalizer[] = {
    { "string[3]={'Monday','b','C'}", NULL, "string[3]={'Monday','b','C'}" },
    { "string[3]={'Monday','b','C'}", "case_change_action='UPPER' stopwords=['c']", "string[2]={'MONDAY','B'}" },
    { "string[3]={'Monday','b','C'}", "case_change_action='LOWER' stopwords=['c'] is_case_sensitive=1",
      "string[3]={'monday','b','c'}" },
    { "string[1,2]={'A','B'}", "stopwords=['a','B']", "string[1,1]={''}" },
    { "string[2]={'ÄÖ','straße'}", "case_change_action='LOWER'", "string[2]={'äö','straße'}" },
    { "string[0]={}", NULL, "string[1]={''}" },
    { "string[2,1]={'a','b'}", NULL, .refused = TRUE, .code = HN_ERROR_SHAPE },
    { "string={'a'}", NULL, .refused = TRUE, .code = HN_ERROR_SHAPE },
    { "string[1]={'a'}", "case_change_action='TITLE'", .refused = TRUE, .code = HN_ERROR_ATTRIBUTE },
    { "string[1]={'a'}", "stopwords=[1,2]", .refused = TRUE, .code = HN_ERROR_ATTRIBUTE },
};
HN_CASES(stringnormalizer, "StringNormalizer", normalizer);
