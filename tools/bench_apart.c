/*
 * hone-bench: the highest resident set of a model by itself. That of this process counts what models before it left
 * behind (their files, their samples) and the times that are kept. A helper is forked before the first model is opened,
 * and for each model that is asked about it forks a child, which opens and runs that one and nothing else.
 */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "hone_bench.h"

#define LOOK_MS 20 /* from one look at the clock to the next while a child runs */

/* What the helper is asked, followed by `length` bytes: the dimension that the batch is of. */
typedef struct {
    guint point, model;
    gint64 batch; /* of --batch-max; 0: not given */
    gsize length;
} Question;

/* Every byte of it, or FALSE: the other side is gone, or Ctrl-C. */
static gboolean read_all(int fd, void *to, gsize n)
{
    for (gsize got = 0; got < n;) {
        const ssize_t k = read(fd, (char *)to + got, n - got);
        if (k <= 0)
            return FALSE;
        got += (gsize)k;
    }
    return TRUE;
}

static gboolean write_all(int fd, const void *from, gsize n)
{
    for (gsize put = 0; put < n;) {
        const ssize_t k = write(fd, (const char *)from + put, n - put);
        if (k < 0)
            return FALSE;
        put += (gsize)k;
    }
    return TRUE;
}

/* --- in the child ------------------------------------------------------------------------------------------------- */

static gboolean run_sets(Instance *x)
{
    guint64 start, end;
    for (guint k = 0; k < x->n_sets; k++)
        if (!instance_run(x, k, &start, &end, NULL))
            return FALSE;
    return TRUE;
}

/* As many instances as are measured at once, each run on every sample; 0: that did not work. */
static guint64 peak_of(Bench *b, const Point *point, guint model)
{
    Subject s;
    subject_init(&s, b, point, (int)model);
    gboolean ok = subject_open(&s, NULL) && (!b->backend->computes || run_sets(&s.first));
    for (int i = 1; ok && b->backend->computes && i < s.streams; i++) {
        Instance *x = g_new0(Instance, 1); /* the process ends with it */
        ok = instance_share(&s, x, NULL) && run_sets(x);
    }
    return ok ? bench_peak_rss() : 0;
}

/* --- in the helper ------------------------------------------------------------------------------------------------ */

static void answer(Bench *b, const Question *q, const char *dim, int out)
{
    const pid_t child = fork();
    guint64 peak = 0;
    if (child == 0) {
        const Point *point = b->points->pdata[q->point];
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (q->batch > 0)
            hn_shapes_set_dim(point->shapes, dim, q->batch);
        peak = peak_of(b, point, q->model);
        _exit(peak > 0 && write_all(out, &peak, sizeof peak) ? 0 : 1);
    }
    int status = 1;
    if (child < 0 || waitpid(child, &status, 0) != child || status != 0)
        write_all(out, &peak, sizeof peak);
}

/* Nothing of it is to be seen: what a model does wrong is told by the one who asks. */
static void serve(Bench *b, int in, int out)
{
    Question q;
    const int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        dup2(nothing, fd);
    b->ctx->progress.fn = NULL;
    while (read_all(in, &q, sizeof q)) {
        g_autofree char *dim = g_malloc0(q.length + 1);
        if (!read_all(in, dim, q.length))
            break;
        answer(b, &q, dim, out);
    }
    _exit(0);
}

/* --- in the process that measures --------------------------------------------------------------------------------- */

void bench_apart_start(Bench *b)
{
    int to[2], from[2];
    b->apart = (BenchApart){ -1, -1, -1 };
    if (pipe2(to, O_CLOEXEC) != 0)
        return;
    if (pipe2(from, O_CLOEXEC) != 0) {
        close(to[0]);
        close(to[1]);
        return;
    }
    b->apart = (BenchApart){ fork(), to[1], from[0] };
    if (b->apart.helper == 0) {
        close(to[1]);
        close(from[0]);
        serve(b, to[0], from[1]);
    }
    close(to[0]);
    close(from[1]);
    if (b->apart.helper < 0)
        bench_apart_end(b);
}

/* FALSE: the helper is gone, or there is no more time: the child may run a model without end. */
static gboolean wait_for_answer(const Bench *b)
{
    struct pollfd from = { .fd = b->apart.from, .events = POLLIN };
    while (!hn_progress_stop(&b->ctx->progress, NULL))
        if (poll(&from, 1, LOOK_MS) > 0)
            return (from.revents & POLLIN) != 0;
    return FALSE;
}

static guint point_number(const Bench *b, const Point *point)
{
    guint at = 0;
    g_ptr_array_find(b->points, point, &at);
    return at;
}

void bench_apart_peak(Bench *b, Subject *s)
{
    const gboolean first = b->asked++ == 0, is_stdin = strcmp(s->path, "-") == 0;
    const Question q = { point_number(b, s->point), s->number, s->point->batch,
                         s->point->batch_dim != NULL ? strlen(s->point->batch_dim) : 0 };
    guint64 peak = 0;
    const gboolean asked = b->apart.helper > 0 && !is_stdin && write_all(b->apart.to, &q, sizeof q) &&
                           write_all(b->apart.to, s->point->batch_dim, q.length);
    if (asked && wait_for_answer(b) && read_all(b->apart.from, &peak, sizeof peak))
        s->peak_rss = peak;
    else if (!first || b->p->batch_max)
        s->peak_rss = 0;
}

void bench_apart_end(Bench *b)
{
    if (b->apart.to >= 0)
        close(b->apart.to);
    if (b->apart.from >= 0)
        close(b->apart.from);
    if (b->apart.helper > 0) {
        kill(b->apart.helper, SIGKILL);
        waitpid(b->apart.helper, NULL, 0);
    }
    b->apart = (BenchApart){ -1, -1, -1 };
}
