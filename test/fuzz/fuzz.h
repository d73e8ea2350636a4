/*
 * What the fuzz targets share. A target is one file that defines fuzz_target; frame.c runs it and checks what holds for
 * all of them. libFuzzer drives it when configured with -Dfuzz=true, else driver.c does, over the files of
 * test/fuzz/corpus/<target>. A property that does not hold is g_error(), which ends the program with the reason.
 *
 * Time per byte is such a property: an input may take 50 ms, 2 us per byte and 100 ns per byte of memory that its
 * budget granted (a file can ask for elements that are computed while its model is prepared) of processor time, ten
 * times that where sanitizers or a missing -O slow the program down. What an input is over it by once may be the
 * machine's doing; what is over it three times fails.
 */
#pragma once

#include <string.h>

#include "base/budget.h"
#include "base/error.h"
#include "base/rng.h"
#include "ir/graph.h"
#include "run/session.h"

G_BEGIN_DECLS

#define FUZZ_BUDGET ((gsize)64 << 20) /* bytes that one input may cost */

typedef struct {
    void (*one)(const uint8_t *data, size_t size);
    void (*init)(void); /* once, before the first input; NULL: nothing to do */
    /* An own change of data[size], of which max bytes are there: the new size, or 0 where bytes had better change
     * without knowing what they mean. NULL: they always do. */
    size_t (*mutate)(uint8_t *data, size_t size, size_t max, HnRng *rng);
    double times; /* how many times the time of one reading: what it does with each input; 0: 1 */
} FuzzTarget;

extern const FuzzTarget fuzz_target;

/* What is between the two takes as long as the input asks for, such as running a model, and is not counted. A target
 * bounds it by other means. */
void fuzz_untimed_begin(void);
void fuzz_untimed_end(void);

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
void fuzz_budget_done(HnBudget *budget);

/* Failed or not, an error is there when and only when something failed, and it is one line. */
static inline void fuzz_result(gboolean ok, const GError *error)
{
    if (ok != (error == NULL))
        g_error("%s", ok ? error->message : "failed without an error");
    /* GLib's, which a file's text ends */
    const char *quoted = error != NULL ? strstr(error->message, "Invalid key name: ") : NULL;
    if (error != NULL && quoted == NULL && (error->message[0] == '\0' || g_str_has_suffix(error->message, ".")))
        g_error("no message, or one that ends with a full stop: '%s'", error->message);
}

/* --- models: models.c, mutate.c ----------------------------------------------------------------------------------- */

/* A model as ONNX, or as text where it begins with "opset"; its external data is nowhere. */
HnModel *fuzz_read_model(const uint8_t *data, size_t size, HnBudget *budget, GError **error);

/* Some changes to a model that is not bound yet: attributes, weights, inputs, operators, versions. */
void fuzz_mutate(HnModel *m, HnRng *rng);

/* The same for FuzzTarget.mutate: m is changed and written to data. 0: it is NULL, or becomes too large. */
size_t fuzz_mutate_to(HnModel *m, uint8_t *data, size_t max, HnRng *rng);

/* Changes to the model that data holds, three times out of four: a FuzzTarget.mutate. */
size_t fuzz_mutate_model(uint8_t *data, size_t size, size_t max, HnRng *rng);

/* --- running models: running.c ------------------------------------------------------------------------------------ */

/* For FuzzTarget.init, before fuzz_watch(). */
void fuzz_watch_init(void);
/* Some seconds from now the budget says no to the next that asks, which ends a loop. NULL: it does not any more. */
void fuzz_watch(HnBudget *budget);
/* Prepares s for such inputs. FALSE with an error, or without one where that is too much to compute. */
gboolean fuzz_affordable(HnSession *s, HnTensor *const *in, GError **error);

G_END_DECLS
