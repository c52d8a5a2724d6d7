"""What translators remember of tensors for translators that come later."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from tflite_ort.opmap.graph.shaped_nodes import ShapedNodes
from tflite_ort.schema import TensorType, TensorView


class NotedNodes(ShapedNodes):
    """Nodes, with notes on tensors.

    Args:
        weight_type: the type that carries 8-bit weights.
    """

    def __init__(self, weight_type: TensorType) -> None:
        super().__init__(weight_type)
        self._padded: dict[int, tuple[TensorView, Sequence[tuple[int, int]]]] = {}
        self._wide: dict[int, TensorView] = {}
        self._offers: dict[int, tuple[TensorView, Callable[[], None], str]] = {}

    def note_padded(
        self, tensor: TensorView, source: TensorView, pads: Sequence[tuple[int, int]]
    ) -> None:
        """Remember that `tensor` is `source` between zeros: so many before and after each axis."""
        if not source.is_variable:
            self._padded[tensor.index] = source, pads

    def padded(self, tensor: TensorView) -> tuple[TensorView, Sequence[tuple[int, int]]] | None:
        """What `note_padded` was told about `tensor`."""
        return self._padded.get(tensor.index)

    def offer_wide(
        self, tensor: TensorView, channels: int, make: Callable[[TensorView], None]
    ) -> None:
        """Remember how `tensor` is made with more channels, after its own, of any content.

        Args:
            make: writes the wide tensor that it is given.
        """
        wide = replace(tensor, index=~tensor.index, shape=(*tensor.shape[:-1], channels))
        self._offers[tensor.index] = wide, partial(make, wide), self._label

    def wide(self, tensor: TensorView) -> TensorView | None:
        """`tensor` with more channels, made now if it was only offered; None where it was not."""
        if tensor.index in self._offers:
            wide, make, label = self._offers.pop(tensor.index)
            present, self._label = self._label, label
            make()
            self._label = present
            self.has_wide(tensor, wide)
        return self.made_wide(tensor)

    def has_wide(self, tensor: TensorView, wide: TensorView) -> None:
        """Remember that `wide` is `tensor` with more channels."""
        self._wide[tensor.index] = wide

    def made_wide(self, tensor: TensorView) -> TensorView | None:
        """`tensor` with more channels, where it was made."""
        return self._wide.get(tensor.index)
