/* NumPy's files: .npy and .npz, whole arrays and rows. */
#include "data/npz.h"
#include "fuzz.h"

/* Elements of a copy, so that every byte is looked at. */
static void look(HnTensor *t, GError *error)
{
    fuzz_result(t != NULL, error);
    if (t == NULL)
        return;
    g_autofree char *text = hn_tensor_describe(t);
    double sum = 0;
    for (int64_t i = 0; i < MIN(t->n, 4096); i++)
        sum += t->dtype != HN_STRING ? hn_tensor_get_f64(t, t->n - 1 - i) : 0;
    if (!hn_tensor_equal(t, t) && sum == sum)
        g_error("%s does not equal itself", text);
    hn_tensor_unref(t);
}

static void read_all(HnNpz *z)
{
    for (int i = 0; i < MIN(hn_npz_count(z), 8); i++) {
        const HnNpzArray *a = hn_npz_array(z, i);
        g_autoptr(GError) error = NULL;
        if (hn_npz_find(z, a->name) < 0)
            g_error("array '%s' is not found", a->name);
        if (a->head.ndim > 0 && a->head.dims[0] > 1) {
            g_autoptr(GError) rows = NULL;
            HnTensor *row = hn_npz_rows(z, i, a->head.dims[0] / 2, 1, &rows);
            look(row, rows);
        }
        HnTensor *t = hn_npz_read(z, i, &error);
        look(t, error);
    }
}

static void one(const uint8_t *data, size_t size)
{
    g_autoptr(GError) error = NULL;
    GBytes *bytes = fuzz_bytes(data, size);
    HnBudget *budget = hn_budget_new(FUZZ_BUDGET);
    if (hn_npz_is(data, size)) {
        HnNpz *z = hn_npz_open(bytes, "f.npz", budget, &error);
        fuzz_result(z != NULL, error);
        if (z != NULL)
            read_all(z);
        hn_npz_free(z);
    } else {
        HnTensor *t = hn_npy_read_bytes(bytes, "f.npy", budget, &error);
        look(t, error);
    }
    g_bytes_unref(bytes);
    fuzz_budget_done(budget);
}

const FuzzTarget fuzz_target = { .one = one };
