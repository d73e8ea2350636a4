"""Write protobuf by hand: what the model makers of this folder share. Standard library only.

A message is bytes; `msg(num(1, 8), sub(7, graph))` puts one together. Field numbers are those of schemas/onnx.proto.
"""

import struct

FLOAT, UINT8, INT64, STRING, BOOL, FLOAT16, COMPLEX64, FLOAT8 = 1, 2, 7, 8, 9, 10, 14, 17
ATTR_FLOAT, ATTR_INT, ATTR_STRING, ATTR_TENSOR, ATTR_GRAPH, ATTR_FLOATS, ATTR_INTS = range(1, 8)


def varint(value):
    """A varint; negative numbers take ten bytes, as int64 fields do."""
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def key(field, wire_type):
    return varint(field << 3 | wire_type)


def num(field, value):
    return key(field, 0) + varint(value)


def head(field, size):
    """What comes before `size` bytes of a string or message."""
    return key(field, 2) + varint(size)


def sub(field, data):
    if isinstance(data, str):
        data = data.encode()
    return head(field, len(data)) + data


def msg(*parts):
    return b"".join(parts)


# ---- ONNX messages ---------------------------------------------------------------------------------------------------


def shape(dims):
    """TensorShapeProto: numbers are sizes, strings are symbols, None is unknown."""
    one = {int: lambda d: num(1, d), str: lambda d: sub(2, d), type(None): lambda d: b""}
    return msg(*(sub(1, one[type(d)](d)) for d in dims))


def tensor_type(dtype, dims=None):
    """TypeProto of a tensor; without dims the rank is unknown."""
    return sub(1, num(1, dtype) + (b"" if dims is None else sub(2, shape(dims))))


def value(name, dtype, dims=None):
    """ValueInfoProto."""
    return sub(1, name) + sub(2, tensor_type(dtype, dims))


def external(**entries):
    """TensorProto fields of data that lie in another file."""
    return msg(*(sub(13, sub(1, k) + sub(2, str(v))) for k, v in entries.items())) + num(14, 1)


def tensor(name, dtype, dims, raw=None, extra=b""):
    """TensorProto; `extra` are further fields, such as external(...)."""
    data = b"" if raw is None else sub(9, raw)
    return msg(*(num(1, d) for d in dims), num(2, dtype), sub(8, name), data, extra)


def attr(name, kind, *payload):
    """AttributeProto; the payload's fields are given by hand so that they may disagree with the kind."""
    return msg(sub(1, name), *payload, num(20, kind))


def attr_int(name, v):
    return attr(name, ATTR_INT, num(3, v))


def attr_ints(name, vs):
    return attr(name, ATTR_INTS, *(num(8, v) for v in vs))


def attr_string(name, v):
    return attr(name, ATTR_STRING, sub(4, v))


def attr_tensor(name, t):
    return attr(name, ATTR_TENSOR, sub(5, t))


def attr_graph(name, g):
    return attr(name, ATTR_GRAPH, sub(6, g))


def node(op, ins, outs, *attrs, name=None, domain=None):
    """NodeProto; its name is the operator's in lower case unless given."""
    return msg(
        *(sub(1, i) for i in ins),
        *(sub(2, o) for o in outs),
        sub(3, op.lower() if name is None else name),
        sub(4, op),
        *(sub(5, a) for a in attrs),
        b"" if domain is None else sub(7, domain),
    )


def graph(nodes, ins=(), outs=(), weights=(), extra=b"", name="g"):
    return msg(
        *(sub(1, n) for n in nodes),
        sub(2, name),
        *(sub(5, w) for w in weights),
        *(sub(11, i) for i in ins),
        *(sub(12, o) for o in outs),
        extra,
    )


def opset(version, domain=""):
    return (sub(1, domain) if domain else b"") + num(2, version)


def model(g, opsets=((17, ""),), ir=8, extra=b""):
    """ModelProto; the opset imports come last, so that a cut behind the graph is a mistake, too."""
    return msg(num(1, ir), sub(2, "hone test/onnx"), sub(7, g), extra, *(sub(8, opset(*o)) for o in opsets))


def function(name, domain, ins, outs, nodes, opsets):
    return msg(
        sub(1, name),
        *(sub(4, i) for i in ins),
        *(sub(5, o) for o in outs),
        *(sub(7, n) for n in nodes),
        *(sub(9, opset(*o)) for o in opsets),
        sub(10, domain),
    )


# ---- small models ----------------------------------------------------------------------------------------------------

X = value("x", FLOAT, (2, 3))
Y = value("y", FLOAT)  # shape unknown: what the nodes say decides
MAX = (1 << 63) - 1


def f32(*values):
    return struct.pack(f"<{len(values)}f", *values)


def i64(*values):
    return struct.pack(f"<{len(values)}q", *values)


def ints(name, *values):
    return tensor(name, INT64, (len(values),), i64(*values))


def floats(name, *dims):
    """An f32 tensor of ones."""
    count = 1
    for d in dims:
        count *= d
    return tensor(name, FLOAT, dims, f32(1) * count)


def simple(nodes, weights=(), ins=(X,), outs=(Y,), opsets=((17, ""),), extra=b"", top=b""):
    return model(graph(nodes, ins, outs, weights, extra), opsets, extra=top)


def one(op, *attrs, weights=(), ins=("x",), x=X, version=17, outs=("y",), y=Y, domain=None):
    """A model of the one node `bad`."""
    bad = node(op, ins, outs, *attrs, name="bad", domain=domain)
    return simple([bad], weights, (x,), (y,), ((version, ""),) + (((1, domain),) if domain else ()))
