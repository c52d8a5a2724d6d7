"""Files put right: what may make LiteRT and the library differ is taken out of a model.

Each repair takes one suspected cause away and leaves the rest. It returns the model itself where
the file has no such cause.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass, replace
from math import prod
from typing import Any

import numpy as np

from tests.fuzz.tree import (
    Array,
    data_of,
    set_at,
    values_of,
    with_data,
    with_graph,
    with_operator,
    with_tensor,
)
from tflite_ort.schema import (
    ActivationFunctionType,
    BridgeError,
    BuiltinOperator,
    Model,
    Operator,
    OperatorCode,
    RandomOptions,
    SoftmaxOptions,
    StridedSliceOptions,
    Tensor,
    TensorType,
    WhileOptions,
)
from tflite_ort.schema.values.semantics import densify

Repair = Callable[[Model], Model]

# What is left of values and of 32-bit sums that overflow nothing.
_LEAST, _BOUND, _SUM = 1e-3, 4.0, 1 << 12
BIASES = (TensorType.INT32, TensorType.INT64)


def each_tensor(model: Model) -> Iterator[tuple[int, int, Tensor]]:
    for graph, subgraph in enumerate(model.subgraphs):
        for number, tensor in enumerate(subgraph.tensors):
            yield graph, number, tensor


def each_operator(model: Model) -> Iterator[tuple[int, int, Operator, str]]:
    for graph, subgraph in enumerate(model.subgraphs):
        for number, op in enumerate(subgraph.operators):
            yield graph, number, op, name_of(model, op)


def name_of(model: Model, op: Operator) -> str:
    """The name of an operator; "?" where its code is none."""
    if not 0 <= op.opcode_index < len(model.operator_codes):
        return "?"
    code = model.operator_codes[op.opcode_index]
    custom = code.builtin_code is BuiltinOperator.CUSTOM
    return (code.custom_code or "CUSTOM") if custom else code.builtin_code.name


# Values --------------------------------------------------------------------------------------


def _with_values(model: Model, change: Callable[[Tensor, Array], Array | None]) -> Model:
    for graph, number, tensor in each_tensor(model):
        values = values_of(model, tensor)
        changed = None if values is None else change(tensor, values)
        if values is not None and changed is not None and changed.tobytes() != values.tobytes():
            model = with_data(model, graph, number, changed.astype(values.dtype).tobytes())
    return model


def _with_options(model: Model, change: Callable[[float], float]) -> Model:
    """The options that are floats, changed."""
    for graph, number, op, _ in each_operator(model):
        if not is_dataclass(op.options):
            continue
        old = {each.name: getattr(op.options, each.name) for each in fields(op.options)}
        new: dict[str, Any] = {k: change(v) for k, v in old.items() if isinstance(v, float)}
        if any(v != old[k] for k, v in new.items()):
            options = replace(op.options, **new)
            model = with_operator(model, graph, number, options=options)
    return model


def _real(values: Array) -> Array | None:
    """Floats, complex numbers as pairs; None of other types."""
    if values.dtype.kind == "c":
        return values.view(values.real.dtype)
    return values if values.dtype.kind == "f" or values.dtype.name == "bfloat16" else None


def finite(model: Model) -> Model:
    """No NaN and no infinity."""

    def change(tensor: Tensor, values: Array) -> Array | None:
        real = _real(values)
        if real is None:
            return None
        return np.where(np.isfinite(real), real, real.dtype.type(1)).view(values.dtype)

    return _with_options(_with_values(model, change), lambda x: x if np.isfinite(x) else 1.0)


def bounded(model: Model) -> Model:
    """Floats of a usual size: none overflows, vanishes or hides others in a sum of products."""

    def change(tensor: Tensor, values: Array) -> Array | None:
        real = _real(values)
        if real is None:
            return None
        size = np.abs(real.astype(np.float64))
        usual = 1 + np.arange(size.size) % 8 / 4  # not one number in the place of all
        size = np.maximum(np.where(size > _BOUND, usual.reshape(size.shape), size), _LEAST)
        signed = np.where(np.signbit(real.astype(np.float64)), -size, size)
        return np.asarray(signed.astype(real.dtype)).view(values.dtype)

    return finite(_with_values(finite(model), change))


def usual_options(model: Model) -> Model:
    """Slopes, exponents and the like of a usual size; a beta of SOFTMAX above 0."""
    model = _with_options(finite(model), lambda x: float(np.clip(x, -_BOUND, _BOUND)))
    for graph, number, op, _ in each_operator(model):
        if isinstance(op.options, SoftmaxOptions) and op.options.beta < 0:
            options = replace(op.options, beta=-op.options.beta)
            model = with_operator(model, graph, number, options=options)
    return model


def nudged(model: Model) -> Model:
    """Each constant next to what it was, in float32."""

    def change(tensor: Tensor, values: Array) -> Array | None:
        with np.errstate(all="ignore"):
            return values * np.float32(1 + 2**-22) if values.dtype == np.float32 else None

    return _with_values(model, change)


def small_sums(model: Model) -> Model:
    """Biases that no sum of 32 bits overflows with."""

    def change(tensor: Tensor, values: Array) -> Array | None:
        return np.clip(values, -_SUM, _SUM) if tensor.type in BIASES else None

    return _with_values(model, change)


def no_lowest(model: Model) -> Model:
    """No constant of int8 is -128, which has no opposite."""

    def change(tensor: Tensor, values: Array) -> Array | None:
        return np.maximum(values, -127) if tensor.type is TensorType.INT8 else None

    return _with_values(model, change)


def small_counts(model: Model) -> Model:
    """Shifts by 1 and 3."""
    for graph, _, op, name in each_operator(model):
        for index in op.inputs[1:] if "SHIFT" in name else ():
            tensors = model.subgraphs[graph].tensors
            values = (
                values_of(model, tensors[index])
                if index is not None and 0 <= index < len(tensors)
                else None
            )
            if values is not None and values.dtype.kind in "iu":
                few = values & values.dtype.type(3) | values.dtype.type(1)
                model = with_data(model, graph, index, few.tobytes())
    return model


def dense(model: Model) -> Model:
    """No compressed constant."""
    for graph, number, tensor in each_tensor(model):
        values = None if tensor.sparsity is None else values_of(model, tensor)
        if values is None or tensor.sparsity is None:
            continue
        try:
            data = densify(values, tensor.shape, tensor.sparsity).tobytes()
        except BridgeError:
            continue
        model = with_data(model, graph, number, data, sparsity=None)
    return model


def free_inputs(model: Model) -> Model:
    """No input of a called subgraph is a constant."""
    for graph in range(1, len(model.subgraphs)):
        tensors = model.subgraphs[graph].tensors
        for number in model.subgraphs[graph].inputs:
            if 0 <= number < len(tensors) and data_of(model, tensors[number]) is not None:
                model = with_tensor(model, graph, number, buffer=0)
    return model


# Texts, seeds, shapes ------------------------------------------------------------------------


def strings_in_rows(model: Model) -> Model:
    """Strings without dimensions get one."""
    for graph, number, tensor in each_tensor(model):
        if tensor.type is TensorType.STRING and not tensor.shape:
            model = with_tensor(model, graph, number, shape=(1,))
    return model


def exchanged(model: Model) -> Model:
    """Bodies of WHILE that do not hand on one value in the place of another: it passes two
    operators that leave it as it is."""
    for _, _, op, name in each_operator(model):
        if name != "WHILE" or not isinstance(op.options, WhileOptions):
            continue
        number = op.options.body_subgraph_index
        if not 0 <= number < len(model.subgraphs):
            continue
        inputs, outputs = model.subgraphs[number].inputs, model.subgraphs[number].outputs
        for place, index in enumerate(outputs):
            if index in inputs and inputs[place : place + 1] != (index,):
                model = _through_two(model, number, place)
    return model


_TWICE_NOTHING = {
    TensorType.BOOL: BuiltinOperator.LOGICAL_NOT,
    TensorType.UINT8: BuiltinOperator.CAST,
    TensorType.UINT16: BuiltinOperator.CAST,
    TensorType.UINT32: BuiltinOperator.CAST,
}


def _through_two(model: Model, number: int, place: int) -> Model:
    graph = model.subgraphs[number]
    count, tensor = len(graph.tensors), graph.tensors[graph.outputs[place]]
    copy = replace(tensor, buffer=0, is_variable=False)
    code = _TWICE_NOTHING.get(tensor.type, BuiltinOperator.NEG)
    codes = (*model.operator_codes, OperatorCode(builtin_code=code, version=1))
    steps = [(graph.outputs[place], count), (count, count + 1)]
    added = [Operator(opcode_index=len(codes) - 1, inputs=(a,), outputs=(b,)) for a, b in steps]
    outputs = set_at(graph.outputs, place, count + 1)
    tensors, operators = (*graph.tensors, copy, copy), (*graph.operators, *added)
    model = replace(model, operator_codes=codes)
    return with_graph(model, number, tensors=tensors, operators=operators, outputs=outputs)


def without_unread(model: Model) -> Model:
    """Main graphs without operators whose results nobody reads; those without results stay."""
    graph = model.subgraphs[0]
    kept = graph.operators
    while True:
        read = {index for op in kept for index in op.inputs} | set(graph.outputs)
        left = tuple(op for op in kept if not op.outputs or read & set(op.outputs))
        if len(left) == len(kept):
            break
        kept = left
    return model if kept is graph.operators else with_graph(model, 0, operators=kept)


def plain_slices(model: Model) -> Model:
    """STRIDED_SLICE without ellipsis, new axes and `offset`."""
    for graph, number, op, _ in each_operator(model):
        if isinstance(op.options, StridedSliceOptions):
            options = replace(
                op.options, ellipsis_mask=0, new_axis_mask=0, shrink_axis_mask=0, offset=False
            )
            if options != op.options:
                model = with_operator(model, graph, number, options=options)
    return model


def usual_activations(model: Model) -> Model:
    """No fused activation that XNNPACK and most kernels have none of."""
    rare = (ActivationFunctionType.TANH, ActivationFunctionType.SIGN_BIT)
    for graph, number, op, name in each_operator(model):
        fused = getattr(op.options, "fused_activation_function", None)
        steps = ("LSTM", "RNN", "SVDF", "FULLY_CONNECTED")  # which have them, or refuse them
        if fused in rare and not any(each in name for each in steps):
            assert op.options is not None
            changes: dict[str, Any] = {"fused_activation_function": ActivationFunctionType.NONE}
            model = with_operator(model, graph, number, options=replace(op.options, **changes))
    return model


def longer_transforms(model: Model) -> Model:
    """RFFT2D of two numbers in the place of one, or of as many as it is fed."""
    for graph, _, op, name in each_operator(model):
        subgraph = model.subgraphs[graph]
        if name != "RFFT2D" or len(op.inputs) != 2 or op.inputs[1] is None:
            continue
        index = op.inputs[1]
        values = (
            values_of(model, subgraph.tensors[index]) if index < len(subgraph.tensors) else None
        )
        if index in subgraph.inputs:
            rows = np.array([1, 2], np.int32)
            model = with_data(model, graph, index, rows.tobytes())
            model = with_tensor(model, graph, index, is_variable=False)
            left = tuple(each for each in subgraph.inputs if each != index)
            model = replace(with_graph(model, graph, inputs=left), signature_defs=())
        elif values is not None and values.dtype == np.int32 and values[-1] == 1:
            values[-1] = 2
            model = with_data(model, graph, index, values.tobytes())
    return model


def fitting(model: Model) -> Model:
    """Constants have as many bytes as their shapes say, not more."""
    for graph, number, tensor in each_tensor(model):
        values = None if tensor.sparsity is not None else values_of(model, tensor)
        count = prod(tensor.shape) if min(tensor.shape, default=0) >= 0 else 0
        if values is not None and 0 < count < values.size:
            model = with_data(model, graph, number, values[:count].tobytes())
    return model


def products_over_axes(model: Model) -> Model:
    """Products over no axis have the scale of what they are made of."""
    for graph, _, op, name in each_operator(model):
        tensors = model.subgraphs[graph].tensors
        known = [i for i in (*op.inputs, *op.outputs) if i is not None and 0 <= i < len(tensors)]
        if name == "REDUCE_PROD" and len(known) == 3 and 0 in tensors[known[1]].shape:
            scale = tensors[known[0]].quantization
            if tensors[known[2]].quantization is not scale:
                model = with_tensor(model, graph, known[2], quantization=scale)
    return model


def no_variable_results(model: Model) -> Model:
    """Results of operators are no variables."""
    for graph, _, op, _ in each_operator(model):
        for index in op.outputs:
            tensors = model.subgraphs[graph].tensors
            if 0 <= index < len(tensors) and tensors[index].is_variable:
                model = with_tensor(model, graph, index, is_variable=False)
    return model


def seeded(model: Model) -> Model:
    """Random numbers that are the same at every run."""
    for graph, number, op, _ in each_operator(model):
        if isinstance(op.options, RandomOptions) and not (op.options.seed or op.options.seed2):
            options = replace(op.options, seed=1, seed2=2)
            model = with_operator(model, graph, number, options=options)
    return model


def own_generators(model: Model) -> Model:
    """Each loop whose body makes random numbers has a body of its own."""
    taken = set()
    for graph, number, op, _ in each_operator(model):
        options = op.options
        if not isinstance(options, WhileOptions):
            continue
        index, bodies = options.body_subgraph_index, model.subgraphs
        draws = 0 <= index < len(bodies) and any(
            isinstance(each.options, RandomOptions) for each in bodies[index].operators
        )
        if draws and index in taken:
            model = replace(model, subgraphs=(*bodies, bodies[index]))
            own = replace(options, body_subgraph_index=len(bodies))
            model = with_operator(model, graph, number, options=own)
        taken.add(index)
    return model


def undeclared(model: Model) -> Model:
    """Results whose shapes the file does not say."""
    for graph, _, op, name in each_operator(model):
        if name == "READ_VARIABLE":
            for index in op.outputs:
                if 0 <= index < len(model.subgraphs[graph].tensors):
                    model = with_tensor(model, graph, index, shape=(), has_rank=False)
    return model
