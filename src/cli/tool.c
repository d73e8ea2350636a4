#include "cli/tool.h"

#include <errno.h>
#include <fcntl.h>
#include <locale.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/cpu.h"
#include "base/file.h"
#include "base/mapped.h"
#include "base/sanitize.h"
#include "base/text.h"
#include "cli/completion.h"
#include "cli/model_path.h"
#include "cli/out_of_memory.h"

#define MAX_LINE 1000 /* bytes of what is said at once: a name out of a model may be a million long */

/* behind twice the time limit the process is ended; a step takes ten times as long where it is watched */
#define GRACE_S (HN_SANITIZE_ADDRESS || HN_SANITIZE_THREAD ? 30 : 5)
#define STATUS_LIMIT 6         /* HN_ERROR_BUDGET's */
#define STATUS_INTERRUPTED 130 /* HN_ERROR_INTERRUPTED's */
#define LEAVE_NS 300000000     /* behind Ctrl-C, and again: whether the process is to be left */
/* timeout(1) and its like send the signal twice, to the process and to its group: that is one Ctrl-C */
#define SAME_KEY_MS 200

/* A signal handler can reach nothing but globals. What Ctrl-C and the alarm of --time-limit set: an HnHalt, which
 * HnProgress.cancel and the budget read; ... */
static gint halt;
/* ... and the clock, with how its second alarm ends a process that did not end by itself: written before the first is
 * due. */
static struct {
    gboolean runs;
    timer_t timer;
    volatile sig_atomic_t due; /* the time limit was reached before */
    char line[128];
    size_t length;
} timing;

static gint first_interrupt; /* when: ms of the monotonic clock, which may wrap; 0: not yet */

/* The clock that runs behind Ctrl-C: what waits for a device does not see `halt`. */
static struct {
    gboolean runs;
    timer_t timer;
    guint seen; /* the wait that it was in when the clock rang before */
} leaving;

/* The first asks for an end, the second kills. */
static void on_interrupt(int signal_number)
{
    static const struct itimerspec soon = { .it_value = { 0, LEAVE_NS }, .it_interval = { 0, LEAVE_NS } };
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    const guint now = (guint)t.tv_sec * 1000 + (guint)(t.tv_nsec / 1000000) + 1;
    if (!g_atomic_int_compare_and_exchange(&first_interrupt, 0, (gint)now) &&
        now - (guint)g_atomic_int_get(&first_interrupt) > SAME_KEY_MS) {
        signal(signal_number, SIG_DFL);
        raise(signal_number); /* is delivered on return */
    }
    hn_halt_set(&halt, HN_HALT_USER);
    if (leaving.runs)
        timer_settime(leaving.timer, 0, &soon, NULL);
}

/* Files that are not complete have no names, or are known to hn_guard_unlink(): ending here leaves none behind. */
static void on_alarm(G_GNUC_UNUSED int signal_number)
{
    if (timing.due) {
        ssize_t ignored = write(STDERR_FILENO, timing.line, timing.length);
        (void)ignored;
        hn_guard_unlink();
        _exit(STATUS_LIMIT);
    }
    timing.due = 1;
    hn_halt_set(&halt, HN_HALT_TIME);
}

/* The same for whoever reads a mapped file that another program has cut short: the tool's name, and whether a thread
 * has said so already. */
static const char *tool_name;
static gint bus_seen;

static void put(const char *text)
{
    if (write(STDERR_FILENO, text, strlen(text)) < 0)
        return; /* nobody to tell */
}

static void on_leave(G_GNUC_UNUSED int signal_number)
{
    const guint wait = hn_guard_waits(), before = leaving.seen;
    leaving.seen = wait;
    if (wait == 0 || wait != before)
        return;
    put(tool_name);
    put(": interrupted\n");
    hn_guard_unlink();
    _exit(STATUS_INTERRUPTED);
}

/* Runs in whatever thread was hit, on its stack, and calls only what may be called there. */
static void on_bus(int signal_number, siginfo_t *info, G_GNUC_UNUSED void *where)
{
    if (!g_atomic_int_compare_and_exchange(&bus_seen, 0, 1))
        for (;;)
            pause(); /* another thread is ending the process */
    const char *file = info->si_code > 0 ? hn_guard_find(info->si_addr) : NULL;
    if (file) {
        put(tool_name);
        put(": '");
        put(file);
        put("' was cut short by another program while it was being read\n");
        hn_guard_unlink();
        _exit(1);
    }
    signal(signal_number, SIG_DFL);
    raise(signal_number); /* is delivered on return */
}

static void prepare_leaving(void)
{
    struct sigaction action = { .sa_handler = on_leave, .sa_flags = SA_RESTART };
    struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGVTALRM };
    sigemptyset(&action.sa_mask);
    leaving.runs = leaving.runs || (sigaction(SIGVTALRM, &action, NULL) == 0 &&
                                    timer_create(CLOCK_MONOTONIC, &event, &leaving.timer) == 0);
}

/* Blocking calls are not restarted, so that reading a pipe ends too. */
static void catch_signals(void)
{
    struct sigaction action = { .sa_handler = on_interrupt };
    struct sigaction ignore = { .sa_handler = SIG_IGN };
    struct sigaction bus = { .sa_sigaction = on_bus, .sa_flags = SA_SIGINFO };
    struct sigaction old;
    sigemptyset(&action.sa_mask);
    sigemptyset(&ignore.sa_mask);
    sigemptyset(&bus.sa_mask);
    sigaction(SIGPIPE, &ignore, NULL);
    sigaction(SIGBUS, &bus, NULL);
    /* a shell starts background jobs with SIGINT ignored: leave it so */
    if (sigaction(SIGINT, NULL, &old) == 0 && old.sa_handler != SIG_IGN)
        sigaction(SIGINT, &action, NULL);
    prepare_leaving();
}

char *hn_tool_line(const char *name, const char *text)
{
    g_autofree char *clean = hn_text_clean(text), *cut = hn_text_cut(clean, MAX_LINE);
    return g_strconcat(name, ": ", cut, NULL);
}

static char *time_words(const HnContext *ctx)
{
    return g_strdup_printf("time limit of %g s reached", ctx->common.time_limit);
}

static struct timespec timespec_of(double seconds)
{
    return (struct timespec){ .tv_sec = (time_t)seconds, .tv_nsec = (long)((seconds - floor(seconds)) * 1e9) };
}

/* Two alarms: at the limit, and long enough behind it for everything that looks at `halt` to have ended. */
static gboolean start_clock(const HnContext *ctx, guint64 since_ns, GError **error)
{
    const double seconds = ctx->common.time_limit, passed = (double)(hn_now_ns() - since_ns) * 1e-9;
    if (seconds <= 0)
        return TRUE;
    g_autofree char *words = time_words(ctx);
    const size_t length = (size_t)g_snprintf(timing.line, sizeof timing.line, "%s: %s\n", ctx->tool->name, words);
    timing.length = MIN(length, sizeof timing.line - 1);
    struct sigaction action = { .sa_handler = on_alarm };
    struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGALRM };
    const struct itimerspec due = { .it_value = timespec_of(MAX(seconds - passed, 1e-6)),
                                    .it_interval = timespec_of(seconds + GRACE_S) };
    sigemptyset(&action.sa_mask);
    timing.runs = sigaction(SIGALRM, &action, NULL) == 0 && timer_create(CLOCK_MONOTONIC, &event, &timing.timer) == 0;
    if (timing.runs && timer_settime(timing.timer, 0, &due, NULL) == 0)
        return TRUE;
    g_set_error(error, HN_ERROR, HN_ERROR_UNSUPPORTED, "no clock can be set for a time limit: %s", g_strerror(errno));
    return FALSE;
}

/* The next tool in this process has its own time. */
static void stop_clock(void)
{
    if (timing.runs)
        timer_delete(timing.timer);
    timing.runs = FALSE;
    timing.due = 0;
    g_atomic_int_compare_and_exchange(&halt, HN_HALT_TIME, HN_HALT_NOT);
}

/* Where somebody has closed a standard descriptor, the next file would get its number, and the talk meant for stderr.
 * What is opened in its place fails as a closed one does: it cannot be read, or written to. */
static void fill_standard(void)
{
    static const int flags[] = { O_WRONLY, O_RDONLY, O_WRONLY };
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0 && errno == EBADF && open("/dev/null", flags[fd]) < 0)
            return;
}

static void say(HnContext *ctx, const char *name, const char *text)
{
    g_autofree char *line = hn_tool_line(name, text);
    g_autoptr(GString) shown = g_string_new(NULL);
    hn_terminal_wrap(shown, line, hn_terminal_width(STDERR_FILENO));
    hn_bar_wipe(ctx ? ctx->bar : NULL);
    for (gsize at = 0; at < shown->len;) {
        ssize_t n = write(STDERR_FILENO, shown->str + at, shown->len - at);
        if (n <= 0)
            return;
        at += (gsize)n;
    }
}

void hn_context_warn(HnContext *ctx, const char *format, ...)
{
    if (ctx->common.quiet)
        return;
    va_list args;
    va_start(args, format);
    g_autofree char *text = g_strdup_vprintf(format, args);
    va_end(args);
    say(ctx, ctx->tool->name, text);
}

void hn_context_note(HnContext *ctx, int level, const char *format, ...)
{
    if (ctx->common.quiet || ctx->common.verbose < level)
        return;
    va_list args;
    va_start(args, format);
    g_autofree char *text = g_strdup_vprintf(format, args);
    va_end(args);
    say(ctx, ctx->tool->name, text);
}

gboolean hn_context_take_stdin(HnContext *ctx, const char *what, GError **error)
{
    if (ctx->stdin_user) {
        g_set_error(error, HN_ERROR, HN_ERROR_USAGE, "%s and %s cannot both come from stdin", ctx->stdin_user, what);
        return FALSE;
    }
    if (isatty(STDIN_FILENO)) {
        g_set_error(error, HN_ERROR, HN_ERROR_USAGE, "cannot read %s from a terminal", what);
        return FALSE;
    }
    ctx->stdin_user = what;
    return TRUE;
}

gboolean hn_context_take_stdout(HnContext *ctx, const char *what, GError **error)
{
    const HnCommon *c = &ctx->common;
    if (ctx->stdout_user) {
        g_set_error(error, HN_ERROR, HN_ERROR_USAGE, "%s and %s cannot both go to stdout", ctx->stdout_user, what);
        return FALSE;
    }
    if ((c->json && !c->json_file) || (c->csv && !c->csv_file)) {
        const char *option = c->json && !c->json_file ? "--json" : "--csv";
        g_set_error(error, HN_ERROR, HN_ERROR_USAGE, "stdout carries %s: '%s' needs a file, '%s=FILE'", what, option,
                    option);
        return FALSE;
    }
    if (c->format != HN_FORMAT_TABLE) {
        g_set_error(error, HN_ERROR, HN_ERROR_USAGE, "stdout carries %s: the report needs a file, '--report FILE'",
                    what);
        return FALSE;
    }
    if (isatty(STDOUT_FILENO)) {
        g_set_error(error, HN_ERROR, HN_ERROR_USAGE, "will not write %s to a terminal; redirect it or name a file",
                    what);
        return FALSE;
    }
    ctx->stdout_user = what;
    return TRUE;
}

/* Nobody reads stdout any more: head(1) has seen enough. */
static gboolean stdout_is_closed(void)
{
    struct pollfd p = { .fd = STDOUT_FILENO, .events = POLLOUT };
    return poll(&p, 1, 0) == 1 && (p.revents & POLLERR);
}

static int finish(HnContext *ctx, const HnTool *tool, const GError *error)
{
    if (!error)
        return 0;
    if (ctx && g_atomic_int_get(&halt) == HN_HALT_TIME) { /* whatever it was that it made fail */
        g_autofree char *words = time_words(ctx);
        say(ctx, tool->name, words);
        return STATUS_LIMIT;
    }
    if (g_error_matches(error, HN_ERROR, HN_ERROR_INTERRUPTED)) { /* wherever it was */
        say(ctx, tool->name, "interrupted");
        return hn_error_exit_status(error);
    }
    gboolean quiet = g_error_matches(error, HN_ERROR, HN_ERROR_IO) && stdout_is_closed();
    if (!quiet)
        say(ctx, tool->name, error->message);
    return hn_error_exit_status(error);
}

static gboolean print_stdout(const char *text, GError **error)
{
    return hn_out_save("-", text, strlen(text), error);
}

static gboolean find_model(char **name, GError **error)
{
    char *path = *name != NULL ? hn_model_path(*name, error) : NULL;
    if (path == NULL)
        return *name == NULL;
    g_free(*name);
    *name = path;
    return TRUE;
}

/* Folders among the arguments, and as values of options that name a MODEL, become the models in them. */
static gboolean find_models(HnContext *ctx, GError **error)
{
    for (int i = 0; i < ctx->n_args; i++)
        if (!find_model(&ctx->args[i], error))
            return FALSE;
    for (const GOptionEntry *e = ctx->tool->options; e != NULL && e->long_name != NULL; e++)
        if (e->arg == G_OPTION_ARG_FILENAME && g_strcmp0(e->arg_description, "MODEL") == 0 &&
            !find_model((char **)(gpointer)((guint8 *)ctx->params + GPOINTER_TO_SIZE(e->arg_data)), error))
            return FALSE;
    return TRUE;
}

static gboolean act(HnContext *ctx, HnAction action, guint64 since_ns, GError **error)
{
    const HnTool *tool = ctx->tool;
    if (action == HN_ACTION_HELP || action == HN_ACTION_HELP_ALL) {
        g_autofree char *help = hn_options_help(tool, action == HN_ACTION_HELP_ALL);
        return print_stdout(help, error);
    }
    if (action == HN_ACTION_COMPLETION) {
        g_autofree char *script = hn_completion(tool, ctx->common.completion, error);
        return script != NULL && print_stdout(script, error);
    }
    if (action == HN_ACTION_VERSION) {
        g_autofree char *line = g_strdup_printf("%s %s\n", tool->name, hn_version());
        return print_stdout(line, error);
    }
    return hn_cpu_check_env(error) && find_models(ctx, error) && start_clock(ctx, since_ns, error) &&
           tool->run(ctx, error);
}

int hn_tool_main(int argc, char **argv, const HnTool *tool)
{
    const guint64 since_ns = hn_now_ns();
    /* characters as the user's terminal has them (UTF-8 where it does not say), numbers always as in C */
    const char *locale = setlocale(LC_CTYPE, "");
    if (!locale || !strcmp(locale, "C") || !strcmp(locale, "POSIX"))
        setlocale(LC_CTYPE, "C.UTF-8");
    g_set_prgname(tool->name);
    tool_name = tool->name;
    fill_standard();
    catch_signals();

    g_autoptr(GError) error = NULL;
    g_autofree gpointer params = g_malloc0(MAX(tool->params_size, 1));
    HnContext ctx = { .tool = tool, .params = params, .argv = argv };
    HnAction action;
    if (!hn_options_parse(tool, argc, argv, &ctx.common, params, &ctx.args, &action, &error))
        return finish(NULL, tool, error);

    ctx.n_args = (int)g_strv_length(ctx.args);
    const gsize limit = tool->counts_memory != NULL && tool->counts_memory(params) ? 0 : ctx.common.mem_limit;
    ctx.budget = hn_budget_new(hn_memory_start(tool->name, limit, ctx.common.threads));
    hn_budget_limit_device(ctx.budget, ctx.common.device_mem_limit);
    ctx.bar = hn_bar_new(STDERR_FILENO, !ctx.common.quiet && !ctx.common.no_progress);
    ctx.progress = (HnProgress){ hn_bar_tell, ctx.bar, &halt };
    ctx.halt = &halt;
    ctx.since_ns = since_ns;
    ctx.load = hn_cpu_load(NULL);
    hn_budget_watch(ctx.budget, &halt);
    gboolean ok = act(&ctx, action, since_ns, &error);
    hn_bar_wipe(ctx.bar);
    g_assert(ok == !error);
    int status = finish(&ctx, tool, error);

    stop_clock();
    hn_bar_free(ctx.bar);
    hn_budget_unref(ctx.budget);
    hn_options_clear(tool, params);
    hn_common_clear(&ctx.common);
    g_strfreev(ctx.args);
    return status;
}
