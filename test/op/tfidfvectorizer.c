#include "case.h"

#define LENGTHS(min, max, skip) " min_gram_length=" #min " max_gram_length=" #max " max_skip_count=" #skip
#define POOL " ngram_counts=[0,4] ngram_indexes=[0,1,2,3,4,5,6] pool_int64s=[2,3,5,4,5,6,7,8,6,7]"
#define WORDS " ngram_counts=[0,2] ngram_indexes=[0,2,1] pool_strings=['a','b','a','b']"

static const HnCase tfidfvectorizer[] = {
    { "i32[12]={1,1,3,3,3,7,8,6,7,5,6,8}", "mode='TF'" LENGTHS(2, 2, 0) POOL, "f32[7]={0,0,0,0,1,1,1}" },
    { "i32[12]={1,1,3,3,3,7,8,6,7,5,6,8}", "mode='TF'" LENGTHS(1, 2, 5) POOL, "f32[7]={0,3,1,0,1,3,1}" },
    { "i64[2,6]={1,1,3,3,3,7,8,6,7,5,6,8}", "mode='TF'" LENGTHS(2, 2, 5) POOL,
      "f32[2,7]={0,0,0,0,0,0,0,0,0,0,0,1,1,1}" },
    { "i64[3,40]@1:9", "mode='TF'" LENGTHS(1, 2, 3) POOL },
    { "i32[2,7]={5,4,9,7,8,5,5,6,6,7,7,8,8,2}",
      "mode='IDF' weights=[0.5,2.0,3.0,4.0,5.0,6.0,7.0]" LENGTHS(1, 2, 2) POOL },
    { "i64[1,6]={2,3,2,3,5,4}", "mode='TFIDF' weights=[0.5,2.0,3.0,4.0,5.0,6.0,7.0]" LENGTHS(1, 2, 0) POOL,
      "f32[1,7]={1,4,3,4,0,0,0}" },
    { "i64[2,0]={}", "mode='TF'" LENGTHS(1, 2, 0) POOL, "f32[2,7]={0,0,0,0,0,0,0,0,0,0,0,0,0,0}" },
    { "string[4]={'a','b','a','c'}", "mode='TF'" LENGTHS(1, 2, 0) WORDS, "f32[3]={2,1,1}" },
    { "string[4]={'a','b','a','c'}", "mode='IDF' weights=[0.5,2.0,3.0]" LENGTHS(1, 2, 0) WORDS, "f32[3]={0.5,2,3}" },
    { "string[4]={'a','b','a','c'}", "mode='TFIDF' weights=[0.5,2.0,3.0]" LENGTHS(1, 2, 0) WORDS, "f32[3]={1,2,3}" },
    { "string[2]={'b','a'}", "mode='IDF'" LENGTHS(1, 2, 9) WORDS, "f32[3]={1,0,1}" },
    { "string[0]={}", "mode='TF'" LENGTHS(1, 2, 0) WORDS, "f32[3]={0,0,0}" },
    { "i64[2]={1,2}", "mode='TF'" LENGTHS(1, 2, 0) WORDS, .refused = TRUE, .code = HN_ERROR_TYPE },
    { "i64={1}", "mode='TF'" LENGTHS(1, 2, 0) POOL, .refused = TRUE, .code = HN_ERROR_SHAPE },
    { "i64[1]={1}", "mode='TF'" LENGTHS(2, 1, 0) POOL, .refused = TRUE, .code = HN_ERROR_ATTRIBUTE },
    { "i64[1]={1}", "mode='TF'" LENGTHS(1, 2, -1) POOL, .refused = TRUE, .code = HN_ERROR_ATTRIBUTE },
    { "i64[1]={1}", "mode='TF'" LENGTHS(1, 1, 0) " ngram_counts=[0,5] ngram_indexes=[0] pool_int64s=[2]",
      .refused = TRUE, .code = HN_ERROR_ATTRIBUTE },
    { "i64[1]={1}", "mode='TF'" LENGTHS(1, 1, 0) " ngram_counts=[0] ngram_indexes=[0,1] pool_int64s=[2]",
      .refused = TRUE, .code = HN_ERROR_ATTRIBUTE },
    { "i64[1]={1}", "mode='TF' weights=[1.0]" LENGTHS(1, 1, 0) " ngram_counts=[0] ngram_indexes=[1] pool_int64s=[2]",
      .refused = TRUE, .code = HN_ERROR_ATTRIBUTE },
    { "i64[1]={1}", "mode='TF'" LENGTHS(1, 1, 0) " ngram_counts=[0] ngram_indexes=[0]", .refused = TRUE,
      .code = HN_ERROR_ATTRIBUTE },
};
HN_CASES(tfidfvectorizer, "TfIdfVectorizer", tfidfvectorizer);
