"""The operands of convolutions and matrix products: filters, biases and padding."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tflite_ort.base.records import replace
from tflite_ort.opmap.graph import Graph
from tflite_ort.opmap.idioms.windows import WindowAxis
from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.schema import (
    OperatorView,
    Padding,
    Quantization,
    TensorType,
    TensorView,
    Untranslatable,
)
from tflite_ort.schema.values.operators import FILTER_TYPES
from tflite_ort.schema.values.semantics import explicit_padding
from tflite_ort.schema.values.sizes import is_known, known_product

FloatArray = npt.NDArray[np.float32]
# For a spatial axis: size (or number of windows), kernel, stride, dilation.
Windows = Sequence[tuple[int, int, int, int]]

# Of products of codes, with 16-bit activations.
_LARGEST_SUM = 2.0**47


def check_types(input: TensorView, filter: TensorView) -> None:
    """Refuses operand types that TFLite does not multiply, codes without a scale, and codes whose
    sums of products exceed float32: they are infinite, or NaN."""
    if filter.type not in FILTER_TYPES.get(input.type, ()):
        raise Untranslatable(f"{input.type.name} input with {filter.type.name} filter")
    for tensor in (input, filter):
        if tensor.type is not TensorType.FLOAT32 and not tensor.is_quantized:
            raise Untranslatable(f"{tensor.type.name} tensor {tensor.name!r} without a scale")
    if input.quantization is None or filter.quantization is None:
        return
    unit = float(input.quantization.scale.max()) * float(filter.quantization.scale.max())
    if input.type is not TensorType.FLOAT32 and unit * _LARGEST_SUM > np.finfo(np.float32).max:
        raise Untranslatable(f"sums of codes in units of {unit:g} exceed float32")


def window_padding(padding: Padding, windows: Windows) -> dict[str, Any]:
    """The padding attributes of ONNX for windows (size, kernel, stride, dilation) along all axes.

    Where the pads depend on an unknown size, `auto_pad` lets ONNX compute the same ones.

    Raises:
        Untranslatable: there a stride is longer than its windows, of which ONNX Runtime cuts cells
            off where TFLite pads nothing.
    """
    open = any(not is_known(size) and stride > 1 < kernel for size, kernel, stride, _ in windows)
    if open and padding == Padding.SAME and all(dilation == 1 for *_, dilation in windows):
        if any(kernel < stride for _, kernel, stride, _ in windows):
            raise Untranslatable("a stride longer than its windows, over an unknown size")
        return {"auto_pad": "SAME_UPPER"}
    pairs = [explicit_padding(padding, *window) for window in windows]
    return {"pads": [before for before, _ in pairs] + [after for _, after in pairs]}


def convolution_attributes(
    op: OperatorView[Any], windows: tuple[WindowAxis, WindowAxis] | None, groups: int
) -> dict[str, Any]:
    """The attributes of Conv for an image in `groups` groups of channels."""
    options, kernel = op.options, op["filter"].shape[1:3]
    strides = (options.stride_h, options.stride_w)
    dilations = (options.dilation_h_factor, options.dilation_w_factor)
    if windows is None:
        sizes = zip(op["input"].shape[1:3], kernel, strides, dilations, strict=True)
        padding = window_padding(options.padding, list(sizes))
    else:
        ends = [each.before for each in windows], [each.after for each in windows]
        padding = {"pads": [*ends[0], *ends[1]]}
    return {
        "group": groups,
        "kernel_shape": kernel,
        "strides": strides,
        "dilations": dilations,
        **padding,
    }


def relaid_filter(
    g: Graph, input: TensorView, filter: TensorView, permutation: tuple[int, ...], axis: int = 0
) -> ir.Value:
    """A filter in the layout of ONNX; for float activations (hybrid models) in floats.

    Args:
        axis: the axis of the output channels in the result.
    """
    if not filter.is_constant:
        return g.op("Transpose", g.read(filter), perm=permutation)
    real = not input.is_quantized
    return g.weights(filter, permutation=permutation, axis=axis, real=real)


def accumulator_bias(
    g: Graph, input: TensorView, filter: TensorView, bias: TensorView | None
) -> ir.Value | None:
    """The bias [N], in units of input scale times filter scale, those of the integer accumulator.

    Raises:
        Untranslatable: a computed bias of quantised activations.
    """
    if bias is None:
        return None
    if bias.is_constant:
        return g.bias(bias, accumulator_scale(input.quantization, filter.quantization))
    if input.is_quantized:
        raise Untranslatable(f"bias {bias.name!r} of quantised activations is not a constant")
    value = g.read(bias)
    return value if bias.rank == 1 else g.reshape(value, (known_product(bias.shape),))


def accumulator_scale(input: Quantization | None, filter: Quantization | None) -> FloatArray:
    """The scale [1] or [N] of a sum of products: input scale times filter scale; 1 for floats."""
    if input is None or filter is None:
        return np.ones(1, np.float32)
    return input.scale * filter.scale


def repeated(tensor: TensorView, count: int) -> TensorView:
    """A constant vector `count` times in a row."""
    assert tensor.data is not None
    data = np.tile(tensor.data, count)
    return replace(tensor, constant=data, shape=data.shape)
