"""Shape rules of TensorFlow's operators that read bytes."""

from __future__ import annotations

from typing import Any

from tflite_ort.schema.shapes.registry import Shape, Shapes, flex_rule
from tflite_ort.schema.values.flex import node_of
from tflite_ort.schema.values.sizes import unknown_size
from tflite_ort.schema.values.view import OperatorView

View = OperatorView[Any]


@flex_rule("DecodeRaw", "DecodePaddedRaw")
def numbers(op: View) -> Shapes:
    """One dimension more, whose size the data says."""
    return ((*op.present_inputs()[0].shape, unknown_size()),)


@flex_rule("SerializeTensor")
def one_text(op: View) -> Shapes:
    """A scalar."""
    return ((),)


@flex_rule("ParseExample", "ParseExampleV2", "ParseSingleExample")
def examples(op: View) -> Shapes:
    """Lists of sparse and ragged features; the given shapes of dense ones."""
    node, batch = node_of(op), op.present_inputs()[0].shape
    outputs = node.parts(node.operator.outputs, op.outputs)
    found: list[Shape] = []
    for name, tensors in outputs.items():
        for number, _ in enumerate(tensors):
            if name == "dense_values":
                sizes = node["dense_shapes"][number] or ()
                found.append((*batch, *(unknown_size() if n < 0 else n for n in sizes)))
            elif name == "sparse_indices":
                found.append((unknown_size(), 1 + len(batch)))
            else:
                found.append((1 + len(batch) if name == "sparse_shapes" else unknown_size(),))
    return tuple(found)
