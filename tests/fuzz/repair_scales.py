"""Quantisation put right: scales, zero points and integer weights; see `repairs.py`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from tests.fuzz.repairs import BIASES, each_operator, each_tensor
from tests.fuzz.tree import Array, data_of, with_data, with_tensor
from tflite_ort.schema import Model, QuantizationParameters, Tensor, TensorType
from tflite_ort.schema.file.element_types import NUMPY_DTYPE, PACKED_BITS
from tflite_ort.schema.values.semantics import unpack

# Scales that differ by no more than a factor of 16; those of 16-bit codes are smaller.
_SCALES = (2.0**-8, 2.0**-4)
_SCALES_16 = (2.0**-15, 2.0**-11)
_CELL_STATE = 2.0**-11
_CODES = (TensorType.INT8, TensorType.UINT8, TensorType.INT16, TensorType.INT4, TensorType.INT2)
_WEIGHTS = (TensorType.INT8, TensorType.UINT8, TensorType.INT4, TensorType.INT2)
_STEPS = ("LSTM", "RNN", "SVDF", "CONV", "FULLY_CONNECTED", "BATCH_MATMUL", "EMBEDDING")


def _with_quantisation(
    model: Model, change: Callable[[Tensor, QuantizationParameters], QuantizationParameters]
) -> Model:
    for graph, number, tensor in each_tensor(model):
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
    for graph, _, op, _ in each_operator(model):
        tensors = model.subgraphs[graph].tensors
        read = [i for i in op.inputs[:3] if i is not None and 0 <= i < len(tensors)]
        if len(read) < 3 or tensors[read[2]].type not in BIASES:
            continue
        scales = [q.scale for i in read[:2] if (q := tensors[i].quantization) is not None]
        old = tensors[read[2]].quantization
        if old is not None and len(scales) == 2 and scales[0] is not None and scales[1] is not None:
            scale = (scales[0][:1] * scales[1]).astype(np.float32)
            new = replace(old, scale=scale, zero_point=np.zeros(scale.size, np.int64))
            model = with_tensor(model, graph, read[2], quantization=new)
    return model


def plain_zero_points(model: Model) -> Model:
    """Zero points that the type has; 0 for 16 and 32 bits, and for constants and weights of 8."""
    weights = _weights(model)

    def change(tensor: Tensor, old: QuantizationParameters) -> QuantizationParameters:
        if old.zero_point is None or not old.zero_point.any():
            return old
        info = np.iinfo(np.uint8 if tensor.type is TensorType.UINT8 else np.int8)
        new = np.clip(old.zero_point, info.min, info.max)
        constant = data_of(model, tensor) is not None or tensor in weights
        if tensor.type not in (TensorType.UINT8, TensorType.INT8) or (
            constant and tensor.type is TensorType.INT8
        ):
            new = np.zeros_like(new)
        return old if np.array_equal(new, old.zero_point) else replace(old, zero_point=new)

    return _of_softmax(_with_quantisation(model, change))


def _weights(model: Model) -> list[Tensor]:
    """What stands where operators have their weights."""
    found = []
    for graph, _, op, name in each_operator(model):
        tensors = model.subgraphs[graph].tensors
        for index in op.inputs[1:2] if any(each in name for each in _STEPS) else ():
            if index is not None and 0 <= index < len(tensors):
                found.append(tensors[index])
    return found


def _of_softmax(model: Model) -> Model:
    """The zero point that TFLite's SOFTMAX of uint8 has, whatever the file says."""
    for graph, _, op, name in each_operator(model):
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


def units_of_images(model: Model) -> Model:
    """Resized images have the scale and zero point of the image."""
    for graph, _, op, name in each_operator(model):
        tensors = model.subgraphs[graph].tensors
        if name != "RESIZE_BILINEAR" or len(op.inputs) != 2 or len(op.outputs) != 1:
            continue
        image, result = op.inputs[0], op.outputs[0]
        if image is not None and max(image, result) < len(tensors):
            units = tensors[image].quantization
            if tensors[result].quantization is not units:
                model = with_tensor(model, graph, result, quantization=units)
    return model


def positive_scales(model: Model) -> Model:
    """No scale is below 0."""

    def change(tensor: Tensor, old: QuantizationParameters) -> QuantizationParameters:
        assert old.scale is not None
        return replace(old, scale=np.abs(old.scale)) if (old.scale < 0).any() else old

    return _with_quantisation(model, change)


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
    """Codes without a scale get one, that of other codes."""
    given = [q.scale for _, _, each in each_tensor(model) if (q := each.quantization) is not None]
    known = [scale[:1] for scale in given if scale is not None and 0 < scale[0] < np.inf]
    usual = known[0] if known else np.array([2.0**-6], np.float32)
    for graph, number, tensor in each_tensor(model):
        old = tensor.quantization
        if tensor.type in _CODES and (old is None or old.scale is None):
            new = QuantizationParameters(
                scale=usual.astype(np.float32), zero_point=np.zeros(1, np.int64)
            )
            model = with_tensor(model, graph, number, quantization=new)
    return model


def usual_cell_state(model: Model) -> Model:
    """The cell state of an integer LSTM in a unit for which LiteRT has a tanh."""
    for graph, _, op, name in each_operator(model):
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
    for graph, _, op, name in each_operator(model):
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
