/* ir/dim: fixed examples, and random expressions against plain integer arithmetic. */
#include "ir/dim.h"

#include "base/rng.h"

static char *text(HnDim d)
{
    GString *s = g_string_new(NULL);
    hn_dim_print(d, s);
    return g_string_free(s, FALSE);
}

#define IS(d, want)                     \
    do {                                \
        g_autofree char *is_ = text(d); \
        g_assert_cmpstr(is_, ==, want); \
    } while (0)

static HnDim num(int64_t n)
{
    return hn_dim(n);
}

static HnDim sym(const char *s)
{
    return hn_dim_symbol(s);
}

static void test_numbers(void)
{
    IS(hn_dim_add(num(2), num(3)), "5");
    IS(hn_dim_sub(num(2), num(3)), "-1");
    IS(hn_dim_mul(num(-2), num(3)), "-6");
    IS(hn_dim_floor_div(num(-7), num(2)), "-4");
    IS(hn_dim_floor_div(num(7), num(-2)), "-4");
    IS(hn_dim_ceil_div(num(7), num(2)), "4");
    IS(hn_dim_ceil_div(num(-7), num(2)), "-3");
    IS(hn_dim_mod(num(-7), num(3)), "2");
    IS(hn_dim_max(num(3), num(5)), "5");
    IS(hn_dim_min(num(3), num(5)), "3");
    IS(hn_dim_floor_div(num(1), num(0)), "?");
    IS(hn_dim_mod(num(1), num(0)), "?");
    IS(hn_dim_floor_div(num(0), num(0)), "?");
    IS(hn_dim_add(num(INT64_MAX), num(1)), "?");
    IS(hn_dim_sub(num(INT64_MIN), num(1)), "?");
    IS(hn_dim_mul(num(INT64_MAX), num(2)), "?");
    IS(hn_dim_floor_div(num(INT64_MIN), num(-1)), "?");
    IS(hn_dim_floor_div(num(INT64_MIN), num(INT64_MIN)), "1");
    IS(hn_dim_mul(hn_dim_unknown(), num(0)), "0");
    IS(hn_dim_mul(hn_dim_unknown(), num(2)), "?");
    g_assert_true(hn_dim_equal(num(4), num(4)));
    g_assert_true(hn_dim_differ(num(4), num(5)));
    g_assert_false(hn_dim_equal(hn_dim_unknown(), hn_dim_unknown()));
    g_assert_false(hn_dim_differ(hn_dim_unknown(), num(3)));
}

static void test_expressions(void)
{
    HnDim n = sym("N"), h = sym("h"), w = sym("w");
    IS(hn_dim_add(hn_dim_mul(num(2), n), num(1)), "2*N+1");
    IS(hn_dim_sub(n, n), "0");
    IS(hn_dim_sub(num(8), n), "-N+8");
    IS(hn_dim_mul(hn_dim_add(h, num(1)), hn_dim_sub(h, num(1))), "h*h-1");
    IS(hn_dim_floor_div(hn_dim_add(h, num(1)), num(2)), "floor((h+1)/2)");
    IS(hn_dim_ceil_div(h, num(2)), "floor((h+1)/2)");
    IS(hn_dim_add(hn_dim_floor_div(hn_dim_sub(h, num(1)), num(2)), num(1)), "floor((h+1)/2)");
    IS(hn_dim_floor_div(hn_dim_add(hn_dim_mul(num(4), h), num(3)), num(2)), "2*h+1");
    IS(hn_dim_floor_div(hn_dim_mul(num(2), hn_dim_add(h, num(1))), num(4)), "floor((h+1)/2)");
    IS(hn_dim_floor_div(hn_dim_floor_div(h, num(2)), num(2)), "floor(h/4)");
    IS(hn_dim_floor_div(hn_dim_mul(n, hn_dim_mul(h, w)), hn_dim_mul(h, w)), "N");
    IS(hn_dim_floor_div(hn_dim_sub(hn_dim_mul(h, h), num(1)), hn_dim_add(h, num(1))), "h-1");
    IS(hn_dim_floor_div(hn_dim_mul(n, h), hn_dim_mul(n, num(2))), "floor(h/2)");
    IS(hn_dim_floor_div(h, w), "floor(h/w)");
    IS(hn_dim_floor_div(h, hn_dim_mul(num(2), w)), "floor(h/(2*w))");
    IS(hn_dim_ceil_div(h, w), "ceil(h/w)");
    IS(hn_dim_mod(h, num(2)), "-2*floor(h/2)+h");
    IS(hn_dim_max(n, num(0)), "N");
    IS(hn_dim_min(n, num(0)), "0");
    IS(hn_dim_max(n, num(1)), "max(1,N)");
    IS(hn_dim_max(hn_dim_add(n, num(2)), hn_dim_add(n, num(1))), "N+2");
    IS(hn_dim_min(h, w), "min(h,w)");
    g_assert_true(hn_dim_equal(hn_dim_add(h, w), hn_dim_add(w, h)));
    g_assert_true(hn_dim_differ(hn_dim_add(h, num(1)), h));
    g_assert_false(hn_dim_differ(h, w));
    g_assert_false(hn_dim_differ(hn_dim_mul(num(2), h), h));
}

static void test_names(void)
{
    /* an expression of ours, read back from a file */
    IS(hn_dim_sub(sym("2*N+1"), num(1)), "2*N");
    IS(hn_dim_mul(sym("floor((h+1)/2)"), num(2)), "2*floor((h+1)/2)");
    /* not the way we write it: names */
    static const char *const names[] = { "1+N",       "N + 1", "batch size", "2N",    "12",
                                         "-",         "it's",  "a\\b",       "N*",    "floor(h)",
                                         "floor(h/2", "max(a", "'quoted'+'", "unk-1", "?" };
    for (gsize i = 0; i < G_N_ELEMENTS(names); i++) {
        HnDim d = sym(names[i]);
        g_assert_cmpstr(d.sym, ==, names[i]);
        HnDim up = hn_dim_add(d, num(1));
        g_assert_true(up.sym != NULL);
        g_assert_true(hn_dim_equal(hn_dim_sub(up, num(1)), d));
        g_assert_true(hn_dim_equal(hn_dim_sub(sym(up.sym), num(1)), d)); /* through a file */
        g_assert_true(hn_dim_differ(up, d));
    }
    IS(sym("unk__1"), "unk__1");
    IS(sym("batch size"), "'batch size'");
    IS(sym("?"), "'?'");
    IS(hn_dim_mul(sym("batch size"), num(3)), "3*'batch size'");
    IS(sym(""), "?");
    /* quotes around what needs none are part of a name, or two texts would mean one expression */
    g_assert_false(hn_dim_equal(hn_dim_sub(sym("'a+b'+1"), num(1)), sym("a+b")));
    g_assert_false(hn_dim_equal(hn_dim_sub(sym("'a'+1"), num(1)), sym("a")));
}

static void test_limits(void)
{
    HnDim sum = num(0);
    for (int i = 0; i < 40; i++) {
        g_autofree char *name = g_strdup_printf("x%d", i);
        sum = hn_dim_add(sum, sym(name));
        g_assert_true(i >= 24 ? !sum.sym : sum.sym != NULL);
    }
    HnDim product = sym("a"), nested = sym("n");
    for (int i = 0; i < 20; i++) {
        product = hn_dim_mul(product, sym("a"));
        nested = hn_dim_floor_div(sym("b"), hn_dim_add(nested, num(1)));
    }
    g_assert_false(product.known || product.sym);
    g_assert_false(nested.known || nested.sym);
    g_autofree char *longest = g_strnfill(5000, 'n');
    g_assert_cmpstr(sym(longest).sym, ==, longest);
    g_assert_null(hn_dim_add(sym(longest), sym("a b")).sym);
    IS(hn_dim_mul(hn_dim_mul(sym("N"), num(INT64_MAX)), num(2)), "?");
    GString *deep = g_string_new(NULL);
    for (int i = 0; i < 90; i++)
        g_string_append(deep, "max(");
    g_assert_true(hn_dim_add(sym(deep->str), num(1)).sym != NULL);
    g_string_free(deep, TRUE);
}

static int64_t floor_div(int64_t a, int64_t b)
{
    return a / b - ((a % b != 0) && ((a < 0) != (b < 0)));
}

static void test_random(void)
{
    static const char *const names[] = { "N", "h", "w", "batch size" };
    HnRng rng = hn_rng(71);
    int written = 0;
    for (int round = 0; round < 4000; round++) {
        int64_t values[G_N_ELEMENTS(names)];
        g_autoptr(GHashTable) table = g_hash_table_new(g_str_hash, g_str_equal);
        for (gsize i = 0; i < G_N_ELEMENTS(names); i++) {
            values[i] = hn_rng_int(&rng, 0, 60);
            g_hash_table_insert(table, (gpointer)names[i], &values[i]);
        }
        HnDim d[12];
        int64_t v[12];
        for (int k = 0; k < 12; k++) {
            if (k < 4) {
                d[k] = sym(names[k]);
                v[k] = values[k];
                continue;
            }
            int a = (int)hn_rng_int(&rng, 0, k - 1), b = (int)hn_rng_int(&rng, 0, k);
            HnDim y = b < k ? d[b] : num(hn_rng_int(&rng, -4, 6));
            int64_t vy = b < k ? v[b] : y.n;
            if (ABS(vy) > 100000 || ABS(v[a]) > 100000)
                y = num(vy = 1);
            switch (hn_rng_int(&rng, 0, 7)) {
            case 0:
                d[k] = hn_dim_add(d[a], y), v[k] = v[a] + vy;
                break;
            case 1:
                d[k] = hn_dim_sub(d[a], y), v[k] = v[a] - vy;
                break;
            case 2:
                d[k] = hn_dim_mul(d[a], y), v[k] = v[a] * vy;
                break;
            case 3:
                d[k] = hn_dim_max(d[a], y), v[k] = MAX(v[a], vy);
                break;
            case 4:
                d[k] = hn_dim_min(d[a], y), v[k] = MIN(v[a], vy);
                break;
            default: /* a divisor of 0 is nobody's */
                if (vy == 0)
                    y = num(vy = 2);
                int kind = (int)hn_rng_int(&rng, 0, 2);
                d[k] = kind == 0   ? hn_dim_floor_div(d[a], y)
                       : kind == 1 ? hn_dim_ceil_div(d[a], y)
                                   : hn_dim_mod(d[a], y);
                v[k] = kind == 0   ? floor_div(v[a], vy)
                       : kind == 1 ? -floor_div(-v[a], vy)
                                   : v[a] - vy * floor_div(v[a], vy);
            }
            int64_t got;
            if (hn_dim_eval(d[k], table, &got)) { /* not: unknown, or a 0 that only this choice of values divides by */
                g_assert_cmpint(got, ==, v[k]);
                written++;
            }
            if (d[k].sym) { /* read back, it is the same expression */
                HnDim again = sym(d[k].sym), up = hn_dim_add(again, num(3));
                g_assert_true(!up.sym || hn_dim_equal(up, hn_dim_add(d[k], num(3))));
                g_assert_true(!up.sym || hn_dim_equal(hn_dim_sub(up, num(3)), d[k]));
            }
        }
    }
    g_assert_cmpint(written, >, 10000);
}

static void test_eval(void)
{
    g_autoptr(GHashTable) table = g_hash_table_new(g_str_hash, g_str_equal);
    int64_t n = 5, v = -1;
    g_hash_table_insert(table, (gpointer) "N", &n);
    g_assert_true(hn_dim_eval(num(7), NULL, &v));
    g_assert_cmpint(v, ==, 7);
    g_assert_true(hn_dim_eval(sym("2*N+1"), table, &v));
    g_assert_cmpint(v, ==, 11);
    g_assert_false(hn_dim_eval(sym("N+M"), table, &v));
    g_assert_false(hn_dim_eval(hn_dim_unknown(), table, &v));
    n = INT64_MAX;
    g_assert_false(hn_dim_eval(sym("2*N+1"), table, &v));
    g_assert_cmpint(v, ==, 11);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/ir/dim/numbers", test_numbers);
    g_test_add_func("/ir/dim/expressions", test_expressions);
    g_test_add_func("/ir/dim/names", test_names);
    g_test_add_func("/ir/dim/limits", test_limits);
    g_test_add_func("/ir/dim/random", test_random);
    g_test_add_func("/ir/dim/eval", test_eval);
    return g_test_run();
}
