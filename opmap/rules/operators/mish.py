"""Softplus and Mish, x times the tanh of softplus, as converters write them: EXP, ADD, LOG, TANH.

Of few numbers one Softplus takes the time of fewer nodes. Above 88.7 it gives x, where TFLite's
power is infinite. Of many, Log takes ten times as long as Exp: with p = e^x the tanh is r / (1 + r)
of r = p + p^2 / 2, which Softsign computes. TFLite's sum of 1 and a small power has lost the last
bits of the power; here it keeps them.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from tflite_ort.opmap.graph import Graph
from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.opmap.rules.operators.matching import Found, Leaf, node
from tflite_ort.opmap.rules.operators.pattern import Emit, Pattern, Surroundings, View
from tflite_ort.schema import ActivationFunctionType, Op, TensorType, TensorView
from tflite_ort.schema.values.sizes import is_known, known_product

_X, _ONE = Leaf(), Leaf(constant=True)
_SOFTPLUS = node(Op.LOG)(node(Op.ADD)(node(Op.EXP)(_X), _ONE))
_MISH = node(Op.MUL)(_X, node(Op.TANH)(_SOFTPLUS))

_NONE = ActivationFunctionType.NONE
# Up to so many numbers nodes take as long as what they compute.
_FEW = 64
# From so many on Log takes longer than three nodes.
_MANY = 1024
# Beyond, the tanh is 1 in float32, and e^2x is far from infinite.
_LARGE = 20.0


def _plan(found: Found, _: Surroundings) -> Emit | None:
    x, one = found[_X], found[_ONE]
    shapes = {tuple(t.shape) for part, t in found.tensors.items() if part is not _ONE}
    if not is_known(*x.shape) or len(shapes) > 1:
        return None
    tensors = found.tensors.values()
    if any(t.type is not TensorType.FLOAT32 or t.is_quantized for t in tensors):
        return None
    if one.data is None or one.data.size != 1 or one.rank > x.rank or one.data.item() != 1:
        return None
    count, is_mish = known_product(x.shape), _MISH in found.tensors
    if count <= _FEW:
        return partial(_by_softplus, x, is_mish)
    return partial(_by_powers, x) if is_mish and count >= _MANY else None


def _by_softplus(x: TensorView, is_mish: bool, g: Graph, op: View) -> None:
    layout = g.layout(x, rows=True)
    value = g.read(x, layout=layout)
    result = g.op("Softplus", value)
    if is_mish:
        result = g.op("Mul", value, g.op("Tanh", result))
    activation = op.options.fused_activation_function if is_mish else _NONE
    g.write(op.output, result, layout=layout, activation=activation)


def _by_powers(x: TensorView, g: Graph, op: View) -> None:
    layout = g.layout(x, rows=True)
    value = g.read(x, layout=layout)

    def number(real: float) -> ir.Value:
        return g.constant(real, np.float32)

    power = g.op("Exp", g.op("Min", value, number(_LARGE)))
    ratio = g.op("Add", power, g.op("Mul", power, g.op("Mul", power, number(0.5))))
    result = g.op("Mul", value, g.op("Softsign", ratio))
    g.write(op.output, result, layout=layout, activation=op.options.fused_activation_function)


MISHES = (Pattern("Mish", _MISH, _plan), Pattern("softplus", _SOFTPLUS, _plan))
