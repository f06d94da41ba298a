"""What the project's reader of ONNX must find in a file, by the reader of ONNX's own makers.

    python crates/decode/tests/models/onnx_text.py FILE.onnx | b3sum

The hashes are in crates/decode/src/learned/onnx/tests.rs, which writes the same text of what our
reader finds. It needs the packages onnx and numpy; no test runs it.
"""

import sys

import numpy
import onnx


def tensor(t):
    floats = numpy.array(t.float_data, "<f4").tobytes().hex()
    lists = f"{list(t.dims)} {t.raw_data.hex()} {floats} {list(t.int32_data)}"
    print(f"tensor {t.name} {t.data_type} {lists}")


def port(p):
    shape = p.type.tensor_type.shape.dim
    lengths = [d.dim_value if d.HasField("dim_value") else None for d in shape]
    print(f"port {p.name} {' '.join('?' if n is None else str(n) for n in lengths)}")


model = onnx.load(sys.argv[1])
for entry in model.metadata_props:
    print(f"metadata {entry.key} {entry.value}")
for n in model.graph.node:
    print(f"node {n.name} {n.op_type} {' '.join(n.input)} -> {' '.join(n.output)}")
    for a in n.attribute:
        print(f"attribute {a.name} {a.i} {list(a.ints)} {a.s.hex()}")
        if a.HasField("t"):
            tensor(a.t)
for t in model.graph.initializer:
    tensor(t)
for p in [*model.graph.input, *model.graph.output]:
    port(p)
