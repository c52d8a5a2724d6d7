"""Images whose rows and columns are repeated, as Keras writes it: one RESIZE_NEAREST_NEIGHBOR.

`UpSampling2D` becomes RESHAPE, TILE, RESHAPE, TILE, RESHAPE: each TILE repeats along a dimension of
1 behind the rows, or behind the columns.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from tflite_ort.base.records import record, replace
from tflite_ort.opmap.graph.rows import RESHAPES
from tflite_ort.opmap.registry import Translator, translator
from tflite_ort.opmap.rules.operators.matching import Producers
from tflite_ort.opmap.rules.operators.views import Strided
from tflite_ort.opmap.rules.rule import View
from tflite_ort.schema import Op, ResizeNearestNeighborOptions, TensorType, TensorView
from tflite_ort.schema.values.operators import INPUTS
from tflite_ort.schema.values.semantics import nearest_indices
from tflite_ort.schema.values.sizes import is_known
from tflite_ort.versioning.registry import Registry

_REPEATS = frozenset({Op.TILE, Op.BROADCAST_TO})
_IMAGE = 4  # dimensions: images, rows, columns, channels
_TYPES = frozenset({TensorType.FLOAT32, TensorType.INT8, TensorType.UINT8, TensorType.INT16})
# The middle of a cell of the result is never next to the edge of a cell of the image.
_OPTIONS = ResizeNearestNeighborOptions(half_pixel_centers=True)


@record
class _Chain:
    """Operators that repeat rows and columns of `image`, in their order."""

    image: TensorView
    operators: Sequence[View]


def with_upsampling(
    producers: Producers, registry: Registry[Translator]
) -> tuple[Sequence[View], MappingProxyType[int, Any]]:
    """The operators, with a RESIZE_NEAREST_NEIGHBOR in place of each chain; nothing is cut."""
    operators, fresh = producers.operators, producers.fresh()
    made: dict[int, View] = {}
    gone: set[int] = set()
    for op in reversed(operators):  # the longest chains end last
        if op.op not in RESHAPES or op.index in gone:
            continue
        chain = _chain(op, producers)
        if chain is not None and all(registry.shares(translator, o) for o in chain.operators):
            sizes = np.array(op.output.shape[1:3], np.int32)
            constant = TensorView(next(fresh), "", TensorType.INT32, sizes.shape, sizes)
            made[op.index] = _resize(op, chain.image, constant)
            gone |= {each.index for each in chain.operators} - {op.index}
    return producers.replaced(made, gone), MappingProxyType({})


def _chain(op: View, producers: Producers) -> _Chain | None:
    """The longest chain that ends with `op` and does nothing but repeat rows and columns."""
    longest = None
    operators = list[View]()
    for each in _before(op, producers):
        operators.insert(0, each)
        image = each.present_inputs()[0]
        if any(o.op in _REPEATS for o in operators) and _repeats(image, operators):
            longest = _Chain(image, list(operators))
    return longest


def _before(op: View, producers: Producers) -> Iterator[View]:
    """`op`, and the operators before it of which nothing else reads a result, from its end on."""
    each: View | None = op
    while each is not None and _is_plain(each):
        yield each
        source = each.present_inputs()[0]
        if not producers.has_one_reader(source):
            return
        each = producers.maker(source)


def _is_plain(op: View) -> bool:
    """Whether an operator gives known sizes to the elements of a computed tensor of known sizes."""
    if op.op not in RESHAPES and op.op not in _REPEATS:
        return False
    input, *others = op.present_inputs()
    sizes = (*input.shape, *op.output.shape)
    if input.is_constant or input.is_variable or op.output.is_variable:
        return False
    return is_known(*sizes) and 0 not in sizes and all(each.is_constant for each in others)


def _repeats(image: TensorView, operators: Sequence[View]) -> bool:
    """Whether operators make an image of `image` by repeating each of its rows and columns."""
    output = operators[-1].output
    if image.rank != _IMAGE or output.rank != _IMAGE or image.type not in _TYPES:
        return False
    if any(each.output.type is not image.type for each in operators):
        return False
    if image.quantization is not None and not image.quantization.equals(output.quantization):
        return False
    factors = [new // old for old, new in zip(image.shape, output.shape, strict=True)]
    view: Strided | None = Strided.whole(image.shape)
    for op in operators:
        shape = op.output.shape
        if view is not None:
            view = view.broadcast(shape) if op.op in _REPEATS else view.reshaped(shape)
    wide = [size for old, times in zip(image.shape, factors, strict=True) for size in (old, times)]
    wanted = Strided.whole(image.shape).reshaped([x for old in image.shape for x in (old, 1)])
    repeated = None if wanted is None else wanted.broadcast(wide)
    if view is None or repeated is None or view != repeated.reshaped(output.shape):
        return False
    if factors[0] != 1 or factors[3] != 1 or 1 in factors[1:3]:
        return False  # of one dimension they may be the heads of attention, which has a node
    return all(map(_is_whole, image.shape[1:3], factors[1:3]))


def _is_whole(size: int, times: int) -> bool:
    """Whether RESIZE_NEAREST_NEIGHBOR takes each of so many cells so many times."""
    every = np.repeat(np.arange(size), times)
    return np.array_equal(nearest_indices(size, size * times, _OPTIONS), every)


def _resize(op: View, image: TensorView, sizes: TensorView) -> View:
    """The operator in place of a chain, under the name of its last operator."""
    return replace(
        op,
        op=Op.RESIZE_NEAREST_NEIGHBOR,
        version=3,
        inputs=(image, sizes),
        options=_OPTIONS,
        names=INPUTS[Op.RESIZE_NEAREST_NEIGHBOR].names,
        origin=op.name,
    )
