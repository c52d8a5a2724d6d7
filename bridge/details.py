"""The dictionaries in which ``tf.lite.Interpreter`` describes tensors."""

from __future__ import annotations

from typing import Any

import numpy as np

from tflite_ort.schema import BlockwiseQuantization, Tensor, TensorType, TensorView

_SCALAR_TYPES: dict[TensorType, type[np.generic]] = {TensorType.STRING: np.bytes_}


def tensor_details(tensor: Tensor, view: TensorView) -> dict[str, Any]:
    """`tensor` with the shape it has now.

    Returns:
        name, index, shape (int32 array), shape_signature (int32 array, -1 where unknown), dtype
        (numpy scalar type), quantization (scale, zero point; (0.0, 0) when there is not exactly
        one), quantization_parameters (scales, zero_points, quantized_dimension,
        block_size) and sparsity_parameters.
    """
    quantization = view.quantization
    scales = np.zeros(0, np.float32) if quantization is None else quantization.scale
    zero_points = np.zeros(0, np.int64) if quantization is None else quantization.zero_point
    single = (float(scales[0]), int(zero_points[0])) if scales.size == 1 else (0.0, 0)
    signature = view.shape if tensor.shape_signature is None else tensor.shape_signature
    return {
        "name": tensor.name,
        "index": view.index,
        "shape": np.asarray(view.shape, np.int32),
        "shape_signature": np.asarray(signature, np.int32),
        "dtype": _SCALAR_TYPES.get(tensor.type, view.dtype.type),
        "quantization": single,
        "quantization_parameters": {
            "scales": scales.astype(np.float32),
            "zero_points": zero_points.astype(np.int32),
            "quantized_dimension": 0 if quantization is None else quantization.axis,
            "block_size": _block_size(tensor),
        },
        "sparsity_parameters": {},
    }


def _block_size(tensor: Tensor) -> int:
    """Elements per scale of a blockwise quantised tensor; 0 for any other."""
    details = None if tensor.quantization is None else tensor.quantization.details
    return details.block_size if isinstance(details, BlockwiseQuantization) else 0
