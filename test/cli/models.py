#!/usr/bin/env python3
"""Make the small models and test sets that the tests of the tools run. Standard library only.

usage: models.py DIR
"""
import math
import os
import struct
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "onnx"))

from wire import (  # noqa: E402
    BOOL, FLOAT, FLOAT16, INT64, attr_graph, attr_int, attr_ints, attr_tensor, external, f32, floats, function, graph,
    i64, ints, node, num, simple, sub, tensor, value,
)

OPSET = ((17, ""),)


def pb(dtype, dims, raw):
    return b"".join(num(1, d) for d in dims) + num(2, dtype) + sub(9, raw)


def models():
    x, y = value("x", FLOAT, ("N", 3)), value("y", FLOAT, ("N", 3))
    yield "relu", simple([node("Relu", ["x"], ["y"])], ins=(x,), outs=(y,))
    yield "two", simple([node("Relu", ["x"], ["y"]), node("Neg", ["x"], ["z"])], ins=(x,),
                        outs=(y, value("z", FLOAT, ("N", 3))))
    yield "sines", simple([node("Sin", [f"x{k}" if k else "x"], [f"x{k + 1}" if k < 7 else "y"]) for k in range(8)],
                          ins=(x,), outs=(y,))
    scopes = [f"/m/{'body' if k < 5 else 'head'}/sin{k}" for k in range(8)]
    yield "scopes", simple([node("Sin", [f"x{k}" if k else "x"], [f"x{k + 1}" if k < 7 else "y"], name=scopes[k])
                            for k in range(8)], ins=(x,), outs=(y,))
    # three products with smooth activations in between
    layers, sizes = [], (3, 64, 64, 3)
    for k in range(3):
        layers.append(node("MatMul", [f"h{k}" if k else "x", f"w{k}"], [f"p{k}" if k < 2 else "y"]))
        layers += [node("Softplus", [f"p{k}"], [f"h{k + 1}"])] * (k < 2)
    yield "trained", simple(layers, [tensor(f"w{k}", FLOAT, sizes[k:k + 2], f32(*(
        0.25 - i * 7 % 16 / 32 for i in range(sizes[k] * sizes[k + 1])))) for k in range(3)], (x,), (y,))
    # what it says of each of three things, and one score
    three = tensor("w", FLOAT, (3, 3), f32(*(0.25 - i * 7 % 16 / 32 for i in range(9))))
    yield "tagger", simple([node("MatMul", ["x", "w"], ["p"]), node("Sigmoid", ["p"], ["y"])], [three], (x,), (y,))
    yield "score", simple([node("MatMul", ["x", "w"], ["y"])], [tensor("w", FLOAT, (3, 1), f32(0.5, -0.25, 0.125))], (x,),
                          (value("y", FLOAT, ("N", 1)),))
    # of each of two places five classes, which lie along the last axis
    yield "places", simple([node("MatMul", ["x", "w"], ["y"])], [tensor("w", FLOAT, (3, 5), f32(*(
        0.25 - i * 7 % 16 / 32 for i in range(15))))], (value("x", FLOAT, ("N", 2, 3)),), (value("y", FLOAT, ("N", 2, 5)),))
    # one layer between an input and an output, from which no channel may go
    wave = [math.sin(0.11 * i * j + i) / (1 + j / 4) + math.cos(0.7 * i + j * j) / 20 for i in range(48) for j in range(48)]
    yield "square", simple([node("MatMul", ["x", "w"], ["p"]), node("Tanh", ["p"], ["y"])],
                           [tensor("w", FLOAT, (48, 48), f32(*wave))], (value("x", FLOAT, ("N", 48)),),
                           (value("y", FLOAT, ("N", 48)),))
    # a product of halves with a bias and a function behind it
    yield "halves", simple([node("MatMul", ["x", "w"], ["p"]), node("Add", ["p", "b"], ["s"]), node("Relu", ["s"], ["y"])],
                           [tensor("w", FLOAT16, (3, 4), struct.pack("<12e", *(0.25 - i / 32 for i in range(12)))),
                            tensor("b", FLOAT16, (4,), struct.pack("<4e", 1, 0.5, 0.25, 0))],
                           (value("x", FLOAT16, ("N", 3)),), (value("y", FLOAT16, ("N", 4)),))
    # w has elements and is a graph input, too
    w, b = value("w", FLOAT, (3,)), value("b", FLOAT, (3,))
    yield "weighted", simple([node("Add", ["x", "w"], ["s"]), node("Add", ["s", "b"], ["y"])], (floats("w", 3),),
                             (x, w, b), (y,))
    c = node("Constant", [], ["y"], attr_tensor("value", tensor("c", FLOAT, (2,), f32(1, 2))))
    yield "none", simple([c], ins=(), outs=(value("y", FLOAT, (2,)),))
    yield "scalar", simple([node("ReduceSum", ["x"], ["y"], attr_int("keepdims", 0))], ins=(x,),
                           outs=(value("y", FLOAT, ()),))
    yield "shape", simple([node("NonZero", ["x"], ["y"])], ins=(x,), outs=(value("y", INT64, (2, None)),))
    # places that no sample has
    hits = [node("MatMul", ["x", "w"], ["p"]), node("Tanh", ["p"], ["q"]), node("Greater", ["q", "two"], ["g"]),
            node("NonZero", ["g"], ["y"])]
    wide_w = tensor("w", FLOAT, (3, 640), f32(*(0.25 - i * 7 % 16 / 32 for i in range(3 * 640))))
    yield "hits", simple(hits, [wide_w, tensor("two", FLOAT, (), f32(2))], (x,), (value("y", INT64, (2, None)),))
    yield "unknown", simple([node("Frobnicate", ["x"], ["y"], name="odd")], ins=(x,), outs=(y,))
    slack = [node("Relu", ["x"], ["p"]), node("Relu", ["p"], ["q"]), node("Identity", ["q"], ["r"])]
    yield "fused", simple([*slack, node("BiasGelu", ["r", "b"], ["y"], domain="com.microsoft")], (floats("b", 3),), (x,),
                          (y,), ((17, ""), (1, "com.microsoft")))
    yield "external", simple([node("Add", ["x", "w"], ["y"])],
                             (tensor("w", FLOAT, (3,), extra=external(location="gone.bin")),), (x,), (y,))
    wide = value("y", FLOAT, (4000, 4000))
    yield "wide", simple([node("Expand", ["x", "s"], ["y"])], (ints("s", 4000, 4000),), (value("x", FLOAT, (1, 1)),), (wide,))
    yield "half", simple([node("Cast", ["x"], ["y"], attr_int("to", FLOAT16))], ins=(x,), outs=(value("y", FLOAT16),))
    ids = [node("Gather", ["table", "ids"], ["y"])]
    yield "ids", simple(ids, (floats("table", 4, 3),), (value("ids", INT64, ("n",)),), (value("y", FLOAT, ("n", 3)),))
    loop = [node("Add", ["x", "q"], ["p"], name="first"), node("Relu", ["p"], ["q"]), node("Relu", ["q"], ["y"])]
    yield "cycle", simple(loop, ins=(x,), outs=(y,))
    yield "dangling", simple([node("Add", ["x", "nowhere"], ["y"], name="lost")], ins=(x,), outs=(y,))
    yield "no-outputs", simple([node("Relu", ["x"], ["y"])], ins=(x,), outs=())
    # one computation in four forms: as it is, with another weight in its first node, under other names, with a node more
    for form, first, names, more in (("chain", "w", "ab", False), ("chain-off", "v", "ab", False),
                                     ("chain-renamed", "w", "pq", False), ("chain-longer", "w", "ab", True)):
        a, m = names[0], "m" if more else names[0]
        nodes = [node("Mul", ["x", first], [m], name="scale")] + [node("Identity", [m], [a])] * more
        nodes += [node("Relu", [a], [names[1]]), node("Add", [names[1], "w"], ["y"])]
        weights = (tensor("w", FLOAT, (3,), f32(1, 2, 3)), tensor("v", FLOAT, (3,), f32(1, 2, 3.5)))
        yield form, simple(nodes, weights, (x,), (y,))
    # nodes and weights that need not be: an Identity, a Dropout, a Relu of what is none negative, a copy of a weight, and
    # what no output needs; names and texts that nobody reads
    idle = [node("Identity", ["x"], ["a"]), node("Dropout", ["a"], ["b"]), node("Relu", ["b"], ["c"]),
            node("Relu", ["c"], ["features"]), node("Add", ["features", "w"], ["e"]), node("Mul", ["e", "copy"], ["scores"]),
            node("Exp", ["x"], ["dead"]), node("Identity", ["scores"], ["y"])]
    rows = tuple(tensor(n, FLOAT, (3,), f32(1, 2, 3)) for n in ("w", "copy"))
    yield "slack", simple(idle, rows, (value("x", FLOAT, ("batch", 3)),), (y,), extra=sub(10, "a doc string"),
                          top=sub(3, "9.9") + sub(14, sub(1, "key") + sub(2, "a text")))
    twice = function("Twice", "own", ["a"], ["b"], [node("Add", ["a", "a"], ["b"])], ((17, ""),))
    calls = [node("Identity", ["x"], ["i"]), node("Twice", ["i"], ["t"], domain="own"), node("Neg", ["t"], ["y"])]
    yield "calls", simple(calls, ins=(x,), outs=(y,), opsets=((17, ""), (1, "own")), top=sub(25, twice))
    young = [node("NonZero", ["x"], ["y"], name="first"), node("Neg", ["x"], ["n"]),
             node("NonZero", ["n"], ["z"], name="second")]
    yield "young", simple(young, ins=(x,), outs=(value("y", INT64, (2, None)), value("z", INT64, (2, None))))
    image = (1, 64, 24, 24)
    yield "conv", simple([node("Conv", ["x", "w"], ["y"], attr_ints("pads", (1, 1, 1, 1)))], (floats("w", 64, 64, 3, 3),),
                         (value("x", FLOAT, image),), (value("y", FLOAT, image),))
    # a product so small that more nodes take more bytes than its weights
    yield "small", simple([node("MatMul", ["x", "w"], ["y"])], (floats("w", 16, 4),), (value("x", FLOAT, ("N", 16)),),
                          (value("y", FLOAT, ("N", 4)),))
    # an input that is no sample's
    yield "scaled", simple([node("Mul", ["x", "s"], ["m"]), node("MatMul", ["m", "w"], ["y"])], (tensor("w", FLOAT, (16, 4), f32(
        *(0.25 - i * 7 % 16 / 32 for i in range(64)))),), (value("x", FLOAT, ("N", 16)), value("s", FLOAT, ())),
                           (value("y", FLOAT, ("N", 4)),))
    # one sample at a time, as shapes say that nobody can feed; and one whose samples are a row together
    def ramp(name, *dims):
        n = dims[0] * dims[1]
        return tensor(name, FLOAT, dims, f32(*((i * 37 % 101 - 50) / 100 for i in range(n))))
    yield "single", simple([node("Reshape", ["x", "row"], ["r"]), node("MatMul", ["r", "u"], ["m"]), node("Relu", ["m"], ["p"]),
                            node("MatMul", ["p", "v"], ["y"])],
                           (tensor("row", INT64, (2,), i64(1, 16)), ramp("u", 16, 32), ramp("v", 32, 4)),
                           (value("x", FLOAT, (1, 4, 4)),), (value("y", FLOAT, (1, 4)),))
    yield "together", simple([node("Reshape", ["x", "row"], ["r"]), node("MatMul", ["r", "u"], ["y"])],
                             (tensor("row", INT64, (2,), i64(1, 32)), ramp("u", 32, 4)),
                             (value("x", FLOAT, (2, 16)),), (value("y", FLOAT, (1, 4)),))
    # something between two products that devices leave to the host
    yield "hosted", simple([node("MatMul", ["x", "u"], ["a"]), node("Hardmax", ["a"], ["b"], attr_int("axis", -1), name="hard"),
                            node("MatMul", ["b", "v"], ["y"])],
                           (ramp("u", 16, 32), ramp("v", 32, 8)), (value("x", FLOAT, ("N", 16)),), (value("y", FLOAT, ("N", 8)),))
    # an LSTM in both directions as some exporters write it: two loops over time whose bodies have the same names, of
    # weights too; what the second one multiplies is 8 times as large
    def body(x, k):
        inside = [node("Gather", [x, "t"], ["xt"]), node("Concat", ["xt", "h"], ["xh"], attr_int("axis", 1)),
                  node("MatMul", ["xh", "k"], ["gates"]), node("Tanh", ["gates"], ["out"]),
                  node("Identity", ["go"], ["on"])]
        return graph(inside, (value("t", INT64, ()), value("go", BOOL, ()), value("h", FLOAT, (4, 32))),
                     (value("on", BOOL, ()), value("out", FLOAT, (4, 32)), value("xt", FLOAT, (4, 32))),
                     (tensor("k", FLOAT, (64, 32), f32(*(k * ((i * 7919) % 201 - 100) / 1000 for i in range(64 * 32)))),))
    loops = [node("Shape", ["x"], ["s"]), node("Gather", ["s", "zero"], ["steps"]), node("Mul", ["x", "eight"], ["x8"])]
    loops += [node("Loop", ["steps", "", "h0"], ["y" + d, "all" + d], attr_graph("body", body(x, k)), name="rnn" + d)
              for d, x, k in (("1", "x", 1), ("2", "x8", 0.5))]
    loops += [node("Add", ["y1", "y2"], ["both"]), node("MatMul", ["both", "last"], ["y"])]
    weights = (tensor("zero", INT64, (), i64(0)), tensor("eight", FLOAT, (), f32(8)), floats("h0", 4, 32), floats("last", 32, 32))
    yield "twins", simple(loops, weights, (value("x", FLOAT, ("T", 4, 32)),), (value("y", FLOAT, (4, 32)),))
    # two branches with the same names inside, of which the second one reaches 100,000 times its input
    def branch(k):
        return graph([node("Mul", ["x", k], ["t"]), node("Add", ["t", k], ["o"])], outs=(value("o", FLOAT, ("N", 3)),))
    asks = [node("ReduceMax", ["x"], ["top"], attr_int("keepdims", 0)), node("Less", ["top", "bound"], ["small"])]
    asks += [node("If", ["small"], [y], attr_graph("then_branch", branch(k)), attr_graph("else_branch", branch("one")),
                  name="if " + y) for y, k in (("y", "two"), ("z", "many"))]
    scalars = tuple(tensor(n, FLOAT, (), f32(v)) for n, v in (("one", 1), ("two", 2), ("many", 1e5), ("bound", 60000)))
    yield "branches", simple(asks, scalars, (x,), (y, value("z", FLOAT, ("N", 3))))
    # a product, and then 2 to the power of 62 times around a loop, with something to compute and with nothing
    for form, op in (("forever", "Sin"), ("idle-forever", "Identity")):
        body = graph([node(op, ["s"], ["t"]), node("Identity", ["d"], ["e"])],
                     (value("i", INT64, ()), value("d", BOOL, ()), value("s", FLOAT)), (value("e", BOOL), value("t", FLOAT)))
        loop = node("Loop", ["m", "", "p"], ["y"], attr_graph("body", body))
        yield form, simple([node("MatMul", ["x", "w"], ["p"]), loop],
                           (tensor("m", INT64, (), i64(1 << 62)), floats("w", 3, 64)), (x,), (value("y", FLOAT),))
    # one step that takes device ref minutes
    square = (4000, 4000)
    yield "heavy", simple([node("MatMul", ["x", "x"], ["y"])], ins=(value("x", FLOAT, square),), outs=(value("y", FLOAT, square),))
    # 32 kB of halves that are computed with in f32, and a constant of 64 kB that two numbers make
    grown = [node("Cast", ["h"], ["w"], attr_int("to", FLOAT)), node("MatMul", ["x", "w"], ["p"]),
             node("Expand", ["one", "dims"], ["ones"]), node("Add", ["p", "ones"], ["y"])]
    yield "grown", simple(grown, (tensor("h", FLOAT16, (128, 128), bytes(range(0, 60)) * 546 + bytes(8)),
                                  tensor("one", FLOAT, (1,), f32(2)), ints("dims", 128, 128)),
                          (value("x", FLOAT, (128, 128)),), (value("y", FLOAT, (128, 128)),))
    # a branch of two products beside a sum, and a product of as many numbers as it reads; weights between -1 and 1
    weights = [tensor(n, FLOAT, (16, k), f32(*(((i * 7919 + 31 * s) % 1000) / 500 - 1 for i in range(16 * k))))
               for s, (n, k) in enumerate((("a", 16), ("b", 16), ("c", 16), ("d", 4)), 1)]
    steps = [node("MatMul", ["x", "a"], ["p"]), node("Relu", ["p"], ["q"]), node("MatMul", ["q", "b"], ["r"]),
             node("Relu", ["r"], ["s"]), node("MatMul", ["s", "c"], ["t"]), node("Add", ["t", "q"], ["u"]),
             node("MatMul", ["u", "d"], ["y"])]
    yield "residual", simple(steps, weights, (value("x", FLOAT, ("N", 16)),), (value("y", FLOAT, ("N", 4)),))
    yield "permuted", simple([node("Transpose", ["x"], ["y"], attr_ints("perm", (1, 0)))], ins=(x,),
                             outs=(value("y", FLOAT, (3, "N")),))


def sets():
    """(path, bytes): outputs of relu for two inputs, the second set's with a mistake"""
    for n, (xs, ys) in enumerate([((-1, 2, 3), (0, 2, 3)), ((1, -5, 1, 0, 2, 2), (1, 0, 1, 0, 2, 2.5))]):
        dims = (len(xs) // 3, 3)
        yield f"sets/test_data_set_{n}/input_0.pb", pb(FLOAT, dims, f32(*xs))
        yield f"sets/test_data_set_{n}/output_0.pb", pb(FLOAT, dims, f32(*ys))
    yield "good/test_data_set_0/input_0.pb", pb(FLOAT, (1, 3), f32(-1, 2, 3))
    yield "good/test_data_set_0/output_0.pb", pb(FLOAT, (1, 3), f32(0, 2, 3))
    yield "good/model.onnx", b""
    yield "shape/input_0.pb", pb(FLOAT, (1, 3), f32(-1, 2, 3))
    yield "shape/output_0.pb", pb(FLOAT, (3,), f32(0, 2, 3))
    yield "type/input_0.pb", pb(FLOAT, (1, 3), f32(-1, 2, 3))
    yield "type/output_0.pb", pb(INT64, (1, 3), i64(0, 2, 3))
    yield "unjudged/input_0.pb", pb(FLOAT, (1, 3), f32(-1, 2, 3))
    yield "many/input_0.pb", pb(FLOAT, (1, 3), f32(-1, 2, 3))
    yield "many/input_1.pb", pb(FLOAT, (1, 3), f32(-1, 2, 3))
    yield "many/output_0.pb", pb(FLOAT, (1, 3), f32(0, 2, 3))
    yield "cut/input_0.pb", pb(FLOAT, (1, 3), f32(-1, 2, 3))[:-2]
    yield "cut/output_0.pb", pb(FLOAT, (1, 3), f32(0, 2, 3))


def main():
    out = sys.argv[1]
    files = [(name + ".onnx", data) for name, data in models()] + list(sets())
    for path, data in files:
        path = os.path.join(out, path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as f:
            f.write(data)


if __name__ == "__main__":
    main()
