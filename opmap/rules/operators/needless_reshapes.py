"""RESHAPE before an operator that broadcasts, where it would broadcast without it too.

Converters leave dimensions of 1 out of an operand: [1, 1, 64] is added as [64].
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from tflite_ort.base.records import replace
from tflite_ort.opmap.graph.rows import RESHAPES
from tflite_ort.opmap.registry import Translator, translator
from tflite_ort.opmap.rules.operators.matching import Producers
from tflite_ort.opmap.rules.rule import View
from tflite_ort.schema import Op, TensorView
from tflite_ort.schema.values.sizes import Shape, is_known
from tflite_ort.versioning.registry import Registry

# The operators that converters write so.
_BROADCASTING = frozenset({Op.ADD, Op.SUB, Op.MUL, Op.DIV})


def without_reshapes(
    producers: Producers, registry: Registry[Translator]
) -> tuple[Sequence[View], Mapping[int, Any]]:
    """The operators, some of which read what was reshaped; nothing is cut."""
    made: dict[int, View] = {}
    gone: set[int] = set()
    for op in producers.operators:
        if op.op not in _BROADCASTING or not registry.shares(translator, op):
            continue
        reshapes = [_needless(op, place, producers) for place in range(len(op.inputs))]
        found = {
            place: each
            for place, each in enumerate(reshapes)
            if each is not None and registry.shares(translator, each)
        }
        if found:
            inputs = [found[i].inputs[0] if i in found else t for i, t in enumerate(op.inputs)]
            made[op.index] = replace(op, inputs=tuple(inputs))
            gone |= {each.index for each in found.values() if producers.has_one_reader(each.output)}
    return producers.replaced(made, gone), MappingProxyType({})


def _needless(op: View, place: int, producers: Producers) -> View | None:
    """The RESHAPE of an operand that stands with more dimensions of 1 before it."""
    operand = op.inputs[place]
    reshape = None if operand is None else producers.maker(operand)
    if operand is None or reshape is None or reshape.op not in RESHAPES:
        return None
    source = reshape.inputs[0]
    if source is None or source.is_constant or source.is_variable or operand.is_variable:
        return None
    if not is_known(*source.shape, *operand.shape) or 0 in source.shape:
        return None
    if not operand.rank < source.rank <= op.output.rank:
        return None
    if _without_ones(source.shape) != _without_ones(operand.shape):
        return None
    return reshape if _coded_alike(source, operand) else None


def _without_ones(shape: Shape) -> Shape:
    """A shape without the sizes of 1 in front."""
    first = next((i for i, size in enumerate(shape) if size != 1), len(shape))
    return shape[first:]


def _coded_alike(source: TensorView, operand: TensorView) -> bool:
    if source.type is not operand.type:
        return False
    quantization = source.quantization
    return quantization is None or quantization.equals(operand.quantization)
