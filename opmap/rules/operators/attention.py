"""Softmax attention: two products around a SOFTMAX, as ONNX's Attention.

The operands are found through RESHAPE, TRANSPOSE, SLICE and MUL by a number, however these are put:
it is their strides that count. Attention takes heads in either of two places, and all operands have
to have them in the same: [batch, tokens, heads * size], or [batch, heads, tokens, size]. Queries,
keys and values that one product makes for each token, one after the other, are [batch, tokens, 3 *
heads * size]: one Split parts them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod

import numpy as np

from tflite_ort.base.records import record
from tflite_ort.opmap.graph import Graph
from tflite_ort.opmap.graph.rows import RESHAPES
from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.opmap.rules.operators.matching import Found, Leaf, Node, Producers, node
from tflite_ort.opmap.rules.operators.pattern import Emit, Pattern, Surroundings, View
from tflite_ort.opmap.rules.operators.views import Strided
from tflite_ort.schema import Op, TensorType, TensorView
from tflite_ort.schema.values.semantics import normalized_axis
from tflite_ort.schema.values.sizes import is_known

# How many operators are looked at in front of a product.
_REACH = 12
# Attention takes a score of the lowest float for one that is not there: a row of these becomes
# zeros, and not the mean of all values, as a softmax of equal scores does.
_LOWEST = np.float32(-3e38)

_MUL, _ADD = node(Op.MUL), node(Op.ADD)
_SOFTMAX, _PRODUCT, _TRANSPOSE = node(Op.SOFTMAX), node(Op.BATCH_MATMUL), node(Op.TRANSPOSE)


@record(eq=False)
class _Form:
    """One way to write an attention.

    Args:
        turned: the result with the heads of a token next to each other; None: it is not turned.
        result, scores: the second and the first product.
        factor: a number by which the scores are multiplied; None for none.
        mask: what is added to them.
    """

    turned: Node | None
    result: Node
    softmax: Node
    scores: Node
    q: Leaf
    k: Leaf
    v: Leaf
    factor: Leaf | None = None
    mask: Leaf | None = None

    @classmethod
    def made(cls, *, turned: bool, scaled: bool, masked: bool) -> _Form:
        """The tree of this form."""
        q, k, v = Leaf(), Leaf(), Leaf()
        factor, mask = (Leaf(constant=True) if scaled else None), (Leaf() if masked else None)
        scores = added = _PRODUCT(q, k)
        added = added if factor is None else _MUL(added, factor)
        added = added if mask is None else _ADD(added, mask)
        softmax = _SOFTMAX(added)
        result = _PRODUCT(softmax, v)
        return cls(
            _TRANSPOSE(result) if turned else None, result, softmax, scores, q, k, v, factor, mask
        )

    @property
    def root(self) -> Node:
        return self.result if self.turned is None else self.turned

    def plan(self, found: Found, around: Surroundings) -> Emit | None:
        """What adds the nodes; None where the shapes are not those of an attention."""
        if not around.target.cpu_kernels or not _is_plain(found):
            return None
        sizes = _Sizes.of(self, found)
        if sizes is None:
            return None
        heads_last = self.turned is not None
        operands = _operands(self, found, around.producers, sizes, heads_last=heads_last)
        mask = found.get(self.mask)
        if operands is None or (mask is not None and sizes.mask(mask) is None):
            return None
        scale = prod(each.factor for each in operands) * _number(found.get(self.factor))
        if not scale > 0 or (heads_last and not _is_turned(found.operator(self.root), sizes)):
            return None
        is_above = _is_above(mask, around.producers)
        call = _Call(sizes, operands, mask, scale, is_above=is_above, heads_last=heads_last)
        return call.emit


@record
class _Sizes:
    """The sizes of an attention.

    Args:
        queries, keys: how many tokens there are of each.
        size: of a head of queries and keys, and of a head of values.
    """

    batch: int
    heads: int
    queries: int
    keys: int
    size: int
    value_size: int

    @classmethod
    def of(cls, form: _Form, found: Found) -> _Sizes | None:
        """None where the products are none of heads."""
        scores, result = found[form.scores], found[form.result]
        product = found.operator(form.scores)
        second = found.operator(form.result)
        if product.options.adj_x or second.options.adj_x or scores.rank not in (3, 4):
            return None
        x = product["x"]
        groups = prod(scores.shape[:-2])
        batch, heads = _batch_and_heads(form, found, groups)
        if batch * heads != groups or result.rank < 3:
            return None
        queries, keys = scores.shape[-2:]
        if found[form.softmax].shape[-1] != keys or second["x"].shape[-2:] != (queries, keys):
            return None  # a RESHAPE in between makes other rows
        return cls(batch, heads, queries, keys, x.shape[-1], result.shape[-1])

    def mask(self, mask: TensorView) -> tuple[int, ...] | None:
        """The four dimensions of a mask; None where it broadcasts otherwise."""
        if mask.rank > 4:
            return None
        shape = (1,) * (4 - mask.rank) + tuple(mask.shape)
        wanted = self.batch, self.heads, self.queries
        fits = all(size in (1, n) for size, n in zip(shape[:3], wanted, strict=True))
        return shape if fits and shape[3] == self.keys else None

    def third(self, number: int) -> Strided:
        """[batch, heads, tokens, size] of queries, keys or values in [batch, tokens, 3, heads *
        size]."""
        row = self.heads * self.size
        shape = self.batch, self.heads, self.keys, self.size
        strides = self.keys * 3 * row, self.size, 3 * row, 1
        return Strided.of(shape, strides, number * row)

    def places(self, tokens: int, size: int, *, heads_last: bool) -> Strided:
        """[batch, heads, tokens, size] of an operand that Attention takes."""
        shape = self.batch, self.heads, tokens, size
        if not heads_last:
            return Strided.whole(shape)
        row = self.heads * size
        return Strided.of(shape, (tokens * row, size, row, 1))

    def shape(self, tokens: int, size: int, *, heads_last: bool) -> tuple[int, ...]:
        """The shape of that operand."""
        if heads_last:
            return self.batch, tokens, self.heads * size
        return self.batch, self.heads, tokens, size


def _batch_and_heads(form: _Form, found: Found, groups: int) -> tuple[int, int]:
    """From where batch and heads are still dimensions of their own."""
    if form.turned is not None:
        shape = found.operator(form.turned)["input"].shape
        return (shape[0], shape[1]) if len(shape) == 4 else (1, groups)
    for part in (form.softmax, form.scores):
        if found[part].rank == 4:
            return found[part].shape[0], found[part].shape[1]
    return 1, groups


@record
class _Operand:
    """A tensor in the graph that has the elements of an operand where Attention wants them."""

    source: TensorView
    factor: float = 1.0


def _operands(
    form: _Form, found: Found, producers: Producers, sizes: _Sizes, *, heads_last: bool
) -> Sequence[_Operand] | None:
    """Queries, keys and values; or queries, and one that has keys and values beside others; or one
    that has all three. None where one has its heads in another place."""
    product, second = found.operator(form.scores), found.operator(form.result)
    rows = (
        (product["x"], False, sizes.queries, sizes.size),
        (product["y"], not product.options.adj_y, sizes.keys, sizes.size),
        (second["y"], second.options.adj_y, sizes.keys, sizes.value_size),
    )
    operands, thirds = list[_Operand | None](), list[_Operand | None]()
    for number, (tensor, swapped, tokens, size) in enumerate(rows):
        chain = _Chain(producers, scaled=tensor is not second["y"])
        shape = sizes.shape(tokens, size, heads_last=False)
        wanted = sizes.places(tokens, size, heads_last=heads_last)
        operands.append(_operand(tensor, chain, shape, wanted, swapped=swapped))
        fits = heads_last and (tokens, size) == (sizes.keys, sizes.size)
        third = sizes.third(number)
        thirds.append(
            _operand(tensor, chain, shape, third, swapped=swapped, parts=3) if fits else None
        )
    for first in (0, 1):
        packed = [each for each in thirds[first:] if each is not None]
        if len(packed) == 3 - first and len({each.source.index for each in packed}) == 1:
            joined = _Operand(packed[0].source, prod(each.factor for each in packed))
            operands[first:] = [joined]
            break
    found_all = [each for each in operands if each is not None]
    return found_all if len(found_all) == len(operands) else None


def _operand(
    tensor: TensorView,
    chain: _Chain,
    shape: Sequence[int],
    wanted: Strided,
    *,
    swapped: bool,
    parts: int = 1,
) -> _Operand | None:
    """What is behind `tensor` with its elements, as this shape, in the places `wanted`.

    Args:
        swapped: `tensor` has its last two dimensions in the other order.
        parts: it has so many times as many elements.
    """
    best = None
    for source, factor, moves in chain.sources(tensor):
        view: Strided | None = Strided.whole(source.shape)
        for move in reversed(moves):
            view = move(view) if view is not None else None
        if view is None:
            break
        if swapped:
            rank = len(view.dimensions)
            view = view.transposed((*range(rank - 2), rank - 1, rank - 2))
        if prod(source.shape) == parts * prod(shape) and view.reshaped(shape) == wanted:
            best = _Operand(source, factor)
    return best


@record
class _Chain:
    """The operators in front of an operand that only move its elements, or scale them all."""

    producers: Producers
    scaled: bool

    def sources(self, tensor: TensorView) -> Iterator[tuple[TensorView, float, Sequence[Move]]]:
        """What the operand is made of, nearest first: a tensor, a factor, and how the elements were
        moved, the last move first."""
        factor, moves = 1.0, list[Move]()
        for _ in range(_REACH):
            if not is_known(*tensor.shape) or 0 in tensor.shape or tensor.is_variable:
                return
            yield tensor, factor, tuple(moves)
            op = self.producers.maker(tensor)
            if op is None or op.variables():
                return
            if op.op in RESHAPES:
                moves.append(_Reshaped(tensor.shape))
                tensor = op["input"] if "input" in op.names else op.present_inputs()[0]
            elif op.op is Op.TRANSPOSE and op["perm"].data is not None:
                moves.append(_Transposed.of(op))
                tensor = op["input"]
            elif op.op is Op.SLICE and (begin := op["begin"].data) is not None:
                moves.append(_Sliced(tuple(map(int, begin.reshape(-1))), op.output.shape))
                tensor = op["input"]
            elif op.op is Op.MUL and self.scaled and (scale := _scale_of(op)) is not None:
                tensor, number = scale
                factor *= number
            else:
                return


@record
class _Reshaped:
    shape: tuple[int, ...]

    def __call__(self, view: Strided) -> Strided | None:
        return view.reshaped(self.shape)


@record
class _Transposed:
    order: tuple[int, ...]

    @classmethod
    def of(cls, op: View) -> _Transposed:
        perm, rank = op["perm"].data, op["input"].rank
        assert perm is not None
        return cls(tuple(normalized_axis(int(axis), rank) for axis in perm.reshape(-1)))

    def __call__(self, view: Strided) -> Strided | None:
        return view.transposed(self.order)


@record
class _Sliced:
    begin: tuple[int, ...]
    shape: tuple[int, ...]

    def __call__(self, view: Strided) -> Strided | None:
        return view.sliced(self.begin, self.shape)


Move = _Reshaped | _Transposed | _Sliced


def _scale_of(op: View) -> tuple[TensorView, float] | None:
    """The other operand of a MUL by a number, and the number."""
    if op.options.fused_activation_function:
        return None
    for tensor, other in ((op["input1"], op["input2"]), (op["input2"], op["input1"])):
        if other.data is not None and other.data.size == 1 and tensor.rank >= other.rank:
            return tensor, _number(other)
    return None


def _number(tensor: TensorView | None) -> float:
    """A constant of one element; 1 for none, and 0 for a constant of several."""
    if tensor is None:
        return 1.0
    single = tensor.data is not None and tensor.data.size == 1
    return float(tensor.data.reshape(())) if tensor.data is not None and single else 0.0


def _is_plain(found: Found) -> bool:
    """Whether all is float32, of known sizes, and the softmax is one of plain scores."""
    for op in found.operators.values():
        if op.op is Op.SOFTMAX and op.options.beta != 1.0:
            return False
    return all(
        (tensor.type is TensorType.FLOAT32 or tensor.is_constant)
        and is_known(*tensor.shape)
        and 0 not in tensor.shape
        for tensor in found.tensors.values()
    )


def _is_turned(op: View, sizes: _Sizes) -> bool:
    """Whether a TRANSPOSE puts the heads of a token next to each other."""
    if op["perm"].data is None:
        return False
    tokens, size = sizes.queries, sizes.value_size
    shape = sizes.shape(tokens, size, heads_last=True)
    view = sizes.places(tokens, size, heads_last=True).reshaped(op["input"].shape)
    turned = None if view is None else _Transposed.of(op)(view)
    back = None if turned is None else turned.reshaped(shape)
    return back == Strided.whole(shape)


@record
class _Call:
    """An Attention node.

    Args:
        operands: queries, keys and values; the last one also has those that are left out.
        is_above: the mask is above the lowest float.
    """

    sizes: _Sizes
    operands: Sequence[_Operand]
    mask: TensorView | None
    scale: float
    is_above: bool
    heads_last: bool

    def emit(self, g: Graph, op: View) -> None:
        """Add the node, which writes the output of `op`."""
        inputs: list[ir.Value | None] = [*self._read_operands(g)]
        if self.mask is not None:
            inputs.append(self._read_mask(g, self.mask))
        heads = self.sizes.heads if self.heads_last else None
        y = g.op(
            "Attention", *inputs, q_num_heads=heads, kv_num_heads=heads, scale=float(self.scale)
        )
        g.write(op.output, g.reshape(y, op.output.shape))

    def _read_operands(self, g: Graph) -> Sequence[ir.Value]:
        """Queries, keys and values."""
        sizes, heads_last = self.sizes, self.heads_last
        apart = self.operands
        packed = list[ir.Value]()
        if len(self.operands) < 3:
            apart, (joined,) = apart[:-1], apart[-1:]
            shape = sizes.batch, sizes.keys, 3 * sizes.heads * sizes.size
            value = _read_as(g, joined.source, shape)
            parts = g.op_multi("Split", value, outputs=3, axis=-1, num_outputs=3)
            packed = list(parts[len(apart) :])
        shapes = (
            sizes.shape(sizes.queries, sizes.size, heads_last=heads_last),
            sizes.shape(sizes.keys, sizes.size, heads_last=heads_last),
            sizes.shape(sizes.keys, sizes.value_size, heads_last=heads_last),
        )
        pairs = zip(apart, shapes, strict=False)
        return [*(_read_as(g, each.source, shape) for each, shape in pairs), *packed]

    def _read_mask(self, g: Graph, mask: TensorView) -> ir.Value:
        """The mask above the lowest float, with a row for each query."""
        shape = self.sizes.mask(mask)
        assert shape is not None
        rows = (*shape[:2], self.sizes.queries, shape[3])
        if mask.data is not None:
            if shape == rows and np.all(mask.data >= _LOWEST):
                return _read_as(g, mask, shape)
            above = np.maximum(mask.data, _LOWEST).reshape(shape)
            return g.constant(np.ascontiguousarray(np.broadcast_to(above, rows)))
        value = _read_as(g, mask, shape)
        value = value if self.is_above else g.op("Max", value, g.constant(_LOWEST))
        return value if shape == rows else g.op("Expand", value, g.ints(rows))


def _is_above(mask: TensorView | None, producers: Producers) -> bool:
    """Whether a mask is above the lowest float: it is chosen from constants that are."""
    maker = None if mask is None else producers.maker(mask)
    if mask is None or maker is None or maker.op not in (Op.SELECT, Op.SELECT_V2):
        return False
    choices = [maker["x"].data, maker["y"].data]
    return all(data is not None and bool(np.all(data >= _LOWEST)) for data in choices)


def _read_as(g: Graph, tensor: TensorView, shape: Sequence[int]) -> ir.Value:
    value = g.read(tensor)
    return value if tuple(tensor.shape) == tuple(shape) else g.reshape(value, shape)


ATTENTION = tuple(
    Pattern("Attention", form.root, form.plan)
    for turned in (True, False)
    for scaled in (False, True)
    for masked in (False, True)
    for form in (_Form.made(turned=turned, scaled=scaled, masked=masked),)
)
