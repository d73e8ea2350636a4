#include "ptx_each.h"

/*
 * From an opcode with its modifiers to a function. How operands are read is a string with a character for each:
 *   D, T  a register (or number) of the instruction's type     F  of the type behind it ("cvt.f32.s32")
 *   U, L, H  of 32, 64, 16 bits                                A  of any size
 *   P  a predicate         M  an address in brackets          V  a vector of any registers
 *   *  this and all that follow: any register
 * Operands beyond the string are of 32 bits.
 */

bool ptx_has(const PtxOpcode *o, const char *part)
{
    for (int i = 1; i < o->parts; i++)
        if (ptx_is(o->part[i], part))
            return true;
    return false;
}

/* The same with "::cta" and the like behind it. */
static bool has_start(const PtxOpcode *o, const char *part)
{
    size_t n = strlen(part);
    for (int i = 1; i < o->parts; i++)
        if (o->part[i].n >= n && memcmp(o->part[i].s, part, n) == 0 && (o->part[i].n == n || o->part[i].s[n] == ':'))
            return true;
    return false;
}

static GHashTable *table(void)
{
    static GHashTable *t;
    if (!t) {
        t = g_hash_table_new(g_str_hash, g_str_equal);
        const PtxEntry *all[] = { ptx_alu_entries, ptx_float_entries, ptx_half_entries, ptx_lane_entries,
                                  ptx_tensor_entries };
        for (size_t i = 0; i < G_N_ELEMENTS(all); i++)
            for (const PtxEntry *e = all[i]; e->key; e++)
                g_hash_table_insert(t, (gpointer)e->key, (gpointer)e);
    }
    return t;
}

static void read_modifiers(const PtxOpcode *o, PtxInst *in)
{
    static const struct {
        const char *part;
        PtxRound round;
        bool whole;
    } rounds[] = { { ".rn", ROUND_NEAREST, false }, { ".rz", ROUND_ZERO, false },  { ".rm", ROUND_DOWN, false },
                   { ".rp", ROUND_UP, false },      { ".rna", ROUND_AWAY, false }, { ".rni", ROUND_NEAREST, true },
                   { ".rzi", ROUND_ZERO, true },    { ".rmi", ROUND_DOWN, true },  { ".rpi", ROUND_UP, true } };
    for (int i = 1; i < o->parts; i++)
        for (size_t r = 0; r < G_N_ELEMENTS(rounds); r++)
            if (ptx_is(o->part[i], rounds[r].part)) {
                in->round = (uint8_t)rounds[r].round;
                in->sub |= rounds[r].whole;
            }
    in->flags |= (ptx_has(o, ".sat") || ptx_has(o, ".satfinite") ? PTX_SAT : 0) | (ptx_has(o, ".relu") ? PTX_RELU : 0) |
                 (ptx_has(o, ".NaN") ? PTX_NAN : 0) | (ptx_has(o, ".trans") ? PTX_TRANS : 0);
    for (int i = 1; i < o->parts; i++) {
        PtxType t = ptx_type_of(o->part[i]);
        if (!t)
            continue;
        if (!in->type)
            in->type = (uint8_t)t;
        in->from = (uint8_t)t;
    }
}

static void read_space(const PtxOpcode *o, PtxInst *in)
{
    in->space = has_start(o, ".global")   ? SPACE_GLOBAL
                : has_start(o, ".shared") ? SPACE_SHARED
                : has_start(o, ".local")  ? SPACE_LOCAL
                : has_start(o, ".param")  ? SPACE_PARAM
                : has_start(o, ".const")  ? SPACE_CONST
                                          : SPACE_GENERIC;
    bool strong = ptx_has(o, ".volatile") || ptx_has(o, ".relaxed") || ptx_has(o, ".acquire") ||
                  ptx_has(o, ".release") || ptx_has(o, ".acq_rel") || ptx_has(o, ".mmio");
    in->flags |= (strong ? 0 : PTX_WEAK) | (ptx_has(o, ".nc") ? PTX_READ_ONLY : 0);
    in->vec = ptx_has(o, ".v2") ? 2 : ptx_has(o, ".v4") ? 4 : ptx_has(o, ".v8") ? 8 : 1;
}

static const char *decode_compare(const PtxOpcode *o, PtxInst *in)
{
    bool p = ptx_is(o->part[0], "setp");
    in->compare = o->parts > 1 ? ptx_compare_of(o->part[1], (PtxType)in->from) : NULL;
    in->vec = ptx_has(o, ".and") ? 1 : ptx_has(o, ".or") ? 2 : ptx_has(o, ".xor") ? 3 : 0;
    in->fn = p ? ptx_run_setp : ptx_run_set;
    if (!in->compare)
        return NULL;
    in->sub = p && in->n - (in->vec != 0) == 4 ? 2 : 1;
    return !p ? "DFFP" : in->sub == 2 ? "PPFFP" : "PFFP";
}

static const char *decode_atomic(const PtxOpcode *o, PtxInst *in)
{
    static const char *const ops[] = { ".add", ".min", ".max", ".inc", ".dec", ".and", ".or", ".xor", ".exch", ".cas" };
    read_space(o, in);
    bool red = ptx_is(o->part[0], "red");
    in->fn = ptx_run_atomic;
    in->flags |= red ? PTX_NOT_D : 0;
    in->sub = 255;
    for (size_t i = 0; i < G_N_ELEMENTS(ops); i++)
        if (ptx_has(o, ops[i]))
            in->sub = (uint8_t)i;
    return in->sub == 255 || in->vec > 1 ? NULL : red ? "MTT" : "DMTT";
}

static const char *decode_barrier(const PtxOpcode *o, PtxInst *in)
{
    in->fn = ptx_run_nothing;
    if (ptx_has(o, ".warp")) {
        in->fn = ptx_run_warp_barrier;
        in->control = CTL_SYNC;
        in->sync = 0;
        return "U";
    }
    if (ptx_has(o, ".cluster")) {
        if (ptx_has(o, ".arrive"))
            return "";
        in->control = CTL_BAR;
        in->sub = 5;
        return "";
    }
    in->control = CTL_BAR;
    if (!ptx_has(o, ".red")) {
        in->sub = ptx_has(o, ".arrive");
        return ptx_has(o, ".arrive") || ptx_has(o, ".sync") ? "UU" : NULL;
    }
    in->sub = ptx_has(o, ".and") ? 2 : ptx_has(o, ".or") ? 3 : 4;
    return in->sub == 4 ? (in->n == 4 ? "UUUP" : "UUP") : in->n == 4 ? "PUUP" : "PUP";
}

static const char *decode_copy(const PtxOpcode *o, PtxInst *in)
{
    if (ptx_has(o, ".bulk"))
        return ptx_decode_tile(o, in);
    if (ptx_has(o, ".commit_group")) {
        in->fn = ptx_run_copy_group;
        return "";
    }
    if (ptx_has(o, ".wait_group") || ptx_has(o, ".wait_all")) {
        in->fn = ptx_run_copy_wait;
        in->sub = ptx_has(o, ".wait_all");
        return "U";
    }
    if (ptx_has(o, ".ca") || ptx_has(o, ".cg")) {
        in->fn = ptx_run_copy_begin;
        return "MMUU";
    }
    return NULL;
}

/* Instructions that are not found by a key; NULL in fn: it is not one of them. */
static const char *decode_special(const PtxOpcode *o, PtxInst *in)
{
    PtxWord op = o->part[0];
    if (ptx_is(op, "setp") || ptx_is(op, "set"))
        return decode_compare(o, in);
    if (ptx_is(op, "cvt")) {
        in->fn = ptx_run_cvt;
        bool known = in->type != T_E4M3X2 && in->type != T_E5M2X2 && in->from != T_E4M3X2 && in->from != T_E5M2X2 &&
                     !ptx_has(o, ".pack");
        return known ? "AAA" : NULL;
    }
    if (ptx_is(op, "ld") || ptx_is(op, "ldu") || ptx_is(op, "st")) {
        read_space(o, in);
        in->fn = op.s[0] == 's' ? ptx_run_store : ptx_run_load;
        bool vector = in->vec > 1;
        return in->fn == ptx_run_store ? (vector ? "MV" : "MA") : vector ? "VM" : "AM";
    }
    if (ptx_is(op, "mma"))
        return ptx_decode_mma(o, in);
    if (ptx_is(op, "atom") || ptx_is(op, "red"))
        return decode_atomic(o, in);
    if (ptx_is(op, "bar") || ptx_is(op, "barrier"))
        return decode_barrier(o, in);
    if (ptx_is(op, "cp") && o->parts > 1 && ptx_is(o->part[1], ".async"))
        return decode_copy(o, in);
    if (ptx_is(op, "mbarrier"))
        return ptx_decode_gate(o, in);
    if (ptx_is(op, "wgmma"))
        return ptx_decode_product(o, in);
    if (ptx_is(op, "membar") || ptx_is(op, "fence")) {
        bool nothing = ptx_has(o, ".cta") || ptx_has(o, ".proxy") || ptx_has(o, ".mbarrier_init");
        in->fn = ptx_has(o, ".proxy") && ptx_has(o, ".async") ? ptx_run_proxy
                 : ptx_has(o, ".mbarrier_init")               ? ptx_run_gates_shown
                 : nothing                                    ? ptx_run_nothing
                                                              : ptx_run_fence;
        return "*";
    }
    static const char *const nothing[] = { "prefetch", "prefetchu", "discard",    "applypriority", "griddepcontrol",
                                           "nop",      "pmevent",   "setmaxnreg", "createpolicy" };
    for (size_t i = 0; i < G_N_ELEMENTS(nothing); i++)
        if (ptx_is(op, nothing[i])) {
            in->fn = ptx_run_nothing;
            return "*";
        }
    static const struct {
        const char *op;
        PtxControl control;
    } controls[] = { { "bra", CTL_BRA },   { "brx", CTL_BRX },    { "ret", CTL_RET },        { "exit", CTL_EXIT },
                     { "trap", CTL_TRAP }, { "brkpt", CTL_TRAP }, { "nanosleep", CTL_YIELD } };
    for (size_t i = 0; i < G_N_ELEMENTS(controls); i++)
        if (ptx_is(op, controls[i].op)) {
            in->fn = ptx_run_nothing;
            in->control = (uint8_t)controls[i].control;
            return "U";
        }
    return NULL;
}

static bool left_out(PtxWord w)
{
    static const char *const parts[] = { ".rn",   ".rz",      ".rm",        ".rp",      ".ftz",
                                         ".sat",  ".approx",  ".full",      ".uni",     ".relu",
                                         ".sync", ".aligned", ".satfinite", ".xorsign", ".noftz" };
    for (size_t i = 0; i < G_N_ELEMENTS(parts); i++)
        if (ptx_is(w, parts[i]))
            return true;
    return false;
}

const char *ptx_decode(const PtxOpcode *o, PtxInst *in)
{
    uint8_t vector = in->sub;
    in->sub = 0;
    read_modifiers(o, in);
    const char *form = decode_special(o, in);
    if (in->fn || ptx_is(o->part[0], "mma") || ptx_is(o->part[0], "mbarrier") || ptx_has(o, ".bulk"))
        return form;
    char joined[160];
    const char *key = joined;
    size_t n = 0;
    PtxWord op = o->part[0];
    bool mov = ptx_is(op, "mov") && vector;
    for (int i = 0; i < o->parts && n + o->part[i].n < sizeof joined; i++)
        if (!i || !left_out(o->part[i])) {
            memcpy(joined + n, o->part[i].s, o->part[i].n);
            n += o->part[i].n;
        }
    joined[MIN(n, sizeof joined - 1)] = 0;
    if (mov)
        key = vector == 1 ? "movunpack" : "movpack";
    else if (ptx_is(op, "dp4a"))
        key = "dp4a";
    else if (ptx_is(op, "dp2a"))
        key = ptx_has(o, ".lo") ? "dp2a.lo" : "dp2a.hi";
    else if (ptx_is(op, "cvta"))
        key = ptx_has(o, ".to") ? "cvta.to" : "cvta";
    else if ((in->flags & PTX_SAT) && in->type == T_S32 && (ptx_is(op, "add") || ptx_is(op, "sub")))
        key = ptx_is(op, "add") ? "addsat.s32" : "subsat.s32";
    else if (ptx_is(op, "prmt") && o->parts == 3) {
        static const char *const modes[] = { ".f4e", ".b4e", ".rc8", ".ecl", ".ecr", ".rc16" };
        for (uint8_t i = 0; i < G_N_ELEMENTS(modes); i++)
            if (ptx_has(o, modes[i]))
                in->sub = (uint8_t)(i + 1);
        key = "prmt.b32";
    }
    if (ptx_is(op, "ldmatrix") || ptx_is(op, "stmatrix")) { /* .shared::cta is .shared */
        char *colon = strstr(joined, "::cta");
        if (colon)
            memmove(colon, colon + 5, strlen(colon + 5) + 1);
    }
    if (ptx_is(op, "cvta"))
        read_space(o, in);
    const PtxEntry *e = g_hash_table_lookup(table(), key);
    if (!e)
        return NULL;
    in->fn = e->fn;
    if (in->type == T_F32 || in->type == T_F64) {
        bool product = strchr("asmfdr", *op.s) != NULL && !ptx_has(o, ".approx");
        if (product && (in->round == ROUND_ZERO || in->round == ROUND_DOWN || in->round == ROUND_UP)) {
            in->inner = in->fn;
            in->fn = ptx_run_rounded;
        } else if (in->flags & PTX_SAT) {
            in->inner = in->fn;
            in->fn = ptx_run_saturated;
        }
    }
    if (strcmp(e->form, "all") == 0) { /* all lanes take part */
        in->control = CTL_SYNC;
        return "*";
    }
    if (strncmp(e->form, "sync", 4) == 0) { /* the last operand is a mask of lanes */
        in->control = CTL_SYNC;
        in->sync = 0;
        return "*";
    }
    return e->form;
}
