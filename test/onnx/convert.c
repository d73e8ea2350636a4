/*
 * hn-convert IN OUT OPSET...: convert a model to each opset in turn and write what comes out; 0 is the one it had.
 * Exit status 4 where nodes block, with a line on stdout for each.
 */
#include <stdio.h>

#include "base/error.h"
#include "onnx/onnx.h"
#include "pass/opset.h"

static gboolean convert(const char *in, const char *out, char **opsets, GPtrArray *blocked, GError **error)
{
    g_autoptr(HnModel) m = hn_onnx_read_file(in, &(HnOnnxOptions){ 0 }, error);
    if (!m)
        return FALSE;
    int64_t own = hn_model_opset(m, NULL);
    for (char **o = opsets; *o; o++) {
        int64_t target = g_ascii_strtoll(*o, NULL, 10);
        if (!hn_convert_opset(m, target == 0 ? own : target, blocked, error) || !hn_model_verify(m, error))
            return FALSE;
    }
    return hn_onnx_write_file(m, out, &(HnOnnxWriteOptions){ .external = HN_EXTERNAL_AUTO }, error);
}

int main(int argc, char **argv)
{
    g_autoptr(GPtrArray) blocked = g_ptr_array_new_with_free_func(g_free);
    g_autoptr(GError) error = NULL;
    if (argc < 4) {
        fprintf(stderr, "usage: hn-convert IN OUT OPSET...\n");
        return 2;
    }
    if (convert(argv[1], argv[2], argv + 3, blocked, &error))
        return 0;
    for (guint i = 0; i < blocked->len; i++)
        printf("%s\n", (const char *)blocked->pdata[i]);
    fprintf(stderr, "hn-convert: %s\n", error->message);
    return hn_error_exit_status(error);
}
