"""The state of an exported model: inputs and outputs of the graph, or a start from the same value.

A variable called ``h`` is the input ``h`` and, where the model sets it, the output ``h_next``: who
runs the model feeds one run's ``h_next`` to the next one's ``h``. The variable's first value is an
initializer of the same name here; `exported_state.take_first_values` moves it to the metadata.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from tflite_ort.custom.kernels import BoundResolver
from tflite_ort.export.signature_state import SharedState
from tflite_ort.opmap import Lowered, Target, Translator, lower
from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.plan.build import make_plan
from tflite_ort.plan.context import PlanContext
from tflite_ort.plan.partition import only_sets
from tflite_ort.providers.exported_state import PAIRS
from tflite_ort.schema import (
    ExportError,
    Op,
    OperatorView,
    Specialized,
    TensorView,
    Untranslatable,
)
from tflite_ort.schema.values.sizes import (
    cancelled,
    is_known,
    is_one,
    known_product,
    unknown_size,
)
from tflite_ort.schema.values.view import VariableKey
from tflite_ort.versioning.registry import Registry

Array = npt.NDArray[Any]

_SEQUENCES = frozenset(
    {
        *(Op.UNIDIRECTIONAL_SEQUENCE_LSTM, Op.BIDIRECTIONAL_SEQUENCE_LSTM),
        *(Op.UNIDIRECTIONAL_SEQUENCE_RNN, Op.BIDIRECTIONAL_SEQUENCE_RNN),
    }
)
_STEPS_OF_CELLS = frozenset({Op.LSTM, Op.RNN})
# The inputs of cells that are states, and what they are called.
_STATES = {"output_state": "h", "hidden_state": "h", "cell_state": "c"}
# The names that converters give to constants, which states begin with.
_CONSTANT = re.compile(r"(arith\.constant|tfl\.pseudo_q?const|[cC]onst|cst)\d*")


def first_values(graph: Specialized, resolver: BoundResolver) -> dict[int, Array]:
    """The value of each variable before the first run, by its tensor.

    What CALL_ONCE runs is run for it. A variable that nothing gives a value has none.

    Raises:
        ExportError: it cannot be run.
    """
    context = PlanContext((), resolver)
    variables = {
        index: context.state.variable(key, graph.tensors[index])
        for index, key in graph.variables.items()
    }
    for op in graph.operators:
        if op.op is Op.CALL_ONCE:
            try:
                plan = make_plan(op.bodies[0], context)
            except Untranslatable as error:
                raise ExportError(
                    f"{op.label} sets the first values of the state, which the export computes. "
                    f"{error}\nGive it a resolver that has kernels of them."
                ) from error
            plan.run()
    values = {index: variable.value for index, variable in variables.items()}
    return {index: value for index, value in values.items() if value is not None}


def layers_with_state(graph: Specialized) -> list[str]:
    """The layers over whole sequences that `graph` has, if nothing else keeps a state in it. Such a
    model is meant to start each sequence anew; a layer of one step goes on with its stream."""
    users = [
        op
        for op in _left(graph)
        if any(t.index in graph.variables for t in (*op.present_inputs(), *op.variables()))
    ]
    sequences = all(op.op in _SEQUENCES and not is_one(_steps(op)) for op in users)
    return [op.label for op in users] if sequences else []


def _steps(op: OperatorView[Any]) -> int:
    """How many steps a sequence has."""
    shape = op["input"].shape
    return shape[0 if op.options.time_major else 1] if len(shape) > 2 else 1


def lower_with_state(
    graph: Specialized,
    first: Mapping[int, Array],
    translators: Registry[Translator],
    target: Target,
    name: str,
    *,
    shared: SharedState | None,
) -> Lowered:
    """The whole of `graph` as one ONNX model, its variables made explicit.

    Args:
        shared: what other signatures do with the variables; None: each run starts from the first
            values, and the variables are no inputs and outputs.

    Raises:
        ExportError: not `shared`, and a variable without a first value is read.
    """
    operators, stateful = _left(graph), shared is not None
    if shared is None or not (shared.names or shared.unsure):  # no other signature reads it
        operators = _without_idle_state(graph, operators)
    if not stateful:
        operators = _with_constants(graph, operators, first)
    read, written = _used(graph, operators, {} if shared is None else shared.names)
    state = {tensor.index for tensor in (*read, *written)} if stateful else ()
    given = [graph.tensors[index] for index in graph.inputs if index not in state]
    results = [graph.tensors[index] for index in graph.outputs if index not in state]
    lowered = lower(
        operators,
        [*given, *read],
        [*results, *(written if stateful else ())],
        translators,
        target=target,
        name=name,
    )
    onnx = lowered.model.graph
    inputs, outputs = onnx.inputs[len(given) :], onnx.outputs[len(results) :]
    before: dict[int, str] = {}
    after = {tensor.index: value.name for tensor, value in zip(written, outputs, strict=False)}
    for value, tensor in zip(inputs, read, strict=True):
        key = graph.variables[tensor.index]
        if isinstance(key[0], int):
            start_in_rows(onnx, value, tensor, given)
        has_value = _give_first_value(onnx, value, tensor, first.get(tensor.index))
        if not (stateful or has_value):
            raise ExportError(f"variable {tensor.name!r} is read and has no first value")
        is_set = shared is not None and (tensor.index in after or shared.is_set(key))
        if has_value and not is_set:
            onnx.inputs.remove(value)
            continue
        before[tensor.index] = value.name
        if tensor.index not in after and value.shape and value.shape[0] == 1:
            _open_rows(value, given)
    if before or after:
        pairs = [[before.get(index), after.get(index)] for index in {**before, **after}]
        lowered.model.metadata_props[PAIRS] = json.dumps(pairs)
    return lowered


def _with_constants(
    graph: Specialized, operators: Sequence[OperatorView[Any]], first: Mapping[int, Array]
) -> list[OperatorView[Any]]:
    """`operators`, where a variable that one sequence alone has is its first value."""
    users = Counter(
        index
        for op in operators
        for index in {tensor.index for tensor in op.present_inputs()} & graph.variables.keys()
    )

    def fixed(tensor: TensorView | None) -> TensorView | None:
        value = None if tensor is None else first.get(tensor.index)
        if tensor is None or value is None or users[tensor.index] != 1:
            return tensor
        if not is_known(*tensor.shape) or value.shape != tuple(tensor.shape):
            return tensor
        return replace(tensor, constant=value, is_variable=False)

    return [
        replace(op, inputs=tuple(map(fixed, op.inputs))) if op.op in _SEQUENCES else op
        for op in operators
    ]


def _open_rows(value: ir.Value, given: Sequence[TensorView]) -> None:
    """Let a variable that other signatures set have a row for each sample of an open batch."""
    if not all(is_known(*tensor.shape) for tensor in given):
        value.shape = (f"{value.name}_rows", *(value.shape or ())[1:])


def _left(graph: Specialized) -> list[OperatorView[Any]]:
    """The operators without those of the start: what runs once, and imports into tables that
    are constants for all that use them."""
    operators = [op for op in graph.operators if op.op is not Op.CALL_ONCE]
    others = (op for op in operators if op.op is not Op.HASHTABLE_IMPORT)
    needed = {tensor.index for op in others for tensor in op.present_inputs()}
    return [
        op
        for op in operators
        if op.op is not Op.HASHTABLE_IMPORT or op.variables()[0].index in needed
    ]


def _without_idle_state(
    graph: Specialized, operators: list[OperatorView[Any]]
) -> list[OperatorView[Any]]:
    """`operators` without those that read and set a variable for itself alone, such as the seed of
    a dropout that does nothing here: no output depends on it."""
    read, written = set[int](), set[int]()
    for op in operators:
        written.update(tensor.index for tensor in op.variables())
        read.update(t.index for t in op.present_inputs() if not only_sets(op, t))
    live = graph.variables.keys() - (read & written)
    while True:
        wanted, kept = set(graph.outputs), list[OperatorView[Any]]()
        for op in reversed(operators):
            made = {tensor.index for tensor in op.outputs}
            changed = {tensor.index for tensor in op.variables()}
            if made & wanted or changed & live or not (made or changed):
                kept.append(op)
                wanted.update(tensor.index for tensor in op.present_inputs())
        found = wanted & graph.variables.keys()
        if found <= live:
            break
        live |= found
    return kept[::-1] if graph.variables.keys() - live else operators


def _used(
    graph: Specialized, operators: Sequence[OperatorView[Any]], names: Mapping[VariableKey, str]
) -> tuple[list[TensorView], list[TensorView]]:
    """The variables that are read before they are set, and those that are set."""
    read: dict[int, TensorView] = {}
    written: dict[int, TensorView] = {}

    cells = _cell_names(operators)

    def named(tensor: TensorView) -> TensorView:
        own = cells.get(tensor.index) or tensor.name or f"state_{tensor.index}"
        return replace(tensor, name=names.get(graph.variables[tensor.index], own))

    for op in operators:
        for tensor in op.present_inputs():
            known = tensor.index in read or tensor.index in written or tensor.is_constant
            if tensor.index in graph.variables and not known and not only_sets(op, tensor):
                read[tensor.index] = named(tensor)
        written.update((tensor.index, _resized(named(tensor))) for tensor in op.variables())
    return list(read.values()), list(written.values())


def _cell_names(operators: Sequence[OperatorView[Any]]) -> dict[int, str]:
    """By tensor, what a state of a cell is called that has the name of a converter's constant: the
    kind of the layer, its number, and what the state is, such as ``lstm_1/h``."""
    found, counts = dict[int, str](), Counter[str]()
    for op in operators:
        kind = "lstm" if "LSTM" in op.name else "rnn"
        states = [
            (name, tensor)
            for name, tensor in zip(op.names, op.inputs, strict=False)
            if tensor is not None and name.endswith(tuple(_STATES)) and "_to_" not in name
        ]
        if op.op not in _SEQUENCES | _STEPS_OF_CELLS or not states:
            continue
        layer = f"{kind}_{counts[kind]}" if counts[kind] else kind
        counts[kind] += 1
        for name, tensor in states:
            side = {"fw_": "/forward", "bw_": "/backward"}.get(name[:3], "")
            if _CONSTANT.fullmatch(tensor.name):
                what = next(short for end, short in _STATES.items() if name.endswith(end))
                found[tensor.index] = f"{layer}{side}/{what}"
    return found


def _resized(tensor: TensorView) -> TensorView:
    """`tensor` after the run: a size that is unknown may be another one then."""
    sizes = (size if is_known(size) else unknown_size() for size in tensor.shape)
    return replace(tensor, shape=tuple(sizes))


def start_in_rows(
    graph: ir.Graph, value: ir.Value, tensor: TensorView, given: Sequence[TensorView]
) -> None:
    """Let the variable `value` of an open batch take one row for all samples too, as its first
    value is: it is expanded to the batch of an input before it is used."""
    if is_known(*tensor.shape):
        return
    batch, _ = cancelled(tensor.shape[:1], ())
    places = (
        (source, axis)
        for source, each in zip(graph.inputs, given, strict=False)
        for axis, size in enumerate(each.shape)
        if any(size is each for each in batch)
    )
    source, axis = next(places, (None, 0))
    if source is None:  # no batch: the size is that of earlier runs
        return
    if not is_known(*tensor.shape[1:]):
        raise ExportError(f"variable {tensor.name!r}: its size depends on data")
    readers = [(node, position) for read, node, position in graph.reads() if read is value]
    whole = ir.Value(f"{value.name}/rows", dtype=value.dtype, shape=value.shape)
    count = ir.Value(f"{value.name}/count", dtype=ir.DataType.INT64, shape=(1,))
    sizes = ir.Value(f"{value.name}/sizes", dtype=ir.DataType.INT64, shape=(tensor.rank,))
    rest = ir.Value(
        f"{value.name}/rest", const_value=ir.Tensor(np.array(tensor.shape[1:], np.int64))
    )
    graph.initializers[rest.name] = rest
    graph.nodes[:0] = [
        *_rows_of(source, axis, known_product(tensor.shape[:1]), count, graph),
        ir.Node("Concat", [count, rest], [sizes], attributes={"axis": 0}),
        ir.Node("Expand", [value, sizes], [whole]),
    ]
    for node, position in readers:
        inputs = list(node.inputs)
        inputs[position] = whole
        node.inputs = tuple(inputs)
    value.shape = (f"{value.name}_rows", *(value.shape or ())[1:])


def _rows_of(
    source: ir.Value, axis: int, of_each: int, count: ir.Value, graph: ir.Graph
) -> list[ir.Node]:
    """Nodes that make `count`: `of_each` rows for each sample along `axis` of `source`."""
    attributes = {"start": axis, "end": axis + 1}
    if of_each == 1:
        return [ir.Node("Shape", [source], [count], attributes=attributes)]
    samples = ir.Value(f"{count.name}/samples", dtype=count.dtype, shape=(1,))
    factor = ir.Value(f"{count.name}/of_each", const_value=ir.Tensor(np.array([of_each], np.int64)))
    graph.initializers[factor.name] = factor
    return [
        ir.Node("Shape", [source], [samples], attributes=attributes),
        ir.Node("Mul", [samples, factor], [count]),
    ]


def _give_first_value(
    graph: ir.Graph, value: ir.Value, tensor: TensorView, first: Array | None
) -> bool:
    """Whether it has one."""
    if first is None and any(is_known(size) and size == 0 for size in tensor.shape):
        sizes = (size if is_known(size) else 0 for size in tensor.shape)
        first = np.zeros(tuple(sizes), tensor.dtype)
    if first is not None:
        value.const_value = ir.Tensor(np.asarray(first, order="C"))
        graph.initializers[value.name] = value
    return first is not None
