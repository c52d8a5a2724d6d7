"""Rotary embedding: the halves of each head turned by angles, as ONNX Runtime's own node."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from tflite_ort.base.records import record
from tflite_ort.opmap.graph import Graph
from tflite_ort.opmap.graph.rows import RESHAPES
from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.opmap.rules.operators import token_rotation
from tflite_ort.opmap.rules.operators.cache_rows import before_reshapes
from tflite_ort.opmap.rules.operators.matching import Found, Leaf, Node, Producers, node
from tflite_ort.opmap.rules.operators.pattern import Emit, Pattern, Surroundings, View
from tflite_ort.opmap.rules.operators.token_rotation import TokenAngles
from tflite_ort.schema import Op, TensorType, TensorView
from tflite_ort.schema.values.sizes import is_known

_ADD, _SUB, _MUL = node(Op.ADD), node(Op.SUB), node(Op.MUL)
_SLICE, _JOIN = node(Op.SLICE), node(Op.CONCATENATION)

_DOMAIN = "com.microsoft"


@record(eq=False)
class _Form:
    """One way to write it.

    Args:
        first, second: the halves of x.
        joins: what puts halves together.
        minus: a constant that is -1; None where halves are subtracted.
    """

    root: Node
    x: Leaf
    first: Node
    second: Node
    joins: Node
    cos: Leaf
    sin: Leaf
    minus: Leaf | None = None

    def plan(self, found: Found, around: Surroundings) -> Emit | None:
        """What adds the node; None where the shapes are others."""
        if not around.target.cpu_kernels or not self._is_rotation(found):
            return None
        x, twice = found[self.x], self.minus is not None
        angles = [
            _Angles.of(found[part], op, x, around.producers, twice=twice)
            for part, op in ((self.cos, Op.COS), (self.sin, Op.SIN))
        ]
        if any(each is None for each in angles):
            return None
        token = _of_token([each for each in angles if each is not None], around.producers)
        if token is not None:
            return partial(token_rotation.emit, x, token, around.producers)
        return partial(_emit, x, [each for each in angles if each is not None])

    def _is_rotation(self, found: Found) -> bool:
        x, join = found[self.x], found.operator(self.joins)
        if found.operator(self.root).options.fused_activation_function:
            return False
        if x.rank != 4 or not is_known(*x.shape) or 0 in x.shape or x.shape[-1] % 2:
            return False
        if any(t.type is not TensorType.FLOAT32 for t in found.tensors.values()):
            return False
        minus = None if self.minus is None else found[self.minus].data
        if self.minus is not None and (minus is None or not np.all(minus == -1)):
            return False
        half = x.shape[-1] // 2
        slices = (found.operator(self.first), 0), (found.operator(self.second), half)
        shapes = tuple(x.shape), (*x.shape[:-1], half)  # a RESHAPE in between makes other halves
        steps = (op for op in found.operators.values() if op.op not in RESHAPES)
        whole = found[self.root].shape == x.shape and all(op.output.shape in shapes for op in steps)
        return whole and join.options.axis in (3, -1) and all(_is_half(*each, x) for each in slices)


def _is_half(op: View, begin: int, x: TensorView) -> bool:
    """Whether a SLICE takes the half of the last axis that begins there."""
    begins = op["begin"].data
    wanted = (*x.shape[:-1], x.shape[-1] // 2)
    taken = begins is not None and list(begins.reshape(-1)) == [0, 0, 0, begin]
    return bool(taken) and tuple(op.output.shape) == wanted


@record
class _Angles:
    """The cosines or sines of [tokens, size / 2] angles.

    Args:
        source: these; or the angles, if `function` is still to be taken of them.
    """

    source: TensorView
    function: str
    shape: tuple[int, int]

    @classmethod
    def of(
        cls, tensor: TensorView, op: Op, x: TensorView, producers: Producers, *, twice: bool
    ) -> _Angles | None:
        """None where `tensor` is none of these.

        Args:
            twice: it has the angles twice, one after the other.
        """
        tokens, half = x.shape[2], x.shape[3] // 2
        if _row_shape(tensor) != (tokens, half * (2 if twice else 1)):
            return None
        if not twice:
            return cls(tensor, "", (tokens, half))
        maker = producers.maker(tensor)
        join = None if maker is None or maker.op is not op else producers.maker(maker["input"])
        if join is None or join.op is not Op.CONCATENATION:
            return None
        parts = join.present_inputs()
        same = len(parts) == 2 and parts[0].index == parts[1].index
        if not same or _row_shape(parts[0]) != (tokens, half) or parts[0].is_variable:
            return None
        return cls(parts[0], op.name.capitalize(), (tokens, half))

    def read(self, g: Graph) -> ir.Value:
        """The values; those of equal nodes ONNX Runtime computes once."""
        value = g.reshape(g.read(self.source), self.shape)
        return g.op(self.function, value) if self.function else value


def _of_token(angles: list[_Angles], producers: Producers) -> TokenAngles | None:
    """The angles of a single token, by its position; None where they are others."""
    sources = list[TensorView]()
    for each, op in zip(angles, (Op.COS, Op.SIN), strict=True):
        source = each.source
        if not each.function:
            maker = producers.maker(before_reshapes(source, producers))
            if maker is None or maker.op is not op:
                return None
            source = maker["input"]
        sources.append(before_reshapes(source, producers))
    (tokens, _), (first, second) = angles[0].shape, sources
    if tokens != 1 or first.index != second.index:
        return None
    return TokenAngles.of(first, producers)


def _row_shape(tensor: TensorView) -> tuple[int, int] | None:
    """The last two sizes, if there are no others."""
    if tensor.rank < 2 or not is_known(*tensor.shape) or any(n != 1 for n in tensor.shape[:-2]):
        return None
    return tensor.shape[-2], tensor.shape[-1]


def _emit(x: TensorView, angles: list[_Angles], g: Graph, op: View) -> None:
    cos, sin = (each.read(g) for each in angles)
    y = g.op("RotaryEmbedding", g.read(x), g.ints([0]), cos, sin, domain=_DOMAIN)
    g.write(op.output, y)


def _forms() -> Iterator[_Form]:
    """As transformers write it, and as litert-torch's generative examples do."""
    x, cos, sin, minus = Leaf(), Leaf(), Leaf(), Leaf(constant=True)
    first, second = _SLICE(x), _SLICE(x)
    turned = _JOIN(_MUL(second, minus), first)
    root = _ADD(_MUL(x, cos), _MUL(turned, sin))
    yield _Form(root, x, first, second, turned, cos, sin, minus)
    x, cos, sin = Leaf(), Leaf(), Leaf()
    first, second = _SLICE(x), _SLICE(x)
    low = _SUB(_MUL(first, cos), _MUL(second, sin))
    joined = _JOIN(low, _ADD(_MUL(second, cos), _MUL(first, sin)))
    yield _Form(joined, x, first, second, joined, cos, sin)


ROTATIONS = tuple(Pattern("rotary embedding", form.root, form.plan) for form in _forms())
