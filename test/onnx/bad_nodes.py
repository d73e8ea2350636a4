"""The nodes among the bad models: shapes, types and attributes that do not fit. Every model is the one node `bad`."""

import wire
from wire import (
    BOOL,
    FLOAT,
    INT64,
    MAX,
    attr,
    attr_int,
    attr_ints,
    attr_string,
    attr_tensor,
    f32,
    floats,
    i64,
    ints,
    msg,
    num,
    one,
    sub,
    tensor,
    value,
)


def shapes(c):
    """Shapes and types that do not fit: always the node `bad`."""

    def add(name, what, op, *args, status=1, **more):
        c.add(f"shape/{name}.onnx", status, what, one(op, *args, **more), "'bad'")

    def image(*dims):
        return value("x", FLOAT, dims)

    xw = ("x", "w")
    add("add-types", "f32 + i64", "Add", ins=xw, weights=[ints("w", 1, 2, 3)])
    add("add-broadcast", "[2,3] + [4]", "Add", ins=xw, weights=[floats("w", 4)])
    add("where-condition", "Where with an f32 condition", "Where", ins=("x", "x", "x"))
    add("not-float", "Not of f32", "Not")
    add("matmul-inner", "[2,3] x [4,5]", "MatMul", ins=xw, weights=[floats("w", 4, 5)])
    add("matmul-scalar", "[2,3] x scalar", "MatMul", ins=xw, weights=[floats("w")])
    add("gemm-inner", "[2,3] x [4,5]", "Gemm", ins=xw, weights=[floats("w", 4, 5)])
    add(
        "gemm-bias",
        "Gemm's bias [7] on [2,5]",
        "Gemm",
        ins=("x", "w", "b"),
        weights=[floats("w", 3, 5), floats("b", 7)],
    )
    w = floats("w", 4, 3, 3, 3)
    add("conv-channels", "5 channels into a filter for 3", "Conv", ins=xw, weights=[w], x=image(1, 5, 8, 8))
    add("conv-rank", "a matrix into a 2-d convolution", "Conv", ins=xw, weights=[w])
    add(
        "conv-kernel",
        "kernel_shape [5,5] with a 3x3 filter",
        "Conv",
        attr_ints("kernel_shape", [5, 5]),
        ins=xw,
        weights=[w],
        x=image(1, 3, 8, 8),
    )
    # by the formula the result has 0 rows; where it would have fewer there is none
    add("conv-none", "a 3x3 filter on 2x2 without padding", "Conv", ins=xw, weights=[w], x=image(1, 3, 2, 2), status=(0, 1))
    add("conv-too-small", "a 3x3 filter on 1x1 without padding", "Conv", ins=xw, weights=[w], x=image(1, 3, 1, 1))
    add("conv-stride-0", "stride 0", "Conv", attr_ints("strides", [0, 1]), ins=xw, weights=[w], x=image(1, 3, 8, 8))
    add(
        "conv-dilation-0",
        "dilation 0",
        "Conv",
        attr_ints("dilations", [0, 0]),
        ins=xw,
        weights=[w],
        x=image(1, 3, 8, 8),
    )
    add("conv-group-0", "0 groups", "Conv", attr_int("group", 0), ins=xw, weights=[w], x=image(1, 3, 8, 8))
    add(
        "conv-group",
        "4 filters in 3 groups",
        "Conv",
        attr_int("group", 3),
        ins=xw,
        weights=[floats("w", 4, 1, 3, 3)],
        x=image(1, 3, 8, 8),
    )
    add(
        "conv-pads",
        "three pads for two axes",
        "Conv",
        attr_ints("pads", [1, 1, 1]),
        ins=xw,
        weights=[w],
        x=image(1, 3, 8, 8),
    )
    add(
        "conv-pads-huge",
        "pads near 2^63",
        "Conv",
        attr_ints("pads", [MAX, MAX, MAX, MAX]),
        ins=xw,
        weights=[w],
        x=image(1, 3, 8, 8),
        status=(1, 6),
    )
    add(
        "conv-dilation-huge",
        "dilation 2^62",
        "Conv",
        attr_ints("dilations", [1 << 62, 1 << 62]),
        ins=xw,
        weights=[w],
        x=image(1, 3, 8, 8),
    )
    add("pool-kernel-0", "a pool of 0x0", "MaxPool", attr_ints("kernel_shape", [0, 0]), x=image(1, 3, 8, 8))
    add(
        "pool-kernel-negative",
        "a pool of -2x-2",
        "AveragePool",
        attr_ints("kernel_shape", [-2, -2]),
        x=image(1, 3, 8, 8),
    )
    add(
        "norm-scale",
        "BatchNormalization of 3 channels with 4 scales",
        "BatchNormalization",
        ins=("x", "w", "w", "w", "w"),
        weights=[floats("w", 4)],
        x=image(1, 3, 8, 8),
    )
    add("concat-rank", "[2,3] beside [2]", "Concat", attr_int("axis", 0), ins=xw, weights=[floats("w", 2)])
    add("concat-sizes", "[2,3] over [2,4]", "Concat", attr_int("axis", 0), ins=xw, weights=[floats("w", 2, 4)])
    add("concat-axis", "axis 2 of two", "Concat", attr_int("axis", 2), ins=("x", "x"))
    add("softmax-axis", "axis 7 of two", "Softmax", attr_int("axis", 7))
    add("softmax-axis-min", "axis -2^63", "Softmax", attr_int("axis", -MAX - 1))
    add("transpose-twice", "an axis twice", "Transpose", attr_ints("perm", [0, 0]))
    add("transpose-rank", "three axes of two", "Transpose", attr_ints("perm", [0, 1, 2]))
    add("reshape-count", "6 elements to [4,2]", "Reshape", ins=xw, weights=[ints("w", 4, 2)])
    add("reshape-two-free", "two sizes to find out", "Reshape", ins=xw, weights=[ints("w", -1, -1)])
    add("reshape-negative", "a size of -2", "Reshape", ins=xw, weights=[ints("w", -2, 3)])
    add("reshape-copy", "copies a size that is not there", "Reshape", ins=xw, weights=[ints("w", 2, 3, 0)])
    add(
        "reshape-overflow",
        "[2^32,2^32] wraps to 0 elements",
        "Reshape",
        ins=xw,
        weights=[ints("w", 1 << 32, 1 << 32)],
        x=value("x", FLOAT, (0, 3)),
    )
    add("squeeze", "an axis of 3 removed", "Squeeze", ins=xw, weights=[ints("w", 1)])
    add("unsqueeze-twice", "an axis added twice", "Unsqueeze", ins=xw, weights=[ints("w", 0, 0)])
    add(
        "split-sum",
        "3 columns into 2 and 2",
        "Split",
        attr_int("axis", 1),
        ins=xw,
        weights=[ints("w", 2, 2)],
        outs=("y", "z"),
    )
    add(
        "split-negative",
        "3 columns into 5 and -2",
        "Split",
        attr_int("axis", 1),
        ins=xw,
        weights=[ints("w", 5, -2)],
        outs=("y", "z"),
    )
    add("expand", "[2,3] to [2,4]", "Expand", ins=xw, weights=[ints("w", 2, 4)])
    add("gather-range", "row 2 of two", "Gather", ins=xw, weights=[ints("w", 2)])
    add("gather-min", "row -2^63", "Gather", ins=xw, weights=[ints("w", -MAX - 1)])
    add("gather-float", "an f32 index", "Gather", ins=xw, weights=[floats("w", 1)])
    add(
        "gathernd-depth",
        "three indices into two axes",
        "GatherND",
        ins=xw,
        weights=[tensor("w", INT64, (1, 3), i64(0, 0, 0))],
    )
    add(
        "scatternd-range",
        "row 9 of two",
        "ScatterND",
        ins=("x", "w", "u"),
        weights=[tensor("w", INT64, (1, 1), i64(9)), floats("u", 1, 3)],
    )
    add(
        "slice-step-0",
        "step 0",
        "Slice",
        ins=("x", "s", "e", "a", "t"),
        weights=[ints("s", 0), ints("e", 2), ints("a", 0), ints("t", 0)],
    )
    add(
        "slice-axis",
        "axis 5 of two",
        "Slice",
        ins=("x", "s", "e", "a"),
        weights=[ints("s", 0), ints("e", 2), ints("a", 5)],
    )
    add("pad-count", "three pads for two axes", "Pad", ins=xw, weights=[ints("w", 1, 1, 1)])
    add(
        "pad-mode",
        "a mode that does not exist",
        "Pad",
        attr_string("mode", "sideways"),
        ins=xw,
        weights=[ints("w", 0, 0, 0, 0)],
    )
    add("topk", "the largest 4 of 3", "TopK", ins=xw, weights=[ints("w", 4)], outs=("y", "z"))
    add("resize-scale", "scales of 0", "Resize", ins=("x", "", "w"), weights=[tensor("w", FLOAT, (2,), f32(0, 0))])
    add(
        "resize-nan",
        "scales that are NaN",
        "Resize",
        ins=("x", "", "w"),
        weights=[tensor("w", FLOAT, (2,), b"\0\0\xc0\x7f" * 2)],
    )
    add(
        "range-0",
        "a range of step 0",
        "Range",
        ins=("a", "b", "c"),
        weights=[tensor(n, INT64, (), i64(v)) for n, v in (("a", 0), ("b", 5), ("c", 0))],
        y=value("y", INT64),
    )
    add("tile-negative", "-1 times", "Tile", ins=xw, weights=[ints("w", -1, 1)])
    add("depth-to-space", "3 channels in blocks of 2x2", "DepthToSpace", attr_int("blocksize", 2), x=image(1, 3, 4, 4))
    add(
        "lstm-weights",
        "LSTM weights of another hidden size",
        "LSTM",
        attr_int("hidden_size", 5),
        ins=("x", "w", "r"),
        weights=[floats("w", 1, 16, 3), floats("r", 1, 16, 4)],
        x=image(2, 1, 3),
        outs=("y",),
    )
    add("einsum", "an equation of three operands for one", "Einsum", attr_string("equation", "ij,jk,kl->il"))
    add("einsum-text", "an equation that is none", "Einsum", attr_string("equation", "->->"))
    add(
        "quantize-scale",
        "three scales along an axis of 2",
        "QuantizeLinear",
        attr_int("axis", 0),
        ins=xw,
        weights=[floats("w", 3)],
        y=value("y", wire.UINT8),
    )
    # Sizes that no memory holds: refused by their size or by the memory limit, never tried blindly.
    for name, dims in (("2e93", (1 << 31,) * 3), ("tera", (1 << 20, 1 << 20)), ("max", (MAX,)), ("negative", (-5,))):
        status = 1 if name == "negative" else (1, 6)
        add(
            f"huge-{name}",
            f"a constant of shape {list(dims)}",
            "ConstantOfShape",
            ins=("w",),
            weights=[ints("w", *dims)],
            status=status,
        )
    add("huge-expand", "[2,3] to 2^40 rows", "Expand", ins=xw, weights=[ints("w", 1 << 39, 2, 3)], status=(1, 6))
    add("huge-tile", "2^62 times", "Tile", ins=xw, weights=[ints("w", 1 << 62, 4)], status=(1, 6))
    add("huge-pad", "2^62 rows of padding", "Pad", ins=xw, weights=[ints("w", 1 << 62, 0, 1 << 62, 0)], status=(1, 6))
    add(
        "huge-range",
        "a range of 2^62",
        "Range",
        ins=("a", "b", "c"),
        weights=[tensor(n, INT64, (), i64(v)) for n, v in (("a", 0), ("b", 1 << 62), ("c", 1))],
        y=value("y", INT64),
        status=(1, 6),
    )
    add(
        "huge-resize",
        "scales of 1e18",
        "Resize",
        ins=("x", "", "w"),
        weights=[tensor("w", FLOAT, (2,), f32(1e18, 1e18))],
        status=(1, 6),
    )
    add(
        "huge-onehot",
        "one of 2^60",
        "OneHot",
        ins=("i", "d", "v"),
        weights=[ints("i", 1), tensor("d", INT64, (), i64(1 << 60)), floats("v", 2)],
        status=(1, 6),
    )
    c.add(
        "shape/huge-input.onnx",
        (1, 6),
        "an input of 2^93 elements",
        one("Relu", x=image(1 << 31, 1 << 31, 1 << 31)),
        ("'bad'", "'x'"),
    )


def attributes(c):
    """Attributes that are missing, of the wrong kind or nonsense."""

    def add(name, what, op, *args, status=1, **more):
        c.add(f"attribute/{name}.onnx", status, what, one(op, *args, **more), "'bad'")

    two = ("x", "x")
    add("missing", "Concat without axis", "Concat", ins=two)
    add("missing-to", "Cast without `to`", "Cast")
    add("missing-kernel", "MaxPool without kernel_shape", "MaxPool", x=value("x", FLOAT, (1, 1, 4, 4)))
    add("missing-value", "Constant without a value", "Constant", ins=())
    add("float-for-int", "axis is a float", "Softmax", attr("axis", wire.ATTR_FLOAT, msg(wire.key(2, 5), f32(1))))
    add("ints-for-int", "axis is a list", "Concat", attr_ints("axis", [0]), ins=two)
    add("string-for-int", "axis is a string", "Concat", attr_string("axis", "0"), ins=two)
    add("int-for-ints", "perm is one number", "Transpose", attr_int("perm", 1))
    add("int-for-tensor", "a constant's tensor is a number", "Constant", attr_int("value", 1), ins=())
    add(
        "int-for-graph",
        "a branch is a number",
        "If",
        attr_int("then_branch", 1),
        attr_int("else_branch", 1),
        ins=("w",),
        weights=[tensor("w", BOOL, (), b"\1")],
    )
    add("kind-lies", "declared a list, holds one number", "Concat", attr("axis", wire.ATTR_INTS, num(3, 0)), ins=two)
    add("kind-unknown", "kind 77", "Concat", attr("axis", 77, num(3, 0)), ins=two)
    add("twice", "axis twice", "Concat", attr_int("axis", 0), attr_int("axis", 1), ins=two, status=(0, 1))
    add("unknown", "an attribute that the operator does not have", "Relu", attr_int("speed", 9), status=(0, 1))
    add(
        "reference",
        "refers to a function's attribute outside of a function",
        "Concat",
        msg(sub(1, "axis"), num(20, wire.ATTR_INT), sub(21, "axis")),
        ins=two,
    )
    add("cast-99", "Cast to type 99", "Cast", attr_int("to", 99), status=(1, 4))
    add("cast-0", "Cast to type 0", "Cast", attr_int("to", 0), status=(1, 4))
    add(
        "auto-pad",
        "auto_pad SIDEWAYS",
        "MaxPool",
        attr_ints("kernel_shape", [2, 2]),
        attr_string("auto_pad", "SIDEWAYS"),
        x=value("x", FLOAT, (1, 1, 4, 4)),
    )
    add(
        "constant-short",
        "a constant of 6 elements with 4 bytes",
        "Constant",
        attr_tensor("value", tensor("", FLOAT, (2, 3), f32(1))),
        ins=(),
    )
    add(
        "fill-two",
        "ConstantOfShape with two values",
        "ConstantOfShape",
        attr_tensor("value", floats("", 2)),
        ins=("w",),
        weights=[ints("w", 2)],
    )
