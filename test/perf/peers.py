#!/usr/bin/env python3
"""hone beside ONNX Runtime and OpenVINO: the same models, the same data, one run.

usage: peers.py [--hone DIR] [--threads LIST] [--seconds S] [--rounds R] [--streams N] [--json FILE] MODEL_DIR...

A MODEL_DIR holds model.onnx and test_data_set_0/input_K.pb. Each engine runs in a process of its own, one after the
other (A B C A B C ...), so that a drift of the machine meets all alike; a figure is the lowest of the rounds' medians.
  latency   ms per run at each number of threads, and the ratio to the better peer
  streams   samples/s with N instances at once (--streams)
  ready     ms from the file to the first possible run
  peak      MB of resident memory of the whole process
"""
import argparse
import json
import math
import os
import resource
import statistics
import subprocess
import sys
import threading
import time

ENGINES = ("ort", "openvino")


# --- inside a child: one engine, one model -------------------------------------------------------------------------


def load_inputs(model, folder):
    import numpy
    import onnx
    from onnx import numpy_helper

    graph = onnx.load(model, load_external_data=False).graph
    known = {t.name for t in graph.initializer}
    feeds = {}
    for k, name in enumerate(i.name for i in graph.input if i.name not in known):
        path = os.path.join(folder, f"input_{k}.pb")
        if os.path.exists(path):
            t = onnx.TensorProto()
            with open(path, "rb") as f:
                t.ParseFromString(f.read())
            feeds[name] = numpy.array(numpy_helper.to_array(t), order="C")
    return feeds


def make_ort(model, feeds, threads):
    import onnxruntime as ort

    ort.set_default_logger_severity(3)
    o = ort.SessionOptions()
    o.intra_op_num_threads = threads

    def new():
        s = ort.InferenceSession(model, o, providers=["CPUExecutionProvider"])
        return lambda: s.run(None, feeds)

    return new


def make_openvino(model, feeds, threads):
    import openvino as ov

    core = ov.Core()

    def new():
        m = core.read_model(model)
        if m.is_dynamic():
            m.reshape({k: list(v.shape) for k, v in feeds.items()})
        hints = {"INFERENCE_NUM_THREADS": threads, "PERFORMANCE_HINT": "LATENCY", "INFERENCE_PRECISION_HINT": "f32"}
        r = core.compile_model(m, "CPU", hints).create_infer_request()
        for k, v in feeds.items():
            r.set_tensor(k, ov.Tensor(v, shared_memory=True))
        return lambda: r.infer()

    return new


def sample(call, seconds):
    for _ in range(3):
        call()
    times, end = [], time.perf_counter() + seconds
    while time.perf_counter() < end or len(times) < 5:
        t = time.perf_counter()
        call()
        times.append(time.perf_counter() - t)
    return statistics.median(times) * 1e3


def streams_of(new, n, seconds):
    """Runs per second of n instances, each in a thread (run() of both peers lets go of Python's lock)."""
    calls = [new() for _ in range(n)]
    for c in calls:
        c()
    counts, end = [0] * n, time.perf_counter() + seconds

    def work(i):
        while time.perf_counter() < end:
            calls[i]()
            counts[i] += 1

    start = time.perf_counter()
    workers = [threading.Thread(target=work, args=(i,)) for i in range(n)]
    for w in workers:
        w.start()
    for w in workers:
        w.join()
    return sum(counts) / (time.perf_counter() - start)


def openvino_streams(model, feeds, n, seconds):
    """The same by OpenVINO's own means: a model compiled for n streams, and a queue of n requests."""
    import openvino as ov

    core = ov.Core()
    m = core.read_model(model)
    if m.is_dynamic():
        m.reshape({k: list(v.shape) for k, v in feeds.items()})
    hints = {"PERFORMANCE_HINT": "THROUGHPUT", "NUM_STREAMS": n, "INFERENCE_NUM_THREADS": n,
             "INFERENCE_PRECISION_HINT": "f32"}
    queue = ov.AsyncInferQueue(core.compile_model(m, "CPU", hints), n)
    for _ in range(2 * n):
        queue.start_async(feeds, share_inputs=True)
    queue.wait_all()
    count, start = 0, time.perf_counter()
    while time.perf_counter() < start + seconds:
        queue.start_async(feeds, share_inputs=True)
        count += 1
    queue.wait_all()
    return count / (time.perf_counter() - start)


def child(engine, model, data, threads, seconds, streams):
    feeds = load_inputs(model, data)
    if engine == "openvino" and streams:
        print(json.dumps({"runs_per_s": openvino_streams(model, feeds, streams, seconds)}))
        return
    new = {"ort": make_ort, "openvino": make_openvino}[engine](model, feeds, 1 if streams else threads)
    start = time.perf_counter()
    call = new()
    ready = (time.perf_counter() - start) * 1e3
    out = {"ready_ms": ready}
    if streams:
        out["runs_per_s"] = streams_of(new, streams, seconds)
    else:
        out["ms"] = sample(call, seconds)
        out["peak_mb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps(out))


# --- the comparison ------------------------------------------------------------------------------------------------


def run(command):
    p = subprocess.run(command, capture_output=True, text=True)
    if p.returncode != 0:
        raise RuntimeError((p.stderr.strip().splitlines() or [f"exit status {p.returncode}"])[-1][:100])
    return json.loads(p.stdout)


def measure(engine, a, model, data, threads, streams):
    if engine != "hone":
        command = [sys.executable, __file__, "--child", engine, model, data, str(threads), str(a.seconds), str(streams)]
        return run(command)
    command = [os.path.join(a.hone, "hone-bench"), model, "--data", data, "--time", f"{a.seconds}s", "--json"]
    command += ["--threads", str(streams or threads)]
    command += ["--hint", "throughput", "--streams", str(streams)] if streams else []
    r = run(command)["runs"][0]
    p = r["phases_ms"]
    return {
        "ready_ms": p["read"] + p["parse"] + p["optimize"] + p["prepare"],
        "ms": r["latency_ms"]["p50"],
        "runs_per_s": r["throughput"]["batches_per_s"],
        "peak_mb": r["memory_bytes"]["peak_rss"] / 1048576,
    }


def keep_best(best, now):
    for key, value in now.items():
        better = max if key == "runs_per_s" else min
        best[key] = better(best[key], value) if key in best else value


def compare(a, folder, threads, streams=0):
    model, data = os.path.join(folder, "model.onnx"), os.path.join(folder, "test_data_set_0")
    best, errors = {}, {}
    for _ in range(a.rounds):
        for engine in ("hone",) + ENGINES:
            if engine in errors:
                continue
            try:
                keep_best(best.setdefault(engine, {}), measure(engine, a, model, data, threads, streams))
            except RuntimeError as e:
                errors[engine] = str(e)
                best.pop(engine, None)
    return {"model": os.path.basename(os.path.abspath(folder)), "threads": threads, "streams": streams, "best": best,
            "errors": errors}


def ratio(row, key, peers=ENGINES):
    """hone to the better peer; below 1 hone is faster, leaner or sooner."""
    theirs = [row["best"][e][key] for e in peers if key in row["best"].get(e, {})]
    ours = row["best"].get("hone", {}).get(key)
    if not theirs or not ours:
        return None
    return max(theirs) / ours if key == "runs_per_s" else ours / min(theirs)


def geomean(values):
    values = [v for v in values if v]
    return math.exp(sum(map(math.log, values)) / len(values)) if values else None


def table(rows, key, title, peers=ENGINES):
    print(f"\n{title}")
    print(f"{'model':28s}{'hone':>12s}" + "".join(f"{e:>12s}" for e in peers) + f"{'ratio':>8s}")
    for row in rows:
        cells = [row["best"].get(e, {}).get(key) for e in ("hone",) + tuple(peers)]
        text = "".join(f"{c:12.3f}" if c is not None else f"{'-':>12s}" for c in cells)
        r = ratio(row, key, peers)
        why = "; ".join(f"{e}: {m}" for e, m in row["errors"].items() if e in ("hone",) + tuple(peers))
        print(f"{row['model']:28s}{text}" + (f"{r:8.2f}" if r else f"{'-':>8s}") + (f"  ({why})" if why else ""))
    ratios = [ratio(row, key, peers) for row in rows]
    g = geomean(ratios)
    if g:
        worst = max(r for r in ratios if r)
        print(f"{'geometric mean of ratios':{28 + 12 * (1 + len(peers))}s}{g:8.2f}  (worst {worst:.2f})", flush=True)


def main():
    if sys.argv[1:2] == ["--child"]:
        engine, model, data, threads, seconds, streams = sys.argv[2:]
        child(engine, model, data, int(threads), float(seconds), int(streams))
        return 0
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--hone", default="build/tools", help="folder of the tools")
    p.add_argument("--threads", default="1,2")
    p.add_argument("--seconds", type=float, default=1.0)
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--streams", type=int, default=0)
    p.add_argument("--json")
    p.add_argument("folders", nargs="+")
    a = p.parse_args()
    all_rows = []
    for threads in map(int, a.threads.split(",")):
        rows = [compare(a, f, threads) for f in a.folders]
        all_rows += rows
        table(rows, "ms", f"latency, ms per run, {threads} thread{'s' if threads > 1 else ''}")
        table(rows, "ready_ms", "file to ready, ms", ("ort",))
        table(rows, "peak_mb", "peak resident memory of the process, MB", ("ort",))
    if a.streams:
        rows = [compare(a, f, a.streams, a.streams) for f in a.folders]
        all_rows += rows
        table(rows, "runs_per_s", f"runs per second, {a.streams} streams (ratio: below 1 hone does more)")
    if a.json:
        with open(a.json, "w") as f:
            json.dump(all_rows, f, indent=1)
    return 0


if __name__ == "__main__":
    sys.exit(main())
