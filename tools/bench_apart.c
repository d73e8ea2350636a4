/*
 * hone-bench: the highest resident set of a model by itself. That of this process counts what models before it left
 * behind (their files, their samples) and the times that are kept. For each model the program is started once more with
 * the same arguments, which opens and runs that one and nothing else, and says on stdout what it took. It shares no
 * memory with this process: pages that two processes share are mapped one by one, and a model that runs on such is
 * slower.
 */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "hone_bench.h"

#define QUESTION "HONE_BENCH_PEAK" /* in the environment: point, model, batch and the dimension it is of: "0,1,8,N" */
#define LOOK_MS 20                 /* from one look at the clock to the next while the other one runs */

/* --- in the program that is asked --------------------------------------------------------------------------------- */

static gboolean run_sets(Instance *x)
{
    guint64 start, end;
    for (guint k = 0; k < x->n_sets; k++)
        if (!instance_run(x, k, &start, &end, NULL))
            return FALSE;
    return TRUE;
}

/* As many instances as are measured at once, each run on every sample. 0: that did not work. */
static guint64 peak_of(Bench *b, const Point *point, guint model)
{
    Subject s;
    subject_init(&s, b, point, (int)model);
    gboolean ok = subject_open(&s, NULL) && (!s.backend->computes || run_sets(&s.first));
    for (int i = 1; ok && s.backend->computes && i < s.streams; i++) {
        Instance *x = g_new0(Instance, 1); /* the process ends with it */
        ok = instance_share(&s, x, NULL) && run_sets(x);
    }
    return ok ? bench_peak_rss() : 0;
}

gboolean bench_apart_is_asked(void)
{
    return g_getenv(QUESTION) != NULL;
}

gboolean bench_apart_answer(Bench *b, GError **error)
{
    g_auto(GStrv) q = g_strsplit(g_getenv(QUESTION), ",", 4);
    guint64 at[3];
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    b->ctx->progress.fn = NULL;
    for (int i = 0; i < 3; i++)
        if (g_strv_length(q) < 4 || !g_ascii_string_to_unsigned(q[i], 10, 0, G_MAXINT64, &at[i], NULL))
            return hn_tool_usage(error, QUESTION " is for hone-bench alone");
    if (at[0] >= b->points->len || at[1] >= (guint64)bench_sides(b))
        return hn_tool_usage(error, QUESTION " is for hone-bench alone");
    Point *point = b->points->pdata[at[0]];
    point->batch = (gint64)at[2];
    if (*q[3])
        hn_shapes_set_dim(point->shapes, q[3], (gint64)at[2]);
    g_autofree char *text = g_strdup_printf("%" G_GUINT64_FORMAT, peak_of(b, point, (guint)at[1]));
    return write(STDOUT_FILENO, text, strlen(text)) > 0 || hn_tool_usage(error, "nobody waits for the answer");
}

/* --- in the process that measures --------------------------------------------------------------------------------- */

/* The environment with the question in it. */
static GStrv environment(const Bench *b, const Subject *s)
{
    guint at = 0;
    const Point *point = s->point;
    g_ptr_array_find(b->points, point, &at);
    g_autofree char *question = g_strdup_printf("%u,%u,%" G_GINT64_FORMAT ",%s", at, s->number, point->batch,
                                                point->batch_dim != NULL ? point->batch_dim : "");
    return g_environ_setenv(g_get_environ(), QUESTION, question, TRUE);
}

/* Its stdout is *from; it sees and says nothing else: what a model does wrong is told by the one who asks. -1: none. */
static pid_t start(const Bench *b, const Subject *s, int *from)
{
    int ends[2];
    pid_t child = -1;
    if (pipe2(ends, O_CLOEXEC) != 0)
        return -1;
    g_auto(GStrv) env = environment(b, s);
    posix_spawn_file_actions_t files;
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&files, ends[1], STDOUT_FILENO);
    posix_spawn_file_actions_addopen(&files, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    if (posix_spawn(&child, "/proc/self/exe", &files, NULL, b->ctx->argv, env) != 0)
        child = -1;
    posix_spawn_file_actions_destroy(&files);
    close(ends[1]);
    *from = ends[0];
    if (child < 0)
        close(ends[0]);
    return child;
}

/* All that comes until it ends, or until there is no more time: it may run a model without end. */
static guint64 read_answer(const Bench *b, int from)
{
    char text[32] = "";
    gsize got = 0;
    guint64 peak;
    struct pollfd p = { .fd = from, .events = POLLIN };
    while (!hn_progress_stop(&b->ctx->progress, NULL)) {
        if (poll(&p, 1, LOOK_MS) <= 0)
            continue;
        const ssize_t n = read(from, text + got, sizeof text - 1 - got);
        if (n <= 0)
            break;
        got += (gsize)n;
    }
    return g_ascii_string_to_unsigned(text, 10, 0, G_MAXUINT64, &peak, NULL) ? peak : 0;
}

void bench_apart_peak(Bench *b, Subject *s)
{
    const gboolean first = b->asked++ == 0, is_stdin = strcmp(s->path, "-") == 0;
    int from;
    const pid_t child = is_stdin ? -1 : start(b, s, &from);
    guint64 peak = 0;
    if (child > 0) {
        peak = read_answer(b, from);
        kill(child, SIGKILL);
        waitpid(child, NULL, 0);
        close(from);
    }
    if (peak > 0)
        s->peak_rss = peak;
    else if (!first || b->p->batch_max)
        s->peak_rss = 0;
}
