"""The sizes of the elements of lists, which may be known only where the first element is set.

A list is made before anything is put into it, and its shape may leave a size open, such as that of
the batch. Where a size turns out to be that of an element, all is made ready once more with it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tflite_ort.base.records import field, record, replace
from tflite_ort.schema import OperatorView, TensorView
from tflite_ort.schema.values.sizes import has_roots, is_known

# Where a list is made: the subgraphs that call each other, and the operator.
Place = tuple[tuple[int, ...], int]

_MAKERS = frozenset({"FlexTensorListReserve", "FlexEmptyTensorList"})
_SETTERS = frozenset({"FlexTensorListSetItem", "FlexTensorListPushBack"})


@record(frozen=False)
class ListSizes:
    """What is known of lists by now.

    Args:
        lasting: the unknown sizes of what the model is given, which are the same each time that it
            is made ready.
        known: by place and axis, a size that was found.
        open: sizes that are not known yet, with the place and the axis.
    """

    lasting: Sequence[int] = ()
    known: dict[tuple[Place, int], int] = field(default_factory=dict)
    open: list[tuple[int, Place, int]] = field(default_factory=list)

    def sized(
        self, op: OperatorView[Any], place: Place, tensors: Sequence[TensorView]
    ) -> OperatorView[Any]:
        """`op`, if it makes a list, with what is known of its elements, and with the tensors that
        have these sizes as further inputs."""
        if op.custom_code not in _MAKERS:
            return op
        shape = list(op.output.shape)
        likes: list[TensorView] = []
        for axis, size in enumerate(shape):
            if axis == 0 or is_known(size):
                continue
            found = self.known.get((place, axis))
            if found is None:
                self.open.append((size, place, axis))
                continue
            shape[axis] = found
            like = None if is_known(found) else _with_size(tensors, found)
            if like is not None and all(like is not each for each in likes):
                likes.append(like)
        output = replace(op.output, shape=tuple(shape))
        return replace(op, inputs=(*op.inputs, *likes), outputs=(output,))

    def found(self, op: OperatorView[Any]) -> bool:
        """Whether `op` tells a size that was open."""
        if op.custom_code not in _SETTERS or not self.open:
            return False
        before, after, any_found = op.present_inputs()[0].shape, op.output.shape, False
        for one, other in zip(before, after, strict=False):
            if is_known(one) or one is other:
                continue
            for size, place, axis in self.open:
                if size is one and (place, axis) not in self.known and self._lasts(other):
                    self.known[place, axis] = other
                    any_found = True
        return any_found

    def _lasts(self, size: int) -> bool:
        return is_known(size) or has_roots((size,), self.lasting)


def _with_size(tensors: Sequence[TensorView], size: int) -> TensorView | None:
    """A tensor that has the unknown `size`."""
    for tensor in tensors:
        if tensor.ranked and any(each is size for each in tensor.shape):
            return tensor
    return None
