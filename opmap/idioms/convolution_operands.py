"""Convolutions as nodes, and operands: windows, padding, filters and biases."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from tflite_ort.base.records import record, replace
from tflite_ort.opmap.graph import Graph, Layout
from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.schema import (
    Conv2DOptions,
    DepthwiseConv2DOptions,
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


@record
class WindowAxis:
    """The windows of a convolution along one axis.

    Args:
        cells: of the input, without padding.
        before, after: cells of padding.
    """

    cells: int
    kernel: int
    stride: int
    dilation: int
    before: int
    after: int

    @property
    def count(self) -> int:
        """How many windows there are."""
        reach = (self.kernel - 1) * self.dilation + 1
        return (self.cells + self.before + self.after - reach) // self.stride + 1


def image_windows(
    op: OperatorView[Any], kernel: Sequence[int]
) -> tuple[WindowAxis, WindowAxis] | None:
    """The windows along rows and columns of an image [N, H, W, C]; None where a size is unknown."""
    sizes, options = op["input"].shape[1:3], op.options
    if not is_known(*sizes):
        return None
    rows = sizes[0], kernel[0], options.stride_h, options.dilation_h_factor, op.edges[0]
    columns = sizes[1], kernel[1], options.stride_w, options.dilation_w_factor, op.edges[1]
    return _windows(options.padding, *rows), _windows(options.padding, *columns)


def run_of(windows: tuple[WindowAxis, WindowAxis]) -> int:
    """How many cells side by side all windows read together: the columns of a window where windows
    neither overlap nor are padded along a row, as the patches of a transformer; otherwise 1."""
    _, columns = windows
    apart = columns.stride % columns.kernel == 0 and columns.dilation == 1
    aligned = not columns.before and not columns.after and columns.cells % columns.kernel == 0
    return columns.kernel if apart and aligned else 1


@lru_cache(maxsize=256)  # they are asked for several times, and many layers have the same
def _windows(
    padding: Padding, size: int, kernel: int, stride: int, dilation: int, edge: tuple[int, int]
) -> WindowAxis:
    before, after = explicit_padding(padding, size + sum(edge), kernel, stride, dilation)
    return WindowAxis(size, kernel, stride, dilation, before + edge[0], after + edge[1])


ImageConvolution = OperatorView[Conv2DOptions] | OperatorView[DepthwiseConv2DOptions]
FloatArray = npt.NDArray[np.float32]
# For a spatial axis: size (or number of windows), kernel, stride, dilation.
Windows = Sequence[tuple[int, int, int, int]]

_INT8 = np.iinfo(np.int8)
# Of products of codes, with 16-bit activations.
_LARGEST_SUM = 2.0**47


def check_operands(op: OperatorView[Any]) -> None:
    """Refuse operands of a convolution that TFLite does not multiply."""
    check_types(op["input"], op["filter"])


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


def convolution_attributes(op: OperatorView[Any], groups: int) -> dict[str, Any]:
    """The attributes of Conv for an image in `groups` groups of channels."""
    options, kernel = op.options, op["filter"].shape[1:3]
    windows = image_windows(op, kernel)
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


def write_convolution(
    op: ImageConvolution, g: Graph, image: ir.Value, weights: ir.Value, groups: int
) -> None:
    """Conv with the bias, padding and activation of `op`.

    Args:
        image: [N, C, H, W].
        weights: [out, C / groups, kh, kw], as real numbers.

    Raises:
        Untranslatable: a computed bias of quantized activations.
    """
    attributes = convolution_attributes(op, groups)
    bias = accumulator_bias(g, op["input"], op["filter"], op.get("bias"))
    result = g.op("Conv", image, weights, bias, **attributes)
    activation = op.options.fused_activation_function
    g.write(op.output, result, layout=Layout.FIRST, activation=activation)


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
        Untranslatable: a computed bias of quantized activations.
    """
    if bias is None:
        return None
    if bias.is_constant:
        return g.bias(bias, accumulator_scale(input.quantization, filter.quantization))
    if input.is_quantized:
        raise Untranslatable(f"bias {bias.name!r} of quantized activations is not a constant")
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


def symmetric(g: Graph, filter: TensorView, *, may_repeat: bool) -> tuple[TensorView, list[int]]:
    """uint8 weights [..., in] as int8 with zero point 0, and the input channels to read twice, for
    a target that multiplies other weights as floats.

    A code minus its zero point has 9 bits. A weight that does not fit in 8 bits, as a rule the one
    from which the scale was computed, becomes the sum of two int8 weights: the second is the weight
    of a copy of its input channel, which is appended to the input.

    Args:
        may_repeat: whether channels can be appended: the filter's last dimension is all channels of
            the input.

    Returns:
        The filter with the weights of the appended channels last, and the channels to append. The
        filter itself and no channels where the target wants no such weights, or has none of them.
    """
    quantization = filter.quantization
    if not (g.target.symmetric_weights and g.target.weights == "int8"):
        return filter, []
    if filter.type is not TensorType.UINT8 or filter.data is None:
        return filter, []
    if quantization is None or quantization.per_channel:
        return filter, []
    rest = filter.data.astype(np.int16) - quantization.scalar_zero_point
    parts, repeated, channels = [], [], np.arange(filter.shape[-1])
    while channels.size:
        parts.append(rest[..., channels].clip(_INT8.min, _INT8.max).astype(np.int8))
        rest[..., channels] -= parts[-1]
        channels = np.flatnonzero(rest.any(axis=tuple(range(filter.rank - 1))))
        repeated += channels.tolist()
    if len(repeated) > (filter.shape[-1] if may_repeat else 0):
        return filter, []
    codes = np.concatenate(parts, axis=-1)
    around = replace(quantization, zero_point=np.zeros_like(quantization.zero_point))
    type_, shape = TensorType.INT8, codes.shape
    return replace(filter, type=type_, shape=shape, constant=codes, quantization=around), repeated


def with_repeated(g: Graph, value: ir.Value, channels: Sequence[int]) -> ir.Value:
    """`value` [N, C, ...] with some of its channels once more, at the end."""
    if not channels:
        return value
    axis = g.ints([1])
    slices = [g.op("Slice", value, g.ints([i]), g.ints([i + 1]), axis) for i in channels]
    return g.op("Concat", value, *slices, axis=1)
