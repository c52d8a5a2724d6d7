"""LayerNormalization and RMS norm, as converters write them out."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from tflite_ort.base.records import record
from tflite_ort.opmap.graph import Graph, Layout
from tflite_ort.opmap.graph.rows import RESHAPES, rows_agree
from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.opmap.rules.operators.matching import Found, Leaf, Node, node
from tflite_ort.opmap.rules.operators.pattern import Emit, Pattern, Surroundings, View
from tflite_ort.schema import ActivationFunctionType, Op, TensorType, TensorView
from tflite_ort.schema.values.semantics import normalized_axes
from tflite_ort.schema.values.sizes import is_known, is_one, may_differ

Array = npt.NDArray[Any]
Shape = tuple[int, ...]

_ADD, _SUB, _MUL, _DIV = node(Op.ADD), node(Op.SUB), node(Op.MUL), node(Op.DIV)
_MEAN, _RSQRT, _SQRT = node(Op.MEAN), node(Op.RSQRT), node(Op.SQRT)
_SQUARE, _POW, _NEG = node(Op.SQUARE), node(Op.POW), node(Op.NEG)
_SQUARED_DIFFERENCE = node(Op.SQUARED_DIFFERENCE)
# Rounding may take it below 0.
_VARIANCE = node(Op.SUB, activations=[ActivationFunctionType.RELU])


@record(eq=False)
class Norm:
    """One way to write a norm; parts that it lacks are None.

    Args:
        root: its result.
        offset: a constant that is 0.
        power: a constant that is 2.
    """

    root: Node
    x: Leaf
    epsilon: Leaf
    scale: Leaf | None = None
    bias: Leaf | None = None
    offset: Leaf | None = None
    power: Leaf | None = None

    def pattern(self, of_rms: bool) -> Pattern:
        """The row of the table."""
        write = _write_rms_norm if of_rms else _write_layer_norm
        name = "RMS norm" if of_rms else "LayerNormalization"

        def plan(found: Found, around: Surroundings) -> Emit | None:
            if of_rms and not around.target.cpu_kernels:
                return None
            parts = _Parts.of(self, found)
            if parts is None:
                return None
            readers = around.producers.readers(found[self.root])
            return partial(write, parts, any(op.op is Op.FULLY_CONNECTED for op in readers))

        return Pattern(name, self.root, plan)


@record
class _Parts:
    """What a norm that was found is made of.

    Args:
        axis: where the axes begin over which it normalises.
        scale, bias: of these axes, where there are some.
    """

    x: TensorView
    axis: int
    epsilon: float
    scale: Array
    bias: Array | None

    @classmethod
    def of(cls, norm: Norm, found: Found) -> _Parts | None:
        """None where the shapes or constants are not those of a norm."""
        x, epsilon = found[norm.x], found[norm.epsilon].data
        axis = _axis(x, found)
        if axis is None or epsilon is None or epsilon.size != 1 or not epsilon.item() > 0:
            return None
        if not (_is_all(found.get(norm.offset), 0) and _is_all(found.get(norm.power), 2)):
            return None
        if not all(_broadcasts(op, x, axis) for op in found.operators.values()):
            return None
        sizes = x.shape[axis:]
        vectors = [_over(sizes, found.get(part)) for part in (norm.scale, norm.bias)]
        wanted = norm.scale, norm.bias
        if any(p is not None and v is None for p, v in zip(wanted, vectors, strict=True)):
            return None
        scale = np.ones(sizes, np.float32) if vectors[0] is None else vectors[0]
        return cls(x, axis, epsilon.item(), scale, vectors[1])


def _axis(x: TensorView, found: Found) -> int | None:
    """The first of the axes over which the means of `x` are taken: the last ones; None where they
    are others."""
    if x.type is not TensorType.FLOAT32 or x.is_constant:
        return None
    axes = set()
    for op in found.operators.values():
        if op.op is Op.MEAN:
            given = op["axes"].data
            if given is None or may_differ(op["input"].shape, x.shape):
                return None
            axes.add(normalized_axes(given, x.rank))
    if len(axes) != 1:
        return None
    (listed,) = axes
    reduced = [axis for axis in listed if not is_one(x.shape[axis])]
    if not reduced or not is_known(*x.shape[min(reduced) :]):
        return None
    rest = [axis for axis in range(min(reduced), x.rank) if axis not in listed]
    return min(reduced) if all(is_one(x.shape[axis]) for axis in rest) else None


def _broadcasts(op: View, x: TensorView, axis: int) -> bool:
    """Whether an operator of a norm has elements of `x` and means of rows where it should."""
    if op.op in RESHAPES or op.op is Op.MEAN:
        return True
    kept = (*x.shape[:axis], *(1 for _ in x.shape[axis:]))
    computed = [tensor for tensor in op.present_inputs() if not tensor.is_constant]
    if not may_differ(op.output.shape, x.shape):
        return all(_is_like(each.shape, x.shape) or _is_like(each.shape, kept) for each in computed)
    same = all(not may_differ(each.shape, op.output.shape) for each in computed)
    constants = (tensor for tensor in op.present_inputs() if tensor.is_constant)
    return same and all(is_known(*each.shape) and prod(each.shape) == 1 for each in constants)


def _is_like(shape: Shape, wanted: Shape) -> bool:
    """Whether `shape` is `wanted`, but for sizes of 1 that it lacks in front."""
    missing = len(wanted) - len(shape)
    if missing < 0 or not all(map(is_one, wanted[:missing])):
        return False
    return not may_differ(shape, wanted[missing:])


def _is_all(tensor: TensorView | None, number: float) -> bool:
    return tensor is None or (tensor.data is not None and bool(np.all(tensor.data == number)))


def _over(sizes: Shape, tensor: TensorView | None) -> Array | None:
    """A constant as an array of these sizes; None where it differs along other axes."""
    if tensor is None or tensor.data is None:
        return None
    data = tensor.data
    lead = data.shape[: max(data.ndim - len(sizes), 0)]
    if any(size != 1 for size in lead):
        return None
    shape: Shape = data.shape[len(lead) :]
    if any(size not in (1, n) for size, n in zip(shape[::-1], sizes[::-1], strict=False)):
        return None
    return np.ascontiguousarray(np.broadcast_to(data.reshape(shape), sizes), np.float32)


def _write_layer_norm(parts: _Parts, rows: bool, g: Graph, op: View) -> None:
    x, layout = _read(parts, g, op, rows=rows)
    bias = None if parts.bias is None else g.constant(parts.bias)
    axis = parts.axis - parts.x.rank
    y = g.op(
        "LayerNormalization", x, g.constant(parts.scale), bias, axis=axis, epsilon=parts.epsilon
    )
    _write(g, y, layout, parts, op)


def _write_rms_norm(parts: _Parts, rows: bool, g: Graph, op: View) -> None:
    axis = parts.axis - parts.x.rank
    scale, (x, layout) = g.constant(parts.scale), _read(parts, g, op, rows=rows)
    y = g.op("SimplifiedLayerNormalization", x, scale, axis=axis, epsilon=parts.epsilon)
    _write(g, y, layout, parts, op)


def _read(parts: _Parts, g: Graph, op: View, *, rows: bool) -> tuple[ir.Value, Layout]:
    """What is normalised, and its layout: as rows if it stands so in the graph.

    Args:
        rows: what reads the result wants rows.
    """
    x, layout = parts.x, Layout.LAST
    if parts.axis == x.rank - 1 and rows_agree([x, op.output]):
        layout = Layout.ROWS if rows else g.layout(x, rows=True)
    layout = layout if layout is Layout.ROWS else Layout.LAST
    return g.read(x, layout=layout), layout


def _write(g: Graph, value: ir.Value, layout: Layout, parts: _Parts, op: View) -> None:
    activation = op.options.fused_activation_function
    if layout is Layout.LAST and may_differ(op.output.shape, parts.x.shape):
        value = g.reshape(value, op.output.shape)
    g.write(op.output, value, layout=layout, activation=activation)


def layer_norms() -> Iterator[Norm]:
    """With and without scale and bias, each in the forms that converters write."""
    for scaled in (True, False):
        for biased in (True, False):
            x, epsilon = Leaf(), Leaf(constant=True)
            scale = Leaf(constant=True) if scaled else None
            bias = Leaf(constant=True) if biased else None
            for normalised, offset in _normalised(x, epsilon):
                root = normalised if scale is None else _MUL(normalised, scale)
                root = root if bias is None else _ADD(root, bias)
                yield Norm(root, x, epsilon, scale, bias, offset)
            for normalised in _of_flax(x, epsilon, scale):
                root = normalised if bias is None else _ADD(normalised, bias)
                yield Norm(root, x, epsilon, scale, bias)
    yield from _batch_norms()


def _normalised(x: Leaf, epsilon: Leaf) -> Iterator[tuple[Node, Leaf | None]]:
    """(x - mean) / sqrt(variance + epsilon), and the part that has to be 0."""
    mean = _MEAN(x)
    for centred, variance in _variances(x, mean):
        padded = _ADD(variance, epsilon)
        inverse, zero = _RSQRT(padded), Leaf(constant=True)
        yield _ADD(_MUL(x, inverse), _SUB(zero, _MUL(inverse, mean))), zero
        yield _MUL(centred, inverse), None
        yield _DIV(centred, _SQRT(padded)), None


def _variances(x: Leaf, mean: Node) -> Iterator[tuple[Node, Node]]:
    """x - mean, and the mean of its squares."""
    centred = _SUB(x, mean)
    yield centred, _MEAN(_SQUARED_DIFFERENCE(x, mean))
    yield centred, _MEAN(_MUL(centred, centred))
    yield centred, _MEAN(_SQUARE(centred))


def _of_flax(x: Leaf, epsilon: Leaf, scale: Leaf | None) -> Iterator[Node]:
    """(x - mean) * (1 / sqrt(variance + epsilon) * scale), the variance as the mean of the squares
    less the square of the mean, as Flax has it. Of a mean that is far from 0 both lose bits: the
    node is as near to the true value then as these operators, not as near to them."""
    for square in (lambda y: _MUL(y, y), _SQUARE):
        mean = _MEAN(x)
        variance = _VARIANCE(_MEAN(square(x)), square(mean))
        inverse = _RSQRT(_ADD(variance, epsilon))
        yield _MUL(_SUB(x, mean), inverse if scale is None else _MUL(inverse, scale))


def _batch_norms() -> Iterator[Norm]:
    """x * s + (bias - mean * s), where s is scale / sqrt(variance + epsilon)."""
    for scaled in (True, False):
        x, epsilon, bias = Leaf(), Leaf(constant=True), Leaf(constant=True)
        scale = Leaf(constant=True) if scaled else None
        mean = _MEAN(x)
        for _, variance in _variances(x, mean):
            inverse = _RSQRT(_ADD(variance, epsilon))
            factor = inverse if scale is None else _MUL(inverse, scale)
            product, opposite = _MUL(x, factor), _MUL(_NEG(mean), factor)
            yield Norm(_ADD(product, _SUB(bias, _MUL(mean, factor))), x, epsilon, scale, bias)
            yield Norm(_ADD(product, _ADD(opposite, bias)), x, epsilon, scale, bias)
            yield Norm(_ADD(product, opposite), x, epsilon, scale)


def rms_norms() -> Iterator[Norm]:
    """x / sqrt(mean of the squares + epsilon), with and without scale."""
    for scaled in (True, False):
        x, epsilon, power = Leaf(), Leaf(constant=True), Leaf(constant=True)
        scale = Leaf(constant=True) if scaled else None
        for squares, used in ((_MUL(x, x), None), (_SQUARE(x), None), (_POW(x, power), power)):
            padded = _ADD(_MEAN(squares), epsilon)
            for normalised in (_MUL(x, _RSQRT(padded)), _DIV(x, _SQRT(padded))):
                root = normalised if scale is None else _MUL(normalised, scale)
                yield Norm(root, x, epsilon, scale, power=used)


NORMS = (
    *(norm.pattern(of_rms=False) for norm in layer_norms()),
    *(norm.pattern(of_rms=True) for norm in rms_norms()),
)
