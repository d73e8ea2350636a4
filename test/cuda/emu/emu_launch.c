/*
 * Modules, their functions, and launches.
 */
#include <stdio.h>
#include <string.h>

#include "emu_device.h"

enum {
    FUNC_MAX_THREADS,
    FUNC_SHARED,
    FUNC_CONST,
    FUNC_LOCAL,
    FUNC_REGISTERS,
    FUNC_PTX,
    FUNC_BINARY,
    FUNC_CACHE,
    FUNC_MAX_DYNAMIC,
    FUNC_CARVEOUT
};
enum { SHARED_OPTIN_80 = 166912, SHARED_OPTIN_90 = 232448, SHARED_DEFAULT = 49152 };
enum { REGISTERS_OF_BLOCK = 65536, REGISTERS_EACH = 8 }; /* at most; a thread gets a multiple of these */

/* --- counts ------------------------------------------------------------------------------------------------------- */

static GHashTable *counts; /* name -> EmuCounts, of all modules */

static EmuCounts *counts_of(const char *name)
{
    if (counts == NULL)
        counts = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    EmuCounts *k = g_hash_table_lookup(counts, name);
    if (k == NULL)
        g_hash_table_insert(counts, g_strdup(name), k = g_new0(EmuCounts, 1));
    return k;
}

static int by_name(gconstpointer a, gconstpointer b)
{
    return strcmp(a, b);
}

void emu_write_counts(void)
{
    FILE *f = counts != NULL && emu_settings.counts != NULL ? fopen(emu_settings.counts, "a") : NULL;
    if (f == NULL)
        return;
    GList *names = g_list_sort(g_hash_table_get_keys(counts), by_name);
    for (const GList *l = names; l != NULL; l = l->next) {
        const EmuCounts *k = g_hash_table_lookup(counts, l->data);
        if (k->launches > 0)
            fprintf(f,
                    "{\"kernel\": \"%s\", \"launches\": %" G_GUINT64_FORMAT ", \"blocks\": %" G_GUINT64_FORMAT
                    ", \"instructions\": %" G_GUINT64_FORMAT ", \"sectors\": %" G_GUINT64_FORMAT
                    ", \"sectors_needed\": %" G_GUINT64_FORMAT ", \"shared\": %" G_GUINT64_FORMAT
                    ", \"conflicts\": %" G_GUINT64_FORMAT "}\n",
                    (const char *)l->data, k->launches, k->blocks, k->instructions, k->sectors, k->sectors_needed,
                    k->shared, k->conflicts);
    }
    g_list_free(names);
    fclose(f);
}

/* --- modules --------------------------------------------------------------------------------------------------------
 */

static void function_free(gpointer function)
{
    EmuFunction *f = function;
    g_hash_table_remove(f->module->context->objects, f);
    g_free(f);
}

void emu_module_handle_free(EmuModuleHandle *m)
{
    g_hash_table_unref(m->functions);
    for (guint i = 0; i < m->variables->len; i++)
        emu_memory_free(&m->context->device->memory, g_ptr_array_index(m->variables, i));
    g_ptr_array_unref(m->variables);
    emu_module_free(m->ptx);
    g_free(m);
}

static gboolean place_variables(EmuModuleHandle *m)
{
    EmuMemory *memory = &m->context->device->memory;
    for (int i = 0; i < emu_module_variables(m->ptx); i++) {
        const EmuVariable *v = emu_module_variable(m->ptx, i);
        EmuBlock *b = emu_memory_alloc(memory, MAX(v->bytes, 1));
        if (b == NULL)
            return FALSE;
        b->module = TRUE;
        b->r.constant = v->constant;
        if (v->initial != NULL) {
            memcpy(b->r.data, v->initial, v->bytes);
            memset(b->r.defined, 1, v->bytes);
        }
        g_ptr_array_add(m->variables, b);
        emu_module_place_variable(m->ptx, i, b->r.base);
    }
    return TRUE;
}

static int load(EmuContext *c, void **module, const void *image)
{
    static guint64 serial;
    EmuFault fault = { 0 };
    const char *text = NULL;
    size_t n = 0;
    g_autofree char *made = NULL;
    const int result = emu_image_ptx(image, emu_settings.cc, &text, &n, &made);
    if (result != EMU_OK)
        return result;
    if (emu_settings.version < 12000)
        return EMU_PTX_VERSION;
    EmuModule *ptx = emu_module_new(text, n, &fault);
    if (ptx == NULL) {
        emu_say("%s", fault.text);
        return EMU_INVALID_PTX;
    }
    EmuModuleHandle *m = g_new0(EmuModuleHandle, 1);
    *m = (EmuModuleHandle){ .context = c, .ptx = ptx, .serial = ++serial };
    m->functions = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, function_free);
    m->variables = g_ptr_array_new();
    if (!place_variables(m)) {
        emu_module_handle_free(m);
        return EMU_OUT_OF_MEMORY;
    }
    g_hash_table_insert(c->objects, m, GINT_TO_POINTER(EMU_MODULE));
    *module = m;
    return EMU_OK;
}

EMU_CALL(cuModuleLoadData, void **module, const void *image)
{
    EmuContext *c;
    int result = emu_enter(&c);
    if (result == EMU_OK && (result = emu_unsafe(c, "cuModuleLoadData")) == EMU_OK)
        result = load(c, module, image);
    return emu_leave(result);
}

EMU_CALL(cuModuleUnload, void *module)
{
    EmuContext *c;
    int result = emu_enter(&c);
    if (result == EMU_OK && !emu_is(c, module, EMU_MODULE))
        result = EMU_INVALID_HANDLE;
    if (result == EMU_OK && (result = emu_unsafe(c, "cuModuleUnload")) == EMU_OK) {
        result = emu_run_all(c);
        g_hash_table_remove(c->objects, module);
        emu_module_handle_free(module);
    }
    return emu_leave(result);
}

static int dynamic_default(const EmuKernel *k)
{
    const int fixed = (int)emu_kernel_shared(k);
    return MAX(SHARED_DEFAULT - fixed, 0);
}

/* What the budget says a thread of it needs; 0: nothing. */
static int registers_of(const char *name)
{
    static GHashTable *table; /* "kernel sm_80" -> registers */
    g_autofree char *key = g_strdup_printf("%s sm_%d", name, emu_settings.cc);
    g_autofree char *warpgroups = g_strdup_printf("%sa", key);
    if (table == NULL) {
        g_autofree char *text = NULL;
        table = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
        if (emu_settings.budget != NULL && !g_file_get_contents(emu_settings.budget, &text, NULL, NULL))
            emu_say("HONE_EMU_BUDGET: '%s' cannot be read", emu_settings.budget);
        g_auto(GStrv) lines = g_strsplit(text != NULL ? text : "", "\n", -1);
        for (char **line = lines; *line != NULL; line++) {
            g_auto(GStrv) word = g_strsplit(*line, " ", -1);
            if (**line != '#' && g_strv_length(word) >= 3)
                g_hash_table_insert(table, g_strjoin(" ", word[0], word[1], NULL),
                                    GINT_TO_POINTER((int)g_ascii_strtoll(word[2], NULL, 10)));
        }
    }
    const int plain = GPOINTER_TO_INT(g_hash_table_lookup(table, key));
    return plain > 0 ? plain : GPOINTER_TO_INT(g_hash_table_lookup(table, warpgroups));
}

EMU_CALL(cuModuleGetFunction, void **function, void *module, const char *name)
{
    EmuContext *c;
    EmuFault fault = { 0 };
    int result = emu_enter(&c);
    EmuModuleHandle *m = module;
    if (result == EMU_OK && !emu_is(c, module, EMU_MODULE))
        result = EMU_INVALID_HANDLE;
    if (result != EMU_OK || (*function = g_hash_table_lookup(m->functions, name)) != NULL)
        return emu_leave(result);
    const EmuKernel *k = emu_module_kernel(m->ptx, name, &fault);
    if (k == NULL && fault.text[0] != '\0')
        emu_say("%s", fault.text);
    if (k == NULL)
        return emu_leave(fault.text[0] != '\0' ? EMU_INVALID_PTX : EMU_NOT_FOUND);
    EmuFunction *f = g_new0(EmuFunction, 1);
    *f = (EmuFunction){ .module = m,
                        .kernel = k,
                        .dynamic = dynamic_default(k),
                        .registers = registers_of(name),
                        .counts = counts_of(name) };
    g_hash_table_insert(m->functions, g_strdup(name), f);
    g_hash_table_insert(c->objects, f, GINT_TO_POINTER(EMU_FUNCTION));
    *function = f;
    return emu_leave(EMU_OK);
}

EMU_CALL(cuModuleGetGlobal_v2, uint64_t *address, size_t *bytes, void *module, const char *name)
{
    EmuContext *c;
    int result = emu_enter(&c);
    const EmuModuleHandle *m = module;
    if (result == EMU_OK && !emu_is(c, module, EMU_MODULE))
        result = EMU_INVALID_HANDLE;
    if (result != EMU_OK)
        return emu_leave(result);
    for (int i = 0; i < emu_module_variables(m->ptx); i++)
        if (strcmp(emu_module_variable(m->ptx, i)->name, name) == 0) {
            if (address != NULL)
                *address = ((const EmuBlock *)g_ptr_array_index(m->variables, i))->r.base;
            if (bytes != NULL)
                *bytes = emu_module_variable(m->ptx, i)->bytes;
            return emu_leave(EMU_OK);
        }
    return emu_leave(EMU_NOT_FOUND);
}

/* --- functions ------------------------------------------------------------------------------------------------------
 */

static int shared_most(void)
{
    return emu_settings.cc >= 90 ? SHARED_OPTIN_90 : SHARED_OPTIN_80;
}

EMU_CALL(cuFuncGetAttribute, int *value, int which, void *function)
{
    EmuContext *c;
    int result = emu_enter(&c);
    const EmuFunction *f = function;
    if (result == EMU_OK && !emu_is(c, function, EMU_FUNCTION))
        result = EMU_INVALID_HANDLE;
    if (result == EMU_OK && (which < FUNC_MAX_THREADS || which > FUNC_CARVEOUT))
        result = EMU_INVALID_VALUE;
    if (result == EMU_OK) {
        const int values[] = {
            [FUNC_MAX_THREADS] = emu_kernel_max_threads(f->kernel),
            [FUNC_SHARED] = (int)emu_kernel_shared(f->kernel),
            [FUNC_REGISTERS] = EMU_REGISTERS,
            [FUNC_PTX] = emu_settings.cc,
            [FUNC_BINARY] = emu_settings.cc,
            [FUNC_MAX_DYNAMIC] = f->dynamic,
            [FUNC_CARVEOUT] = -1,
        };
        *value = values[which];
    }
    return emu_leave(result);
}

EMU_CALL(cuFuncSetAttribute, void *function, int which, int value)
{
    EmuContext *c;
    int result = emu_enter(&c);
    EmuFunction *f = function;
    if (result == EMU_OK && !emu_is(c, function, EMU_FUNCTION))
        result = EMU_INVALID_HANDLE;
    if (result != EMU_OK)
        return emu_leave(result);
    if (which == FUNC_MAX_DYNAMIC && value >= 0 && value <= shared_most() - (int)emu_kernel_shared(f->kernel))
        f->dynamic = value;
    else if (which != FUNC_CARVEOUT || value < -1 || value > 100)
        result = EMU_INVALID_VALUE;
    return emu_leave(result);
}

EMU_CALL(cuOccupancyMaxActiveBlocksPerMultiprocessor, int *blocks, void *function, int threads, size_t dynamic)
{
    EmuContext *c;
    int result = emu_enter(&c);
    const EmuFunction *f = function;
    if (result == EMU_OK && !emu_is(c, function, EMU_FUNCTION))
        result = EMU_INVALID_HANDLE;
    if (result == EMU_OK && threads < 1)
        result = EMU_INVALID_VALUE;
    if (result == EMU_OK) {
        const size_t lanes = ((size_t)threads + 31) / 32 * 32, shared = emu_kernel_shared(f->kernel) + dynamic + 1024;
        const size_t by_threads = 2048 / lanes, by_registers = 65536 / (EMU_REGISTERS * lanes),
                     by_shared = (size_t)(shared_most() + 1024) / shared;
        *blocks = (int)MIN(MIN(MIN(by_threads, by_registers), by_shared), 32);
        if (threads > emu_kernel_max_threads(f->kernel) || dynamic > (size_t)f->dynamic)
            *blocks = 0;
    }
    return emu_leave(result);
}

/* --- launches
 * --------------------------------------------------------------------------------------------------------- */

static gboolean is_grid(const EmuLaunch *l)
{
    static const unsigned most_grid[] = { 2147483647, 65535, 65535 }, most_block[] = { 1024, 1024, 64 };
    gboolean right = TRUE;
    for (int i = 0; i < 3; i++)
        right =
            right && l->grid[i] >= 1 && l->grid[i] <= most_grid[i] && l->block[i] >= 1 && l->block[i] <= most_block[i];
    return right;
}

/* Of a block, as whole warps get them. */
static int registers_needed(const EmuFunction *f, unsigned threads)
{
    return (f->registers + REGISTERS_EACH - 1) / REGISTERS_EACH * REGISTERS_EACH * (int)((threads + 31) / 32 * 32);
}

static int check_launch(const EmuFunction *f, const EmuLaunch *l)
{
    const char *name = emu_kernel_name(f->kernel);
    const unsigned threads = is_grid(l) ? l->block[0] * l->block[1] * l->block[2] : 0;
    const unsigned most = (unsigned)emu_kernel_max_threads(f->kernel);
    if (threads == 0)
        emu_say("launch of '%s': grid %u x %u x %u, block %u x %u x %u", name, l->grid[0], l->grid[1], l->grid[2],
                l->block[0], l->block[1], l->block[2]);
    else if (threads > most)
        emu_say("launch of '%s': %u threads; at most %u", name, threads, most);
    else if (registers_needed(f, threads) > REGISTERS_OF_BLOCK) {
        emu_say("launch of '%s': %u threads of %d registers; at most %d in all", name, threads, f->registers,
                REGISTERS_OF_BLOCK);
        return EMU_OUT_OF_RESOURCES;
    } else if (l->shared > (size_t)f->dynamic)
        emu_say("launch of '%s': %zu bytes of dynamic shared memory; at most %d", name, l->shared, f->dynamic);
    else
        return EMU_OK;
    return EMU_INVALID_VALUE;
}

/* Copies the parameters from where they are, one by one or as a block. */
static int take_params(const EmuFunction *f, void **params, void **extra, uint8_t *block)
{
    const size_t n = emu_kernel_param_bytes(f->kernel);
    const uint8_t *from = NULL;
    size_t bytes = 0;
    if (n == 0)
        return EMU_OK;
    if ((params != NULL) == (extra != NULL))
        return EMU_INVALID_VALUE;
    for (int i = 0; params != NULL && i < emu_kernel_params(f->kernel); i++) {
        size_t at, size;
        emu_kernel_param(f->kernel, i, &at, &size);
        if (params[i] == NULL)
            return EMU_INVALID_VALUE;
        memcpy(block + at, params[i], size);
    }
    if (params != NULL)
        return EMU_OK;
    for (; extra[0] != NULL; extra += 2) { /* 1: the block follows; 2: a pointer to its size */
        if (extra[0] == (void *)1)
            from = extra[1];
        else if (extra[0] == (void *)2)
            bytes = *(const size_t *)extra[1];
        else
            return EMU_INVALID_VALUE;
    }
    if (from == NULL || bytes < n || bytes > (n + 15) / 16 * 16) {
        emu_say("launch of '%s': %zu bytes of parameters, not %zu", emu_kernel_name(f->kernel), bytes, n);
        return EMU_INVALID_VALUE;
    }
    memcpy(block, from, n);
    return EMU_OK;
}

EMU_CALL(cuLaunchKernel, void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
         unsigned shared, void *stream, void **params, void **extra)
{
    EmuContext *c;
    int result = emu_enter(&c);
    EmuFunction *f = function;
    EmuStream *s = result == EMU_OK ? emu_stream_of(c, stream) : NULL;
    const EmuLaunch l = { .grid = { gx, gy, gz }, .block = { bx, by, bz }, .shared = shared };
    if (result == EMU_OK && (s == NULL || !emu_is(c, function, EMU_FUNCTION)))
        result = EMU_INVALID_HANDLE;
    if (result != EMU_OK || (result = check_launch(f, &l)) != EMU_OK)
        return emu_leave(result);
    EmuOp *op = emu_op_new(EMU_LAUNCH);
    op->function = f;
    op->module = f->module->serial;
    op->launch = l;
    op->params = g_malloc0(emu_kernel_param_bytes(f->kernel) + 1);
    if ((result = take_params(f, params, extra, op->params)) != EMU_OK)
        emu_op_unref(op);
    else
        result = emu_push(s, op);
    return emu_leave(result);
}

/* --- tensor maps
 * ------------------------------------------------------------------------------------------------------- */

enum { MAP_U8, MAP_U16, MAP_U32, MAP_S32, MAP_U64, MAP_S64, MAP_F16, MAP_F32, MAP_F64, MAP_BF16 };
enum { SWIZZLE_NONE = 0, SWIZZLE_128 = 3 };

static const char *map_wrong(const EmuTensorMap *t, const uint32_t *steps, int interleave, int swizzle)
{
    if (t->address % 16 != 0)
        return "the tensor begins at no multiple of 16";
    if (interleave != 0 || (swizzle != SWIZZLE_NONE && swizzle != SWIZZLE_128))
        return "an interleaving, or a swizzle of other than 128 bytes, which the emulated device does not know";
    for (int i = 0; i < t->rank; i++)
        if (t->dims[i] == 0 || t->box[i] == 0 || t->box[i] > 256 || steps[i] != 1)
            return "an axis of no elements, a box of none or more than 256, or a step in it";
    for (int i = 0; i + 1 < t->rank; i++)
        if (t->strides[i] % 16 != 0 || t->strides[i] >= UINT64_C(1) << 40)
            return "a stride that is no multiple of 16 bytes";
    const uint32_t line = t->box[0] * t->size;
    if (line % 16 != 0 || (swizzle == SWIZZLE_128 && line != 128))
        return "lines of the box that are no multiple of 16 bytes, or with the swizzle not 128";
    return NULL;
}

EMU_CALL(cuTensorMapEncodeTiled, void *map, int type, uint32_t rank, void *address, const uint64_t *dims,
         const uint64_t *strides, const uint32_t *box, const uint32_t *steps, int interleave, int swizzle,
         int promotion, int fill)
{
    static const uint8_t sizes[] = { [MAP_U8] = 1,  [MAP_U16] = 2, [MAP_U32] = 4, [MAP_S32] = 4, [MAP_U64] = 8,
                                     [MAP_S64] = 8, [MAP_F16] = 2, [MAP_F32] = 4, [MAP_F64] = 8, [MAP_BF16] = 2 };
    EmuTensorMap t = { .magic = EMU_TENSOR_MAP, .rank = (uint8_t)rank, .swizzled = swizzle == SWIZZLE_128 };
    (void)promotion;
    if (map == NULL || type < 0 || type > MAP_BF16 || rank < 1 || rank > 5 || fill != 0)
        return EMU_INVALID_VALUE;
    t.size = sizes[type];
    t.address = (uint64_t)(uintptr_t)address;
    for (uint32_t i = 0; i < rank; i++) {
        if (dims[i] > UINT32_MAX)
            return EMU_INVALID_VALUE;
        t.dims[i] = (uint32_t)dims[i];
        t.box[i] = box[i];
        if (i + 1 < rank)
            t.strides[i] = strides[i];
    }
    const char *why = map_wrong(&t, steps, interleave, swizzle);
    if (why != NULL) {
        emu_say("cuTensorMapEncodeTiled: %s", why);
        return EMU_INVALID_VALUE;
    }
    memset(map, 0, 128);
    memcpy(map, &t, sizeof t);
    return EMU_OK;
}
