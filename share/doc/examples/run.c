/*
 * usage: run MODEL [FILE...]
 *
 * Computes an ONNX model's outputs with libhone and prints the first numbers of each. File k holds the elements of
 * input k, as they lie in memory; an input without a file is all zeros. A dimension that the model leaves open is 1.
 *
 *     cc -o run run.c $(pkg-config --cflags --libs hone)
 */
#include <hone.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define MOST_INPUTS 16
#define MOST_RANK 8
#define SHOWN 10

static void die(const char *what)
{
    fprintf(stderr, "run: %s\n", what);
    exit(1);
}

static void check(HoneStatus status)
{
    if (status != HONE_OK) {
        fprintf(stderr, "run: %s\n", hone_error());
        exit(status);
    }
}

static size_t size_of(HoneType type)
{
    switch (type) {
    case HONE_U8:
    case HONE_I8:
    case HONE_BOOL:
        return 1;
    case HONE_U16:
    case HONE_I16:
    case HONE_F16:
    case HONE_BF16:
        return 2;
    case HONE_F32:
    case HONE_I32:
    case HONE_U32:
        return 4;
    case HONE_F64:
    case HONE_I64:
    case HONE_U64:
        return 8;
    default:
        die("an input is of a type that this example does not know");
        return 0;
    }
}

/* An input's tensor, with elements from a file (NULL: zeros); dims is room for its dimensions. */
static HoneTensor make_input(const HonePort *port, const char *path, int64_t *dims)
{
    size_t bytes = size_of(port->type);
    if (port->rank < 0 || port->rank > MOST_RANK)
        die("an input's rank is not known, or large");
    for (int i = 0; i < port->rank; i++) {
        dims[i] = port->dims[i] < 0 ? 1 : port->dims[i];
        bytes *= (size_t)dims[i];
    }
    void *data = calloc(bytes + 1, 1);
    FILE *file = path ? fopen(path, "rb") : NULL;
    if (!data || (path && (!file || fread(data, 1, bytes, file) != bytes)))
        die("a file cannot be read, or is too short");
    if (file)
        fclose(file);
    return (HoneTensor){ port->type, port->rank, dims, data, bytes };
}

static void print_output(const HonePort *port, const HoneTensor *t)
{
    printf("%s [", port->name);
    for (int i = 0; i < t->rank; i++)
        printf("%s%" PRId64, i ? "," : "", t->dims[i]);
    printf("]");
    if (t->type == HONE_F32)
        for (size_t i = 0; i < t->bytes / sizeof(float) && i < SHOWN; i++)
            printf(" %g", (double)((const float *)t->data)[i]);
    printf("\n");
}

int main(int argc, char **argv)
{
    HoneModel *model;
    HoneSession *session;
    HoneTensor in[MOST_INPUTS];
    int64_t dims[MOST_INPUTS][MOST_RANK];
    if (argc < 2)
        die("usage: run MODEL [FILE...]");
    check(hone_open(argv[1], NULL, &model));
    check(hone_session_new(model, &session));
    const size_t n = hone_n_inputs(model);
    if (n > MOST_INPUTS)
        die("too many inputs for this example");
    for (size_t k = 0; k < n; k++)
        in[k] = make_input(hone_input(model, k), k + 2 < (size_t)argc ? argv[k + 2] : NULL, dims[k]);
    HoneTensor *out = calloc(hone_n_outputs(model), sizeof *out);
    if (!out)
        die("out of memory");
    check(hone_run(session, in, out));
    for (size_t k = 0; k < hone_n_outputs(model); k++)
        print_output(hone_output(model, k), &out[k]);
    for (size_t k = 0; k < n; k++)
        free((void *)in[k].data);
    free(out);
    hone_session_free(session);
    hone_close(model);
    return 0;
}
