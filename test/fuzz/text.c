/* Models as text: what was parsed is printed, parsed again and printed the same. */
#include <string.h>

#include "fuzz.h"
#include "ir/ir_text.h"

static void round_trip(const HnModel *m, HnBudget *budget)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(GString) one = g_string_new(NULL), two = g_string_new(NULL);
    hn_model_print(m, -1, one);
    if (memchr(one->str, '\0', one->len) != NULL)
        g_error("the printed model holds a zero byte");
    g_autoptr(HnModel) again = hn_model_parse(one->str, budget, &error);
    if (again == NULL && !g_error_matches(error, HN_ERROR, HN_ERROR_BUDGET))
        g_error("what was printed cannot be parsed: %s\n%s", error->message, one->str);
    if (again == NULL)
        return;
    hn_model_print(again, -1, two);
    if (!g_string_equal(one, two))
        g_error("printed twice and different:\n%s\n%s", one->str, two->str);
}

static void one(const uint8_t *data, size_t size)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *text = g_strndup((const char *)data, size);
    HnBudget *budget = hn_budget_new((gsize)1 << 20); /* small: elements are printed */
    HnModel *m = hn_model_parse(text, budget, &error);
    fuzz_result(m != NULL, error);
    if (m != NULL && hn_model_verify(m, NULL))
        round_trip(m, budget);
    hn_model_free(m);
    fuzz_budget_done(budget);
}

/* Elements are printed twice and read once. */
const FuzzTarget fuzz_target = { .one = one, .times = 5 };
