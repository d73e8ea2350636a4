#!/usr/bin/env python3
"""Make bad and hostile models: what a hone tool must survive, refuse, and explain in one sentence.

usage: bad_models.py OUTDIR

Writes the models and OUTDIR/index.json, a list of

  {"file": path in OUTDIR, "status": [exit statuses that are right], "names": [...], "what": one line}

where the message on stderr must contain one of `names` (empty: any message). Status 0 alone marks a good model that
shows that the harness works; 0 beside others means that both answers are fine and only a crash, a hang or a huge
allocation is wrong. Every model has at most one input, `x`, so that `--data random` can run it. Each run writes the
same bytes.
"""

import json
import os
import random
import sys

import wire
from bad_nodes import attributes, shapes
from wire import (
    BOOL,
    FLOAT,
    INT64,
    MAX,
    STRING,
    X,
    Y,
    attr_graph,
    attr_int,
    attr_tensor,
    external,
    f32,
    floats,
    graph,
    i64,
    ints,
    model,
    msg,
    node,
    num,
    one,
    opset,
    simple,
    sub,
    tensor,
    value,
)


def nested(depth):
    """If in If in If, `depth` of them. Built from both ends: joining level by level would take quadratic time."""
    other = graph([node("Identity", ["x"], ["e"])], (), (value("e", FLOAT, (2, 3)),))
    core = graph([node("Relu", ["x"], ["t"])], (), (value("t", FLOAT, (2, 3)),))
    before, after, size = [], [core], len(core)
    rest = sub(5, attr_graph("else_branch", other))
    for level in range(depth):
        out = "y" if level == depth - 1 else "t"
        tail = num(20, wire.ATTR_GRAPH)
        start = sub(1, "then_branch") + wire.head(6, size)
        attr_size = len(start) + size + len(tail)
        lead = sub(1, "c") + sub(2, out) + sub(3, f"if{level}") + sub(4, "If") + wire.head(5, attr_size) + start
        end = tail + rest
        node_size = len(lead) + size + len(end)
        lead = wire.head(1, node_size) + lead
        end += sub(2, "g") + sub(12, value(out, FLOAT, (2, 3)))
        if level == depth - 1:
            end += sub(5, tensor("c", BOOL, (), b"\1")) + sub(11, X)
        before.append(lead)
        after.append(end)
        size += len(lead) + len(end)
    body = b"".join(reversed(before)) + b"".join(after)
    return model(body)


def nested_types(depth):
    """sequence(sequence(... f32)): TypeProto holds itself."""
    t = wire.tensor_type(FLOAT, (1,))
    heads, size = [], len(t)
    for _ in range(depth):
        inner = wire.head(1, size)  # Sequence.elem_type
        outer = wire.head(4, len(inner) + size)  # TypeProto.sequence_type
        heads.append(outer + inner)
        size += len(heads[-1])
    t = b"".join(reversed(heads)) + t
    return simple([node("Relu", ["x"], ["y"])], extra=sub(13, sub(1, "s") + sub(2, t)))


class Cases:
    def __init__(self, out):
        self.out = out
        self.index = []

    def add(self, file, status, what, data, names=()):
        """`status` is a number or several; `names` a string or several."""
        path = os.path.join(self.out, file)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as f:
            f.write(data)
        self.index.append(
            {
                "file": file,
                "status": [status] if isinstance(status, int) else list(status),
                "names": [names] if isinstance(names, str) else list(names),
                "what": what,
            }
        )


def good(c):
    """Models that are right; ONNX's own checker agrees."""
    y = (value("y", FLOAT, (2, 3)),)

    def add(name, what, data):
        c.add(f"good/{name}.onnx", 0, what, data)

    relu = node("Relu", ["x"], ["y"])
    add("relu", "one node", simple([relu], outs=y))
    add("add", "one weight", simple([node("Add", ["x", "w"], ["y"])], [floats("w", 3)], outs=y))
    add("no-nodes", "no nodes: the weight is the output", simple([], [floats("y", 2, 3)], outs=y))
    add("nested-20", "If nested 20 deep", nested(20))
    none = tensor("w", FLOAT, (0, 3), b"")
    concat = node("Concat", ["x", "w"], ["y"], attr_int("axis", 0))
    add("empty-weight", "a weight of no elements", simple([concat], [none], outs=y))
    call = node("Twice", ["x"], ["y"], domain="local")
    twice = wire.function("Twice", "local", ["a"], ["b"], [node("Add", ["a", "a"], ["b"])], [(17, "")])
    imports = ((17, ""), (1, "local"))
    add("function", "a call of a function", simple([call], outs=y, opsets=imports, top=sub(25, twice)))
    add("unknown-field", "a field that no version of the format has", simple([relu], outs=y, top=sub(9999, "later")))


def bytes_(c):
    """Files that are no model, or half of one."""
    whole = simple(
        [node("Add", ["x", "w"], ["m"]), node("Relu", ["m"], ["y"])],
        [floats("w", 64, 3)],
        (value("x", FLOAT, (64, 3)),),
    )
    c.add("good/whole.onnx", 0, "what truncated/* are cut from", whole)
    n = len(whole)
    for cut in sorted({1, 2, 3, 10, 17, 19, 20, n // 4, n // 2, 3 * n // 4, n - 7, n - 6, n - 4, n - 1}):
        c.add(f"truncated/{cut}.onnx", 1, f"first {cut} of {n} bytes", whole[:cut], f"{cut}.onnx")
    c.add("bytes/empty.onnx", 1, "no bytes at all", b"", "empty.onnx")
    rng = random.Random(1)
    for size in (1, 7, 100, 4096, 65536):
        c.add(f"bytes/noise-{size}.onnx", 1, f"{size} random bytes", rng.randbytes(size), f"noise-{size}.onnx")
    for name, what, data in (
        ("zeros", "4096 zero bytes", bytes(4096)),
        ("ones", "4096 bytes of 255", b"\xff" * 4096),
        ("text", "a text file", b"This is not a model.\n" * 20),
        ("html", "what a failed download leaves", b"<!DOCTYPE html><html><body>404: Not Found</body></html>\n"),
        (
            "lfs",
            "a Git LFS pointer",
            b"version https://git-lfs.github.com/spec/v1\noid sha256:" + b"0" * 64 + b"\nsize 9\n",
        ),
        ("zip", "a zip archive's first bytes", b"PK\3\4\x14\0\0\0\0\0" + bytes(60)),
        ("tensor", "a tensor file, not a model", floats("x", 2, 3)),
        ("no-graph", "a model without graph", num(1, 8) + sub(8, opset(17))),
        ("long-length", "a length of 2^40 in a short file", num(1, 8) + wire.head(7, 1 << 40) + b"abc"),
        ("wrapping-length", "a length of 2^64 - 1", num(1, 8) + wire.head(7, -1) + b"abc"),
        ("endless-varint", "a varint of 100 bytes", b"\x08" + b"\xff" * 100),
        ("field-0", "field number 0", num(1, 8) + b"\x02\x01a" + sub(7, graph([]))),
        ("wire-type-7", "a wire type that does not exist", num(1, 8) + b"\x3f\x01a"),
        ("graph-is-number", "the graph as a varint", num(1, 8) + num(7, 3) + sub(8, opset(17))),
        ("unclosed-group", "a group that never ends", whole + wire.key(999, 3) + num(1, 1)),
        ("unopened-group", "the end of a group that never began", whole + wire.key(999, 4)),
        ("deep-groups", "10,000 groups in each other", whole + wire.key(999, 3) * 10000 + wire.key(999, 4) * 10000),
    ):
        c.add(f"bytes/{name}.onnx", 1, what, data, f"{name}.onnx")
    # A 2 byte field unpacks to a structure of a hundred bytes and more.
    c.add("bytes/many-nodes.onnx", (1, 4, 6), "300,000 empty nodes in 600 kB", model(sub(1, b"") * 300000 + sub(12, Y)))
    c.add(
        "bytes/two-graphs.onnx",
        (0, 1),
        "the field `graph` twice",
        model(graph([node("Relu", ["x"], ["y"])], [X], [Y]), extra=sub(7, sub(2, "again"))),
    )
    c.add("bytes/nested-10000.onnx", 1, "If nested 10,000 deep", nested(10000), "nested-10000.onnx")
    c.add("bytes/nested-types.onnx", 1, "a sequence type nested 10,000 deep", nested_types(10000), "nested-types.onnx")


def graphs(c):
    """Graphs that break the rules of a graph."""
    relu = node("Relu", ["x"], ["y"])

    def add(name, what, *args, names=(), status=1, **more):
        c.add(f"graph/{name}.onnx", status, what, simple(*args, **more), names)

    add(
        "cycle",
        "two nodes that wait for each other",
        [node("Add", ["x", "b"], ["y"]), node("Relu", ["y"], ["b"])],
        names=("add", "relu", "'y'", "'b'"),
    )
    add("self-cycle", "a node that reads its own output", [node("Add", ["x", "y"], ["y"])], names=("add", "'y'"))
    ring = [node("Relu", [f"v{(k + 1) % 5000}"], [f"v{k}"], name=f"n{k}") for k in range(5000)]
    add("long-cycle", "a cycle of 5,000 nodes", [relu] + ring, names=("n", "v"))
    add(
        "unsorted",
        "nodes in the wrong order: sorting them is fine, too",
        [node("Relu", ["m"], ["y"]), node("Add", ["x", "x"], ["m"])],
        names=("relu", "'m'"),
        status=(0, 1),
    )
    add("undefined", "a node reads a value that nothing makes", [node("Add", ["x", "ghost"], ["y"])], names="ghost")
    add("undefined-output", "a graph output that nothing makes", [relu], outs=(Y, value("ghost", FLOAT)), names="ghost")
    add("no-nodes", "no nodes, and nothing makes the output", [], names="'y'")
    add(
        "two-producers",
        "two nodes make the same value",
        [relu, node("Abs", ["x"], ["y"])],
        names=("'y'", "abs", "relu"),
    )
    add(
        "output-twice",
        "one node makes a value twice",
        [node("Split", ["x"], ["y", "y"], attr_int("axis", 1), name="bad")],
        names=("'y'", "'bad'"),
    )
    add("produces-input", "a node makes the graph's input", [node("Relu", ["x"], ["x"]), relu], names=("'x'", "relu"))
    add(
        "produces-weight",
        "a node makes a weight",
        [node("Relu", ["x"], ["w"]), relu],
        [floats("w", 2)],
        names=("'w'", "relu"),
    )
    add("input-twice", "two graph inputs of one name", [relu], ins=(X, X), names="'x'")
    add(
        "weight-twice",
        "two weights of one name",
        [node("Add", ["x", "w"], ["y"])],
        [floats("w", 3), floats("w", 1)],
        names="'w'",
    )
    add("weight-unnamed", "a weight without a name", [relu], [floats("", 3)], status=(0, 1))
    add("absent-input", "an input that must be there is left out", [node("Add", ["x", ""], ["y"])], names="add")
    add("too-few-inputs", "Add of one", [node("Add", ["x"], ["y"])], names="add")
    add("too-many-inputs", "Relu of two", [node("Relu", ["x", "x"], ["y"])], names="relu")
    add("too-many-outputs", "Relu with two outputs", [node("Relu", ["x"], ["y", "z"])], names="relu")
    add("no-op-type", "a node without operator", [node("", ["x"], ["y"], name="bad")], status=(1, 4))
    add("untyped-input", "a graph input without a type", [relu], ins=(sub(1, "x"),), names="'x'", status=(0, 1, 4))
    add(
        "negative-input",
        "a graph input of -3 rows",
        [relu],
        ins=(value("x", FLOAT, (-3, 3)),),
        names="'x'",
        status=(0, 1),
    )
    add(
        "contradiction",
        "the output is declared i64 and is f32",
        [relu],
        outs=(value("y", INT64, (2, 3)),),
        names=("'y'", "relu"),
    )
    evil = "ghost\n\x1b[31mERROR\x07"
    add(
        "control-characters",
        "the value that nothing makes has a name of control characters",
        [node("Add", ["x", evil], ["y"])],
        names=("ghost", "add"),
    )
    add(
        "long-name",
        "the value that nothing makes has a name of 1 MB",
        [node("Add", ["x", "g" * 1000000], ["y"])],
        names=("ggg", "add"),
    )
    add("bad-utf8", "a name that is not UTF-8", [node("Relu", ["x"], [b"\xff\xfe"], name="odd"), relu], status=(0, 1))

    def branch(g, cond=tensor("c", BOOL, (), b"\1"), other=None, both=True):
        attrs = [attr_graph("then_branch", g)]
        if both:
            attrs.append(
                attr_graph(
                    "else_branch", other or graph([node("Relu", ["x"], ["e"])], (), (value("e", FLOAT, (2, 3)),))
                )
            )
        return [node("If", ["c"], ["y"], *attrs, name="bad")], [cond]

    out = (value("t", FLOAT, (2, 3)),)
    fine = graph([node("Relu", ["x"], ["t"])], (), out)
    add(
        "branch-undefined",
        "a branch reads a value that nothing makes",
        *branch(graph([node("Add", ["x", "ghost"], ["t"])], (), out)),
        names="ghost",
    )
    add(
        "branch-sibling",
        "a branch reads a value of the other branch",
        *branch(fine, other=graph([node("Abs", ["t"], ["e"])], (), (value("e", FLOAT, (2, 3)),))),
        names=("'t'", "abs"),
    )
    loop = [node("Relu", ["u"], ["t"]), node("Abs", ["t"], ["u"])]
    add("branch-cycle", "a cycle within a branch", *branch(graph(loop, (), out)), names=("'t'", "'u'", "relu", "abs"))
    add("branch-missing", "If without else_branch", *branch(fine, both=False), names=("'bad'", "else_branch"))
    add(
        "branch-outputs",
        "a branch with two outputs where one is wanted",
        *branch(graph([node("Relu", ["x"], ["t"])], (), out + (value("x", FLOAT),))),
        names="'bad'",
    )
    add("condition-float", "If on an f32", *branch(fine, floats("c")), names=("'bad'", "'c'"))
    body = graph([node("Relu", ["x"], ["t"])], (), out)
    add(
        "loop-body",
        "a Loop body without inputs and condition",
        [node("Loop", ["n", ""], ["y"], attr_graph("body", body), name="bad")],
        [tensor("n", INT64, (), i64(2))],
        names="'bad'",
    )


def tensors(c):
    """Weights whose data, type and shape disagree; each is `w`."""

    def add(name, what, w, status=1, names=("'w'", "'bad'")):
        c.add(f"tensor/{name}.onnx", status, what, one("Add", ins=("x", "w"), weights=[w]), names)

    def sizes(name, what, dims, raw, status=1):
        """Read by Shape, which takes whatever comes."""
        data = one("Shape", ins=("w",), weights=[tensor("w", FLOAT, dims, raw)], y=value("y", INT64))
        c.add(f"tensor/{name}.onnx", status, what, data, ("'w'", "'bad'"))

    add("short", "8 of 12 bytes", tensor("w", FLOAT, (3,), f32(1, 1)))
    add("long", "16 bytes where 12 belong", tensor("w", FLOAT, (3,), f32(1, 1, 1, 1)))
    add("odd", "11 of 12 bytes", tensor("w", FLOAT, (3,), f32(1, 1, 1)[:11]))
    add("no-data", "no data", tensor("w", FLOAT, (3,)))
    add("few-floats", "two of three floats", tensor("w", FLOAT, (3,), None, sub(4, f32(1, 1))))
    add("many-floats", "four floats for three", tensor("w", FLOAT, (3,), None, sub(4, f32(1, 1, 1, 1))))
    add("other-field", "floats in int64_data", tensor("w", FLOAT, (3,), None, sub(7, b"\1\1\1")))
    # what the encoding itself forbids is told by file and place
    ragged = tensor("w", FLOAT, (3,), None, sub(4, f32(1, 1, 1)[:11]))
    add("ragged-floats", "float_data of 11 bytes", ragged, names="ragged-floats.onnx'")
    add("two-fields", "raw_data and float_data", tensor("w", FLOAT, (3,), f32(1, 1, 1), sub(4, f32(2, 2, 2))), (0, 1))
    sizes("negative", "a size of -3", (-3,), f32(1, 1, 1))
    sizes("negative-twice", "sizes -1 and -3: their product is right", (-1, -3), f32(1, 1, 1))
    sizes("overflow-32", "[2^16,2^16]: 0 elements in 32 bits", (1 << 16, 1 << 16), b"")
    sizes("overflow-64", "[2^32,2^32]: 0 elements in 64 bits", (1 << 32, 1 << 32), b"")
    sizes("overflow-bytes", "2^62 elements of 4 bytes: 0 bytes in 64 bits", (1 << 62,), b"")
    sizes("overflow-wrap", "three sizes whose product is 3 in 64 bits", (3, 7, pow(7, -1, 1 << 64)), f32(1, 1, 1))
    sizes("largest", "2^63 - 1 elements", (MAX,), f32(1, 1, 1))
    sizes("zero-overflow", "[0,2^62,2^62]: no elements, if one starts on the left", (0, 1 << 62, 1 << 62), b"", (0, 1))
    add(
        "many-axes",
        "100,000 axes of 1",
        msg(sub(1, b"\1" * 100000), num(2, FLOAT), sub(8, "w"), sub(9, f32(1))),
        (0, 1, 4),
    )
    add("type-0", "type 0", tensor("w", 0, (3,), f32(1, 1, 1)), (1, 4))
    add("type-99", "type 99", tensor("w", 99, (3,), f32(1, 1, 1)), (1, 4))
    add("type-negative", "type -1", tensor("w", -1, (3,), f32(1, 1, 1)), (1, 4))
    add("type-wide", "type 2^32 + 1", tensor("w", FLOAT + (1 << 32), (3,), f32(1, 1, 1)), (0, 1, 4))
    text = msg(*(sub(6, s) for s in ("a", "b", "c")))
    add("string", "strings where numbers belong", tensor("w", STRING, (3,), None, text), (1, 4))
    add("string-raw", "strings as raw_data", tensor("w", STRING, (3,), b"abc"), (1, 4))
    add(
        "complex", "complex numbers where Add wants real ones", tensor("w", wire.COMPLEX64, (3,), f32(*[1] * 6)), (1, 4)
    )
    add("float-for-half", "f16 with the bytes of f32", tensor("w", wire.FLOAT16, (3,), f32(1, 1, 1)))

    def sparse(name, what, values, indices, dims):
        extra = sub(15, msg(sub(1, values), sub(2, indices), *(num(3, d) for d in dims)))
        data = simple([node("Add", ["x", "w"], ["y"], name="bad")], extra=extra)
        c.add(f"tensor/sparse-{name}.onnx", 1, what, data, ("'w'", "'bad'"))

    w = floats("w", 2)
    sparse("range", "a sparse weight with an index outside", w, ints("", 1, 3), (3,))
    sparse("negative", "a sparse weight with a negative index", w, ints("", -1, 1), (3,))
    sparse("count", "a sparse weight with more indices than values", w, ints("", 0, 1, 2), (3,))
    sparse("huge", "a sparse weight of 3 * 2^92 elements", w, ints("", 0, 1), (1 << 46, 1 << 46, 1, 3))
    sparse("index-type", "a sparse weight with f32 indices", w, floats("", 2), (3,))


def opsets(c):
    """What hone lacks, and versions that nobody has."""
    relu = [node("Relu", ["x"], ["y"], name="bad")]

    def add(name, what, data, status, names="'bad'"):
        c.add(f"opset/{name}.onnx", status, what, data, names)

    add("unknown-op", "an operator that does not exist", one("Frobnicate"), 4, ("Frobnicate", "'bad'"))
    add(
        "unknown-domain",
        "an operator of an unknown domain",
        one("Frobnicate", domain="com.example"),
        4,
        ("Frobnicate", "com.example", "'bad'"),
    )
    add(
        "known-op-unknown-domain",
        "Relu of an unknown domain",
        one("Relu", domain="com.example"),
        4,
        ("com.example", "'bad'"),
    )
    add(
        "not-imported",
        "a domain that the model does not import",
        simple([node("Relu", ["x"], ["y"], name="bad", domain="com.example")]),
        (1, 4),
        ("com.example", "'bad'"),
    )
    branch = graph([node("Frobnicate", ["x"], ["t"])], (), (value("t", FLOAT, (2, 3)),))
    add(
        "unknown-op-in-branch",
        "an operator that does not exist, in a branch",
        simple(
            [node("If", ["c"], ["y"], attr_graph("then_branch", branch), attr_graph("else_branch", branch))],
            [tensor("c", BOOL, (), b"\1")],
        ),
        4,
        ("Frobnicate", "frobnicate"),
    )
    add("case", "an operator's name in lower case", one("relu"), 4)
    add("version-0", "opset 0", simple(relu, opsets=((0, ""),)), (1, 4), ("opset", "'bad'"))
    add("version-negative", "opset -1", simple(relu, opsets=((-1, ""),)), (1, 4), ("opset", "'bad'"))
    add("version-999", "opset 999", simple(relu, opsets=((999, ""),)), 4, ("999", "'bad'"))
    add("version-max", "opset 2^63 - 1", simple(relu, opsets=((MAX, ""),)), 4, (str(MAX), "'bad'"))
    add("none", "no opset import", simple(relu, opsets=()), (1, 4), ("opset", "'bad'", "none.onnx"))
    add(
        "twice",
        "opset 17 and 7 of one domain",
        simple(relu, opsets=((17, ""), (7, ""))),
        1,
        ("opset", "domain", "'bad'"),
    )
    add("too-new", "Gelu (opset 20) in a model of opset 13", one("Gelu", version=13), (1, 4), ("Gelu", "'bad'"))
    add(
        "too-old",
        "Scatter (until opset 10) in a model of opset 17",
        one("Scatter", ins=("x", "i", "u"), weights=[tensor("i", INT64, (1, 1), i64(0)), floats("u", 1, 1)]),
        (0, 1, 4),
        ("Scatter", "'bad'"),
    )
    add(
        "sequence",
        "a sequence",
        simple(
            [node("SequenceConstruct", ["x", "x"], ["s"], name="bad"), node("SequenceLength", ["s"], ["y"])],
            outs=(value("y", INT64),),
        ),
        (0, 4),
        ("SequenceConstruct", "'bad'"),
    )
    add(
        "string-op",
        "an operator on strings",
        simple(
            [node("StringNormalizer", ["s"], ["y"], name="bad")],
            [tensor("s", STRING, (1,), None, sub(6, "a"))],
            outs=(value("y", STRING),),
        ),
        (0, 4),
        ("StringNormalizer", "'bad'"),
    )
    add(
        "float8",
        "Cast to float8",
        one("Cast", attr_int("to", wire.FLOAT8), version=19, y=value("y", wire.FLOAT8)),
        (0, 4),
        ("'bad'", "'y'"),
    )

    def functions(name, what, status, names, *bodies):
        """Functions of the domain `local`; the graph calls f0."""
        parts = (
            wire.function(f"f{k}", "local", ["a"], ["b"], body, [(17, ""), (1, "local")])
            for k, body in enumerate(bodies)
        )
        top = msg(*(sub(25, part) for part in parts))
        call = node("f0", ["x"], ["y"], name="bad", domain="local")
        add(name, what, simple([call], opsets=((17, ""), (1, "local")), top=top), status, names)

    def call(k, a, b):
        return node(f"f{k}", [a], [b], name=f"call{k}", domain="local")

    functions("function-recursive", "a function that calls itself", 1, ("f0", "'bad'"), [call(0, "a", "b")])
    functions(
        "function-mutual",
        "two functions that call each other",
        1,
        ("f0", "f1", "'bad'"),
        [call(1, "a", "b")],
        [call(0, "a", "b")],
    )
    functions(
        "function-undefined",
        "a function that reads a value that nothing makes",
        1,
        ("ghost", "f0"),
        [node("Add", ["a", "ghost"], ["b"])],
    )
    functions("function-missing", "a call of a function that is not there", 4, ("f7", "call7"), [call(7, "a", "b")])
    functions(
        "function-unknown-op",
        "a function with an operator that does not exist",
        4,
        ("Frobnicate", "frobnicate"),
        [node("Frobnicate", ["a"], ["b"])],
    )
    functions(
        "function-bomb",
        "40 functions, each calls the next twice: 2^40 nodes when expanded",
        (1, 4, 6),
        (),
        *([call(k + 1, "a", "t"), call(k + 1, "t", "b")] for k in range(40)),
        [node("Relu", ["a"], ["b"])],
    )
    functions(
        "function-chain",
        "3,000 functions, each calls the next",
        (0, 1, 4, 6),
        (),
        *([call(k + 1, "a", "b")] for k in range(3000)),
        [node("Relu", ["a"], ["b"])],
    )


def externals(c):
    """Weights in other files: weights.bin has 64 bytes; outside.bin lies above the models and must not be read."""
    folder = os.path.join(c.out, "external")
    os.makedirs(os.path.join(folder, "folder"), exist_ok=True)
    for path in (os.path.join(folder, "weights.bin"), os.path.join(c.out, "outside.bin")):
        with open(path, "wb") as f:
            f.write(f32(*range(16)))
    pipe = os.path.join(folder, "pipe.bin")
    if not os.path.exists(pipe):
        os.mkfifo(pipe)

    def add(name, what, status=1, dims=(3,), dtype=FLOAT, **entries):
        w = tensor("w", dtype, dims, None, external(**entries))
        c.add(
            f"external/{name}.onnx",
            status,
            what,
            one("Add", ins=("x", "w"), weights=[w]),
            ("'w'", "'bad'", f"{name}.onnx'") + tuple(str(e) for e in entries.values())[:1],
        )

    here = "weights.bin"
    add("good", "a weight in another file", 0, location=here, offset=4, length=12)
    add("good-plain", "neither offset nor length", 0, (8, 2, 1), location=here)
    add("missing", "the file is not there", location="missing.bin", offset=0, length=12)
    add("no-location", "no file is named", offset=0, length=12)
    add("empty-location", "the file's name is empty", location="", offset=0, length=12)
    add("offset-beyond", "starts behind the end", location=here, offset=65, length=12)
    add("offset-at-end", "starts at the end", location=here, offset=64, length=12)
    add("length-beyond", "ends behind the end", location=here, offset=56, length=12)
    add("length-short", "length smaller than the shape", location=here, offset=0, length=8)
    add("length-long", "length larger than the shape", location=here, offset=0, length=16)
    add("offset-negative", "a negative offset", location=here, offset=-4, length=12)
    add("offset-text", "an offset that is no number", location=here, offset="four", length=12)
    add("offset-trailing", "an offset with text behind", location=here, offset="4x", length=12)
    add("offset-overflow", "offset plus length is 4 in 64 bits", location=here, offset=(1 << 64) - 8, length=12)
    add("offset-max", "an offset of 2^63 - 1", location=here, offset=MAX, length=12)
    add("offset-wide", "an offset of 2^64", location=here, offset=1 << 64, length=12)
    w = tensor("w", FLOAT, (1 << 62,), None, external(location=here, offset=0))
    shape = one("Shape", ins=("w",), weights=[w], y=value("y", INT64))
    c.add("external/huge-shape.onnx", 1, "2^62 elements of 4 bytes: 0 bytes in 64 bits", shape, ("'w'", "'bad'", here))
    add("parent", "a file in the folder above", location="../outside.bin", offset=0, length=12)
    add(
        "parent-inside",
        "out of the folder by way of a sub-folder",
        location="folder/../../outside.bin",
        offset=0,
        length=12,
    )
    add("parent-back", "out of the folder and back in", (0, 1), location="../external/weights.bin", offset=0, length=12)
    add("absolute", "an absolute path", location="/etc/passwd", offset=0, length=12)
    add("device", "a device", location="/dev/zero", offset=0, length=12)
    add("folder", "a folder", location="folder", offset=0, length=12)
    add("self-folder", "the model's own folder", location=".", offset=0, length=12)
    add(
        "pipe",
        "a named pipe that nobody writes: opening it would wait for ever",
        location="pipe.bin",
        offset=0,
        length=12,
    )
    add("nul", "a name with a zero byte", (0, 1), location="weights.bin\0.txt", offset=0, length=12)
    add("string", "strings in another file", (1, 4), dtype=STRING, location=here, offset=0, length=12)
    w = tensor("w", FLOAT, (3,), None, num(14, 1))
    c.add(
        "external/no-entries.onnx",
        1,
        "external, but nothing says where",
        one("Add", ins=("x", "w"), weights=[w]),
        ("'w'", "'bad'"),
    )
    w = tensor("w", FLOAT, (3,), f32(1, 1, 1), external(location=here, offset=0, length=12))
    c.add(
        "external/both.onnx", (0, 1), "external and raw_data", one("Add", ins=("x", "w"), weights=[w]), ("'w'", "'bad'")
    )
    value_ = attr_tensor("value", tensor("", FLOAT, (3,), None, external(location="missing.bin")))
    c.add(
        "external/constant.onnx",
        1,
        "a Constant's data are not there",
        one("Constant", value_, ins=()),
        ("missing.bin", "'bad'"),
    )


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: bad_models.py OUTDIR")
    c = Cases(sys.argv[1])
    for family in (good, bytes_, graphs, shapes, attributes, tensors, opsets, externals):
        family(c)
    with open(os.path.join(c.out, "index.json"), "w") as f:
        json.dump(c.index, f, indent=1)
        f.write("\n")


if __name__ == "__main__":
    main()
