/*
 * Stands in for libcublasLt.so (HONE_CUBLASLT=PATH), on the emulated driver: checks what it is told as closely as it
 * can, and computes by plain sums in double, in the order of the stream. Mistakes of the caller are said on stderr and
 * in the driver's log, and so is what is not destroyed at the end of the process, which then fails with status 70: a
 * caller that goes on without the library, as hone does, would not notice.
 *
 *   HONE_EMU_LT=NAME   none: no product has an algorithm; dead: no handle can be made; fails: products are refused when
 * they are enqueued
 */
#include <dlfcn.h>
#include <glib.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/half.h"
#include "cuda/core/cublaslt.h"
#include "emu_library.h"

enum {
    NOT_INITIALIZED = 1,
    MISTAKEN = 70,
    WORKSPACE = 1024,
    DEEP = 64
}; /* products of that many terms want workspace */
#define MAGIC 0x7e57a16u

/* Visible from outside. */
#define CALL(name, ...)                                           \
    __attribute__((visibility("default"))) int name(__VA_ARGS__); \
    int name(__VA_ARGS__)

typedef enum { HANDLE = 1, PRODUCT, MATRIX, WISH, KINDS } Kind;
static const char *const kind_names[KINDS] = { "", "handle", "description of a product", "description of a matrix",
                                               "preference" };

typedef struct {
    int32_t sums, scale, transpose[2];
    uint32_t end;
    int32_t bias_type;
    const void *bias;
} Product;

typedef struct {
    int32_t type, batch;
    uint64_t rows, columns;
    int64_t line, step; /* elements from a column to the next; from a matrix to the next */
} Matrix;

typedef struct {
    uint64_t workspace;
    uint32_t reductions, alignment[4]; /* of a, b, c, d */
} Wish;

/* What the 64 bytes of an algorithm are here. */
typedef struct {
    uint32_t magic, problem; /* a hash of what it was chosen for */
    uint64_t workspace;
    uint32_t alignment[5]; /* of a, b, c, d, bias */
    uint32_t unused[7];
} Algorithm;
_Static_assert(sizeof(Algorithm) == sizeof(HnLtAlgorithm), "an algorithm");

static GMutex lock;
static GHashTable *objects; /* handle -> Kind */
static gint mistakes;

/* --- the driver --------------------------------------------------------------------------------------------------- */

static void *driver_function(const char *name)
{
    const char *driver = g_getenv("HONE_CUDA_DRIVER");
    void *library = driver != NULL ? dlopen(driver, RTLD_NOW | RTLD_NOLOAD) : NULL;
    return library != NULL ? dlsym(library, name) : NULL;
}

static int mistake(const char *format, ...) G_GNUC_PRINTF(1, 2);
static int mistake(const char *format, ...)
{
    void (*say)(const char *);
    va_list a;
    *(void **)&say = driver_function("emu_library_say");
    va_start(a, format);
    char *sentence = g_strdup_vprintf(format, a);
    va_end(a);
    say(sentence);
    g_free(sentence);
    g_atomic_int_inc(&mistakes);
    return HN_LT_INVALID_VALUE;
}

static gboolean is_case(const char *name)
{
    return g_strcmp0(g_getenv("HONE_EMU_LT"), name) == 0;
}

/* --- objects ------------------------------------------------------------------------------------------------------ */

static void *object_new(Kind kind, gsize bytes)
{
    void *o = g_malloc0(bytes);
    g_mutex_lock(&lock);
    if (objects == NULL)
        objects = g_hash_table_new(NULL, NULL);
    g_hash_table_insert(objects, o, GINT_TO_POINTER(kind));
    g_mutex_unlock(&lock);
    return o;
}

static gboolean is(const void *o, Kind kind)
{
    g_mutex_lock(&lock);
    const gboolean right = objects != NULL && GPOINTER_TO_INT(g_hash_table_lookup(objects, o)) == (int)kind;
    g_mutex_unlock(&lock);
    return right;
}

static int object_free(void *o, Kind kind)
{
    if (!is(o, kind))
        return mistake("cuBLASLt: no %s is at %p", kind_names[kind], o);
    g_mutex_lock(&lock);
    g_hash_table_remove(objects, o);
    g_mutex_unlock(&lock);
    g_free(o);
    return HN_LT_SUCCESS;
}

static void say_leaks(void)
{
    GHashTableIter it;
    gpointer o, kind;
    int left[KINDS] = { 0 };
    if (objects == NULL)
        return;
    g_hash_table_iter_init(&it, objects);
    while (g_hash_table_iter_next(&it, &o, &kind))
        left[GPOINTER_TO_INT(kind)]++;
    for (int i = HANDLE; i < KINDS; i++)
        if (left[i] > 0)
            mistake("cuBLASLt: %d times a %s is never destroyed", left[i], kind_names[i]);
}

__attribute__((destructor)) static void finish(void)
{
    say_leaks();
    if (g_atomic_int_get(&mistakes) == 0)
        return;
    fflush(NULL);
    _exit(MISTAKEN);
}

CALL(cublasLtCreate, HnLtHandle *handle)
{
    if (is_case("dead") || driver_function("emu_library_push") == NULL)
        return NOT_INITIALIZED;
    *handle = object_new(HANDLE, 1);
    return HN_LT_SUCCESS;
}

CALL(cublasLtDestroy, HnLtHandle handle)
{
    return object_free(handle, HANDLE);
}

CALL(cublasLtMatmulDescCreate, HnLtProduct *product, int sums, int scale)
{
    Product *p = object_new(PRODUCT, sizeof *p);
    *p = (Product){ .sums = sums, .scale = scale, .end = HN_LT_END_NONE, .bias_type = -1 };
    *product = (HnLtProduct)(gpointer)p;
    return HN_LT_SUCCESS;
}

CALL(cublasLtMatmulDescDestroy, HnLtProduct product)
{
    return object_free(product, PRODUCT);
}

CALL(cublasLtMatrixLayoutCreate, HnLtMatrix *matrix, int type, uint64_t rows, uint64_t columns, int64_t line)
{
    Matrix *m = object_new(MATRIX, sizeof *m);
    *m = (Matrix){ .type = type, .batch = 1, .rows = rows, .columns = columns, .line = line };
    *matrix = (HnLtMatrix)(gpointer)m;
    return HN_LT_SUCCESS;
}

CALL(cublasLtMatrixLayoutDestroy, HnLtMatrix matrix)
{
    return object_free(matrix, MATRIX);
}

CALL(cublasLtMatmulPreferenceCreate, HnLtWish *wish)
{
    Wish *w = object_new(WISH, sizeof *w);
    *w = (Wish){ .reductions = HN_LT_REDUCE_ALL, .alignment = { 256, 256, 256, 256 } };
    *wish = (HnLtWish)(gpointer)w;
    return HN_LT_SUCCESS;
}

CALL(cublasLtMatmulPreferenceDestroy, HnLtWish wish)
{
    return object_free(wish, WISH);
}

/* --- attributes --------------------------------------------------------------------------------------------------- */

typedef struct {
    Kind kind;
    int attribute;
    gsize at, bytes;
} Attribute;

#define OF(kind, attribute, type, member)                                       \
    {                                                                           \
        kind, attribute, offsetof(type, member), sizeof(((type *)NULL)->member) \
    }

static int set(void *o, Kind kind, int attribute, const void *value, size_t bytes)
{
    static const Attribute all[] = {
        OF(PRODUCT, HN_LT_TRANSPOSE_A, Product, transpose[0]),
        OF(PRODUCT, HN_LT_TRANSPOSE_B, Product, transpose[1]),
        OF(PRODUCT, HN_LT_EPILOGUE, Product, end),
        OF(PRODUCT, HN_LT_BIAS, Product, bias),
        OF(PRODUCT, HN_LT_BIAS_TYPE, Product, bias_type),
        OF(MATRIX, HN_LT_BATCH, Matrix, batch),
        OF(MATRIX, HN_LT_BATCH_STEP, Matrix, step),
        OF(WISH, HN_LT_WORKSPACE, Wish, workspace),
        OF(WISH, HN_LT_REDUCTIONS, Wish, reductions),
        OF(WISH, HN_LT_ALIGNMENT_A, Wish, alignment[0]),
        OF(WISH, HN_LT_ALIGNMENT_A + 1, Wish, alignment[1]),
        OF(WISH, HN_LT_ALIGNMENT_A + 2, Wish, alignment[2]),
        OF(WISH, HN_LT_ALIGNMENT_D, Wish, alignment[3]),
    };
    if (!is(o, kind))
        return mistake("cuBLASLt: no %s is at %p", kind_names[kind], o);
    for (guint i = 0; i < G_N_ELEMENTS(all); i++)
        if (all[i].kind == kind && all[i].attribute == attribute) {
            if (value == NULL || bytes != all[i].bytes)
                return mistake("cuBLASLt: attribute %d of a %s has %zu bytes, not %zu", attribute, kind_names[kind],
                               all[i].bytes, bytes);
            memcpy((guint8 *)o + all[i].at, value, bytes);
            return HN_LT_SUCCESS;
        }
    return mistake("cuBLASLt: attribute %d of a %s is not known here", attribute, kind_names[kind]);
}

CALL(cublasLtMatmulDescSetAttribute, HnLtProduct o, int attribute, const void *value, size_t bytes)
{
    return set(o, PRODUCT, attribute, value, bytes);
}

CALL(cublasLtMatrixLayoutSetAttribute, HnLtMatrix o, int attribute, const void *value, size_t bytes)
{
    return set(o, MATRIX, attribute, value, bytes);
}

CALL(cublasLtMatmulPreferenceSetAttribute, HnLtWish o, int attribute, const void *value, size_t bytes)
{
    return set(o, WISH, attribute, value, bytes);
}

/* --- what is described -------------------------------------------------------------------------------------------- */

/* A product as a whole, with copies of what describes it: d = end(alpha op(a) op(b) + beta c + bias). */
typedef struct {
    Product product;
    Matrix m[4]; /* a, b, c, d */
    float alpha, beta;
    int at_c, at_bias; /* which memory; -1: none */
    int at_workspace;
} Problem;

static const char *const names[] = { "a", "b", "c", "d" };

static gboolean is_half(int type)
{
    return type == HN_LT_F16 || type == HN_LT_BF16;
}

static uint64_t rows_of(const Problem *p, int i) /* of op(a), op(b) */
{
    return i < 2 && p->product.transpose[i] == HN_LT_TRANSPOSE ? p->m[i].columns : p->m[i].rows;
}
static uint64_t columns_of(const Problem *p, int i)
{
    return i < 2 && p->product.transpose[i] == HN_LT_TRANSPOSE ? p->m[i].rows : p->m[i].columns;
}

/* Elements from the first to the last one of all of its matrices. */
static uint64_t extent(const Matrix *m)
{
    return (uint64_t)(m->batch - 1) * (uint64_t)m->step + (m->columns - 1) * (uint64_t)m->line + m->rows;
}

static int check_matrix(const Problem *p, int i)
{
    const Matrix *m = &p->m[i];
    if (!is_half(m->type) || m->type != p->m[0].type)
        return mistake("cuBLASLt: %s is of type %d, a of type %d: products of halves are all that is known here",
                       names[i], m->type, p->m[0].type);
    if (m->rows == 0 || m->columns == 0 || m->batch < 1 || m->step < 0)
        return mistake("cuBLASLt: %s has no elements", names[i]);
    if (m->line < (int64_t)m->rows)
        return mistake("cuBLASLt: columns of %s begin every %" G_GINT64_FORMAT " elements, and have %" G_GUINT64_FORMAT,
                       names[i], m->line, m->rows);
    if (m->batch != p->m[3].batch)
        return mistake("cuBLASLt: %d matrices of %s, %d of d", m->batch, names[i], p->m[3].batch);
    return HN_LT_SUCCESS;
}

static int check(const Problem *p)
{
    const Product *q = &p->product;
    const Matrix *c = &p->m[2], *d = &p->m[3];
    for (int i = 0; i < 4; i++)
        if (check_matrix(p, i) != HN_LT_SUCCESS)
            return HN_LT_INVALID_VALUE;
    if (q->sums != HN_LT_SUMS_F32 || q->scale != HN_LT_F32)
        return mistake("cuBLASLt: sums of type %d, factors of type %d: only f32 is known here", q->sums, q->scale);
    for (int i = 0; i < 2; i++)
        if (q->transpose[i] != HN_LT_TRANSPOSE && q->transpose[i] != HN_LT_NO_TRANSPOSE)
            return mistake("cuBLASLt: %s is transposed by %d", names[i], q->transpose[i]);
    if (rows_of(p, 0) != d->rows || columns_of(p, 1) != d->columns || columns_of(p, 0) != rows_of(p, 1))
        return mistake("cuBLASLt: %" G_GUINT64_FORMAT " x %" G_GUINT64_FORMAT " times %" G_GUINT64_FORMAT
                       " x %" G_GUINT64_FORMAT " is not %" G_GUINT64_FORMAT " x %" G_GUINT64_FORMAT,
                       rows_of(p, 0), columns_of(p, 0), rows_of(p, 1), columns_of(p, 1), d->rows, d->columns);
    if (c->rows != d->rows || c->columns != d->columns)
        return mistake("cuBLASLt: c has another shape than d");
    if (d->batch > 1 && (uint64_t)d->step < (d->columns - 1) * (uint64_t)d->line + d->rows)
        return mistake("cuBLASLt: matrices of d lie over each other");
    if ((q->end & ~(uint32_t)HN_LT_END_BIAS) > 1 && (q->end & ~(uint32_t)HN_LT_END_BIAS) != HN_LT_END_RELU &&
        (q->end & ~(uint32_t)HN_LT_END_BIAS) != HN_LT_END_GELU)
        return mistake("cuBLASLt: epilogue %u is not known here", q->end);
    if ((q->end & HN_LT_END_BIAS) != 0 && q->bias_type != -1 && q->bias_type != d->type)
        return mistake("cuBLASLt: a bias of type %d, d of type %d", q->bias_type, d->type);
    if ((q->end & HN_LT_END_BIAS) != 0 && q->bias == NULL)
        return mistake("cuBLASLt: a bias without an address");
    return HN_LT_SUCCESS;
}

static int read_problem(Problem *p, HnLtHandle handle, const void *product, const void *a, const void *b, const void *c,
                        const void *d)
{
    const void *const m[] = { a, b, c, d };
    if (!is(handle, HANDLE) || !is(product, PRODUCT))
        return mistake("cuBLASLt: no handle at %p, or no product at %p", (void *)handle, product);
    *p = (Problem){ .product = *(const Product *)product, .at_c = -1, .at_bias = -1, .at_workspace = -1 };
    for (int i = 0; i < 4; i++) {
        if (!is(m[i], MATRIX))
            return mistake("cuBLASLt: no description of %s is at %p", names[i], m[i]);
        p->m[i] = *(const Matrix *)m[i];
    }
    return check(p);
}

static uint32_t mix(uint32_t hash, uint64_t x)
{
    for (int i = 0; i < 8; i++)
        hash = (hash ^ (uint32_t)(x >> 8 * i & 0xFF)) * 16777619u;
    return hash;
}

/* Of all that an algorithm depends on. */
static uint32_t hash_of(const Problem *p)
{
    const Product *q = &p->product;
    uint32_t hash = mix(mix(mix(2166136261u, (uint64_t)q->transpose[0]), (uint64_t)q->transpose[1]), q->end);
    for (int i = 0; i < 4; i++) {
        const Matrix *m = &p->m[i];
        hash = mix(mix(mix(hash, (uint64_t)m->type), m->rows), m->columns);
        hash = mix(mix(mix(hash, (uint64_t)m->line), (uint64_t)m->batch), (uint64_t)m->step);
    }
    return hash;
}

CALL(cublasLtMatmulAlgoGetHeuristic, HnLtHandle handle, HnLtProduct product, HnLtMatrix a, HnLtMatrix b, HnLtMatrix c,
     HnLtMatrix d, HnLtWish wish, int most, HnLtChoice *choices, int *n)
{
    Problem p;
    if (read_problem(&p, handle, product, a, b, c, d) != HN_LT_SUCCESS)
        return HN_LT_INVALID_VALUE;
    if (!is(wish, WISH) || most < 1)
        return mistake("cuBLASLt: no preference at %p", (void *)wish);
    const Wish *w = (const Wish *)(gpointer)wish;
    *n = 0;
    if (is_case("none"))
        return HN_LT_NOT_SUPPORTED;
    if ((w->reductions & ~(uint32_t)HN_LT_REDUCE_F32) != 0)
        return mistake("cuBLASLt: reductions %u: sums of parts of k may be rounded to halves", w->reductions);
    const gboolean deep = columns_of(&p, 0) >= DEEP && (w->reductions & HN_LT_REDUCE_F32) != 0;
    Algorithm algorithm = { .magic = MAGIC, .problem = hash_of(&p) };
    algorithm.workspace = deep && w->workspace >= WORKSPACE ? WORKSPACE : 0;
    memcpy(algorithm.alignment, w->alignment, sizeof w->alignment);
    const uint64_t at = (uint64_t)(uintptr_t)p.product.bias;
    algorithm.alignment[4] = (uint32_t)(at & (~at + 1) & 0xFF);
    choices[0] = (HnLtChoice){ .workspace = algorithm.workspace, .state = HN_LT_SUCCESS, .waves = 1 };
    memcpy(&choices[0].algorithm, &algorithm, sizeof algorithm);
    *n = 1;
    return HN_LT_SUCCESS;
}

/* --- products ----------------------------------------------------------------------------------------------------- */

static double element(const uint8_t *memory, int type, uint64_t i)
{
    uint16_t half;
    memcpy(&half, memory + 2 * i, 2);
    return (double)(type == HN_LT_F16 ? hn_f16_to_f32(half) : hn_bf16_to_f32(half));
}

static double end_of(uint32_t end, double x)
{
    end &= ~(uint32_t)HN_LT_END_BIAS;
    if (end == HN_LT_END_RELU)
        return x < 0 ? 0 : x;
    return end == HN_LT_END_GELU ? 0.5 * x * (1 + tanh(sqrt(2 / G_PI) * (x + 0.044715 * x * x * x))) : x;
}

static double sum_of(const Problem *p, uint8_t *const *memory, int s, uint64_t i, uint64_t j)
{
    const Matrix *a = &p->m[0], *b = &p->m[1];
    const uint64_t line_a = (uint64_t)a->line, line_b = (uint64_t)b->line, terms = columns_of(p, 0);
    const uint64_t from_a = (uint64_t)s * (uint64_t)a->step, from_b = (uint64_t)s * (uint64_t)b->step;
    const gboolean turned_a = p->product.transpose[0] == HN_LT_TRANSPOSE;
    const gboolean turned_b = p->product.transpose[1] == HN_LT_TRANSPOSE;
    double sum = 0;
    for (uint64_t k = 0; k < terms; k++)
        sum += element(memory[0], a->type, from_a + (turned_a ? i * line_a + k : k * line_a + i)) *
               element(memory[1], b->type, from_b + (turned_b ? k * line_b + j : j * line_b + k));
    return sum;
}

static void compute(const void *data, uint8_t *const *memory)
{
    const Problem *p = data;
    const Matrix *c = &p->m[2], *d = &p->m[3];
    for (int s = 0; s < d->batch; s++)
        for (uint64_t j = 0; j < d->columns; j++)
            for (uint64_t i = 0; i < d->rows; i++) {
                double y = (double)p->alpha * sum_of(p, memory, s, i, j);
                if (p->at_c >= 0)
                    y += (double)p->beta *
                         element(memory[p->at_c], c->type, (uint64_t)s * (uint64_t)c->step + j * (uint64_t)c->line + i);
                if (p->at_bias >= 0)
                    y += element(memory[p->at_bias], d->type, i);
                y = end_of(p->product.end, y);
                const uint16_t half = d->type == HN_LT_F16 ? hn_f16_from_f64(y) : hn_bf16_from_f32((float)y);
                memcpy(memory[2] + 2 * ((uint64_t)s * (uint64_t)d->step + j * (uint64_t)d->line + i), &half, 2);
            }
    if (p->at_workspace >= 0) /* whatever was there is gone */
        memset(memory[p->at_workspace], 0xA5, WORKSPACE);
}

static int add_range(EmuLibraryWork *w, const char *what, const void *at, uint64_t bytes, bool wrote)
{
    w->range[w->n] = (EmuLibraryRange){ what, (uint64_t)(uintptr_t)at, bytes, wrote };
    return w->n++;
}

/* Memory that is written and that something else uses, too: c may be d, where both lie alike. */
static int check_overlap(const EmuLibraryWork *w, const Problem *p)
{
    for (int i = 0; i < w->n; i++)
        for (int k = 0; k < w->n; k++) {
            const EmuLibraryRange *x = &w->range[i], *y = &w->range[k];
            const gboolean same = k == p->at_c && x->address == y->address && p->m[2].line == p->m[3].line;
            if (x->wrote && i != k && !same && x->address < y->address + y->bytes && y->address < x->address + x->bytes)
                return mistake("cublasLtMatmul: %s lies over %s", x->what, y->what);
        }
    return HN_LT_SUCCESS;
}

static int check_algorithm(const Problem *p, const Algorithm *a, const void *const *at, const void *workspace,
                           size_t bytes)
{
    static const char *const what[] = { "a", "b", "c", "d", "the bias" };
    if (a == NULL || a->magic != MAGIC || a->problem != hash_of(p))
        return mistake("cublasLtMatmul: the algorithm was chosen for another product");
    if (bytes < a->workspace)
        return mistake("cublasLtMatmul: %zu bytes of workspace, the algorithm needs %zu", bytes, (size_t)a->workspace);
    if (bytes > 0 && (workspace == NULL || (uintptr_t)workspace % HN_LT_WORKSPACE_ALIGNMENT != 0))
        return mistake("cublasLtMatmul: the workspace at %p begins at no multiple of 256", workspace);
    for (int i = 0; i < 5; i++)
        if (a->alignment[i] != 0 && (uintptr_t)at[i] % a->alignment[i] != 0)
            return mistake("cublasLtMatmul: %s at %p, the algorithm was chosen for multiples of %u", what[i], at[i],
                           a->alignment[i]);
    return HN_LT_SUCCESS;
}

CALL(cublasLtMatmul, HnLtHandle handle, HnLtProduct product, const void *alpha, const void *a, HnLtMatrix matrix_a,
     const void *b, HnLtMatrix matrix_b, const void *beta, const void *c, HnLtMatrix matrix_c, void *d,
     HnLtMatrix matrix_d, const HnLtAlgorithm *algorithm, void *workspace, size_t bytes, HnCuStream stream)
{
    Problem p;
    int (*push)(void *, const EmuLibraryWork *);
    EmuLibraryWork w = { .name = "cublasLtMatmul", .compute = compute };
    if (read_problem(&p, handle, product, matrix_a, matrix_b, matrix_c, matrix_d) != HN_LT_SUCCESS)
        return HN_LT_INVALID_VALUE;
    if (is_case("fails"))
        return HN_LT_NOT_SUPPORTED;
    if (alpha == NULL || beta == NULL)
        return mistake("cublasLtMatmul: no factors");
    const gboolean biased = (p.product.end & HN_LT_END_BIAS) != 0;
    const void *const at[] = { a, b, c, d, biased ? p.product.bias : NULL };
    memcpy(&p.alpha, alpha, sizeof p.alpha);
    memcpy(&p.beta, beta, sizeof p.beta);
    if (check_algorithm(&p, (const Algorithm *)(const void *)algorithm, at, workspace, bytes) != HN_LT_SUCCESS)
        return HN_LT_INVALID_VALUE;
    add_range(&w, "a", a, 2 * extent(&p.m[0]), false);
    add_range(&w, "b", b, 2 * extent(&p.m[1]), false);
    add_range(&w, "d", d, 2 * extent(&p.m[3]), true);
    if (p.beta != 0)
        p.at_c = add_range(&w, "c", c, 2 * extent(&p.m[2]), false);
    if (biased)
        p.at_bias = add_range(&w, "bias", p.product.bias, 2 * p.m[3].rows, false);
    if (bytes > 0)
        p.at_workspace = add_range(&w, "workspace", workspace, bytes, true);
    if (check_overlap(&w, &p) != HN_LT_SUCCESS)
        return HN_LT_INVALID_VALUE;
    w.data = g_memdup2(&p, sizeof p);
    *(void **)&push = driver_function("emu_library_push");
    return push(stream, &w) == 0 ? HN_LT_SUCCESS : HN_LT_EXECUTION_FAILED;
}
