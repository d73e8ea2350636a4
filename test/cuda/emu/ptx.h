/*
 * The interpreter's own structures: a module's text, a kernel's decoded instructions, and what a launch keeps.
 *
 * A register is a row of 32 lanes: 4 bytes each for .b8 to .b32 (shorter ones with zeros above), 8 bytes for .b64, 16
 * for .b128; a predicate is one word with a bit for each lane. Rows of a warp lie in one block of memory, rows of
 * constants in another one of the kernel: an operand is an offset, whose lowest bit says which.
 */
#pragma once

#include <glib.h>
#include <setjmp.h>
#include <string.h>
#include "emu.h"

enum { LANES = 32 };

/* Generic addresses of memory that is not global. Kernel parameters and local memory are addressed by them in their own
 * spaces, too. */
#define PTX_SHARED_BASE 0x100000000u
#define PTX_LOCAL_BASE 0x200000000u
#define PTX_PARAM_BASE 0x300000000u
#define PTX_WINDOW 0x100000000u

typedef enum { SPACE_GENERIC, SPACE_GLOBAL, SPACE_SHARED, SPACE_LOCAL, SPACE_PARAM, SPACE_CONST } PtxSpace;

typedef enum {
    T_NONE,
    T_B8,
    T_B16,
    T_B32,
    T_B64,
    T_B128,
    T_U8,
    T_U16,
    T_U32,
    T_U64,
    T_S8,
    T_S16,
    T_S32,
    T_S64,
    T_F16,
    T_F16X2,
    T_BF16,
    T_BF16X2,
    T_TF32,
    T_F32,
    T_F64,
    T_E4M3X2,
    T_E5M2X2,
    T_PRED,
    T_COUNT
} PtxType;

typedef struct PtxWarp PtxWarp;
typedef struct PtxInst PtxInst;
typedef void (*PtxFn)(PtxWarp *w, const PtxInst *in, uint32_t mask);
typedef uint32_t (*PtxCompare)(PtxWarp *w, const PtxInst *in, uint32_t mask);

/* What the loop over instructions does itself. */
typedef enum {
    CTL_NONE,
    CTL_SYNC, /* lanes of in->o[0], a mask, come together first */
    CTL_BRA,
    CTL_BRX,
    CTL_CALL,
    CTL_RET,
    CTL_EXIT,
    CTL_BAR,   /* all lanes that are alive come together; the block's barrier */
    CTL_YIELD, /* done like any other; then it is another warp's turn */
    CTL_TRAP
} PtxControl;

typedef enum { ROUND_NEAREST, ROUND_ZERO, ROUND_DOWN, ROUND_UP, ROUND_AWAY } PtxRound;

struct PtxInst {
    PtxFn fn;
    union {
        PtxFn inner;        /* of a wrapper: the function within */
        PtxCompare compare; /* of setp, set */
    };
    int32_t guard; /* row of the predicate; -1: none */
    bool guard_not;
    uint8_t control;  /* PtxControl */
    uint8_t space;    /* PtxSpace */
    uint8_t type;     /* PtxType: of the result, or of memory */
    uint8_t from;     /* PtxType of the source */
    uint8_t round;    /* PtxRound */
    uint8_t vec;      /* elements of a vector in memory */
    uint8_t sub;      /* a variant, by instruction */
    uint16_t flags;   /* PTX_... below */
    uint8_t n;        /* operands */
    bool copies;      /* mov from a register: what compilers add where ways meet, and take away again */
    uint8_t results;  /* how many of them, the first ones, are registers that are written */
    int32_t o[6];     /* rows of the first ones */
    uint32_t more;    /* where all of them stand in PtxKernel.rows */
    uint32_t wide;    /* bit i: operand i has rows of 8 bytes */
    int64_t imm;      /* added to the address, or a mask, or the target of a branch */
    int64_t imm_b;    /* added to the second address */
    int32_t sync;     /* CTL_SYNC: row of the mask of lanes that come together; -1: all */
    uint8_t memories; /* addresses among the operands */
    uint32_t text, text_n, line;
};

enum {
    PTX_SAT = 1,
    PTX_NOT = 2,   /* the predicate operand is negated */
    PTX_HAS_P = 4, /* there is a predicate operand */
    PTX_RELU = 8,
    PTX_NAN = 16,
    PTX_TRANS = 32,
    PTX_NOT_D = 64,      /* no result is wanted (_ or red) */
    PTX_WEAK = 128,      /* an access of memory without .volatile, .relaxed, .acquire, .release */
    PTX_READ_ONLY = 256, /* .nc */
};

typedef struct {
    const char *name; /* in the module's text, not terminated */
    uint32_t name_n;
    uint32_t text, line; /* of the parameter list */
    uint32_t body;       /* 0: .extern */
    uint32_t body_line;
    uint32_t ret, ret_line; /* list of results; 0: none */
    bool entry;
    unsigned maxntid;
} PtxFunction;

typedef struct {
    char *name;
    uint64_t address;
    size_t bytes, align;
    uint8_t space;
    EmuVariable variable; /* .global, .const */
    uint8_t *initial;
    GArray *addresses; /* PtxAddress: initial values that are addresses of other variables */
} PtxSymbol;

struct EmuModule {
    char *text;
    size_t n;
    GPtrArray *functions; /* PtxFunction */
    GPtrArray *globals;   /* PtxSymbol: .global and .const, as the driver sees them */
    GHashTable *symbols;  /* name -> PtxSymbol: these and .shared of the module */
    GHashTable *kernels;  /* name -> EmuKernel */
};

typedef struct {
    int slot;    /* row in a warp's registers */
    int special; /* PtxSpecial */
} PtxSpecialUse;

struct EmuKernel {
    EmuModule *module;
    char *name;
    GArray *code; /* PtxInst */
    GArray *rows; /* int32_t: operands of all instructions */
    GArray *specials;
    GArray *tables; /* int32_t: targets of brx */
    uint8_t *constants;
    size_t constant_bytes;
    GHashTable *constant_rows; /* while decoding */
    size_t register_bytes, local_bytes, shared_bytes, dynamic_align;
    GArray *param_offset, *param_size; /* size_t */
    size_t param_bytes;
    unsigned max_threads;
    size_t stamped; /* bytes, 1 or 2, whose readers and writers are known */
    bool products;  /* it has some of warpgroups (wgmma) */
};

/* Who read and wrote 2 bytes last, or one in kernels that use single ones (EmuKernel.stamped): they are often two
 * threads' own. Times are steps between barriers,
 * counted through all launches. */
typedef struct {
    uint32_t wrote, read;
    uint8_t writer, wrote_bytes;    /* warp; bits of bytes */
    uint8_t reader, read_bytes;     /* warp, or PTX_MANY; bits of bytes, and PTX_BLOCKS */
    uint8_t wrote_lane, wrote_turn; /* of the warp, and its `turn` then */
    uint8_t read_lane, read_turn;   /* a lane, PTX_MANY, or PTX_SOME */
} PtxStamp;
enum {
    PTX_MANY = 255,
    PTX_SOME = 254,
    PTX_BLOCKS = 16,
    PTX_ATOMIC = 16,
    PTX_BY_COPY = 32 /* in the asynchronous proxy */
};

typedef struct {
    uint32_t pc, mask;
    uint32_t depth; /* of calls */
    bool waits;     /* for other lanes */
} PtxSplit;

/* A copy that was begun (cp.async), of one lane. */
typedef struct {
    uint32_t group; /* of the lane's groups */
    uint32_t dst;   /* in shared memory */
    uint8_t lane, size, source_size;
    const PtxInst *in;
    const uint8_t *src; /* NULL: zeros */
    uint8_t was[16];    /* what was there when it began */
} PtxCopy;

typedef struct PtxAsync PtxAsync; /* ptx_async.c */
typedef struct PtxBlock PtxBlock;
typedef struct PtxLaunch PtxLaunch;

typedef enum { WARP_RUNS, WARP_AT_BARRIER, WARP_DONE } PtxWarpState;

struct PtxWarp {
    uint8_t *base[2]; /* registers, constants */
    PtxBlock *block;
    PtxLaunch *launch;
    PtxSplit split[LANES];
    int splits, current;
    uint32_t alive, member; /* lanes that have not left; lanes that there are */
    int index;
    PtxWarpState state;
    int barrier;
    uint32_t barrier_count; /* threads it is for; 0: all */
    const PtxInst *barrier_in;
    uint32_t barrier_mask;          /* lanes that take its result */
    uint8_t *local, *local_defined; /* [LANES][local_bytes] */
    uint32_t clock[LANES];          /* what warp i did before this time is ordered before what this one does */
    uint32_t newest;                /* of these, but the warp's own */
    uint8_t turn;                   /* counts barriers of its lanes among themselves (__syncwarp) */
    uint32_t again;                 /* lanes whose store met what another one has written since the last of these */
    uint8_t again_of[LANES];        /* ... which one */
    uint32_t group[LANES];          /* copies' groups, by lane */
    GArray *copies;                 /* PtxCopy */
    uint32_t carry;                 /* of add.cc, a bit for each lane */
    GArray *products;               /* of a warpgroup, begun; NULL: there were none */
    uint8_t *busy, *read;           /* by 128 bytes of registers: how many of these write, read there */
    uint32_t *used;                 /* ... and when another instruction used them last, in fences of products */
    uint32_t product_group, product_fences;
    const PtxInst *product_last;
    uint32_t product_hash; /* of all of them so far: the four warps of a group compute the same ones */
    bool products_fenced;
    uint32_t proxied; /* what it wrote to shared memory before, asynchronous work may read (fence.proxy.async) */
    uint64_t steps;
};

enum { BARRIERS = 16 };

typedef struct {
    uint32_t arrived;  /* threads, that of bar.arrive included */
    uint32_t arrivers; /* warps that arrived and do not wait */
    uint32_t votes, votes_asked;
    uint32_t count;
} PtxBarrier;

struct PtxBlock {
    unsigned id[3];
    uint32_t index;
    int warps, threads;
    PtxWarp *warp;
    uint8_t *memory; /* all of the above */
    uint8_t *shared, *shared_defined;
    size_t shared_bytes;
    PtxStamp *shared_stamps;
    PtxBarrier barrier[BARRIERS + 1];
    uint32_t time, began;
    uint32_t acquired; /* what others published before this time is known here */
    PtxLaunch *launch;
    bool gated;         /* there are mbarriers */
    size_t copies_open; /* pieces that were begun and not waited for */
    PtxAsync *async;
};

struct PtxLaunch {
    const EmuKernel *kernel;
    const EmuLaunch *what;
    const EmuSpace *space;
    EmuCounts *counts;
    EmuFault *fault;
    jmp_buf out;
    const PtxInst *code;
    EmuRegion **seen;       /* by instruction: the region it used last */
    GArray *blocks_of_time; /* uint32_t: by time since the launch began, the block's index */
    uint32_t began;         /* time */
    uint32_t *published;    /* by block: when it last made known what it wrote (a fence) */
    uint64_t random;
    uint64_t steps, budget;
    uint32_t size[3]; /* of the grid */
};

static inline void *ptx_row(const PtxWarp *w, int32_t o)
{
    return w->base[o & 1] + (o & ~1);
}

static inline const int32_t *ptx_more(const PtxWarp *w, const PtxInst *in)
{
    return &g_array_index(w->launch->kernel->rows, int32_t, in->more);
}

/* Ends the launch. lane -1: no single one. */
_Noreturn __attribute__((format(printf, 5, 6))) void ptx_fault(PtxWarp *w, const PtxInst *in, int lane, int result,
                                                               const char *format, ...);

enum {
    FAULT_ADDRESS = 700,
    FAULT_INSTRUCTION = 715,
    FAULT_ALIGNMENT = 716,
    FAULT_SPACE = 717,
    FAULT_PC = 718,
    FAULT_OTHER = 719,
    FAULT_ASSERT = 710,
    FAULT_TIMEOUT = 702
};

uint32_t ptx_random(PtxLaunch *l);

/* --- decoding --- */
typedef struct {
    const char *s; /* in the text */
    uint32_t n;
} PtxWord;

static inline bool ptx_is(PtxWord w, const char *s)
{
    return w.n == strlen(s) && memcmp(w.s, s, w.n) == 0;
}

/* A scanner over the text of a module: skips blanks and comments, counts lines. */
typedef struct {
    const char *text;
    size_t at, end;
    uint32_t line;
} PtxScan;
void ptx_skip(PtxScan *s);
PtxWord ptx_word(PtxScan *s); /* a name, number or directive; else one character; n 0: the end */
bool ptx_take(PtxScan *s, char c);
bool ptx_skip_braces(PtxScan *s); /* behind the brace that belongs to this one */
PtxType ptx_type_of(PtxWord w);   /* ".f32" */
size_t ptx_type_bytes(PtxType t);
bool ptx_is_float(PtxType t);
bool ptx_is_signed(PtxType t);

/* Fills a kernel from the module's text. */
bool ptx_parse_kernel(EmuKernel *k, const PtxFunction *f, EmuFault *fault);

/* What an instruction says, in pieces. */
enum { PTX_PARTS = 16, PTX_ARGS = 160 };
typedef struct {
    PtxWord part[PTX_PARTS]; /* "mad", ".lo", ".s32" */
    int parts;
    PtxWord op; /* all of it: "mad.lo.s32" */
} PtxOpcode;
bool ptx_has(const PtxOpcode *o, const char *part);
/* Sets fn, types, flags; how operands are to be read goes to *form (ptx_decode.c explains it). NULL: unknown. */
const char *ptx_decode(const PtxOpcode *o, PtxInst *in);

/* A table of instructions: key, function, how operands are read. */
typedef struct {
    const char *key;
    PtxFn fn;
    const char *form;
    PtxCompare compare;
} PtxEntry;
extern const PtxEntry ptx_alu_entries[], ptx_float_entries[], ptx_half_entries[], ptx_lane_entries[],
    ptx_tensor_entries[]; /* each ends with key NULL */
PtxCompare ptx_compare_of(PtxWord how, PtxType t);

/* Wrappers: rounding mode, saturation. */
void ptx_run_rounded(PtxWarp *w, const PtxInst *in, uint32_t mask);
void ptx_run_saturated(PtxWarp *w, const PtxInst *in, uint32_t mask);
void ptx_run_setp(PtxWarp *w, const PtxInst *in, uint32_t mask);
void ptx_run_set(PtxWarp *w, const PtxInst *in, uint32_t mask);
void ptx_run_mma(PtxWarp *w, const PtxInst *in, uint32_t mask);
const char *ptx_decode_mma(const PtxOpcode *o, PtxInst *in);
void ptx_run_cvt(PtxWarp *w, const PtxInst *in, uint32_t mask);
void ptx_run_load(PtxWarp *w, const PtxInst *in, uint32_t mask);
void ptx_run_store(PtxWarp *w, const PtxInst *in, uint32_t mask);
void ptx_run_atomic(PtxWarp *w, const PtxInst *in, uint32_t mask);
void ptx_run_fence(PtxWarp *w, const PtxInst *in, uint32_t mask);
void ptx_run_nothing(PtxWarp *w, const PtxInst *in, uint32_t mask);
void ptx_run_warp_barrier(PtxWarp *w, const PtxInst *in, uint32_t mask);

/* Memory, as other instructions use it. */
/* Where lanes' bytes are, checked: inside, aligned, written before, not raced for. */
typedef enum { USE_READ, USE_WRITE, USE_ATOMIC, USE_COPY /* writes later */, USE_PRODUCT /* reads later */ } PtxUse;
void ptx_places(PtxWarp *w, const PtxInst *in, uint32_t mask, PtxSpace space, const uint64_t *address, size_t bytes,
                PtxUse use, uint8_t **place);
/* So many bytes in shared memory, but for alignment. lane -1: no single one. */
void ptx_shared_bytes(PtxWarp *w, const PtxInst *in, int lane, uint64_t at, size_t bytes, PtxUse use);
bool ptx_shared_untouched(const PtxWarp *w, uint64_t at, size_t bytes, uint32_t since); /* written by nobody */
void ptx_addresses(PtxWarp *w, const PtxInst *in, int operand, int64_t plus, uint32_t mask, uint64_t *address);
void ptx_run_copy_begin(PtxWarp *w, const PtxInst *in, uint32_t mask);
void ptx_run_copy_group(PtxWarp *w, const PtxInst *in, uint32_t mask);
void ptx_run_copy_wait(PtxWarp *w, const PtxInst *in, uint32_t mask);
void ptx_copies_finish(PtxWarp *w, uint32_t mask, uint32_t keep);
void ptx_copy_params(PtxWarp *w, uint32_t mask, uint32_t to, uint32_t from, uint32_t bytes);
uint32_t ptx_tick(PtxBlock *b); /* a new step in time, which is this block's */
uint32_t ptx_now(void);

/* What goes on beside the warps (ptx_async.c). */
PtxAsync *ptx_async_new(void);
void ptx_async_free(PtxAsync *a);
void ptx_async_start(PtxAsync *a);
void ptx_async_end(const PtxBlock *b); /* nothing is under way any more, or it is a fault */
const char *ptx_decode_gate(const PtxOpcode *o, PtxInst *in);
const char *ptx_decode_tile(const PtxOpcode *o, PtxInst *in);
const char *ptx_decode_product(const PtxOpcode *o, PtxInst *in);
void ptx_products_start(PtxWarp *w);
void ptx_products_end(PtxWarp *w);
void ptx_products_free(PtxWarp *w);
/* That the instruction, which is no product, uses no register of a product that goes on. */
void ptx_check_registers(PtxWarp *w, const PtxInst *in);
void ptx_gates_shown(const PtxWarp *w); /* those that the warp has made */
void ptx_run_gates_shown(PtxWarp *w, const PtxInst *in, uint32_t mask);
void ptx_products_compare(const PtxBlock *b);                                            /* at its end */
void ptx_check_gate(PtxWarp *w, const PtxInst *in, int lane, uint64_t at, size_t bytes); /* no mbarrier is there */
void ptx_run_proxy(PtxWarp *w, const PtxInst *in, uint32_t mask);

/* Half numbers. */
float ptx_half_to_float(uint16_t h);
float ptx_bf16_to_float(uint16_t h);
uint16_t ptx_to_half(double x, PtxRound r);
uint16_t ptx_to_bf16(double x, PtxRound r);
double ptx_round_to(double x, int mantissa, int least, PtxRound r);

/* Behind ".global" and the like: one variable, up to ',' or ';', which is left. NULL: it makes no sense. */
PtxSymbol *ptx_declare(PtxScan *s, PtxSpace space);
void ptx_symbol_free(gpointer symbol);
const PtxFunction *ptx_function(const EmuModule *m, PtxWord name);
bool ptx_number(PtxWord w, PtxType t, uint64_t *bits); /* of a literal, as a value of this type */
void ptx_say(EmuFault *fault, int result, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* Special registers: rows that a warp fills when it starts. */
typedef enum {
    SR_TID_X,
    SR_TID_Y,
    SR_TID_Z,
    SR_NTID_X,
    SR_NTID_Y,
    SR_NTID_Z,
    SR_CTAID_X,
    SR_CTAID_Y,
    SR_CTAID_Z,
    SR_NCTAID_X,
    SR_NCTAID_Y,
    SR_NCTAID_Z,
    SR_LANEID,
    SR_WARPID,
    SR_NWARPID,
    SR_SMID,
    SR_NSMID,
    SR_GRIDID,
    SR_EQ,
    SR_LE,
    SR_LT,
    SR_GE,
    SR_GT,
    SR_DYNAMIC_SHARED,
    SR_TOTAL_SHARED,
    SR_ZERO,
    SR_ONE,
    SR_CLOCK,
    SR_CLOCK_HI,
    SR_CLOCK64,
    SR_TIME,
    SR_TIME_LO,
    SR_TIME_HI,
    SR_COUNT
} PtxSpecial;
/* Instructions that the parser adds. */
void ptx_run_clock(PtxWarp *w, const PtxInst *in, uint32_t mask);
void ptx_run_param_copy(PtxWarp *w, const PtxInst *in, uint32_t mask);
void ptx_run_assert(PtxWarp *w, const PtxInst *in, uint32_t mask);
