"""TensorFlow's operators on ragged tensors."""

from __future__ import annotations

from typing import Any

import numpy as np

from tflite_ort.opmap.flex.elementwise import FLOATS, INTEGERS, read_computed, write_computed
from tflite_ort.opmap.graph import Graph, Layout
from tflite_ort.opmap.idioms.indices import affordable, failing
from tflite_ort.opmap.registry import flex_translator
from tflite_ort.schema import OperatorView, TensorType, Untranslatable
from tflite_ort.schema.shapes.flex.ragged import partition_kinds
from tflite_ort.schema.values.flex import node_of
from tflite_ort.schema.values.sizes import is_known

View = OperatorView[Any]
_MOVED = FLOATS | INTEGERS | {TensorType.BOOL}
_LAST = np.iinfo(np.int64).max


@flex_translator("RaggedTensorToTensor")
def to_tensor(op: View, g: Graph) -> None:
    """Gather of each place's value, from the values and the default value behind them."""
    node, values = node_of(op), op["values"]
    told = op["shape"].data
    rest = values.shape[1:]
    if partition_kinds(node) != ["ROW_SPLITS"] or told is None or not is_known(*rest):
        raise Untranslatable("several levels of rows, or sizes that the file does not tell")
    if told.ndim and told[0] >= 0:
        raise Untranslatable("a number of rows that is not that of the splits")
    if told.ndim and any(a not in (-1, b) for a, b in zip(told[2:].tolist(), rest, strict=True)):
        raise Untranslatable(f"values of {values.shape} as {told.tolist()}")
    splits = g.whole(node.inputs(op.present_inputs(), "row_partition_tensors")[0])
    first, last = g.ints([0]), g.ints([_LAST])
    starts = g.op("Slice", splits, first, g.ints([-1]))
    ends = g.op("Slice", splits, g.ints([1]), last)
    value = read_computed(g, values, _MOVED, Layout.LAST)
    count = g.op("Shape", value, start=0, end=1)
    lengths = failing(g, g.op("Sub", ends, starts), g.op("Less", ends, starts))
    outside = g.op("Equal", g.op("Slice", splits, g.ints([-1]), last), count)
    outside = g.op(
        "Not", g.op("And", outside, g.op("Equal", g.op("Slice", splits, first, g.ints([1])), first))
    )
    if told.ndim and told[1] >= 0:
        width = g.ints([int(told[1])])
    else:
        width = g.op("ReduceMax", g.op("Concat", lengths, first, axis=0), keepdims=1)
    width = failing(g, width, outside)
    sizes = g.op("Concat", g.op("Shape", lengths), width, g.ints(rest), axis=0)
    width = affordable(g, width, sizes, op)
    columns = g.op("Range", g.ints(0), g.op("Squeeze", width), g.ints(1))
    there = g.op("Less", columns, g.op("Unsqueeze", lengths, g.ints([1])))
    places = g.op("Add", g.op("Unsqueeze", starts, g.ints([1])), columns)
    places = g.op("Where", there, places, count)
    default = read_computed(g, op["default_value"], _MOVED, Layout.LAST)
    row = g.op("Expand", default, g.ints([1, *rest]))
    found = g.op("Gather", g.op("Concat", value, row, axis=0), places, axis=0)
    write_computed(g, op.output, found, Layout.LAST)
