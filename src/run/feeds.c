/*
 * Which output becomes which input: what options say, and what names say.
 */
#include <string.h>

#include "run/feedback.h"

static int input_at(const HnSession *s, const char *name)
{
    for (int i = 0; i < hn_session_n_inputs(s); i++)
        if (strcmp(hn_session_input(s, i)->name, name) == 0)
            return i;
    return -1;
}

static int output_at(const HnSession *s, const char *name)
{
    for (int k = 0; k < hn_session_n_outputs(s); k++)
        if (strcmp(hn_session_output(s, k)->name, name) == 0)
            return k;
    return -1;
}

const HnFeed *hn_feeds_of(const GArray *feeds, int i)
{
    for (guint k = 0; k < feeds->len; k++)
        if (g_array_index(feeds, HnFeed, k).in == i)
            return &g_array_index(feeds, HnFeed, k);
    return NULL;
}

gboolean hn_feeds_make(const GArray *feeds, const HnFeed *f)
{
    gboolean tokens = FALSE;
    for (guint k = 0; k < feeds->len; k++)
        tokens = tokens || g_array_index(feeds, HnFeed, k).kind == HN_FEED_TOKEN;
    return f->kind != HN_FEED_TOKEN && (f->kind != HN_FEED_STATE || tokens);
}

static gboolean add(GArray *feeds, const HnSession *s, HnFeed f, GError **error)
{
    if (hn_feeds_of(feeds, f.in) == NULL) {
        g_array_append_val(feeds, f);
        return TRUE;
    }
    g_set_error(error, HN_ERROR, HN_ERROR_USAGE, "option '--loop': input '%s' is fed twice",
                hn_session_input(s, f.in)->name);
    return FALSE;
}

/* --- patterns ----------------------------------------------------------------------------------------------------- */

/* name is `pattern` with texts for its stars: those are added to `texts`. The first star takes as little as it can. */
static gboolean matches(const char *pattern, const char *name, GPtrArray *texts)
{
    for (; *pattern != '*'; pattern++, name++) {
        if (*pattern != *name)
            return FALSE;
        if (*pattern == '\0')
            return TRUE;
    }
    const guint n = texts->len;
    for (gsize len = 0;; len++) {
        g_ptr_array_add(texts, g_strndup(name, len));
        if (matches(pattern + 1, name + len, texts))
            return TRUE;
        g_ptr_array_set_size(texts, (gint)n);
        if (name[len] == '\0')
            return FALSE;
    }
}

/* The pattern with those texts. */
static char *filled_in(const char *pattern, const GPtrArray *texts)
{
    GString *s = g_string_new(NULL);
    guint next = 0;
    for (; *pattern != '\0'; pattern++)
        if (*pattern == '*' && next < texts->len)
            g_string_append(s, texts->pdata[next++]);
        else
            g_string_append_c(s, *pattern);
    return g_string_free(s, FALSE);
}

/* States: every output that matches `from` feeds what `to` says then. */
static gboolean add_states(GArray *feeds, const HnSession *s, const char *from, const char *to, int *n, GError **error)
{
    *n = 0;
    for (int k = 0; k < hn_session_n_outputs(s); k++) {
        g_autoptr(GPtrArray) texts = g_ptr_array_new_with_free_func(g_free);
        if (!matches(from, hn_session_output(s, k)->name, texts))
            continue;
        g_autofree char *name = filled_in(to, texts);
        const HnFeed f = { HN_FEED_STATE, k, input_at(s, name), FALSE };
        if (f.in < 0)
            continue;
        if (!add(feeds, s, f, error))
            return FALSE;
        ++*n;
    }
    return TRUE;
}

/* --- options ------------------------------------------------------------------------------------------------------ */

static const struct {
    const char *name;
    HnFeedKind kind;
} sources[] = {
    { "@ones", HN_FEED_ONES },   { "@positions", HN_FEED_POSITIONS }, { "@past", HN_FEED_PAST },
    { "@total", HN_FEED_TOTAL }, { "@started", HN_FEED_STARTED },
};

static gboolean add_source(GArray *feeds, const HnSession *s, const char *from, const char *to, GError **error)
{
    const int in = input_at(s, to);
    for (gsize i = 0; i < G_N_ELEMENTS(sources); i++)
        if (strcmp(from, sources[i].name) == 0 && in >= 0)
            return add(feeds, s, (HnFeed){ sources[i].kind, -1, in, FALSE }, error);
    g_set_error(error, HN_ERROR, HN_ERROR_USAGE,
                in < 0 ? "option '--loop': the model has no input '%s'"
                       : "option '--loop': '%s' is one of @ones, @positions, @past, @total, @started",
                in < 0 ? to : from);
    return FALSE;
}

static gboolean add_token(GArray *feeds, const HnSession *s, const char *from, const char *to, gboolean sample,
                          GError **error)
{
    const HnFeed f = { HN_FEED_TOKEN, output_at(s, from), input_at(s, to), sample };
    if (f.out >= 0 && f.in >= 0)
        return add(feeds, s, f, error);
    g_set_error(error, HN_ERROR, HN_ERROR_USAGE, "option '--loop': the model has no %s '%s'",
                f.out < 0 ? "output" : "input", f.out < 0 ? from : to);
    return FALSE;
}

static gboolean parse(GArray *feeds, const HnSession *s, const char *text, GError **error)
{
    const char *equals = strrchr(text, '=');
    if (equals == NULL || equals == text || equals[1] == '\0') {
        g_set_error(error, HN_ERROR, HN_ERROR_USAGE, "option '--loop': '%s' is not OUTPUT=INPUT", text);
        return FALSE;
    }
    g_autofree char *from = g_strndup(text, (gsize)(equals - text));
    const char *to = equals + 1;
    char *colon = strrchr(from, ':');
    if (*from == '@')
        return add_source(feeds, s, from, to, error);
    if (colon != NULL && (strcmp(colon, ":argmax") == 0 || strcmp(colon, ":sample") == 0)) {
        *colon = '\0';
        return add_token(feeds, s, from, to, colon[1] == 's', error);
    }
    int n;
    if (!add_states(feeds, s, from, to, &n, error))
        return FALSE;
    if (n == 0)
        g_set_error(error, HN_ERROR, HN_ERROR_USAGE, "option '--loop': no output '%s' has an input '%s'", from, to);
    return n > 0;
}

GArray *hn_feeds_parse(const HnSession *s, const char *const *texts, GError **error)
{
    g_autoptr(GArray) feeds = g_array_new(FALSE, FALSE, sizeof(HnFeed));
    for (; texts != NULL && *texts != NULL; texts++)
        if (!parse(feeds, s, *texts, error))
            return NULL;
    return g_steal_pointer(&feeds);
}

/* --- names -------------------------------------------------------------------------------------------------------- */

static void add_named(GArray *feeds, const HnSession *s, const char *name, HnFeedKind kind)
{
    const int in = input_at(s, name);
    if (in >= 0 && hn_feeds_of(feeds, in) == NULL)
        add(feeds, s, (HnFeed){ kind, -1, in, FALSE }, NULL);
}

GArray *hn_feeds_usual(const HnSession *s, gboolean sample)
{
    static const char *const states[][2] = {
        { "present.*", "past_key_values.*" },
        { "present_key_values.*", "past_key_values.*" },
        { "present.*", "past.*" },
        { "present_*", "past_*" },
        { "present*", "past*" },
    };
    GArray *feeds = g_array_new(FALSE, FALSE, sizeof(HnFeed));
    int n = 0;
    for (gsize i = 0; i < G_N_ELEMENTS(states) && n == 0; i++)
        add_states(feeds, s, states[i][0], states[i][1], &n, NULL);
    const gboolean decodes = input_at(s, "decoder_input_ids") >= 0 || input_at(s, "encoder_hidden_states") >= 0;
    const int logits = output_at(s, "logits");
    int ids = input_at(s, "decoder_input_ids");
    ids = ids >= 0 ? ids : input_at(s, "input_ids");
    if (logits < 0 || ids < 0)
        return feeds;
    add(feeds, s, (HnFeed){ HN_FEED_TOKEN, logits, ids, sample }, NULL);
    add_named(feeds, s, decodes ? "decoder_attention_mask" : "attention_mask", HN_FEED_ONES);
    add_named(feeds, s, "position_ids", HN_FEED_POSITIONS);
    add_named(feeds, s, "cache_position", HN_FEED_POSITIONS);
    add_named(feeds, s, "use_cache_branch", HN_FEED_STARTED);
    return feeds;
}
