/*
 * Every operator's record, by the symbol that op/ops.def gives it: hn_op_conv, hn_op_relu, ...
 */
#pragma once

#include "op/op.h"

#define HN_OP(name, symbol, file) extern const HnOp hn_op_##symbol;
#include "op/ops.def"
#undef HN_OP
