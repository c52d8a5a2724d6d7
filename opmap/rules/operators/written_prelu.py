"""PRELU, as converters write it out: one operator in place of three to five.

Converters for GPUs choose by the sign, older ones add what RELU makes of both signs. The results
are the same but for the sign of a zero.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from types import MappingProxyType
from typing import Any

import numpy as np

from tflite_ort.base.records import replace
from tflite_ort.opmap.registry import Translator, translator
from tflite_ort.opmap.rules.operators.matching import Found, Leaf, Node, Producers, node
from tflite_ort.opmap.rules.rule import View
from tflite_ort.schema import Op, TensorType, TensorView
from tflite_ort.schema.file.operators import options_of
from tflite_ort.schema.values.operators import INPUTS
from tflite_ort.versioning.registry import Registry

_X, _ZERO, _SLOPES = Leaf(), Leaf(constant=True), Leaf(constant=True)
_ABOVE, _BELOW = node(Op.GREATER, Op.GREATER_EQUAL), node(Op.LESS, Op.LESS_EQUAL)
_SELECT, _RELU, _NEG = node(Op.SELECT, Op.SELECT_V2), node(Op.RELU), node(Op.NEG)
_PRODUCT = node(Op.MUL)(_X, _SLOPES)
_POSITIVE, _OPPOSITE = _RELU(_X), _RELU(_NEG(_X))  # the latter is -x where x is negative
_SCALED = node(Op.MUL)(_OPPOSITE, _SLOPES)

# Each tree, and by what the constant in it has to be multiplied to be the slopes.
_TREES: Sequence[tuple[Node, float]] = (
    (_SELECT(_ABOVE(_X, _ZERO), _X, _PRODUCT), 1),
    (_SELECT(_BELOW(_X, _ZERO), _PRODUCT, _X), 1),
    (node(Op.ADD)(_POSITIVE, node(Op.MUL)(_NEG(_OPPOSITE), _SLOPES)), 1),
    (node(Op.ADD)(_POSITIVE, _SCALED), -1),
    (node(Op.SUB)(_POSITIVE, _SCALED), 1),
)


def with_prelu(
    producers: Producers, registry: Registry[Translator]
) -> tuple[Sequence[View], MappingProxyType[int, Any]]:
    """The operators, with a PRELU in place of each tree that computes one; nothing is cut."""
    operators, fresh = producers.operators, producers.fresh()
    made: dict[int, View] = {}
    gone: set[int] = set()
    for op in operators:
        for tree, sign in _of_root(op.op):
            found = producers.find(tree, op)
            if found is None or not all(registry.shares(translator, o) for o in _of(found)):
                continue
            slopes = _slopes(found, sign, fresh)
            if slopes is not None:
                made[op.index] = _prelu(op, found[_X], slopes)
                gone |= found.operators.keys() - {op.index}
                break
    return producers.replaced(made, gone), MappingProxyType({})


@cache
def _of_root(op: Op) -> Sequence[tuple[Node, float]]:
    return [(tree, sign) for tree, sign in _TREES if op in tree.operators]


def _of(found: Found) -> Sequence[View]:
    return list(found.operators.values())


def _slopes(found: Found, sign: float, fresh: Iterator[int]) -> TensorView | None:
    """The slopes, as a new tensor if their sign changes; None where the operators are no PRELU."""
    x, slopes, zero = found[_X], found[_SLOPES], found.get(_ZERO)
    if x.type is not TensorType.FLOAT32 or slopes.data is None or slopes.is_quantized:
        return None
    if any(t.shape != x.shape for part, t in found.tensors.items() if isinstance(part, Node)):
        return None  # something is broadcast, or reshaped in between
    if zero is not None and (zero.data is None or np.any(zero.data)):
        return None
    if not np.isfinite(slopes.data).all() or slopes.rank > x.rank:
        return None
    if sign == 1:
        return slopes
    return replace(slopes, index=next(fresh), constant=slopes.data * np.float32(sign))


def _prelu(op: View, x: TensorView, slopes: TensorView) -> View:
    """PRELU under the name of the last operator in whose place it stands."""
    return replace(
        op,
        op=Op.PRELU,
        version=1,
        inputs=(x, slopes),
        options=options_of(Op.PRELU, None),
        names=INPUTS[Op.PRELU].names,
        origin=op.name,
    )
