#!/usr/bin/env python3
"""Make models that are large in one respect each, for tests of limits. Standard library only.

usage: large.py DIR [N]

N is how many of the thing there are (default: 20000).
"""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "onnx"))

from wire import FLOAT, attr_graph, attr_int, function, f32, floats, graph, model, node, simple, sub, tensor, value  # noqa: E402

X, Y = value("x", FLOAT, (4,)), value("y", FLOAT, (4,))


def models(n):
    relu = node("Relu", ["x"], ["y"])
    chain = [node("Relu" if i % 2 else "Neg", [f"v{i - 1}" if i else "x"], [f"v{i}"], name=f"n{i}") for i in range(n)]
    chain.append(node("MatMul", [f"v{n - 1}", "w"], ["y"]))
    yield "nodes", simple(chain, (floats("w", 4, 4),), (X,), (Y,))
    yield "initializers", simple([relu], [tensor(f"w{i}", FLOAT, (1,), f32(1)) for i in range(n)], (X,), (Y,))
    infos = b"".join(sub(13, value(f"i{i}", FLOAT, (4,))) for i in range(n))
    yield "infos", simple([relu], ins=(X,), outs=(Y,), extra=infos)
    yield "attributes", simple([node("Relu", ["x"], ["y"], *[attr_int(f"a{i}", i) for i in range(n)])], ins=(X,), outs=(Y,))
    yield "inputs", simple([node("Sum", ["x"] * n, ["y"])], ins=(X,), outs=(Y,))
    yield "text", simple([node("Relu", ["x"], ["y"], name="n" * 100 * n)], ins=(X,), outs=(Y,))
    opset = ((17, ""),)
    fs = b"".join(sub(25, function(f"F{i}", "f", ["a"], ["b"], [node("Relu", ["a"], ["b"])], opset)) for i in range(n))
    yield "functions", model(graph([node("F0", ["x"], ["y"], domain="f")], (X,), (Y,)), opset + ((1, "f"),), extra=fs)
    c = value("c", 9, ())
    ifs = []
    for i in range(n // 2):
        branches = [attr_graph(name, graph([node("Relu", ["x"], ["r"])], (), (value("r", FLOAT, (4,)),)))
                    for name in ("then_branch", "else_branch")]
        ifs.append(node("If", ["c"], [f"o{i}" if i else "y"], *branches))
    yield "graphs", simple(ifs, ins=(X, c), outs=(Y,))
    # a node of two bytes each, the smallest there is
    yield "empty", model(graph([relu], (X,), (Y,)) + b"\x0a\x00" * 10 * n)


def main():
    n = int(sys.argv[2]) if len(sys.argv) > 2 else 20000
    os.makedirs(sys.argv[1], exist_ok=True)
    for name, data in models(n):
        with open(os.path.join(sys.argv[1], name + ".onnx"), "wb") as f:
            f.write(data)


main()
