#include "case.h"

/* what sub-graphs do is tested in test/unit/op_control.c */
static const HnCase if_[] = {
    { "bool={true}", NULL, .refused = TRUE, .code = HN_ERROR_ATTRIBUTE },
};
HN_CASES(if, "If", if_);
