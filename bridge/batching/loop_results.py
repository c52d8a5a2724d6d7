"""What a loop over samples keeps of the results of its operators.

Where all samples have results of one shape, the loop keeps a stack of them. Where the size is not
known it keeps a stack that grows to the largest result so far, zeros behind what is smaller, and
beside it the sizes of each, if they depend on data.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from tflite_ort.batching.graph import BatchedGraph
from tflite_ort.batching.plain import PlainGraph
from tflite_ort.schema import (
    GatherOptions,
    MaximumMinimumOptions,
    Op,
    PackOptions,
    ReshapeOptions,
    ShapeOptions,
    SqueezeOptions,
    SubOptions,
    Tensor,
    TensorType,
    TensorView,
    Unbatchable,
)
from tflite_ort.schema.values.sizes import has_roots, is_known

_INT32 = TensorType.INT32


@dataclass(frozen=True, slots=True)
class Stack:
    """The results of one shape, ``[N, *shape]``."""

    tensor: TensorView

    def first(self, g: BatchedGraph) -> list[int]:
        """The state before the first sample: zeros."""
        return [zeros(self.tensor, self.tensor.shape, g)]

    def updated(self, body: PlainGraph, state: Sequence[int], made: int, number: int) -> list[int]:
        """The state with `made`, the result of sample `number`."""
        table = body.tensors[state[0]]
        row = reshaped(body, made, (1, *table.shape[1:]))
        return [_with_row(body, state[0], row, number)]

    def finals(self, g: BatchedGraph) -> list[int]:
        """The places of the state after the last sample."""
        return [g.result_stacked(self.tensor)]

    def finish(self, g: BatchedGraph, finals: Sequence[int]) -> None:
        """Nothing is left to do."""


@dataclass(frozen=True, slots=True)
class PaddedStack:
    """The results of several shapes, padded to the largest size of each axis, and their sizes along
    the axes in which they differ, int32 ``[N, axes]``.

    Args:
        axes: those in which they differ; open sizes of inputs are those of all samples.
    """

    tensor: TensorView
    axes: Sequence[int]

    def first(self, g: BatchedGraph) -> list[int]:
        """The state before the first sample: nothing."""
        least = [size if is_known(size) else 0 for size in self.tensor.shape]
        if not self.axes:
            return [zeros(self.tensor, least, g)]
        counts = g.new(_INT32, g.stacked_shape([len(self.axes)]), "counts")
        g.emit(Op.FILL, [g.dims([len(self.axes)]), g.constant(0)], [counts])
        return [zeros(self.tensor, least, g), counts]

    def updated(self, body: PlainGraph, state: Sequence[int], made: int, number: int) -> list[int]:
        """The state with `made`, the result of sample `number`, along whose axes it grows."""
        whole, rank, axes = state[0], self.tensor.rank, self.axes
        sizes = _shape_of(body, made, rank)
        before = _slice(body, _shape_of(body, whole, rank + 1), 1, rank)
        most = body.new(_INT32, (rank,), "most")
        body.emit(Op.MAXIMUM, [sizes, before], [most], MaximumMinimumOptions())
        one = body.concatenated([body.constant([1]), sizes])
        row = body.like(body.tensors[made], [-1] * (rank + 1), "row")
        body.emit(Op.RESHAPE, [made, one], [row], ReshapeOptions())
        grown = _padded(body, whole, most, before)
        row = _padded(body, row, most, sizes)
        if not axes:
            return [_with_row(body, grown, row, number)]
        along = body.new(_INT32, (len(axes),), "sizes")
        body.emit(Op.GATHER, [sizes, body.constant(axes)], [along], GatherOptions())
        count = reshaped(body, along, (1, len(axes)))
        return [_with_row(body, grown, row, number), _with_row(body, state[1], count, number)]

    def finals(self, g: BatchedGraph) -> list[int]:
        """The places of the state after the last sample."""
        whole = g.temporary(self.tensor, [-1] * (self.tensor.rank + 1), "padded")
        if not self.axes:
            return [whole]
        return [whole, g.new(_INT32, g.stacked_shape([len(self.axes)]), "counts")]

    def finish(self, g: BatchedGraph, finals: Sequence[int]) -> None:
        """Declare the result, as large as the batch, and its counts."""
        whole, *counts = finals
        rank = self.tensor.rank
        sizes = _slice(g, _shape_of(g, whole, rank + 1), 1, rank)
        wanted = g.concatenated([g.count(), sizes])
        out = g.result_stacked(self.tensor)
        g.emit(Op.RESHAPE, [whole, wanted], [out], ReshapeOptions())
        if len(self.axes) == 1:
            flat = g.new(_INT32, g.stacked_shape([]), "count")
            g.emit(Op.RESHAPE, [*counts, g.count()], [flat], ReshapeOptions())
            counts = [flat]
        if counts:
            g.counts[self.tensor.index] = counts[0]


Kept = Stack | PaddedStack


def kept(tensor: TensorView, open_sizes: Sequence[int]) -> Kept:
    """What a loop keeps of a result.

    Args:
        open_sizes: those that all samples have.

    Raises:
        Unbatchable: no batch has a place for it.
    """
    if tensor.type is TensorType.STRING:
        raise Unbatchable("it knows one sample only, and gives strings")
    if not tensor.ranked:
        raise Unbatchable(f"the number of dimensions of {tensor.name!r} depends on data")
    if not tensor.dynamic:
        return Stack(tensor)
    sizes = enumerate(tensor.shape)
    return PaddedStack(tensor, [axis for axis, size in sizes if not has_roots([size], open_sizes)])


def zeros(tensor: TensorView, shape: Sequence[int], g: BatchedGraph) -> int:
    """Zeros of the type of `tensor` and of `shape`, for each sample."""
    like = replace(g.source.tensors[tensor.index], type=tensor.type)
    zero = g.constant(np.zeros((), tensor.dtype), tensor.dtype, like)
    out = g.temporary(tensor, g.stacked_shape(shape), "before")
    g.emit(Op.FILL, [g.dims(shape), zero], [out])
    return out


def start(body: PlainGraph, number: int, rank: int) -> int:
    """Where row `number` starts: ``[number, 0, 0, ...]``."""
    return body.concatenated([number, body.constant([0] * (rank - 1))] if rank > 1 else [number])


def reshaped(body: PlainGraph, place: int, shape: Sequence[int]) -> int:
    """Tensor `place` with another shape, which is known."""
    out = body.like(body.tensors[place], shape, "sample")
    sizes = body.constant(list(shape))
    body.emit(Op.RESHAPE, [place, sizes], [out], ReshapeOptions(new_shape=tuple(shape)))
    return out


def without_first(body: PlainGraph, place: int) -> int:
    """Tensor `place`, whose first size is 1, without it."""
    table = body.tensors[place]
    out = body.like(table, sizes_of(table)[1:], "sample")
    body.emit(Op.SQUEEZE, [place], [out], SqueezeOptions(squeeze_dims=(0,)))
    return out


def sizes_of(table: Tensor) -> Sequence[int]:
    """The declared sizes, -1 for one that is open."""
    return table.shape_signature or table.shape


def _with_row(body: PlainGraph, whole: int, row: int, number: int) -> int:
    """A stack with `row` in the place of row `number`."""
    table = body.tensors[whole]
    out = body.like(table, sizes_of(table), "with_row")
    place = start(body, number, len(table.shape))
    body.emit(Op.DYNAMIC_UPDATE_SLICE, [whole, row, place], [out])
    return out


def _shape_of(g: PlainGraph, place: int, rank: int) -> int:
    sizes = g.new(_INT32, (rank,), "shape")
    g.emit(Op.SHAPE, [place], [sizes], ShapeOptions(out_type=_INT32))
    return sizes


def _slice(g: PlainGraph, listed: int, first: int, count: int) -> int:
    out = g.new(_INT32, (count,), "sizes")
    g.emit(Op.SLICE, [listed, g.constant([first]), g.constant([count])], [out])
    return out


def _padded(body: PlainGraph, whole: int, most: int, sizes: int) -> int:
    """A stack of results of `sizes` with zeros behind them up to `most`."""
    table = body.tensors[whole]
    rank = len(table.shape) - 1
    missing = body.new(_INT32, (rank,), "missing")
    body.emit(Op.SUB, [most, sizes], [missing], SubOptions())
    behind = body.concatenated([body.constant([0]), missing])
    paddings = body.new(_INT32, (rank + 1, 2), "paddings")
    pairs = [body.constant([0] * (rank + 1)), behind]
    body.emit(Op.PACK, pairs, [paddings], PackOptions(values_count=2, axis=1))
    out = body.like(table, [-1] * (rank + 1), "grown")
    body.emit(Op.PAD, [whole, paddings], [out])
    return out
