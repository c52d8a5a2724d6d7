"""TensorFlow's non-maximum suppression of all classes of all images."""

from __future__ import annotations

from typing import Any

import numpy as np

from tflite_ort.opmap.graph import Graph
from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.opmap.registry import flex_translator
from tflite_ort.schema import OperatorView, Untranslatable
from tflite_ort.schema.values.flex import node_of
from tflite_ort.schema.values.sizes import is_known


@flex_translator("CombinedNonMaxSuppression")
def combined(op: OperatorView[Any], g: Graph) -> None:
    """NonMaxSuppression of all classes, and TopK of the scores that it selects."""
    boxes, scores = op["boxes"], op["scores"]
    count, classes, size = scores.shape[1], scores.shape[2], op.outputs[1].shape[1]
    if boxes.shape[2] != 1 or not is_known(count, classes, size):
        raise Untranslatable("boxes of each class of their own, or sizes that are not known")
    if not count or not classes:
        raise Untranslatable("no boxes or no classes")
    rows = g.op("Squeeze", g.read(boxes), g.ints([2]))
    by_class = g.op("Transpose", g.read(scores), perm=[0, 2, 1])
    most, overlap, lowest = (
        g.reshape(g.read(op[name]), (1,))
        for name in ("max_output_size_per_class", "iou_threshold", "score_threshold")
    )
    places = g.op(
        "NonMaxSuppression", rows, by_class, g.cast(most, ir.DataType.INT64), overlap, lowest
    )
    never = g.constant(-np.inf, np.float32)
    none = g.op("Expand", never, g.op("Shape", by_class))
    kept = g.op("ScatterND", none, places, g.op("GatherND", by_class, places))
    flat = g.op("Reshape", kept, g.ints([0, -1]))
    first = min(size, count * classes)
    values, order = g.op_multi("TopK", flat, g.ints([first]), outputs=2, axis=1)
    there = g.op("Greater", values, never)
    kinds = g.cast(g.op("Div", order, g.ints(count)), ir.DataType.FLOAT)
    places = g.op("Unsqueeze", g.op("Mod", order, g.ints(count)), g.ints([2]))
    found = g.op("GatherND", rows, places, batch_dims=1)
    if node_of(op)["clip_boxes"]:
        found = g.op("Clip", found, g.constant(0, np.float32), g.constant(1, np.float32))
    zero = g.constant(0, np.float32)
    chosen = g.op("Unsqueeze", there, g.ints([2]))
    results = [
        g.op("Where", chosen, found, zero),
        g.op("Where", there, values, zero),
        g.op("Where", there, kinds, zero),
    ]
    for output, value in zip(op.outputs, results, strict=False):
        if first < size:
            ends = [0] * output.rank + [0, size - first] + [0] * (output.rank - 2)
            value = g.op("Pad", value, g.ints(ends))
        g.write(output, value)
    total = g.op("ReduceSum", g.cast(there, ir.DataType.INT32), g.ints([1]), keepdims=0)
    g.write(op.outputs[3], total)
