"""FULLY_CONNECTED of each step by itself, as Keras unrolls TimeDistributed: one for all steps.

A STRIDED_SLICE takes each step, and a PACK puts the results one behind the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from types import MappingProxyType
from typing import Any

import numpy as np

from tflite_ort.base.records import replace
from tflite_ort.opmap.registry import Translator, translator
from tflite_ort.opmap.rules.operators.matching import Producers
from tflite_ort.opmap.rules.rule import View
from tflite_ort.schema import Op, TensorType, TensorView
from tflite_ort.schema.values.constant_slices import constant_slice
from tflite_ort.schema.values.sizes import is_known
from tflite_ort.versioning.registry import Registry

_SLICES = frozenset({Op.SLICE, Op.STRIDED_SLICE})
# More numbers take too long to follow.
_MOST_NUMBERS = 1 << 20


def with_joined_steps(
    producers: Producers, registry: Registry[Translator]
) -> tuple[Sequence[View], MappingProxyType[int, Any]]:
    """The operators, with one FULLY_CONNECTED in place of those of single steps; nothing is cut."""
    made: dict[int, View] = {}
    gone: set[int] = set()
    for op in producers.operators:
        layers = _layers(op, producers) if op.op is Op.PACK else []
        cuts = _cuts(layers, producers)
        whole = _whole(op, layers, cuts) if cuts else None
        own = (op, *layers, *cuts)
        if whole is None or not all(registry.shares(translator, each) for each in own):
            continue
        first = layers[0]
        options = replace(first.options, keep_num_dims=True)
        version = max(first.version, 2)  # that brought the option
        made[op.index] = replace(
            first,
            index=op.index,
            inputs=(whole, *first.inputs[1:]),
            outputs=op.outputs,
            options=options,
            version=version,
            origin=op.name,
        )
        gone.update(each.index for each in layers)
        gone.update(each.index for each in cuts if producers.has_one_reader(each.output))
    return producers.replaced(made, gone), MappingProxyType({})


def _layers(pack: View, producers: Producers) -> Sequence[View]:
    """The layers whose results `pack` puts one behind the other, if they are of one kind."""
    layers = list[View]()
    for tensor in pack.present_inputs():
        layer = producers.maker(tensor)
        if layer is None or layer.op is not Op.FULLY_CONNECTED:
            return []
        if not producers.has_one_reader(tensor) or tensor.type is not TensorType.FLOAT32:
            return []
        layers.append(layer)
    kinds = {tuple(None if t is None else t.index for t in layer.inputs[1:]) for layer in layers}
    alike = len(layers) > 1 and len(kinds) == 1 and pack.options.axis == 0
    same = all(each.options == layers[0].options for each in layers)
    constant = all(t is None or t.is_constant for layer in layers for t in layer.inputs[1:])
    return layers if alike and same and constant else []


def _cuts(layers: Sequence[View], producers: Producers) -> Sequence[View]:
    """The slices that the layers read, if each reads one."""
    makers = [producers.maker(layer.present_inputs()[0]) for layer in layers]
    cuts = [each for each in makers if each is not None and each.op in _SLICES]
    return cuts if len(cuts) == len(layers) else []


def _whole(pack: View, layers: Sequence[View], cuts: Sequence[View]) -> TensorView | None:
    """The tensor of which each layer reads a step, one after the other."""
    sources = {cut.present_inputs()[0].index for cut in cuts}
    whole, wide = cuts[0].present_inputs()[0], layers[0].inputs[1]
    if len(sources) > 1 or wide is None or whole.type is not TensorType.FLOAT32:
        return None
    if whole.is_variable or not is_known(*whole.shape, *pack.output.shape):
        return None
    if not 0 < prod(whole.shape) <= _MOST_NUMBERS or whole.shape[-1:] != wide.shape[1:]:
        return None
    if pack.output.shape != (*whole.shape[:-1], *wide.shape[:1]):
        return None
    numbers = np.arange(prod(whole.shape)).reshape(whole.shape)
    taken = map(constant_slice, cuts)
    parts = [numbers[each.slices].reshape(-1) for each in taken if each is not None]
    in_order = len(parts) == len(layers) and np.array_equal(np.concatenate(parts), numbers.ravel())
    return whole if in_order and len({part.size for part in parts}) == 1 else None
