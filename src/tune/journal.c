#include "tune/journal.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "config.h" /* HN_VERSION */

#include "base/cpu.h"
#include "base/error.h"
#include "base/file.h"
#include "base/jsonread.h"

#define SCHEMA "hone.journal/1"
#define CACHE_BYTES ((goffset)16 << 20) /* a cache that is larger starts anew */

struct HnJournal {
    int file, cache; /* -1: none */
    char *path, *key;
    GHashTable *tried; /* plan -> HnTried * */
    GHashTable *times; /* plan -> HnNodeTimes * */
    GHashTable *races; /* "before after" -> HnEffect * */
    GHashTable *found; /* name -> JsonObject * */
    guint trials, resumed;
};

/* --- records ------------------------------------------------------------------------------------------------------ */

HnNodeTimes *hn_node_times_new(void)
{
    HnNodeTimes *t = g_new0(HnNodeTimes, 1);
    t->nodes = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    return t;
}

void hn_node_times_free(HnNodeTimes *t)
{
    if (t == NULL)
        return;
    g_hash_table_unref(t->nodes);
    g_free(t);
}

void hn_tried_free(HnTried *t)
{
    if (t == NULL)
        return;
    g_free(t->plan);
    g_free(t->what);
    g_clear_pointer(&t->f32, g_ptr_array_unref);
    g_free(t);
}

HnJournal *hn_journal_new(void)
{
    HnJournal *j = g_new0(HnJournal, 1);
    j->file = j->cache = -1;
    j->tried = g_hash_table_new_full(g_str_hash, g_str_equal, NULL, (GDestroyNotify)hn_tried_free);
    j->times = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, (GDestroyNotify)hn_node_times_free);
    j->races = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    j->found = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, (GDestroyNotify)json_object_unref);
    return j;
}

void hn_journal_free(HnJournal *j)
{
    if (j == NULL)
        return;
    if (j->file >= 0)
        close(j->file);
    if (j->cache >= 0)
        close(j->cache);
    g_free(j->path);
    g_free(j->key);
    g_hash_table_unref(j->tried);
    g_hash_table_unref(j->times);
    g_hash_table_unref(j->races);
    g_hash_table_unref(j->found);
    g_free(j);
}

const HnTried *hn_journal_tried(const HnJournal *j, const char *plan)
{
    return g_hash_table_lookup(j->tried, plan);
}

const HnNodeTimes *hn_journal_times(const HnJournal *j, const char *plan)
{
    return g_hash_table_lookup(j->times, plan);
}

gboolean hn_journal_race(const HnJournal *j, const char *before, const char *after, HnEffect *e)
{
    g_autofree char *name = g_strdup_printf("%s %s", before, after);
    const HnEffect *found = g_hash_table_lookup(j->races, name);
    if (found != NULL)
        *e = *found;
    return found != NULL;
}

JsonObject *hn_journal_found(const HnJournal *j, const char *name)
{
    return g_hash_table_lookup(j->found, name);
}

guint hn_journal_resumed(const HnJournal *j)
{
    return j->resumed;
}

/* --- reading ------------------------------------------------------------------------------------------------------ */

/* NaN: it is not there. */
static double number_at(JsonObject *o, const char *name)
{
    double x;
    return hn_json_number_at(o, name, &x) ? x : NAN;
}

/* Members of a score; null is the second number. */
static const struct {
    const char *name;
    gsize at;
    double null;
} members[] = {
    { "top1", G_STRUCT_OFFSET(HnScore, top1), NAN },
    { "cos", G_STRUCT_OFFSET(HnScore, cos), NAN },
    { "sqnr_db", G_STRUCT_OFFSET(HnScore, sqnr), INFINITY },
    { "worst_cos", G_STRUCT_OFFSET(HnScore, worst_cos), NAN },
    { "scores", G_STRUCT_OFFSET(HnScore, scores), NAN },
    { "cmd", G_STRUCT_OFFSET(HnScore, command), NAN },
    { "r2", G_STRUCT_OFFSET(HnScore, r2), NAN },
};

static void read_tried(HnJournal *j, JsonObject *line)
{
    const char *plan = hn_json_string_at(line, "plan"), *what = hn_json_string_at(line, "what");
    JsonObject *score = hn_json_object_at(line, "score");
    const double bytes = number_at(line, "bytes");
    JsonNode *names = json_object_get_member(line, "f32");
    if (plan == NULL || what == NULL || score == NULL || !(bytes >= 0 && bytes < 0x1p63))
        return;
    if (names == NULL || !JSON_NODE_HOLDS_ARRAY(names))
        return;
    HnTried *t = g_new0(HnTried, 1);
    t->plan = g_strdup(plan);
    t->what = g_strdup(what);
    t->bytes = (guint64)bytes;
    t->f32 = g_ptr_array_new_with_free_func(g_free);
    for (int i = 0; i < HN_METRICS; i++)
        t->score.at[i] = -1; /* what no file says */
    for (gsize i = 0; i < G_N_ELEMENTS(members); i++) {
        const double x = number_at(score, members[i].name);
        G_STRUCT_MEMBER(double, &t->score, members[i].at) = isnan(x) ? members[i].null : x;
    }
    JsonArray *list = json_node_get_array(names);
    for (guint i = 0; i < json_array_get_length(list); i++) {
        JsonNode *n = json_array_get_element(list, i);
        if (hn_json_string(n) != NULL)
            g_ptr_array_add(t->f32, g_strdup(json_node_get_string(n)));
    }
    g_hash_table_replace(j->tried, t->plan, t);
    j->resumed++;
}

static void read_times(HnJournal *j, const char *plan, JsonObject *line)
{
    JsonObject *nodes = hn_json_object_at(line, "nodes");
    g_autoptr(HnNodeTimes) t = hn_node_times_new();
    JsonObjectIter iter;
    const char *name;
    JsonNode *n;
    t->total_ms = number_at(line, "total_ms");
    if (nodes == NULL || !(t->total_ms > 0))
        return;
    json_object_iter_init(&iter, nodes);
    while (json_object_iter_next(&iter, &name, &n)) {
        JsonObject *o = hn_json_object(n);
        const HnNodeTime at = { number_at(o, "ms"), number_at(o, "elements") };
        if (!(at.ms >= 0) || !(at.elements >= 0))
            return;
        g_hash_table_insert(t->nodes, g_strdup(name), g_memdup2(&at, sizeof at));
    }
    if (!g_hash_table_contains(j->times, plan))
        g_hash_table_insert(j->times, g_strdup(plan), g_steal_pointer(&t));
}

static void note_race(HnJournal *j, const char *before, const char *after, const HnEffect *e)
{
    const HnEffect kept = { e->effect, NAN, NAN, HN_VERDICT_NOISY, e->sure_lo, e->sure_hi };
    g_hash_table_replace(j->races, g_strdup_printf("%s %s", before, after), g_memdup2(&kept, sizeof kept));
}

static void read_race(HnJournal *j, JsonArray *plans, JsonObject *line)
{
    const HnEffect e = { .effect = number_at(line, "effect"),
                         .sure_lo = number_at(line, "lo"),
                         .sure_hi = number_at(line, "hi") };
    const gboolean whole = e.sure_lo > 0 && e.effect > 0 && e.sure_hi > 0;
    if (json_array_get_length(plans) != 2 || !whole) /* of an older version: without an interval it decides nothing */
        return;
    JsonNode *a = json_array_get_element(plans, 0), *b = json_array_get_element(plans, 1);
    if (hn_json_string(a) != NULL && hn_json_string(b) != NULL)
        note_race(j, json_node_get_string(a), json_node_get_string(b), &e);
}

static void read_found(HnJournal *j, JsonObject *line)
{
    const char *name = hn_json_string_at(line, "found");
    JsonObject *numbers = hn_json_object_at(line, "numbers");
    if (name == NULL || numbers == NULL)
        return;
    g_hash_table_replace(j->found, g_strdup(name), json_object_ref(numbers));
    j->resumed++;
}

static void read_line(HnJournal *j, JsonObject *line, gboolean cache)
{
    const char *key = hn_json_string_at(line, "key"), *times = hn_json_string_at(line, "times");
    JsonNode *race = json_object_get_member(line, "race");
    if (!cache && json_object_has_member(line, "trial"))
        read_tried(j, line);
    else if (!cache && json_object_has_member(line, "found"))
        read_found(j, line);
    else if (cache && g_strcmp0(key, j->key) != 0)
        return;
    else if (times != NULL)
        read_times(j, times, line);
    else if (race != NULL && JSON_NODE_HOLDS_ARRAY(race))
        read_race(j, json_node_get_array(race), line);
}

/* FALSE with a sentence of the first member that is not the same. */
static gboolean is_same(const char *path, JsonObject *line, JsonObject *header, GError **error)
{
    JsonObjectIter iter;
    const char *name;
    JsonNode *n;
    if (g_strcmp0(hn_json_string_at(line, "schema"), SCHEMA) != 0) {
        g_set_error(error, HN_ERROR, HN_ERROR_FORMAT, "'%s' is no journal of '" SCHEMA "'", path);
        return FALSE;
    }
    json_object_iter_init_ordered(&iter, header);
    while (json_object_iter_next_ordered(&iter, &name, &n))
        if (g_strcmp0(hn_json_string_at(line, name), json_node_get_string(n)) != 0) {
            g_set_error(error, HN_ERROR, HN_ERROR_USAGE, "'%s' is the journal of a run whose '%s' was another", path,
                        name);
            return FALSE;
        }
    return TRUE;
}

gboolean hn_journal_read(HnJournal *j, const char *path, const char *text, gsize n, JsonObject *header, gsize *good,
                         GError **error)
{
    gboolean first = header != NULL;
    *good = 0;
    for (gsize at = 0; at < n;) {
        const char *end = memchr(text + at, '\n', n - at);
        g_autoptr(JsonNode) root =
            end != NULL ? hn_json_read(text + at, (gsize)(end - text) - at, HN_JSON_BYTES, NULL, NULL) : NULL;
        JsonObject *line = hn_json_object(root);
        if (line == NULL && (header != NULL || end == NULL))
            break;
        if (first && !is_same(path, line, header, error))
            return FALSE;
        if (!first && line != NULL)
            read_line(j, line, header == NULL);
        first = FALSE;
        at = *good = (gsize)(end - text) + 1;
    }
    if (first)
        g_set_error(error, HN_ERROR, HN_ERROR_FORMAT, "'%s' is no journal of '" SCHEMA "'", path);
    return !first;
}

/* --- writing ------------------------------------------------------------------------------------------------------ */

static gboolean put(int fd, const char *path, const char *text, gsize n, GError **error)
{
    const ssize_t put = write(fd, text, n);
    if (put == (ssize_t)n)
        return TRUE;
    g_set_error(error, HN_ERROR, HN_ERROR_IO, "'%s' cannot be written: %s", path, g_strerror(put < 0 ? errno : ENOSPC));
    return FALSE;
}

/* Takes o. */
static gboolean write_line(HnJournal *j, JsonObject *o, gboolean cached, GError **error)
{
    if (cached && j->key != NULL)
        json_object_set_string_member(o, "key", j->key);
    g_autofree char *json = hn_json_line(o);
    g_autofree char *line = g_strconcat(json, "\n", NULL);
    const gsize n = strlen(line);
    json_object_unref(o);
    if (cached && j->cache >= 0 && !put(j->cache, "", line, n, NULL)) {
        close(j->cache);
        j->cache = -1;
    }
    return j->file < 0 || put(j->file, j->path, line, n, error);
}

static gboolean fail(const char *path, const char *what, GError **error)
{
    g_set_error(error, HN_ERROR, HN_ERROR_IO, "'%s' cannot be %s: %s", path, what, g_strerror(errno));
    return FALSE;
}

gboolean hn_journal_open(HnJournal *j, const char *path, gboolean resume, JsonObject *header, GError **error)
{
    gsize good = 0;
    if (resume) {
        g_autoptr(GBytes) bytes = hn_file_bytes(path, NULL, error);
        gsize n = 0;
        const char *text = bytes != NULL ? g_bytes_get_data(bytes, &n) : NULL;
        if (bytes == NULL || !hn_journal_read(j, path, text, n, header, &good, error))
            return FALSE;
    }
    j->file = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (j->file < 0)
        return fail(path, "opened", error);
    if (ftruncate(j->file, (off_t)good) != 0)
        return fail(path, "written", error);
    g_free(j->path);
    j->path = g_strdup(path);
    if (resume)
        return TRUE;
    JsonObject *line = json_object_new();
    JsonObjectIter iter;
    const char *name;
    JsonNode *n;
    json_object_set_string_member(line, "schema", SCHEMA);
    json_object_iter_init_ordered(&iter, header);
    while (json_object_iter_next_ordered(&iter, &name, &n))
        json_object_set_string_member(line, name, json_node_get_string(n));
    return write_line(j, line, FALSE, error);
}

void hn_journal_use_cache(HnJournal *j, const char *path, const char *key)
{
    g_autofree char *folder = g_path_get_dirname(path);
    gsize good = 0, n = 0;
    g_free(j->key);
    j->key = g_strdup(key);
    if (g_mkdir_with_parents(folder, 0755) != 0)
        return;
    g_autoptr(GBytes) bytes = g_file_test(path, G_FILE_TEST_IS_REGULAR) ? hn_file_bytes(path, NULL, NULL) : NULL;
    const char *text = bytes != NULL ? g_bytes_get_data(bytes, &n) : NULL;
    if (text != NULL && n <= CACHE_BYTES)
        hn_journal_read(j, path, text, n, NULL, &good, NULL);
    j->cache = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | (n > CACHE_BYTES ? O_TRUNC : 0), 0666);
    if (j->cache >= 0 && good < n && n <= CACHE_BYTES) /* behind a line that was cut off */
        put(j->cache, path, "\n", 1, NULL);
}

static JsonObject *score_line(const HnScore *s)
{
    JsonObject *o = json_object_new();
    for (gsize i = 0; i < G_N_ELEMENTS(members); i++) {
        const double x = G_STRUCT_MEMBER(double, s, members[i].at);
        hn_json_set_number(o, members[i].name, x);
    }
    return o;
}

gboolean hn_journal_add_tried(HnJournal *j, HnTried *t, GError **error)
{
    JsonObject *o = json_object_new();
    JsonArray *f32 = json_array_new();
    for (guint i = 0; i < t->f32->len; i++)
        json_array_add_string_element(f32, t->f32->pdata[i]);
    j->trials = g_hash_table_size(j->tried) + 1;
    json_object_set_int_member(o, "trial", j->trials);
    json_object_set_string_member(o, "what", t->what);
    json_object_set_string_member(o, "plan", t->plan);
    json_object_set_object_member(o, "score", score_line(&t->score));
    json_object_set_int_member(o, "bytes", (gint64)t->bytes);
    json_object_set_array_member(o, "f32", f32);
    g_hash_table_replace(j->tried, t->plan, t);
    return write_line(j, o, FALSE, error);
}

gboolean hn_journal_add_times(HnJournal *j, const char *plan, HnNodeTimes *times, GError **error)
{
    JsonObject *o = json_object_new(), *nodes = json_object_new();
    GHashTableIter iter;
    gpointer name, at;
    g_hash_table_iter_init(&iter, times->nodes);
    while (g_hash_table_iter_next(&iter, &name, &at)) {
        const HnNodeTime *t = at;
        JsonObject *n = json_object_new();
        json_object_set_double_member(n, "ms", t->ms);
        json_object_set_double_member(n, "elements", t->elements);
        json_object_set_object_member(nodes, name, n);
    }
    json_object_set_string_member(o, "times", plan);
    json_object_set_double_member(o, "total_ms", times->total_ms);
    json_object_set_object_member(o, "nodes", nodes);
    g_hash_table_replace(j->times, g_strdup(plan), times);
    return write_line(j, o, TRUE, error);
}

gboolean hn_journal_add_race(HnJournal *j, const char *before, const char *after, const HnEffect *e, GError **error)
{
    JsonObject *o = json_object_new();
    JsonArray *plans = json_array_new();
    json_array_add_string_element(plans, before);
    json_array_add_string_element(plans, after);
    json_object_set_array_member(o, "race", plans);
    json_object_set_double_member(o, "effect", e->effect);
    hn_json_set_number(o, "lo", e->sure_lo);
    hn_json_set_number(o, "hi", e->sure_hi);
    note_race(j, before, after, e);
    return write_line(j, o, TRUE, error);
}

gboolean hn_journal_add_found(HnJournal *j, const char *name, JsonObject *numbers, GError **error)
{
    JsonObject *o = json_object_new();
    json_object_set_string_member(o, "found", name);
    json_object_set_object_member(o, "numbers", json_object_ref(numbers));
    g_hash_table_replace(j->found, g_strdup(name), numbers);
    return write_line(j, o, FALSE, error);
}

gboolean hn_journal_note(HnJournal *j, JsonObject *line, GError **error)
{
    return write_line(j, json_object_ref(line), FALSE, error);
}

JsonObject *hn_journal_header(const HnJournalOf *of)
{
    JsonObject *o = json_object_new();
    g_autofree char *options = of->options != NULL ? hn_json_line(of->options) : NULL, *cpu = hn_cpu_model(NULL);
    g_autofree char *machine =
        g_strdup_printf("%s; %s; %s; %d threads", cpu, hn_cpu_isa_name(hn_cpu_isa()), of->device, of->threads);
    json_object_set_string_member(o, "hone", HN_VERSION);
    json_object_set_string_member(o, "model", of->model);
    json_object_set_string_member(o, "data", of->data);
    json_object_set_string_member(o, "options", options);
    if (of->metric != NULL)
        json_object_set_string_member(o, "metric", of->metric);
    json_object_set_string_member(o, "machine", machine);
    json_object_set_string_member(o, "plan", of->plan);
    return o;
}

char *hn_journal_key(JsonObject *header)
{
    g_autofree char *text = hn_json_line(header);
    return g_compute_checksum_for_string(G_CHECKSUM_SHA256, text, -1);
}
