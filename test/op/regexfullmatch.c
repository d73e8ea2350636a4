#include "case.h"

static const HnCase regexfullmatch[] = {
    { "string[3]={'www.google.com','www.g.org','x'}", "pattern='www.[\\w.-]+.com'", "bool[3]={true,false,false}" },
    { "string[4]={'ab','a','','abc'}", "pattern='a|ab'", "bool[4]={true,true,false,false}" },
    { "string[2]={'','a'}", "pattern=''", "bool[2]={true,false}" },
    { "string[2]={'a','ü'}", "pattern='.'", "bool[2]={true,true}" },
    { "string[2]={'5','٣'}", "pattern='\\d'", "bool[2]={true,false}" }, /* RE2's digits are those of ASCII */
    { "string[3]={'é','_','z'}", "pattern='[\\w]'", "bool[3]={false,true,true}" },
    { "string[2]={'a+b','aab'}", "pattern='\\Qa+\\Eb'", "bool[2]={true,false}" },
    { "string[2]={']','a'}", "pattern='[]a]'", "bool[2]={true,true}" },
    { "string[2,1]={'aa','b'}", "pattern='[[:alpha:]]{2}'", "bool[2,1]={true,false}" },
    { "string[0]={}", "pattern='a'", "bool[0]={}" },
    { "string={'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!'}", "pattern='(a|a|a)*'", .refused = TRUE,
      .code = HN_ERROR_UNSUPPORTED }, /* 3^56 ways */
    { "string={'aa'}", "pattern='(a)\\1'", .refused = TRUE, .code = HN_ERROR_ATTRIBUTE },
    { "string={'aa'}", "pattern='a(?=a)a'", .refused = TRUE, .code = HN_ERROR_ATTRIBUTE },
    { "string={'aa'}", "pattern='a++'", .refused = TRUE, .code = HN_ERROR_ATTRIBUTE },
    { "string={'aa'}", "pattern='(*LIMIT_MATCH=1)a'", .refused = TRUE, .code = HN_ERROR_ATTRIBUTE },
    { "string={'aa'}", "pattern='(a'", .refused = TRUE, .code = HN_ERROR_ATTRIBUTE },
    { "string={'aa'}", "pattern='a)|(b'", .refused = TRUE, .code = HN_ERROR_ATTRIBUTE },
    { "string={'aa'}", NULL, .refused = TRUE, .code = HN_ERROR_ATTRIBUTE },
    { "f32={1}", "pattern='a'", .refused = TRUE, .code = HN_ERROR_TYPE },
};
HN_CASES(regexfullmatch, "RegexFullMatch", regexfullmatch);
