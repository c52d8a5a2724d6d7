"""LOGISTIC and SiLU: one node where what follows cannot tell 1e-8 from 0.

ONNX Runtime's Sigmoid is off by up to 1.5e-8 for large negative numbers, so that 1e-9 becomes 0.
LOGISTIC by itself is therefore four exact nodes. But a sum with other numbers loses what is below
1e-8 as well, and most sigmoids of a network end in a convolution or in a sum.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tflite_ort.opmap.graph import Graph
from tflite_ort.opmap.patterns.matching import Found, Leaf, Producers, node
from tflite_ort.opmap.patterns.pattern import Pattern, Surroundings
from tflite_ort.schema import Op, OperatorView, TensorType, TensorView

View = OperatorView[Any]

# What they make is a sum of products, in which 1e-8 of a factor is lost.
_SUMS = frozenset(
    {
        Op.CONV_2D,
        Op.DEPTHWISE_CONV_2D,
        Op.TRANSPOSE_CONV,
        Op.CONV_3D,
        Op.FULLY_CONNECTED,
        Op.BATCH_MATMUL,
        Op.SOFTMAX,
        Op.QUANTIZE,
    }
)
# They pass numbers on, scaled, moved or averaged.
_PASSES = frozenset(
    {
        Op.MUL,
        Op.RESHAPE,
        Op.SQUEEZE,
        Op.EXPAND_DIMS,
        Op.TRANSPOSE,
        Op.CONCATENATION,
        Op.SLICE,
        Op.STRIDED_SLICE,
        Op.SPLIT,
        Op.PAD,
        Op.MEAN,
        Op.AVERAGE_POOL_2D,
        Op.MAX_POOL_2D,
        Op.RESIZE_BILINEAR,
        Op.RESIZE_NEAREST_NEIGHBOR,
    }
)
_ADDITIONS = frozenset({Op.ADD, Op.SUB})
# Constants that hide 1e-8 when they are added, and that do not make much of it as a factor.
_HIDES, _ENLARGES = 1e-3, 16.0
# How many operators are looked at behind a sigmoid.
_REACH = 64

_X = Leaf()
_SIGMOID = node(Op.LOGISTIC)(_X)
_SILU = node(Op.MUL)(_X, _SIGMOID)


def is_lost(tensor: TensorView, producers: Producers) -> bool:
    """Whether nothing that reads `tensor` can tell 1e-8 in it from 0."""
    waiting, seen = [tensor], {tensor.index}
    while waiting:
        if len(seen) > _REACH:
            return False
        value = waiting.pop()
        if producers.is_result(value):
            return False
        for op in producers.readers(value):
            if op.op in _SUMS or (op.op in _ADDITIONS and _hides(op, value, producers)):
                continue
            if op.op not in _PASSES or not _is_moderate(op):
                return False
            waiting += [out for out in op.outputs if out.index not in seen]
            seen.update(out.index for out in op.outputs)
    return True


def _hides(op: View, value: TensorView, producers: Producers) -> bool:
    """Whether what is added to `value` hides 1e-8: numbers of a network that are no sigmoids."""
    others = [tensor for tensor in op.present_inputs() if tensor.index != value.index]
    if not others:
        return False
    if others[0].data is not None:
        return bool(np.all(np.abs(others[0].data) >= _HIDES))
    maker = producers.maker(others[0])
    return maker is None or maker.op is not Op.LOGISTIC


def _is_moderate(op: View) -> bool:
    """Whether `op` does not multiply by a large constant."""
    if op.op is not Op.MUL:
        return True
    constants = (tensor.data for tensor in op.present_inputs() if tensor.data is not None)
    return all(bool(np.all(np.abs(data) <= _ENLARGES)) for data in constants)


def _takes_sigmoid(found: Found, around: Surroundings) -> bool:
    y = found[_SIGMOID]
    return _is_float(found) and is_lost(y, around.producers)


def _is_float(found: Found) -> bool:
    return all(tensor.type is TensorType.FLOAT32 for tensor in found.tensors.values())


def _emit_sigmoid(found: Found, g: Graph, op: View) -> None:
    layout = g.layout(found[_X], rows=True)
    g.write(op.output, g.op("Sigmoid", g.read(found[_X], layout=layout)), layout=layout)


def _takes_silu(found: Found, around: Surroundings) -> bool:
    return _is_float(found) and is_lost(found[_SILU], around.producers)


def _emit_silu(found: Found, g: Graph, op: View) -> None:
    """x * Sigmoid(x), which ONNX Runtime fuses to one node."""
    layout = g.layout(found[_X], rows=True)
    x = g.read(found[_X], layout=layout)
    y = g.op("Mul", x, g.op("Sigmoid", x))
    g.write(op.output, y, layout=layout, activation=op.options.fused_activation_function)


def _takes_exact_silu(found: Found, around: Surroundings) -> bool:
    return _is_float(found)


def _emit_exact_silu(found: Found, g: Graph, op: View) -> None:
    """x / (1 + Exp(-x)): a node less than a product with the sigmoid."""
    layout = g.layout(found[_X], rows=True)
    x = g.read(found[_X], layout=layout)
    below = g.op("Add", g.op("Exp", g.op("Neg", x)), g.constant(1, np.float32))
    y = g.op("Div", x, below)
    g.write(op.output, y, layout=layout, activation=op.options.fused_activation_function)


SIGMOIDS = (
    Pattern("SiLU", _SILU, _takes_silu, _emit_silu),
    Pattern("SiLU, exact", _SILU, _takes_exact_silu, _emit_exact_silu),
    Pattern("LOGISTIC", _SIGMOID, _takes_sigmoid, _emit_sigmoid),
)
