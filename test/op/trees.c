#include "case.h"

/* feature 0 <= 1.5 ? (feature 1 <= 0.25 ? leaf 1 : leaf 2) : leaf 3, and a second tree of one leaf */
#define NODES                                                                                 \
    "nodes_treeids=[0,0,0,0,0,1] nodes_nodeids=[0,1,2,3,4,0] nodes_featureids=[0,1,0,0,0,0] " \
    "nodes_modes=['BRANCH_LEQ','BRANCH_LEQ','LEAF','LEAF','LEAF','LEAF'] "                    \
    "nodes_values=[1.5,0.25,0.0,0.0,0.0,0.0] nodes_truenodeids=[1,2,0,0,0,0] nodes_falsenodeids=[4,3,0,0,0,0] "
#define TARGETS \
    "target_treeids=[0,0,0,1] target_nodeids=[2,3,4,0] target_ids=[0,0,0,0] target_weights=[1.0,2.0,3.0,10.0] "
#define ROWS "f32[4,2]={0,0,0,1,2,0,nan,0}"

/* One tree of three nodes, of which one thing is wrong. */
#define WRONG(ids, modes, features, yes, no, targets)                                                      \
    {                                                                                                      \
        "f32[2,2]",                                                                                        \
            "nodes_treeids=[0,0,0] nodes_nodeids=" ids " nodes_featureids=" features " nodes_modes=" modes \
            " nodes_values=[1.5,0.25,0.0] nodes_truenodeids=" yes " nodes_falsenodeids=" no " " targets,   \
            .refused = TRUE, .code = HN_ERROR_ATTRIBUTE                                                    \
    }
#define RIGHT_MODES "['BRANCH_LEQ','LEAF','LEAF']"
#define RIGHT_TARGETS "target_treeids=[0,0] target_nodeids=[1,2] target_ids=[0,0] target_weights=[1.0,2.0] n_targets=1"

static const HnCase treeensembleregressor[] = {
    { ROWS, NODES TARGETS "n_targets=1", "f32[4,1]={11,12,13,13}" },
    { ROWS, NODES TARGETS "n_targets=1", "f32[4,1]={11,12,13,13}", .opset = 1 },
    { "f64[4,2]={0,0,0,1,2,0,nan,0}", NODES TARGETS "n_targets=1", "f32[4,1]={11,12,13,13}" },
    { "i64[2,2]={1,0,2,1}", NODES TARGETS "n_targets=1", "f32[2,1]={11,13}" },
    { "i32[2]={1,1}", NODES TARGETS "n_targets=1", "f32[1,1]={12}" },
    { "f32[0,2]", NODES TARGETS "n_targets=1", "f32[0,1]={}" },
    { "f32[100,3]", NODES TARGETS "n_targets=1" },
    { "f32[17,2]", NODES TARGETS "n_targets=1 base_values=[0.5]" },
    { ROWS, NODES TARGETS "n_targets=1 aggregate_function='AVERAGE' base_values=[0.5]", "f32[4,1]={6,6.5,7,7}" },
    { ROWS, NODES TARGETS "n_targets=1 aggregate_function='MIN'", "f32[4,1]={1,2,3,3}" },
    { ROWS, NODES TARGETS "n_targets=1 aggregate_function='MAX'", "f32[4,1]={10,10,10,10}" },
    { ROWS, NODES TARGETS "n_targets=1 nodes_missing_value_tracks_true=[1]", "f32[4,1]={11,12,13,11}" },
    { "f32[1,2]={nan,nan}", NODES TARGETS "n_targets=1 nodes_missing_value_tracks_true=[1,0]", "f32[1,1]={12}" },
    WRONG("[0,1,1]", RIGHT_MODES, "[0,0,0]", "[1,0,0]", "[2,0,0]", RIGHT_TARGETS),
    WRONG("[0,1,2]", RIGHT_MODES, "[0,0,0]", "[1,0,0]", "[3,0,0]", RIGHT_TARGETS),
    WRONG("[0,1,2]", RIGHT_MODES, "[0,0,0]", "[-1,0,0]", "[2,0,0]", RIGHT_TARGETS),
    WRONG("[0,1,2]", RIGHT_MODES, "[0,0,0]", "[0,0,0]", "[2,0,0]", RIGHT_TARGETS),
    WRONG("[0,1,2]", "['BRANCH_LEQ','BRANCH_LEQ','BRANCH_LEQ']", "[0,0,0]", "[1,2,0]", "[1,2,0]", RIGHT_TARGETS),
    WRONG("[0,1,2]", "['BRANCH_LEQ','LEAF','BRANCH']", "[0,0,0]", "[1,0,0]", "[2,0,0]", RIGHT_TARGETS),
    WRONG("[0,1,2]", "['BRANCH_LEQ','LEAF']", "[0,0,0]", "[1,0,0]", "[2,0,0]", RIGHT_TARGETS),
    WRONG("[0,1,2]", RIGHT_MODES, "[-1,0,0]", "[1,0,0]", "[2,0,0]", RIGHT_TARGETS),
    WRONG("[0,1,2]", RIGHT_MODES, "[9223372036854775807,0,0]", "[1,0,0]", "[2,0,0]", RIGHT_TARGETS),
    WRONG("[0,1,2]", RIGHT_MODES, "[0,0]", "[1,0,0]", "[2,0,0]", RIGHT_TARGETS),
    WRONG("[0,1,2]", RIGHT_MODES, "[0,0,0]", "[1,0,0]", "[2,0,0]",
          "target_treeids=[0] target_nodeids=[3] target_ids=[0] target_weights=[1.0] n_targets=1"),
    WRONG("[0,1,2]", RIGHT_MODES, "[0,0,0]", "[1,0,0]", "[2,0,0]",
          "target_treeids=[0] target_nodeids=[1] target_ids=[1] target_weights=[1.0] n_targets=1"),
    WRONG("[0,1,2]", RIGHT_MODES, "[0,0,0]", "[1,0,0]", "[2,0,0]",
          "target_treeids=[0] target_nodeids=[1] target_ids=[-1] target_weights=[1.0] n_targets=9223372036854775807"),
    WRONG("[0,1,2]", RIGHT_MODES, "[0,0,0]", "[1,0,0]", "[2,0,0]",
          "target_treeids=[0] target_nodeids=[1] target_ids=[0] target_weights=[1.0,2.0] n_targets=1"),
    WRONG("[0,1,2]", RIGHT_MODES, "[0,0,0]", "[1,0,0]", "[2,0,0]",
          "target_treeids=[0] target_nodeids=[1] target_ids=[0] target_weights=[1.0] n_targets=0"),
    WRONG("[0,1,2]", RIGHT_MODES, "[0,0,0]", "[1,0,0]", "[2,0,0]", RIGHT_TARGETS " base_values=[1.0,2.0]"),
    WRONG("[0,1,2]", RIGHT_MODES, "[0,0,0]", "[1,0,0]", "[2,0,0]",
          RIGHT_TARGETS " nodes_values_as_tensor=f64[3]={1,2,3}"),
    WRONG("[0,1,2]", RIGHT_MODES, "[0,0,0]", "[1,0,0]", "[2,0,0]", RIGHT_TARGETS " post_transform='OTHER'"),
    /* the root may be anywhere, ids may be any */
    { "f32[1,1]={1}",
      "nodes_treeids=[7,7,7] nodes_nodeids=[-5,900,3] nodes_featureids=[0,0,0] "
      "nodes_modes=['LEAF','BRANCH_LT','LEAF'] nodes_values=[0.0,1.0,0.0] nodes_truenodeids=[0,-5,0] "
      "nodes_falsenodeids=[0,3,0] target_treeids=[7,7] target_nodeids=[-5,3] target_ids=[1,0] target_weights=[1.0,2.0] "
      "n_targets=2",
      "f32[1,2]={2,0}" },
    { "f32[2,1]", NODES TARGETS "n_targets=1", .refused = TRUE, .code = HN_ERROR_SHAPE },
    { "f32[2,1,2]", NODES TARGETS "n_targets=1", .refused = TRUE, .code = HN_ERROR_SHAPE },
    /* too much memory for scores */
    { "f32[1,2]", NODES TARGETS "n_targets=4611686018427387904", .refused = TRUE, .code = HN_ERROR_SHAPE },
};

HN_CASES(treeensembleregressor, "TreeEnsembleRegressor", treeensembleregressor);

static const HnCase treeensembleclassifier[] = {
    /* one score: signed, or a probability */
    { ROWS,
      NODES "class_treeids=[0,0,0,1] class_nodeids=[2,3,4,0] class_ids=[0,0,0,0] class_weights=[-2.0,2.0,3.0,0.5] "
            "classlabels_strings=['no','yes'] post_transform='LOGISTIC'",
      "string[4]={'no','yes','yes','yes'} f32[4,2]" },
    { ROWS,
      NODES "class_treeids=[0,0,0,1] class_nodeids=[2,3,4,0] class_ids=[0,0,0,0] class_weights=[0.125,0.25,0.5,0.25] "
            "classlabels_int64s=[5,7]",
      "i64[4]={5,5,7,7} f32[4,2]={0.625,0.375,0.5,0.5,0.25,0.75,0.25,0.75}" },
    /* three classes, of which the last has no weight */
    { ROWS,
      NODES "class_treeids=[0,0,0,1] class_nodeids=[2,3,4,0] class_ids=[0,1,1,0] class_weights=[-2.0,2.0,3.0,-1.0] "
            "classlabels_int64s=[5,6,7]",
      "i64[4]={5,6,6,6} f32[4,3]={-3,0,0,-1,2,0,-1,3,0,-1,3,0}" },
    { ROWS,
      NODES "class_treeids=[0,0,0,1] class_nodeids=[2,3,4,0] class_ids=[0,1,1,0] class_weights=[-2.0,2.0,3.0,-1.0] "
            "classlabels_int64s=[5,6,7] base_values=[0.0,0.0,9.0]",
      "i64[4]={7,7,7,7} f32[4,3]={-3,0,9,-1,2,9,-1,3,9,-1,3,9}" },
    { ROWS,
      NODES "class_treeids=[0,0,0,1] class_nodeids=[2,3,4,0] class_ids=[0,1,1,0] class_weights=[-2.0,2.0,3.0,-1.0] "
            "classlabels_int64s=[5,6,7] post_transform='SOFTMAX_ZERO'",
      "i64[4]={5,6,6,6} f32[4,3]" },
    { ROWS,
      NODES "class_treeids=[0,0,0,1] class_nodeids=[2,3,4,0] class_ids=[0,1,1,2] class_weights=[0.25,0.5,0.75,0.125] "
            "classlabels_int64s=[5,6,7] post_transform='PROBIT'",
      "i64[4]={5,6,6,6} f32[4,3]" },
    { ROWS,
      NODES "class_treeids=[0,0,0,1] class_nodeids=[2,3,4,0] class_ids=[0,0,0,0] class_weights=[0.125,0.25,0.5,0.25] "
            "classlabels_int64s=[5,7] post_transform='PROBIT'",
      .n_out = 2 },
    { ROWS,
      NODES "class_treeids=[0,0,0,1] class_nodeids=[2,3,4,0] class_ids=[0,1,1,0] class_weights=[-2.0,2.0,3.0,-1.0] "
            "classlabels_int64s=[5,6] base_values=[0.5,-0.25] post_transform='LOGISTIC'",
      .n_out = 2 },
    { ROWS,
      NODES "class_treeids=[0,0,0,1] class_nodeids=[2,3,4,0] class_ids=[0,0,0,0] class_weights=[-2.0,2.0,3.0,0.5] "
            "classlabels_int64s=[5,7] post_transform='LOGISTIC' base_values=[-2.75]",
      .n_out = 2 },
    { ROWS, NODES "class_treeids=[0] class_nodeids=[2] class_ids=[0] class_weights=[-2.0]", .n_out = 2, .refused = TRUE,
      .code = HN_ERROR_ATTRIBUTE },
    { ROWS,
      NODES "class_treeids=[0,0,0,1] class_nodeids=[2,3,4,0] class_ids=[0,0,0,0] class_weights=[-2.0,2.0,3.0,0.5] "
            "classlabels_int64s=[5,7]",
      "i64[4]={5,7,7,7} f32[4,2]={1.5,-1.5,-2.5,2.5,-3.5,3.5,-3.5,3.5}" },
};
HN_CASES(treeensembleclassifier, "TreeEnsembleClassifier", treeensembleclassifier);

#define V5(roots, yes, modes)                                                                                         \
    "n_targets=1 tree_roots=" roots " nodes_modes=" modes " nodes_featureids=[0] nodes_splits=f32[1]={0} "            \
    "nodes_truenodeids=" yes " nodes_trueleafs=[1] nodes_falsenodeids=[1] nodes_falseleafs=[1] leaf_targetids=[0,0] " \
    "leaf_weights=f32[2]={1,-1}"

static const HnCase treeensemble[] = {
    { "f64[3,2]={1.2,3.4,-0.12,1.66,4.14,1.77}",
      "n_targets=2 aggregate_function=1 post_transform=0 tree_roots=[0] "
      "nodes_modes=u8[3]={0,0,0} nodes_featureids=[0,0,0] nodes_splits=f64[3]={3.14,1.2,4.2} nodes_truenodeids=[1,0,1] "
      "nodes_trueleafs=[0,1,1] nodes_falsenodeids=[2,2,3] nodes_falseleafs=[0,1,1] leaf_targetids=[0,1,0,1] "
      "leaf_weights=f64[4]={5.23,12.12,-12.23,7.21}",
      "f64[3,2]={5.23,0,5.23,0,0,12.12}" },
    { "f32[5,1]={1,2,3,4,nan}",
      "n_targets=1 tree_roots=[0] nodes_modes=u8[1]={6} nodes_featureids=[0] nodes_splits=f32[1]={0} "
      "nodes_truenodeids=[0] nodes_trueleafs=[1] nodes_falsenodeids=[1] nodes_falseleafs=[1] leaf_targetids=[0,0] "
      "leaf_weights=f32[2]={1,-1} membership_values=f32[4]={2,4,4.5,nan}",
      "f32[5,1]={-1,1,-1,1,-1}" },
    { "f32[1,1]", V5("[0]", "[2]", "u8[1]={0}"), .refused = TRUE, .code = HN_ERROR_ATTRIBUTE },
    { "f32[1,1]", V5("[1]", "[0]", "u8[1]={0}"), .refused = TRUE, .code = HN_ERROR_ATTRIBUTE },
    { "f32[1,1]", V5("[0]", "[0]", "u8[1]={7}"), .refused = TRUE, .code = HN_ERROR_ATTRIBUTE },
    { "f32[1,1]", V5("[0]", "[0]", "u8[2]={0,0}"), .refused = TRUE, .code = HN_ERROR_ATTRIBUTE },
    { "f32[1,1]",
      "n_targets=1 tree_roots=[0] nodes_modes=u8[1]={0} nodes_featureids=[0] nodes_splits=f32[1]={0} "
      "nodes_truenodeids=[0] nodes_trueleafs=[0] nodes_falsenodeids=[1] nodes_falseleafs=[1] leaf_targetids=[0,0] "
      "leaf_weights=f32[2]={1,-1}",
      .refused = TRUE, .code = HN_ERROR_ATTRIBUTE }, /* leads to itself */
};
HN_CASES(treeensemble, "TreeEnsemble", treeensemble);
