"""Channels in another order, as a channel shuffle and a SLICE give them.

A convolution of single cells over 8-bit codes is one over the channels as they stood before, by
zeros among the weights. So nothing is moved. One of floats, of any window, is one by weights in
another order, if no channel is left out. ONNX Runtime takes 0.5 ns to move a code, and multiplies
150 codes in a nanosecond with VNNI, 80 to 130 of them with AVX2 alone.

A depthwise convolution gives its channels in the order in which they stood before, if convolutions
of single cells read them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from tflite_ort.base.records import record, replace
from tflite_ort.opmap.graph import Domain, Graph, Layout
from tflite_ort.opmap.graph.choices import Lowering
from tflite_ort.opmap.graph.rows import RESHAPES
from tflite_ort.opmap.idioms.by_code import every_code
from tflite_ort.opmap.idioms.rescaled_codes import UNITS, Codes, requantized
from tflite_ort.opmap.rules.channels import FREE
from tflite_ort.opmap.rules.operators.wide_channels import (
    multiplies_codes,
    with_channels,
    with_inputs,
)
from tflite_ort.opmap.rules.rule import Rest, View
from tflite_ort.schema import Op, TensorType, TensorView
from tflite_ort.schema.arithmetic.fixed_point import saturate
from tflite_ort.schema.file.element_types import NUMPY_DTYPE
from tflite_ort.schema.values.constant_slices import constant_slice
from tflite_ort.schema.values.sizes import Shape, is_known

Array = npt.NDArray[Any]
_PICKED = "picked channels"
_BYTES = frozenset({TensorType.INT8, TensorType.UINT8})
_SLICES = (Op.SLICE, Op.STRIDED_SLICE)
# So many operators in a row are looked through.
_REACH = 8
# Of an image; more numbers take too long to follow.
_MOST_NUMBERS = 1 << 18
# A product by more of them takes longer than to move a code.
_MOST_CHANNELS = 192
# More of them for each cell take longer than what they save.
_MOST_PRODUCTS = 10_000


@record(eq=False)
class PickedChannels:
    """An image that is channels of another one.

    Args:
        channels: one of `source` for each channel of the image.
    """

    source: TensorView
    channels: npt.NDArray[np.intp]


def over_source(op: View, g: Graph, rest: Rest) -> Sequence[Lowering]:
    """A convolution over what its input is channels of, see `_convolution_of_source` and
    `_depthwise_of_source`."""
    if op.op is Op.CONV_2D:
        source = _convolution_of_source(op, g)
        return () if source is op else [Lowering("source", {}, partial(rest, source))]
    found = _depthwise_of_source(op, g)
    if found is None:
        return ()
    over, picked = found

    def build() -> None:
        rest(over)
        _write_picked(op.output, picked, g)

    return [Lowering("source", {}, build)]


def _convolution_of_source(op: View, g: Graph) -> View:
    """CONV_2D over what its input is channels of, where that takes no longer, else `op`."""
    filter = op["filter"]
    reads = _reads_cells(op, g) or _multiplies_floats(op)
    picked = _picked(g, op["input"], filter.shape[0]) if reads else None
    if picked is None:
        return op
    if filter.type is TensorType.FLOAT32 and picked.source.shape[3] > filter.shape[3]:
        return op
    order = np.full(picked.source.shape[3], FREE)
    order[picked.channels] = np.arange(len(picked.channels))
    return with_inputs(op, input=picked.source, filter=with_channels(filter, 3, order))


def _depthwise_of_source(op: View, g: Graph) -> tuple[View, PickedChannels] | None:
    """DEPTHWISE_CONV_2D over what its input is channels of, in another order, and the channels of
    its result that the result of `op` is."""
    input, output, filter, bias = op["input"], op.output, op["filter"], op.get("bias")
    readers = g.uses.readers(output)
    if not (multiplies_codes(op, g) and input.shape[3] == filter.shape[3] and readers):
        return None
    if not all(each.op is Op.CONV_2D and _reads_cells(each, g) for each in readers):
        return None
    picked = _picked(g, input, 0)
    if picked is None or picked.source.shape[3] != input.shape[3]:
        return None
    order = np.argsort(picked.channels)
    made = replace(output, index=~output.index)
    over = with_inputs(
        op,
        input=picked.source,
        filter=with_channels(filter, 3, order),
        bias=None if bias is None else with_channels(bias, 0, order),
    )
    return replace(over, outputs=(made,)), PickedChannels(made, picked.channels)


def _write_picked(output: TensorView, picked: PickedChannels, g: Graph) -> None:
    """Record channels of a tensor as `output`. Convolutions of single cells read them where they
    stand; the node is for others."""
    channels = picked.channels.tolist()
    codes = g.read(picked.source, layout=Layout.FIRST, domain=Domain.STORED)
    codes = g.op("Gather", codes, g.ints(channels), axis=1)
    g.write(output, codes, layout=Layout.FIRST, domain=Domain.STORED)
    g.note(_PICKED, output, picked)


def _reads_cells(op: View, g: Graph) -> bool:
    """Whether CONV_2D multiplies all channels of single cells, in codes."""
    filter = op["filter"]
    single = filter.shape[1:3] == (1, 1) and filter.shape[3] == op["input"].shape[3]
    return single and multiplies_codes(op, g)


def _multiplies_floats(op: View) -> bool:
    """Whether CONV_2D multiplies all channels of floats by constant floats."""
    input, filter = op["input"], op["filter"]
    floats = input.type is filter.type is TensorType.FLOAT32
    return floats and filter.is_constant and filter.shape[3] == input.shape[3]


def requantized_source(op: View, g: Graph, rest: Rest) -> Sequence[Lowering]:
    """QUANTIZE of channels in another order as a convolution by ones, where one gives the codes
    that are wanted."""
    input, output = op["input"], op.output
    if input.type not in _BYTES or output.type is not input.type or input.rank != 4:
        return ()
    if _coded_alike(input, output) or not output.is_quantized:
        return ()
    picked = _picked(g, input, input.shape[3])
    if picked is None:
        return ()
    source, target = Codes.of(input), Codes.of(output)
    ratio = source.scale / target.scale
    wanted = requantized(source, target, ratio)
    steps = every_code(input.type).astype(np.float32) - np.float32(input.zero)
    exact = (
        scale
        for scale in (np.float32(ratio / unit) for unit in UNITS)
        if np.array_equal(saturate(np.rint(steps * scale) + output.zero, wanted.dtype), wanted)
    )
    scale = next(exact, None)
    return [] if scale is None else [Lowering("ones", {}, partial(_by_ones, op, g, picked, scale))]


def moved_together(op: View, g: Graph, rest: Rest) -> Sequence[Lowering]:
    """Channels in another order by one node in place of all that move them, if an operator reads
    them that does not take them where they stand: bytes by a convolution of ones, floats by a
    Gather of planes."""
    input, output = op.inputs[0], op.output
    if input is None or output.rank != 4 or input.type not in _BYTES | {TensorType.FLOAT32}:
        return ()
    if input.type in _BYTES and not g.target.exact_integers:
        return ()
    picked = _picked(g, output, 0)
    if picked is None:
        return ()
    if input.type is TensorType.FLOAT32:
        return [Lowering("planes", {}, partial(_write_picked, output, picked, g))]
    if picked.source.shape[3] > _MOST_CHANNELS:
        return ()
    return [Lowering("ones", {}, partial(_by_ones, op, g, picked, np.float32(1)))]


def _by_ones(op: View, g: Graph, picked: PickedChannels, scale: np.float32) -> None:
    dtype, channels = NUMPY_DTYPE[g.weight_type], picked.source.shape[3]
    ones = np.eye(channels, dtype=dtype)[picked.channels].reshape(-1, channels, 1, 1)
    weights = g.op(
        "DequantizeLinear",
        g.constants.add(ones, "ones"),
        g.constants.add(np.asarray(scale), "ones_scale"),
        g.constants.add(np.zeros((), dtype), "ones_zero_point"),
    )
    image = g.read_steps(picked.source, layout=Layout.FIRST)
    units = g.op("Conv", image, weights, kernel_shape=[1, 1])
    made = g.op("QuantizeLinear", units, g.constant(np.float32(1)), g.zero_code(op.output))
    g.write(op.output, made, layout=Layout.FIRST, domain=Domain.STORED)


def _picked(g: Graph, tensor: TensorView, outputs: int) -> PickedChannels | None:
    """What `tensor` is channels of, in another order, if a convolution to so many outputs takes
    less time than to move them."""
    noted: PickedChannels | None = g.noted(_PICKED, tensor)
    if noted is not None:
        return noted
    chain, source = list[View](), tensor
    while len(chain) < _REACH and (op := g.uses.maker(source)) is not None:
        given = _moved(op)
        if given is None:
            break
        chain.append(op)
        source = given
    shapes = source.shape, tensor.shape
    if not chain or source.is_variable or not (g.has(source) and _coded_alike(source, tensor)):
        return None
    if not all(len(shape) == 4 and is_known(*shape) for shape in shapes):
        return None
    if shapes[0][:3] != shapes[1][:3] or not 0 < math.prod(source.shape) <= _MOST_NUMBERS:
        return None
    if (shapes[0][3] - shapes[1][3]) * outputs > _MOST_PRODUCTS:
        return None
    channels = _channels(chain[::-1], source.shape)
    return None if channels is None else PickedChannels(source, channels)


def _coded_alike(a: TensorView, b: TensorView) -> bool:
    """Whether the elements of both mean the same numbers: operators that move them do not look."""
    quantization = a.quantization
    if a.type is TensorType.FLOAT32:
        return b.type is a.type
    return a.type is b.type and quantization is not None and quantization.equals(b.quantization)


def _channels(chain: Sequence[View], shape: Shape) -> npt.NDArray[np.intp] | None:
    """The channels of an image that `chain` takes, the same in all cells and not as they stood."""
    numbers = np.arange(math.prod(shape))
    moved = numbers.reshape(shape)
    for op in chain:
        moved = _after(op, moved)
    channels = moved[0, 0, 0]
    if channels.max(initial=0) >= shape[3] or (np.diff(channels) == 1).all():
        return None
    cells = numbers[:: shape[3]].reshape(*shape[:3], 1)
    return channels if np.array_equal(moved, cells + channels) else None


def _moved(op: View) -> TensorView | None:
    """What `op` moves elements of; None of other operators."""
    source, *rest = op.inputs
    if op.op in RESHAPES:
        return source if is_known(*op.output.shape) else None
    if op.op is Op.TRANSPOSE:
        return source if rest[0] is not None and rest[0].is_constant else None
    if op.op is Op.GATHER:
        return source if _gathered(op) is not None else None
    return source if op.op in _SLICES and constant_slice(op) is not None else None


def _gathered(op: View) -> int | None:
    """The place that GATHER takes along its axis, if it is a constant one."""
    source, places = op.present_inputs()
    axis, data = op.options.axis, places.data
    single = data is not None and data.size == 1 and places.rank == 0
    if not single or data is None or op.options.batch_dims or not 0 <= axis < source.rank:
        return None
    place = int(data.item())
    return place if is_known(*source.shape) and 0 <= place < source.shape[axis] else None


def _after(op: View, numbers: Array) -> Array:
    """What `op`, of which `_moved` knows, makes of an array."""
    if op.op is Op.TRANSPOSE:
        order = op.inputs[1]
        assert order is not None and order.data is not None
        numbers = numbers.transpose(order.data.reshape(-1))
    elif op.op in _SLICES:
        cut = constant_slice(op)
        assert cut is not None
        numbers = numbers[cut.slices]
    elif op.op is Op.GATHER:
        place = _gathered(op)
        assert place is not None
        numbers = numbers.take(place, axis=op.options.axis)
    return numbers.reshape(op.output.shape)
