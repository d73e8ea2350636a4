#!/usr/bin/env python3
"""Run every example of README.md and the manual pages, each in a folder of its own with files of the names that it uses.

usage: examples.py ROOT SCRATCH [WORDS]     the tools on PATH; WORDS: only examples that hold them; runs in .deps/venv

An example is a line with a tool in it: in a fenced block of README.md or of a page, or behind a tab on a page. Lines that
scdoc joins by "++", and those that end in a backslash, are one; those of them without a tool are what it prints. It has to
end with status 0; where it asks for a guard that a busy machine may miss, with what that is. Measuring is cut short: what is
tested is that the line works as it stands.
Prints TAP, one test for each file, and what is neither run nor in ELSEWHERE or SKIPPED.
"""
import glob
import os
import re
import shutil
import subprocess
import sys

VERBS = "bench|diff|distill|export|inspect|profile|prune|quantize|replay|run"
TOOL = re.compile(rf"^(.*[|&;] *)?hone[- ]({VERBS})\b(?! +[a-z]+ [a-z]+ )")
# pages whose lines another test plays
ELSEWHERE = {
    "man/hone-tutorial.7.scd": "test/cli/tutorial.bats",
    "man/hone-export.1.scd": "test/cli/export.bats",
}
# what cannot be run here: part of the line, reason
SKIPPED = {
    "flamegraph.pl": "a program that hone does not bring",
    "decoder/model.onnx": "needs a language model; run.bats plays loops with caches",
    "$<": "a rule of make, which bench.bats plays",
    "GITHUB_STEP_SUMMARY": "a workflow file; what it calls is another line",
}
# a guard that may be missed, or not decided, on a busy machine: part of the line, further statuses
GUARDS = {
    "--fail-if-slower": (3, 5),
    "--latency": (3, 5, 6),
}
FORCED = re.compile(r"\bhone[- ](quantize|prune|distill|export(?= .*--to b?f16)) (?!.*(--force|--analyze))")  # guards on speed are tested elsewhere
WRAPPER = """#!/bin/sh
# hone-bench and the like: measuring and learning cut short
case "$*" in *--time*|*--runs*|*--instances*|*--epochs*) ;; *) set -- "$@" %s ;; esac
n=$# last=
while [ "$n" -gt 0 ]; do
    word=$1
    shift
    [ "$last" != --epochs ] || word=1
    set -- "$@" "$word"
    last=$word n=$((n - 1))
done
exec %s "$@"
"""
SHORT = {"hone-bench": "--time 50ms", "hone-profile": "--time 50ms --no-advise", "hone-distill": "--epochs 1"}


def lines_of(path):
    """(number, line), fences and tabs taken off, continued lines joined"""
    fenced, known, at = False, "", 0
    with open(path, encoding="utf-8") as f:
        for number, line in enumerate(f, 1):
            line = line.rstrip("\n")
            if line.startswith("```"):
                fenced = not fenced
                continue
            page = path.endswith(".scd")
            if not fenced and not known and not (page and line.startswith("\t") and TOOL.search(line[1:].lstrip("$ "))):
                continue
            text = re.sub(r"^\$ ", "", line.strip())
            if page and not fenced:
                text = re.sub(r"\\(.)", r"\1", text)
            at = at if known else number
            if text.endswith("++"):
                known += text[:-2] + "\n"
            elif text.endswith("\\"):
                known += text[:-1]
            else:
                yield at, known + text
                known = ""


def examples_of(root):
    for path in ["README.md"] + sorted(glob.glob("man/*.scd", root_dir=root)):
        found = [(n, s) for n, s in lines_of(os.path.join(root, path)) if TOOL.search(s)]
        if found:
            yield path, found


def save(path, nodes, weights, ins, outs):
    import onnx
    from onnx import helper, numpy_helper
    graph = helper.make_graph(nodes, "g", ins, outs, [numpy_helper.from_array(a, n) for n, a in weights.items()])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    model.ir_version = 8
    onnx.save(model, path)


def unlearned(m, rng):
    """Weights that have something to learn; those of the last layer have names as PyTorch's"""
    import numpy as np
    from onnx import numpy_helper
    last = m.graph.node[-1]
    names = dict(zip(last.input[1:], ("fc.weight", "fc.bias")))
    for w in m.graph.initializer:
        a = numpy_helper.to_array(w)
        if a.dtype == np.float32 and a.ndim > 1:
            a = a + rng.normal(size=a.shape).astype("f4") * a.std()
        w.CopyFrom(numpy_helper.from_array(a, names.get(w.name, w.name)))
    for node in m.graph.node:
        for k, name in enumerate(node.input):
            node.input[k] = names.get(name, name)


def models(root):
    import numpy as np
    import onnx
    from onnx import TensorProto as T, helper
    node, value = helper.make_node, helper.make_tensor_value_info
    rng = np.random.default_rng(1)
    m = onnx.load(os.path.join(root, "models/digits/model.onnx"))
    for v in (*m.graph.input, *m.graph.output):
        v.type.tensor_type.shape.dim[0].dim_param = "batch"
    for name in "model old new small a b m t large".split():
        onnx.save(m, name + ".onnx")
    one = onnx.ModelProto()
    one.CopyFrom(m)
    for v in (*one.graph.input, *one.graph.output):
        v.type.tensor_type.shape.dim[0].dim_value = 1
    onnx.save(one, "one.onnx")
    unlearned(m, rng)
    for name in "s student half".split():
        onnx.save(m, name + ".onnx")
    pictures = [node("Conv", ["image", "k"], ["c"], strides=[2, 2]), node("Relu", ["c"], ["r"]),
                node("GlobalAveragePool", ["r"], ["p"]), node("Flatten", ["p"], ["f"]),
                node("Gemm", ["f", "w"], ["scores"])]
    save("classifier.onnx", pictures, {"k": rng.normal(size=(16, 3, 3, 3)).astype("f4"),
                                       "w": rng.normal(size=(16, 10)).astype("f4")},
         [value("image", T.FLOAT, ["batch", 3, 32, 32])], [value("scores", T.FLOAT, ["batch", 10])])
    save("tokens.onnx", [node("Gather", ["table", "ids"], ["e"]), node("Cast", ["mask"], ["k"], to=T.FLOAT),
                         node("Unsqueeze", ["k", "two"], ["u"]), node("Mul", ["e", "u"], ["y"])],
         {"table": rng.normal(size=(50, 8)).astype("f4"), "two": np.array([2], "i8")},
         [value(n, T.INT64, ["batch", "length"]) for n in ("ids", "mask")], [value("y", T.FLOAT, ["batch", "length", 8])])
    save("detector.onnx", [node("MatMul", ["x", "w1"], ["h"]), node("Relu", ["h"], ["r"]),
                           node("MatMul", ["r", "w2"], ["boxes"]), node("MatMul", ["r", "w3"], ["l"]),
                           node("Softmax", ["l"], ["scores"]), node("Neg", ["r"], ["state"])],
         {"w1": rng.normal(size=(16, 32)).astype("f4"), "w2": rng.normal(size=(32, 4)).astype("f4"),
          "w3": rng.normal(size=(32, 5)).astype("f4")},
         [value("x", T.FLOAT, ["batch", 16])], [value(n, T.FLOAT, ["batch", k]) for n, k in
                                                (("boxes", 4), ("scores", 5), ("state", 32))])
    save("oscillator.onnx", [node("MatMul", ["x", "turn"], ["y"])],
         {"turn": np.array([[0.8, 0.6], [-0.6, 0.8]], "f4")}, [value("x", T.FLOAT, [1, 2])],
         [value("y", T.FLOAT, [1, 2])])


def data(root):
    import numpy as np
    import PIL.Image as Image
    digits = {p: np.load(os.path.join(root, f"models/digits/{p}.npz")) for p in ("train", "test")}
    for name, part, n in (("train", "train", 96), ("test", "test", 64), ("few", "test", 32)):
        np.savez(name + ".npz", image=digits[part]["image"][:n], label=digits[part]["label"][:n])
    for name in ("samples", "images"):
        np.savez(name + ".npz", image=digits["test"]["image"][:32])
    for folder in ("samples", "d"):
        os.makedirs(folder)
        for k in range(8):
            np.savez(f"{folder}/{k}.npz", image=digits["test"]["image"][k:k + 1])
    np.save("x.npy", digits["test"]["image"][:2])
    np.save("start.npy", np.array([[1, 0]], "f4"))
    for name in ("ids", "m"):
        np.save(name + ".npy", np.ones((1, 6), "i8"))
    shutil.copytree(os.path.join(root, "models/digits/test_data_set_0"), "test_data_set_0")
    os.makedirs("digits")
    for name in ("model.onnx", "test.npz"):
        shutil.copy(os.path.join(root, "models/digits", name), "digits")
    rng = np.random.default_rng(2)
    for k in range(10):
        os.makedirs(f"photos/{k}")
        Image.fromarray(rng.integers(0, 255, (40, 48, 3), "u1")).save(f"photos/{k}/one.jpg")
    Image.fromarray(rng.integers(0, 255, (40, 48, 3), "u1")).save("cat.png")
    Image.open("cat.png").save("cat.jpg")
    with open("labels.txt", "w", encoding="utf-8") as f:
        f.writelines(f"class {k}\n" for k in range(10))
    with open("map.sh", "w", encoding="utf-8") as f:
        f.write("#!/bin/sh\necho 0.5\n")
    os.chmod("map.sh", 0o755)
    np.savez("boxes.npz", x=rng.normal(size=(8, 16)).astype("f4"))


MADE = """hone-quantize model.onnx --calib samples/ -o int8.onnx --force
hone-export model.onnx -o small.onnx
hone-distill --student student.onnx --teacher large.onnx --data train.npz -o learned.onnx --force
hone-profile model.onnx --json=before.json
hone-profile model.onnx --json=times.json
hone-bench model.onnx --threads 1 --json=bench.json"""


def folder_for(line, world, folder):
    """A copy of the world; model.onnx is what the line asks for"""
    shutil.copytree(world, folder)
    other = "tokens" if re.search(r"\bids[:=]", line) else "detector" if "@boxes" in line else None
    if other:
        shutil.copy(os.path.join(folder, other + ".onnx"), os.path.join(folder, "model.onnx"))
    if other == "detector":
        shutil.rmtree(os.path.join(folder, "samples"))
        os.makedirs(os.path.join(folder, "samples"))
        shutil.copy(os.path.join(folder, "boxes.npz"), os.path.join(folder, "samples"))


def run(line, folder):
    commands = [s for s in line.split("\n") if TOOL.search(s)]
    try:
        p = subprocess.run(["bash", "-e", "-o", "pipefail", "-c", "\n".join(commands)], cwd=folder, capture_output=True,
                           text=True, errors="replace", stdin=subprocess.DEVNULL, timeout=300)
    except subprocess.TimeoutExpired:
        return -1, "it took over 300 s"
    missing = [s for s in line.split("\n") if s and s not in commands and s not in p.stdout.splitlines()]
    if p.returncode == 0 and missing:
        return -1, f"'{missing[0]}' is not printed"
    return p.returncode, p.stderr.strip()


def complaint(line, world, scratch):
    folder = os.path.join(scratch, "example")
    folder_for(line, world, folder)
    try:
        status, said = run(FORCED.sub(lambda m: m[0] + "--force ", line), folder)
    finally:
        shutil.rmtree(folder)
    allowed = {s for words, more in GUARDS.items() if words in line for s in more} | {0}
    return None if status in allowed else f"status {status}: {said}"


def prepare(root, scratch):
    """The world's folder; tools that measure are wrapped."""
    world, tools = os.path.join(scratch, "world"), os.path.join(scratch, "tools")
    os.makedirs(world)
    os.makedirs(tools)
    for name, more in SHORT.items():
        path = os.path.join(tools, name)
        with open(path, "w", encoding="utf-8") as f:
            f.write(WRAPPER % (more, shutil.which(name)))
        os.chmod(path, 0o755)
    os.environ["PATH"] = tools + ":" + os.environ["PATH"]
    os.environ["XDG_CACHE_HOME"] = os.path.join(scratch, "cache")
    here = os.getcwd()
    os.chdir(world)
    models(root)
    data(root)
    for line in MADE.splitlines():
        status, said = run(line, world)
        if status:
            raise SystemExit(f"{line}: status {status}: {said}")
    os.chdir(here)
    return world


def judge(root, path, found, used, world, scratch):
    if path in ELSEWHERE:
        with open(os.path.join(root, ELSEWHERE[path]), encoding="utf-8") as f:
            played = os.path.basename(path) in f.read()
        return [] if played else [f"{ELSEWHERE[path]} does not play it"]
    said = []
    for number, line in found:
        skipped = [words for words in SKIPPED if words in line]
        used.update(skipped)
        why = None if skipped else complaint(line, world, scratch)
        if why:
            said.append(f"{path}:{number}: {line}: {why}")
    return said


def main():
    root, scratch, words = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2]), sys.argv[3:4] or [""]
    world, used, bad = prepare(root, scratch), set(), 0
    if not shutil.which("gnuplot"):
        SKIPPED["--plot "] = "there is no gnuplot"
    pages = [(p, [(n, s) for n, s in found if words[0] in s]) for p, found in examples_of(root)]
    print(f"1..{len(pages) + 1}")
    for k, (path, found) in enumerate(pages, 1):
        said = judge(root, path, found, used, world, scratch)
        bad += len(said)
        print(f"{'not ok' if said else 'ok'} {k} - examples: {path}: {len(found)} lines", flush=True)
        for line in said:
            print("# " + line.replace("\n", "\n# "))
    idle = [] if words[0] else sorted(set(SKIPPED) - used)
    print(f"{'not ok' if idle else 'ok'} {len(pages) + 1} - examples: each reason to skip one is of use {idle or ''}")
    return 1 if bad or idle else 0


if __name__ == "__main__":
    sys.exit(main())
