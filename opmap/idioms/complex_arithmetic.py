"""Complex numbers, which are pairs of reals along the last axis: computed with, and moved."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tflite_ort.base.records import replace
from tflite_ort.opmap.graph import Graph
from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.schema import OperatorView, TensorView, Untranslatable
from tflite_ort.schema.file.element_types import type_of
from tflite_ort.schema.values.complex_pairs import is_complex, paired, paired_shape, part_dtype


def parts(g: Graph, value: ir.Value) -> tuple[ir.Value, ir.Value]:
    """The real and the imaginary parts."""
    first, second = (g.op("Gather", value, g.ints(which), axis=-1) for which in (0, 1))
    return first, second


def joined(g: Graph, real: ir.Value, imaginary: ir.Value) -> ir.Value:
    """Pairs of two parts."""
    ends = g.ints([-1])
    return g.op("Concat", *(g.op("Unsqueeze", x, ends) for x in (real, imaginary)), axis=-1)


def product(g: Graph, x: ir.Value, y: ir.Value) -> ir.Value:
    """(a + bi)(c + di)."""
    (a, b), (c, d) = parts(g, x), parts(g, y)
    real = g.op("Sub", g.op("Mul", a, c), g.op("Mul", b, d))
    return joined(g, real, g.op("Add", g.op("Mul", a, d), g.op("Mul", b, c)))


def reciprocal(g: Graph, x: ir.Value) -> ir.Value:
    """(a - bi) / (a² + b²), of numbers scaled so that no square leaves the range."""
    a, b = parts(g, x)
    largest = g.op("Max", g.op("Abs", a), g.op("Abs", b))
    a, b = g.op("Div", a, largest), g.op("Div", b, largest)
    square = g.op("Mul", g.op("Add", g.op("Mul", a, a), g.op("Mul", b, b)), largest)
    return joined(g, g.op("Div", a, square), g.op("Neg", g.op("Div", b, square)))


def quotient(g: Graph, x: ir.Value, y: ir.Value) -> ir.Value:
    """The product with the reciprocal."""
    return product(g, x, reciprocal(g, y))


def exponential(g: Graph, x: ir.Value) -> ir.Value:
    """exp(a) (cos b + i sin b)."""
    a, b = parts(g, x)
    size = g.op("Exp", a)
    return joined(g, g.op("Mul", size, g.op("Cos", b)), g.op("Mul", size, g.op("Sin", b)))


def as_pairs(op: OperatorView[Any], **last: npt.ArrayLike) -> OperatorView[Any]:
    """`op` over real tensors with one more dimension, of 2; `op` itself if none is complex.

    Args:
        last: by the name of an input that lists something for each dimension, what it has for the
            new one. Such a list is read from `data`: the graph knows it as the file has it.
    """
    if not any(map(is_complex, (*op.present_inputs(), *op.outputs))):
        return op
    inputs = [None if tensor is None else _paired(tensor) for tensor in op.inputs]
    for name, value in last.items():
        inputs[op.names.index(name)] = _longer(op[name], value)
    return replace(op, inputs=tuple(inputs), outputs=tuple(map(_paired, op.outputs)))


def as_channels(op: OperatorView[Any]) -> OperatorView[Any]:
    """`op` over real tensors with twice as many channels, the last dimension, where its tensors
    are complex: both parts of a number lie beside each other."""
    inputs = tuple(None if tensor is None else _doubled(tensor) for tensor in op.inputs)
    return replace(op, inputs=inputs, outputs=tuple(map(_doubled, op.outputs)))


def _doubled(tensor: TensorView) -> TensorView:
    if not is_complex(tensor):
        return tensor
    *shape, channels, parts = paired_shape(tensor, tensor.shape)
    return replace(_paired(tensor), shape=(*shape, channels * parts))


def _paired(tensor: TensorView) -> TensorView:
    if not is_complex(tensor):
        return tensor
    type, data = type_of(part_dtype(tensor.dtype)), tensor.data
    assert type is not None
    shape, constant = paired_shape(tensor, tensor.shape), None if data is None else paired(data)
    return replace(tensor, type=type, shape=shape, constant=constant)


def _longer(listed: TensorView, value: npt.ArrayLike) -> TensorView:
    if listed.data is None:
        raise Untranslatable(f"complex numbers are not moved by a computed {listed.name!r} in ONNX")
    entry = np.asarray(value, listed.data.dtype)[np.newaxis]
    data = np.concatenate([listed.data, entry])
    return replace(listed, shape=data.shape, constant=data)
