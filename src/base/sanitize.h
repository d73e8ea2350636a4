/*
 * Which sanitizers look on, whatever the compiler: HN_SANITIZE_ADDRESS and HN_SANITIZE_THREAD are 0 or 1.
 */
#pragma once

#ifdef __has_feature
#define HN_HAS_FEATURE(x) __has_feature(x) /* clang's */
#else
#define HN_HAS_FEATURE(x) 0
#endif

#if defined(__SANITIZE_ADDRESS__) || HN_HAS_FEATURE(address_sanitizer)
#define HN_SANITIZE_ADDRESS 1
#else
#define HN_SANITIZE_ADDRESS 0
#endif

#if defined(__SANITIZE_THREAD__) || HN_HAS_FEATURE(thread_sanitizer)
#define HN_SANITIZE_THREAD 1
#else
#define HN_SANITIZE_THREAD 0
#endif
