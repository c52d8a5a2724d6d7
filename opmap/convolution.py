"""Convolutions: CONV_2D, DEPTHWISE_CONV_2D, TRANSPOSE_CONV, CONV_3D, CONV_3D_TRANSPOSE."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from tflite_ort.opmap.graph import Domain, Graph, Layout, ir
from tflite_ort.opmap.graph.choices import build_chosen
from tflite_ort.opmap.idioms.cells_as_rows import product_of_cells
from tflite_ort.opmap.idioms.column_groups import image_lowerings
from tflite_ort.opmap.idioms.convolution_operands import (
    accumulator_bias,
    check_types,
    relaid_filter,
    window_padding,
)
from tflite_ort.opmap.idioms.convolution_phases import transposed_lowerings
from tflite_ort.opmap.idioms.convolution_sizes import (
    computed_sizes,
    cut,
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
from tflite_ort.opmap.idioms.hybrid import hybrid_input, is_delegated
from tflite_ort.opmap.idioms.indices import failing
from tflite_ort.opmap.idioms.picked_channels import (
    convolution_of_source,
    depthwise_of_source,
    write_picked,
)
from tflite_ort.opmap.idioms.reached_taps import within_image
from tflite_ort.opmap.idioms.rounded_images import (
    rounded_convolution,
    rounds_cells,
    run_of,
)
from tflite_ort.opmap.idioms.symmetric_weights import symmetric, with_repeated
from tflite_ort.opmap.idioms.wide_channels import (
    convolution_of_wide,
    depthwise_over_wide,
    narrowed_again,
    offer_wide_outputs,
)
from tflite_ort.opmap.idioms.windows import NO_EDGES, Edges, WindowAxis, image_windows, without_pad
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

ImageConvolution = OperatorView[Conv2DOptions] | OperatorView[DepthwiseConv2DOptions]
Operands = tuple[ir.Value, ir.Value, int]

# From the layout of a filter to the output channels, those of the input, rows and columns.
_PERMUTATIONS = {
    Op.CONV_2D: (0, 3, 1, 2),
    Op.DEPTHWISE_CONV_2D: (3, 0, 1, 2),
    Op.TRANSPOSE_CONV: (0, 3, 1, 2),
}
# Up to so many channels a Transpose of the image costs more than a convolution of rows.
_ROW_CHANNELS = 4


@translator(Op.CONV_2D, versions=(1, 8))
def conv_2d(op: OperatorView[Conv2DOptions], g: Graph) -> None:
    """Conv with the filter [out, kh, kw, in / groups] as [out, in / groups, kh, kw]."""
    check_types(op["input"], op["filter"])
    op = within_image(op, g)
    windows = image_windows(op, op["filter"].shape[1:3], NO_EDGES)
    in_rows = g.target.cpu_kernels and _is_read_in_rows(without_pad(op, g)[0], g)
    by_runs = not in_rows or (windows is not None and run_of(windows) > 1)
    if by_runs and rounded_convolution(op, g, windows, _asymmetric(op["filter"])):
        return
    if in_rows:
        convolution_of_rows(op, g)
        return
    if product_of_cells(op, g):
        return
    op = convolution_of_wide(convolution_of_source(op, g), g)
    padless, edges = without_pad(op, g)
    convolution(padless, g, edges, partial(_conv_2d_operands, padless, g))
    offer_wide_outputs(op, g, conv_2d)


def _conv_2d_operands(op: OperatorView[Conv2DOptions], g: Graph) -> Operands:
    input, filter = op["input"], op["filter"]
    groups = input.shape[3] // filter.shape[3]
    image = hybrid_image(op, g, g.read(input, layout=Layout.FIRST), _asymmetric(filter))
    filter, repeated = symmetric(g, filter, may_repeat=groups == 1)
    weights = relaid_filter(g, input, filter, _PERMUTATIONS[op.op])
    return with_repeated(g, image, repeated), weights, groups


def _asymmetric(filter: TensorView) -> bool:
    """Whether TFLite's CONV_2D rounds a float input with a zero point: if channel scales differ."""
    return filter.quantization is not None and bool(np.ptp(filter.quantization.scale))


def hybrid_image(
    op: OperatorView[Any], g: Graph, image: ir.Value, asymmetric: bool = True, channels: int = 1
) -> ir.Value:
    """The input [N, C, H, W]; rounded to 8 bits, image by image, if the target asks for it; cell by
    cell where LiteRT's default does so.

    Args:
        channels: their axis; 3 for an input [N, H, W, C].
    """
    axes = (channels,) if g.target.hybrid == "xnnpack" and rounds_cells(op) else (1, 2, 3)
    input, filter, taken = op["input"], op["filter"], is_delegated(op)
    return hybrid_input(g, image, input, filter, axes=axes, asymmetric=asymmetric, delegated=taken)


def _is_read_in_rows(op: OperatorView[Conv2DOptions], g: Graph) -> bool:
    """Whether `convolution_of_rows` is faster.

    It is for a float image of few channels that exists channels-last only, with constant weights
    and no dilation of rows.
    """
    input, channels = op["input"], op["input"].shape[3]
    return (
        not input.is_quantized
        and 1 < channels <= _ROW_CHANNELS
        and op["filter"].is_constant
        and op["filter"].shape[3] == channels
        and op.options.dilation_w_factor == 1
        and is_known(*input.shape[1:3])
        and not g.is_in(input, Layout.FIRST)
    )


def convolution_of_rows(op: OperatorView[Conv2DOptions], g: Graph) -> None:
    """CONV_2D as Conv of [N, 1, H, W * C] with [out, 1, kh, kw * C]: it needs no Transpose."""
    op, edges = without_pad(op, g)
    input, filter, options = op["input"], op["filter"], op.options
    batch, height, width, channels = input.shape
    outputs, kh, kw, _ = filter.shape
    windows = image_windows(op, (kh, kw), edges)
    assert windows is not None, "the sizes are known"
    (top, bottom), (left, right) = ((each.before, each.after) for each in windows)
    rows = hybrid_image(op, g, g.read(input), _asymmetric(filter), channels=3)
    result = g.op(
        "Conv",
        g.reshape(rows, (batch, 1, height, width * channels)),
        g.weights(filter, shape=[outputs, 1, kh, kw * channels], real=True),
        accumulator_bias(g, input, filter, op.get("bias")),
        strides=[options.stride_h, options.stride_w * channels],
        dilations=[options.dilation_h_factor, 1],
        pads=[top, left * channels, bottom, right * channels],
    )
    g.write(op.output, result, layout=Layout.FIRST, activation=options.fused_activation_function)


@translator(Op.DEPTHWISE_CONV_2D, versions=(1, 7))
def depthwise_conv_2d(op: OperatorView[DepthwiseConv2DOptions], g: Graph) -> None:
    """Conv with one group for every input channel; as in TFLite the shapes give the multiplier.

    On the CPU there is one group for every output channel: otherwise ONNX Runtime is slow, by a
    factor of up to 100 with codes, except for a single group.
    """
    check_types(op["input"], op["filter"])
    op, edges = without_pad(within_image(op, g), g)
    over_source = depthwise_of_source(op, g)
    if over_source is not None:
        other, picked = over_source
        convolution(other, g, edges, partial(_depthwise_operands, other, g))
        write_picked(op.output, picked, g)
        return
    wide = depthwise_over_wide(op, g)
    convolution(wide, g, edges, partial(_depthwise_operands, wide, g))
    if wide is not op:
        narrowed_again(op, wide, g)


def _depthwise_operands(op: OperatorView[DepthwiseConv2DOptions], g: Graph) -> Operands:
    input, outputs = op["input"], op["filter"].shape[3]
    filter, _ = symmetric(g, op["filter"], may_repeat=False)
    weights = relaid_filter(g, input, filter, _PERMUTATIONS[op.op])
    if g.target.cpu_kernels and 1 < input.shape[3] < outputs:
        image, groups = repeated_channels(op, g, outputs // input.shape[3]), outputs
    else:
        image, groups = g.read(input, layout=Layout.FIRST), input.shape[3]
    return hybrid_image(op, g, image), weights, groups


def repeated_channels(
    op: OperatorView[DepthwiseConv2DOptions], g: Graph, multiplier: int
) -> ir.Value:
    """The image [N, C, H, W] with every channel repeated `multiplier` times."""
    input = op["input"]
    sources = g.constant(np.arange(input.shape[3]).repeat(multiplier))
    image = g.read(input, layout=Layout.FIRST, domain=Domain.STORED)
    image = g.op("Gather", image, sources, axis=1)
    return g.dequantize(image, input) if input.is_quantized else image


def convolution(
    op: ImageConvolution, g: Graph, edges: Edges, operands: Callable[[], Operands]
) -> None:
    """Conv with the bias, padding and activation of `op`, or another lowering of it.

    Args:
        edges: see `without_pad`.
        operands: makes the image [N, C, H, W], the weights [out, C / groups, kh, kw] as real
            numbers, and the number of groups.

    Raises:
        Untranslatable: a computed bias of quantised activations.
    """
    kernel = op["filter"].shape[1:3]
    windows = image_windows(op, kernel, edges)
    rounding = _rounding(op)
    sums = ExactSums.of(op, g, _PERMUTATIONS[op.op], rounding=rounding)
    if sums is not None:
        attributes = _attributes(op, windows, op["input"].shape[3] // sums.weights.shape[1])
        _exact_convolution(op, g, sums, rounding, partial(g.op, "Conv", **attributes))
        return
    plain = partial(_plain_convolution, op, g, windows, operands)
    lowerings = image_lowerings(op, g, windows, plain)
    build_chosen(op, lowerings, g.target.choose)


def _plain_convolution(
    op: ImageConvolution,
    g: Graph,
    windows: tuple[WindowAxis, WindowAxis] | None,
    operands: Callable[[], Operands],
) -> None:
    image, weights, groups = operands()
    bias = accumulator_bias(g, op["input"], op["filter"], op.get("bias"))
    result = g.op("Conv", image, weights, bias, **_attributes(op, windows, groups))
    activation = op.options.fused_activation_function
    g.write(op.output, result, layout=Layout.FIRST, activation=activation)


def _exact_convolution(
    op: OperatorView[Any], g: Graph, sums: ExactSums, rounding: Rounding, layer: Layer
) -> None:
    """The convolution of 16-bit codes, as TFLite rounds it."""
    steps = g.read_steps(op["input"], layout=Layout.FIRST)
    codes = sums.codes(g, steps, layer, (-1, 1, 1), rounding)
    g.write(op.output, codes, layout=Layout.FIRST, domain=Domain.STORED)


def _rounding(op: OperatorView[Any]) -> Rounding:
    """How TFLite rounds sums of 16-bit activations."""
    options = op.options
    if isinstance(options, DepthwiseConv2DOptions):
        return rounded_wide
    return rounded_twice if options.quantized_bias_type == TensorType.INT32 else rounded_wide


def _attributes(
    op: ImageConvolution, windows: tuple[WindowAxis, WindowAxis] | None, groups: int
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


@translator(Op.TRANSPOSE_CONV, versions=(1, 5))
def transpose_conv(op: OperatorView[TransposeConvOptions], g: Graph) -> None:
    """A ConvTranspose, or convolutions that give the same, see `transposed_lowerings`."""
    check_types(op["input"], op["filter"])
    if differ(op.output.shape[3:], op["filter"].shape[:1]):
        raise Untranslatable("output_shape has other channels than the filter makes")
    made = (op["input"].shape[0], op["filter"].shape[0])
    known = is_known(*op.output.shape[1:3], *op["input"].shape[1:3])
    if may_differ((op.output.shape[0], op.output.shape[3]), made):
        transpose_conv_of_computed_size(op, g)
    elif known:
        build_chosen(op, transposed_lowerings(op, g, partial(_transposed, op, g)), g.target.choose)
    elif op["output_shape"].is_given:
        _transposed(op, g)
    else:
        transpose_conv_of_computed_size(op, g)


def _transposed(op: OperatorView[TransposeConvOptions], g: Graph) -> None:
    """ConvTranspose with the filter [out, kh, kw, in] as [in, out, kh, kw].

    Quantised weights stay codes behind a DequantizeLinear, although no integer kernel follows:
    ONNX Runtime would quantise float weights again, with scales of its own.
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
        hybrid_image(op, g, g.read(input, layout=Layout.FIRST)),
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
    """Whether ConvTranspose of 16-bit codes is exact; then it is written, `cut` to its size."""
    rounding = _rounding(op)
    sums = ExactSums.of(op, g, _PERMUTATIONS[op.op], rounding=rounding)
    if sums is None:
        return False

    def layer(image: ir.Value, weights: ir.Value) -> ir.Value:
        weights = g.op("Transpose", weights, perm=[1, 0, 2, 3])
        return cut(g.op("ConvTranspose", image, weights, **attributes))

    _exact_convolution(op, g, sums, rounding, layer)
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
        hybrid_image(op, g, g.read(input, layout=Layout.FIRST)),
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
    input, filter = op["input"], op["filter"]
    if is_known(*op.output.shape[1:4], *input.shape[1:4]):
        volume_convolution(op, g, "ConvTranspose", op.output.shape[1:4])
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
