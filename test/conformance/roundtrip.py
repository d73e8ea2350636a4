#!/usr/bin/env python3
"""Read and write models with hone, and let ONNX and ONNX Runtime judge what was written; prints TAP.

usage: roundtrip.py COPY PATH...
       COPY: a program called as 'COPY IN OUT'; PATH: models, or folders to search for them

For each model: COPY succeeds; every field of the copy equals the original's (weights and external data compared as
values, everything else, unknown fields included, field by field); a copy of the copy has the same bytes; onnx.checker
and ONNX Runtime accept the copy where they accept the original.
The last line is 'N passed, M failed, K skipped'; the exit status is 0 when nothing failed, 1 otherwise, 2 on bad usage.
"""
import argparse
import concurrent.futures
import functools
import os
import struct
import subprocess
import sys
import tempfile

import onnx
import onnxruntime
from google.protobuf.unknown_fields import UnknownFieldSet
from onnx import numpy_helper
from onnx.external_data_helper import load_external_data_for_model

VALUES = {"raw_data", "float_data", "int32_data", "int64_data", "double_data", "uint64_data", "external_data",
          "data_location"}


def bits(v):
    """floats by their bits, so that NaN equals itself and -0 differs from 0"""
    return struct.pack("<d", v) if isinstance(v, float) else v


def unknown(m):
    return sorted((f.field_number, f.wire_type, str(f.data)) for f in UnknownFieldSet(m))


def difference(a, b, path=""):
    """the path of the first field in which two messages differ, or None"""
    if unknown(a) != unknown(b):
        return path + " (unknown fields)"
    skip = ()
    if isinstance(a, onnx.TensorProto) and a.data_type == b.data_type and a.data_type != onnx.TensorProto.STRING:
        skip = VALUES
        if list(a.dims) == list(b.dims) and a.data_type != onnx.TensorProto.UNDEFINED:
            try:
                if numpy_helper.to_array(a).tobytes() != numpy_helper.to_array(b).tobytes():
                    return path + " (values)"
            except Exception:  # a tensor that says more or less than its shape holds: then as it stands
                skip = ()
    for f in a.DESCRIPTOR.fields:
        if f.name in skip:
            continue
        here = f"{path}.{f.name}"
        x, y = getattr(a, f.name), getattr(b, f.name)
        repeated = f.is_repeated
        if not repeated and a.HasField(f.name) != b.HasField(f.name):
            return here + " (present in one only)"
        if repeated and len(x) != len(y):
            return f"{here} ({len(x)} and {len(y)} of them)"
        for k, (v, w) in enumerate(zip(x, y) if repeated else [(x, y)] if a.HasField(f.name) else []):
            at = f"{here}[{k}]" if repeated else here
            if f.message_type is not None:
                d = difference(v, w, at)
                if d:
                    return d
            elif bits(v) != bits(w):
                return at
    return None


def load(path):
    m = onnx.load(path, load_external_data=False)
    load_external_data_for_model(m, os.path.dirname(path))
    return m


def accepts(judge, path):
    """'' or why the judge refuses the model"""
    try:
        judge(path)
        return ""
    except Exception as e:
        return " ".join(str(e).split())[:200] or type(e).__name__


def runtime(path):
    o = onnxruntime.SessionOptions()
    o.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    o.intra_op_num_threads = 1
    o.log_severity_level = 4
    onnxruntime.InferenceSession(path, o, providers=["CPUExecutionProvider"])


def judge(copy, model):
    """'' or what is wrong with the copy"""
    with tempfile.TemporaryDirectory() as tmp:
        one, two = (os.path.join(tmp, d, "model.onnx") for d in "12")
        for a, b in ((model, one), (one, two)):
            os.mkdir(os.path.dirname(b))
            p = subprocess.run([copy, a, b], stdin=subprocess.DEVNULL, capture_output=True, timeout=120)
            if p.returncode:
                said = p.stderr.decode("utf-8", "replace").strip().splitlines()
                return f"copy ended with {p.returncode}: {said[-1] if said else ''}"
        for folder, _, files in os.walk(os.path.dirname(one)):
            for f in files:
                x = os.path.join(folder, f)
                y = os.path.join(os.path.dirname(two), os.path.relpath(x, os.path.dirname(one)))
                with open(x, "rb") as fx, open(y, "rb") as fy:
                    if fx.read() != fy.read():
                        return f"a copy of the copy has other bytes in {f}"
        d = difference(load(model), load(one))
        if d:
            return f"differs in {d.lstrip('.')}"
        for name, j in (("onnx.checker", onnx.checker.check_model), ("ONNX Runtime", runtime)):
            if not accepts(j, model) and (why := accepts(j, one)):
                return f"{name} refuses the copy: {why}"
    return ""


def models_of(paths):
    for p in paths:
        if os.path.isdir(p):
            for folder, folders, files in os.walk(p):
                folders.sort()
                yield from (os.path.join(folder, f) for f in sorted(files) if f.endswith(".onnx"))
        else:
            yield p


def safely(copy, model):
    try:
        return judge(copy, model)
    except Exception as e:
        return f"{type(e).__name__}: {e}"


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("copy")
    ap.add_argument("paths", nargs="+")
    ap.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    a = ap.parse_args()
    models = list(models_of(a.paths))
    if not models or not os.access(a.copy, os.X_OK):
        print("roundtrip: no models, or COPY is not a program", file=sys.stderr)
        return 2
    onnxruntime.set_default_logger_severity(4)
    failed = 0
    print(f"1..{len(models)}")
    with concurrent.futures.ProcessPoolExecutor(a.jobs) as pool:
        work = pool.map(functools.partial(safely, os.path.abspath(a.copy)), models, chunksize=4)
        for n, (m, why) in enumerate(zip(models, work), 1):
            failed += bool(why)
            name = os.path.dirname(m) if os.path.basename(m) == "model.onnx" else m
            why = " ".join(why.replace("#", "").split())
            print(f"not ok {n} - {name} # {why}" if why else f"ok {n} - {name}", flush=True)
    print(f"{len(models) - failed} passed, {failed} failed, 0 skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
