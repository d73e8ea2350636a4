#include "ptx.h"
#include <stdlib.h>

/* Rows of a name or of a numbered range; -1: not used so far. */
typedef struct {
    PtxType type;
    int32_t *row;
    uint32_t n;
    bool range;
} Register;

typedef struct {
    guint inst, table; /* G_MAXUINT: not this one */
    char *label;
} Fix;

/* Names between two braces. */
typedef struct Scope {
    struct Scope *up;
    GHashTable *registers, *symbols, *labels; /* labels: pc + 1 */
    GHashTable *tables;                       /* of .branchtargets: index + 1 */
    GArray *fixes;
} Scope;

/* A function's place in the code, and where its parameters and results are in local memory. */
typedef struct {
    const PtxFunction *f;
    guint start;
    int32_t return_row;
    GPtrArray *params, *results; /* PtxSymbol */
} Callee;

typedef struct {
    EmuKernel *k;
    EmuFault *fault;
    PtxScan s;
    Scope *scope;
    GPtrArray *callees;
    GByteArray *constants;
    guint function;
    bool failed;
} Parser;

typedef struct {
    enum { ARG_ROW, ARG_NUMBER, ARG_MEMORY, ARG_NAME, ARG_NONE } kind;
    int32_t row;
    PtxType type; /* of the register */
    bool not, in_vector, minus;
    PtxWord word;
    int64_t imm;
} Arg;

static void refuse(Parser *p, const char *why, PtxWord w)
{
    if (!p->failed)
        ptx_say(p->fault, FAULT_INSTRUCTION, "kernel %s, line %u of the PTX: %s '%.*s'", p->k->name, p->s.line, why,
                (int)MIN(w.n, 300), w.s);
    p->failed = true;
}

/* --- scopes --- */

static void register_free(gpointer r)
{
    g_free(((Register *)r)->row);
    g_free(r);
}

static void scope_open(Parser *p)
{
    Scope *c = g_new0(Scope, 1);
    c->up = p->scope;
    c->registers = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, register_free);
    c->symbols = g_hash_table_new_full(g_str_hash, g_str_equal, NULL, ptx_symbol_free);
    c->labels = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    c->tables = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    c->fixes = g_array_new(FALSE, FALSE, sizeof(Fix));
    p->scope = c;
}

/* What its labels do not resolve is left to the scope around it. */
static void scope_close(Parser *p)
{
    Scope *c = p->scope;
    p->scope = c->up;
    for (guint i = 0; i < c->fixes->len; i++) {
        Fix f = g_array_index(c->fixes, Fix, i);
        int pc = GPOINTER_TO_INT(g_hash_table_lookup(c->labels, f.label)) - 1;
        if (pc < 0 && c->up) {
            g_array_append_val(c->up->fixes, f);
            continue;
        }
        if (pc < 0)
            refuse(p, "unknown label", (PtxWord){ f.label, (uint32_t)strlen(f.label) });
        else if (f.inst != G_MAXUINT)
            g_array_index(p->k->code, PtxInst, f.inst).imm = pc;
        else
            g_array_index(p->k->tables, int32_t, f.table) = pc;
        g_free(f.label);
    }
    g_array_unref(c->fixes);
    g_hash_table_unref(c->registers);
    g_hash_table_unref(c->symbols);
    g_hash_table_unref(c->labels);
    g_hash_table_unref(c->tables);
    g_free(c);
}

static void fix(Parser *p, guint inst, guint table, PtxWord label)
{
    Fix f = { inst, table, g_strndup(label.s, label.n) };
    g_array_append_val(p->scope->fixes, f);
}

/* --- rows --- */

static size_t row_bytes(PtxType t)
{
    size_t b = ptx_type_bytes(t);
    return LANES * (b <= 4 ? 4 : b);
}

static int32_t new_row(Parser *p, PtxType t)
{
    int32_t at = (int32_t)p->k->register_bytes;
    p->k->register_bytes += row_bytes(t);
    return at;
}

static int32_t constant_row(Parser *p, uint64_t bits, bool wide)
{
    if (!wide)
        bits &= UINT32_MAX;
    char *key = g_strdup_printf("%c%" G_GINT64_MODIFIER "x", wide ? 'w' : 'n', bits);
    gpointer found;
    if (g_hash_table_lookup_extended(p->k->constant_rows, key, NULL, &found)) {
        g_free(key);
        return GPOINTER_TO_INT(found);
    }
    int32_t at = (int32_t)p->constants->len;
    for (int l = 0; l < LANES; l++)
        g_byte_array_append(p->constants, (const guint8 *)&bits, wide ? 8 : 4); /* little-endian */
    g_hash_table_insert(p->k->constant_rows, key, GINT_TO_POINTER(at | 1));
    return at | 1;
}

static const char *const specials[SR_COUNT] = { "%tid.x",
                                                "%tid.y",
                                                "%tid.z",
                                                "%ntid.x",
                                                "%ntid.y",
                                                "%ntid.z",
                                                "%ctaid.x",
                                                "%ctaid.y",
                                                "%ctaid.z",
                                                "%nctaid.x",
                                                "%nctaid.y",
                                                "%nctaid.z",
                                                "%laneid",
                                                "%warpid",
                                                "%nwarpid",
                                                "%smid",
                                                "%nsmid",
                                                "%gridid",
                                                "%lanemask_eq",
                                                "%lanemask_le",
                                                "%lanemask_lt",
                                                "%lanemask_ge",
                                                "%lanemask_gt",
                                                "%dynamic_smem_size",
                                                "%total_smem_size",
                                                "%cluster_ctarank",
                                                "%cluster_nctarank",
                                                "%clock",
                                                "%clock_hi",
                                                "%clock64",
                                                "%globaltimer",
                                                "%globaltimer_lo",
                                                "%globaltimer_hi" };

static int find_special(PtxWord w)
{
    for (int i = 0; i < SR_COUNT; i++)
        if (ptx_is(w, specials[i]))
            return i;
    if (ptx_is(w, "%cluster_ctaid.x") || ptx_is(w, "%cluster_ctaid.y") || ptx_is(w, "%cluster_ctaid.z"))
        return SR_ZERO;
    if (ptx_is(w, "%cluster_nctaid.x") || ptx_is(w, "%cluster_nctaid.y") || ptx_is(w, "%cluster_nctaid.z"))
        return SR_ONE;
    return -1;
}

static int32_t special_row(Parser *p, int special, PtxType *type)
{
    *type = special == SR_CLOCK64 || special == SR_TIME || special == SR_GRIDID ? T_B64 : T_B32;
    for (guint i = 0; i < p->k->specials->len; i++) {
        PtxSpecialUse *u = &g_array_index(p->k->specials, PtxSpecialUse, i);
        if (u->special == special)
            return u->slot;
    }
    PtxSpecialUse u = { new_row(p, *type), special };
    g_array_append_val(p->k->specials, u);
    return u.slot;
}

static int32_t find_register(Parser *p, PtxWord w, PtxType *type)
{
    char name[256];
    if (w.n >= sizeof name - 1)
        return -1;
    memcpy(name, w.s, w.n);
    name[w.n] = 0;
    uint32_t prefix = w.n;
    while (prefix && g_ascii_isdigit(name[prefix - 1]))
        prefix--;
    for (Scope *c = p->scope; c; c = c->up) {
        Register *r = g_hash_table_lookup(c->registers, name);
        uint32_t i = 0;
        if (!r && prefix < w.n) {
            i = (uint32_t)strtoul(name + prefix, NULL, 10);
            char keep[2] = { name[prefix], name[prefix + 1] };
            memcpy(name + prefix, "<", 2);
            r = g_hash_table_lookup(c->registers, name);
            memcpy(name + prefix, keep, 2);
            if (prefix + 1 == w.n)
                name[w.n] = 0;
        }
        if (!r || i >= r->n)
            continue;
        if (r->row[i] < 0)
            r->row[i] = new_row(p, r->type);
        *type = r->type;
        return r->row[i];
    }
    return -1;
}

static const PtxSymbol *find_symbol(const Parser *p, PtxWord w)
{
    g_autofree char *name = g_strndup(w.s, w.n);
    for (const Scope *c = p->scope; c; c = c->up) {
        const PtxSymbol *y = g_hash_table_lookup(c->symbols, name);
        if (y)
            return y;
    }
    return g_hash_table_lookup(p->k->module->symbols, name);
}

/* Module-level shared variables get their place when a kernel first uses them: the same one in all kernels of the
 * module would waste. */
static uint64_t symbol_address(Parser *p, const PtxSymbol *y)
{
    if (y->space != SPACE_SHARED || y->address || !y->bytes)
        return y->bytes || y->space != SPACE_SHARED ? y->address : UINT64_MAX;
    size_t align = MAX(y->align, 4);
    p->k->shared_bytes = (p->k->shared_bytes + align - 1) / align * align;
    uint64_t at = p->k->shared_bytes;
    p->k->shared_bytes += y->bytes;
    PtxSymbol *own = g_memdup2(y, sizeof *y); /* address + 1: 0 is one, too */
    own->name = g_strdup(y->name);
    own->initial = NULL;
    own->addresses = NULL;
    own->address = at + 1;
    Scope *c = p->scope;
    while (c->up)
        c = c->up;
    g_hash_table_insert(c->symbols, own->name, own);
    return at + 1;
}

/* --- declarations --- */

static void declare_registers(Parser *p)
{
    PtxWord w = ptx_word(&p->s);
    PtxType t = ptx_type_of(w);
    if (!t) {
        refuse(p, "unknown type", w);
        return;
    }
    do {
        w = ptx_word(&p->s);
        Register *r = g_new0(Register, 1);
        r->type = t;
        r->n = 1;
        uint64_t n = 1;
        if (ptx_take(&p->s, '<')) {
            if (!ptx_number(ptx_word(&p->s), T_U64, &n) || n > 1 << 20 || !ptx_take(&p->s, '>'))
                refuse(p, "not a number of registers", w);
            r->range = true;
            r->n = (uint32_t)(n & ((1 << 21) - 1));
        }
        r->row = g_new(int32_t, MAX(r->n, 1));
        for (uint32_t i = 0; i < r->n; i++)
            r->row[i] = -1;
        g_hash_table_replace(p->scope->registers, g_strdup_printf("%.*s%s", (int)w.n, w.s, r->range ? "<" : ""), r);
    } while (ptx_take(&p->s, ','));
    if (!ptx_take(&p->s, ';'))
        refuse(p, "no end of the declaration of", w);
}

static void place_local(Parser *p, PtxSymbol *y)
{
    size_t align = MAX(y->align, 4);
    p->k->local_bytes = (p->k->local_bytes + align - 1) / align * align;
    y->address = PTX_LOCAL_BASE + p->k->local_bytes;
    p->k->local_bytes += y->bytes;
}

static void declare_variables(Parser *p, PtxSpace space)
{
    do {
        PtxSymbol *y = ptx_declare(&p->s, space);
        if (!y) {
            refuse(p, "a declaration that makes no sense", (PtxWord){ p->s.text + p->s.at, 0 });
            return;
        }
        if (space == SPACE_SHARED) {
            if (y->bytes) {
                size_t align = MAX(y->align, 4);
                p->k->shared_bytes = (p->k->shared_bytes + align - 1) / align * align;
                y->address = p->k->shared_bytes + 1;
                p->k->shared_bytes += y->bytes;
            }
        } else if (space == SPACE_GLOBAL || space == SPACE_CONST) {
            refuse(p, "a variable within a function:", (PtxWord){ y->name, (uint32_t)strlen(y->name) });
        } else {
            place_local(p, y);
        }
        g_hash_table_replace(p->scope->symbols, y->name, y);
    } while (ptx_take(&p->s, ','));
    if (!ptx_take(&p->s, ';'))
        refuse(p, "no end of a declaration", (PtxWord){ "", 0 });
}

/* A list of parameters: of the kernel, or of a function in its own local memory. */
static GPtrArray *declare_params(Parser *p, uint32_t at, uint32_t line, bool entry)
{
    GPtrArray *list = g_ptr_array_new();
    PtxScan keep = p->s;
    p->s.at = at;
    p->s.line = line;
    while (at && !p->failed && !ptx_take(&p->s, ')')) {
        PtxWord w = ptx_word(&p->s);
        PtxSymbol *y = ptx_is(w, ".param") ? ptx_declare(&p->s, SPACE_PARAM) : NULL;
        if (!y) {
            refuse(p, "a parameter that makes no sense:", w);
            break;
        }
        if (entry) {
            size_t offset = (p->k->param_bytes + y->align - 1) / y->align * y->align;
            y->address = PTX_PARAM_BASE + offset;
            p->k->param_bytes = offset + y->bytes;
            g_array_append_val(p->k->param_offset, offset);
            g_array_append_val(p->k->param_size, y->bytes);
        } else {
            place_local(p, y);
        }
        g_ptr_array_add(list, y);
        ptx_take(&p->s, ',');
    }
    p->s = keep;
    return list;
}

/* --- operands --- */

/* A register, number, name of a variable, label. */
static void read_simple(Parser *p, Arg *a)
{
    *a = (Arg){ .row = -1 };
    a->not = ptx_take(&p->s, '!');
    a->minus = ptx_take(&p->s, '-');
    PtxWord w = a->word = ptx_word(&p->s);
    PtxType t;
    int special;
    if (ptx_is(w, "_")) {
        a->kind = ARG_NONE;
    } else if (g_ascii_isdigit(*w.s)) {
        a->kind = ARG_NUMBER;
    } else if ((a->row = find_register(p, w, &t)) >= 0) {
        a->kind = ARG_ROW;
        a->type = t;
    } else if (*w.s == '%' && (special = find_special(w)) >= 0) {
        a->kind = ARG_ROW;
        a->row = special_row(p, special, &t);
        a->type = t;
        if (special >= SR_CLOCK) {
            PtxInst in = {
                .fn = ptx_run_clock, .guard = -1, .o = { a->row }, .sub = (uint8_t)special, .line = p->s.line
            };
            g_array_append_val(p->k->code, in);
        }
    } else if (ptx_is(w, "WARP_SZ")) {
        a->kind = ARG_NUMBER;
        a->word = (PtxWord){ "32", 2 };
    } else {
        a->kind = ARG_NAME;
    }
}

static int64_t read_offset(Parser *p)
{
    bool minus = ptx_take(&p->s, '-');
    uint64_t v;
    PtxWord w = ptx_word(&p->s);
    if (!ptx_number(w, T_U64, &v)) {
        refuse(p, "not an offset:", w);
        return 0;
    }
    return minus ? -(int64_t)v : (int64_t)v;
}

static uint64_t named_address(Parser *p, PtxWord w, bool *known)
{
    const PtxSymbol *y = find_symbol(p, w);
    *known = y != NULL;
    if (!y)
        return 0;
    uint64_t at = symbol_address(p, y);
    if (y->space != SPACE_SHARED)
        return at;
    return at == UINT64_MAX ? UINT64_MAX
                            : at - 1; /* UINT64_MAX: where dynamic shared memory starts, which is known at the end */
}

static Arg *next_arg(Arg *args, int *n)
{
    int i = (*n)++;
    return &args[MIN(i, PTX_ARGS - 1)];
}

/* All operands up to ';', vectors as their elements. */
static int read_args(Parser *p, Arg *args)
{
    int n = 0;
    while (!p->failed && !ptx_take(&p->s, ';')) {
        if (ptx_take(&p->s, '{')) {
            do {
                Arg *a = next_arg(args, &n);
                read_simple(p, a);
                a->in_vector = true;
            } while (ptx_take(&p->s, ','));
            if (!ptx_take(&p->s, '}'))
                refuse(p, "a vector without end before", ptx_word(&p->s));
        } else if (ptx_take(&p->s, '[')) {
            Arg *a = next_arg(args, &n);
            read_simple(p, a);
            a->imm = ptx_take(&p->s, '+') ? read_offset(p) : 0;
            bool known = true;
            uint64_t at = 0;
            if (a->kind == ARG_NAME)
                at = named_address(p, a->word, &known);
            else if (a->kind == ARG_NUMBER)
                known = ptx_number(a->word, T_U64, &at);
            if (!known)
                refuse(p, "unknown name", a->word);
            if (at == UINT64_MAX) {
                a->row = -2; /* placed below */
                a->type = T_B64;
            } else if (a->kind != ARG_ROW) {
                a->row = constant_row(p, at, true);
                a->type = T_B64;
            }
            a->kind = ARG_MEMORY;
            if (ptx_take(&p->s, ',')) { /* a place in a tensor, behind its map */
                bool open = ptx_take(&p->s, '{');
                do
                    read_simple(p, next_arg(args, &n));
                while (open && ptx_take(&p->s, ','));
                if (!open || !ptx_take(&p->s, '}'))
                    refuse(p, "a place without braces before", ptx_word(&p->s));
            }
            if (!ptx_take(&p->s, ']'))
                refuse(p, "an address without end before", ptx_word(&p->s));
        } else {
            read_simple(p, next_arg(args, &n));
        }
        if (!ptx_take(&p->s, ',') && !ptx_take(&p->s, '|')) {
            ptx_skip(&p->s);
            if (p->s.at == p->s.end || p->s.text[p->s.at] != ';')
                refuse(p, "an operand is not understood:", ptx_word(&p->s));
        }
    }
    if (n > PTX_ARGS)
        refuse(p, "too many operands before", ptx_word(&p->s));
    return MIN(n, PTX_ARGS);
}

/* --- instructions --- */

/* Rows that stand for the start of dynamic shared memory, until that is known: there is one of each width. */
static int32_t dynamic_row(Parser *p, bool wide)
{
    return constant_row(p, wide ? UINT64_C(0xd15ea5ed00000001) : 0xd15ea5edu, wide);
}

/* The row of an operand; form: see ptx_decode.c. */
static int32_t arg_row(Parser *p, PtxInst *in, int i, const Arg *a, char form)
{
    PtxType t = form == 'F'   ? (PtxType)in->from
                : form == 'U' ? T_U32
                : form == 'L' ? T_U64
                : form == 'H' ? T_U16
                              : (PtxType)in->type;
    bool known;
    uint64_t v = 0;
    int32_t row = a->row;
    PtxType have = a->type;
    switch (a->kind) {
    case ARG_NONE:
        return -1;
    case ARG_NUMBER:
        have = t == T_PRED ? T_U32 : t;
        if (!ptx_number(a->word, t, &v))
            refuse(p, "not a number:", a->word);
        if (a->minus)
            v = ptx_is_float(t) ? v ^ (uint64_t)1 << (8 * ptx_type_bytes(t) - 1) : 0 - v;
        if (ptx_type_bytes(t) == 2)
            v &= UINT16_MAX;
        row = constant_row(p, form == 'P' ? (v ? UINT32_MAX : 0) : v, ptx_type_bytes(t) > 4);
        break;
    case ARG_NAME:
        v = named_address(p, a->word, &known) + (uint64_t)a->imm;
        if (!known)
            refuse(p, "unknown name", a->word);
        have = t;
        row = v == UINT64_MAX ? dynamic_row(p, ptx_type_bytes(t) > 4) : constant_row(p, v, ptx_type_bytes(t) > 4);
        break;
    case ARG_MEMORY:
        if (in->memories == 2 && a->imm)
            refuse(p, "an offset in a third address:", a->word);
        if (in->memories < 2)
            *(in->memories++ ? &in->imm_b : &in->imm) = a->imm;
        if (row == -2)
            row = dynamic_row(p, true);
        break;
    case ARG_ROW:
        break;
    }
    size_t bytes = ptx_type_bytes(have);
    if (bytes > 4 && i < 32)
        in->wide |= 1u << i;
    if ((form == 'T' || form == 'D' || form == 'F' || form == 'U' || form == 'L') && a->kind == ARG_ROW &&
        ((bytes > 4) != (ptx_type_bytes(t) > 4) || (have == T_PRED) != (t == T_PRED)))
        refuse(p, "a register of another size:", a->word);
    if (form == 'P' && a->kind == ARG_ROW && have != T_PRED)
        refuse(p, "not a predicate:", a->word);
    if (a->not )
        in->flags |= PTX_NOT;
    return row;
}

static void split_opcode(PtxWord w, PtxOpcode *o)
{
    *o = (PtxOpcode){ .op = w };
    for (uint32_t i = 0, from = 0; i <= w.n; i++)
        if (i == w.n || (w.s[i] == '.' && i)) {
            if (o->parts < PTX_PARTS)
                o->part[o->parts++] = (PtxWord){ w.s + from, i - from };
            from = i;
        }
}

static void add(Parser *p, PtxInst *in, uint32_t from)
{
    in->text = from;
    in->text_n = (uint32_t)(p->s.at - from);
    g_array_append_val(p->k->code, *in);
}

static Callee *callee(Parser *p, PtxWord name)
{
    const PtxFunction *f = ptx_function(p->k->module, name);
    if (!f || f->entry)
        return NULL;
    for (guint i = 0; i < p->callees->len; i++)
        if (((Callee *)p->callees->pdata[i])->f == f)
            return p->callees->pdata[i];
    Callee *c = g_new0(Callee, 1);
    c->f = f;
    c->return_row = new_row(p, T_B32);
    c->params = declare_params(p, f->text, f->line, false);
    c->results = declare_params(p, f->ret, f->ret_line, false);
    g_ptr_array_add(p->callees, c);
    return c;
}

static void copy_list(Parser *p, PtxInst in, uint32_t from, const PtxWord *names, int n, const GPtrArray *formal,
                      bool back)
{
    if (n != (int)formal->len) {
        refuse(p, "another number of arguments in a call of", n ? names[0] : (PtxWord){ "", 0 });
        return;
    }
    for (int i = 0; i < n; i++) {
        const PtxSymbol *mine = find_symbol(p, names[i]), *theirs = formal->pdata[i];
        if (!mine) {
            refuse(p, "unknown argument", names[i]);
            return;
        }
        in.fn = ptx_run_param_copy;
        in.control = CTL_NONE;
        in.o[0] = (int32_t)((back ? mine : theirs)->address - PTX_LOCAL_BASE);
        in.o[1] = (int32_t)((back ? theirs : mine)->address - PTX_LOCAL_BASE);
        in.o[2] = (int32_t)MIN(mine->bytes, theirs->bytes);
        add(p, &in, from);
    }
}

static int read_names(Parser *p, PtxWord *names)
{
    int n = 0;
    while (!ptx_take(&p->s, ')') && !p->failed) {
        PtxWord w = ptx_word(&p->s);
        if (!w.n || n == 32)
            refuse(p, "arguments that make no sense:", w);
        else
            names[n++] = w;
        ptx_take(&p->s, ',');
    }
    return n;
}

/* call (results), name, (arguments); */
static void read_call(Parser *p, PtxInst in, uint32_t from)
{
    PtxWord results[32], params[32];
    int n_results = 0, n_params = 0;
    if (ptx_take(&p->s, '(')) {
        n_results = read_names(p, results);
        ptx_take(&p->s, ',');
    }
    PtxWord name = ptx_word(&p->s);
    if (ptx_take(&p->s, ',') && ptx_take(&p->s, '('))
        n_params = read_names(p, params);
    if (!ptx_take(&p->s, ';')) {
        refuse(p, "a call through a pointer:", name);
        return;
    }
    if (ptx_is(name, "__assertfail")) {
        in.fn = ptx_run_assert;
        add(p, &in, from);
        return;
    }
    if (ptx_is(name, "vprintf")) {
        const PtxSymbol *y = n_results ? find_symbol(p, results[0]) : NULL;
        in.fn = ptx_run_param_copy; /* its result is 0 */
        in.o[0] = y ? (int32_t)(y->address - PTX_LOCAL_BASE) : 0;
        in.o[1] = -1;
        in.o[2] = y ? 4 : 0;
        add(p, &in, from);
        return;
    }
    Callee *c = callee(p, name);
    if (!c || !c->f->body) {
        refuse(p, "a call of an unknown function", name);
        return;
    }
    copy_list(p, in, from, params, n_params, c->params, false);
    in.control = CTL_CALL;
    in.fn = ptx_run_nothing;
    in.o[0] = c->return_row;
    in.imm = -1;
    for (guint i = 0; i < p->callees->len; i++)
        if (p->callees->pdata[i] == c)
            in.sub = (uint8_t)MIN(i, 255);
    add(p, &in, from);
    copy_list(p, in, from, results, n_results, c->results, true);
}

/* How many operands are written: one, or all of a vector that comes first. */
static uint8_t results_of(const PtxOpcode *o, const PtxInst *in, const char *form, const Arg *args)
{
    static const char *const none[] = { "st",     "red",   "bar",      "barrier",  "wgmma",
                                        "membar", "fence", "stmatrix", "nanosleep" };
    for (size_t i = 0; i < G_N_ELEMENTS(none); i++)
        if (ptx_is(o->part[0], none[i]))
            return 0;
    uint8_t n = 0;
    while (n < in->n && args[n].in_vector)
        n++;
    return in->n == 0 || *form == 'M' ? 0 : MAX(n, 1);
}

static void read_instruction(Parser *p, PtxWord w, uint32_t from)
{
    PtxInst in = { .guard = -1, .line = p->s.line };
    PtxType t;
    if (ptx_is(w, "@")) {
        in.guard_not = ptx_take(&p->s, '!');
        w = ptx_word(&p->s);
        in.guard = find_register(p, w, &t);
        if (in.guard < 0 || t != T_PRED) {
            refuse(p, "not a predicate:", w);
            return;
        }
        w = ptx_word(&p->s);
    }
    PtxOpcode o;
    split_opcode(w, &o);
    if (ptx_is(o.part[0], "call")) {
        read_call(p, in, from);
        return;
    }
    Arg args[PTX_ARGS];
    int n = read_args(p, args);
    if (p->failed)
        return;
    in.n = (uint8_t)n;
    in.sub = args[0].in_vector && n ? 1 : n > 1 && args[1].in_vector ? 2 : 0;
    in.sync = -1;
    const char *form = ptx_decode(&o, &in);
    if (!form) {
        PtxWord text = { p->s.text + from, (uint32_t)(p->s.at - from) };
        refuse(p, "an instruction that the interpreter does not know:", text);
        return;
    }
    in.more = p->k->rows->len;
    guint here = p->k->code->len;
    if (in.control == CTL_BRA || in.control == CTL_BRX) {
        const Arg *to = &args[n - 1];
        if (in.control == CTL_BRA) {
            fix(p, here, G_MAXUINT, to->word);
        } else {
            gpointer table = NULL;
            g_autofree char *name = g_strndup(to->word.s, to->word.n);
            for (Scope *c = p->scope; c && !table; c = c->up)
                table = g_hash_table_lookup(c->tables, name);
            if (!table)
                refuse(p, "unknown table", to->word);
            in.imm = GPOINTER_TO_INT(table) - 1;
            in.o[0] = arg_row(p, &in, 0, &args[0], 'U');
        }
        add(p, &in, from);
        return;
    }
    if (in.control == CTL_RET) {
        Callee *c = p->function ? p->callees->pdata[p->function - 1] : NULL;
        if (!c)
            in.control = CTL_EXIT;
        else
            in.o[0] = c->return_row;
        add(p, &in, from);
        return;
    }
    const char *f = form;
    int32_t rows[PTX_ARGS];
    for (int i = 0; i < n; i++) {
        bool inside = args[i].in_vector && i + 1 < n && args[i + 1].in_vector;
        rows[i] = arg_row(p, &in, i, &args[i], *f ? *f : 'U');
        bool last_of_vector = args[i].in_vector && !inside;
        if (*f == '*') /* this and all that follow: any register */
            continue;
        if (*f && (!args[i].in_vector || last_of_vector || f[0] != 'V'))
            f++;
    }
    for (int i = 0; i < 6; i++)
        in.o[i] = i < n ? rows[i] : -1;
    g_array_append_vals(p->k->rows, rows, (guint)n);
    in.results = results_of(&o, &in, form, args);
    in.copies = n == 2 && ptx_is(o.part[0], "mov") && !(rows[1] & 1);
    const bool memory = in.fn == ptx_run_load || in.fn == ptx_run_store;
    if (memory && in.space != SPACE_PARAM && in.space != SPACE_LOCAL && in.vec == 1 &&
        ptx_type_bytes((PtxType)in.type) == 1)
        p->k->stamped = 1;
    p->k->products = p->k->products || ptx_is(o.part[0], "wgmma");
    if (in.control == CTL_SYNC && in.sync == 0)
        in.sync = rows[n - 1];
    add(p, &in, from);
}

/* --- bodies --- */

static void read_label(Parser *p, PtxWord w)
{
    char *name = g_strndup(w.s, w.n);
    ptx_skip(&p->s);
    PtxScan before = p->s;
    PtxWord next = ptx_word(&p->s);
    if (ptx_is(next, ".branchtargets")) {
        g_hash_table_insert(p->scope->tables, name, GINT_TO_POINTER((int)p->k->tables->len + 1));
        int32_t count = 0;
        guint head = p->k->tables->len;
        g_array_append_val(p->k->tables, count);
        do {
            PtxWord to = ptx_word(&p->s);
            fix(p, G_MAXUINT, p->k->tables->len, to);
            g_array_append_val(p->k->tables, count);
            g_array_index(p->k->tables, int32_t, head)++;
        } while (ptx_take(&p->s, ','));
        ptx_take(&p->s, ';');
        return;
    }
    p->s = before;
    g_hash_table_insert(p->scope->labels, name, GINT_TO_POINTER((int)p->k->code->len + 1));
}

static void skip_statement(Parser *p)
{
    for (PtxWord w = ptx_word(&p->s); w.n && *w.s != ';'; w = ptx_word(&p->s))
        ;
}

static void skip_line(Parser *p)
{
    while (p->s.at < p->s.end && p->s.text[p->s.at] != '\n')
        p->s.at++;
}

/* From behind a function's brace to the one that closes it. */
static void read_body(Parser *p)
{
    for (int depth = 1; depth && !p->failed;) {
        ptx_skip(&p->s);
        uint32_t from = (uint32_t)p->s.at;
        PtxWord w = ptx_word(&p->s);
        if (!w.n) {
            refuse(p, "a function without end", w);
        } else if (*w.s == '{') {
            scope_open(p);
            depth++;
        } else if (*w.s == '}') {
            if (--depth)
                scope_close(p);
        } else if (*w.s == ';') {
            continue;
        } else if (ptx_is(w, ".reg")) {
            declare_registers(p);
        } else if (ptx_is(w, ".local") || ptx_is(w, ".param")) {
            declare_variables(p, SPACE_LOCAL);
        } else if (ptx_is(w, ".shared")) {
            declare_variables(p, SPACE_SHARED);
        } else if (ptx_is(w, ".global") || ptx_is(w, ".const")) {
            declare_variables(p, SPACE_GLOBAL);
        } else if (ptx_is(w, ".loc") || ptx_is(w, ".file")) {
            skip_line(p);
        } else if (*w.s == '.') { /* .pragma and the like */
            if (!ptx_is(w, ".extern") && !ptx_is(w, ".weak"))
                skip_statement(p);
        } else if (ptx_take(&p->s, ':')) {
            read_label(p, w);
        } else {
            read_instruction(p, w, from);
        }
    }
}

static void read_function(Parser *p, const PtxFunction *f, GPtrArray *params, GPtrArray *results)
{
    p->s.at = f->body;
    p->s.line = f->body_line;
    scope_open(p);
    for (guint i = 0; i < params->len + results->len; i++) {
        PtxSymbol *y = i < params->len ? params->pdata[i] : results->pdata[i - params->len],
                  *mine = g_memdup2(y, sizeof *y);
        mine->name = g_strdup(y->name);
        mine->initial = NULL;
        mine->addresses = NULL;
        g_hash_table_replace(p->scope->symbols, mine->name, mine);
    }
    read_body(p);
    PtxInst end = { .fn = ptx_run_nothing, .guard = -1, .control = CTL_EXIT, .line = p->s.line };
    if (p->function) {
        end.control = CTL_RET;
        end.o[0] = ((Callee *)p->callees->pdata[p->function - 1])->return_row;
    }
    add(p, &end, (uint32_t)p->s.at);
    while (p->scope && p->scope->up)
        scope_close(p);
}

static void callee_free(gpointer c)
{
    Callee *e = c;
    g_ptr_array_set_free_func(e->params, ptx_symbol_free);
    g_ptr_array_set_free_func(e->results, ptx_symbol_free);
    g_ptr_array_unref(e->params);
    g_ptr_array_unref(e->results);
    g_free(e);
}

/* What stood for the start of dynamic shared memory becomes its address. */
static void place_dynamic(Parser *p)
{
    EmuKernel *k = p->k;
    k->shared_bytes = (k->shared_bytes + 15) / 16 * 16;
    int32_t wide = dynamic_row(p, true) & ~1, narrow = dynamic_row(p, false) & ~1;
    for (int l = 0; l < LANES; l++) {
        uint64_t a = k->shared_bytes;
        memcpy(p->constants->data + wide + 8 * l, &a, 8);
        memcpy(p->constants->data + narrow + 4 * l, &a, 4);
    }
}

bool ptx_parse_kernel(EmuKernel *k, const PtxFunction *f, EmuFault *fault)
{
    Parser p = { .k = k, .fault = fault, .s = { k->module->text, 0, k->module->n, 1 } };
    p.callees = g_ptr_array_new_with_free_func(callee_free);
    p.constants = g_byte_array_new();
    k->constant_rows = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    scope_open(&p);
    GPtrArray *params = declare_params(&p, f->text, f->line, true), *none = g_ptr_array_new();
    read_function(&p, f, params, none);
    for (guint i = 0; i < p.callees->len && !p.failed; i++) {
        Callee *c = p.callees->pdata[i];
        c->start = k->code->len;
        p.function = i + 1;
        read_function(&p, c->f, c->params, c->results);
    }
    scope_close(&p);
    for (guint i = 0; i < k->code->len && !p.failed; i++) {
        PtxInst *in = &g_array_index(k->code, PtxInst, i);
        if (in->control == CTL_CALL)
            in->imm = ((Callee *)p.callees->pdata[in->sub])->start;
    }
    place_dynamic(&p);
    k->constant_bytes = p.constants->len;
    k->constants = aligned_alloc(128, (p.constants->len + 127) / 128 * 128);
    memcpy(k->constants, p.constants->data, p.constants->len);
    k->local_bytes = (k->local_bytes + 15) / 16 * 16;
    g_byte_array_unref(p.constants);
    g_ptr_array_set_free_func(params, ptx_symbol_free);
    g_ptr_array_unref(params);
    g_ptr_array_unref(none);
    g_ptr_array_unref(p.callees);
    g_hash_table_unref(k->constant_rows);
    k->constant_rows = NULL;
    return !p.failed;
}
