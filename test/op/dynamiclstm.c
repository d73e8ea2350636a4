#include "case.h"

#define STEPS " !f32[1]={0.01} !i8[1]={0} !f32[1]={0.02} !i8[1]={0}"
#define FINE " !f32[1]={0.001} !i8[1]={0} !f32[1]={0.001} !i8[1]={0}"

static const HnCase dynamicquantizelstm[] = {
    /* h = tanh(c) / 2 of c = tanh(2) / 2: only the cell has weights, 50 * 0.02 */
    { "f32[1,1,1]={2} i8[1,1,4]={0,0,0,50} i8[1,1,4]={0,0,0,0} - - - - - f32[1]={0.02} i8[1]={0} f32[1]={0.02} "
      "i8[1]={0}",
      NULL, "f32[1,1,1,1]={0.22392747} f32[1,1,1]={0.22392747} f32[1,1,1]={0.48201379}", .atol = 1e-6 },
    { "f32[5,3,4] !i8[1,4,24] !i8[1,6,24] f32[1,48] - f32[1,3,6] f32[1,3,6] -" STEPS, "hidden_size=6", .n_out = 3 },
    { "f32[5,1,4] !i8[1,4,24] !i8[1,6,24] f32[1,48] - - - -" STEPS, "hidden_size=6", .n_out = 3 },
    { "f32[3,2,4] !i8[2,4,80] !i8[2,20,80] f32[2,160] i32[2]={3,1} - - - !f32[2]={0.01,0.02} !i8[2]={0,3} "
      "!f32[2]={0.01,0.03} !i8[2]={-2,0}",
      "direction='bidirectional' hidden_size=20", .n_out = 3 },
    { "f32[3,1,5] !u8[1,5,68] !u8[1,17,68] - - - - f32[1,51] !f32[1,68]@0.01:0.02 !u8[1,68] !f32[1,68]@0.01:0.02 "
      "!u8[1,68]",
      "direction='reverse' clip=2.0", .n_out = 3 },
    /* no sums of two products saturate 16 bits, some do, most do */
    { "f32[4,1,40]@0:1 !i8[1,40,1056]@-60:60 !i8[1,264,1056]@-60:60 - - - - -" FINE, NULL, .n_out = 3 },
    { "f32[4,1,40]@0:1 !i8[1,40,80]@-70:70 !i8[1,20,80]@-70:70 - - - - -" FINE, NULL, .n_out = 3 },
    { "f32[4,7,42]@0:1 !u8[2,42,80]@58:198 !u8[2,20,80]@58:198 - - - - - !f32[2]={0.001,0.001} !u8[2]={128,128} "
      "!f32[2]={0.001,0.001} !u8[2]={128,128}",
      "direction='bidirectional'", .n_out = 3 },
    { "f32[4,1,40]@0:1 !i8[1,40,80]@90:127 !i8[1,20,80] - - - - -" FINE, NULL, .n_out = 3 },
    { "f32[3,1,5] i8[1,5,12] i8[1,3,12] - - - - -" STEPS, "input_forget=1", .n_out = 3 },
    { "f32[3,1,5] i8[1,5,12] i8[1,3,13] - - - - -" STEPS, NULL, .refused = TRUE, .code = HN_ERROR_SHAPE },
    { "f32[3,1,5] i8[1,5,12] i8[1,3,12]", NULL, .refused = TRUE, .code = HN_ERROR_GRAPH },
    { "f32[2,1,1] i8[1,1,4] i8[1,1,4] - i32[1]={3} - - -" STEPS, NULL, .refused = TRUE, .code = HN_ERROR_VALUE },
};
HN_CASES(dynamicquantizelstm, "DynamicQuantizeLSTM", dynamicquantizelstm);
