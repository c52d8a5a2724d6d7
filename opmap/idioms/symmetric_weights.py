"""Symmetric weights: int8 codes whose zero point is 0, made of uint8 codes with another zero point.

For a `Target` with `symmetric_weights`, which multiplies other weights as floats.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tflite_ort.base.records import replace
from tflite_ort.opmap.graph import Graph
from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.schema import TensorType, TensorView

_INT8 = np.iinfo(np.int8)


def symmetric(g: Graph, filter: TensorView, *, may_repeat: bool) -> tuple[TensorView, list[int]]:
    """uint8 weights [..., in] as int8 with zero point 0, and the input channels to read twice.

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
