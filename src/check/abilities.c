#include "check/abilities.h"

#include <string.h>

gboolean hn_op_has_kernel(const HnOp *op, const HnBackend *backend)
{
    const HnKernel *const *kernels = backend->kernels(op);
    if ((op->flags & (HN_OP_VIEW | HN_OP_CONTROL | HN_OP_SHAPE_ONLY)) != 0 || op->in[0] == '\0')
        return TRUE;
    return kernels != NULL && kernels[0] != NULL;
}

/* Text for scdoc, which takes these for marks. */
static void put(GString *out, const char *text)
{
    for (; *text != '\0'; text++) {
        if (strchr("_*\\#[]|", *text) != NULL)
            g_string_append_c(out, '\\');
        g_string_append_c(out, *text);
    }
}

static void put_types(GString *out, HnTypeMask mask)
{
    static const struct {
        HnTypeMask mask;
        const char *name;
    } groups[] = {
        { HN_T_FLOATS, "floats" },           { HN_T_INTS, "integers" },    { HN_T_SINTS, "signed integers" },
        { HN_T_UINTS, "unsigned integers" }, { HN_T_F8S, "8-bit floats" },
    };
    const char *comma = "";
    if (mask == HN_T_ANY) {
        g_string_append(out, "any");
        return;
    }
    for (gsize i = 0; i < G_N_ELEMENTS(groups); i++) {
        if ((mask & groups[i].mask) != groups[i].mask)
            continue;
        g_string_append_printf(out, "%s%s", comma, groups[i].name);
        mask &= ~groups[i].mask;
        comma = ", ";
    }
    for (HnDtype d = (HnDtype)1; d < HN_DTYPE_COUNT; d++)
        if (hn_dtype_in(d, mask)) {
            g_string_append(out, comma);
            put(out, hn_dtype_name(d));
            comma = ", ";
        }
}

static const char *letter_name(char c)
{
    switch (c) {
    case 'i':
        return "i64";
    case 'j':
        return "i32 or i64";
    case 'b':
        return "bool";
    case 'f':
        return "f32";
    case 'u':
        return "u8";
    case 'y':
        return "u8 or i8";
    case '.':
        return "any";
    case '*':
    case '~':
        return "...";
    default:
        return NULL;
    }
}

static void put_letters(GString *out, const char *letters)
{
    for (const char *c = letters; *c != '\0'; c++) {
        const char *name = letter_name(*c);
        g_string_append_printf(out, "%s%.*s", c > letters ? ", " : "", name != NULL ? (int)strlen(name) : 1,
                               name != NULL ? name : c);
    }
}

/* "T, i64 -> T, with T floats, integers" */
static void put_signature(GString *out, const HnOp *op)
{
    const HnTypeMask masks[] = { op->T, op->U, op->V, op->W };
    const char *with = "; ";
    put_letters(out, op->in[0] != '\0' ? op->in : "");
    g_string_append(out, op->in[0] != '\0' ? " -> " : "-> ");
    put_letters(out, op->out);
    for (int i = 0; i < 4; i++) {
        const char letter = "TUVW"[i];
        if (strchr(op->in, letter) == NULL && strchr(op->out, letter) == NULL)
            continue;
        g_string_append_printf(out, "%s%c: ", with, letter);
        put_types(out, masks[i]);
    }
}

static void put_opsets(GString *out, const HnOp *op)
{
    for (int i = 0; i < (int)G_N_ELEMENTS(op->since) && op->since[i] != 0; i++)
        g_string_append_printf(out, "%s%d", i > 0 ? ", " : "", op->since[i]);
    if (op->until > 0)
        g_string_append_printf(out, ", until %d", op->until);
}

static void put_kernels(GString *out, const HnOp *op, const HnBackend *backend)
{
    const HnKernel *const *kernels = backend->kernels(op);
    if (kernels == NULL || kernels[0] == NULL) {
        g_string_append(out, hn_op_has_kernel(op, backend) ? "nothing is computed"
                             : op->ref != NULL             ? "none: its reference runs"
                                                           : "none: read as other operators");
        return;
    }
    for (int i = 0; kernels[i] != NULL; i++) {
        g_string_append(out, i > 0 ? ", " : "");
        put(out, kernels[i]->name);
    }
}

/* NULL: it is not quantized. */
static const char *quantized(const HnOp *op)
{
    switch (op->quant.kind) {
    case HN_Q_WEIGHTED:
        return "integer products with a quantized weight";
    case HN_Q_PASS:
        return "integers pass as they are";
    case HN_Q_ELEMENTWISE:
        return "needs the ranges of all inputs";
    case HN_Q_FIXED_RANGE:
        return "its results have a fixed range";
    default:
        return (op->flags & HN_OP_INTEGERS) != 0 ? "of integers itself" : NULL;
    }
}

static void put_operator(GString *out, const HnOp *op, const HnBackend *cpu, const HnBackend *gpu)
{
    const char *quant = quantized(op);
    g_string_append_printf(out, "*%s*\n\tOpsets: ", op->name);
    put_opsets(out, op);
    g_string_append(out, ".++\nTypes: ");
    put_signature(out, op);
    g_string_append(out, ".++\nKernels: ");
    put_kernels(out, op, cpu);
    if (gpu->kernels(op) != NULL) {
        g_string_append(out, ".++\nOn GPUs: ");
        put_kernels(out, op, gpu);
    }
    g_string_append_printf(out, ".%s", op->grad != NULL ? "++\nHas a gradient." : "");
    if (quant != NULL)
        g_string_append_printf(out, "++\nQuantization: %s.", quant);
    g_string_append(out, "\n\n");
}

static const char *const top =
    "hone-operators(7)\n\n# NAME\n\nhone-operators - which operators hone runs, trains and quantizes, and how\n\n"
    "# DESCRIPTION\n\n"
    "What is known of each operator, as hone's own records say. This page is made of them and not written by hand; "
    "*hone-inspect*(1) says by the same records which operators of a model run on what.\n\n"
    "*Opsets* are the versions in which an operator came or changed; all others in between are read, too. *Types* are "
    "those of its inputs and outputs in the newest of them: equal letters stand for equal types, ... for more of the "
    "same. *Kernels* are tried in that order, on the CPU, and *On GPUs* with *--device cuda*; where none takes a node "
    "its "
    "reference runs on the CPU, slow and exact, "
    "which *-v* and hone-profile say and *--strict* refuses. An operator *with a gradient* does not end the way to a "
    "weight in training. *Quantization* is what *hone-quantize*(1) makes of it.\n\n";

void hn_abilities_page(const HnBackend *cpu, const HnBackend *gpu, GString *out)
{
    static const struct {
        const char *domain, *title;
    } parts[] = {
        { NULL, "OPERATORS OF ONNX" },
        { "ai.onnx.ml", "OPERATORS OF AI.ONNX.ML" },
        { "com.microsoft", "OPERATORS OF COM.MICROSOFT" },
        { HN_DOMAIN_INTERNAL, "OPERATORS OF HONE'S OWN" },
    };
    g_string_append(out, top);
    for (gsize i = 0; i < G_N_ELEMENTS(parts); i++) {
        gboolean any = FALSE;
        for (const HnOp *const *o = hn_op_all(); *o != NULL; o++) {
            if (g_strcmp0((*o)->domain, parts[i].domain) != 0)
                continue;
            if (!any)
                g_string_append_printf(out, "# %s\n\n", parts[i].title);
            any = TRUE;
            put_operator(out, *o, cpu, gpu);
        }
    }
    g_string_append(out, "# SEE ALSO\n\n*hone*(1), *hone-inspect*(1), *hone-quantize*(1)\n");
}
