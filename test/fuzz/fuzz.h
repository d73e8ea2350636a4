/*
 * What the fuzz targets share. A target is one file with LLVMFuzzerTestOneInput(): libFuzzer drives it when configured
 * with -Dfuzz=true, else driver.c does, over the files of test/fuzz/corpus/<target>. A property that does not hold is
 * g_error(), which ends the program with the reason.
 */
#pragma once

#include "base/budget.h"
#include "base/error.h"
#include "base/rng.h"
#include "ir/graph.h"

G_BEGIN_DECLS

#define FUZZ_BUDGET ((gsize)64 << 20) /* bytes that one input may cost */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Called once before the first input. */
int LLVMFuzzerInitialize(int *argc, char ***argv);

/* The bytes as the reader gets them from a file: counted, and on the heap alone, so that the sanitizer sees the end. */
static inline GBytes *fuzz_bytes(const uint8_t *data, size_t size)
{
    return g_bytes_new(data, size);
}

/* From the bytes alone, so that a file repeats what it did. */
static inline uint64_t fuzz_seed(const uint8_t *data, size_t size)
{
    uint64_t h = 0xcbf29ce484222325u; /* FNV-1a */
    for (size_t i = 0; i < size; i++)
        h = (h ^ data[i]) * 0x100000001b3u;
    return h;
}

/* A budget of which nothing may be left in use when the target is done with it. */
static inline void fuzz_budget_done(HnBudget *budget)
{
    if (hn_budget_used(budget) != 0)
        g_error("%" G_GSIZE_FORMAT " bytes were not given back", hn_budget_used(budget));
    hn_budget_unref(budget);
}

/* Failed or not, an error is there when and only when something failed, and it is one line. */
static inline void fuzz_result(gboolean ok, const GError *error)
{
    if (ok != (error == NULL))
        g_error("%s", ok ? error->message : "failed without an error");
    if (error != NULL && (error->message[0] == '\0' || g_str_has_suffix(error->message, ".")))
        g_error("no message, or one that ends with a full stop: '%s'", error->message);
}

/* Some changes to a model that is not bound yet: attributes, weights, inputs, operators, versions. mutate.c */
void fuzz_mutate(HnModel *m, HnRng *rng);

G_END_DECLS
