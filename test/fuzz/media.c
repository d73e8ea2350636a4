/* What people write: key files of preprocessing, lists of files, numbers as text, lists and bytes. The first byte says
 * which of them the others are. */
#include "data/media_files.h"
#include "data/numbers.h"
#include "fuzz.h"
#include "ir/ir_text.h"

static HnModel *model;

static void init(void)
{
    const char text[] = "opset 17\ngraph main(%x:f32[N,2,3], %i:i8[N], %b:bool[2], %u:u64[?]) -> () {\n}\n";
    g_autoptr(GError) error = NULL;
    model = hn_model_parse(text, NULL, &error);
    if (model == NULL)
        g_error("%s", error->message);
}

static void keys(const char *text, size_t size)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(HnPreprocess) p = hn_preprocess_new();
    const gboolean ok = hn_preprocess_read_text(p, text, size, "f.conf", &error);
    if (ok != (error == NULL))
        g_error("%s", ok ? error->message : "failed without an error");
    const HnInputKeys k = hn_preprocess_keys(p, "x");
    g_autofree char *words = hn_input_keys_describe(&k);
    if (ok && k.n_mean > 4)
        g_error("too many means: %s", words);
}

static void list(const char *text, size_t size)
{
    g_autoptr(GError) error = NULL;
    HnMediaFiles f = { 0 };
    if (!hn_media_files_are(text, size))
        return;
    const gboolean ok = hn_media_files_list(&f, text, size, "f.csv", &error);
    fuzz_result(ok, error);
    if (ok && f.labels != NULL && f.labels->len != f.paths->len)
        g_error("%u labels for %u files", f.labels->len, f.paths->len);
    hn_media_files_clear(&f);
}

static void numbers(int kind, const char *text, size_t size, HnBudget *budget)
{
    for (guint i = 0; i < model->graph->inputs->len; i++) {
        g_autoptr(GError) error = NULL;
        const HnValue *v = model->graph->inputs->pdata[i];
        g_autofree char *words = g_strndup(text, size);
        g_autoptr(GBytes) bytes = g_bytes_new(text, size);
        HnTensor *t = kind == 2   ? hn_numbers_text(text, size, v, "f.txt", budget, &error)
                      : kind == 3 ? hn_numbers_list(words, v, budget, &error)
                                  : hn_numbers_raw(bytes, v, "f.raw", budget, &error);
        fuzz_result(t != NULL, error);
        if (t != NULL)
            hn_tensor_unref(t);
    }
}

static void one(const uint8_t *data, size_t size)
{
    HnBudget *budget = hn_budget_new(FUZZ_BUDGET);
    g_autofree char *copy = size > 0 ? g_memdup2(data + 1, size - 1) : NULL;
    const int kind = size > 1 ? data[0] % 5 : -1;
    if (kind == 0)
        keys(copy, size - 1);
    else if (kind == 1)
        list(copy, size - 1);
    else if (kind > 1)
        numbers(kind, copy, size - 1, budget);
    fuzz_budget_done(budget);
}

const FuzzTarget fuzz_target = { .one = one, .init = init, .times = 8 };
