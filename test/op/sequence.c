#include "case.h"

static const HnCase construct[] = {
    { "f32[2]={1,2} f32[3]={3,4,5}", NULL, "seq{f32[2]={1,2} f32[3]={3,4,5}}" },
    { "string[1]={'a b'}", NULL, "seq{string[1]={'a b'}}" },
    { "i64={7} i64={8} i64={9}", NULL, "seq{i64={7} i64={8} i64={9}}" },
    { "f32[2,3] f32[2,3]", NULL, NULL },
    { "f32[0,2]={}", NULL, "seq{f32[0,2]={}}" },
    { "f32[1] i64[1]", NULL, .refused = TRUE, .code = HN_ERROR_TYPE }, /* of several types */
    { "seq{f32[1]}", NULL, .refused = TRUE, .code = HN_ERROR_TYPE },   /* of sequences */
};
HN_CASES(sequenceconstruct, "SequenceConstruct", construct);

static const HnCase empty[] = {
    { "", NULL, "seq{}" },
    { "", "dtype=7", "seq{}" },
    { "", "dtype=99", .refused = TRUE, .code = HN_ERROR_ATTRIBUTE },
    { "", "dtype=0", .refused = TRUE, .code = HN_ERROR_ATTRIBUTE },
};
HN_CASES(sequenceempty, "SequenceEmpty", empty);

static const HnCase at[] = {
    { "seq{f32[2]={1,2} f32[3]={3,4,5}} i64={1}", NULL, "f32[3]={3,4,5}" },
    { "seq{f32[2]={1,2} f32[3]={3,4,5}} i32={-2}", NULL, "f32[2]={1,2}" },
    { "seq{f32[2]={1,2} f32[2]={3,4}} i64[1]={-1}", NULL, "f32[2]={3,4}" },
    { "seq{string[2]={'a','b'} string[2]={'c','d'}} i64={0}", NULL, "string[2]={'a','b'}" },
    { "seq{f32[2] f32[3]} i64={2}", NULL, .refused = TRUE, .code = HN_ERROR_VALUE },
    { "seq{f32[2] f32[3]} i64={-3}", NULL, .refused = TRUE, .code = HN_ERROR_VALUE },
    { "seq{} i64={0}", NULL, .refused = TRUE, .code = HN_ERROR_VALUE },
    { "f32[2] i64={0}", NULL, .refused = TRUE, .code = HN_ERROR_TYPE },
    { "seq{f32[2]} f32={0}", NULL, .refused = TRUE, .code = HN_ERROR_TYPE },
};
HN_CASES(sequenceat, "SequenceAt", at);

static const HnCase insert[] = {
    { "seq{f32[2]={1,2}} f32[3]={3,4,5}", NULL, "seq{f32[2]={1,2} f32[3]={3,4,5}}" },
    { "seq{f32[2]={1,2}} f32[3]={3,4,5} i64={0}", NULL, "seq{f32[3]={3,4,5} f32[2]={1,2}}" },
    { "seq{f32={1} f32={2}} f32={3} i64={-1}", NULL, "seq{f32={1} f32={3} f32={2}}" },
    { "seq{f32={1} f32={2}} f32={3} i32={2}", NULL, "seq{f32={1} f32={2} f32={3}}" },
    { "seq{} string[1]={'x'}", NULL, "seq{string[1]={'x'}}" },
    { "seq{f32={1}} f32={3} i64={2}", NULL, .refused = TRUE, .code = HN_ERROR_VALUE },
    { "seq{f32={1}} f32={3} i64={-2}", NULL, .refused = TRUE, .code = HN_ERROR_VALUE },
    { "seq{f32={1}} i64={3}", NULL, .refused = TRUE, .code = HN_ERROR_TYPE },
};
HN_CASES(sequenceinsert, "SequenceInsert", insert);

static const HnCase erase[] = {
    { "seq{f32={1} f32={2} f32={3}}", NULL, "seq{f32={1} f32={2}}" },
    { "seq{f32={1} f32={2} f32={3}} i64={0}", NULL, "seq{f32={2} f32={3}}" },
    { "seq{f32={1} f32[1]={2} f32={3}} i64={-2}", NULL, "seq{f32={1} f32={3}}" },
    { "seq{f32={1}} i64={1}", NULL, .refused = TRUE, .code = HN_ERROR_VALUE },
    { "seq{}", NULL, .refused = TRUE, .code = HN_ERROR_VALUE },
};
HN_CASES(sequenceerase, "SequenceErase", erase);

static const HnCase length[] = {
    { "seq{f32={1} f32={2} f32={3}}", NULL, "i64={3}" },
    { "seq{}", NULL, "i64={0}" },
    { "f32[3]", NULL, .refused = TRUE, .code = HN_ERROR_TYPE },
    { "opt{f32[3]}", NULL, .refused = TRUE, .code = HN_ERROR_TYPE },
};
HN_CASES(sequencelength, "SequenceLength", length);

static const HnCase split[] = {
    { "f32[2,2]={1,2,3,4}", NULL, "seq{f32[1,2]={1,2} f32[1,2]={3,4}}" },
    { "f32[2,2]={1,2,3,4}", "keepdims=0 axis=1", "seq{f32[2]={1,3} f32[2]={2,4}}" },
    { "f32[5]={1,2,3,4,5} i64={2}", "keepdims=0", "seq{f32[2]={1,2} f32[2]={3,4} f32[1]={5}}" },
    { "f32[4]={1,2,3,4} !i32={2}", NULL, "seq{f32[2]={1,2} f32[2]={3,4}}" },
    { "i64[2,3]={1,2,3,4,5,6} !i64[2]={1,2}", "axis=-1", "seq{i64[2,1]={1,4} i64[2,2]={2,3,5,6}}" },
    { "string[3]={'a','b','c'} i64[2]={3,0}", NULL, "seq{string[3]={'a','b','c'} string[0]={}}" },
    { "f32[0,2]={}", NULL, "seq{}" },
    { "f32[3] i64={0}", NULL, .refused = TRUE, .code = HN_ERROR_VALUE },
    { "f32[3] i64={-1}", NULL, .refused = TRUE, .code = HN_ERROR_VALUE },
    { "f32[3] i64[2]={1,1}", NULL, .refused = TRUE, .code = HN_ERROR_VALUE },
    { "f32[3] i64[2]={4,-1}", NULL, .refused = TRUE, .code = HN_ERROR_VALUE },
    { "f32[3] i64[1,1]={3}", NULL, .refused = TRUE, .code = HN_ERROR_VALUE },
    { "f32[3]", "axis=1", .refused = TRUE, .code = HN_ERROR_ATTRIBUTE },
    { "f32={3}", NULL, .refused = TRUE, .code = HN_ERROR_ATTRIBUTE },
};
HN_CASES(splittosequence, "SplitToSequence", split);

static const HnCase join[] = {
    { "seq{f32[1,2]={1,2} f32[2,2]={3,4,5,6}}", "axis=0", "f32[3,2]={1,2,3,4,5,6}" },
    { "seq{f32[2,1]={1,2} f32[2,2]={3,4,5,6}}", "axis=-1", "f32[2,3]={1,3,4,2,5,6}" },
    { "seq{f32[2]={1,2} f32[2]={3,4}}", "axis=1 new_axis=1", "f32[2,2]={1,3,2,4}" },
    { "seq{f32={1} f32={2}}", "axis=-1 new_axis=1", "f32[2]={1,2}" },
    { "seq{string[1]={'a'} string[2]={'b','c'}}", "axis=0", "string[3]={'a','b','c'}" },
    { "seq{bool[1]={true} bool[0]={}}", "axis=0", "bool[1]={true}" },
    { "seq{f32[1,2] f32[1,3]}", "axis=0", .refused = TRUE, .code = HN_ERROR_SHAPE },
    { "seq{f32[2] f32[3]}", "axis=0 new_axis=1", .refused = TRUE, .code = HN_ERROR_SHAPE },
    { "seq{f32={1}}", "axis=0", .refused = TRUE, .code = HN_ERROR_ATTRIBUTE },
    { "seq{f32[2]}", "axis=1", .refused = TRUE, .code = HN_ERROR_ATTRIBUTE },
    { "seq{f32[2]}", NULL, .refused = TRUE, .code = HN_ERROR_ATTRIBUTE },
    { "seq{}", "axis=0", .refused = TRUE, .code = HN_ERROR_VALUE },
    { "f32[2]", "axis=0", .refused = TRUE, .code = HN_ERROR_TYPE },
};
HN_CASES(concatfromsequence, "ConcatFromSequence", join);
