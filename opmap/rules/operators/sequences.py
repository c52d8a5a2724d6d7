"""Sequences as images of one row: no RESHAPE stands between two layers over time.

Converters write such a layer as RESHAPE, CONV_2D, RESHAPE. Between the layers the sequence
[N, T, C] stays the image [N, 1, T, C]. Operators on single elements, PAD, CONCATENATION and
reductions take the image as well.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from tflite_ort.base.records import field, record, replace
from tflite_ort.opmap.graph.rows import RESHAPES
from tflite_ort.opmap.registry import Translator, translator
from tflite_ort.opmap.rules.operators.matching import Producers
from tflite_ort.opmap.rules.rule import View
from tflite_ort.schema import Op, OperatorView, SqueezeOptions, TensorType, TensorView
from tflite_ort.schema.file.operators import options_of
from tflite_ort.schema.values.elementwise import BROADCASTING, UNARY
from tflite_ort.schema.values.operators import INPUTS
from tflite_ort.schema.values.sizes import is_known, may_differ
from tflite_ort.versioning.registry import Registry

_ROW = 1  # the axis of an image that its sequence does not have
_RANK = 3  # of a sequence
_ELEMENTWISE = frozenset({*BROADCASTING, *UNARY, Op.CAST, Op.DEQUANTIZE, Op.QUANTIZE})
_PADS = frozenset({Op.PAD, Op.PADV2, Op.MIRROR_PAD})
_SUMS = frozenset({Op.MEAN, Op.SUM})
_REDUCTIONS = _SUMS | {Op.REDUCE_MAX, Op.REDUCE_MIN}
_NO_ARRAYS = frozenset({TensorType.STRING, TensorType.COMPLEX64, TensorType.COMPLEX128})


def with_images(
    around: Producers, registry: Registry[Translator]
) -> tuple[Sequence[View], MappingProxyType[int, Any]]:
    """The operators with images in place of sequences where that saves some; nothing is cut."""
    operators = around.operators
    starts = [op.output for op in operators if _leaves_image(op)]
    starts += [op.present_inputs()[0] for op in operators if _enters_image(op)]
    saving, seen = _Region(), set[int]()
    for start in starts:
        if start.index not in seen:
            region = _region(start, around, registry)
            seen |= region.sequences
            if region.saves:
                saving.add(region)
    if saving.sequences:
        images = _Images(saving, around.fresh())
        operators = [new for op in operators for new in images.in_place_of(op)]
    return operators, MappingProxyType({})


@record
class _Region:
    """Sequences that operators tie to each other.

    Args:
        sequences: indices of the tensors.
        moved: indices of the operators that make images in place of sequences.
        readers: of those that read images in place of sequences.
        sources: of the RESHAPEs that make sequences of images.
        gone: of those that make images of sequences, which are not needed.
        entries: sequences that are to be made images.
        exits: sequences that are read as such.
        pads: those that a PAD makes for a layer, which takes it for its own padding.
    """

    sequences: set[int] = field(default_factory=set)
    moved: set[int] = field(default_factory=set)
    readers: set[int] = field(default_factory=set)
    sources: set[int] = field(default_factory=set)
    gone: set[int] = field(default_factory=set)
    entries: set[int] = field(default_factory=set)
    exits: set[int] = field(default_factory=set)
    pads: set[int] = field(default_factory=set)

    @property
    def saves(self) -> bool:
        """Whether there are fewer operators, or as many and a PAD less."""
        before, after = len(self.sources) + len(self.gone), len(self.entries) + len(self.exits)
        return after < before or (after == before and bool(self.pads))

    def add(self, other: _Region) -> None:
        """Take in what another region has."""
        for mine, theirs in zip(self._sets(), other._sets(), strict=True):
            mine |= theirs

    def _sets(self) -> Sequence[set[int]]:
        return (
            *(self.sequences, self.moved, self.readers, self.sources),
            *(self.gone, self.entries, self.exits, self.pads),
        )


def _region(start: TensorView, around: Producers, registry: Registry[Translator]) -> _Region:
    """All sequences that are tied to `start`."""
    sequences, moved, waiting = {start.index: start}, set[int](), [start]
    while waiting:
        tensor = waiting.pop()
        maker = around.maker(tensor)
        for op in (*around.readers(tensor), *([] if maker is None else [maker])):
            if op.index not in moved and _is_movable(op) and registry.shares(translator, op):
                moved.add(op.index)
                new = [each for each in _tied(op) if each.index not in sequences]
                sequences |= {each.index: each for each in new}
                waiting += new
    found = _Region(sequences=set(sequences), moved=moved)
    for index, tensor in sequences.items():
        maker = around.maker(tensor)
        if maker is not None and _leaves_image(maker):
            found.sources.add(maker.index)
        elif maker is None or maker.index not in moved:
            found.entries.add(index)
        others = [op for op in around.readers(tensor) if op.index not in moved]
        ends = {op.index for op in others if _enters_image(op) and not around.is_result(op.output)}
        taking = {op.index for op in others if op.index in ends or _takes_image(op)}
        found.gone.update(ends)
        found.readers.update(taking)
        if around.is_result(tensor) or len(taking) < len(others):
            found.exits.add(index)
        if ends and maker is not None and maker.op in _PADS:
            found.pads.add(index)
    return found


class _Images:
    """The images of the sequences of a region.

    Args:
        fresh: indices for new tensors.
    """

    def __init__(self, region: _Region, fresh: Iterator[int]) -> None:
        self._region, self._fresh = region, fresh
        # By index of a tensor what is read in its place.
        self._images = dict[int, TensorView]()
        # New operators have the indices of some that are gone.
        self._indices = iter(sorted(region.gone | region.sources))

    def in_place_of(self, op: View) -> Iterator[View]:
        """The operators in place of `op`."""
        region = self._region
        if op.index in region.sources:
            self._images[op.output.index] = self._image(op.present_inputs()[0])
        elif op.index in region.moved or op.index in region.readers:
            yield from self._entered(op.present_inputs())
            if op.index in region.gone:
                self._images[op.output.index] = self._image(op.present_inputs()[0])
            else:
                yield self._moved(op) if op.index in region.moved else self._read(op)
        else:
            yield _reading(op, self._unless_sequence)
        for tensor in op.outputs:
            if tensor.index in region.exits and tensor.index not in region.entries:
                options = SqueezeOptions(squeeze_dims=(_ROW,))
                yield self._new(Op.SQUEEZE, [self._image(tensor)], tensor, options)

    def _entered(self, tensors: Sequence[TensorView]) -> Iterator[View]:
        """What makes images of those of these sequences that are none yet."""
        for tensor in tensors:
            if tensor.index in self._region.entries and tensor.index not in self._images:
                axis = self._constant(np.int32(_ROW))
                yield self._new(Op.EXPAND_DIMS, [tensor, axis], self._image_of(tensor))

    def _image(self, tensor: TensorView) -> TensorView:
        return self._images.get(tensor.index, tensor)

    def _unless_sequence(self, tensor: TensorView) -> TensorView:
        """What an operator reads that takes no images."""
        return tensor if tensor.index in self._region.sequences else self._image(tensor)

    def _operand(self, tensor: TensorView) -> TensorView:
        """What an operator on images reads: of constants too, which it broadcasts."""
        if tensor.data is None or tensor.rank != _RANK:
            return self._image(tensor)
        values = np.expand_dims(tensor.data, _ROW)
        return replace(tensor, index=next(self._fresh), shape=values.shape, constant=values)

    def _image_of(self, tensor: TensorView) -> TensorView:
        """The image of a sequence, as a new tensor."""
        shape = (*tensor.shape[:_ROW], 1, *tensor.shape[_ROW:])
        image = replace(tensor, index=next(self._fresh), shape=shape)
        self._images[tensor.index] = image
        return image

    def _moved(self, op: View) -> View:
        """An operator that makes the image of a sequence."""
        image = replace(_reading(op, self._operand), outputs=(self._image_of(op.output),))
        if op.op in _PADS:
            pads = np.insert(_values(op["paddings"]), _ROW, 0, axis=0)
            return _with_input(image, "paddings", self._constant(pads))
        if op.op is Op.CONCATENATION:
            (axis,) = _of_image([op.options.axis])
            return replace(image, options=replace(op.options, axis=axis))
        if op.op in _REDUCTIONS:
            axes = _of_image(_values(op["axes"]).ravel())
            return _with_input(image, "axes", self._constant(axes))
        return image

    def _read(self, op: View) -> View:
        """An operator that reads the image of a sequence."""
        image = _reading(op, self._image)
        if op.op not in _REDUCTIONS:
            return image
        axes = [_ROW, *_of_image(_values(op["axes"]).ravel())]
        return _with_input(image, "axes", self._constant(axes))

    def _constant(self, values: Any) -> TensorView:
        array = np.asarray(values, np.int32)
        return TensorView(next(self._fresh), "", TensorType.INT32, array.shape, array)

    def _new(
        self, op: Op, inputs: Sequence[TensorView], output: TensorView, options: Any = None
    ) -> View:
        index, names = next(self._indices), INPUTS[op].names
        table = options_of(op, options)
        return OperatorView(op, 1, index, tuple(inputs), (output,), table, names)


def _reading(op: View, of: Callable[[TensorView], TensorView]) -> View:
    """An operator that reads other tensors in place of its own."""
    inputs = tuple(None if tensor is None else of(tensor) for tensor in op.inputs)
    same = all(new is old for new, old in zip(inputs, op.inputs, strict=True))
    return op if same else replace(op, inputs=inputs)


def _with_input(op: View, name: str, tensor: TensorView) -> View:
    place = op.names.index(name)
    return replace(op, inputs=(*op.inputs[:place], tensor, *op.inputs[place + 1 :]))


def _values(tensor: TensorView) -> npt.NDArray[Any]:
    assert tensor.data is not None
    return tensor.data


def _of_image(axes: Any) -> Sequence[int]:
    """Axes of a sequence as those of its image."""
    found = [int(axis) % _RANK for axis in axes]
    return [axis + (axis >= _ROW) for axis in found]


def _leaves_image(op: View) -> bool:
    """Whether an operator makes a sequence of its image."""
    return op.op in RESHAPES and _is_image(op.inputs[0], op.output) and _has_sizes(op)


def _enters_image(op: View) -> bool:
    """Whether an operator makes the image of a sequence."""
    return op.op in RESHAPES and _is_image(op.output, op.inputs[0]) and _has_sizes(op)


def _has_sizes(op: View) -> bool:
    """Whether the shape that a RESHAPE makes is given, so that it is not refused at run time."""
    return all(each.is_constant for each in op.present_inputs()[1:])


def _is_image(image: TensorView | None, tensor: TensorView | None) -> bool:
    if image is None or tensor is None or not _is_sequence(tensor):
        return False
    if image.rank != _RANK + 1 or image.type is not tensor.type or image.is_variable:
        return False
    if image.quantization is not None and not image.quantization.equals(tensor.quantization):
        return False
    return not may_differ((*tensor.shape[:_ROW], 1, *tensor.shape[_ROW:]), image.shape)


def _is_sequence(tensor: TensorView | None) -> bool:
    """Whether a tensor that is computed may be an image; only the number of samples may be open."""
    if tensor is None or tensor.rank != _RANK or tensor.is_variable or tensor.is_constant:
        return False
    if tensor.type in _NO_ARRAYS or _has_several_scales(tensor):
        return False
    sizes = tensor.shape[_ROW:]
    return is_known(*sizes) and 0 not in sizes


def _has_several_scales(tensor: TensorView) -> bool:
    several = tensor.quantization is not None and tensor.quantization.per_channel
    return several or tensor.blocks is not None


def _is_movable(op: View) -> bool:
    """Whether an operator that makes a sequence may make its image, of images and constants."""
    computed = [tensor for tensor in op.present_inputs() if not tensor.is_constant]
    if len(op.outputs) != 1 or not all(map(_is_sequence, (*computed, op.output))):
        return False
    if op.op in _PADS:
        return op["paddings"].shape == (_RANK, 2) and op["paddings"].is_constant
    if op.op in _REDUCTIONS:
        return _reduces(op) and bool(op.options.keep_dims)
    if op.op not in _ELEMENTWISE and op.op is not Op.CONCATENATION:
        return False
    constants = [tensor for tensor in op.present_inputs() if tensor.is_constant]
    return bool(computed) and not any(t.rank > _RANK or _has_several_scales(t) for t in constants)


def _reduces(op: View) -> bool:
    """Whether a reduction over known axes is the same over those of an image: TFLite computes means
    of codes otherwise there."""
    x, axes = op["input"], op["axes"]
    if x.is_constant or axes.data is None or not axes.data.size:
        return False
    return x.type is TensorType.FLOAT32 or op.op not in _SUMS


def _takes_image(op: View) -> bool:
    """Whether an operator that makes no sequence may read the image of one."""
    if op.op not in _REDUCTIONS:
        return op.op is Op.RESHAPE and _has_sizes(op)
    if not _reduces(op) or op.options.keep_dims:
        return False
    return _ROW in [int(axis) % _RANK for axis in _values(op["axes"]).ravel()]


def _tied(op: View) -> Iterator[TensorView]:
    """The sequences that are images together."""
    yield from (tensor for tensor in op.present_inputs() if not tensor.is_constant)
    yield op.output
