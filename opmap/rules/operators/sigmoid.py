"""LOGISTIC and SiLU: one node where what follows cannot tell 1e-8 from 0.

ONNX Runtime's Sigmoid is off by up to 1.5e-8 for large negative numbers, so that 1e-9 becomes 0.
LOGISTIC by itself is therefore four exact nodes. But a sum with other numbers loses what is below
1e-8 as well, and most sigmoids of a network end in a convolution or in a sum.
"""

from __future__ import annotations

import numpy as np

from tflite_ort.opmap.graph import Graph
from tflite_ort.opmap.rules.operators.matching import Found, Leaf, Producers, node
from tflite_ort.opmap.rules.operators.pattern import Emit, Pattern, Surroundings, View
from tflite_ort.schema import Op, TensorType, TensorView
from tflite_ort.schema.values.sizes import may_differ

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
        Op.LOGISTIC,  # near 0 it adds a half
    }
)
# They pass numbers on, scaled, moved or averaged, or one of several. Of activations the steepest
# one has a slope of 1.5.
_PASSES = frozenset(
    {
        Op.ABS,
        Op.ELU,
        Op.GELU,
        Op.HARD_SWISH,
        Op.RELU,
        Op.RELU6,
        Op.TANH,
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
        Op.REDUCE_MAX,
        Op.DEPTH_TO_SPACE,
        Op.SPACE_TO_DEPTH,
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
            # What is off in several sigmoids is added where they are.
            passes = op.op in _PASSES or op.op in _ADDITIONS
            if not passes or not _is_moderate(op):
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


def _is_float(found: Found) -> bool:
    return all(tensor.type is TensorType.FLOAT32 for tensor in found.tensors.values())


def _sigmoid(found: Found, around: Surroundings) -> Emit | None:
    """Sigmoid, where it is enough."""
    if not (_is_float(found) and is_lost(found[_SIGMOID], around.producers)):
        return None
    x = found[_X]

    def emit(g: Graph, op: View) -> None:
        layout = g.layout(x, rows=True)
        g.write(op.output, g.op("Sigmoid", g.read(x, layout=layout)), layout=layout)

    return emit


def _silu(found: Found, around: Surroundings) -> Emit | None:
    """x * Sigmoid(x), which ONNX Runtime makes one node; x / (1 + Exp(-x)) where that is not
    enough, a node less than a product with the exact sigmoid."""
    if not _is_float(found):
        return None
    x, result = found[_X], found[_SILU]
    if may_differ(x.shape, result.shape):
        return None  # a RESHAPE in between: every number meets the sigmoids of others
    lost = is_lost(result, around.producers)

    def emit(g: Graph, op: View) -> None:
        layout = g.layout(x, rows=True)
        value = g.read(x, layout=layout)
        if lost:
            y = g.op("Mul", value, g.op("Sigmoid", value))
        else:
            power = g.op("Exp", g.op("Neg", value))
            y = g.op("Div", value, g.op("Add", power, g.constant(1, np.float32)))
        g.write(op.output, y, layout=layout, activation=op.options.fused_activation_function)

    return emit


SIGMOIDS = (Pattern("SiLU", _SILU, _silu), Pattern("LOGISTIC", _SIGMOID, _sigmoid))
