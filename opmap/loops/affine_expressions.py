"""Tensors of a graph as affine expressions: products with constant matrices, and a bias.

The gates of a recurrent cell are activations of these. B batch, N units of the tensor, K units of
a source. Dimensions of 1 may stand before or between these.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tflite_ort.base.records import record, replace
from tflite_ort.opmap.graph.rows import RESHAPES
from tflite_ort.schema import (
    ActivationFunctionType,
    Op,
    OperatorView,
    TensorType,
    TensorView,
)
from tflite_ort.schema.values.constant_slices import constant_slice
from tflite_ort.schema.values.sizes import is_known, may_differ, same_elements

Array = npt.NDArray[np.float32]
View = OperatorView[Any]
Activation = ActivationFunctionType
Interval = tuple[int, int]

ACTIVATIONS = {Op.LOGISTIC: "Sigmoid", Op.TANH: "Tanh", Op.RELU: "Relu"}
# ONNX's HardSigmoid is a clip of _SLOPE * x + _OFFSET to [0, 1].
_SLOPE, _OFFSET = 0.2, 0.5
# An expression is made of so many operators in a row at most.
_DEEPEST = 96
# Types of weights that are multiplied by a scale.
_CODES = (TensorType.INT8, TensorType.INT4)
# TFLite does not look at a TANH fused to ADD.
_FUSED = {Activation.RELU: "Relu"}


@record(eq=False)
class Affine:
    """The affine expression `bias + sum of source @ weights.T` over all sources: [B, N].

    Args:
        weights: [N, K], by the index of the source [B, K].
        bias: [N].
    """

    weights: Mapping[int, Array]
    bias: Array

    def rows(self, start: int, end: int) -> Affine:
        """The units from `start` to `end`."""
        weights = {source: matrix[start:end] for source, matrix in self.weights.items()}
        return Affine(weights, self.bias[start:end])

    def scaled(self, factor: float, added: float = 0.0) -> Affine:
        """`factor` times this, plus the constant `added`."""
        scale = np.float32(factor)
        weights = {source: matrix * scale for source, matrix in self.weights.items()}
        return Affine(weights, self.bias * scale + np.float32(added))

    def plus(self, other: Affine) -> Affine | None:
        """The sum; None unless both have the same number of units, or one is a single constant."""
        size = max(len(self.bias), len(other.bias))
        if any(
            len(term.bias) != size and (term.weights or len(term.bias) != 1)
            for term in (self, other)
        ):
            return None
        weights = dict(self.weights)
        for source, matrix in other.weights.items():
            weights[source] = weights[source] + matrix if source in weights else matrix
        return Affine(weights, self.bias + other.bias)


class AffineExpressions:
    """Finds affine expressions, and activations of them, among the tensors of a graph.

    Args:
        operators: of the graph.
        hybrid: float activations are rounded before they are multiplied by integer weights, so
            these products are not affine.
    """

    def __init__(self, operators: Sequence[View], *, hybrid: bool) -> None:
        self.hybrid = hybrid
        self._makers = {out.index: op for op in operators for out in op.outputs}
        self._found: dict[int, Affine | None] = {}
        self._sources: dict[int, TensorView] = {}
        self._depth = 0

    def source(self, index: int) -> TensorView | None:
        """The tensor of the graph that is a source of an affine expression."""
        return self._sources.get(index)

    def maker(self, index: int) -> View | None:
        """The operator that computes a tensor."""
        return self._makers.get(index)

    def rows(self, tensor: TensorView) -> TensorView:
        """What `tensor` was before every RESHAPE that keeps the last axis."""
        op = self._makers.get(tensor.index)
        while op is not None and op.op in RESHAPES:
            source = op.present_inputs()[0]
            if not _same_rows(source, op.output):
                break
            tensor, op = source, self._makers.get(source.index)
        return tensor

    def producer(self, tensor: TensorView) -> View | None:
        """The operator that computes `tensor`; a RESHAPE that keeps the last axis is skipped."""
        return self._makers.get(self.rows(tensor).index)

    def activated(self, tensor: TensorView) -> tuple[str, Affine] | None:
        """The name of an ONNX activation and its argument, if `tensor` is such an activation.

        It is a LOGISTIC, a TANH, a RELU, a fused RELU, a hard sigmoid, or a slice of the units of
        one.
        """
        tensor = self.rows(tensor)
        op = self._makers.get(tensor.index)
        if op is None:
            return None
        part = _part(op, tensor)
        if part is not None:
            whole = self._activated(op_input(op))
            return (whole[0], whole[1].rows(*part)) if whole else None
        return self._activated(tensor)

    def _activated(self, tensor: TensorView) -> tuple[str, Affine] | None:
        """As `activated`, of all units of `tensor`."""
        tensor = self.rows(tensor)
        op = self._makers.get(tensor.index)
        if op is None:
            return None
        hard = self._hard_sigmoid(tensor)
        if hard is not None:
            return hard
        if op.op in ACTIVATIONS:
            affine = self.affine(op.present_inputs()[0])
            return (ACTIVATIONS[op.op], affine) if affine else None
        fused = fused_activation(op)
        affine = self._unactivated(op, tensor) if fused else None
        return (fused, affine) if affine else None

    def _hard_sigmoid(self, tensor: TensorView) -> tuple[str, Affine] | None:
        """A clip to [0, 1], as the HardSigmoid of ONNX with its default slope and offset."""
        found = self._scaled_relu6(tensor) or self._unit_clip(tensor)
        if found is None:
            return None
        affine, factor, added = found
        return "HardSigmoid", affine.scaled(factor / _SLOPE, (added - _OFFSET) / _SLOPE)

    def _scaled_relu6(self, tensor: TensorView) -> tuple[Affine, float, float] | None:
        """RELU6 divided by 6: an argument, and what it is multiplied by before the clip and what
        is added."""
        sixth = self._with_scalar(tensor, Op.MUL)
        if sixth is None or abs(6 * sixth[1] - 1) > 1e-6:
            return None
        clipped, scale = sixth
        op = self.producer(clipped)
        if op is None:
            return None
        affine = None
        if op.op is Op.RELU6:
            affine = self.affine(op.present_inputs()[0])
        elif _activation(op) is Activation.RELU6:
            affine = self._unactivated(op, clipped)
        return (affine, scale, 0.0) if affine else None

    def _unit_clip(self, tensor: TensorView) -> tuple[Affine, float, float] | None:
        """The same of a clip to [0, 1] by one or two operators."""
        op = self.producer(tensor)
        if op is None:
            return None
        if op.op is Op.RELU_0_TO_1:
            source: TensorView | None = op.present_inputs()[0]
        else:
            lower, upper = self._not_below(tensor), self._not_above(tensor)
            source = self._not_above(lower) if lower is not None else None
            source = self._not_below(upper) if upper is not None else source
        if source is None:
            return None
        factor, added = 1.0, 0.0
        while (sum_ := self._with_scalar(source, Op.ADD)) is not None:
            source, added = sum_[0], added + factor * sum_[1]
        while (product := self._with_scalar(source, Op.MUL)) is not None:
            source, factor = product[0], factor * product[1]
        affine = self.affine(source)
        return (affine, factor, added) if affine else None

    def _not_below(self, tensor: TensorView) -> TensorView | None:
        """x, if `tensor` is x but 0 where that is negative."""
        op = self.producer(tensor)
        if op is not None and op.op is Op.RELU:
            return op.present_inputs()[0]
        found = self._with_scalar(tensor, Op.MAXIMUM)
        return found[0] if found is not None and found[1] == 0 else None

    def _not_above(self, tensor: TensorView) -> TensorView | None:
        """x, if `tensor` is x but 1 where that is larger."""
        found = self._with_scalar(tensor, Op.MINIMUM)
        return found[0] if found is not None and found[1] == 1 else None

    def _with_scalar(self, tensor: TensorView, kind: Op) -> tuple[TensorView, float] | None:
        """The other operand and the number, if `tensor` is an operator on a tensor and one constant
        number."""
        op = self.producer(tensor)
        if op is None or op.op is not kind or _activation(op):
            return None
        for one, other in (op.present_inputs(), op.present_inputs()[::-1]):
            if one.data is not None and one.data.size == 1 and other.data is None:
                return other, float(one.data.item())
        return None

    def affine(self, tensor: TensorView) -> Affine | None:
        """`tensor` as an affine expression of other tensors; None if it is not one."""
        tensor = self.rows(tensor)
        if tensor.index not in self._found:
            if self._depth == _DEEPEST:
                return None
            self._depth += 1
            self._found[tensor.index] = self._derived(tensor)
            self._depth -= 1
        return self._found[tensor.index]

    def _derived(self, tensor: TensorView) -> Affine | None:
        if tensor.type is not TensorType.FLOAT32 or not _has_rows(tensor):
            return None
        if tensor.data is not None:
            rows = tensor.data.reshape(-1, (tensor.shape or (1,))[-1] or 1)
            return Affine({}, rows[0]) if len(rows) and (rows == rows[0]).all() else None
        op = self._makers.get(tensor.index)
        if op is None or _activation(op) is not Activation.NONE:
            return None
        return self._unactivated(op, tensor)

    def _unactivated(self, op: View, tensor: TensorView) -> Affine | None:
        """The output of `op` without its fused activation."""
        part = _part(op, tensor)
        if part is not None:
            whole = self.affine(op_input(op))
            return whole.rows(*part) if whole else None
        if op.op is Op.ADD:
            a, b = (self.affine(tensor) for tensor in op.present_inputs())
            return a.plus(b) if a and b and unbroadcast(op) else None
        return self._product(op) if op.op is Op.FULLY_CONNECTED else None

    def _product(self, op: View) -> Affine | None:
        input, filter = op.present_inputs()[:2]
        weights, bias = self._reals(filter), op.inputs[2] if len(op.inputs) > 2 else None
        if weights is None or input.rank == 0 or not is_known(input.shape[-1]):
            return None
        if input.shape[-1] != weights.shape[1]:
            return None
        if op.options.weights_format:
            return None
        units = len(weights)
        constants = np.zeros(units, np.float32) if bias is None else bias.data
        if constants is None or constants.shape != (units,):
            return None
        parts = self._columns(input)
        columns = np.split(weights, np.cumsum([part.shape[-1] for part in parts])[:-1], axis=1)
        total: Affine | None = Affine({}, constants)
        for part, block in zip(parts, columns, strict=True):
            total = total and total.plus(self._term(part, block))
        return total

    def _term(self, part: TensorView, weights: Array) -> Affine:
        """The product of one source; that of a constant row is a constant."""
        row = self.affine(part) if part.is_constant else None
        if row is not None:
            return Affine({}, weights @ row.bias)
        self._sources[part.index] = part
        return Affine({part.index: weights}, np.zeros(len(weights), np.float32))

    def _columns(self, tensor: TensorView) -> Sequence[TensorView]:
        """The tensors that a CONCATENATION joins to `tensor` along its last axis."""
        tensor = self.rows(tensor)
        producer = self._makers.get(tensor.index)
        if producer is None or producer.op is not Op.CONCATENATION or _activation(producer):
            return [tensor]
        last = producer.options.axis in (tensor.rank - 1, -1)
        return [self.rows(part) for part in producer.present_inputs()] if last else [tensor]

    def _reals(self, filter: TensorView) -> Array | None:
        """The constant `filter` as floats."""
        if filter.data is None or filter.rank != 2 or filter.blocks is not None:
            return None
        if filter.type is TensorType.FLOAT32:
            return filter.data
        quantization = filter.quantization
        if self.hybrid or filter.type not in _CODES or quantization is None:
            return None
        if quantization.zero_point.any() or (quantization.per_channel and quantization.axis != 0):
            return None
        return filter.data.astype(np.float32) * quantization.scale.reshape(-1, 1)


def op_input(op: View) -> TensorView:
    """The tensor that a slice or a split takes apart."""
    return op.present_inputs()[1 if op.op is Op.SPLIT else 0]


def unbroadcast(op: View) -> Sequence[TensorView]:
    """The inputs of an elementwise `op`; none where it broadcasts a computed input."""
    tensors = [op.output, *(tensor for tensor in op.present_inputs() if not tensor.is_constant)]
    if any(not _has_rows(tensor) or tensor.rank == 0 for tensor in tensors):
        return ()
    same = all(same_elements(op.output.shape, tensor.shape) for tensor in tensors)
    return op.present_inputs() if same else ()


def _has_rows(tensor: TensorView) -> bool:
    """Whether it is known how long the rows along the last axis are, if not how many there are."""
    return tensor.ranked and is_known(*tensor.shape[-1:])


def _same_rows(one: TensorView, other: TensorView) -> bool:
    if not (_has_rows(one) and _has_rows(other)):
        return False
    return bool(one.rank and other.rank) and one.shape[-1] == other.shape[-1]


def _activation(op: View) -> Activation:
    found: Activation = getattr(op.options, "fused_activation_function", Activation.NONE)
    return found


def fused_activation(op: View) -> str:
    """The ONNX name of the fused activation of `op`; empty where there is none, or none in ONNX."""
    return _FUSED.get(_activation(op), "")


def _of_known_sizes(op: View) -> View:
    """A slice that keeps all axes but the last, with 1 for each size that is not known."""

    def known(tensor: TensorView) -> TensorView:
        sizes = (size if is_known(size) else 1 for size in tensor.shape)
        return tensor if not tensor.dynamic else replace(tensor, shape=tuple(sizes))

    whole = known(op.present_inputs()[0])
    return replace(op, inputs=(whole, *op.inputs[1:]), outputs=(known(op.output),))


def _part(op: View, tensor: TensorView) -> Interval | None:
    """The range of units that `op` cuts out along the last axis to compute `tensor`; None for
    others."""
    if op.op not in (Op.SPLIT, Op.STRIDED_SLICE, Op.SLICE):
        return None
    whole = op_input(op)
    if not (_has_rows(whole) and _has_rows(tensor)) or whole.rank == 0:
        return None
    if op.op is Op.SPLIT:
        axis = op.present_inputs()[0].data
        if axis is None or axis.item() not in (whole.rank - 1, -1):
            return None
        size = tensor.shape[-1]
        place = [out.index for out in op.outputs].index(tensor.index)
        return place * size, (place + 1) * size
    if may_differ(tensor.shape[:-1], whole.shape[:-1]):
        return None
    bounds = constant_slice(_of_known_sizes(op))
    if bounds is None or bounds.squeezed or bounds.new_axes or set(bounds.steps) != {1}:
        return None
    if any(bounds.starts[:-1]):
        return None
    return bounds.starts[-1], bounds.starts[-1] + tensor.shape[-1]
