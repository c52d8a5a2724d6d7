"""Codes with scales that no tensor of the file has, for nodes between pairs.

An NPU takes no node whose codes have several types. Where 8-bit numbers meet 16-bit ones they
become finer codes of 16 bits first.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tflite_ort.base.records import record
from tflite_ort.opmap.graph import Graph
from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.schema import TensorType, TensorView, Untranslatable
from tflite_ort.schema.file.element_types import NUMPY_DTYPE

Array = npt.NDArray[Any]

# The bits that finer codes have behind the point: 8-bit codes less their zero points have 8 bits
# and a sign.
FINER = 7
# The highest code of weights.
WEIGHT = 127


@record
class CodeScale:
    """How numbers stand in codes."""

    unit: float
    type: TensorType = TensorType.INT16
    zero: int = 0

    @classmethod
    def of(cls, tensor: TensorView) -> CodeScale:
        """The scale of the codes that the graph has for an 8-bit tensor."""
        moved = 128 if tensor.type is TensorType.INT8 else 0
        return cls(unit_of(tensor), TensorType.UINT8, tensor.zero + moved)

    @property
    def filed(self) -> CodeScale:
        """The scale of an int8 tensor's codes in the file, from that of its codes in the graph."""
        return CodeScale(self.unit, TensorType.INT8, self.zero - 128)

    @property
    def finer(self) -> CodeScale:
        """The scale of 16-bit codes of the same numbers."""
        return CodeScale(self.unit * 2.0**-FINER)

    def codes(self, g: Graph, value: ir.Value) -> ir.Value:
        """The codes of real numbers."""
        return g.op("QuantizeLinear", value, *self._parameters(g))

    def reals(self, g: Graph, codes: ir.Value) -> ir.Value:
        """The numbers that codes stand for."""
        return g.op("DequantizeLinear", codes, *self._parameters(g))

    def constant(self, g: Graph, numbers: Array) -> ir.Value:
        """Constant numbers as codes that become reals."""
        codes = np.rint(numbers / self.unit).astype(NUMPY_DTYPE[self.type])
        return self.reals(g, g.constants.add(codes, "numbers"))

    def _parameters(self, g: Graph) -> tuple[ir.Value, ir.Value]:
        zero = np.asarray(self.zero, NUMPY_DTYPE[self.type])
        return g.constant(np.float32(self.unit)), g.constant(zero)


def multiplied(
    g: Graph,
    rows: ir.Value,
    read: CodeScale,
    weights: Array,
    unit: float,
    bias: Array | None = None,
) -> ir.Value:
    """The numbers of 16-bit codes [N, I] times weights [M, I] of 8 bits and one scale, and a bias
    [M]. A scale for each row of weights is not known to all NPUs."""
    terms = [
        read.reals(g, rows),
        CodeScale(unit, TensorType.INT8).reals(g, _signed_weights(g, weights)),
    ]
    if bias is not None and bias.any():
        scale = read.unit * unit
        codes = g.constants.add(np.rint(bias / scale).astype(np.int32), "bias")
        terms.append(g.op("DequantizeLinear", codes, g.constant(np.float32(scale))))
    return g.op("Gemm", *terms, transB=1)


def _signed_weights(g: Graph, weights: Array) -> ir.Value:
    return g.constants.add(np.ascontiguousarray(weights, np.int8), "weights")


def unit_of(tensor: TensorView) -> float:
    """The scale of a tensor.

    Raises:
        Untranslatable: it has none, or several.
    """
    found = tensor.quantization
    if found is None or found.per_channel:
        raise Untranslatable(f"{tensor.name!r} has no scale, or several")
    return found.scalar_scale
