"""Shape rules of TensorFlow's operators that read sequence examples."""

from __future__ import annotations

from typing import Any

from tflite_ort.schema.shapes.registry import Shape, Shapes, flex_rule
from tflite_ort.schema.values.flex import node_of
from tflite_ort.schema.values.sizes import unknown_size
from tflite_ort.schema.values.view import OperatorView

View = OperatorView[Any]

_BOUNDS = ("context_ragged_row_splits", "feature_list_ragged_outer_splits")


@flex_rule("ParseSequenceExample", "ParseSequenceExampleV2", "ParseSingleSequenceExample")
def sequences(op: View) -> Shapes:
    """Lists of sparse and ragged features; the given shapes of dense ones, by step."""
    node, batch = node_of(op), op.present_inputs()[0].shape
    found: list[Shape] = []
    for name, tensors in node.parts(node.operator.outputs, op.outputs).items():
        by_step = name.startswith("feature_list")
        rank, steps = len(batch) + 1 + by_step, (unknown_size(),) * by_step
        for number, _ in enumerate(tensors):
            if name.endswith("dense_values"):
                part = "feature_list" if by_step else "context"
                sizes = node[f"{part}_dense_shapes"][number] or ()
                found.append((*batch, *steps, *(unknown_size() if n < 0 else n for n in sizes)))
            elif name.endswith("sparse_indices"):
                found.append((unknown_size(), rank))
            elif name.endswith("dense_lengths") or (name in _BOUNDS and not batch):
                found.append(batch)
            else:
                found.append((rank if name.endswith("sparse_shapes") else unknown_size(),))
    return tuple(found)
