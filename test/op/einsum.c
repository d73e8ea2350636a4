#include "case.h"

static const HnCase einsum[] = {
    { "f32[2,3]={1,2,3,4,5,6}", "equation='ij->ji'", "f32[3,2]={1,4,2,5,3,6}" },
    { "f32[2,3]={1,2,3,4,5,6}", "equation='ij->i'", "f32[2]={6,15}" },
    { "f32[2,2]={1,2,3,4} f32[2,2]={5,6,7,8}", "equation='ij, jk -> ik'", "f32[2,2]={19,22,43,50}", .opset = 12 },
    { "f32[2,2]={1,2,3,4} f32[2,2]={5,6,7,8}", "equation='ij,jk'", "f32[2,2]={19,22,43,50}" },
    { "f32[2,2]={1,2,3,4}", "equation='ii'", "f32={5}" },
    { "f32[2,2]={1,2,3,4}", "equation='...ii->...i'", "f32[2]={1,4}" },
    { "f32[2]={1,2}", "equation='BA'", .refused = TRUE, .code = HN_ERROR_SHAPE },
    { "f32[1,2]={1,2}", "equation='bA'", "f32[2,1]={1,2}" }, /* without '->' upper case comes first */
    { "i32[2]={1,2} i32[2]={3,4}", "equation='i,i'", "i32={11}" },
    { "u8[1]={16} u8[1]={17}", "equation='i,j->ij'", "u8[1,1]={16}" },
    { "f32[2]={1,2} f32[2]={3,4} f32={2}", "equation='a,b,->ba'", "f32[2,2]={6,12,8,16}" },
    { "f32[2,1,2]={1,2,3,4} f32[2]={1,10}", "equation='...d,d->...'", "f32[2,1]={21,43}" },
    { "f32[0,2] f32[2]", "equation='ij,j->i'", "f32[0]={}" },
    { "f32[2,0] f32[0]", "equation='ij,j->i'", "f32[2]={0,0}" },
    { "f32[2,3,4,5] f32[2,3,6,5]", "equation='bhid,bhjd->bhij'" },
    { "f32[3,2,5] f32[5,4] f32[4,3]", "equation='...ab,bc,cd->d...a'" },
    { "f32[2,3] f32[4]", "equation='ij,j->i'", .refused = TRUE, .code = HN_ERROR_SHAPE },
    { "f32[2,3]", "equation='ij,j->i'", .refused = TRUE, .code = HN_ERROR_ATTRIBUTE },
    { "f32[2,3]", "equation='ij->ik'", .refused = TRUE, .code = HN_ERROR_ATTRIBUTE },
    { "f32[2,3]", "equation='i1'", .refused = TRUE, .code = HN_ERROR_ATTRIBUTE },
    { "f32[2,3]", "equation='ij->i->j'", .refused = TRUE, .code = HN_ERROR_ATTRIBUTE },
    { "f32[2,3]", NULL, .refused = TRUE, .code = HN_ERROR_ATTRIBUTE },
};
HN_CASES(einsum, "Einsum", einsum);
