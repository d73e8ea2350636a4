/*
 * Waits that nobody can end, as a signal handler sees them.
 */
#include "base/mapped.h"

static void test_waits(void)
{
    g_assert_cmpuint(hn_guard_waits(), ==, 0);
    hn_guard_wait_begin();
    const guint first = hn_guard_waits();
    g_assert_cmpuint(first, !=, 0);
    g_assert_cmpuint(hn_guard_waits(), ==, first); /* the same still */
    hn_guard_wait_end();
    g_assert_cmpuint(hn_guard_waits(), ==, 0);
    hn_guard_wait_begin();
    const guint second = hn_guard_waits();
    g_assert_cmpuint(second, !=, 0);
    g_assert_cmpuint(second, !=, first);
    hn_guard_wait_begin(); /* of another thread */
    hn_guard_wait_end();
    g_assert_cmpuint(hn_guard_waits(), !=, 0);
    hn_guard_wait_end();
    g_assert_cmpuint(hn_guard_waits(), ==, 0);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/base/mapped/waits", test_waits);
    return g_test_run();
}
