#!/usr/bin/env python3
"""Make models with N of one thing: nodes in a row, inputs of one Sum, functions, names with a long prefix and others.

usage: many.py OUTDIR N [SHAPE...]

Reading, checking and planning them takes time in proportion to N, or they are refused at once. Standard library only.
"""
import os
import struct
import sys

from wire import (
    BOOL, FLOAT, INT64, X, Y, attr, attr_graph, attr_int, attr_ints, attr_string, attr_tensor, f32, floats, function,
    graph, i64, ints, model, msg, node, num, simple, sub, tensor, value,
)

SHAPES = {}
SCALAR = value("y", FLOAT)
PICK = ints("pick", 0)


def shape(make):
    """Register a maker of a model by its name, with - for _."""
    SHAPES[make.__name__.replace("_", "-")] = make
    return make


def chain(n, op="Relu", *attrs, more=(), first="x", last="y", name="v", **given):
    """n nodes one behind the other."""
    names = [first] + [f"{name}{i}" for i in range(n - 1)] + [last]
    return [node(op, [names[i], *more], [names[i + 1]], *attrs, name=f"{op}{i}", **given) for i in range(n)]


def relus(n):
    """n nodes that all read x."""
    return [node("Relu", ["x"], [f"v{i}"], name=f"n{i}") for i in range(n)]


def all_of(n, op="Sum", *attrs, name="v"):
    return node(op, [f"{name}{i}" for i in range(n)], ["y"], *attrs)


def weights(n, name="w"):
    """n different weights [1]."""
    return [tensor(f"{name}{i}", FLOAT, (1,), f32(i + 1)) for i in range(n)]


def numbers(name, vs):
    return attr(name, 7, *(num(8, v) for v in vs))


# ---- nodes -----------------------------------------------------------------------------------------------------------


@shape
def relu_chain(n):
    return simple(chain(n))


@shape
def exp_chain(n):
    return simple([node(("Exp", "Neg")[i % 2], [f"v{i}" if i else "x"], [f"v{i + 1}" if i < n - 1 else "y"])
                   for i in range(n)])


@shape
def reversed_chain(n):
    return simple(chain(n, "Sin")[::-1])


@shape
def identity_chain(n):
    return simple(chain(n, "Identity"))


@shape
def identity_fan(n):
    return simple([node("Identity", ["x"], [f"v{i}"], name=f"n{i}") for i in range(n)] + [all_of(n)])


@shape
def dead_nodes(n):
    return simple(relus(n) + [node("Neg", ["x"], ["y"])])


@shape
def dead_chain(n):
    return simple(chain(n, "Sin", last="dead") + [node("Neg", ["x"], ["y"])])


@shape
def equal_nodes(n):
    return simple(relus(n) + [all_of(n)])


@shape
def sums_of_weights(n):
    """x + w for n weights, all alive at once."""
    return simple([node("Add", ["x", f"w{i}"], [f"v{i}"], name=f"n{i}") for i in range(n)] + [all_of(n)], weights(n))


@shape
def concat_of_sums(n):
    nodes = [node("Add", ["x", f"w{i}"], [f"v{i}"], name=f"n{i}") for i in range(n)]
    return simple(nodes + [all_of(n, "Concat", attr_int("axis", 0))], weights(n))


@shape
def products(n):
    """x times n matrices, joined."""
    ws = [tensor(f"w{i}", FLOAT, (3, 1), f32(i, 1, 2)) for i in range(n)]
    nodes = [node("MatMul", ["x", f"w{i}"], [f"v{i}"], name=f"n{i}") for i in range(n)]
    return simple(nodes + [all_of(n, "Concat", attr_int("axis", 1))], ws)


@shape
def product_chain(n):
    ws = [tensor(f"w{i}", FLOAT, (3, 3), f32(*([i, 1, 2] * 3))) for i in range(n)]
    names = ["x"] + [f"v{i}" for i in range(n - 1)] + ["y"]
    return simple([node("MatMul", [names[i], f"w{i}"], [names[i + 1]], name=f"n{i}") for i in range(n)], ws)


@shape
def gemm_relu_chain(n):
    ws = [tensor("w", FLOAT, (3, 3), f32(*range(9))), tensor("b", FLOAT, (3,), f32(1, 2, 3))]
    nodes, last = [], "x"
    for i in range(n):
        nodes.append(node("Gemm", [last, "w", "b"], [f"g{i}"], name=f"g{i}"))
        last = f"r{i}" if i < n - 1 else "y"
        nodes.append(node("Relu", [f"g{i}"], [last], name=f"r{i}"))
    return simple(nodes, ws)


@shape
def conv_chain(n):
    x = value("x", FLOAT, (1, 2, 3, 3))
    ws = [tensor("w", FLOAT, (2, 2, 1, 1), f32(1, 2, 3, 4)), tensor("b", FLOAT, (2,), f32(1, 2))]
    return simple(chain(n, "Conv", more=("w", "b")), ws, (x,))


@shape
def conv_bn_chain(n):
    x = value("x", FLOAT, (1, 2, 3, 3))
    ws = [tensor("w", FLOAT, (2, 2, 1, 1), f32(1, 2, 3, 4))] + [tensor(k, FLOAT, (2,), f32(1, 2)) for k in "sbmv"]
    nodes, last = [], "x"
    for i in range(n // 2):
        nodes.append(node("Conv", [last, "w"], [f"c{i}"], name=f"c{i}"))
        last = f"n{i}" if i < n // 2 - 1 else "y"
        nodes.append(node("BatchNormalization", [f"c{i}", "s", "b", "m", "v"], [last], name=f"b{i}"))
    return simple(nodes, ws, (x,))


@shape
def add_chain(n):
    return simple(chain(n, "Add", more=("w",)), [floats("w", 3)])


@shape
def mul_add_chain(n):
    nodes = [node(("Mul", "Add")[i % 2], [f"v{i}" if i else "x", f"w{i}"], [f"v{i + 1}" if i < n - 1 else "y"])
             for i in range(n)]
    return simple(nodes, weights(n))


@shape
def add_tree(n):
    nodes, level, made = [], ["x"] * n, 0
    while len(level) > 1:
        nxt = []
        for i in range(0, len(level) - 1, 2):
            nxt.append(f"v{made}")
            nodes.append(node("Add", [level[i], level[i + 1]], [f"v{made}"], name=f"n{made}"))
            made += 1
        level = nxt + level[len(level) & ~1:]
    return simple(nodes + [node("Neg", [level[0]], ["y"])])


@shape
def skips(n):
    """Each node reads the one before and x."""
    return simple(chain(n, "Sub", more=("x",)))


@shape
def long_skips(n):
    """Node k and node n - k meet: half of all values are alive in the middle."""
    h = n // 2
    down = [node("Sin", [f"v{i - 1}" if i else "x"], [f"v{i}"], name=f"d{i}") for i in range(h)]
    up = [node("Sub", [f"u{i - 1}" if i else f"v{h - 1}", f"v{h - 1 - i}"], [f"u{i}" if i < h - 1 else "y"], name=f"u{i}")
          for i in range(h)]
    return simple(down + up)


@shape
def outputs(n):
    outs = [value(f"v{i}", FLOAT) for i in range(n)]
    return simple([node("Add", ["x", f"w{i}"], [f"v{i}"], name=f"n{i}") for i in range(n)], weights(n), outs=outs)


@shape
def graph_inputs(n):
    ins = [value(f"v{i}", FLOAT, (1,)) for i in range(n)]
    return simple([all_of(n)], ins=ins)


@shape
def sum_of_one(n):
    return simple([node("Sum", ["x"] * n, ["y"])])


@shape
def concat_of_one(n):
    return simple([node("Concat", ["x"] * n, ["y"], attr_int("axis", 0))])


@shape
def split(n):
    x = value("x", FLOAT, (n,))
    nodes = [node("Split", ["x"], [f"v{i}" for i in range(n)], attr_int("axis", 0), attr_int("num_outputs", n))]
    return simple(nodes + [all_of(n)], ins=(x,), opsets=((18, ""),))


@shape
def split_unnamed(n):
    x = value("x", FLOAT, (n,))
    nodes = [node("Split", ["x"], [""] * (n - 1) + ["y"], attr_int("axis", 0), attr_int("num_outputs", n))]
    return simple(nodes, ins=(x,), opsets=((18, ""),))


@shape
def split_relu_concat(n):
    x = value("x", FLOAT, (n,))
    nodes = [node("Split", ["x"], [f"s{i}" for i in range(n)], attr_int("axis", 0), attr_int("num_outputs", n))]
    nodes += [node("Relu", [f"s{i}"], [f"v{i}"], name=f"n{i}") for i in range(n)]
    return simple(nodes + [all_of(n, "Concat", attr_int("axis", 0))], ins=(x,), opsets=((18, ""),))


@shape
def slices(n):
    x = value("x", FLOAT, (n,))
    ws = [ints(f"i{k}", k) for k in range(n + 1)] + [ints("axis", 0)]
    nodes = [node("Slice", ["x", f"i{k}", f"i{k + 1}", "axis"], [f"v{k}"], name=f"n{k}") for k in range(n)]
    return simple(nodes + [all_of(n, "Concat", attr_int("axis", 0))], ws, (x,))


@shape
def gathers(n):
    x = value("x", FLOAT, (n,))
    ws = [tensor(f"i{k}", INT64, (), i64(k)) for k in range(n)]
    nodes = [node("Gather", ["x", f"i{k}"], [f"v{k}"], name=f"n{k}") for k in range(n)]
    return simple(nodes + [all_of(n)], ws, (x,))


@shape
def concat_chain(n):
    return simple(chain(n, "Concat", attr_int("axis", 0), more=("w",)), [tensor("w", FLOAT, (0, 3))])


@shape
def growing_concats(n):
    """Each Concat adds a row to the one before; a plan that copies has n * n rows."""
    m = min(n, 1000)
    return simple(chain(m, "Concat", attr_int("axis", 0), more=("x",)))


# ---- constants, shapes -----------------------------------------------------------------------------------------------


@shape
def initializers(n):
    return simple([node("Add", ["x", "w0"], ["y"])], weights(n))


@shape
def equal_initializers(n):
    ws = [tensor(f"w{i}", FLOAT, (1,), f32(1)) for i in range(n)]
    nodes = [node("Add", [f"v{i}" if i else "x", f"w{i}"], [f"v{i + 1}" if i < n - 1 else "y"]) for i in range(n)]
    return simple(nodes, ws)


@shape
def constants(n):
    nodes = [node("Constant", [], [f"v{i}"], attr_tensor("value", tensor("", FLOAT, (1,), f32(i))), name=f"n{i}")
             for i in range(n)]
    return simple(nodes + [all_of(n), node("Add", ["x", "y"], ["z"])], outs=(value("z", FLOAT),))


@shape
def folds(n):
    """n nodes of constants, one behind the other."""
    return simple(chain(n, "Sin", first="w", last="k") + [node("Add", ["x", "k"], ["y"])], [floats("w", 3)])


@shape
def reshapes(n):
    ws = [ints("s0", 3, 2), ints("s1", 2, 3)]
    nodes = [node("Reshape", [f"v{i}" if i else "x", f"s{i % 2}"], [f"v{i + 1}" if i < n - 1 else "y"], name=f"n{i}")
             for i in range(n)]
    return simple(nodes, ws)


@shape
def transposes(n):
    x = value("x", FLOAT, (2, 3, 4))
    nodes = [node(("Transpose", "Sin")[i % 2], [f"v{i}" if i else "x"], [f"v{i + 1}" if i < n - 1 else "y"],
                  *((attr_ints("perm", (1, 2, 0)),) if i % 2 == 0 else ()), name=f"n{i}") for i in range(n)]
    return simple(nodes, ins=(x,))


@shape
def transpose_chain(n):
    return simple(chain(n, "Transpose", attr_ints("perm", (1, 2, 0))), ins=(value("x", FLOAT, (2, 3, 4)),))


@shape
def transpose_fan(n):
    t = node("Transpose", ["x"], ["t"], attr_ints("perm", (1, 0)))
    nodes = [node("Add", ["t", f"w{i}"], [f"v{i}"], name=f"n{i}") for i in range(n)]
    return simple([t] + nodes + [all_of(n)], weights(n))


@shape
def casts(n):
    nodes = [node("Cast", [f"v{i}" if i else "x"], [f"v{i + 1}" if i < n - 1 else "y"], attr_int("to", (10, 1)[i % 2]),
                  name=f"n{i}") for i in range(n // 2 * 2)]
    return simple(nodes[:-1] + [node("Cast", [f"v{n // 2 * 2 - 1}"], ["y"], attr_int("to", 1))])


@shape
def unsqueezes(n):
    ws = [ints("a", 0)]
    nodes = [node(("Unsqueeze", "Squeeze")[i % 2], [f"v{i}" if i else "x", "a"], [f"v{i + 1}"], name=f"n{i}")
             for i in range(n)]
    return simple(nodes + [node("Identity", [f"v{n}"], ["y"])], ws)


@shape
def pads(n):
    return simple(chain(n, "Pad", more=("p",)), [ints("p", 0, 0, 0, 0)])


@shape
def shape_arithmetic(n):
    """Shape, Gather, Concat, Reshape, as exporters write them."""
    nodes, last = [], "x"
    for i in range(n // 4):
        nodes += [node("Shape", [last], [f"s{i}"], name=f"s{i}"),
                  node("Gather", [f"s{i}", "zero"], [f"g{i}"], name=f"g{i}"),
                  node("Concat", [f"g{i}", "rest"], [f"c{i}"], attr_int("axis", 0), name=f"c{i}"),
                  node("Reshape", [last, f"c{i}"], [f"r{i}"], name=f"r{i}")]
        last = f"r{i}"
    return simple(nodes + [node("Neg", [last], ["y"])], [ints("zero", 0), ints("rest", -1)],
                  (value("x", FLOAT, ("N", 3)),))


@shape
def symbols(n):
    """n inputs of n free lengths, joined: the result's length is a sum of n symbols."""
    ins = [value(f"v{i}", FLOAT, (f"N{i}", 2)) for i in range(n)]
    return simple([all_of(n, "Concat", attr_int("axis", 0))], ins=ins)


@shape
def symbol_chain(n):
    """As above, two by two: sums of 2, 3, ... n symbols."""
    m = min(n, 20000)
    ins = [value(f"x{i}", FLOAT, (f"N{i}", 2)) for i in range(m + 1)]
    nodes = [node("Concat", [f"v{i}" if i else "x0", f"x{i + 1}"], [f"v{i + 1}" if i < m - 1 else "y"],
                  attr_int("axis", 0), name=f"n{i}") for i in range(m)]
    return simple(nodes, ins=ins)


@shape
def symbol_products(n):
    """Lengths (A0 + B0) (A1 + B1) ...: 2 to the power of the number of factors, written out."""
    m = min(n, 64)
    ins = [v for i in range(m) for v in (value(f"a{i}", FLOAT, (f"A{i}",)), value(f"b{i}", FLOAT, (f"B{i}",)))]
    nodes, last = [], None
    for i in range(m):
        nodes.append(node("Concat", [f"a{i}", f"b{i}"], [f"c{i}"], attr_int("axis", 0), name=f"c{i}"))
        if last is None:
            last = f"c{i}"
            continue
        nodes.append(node("Unsqueeze", [last, "one"], [f"u{i}"], name=f"u{i}"))
        nodes.append(node("Mul", [f"u{i}", f"c{i}"], [f"m{i}"], name=f"m{i}"))
        nodes.append(node("Reshape", [f"m{i}", "flat"], [f"f{i}"], name=f"f{i}"))
        last = f"f{i}"
    return simple(nodes + [node("Neg", [last], ["y"])], [ints("one", 1), ints("flat", -1)], ins)


@shape
def einsum(n):
    m = min(n, 40)
    letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
    eq = ",".join(letters[i] + letters[i + 1] for i in range(m)) + "->" + letters[0] + letters[m]
    return simple([node("Einsum", ["x"] * m, ["y"], attr_string("equation", eq))], ins=(value("x", FLOAT, (2, 2)),))


@shape
def einsum_many(n):
    eq = ",".join(["ab"] * n) + "->ab"
    return simple([node("Einsum", ["x"] * n, ["y"], attr_string("equation", eq))])


@shape
def dynamic(n):
    """Shapes that depend on elements, one behind the other."""
    m = min(n, 2000)
    return simple(chain(m, "Compress", attr_int("axis", 0), more=("c",)), [tensor("c", BOOL, (2,), b"\1\1")])


# ---- graphs in graphs ------------------------------------------------------------------------------------------------

DEEP = 32  # graphs in graphs: messages 100 deep are read
COND = tensor("cond", BOOL, (), b"\1")
OUT = value("o", FLOAT)


def branch(nodes, name="b", outs=(OUT,)):
    return graph(nodes, outs=outs, name=name)


@shape
def nested_if(n):
    g = branch([node("Relu", ["x"], ["o"])])
    for _ in range(min(n, DEEP) - 1):
        leaf = branch([node("Neg", ["x"], ["o"])])
        g = branch([node("If", ["c"], ["o"], attr_graph("then_branch", g), attr_graph("else_branch", leaf))])
    leaf = branch([node("Neg", ["x"], ["o"])])
    top = node("If", ["c"], ["y"], attr_graph("then_branch", g), attr_graph("else_branch", leaf))
    return simple([top], ins=(X, value("c", BOOL, ())))


@shape
def nested_if_constant(n):
    g = branch([node("Relu", ["x"], ["o"])])
    for _ in range(min(n, DEEP) - 1):
        leaf = branch([node("Neg", ["x"], ["o"])])
        g = branch([node("If", ["cond"], ["o"], attr_graph("then_branch", g), attr_graph("else_branch", leaf))])
    leaf = branch([node("Neg", ["x"], ["o"])])
    return simple([node("If", ["cond"], ["y"], attr_graph("then_branch", g), attr_graph("else_branch", leaf))], [COND])


@shape
def nested_if_wide(n):
    """As deep, with nodes of the outermost graph used in all of them."""
    d = min(n, DEEP)
    per = max(n // d, 1)

    def body(k, last):
        return [node("Sin", [f"v{i}"], [f"o{k}_{i}"], name=f"n{k}_{i}") for i in range(per)] + \
            [node("Sum", [f"o{k}_{i}" for i in range(per)] + ["x"], [last], name=f"s{k}")]

    g = branch(body(0, "o"))
    for k in range(1, d):
        leaf = branch([node("Neg", ["x"], ["o"])])
        nodes = body(k, f"p{k}")
        nodes.append(node("If", ["c"], [f"q{k}"], attr_graph("then_branch", g), attr_graph("else_branch", leaf), name=f"i{k}"))
        g = branch(nodes + [node("Add", [f"p{k}", f"q{k}"], ["o"], name=f"a{k}")])
    leaf = branch([node("Neg", ["x"], ["o"])])
    nodes = [node("Add", ["x", f"w{i}"], [f"v{i}"], name=f"v{i}") for i in range(per)]
    nodes.append(node("If", ["c"], ["y"], attr_graph("then_branch", g), attr_graph("else_branch", leaf)))
    return simple(nodes, weights(per), ins=(X, value("c", BOOL, ())))


@shape
def nested_loops(n):
    """Loops in loops, each of which runs once."""
    d = min(n, DEEP)
    g = [node("Relu", ["s"], ["t"], name="r")]
    for k in range(d):
        body = graph(g + [node("Identity", ["d"], ["e"], name="i")],
                     (value("i", INT64, ()), value("d", BOOL, ()), value("s", FLOAT)), (value("e", BOOL), value("t", FLOAT)))
        ins, out = (["m", "", "s"], "t") if k < d - 1 else (["m", "", "x"], "y")
        g = [node("Loop", ins, [out], attr_graph("body", body), name=f"l{k}")]
    return simple(g, [tensor("m", INT64, (), i64(1))])


@shape
def ifs(n):
    """n Ifs one behind the other, each capturing what is in front of it."""
    nodes, last = [], "x"
    for i in range(n):
        t, e = branch([node("Relu", [last], ["o"])]), branch([node("Neg", [last], ["o"])])
        last = f"v{i}" if i < n - 1 else "y"
        nodes.append(node("If", ["c"], [last], attr_graph("then_branch", t), attr_graph("else_branch", e), name=f"n{i}"))
    return simple(nodes, ins=(X, value("c", BOOL, ())))


@shape
def if_captures(n):
    """One If that captures n values."""
    t, e = branch([all_of_into(n, "o")]), branch([node("Neg", ["x"], ["o"])])
    nodes = [node("Add", ["x", f"w{i}"], [f"v{i}"], name=f"n{i}") for i in range(n)]
    nodes.append(node("If", ["c"], ["y"], attr_graph("then_branch", t), attr_graph("else_branch", e)))
    return simple(nodes, weights(n), ins=(X, value("c", BOOL, ())))


def all_of_into(n, out, op="Sum", name="v"):
    return node(op, [f"{name}{i}" for i in range(n)], [out])


@shape
def if_outputs(n):
    outs = [value(f"o{i}", FLOAT) for i in range(n)]
    t = branch([node("Add", ["x", f"w{i}"], [f"o{i}"], name=f"n{i}") for i in range(n)], outs=outs)
    e = branch([node("Sub", ["x", f"w{i}"], [f"o{i}"], name=f"n{i}") for i in range(n)], outs=outs)
    nodes = [node("If", ["c"], [f"v{i}" for i in range(n)], attr_graph("then_branch", t), attr_graph("else_branch", e))]
    return simple(nodes + [all_of(n)], weights(n), ins=(X, value("c", BOOL, ())))


@shape
def if_long(n):
    """An If with n nodes in a branch."""
    t = branch(chain(n, "Sin", last="o"))
    e = branch([node("Neg", ["x"], ["o"])])
    top = node("If", ["c"], ["y"], attr_graph("then_branch", t), attr_graph("else_branch", e))
    return simple([top], ins=(X, value("c", BOOL, ())))


@shape
def loop_states(n):
    """A Loop that carries n values, twice around."""
    ins = [value("i", INT64, ()), value("d", BOOL, ())] + [value(f"s{k}", FLOAT, (2, 3)) for k in range(n)]
    outs = [value("e", BOOL)] + [value(f"t{k}", FLOAT) for k in range(n)]
    nodes = [node("Sin", [f"s{k}"], [f"t{k}"], name=f"n{k}") for k in range(n)] + [node("Identity", ["d"], ["e"])]
    loop = node("Loop", ["m", ""] + ["x"] * n, [f"v{k}" for k in range(n)], attr_graph("body", graph(nodes, ins, outs)))
    return simple([loop, all_of(n)], [tensor("m", INT64, (), i64(2))])


@shape
def loop_idle_states(n):
    """The same, of values that nothing changes."""
    ins = [value("i", INT64, ()), value("d", BOOL, ())] + [value(f"s{k}", FLOAT, (2, 3)) for k in range(n)]
    outs = [value("e", BOOL)] + [value(f"s{k}", FLOAT) for k in range(n)]
    nodes = [node("Identity", ["d"], ["e"])]
    loop = node("Loop", ["m", ""] + ["x"] * n, [f"v{k}" for k in range(n)], attr_graph("body", graph(nodes, ins, outs)))
    return simple([loop, all_of(n)], [tensor("m", INT64, (), i64(2))])


@shape
def loop_captures(n):
    nodes = [node("Sum", [f"v{i}" for i in range(n)] + ["s"], ["t"]), node("Identity", ["d"], ["e"])]
    body = graph(nodes, (value("i", INT64, ()), value("d", BOOL, ()), value("s", FLOAT)),
                 (value("e", BOOL), value("t", FLOAT)))
    before = [node("Add", ["x", f"w{i}"], [f"v{i}"], name=f"n{i}") for i in range(n)]
    return simple(before + [node("Loop", ["m", "", "x"], ["y"], attr_graph("body", body))],
                  weights(n) + [tensor("m", INT64, (), i64(2))])


@shape
def scan_states(n):
    ins = [value(f"s{k}", FLOAT, (2, 3)) for k in range(n)] + [value("r", FLOAT)]
    outs = [value(f"t{k}", FLOAT) for k in range(n)]
    nodes = [node("Add", [f"s{k}", "r"], [f"t{k}"], name=f"n{k}") for k in range(n)]
    scan = node("Scan", ["x"] * (n + 1), [f"v{k}" for k in range(n)], attr_graph("body", graph(nodes, ins, outs)),
                attr_int("num_scan_inputs", 1))
    return simple([scan, all_of(n)])


# ---- functions -------------------------------------------------------------------------------------------------------

IMPORTS = ((17, ""), (1, "f"))


def relu_function(name, op="Relu", domain=None):
    return sub(25, function(name, "f", ["a"], ["b"], [node(op, ["a"], ["b"], domain=domain)], IMPORTS))


@shape
def functions(n):
    """n functions, one call each."""
    fs = b"".join(relu_function(f"f{i}", "Sin") for i in range(n))
    nodes = [node(f"f{i}", [f"v{i}" if i else "x"], [f"v{i + 1}" if i < n - 1 else "y"], domain="f") for i in range(n)]
    return simple(nodes, opsets=IMPORTS, top=fs)


@shape
def idle_functions(n):
    return simple([node("Relu", ["x"], ["y"])], opsets=IMPORTS, top=b"".join(relu_function(f"f{i}") for i in range(n)))


@shape
def function_chain(n):
    """Each function calls the one before."""
    fs = b"".join(relu_function(f"f{i}", f"f{i - 1}" if i else "Sin", "f" if i else None) for i in range(n))
    return simple([node(f"f{n - 1}", ["x"], ["y"], domain="f")], opsets=IMPORTS, top=fs)


@shape
def calls(n):
    """n calls of one function."""
    return simple(chain(n, "f", domain="f"), opsets=IMPORTS, top=relu_function("f", "Sin"))


@shape
def long_function(n):
    f = sub(25, function("f", "f", ["x"], ["y"], chain(n, "Sin"), IMPORTS))
    return simple([node("f", ["x"], ["y"], domain="f")], opsets=IMPORTS, top=f)


@shape
def opset_imports(n):
    return simple([node("Relu", ["x"], ["y"])], opsets=((17, ""),) + tuple((1, f"d{i}") for i in range(n)))


@shape
def used_opset_imports(n):
    fs = b"".join(sub(25, function("f", f"d{i}", ["a"], ["b"], [node("Sin", ["a"], ["b"])], ((17, ""),)))
                  for i in range(n))
    nodes = [node("f", [f"v{i}" if i else "x"], [f"v{i + 1}" if i < n - 1 else "y"], domain=f"d{i}") for i in range(n)]
    return simple(nodes, opsets=((17, ""),) + tuple((1, f"d{i}") for i in range(n)), top=fs)


@shape
def function_opsets(n):
    """A function that imports n domains and has n nodes."""
    f = sub(25, function("f", "f", ["x"], ["y"], chain(n, "Sin"), ((17, ""),) + tuple((1, f"d{i}") for i in range(n))))
    return simple([node("f", ["x"], ["y"], domain="f")], opsets=IMPORTS, top=f)


@shape
def doubling_functions(n):
    """Each function calls the one before twice: 2 to the power of their number."""
    m = min(n, 40)
    fs = [relu_function("f0")]
    for i in range(1, m):
        nodes = [node(f"f{i - 1}", ["a"], ["t"], domain="f"), node(f"f{i - 1}", ["t"], ["b"], domain="f")]
        fs.append(sub(25, function(f"f{i}", "f", ["a"], ["b"], nodes, IMPORTS)))
    return simple([node(f"f{m - 1}", ["x"], ["y"], domain="f")], opsets=IMPORTS, top=b"".join(fs))


@shape
def function_in_if(n):
    """A function that calls itself in both branches of an If."""
    t = branch([node("r", ["a"], ["o"], domain="f")])
    nodes = [node("Constant", [], ["k"], attr_tensor("value", COND)),
             node("If", ["k"], ["b"], attr_graph("then_branch", t), attr_graph("else_branch", t))]
    f = sub(25, function("r", "f", ["a"], ["b"], nodes, IMPORTS))
    return simple([node("r", ["x"], ["y"], domain="f")], opsets=IMPORTS, top=f)


# ---- names, texts, declarations --------------------------------------------------------------------------------------


@shape
def long_names(n):
    m = max(n // 20, 2)
    return simple(chain(m, "Sin", name="layer/" * 60))


@shape
def equal_names(n):
    """All nodes have one name."""
    names = ["x"] + [f"v{i}" for i in range(n - 1)] + ["y"]
    return simple([node("Sin", [names[i]], [names[i + 1]], name="same") for i in range(n)])


@shape
def infos(n):
    return simple(chain(n, "Sin"), extra=b"".join(sub(13, value(f"v{i}", FLOAT, (2, 3))) for i in range(n - 1)))


@shape
def idle_infos(n):
    return simple([node("Relu", ["x"], ["y"])], extra=b"".join(sub(13, value(f"v{i}", FLOAT, (2, 3))) for i in range(n)))


@shape
def infos_of_dead(n):
    return simple(relus(n) + [node("Neg", ["x"], ["y"])],
                  extra=b"".join(sub(13, value(f"v{i}", FLOAT, (2, 3))) for i in range(n)))


@shape
def metadata(n):
    return simple([node("Relu", ["x"], ["y"])], top=b"".join(sub(14, sub(1, f"k{i}") + sub(2, "v")) for i in range(n)))


@shape
def attributes(n):
    attrs = [attr_int(f"a{i}", i) for i in range(n)]
    return simple([node("Relu", ["x"], ["y"], *attrs)])


@shape
def function_attributes(n):
    f = sub(25, msg(function("f", "f", ["a"], ["b"], [node("Sin", ["a"], ["b"])], IMPORTS),
                    *(sub(6, f"a{i}") for i in range(n))))
    call = node("f", ["x"], ["y"], *(attr_int(f"a{i}", i) for i in range(n)), domain="f")
    return simple([call], opsets=IMPORTS, top=f)


@shape
def attribute_list(n):
    return simple([node("Constant", [], ["c"], attr("value_ints", 7, *(num(8, i) for i in range(n)))),
                   node("Cast", ["c"], ["d"], attr_int("to", 1)), node("ReduceSum", ["d"], ["s"]),
                   node("Add", ["x", "s"], ["y"])])


@shape
def strings(n):
    return simple([node("Constant", [], ["y"], attr("value_strings", 8, *(sub(9, f"s{i}") for i in range(n))))],
                  outs=(value("y", 8),))


@shape
def attribute_graphs(n):
    """A node of an operator unknown to anybody with n graphs in one attribute."""
    g = sub(11, graph([node("Relu", ["x"], ["o"])], outs=(OUT,)))
    return simple([node("Odd", ["x"], ["y"], attr("graphs", 10, g * n), domain="f")], opsets=IMPORTS)


@shape
def annotations(n):
    q = b"".join(sub(14, sub(1, f"v{i}") + sub(2, sub(1, "SCALE_TENSOR") + sub(2, "w0"))) for i in range(n))
    return simple(chain(n, "Sin"), weights(1), extra=q)


@shape
def unknown_fields(n):
    return simple([node("Relu", ["x"], ["y"])], top=sub(9001, "later") * n)


@shape
def sparse(n):
    s = b"".join(sub(15, sub(1, tensor(f"w{i}", FLOAT, (1,), f32(i))) + sub(2, tensor("", INT64, (1,), i64(0))) + num(3, 1))
                 for i in range(n))
    nodes = [node("Add", [f"v{i}" if i else "x", f"w{i}"], [f"v{i + 1}" if i < n - 1 else "y"]) for i in range(n)]
    return simple(nodes, extra=s)


# ---- more operators --------------------------------------------------------------------------------------------------


@shape
def qdq_chain(n):
    ws = [tensor("s", FLOAT, (), f32(0.1)), tensor("z", 2, (), b"\x80")]
    nodes, last = [], "x"
    for i in range(n // 3):
        nodes += [node("QuantizeLinear", [last, "s", "z"], [f"q{i}"], name=f"q{i}"),
                  node("DequantizeLinear", [f"q{i}", "s", "z"], [f"d{i}"], name=f"d{i}"),
                  node("Relu", [f"d{i}"], [f"r{i}"], name=f"r{i}")]
        last = f"r{i}"
    return simple(nodes + [node("Identity", [last], ["y"])], ws)


@shape
def sequence(n):
    return simple([node("Identity", ["x"], [f"v{i}"], name=f"n{i}") for i in range(n)] +
                  [node("SequenceConstruct", [f"v{i}" for i in range(n)], ["q"]),
                   node("ConcatFromSequence", ["q"], ["y"], attr_int("axis", 0))])


@shape
def sequence_inserts(n):
    m = min(n, 2000)
    nodes = [node("SequenceEmpty", [], ["q0"])]
    nodes += [node("SequenceInsert", [f"q{i}", "x"], [f"q{i + 1}"], name=f"n{i}") for i in range(m)]
    return simple(nodes + [node("ConcatFromSequence", [f"q{m}"], ["y"], attr_int("axis", 0))])


@shape
def softmaxes(n):
    """Softmax spelled out, again and again."""
    nodes, last = [], "x"
    for i in range(n // 5):
        nodes += [node("ReduceMax", [last], [f"m{i}"], attr_ints("axes", (1,)), name=f"m{i}"),
                  node("Sub", [last, f"m{i}"], [f"d{i}"], name=f"d{i}"), node("Exp", [f"d{i}"], [f"e{i}"], name=f"e{i}"),
                  node("ReduceSum", [f"e{i}", "one"], [f"s{i}"], name=f"s{i}"),
                  node("Div", [f"e{i}", f"s{i}"], [f"v{i}"], name=f"v{i}")]
        last = f"v{i}"
    return simple(nodes + [node("Neg", [last], ["y"])], [ints("one", 1)])


@shape
def lstms(n):
    m = n // 20
    ws = [tensor("w", FLOAT, (1, 8, 2), f32(*range(16))), tensor("r", FLOAT, (1, 8, 2), f32(*range(16)))]
    nodes, last = [], "x"
    for i in range(m):
        nodes += [node("LSTM", [last, "w", "r"], [f"o{i}"], attr_int("hidden_size", 2), name=f"o{i}"),
                  node("Squeeze", [f"o{i}", "one"], [f"v{i}"], name=f"v{i}")]
        last = f"v{i}"
    return simple(nodes + [node("Neg", [last], ["y"])], ws + [ints("one", 1)], (value("x", FLOAT, (1, 1, 2)),))


def main():
    folder, n = sys.argv[1], int(sys.argv[2])
    os.makedirs(folder, exist_ok=True)
    for name in sys.argv[3:] or SHAPES:
        with open(f"{folder}/{name}.onnx", "wb") as f:
            f.write(SHAPES[name](n))


main()
