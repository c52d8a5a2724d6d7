"""GroupNormalization, as litert-torch writes it out: means of groups, then a factor and an offset
for each channel."""

from __future__ import annotations

from functools import partial
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from tflite_ort.base.records import record
from tflite_ort.opmap.graph import Graph
from tflite_ort.opmap.graph.rows import RESHAPES
from tflite_ort.opmap.rules.operators.matching import Found, Leaf, Node, node
from tflite_ort.opmap.rules.operators.pattern import Emit, Pattern, Surroundings, View
from tflite_ort.schema import Op, TensorType, TensorView
from tflite_ort.schema.values.semantics import normalized_axes
from tflite_ort.schema.values.sizes import is_known

Array = npt.NDArray[Any]

_ADD, _SUB, _MUL = node(Op.ADD), node(Op.SUB), node(Op.MUL)
_MEAN, _RSQRT = node(Op.MEAN), node(Op.RSQRT)


@record
class _Sizes:
    """The sizes of x [batch, channels, ...], whose groups are [batch, groups, channels / groups,
    elements of a channel]."""

    batch: int
    groups: int
    share: int
    elements: int

    @classmethod
    def of(cls, form: _Form, found: Found) -> _Sizes | None:
        """None where the means are not of groups of channels."""
        x, means = found[form.x], [found.operator(part) for part in (form.mean, form.variance)]
        shape = tuple(means[0]["input"].shape)
        if tuple(means[1]["input"].shape) != shape or len(shape) != 4 or x.rank < 3:
            return None
        for op in means:
            axes = op["axes"].data
            if axes is None or normalized_axes(axes, 4) != (2, 3):
                return None
        batch, groups, share, elements = shape
        sizes = cls(batch, groups, share, elements)
        whole = x.shape[:2] == (batch, groups * share) and prod(x.shape[2:]) == elements
        return sizes if whole else None

    @property
    def inside(self) -> set[tuple[int, ...]]:
        """The shapes of what is computed of groups."""
        channels = 1, *self.factor[1:]
        return {(*self.factor[:-1], self.elements), self.factor, self.mean, channels}

    @property
    def mean(self) -> tuple[int, ...]:
        """The shape of a number for each group."""
        return self.batch, self.groups, 1, 1

    @property
    def factor(self) -> tuple[int, ...]:
        """The shape of a number for each channel of each group."""
        return self.batch, self.groups, self.share, 1

    def of_channels(self, rank: int) -> tuple[int, ...]:
        """The shape of a number for each channel, beside x of this rank."""
        return self.batch, self.groups * self.share, *(1,) * (rank - 2)


@record(eq=False)
class _Form:
    """The parts of the tree."""

    root: Node
    x: Leaf
    epsilon: Leaf
    scale: Leaf
    bias: Leaf
    minus: Leaf
    mean: Node
    variance: Node
    inverse: Node
    scaled: Node
    added: Node

    @classmethod
    def made(cls) -> _Form:
        """x * factor + (bias - mean * factor), where factor is scale / sqrt(variance + epsilon)."""
        x, (epsilon, scale, bias, minus) = Leaf(), (Leaf(constant=True) for _ in range(4))
        mean = _MEAN(x)
        centred = _SUB(x, mean)
        variance = _MEAN(_MUL(centred, centred))
        inverse = _RSQRT(_ADD(variance, epsilon))
        factor = _MUL(inverse, scale)
        scaled, added = _MUL(x, factor), _ADD(_MUL(_MUL(mean, minus), factor), bias)
        root = _ADD(scaled, added)
        return cls(root, x, epsilon, scale, bias, minus, mean, variance, inverse, scaled, added)

    def plan(self, found: Found, around: Surroundings) -> Emit | None:
        """What adds the nodes; None where the shapes or constants are others."""
        if not all(_is_plain(tensor) for tensor in found.tensors.values()):
            return None
        sizes = _Sizes.of(self, found)
        epsilon = found[self.epsilon].data
        if sizes is None or epsilon is None or epsilon.size != 1 or not epsilon.item() > 0:
            return None
        return self._emit(found, sizes, epsilon.item()) if self._fits(found, sizes) else None

    def _fits(self, found: Found, sizes: _Sizes) -> bool:
        """Whether every factor broadcasts over what it should."""
        x, minus = found[self.x], found[self.minus].data
        if minus is None or minus.size != 1 or minus.item() != -1:
            return False
        channels = (1, *sizes.factor[1:])
        vectors = found[self.scale], found[self.bias]
        if any(tuple(each.shape) != channels for each in vectors):
            return False
        product = found.operator(self.scaled)
        beside = (*product.present_inputs(), *found.operator(self.root).present_inputs())
        wanted = {tuple(x.shape), sizes.of_channels(x.rank)}
        inside = found[self.inverse].shape == sizes.mean and found[self.mean].shape in (
            sizes.mean,
            sizes.mean[:2],
        )
        if not inside or {tuple(each.shape) for each in beside} != wanted:
            return False
        return all(_broadcasts(op, sizes.inside, wanted) for op in found.operators.values())

    def _emit(self, found: Found, sizes: _Sizes, epsilon: float) -> Emit:
        scale, bias = found[self.scale].data, found[self.bias].data
        assert scale is not None and bias is not None
        shape = (1, *sizes.of_channels(found[self.x].rank)[1:])
        vectors = scale.reshape(shape), bias.reshape(shape)
        return partial(_emit, found[self.x], sizes, float(epsilon), vectors)


def _broadcasts(op: View, *places: set[tuple[int, ...]]) -> bool:
    """Whether the operands of `op` are both of groups, or both beside x: a RESHAPE can put the
    elements of one beside others."""
    if op.op in RESHAPES or op.op is Op.MEAN:
        return True
    shapes = {tuple(each.shape) for each in op.present_inputs() if prod(each.shape) != 1}
    return len(shapes) < 2 or any(shapes <= each for each in places)


def _is_plain(tensor: TensorView) -> bool:
    known = is_known(*tensor.shape) and 0 not in tensor.shape
    return tensor.type is TensorType.FLOAT32 and known


def _emit(
    x: TensorView,
    sizes: _Sizes,
    epsilon: float,
    vectors: tuple[Array, Array],
    g: Graph,
    op: View,
) -> None:
    """LayerNormalization of the groups, times the scale of each channel, plus its bias."""
    count = sizes.share * sizes.elements
    ones = g.constants.once(np.ones(count, np.float32), f"ones_{count}")
    groups = g.reshape(g.read(x), (sizes.batch, sizes.groups, count))
    normal = g.op("LayerNormalization", groups, ones, axis=-1, epsilon=epsilon)
    scale, bias = map(g.constant, vectors)
    y = g.op("Add", g.op("Mul", g.reshape(normal, x.shape), scale), bias)
    g.write(op.output, y, activation=op.options.fused_activation_function)


_FORM = _Form.made()
GROUP_NORMS = (Pattern("GroupNormalization", _FORM.root, _FORM.plan),)
