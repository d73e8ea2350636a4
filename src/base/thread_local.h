/*
 * HN_THREAD_LOCAL: storage of each thread that is read without a call in a shared library, too. It is part of what a
 * program's threads have from their start, or, where the library is opened later, of the 1.6 KB that the C library
 * keeps spare for that (glibc's rtld.optional_static_tls and what is reserved for others): for a few small things.
 */
#pragma once

#define HN_THREAD_LOCAL _Thread_local __attribute__((tls_model("initial-exec")))
