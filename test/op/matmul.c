#include "case.h"

static const HnCase matmul[] = {
    { "f32[2,3]={1,2,3,4,5,6} f32[3,2]={1,0,0,1,1,1}", NULL, "f32[2,2]={4,5,10,11}" },
    { "f32[3]={1,2,3} f32[3]={4,5,6}", NULL, "f32={32}" },
    { "f32[2]={1,2} f32[2,2]={1,2,3,4}", NULL, "f32[2]={7,10}", .opset = 1 },
    { "f32[2,2]={1,2,3,4} f32[2]={1,2}", NULL, "f32[2]={5,11}" },
    { "f32[2,1,2]={1,2,3,4} f32[1,2,1]={1,10}", NULL, "f32[2,1,1]={21,43}" },
    { "f32[1,2]={1,2} f32[2,2,1]={1,10,2,20}", NULL, "f32[2,1,1]={21,42}" }, /* a repeats for each b */
    { "i32[1,2]={65536,3} i32[2,1]={65536,5}", NULL, "i32[1,1]={15}" },
    { "u64[1,1]={18446744073709551615} u64[1,1]={2}", NULL, "u64[1,1]={18446744073709551614}", .opset = 9 },
    { "f32[2,0] f32[0,3]", NULL, "f32[2,3]={0,0,0,0,0,0}" },
    { "f32[0,2] f32[2,3]", NULL, "f32[0,3]={}" },
    { "f32[67,300] f32[300,35]", NULL },
    { "f32[2,1,5,7] f32[3,7,2]", NULL },
    /* b as it is, with rows that end before a tile does; packed; parts of the products; shared by several a */
    { "f32[3,7,40] f32[3,40,35]", NULL },
    { "f32[2,5,3] f32[2,3,7]", NULL },
    { "f32[2,1,600] f32[2,600,33]", NULL },
    { "f32[9,530] f32[530,2]", NULL },
    { "f32[3,25,540] f32[3,540,35]", NULL },
    { "f32[2,3,14,9] f32[2,1,9,65]", NULL },
    { "f32[500,77] f32[77,1]", NULL },
    { "f32[1,300] f32[300,70]", NULL },
    { "f32[1,600] !f32[600,33]", NULL },
    { "f32[1,1500] f32[1500,72]", NULL }, /* few rows: parts of k, by several blocks */
    { "f32[3,1500] f32[1500,73]", NULL },
    { "f32[2,1,1500] f32[2,1500,72]", NULL },
    { "f32[2,3,14,9] !f32[2,1,9,65]", NULL },
    /* several tiles of each of a GPU's forms, ends of tiles and of lines, sums in parts; a or b is shared by stacks */
    { "f32[200,328] f32[328,136]", NULL, .rtol = 1e-4, .atol = 1e-4 },
    { "f32[330,72] f32[72,520]", NULL },
    { "f32[64,1032] f32[1032,64]", NULL, .rtol = 1e-4, .atol = 1e-4 },
    { "f32[2,3,72,64] f32[2,3,64,72]", NULL },
    { "f32[64,72] f32[3,72,80]", NULL },
    { "f32[2,410,100] f32[2,100,72]", NULL },
    { "f32[401,1032] f32[1032,64]", NULL, .rtol = 1e-4, .atol = 1e-4 },
    { "f32[16,72]@3.402e38:3.4028e38 f32[72,64]@0.001:0.002", NULL }, /* beyond the largest number of TF32 */
    { "f32[2,3] f32[2,3]", NULL, .refused = TRUE, .code = HN_ERROR_SHAPE },
    { "f32 f32[1]", NULL, .refused = TRUE, .code = HN_ERROR_SHAPE },
    { "f32[2,1,1] f32[3,1,1]", NULL, .refused = TRUE, .code = HN_ERROR_SHAPE },
    { "i8[1,1] i8[1,1]", NULL, .refused = TRUE, .code = HN_ERROR_TYPE },
};
HN_CASES(matmul, "MatMul", matmul);

static const HnCase matmulinteger[] = {
    /* the example of ONNX's documentation */
    { "u8[4,3]={11,7,3,10,6,2,9,5,1,8,4,0} u8[3,2]={1,4,2,5,3,6} u8={12} u8={0}", NULL,
      "i32[4,2]={-38,-83,-44,-98,-50,-113,-56,-128}" },
    { "i8[1,2]={-128,127} u8[2,1]={255,255}", NULL, "i32[1,1]={-255}" },
    /* four products of one column fit into 16 bits in two groups, of the other in none */
    { "u8[1,40]@255:255 "
      "!i8[40,2]={70,127,70,127,0,0,0,0,70,127,70,127,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,"
      "0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0}",
      NULL, "i32[1,2]={71400,129540}" },
    { "u8[2,1]={3,3} u8[1,2]={5,5} u8[2]={1,2} u8[2]={4,3}", NULL, "i32[2,2]={2,4,1,2}" }, /* per row and column */
    { "u8[2,1,1]={3,3} u8[2,1,1]={5,5} u8[2,1,1]={1,2} u8[2,1,1]={4,3}", NULL, "i32[2,1,1]={2,2}" },
    { "i8[3,5,4] i8[4,6] i8={3}", NULL },
    { "u8[1,333] !i8[333,67] u8={9} !i8={1}", NULL },
    { "u8[2,7,64] !u8[64,33] u8={200} !u8={128}", NULL },
    { "i8[2,3,5,31] u8[2,3,31,40] i8={-128} u8={255}", NULL },
    { "u8[70,0] i8[0,9] u8={3} i8={2}", NULL }, /* of nothing */
    { "u8[2,1] u8[1,2] u8[3]", NULL, .refused = TRUE, .code = HN_ERROR_SHAPE },
    { "u8[2,1] u8[1,2] i8={0}", NULL, .refused = TRUE, .code = HN_ERROR_TYPE },
};
HN_CASES(matmulinteger, "MatMulInteger", matmulinteger);

static const HnCase qlinearmatmul[] = {
    { "u8[1,2]={3,5} f32={0.5} u8={1} u8[2,1]={4,6} f32={0.5} u8={2} f32={0.25} u8={10}", NULL, "u8[1,1]={30}" },
    { "i8[1,1]={5} f32={1} i8={0} i8[1,1]={1} f32={1} i8={0} f32={2} i8={1}", NULL, "i8[1,1]={3}" }, /* 2.5 to even */
    { "i8[1,1]={100} f32={1} i8={0} i8[1,1]={100} f32={1} i8={0} f32={1} u8={1}", NULL, "u8[1,1]={255}", .opset = 10 },
    { "u8[2,1]={3,3} f32[2]={1,2} u8[2]={0,1} u8[1,2]={5,5} f32[2]={1,3} u8[2]={0,3} f32={1} u8={0}", NULL,
      "u8[2,2]={15,18,20,24}" },
    { "u8[2,3] f32={0.1} u8={128} i8[3,4] f32={0.1} i8={0} f32={0.5} u8={128}", NULL },
    { "u8[2,13,37] f32={0.1} u8={128} !i8[37,34] !f32[34]@0.01:0.1 !i8={0} f32={0.5} u8={128}", NULL },
    { "u8[1,1] f32={1} u8={0} u8[1,1] f32={1} u8={0} f32[2]={1,1} u8={0}", NULL, .refused = TRUE,
      .code = HN_ERROR_SHAPE },
    { "u8[2,1] f32[3]={1,1,1} u8={0} u8[1,1] f32={1} u8={0} f32={1} u8={0}", NULL, .refused = TRUE,
      .code = HN_ERROR_SHAPE },
};
HN_CASES(qlinearmatmul, "QLinearMatMul", qlinearmatmul);

static const HnCase fusedmatmul[] = {
    { "f32[2,3]={1,2,3,4,5,6} f32[2,2]={1,10,100,1000} f32[2]={0.5,0.25}", "transA=1",
      "f32[3,2]={401.5,4010.25,502.5,5020.25,603.5,6030.25}" },
    { "f32[2,3]={1,2,3,4,5,6} f32[1,3]={1,10,100}", "transB=1", "f32[2,1]={321,654}" },
    { "f32[2,3]={1,2,3,4,5,6} f32[3,1]={1,10,100} f32[1]={7}", NULL, "f32[2,1]={328,661}" },
    { "f32[2,3,17,45] f32[2,3,17,70] f32[70]", "transA=1" },
    { "f32[6,40,33] f32[6,50,33]", "transB=1" },
    { "f32[3,2,65,33] f32[2,40,65]", "transA=1 transB=1" },
    { "f32[5,33,40] f32[33,50]", "transA=1" },
    { "f32[5,33,40] !f32[50,40] !f32[50]", "transB=1" },
    { "f32[5,33,40] f32[50,40] f32[50]", "transB=1" },
    { "f32[136,72] f32[264,136]", "transA=1 transB=1" },
    { "f32[3,72,64] f32[72,64] f32[64]", "transA=1" },
    { "f32[70,64] f32[75,64] f32[75]", "transB=1" },
    { "f32[70,64] f32[75,64]", "transB=1" },
    { "f32[3,68,404] f32[68,72]", "transA=1" },
    { "f32[1010,68] f32[72,68]", "transB=1" },
    { "f32[3000,29] f32[3000,40]", "transA=1", .rtol = 1e-4, .atol = 1e-3 },
    { "f32[1,300,200] f32[1,300,140]", "transA=1", .rtol = 1e-4, .atol = 1e-4 },
    { "f32[7,2600] f32[130,2600]", "transB=1", .rtol = 1e-4, .atol = 1e-3 },
    /* several blocks of rows and of sums: what is packed on the way serves both blocks of rows */
    { "f32[1100,400] f32[1100,70] f32[70]", "transA=1", .rtol = 1e-4, .atol = 1e-3 },
    { "f32[400,1100] f32[70,1100] f32[70]", "transB=1", .rtol = 1e-4, .atol = 1e-3 },
    { "f32[3] f32[2,3]", "transB=1", .rtol = 1e-5 },
    { "f32[3] f32[3,2]", "transA=1", .refused = TRUE, .code = HN_ERROR_SHAPE },
    { "f32[2,3] f32[2,2]", NULL, .refused = TRUE, .code = HN_ERROR_SHAPE },
    { "f32[2,3] f32[3,2] f32[3]", NULL, .refused = TRUE, .code = HN_ERROR_SHAPE },
};
HN_CASES(fusedmatmul, "FusedMatMul", fusedmatmul);
