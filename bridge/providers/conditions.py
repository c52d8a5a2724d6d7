"""Conditions under which providers compute operators wrongly: what the rows of `traits` ask of an
operator."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tflite_ort.base.optional import late
from tflite_ort.schema import OperatorView, TensorType

with late:
    from tflite_ort.opmap.cells import svdf_integer

View = OperatorView[Any]
_MOST = 127  # of signed codes of 8 bits
_SMALL = 1e-9
_IMAGE_AXES = 4
_MADE = ("QUANTIZE", "DEQUANTIZE")
# What graphs compute of codes where floats are codes times a scale.
_OF_CODES = (
    *("LOG_SOFTMAX", "EXPAND_DIMS", "MIRROR_PAD", "PAD", "RESHAPE", "RESIZE_NEAREST_NEIGHBOR"),
    *("SLICE", "SQUEEZE", "STRIDED_SLICE", "TRANSPOSE"),
)


def on(*types: TensorType) -> Callable[[View], bool]:
    """Whether a tensor that is not constant has one of the types."""

    def found(op: View) -> bool:
        tensors = (*op.present_inputs(), *op.outputs)
        return any(tensor.type in types and not tensor.is_constant for tensor in tensors)

    return found


def computes_floats(op: View) -> bool:
    """Whether it reads or makes floats, and does more than to make codes of them or the reverse, or
    what graphs have of codes."""
    floats = on(TensorType.FLOAT16, TensorType.FLOAT32, TensorType.COMPLEX64)
    plain = all(x.type is TensorType.FLOAT32 for x in (*op.inputs[:1], *op.outputs) if x)
    return not (op.op.name in _MADE or (op.op.name in _OF_CODES and plain)) and floats(op)


def plain_integers(op: View) -> bool:
    """Whether it makes integers that are no codes: the scale of 32-bit ones means nothing."""
    made = op.output
    return made.dtype.kind in "iu" and (made.dtype.itemsize > 2 or not made.is_quantized)


def mixed_scales(op: View) -> bool:
    """Whether its codes have several scales or zero points."""
    found = (each.quantization for each in (*op.present_inputs(), *op.outputs))
    pairs = {(x.scale.tobytes(), x.zero_point.tobytes()) for x in found if x is not None}
    return len(pairs) > 1


def small_scales(op: View) -> bool:
    """Whether a step of 16-bit codes is smaller than those of sums of an NPU."""
    tensors = (*op.present_inputs(), *op.outputs)
    wide = (x for x in tensors if x.type is TensorType.INT16 and x.quantization is not None)
    return any(x.quantization.scale.min(initial=1) < _SMALL for x in wide if x.quantization)


def counted(unit: int, least: float) -> Callable[[View], float]:
    """`least` quanta, and two more for so many products of a code with a code as `unit` says: the
    device adds up in steps of them, from sums that it rounds and a bias that it rounds."""

    def found(op: View) -> float:
        # The first input of a TRANSPOSE_CONV is the size of its result.
        first, second = op.inputs[1:3] if op.op.name == "TRANSPOSE_CONV" else op.inputs[:2]
        made = op.output
        if first is None or second is None:
            return least
        scales = (first.quantization, second.quantization, made.quantization)
        if any(each is None for each in scales):
            return least
        a, b, result = (float(each.scale.max()) for each in scales if each is not None)
        return least + 2 * unit * a * b / result

    return found


def summed(unit: int) -> Callable[[View], float]:
    """One quantum, and two for so many of the terms that sums are made of in `paired_sums`: codes
    times equal weights."""

    def found(op: View) -> float:
        given, axes = op.present_inputs()[:2]
        scales = given.quantization, op.output.quantization
        if axes.data is None or None in scales:
            return 1.0
        terms = np.prod([given.shape[axis] for axis in set((axes.data % given.rank).ravel())])
        count = terms if op.op.name == "MEAN" else 1
        source, made = (each.scalar_scale for each in scales if each is not None)
        return float(1 + 2 * unit * source / (_MOST * count * made))

    return found


def part_of_one(bits: int) -> Callable[[View], float]:
    """The quanta in 2**-bits."""

    def found(op: View) -> float:
        made = op.output.quantization
        return 1.0 if made is None else 2.0**-bits / made.scalar_scale

    return found


def narrowed_weights(op: View) -> float:
    """One quantum, and what it makes that the weights of a channel are scaled to 8 bits, where one
    of them, less its zero point, needs more: twice the deviation of inputs as far from zero as can
    be, with signs that do not depend on the weights."""
    image, filter, made = op.inputs[0], op.inputs[1], op.output
    if image is None or filter is None or filter.data is None:
        return 1.0
    scales = (image.quantization, filter.quantization, made.quantization)
    if None in scales or filter.type is not TensorType.UINT8:
        return 1.0
    x, w, y = (each for each in scales if each is not None)
    codes = filter.data.astype(np.float64) - w.scalar_zero_point
    channels = np.moveaxis(codes, -1 if op.op.name == "DEPTHWISE_CONV_2D" else 0, 0)
    rows = channels.reshape(len(channels), -1)
    largest = np.abs(rows).max(axis=1, keepdims=True, initial=0)
    unit = np.maximum(largest, _MOST) / _MOST
    changed = np.linalg.norm(np.rint(rows / unit) * unit - rows, axis=1).max(initial=0)
    farthest = max(x.scalar_zero_point, 255 - x.scalar_zero_point)
    return float(1 + 2 * changed * farthest * x.scalar_scale * w.scalar_scale / y.scalar_scale)


def odd_channels(op: View) -> bool:
    """Multiples of 3 but not of 4 into multiples of 4, with windows of more than one cell."""
    filters = op.inputs[1]
    if filters is None or filters.dynamic:
        return True
    outputs, *window, channels = filters.shape
    odd = channels > 3 and channels % 3 == 0 and channels % 4 != 0
    return odd and outputs % 4 == 0 and tuple(window) != (1, 1)


def lacks(position: int) -> Callable[[View], bool]:
    """Whether an input is absent."""
    return lambda op: len(op.inputs) <= position or op.inputs[position] is None


def backwards(op: View) -> bool:
    """Whether a slice has a negative stride, or may have one."""
    strides = op.inputs[3]
    return strides is None or strides.data is None or bool((strides.data < 0).any())


def computed(position: int) -> Callable[[View], bool]:
    """Whether an input is made by the model, or given to it."""

    def found(op: View) -> bool:
        tensor = op.inputs[position]
        return tensor is not None and not tensor.is_constant

    return found


def hybrid(op: View) -> bool:
    """Whether activations of floats meet weights of codes."""
    data, weights = op.inputs[0], op.inputs[1]
    if data is None or weights is None or data.type is not TensorType.FLOAT32:
        return False
    return weights.is_quantized and weights.type is not TensorType.FLOAT32


def wide_codes(op: View) -> bool:
    """Whether the first input or result are codes of 16 bits."""
    tensors = (*op.inputs[:1], *op.outputs[:1])
    found = (each for each in tensors if each is not None and each.type is TensorType.INT16)
    return any(each.is_quantized for each in found)


def wide_of_many_axes(op: View) -> bool:
    """Whether it reads codes of 16 bits that have more than four axes."""
    return wide_codes(op) and op.present_inputs()[0].rank > _IMAGE_AXES


def far_sums(op: View) -> bool:
    """Whether sums of an SVDF of codes, with the 24 bits of a float, may be half a quantum off."""
    if not op["input"].is_quantized or op["weights_time"].data is None:
        return op["input"].is_quantized
    quanta = svdf_integer.largest_sum(op) * float(svdf_integer.output_multiplier(op))
    return quanta * 2.0**-23 > 1 / 2


def peepholes(op: View) -> bool:
    """Whether gates of an LSTM see the state of its cells."""
    names = (name for name in op.names if "cell_to_" in name)
    return any(op.get(name) is not None for name in names)


def transforms_columns(op: View) -> bool:
    """Whether an RFFT2D transforms more than rows."""
    lengths = op["fft_length"].data
    return lengths is None or int(lengths.ravel()[0]) != 1


def unsized(op: View) -> bool:
    """Whether a tensor has no elements, or may turn out to have none."""
    tensors = (*op.present_inputs(), *op.outputs)
    return any(tensor.dynamic or 0 in tensor.shape for tensor in tensors)


def symmetric(op: View) -> bool:
    """Whether a MIRROR_PAD repeats the edge."""
    return bool(op.options.mode.name == "SYMMETRIC")


def sorts_no_rows(op: View) -> bool:
    """Whether TopK may sort rows of which there are none: those of TOPK_V2, of extremes of 64-bit
    integers, and of the scores of a detector."""
    reduces = op.op.name in ("REDUCE_MAX", "REDUCE_MIN")
    if reduces and op.output.type is not TensorType.INT64:
        return False
    return any(tensor.dynamic or 0 in tensor.shape for tensor in op.present_inputs())
