"""TensorFlow's layers of neural networks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tflite_ort.opmap.flex.elementwise import (
    _COMPUTED,
    FLOAT,
    FLOATS,
    INTEGERS,
    extreme,
    read_computed,
    write_computed,
)
from tflite_ort.opmap.graph import Domain, Graph, Layout
from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.opmap.registry import flex_translator
from tflite_ort.schema import OperatorView, TensorType, TensorView
from tflite_ort.schema.shapes.flex.layers import format_places, per_channel
from tflite_ort.schema.values.flex import node_of
from tflite_ort.schema.values.sizes import is_known, known_product

View = OperatorView[Any]
Emit = Callable[[Graph, ir.Value, TensorView], ir.Value]
_T = TensorType


def _node(op_type: str, **attributes: Any) -> Emit:
    return lambda g, x, tensor: g.op(op_type, x, **attributes)


def _like(g: Graph, tensor: TensorView, number: float) -> ir.Value:
    return g.constant(number, _COMPUTED[tensor.type])


def _relu(g: Graph, x: ir.Value, tensor: TensorView) -> ir.Value:
    if tensor.type in FLOATS:
        return g.op("Relu", x)
    return extreme("Max", g, tensor.type, x, _like(g, tensor, 0))


def _relu6(g: Graph, x: ir.Value, tensor: TensorView) -> ir.Value:
    if tensor.type in FLOATS:
        return g.op("Clip", x, _like(g, tensor, 0), _like(g, tensor, 6))
    return extreme("Min", g, tensor.type, _relu(g, x, tensor), _like(g, tensor, 6))


def _softsign(g: Graph, x: ir.Value, tensor: TensorView) -> ir.Value:
    return g.op("Div", x, g.op("Add", g.op("Abs", x), _like(g, tensor, 1)))


_WHOLE = FLOATS | INTEGERS - {_T.UINT64}
_UNARY: dict[str, tuple[Emit, frozenset[TensorType]]] = {
    "Elu": (_node("Elu"), FLOAT),
    "LogSoftmax": (_node("LogSoftmax", axis=-1), FLOATS),
    "Relu": (_relu, _WHOLE),
    "Relu6": (_relu6, _WHOLE),
    "Selu": (_node("Selu"), FLOAT),
    "Sigmoid": (_node("Sigmoid"), FLOATS),
    "Softmax": (_node("Softmax", axis=-1), FLOATS),
    "Softplus": (_node("Softplus"), FLOAT),
    "Softsign": (_softsign, FLOATS),
}


@flex_translator(*_UNARY)
def activation(op: View, g: Graph) -> None:
    """What `_UNARY` emits, element by element or row by row."""
    name = op.name.removeprefix("Flex")
    emit, types = _UNARY[name]
    (x,) = op.present_inputs()
    layout = Layout.LAST if name.endswith("Softmax") else g.layout(x)
    write_computed(g, op.output, emit(g, read_computed(g, x, types, layout), x), layout)


@flex_translator("LeakyRelu")
def leaky_relu(op: View, g: Graph) -> None:
    """LeakyRelu."""
    (x,) = op.present_inputs()
    layout = g.layout(x)
    value = read_computed(g, x, FLOAT, layout)
    write_computed(g, op.output, g.op("LeakyRelu", value, alpha=node_of(op)["alpha"]), layout)


@flex_translator("BiasAdd", "BiasAddV1")
def bias_add(op: View, g: Graph) -> None:
    """Add."""
    types = FLOATS | INTEGERS
    value, bias = (read_computed(g, op[name], types, Layout.LAST) for name in ("value", "bias"))
    shape = per_channel(op, op["value"].rank)
    if shape[-1] != -1:
        bias = g.op("Reshape", bias, g.ints(shape))
    write_computed(g, op.output, g.op("Add", value, bias), Layout.LAST)


@flex_translator("FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3")
def batch_norm(op: View, g: Graph) -> None:
    """BatchNormalization by moments that are given; in training mode by those of the input, in the
    nodes that compute them."""
    node, x = node_of(op), op["x"]
    layout = Layout.LAST if per_channel(op, x.rank)[-1] != -1 else Layout.FIRST
    value = read_computed(g, x, FLOAT, layout)
    scale, offset = (read_computed(g, op[name], FLOAT, Layout.LAST) for name in _AFFINE)
    given = tuple(op[name] for name in ("mean", "variance"))
    if node["is_training"]:
        used, averages = _moments(g, op, value, layout)
        averages = _averaged(g, node["exponential_avg_factor"], averages, given)
    else:
        used = averages = tuple(read_computed(g, each, FLOAT, Layout.LAST) for each in given)
    result = g.op("BatchNormalization", value, scale, offset, *used, epsilon=node["epsilon"])
    write_computed(g, op.outputs[0], result, layout)
    copies = [g.op("Identity", each) for each in (*averages, *used)]
    for output, moment in zip(op.outputs[1:], copies, strict=False):
        write_computed(g, output, moment, Layout.LAST)
    if len(op.outputs) > 5:
        g.write(op.outputs[5], g.constant(np.zeros((), op.outputs[5].dtype)), domain=Domain.FILE)


_AFFINE = ("scale", "offset")


def _averaged(
    g: Graph, share: float, new: Sequence[ir.Value], old: Sequence[TensorView]
) -> Sequence[ir.Value]:
    """The moments, or their running averages."""
    if share == 1:
        return new
    found, part = [], g.constant(share, np.float32)
    for value, tensor in zip(new, old, strict=True):
        before = read_computed(g, tensor, FLOAT, Layout.LAST)
        found.append(g.op("Add", before, g.op("Mul", g.op("Sub", value, before), part)))
    return found


def _moments(
    g: Graph, op: View, value: ir.Value, layout: Layout
) -> tuple[Sequence[ir.Value], Sequence[ir.Value]]:
    """(mean, variance) of each channel, and the same with the variance of a sample."""
    shape = op["x"].shape
    axes = [0, *range(2, len(shape))]
    mean = g.op("ReduceMean", value, g.ints(axes))
    less = g.op("Sub", value, mean)
    spread = g.op("ReduceMean", g.op("Mul", less, less), g.ints(axes), keepdims=0)
    centre = g.op("Reshape", mean, g.ints([-1]))
    cells = [shape[0], *(shape[2:] if layout is Layout.LAST else shape[1:-1])]
    if is_known(*cells):
        count = known_product(cells)
        share = g.constant(count / max(count - 1, 1), np.float32)
    else:
        whole = g.op("ReduceProd", g.op("Gather", g.op("Shape", value), g.ints(axes)), keepdims=0)
        fewer = g.larger(g.op("Sub", whole, g.ints(1)), g.ints(1))
        share = g.op("Div", *(g.cast(each, ir.DataType.FLOAT) for each in (whole, fewer)))
    return (centre, spread), (centre, g.op("Mul", spread, share))


@flex_translator("LRN")
def local_response(op: View, g: Graph) -> None:
    """LRN, whose alpha is of the mean of squares."""
    node, x = node_of(op), op["input"]
    channels, radius = x.shape[-1], node["depth_radius"]
    size = 2 * (min(radius, channels) if is_known(channels) else radius) + 1
    result = g.op(
        "LRN",
        read_computed(g, x, FLOAT, Layout.FIRST),
        size=size,
        bias=node["bias"],
        alpha=node["alpha"] * size,
        beta=node["beta"],
    )
    write_computed(g, op.output, result, Layout.FIRST)


@flex_translator("SoftmaxCrossEntropyWithLogits")
def cross_entropy(op: View, g: Graph) -> None:
    """LogSoftmax times the labels, and Softmax less the labels."""
    x, labels = (read_computed(g, op[n], FLOATS, Layout.LAST) for n in ("features", "labels"))
    if op["features"].shape != op.outputs[1].shape:
        x = g.op("Expand", x, g.op("Shape", labels))
    zero = _like(g, op["features"], 0)
    products = g.op("Mul", labels, g.op("Neg", g.op("LogSoftmax", x, axis=-1)))
    products = g.op("Where", g.op("Equal", labels, zero), zero, products)
    write_computed(
        g, op.outputs[0], g.op("ReduceSum", products, g.ints([1]), keepdims=0), Layout.LAST
    )
    gradient = g.op("Sub", g.op("Softmax", x, axis=-1), labels)
    write_computed(g, op.outputs[1], gradient, Layout.LAST)


@flex_translator("InTopK", "InTopKV2")
def in_top_k(op: View, g: Graph) -> None:
    """Whether fewer than `k` predictions are above that of the target."""
    predictions, targets = g.read(op["predictions"]), g.whole(op["targets"])
    given = op["k"] if "k" in op.names else None
    count = g.ints(node_of(op)["k"]) if given is None else g.reshape(g.whole(given), ())
    size = g.op("Shape", predictions, start=1)
    there = g.op("And", g.op("GreaterOrEqual", targets, g.ints(0)), g.op("Less", targets, size))
    place = g.op("Unsqueeze", g.op("Where", there, targets, g.ints(0)), g.ints([1]))
    own = g.op("GatherElements", predictions, place, axis=1)
    above = g.cast(g.op("Greater", predictions, own), ir.DataType.INT64)
    few = g.op("Less", g.op("ReduceSum", above, g.ints([1]), keepdims=0), count)
    # What is not finite is not equal to itself, less itself.
    less = g.op("ReduceSum", g.op("Sub", predictions, predictions), g.ints([1]), keepdims=0)
    finite = g.op("Equal", less, g.constant(0, np.float32))
    g.write(op.output, g.op("And", g.op("And", there, few), finite), domain=Domain.FILE)


@flex_translator("TopK", "TopKV2")
def top_k(op: View, g: Graph) -> None:
    """TopK."""
    x = read_computed(g, op["input"], FLOATS | INTEGERS - {_T.UINT64}, Layout.LAST)
    if op.name == "FlexTopK":
        count = g.ints([node_of(op)["k"]])
    else:
        count = g.reshape(g.whole(op["k"]), (1,))
    values, places = g.op_multi("TopK", x, count, outputs=2, axis=-1)
    write_computed(g, op.outputs[0], values, Layout.LAST)
    g.write(op.outputs[1], g.cast(places, op.outputs[1].dtype), domain=Domain.FILE)


@flex_translator("DataFormatDimMap")
def dimension_map(op: View, g: Graph) -> None:
    """Gather from a list, in which negative places count from the end."""
    places = g.ints(np.argsort(format_places(op)))
    found = g.op("Gather", places, g.whole(op["x"]), axis=0)
    g.write(op.output, g.cast(found, op.output.dtype), domain=Domain.FILE)


@flex_translator("DataFormatVecPermute")
def permutation(op: View, g: Graph) -> None:
    """Gather of rows."""
    x = g.read(op["x"], domain=Domain.FILE)
    g.write(op.output, g.op("Gather", x, g.ints(format_places(op)), axis=0), domain=Domain.FILE)
