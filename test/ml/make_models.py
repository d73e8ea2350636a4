#!/usr/bin/env python3
"""The models beside this file, and inputs.npz: small ones of each kind that scikit-learn, XGBoost and LightGBM make.

usage: make_models.py [FOLDER]

By hand, in a Python that has scikit-learn 1.9, skl2onnx 1.20, xgboost-cpu 3.2, lightgbm 4.7 and onnxmltools 1.16; the files
are kept. A model's input is called as its samples are in inputs.npz.
"""
import os
import sys
import warnings

import lightgbm as lgb
import numpy as np
import xgboost as xgb
from onnxmltools.convert import convert_lightgbm, convert_xgboost
from onnxmltools.convert.common.data_types import FloatTensorType as MlFloat
from skl2onnx import convert_sklearn
from skl2onnx.common.data_types import DoubleTensorType, FloatTensorType, Int64TensorType, StringTensorType
from sklearn import (decomposition, discriminant_analysis, ensemble, feature_selection, impute, linear_model, naive_bayes,
                     neighbors, neural_network, preprocessing, svm, tree)
from sklearn.cluster import KMeans
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.pipeline import make_pipeline

warnings.filterwarnings("ignore")
FOLDER = sys.argv[1] if len(sys.argv) > 1 else os.path.dirname(os.path.abspath(__file__))
rng = np.random.RandomState(0)
X = rng.randn(120, 5).astype(np.float32)
HOLES = np.where(rng.rand(*X.shape) < 0.1, np.nan, X).astype(np.float32)
INTS = rng.randint(0, 4, (120, 3)).astype(np.int64)
WORDS = rng.choice(["red", "green", "blue"], (120, 1))
KINDS = X.copy()
KINDS[:, 0] = rng.randint(0, 12, 120)
TWO = (X[:, 0] + X[:, 1] * X[:, 2] > 0).astype(int)
THREE = TWO + (X[:, 3] > 0.3)
NUMBER = (X[:, 0] * X[:, 1] + X[:, 2]).astype(np.float32)
NAMES = np.array(["no", "maybe", "yes"])
INPUTS = {"float": X, "double": X.astype(np.float64), "holes": HOLES, "ints": INTS, "words": WORDS, "kinds": KINDS}
TYPES = {"double": DoubleTensorType, "ints": Int64TensorType, "words": StringTensorType}


def save(name, model):
    with open(os.path.join(FOLDER, name + ".onnx"), "wb") as f:
        f.write(model.SerializeToString())


def sk(name, model, y, key="float", zipmap=False):
    x = INPUTS[key]
    model.fit(x, y)
    options = {id(model): {"zipmap": zipmap}} if hasattr(model, "predict_proba") else None
    types = [(key, TYPES.get(key, FloatTensorType)([None, x.shape[1]]))]
    try:
        save(name, convert_sklearn(model, initial_types=types, options=options, target_opset={"": 18, "ai.onnx.ml": 3}))
    except NameError:  # no scores, no option
        save(name, convert_sklearn(model, initial_types=types, target_opset={"": 18, "ai.onnx.ml": 3}))


def boosted(name, convert, model, y, key="float", **options):
    x = INPUTS[key]
    model.fit(x, y)
    save(name, convert(model, initial_types=[(key, MlFloat([None, x.shape[1]]))], target_opset=15, **options))


def main():
    e, lm, small = ensemble, linear_model, {"n_estimators": 5, "max_depth": 3, "random_state": 0}
    sk("tree", tree.DecisionTreeClassifier(max_depth=4), THREE)
    sk("tree_regressor", tree.DecisionTreeRegressor(max_depth=4), NUMBER)
    sk("forest", e.RandomForestClassifier(**small), THREE)
    sk("forest_two", e.RandomForestClassifier(**small), TWO)
    sk("forest_names", e.RandomForestClassifier(**small), NAMES[THREE])
    sk("forest_map", e.RandomForestClassifier(**small), THREE, zipmap=True)
    sk("forest_names_map", e.RandomForestClassifier(**small), NAMES[THREE], zipmap=True)
    sk("forest_regressor", e.RandomForestRegressor(**small), NUMBER)
    sk("forest_double", e.RandomForestClassifier(**small), TWO, "double")
    sk("extra_trees", e.ExtraTreesClassifier(**small), THREE)
    sk("boosting", e.GradientBoostingClassifier(**small), THREE)
    sk("boosting_two", e.GradientBoostingClassifier(**small), TWO)
    sk("boosting_regressor", e.GradientBoostingRegressor(**small), NUMBER)
    sk("isolation", e.IsolationForest(n_estimators=5, random_state=0), TWO)
    sk("adaboost", e.AdaBoostClassifier(n_estimators=3), THREE)
    sk("bagging", e.BaggingClassifier(n_estimators=3, random_state=0), TWO)
    sk("svc", svm.SVC(C=0.1), THREE)
    sk("svc_names", svm.SVC(C=0.1), NAMES[TWO])
    sk("svc_probability", svm.SVC(C=0.1, probability=True, kernel="poly"), THREE)
    sk("nusvc", svm.NuSVC(kernel="sigmoid", nu=0.1), TWO)
    sk("svr", svm.SVR(), NUMBER)
    sk("nusvr", svm.NuSVR(kernel="linear", nu=0.1), NUMBER)
    sk("one_class", svm.OneClassSVM(nu=0.1), TWO)
    sk("linear_svc", svm.LinearSVC(), THREE)
    sk("logistic", lm.LogisticRegression(), THREE)
    sk("logistic_two", lm.LogisticRegression(), TWO)
    sk("logistic_names_map", lm.LogisticRegression(), NAMES[THREE], zipmap=True)
    sk("sgd", lm.SGDClassifier(loss="log_loss", random_state=0), TWO)
    sk("ridge", lm.Ridge(), NUMBER)
    sk("ridge_classifier", lm.RidgeClassifier(), THREE)
    sk("mlp", neural_network.MLPClassifier((6,), max_iter=100, random_state=0), THREE)
    sk("naive_bayes", naive_bayes.GaussianNB(), THREE)
    sk("bernoulli", naive_bayes.BernoulliNB(), TWO)
    sk("neighbours", neighbors.KNeighborsClassifier(3), THREE)
    sk("discriminant", discriminant_analysis.LinearDiscriminantAnalysis(), THREE)
    sk("process", GaussianProcessRegressor(alpha=0.5), NUMBER)
    sk("means", KMeans(3, n_init=2, random_state=0), TWO)
    p, log = preprocessing, lm.LogisticRegression
    sk("pipe_impute", make_pipeline(impute.SimpleImputer(), p.StandardScaler(), log()), TWO, "holes")
    sk("pipe_normalize_l1", make_pipeline(p.Normalizer("l1"), log()), TWO)
    sk("pipe_normalize_l2", make_pipeline(p.Normalizer("l2"), log()), TWO)
    sk("pipe_normalize_max", make_pipeline(p.Normalizer("max"), log()), TWO)
    sk("pipe_minmax", make_pipeline(p.MinMaxScaler(), log()), TWO)
    sk("pipe_binarize", make_pipeline(p.Binarizer(threshold=0.2), log()), TWO)
    sk("pipe_pca", make_pipeline(decomposition.PCA(3), log()), TWO)
    sk("pipe_polynomial", make_pipeline(p.PolynomialFeatures(2), log(max_iter=300)), TWO)
    sk("pipe_bins", make_pipeline(p.KBinsDiscretizer(3, encode="onehot-dense"), log()), TWO)
    sk("pipe_select", make_pipeline(feature_selection.SelectKBest(k=3), log()), TWO)
    sk("pipe_onehot", make_pipeline(p.OneHotEncoder(handle_unknown="ignore", sparse_output=False), log()),
       (INTS.sum(1) > 4).astype(int), "ints")
    sk("pipe_ordinal", make_pipeline(p.OrdinalEncoder(), e.RandomForestClassifier(**small)), (INTS.sum(1) > 4).astype(int), "ints")
    sk("pipe_words", make_pipeline(p.OneHotEncoder(handle_unknown="ignore", sparse_output=False), log()),
       (WORDS[:, 0] == "red").astype(int), "words")
    few = {"n_estimators": 5, "max_depth": 3}
    boosted("xgboost", convert_xgboost, xgb.XGBClassifier(**few), THREE)
    boosted("xgboost_two", convert_xgboost, xgb.XGBClassifier(**few), TWO)
    boosted("xgboost_holes", convert_xgboost, xgb.XGBClassifier(**few), TWO, "holes")
    boosted("xgboost_regressor", convert_xgboost, xgb.XGBRegressor(**few), NUMBER)
    quiet = {"verbose": -1, "min_child_samples": 5, **few}
    boosted("lightgbm", convert_lightgbm, lgb.LGBMClassifier(**quiet), THREE, zipmap=False)
    boosted("lightgbm_map", convert_lightgbm, lgb.LGBMClassifier(**quiet), THREE)
    boosted("lightgbm_holes", convert_lightgbm, lgb.LGBMClassifier(**quiet), TWO, "holes", zipmap=False)
    boosted("lightgbm_regressor", convert_lightgbm, lgb.LGBMRegressor(**quiet), NUMBER)
    kinds = lgb.LGBMClassifier(**quiet, categorical_feature=[0], min_data_per_group=1, cat_smooth=1)
    boosted("lightgbm_kinds", convert_lightgbm, kinds, (KINDS[:, 0] % 3 == 0).astype(int), "kinds", zipmap=False)
    np.savez_compressed(os.path.join(FOLDER, "inputs.npz"), **{k: v[:40] for k, v in INPUTS.items()})


if __name__ == "__main__":
    main()
