"""Depthwise convolutions of codes over a multiple of 16 channels, the last ones of zeros.

ONNX Runtime's kernel for them takes two to three times as long for other numbers of channels. The
convolution before gives the channels, which costs it next to nothing, and the one after does not
read them. So nothing is copied.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from tflite_ort.base.records import replace
from tflite_ort.opmap.graph import Domain, Graph, Layout
from tflite_ort.opmap.graph.choices import Lowering
from tflite_ort.opmap.rules.channels import FREE, Order, in_channels
from tflite_ort.opmap.rules.rule import Rest, View
from tflite_ort.schema import Op, TensorType, TensorView
from tflite_ort.schema.values.sizes import is_known

# What is noted of tensors: with more channels, and how these are made when somebody wants them.
_WIDE, _OFFER = "wide channels", "offered channels"
_STEP = 16
# A layer that collects fewer runs of bytes is not worth another one.
_FEWEST_RUNS = 1000


def over_wide(op: View, g: Graph, rest: Rest) -> Sequence[Lowering]:
    """A convolution that reads the wider copy of its input, if there is one. A CONV_2D of codes
    offers later depthwise convolutions a wider copy of its result."""
    if op.op is Op.DEPTHWISE_CONV_2D:
        wide = _depthwise_over_wide(op, g)
        return () if wide is op else [Lowering("wide", {}, partial(_narrowed, op, wide, g, rest))]
    over, offers = _convolution_of_wide(op, g), _may_offer(op, g)
    if not offers:
        return () if over is op else [Lowering("wide", {}, partial(rest, over))]

    def build() -> None:
        rest(over)
        channels = _rounded_up(op.output.shape[3])
        shape = (*op.output.shape[:3], channels)
        wide = replace(op.output, index=~op.output.index, shape=shape)
        g.note(_OFFER, op.output, (wide, g.later(partial(rest, _of_outputs(over, wide)))))

    return [Lowering("offered", {}, build)]


def _may_offer(op: View, g: Graph) -> bool:
    """Whether the result of CONV_2D can have more channels, of codes."""
    channels = op.output.shape[3]
    if not (_multiplies_signed(op, g) and is_known(channels) and channels % _STEP):
        return False
    return not any(tensor.is_variable for tensor in (*op.present_inputs(), op.output))


def _depthwise_over_wide(op: View, g: Graph) -> View:
    """DEPTHWISE_CONV_2D over more channels where these are offered and save time, else `op`."""
    input, output = op["input"], op.output
    channels, kernel = output.shape[3], op["filter"].shape[1:3]
    if not (_multiplies_signed(op, g) and is_known(*input.shape[3:], *output.shape[1:])):
        return op
    runs = output.shape[1] * output.shape[2] * kernel[0] * kernel[1]
    if input.shape[3] != channels or channels < _STEP or runs < _FEWEST_RUNS:
        return op
    wide = _offered(g, input) if channels % _STEP else None
    return op if wide is None else _of_channels(op, wide)


def _narrowed(op: View, wide: View, g: Graph, rest: Rest) -> None:
    """Translate `wide`, made by `_depthwise_over_wide`, and record its result as that of `op`."""
    rest(wide)
    codes = g.read(wide.output, layout=Layout.FIRST, domain=Domain.STORED)
    ends = g.ints([0]), g.ints([op.output.shape[3]]), g.ints([1])
    g.write(op.output, g.op("Slice", codes, *ends), layout=Layout.FIRST, domain=Domain.STORED)
    g.note(_WIDE, op.output, wide.output)


def _offered(g: Graph, tensor: TensorView) -> TensorView | None:
    """The wider copy of `tensor`, which is made now if it was offered; None without an offer."""
    offer: tuple[TensorView, Callable[[], None]] | None = g.noted(_OFFER, tensor)
    if offer is not None:
        wide, make = offer
        make()
        g.note(_OFFER, tensor, None)
        g.note(_WIDE, tensor, wide)
    return _with_more_channels(g, tensor)


def _with_more_channels(g: Graph, tensor: TensorView) -> TensorView | None:
    found: TensorView | None = g.noted(_WIDE, tensor)
    return found


def _convolution_of_wide(op: View, g: Graph) -> View:
    """CONV_2D over the wider copy of its input, else `op`."""
    input, filter = op["input"], op["filter"]
    wide = _with_more_channels(g, input)
    if wide is None or not _multiplies_signed(op, g) or filter.shape[3] != input.shape[3]:
        return op
    return with_inputs(op, input=wide, filter=_widened(filter, 3, wide.shape[3]))


def multiplies_codes(op: View, g: Graph) -> bool:
    """Whether ONNX Runtime's kernels for the CPU multiply codes by constant ones of the file."""
    input = op["input"].type
    if input not in (TensorType.INT8, TensorType.UINT8) or op.output.type is not input:
        return False
    filter, bias = op["filter"], op.get("bias")
    return (
        g.target.cpu_kernels
        and filter.type is TensorType.INT8
        and filter.is_constant
        and filter.is_quantized
        and (bias is None or bias.is_constant)
    )


def _multiplies_signed(op: View, g: Graph) -> bool:
    """Whether they multiply by int8 weights: for unsigned ones wide channels save no time."""
    return g.target.weights == "int8" and multiplies_codes(op, g)


def _of_outputs(op: View, wide: TensorView) -> View:
    """CONV_2D with more output channels."""
    count = wide.shape[3]
    bias = op.get("bias")
    filter = _widened(op["filter"], 0, count)
    wider = with_inputs(op, filter=filter, bias=None if bias is None else _widened(bias, 0, count))
    return replace(wider, outputs=(wide,))


def _of_channels(op: View, input: TensorView) -> View:
    """DEPTHWISE_CONV_2D over more channels."""
    count, bias = input.shape[3], op.get("bias")
    output = replace(op.output, index=~op.output.index, shape=(*op.output.shape[:3], count))
    filter = _widened(op["filter"], 3, count)
    wider = with_inputs(
        op, input=input, filter=filter, bias=None if bias is None else _widened(bias, 0, count)
    )
    return replace(wider, outputs=(output,))


def with_inputs(op: View, **inputs: TensorView | None) -> View:
    """`op` with other inputs under some of its names."""
    given = zip(op.names, op.inputs, strict=False)
    return replace(op, inputs=tuple(inputs.get(name, tensor) for name, tensor in given))


def _widened(tensor: TensorView, axis: int, count: int) -> TensorView:
    """A constant with zeros up to `count` elements along an axis."""
    assert tensor.data is not None
    channels = tensor.data.shape[axis]
    return with_channels(tensor, axis, [*range(channels), *[FREE] * (count - channels)])


def with_channels(tensor: TensorView, axis: int, order: Order) -> TensorView:
    """A constant whose channels along an axis have this order, with zeros at free places."""
    data, quantization, places = tensor.data, tensor.quantization, np.asarray(order, np.intp)
    assert data is not None
    if quantization is not None and quantization.per_channel and quantization.axis == axis:
        scale, zero_point = quantization.scale[places], quantization.zero_point[places]
        quantization = replace(quantization, scale=scale, zero_point=zero_point)
    codes = in_channels(data, axis, places, tensor.zero)
    return replace(tensor, constant=codes, shape=codes.shape, quantization=quantization)


def _rounded_up(channels: int) -> int:
    return -(-channels // _STEP) * _STEP
