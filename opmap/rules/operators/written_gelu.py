"""GELU by tanh, as JAX and others write it out: one operator in place of eight or nine.

x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x^3))), of which the products come in several
orders.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from tflite_ort.base.records import replace
from tflite_ort.opmap.registry import Translator, translator
from tflite_ort.opmap.rules.operators.matching import Found, Leaf, Node, Producers, node
from tflite_ort.opmap.rules.rule import View
from tflite_ort.schema import ActivationFunctionType, GeluOptions, Op, TensorType, TensorView
from tflite_ort.schema.values.operators import INPUTS
from tflite_ort.versioning.registry import Registry

_X, _INNER = Leaf(), Leaf()
_HALF, _ONE, _SCALE = (Leaf(constant=True) for _ in range(3))
_SHARE, _THREE = (Leaf(constant=True) for _ in range(2))
_NUMBERS = {_HALF: 0.5, _ONE: 1.0, _THREE: 3.0, _SHARE: 0.044715, _SCALE: math.sqrt(2 / math.pi)}
# By which part a constant is off at most: those of float32 are, those of float16 are not.
_NEAR = 1e-6

_MUL, _ADD = node(Op.MUL), node(Op.ADD)
_GATE = _ADD(node(Op.TANH)(_INNER), _ONE)
_RESULTS: Sequence[Node] = (
    _MUL(_MUL(_X, _HALF), _GATE),
    _MUL(_X, _MUL(_GATE, _HALF)),
    _MUL(_MUL(_X, _GATE), _HALF),
)
_SQUARES: Sequence[Node] = (_MUL(_X, _X), node(Op.SQUARE)(_X))
_CUBES: Sequence[Node] = (
    *(_MUL(_MUL(square, _X), _SHARE) for square in _SQUARES),
    *(_MUL(_MUL(square, _SHARE), _X) for square in _SQUARES),
    *(_MUL(square, _MUL(_X, _SHARE)) for square in _SQUARES),
    _MUL(_MUL(_MUL(_X, _SHARE), _X), _X),
    _MUL(node(Op.POW)(_X, _THREE), _SHARE),
)
_INNERS: Sequence[Node] = tuple(_MUL(_ADD(_X, cube), _SCALE) for cube in _CUBES)


def with_gelu(
    producers: Producers, registry: Registry[Translator]
) -> tuple[Sequence[View], MappingProxyType[int, Any]]:
    """The operators, with a GELU in place of each that is written out; nothing is cut."""
    made: dict[int, View] = {}
    gone: set[int] = set()
    for op in producers.operators:
        found = _found(op, producers) if op.op is Op.MUL else None
        if found is None or not all(registry.shares(translator, o) for o in found[1]):
            continue
        x, operators = found
        made[op.index] = _gelu(op, x)
        gone |= {each.index for each in operators} - {op.index}
    return producers.replaced(made, gone), MappingProxyType({})


def _found(op: View, producers: Producers) -> tuple[TensorView, Sequence[View]] | None:
    """What a GELU that ends with `op` is of, and its operators."""
    if op.options.fused_activation_function is not ActivationFunctionType.NONE:
        return None
    for tree in _RESULTS:
        outer = producers.find(tree, op)
        if outer is None or not _is_plain(outer, outer[_X], op.output):
            continue
        tanh, scaled = outer[_INNER], producers.maker(outer[_INNER])
        if scaled is None or not producers.has_one_reader(tanh):
            return None
        for each in _INNERS:
            inner = producers.find(each, scaled)
            if inner is None or inner[_X].index != outer[_X].index:
                continue
            if _is_plain(inner, outer[_X], op.output):
                return outer[_X], [*outer.operators.values(), *inner.operators.values()]
    return None


def _is_plain(found: Found, x: TensorView, result: TensorView) -> bool:
    """Whether constants are those of GELU, and nothing is reshaped or broadcast."""
    for part, tensor in found.tensors.items():
        if tensor.type is not TensorType.FLOAT32 or tensor.is_quantized:
            return False
        if part in _NUMBERS:
            data = tensor.data
            if data is None or data.size != 1 or tensor.rank > x.rank:
                return False
            if not abs(float(np.reshape(data, ())) / _NUMBERS[part] - 1) < _NEAR:
                return False
        elif tensor.shape != x.shape:
            return False
    return result.shape == x.shape


def _gelu(op: View, x: TensorView) -> View:
    """GELU under the name of the last operator in whose place it stands."""
    return replace(
        op,
        op=Op.GELU,
        version=1,
        inputs=(x,),
        options=GeluOptions(approximate=True),
        names=INPUTS[Op.GELU].names,
        origin=op.name,
    )
