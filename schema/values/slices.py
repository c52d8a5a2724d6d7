"""STRIDED_SLICE resolved: begin, end, strides and five masks to one slice per axis."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy.typing as npt

from tflite_ort.base.records import record
from tflite_ort.schema.file.errors import ModelError
from tflite_ort.schema.file.options import StridedSliceOptions
from tflite_ort.schema.values.sizes import is_known, is_one, unknown_size

Shape = tuple[int, ...]
Bounds = Sequence[int] | npt.NDArray[Any]


@record
class StridedSlice:
    """``numpy.expand_dims(numpy.squeeze(x[slices], squeezed), new_axes)``, resolved.

    Args:
        starts, ends, steps: one per input axis, in range for numpy and for ONNX's Slice: the end
            of a negative step that runs past the first element is `-size - 1`.
        squeezed: input axes to drop after slicing.
        new_axes: axes of size 1 to insert, counted in the result.
        shape: of the result.
    """

    starts: Shape
    ends: Shape
    steps: Shape
    squeezed: Shape
    new_axes: Shape
    shape: Shape

    @property
    def slices(self) -> tuple[slice, ...]:
        """For numpy, one for each dimension of the input."""
        bounds = zip(self.starts, self.ends, self.steps, strict=True)
        return tuple(slice(*bound) for bound in bounds)


def strided_slice(
    shape: Shape, begin: Bounds, end: Bounds, strides: Bounds, options: StridedSliceOptions
) -> StridedSlice:
    """STRIDED_SLICE of a tensor of `shape`: numpy's rules, `offset` makes `end` a length."""
    bounds: list[tuple[int, int, int]] = []
    squeezed: list[int] = []
    new_axes: list[int] = []
    result: list[int] = []
    for entry in slice_entries(len(shape), len(begin), options):
        bit = 1 << entry if entry is not None else 0
        if entry is not None and bit & options.new_axis_mask:
            new_axes.append(len(result))
            result.append(1)
            continue
        axis, size = len(bounds), shape[len(bounds)]
        if entry is not None and bit & options.shrink_axis_mask:
            first = 0 if bit & options.begin_mask else int(begin[entry])
            bounds.append(_single(size, first, int(strides[entry])))
            squeezed.append(axis)
        else:
            bounds.append(_of_entry(entry, size, begin, end, strides, options))
            result.append(len(range(size)[slice(*bounds[-1])]))
    starts, ends, steps = zip(*bounds, strict=True) if bounds else ((), (), ())
    return StridedSlice(starts, ends, steps, tuple(squeezed), tuple(new_axes), tuple(result))


def _of_entry(
    entry: int | None,
    size: int,
    begin: Bounds,
    end: Bounds,
    strides: Bounds,
    options: StridedSliceOptions,
) -> tuple[int, int, int]:
    """The slice of an axis that stays; of all of it where no entry says more."""
    if entry is None:
        return 0, size, 1
    start = None if options.begin_mask >> entry & 1 else int(begin[entry])
    stop = None if options.end_mask >> entry & 1 else int(end[entry])
    return _bounds(size, start, stop, int(strides[entry]), options.offset)


def sliced_shape(
    shape: Shape, begin: Bounds, end: Bounds, strides: Bounds, options: StridedSliceOptions
) -> Shape:
    """The shape of STRIDED_SLICE's result, where sizes, begin, end and strides may be unknown."""
    sizes, result = iter(shape), []
    for entry in slice_entries(len(shape), len(begin), options):
        bit = 1 << entry if entry is not None else 0
        if bit & options.new_axis_mask:
            result.append(1)
        elif entry is None:
            result.append(next(sizes))
        elif bit & options.shrink_axis_mask:
            next(sizes)
        else:
            start = None if bit & options.begin_mask else begin[entry]
            stop = None if bit & options.end_mask else end[entry]
            result.append(_count(next(sizes), start, stop, strides[entry], options.offset))
    return tuple(result)


def _count(size: int, first: int | None, last: int | None, stride: int, offset: bool) -> int:
    if is_known(size, first, last, stride):
        return len(range(size)[slice(*_bounds(size, first, last, stride, offset))])
    from_start = first is None or (is_known(first) and first == 0)
    return size if from_start and last is None and is_one(stride) else unknown_size()


def slice_entries(rank: int, count: int, options: StridedSliceOptions) -> Iterable[int | None]:
    """The entry of begin/end/strides that each axis takes; None for one taken whole."""
    ellipses = [entry for entry in range(count) if options.ellipsis_mask >> entry & 1]
    fresh = sum(options.new_axis_mask >> i & 1 for i in range(count) if i not in ellipses)
    whole = rank + fresh + len(ellipses) - count
    if whole < 0 or len(ellipses) > 1:
        raise ModelError(f"{count} slice entries with {len(ellipses)} ellipses index rank {rank}")
    entries: list[int | None] = list(range(count))
    position = ellipses[0] if ellipses else count
    return entries[:position] + [None] * whole + entries[position + len(ellipses) :]


def _single(size: int, index: int, stride: int) -> tuple[int, int, int]:
    """The bounds of one element, for an axis that is then dropped."""
    index += size * (index < 0)
    if stride <= 0 or not 0 <= index < size:
        raise ModelError(f"slice index {index} with stride {stride} is outside an axis of {size}")
    return index, index + 1, 1


def _bounds(
    size: int, first: int | None, last: int | None, stride: int, offset: bool
) -> tuple[int, int, int]:
    """(start, end, step) clamped as numpy does; an empty slice is (0, 0, 1)."""
    if stride == 0:
        raise ModelError("stride value has to be non-zero")
    if offset and last is not None:
        last += slice(first, None, stride).indices(size)[0]
    start, end, _ = slice(first, last, stride).indices(size)
    if not range(start, end, stride):
        return 0, 0, 1
    return start, end if end >= 0 else -size - 1, stride
