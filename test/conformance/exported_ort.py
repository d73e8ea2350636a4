#!/usr/bin/env python3
"""What ONNX Runtime says of models that hone-export wrote; prints TAP.

usage: exported_ort.py CASES EXPORTED

CASES is what make_cases.py made, EXPORTED holds ID.onnx, written by exported.sh. Where ONNX Runtime loads the original, it
has to load what was written, and to compute the same on the first test set where it runs the original.
"""
import glob
import multiprocessing
import os
import sys


def feeds_of(model, folder):
    import onnx
    from onnx import numpy_helper

    graph = onnx.load(model).graph
    known = {t.name for t in graph.initializer}
    feeds = {}
    for k, i in enumerate(i for i in graph.input if i.name not in known):
        path = os.path.join(folder, f"input_{k}.pb")
        if not os.path.exists(path):
            continue
        with open(path, "rb") as f:
            data = f.read()
        if i.type.HasField("sequence_type"):
            feeds[i.name] = numpy_helper.to_list(onnx.SequenceProto.FromString(data))
        elif i.type.HasField("optional_type"):
            return None
        else:
            feeds[i.name] = numpy_helper.to_array(onnx.TensorProto.FromString(data))
    return feeds


def session(path):
    import onnxruntime as ort

    ort.set_default_logger_severity(4)
    o = ort.SessionOptions()
    o.intra_op_num_threads = 1
    return ort.InferenceSession(path, o, providers=["CPUExecutionProvider"])


def unequal(a, b):
    import numpy as np

    if isinstance(a, list):
        return len(a) != len(b) or any(unequal(x, y) for x, y in zip(a, b))
    a, b = np.asarray(a), np.asarray(b)
    if a.shape != b.shape or a.dtype != b.dtype:
        return True
    if a.dtype.kind != "f":
        return not np.array_equal(a, b)
    unit = 8 * np.finfo(a.dtype).eps if a.dtype == np.float16 else 1e-4
    x, y = a.astype(np.float64), b.astype(np.float64)
    scale = np.max(np.abs(y[np.isfinite(y)]), initial=0)
    return not np.allclose(x, y, rtol=1e-3 + unit, atol=unit * scale, equal_nan=True)


def judge(pair):
    """(result, why): "skip" where the original is no judge"""
    original, written = pair
    try:
        a = session(original)
    except Exception as e:
        return "skip", "ONNX Runtime does not load the original: " + str(e)[:120]
    try:
        b = session(written)
    except Exception as e:
        return "fail", "does not load: " + str(e)[:300]
    try:
        feeds = feeds_of(original, os.path.join(os.path.dirname(original), "test_data_set_0"))
        want = a.run(None, feeds)
    except Exception as e:
        return "pass", "loads; ONNX Runtime does not run the original: " + str(e)[:120]
    try:
        taken = {i.name for i in b.get_inputs()}
        got = b.run(None, {k: v for k, v in feeds.items() if k in taken})
    except Exception as e:
        return "fail", "does not run: " + str(e)[:300]
    for i, (x, y) in enumerate(zip(got, want)):
        if unequal(x, y):
            return "fail", f"output {i} differs"
    return "pass", ""


def main():
    if len(sys.argv) != 3:
        print(__doc__, file=sys.stderr)
        return 2
    cases, written = sys.argv[1:]
    pairs = []
    for path in sorted(glob.glob(os.path.join(written, "**", "*.onnx"), recursive=True)):
        pairs.append((os.path.join(cases, os.path.relpath(path, written)[:-5], "model.onnx"), path))
    print(f"1..{len(pairs)}")
    failed = 0
    with multiprocessing.Pool(len(os.sched_getaffinity(0)), maxtasksperchild=100) as pool:
        for n, ((original, _), (result, why)) in enumerate(zip(pairs, pool.imap(judge, pairs, 8)), 1):
            name, why = os.path.relpath(os.path.dirname(original), cases), " ".join(why.replace("#", "").split())
            failed += result == "fail"
            print(f"{'not ok' if result == 'fail' else 'ok'} {n} - {name}"
                  + (f" # SKIP {why}" if result == "skip" else f" # {why}" if why else ""), flush=True)
    return 1 if failed or not pairs else 0


if __name__ == "__main__":
    sys.exit(main())
