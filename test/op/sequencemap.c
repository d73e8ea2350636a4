#include "case.h"

/* what sub-graphs do is tested in test/unit/op_control.c */
static const HnCase map[] = {
    { "seq{f32[2]}", NULL, .refused = TRUE, .code = HN_ERROR_ATTRIBUTE },
};
HN_CASES(sequencemap, "SequenceMap", map);
