"""What translators remember of tensors for translators that come later, and in which layout they
stand."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from itertools import count
from typing import Any

from tflite_ort.opmap.graph.forms import Form, Layout
from tflite_ort.opmap.graph.rows import rows_agree
from tflite_ort.opmap.graph.shaped_nodes import ShapedNodes
from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.schema import OperatorView, TensorType, TensorView, Untranslatable
from tflite_ort.schema.values.complex_pairs import is_complex
from tflite_ort.schema.values.sizes import known_product


class NotedNodes(ShapedNodes):
    """Nodes, with notes on tensors.

    Args:
        weight_type: the type that carries 8-bit weights.
    """

    def __init__(self, weight_type: TensorType) -> None:
        super().__init__(weight_type)
        # By tensor and form that was given a value, the value before.
        self._journal: list[tuple[int, Form, ir.Value | None]] = []
        self._notes: dict[tuple[str, int], Any] = {}
        self._made_by: dict[int, OperatorView[Any]] = {}
        self._results: frozenset[int] = frozenset()
        self._made: Sequence[TensorView] = ()
        self._operators: Sequence[OperatorView[Any]] = ()
        self._readers: dict[int, list[OperatorView[Any]]] = {}
        self._makers: dict[int, OperatorView[Any]] = {}
        self._fresh = count(-(1 << 40), -1)

    def fresh_index(self) -> int:
        """An index that no tensor of the file has, for one that a rule makes."""
        return next(self._fresh)

    def note_operators(self, operators: Sequence[OperatorView[Any]]) -> None:
        """Remember what will be translated."""
        self._operators = operators

    def readers(self, tensor: TensorView) -> Sequence[OperatorView[Any]]:
        """The operators of the graph that read `tensor`."""
        if not self._readers:
            for op in self._operators:
                for index in {each.index for each in op.present_inputs()}:
                    self._readers.setdefault(index, []).append(op)
        return self._readers.get(tensor.index, ())

    def maker(self, tensor: TensorView) -> OperatorView[Any] | None:
        """The operator of the graph that makes `tensor`."""
        if not self._makers:
            self._makers = {each.index: op for op in self._operators for each in op.outputs}
        return self._makers.get(tensor.index)

    def has(self, tensor: TensorView) -> bool:
        """Whether `tensor` has a value in the graph already."""
        return bool(self._forms.get(tensor.index))

    def is_in(self, tensor: TensorView, layout: Layout) -> bool:
        """Whether `tensor` has a value in `layout` already."""
        return any(present is layout for present, _ in self._forms.get(tensor.index, ()))

    def note_results(self, tensors: Iterable[TensorView]) -> None:
        """Remember what the graph gives channels-last: it is made so, whatever else reads it."""
        self._results = frozenset(tensor.index for tensor in tensors)

    def note(self, what: str, tensor: TensorView, fact: Any) -> None:
        """Remember what a rule knows of `tensor` for when it is asked about a later operator."""
        self._notes[what, tensor.index] = fact

    def noted(self, what: str, tensor: TensorView) -> Any:
        """What `note` was told last; None where it was told nothing."""
        return self._notes.get((what, tensor.index))

    def forget_notes(self) -> None:
        """Forget what rules have noted."""
        self._notes.clear()

    def later(self, make: Callable[[], None]) -> Callable[[], None]:
        """`make` for a later operator: its nodes are named after the present one."""
        label = self._label

        def made() -> None:
            present, self._label = self._label, label
            make()
            self._label = present

        return made

    def made_by(self, tensor: TensorView) -> OperatorView[Any] | None:
        """The operator whose nodes make `tensor`."""
        return self._made_by.get(tensor.index)

    def layout(self, *tensors: TensorView, rows: bool = False) -> Layout:
        """The layout in which reading all `tensors` moves the least data; what the operator makes
        is moved too where it is a result of the graph.

        Args:
            rows: rows will do too, where all tensors have the same rows or are a constant row.
        """
        computed = [tensor for tensor in tensors if not tensor.is_constant]
        in_rows = [tensor for tensor in computed if self._is_in_rows(tensor)]
        if rows and (in_rows or self._all_have_rows(computed)) and rows_agree(tensors):
            return Layout.ROWS
        if in_rows:
            return Layout.LAST
        if any(t.rank < 3 and (t.dynamic or math.prod(t.shape) > 1) for t in computed):
            return Layout.LAST
        if any(map(is_complex, computed)):
            return Layout.LAST
        moved = dict.fromkeys((Layout.LAST, Layout.FIRST), 0)
        for tensor in computed:
            present = {layout for layout, _ in self._forms.get(tensor.index, {})}
            if tensor.index in self._results:
                present.add(Layout.LAST)
            for layout in moved.keys() - present:
                moved[layout] += known_product(tensor.shape)
        given = (tensor for tensor in self._made if tensor.index in self._results)
        moved[Layout.FIRST] += sum(known_product(tensor.shape) for tensor in given)
        if moved[Layout.FIRST] == moved[Layout.LAST]:
            # What follows is more likely to want channels-first.
            return Layout.FIRST if computed else Layout.LAST
        return min(moved, key=lambda layout: moved[layout])

    def _all_have_rows(self, tensors: Sequence[TensorView]) -> bool:
        """Whether rows of all `tensors` are there, so that it takes no node to read them."""
        others = [tensor for tensor in tensors if tensor.rank != 2]
        present = ({layout for layout, _ in self._forms.get(t.index, ())} for t in others)
        return bool(others) and all(Layout.ROWS in layouts for layouts in present)

    def _is_in_rows(self, tensor: TensorView) -> bool:
        """Whether `tensor` has its rows, and not yet its own shape."""
        layouts = {layout for layout, _ in self._forms.get(tensor.index, ())}
        return Layout.ROWS in layouts and Layout.LAST not in layouts


class Attempt:
    """What a graph had before the nodes of an operator, which it has again if the operator is
    untranslatable."""

    __slots__ = ("_before", "_graph")

    def __init__(self, g: NotedNodes) -> None:
        self._graph = g
        self._before = len(g.nodes), g._sizes.copy(), g._notes.copy()
        g._journal.clear()

    def __enter__(self) -> None:
        """The nodes follow."""

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        g = self._graph
        g._label, g._sized, g._made = "boundary", (), ()
        if kind is None or not issubclass(kind, Untranslatable):
            return
        nodes, g._sizes, g._notes = self._before
        del g.nodes[nodes:]
        for index, form, before in reversed(g._journal):
            g._forms[index].pop(form, None)
            if before is not None:
                g._forms[index][form] = before
