#include "case.h"

/* what sub-graphs do is tested in test/unit/op_control.c */
static const HnCase loop[] = {
    { "i64={3} bool={true} f32[2]", NULL, .refused = TRUE, .code = HN_ERROR_ATTRIBUTE },
};
HN_CASES(loop, "Loop", loop);
