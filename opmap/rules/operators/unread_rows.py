"""Rows that nothing reads are not computed.

A classifier of tokens or patches makes its answer of one of them: what the last layer would make of
all others is cut away. The slice moves up from where the network has it to where all rows are
needed: the keys and values of the last attention, and the sum beside it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import count
from math import prod
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from tflite_ort.base.records import record, replace
from tflite_ort.opmap.graph import Domain, Graph, Layout
from tflite_ort.opmap.graph.costs import layer_costs
from tflite_ort.opmap.graph.rows import has_rows, row_shape
from tflite_ort.opmap.registry import Translator, translator
from tflite_ort.opmap.rules.operators.matching import Producers
from tflite_ort.opmap.rules.operators.needed_rows import Rows, View, has_rule, rows_cut, rows_needed
from tflite_ort.schema import Op, OperatorView, ReshapeOptions, TensorType, TensorView
from tflite_ort.versioning.registry import Registry

_RESHAPES = {Op.RESHAPE, Op.SQUEEZE, Op.EXPAND_DIMS}
# They compute nothing: rows are cut behind them, unless fewer rows reach them.
_MOVES = {*_RESHAPES, Op.TRANSPOSE, Op.SLICE}
_COSTS = layer_costs()


@record
class Cut:
    """Rows of a tensor as a tensor of their own."""

    source: TensorView
    rows: Rows
    result: TensorView

    def emit(self, g: Graph) -> None:
        """Add the node that cuts."""
        rows, layout = self.rows, Layout.LAST
        if has_rows(self.source) and g.layout(self.source, rows=True) is Layout.ROWS:
            found = rows.reshaped(self.source.shape, row_shape(self.source))
            rows, layout = (rows, layout) if found is None else (found, Layout.ROWS)
        domain = Domain.STORED if self.source.is_quantized else Domain.REAL
        value = g.read(self.source, layout=layout, domain=domain)
        taken = rows.taken
        bounds = (g.ints([each]) for each in (taken.start, taken.stop, rows.axis, taken.step))
        g.write(self.result, g.op("Slice", value, *bounds), layout=layout, domain=domain)


class Narrowed(NamedTuple):
    """Operators that compute what is read.

    Args:
        cuts: by the index of the first operator that reads them.
    """

    operators: Sequence[View]
    cuts: Mapping[int, Sequence[Cut]] = MappingProxyType({})


def without_unread_rows(producers: Producers, registry: Registry[Translator]) -> Narrowed:
    """The operators with fewer rows where that saves more than the slices take."""
    operators, ends = producers.operators, _ends(producers)
    if not ends:
        return Narrowed(operators)
    demand = _Demand(ends, registry)
    demand.read.update((tensor.index, None) for tensor in producers.results)
    for op in reversed(operators):
        demand.take(op)
    return _Narrowing(demand).narrowed(operators) if demand.parts else Narrowed(operators)


def _ends(producers: Producers) -> dict[int, Rows]:
    """By operator that cuts rows out of what nothing else reads, these rows."""
    cuts = {op.index: rows for op in producers.operators if (rows := rows_cut(op)) is not None}
    ends, narrow = dict[int, Rows](), dict[int, bool]()
    for op in producers.operators:
        rows, source = cuts.get(op.index), op.inputs[0] if op.index in cuts else None
        if source is None or rows is None:
            continue
        if source.index not in narrow:  # once, although many may cut the same tensor
            maker = producers.maker(source)
            read = {cuts.get(reader.index) for reader in producers.readers(source)}
            is_cut_alike = len(read) == 1 and not producers.is_result(source)
            narrow[source.index] = is_cut_alike and maker is not None and has_rule(maker)
        if narrow[source.index]:
            ends[op.index] = rows
    return ends


class _Demand:
    """What is read of each tensor, found from the last operator to the first.

    Attributes:
        read: by tensor, the rows that are read, None for all.
        parts: by operator that makes some rows, what it reads of each input.
        ends: by operator that cuts rows out, these.
    """

    def __init__(self, ends: Mapping[int, Rows], registry: Registry[Translator]) -> None:
        self.read: dict[int, Rows | None] = {}
        self.parts: dict[int, Sequence[Rows | None]] = {}
        self.ends, self._registry = ends, registry

    def take(self, op: View) -> None:
        """Note what `op` reads."""
        wanted = self.read.get(op.outputs[0].index) if len(op.outputs) == 1 else None
        own = wanted is not None or op.index in self.ends
        own = own and self._registry.shares(translator, op)
        rows = rows_needed(op, wanted) if own and wanted is not None else None
        if rows is not None:
            self.parts[op.index] = rows
        elif own and op.index in self.ends:
            rows = [self.ends[op.index]]
        for place, tensor in enumerate(op.inputs):
            if tensor is not None:
                self._note(tensor, None if rows is None or place >= len(rows) else rows[place])

    def _note(self, tensor: TensorView, rows: Rows | None) -> None:
        index = tensor.index
        self.read[index] = rows if self.read.get(index, rows) == rows else None


class _Narrowing:
    """Makes the operators that compute what is read."""

    def __init__(self, demand: _Demand) -> None:
        self._demand = demand
        self._made: dict[int, TensorView] = {}
        self._cuts: dict[tuple[int, Rows], TensorView] = {}
        self._placed: defaultdict[int, list[Cut]] = defaultdict(list)
        self._saved = 0.0

    def narrowed(self, operators: Sequence[View]) -> Narrowed:
        """The operators, as they are where fewer rows save too little."""
        tensors = (t for op in operators for t in (*op.present_inputs(), *op.outputs))
        self._fresh = count(1 + max(tensor.index for tensor in tensors))
        found = [self._operator(op) for op in operators]
        slices = sum(map(len, self._placed.values()))
        if self._saved < _COSTS.slice * (1 + slices):
            return Narrowed(operators)
        return Narrowed(found, self._placed)

    def _operator(self, op: View) -> View:
        rows = self._demand.parts.get(op.index)
        input = op.inputs[0] if op.inputs else None
        given = None if input is None else self._made.get(input.index)
        if rows is not None:
            moves_all = op.op in _MOVES and given is None
            return op if moves_all else self._with_rows(op, rows)
        if given is not None and op.index in self._demand.ends:
            return _reshape(op, given, op.output)
        return op

    def _with_rows(self, op: View, rows: Sequence[Rows | None]) -> View:
        wanted = self._demand.read[op.output.index]
        assert wanted is not None
        output = replace(op.output, shape=wanted.shape(op.output.shape))
        pairs = zip(op.inputs, rows, strict=True)
        inputs = tuple(t if t is None or r is None else self._part(t, r, op) for t, r in pairs)
        self._made[output.index] = output
        self._saved += (prod(op.output.shape) - prod(output.shape)) * _cost_of_element(op)
        if op.op in _RESHAPES:
            assert inputs[0] is not None
            return _reshape(op, inputs[0], output)
        if op.op is Op.SLICE:
            inputs = (*inputs[:2], _sizes(output))
        return replace(op, inputs=inputs, outputs=(output,))

    def _part(self, tensor: TensorView, rows: Rows, op: View) -> TensorView:
        """These rows of a tensor that `op` reads."""
        made = self._made.get(tensor.index) or self._cuts.get((tensor.index, rows))
        if made is None:
            made = replace(tensor, index=next(self._fresh), shape=rows.shape(tensor.shape))
            if tensor.data is not None:
                before = (slice(None),) * rows.axis
                made = replace(made, constant=tensor.data[(*before, rows.taken)])
            else:
                self._placed[op.index].append(Cut(tensor, rows, made))
            self._cuts[tensor.index, rows] = made
        return made


def _cost_of_element(op: View) -> float:
    """What an element of the result takes."""
    if op.op in _MOVES:
        return 0
    input = op.inputs[0]
    if input is None or op.op not in {Op.FULLY_CONNECTED, Op.BATCH_MATMUL}:
        return _COSTS.row_element
    return (
        _COSTS.float_product
        * input.shape[-2 if op.op is Op.BATCH_MATMUL and op.options.adj_x else -1]
    )


def _reshape(op: View, input: TensorView, output: TensorView) -> View:
    """`output` as another shape of `input`, in the place of `op`."""
    options: Any = ReshapeOptions()
    return OperatorView(Op.RESHAPE, 1, op.index, (input, _sizes(output)), (output,), options)


def _sizes(tensor: TensorView) -> TensorView:
    """The shape of a tensor as a constant."""
    sizes = np.array(tensor.shape, np.int32)
    return TensorView(-1, "sizes", TensorType.INT32, sizes.shape, constant=sizes)
