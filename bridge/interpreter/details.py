"""The dictionaries in which ``tf.lite.Interpreter`` describes tensors and operators."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tflite_ort import schema
from tflite_ort.schema.file.element_types import shown_type

if TYPE_CHECKING:
    from tflite_ort.schema import (
        DimensionMetadata,
        Model,
        QuantizationParameters,
        SparsityParameters,
        Tensor,
        TensorType,
    )

Array = npt.NDArray[Any]


def tensor_details(
    tensor: Tensor,
    index: int,
    shape: Sequence[int],
    type: TensorType,
    constant: Callable[[int], Array | None],
    *,
    compress_zero_points: bool = False,
) -> dict[str, Any]:
    """A tensor with the shape and the element type it has now.

    Args:
        constant: the uint8 bytes that the file has for a tensor of the same subgraph.
        compress_zero_points: equal zero points are shown once.

    Returns:
        name, index, shape (int32 array), shape_signature (int32 array, -1 where unknown), dtype
        (numpy scalar type), quantization (scale, zero point; (0.0, 0) when there is not exactly
        one), quantization_parameters (scales, zero_points, quantized_dimension, block_size) and
        sparsity_parameters (empty for a dense tensor).
    """
    return {
        "name": tensor.name,
        "index": index,
        "shape": np.array(shape, np.int32),
        "shape_signature": np.array(tensor.shape_signature or shape, np.int32),
        "dtype": shown_type(type),
        "quantization": _scale_and_point(tensor.quantization),
        "quantization_parameters": _parameters(tensor, constant, compress_zero_points),
        "sparsity_parameters": {} if tensor.sparsity is None else _sparsity(tensor.sparsity),
    }


def copied_details(details: dict[str, Any]) -> dict[str, Any]:
    """What `tensor_details` gave, for another caller, who may write into it."""
    if details["sparsity_parameters"]:
        return copy.deepcopy(details)
    quantization = details["quantization_parameters"]
    return {
        **details,
        "shape": details["shape"].copy(),
        "shape_signature": details["shape_signature"].copy(),
        "quantization_parameters": {
            **quantization,
            "scales": quantization["scales"].copy(),
            "zero_points": quantization["zero_points"].copy(),
        },
        "sparsity_parameters": {},
    }


def _scale_and_point(quantization: QuantizationParameters | None) -> tuple[float, int]:
    if quantization is None or quantization.scale is None or quantization.zero_point is None:
        return 0.0, 0
    if quantization.scale.size != 1:
        return 0.0, 0
    return float(quantization.scale[0]), int(quantization.zero_point[0])


def _parameters(
    tensor: Tensor, constant: Callable[[int], Array | None], compress_zero_points: bool
) -> dict[str, Any]:
    quantization = tensor.quantization
    axis = block = 0
    scales, points = np.zeros(0, np.float32), np.zeros(0, np.int32)
    details = None if quantization is None else quantization.details
    if details is not None and isinstance(details, schema.BlockwiseQuantization):
        assert quantization is not None
        scales = _values(constant, details.scales, np.dtype(np.float16))
        points = _values(constant, details.zero_points, np.dtype(np.int32))
        axis, block = quantization.quantized_dimension, details.block_size
    elif quantization is not None and quantization.scale is not None:
        scales, axis = quantization.scale.astype(np.float32), quantization.quantized_dimension
        if quantization.zero_point is not None:
            points = quantization.zero_point.astype(np.int32)
        if compress_zero_points and (points == points[:1]).all():
            points = points[:1]
    return {
        "scales": scales,
        "zero_points": points,
        "quantized_dimension": axis,
        "block_size": block,
    }


def _values(constant: Callable[[int], Array | None], index: int, dtype: np.dtype[Any]) -> Array:
    """The values of a constant; none for the index -1."""
    data = None if index < 0 else constant(index)
    if data is None:
        return np.zeros(0, dtype)
    return data[: data.size // dtype.itemsize * dtype.itemsize].view(dtype).copy()


def _sparsity(sparsity: SparsityParameters) -> dict[str, Any]:
    """traversal_order, block_map (if there are blocks) and, per dimension, dim_metadata."""
    shown: dict[str, Any] = {"traversal_order": np.array(sparsity.traversal_order or (), np.int32)}
    if sparsity.block_map is not None:
        shown["block_map"] = np.array(sparsity.block_map, np.int32)
    shown["dim_metadata"] = [_dimension(dimension) for dimension in sparsity.dim_metadata]
    return shown


def _dimension(dimension: DimensionMetadata) -> dict[str, Any]:
    segments, indices = dimension.array_segments, dimension.array_indices
    if segments is None or segments.values is None or indices is None or indices.values is None:
        return {"format": 0, "dense_size": dimension.dense_size}
    return {
        "format": 1,
        "array_segments": np.array(segments.values, np.int32),
        "array_indices": np.array(indices.values, np.int32),
    }


def op_details(model: Model, index: int) -> dict[str, Any]:
    """Operator `index` of the primary subgraph.

    Returns:
        index, op_name, inputs and outputs (int32 arrays of tensor indices, -1 for an input left
        out), operand_types and result_types (numpy scalar types of those that are there).
    """
    graph = model.subgraphs[0]
    operator = graph.operators[index]
    code = model.operator_codes[operator.opcode_index]
    custom = code.custom_code if code.builtin_code is schema.Op.CUSTOM else None
    inputs = [-1 if tensor is None else tensor for tensor in operator.inputs]
    return {
        "index": index,
        "op_name": custom or code.builtin_code.name,
        "inputs": np.array(inputs, np.int32),
        "outputs": np.array(operator.outputs, np.int32),
        "operand_types": [shown_type(graph.tensors[i].type) for i in inputs if i >= 0],
        "result_types": [shown_type(graph.tensors[i].type) for i in operator.outputs],
    }
