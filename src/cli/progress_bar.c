#include "cli/progress_bar.h"

#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/progress_time.h"
#include "base/text.h"

#define DELAY_NS ((guint64)500000000) /* before the bar first appears */
#define INTERVAL_NS ((guint64)1000000000 / 6)
#define BAR_WIDTH 24
#define LEAST_BAR 8
#define BEHIND_BAR 34  /* columns: "[]  45 %  12.3 k/s  1.23 min left" */
#define WHAT_WIDTH 28  /* of what is done, where the terminal has ... */
#define USUAL_WIDTH 80 /* ... so many columns; half of what it has more, too */
#define COMMAND "    " /* begins a line that somebody may copy: never broken */

struct HnBar {
    int fd;
    gboolean enabled;
    GMutex lock;
    gboolean shown;
    guint phase, phases; /* 0: nobody said */
    char what[64];       /* the work, and where and when it started */
    guint64 phase_ns;
    guint64 phase_done;
    guint64 start_ns;
    guint64 drawn_ns;
};

int hn_terminal_width(int fd)
{
    struct winsize size = { 0 };
    if (!isatty(fd))
        return 0;
    return ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

int hn_terminal_char(gunichar c)
{
    return g_unichar_iszerowidth(c) ? 0 : g_unichar_iswide(c) ? 2 : 1;
}

void hn_terminal_wrap_to(GString *out, const char *line, int width, int indent)
{
    if (g_str_has_prefix(line, COMMAND))
        width = 0;
    int at = 0; /* columns filled */
    while (*line) {
        const char *end = line + strspn(line, " ");
        int blanks = (int)(end - line), columns = blanks;
        for (; *end && *end != ' '; end = g_utf8_next_char(end))
            columns += hn_terminal_char(g_utf8_get_char(end));
        if (width > 0 && at > indent && at + columns > width && end[-1] != ' ') {
            g_string_append_printf(out, "\n%*s", indent, "");
            at = indent;
            line += blanks;
            columns -= blanks;
        }
        g_string_append_len(out, line, end - line);
        at += columns;
        line = end;
    }
    g_string_append_c(out, '\n');
}

void hn_terminal_wrap(GString *out, const char *line, int width)
{
    hn_terminal_wrap_to(out, line, width, (int)strspn(line, " ") + 2);
}

HnBar *hn_bar_new(int fd, gboolean enabled)
{
    HnBar *bar = g_new0(HnBar, 1);
    const char *term = g_getenv("TERM");
    bar->fd = fd;
    bar->enabled = enabled && isatty(fd) && g_strcmp0(term, "dumb") != 0;
    bar->start_ns = hn_now_ns();
    g_mutex_init(&bar->lock);
    return bar;
}

/* A terminal that cannot be written to is no reason to stop working. */
static void put(HnBar *bar, const char *text)
{
    if (write(bar->fd, text, strlen(text)) < 0)
        bar->enabled = FALSE;
}

static void wipe(HnBar *bar)
{
    if (bar->shown)
        put(bar, "\r\033[K");
    bar->shown = FALSE;
}

static void append_bar(const HnBar *bar, GString *line, double part)
{
    const int room = hn_terminal_width(bar->fd) - (int)line->len - BEHIND_BAR;
    const int width = CLAMP(room, LEAST_BAR, BAR_WIDTH), full = (int)(part * width);
    g_string_append_c(line, '[');
    for (int i = 0; i < width; i++)
        g_string_append_c(line, i < full ? '=' : i == full ? '>' : ' ');
    g_string_append_printf(line, "] %3.0f %%", part * 100);
}

static void show(HnBar *bar, GString *line, guint64 now)
{
    gsize width = (gsize)MAX(hn_terminal_width(bar->fd), 20); /* the line is ASCII, and the last column stays free */
    g_string_truncate(line, MIN(line->len, width));
    g_string_append(line, "\033[K");
    put(bar, line->str);
    bar->shown = TRUE;
    bar->drawn_ns = now;
}

/* Bytes of what is told that there is room for: parts behind a comma are left out as a whole. */
static int shown_of(const HnBar *bar)
{
    const int most = WHAT_WIDTH + MAX(hn_terminal_width(bar->fd) - USUAL_WIDTH, 0) / 2, all = (int)strlen(bar->what);
    int n = MIN(most, all);
    while (n > 0 && n < all && bar->what[n] != ',')
        n--;
    return n > 0 ? n : MIN(most, all);
}

/* "2/5 repairs      " */
static void append_what(const HnBar *bar, GString *line)
{
    if (bar->phases > 1)
        g_string_append_printf(line, "%u/%u ", bar->phase, bar->phases);
    g_string_append_printf(line, "%-*.*s ", 12, shown_of(bar), bar->what);
}

/* "reading samples  [=====>      ]  45 %  1.2 k/s  3.0 s left" */
static void draw(HnBar *bar, guint64 done, guint64 total, guint64 now)
{
    g_autoptr(GString) line = g_string_new("\r");
    append_what(bar, line);
    double seconds = (double)(now - bar->phase_ns) * 1e-9;
    double rate = seconds > 0 && done > bar->phase_done ? (double)(done - bar->phase_done) / seconds : 0;
    if (total) {
        append_bar(bar, line, MIN((double)done / (double)total, 1.0));
    } else {
        g_string_append_printf(line, "%" G_GUINT64_FORMAT, done);
    }
    if (rate > 0 && bar->phases == 0 && total != HN_PROGRESS_PARTS) {
        g_autofree char *text = hn_text_number(rate);
        g_string_append_printf(line, "  %s/s", text);
    }
    if (rate > 0 && total > done) {
        g_autofree char *left = hn_text_time((double)(total - done) / rate);
        g_string_append_printf(line, "  %s left", left);
    }
    show(bar, line, now);
}

/* "rounding     [=====>      ]  45 %  3.0 s left": of all phases, at the pace so far */
static void draw_part(HnBar *bar, double part, guint64 now)
{
    g_autoptr(GString) line = g_string_new("\r");
    append_what(bar, line);
    append_bar(bar, line, CLAMP(part, 0, 1));
    if (part > 0.02) {
        g_autofree char *left = hn_text_time((double)(now - bar->start_ns) * 1e-9 * (1 - part) / part);
        g_string_append_printf(line, "  %s left", left);
    }
    show(bar, line, now);
}

/* There is a terminal, and it is time for something new on it; in the background it belongs to somebody else. */
static gboolean is_due(const HnBar *bar, guint64 now)
{
    return now - bar->start_ns >= DELAY_NS && now - bar->drawn_ns >= INTERVAL_NS && tcgetpgrp(bar->fd) == getpgrp();
}

void hn_bar_phase(HnBar *bar, guint phase, guint phases)
{
    g_mutex_lock(&bar->lock);
    bar->phase = phase;
    bar->phases = phases;
    bar->phase_ns = hn_now_ns();
    bar->what[0] = 0;
    g_mutex_unlock(&bar->lock);
}

void hn_bar_part(HnBar *bar, const char *what, double part)
{
    if (!bar->enabled)
        return;
    const guint64 now = hn_now_ns();
    g_mutex_lock(&bar->lock);
    g_strlcpy(bar->what, what, sizeof bar->what);
    if (is_due(bar, now))
        draw_part(bar, part, now);
    g_mutex_unlock(&bar->lock);
}

/* Bytes in front of what is counted, as in "epoch 3/40, loss 0.31". */
static gsize name_of(const char *what)
{
    return strcspn(what, "0123456789");
}

/* The work that is shown already: what is counted may be another. */
static gboolean goes_on(const HnBar *bar, const char *what, guint64 done)
{
    const gsize name = name_of(what);
    if (strncmp(bar->what, what, sizeof bar->what - 1) == 0)
        return TRUE;
    if (name == 0 || name != name_of(bar->what) || done < bar->phase_done)
        return FALSE;
    return strncmp(bar->what, what, name) == 0;
}

void hn_bar_tell(gpointer data, const char *what, guint64 done, guint64 total)
{
    HnBar *bar = data;
    if (!bar->enabled)
        return;
    guint64 now = hn_now_ns();
    g_mutex_lock(&bar->lock);
    if (!goes_on(bar, what, done)) {
        bar->phase_ns = now;
        bar->phase_done = done;
    }
    g_strlcpy(bar->what, what, sizeof bar->what);
    if (is_due(bar, now))
        draw(bar, done, total, now);
    g_mutex_unlock(&bar->lock);
}

void hn_bar_wipe(HnBar *bar)
{
    if (!bar)
        return;
    g_mutex_lock(&bar->lock);
    wipe(bar);
    g_mutex_unlock(&bar->lock);
}

void hn_bar_free(HnBar *bar)
{
    if (!bar)
        return;
    wipe(bar);
    g_mutex_clear(&bar->lock);
    g_free(bar);
}
