#include "case.h"

static const HnCase optional[] = {
    { "f32[2]={1,2}", NULL, "opt{f32[2]={1,2}}" },
    { "seq{f32[2]={1,2}}", NULL, "opt{seq{f32[2]={1,2}}}" },
    { "-", NULL, "opt{}" },
    { "opt{f32[2]}", NULL, .refused = TRUE, .code = HN_ERROR_TYPE },
};
HN_CASES(optional, "Optional", optional);

static const HnCase has[] = {
    { "opt{f32[2]}", NULL, "bool={true}" }, { "opt{}", NULL, "bool={false}" }, { "seq{}", NULL, "bool={true}" },
    { "f32[2]", NULL, "bool={true}" },      { "-", NULL, "bool={false}" },     { "", NULL, "bool={false}" },
    { "opt{seq{}}", NULL, "bool={true}" },
};
HN_CASES(optionalhaselement, "OptionalHasElement", has);

static const HnCase get[] = {
    { "opt{f32[2]={1,2}}", NULL, "f32[2]={1,2}" },      { "opt{seq{i64={1} i64={2}}}", NULL, "seq{i64={1} i64={2}}" },
    { "opt{string={'a'}}", NULL, "string={'a'}" },      { "f32[2]={1,2}", NULL, "f32[2]={1,2}" },
    { "seq{f32[2]={1,2}}", NULL, "seq{f32[2]={1,2}}" }, { "opt{}", NULL, .refused = TRUE, .code = HN_ERROR_VALUE },
};
HN_CASES(optionalgetelement, "OptionalGetElement", get);
