/* A whole tool as its user meets it: exit status, stderr, Ctrl-C, a closed pipe, the progress bar on a terminal. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "cli/progress_bar.h"
#include "cli/report.h"

typedef struct {
    char *mode;
} Params;

static const GOptionEntry entries[] = {
    { "mode", 0, 0, G_OPTION_ARG_STRING, HN_FIELD(Params, mode), "what to do", "MODE" },
    G_OPTION_ENTRY_NULL,
};

/* work that goes on until Ctrl-C, and tells how far it is */
static gboolean work(HnContext *ctx, GError **error)
{
    hn_progress_tell(&ctx->progress, "working", 0, 100);
    if (write(STDOUT_FILENO, "ready\n", 6) != 6)
        return TRUE;
    for (guint64 i = 0; !hn_progress_stop(&ctx->progress, error); i++) {
        hn_sleep_ns(10000000);
        hn_progress_tell(&ctx->progress, "working", MIN(i, 99), 100);
    }
    return FALSE;
}

/* the same in phases, of all of which the bar tells */
static gboolean phases(HnContext *ctx, GError **error)
{
    if (write(STDOUT_FILENO, "ready\n", 6) != 6)
        return TRUE;
    for (int i = 0; !hn_progress_stop(&ctx->progress, error); i++) {
        hn_sleep_ns(10000000);
        hn_bar_phase(ctx->bar, i < 80 ? 1 : 2, 2);
        hn_bar_part(ctx->bar, i < 80 ? "first" : "second", MIN(i / 200.0, 1));
    }
    return FALSE;
}

/* more output than a pipe holds */
static gboolean flood(GError **error)
{
    g_autoptr(HnOutFile) out = hn_out_open("-", error);
    g_autofree char *piece = g_strnfill(100000, 'x');
    for (int i = 0; i < 100; i++)
        if (!hn_out_write(out, piece, 100000, error))
            return FALSE;
    return hn_out_commit(out, error);
}

static gboolean run(HnContext *ctx, GError **error)
{
    const char *mode = ((Params *)ctx->params)->mode;
    if (!g_strcmp0(mode, "work"))
        return work(ctx, error);
    if (!g_strcmp0(mode, "phases"))
        return phases(ctx, error);
    if (!g_strcmp0(mode, "flood"))
        return flood(error);
    if (!g_strcmp0(mode, "guard")) {
        g_set_error(error, HN_ERROR, HN_ERROR_GUARD, "node '%s' is too slow", "a\x1b[31m");
        return FALSE;
    }
    if (!g_strcmp0(mode, "stdin"))
        return hn_context_take_stdin(ctx, "the model", error) && hn_context_take_stdin(ctx, "the data", error);
    if (!g_strcmp0(mode, "stdout"))
        return hn_context_take_stdout(ctx, "the model", error);
    if (!g_strcmp0(mode, "read")) {
        g_autoptr(GBytes) bytes = hn_stdin_bytes(ctx->budget, error);
        return bytes != NULL;
    }
    hn_context_note(ctx, 1, "a note");
    hn_context_warn(ctx, "a warning about %d", ctx->n_args);
    return TRUE;
}

static const HnTool tool = {
    .name = "hone-test",
    .summary = "be a tool",
    .usage = "[OPTIONS] MODEL",
    .options = entries,
    .params_size = sizeof(Params),
    .run = run,
};

typedef struct {
    pid_t pid;
    int in, out, err; /* our ends */
} Child;

/* The tool in a process of its own; fds of pipes, or all three the terminal named by tty. */
static Child start(const char *line, const char *tty)
{
    int in[2], out[2], err[2];
    g_assert_cmpint(pipe(in) | pipe(out) | pipe(err), ==, 0);
    fflush(NULL);
    Child child = { fork(), in[1], out[0], err[0] };
    g_assert_cmpint(child.pid, >=, 0);
    if (child.pid == 0) {
        if (tty) {
            setsid();
            err[1] = open(tty, O_RDWR);
            ioctl(err[1], TIOCSCTTY, 0);
        }
        dup2(in[0], STDIN_FILENO);
        dup2(out[1], STDOUT_FILENO);
        dup2(err[1], STDERR_FILENO);
        for (int i = 0; i < 2; i++)
            close(in[i]), close(out[i]), close(err[i]);
        g_autofree char *full = g_strconcat("hone-test ", line, NULL);
        g_auto(GStrv) argv = g_strsplit(full, " ", -1);
        int status = hn_tool_main((int)g_strv_length(argv), argv, &tool);
        /* not exit(): the test's own buffers and handlers belong to its parent */
        g_clear_pointer(&argv, g_strfreev);
        _exit(status);
    }
    close(in[0]);
    close(out[1]);
    close(err[1]);
    return child;
}

static char *read_all(int fd)
{
    GString *s = g_string_new(NULL);
    char buf[4096];
    ssize_t n;
    while ((n = read(fd, buf, sizeof buf)) > 0)
        g_string_append_len(s, buf, n);
    close(fd);
    return g_string_free(s, FALSE);
}

static int finish(Child *child)
{
    int status;
    g_assert_cmpint(waitpid(child->pid, &status, 0), ==, child->pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

static void expect(const char *line, int status, const char *out, const char *err)
{
    Child child = start(line, NULL);
    close(child.in);
    g_autofree char *found_out = read_all(child.out), *found_err = read_all(child.err);
    g_assert_cmpstr(found_err, ==, err);
    if (out)
        g_assert_cmpstr(found_out, ==, out);
    g_assert_cmpint(finish(&child), ==, status);
}

static void test_status(void)
{
    expect("m", 0, "", "hone-test: a warning about 1\n");
    expect("-v a b", 0, "", "hone-test: a note\nhone-test: a warning about 2\n");
    expect("-q -v", 0, "", "");
    g_autofree char *version = g_strdup_printf("hone-test %s\n", hn_version());
    expect("--version", 0, version, "");
    expect("--help", 0, NULL, "");
    expect("--mode guard", 3, "", "hone-test: node 'a?[31m' is too slow\n");
    expect("--mod guard", 2, "", "hone-test: unknown option '--mod'; did you mean '--mode'?\n");
    expect("--mode stdin", 2, "", "hone-test: the model and the data cannot both come from stdin\n");
    expect("--mode stdout --json", 2, "",
           "hone-test: stdout carries the model: '--json' needs a file, '--json=FILE'\n");
    expect("--mode stdout", 0, "", "");
    expect("--mode read", 0, "", "");
}

static void test_bad_environment(void)
{
    g_setenv("HONE_MAX_ISA", "sse9", TRUE);
    expect("m", 2, "", "hone-test: HONE_MAX_ISA is 'sse9', not one of none, avx2, avx512, vnni, bf16, amx\n");
    g_unsetenv("HONE_MAX_ISA");
}

static void wait_ready(Child *child)
{
    char buf[6];
    g_assert_cmpint(read(child->out, buf, 6), ==, 6);
}

static void test_interrupt(void)
{
    Child child = start("--mode work", NULL);
    wait_ready(&child);
    kill(child.pid, SIGINT);
    g_autofree char *err = read_all(child.err);
    g_assert_cmpstr(err, ==, "hone-test: interrupted\n");
    g_assert_cmpint(finish(&child), ==, 130);
    close(child.in);
    close(child.out);
}

/* a tool that waits for its stdin ends too */
static void test_interrupt_read(void)
{
    Child child = start("--mode read", NULL);
    int status = 0;
    pid_t done = 0;
    /* when it started to wait cannot be seen from here; before, Ctrl-C ends it by default */
    hn_sleep_ns(300000000);
    kill(child.pid, SIGINT);
    for (int i = 0; i < 500 && done == 0; i++) {
        hn_sleep_ns(10000000);
        done = waitpid(child.pid, &status, WNOHANG);
    }
    g_assert_cmpint(done, ==, child.pid);
    g_assert_true(WIFSIGNALED(status) || WEXITSTATUS(status) == 130);
    close(child.in);
    close(child.out);
    close(child.err);
}

static void test_closed_stdout(void)
{
    Child child = start("--mode flood", NULL);
    close(child.out);
    close(child.in);
    g_autofree char *err = read_all(child.err);
    g_assert_cmpstr(err, ==, "");
    g_assert_cmpint(finish(&child), ==, 1);
}

/* what a terminal of 60 columns shows of the tool's stderr while it works for a second */
static char *on_terminal(const char *line, int *status)
{
    int master = posix_openpt(O_RDWR | O_NOCTTY);
    struct winsize size = { .ws_row = 24, .ws_col = 60 };
    if (master < 0 || grantpt(master) != 0 || unlockpt(master) != 0)
        return NULL;
    ioctl(master, TIOCSWINSZ, &size);
    g_setenv("TERM", "xterm", TRUE);
    Child child = start(line, ptsname(master));
    wait_ready(&child);
    hn_sleep_ns(1000000000);
    kill(child.pid, SIGINT);
    *status = finish(&child);
    close(child.in);
    close(child.out);
    close(child.err);
    fcntl(master, F_SETFL, O_NONBLOCK);
    return read_all(master);
}

static void test_bar(void)
{
    int status;
    g_autofree char *shown = on_terminal("--mode work", &status);
    if (!shown) {
        g_test_skip("no pseudo-terminals here");
        return;
    }
    g_assert_cmpint(status, ==, 130);
    g_auto(GStrv) lines = g_strsplit(shown, "\r", -1);
    guint drawn = 0;
    for (int i = 0; lines[i]; i++) {
        if (!g_str_has_prefix(lines[i], "working"))
            continue;
        drawn++;
        g_assert_nonnull(strstr(lines[i], "%"));
        g_assert_cmpuint(strlen(lines[i]), <=, 59 + strlen("\033[K"));
    }
    g_assert_cmpuint(drawn, >=, 1);
    g_assert_cmpuint(drawn, <=, 4); /* after half a second, six times a second at most */
    g_assert_nonnull(strstr(shown, "\r\033[Khone-test: interrupted"));

    g_autofree char *quiet = on_terminal("--mode work --no-progress", &status);
    g_assert_null(strstr(quiet, "working"));
}

static void test_phases(void)
{
    int status, drawn = 0, before = 0;
    g_autofree char *shown = on_terminal("--mode phases", &status);
    g_auto(GStrv) lines = g_strsplit(shown != NULL ? shown : "", "\r", -1);
    for (int i = 0; lines[i]; i++) {
        const char *part = strchr(lines[i], ']');
        if (part == NULL)
            continue;
        g_assert_true(g_str_has_prefix(lines[i], "1/2 first") || g_str_has_prefix(lines[i], "2/2 second"));
        g_assert_null(strstr(lines[i], "/s")); /* nothing is counted */
        const int percent = (int)g_ascii_strtod(part + 1, NULL);
        g_assert_cmpint(percent, >=, before); /* it goes on where the phase before ended */
        before = percent;
        drawn++;
    }
    if (shown != NULL) {
        g_assert_cmpint(drawn, >=, 1);
        g_assert_cmpint(drawn, <=, 4);
        g_assert_cmpint(before, >, 10);
        g_assert_nonnull(strstr(shown, " left"));
    }
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/cli/tool/status", test_status);
    g_test_add_func("/cli/tool/bad-environment", test_bad_environment);
    g_test_add_func("/cli/tool/interrupt", test_interrupt);
    g_test_add_func("/cli/tool/interrupt-read", test_interrupt_read);
    g_test_add_func("/cli/tool/closed-stdout", test_closed_stdout);
    g_test_add_func("/cli/tool/bar", test_bar);
    g_test_add_func("/cli/tool/phases", test_phases);
    return g_test_run();
}
