"""Convolutions of floats over images of few channels, as convolutions of rows: they need no
Transpose of the image."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from tflite_ort.opmap.graph import Graph, Layout
from tflite_ort.opmap.graph.choices import Lowering
from tflite_ort.opmap.idioms.convolution_operands import accumulator_bias, image_windows
from tflite_ort.opmap.idioms.hybrid import hybrid_image
from tflite_ort.opmap.rules.rule import Rest, View, cpu
from tflite_ort.schema.values.sizes import is_known

# Up to so many channels a Transpose of the image costs more than a convolution of rows.
_MOST_CHANNELS = 4


def rows_of_channels(op: View, g: Graph, rest: Rest) -> Sequence[Lowering]:
    """A CONV_2D of rows where that is faster."""
    return [Lowering("rows", {}, partial(_of_rows, op, g))] if is_read_in_rows(op, g) else ()


def is_read_in_rows(op: View, g: Graph) -> bool:
    """Whether a CONV_2D reads a float image of few channels that exists channels-last only, with
    constant weights and no dilation of rows."""
    if not cpu(g.target):
        return False
    input, channels = op["input"], op["input"].shape[3]
    return (
        not input.is_quantized
        and 1 < channels <= _MOST_CHANNELS
        and op["filter"].is_constant
        and op["filter"].shape[3] == channels
        and op.options.dilation_w_factor == 1
        and is_known(*input.shape[1:3])
        and not g.is_in(input, Layout.FIRST)
    )


def _of_rows(op: View, g: Graph) -> None:
    """Conv of [N, 1, H, W * C] with [out, 1, kh, kw * C]."""
    input, filter, options = op["input"], op["filter"], op.options
    batch, height, width, channels = input.shape
    outputs, kh, kw, _ = filter.shape
    windows = image_windows(op, (kh, kw))
    assert windows is not None, "the sizes are known"
    (top, bottom), (left, right) = ((each.before, each.after) for each in windows)
    rows = hybrid_image(op, g, g.read(input), channels=3)
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
