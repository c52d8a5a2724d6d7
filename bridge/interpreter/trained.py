"""The model of an interpreter with what its variables hold."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tflite_ort.base.records import replace
from tflite_ort.schema import CallOnceOptions, Model, ModelError, Op, VarHandleOptions
from tflite_ort.schema.file.model import Buffer, SubGraph

if TYPE_CHECKING:
    from tflite_ort.interpreter.interpreter import Interpreter

Array = npt.NDArray[Any]
Name = tuple[str, str]  # of the container and of the variable


def trained_model(interpreter: Interpreter) -> Model:
    """The model of an interpreter, whose variables begin with what they hold in it now.

    `export_onnx` exports it, and `tflite_ort.schema.write_model` writes it as a ``.tflite`` file.

    Raises:
        ModelError: a variable that the model has set is not among those that it gives a first
            value (CALL_ONCE).
        StateError: the interpreter is closed.
    """
    model = interpreter._model
    values = _values(interpreter)
    starts = {
        operator.options.init_subgraph_index
        for graph in model.subgraphs
        for operator in graph.operators
        if isinstance(operator.options, CallOnceOptions)
    }
    places = [
        (number, position, name)
        for number in starts
        for position, name in _assigned(model, model.subgraphs[number])
    ]
    missing = sorted(name for _, name in values.keys() - {name for *_, name in places})
    if missing:
        raise ModelError(
            f"the model gives variables {missing[:8]} no first value to put another in"
        )
    buffers, graphs = list(model.buffers), list(model.subgraphs)
    uses = Counter(tensor.buffer for graph in graphs for tensor in graph.tensors)
    for number, position, name in places:
        if name in values:
            graphs[number] = _with(graphs[number], position, values[name], buffers, uses)
    return replace(model, subgraphs=tuple(graphs), buffers=tuple(buffers))


def _values(interpreter: Interpreter) -> Mapping[Name, Array]:
    """What the variables hold that have a name."""
    found = {}
    for key, variable in interpreter._shared.state.variables.items():
        value = variable.value
        container, name = key
        if isinstance(container, str) and isinstance(name, str) and value is not None:
            if value.dtype.hasobject:
                raise ModelError(f"variable {name!r} holds texts")
            found[container, name] = value
    return found


def _assigned(model: Model, graph: SubGraph) -> Iterator[tuple[int, Name]]:
    """The operators that assign a variable, and which."""
    names: dict[int, Name] = {}
    for position, operator in enumerate(graph.operators):
        code, options = model.operator_codes[operator.opcode_index].builtin_code, operator.options
        if isinstance(options, VarHandleOptions):
            name = options.container or "", options.shared_name or ""
            names |= dict.fromkeys(operator.outputs, name)
        elif code is Op.ASSIGN_VARIABLE and len(operator.inputs) == 2:
            handle, value = operator.inputs
            if handle in names and value is not None:
                yield position, names[handle]


def _with(
    graph: SubGraph, position: int, value: Array, buffers: list[Buffer], uses: Counter[int]
) -> SubGraph:
    """`graph` with another value that one of its operators assigns. The old one is dropped where
    nothing else has it."""
    operators, tensors = list(graph.operators), list(graph.tensors)
    operator = operators[position]
    handle, old = operator.inputs
    assert old is not None
    content = Buffer(data=np.frombuffer(np.ascontiguousarray(value).tobytes(), np.uint8))
    others = [index for each in operators for index in (*each.inputs, *each.outputs)]
    alone, buffer = others.count(old) == 1, tensors[old].buffer
    if alone and buffer and uses[buffer] == 1:
        buffers[buffer] = content
    else:
        buffers.append(content)
        buffer = len(buffers) - 1
    tensor = replace(
        tensors[old],
        shape=value.shape,
        shape_signature=None,
        buffer=buffer,
        has_rank=True,
        sparsity=None,
        external_buffer=0,
    )
    if alone:
        tensors[old] = tensor
    else:
        tensors.append(tensor)
        operators[position] = replace(operator, inputs=(handle, len(tensors) - 1))
    return replace(graph, operators=tuple(operators), tensors=tuple(tensors))
