"""Tensors of a loop's body as sums of products with constants: what a recurrent cell is made of.

B batch, N units of the tensor, K units of a source.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from tflite_ort.schema import (
    ActivationFunctionType,
    Op,
    OperatorView,
    Specialized,
    TensorType,
    TensorView,
)
from tflite_ort.schema.values.slices import strided_slice

Array = npt.NDArray[np.float32]
View = OperatorView[Any]
Activation = ActivationFunctionType
Interval = tuple[int, int]

ACTIVATIONS = {Op.LOGISTIC: "Sigmoid", Op.TANH: "Tanh", Op.RELU: "Relu"}
# ONNX's HardSigmoid is a clip of _SLOPE * x + _PLACE to [0, 1].
_SLOPE, _PLACE = 0.2, 0.5
_FUSED = {Activation.TANH: "Tanh", Activation.RELU: "Relu"}


@dataclass(frozen=True, slots=True, eq=False)
class Linear:
    """The sum over sources s [B, K] of s * weights.T, and a bias: [B, N].

    Args:
        weights: [N, K] by the index of the source in the body.
        bias: [N].
    """

    weights: Mapping[int, Array]
    bias: Array

    def rows(self, start: int, end: int) -> Linear:
        weights = {source: each[start:end] for source, each in self.weights.items()}
        return Linear(weights, self.bias[start:end])

    def scaled(self, factor: float, moved: float = 0.0) -> Linear:
        """`factor` times this, and a constant."""
        scale = np.float32(factor)
        weights = {source: each * scale for source, each in self.weights.items()}
        return Linear(weights, self.bias * scale + np.float32(moved))

    def plus(self, other: Linear) -> Linear | None:
        """The sum, where both have as many units or one has constants alone."""
        size = max(len(self.bias), len(other.bias))
        if any(
            len(each.bias) != size and (each.weights or len(each.bias) != 1)
            for each in (self, other)
        ):
            return None
        weights = dict(self.weights)
        for source, each in other.weights.items():
            weights[source] = weights[source] + each if source in weights else each
        return Linear(weights, self.bias + other.bias)


@dataclass(frozen=True, slots=True)
class LinearForms:
    """Reads tensors of `body` as linear forms, and the expressions around them.

    Args:
        hybrid: float activations are rounded before they meet integer weights, so that these
            products are no linear forms.
    """

    body: Specialized
    hybrid: bool
    _found: dict[int, Linear | None] = field(default_factory=dict)

    def maker(self, tensor: TensorView) -> View | None:
        """The operator that makes `tensor`, seen through a RESHAPE that keeps the last axis."""
        for op in self.body.operators:
            if any(out.index == tensor.index for out in op.outputs):
                source = op.present_inputs()[0]
                through = op.op is Op.RESHAPE and _same_rows(source, op.output)
                return self.maker(source) if through else op
        return None

    def activated(self, tensor: TensorView) -> tuple[str, Linear] | None:
        """An activation and what it is applied to: a LOGISTIC, a TANH, a fused RELU, a hard
        sigmoid; or units of one."""
        op = self.maker(tensor)
        if op is None:
            return None
        part = _part(op, tensor)
        if part is not None:
            whole = self.activated(op_input(op))
            return (whole[0], whole[1].rows(*part)) if whole else None
        if op.op is Op.MUL:
            return self._hard_sigmoid(*op.present_inputs())
        if op.op in ACTIVATIONS:
            linear = self.linear(op.present_inputs()[0])
            return (ACTIVATIONS[op.op], linear) if linear else None
        fused = fused_activation(op)
        linear = self._made(op, tensor) if fused else None
        return (fused, linear) if linear else None

    def _hard_sigmoid(self, *factors: TensorView) -> tuple[str, Linear] | None:
        """RELU6 divided by 6, as ONNX's of its default slope and place."""
        for scale, clipped in (factors, factors[::-1]):
            op, given = self.maker(clipped), scale.data
            if op is None or given is None or given.size != 1 or abs(6 * given.item() - 1) > 1e-6:
                continue
            linear = None
            if op.op is Op.RELU6:
                linear = self.linear(op.present_inputs()[0])
            elif _activation(op) is Activation.RELU6:
                linear = self._made(op, clipped)
            if linear is not None:
                return "HardSigmoid", linear.scaled(given.item() / _SLOPE, -_PLACE / _SLOPE)
        return None

    def linear(self, tensor: TensorView) -> Linear | None:
        """`tensor` as a linear form of tensors that it is made of."""
        if tensor.index not in self._found:
            self._found[tensor.index] = self._sought(tensor)
        return self._found[tensor.index]

    def _sought(self, tensor: TensorView) -> Linear | None:
        if tensor.type is not TensorType.FLOAT32 or tensor.dynamic:
            return None
        if tensor.data is not None:
            flat = tensor.data.reshape(-1)
            return Linear({}, flat) if flat.size == (tensor.shape or (1,))[-1] else None
        op = self.maker(tensor)
        if op is None or _activation(op) is not Activation.NONE:
            return None
        return self._made(op, tensor)

    def _made(self, op: View, tensor: TensorView) -> Linear | None:
        """What `op` makes, its fused activation left out."""
        part = _part(op, tensor)
        if part is not None:
            whole = self.linear(op_input(op))
            return whole.rows(*part) if whole else None
        if op.op is Op.ADD:
            a, b = (self.linear(each) for each in op.present_inputs())
            return a.plus(b) if a and b and unbroadcast(op) else None
        return self._product(op) if op.op is Op.FULLY_CONNECTED else None

    def _product(self, op: View) -> Linear | None:
        input, filter = op.present_inputs()[:2]
        weights, bias = self._reals(filter), op.inputs[2] if len(op.inputs) > 2 else None
        if weights is None or input.rank != 2 or input.shape[1] != weights.shape[1]:
            return None
        if op.options.weights_format:
            return None
        units = len(weights)
        constants = np.zeros(units, np.float32) if bias is None else bias.data
        if constants is None or constants.shape != (units,):
            return None
        parts = self._columns(input)
        columns = np.split(weights, np.cumsum([each.shape[1] for each in parts])[:-1], axis=1)
        terms = [
            Linear({each.index: block}, np.zeros(units, np.float32))
            for each, block in zip(parts, columns, strict=True)
        ]
        total: Linear | None = Linear({}, constants)
        for term in terms:
            total = total and total.plus(term)
        return total

    def _columns(self, tensor: TensorView) -> Sequence[TensorView]:
        """What `tensor` is joined of along its last axis."""
        maker = self.maker(tensor)
        if maker is None or maker.op is not Op.CONCATENATION or _activation(maker):
            return [tensor]
        return maker.present_inputs() if maker.options.axis in (1, -1) else [tensor]

    def _reals(self, filter: TensorView) -> Array | None:
        """The constant `filter` as floats."""
        if filter.data is None or filter.rank != 2 or filter.blocks is not None:
            return None
        if filter.type is TensorType.FLOAT32:
            return filter.data
        quantization = filter.quantization
        if self.hybrid or filter.type is not TensorType.INT8 or quantization is None:
            return None
        if quantization.zero_point.any() or (quantization.per_channel and quantization.axis != 0):
            return None
        return filter.data.astype(np.float32) * quantization.scale.reshape(-1, 1)


def op_input(op: View) -> TensorView:
    """What a slice or a split is of."""
    return op.present_inputs()[1 if op.op is Op.SPLIT else 0]


def unbroadcast(op: View) -> Sequence[TensorView]:
    """The inputs of `op`, element by element, unless it repeats rows of those that are computed."""
    tensors = [op.output, *(tensor for tensor in op.present_inputs() if not tensor.is_constant)]
    if any(tensor.dynamic or tensor.rank == 0 for tensor in tensors):
        return ()
    return op.present_inputs() if len({prod(tensor.shape) for tensor in tensors}) == 1 else ()


def _same_rows(one: TensorView, other: TensorView) -> bool:
    if one.dynamic or other.dynamic:
        return False
    return bool(one.rank and other.rank) and one.shape[-1] == other.shape[-1]


def _activation(op: View) -> Activation:
    found: Activation = getattr(op.options, "fused_activation_function", Activation.NONE)
    return found


def fused_activation(op: View) -> str:
    """The name in ONNX, empty where there is none or ONNX has not got it."""
    return _FUSED.get(_activation(op), "")


def _part(op: View, tensor: TensorView) -> Interval | None:
    """Which units of a [B, N] the `tensor` is that `op` makes, if it is a part of it."""
    inputs = op.present_inputs()
    if op.op not in (Op.SPLIT, Op.STRIDED_SLICE) or op_input(op).dynamic or tensor.dynamic:
        return None
    if op.op is Op.SPLIT:
        axis, whole = inputs
        if axis.data is None or axis.data.item() not in (whole.rank - 1, -1):
            return None
        size = tensor.shape[-1]
        place = [out.index for out in op.outputs].index(tensor.index)
        return place * size, (place + 1) * size
    whole, *lists = inputs
    begin, end, strides = (each.data for each in lists)
    if begin is None or end is None or strides is None:
        return None
    bounds = strided_slice(whole.shape, begin, end, strides, op.options)
    if bounds.squeezed or bounds.new_axes or set(bounds.steps) != {1} or whole.rank != 2:
        return None
    return (bounds.starts[1], bounds.ends[1]) if bounds.shape[0] == whole.shape[0] else None
