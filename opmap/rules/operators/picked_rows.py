"""Tensors that are rows of another one: a step of a sequence, however it was cut out.

B rows, K numbers in each.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from tflite_ort.base.records import record
from tflite_ort.opmap.graph.rows import RESHAPES
from tflite_ort.opmap.rules.operators.views import Runs, Strided
from tflite_ort.schema import Op, OperatorView, TensorView
from tflite_ort.schema.values.constant_slices import constant_slice
from tflite_ort.schema.values.semantics import normalized_axis
from tflite_ort.schema.values.sizes import is_known

View = OperatorView[Any]
Maker = Callable[[int], View | None]

# So many operators in a row are looked through.
_REACH = 16


@record
class PickedRows:
    """[B, K] as rows of what `whole` is in rows of K.

    Args:
        first: the number of the first row.
        runs: sizes and steps of what the rows run through, the slowest first.
    """

    whole: TensorView
    first: int
    runs: Runs = ()

    @property
    def places(self) -> npt.NDArray[np.int64]:
        """The numbers of all rows."""
        places = np.array([self.first])
        for size, step in self.runs:
            places = (places[:, None] + step * np.arange(size)).reshape(-1)
        return places


@record
class _Place:
    """Elements of `whole`."""

    whole: TensorView
    view: Strided

    @classmethod
    def of(cls, tensor: TensorView) -> _Place:
        return cls(tensor, Strided.whole(tensor.shape))


def picked_rows(
    tensor: TensorView, maker: Maker, known: Mapping[int, PickedRows] | None = None
) -> PickedRows:
    """What `tensor` is rows of; of itself where it is made otherwise.

    Args:
        maker: the operator that makes a tensor, by its index.
        known: tensors of which it is known already.
    """
    chain, start = list[tuple[View, TensorView]](), tensor
    while (op := maker(start.index)) is not None and len(chain) < _REACH:
        if start.index in (known or {}) or not (source := _moved_from(op)):
            break
        chain.append((op, start))
        start = source
    place = _start(start, known or {})
    for op, out in reversed(chain):
        view = _moved(op, out, place.view)
        place = _Place.of(out) if view is None else _Place(place.whole, view)
    return _rows(place, tensor) or whole_rows(tensor, prod(tensor.shape[:-1]))


def whole_rows(tensor: TensorView, count: int, first: int = 0) -> PickedRows:
    """`count` rows of `tensor` from `first` on."""
    return PickedRows(tensor, first, ((count, 1),) if count > 1 else ())


def _start(tensor: TensorView, known: Mapping[int, PickedRows]) -> _Place:
    rows = known.get(tensor.index)
    if rows is None:
        return _Place.of(tensor)
    width = tensor.shape[-1]
    runs = tuple((size, step * width) for size, step in rows.runs)
    within = ((width, 1),) if width > 1 else ()
    view = Strided((runs, within), rows.first * width)
    found = view.reshaped(tensor.shape)
    return _Place.of(tensor) if found is None else _Place(rows.whole, found)


def _rows(place: _Place, tensor: TensorView) -> PickedRows | None:
    """`place` as whole rows of its tensor; None where it is none."""
    count, width = prod(tensor.shape[:-1]), tensor.shape[-1]
    view = place.view.reshaped((count, width))
    if view is None or prod(place.whole.shape) % width or view.offset % width:
        return None
    of_rows, within = view.dimensions
    if within not in ((), ((width, 1),)) or any(step % width for _, step in of_rows):
        return None
    runs = tuple((size, step // width) for size, step in of_rows)
    return PickedRows(place.whole, view.offset // width, runs)


def _moved_from(op: View) -> TensorView | None:
    """What `op` cuts its outputs out of, or puts in another order."""
    if op.op not in _MOVES and op.op not in RESHAPES:
        return None
    source = op.present_inputs()[1 if op.op is Op.SPLIT else 0]
    tensors = (source, *op.outputs)
    if source.is_variable or not all(is_known(*each.shape) and each.rank for each in tensors):
        return None
    return None if any(0 in each.shape for each in tensors) else source


def _moved(op: View, out: TensorView, view: Strided) -> Strided | None:
    """The elements of `out`, which `op` makes of those in `view`; None where they are no such."""
    if op.op in RESHAPES:
        return view.reshaped(out.shape)
    found = _MOVES[op.op](op, out, view)
    return None if found is None else found.reshaped(out.shape)


def _numbers(tensor: TensorView) -> list[int] | None:
    return None if tensor.data is None else [int(number) for number in tensor.data.reshape(-1)]


def _transposed(op: View, _: TensorView, view: Strided) -> Strided | None:
    order, rank = _numbers(op.present_inputs()[1]), len(view.dimensions)
    if order is None:
        return None
    return view.transposed([normalized_axis(axis, rank) for axis in order])


def _reversed(op: View, _: TensorView, view: Strided) -> Strided | None:
    axes = _numbers(op.present_inputs()[1])
    if axes is None or len(axes) != 1:
        return None
    return view.reversed(normalized_axis(axes[0], len(view.dimensions)))


def _sliced(op: View, _: TensorView, view: Strided) -> Strided | None:
    bounds = constant_slice(op)
    if bounds is None:
        return None
    sizes = [len(range(size)[cut]) for size, cut in zip(view.shape, bounds.slices, strict=True)]
    steps = zip(bounds.steps, sizes, strict=True)
    if any(step != 1 and size != 1 for step, size in steps):
        return None
    return view.sliced(bounds.starts, sizes)


def _part(axis: int, first: int, size: int, view: Strided) -> Strided | None:
    """`size` elements of a dimension from `first` on."""
    axis = normalized_axis(axis, len(view.dimensions))
    begin, shape = [0] * len(view.dimensions), list(view.shape)
    begin[axis], shape[axis] = first, size
    return view.sliced(begin, shape)


def _split(op: View, out: TensorView, view: Strided) -> Strided | None:
    axes = _numbers(op.present_inputs()[0 if op.op is Op.SPLIT else 2])
    if axes is None or len(axes) != 1:
        return None
    axis, place = axes[0], _number_of(out, op)
    before = sum(each.shape[axis] for each in op.outputs[:place])
    return _part(axis, before, out.shape[axis], view)


def _unpacked(op: View, out: TensorView, view: Strided) -> Strided | None:
    return _part(op.options.axis, _number_of(out, op), 1, view)


def _gathered(op: View, _: TensorView, view: Strided) -> Strided | None:
    places = _numbers(op.present_inputs()[1])
    if places is None or len(places) != 1 or op.options.batch_dims:
        return None
    axis = normalized_axis(op.options.axis, len(view.dimensions))
    return _part(axis, places[0], 1, view) if 0 <= places[0] < view.shape[axis] else None


def _number_of(out: TensorView, op: View) -> int:
    return [each.index for each in op.outputs].index(out.index)


_MOVES: Mapping[Op, Callable[[View, TensorView, Strided], Strided | None]] = {
    Op.TRANSPOSE: _transposed,
    Op.REVERSE_V2: _reversed,
    Op.SLICE: _sliced,
    Op.STRIDED_SLICE: _sliced,
    Op.SPLIT: _split,
    Op.SPLIT_V: _split,
    Op.UNPACK: _unpacked,
    Op.GATHER: _gathered,
}
