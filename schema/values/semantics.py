"""The arithmetic of TFLite's operators that translators, kernels and shape rules share."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, copysign, floor
from typing import Any

import numpy as np
import numpy.typing as npt

from tflite_ort.schema.file.element_types import ELEMENT_TYPES, TensorType
from tflite_ort.schema.file.enums import ActivationFunctionType, Padding
from tflite_ort.schema.file.errors import MalformedModel, ModelError
from tflite_ort.schema.file.layer_options import FakeQuantOptions, ResizeNearestNeighborOptions
from tflite_ort.schema.file.model import SparsityParameters
from tflite_ort.schema.file.sparse_levels import sparse_levels
from tflite_ort.schema.values.kept_tables import kept_table
from tflite_ort.schema.values.sizes import is_known, multiple, padded_size, unknown_size
from tflite_ort.schema.values.slices import StridedSlice as StridedSlice
from tflite_ort.schema.values.slices import strided_slice as strided_slice

# Sparse constants made dense.


def densify(values: Array, shape: Shape, sparsity: SparsityParameters) -> Array:
    """The dense tensor of `shape` that `values` (flat) and `sparsity` hold.

    Levels are walked outermost first; `offsets` are where each place of a level starts in the
    dense tensor. A dense level has the same places under every one above, a compressed level those
    that its segments and indices list.

    Raises:
        MalformedModel: the levels do not fit each other, the shape or the values.
    """
    levels = sparse_levels(shape, sparsity, values.size)
    dense = np.zeros(shape, values.dtype)
    if not dense.size:
        return dense
    offsets = np.zeros(1, np.int64)
    for level in levels:
        if level.counts is None or level.indices is None:
            offsets = (offsets[:, None] + np.arange(level.size) * level.stride).reshape(-1)
        else:
            offsets = np.repeat(offsets, level.counts) + level.indices * level.stride
    dense.reshape(-1)[offsets] = values.reshape(-1)[: offsets.size]
    return dense


Shape = tuple[int, ...]
Array = npt.NDArray[Any]

_OCTETS_AT_ONCE = 1 << 16
_ACTIVATION_BOUNDS: dict[ActivationFunctionType, tuple[float | None, float | None]] = {
    ActivationFunctionType.RELU: (0.0, None),
    ActivationFunctionType.RELU_N1_TO_1: (-1.0, 1.0),
    ActivationFunctionType.RELU6: (0.0, 6.0),
}


def conv_output_size(
    padding: Padding, size: int, kernel: int, stride: int, dilation: int = 1
) -> int:
    """Windows along one dimension: SAME ceil(size / stride), VALID those that fit whole."""
    check_window(padding, kernel, stride, dilation)
    if not is_known(size):
        covers = stride == 1 and (padding == Padding.SAME or kernel == 1)
        return size if covers else unknown_size()
    if padding == Padding.SAME:
        return (size + stride - 1) // stride
    return (size + stride - _effective(kernel, dilation)) // stride


def transposed_size(padding: Padding, size: int, cells: int, kernel: int, stride: int) -> int:
    """The output of a transposed convolution over `cells`, which has the padding of one of `size`.

    So XNNPACK does it, which looks at the size that a file says only once.
    """
    beyond = size - stride * conv_output_size(padding, size, kernel, stride)
    return padded_size(multiple(cells, stride), beyond)


def explicit_padding(
    padding: Padding, size: int, kernel: int, stride: int, dilation: int = 1
) -> tuple[int, int]:
    """(before, after) of one dimension; the odd cell of SAME goes after."""
    if (padding == Padding.VALID or kernel == 1) and not is_known(size):
        return 0, 0
    if stride == 1 and not is_known(size):
        total = _effective(kernel, dilation) - 1
        return total // 2, total - total // 2
    windows = conv_output_size(padding, size, kernel, stride, dilation)
    total = max(0, (windows - 1) * stride + _effective(kernel, dilation) - size)
    return total // 2, total - total // 2


def within_reach(padding: Padding, size: int, kernel: int) -> int:
    """The kernel of a pool along one dimension, where it is larger than every window can use: with
    SAME padding, each window of twice the size and more holds all cells."""
    if padding != Padding.SAME or not is_known(size):
        return kernel
    return min(kernel, max(2 * size, 1))


def _effective(kernel: int, dilation: int) -> int:
    return (kernel - 1) * dilation + 1


def check_window(padding: Padding, kernel: int, stride: int, dilation: int = 1) -> None:
    """Refuses windows along one dimension that cover nothing or do not move on."""
    if padding not in (Padding.SAME, Padding.VALID):
        raise ModelError(f"padding {padding} is neither SAME nor VALID")
    if stride <= 0 or dilation <= 0 or (is_known(kernel) and kernel <= 0):
        raise ModelError(
            f"kernel {kernel}, stride {stride} and dilation {dilation} have to be positive"
        )


def normalized_axis(axis: int, rank: int) -> int:
    """`axis` counted from the front."""
    if not -rank <= axis < rank:
        raise ModelError(f"Invalid axis index. Axis {axis} is outside a tensor of rank {rank}")
    return int(axis) % rank


def normalized_axes(axes: Sequence[int] | Array, rank: int) -> tuple[int, ...]:
    """`axes` counted from the front, each once, ascending; none for a scalar."""
    if rank == 0:
        return ()
    return tuple(sorted({normalized_axis(int(axis), rank) for axis in np.ravel(axes)}))


def quantized_range(type: TensorType) -> tuple[int, int]:
    """The lowest and highest code of a quantized type."""
    codes = ELEMENT_TYPES[type].codes
    if codes is None:
        raise ModelError(f"{TensorType(type).name} is not a quantized type")
    return codes


# The fused activations that clamp nothing. Most operators ignore them.
UNCLAMPED = frozenset({ActivationFunctionType.TANH, ActivationFunctionType.SIGN_BIT})


def activation_bounds(function: ActivationFunctionType) -> tuple[float | None, float | None]:
    """What a fused activation clamps real values to; TANH and SIGN_BIT clamp nothing."""
    return _ACTIVATION_BOUNDS.get(function, (None, None))


_BEYOND_CODES = 2.0**30  # also with a zero point still an INT32


def quantized_activation_bounds(
    function: ActivationFunctionType, type: TensorType, scale: float, zero_point: int
) -> tuple[int, int]:
    """What a fused activation clamps codes to: q(f) = zero_point + round_half_away(f / scale)."""
    lowest, highest = quantized_range(type)
    low, high = activation_bounds(function)
    if low is not None:
        lowest = max(lowest, zero_point + rounded_ratio(low, scale))
    if high is not None:
        highest = min(highest, zero_point + rounded_ratio(high, scale))
    return lowest, highest


def rounded_ratio(value: float, scale: float) -> int:
    """`value` in units of `scale`, halves away from zero; cut to what an INT32 holds."""
    with np.errstate(over="ignore"):
        ratio = float(np.float32(value) / np.float32(scale))
    return int(copysign(floor(min(abs(ratio), _BEYOND_CODES) + 0.5), ratio))


def fake_quant_range(options: FakeQuantOptions) -> tuple[np.float32, np.float32, np.float32]:
    """(step, lowest, highest) of FAKE_QUANT: its range moved so that 0 is one of the steps."""
    if options.narrow_range or not 1 <= options.num_bits <= 16:
        raise ModelError(
            f"{options.num_bits} bits, narrow range {options.narrow_range}: "
            "expected 1 to 16 bits, the whole range"
        )
    if not options.min < options.max:
        raise ModelError(f"range from {options.min} to {options.max}")
    low, high = np.float32(options.min), np.float32(options.max)
    steps = np.float32(2**options.num_bits - 1)
    step = (high - low) / steps
    zero = np.float32(floor(min(max(float(-low / step), 0.0), float(steps)) + 0.5))
    return step, -zero * step, (steps - zero) * step


def resize_ratio(old: int, new: int, align_corners: bool) -> np.float32:
    """Input pixels per output pixel along a resized dimension, in float32 as TFLite has it."""
    steps = (old - 1, new - 1) if align_corners and new > 1 else (old, new)
    return np.float32(steps[0]) / np.float32(steps[1])


def nearest_indices(
    old: int, new: int, options: ResizeNearestNeighborOptions
) -> npt.NDArray[np.int64]:
    """The input pixel that each of `new` output pixels of RESIZE_NEAREST_NEIGHBOR takes."""
    half = np.float32(0.5 if options.half_pixel_centers else 0)
    ratio = resize_ratio(old, new, options.align_corners)
    source = (np.arange(new, dtype=np.float32) + half) * ratio
    whole = np.floor(source + np.float32(0.5)) if options.align_corners else np.floor(source)
    return np.asarray(np.clip(whole, 0, old - 1), np.int64)


def pack(codes: Array, bits: int) -> Array:
    """Values of 2 or 4 bits as flat bytes, the first in the low bits; the last byte is filled with
    zeros."""
    each = 8 // bits
    flat = codes.reshape(-1)
    if rest := -flat.size % each:
        flat = np.append(flat, np.zeros(rest, codes.dtype))
    fields = flat.view(np.uint8)
    octets = fields[::each] & np.uint8(2**bits - 1)
    for place in range(1, each):
        field = fields[place::each] & np.uint8(2**bits - 1)
        octets |= field << np.uint8(bits * place)
    return octets


def unpack(packed: Array, count: int, bits: int, *, signed: bool = True) -> Array:
    """`count` values of 2 or 4 bits from flat bytes, the low bits first, as int8 (uint8 if
    unsigned)."""
    octets = packed.view(np.uint8).reshape(-1)[: ceil(count * bits / 8)]
    if octets.size * 8 < count * bits:
        raise MalformedModel(
            f"{packed.size} bytes hold {octets.size * 8 // bits} of {count} {bits}-bit values"
        )
    fields = _fields_of_octets(bits, signed)
    words = np.empty(octets.size, fields.dtype)
    for start in range(0, octets.size, _OCTETS_AT_ONCE):  # numpy makes indices of 8 bytes of them
        part = slice(start, start + _OCTETS_AT_ONCE)
        np.take(fields, octets[part], out=words[part], mode="clip")
    return words.view(np.int8 if signed else np.uint8)[:count]


@kept_table
def _fields_of_octets(bits: int, signed: bool) -> Array:
    """For each byte, a word whose bytes are the values of `bits` bits that are in it."""
    octets = np.arange(256, dtype=np.uint8)[:, np.newaxis]
    above = np.arange(8 - bits, -1, -bits, dtype=np.uint8)  # so many bits are above a value
    kind = np.int8 if signed else np.uint8  # shifted back, an int8 keeps its sign
    fields = (octets << above).view(kind) >> kind(8 - bits)
    return fields.view(f"u{8 // bits}").reshape(-1)
