#include "case.h"

static const HnCase bytetable[] = {
    { "u8[300] u8[256]", NULL },
    { "i8[2,3,5,7] u8[256]", NULL },
    { "u8[1,64,9,3] !i8[256]", NULL },
    { "i8[70] !u8[256]@3:3", NULL,
      "u8[70]={3,3,3,3,3,3,3,3,3,3,3,3,3,3,3,3,3,3,3,3,3,3,3,3,3,3,3,3,3,3,3,3,3,3,3,3,3,3,3,"
      "3,3,3,3,3,3,3,3,3,3,3,3,3,3,3,3,3,3,3,3,3,3,3,3,3,3,3,3,3,3,3}" },
    { "u8[0,3] u8[256]", NULL, "u8[0,3]={}" },
    { "u8[3] u8[255]", NULL, .refused = TRUE, .code = HN_ERROR_SHAPE },
    { "f32[3] u8[256]", NULL, .refused = TRUE, .code = HN_ERROR_TYPE },
};
HN_CASES(bytetable, "ByteTable", bytetable);
