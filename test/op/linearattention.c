#include "case.h"

static const HnCase linearattention[] = {
    /* one head of one row: 2 * 3 * 5 / sqrt(1) */
    { "f32[1,1,1]={2} f32[1,1,1]={3} f32[1,1,1]={5}", "q_num_heads=1 kv_num_heads=1 update_rule='linear'",
      "f32[1,1,1]={30} f32[1,1,1,1]={15}" },
    { "f32[1,2,1]={2,1} f32[1,2,1]={3,1} f32[1,2,1]={5,7}",
      "q_num_heads=1 kv_num_heads=1 update_rule='linear' scale=10.0", "f32[1,2,1]={300,220} f32[1,1,1,1]={22}" },
    /* a state of 4 is halved, then 0.5 (6 - 2 * 1) is added */
    { "f32[1,1,1]={1} f32[1,1,1]={1} f32[1,1,1]={6} f32[1,1,1,1]={4} f32[1,1,1]={-0.6931472} f32[1,1,1]={0.5}",
      "q_num_heads=1 kv_num_heads=1", "f32[1,1,1]={4} f32[1,1,1,1]={4}" },
    { "f32[2,3,8] f32[2,3,4] f32[2,3,6] f32[2,2,2,3] f32[2,3,4]@-1:0",
      "q_num_heads=4 kv_num_heads=2 update_rule='gated'", "f32[2,3,12] f32[2,2,2,3]" },
    { "f32[2,3,8] f32[2,3,4] f32[2,3,6] - - f32[2,3,1]@0:1", "q_num_heads=4 kv_num_heads=2 update_rule='delta'",
      "f32[2,3,12] f32[2,2,2,3]" },
    { "f32[2,3,8] f32[2,3,4] f32[2,3,6] - f32[2,3,2]@-1:0 f32[2,3,2]@0:1", "q_num_heads=4 kv_num_heads=2",
      "f32[2,3,12] f32[2,2,2,3]" },
    { "f32[0,3,8] f32[0,3,4] f32[0,3,6]", "q_num_heads=4 kv_num_heads=2 update_rule='linear'",
      "f32[0,3,12]={} f32[0,2,2,3]={}" },
    { "f32[1,1,4] f32[1,1,4] f32[1,1,4]", "q_num_heads=3 kv_num_heads=2 update_rule='linear'", .refused = TRUE,
      .code = HN_ERROR_ATTRIBUTE },
    { "f32[1,1,4] f32[1,1,4] f32[1,1,4]", "q_num_heads=2 kv_num_heads=2", .refused = TRUE, .code = HN_ERROR_GRAPH },
    { "f32[1,1,4] f32[1,1,2] f32[1,1,4]", "q_num_heads=2 kv_num_heads=2 update_rule='linear'", .refused = TRUE,
      .code = HN_ERROR_SHAPE },
    { "f32[1,1,4] f32[1,2,4] f32[1,1,4]", "q_num_heads=2 kv_num_heads=2 update_rule='linear'", .refused = TRUE,
      .code = HN_ERROR_SHAPE },
    { "f32[1,1,4] f32[1,1,4] f32[1,1,4]", "kv_num_heads=2 update_rule='linear'", .refused = TRUE,
      .code = HN_ERROR_ATTRIBUTE },
};
HN_CASES(linearattention, "LinearAttention", linearattention);
