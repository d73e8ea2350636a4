#include "data/random.h"

#include <string.h>

#include "base/error.h"
#include "base/half.h"
#include "op/op.h"

#define MAX_ID 9                         /* of integers of which nothing is known */
#define MAX_DEPTH 4                      /* nodes between an input and the table that its values look up */
#define STRETCH 65536                    /* elements between two looks at whether work is to end */
#define MOST_ELEMENTS ((int64_t)1 << 27) /* of an input whose size nobody chose: some seconds of random numbers */

static int64_t table_length(const HnNode *n)
{
    const HnValue *table = hn_node_in(n, 0);
    const HnAttr *axis = hn_node_attr(n, "axis");
    int64_t a = axis && axis->kind == HN_ATTR_INT ? axis->i : 0;
    if (!table || !table->weight)
        return 0;
    int rank = table->weight->ndim;
    a += a < 0 ? rank : 0;
    return a >= 0 && a < rank ? table->weight->dims[a] : 0;
}

/* Output 0 holds values of input 0: in another shape, order or type. */
static gboolean keeps_values(const HnOp *op)
{
    return (op->flags & HN_OP_VIEW) != 0 || op->quant.kind == HN_Q_PASS;
}

/* The shortest table that v's elements are looked up in, at once or behind a few nodes that keep values; 0: none found.
 */
static int64_t shortest_table(const HnValue *v, int depth)
{
    int64_t least = 0;
    for (guint i = 0; i < v->users->len; i++) {
        const HnNode *n = v->users->pdata[i];
        const HnOp *op = hn_op_find(n->domain, n->op_type);
        int64_t length = 0;
        if (op == NULL || (i > 0 && n == v->users->pdata[i - 1])) /* a node may read a value many times */
            continue;
        if ((op->flags & HN_OP_LOOKUP) != 0 && hn_node_in(n, 1) == v)
            length = table_length(n);
        else if (depth > 0 && hn_node_in(n, 0) == v && hn_node_out(n, 0) != NULL && keeps_values(op))
            length = shortest_table(hn_node_out(n, 0), depth - 1);
        if (length > 0 && (least == 0 || length < least))
            least = length;
    }
    return least;
}

static gboolean is_mask(const HnValue *v, HnDtype dtype)
{
    g_autofree char *name = g_ascii_strdown(v->name, -1);
    return dtype == HN_BOOL || strstr(name, "mask");
}

/* Elements [first, end) of t. */
static void fill_floats(HnRng *rng, HnTensor *t, int64_t first, int64_t end)
{
    for (int64_t i = first; i < end; i++) {
        double x = hn_rng_normal(rng);
        switch (t->dtype) {
        case HN_F32:
            ((float *)t->data)[i] = (float)x;
            break;
        case HN_F64:
            ((double *)t->data)[i] = x;
            break;
        default:
            hn_tensor_set_f64(t, i, x);
        }
    }
}

static void fill_mask(HnRng *rng, HnTensor *t, int64_t first, int64_t end)
{
    int64_t row = t->ndim > 0 ? MAX(t->dims[t->ndim - 1], 1) : 1;
    for (int64_t i = first; i < end; i++)
        hn_tensor_set_i64(t, i, i % row == 0 || hn_rng_int(rng, 0, 7) != 0);
}

/* Some words, of which some are the same. */
static void fill_strings(HnRng *rng, HnTensor *t, int64_t first, int64_t end)
{
    static const char *const words[] = { "a",    "small", "number", "of",    "words", "that", "Come",      "often",
                                         "Once", "seven", "ÄÖ",     "x1.5b", "",      "42",   "two words", "end" };
    for (int64_t i = first; i < end; i++) {
        const char *word = words[hn_rng_int(rng, 0, G_N_ELEMENTS(words) - 1)];
        g_autoptr(GBytes) s = g_bytes_new_static(word, strlen(word));
        hn_tensor_set_string(t, i, s);
    }
}

/* How many elements the sequences have whose lengths the input is said by its name to hold, one for each: the second
 * dimension of the first other input that has one. 0: no lengths. */
static int64_t sequence_length(const HnValue *input, const HnTensor *t, const HnShapes *shapes)
{
    const HnGraph *g = input->graph;
    g_autofree char *name = g_ascii_strdown(input->name, -1);
    int64_t dims[HN_MAX_RANK];
    if (t->ndim > 1 || !hn_dtype_in(t->dtype, HN_T_INTS) || strstr(name, "len") == NULL)
        return 0;
    for (guint i = 0; i < g->inputs->len; i++) {
        const HnValue *x = g->inputs->pdata[i];
        const int rank = x == input || hn_value_is_weight(x) ? 0 : hn_shapes_dims(shapes, x, dims, NULL);
        if (rank >= 2 && (t->ndim == 0 || dims[0] == t->dims[0]))
            return dims[1];
    }
    return 0;
}

/* The largest id of an input. */
static int64_t most_of(const HnValue *input, HnDtype dtype)
{
    int64_t length = shortest_table(input, MAX_DEPTH), most = length ? length - 1 : MAX_ID;
    if (!length && dtype == HN_U8)
        most = 255;
    return MIN(most, dtype == HN_I8 ? 127 : dtype == HN_U8 ? 255 : 32767);
}

static gboolean fill(HnRng *rng, const HnValue *input, const HnShapes *shapes, HnTensor *t, HnBudget *budget,
                     GError **error)
{
    const int64_t length = sequence_length(input, t, shapes);
    const gboolean floats = hn_dtype_in(t->dtype, HN_T_FLOATS), mask = !floats && is_mask(input, t->dtype);
    const int64_t most = floats || mask ? 0 : most_of(input, t->dtype);
    for (int64_t first = 0; first < t->n; first += STRETCH) {
        const int64_t end = t->n - first > STRETCH ? first + STRETCH : t->n;
        if (!hn_budget_ask(budget, error))
            return FALSE;
        if (t->dtype == HN_STRING) {
            fill_strings(rng, t, first, end);
            continue;
        }
        if (floats)
            fill_floats(rng, t, first, end);
        else if (mask)
            fill_mask(rng, t, first, end);
        for (int64_t i = first; i < end && !floats && !mask; i++)
            hn_tensor_set_i64(t, i, length > 0 ? length : hn_rng_int(rng, 0, most));
    }
    return TRUE;
}

/* The type of a tensor for the input. */
static HnType *type_of(const HnValue *input, const HnShapes *shapes, GError **error)
{
    int64_t dims[HN_MAX_RANK], n;
    int rank = hn_shapes_dims(shapes, input, dims, error);
    if (rank < 0)
        return NULL;
    const HnType *type = input->type;
    while (type->kind == HN_TYPE_OPTIONAL)
        type = type->elem;
    if (!hn_dtype_in(type->dtype, HN_T_COMPUTE | HN_BIT(HN_STRING))) {
        g_set_error(error, HN_ERROR, HN_ERROR_UNSUPPORTED, "cannot make up elements of type %s for input '%s'",
                    hn_dtype_name(type->dtype), input->name);
        return NULL;
    }
    HnType *made = hn_type_fixed(type->dtype, rank, dims);
    /* what cannot even be counted has its own error, when it is made */
    if (!hn_dims_count(rank, dims, &n) || n <= MOST_ELEMENTS || hn_shapes_chosen(shapes, input))
        return made;
    g_autofree char *text = hn_type_describe(made);
    g_set_error(error, HN_ERROR, HN_ERROR_UNSUPPORTED,
                "input '%s', %s as the file says, is too large to be made up: give data or another shape", input->name,
                text);
    hn_type_unref(made);
    return NULL;
}

HnTensor *hn_random_tensor(HnRng rng, const HnValue *input, const HnShapes *shapes, HnBudget *budget, GError **error)
{
    g_autoptr(HnType) type = type_of(input, shapes, error);
    int64_t dims[HN_MAX_RANK];
    if (!type || !hn_type_is_fixed(type, dims))
        return NULL;
    g_autoptr(HnTensor) t = hn_tensor_new_uninit(type->dtype, type->rank, dims, budget, error);
    if (!t) {
        g_prefix_error(error, "input '%s': ", input->name);
        return NULL;
    }
    return fill(&rng, input, shapes, t, budget, error) ? g_steal_pointer(&t) : NULL;
}

/* --- numbers that branches hang on ---------------------------------------------------------------------------------
 */

/* A test of two operands: its result is true or false. */
static gboolean is_test(const HnOp *op)
{
    return op->out[0] == 'b' && op->in[0] != '\0' && op->in[0] == op->in[1];
}

static void add_choice(const HnTensor *t, double *x, int max, int *n)
{
    if (t == NULL || t->n != 1 || t->unloaded || !hn_dtype_in(t->dtype, HN_T_INTS | HN_T_FLOATS) || *n >= max)
        return;
    const double c = hn_tensor_get_f64(t, 0);
    for (int i = 0; i < *n; i++)
        if (x[i] == c)
            return;
    x[(*n)++] = c;
}

/* The elements of a value that is constant in the file: a weight or a Constant node's. */
static const HnTensor *elements_of(const HnValue *v)
{
    if (v == NULL || v->weight != NULL || v->producer == NULL || v->producer->in->len > 0)
        return v != NULL ? v->weight : NULL;
    const HnAttr *a = hn_node_attr(v->producer, "value");
    return a != NULL && a->kind == HN_ATTR_TENSOR ? a->t : NULL;
}

static void find_choices(const HnValue *v, int depth, double *x, int max, int *n)
{
    for (guint i = 0; i < v->users->len; i++) {
        const HnNode *u = v->users->pdata[i];
        const HnOp *op = hn_op_find(u->domain, u->op_type);
        if (op == NULL || (i > 0 && u == v->users->pdata[i - 1]))
            continue;
        if (is_test(op) && u->in->len == 2)
            add_choice(elements_of(hn_node_in(u, hn_node_in(u, 0) == v)), x, max, n);
        else if (depth > 0 && hn_node_in(u, 0) == v && hn_node_out(u, 0) != NULL && keeps_values(op))
            find_choices(hn_node_out(u, 0), depth - 1, x, max, n);
    }
}

int hn_random_choices(const HnValue *input, double *x, int max)
{
    int n = 0;
    find_choices(input, MAX_DEPTH, x, max, &n);
    return n;
}
