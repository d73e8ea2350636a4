#!/usr/bin/env python3
"""Write conformance cases of ONNX as folders a command-line tool can read.

usage: make_cases.py OUT [LIST...]          (without LIST: dev.txt, more.txt and old.txt beside this file)
       make_cases.py --select more|old      prints a LIST anew (see select() for what is in it)

A LIST has one case id a line, '#' starts a comment. Ids and where their cases come from:
  node/test_x                              made by the installed onnx (its generators, run here)
  simple/..., pytorch-*/...                stored in the installed onnx, a few simple ones made by it
  light/test_x                             models stored in the installed onnx, the input is a ramp
  1.6.0/node/test_x, 1.10.2/simple/...     stored in an old release (--old DIR/onnx-VERSION/KIND/test_x)
Made for each: OUT/ID/model.onnx, OUT/ID/data.json {rtol, atol}, OUT/ID/test_data_set_N/{input,output}_K.pb,
and one line in OUT/cases.jsonl {id, op}, op being the operator that the case is about.
"""
import argparse
import hashlib
import json
import os
import re
import shutil
import sys
import warnings

warnings.filterwarnings("ignore")  # numpy on the generators' deliberate overflows

import numpy as np
import onnx
import onnx.backend.test
from onnx import TensorProto, numpy_helper
from onnx.backend.test.case.model import collect_testcases
from onnx.backend.test.loader import load_model_tests

HERE = os.path.dirname(os.path.abspath(__file__))
DATA = os.path.join(os.path.dirname(onnx.backend.test.__file__), "data")
STORED = ("simple", "pytorch-converted", "pytorch-operator")
OLD = ("1.6.0", "1.10.2")
TYPES = {getattr(TensorProto, t) for t in
         "DOUBLE FLOAT FLOAT16 BFLOAT16 INT8 UINT8 INT16 UINT16 INT32 UINT32 INT64 UINT64 BOOL".split()}


class Case:
    """data(i) -> per data set two lists of serialized values or None; a folder's cases are read only when asked"""

    def __init__(self, name, model, rtol, atol, sets=None, folder=None):
        self.name, self.rtol, self.atol, self.folder = name, rtol, atol, folder
        self._model, self._sets = model, sets

    @property
    def model_bytes(self):
        if self._model is None:
            with open(os.path.join(self.folder, "model.onnx"), "rb") as f:
                self._model = f.read()
        return self._model

    def parsed(self):
        m = onnx.ModelProto()
        m.ParseFromString(self.model_bytes)
        return m

    def sets(self):
        if self._sets is not None:
            return self._sets()
        sets = []
        for s in sorted(d for d in os.listdir(self.folder) if d.startswith("test_data_set_")):
            folder = os.path.join(self.folder, s)
            values = {}
            for f in os.listdir(folder):
                if f.endswith(".pb"):
                    with open(os.path.join(folder, f), "rb") as h:
                        values[f] = h.read()
            sets.append(values)
        return sets


def serialized(value, name, proto_type):
    """a value as the generators hand it over -> bytes of a .pb file (None: an optional input that is absent)"""
    kind = proto_type.WhichOneof("value")
    if kind == "optional_type":
        return numpy_helper.from_optional(value, name).SerializeToString(deterministic=True)
    if value is None:
        return None
    if isinstance(value, TensorProto):
        t = TensorProto()
        t.CopyFrom(value)
        t.name = name
    elif kind == "sequence_type" or isinstance(value, (list, tuple)):
        t = numpy_helper.from_list(value, name)
    else:
        t = numpy_helper.from_array(np.asarray(value), name)
    return t.SerializeToString(deterministic=True)


def generated_cases(cases):
    for c in cases:
        if c.model is None:
            continue

        def sets(c=c):
            made = []
            for ins, outs in c.data_sets:
                files = {}
                g = c.model.graph
                for word, values, infos in (("input", ins, g.input), ("output", outs, g.output)):
                    for k, (v, info) in enumerate(zip(values, infos)):
                        b = serialized(v, info.name, info.type)
                        if b is not None:
                            files[f"{word}_{k}.pb"] = b
                made.append(files)
            return made
        yield Case(c.name, c.model.SerializeToString(), c.rtol, c.atol, sets)


def light_cases():
    """the light models: data/real names them and their tolerance; see onnx's runner for the ramp"""
    for c in load_model_tests(kind="real"):
        stem = os.path.join(DATA, "light", os.path.basename(c.url or "").removesuffix(".onnx"))
        if not c.url or not os.path.exists(stem + ".onnx"):
            continue
        with open(stem + ".onnx", "rb") as f:
            b = f.read()

        def sets(b=b, stem=stem):
            g = onnx.ModelProto.FromString(b).graph
            weights = {i.name for i in g.initializer}
            files = {}
            for k, v in enumerate(v for v in g.input if v.name not in weights):
                shape = [d.dim_value or 1 for d in v.type.tensor_type.shape.dim]
                n = int(np.prod(shape))
                ramp = (np.arange(n).reshape(shape) / n).astype(np.float32)
                files[f"input_{k}.pb"] = numpy_helper.from_array(ramp, v.name).SerializeToString(deterministic=True)
            for k in range(len(g.output)):
                with open(f"{stem}_output_{k}.pb", "rb") as f:
                    files[f"output_{k}.pb"] = f.read()
            return [files]
        yield Case(c.name, b, c.rtol, c.atol, sets)


def folder_cases(root):
    for name in sorted(os.listdir(root)):
        folder = os.path.join(root, name)
        if not os.path.exists(os.path.join(folder, "model.onnx")):
            continue
        tol = {}
        if os.path.exists(os.path.join(folder, "data.json")):
            with open(os.path.join(folder, "data.json")) as f:
                tol = json.load(f)
        yield Case(name, None, tol.get("rtol", 1e-3), tol.get("atol", 1e-7), folder=folder)


def source(prefix, old):
    """the cases whose ids start with prefix + '/', by name"""
    if prefix == "node":
        cases = list(generated_cases(load_model_tests(kind="node")))
    elif prefix == "simple":
        cases = list(generated_cases(collect_testcases())) + list(folder_cases(os.path.join(DATA, prefix)))
    elif prefix == "light":
        cases = light_cases()
    elif prefix in STORED:
        cases = folder_cases(os.path.join(DATA, prefix))
    else:
        version, kind = prefix.split("/")
        cases = folder_cases(os.path.join(old, "onnx-" + version, kind))
    return {c.name: c for c in cases}


def prefixes_of(version, old):
    root = os.path.join(old, "onnx-" + version)
    return [f"{version}/{kind}" for kind in ("node",) + STORED if os.path.isdir(os.path.join(root, kind))]


def about(case, siblings):
    """the operator a case is about: that of its one node; an expanded case is about what was expanded"""
    base = siblings.get(re.sub(r"_expanded(_ver\d+|_function)?$", "", case.name))
    for c in (base, case):
        if c is not None:
            nodes = [n for n in c.parsed().graph.node if n.op_type != "Constant"]
            if len(nodes) == 1:
                return nodes[0].op_type
    return "(whole model)"


def graphs_of(nodes):
    for n in nodes:
        yield n
        for a in n.attribute:
            for g in ([a.g] if a.HasField("g") else []) + list(a.graphs):
                yield from graphs_of(g.node)


def uses(model):
    """-> ({(domain, operator)}, {tensor data types}, only tensors?) of a model, sub-graphs and functions included"""
    ops, types, tensors = set(), set(), True
    local = {(f.domain, f.name) for f in model.functions}
    for nodes in [model.graph.node] + [f.node for f in model.functions]:
        for n in graphs_of(nodes):
            if (n.domain, n.op_type) not in local:
                ops.add(("" if n.domain == "ai.onnx" else n.domain, n.op_type))
            for a in n.attribute:
                types |= {t.data_type for t in ([a.t] if a.HasField("t") else []) + list(a.tensors)}
                if n.op_type in ("Cast", "Constant", "EyeLike") and a.name == "to":
                    types.add(a.i)
                if a.HasField("sparse_tensor") or a.name.startswith("value_string"):
                    tensors = False
    types |= {t.data_type for t in model.graph.initializer}
    for v in list(model.graph.input) + list(model.graph.output) + list(model.graph.value_info):
        if v.type.WhichOneof("value") != "tensor_type":
            tensors = False
        types.add(v.type.tensor_type.elem_type)
    return ops, types, tensors


def wanted_ids(path):
    with open(path) as f:
        return [w for w in (line.split("#")[0].strip() for line in f) if w]


def select(which, old, dev):
    """more: every further case of the installed onnx that uses tensors of our types and operators of dev's only.
    old: those of the old releases for which that holds too and that are not the same, byte by byte, as another."""
    prefixes = ["node", "light", *STORED]
    cases = {p: source(p, old) for p in prefixes}
    named = set(dev)
    known = set()
    for i in dev:
        p, name = i.rsplit("/", 1)
        known |= uses(cases[p][name].parsed())[0]

    def fits(c):
        m = c.parsed()
        ops, types, tensors = uses(m)
        if not tensors or not ops <= known or not types <= TYPES | {TensorProto.UNDEFINED}:
            return False
        # some cases of 1.10.2 declare bfloat16 and store its bits as uint16
        outs = [v.type.tensor_type.elem_type for v in m.graph.output]
        stored = [[TensorProto.FromString(s[f"output_{k}.pb"]).data_type for k in range(len(outs))] for s in c.sets()]
        declared_ins = {v.type.tensor_type.elem_type for v in m.graph.input}
        ins = {TensorProto.FromString(b).data_type for s in c.sets() for f, b in s.items() if f.startswith("input")}
        return all(s == outs for s in stored) and ins <= declared_ins

    def print_of(c):
        h = hashlib.sha256()
        m = c.parsed()
        m.producer_version = ""
        h.update(m.SerializeToString(deterministic=True))
        for s in c.sets():
            for f in sorted(s):
                t = TensorProto.FromString(s[f])
                a = numpy_helper.to_array(t)
                h.update(f"{f} {a.dtype} {a.shape}".encode() + a.tobytes())
        return h.hexdigest()

    chosen = [f"{p}/{n}" for p in prefixes for n in cases[p] if f"{p}/{n}" not in named and fits(cases[p][n])]
    if which == "more":
        return chosen
    seen = {print_of(cases[p][n]) for p, n in (i.rsplit("/", 1) for i in chosen + dev)}
    chosen = []
    for version in reversed(OLD):
        for p in prefixes_of(version, old):
            for name, c in source(p, old).items():
                if fits(c) and (mark := print_of(c)) not in seen:
                    seen.add(mark)
                    chosen.append(f"{p}/{name}")
    return chosen


def write(case, folder):
    rtol = case.rtol
    if any(v.type.tensor_type.elem_type == TensorProto.BFLOAT16 for v in case.parsed().graph.output):
        rtol = max(rtol, 2.0**-6)  # two steps of bfloat16, as in onnx's own runner
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    with open(os.path.join(folder, "model.onnx"), "wb") as f:
        f.write(case.model_bytes)
    with open(os.path.join(folder, "data.json"), "w") as f:
        json.dump({"atol": case.atol, "rtol": rtol}, f)
    for k, files in enumerate(case.sets()):
        s = os.path.join(folder, f"test_data_set_{k}")
        os.mkdir(s)
        for name, b in files.items():
            with open(os.path.join(s, name), "wb") as f:
                f.write(b)


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("out", nargs="?")
    ap.add_argument("lists", nargs="*")
    ap.add_argument("--old", default=os.path.join(HERE, "../../.deps"), help="folder of onnx-1.6.0 and onnx-1.10.2")
    ap.add_argument("--select", choices=("more", "old"))
    a = ap.parse_args()
    if a.select:
        print("\n".join(sorted(select(a.select, a.old, wanted_ids(os.path.join(HERE, "dev.txt"))))))
        return 0
    if not a.out:
        ap.error("OUT is missing")
    lists = a.lists or [os.path.join(HERE, f) for f in ("dev.txt", "more.txt", "old.txt")]
    by_prefix = {}
    for path in lists:
        for i in wanted_ids(path):
            by_prefix.setdefault(i.rsplit("/", 1)[0], []).append(i)
    os.makedirs(a.out, exist_ok=True)
    lines, missing = [], []
    for prefix, ids in sorted(by_prefix.items()):
        try:
            cases = source(prefix, a.old)
        except FileNotFoundError:
            print(f"make_cases: left out, not on this machine: {len(ids)} cases of {prefix}", file=sys.stderr)
            continue
        for i in ids:
            c = cases.get(i.rsplit("/", 1)[1])
            if c is None:
                missing.append(i)
                continue
            write(c, os.path.join(a.out, i))
            lines.append(json.dumps({"id": i, "op": about(c, cases)}))
    with open(os.path.join(a.out, "cases.jsonl"), "w") as f:
        f.write("\n".join(lines) + "\n")
    for i in missing:
        print(f"make_cases: no such case: {i}", file=sys.stderr)
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
