"""Lists that are tensors: [length, *element]."""

from __future__ import annotations

from typing import Any

import numpy as np

from tflite_ort.opmap.graph import Domain, Graph
from tflite_ort.opmap.idioms.indices import failing
from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.opmap.registry import flex_translator
from tflite_ort.schema import OperatorView, TensorType, Untranslatable
from tflite_ort.schema.values.flex import node_of
from tflite_ort.schema.values.sizes import is_known, may_differ

View = OperatorView[Any]


@flex_translator("TensorListReserve", "EmptyTensorList")
def created(op: View, g: Graph) -> None:
    """Expand of 0."""
    if op.output.type is TensorType.STRING:
        raise Untranslatable("a list of texts")
    length, *element = op.output.shape
    if is_known(length):
        sizes = g.shape((length, *element))
    else:
        number = g.reshape(g.read(op["num_elements"]), (1,))
        parts = [g.cast(number, np.dtype(np.int64)), *(g.size(size) for size in element)]
        sizes = g.op("Concat", *parts, axis=0) if element else parts[0]
    zero = g.constant(0, op.output.dtype)
    g.write(op.output, g.op("Expand", zero, sizes), domain=Domain.FILE)


@flex_translator("TensorListSetItem")
def with_item(op: View, g: Graph) -> None:
    """ScatterND of one row."""
    whole, item = op["input_handle"], op["item"]
    if may_differ(whole.shape[1:], item.shape):
        raise Untranslatable("a list whose elements are not known")
    place = g.cast(g.reshape(g.read(op["index"]), (1, 1)), np.dtype(np.int64))
    row = g.op("Unsqueeze", g.read(item, domain=Domain.FILE), g.ints([0]))
    elements = g.read(whole, domain=Domain.FILE)
    if node_of(op)["resize_if_index_out_of_bounds"]:
        elements = _reaching(g, elements, g.reshape(place, (1,)), row, op)
    g.write(op.output, g.op("ScatterND", elements, place, row), domain=Domain.FILE)


def _reaching(g: Graph, whole: ir.Value, place: ir.Value, row: ir.Value, op: View) -> ir.Value:
    """A list with as many zeros after it as it takes to have an element at `place`."""
    missing = g.op("Sub", g.op("Add", place, g.ints([1])), g.op("Shape", whole, end=1))
    count = g.op("Max", missing, g.ints([0]))
    shape = g.op("Concat", count, g.op("Shape", row, start=1), axis=0)
    zeros = g.op("Expand", g.constant(0, op.output.dtype), shape)
    return g.op("Concat", whole, zeros, axis=0)


@flex_translator("TensorListPushBack")
def pushed(op: View, g: Graph) -> None:
    """Concat."""
    whole, item = op["input_handle"], op["tensor"]
    if may_differ(whole.shape[1:], item.shape):
        raise Untranslatable("a list whose elements are not known")
    row = g.op("Unsqueeze", g.read(item, domain=Domain.FILE), g.ints([0]))
    result = g.op("Concat", g.read(whole, domain=Domain.FILE), row, axis=0)
    g.write(op.output, result, domain=Domain.FILE)


@flex_translator("TensorListScatter", "TensorListScatterV2", "TensorListScatterIntoExistingList")
def scattered(op: View, g: Graph) -> None:
    """ScatterND of rows, into zeros or what there is, after which as many zeros come as needed."""
    rows, length = op["tensor"], op.output.shape[0]
    into = op.name == "FlexTensorListScatterIntoExistingList"
    if op.output.type is TensorType.STRING:
        raise Untranslatable("a list of texts")
    if into and may_differ(op["input_handle"].shape[1:], rows.shape[1:]):
        raise Untranslatable("a list whose elements are not known")
    places = g.cast(g.read(op["indices"]), np.dtype(np.int64))
    row = g.read(rows, domain=Domain.FILE)
    if is_known(length):
        count = g.ints([length])
    elif op.name == "FlexTensorListScatterV2":
        count = g.cast(g.reshape(g.read(op["num_elements"]), (1,)), np.dtype(np.int64))
    else:
        raise Untranslatable("a list as long as its indices tell")
    zero, element = g.constant(0, op.output.dtype), g.op("Shape", row, start=1)
    if into:
        before = g.read(op["input_handle"], domain=Domain.FILE)
        missing = g.op("Sub", count, g.op("Shape", before, end=1))
        zeros = g.op("Expand", zero, g.op("Concat", missing, element, axis=0))
        whole = g.op("Concat", before, zeros, axis=0)
    else:
        whole = g.op("Expand", zero, g.op("Concat", count, element, axis=0))
    made = g.op("ScatterND", whole, g.op("Unsqueeze", places, g.ints([1])), row)
    g.write(op.output, made, domain=Domain.FILE)


@flex_translator("TensorListResize")
def resized(op: View, g: Graph) -> None:
    """The first elements, and zeros after them."""
    if op.output.type is TensorType.STRING:
        raise Untranslatable("a list of texts")
    whole, size = op["input_handle"], g.reshape(g.whole(op["size"]), (1,))
    size = failing(g, size, g.op("Less", size, g.ints([0])))
    kept = g.op("Slice", g.read(whole, domain=Domain.FILE), g.ints([0]), size)
    missing = g.op("Sub", size, g.op("Shape", kept, end=1))
    shape = g.op("Concat", missing, g.op("Shape", kept, start=1), axis=0)
    zeros = g.op("Expand", g.constant(0, op.output.dtype), shape)
    g.write(op.output, g.op("Concat", kept, zeros, axis=0), domain=Domain.FILE)


@flex_translator("TensorListConcat", "TensorListConcatV2")
def joined(op: View, g: Graph) -> None:
    """The first two dimensions as one."""
    whole, (out, lengths) = op["input_handle"], op.outputs
    value = g.read(whole, domain=Domain.FILE)
    rest = g.op("Shape", value, start=2)
    length, first = g.op("Shape", value, end=1), g.op("Shape", value, start=1, end=2)
    shape = g.op("Concat", g.op("Mul", length, first), rest, axis=0)
    g.write(out, g.op("Reshape", value, shape, allowzero=1), domain=Domain.FILE)
    g.write(lengths, g.op("Expand", first, length))


@flex_translator("TensorListSplit")
def split(op: View, g: Graph) -> None:
    """The first dimension as two; the graph fails where the parts have several sizes."""
    whole, lengths = op["tensor"], g.cast(g.read(op["lengths"]), np.dtype(np.int64))
    if not is_known(*op["lengths"].shape) or op["lengths"].shape == (0,):
        raise Untranslatable("a list as long as a tensor tells")
    first = g.op("Slice", lengths, g.ints([0]), g.ints([1]))
    first = g.op("ReduceMax", failing(g, first, g.op("Not", g.op("Equal", lengths, first))))
    value = g.read(whole, domain=Domain.FILE)
    sizes = [
        g.ints(list(op["lengths"].shape)),
        g.reshape(first, (1,)),
        g.op("Shape", value, start=1),
    ]
    made = g.op("Reshape", value, g.op("Concat", *sizes, axis=0), allowzero=1)
    g.write(op.output, made, domain=Domain.FILE)


@flex_translator("TensorListStack")
def stacked(op: View, g: Graph) -> None:
    """The list itself."""
    whole = op["input_handle"]
    if may_differ(whole.shape[1:], op.output.shape[1:]):
        raise Untranslatable("a list whose elements are not known")
    g.take(op.output, g.forms_as(whole, op.output))


@flex_translator("TensorListFromTensor")
def from_tensor(op: View, g: Graph) -> None:
    """The tensor itself."""
    g.take(op.output, g.forms_as(op["tensor"], op.output))
