"""TensorFlow's greedy decoder of connectionist temporal classification."""

from __future__ import annotations

from typing import Any

import numpy as np

from tflite_ort.opmap.graph import Graph
from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.opmap.registry import flex_translator
from tflite_ort.schema import OperatorView, TensorType, Untranslatable
from tflite_ort.schema.values.flex import node_of
from tflite_ort.schema.values.sizes import has_zero, is_known


@flex_translator("CTCGreedyDecoder")
def greedy(op: OperatorView[Any], g: Graph) -> None:
    """ArgMax of each step, and NonZero of those that are kept; their places are running counts."""
    x, lengths, node = op["inputs"], op["sequence_length"], node_of(op)
    steps, _, classes = x.shape
    if x.type is not TensorType.FLOAT32 or not is_known(classes) or has_zero(*x.shape):
        raise Untranslatable(f"{x.type.name} inputs of {x.shape}")
    blank = node["blank_index"] + (classes if node["blank_index"] < 0 else 0)
    if not 0 <= blank < classes:
        raise Untranslatable(f"blank {node['blank_index']} of {classes} classes")
    rows = g.op("Transpose", g.read(x), perm=[1, 0, 2])
    limit = g.op("Unsqueeze", g.whole(lengths), g.ints([1]))
    numbers = g.op("Range", g.ints(0), g.reshape(g.size(steps), ()), g.ints(1))
    there = g.op("Less", numbers, limit)
    best = g.op("ArgMax", rows, axis=2, keepdims=0)
    kept = g.op("And", there, g.op("Not", g.op("Equal", best, g.ints(blank))))
    if node["merge_repeated"]:
        before = g.op("Pad", best, g.ints([0, 1, 0, -1]), g.ints(-1))
        kept = g.op("And", kept, g.op("Not", g.op("Equal", best, before)))
    _write_sparse(op, g, best, kept)
    most = g.op("ReduceMax", rows, g.ints([2]), keepdims=0)
    scores = g.op("Where", there, most, g.constant(0, np.float32))
    g.write(op.outputs[3], g.op("Neg", g.op("ReduceSum", scores, g.ints([1]), keepdims=1)))


def _write_sparse(op: OperatorView[Any], g: Graph, best: ir.Value, kept: ir.Value) -> None:
    numbers = g.cast(kept, ir.DataType.INT64)
    counts = g.op("CumSum", numbers, g.ints(1), exclusive=1)
    at = g.op("Transpose", g.op("NonZero", kept), perm=[1, 0])
    row = g.op("Slice", at, g.ints([0]), g.ints([1]), g.ints([1]))
    place = g.op("Unsqueeze", g.op("GatherND", counts, at), g.ints([1]))
    g.write(op.outputs[0], g.op("Concat", row, place, axis=1))
    g.write(op.outputs[1], g.op("GatherND", best, at))
    each = g.op("ReduceSum", numbers, g.ints([1]), keepdims=0)
    longest = g.op("ReduceMax", each, g.ints([0]), keepdims=1)
    g.write(op.outputs[2], g.op("Concat", g.size(op["inputs"].shape[1]), longest, axis=0))
