"""Convolutions: CONV_2D, DEPTHWISE_CONV_2D, TRANSPOSE_CONV, CONV_3D, CONV_3D_TRANSPOSE."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from tflite_ort.opmap.graph import Domain, Graph, Layout
from tflite_ort.opmap.idioms.convolution_operands import (
    ImageConvolution,
    accumulator_bias,
    check_operands,
    convolution_attributes,
    relaid_filter,
    symmetric,
    window_padding,
    with_repeated,
    write_convolution,
)
from tflite_ort.opmap.idioms.convolution_sizes import (
    computed_sizes,
    cut,
    has_own_rounding,
    makes_other_maps,
    misfit,
    past_last_window,
    write_cut,
)
from tflite_ort.opmap.idioms.exact_sums import (
    ExactSums,
    Layer,
    Rounding,
    rounded_twice,
    rounded_wide,
)
from tflite_ort.opmap.idioms.finer_sums import with_finer_weights
from tflite_ort.opmap.idioms.hybrid import hybrid_image
from tflite_ort.opmap.idioms.indices import failing
from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.opmap.registry import translator
from tflite_ort.schema import (
    Conv2DOptions,
    Conv3DOptions,
    DepthwiseConv2DOptions,
    Op,
    OperatorView,
    TensorType,
    TensorView,
    TransposeConvOptions,
    Untranslatable,
)
from tflite_ort.schema.shapes.convolution import volume_windows
from tflite_ort.schema.values.semantics import conv_output_size, explicit_padding
from tflite_ort.schema.values.sizes import differ, is_known, may_differ

# From the layout of a filter to the output channels, those of the input, rows and columns.
_PERMUTATIONS = {
    Op.CONV_2D: (0, 3, 1, 2),
    Op.DEPTHWISE_CONV_2D: (3, 0, 1, 2),
    Op.TRANSPOSE_CONV: (0, 3, 1, 2),
}


@translator(Op.CONV_2D, versions=(1, 8), check=check_operands)
def conv_2d(op: OperatorView[Conv2DOptions], g: Graph) -> None:
    """Conv with the filter [out, kh, kw, in / groups] as [out, in / groups, kh, kw]."""
    if op["filter"].type is TensorType.INT4:
        op = with_finer_weights(op, g)
    input, filter = op["input"], op["filter"]
    if input.type is TensorType.INT16 and _convolved_exactly(op, g):
        return
    groups = input.shape[3] // filter.shape[3]
    image = _image(op, g)
    filter, repeated = symmetric(g, filter, may_repeat=groups == 1)
    weights = relaid_filter(g, input, filter, _PERMUTATIONS[op.op])
    write_convolution(op, g, with_repeated(g, image, repeated), weights, groups)


@translator(Op.DEPTHWISE_CONV_2D, versions=(1, 7), check=check_operands)
def depthwise_conv_2d(op: OperatorView[DepthwiseConv2DOptions], g: Graph) -> None:
    """Conv with one group for every input channel; as in TFLite the shapes give the multiplier."""
    if op["filter"].type is TensorType.INT4:
        op = with_finer_weights(op, g)
    input = op["input"]
    if input.type is TensorType.INT16 and _convolved_exactly(op, g):
        return
    filter, _ = symmetric(g, op["filter"], may_repeat=False)
    weights = relaid_filter(g, input, filter, _PERMUTATIONS[op.op])
    write_convolution(op, g, _image(op, g), weights, input.shape[3])


def _image(op: OperatorView[Any], g: Graph) -> ir.Value:
    """The input [N, C, H, W]; rounded as TFLite does, where the target asks for it."""
    image = g.read(op["input"], layout=Layout.FIRST)
    return hybrid_image(op, g, image) if g.target.rounds else image


def _convolved_exactly(op: ImageConvolution, g: Graph) -> bool:
    """Whether the sums of a Conv of 16-bit codes are exact; then it is written."""
    sums = exact_sums(op, g)
    if sums is None:
        return False
    groups = op["input"].shape[3] // sums.weights.shape[1]
    layer = partial(g.op, "Conv", **convolution_attributes(op, groups))
    _write_exactly(op, g, sums, layer)
    return True


def exact_sums(op: OperatorView[Any], g: Graph) -> ExactSums | None:
    """The sums of a convolution of codes; None if they are not to be exact."""
    if op["input"].type is not TensorType.INT16 and not has_own_rounding(op):
        return None
    return ExactSums.of(op, g, _PERMUTATIONS[op.op], rounding=_rounding(op))


def _write_exactly(op: OperatorView[Any], g: Graph, sums: ExactSums, layer: Layer) -> None:
    """The convolution of codes, as TFLite rounds it."""
    steps = g.read_steps(op["input"], layout=Layout.FIRST)
    codes = sums.codes(g, steps, layer, (-1, 1, 1))
    g.write(op.output, codes, layout=Layout.FIRST, domain=Domain.STORED)


def _rounding(op: OperatorView[Any]) -> Rounding:
    """How TFLite's own kernels round sums."""
    options = op.options
    if op["input"].type is TensorType.INT8:
        return rounded_twice
    if isinstance(options, DepthwiseConv2DOptions):
        return rounded_wide
    return rounded_twice if options.quantized_bias_type == TensorType.INT32 else rounded_wide


def check_transpose_conv(op: OperatorView[TransposeConvOptions]) -> None:
    """Refuse operands that TFLite does not multiply, and another number of channels."""
    check_operands(op)
    if differ(op.output.shape[3:], op["filter"].shape[:1]):
        raise Untranslatable("output_shape has other channels than the filter makes")


@translator(Op.TRANSPOSE_CONV, versions=(1, 5), check=check_transpose_conv)
def transpose_conv(op: OperatorView[TransposeConvOptions], g: Graph) -> None:
    """A ConvTranspose; cropped to the size where that is computed."""
    known = is_known(*op.output.shape[1:3], *op["input"].shape[1:3])
    if makes_other_maps(op) or not (known or op["output_shape"].is_given):
        transpose_conv_of_computed_size(op, g)
    else:
        _transposed(op, g)


def _transposed(op: OperatorView[TransposeConvOptions], g: Graph) -> None:
    """ConvTranspose with the filter [out, kh, kw, in] as [in, out, kh, kw].

    Quantized weights stay codes behind a DequantizeLinear, although no integer kernel follows:
    ONNX Runtime would quantize float weights again, with scales of its own.
    """
    input, filter, options = op["input"], op["filter"], op.options
    kernel, strides = filter.shape[1:3], (options.stride_h, options.stride_w)
    listed = op["output_shape"]
    # What the file says has the padding of any other size.
    stated = listed.data if listed.is_given else None
    sizes = op.output.shape[1:3] if stated is None else stated.reshape(-1)[1:3].tolist()
    windows = list(zip(sizes, kernel, strides, strict=True))
    pads = [explicit_padding(options.padding, *window) for window in windows]
    counts = [conv_output_size(options.padding, *window) for window in windows]
    # Cells past the last window have the bias alone.
    past = [n - (count - 1) * s - k for count, (n, k, s) in zip(counts, windows, strict=True)]
    attributes: dict[str, Any] = {
        "kernel_shape": kernel,
        "strides": strides,
        "pads": [before for before, _ in pads] + [after for _, after in pads],
        "output_padding": [max(0, size) for size in past],
    }
    if _transposed_exactly(op, g, lambda whole: whole, attributes):
        return
    result = g.op(
        "ConvTranspose",
        _image(op, g),
        relaid_filter(g, input, filter, (3, 0, 1, 2), axis=1),
        accumulator_bias(g, input, filter, op.get("bias")),
        **attributes,
    )
    g.write(op.output, result, layout=Layout.FIRST, activation=options.fused_activation_function)


def _transposed_exactly(
    op: OperatorView[TransposeConvOptions],
    g: Graph,
    cut: Callable[[ir.Value], ir.Value],
    attributes: dict[str, Any],
) -> bool:
    """Whether ConvTranspose of codes is exact; then it is written, `cut` to its size."""
    sums = exact_sums(op, g)
    if sums is None:
        return False

    def layer(image: ir.Value, weights: ir.Value) -> ir.Value:
        weights = g.op("Transpose", weights, perm=[1, 0, 2, 3])
        return cut(g.op("ConvTranspose", image, weights, **attributes))

    _write_exactly(op, g, sums, layer)
    return True


def transpose_conv_of_computed_size(op: OperatorView[TransposeConvOptions], g: Graph) -> None:
    """ConvTranspose without padding, cropped to the computed size, then the bias; the graph fails
    if another number of windows fits in it than the input has cells."""
    input, filter, options = op["input"], op["filter"], op.options
    kernel, strides = filter.shape[1:3], (options.stride_h, options.stride_w)
    attributes: dict[str, Any] = {"kernel_shape": kernel, "strides": strides}
    windows = list(zip(input.shape[1:3], kernel, strides, (1, 1), strict=True))
    sizes = computed_sizes(op, g, filter.shape[0])
    sizes = failing(g, sizes, misfit(op, g, sizes, windows))
    cropped = partial(cut, op, g, sizes=sizes, windows=windows)
    if _transposed_exactly(op, g, lambda whole: cropped(whole=whole), attributes):
        return
    whole = g.op(
        "ConvTranspose",
        _image(op, g),
        relaid_filter(g, input, filter, (3, 0, 1, 2), axis=1),
        **attributes,
    )
    write_cut(op, g, whole, sizes, windows)


@translator(Op.CONV_3D, versions=(1, 1))
def conv_3d(op: OperatorView[Conv3DOptions], g: Graph) -> None:
    """Conv with the filter [kd, kh, kw, in, out] as [out, in, kd, kh, kw]."""
    volume_convolution(op, g, "Conv", op["input"].shape[1:4])


@translator(Op.CONV_3D_TRANSPOSE, versions=(1, 1))
def conv_3d_transpose(op: OperatorView[Conv3DOptions], g: Graph) -> None:
    """ConvTranspose with the filter [kd, kh, kw, out, in] as [in, out, kd, kh, kw]."""
    input, filter, made = op["input"], op["filter"], op.output.shape
    is_stated = not may_differ((made[0], made[4]), (input.shape[0], filter.shape[3]))
    if is_stated and is_known(*made[1:4], *input.shape[1:4]):
        volume_convolution(op, g, "ConvTranspose", made[1:4])
        return
    check_volumes(input, filter)
    windows = volume_windows(op.options, input.shape[1:4], filter.shape[:3])
    _, kernel, strides, dilations = zip(*windows, strict=True)
    whole = g.op(
        "ConvTranspose",
        g.read(input, layout=Layout.FIRST),
        relaid_filter(g, input, filter, (4, 3, 0, 1, 2)),
        kernel_shape=kernel,
        strides=strides,
        dilations=dilations,
    )
    sizes = computed_sizes(op, g, filter.shape[3])
    write_cut(op, g, whole, failing(g, sizes, misfit(op, g, sizes, windows)), windows)


def check_volumes(input: TensorView, filter: TensorView) -> None:
    """Refuses volumes that are not float32: LiteRT has no kernels for these."""
    if (input.type, filter.type) != (TensorType.FLOAT32, TensorType.FLOAT32):
        raise Untranslatable(f"{input.type.name} input with {filter.type.name} filter")


def volume_convolution(
    op: OperatorView[Conv3DOptions], g: Graph, name: str, sizes: tuple[int, ...]
) -> None:
    """Conv, or ConvTranspose, called `name`, whose input, or output, is a volume of `sizes`."""
    input, filter, options = op["input"], op["filter"], op.options
    check_volumes(input, filter)
    windows = volume_windows(options, sizes, filter.shape[:3])
    transposed = name == "ConvTranspose"
    result = g.op(
        name,
        g.read(input, layout=Layout.FIRST),
        relaid_filter(g, input, filter, (4, 3, 0, 1, 2)),
        accumulator_bias(g, input, filter, op.get("bias")),
        kernel_shape=[kernel for _, kernel, _, _ in windows],
        strides=[stride for _, _, stride, _ in windows],
        dilations=[dilation for _, _, _, dilation in windows],
        **window_padding(options.padding, windows),
        output_padding=past_last_window(input, windows) if transposed else None,
    )
    activation = options.fused_activation_function
    g.write(op.output, g.finite(result), layout=Layout.FIRST, activation=activation)
