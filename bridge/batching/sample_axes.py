"""Models whose file leaves the number of samples open: whether they keep the samples apart.

Such a model runs over any number of samples as it is. What is to be proved is that each sample has
the result that it has alone. The samples have a size of their own, an `UnknownSize`, so the axis
that counts them is known in every tensor. A proof of an operator says that it mixes nothing along
that axis. What no proof is known for is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from typing import Any

from tflite_ort.schema import BridgeError, Op, OperatorView, Specialized, TensorView, Unbatchable
from tflite_ort.schema.file.errors import MALFORMED_OPERATOR, said_of_file
from tflite_ort.schema.values.operators import Key, key_of
from tflite_ort.schema.values.sizes import cancelled, has_roots, is_known, known_product

View = OperatorView[Any]

# A tensor that differs between the samples has the number of the axis that counts them, or:
MERGED = -1  # its first axis counts the samples and then others
SIZES = -2  # it follows from how many samples there are, and from nothing that is in them

Proof = Callable[[View, "SampleAxes"], None]
_PROOFS: dict[Key, tuple[Proof, Container[int]]] = {}
# Of numbers of samples these make rows that are all alike.
_ALIKE = frozenset({Op.FILL, Op.BROADCAST_TO, "FlexTensorListReserve", "FlexEmptyTensorList"})


def proof(*keys: Key, shapes: Container[int] = ()) -> Callable[[Proof], Proof]:
    """Registers what notes the axes of the results of these operators, or raises Unbatchable.

    Args:
        shapes: the places of inputs that may follow from the number of samples.
    """

    def register(function: Proof) -> Proof:
        for key in keys:
            if key in _PROOFS:
                raise ValueError(f"{key} has a proof already")
            _PROOFS[key] = (function, shapes)
        return function

    return register


class SampleAxes:
    """The axes that count the samples, in one subgraph.

    Args:
        count: the number of samples.
        places: by tensor, its axis, MERGED or SIZES; all others are the same for all samples.
    """

    def __init__(self, count: int, places: Mapping[int, int]) -> None:
        self.count, self.places = count, dict(places)

    def of(self, tensor: TensorView) -> int | None:
        """The axis of a tensor; None if it is the same for all samples."""
        return self.places.get(tensor.index)

    def differs(self, tensor: TensorView | None) -> bool:
        """Whether a tensor differs between the samples."""
        return tensor is not None and self.places.get(tensor.index, SIZES) != SIZES

    def found(self, tensor: TensorView) -> int:
        """The one axis of a tensor that is as long as there are samples.

        Raises:
            Unbatchable: there is none, or the samples are in another axis too.
        """
        axes = [axis for axis, size in enumerate(tensor.shape) if size is self.count]
        related = [size for size in tensor.shape if self._follows(size)]
        if not tensor.ranked or len(axes) != 1 or len(related) != 1:
            raise Unbatchable(f"the samples of {tensor.name!r} are in no axis of their own")
        return axes[0]

    def _follows(self, size: int) -> bool:
        """Whether a size is the number of samples, or a multiple of it."""
        return not is_known(size) and has_roots((size,), (self.count,))

    def note(self, tensor: TensorView) -> None:
        """`tensor` has an axis of samples, which its shape tells."""
        self.places[tensor.index] = self.found(tensor)

    def merge(self, tensor: TensorView) -> None:
        """The first axis of `tensor` counts the samples and then others."""
        first, rest = tensor.shape[:1], tensor.shape[1:]
        if not tensor.ranked or is_known(*first) or not is_known(*rest):
            raise Unbatchable(f"the samples of {tensor.name!r} are in no axis of their own")
        self.places[tensor.index] = MERGED

    def keep_order(self, source: TensorView, out: TensorView) -> None:
        """The elements of `out` are those of `source` in their order."""
        place = self.places[source.index]
        if not out.ranked or not any(size is self.count for size in out.shape):
            inner, whole = known_product(out.shape[1:]), known_product(source.shape[1:])
            if place not in (0, MERGED) or not inner or whole % inner:
                raise Unbatchable("a RESHAPE mixes samples")
            self.merge(out)
            return
        axis = self.found(out)
        before = source.shape[: max(place, 0)]
        if cancelled(before, out.shape[:axis]) != ([], []):
            raise Unbatchable("a RESHAPE mixes samples")
        if known_product(before) != known_product(out.shape[:axis]):
            raise Unbatchable("a RESHAPE mixes samples")
        self.places[out.index] = axis

    def follow(self, graph: Specialized) -> None:
        """Note the axes of all tensors of a subgraph.

        Raises:
            Unbatchable: with the name of the operator that may mix samples.
        """
        for op in graph.operators:
            try:
                self._follow(op)
            except Unbatchable as error:
                raise Unbatchable(error.reason, op.name, op.index, op.subgraph) from None
            except BridgeError:
                raise
            except MALFORMED_OPERATOR as error:
                reason = f"it is malformed: {said_of_file(error)}"
                raise Unbatchable(reason, op.name, op.index, op.subgraph) from error

    def _follow(self, op: View) -> None:
        inputs = op.present_inputs()
        given = [place for tensor in inputs if (place := self.of(tensor)) is not None]
        if not given:  # nor does a variable that is set to it differ
            return
        if op.variables():
            raise Unbatchable("it keeps a state of each sample")
        if set(given) == {SIZES} and key_of(op) not in _ALIKE and not op.bodies:
            self._note_sizes(op)
            return
        if key_of(op) not in _PROOFS:
            raise Unbatchable("nothing is known of it for a batch")
        function, shapes = _PROOFS[key_of(op)]
        for place, tensor in enumerate(inputs):
            if self.of(tensor) == SIZES and place not in shapes:
                raise Unbatchable("it computes with the number of samples")
        function(op, self)

    def _note_sizes(self, op: View) -> None:
        for out in op.outputs:
            self.note_sizes(out)

    def note_sizes(self, out: TensorView) -> None:
        """`out` follows from shapes: it is the same for all samples if these are known, but for
        the number of samples."""
        known = None if out.sizes is None else list(out.sizes.reshape(-1))
        if known is None or any(size is None or self._follows(size) for size in known):
            self.places[out.index] = SIZES


def called(outer: SampleAxes, inputs: Sequence[TensorView], body: Specialized) -> SampleAxes:
    """What is known of the inputs of a subgraph that an operator calls."""
    inner = SampleAxes(outer.count, {})
    for tensor, index in zip(inputs, body.inputs, strict=True):
        place = outer.of(tensor)
        if place == MERGED:
            raise Unbatchable("a loop or a branch reads samples that are in no axis of their own")
        if place == SIZES:
            inner.note_sizes(body.tensors[index])
        elif place is not None:
            inner.note(body.tensors[index])
    return inner
