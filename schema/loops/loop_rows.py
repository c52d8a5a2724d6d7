"""Lists in a WHILE: tensors of which every iteration reads one row, or writes one row.

A loop whose trip count is an input reads rows that are there only up to some number of iterations.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tflite_ort.base.records import record, replace
from tflite_ort.schema.file.enums import ActivationFunctionType
from tflite_ort.schema.file.enums import BuiltinOperator as Op
from tflite_ort.schema.loops.induction_variables import (
    InductionVariable,
    followed,
    of_constant,
    within,
)
from tflite_ort.schema.loops.trip_count import MOST_ITERATIONS, Bounded, Counted
from tflite_ort.schema.values.sizes import is_known, known_product, may_differ, unknown_size
from tflite_ort.schema.values.view import OperatorView, Specialized, TensorView

View = OperatorView[Any]
_SET_ITEM = "FlexTensorListSetItem"
# Of a tensor of the body, as many as there are iterations.
_MOST_ELEMENTS = 1 << 24


@record(eq=False)
class Rows:
    """The rows of a list, along its first axis, that the iterations read or write.

    Args:
        list: the index of the list in the body.
        row: the index in the body of the tensor that is read or written.
        first, step: iteration t uses row first + t * step, which is inside the list.
    """

    list: int
    row: int
    first: int
    step: int


def rows_read(op: View, loop: Counted) -> Rows | None:
    """The rows of its first input that `op` reads one by one in the body of `loop`, if it does."""
    inputs = op.present_inputs()
    if op.op not in _READERS or len(inputs) < 2:
        return None
    induction = loop.inductions.get(inputs[1].index)
    if inputs[0].rank == 0 or induction is None or not _READERS[op.op](op, induction):
        return None
    return _rows(inputs[0], op.output.index, induction, loop)


def _gathers_one(op: View, induction: InductionVariable) -> bool:
    first_axis = op.options.axis in (0, -op.present_inputs()[0].rank)
    return first_axis and not op.options.batch_dims and induction.first.size == 1


def _slices_one(op: View, induction: InductionVariable) -> bool:
    source, _, sizes = op.present_inputs()
    if not _is_place(induction) or sizes.data is None or sizes.data.shape != (source.rank,):
        return False
    return sizes.data[0] == 1 and _are_whole(sizes.data[1:].tolist(), source.shape[1:])


def _strides_over_one(op: View, induction: InductionVariable) -> bool:
    options, strides = op.options, op.present_inputs()[3].data
    masks = options.begin_mask | options.end_mask | options.new_axis_mask | options.ellipsis_mask
    plain = not masks and not options.offset and options.shrink_axis_mask == 1
    return plain and induction.first.size == 1 and strides is not None and strides.item() == 1


_READERS = {
    Op.GATHER: _gathers_one,
    Op.SLICE: _slices_one,
    Op.STRIDED_SLICE: _strides_over_one,
}


def rows_written(place: int, body: Specialized, loop: Counted) -> Rows | None:
    """The rows that the body writes of the loop-carried value at `place`.

    None if it does not write one row of it in every iteration, or uses it for anything else.
    """
    argument, result = body.inputs[place], body.outputs[place]
    uses = [op for op in body.operators if _uses(op, argument)]
    writer = next((op for op in body.operators if op.makes(result)), None)
    if writer is None or any(_uses(op, result) for op in body.operators):
        return None
    if list(body.outputs).count(result) > 1 or argument in body.outputs:
        return None
    if writer.op is Op.DYNAMIC_UPDATE_SLICE and uses == [writer]:
        return _updated(writer, loop)
    if writer.custom_code == _SET_ITEM and uses == [writer]:
        return _set(writer, loop)
    if writer.op is Op.CONCATENATION:
        return _rejoined(writer, uses, body, loop)
    return None


def _uses(op: View, index: int) -> bool:
    return any(tensor.index == index for tensor in op.present_inputs())


def _updated(op: View, loop: Counted) -> Rows | None:
    """The rows that a DYNAMIC_UPDATE_SLICE writes."""
    whole, row, start = op.present_inputs()
    induction = loop.inductions.get(start.index)
    if induction is None or not _is_place(induction) or not _is_row(row, whole):
        return None
    return _rows(whole, row.index, induction, loop)


def _set(op: View, loop: Counted) -> Rows | None:
    """The rows that TensorFlow's TensorListSetItem writes."""
    whole, place, item = op.present_inputs()
    induction = loop.inductions.get(place.index) or of_constant(place)
    if induction is None or induction.first.size != 1 or may_differ(item.shape, whole.shape[1:]):
        return None
    return _rows(whole, item.index, induction, loop)


def _rejoined(op: View, uses: Sequence[View], body: Specialized, loop: Counted) -> Rows | None:
    """The rows that a CONCATENATION writes: of the rows before, the new row, and the rows after."""
    inputs, options = op.present_inputs(), op.options
    if options.fused_activation_function is not ActivationFunctionType.NONE or len(inputs) != 3:
        return None
    before, row, after = inputs
    parts = [use for use in uses if use.op is Op.SLICE]
    if len(uses) != 2 or len(parts) != 2 or options.axis not in (0, -op.output.rank):
        return None
    if [use.output.index for use in parts] != [before.index, after.index]:
        parts.reverse()
    readers = [
        [user for user in body.operators if _uses(user, part)]
        for part in (before.index, after.index)
    ]
    if [use.output.index for use in parts] != [before.index, after.index] or readers != [[op]] * 2:
        return None
    whole, induction = uses[0].present_inputs()[0], _parted(parts, loop)
    return _rows(whole, row.index, induction, loop) if induction and _is_row(row, whole) else None


def _parted(parts: Sequence[View], loop: Counted) -> InductionVariable | None:
    """The row between two slices of a list, if they are all rows before it and all after it."""
    (whole, begin, sizes), (_, next_begin, rest) = (part.present_inputs() for part in parts)
    count, following = loop.inductions.get(sizes.index), loop.inductions.get(next_begin.index)
    if count is None or following is None or begin.data is None or begin.data.any():
        return None
    if rest.data is None or not (rest.data == -1).all() or not _is_place(following):
        return None
    if not _are_whole(count.first[1:].tolist(), whole.shape[1:]) or count.step[1:].any():
        return None
    after = following.first[0] - count.first[0] == 1 and following.step[0] == count.step[0]
    return count if after else None


def _is_place(induction: InductionVariable) -> bool:
    """Whether `induction` is the start of a row: 0 along all axes but the first."""
    flat = induction.first.ndim == 1 and induction.first.size > 0
    return flat and not induction.first[1:].any() and not induction.step[1:].any()


def _are_whole(sizes: Sequence[int], shape: Sequence[int]) -> bool:
    """Whether `sizes` are those of `shape`; -1 stands for the whole axis."""
    pairs = zip(sizes, shape, strict=False)
    return len(sizes) == len(shape) and all(n == -1 or (is_known(m) and n == m) for n, m in pairs)


def _is_row(row: TensorView, whole: TensorView) -> bool:
    if not (row.ranked and whole.ranked) or may_differ(row.shape, (1, *whole.shape[1:])):
        return False
    if row.quantization is None or whole.quantization is None:
        return row.quantization is whole.quantization
    return row.quantization.equals(whole.quantization)


def _rows(whole: TensorView, row: int, induction: InductionVariable, loop: Counted) -> Rows | None:
    """The rows, if they are inside of the list; of one that is as long as there are iterations, all
    in their order are."""
    first, step = int(induction.first.reshape(-1)[0]), int(induction.step.reshape(-1)[0])
    if not whole.ranked or not whole.rank:
        return None
    size, ends = whole.shape[0], (first, first + max(loop.most - 1, 0) * step)
    if not is_known(size):
        all_rows = size is loop.trip_count and (first, step) == (0, 1)
        return Rows(whole.index, row, first, step) if all_rows else None
    inside = min(ends) >= 0 and max(ends) < size
    return Rows(whole.index, row, first, step) if inside else None


def of_unknown_count(limit: Bounded, body: Specialized) -> Counted | None:
    """A WHILE with these bounds, for trip counts from 1 to some number; None if there is no such
    number above 1.

    In so many iterations no counter leaves 32 bits, no row outside of a list is used, and the
    values of a tensor in all iterations are no more than ONNX Runtime should hold.
    """
    counters = {body.inputs[place]: counter for place, counter in limit.counters.items()}
    count = unknown_size() if limit.size is None else limit.size
    one = Counted(count, limit.counters, followed(body, counters), 1)
    read = [rows_read(op, one) for op in body.operators]
    written = [rows_written(place, body, one) for place in range(len(body.inputs))]
    found = [rows for rows in (*read, *written) if rows is not None]
    shapes = [out.shape for op in body.operators for out in op.outputs]
    least = _MOST_ELEMENTS // max(map(known_product, shapes), default=1)
    inside = (_iterations_inside(rows, body.tensors[rows.list].shape[0]) for rows in found)
    loop = replace(one, most=min(MOST_ITERATIONS, least, *inside))
    last = [counter.at(loop.most) for counter in one.inductions.values()]
    return loop if loop.most > 1 and all(map(within, last)) else None


def _iterations_inside(rows: Rows, size: int) -> int:
    """How many iterations use rows of a list of `size`."""
    if rows.step == 0 or not is_known(size):
        return MOST_ITERATIONS
    rest = rows.first if rows.step < 0 else size - 1 - rows.first
    return rest // abs(rows.step) + 1
