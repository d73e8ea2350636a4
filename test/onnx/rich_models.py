#!/usr/bin/env python3
"""Make models that use every message and field of the format, for round trips; needs PyPI's onnx and numpy.

usage: rich_models.py OUTDIR

Most are nothing that anybody would run: they hold what a reader could lose. Each run writes the same bytes.
"""
import os
import sys

import numpy as np
import onnx
from onnx import AttributeProto, TensorProto, TypeProto, helper
from onnx.helper import make_graph, make_model, make_node, make_opsetid, make_tensor, make_tensor_value_info

import wire

UNKNOWN = wire.sub(9001, "later") + wire.num(9002, 7) + wire.key(9003, 1) + bytes(8) + wire.key(9004, 5) + bytes(4)
X = make_tensor_value_info("x", TensorProto.FLOAT, ["N", 3])
Y = make_tensor_value_info("y", TensorProto.FLOAT, ["N", 3])
RELU = make_node("Relu", ["x"], ["y"], name="relu")


def pair(key, value):
    return onnx.StringStringEntryProto(key=key, value=value)


def add_unknown(m):
    """Fields of the future in m and in every message within."""
    for f, v in m.ListFields():
        if f.message_type is not None:
            for sub in v if f.is_repeated else [v]:
                add_unknown(sub)
    m.MergeFromString(UNKNOWN)


def add_meta(m):
    """metadata_props and doc_string wherever there is room."""
    for f, v in m.ListFields():
        if f.message_type is not None:
            for sub in v if f.is_repeated else [v]:
                add_meta(sub)
    names = m.DESCRIPTOR.fields_by_name
    if "metadata_props" in names:
        m.metadata_props.extend([pair("k", "v"), pair("", ""), pair("k", "again")])
    if "doc_string" in names:
        m.doc_string = "what " + m.DESCRIPTOR.name + " is for"


def graph(nodes=(RELU,), ins=(X,), outs=(Y,), weights=(), **more):
    return make_graph(list(nodes), "g", list(ins), list(outs), list(weights), **more)


def model(g=None, ir=10, opset=21, **more):
    m = make_model(g or graph(), opset_imports=[make_opsetid("", opset)], **more)
    m.ir_version = ir
    return m


def typed_tensors():
    """Every type, as raw data and as a list; of no elements, of one, of an odd number."""
    out = []
    for t in range(1, 29):
        name = TensorProto.DataType.Name(t)
        bits = {21: 4, 22: 4, 23: 4, 25: 2, 26: 2, 27: 6, 28: 6, 14: 64, 15: 128, 9: 8}.get(t)
        for n in (0, 1, 5, 1030):
            raw = onnx.TensorProto(name=f"{name}_raw_{n}", data_type=t, dims=[n])
            lst = onnx.TensorProto(name=f"{name}_list_{n}", data_type=t, dims=[n])
            if t == TensorProto.STRING:
                lst.string_data.extend(bytes([k % 256, 0, 255]) * (k % 3) for k in range(n))
                out.append(lst)
                continue
            size = bits or 8 * helper.tensor_dtype_to_np_dtype(t).itemsize
            data = bytes((k * 37 + 11) % 256 for k in range((n * size + 7) // 8))
            if t == TensorProto.BOOL:
                data = bytes(k % 2 for k in range(n))
            raw.raw_data = data
            if t in (1, 14):
                lst.float_data.extend(np.linspace(-3, 4, n * (t == 14) + n).tolist())
            elif t in (11, 15):
                lst.double_data.extend(np.linspace(-3, 4, n * (t == 15) + n).tolist())
            elif t == TensorProto.INT64:
                lst.int64_data.extend((-1) ** k * (1 << k % 63) for k in range(n))
            elif t in (12, 13):
                lst.uint64_data.extend((1 << k % (32 if t == 12 else 64)) for k in range(n))
            elif t == TensorProto.INT32:
                lst.int32_data.extend((-1) ** k * (1 << k % 31) for k in range(n))
            elif t in (4, 10, 16):
                lst.int32_data.extend((k * 4099) % 65536 for k in range(n))
            elif t == TensorProto.INT16:
                lst.int32_data.extend((k * 4099) % 65536 - 32768 for k in range(n))
            elif t == TensorProto.INT8:
                lst.int32_data.extend(k % 256 - 128 for k in range(n))
            elif t == TensorProto.BOOL:
                lst.int32_data.extend(k % 2 for k in range(n))
            elif t in (27, 28):
                lst.int32_data.extend(k % 64 for k in range(n))
            else:
                lst.int32_data.extend(k % 256 for k in range((n * min(size, 8) + 7) // 8))
            out += [raw, lst]
    scalar = make_tensor("scalar", TensorProto.FLOAT, [], [float("nan")])
    implied = onnx.TensorProto(name="no-field", data_type=1, dims=[0, 3])
    default = make_tensor("explicit-location", TensorProto.FLOAT, [1], [1.0])
    default.data_location = TensorProto.DEFAULT
    return out + [scalar, implied, default]


def sparse(name):
    s = onnx.SparseTensorProto(dims=[3, 4])
    s.values.CopyFrom(make_tensor(name, TensorProto.FLOAT, [2], [1.0, 2.0]))
    s.indices.CopyFrom(make_tensor("", TensorProto.INT64, [2], [1, 7]))
    return s


def types():
    """One TypeProto of each sort, some odd."""
    t = helper.make_tensor_type_proto
    f = t(TensorProto.FLOAT, [1, "N", None])
    out = {
        "tensor": f,
        "scalar": t(TensorProto.FLOAT, []),
        "no-shape": t(TensorProto.FLOAT, None),
        "sequence": helper.make_sequence_type_proto(f),
        "optional": helper.make_optional_type_proto(helper.make_sequence_type_proto(f)),
        "map": helper.make_map_type_proto(TensorProto.INT64, helper.make_sequence_type_proto(f)),
        "sparse": helper.make_sparse_tensor_type_proto(TensorProto.FLOAT, [3, "M"]),
        "nothing": TypeProto(),
        "denoted": TypeProto(denotation="IMAGE"),
    }
    for name in ("-1", "", "2*N+1", "unk 1?", "'"):
        out[f"dim {name}"] = t(TensorProto.FLOAT, [name])
    out["negative"] = t(TensorProto.FLOAT, [-1, 0])
    out["no-elem"] = TypeProto()
    out["no-elem"].tensor_type.SetInParent()
    out["elem-0"] = TypeProto()
    out["elem-0"].tensor_type.elem_type = 0
    out["elem-99"] = TypeProto()
    out["elem-99"].tensor_type.elem_type = 99
    for field in ("sequence_type", "optional_type", "map_type", "sparse_tensor_type"):
        out["empty " + field] = TypeProto()
        getattr(out["empty " + field], field).SetInParent()
    out["opaque"] = TypeProto()
    out["opaque"].MergeFromString(wire.sub(7, wire.sub(1, "dom") + wire.sub(2, "name")))
    out["denotations"] = t(TensorProto.FLOAT, [1, "N"])
    out["denotations"].denotation = "TENSOR"
    out["denotations"].tensor_type.shape.dim[1].denotation = "DATA_BATCH"
    out["future"] = t(TensorProto.FLOAT, [1, "N"])
    add_unknown(out["future"])
    return out


def branch(nodes, outs, **more):
    return make_graph(list(nodes), "branch", [], list(outs), **more)


def attributes():
    """Every kind, and what stands beside its value where it should not."""
    t = make_tensor("t", TensorProto.INT64, [2], [1, 2])
    g = branch([make_node("Relu", ["x"], ["inner"])], [make_tensor_value_info("inner", TensorProto.FLOAT, None)])
    f = helper.make_tensor_type_proto(TensorProto.FLOAT, [1])
    make = helper.make_attribute
    out = [
        make("float", 0.1),
        make("nan", float("nan")),
        make("zero", 0.0),
        make("minus-zero", -0.0),
        make("int", -5),
        make("string", b"\xff\x00a"),
        make("empty-string", ""),
        make("tensor", t),
        make("graph", g),
        make("floats", [0.5, 1e30]),
        make("ints", [1, -1, 1 << 62]),
        make("strings", [b"a", b"", b"\x00"]),
        make("tensors", [t, t]),
        make("graphs", [g, g]),
        make("type", f),
        make("types", [f, types()["future"]]),
        AttributeProto(name="sparse", type=AttributeProto.SPARSE_TENSOR, sparse_tensor=sparse("s")),
        AttributeProto(name="sparses", type=AttributeProto.SPARSE_TENSORS, sparse_tensors=[sparse("a"), sparse("b")]),
        AttributeProto(name="no-ints", type=AttributeProto.INTS),
        AttributeProto(name="no-float", type=AttributeProto.FLOAT),
        AttributeProto(name="no-int", type=AttributeProto.INT),
        AttributeProto(name="no-string", type=AttributeProto.STRING),
        AttributeProto(name="undefined"),
        AttributeProto(name="explicit-undefined", type=0),
        AttributeProto(name="untyped", i=3),
        AttributeProto(name="all-zero", type=AttributeProto.INT, i=4, f=0.0, s=b"", t=t, floats=[1.0]),
    ]
    future = AttributeProto(name="future-kind", i=3)
    future.MergeFromString(wire.num(20, 77) + wire.sub(9001, "value"))
    return out + [future]


def functions():
    f = helper.make_function(
        "local",
        "Twice",
        ["a", "unused"],
        ["b", "a"],
        [
            make_node("Add", ["a", "a"], ["b0"], name="add"),
            make_node("LeakyRelu", ["b0"], ["b"]),
            make_node("Hidden", ["", "b"], ["", "c"], domain="other"),
        ],
        [make_opsetid("", 20), make_opsetid("other", 3)],
        attributes=["alpha"],
        attribute_protos=[helper.make_attribute("beta", 2.0)],
        doc_string="doubles",
        overload="v2",
    )
    for name, kind in (("alpha", "FLOAT"), ("tensor", "TENSOR"), ("string", "STRING"), ("graph", "GRAPH")):
        f.node[1].attribute.append(
            AttributeProto(name=name, type=getattr(AttributeProto, kind), ref_attr_name=name)
        )
    f.value_info.extend([make_tensor_value_info("a", 1, [1]), make_tensor_value_info("b0", 1, [1])])
    f.value_info.append(make_tensor_value_info("nowhere", 1, [1]))
    n = make_node("Twice", ["x", ""], ["y", ""], domain="local", overload="v2")
    m = model(graph([n]), functions=[f])
    m.opset_import.extend([make_opsetid("local", 1), onnx.OperatorSetIdProto(domain="odd")])
    return m


def scopes():
    """Sub-graphs that use what is around them, also what a later node makes."""
    t = make_tensor_value_info("t", TensorProto.FLOAT, None)
    inner = branch(
        [make_node("Add", ["x", "m"], ["t"])], [t], value_info=[make_tensor_value_info("m", TensorProto.FLOAT, [9])]
    )
    outer = branch([], [make_tensor_value_info("m", TensorProto.FLOAT, ["other", 3])], doc_string="an outer value")
    deep = branch(
        [make_node("If", ["c"], ["t"], then_branch=inner, else_branch=outer)],
        [t],
        initializer=[make_tensor("w", TensorProto.FLOAT, [1], [1.0])],
    )
    shadow = make_graph(
        [make_node("Identity", ["x"], ["t"])], "shadow", [X], [t], value_info=[make_tensor_value_info("x", 1, [7])]
    )
    nodes = [
        make_node("Relu", ["x"], ["m"]),
        make_node("If", ["c"], ["y"], then_branch=deep, else_branch=outer, name="if"),
        make_node("Odd", ["c"], ["z"], body=shadow, domain="odd"),
    ]
    m = model(graph(nodes, weights=[make_tensor("c", TensorProto.BOOL, [], [True])]))
    m.opset_import.append(make_opsetid("odd", 1))
    return m


def declarations():
    """Values declared more than once, differently, or not at all."""
    other = make_tensor_value_info("x", TensorProto.FLOAT, [5, 3], doc_string="as output")
    w = make_tensor("w", TensorProto.FLOAT, [3], [1.0, 2.0, 3.0])
    g = graph(
        [make_node("Add", ["x", "w"], ["y"])],
        [X, make_tensor_value_info("w", TensorProto.FLOAT, [3]), onnx.ValueInfoProto(name="untyped")],
        [Y, other, Y],
        [w],
        value_info=[Y, X, make_tensor_value_info("w", 1, [1, 3])]
        + [make_tensor_value_info("y", 1, [4, 4]), make_tensor_value_info("ghost", 1, [1]), onnx.ValueInfoProto()],
    )
    return model(g)


def devices(m):
    c = m.configuration.add(name="two", num_devices=2, device=["a", "b"])
    n = m.graph.node[0].device_configurations.add(configuration_id=c.name, pipeline_stage=0)
    s = n.sharding_spec.add(tensor_name="x", device=[0, -1])
    s.index_to_device_group_map.add(key=-1, value=[0, 1])
    d = s.sharded_dim.add(axis=0).simple_sharding
    d.add(dim_param="N", num_shards=2)
    d.add(dim_value=4)


def training():
    m = model()
    t = m.training_info.add()
    t.algorithm.CopyFrom(graph(weights=[onnx.numpy_helper.from_array(np.arange(600, dtype=np.float32), "big")]))
    t.initialization.CopyFrom(graph(weights=[onnx.numpy_helper.from_array(np.arange(4), "four")]))
    t.initialization_binding.append(pair("a", "b"))
    t.update_binding.append(pair("c", "d"))
    a = m.graph.quantization_annotation.add(tensor_name="x")
    a.quant_parameter_tensor_names.append(pair("SCALE_TENSOR", "s"))
    m.graph.sparse_initializer.append(sparse("sw"))
    devices(m)
    return m


def models():
    yield "relu", model()
    bare = onnx.ModelProto()
    bare.graph.SetInParent()
    yield "bare", bare
    zeros = model(ir=0, opset=0, producer_name="", producer_version="", doc_string="", domain="", model_version=0)
    zeros.graph.name = ""
    yield "zeros", zeros
    old = model(ir=2)
    del old.opset_import[:]
    yield "before-opsets", old
    yield "tensors", model(graph(weights=typed_tensors()), ir=14)
    infos = [onnx.ValueInfoProto(name=n, type=t) for n, t in types().items()]
    yield "types", model(graph(ins=[X] + infos))
    node = make_node("Odd", ["x", "", ""], ["", "y", ""], domain="odd", overload="")
    node.attribute.extend(attributes())
    m = model(graph([node]))
    m.opset_import.append(make_opsetid("odd", 1))
    yield "attributes", m
    for name, make in (
        ("functions", functions),
        ("scopes", scopes),
        ("declarations", declarations),
        ("training", training),
    ):
        yield name, make()
        m = make()
        add_meta(m)
        yield name + "-meta", m
        add_unknown(m)
        yield name + "-unknown", m
    add_unknown(node)
    yield "attributes-unknown", model(graph([node]))
    m = model(graph(weights=typed_tensors()), ir=14)
    add_meta(m)
    add_unknown(m)
    yield "tensors-unknown", m


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: rich_models.py OUTDIR")
    os.makedirs(sys.argv[1], exist_ok=True)
    for name, m in models():
        with open(os.path.join(sys.argv[1], name + ".onnx"), "wb") as f:
            f.write(m.SerializeToString(deterministic=True))


if __name__ == "__main__":
    main()
