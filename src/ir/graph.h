/*
 * HnModel, HnGraph, HnNode, HnValue, HnAttr: a model while we work on it.
 *
 * Always true (hn_graph_verify() checks it after every read, tests after every pass):
 *   - each value has one producer: a node, a graph input or a weight (initializer);
 *   - nodes are stored in an order in which they can run;
 *   - a node uses values of its own graph or of the graphs around it, never of a sibling;
 *   - value names are unique within a graph and all graphs around it are searched outwards.
 *
 * Ownership: a model owns its graph and functions; a graph owns its nodes and values; an attribute owns the sub-graph
 * it holds. Pointers between them are borrowed. Weights are counted tensors and may be shared between graphs.
 * A node keeps its version, attributes and inputs as read until somebody edits it.
 */
#pragma once

#include "ir/tensor.h"
#include "ir/type.h"

G_BEGIN_DECLS

typedef struct HnModel HnModel;
typedef struct HnGraph HnGraph;
typedef struct HnNode HnNode;
typedef struct HnValue HnValue;
typedef struct HnAttr HnAttr;
typedef struct HnFunction HnFunction;
struct HnOp; /* op/op.h */

/* Numbers are those of AttributeProto.AttributeType. */
typedef enum {
    HN_ATTR_UNDEFINED = 0,
    HN_ATTR_FLOAT = 1,
    HN_ATTR_INT = 2,
    HN_ATTR_STRING = 3,
    HN_ATTR_TENSOR = 4,
    HN_ATTR_GRAPH = 5,
    HN_ATTR_FLOATS = 6,
    HN_ATTR_INTS = 7,
    HN_ATTR_STRINGS = 8,
    HN_ATTR_TENSORS = 9,
    HN_ATTR_GRAPHS = 10,
    HN_ATTR_SPARSE = 11,
    HN_ATTR_SPARSES = 12,
    HN_ATTR_TYPE = 13,
    HN_ATTR_TYPES = 14,
} HnAttrKind;

/* COO as in SparseTensorProto: values[nnz], indices[nnz] or [nnz,rank], dims of the dense tensor. */
typedef struct {
    HnTensor *values, *indices;
    int ndim;
    int64_t *dims;
    GBytes *unknown;
} HnSparse;

struct HnAttr {
    gint refs; /* nodes that hold it: several where they were given it by hn_node_share_attrs() */
    char *name;
    HnAttrKind kind;
    gboolean has_kind; /* files before IR 3 leave the type out */
    gboolean implicit; /* the file leaves a number or string out that is 0 or empty; ignored once it is not */
    union {
        float f;
        int64_t i;
        GBytes *s;
        HnTensor *t;
        HnGraph *g;
        HnSparse *sparse;
        HnType *type;
        float *floats;
        int64_t *ints;
        GBytes **strings;
        HnTensor **tensors;
        HnGraph **graphs;
        HnSparse **sparses;
        HnType **types;
    };
    int64_t n;      /* elements of the plural kinds */
    char *ref_attr; /* in a function body: the function's attribute this one stands for */
    char *doc;
    GBytes *unknown;
};

/* Pointers in order, as GPtrArray's, but mostly there is one, which lies here: nothing is allocated for it. Those near
 * either end are cheap to remove. */
typedef struct {
    gpointer *pdata;
    guint len, room; /* places from pdata on */
    union {
        gpointer first; /* pdata points here, or, */
        gsize front;    /* where it is allocated: places in front of pdata */
    };
} HnPtrs;

/* (key, value) pairs in file order; may be NULL when empty. Elements are char *: key at 2i, value at 2i+1. */
typedef GPtrArray HnPairs;

struct HnValue {
    char *name;       /* unique within its graph; never empty */
    uint32_t id;      /* dense within the model, for side tables: 0 <= id < model->n_values */
    HnGraph *graph;   /* that owns it */
    HnType *type;     /* declared in the file or inferred; NULL: nothing known */
    HnNode *producer; /* NULL: graph input or weight */
    int producer_out; /* which output of the producer */
    HnTensor
        *weight; /* initializer's elements; NULL for others. Missing external data: type only, data is loaded on open */
    HnSparse *sparse; /* a sparse initializer; weight is NULL until it is made dense on use */
    HnPtrs users[1];  /* HnNode *, one entry per use, nodes of inner graphs included */
    gboolean
        is_input;    /* listed among the graph's inputs (a weight may be, too: then it is a constant with a default) */
    guint is_output; /* how often it is among the graph's outputs: mostly once or not at all */
    gboolean has_info; /* the file declared it in value_info */
    char *doc;
    HnPairs *metadata;
    GBytes *unknown; /* of its ValueInfoProto */
};

struct HnNode {
    HnGraph *graph;
    const char *op_type; /* as in the file; these three are the model's, see hn_model_text() */
    const char *domain;  /* as in the file; NULL and "" and "ai.onnx" mean the same */
    const char *overload;
    char *name;            /* as in the file; may be NULL */
    int64_t version;       /* opset version of its domain that the model (or function) imports; 0: not imported */
    const struct HnOp *op; /* set by hn_op_bind(); NULL: not bound, or unknown operator */
    void *params;          /* op->params_size bytes, owned; pointers inside borrow from attrs */
    HnPtrs in[1];          /* HnValue *, NULL: absent optional input */
    HnPtrs out[1];         /* HnValue *, NULL: absent optional output */
    HnPtrs attrs[1];       /* HnAttr *; added to and taken from by the calls below only */
    guint at;              /* its place in graph->nodes when somebody last looked: a hint, hn_graph_index() */
    guint near;            /* input that was last replaced: the next is looked for around it */
    gboolean buried;       /* hn_graph_bury_node() */
    GHashTable *by_name;   /* their names -> 1 + place among them, where they are many; NULL mostly */
    char *doc;
    HnPairs *metadata;
    GBytes *unknown;
};

struct HnGraph {
    HnModel *model;
    HnGraph *outer;       /* graph around it; NULL for the main graph and for function bodies */
    HnNode *holder;       /* node whose attribute holds it; NULL as above */
    HnFunction *function; /* whose body it is; NULL for others */
    char *name, *doc;
    GPtrArray *inputs;  /* HnValue *, in order */
    GPtrArray *outputs; /* HnValue *, in order; in a sub-graph possibly a value of an outer graph */
    GPtrArray *weights; /* HnValue * with weight or sparse, in file order */
    GPtrArray *infos;   /* HnValue * declared in value_info, in file order */
    GPtrArray *nodes;   /* HnNode *, in an order in which they can run */
    guint buried;       /* of them */
    guint near;         /* output that was last replaced */
    GPtrArray *inner;   /* HnGraph * made with this one as `outer`, in order of making; not owned */
    GHashTable *values; /* name -> HnValue *, of this graph */
    HnPairs *metadata;
    GPtrArray *quant;     /* GBytes *: quantization_annotation messages as they were */
    GHashTable *variants; /* hn_graph_variant(); NULL mostly */
    GBytes *unknown;
};

typedef struct {
    char *domain;
    int64_t version;
    GBytes *unknown; /* fields that hone does not know; NULL mostly */
} HnOpset;

/* Where many domains are imported they are found by a table. */
typedef struct {
    GHashTable *by_domain; /* NULL: not needed so far */
    guint n;               /* imports that are in it */
} HnOpsetIndex;

struct HnFunction {
    HnModel *model;
    char *name, *domain, *overload, *doc;
    GPtrArray *inputs, *outputs; /* char *: formal names; body->inputs holds the same as values */
    GPtrArray *attrs;            /* char *: attribute names without default */
    GPtrArray *attr_defaults;    /* HnAttr * */
    GArray *opsets;              /* HnOpset; only ever appended to */
    HnOpsetIndex opset_index;
    HnGraph *body; /* values have no types unless the file gives them */
    HnPairs *metadata;
    GBytes *unknown;
};

struct HnModel {
    int64_t ir_version;
    GArray *opsets; /* HnOpset, in file order; only ever appended to */
    HnOpsetIndex opset_index;
    char *producer_name, *producer_version, *domain, *doc;
    int64_t model_version;
    gboolean has_ir_version, has_model_version;
    HnPairs *metadata;
    HnGraph *graph;
    GPtrArray *functions; /* HnFunction * */
    GPtrArray *training;  /* GBytes *: training_info messages as they were */
    GPtrArray *configs;   /* GBytes *: device configuration messages as they were */
    GBytes *unknown;
    GHashTable *texts; /* hn_model_text() */
    HnBudget *budget;  /* hn_model_set_budget(); NULL: none */
    gsize objects;     /* bytes of nodes and values, about */
    gsize kept;        /* bytes of all else that came with the file */
    gsize charged;     /* what the budget knows of both */
    uint32_t n_values; /* next HnValue.id */
    uint32_t suffix;   /* names made of smaller numbers were taken when somebody looked: hn_graph_new_value() */
    guint n_graphs;
    GHashTable *names; /* char *: what values of all graphs are and were called; NULL: not needed so far */
    char *path;        /* where it came from; NULL: stdin or made in memory */
    gsize file_bytes;
};

/* --- lists -------------------------------------------------------------------------------------------------------
 */

void hn_ptrs_add(HnPtrs *list, gpointer p);
void hn_ptrs_insert(HnPtrs *list, guint i, gpointer p);
void hn_ptrs_remove(HnPtrs *list, guint i);           /* those behind move up */
void hn_ptrs_set_len(HnPtrs *list, guint len);        /* new places are NULL */
gboolean hn_ptrs_drop(HnPtrs *list, gconstpointer p); /* the first or last entry that equals p; FALSE: there is none */
void hn_ptrs_clear(HnPtrs *list);                     /* frees what it took, and leaves it empty */
GPtrArray *hn_ptrs_copy(const HnPtrs *list);

/* --- making and freeing ------------------------------------------------------------------------------------------ */

HnModel *hn_model_new(void); /* IR version 8, no opsets, an empty main graph named "main" */
void hn_model_free(HnModel *m);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(HnModel, hn_model_free)
/* From now on m's graphs count against the budget (NULL: none), of which a reference is taken. What is edited in goes
 * beyond its limit where it must: the next that asks the budget is refused then. */
void hn_model_set_budget(HnModel *m, HnBudget *budget);
/* For a reader: asks for bytes that are about to be filled with graphs, ... */
gboolean hn_model_reserve(HnModel *m, gsize bytes, GError **error);
/* ... which they are now: what is no node or value of it stays with the model. */
void hn_model_settle(HnModel *m);
/* The model's own copy of a text that many nodes share, which stays as long as the model; NULL: NULL. */
const char *hn_model_text(HnModel *m, const char *text);
/* Version imported for a domain ("" and "ai.onnx" alike); 0: none. */
int64_t hn_model_opset(const HnModel *m, const char *domain);
void hn_model_set_opset(HnModel *m, const char *domain, int64_t version);
/* Weights that are listed among the graph's inputs too, as files before IR 4 had to, are weights only: nobody can feed
 * something else then. The IR version becomes 4 at least. */
void hn_model_drop_defaults(HnModel *m);
/* Of the elements of all weights, the values of sparse ones, and tensors that attributes hold, in sub-graphs too but
 * not in functions; a tensor that several share counts once. */
gsize hn_model_weight_bytes(const HnModel *m);
/* An empty function with an empty body, appended to m->functions. hn_function_free() does not take it out of there. */
HnFunction *hn_function_new(HnModel *m, const char *domain, const char *name);
void hn_function_free(HnFunction *f);

HnGraph *hn_graph_new(HnModel *m, HnGraph *outer, const char *name);
void hn_graph_free(HnGraph *g);

/* Version of a domain for the nodes of g: as the model imports it, in function bodies as the function does; 0: none. */
int64_t hn_graph_opset(const HnGraph *g, const char *domain);
/* That import, until the next one is added; NULL: none. */
const HnOpset *hn_graph_import(const HnGraph *g, const char *domain);

/* The value of that name in g, made when there is none. */
HnValue *hn_graph_value(HnGraph *g, const char *name);
/* Looks in g, then in the graphs around it. NULL: none. */
HnValue *hn_graph_find(const HnGraph *g, const char *name);
/* A new value with a name made from `stem` that no graph around or inside g uses. */
HnValue *hn_graph_new_value(HnGraph *g, const char *stem);
void hn_graph_add_input(HnGraph *g, HnValue *v);
void hn_graph_add_output(HnGraph *g, HnValue *v);
/* Output k of g becomes v, under v's name. */
void hn_graph_set_output(HnGraph *g, guint k, HnValue *v);
/* Those behind move up. The value stays: an input as one that nothing produces. */
void hn_graph_remove_input(HnGraph *g, int i);
void hn_graph_remove_output(HnGraph *g, int k);
/* Takes a reference on the tensor. Where v is a weight already, it only gets other elements. */
void hn_graph_add_weight(HnGraph *g, HnValue *v, HnTensor *t);
void hn_graph_add_sparse(HnGraph *g, HnValue *v, HnSparse *s); /* the same, takes s */
void hn_graph_remove_weight(HnGraph *g, HnValue *v);           /* v stays, as a value that nothing produces */
/* v, a weight or not, that no node makes or reads and that is neither input nor output, is there no longer. */
void hn_graph_drop_value(HnValue *v);
void hn_value_set_type(HnValue *v, HnType *t); /* takes a reference */
/* A file may declare a value a second time and differently: as "output" or "info" of g, where an output of a sub-graph
 * may even be an outer value. The declaration's bytes (a reference is taken), for the writer. NULL: none. */
void hn_graph_set_variant(HnGraph *g, const char *role, const HnValue *v, GBytes *declaration);
GBytes *hn_graph_variant(const HnGraph *g, const char *role, const HnValue *v);

/* --- nodes ---------------------------------------------------------------------------------------------------------
 */

/* Inserted at `at` (-1: the end), with the version of hn_graph_opset(). Inputs and outputs are added with the calls
 * below. */
HnNode *hn_graph_add_node(HnGraph *g, int at, const char *op_type, const char *domain, const char *name);
/* The same right in front of a node of g. */
HnNode *hn_graph_add_node_before(HnGraph *g, const HnNode *before, const char *op_type, const char *domain,
                                 const char *name);
/* n is a node of another operator from now on, to be bound again; its place, inputs, outputs and attributes stay. */
void hn_node_become(HnNode *n, const char *op_type, const char *domain);
/* The place of a node of g in its list: found at once where it is near to where it was. */
guint hn_graph_index(const HnGraph *g, const HnNode *n);
void hn_node_add_in(HnNode *n, HnValue *v_or_null);
void hn_node_add_out(HnNode *n, HnValue *v_or_null);
/* Places up to i are made where there are fewer. */
void hn_node_set_in(HnNode *n, int i, HnValue *v_or_null);
void hn_node_set_out(HnNode *n, int i, HnValue *v_or_null); /* v moves here from the node that produced it */
/* The place goes, and those behind move up; the value stays. */
void hn_node_remove_in(HnNode *n, int i);
void hn_node_remove_out(HnNode *n, int k);
/* Of a node that is in no graph's list; its uses and productions end. */
void hn_node_free(HnNode *n);
/* Takes the node out of its graph and frees it; its uses and productions end, and outputs that nothing else names are
 * freed too. */
void hn_graph_remove_node(HnGraph *g, HnNode *n);
/* The same for who removes many: n's place in the list is left to a node without operator, inputs and outputs, which
 * the next node added before the one behind it takes; hn_graph_settle() frees those that are left, in g and below. */
void hn_graph_bury_node(HnGraph *g, HnNode *n);
void hn_graph_settle(HnGraph *g);
/* The elements of a weight, which may be sparse, aligned without a trace in the model: a new reference. */
HnTensor *hn_value_aligned(const HnValue *v, HnBudget *budget, GError **error);
/* v has elements of its own: a weight, perhaps sparse. */
gboolean hn_value_is_weight(const HnValue *v);
/* Somebody reads v, or it is an output; NULL: FALSE. */
gboolean hn_value_is_read(const HnValue *v);
/* The same of any output of n. */
gboolean hn_node_is_read(const HnNode *n);
/* Every use of `from` (graph outputs too, which then carry `to`) becomes `to`. */
void hn_value_replace(HnValue *from, HnValue *to);
/* a is called as b was, and b as a was; both belong to one graph. */
void hn_value_swap_names(HnValue *a, HnValue *b);
/* From now on a name tells which float is meant, in tables and files beside the model as well: floats of sub-graphs,
 * and values without a type, get names of their own where values of other graphs are called the same. Such a name is
 * that of the first output of the node around the graph, the attribute and the name before, "loop_1/body/x". What is
 * called as nothing else keeps its name. The names are those that any copy of the model gets. */
void hn_model_name_apart(HnModel *m);
/* Some value of the model's graph, or of one inside it, is called so. */
gboolean hn_model_has_name(const HnModel *m, const char *name);
static inline HnValue *hn_node_in(const HnNode *n, int i)
{
    return i >= 0 && (guint)i < n->in->len ? (HnValue *)n->in->pdata[i] : NULL;
}
static inline HnValue *hn_node_out(const HnNode *n, int i)
{
    return i >= 0 && (guint)i < n->out->len ? (HnValue *)n->out->pdata[i] : NULL;
}

/* The first of its results that there is; NULL: it has none. */
static inline HnValue *hn_node_result(const HnNode *n)
{
    for (guint k = 0; k < n->out->len; k++)
        if (n->out->pdata[k] != NULL)
            return n->out->pdata[k];
    return NULL;
}
/* A copy of n at the end of `to`, the graphs in its attributes included; weights are shared. `values` tells which
 * values stand for those that n and its sub-graphs use (HnValue * -> HnValue *); others are made, under the same names,
 * and added to it. */
HnNode *hn_node_copy(HnGraph *to, const HnNode *n, GHashTable *values);
/* For messages: the node's name, or its first output's, or its operator's; never NULL. */
const char *hn_node_label(const HnNode *n);
gboolean hn_domain_equal(const char *a, const char *b); /* "", NULL and "ai.onnx" are one */

/* --- attributes ----------------------------------------------------------------------------------------------------
 */

HnAttr *hn_attr_new(const char *name, HnAttrKind kind);
void hn_attr_free(HnAttr *a);
/* NULL: none of that name. */
const HnAttr *hn_node_attr(const HnNode *n, const char *name);
/* Takes it; replaces one of the same name. n becomes the holder of the graphs in it. n has to be bound again (n->op is
 * NULL), as after each of the four below and hn_node_remove_attr(). */
void hn_node_set_attr(HnNode *n, HnAttr *a);
void hn_node_remove_attr(HnNode *n, const char *name);
/* Those of `from` that hold no graphs are n's, too, from now on, as they are: nobody edits them in place. n has none.
 */
void hn_node_share_attrs(HnNode *n, const HnNode *from);
/* All attributes of `from` become n's. */
void hn_node_take_attrs(HnNode *n, HnNode *from);
void hn_node_set_int(HnNode *n, const char *name, int64_t v);
void hn_node_set_float(HnNode *n, const char *name, float v);
void hn_node_set_ints(HnNode *n, const char *name, const int64_t *v, int64_t len);
void hn_node_set_string(HnNode *n, const char *name, const char *v);
void hn_sparse_free(HnSparse *s);
/* Dense tensor of a COO one. Errors: FORMAT for indices out of range or counts that do not fit. */
HnTensor *hn_sparse_dense(const HnSparse *s, HnBudget *budget, GError **error);

/* --- whole graph ---------------------------------------------------------------------------------------------------
 */

/* Checks the invariants above and, on the way, sorts nodes that are only stored out of order (as some exporters
 * do; `*reordered` says so). Recurses into sub-graphs and functions. Errors: GRAPH, one sentence naming node or value.
 */
gboolean hn_graph_verify(HnGraph *g, gboolean *reordered, GError **error);
gboolean hn_model_verify(HnModel *m, GError **error);
/* Every node of g and of the graphs inside it, outer first. */
typedef void (*HnNodeFn)(HnNode *n, gpointer data);
void hn_graph_foreach_node(HnGraph *g, HnNodeFn fn, gpointer data);
/* The outer values that the sub-graphs of n use, each once, in order of first use: n's hidden inputs. */
GPtrArray *hn_node_captures(const HnNode *n);
/* All values that n needs, each once: its inputs, then those. */
GPtrArray *hn_node_reads(const HnNode *n);
/* Structure, names, types, attributes, weights: everything that a file holds. Difference in *why (g_free). */
gboolean hn_model_equal(const HnModel *a, const HnModel *b, char **why);

G_END_DECLS
