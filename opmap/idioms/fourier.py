"""Fourier transforms as nodes, and how long they may be there."""

from __future__ import annotations

from tflite_ort.opmap.graph import Graph
from tflite_ort.opmap.onnx_graph import ir

# Up to this length a product with all waves is faster than the DFT of ONNX Runtime's CPU. Longer
# rows are numpy's there: several times as fast as that DFT, and in float64 as TFLite has them.
BY_PRODUCT = 512


def transformed(
    g: Graph, value: ir.Value, length: int | ir.Value, axis: int, *, onesided: int | None
) -> ir.Value:
    """The DFT of `length` numbers along an axis of `value`, whose last axis has the real part or
    both; with `onesided` the first half of the frequencies."""
    length = length if isinstance(length, ir.Value) else g.ints(length)
    return g.op("DFT", value, length, g.ints(axis), onesided=onesided)
