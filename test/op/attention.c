#include "case.h"

/* two queries, two keys, products all 0: each query takes the mean of the values 1 and 3 that it may see */
#define QKV "f32[1,1,2,1]={0,0} f32[1,1,2,1]={1,2} f32[1,1,2,1]={1,3}"

static const HnCase attention[] = {
    { QKV, NULL, "f32[1,1,2,1]={2,2}" },
    { QKV, "is_causal=1", "f32[1,1,2,1]={1,2}", .opset = 23 },
    { QKV " bool[2,2]={false,true,false,false}", NULL, "f32[1,1,2,1]={3,0}" }, /* nothing to see: zero */
    { QKV " f32[1,2]={0,1.0986122886681098}", NULL, "f32[1,1,2,1]={2.5,2.5}" },
    { QKV " bool[1,2]={false,true}", "is_causal=1", "f32[1,1,2,1]={0,3}" },
    { QKV " - - - i64[1]={1}", NULL, "f32[1,1,2,1]={1,1}", .opset = 24 },
    { QKV " - - - i64[1]={1}", "is_causal=1", "f32[1,1,2,1]={0,1}" }, /* one key less than queries */
    { QKV " bool[2,1]={true,true}", NULL, "f32[1,1,2,1]={1,1}" },     /* a mask that ends early hides the rest */
    { QKV " bool[2,1]={true,true}", NULL, "f32[1,1,2,1]={2,2}", .opset = 23 }, /* there it broadcasts */
    { QKV, "left_window_size=0 right_window_size=0", "f32[1,1,2,1]={1,3}" },
    { QKV, "right_window_size=0", "f32[1,1,2,1]={1,2}", .opset = 25 },
    /* the past comes first, the causal frontier moves with it */
    { "f32[2,6,37,24] f32[2,2,37,24] f32[2,2,37,19]", "is_causal=1" },
    /* many queries: blocks of more of them */
    { "f32[1,4,130,40] f32[1,2,150,40] f32[1,2,150,40]", NULL },
    { "f32[1,3,200,24] f32[1,3,200,24] f32[1,3,200,30] f32[200,200]", "is_causal=1" },
    { "f32[1,2,70,128] f32[1,2,200,128] f32[1,2,200,100]", "is_causal=1" },
    /* a few blocks, whose warps share the keys: some have none, several, those of a cache and new ones */
    { "f32[1,2,37,64] f32[1,1,300,64] f32[1,1,300,64] f32[37,300]", NULL },
    { "f32[1,2,20,64] f32[1,2,130,64] f32[1,2,130,52]", "is_causal=1 left_window_size=21 softcap=4.0" },
    { "f32[1,1,17,7] f32[1,1,70,7] f32[1,1,70,30] bool[17,105] f32[1,1,35,7] f32[1,1,35,30]", NULL, .n_out = 3 },
    { "f32[1,1,33,100] f32[1,1,250,100] f32[1,1,250,128] - f32[1,1,29,100] f32[1,1,29,128]", "is_causal=1" },
    { "f32[1,2,19,64] f32[1,2,77,64] f32[1,2,77,64] f32[1,2,1,77]", "is_causal=1" },
    { "f32[1,1,17,8] f32[1,1,70,8] f32[1,1,70,8] !f32[17,1]={0,nan,-inf,0,0,nan,0,0,0,0,0,0,0,0,0,0,nan}", NULL,
      .opset = 23 },
    { "f32[1,1,16,8] f32[1,1,40,8] f32[1,1,40,8] bool[16,3]", NULL },
    /* numbers whose halves for tensor cores are infinite: of values, of which each query sees one, and of products */
    { "f32[1,1,18,24] f32[1,1,40,24] f32[1,1,40,24]@-3e38:3e38", "left_window_size=0 right_window_size=0" },
    { "f32[1,1,18,24]@2.5e18:3e18 f32[1,1,150,24]@2.5e18:3e18 f32[1,1,150,24]", "scale=1e-38" },
    { "f32[1,4,5,16] f32[1,2,5,16] f32[1,2,5,32] bool[5,26] f32[1,2,21,16] f32[1,2,21,32]", NULL, .n_out = 3 },
    { "f32[2,9,48] f32[2,33,24] f32[2,33,24] f32[2,1,9,33]", "q_num_heads=6 kv_num_heads=3 scale=0.5" },
    { "f32[1,2,1,64] f32[1,2,100,64] f32[1,2,100,64] f32[1,1,1,100]", NULL },
    /* few queries: sizes beside those of vectors, masks that end early, and those that leave nothing */
    { "f32[2,6,1,19] f32[2,3,33,19] f32[2,3,33,5]", NULL },
    { "f32[1,4,3,37] f32[1,4,9,37] f32[1,4,9,70] f32[4,3,9]", "scale=0.3" },
    { "f32[1,2,1,2]={1,0,0,1} f32[1,1,3,2]={1,2,3,4,5,6} f32[1,1,3,1]={1,2,4} f32[1,1,1,3]={0,0,-inf}", "scale=0.0",
      "f32[1,2,1,1]={1.5,1.5}" },
    { "f32[1,1,1,2] f32[1,1,3,2] f32[1,1,3,1]={1,2,4} bool[1,3]={false,true,false}", NULL, "f32[1,1,1,1]={2}" },
    { "f32[1,1,1,2] f32[1,1,3,2] f32[1,1,3,1] bool[1,3]={false,false,false}", NULL, "f32[1,1,1,1]={0}" },
    { "f32[2,1,48] f32[2,33,24] f32[2,33,24] f32[2,1,1,33]", "q_num_heads=6 kv_num_heads=3" },
    { "f32[1,1,1,1]={0} f32[1,1,1,1]={5} f32[1,1,1,1]={3} - f32[1,1,1,1]={4} f32[1,1,1,1]={1}", "is_causal=1",
      "f32[1,1,1,1]={2} f32[1,1,2,1]={4,5} f32[1,1,2,1]={1,3}" },
    /* heads side by side; two query heads share a key head */
    { "f32[1,1,2]={0,0} f32[1,2,1]={1,2} f32[1,2,1]={1,3}", "q_num_heads=2 kv_num_heads=1", "f32[1,1,2]={2,2}" },
    { "f32[1,1,1,2]={1,1} f32[1,1,1,2]={2,4} f32[1,1,1,1]={7}", "scale=0.5",
      "f32[1,1,1,1]={7} f32[1,1,1,2]={2,4} f32[1,1,1,1]={7} f32[1,1,1,1]={3}" },
    { "f32[1,1,1,1]={1} f32[1,1,1,1]={2} f32[1,1,1,1]={7} f32[1]={10}", "scale=1.0 qk_matmul_output_mode=2",
      "f32[1,1,1,1]={7} f32[1,1,1,1]={2} f32[1,1,1,1]={7} f32[1,1,1,1]={12}" },
    { "f32[1,1,1,1]={1} f32[1,1,1,1]={2} f32[1,1,1,1]={7} f32[1]={10}", "scale=1.0 softcap=2.0 qk_matmul_output_mode=1",
      "f32[1,1,1,1]={7} f32[1,1,1,1]={2} f32[1,1,1,1]={7} f32[1,1,1,1]={1.5231883119115297}" },
    { QKV " bool[2,2]={false,true,false,false}", "qk_matmul_output_mode=3",
      "f32[1,1,2,1]={3,0} f32[1,1,2,1]={1,2} f32[1,1,2,1]={1,3} f32[1,1,2,2]={0,1,0,0}" },
    { "f32[2,6,4,8] f32[2,3,7,8] f32[2,3,7,5] f32[6,4,7]", "is_causal=1" },
    { "f32[2,4,24] f32[2,5,12] f32[2,5,9]", "q_num_heads=6 kv_num_heads=3 softcap=3.0" },
    { "f64[1,1,2,3] f64[1,1,4,3] f32[1,1,4,2]", NULL },
    { "f32[1,1,0,2] f32[1,1,3,2] f32[1,1,3,2]", NULL, "f32[1,1,0,2]={}" },
    { "f32[1,1,2,2] f32[1,1,0,2] f32[1,1,0,2]", NULL, "f32[1,1,2,2]={0,0,0,0}" },
    { "f32[1,3,2,2] f32[1,2,2,2] f32[1,2,2,2]", NULL, .refused = TRUE, .code = HN_ERROR_SHAPE },
    { "f32[1,1,2,2] f32[1,1,2,3] f32[1,1,2,2]", NULL, .refused = TRUE, .code = HN_ERROR_SHAPE },
    { "f32[1,2,4] f32[1,2,4] f32[1,2,4]", NULL, .refused = TRUE, .code = HN_ERROR_ATTRIBUTE },
    { QKV " f32[3,2]", NULL, .refused = TRUE, .code = HN_ERROR_SHAPE },
    { QKV " - f32[1,1,1,1]", NULL, .refused = TRUE, .code = HN_ERROR_GRAPH },
    { QKV " - - - i64[1]={3}", NULL, .refused = TRUE, .code = HN_ERROR_VALUE },
};
HN_CASES(attention, "Attention", attention);
