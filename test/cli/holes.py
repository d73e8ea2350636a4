#!/usr/bin/env python3
"""Models of gigabytes whose weights are holes in files, a graph of a thousand nodes, and what a command takes.

usage: holes.py make DIR         outside.onnx, 2.4 GB beside it; inside.onnx, 1.9 GB in it; thousand.onnx
       holes.py run COMMAND...   prints processor time in milliseconds and peak memory in KB; the command's status
Standard library only.
"""
import os
import resource
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "onnx"))

from wire import FLOAT, external, floats, head, msg, node, num, simple, sub, tensor, value  # noqa: E402

SIDE = 10000
WEIGHT = SIDE * SIDE * 4  # bytes
OUTSIDE = 6               # weights
INSIDE = 1_900_000_000 // 4


def outside(folder):
    weights = [tensor(f"w{k}", FLOAT, (SIDE, SIDE), extra=external(location="outside.bin", offset=str(k * WEIGHT),
                                                                   length=str(WEIGHT))) for k in range(OUTSIDE)]
    nodes = [node("MatMul", [f"x{k}" if k else "x", f"w{k}"], [f"x{k + 1}" if k + 1 < OUTSIDE else "y"])
             for k in range(OUTSIDE)]
    with open(os.path.join(folder, "outside.onnx"), "wb") as f:
        f.write(simple(nodes, weights, (value("x", FLOAT, ("N", SIDE)),), (value("y", FLOAT, ("N", SIDE)),)))
    with open(os.path.join(folder, "outside.bin"), "wb") as f:
        f.truncate(OUTSIDE * WEIGHT)


def inside(folder):
    """TensorProto.raw_data is a hole; what comes before it says how long each message around it is."""
    size = INSIDE * 4
    weight = msg(num(1, INSIDE), num(2, FLOAT), sub(8, "w"), head(9, size))
    before = msg(sub(1, node("Add", ["x", "w"], ["y"])), sub(2, "g"))
    after = msg(sub(11, value("x", FLOAT, (1,))), sub(12, value("y", FLOAT, (INSIDE,))))
    start = msg(before, head(5, len(weight) + size), weight)
    with open(os.path.join(folder, "inside.onnx"), "wb") as f:
        f.write(msg(num(1, 8), sub(8, num(2, 17)), head(7, len(start) + size + len(after)), start))
        f.seek(size, os.SEEK_CUR)
        f.write(after)


def thousand(folder):
    """Blocks of four nodes and a sum, as in residual networks"""
    nodes = []
    for k in range(200):
        x = f"r{k - 1}" if k else "x"
        nodes += [node("MatMul", [x, "w"], [f"a{k}"]), node("Relu", [f"a{k}"], [f"b{k}"]),
                  node("MatMul", [f"b{k}", "w"], [f"c{k}"]), node("Sigmoid", [f"c{k}"], [f"d{k}"]),
                  node("Add", [x, f"d{k}"], [f"r{k}" if k < 199 else "y"])]
    with open(os.path.join(folder, "thousand.onnx"), "wb") as f:
        f.write(simple(nodes, (floats("w", 8, 8),), (value("x", FLOAT, ("N", 8)),), (value("y", FLOAT, ("N", 8)),)))


def run(command):
    status = subprocess.run(command, stdout=subprocess.DEVNULL).returncode
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(round((used.ru_utime + used.ru_stime) * 1e3), used.ru_maxrss)
    return status


if __name__ == "__main__":
    if sys.argv[1] == "run":
        sys.exit(run(sys.argv[2:]))
    for make in outside, inside, thousand:
        make(sys.argv[2])
