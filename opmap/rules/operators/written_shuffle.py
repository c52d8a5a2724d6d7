"""Channel shuffles of float images, as converters write them: RESHAPE, TRANSPOSE, RESHAPE.

One GATHER along the channels leaves the image in its layout, and copies whole planes where channels
are first. Of codes, `picked_channels` moves nothing at all.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from tflite_ort.base.records import replace
from tflite_ort.opmap.graph.rows import RESHAPES
from tflite_ort.opmap.registry import Translator, translator
from tflite_ort.opmap.rules.operators.matching import Producers
from tflite_ort.opmap.rules.rule import View
from tflite_ort.schema import GatherOptions, Op, TensorType, TensorView
from tflite_ort.schema.values.operators import INPUTS
from tflite_ort.schema.values.sizes import is_known
from tflite_ort.versioning.registry import Registry

_IMAGE, _CHANNELS = 4, 3  # dimensions, and which of them


def with_gather(
    producers: Producers, registry: Registry[Translator]
) -> tuple[Sequence[View], MappingProxyType[int, Any]]:
    """The operators, with a GATHER in place of each shuffle; nothing is cut."""
    fresh = producers.fresh()
    made: dict[int, View] = {}
    gone: set[int] = set()
    for op in producers.operators:
        chain = _chain(op, producers)
        order = _order(chain)
        if order is not None and all(registry.shares(translator, each) for each in chain):
            constant = TensorView(next(fresh), "", TensorType.INT32, order.shape, order)
            made[op.index] = _gather(op, chain[0].present_inputs()[0], constant)
            gone |= {each.index for each in chain[:-1]}
    return producers.replaced(made, gone), MappingProxyType({})


def _chain(op: View, producers: Producers) -> Sequence[View]:
    """RESHAPE, TRANSPOSE and the RESHAPE `op`, of which nothing else reads a result; else none."""
    chain = [op]
    for wanted in (frozenset({Op.TRANSPOSE}), RESHAPES):
        if op.op not in RESHAPES:
            return []
        source = chain[0].present_inputs()[0]
        maker = producers.maker(source)
        if maker is None or maker.op not in wanted or producers.is_result(source):
            return []
        if len(producers.readers(source)) > 1:
            return []
        chain.insert(0, maker)
    return chain


def _order(chain: Sequence[View]) -> npt.NDArray[np.int32] | None:
    """The channels in the order in which they stand behind a shuffle; None of another chain."""
    if not chain:
        return None
    image, apart, result = chain[0].present_inputs()[0], chain[0].output, chain[2].output
    shapes = image.shape, apart.shape, chain[1].output.shape, result.shape
    if not all(is_known(*shape) and 0 not in shape for shape in shapes):
        return None
    if image.type is not TensorType.FLOAT32 or image.is_constant or image.rank != _IMAGE:
        return None
    if any(each.is_variable for each in (image, *(op.output for op in chain))):
        return None
    cells, channels = image.shape[:_CHANNELS], image.shape[_CHANNELS]
    turned = chain[1].present_inputs()[1].data
    if result.shape != image.shape or apart.shape[:_CHANNELS] != cells or turned is None:
        return None
    if apart.rank != _IMAGE + 1 or turned.reshape(-1).tolist() != [0, 1, 2, 4, 3]:
        return None
    return np.arange(channels, dtype=np.int32).reshape(apart.shape[_CHANNELS:]).T.reshape(-1)


def _gather(op: View, image: TensorView, order: TensorView) -> View:
    """The operator in place of a chain, under the name of its last one."""
    return replace(
        op,
        op=Op.GATHER,
        version=1,
        inputs=(image, order),
        options=GatherOptions(axis=_CHANNELS),
        names=INPUTS[Op.GATHER].names,
        origin=op.name,
    )
