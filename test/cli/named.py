#!/usr/bin/env python3
"""A model with a value of each of these names: outputs, the k-th k times Relu(x), or with --inputs inputs, each of which
is copied to an output of another name.

usage: named.py [--inputs] FILE NAME...
"""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "onnx"))

from wire import FLOAT, f32, node, simple, tensor, value  # noqa: E402


def rows(name):
    return value(name, FLOAT, ("N", 3))


def main():
    args = sys.argv[1:]
    back = args[0] == "--inputs"
    path, *names = args[back:]
    if back:
        model = simple([node("Identity", [n], [f"o{k}"]) for k, n in enumerate(names)], ins=tuple(map(rows, names)),
                       outs=tuple(rows(f"o{k}") for k in range(len(names))))
    else:
        nodes = [node("Relu", ["x"], ["r"])] + [node("Mul", ["r", f"w{k}"], [n]) for k, n in enumerate(names)]
        model = simple(nodes, tuple(tensor(f"w{k}", FLOAT, (1,), f32(k)) for k in range(len(names))), (rows("x"),),
                       tuple(map(rows, names)))
    with open(path, "wb") as f:
        f.write(model)


if __name__ == "__main__":
    main()
