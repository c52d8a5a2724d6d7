"""The list of ONNX nodes under construction: nodes are appended and named, some with bodies.

Nodes that give sizes look for them in the forms of the present operator's inputs. Rules leave notes
on tensors here for the operators that come later.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import count, groupby
from typing import Any

import numpy as np
import numpy.typing as npt

from tflite_ort.opmap.graph.def_use import DefUse
from tflite_ort.opmap.graph.forms import Domain, Form, Layout, has_rows_alone
from tflite_ort.opmap.graph.rows import row_shape, rows_agree
from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.opmap.onnx_graph.constants import Constants
from tflite_ort.opmap.onnx_graph.opsets import OPSET, Inputs, spelled
from tflite_ort.schema import OperatorView, TensorView, Untranslatable
from tflite_ort.schema.values.complex_pairs import is_complex
from tflite_ort.schema.values.sizes import (
    is_known,
    known_product,
    may_differ,
    one_is_inferred,
)

_LARGEST = float(np.finfo(np.float32).max)  # that an attribute can be
Build = Callable[[Sequence[ir.Value]], Sequence[ir.Value]]


class Nodes:
    """Nodes in execution order, and the initializers that they use.

    Attributes:
        uses: what makes and reads the tensors of the operators that become nodes.
        sizes: by the `id` of the value of a tensor: the value, and its shape.
    """

    def __init__(self) -> None:
        self.nodes: list[ir.Node] = []
        self.constants = Constants()
        self.uses = DefUse((), ())
        self._names: set[str] = set()
        self._counts: dict[str, int] = {}
        self._label = "boundary"
        self._depth = 0  # how many bodies the nodes are in
        self.opset = OPSET
        self._forms: dict[int, dict[Form, ir.Value]] = {}
        # By tensor and form that was given a value, the value before.
        self._journal: list[tuple[int, Form, ir.Value | None]] = []
        self._sized: Sequence[TensorView] = ()  # the inputs of the present operator
        self._sizes: dict[int, ir.Value] = {}
        self._notes: dict[tuple[str, int], Any] = {}
        self._made_by: dict[int, OperatorView[Any]] = {}
        self._results: frozenset[int] = frozenset()
        self._made: Sequence[TensorView] = ()
        self._fresh = count(-(1 << 40), -1)
        self.sizes: dict[int, tuple[ir.Value, tuple[int, ...]]] = {}

    def op(
        self, op_type: str, *inputs: ir.Value | None, domain: str = "", **attributes: Any
    ) -> ir.Value:
        """Append a node with one output."""
        return self._append(op_type, inputs, 1, domain, attributes)[0]

    def op_multi(
        self,
        op_type: str,
        *inputs: ir.Value | None,
        outputs: int,
        domain: str = "",
        **attributes: Any,
    ) -> Sequence[ir.Value]:
        """Append a node with several outputs. Attributes that are None are left out. So are None
        inputs at the end: some providers would look for them."""
        return self._append(op_type, inputs, outputs, domain, attributes)

    def _append(
        self,
        op_type: str,
        inputs: Sequence[ir.Value | None],
        outputs: int,
        domain: str,
        attributes: Mapping[str, Any],
    ) -> Sequence[ir.Value]:
        count = len(inputs)
        while count and inputs[count - 1] is None:
            count -= 1
        name = self._unique(f"{self._label}/{op_type}")
        results = [ir.Value(self._unique(f"{name}_out{i or ''}")) for i in range(outputs)]
        given = {}
        for key, value in attributes.items():
            if value is None:
                continue
            given[key] = value
            if not is_known(*value) if isinstance(value, (list, tuple)) else not is_known(value):
                raise Untranslatable("a shape depends on data")
            if isinstance(value, float) and _LARGEST < abs(value) < np.inf:
                raise Untranslatable(f"{value} is beyond what an attribute can be")
        taken: Inputs = inputs[:count]
        if self.opset != OPSET and not domain:
            taken, given = spelled(self.opset, op_type, taken, given)
        node = ir.Node(op_type, taken, results, domain=domain, attributes=given, name=name)
        self.nodes.append(node)
        return node.outputs

    def larger(self, a: ir.Value, *others: ir.Value) -> ir.Value:
        """The largest of 64-bit integers, without Max: ONNX Runtime's is wrong beyond 32 bits."""
        for b in others:
            a = self.op("Where", self.op("Greater", a, b), a, b)
        return a

    def smaller(self, a: ir.Value, *others: ir.Value) -> ir.Value:
        """The smallest of 64-bit integers, without Min, as `larger`."""
        for b in others:
            a = self.op("Where", self.op("Less", a, b), a, b)
        return a

    def finite(self, value: ir.Value) -> ir.Value:
        """Floats clipped to the largest finite ones. TFLite's own kernels clip results even without
        a fused activation; XNNPACK does not."""
        largest = np.finfo(np.float32).max
        return self.op("Clip", value, self.constant(-largest), self.constant(largest))

    def body(self, arguments: Sequence[ir.DataType], build: Build) -> ir.Graph:
        """The body of a Scan, a Loop or an If: the nodes that `build` adds.

        Args:
            arguments: their types, one for each.
            build: takes the arguments and returns the results, which must be new values.
        """
        inputs = [
            ir.Value(self._unique(f"{self._label}/argument"), dtype=type) for type in arguments
        ]
        outer, self.nodes = self.nodes, []
        self._depth += 1
        try:
            results = build(inputs)
            return ir.Graph(inputs, results, self.nodes, name=f"{self._label}/body")
        finally:
            self.nodes = outer
            self._depth -= 1

    def constant(self, array: npt.ArrayLike, dtype: npt.DTypeLike | None = None) -> ir.Value:
        """An initializer; small equal ones are shared."""
        return self.constants.shared(np.asarray(array, dtype=dtype))

    def ints(self, numbers: npt.ArrayLike) -> ir.Value:
        """An int64 initializer, for sizes, axes and indices; small equal ones are shared."""
        return self.constant(numbers, np.int64)

    def cast(self, value: ir.Value, to: ir.DataType | np.dtype[Any]) -> ir.Value:
        """`value` in another type."""
        type_ = ir.DataType.from_numpy(to) if isinstance(to, np.dtype) else to
        return self.op("Cast", value, to=type_)

    def _unique(self, name: str) -> str:
        candidate, count = name, 0
        while candidate in self._names:
            count = self._counts[name] = self._counts.get(name, 0) + 1
            candidate = f"{name}_{count}"
        self._names.add(candidate)
        return candidate

    def _tell_shape(self, value: ir.Value, tensor: TensorView, layout: Layout) -> None:
        """Note the shape of a tensor in a layout for rules on nodes."""
        rows = layout is Layout.ROWS
        sizes = row_shape(tensor) if rows else layout.shape(tensor.shape)
        self.sizes[id(value)] = value, sizes
        if layout is Layout.FIRST:
            value.shape = sizes  # see `keep_blocks` and `make_symmetric`

    # Sizes ---------------------------------------------------------------------------------------

    def shape(self, sizes: Sequence[int]) -> ir.Value:
        """`sizes` as int64 [n]: a constant, the shape of an input, or a Concat of `size` values."""
        if is_known(*sizes):
            return self.ints(sizes)
        for tensor in self._sized:
            whole = self._forms.get(tensor.index, {}).get((Layout.LAST, Domain.REAL))
            if whole is not None and not may_differ(tensor.shape, sizes):
                return self.op("Shape", whole)
        parts: list[ir.Value] = []
        for run in (list(run) for _, run in groupby(sizes, is_known)):
            parts += [self.ints(run)] if is_known(*run) else map(self.size, run)
        return parts[0] if len(parts) == 1 else self.op("Concat", *parts, axis=0)

    def size(self, size: int) -> ir.Value:
        """`size` as int64 [1]: a constant, or a dimension of an input of the operator.

        Raises:
            Untranslatable: no input has it as a dimension.
        """
        if is_known(size):
            return self.ints([size])
        for tensor in self._sized:
            axis = next((i for i, n in enumerate(tensor.shape) if n is size), None)
            if axis is not None:
                if id(size) not in self._sizes:
                    self._sizes[id(size)] = self._dimension(tensor, axis)
                return self._sizes[id(size)]
        raise Untranslatable("a shape depends on data")

    def _dimension(self, tensor: TensorView, axis: int) -> ir.Value:
        values = {layout: value for (layout, _), value in self._forms[tensor.index].items()}
        if values.keys() == {Layout.ROWS}:
            values = {Layout.LAST: self.reshape(values[Layout.ROWS], tensor.shape)}
        layout = next(layout for layout in values if layout is not Layout.ROWS)
        value, place = values[layout], layout.axis(axis, tensor.rank)
        return self.op("Shape", value, start=place, end=place + 1)

    def reshape(self, value: ir.Value, shape: Sequence[int]) -> ir.Value:
        """Reshape; sizes of 0 are allowed, and one unknown size is inferred."""
        value = ir.before_reshapes(value)  # of two in a row the second is enough
        if value.shape is not None and is_known(*shape) and tuple(value.shape) == tuple(shape):
            return value
        if not one_is_inferred(shape) and (not is_known(*shape) or 0 in shape):
            return self.op("Reshape", value, self.shape(shape), allowzero=1)
        target = [size if is_known(size) else -1 for size in shape]
        return self.op("Reshape", value, self.ints(target))

    # Notes, and layouts --------------------------------------------------------------------------

    def fresh_index(self) -> int:
        """An index that no tensor of the file has, for one that a rule makes."""
        return next(self._fresh)

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
        """The last fact that `note` got; None if it got none."""
        return self._notes.get((what, tensor.index))

    def forget_notes(self) -> None:
        """Forget what rules have noted."""
        self._notes.clear()

    def later(self, make: Callable[[], None]) -> Callable[[], None]:
        """`make`, to be called during a later operator; its nodes are named after the present
        one."""
        label = self._label

        def made() -> None:
            present, self._label = self._label, label
            make()
            self._label = present

        return made

    def operator_of(self, tensor: TensorView) -> OperatorView[Any] | None:
        """The operator whose nodes make `tensor`, in a called subgraph too."""
        return self._made_by.get(tensor.index)

    def layout(self, *tensors: TensorView, rows: bool = False) -> Layout:
        """The layout in which reading all `tensors` moves the least data. The result of the present
        operator counts too, if it is a result of the graph.

        Args:
            rows: rows will do too, where all tensors have the same rows or are a constant row.
        """
        computed = [tensor for tensor in tensors if not tensor.is_constant]
        forms = (self._forms.get(tensor.index, ()) for tensor in computed)
        in_rows = any(map(has_rows_alone, forms))
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


class Attempt:
    """The state of a graph before an operator. The graph returns to it if the operator is
    untranslatable."""

    __slots__ = ("_before", "_graph")

    def __init__(self, g: Nodes) -> None:
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
