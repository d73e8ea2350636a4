"""The parts of a run of scripts/gpu: each measures something with hone's tools, or a peer, and puts it into the record."""
import concurrent.futures
import glob
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time

import judge

PERF = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
ROOT = os.path.dirname(os.path.dirname(PERF))
sys.path.insert(0, os.path.join(ROOT, "test", "onnx"))
BUILD = os.environ.get("HONE_BUILD", "build")
SAME_BITS_RUNS = 100
CHAINS = (64, 512)
LIBRARIES = {"HONE_CUBLASLT": "libcublasLt.so.1?", "HONE_CUPTI": "libcupti.so.1?"}
LIBRARY_OPERATORS = ("MatMul", "FusedMatMul", "Gemm")


class NotThere(Exception):
    """What a part needs is not on this machine."""


class Failed(Exception):
    """A tool that a part runs ended early."""


def find(*places):
    return next((p for p in (os.path.join(ROOT, p) for p in places) if os.path.exists(p)), None)


def last(text):
    return (text.strip().splitlines() or ["it said nothing"])[-1][:300]


def ended(name, p):
    """Why a program ended early."""
    if p.returncode < 0:
        return f"{name} ended by signal {-p.returncode}"
    return last(p.stderr) if p.stderr.strip() else f"{name} ended with status {p.returncode}"


class Run:
    """What all parts share: the device, the record, the time that is left."""

    def __init__(self, options, record, save):
        self.device, self.small, self.models, self.python = options.device, options.small, options.models, options.python
        self.record, self.save, self.end = record, save, time.monotonic() + 60 * options.minutes
        self.nets = options.nets or find("nets")
        self.room = tempfile.mkdtemp(prefix="hone-gpu-")
        self.peers = "cpu" if record["emulated"] else "cuda"
        self.told = None  # libraries(), once it was asked
        self.longest = 600  # seconds of a program of this part

    def left(self):
        return self.end - time.monotonic()

    def libraries(self):
        """NVIDIA's libraries that hone opens where it is told of them: in Python's packages, or in a toolkit."""
        if self.record["emulated"]:
            return {}
        p = self.run(self.python, "-c", "import nvidia; print(*nvidia.__path__, sep='\\n')", limit=60)
        found = {}
        for name, file in LIBRARIES.items():
            places = [os.path.join(d, "*", "lib") for d in p.stdout.splitlines()] + ["/usr/local/cuda/lib64", "/usr/local/cuda/extras/CUPTI/lib64"]
            there = [f for d in places for f in sorted(glob.glob(os.path.join(d, file)))]
            if there and name not in os.environ:
                found[name] = there[0]
        return found

    def program(self, name):
        path = find(f"bin/{name}", *(os.path.join(BUILD, folder, name) for folder in ("tools", "test")))
        if not path:
            raise NotThere(f"there is no {name}")
        return path

    def environment(self):
        if self.told is None:
            self.told = {}
            self.told = self.libraries()
        env = dict(os.environ) | self.told
        if os.path.isdir(os.path.join(ROOT, "bin")):
            env["LD_LIBRARY_PATH"] = os.path.join(ROOT, "lib") + ":" + env.get("LD_LIBRARY_PATH", "")
            env.setdefault("HONE_CUDA_KERNELS", os.path.join(ROOT, "lib", "hone", "kernels.cuda"))
        return env

    def run(self, *command, limit=600):
        """Ends at the latest when the time is out. A peer's Python does not see hone's libraries."""
        limit = max(1, min(limit, self.longest, self.left()))
        try:
            return subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=limit,
                                  env=None if command[0] == self.python else self.environment())
        except subprocess.TimeoutExpired as e:
            out = e.stdout or b""
            return subprocess.CompletedProcess(command, 124, out if isinstance(out, str) else out.decode(errors="replace"),
                                               f"ended after {limit:.0f} s")
        except OSError as e:
            return subprocess.CompletedProcess(command, 127, "", str(e))

    def tool(self, name, *arguments, limit=600):
        return self.run(self.program(name), *arguments, limit=limit)

    def report(self, name, *arguments, limit=600):
        """What a tool's --json says."""
        p = self.tool(name, *arguments, "--device", self.device, "--json", limit=limit)
        if p.returncode not in (0, 5):  # 5: noisy, with a report
            raise Failed(ended(name, p))
        return json.loads(p.stdout)

    def torch(self):
        """Errors: NotThere: no PyTorch that computes on the peers' device."""
        p = self.run(self.python, "-c", "import torch; print(torch.__version__, torch.cuda.is_available())", limit=120)
        words = p.stdout.split()
        if p.returncode or len(words) != 2:
            raise NotThere("PyTorch is not there")
        if self.peers == "cuda" and words[1] != "True":
            raise NotThere("PyTorch is there, but sees no GPU")
        self.record["torch"] = words[0]

    def script(self, name, *arguments, limit=600):
        """Lines of JSON of a peer's script, also of one that ended early, and why it did."""
        p = self.run(self.python, os.path.join(PERF, name), *arguments, "--device", self.peers, limit=limit)
        rows = []
        for text in p.stdout.splitlines():
            try:
                rows.append(json.loads(text))
            except json.JSONDecodeError:  # what libraries print, or half a line
                pass
        return [r for r in rows if isinstance(r, dict)], ended(name, p) if p.returncode else None


def checked(p):
    lines = p.stdout.splitlines()
    return {"passed": sum(x.startswith("ok") for x in lines), "failed": [x for x in lines if x.startswith("not ok")],
            "error": ended("hn-check", p) if p.returncode not in (0, 1) else None}


def operators(r):
    """Own kernels, and what cuBLASLt computes where it is asked for."""
    r.record["operators"] = checked(r.tool("hn-check", "--device=" + r.device, *(["--op=Relu"] if r.small else [])))
    asked = r.record["libraries"] = {}
    for op in LIBRARY_OPERATORS if r.told else ():
        asked[op] = checked(r.run("env", "HONE_CUDA_LIBRARIES=cublaslt", r.program("hn-check"), "--device=" + r.device, "--op=" + op))


def kernels(r):
    p = r.tool("perf-cuda", "--device", r.device, *(["--small", "--only", "relu"] if r.small else []))
    r.record["kernels"] = [json.loads(x) for x in p.stdout.splitlines() if x.startswith("{") and x.endswith("}")]
    if p.returncode:
        raise Failed(ended("perf-cuda", p))


def errors(r):
    """A test that holds f32 products against sums in double."""
    p = r.run(r.program("test-cuda_products")) if not r.small else None
    if not p:
        raise NotThere("left out with --small")
    lines = [x for x in p.stdout.splitlines() if x.startswith(("ok", "not ok")) and "skip" not in x.lower()]
    r.record["errors"] = [{"what": x.split(" ", 3)[-1] if x.startswith("not") else x.split(" ", 2)[-1], "right": x.startswith("ok")} for x in lines]
    if not lines:
        r.record["errors"] = [{"what": "test-cuda_products", "right": None, "why": ended("test-cuda_products", p)}]


def peers(r):
    """PyTorch's libraries on the same cases; products by each of the algorithms that cuBLASLt lists, too."""
    r.torch()
    found, why = r.script("cuda_peers.py", "--list", *(["--small"] if r.small else []), limit=240)
    for k in r.record.get("kernels", []):
        mine = [x for x in found if x.get("name") in (k["name"], k["name"] + ", cuDNN")]
        times = [(x[form], form) for x in mine for form in ("us", "best_us") if isinstance(x.get(form), (int, float))]
        if times:
            k["peer_us"] = min(times)[0]
            k["peer"] = "the best of cuBLASLt's list" if min(times)[1] == "best_us" else "PyTorch"
        elif mine or why:
            k["peer_error"] = next((x["error"] for x in mine if "error" in x), why)
        listed = [x["list_error"] for x in mine if "list_error" in x]
        if listed:
            k["list_error"] = listed[0]
    if why:
        raise Failed(f"cuda_peers.py: {why}")


def same_bits(r, model, sets):
    """100 runs of one process where there is a test set, which is linked as many times; else three processes."""
    runs = 3 if r.small else SAME_BITS_RUNS
    folder, out = tempfile.mkdtemp(dir=r.room), tempfile.mkdtemp(dir=r.room)
    if sets:
        for k in range(runs):
            os.symlink(os.path.abspath(sets[0]), os.path.join(folder, f"test_data_set_{k}"))
        p = r.tool("hone-run", model, "--data", folder, "--device", r.device, "-o", out, "-q")
        made = [p] if p.returncode else []
    else:
        runs = 3
        made = [r.tool("hone-run", model, "--data", "random", "--seed", "1", "--device", r.device, "-o", os.path.join(out, f"test_data_set_{k}.npz"),
                       "-q") for k in range(runs)]
        made = [p for p in made if p.returncode]
    if made:
        return None, 0
    seen = {}
    for path in sorted(glob.glob(os.path.join(out, "**"), recursive=True)):
        if os.path.isfile(path):
            with open(path, "rb") as f:
                name = os.path.basename(path) if sets else "all"
                seen.setdefault(name, []).append(hashlib.sha256(f.read()).hexdigest())
    shutil.rmtree(out)
    return bool(seen) and all(len(set(v)) == 1 and len(v) == runs for v in seen.values()), runs


def one_model(r, path):
    model, sets = os.path.join(path, "model.onnx"), sorted(glob.glob(os.path.join(path, "test_data_set_*")))
    row = {"model": os.path.basename(path)}
    if sets:
        p = r.tool("hone-run", model, "--test-data", sets[0], "--device", r.device)
        if p.returncode in (0, 3):
            row["right"] = p.returncode == 0
        if p.returncode:
            row["error"] = ended("hone-run", p)
            if p.returncode != 3:
                return row
    row["same_bits"], row["runs"] = same_bits(r, model, sets)
    start = time.monotonic()
    r.tool("hone-run", model, "--data", "random", "--device", r.device, "-o", os.path.join(r.room, "first.npz"))
    row["first_result_s"] = round(time.monotonic() - start, 3)
    try:
        row["latency_ms"] = r.report("hone-bench", model, *(["--runs", "3"] if r.small else ["--time", "1"]))["runs"][0]["latency_ms"]["p50"]
    except Failed as e:
        row["error"] = str(e)
    return row


def model_paths(r):
    return [p.rstrip("/") for p in r.models] or sorted(os.path.dirname(p) for p in glob.glob(os.path.join(ROOT, "models", "*", "model.onnx")))


def models(r):
    if not model_paths(r):
        raise NotThere("there are no models")
    r.record["models"] = []
    for path in model_paths(r):
        r.record["models"].append(one_model(r, path))
        r.save()


def chain(n):
    """A model of n Softmax nodes, N rows of 64."""
    from wire import FLOAT, node, simple, value

    names = [f"v{k}" for k in range(n)] + ["y"]
    x, y = value("v0", FLOAT, ("N", 64)), value("y", FLOAT, ("N", 64))
    return simple([node("Softmax", [a], [b]) for a, b in zip(names, names[1:])], ins=(x,), outs=(y,))


def beside(found, step_us):
    """Microseconds beside its kernel of a recorded step that takes step_us with it; and how it is known."""
    records = found.get("gpu", {}).get("records") or {}
    ran = [k for k in found.get("gpu", {}).get("kernels") or [] if k.get("kind") == "kernel"]
    if not records.get("used") or not ran:
        return None, f"kernels of recorded steps are not timed alone: {records.get('why_not') or 'there are no records'}; a step with its kernel takes {step_us} us"
    alone = sum(k["ms"] for k in ran) / sum(k["count"] for k in ran) * 1e3
    return round(step_us - alone, 3), f"a step takes {step_us} us, its kernel {alone:.3f}"


def steps(r):
    """From chains of two lengths: what a step more costs."""
    counts = (4, 8) if r.small else CHAINS
    paths, much = [], ["--runs", "2"] if r.small else []
    for n in counts:
        paths.append(os.path.join(r.room, f"chain{n}.onnx"))
        with open(paths[-1], "wb") as f:
            f.write(chain(n))
    few, many = counts
    s = {"nodes": many}
    recorded = [r.report("hone-bench", p, "--io", "device", "--dim", "N=4", *much)["runs"][0] for p in paths]
    s["recorded_us"] = round((recorded[1]["latency_ms"]["p50"] - recorded[0]["latency_ms"]["p50"]) / (many - few) * 1e3, 3)
    churn = [r.report("hone-bench", p, "--dim", "N=4,8", "--churn", *much)["churn"] for p in paths]
    s["unrecorded_us"] = round((churn[1][1]["again_run_ms"] - churn[0][1]["again_run_ms"]) / (many - few) * 1e3, 3)
    s["unrecorded_why"] = "what a step more adds to a run whose plan is new: where the device is slower, its time"
    try:
        found = r.report("hone-profile", paths[1], "--dim", "N=4", *(["--runs", "7"] if r.small else ["--time", "2s"]))
        s["beside_us"], s["why"] = beside(found, s["recorded_us"])
    except Failed as e:
        s["beside_us"], s["why"] = None, str(e)
    if s["beside_us"] is None and s["recorded_us"] <= 1.5 and not r.record["emulated"]:
        s["beside_us"], s["why"] = s["recorded_us"], "its kernel included"
    s["planning"] = [{"model": os.path.basename(p), "ms_per_100": round(c[1]["again_plan_ms"] / n * 100, 3)} for p, c, n in zip(paths, churn, counts)]
    r.record["steps"] = s
    r.save()
    for path in [p for p in networks_there(r) if p.endswith("-f32.onnx")]:
        s["planning"].append(planned(r, path, much))


def planned(r, path, much):
    name = os.path.basename(path)
    try:
        nodes = r.report("hone-bench", path, "--dim", "N=1", "--runs", "2", "--warmup", "0")["runs"][0]["steps"]["all"]
        rows = r.report("hone-bench", path, "--dim", "N=1,2", "--churn", *(much or ["--runs", "5"]))["churn"]
        return {"model": name, "nodes": nodes, "ms_per_100": round(max(x["again_plan_ms"] for x in rows) / nodes * 100, 3)}
    except Failed as e:
        return {"model": name, "error": str(e)}


def networks_there(r):
    """Files of networks that cuda_nets.py has made; filled with weights by the first who asks."""
    if not r.nets or r.record["parts"].get("networks", {}).get("state") == "not there":
        return []
    return [p for p in sorted(glob.glob(os.path.join(r.nets, "*.onnx"))) if os.path.exists(p[:-5] + ".bin")]


def fill(r):
    """Networks with weights. Errors: NotThere."""
    r.torch()
    nets = r.nets or os.path.join(r.room, "nets")
    what = ["--small"] if r.small else []
    there = glob.glob(os.path.join(nets, "*.onnx"))
    rows, why = r.script("cuda_nets.py", "--fill" if there else "--export", nets, *what, limit=300)
    r.nets = nets
    made = [x["file"] for x in rows if "file" in x]
    if not made:
        raise NotThere("there are no networks: " + (why or "; ".join(x.get("error", "?") for x in rows) or "none were exported"))
    return made


def keyed(rows, **key):
    """The row of that key, made where there is none."""
    found = next((x for x in rows if all(x.get(k) == v for k, v in key.items())), None)
    if found is None:
        found = dict(key)
        rows.append(found)
    return found


def sweeps(r):
    """(network, precision, file), each in its turn."""
    for name in fill(r):
        network, precision = name[:-5].rsplit("-", 1)
        yield network, precision, os.path.join(r.nets, name)


def batches(r):
    return (1, 2) if r.small else (1, 8, 64)


def hone_network(r, path, of):
    """of: the rows of each batch: times, and memory."""
    try:
        much = ["--runs", "2", "--warmup", "0"] if r.small else ["--time", "1s", "--warmup", "20"]
        for x in r.report("hone-bench", path, "--dim", "N=" + ",".join(map(str, of)), *much)["runs"]:
            n, m = of[next(iter(x["shapes"].values()))[0]]
            gpu = x["gpu"]
            n.update(ms=x["latency_ms"]["p50"], kernels_ms=gpu["times_ms"]["kernels"], upload_ms=gpu["times_ms"]["upload"],
                     download_ms=gpu["times_ms"]["download"])
            n.pop("error", None)
            m.update(planned=gpu["memory_bytes"]["planned"], allocated=gpu["memory_bytes"]["allocated"])
    except Failed as e:
        for n, m in of.values():
            n["error"] = m["error"] = str(e)
    r.save()


def networks(r):
    """Whole networks at each batch, in hone and replayed from PyTorch's recorded graph; device memory of both."""
    rows, memory, by_name = r.record.setdefault("networks", []), r.record.setdefault("memory", []), {}
    for network, precision, path in sweeps(r):
        by_name.setdefault(network, []).append((precision, path))
    for network, files in by_name.items():
        both = []
        for precision, path in files:
            key = {"network": network, "precision": precision}
            of = {b: (keyed(rows, **key, batch=b), keyed(memory, **key, batch=b)) for b in batches(r)}
            hone_network(r, path, of)
            both += of.values()
        peer_networks(r, both, "eager" if r.peers == "cpu" else "graph", 150)
        r.save()


def peer_networks(r, rows, forms, limit):
    """rows of one network: times, and memory."""
    names = {key: ",".join(dict.fromkeys(str(n[key]) for n, _ in rows)) for key in ("network", "precision", "batch")}
    found, why = r.script("cuda_nets.py", "--run", names["network"], "--precision", names["precision"], "--batch", names["batch"], "--forms", forms,
                          *(["--small", "--seconds", "0.1"] if r.small else []), limit=limit)
    for n, m in rows:
        seen = [x for x in found if (x.get("precision"), x.get("batch")) == (n["precision"], n["batch"])]
        for x in seen:
            n.setdefault("peers", {})[x["form"]] = x.get("ms", x.get("error"))
            if "bytes" in x:
                m["peer_bytes"] = x["bytes"]
        for form in forms.split(","):
            if why and not any(x["form"] == form for x in seen):
                n.setdefault("peers", {})[form] = why
        best = judge.best_peer(n)[0]
        if best:
            n["peer_ms"] = best


def compiled(r):
    """The same by torch.compile (max-autotune), recorded: one after the other, the more telling first, as long as there is time."""
    rows = [n for n in r.record.get("networks", []) if "ms" in n]
    if not rows:
        raise NotThere("part networks has made no times")
    r.torch()
    order = [("f16", 8), ("f32", 1), ("f16", 1), ("f32", 8), ("f16", 64), ("f32", 64)]
    rows = [n for key in order for n in rows if (n["precision"], n["batch"]) == key]
    for n in rows:
        if isinstance(n.get("peers", {}).get("compile"), (int, float)):
            continue
        if r.left() < (5 if r.small else 45):
            raise Failed(f"the time was out at {n['network']} {n['precision']}, batch {n['batch']}: again with --only compiled")
        peer_networks(r, [(n, {})], "compile", 240)
        r.save()


def converted(r):
    """The models by PyTorch, where a converter takes them, at batch 1."""
    r.torch()
    if r.run(r.python, "-c", "import onnx, onnx2torch", limit=60).returncode:
        raise NotThere("onnx2torch, which converts models, is not there")
    rows = r.record.setdefault("networks", [])
    for m in r.record.get("models", []):
        path = next((p for p in model_paths(r) if os.path.basename(p) == m["model"]), None)
        if path is None or "latency_ms" not in m:
            continue
        n = keyed(rows, network=m["model"], precision="as it is", batch=1)
        n["ms"] = m["latency_ms"]
        found, why = r.script("cuda_models.py", *([] if r.small else ["--compile"]), os.path.join(path, "model.onnx"), limit=150)
        for x in found:
            n.setdefault("peers", {}).update({k: v for k, v in x.items() if k.endswith("_ms") or k == "error"})
        if why and not found:
            n["peers"] = {"PyTorch": why}
        n["peer_ms"] = judge.best_peer(n)[0]
        r.save()


def ort(r):
    """The same by ONNX Runtime's CUDA provider."""
    there = r.run(r.python, "-c", "import onnxruntime; print(*onnxruntime.get_available_providers())", limit=60)
    if "CUDAExecutionProvider" not in there.stdout:
        raise NotThere("ONNX Runtime's CUDA provider is not there")
    rows = r.record.setdefault("networks", [])
    for network, precision, path in sweeps(r):
        of = {b: (keyed(rows, network=network, precision=precision, batch=b), {}) for b in batches(r)}
        found, why = r.script("cuda_nets.py", "--ort", path, "--batch", ",".join(map(str, of)), limit=120)
        for b, (n, _) in of.items():
            mine = next((x for x in found if x.get("batch") == b), {})
            n.setdefault("peers", {})["ort"] = mine.get("ms", mine.get("error", why))
            n["peer_ms"] = judge.best_peer(n)[0]
        r.save()


def start(r):
    """A process to its first result."""
    r.record["start"] = []
    files = [p for p in fill(r) if p.endswith("-f32.onnx")]
    for name in files[:2 if r.small else 4]:
        row, path = {"network": name[:-5]}, os.path.join(r.nets, name)
        r.record["start"].append(row)
        took = []
        for _ in range(1 if r.small else 3):
            begun = time.monotonic()
            p = r.tool("hone-run", path, "--data", "random", "--dim", "N=1", "--device", r.device, "-o", os.path.join(r.room, "first.npz"))
            took.append(time.monotonic() - begun)
            if p.returncode:
                row["error"] = ended("hone-run", p)
                break
        if "error" not in row:
            row["s"] = round(min(took), 3)
        found, why = r.script("cuda_nets.py", "--first", path, *(["--small"] if r.small else []), limit=120)
        if found and "s" in found[-1]:
            row["peer_s"] = found[-1]["s"]
        else:
            row["peer_error"] = why or "it said nothing"
        r.save()


def training(r):
    """A step of AdamW in hone and by torch.compile, and the device memory of both."""
    r.torch()
    folder = os.path.join(r.nets, "train") if r.nets and os.path.isdir(os.path.join(r.nets, "train")) else os.path.join(r.room, "train")
    rows, why = r.script("cuda_nets.py", "--export-train", folder, *(["--small"] if r.small else []), limit=240)
    nets = [x for x in rows if "batch" in x]
    if not nets:
        raise NotThere("there are no networks to train: " + (why or "none were exported"))
    made = r.record.setdefault("training", [])
    for x in nets:
        for precision in ("f32",) if r.small else ("f32", "bf16"):
            row = keyed(made, network=x["network"], precision=precision, batch=x["batch"])
            path = os.path.join(folder, x["network"])
            try:
                run = r.report("hone-bench", "--train", path + ".onnx", "--data", path + ".npz", "--batch", str(x["batch"]), "--micro-batches", "1",
                               "--precision", precision, *(["--runs", "1", "--warmup", "0"] if r.small else ["--time", "1s"]), limit=60)["runs"][0]
                row.update(ms=run["latency_ms"]["p50"], bytes=run["gpu"]["memory_bytes"]["allocated"])
            except Failed as e:
                row["error"] = str(e)
            found, why = r.script("cuda_nets.py", "--train", x["network"], "--precision", precision, *(["--seconds", "0.1"] if r.small else []), limit=120)
            times = [y for y in found if "ms" in y]
            if times:
                best = min(times, key=lambda y: y["ms"])
                row.update(peer_ms=best["ms"], peer=best["form"])
                if any("bytes" in y for y in times):
                    row["peer_bytes"] = min(y["bytes"] for y in times if "bytes" in y)
            else:
                row["peer_error"] = why or "; ".join(y.get("error", "?") for y in found)
            r.save()


def four(r):
    """Models to look at: networks where there are some, else those of the pack."""
    there = networks_there(r)
    filled = [p for p in there if p.endswith("-f16.onnx")] + [os.path.join(p, "model.onnx") for p in model_paths(r)]
    return filled[:1 if r.small else 4]


def label(path):
    name = os.path.basename(path)
    return os.path.basename(os.path.dirname(path)) if name == "model.onnx" else name[:-5]


def profiles(r):
    r.record["profiles"] = []
    if not four(r):
        raise NotThere("there are no models")
    for path in four(r):
        row = {"model": label(path)}
        r.record["profiles"].append(row)
        try:
            found = r.report("hone-profile", path, "--data", "random", "--dim", "N=1", *(["--runs", "7"] if r.small else ["--time", "2s"]))
            row.update(agreement=round(found["agreement"], 4), unprofiled_ms=found["unprofiled_ms"], profiled_ms=found["profiled_p50_ms"])
        except Failed as e:
            row["error"] = str(e)
        r.save()


def bias(r):
    r.record["bias"] = []
    if not four(r):
        raise NotThere("there are no models")
    for path in four(r):
        row = {"model": label(path)}
        r.record["bias"].append(row)
        try:
            found = r.report("hone-bench", path, path, "--dim", "N=1", *(["--runs", "2"] if r.small else ["--time", "3s"]))["compare"][0]
            row.update(ratio=round(found["effect"], 4), ci95=found["ci95"])
        except Failed as e:
            row["error"] = str(e)
        r.save()


def sanitizer(r):
    """What each tool says of the operators, in as many parts at a time as there are processors."""
    path = shutil.which("compute-sanitizer") or "/usr/local/cuda/bin/compute-sanitizer"
    if not os.access(path, os.X_OK):
        raise NotThere("compute-sanitizer is not there")
    parts = max(1, (os.cpu_count() or 1) // 2)
    found = r.record.setdefault("sanitizer", {})
    for tool in ("memcheck", "racecheck", "initcheck", "synccheck"):
        if found.get(tool, {}).get("clean") == parts:
            continue
        with concurrent.futures.ThreadPoolExecutor(parts) as pool:
            done = list(pool.map(lambda k: r.run(path, "--tool", tool, "--error-exitcode", "9", r.program("hn-check"), "--device=" + r.device,
                                                 f"--part={k}/{parts}"), range(1, parts + 1)))
        said = [x.strip() for p in done for x in p.stdout.splitlines() if x.startswith("=========") and "rror" in x and "SUMMARY" not in x]
        found[tool] = {"parts": parts, "clean": sum(p.returncode == 0 for p in done), "errors": said[:20]}
        ended = [p for p in done if p.returncode not in (0, 9)]
        if ended:
            found[tool]["why"] = last(ended[0].stderr or ended[0].stdout)
        r.save()


# In this order, with the seconds that each takes on an H100, about; None: as many as are left.
ALL = {"operators": (operators, 60), "kernels": (kernels, 30), "errors": (errors, 15), "peers": (peers, 70), "networks": (networks, 200),
       "models": (models, 40), "steps": (steps, 20), "profiles": (profiles, 25), "bias": (bias, 20), "start": (start, 35),
       "training": (training, 60), "converted": (converted, 60), "ort": (ort, 60), "compiled": (compiled, 60), "sanitizer": (sanitizer, 90)}
