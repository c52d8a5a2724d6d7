"""TensorFlow's operators on ragged tensors."""

from __future__ import annotations

from typing import Any

import numpy as np

from tflite_ort.opmap.flex.elementwise import FLOATS, INTEGERS, read_computed, write_computed
from tflite_ort.opmap.flex.reductions import ascending, counted
from tflite_ort.opmap.graph import Domain, Graph, Layout
from tflite_ort.opmap.idioms.indices import affordable, failing, rows_at
from tflite_ort.opmap.idioms.texts import read_texts
from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.opmap.registry import flex_translator
from tflite_ort.schema import OperatorView, TensorType, TensorView, Untranslatable
from tflite_ort.schema.shapes.tokenizers import partition_kinds
from tflite_ort.schema.values.flex import node_of
from tflite_ort.schema.values.sizes import has_zero, is_known

View = OperatorView[Any]
_MOVED = FLOATS | INTEGERS | {TensorType.BOOL}
_LAST = np.iinfo(np.int64).max
_IDS = ["FIRST_DIM_SIZE", "VALUE_ROWIDS"]


def _rows(g: Graph, splits: ir.Value, value: ir.Value) -> tuple[ir.Value, ir.Value]:
    """Where the rows of values start, and their lengths; the graph fails where the splits are not
    those of the values."""
    first, last = g.ints([0]), g.ints([_LAST])
    starts = g.op("Slice", splits, first, g.ints([-1]))
    ends = g.op("Slice", splits, g.ints([1]), last)
    bounds = g.op(
        "Concat",
        g.op("Slice", splits, first, g.ints([1])),
        g.op("Slice", splits, g.ints([-1]), last),
        axis=0,
    )
    wanted = g.op("Concat", first, g.op("Shape", value, start=0, end=1), axis=0)
    outside = g.op("Not", g.op("Equal", bounds, wanted))
    lengths = failing(g, g.op("Sub", ends, starts), g.op("Less", ends, starts))
    none = g.op("ReduceSum", failing(g, g.ints([0, 0]), outside), g.ints([0]))
    return starts, g.op("Add", lengths, none)


def _rows_of_ids(
    g: Graph, count: ir.Value, ids: TensorView, value: ir.Value
) -> tuple[ir.Value, ir.Value]:
    """As `_rows`, of `count` [1] rows, from the row of each value."""
    rows = ascending(g, ids)
    size = g.op("Shape", rows)
    size = failing(g, size, g.op("Not", g.op("Equal", size, g.op("Shape", value, start=0, end=1))))
    one = g.op("Expand", g.ints(1), size)
    none = g.op("Expand", g.ints(0), count)
    lengths = g.op("ScatterElements", none, rows, one, axis=0, reduction="add")
    return g.op("CumSum", lengths, g.ints(0), exclusive=1), lengths


def _widest(g: Graph, lengths: ir.Value, shape: ir.Value, op: View) -> ir.Value:
    """The length [1] of the longest row, which it has to be affordable to fill."""
    width = g.op("ReduceMax", g.op("Concat", lengths, g.ints([0]), axis=0), keepdims=1)
    return affordable(g, width, g.op("Concat", g.op("Shape", lengths), width, shape, axis=0), op)


def _grid(
    g: Graph, starts: ir.Value, lengths: ir.Value, width: ir.Value
) -> tuple[ir.Value, ir.Value]:
    """The place of each element of each row [rows, width], and whether it is one."""
    columns = g.op("Range", g.ints(0), g.op("Squeeze", width), g.ints(1))
    there = g.op("Less", columns, g.op("Unsqueeze", lengths, g.ints([1])))
    return g.op("Add", g.op("Unsqueeze", starts, g.ints([1])), columns), there


@flex_translator("RaggedTensorToSparse")
def to_sparse(op: View, g: Graph) -> None:
    """NonZero of the places that rows of one length have; one level of rows of single values."""
    *levels, values = op.present_inputs()
    if len(levels) != 1 or values.rank != 1:
        raise Untranslatable("several levels of rows, or rows of arrays")
    value = read_computed(g, values, _MOVED, Layout.LAST)
    starts, lengths = _rows(g, g.whole(levels[0]), value)
    width = _widest(g, lengths, g.ints(np.zeros(0, np.int64)), op)
    _, there = _grid(g, starts, lengths, width)
    indices, flat, sizes = op.outputs
    g.write(indices, g.op("Transpose", g.op("NonZero", there), perm=[1, 0]))
    write_computed(g, flat, g.op("Identity", value), Layout.LAST)
    g.write(sizes, g.op("Concat", g.op("Shape", lengths), width, axis=0))


@flex_translator("RaggedGather")
def gather(op: View, g: Graph) -> None:
    """Gather of the places of the rows; one level of rows, and a list of indices."""
    splits, values, indices = op.present_inputs()[0], *op.present_inputs()[-2:]
    if len(op.present_inputs()) != 3 or indices.rank != 1:
        raise Untranslatable("several levels of rows, or of indices")
    value, picked = read_computed(g, values, _MOVED, Layout.LAST), g.whole(indices)
    starts, lengths = (
        g.op("Gather", each, failing(g, picked, g.op("Less", picked, g.ints(0))), axis=0)
        for each in _rows(g, g.whole(splits), value)
    )
    width = _widest(g, lengths, g.ints(np.zeros(0, np.int64)), op)
    places, there = _grid(g, starts, lengths, width)
    rows = g.op("Compress", g.reshape(places, (-1,)), g.reshape(there, (-1,)), axis=0)
    bounds = g.op("Concat", g.ints([0]), g.op("CumSum", lengths, g.ints(0)), axis=0)
    g.write(op.outputs[0], g.cast(bounds, op.outputs[0].dtype))
    write_computed(g, op.outputs[1], g.op("Gather", value, rows, axis=0), Layout.LAST)


@flex_translator("RaggedTensorToTensor")
def to_tensor(op: View, g: Graph) -> None:
    """Gather of each place's value, from the values and the default value behind them."""
    node, values = node_of(op), op["values"]
    told = op["shape"].data
    rest = values.shape[1:]
    kinds = partition_kinds(node["row_partition_types"], node["num_row_partition_tensors"])
    if kinds not in (["ROW_SPLITS"], _IDS) or told is None or not is_known(*rest):
        raise Untranslatable("several levels of rows, or sizes that the file does not tell")
    if told.ndim and told[0] >= 0:
        raise Untranslatable("a number of rows that is not that of the splits")
    if told.ndim and any(a not in (-1, b) for a, b in zip(told[2:].tolist(), rest, strict=True)):
        raise Untranslatable(f"values of {values.shape} as {told.tolist()}")
    value = _read(g, values)
    partitions = node.inputs(op.present_inputs(), "row_partition_tensors")
    if kinds == _IDS:
        rows = g.reshape(g.whole(partitions[0]), (1,))
        starts, lengths = _rows_of_ids(g, rows, partitions[1], value)
    else:
        starts, lengths = _rows(g, g.whole(partitions[0]), value)
    count, first = g.op("Shape", value, start=0, end=1), g.ints([0])
    if told.ndim and told[1] >= 0:
        width = g.ints([int(told[1])])
    else:
        width = g.op("ReduceMax", g.op("Concat", lengths, first, axis=0), keepdims=1)
    sizes = g.op("Concat", g.op("Shape", lengths), width, g.ints(rest), axis=0)
    width = affordable(g, width, sizes, op)
    places, there = _grid(g, starts, lengths, width)
    places = g.op("Where", there, places, count)
    row = g.op("Expand", _read(g, op["default_value"]), g.ints([1, *rest]))
    found = rows_at(g, g.op("Concat", value, row, axis=0), places, values.type)
    if values.type is TensorType.STRING:
        g.write(op.output, found, domain=Domain.FILE)
    else:
        write_computed(g, op.output, found, Layout.LAST)


def _read(g: Graph, tensor: TensorView) -> ir.Value:
    """Values that are moved: texts where no kernel takes those of any bytes."""
    if tensor.type is TensorType.STRING:
        return read_texts(g, tensor)
    return read_computed(g, tensor, _MOVED, Layout.LAST)


@flex_translator("RaggedBincount")
def bincount(op: View, g: Graph) -> None:
    """As DenseBincount, of rows of one length; what fills them is beyond the last bin."""
    if not has_zero(*op["weights"].shape) and not node_of(op)["binary_output"]:
        raise Untranslatable("weights")
    values = g.whole(op["values"])
    starts, lengths = _rows(g, g.whole(op["splits"]), values)
    width = _widest(g, lengths, g.ints(np.zeros(0, np.int64)), op)
    places, there = _grid(g, starts, lengths, width)
    places = g.op("Where", there, places, g.op("Shape", values))
    padded = g.op("Gather", g.op("Concat", values, g.ints([_LAST]), axis=0), places)
    rows = padded, g.op("Shape", lengths)
    write_computed(g, op.output, counted(op, g, rows, op["weights"], op["size"]), Layout.LAST)
