"""Files put right: what may make LiteRT and the library differ is taken out of a model.

Each repair takes one suspected cause away and leaves the rest. It returns the model itself where
the file has no such cause.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass, replace
from functools import reduce
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
    QuantizationParameters,
    RandomOptions,
    StridedSliceOptions,
    Tensor,
    TensorType,
    WhileOptions,
)
from tflite_ort.schema.file.element_types import NUMPY_DTYPE, PACKED_BITS
from tflite_ort.schema.values.semantics import unpack
from tflite_ort.schema.values.sparsity import densify

Repair = Callable[[Model], Model]

# What is left of values and of 32-bit sums that overflow nothing.
_LEAST, _BOUND, _SUM = 1e-3, 4.0, 1 << 12
# Scales that differ by no more than a factor of 16; those of 16-bit codes are smaller.
_SCALES = (2.0**-8, 2.0**-4)
_SCALES_16 = (2.0**-15, 2.0**-11)
_CELL_STATE = 2.0**-11
_BIASES = (TensorType.INT32, TensorType.INT64)
_CODES = (TensorType.INT8, TensorType.UINT8, TensorType.INT16, TensorType.INT4, TensorType.INT2)
_WEIGHTS = (TensorType.INT8, TensorType.UINT8, TensorType.INT4, TensorType.INT2)
_STEPS = ("LSTM", "RNN", "SVDF", "CONV", "FULLY_CONNECTED", "BATCH_MATMUL", "EMBEDDING")


def _tensors(model: Model) -> Iterator[tuple[int, int, Tensor]]:
    for graph, subgraph in enumerate(model.subgraphs):
        for number, tensor in enumerate(subgraph.tensors):
            yield graph, number, tensor


def _operators(model: Model) -> Iterator[tuple[int, int, Operator, str]]:
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


def together(*repairs: Repair) -> Repair:
    """All of them, one after another."""
    return lambda model: reduce(lambda made, repair: repair(made), repairs, model)


# Values --------------------------------------------------------------------------------------


def _with_values(model: Model, change: Callable[[Tensor, Array], Array | None]) -> Model:
    for graph, number, tensor in _tensors(model):
        values = values_of(model, tensor)
        changed = None if values is None else change(tensor, values)
        if values is not None and changed is not None and changed.tobytes() != values.tobytes():
            model = with_data(model, graph, number, changed.astype(values.dtype).tobytes())
    return model


def _with_options(model: Model, change: Callable[[float], float]) -> Model:
    """The options that are floats, changed."""
    for graph, number, op, _ in _operators(model):
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
        size = np.clip(np.abs(real.astype(np.float64)), _LEAST, _BOUND)
        signed = np.where(np.signbit(real.astype(np.float64)), -size, size)
        return np.asarray(signed.astype(real.dtype)).view(values.dtype)

    return finite(_with_values(finite(model), change))


def usual_options(model: Model) -> Model:
    """Slopes, exponents and the like of a usual size."""
    return _with_options(finite(model), lambda x: float(np.clip(x, -_BOUND, _BOUND)))


def nudged(model: Model) -> Model:
    """Each constant next to what it was, in float32."""

    def change(tensor: Tensor, values: Array) -> Array | None:
        with np.errstate(all="ignore"):
            return values * np.float32(1 + 2**-22) if values.dtype == np.float32 else None

    return _with_values(model, change)


def small_sums(model: Model) -> Model:
    """Biases that no sum of 32 bits overflows with."""

    def change(tensor: Tensor, values: Array) -> Array | None:
        return np.clip(values, -_SUM, _SUM) if tensor.type in _BIASES else None

    return _with_values(model, change)


def no_lowest(model: Model) -> Model:
    """No constant of int8 is -128, which has no opposite."""

    def change(tensor: Tensor, values: Array) -> Array | None:
        return np.maximum(values, -127) if tensor.type is TensorType.INT8 else None

    return _with_values(model, change)


def small_counts(model: Model) -> Model:
    """Integers of a few bits."""

    def change(tensor: Tensor, values: Array) -> Array | None:
        return values & values.dtype.type(3) if values.dtype.kind in "iu" else None

    return _with_values(model, change)


def dense(model: Model) -> Model:
    """No compressed constant."""
    for graph, number, tensor in _tensors(model):
        values = None if tensor.sparsity is None else values_of(model, tensor)
        if values is None or tensor.sparsity is None:
            continue
        try:
            data = densify(values, tensor.shape, tensor.sparsity).tobytes()
        except BridgeError:
            continue
        model = with_data(model, graph, number, data, sparsity=None)
    return model


# Quantisation --------------------------------------------------------------------------------


def _with_quantisation(
    model: Model, change: Callable[[Tensor, QuantizationParameters], QuantizationParameters]
) -> Model:
    for graph, number, tensor in _tensors(model):
        old = tensor.quantization
        if old is None or old.scale is None:
            continue
        new = change(tensor, old)
        if new is not old:
            model = with_tensor(model, graph, number, quantization=new)
    return model


def near_scales(model: Model) -> Model:
    """Scales of a usual size, so that no multiplier is beyond 2^31 or vanishes."""

    def change(tensor: Tensor, old: QuantizationParameters) -> QuantizationParameters:
        assert old.scale is not None
        low, high = _SCALES_16 if tensor.type is TensorType.INT16 else _SCALES
        with np.errstate(invalid="ignore"):
            scale = np.clip(np.nan_to_num(np.abs(old.scale), nan=1.0), low, high)
        scale = scale.astype(np.float32)
        return old if np.array_equal(scale, old.scale) else replace(old, scale=scale)

    changed = _with_quantisation(model, change)
    return model if changed is model else _with_scales_of_biases(changed)


def _with_scales_of_biases(model: Model) -> Model:
    """The scale of a bias is the product of the scales of input and weights."""
    for graph, _, op, _ in _operators(model):
        tensors = model.subgraphs[graph].tensors
        read = [i for i in op.inputs[:3] if i is not None and 0 <= i < len(tensors)]
        if len(read) < 3 or tensors[read[2]].type not in _BIASES:
            continue
        scales = [q.scale for i in read[:2] if (q := tensors[i].quantization) is not None]
        old = tensors[read[2]].quantization
        if old is not None and len(scales) == 2 and scales[0] is not None and scales[1] is not None:
            scale = (scales[0][:1] * scales[1]).astype(np.float32)
            new = replace(old, scale=scale, zero_point=np.zeros(scale.size, np.int64))
            model = with_tensor(model, graph, read[2], quantization=new)
    return model


def plain_zero_points(model: Model) -> Model:
    """Zero points that the type has; 0 for 16 and 32 bits, and for constants of 8 bits."""

    def change(tensor: Tensor, old: QuantizationParameters) -> QuantizationParameters:
        if old.zero_point is None or not old.zero_point.any():
            return old
        info = np.iinfo(np.uint8 if tensor.type is TensorType.UINT8 else np.int8)
        new = np.clip(old.zero_point, info.min, info.max)
        constant = data_of(model, tensor) is not None
        if tensor.type not in (TensorType.UINT8, TensorType.INT8) or (
            constant and tensor.type is TensorType.INT8
        ):
            new = np.zeros_like(new)
        return old if np.array_equal(new, old.zero_point) else replace(old, zero_point=new)

    return _of_softmax(_with_quantisation(model, change))


def _of_softmax(model: Model) -> Model:
    """The zero point that TFLite's SOFTMAX of uint8 has, whatever the file says."""
    for graph, _, op, name in _operators(model):
        tensors = model.subgraphs[graph].tensors
        for index in op.outputs if name == "SOFTMAX" else ():
            old = tensors[index].quantization if 0 <= index < len(tensors) else None
            if (
                old is not None
                and old.scale is not None
                and tensors[index].type is TensorType.UINT8
            ):
                new = replace(old, zero_point=np.zeros(old.scale.size, np.int64))
                model = with_tensor(model, graph, index, quantization=new)
    return model


def one_scale(model: Model) -> Model:
    """A single scale for each tensor."""

    def change(tensor: Tensor, old: QuantizationParameters) -> QuantizationParameters:
        assert old.scale is not None
        if old.scale.size < 2:
            return old
        points = None if old.zero_point is None else old.zero_point[:1]
        return replace(old, scale=old.scale[:1], zero_point=points, quantized_dimension=0)

    return _with_quantisation(model, change)


def own_scale(model: Model) -> Model:
    """Codes without a scale get one."""
    for graph, number, tensor in _tensors(model):
        old = tensor.quantization
        if tensor.type in _CODES and (old is None or old.scale is None):
            new = QuantizationParameters(
                scale=np.array([2.0**-6], np.float32), zero_point=np.zeros(1, np.int64)
            )
            model = with_tensor(model, graph, number, quantization=new)
    return model


def usual_cell_state(model: Model) -> Model:
    """The cell state of an integer LSTM in a unit for which LiteRT has a tanh."""
    for graph, _, op, name in _operators(model):
        if not name.endswith("SEQUENCE_LSTM") or len(op.inputs) < 20:
            continue
        tensors, states = model.subgraphs[graph].tensors, [op.inputs[19]]
        for index in states:
            if index is None or not 0 <= index < len(tensors):
                continue
            old = tensors[index].quantization
            if tensors[index].type is TensorType.INT16 and old is not None:
                new = replace(old, scale=np.array([_CELL_STATE], np.float32))
                if not np.array_equal(new.scale, old.scale):
                    model = with_tensor(model, graph, index, quantization=new)
    return model


def float_weights(model: Model) -> Model:
    """Integer weights of operators whose activations are floats, as floats."""
    for graph, _, op, name in _operators(model):
        tensors = model.subgraphs[graph].tensors
        read = [i for i in op.inputs if i is not None and 0 <= i < len(tensors)]
        if not any(each in name for each in _STEPS):
            continue
        if not any(tensors[i].type is TensorType.FLOAT32 for i in (*read[:2], *op.outputs[:1])):
            continue
        for index in read:
            values = _dequantised(model, tensors[index])
            if values is not None:
                changes: dict[str, Any] = {"type": TensorType.FLOAT32, "quantization": None}
                changes["sparsity"] = None
                model = with_data(model, graph, index, values.tobytes(), **changes)
    return model


def _dequantised(model: Model, tensor: Tensor) -> Array | None:
    old, data = tensor.quantization, data_of(model, tensor)
    if tensor.type not in _WEIGHTS or old is None or old.scale is None or data is None:
        return None
    count = int(np.prod(tensor.shape, dtype=np.int64))
    if tensor.type in PACKED_BITS:
        if count > data.size * 8 // PACKED_BITS[tensor.type]:
            return None
        codes = unpack(data, count, PACKED_BITS[tensor.type])
    else:
        codes = data[:count].view(NUMPY_DTYPE[tensor.type])
    if codes.size != count:
        return None
    scale, axis = old.scale, old.quantized_dimension
    zeros = np.zeros(scale.size) if old.zero_point is None else old.zero_point
    if scale.size > 1:
        if not 0 <= axis < len(tensor.shape) or tensor.shape[axis] != scale.size:
            return None
        along = [1] * len(tensor.shape)
        along[axis] = scale.size
        scale, zeros = scale.reshape(along), np.resize(zeros, scale.size).reshape(along)
    with np.errstate(all="ignore"):
        return ((codes.reshape(tensor.shape) - zeros) * scale).astype(np.float32)


# Texts, seeds, shapes ------------------------------------------------------------------------


def strings_in_rows(model: Model) -> Model:
    """Strings without dimensions get one."""
    for graph, number, tensor in _tensors(model):
        if tensor.type is TensorType.STRING and not tensor.shape:
            model = with_tensor(model, graph, number, shape=(1,))
    return model


def exchanged(model: Model) -> Model:
    """Bodies of WHILE that do not hand on one value in the place of another: it passes two NEG."""
    for _, _, op, name in _operators(model):
        if name != "WHILE" or not isinstance(op.options, WhileOptions):
            continue
        number = op.options.body_subgraph_index
        if not 0 <= number < len(model.subgraphs):
            continue
        inputs, outputs = model.subgraphs[number].inputs, model.subgraphs[number].outputs
        for place, index in enumerate(outputs):
            if index in inputs and inputs[place : place + 1] != (index,):
                model = _through_neg(model, number, place)
    return model


def _through_neg(model: Model, number: int, place: int) -> Model:
    graph = model.subgraphs[number]
    count, tensor = len(graph.tensors), graph.tensors[graph.outputs[place]]
    copy = replace(tensor, buffer=0, is_variable=False)
    codes = (*model.operator_codes, OperatorCode(builtin_code=BuiltinOperator.NEG, version=1))
    steps = [(graph.outputs[place], count), (count, count + 1)]
    added = [Operator(opcode_index=len(codes) - 1, inputs=(a,), outputs=(b,)) for a, b in steps]
    outputs = set_at(graph.outputs, place, count + 1)
    tensors, operators = (*graph.tensors, copy, copy), (*graph.operators, *added)
    model = replace(model, operator_codes=codes)
    return with_graph(model, number, tensors=tensors, operators=operators, outputs=outputs)


def plain_slices(model: Model) -> Model:
    """STRIDED_SLICE without ellipsis, new axes and `offset`."""
    for graph, number, op, _ in _operators(model):
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
    for graph, number, op, name in _operators(model):
        fused = getattr(op.options, "fused_activation_function", None)
        if fused in rare and not any(each in name for each in ("LSTM", "RNN", "SVDF")):
            assert op.options is not None
            changes: dict[str, Any] = {"fused_activation_function": ActivationFunctionType.NONE}
            model = with_operator(model, graph, number, options=replace(op.options, **changes))
    return model


def longer_transforms(model: Model) -> Model:
    """RFFT2D of two numbers in the place of one."""
    for graph, _, op, name in _operators(model):
        tensors = model.subgraphs[graph].tensors
        if name == "RFFT2D" and len(op.inputs) == 2 and op.inputs[1] is not None:
            index = op.inputs[1]
            values = values_of(model, tensors[index]) if index < len(tensors) else None
            if values is not None and values.dtype == np.int32 and values[-1] == 1:
                values[-1] = 2
                model = with_data(model, graph, index, values.tobytes())
    return model


def no_variable_results(model: Model) -> Model:
    """Results of operators are no variables."""
    for graph, _, op, _ in _operators(model):
        for index in op.outputs:
            tensors = model.subgraphs[graph].tensors
            if 0 <= index < len(tensors) and tensors[index].is_variable:
                model = with_tensor(model, graph, index, is_variable=False)
    return model


def seeded(model: Model) -> Model:
    """Random numbers that are the same at every run."""
    for graph, number, op, _ in _operators(model):
        if isinstance(op.options, RandomOptions) and not (op.options.seed or op.options.seed2):
            options = replace(op.options, seed=1, seed2=2)
            model = with_operator(model, graph, number, options=options)
    return model


def undeclared(model: Model) -> Model:
    """Results whose shapes the file does not say."""
    for graph, _, op, name in _operators(model):
        if name == "READ_VARIABLE":
            for index in op.outputs:
                if 0 <= index < len(model.subgraphs[graph].tensors):
                    model = with_tensor(model, graph, index, shape=(), has_rank=False)
    return model
