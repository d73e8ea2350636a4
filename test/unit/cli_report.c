/* One tree of values as table, JSON and CSV. */
#include <glib/gstdio.h>
#include <math.h>
#include <string.h>

#include "base/jsonread.h"
#include "cli/json.h"
#include "cli/report.h"

static const HnColumn columns[] = {
    { "model", "model", HN_COL_TEXT },
    { "n", "n", HN_COL_INT },
    { "latency_ms.p50", "median", HN_COL_MS },
    { "memory_bytes", "memory", HN_COL_BYTES },
    { "ci.1", "ci", HN_COL_PERCENT },
    { "rate", "rate/s", HN_COL_NUMBER },
    { 0 },
};

static void add_run(JsonArray *runs, const char *model, gint64 n, double p50, gint64 bytes, double ci, double rate)
{
    JsonObject *run = json_object_new(), *latency = json_object_new();
    JsonArray *interval = json_array_new();
    json_object_set_string_member(run, "model", model);
    json_object_set_int_member(run, "n", n);
    json_object_set_double_member(latency, "p50", p50);
    json_object_set_object_member(run, "latency_ms", latency);
    json_object_set_int_member(run, "memory_bytes", bytes);
    json_array_add_double_element(interval, 0.1);
    json_array_add_double_element(interval, ci);
    json_object_set_array_member(run, "ci", interval);
    json_object_set_double_member(run, "rate", rate);
    json_array_add_object_element(runs, run);
}

static HnReport *report_new(HnContext *ctx)
{
    HnReport *r = hn_report_new(ctx, "hone.test/1", &(HnReportEnv){ .onednn = NULL });
    JsonArray *runs = json_array_new();
    add_run(runs, "a,\"b\".onnx", 12, 0.0812, 1200000, 0.031, 12345);
    add_run(runs, "caf\xc3\xa9\x1b[2J.onnx", 7, NAN, 0, INFINITY, 0.1);
    json_object_set_array_member(hn_report_root(r), "runs", runs);
    hn_report_line(r, "two %s", "models\x07");
    hn_report_table(r, "runs", columns);
    hn_report_table(r, "nothing.here", columns);
    return r;
}

static const HnTool tool = { .name = "hone-test" };

static void context_init(HnContext *ctx)
{
    *ctx = (HnContext){ .tool = &tool, .common = { .threads = 3, .device = (char *)"cpu" } };
}

static void test_text(void)
{
    HnContext ctx;
    context_init(&ctx);
    g_autoptr(HnReport) r = report_new(&ctx);
    g_autofree char *wide = hn_report_text(r, 0, FALSE), *narrow = hn_report_text(r, 48, TRUE);
    g_assert_cmpstr(wide, ==,
                    "two models?\n"
                    "model           n   median  memory     ci  rate/s\n"
                    "a,\"b\".onnx     12  81.2 us  1.2 MB  3.1 %  12.3 k\n"
                    "caf\xc3\xa9?[2J.onnx   7        -     0 B      -     0.1\n");
    g_assert_cmpstr(narrow, ==,
                    "two models?\n"
                    "\033[1mmodel          n   median  memory     ci  rate/s\033[0m\n"
                    "a,\"b\".onnx    12  81.2 us  1.2 MB  3.1 %  12.3 k\n"
                    "caf\xc3\xa9?...onnx   7        -     0 B      -     0.1\n");
}

static void test_minor(void)
{
    static const HnColumn some[] = { { "model", "model", HN_COL_TEXT },
                                     { "n", "n", HN_COL_INT | HN_COL_MINOR },
                                     { "rate", "rate/s", HN_COL_NUMBER | HN_COL_MINOR },
                                     { 0 } };
    HnContext ctx;
    context_init(&ctx);
    g_autoptr(HnReport) r = hn_report_new(&ctx, "hone.test/1", &(HnReportEnv){ .onednn = NULL });
    JsonArray *runs = json_array_new();
    add_run(runs, "a model.onnx", 12, 1, 1, 1, 12345);
    json_object_set_array_member(hn_report_root(r), "runs", runs);
    hn_report_table(r, "runs", some);
    g_autofree char *all = hn_report_text(r, 24, FALSE), *less = hn_report_text(r, 23, FALSE);
    g_autofree char *least = hn_report_text(r, 12, FALSE), *cut = hn_report_text(r, 10, FALSE);
    g_assert_cmpstr(all, ==, "model          n  rate/s\na model.onnx  12  12.3 k\n");
    g_assert_cmpstr(less, ==, "model          n\na model.onnx  12\n");
    g_assert_cmpstr(least, ==, "model\na model.onnx\n");
    g_assert_cmpstr(cut, ==, "model\na mo..onnx\n");
}

/* Texts that are too long are cut where they stay apart: in the middle, in front, or at the end. */
static void test_cut(void)
{
    static const HnColumn one[] = { { "model", "model", HN_COL_TEXT }, { 0 } };
    static const struct {
        const char *first, *second, *want;
    } all[] = {
        { "a_layer/x/of/the_net", "b_layer/x/of/the_net", "model\na_la.._net\nb_la.._net\n" },
        { "the_layer/a/output_0", "the_layer/b/output_0", "model\n..a/outp..\n..b/outp..\n" },
        { "the_layer/a/out_0", "the_layer/b/out_0", "model\n../a/out_0\n../b/out_0\n" },
        { "layer_a/of/the/net/y", "layer_b/of/the/net/y", "model\nlayer_a/..\nlayer_b/..\n" },
    };
    for (guint i = 0; i < G_N_ELEMENTS(all); i++) {
        HnContext ctx;
        context_init(&ctx);
        g_autoptr(HnReport) r = hn_report_new(&ctx, "hone.test/1", &(HnReportEnv){ .onednn = NULL });
        JsonArray *runs = json_array_new();
        add_run(runs, all[i].first, 1, 1, 1, 1, 1);
        add_run(runs, all[i].second, 1, 1, 1, 1, 1);
        json_object_set_array_member(hn_report_root(r), "runs", runs);
        hn_report_table(r, "runs", one);
        g_autofree char *text = hn_report_text(r, 10, FALSE);
        g_assert_cmpstr(text, ==, all[i].want);
    }
}

/* A sentence in the last column is not cut; other texts are, where it would have no room. */
static void test_prose(void)
{
    static const HnColumn some[] = { { "rate", "rate/s", HN_COL_NUMBER },
                                     { "n", "n", HN_COL_INT | HN_COL_MINOR },
                                     { "model", "what", HN_COL_PROSE },
                                     { 0 } };
    static const HnColumn both[] = { { "model", "model", HN_COL_TEXT }, { "model", "what", HN_COL_PROSE }, { 0 } };
    HnContext ctx;
    context_init(&ctx);
    g_autoptr(HnReport) r = hn_report_new(&ctx, "hone.test/1", &(HnReportEnv){ .onednn = NULL });
    JsonArray *runs = json_array_new();
    add_run(runs, "a sentence of seven words in all", 12, 1, 1, 1, 12345);
    add_run(runs, "short", 7, 1, 1, 1, 1);
    json_object_set_array_member(hn_report_root(r), "runs", runs);
    hn_report_table(r, "runs", some);
    g_autofree char *all = hn_report_text(r, 44, FALSE), *lines = hn_report_text(r, 43, FALSE);
    g_autofree char *less = hn_report_text(r, 35, FALSE), *none = hn_report_text(r, 0, FALSE);
    g_assert_cmpstr(all, ==,
                    "rate/s   n  what\n"
                    "12.3 k  12  a sentence of seven words in all\n"
                    "     1   7  short\n");
    g_assert_cmpstr(none, ==, all);
    g_assert_cmpstr(lines, ==,
                    "rate/s   n  what\n"
                    "12.3 k  12  a sentence of seven words in\n"
                    "            all\n"
                    "     1   7  short\n");
    g_assert_cmpstr(less, ==,
                    "rate/s  what\n"
                    "12.3 k  a sentence of seven words\n"
                    "        in all\n"
                    "     1  short\n");
    g_autofree char *md = hn_report_md(r);
    g_assert_nonnull(strstr(md, "|--:|--:|:--|"));

    g_autoptr(HnReport) two = hn_report_new(&ctx, "hone.test/1", &(HnReportEnv){ .onednn = NULL });
    json_object_set_array_member(hn_report_root(two), "runs", json_array_ref(runs));
    hn_report_table(two, "runs", both);
    g_autofree char *cut = hn_report_text(two, 36, FALSE);
    g_assert_cmpstr(cut, ==,
                    "model       what\n"
                    "a se.. all  a sentence of seven\n"
                    "            words in all\n"
                    "short       short\n");
}

static void test_wrap(void)
{
    static const struct {
        const char *line;
        int width;
        const char *want;
    } all[] = {
        { "", 10, "\n" },
        { "one two three", 0, "one two three\n" },
        { "one two three", 13, "one two three\n" },
        { "one two three", 12, "one two\n  three\n" },
        { "  one two three", 9, "  one two\n    three\n" },
        { "one  two", 7, "one\n  two\n" },
        { "    one two three", 9, "    one two three\n" },
        { "/a/path/that/is/longer than that", 10, "/a/path/that/is/longer\n  than\n  that\n" },
        { "\xe4\xb8\xad\xe4\xb8\xad \xe4\xb8\xad x", 8, "\xe4\xb8\xad\xe4\xb8\xad \xe4\xb8\xad\n  x\n" },
    };
    for (gsize i = 0; i < G_N_ELEMENTS(all); i++) {
        g_autoptr(GString) out = g_string_new(NULL);
        hn_terminal_wrap(out, all[i].line, all[i].width);
        g_assert_cmpstr(out->str, ==, all[i].want);
    }
}

static void test_csv(void)
{
    HnContext ctx;
    context_init(&ctx);
    g_autoptr(HnReport) r = report_new(&ctx);
    g_autofree char *csv = hn_report_csv(r);
    g_assert_cmpstr(csv, ==,
                    "model,n,latency_ms.p50,memory_bytes,ci.1,rate\n"
                    "\"a,\"\"b\"\".onnx\",12,0.0812,1200000,0.031,12345\n"
                    "caf\xc3\xa9?[2J.onnx,7,,0,,0.1\n");

    /* a table for CSV alone takes the first one's place, and is not in the text */
    static const HnColumn only[] = { { "n", "only in CSV", HN_COL_INT }, { 0 } };
    hn_report_csv_table(r, "runs", only);
    g_autofree char *short_csv = hn_report_csv(r), *text = hn_report_text(r, 0, FALSE);
    g_assert_cmpstr(short_csv, ==, "n\n12\n7\n");
    g_assert_null(strstr(text, "only in CSV"));
}

/* Texts out of a file, as CSV and as JSON: what a terminal or a spreadsheet would act upon is text alone. */
static void test_hostile(void)
{
    static const struct {
        const char *name, *csv, *json;
    } cases[] = {
        { "a\nb", "a?b", "\"a\\nb\"" },
        { "\x1b]0;x\x07", "?]0;x?", "\"\\u001b]0;x\\u0007\"" },
        { "\xc2\x9b"
          "2J",
          "?2J", "\"\\u009b2J\"" },                           /* the same as ESC [ in one character */
        { "\xe2\x80\xae.exe", "?.exe", "\"\\u202e.exe\"" },   /* right to left from here */
        { "\xe2\x80\xa8x", "?x", "\"\\u2028x\"" },            /* line separator */
        { "\xf3\xa0\x80\x81x", "?x", "\"\\udb40\\udc01x\"" }, /* language tag */
        { "\xf0\x9f\x98\x80", "\xf0\x9f\x98\x80", "\"\xf0\x9f\x98\x80\"" },
        { "=1+1", "'=1+1", "\"=1+1\"" },
        { "+x", "'+x", "\"+x\"" },
        { "-x,y", "\"'-x,y\"", "\"-x,y\"" },
        { "@SUM(A1)", "'@SUM(A1)", "\"@SUM(A1)\"" },
        { "\t=1", "?=1", "\"\\t=1\"" },
        { "say \"=1\"", "\"say \"\"=1\"\"\"", "\"say \\\"=1\\\"\"" },
    };
    static const HnColumn one[] = { { "model", "model", HN_COL_TEXT }, { 0 } };
    HnContext ctx;
    context_init(&ctx);
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(HnReport) r = hn_report_new(&ctx, "hone.test/1", &(HnReportEnv){ .onednn = NULL });
        JsonArray *runs = json_array_new();
        add_run(runs, cases[i].name, -1, -1, 1, 1, 1);
        json_object_set_array_member(hn_report_root(r), "runs", runs);
        hn_report_table(r, "runs", one);
        g_autofree char *csv = hn_report_csv(r), *want = g_strdup_printf("model\n%s\n", cases[i].csv);
        g_autofree char *json = hn_report_json(r), *member = g_strdup_printf("\"model\": %s", cases[i].json);
        g_assert_cmpstr(csv, ==, want);
        g_assert_nonnull(strstr(json, member));
    }
}

/* Names that Markdown or a page would act upon, and everything that a report is made of. */
static HnReport *hostile_report(HnContext *ctx)
{
    /* the second: nobody has that */
    static const HnColumn some[] = { { "model", "model", HN_COL_TEXT },
                                     { "no.such", "none", HN_COL_PERCENT },
                                     { "ci.1", "ci", HN_COL_PERCENT },
                                     { 0 } };
    HnReport *r = hn_report_new(ctx, "hone.test/1", &(HnReportEnv){ .onednn = NULL });
    JsonArray *runs = json_array_new();
    add_run(runs, "<b>|*a_b*", 1, 1, 1, 0.25, 1);
    add_run(runs, "</script>@all", 1, 1, 1, NAN, 1);
    json_object_set_array_member(hn_report_root(r), "runs", runs);
    hn_report_line(r, "see #1 of `x`");
    hn_report_section(r, "Nothing");
    hn_report_table(r, "none", some);
    hn_report_section(r, "Sizes <1>");
    hn_report_fact(r, "a", "%d & more", 1);
    hn_report_fact(r, "long name", "2");
    hn_report_top_table(r, "runs", some, 1);
    hn_report_line(r, "  indented");
    return r;
}

static void test_md(void)
{
    HnContext ctx;
    char *args[] = { (char *)"a/model.onnx", (char *)"x*y.onnx", NULL };
    context_init(&ctx);
    ctx.args = args;
    ctx.n_args = 2;
    g_autoptr(HnReport) r = hostile_report(&ctx);
    g_autofree char *md = hn_report_md(r), *text = hn_report_text(r, 0, FALSE);
    g_assert_true(g_str_has_prefix(md, "## hone-test: a/model.onnx, x\\*y.onnx\n"
                                       "\n"
                                       "- see #<!-- -->1 of \\`x\\`\n"
                                       "\n"
                                       "### Sizes \\<1\\>\n"
                                       "\n"
                                       "- **a:** 1 \\& more\n"
                                       "- **long name:** 2\n"
                                       "\n"
                                       "| model | ci |\n"
                                       "|:--|--:|\n"
                                       "| \\<b\\>\\|\\*a_b\\* | 25.0 % |\n"
                                       "\n"
                                       "1 of 2 rows.\n"
                                       "\n"
                                       "  - indented\n"
                                       "\n"
                                       "<details>"));
    g_assert_cmpstr(text, ==,
                    "see #1 of `x`\n\n\n"
                    "a          1 & more\n"
                    "long name  2\n"
                    "model      none      ci\n"
                    "<b>|*a_b*     -  25.0 %\n"
                    "  indented\n");
}

static void test_html(void)
{
    HnContext ctx;
    char *argv[] = { (char *)"/bin/hone-test", (char *)"a b", (char *)"`<", NULL };
    context_init(&ctx);
    ctx.argv = argv;
    g_autoptr(HnReport) r = hostile_report(&ctx);
    hn_report_plot(r, "a <caption>", "this is no command\n");
    g_autofree char *html = hn_report_html(r), *md = hn_report_md(r);
    g_assert_nonnull(strstr(html, "<td class=t>&lt;b&gt;|*a_b*<td class=p style=\"--w:25%\">25.0 %"));
    g_assert_nonnull(strstr(html, "<summary>all 2 rows</summary>"));
    g_assert_nonnull(strstr(html, "<td class=t>&lt;/script&gt;@all<td>-"));
    g_assert_nonnull(strstr(html, "<dl>\n<dt>a<dd>1 &amp; more\n<dt>long name<dd>2\n</dl>"));
    g_assert_nonnull(strstr(html, "Here would be a plot: a &lt;caption&gt;"));
    g_assert_nonnull(strstr(html, "<pre>hone-test &apos;a b&apos; &apos;`&lt;&apos;</pre>")
                         ?: strstr(html, "<pre>hone-test &#39;a b&#39; &#39;`&lt;&#39;</pre>"));
    g_assert_nonnull(strstr(md, "```\nhone-test 'a b' '`<'\n```"));
    const char *json = strstr(html, "id=report>");
    g_assert_nonnull(json);
    g_assert_nonnull(strstr(json, "\\u003c/script>@all"));
    g_assert_true(strstr(json, "</script>") == g_strrstr(json, "</script>"));
    g_assert_null(strstr(html, "Nothing"));
    g_assert_null(strstr(html, "http"));
}

static void test_json(void)
{
    HnContext ctx;
    context_init(&ctx);
    g_autoptr(HnReport) r = report_new(&ctx);
    g_autofree char *json = hn_report_json(r);
    g_autoptr(JsonParser) parser = json_parser_new();
    g_autoptr(GError) error = NULL;
    g_assert_true(json_parser_load_from_data(parser, json, -1, &error));
    JsonNode *root = json_parser_get_root(parser);
    g_assert_cmpstr(json_node_get_string(hn_json_find(root, "schema")), ==, "hone.test/1");
    g_assert_cmpstr(json_node_get_string(hn_json_find(root, "hone")), ==, hn_version());
    g_assert_cmpint(json_node_get_int(hn_json_find(root, "env.threads")), ==, 3);
    g_assert_true(JSON_NODE_HOLDS_NULL(hn_json_find(root, "env.onednn")));
    g_assert_cmpfloat(json_node_get_double(hn_json_find(root, "runs.0.latency_ms.p50")), ==, 0.0812);
    g_assert_true(JSON_NODE_HOLDS_NULL(hn_json_find(root, "runs.1.latency_ms.p50")));
    g_assert_nonnull(strstr(json, "\"ci\": [0.1, null]"));
    g_assert_nonnull(strstr(json, "\\u001b[2J"));
    g_assert_true(g_str_has_prefix(json, "{\n  \"schema\": \"hone.test/1\",\n"));
    g_assert_null(hn_json_find(root, "runs.2"));
    g_assert_null(hn_json_find(root, "runs.x"));
    g_assert_null(hn_json_find(root, "schema.x"));
}

static void test_numbers(void)
{
    static const double values[] = { 0, 1, -1, 0.1, 1.0 / 3, 1e300, 5e-324, 123456789.125, 0x1p63 };
    for (gsize i = 0; i < G_N_ELEMENTS(values); i++) {
        g_autofree char *text = hn_json_number(values[i]);
        g_assert_true(g_ascii_strtod(text, NULL) == values[i]);
    }
    g_autofree char *text = hn_json_number(0.1);
    g_assert_cmpstr(text, ==, "0.1");
}

static void test_broken_utf8(void)
{
    g_autoptr(JsonNode) node = json_node_init_string(json_node_alloc(), "a\xff\"\\\n\x01");
    g_autofree char *text = hn_json_text(node);
    g_assert_cmpstr(text, ==, "\"a\xef\xbf\xbd\\\"\\\\\\n\\u0001\"\n");
}

static void test_files(void)
{
    g_autofree char *folder = g_dir_make_tmp("hone-report-XXXXXX", NULL);
    g_autofree char *json = g_build_filename(folder, "r.json", NULL), *csv = g_build_filename(folder, "r.csv", NULL);
    g_autofree char *md = g_build_filename(folder, "r.md", NULL);
    HnContext ctx;
    context_init(&ctx);
    ctx.common.json = ctx.common.csv = ctx.common.quiet = TRUE;
    ctx.common.json_file = json;
    ctx.common.csv_file = csv;
    ctx.common.report = md;
    ctx.stdout_user = "the model";
    g_autoptr(HnReport) r = report_new(&ctx);
    g_autoptr(GError) error = NULL;
    g_assert_true(hn_report_write(r, &error));
    g_autofree char *json_text = NULL, *csv_text = NULL, *expected = hn_report_csv(r);
    g_autofree char *md_text = NULL, *md_wanted = hn_report_md(r);
    g_assert_true(g_file_get_contents(json, &json_text, NULL, NULL));
    g_assert_true(g_file_get_contents(csv, &csv_text, NULL, NULL));
    g_assert_cmpstr(csv_text, ==, expected);
    g_assert_true(g_file_get_contents(md, &md_text, NULL, NULL));
    g_assert_cmpstr(md_text, ==, md_wanted);
    g_remove(md);
    g_remove(json);
    g_remove(csv);
    g_rmdir(folder);
    g_assert_false(hn_report_write(r, &error));
    g_assert_error(error, HN_ERROR, HN_ERROR_IO);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/cli/report/text", test_text);
    g_test_add_func("/cli/report/wrap", test_wrap);
    g_test_add_func("/cli/report/minor", test_minor);
    g_test_add_func("/cli/report/cut", test_cut);
    g_test_add_func("/cli/report/prose", test_prose);
    g_test_add_func("/cli/report/csv", test_csv);
    g_test_add_func("/cli/report/hostile", test_hostile);
    g_test_add_func("/cli/report/md", test_md);
    g_test_add_func("/cli/report/html", test_html);
    g_test_add_func("/cli/report/json", test_json);
    g_test_add_func("/cli/report/numbers", test_numbers);
    g_test_add_func("/cli/report/broken-utf8", test_broken_utf8);
    g_test_add_func("/cli/report/files", test_files);
    return g_test_run();
}
