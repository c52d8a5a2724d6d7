"""Weights around 0: OpenVINO multiplies these in 8 bits, and those with a zero point as floats."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import onnx_ir as ir

from tflite_ort.opmap.graph import Graph
from tflite_ort.schema import TensorType, TensorView

_INT8 = np.iinfo(np.int8)


def centred(g: Graph, filter: TensorView, *, may_repeat: bool) -> tuple[TensorView, list[int]]:
    """uint8 weights [..., in] as int8 around 0, and the input channels that are read again.

    A code less its zero point has 9 bits. What does not fit in 8, as a rule the one weight that
    the scale was made for, is the sum of two: the rest is the weight of another input channel, at
    the end, with the same values. Weights that cannot be had so come back as they are.

    Args:
        may_repeat: the filter's last dimension are all channels of the input.
    """
    data, quantization = filter.data, filter.quantization
    wanted = g.target.openvino and g.target.weights == "int8" and filter.type is TensorType.UINT8
    if not wanted or data is None or quantization is None or quantization.per_channel:
        return filter, []
    rest = data.astype(np.int16) - quantization.scalar_zero_point
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
    axis = g.constant([1], np.int64)
    slices = [
        g.op("Slice", value, g.constant([i], np.int64), g.constant([i + 1], np.int64), axis)
        for i in channels
    ]
    return g.op("Concat", value, *slices, axis=1)
