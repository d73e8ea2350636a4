/*
 * hn-copy IN OUT: read a model and write it again.
 * hn-copy --check IN OUT: and read that again, which must give an equal model, as must a copy in memory.
 * hn-copy --batch FILE: --check for each line "IN OUT" of FILE; says what failed, and how many did.
 * hn-copy --one-file|--keep|--no-check IN OUT: external data in one file; left where it is; only copy (the default).
 */
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "ir/copy.h"
#include "onnx/onnx.h"

/* As if the weights had never been in files of their own. */
static void forget_external(HnModel *m)
{
    for (guint i = 0; i < m->graph->weights->len; i++) {
        HnTensor *t = ((HnValue *)m->graph->weights->pdata[i])->weight;
        if (!t || t->stored != HN_STORED_EXTERNAL)
            continue;
        t->stored = HN_STORED_RAW;
        g_clear_pointer(&t->extra, g_ptr_array_unref);
    }
}

static gboolean copy(const char *in, const char *out, HnExternal external, gboolean check, GError **error)
{
    HnOnnxOptions options = { .keep_external = external == HN_EXTERNAL_KEEP };
    g_autoptr(HnModel) m = hn_onnx_read_file(in, &options, error);
    if (!m || !hn_onnx_write_file(m, out, &(HnOnnxWriteOptions){ .external = external }, error))
        return FALSE;
    if (!check)
        return TRUE;
    g_autofree char *why = NULL;
    g_autoptr(HnModel) twin = m->functions->len == 0 ? hn_model_copy(m) : NULL;
    if (twin && (!hn_model_verify(twin, error) || !hn_model_equal(m, twin, &why))) {
        if (why)
            g_set_error(error, HN_ERROR, HN_ERROR_GUARD, "'%s': the copy in memory is not equal: %s", in, why);
        return FALSE;
    }
    g_autoptr(HnModel) again = hn_onnx_read_file(out, &options, error);
    if (!again)
        return FALSE;
    if (external != HN_EXTERNAL_KEEP)
        forget_external(m);
    if (hn_model_equal(m, again, &why))
        return TRUE;
    g_set_error(error, HN_ERROR, HN_ERROR_GUARD, "'%s': the copy is not equal: %s", in, why);
    return FALSE;
}

static int batch(const char *list)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *text = NULL;
    int done = 0, failed = 0;
    if (!g_file_get_contents(list, &text, NULL, &error)) {
        fprintf(stderr, "hn-copy: %s\n", error->message);
        return 1;
    }
    g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
    for (char **line = lines; *line; line++) {
        g_auto(GStrv) paths = g_strsplit(*line, " ", 2);
        g_autoptr(GError) cause = NULL;
        if (!paths[0] || !paths[1])
            continue;
        done++;
        if (!copy(paths[0], paths[1], HN_EXTERNAL_AUTO, TRUE, &cause)) {
            failed++;
            fprintf(stderr, "hn-copy: %s\n", cause->message);
        }
    }
    printf("%d passed, %d failed\n", done - failed, failed);
    return failed ? 1 : 0;
}

int main(int argc, char **argv)
{
    const char *option = argc > 1 && argv[1][0] == '-' && argv[1][1] ? argv[1] : "--no-check";
    char **args = argc > 1 && option == argv[1] ? argv + 2 : argv + 1;
    gboolean check = !strcmp(option, "--check");
    HnExternal external = HN_EXTERNAL_AUTO;
    g_autoptr(GError) error = NULL;
    if (!strcmp(option, "--batch") && args[0] && !args[1])
        return batch(args[0]);
    if (!strcmp(option, "--one-file"))
        external = HN_EXTERNAL_ONE_FILE;
    else if (!strcmp(option, "--keep"))
        external = HN_EXTERNAL_KEEP;
    else if (!check && strcmp(option, "--no-check") != 0)
        args = argv + argc;
    if (!args[0] || !args[1] || args[2]) {
        fprintf(stderr, "usage: hn-copy [--check|--one-file|--keep] IN OUT, or hn-copy --batch FILE\n");
        return 2;
    }
    if (copy(args[0], args[1], external, check, &error))
        return 0;
    fprintf(stderr, "hn-copy: %s\n", error->message);
    return hn_error_exit_status(error);
}
