#include "ptx.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

void ptx_say(EmuFault *fault, int result, const char *format, ...)
{
    fault->result = result;
    va_list list;
    va_start(list, format);
    vsnprintf(fault->text, sizeof fault->text, format, list);
    va_end(list);
}

/* --- words --- */

void ptx_skip(PtxScan *s)
{
    while (s->at < s->end) {
        char c = s->text[s->at];
        if (c == '\n')
            s->line++;
        if (c == ' ' || c == '\t' || c == '\n' || c == '\r') {
            s->at++;
        } else if (c == '/' && s->at + 1 < s->end && s->text[s->at + 1] == '/') {
            while (s->at < s->end && s->text[s->at] != '\n')
                s->at++;
        } else if (c == '/' && s->at + 1 < s->end && s->text[s->at + 1] == '*') {
            for (s->at += 2; s->at + 1 < s->end && !(s->text[s->at] == '*' && s->text[s->at + 1] == '/'); s->at++)
                s->line += s->text[s->at] == '\n';
            s->at = MIN(s->at + 2, s->end);
        } else {
            break;
        }
    }
}

static bool in_word(char c)
{
    return g_ascii_isalnum(c) || c == '_' || c == '$' || c == '%' || c == '.';
}

PtxWord ptx_word(PtxScan *s)
{
    ptx_skip(s);
    PtxWord w = { s->text + s->at, 0 };
    if (s->at == s->end)
        return w;
    if (s->text[s->at] == '"') {
        do
            w.n++;
        while (s->at + w.n < s->end && w.s[w.n] != '"');
        w.n++;
    } else {
        while (s->at + w.n < s->end && (in_word(w.s[w.n]) || (w.n && w.s[w.n] == ':' && s->at + w.n + 2 < s->end &&
                                                              w.s[w.n + 1] == ':' && in_word(w.s[w.n + 2]))))
            w.n += w.s[w.n] == ':' ? 2 : 1;
        w.n = MAX(w.n, 1);
    }
    w.n = (uint32_t)MIN((size_t)w.n, s->end - s->at);
    s->at += w.n;
    return w;
}

bool ptx_take(PtxScan *s, char c)
{
    ptx_skip(s);
    if (s->at == s->end || s->text[s->at] != c)
        return false;
    s->at++;
    return true;
}

bool ptx_skip_braces(PtxScan *s)
{
    for (int depth = 1; depth;) {
        PtxWord w = ptx_word(s);
        if (!w.n)
            return false;
        depth += *w.s == '{' ? 1 : *w.s == '}' ? -1 : 0;
    }
    return true;
}

static const struct {
    const char *name;
    uint8_t bytes;
} types[T_COUNT] = {
    [T_NONE] = { "", 0 },          [T_B8] = { ".b8", 1 },         [T_B16] = { ".b16", 2 },
    [T_B32] = { ".b32", 4 },       [T_B64] = { ".b64", 8 },       [T_B128] = { ".b128", 16 },
    [T_U8] = { ".u8", 1 },         [T_U16] = { ".u16", 2 },       [T_U32] = { ".u32", 4 },
    [T_U64] = { ".u64", 8 },       [T_S8] = { ".s8", 1 },         [T_S16] = { ".s16", 2 },
    [T_S32] = { ".s32", 4 },       [T_S64] = { ".s64", 8 },       [T_F16] = { ".f16", 2 },
    [T_F16X2] = { ".f16x2", 4 },   [T_BF16] = { ".bf16", 2 },     [T_BF16X2] = { ".bf16x2", 4 },
    [T_TF32] = { ".tf32", 4 },     [T_F32] = { ".f32", 4 },       [T_F64] = { ".f64", 8 },
    [T_E4M3X2] = { ".e4m3x2", 2 }, [T_E5M2X2] = { ".e5m2x2", 2 }, [T_PRED] = { ".pred", 4 },
};

PtxType ptx_type_of(PtxWord w)
{
    for (int t = 1; t < T_COUNT; t++)
        if (ptx_is(w, types[t].name))
            return (PtxType)t;
    return T_NONE;
}

size_t ptx_type_bytes(PtxType t)
{
    return types[t].bytes;
}

bool ptx_is_float(PtxType t)
{
    return t == T_F32 || t == T_F64 || t == T_F16 || t == T_BF16 || t == T_TF32;
}

bool ptx_is_signed(PtxType t)
{
    return t >= T_S8 && t <= T_S64;
}

/* --- literals --- */

bool ptx_number(PtxWord w, PtxType t, uint64_t *bits)
{
    char b[64];
    if (!w.n || w.n >= sizeof b)
        return false;
    memcpy(b, w.s, w.n);
    b[w.n] = 0;
    const char *p = b;
    bool minus = *p == '-';
    if (minus)
        p++;
    char *end;
    bool single = p[0] == '0' && (p[1] == 'f' || p[1] == 'F'), twice = p[0] == '0' && (p[1] == 'd' || p[1] == 'D');
    bool hex = p[0] == '0' && (p[1] == 'x' || p[1] == 'X');
    double real = 0;
    bool is_real = false;
    if (single || twice) {
        uint64_t v = strtoull(p + 2, &end, 16);
        if (end == p + 2 || *end)
            return false;
        float f;
        uint32_t low = (uint32_t)v;
        memcpy(&f, &low, 4);
        if (single)
            real = (double)f;
        else
            memcpy(&real, &v, 8);
        is_real = true;
        if (!minus && ((single && t != T_F64) || twice)) { /* NaNs keep their bits */
            *bits = v;
            return !(twice && t == T_F32) || (f = (float)real, memcpy(&low, &f, 4), *bits = low, true);
        }
    } else if (!hex && strpbrk(p, ".eE")) {
        real = g_ascii_strtod(p, &end);
        if (*end)
            return false;
        is_real = true;
    }
    if (is_real) {
        real = minus ? -real : real;
        if (t == T_F64) {
            memcpy(bits, &real, 8);
        } else if (t == T_F16 || t == T_BF16) {
            *bits = t == T_F16 ? ptx_to_half(real, ROUND_NEAREST) : ptx_to_bf16(real, ROUND_NEAREST);
        } else {
            float f = (float)real;
            uint32_t low;
            memcpy(&low, &f, 4);
            *bits = low;
        }
        return true;
    }
    int radix = hex ? 16 : p[0] == '0' && (p[1] == 'b' || p[1] == 'B') ? 2 : p[0] == '0' ? 8 : 10;
    uint64_t v = strtoull(radix == 2 || radix == 16 ? p + 2 : p, &end, radix);
    if (end == p || (*end && !(*end == 'U' && !end[1])))
        return false;
    if (ptx_is_float(t) && !hex && t != T_F16 && t != T_BF16) { /* an integer where a float is wanted */
        double d = minus ? -(double)v : (double)v;
        float f = (float)d;
        uint32_t low;
        memcpy(&low, &f, 4);
        if (t == T_F64)
            memcpy(bits, &d, 8);
        else
            *bits = low;
        return true;
    }
    *bits = minus ? 0 - v : v;
    return true;
}

/* --- variables --- */

typedef struct {
    size_t at;
    char *symbol;
    uint64_t plus;
} PtxAddress;

static void address_clear(gpointer p)
{
    g_free(((PtxAddress *)p)->symbol);
}

void ptx_symbol_free(gpointer symbol)
{
    PtxSymbol *y = symbol;
    if (y->addresses)
        g_array_unref(y->addresses);
    g_free(y->name);
    g_free(y->initial);
    g_free(y);
}

/* One value, or a list of them in braces. */
static bool initial_values(PtxScan *s, PtxSymbol *y, PtxType t, size_t *at)
{
    if (ptx_take(s, '{')) {
        while (!ptx_take(s, '}'))
            if (!initial_values(s, y, t, at) ||
                (!ptx_take(s, ',') && (ptx_skip(s), s->at < s->end && s->text[s->at] != '}')))
                return false;
        return true;
    }
    size_t size = ptx_type_bytes(t);
    char minus[64] = "-";
    PtxWord w = ptx_word(s);
    if (w.n == 1 && *w.s == '-') {
        w = ptx_word(s);
        memcpy(minus + 1, w.s, MIN(w.n, sizeof minus - 2));
        w = (PtxWord){ minus, 1 + (uint32_t)MIN(w.n, sizeof minus - 2) };
    }
    uint64_t v = 0;
    if (*at + size > y->bytes || !w.n)
        return false;
    if (g_ascii_isdigit(*w.s) || *w.s == '-') {
        if (!ptx_number(w, t, &v))
            return false;
    } else {
        bool generic = ptx_is(w, "generic");
        if (generic && (!ptx_take(s, '(') || !(w = ptx_word(s)).n || !ptx_take(s, ')')))
            return false;
        PtxAddress a = { *at, g_strndup(w.s, w.n), 0 };
        if (!y->addresses) {
            y->addresses = g_array_new(FALSE, FALSE, sizeof a);
            g_array_set_clear_func(y->addresses, address_clear);
        }
        if (ptx_take(s, '+'))
            ptx_number(ptx_word(s), T_U64, &a.plus);
        g_array_append_val(y->addresses, a);
    }
    memcpy(y->initial + *at, &v, size);
    *at += size;
    return true;
}

PtxSymbol *ptx_declare(PtxScan *s, PtxSpace space)
{
    PtxSymbol *y = g_new0(PtxSymbol, 1);
    y->space = (uint8_t)space;
    PtxType t = T_NONE;
    size_t vec = 1, elements = 1;
    uint64_t v;
    PtxWord w;
    for (;;) {
        w = ptx_word(s);
        if (!w.n || *w.s != '.')
            break;
        if (ptx_is(w, ".align")) {
            if (!ptx_number(ptx_word(s), T_U64, &v) || v > 4096)
                goto bad;
            y->align = v;
        } else if (ptx_is(w, ".v2") || ptx_is(w, ".v4")) {
            vec = w.s[2] == '2' ? 2 : 4;
        } else if (ptx_type_of(w)) {
            t = ptx_type_of(w);
        } /* else .ptr, .global and the like, which say something about a pointer */
    }
    if (!w.n || !t)
        goto bad;
    y->name = g_strndup(w.s, w.n);
    while (ptx_take(s, '[')) {
        if (ptx_take(s, ']')) {
            elements = 0;
            continue;
        }
        if (!ptx_number(ptx_word(s), T_U64, &v) || v > (uint64_t)1 << 32 || !ptx_take(s, ']'))
            goto bad;
        elements *= v;
    }
    y->bytes = elements * vec * ptx_type_bytes(t);
    y->align = MAX(y->align, vec * ptx_type_bytes(t));
    if (ptx_take(s, '=')) {
        y->initial = g_malloc0(MAX(y->bytes, 1));
        size_t at = 0;
        if (!initial_values(s, y, t, &at))
            goto bad;
    }
    return y;
bad:
    ptx_symbol_free(y);
    return NULL;
}

/* --- modules --- */

static void kernel_free(gpointer p)
{
    EmuKernel *k = p;
    if (!k)
        return;
    g_array_unref(k->code);
    g_array_unref(k->rows);
    g_array_unref(k->specials);
    g_array_unref(k->tables);
    g_array_unref(k->param_offset);
    g_array_unref(k->param_size);
    if (k->constant_rows)
        g_hash_table_unref(k->constant_rows);
    free(k->constants);
    g_free(k->name);
    g_free(k);
}

void emu_module_free(EmuModule *m)
{
    if (!m)
        return;
    g_hash_table_unref(m->kernels);
    g_hash_table_unref(m->symbols);
    g_ptr_array_unref(m->functions);
    g_ptr_array_unref(m->globals);
    g_free(m->text);
    g_free(m);
}

/* Behind .entry or .func: name, parameters, attributes, body or ';'. */
static bool scan_function(EmuModule *m, PtxScan *s, bool entry)
{
    PtxFunction *f = g_new0(PtxFunction, 1);
    g_ptr_array_add(m->functions, f);
    f->entry = entry;
    f->maxntid = 1024;
    if (!entry && ptx_take(s, '(')) {
        f->ret = (uint32_t)s->at;
        f->ret_line = s->line;
        for (PtxWord w = ptx_word(s); !(w.n == 1 && *w.s == ')'); w = ptx_word(s))
            if (!w.n)
                return false;
    }
    PtxWord name = ptx_word(s);
    f->name = name.s;
    f->name_n = name.n;
    if (ptx_take(s, '(')) {
        f->text = (uint32_t)s->at;
        f->line = s->line;
        for (PtxWord w = ptx_word(s); !(w.n == 1 && *w.s == ')'); w = ptx_word(s))
            if (!w.n)
                return false;
    }
    for (;;) {
        PtxWord w = ptx_word(s);
        if (!w.n)
            return false;
        if (*w.s == ';')
            return true;
        if (*w.s == '{') {
            f->body = (uint32_t)s->at;
            f->body_line = s->line;
            return ptx_skip_braces(s);
        }
        if (ptx_is(w, ".maxntid") || ptx_is(w, ".reqntid")) {
            uint64_t v, all = 1;
            do {
                if (!ptx_number(ptx_word(s), T_U64, &v))
                    return false;
                all *= v;
            } while (ptx_take(s, ','));
            f->maxntid = (unsigned)MIN(all, 1024);
        }
    }
}

static bool scan_variables(EmuModule *m, PtxScan *s, PtxSpace space)
{
    do {
        PtxSymbol *y = ptx_declare(s, space);
        if (!y)
            return false;
        if (g_hash_table_contains(m->symbols, y->name)) { /* declared before it is defined */
            ptx_symbol_free(y);
            continue;
        }
        g_hash_table_insert(m->symbols, y->name, y);
        if (space == SPACE_SHARED)
            continue;
        if (!y->initial)
            y->initial = g_malloc0(MAX(y->bytes, 1)); /* the driver fills what has no values with zeros */
        y->variable = (EmuVariable){ y->name, y->bytes, y->initial, space == SPACE_CONST };
        g_ptr_array_add(m->globals, y);
    } while (ptx_take(s, ','));
    return ptx_take(s, ';');
}

EmuModule *emu_module_new(const char *text, size_t n, EmuFault *fault)
{
    EmuModule *m = g_new0(EmuModule, 1);
    m->n = strnlen(text, n);
    m->text = g_strndup(text, m->n);
    m->functions = g_ptr_array_new_with_free_func(g_free);
    m->globals = g_ptr_array_new();
    m->symbols = g_hash_table_new_full(g_str_hash, g_str_equal, NULL, ptx_symbol_free);
    m->kernels = g_hash_table_new_full(g_str_hash, g_str_equal, NULL, kernel_free);
    PtxScan s = { m->text, 0, m->n, 1 };
    bool ok = m->n < UINT32_MAX && strstr(m->text, ".version");
    for (PtxWord w = ptx_word(&s); ok && w.n; w = ptx_word(&s)) {
        if (ptx_is(w, ".entry") || ptx_is(w, ".func"))
            ok = scan_function(m, &s, w.s[1] == 'e');
        else if (ptx_is(w, ".global") || ptx_is(w, ".const") || ptx_is(w, ".shared"))
            ok = scan_variables(m, &s, w.s[1] == 'g' ? SPACE_GLOBAL : w.s[1] == 'c' ? SPACE_CONST : SPACE_SHARED);
        else if (ptx_is(w, ".section")) /* of debugging information */
            ok = ptx_word(&s).n && ptx_take(&s, '{') && ptx_skip_braces(&s);
    }
    if (ok)
        return m;
    ptx_say(fault, 218, "line %u of the PTX makes no sense", s.line);
    emu_module_free(m);
    return NULL;
}

const PtxFunction *ptx_function(const EmuModule *m, PtxWord name)
{
    const PtxFunction *found = NULL;
    for (guint i = 0; i < m->functions->len; i++) {
        const PtxFunction *f = m->functions->pdata[i];
        if (f->name_n == name.n && memcmp(f->name, name.s, name.n) == 0 && (!found || f->body))
            found = f;
    }
    return found;
}

const EmuKernel *emu_module_kernel(EmuModule *m, const char *name, EmuFault *fault)
{
    fault->text[0] = 0;
    fault->result = 500;
    EmuKernel *k = g_hash_table_lookup(m->kernels, name);
    if (k)
        return k;
    const PtxFunction *f = ptx_function(m, (PtxWord){ name, (uint32_t)strlen(name) });
    if (!f || !f->entry || !f->body)
        return NULL;
    k = g_new0(EmuKernel, 1);
    k->module = m;
    k->name = g_strdup(name);
    k->code = g_array_new(FALSE, TRUE, sizeof(PtxInst));
    k->rows = g_array_new(FALSE, TRUE, sizeof(int32_t));
    k->specials = g_array_new(FALSE, TRUE, sizeof(PtxSpecialUse));
    k->tables = g_array_new(FALSE, TRUE, sizeof(int32_t));
    k->param_offset = g_array_new(FALSE, TRUE, sizeof(size_t));
    k->param_size = g_array_new(FALSE, TRUE, sizeof(size_t));
    k->max_threads = f->maxntid;
    k->stamped = 2;
    if (!ptx_parse_kernel(k, f, fault)) {
        kernel_free(k);
        return NULL;
    }
    g_hash_table_insert(m->kernels, k->name, k);
    return k;
}

int emu_module_variables(const EmuModule *m)
{
    return (int)m->globals->len;
}

const EmuVariable *emu_module_variable(const EmuModule *m, int i)
{
    return &((PtxSymbol *)m->globals->pdata[i])->variable;
}

/* Initial values that are this variable's address are known from now on. */
void emu_module_place_variable(EmuModule *m, int i, uint64_t address)
{
    PtxSymbol *placed = m->globals->pdata[i];
    placed->address = address;
    for (guint j = 0; j < m->globals->len; j++) {
        PtxSymbol *y = m->globals->pdata[j];
        for (guint a = 0; y->addresses && a < y->addresses->len; a++) {
            PtxAddress *w = &g_array_index(y->addresses, PtxAddress, a);
            uint64_t v = address + w->plus;
            if (strcmp(w->symbol, placed->name) == 0 && w->at + 8 <= y->bytes)
                memcpy(y->initial + w->at, &v, 8);
        }
    }
}

const char *emu_kernel_name(const EmuKernel *k)
{
    return k->name;
}

int emu_kernel_params(const EmuKernel *k)
{
    return (int)k->param_offset->len;
}

void emu_kernel_param(const EmuKernel *k, int i, size_t *offset, size_t *bytes)
{
    *offset = g_array_index(k->param_offset, size_t, i);
    *bytes = g_array_index(k->param_size, size_t, i);
}

size_t emu_kernel_param_bytes(const EmuKernel *k)
{
    return k->param_bytes;
}

size_t emu_kernel_shared(const EmuKernel *k)
{
    return k->shared_bytes;
}

int emu_kernel_max_threads(const EmuKernel *k)
{
    return (int)k->max_threads;
}
